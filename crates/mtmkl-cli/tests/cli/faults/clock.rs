//! The clock that people set may jump: nothing of ours looks at it. Times are differences of the clock that cannot be set.

use std::path::{Path, PathBuf};

fn sources(folder: &Path, endings: &[&str], out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        if path.is_dir() {
            sources(&path, endings, out);
        } else if ending.is_some_and(|ending| endings.contains(&ending)) {
            out.push(path);
        }
    }
}

#[test]
fn no_result_depends_on_the_clock_that_can_be_set() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for place in [
        "crates/mtmkl/src",
        "crates/mtmkl-cli/src",
        "crates/mtmkl-table/src",
        "crates/mtmkl-report/src",
        "crates/mtmkl-py/src",
        "python/mtmkl",
    ] {
        sources(&root.join(place), &["rs", "py"], &mut files);
    }
    assert!(files.len() > 200, "{}", files.len());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for clock in ["SystemTime", "time.time(", "datetime.now", "utcnow"] {
            assert!(!text.contains(clock), "{} uses {clock}", file.display());
        }
    }
}
