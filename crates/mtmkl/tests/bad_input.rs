//! One valid tiny problem, then one fault each: every fault is refused with its typed error, and the message names the place, the
//! value and what was expected.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use mtmkl::error::{DataProblem, Place};
use mtmkl::kernel::{Columns, KernelView, Linear, parse_kernels};
use mtmkl::machine::MachineSpec;
use mtmkl::sharing::{SetSpec, SharingSpec, TermSpec};
use mtmkl::solver::{Epf, SolverSpec};
use mtmkl::{
    CrossGram, Definiteness, Error, Fitting, GivenGram, Input, Ledger, Model, Normalization, Pool,
    Preparation, Problem, ProblemSpec, Rows, Samples, Status, Storage, Targets, Task, View,
};

/// Six samples of two columns; `near` and `far` are tasks on them.
const VALUES: [f64; 12] = [
    0.0, 0.1, 0.2, 1.0, 1.0, 0.3, 1.1, 1.2, 0.4, 0.6, 0.9, 0.5, //
];
const COUNT: usize = 6;

/// A problem in pieces, so that one of them can be broken.
struct Setup {
    samples: Vec<Samples>,
    tasks: Vec<Task>,
    spec: ProblemSpec,
    preparation: Preparation,
    run: Fitting<'static>,
}

fn columns() -> Vec<String> {
    vec!["length".to_string(), "width".to_string()]
}

fn kernels(specs: &[&str]) -> Vec<KernelView> {
    specs
        .iter()
        .flat_map(|spec| parse_kernels(spec).unwrap())
        .collect()
}

impl Setup {
    /// Two classification tasks.
    fn valid() -> Self {
        let near = Targets::Labels(vec![-1.0, -1.0, 1.0, 1.0, -1.0, 1.0]);
        let far = Targets::Labels(vec![-1.0, 1.0, -1.0, 1.0, 1.0, -1.0]);
        Self {
            samples: vec![Samples::with_columns(VALUES.to_vec(), COUNT, columns()).unwrap()],
            tasks: vec![Task::new("near", near), Task::new("far", far)],
            spec: ProblemSpec::new(
                kernels(&["linear", "rbf:gamma=1"]),
                MachineSpec::svc(1.0),
                SharingSpec::pscs(2.0, 1.0, 1.0),
            ),
            preparation: Preparation::default(),
            run: Fitting::default(),
        }
    }

    /// The same samples for regression.
    fn regression(machine: MachineSpec) -> Self {
        let mut setup = Self::valid();
        let values = |shift: f64| Targets::Values((0..COUNT).map(|i| i as f64 - shift).collect());
        setup.tasks = vec![
            Task::new("near", values(2.0)),
            Task::new("far", values(3.0)),
        ];
        setup.spec.machine = machine;
        setup
    }

    /// The same samples without targets, on a set of fixed mass.
    fn unlabelled(machine: MachineSpec) -> Self {
        let mut setup = Self::valid();
        setup.tasks = vec![
            Task::new("near", Targets::Unlabelled),
            Task::new("far", Targets::Unlabelled),
        ];
        setup.spec.machine = machine;
        setup.spec.sharing = SharingSpec::simplex();
        setup
    }

    /// A Gram matrix beside the rows, used by the second kernel.
    fn given(values: Vec<f64>) -> Result<Self, Error> {
        let mut setup = Self::valid();
        setup.samples = vec![
            Samples::with_columns(VALUES.to_vec(), COUNT, columns())?.with_gram(GivenGram {
                name: "G".to_string(),
                values: values.into(),
            })?,
        ];
        setup.spec.kernels = kernels(&["linear", "precomputed:name=G"]);
        Ok(setup)
    }

    fn fit(mut self) -> Result<Model, Error> {
        let problem = Problem::new(self.spec, self.samples, self.tasks)?;
        problem.prepare(&self.preparation)?.fit(&mut self.run)
    }
}

/// I + ½ on the first off-diagonals: symmetric and positive definite.
fn definite_gram() -> Vec<f64> {
    (0..COUNT * COUNT)
        .map(|at| match (at / COUNT).abs_diff(at % COUNT) {
            0 => 1.0,
            1 => 0.5,
            _ => 0.0,
        })
        .collect()
}

/// The same with two samples more alike than they are like themselves: an eigenvalue of about −½.
fn indefinite_gram() -> Vec<f64> {
    let mut gram = definite_gram();
    (gram[1], gram[COUNT]) = (1.5, 1.5);
    gram
}

type Attempt = Box<dyn Fn() -> Result<Model, Error>>;

/// One way to get it wrong, and how that is to be answered.
struct Fault {
    name: String,
    attempt: Attempt,
    is_expected: fn(&Error) -> bool,
    words: Vec<String>,
}

/// name, attempt => pattern of the error, words of its message
macro_rules! fault {
    ($name:expr, $attempt:expr => $pattern:pat, [$($word:expr),+ $(,)?]) => {
        Fault {
            name: $name.to_string(),
            attempt: Box::new($attempt),
            is_expected: |error| matches!(error, $pattern),
            words: vec![$($word.to_string()),+],
        }
    };
}

/// The valid problem with one change.
fn changed(change: impl Fn(&mut Setup) + 'static) -> impl Fn() -> Result<Model, Error> {
    broken(Setup::valid, change)
}

fn broken(
    base: impl Fn() -> Setup + 'static,
    change: impl Fn(&mut Setup) + 'static,
) -> impl Fn() -> Result<Model, Error> {
    move || {
        let mut setup = base();
        change(&mut setup);
        setup.fit()
    }
}

fn with_sharing(sharing: SharingSpec) -> impl Fn() -> Result<Model, Error> {
    changed(move |setup| setup.spec.sharing = sharing.clone())
}

