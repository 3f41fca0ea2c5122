//! `tune` without a grid.

use mtmkl::random::Random;
use serde_json::Value;

use crate::fixture::{Folder, column, curve, three_classes, two_classes, two_tasks};
use crate::precomputed::npy;

/// The cells of a run without what takes time.
fn cells(object: &Value) -> Vec<Value> {
    let mut cells = object["tune"]["cells"].as_array().unwrap().clone();
    for cell in &mut cells {
        cell.as_object_mut().unwrap().remove("seconds");
    }
    cells
}

fn best(object: &Value) -> Value {
    let at = usize::try_from(object["tune"]["best"].as_u64().unwrap()).unwrap();
    object["tune"]["cells"][at].clone()
}

#[test]
fn single_kernels_their_average_and_learned_weights_are_tried() {
    for (text, flags, sharing) in [
        (two_classes(90), "--target label", "lp"),
        (three_classes(90), "--target kind", "common"),
        (
            two_tasks(120),
            "--target label --task site --grid tasks=weights",
            "pscs",
        ),
        (curve(80), "--target y --machine krr", "lp"),
        (curve(80), "--target y --machine svr", "lp"),
    ] {
        let folder = Folder::new();
        folder.file("t.csv", text);
        let flags = format!("t.csv {flags} --kernel linear --kernel rbf:sigma=0.5|1|2");
        let tuned = folder
            .run(&format!("tune {flags} -o m --picture p.svg --json"))
            .json();
        let all = cells(&tuned);
        let has = |kernels: usize, sharing: &str, p: Option<f64>| {
            all.iter().any(|cell| {
                cell["kernels"].as_array().unwrap().len() == kernels
                    && cell["sharing"]["name"] == sharing
                    && cell["sharing"]["p"].as_f64() == p
            })
        };
        assert!(
            has(1, "uniform", None) && has(2, "uniform", None),
            "{flags}"
        );
        for p in [1.0, 2.0, 4.0] {
            assert!(has(2, sharing, Some(p)), "{flags} {p}");
        }
        let best = best(&tuned);
        assert_eq!(best["folds"].as_array().unwrap().len(), 5);
        // Nothing that was fitted on all folds is better by more than what counts as a tie.
        for cell in all
            .iter()
            .filter(|cell| cell["folds"].as_array().unwrap().len() == 5)
        {
            assert!(cell["mean"].as_f64().unwrap() <= best["mean"].as_f64().unwrap() + 0.02);
        }
        // The model is that of the best cell, to the tolerance of a fit.
        let kept = folder.run("inspect m --json").json();
        assert_eq!(kept["machine"], best["machine"]);
        assert_eq!(kept["sharing"], best["sharing"]);
        assert!(tuned["gap"].as_f64().unwrap() <= 1e-4);
        assert!(folder.path("p.svg").exists());
        // The number of threads changes nothing.
        let one = folder
            .run(&format!("tune {flags} --threads 1 --json"))
            .json();
        assert_eq!(cells(&one), all);
        assert_eq!(one["tasks"], tuned["tasks"]);
        let text = folder.run(&format!("tune {flags}")).good();
        // A cell, and how columns are scaled.
        assert_eq!(text.matches("chosen").count(), 2, "{text}");
    }
}

#[test]
fn it_goes_on_from_any_line_of_its_journal() {
    let folder = Folder::new();
    folder.file("t.csv", three_classes(150));
    let flags = "tune t.csv --target kind --kernel linear --kernel rbf:sigma=0.5|1 --json";
    let whole = folder.run(&format!("{flags} --journal whole")).json();
    let text = std::fs::read_to_string(folder.path("whole")).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let total = lines.len() - 1;
    assert_eq!(whole["tune"]["fits"], total);
    for kept in [0, 1, 7, total / 2, total - 1, total] {
        folder.file("part", lines[..=kept].concat());
        let resumed = folder
            .run(&format!("{flags} --journal part --resume"))
            .json();
        assert_eq!(resumed["tune"]["computed"], total - kept);
        assert_eq!(cells(&resumed), cells(&whole));
        assert_eq!(resumed["tasks"], whole["tasks"]);
    }
    // Another kernel is another search.
    let other = flags.replace("0.5|1", "0.5|2");
    let said = folder
        .run(&format!("{other} --journal whole --resume"))
        .bad();
    assert!(said.contains("other settings"), "{said}");
}

