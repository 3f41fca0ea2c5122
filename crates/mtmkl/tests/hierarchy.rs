//! The sharing `hierarchy`: the sharings that it contains, what a model of it keeps, and files that are not what they should be. Its optimum is
//! tested with all others in `conformance.rs` and `oracles.rs`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Data, kernels};
use mtmkl::grid::Shape;
use mtmkl::machine::{MachineSpec, TargetKind};
use mtmkl::sharing::{Hierarchy, Reach, SharingSpec, TermSpec};
use mtmkl::{Error, Fitting, Model, NamedLevel, Preparation, Problem, ProblemSpec, Storage};
use serde_json::{Value, json};

const TASKS: usize = 4;

fn problem(machine: &MachineSpec, sharing: SharingSpec) -> Problem {
    let data = Data::new(TASKS, 7);
    let targets = match machine.name() {
        "krr" => TargetKind::Values,
        _ => TargetKind::Labels,
    };
    let spec = ProblemSpec::new(kernels(), machine.clone(), sharing);
    Problem::new(spec, data.samples(), data.tasks(targets)).unwrap()
}

fn fit(machine: &MachineSpec, sharing: SharingSpec) -> Model {
    let mut fitting = Fitting {
        tolerance: 1e-9,
        ..Fitting::default()
    };
    problem(machine, sharing).fit(&mut fitting).unwrap()
}

fn regions() -> Vec<NamedLevel> {
    vec![NamedLevel {
        label: "region".to_string(),
        groups: vec![
            ("north".to_string(), vec![0, 3]),
            ("south".to_string(), vec![1, 2]),
        ],
    }]
}

#[test]
fn without_groups_it_is_pscs_the_root_is_common_and_the_leaves_are_group() {
    for machine in [MachineSpec::svc(2.0), MachineSpec::krr(0.5)] {
        for (p, q) in [(1.0, 1.0), (2.0, 1.0), (2.0, 2.0), (1.5, 3.0)] {
            let radius = 1.3;
            let of = |root, leaves| Hierarchy {
                p,
                q,
                radius,
                root,
                leaves,
                ..Hierarchy::default()
            };
            for (tree, known) in [
                (of(true, true), SharingSpec::pscs(p, q, radius)),
                (of(true, false), SharingSpec::common(p, radius)),
                (of(false, true), SharingSpec::group(p, q, radius)),
            ] {
                let name = known.name();
                let (tree, known) = (fit(&machine, tree.into()), fit(&machine, known));
                let (a, b) = (tree.outcome().objective, known.outcome().objective);
                assert!((a - b).abs() <= 1e-9 * b.abs(), "{name}: {a} and {b}");
                assert_eq!(tree.common().is_some(), known.common().is_some());
                assert_eq!(tree.specific().is_some(), known.specific().is_some());
            }
        }
    }
}

/// Groups of single tasks, or one of all of them, in place of leaves and root.
#[test]
fn levels_of_single_tasks_and_of_all_are_leaves_and_root() {
    let named = |groups: Vec<Vec<usize>>| {
        let groups = groups.into_iter().enumerate();
        NamedLevel {
            label: "level".to_string(),
            groups: groups.map(|(at, own)| (format!("{at}"), own)).collect(),
        }
    };
    let all = named(vec![(0..TASKS).collect()]);
    let each = named((0..TASKS).map(|task| vec![task]).collect());
    let machine = MachineSpec::svc(2.0);
    let tree = Hierarchy {
        levels: vec![all, each],
        root: false,
        leaves: false,
        ..Hierarchy::default()
    };
    let (tree, pscs) = (
        fit(&machine, tree.into()),
        fit(&machine, SharingSpec::pscs(2.0, 1.0, 1.0)),
    );
    let (a, b) = (tree.outcome().objective, pscs.outcome().objective);
    assert!((a - b).abs() <= 1e-9 * b.abs(), "{a} and {b}");
}

