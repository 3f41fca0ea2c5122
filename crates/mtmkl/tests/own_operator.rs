//! An operator written outside the crate: K_m = Z_m Z_m' of low rank, never formed. It implements what has no default, and nothing else.
#![allow(clippy::unwrap_used, reason = "a failed test")]

use std::sync::Arc;

use mtmkl::gram::{ByChange, Image, OnSupport, Operator, by_kernel, kept};
use mtmkl::kernel::parse_kernels;
use mtmkl::ledger::Ledger;
use mtmkl::machine::MachineSpec;
use mtmkl::sharing::SharingSpec;
use mtmkl::{Fitting, Preparation, Problem, ProblemSpec, Samples, Targets, Task, View};
use mtmkl_testkit::generate::{Random, points};

/// Z_m, n × rank each, row by row.
#[derive(Debug)]
struct LowRank {
    samples: usize,
    rank: usize,
    factors: Vec<Vec<f64>>,
    diagonals: Vec<Vec<f64>>,
    ledger: Ledger,
}

impl LowRank {
    fn new(samples: usize, rank: usize, factors: Vec<Vec<f64>>) -> Self {
        let square = |z: &[f64]| z.iter().map(|value| value * value).sum();
        let diagonal = |factor: &Vec<f64>| factor.chunks_exact(rank).map(square).collect();
        Self {
            samples,
            rank,
            diagonals: factors.iter().map(diagonal).collect(),
            factors,
            ledger: Ledger::default(),
        }
    }

    fn z(&self, kernel: usize, sample: usize) -> &[f64] {
        &self.factors[kernel][sample * self.rank..][..self.rank]
    }
}

impl Operator for LowRank {
    fn samples(&self) -> usize {
        self.samples
    }

    fn kernels(&self) -> usize {
        self.factors.len()
    }

    fn diagonal(&self, kernel: usize) -> &[f64] {
        &self.diagonals[kernel]
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Z (Z'v)
    fn add_rows(&self, view: &View, kernel: usize, rows: &[(usize, f64)], out: &mut [f64]) {
        let mut sum = vec![0.0; self.rank];
        for &(i, a) in rows {
            for (sum, z) in sum.iter_mut().zip(self.z(kernel, view.position(i))) {
                *sum += a * z;
            }
        }
        for (j, out) in out.iter_mut().enumerate() {
            let z = self.z(kernel, view.position(j));
            *out += z.iter().zip(&sum).map(|(a, b)| a * b).sum::<f64>();
        }
    }
}

const SAMPLES: usize = 30;
const RANK: usize = 4;
const KERNELS: usize = 3;

/// The same kernels never formed, and kept.
fn both() -> [Arc<dyn Operator>; 2] {
    let mut random = Random::new(14);
    let factors: Vec<Vec<f64>> = (0..KERNELS)
        .map(|_| points(&mut random, SAMPLES, RANK))
        .collect();
    let matrices = factors.iter().map(|z| {
        let row = |i: usize| &z[i * RANK..(i + 1) * RANK];
        let entry = |at: usize| {
            let pairs = row(at / SAMPLES).iter().zip(row(at % SAMPLES));
            pairs.map(|(a, b)| a * b).sum()
        };
        Arc::new((0..SAMPLES * SAMPLES).map(entry).collect())
    });
    let matrices = matrices.collect();
    [
        Arc::new(LowRank::new(SAMPLES, RANK, factors)),
        kept(SAMPLES, matrices, &Ledger::default()),
    ]
}

fn assert_close(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= 1e-10 * b.abs().max(1.0), "{a} {b}");
    }
}

