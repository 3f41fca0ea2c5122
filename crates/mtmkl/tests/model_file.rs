//! Models on disk and in use: what is saved comes back bit for bit, whatever else is in a file is refused without a panic, and a
//! prediction depends on the new sample and the model only.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use std::sync::Arc;

use mtmkl::error::DataProblem;
use mtmkl::kernel::{Base, Kernel, KernelView, parse_kernels};
use mtmkl::machine::MachineSpec;
use mtmkl::sharing::SharingSpec;
use mtmkl::{
    CrossGram, Error, Fitting, GivenGram, Input, Model, Problem, ProblemSpec, Rows, Samples,
    Targets, Task,
};
use mtmkl_testkit::generate::{self, Random};
use serde_json::{Value, json};

const DIMENSION: usize = 3;
fn pscs() -> SharingSpec {
    SharingSpec::pscs(1.5, 1.5, 1.0)
}

fn kernels(specs: &[&str]) -> Vec<KernelView> {
    specs
        .iter()
        .flat_map(|spec| parse_kernels(spec).unwrap())
        .collect()
}

fn fit(spec: ProblemSpec, samples: Vec<Samples>, tasks: Vec<Task>) -> Model {
    Problem::new(spec, samples, tasks)
        .unwrap()
        .fit(&mut Fitting {
            tolerance: 1e-9,
            ..Fitting::default()
        })
        .unwrap()
}

fn targets(machine: &MachineSpec, random: &mut Random, points: &[f64]) -> Targets {
    let n = points.len() / DIMENSION;
    match machine.name() {
        "svc" | "logistic" => Targets::Labels(generate::labels(random, points, n, DIMENSION)),
        "svr" | "krr" => Targets::Values(generate::values(random, points, n, DIMENSION)),
        _ => Targets::Unlabelled,
    }
}

/// Three tasks on two sample sets: the first set is shared, one task sees some of its rows only.
fn trained(kernel_views: Vec<KernelView>, machine: MachineSpec, sharing: SharingSpec) -> Model {
    let mut random = Random::new(1);
    let shared = generate::points(&mut random, 16, DIMENSION);
    let own = generate::points(&mut random, 9, DIMENSION);
    let view: Vec<usize> = (0..16).rev().step_by(2).collect();
    let viewed: Vec<f64> = view
        .iter()
        .flat_map(|&row| shared[row * DIMENSION..(row + 1) * DIMENSION].to_vec())
        .collect();
    let tasks = vec![
        Task::new("all", targets(&machine, &mut random, &shared)),
        Task::new("some", targets(&machine, &mut random, &viewed)).with_rows(view),
        Task::new("own", targets(&machine, &mut random, &own)).on(1),
    ];
    let samples = vec![
        Samples::new(shared, 16, DIMENSION).unwrap(),
        Samples::new(own, 9, DIMENSION).unwrap(),
    ];
    fit(
        ProblemSpec::new(kernel_views, machine, sharing),
        samples,
        tasks,
    )
}

fn all_kernels() -> Vec<KernelView> {
    kernels(&[
        "linear",
        "poly:degree=2,coef0=1",
        "rbf:gamma=0.3|3",
        "laplacian:gamma=0.5@f1,f3",
        "matern32:length=2@#0..#1",
    ])
}

/// One model of each machine and each kind of sharing.
fn models() -> Vec<Model> {
    vec![
        trained(all_kernels(), MachineSpec::svc(2.0), pscs()),
        trained(
            all_kernels(),
            MachineSpec::svr(1.0, 0.1),
            SharingSpec::common(1.0, 1.0),
        ),
        trained(
            all_kernels(),
            MachineSpec::krr(0.3),
            SharingSpec::independent(2.0, 1.0),
        ),
        trained(
            all_kernels(),
            MachineSpec::svdd(0.3),
            SharingSpec::tang(1.0),
        ),
        trained(
            all_kernels(),
            MachineSpec::one_class(0.4),
            SharingSpec::simplex(),
        ),
    ]
}

