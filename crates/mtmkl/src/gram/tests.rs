//! All operators against values pair by pair, and against each other.

use std::sync::Arc;

use super::*;
use crate::data::{GivenGram, Samples};
use crate::kernel::{Base, Kernel, KernelView, parse_kernels};
use crate::random::Random;

/// As these options say, with what the ledger counted.
pub(super) fn build_with(
    samples: &Samples,
    kernels: &[KernelView],
    options: Options,
) -> crate::error::Result<Built> {
    Plan::new(samples, 0, kernels, options)?.build(&Ledger::default())
}

/// Nothing is checked, in double precision.
pub(super) fn assumed(normalise: bool, storage: Storage, single: bool) -> Options {
    Options {
        normalise,
        definiteness: Definiteness::Assume,
        storage,
        single,
        threads: 2,
    }
}

pub(super) fn build(
    samples: &Samples,
    kernels: &[KernelView],
    normalise: bool,
    storage: Storage,
) -> Arc<dyn Operator> {
    let options = assumed(normalise, storage, false);
    build_with(samples, kernels, options).unwrap().operator
}

/// K_m(i, j).
pub(super) fn value(grams: &dyn Operator, kernel: usize, i: usize, j: usize) -> f64 {
    let mut value = [f64::NAN];
    grams.entries(&View::All, i, &[j], &[(kernel, 1.0)], &mut value);
    value[0]
}

pub(super) fn on<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.unwrap().install(work)
}

/// 1 + x'z, of a user who implements nothing but the value.
#[derive(Debug)]
struct Affine;

impl Kernel for Affine {
    fn base(&self) -> Base {
        Base::Own
    }

    fn value(&self, x: &[f64], z: &[f64]) -> f64 {
        1.0 + x.iter().zip(z).map(|(a, b)| a * b).sum::<f64>()
    }

    fn spec(&self) -> Option<String> {
        None
    }
}

/// Kernels that are mapped, one that is its own, one that is given.
fn mixed(n: usize) -> (Samples, Vec<KernelView>) {
    let mut random = Random::new(n as u64);
    let values: Vec<f64> = (0..3 * n).map(|_| random.uniform()).collect();
    let gram: Vec<f64> = (0..n * n)
        .map(|at| {
            let pairs = values[3 * (at / n)..].iter().zip(&values[3 * (at % n)..]);
            pairs.take(3).map(|(a, b)| a * b).sum()
        })
        .collect();
    let samples = Samples::new(values, n, 3).unwrap();
    let gram = GivenGram {
        name: "own".into(),
        values: gram.into(),
    };
    let specs = [
        "rbf:sigma=0.5|2",
        "poly:degree=3",
        "chi2:gamma=1|0.1",
        "rbf:sigma=1|3@f1",
        "precomputed:name=own",
        "laplacian",
        "intersection",
    ];
    let mut kernels: Vec<KernelView> = specs
        .iter()
        .flat_map(|spec| parse_kernels(spec).unwrap())
        .collect();
    kernels.insert(3, KernelView::new("affine", Affine));
    (samples.with_gram(gram).unwrap(), kernels)
}

/// Kept, single, on demand, and parts of these: copied, and as they lie.
fn operators(n: usize) -> Vec<Arc<dyn Operator>> {
    let (samples, kernels) = mixed(n);
    let mut all = Vec::new();
    for storage in [Storage::Kept, Storage::Mapped] {
        for single in [false, true] {
            let options = assumed(true, storage, single);
            let built = build_with(&samples, &kernels, options).unwrap();
            assert_eq!(built.operator.are_made(), storage == Storage::Mapped);
            all.push(built.operator);
        }
    }
    let chosen = View::of((0..n).rev().step_by(2).collect::<Vec<_>>());
    for whole in all.clone() {
        let wanted = [4, 0, 3, 6, 5, 1];
        all.push(whole.part(&wanted, &chosen));
        all.push(Arc::new(restricted::Restricted::new(
            Arc::clone(&whole),
            &wanted,
            &chosen,
        )));
        all.push(whole.part(&[6, 0], &View::All));
    }
    all
}

fn close(a: &[f64], b: &[f64]) -> bool {
    let mut pairs = a.iter().zip(b);
    a.len() == b.len() && pairs.all(|(a, b)| (a - b).abs() <= 1e-12 * b.abs().max(1.0))
}

/// Some rows in some order.
fn some_view(n: usize, random: &mut Random) -> View {
    let mut rows: Vec<usize> = (0..n).collect();
    random.shuffle(&mut rows);
    rows.truncate(n.div_ceil(2));
    View::of(rows)
}

