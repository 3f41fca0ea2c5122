//! Kernel matrices from files: NPY written by hand, NPZ, CSV with row names.

use std::io::{Cursor, Write as _};

use serde_json::Value;

use crate::fixture::{Folder, Transcript, column, two_classes};

/// A matrix by rows, as NumPy saves it (version 1.0, little-endian doubles, C order).
pub(crate) fn npy(values: &[f64], rows: usize) -> Vec<u8> {
    // One number a row is a plain list, as `numpy.diag` gives it.
    let shape = match values.len() / rows {
        1 => format!("({rows},)"),
        columns => format!("({rows}, {columns})"),
    };
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

/// An archive as `numpy.savez` makes it.
fn npz(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let stored =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, bytes) in members {
        archive.start_file(format!("{name}.npy"), stored).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn points() -> Vec<[f64; 2]> {
    let table = two_classes(30);
    column(&table, "a")
        .into_iter()
        .zip(column(&table, "b"))
        .map(|(a, b)| [a.parse().unwrap(), b.parse().unwrap()])
        .collect()
}

fn linear(x: &[f64; 2], z: &[f64; 2]) -> f64 {
    x[0] * z[0] + x[1] * z[1]
}

fn gaussian(x: &[f64; 2], z: &[f64; 2]) -> f64 {
    (-((x[0] - z[0]).powi(2) + (x[1] - z[1]).powi(2)) / 2.0).exp()
}

fn matrix(kernel: fn(&[f64; 2], &[f64; 2]) -> f64, x: &[[f64; 2]], z: &[[f64; 2]]) -> Vec<f64> {
    x.iter()
        .flat_map(|x| z.iter().map(move |z| kernel(x, z)))
        .collect()
}

/// `rows.csv` has the points, `names.csv` only their names and labels, and the matrices stand for the points.
fn tables() -> Folder {
    let folder = Folder::new();
    let table = two_classes(30);
    let mut names = String::from("id,label\n");
    for (row, label) in column(&table, "label").iter().enumerate() {
        names += &format!("r{row},{label}\n");
    }
    let points = points();
    let own = |kernel: fn(&[f64; 2], &[f64; 2]) -> f64, few: &[[f64; 2]]| {
        npy(
            &few.iter().map(|x| kernel(x, x)).collect::<Vec<_>>(),
            few.len(),
        )
    };
    let few = &points[..6];
    folder
        .file("rows.csv", &table)
        .file("names.csv", &names)
        .file(
            "new.csv",
            names.lines().take(7).collect::<Vec<_>>().join("\n"),
        )
        .file(
            "new_rows.csv",
            table.lines().take(7).collect::<Vec<_>>().join("\n"),
        )
        .file("lin.npy", npy(&matrix(linear, &points, &points), 30))
        .file("gauss.npy", npy(&matrix(gaussian, &points, &points), 30))
        .file(
            "both.npz",
            npz(&[
                ("lin", npy(&matrix(linear, &points, &points), 30)),
                ("gauss", npy(&matrix(gaussian, &points, &points), 30)),
            ]),
        )
        .file("few_gauss.npy", npy(&matrix(gaussian, few, &points), 6))
        .file("few_bare.npy", npy(&matrix(linear, few, &points), 6))
        .file(
            "few_lin.npz",
            npz(&[
                ("k", npy(&matrix(linear, few, &points), 6)),
                ("own", own(linear, few)),
            ]),
        );
    folder
}

/// Decision values as numbers.
fn decisions(text: &str) -> Vec<f64> {
    column(text, "decision")
        .iter()
        .map(|cell| cell.parse().unwrap())
        .collect()
}

fn assert_close(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
}

#[test]
fn matrices_are_as_good_as_the_rows_they_came_from() {
    let folder = tables();
    let flags = "--target label --test-fraction 0.3 --tol 1e-10 --json";
    let fitted = |arguments: &str| {
        let ran = folder.run(&format!("fit {arguments} {flags}"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.json()
    };
    let computed = fitted(
        "rows.csv --kernel linear --kernel rbf:sigma=1 --scale none --normalize unit -o rows.model",
    );
    for (number, kernels) in [
        "--kernel precomputed:path=lin.npy --kernel precomputed:path=gauss.npy",
        "--kernel precomputed:path=both.npz",
    ]
    .iter()
    .enumerate()
    {
        let given = fitted(&format!("names.csv --id id {kernels} -o {number}.model"));
        // The single kernels have other names.
        let learned = |fitted: &Value| fitted["scores"]["methods"][0].clone();
        assert_eq!(learned(&given), learned(&computed));
        for (a, b) in given["tasks"][0]["weights"]
            .as_array()
            .unwrap()
            .iter()
            .zip(computed["tasks"][0]["weights"].as_array().unwrap())
        {
            assert!((a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 1e-4);
        }
    }
    let expected = folder
        .run("predict rows.model new_rows.csv --decision")
        .good();
    let expected = decisions(&expected);
    for (model, crossed) in [
        ("0", "--cross lin=few_lin.npz --cross gauss=few_gauss.npy"),
        (
            "1",
            "--cross both/lin=few_lin.npz --cross both/gauss=few_gauss.npy",
        ),
    ] {
        let ran = folder.run(&format!(
            "predict {model}.model new.csv --decision {crossed}"
        ));
        assert_close(&decisions(&ran.good()), &expected);
        let evaluated = folder
            .run(&format!("evaluate {model}.model new.csv --json {crossed}"))
            .json();
        assert_eq!(
            evaluated["mean"],
            folder.run("evaluate rows.model new_rows.csv --json").json()["mean"]
        );
    }
    // Without normalisation k(x, x) is not needed.
    fitted("names.csv --id id --kernel precomputed:path=lin.npy --normalize false -o bare.model");
    folder
        .run("predict bare.model new.csv --cross lin=few_bare.npy")
        .good();
    // And a kernel computed from rows may stand beside one that is given.
    fitted(
        "rows.csv --kernel precomputed:path=lin.npy --kernel rbf:sigma=1 --scale none -o mixed.model",
    );
    let ran = folder.run("predict mixed.model new_rows.csv --decision --cross lin=few_lin.npz");
    assert_close(&decisions(&ran.good()), &expected);
}

#[test]
fn columns_of_text_do_not_matter_where_no_kernel_sees_them() {
    let folder = tables();
    folder
        .run("fit names.csv --target label --kernel precomputed:path=gauss.npy")
        .good();
}

#[test]
fn rows_with_names_are_matched() {
    let folder = tables();
    let points = points();
    // The same matrix, rows and columns in reverse order, with their names.
    let mut text = String::new();
    for row in (0..30).rev() {
        text += &format!(",r{row}");
    }
    text += "\n";
    for row in (0..30).rev() {
        text += &format!("r{row}");
        for other in (0..30).rev() {
            text += &format!(",{}", gaussian(&points[row], &points[other]));
        }
        text += "\n";
    }
    folder.file("reversed.csv", text);
    let weights = |arguments: &str| {
        let ran = folder.run(&format!("fit names.csv --target label {arguments} --json"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        (ran.json()["objective"].as_f64().unwrap(), ran.stderr)
    };
    let (expected, _) = weights("--id id --kernel precomputed:path=gauss.npy");
    let (matched, said) = weights("--id id --kernel precomputed:path=reversed.csv");
    assert!((expected - matched).abs() < 1e-9 * expected);
    assert_eq!(said, "");
    let (_, said) = weights("--kernel precomputed:path=reversed.csv");
    assert!(said.contains("--id COLUMN matches them by name"), "{said}");
}

#[test]
fn odd_names_of_files() {
    let folder = tables();
    let odd = "k,1@b|c=d.npy";
    std::fs::copy(folder.path("gauss.npy"), folder.path(odd)).unwrap();
    folder
        .run(&format!(
            "fit names.csv --target label --kernel precomputed:path={odd} -o m"
        ))
        .good();
    folder
        .run("predict m new.csv --cross k_1_b_c_d=few_gauss.npy")
        .good();
    // Two files of one name in different folders.
    std::fs::create_dir(folder.path("sub")).unwrap();
    std::fs::copy(folder.path("lin.npy"), folder.path("sub/gauss.npy")).unwrap();
    let fitted = folder
        .run("fit names.csv --target label --kernel precomputed:path=gauss.npy --kernel precomputed:path=sub/gauss.npy --json")
        .json();
    assert_eq!(
        fitted["kernels"],
        serde_json::json!(["precomputed:name=gauss", "precomputed:name=sub/gauss.npy"])
    );
}

#[test]
fn matrices_that_do_not_fit() {
    let folder = tables();
    let points = points();
    let mut upper = matrix(gaussian, &points, &points);
    upper[1] += 1.0;
    let mut indefinite = matrix(gaussian, &points, &points);
    (indefinite[1], indefinite[30]) = (5.0, 5.0);
    let mut missing = matrix(gaussian, &points, &points);
    missing[31] = f64::NAN;
    folder
        .file("small.npy", npy(&[1.0, 0.0, 0.0, 1.0], 2))
        .file("asymmetric.npy", npy(&upper, 30))
        .file("indefinite.npy", npy(&indefinite, 30))
        .file("missing.npy", npy(&missing, 30))
        .file("cut.npy", &npy(&upper, 30)[..500])
        .file("notes.npy", "not an array")
        .file(
            "narrow.npy",
            npy(&matrix(gaussian, &points[..6], &points[..20]), 6),
        )
        .file(
            "two.npz",
            npz(&[("a", npy(&upper, 30)), ("b", npy(&upper, 30))]),
        )
        .file(
            "wrong_own.npz",
            npz(&[
                ("k", npy(&matrix(linear, &points[..6], &points), 6)),
                ("own", npy(&[1.0, 1.0], 2)),
            ]),
        );
    folder
        .run("fit names.csv --target label --id id --kernel precomputed:path=lin.npy -o lin.model")
        .good();
    folder
        .run("fit names.csv --target label --id id --kernel precomputed:path=gauss.npy -o gauss.model")
        .good();
    let mut shown = Transcript::new(&folder);
    for path in [
        "nowhere.npy",
        "gaus.npy",
        "small.npy",
        "asymmetric.npy",
        "indefinite.npy",
        "missing.npy",
        "cut.npy",
        "notes.npy",
    ] {
        shown.bad(&format!(
            "fit names.csv --target label --id id --kernel precomputed:path={path}"
        ));
    }
    shown
        .bad("fit names.csv --target label --id id --kernel precomputed")
        .bad("fit names.csv --target label --id id")
        .bad("fit names.csv --target label --id id --kernel precomputed:path=gauss.npy --test new.csv")
        .bad("predict gauss.model new.csv")
        .bad("predict gauss.model new.csv --cross gaus=few_gauss.npy")
        .bad("predict gauss.model new.csv --cross gauss=nowhere.npy")
        .bad("predict gauss.model new.csv --cross gauss=narrow.npy")
        .bad("predict gauss.model names.csv --cross gauss=few_gauss.npy")
        .bad("predict gauss.model new.csv --cross gauss=two.npz")
        .bad("predict lin.model new.csv --cross lin=few_bare.npy")
        .bad("predict lin.model new.csv --cross lin=wrong_own.npz");
    insta::assert_snapshot!(shown.text());
}

#[test]
fn a_journal_knows_the_values_of_its_matrices() {
    let folder = tables();
    let tune = "tune names.csv --target label --ignore id --kernel precomputed:path=gauss.npy --folds 2 --grid C=1,2 --journal j";
    folder.run(tune).good();
    let again = folder.run(&format!("{tune} --resume --json")).json();
    assert_eq!(again["tune"]["computed"], 0);
    // Another matrix of the same name and shape: its scores are not those of the first.
    let lin = std::fs::read(folder.path("lin.npy")).unwrap();
    folder.file("gauss.npy", lin);
    let message = folder.run(&format!("{tune} --resume")).bad();
    assert!(
        message.contains("belongs to a run on other data"),
        "{message}"
    );
}