/// A small model with everything that a file can hold: a given Gram matrix, notes, both parts of θ.
fn small_model() -> Model {
    let mut random = Random::new(2);
    let points = generate::points(&mut random, 5, DIMENSION);
    let gram = generate::gaussian_gram(&points, 5, DIMENSION, 0.7);
    let samples = Samples::new(points, 5, DIMENSION)
        .unwrap()
        .with_gram(GivenGram {
            name: "G".to_string(),
            values: Arc::new(gram.iter().map(|value| 2.0 * value).collect()),
        })
        .unwrap();
    let labels = |flip: f64| Targets::Labels(vec![1.0, -1.0, flip, 1.0, -flip]);
    let spec = ProblemSpec::new(
        kernels(&["linear", "precomputed:name=G", "rbf:gamma=1@f2"]),
        MachineSpec::svc(1.0),
        SharingSpec::pscs(2.0, 2.0, 1.0),
    );
    let tasks = vec![Task::new("a", labels(1.0)), Task::new("b", labels(-1.0))];
    let mut model = fit(spec, vec![samples], tasks);
    model
        .notes_mut()
        .insert("scaling".to_string(), "none".to_string());
    model
}

fn new_rows(count: usize) -> Vec<f64> {
    generate::points(&mut Random::new(77), count, DIMENSION)
}

/// Predictions of every task for the same new samples, of all that the small model may ask for.
fn try_decisions(model: &Model) -> Vec<Result<Vec<f64>, Error>> {
    let rows = new_rows(4);
    let (cross, own) = ([0.5; 4 * 5], [2.0; 4]);
    let gram = CrossGram {
        name: "G",
        values: &cross,
        own: Some(&own),
    };
    let input = Input {
        count: 4,
        rows: Some(Rows::new(&rows, 4, DIMENSION).unwrap()),
        grams: &[gram],
        origin: None,
    };
    let mut all: Vec<_> = model
        .tasks()
        .iter()
        .map(|task| model.decision(&task.name, input))
        .collect();
    all.push(model.decision_of_new_task(input));
    all
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn assert_same(a: &Model, b: &Model) {
    assert_eq!(bits(a.weights().values()), bits(b.weights().values()));
    let part = |grid: Option<&mtmkl::grid::Grid>| grid.map(|grid| bits(grid.values()));
    assert_eq!(part(a.common()), part(b.common()));
    assert_eq!(part(a.specific()), part(b.specific()));
    assert_eq!(a.parts(), b.parts());
    assert_eq!(a.tasks().len(), b.tasks().len());
    for (one, other) in a.tasks().iter().zip(b.tasks()) {
        assert_eq!(bits(&one.beta), bits(&other.beta));
        assert_eq!(one.offset.to_bits(), other.offset.to_bits());
        assert_eq!(one, other);
    }
    assert_eq!(a.support_sets().len(), b.support_sets().len());
    for (one, other) in a.support_sets().iter().zip(b.support_sets()) {
        let dense = [one, other].map(|set| bits(&set.rows.dense()));
        assert_eq!(dense[0], dense[1]);
        assert_eq!(one, other);
    }
    assert_eq!(a.outcome(), b.outcome());
    assert_eq!(a.machine(), b.machine());
    assert_eq!(a.sharing(), b.sharing());
    assert_eq!(a.normalize(), b.normalize());
    assert_eq!(a.notes(), b.notes());
    let names = |model: &Model| {
        model
            .kernels()
            .iter()
            .map(|view| (view.name.clone(), view.spec()))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(a), names(b));
}

#[test]
fn a_model_comes_back_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let rows = new_rows(50);
    let rows = Rows::new(&rows, 50, DIMENSION).unwrap();
    for model in models() {
        model.save(&path).unwrap();
        let loaded = Model::load(&path).unwrap();
        assert_same(&model, &loaded);
        for task in ["all", "some", "own"] {
            let before = model.decision(task, rows).unwrap();
            let after = loaded.decision(task, rows).unwrap();
            assert_eq!(bits(&before), bits(&after));
            assert_eq!(
                model.predict(task, rows).unwrap(),
                loaded.predict(task, rows).unwrap()
            );
        }
    }
}

#[test]
fn a_model_with_everything_comes_back_bit_for_bit() {
    let model = small_model();
    let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_same(&model, &loaded);
    for (before, after) in try_decisions(&model).iter().zip(try_decisions(&loaded)) {
        assert_eq!(bits(before.as_ref().unwrap()), bits(&after.unwrap()));
    }
}

#[test]
fn the_same_model_always_gives_the_same_bytes() {
    for model in models().into_iter().chain([small_model()]) {
        let bytes = model.to_bytes().unwrap();
        assert_eq!(bytes, model.to_bytes().unwrap());
        let again = Model::from_bytes(&bytes).unwrap();
        assert_eq!(bytes, again.to_bytes().unwrap());
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn saving_replaces_the_old_file_and_leaves_nothing_else_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    std::fs::write(&path, "something older and longer".repeat(10_000)).unwrap();
    let model = small_model();
    model.save(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), model.to_bytes().unwrap());
    assert_eq!(names_in(folder.path()), ["model"]);
}