#[test]
fn what_flags_say_is_not_searched_for() {
    let folder = Folder::new();
    folder
        .file("t.csv", two_classes(60))
        .file("three.csv", three_classes(60));
    let kernels = "--kernel linear --kernel rbf:sigma=1 --json";
    let tuned = folder
        .run(&format!(
            "tune t.csv --target label --C 2 --p 1.5 {kernels}"
        ))
        .json();
    let all = cells(&tuned);
    // The average, each kernel alone, learned weights.
    assert_eq!(all.len(), 4);
    for cell in &all {
        assert_eq!(cell["machine"]["C"], 2.0);
        assert!(cell["sharing"]["p"].is_null() || cell["sharing"]["p"] == 1.5);
    }
    let pairs = folder
        .run(&format!("tune three.csv --target kind --C 1 {kernels}"))
        .json();
    let against_all = folder
        .run(&format!(
            "tune three.csv --target kind --C 1 --multiclass ova {kernels}"
        ))
        .json();
    let first = |object: &Value| object["tasks"][0]["name"].as_str().unwrap().to_string();
    assert_ne!(first(&pairs), first(&against_all));
    // With a grid as well.
    let grid = folder
        .run(&format!(
            "tune three.csv --target kind --grid C=1 {kernels}"
        ))
        .json();
    assert_eq!(first(&grid), first(&pairs));
}

#[test]
fn a_nested_estimate_makes_everything_anew() {
    let folder = Folder::new();
    folder.file("t.csv", two_classes(90));
    let flags =
        "tune t.csv --target label --kernel linear --kernel rbf:sigma=0.5|1 --scale standard";
    let plain = folder.run(&format!("{flags} --json")).json();
    let nested = folder.run(&format!("{flags} --nested 3 --json")).json();
    // The model and its search are the same.
    assert_eq!(nested["tasks"], plain["tasks"]);
    assert_eq!(cells(&nested), cells(&plain));
    let scores = nested["tune"]["nested"]["folds"].as_array().unwrap();
    assert_eq!(scores.len(), 3);
    let mean = scores
        .iter()
        .map(|score| score.as_f64().unwrap())
        .sum::<f64>()
        / 3.0;
    assert!((nested["tune"]["nested"]["mean"].as_f64().unwrap() - mean).abs() < 1e-12);
    let text = folder.run(&format!("{flags} --nested 3")).good();
    assert!(text.contains("Nested, 3 outer folds"), "{text}");
    // Nothing is left behind.
    let left = std::fs::read_dir(folder.path(".")).unwrap().count();
    assert_eq!(left, 1);
    let said = folder.run("tune - --target label --nested 3").bad();
    assert!(said.contains("give a file"), "{said}");
}

#[test]
fn a_price_that_the_data_chooses_is_said() {
    let folder = Folder::new();
    folder
        .file("t.csv", two_tasks(120))
        .file("y.csv", curve(80));
    let kernels = "--kernel linear --kernel rbf:sigma=0.5|1|2";
    for (flags, name, by) in [
        ("t.csv --target label --task site --C auto", "C", "5 folds"),
        (
            "t.csv --target label --task site --C auto --metric AUC",
            "C",
            "AUC on 5 folds",
        ),
        (
            "t.csv --target label --task site --transfer all,own --C auto --metric AUC",
            "C",
            "AUC on 5 folds",
        ),
        ("y.csv --target y --machine svr --C auto", "C", "5 folds"),
        (
            "y.csv --target y --machine krr --lambda auto --metric RMSE",
            "lambda",
            "leave-one-out errors",
        ),
        (
            "y.csv --target y --machine krr --lambda auto --metric MAE",
            "lambda",
            "MAE on 5 folds",
        ),
    ] {
        let fitted = folder.run(&format!("fit {flags} {kernels} --json")).json();
        let value = fitted["chosen"][name].as_f64().unwrap();
        assert_eq!(fitted["machine"][name].as_f64().unwrap(), value);
        assert_eq!(fitted["chosen"]["by"], by);
        let text = folder.run(&format!("fit {flags} {kernels}")).good();
        assert!(text.contains(&format!("{name} = ")) && text.contains(&format!("chosen by {by}")));
        // The same as a fit with that number, and with one thread.
        let number = flags.replace("auto", &value.to_string());
        let given = folder.run(&format!("fit {number} {kernels} --json")).json();
        assert_eq!(given["tasks"], fitted["tasks"]);
        let one = folder
            .run(&format!("fit {flags} {kernels} --threads 1 --json"))
            .json();
        assert_eq!(one["chosen"], fitted["chosen"]);
    }
    // As a setting, too.
    let settings = folder.run("fit y.csv --C auto --print-config").good();
    assert!(settings.contains("C = \"auto\""), "{settings}");
    folder.file("run.toml", settings);
    folder
        .run("fit t.csv --target label --task site --config run.toml")
        .good();
    let said = folder
        .run("fit t.csv --ignore label --ignore site --machine ocsvm --nu auto")
        .bad();
    assert!(said.contains("targets to choose it by"), "{said}");
}

