//! The engine of one machine: tasks in parallel, Gram matrices shared.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::spanned::Spanned;
use super::task::TaskData;
use super::{Engine, Evaluation, LocalMaxima, LocalMaximum, Mixture, Request, Room, Solve};
use crate::error::{Error, Result};
use crate::gram::{ByChange, CombinedRows, Grams, Image, TaskGrams};
use crate::grid::{Grid, Shape, dot};
use crate::inner::{Effort, Fitted, Here, Progress, Solved, State, TaskEvaluation};
use crate::linalg::axpy;
use crate::machine::Conjugate;
use crate::pool::Pool;
use crate::run::{Rounds, Stop};

/// Tasks with the same samples and the same θ.
struct Job<'a> {
    rows: CombinedRows<'a>,
    members: Vec<(usize, &'a mut State)>,
}

/// A task that is not solved yet, where kernel values are streamed.
struct Open<'a> {
    number: usize,
    state: &'a mut State,
    progress: &'a mut Progress,
    solved: &'a mut Option<Result<Solved>>,
}

/// Makes the rows that tasks with the same samples will all begin with, each for one θ after the other: single kernels' rows are in the
/// cache then.
fn make_rows_of_support(jobs: &[Job<'_>], tasks: &[TaskData], theta: &Grid, most: usize) {
    let is_alike = |one: &Job<'_>, other: &Job<'_>| {
        tasks[one.members[0].0].has_samples_of(&tasks[other.members[0].0])
    };
    let mut left = most;
    for jobs in jobs.chunk_by(is_alike).filter(|jobs| jobs.len() > 1) {
        let count = jobs[0].rows.count();
        let mut users: Vec<Vec<&CombinedRows<'_>>> = vec![Vec::new(); count];
        let mut rows = 0;
        for Job { rows: own, members } in jobs.iter().filter(|job| job.rows.are_single()) {
            let mut is_used = vec![false; count];
            for (number, state) in members {
                for i in state.rows_to_begin_with(theta.row(*number)) {
                    is_used[i] = true;
                }
            }
            for i in (0..count).filter(|&i| is_used[i]) {
                users[i].push(own);
                rows += 1;
            }
        }
        if rows * count > left {
            continue;
        }
        left -= rows * count;
        users.par_iter().enumerate().for_each(|(i, users)| {
            for rows in users {
                rows.row(i);
            }
        });
    }
}

/// One more round of all tasks.
fn note_round(rounds: &Rounds, progress: &mut [Progress]) {
    let sum = |of: fn(&Progress) -> f64| -> f64 { progress.iter().map(of).sum() };
    let size = sum(Progress::size).max(f64::MIN_POSITIVE);
    let (gap, enough) = (sum(|task| task.gap), sum(|task| task.enough));
    for task in progress {
        rounds.add_pairs(std::mem::take(&mut task.pairs));
    }
    rounds.note(gap / size, enough / size);
}

/// What the engine of this machine is made of.
#[derive(Debug)]
pub(crate) struct Local {
    /// The Gram matrices of each sample set.
    pub(crate) grams: Arc<[Grams]>,
    pub(crate) tasks: Vec<TaskData>,
    /// Whether ḡ is concave in β.
    pub(crate) concave: bool,
    /// Whether SMO leaves variables out of its search.
    pub(crate) shrinking: bool,
    pub(crate) pool: Pool,
    pub(crate) room: Room,
}

impl Local {
    /// The engine of this machine. Σ_m θ_m is at most `reach`.
    pub(crate) fn engine(self, reach: f64) -> impl Engine + use<> {
        Spanned::new(self, reach)
    }
}

/// Evaluates J with the threads of one pool.
#[derive(Debug)]
pub(super) struct LocalEngine {
    pub(super) grams: Arc<[Grams]>,
    pub(super) tasks: Vec<TaskData>,
    pub(super) states: Vec<State>,
    pub(super) concave: bool,
    pub(super) shrinking: bool,
    pub(super) pool: Pool,
    pub(super) room: Room,
    /// The average |ḡ| of the last evaluation: the scale of what is worth solving for.
    size: f64,
    /// The machines of evaluations, by their numbers.
    remembered: BTreeMap<usize, Vec<Fitted>>,
    /// Those that are still wanted; the last one is known anyway.
    wanted: Vec<usize>,
    evaluations: usize,
}

impl LocalEngine {
    pub(super) fn new(parts: Local) -> Self {
        let Local {
            grams,
            tasks,
            concave,
            shrinking,
            pool,
            room,
        } = parts;
        let states = tasks
            .iter()
            .map(|task| State::new(&task.dual, None, grams[task.samples].ledger()))
            .collect();
        Self {
            grams,
            tasks,
            states,
            concave,
            shrinking,
            pool,
            room,
            size: 0.0,
            remembered: BTreeMap::new(),
            wanted: Vec::new(),
            evaluations: 0,
        }
    }

    /// Tasks with the same samples, together, as far as they are alike.
    fn groups(&self, are_alike: impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        // Those of each sample set: of thousands, each is looked for among its own only.
        let mut of_set: Vec<Vec<usize>> = vec![Vec::new(); self.grams.len()];
        for (number, task) in self.tasks.iter().enumerate() {
            let known = &mut of_set[task.samples];
            let same = known.iter().copied().find(|&group| {
                let first = groups[group][0];
                self.tasks[first].view == task.view && are_alike(first, number)
            });
            if let Some(group) = same {
                groups[group].push(number);
            } else {
                known.push(groups.len());
                groups.push(vec![number]);
            }
        }
        groups
    }

    /// Runs `work` for each task with the combined rows of its θ, in parallel; results come back in task order.
    fn for_each_task<R: Send>(
        &mut self,
        theta: &Grid,
        work: impl Fn(usize, &TaskData, &mut State, TaskGrams<'_>, &CombinedRows<'_>) -> Result<R>
        + Sync,
    ) -> Result<Vec<R>> {
        // Those with the same θ share combined rows.
        let groups = self.groups(|one, other| theta.row(one) == theta.row(other));
        let mut slots: Vec<Option<&mut State>> = self.states.iter_mut().map(Some).collect();
        let (grams, tasks, room) = (&self.grams, &self.tasks, self.room);
        let jobs: Vec<Job<'_>> = groups
            .iter()
            .map(|group| Job {
                rows: {
                    let seen = tasks[group[0]].seen_in(grams);
                    let rows = CombinedRows::new(seen, theta.row(group[0]));
                    if room.tasks.rows {
                        rows
                    } else {
                        rows.passing()
                    }
                },
                members: group
                    .iter()
                    .filter_map(|&task| slots[task].take().map(|state| (task, state)))
                    .collect(),
            })
            .collect();
        let results: Vec<Vec<(usize, Result<R>)>> = self.pool.install(|| {
            make_rows_of_support(&jobs, tasks, theta, room.rows_ahead);
            let solve = |Job { rows, members }: Job<'_>| -> Vec<(usize, Result<R>)> {
                if members.len() > 1 {
                    rows.make_together();
                }
                let run = |(number, state): (usize, &mut State)| {
                    let task = &tasks[number];
                    (
                        number,
                        work(number, task, state, task.seen_in(grams), &rows),
                    )
                };
                if room.is_parallel {
                    members.into_par_iter().map(run).collect()
                } else {
                    members.into_iter().map(run).collect()
                }
            };
            if room.is_parallel {
                jobs.into_par_iter().map(solve).collect()
            } else {
                jobs.into_iter().map(solve).collect()
            }
        });
        let mut ordered: Vec<Option<Result<R>>> = std::iter::repeat_with(|| None)
            .take(self.tasks.len())
            .collect();
        for (number, result) in results.into_iter().flatten() {
            ordered[number] = Some(result);
        }
        ordered.into_iter().flatten().collect()
    }

    /// Keeps the machines as they stand, as those of the last evaluation.
    fn remember(&mut self) {
        let wanted = &self.wanted;
        self.remembered.retain(|number, _| wanted.contains(number));
        let machines = self.states.iter().map(State::fitted).collect();
        self.remembered.insert(self.evaluations, machines);
    }

    /// U_m = K_mβ for every task whose β changed: tasks with the same samples together, whatever their θ.
    fn refresh(&mut self) {
        let groups = self.groups(|_, _| true);
        let (grams, tasks) = (&self.grams, &self.tasks);
        let mut slots: Vec<Option<&mut State>> = self.states.iter_mut().map(Some).collect();
        let jobs: Vec<(TaskGrams<'_>, Vec<&mut State>)> = (groups.iter())
            .map(|group| {
                let states = group.iter().filter_map(|&task| slots[task].take());
                (tasks[group[0]].seen_in(grams), states.collect())
            })
            .collect();
        let make = |(grams, mut states): (TaskGrams<'_>, Vec<&mut State>)| {
            let states = states.iter_mut();
            let images: Vec<Image<'_>> = states.filter_map(|state| state.outdated(grams)).collect();
            if !images.is_empty() {
                grams.images(images);
            }
        };
        let least = if self.room.is_parallel {
            1
        } else {
            jobs.len().max(1)
        };
        let jobs = jobs.into_par_iter().with_min_len(least);
        self.pool.install(|| jobs.for_each(make));
    }

    pub(super) fn is_streamed(&self) -> bool {
        self.grams.iter().any(|grams| grams.is_streamed())
    }

    /// β of all tasks by working sets: parts are solved by themselves, and U_m = K_mβ follows on all samples in one sweep for all tasks that see
    /// the same.
    fn solve_streamed(&mut self, theta: &Grid, request: &Request) -> Result<Vec<Solved>> {
        let effort = &self.effort(request);
        let count = self.tasks.len();
        let mut solved: Vec<Option<Result<Solved>>> =
            std::iter::repeat_with(|| None).take(count).collect();
        let mut progress: Vec<Progress> = std::iter::repeat_with(Progress::default)
            .take(count)
            .collect();
        request.rounds.begin();
        self.sweep(effort.stop, &request.rounds);
        let (grams, tasks) = (&self.grams, &self.tasks);
        for (number, (state, solved)) in self.states.iter_mut().zip(&mut solved).enumerate() {
            let view = tasks[number].seen_in(grams);
            *solved = state.unswept(&tasks[number].dual, view, theta.row(number), effort);
        }
        if solved.iter().all(Option::is_some) {
            return solved.into_iter().flatten().collect();
        }
        loop {
            let (grams, tasks) = (&self.grams, &self.tasks);
            let open = self.states.iter_mut().zip(&mut progress).zip(&mut solved);
            let mut open: Vec<Open<'_>> = (open.enumerate())
                .filter(|(_, (_, solved))| solved.is_none())
                .map(|(number, ((state, progress), solved))| Open {
                    number,
                    state,
                    progress,
                    solved,
                })
                .collect();
            let round = |open: &mut Open<'_>| {
                let task = &tasks[open.number];
                let (view, theta) = (task.seen_in(grams), theta.row(open.number));
                let found = (open.state).round(&task.dual, view, theta, effort, open.progress);
                *open.solved = found.transpose();
                if count > 1 {
                    open.state.give_back();
                }
            };
            let is_parallel = self.room.is_parallel;
            self.pool.install(|| {
                if is_parallel {
                    open.par_iter_mut().for_each(round);
                } else {
                    open.iter_mut().for_each(round);
                }
            });
            note_round(&request.rounds, &mut progress);
            if solved.iter().all(Option::is_some) {
                return solved.into_iter().flatten().collect();
            }
            self.sweep(effort.stop, &request.rounds);
        }
    }

    /// U follows β of every task, on all samples; or β stays where U is known.
    fn sweep(&mut self, stop: &Stop, rounds: &Rounds) {
        let groups = self.groups(|_, _| true);
        for group in groups {
            let grams = self.tasks[group[0]].seen_in(&self.grams);
            let mut slots: Vec<Option<&mut State>> = self.states.iter_mut().map(Some).collect();
            let changes: Vec<ByChange<'_>> = (group.iter())
                .filter_map(|&task| slots[task].take()?.follow(grams))
                .collect();
            let pairs = self.pool.install(|| grams.sweep(changes, stop));
            rounds.add_pairs(pairs.unwrap_or(0) as f64);
            for &task in &group {
                self.states[task].settle(pairs.is_some());
            }
        }
    }

    /// Whether these are weights for these tasks and kernels: an outer solver of the user's own may be mistaken.
    fn check(&self, theta: &Grid) -> Result<()> {
        let Shape { tasks, kernels } = self.shape();
        if (theta.rows(), theta.kernels()) == (tasks, kernels) && theta.is_finite() {
            return Ok(());
        }
        Err(Error::param(
            "theta",
            format!("a grid of {} × {} numbers", theta.rows(), theta.kernels()),
            format!("{tasks} × {kernels} finite ones"),
        ))
    }

    fn effort<'a>(&self, request: &'a Request) -> Effort<'a> {
        Effort {
            accuracy: request.accuracy,
            size: self.size,
            curvature: request.curvature,
            shrinking: self.shrinking,
            concave: self.concave,
            allowance: self.room.tasks,
            stop: &request.stop,
        }
    }
}

