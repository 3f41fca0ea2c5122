//! The picture of a model on two features, and of which models there is none.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use mtmkl::kernel::parse_kernels;
use mtmkl::machine::MachineSpec;
use mtmkl::random::Random;
use mtmkl::sharing::SharingSpec;
use mtmkl::{Fitting, Model, Problem, ProblemSpec, Samples, Targets, Task};
use mtmkl_report::boundary::{Field, Panel, panels};
use mtmkl_report::{Report, html};

/// So many columns between 0 and 1; what the tasks are to learn of the rows.
fn fit(
    columns: usize,
    kernel: &str,
    machine: MachineSpec,
    learn: &[fn(&[f64]) -> Targets],
) -> Model {
    let mut random = Random::new(3);
    let values: Vec<f64> = (0..40 * columns).map(|_| random.uniform()).collect();
    let names = (0..columns).map(|column| format!("c{column}")).collect();
    let tasks = learn.iter().enumerate();
    let tasks = tasks
        .map(|(number, targets)| {
            let first: Vec<f64> = values.chunks(columns).map(|row| row[0] - 0.5).collect();
            Task::new(format!("task {number}"), targets(&first))
        })
        .collect();
    let kernels = parse_kernels(kernel).unwrap();
    let spec = ProblemSpec::new(kernels, machine, SharingSpec::uniform());
    let samples = Samples::with_columns(values, 40, names).unwrap();
    let problem = Problem::new(spec, vec![samples], tasks).unwrap();
    problem.fit(&mut Fitting::default()).unwrap()
}

fn sides(first: &[f64]) -> Targets {
    Targets::Labels(first.iter().map(|x| x.signum()).collect())
}

fn two_sides(columns: usize, kernel: &str) -> Model {
    fit(columns, kernel, MachineSpec::svc(10.0), &[sides])
}

/// The share of nodes where a panel's field is above 0.
fn above(panel: &Panel) -> f64 {
    let (Field::Sides { values, .. } | Field::Inside { values } | Field::Levels { values }) =
        &panel.field
    else {
        panic!("regions have a value for each class");
    };
    assert_eq!(values.len(), panel.nodes().count());
    values.iter().filter(|value| **value > 0.0).count() as f64 / values.len() as f64
}

