//! Tasks whose samples are in two places, fitted to one θ: what is joined is the model of one place, and what stands alone is a true model of its tasks.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use mtmkl::engine::{Engine, Evaluation, Fitted, Levels, Mixture, Request};
use mtmkl::grid::{Grid, Shape};
use mtmkl::kernel::parse_kernels;
use mtmkl::machine::MachineSpec;
use mtmkl::model::{Machines, Seconds};
use mtmkl::sharing::{Reach, SharingSpec};
use mtmkl::solver::{Solution, SolverSpec};
use mtmkl::{
    Fitting, Model, OuterProblem, Preparation, Prepared, Problem, ProblemSpec, Proven, Samples,
    Status, Targets, Task,
};
use mtmkl_testkit::generate::{self, Random};

const N: usize = 30;
const KERNELS: &str = "rbf:gamma=0.1|1";
/// The place of each task, and which of its place's tasks it is.
const PLACES: [(usize, usize); 4] = [(0, 0), (1, 0), (0, 1), (1, 1)];

/// The samples and targets of a task, by its number among all.
fn task(number: usize) -> (Samples, Targets) {
    let mut random = Random::new(40 + number as u64);
    let points = generate::points(&mut random, N, 2);
    let labels = generate::labels(&mut random, &points, N, 2);
    (Samples::new(points, N, 2).unwrap(), Targets::Labels(labels))
}

/// These tasks, each with samples of its own.
fn problem(numbers: &[usize], sharing: SharingSpec) -> Problem {
    let kernels = parse_kernels(KERNELS).unwrap();
    let spec = ProblemSpec::new(kernels, MachineSpec::svc(2.0), sharing);
    let (mut sets, mut tasks) = (Vec::new(), Vec::new());
    for &number in numbers {
        let (samples, targets) = task(number);
        let mut own = Task::new(format!("t{number}"), targets);
        own.samples = sets.len();
        sets.push(samples);
        tasks.push(own);
    }
    Problem::new(spec, sets, tasks).unwrap()
}

/// The tasks of a place, by their numbers among all.
fn of_place(place: usize) -> Vec<usize> {
    let all = 0..PLACES.len();
    all.filter(|&number| PLACES[number].0 == place).collect()
}

/// J of all tasks from the two places' engines.
struct TwoPlaces {
    levels: Vec<Levels>,
    /// By the number of an evaluation, what each place calls it.
    numbers: Vec<[usize; 2]>,
}

/// By task, what its place has said of it.
fn of_tasks<T: Clone>(answers: &[Vec<T>]) -> Vec<T> {
    PLACES
        .iter()
        .map(|&(place, at)| answers[place][at].clone())
        .collect()
}

fn rows(theta: &Grid, place: usize) -> Grid {
    let values = of_place(place)
        .iter()
        .flat_map(|&number| theta.row(number).to_vec())
        .collect();
    Grid::new(2, theta.kernels(), values).unwrap()
}

impl Engine for TwoPlaces {
    fn shape(&self) -> Shape {
        Shape {
            tasks: PLACES.len(),
            kernels: 2,
        }
    }

    fn is_concave(&self) -> bool {
        true
    }

    fn evaluate(&mut self, theta: &Grid, request: &Request) -> mtmkl::Result<Evaluation> {
        let mut all = Evaluation::zeros(self.numbers.len(), PLACES.len(), theta.kernels());
        let mut curvature = vec![None; PLACES.len()];
        let mut own = [0; 2];
        for place in 0..2 {
            let found = self.levels[place]
                .engine()
                .evaluate(&rows(theta, place), request)?;
            own[place] = found.number;
            for (at, number) in of_place(place).into_iter().enumerate() {
                all.values[number] = found.values[at];
                all.gaps[number] = found.gaps[at];
                all.noises[number] = found.noises[at];
                all.forgiven[number] = found.forgiven[at];
                all.scales[number] = found.scales[at];
                let s = all.sensitivities.row_mut(number);
                s.copy_from_slice(found.sensitivities.row(at));
                curvature[number] = found.curvature.as_ref().map(|all| all[at].clone());
            }
        }
        all.curvature = curvature.into_iter().collect();
        self.numbers.push(own);
        Ok(all)
    }

    fn keep(&mut self, numbers: &[usize]) {
        for place in 0..2 {
            let own: Vec<usize> = numbers.iter().map(|&at| self.numbers[at][place]).collect();
            self.levels[place].engine().keep(&own);
        }
    }

