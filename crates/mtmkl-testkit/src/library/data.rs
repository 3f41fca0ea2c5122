//! Samples and targets of the library's problems: drawn from a seed and then spoiled, or the first rows of a shared file.

use mtmkl::machine::TargetKind;
use serde::{Deserialize, Serialize};

use crate::generate::{self, Random};
use crate::shared;
use crate::statement::{Set, StatedTask};

/// Where samples come from.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Source {
    /// Standard normal values, targets by a smooth function with noise, a function for each task.
    Drawn {
        /// Of all that is drawn.
        seed: u64,
        /// Samples of each task; one number and [`Source::Drawn::tasks`] for tasks of equal size.
        samples: usize,
        /// How many tasks; their sizes differ by up to two where they have sets of their own.
        tasks: usize,
        /// How many columns.
        columns: usize,
        /// Whether all tasks are on the same samples.
        #[serde(default, skip_serializing_if = "is_false")]
        shared: bool,
        /// What is done to them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        twists: Vec<Twist>,
    },
    /// Rows of a file of the shared data, spread evenly over it, columns standardised.
    File {
        /// Its name, without `.csv.gz`.
        name: String,
        /// How many rows; of each task where the file has tasks.
        samples: usize,
        /// How many tasks: each the class of that number, of those among the rows, against all others; or the file's own tasks.
        tasks: usize,
    },
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_false(value: &bool) -> bool {
    !value
}

/// What makes samples difficult.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Twist {
    /// Every second row is a copy of the one before.
    Duplicates,
    /// And the copies have the opposite label, or another value.
    Contradictions,
    /// All rows are the same.
    Identical,
    /// All but the first column are constant.
    Constants,
    /// The first row is zero.
    ZeroRow,
    /// Columns of size 10⁻⁴ to 10⁴.
    Scales,
    /// All rows within 1e-7 of each other.
    NearlyEqual,
    /// Whole numbers.
    Whole,
    /// Values ≥ 0.
    Positive,
    /// Labels by the sign of the first column, with a margin.
    Separable,
    /// One sample of its class.
    OneOfItsClass,
    /// All targets the same number.
    ConstantTargets,
    /// Targets of a size of 10⁶.
    LargeTargets,
    /// Targets of a size of 10⁻⁶.
    TinyTargets,
    /// Samples with weights from 0.01 to 100.
    Weights,
    /// A Gram matrix `low`, of rank 2 and rounded to nine digits: indefinite by 1e-9.
    Rounded,
    /// A Gram matrix `zero` of zeros.
    ZeroGram,
}

/// Samples and tasks; `None` where the file is not there.
pub(super) fn made(
    source: &Source,
    kind: TargetKind,
) -> Option<(usize, Vec<Set>, Vec<StatedTask>)> {
    match source {
        Source::Drawn {
            seed,
            samples,
            tasks,
            columns,
            shared,
            twists,
        } => {
            let (sets, stated) = drawn(*seed, *samples, *tasks, *columns, *shared, twists, kind);
            Some((*columns, sets, stated))
        }
        Source::File {
            name,
            samples,
            tasks,
        } => of_file(name, *samples, *tasks, kind),
    }
}

