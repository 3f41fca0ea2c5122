//! What each command prints when all goes well, as a table and as JSON.

use crate::fixture::{
    Folder, Transcript, curve, steady_json, three_classes, two_classes, two_tasks,
};

/// Solved so well that three digits are the same everywhere.
const EXACT: &str = "--tol 1e-9";

fn tables() -> Folder {
    let folder = Folder::new();
    folder
        .file("two.csv", two_classes(24))
        .file("three.csv", three_classes(30))
        .file("tasks.csv", two_tasks(40))
        .file("curve.csv", curve(30));
    folder
}

#[test]
fn one_task() {
    let folder = tables();
    let mut shown = Transcript::new(&folder);
    shown
        .run(&format!(
            "fit two.csv --target label --kernel linear --kernel rbf:sigma=1|2 {EXACT} -o two.model"
        ))
        .run("inspect two.model")
        .run("evaluate two.model two.csv");
    insta::assert_snapshot!(shown.text());
}

#[test]
fn two_tasks_that_share() {
    let folder = tables();
    let mut shown = Transcript::new(&folder);
    shown
        .run(&format!(
            "fit tasks.csv --target label --task site --kernel rbf@a --kernel rbf@b --kernel rbf {EXACT} --baselines \
             --test-fraction 0.25 -o tasks.model"
        ))
        .run("inspect tasks.model")
        .run("evaluate tasks.model tasks.csv")
        .run("report tasks.model -o page.html");
    insta::assert_snapshot!(shown.text());
    let page = std::fs::read_to_string(folder.path("page.html")).unwrap();
    assert!(page.contains("<html") && page.contains("south"));
}

#[test]
fn many_tasks_stand_in_rows() {
    let folder = tables();
    let mut table = String::from("task,a,b,label\n");
    for (row, line) in two_classes(56).lines().skip(1).enumerate() {
        table += &format!("{},{line}\n", row / 8 + 5);
    }
    folder.file("seven.csv", table);
    let mut shown = Transcript::new(&folder);
    // Without the scores, which say nothing new.
    let ran = folder.run(&format!(
        "fit seven.csv --target label --task task --kernel linear --kernel rbf --sharing group {EXACT} -o seven.model"
    ));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    shown.run("inspect seven.model");
    insta::assert_snapshot!(shown.text());
}

#[test]
fn several_classes() {
    let folder = tables();
    let mut shown = Transcript::new(&folder);
    shown.run(&format!(
        "fit three.csv --target kind --kernel linear --kernel rbf {EXACT} --scale standard -o three.model"
    ));
    insta::assert_snapshot!(shown.text());
}

#[test]
fn numbers() {
    let folder = tables();
    let mut shown = Transcript::new(&folder);
    shown.run(&format!(
        "fit curve.csv --target y --machine krr --lambda 0.01 --kernel linear --kernel rbf {EXACT}"
    ));
    insta::assert_snapshot!(shown.text());
}

#[test]
fn one_class() {
    let folder = tables();
    let mut shown = Transcript::new(&folder);
    shown
        .run(&format!(
            "fit two.csv --machine ocsvm --nu 0.2 --ignore label --kernel rbf:sigma=1|4 {EXACT}"
        ))
        .run(&format!(
            "fit two.csv --machine svdd --target label --C 0.1 --kernel rbf:sigma=1|4 {EXACT}"
        ));
    insta::assert_snapshot!(shown.text());
}

#[test]
fn predictions() {
    let folder = tables();
    folder.file("new.csv", "b,a\n1,0.2\n1,2.4\n");
    folder.file("new_tasks.csv", "site,a,b\nsouth,1,2.5\nnorth,1,2.5\n");
    folder
        .run(&format!(
            "fit two.csv --target label --kernel linear {EXACT} -o two.model"
        ))
        .good();
    folder
        .run(&format!(
            "fit tasks.csv --target label --task site --kernel rbf@a --kernel rbf@b {EXACT} -o tasks.model"
        ))
        .good();
    let mut shown = Transcript::new(&folder);
    shown
        .run("predict two.model new.csv")
        .run("predict two.model new.csv --json")
        .run("predict tasks.model new_tasks.csv")
        .run("predict tasks.model new_tasks.csv --json")
        .run("predict two.model new.csv -o out.csv");
    insta::assert_snapshot!(shown.text());
    assert_eq!(
        std::fs::read_to_string(folder.path("out.csv")).unwrap(),
        "row,prediction\n1,no\n2,yes\n"
    );
    let decisions = folder
        .run("predict two.model new.csv --decision --json")
        .json();
    insta::assert_snapshot!("decisions", steady_json(&decisions));
}