#[cfg(target_os = "linux")]
#[test]
fn the_old_file_stays_whole_when_saving_fails() {
    // Linux takes paths of up to 4,095 bytes: this one is just short enough for a file, and too long for a temporary one beside it.
    const LONGEST: usize = 4095;
    let root = tempfile::tempdir().unwrap();
    let mut folder = root.path().canonicalize().unwrap();
    while folder.as_os_str().len() + 300 < LONGEST {
        folder.push("f".repeat(100));
    }
    std::fs::create_dir_all(&folder).unwrap();
    let longer = LONGEST - folder.as_os_str().len() - "//".len() - 100;
    folder.push("f".repeat(longer));
    std::fs::create_dir(&folder).unwrap();
    let name = "m".repeat(100);
    let path = folder.join(&name);
    assert_eq!(path.as_os_str().len(), LONGEST);
    std::fs::write(&path, "the old model").unwrap();
    let error = small_model().save(&path).unwrap_err();
    assert!(
        matches!(&error, Error::Io { path: place, .. } if *place == path),
        "{error:?}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), b"the old model");
    assert_eq!(names_in(&folder), [name]);
}

#[test]
fn a_folder_in_the_way_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("kept"), "kept").unwrap();
    let error = small_model().save(&path).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error:?}");
    assert!(error.to_string().contains("model"), "{error}");
    assert_eq!(names_in(folder.path()), ["model"]);
    assert_eq!(names_in(&path), ["kept"]);
}

#[test]
fn a_folder_that_is_not_there_is_an_error_that_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing").join("model");
    for error in [
        small_model().save(&path).unwrap_err(),
        Model::load(&path).unwrap_err(),
    ] {
        assert!(
            matches!(&error, Error::Io { path: place, .. } if *place == path),
            "{error:?}"
        );
        assert!(
            error.to_string().contains(&path.display().to_string()),
            "{error}"
        );
    }
    assert!(names_in(folder.path()).is_empty());
}

#[test]
fn several_threads_may_save_to_one_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let model = small_model();
    let expected = model.to_bytes().unwrap();
    let failures: Vec<Error> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    (0..25)
                        .filter_map(|_| model.save(&path).err())
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(failures.is_empty(), "{failures:?}");
    assert_eq!(std::fs::read(&path).unwrap(), expected);
    assert_eq!(names_in(folder.path()), ["model"]);
}

/// A similarity of the user's own.
#[derive(Debug)]
struct Mine;