/// A note as the programs write it: both columns scaled, the first also shifted.
fn frame(goal: &str) -> String {
    let feature = |name, offset| {
        format!(r#"{{"name":"{name}","column":"{name}","offset":{offset},"factor":0.5}}"#)
    };
    let (a, b) = (feature("c0", 100), feature("c1", 0));
    format!(
        r#"{{"features":[{a},{b}],"target":"y","task":null,"goal":{goal},"drop_missing":false}}"#
    )
}

#[test]
fn two_classes_in_the_units_of_the_table() {
    let mut model = two_sides(2, "rbf:sigma=1");
    let panel = &panels(&model, None).unwrap()[0];
    assert_eq!(
        (panel.x_label.as_str(), panel.y_label.as_str()),
        ("c0", "c1")
    );
    assert!((above(panel) - 0.5).abs() < 0.1);
    assert_eq!(panel.points.len(), model.tasks()[0].support.len());
    // β > 0 is the class on the right.
    let right =
        |point: &&mtmkl_report::boundary::Point| (point.x > 0.5) == (point.class == Some(1));
    assert!(panel.points.iter().filter(right).count() * 10 > panel.points.len() * 9);
    let plain = panel.clone();
    let goal = r#"{"binary":{"classes":["no","yes"]}}"#;
    model.notes_mut().insert("frame".into(), frame(goal));
    let panel = &panels(&model, None).unwrap()[0];
    assert!((panel.points[0].x - (2.0 * plain.points[0].x + 100.0)).abs() < 1e-9);
    assert!((above(panel) - above(&plain)).abs() < 1e-9);
    let Field::Sides { classes, .. } = &panel.field else {
        panic!("{:?}", panel.title);
    };
    assert_eq!(classes, &["no", "yes"]);
    let page = html(&Report::of(&model, None, Vec::new()).unwrap());
    assert!(page.contains("The decision boundary over c0 and c1"));
    assert_eq!(page, html(&Report::of(&model, None, Vec::new()).unwrap()));
}

#[test]
fn classes_are_regions_whether_against_the_rest_or_by_pairs() {
    let left = |first: &[f64]| Targets::Labels(first.iter().map(|x| -x.signum()).collect());
    let middle =
        |first: &[f64]| Targets::Labels(first.iter().map(|x| (0.2 - x.abs()).signum()).collect());
    let machine = MachineSpec::svc(10.0);
    let mut model = fit(2, "rbf:sigma=1", machine, &[left, sides, middle]);
    assert_eq!(panels(&model, None).unwrap().len(), 3);
    let goal = |scheme: &str| {
        format!(r#"{{"multiclass":{{"classes":["a","b","c"],"scheme":"{scheme}"}}}}"#)
    };
    model
        .notes_mut()
        .insert("frame".into(), frame(&goal("ova")));
    let drawn = panels(&model, None).unwrap();
    assert!(
        matches!(&drawn[..], [Panel { field: Field::Regions { values, .. }, .. }] if values.len() == 3)
    );
    assert!(drawn[0].points.iter().all(|point| point.class.is_some()));
    model
        .notes_mut()
        .insert("frame".into(), frame(&goal("ovo")));
    let pairs = panels(&model, None).unwrap();
    let [
        Panel {
            field: Field::Regions { classes, values },
            points,
            ..
        },
    ] = &pairs[..]
    else {
        panic!("{pairs:?}");
    };
    assert_eq!(classes, &["a", "b", "c"]);
    // Each node has the votes of three pairs.
    for node in 0..values[0].len() {
        let votes: f64 = values.iter().map(|own| own[node]).sum();
        assert!((votes - 3.0).abs() < 1e-9);
    }
    assert!(points.iter().all(|point| point.class.is_some()));
}

#[test]
fn numbers_and_the_inside() {
    let numbers = |first: &[f64]| Targets::Values(first.to_vec());
    let machine = MachineSpec::krr(1e-3);
    let model = fit(2, "rbf:sigma=1", machine, &[numbers]);
    let panel = &panels(&model, None).unwrap()[0];
    assert!(matches!(panel.field, Field::Levels { .. }));
    assert!((above(panel) - 0.5).abs() < 0.1);
    let nothing = |_: &[f64]| Targets::Unlabelled;
    let model = fit(2, "rbf:sigma=1", MachineSpec::svdd(0.5), &[nothing]);
    let panel = &panels(&model, None).unwrap()[0];
    assert!(matches!(panel.field, Field::Inside { .. }));
    assert!(above(panel) > 0.3 && panel.points.iter().all(|point| point.class.is_none()));
}

#[test]
fn other_models_have_no_picture() {
    for columns in [1, 3] {
        let model = two_sides(columns, "rbf:sigma=1");
        assert!(panels(&model, None).is_none(), "{columns}");
        let report = Report::of(&model, Some("T".into()), Vec::new()).unwrap();
        assert!(report.pictures.is_empty() && report.title == "T");
    }
    let mut model = two_sides(2, "rbf:sigma=1");
    let note = frame("\"regression\"").replacen("\"offset\"", "\"category\":\"x\",\"offset\"", 1);
    model.notes_mut().insert("frame".into(), note);
    assert!(panels(&model, None).is_none(), "an indicator is no axis");
    model.notes_mut().insert("frame".into(), "nonsense".into());
    assert!(panels(&model, None).is_none(), "its units are unknown");
    // χ² refuses what is below 0: the picture ends at the samples.
    let panel = &panels(&two_sides(2, "chi2:gamma=1"), None).unwrap()[0];
    assert!(panel.x_range.0 >= 0.0);
}

#[test]
fn many_tasks_show_the_first() {
    let machine = MachineSpec::svc(1.0);
    let model = fit(2, "linear", machine, &[sides as fn(&[f64]) -> Targets; 14]);
    assert_eq!(panels(&model, None).unwrap().len(), 12);
    let report = Report::of(&model, None, Vec::new()).unwrap();
    assert!(
        report.pictures[0]
            .title
            .contains("The first 12 of 14 tasks")
    );
}

#[test]
fn what_older_models_do_not_say_stands_in_the_settings() {
    let model = two_sides(2, "linear");
    let settings = vec![("solver".to_string(), "epf".to_string())];
    let report = Report::of(&model, None, settings.clone()).unwrap();
    // The model knows better.
    assert_eq!(
        (report.solver.as_str(), report.tolerance),
        ("newton", Some(1e-4))
    );
    assert_eq!(
        (report.title.as_str(), report.settings),
        ("mtmkl model", settings)
    );
}
