//! A task's machine from the textbook: its primal objective, the part of its dual objective without θ, its feasible set.
//!
//! | machine | primal at w = Σ_i β_i φ(x_i) and b, f_i = ⟨w, φ(x_i)⟩ + b | part without θ | Ω |
//! |---|---|---|---|
//! | svc | ½‖w‖² + Σ C_i (1 − y_i f_i)₊ | y'β | β_i between 0 and y_i C_i, Σβ = 0 |
//! | logistic | ½‖w‖² + Σ C_i ln(1 + exp(−y_i f_i)) | −Σ C_i (p ln p + (1−p) ln (1−p)), p = y_iβ_i/C_i | the same |
//! | svr | ½‖w‖² + Σ C_i (|y_i − f_i| − ε)₊ | y'β − ε‖β‖₁ | |β_i| ≤ C_i, Σβ = 0 |
//! | krr | ‖w‖² + Σ (w_i/λ) (y_i − f_i)², no b | 2y'β − Σ (λ/w_i) β_i² | everything |
//! | svdd | 2b + ‖w‖² + Σ C_i (k(x_i, x_i) − 2f_i)₊ | 0 | 0 ≤ β_i ≤ C_i, Σβ = 1 |
//! | ocsvm | 2b + ‖w‖² + 2 Σ U_i (−f_i)₊ | 0 | 0 ≤ β_i ≤ U_i, Σβ = 1 |
//!
//! C_i is C times the weights of the sample and of its class; U_i = w_i/(ν Σw). The sphere's R² is 2b + ‖w‖², its losses (‖φ(x_i) − w‖² − R²)₊; the
//! one-class machine's primal is twice that of Schölkopf et al. with ρ = −b.

use mtmkl::Model;

use crate::error::{Error, Result};
use crate::sum::{Sum, UNIT, lost};
use crate::sweep::{Bend, Image};

/// Which machine, with its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Svc,
    Logistic,
    Svr { epsilon: f64 },
    Krr,
    Svdd,
    OneClass,
}

/// The machine of one task with its data: entries for each of the task's samples.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) kind: Kind,
    /// ±1, numbers in units of what was learned, or zeros.
    pub(crate) targets: Vec<f64>,
    /// What a unit of a sample's loss costs: C_i, w_i/λ, U_i.
    pub(crate) prices: Vec<f64>,
}

/// Ω in a few words: lower ≤ β ≤ upper, and Σβ where it is given.
#[derive(Debug, Clone)]
pub(crate) struct Domain {
    pub(crate) lower: Vec<f64>,
    pub(crate) upper: Vec<f64>,
    pub(crate) sum: Option<f64>,
}

/// A number with what rounding may have done to it, here and where it was claimed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rounded {
    pub(crate) value: f64,
    pub(crate) allowance: f64,
}

impl Kind {
    /// That of a model.
    pub(crate) fn of(model: &Model) -> Result<Self> {
        let machine = model.machine();
        Ok(match machine.name() {
            "svc" => Self::Svc,
            "logistic" => Self::Logistic,
            "svr" => Self::Svr {
                epsilon: machine.number("epsilon"),
            },
            "krr" => Self::Krr,
            "svdd" => Self::Svdd,
            "ocsvm" => Self::OneClass,
            name => {
                return Err(Error::Unknown {
                    what: "machine",
                    name: name.to_string(),
                });
            }
        })
    }

    /// κ: ½κ is the factor of ‖w‖² in P and of β'K_mβ in s_m.
    pub(crate) fn scale(self) -> f64 {
        match self {
            Self::Svc | Self::Logistic | Self::Svr { .. } => 1.0,
            Self::Krr | Self::Svdd | Self::OneClass => 2.0,
        }
    }

    /// Whether its targets are ±1; none where it has no targets.
    pub(crate) fn has_labels(self) -> Option<bool> {
        match self {
            Self::Svc | Self::Logistic => Some(true),
            Self::Svr { .. } | Self::Krr => Some(false),
            Self::Svdd | Self::OneClass => None,
        }
    }
}