#[test]
fn rows_entries_and_combined_matrices_are_made_of_values() {
    for n in [1, 7, 40, 90] {
        let mut random = Random::new(5);
        for grams in operators(n) {
            let n = grams.samples();
            for view in [View::All, some_view(n, &mut random)] {
                let task = TaskGrams {
                    grams: grams.as_ref(),
                    view: &view,
                };
                let count = task.count();
                let weights: Vec<(usize, f64)> = (0..grams.kernels())
                    .map(|m| (m, random.uniform()))
                    .collect();
                let never = crate::run::Stop::never();
                let combined = on(1, || task.combined(&weights, &never).to_vec());
                assert_eq!(combined, on(3, || task.combined(&weights, &never).to_vec()));
                let rounded = |threads| {
                    on(threads, || {
                        task.combined_rounded(&weights, None, 0, &never).to_vec()
                    })
                };
                let in_single = rounded(1);
                assert_eq!(in_single, rounded(3));
                let size: f64 = weights.iter().map(|(_, a)| a).sum();
                for (&rounded, value) in in_single.iter().zip(&combined) {
                    // Half a unit of the last digit, and another for what several parts add up to.
                    let allowed = f64::from(f32::EPSILON) * value.abs() + 1e-12 * size;
                    assert!((f64::from(rounded) - value).abs() <= allowed);
                }
                for i in 0..count {
                    let seen = |m: usize, j: usize| {
                        value(grams.as_ref(), m, view.position(i), view.position(j))
                    };
                    let row: Vec<f64> = (0..count)
                        .map(|j| weights.iter().map(|&(m, a)| a * seen(m, j)).sum())
                        .collect();
                    assert!(close(&combined[i * count..(i + 1) * count], &row));
                    let mut added = vec![0.0; count];
                    task.add_kernels(i, &weights, &mut added);
                    assert!(close(&added, &row));
                    let columns: Vec<usize> = (0..count).rev().step_by(3).collect();
                    let mut entries = vec![f64::NAN; columns.len()];
                    task.entries(i, &columns, &weights, &mut entries);
                    let picked: Vec<f64> = columns.iter().map(|&j| row[j]).collect();
                    assert!(close(&entries, &picked));
                    for m in 0..grams.kernels() {
                        assert!((task.diagonal(m, i) - seen(m, i)).abs() <= 1e-15);
                    }
                }
            }
        }
    }
}

/// Some β with about this share of zeros, and the support; now and then a sample belongs to it though its β is zero.
fn some_beta(count: usize, zeros: f64, random: &mut Random) -> (Vec<f64>, Vec<usize>) {
    let mut support = Vec::new();
    let beta = (0..count)
        .map(|i| {
            if random.uniform() < zeros {
                return 0.0;
            }
            support.push(i);
            if i % 7 == 3 {
                0.0
            } else {
                random.uniform() - 0.5
            }
        })
        .collect();
    (beta, support)
}

#[test]
fn images_are_those_of_whole_rows() {
    for n in [1, 2, 5, 40, 130] {
        let mut random = Random::new(7);
        for grams in operators(n) {
            let n = grams.samples();
            for view in [View::All, some_view(n, &mut random)] {
                let task = TaskGrams {
                    grams: grams.as_ref(),
                    view: &view,
                };
                images_of(task, &mut random);
            }
        }
    }
}

fn images_of(task: TaskGrams<'_>, random: &mut Random) {
    let (count, kernels) = (task.count(), task.grams.kernels());
    let asked: Vec<(Vec<f64>, Vec<usize>)> = [0.0, 0.6, 0.2, 1.0]
        .into_iter()
        .map(|zeros| some_beta(count, zeros, random))
        .collect();
    let found_on = |threads: usize| -> Vec<Vec<f64>> {
        let mut outs: Vec<Vec<f64>> = asked
            .iter()
            .map(|(_, support)| vec![f64::NAN; support.len() * kernels])
            .collect();
        let pairs = asked.iter().zip(&mut outs);
        let images = pairs.map(|((beta, support), out)| {
            let out = by_kernel(out, kernels);
            Image::Support(OnSupport { beta, support, out })
        });
        let images = images.collect();
        on(threads, || task.images(images));
        outs
    };
    let found = found_on(1);
    assert_eq!(found, found_on(3));
    for ((beta, support), found) in asked.iter().zip(&found) {
        let rows: Vec<(usize, f64)> = beta.iter().copied().enumerate().collect();
        let mut whole = vec![0.25; count * kernels];
        for (kernel, whole) in whole.chunks_exact_mut(count).enumerate() {
            task.add_rows(kernel, &rows, whole);
        }
        for kernel in 0..kernels {
            let found = &found[kernel * support.len()..];
            for (&i, value) in support.iter().zip(found) {
                assert!((whole[kernel * count + i] - 0.25 - value).abs() < 1e-12);
            }
        }
        let mut out = vec![0.25; count * kernels];
        task.images(vec![Image::Change(ByChange {
            change: rows,
            out: by_kernel(&mut out, kernels),
        })]);
        assert_eq!(out, whole);
    }
}