    fn machines(&mut self, numbers: &[usize]) -> mtmkl::Result<Vec<Fitted>> {
        let answers = (0..2).map(|place| {
            let tasks = of_place(place);
            let own: Vec<usize> = tasks
                .iter()
                .map(|&task| self.numbers[numbers[task]][place])
                .collect();
            self.levels[place].engine().machines(&own)
        });
        let answers: Vec<_> = answers.collect::<mtmkl::Result<_>>()?;
        Ok(of_tasks(&answers))
    }

    fn mixtures(&mut self, mixtures: &[Mixture]) -> mtmkl::Result<Vec<Vec<f64>>> {
        let answers = (0..2).map(|place| {
            let known = |(number, weight): &(usize, f64)| (self.numbers[*number][place], *weight);
            let own: Vec<Mixture> = of_place(place)
                .iter()
                .map(|&task| mixtures[task].iter().map(known).collect())
                .collect();
            self.levels[place].engine().mixtures(&own)
        });
        let answers: Vec<_> = answers.collect::<mtmkl::Result<_>>()?;
        Ok(of_tasks(&answers))
    }
}

/// What each place has of a fit that is over.
struct Place {
    prepared: Prepared,
    theta: Grid,
    fitted: Vec<Fitted>,
    witness: Vec<Vec<f64>>,
}

impl Place {
    fn machines(&self) -> Machines {
        self.prepared
            .machines(&self.fitted, &self.witness, true)
            .unwrap()
    }

    fn standing(&self, allowed: f64) -> (Model, Proven) {
        let part = self.prepared.standing_part(
            &self.theta,
            &self.fitted,
            &self.witness,
            allowed,
            Status::Converged,
        );
        part.unwrap().unwrap()
    }
}

/// A fit over two places: its answer, the problem of θ, and the places.
fn solved(sharing: SharingSpec) -> (Solution, OuterProblem, Vec<Place>) {
    let machine = MachineSpec::svc(2.0);
    let prepared: Vec<Prepared> = (0..2)
        .map(|place| {
            let problem = problem(&of_place(place), SharingSpec::uniform());
            problem.prepare(&Preparation::default()).unwrap()
        })
        .collect();
    let mut engine = TwoPlaces {
        levels: prepared.iter().map(Prepared::levels).collect(),
        numbers: Vec::new(),
    };
    let outer = OuterProblem::new(&machine, sharing, SolverSpec::Newton, engine.shape()).unwrap();
    let mut fitting = Fitting {
        tolerance: 1e-7,
        ..Fitting::default()
    };
    let solution = outer.solve(&mut engine, None, &mut fitting, None).unwrap();
    let fitted = engine.machines(&solution.machines).unwrap();
    let witness = engine.mixtures(&solution.witness).unwrap();
    let places = prepared.into_iter().enumerate().map(|(place, prepared)| {
        let of = of_place(place);
        Place {
            prepared,
            theta: rows(&solution.theta, place),
            fitted: of.iter().map(|&task| fitted[task].clone()).collect(),
            witness: of.iter().map(|&task| witness[task].clone()).collect(),
        }
    });
    let places = places.collect();
    (solution, outer, places)
}

fn decisions(model: &Model, name: &str) -> Vec<f64> {
    let points = [0.3, -0.2, 1.0, 0.7, -1.1, 0.4];
    let rows = mtmkl::Rows::new(&points, 3, 2).unwrap();
    model.decision(name, rows).unwrap()
}

/// Whether two intervals that hold one number have one in common, up to rounding.
fn meet(one: &Model, other: &Model) -> bool {
    let (one, other) = (one.outcome(), other.outcome());
    let rounding = 1e-12 * one.objective.abs();
    one.bound <= other.objective + rounding && other.bound <= one.objective + rounding
}