impl Kernel for Mine {
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

#[test]
fn a_kernel_of_the_users_own_predicts_but_cannot_be_saved() {
    let mut views = kernels(&["linear"]);
    views.push(KernelView::new("mine", Mine));
    let model = trained(views, MachineSpec::svc(1.0), pscs());
    let rows = new_rows(5);
    let rows = Rows::new(&rows, 5, DIMENSION).unwrap();
    assert!(
        model
            .decision("all", rows)
            .unwrap()
            .iter()
            .all(|value| value.is_finite())
    );

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    std::fs::write(&path, "the old model").unwrap();
    let error = model.save(&path).unwrap_err();
    assert!(
        matches!(&error, Error::Kernel { spec, .. } if spec == "mine"),
        "{error:?}"
    );
    let message = error.to_string();
    for word in ["`mine`", "of your own", "cannot be saved"] {
        assert!(message.contains(word), "{message}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), b"the old model");
    assert_eq!(names_in(folder.path()), ["model"]);
}

/// What reading these bytes does: a refusal, or a model that is asked for predictions. Nothing may panic.
fn outcome_of(bytes: &[u8]) -> Result<(), String> {
    let read = catch_unwind(AssertUnwindSafe(|| Model::from_bytes(bytes)));
    match read {
        Err(_) => Err("reading it panicked".to_string()),
        Ok(Err(Error::Format { .. } | Error::Unknown { .. })) => Ok(()),
        Ok(Err(other)) => Err(format!("the wrong error, {other:?}")),
        Ok(Ok(model)) => catch_unwind(AssertUnwindSafe(|| try_decisions(&model)))
            .map(|_| ())
            .map_err(|_| "predicting with it panicked".to_string()),
    }
}

fn assert_no_failures(failures: &[String]) {
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures[..failures.len().min(25)].join("\n")
    );
}

/// Weights, names and certificate by themselves are taken for a model by nobody; with the machines they are what they were.
#[test]
fn a_model_whose_machines_are_elsewhere_is_refused_and_becomes_whole_again() {
    for model in models() {
        let mut weights = model.without_machines();
        let note = (mtmkl::model::ELSEWHERE.to_string(), "yes".to_string());
        weights.notes_mut().extend([note]);
        let bytes = weights.to_bytes().unwrap();
        let error = Model::from_bytes(&bytes).unwrap_err().to_string();
        assert!(error.contains("load the folder"), "{error}");
        let mut again = Model::from_bytes_anyhow(&mtmkl::Registry::default(), &bytes).unwrap();
        assert_eq!(again.weights(), model.weights());
        assert!(again.tasks().iter().all(|task| task.beta.is_empty()));
        again.notes_mut().remove(mtmkl::model::ELSEWHERE);
        let sets = model.support_sets().len();
        let order: Vec<(usize, usize)> = (0..sets).map(|set| (0, set)).collect();
        let with = |order: &[(usize, usize)]| again.with_machines(vec![model.clone()], order);
        let whole = with(&order).unwrap();
        assert_same(&whole, &model);
        assert_eq!(whole.to_bytes().unwrap(), model.to_bytes().unwrap());
        assert!(with(&[]).is_err());
        assert!(with(&[(1, 0)]).is_err());
        if sets > 1 {
            let other: Vec<(usize, usize)> = order.iter().rev().copied().collect();
            assert!(with(&other).is_err());
        }
    }
}

#[test]
fn a_file_cut_short_anywhere_is_refused() {
    let bytes = small_model().to_bytes().unwrap();
    let failures: Vec<String> = (0..bytes.len())
        .filter_map(|length| match Model::from_bytes(&bytes[..length]) {
            Err(Error::Format { .. }) => None,
            other => Some(format!("{length} bytes: {other:?}")),
        })
        .collect();
    assert_no_failures(&failures);
    let longer = [&bytes[..], b"tail"].concat();
    assert!(matches!(
        Model::from_bytes(&longer),
        Err(Error::Format { .. })
    ));
}

#[test]
fn a_flipped_byte_anywhere_is_refused_or_harmless() {
    let bytes = small_model().to_bytes().unwrap();
    let mut failures = Vec::new();
    let mut refused = 0;
    for at in 0..bytes.len() {
        for mask in [0x01, 0x20, 0x80, 0xff] {
            let mut hostile = bytes.clone();
            hostile[at] ^= mask;
            refused += usize::from(Model::from_bytes(&hostile).is_err());
            if let Err(problem) = outcome_of(&hostile) {
                failures.push(format!("byte {at} with {mask:#04x}: {problem}"));
            }
        }
    }
    assert!(refused > 1000, "only {refused} were refused");
    assert_no_failures(&failures);
}

#[test]
fn random_bytes_are_refused() {
    let mut random = Random::new(3);
    let mut failures = Vec::new();
    for _ in 0..2000 {
        let length = random.below(300);
        let mut bytes: Vec<u8> = (0..length)
            .map(|_| u8::try_from(random.below(256)).unwrap())
            .collect();
        if random.below(2) == 0 && bytes.len() > 9 {
            // With a plausible length of the header, the reader gets further.
            bytes[..8].copy_from_slice(&(random.below(64) as u64).to_le_bytes());
            bytes[8] = b'{';
        }
        match Model::from_bytes(&bytes) {
            Err(Error::Format { .. }) => {}
            other => failures.push(format!("{bytes:?}: {other:?}")),
        }
    }
    assert_no_failures(&failures);
}

#[test]
fn an_empty_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    std::fs::write(&path, "").unwrap();
    let error = Model::load(&path).unwrap_err();
    assert!(matches!(error, Error::Format { .. }), "{error:?}");
    assert!(
        error.to_string().contains("not a readable mtmkl model"),
        "{error}"
    );
}

/// A safetensors file in pieces: the header with mtmkl's own beside it, and the numbers.
struct Pieces {
    tensors: Value,
    header: Value,
    data: Vec<u8>,
}

impl Pieces {
    fn of(bytes: &[u8]) -> Self {
        let length = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
        let mut tensors: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
        let metadata = tensors
            .as_object_mut()
            .unwrap()
            .remove("__metadata__")
            .unwrap();
        let header = serde_json::from_str(metadata["mtmkl"].as_str().unwrap()).unwrap();
        Self {
            tensors,
            header,
            data: bytes[8 + length..].to_vec(),
        }
    }