#[test]
fn a_model_keeps_the_groups_with_their_names() {
    let tree = Hierarchy {
        levels: regions(),
        q: 2.0,
        radii: Some(vec![1.0, 0.5, 0.25]),
        ..Hierarchy::default()
    };
    let sharing = SharingSpec::from(tree);
    let model = fit(&MachineSpec::svc(2.0), sharing.clone());
    let read = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(read.sharing(), &sharing);
    assert_eq!(read.parts(), model.parts());
    let [root, region, leaves] = read.parts() else {
        panic!("three levels");
    };
    assert_eq!(
        (&*root.label, &*region.label, &*leaves.label),
        ("common", "region", "specific")
    );
    assert_eq!(region.names, ["north", "south"]);
    assert_eq!(region.reach, Reach::groups([vec![0, 3], vec![1, 2]]));
    assert_eq!(region.weights.rows(), 2);
    for (task, group) in [0, 1, 1, 0].into_iter().enumerate() {
        for kernel in 0..model.weights().kernels() {
            let parts = [
                &root.weights.row(0),
                &region.weights.row(group),
                &leaves.weights.row(task),
            ];
            let sum: f64 = parts.iter().map(|row| row[kernel]).sum();
            assert!((sum - model.weights()[(task, kernel)]).abs() <= 1e-15);
        }
    }
    // Each level has a bound of its own, and uses it up.
    for (part, radius) in [(root, 1.0), (region, 0.5), (leaves, 0.25)] {
        let norm = part
            .weights
            .values()
            .iter()
            .map(|w| w * w)
            .sum::<f64>()
            .sqrt();
        assert!((norm - radius).abs() <= 1e-6, "{}: {norm}", part.label);
    }
}

#[test]
fn a_model_of_the_same_tree_is_a_start_that_ends_where_a_cold_one_does() {
    for (p, q) in [(1.0, 1.0), (2.0, 2.0)] {
        let tree = Hierarchy {
            levels: regions(),
            p,
            q,
            ..Hierarchy::default()
        };
        let problem = problem(&MachineSpec::svc(2.0), tree.into());
        let sharing = problem.sharing();
        assert!(sharing.violation(&sharing.start()) <= 1e-12);
        let prepared = problem.prepare(&Preparation::default()).unwrap();
        let mut fitting = Fitting {
            tolerance: 1e-9,
            ..Fitting::default()
        };
        let cold = prepared.fit(&mut fitting).unwrap();
        fitting.start = Some(&cold);
        let warm = prepared.fit(&mut fitting).unwrap();
        let (cold, warm) = (cold.outcome(), warm.outcome());
        assert!(warm.trace.len() < cold.trace.len());
        assert!((cold.objective - warm.objective).abs() <= 1e-9 * cold.objective);
    }
}

#[test]
fn a_file_whose_groups_do_not_fit_its_tasks_is_refused() {
    let sum = |level: NamedLevel| {
        SharingSpec::sum(vec![
            TermSpec::Group {
                p: 2.0,
                q: 1.0,
                radius: 1.0,
            },
            TermSpec::Level {
                level,
                p: 2.0,
                q: 1.0,
                radius: 1.0,
            },
        ])
    };
    let tree = Hierarchy {
        levels: regions(),
        ..Hierarchy::default()
    };
    for sharing in [tree.into(), sum(regions().remove(0))] {
        let bytes = fit(&MachineSpec::svc(2.0), sharing).to_bytes().unwrap();
        let (old, header) = (b"[0,3]", &bytes[..]);
        // In the sharing, then in the parts.
        let places = header.windows(old.len()).enumerate();
        let places: Vec<usize> = places.filter(|(_, w)| w == old).map(|(at, _)| at).collect();
        assert_eq!(places.len(), 2);
        for at in places {
            for new in [b"[0,9]", b"[0,0]", b"[   ]", b"[0,x]", b"[-3 ]", b"[1e9]"] {
                let mut hostile = bytes.clone();
                hostile[at..at + new.len()].copy_from_slice(new);
                let error = Model::from_bytes(&hostile).unwrap_err();
                assert!(matches!(error, Error::Format { .. }), "{error:?}");
            }
        }
    }
}

fn read(sharing: Value) -> Result<SharingSpec, serde_json::Error> {
    serde_json::from_value(sharing)
}

const SHAPE: Shape = Shape {
    tasks: 3,
    kernels: 2,
};

