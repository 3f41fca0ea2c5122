//! Certificates that were made up, each with one way to have no claim checked by anything, are refused; true ones at the edge of the range of numbers
//! hold.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use mtmkl::kernel::parse_kernels;
use mtmkl::machine::MachineSpec;
use mtmkl::sharing::SharingSpec;
use mtmkl::{Fitting, Model, Normalization, Problem, ProblemSpec, Samples, Targets, Task};
use mtmkl_verify::{Quantity, Verdict, verify};
use serde_json::Value;

/// A problem of one task, and the file of its fit.
struct Fitted {
    samples: Vec<Samples>,
    tasks: Vec<Task>,
    bytes: Vec<u8>,
}

impl Fitted {
    fn new(
        kernels: &[&str],
        machine: MachineSpec,
        sharing: SharingSpec,
        rows: &[f64],
        targets: Targets,
        columns: usize,
    ) -> Self {
        let samples = Samples::new(rows.to_vec(), rows.len() / columns, columns).unwrap();
        let (samples, tasks) = (vec![samples], vec![Task::new("one", targets)]);
        let kernels = kernels
            .iter()
            .flat_map(|kernel| parse_kernels(kernel).unwrap())
            .collect();
        let spec = ProblemSpec {
            normalize: Normalization::None,
            ..ProblemSpec::new(kernels, machine, sharing)
        };
        let problem = Problem::new(spec, samples.clone(), tasks.clone()).unwrap();
        let model = problem.fit(&mut Fitting::default()).unwrap();
        let bytes = model.to_bytes().unwrap();
        Self {
            samples,
            tasks,
            bytes,
        }
    }

    /// With these numbers of tensors in place of its own.
    fn with(&self, changes: &[(&str, usize, f64)]) -> Self {
        let mut bytes = self.bytes.clone();
        for &(name, number, value) in changes {
            let at = self.place(name) + 8 * number;
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        self.of(bytes)
    }

    fn of(&self, bytes: Vec<u8>) -> Self {
        Self {
            samples: self.samples.clone(),
            tasks: self.tasks.clone(),
            bytes,
        }
    }

    fn place(&self, name: &str) -> usize {
        let length = usize::try_from(u64::from_le_bytes(self.bytes[..8].try_into().unwrap()));
        let start = 8 + length.unwrap();
        let header: Value = serde_json::from_slice(&self.bytes[8..start]).unwrap();
        let first = header[name]["data_offsets"][0].as_u64().unwrap();
        start + usize::try_from(first).unwrap()
    }

    fn get(&self, name: &str, number: usize) -> f64 {
        let at = self.place(name) + 8 * number;
        f64::from_le_bytes(self.bytes[at..at + 8].try_into().unwrap())
    }

    fn verdict(&self) -> Verdict {
        let model = Model::from_bytes(&self.bytes).unwrap();
        verify(&model, &self.samples, &self.tasks).unwrap()
    }

    fn holds(&self) {
        let verdict = self.verdict();
        assert!(verdict.holds, "{verdict:#?}");
    }

    /// It does not hold, for each of these.
    fn fails(&self, quantities: &[Quantity]) {
        let verdict = self.verdict();
        assert!(!verdict.holds, "{verdict:#?}");
        for quantity in quantities {
            let mut found = verdict.failures.iter();
            assert!(
                found.any(|failure| failure.quantity == *quantity),
                "{quantity:?}: {verdict:#?}"
            );
        }
    }
}

fn labels(signs: &[i32]) -> Targets {
    Targets::Labels(signs.iter().copied().map(f64::from).collect())
}

#[test]
fn what_is_not_finite_proves_nothing() {
    let rows = [0.0, 0.4, 1.1, 1.3, 2.0, 2.7];
    let signs = labels(&[-1, 1, -1, 1, 1, -1]);
    let (machine, sharing) = (MachineSpec::svc(1.0), SharingSpec::lp(2.0, 1.0));
    let honest = Fitted::new(
        &["rbf:gamma=1", "linear"],
        machine,
        sharing,
        &rows,
        signs,
        1,
    );
    honest.holds();
    for offset in [1e308, -1e308] {
        let far = honest.with(&[("offsets", 0, offset)]);
        far.fails(&[Quantity::Offset, Quantity::Objective, Quantity::Rounding]);
        far.with(&[
            ("outcome", 0, 1e-3),
            ("outcome", 1, 1e-3),
            ("outcome", 2, 0.0),
        ])
        .fails(&[Quantity::Objective]);
    }
    let no_bound = ("outcome", 1, f64::NEG_INFINITY);
    honest.with(&[no_bound]).fails(&[Quantity::Gap]);
    honest
        .with(&[no_bound, ("outcome", 2, f64::INFINITY)])
        .fails(&[Quantity::Status]);
    for objective in [f64::INFINITY, f64::NAN] {
        let all = [("outcome", 0, objective), ("outcome", 2, f64::INFINITY)];
        honest.with(&all).fails(&[Quantity::Gap]);
        honest.with(&all[..1]).fails(&[Quantity::Gap]);
    }
}

/// At ν = 1 all losses are there, and P is flat in b.
#[test]
fn an_offset_far_away_makes_no_objective_true() {
    let rows = [1.0, 2.0, 3.0, 5.0];
    let machine = MachineSpec::one_class(1.0);
    let honest = Fitted::new(
        &["linear"],
        machine,
        SharingSpec::uniform(),
        &rows,
        Targets::Unlabelled,
        1,
    );
    honest.holds();
    for stated in [-20.0, 0.0] {
        for offset in [-1e18, -1e16, -1e13, 1e18] {
            let made_up = [
                ("outcome", 0, stated),
                ("outcome", 1, stated),
                ("outcome", 2, 0.0),
            ];
            let forged = honest.with(&[("offsets", 0, offset)]).with(&made_up);
            forged.fails(&[Quantity::Offset]);
        }
    }
}

/// β may be anything that changes nothing in f: rounding of so large a β allows any objective.
#[test]
fn a_machine_that_cancels_proves_nothing() {
    let rows = [1.0, 1.0, 2.0, -1.0];
    let targets = Targets::Values(vec![1.0, 2.0, 0.5, 3.0]);
    let machine = MachineSpec::krr(1.0);
    let honest = Fitted::new(
        &["linear"],
        machine,
        SharingSpec::uniform(),
        &rows,
        targets,
        1,
    );
    honest.holds();
    let beta = |row: usize| honest.get("task.0.beta", row);
    let large = 2.0_f64.powi(28);
    let change = [
        ("task.0.beta", 0, beta(0) + large),
        ("task.0.beta", 1, beta(1) - large),
    ];
    let forged = honest.with(&change);
    let reached = forged.verdict().objective;
    for share in [0.9, 0.5, 1e-6, 0.0] {
        let stated = reached.found - share * reached.allowance;
        let outcome = [
            ("outcome", 0, stated),
            ("outcome", 1, stated.min(honest.get("outcome", 1))),
        ];
        let forged = forged.with(&outcome);
        let (objective, bound) = (forged.get("outcome", 0), forged.get("outcome", 1));
        let gap = ((objective - bound) / objective).abs();
        forged
            .with(&[("outcome", 2, gap)])
            .fails(&[Quantity::Rounding]);
    }
}

/// The weights of another problem, which are these but for 1e-9 where a kernel is 1e12.
#[test]
fn weights_beside_their_set_are_moved_into_it() {
    let noise = [0.3, -0.8, 1.1, 0.2, -0.5, 0.9, -1.2, 0.4];
    let signs = [1, -1, 1, -1, 1, -1, 1, -1];
    let pairs = noise.iter().zip(signs);
    let rows: Vec<f64> = pairs
        .flat_map(|(&a, y)| [a, 1e6 * (f64::from(y) + 0.1 * a)])
        .collect();
    let sharing = SharingSpec::fixed(vec![1.0, 1e-9]);
    let kernels = ["linear@f1", "linear@f2"];
    let other = Fitted::new(
        &kernels,
        MachineSpec::svc(1.0),
        sharing,
        &rows,
        labels(&signs),
        2,
    );
    other.holds();
    let mut bytes = other.bytes.clone();
    let places: Vec<usize> = (0..bytes.len() - 4)
        .filter(|&at| &bytes[at..at + 4] == b"1e-9")
        .collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at] = b'0';
    }
    other.of(bytes).fails(&[Quantity::Objective]);
}