fn drawn(
    seed: u64,
    samples: usize,
    tasks: usize,
    columns: usize,
    shared: bool,
    twists: &[Twist],
    kind: TargetKind,
) -> (Vec<Set>, Vec<StatedTask>) {
    let random = &mut Random::new(seed);
    let mut sets = Vec::new();
    let mut stated = Vec::new();
    for task in 0..tasks {
        if task == 0 || !shared {
            let count = if shared || tasks == 1 {
                samples
            } else {
                samples + task % 3
            };
            let mut rows = generate::points(random, count, columns);
            for twist in twists {
                spoil(&mut rows, count, columns, *twist);
            }
            let grams = grams(&rows, count, columns, twists);
            sets.push(Set { count, rows, grams });
        }
        let set = &sets[sets.len() - 1];
        let n = set.count;
        let mut targets = match kind {
            TargetKind::Labels if n == 1 => vec![1.0],
            TargetKind::Labels => generate::labels(random, &set.rows, n, columns),
            TargetKind::Values => generate::values(random, &set.rows, n, columns),
            TargetKind::Unlabelled => vec![0.0; n],
        };
        for twist in twists {
            mistake(&mut targets, &set.rows, columns, *twist, kind);
        }
        let weights = twists.contains(&Twist::Weights).then(|| {
            let each = |_| 10.0_f64.powf(4.0 * random.uniform() - 2.0);
            (0..n).map(each).collect()
        });
        stated.push(StatedTask {
            set: sets.len() - 1,
            rows: (0..n).collect(),
            targets,
            weights,
        });
    }
    (sets, stated)
}

fn spoil(rows: &mut [f64], n: usize, columns: usize, twist: Twist) {
    match twist {
        Twist::Duplicates | Twist::Contradictions => {
            for row in (1..n).step_by(2) {
                rows.copy_within((row - 1) * columns..row * columns, row * columns);
            }
        }
        Twist::Identical => {
            for row in 1..n {
                rows.copy_within(0..columns, row * columns);
            }
        }
        Twist::Constants => {
            for row in rows.chunks_exact_mut(columns) {
                row[1..].fill(5.0);
            }
        }
        Twist::ZeroRow => rows[..columns].fill(0.0),
        Twist::Scales => {
            for row in rows.chunks_exact_mut(columns) {
                for (column, value) in row.iter_mut().enumerate() {
                    *value *= [1e-4, 1e4, 1.0, 1e2, 1e-2][column % 5];
                }
            }
        }
        Twist::NearlyEqual => {
            for at in columns..n * columns {
                rows[at] = rows[at % columns] + 1e-7 * rows[at];
            }
        }
        Twist::Whole => rows.iter_mut().for_each(|value| *value = value.round()),
        Twist::Positive => rows.iter_mut().for_each(|value| *value = value.abs()),
        Twist::Separable => {
            for row in rows.chunks_exact_mut(columns) {
                row[0] += 2.0 * row[0].signum();
            }
        }
        _ => {}
    }
}

fn grams(rows: &[f64], n: usize, columns: usize, twists: &[Twist]) -> Vec<(String, Vec<f64>)> {
    let mut grams = Vec::new();
    if twists.contains(&Twist::Rounded) {
        let two: Vec<f64> = rows
            .chunks_exact(columns)
            .flat_map(|row| row[..2].to_vec())
            .collect();
        let mut gram = generate::linear_gram(&two, n, 2);
        for value in &mut gram {
            *value = (*value * 1e9).round() / 1e9;
        }
        grams.push(("low".to_string(), gram));
    }
    if twists.contains(&Twist::ZeroGram) {
        grams.push(("zero".to_string(), vec![0.0; n * n]));
    }
    grams
}

fn mistake(targets: &mut [f64], rows: &[f64], columns: usize, twist: Twist, kind: TargetKind) {
    let n = targets.len();
    match (twist, kind) {
        (Twist::Contradictions, TargetKind::Labels) => {
            (1..n)
                .step_by(2)
                .for_each(|row| targets[row] = -targets[row - 1]);
        }
        (Twist::Contradictions, TargetKind::Values) => {
            (1..n)
                .step_by(2)
                .for_each(|row| targets[row] = targets[row - 1] + 1.0);
        }
        (Twist::Separable, TargetKind::Labels) => {
            let signs = rows.chunks_exact(columns).map(|row| row[0].signum());
            targets
                .iter_mut()
                .zip(signs)
                .for_each(|(target, sign)| *target = sign);
            (targets[0], targets[1]) = (rows[0].signum(), rows[columns].signum());
        }
        (Twist::OneOfItsClass, TargetKind::Labels) => {
            targets.fill(-1.0);
            targets[n / 2] = 1.0;
        }
        (Twist::ConstantTargets, TargetKind::Values) => targets.fill(1.5),
        (Twist::LargeTargets, TargetKind::Values) => {
            for value in targets.iter_mut() {
                *value *= 1e6;
            }
        }
        (Twist::TinyTargets, TargetKind::Values) => {
            for value in targets.iter_mut() {
                *value *= 1e-6;
            }
        }
        _ => {}
    }
}

