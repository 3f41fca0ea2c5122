//! (ḡ, Ω) as data: a dual with a separable conjugate.
//!
//! ḡ(β, θ) = κ · ( q'β + c Σ_m θ_m d_m'β − ½ β'Kβ − Σ_v φ_v(β_v) ), d_m = diag K_m, K = Σ_m θ_m K_m.
//!
//! Each φ_v is convex. It is zero between two bounds and infinite beyond them (the SVM and its relatives), ½ρβ² (ridge), or any smooth
//! function on an open interval (a machine of one's own: kernel logistic regression, Poisson regression …). Σβ may be given; its multiplier
//! is the machine's offset b. With g = q + c Σ_m θ_m d_m − Kβ, Fenchel's inequality bounds what is missing for every b:
//!
//! J(θ) − ḡ(β, θ) ≤ κ Σ_v [ φ_v(β_v) + φ_v*(g_v − b) − β_v (g_v − b) ], Σβ = s, each summand ≥ 0,
//!
//! which is the primal objective of the machine less its dual one.

use std::fmt::Debug;
use std::sync::Arc;

use super::Variables;
use crate::error::{Error, Result};

/// ḡ(β, θ) = κ · ( q'β + c Σ_m θ_m d_m'β − ½ β'Kβ − Σ_v φ_v(β_v) ).
#[derive(Debug, Clone)]
pub struct Dual {
    /// κ
    pub scale: f64,
    /// Which sample each variable belongs to.
    pub variables: Variables,
    /// q, one entry per variable.
    pub linear: Vec<f64>,
    /// c
    pub diagonal: f64,
    /// φ, and with it Ω.
    pub conjugate: Conjugate,
}

/// φ: what holds β back, and where it may be. One of three kinds, each with an inner solver of its own.
#[derive(Debug, Clone)]
pub enum Conjugate {
    /// 0 for lower ≤ β ≤ upper, infinite elsewhere; Σβ = sum.
    Box {
        /// Lower bounds.
        lower: Vec<f64>,
        /// Upper bounds.
        upper: Vec<f64>,
        /// The sum.
        sum: f64,
    },
    /// ½ρβ² everywhere, ρ > 0; one variable a sample.
    Ridge {
        /// ρ
        ridge: Vec<f64>,
    },
    /// A function of the machine's own; one variable a sample.
    Smooth {
        /// φ
        function: Arc<dyn SmoothConjugate>,
        /// Σβ, where it is given: then the machine has an offset.
        sum: Option<f64>,
    },
}

/// φ_i of each sample: strictly convex and twice differentiable on an open interval. A sample is named by its place among those of the task.
///
/// It is the convex conjugate of the machine's loss, up to signs, and its own conjugate φ* is that loss again: with the loss
/// Σ_i ℓ_i(f_i + b) of the primal, φ_i(β) = ℓ_i*(−β) and φ_i*(g) = ℓ_i(−g).
pub trait SmoothConjugate: Debug + Send + Sync {
    /// The interval, open; its ends may be infinite.
    fn interval(&self, sample: usize) -> (f64, f64);

    /// φ_i(β) for β within the interval.
    fn value(&self, sample: usize, beta: f64) -> f64;

    /// φ_i'(β).
    fn slope(&self, sample: usize, beta: f64) -> f64;

    /// φ_i''(β) > 0.
    fn curvature(&self, sample: usize, beta: f64) -> f64;

    /// φ_i*(g) = max over β of gβ − φ_i(β), and the β where it is taken: φ_i'(β) = g. Exact up to rounding, for the certificate stands on it.
    fn conjugate(&self, sample: usize, slope: f64) -> (f64, f64);
}

/// Some of the samples of a smooth conjugate, in this order, each so many times: the loss ρℓ has the conjugate ρφ(β/ρ).
#[derive(Debug)]
struct Chosen {
    function: Arc<dyn SmoothConjugate>,
    samples: Vec<usize>,
    /// ρ
    times: f64,
}

impl SmoothConjugate for Chosen {
    fn interval(&self, sample: usize) -> (f64, f64) {
        let (low, high) = self.function.interval(self.samples[sample]);
        (self.times * low, self.times * high)
    }

    fn value(&self, sample: usize, beta: f64) -> f64 {
        self.times * self.function.value(self.samples[sample], beta / self.times)
    }

    fn slope(&self, sample: usize, beta: f64) -> f64 {
        self.function.slope(self.samples[sample], beta / self.times)
    }

    fn curvature(&self, sample: usize, beta: f64) -> f64 {
        let own = self
            .function
            .curvature(self.samples[sample], beta / self.times);
        own / self.times
    }

    fn conjugate(&self, sample: usize, slope: f64) -> (f64, f64) {
        let (loss, beta) = self.function.conjugate(self.samples[sample], slope);
        (self.times * loss, self.times * beta)
    }
}

