//! k(x, z) from its textbook definition, with how far the values of whoever solved the problem may be from it.
//!
//! For a statistic s that is off by at most δ, a kernel k(s) is off by at most δ times its steepest slope on the way, and by the rounding of
//! its own operations. Slopes are bounded by hand, for each formula; nothing is measured.

use std::sync::Arc;

use mtmkl::kernel::{Kernel, KernelView};

use crate::error::{Error, Result};
use crate::statistic::{Approximate, Measure};
use crate::sum::UNIT;

/// The rounding of an exponential. Several Gaussians may be made of one, whose value is squared six times at most: 2⁶ times its own two
/// roundings, and one for each squaring.
const EXPONENTIAL: f64 = 256.0 * UNIT;
/// Below, an exponential may be taken for 0.
const NOTHING: f64 = 1e-300;
/// Beyond, e^−t times a square of t is less than any number.
const NEGLIGIBLE: f64 = 800.0;
/// The rounding of a handful of operations.
const FEW: f64 = 16.0 * UNIT;

/// A kernel's formula, in its parameters.
#[derive(Debug, Clone)]
pub(crate) enum Formula {
    /// 1
    Constant,
    /// x'z; normalised, the cosine.
    Linear,
    /// (γ x'z + c)^degree
    Polynomial {
        gamma: f64,
        constant: f64,
        degree: i32,
    },
    /// tanh(γ x'z + c)
    Sigmoid { gamma: f64, constant: f64 },
    /// exp(−γ s) of ‖x − z‖², ‖x − z‖₁ or the χ² distance.
    Exponential { gamma: f64 },
    /// (1 + t) e^−t, t = √3 ‖x − z‖/length
    Matern32 { length: f64 },
    /// (1 + t + t²/3) e^−t, t = √5 ‖x − z‖/length
    Matern52 { length: f64 },
    /// Σ min(x, z)
    Intersection,
    /// K[i, j] of a matrix that was given.
    Given(String),
    /// A kernel of its user's own, by its own plain value.
    Own(Arc<dyn Kernel>),
}

/// A kernel as a model file specifies it.
#[derive(Debug, Clone)]
pub(crate) struct Specified {
    pub(crate) formula: Formula,
    pub(crate) measure: Option<Measure>,
    /// What it is multiplied by, where it has that.
    pub(crate) factor: Option<f64>,
    /// Whether it is only ever used normalised.
    pub(crate) is_cosine: bool,
    /// Whether all its matrices are positive semi-definite, by a theorem.
    pub(crate) is_definite: bool,
}

/// The kernels whose keys are numbers.
const KNOWN: [&str; 11] = [
    "constant",
    "linear",
    "cosine",
    "poly",
    "sigmoid",
    "rbf",
    "laplacian",
    "chi2",
    "matern32",
    "matern52",
    "intersection",
];

