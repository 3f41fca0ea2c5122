//! Grids, and fits on folds against fits from scratch.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Mutex;

use mtmkl::kernel::parse_kernels;
use mtmkl::machine::MachineSpec;
use mtmkl::random::Random;
use mtmkl::select::{Axis, Fold, Grid, Limits, Metric, Search, in_parallel};
use mtmkl::sharing::SharingSpec;
use mtmkl::{Fitting, Pool, Preparation, Problem, ProblemSpec, Rows, Samples, Stop, Targets, Task};

#[test]
fn a_grid_has_each_cell_once_and_chains_change_one_parameter() {
    let sharings = [
        SharingSpec::pscs(2.0, 1.0, 1.0),
        SharingSpec::common(2.0, 1.0),
        SharingSpec::uniform(),
    ];
    let axis = |parameter: &str, values: &[f64]| Axis {
        parameter: parameter.to_string(),
        values: values.to_vec(),
    };
    let axes = [
        axis("C", &[1.0, 3.0, 9.0]),
        axis("q", &[1.0, 1.5, 2.0]),
        axis("p", &[1.1, 2.0]),
    ];
    let grid = Grid::new(&MachineSpec::svc(1.0), &sharings, 2, &axes).unwrap();
    assert_eq!(grid.cells().len(), 2 * (3 * 3 * 2 + 3 * 2 + 3));
    let chains = grid.chains(2);
    assert_eq!(chains.len(), 2 * 2 * 3);
    let mut seen = vec![0; grid.cells().len()];
    for chain in &chains {
        for pair in chain.cells.windows(2) {
            let (a, b) = (&grid.cells()[pair[0]], &grid.cells()[pair[1]]);
            let changed = ["C", "p", "q", "radius"]
                .into_iter()
                .filter(|name| a.get(name) != b.get(name))
                .count();
            assert!(a.kernels == b.kernels && a.sharing.name() == b.sharing.name());
            // q restarts where p changes.
            assert!(
                changed == 1 || (changed == 2 && a.get("p") != b.get("p")),
                "{a:?} {b:?}"
            );
        }
        chain.cells.iter().for_each(|&cell| seen[cell] += 1);
    }
    assert!(seen.iter().all(|&count| count == 2));
    assert!(Grid::new(&MachineSpec::svc(1.0), &sharings, 1, &[axis("C", &[])]).is_err());
    assert!(Grid::new(&MachineSpec::svc(1.0), &sharings, 1, &[axis("nu", &[0.5])]).is_err());
    assert!(Grid::new(&MachineSpec::svc(1.0), &[], 1, &[]).is_err());
}

#[test]
fn chains_are_the_same_in_whatever_order_the_cells_come() {
    let values = [0.1, 1.0, 10.0];
    let axis = |parameter: &str, values: &[f64]| Axis {
        parameter: parameter.to_string(),
        values: values.to_vec(),
    };
    let axes = [axis("C", &values), axis("p", &[1.0, 2.0])];
    let machine = MachineSpec::svc(1.0);
    let grid = Grid::new(&machine, &[SharingSpec::lp(2.0, 1.0)], 1, &axes).unwrap();
    // C outside, p inside.
    let turned = (0..3).flat_map(|c| [0, 1].map(|p| grid.cells()[3 * p + c].clone()));
    let turned = Grid::of(turned.collect());
    let cells = |grid: &Grid| -> Vec<Vec<mtmkl::select::Cell>> {
        let chain = |chain: &mtmkl::select::Chain| {
            let cells = chain.cells.iter();
            cells.map(|&cell| grid.cells()[cell].clone()).collect()
        };
        grid.chains(2).iter().map(chain).collect()
    };
    assert_ne!(turned.cells(), grid.cells());
    assert_eq!(cells(&turned), cells(&grid));
}

