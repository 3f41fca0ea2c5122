//! Matrices against the definitions of their kernels, to the last bit where that is promised.

use super::*;
use crate::gram::Storage;
use crate::gram::normaliser::Normaliser;
use crate::gram::plan::Options;
use crate::gram::tests::{assumed, build_with, on, value};
use crate::kernel::{Base, parse_kernels};
use crate::linalg;
use crate::view::View;

const KERNELS: [&str; 10] = [
    "rbf:sigma=0.5|2",
    "linear",
    "poly:degree=3",
    "laplacian:gamma=0.2",
    "matern32:length=3",
    "matern52",
    "cosine",
    "chi2",
    "intersection",
    "rbf:gamma=0.7@f1",
];

fn kernels() -> Vec<KernelView> {
    KERNELS
        .iter()
        .flat_map(|spec| parse_kernels(spec).unwrap())
        .collect()
}

/// Values ≥ 0, far from the origin; the last row is 0.
fn samples(n: usize, d: usize) -> Samples {
    let mut random = crate::random::Random::new(n as u64);
    let mut values: Vec<f64> = (0..n * d).map(|_| 3.0 + random.uniform()).collect();
    values[(n - 1) * d..].fill(0.0);
    Samples::new(values, n, d).unwrap()
}

fn grams(
    samples: &Samples,
    normalise: bool,
    storage: Storage,
    threads: usize,
) -> Arc<dyn Operator> {
    let options = assumed(normalise, storage, false);
    let built = on(threads, || build_with(samples, &kernels(), options));
    built.unwrap().operator
}

/// k(x, z) from the definition of its base, one pair at a time.
fn direct(view: &KernelView, x: &[f64], z: &[f64]) -> f64 {
    let (x, z) = match view.columns {
        crate::kernel::Columns::All => (x, z),
        _ => (&x[..1], &z[..1]),
    };
    let sum = |term: fn(f64, f64) -> f64| x.iter().zip(z).map(|(&a, &b)| term(a, b)).sum();
    let base = view.kernel.base();
    let mut value = if base == Base::product() {
        [sum(|a, b| a * b)]
    } else if base == Base::squared_distance() {
        [sum(|a, b| (a - b).powi(2))]
    } else if base == Base::manhattan() {
        [sum(|a, b| (a - b).abs())]
    } else if view.name == "chi2" {
        [sum(|a, b| {
            if a + b > 0.0 {
                (a - b).powi(2) / (a + b)
            } else {
                0.0
            }
        })]
    } else {
        assert_eq!(view.name, "intersection");
        [sum(f64::min)]
    };
    view.kernel.map(&mut value);
    value[0]
}

