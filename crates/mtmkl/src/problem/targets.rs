//! y' = (y − offset) / scale: numbers to learn in units of their spread, task by task.
//!
//! A machine's C, λ and ε then mean the same whatever the targets are measured in, and adding a number to all of them changes nothing:
//! kernel ridge regression, which has no offset of its own, gets one. Measured on the rows of the task, so that a fold, whose tasks have fewer
//! rows, makes its own.

use crate::data::{Targets, Task};
use crate::machine::weight;

/// What numbers to learn are measured in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetScale {
    /// As they are.
    #[default]
    None,
    /// Each task's less their mean, divided by their standard deviation; weighted as the samples are.
    Standard,
}

impl TargetScale {
    /// Each with its word and what it means.
    pub const WORDS: [(Self, &'static str, &'static str); 2] = [
        (
            Self::Standard,
            "standard",
            "Less their mean, divided by their standard deviation, task by task",
        ),
        (Self::None, "none", "As they are"),
    ];
}

/// Less than this share of the largest target is rounding, not spread.
const SMALL: f64 = 1e-12;

/// y = offset + scale · y', where y' is what a machine learns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TargetUnit {
    /// What is added.
    pub offset: f64,
    /// What is multiplied by, > 0.
    pub scale: f64,
}

impl Default for TargetUnit {
    fn default() -> Self {
        Self {
            offset: 0.0,
            scale: 1.0,
        }
    }
}

impl TargetUnit {
    /// That of a task.
    fn of(task: &Task, scale: TargetScale) -> Self {
        let (TargetScale::Standard, Targets::Values(values)) = (scale, &task.targets) else {
            return Self::default();
        };
        let weighted = |term: &dyn Fn(f64) -> f64| {
            let terms = values.iter().enumerate();
            let (sum, total) = terms.fold((0.0, 0.0), |(sum, total), (row, &value)| {
                let weight = weight(task, row);
                (sum + weight * term(value), total + weight)
            });
            sum / total
        };
        let offset = weighted(&|value| value);
        let spread = weighted(&|value| (value - offset) * (value - offset)).sqrt();
        let largest = values
            .iter()
            .fold(0.0_f64, |most, value| most.max(value.abs()));
        // Beyond the range of numbers they are left as they are.
        if !(offset.is_finite() && spread.is_finite()) {
            return Self::default();
        }
        Self {
            offset,
            scale: if spread > SMALL * largest {
                spread
            } else {
                1.0
            },
        }
    }

    /// y' → y.
    pub(crate) fn back(self, value: f64) -> f64 {
        // Nothing is rounded where nothing is to be done.
        if self == Self::default() {
            value
        } else {
            self.offset + self.scale * value
        }
    }

    /// The task with y' in place of y.
    fn applied(self, task: &Task) -> Task {
        let mut task = task.clone();
        if let Targets::Values(values) = &mut task.targets
            && self != Self::default()
        {
            for value in values {
                *value = (*value - self.offset) / self.scale;
            }
        }
        task
    }
}

/// The tasks as machines learn them, and what brings their answers back.
pub(super) fn in_units(tasks: &[Task], scale: TargetScale) -> (Vec<Task>, Vec<TargetUnit>) {
    let of = |task: &Task| {
        let unit = TargetUnit::of(task, scale);
        (unit.applied(task), unit)
    };
    tasks.iter().map(of).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(values: Vec<f64>, weights: Option<Vec<f64>>) -> TargetUnit {
        let mut task = Task::new("a", Targets::Values(values));
        task.weights = weights;
        TargetUnit::of(&task, TargetScale::Standard)
    }

    #[test]
    fn mean_and_standard_deviation() {
        let TargetUnit { offset, scale } = unit(vec![1.0, 3.0, 5.0, 7.0], None);
        assert_eq!((offset, scale), (4.0, 5.0_f64.sqrt()));
    }

    #[test]
    fn a_weight_counts_copies() {
        let copies = unit(vec![1.0, 1.0, 1.0, 7.0], None);
        let weighted = unit(vec![1.0, 7.0], Some(vec![3.0, 1.0]));
        assert_eq!(copies, weighted);
    }

    #[test]
    fn constant_targets_are_moved_only() {
        let TargetUnit { offset, scale } = unit(vec![0.1 + 0.2, 0.3, 0.3], None);
        assert!((offset - 0.3).abs() < 1e-15);
        assert_eq!(scale, 1.0);
        let task = Task::new("a", Targets::Labels(vec![1.0, -1.0, 1.0]));
        let labels = TargetUnit::of(&task, TargetScale::Standard);
        assert_eq!(labels, TargetUnit::default());
    }
}
