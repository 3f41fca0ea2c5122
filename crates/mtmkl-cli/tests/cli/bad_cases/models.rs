//! Model files that anybody could have written: containers, headers, tensors, notes.

use serde_json::{Value, json};

use super::{Case, file};
use crate::fixture::Folder;
use crate::model_file::{changed, joined, parts};

const PREDICT: &str = "predict m two.csv";

/// The file with its container's entry of a tensor changed.
fn tensor(good: &[u8], name: &str, change: impl Fn(&mut Value)) -> Vec<u8> {
    let (mut container, numbers) = parts(good);
    change(&mut container[name]);
    joined(&container, numbers)
}

/// The file with the numbers of a tensor changed.
fn numbers(good: &[u8], name: &str, value: [u8; 8]) -> Vec<u8> {
    let (container, content) = parts(good);
    let at = container[name]["data_offsets"][0].as_u64().unwrap();
    let at = usize::try_from(at).unwrap();
    let mut content = content.to_vec();
    content[at..at + 8].copy_from_slice(&value);
    joined(&container, &content)
}

fn containers(good: &[u8]) -> Vec<Case> {
    let case = |name, bytes: Vec<u8>, words: &[&'static str]| {
        let words = [&["m is not a readable mtmkl model"][..], words].concat();
        file(name, "m", bytes, PREDICT, &words)
    };
    let (container, content) = parts(good);
    let mut foreign = container.clone();
    foreign.as_object_mut().unwrap().remove("__metadata__");
    let header = |text: &str| {
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.extend(text.as_bytes());
        bytes
    };
    vec![
        case("model: empty", Vec::new(), &["header too small"]),
        case("model: three bytes", b"abc".to_vec(), &["header too small"]),
        case(
            "model: a table",
            b"a,b,label\n1,2,x\n".to_vec(),
            &["header too large"],
        ),
        case("model: zeros", vec![0; 4096], &[]),
        case(
            "model: cut in its header",
            good[..100].to_vec(),
            &["invalid header length"],
        ),
        case(
            "model: cut in its numbers",
            good[..good.len() - 9].to_vec(),
            &["not fully covered"],
        ),
        case(
            "model: longer than it says",
            [good, b"more"].concat(),
            &["not fully covered"],
        ),
        case(
            "model: a header without end",
            [&u64::MAX.to_le_bytes()[..], b"{}"].concat(),
            &["header too large"],
        ),
        case(
            "model: a header of half of all bytes",
            [&(1_u64 << 62).to_le_bytes()[..], b"{}"].concat(),
            &["header too large"],
        ),
        case(
            "model: a header that is no JSON",
            header("hello"),
            &["invalid JSON"],
        ),
        case("model: a header that is a list", header("[1, 2]"), &[]),
        case(
            "model: a header that nests without end",
            header(&"[".repeat(100_000)),
            &[],
        ),
        case(
            "model: a header that is no text",
            [&4_u64.to_le_bytes()[..], b"\xff\xfe\xfd\xfc"].concat(),
            &[],
        ),
        case(
            "model: of another program",
            joined(&foreign, content),
            &["it was not written by mtmkl"],
        ),
        case(
            "model: a shape that overflows",
            tensor(good, "theta", |own| own["shape"] = json!([1, u64::MAX])),
            &["overflow"],
        ),
        case(
            "model: a place that overflows",
            tensor(good, "theta", |own| {
                own["data_offsets"] = json!([0, u64::MAX]);
            }),
            &["invalid offset"],
        ),
        case(
            "model: a place that ends before it begins",
            tensor(good, "theta", |own| own["data_offsets"] = json!([8, 0])),
            &[],
        ),
        case(
            "model: a shape that is negative",
            tensor(good, "theta", |own| own["shape"] = json!([-1, 2])),
            &[],
        ),
        case(
            "model: a type that nobody knows",
            tensor(good, "theta", |own| own["dtype"] = json!("F128")),
            &[],
        ),
        case(
            "model: a type of another width",
            tensor(good, "theta", |own| own["dtype"] = json!("F32")),
            &[],
        ),
        case(
            "model: a type of the same width",
            tensor(good, "theta", |own| own["dtype"] = json!("I64")),
            &["the tensor `theta` has the wrong type"],
        ),
    ]
}