#[test]
fn precomputed_kernels_are_searched_too() {
    let folder = Folder::new();
    let text = two_classes(40);
    folder.file("t.csv", &text);
    let rows = column(&text, "a").into_iter();
    let rows: Vec<f64> = rows.map(|value| value.parse().unwrap()).collect();
    for (name, power) in [("k1.npy", 1), ("k2.npy", 2)] {
        let row = |a: &f64| {
            let a = *a;
            rows.iter().map(move |b| (1.0 + a * b).powi(power))
        };
        let matrix: Vec<f64> = rows.iter().flat_map(row).collect();
        folder.file(name, npy(&matrix, rows.len()));
    }
    let kernels = "--kernel precomputed:path=k1.npy --kernel precomputed:path=k2.npy";
    let tuned = folder
        .run(&format!("tune t.csv --target label {kernels} -o m --json"))
        .json();
    // Each alone, too.
    let all = cells(&tuned);
    assert!(
        all.iter()
            .any(|cell| cell["kernels"][0].as_str().unwrap().contains("k2"))
    );
    assert_eq!(best(&tuned)["folds"].as_array().unwrap().len(), 5);
    let kept = folder.run("inspect m --json").json();
    assert_eq!(kept["machine"], best(&tuned)["machine"]);
}

#[test]
fn a_class_with_fewer_rows_than_folds_is_no_obstacle() {
    let folder = Folder::new();
    let mut table = three_classes(60);
    table += "9,9,1,yew\n";
    folder.file("rare.csv", table);
    let ran = folder.run("tune rare.csv --target kind --json");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let said = "note: class `yew` has 1 row, fewer than the 5 folds; each of its rows is kept aside in one of them, a row that is alone in none";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    assert_eq!(ran.json()["tune"]["folds"], 5);
}

/// Whether a row is near a corner of a square; the third column is noise, a thousand times as large.
fn loud(rows: usize) -> String {
    let mut random = Random::new(8);
    let mut text = String::from("a,b,noise,label\n");
    for _ in 0..rows {
        let (a, b, noise) = (random.uniform(), random.uniform(), random.uniform());
        let label = if a + b > 1.0 { "far" } else { "near" };
        text += &format!("{a:.3},{b:.3},{:.3},{label}\n", 1000.0 * noise);
    }
    text
}

#[test]
fn scaling_normalisation_and_class_weights_by_name() {
    let folder = Folder::new();
    folder.file("loud.csv", loud(120));
    let kernels = "--kernel linear --kernel rbf:sigma=median";
    let grid = "--grid scale=none,standard --grid normalize=unit,variance --grid C=1,10";
    let flags = format!("tune loud.csv --target label {kernels} {grid}");
    let tuned = folder.run(&format!("{flags} -o m --json")).json();
    let variants = tuned["tune"]["variants"].as_array().unwrap();
    assert_eq!(variants.len(), 4);
    let chosen = &variants[usize::try_from(tuned["tune"]["variant"].as_u64().unwrap()).unwrap()];
    assert_eq!(chosen["flags"]["scale"], "standard");
    for variant in variants {
        assert!(variant["mean"].as_f64() <= chosen["mean"].as_f64());
        if variant["flags"]["scale"] == "none" {
            assert!(variant["mean"].as_f64().unwrap() < chosen["mean"].as_f64().unwrap() - 0.1);
        }
    }
    assert_eq!(tuned["tune"]["cells"].as_array().unwrap().len(), 2);
    assert_eq!(best(&tuned)["mean"], chosen["mean"]);
    // The model is scaled as the winner was; and the settings say so.
    let bytes = std::fs::read(folder.path("m")).unwrap();
    let text = String::from_utf8_lossy(&bytes).replace('\\', "");
    assert!(text.contains("nscale = \"standard\""));
    // No journal is left, of whatever variant.
    let left = std::fs::read_dir(folder.path(".")).unwrap();
    let left = left.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().contains("journal")
    });
    assert_eq!(left.count(), 0);
    let text = folder.run(&flags).good();
    assert!(
        text.contains("scale") && text.contains("normalize"),
        "{text}"
    );
    // Without other values each variant is searched as usual; classes are balanced where the metric counts them alike.
    let weighted = folder
        .run(&format!(
            "tune loud.csv --target label {kernels} --grid class-weight=none,balanced --scale standard --json"
        ))
        .json();
    assert_eq!(weighted["tune"]["variants"].as_array().unwrap().len(), 2);
    assert!(cells(&weighted).len() > 6);
    let even = folder
        .run(&format!(
            "tune loud.csv --target label {kernels} --scale standard --metric balanced-accuracy --json"
        ))
        .json();
    let tried = even["tune"]["variants"].as_array().unwrap();
    assert_eq!(tried[1]["flags"]["class-weight"], "balanced");
    let named = folder
        .run("tune loud.csv --target label --grid C=1 --kernel-set flat=linear --kernel-set round=rbf:sigma=median;rbf:sigma=median*2")
        .good();
    assert!(named.contains("flat") && named.contains("round"), "{named}");
    for (grid, wanted) in [
        ("scale=loud", "there is no scale `loud`"),
        ("class-weight=3", "expected none or balanced"),
        ("scale=none --grid scale=minmax", "in the grid already"),
    ] {
        let said = folder
            .run(&format!("tune loud.csv --target label --grid {grid}"))
            .bad();
        assert!(said.contains(wanted), "{said}");
    }
}