impl Engine for LocalEngine {
    fn shape(&self) -> Shape {
        Shape {
            tasks: self.tasks.len(),
            kernels: self.grams.first().map_or(0, |grams| grams.kernels()),
        }
    }

    fn is_concave(&self) -> bool {
        self.concave
    }

    fn is_curvature_costly(&self) -> bool {
        self.is_streamed()
    }

    fn evaluate(&mut self, theta: &Grid, request: &Request) -> Result<Evaluation> {
        self.check(theta)?;
        let effort = self.effort(request);
        let inner = if self.is_streamed() {
            self.solve_streamed(theta, request)?
        } else {
            let inner = self.for_each_task(theta, |number, task, state, grams, rows| {
                let theta = theta.row(number);
                state.solve(&task.dual, Here { grams, rows, theta }, &effort)
            })?;
            self.refresh();
            inner
        };
        let (grams, tasks) = (&self.grams, &self.tasks);
        let report = |((number, inner), state): ((usize, Solved), &mut State)| {
            let task = &tasks[number];
            let view = task.seen_in(grams);
            state.report(&task.dual, view, theta.row(number), inner, &effort)
        };
        let results: Vec<TaskEvaluation> = self.pool.install(|| {
            let pairs = inner.into_par_iter().enumerate().zip(&mut self.states);
            pairs.map(report).collect()
        });
        self.evaluations += 1;
        self.remember();
        let shape = self.shape();
        let mut evaluation = Evaluation {
            number: self.evaluations,
            values: Vec::with_capacity(shape.tasks),
            gaps: Vec::with_capacity(shape.tasks),
            sensitivities: Grid::zeros(shape.tasks, shape.kernels),
            curvature: request.curvature.then(Vec::new),
            scales: self.tasks.iter().map(|task| task.dual.scales()).collect(),
            inner_iterations: 0,
            noises: Vec::with_capacity(shape.tasks),
            forgiven: Vec::with_capacity(shape.tasks),
        };
        for (number, result) in results.into_iter().enumerate() {
            evaluation.values.push(result.value);
            evaluation.gaps.push(result.gap);
            evaluation
                .sensitivities
                .row_mut(number)
                .copy_from_slice(&result.sensitivities);
            evaluation.inner_iterations += result.steps;
            evaluation.noises.push(result.noise);
            evaluation.forgiven.push(result.forgiven);
            if let (Some(all), Some(one)) = (&mut evaluation.curvature, result.curvature) {
                all.push(one);
            }
        }
        self.size = evaluation.lower().abs() / shape.tasks as f64;
        Ok(evaluation)
    }

