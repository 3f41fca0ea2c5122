//! Probabilities of classes, and tasks with several classes each.

use std::fmt::Write as _;

use mtmkl::random::Random;

use crate::fixture::{Folder, Transcript};

/// Two columns, the task `u` or `v`, and a class by the first column and chance: three for `u`, two for `v`.
fn mixed(rows: usize, seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut text = String::from("a,b,site,kind\n");
    for row in 0..rows {
        let (a, b) = (random.uniform(), random.uniform());
        let noisy = a + 0.2 * (random.uniform() - 0.5);
        let (site, kind) = match row % 2 {
            0 if noisy < 0.33 => ("u", "ash"),
            0 if noisy < 0.66 => ("u", "birch"),
            0 => ("u", "cedar"),
            _ if noisy > 0.5 => ("v", "ash"),
            _ => ("v", "cedar"),
        };
        let _ = writeln!(text, "{a:.3},{b:.3},{site},{kind}");
    }
    text
}

const FIT: &str = "fit mixed.csv --target kind --task site --kernel linear --kernel rbf:sigma=1";

#[test]
fn tasks_may_have_several_classes_and_not_the_same() {
    let folder = Folder::new();
    folder.file("mixed.csv", mixed(240, 1));
    for (scheme, names) in [
        (
            "ovo",
            vec![
                "u: ash-birch",
                "u: ash-cedar",
                "u: birch-cedar",
                "v: ash-cedar",
            ],
        ),
        (
            "ova",
            vec!["u: ash", "u: birch", "u: cedar", "v: ash", "v: cedar"],
        ),
    ] {
        let fitted = folder
            .run(&format!(
                "{FIT} --multiclass {scheme} --test-fraction 0.4 -o m --json"
            ))
            .json();
        let found: Vec<&str> = fitted["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|task| task["name"].as_str().unwrap())
            .collect();
        assert_eq!(found, names);
        let learned = &fitted["scores"]["methods"][0];
        assert_eq!(learned["tasks"][0]["name"], "u");
        assert_eq!(learned["tasks"][1]["name"], "v");
        assert!(learned["mean"].as_f64().unwrap() > 0.75, "{learned}");
        // The tasks do not agree on what a large first column means, and pooling them shows it.
        let baselines = fitted["baselines"].as_array().unwrap();
        let pooled = baselines
            .iter()
            .find(|one| one["name"] == "pooled")
            .unwrap();
        assert!(pooled["mean"].as_f64().unwrap() < learned["mean"].as_f64().unwrap());
        let said = folder.run("predict m mixed.csv --decision").stdout;
        let of_v = said.lines().skip(1).filter(|line| line.contains(",v,"));
        assert!(of_v.clone().count() > 0 && of_v.clone().all(|line| !line.contains(",birch")));
        // A machine about `birch` says nothing about `v`.
        assert!(
            of_v.clone()
                .all(|line| line.contains(",,") || line.ends_with(','))
        );
    }
    let tuned = folder.run(
        "tune mixed.csv --target kind --task site --kernel linear --kernel rbf:sigma=1 --folds 3 --json",
    );
    assert!(
        tuned.json()["scores"]["methods"][0]["mean"]
            .as_f64()
            .unwrap()
            > 0.75
    );
    let said = folder
        .file("new.csv", "a,b,site\n0.1,0.2,w\n")
        .run("predict m new.csv --new-tasks")
        .bad();
    assert!(
        said.contains("which of several classes a new task has is not known"),
        "{said}"
    );
}

#[test]
fn probabilities_are_scored_and_printed() {
    let folder = Folder::new();
    folder
        .file("mixed.csv", mixed(300, 2))
        .file("new.csv", mixed(60, 3));
    let fitted = folder
        .run(&format!("{FIT} --probability --test new.csv -o m --json"))
        .json();
    let metrics = |name: &str| {
        let methods = fitted["scores"]["methods"].as_array().unwrap();
        let method = methods.iter().find(|one| one["name"] == name).unwrap();
        method["metrics"].clone()
    };
    let log_loss = |name: &str| metrics(name)["log-loss"]["mean"].as_f64().unwrap();
    // The shares of classes are what a model without columns knows.
    assert!(
        log_loss("learned") < 0.8 * log_loss("majority class"),
        "{fitted}"
    );
    assert!(metrics("learned")["Brier"]["mean"].as_f64().unwrap() < 0.4);
    assert!(metrics("uniform")["log-loss"].is_null());
    let said = folder.run("predict m new.csv --probability").stdout;
    let mut lines = said.lines();
    assert_eq!(
        lines.next().unwrap(),
        "row,task,prediction,probability ash,probability birch,probability cedar"
    );
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let p: Vec<f64> = cells[3..]
            .iter()
            .map(|cell| cell.parse().unwrap())
            .collect();
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(cells[1] == "u" || p[1] == 0.0, "{line}");
    }
    let json = folder.run("predict m new.csv --probability --json").json();
    assert_eq!(json["classes"].as_array().unwrap().len(), 3);
    assert_eq!(
        json["predictions"][0]["probabilities"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    let judged = folder
        .run("evaluate m new.csv --metric log-loss --json")
        .json();
    assert_eq!(judged["metric"], "log-loss");
    assert!((judged["mean"].as_f64().unwrap() - log_loss("learned")).abs() < 1e-12);
    // Also of what tune chooses.
    folder.run("tune mixed.csv --target kind --task site --kernel linear --grid C=1,10 --folds 3 --probability -o t --quiet");
    assert_eq!(folder.run("predict t new.csv --probability").code, 0);
}

#[test]
fn where_there_are_none() {
    let folder = Folder::new();
    folder
        .file("mixed.csv", mixed(60, 4))
        .file("lone.csv", "a,label\n1,x\n2,y\n")
        .file("numbers.csv", "a,y\n1,0.5\n2,0.7\n3,0.9\n4,1.3\n");
    folder.run(&format!("{FIT} --quiet -o m"));
    let mut shown = Transcript::new(&folder);
    shown
        .bad("predict m mixed.csv --probability")
        .bad("evaluate m mixed.csv --metric log-loss")
        .bad("fit mixed.csv --target kind --ignore site --metric Brier")
        .bad("tune mixed.csv --target kind --ignore site --metric log-loss --probability")
        .bad("fit lone.csv --target label --kernel linear --probability")
        .bad("fit numbers.csv --target y --machine krr --probability");
    insta::assert_snapshot!(shown.text());
}
