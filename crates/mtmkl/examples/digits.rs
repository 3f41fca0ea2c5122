//! Ten one-vs-all digit tasks on shared samples, support vectors and logistic regression, PSCS and a tree: passes and certified gaps of both solvers.
//!
//! `cargo run --release --example digits` prints the table of docs/development/passes.md; it needs the shared USPS file and says so when
//! it is not there.
#![allow(clippy::print_stdout)]

use mtmkl::kernel::parse_kernels;
use mtmkl::machine::MachineSpec;
use mtmkl::sharing::{Hierarchy, SharingSpec};
use mtmkl::solver::{Epf, SolverSpec};
use mtmkl::{Fitting, NamedLevel, Problem, ProblemSpec, Samples, Targets, Task};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(table) = mtmkl_testkit::shared::read("usps.csv.gz") else {
        println!("the shared data folder is not here: nothing to show");
        return Ok(());
    };
    let (values, n, d) = table.numeric();
    let labels = table.column("label").ok_or("no column `label`")?;
    // 30 rows of each class, in file order.
    let mut chosen = Vec::new();
    for digit in 0..10 {
        let digit = digit.to_string();
        chosen.extend((0..n).filter(|&row| labels[row] == digit).take(30));
    }
    let rows: Vec<f64> = chosen
        .iter()
        .flat_map(|&row| &values[row * d..(row + 1) * d])
        .copied()
        .collect();
    let samples = Samples::new(rows, chosen.len(), d)?;
    let mut kernels = parse_kernels("linear")?;
    kernels.extend(parse_kernels("poly:degree=2")?);
    kernels.extend(parse_kernels("rbf:sigma=1|2|4|8|16|32|64|128")?);
    let tasks: Vec<Task> = (0..10)
        .map(|digit| {
            let name = digit.to_string();
            let labels = chosen
                .iter()
                .map(|&row| if labels[row] == name { 1.0 } else { -1.0 })
                .collect();
            Task::new(name, Targets::Labels(labels))
        })
        .collect();
    // Digits with a loop, and the others.
    let groups = [("loop", vec![0, 6, 8, 9]), ("none", vec![1, 2, 3, 4, 5, 7])];
    let level = NamedLevel {
        label: "shape".to_string(),
        groups: groups.map(|(name, own)| (name.to_string(), own)).to_vec(),
    };
    println!(
        "| machine | sharing | p | q | C | newton to 1e-3 | to 1e-6 | epf to 1e-3 | to 1e-5 | objective |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let machines: [fn(f64) -> MachineSpec; 2] = [MachineSpec::svc, MachineSpec::logistic];
    for (machine, in_a_tree) in [(0, false), (0, true), (1, false), (1, true)] {
        for (p, q) in [(2.0, 1.0), (1.1, 1.0), (1.1, 1.5), (2.0, 2.0)] {
            for c in [1.0 / 3.0, 9.0] {
                let sharing = if in_a_tree {
                    SharingSpec::from(Hierarchy {
                        levels: vec![level.clone()],
                        p,
                        q,
                        ..Hierarchy::default()
                    })
                } else {
                    SharingSpec::pscs(p, q, 1.0)
                };
                let mut spec = ProblemSpec::new(kernels.clone(), machines[machine](c), sharing);
                let fit = |spec: ProblemSpec, tolerance: f64, max_passes: usize| {
                    let problem = Problem::new(spec, vec![samples.clone()], tasks.clone())?;
                    problem.fit(&mut Fitting {
                        tolerance,
                        max_passes,
                        ..Fitting::default()
                    })
                };
                let newton = fit(spec.clone(), 1e-6, 60)?;
                let about = format!("{} | {}", spec.machine.name(), spec.sharing.name());
                spec.solver = SolverSpec::Epf(Epf {
                    random_start: false,
                    ..Epf::default()
                });
                let epf = fit(spec, 1e-5, 400)?;
                let passes = |model: &mtmkl::Model, gap: f64| {
                    let trace = &model.outcome().trace;
                    trace
                        .iter()
                        .find(|pass| pass.gap <= gap)
                        .map_or(format!("not in {}", trace.len()), |pass| {
                            pass.number.to_string()
                        })
                };
                println!(
                    "| {about} | {p} | {q} | {c:.3} | {} | {} | {} | {} | {:.6} |",
                    passes(&newton, 1e-3),
                    passes(&newton, 1e-6),
                    passes(&epf, 1e-3),
                    passes(&epf, 1e-5),
                    newton.outcome().objective,
                );
            }
        }
    }
    Ok(())
}
