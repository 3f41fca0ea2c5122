//! An engine whose work is done by somebody else: θ goes out as a question, J and its derivatives come back as the answer.
//!
//! ```text
//! solver ── evaluate(θ) ──► ChannelEngine ── Question ──► Driver::ask
//!        ◄── Evaluation ──                ◄── Answer ──── Driver::tell
//! ```
//!
//! The fit runs on one thread, a loop of `ask` and `tell` on another: so another language, or a cluster behind it, drives the rounds.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel as pipe};
use std::time::Duration;

use super::{Engine, Evaluation, Fitted, Mixture, Request, Solve};
use crate::error::{Error, Result};
use crate::grid::{Grid, Shape};

/// What the solver wants to know.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Question {
    /// J at θ: [`Answer::Evaluation`].
    Evaluate {
        /// By which the evaluation is known from then on.
        number: usize,
        /// T × M.
        theta: Grid,
        /// How precisely, whether with curvature, and when to give up.
        request: Request,
        /// Evaluations whose machines are still wanted, beside those of the last one.
        keep: Vec<usize>,
        /// β to start from, by task, where it is to be from there.
        start: Option<Vec<Vec<f64>>>,
    },
    /// For each task the machine as of the evaluation with this number: [`Answer::Machines`].
    Machines(Vec<usize>),
    /// For each task a mixture of its β: [`Answer::Mixtures`].
    Mixtures(Vec<Mixture>),
    /// Whether there is a coarser problem, on part of the samples: [`Answer::Coarser`]. If so, what is asked from then on is about that one.
    Coarser,
    /// The end of the coarser problem: the one before it starts from where that has got to. [`Answer::Finer`].
    Finer,
}

/// What is told in return.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Answer {
    /// To [`Question::Evaluate`].
    Evaluation(Evaluation),
    /// To [`Question::Machines`].
    Machines(Vec<Fitted>),
    /// To [`Question::Mixtures`].
    Mixtures(Vec<Vec<f64>>),
    /// To [`Question::Coarser`].
    Coarser(bool),
    /// To [`Question::Finer`].
    Finer,
    /// It cannot be answered, for this reason: the fit ends with it.
    Failure(String),
}

/// The solver's end.
#[derive(Debug)]
pub struct ChannelEngine {
    shape: Shape,
    concave: bool,
    questions: Sender<Question>,
    answers: Receiver<Answer>,
    evaluations: usize,
    keep: Vec<usize>,
    start: Option<Vec<Vec<f64>>>,
    /// Whether the other end is asked for coarser problems.
    coarse: bool,
}

/// The other end: asks what the solver wants to know, and tells it.
#[derive(Debug)]
pub struct Driver {
    questions: Receiver<Question>,
    answers: Sender<Answer>,
}

/// Both ends of an engine for so many tasks and kernels; `concave` is whether ḡ is, see [`Engine::is_concave`].
pub fn channel(shape: Shape, concave: bool) -> (ChannelEngine, Driver) {
    let (questions, asked) = pipe();
    let (told, answers) = pipe();
    let engine = ChannelEngine {
        shape,
        concave,
        questions,
        answers,
        evaluations: 0,
        keep: Vec::new(),
        start: None,
        coarse: false,
    };
    let driver = Driver {
        questions: asked,
        answers: told,
    };
    (engine, driver)
}

impl Driver {
    /// The next question; `None` once the fit is over. Waits for it.
    pub fn ask(&self) -> Option<Question> {
        self.questions.recv().ok()
    }

    /// The same, but waits no longer than this.
    ///
    /// # Errors
    /// When the time is over, or the fit.
    pub fn ask_within(&self, limit: Duration) -> std::result::Result<Question, RecvTimeoutError> {
        self.questions.recv_timeout(limit)
    }

    /// Answers the last question. Nobody listens once the fit is over.
    pub fn tell(&self, answer: Answer) {
        let _ = self.answers.send(answer);
    }
}

