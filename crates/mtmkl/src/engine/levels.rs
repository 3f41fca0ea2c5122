//! The engine of this machine with its coarser selves, one at work at a time: for whoever drives it from afar, where no closure reaches.

use super::Engine;
use super::coarse::Coarse;
use super::local::Local;
use super::spanned::Spanned;

/// An engine and, while they are wanted, the engines on a quarter of its samples, on a sixteenth, ….
#[derive(Debug)]
pub struct Levels {
    full: Spanned,
    coarse: Vec<Coarse>,
}

impl Levels {
    pub(crate) fn new(parts: Local, reach: f64) -> Self {
        Self {
            full: Spanned::new(parts, reach),
            coarse: Vec::new(),
        }
    }

    /// How many levels below the full problem the engine at work is.
    pub fn depth(&self) -> usize {
        self.coarse.len()
    }

    /// The engine at work.
    pub fn engine(&mut self) -> &mut dyn Engine {
        match self.coarse.last_mut() {
            Some(coarse) => &mut coarse.engine,
            None => &mut self.full,
        }
    }

    /// One level down, to part of the samples; `false` where these would be too few or there is no memory for them.
    pub fn descend(&mut self) -> bool {
        let next = match self.coarse.last() {
            Some(coarse) => coarse.engine.coarser_self(),
            None => self.full.coarser_self(),
        };
        let found = next.is_some();
        self.coarse.extend(next);
        found
    }

    /// One level up; with `adopt`, from where the coarser engine has got to.
    pub fn ascend(&mut self, adopt: bool) {
        let Some(left) = self.coarse.pop() else {
            return;
        };
        if adopt {
            match self.coarse.last_mut() {
                Some(coarse) => coarse.engine.adopt(&left),
                None => self.full.adopt(&left),
            }
        }
    }
}
