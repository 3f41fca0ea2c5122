//! The part of the problem library that takes no time, and what the library is to be. `cargo xtask library` runs all of it.

use std::collections::BTreeSet;

use mtmkl::Registry;
use mtmkl_testkit::library::{Recipe, Source, coverage, found, problems};

#[test]
fn claims_about_small_problems_are_true() {
    let mut counts = [0; 2];
    let mut failures = Vec::new();
    for recipe in problems() {
        let Source::Drawn {
            samples,
            tasks,
            columns,
            ..
        } = recipe.data
        else {
            continue;
        };
        if samples * tasks > 200 || columns > 10 {
            continue;
        }
        let finding = found(&recipe).expect("nothing but a seed is needed");
        if !finding.is_true() {
            failures.push(format!("{finding:?}"));
        }
        counts[0] += 1;
        counts[1] += usize::from(finding.is_solved());
    }
    assert!(
        failures.is_empty(),
        "{} false claims:\n{}",
        failures.len(),
        failures.join("\n")
    );
    let [all, solved] = counts;
    assert!(
        all >= 150 && 100 * solved >= 98 * all,
        "{solved} of {all} solved"
    );
}

#[test]
fn stored_bounds_are_found_again() {
    let recipes = problems();
    let small = recipes.iter().filter(|recipe| {
        let is_conic = recipe.bounds.as_ref().is_some_and(|bounds| bounds.by == "conic");
        is_conic && matches!(recipe.data, Source::Drawn { samples, tasks, columns, .. } if samples * tasks <= 40 && columns <= 5)
    });
    for recipe in small.step_by(9) {
        let stored = recipe.bounds.as_ref().expect("chosen by them");
        let again = recipe.new_bounds().expect("there were bounds");
        assert!(
            again.low <= stored.high && stored.low <= again.high,
            "{}: {again:?}, stored {stored:?}",
            recipe.name
        );
    }
}

/// Every sharing with a ball, where the ball is next to a cube.
fn of_exponent(p: f64) -> Vec<Recipe> {
    let of = |sharing: &str, q: f64, tasks: usize, seed: usize| {
        let line = format!(
            r#"{{"name":"p = {p}, q = {q}, seed {seed}","kernels":["linear","poly:degree=2,coef0=1","rbf:gamma=0.3|3"],"machine":{{"name":"svc","C":5.0,"positive_weight":1.0,"negative_weight":1.0}},"sharing":{{"name":{sharing}}},"data":{{"drawn":{{"seed":{seed},"samples":12,"tasks":{tasks},"columns":3}}}}}}"#
        );
        mtmkl_testkit::library::read(&line).remove(0)
    };
    let mut all = Vec::new();
    for seed in [700, 800] {
        let plain = |name: &str| format!(r#""{name}","p":{p:?},"radius":1.0"#);
        all.push(of(&plain("lp"), p, 1, seed));
        all.push(of(&plain("common"), p, 3, seed + 1));
        all.push(of(&plain("independent"), p, 3, seed + 2));
        for q in [1.0, 2.0, p] {
            let mixed = |name: &str| format!(r#"{},"q":{q:?}"#, plain(name));
            all.push(of(&mixed("group"), q, 3, seed + 3));
            all.push(of(&mixed("pscs"), q, 3, seed + 4));
            let tree = r#""radii":null,"root":true,"leaves":true,"levels":[{"label":"half","groups":[["half 0",[0,1]],["half 1",[2]]]}]"#;
            all.push(of(
                &format!("{},{tree}", mixed("hierarchy")),
                q,
                3,
                seed + 5,
            ));
        }
        let ball = format!(r#"{{"set":"lp-ball","p":{p:?},"radius":0.5}}"#);
        let sum = format!(r#""sum","terms":[{{"common":{ball}}},{{"independent":{ball}}}]"#);
        all.push(of(&sum, p, 3, seed + 6));
    }
    all
}

#[test]
fn balls_next_to_cubes_are_solved() {
    for p in [16.0, 64.0, 256.0, 1000.0] {
        for mut recipe in of_exponent(p) {
            recipe.bounds = Some(recipe.new_bounds().expect("stated for the conic solver"));
            let finding = found(&recipe).expect("nothing but a seed is needed");
            assert!(finding.known.width() < 1e-6, "{finding:?}");
            assert!(finding.is_solved(), "{finding:?}");
        }
    }
}

#[test]
fn the_library_has_everything() {
    let recipes = problems();
    assert!(recipes.len() >= 150);
    let names: BTreeSet<&str> = recipes.iter().map(|recipe| recipe.name.as_str()).collect();
    assert_eq!(names.len(), recipes.len(), "a name is there twice");
    assert!(recipes.iter().all(|recipe| recipe.bounds.is_some()));
    let registry = Registry::default();
    let [machines, sharings, kernels] = coverage(&recipes);
    assert!(
        registry
            .machines()
            .iter()
            .all(|entry| machines.contains(entry.part.name)),
        "{machines:?}"
    );
    assert!(
        registry
            .sharings()
            .iter()
            .all(|entry| sharings.contains(entry.part.name)),
        "{sharings:?}"
    );
    // What is never positive semi-definite has no certified optimum.
    let definite = registry
        .kernels()
        .iter()
        .filter(|entry| entry.name != "sigmoid");
    assert!(
        definite.clone().all(|entry| kernels.contains(entry.name)),
        "{kernels:?}"
    );
    let pairs: BTreeSet<(&str, &str)> = recipes
        .iter()
        .map(|recipe| (recipe.machine.name(), recipe.sharing.name()))
        .collect();
    for machine in registry.machines() {
        for sharing in registry.sharings() {
            // Balls contain 0, where a sphere has no radius.
            let is_ball = ["lp", "common", "independent", "group", "pscs", "hierarchy"]
                .contains(&sharing.part.name);
            let is_refused = machine.part.name == "svdd" && is_ball;
            let pair = (machine.part.name, sharing.part.name);
            assert!(is_refused || pairs.contains(&pair), "{pair:?}");
        }
    }
}
