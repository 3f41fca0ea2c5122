//! Weights and grids of the wrong shape.

use super::*;

#[test]
fn a_grid_takes_as_many_values_as_it_has_places() {
    assert!(Grid::new(2, 2, vec![0.0; 4]).is_ok());
    for (rows, kernels) in [(2, 3), (0, 1), (HUGE, 2), (HUGE / 2 + 3, 2)] {
        let expected = format!("{rows} × {kernels} values");
        refused(
            Grid::new(rows, kernels, vec![0.0; 4]),
            &["4 values", &expected],
        );
    }
}

#[test]
fn a_sharing_needs_tasks_and_kernels() {
    for (tasks, kernels) in [(0, 1), (1, 0), (0, 0), (HUGE, 2)] {
        let shape = Shape { tasks, kernels };
        for sharing in [
            SharingSpec::common(2.0, 1.0),
            SharingSpec::uniform(),
            SharingSpec::tang(1.0),
            SharingSpec::simplex(),
            SharingSpec::prior_ball(None, 1.0),
        ] {
            refused(sharing.build(shape), &["`shape`", "at least one task"]);
        }
    }
}

#[test]
fn grids_of_another_shape_have_no_value_in_a_sharing() {
    let shape = Shape {
        tasks: 3,
        kernels: 2,
    };
    for info in mtmkl::Registry::default().sharings() {
        for spec in (info.examples)(shape) {
            let sharing = spec.build(shape).unwrap();
            for (rows, kernels) in [(0, 0), (1, 2), (2, 2), (4, 2), (3, 1), (3, 5)] {
                let other = Grid::filled(rows, kernels, 1.0);
                let (parts, value) = sharing.maximise(&other);
                assert!(value.is_nan());
                assert!(sharing.violation(&parts) <= 1e-12, "{spec:?}");
                let parts = Parts(vec![other; sharing.terms().len()]);
                if sharing
                    .terms()
                    .iter()
                    .all(|term| term.reach() == Reach::All)
                    && (rows, kernels) == (1, 2)
                {
                    continue;
                }
                assert_eq!(sharing.violation(&parts), f64::INFINITY);
                assert!(!sharing.theta(&parts).is_finite());
            }
            assert!(!sharing.theta(&Parts(Vec::new())).is_finite());
            // Of the right shape it has a value, whatever the numbers.
            sharing.maximise(&Grid::filled(3, 2, f64::NAN));
        }
    }
}

#[test]
fn an_engine_evaluates_weights_of_its_shape_only() {
    let problem = problem();
    let prepared = problem.prepare(&Preparation::default()).unwrap();
    let mut engine = prepared.engine();
    let request = Request {
        accuracy: 1e-3,
        curvature: true,
        stop: Stop::never(),
        rounds: mtmkl::Rounds::default(),
    };
    let wrong = [
        Grid::zeros(0, 2),
        Grid::zeros(2, 2),
        Grid::zeros(1, 1),
        Grid::zeros(1, 3),
        Grid::filled(1, 2, f64::NAN),
        Grid::filled(1, 2, f64::INFINITY),
    ];
    for theta in &wrong {
        refused(
            engine.evaluate(theta, &request),
            &["`theta`", "1 × 2 finite"],
        );
        let search = engine.local_maxima().unwrap();
        refused(search.maxima(theta, &request, 2, 0), &["`theta`"]);
    }
    assert!(engine.evaluate(&Grid::filled(1, 2, 0.5), &request).is_ok());
}