impl ChannelEngine {
    /// The same, whose other end knows of coarser problems: [`Question::Coarser`] and [`Question::Finer`] are asked.
    #[must_use]
    pub fn with_coarser(self) -> Self {
        Self {
            coarse: true,
            ..self
        }
    }

    fn ask(&self, question: Question) -> Result<Answer> {
        let gone = || Error::Engine("its other end has gone away".to_string());
        self.questions.send(question).map_err(|_| gone())?;
        match self.answers.recv().map_err(|_| gone())? {
            Answer::Failure(problem) => Err(Error::Engine(problem)),
            answer => Ok(answer),
        }
    }

    /// Whether an evaluation has a number for each task and kernel.
    fn fits(&self, evaluation: &Evaluation, request: &Request) -> bool {
        let Shape { tasks, kernels } = self.shape;
        let s = &evaluation.sensitivities;
        let lists = [
            evaluation.values.len(),
            evaluation.gaps.len(),
            evaluation.noises.len(),
            evaluation.forgiven.len(),
            evaluation.scales.len(),
        ];
        let is_curved = match &evaluation.curvature {
            Some(all) => {
                let whole = |one: &super::Curvature| {
                    one.span.is_none() && one.factor.len() == one.rank * kernels
                };
                all.len() == tasks && all.iter().all(whole)
            }
            None => !request.curvature,
        };
        lists.iter().all(|&length| length == tasks)
            && (s.rows(), s.kernels()) == (tasks, kernels)
            && is_curved
    }
}

fn unfitting(what: &str) -> Error {
    Error::Engine(format!("its other end answered {what}"))
}

impl Engine for ChannelEngine {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn is_concave(&self) -> bool {
        self.concave
    }

    fn evaluate(&mut self, theta: &Grid, request: &Request) -> Result<Evaluation> {
        self.evaluations += 1;
        let question = Question::Evaluate {
            number: self.evaluations,
            theta: theta.clone(),
            request: request.clone(),
            keep: self.keep.clone(),
            start: self.start.take(),
        };
        match self.ask(question)? {
            Answer::Evaluation(evaluation) if self.fits(&evaluation, request) => Ok(Evaluation {
                number: self.evaluations,
                ..evaluation
            }),
            _ => Err(unfitting(
                "an evaluation without a number for each task and kernel, or none",
            )),
        }
    }

    fn keep(&mut self, numbers: &[usize]) {
        self.keep = numbers.to_vec();
    }

    fn machines(&mut self, numbers: &[usize]) -> Result<Vec<Fitted>> {
        match self.ask(Question::Machines(numbers.to_vec()))? {
            Answer::Machines(machines) if machines.len() == numbers.len() => Ok(machines),
            _ => Err(unfitting("without a machine for each task")),
        }
    }

    fn mixtures(&mut self, mixtures: &[Mixture]) -> Result<Vec<Vec<f64>>> {
        match self.ask(Question::Mixtures(mixtures.to_vec()))? {
            Answer::Mixtures(mixed) if mixed.len() == mixtures.len() => Ok(mixed),
            _ => Err(unfitting("without a mixture for each task")),
        }
    }

    fn start_from(&mut self, beta: &[Vec<f64>]) -> Result<()> {
        self.start = Some(beta.to_vec());
        Ok(())
    }

    fn coarser(&mut self, solve: &mut Solve<'_>) -> Result<bool> {
        if !self.coarse {
            return Ok(false);
        }
        match self.ask(Question::Coarser)? {
            Answer::Coarser(false) => return Ok(false),
            Answer::Coarser(true) => {}
            _ => return Err(unfitting("not whether there is a coarser problem")),
        }
        let keep = std::mem::take(&mut self.keep);
        solve(self)?;
        self.keep = keep;
        match self.ask(Question::Finer)? {
            Answer::Finer => Ok(true),
            _ => Err(unfitting("not that the coarser problem is over")),
        }
    }
}