    fn keep(&mut self, numbers: &[usize]) {
        self.wanted = numbers.to_vec();
    }

    fn machines(&mut self, numbers: &[usize]) -> Result<Vec<Fitted>> {
        let machine = |(task, number)| self.remembered.get(number)?.get(task).cloned();
        let machines: Option<_> = numbers.iter().enumerate().map(machine).collect();
        machines.ok_or_else(forgotten)
    }

    fn mixtures(&mut self, mixtures: &[Mixture]) -> Result<Vec<Vec<f64>>> {
        let mix = |(task, mixture): (usize, &Mixture)| {
            let mut sum: Option<Vec<f64>> = None;
            for (number, weight) in mixture {
                let beta = &self.remembered.get(number)?.get(task)?.beta;
                let sum = sum.get_or_insert_with(|| vec![0.0; beta.len()]);
                axpy(*weight, beta, sum);
            }
            sum
        };
        let mixed: Option<_> = mixtures.iter().enumerate().map(mix).collect();
        mixed.ok_or_else(forgotten)
    }

    fn start_from(&mut self, beta: &[Vec<f64>]) -> Result<()> {
        let counts = self
            .tasks
            .iter()
            .map(|task| task.seen_in(&self.grams).count());
        if !counts.eq(beta.iter().map(Vec::len)) {
            return Err(Error::param(
                "beta",
                "of other tasks or samples",
                "for each task one number a sample",
            ));
        }
        for ((state, task), beta) in self.states.iter_mut().zip(&self.tasks).zip(beta) {
            // Of two variables of a sample, one for each sign, each takes its part.
            let copies = task.dual.variables.copies();
            state.start_at(&task.dual, &beta.repeat(copies));
        }
        Ok(())
    }