impl Machine {
    /// The machine of a model on samples with these targets (none for one-class machines) and weights.
    pub(crate) fn new(model: &Model, kind: Kind, targets: Vec<f64>, weights: &[f64]) -> Self {
        let number = |name: &str, default: f64| model.machine().get(name).unwrap_or(default);
        let total = weights.iter().copied().collect::<Sum>().value();
        let price = |row: usize| -> f64 {
            let weight = weights[row];
            match kind {
                Kind::Svc | Kind::Logistic => {
                    let class = if targets[row] > 0.0 {
                        "positive_weight"
                    } else {
                        "negative_weight"
                    };
                    number("C", 1.0) * number(class, 1.0) * weight
                }
                Kind::Svr { .. } => number("C", 1.0) * weight,
                Kind::Krr => weight / number("lambda", 1.0),
                // At C = 1/n exactly, rounding must not leave the sum out of reach.
                Kind::Svdd => number("C", 1.0).max(1.0 / total) * weight,
                Kind::OneClass => weight / (number("nu", 0.5) * total),
            }
        };
        Self {
            kind,
            prices: (0..weights.len()).map(price).collect(),
            targets,
        }
    }

    /// Ω.
    pub(crate) fn domain(&self) -> Domain {
        let n = self.prices.len();
        let (lower, upper, sum): (Vec<f64>, Vec<f64>, _) = match self.kind {
            Kind::Svc | Kind::Logistic => {
                let ends = || {
                    self.targets
                        .iter()
                        .zip(&self.prices)
                        .map(|(y, price)| y * price)
                };
                (
                    ends().map(|end| end.min(0.0)).collect(),
                    ends().map(|end| end.max(0.0)).collect(),
                    Some(0.0),
                )
            }
            Kind::Svr { .. } => (
                self.prices.iter().map(|price| -price).collect(),
                self.prices.clone(),
                Some(0.0),
            ),
            Kind::Krr => (vec![f64::NEG_INFINITY; n], vec![f64::INFINITY; n], None),
            Kind::Svdd | Kind::OneClass => (vec![0.0; n], self.prices.clone(), Some(1.0)),
        };
        Domain { lower, upper, sum }
    }

    /// What is found of an optimum of zero is no more than this: what rounding leaves of the terms that cancel in it. These are the problem's own,
    /// or those of a β that adds up to 1, so that no change to a model makes them large.
    pub(crate) fn nothing(&self, images: &[(Image, f64)], kernels: usize) -> f64 {
        let n = images.len();
        let target = |i: usize| self.targets[i].abs();
        let own = |term: &dyn Fn(usize) -> f64| -> f64 {
            let prices = self.prices.iter().enumerate();
            lost(n + kernels + 16) * prices.map(|(i, price)| price * term(i)).sum::<f64>()
        };
        let sizes = || -> f64 {
            let sizes = images.iter().map(|(image, beta)| image.size * beta.abs());
            sizes.sum()
        };
        // Off by no more than a rounding of what they are added up from.
        let is_exact = || {
            let off = |(image, _): &(Image, f64)| image.error <= UNIT * image.size;
            n == 1 || images.iter().all(off)
        };
        match self.kind {
            Kind::Svc | Kind::Logistic => own(&|_| 1.0),
            Kind::Svr { epsilon } => own(&|i| target(i) + epsilon),
            Kind::Krr => own(&|i| target(i) * target(i)),
            // A sphere of radius 0 is one point, whose kernel values are equal. Where they are off by more than a rounding, a radius that is
            // something is lost among them, as of columns far from 0.
            Kind::Svdd if !is_exact() => UNIT * sizes(),
            Kind::Svdd | Kind::OneClass => lost(3 * n + 16) * sizes(),
        }
    }

    /// How far from 0 an offset can be at which anything changes: beyond, all losses are there or none, but for the last digits of logistic ones.
    pub(crate) fn reach(&self, images: &[(Image, f64)]) -> f64 {
        let far = |(i, (image, _)): (usize, &(Image, f64))| {
            self.wide(i) + image.product.abs() + image.size + image.diagonal.value.abs()
        };
        images.iter().enumerate().map(far).fold(0.0, f64::max)
    }

    /// How far from −⟨w, φ(x_i)⟩ sample i's loss bends.
    fn wide(&self, i: usize) -> f64 {
        let y = self.targets.get(i).map_or(0.0, |y| y.abs());
        let wide = match self.kind {
            Kind::Svr { epsilon } => epsilon,
            // e^−f of it is no number.
            Kind::Logistic => 750.0,
            _ => 1.0,
        };
        1.0 + wide + y
    }

