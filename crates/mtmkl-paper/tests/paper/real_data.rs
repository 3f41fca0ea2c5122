//! The sets themselves, where they are.
#![allow(
    clippy::print_stdout,
    reason = "figures for whoever runs the test with --nocapture"
)]

use mtmkl_testkit::shared;

use crate::fixture::Folder;

/// Every set of the paper's tables at its smallest shares, one draw: subsets, tasks and draws are what the paper describes.
#[test]
fn the_papers_sets() {
    let Some(data) = shared::folder() else {
        println!("skipped: there is no shared/data beside the repository");
        return;
    };
    let folder = Folder::new();
    // The set, its smallest share, and what chance would reach.
    let expected = [
        ("robot", 2.0, 25.0),
        ("vehicle", 2.0, 25.0),
        ("usps", 2.0, 10.0),
        ("shuttle", 2.0, 33.3),
        ("letter", 2.0, 10.0),
        ("mnist", 2.0, 10.0),
        ("landmine", 20.0, 50.0),
    ];
    for (set, share, chance) in expected {
        let table = if set == "landmine" {
            "table3"
        } else {
            "table2"
        };
        let flags = format!(
            "--sets {set} --share {share} --runs 1 --methods cs,is,uniform --json -o {set}"
        );
        let mut arguments = vec![table, "--data", data.to_str().unwrap()];
        arguments.extend(flags.split(' '));
        let made = folder.run_all(&arguments).json();
        let entries = made["entries"].as_array().unwrap();
        assert_eq!(entries.len(), 3);
        for entry in entries {
            let mean = entry["mean"].as_f64().unwrap();
            println!("{set} {} {mean:.1}", entry["method"]);
            assert!(
                mean > 1.2 * chance && mean < 100.0,
                "{set} {}: {mean}",
                entry["method"]
            );
            let paper = entry["paper"].as_f64();
            assert_eq!(paper.is_some(), entry["method"] != "uniform");
            assert!(
                paper.is_none_or(|paper| (mean - paper).abs() < 25.0),
                "{set}: {mean}, paper {paper:?}"
            );
        }
    }
}