    fn bytes(mut self) -> Vec<u8> {
        self.tensors["__metadata__"] = json!({ "mtmkl": self.header.to_string() });
        let header = self.tensors.to_string().into_bytes();
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header);
        bytes.extend(self.data);
        bytes
    }

    /// The bytes of one tensor, to write.
    fn tensor(&mut self, name: &str) -> &mut [u8] {
        let offsets = &self.tensors[name]["data_offsets"];
        let at = |end: usize| usize::try_from(offsets[end].as_u64().unwrap()).unwrap();
        let range = at(0)..at(1);
        &mut self.data[range]
    }
}

/// The small model's file with one change.
fn altered(change: impl FnOnce(&mut Pieces)) -> Vec<u8> {
    let mut pieces = Pieces::of(&small_model().to_bytes().unwrap());
    change(&mut pieces);
    pieces.bytes()
}

fn refusal(change: impl FnOnce(&mut Pieces)) -> String {
    match Model::from_bytes(&altered(change)) {
        Err(error @ (Error::Format { .. } | Error::Unknown { .. })) => error.to_string(),
        other => panic!("expected a refusal, found {other:?}"),
    }
}

fn assert_says(message: &str, words: &[&str]) {
    for word in words {
        assert!(message.contains(word), "no `{word}` in: {message}");
    }
}

#[test]
fn a_file_taken_apart_and_put_together_again_is_the_same_model() {
    let model = small_model();
    let bytes = Pieces::of(&model.to_bytes().unwrap()).bytes();
    assert_same(&model, &Model::from_bytes(&bytes).unwrap());
}

#[test]
fn a_file_of_a_later_version_is_refused_with_its_number() {
    let message = refusal(|pieces| {
        pieces.header["version"] = json!(7);
        pieces.header["something_new"] = json!(true);
    });
    assert_says(&message, &["version 7", "reads up to 4", "newer mtmkl"]);
}

#[test]
fn a_file_of_version_1_is_read() {
    let bytes = altered(|pieces| {
        pieces.header["version"] = json!(1);
        pieces
            .header
            .as_object_mut()
            .unwrap()
            .remove("run")
            .unwrap();
        let tensors = pieces.tensors.as_object().unwrap().keys();
        let further: Vec<String> = tensors
            .filter(|name| name.contains("witness"))
            .cloned()
            .collect();
        assert!(
            further.is_empty(),
            "the bytes of these would have to go too"
        );
    });
    let (model, old) = (small_model(), Model::from_bytes(&bytes).unwrap());
    assert!(model.outcome().tolerance.is_some() && model.outcome().solver.is_some());
    assert_eq!(
        (old.outcome().tolerance, old.outcome().solver.clone()),
        (None, None)
    );
    assert_eq!(old.weights(), model.weights());
    assert_eq!(old.outcome().bound, model.outcome().bound);
}

#[test]
fn tensors_of_another_kind_are_refused_by_name() {
    let message = refusal(|pieces| pieces.tensors["theta"]["dtype"] = json!("I64"));
    assert_says(&message, &["`theta`", "wrong type"]);
    let message = refusal(|pieces| pieces.tensors["task.0.support"]["dtype"] = json!("F64"));
    assert_says(&message, &["`task.0.support`", "wrong type"]);
    let message = refusal(|pieces| pieces.tensors["theta"]["shape"] = json!([3, 2]));
    assert_says(&message, &["`theta`", "[3, 2]", "[2, 3]"]);
    let message = refusal(|pieces| pieces.tensors["theta"]["shape"] = json!([6]));
    assert_says(&message, &["`theta`", "[6]", "[2, 3]"]);
    // A shape that does not even fit its own bytes.
    refusal(|pieces| pieces.tensors["theta"]["shape"] = json!([2, 4]));
    refusal(|pieces| pieces.tensors["theta"]["shape"] = json!([usize::MAX, usize::MAX]));
}