impl Specified {
    /// `name:key=value,…`, as [`Kernel::spec`] writes it.
    pub(crate) fn read(view: &KernelView) -> Result<Self> {
        let unreadable =
            |problem: String| Error::Unreadable(format!("kernel `{}`: {problem}", view.name));
        let spec = view.kernel.spec().unwrap_or_default();
        let (name, options) = spec.split_once(':').unwrap_or((&spec, ""));
        let mut factor = None;
        let mut pairs = Vec::new();
        let is_known = KNOWN.contains(&name);
        if is_known {
            for option in options.split(',').filter(|option| !option.is_empty()) {
                let number = option.split_once('=').and_then(|(key, text)| {
                    let number: f64 = text.parse().ok()?;
                    number.is_finite().then_some((key, number))
                });
                match number {
                    Some(("factor", number)) => factor = Some(number),
                    Some(pair) => pairs.push(pair),
                    None => return Err(unreadable(format!("`{option}` is no number"))),
                }
            }
        }
        let number = |key: &str, default: f64| {
            let found = pairs.iter().find(|(known, _)| *known == key);
            found.map_or(default, |(_, number)| *number)
        };
        let (gamma, constant) = (number("gamma", 1.0), number("coef0", 1.0));
        let (formula, measure) = match name {
            "constant" => (Formula::Constant, None),
            "linear" | "cosine" => (Formula::Linear, Some(Measure::Product)),
            "poly" => {
                let degree = number("degree", 2.0);
                let is_whole =
                    degree.fract() == 0.0 && (1.0..=f64::from(i32::MAX)).contains(&degree);
                if !is_whole {
                    return Err(unreadable(format!("degree {degree}")));
                }
                #[allow(
                    clippy::cast_possible_truncation,
                    reason = "a whole number in range, as checked"
                )]
                let degree = degree as i32;
                (
                    Formula::Polynomial {
                        gamma,
                        constant,
                        degree,
                    },
                    Some(Measure::Product),
                )
            }
            "sigmoid" => (Formula::Sigmoid { gamma, constant }, Some(Measure::Product)),
            "rbf" => (
                Formula::Exponential { gamma },
                Some(Measure::SquaredDistance),
            ),
            "laplacian" => (Formula::Exponential { gamma }, Some(Measure::Manhattan)),
            "chi2" => (Formula::Exponential { gamma }, Some(Measure::ChiSquare)),
            "matern32" => (
                Formula::Matern32 {
                    length: number("length", 1.0),
                },
                Some(Measure::SquaredDistance),
            ),
            "matern52" => (
                Formula::Matern52 {
                    length: number("length", 1.0),
                },
                Some(Measure::SquaredDistance),
            ),
            "intersection" => (Formula::Intersection, Some(Measure::Intersection)),
            "precomputed" => {
                let name = view.kernel.given().unwrap_or_default().to_string();
                factor = view.kernel.factor();
                (Formula::Given(name), None)
            }
            // Its factor, where it has one, is in its value.
            _ => (Formula::Own(Arc::clone(&view.kernel)), None),
        };
        let is_definite = match &formula {
            Formula::Sigmoid { .. } | Formula::Given(_) | Formula::Own(_) => false,
            Formula::Polynomial { constant, .. } => *constant >= 0.0,
            _ => true,
        };
        Ok(Self {
            formula,
            measure,
            factor,
            is_cosine: name == "cosine" || (!is_known && view.kernel.is_always_normalised()),
            is_definite,
        })
    }
}

impl Formula {
    /// k of a statistic.
    pub(crate) fn of(&self, s: Approximate) -> Approximate {
        let Approximate { value: at, error } = s;
        match *self {
            Self::Constant => Approximate {
                value: 1.0,
                error: 0.0,
            },
            Self::Linear | Self::Intersection => s,
            Self::Polynomial {
                gamma,
                constant,
                degree,
            } => {
                let inside = gamma * at + constant;
                let value = inside.powi(degree);
                // |a^d − b^d| ≤ d |a − b| max(|a|, |b|)^(d−1)
                let off = gamma * error + FEW * ((gamma * at).abs() + constant.abs());
                let steepest = f64::from(degree) * (inside.abs() + off).powi(degree - 1);
                let own = 2.0 * UNIT * f64::from(degree) * value.abs();
                Approximate {
                    value,
                    error: off * steepest + own,
                }
            }
            Self::Sigmoid { gamma, constant } => {
                let inside = gamma * at + constant;
                let off = gamma * error + FEW * ((gamma * at).abs() + constant.abs());
                Approximate {
                    value: inside.tanh(),
                    error: off + FEW,
                }
            }
            Self::Exponential { gamma } => {
                let value = (-gamma * at).exp();
                // |e^−(t ∓ δ) − e^−t| ≤ e^−t (e^δ − 1); no distance is below 0, and no value above 1.
                let off = gamma * error + FEW * gamma * at;
                // What falls is off by no more than it is at the near end; far away that is all that is known.
                let near = (-(1.0 - FEW) * gamma * s.least()).exp();
                Approximate {
                    value,
                    error: (value * off.exp_m1()).min(near) + EXPONENTIAL * value + NOTHING,
                }
            }
            // dk/ds = −(3/2ℓ²) e^−t, in size at most 3/2ℓ².
            Self::Matern32 { length } => {
                let slope = 1.5 / (length * length);
                falling(s, 3.0, length, slope, |t| 1.0 + t)
            }
            // dk/ds = −(5/6ℓ²) (1 + t) e^−t, in size at most 5/6ℓ².
            Self::Matern52 { length } => {
                let slope = 5.0 / 6.0 / (length * length);
                falling(s, 5.0, length, slope, |t| 1.0 + t + t * t / 3.0)
            }
            Self::Given(_) | Self::Own(_) => Approximate {
                value: f64::NAN,
                error: f64::NAN,
            },
        }
    }
}

