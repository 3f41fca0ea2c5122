//! `mtmkl verify`: certificates of every kind of table hold; what is changed is named; other data are refused with the place.

use serde_json::Value;

use crate::fixture::{Folder, curve, sites, three_classes, two_classes, two_tasks};
use crate::precomputed::npy;

fn schema() -> jsonschema::Validator {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/verify.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    jsonschema::meta::validate(&schema).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

/// Where the numbers of a tensor begin in a model file.
fn place(bytes: &[u8], name: &str) -> usize {
    let length = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    let header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let first = header[name]["data_offsets"][0].as_u64().unwrap();
    8 + length + usize::try_from(first).unwrap()
}

/// The model with one number of a tensor made larger by a hundredth.
fn changed(folder: &Folder, model: &str, name: &str, number: usize) {
    let mut bytes = std::fs::read(folder.path(model)).unwrap();
    let at = place(&bytes, name) + 8 * number;
    let value = f64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    bytes[at..at + 8].copy_from_slice(&(1.01 * value).to_le_bytes());
    folder.file("changed.mtmkl", bytes);
}

#[test]
fn fits_of_every_kind_are_verified() {
    let folder = Folder::new();
    folder
        .file("two.csv", two_classes(24))
        .file("three.csv", three_classes(30))
        .file("tasks.csv", two_tasks(40))
        .file("curve.csv", curve(30))
        .file("sites.csv", sites(12));
    let validator = schema();
    for fit in [
        "two.csv --target label --class-weight balanced --test-fraction 0.3",
        "two.csv --target label --sharing lp --p 1 --precision single",
        "two.csv --target label --max-passes 1 --tol 1e-9 --scale minmax",
        "two.csv --machine svdd --target label --C 0.2",
        "two.csv --machine ocsvm --ignore label --sample 20",
        "three.csv --target kind",
        "three.csv --target kind --multiclass ova --machine logistic --sharing simplex",
        "tasks.csv --target label --task site --sharing tang --beta 0.5",
        "tasks.csv --target label --task site --solver epf --max-passes 2",
        "curve.csv --target y --machine krr",
        "curve.csv --target y --machine svr --normalize unit",
        "sites.csv --target fault --task site --sharing hierarchy --tree-columns region,town",
        "sites.csv --target fault --task site --task-groups region --ignore town --transfer all,group,own",
    ] {
        let fitted = folder.run(&format!("fit {fit} -o m.mtmkl"));
        assert!(fitted.code < 2, "{fit}: {}", fitted.stderr);
        let data = fit.split(' ').next().unwrap();
        let ran = folder.run(&format!("verify m.mtmkl {data} --json"));
        assert_eq!(ran.code, 0, "{fit}: {}\n{}", ran.stdout, ran.stderr);
        let object = ran.json();
        assert_eq!(object["holds"], true, "{fit}");
        let faults: Vec<String> = validator
            .iter_errors(&object)
            .map(|fault| format!("{}: {fault}", fault.instance_path()))
            .collect();
        assert!(faults.is_empty(), "{fit}: {faults:#?}\n{object:#}");
    }
}

/// A winner of a search, sample weights, rows that stand twice, gaps, text in columns, and matrices that have moved.
#[test]
fn tables_become_samples_as_they_did_for_the_fit() {
    let folder = Folder::new();
    let table = two_classes(24);
    let mut lines = table.lines();
    let header = format!("{},weight,colour", lines.next().unwrap());
    let rows: Vec<String> = lines
        .enumerate()
        .map(|(row, line)| format!("{line},{},{}", 1 + row % 3, ["red", "blue"][row % 2]))
        .collect();
    let twice: Vec<String> = rows.iter().chain(&rows[..9]).cloned().collect();
    folder.file("t.csv", format!("{header}\n{}\n", twice.join("\n")));
    folder.file("two.csv", &table);
    for command in [
        "fit t.csv --target label --sample-weight weight --one-hot colour",
        "tune two.csv --target label --grid C=1,10 --folds 2 --grid sharing=lp,uniform",
        "tune two.csv --target label --folds 2 --test-fraction 0.3",
    ] {
        let fitted = folder.run(&format!("{command} -o m.mtmkl"));
        assert!(fitted.code < 2, "{command}: {}", fitted.stderr);
        let data = command.split(' ').nth(1).unwrap();
        folder.run(&format!("verify m.mtmkl {data}")).good();
    }
    let values: Vec<f64> = (0..24 * 24)
        .map(|at| if at / 24 == at % 24 { 2.0 } else { 1.0 })
        .collect();
    folder.file("k.npy", npy(&values, 24));
    let fit = "fit two.csv --target label --kernel precomputed:path=k.npy --kernel rbf -o m.mtmkl";
    assert!(folder.run(fit).code < 2);
    let text = folder.run("verify m.mtmkl two.csv").good();
    assert!(text.contains("Taken for granted"), "{text}");
    std::fs::create_dir(folder.path("moved")).unwrap();
    std::fs::rename(folder.path("k.npy"), folder.path("moved/k.npy")).unwrap();
    folder.run("verify m.mtmkl two.csv").bad();
    folder
        .run("verify m.mtmkl two.csv --kernel-matrix moved/k.npy")
        .good();
}

#[test]
fn what_does_not_hold_is_named() {
    let folder = Folder::new();
    folder.file("tasks.csv", two_tasks(40));
    folder
        .run("fit tasks.csv --target label --task site -o m.mtmkl")
        .good();
    let good = folder.run("verify m.mtmkl tasks.csv --threads 1").good();
    assert!(good.contains("Every claim holds"), "{good}");
    assert_eq!(
        good,
        folder.run("verify m.mtmkl tasks.csv --threads 2").good()
    );
    let validator = schema();
    for (tensor, number, expected) in [
        ("theta", 0, "theta"),
        ("task.0.beta", 0, "beta"),
        ("outcome", 1, "bound"),
        ("outcome", 2, "gap"),
    ] {
        changed(&folder, "m.mtmkl", tensor, number);
        let ran = folder.run("verify changed.mtmkl tasks.csv --json");
        assert_eq!(ran.code, 1, "{tensor}: {}{}", ran.stdout, ran.stderr);
        let object = ran.json();
        let failures = object["failures"].as_array().unwrap();
        assert!(
            failures
                .iter()
                .any(|failure| failure["quantity"] == expected),
            "{tensor}: {object:#}"
        );
        assert!(validator.is_valid(&object), "{object:#}");
        let text = folder.run("verify changed.mtmkl tasks.csv").stdout;
        assert!(
            text.contains(&format!("Does not hold: {expected}")),
            "{text}"
        );
    }
}

/// Where rounding is more than the gap, and where it is more than all that is claimed.
#[test]
fn rounding_is_said_beside_the_verdict() {
    let folder = Folder::new();
    folder.file("apart.csv", "x,y\n0,a\n1,b\n2,a\n").file(
        "alike.csv",
        "x\n100000000\n100000001\n100000002\n100000004\n",
    );
    let plain = "--scale none --normalize none -o m.mtmkl";
    folder
        .run(&format!(
            "fit apart.csv --target y --kernel matern52:length=1e-155 {plain}"
        ))
        .good();
    let text = folder.run("verify m.mtmkl apart.csv").good();
    assert!(
        text.contains(
            "Every claim holds: the optimum is between bound and objective, up to rounding of"
        ),
        "{text}"
    );
    let fit = format!("fit alike.csv --features x --machine svdd --kernel linear {plain}");
    assert!(folder.run(&fit).code < 2);
    let ran = folder.run("verify m.mtmkl alike.csv");
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let cannot = "Cannot be told in double precision: rounding: it may be";
    assert!(ran.stdout.contains(cannot), "{}", ran.stdout);
    let object = folder.run("verify m.mtmkl alike.csv --json").json();
    assert!(schema().is_valid(&object), "{object:#}");
}

#[test]
fn other_data_are_refused_with_the_place() {
    let folder = Folder::new();
    let table = two_classes(24);
    folder.file("two.csv", &table);
    folder.run("fit two.csv --target label -o m.mtmkl").good();
    changed(&folder, "m.mtmkl", "set.0.rows", 0);
    let message = folder.run("verify changed.mtmkl two.csv").bad();
    assert!(
        message.contains("two.csv, line") && message.contains("not the row"),
        "{message}"
    );
    folder.file("fewer.csv", table.trim_end().rsplit_once('\n').unwrap().0);
    let message = folder.run("verify m.mtmkl fewer.csv").bad();
    assert!(message.contains("not those of the fit"), "{message}");
    let message = folder
        .run("verify m.mtmkl two.csv --kernel-matrix k.npy")
        .bad();
    assert!(message.contains("no precomputed kernel"), "{message}");
    let message = folder.run("verify missing.mtmkl two.csv").bad();
    assert!(message.contains("no such file"), "{message}");
}