#[test]
fn a_specification_comes_back_and_defaults_may_be_left_out() {
    let short = read(json!({"name": "hierarchy", "levels": []})).unwrap();
    assert_eq!(short, Hierarchy::default().into());
    let levels = json!([{"label": "region", "groups": [["north", [0, 2]], ["south", [1]]]}]);
    let given = json!({"name": "hierarchy", "p": 1.5, "root": false, "levels": levels});
    let spec = read(given).unwrap();
    assert_eq!(read(serde_json::to_value(&spec).unwrap()).unwrap(), spec);
    let terms = spec.terms(SHAPE).unwrap();
    assert!(matches!(
        &terms[..],
        [TermSpec::Level { .. }, TermSpec::Group { .. }]
    ));
    // The same level as a term of a sum.
    let sum = SharingSpec::sum(terms);
    assert_eq!(read(serde_json::to_value(&sum).unwrap()).unwrap(), sum);
}

#[test]
fn specifications_that_make_no_sense_are_refused_without_a_panic() {
    let level = |groups: Value| json!([{"label": "l", "groups": groups}]);
    let unreadable = [
        json!({"levels": null}),
        json!({"levels": 3}),
        json!({"levels": [{"label": "l"}]}),
        json!({"levels": [{"groups": []}]}),
        json!({"levels": level(json!([["a", [-1]]]))}),
        json!({"levels": level(json!([["a", [0.5]]]))}),
        json!({"levels": level(json!([["a", [1e30]]]))}),
        json!({"levels": level(json!([[0, "a"]]))}),
        json!({"levels": [{"label": "l", "groups": [], "more": 1}]}),
        json!({"root": 1}),
        json!({"radii": "1,2"}),
        json!({"tree": {}}),
    ];
    let with_name = |mut spec: Value| {
        spec["name"] = json!("hierarchy");
        let levels = spec.get("levels").cloned();
        spec["levels"] = levels.unwrap_or_else(|| json!([]));
        spec
    };
    for spec in unreadable {
        let error = read(with_name(spec.clone())).unwrap_err();
        assert!(error.to_string().contains("`hierarchy`"), "{spec}: {error}");
    }
    let unfit = [
        (json!({"levels": level(json!([]))}), "at least one group"),
        (
            json!({"levels": level(json!([["a", []]]))}),
            "at least one task",
        ),
        (json!({"levels": level(json!([["a", [0, 3]]]))}), "below 3"),
        (
            json!({"levels": level(json!([["a", [u64::MAX]]]))}),
            "below 3",
        ),
        (
            json!({"levels": level(json!([["a", [1, 1]]]))}),
            "at most once",
        ),
        (json!({"root": false, "leaves": false}), "at least one term"),
        (
            json!({"root": false, "leaves": false, "levels": level(json!([["a", [0, 2]]]))}),
            "task number 2",
        ),
        (json!({"radii": [1.0]}), "2, one for each level"),
        (json!({"radii": [1.0, -1.0]}), "> 0"),
        (json!({"radii": []}), "2, one for each level"),
        (json!({"p": 0.5}), "≥ 1"),
    ];
    for (spec, words) in unfit {
        let sharing = read(with_name(spec.clone())).unwrap();
        let error = sharing.build(SHAPE).unwrap_err();
        assert!(matches!(error, Error::Param { .. }), "{spec}: {error:?}");
        assert!(error.to_string().contains(words), "{spec}: {error}");
    }
}

/// Each group that several tasks share is M rows and columns of one dense matrix.
#[test]
fn groups_are_in_the_account_of_memory() {
    let machine = MachineSpec::svc(2.0);
    let needed = |levels: Vec<NamedLevel>| {
        let sharing = Hierarchy {
            levels,
            ..Hierarchy::default()
        };
        let problem = problem(&machine, sharing.into());
        problem
            .memory_needed(Storage::Kept, &Preparation::default())
            .unwrap()
    };
    let m = kernels().len() as u64;
    let (none, two) = (needed(Vec::new()), needed(regions()));
    // One node is the root's.
    assert_eq!(two - none, 3 * 8 * (9 - 1) * m * m);
}
