//! Problems at random: every machine × sharing × kernel kind × size, parameters at their edges, samples of every bad kind.

use mtmkl::NamedLevel;
use mtmkl::machine::{MachineSpec, TargetKind};
use mtmkl::sharing::{Hierarchy, SetSpec, SharingSpec, TermSpec};

use crate::generate::{self, Random};
use crate::statement::{Set, StatedTask, Statement, targets_of};

/// One of these.
pub(super) fn pick<T: Clone>(random: &mut Random, among: &[T]) -> T {
    among[random.below(among.len())].clone()
}

/// 10 to a power between these.
fn power(random: &mut Random, low: f64, high: f64) -> f64 {
    10.0_f64.powf(low + (high - low) * random.uniform())
}

/// Often of order one, now and then far from it.
fn price(random: &mut Random) -> f64 {
    match random.below(8) {
        0 => power(random, -6.0, -1.0),
        1 => power(random, 1.0, 6.0),
        2 => 1.0,
        _ => power(random, -1.0, 1.5),
    }
}

/// An exponent ≥ 1, at and near 1 as well as large.
fn exponent(random: &mut Random) -> f64 {
    match random.below(10) {
        0..=2 => 1.0,
        3 => pick(random, &[1.0 + 1e-6, 1.001, 1.01]),
        4..=6 => 2.0,
        7 => pick(random, &[1.1, 1.33, 1.5]),
        8 => 1.0 + 3.0 * random.uniform(),
        _ => pick(random, &[4.0, 10.0, 64.0]),
    }
}

fn machine(random: &mut Random, fewest: usize) -> MachineSpec {
    let least = 1.0 / fewest as f64;
    match random.below(12) {
        0..=2 => MachineSpec::svc(price(random)),
        3 => MachineSpec::weighted_svc(price(random), 2.5, 0.5),
        4 => MachineSpec::logistic(price(random)),
        5 => MachineSpec::weighted_logistic(price(random), 0.5, 3.0),
        6..=7 => {
            let epsilon = pick(random, &[0.0, 0.0, 0.1, 0.5, 10.0]);
            MachineSpec::svr(price(random), epsilon)
        }
        8..=9 => MachineSpec::krr(price(random)),
        10 => {
            let c = pick(random, &[least, 1.0, 2.0 * least, 0.5 * (1.0 + least)]);
            MachineSpec::svdd(c.max(least))
        }
        _ => MachineSpec::one_class(pick(random, &[1.0, 0.5, 0.3, 0.05, 0.9])),
    }
}

/// Sets of fixed mass, and balls for machines that do not shrink to nothing in them.
fn sharing(random: &mut Random, tasks: usize, kernels: usize, fixed_mass: bool) -> SharingSpec {
    let least = 1.0 / kernels as f64;
    let choices = if fixed_mass { 6 } else { 14 };
    match random.below(choices) {
        0 => SharingSpec::simplex(),
        1 => {
            let upper = pick(random, &[least, 1.0, least + (1.0 - least) * 0.3, 2.0]);
            SharingSpec::box_simplex(upper.max(least))
        }
        2 => SharingSpec::tang(pick(random, &[0.0, 0.3, 1.0, 2.0 * tasks as f64])),
        3 => SharingSpec::uniform(),
        4 => SharingSpec::sum(vec![
            TermSpec::Common(SetSpec::Simplex { total: 0.6 }),
            TermSpec::Independent(SetSpec::BoxSimplex {
                total: 0.5,
                upper: 0.5_f64.max(0.5 * least),
            }),
        ]),
        5 => {
            let weights = (0..kernels)
                .map(|kernel| [0.5, 0.0, 1.5][kernel % 3])
                .collect();
            SharingSpec::sum(vec![
                TermSpec::Common(SetSpec::Fixed { weights }),
                TermSpec::Common(SetSpec::Simplex { total: 0.2 }),
            ])
        }
        number => ball(random, number, tasks, kernels),
    }
}

fn ball(random: &mut Random, number: usize, tasks: usize, kernels: usize) -> SharingSpec {
    let (p, q) = (exponent(random), exponent(random));
    let radius = match random.below(4) {
        0 => power(random, -3.0, 3.0),
        1 => 1.0,
        _ => power(random, -0.5, 0.5),
    };
    match number {
        6 if tasks == 1 => SharingSpec::lp(p, radius),
        6 | 7 => SharingSpec::common(p, radius),
        8 => SharingSpec::independent(p, radius),
        9 => SharingSpec::group(p, q, radius),
        10 | 11 => SharingSpec::pscs(p, q, radius),
        12 => {
            let prior = (0..kernels)
                .map(|kernel| [1.0, 0.0, 0.4][kernel % 3])
                .collect();
            SharingSpec::prior_ball(Some(prior), radius)
        }
        _ => {
            let cut = 1 + random.below(tasks);
            let groups = [(0..cut).collect::<Vec<usize>>(), (cut..tasks).collect()];
            let named = groups.into_iter().filter(|group| !group.is_empty());
            let level = NamedLevel {
                label: "half".to_string(),
                groups: named
                    .enumerate()
                    .map(|(number, group)| (format!("half {number}"), group))
                    .collect(),
            };
            let (root, leaves) = pick(random, &[(true, true), (false, true), (true, false)]);
            Hierarchy {
                levels: vec![level],
                p,
                q,
                radius,
                root,
                leaves,
                ..Hierarchy::default()
            }
            .into()
        }
    }
}

