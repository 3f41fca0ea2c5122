//! Sparse rows: the fits and the predictions of the same rows with all their zeros.
#![allow(clippy::unwrap_used, reason = "a failed test")]

use mtmkl::kernel::{KernelView, parse_kernels};
use mtmkl::machine::{MachineSpec, TargetKind};
use mtmkl::sharing::SharingSpec;
use mtmkl::{
    Error, Fitting, Ledger, Model, Pool, Precision, Preparation, Problem, ProblemSpec, Rows,
    Samples, SparseRows, Status, Storage, Targets, Task,
};
use mtmkl_testkit::generate::Random;

const WIDTH: usize = 60;
const STORAGES: [Storage; 3] = [Storage::Kept, Storage::Mapped, Storage::Streamed];

/// Counts, a tenth of them other than zero; the first row and the last column have none, the second row has one, and the third row is there twice.
fn counts(random: &mut Random, n: usize) -> Vec<f64> {
    let mut rows = vec![0.0; n * WIDTH];
    for (at, value) in rows.iter_mut().enumerate() {
        if random.uniform() < 0.1 && at % WIDTH != WIDTH - 1 {
            *value = 1.0 + (3.0 * random.uniform()).floor();
        }
    }
    rows[..2 * WIDTH].fill(0.0);
    rows[WIDTH + 7] = 2.0;
    let (start, rest) = rows.split_at_mut(3 * WIDTH);
    rest[..WIDTH].copy_from_slice(&start[2 * WIDTH..]);
    rows
}

/// CSR of dense rows, with every ninth zero written out.
fn sparse(rows: &[f64]) -> SparseRows {
    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in rows.chunks_exact(WIDTH) {
        for (column, &value) in (0_u32..).zip(row) {
            if value != 0.0 || column % 9 == 0 {
                columns.push(column);
                values.push(value);
            }
        }
        offsets.push(columns.len());
    }
    SparseRows::new(offsets, columns, values, WIDTH).unwrap()
}

fn kernels(specs: &[&str]) -> Vec<KernelView> {
    let specs = specs.iter();
    specs
        .flat_map(|spec| parse_kernels(spec).unwrap())
        .collect()
}

const SPECS: [&str; 5] = [
    "linear",
    "cosine@f1..f40",
    "poly:degree=2@f30..f60",
    "rbf:sigma=2|4",
    "laplacian:gamma=0.1@f50,f3,f20..f25",
];

fn targets(random: &mut Random, rows: &[f64], kind: TargetKind) -> Targets {
    let mut values = || -> Vec<f64> {
        let rows = rows.chunks_exact(WIDTH);
        rows.map(|row| {
            row[..20].iter().sum::<f64>() - row[20..40].iter().sum::<f64>() + random.normal()
        })
        .collect()
    };
    match kind {
        TargetKind::Labels => {
            let sign = |v: &f64| if *v > 0.0 { 1.0 } else { -1.0 };
            Targets::Labels(values().iter().map(sign).collect())
        }
        TargetKind::Values => Targets::Values(values()),
        TargetKind::Unlabelled => Targets::Unlabelled,
    }
}

/// Two tasks on sets of their own, dense and sparse.
fn problems(
    specs: &[&str],
    machine: &MachineSpec,
    kind: TargetKind,
    sharing: &SharingSpec,
) -> [Problem; 2] {
    let mut random = Random::new(11);
    let sets = [120, 90].map(|n| counts(&mut random, n));
    let tasks: Vec<Task> = (0..2)
        .map(|at| Task::new(format!("t{at}"), targets(&mut random, &sets[at], kind)).on(at))
        .collect();
    [false, true].map(|is_sparse| {
        let samples = sets.iter().map(|rows| {
            if is_sparse {
                Samples::sparse(sparse(rows)).unwrap()
            } else {
                Samples::new(rows.clone(), rows.len() / WIDTH, WIDTH).unwrap()
            }
        });
        let spec = ProblemSpec::new(kernels(specs), machine.clone(), sharing.clone());
        Problem::new(spec, samples.collect(), tasks.clone()).unwrap()
    })
}

fn preparation(storage: Storage) -> Preparation {
    Preparation {
        storage: Some(storage),
        pool: Some(Pool::new(2).unwrap()),
        ledger: Ledger::new(u64::MAX),
        ..Preparation::default()
    }
}

fn fit(problem: &Problem, preparation: &Preparation) -> Model {
    let mut fitting = Fitting {
        tolerance: 1e-6,
        max_passes: 100,
        ..Fitting::default()
    };
    let model = problem.prepare(preparation).unwrap().fit(&mut fitting);
    model.unwrap()
}