/// Mean 0 and variance 1 for each column that varies.
fn standardised(values: &mut [f64], columns: usize) {
    let n = (values.len() / columns) as f64;
    for column in 0..columns {
        let each = || values.iter().skip(column).step_by(columns);
        let mean = each().sum::<f64>() / n;
        let deviation = (each().map(|value| (value - mean).powi(2)).sum::<f64>() / n).sqrt();
        for value in values.iter_mut().skip(column).step_by(columns) {
            *value -= mean;
            if deviation > 0.0 {
                *value /= deviation;
            }
        }
    }
}

fn of_file(
    name: &str,
    samples: usize,
    tasks: usize,
    kind: TargetKind,
) -> Option<(usize, Vec<Set>, Vec<StatedTask>)> {
    let table = shared::read(&format!("{name}.csv.gz"))?;
    let (all, _, columns) = table.numeric();
    let labels = table.column("label")?;
    let own = table.column("task");
    let mut sets = Vec::new();
    let mut stated = Vec::new();
    let spread = |rows: &[usize], count: usize| -> Vec<usize> {
        (0..count.min(rows.len()))
            .map(|at| rows[at * rows.len() / count.min(rows.len())])
            .collect()
    };
    let take = |rows: &[usize]| {
        let mut values: Vec<f64> = rows
            .iter()
            .flat_map(|&row| all[row * columns..(row + 1) * columns].to_vec())
            .collect();
        standardised(&mut values, columns);
        Set {
            count: rows.len(),
            rows: values,
            grams: Vec::new(),
        }
    };
    // The last column is what is to be predicted where values are wanted.
    let targets = |set: &Set, is_one: &dyn Fn(usize) -> bool| match kind {
        TargetKind::Labels => (0..set.count)
            .map(|row| if is_one(row) { 1.0 } else { -1.0 })
            .collect(),
        TargetKind::Values => set
            .rows
            .chunks_exact(columns)
            .map(|row| row[columns - 1] + 0.5 * row[0])
            .collect(),
        TargetKind::Unlabelled => vec![0.0; set.count],
    };
    if let Some(own) = own {
        let mut names: Vec<&str> = Vec::new();
        for task in &own {
            if !names.contains(task) {
                names.push(task);
            }
        }
        for name in names.into_iter().take(tasks) {
            // As many of each class, where there are as many.
            let of_class = |wanted: bool| -> Vec<usize> {
                (0..own.len())
                    .filter(|&row| own[row] == name && (labels[row] == "1") == wanted)
                    .collect()
            };
            let rows = [
                spread(&of_class(true), samples / 2),
                spread(&of_class(false), samples / 2),
            ]
            .concat();
            let set = take(&rows);
            let targets = targets(&set, &|row| labels[rows[row]] == "1");
            stated.push(StatedTask {
                set: sets.len(),
                rows: (0..set.count).collect(),
                targets,
                weights: None,
            });
            sets.push(set);
        }
        return Some((columns, sets, stated));
    }
    let rows = spread(&(0..labels.len()).collect::<Vec<usize>>(), samples);
    let mut classes: Vec<&str> = rows.iter().map(|&row| labels[row]).collect();
    classes.sort_unstable();
    classes.dedup();
    let set = take(&rows);
    for task in 0..tasks {
        let targets = targets(&set, &|row| {
            labels[rows[row]] == classes[task % classes.len()]
        });
        stated.push(StatedTask {
            set: 0,
            rows: (0..set.count).collect(),
            targets,
            weights: None,
        });
    }
    Some((columns, vec![set], stated))
}
