//! Samples, views and tables of the wrong size.

use super::*;

#[test]
fn sizes_that_overflow_are_wrong_sizes() {
    refused(Rows::new(&VALUES, HUGE, 2), &["values of a table: 12"]);
    refused(Rows::new(&VALUES, HUGE / 2 + 7, 2), &["12, expected"]);
    refused(Rows::new(&VALUES, 2, HUGE), &["12, expected"]);
    refused(Rows::new(&[], 3, 1), &["0, expected 3"]);
    refused(Samples::new(VALUES.to_vec(), HUGE, 2), &["values: 12"]);
    refused(Samples::new(VALUES.to_vec(), 2, HUGE), &["values: 12"]);
    // 2 (2⁶³ + 6) wraps to 12.
    let wraps = HUGE / 2 + 7;
    refused(Samples::new(VALUES.to_vec(), wraps, 2), &["values: 12"]);
    refused(Samples::new(VALUES.to_vec(), 0, 2), &["no rows"]);
    let names = vec!["a".to_string(); 5];
    refused(
        Samples::with_columns(VALUES.to_vec(), 3, names),
        &["values: 12, expected 15"],
    );
}

#[test]
fn rows_that_are_not_there_are_not_given() {
    let rows = Rows::new(&VALUES, 6, 2).unwrap();
    assert_eq!(rows.get(5).as_deref(), Some(&VALUES[10..]));
    assert_eq!(rows.get(6), None);
    assert_eq!(rows.get(HUGE), None);
    assert_eq!(rows.slice(6, 6).unwrap().rows(), 0);
    for (from, to) in [(0, 7), (4, 3), (7, 7), (HUGE, HUGE), (0, HUGE)] {
        let range = format!("{from}..{to}");
        refused(rows.slice(from, to), &["`rows`", &range, "within 0..6"]);
    }
    let none = Rows::new(&[], 6, 0).unwrap();
    assert_eq!((none.get(5).as_deref(), none.get(6)), (Some(&[][..]), None));
}

#[test]
fn gram_matrices_that_do_not_fit_are_refused() {
    let gram = |name: &str, values: Vec<f64>| GivenGram {
        name: name.to_string(),
        values: values.into(),
    };
    let one = |count| Samples::from_grams(count, vec![gram("G", vec![1.0; 4])]);
    refused(one(3), &["precomputed kernel `G`", "4, expected 9"]);
    refused(one(HUGE), &["precomputed kernel `G`", "4, expected"]);
    // (2³³)² wraps to 0.
    refused(one(1 << 33), &["4, expected"]);
    refused(Samples::from_grams(0, Vec::new()), &["no rows"]);
    let twice = vec![gram("G", vec![1.0; 4]), gram("G", vec![2.0; 4])];
    refused(
        Samples::from_grams(2, twice),
        &["precomputed kernel `G`", "already", "names must differ"],
    );
    let nan = gram("G", vec![1.0, f64::NAN, f64::NAN, 1.0]);
    refused(Samples::from_grams(2, vec![nan]), &["NaN"]);
}

#[test]
fn a_gram_matrix_that_is_symmetric_but_for_rounding_is_made_so() {
    let (a, b) = (0.5, 0.5 + 1e-12);
    let gram = GivenGram {
        name: "G".to_string(),
        values: vec![1.0, a, b, 1.0].into(),
    };
    let set = Samples::from_grams(2, vec![gram]).unwrap();
    let used = &set.grams()[0].values;
    assert_eq!((used[1], used[0], used[3]), (used[2], 1.0, 1.0));
    assert_eq!(used[1], 0.5 * a + 0.5 * b);
}

#[test]
fn sets_too_large_for_any_memory_are_refused() {
    for count in [1 << 31, 1 << 33, HUGE] {
        let set = Samples::from_grams(count, Vec::new()).unwrap();
        let machine = MachineSpec::one_class(0.5);
        let kernels = kernels(&["precomputed:name=G"]);
        let spec = ProblemSpec::new(kernels, machine, SharingSpec::uniform());
        let task = Task::new("one", Targets::Unlabelled);
        let sets = vec![set.clone(), set];
        let problem = Problem::new(spec, sets, vec![task]).unwrap();
        // The matrix is not there either, which is said first.
        refused(
            problem.prepare(&Preparation::default()),
            &["precomputed kernel `G`"],
        );
    }
}

#[test]
fn a_task_on_rows_that_are_not_there_is_left_for_the_problem_to_refuse() {
    let task = Task::new("one", Targets::Labels(LABELS.to_vec()));
    // Marks for fewer rows than the task has: the others are not marked.
    let part = task.clone().with_rows(vec![0, 9, 2, 3, 4, HUGE]);
    let part = part.restricted(&[true, true, true]);
    assert_eq!(part.rows, View::of(vec![0, 2]));
    assert_eq!(part.targets, Targets::Labels(vec![-1.0, 1.0]));
    assert_eq!(task.restricted(&[]).rows, View::of(Vec::new()));
    // Fewer targets and weights than rows.
    let few = Task::new("one", Targets::Labels(vec![1.0, -1.0])).with_weights(vec![1.0]);
    let few = few.restricted(&[true; 6]);
    let spec = problem().spec().clone();
    refused(
        Problem::new(spec, vec![samples()], vec![few]),
        &["task `one`", "number of targets: 2, expected 6"],
    );
}

#[test]
fn machines_judge_tasks_with_too_few_weights_without_a_panic() {
    for info in mtmkl::Registry::default().machines() {
        for machine in (info.examples)() {
            let targets = match info.targets {
                mtmkl::machine::TargetKind::Labels => Targets::Labels(LABELS.to_vec()),
                mtmkl::machine::TargetKind::Values => Targets::Values(LABELS.to_vec()),
                mtmkl::machine::TargetKind::Unlabelled => Targets::Unlabelled,
            };
            let task = Task::new("one", targets).with_weights(vec![1.0, 1.0]);
            let machine = machine.build();
            // What is missing is the problem's to refuse; here it only must not be read.
            let _ = machine.check(&task, 6);
            assert_eq!(machine.dual(&task, 6).linear.len() % 6, 0);
        }
    }
}

#[test]
fn columns_that_are_not_there_are_refused() {
    let view = |columns| KernelView::new("linear", Linear).on(columns);
    let names = ["a".to_string(), "b".to_string()];
    refused(Columns::Indices(vec![2]).resolve(&names), &["number 2"]);
    refused(Columns::Indices(vec![HUGE]).resolve(&names), &["2 columns"]);
    refused(
        Columns::Indices(Vec::new()).resolve(&names),
        &["at least one"],
    );
    let mut spec = problem().spec().clone();
    spec.kernels = vec![view(Columns::Indices(vec![0, 5]))];
    let tasks = problem().tasks().to_vec();
    refused(Problem::new(spec, vec![samples()], tasks), &["number 5"]);
}
