//! The bundle: what the last evaluations say.

use super::{Cut, Known};
use crate::engine::Curvature;
use crate::grid::dot;

/// κα is looked at for these κ. The best κ at some θ gives c²/(4 s'θ), and another one 1 − (1 − κ/best)² of it: with these at least 94 % down to κ = 0.25, and
/// four fifths down to 0.1.
pub(super) const SCALES: [f64; 5] = [0.8, 0.6, 0.4, 0.25, 0.1];
/// No more evaluations than this are remembered: each is a row of the model's matrix per task, and older ones say little about J where it is now.
pub(super) const REMEMBERED: usize = 12;
/// With more kernels than this nothing is: so many directions are never all flat, and the model with cuts is dear to solve, if it can be.
const MOST_KERNELS: usize = 512;

/// What the last evaluations say.
#[derive(Debug)]
pub(in crate::solver) struct History {
    evaluations: Vec<Known>,
    is_kept: bool,
}

impl History {
    pub(in crate::solver) fn new(kernels: usize) -> Self {
        Self {
            evaluations: Vec::new(),
            is_kept: kernels <= MOST_KERNELS,
        }
    }

    /// Whether anything is remembered at all.
    pub(in crate::solver) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// The evaluations that are remembered.
    pub(in crate::solver) fn evaluations(&self) -> impl Iterator<Item = usize> + '_ {
        self.evaluations.iter().map(|known| known.number)
    }

    pub(in crate::solver) fn add(&mut self, known: Known) {
        if !self.is_kept {
            return;
        }
        if self.evaluations.len() == REMEMBERED {
            self.evaluations.remove(0);
        }
        self.evaluations.push(known);
    }

    /// The cuts of each task around one evaluation.
    pub(in crate::solver) fn cuts(&self, at: &Known, curvature: &[Curvature]) -> Vec<Vec<Cut>> {
        if !self.is_kept {
            return vec![Vec::new(); at.values.len()];
        }
        let scaled: Vec<Known> = SCALES.iter().map(|&kappa| at.scaled(kappa)).collect();
        (0..at.values.len())
            .map(|task| {
                self.evaluations
                    .iter()
                    .chain(&scaled)
                    .filter_map(|other| {
                        let (slope, offset) = at.cut(other, curvature, task)?;
                        Some(other.as_cut(task, slope, offset))
                    })
                    .collect()
            })
            .collect()
    }

    /// The linear functions themselves, as cuts into that of one evaluation: with these and without curvature the model is nowhere above J, and its
    /// minimum a lower bound.
    pub(in crate::solver) fn lines(&self, at: &Known) -> Vec<Vec<Cut>> {
        (0..at.values.len())
            .map(|task| {
                let s = at.sensitivities.row(task);
                let lines = self.evaluations.iter().map(|other| {
                    let theirs = other.sensitivities.row(task);
                    let there = other.constant(task) - dot(theirs, at.theta.row(task));
                    let pairs = s.iter().zip(theirs);
                    let slope = pairs.map(|(here, there)| here - there).collect();
                    other.as_cut(task, slope, there - at.values[task])
                });
                lines.collect()
            })
            .collect()
    }
}