#[test]
fn tensors_that_are_missing_or_of_the_wrong_length_are_refused_by_name() {
    for name in ["theta", "offsets", "outcome", "trace", "task.1.beta"] {
        let message = refusal(|pieces| {
            let tensor = pieces
                .tensors
                .as_object_mut()
                .unwrap()
                .remove(name)
                .unwrap();
            pieces.tensors["other"] = tensor;
        });
        assert_says(&message, &["missing", name]);
    }
    let message = refusal(|pieces| {
        pieces.header["tasks"].as_array_mut().unwrap().pop();
    });
    assert_says(&message, &["`offsets`", "2 values", "expected 1"]);
    let message = refusal(|pieces| {
        pieces.header["sets"][0]["columns"]
            .as_array_mut()
            .unwrap()
            .pop();
    });
    assert_says(&message, &["`set.0.rows`"]);
    refusal(|pieces| pieces.header["tasks"] = json!([]));
    refusal(|pieces| pieces.header["kernels"] = json!([]));
}

#[test]
fn indices_out_of_range_are_refused() {
    let message = refusal(|pieces| {
        pieces.tensor("task.0.support")[..8].copy_from_slice(&99_u64.to_le_bytes());
    });
    assert_says(&message, &["`task.0.support`", "not below"]);
    let message = refusal(|pieces| {
        pieces.tensor("set.0.positions")[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    });
    assert_says(&message, &["`set.0.positions`", "not below 5"]);
    let message = refusal(|pieces| pieces.header["tasks"][1]["set"] = json!(4));
    assert_says(&message, &["task `b`", "sample set 4"]);
    // Sums of counts are counts, whatever a file says.
    for place in ["tasks", "sets"] {
        let message = refusal(|pieces| pieces.header[place][0]["samples"] = json!(u64::MAX));
        assert_says(&message, &["more than there can be"]);
    }
}

#[test]
fn numbers_that_are_not_finite_are_refused() {
    for name in ["theta", "task.0.beta", "set.0.rows", "set.0.given.0"] {
        let message = refusal(|pieces| {
            pieces.tensor(name)[..8].copy_from_slice(&f64::NAN.to_le_bytes());
        });
        assert_says(&message, &[name, "not finite"]);
    }
    let message = refusal(|pieces| {
        pieces.tensor("offsets")[..8].copy_from_slice(&f64::INFINITY.to_le_bytes());
    });
    assert_says(&message, &["offset", "task `a`", "not finite"]);
}

#[test]
fn a_kernel_that_is_none_is_refused_as_a_bad_file() {
    let message = refusal(|pieces| pieces.header["kernels"][0]["spec"] = json!("lineal"));
    assert_says(&message, &["lineal"]);
    let message = refusal(|pieces| pieces.header["kernels"][2]["spec"] = json!("rbf:gamma=-1"));
    assert_says(&message, &["rbf:gamma=-1"]);
}

#[test]
fn headers_that_contradict_themselves_never_panic() {
    type Change = fn(&mut Pieces);
    let changes: [(&str, Change); 8] = [
        ("a given kernel without its diagonal", |pieces| {
            pieces.header["sets"][0]["given"] = json!([]);
        }),
        ("a diagonal of another name", |pieces| {
            pieces.header["sets"][0]["given"] = json!(["H"]);
        }),
        ("more samples than memory", |pieces| {
            pieces.header["sets"][0]["samples"] = json!(usize::MAX);
        }),
        ("a kernel on a column that is not there", |pieces| {
            pieces.header["kernels"][2]["spec"] = json!("rbf:gamma=1@f9");
        }),
        ("another given kernel", |pieces| {
            pieces.header["kernels"][0]["spec"] = json!("precomputed:name=H");
        }),
        ("two tasks of one name", |pieces| {
            pieces.header["tasks"][1]["name"] = json!("a");
        }),
        ("a machine without sense", |pieces| {
            pieces.header["machine"] = json!({ "name": "svc", "C": -1.0 });
        }),
        ("a trace of nonsense", |pieces| {
            pieces.tensor("trace")[..8].copy_from_slice(&f64::NAN.to_le_bytes());
        }),
    ];
    let failures: Vec<String> = changes
        .into_iter()
        .filter_map(|(name, change)| {
            outcome_of(&altered(change))
                .err()
                .map(|problem| format!("{name}: {problem}"))
        })
        .collect();
    assert_no_failures(&failures);
}

#[test]
fn a_set_without_columns_never_panics() {
    // The kernels want rows, and the set has none to offer: its tensor is cut out, and what follows moves up.
    let bytes = altered(|pieces| {
        pieces.header["sets"][0]["columns"] = json!([]);
        pieces.header["kernels"][2]["spec"] = json!("rbf:gamma=1");
        let number = |offset: &Value| usize::try_from(offset.as_u64().unwrap()).unwrap();
        let rows = &mut pieces.tensors["set.0.rows"];
        let offsets = &rows["data_offsets"];
        let (from, until) = (number(&offsets[0]), number(&offsets[1]));
        *rows = json!({ "dtype": "F64", "shape": [0], "data_offsets": [from, from] });
        pieces.data.drain(from..until);
        for (_, tensor) in pieces.tensors.as_object_mut().unwrap() {
            for offset in tensor["data_offsets"].as_array_mut().unwrap() {
                let place = number(offset);
                if place >= until {
                    *offset = json!(place - (until - from));
                }
            }
        }
    });
    let input = Input {
        count: 2,
        rows: Some(Rows::new(&[], 2, 0).unwrap()),
        grams: &[],
        origin: None,
    };
    let answer = catch_unwind(AssertUnwindSafe(|| {
        Model::from_bytes(&bytes).and_then(|model| model.decision("a", input))
    }));
    assert!(matches!(answer, Ok(Err(_))), "{answer:?}");
}

#[test]
fn all_tasks_at_once_decide_as_each_alone() {
    let rows = new_rows(40);
    let rows = Rows::new(&rows, 40, DIMENSION).unwrap();
    for model in models() {
        let all = model.decisions(rows).unwrap();
        assert_eq!(all.len(), 3);
        for (task, together) in model.tasks().iter().zip(&all) {
            let alone = model.decision(&task.name, rows).unwrap();
            assert_close(together, &alone, 1e-12);
        }
    }
}

fn assert_close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (a, b) in found.iter().zip(expected) {
        assert!(
            (a - b).abs() <= tolerance * b.abs().max(1.0),
            "{a}, expected {b}"
        );
    }
}