fn headers(good: &[u8]) -> Vec<Case> {
    let case = |name, words: &[&'static str], change: &dyn Fn(&mut Value)| {
        let bytes = changed(good, |model, _| change(model));
        file(name, "m", bytes, PREDICT, words)
    };
    vec![
        case(
            "model: of the future",
            &["format version 99", "use a newer mtmkl"],
            &|m| m["version"] = json!(99),
        ),
        case("model: a version that is text", &["bad header"], &|m| {
            m["version"] = json!("1");
        }),
        case("model: a version below nothing", &["bad header"], &|m| {
            m["version"] = json!(-1);
        }),
        case(
            "model: a field that nobody knows",
            &["unknown field `surprise`"],
            &|m| m["surprise"] = json!(1),
        ),
        case("model: no kernels", &["no tasks or no kernels"], &|m| {
            m["kernels"] = json!([]);
        }),
        case("model: no tasks", &["no tasks or no kernels"], &|m| {
            m["tasks"] = json!([]);
        }),
        case("model: no sample sets", &["no sample sets"], &|m| {
            m["sets"] = json!([]);
        }),
        case(
            "model: a kernel that nobody knows",
            &["there is no kernel `magic`"],
            &|m| m["kernels"][0]["spec"] = json!("magic"),
        ),
        case(
            "model: a kernel with a bad key",
            &["unknown key `sigm`"],
            &|m| m["kernels"][1]["spec"] = json!("rbf:sigm=1"),
        ),
        case("model: a kernel without width", &["`gamma` is 0"], &|m| {
            m["kernels"][1]["spec"] = json!("rbf:gamma=0");
        }),
        case(
            "model: a kernel on a column that is not there",
            &["m "],
            &|m| m["kernels"][1]["spec"] = json!("rbf:gamma=1@#9"),
        ),
        case(
            "model: a machine that nobody knows",
            &["there is no machine `oracle`"],
            &|m| m["machine"] = json!({ "name": "oracle" }),
        ),
        case(
            "model: a price below nothing",
            &["bad header", "`C` is -1"],
            &|m| m["machine"]["C"] = json!(-1),
        ),
        case(
            "model: a sharing that nobody knows",
            &["there is no sharing `all`"],
            &|m| m["sharing"] = json!({ "name": "all" }),
        ),
        case(
            "model: a norm below one",
            &["bad header", "`p` is 0.5"],
            &|m| m["sharing"]["p"] = json!(0.5),
        ),
        case(
            "model: a sample set that is not there",
            &["sample set 7"],
            &|m| m["tasks"][0]["set"] = json!(7),
        ),
        case("model: fewer columns", &["expected"], &|m| {
            m["sets"][0]["columns"] = json!(["a"]);
        }),
        case(
            "model: fewer samples",
            &["an index that is not below 1"],
            &|m| m["sets"][0]["samples"] = json!(1),
        ),
        case("model: a sharing that is a number", &["bad header"], &|m| {
            m["sharing"] = json!(3);
        }),
        case("model: a status that nobody knows", &["bad header"], &|m| {
            m["status"] = json!("done");
        }),
    ]
}

fn tensors(good: &[u8]) -> Vec<Case> {
    let case =
        |name, bytes: Vec<u8>, words: &[&'static str]| file(name, "m", bytes, PREDICT, words);
    let not_finite = &["has a value that is not finite"][..];
    let nan = f64::NAN.to_le_bytes();
    let far = u64::MAX.to_le_bytes();
    vec![
        case(
            "model: a weight that is no number",
            numbers(good, "theta", nan),
            &["theta"],
        ),
        case(
            "model: a coefficient that is infinite",
            numbers(good, "task.0.beta", f64::INFINITY.to_le_bytes()),
            not_finite,
        ),
        case(
            "model: a row that is no number",
            numbers(good, "set.0.rows", nan),
            not_finite,
        ),
        case(
            "model: an offset that is no number",
            numbers(good, "offsets", nan),
            &["offset"],
        ),
        case(
            "model: a support that is not there",
            numbers(good, "task.0.support", far),
            &["task.0.support"],
        ),
        case(
            "model: a position that is not there",
            numbers(good, "set.0.positions", far),
            &["set.0.positions"],
        ),
    ]
}

fn notes(good: &[u8]) -> Vec<Case> {
    let note = |name, note: &'static str, text: &str, command: &str, words: &[&'static str]| {
        let bytes = changed(good, |model, _| model["notes"][note] = json!(text));
        file(name, "m", bytes, command, words)
    };
    let frame = |name, words: &[&'static str], change: &dyn Fn(&mut Value)| {
        let bytes = changed(good, |_, frame| change(frame));
        file(name, "m", bytes, PREDICT, words)
    };
    let mut cases = vec![
        note(
            "notes: scores",
            "scores",
            "{",
            "report m",
            &["scores cannot be read"],
        ),
        note(
            "notes: data",
            "data",
            "[1]",
            "report m",
            &["data summary cannot be read"],
        ),
        note(
            "notes: settings",
            "settings",
            "= 1",
            "report m",
            &["settings cannot be read"],
        ),
        note(
            "notes: pictures",
            "pictures",
            "[[1]]",
            "report m",
            &["pictures cannot be read"],
        ),
        note(
            "notes: pictures without end",
            "pictures",
            &"[".repeat(10_000),
            "report m",
            &["pictures cannot be read"],
        ),
        note(
            "notes: shares",
            "shares",
            "{",
            "report m",
            &["shares cannot be read"],
        ),
        note(
            "notes: calibration",
            "calibration",
            "{}",
            "predict m two.csv --probability",
            &["calibration cannot be read"],
        ),
        note(
            "notes: training rows",
            "training-rows",
            "rows",
            PREDICT,
            &["list of training rows cannot be read"],
        ),
        frame(
            "notes: no classes",
            &["does not fit its machines"],
            &|own| own["goal"] = json!({ "binary": { "classes": [] } }),
        ),
        frame(
            "notes: no features",
            &["does not fit its machines"],
            &|own| own["features"] = json!([]),
        ),
        frame("notes: a frame of the future", &["version"], &|own| {
            own["version"] = json!(1000);
        }),
        frame(
            "notes: a frame without goal",
            &["table description cannot be read"],
            &|own| own["goal"] = json!(null),
        ),
        frame(
            "notes: a scale without bounds",
            &["too large to be scaled"],
            &|own| {
                own["features"][0]["factor"] = json!(1e308);
                own["features"][0]["offset"] = json!(-1e308);
            },
        ),
    ];
    let gone = changed(good, |model, _| {
        model["notes"].as_object_mut().unwrap().remove("frame");
    });
    cases.push(file(
        "notes: none",
        "m",
        gone,
        PREDICT,
        &["no table description"],
    ));
    cases
}

pub(super) fn cases(folder: &Folder) -> Vec<Case> {
    let good = std::fs::read(folder.path("two.model")).unwrap();
    [
        containers(&good),
        headers(&good),
        tensors(&good),
        notes(&good),
    ]
    .into_iter()
    .flatten()
    .collect()
}
