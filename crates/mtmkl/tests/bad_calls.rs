//! Calls with indices, lengths and names that do not fit: an error that says so, or a result that is no number, never a panic.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ops::ControlFlow;
use std::sync::Arc;

use mtmkl::engine::{Engine, Request};
use mtmkl::error::{DataProblem, Place};
use mtmkl::grid::{Grid, Shape};
use mtmkl::kernel::{Columns, KernelView, Linear, parse_kernels};
use mtmkl::machine::MachineSpec;
use mtmkl::select::{Axis, Cell, Chain, Fold, Grid as Cells, Limits, Metric, Search, split};
use mtmkl::sharing::{Parts, Reach, SharingSpec};
use mtmkl::{
    CrossGram, Error, Fitting, GivenGram, Input, Model, Preparation, Problem, ProblemSpec, Rows,
    Samples, Stop, Targets, Task, View,
};

const HUGE: usize = usize::MAX;
const VALUES: [f64; 12] = [
    0.0, 0.1, 0.2, 1.0, 1.0, 0.3, 1.1, 1.2, 0.4, 0.6, 0.9, 0.5, //
];
const LABELS: [f64; 6] = [-1.0, -1.0, 1.0, 1.0, -1.0, 1.0];

fn samples() -> Samples {
    Samples::new(VALUES.to_vec(), 6, 2).unwrap()
}

fn kernels(specs: &[&str]) -> Vec<KernelView> {
    specs
        .iter()
        .flat_map(|spec| parse_kernels(spec).unwrap())
        .collect()
}

fn problem() -> Problem {
    let spec = ProblemSpec::new(
        kernels(&["linear", "rbf:gamma=1"]),
        MachineSpec::svc(1.0),
        SharingSpec::common(2.0, 1.0),
    );
    let task = Task::new("one", Targets::Labels(LABELS.to_vec()));
    Problem::new(spec, vec![samples()], vec![task]).unwrap()
}

fn model() -> Model {
    problem().fit(&mut Fitting::default()).unwrap()
}

/// The error's message, with these words in it.
#[track_caller]
fn refused<T>(result: Result<T, Error>, words: &[&str]) {
    let Err(error) = result else {
        panic!("accepted; expected an error with {words:?}")
    };
    let message = error.to_string();
    for word in words {
        assert!(message.contains(word), "no `{word}` in: {message}");
    }
}

mod tables {
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
        assert_eq!(rows.get(5), Some(&VALUES[10..]));
        assert_eq!(rows.get(6), None);
        assert_eq!(rows.get(HUGE), None);
        assert_eq!(rows.slice(6, 6).unwrap().rows(), 0);
        for (from, to) in [(0, 7), (4, 3), (7, 7), (HUGE, HUGE), (0, HUGE)] {
            let range = format!("{from}..{to}");
            refused(rows.slice(from, to), &["`rows`", &range, "within 0..6"]);
        }
        let none = Rows::new(&[], 6, 0).unwrap();
        assert_eq!((none.get(5), none.get(6)), (Some(&[][..]), None));
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
}

mod grids {
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
}

mod predictions {
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
}

mod selection {
    use super::*;

    fn cells() -> Cells {
        let axis = Axis {
            parameter: "C".to_string(),
            values: vec![1.0, 10.0],
        };
        let sharing = problem().spec().sharing.clone();
        Cells::new(&MachineSpec::svc(1.0), &[sharing], 2, &[axis]).unwrap()
    }

    fn fold(learn: Vec<usize>, held: Vec<usize>) -> Fold {
        Fold {
            learn: vec![learn],
            held: vec![held],
        }
    }

    fn limits() -> Limits {
        Limits {
            tolerance: 1e-3,
            max_passes: 100,
            time_limit: None,
            seed: 0,
            warm: true,
            stop: Stop::never(),
        }
    }

    #[test]
    fn a_search_refuses_kernels_and_rows_that_are_not_there() {
        let problem = problem();
        let cells = cells();
        let good = [fold(vec![0, 1, 2, 3], vec![4, 5])];
        let sets = [vec![0, 1], vec![1]];
        assert!(Search::new(&problem, &sets, &cells, &good).is_ok());
        let wrong = [vec![0, 1], vec![2]];
        refused(
            Search::new(&problem, &wrong, &cells, &good),
            &["`kernels` is 2", "below 2"],
        );
        refused(
            Search::new(&problem, &sets[..1], &cells, &good),
            &["`kernels`", "at least one"],
        );
        for (learn, held) in [(vec![0, 1, 2, 6], vec![4]), (vec![0, 1, 2, 3], vec![HUGE])] {
            let folds = [fold(learn, held)];
            let result = Search::new(&problem, &sets, &cells, &folds);
            refused(result, &["sample set 0", "row index", "6 rows"]);
        }
        let lists = [Vec::new(), vec![vec![0, 1, 2, 3]; 2]];
        for lists in lists {
            let folds = [Fold {
                learn: lists.clone(),
                held: lists,
            }];
            let result = Search::new(&problem, &sets, &cells, &folds);
            refused(result, &["lists of rows of a fold", "expected 1"]);
        }
    }