#[test]
fn a_prediction_does_not_depend_on_its_neighbours() {
    // More rows than one batch holds.
    let count = 600;
    let values = new_rows(count);
    let rows = Rows::new(&values, count, DIMENSION).unwrap();
    for model in models() {
        for task in ["all", "some", "own"] {
            let together = model.decision(task, rows).unwrap();
            let alone: Vec<f64> = (0..count)
                .map(|row| {
                    model
                        .decision(task, rows.slice(row, row + 1).unwrap())
                        .unwrap()[0]
                })
                .collect();
            assert_close(&alone, &together, 1e-12);
        }
    }
}

#[test]
fn no_rows_get_no_predictions() {
    for model in models() {
        let none = Rows::new(&[], 0, DIMENSION).unwrap();
        assert!(model.decision("all", none).unwrap().is_empty());
        assert!(model.decisions(none).unwrap().iter().all(Vec::is_empty));
    }
}

#[test]
fn a_prediction_is_the_sign_of_the_decision_or_the_value_itself() {
    let rows = new_rows(40);
    let rows = Rows::new(&rows, 40, DIMENSION).unwrap();
    for model in models() {
        let decisions = model.decision("all", rows).unwrap();
        let predictions = model.predict("all", rows).unwrap();
        let regression = matches!(model.machine().name(), "svr" | "krr");
        for (decision, prediction) in decisions.iter().zip(predictions) {
            let expected = match decision {
                value if regression => *value,
                value if *value >= 0.0 => 1.0,
                _ => -1.0,
            };
            assert_eq!(prediction, expected);
        }
    }
}

#[test]
fn a_task_never_seen_gets_the_mean_of_the_common_space() {
    let model = small_model();
    let unseen = try_decisions(&model).pop().unwrap().unwrap();
    assert!(unseen.iter().all(|value| value.is_finite()));
    // A model whose θ is ζ alone, for the expected value.
    let mut common = Pieces::of(&model.to_bytes().unwrap());
    let zeta: Vec<u8> = common.tensor("common").to_vec();
    common.tensor("theta").copy_from_slice(&zeta.repeat(2));
    let common = Model::from_bytes(&common.bytes()).unwrap();
    let each = try_decisions(&common);
    let mean: Vec<f64> = (0..unseen.len())
        .map(|row| {
            let of = |task: usize| each[task].as_ref().unwrap()[row];
            0.5 * (of(0) + of(1))
        })
        .collect();
    assert_close(&unseen, &mean, 1e-12);
}

