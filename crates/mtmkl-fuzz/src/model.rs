//! Model files: what loads can be written again as the same model, and predicts without a panic.
//!
//! Random changes seldom keep the lengths inside a safetensors file right, so the input is read twice: as the file itself, and
//! as three parts between zero bytes from which a file with right lengths is made: the header's JSON; the tensors, one
//! `NAME TYPE SHAPE…` a line; their bytes, with zeros after the last.

use mtmkl::Model;
use mtmkl::data::Rows;
use mtmkl::model::{CrossGram, Input};

/// The most bytes of tensors in a made file.
const MOST: usize = 1 << 16;
const NEW_ROWS: usize = 3;

/// Reads the bytes.
pub fn check(data: &[u8]) {
    read(data);
    if let Some(file) = made(data) {
        read(&file);
    }
}

fn read(file: &[u8]) {
    let Ok(model) = Model::from_bytes(file) else {
        return;
    };
    let bytes = model.to_bytes().expect("what was read can be written");
    let again = Model::from_bytes(&bytes).expect("what was written can be read");
    assert!(again.to_bytes().expect("as before") == bytes);
    predict(&model, &again);
}

fn predict(model: &Model, again: &Model) {
    for task in model.tasks().iter().take(3) {
        let set = &model.support_sets()[task.set];
        let columns = set.columns.len();
        let mixed: Vec<f64> = (0..NEW_ROWS * columns)
            .map(|i| [0.5, -1.0, 0.0, 3e3, 1e-9][i % 5])
            .collect();
        let positive: Vec<f64> = mixed.iter().map(|value| value.abs()).collect();
        // Only as large as the input could have made it: the number of samples is the file's word.
        let values = vec![0.25; (set.samples.saturating_mul(NEW_ROWS)).min(MOST)];
        let own = [1.0, 0.0, 2.0];
        let names: Vec<&str> = model
            .kernels()
            .iter()
            .filter_map(|view| view.kernel.given())
            .collect();
        for own in [None, Some(&own[..])] {
            let grams: Vec<CrossGram<'_>> = names
                .iter()
                .map(|&name| CrossGram {
                    name,
                    values: &values,
                    own,
                })
                .collect();
            for rows in [&mixed, &positive] {
                let input = Input {
                    count: NEW_ROWS,
                    rows: Some(Rows::new(rows, NEW_ROWS, columns).expect("they agree")),
                    grams: &grams,
                    origin: None,
                };
                let first = model.decision(&task.name, input);
                let second = again.decision(&task.name, input);
                assert_eq!(first.ok(), second.ok());
                let _ = model.predict(&task.name, input);
                let _ = model.decisions(input);
                let _ = model.decision_of_new_task(input);
            }
        }
    }
}

/// The safetensors file of the three parts.
fn made(data: &[u8]) -> Option<Vec<u8>> {
    let mut parts = data.splitn(3, |&byte| byte == 0);
    let header = std::str::from_utf8(parts.next()?).ok()?;
    let tensors = std::str::from_utf8(parts.next()?).ok()?;
    let content = parts.next()?;
    let mut end = 0_usize;
    let mut outer = serde_json::Map::new();
    outer.insert(
        "__metadata__".to_owned(),
        serde_json::json!({ "mtmkl": header }),
    );
    for line in tensors.lines() {
        let mut words = line.split(' ');
        let (name, dtype) = (words.next()?, words.next()?);
        let shape = words
            .map(|word| word.parse().ok())
            .collect::<Option<Vec<usize>>>()?;
        let count = shape
            .iter()
            .try_fold(8_usize, |product, &size| product.checked_mul(size))?;
        let start = end;
        end = start.checked_add(count).filter(|&end| end <= MOST)?;
        let tensor = serde_json::json!({
            "dtype": dtype, "shape": shape, "data_offsets": [start, end],
        });
        outer.insert(name.to_owned(), tensor);
    }
    let outer = serde_json::to_vec(&outer).ok()?;
    let mut file = (outer.len() as u64).to_le_bytes().to_vec();
    file.extend(outer);
    let content = &content[..content.len().min(end)];
    file.extend(content);
    file.resize(file.len() + end - content.len(), 0);
    Some(file)
}
