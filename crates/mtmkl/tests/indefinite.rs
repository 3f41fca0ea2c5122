//! Indefinite kernels: ḡ is not concave, the general theorem's algorithm runs, and nothing is called certified.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use mtmkl::kernel::{Base, Kernel, KernelView, parse_kernels};
use mtmkl::machine::MachineSpec;
use mtmkl::sharing::SharingSpec;
use mtmkl::solver::{Epf, SolverSpec};
use mtmkl::{
    Definiteness, Error, Fitting, GivenGram, Model, Precision, Preparation, Problem, ProblemSpec,
    Samples, Status, Targets, Task,
};
use mtmkl_testkit::generate::{self, Random};

const N: usize = 24;

/// Two kernels: a Gaussian one and a similarity with negative eigenvalues.
fn samples(seed: u64) -> (Samples, Vec<f64>) {
    let mut random = Random::new(seed);
    let points = generate::points(&mut random, N, 2);
    let labels = generate::labels(&mut random, &points, N, 2);
    let mut similarity = generate::linear_gram(&points, N, 2);
    for value in &mut similarity {
        *value = (1.5 * *value - 0.5).tanh();
    }
    let samples = Samples::new(points, N, 2).unwrap();
    let gram = GivenGram {
        name: "similarity".into(),
        values: similarity.into(),
    };
    (samples.with_gram(gram).unwrap(), labels)
}

fn fit(solver: SolverSpec, definiteness: Definiteness, seed: u64) -> Result<Model, Error> {
    let (samples, labels) = samples(seed);
    let mut kernels = parse_kernels("rbf:gamma=1").unwrap();
    kernels.extend(parse_kernels("precomputed:name=similarity").unwrap());
    let mut spec = ProblemSpec::new(
        kernels,
        MachineSpec::svc(2.0),
        SharingSpec::independent(2.0, 1.0),
    );
    spec.solver = solver;
    spec.normalize = false.into();
    let flipped = labels
        .iter()
        .enumerate()
        .map(|(i, y)| if i % 5 == 0 { -y } else { *y })
        .collect();
    let tasks = vec![
        Task::new("a", Targets::Labels(labels)),
        Task::new("b", Targets::Labels(flipped)),
    ];
    let problem = Problem::new(spec, vec![samples], tasks)?;
    let preparation = Preparation {
        definiteness,
        ..Preparation::default()
    };
    problem.prepare(&preparation)?.fit(&mut Fitting {
        tolerance: 1e-4,
        max_passes: 200,
        ..Fitting::default()
    })
}

#[test]
fn an_indefinite_kernel_is_refused_unless_allowed() {
    let error = fit(SolverSpec::Newton, Definiteness::Check, 1).unwrap_err();
    assert!(
        error.to_string().contains("not positive semi-definite"),
        "{error}"
    );
    assert!(error.to_string().contains("similarity"), "{error}");
}

#[test]
fn the_general_theorem_solves_it_without_calling_it_certified() {
    for seed in 1..6 {
        for solver in [SolverSpec::Newton, SolverSpec::Epf(Epf::default())] {
            let model = fit(solver, Definiteness::AllowIndefinite, seed).unwrap();
            let outcome = model.outcome();
            assert_ne!(
                outcome.status,
                Status::Converged,
                "an uncertified answer must not be called converged"
            );
            // D(α) ≤ J* needs no concavity.
            assert!(outcome.bound <= outcome.objective * (1.0 + 1e-9));
            assert!(model.weights().is_finite());
            // Each pass only ever improves on the best.
            assert!(
                outcome
                    .trace
                    .windows(2)
                    .all(|pair| pair[1].objective <= pair[0].objective)
            );
        }
    }
}

#[test]
fn more_starts_never_miss_a_higher_maximum_of_the_same_theta() {
    // With more starting points the maximum found at θ can only be larger: compare the first pass.
    for seed in 1..6 {
        let first = |starts: usize| {
            let epf = Epf {
                starts,
                random_start: false,
                ..Epf::default()
            };
            let model = fit(SolverSpec::Epf(epf), Definiteness::AllowIndefinite, seed).unwrap();
            model.outcome().trace[0].objective
        };
        assert!(first(8) >= first(0) * (1.0 - 1e-9));
    }
}

