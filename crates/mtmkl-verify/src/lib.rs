//! Checks the certificate of a model from its rows and the model alone: nobody needs to believe the solver.
//!
//! A model states three numbers: `objective`, an upper bound on J at its θ, reached by the very machines in it; `bound`, a lower bound on the
//! optimum J*, proven by the witness β̂ in it; and `gap`, how far apart they are. Here
//!
//! P = Σ_t primal value of task t at (θ, β, b)  ≥  J(θ)  ≥  J*
//! D = Σ_t (part of ḡ(β̂, ·) without θ) − σ_Ψ(s(β̂))  ≤  J*
//!
//! are computed anew, with θ ∈ Ψ and β, β̂ ∈ Ω. Nothing is used of what solved the problem: kernels are computed pair by pair from their definitions,
//! primal and dual objectives, support functions and feasible sets are written anew, from the literature. A test (`tests/layers.rs`) holds this
//! crate to the few names of `mtmkl` that read a model and hold data. `docs/verify.md` says what is checked, with formulas, and what is not.
//!
//! Rows are taken in blocks: beside the data a few numbers a row are kept, never a matrix.
//!
//! ```
//! use mtmkl::kernel::parse_kernels;
//! use mtmkl::machine::MachineSpec;
//! use mtmkl::sharing::SharingSpec;
//! use mtmkl::{Fitting, Problem, ProblemSpec, Samples, Targets, Task};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let samples = vec![Samples::new(vec![0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0], 4, 2)?];
//! let tasks = vec![Task::new("and", Targets::Labels(vec![-1.0, -1.0, -1.0, 1.0]))];
//! let spec = ProblemSpec::new(parse_kernels("rbf:sigma=0.5|2")?, MachineSpec::svc(10.0), SharingSpec::lp(2.0, 1.0));
//! let model = Problem::new(spec, samples.clone(), tasks.clone())?.fit(&mut Fitting::default())?;
//!
//! let verdict = mtmkl_verify::verify(&model, &samples, &tasks)?;
//! assert!(verdict.holds, "{:?}", verdict.failures);
//! # Ok(())
//! # }
//! ```

#![allow(
    clippy::neg_cmp_op_on_partial_ord,
    reason = "what is not a number does not hold"
)]

mod claims;
mod data;
mod error;
mod feasible;
mod kernel;
mod machine;
mod pairs;
mod sharing;
mod statistic;
mod sum;
mod sweep;
mod verdict;

pub use error::{Error, Result};
pub use verdict::{Claim, Failure, Gap, Part, Quantity, Row, Verdict};

use mtmkl::{Model, Normalization, Samples, Task};

use crate::claims::Found;
use crate::kernel::Specified;
use crate::machine::{Kind, Machine};
use crate::pairs::Pairs;
use crate::sweep::{Image, Point, Swept, sweep};

/// One task: its machine, and what the model keeps of it.
struct Fitted<'a> {
    task: &'a Task,
    machine: Machine,
    /// β by row of the sample set.
    beta: Vec<f64>,
    /// β̂ by row of the sample set, moved into Ω.
    witness: Vec<f64>,
}