/// A Matérn kernel: a polynomial in t = √(shape s)/length times e^−t, which falls in s, by no more than `slope`.
fn falling(
    s: Approximate,
    shape: f64,
    length: f64,
    slope: f64,
    polynomial: impl Fn(f64) -> f64,
) -> Approximate {
    let far = |at: f64| shape.sqrt() * at.sqrt() / length;
    let of = |t: f64| {
        if t > NEGLIGIBLE {
            0.0
        } else {
            polynomial(t) * (-t).exp()
        }
    };
    // The smaller of two bounds: what falls is off by no more than it is at the near end. A slope may be beyond the range of numbers.
    let near = of(far(s.least()));
    let off = if s.error == 0.0 {
        0.0
    } else if s.value.is_infinite() {
        near
    } else {
        near.min(slope * s.error)
    };
    let t = far(s.value);
    Approximate {
        value: of(t),
        error: off + rounded(t),
    }
}

/// What rounding does to a polynomial in t times e^−t whose slope is at most t e^−t ≤ 1 (Matérn), t being off by a few roundings.
fn rounded(t: f64) -> f64 {
    if t > NEGLIGIBLE {
        return NOTHING;
    }
    let falling = (-t).exp();
    FEW * t * t.max(1.0) * falling + EXPONENTIAL * (1.0 + t + t * t) * falling + NOTHING
}

