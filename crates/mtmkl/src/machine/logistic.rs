//! Kernel logistic regression.

use std::sync::Arc;

use super::{
    Conjugate, Dual, Machine, MachineEntry, MachineSpec, NEGATIVE_WEIGHT, POSITIVE_WEIGHT,
    SmoothConjugate, TargetKind, Variables, check_labels, check_positive_weights, sign,
    signed_prices,
};
use crate::data::Task;
use crate::entry::{Parameter, Part, Range};
use crate::error::Result;

/// max −Σ_i [α_i ln(α_i/C_i) + (C_i − α_i) ln((C_i − α_i)/C_i)] − ½ β'Kβ, β = y∘α, 0 < α_i < C_i, y'α = 0, with
/// C_i = C · (weight of the class) · (weight of the sample).
///
/// Primal: min ½‖w‖² + Σ_i C_i ln(1 + exp(−y_i f(x_i))), f(x) = ⟨w, φ(x)⟩ + b, and at the optimum α_i = C_i/(1 + exp(y_i f(x_i))): every
/// sample supports. The decision f is the log-odds ln P(+1|x)/P(−1|x), of classes that count by their weights. Jaakkola and Haussler (1999);
/// Keerthi, Duan, Shevade and Poo (2005).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Logistic {
    /// C > 0.
    pub c: f64,
    /// Factor of C for the class +1, > 0.
    pub positive_weight: f64,
    /// Factor of C for the class −1, > 0.
    pub negative_weight: f64,
}

/// How it is known.
pub(super) static ENTRY: MachineEntry = MachineEntry {
    part: Part {
        name: "logistic",
        help: "kernel logistic regression, which has probabilities of its own",
        parameters: &[
            // Cross-validated log-loss on training rows of ten sets: best at 10 to 300, 30 nowhere far from it (docs/adr/0028).
            Parameter::number("C", Range::Positive, "the price of an error")
                .or(30.0)
                .tried(&[1.0 / 3.0, 1.0, 3.0, 9.0, 27.0, 81.0, 243.0]),
            POSITIVE_WEIGHT,
            NEGATIVE_WEIGHT,
        ],
    },
    targets: TargetKind::Labels,
    build: |values| {
        Arc::new(Logistic {
            c: values.number("C"),
            positive_weight: values.number("positive_weight"),
            negative_weight: values.number("negative_weight"),
        })
    },
    examples: || {
        vec![
            MachineSpec::logistic(1.0),
            MachineSpec::weighted_logistic(20.0, 2.0, 0.5),
        ]
    },
};

impl MachineSpec {
    /// [`Logistic`] with equal class weights.
    pub fn logistic(c: f64) -> Self {
        Self::of(&ENTRY, [c])
    }

    /// [`Logistic`] with a factor of C for each class.
    pub fn weighted_logistic(c: f64, positive_weight: f64, negative_weight: f64) -> Self {
        Self::of(&ENTRY, [c, positive_weight, negative_weight])
    }
}

impl Machine for Logistic {
    fn name(&self) -> &'static str {
        ENTRY.part.name
    }

    fn check(&self, task: &Task, _samples: usize) -> Result<()> {
        check_labels(self.name(), task)?;
        check_positive_weights(self.name(), task)
    }

    fn dual(&self, task: &Task, _samples: usize) -> Dual {
        let ends = signed_prices(task, self.c, [self.negative_weight, self.positive_weight]);
        Dual {
            scale: 1.0,
            variables: Variables::one_each(ends.len()),
            linear: vec![0.0; ends.len()],
            diagonal: 0.0,
            conjugate: Conjugate::Smooth {
                function: Arc::new(Entropy { ends }),
                sum: Some(0.0),
            },
        }
    }

    fn predict(&self, decision: f64) -> f64 {
        sign(decision)
    }

    fn log_odds_shift(&self) -> Option<f64> {
        // It learns as if there were more of the class that costs more.
        Some((self.negative_weight / self.positive_weight).ln())
    }
}

/// φ_i(β) = α ln(α/C_i) + (C_i − α) ln((C_i − α)/C_i), α = y_iβ: minus C_i times the entropy of α/C_i.
#[derive(Debug)]
struct Entropy {
    /// y_i C_i.
    ends: Vec<f64>,
}

impl SmoothConjugate for Entropy {
    fn interval(&self, sample: usize) -> (f64, f64) {
        let end = self.ends[sample];
        (end.min(0.0), end.max(0.0))
    }

    fn value(&self, sample: usize, beta: f64) -> f64 {
        let end = self.ends[sample];
        // The smaller share p: 1 − p has lost the digits of p, and with them all of ln(1 − p) where p is next to nothing.
        let share = (beta / end).min((end - beta) / end);
        end.abs() * (share * share.ln() + (1.0 - share) * (-share).ln_1p())
    }

    fn slope(&self, sample: usize, beta: f64) -> f64 {
        let end = self.ends[sample];
        end.signum() * (beta / (end - beta)).ln()
    }

    fn curvature(&self, sample: usize, beta: f64) -> f64 {
        let end = self.ends[sample];
        (end / (beta * (end - beta))).abs()
    }

    fn conjugate(&self, sample: usize, slope: f64) -> (f64, f64) {
        let end = self.ends[sample];
        let t = slope * end.signum();
        // ln(1 + eᵗ) without overflow.
        let loss = end.abs() * (t.max(0.0) + (-t.abs()).exp().ln_1p());
        (loss, end / (1.0 + (-t).exp()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// −p + p ln p − p²/2 to all digits, where C (1 − p) ln (1 − p) in plain words has lost them; and the same from the other end, as far as β has it.
    #[test]
    fn a_share_of_next_to_nothing_has_all_its_digits() {
        let (entropy, p) = (Entropy { ends: vec![-3.0] }, 1e-13_f64);
        let wanted = 3.0 * (p * p.ln() - p + 0.5 * p * p);
        let found = entropy.value(0, -3.0 * p);
        assert!(
            (found - wanted).abs() <= 4.0 * f64::EPSILON * wanted.abs(),
            "{found:e}, {wanted:e}"
        );
        let share = 0.375;
        let wanted = 3.0 * (share * f64::ln(share) + (1.0 - share) * f64::ln(1.0 - share));
        for beta in [-3.0 * share, -3.0 * (1.0 - share)] {
            let found = entropy.value(0, beta);
            assert!((found - wanted).abs() <= 1e-15 * wanted.abs(), "{found:e}");
        }
    }
}