#[test]
fn json_of_each_command() {
    let folder = tables();
    let fitted = folder
        .run(&format!(
            "fit tasks.csv --target label --task site --kernel rbf@a --kernel rbf@b {EXACT} --baselines -o m --json"
        ))
        .json();
    insta::assert_snapshot!("fit_json", steady_json(&fitted));
    // What inspect says is what fit said, but for the baselines, which are among its scores, and how it went about memory.
    let mut inspected = folder.run("inspect m --json").json();
    inspected["baselines"] = fitted["baselines"].clone();
    inspected["memory"] = fitted["memory"].clone();
    inspected["storage"] = fitted["storage"].clone();
    assert_eq!(inspected, fitted);
    let evaluated = folder.run("evaluate m tasks.csv --json").json();
    insta::assert_snapshot!("evaluate_json", steady_json(&evaluated));
    let mut demo = folder.run("demo --json").json();
    for task in demo["tasks"].as_array_mut().unwrap() {
        // The weights are in the table's snapshot.
        task.as_object_mut().unwrap().remove("weights");
    }
    for part in ["common", "specific"] {
        assert!(demo.as_object_mut().unwrap().remove(part).is_some());
    }
    insta::assert_snapshot!("demo_json", steady_json(&demo));
}

#[test]
fn the_demo_writes_its_files() {
    let folder = Folder::new();
    let mut shown = Transcript::new(&folder);
    shown.run("demo --output iris");
    insta::assert_snapshot!(shown.text());
    let start = |name: &str| std::fs::read(folder.path("iris").join(name)).unwrap()[..4].to_vec();
    assert_eq!(start("boundaries.svg"), b"<svg");
    assert!(!start("report.html").is_empty());
    // Its own folder is ignored by git; one that was there is left as it is.
    let ignored = |name: &str| std::fs::read_to_string(folder.path(name).join(".gitignore"));
    assert_eq!(ignored("iris").unwrap(), "*\n");
    assert!(
        folder
            .run("demo")
            .good()
            .contains("mtmkl-demo/report.html, mtmkl-demo/boundaries.svg")
    );
    assert_eq!(ignored("mtmkl-demo").unwrap(), "*\n");
    let own: Vec<_> = std::fs::read_dir(folder.root()).unwrap().collect();
    assert_eq!(own.len(), 2, "{own:?}");
    std::fs::create_dir(folder.path("there")).unwrap();
    folder.run("demo --output there").good();
    assert!(ignored("there").is_err() && folder.path("there/report.html").exists());
}

#[test]
fn a_model_on_two_columns_has_its_picture_in_the_report() {
    let folder = tables();
    let flags = "--kernel rbf:sigma=1 --scale standard -o two.model --report two.html";
    folder
        .run(&format!("fit two.csv --target label {flags}"))
        .good();
    let page = |name: &str| std::fs::read_to_string(folder.path(name)).unwrap();
    assert!(page("two.html").contains("The decision boundary over a and b"));
    folder.run("report two.model -o again.html").good();
    assert_eq!(page("again.html"), page("two.html"));
    folder
        .run("fit three.csv --target kind --kernel linear --report three.html")
        .good();
    assert!(!page("three.html").contains("id=\"pictures\""));
}

#[test]
fn the_trace_goes_to_standard_error() {
    let folder = tables();
    let ran = folder.run("fit two.csv --target label -v");
    assert_eq!(ran.code, 0);
    assert!(
        ran.stderr.starts_with("pass    1  objective "),
        "{}",
        ran.stderr
    );
    // Without it, and without a terminal, there is silence.
    assert_eq!(folder.run("fit two.csv --target label").stderr, "");
}
