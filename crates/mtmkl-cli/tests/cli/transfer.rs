//! One machine on all tasks: `--transfer`, groups, similarities, tasks that were never seen.

use std::fmt::Write as _;

use crate::fixture::{Folder, Transcript};

/// Four sites in two regions: what is learned is common, the region's and the site's own.
fn sites() -> Folder {
    let fixture = Folder::new();
    let mut table = String::from("a,b,site,region,y\n");
    for i in 0..96_u32 {
        let (a, b) = (
            f64::from(i * 37 % 101) / 50.0 - 1.0,
            f64::from(i * 53 % 97) / 48.0 - 1.0,
        );
        let (site, region) = [
            ("oslo", "north"),
            ("bergen", "north"),
            ("rome", "south"),
            ("bari", "south"),
        ][i as usize % 4];
        let slope = if region == "north" { 1.0 } else { -1.0 };
        let own = if site == "oslo" { 0.5 } else { 0.0 };
        let y = 2.0 * a + slope * b + own + 0.1 * f64::from(i % 3);
        writeln!(table, "{a},{b},{site},{region},{y}").unwrap();
    }
    fixture.file("sites.csv", &table);
    fixture
}

fn json(folder: &Folder, command: &str) -> serde_json::Value {
    let ran = folder.run(command);
    assert_eq!(ran.code, 0, "{command}: {}", ran.stderr);
    ran.json()
}

const FIT: &str = "fit sites.csv --target y --machine krr --task site --kernel linear --lambda 0.1";

#[test]
fn groups_by_a_column_or_a_file() {
    let fixture = sites();
    let by_column =
        format!("{FIT} --task-groups region --transfer all,group,own --json -o column.model");
    let by_column = json(&fixture, &by_column);
    fixture.file(
        "tree.toml",
        "north = [\"oslo\", \"bergen\"]\nsouth = [\"rome\", \"bari\"]\n",
    );
    let by_file = format!("{FIT} --ignore region --tree tree.toml --transfer all,group,own --json");
    let by_file = json(&fixture, &by_file);
    assert_eq!(by_column["kernels"], by_file["kernels"]);
    // The order of tasks is the tree's, so that sums are rounded differently.
    let objective = |fit: &serde_json::Value| fit["objective"].as_f64().unwrap();
    let (column, file) = (objective(&by_column), objective(&by_file));
    assert!((column - file).abs() < 1e-12 * file, "{column} {file}");
    // As kernels say it one by one.
    let single = "fit sites.csv --target y --machine krr --task site --lambda 0.1 --task-groups region --json \
                  --kernel linear*all --kernel linear*group --kernel linear*own";
    assert_eq!(by_column["objective"], json(&fixture, single)["objective"]);
    // What regions share is found, and more than one line for all can say.
    let r2 = |fit: &serde_json::Value| fit["scores"]["methods"][0]["mean"].as_f64().unwrap();
    let pooled = "fit sites.csv --target y --machine krr --ignore site --ignore region --kernel linear --lambda 0.1 --json";
    let pooled = json(&fixture, pooled);
    assert!(
        r2(&by_column) > 0.95 && r2(&pooled) < 0.9,
        "{} {}",
        r2(&by_column),
        r2(&pooled)
    );
}

#[test]
fn all_alone_is_the_pooled_fit() {
    let fixture = sites();
    for machine in ["--machine krr --lambda 0.1", "--machine svr"] {
        let fit = format!(
            "fit sites.csv --target y --kernel linear --kernel rbf:sigma=1 --ignore region --json {machine}"
        );
        let together = json(
            &fixture,
            &format!("{fit} --task site --transfer all --no-task-offset"),
        );
        let pooled = json(&fixture, &format!("{fit} --ignore site"));
        let value = |fit: &serde_json::Value| fit["objective"].as_f64().unwrap();
        let (one, other) = (value(&together), value(&pooled));
        assert!((one - other).abs() <= 2e-4 * other, "{one} {other}");
    }
}