    #[test]
    fn a_chain_of_another_grid_is_refused() {
        let problem = problem();
        let cells = cells();
        let folds = [fold(vec![0, 1, 2, 3], vec![4, 5])];
        let sets = [vec![0, 1], vec![1]];
        let search = Search::new(&problem, &sets, &cells, &folds).unwrap();
        let prepared = problem.prepare(&Preparation::default()).unwrap();
        let follow = |fold, cells: Vec<usize>| {
            let chain = Chain { fold, cells };
            let mut told = 0;
            let result = search.follow(&prepared, &chain, None, &limits(), prepared.pool(), |_| {
                told += 1;
                ControlFlow::Continue(())
            });
            result.map(|()| told)
        };
        assert_eq!(follow(0, vec![0, 1]).unwrap(), 2);
        refused(follow(1, vec![0]), &["`fold` is 1", "below 1"]);
        refused(follow(HUGE, vec![0]), &["`fold`"]);
        refused(follow(0, vec![0, 4]), &["`cells` is 4", "below 4"]);
        // Cells 2 and 3 have the other kernel set.
        refused(follow(0, vec![0, 2]), &["`cells`", "one kernel set"]);
        assert_eq!(follow(HUGE, Vec::new()).unwrap(), 0);
    }

    #[test]
    fn grids_of_cells_need_values() {
        let machine = MachineSpec::svc(1.0);
        let sharing = [SharingSpec::uniform()];
        refused(Cells::new(&machine, &[], 1, &[]), &["`sharing`"]);
        refused(Cells::new(&machine, &sharing, 0, &[]), &["`kernels`"]);
        let axis = |parameter: &str, values| Axis {
            parameter: parameter.to_string(),
            values,
        };
        let empty = [axis("C", Vec::new())];
        refused(Cells::new(&machine, &sharing, 1, &empty), &["`C`", "empty"]);
        let foreign = [axis("nu", vec![0.5])];
        refused(Cells::new(&machine, &sharing, 1, &foreign), &["`nu`"]);
        // A value that no machine takes is found before anything is computed.
        let nan = Cell {
            kernels: 0,
            sharing: SharingSpec::uniform(),
            machine: MachineSpec::svc(f64::NAN),
        };
        let nan = Cells::of(vec![nan]);
        let folds = [fold(vec![0, 1, 2, 3], vec![4])];
        let problem = problem();
        let sets = [vec![0]];
        refused(Search::new(&problem, &sets, &nan, &folds), &["`C` is NaN"]);
        assert_eq!(nan.chains(0), Vec::new());
    }

    #[test]
    fn splits_need_rows_and_a_group_for_each() {
        let strata = [0, 1, 0, 1, 0, 1];
        for groups in [&[0, 1, 2][..], &[0, 1, 2, 3, 4, 5, 6, 7], &[]] {
            let count = format!("`groups` is {}", groups.len());
            let words = [count.as_str(), "6, one for each row"];
            refused(split::k_fold(&strata, Some(groups), 2, 0), &words);
            refused(split::by_shares(&strata, Some(groups), 0.5, 0.3, 0), &words);
            refused(
                split::repeated(&strata, Some(groups), 0.5, 0.3, 2, 0),
                &words,
            );
        }
        for groups in [None, Some(&[][..])] {
            let words = ["`rows` is 0", "at least one"];
            refused(split::k_fold(&[], groups, 2, 0), &words);
            refused(split::k_fold(&[], groups, HUGE, 0), &words);
            refused(split::by_shares(&[], groups, 0.5, 0.3, 0), &words);
        }
        refused(split::k_fold(&strata, None, 0, 0), &["`folds` is 0"]);
        refused(split::k_fold(&strata, None, HUGE, 0), &["at most 3"]);
        let groups = [0, 1, 2, 3, 4, 5];
        refused(split::k_fold(&strata, Some(&groups), 7, 0), &["at most 6"]);
        for share in [f64::NAN, 0.0, 1.0, -1.0, f64::INFINITY] {
            refused(split::by_shares(&strata, None, share, 0.3, 0), &["train"]);
            let result = split::by_shares(&strata, None, 0.3, share, 0);
            refused(result, &["validation"]);
        }
    }

    #[test]
    fn any_numbers_may_stand_for_strata_and_groups() {
        let strata = [0, 1, 0, 1, 0, 1];
        let far: Vec<usize> = strata.iter().map(|s| HUGE - 1 + s).collect();
        let groups = [HUGE, 3, HUGE - 7, 1 << 50, 5, 0];
        let near = split::k_fold(&strata, Some(&groups), 3, 7).unwrap();
        assert_eq!(split::k_fold(&far, Some(&groups), 3, 7).unwrap(), near);
        assert_eq!(
            split::k_fold(&far, None, 3, 7).unwrap(),
            split::k_fold(&strata, None, 3, 7).unwrap()
        );
    }

    #[test]
    fn scores_of_lists_that_do_not_match_are_not_numbers() {
        let values = vec![vec![0.1, 0.2, 0.3]; 2];
        for metric in Metric::ALL {
            assert!(metric.of_labels(&[1.0, -1.0], &[0.1, 0.2, 0.3]).is_nan());
            assert!(metric.of_labels(&[1.0, -1.0, 1.0], &[0.1, 0.2]).is_nan());
            assert!(metric.of_classes(&[0, 1], &[0, 1, 1], &values).is_nan());
            assert!(metric.of_numbers(&[0.0, 1.0], &[0.0]).is_nan());
            assert!(metric.of_labels(&[], &[]).is_nan());
            assert!(metric.of_numbers(&[], &[]).is_nan());
        }
        let auc = Metric::Auc;
        assert!(auc.of_classes(&[0, 1], &[0, 1], &values).is_nan());
        assert!(auc.of_classes(&[0, 1], &[0, 1], &[]).is_nan());
        assert_eq!(auc.of_labels(&[1.0, -1.0], &[f64::NAN, 0.0]), 1.0);
        // Classes are names: large ones cost no more than small ones.
        let accuracy = Metric::BalancedAccuracy;
        assert_eq!(accuracy.of_classes(&[HUGE, 1 << 50], &[HUGE, 0], &[]), 0.5);
    }
}