    /// What sample i costs at f, its offset included; `own` is K(θ)_ii.
    fn loss(&self, i: usize, f: f64, own: f64) -> f64 {
        let (y, price) = (self.targets.get(i).copied().unwrap_or(0.0), self.prices[i]);
        match self.kind {
            Kind::Svc => price * positive(1.0 - y * f),
            // ln(1 + e^−t) without overflow.
            Kind::Logistic => price * (positive(-y * f) + (-(y * f).abs()).exp().ln_1p()),
            Kind::Svr { epsilon } => price * positive((y - f).abs() - epsilon),
            Kind::Krr => price * (y - f) * (y - f),
            Kind::Svdd => price * positive(own - 2.0 * f),
            Kind::OneClass => 2.0 * price * positive(-f),
        }
    }

    /// The primal objective at β (beside the image of its row) and b.
    pub(crate) fn primal(&self, images: &[(Image, f64)], offset: f64, kernels: usize) -> Rounded {
        let n = images.len();
        let offset = if self.kind == Kind::Krr { 0.0 } else { offset };
        let (mut square, mut losses) = (Sum::default(), Sum::default());
        let mut allowance = 0.0;
        // Sums over samples, over kernels, and a few operations on each term.
        let part = lost(n + kernels + 16);
        let half = 0.5 * self.kind.scale();
        for (i, &(image, beta)) in images.iter().enumerate() {
            let off = image.error + part * (image.size + offset.abs());
            square.add_product(beta, image.product);
            allowance += half * (beta.abs() * off + part * (beta * image.product).abs());
            let (f, own) = (image.product + offset, image.diagonal);
            let loss = self.loss(i, f, own.value);
            losses.add(loss);
            // The loss is convex in f and rises with k(x, x): it is farthest at an end.
            let off_own = own.error + part * own.value.abs();
            let ends = [
                (f - off, off_own),
                (f + off, off_own),
                (f - off, -off_own),
                (f + off, -off_own),
            ];
            let most = ends
                .iter()
                .map(|(f, shift)| (self.loss(i, *f, own.value + shift) - loss).abs())
                .fold(0.0, |most, off| if off <= most { most } else { off });
            allowance += most + part * loss;
        }
        let quadratic = half * square.value();
        let straight = match self.kind {
            Kind::Svdd | Kind::OneClass => 2.0 * offset,
            _ => 0.0,
        };
        let mut value = losses;
        value.add(quadratic);
        value.add(straight);
        let value = value.value();
        allowance += 8.0 * UNIT * (quadratic.abs() + straight.abs() + value.abs());
        Rounded { value, allowance }
    }

    /// The same at the best b, by golden sections: P is convex in b.
    pub(crate) fn best_offset(
        &self,
        images: &[(Image, f64)],
        offset: f64,
        kernels: usize,
    ) -> (f64, f64) {
        let value = |b: f64| self.primal(images, b, kernels).value;
        if self.kind == Kind::Krr {
            return (offset, value(offset));
        }
        let (mut low, mut high) = (offset, offset);
        for (i, (image, _)) in images.iter().enumerate() {
            // Beyond these, all losses go up on one side, or are flat.
            let reach = self.wide(i) + image.diagonal.value.abs();
            low = low.min(-image.product - reach);
            high = high.max(-image.product + reach);
        }
        let golden = 0.5 * (5.0_f64.sqrt() - 1.0);
        for _ in 0..120 {
            let step = golden * (high - low);
            if value(high - step) <= value(low + step) {
                high = low + step;
            } else {
                low = high - step;
            }
        }
        let middle = 0.5 * (low + high);
        (middle, value(middle))
    }

    /// The part of ḡ(β, ·) without θ.
    pub(crate) fn constant(&self, beta: &[f64]) -> Rounded {
        let (mut sum, mut size) = (Sum::default(), 0.0);
        for (i, &beta) in beta.iter().enumerate() {
            let (y, price) = (self.targets.get(i).copied().unwrap_or(0.0), self.prices[i]);
            let terms = match self.kind {
                Kind::Svc => [y * beta, 0.0],
                Kind::Logistic => {
                    let alpha = y * beta;
                    // The smaller of the two parts: 1 − p would have lost its digits where p is next to nothing.
                    let p = alpha.min(price - alpha) / price;
                    if p > 0.0 {
                        [-price * p * p.ln(), -price * (1.0 - p) * (-p).ln_1p()]
                    } else {
                        [0.0, 0.0]
                    }
                }
                Kind::Svr { epsilon } => [y * beta, -epsilon * beta.abs()],
                Kind::Krr => [2.0 * y * beta, -beta * beta / price],
                Kind::Svdd | Kind::OneClass => [0.0, 0.0],
            };
            for term in terms {
                sum.add(term);
                size += term.abs();
            }
        }
        // The terms of an entropy have condition numbers of 1 at most, p being at most a half. β may have been moved by roundings of its sum.
        Rounded {
            value: sum.value(),
            allowance: lost(4 * beta.len() + 32) * size,
        }
    }

