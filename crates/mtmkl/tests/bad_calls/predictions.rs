//! Inputs of a model that are not what it was fitted on.

use super::*;

#[test]
fn new_samples_that_are_not_as_many_as_they_say_are_refused() {
    let model = model();
    for count in [0, 5, 7, HUGE] {
        let input = Input {
            count,
            rows: Some(Rows::new(&VALUES, 6, 2).unwrap()),
            grams: &[],
            origin: None,
        };
        let words = ["rows of the new samples: 6", "expected"];
        refused(model.decision("one", input), &words);
        refused(model.decisions(input), &words);
        refused(model.decision_of_new_task(input), &words);
    }
    refused(
        model.decision("two", Rows::new(&VALUES, 6, 2).unwrap()),
        &["task `two`", "one"],
    );
    let none = Rows::new(&[], 0, 2).unwrap();
    assert!(model.decision("one", none).unwrap().is_empty());
    assert!(model.decision_of_new_task(none).unwrap().is_empty());
}

#[test]
fn kernel_values_say_how_many_samples_there_are() {
    let gram = GivenGram {
        name: "G".to_string(),
        values: Arc::new((0..36).map(|at| f64::from(at % 7 == 0)).collect()),
    };
    let set = Samples::from_grams(6, vec![gram]).unwrap();
    let mut spec = problem().spec().clone();
    spec.kernels = kernels(&["precomputed:name=G"]);
    let problem = Problem::new(spec, vec![set], problem().tasks().to_vec()).unwrap();
    let model = problem.fit(&mut Fitting::default()).unwrap();
    let values = [0.5; 12];
    for count in [0, 1, 3, 1 << 40, HUGE] {
        let gram = CrossGram {
            name: "G",
            values: &values,
            own: None,
        };
        let with = Input {
            count,
            rows: None,
            grams: &[gram],
            origin: None,
        };
        let without = Input { grams: &[], ..with };
        for (input, words) in [
            (with, "n_new × n_train"),
            (without, "no Gram matrix of this name"),
        ] {
            let words = ["precomputed kernel `G`", words];
            refused(model.decision("one", input), &words);
            refused(model.decisions(input), &words);
            refused(model.decision_of_new_task(input), &words);
        }
    }
}

#[test]
fn kernels_without_weight_need_no_values() {
    let gram = |name: &str, scale: f64| GivenGram {
        name: name.to_string(),
        values: Arc::new((0..36).map(|at| scale * f64::from(at % 7 == 0)).collect()),
    };
    let set = Samples::from_grams(6, vec![gram("G", 1.0), gram("H", 1.0)]).unwrap();
    let mut spec = problem().spec().clone();
    spec.kernels = kernels(&["precomputed:name=G", "precomputed:name=H"]);
    spec.sharing = SharingSpec::fixed(vec![0.0, 1.0]);
    let problem = Problem::new(spec, vec![set], problem().tasks().to_vec()).unwrap();
    let model = problem.fit(&mut Fitting::default()).unwrap();
    let decide = |name| {
        let gram = CrossGram {
            name,
            values: &[0.5; 12],
            own: None,
        };
        let input = Input {
            count: 2,
            rows: None,
            grams: &[gram],
            origin: None,
        };
        model.decision("one", input)
    };
    assert_eq!(decide("H").unwrap().len(), 2);
    refused(decide("G"), &["precomputed kernel `H`", "given: G"]);
    refused(decide("K"), &["precomputed kernel `G`", "given: K"]);
}

#[test]
fn rows_held_out_must_be_there() {
    let problem = problem();
    let prepared = problem.prepare(&Preparation::default()).unwrap();
    let model = prepared.fit(&mut Fitting::default()).unwrap();
    assert_eq!(
        prepared.decisions(&model, &[vec![5, 0]]).unwrap()[0].len(),
        2
    );
    for rows in [vec![6], vec![0, HUGE]] {
        let result = prepared.decisions(&model, &[rows]);
        assert!(matches!(
            result,
            Err(Error::Data {
                place: Place::Samples(0),
                problem: DataProblem::RowIndex { samples: 6, .. }
            })
        ));
    }
    refused(
        prepared.decisions(&model, &[]),
        &["lists of rows", "0, expected 1"],
    );
    let two = [vec![0], vec![0]];
    refused(prepared.decisions(&model, &two), &["2, expected 1"]);
    // A model of other samples, and one of other kernels.
    let tasks = problem.tasks().to_vec();
    let few = Samples::new(VALUES[..8].to_vec(), 4, 2).unwrap();
    let task = Task::new("one", Targets::Labels(LABELS[..4].to_vec()));
    let few = Problem::new(problem.spec().clone(), vec![few], vec![task]).unwrap();
    let mut spec = problem.spec().clone();
    spec.kernels.pop();
    let other = Problem::new(spec, vec![samples()], tasks).unwrap();
    for other in [few, other] {
        let model = other.fit(&mut Fitting::default()).unwrap();
        let result = prepared.decisions(&model, &[vec![0]]);
        refused(result, &["`model`", "fitted on these Gram matrices"]);
    }
}
