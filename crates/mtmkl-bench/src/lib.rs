//! What the benchmarks share: problems of any size that are the same everywhere, and what a process took.

use mimalloc::MiMalloc;
use mtmkl::kernel::{Columns, Gaussian, KernelView};
use mtmkl::machine::MachineSpec;
use mtmkl::random::Random;
use mtmkl::sharing::SharingSpec;
use mtmkl::{Error, Problem, ProblemSpec, Samples, Targets, Task};

/// The allocator of the program and of the Python package, for every benchmark (ADR 13).
#[global_allocator]
static MEMORY: MiMalloc = MiMalloc;

/// `count` × `columns` values, roughly normal (sums of uniforms).
pub fn table(count: usize, columns: usize, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed);
    (0..count * columns)
        .map(|_| (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0)
        .collect()
}

/// Gaussians with M widths around √d, on all columns or (`single`) on one column each.
///
/// # Errors
/// None for a positive number of columns.
pub fn gaussians(m: usize, columns: usize, single: bool) -> Result<Vec<KernelView>, Error> {
    (0..m)
        .map(|number| {
            let width = if single { 1.0 } else { columns as f64 };
            let gamma = 4.0_f64.powf(4.0 * number as f64 / m as f64 - 2.0) / width;
            let view = KernelView::new(format!("gaussian {number}"), Gaussian::from_gamma(gamma)?);
            Ok(if single {
                view.on(Columns::Indices(vec![number % columns]))
            } else {
                view
            })
        })
        .collect()
}

/// SVCs on one table: task t is to tell the sign of column t.
///
/// # Errors
/// When the sizes do not fit each other.
pub fn problem(
    count: usize,
    columns: usize,
    tasks: usize,
    kernels: Vec<KernelView>,
) -> Result<Problem, Error> {
    let values = table(count, columns, 1);
    let tasks = (0..tasks)
        .map(|task| {
            let labels = values
                .chunks_exact(columns)
                .map(|row| if row[task] > 0.0 { 1.0 } else { -1.0 })
                .collect();
            Task::new(format!("column {task}"), Targets::Labels(labels))
        })
        .collect();
    let sharing = SharingSpec::common(2.0, 1.0);
    let spec = ProblemSpec::new(kernels, MachineSpec::svc(1.0), sharing);
    Problem::new(spec, vec![Samples::new(values, count, columns)?], tasks)
}

/// Samples of two classes that a few columns tell apart, with noise.
///
/// # Errors
/// When there are no samples or columns.
pub fn noisy(count: usize, columns: usize) -> Result<(Samples, Task), Error> {
    let values = table(count, columns, 1);
    let noise = table(count, 1, 2);
    let labels = values
        .chunks_exact(columns)
        .zip(noise)
        .map(|(row, noise)| {
            let column = |k: usize| row[k % columns];
            let score = column(0) + column(1) * column(1) - 1.0 + (2.0 * column(2)).sin();
            if score + 0.5 * noise > 0.0 { 1.0 } else { -1.0 }
        })
        .collect();
    let samples = Samples::new(values, count, columns)?;
    Ok((samples, Task::new("noisy", Targets::Labels(labels))))
}

/// Gaussians of so many widths from 1/8 to 8 on each column by itself.
///
/// # Errors
/// None.
pub fn widths(columns: usize, widths: usize) -> Result<Vec<KernelView>, Error> {
    (0..columns * widths)
        .map(|number| {
            let (column, width) = (number / widths, number % widths);
            let sigma = 2.0_f64.powf(6.0 * (width as f64 + 0.5) / widths as f64 - 3.0);
            let view = KernelView::new(
                format!("column {column}, width {sigma:.4}"),
                Gaussian::from_sigma(sigma)?,
            );
            Ok(view.on(Columns::Indices(vec![column])))
        })
        .collect()
}

/// The arguments of a program that takes so many, which `usage` names.
///
/// # Errors
/// When there are more or fewer.
pub fn arguments<const COUNT: usize>(usage: &str) -> Result<[String; COUNT], String> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    given.try_into().map_err(|_| format!("usage: {usage}"))
}

/// The most memory that this process held so far, in bytes; none where the system does not say.
pub fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(1024 * kib)
}

/// Kernels prepared by so many threads, in so many bytes.
///
/// # Errors
/// When there are no so many threads.
pub fn on_threads(threads: usize, memory_limit: u64) -> mtmkl::Result<mtmkl::Preparation> {
    Ok(mtmkl::Preparation {
        ledger: mtmkl::Ledger::new(memory_limit),
        pool: Some(mtmkl::Pool::new(threads)?),
        ..mtmkl::Preparation::default()
    })
}