#[test]
fn what_is_kept_is_what_a_part_takes() {
    let ledger = Ledger::default();
    let (samples, kernels) = mixed(60);
    for (storage, single) in [
        (Storage::Kept, false),
        (Storage::Kept, true),
        (Storage::Mapped, false),
    ] {
        let options = assumed(true, storage, single);
        let plan = Plan::new(&samples, 0, &kernels, options).unwrap();
        let whole = plan.build(&ledger).unwrap().operator;
        assert_eq!((ledger.taken(), whole.bytes()), (plan.kept(), plan.kept()));
        let all: Vec<usize> = (0..kernels.len()).collect();
        let chosen = View::of(vec![3, 4, 5, 50, 2]);
        let part = whole.part(&all, &chosen);
        assert_eq!(ledger.taken() - whole.bytes(), plan.part(5));
        assert_eq!(whole.bytes_of_part(&all, 5), plan.part(5));
        assert_eq!(part.bytes(), plan.part(5));
        drop((whole, part));
        assert_eq!(ledger.taken(), 0);
    }
}

#[test]
fn the_plan_is_what_the_ledger_counts() {
    // Large enough for matrices and columns above what may pass uncounted.
    let (n, d) = (400, 420);
    let mut random = Random::new(3);
    let values = (0..n * d).map(|_| random.uniform()).collect();
    let gram = |scale: f64| -> Arc<Vec<f64>> {
        let entry = |at: usize| if at / n == at % n { scale } else { 0.0 };
        Arc::new((0..n * n).map(entry).collect())
    };
    let mut samples = Samples::new(values, n, d).unwrap();
    for (name, scale) in [("unit", 1.0), ("other", 2.0)] {
        let gram = GivenGram {
            name: name.into(),
            values: gram(scale),
        };
        samples = samples.with_gram(gram).unwrap();
    }
    let specs = [
        "rbf:sigma=1|2",
        "linear",
        "chi2@f1..f300",
        "laplacian@f1",
        "sigmoid:gamma=0.0001",
        "precomputed:name=unit",
        "precomputed:name=other",
    ];
    let kernels: Vec<KernelView> = specs
        .iter()
        .flat_map(|spec| parse_kernels(spec).unwrap())
        .collect();
    for definiteness in [Definiteness::Assume, Definiteness::AllowIndefinite] {
        for storage in [Storage::Kept, Storage::Mapped] {
            for (single, normalise) in [(false, true), (true, true), (false, false), (true, false)]
            {
                for threads in [1, 2] {
                    let options = Options {
                        normalise,
                        definiteness,
                        storage,
                        single,
                        threads,
                    };
                    let ledger = Ledger::default();
                    let plan = Plan::new(&samples, 0, &kernels, options).unwrap();
                    let built = on(threads, || plan.build(&ledger)).unwrap();
                    assert_eq!(ledger.taken(), plan.kept(), "{options:?}");
                    assert_eq!(ledger.peak(), plan.kept() + plan.passing(), "{options:?}");
                    drop(built);
                    assert_eq!(ledger.taken(), 0);
                }
            }
        }
    }
}

/// What is made from rows in blocks is what would have been kept, on any view, for any number of threads.
#[test]
fn streams_are_the_matrices_that_would_be_kept() {
    for (n, d) in [(3, 2), (150, 3), (700, 12)] {
        let mut random = Random::new(n as u64);
        let values: Vec<f64> = (0..n * d).map(|_| random.uniform()).collect();
        let samples = Samples::new(values, n, d).unwrap();
        let specs = [
            "linear",
            "rbf:sigma=0.5|1|2|3|64",
            "rbf:gamma=0.7,factor=3",
            "poly:degree=2",
            "poly:degree=3",
            "laplacian:gamma=1|0.5",
            "matern32",
            "cosine",
            "chi2:gamma=1|0.25",
            "linear@f1",
            "rbf:sigma=1@f2",
        ];
        let kernels: Vec<KernelView> = (specs.iter())
            .flat_map(|spec| parse_kernels(spec).unwrap())
            .collect();
        let all = kernels.len();
        for normalise in [false, true] {
            let kept = build(&samples, &kernels, normalise, Storage::Kept);
            let streamed = build(&samples, &kernels, normalise, Storage::Streamed);
            assert!(streamed.is_streamed() && !kept.is_streamed());
            let some: Vec<usize> = (0..n).rev().step_by(2).collect();
            let wanted: Vec<usize> = (0..all).rev().step_by(3).collect();
            let parts = [
                (Arc::clone(&kept), Arc::clone(&streamed)),
                (
                    kept.part(&wanted, &View::of(some.as_slice())),
                    streamed.part(&wanted, &View::of(some.as_slice())),
                ),
            ];
            for (kept, streamed) in parts {
                for view in [
                    View::All,
                    View::of((0..kept.samples()).rev().step_by(2).collect::<Vec<_>>()),
                ] {
                    compare(kept.as_ref(), streamed.as_ref(), &view, &mut random);
                }
            }
        }
    }
}