/// Both are certified, so that neither optimum is beyond the other's bounds.
fn assert_same(dense: &Model, sparse: &Model, what: &str) {
    for model in [dense, sparse] {
        assert_eq!(model.outcome().status, Status::Converged, "{what}");
    }
    let (dense, sparse) = (dense.outcome(), sparse.outcome());
    let rounding = 1e-9 * dense.objective.abs();
    assert!(sparse.bound <= dense.objective + rounding, "{what}");
    assert!(dense.bound <= sparse.objective + rounding, "{what}");
}

#[test]
fn fits_are_those_of_dense_rows() {
    let machines = [
        (MachineSpec::svc(1.0), TargetKind::Labels),
        (MachineSpec::svr(1.0, 0.1), TargetKind::Values),
        (MachineSpec::krr(0.1), TargetKind::Values),
        (MachineSpec::one_class(0.2), TargetKind::Unlabelled),
        (MachineSpec::svdd(0.1), TargetKind::Unlabelled),
    ];
    for (machine, kind) in machines {
        let sharing = if machine.build().shrinks_kernels() {
            SharingSpec::simplex()
        } else {
            SharingSpec::pscs(1.5, 1.0, 1.0)
        };
        let [dense, sparse] = problems(&SPECS, &machine, kind, &sharing);
        let expected = fit(&dense, &preparation(Storage::Kept));
        for storage in STORAGES {
            if storage == Storage::Streamed && machine.name() == "krr" {
                continue;
            }
            let found = fit(&sparse, &preparation(storage));
            assert_same(&expected, &found, &format!("{machine:?} {storage:?}"));
        }
        let single = Preparation {
            precision: Precision::Single,
            ..preparation(Storage::Kept)
        };
        assert_same(
            &expected,
            &fit(&sparse, &single),
            &format!("{machine:?} single"),
        );
    }
}

#[test]
fn kernels_in_units_of_the_data_are_those_of_dense_rows() {
    let [dense, sparse] = problems(
        &["linear", "rbf@f1..f30", "chi2", "intersection@f2,f1"],
        &MachineSpec::svc(1.0),
        TargetKind::Labels,
        &SharingSpec::common(2.0, 1.0),
    );
    let expected = fit(&dense, &preparation(Storage::Kept));
    assert_same(
        &expected,
        &fit(&sparse, &preparation(Storage::Kept)),
        "units",
    );
}

/// Saved and read again, sparse rows asked with dense ones and the other way round.
#[test]
fn predictions_are_those_of_dense_rows() {
    let mut random = Random::new(5);
    let new = counts(&mut random, 150);
    let (new_dense, new_sparse) = (Rows::new(&new, 150, WIDTH).unwrap(), sparse(&new));
    for specs in [&SPECS[..], &["chi2", "intersection@f3..f9"]] {
        let [_, sparse] = problems(
            specs,
            &MachineSpec::svc(1.0),
            TargetKind::Labels,
            &SharingSpec::common(2.0, 1.0),
        );
        let model = fit(&sparse, &preparation(Storage::Kept));
        let bytes = model.to_bytes().unwrap();
        let read = Model::from_bytes(&bytes).unwrap();
        assert_eq!(read.support_sets(), model.support_sets());
        assert_eq!(read.to_bytes().unwrap(), bytes);
        for task in ["t0", "t1"] {
            let expected = model.decision(task, new_dense).unwrap();
            for found in [
                model.decision(task, &new_sparse).unwrap(),
                read.decision(task, &new_sparse).unwrap(),
                dense_model(&model).decision(task, &new_sparse).unwrap(),
                dense_model(&model).decision(task, new_dense).unwrap(),
            ] {
                for (found, expected) in found.iter().zip(&expected) {
                    assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0));
                }
            }
        }
    }
}

/// The same machines on support rows with all their zeros.
fn dense_model(model: &Model) -> Model {
    let mut pieces = Pieces::of(&model.to_bytes().unwrap());
    for (number, set) in model.support_sets().iter().enumerate() {
        for part in ["offsets", "columns", "values"] {
            pieces
                .tensors
                .retain(|(name, ..)| *name != format!("set.{number}.sparse.{part}"));
        }
        let shape = vec![set.positions.len(), set.columns.len()];
        let rows = set.rows.dense();
        let bytes = rows.iter().flat_map(|value| value.to_le_bytes()).collect();
        pieces
            .tensors
            .push((format!("set.{number}.rows"), "F64", shape, bytes));
    }
    Model::from_bytes(&pieces.bytes()).unwrap()
}

