//! Model files that are not what they seem.

use mtmkl::random::Random;
use serde_json::{Value, json};

use crate::fixture::{Folder, Transcript, two_classes};

/// A model file taken apart: the header of the container, and the numbers after it.
pub(crate) fn parts(bytes: &[u8]) -> (Value, &[u8]) {
    let length = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    (
        serde_json::from_slice(&bytes[8..8 + length]).unwrap(),
        &bytes[8 + length..],
    )
}

pub(crate) fn joined(header: &Value, numbers: &[u8]) -> Vec<u8> {
    let mut text = header.to_string();
    while !text.len().is_multiple_of(8) {
        text.push(' ');
    }
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes.extend(numbers);
    bytes
}

/// The file with its own header, or the frame that the program keeps in it, changed.
pub(crate) fn changed(bytes: &[u8], change: impl Fn(&mut Value, &mut Value)) -> Vec<u8> {
    let (mut container, numbers) = parts(bytes);
    let inner = container["__metadata__"]["mtmkl"].as_str().unwrap();
    let mut inner: Value = serde_json::from_str(inner).unwrap();
    let mut frame: Value = serde_json::from_str(inner["notes"]["frame"].as_str().unwrap()).unwrap();
    change(&mut inner, &mut frame);
    if inner["notes"].get("frame").is_some() {
        inner["notes"]["frame"] = json!(frame.to_string());
    }
    container["__metadata__"]["mtmkl"] = json!(inner.to_string());
    joined(&container, numbers)
}

fn models() -> Folder {
    let folder = Folder::new();
    folder.file("two.csv", two_classes(20));
    folder
        .run("fit two.csv --target label --kernel linear --kernel rbf -o good.model")
        .good();
    let mut gram = String::new();
    for row in 0..20 {
        let cells: Vec<String> = (0..20)
            .map(|other| (if row == other { 1.5 } else { 0.5 }).to_string())
            .collect();
        gram += &format!("{}\n", cells.join(","));
    }
    folder.file("gram.csv", gram);
    folder
        .run("fit two.csv --target label --kernel precomputed:path=gram.csv --normalize false -o given.model")
        .good();
    folder
}

#[test]
fn a_changed_file_is_refused_or_still_sensible() {
    let folder = models();
    let good = std::fs::read(folder.path("good.model")).unwrap();
    let given = std::fs::read(folder.path("given.model")).unwrap();
    let (container, numbers) = parts(&good);
    let mut foreign = container.clone();
    foreign.as_object_mut().unwrap().remove("__metadata__");
    let mut shape = container.clone();
    shape["theta"]["shape"] = json!([1, u64::MAX]);
    let mut offsets = container.clone();
    offsets["theta"]["data_offsets"] = json!([0, u64::MAX]);
    let mut shown = Transcript::new(&folder);
    let files: Vec<(&str, Vec<u8>)> = vec![
        ("empty", Vec::new()),
        ("table", std::fs::read(folder.path("two.csv")).unwrap()),
        ("cut", good[..good.len() / 2].to_vec()),
        ("cut_at_the_end", good[..good.len() - 1].to_vec()),
        ("longer", [&good[..], b"more"].concat()),
        (
            "endless_header",
            [&u64::MAX.to_le_bytes()[..], b"{}"].concat(),
        ),
        ("foreign", joined(&foreign, numbers)),
        ("shape", joined(&shape, numbers)),
        ("offsets", joined(&offsets, numbers)),
        (
            "future",
            changed(&good, |model, _| model["version"] = json!(5)),
        ),
        (
            "no_version",
            changed(&good, |model, _| model["version"] = json!("1")),
        ),
        (
            "unknown_field",
            changed(&good, |model, _| model["surprise"] = json!(1)),
        ),
        (
            "no_frame",
            changed(&good, |model, _| {
                model["notes"].as_object_mut().unwrap().remove("frame");
            }),
        ),
        (
            "no_kernels",
            changed(&good, |model, _| model["kernels"] = json!([])),
        ),
        (
            "kernel",
            changed(&good, |model, _| {
                model["kernels"][0]["spec"] = json!("magic");
            }),
        ),
        (
            "machine",
            changed(&good, |model, _| {
                model["machine"] = json!({ "name": "oracle" });
            }),
        ),
        (
            "set",
            changed(&good, |model, _| model["tasks"][0]["set"] = json!(7)),
        ),
        (
            "columns",
            changed(&good, |model, _| model["sets"][0]["columns"] = json!(["a"])),
        ),
        (
            "samples",
            changed(&good, |model, _| model["sets"][0]["samples"] = json!(1)),
        ),
        (
            "classes",
            changed(&good, |_, frame| {
                frame["goal"] = json!({ "binary": { "classes": [] } });
            }),
        ),
        (
            "more_classes",
            changed(&good, |_, frame| {
                frame["goal"] =
                    json!({ "multiclass": { "classes": ["a", "b", "c"], "scheme": "ova" } });
            }),
        ),
        (
            "features",
            changed(&good, |_, frame| frame["features"] = json!([])),
        ),
        (
            "huge_scale",
            changed(&good, |_, frame| {
                frame["features"][0]["factor"] = json!(1e308);
                frame["features"][0]["offset"] = json!(-1e308);
            }),
        ),
        (
            "given",
            changed(&given, |model, _| model["sets"][0]["given"] = json!([])),
        ),
        (
            "given_samples",
            changed(&given, |model, _| {
                model["sets"][0]["samples"] = json!(u64::MAX / 2);
            }),
        ),
        (
            "training_rows",
            changed(&given, |model, _| {
                model["notes"]["training-rows"] = json!("[[0, 1]]");
            }),
        ),
        (
            "training_text",
            changed(&given, |model, _| {
                model["notes"]["training-rows"] = json!("rows");
            }),
        ),
    ];
    for (name, bytes) in files {
        folder.file(&format!("{name}.model"), bytes);
        let cross = if name.starts_with("given") || name.starts_with("training") {
            " --cross gram=gram.csv"
        } else {
            ""
        };
        shown.bad(&format!("predict {name}.model two.csv{cross}"));
        for arguments in [
            format!("inspect {name}.model"),
            format!("inspect {name}.model --json"),
            format!("report {name}.model"),
            format!("evaluate {name}.model two.csv{cross}"),
        ] {
            let ran = folder.run(&arguments);
            assert!(ran.code == 0 || ran.code == 2, "{arguments}: {}", ran.code);
            assert!(
                !ran.stderr.contains("internal error"),
                "{arguments}: {}",
                ran.stderr
            );
        }
    }
    insta::assert_snapshot!(shown.text());
}

