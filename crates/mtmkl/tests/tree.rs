//! Trees of tasks: from nested maps, from columns, from groups that overlap; and every way in which one does not fit the tasks.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use mtmkl::error::TreeProblem;
use mtmkl::{Error, NamedLevel, TaskTree};

const NESTED: &str = r#"{"north": {"oslo": ["a", "b"], "bergen": ["c"]}, "south": ["d"]}"#;

fn tree(json: &str) -> TaskTree {
    serde_json::from_str(json).unwrap()
}

fn level(label: &str, groups: &[(&str, &[usize])]) -> NamedLevel {
    NamedLevel {
        label: label.to_string(),
        groups: groups
            .iter()
            .map(|(name, tasks)| (name.to_string(), tasks.to_vec()))
            .collect(),
    }
}

fn problem(result: mtmkl::Result<impl std::fmt::Debug>) -> TreeProblem {
    match result.unwrap_err() {
        Error::Tree(problem) => problem,
        other => panic!("{other}"),
    }
}

#[test]
fn a_tree_of_uneven_depth_has_the_groups_of_each_level() {
    let levels = tree(NESTED).levels(&["d", "c", "b", "a"]).unwrap();
    let outer = level("level 1", &[("north", &[1, 2, 3]), ("south", &[0])]);
    let inner = level("level 2", &[("oslo", &[2, 3]), ("bergen", &[1])]);
    assert_eq!(levels, [outer, inner]);
    assert_eq!(tree(NESTED).depth(), 2);
    assert_eq!(tree("{}").depth(), 0);
    assert!(tree("{}").levels(&["a"]).unwrap().is_empty());
}

#[test]
fn groups_of_one_name_in_several_places_are_told_apart() {
    let tree = tree(r#"{"north": {"coast": ["a"]}, "south": {"coast": ["b"], "hills": ["c"]}}"#);
    let levels = tree.levels(&["a", "b", "c"]).unwrap();
    let names: Vec<&str> = levels[1].groups.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["north/coast", "south/coast", "hills"]);
}

#[test]
fn a_name_stands_for_all_machines_of_its_task() {
    let tree = tree(r#"{"x": ["a", "a: b"], "y": [7]}"#);
    // The longest name wins: `a: b` is a task of its own.
    let machines = ["a: p-q", "a: b: p-q", "7: p-q", "a: b", "7"];
    let levels = tree.levels(&machines).unwrap();
    assert_eq!(
        levels,
        [level("level 1", &[("x", &[0, 1, 3]), ("y", &[2, 4])])]
    );
}

#[test]
fn columns_make_a_tree_with_their_names() {
    let rows = [
        ("a", vec![Some("north"), Some("oslo")]),
        ("d", vec![Some("south"), None]),
        ("a", vec![Some("north"), None]),
        ("c", vec![Some("north"), Some("bergen")]),
    ];
    let tree = TaskTree::from_columns(&["region", "town"], rows).unwrap();
    let levels = tree.levels(&["a", "c", "d"]).unwrap();
    let regions = level("region", &[("north", &[0, 1]), ("south", &[2])]);
    let towns = level("town", &[("oslo", &[0]), ("bergen", &[1])]);
    assert_eq!(levels, [regions, towns]);
}

#[test]
fn columns_that_do_not_agree_are_refused_with_task_column_and_values() {
    let rows = [("a", vec![Some("north")]), ("a", vec![Some("south")])];
    let error = TaskTree::from_columns(&["region"], rows).unwrap_err();
    let message = error.to_string();
    for word in ["`a`", "`region`", "`north`", "`south`"] {
        assert!(message.contains(word), "{message}");
    }
    let rows = [("a", vec![None, Some("oslo")])];
    let found = problem(TaskTree::from_columns(&["region", "town"], rows));
    let (task, column) = ("a".to_string(), "region".to_string());
    assert_eq!(found, TreeProblem::NoValue { task, column });
    // No value at all: the task is in no group.
    let tree = TaskTree::from_columns(&["region"], [("a", vec![None])]).unwrap();
    assert_eq!(tree.depth(), 0);
}

#[test]
fn groups_may_overlap_where_that_is_said() {
    let groups = || {
        [("x", vec!["a", "b"]), ("y", vec!["b", "c"])].map(|(name, tasks)| {
            let tasks = tasks.into_iter().map(String::from).collect();
            (name.to_string(), tasks)
        })
    };
    let tree = TaskTree::overlapping(groups()).unwrap();
    let levels = tree.levels(&["a", "b", "c", "d"]).unwrap();
    assert_eq!(levels, [level("groups", &[("x", &[0, 1]), ("y", &[1, 2])])]);
    let same: TaskTree = serde_json::from_str(r#"{"x": ["a", "b"], "y": ["b", "c"]}"#).unwrap();
    let first = problem(same.levels(&["a", "b", "c"]));
    assert!(matches!(&first, TreeProblem::TwoPlaces { task, .. } if task == "b"));
    assert_eq!(
        same.with_overlaps().levels(&["a", "b", "c"]).unwrap(),
        levels
    );
    let empty = TaskTree::overlapping([("x".to_string(), vec![])]);
    assert_eq!(problem(empty), TreeProblem::EmptyGroup("x".to_string()));
    let twice = groups().into_iter().chain(groups());
    assert_eq!(
        problem(TaskTree::overlapping(twice)),
        TreeProblem::GroupTwice("x".to_string())
    );
    // The same task twice in one group is no overlap.
    let twice = [("x".to_string(), vec!["a".to_string(), "a".to_string()])];
    let twice = TaskTree::overlapping(twice).unwrap();
    assert!(matches!(
        problem(twice.levels(&["a"])),
        TreeProblem::TwoPlaces { .. }
    ));
}

#[test]
fn tasks_that_do_not_fit_the_tree_are_named() {
    let found = problem(tree(NESTED).levels(&["a", "b", "c"]));
    assert!(
        matches!(&found, TreeProblem::UnknownTask { task, known } if task == "d" && known == "`a`, `b`, `c`")
    );
    let found = problem(tree(NESTED).levels(&["a", "b", "c", "d", "e"]));
    assert_eq!(found, TreeProblem::MissingTask("e".to_string()));
    let many: Vec<String> = (0..40).map(|number| format!("t{number}")).collect();
    let groups = [("x".to_string(), vec!["u".to_string()])];
    let message = TaskTree::overlapping(groups)
        .unwrap()
        .levels(&many)
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("`u`") && message.contains("(40 in all)"),
        "{message}"
    );
}

#[test]
fn what_is_no_tree_is_refused() {
    let refused = |json: &str| {
        let error = serde_json::from_str::<TaskTree>(json).unwrap_err();
        error.to_string()
    };
    assert!(refused(r#"["a"]"#).contains("groups of tasks by name"));
    assert!(refused(r#"{"x": 3}"#).contains("a list of names of tasks"));
    assert!(refused(r#"{"x": [["a"]]}"#).contains("the name of a task"));
    assert!(refused(r#"{"x": {"y": []}}"#).contains("group `x/y` has no tasks"));
    assert!(refused(r#"{"x": {}}"#).contains("group `x` has no tasks"));
    assert!(refused(r#"{"x": ["a"], "x": ["b"]}"#).contains("two groups `x`"));
    let deep = format!("{}[\"a\"]{}", r#"{"x":"#.repeat(5000), "}".repeat(5000));
    assert!(refused(&deep).contains("recursion limit"));
}