    fn coarser(&mut self, solve: &mut Solve<'_>) -> Result<bool> {
        let Some(mut coarse) = self.coarser_self() else {
            return Ok(false);
        };
        solve(&mut coarse.engine)?;
        self.adopt(&coarse);
        Ok(true)
    }

    fn bytes(&self) -> u64 {
        self.grams.iter().map(|grams| grams.bytes()).sum()
    }

    fn local_maxima(&mut self) -> Option<&mut dyn LocalMaxima> {
        Some(self)
    }
}

impl LocalMaxima for LocalEngine {
    fn maxima(
        &mut self,
        theta: &Grid,
        request: &Request,
        starts: usize,
        seed: u64,
    ) -> Result<Vec<Vec<LocalMaximum>>> {
        self.check(theta)?;
        let effort = Effort {
            curvature: false,
            ..self.effort(request)
        };
        let maxima = self.for_each_task(theta, |number, task, state, grams, rows| {
            let weights = theta.row(number);
            let here = Here {
                grams,
                rows,
                theta: weights,
            };
            let mut found = vec![local_maximum(
                state.evaluate(&task.dual, here, &effort)?,
                weights,
            )];
            let starts = if matches!(task.dual.conjugate, Conjugate::Box { .. }) {
                starts
            } else {
                0
            };
            for start in 0..starts {
                let order = shuffled(
                    task.dual.linear.len(),
                    seed ^ (number as u64) << 20 ^ (start as u64) << 40,
                );
                let mut other = State::new(&task.dual, Some(&order), grams.grams.ledger());
                let maximum = local_maximum(other.evaluate(&task.dual, here, &effort)?, weights);
                let same = |known: &LocalMaximum| {
                    (known.value - maximum.value).abs() <= 1e-7 * maximum.value.abs()
                };
                if !found.iter().any(same) {
                    if maximum.value > found[0].value {
                        // The best one found is where the next pass starts.
                        *state = other;
                    }
                    found.push(maximum);
                    found.sort_by(|a, b| b.value.total_cmp(&a.value));
                }
            }
            Ok(found)
        })?;
        // The best ones found are what the last evaluation is about now.
        self.remember();
        Ok(maxima)
    }
}

/// This point as a local maximum.
fn local_maximum(evaluation: TaskEvaluation, theta: &[f64]) -> LocalMaximum {
    LocalMaximum {
        value: evaluation.value,
        constant: evaluation.value + dot(&evaluation.sensitivities, theta),
        sensitivities: evaluation.sensitivities,
    }
}

/// 0..n in an order fixed by the seed (splitmix64).
fn shuffled(n: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    crate::random::Random::new(seed).shuffle(&mut order);
    order
}

/// Solvers say which evaluations they still know of.
fn forgotten() -> Error {
    Error::Engine(
        "it has forgotten the machines of an evaluation that is part of the answer; an outer solver must name with `keep` those it \
         knows of"
            .to_string(),
    )
}