#[test]
fn an_allowed_kernel_that_turns_out_definite_keeps_its_certificate() {
    let mut random = Random::new(3);
    let points = generate::points(&mut random, N, 2);
    let labels = generate::labels(&mut random, &points, N, 2);
    let gram = GivenGram {
        name: "k".into(),
        values: generate::gaussian_gram(&points, N, 2, 0.5).into(),
    };
    let samples = Samples::from_grams(N, vec![gram]).unwrap();
    let kernels = parse_kernels("precomputed:name=k").unwrap();
    let spec = ProblemSpec::new(kernels, MachineSpec::svc(1.0), SharingSpec::uniform());
    let problem = Problem::new(
        spec,
        vec![samples],
        vec![Task::new("a", Targets::Labels(labels))],
    )
    .unwrap();
    let preparation = Preparation {
        definiteness: Definiteness::AllowIndefinite,
        ..Preparation::default()
    };
    let prepared = problem.prepare(&preparation).unwrap();
    assert_eq!(
        prepared
            .fit(&mut Fitting::default())
            .unwrap()
            .outcome()
            .status,
        Status::Converged
    );
}

/// tanh(1.5 x'z − ½) by a user who says nothing about it, or says that it is definite.
#[derive(Debug)]
struct Mine {
    base: Base,
    vouched: Option<bool>,
}

impl Kernel for Mine {
    fn base(&self) -> Base {
        self.base.clone()
    }

    fn map(&self, values: &mut [f64]) {
        for value in values {
            *value = (1.5 * *value - 0.5).tanh();
        }
    }

    fn value(&self, x: &[f64], z: &[f64]) -> f64 {
        let mut value = [x.iter().zip(z).map(|(a, b)| a * b).sum()];
        self.map(&mut value);
        value[0]
    }

    fn is_positive_definite(&self) -> bool {
        self.vouched
            .unwrap_or_else(|| Silent.is_positive_definite())
    }

    fn spec(&self) -> Option<String> {
        None
    }
}

/// What the trait says for a kernel that says nothing.
#[derive(Debug)]
struct Silent;

impl Kernel for Silent {
    fn base(&self) -> Base {
        Base::Own
    }

    fn spec(&self) -> Option<String> {
        None
    }
}

#[test]
fn a_kernel_that_nobody_vouches_for_is_checked() {
    let (samples, labels) = samples(1);
    let fit = |kernel: Mine, definiteness, precision| {
        let kernels = vec![KernelView::new("mine", kernel)];
        let sharing = SharingSpec::uniform();
        let mut spec = ProblemSpec::new(kernels, MachineSpec::svc(2.0), sharing);
        spec.normalize = false.into();
        let task = Task::new("a", Targets::Labels(labels.clone()));
        let preparation = Preparation {
            definiteness,
            precision,
            ..Preparation::default()
        };
        let problem = Problem::new(spec, vec![samples.clone()], vec![task])?;
        problem.prepare(&preparation)?.fit(&mut Fitting::default())
    };
    for base in [Base::Own, Base::product()] {
        for precision in [Precision::Double, Precision::Single] {
            let silent = || Mine {
                base: base.clone(),
                vouched: None,
            };
            let error = fit(silent(), Definiteness::Check, precision).unwrap_err();
            let message = error.to_string();
            assert!(message.contains("not positive semi-definite"), "{message}");
            assert!(message.contains("`mine`"), "{message}");
            let allowed = fit(silent(), Definiteness::AllowIndefinite, precision).unwrap();
            assert_ne!(allowed.outcome().status, Status::Converged);
            // Whoever vouches is believed.
            let vouched = Mine {
                base: base.clone(),
                vouched: Some(true),
            };
            assert!(fit(vouched, Definiteness::Check, precision).is_ok());
        }
    }
}

#[test]
fn registered_kernels_vouch_for_themselves() {
    for info in mtmkl::Registry::default().kernels() {
        let view = &parse_kernels(info.example).unwrap()[0];
        let checked = matches!(info.name, "sigmoid" | "precomputed");
        let is_definite = view.kernel.is_positive_definite();
        assert_eq!(is_definite, !checked, "{}", info.name);
    }
}