/// Three classes in the plane as one-vs-all tasks, and a second sample set with a task of its own.
fn problem() -> (Problem, Vec<Vec<f64>>) {
    let mut random = Random::new(7);
    let mut points =
        |count: usize| -> Vec<f64> { (0..2 * count).map(|_| 2.0 * random.uniform()).collect() };
    let (first, second) = (points(60), points(40));
    let class = |i: usize| {
        usize::from(first[2 * i] > 0.8) + usize::from(first[2 * i] + first[2 * i + 1] > 2.4)
    };
    let mut tasks: Vec<Task> = (0..3)
        .map(|own| {
            let labels = (0..60)
                .map(|i| if class(i) == own { 1.0 } else { -1.0 })
                .collect();
            Task::new(format!("class {own}"), Targets::Labels(labels))
        })
        .collect();
    let labels = (0..40)
        .map(|i| {
            if second[2 * i] > second[2 * i + 1] {
                1.0
            } else {
                -1.0
            }
        })
        .collect();
    tasks.push(Task::new("other", Targets::Labels(labels)).on(1));
    let samples = vec![
        Samples::new(first.clone(), 60, 2).unwrap(),
        Samples::new(second.clone(), 40, 2).unwrap(),
    ];
    let mut kernels = parse_kernels("linear").unwrap();
    kernels.extend(parse_kernels("rbf:sigma=0.3|1|3").unwrap());
    let spec = ProblemSpec::new(kernels, MachineSpec::svc(1.0), SharingSpec::uniform());
    (
        Problem::new(spec, samples, tasks).unwrap(),
        vec![first, second],
    )
}

fn folds() -> Vec<Fold> {
    (0..3)
        .map(|fold| {
            let part = |count: usize, own: bool| {
                (0..count)
                    .filter(|row| (row % 3 == fold) == own)
                    .collect::<Vec<_>>()
            };
            Fold {
                learn: vec![part(60, false), part(40, false)],
                held: vec![part(60, true), part(40, true)],
            }
        })
        .collect()
}

fn limits() -> Limits {
    Limits {
        tolerance: 1e-8,
        max_passes: 1000,
        time_limit: None,
        seed: 0,
        warm: false,
        stop: Stop::never(),
    }
}

#[test]
fn a_fit_on_a_fold_is_the_fit_on_those_rows() {
    let (problem, points) = problem();
    let prepared = problem.prepare(&Preparation::default()).unwrap();
    let sharings = [
        SharingSpec::pscs(1.5, 1.0, 1.0),
        SharingSpec::independent(2.0, 1.0),
    ];
    let axes = [Axis {
        parameter: "C".to_string(),
        values: vec![0.5, 5.0],
    }];
    let grid = Grid::new(&MachineSpec::svc(1.0), &sharings, 2, &axes).unwrap();
    let sets = vec![vec![0, 1, 2, 3], vec![3, 1]];
    let folds = folds();
    let search = Search::new(&problem, &sets, &grid, &folds).unwrap();
    let mut fits = 0;
    let both = [false, true].map(|warm| (warm, grid.chains(folds.len())));
    for (warm, chain) in both
        .into_iter()
        .flat_map(|(warm, chains)| chains.into_iter().map(move |chain| (warm, chain)))
    {
        let tell = |trial: mtmkl::select::Trial<'_>| {
            fits += 1;
            let (cell, fold) = (&grid.cells()[trial.cell], &folds[trial.fold]);
            // The same rows as sample sets of their own, kernels computed anew.
            let take = |set: usize, rows: &[usize]| -> Vec<f64> {
                rows.iter()
                    .flat_map(|&row| points[set][2 * row..2 * row + 2].to_vec())
                    .collect()
            };
            let samples = (0..2)
                .map(|set| {
                    Samples::new(take(set, &fold.learn[set]), fold.learn[set].len(), 2).unwrap()
                })
                .collect();
            let tasks = problem
                .tasks()
                .iter()
                .map(|task| {
                    let Targets::Labels(labels) = &task.targets else {
                        unreachable!()
                    };
                    let own = fold.learn[task.samples]
                        .iter()
                        .map(|&row| labels[row])
                        .collect();
                    Task::new(task.name.clone(), Targets::Labels(own)).on(task.samples)
                })
                .collect();
            let kernels = sets[cell.kernels]
                .iter()
                .map(|&kernel| problem.spec().kernels[kernel].clone())
                .collect();
            let spec = ProblemSpec::new(kernels, cell.machine.clone(), cell.sharing.clone());
            let mut run = Fitting {
                tolerance: 1e-8,
                ..Fitting::default()
            };
            let fresh = Problem::new(spec, samples, tasks)
                .unwrap()
                .fit(&mut run)
                .unwrap();
            let (a, b) = (fresh.outcome(), trial.model.outcome());
            assert!(
                (a.objective - b.objective).abs() <= 1e-7 * a.objective,
                "{a:?} {b:?}"
            );
            for (number, task) in fresh.tasks().iter().enumerate() {
                let held = take(task.set, &fold.held[task.set]);
                let rows = Rows::new(&held, fold.held[task.set].len(), 2).unwrap();
                // From the trial's own model, but with kernels computed: the same to rounding.
                let computed = trial.model.decision(&task.name, rows).unwrap();
                for (x, y) in computed.iter().zip(&trial.decisions[number]) {
                    assert!((x - y).abs() < 1e-9, "{x} {y}");
                }
                let anew = fresh.decision(&task.name, rows).unwrap();
                for (x, y) in anew.iter().zip(&trial.decisions[number]) {
                    assert!((x - y).abs() < 2e-3 * (1.0 + x.abs()), "{x} {y}");
                }
            }
            ControlFlow::Continue(())
        };
        let limits = Limits { warm, ..limits() };
        search
            .follow(&prepared, &chain, None, &limits, prepared.pool(), tell)
            .unwrap();
    }
    assert_eq!(fits, 2 * 3 * grid.cells().len());
}