#[test]
fn a_task_never_seen_gets_nothing_without_a_common_space() {
    let sharing = SharingSpec::independent(2.0, 1.0);
    let model = trained(all_kernels(), MachineSpec::svc(1.0), sharing);
    let rows = new_rows(3);
    let rows = Rows::new(&rows, 3, DIMENSION).unwrap();
    let error = model.decision_of_new_task(rows).unwrap_err();
    assert!(
        matches!(
            &error,
            Error::Data {
                problem: DataProblem::UnknownTask { .. },
                ..
            }
        ),
        "{error:?}"
    );
    assert_says(&error.to_string(), &["no common part"]);
}

#[test]
fn the_name_of_a_task_does_not_change_what_is_known_of_new_ones() {
    let mut random = Random::new(5);
    let points = generate::points(&mut random, 8, DIMENSION);
    let labels = Targets::Labels(generate::labels(&mut random, &points, 8, DIMENSION));
    let model = fit(
        ProblemSpec::new(
            kernels(&["linear"]),
            MachineSpec::svc(1.0),
            SharingSpec::independent(2.0, 1.0),
        ),
        vec![Samples::new(points, 8, DIMENSION).unwrap()],
        vec![Task::new("a task never seen", labels)],
    );
    let rows = new_rows(3);
    let decisions = model.decision_of_new_task(Rows::new(&rows, 3, DIMENSION).unwrap());
    assert!(decisions.is_err(), "{decisions:?}");
}

/// exp(−0.7‖x − z‖²) or (x'z + 1)², the latter far from unit diagonal.
fn kernel_value(name: &str, x: &[f64], z: &[f64]) -> f64 {
    let pairs = || x.iter().zip(z);
    match name {
        "gaussian" => (-0.7 * pairs().map(|(a, b)| (a - b) * (a - b)).sum::<f64>()).exp(),
        _ => (pairs().map(|(a, b)| a * b).sum::<f64>() + 1.0).powi(2),
    }
}

fn kernel_block(name: &str, x: &[f64], z: &[f64]) -> Vec<f64> {
    x.chunks_exact(DIMENSION)
        .flat_map(|x| {
            z.chunks_exact(DIMENSION)
                .map(move |z| kernel_value(name, x, z))
        })
        .collect()
}

#[test]
fn kernel_values_given_predict_as_kernel_values_computed() {
    let mut random = Random::new(6);
    let n = 14;
    let points = generate::points(&mut random, n, DIMENSION);
    let new = new_rows(300);
    let names = ["gaussian", "polynomial"];
    let cross = names.map(|name| kernel_block(name, &new, &points));
    let own = names.map(|name| {
        new.chunks_exact(DIMENSION)
            .map(|x| kernel_value(name, x, x))
            .collect::<Vec<f64>>()
    });
    let grams = [0, 1].map(|number| CrossGram {
        name: names[number],
        values: &cross[number],
        own: Some(&own[number]),
    });
    for machine in [
        MachineSpec::svc(2.0),
        MachineSpec::krr(0.5),
        MachineSpec::svdd(0.4),
    ] {
        for normalize in [true, false] {
            let model = |specs: &[&str]| {
                let mut samples = Samples::new(points.clone(), n, DIMENSION).unwrap();
                for name in names {
                    samples = samples
                        .with_gram(GivenGram {
                            name: name.to_string(),
                            values: kernel_block(name, &points, &points).into(),
                        })
                        .unwrap();
                }
                let mut random = Random::new(7);
                let task = Task::new("task", targets(&machine, &mut random, &points));
                let mut spec =
                    ProblemSpec::new(kernels(specs), machine.clone(), SharingSpec::uniform());
                spec.normalize = normalize.into();
                fit(spec, vec![samples], vec![task])
            };
            let computed = model(&["rbf:gamma=0.7", "poly:degree=2,coef0=1"]);
            let given = model(&["precomputed:name=gaussian", "precomputed:name=polynomial"]);
            let mixed = model(&["rbf:gamma=0.7", "precomputed:name=polynomial"]);
            let rows = Rows::new(&new, 300, DIMENSION).unwrap();
            let by_rows = computed.decision("task", rows).unwrap();
            let by_values = Input {
                count: 300,
                rows: None,
                grams: &grams,
                origin: None,
            };
            let by_both = Input {
                rows: Some(rows),
                ..by_values
            };
            // Rounding of the kernel values, and what the inner solver leaves.
            let tolerance = 1e-6;
            assert_close(
                &given.decision("task", by_values).unwrap(),
                &by_rows,
                tolerance,
            );
            assert_close(
                &mixed.decision("task", by_both).unwrap(),
                &by_rows,
                tolerance,
            );
        }
    }
}