/// Every kind that is positive semi-definite; widths from those where all samples are alike to those where none are.
fn kernels(random: &mut Random, count: usize, columns: usize) -> Vec<String> {
    let mut specs = Vec::with_capacity(count);
    while specs.len() < count {
        let width = match random.below(5) {
            0 => power(random, -5.0, -2.0),
            1 => power(random, 1.0, 3.0),
            _ => power(random, -1.0, 0.7),
        };
        let kind = match random.below(13) {
            0 | 1 => "linear".to_string(),
            2 => format!("poly:degree={},coef0=1", 1 + random.below(3)),
            3 => "poly:degree=2,coef0=0,gamma=0.5".to_string(),
            4..=6 => format!("rbf:gamma={width}"),
            7 => format!("laplacian:gamma={width}"),
            8 => format!("matern32:length={width}"),
            9 => format!("matern52:length={width}"),
            10 => "cosine".to_string(),
            11 => pick(
                random,
                &[format!("chi2:gamma={width}"), "intersection".to_string()],
            ),
            _ => "constant".to_string(),
        };
        let view = if random.below(4) == 0 {
            format!("@f{}", 1 + random.below(columns))
        } else {
            String::new()
        };
        specs.push(kind + &view);
    }
    specs
}

/// n rows of some kind.
fn rows(random: &mut Random, n: usize, columns: usize, non_negative: bool) -> Vec<f64> {
    let mut values = generate::points(random, n, columns);
    match random.below(12) {
        // Copies of few rows.
        0 => {
            for row in 0..n {
                let from = random.below(1 + row / 3);
                values.copy_within(from * columns..(from + 1) * columns, row * columns);
            }
        }
        // All the same.
        1 => {
            for row in 1..n {
                values.copy_within(0..columns, row * columns);
            }
        }
        // Columns of sizes far apart.
        2 => {
            let sizes: Vec<f64> = (0..columns).map(|_| power(random, -4.0, 4.0)).collect();
            for row in values.chunks_exact_mut(columns) {
                row.iter_mut()
                    .zip(&sizes)
                    .for_each(|(value, size)| *value *= size);
            }
        }
        // Whole numbers, with ties and zeros.
        3 => values.iter_mut().for_each(|value| *value = value.round()),
        // A row of zeros, a column of a constant.
        4 => {
            values[..columns].fill(0.0);
            values
                .iter_mut()
                .step_by(columns)
                .for_each(|value| *value = 3.0);
        }
        // Almost the same.
        5 => {
            for at in columns..n * columns {
                values[at] = values[at % columns] + 1e-7 * values[at];
            }
        }
        _ => {}
    }
    if non_negative {
        for value in &mut values {
            *value = value.abs();
        }
    }
    values
}

fn targets(
    random: &mut Random,
    kind: TargetKind,
    points: &[f64],
    n: usize,
    columns: usize,
) -> Vec<f64> {
    match kind {
        TargetKind::Labels => {
            let mut labels = generate::labels(random, points, n, columns);
            if random.below(6) == 0 {
                // One of its class.
                labels.fill(-1.0);
                labels[n - 1] = 1.0;
            }
            labels
        }
        TargetKind::Values => {
            let mut values = generate::values(random, points, n, columns);
            match random.below(8) {
                0 => values.fill(1.5),
                1 => values
                    .iter_mut()
                    .for_each(|value| *value = 1e3 * *value + 1e4),
                2 => values.iter_mut().for_each(|value| *value = value.round()),
                _ => {}
            }
            values
        }
        TargetKind::Unlabelled => vec![0.0; n],
    }
}

fn weights(random: &mut Random, n: usize) -> Option<Vec<f64>> {
    (random.below(8) == 0).then(|| {
        let each = |_| pick(random, &[1.0, 2.0, 0.5, 3.0, 0.01]);
        (0..n).map(each).collect()
    })
}

/// The problem of a seed: the same on every machine, but for the last bits of logarithms.
pub fn statement(seed: u64) -> Statement {
    let random = &mut Random::new(seed);
    let large = random.below(40) == 0;
    let tasks = 1 + random.below(if large { 12 } else { 4 });
    let columns = 1 + random.below(4);
    let count = 1 + random.below(if large { 14 } else { 5 });
    let most = if large { 40 } else { 11 };
    let sizes: Vec<usize> = (0..tasks).map(|_| 2 + random.below(most)).collect();
    let fewest = sizes.iter().copied().min().unwrap_or(2);
    let kernels = kernels(random, count, columns);
    let non_negative = kernels
        .iter()
        .any(|kernel| kernel.starts_with("chi2") || kernel.starts_with("intersection"));
    let shared = random.below(4) == 0;
    let machine = machine(random, fewest);
    let kind = targets_of(&machine);
    let sharing = sharing(random, tasks, count, machine.name() == "svdd");
    let mut sets = Vec::new();
    if shared {
        let n = sizes.iter().copied().max().unwrap_or(2);
        sets.push(Set {
            count: n,
            rows: rows(random, n, columns, non_negative),
            grams: Vec::new(),
        });
    }
    let tasks = sizes
        .into_iter()
        .map(|n| {
            if !shared {
                sets.push(Set {
                    count: n,
                    rows: rows(random, n, columns, non_negative),
                    grams: Vec::new(),
                });
            }
            let set = sets.len() - 1;
            let first = random.below(sets[set].count - n + 1);
            let own: Vec<usize> = (first..first + n).collect();
            let points = &sets[set].rows[first * columns..(first + n) * columns];
            StatedTask {
                set,
                targets: targets(random, kind, points, n, columns),
                rows: own,
                // These two know what a weight is, but not one that makes C too small.
                weights: if machine.name() == "svdd" {
                    None
                } else {
                    weights(random, n)
                },
            }
        })
        .collect();
    Statement {
        machine,
        sharing,
        kernels,
        normalize: random.below(5) > 0,
        columns,
        sets,
        tasks,
    }
}
