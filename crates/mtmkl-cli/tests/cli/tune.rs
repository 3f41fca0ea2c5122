//! `tune`: scores against fits by hand, the journal, bad input.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use crate::fixture::{Folder, Transcript, curve, noise, three_classes, two_classes, two_tasks};

/// The cells of a run without what takes time.
fn cells(object: &Value) -> Vec<Value> {
    let mut cells = object["tune"]["cells"].as_array().unwrap().clone();
    for cell in &mut cells {
        cell.as_object_mut().unwrap().remove("seconds");
    }
    cells
}

/// A table with a last column that names folds `a` and `b`, and the rows of each as tables of their own.
fn halves(folder: &Folder, text: &str) {
    let (mut both, mut a, mut b) = (String::new(), String::new(), String::new());
    for (number, line) in text.lines().enumerate() {
        if number == 0 {
            let _ = writeln!(both, "{line},fold");
            let _ = writeln!(a, "{line}");
            let _ = writeln!(b, "{line}");
        } else {
            // In blocks, so that both halves have all classes and tasks.
            let first = (number / 7) % 2 == 0;
            let _ = writeln!(both, "{line},{}", if first { "a" } else { "b" });
            let _ = writeln!(if first { &mut a } else { &mut b }, "{line}");
        }
    }
    folder
        .file("both.csv", both)
        .file("a.csv", a)
        .file("b.csv", b);
}

