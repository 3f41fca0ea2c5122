//! Tasks in groups: `--tree`, `--tree-columns`, `--task-groups`.

use crate::fixture::{Folder, Transcript, sites, steady, three_classes};

const TREE: &str =
    "south = [\"s4\", \"s5\"]\n[north]\noslo = [\"s1\", \"s2\"]\nbergen = [\"s3\"]\n";
const FIT: &str = "--target fault --task site --kernel linear@a --kernel linear@b --no-baselines";

fn folder() -> Folder {
    let folder = Folder::new();
    folder
        .file("sites.csv", sites(12))
        .file("tree.toml", TREE)
        .file(
            "tree.json",
            r#"{"north": {"oslo": ["s1", "s2"], "bergen": ["s3"]}, "south": ["s4", "s5"]}"#,
        )
        .file(
            "groups.toml",
            "fjord = [\"s1\", \"s3\"]\nfell = [\"s3\", \"s4\"]\n",
        );
    folder
}

#[test]
fn a_tree_by_file_and_by_columns_is_the_same_tree() {
    let folder = folder();
    let fit = |flags: &str| {
        let ran = folder.run(&format!("fit sites.csv {FIT} {flags} --json"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.json()
    };
    let by_columns = fit("--sharing hierarchy --tree-columns region,town");
    let names = |object: &serde_json::Value| -> Vec<String> {
        let groups = object["groups"].as_array().unwrap().iter();
        let mut names: Vec<String> = groups
            .map(|group| format!("{} {}", group["name"], group["tasks"]))
            .collect();
        names.sort();
        names
    };
    assert_eq!(
        names(&by_columns),
        [
            r#""bergen" ["s3"]"#,
            r#""north" ["s1","s2","s3"]"#,
            r#""oslo" ["s1","s2"]"#,
            r#""south" ["s4","s5"]"#
        ]
    );
    // The tree names the sharing, where nothing else does.
    for flags in ["--sharing hierarchy --tree tree.json", "--tree tree.toml"] {
        let by_file = fit(&format!("--ignore region --ignore town {flags}"));
        assert_eq!(by_file["sharing"]["name"], "hierarchy");
        assert_eq!(names(&by_file), names(&by_columns));
        let (a, b) = (&by_file["objective"], &by_columns["objective"]);
        let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
        assert!((a - b).abs() <= 2e-4 * b, "{a} and {b}");
    }
    let overlapping = fit("--ignore region --ignore town --task-groups groups.toml");
    assert_eq!(
        names(&overlapping),
        [r#""fell" ["s3","s4"]"#, r#""fjord" ["s1","s3"]"#]
    );
}

#[test]
fn a_model_of_a_tree_is_shown_and_used_without_its_columns() {
    let folder = folder();
    let fitted = folder
        .run(&format!(
            "fit sites.csv {FIT} --sharing hierarchy --tree-columns region,town --q 2 --tol 1e-8 -o sites.model"
        ))
        .good();
    assert!(fitted.contains("region: north"), "{fitted}");
    let inspected = folder.run("inspect sites.model").good();
    insta::assert_snapshot!(steady(&inspected));
    let rows = sites(12);
    let bare: Vec<String> = rows
        .lines()
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            [cells[0], cells[3], cells[4], cells[5]].join(",")
        })
        .collect();
    folder.file("bare.csv", bare.join("\n"));
    let with = folder.run("predict sites.model sites.csv").good();
    let without = folder.run("predict sites.model bare.csv").good();
    assert_eq!(with, without);
    let scored = folder.run("evaluate sites.model bare.csv --json").json();
    assert!(scored["mean"].as_f64().unwrap() > 0.9, "{scored}");
    folder.run("report sites.model -o page.html").good();
    let page = std::fs::read_to_string(folder.path("page.html")).unwrap();
    assert!(page.contains("bergen"));
}

#[test]
fn settings_of_a_file_may_name_a_tree() {
    let folder = folder();
    folder.file(
        "run.toml",
        "sharing = \"hierarchy\"\ntree-columns = [\"region\", \"town\"]\nroot = false\nradii = [1.0, 0.5, 1.0]\n",
    );
    let ran = folder.run(&format!("fit sites.csv {FIT} --config run.toml --json"));
    let object = ran.json();
    assert_eq!(object["sharing"]["root"], false);
    assert_eq!(
        object["sharing"]["radii"],
        serde_json::json!([1.0, 0.5, 1.0])
    );
    assert!(object["common"].is_null());
    let printed = folder
        .run(&format!("fit {FIT} --config run.toml --print-config"))
        .good();
    for line in [
        "tree-columns = [\"region\", \"town\"]",
        "root = false",
        "leaves = true",
    ] {
        assert!(printed.contains(line), "{printed}");
    }
}

#[test]
fn a_tree_is_tuned_like_any_other_sharing() {
    let folder = folder();
    let ran = folder.run(&format!(
        "tune sites.csv {FIT} --tree-columns region,town --grid sharing=pscs,hierarchy --grid C=0.1,1 --folds 2 --json"
    ));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let object = ran.json();
    assert_eq!(
        object["tune"]["cells"].as_array().map(Vec::len),
        Some(4),
        "{object}"
    );
    let usual = folder.run(&format!(
        "tune sites.csv {FIT} --tree-columns region,town --folds 2 --json"
    ));
    assert_eq!(usual.code, 0, "{}", usual.stderr);
}

/// Machines for several classes are called `task: class`; a name in the tree stands for all of its task's.
#[test]
fn a_tree_of_tasks_with_several_classes() {
    let folder = folder();
    let rows = three_classes(60);
    let mut lines = rows.lines();
    let mut text = format!("site,{}\n", lines.next().unwrap());
    for (row, line) in lines.enumerate() {
        text += &format!("s{},{line}\n", 1 + row / 3 % 5);
    }
    folder.file("kinds.csv", text);
    let ran = folder.run(
        "fit kinds.csv --target kind --task site --sharing hierarchy --tree tree.toml --no-baselines --json",
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let groups = ran.json()["groups"].clone();
    let oslo = groups
        .as_array()
        .unwrap()
        .iter()
        .find(|group| group["name"] == "oslo");
    assert_eq!(
        oslo.unwrap()["tasks"].as_array().map(Vec::len),
        Some(6),
        "{groups}"
    );
    // Without a task column the machines of classes are the tasks.
    folder.file(
        "classes.toml",
        "hard = [\"ash\", \"birch\"]\nsoft = [\"cedar\"]\n",
    );
    folder.file("three.csv", three_classes(30));
    let ran = folder.run(
        "fit three.csv --target kind --multiclass ova --tree classes.toml --no-baselines --json",
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let groups = &ran.json()["groups"];
    assert_eq!(groups[0]["tasks"], serde_json::json!(["ash", "birch"]));
}

#[test]
fn trees_that_do_not_fit() {
    let folder = folder();
    folder
        .file(
            "unknown.toml",
            "north = [\"s1\", \"s2\", \"s3\", \"s9\"]\nsouth = [\"s4\", \"s5\"]\n",
        )
        .file(
            "missing.toml",
            "north = [\"s1\", \"s2\", \"s3\"]\nsouth = [\"s4\"]\n",
        )
        .file(
            "twice.toml",
            "north = [\"s1\", \"s2\", \"s3\"]\nsouth = [\"s3\", \"s4\", \"s5\"]\n",
        )
        .file("empty.toml", "north = []\n")
        .file("number.toml", "north = 3\n")
        .file("broken.toml", "north = [\n")
        .file("broken.json", "{\"north\": [\"s1\"\n");
    let mut shown = Transcript::new(&folder);
    let base = "fit sites.csv --target fault --task site --ignore town";
    shown
        .bad(&format!("{base} --ignore region --sharing hierarchy"))
        .bad(&format!("{base} --ignore region --sharing pscs --tree tree.toml"))
        .bad(&format!("{base} --sharing hierarchy --tree tree.toml --tree-columns region"))
        .bad("fit sites.csv --target fault --ignore site --ignore town --sharing hierarchy --tree-columns region")
        .bad(&format!("{base} --sharing hierarchy --tree-columns zone"))
        .bad(&format!("{base} --sharing hierarchy --tree-columns region,a"))
        .bad(&format!("{base} --ignore region --sharing hierarchy --tree nowhere.toml"))
        .bad(&format!("{base} --ignore region --sharing hierarchy --tree-columns region --radii 1,2"))
        .bad(&format!("{base} --sharing hierarchy --tree-columns region --root maybe"));
    for file in [
        "unknown.toml",
        "missing.toml",
        "twice.toml",
        "empty.toml",
        "number.toml",
        "broken.toml",
        "broken.json",
    ] {
        shown.bad(&format!(
            "{base} --ignore region --sharing hierarchy --tree {file}"
        ));
    }
    shown.bad(&format!("{base} --ignore region --task-groups tree.toml"));
    insta::assert_snapshot!(shown.text());
}