#[test]
fn grams_equal_the_kernels_pair_by_pair() {
    for (n, d) in [(1, 1), (2, 3), (40, 8), (65, 9), (150, 40)] {
        let samples = samples(n, d);
        for normalise in [false, true] {
            let grams = grams(&samples, normalise, Storage::Kept, 2);
            for (m, view) in kernels().iter().enumerate() {
                let pair = |i, j| direct(view, &samples.rows().row(i), &samples.rows().row(j));
                for i in 0..n {
                    for j in 0..n {
                        let scale = if Normaliser::is_wanted(view.kernel.as_ref(), normalise) {
                            Normaliser::scale(pair(i, i)) * Normaliser::scale(pair(j, j))
                        } else {
                            1.0
                        };
                        let (found, expected) =
                            (value(grams.as_ref(), m, i, j), pair(i, j) * scale);
                        assert!(
                            (found - expected).abs() <= 1e-12 * expected.abs().max(1.0),
                            "{} {n} {d} ({i}, {j}): {found} {expected}",
                            view.name
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn exactly_symmetric_with_an_exact_diagonal_for_any_number_of_threads() {
    for (n, d) in [(33, 2), (150, 40), (331, 12)] {
        let samples = samples(n, d);
        let of = |threads| grams(&samples, true, Storage::Kept, threads);
        let (one, five) = (of(1), of(5));
        for m in 0..kernels().len() {
            for i in 0..n {
                for j in 0..n {
                    assert_eq!(value(one.as_ref(), m, i, j), value(five.as_ref(), m, i, j));
                    assert_eq!(
                        value(one.as_ref(), m, i, j).to_bits(),
                        value(one.as_ref(), m, j, i).to_bits()
                    );
                }
                let own = value(one.as_ref(), m, i, i);
                assert!(own == 1.0 || own == 0.0 && i == n - 1, "{m} {own}");
            }
        }
    }
}

#[test]
fn the_first_kernel_beyond_the_range_is_named() {
    let mut values = vec![1.0; 300];
    values[299] = 1e200;
    let samples = Samples::new(values, 300, 1).unwrap();
    let kernels: Vec<KernelView> = ["rbf", "poly:degree=4", "linear", "poly:degree=2"]
        .iter()
        .flat_map(|spec| parse_kernels(spec).unwrap())
        .collect();
    for (normalise, storage) in [
        (false, Storage::Kept),
        (true, Storage::Kept),
        (false, Storage::Mapped),
        (true, Storage::Mapped),
    ] {
        let built = build_with(&samples, &kernels, assumed(normalise, storage, false));
        let message = built.unwrap_err().to_string();
        assert!(message.contains(&kernels[1].name), "{message}");
    }
}

#[test]
fn values_made_on_demand_have_the_bits_of_those_kept() {
    for (n, d) in [(1, 1), (2, 3), (40, 8), (150, 40)] {
        let samples = samples(n, d);
        let chosen = View::of((0..n).rev().step_by(2).collect::<Vec<_>>());
        let all: Vec<usize> = (0..kernels().len()).rev().collect();
        for (normalise, single) in [(false, false), (true, false), (false, true), (true, true)] {
            let of = |storage| {
                let options = assumed(normalise, storage, single);
                build_with(&samples, &kernels(), options).unwrap().operator
            };
            let (kept, made) = (of(Storage::Kept), of(Storage::Mapped));
            assert!(made.are_made() && !kept.are_made());
            let parts = (kept.part(&all, &chosen), made.part(&all, &chosen));
            for (number, (kept, made)) in [(kept, made), parts].iter().enumerate() {
                for m in 0..all.len() {
                    for i in 0..made.samples() {
                        for j in 0..made.samples() {
                            let (a, b) =
                                (value(kept.as_ref(), m, i, j), value(made.as_ref(), m, i, j));
                            assert_eq!(a.to_bits(), b.to_bits(), "{number} {m} {i} {j}");
                        }
                    }
                    assert_eq!(kept.diagonal(m), made.diagonal(m));
                }
            }
        }
    }
}

#[test]
fn one_base_for_all_kernels_on_the_same_columns() {
    let samples = samples(20, 3);
    let kernels = kernels();
    let plan = |storage, single| {
        let options = assumed(true, storage, single);
        Plan::new(&samples, 0, &kernels, options).unwrap()
    };
    let square = 8 * 20 * 20;
    assert_eq!(plan(Storage::Kept, false).kept(), 11 * square);
    // ‖x − z‖² of all columns and of f1, x'z, ‖x − z‖₁, the bases of chi2 and intersection.
    assert_eq!(plan(Storage::Mapped, false).kept(), 6 * square);
    let single = plan(Storage::Kept, true);
    assert_eq!(single.kept(), 11 * square / 2);
    assert_eq!(single.part(10), 11 * square / 8);
    let made = grams(&samples, true, Storage::Mapped, 1);
    let all: Vec<usize> = (0..11).collect();
    let part = made.part(&all, &View::of(vec![0, 3, 4]));
    assert_eq!(part.bytes(), 6 * 8 * 3 * 3);
}

/// Σ_k (k + 1) x_k z_k, as a user would write it.
#[derive(Debug)]
struct Weighted;

impl Statistic for Weighted {
    fn key(&self) -> String {
        "weighted".into()
    }

    fn value(&self, x: &[f64], z: &[f64]) -> f64 {
        let pairs = x.iter().zip(z).enumerate();
        pairs.map(|(k, (a, b))| (k + 1) as f64 * a * b).sum()
    }
}

/// (1 + s)^degree of that.
#[derive(Debug)]
struct OfWeighted(i32);

impl Kernel for OfWeighted {
    fn base(&self) -> Base {
        Base::of(Weighted)
    }

    fn map(&self, values: &mut [f64]) {
        for value in values {
            *value = (1.0 + *value).powi(self.0);
        }
    }

    fn is_positive_definite(&self) -> bool {
        true
    }

    fn spec(&self) -> Option<String> {
        None
    }
}

#[test]
fn a_statistic_of_the_users_own_is_shared_too() {
    let samples = samples(30, 3);
    let views = [1, 2, 3].map(|degree| KernelView::new("mine", OfWeighted(degree)));
    let of = |storage| {
        let options = assumed(false, storage, false);
        build_with(&samples, &views, options).unwrap().operator
    };
    let (kept, made) = (of(Storage::Kept), of(Storage::Mapped));
    assert_eq!((kept.bytes(), made.bytes()), (3 * 7200, 7200));
    for m in 0..3 {
        for (i, j) in [(0, 0), (3, 17), (29, 4)] {
            let row = |i| samples.rows().row(i);
            let expected = views[m].kernel.value(&row(i), &row(j));
            assert_eq!(value(kept.as_ref(), m, i, j), expected);
            assert_eq!(value(made.as_ref(), m, i, j), expected);
        }
    }
}

#[test]
fn rounded_at_once_is_the_same_as_rounded_later() {
    for (n, d) in [(1, 1), (40, 8), (150, 40)] {
        let samples = samples(n, d);
        for normalise in [false, true] {
            let of = |single| {
                let options = assumed(normalise, Storage::Kept, single);
                build_with(&samples, &kernels(), options).unwrap().operator
            };
            let (later, at_once) = (of(false), of(true));
            assert_eq!(2 * at_once.bytes(), later.bytes());
            for m in 0..kernels().len() {
                for i in 0..n {
                    for j in 0..n {
                        // Those that are not rounded yet are rounded here.
                        #[allow(clippy::cast_possible_truncation)]
                        let single = value(later.as_ref(), m, i, j) as f32;
                        assert_eq!(f64::from(single), value(at_once.as_ref(), m, i, j));
                    }
                }
            }
        }
    }
}

/// In this precision, checked or not.
fn with_check(definiteness: Definiteness, single: bool) -> Options {
    Options {
        definiteness,
        ..assumed(false, Storage::Kept, single)
    }
}

/// A kernel on n samples, given as a matrix, with its smallest eigenvalue moved to −ε.
fn with_smallest(n: usize, epsilon: f64) -> (Samples, f64) {
    let mut random = crate::random::Random::new(n as u64);
    let factor: Vec<f64> = (0..n * n).map(|_| random.uniform() - 0.5).collect();
    let mut values = vec![0.0; n * n];
    linalg::add_gram(&factor, n, &mut values);
    let (smallest, _) = linalg::extreme_eigenvalues(&values, n).unwrap();
    for i in 0..n {
        values[i * n + i] -= smallest + epsilon;
    }
    let largest = (0..n).fold(0.0_f64, |a, i| a.max(values[i * n + i]));
    let gram = GivenGram {
        name: "K".into(),
        values: values.into(),
    };
    (Samples::from_grams(n, vec![gram]).unwrap(), largest)
}

#[test]
fn what_is_forgiven_is_known() {
    let kernels = parse_kernels("precomputed:name=K").unwrap();
    let built = |samples: &Samples, definiteness, single| {
        let built = build_with(samples, &kernels, with_check(definiteness, single))?;
        Ok::<_, Error>((built.operator, built.is_semidefinite))
    };
    for n in [6, 40] {
        let (_, largest) = with_smallest(n, 0.0);
        let forgiven = 1e-9 * largest * n as f64;
        for share in [1e-5, 1e-3, 0.1, 0.9] {
            let epsilon = share * forgiven;
            let (samples, _) = with_smallest(n, epsilon);
            let (grams, semidefinite) = built(&samples, Definiteness::Check, false).unwrap();
            let known = grams.indefiniteness(0);
            assert!(semidefinite);
            assert!(known >= epsilon * (1.0 - 1e-3), "{known} for {epsilon}");
            assert!(known <= epsilon * 2.1, "{known} for {epsilon}");
            // A part has no smaller eigenvalue, and goes by the same number.
            assert_eq!(
                grams.part(&[0], &View::of(vec![0, 2, 3])).indefiniteness(0),
                known
            );
            let (single, _) = built(&samples, Definiteness::Check, true).unwrap();
            assert_eq!(single.indefiniteness(0), known);
            let (assumed, _) = built(&samples, Definiteness::Assume, false).unwrap();
            assert_eq!(assumed.indefiniteness(0), 0.0);
        }
        // Definite: nothing to forgive. More than is forgiven: refused, or allowed and known exactly.
        let (samples, _) = with_smallest(n, -0.01);
        let (grams, _) = built(&samples, Definiteness::Check, false).unwrap();
        assert_eq!(grams.indefiniteness(0), 0.0);
        let (samples, _) = with_smallest(n, 1.5 * forgiven);
        assert!(built(&samples, Definiteness::Check, false).is_err());
        let (grams, semidefinite) = built(&samples, Definiteness::AllowIndefinite, false).unwrap();
        assert!(!semidefinite);
        assert!((grams.indefiniteness(0) / (1.5 * forgiven) - 1.0).abs() < 1e-3);
    }
}

#[test]
fn a_singular_matrix_is_forgiven_no_more_than_rounding() {
    // Rank two on thirty samples.
    let n = 30;
    let points: Vec<f64> = (0..2 * n).map(|i| ((7 * i) % 11) as f64).collect();
    let samples = Samples::new(points, n, 2).unwrap();
    let linear = parse_kernels("linear").unwrap();
    let built = build_with(&samples, &linear, with_check(Definiteness::Assume, false));
    let grams = built.unwrap().operator;
    assert_eq!(grams.indefiniteness(0), 0.0);
    let values: Vec<f64> = (0..n * n)
        .map(|at| value(grams.as_ref(), 0, at / n, at % n))
        .collect();
    let largest = grams.diagonal(0).iter().fold(0.0_f64, |a, &b| a.max(b));
    let gram = GivenGram {
        name: "K".into(),
        values: values.into(),
    };
    let samples = Samples::from_grams(n, vec![gram]).unwrap();
    let kernels = parse_kernels("precomputed:name=K").unwrap();
    let built = build_with(&samples, &kernels, with_check(Definiteness::Check, false));
    let grams = built.unwrap().operator;
    assert!(grams.indefiniteness(0) <= 1e-13 * largest * n as f64);
}

#[test]
fn a_value_beyond_single_precision_is_found() {
    let samples = Samples::new(vec![1e30, 2e30], 2, 1).unwrap();
    let kernels = parse_kernels("linear").unwrap();
    for (single, fine) in [(false, true), (true, false)] {
        let built = build_with(&samples, &kernels, with_check(Definiteness::Assume, single));
        assert_eq!(built.is_ok(), fine);
    }
}
