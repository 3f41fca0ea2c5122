//! The report with its sizes made sure of and its derived quantities: what the sections look at.

use std::borrow::Cow;

use crate::Report;

/// Below this share of a task's weight, its own part counts as none: solvers leave dust where the optimum has 0.
const DUST: f64 = 1e-6;

/// A report whose tasks and kernels all have names, whatever the lengths of its parts.
pub(crate) struct View<'a> {
    /// What the caller filled in.
    pub(crate) report: &'a Report,
    /// Names of the kernels; M of them.
    pub(crate) kernels: Vec<Cow<'a, str>>,
    /// Names of the tasks; T of them.
    pub(crate) tasks: Vec<Cow<'a, str>>,
}

/// What a task does with the common space.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Space {
    /// It uses the common part alone.
    Shared,
    /// This share of its weight is its own.
    Own(f64),
    /// It has no weight at all, or none that is a number.
    Empty,
}

impl<'a> View<'a> {
    /// Look at a report.
    pub(crate) fn new(report: &'a Report) -> Self {
        let widest = report.weights.iter().map(Vec::len).max().unwrap_or(0);
        let m = report.kernels.len().max(widest);
        let t = report.tasks.len().max(report.weights.len());
        let fill = |given: Option<&'a String>, kind: &str, i: usize| match given {
            Some(name) if !name.trim().is_empty() => Cow::Borrowed(name.as_str()),
            _ => Cow::Owned(format!("{kind} {}", i + 1)),
        };
        Self {
            report,
            kernels: (0..m)
                .map(|i| fill(report.kernels.get(i), "kernel", i))
                .collect(),
            tasks: (0..t)
                .map(|i| fill(report.tasks.get(i).map(|task| &task.name), "task", i))
                .collect(),
        }
    }

    /// A row of M numbers out of one that may be short or missing.
    pub(crate) fn row(&self, given: Option<&Vec<f64>>) -> Vec<f64> {
        (0..self.kernels.len())
            .map(|m| given.and_then(|r| r.get(m)).copied().unwrap_or(f64::NAN))
            .collect()
    }

    /// θ of one task.
    pub(crate) fn theta(&self, task: usize) -> Vec<f64> {
        self.row(self.report.weights.get(task))
    }

    /// γ of one task, where the sharing has it.
    pub(crate) fn gamma(&self, task: usize) -> Option<Vec<f64>> {
        let specific = self.report.specific.as_ref()?;
        Some(self.row(specific.get(task)))
    }

    /// Whether several tasks all have the same weights.
    pub(crate) fn all_same(&self) -> bool {
        self.tasks.len() > 1
            && self.report.weights.len() == self.tasks.len()
            && self.report.weights.windows(2).all(|w| w[0] == w[1])
    }

    /// What each task does with the common space; `None` where the sharing has no specific parts.
    pub(crate) fn spaces(&self) -> Option<Vec<Space>> {
        self.report.specific.as_ref()?;
        let one = |t: usize| {
            let own = size(&self.gamma(t).unwrap_or_default());
            let all = size(&self.theta(t));
            let share = own / all;
            if !share.is_finite() {
                Space::Empty
            } else if share <= DUST {
                Space::Shared
            } else {
                Space::Own(share.min(1.0))
            }
        };
        Some((0..self.tasks.len()).map(one).collect())
    }

    /// Name of the kernel with the largest positive weight, and its share of the row.
    pub(crate) fn leader(&self, row: &[f64]) -> Option<(&str, f64)> {
        let (m, w) = row
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, w)| *w > 0.0)
            .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
        Some((self.kernels.get(m)?.as_ref(), w / size(row)))
    }
}

/// Sum of absolute values.
pub(crate) fn size(row: &[f64]) -> f64 {
    row.iter().map(|w| w.abs()).sum()
}