/// Equal but for the last digits of kernel values: the radius of the sphere is 2 and cannot be seen.
#[test]
fn a_gap_of_nothing_is_not_what_rounding_leaves() {
    let rows = [1e8, 1e8 + 1.0, 1e8 + 2.0, 1e8 + 4.0];
    let (machine, sharing) = (MachineSpec::svdd(1.0), SharingSpec::uniform());
    let fitted = Fitted::new(&["linear"], machine, sharing, &rows, Targets::Unlabelled, 1);
    let outcome = [
        ("outcome", 0, 53.8),
        ("outcome", 1, -18.3),
        ("outcome", 2, 0.0),
    ];
    fitted
        .with(&outcome)
        .fails(&[Quantity::Gap, Quantity::Rounding]);
    // With the gap that these make, all that is left to say is that nothing can be told.
    let gap = (53.8 + 18.3) / 53.8;
    let verdict = fitted
        .with(&outcome[..2])
        .with(&[("outcome", 2, gap)])
        .verdict();
    assert!(
        verdict
            .failures
            .iter()
            .all(|failure| matches!(failure.quantity, Quantity::Rounding | Quantity::Status))
    );
    assert!(!verdict.holds);
    // A sphere of radius 0.
    let (machine, sharing) = (MachineSpec::svdd(1.0), SharingSpec::uniform());
    Fitted::new(
        &["constant"],
        machine,
        sharing,
        &rows,
        Targets::Unlabelled,
        1,
    )
    .holds();
}

#[test]
fn kernels_of_rows_far_apart_are_zero() {
    for (kernel, rows) in [
        ("matern52:length=1e10", vec![0.0, 1e160]),
        ("matern32:length=1e10", vec![0.0, 1e160]),
        ("rbf:gamma=1", vec![0.0, 1e160]),
        ("matern52:length=1e-155", vec![0.0, 1.0, 2.0]),
        ("matern32:length=1e-155", vec![0.0, 1.0, 2.0]),
    ] {
        let signs = labels(&[1, -1, 1][..rows.len()]);
        let (machine, sharing) = (MachineSpec::svc(1.0), SharingSpec::uniform());
        let fitted = Fitted::new(&[kernel], machine, sharing, &rows, signs, 1);
        fitted.holds();
        let verdict = fitted.verdict();
        assert!(
            verdict.objective.allowance < 1e-12,
            "{kernel}: {verdict:#?}"
        );
    }
}