#[test]
fn scores_are_those_of_fits_by_hand() {
    for (text, flags) in [
        (three_classes(84), "--target kind"),
        (three_classes(84), "--target kind --multiclass ovo"),
        (two_tasks(84), "--target label --task site"),
        (curve(84), "--target y --machine krr"),
        (curve(84), "--target y --machine svr"),
    ] {
        let folder = Folder::new();
        halves(&folder, &text);
        // What all rows given are measured by, a half alone would measure otherwise.
        let kernels = "--kernel linear --kernel rbf:sigma=0.5|1|2 --scale none --normalize none";
        let (axis, values) = if flags.contains("krr") {
            ("lambda", ["0.1", "1"])
        } else {
            ("C", ["0.1", "2"])
        };
        for metric in if flags.contains("--machine") {
            ["R2", "RMSE"]
        } else {
            ["accuracy", "auc"]
        } {
            let tuned = folder
                .run(&format!(
                    "tune both.csv {flags} {kernels} --group fold --folds 2 --grid {axis}={} --metric {metric} --json",
                    values.join(",")
                ))
                .json();
            for (cell, value) in tuned["tune"]["cells"]
                .as_array()
                .unwrap()
                .iter()
                .zip(values)
            {
                let mut by_hand = Vec::new();
                for (learn, held) in [("a", "b"), ("b", "a")] {
                    folder
                        .run(&format!(
                            "fit {learn}.csv {flags} {kernels} --{axis} {value} -o m"
                        ))
                        .good();
                    let score = folder
                        .run(&format!("evaluate m {held}.csv --metric {metric} --json"))
                        .json();
                    by_hand.push(score["mean"].as_f64().unwrap());
                }
                let mut found: Vec<f64> = cell["folds"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|score| score.as_f64().unwrap())
                    .collect();
                // Which half is the first fold is the program's choice.
                found.sort_by(f64::total_cmp);
                by_hand.sort_by(f64::total_cmp);
                for (x, y) in found.iter().zip(&by_hand) {
                    assert!(
                        (x - y).abs() < 1e-3,
                        "{flags} {metric} {value}: {found:?} {by_hand:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_best_cell_is_chosen_fitted_and_saved() {
    let folder = Folder::new();
    folder.file("tasks.csv", two_tasks(80));
    let flags = "tune tasks.csv --target label --task site --grid C=1/9,1,9 --grid q=1,2 --grid sharing=pscs,common,uniform --folds 4";
    let tuned = folder
        .run(&format!(
            "{flags} -o m --picture grid.svg --report page.html --json"
        ))
        .json();
    let all = cells(&tuned);
    // q only where there is a q.
    assert_eq!(all.len(), 3 * 2 + 3 + 3);
    assert_eq!(tuned["tune"]["fits"], 4 * 12);
    let best = usize::try_from(tuned["tune"]["best"].as_u64().unwrap()).unwrap();
    let means: Vec<f64> = all
        .iter()
        .map(|cell| cell["mean"].as_f64().unwrap())
        .collect();
    assert!(means.iter().all(|mean| *mean <= means[best]));
    let first = means.iter().position(|mean| *mean == means[best]).unwrap();
    assert_eq!(first, best);
    let kept = folder.run("inspect m --json").json();
    assert_eq!(kept["machine"], all[best]["machine"]);
    assert_eq!(kept["sharing"], all[best]["sharing"]);
    // The same as a fit with these settings.
    let c = all[best]["machine"]["C"].as_f64().unwrap();
    let sharing = all[best]["sharing"]["name"].as_str().unwrap();
    let q = all[best]["sharing"]["q"].as_f64().unwrap_or(1.0);
    let fitted = folder
        .run(&format!(
            "fit tasks.csv --target label --task site --C {c} --sharing {sharing} --q {q} --json"
        ))
        .json();
    assert_eq!(fitted["tasks"], tuned["tasks"]);
    let svg = std::fs::read_to_string(folder.path("grid.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains(&format!("{:.4}", means[best])));
    assert!(
        std::fs::read_to_string(folder.path("page.html"))
            .unwrap()
            .contains("over the grid")
    );
    // Nothing is left behind, and the number of threads changes nothing.
    assert!(!folder.path("mtmkl-tune.journal").exists());
    let one = folder.run(&format!("{flags} --threads 1 --json")).json();
    assert_eq!(cells(&one), all);
    let text = folder.run(flags).good();
    assert!(text.starts_with("12 cells, 4 folds: 48 fits\n"), "{text}");
    assert_eq!(text.matches("chosen").count(), 1);
}

#[test]
fn kernel_sets_splits_and_settings_from_a_file() {
    let folder = Folder::new();
    folder.file("t.csv", two_classes(60));
    let sets = [
        "--kernel-set",
        "linear",
        "--kernel-set",
        "rbf:sigma=1;linear",
    ];
    let flags = [
        "tune",
        "t.csv",
        "--target",
        "label",
        "--json",
        "--validation-fraction",
        "0.4",
        "--repeats",
        "3",
    ];
    let tuned = folder
        .run_all(&[&flags[..], &sets, &["--grid", "C=1,10"]].concat())
        .json();
    assert_eq!(tuned["tune"]["folds"], 3);
    let all = cells(&tuned);
    assert_eq!(all.len(), 4);
    assert_eq!(all[0]["kernels"], serde_json::json!(["linear"]));
    assert_eq!(
        all[2]["kernels"],
        serde_json::json!(["rbf:sigma=1", "linear"])
    );
    // A set of one kernel scores as that kernel does alone.
    let alone = folder
        .run_all(&[&flags[..], &["--grid", "C=1,10", "--kernel", "linear"]].concat())
        .json();
    assert_eq!(alone["tune"]["cells"][1]["folds"], all[1]["folds"]);
    folder.file(
        "run.toml",
        "target = \"label\"\ngrid = [\"C=1,10\"]\nfolds = 3\nkernel = [\"linear\"]\n",
    );
    let from_file = folder.run("tune t.csv --config run.toml --json").json();
    assert_eq!(from_file["tune"]["folds"], 3);
    assert_eq!(cells(&from_file).len(), 2);
}

#[test]
fn a_cell_that_does_not_converge_is_marked_kept_and_counted() {
    let folder = Folder::new();
    folder.file("noise.csv", noise(80));
    let flags = "tune noise.csv --target label --task site --grid C=1,10 --folds 2 --tol 1e-12 --max-passes 2";
    let ran = folder.run(flags);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stdout
            .contains("* 4 fits of 4 did not reach the tolerance"),
        "{}",
        ran.stdout
    );
    let tuned = folder.run(&format!("{flags} --json")).json();
    assert_eq!(tuned["tune"]["not_converged"], 4);
    assert_eq!(tuned["tune"]["cells"][0]["not_converged"], 2);
}

/// The (cell, fold) pairs of a journal; each must be there once.
#[cfg(unix)]
fn recorded(text: &str) -> BTreeSet<(u64, u64)> {
    let mut pairs = BTreeSet::new();
    for line in text.lines().skip(1) {
        let line: Value = serde_json::from_str(line).unwrap();
        let pair = (
            line["cell"].as_u64().unwrap(),
            line["fold"].as_u64().unwrap(),
        );
        assert!(pairs.insert(pair), "{pair:?} was computed twice");
    }
    pairs
}

#[cfg(unix)]
fn interrupted(signal: &str) {
    use std::process::{Command, Stdio};

    let folder = Folder::new();
    folder.file("noise.csv", noise(600));
    let flags = "tune noise.csv --target label --task site --grid C=1/9,1/3,1,3,9 --grid q=1,1.5,2 --json --journal";
    let whole = folder.run(&format!("{flags} whole")).json();
    let total = usize::try_from(whole["tune"]["fits"].as_u64().unwrap()).unwrap();
    assert_eq!(whole["tune"]["computed"], whole["tune"]["fits"]);
    let mut child = folder
        .command()
        .args(flags.split(' '))
        .arg("part")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = || std::fs::read_to_string(folder.path("part")).unwrap_or_default();
    while lines().lines().count() < 8 {
        assert!(
            child.try_wait().unwrap().is_none(),
            "it ended before it could be stopped"
        );
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let killed = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let status = child.wait().unwrap();
    assert_eq!(status.code(), (signal == "-INT").then_some(1));
    // Half a line, as a kill in the middle of writing would leave it.
    let mut text = lines();
    if text.ends_with('\n') {
        text += "{\"cell\":3,\"fo";
        folder.file("part", &text);
    }
    let before = text.lines().count() - 2;
    assert!(before >= 7 && before < total, "{before} of {total}");
    // Not by accident.
    assert!(
        folder
            .run(&format!("{flags} part"))
            .bad()
            .contains("--resume")
    );
    let resumed = folder.run(&format!("{flags} part --resume")).json();
    assert_eq!(resumed["tune"]["computed"], total - before);
    assert_eq!(resumed["tune"]["best"], whole["tune"]["best"]);
    assert_eq!(cells(&resumed), cells(&whole));
    assert_eq!(resumed["tasks"], whole["tasks"]);
    let left: Vec<_> = std::fs::read_dir(folder.path("."))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        // A name that begins with a dot was being written at the kill.
        .filter(|name| name.contains(".fold") && !name.starts_with('.'))
        .collect();
    assert!(left.is_empty(), "fits to start from are left: {left:?}");
    assert_eq!(recorded(&lines()).len(), total);
    // Once more: nothing is computed.
    let again = folder.run(&format!("{flags} part --resume")).json();
    assert_eq!(again["tune"]["computed"], 0);
    assert_eq!(cells(&again), cells(&whole));
}

#[cfg(unix)]
#[test]
fn after_kill_9_nothing_is_computed_twice() {
    interrupted("-9");
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_is_done() {
    interrupted("-INT");
}

#[test]
fn what_cannot_be_tuned() {
    let folder = Folder::new();
    folder
        .file("t.csv", two_classes(40))
        .file("tasks.csv", two_tasks(40))
        .file("y.csv", curve(20))
        .file(
            "rare.csv",
            "a,label\n1,x\n2,x\n3,x\n4,y\n5,y\n6,y\n7,x\n8,z\n9,z\n10,y\n11,y\n12,x\n",
        )
        .file(
            "groups.csv",
            "a,label,who\n1,x,p\n2,x,p\n3,x,p\n4,y,q\n5,y,q\n6,y,q\n",
        );
    let mut said = Transcript::new(&folder);
    for flags in [
        "rare.csv --target label --folds 5",
        "rare.csv --target label --folds 1",
        "tasks.csv --target label --task site --folds 11",
        "groups.csv --target label --group who --folds 2",
        "groups.csv --target label --group who --folds 3",
        "t.csv --target label --grid C=",
        "t.csv --target label --grid C",
        "t.csv --target label --grid C=1,two",
        "t.csv --target label --grid C=1,1/0",
        "t.csv --target label --grid C=1,-1",
        "t.csv --target label --grid C=1 --grid C=2",
        "t.csv --target label --grid gamma=1",
        "t.csv --target label --grid nu=0.1,0.2",
        "t.csv --target label --grid q=1,2",
        "t.csv --target label --grid sharing=lp,pscz",
        "tasks.csv --target label --task site --grid sharing=tang",
        "tasks.csv --target label --task site --grid p=0.5,2",
        "t.csv --target label --kernel-set ;",
        "t.csv --target label --kernel-set precomputed:k.npy",
        "t.csv --target label --metric RMSE",
        "t.csv --target label --metric acuracy",
        "y.csv --target y --machine krr --metric accuracy",
        "t.csv --target label --validation-fraction 1.5",
        "t.csv --target label --repeats 0",
        "t.csv --ignore label --machine ocsvm",
        "t.csv --target label --group nobody",
        "t.csv --target label --picture nowhere/p.svg",
        "missing.csv --target label",
    ] {
        said.bad(&format!("tune {flags}"));
        // Refused at the start: nothing was begun.
        assert!(!folder.path("mtmkl-tune.journal").exists(), "{flags}");
    }
    folder
        .run("tune t.csv --target label --grid C=1 --journal j")
        .good();
    said.bad("tune t.csv --target label --grid C=1 --journal j");
    said.bad("tune t.csv --target label --grid C=2 --journal j --resume");
    said.bad("tune t.csv --target label --grid C=2 --journal t.csv --resume");
    insta::assert_snapshot!("what_cannot_be_tuned", said.text());
}