impl Dual {
    /// Whether this is a dual for so many samples that can be solved: a machine of the user's own may be mistaken.
    ///
    /// # Errors
    /// Names what is wrong with it.
    pub(crate) fn check(&self, samples: usize) -> Result<()> {
        let wrong = |found: &str, expected: &str| Err(Error::param("machine", found, expected));
        let count = self.variables.count();
        if self.variables.samples() != samples || self.linear.len() != count {
            return wrong(
                "a dual of other samples",
                "variables and q for each sample of the task",
            );
        }
        let is_finite = self.scale.is_finite()
            && self.diagonal.is_finite()
            && self.linear.iter().all(|q| q.is_finite());
        if !is_finite || self.scale <= 0.0 {
            return wrong("a dual that is not finite", "a finite κ > 0, c and q");
        }
        let is_reachable = |sum: f64, least: f64, most: f64| {
            let margin = 1e-9 * (sum.abs() + least.abs().min(most.abs()));
            sum.is_finite() && sum >= least - margin && sum <= most + margin
        };
        match &self.conjugate {
            Conjugate::Box { lower, upper, sum } => {
                let mut bounds = lower.iter().zip(upper);
                if lower.len() != count
                    || upper.len() != count
                    || !bounds.all(|(low, high)| low <= high && (high - low).is_finite())
                    || !is_reachable(*sum, lower.iter().sum(), upper.iter().sum())
                {
                    return wrong(
                        "an empty box",
                        "finite bounds for each variable that reach the sum",
                    );
                }
            }
            Conjugate::Ridge { ridge } => {
                let is_positive = |ridge: &f64| ridge.is_finite() && *ridge > 0.0;
                if ridge.len() != samples || count != samples || !ridge.iter().all(is_positive) {
                    return wrong("a ridge that is not > 0", "a finite ρ > 0 for each sample");
                }
            }
            Conjugate::Smooth { function, sum } => {
                let ends: Vec<(f64, f64)> = (0..samples).map(|i| function.interval(i)).collect();
                let (least, most) = (
                    ends.iter().map(|e| e.0).sum(),
                    ends.iter().map(|e| e.1).sum(),
                );
                if count != samples
                    || !ends.iter().all(|(low, high)| low < high)
                    || sum.is_some_and(|sum| !(sum.is_finite() && sum > least && sum < most))
                {
                    return wrong(
                        "a smooth conjugate on empty intervals",
                        "one variable a sample, on open intervals that reach the sum",
                    );
                }
            }
        }
        Ok(())
    }

    /// Whether Ω contains tβ with β for 0 ≤ t ≤ 1, and ḡ(tβ, θ) = t κ q'β − t² ½ κ β'Kβ.
    pub(crate) fn scales(&self) -> bool {
        match &self.conjugate {
            Conjugate::Box { lower, upper, sum } => {
                let mut bounds = lower.iter().zip(upper);
                *sum == 0.0
                    && self.diagonal == 0.0
                    && bounds.all(|(low, high)| *low <= 0.0 && *high >= 0.0)
            }
            Conjugate::Ridge { .. } | Conjugate::Smooth { .. } => false,
        }
    }

    /// Σ_v φ_v(β_v) for a feasible β by variable.
    pub(crate) fn penalty(&self, beta: &[f64]) -> f64 {
        match &self.conjugate {
            Conjugate::Box { .. } => 0.0,
            Conjugate::Ridge { ridge } => {
                let pairs = ridge.iter().zip(beta);
                0.5 * pairs.map(|(ridge, beta)| ridge * beta * beta).sum::<f64>()
            }
            Conjugate::Smooth { function, .. } => {
                let pairs = beta.iter().enumerate();
                pairs.map(|(i, &beta)| function.value(i, beta)).sum()
            }
        }
    }

    /// Σ_v |φ_v(β_v)|: what rounding of the penalty is measured by, beside that of q'β. Zero where φ is a part of the quadratic form.
    pub(crate) fn size_of_penalty(&self, beta: &[f64]) -> f64 {
        match &self.conjugate {
            Conjugate::Box { .. } | Conjugate::Ridge { .. } => 0.0,
            Conjugate::Smooth { function, .. } => {
                let pairs = beta.iter().enumerate();
                pairs.map(|(i, &beta)| function.value(i, beta).abs()).sum()
            }
        }
    }

    /// ḡ and Ω for some of the samples, the others at zero. Where the mass Σβ is fixed, fewer variables share it, so that each may take
    /// more; `None` where they cannot.
    pub(crate) fn restricted(&self, kept: &[usize]) -> Option<Self> {
        let of = |values: &[f64]| -> Vec<f64> {
            let copies = self.variables.ranges();
            copies
                .flat_map(|range| kept.iter().map(move |&i| values[range.start + i]))
                .collect()
        };
        let conjugate = match &self.conjugate {
            Conjugate::Box { lower, upper, sum } => {
                let room = if *sum == 0.0 {
                    1.0
                } else {
                    self.variables.samples() as f64 / kept.len() as f64
                };
                let wider = |bounds: &[f64]| -> Vec<f64> {
                    of(bounds).into_iter().map(|bound| bound * room).collect()
                };
                let (lower, upper) = (wider(lower), wider(upper));
                // With unequal bounds, those that were taken may be too narrow.
                let (least, most) = (lower.iter().sum::<f64>(), upper.iter().sum::<f64>());
                if *sum < least || *sum > most {
                    return None;
                }
                Conjugate::Box {
                    lower,
                    upper,
                    sum: *sum,
                }
            }
            Conjugate::Ridge { ridge } => Conjugate::Ridge { ridge: of(ridge) },
            // Each stands for as many: what they learn is then about what all do.
            Conjugate::Smooth { function, sum } => Conjugate::Smooth {
                function: Arc::new(Chosen {
                    function: Arc::clone(function),
                    samples: kept.to_vec(),
                    times: self.variables.samples() as f64 / kept.len() as f64,
                }),
                sum: *sum,
            },
        };
        Some(Self {
            scale: self.scale,
            variables: Variables::new(kept.len(), self.variables.copies()),
            linear: of(&self.linear),
            diagonal: self.diagonal,
            conjugate,
        })
    }
}
