//! ‖θ‖_p ≤ radius, θ ≥ 0.

use super::{Constraint, Set, negativity};
use crate::entry::Range;
use crate::error::Result;

/// {θ ≥ 0 : ‖θ‖_p ≤ radius}, p ≥ 1. Support function: radius · ‖s⁺‖_{p*}, p* = p/(p−1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LpBall {
    /// The norm's exponent, ≥ 1.
    pub p: f64,
    /// The bound on the norm, > 0.
    pub radius: f64,
}

/// x^p; squares, which are most of all powers, without `powf`.
fn power(x: f64, p: f64) -> f64 {
    if p == 2.0 { x * x } else { x.powf(p) }
}

/// ‖x‖_p for x ≥ 0, computed after dividing by the largest entry: x^10 must not overflow or vanish.
pub(super) fn norm(x: &[f64], p: f64) -> f64 {
    let largest = x.iter().fold(0.0_f64, |a, &b| a.max(b));
    if largest <= 0.0 {
        return 0.0;
    }
    let sum: f64 = x
        .iter()
        .map(|&value| power(value.max(0.0) / largest, p))
        .sum();
    largest * sum.powf(1.0 / p)
}

/// ‖s⁺‖_{p*}, the dual norm of the positive part; p* = ∞ at p = 1.
pub(super) fn dual_norm(s: &[f64], p: f64) -> f64 {
    let largest = s.iter().fold(0.0_f64, |a, &b| a.max(b));
    if largest <= 0.0 || p == 1.0 {
        return largest;
    }
    let dual = p / (p - 1.0);
    let sum: f64 = s
        .iter()
        .map(|&value| power(value.max(0.0) / largest, dual))
        .sum();
    largest * sum.powf(1.0 / dual)
}

/// out ← argmax of ⟨s, θ⟩ over ‖θ‖_p ≤ radius, θ ≥ 0: radius · (s⁺)^r / ‖(s⁺)^r‖_p with r = 1/(p−1).
pub(super) fn maximise(s: &[f64], p: f64, radius: f64, out: &mut [f64]) -> f64 {
    out.fill(0.0);
    let Some((best, largest)) = largest_entry(s).filter(|(_, largest)| *largest > 0.0) else {
        return 0.0;
    };
    if p == 1.0 {
        out[best] = radius;
        return radius * largest;
    }
    let r = 1.0 / (p - 1.0);
    for (value, &cost) in out.iter_mut().zip(s) {
        *value = if cost > 0.0 {
            (cost / largest).powf(r)
        } else {
            0.0
        };
    }
    let scale = radius / norm(out, p);
    let mut support = 0.0;
    for (value, &cost) in out.iter_mut().zip(s) {
        *value *= scale;
        support += *value * cost;
    }
    support
}

/// The first largest entry and its position.
pub(super) fn largest_entry(s: &[f64]) -> Option<(usize, f64)> {
    s.iter()
        .copied()
        .enumerate()
        .fold(None, |best, (index, value)| match best {
            Some((_, largest)) if largest >= value => best,
            _ => Some((index, value)),
        })
}

impl Set for LpBall {
    fn check(&self, _kernels: usize) -> Result<()> {
        Range::AtLeast(1.0).check("p", self.p)?;
        Range::Positive.check("radius", self.radius)
    }

    fn start(&self, out: &mut [f64]) {
        out.fill(self.radius * (out.len() as f64).powf(-1.0 / self.p));
    }

    fn maximise(&self, s: &[f64], out: &mut [f64]) -> f64 {
        maximise(s, self.p, self.radius, out)
    }

    fn violation(&self, theta: &[f64]) -> f64 {
        (norm(theta, self.p) - self.radius).max(negativity(theta))
    }

    fn contains_zero(&self) -> bool {
        true
    }

    fn constraint(&self) -> Option<Constraint> {
        Some(Constraint::RowNorm {
            p: self.p,
            radius: self.radius,
        })
    }
}