    /// s_m = −∂ḡ/∂θ_m of each kernel.
    pub(crate) fn sensitivities(&self, bends: &[Bend], samples: usize) -> Vec<Rounded> {
        let half = 0.5 * self.kind.scale();
        // Sums of products, each of two β that may have been moved by roundings of their sum.
        let part = lost(3 * samples + 32);
        let of = |bend: &Bend| {
            let (square, along) = (bend.square.value(), bend.along.value());
            let is_sphere = self.kind == Kind::Svdd;
            let sphere = if is_sphere { along } else { 0.0 };
            Rounded {
                value: half * square - sphere,
                allowance: half * (bend.error + part * bend.size)
                    + if is_sphere {
                        bend.along_error + part * along.abs()
                    } else {
                        0.0
                    },
            }
        };
        bends.iter().map(of).collect()
    }
}

/// x⁺; what is no number stays none.
fn positive(x: f64) -> f64 {
    if x <= 0.0 { 0.0 } else { x }
}

impl Domain {
    /// β with what rounding left of a violation taken away: into the box, then as much of the room of each as the sum needs. What is
    /// proven is proven by a point of Ω, not by one nearby.
    ///
    /// What is missing by nothing but the rounding of a sum is made up by each in parts of itself, by so little that it is a rounding of
    /// the box as well: where β is 0 it stays so, since a row may be so heavy that the smallest number there costs more than all is worth.
    pub(crate) fn nearest(&self, beta: &[f64]) -> Vec<f64> {
        let bounds = || self.lower.iter().zip(&self.upper);
        let clipped = |beta: &[f64]| -> Vec<f64> {
            beta.iter()
                .zip(bounds())
                .map(|(value, (low, high))| value.max(*low).min(*high))
                .collect()
        };
        let mut inside = clipped(beta);
        let Some(sum) = self.sum else {
            return inside;
        };
        for _ in 0..3 {
            let mut left: Sum = inside.iter().map(|value| -value).collect();
            left.add(sum);
            let left = left.value();
            if left == 0.0 {
                break;
            }
            let size: f64 = inside.iter().map(|value| value.abs()).sum();
            if left.abs() <= lost(inside.len() + 8) * size {
                let part = left / size;
                for value in &mut inside {
                    *value += part * value.abs();
                }
                break;
            }
            let room = |(value, (low, high)): (&f64, (&f64, &f64))| {
                if left > 0.0 {
                    high - value
                } else {
                    value - low
                }
            };
            let rooms: Vec<f64> = inside.iter().zip(bounds()).map(room).collect();
            let total: f64 = rooms.iter().sum();
            if total <= 0.0 {
                break;
            }
            let moved: Vec<f64> = inside
                .iter()
                .zip(&rooms)
                .map(|(value, room)| value + left * (room / total))
                .collect();
            inside = clipped(&moved);
        }
        inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(upper: f64, sum: f64, n: usize) -> Domain {
        Domain {
            lower: vec![0.0; n],
            upper: vec![upper; n],
            sum: Some(sum),
        }
    }

    /// A row that is as heavy as rounding is small must not come in by it.
    #[test]
    fn what_a_sum_is_short_of_by_rounding_stays_with_those_that_have_some() {
        let third = 1.0 / 3.0;
        for beta in [
            [third, third, third, 0.0, 0.0],
            [third, third - 1e-17, third, 0.0, 0.0],
            [0.3, 0.3, 0.3, 0.1, 0.0],
        ] {
            let inside = domain(third, 1.0, 5).nearest(&beta);
            let (sum, heavy) = (inside.iter().copied().collect::<Sum>().value(), inside[4]);
            assert!(
                (sum - 1.0).abs() <= 2.0 * UNIT && heavy == 0.0,
                "{inside:?}"
            );
        }
        // More than that is taken from the room of all.
        let inside = domain(0.5, 1.0, 4).nearest(&[0.5, 0.4, 0.0, 0.0]);
        assert!(inside[1] > 0.4 && inside[2] > 0.0 && inside.iter().all(|value| *value <= 0.5));
        assert_eq!(domain(1.0, 0.0, 3).nearest(&[0.0; 3]), [0.0; 3]);
    }
}