#[test]
fn a_task_that_was_never_seen() {
    let fixture = sites();
    fixture
        .run(&format!(
            "{FIT} --task-groups region --transfer all,group,own --quiet -o m"
        ))
        .good();
    fixture.file("new.csv", "a,b,site,region\n0.5,0.5,turin,south\n0.5,0.5,turin,south\n0.5,0.5,paris,west\n0.5,0.5,rome,south\n");
    let ran = fixture.run("predict m new.csv");
    let (told, notes) = (&ran.stdout, &ran.stderr);
    let values: Vec<f64> = told
        .lines()
        .skip(1)
        .map(|line| line.rsplit(',').next().unwrap().parse().unwrap())
        .collect();
    // In the south b counts against; where nothing is known of the group that says nothing.
    assert_eq!(values[0], values[1]);
    assert!(
        values[3] < values[0] && values[0] < values[2] - 0.03,
        "{values:?}"
    );
    assert!(
        notes.contains("`turin`; it is predicted from what all tasks and its group share"),
        "{notes}"
    );
    assert!(
        notes.contains("`paris`; it is predicted from what all tasks share"),
        "{notes}"
    );
    // Without the column only what all share is left.
    fixture.file("bare.csv", "a,b,site\n0.5,0.5,turin\n");
    let bare = fixture.run("predict m bare.csv").good();
    assert!(
        bare.lines()
            .nth(1)
            .unwrap()
            .ends_with(&values[2].to_string()),
        "{bare} {values:?}"
    );
}

#[test]
fn similarities_of_tasks() {
    let fixture = sites();
    fixture.file(
        "alike.csv",
        "task,bari,bergen,oslo,rome\noslo,0,1,1,0\nbergen,0,1,1,0\nrome,1,0,0,1\nbari,1,0,0,1\n",
    );
    let alike = json(
        &fixture,
        &format!(
            "{FIT} --ignore region --task-similarity alike.csv --transfer all,similarity,own --json"
        ),
    );
    let groups = json(
        &fixture,
        &format!("{FIT} --task-groups region --transfer all,group,own --json"),
    );
    // Ones within groups are groups.
    let value = |fit: &serde_json::Value| fit["objective"].as_f64().unwrap();
    assert!((value(&alike) - value(&groups)).abs() <= 2e-4 * value(&groups));
}

#[test]
fn slips_are_told() {
    let fixture = sites();
    fixture.file("tree.toml", "north = [\"oslo\", \"bergen\"]\n");
    fixture.file("alike.csv", "task,oslo,rome\noslo,1,0\nrome,0,1\n");
    let plain = "fit sites.csv --target y --machine krr --ignore region";
    let mut told = Transcript::new(&fixture);
    for flags in [
        "--transfer all,own --ignore site",
        "--kernel linear*own --ignore site",
        "--task site --transfer all,grop",
        "--task site --transfer all,group",
        "--task site --transfer all,group --tree tree.toml",
        "--task site --transfer all,similarity",
        "--task site --transfer all,similarity --task-similarity alike.csv",
        "--task site --no-task-offset",
        "--task site --kernel linear*",
        "--task site --kernel linear*site",
    ] {
        told.bad(&format!("{plain} {flags}"));
    }
    insta::assert_snapshot!(told.text());
}

#[test]
fn a_search_says_what_tasks_are_to_each_other() {
    let fixture = sites();
    let search = "tune sites.csv --target y --machine krr --task site --task-groups region --kernel linear --json --no-baselines";
    let found = json(&fixture, search);
    let ways: Vec<&str> = found["tune"]["variants"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["flags"]["tasks"].as_str())
        .collect();
    assert_eq!(
        ways[..5],
        ["weights", "separate", "pooled", "transfer", "hierarchy"]
    );
    let means: Vec<f64> = found["tune"]["variants"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["mean"].as_f64().unwrap())
        .collect();
    assert!(means[3] > means[2] + 0.05, "{means:?}");
    let some = format!("{search} --grid tasks=pooled,transfer --grid lambda=0.1,1");
    assert_eq!(
        json(&fixture, &some)["tune"]["variants"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn kernel_sets_of_a_search_have_offsets_of_tasks() {
    let fixture = sites();
    let search = "tune sites.csv --target y --machine krr --task site --ignore region --transfer all,own --json --no-baselines \
                  --grid lambda=0.1 --kernel-set constant --kernel-set linear";
    let found = json(&fixture, search);
    assert_eq!(
        found["kernels"],
        serde_json::json!(["linear*all", "linear*own", "constant*own"])
    );
}

#[test]
fn small_tasks_are_told_what_else_they_could_share() {
    let fixture = sites();
    let plain = "fit sites.csv --target y --machine krr --task site --ignore region --kernel linear --no-baselines";
    let said = "4 tasks of 24 rows on the mean share the weights of kernels";
    let text = fixture.run(plain).good();
    assert!(
        text.contains(said) && text.contains("mtmkl tune compares"),
        "{text}"
    );
    // Not where somebody chose.
    for flags in [
        "--transfer all,own",
        "--sharing pscs",
        "--kernel linear*own",
    ] {
        let text = fixture.run(&format!("{plain} {flags}")).good();
        assert!(!text.contains(said), "{flags}");
    }
}