#[test]
fn weights_of_a_fold_are_those_of_its_tasks() {
    let (problem, _) = problem();
    let prepared = problem.prepare(&Preparation::default()).unwrap();
    let grid = Grid::new(&MachineSpec::svc(1.0), &[SharingSpec::uniform()], 1, &[]).unwrap();
    let (sets, folds) = (vec![vec![0, 1, 2, 3]], folds());
    let weight = |fold: usize, row: usize| 1.0 + ((7 * row + fold) % 5) as f64;
    let weights: Vec<Vec<Vec<f64>>> = (0..folds.len())
        .map(|fold| {
            [60, 40]
                .map(|count| (0..count).map(|row| weight(fold, row)).collect())
                .to_vec()
        })
        .collect();
    let search = || Search::new(&problem, &sets, &grid, &folds).unwrap();
    let objectives = |search: &Search<'_>| -> Vec<f64> {
        let mut found = Vec::new();
        for chain in grid.chains(folds.len()) {
            let tell = |trial: mtmkl::select::Trial<'_>| {
                found.push(trial.model.outcome().objective);
                ControlFlow::Continue(())
            };
            let pool = prepared.pool();
            search
                .follow(&prepared, &chain, None, &limits(), pool, tell)
                .unwrap();
        }
        found
    };
    let found = objectives(&search().with_weights(&weights).unwrap());
    for (fold, found) in found.iter().enumerate() {
        let tasks = problem.tasks().iter().map(|task| {
            let learned: Vec<bool> = (0..60).map(|row| row % 3 != fold).collect();
            let mut task = task.restricted(&learned[..if task.samples == 0 { 60 } else { 40 }]);
            let rows = 0..task.rows.count(0);
            task.weights = Some(
                rows.map(|at| weight(fold, task.rows.position(at)))
                    .collect(),
            );
            task
        });
        let spec = problem.spec().clone();
        let by_hand = Problem::new(spec, problem.samples().to_vec(), tasks.collect()).unwrap();
        let mut run = Fitting {
            tolerance: 1e-8,
            ..Fitting::default()
        };
        let by_hand = by_hand.fit(&mut run).unwrap().outcome().objective;
        assert!(
            (found - by_hand).abs() <= 1e-7 * by_hand,
            "{found} {by_hand}"
        );
    }
    let plain = objectives(&search());
    assert!(
        plain
            .iter()
            .zip(&found)
            .all(|(a, b)| (a - b).abs() > 1e-3 * b)
    );
    for wrong in [&weights[1..], &[vec![vec![1.0; 60]], vec![], vec![]]] {
        assert!(search().with_weights(wrong).is_err());
    }
}