#[test]
fn notes_that_are_not_what_they_should_be() {
    let folder = models();
    let good = std::fs::read(folder.path("good.model")).unwrap();
    let mut shown = Transcript::new(&folder);
    for (note, text, commands) in [
        ("scores", "{", &["inspect m --json", "report m"][..]),
        ("data", "[1]", &["report m"][..]),
        ("settings", "= 1", &["report m"][..]),
        ("pictures", "[[1]]", &["report m"][..]),
    ] {
        folder.file(
            "m",
            changed(&good, |model, _| model["notes"][note] = json!(text)),
        );
        for command in commands {
            shown.bad(command);
        }
        folder.run("predict m two.csv").good();
    }
    insta::assert_snapshot!(shown.text());
}

/// Bytes turned at random: refused, or read as some model; never a crash.
#[test]
fn damaged_bytes() {
    let folder = models();
    let good = std::fs::read(folder.path("good.model")).unwrap();
    let mut random = Random::new(7);
    for round in 0..150 {
        let mut bytes = good.clone();
        for _ in 0..=random.below(4) {
            // Most of the meaning is in the header.
            let end = if round % 2 == 0 {
                bytes.len()
            } else {
                3000.min(bytes.len())
            };
            let at = random.below(end);
            match random.below(3) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => bytes[at] = b'0' + u8::try_from(random.below(10)).unwrap(),
                _ => {
                    bytes.remove(at);
                }
            }
        }
        folder.file("m", bytes);
        let command = ["predict m two.csv", "inspect m --json", "report m"][round % 3];
        let ran = folder.run(command);
        assert!(
            ran.code == 0 || ran.code == 2,
            "{round}, {command}: {}",
            ran.code
        );
        assert!(
            !ran.stderr.contains("internal error"),
            "{round}: {}",
            ran.stderr
        );
    }
}

#[test]
fn a_model_of_a_later_version_says_which_is_needed() {
    let folder = models();
    let good = std::fs::read(folder.path("good.model")).unwrap();
    folder.file(
        "m",
        changed(&good, |model, _| {
            model["version"] = json!(5);
            model["something_new"] = json!({ "we": "cannot read" });
        }),
    );
    for command in [
        "predict m two.csv",
        "evaluate m two.csv",
        "inspect m",
        "report m",
    ] {
        let message = folder.run(command).bad();
        assert!(
            message.contains("format version 5") && message.contains("use a newer mtmkl"),
            "{message}"
        );
    }
}