/// Checks every claim of a model against its data: the sample sets and tasks that it was fitted on, targets as they were given. The threads are
/// those of the caller's pool; no figure depends on them.
///
/// # Errors
/// When the data are not those of the fit, naming the row where that is known, or the model has a machine, a sharing or a kernel that is not known
/// here. What does not hold is no error but in the verdict.
pub fn verify(model: &Model, samples: &[Samples], tasks: &[Task]) -> Result<Verdict> {
    data::compare(model, samples, tasks)?;
    let kind = Kind::of(model)?;
    let shape = model.shape();
    let sharing = serde_json::to_value(model.sharing())
        .map_err(|error| Error::Unreadable(error.to_string()))?;
    let terms = sharing::terms(&sharing, shape.tasks, shape.kernels)?;
    let mut failures = Vec::new();
    let theta = feasible::theta(model, &terms, &mut failures);
    let fitted = (tasks.iter().enumerate())
        .map(|(number, task)| fitted(model, kind, number, task, samples, &mut failures))
        .collect::<Result<Vec<_>>>()?;

    let mut served = Vec::with_capacity(tasks.len());
    served.resize_with(tasks.len(), Vec::new);
    let is_spread = matches!(kind, Kind::Svdd | Kind::OneClass);
    let mut found = Found::new(tasks.len(), is_spread);
    for (set, samples) in samples.iter().enumerate() {
        let own: Vec<usize> = (0..tasks.len())
            .filter(|&task| tasks[task].samples == set)
            .collect();
        for (&number, swept) in own
            .iter()
            .zip(swept(model, &theta, samples, &own, &fitted)?)
        {
            let Fitted {
                task,
                machine,
                beta,
                witness,
            } = &fitted[number];
            let rows = || task.rows.iter(samples.count());
            let images: Vec<(Image, f64)> =
                rows().map(|row| (swept.images[row], beta[row])).collect();
            let witness: Vec<f64> = rows().map(|row| witness[row]).collect();
            found.primals[number] =
                machine.primal(&images, model.tasks()[number].offset, shape.kernels);
            found.constants[number] = machine.constant(&witness);
            found.sensitivities[number] = machine.sensitivities(&swept.bends, witness.len());
            found.nothing += machine.nothing(&images, shape.kernels);
            let offset = model.tasks()[number].offset;
            claims::far_offset(&task.name, offset, machine.reach(&images), &mut failures);
            served[number] = images;
        }
    }
    found.support = sharing::support(&terms, &found.sensitivities);
    if !found.reaches(model.outcome().objective) {
        // To tell an offset that was changed from a machine that was.
        let best = |number: usize| {
            let offset = model.tasks()[number].offset;
            fitted[number]
                .machine
                .best_offset(&served[number], offset, shape.kernels)
        };
        found.best = (0..tasks.len()).map(best).collect();
    }
    let assumed = model
        .kernels()
        .iter()
        .filter_map(|view| match Specified::read(view) {
            Ok(read) if read.is_definite => None,
            _ => Some(view.name.clone()),
        });
    Ok(claims::judged(model, &found, assumed.collect(), failures))
}

/// A task's machine on its data, and what the model keeps of it.
fn fitted<'a>(
    model: &Model,
    kind: Kind,
    number: usize,
    task: &'a Task,
    samples: &[Samples],
    failures: &mut Vec<Failure>,
) -> Result<Fitted<'a>> {
    let set = &samples[task.samples];
    let count = task.rows.count(set.count());
    let weights = task.weights.clone().unwrap_or_else(|| vec![1.0; count]);
    let mut targets = data::targets(task, kind, count)?;
    let stated = &model.tasks()[number];
    claims::units(stated, &weights, &mut targets, failures);
    claims::offset(stated, kind, failures);
    let machine = Machine::new(model, kind, targets, &weights);
    let domain = machine.domain();
    let (beta, witness) = feasible::machines_of(model, stated);
    feasible::beta(Quantity::Beta, task, set, &beta, &domain, failures);
    if stated.witness.is_some() {
        feasible::beta(Quantity::Witness, task, set, &witness, &domain, failures);
    }
    let own: Vec<f64> = task
        .rows
        .iter(set.count())
        .map(|row| witness[row])
        .collect();
    let witness = feasible::spread(
        task.rows.iter(set.count()),
        &domain.nearest(&own),
        set.count(),
    );
    Ok(Fitted {
        task,
        machine,
        beta,
        witness,
    })
}

/// What the machines and witnesses of the tasks on a sample set are to its kernels.
fn swept(
    model: &Model,
    theta: &[Vec<f64>],
    samples: &Samples,
    own: &[usize],
    fitted: &[Fitted<'_>],
) -> Result<Vec<Swept>> {
    let is_unit = model.normalize() == Normalization::Unit;
    let pairs = Pairs::new(
        model.kernels(),
        samples,
        is_unit,
        model.outcome().is_rounded,
    )?;
    let points: Vec<Point<'_>> = own
        .iter()
        .map(|&number| {
            let mut is_own = vec![false; samples.count()];
            fitted[number]
                .task
                .rows
                .iter(samples.count())
                .for_each(|row| is_own[row] = true);
            Point {
                theta: &theta[number],
                is_own,
                beta: fitted[number].beta.clone(),
                witness: fitted[number].witness.clone(),
                wants_diagonal: fitted[number].machine.kind == Kind::Svdd,
            }
        })
        .collect();
    Ok(sweep(
        &pairs,
        samples.count(),
        model.shape().kernels,
        &points,
    ))
}