#[test]
fn decisions_of_every_machine() {
    let mut random = Random::new(3);
    let values: Vec<f64> = (0..60).map(|_| random.uniform()).collect();
    let samples = Samples::new(values.clone(), 30, 2).unwrap();
    let numbers: Vec<f64> = (0..30).map(|i| values[2 * i] - values[2 * i + 1]).collect();
    let labels: Vec<f64> = numbers.iter().map(|x| x.signum()).collect();
    let held: Vec<usize> = (0..30).filter(|row| row % 4 == 0).collect();
    for info in mtmkl::Registry::default().machines() {
        let targets = match info.targets {
            mtmkl::machine::TargetKind::Labels => Targets::Labels(labels.clone()),
            mtmkl::machine::TargetKind::Values => Targets::Values(numbers.clone()),
            mtmkl::machine::TargetKind::Unlabelled => Targets::Unlabelled,
        };
        for machine in (info.examples)() {
            let spec = ProblemSpec {
                normalize: false.into(),
                ..ProblemSpec::new(
                    parse_kernels("poly:degree=1|2").unwrap(),
                    machine,
                    SharingSpec::simplex(),
                )
            };
            let task = Task::new("t", targets.clone());
            let learn = (0..30).map(|row| row % 4 != 0).collect::<Vec<bool>>();
            let problem =
                Problem::new(spec, vec![samples.clone()], vec![task.restricted(&learn)]).unwrap();
            let prepared = problem.prepare(&Preparation::default()).unwrap();
            let model = prepared.fit(&mut Fitting::default()).unwrap();
            let rows: Vec<f64> = held
                .iter()
                .flat_map(|&row| values[2 * row..2 * row + 2].to_vec())
                .collect();
            let computed = model
                .decision("t", Rows::new(&rows, held.len(), 2).unwrap())
                .unwrap();
            let viewed = prepared
                .decisions(&model, std::slice::from_ref(&held))
                .unwrap();
            for (x, y) in computed.iter().zip(&viewed[0]) {
                assert!(
                    (x - y).abs() < 1e-9 * (1.0 + x.abs()),
                    "{}: {x} {y}",
                    info.part.name
                );
            }
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let (problem, _) = problem();
    let grid = Grid::new(
        &MachineSpec::svc(1.0),
        &[SharingSpec::pscs(1.1, 1.0, 1.0), SharingSpec::uniform()],
        1,
        &[
            Axis {
                parameter: "C".to_string(),
                values: vec![0.3, 3.0],
            },
            Axis {
                parameter: "q".to_string(),
                values: vec![1.0, 2.0],
            },
        ],
    )
    .unwrap();
    let sets = vec![vec![0, 1, 2, 3]];
    let folds = folds();
    let outcomes = |threads: usize| {
        let prepared = problem
            .prepare(&Preparation {
                pool: Some(Pool::new(threads).unwrap()),
                ..Preparation::default()
            })
            .unwrap();
        let pools = Pool::for_jobs(grid.chains(folds.len()).len(), threads).unwrap();
        let search = Search::new(&problem, &sets, &grid, &folds).unwrap();
        let chains = grid.chains(folds.len());
        let found = Mutex::new(BTreeMap::new());
        in_parallel(chains.len(), &pools, |chain, pool| {
            search.follow(
                &prepared,
                &chains[chain],
                None,
                &Limits {
                    warm: true,
                    ..limits()
                },
                pool,
                |trial| {
                    let bits: Vec<Vec<u64>> = trial
                        .decisions
                        .iter()
                        .map(|values| values.iter().map(|value| value.to_bits()).collect())
                        .collect();
                    found.lock().unwrap().insert((trial.fold, trial.cell), bits);
                    ControlFlow::Continue(())
                },
            )
        })
        .unwrap();
        found.into_inner().unwrap()
    };
    let one = outcomes(1);
    assert_eq!(one.len(), folds.len() * grid.cells().len());
    assert!(one == outcomes(3));
    assert!(one == outcomes(16));
}

#[test]
fn what_cannot_be_fitted_is_refused_before_any_fit() {
    let (problem, _) = problem();
    let sets = vec![vec![0, 1, 2, 3], vec![]];
    let axis = |parameter: &str, values: &[f64]| Axis {
        parameter: parameter.to_string(),
        values: values.to_vec(),
    };
    let pscs = SharingSpec::pscs(1.1, 1.0, 1.0);
    let refused = |kernel_sets: usize, axes: &[Axis], folds: &[Fold]| {
        let grid = Grid::new(
            &MachineSpec::svc(1.0),
            std::slice::from_ref(&pscs),
            kernel_sets,
            axes,
        )
        .unwrap();
        Search::new(&problem, &sets, &grid, folds)
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    assert!(refused(2, &[], &folds()).contains("kernels"));
    assert!(refused(1, &[axis("C", &[1.0, -1.0])], &folds()).contains("`C` is -1"));
    assert!(refused(1, &[axis("q", &[1.0, 0.5])], &folds()).contains("`q` is 0.5"));
    let mut one_class = folds();
    let Targets::Labels(labels) = &problem.tasks()[0].targets else {
        unreachable!()
    };
    one_class[1].learn[0] = (0..60).filter(|&row| labels[row] < 0.0).collect();
    assert!(refused(1, &[], &one_class).contains("class 0"));
}

#[test]
fn work_ends_at_the_first_error() {
    let done = Mutex::new(Vec::new());
    let pools = |jobs, threads| Pool::for_jobs(jobs, threads).unwrap();
    let work = |i: usize, pool: &Pool| {
        assert_eq!(pool.threads(), 1);
        done.lock().unwrap().push(i);
        if i == 3 { Err(i) } else { Ok(()) }
    };
    assert_eq!(in_parallel(100, &pools(100, 1), work), Err(3));
    assert_eq!(*done.lock().unwrap(), [0, 1, 2, 3]);
    assert_eq!(
        in_parallel(100, &pools(100, 4), |i, _| if i % 10 == 5 {
            Err(i)
        } else {
            Ok(())
        }),
        Err(5)
    );
    assert_eq!(in_parallel(0, &pools(0, 4), |i, _| Err(i)), Ok(()));
    // Threads that calls cannot use are theirs.
    assert_eq!(
        in_parallel(2, &pools(2, 8), |_, pool| match pool.threads() {
            4 => Ok(()),
            other => Err(other),
        }),
        Ok(())
    );
}

#[test]
fn a_start_from_another_model_changes_the_way_not_the_answer() {
    let mut random = Random::new(8);
    let values: Vec<f64> = (0..160).map(|_| random.uniform()).collect();
    let samples = Samples::new(values.clone(), 80, 2).unwrap();
    let numbers: Vec<f64> = (0..80).map(|i| values[2 * i] - values[2 * i + 1]).collect();
    let sharings = [
        SharingSpec::simplex(),
        SharingSpec::pscs(1.5, 2.0, 1.0),
        // Its set is smaller than that before it.
        SharingSpec::pscs(1.2, 1.0, 0.5),
        SharingSpec::tang(0.5),
        SharingSpec::group(2.0, 1.0, 1.0),
    ];
    for info in mtmkl::Registry::default().machines() {
        let targets = match info.targets {
            mtmkl::machine::TargetKind::Labels => {
                Targets::Labels(numbers.iter().map(|x| x.signum()).collect())
            }
            mtmkl::machine::TargetKind::Values => Targets::Values(numbers.clone()),
            mtmkl::machine::TargetKind::Unlabelled => Targets::Unlabelled,
        };
        let machines = (info.examples)();
        let kernels = ["rbf:gamma=3", "rbf:gamma=0.3", "linear"]
            .map(|kernel| mtmkl::kernel::parse_kernel(kernel).unwrap())
            .to_vec();
        let half: Vec<bool> = (0..80).map(|row| row % 2 == 0).collect();
        let tasks = vec![
            Task::new("all", targets.clone()),
            Task::new("half", targets).restricted(&half),
        ];
        let spec = ProblemSpec::new(kernels, machines[0].clone(), SharingSpec::simplex());
        let problem = Problem::new(spec, vec![samples.clone()], tasks).unwrap();
        let prepared = problem.prepare(&Preparation::default()).unwrap();
        let run = || Fitting {
            tolerance: 1e-7,
            ..Fitting::default()
        };
        let mut last: Option<mtmkl::Model> = None;
        for machine in &machines {
            for sharing in &sharings {
                // The pair may be refused; that is another test's matter.
                let Ok(cell) = prepared.with(machine, sharing) else {
                    continue;
                };
                let cold = cell.fit(&mut run()).unwrap();
                if let Some(last) = &last {
                    let warm = cell.fit(&mut Fitting {
                        tolerance: 1e-7,
                        start: Some(last),
                        ..Fitting::default()
                    });
                    let warm = warm.unwrap();
                    let (a, b) = (cold.outcome(), warm.outcome());
                    assert!(b.status.is_converged(), "{machine:?} {sharing:?} {b:?}");
                    assert!(
                        (a.objective - b.objective).abs() <= 2e-7 * a.objective.abs(),
                        "{machine:?} {sharing:?} {} {}",
                        a.objective,
                        b.objective
                    );
                }
                last = Some(cold);
            }
        }
    }
}

/// An order can be right where the sign is not: few of the class +1, and none of its decisions positive at a small price.
#[test]
fn a_price_is_chosen_by_the_metric_that_is_named() {
    let mut random = Random::new(5);
    let points: Vec<f64> = (0..300).map(|_| random.uniform()).collect();
    let labels: Vec<f64> = (points.chunks_exact(2))
        .map(|x| f64::from(u8::from(x[0] + 0.5 * random.uniform() > 1.1)) * 2.0 - 1.0)
        .collect();
    let kernels = parse_kernels("linear").unwrap();
    let spec = ProblemSpec::new(kernels, MachineSpec::svc(1.0), SharingSpec::uniform());
    let samples = Samples::new(points, 150, 2).unwrap();
    let task = Task::new("rare", Targets::Labels(labels));
    let problem = Problem::new(spec, vec![samples], vec![task]).unwrap();
    let prepared = problem.prepare(&Preparation::default()).unwrap();
    let by = |metric: Option<Metric>| prepared.usual_price(metric, &limits()).unwrap();
    assert_eq!(by(None).by, "5 folds");
    assert_eq!(by(Some(Metric::Auc)).by, "AUC on 5 folds");
    // There are no probabilities to choose by.
    assert_eq!(by(Some(Metric::LogLoss)), by(None));
    // None that is not about labels has a score.
    assert_eq!(by(Some(Metric::R2)).parameter, "C");
    let (at, price) = prepared
        .at_usual_price(Some(Metric::Auc), &limits())
        .unwrap();
    let machine = &at.problem().spec().machine;
    assert_eq!(machine.get("C"), Some(price.value));
}

/// Three columns and thousands of rows: the smaller the ridge the better, by less and less, down to systems that rounding spoils.
#[test]
fn of_ridges_that_are_as_good_the_larger_is_chosen() {
    let mut random = Random::new(6);
    let rows = 2100;
    let points: Vec<f64> = (0..3 * rows).map(|_| random.uniform() - 0.5).collect();
    let values = (points.chunks_exact(3))
        .map(|x| x[0] + x[1] + x[2] + 0.1 * random.uniform())
        .collect();
    let kernels = parse_kernels("linear").unwrap();
    let spec = ProblemSpec::new(kernels, MachineSpec::krr(1.0), SharingSpec::uniform());
    let samples = Samples::new(points, rows, 3).unwrap();
    let task = Task::new("plane", Targets::Values(values));
    let problem = Problem::new(spec, vec![samples], vec![task]).unwrap();
    let prepared = problem.prepare(&Preparation::default()).unwrap();
    let price = prepared.usual_price(None, &limits()).unwrap();
    assert_eq!(price.by, "5 folds");
    assert!(price.value > 1e-3, "{}", price.value);
}
