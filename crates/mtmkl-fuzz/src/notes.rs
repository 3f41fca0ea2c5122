//! What programs keep in a model's notes: anybody can write them. The input is pairs of a note's name and its text, between zero bytes.
//!
//! The page that is made of them runs nothing; tables are read by them and predicted for without a panic.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use mtmkl::data::{Samples, Targets, Task};
use mtmkl::kernel::parse_kernels;
use mtmkl::machine::MachineSpec;
use mtmkl::sharing::SharingSpec;
use mtmkl::{Fitting, Model, Problem, ProblemSpec};
use mtmkl_cli::commands::report::report;
use mtmkl_cli::input::{TableOptions, csv};
use mtmkl_cli::predictor::{Asked, CrossGrams, Predictor};
use mtmkl_table::{Frame, calibration_of, frame_of, training_rows_of};

/// Rows to predict for, with a gap, a category and a task that nobody knows.
const ROWS: &[u8] = b"a,b,d,site,c\n1,2,0,north,x\n-1,0.5,1,south,y\n,3,0,north,x\n0,0,1,west,z\n";
/// Well under the memory that the fuzzer allows.
const LIMIT: u64 = 64 << 20;

/// Reads the bytes.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut notes = BTreeMap::new();
    let mut parts = text.split('\0');
    while let (Some(name), Some(note)) = (parts.next(), parts.next()) {
        notes.insert(name.to_string(), note.to_string());
    }
    for model in models() {
        // A model is not for copying: one at a time has these notes.
        let mut model = model.lock().unwrap_or_else(PoisonError::into_inner);
        model.notes_mut().clone_from(&notes);
        show(&model);
        predict(&model);
    }
}

/// One machine of two classes on two tasks, and one that learns numbers of one.
fn models() -> &'static [Mutex<Model>] {
    static MODELS: OnceLock<Vec<Mutex<Model>>> = OnceLock::new();
    MODELS.get_or_init(|| {
        let labels = |flip: f64| Targets::Labels(vec![1.0, -1.0, flip, -flip]);
        vec![
            fitted(
                MachineSpec::svc(1.0),
                vec![
                    Task::new("north", labels(1.0)),
                    Task::new("south", labels(-1.0)),
                ],
            ),
            fitted(
                MachineSpec::krr(1.0),
                vec![Task::new("all", Targets::Values(vec![0.5, 1.0, -2.0, 0.0]))],
            ),
        ]
    })
}

fn fitted(machine: MachineSpec, tasks: Vec<Task>) -> Mutex<Model> {
    // Of two columns the page would have a picture, which takes most of the time.
    let values = vec![1.0, 0.0, 1.0, -1.0, 2.0, 0.0, 0.5, 0.5, 1.0, -0.5, 1.0, 0.0];
    let columns = ["a", "b", "d"].map(str::to_string).to_vec();
    let samples = Samples::with_columns(values, 4, columns).unwrap();
    let kernels = parse_kernels("rbf:sigma=1|2").unwrap();
    let spec = ProblemSpec::new(kernels, machine, SharingSpec::pscs(1.0, 1.0, 1.0));
    let problem = Problem::new(spec, vec![samples], tasks).unwrap();
    Mutex::new(problem.fit(&mut Fitting::default()).unwrap())
}

fn show(model: &Model) {
    if let Ok(report) = report(model) {
        let page = mtmkl_report::html(&report);
        assert!(!page.contains("<script"));
        assert!(page.ends_with("</html>\n"));
    }
}

fn predict(model: &Model) {
    let calibration = calibration_of(model).ok().flatten();
    let training_rows = training_rows_of(model).unwrap_or_default();
    let frames = [frame_of(model).ok(), Some(Frame::of_library(model))];
    let options = TableOptions {
        limit: LIMIT,
        ..TableOptions::default()
    };
    for frame in frames.into_iter().flatten() {
        let options = TableOptions {
            text: frame.names().into_iter().map(str::to_string).collect(),
            ..options.clone()
        };
        let table = csv::from_bytes("rows.csv", ROWS, &options).unwrap();
        let tasks = frame.known_tasks(model);
        let Ok(records) = frame.records(&table, false, None, &tasks) else {
            continue;
        };
        let predictor = Predictor {
            model,
            frame: &frame,
            calibration: calibration.as_ref(),
            new_tasks: true,
            training_rows: &training_rows,
            limit: LIMIT,
            noted: Mutex::default(),
        };
        let cross = CrossGrams::new();
        let asked = Asked {
            table: &table,
            records: &records,
            cross: &cross,
        };
        if let Ok(predictions) = predictor.predict(&asked) {
            assert_eq!(predictions.labels.len(), records.count());
        }
    }
}