/// The double that a single holds of it, and how far those of numbers nearby are from that.
pub(crate) fn to_single(k: Approximate) -> Approximate {
    #[allow(clippy::cast_possible_truncation, reason = "that is what is asked")]
    let single = |value: f64| f64::from(value as f32);
    let value = single(k.value);
    let (low, high) = (single(k.value - k.error), single(k.value + k.error));
    Approximate {
        value,
        error: (value - low).max(high - value),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use mtmkl::kernel::parse_kernel;

    /// Every formula against the library's own value: another piece of code for the same definition.
    #[test]
    fn formulas_are_the_library_s_within_their_errors() {
        let (x, z) = ([0.3, 1.7, 0.0, 2.2], [1.1, 0.2, 0.0, 0.9]);
        let sum = |term: &dyn Fn(f64, f64) -> f64| -> f64 {
            x.iter().zip(z).map(|(&a, b)| term(a, b)).sum()
        };
        for text in [
            "constant",
            "linear",
            "cosine",
            "poly:degree=3,gamma=0.7,coef0=0.5",
            "poly:degree=2,coef0=-1",
            "sigmoid:gamma=0.3,coef0=-0.5",
            "rbf:sigma=0.7",
            "rbf:gamma=0.1,factor=3",
            "laplacian:gamma=0.4",
            "chi2:gamma=0.8",
            "intersection",
            "matern32:length=0.9",
            "matern52:length=1.3",
            "linear:factor=0.25",
        ] {
            let view = parse_kernel(text).unwrap();
            let read = Specified::read(&view).unwrap();
            let statistic = match read.measure {
                None => 0.0,
                Some(Measure::Product) => sum(&|a, b| a * b),
                Some(Measure::SquaredDistance) => sum(&|a, b| (a - b).powi(2)),
                Some(Measure::Manhattan) => sum(&|a, b| (a - b).abs()),
                Some(Measure::ChiSquare) => sum(&|a, b| {
                    if a + b == 0.0 {
                        0.0
                    } else {
                        (a - b).powi(2) / (a + b)
                    }
                }),
                Some(Measure::Intersection) => sum(&f64::min),
            };
            let found = read.formula.of(Approximate {
                value: statistic,
                error: 1e-15,
            });
            let (value, expected) = (
                found.value * read.factor.unwrap_or(1.0),
                view.kernel.value(&x, &z),
            );
            assert!(
                (value - expected).abs() <= found.error * 4.0,
                "{text}: {value} {expected} {}",
                found.error
            );
            assert!(
                found.error <= 1e-12 * found.value.abs().max(1.0),
                "{text}: {}",
                found.error
            );
            assert_eq!(
                read.is_definite,
                view.kernel.is_positive_definite(),
                "{text}"
            );
        }
        let given = Specified::read(&parse_kernel("precomputed:name=a=b:c").unwrap()).unwrap();
        assert!(matches!(given.formula, Formula::Given(name) if name == "a=b:c"));
    }

    /// Errors of the statistic are carried on, and never shrink below what they do.
    #[test]
    fn errors_cover_what_an_error_of_the_statistic_does() {
        for text in [
            "linear",
            "poly:degree=3,gamma=0.7,coef0=0.5",
            "sigmoid:gamma=0.3,coef0=-0.5",
            "rbf:gamma=3",
            "matern32:length=0.4",
            "matern52:length=0.4",
        ] {
            let formula = Specified::read(&parse_kernel(text).unwrap())
                .unwrap()
                .formula;
            for at in [1e-6, 0.01, 0.5, 2.0, 9.0] {
                let error = 0.3 * at;
                let centre = formula.of(Approximate { value: at, error });
                for shift in [-1.0, -0.5, 0.7, 1.0] {
                    let moved = formula.of(Approximate {
                        value: at + shift * error,
                        error: 0.0,
                    });
                    assert!(
                        (moved.value - centre.value).abs() <= centre.error * (1.0 + 1e-12),
                        "{text} at {at}"
                    );
                }
            }
        }
    }

    #[test]
    fn singles_say_where_they_jump() {
        let exact = to_single(Approximate {
            value: 0.5,
            error: 1e-12,
        });
        assert_eq!(
            exact,
            Approximate {
                value: 0.5,
                error: 0.0
            }
        );
        let edge = to_single(Approximate {
            value: 1.0 + 2.0_f64.powi(-24),
            error: 1e-12,
        });
        assert!(edge.error > 1e-7);
    }

    /// Distances beyond the range of numbers, and lengths whose squares are below it.
    #[test]
    fn what_is_far_away_is_zero_and_known_to_be() {
        let far = Approximate {
            value: f64::INFINITY,
            error: 1e-12 * f64::MAX,
        };
        let near = Approximate {
            value: 1.0,
            error: 1e-15,
        };
        for (text, s) in [
            ("matern32:length=1e10", far),
            ("matern52:length=1e10", far),
            ("rbf:gamma=1", far),
            ("laplacian:gamma=1", far),
            ("matern32:length=1e-155", near),
            ("matern52:length=1e-155", near),
            ("rbf:gamma=1e200", near),
        ] {
            let formula = Specified::read(&parse_kernel(text).unwrap())
                .unwrap()
                .formula;
            let k = formula.of(s);
            assert_eq!(k.value, 0.0, "{text}");
            assert!(k.error <= 1e-290, "{text}: {}", k.error);
            let same = formula.of(Approximate::default());
            assert_eq!(same.value, 1.0, "{text}");
            assert!(same.error <= 1e-12, "{text}: {}", same.error);
        }
        // So wide that the distance which is beyond numbers may be near.
        for text in [
            "matern32:length=1e170",
            "matern52:length=1e170",
            "rbf:gamma=1e-320",
        ] {
            let formula = Specified::read(&parse_kernel(text).unwrap())
                .unwrap()
                .formula;
            assert!(formula.of(far).error >= 0.99, "{text}");
        }
    }
}
