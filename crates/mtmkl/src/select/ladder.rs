//! The values of a machine's first parameter that has some to try: a ladder that goes on at both ends.

use crate::entry::{Kind, Range};
use crate::machine::MachineSpec;

/// Rungs beyond the values that an entry names.
const BEYOND: i32 = 4;

/// v_r = v_0 (v_1/v_0)^r for a parameter that may be any positive number; the entry's values for others.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ladder {
    pub(super) parameter: &'static str,
    values: &'static [f64],
    goes_on: bool,
}

impl Ladder {
    /// Of a machine's first parameter whose entry names values to try.
    pub(super) fn of(machine: &MachineSpec) -> Option<Self> {
        let parameters = machine.entry()?.part.parameters.iter();
        let mut tried = parameters.filter(|parameter| !parameter.grid.is_empty());
        let parameter = tried.next()?;
        let is_positive =
            matches!(parameter.kind, Kind::Number { range, .. } if range == Range::Positive);
        Some(Self {
            parameter: parameter.name,
            values: parameter.grid,
            goes_on: is_positive && parameter.grid.len() > 1,
        })
    }

    /// The value of a rung, where there is one.
    pub(super) fn value(&self, rung: i32) -> Option<f64> {
        let last = i32::try_from(self.values.len()).ok()? - 1;
        if let Some(value) = usize::try_from(rung)
            .ok()
            .and_then(|at| self.values.get(at))
        {
            return Some(*value);
        }
        let within = (-BEYOND..=last + BEYOND).contains(&rung);
        (self.goes_on && within).then(|| self.values[0] * self.ratio().powi(rung))
    }

    fn ratio(&self) -> f64 {
        self.values[1] / self.values[0]
    }

    /// The rungs to begin with: every second one, from the second.
    pub(super) fn first(&self) -> Vec<i32> {
        let count = i32::try_from(self.values.len()).unwrap_or(1);
        if count < 4 || !self.goes_on {
            return (0..count).collect();
        }
        (1..count).step_by(2).collect()
    }

    /// How many rungs a factor is.
    pub(super) fn rungs(&self, factor: f64) -> i32 {
        if !self.goes_on {
            return 0;
        }
        #[allow(clippy::cast_possible_truncation, reason = "a few rungs")]
        let rungs = (factor.ln() / self.ratio().ln()).round() as i32;
        rungs
    }
}