#[test]
fn what_is_joined_is_the_model_of_one_place() {
    for sharing in [
        SharingSpec::pscs(1.5, 1.0, 1.0),
        SharingSpec::common(2.0, 1.0),
        SharingSpec::independent(2.0, 1.0),
    ] {
        let (solution, outer, places) = solved(sharing.clone());
        let parts: Vec<Machines> = places.iter().map(Place::machines).collect();
        let seconds = Seconds {
            kernels: 1.0,
            solve: 2.0,
        };
        let joined = Machines::joined(parts, &PLACES).unwrap();
        let model = outer.model(solution.clone(), seconds, joined).unwrap();
        let direct = problem(&[0, 1, 2, 3], sharing.clone())
            .fit(&mut Fitting {
                tolerance: 1e-7,
                ..Fitting::default()
            })
            .unwrap();
        assert!(meet(&model, &direct));
        let names: Vec<&str> = model.tasks().iter().map(|own| own.name.as_str()).collect();
        assert_eq!(names, ["t0", "t1", "t2", "t3"]);
        assert_eq!(model.sharing(), &sharing);
        assert_eq!(model.kernels().len(), 2);
        assert_eq!(model.normalize(), direct.normalize());
        assert_eq!(model.parts().len(), direct.parts().len());
        assert_eq!(model.common().is_some(), direct.common().is_some());
        assert_eq!(model.specific().is_some(), direct.specific().is_some());
        assert_eq!(model.weights(), &solution.theta);
        let outcome = model.outcome();
        assert_eq!(outcome.status, Status::Converged);
        assert_eq!(
            (outcome.objective, outcome.bound),
            (solution.objective, solution.bound)
        );
        assert_eq!((outcome.gap, outcome.tolerance), (solution.gap, Some(1e-7)));
        assert_eq!((outcome.seconds.kernels, outcome.seconds.solve), (1.0, 2.0));
        assert!(outcome.solver.is_some() && !outcome.trace.is_empty());
        for name in names {
            let (one, other) = (decisions(&model, name), decisions(&direct, name));
            let near = |(a, b): (&f64, &f64)| (a - b).abs() < 5e-3;
            assert!(one.iter().zip(&other).all(near), "{one:?}, {other:?}");
        }
        // All machines on the samples of one task, which has one.
        let points = [0.3, -0.2, 1.0, 0.7, -1.1, 0.4];
        let rows = mtmkl::Rows::new(&points, 3, 2).unwrap();
        for set in 0..4 {
            let found = model.decisions_on(set, rows).unwrap();
            assert_eq!(found, [decisions(&model, &format!("t{set}"))]);
        }
        assert!(model.decisions_on(4, rows).unwrap().is_empty());
    }
}

#[test]
fn what_stands_alone_is_a_true_model_of_its_tasks() {
    for sharing in [SharingSpec::pscs(1.5, 1.0, 1.0), SharingSpec::simplex()] {
        let (solution, outer, places) = solved(sharing);
        let allowed = 1e-3 * solution.objective;
        let mut whole = (0.0, 0.0);
        for (place, own) in places.iter().enumerate() {
            let (part, proven) = own.standing(allowed);
            let outcome = part.outcome();
            assert_eq!(outcome.objective, proven.primal.iter().sum::<f64>());
            let linear: f64 = (0..2)
                .map(|at| {
                    let s = proven.sensitivities.row(at).iter();
                    s.zip(own.theta.row(at)).map(|(s, t)| s * t).sum::<f64>()
                })
                .sum();
            let bound = proven.constant.iter().sum::<f64>() - linear;
            assert!((outcome.bound - bound).abs() <= 1e-14 * bound.abs());
            let gap = (outcome.objective - outcome.bound) / outcome.objective;
            assert!((outcome.gap - gap).abs() <= 1e-12 && outcome.gap < 1e-6);
            assert_eq!(outcome.tolerance, Some(allowed / outcome.objective));
            assert_eq!(outcome.status, Status::Converged);
            whole = (whole.0 + outcome.objective, whole.1 + outcome.bound);
            // The same tasks at these weights, solved by themselves.
            let at_theta = SharingSpec::fixed_at(&own.theta);
            assert_eq!(part.sharing(), &at_theta);
            let direct = problem(&of_place(place), at_theta)
                .fit(&mut Fitting {
                    tolerance: 1e-9,
                    ..Fitting::default()
                })
                .unwrap();
            assert!(meet(&part, &direct));
            assert_eq!(part.weights(), &own.theta);
            assert_eq!(part.specific(), Some(&own.theta));
            assert!(part.common().is_none());
            let [weights] = part.parts() else {
                panic!("one part");
            };
            assert_eq!(
                (weights.label.as_str(), &weights.reach),
                ("specific", &Reach::Each)
            );
            assert_eq!(weights.weights, own.theta);
            assert!(weights.names.is_empty());
            // Nothing allowed is more than it has reached.
            assert_eq!(own.standing(0.0).0.outcome().status, Status::Stalled);
            let read = Model::from_bytes(&part.to_bytes().unwrap()).unwrap();
            assert_eq!(
                decisions(&read, &part.tasks()[1].name),
                decisions(&part, &part.tasks()[1].name)
            );
        }
        assert!(whole.0 >= solution.bound && whole.1 >= solution.bound - 1e-9);
        // And the certificate of the whole, from what both have proven.
        let proofs: Vec<Proven> = places.iter().map(|own| own.standing(allowed).1).collect();
        let of = |pick: fn(&Proven) -> &Vec<f64>| {
            let numbers = PLACES.iter().map(|&(place, at)| pick(&proofs[place])[at]);
            numbers.collect::<Vec<f64>>()
        };
        let sensitivities = PLACES
            .iter()
            .flat_map(|&(place, at)| proofs[place].sensitivities.row(at).to_vec())
            .collect();
        let proven = Proven {
            primal: of(|proven| &proven.primal),
            constant: of(|proven| &proven.constant),
            sensitivities: Grid::new(4, 2, sensitivities).unwrap(),
        };
        let certified = solution.clone().proven_by(&proven, outer.sharing());
        assert_eq!(certified.status, Status::Converged);
        assert!((certified.objective - solution.objective).abs() <= 1e-9 * solution.objective);
        assert!(certified.gap <= 1e-7 && certified.bound <= certified.objective);
    }
}