/// Runs all attempts and reports every answer that is not as it should be.
fn refused(faults: Vec<Fault>) {
    let mut failures = Vec::new();
    for fault in faults {
        match (fault.attempt)() {
            Ok(_) => failures.push(format!("{}: accepted", fault.name)),
            Err(error) => {
                let message = error.to_string();
                if !(fault.is_expected)(&error) {
                    failures.push(format!("{}: the wrong error, {error:?}", fault.name));
                }
                for word in &fault.words {
                    if !message.contains(word.as_str()) {
                        failures.push(format!("{}: no `{word}` in: {message}", fault.name));
                    }
                }
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} faults:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn the_problem_without_faults_is_accepted() {
    let setups = [
        Setup::valid(),
        Setup::regression(MachineSpec::krr(0.5)),
        Setup::regression(MachineSpec::svr(1.0, 0.1)),
        Setup::unlabelled(MachineSpec::svdd(0.5)),
        Setup::unlabelled(MachineSpec::one_class(0.5)),
        Setup::given(definite_gram()).unwrap(),
    ];
    for setup in setups {
        let machine = setup.spec.machine.clone();
        let model = setup.fit().unwrap();
        assert_eq!(model.outcome().status, Status::Converged, "{machine:?}");
    }
}

#[test]
fn samples_that_are_no_numbers_or_too_few_are_refused() {
    let cell = |value: f64| {
        move || {
            let mut values = VALUES.to_vec();
            values[3] = value;
            let mut setup = Setup::valid();
            setup.samples = vec![Samples::with_columns(values, COUNT, columns())?];
            setup.fit()
        }
    };
    refused(vec![
        fault!("NaN", cell(f64::NAN) =>
            Error::Data { place: Place::Cell { samples: 0, row: 1, .. }, problem: DataProblem::NotFinite(_) },
            ["row 1", "column `width`", "NaN", "expected a finite number", "remove the row"]),
        fault!("+∞", cell(f64::INFINITY) =>
            Error::Data { place: Place::Cell { row: 1, .. }, problem: DataProblem::NotFinite(f64::INFINITY) },
            ["row 1", "column `width`", "inf", "expected a finite number"]),
        fault!("−∞", cell(f64::NEG_INFINITY) =>
            Error::Data { place: Place::Cell { row: 1, .. }, problem: DataProblem::NotFinite(f64::NEG_INFINITY) },
            ["row 1", "column `width`", "-inf", "expected a finite number"]),
        fault!("values missing", || Samples::new(VALUES[..11].to_vec(), COUNT, 2).map(|_| unreachable!()) =>
            Error::Data { place: Place::Samples(0), problem: DataProblem::Length { found: 11, expected: 12, .. } },
            ["sample set 0", "values: 11", "expected 12"]),
        fault!("no rows", || Samples::new(Vec::new(), 0, 2).map(|_| unreachable!()) =>
            Error::Data { place: Place::Samples(0), problem: DataProblem::Empty(_) },
            ["sample set 0", "no rows", "expected at least one"]),
        fault!("no columns", changed(|setup| {
                setup.samples = vec![Samples::new(Vec::new(), COUNT, 0).unwrap()];
            }) =>
            Error::Data { place: Place::Samples(0), problem: DataProblem::Empty(_) },
            ["sample set 0", "no columns", "precomputed"]),
        fault!("values too large for the kernel", changed(|setup| {
                let mut values = VALUES.to_vec();
                values[3] = 1e200;
                setup.samples = vec![Samples::with_columns(values, COUNT, columns()).unwrap()];
                setup.spec.kernels = kernels(&["rbf:gamma=1", "linear"]);
            }) =>
            Error::Data { place: Place::Gram { samples: 0, .. }, problem: DataProblem::Overflow(_) },
            ["sample set 0", "`linear`", "too large", "scale the columns"]),
        fault!("values too large for the kernel, not normalised", changed(|setup| {
                let mut values = VALUES.to_vec();
                values[3] = 1e200;
                setup.samples = vec![Samples::with_columns(values, COUNT, columns()).unwrap()];
                setup.spec.kernels = kernels(&["rbf:gamma=1", "linear"]);
                setup.spec.normalize = false.into();
            }) =>
            Error::Data { place: Place::Gram { samples: 0, .. }, problem: DataProblem::Overflow(_) },
            ["sample set 0", "`linear`", "too large", "scale the columns"]),
    ]);
}

#[test]
fn tasks_that_do_not_fit_their_samples_are_refused() {
    refused(vec![
        fault!("no tasks", changed(|setup| setup.tasks.clear()) =>
            Error::Data { place: Place::Problem, problem: DataProblem::Empty(_) },
            ["no tasks", "expected at least one"]),
        fault!("empty task", changed(|setup| {
                setup.tasks[1].rows = View::of(Vec::new());
                setup.tasks[1].targets = Targets::Labels(Vec::new());
            }) =>
            Error::Data { place: Place::Task(_), problem: DataProblem::Empty(_) },
            ["task `far`", "no samples", "expected at least one"]),
        fault!("two tasks of one name", changed(|setup| setup.tasks[1].name = "near".to_string()) =>
            Error::Data { place: Place::Task(_), problem: DataProblem::NameTwice },
            ["task `near`", "two tasks", "names must differ"]),
        fault!("one class", changed(|setup| setup.tasks[1].targets = Targets::Labels(vec![-1.0; COUNT])) =>
            Error::Data { place: Place::Task(_), problem: DataProblem::OneClass { label: -1.0, samples: COUNT } },
            ["task `far`", "all 6 labels are -1", "expected both +1 and -1"]),
        fault!("one class that counts", changed(|setup| {
                setup.tasks[1].weights = Some(vec![1.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
            }) =>
            Error::Data { place: Place::Task(_), problem: DataProblem::OneClass { label: -1.0, .. } },
            ["task `far`", "labels are -1", "expected both +1 and -1"]),
        fault!("a label 0", changed(|setup| {
                setup.tasks[1].targets = Targets::Labels(vec![-1.0, 1.0, 0.0, 1.0, 1.0, -1.0]);
            }) =>
            Error::Data { place: Place::TaskRow { row: 2, .. }, problem: DataProblem::Label(0.0) },
            ["task `far`", "sample 2", "the label is 0", "expected +1 or -1"]),
        fault!("a label 2", changed(|setup| {
                setup.tasks[0].targets = Targets::Labels(vec![1.0, 2.0, 1.0, 2.0, 1.0, 2.0]);
            }) =>
            Error::Data { place: Place::TaskRow { row: 1, .. }, problem: DataProblem::Label(2.0) },
            ["task `near`", "sample 1", "the label is 2", "expected +1 or -1"]),
        fault!("a label NaN", changed(|setup| {
                setup.tasks[0].targets = Targets::Labels(vec![1.0, -1.0, 1.0, f64::NAN, 1.0, -1.0]);
            }) =>
            Error::Data { place: Place::TaskRow { row: 3, .. }, problem: DataProblem::NotFinite(_) },
            ["task `near`", "sample 3", "NaN", "expected a finite number"]),
        fault!("a value ∞", broken(|| Setup::regression(MachineSpec::krr(1.0)), |setup| {
                setup.tasks[0].targets = Targets::Values(vec![1.0, 2.0, 3.0, 4.0, f64::INFINITY, 6.0]);
            }) =>
            Error::Data { place: Place::TaskRow { row: 4, .. }, problem: DataProblem::NotFinite(_) },
            ["task `near`", "sample 4", "inf", "expected a finite number"]),
        fault!("labels missing", changed(|setup| {
                setup.tasks[0].targets = Targets::Labels(vec![1.0, -1.0]);
            }) =>
            Error::Data { place: Place::Task(_), problem: DataProblem::Length { found: 2, expected: COUNT, .. } },
            ["task `near`", "number of targets: 2", "expected 6"]),
        fault!("labels missing on some rows", changed(|setup| {
                setup.tasks[0].rows = View::of(vec![0, 3, 4]);
                setup.tasks[0].targets = Targets::Labels(vec![1.0, -1.0]);
            }) =>
            Error::Data { place: Place::Task(_), problem: DataProblem::Length { found: 2, expected: 3, .. } },
            ["task `near`", "number of targets: 2", "expected 3"]),
        fault!("a row outside", changed(|setup| {
                setup.tasks[0].rows = View::of(vec![0, 6]);
                setup.tasks[0].targets = Targets::Labels(vec![1.0, -1.0]);
            }) =>
            Error::Data { place: Place::Task(_), problem: DataProblem::RowIndex { index: 6, samples: COUNT } },
            ["task `near`", "row index 6", "6 rows"]),
        fault!("a row twice", changed(|setup| {
                setup.tasks[0].rows = View::of(vec![0, 3, 0]);
                setup.tasks[0].targets = Targets::Labels(vec![1.0, -1.0, 1.0]);
            }) =>
            Error::Data { place: Place::Task(_), problem: DataProblem::RowTwice(0) },
            ["task `near`", "row index 0", "twice"]),
        fault!("a sample set outside", changed(|setup| setup.tasks[1].samples = 3) =>
            Error::Data { place: Place::Task(_), problem: DataProblem::Length { found: 3, expected: 1, .. } },
            ["task `far`", "sample set", "3"]),
    ]);
}

#[test]
fn sample_weights_that_mean_nothing_are_refused() {
    let weighted =
        |weights: Vec<f64>| changed(move |setup| setup.tasks[0].weights = Some(weights.clone()));
    let with_weight = move |value: f64| weighted(vec![1.0, 1.0, value, 1.0, 1.0, 1.0]);
    let on_machine = |setup: fn() -> Setup, weight: f64| {
        broken(setup, move |setup| {
            let mut weights = vec![1.0; COUNT];
            weights[4] = weight;
            setup.tasks[1].weights = Some(weights);
        })
    };
    refused(vec![
        fault!("too few", weighted(vec![1.0, 1.0]) =>
            Error::Data { place: Place::Task(_), problem: DataProblem::Length { found: 2, expected: COUNT, .. } },
            ["task `near`", "number of sample weights: 2", "expected 6"]),
        fault!("below 0", with_weight(-0.5) =>
            Error::Data { place: Place::TaskRow { row: 2, .. }, problem: DataProblem::Weight(-0.5) },
            ["task `near`", "sample 2", "weight is -0.5", "expected a finite number ≥ 0"]),
        fault!("NaN", with_weight(f64::NAN) =>
            Error::Data { place: Place::TaskRow { row: 2, .. }, problem: DataProblem::Weight(_) },
            ["task `near`", "sample 2", "weight is NaN", "expected a finite number ≥ 0"]),
        fault!("∞", with_weight(f64::INFINITY) =>
            Error::Data { place: Place::TaskRow { row: 2, .. }, problem: DataProblem::Weight(_) },
            ["task `near`", "sample 2", "weight is inf", "expected a finite number ≥ 0"]),
        fault!("all 0", weighted(vec![0.0; COUNT]) =>
            Error::Data { place: Place::Task(_), problem: DataProblem::Weight(0.0) },
            ["task `near`", "weight is 0", "positive sum"]),
        fault!("0 with ridge regression", on_machine(|| Setup::regression(MachineSpec::krr(1.0)), 0.0) =>
            Error::Data { place: Place::TaskRow { row: 4, .. }, problem: DataProblem::ZeroWeight("krr") },
            ["task `far`", "sample 4", "weight is 0", "> 0", "`krr`", "leave the sample out"]),
        fault!("below what SVDD needs", broken(|| Setup::unlabelled(MachineSpec::svdd(0.5)), |setup| {
            setup.tasks[1].weights = Some(vec![0.1; COUNT]);
        }) =>
            Error::Data { place: Place::Task(_), problem: DataProblem::BoundTooSmall { samples: COUNT, .. } },
            ["task `far`", "C = 0.5", "total weight", "raise C"]),
    ]);
}

#[test]
fn targets_of_the_wrong_kind_are_refused() {
    let machine = |machine: MachineSpec| changed(move |setup| setup.spec.machine = machine.clone());
    refused(vec![
        fault!("labels to regress on", machine(MachineSpec::krr(1.0)) =>
            Error::Data { place: Place::Task(_), problem: DataProblem::Targets { machine: "krr", .. } },
            ["task `near`", "`krr` needs real values", "found ±1 labels"]),
        fault!("labels for a tube", machine(MachineSpec::svr(1.0, 0.1)) =>
            Error::Data { place: Place::Task(_), problem: DataProblem::Targets { machine: "svr", .. } },
            ["task `near`", "`svr` needs real values", "found ±1 labels"]),
        fault!("labels for one class", machine(MachineSpec::one_class(0.5)) =>
            Error::Data { place: Place::Task(_), problem: DataProblem::Targets { machine: "ocsvm", .. } },
            ["task `near`", "`ocsvm` needs no targets", "found ±1 labels"]),
        fault!("values to classify", broken(|| Setup::regression(MachineSpec::svc(1.0)), |_| {}) =>
            Error::Data { place: Place::Task(_), problem: DataProblem::Targets { machine: "svc", .. } },
            ["task `near`", "`svc` needs ±1 labels", "found real values"]),
        fault!("nothing to classify", broken(|| Setup::unlabelled(MachineSpec::svc(1.0)), |_| {}) =>
            Error::Data { place: Place::Task(_), problem: DataProblem::Targets { machine: "svc", .. } },
            ["task `near`", "`svc` needs ±1 labels", "found no targets"]),
    ]);
}

/// A machine with one parameter, on a problem that fits it.
fn machine_fault(
    name: &'static str,
    expected: &str,
    value: f64,
    is_expected: fn(&Error) -> bool,
    setup: impl Fn(f64) -> Setup + 'static,
) -> Fault {
    Fault {
        name: format!("{name} = {value}"),
        attempt: Box::new(move || setup(value).fit()),
        is_expected,
        words: vec![
            format!("parameter `{name}` is {value}"),
            format!("expected {expected}"),
        ],
    }
}

#[test]
fn machine_parameters_out_of_range_are_refused() {
    let mut faults = Vec::new();
    let is_c = |error: &Error| matches!(error, Error::Param { name: "C", .. });
    for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let positive = "a finite number > 0";
        faults.push(machine_fault("C", positive, value, is_c, |c| {
            let mut setup = Setup::valid();
            setup.spec.machine = MachineSpec::svc(c);
            setup
        }));
        faults.push(machine_fault("C", positive, value, is_c, |c| {
            Setup::regression(MachineSpec::svr(c, 0.1))
        }));
        faults.push(machine_fault("C", positive, value, is_c, |c| {
            Setup::unlabelled(MachineSpec::svdd(c))
        }));
        let is_lambda = |error: &Error| matches!(error, Error::Param { name: "lambda", .. });
        faults.push(machine_fault(
            "lambda",
            positive,
            value,
            is_lambda,
            |lambda| Setup::regression(MachineSpec::krr(lambda)),
        ));
        for name in ["positive_weight", "negative_weight"] {
            let is_weight = |error: &Error| {
                matches!(
                    error,
                    Error::Param {
                        name: "positive_weight" | "negative_weight",
                        ..
                    }
                )
            };
            faults.push(machine_fault(
                name,
                positive,
                value,
                is_weight,
                move |weight| {
                    let mut setup = Setup::valid();
                    let of = |class: &str| if name == class { weight } else { 1.0 };
                    setup.spec.machine = MachineSpec::weighted_svc(
                        1.0,
                        of("positive_weight"),
                        of("negative_weight"),
                    );
                    setup
                },
            ));
        }
    }
    for value in [0.0, -0.5, 1.1, f64::NAN, f64::INFINITY] {
        let is_nu = |error: &Error| matches!(error, Error::Param { name: "nu", .. });
        faults.push(machine_fault(
            "nu",
            "a number in (0, 1]",
            value,
            is_nu,
            |nu| Setup::unlabelled(MachineSpec::one_class(nu)),
        ));
    }
    for value in [-0.1, f64::NAN, f64::INFINITY] {
        let is_epsilon = |error: &Error| {
            matches!(
                error,
                Error::Param {
                    name: "epsilon",
                    ..
                }
            )
        };
        faults.push(machine_fault(
            "epsilon",
            "a finite number ≥ 0",
            value,
            is_epsilon,
            |epsilon| Setup::regression(MachineSpec::svr(1.0, epsilon)),
        ));
    }
    faults.push(fault!(
        "C below 1/n", broken(|| Setup::unlabelled(MachineSpec::svdd(0.2)), |setup| {
            setup.tasks[1].rows = View::of(vec![0, 1, 2, 4]);
        }) =>
        Error::Data { place: Place::Task(_), problem: DataProblem::BoundTooSmall { samples: 4, .. } },
        ["task `far`", "C = 0.2", "below 0.25", "total weight", "4 samples", "raise C to at least 0.25"]
    ));
    refused(faults);
}

#[test]
fn svdd_with_a_set_that_contains_zero_is_refused_with_the_reason() {
    let pair = |sharing: SharingSpec| {
        broken(
            || Setup::unlabelled(MachineSpec::svdd(0.5)),
            move |setup| setup.spec.sharing = sharing.clone(),
        )
    };
    let faults = [
        SharingSpec::common(1.0, 1.0),
        SharingSpec::independent(2.0, 1.0),
        SharingSpec::group(2.0, 1.0, 1.0),
        SharingSpec::pscs(2.0, 1.0, 1.0),
        SharingSpec::prior_ball(None, 2.0),
        SharingSpec::fixed(vec![0.0, 0.0]),
    ]
    .map(|sharing| {
        let name = sharing.name();
        fault!(name, pair(sharing) => Error::Pair { .. },
            ["machine `svdd`", format!("sharing `{name}`"), "θ = 0", "radius zero", "`simplex`", "`tang`"])
    });
    refused(faults.into());
    // A ball around weights that does not reach down to 0 has an answer.
    let mut setup = Setup::unlabelled(MachineSpec::svdd(0.5));
    setup.spec.sharing = SharingSpec::prior_ball(Some(vec![1.0, 1.0]), 0.5);
    assert_eq!(setup.fit().unwrap().outcome().status, Status::Converged);
}

#[test]
fn sharing_parameters_out_of_range_are_refused() {
    let mut faults = Vec::new();
    let mut param = |label: String, sharing: SharingSpec, words: [String; 2]| {
        faults.push(Fault {
            name: label,
            attempt: Box::new(with_sharing(sharing)),
            is_expected: |error| matches!(error, Error::Param { .. }),
            words: words.into(),
        });
    };
    let message = |name: &str, value: &str, expected: &str| {
        [
            format!("parameter `{name}` is {value}"),
            format!("expected {expected}"),
        ]
    };
    for value in [0.99, 0.0, -2.0, f64::NAN, f64::INFINITY] {
        let words = |name| message(name, &value.to_string(), "a finite number ≥ 1");
        let label = |name: &str| format!("{name} = {value}");
        param(
            label("p of common"),
            SharingSpec::common(value, 1.0),
            words("p"),
        );
        param(
            label("p of independent"),
            SharingSpec::independent(value, 1.0),
            words("p"),
        );
        param(
            label("p of group"),
            SharingSpec::group(value, 1.0, 1.0),
            words("p"),
        );
        param(
            label("q of group"),
            SharingSpec::group(1.0, value, 1.0),
            words("q"),
        );
        param(
            label("p of pscs"),
            SharingSpec::pscs(value, 1.0, 1.0),
            words("p"),
        );
        param(
            label("q of pscs"),
            SharingSpec::pscs(1.0, value, 1.0),
            words("q"),
        );
    }
    for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let words = |name| message(name, &value.to_string(), "a finite number > 0");
        let label = |name: &str| format!("{name} = {value}");
        let radius = value;
        param(
            label("radius of common"),
            SharingSpec::common(1.0, radius),
            words("radius"),
        );
        param(
            label("radius of independent"),
            SharingSpec::independent(1.0, radius),
            words("radius"),
        );
        param(
            label("radius of group"),
            SharingSpec::group(1.0, 1.0, radius),
            words("radius"),
        );
        param(
            label("radius of pscs"),
            SharingSpec::pscs(1.0, 1.0, radius),
            words("radius"),
        );
        param(
            label("radius of prior-ball"),
            SharingSpec::prior_ball(None, radius),
            words("radius"),
        );
        param(
            label("upper of box-simplex"),
            SharingSpec::box_simplex(value),
            words("upper"),
        );
        let terms = vec![TermSpec::Independent(SetSpec::Simplex { total: value })];
        param(
            label("total of a simplex"),
            SharingSpec::sum(terms),
            words("total"),
        );
    }
    for beta in [-0.1, f64::NAN, f64::INFINITY] {
        let words = message("beta", &beta.to_string(), "a finite number ≥ 0");
        param(format!("beta = {beta}"), SharingSpec::tang(beta), words);
    }
    param(
        "upper too small".to_string(),
        SharingSpec::box_simplex(0.4),
        message("upper", "0.4", "at least total / M = 0.5"),
    );
    param(
        "a prior too long".to_string(),
        SharingSpec::prior_ball(Some(vec![0.5; 3]), 1.0),
        message("prior", "3 weights", "2 weights, one per kernel"),
    );
    param(
        "a prior below 0".to_string(),
        SharingSpec::prior_ball(Some(vec![0.5, -0.5]), 1.0),
        message("prior", "-0.5", "finite weights ≥ 0"),
    );
    param(
        "weights too few".to_string(),
        SharingSpec::fixed(vec![1.0]),
        message("weights", "1 weights", "2 weights, one per kernel"),
    );
    param(
        "a weight below 0".to_string(),
        SharingSpec::fixed(vec![1.0, -1.0]),
        message("weights", "-1", "finite weights ≥ 0"),
    );
    param(
        "a weight NaN".to_string(),
        SharingSpec::fixed(vec![f64::NAN, 1.0]),
        message("weights", "NaN", "finite weights ≥ 0"),
    );
    param(
        "lp for two tasks".to_string(),
        SharingSpec::lp(1.0, 1.0),
        message(
            "sharing",
            "`lp` with 2 tasks",
            "`common`, `independent`, `group`, `pscs` or `tang`",
        ),
    );
    param(
        "an empty sum".to_string(),
        SharingSpec::sum(Vec::new()),
        message("sharing", "an empty sum", "at least one term"),
    );
    refused(faults);
}

#[test]
fn precomputed_grams_that_are_none_are_refused() {
    let given = |values: Vec<f64>| move || Setup::given(values.clone())?.fit();
    let mut crooked = definite_gram();
    crooked[1] = 0.25;
    let mut hole = definite_gram();
    hole[7] = f64::NAN;
    refused(vec![
        fault!("asymmetric", given(crooked) =>
            Error::Data { place: Place::Gram { .. }, problem: DataProblem::Asymmetric { row: 1, column: 0, .. } },
            ["precomputed kernel `G`", "not symmetric", "entry (1, 0) is 0.5", "entry (0, 1) is 0.25"]),
        fault!("too small", given(vec![1.0; 25]) =>
            Error::Data { place: Place::Gram { .. }, problem: DataProblem::Length { found: 25, expected: 36, .. } },
            ["precomputed kernel `G`", "n × n", "25", "expected 36"]),
        fault!("NaN", given(hole) =>
            Error::Data { place: Place::Gram { .. }, problem: DataProblem::NotFinite(_) },
            ["precomputed kernel `G`", "NaN", "expected a finite number"]),
        fault!("indefinite", given(indefinite_gram()) =>
            Error::Data { place: Place::Gram { .. }, problem: DataProblem::Indefinite { .. } },
            ["`precomputed:name=G`", "not positive semi-definite", "smallest eigenvalue -", "largest", "allow indefinite"]),
        fault!("another name", || {
                let mut setup = Setup::given(definite_gram())?;
                setup.spec.kernels = kernels(&["linear", "precomputed:name=H"]);
                setup.fit()
            } =>
            Error::Data { place: Place::Gram { .. }, problem: DataProblem::MissingGram(_) },
            ["precomputed kernel `H`", "no Gram matrix of this name", "given: G"]),
        fault!("none given", changed(|setup| setup.spec.kernels = kernels(&["precomputed:name=H"])) =>
            Error::Data { place: Place::Gram { .. }, problem: DataProblem::MissingGram(_) },
            ["precomputed kernel `H`", "no Gram matrix of this name", "given: none"]),
        fault!("no samples", || Samples::from_grams(0, Vec::new()).map(|_| unreachable!()) =>
            Error::Data { place: Place::Samples(0), problem: DataProblem::Empty(_) },
            ["no rows", "expected at least one"]),
        fault!("a sigmoid kernel that is indefinite", changed(|setup| {
                setup.spec.kernels = kernels(&["linear", "sigmoid:gamma=2,coef0=-1"]);
            }) =>
            Error::Data { place: Place::Gram { .. }, problem: DataProblem::Indefinite { .. } },
            ["`sigmoid:gamma=2,coef0=-1`", "not positive semi-definite", "smallest eigenvalue -", "allow indefinite"]),
    ]);
}

/// Normalised, its first row would be zeros, and the rest the identity.
#[test]
fn a_negative_diagonal_is_not_normalised_away() {
    let mut values = vec![0.0; COUNT * COUNT];
    for row in 0..COUNT {
        values[row * (COUNT + 1)] = if row == 0 { -1.0 } else { 1.0 };
    }
    for normalization in [Normalization::Unit, Normalization::None] {
        let mut setup = Setup::given(values.clone()).unwrap();
        setup.spec.normalize = normalization;
        let error = setup.fit().unwrap_err().to_string();
        assert!(error.contains("smallest eigenvalue -1"), "{error}");
    }
}

#[test]
fn an_indefinite_gram_is_accepted_where_it_is_allowed_and_the_answer_is_not_called_certified() {
    let mut setup = Setup::given(indefinite_gram()).unwrap();
    setup.preparation.definiteness = Definiteness::AllowIndefinite;
    let model = setup.fit().unwrap();
    assert_eq!(model.outcome().status, Status::ConvergedUncertified);
    assert!(model.weights().is_finite());

    let mut setup = Setup::valid();
    setup.spec.kernels = kernels(&["linear", "sigmoid:gamma=2,coef0=-1"]);
    setup.preparation.definiteness = Definiteness::AllowIndefinite;
    let model = setup.fit().unwrap();
    assert_eq!(model.outcome().status, Status::ConvergedUncertified);
    let decisions = model.decision("near", Rows::new(&VALUES, COUNT, 2).unwrap());
    assert!(decisions.unwrap().iter().all(|value| value.is_finite()));
}

#[test]
fn definite_grams_stay_certified_where_indefinite_ones_are_allowed() {
    let mut setup = Setup::given(definite_gram()).unwrap();
    setup.preparation.definiteness = Definiteness::AllowIndefinite;
    assert_eq!(setup.fit().unwrap().outcome().status, Status::Converged);
}

#[test]
fn the_callers_word_about_definiteness_is_taken() {
    let mut setup = Setup::given(indefinite_gram()).unwrap();
    setup.preparation.definiteness = Definiteness::Assume;
    let model = setup.fit().unwrap();
    assert!(model.weights().is_finite());
    assert!(model.tasks().iter().all(|task| task.offset.is_finite()));
}

#[test]
fn kernels_that_do_not_fit_the_columns_are_refused() {
    let kernel = |spec: &'static str| changed(move |setup| setup.spec.kernels = kernels(&[spec]));
    refused(vec![
        fault!("no kernels", changed(|setup| setup.spec.kernels.clear()) =>
            Error::Param { name: "kernels", .. },
            ["parameter `kernels`", "empty list", "at least one kernel"]),
        fault!("a column that is not there", kernel("linear@widht") =>
            Error::Data { problem: DataProblem::Column { .. }, .. },
            ["no column `widht`", "2 columns, `length` to `width`", "did you mean `width`?"]),
        fault!("the end of a range that is not there", kernel("rbf:gamma=1@length..wide") =>
            Error::Data { problem: DataProblem::Column { .. }, .. },
            ["no column `wide`", "did you mean `width`?"]),
        fault!("a range the wrong way round", kernel("linear@width..length") =>
            Error::Data { problem: DataProblem::Column { .. }, .. },
            ["`width..length`", "2 columns, `length` to `width`"]),
        fault!("a position that is not there", kernel("linear@#2") =>
            Error::Data { problem: DataProblem::Column { .. }, .. },
            ["number 2", "2 columns"]),
        fault!("no columns at all", changed(|setup| {
                setup.spec.kernels = vec![KernelView::new("mine", Linear).on(Columns::Indices(Vec::new()))];
            }) =>
            Error::Data { problem: DataProblem::Empty(_), .. },
            ["no columns", "expected at least one"]),
        fault!("values below 0 for chi2", changed(|setup| {
                let mut values = VALUES.to_vec();
                values[5] = -0.3;
                setup.samples = vec![Samples::with_columns(values, COUNT, columns()).unwrap()];
                setup.spec.kernels = kernels(&["linear", "chi2:gamma=1"]);
            }) =>
            Error::Data { place: Place::Cell { row: 2, .. }, problem: DataProblem::Negative { .. } },
            ["row 2", "column `width`", "-0.3", "expected a number ≥ 0", "`chi2`"]),
        fault!("values below 0 in the second set", changed(|setup| {
                let mut values = VALUES.to_vec();
                values[0] = -0.3;
                setup.samples.push(Samples::with_columns(values, COUNT, columns()).unwrap());
                setup.tasks[1].samples = 1;
                setup.spec.kernels = kernels(&["intersection"]);
            }) =>
            Error::Data { place: Place::Cell { samples: 1, row: 0, .. }, problem: DataProblem::Negative { .. } },
            ["sample set 1", "row 0", "column `length`", "-0.3", "expected a number ≥ 0"]),
    ]);
    // Values below 0 in a column that the kernel does not see are none of its business.
    let mut setup = Setup::valid();
    let mut values = VALUES.to_vec();
    values[5] = -0.3;
    setup.samples = vec![Samples::with_columns(values, COUNT, columns()).unwrap()];
    setup.spec.kernels = kernels(&["linear", "chi2:gamma=1@length"]);
    assert_eq!(setup.fit().unwrap().outcome().status, Status::Converged);
}

#[test]
fn more_memory_than_allowed_is_refused_with_both_figures() {
    let setup = Setup::valid();
    let problem = Problem::new(setup.spec, setup.samples, setup.tasks).unwrap();
    let needed = |storage| {
        let preparation = Preparation::default();
        problem.memory_needed(storage, &preparation).unwrap()
    };
    // A base for each of the two kernels, or a matrix.
    let needed = needed(Storage::Kept).min(needed(Storage::Mapped));
    // Two Gram matrices and a combined one, of 6 × 6 numbers, at least.
    assert!(needed >= 3 * 36 * 8);
    let prepare = |memory_limit| {
        problem.prepare(&Preparation {
            ledger: Ledger::new(memory_limit),
            pool: Some(Pool::new(1).unwrap()),
            ..Preparation::default()
        })
    };
    let error = prepare(needed - 1).unwrap_err();
    assert!(
        matches!(error, Error::Memory { needed: found, limit, .. } if found == needed && limit == needed - 1),
        "{error:?}"
    );
    let message = error.to_string();
    let figures = [needed, needed - 1].map(mtmkl::error::human_bytes);
    for word in figures
        .iter()
        .map(String::as_str)
        .chain(["raise the memory limit"])
    {
        assert!(message.contains(word), "{message}");
    }
    let prepared = prepare(needed).unwrap();
    assert!(prepared.fit(&mut Fitting::default()).is_ok());
}

#[test]
fn limits_of_a_run_out_of_range_are_refused() {
    let mut faults = vec![fault!(
        "no passes", changed(|setup| setup.run.max_passes = 0) =>
        Error::Param { name: "max_passes", .. }, ["`max_passes` is 0", "at least 1"]
    )];
    for tolerance in [0.0, -1e-4, f64::NAN, f64::INFINITY] {
        faults.push(fault!(
            format!("tolerance {tolerance}"), changed(move |setup| setup.run.tolerance = tolerance) =>
            Error::Param { name: "tolerance", .. },
            [format!("`tolerance` is {tolerance}"), "a finite number > 0"]
        ));
    }
    refused(faults);
}

#[test]
fn parameters_of_epf_out_of_range_are_refused() {
    let mut faults = Vec::new();
    let mut param = |name: &str, value: f64, expected: &str, set: fn(&mut Epf, f64)| {
        faults.push(Fault {
            name: format!("{name} = {value}"),
            attempt: Box::new(changed(move |setup| {
                let mut epf = Epf::default();
                set(&mut epf, value);
                setup.spec.solver = SolverSpec::Epf(epf);
            })),
            is_expected: |error| matches!(error, Error::Param { .. }),
            words: vec![
                format!("parameter `{name}` is {value}"),
                expected.to_string(),
            ],
        });
    };
    for value in [1.0, 0.5, f64::NAN, f64::INFINITY] {
        param("nu", value, "expected a finite number > 1", |epf, value| {
            epf.nu = value;
        });
    }
    for value in [-0.1, f64::NAN, f64::INFINITY] {
        param(
            "eta",
            value,
            "expected a finite number ≥ 0",
            |epf, value| epf.eta = value,
        );
    }
    for value in [0.0, 1.0, -1.0, f64::NAN] {
        let expected = "expected a number in (0, 1)";
        param("sigma", value, expected, |epf, value| epf.sigma = value);
        param("backtrack", value, expected, |epf, value| {
            epf.backtrack = value;
        });
    }
    refused(faults);
}

#[test]
fn new_samples_that_do_not_fit_the_model_are_refused() {
    let predict = |task: &'static str, values: &'static [f64], rows: usize, columns: usize| {
        move || {
            let model = Setup::valid().fit()?;
            model.predict(task, Rows::new(values, rows, columns)?)?;
            Ok(model)
        }
    };
    refused(vec![
        fault!("an unknown task", predict("fra", &[0.5, 0.5], 1, 2) =>
            Error::Data { place: Place::Task(_), problem: DataProblem::UnknownTask { .. } },
            ["task `fra`", "no such task", "near, far", "common space"]),
        fault!("a column too many", predict("far", &[0.5, 0.5, 0.5], 1, 3) =>
            Error::Data { problem: DataProblem::Length { found: 3, expected: 2, .. }, .. },
            ["columns of the new samples: 3", "expected 2"]),
        fault!("a column too few", predict("far", &[0.5, 0.5, 0.5], 3, 1) =>
            Error::Data { problem: DataProblem::Length { found: 1, expected: 2, .. }, .. },
            ["columns of the new samples: 1", "expected 2"]),
        fault!("no columns", predict("far", &[], 3, 0) =>
            Error::Data { problem: DataProblem::Length { found: 0, expected: 2, .. }, .. },
            ["columns of the new samples: 0", "expected 2"]),
        fault!("NaN", predict("far", &[0.5, 0.5, 0.5, f64::NAN], 2, 2) =>
            Error::Data { place: Place::Cell { row: 1, .. }, problem: DataProblem::NotFinite(_) },
            ["row 1", "column `width`", "NaN", "expected a finite number"]),
        fault!("∞", predict("far", &[f64::INFINITY, 0.5], 1, 2) =>
            Error::Data { place: Place::Cell { row: 0, .. }, problem: DataProblem::NotFinite(_) },
            ["row 0", "column `length`", "inf", "expected a finite number"]),
        fault!("values below 0 for chi2", || {
                let mut setup = Setup::valid();
                setup.spec.kernels = kernels(&["linear", "chi2:gamma=1"]);
                let model = setup.fit()?;
                model.predict("far", Rows::new(&[0.5, 0.5, 0.5, -2.0], 2, 2)?)?;
                Ok(model)
            } =>
            Error::Data { place: Place::Cell { row: 1, .. }, problem: DataProblem::Negative { .. } },
            ["row 1", "column `width`", "-2", "expected a number ≥ 0", "`chi2`"]),
        fault!("values too large for the kernel", predict("far", &[1e200, 0.5], 1, 2) =>
            Error::Data { problem: DataProblem::Overflow(_), .. },
            ["too large", "scale the columns"]),
        fault!("a table with a hole", predict("far", &[0.5, 0.5, 0.5], 2, 2) =>
            Error::Data { problem: DataProblem::Length { found: 3, expected: 4, .. }, .. },
            ["values of a table: 3", "expected 4"]),
    ]);
}

#[test]
fn an_unknown_task_without_a_common_part_gets_no_false_hope() {
    let mut setup = Setup::valid();
    setup.spec.sharing = SharingSpec::independent(1.0, 1.0);
    let model = setup.fit().unwrap();
    let rows = Rows::new(&VALUES, COUNT, 2).unwrap();
    let message = model.decision("new", rows).unwrap_err().to_string();
    for word in ["task `new`", "near, far", "no common part"] {
        assert!(message.contains(word), "{message}");
    }
}

/// Kernel values of new samples as `predict` wants them, with one of them broken.
#[test]
fn cross_grams_that_do_not_fit_the_model_are_refused() {
    // Not of unit diagonal, so that normalising needs k(x, x) of the new samples.
    let doubled: Vec<f64> = definite_gram().iter().map(|value| 2.0 * value).collect();
    let doubled = Arc::new(doubled);
    let cross = [0.5_f64; 2 * COUNT];
    let own = [2.0, 2.0];
    let predict = |change: fn(&mut CrossGram<'_>), count: usize| {
        let doubled = Arc::clone(&doubled);
        move || {
            let mut setup = Setup::given(doubled.to_vec())?;
            setup.spec.kernels = kernels(&["precomputed:name=G"]);
            let model = setup.fit()?;
            let mut gram = CrossGram {
                name: "G",
                values: &cross,
                own: Some(&own),
            };
            change(&mut gram);
            let input = Input {
                count,
                rows: None,
                grams: &[gram],
                origin: None,
            };
            model.predict("far", input)?;
            Ok(model)
        }
    };
    assert!(predict(|_| {}, 2)().is_ok());
    refused(vec![
        fault!("another name", predict(|gram| gram.name = "H", 2) =>
            Error::Data { place: Place::Gram { .. }, problem: DataProblem::MissingGram(_) },
            ["precomputed kernel `G`", "no Gram matrix of this name", "given: H"]),
        fault!("too few values", predict(|gram| gram.values = &gram.values[..11], 2) =>
            Error::Data { place: Place::Gram { .. }, problem: DataProblem::Length { found: 11, expected: 12, .. } },
            ["precomputed kernel `G`", "n_new × n_train", "11", "expected 12"]),
        fault!("more samples than values", predict(|_| {}, 3) =>
            Error::Data { place: Place::Gram { .. }, problem: DataProblem::Length { found: 12, expected: 18, .. } },
            ["precomputed kernel `G`", "n_new × n_train", "12", "expected 18"]),
        fault!("no k(x, x)", predict(|gram| gram.own = None, 2) =>
            Error::Data { place: Place::Gram { .. }, problem: DataProblem::OwnMissing },
            ["precomputed kernel `G`", "k(x, x) of the new samples is needed"]),
        fault!("too few k(x, x)", predict(|gram| gram.own = Some(&[2.0]), 2) =>
            Error::Data { place: Place::Gram { .. }, problem: DataProblem::Length { found: 1, expected: 2, .. } },
            ["precomputed kernel `G`", "k(x, x): 1", "expected 2"]),
        fault!("NaN", predict(|gram| gram.values = &[f64::NAN; 12], 2) =>
            Error::Data { place: Place::Gram { .. }, problem: DataProblem::NotFinite(_) },
            ["precomputed kernel `G`", "NaN", "expected a finite number"]),
        fault!("k(x, x) NaN", predict(|gram| gram.own = Some(&[2.0, f64::NAN]), 2) =>
            Error::Data { place: Place::Gram { .. }, problem: DataProblem::NotFinite(_) },
            ["precomputed kernel `G`", "NaN", "expected a finite number"]),
        fault!("rows where kernel values are needed", || {
                let mut setup = Setup::given(definite_gram())?;
                setup.spec.kernels = kernels(&["precomputed:name=G"]);
                let model = setup.fit()?;
                model.predict("far", Rows::new(&VALUES, COUNT, 2)?)?;
                Ok(model)
            } =>
            Error::Data { place: Place::Gram { .. }, problem: DataProblem::MissingGram(_) },
            ["precomputed kernel `G`", "no Gram matrix of this name", "given: none"]),
        fault!("kernel values where rows are needed", || {
                let model = Setup::valid().fit()?;
                model.predict("far", Input { count: 2, rows: None, grams: &[], origin: None, })?;
                Ok(model)
            } =>
            Error::Data { problem: DataProblem::Length { found: 0, expected: 2, .. }, .. },
            ["columns of the new samples: 0", "expected 2"]),
    ]);
}

/// Four samples in the plane, three of them on the unit circle: linear kernel values as a user may give them. The fourth has k(x, x) = 9 and
/// lies beyond the margin, so that no model keeps it.
fn circle() -> (Vec<f64>, Vec<f64>) {
    let sine = 0.75_f64.sqrt();
    let points = vec![-1.0, 0.0, 0.5, sine, 0.5, -sine, 3.0, 0.0];
    let gram = (0..16)
        .map(|at| {
            let (x, z) = (2 * (at / 4), 2 * (at % 4));
            points[x] * points[z] + points[x + 1] * points[z + 1]
        })
        .collect();
    (points, gram)
}

#[test]
fn whether_a_given_kernel_is_normalised_is_one_decision_for_training_and_prediction() {
    let (points, mut gram) = circle();
    // Exactly 1, whatever rounding makes of the sines.
    for i in 0..3 {
        gram[5 * i] = 1.0;
    }
    let labels = Targets::Labels(vec![-1.0, 1.0, 1.0, 1.0]);
    let fit = |samples: Samples, kernel: &str| {
        let sharing = SharingSpec::uniform();
        let spec = ProblemSpec::new(kernels(&[kernel]), MachineSpec::svc(100.0), sharing);
        let task = Task::new("one", labels.clone());
        let problem = Problem::new(spec, vec![samples], vec![task]).unwrap();
        problem.fit(&mut Fitting::default()).unwrap()
    };
    let given = GivenGram {
        name: "G".to_string(),
        values: gram.into(),
    };
    let model = fit(
        Samples::from_grams(4, vec![given]).unwrap(),
        "precomputed:name=G",
    );
    let kept = &model.support_sets()[0];
    assert!(!kept.positions.contains(&3), "the sample beyond the margin");
    assert!(kept.unit_diagonals.is_empty());
    let same = fit(Samples::new(points.clone(), 4, 2).unwrap(), "linear");
    // A new sample of norm 3.
    let new = [2.4, 1.8];
    let cross: Vec<f64> = points
        .chunks_exact(2)
        .map(|row| row[0] * new[0] + row[1] * new[1])
        .collect();
    let decide = |model: &Model, own: Option<&[f64]>| {
        let gram = CrossGram {
            name: "G",
            values: &cross,
            own,
        };
        let input = Input {
            count: 1,
            rows: None,
            grams: &[gram],
            origin: None,
        };
        model.decision("one", input)
    };
    let expected = same
        .decision("one", Rows::new(&new, 1, 2).unwrap())
        .unwrap()[0];
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    for model in [&model, &again] {
        let found = decide(model, Some(&[9.0])).unwrap()[0];
        assert!((found - expected).abs() <= 1e-6, "{found} and {expected}");
        match decide(model, None) {
            Err(Error::Data { problem, .. }) => assert_eq!(problem, DataProblem::OwnMissing),
            other => panic!("three times too large: {other:?}"),
        }
    }
}

#[test]
fn a_given_kernel_of_unit_diagonal_stays_one_in_prediction() {
    let cross = [0.5; 2 * COUNT];
    let decide = |model: &Model, own: Option<&[f64]>| {
        let gram = CrossGram {
            name: "G",
            values: &cross,
            own,
        };
        let input = Input {
            count: 2,
            rows: None,
            grams: &[gram],
            origin: None,
        };
        model.decision("far", input).unwrap()
    };
    for normalize in [true, false] {
        for base in [Setup::valid(), Setup::unlabelled(MachineSpec::svdd(0.5))] {
            let mut setup = Setup::given(definite_gram()).unwrap();
            setup.spec.kernels = kernels(&["precomputed:name=G"]);
            setup.tasks = base.tasks;
            setup.spec.machine = base.spec.machine;
            setup.spec.sharing = base.spec.sharing;
            setup.spec.normalize = normalize.into();
            let model = setup.fit().unwrap();
            assert_eq!(decide(&model, None), decide(&model, Some(&[1.0, 1.0])));
        }
    }
}

#[test]
fn the_sphere_of_svdd_needs_the_samples_own_kernel_values() {
    let doubled = definite_gram().iter().map(|value| 2.0 * value).collect();
    for normalize in [true, false] {
        let mut setup = Setup::given(definite_gram()).unwrap();
        let sphere = Setup::unlabelled(MachineSpec::svdd(0.5));
        setup.samples = Setup::given(Vec::clone(&doubled)).unwrap().samples;
        setup.spec.kernels = kernels(&["precomputed:name=G"]);
        (setup.tasks, setup.spec.machine) = (sphere.tasks, sphere.spec.machine);
        setup.spec.sharing = sphere.spec.sharing;
        setup.spec.normalize = normalize.into();
        let model = setup.fit().unwrap();
        let gram = CrossGram {
            name: "G",
            values: &[0.5; COUNT],
            own: None,
        };
        let input = Input {
            count: 1,
            rows: None,
            grams: &[gram],
            origin: None,
        };
        match model.decision("far", input) {
            Err(Error::Data { problem, .. }) => assert_eq!(problem, DataProblem::OwnMissing),
            other => panic!("{other:?}"),
        }
    }
}