fn compare(kept: &dyn Operator, streamed: &dyn Operator, view: &View, random: &mut Random) {
    let (n, kernels) = (view.count(kept.samples()), kept.kernels());
    for kernel in 0..kernels {
        assert!(close(streamed.diagonal(kernel), kept.diagonal(kernel)));
    }
    let weights: Vec<(usize, f64)> = (0..kernels).map(|m| (m, 0.1 + m as f64)).collect();
    let combined = |grams: &dyn Operator, threads: usize| {
        let mut out = vec![0.0; n * n];
        on(threads, || {
            grams.combine(view, &weights, &mut out, &crate::run::Stop::never());
        });
        out
    };
    assert!(close(&combined(streamed, 2), &combined(kept, 1)));
    assert_eq!(combined(streamed, 3), combined(streamed, 1));
    compare_products(kept, streamed, view, random);
    // β of two tasks, a few of which change, and one row.
    let changes: [Vec<(usize, f64)>; 3] = [
        (0..n)
            .step_by(3)
            .map(|i| (i, random.uniform() - 0.5))
            .collect(),
        (0..n)
            .step_by(2)
            .map(|i| (i, random.uniform() - 0.5))
            .collect(),
        vec![(n - 1, 1.0)],
    ];
    let images = |grams: &dyn Operator, threads: usize| {
        let mut outs = vec![vec![1.0; kernels * n]; changes.len()];
        let asked = changes.iter().zip(&mut outs).map(|(change, out)| ByChange {
            change: change.clone(),
            out: by_kernel(out, kernels),
        });
        let asked: Vec<ByChange<'_>> = asked.collect();
        let made = on(threads, || {
            grams.sweep(view, asked, &crate::run::Stop::never())
        });
        assert!(made.is_some());
        outs
    };
    let found = images(streamed, 2);
    for (found, expected) in found.iter().zip(images(kept, 1)) {
        assert!(close(found, &expected));
    }
    assert_eq!(found, images(streamed, 1));
    for kernel in 0..kernels {
        for change in &changes {
            let [mut one, mut other] = [vec![0.0; n], vec![0.0; n]];
            kept.add_rows(view, kernel, change, &mut one);
            streamed.add_rows(view, kernel, change, &mut other);
            assert!(close(&other, &one));
        }
    }
    let columns: Vec<usize> = (0..n).step_by(2).collect();
    let [mut one, mut other] = [vec![0.0; columns.len()], vec![0.0; columns.len()]];
    kept.entries(view, n / 2, &columns, &weights, &mut one);
    streamed.entries(view, n / 2, &columns, &weights, &mut other);
    assert!(close(&other, &one));
    // Who asks to stop gets nothing.
    let stop = crate::run::Stop::never();
    stop.request();
    let mut out = vec![0.0; kernels * n];
    let asked = vec![ByChange {
        change: changes[0].clone(),
        out: by_kernel(&mut out, kernels),
    }];
    assert_eq!(on(2, || streamed.sweep(view, asked, &stop)), None);
}

/// K(θ)v.
fn compare_products(
    kept: &dyn Operator,
    streamed: &dyn Operator,
    view: &View,
    random: &mut Random,
) {
    let n = view.count(kept.samples());
    let weights: Vec<(usize, f64)> = (0..kept.kernels()).map(|m| (m, 0.1 + m as f64)).collect();
    // Nothing cancels, so that sums have all their digits.
    let v: Vec<f64> = (0..n).map(|_| random.uniform()).collect();
    let times_v = |grams: &dyn Operator, threads: usize| {
        let never = crate::run::Stop::never();
        on(threads, || grams.multiply(view, &weights, &v, &never))
    };
    let mut rows = vec![0.0; n * n];
    kept.combine(view, &weights, &mut rows, &crate::run::Stop::never());
    let expected: Vec<f64> = (rows.chunks_exact(n))
        .map(|row| crate::vector::dot(row, &v))
        .collect();
    assert!(close(&times_v(kept, 2), &expected));
    assert!(close(&times_v(streamed, 2), &expected));
    assert_eq!(times_v(streamed, 3), times_v(streamed, 1));
}