/// Everything that can be asked, as numbers.
fn answers(operator: &dyn Operator, view: &View) -> Vec<Vec<f64>> {
    let (count, kernels) = (view.count(operator.samples()), operator.kernels());
    let weights: Vec<(usize, f64)> = (0..kernels).map(|m| (m, 0.5 + m as f64)).collect();
    let beta: Vec<f64> = (0..count)
        .map(|i| {
            if i % 3 == 0 {
                0.0
            } else {
                0.1 * i as f64 - 0.7
            }
        })
        .collect();
    let support: Vec<usize> = (0..count).filter(|i| i % 3 != 0).collect();
    let mut answers: Vec<Vec<f64>> = (0..kernels)
        .map(|kernel| operator.diagonal(kernel).to_vec())
        .collect();
    let mut row = vec![0.25; count];
    operator.add_kernels(view, 1, &weights, &mut row);
    answers.push(row);
    let mut entries = vec![f64::NAN; 3];
    operator.entries(view, 2, &[4, 0, 2], &weights, &mut entries);
    answers.push(entries);
    let mut combined = vec![0.0; count * count];
    operator.combine(view, &weights, &mut combined, &mtmkl::Stop::never());
    answers.push(combined);
    let mut on_support = vec![f64::NAN; kernels * support.len()];
    let mut by_change = vec![1.0; kernels * count];
    let change = beta.iter().copied().enumerate().collect();
    operator.images(
        view,
        vec![
            Image::Support(OnSupport {
                beta: &beta,
                support: &support,
                out: by_kernel(&mut on_support, kernels),
            }),
            Image::Change(ByChange {
                change,
                out: by_kernel(&mut by_change, kernels),
            }),
        ],
    );
    answers.extend([on_support, by_change]);
    answers
}

#[test]
fn an_operator_of_ones_own_says_what_kept_matrices_say() {
    let [own, kept] = both();
    let views = [View::All, View::of(vec![7, 3, 29, 11, 0, 16])];
    for view in &views {
        let pairs = answers(own.as_ref(), view).into_iter();
        for (a, b) in pairs.zip(answers(kept.as_ref(), view)) {
            assert_close(&a, &b);
        }
    }
    assert_eq!((own.indefiniteness(0), own.are_made()), (0.0, false));
}

#[test]
fn a_part_of_it_is_an_operator() {
    let rows = View::of((0..SAMPLES).step_by(2).collect::<Vec<_>>());
    let [own, kept] = both().map(|operator| operator.part(&[2, 0], &rows));
    assert_eq!((own.samples(), own.kernels()), (SAMPLES / 2, 2));
    for view in [View::All, View::of(vec![7, 3, 14, 11, 0])] {
        let pairs = answers(own.as_ref(), &view).into_iter();
        for (a, b) in pairs.zip(answers(kept.as_ref(), &view)) {
            assert_close(&a, &b);
        }
    }
}

#[test]
fn a_fit_on_it_is_that_on_the_same_matrices() {
    let names = ["a", "b", "c"];
    let kernels: Vec<_> = names
        .iter()
        .flat_map(|name| parse_kernels(&format!("precomputed:name={name}")).unwrap())
        .collect();
    let labels: Vec<f64> = (0..SAMPLES)
        .map(|i| if i % 3 == 0 { 1.0 } else { -1.0 })
        .collect();
    let sharing = SharingSpec::pscs(1.5, 1.0, 1.0);
    for machine in [MachineSpec::svc(2.0), MachineSpec::krr(0.3)] {
        let targets = match machine.name() {
            "krr" => Targets::Values(labels.clone()),
            _ => Targets::Labels(labels.clone()),
        };
        let half: Vec<bool> = (0..SAMPLES).map(|i| i % 2 == 0).collect();
        let tasks = vec![
            Task::new("all", targets.clone()),
            Task::new("half", targets).restricted(&half),
        ];
        let spec = ProblemSpec::new(kernels.clone(), machine, sharing.clone());
        // Of the matrices themselves only the operators know.
        let samples = Samples::from_grams(SAMPLES, Vec::new()).unwrap();
        let problem = Problem::new(spec, vec![samples], tasks).unwrap();
        let [own, kept] = both().map(|operator| {
            let prepared = problem.prepare_on(vec![operator], &Preparation::default());
            let model = prepared.unwrap().fit(&mut Fitting {
                tolerance: 1e-7,
                ..Fitting::default()
            });
            model.unwrap().outcome().clone()
        });
        assert!(own.gap <= 1e-7 && kept.gap <= 1e-7);
        let difference = (own.objective - kept.objective).abs();
        assert!(
            difference <= 2e-7 * kept.objective.abs(),
            "{own:?} {kept:?}"
        );
        let wrong = problem.prepare_on(Vec::new(), &Preparation::default());
        assert!(wrong.unwrap_err().to_string().contains("`operators`"));
    }
}
