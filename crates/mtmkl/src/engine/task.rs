//! One task below the boundary: its samples, and what is learned of them.

use crate::gram::{Grams, TaskGrams};
use crate::machine::Dual;
use crate::view::View;

/// One task as the engine needs it.
#[derive(Debug, Clone)]
pub(crate) struct TaskData {
    /// Which sample set.
    pub(crate) samples: usize,
    /// Which of its rows.
    pub(crate) view: View,
    /// (ḡ, Ω)
    pub(crate) dual: Dual,
}

impl TaskData {
    /// The Gram matrices as the task sees them.
    pub(super) fn seen_in<'a>(&'a self, grams: &'a [Grams]) -> TaskGrams<'a> {
        TaskGrams {
            grams: grams[self.samples].as_ref(),
            view: &self.view,
        }
    }

    pub(super) fn has_samples_of(&self, other: &Self) -> bool {
        self.samples == other.samples && self.view == other.view
    }
}
