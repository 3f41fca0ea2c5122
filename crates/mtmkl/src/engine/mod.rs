//! J(θ) = max over α of Σ_t ḡ(αᵗ, θᵗ), evaluated for all tasks: the boundary between the data and the outer solver.
//!
//! θ goes down (T × M numbers), values, sensitivities and curvature come up. Samples and α never cross, which is what lets the
//! same solver drive threads here and other machines later.

mod channel;
mod coarse;
mod levels;
mod local;
mod room;
mod spanned;
mod task;

pub use channel::{Answer, ChannelEngine, Driver, Question, channel};
pub(crate) use coarse::coarser;
pub use levels::Levels;
pub(crate) use local::Local;
pub(crate) use room::{Needs, Room};
pub(crate) use spanned::rounding_of_span;
pub(crate) use task::TaskData;

pub use crate::inner::{Curvature, Fitted};

use crate::error::Result;
use crate::grid::{Grid, Shape};
use crate::run::{Rounds, Stop};

/// What a solver wants to know at one θ.
#[derive(Debug, Clone)]
pub struct Request {
    /// How large Σ_t (inner gap) may be, relative to |J|. Inner problems are solved no tighter than this needs.
    pub accuracy: f64,
    /// Whether second derivatives are wanted.
    pub curvature: bool,
    /// Give up early, at the best feasible point so far.
    pub stop: Stop,
    /// Told of each round, where the evaluation takes many.
    pub rounds: Rounds,
}

/// J and its derivatives at one θ, for a feasible α that is optimal up to the gaps.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// By which the engine knows the machines that it is about.
    pub number: usize,
    /// ḡ(αᵗ, θᵗ) per task: J(θ) ≥ Σ values.
    pub values: Vec<f64>,
    /// Inner gaps per task, ≥ 0: J(θ) ≤ Σ (values + gaps).
    pub gaps: Vec<f64>,
    /// s = −∂ḡ/∂θ at α.
    pub sensitivities: Grid,
    /// H_t per task, where asked for.
    pub curvature: Option<Vec<Curvature>>,
    /// Per task, whether κα is feasible too for 0 ≤ κ ≤ 1, and makes κ times the part of ḡ without θ: ḡ(κα, θ) = κ constant − κ² ⟨s, θ⟩.
    pub scales: Vec<bool>,
    /// Steps of the inner solver, summed over tasks.
    pub inner_iterations: usize,
    /// What rounding can do to each task's value.
    pub noises: Vec<f64>,
    /// How small a value of each task is none: what rounding can do to it where Ω has no β = 0, or β is 0. Elsewhere 0 is 0.
    pub forgiven: Vec<f64>,
}

/// β̂ᵗ = Σ_j λ_j βᵗ_j for one task: evaluations by their numbers, each with its λ.
pub type Mixture = Vec<(usize, f64)>;

impl Evaluation {
    /// Zeros for so many tasks and kernels, to be filled in.
    pub fn zeros(number: usize, tasks: usize, kernels: usize) -> Self {
        Self {
            number,
            values: vec![0.0; tasks],
            gaps: vec![0.0; tasks],
            sensitivities: Grid::zeros(tasks, kernels),
            curvature: None,
            scales: vec![false; tasks],
            inner_iterations: 0,
            noises: vec![0.0; tasks],
            forgiven: vec![0.0; tasks],
        }
    }

    /// Σ values ≤ J(θ).
    pub fn lower(&self) -> f64 {
        self.values.iter().sum()
    }

    /// Σ (values + gaps) ≥ J(θ), when the kernels are positive semi-definite.
    pub fn upper(&self) -> f64 {
        self.lower() + self.gaps.iter().sum::<f64>()
    }

    /// What rounding can do to Σ values.
    pub fn noise(&self) -> f64 {
        self.noises.iter().sum()
    }

    /// The part of Σ ḡ(α, ·) that does not depend on θ: Σ ḡ(α, θ') = constant − ⟨s, θ'⟩ for every θ'.
    pub fn constant(&self, theta: &Grid) -> f64 {
        self.lower() + self.sensitivities.dot(theta)
    }
}

/// One local maximum of ḡ for one task: ḡ(α, θ') = constant − ⟨s, θ'⟩.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalMaximum {
    /// ḡ at the θ it was found for.
    pub value: f64,
    /// The part without θ.
    pub constant: f64,
    /// s, M numbers.
    pub sensitivities: Vec<f64>,
}

/// Evaluates J: here with threads, elsewhere with whatever implements this. It has all that a fit needs, so that samples and β may be
/// anywhere.
pub trait Engine {
    /// T × M.
    fn shape(&self) -> Shape;

    /// Whether ḡ is concave in α for every θ ≥ 0, so that its maximum is the only one and the gaps are rigorous.
    fn is_concave(&self) -> bool;

    /// Whether second derivatives cost as much as everything else: then they are asked for at a θ that is known not to be the last.
    fn is_curvature_costly(&self) -> bool {
        false
    }

    /// J and its derivatives at θ.
    ///
    /// # Errors
    /// When an inner problem breaks down numerically.
    fn evaluate(&mut self, theta: &Grid, request: &Request) -> Result<Evaluation>;

    /// Remembers the machines of these evaluations, beside those of the last one, until it is told otherwise: one of them is the answer, and
    /// mixtures of them prove the bound.
    fn keep(&mut self, _numbers: &[usize]) {}

    /// The machine of each task as of the evaluation with this number.
    ///
    /// # Errors
    /// When an evaluation is forgotten: one that was neither kept nor the last.
    fn machines(&mut self, numbers: &[usize]) -> Result<Vec<Fitted>>;

    /// β̂ of each task, mixed from its evaluations.
    ///
    /// # Errors
    /// As [`Engine::machines`].
    fn mixtures(&mut self, mixtures: &[Mixture]) -> Result<Vec<Vec<f64>>>;

    /// Starts each task from this β, one number a sample, brought into Ω where it is not. That changes the way, not the answer: an
    /// engine may do without.
    ///
    /// # Errors
    /// When these are not as many numbers as the tasks have samples.
    fn start_from(&mut self, _beta: &[Vec<f64>]) -> Result<()> {
        Ok(())
    }

    /// Calls `solve` with a coarser engine, on part of the samples, and starts from where that has got to. Says whether there was one.
    ///
    /// # Errors
    /// As `solve`.
    fn coarser(&mut self, _solve: &mut Solve<'_>) -> Result<bool> {
        Ok(false)
    }

    /// Bytes that it holds in this process.
    fn bytes(&self) -> u64 {
        0
    }

    /// The search for local maxima, where ḡ is not concave; without it, such a problem is refused.
    fn local_maxima(&mut self) -> Option<&mut dyn LocalMaxima> {
        None
    }
}

/// What is done with a coarser engine.
pub type Solve<'a> = dyn FnMut(&mut dyn Engine) -> Result<()> + 'a;

/// An engine that looks for further local maxima of a ḡ that is not concave.
pub trait LocalMaxima {
    /// The best few local maxima of each task's ḡ, best first: the current one and those reached from `starts` random points.
    ///
    /// # Errors
    /// As [`Engine::evaluate`].
    fn maxima(
        &mut self,
        theta: &Grid,
        request: &Request,
        starts: usize,
        seed: u64,
    ) -> Result<Vec<Vec<LocalMaximum>>>;
}