#[test]
fn one_task_alone_has_common_weights() {
    let own = problem(&[0], SharingSpec::uniform());
    let prepared = own.prepare(&Preparation::default()).unwrap();
    let theta = Grid::new(1, 2, vec![0.5, 0.25]).unwrap();
    let mut levels = prepared.levels();
    let request = Request {
        accuracy: 1e-6,
        curvature: false,
        stop: mtmkl::Stop::never(),
        rounds: mtmkl::Rounds::default(),
    };
    let engine = levels.engine();
    let number = engine.evaluate(&theta, &request).unwrap().number;
    let fitted = engine.machines(&[number]).unwrap();
    let witness = engine.mixtures(&[vec![(number, 1.0)]]).unwrap();
    let (part, _) = prepared
        .standing_part(&theta, &fitted, &witness, 1.0, Status::Converged)
        .unwrap()
        .unwrap();
    assert_eq!(part.common(), Some(&theta));
    assert!(part.specific().is_none());
    assert_eq!(
        (part.parts()[0].label.as_str(), &part.parts()[0].reach),
        ("common", &Reach::All)
    );
}

#[test]
fn machines_go_elsewhere_and_come_back() {
    let sharing = SharingSpec::pscs(1.5, 1.0, 1.0);
    let (solution, outer, places) = solved(sharing);
    let parts: Vec<Machines> = places.iter().map(Place::machines).collect();
    let joined = Machines::joined(parts, &PLACES).unwrap();
    let mut model = outer.model(solution, Seconds::default(), joined).unwrap();
    model
        .notes_mut()
        .insert("about".to_string(), "it".to_string());
    let light = model.without_machines();
    assert_eq!(light.notes(), model.notes());
    assert_eq!(light.notes()["about"], "it");
    assert_eq!(light.weights(), model.weights());
    for (set, full) in light.support_sets().iter().zip(model.support_sets()) {
        assert!(set.positions.is_empty() && set.origins.is_none());
        assert_eq!((set.samples, &set.columns), (full.samples, &full.columns));
    }
    for (task, full) in light.tasks().iter().zip(model.tasks()) {
        assert!(task.support.is_empty() && task.beta.is_empty() && task.witness.is_none());
        assert!(!full.beta.is_empty());
        assert_eq!((&task.name, task.offset), (&full.name, full.offset));
    }
    let standing = || -> Vec<Model> {
        let models = places.iter().map(|own| own.standing(1.0).0);
        models.collect()
    };
    let back = light.with_machines(standing(), &PLACES).unwrap();
    assert_eq!(back.to_bytes().unwrap(), model.to_bytes().unwrap());
    for wrong in [
        // In another order, one twice, one that is not there, one too few.
        [(1, 0), (0, 0), (0, 1), (1, 1)].as_slice(),
        &[(0, 0), (0, 0), (0, 1), (1, 1)],
        &[(0, 0), (1, 0), (0, 1), (2, 0)],
        &[(0, 0), (1, 0), (0, 1)],
    ] {
        let error = light.with_machines(standing(), wrong).unwrap_err();
        assert!(
            error.to_string().contains("the parts of its model have"),
            "{error}"
        );
    }
    assert!(Machines::joined(Vec::new(), &[]).is_err());
    let few = Machines::joined(vec![places[0].machines()], &[(0, 0), (0, 1)]).unwrap();
    let solution = solved(SharingSpec::simplex()).0;
    let error = outer.model(solution, Seconds::default(), few).unwrap_err();
    assert!(
        error.to_string().contains("not as many machines"),
        "{error}"
    );
}
