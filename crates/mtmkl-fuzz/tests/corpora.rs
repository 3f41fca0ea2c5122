//! What fuzzers found once is tried again by every build.

use std::path::Path;
use std::time::Instant;

use mtmkl_fuzz::TARGETS;

#[test]
fn every_input_of_the_corpora_keeps_its_promises() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut all = 0;
    for (name, check) in TARGETS {
        let folder = std::fs::read_dir(corpora.join(name));
        let mut inputs = 0;
        let begun = Instant::now();
        for entry in folder.unwrap_or_else(|error| panic!("fuzz/corpus/{name}: {error}")) {
            let path = entry.expect("a folder can be read").path();
            // Named, so that a panic says which input it was.
            println!("{}", path.display());
            check(&std::fs::read(&path).expect("a file can be read"));
            inputs += 1;
        }
        println!("{name}: {inputs} inputs, {:?}", begun.elapsed());
        assert!(inputs >= 5, "{name} has {inputs} inputs");
        all += inputs;
    }
    assert!(all > 500, "{all}");
}

/// Each target has a program for libFuzzer, and each program a target.
#[test]
fn the_programs_for_the_fuzzer_are_these() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let manifest = std::fs::read_to_string(fuzz.join("Cargo.toml")).expect("it is there");
    for (name, _) in TARGETS {
        let program = std::fs::read_to_string(fuzz.join(format!("fuzz_targets/{name}.rs")));
        let calls = format!("mtmkl_fuzz::{name}::check(data)");
        assert!(program.is_ok_and(|text| text.contains(&calls)), "{name}");
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")));
    }
    assert_eq!(manifest.matches("[[bin]]").count(), TARGETS.len());
}