/// A model file in its tensors: name, type, shape, bytes.
struct Pieces {
    metadata: serde_json::Value,
    tensors: Vec<(String, &'static str, Vec<usize>, Vec<u8>)>,
}

impl Pieces {
    fn of(bytes: &[u8]) -> Self {
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap());
        let start = 8 + usize::try_from(length).unwrap();
        let header: serde_json::Value = serde_json::from_slice(&bytes[8..start]).unwrap();
        let mut tensors = Vec::new();
        for (name, place) in header.as_object().unwrap() {
            if name == "__metadata__" {
                continue;
            }
            let number =
                |value: &serde_json::Value| usize::try_from(value.as_u64().unwrap()).unwrap();
            let ends: Vec<usize> = place["data_offsets"]
                .as_array()
                .unwrap()
                .iter()
                .map(number)
                .collect();
            let shape = place["shape"]
                .as_array()
                .unwrap()
                .iter()
                .map(number)
                .collect();
            let kind = match place["dtype"].as_str().unwrap() {
                "F64" => "F64",
                "U64" => "U64",
                _ => "U8",
            };
            let own = bytes[start + ends[0]..start + ends[1]].to_vec();
            tensors.push((name.clone(), kind, shape, own));
        }
        Self {
            metadata: header["__metadata__"].clone(),
            tensors,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut header = serde_json::Map::new();
        header.insert("__metadata__".into(), self.metadata.clone());
        let mut data: Vec<u8> = Vec::new();
        for (name, kind, shape, own) in &self.tensors {
            let ends = [data.len(), data.len() + own.len()];
            let place = serde_json::json!({"dtype": kind, "shape": shape, "data_offsets": ends});
            header.insert(name.clone(), place);
            data.extend(own);
        }
        let header = serde_json::to_vec(&header).unwrap();
        let length = (header.len() as u64).to_le_bytes();
        [&length[..], &header, &data].concat()
    }
}

#[test]
fn broken_sparse_rows_in_a_file_are_refused() {
    let [_, sparse] = problems(
        &["linear"],
        &MachineSpec::svc(1.0),
        TargetKind::Labels,
        &SharingSpec::uniform(),
    );
    let bytes = fit(&sparse, &preparation(Storage::Kept))
        .to_bytes()
        .unwrap();
    assert!(Model::from_bytes(&Pieces::of(&bytes).bytes()).is_ok());
    let with = |part: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut pieces = Pieces::of(&bytes);
        let name = format!("set.0.sparse.{part}");
        let tensor = pieces.tensors.iter_mut().find(|(known, ..)| *known == name);
        let (_, _, shape, own) = tensor.unwrap();
        change(own);
        *shape = vec![own.len() / 8];
        Model::from_bytes(&pieces.bytes())
    };
    let put = |at: usize, number: u64| {
        move |own: &mut Vec<u8>| own[8 * at..8 * at + 8].copy_from_slice(&number.to_le_bytes())
    };
    let refused = [
        with("offsets", &put(0, 1)),
        with("offsets", &put(1, 1 << 40)),
        with("offsets", &put(3, 0)),
        with("offsets", &|own| own.truncate(8)),
        with("offsets", &Vec::clear),
        with("columns", &put(0, WIDTH as u64)),
        with("columns", &put(0, u64::MAX)),
        with("columns", &put(2, 0)),
        with("columns", &|own| own.truncate(own.len() - 8)),
        with("values", &put(0, f64::NAN.to_bits())),
        with("values", &|own| own.truncate(own.len() - 8)),
    ];
    for (number, result) in refused.into_iter().enumerate() {
        assert!(
            matches!(result, Err(Error::Format { .. })),
            "case {number}: {:?}",
            result.err()
        );
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let none = SparseRows::new(vec![0], Vec::new(), Vec::new(), 3).unwrap();
    assert!(
        Samples::sparse(none)
            .unwrap_err()
            .to_string()
            .contains("no rows")
    );
    let rows = SparseRows::new(vec![0, 1], vec![1], vec![-1.0], 3).unwrap();
    assert!(Samples::sparse_with_columns(rows.clone(), vec!["a".into()]).is_err());
    let twice = SparseRows::new(vec![0, 1, 2], vec![1, 2], vec![-1.0, 1.0], 3).unwrap();
    let tasks = vec![Task::new("t", Targets::Labels(vec![1.0, -1.0]))];
    let spec = ProblemSpec::new(
        kernels(&["chi2"]),
        MachineSpec::svc(1.0),
        SharingSpec::uniform(),
    );
    let problem = Problem::new(spec, vec![Samples::sparse(twice).unwrap()], tasks).unwrap();
    let Err(error) = problem.prepare(&preparation(Storage::Kept)) else {
        panic!("χ² takes no negative values");
    };
    assert!(error.to_string().contains("f2"), "{error}");
    let [_, sparse] = problems(
        &["linear"],
        &MachineSpec::svc(1.0),
        TargetKind::Labels,
        &SharingSpec::uniform(),
    );
    let model = fit(&sparse, &preparation(Storage::Kept));
    let error = model.decision("t0", &rows).unwrap_err().to_string();
    assert!(
        error.contains("columns of the new samples: 3, expected 60"),
        "{error}"
    );
}
