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
    /// Rungs from one of the values to the next.
    pub(super) step: i32,
}

/// Values so many times apart are too far apart for a last word.
const FAR: f64 = 9.0;

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
            step: 1,
        })
    }

    /// With a rung between each two values that are far apart.
    pub(super) fn finer(mut self) -> Self {
        if self.goes_on && self.ratio().max(1.0 / self.ratio()) > FAR {
            self.step = 2;
        }
        self
    }

    /// The value of a rung, where there is one.
    pub(super) fn value(&self, rung: i32) -> Option<f64> {
        let last = i32::try_from(self.values.len()).ok()? - 1;
        let is_named = rung % self.step == 0 && (0..=last * self.step).contains(&rung);
        if let (true, Ok(at)) = (is_named, usize::try_from(rung / self.step)) {
            return Some(self.values[at]);
        }
        let within = (-BEYOND * self.step..=(last + BEYOND) * self.step).contains(&rung);
        let exponent = f64::from(rung) / f64::from(self.step);
        (self.goes_on && within).then(|| self.values[0] * self.ratio().powf(exponent))
    }

    fn ratio(&self) -> f64 {
        self.values[1] / self.values[0]
    }

    /// The rungs to begin with: every second one, from the second.
    pub(super) fn first(&self) -> Vec<i32> {
        let count = i32::try_from(self.values.len()).unwrap_or(1);
        let (from, by) = if count < 4 || !self.goes_on {
            (0, 1)
        } else {
            (1, 2)
        };
        (from..count).step_by(by).map(|at| at * self.step).collect()
    }

    /// How many rungs a factor is.
    pub(super) fn rungs(&self, factor: f64) -> i32 {
        if !self.goes_on {
            return 0;
        }
        #[allow(clippy::cast_possible_truncation, reason = "a few rungs")]
        let rungs = (factor.ln() / self.ratio().ln()).round() as i32;
        rungs * self.step
    }
}
