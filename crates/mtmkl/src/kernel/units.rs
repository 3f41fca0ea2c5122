//! Widths in units of the data: `sigma=median*2` is twice the median distance of two samples, `gamma=scale` is scikit-learn's
//! 1/(d · variance of the values). A kernel with such a width is none yet: a problem makes it one from its samples.

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use super::spec::{Options, positive};
use super::{Base, Kernel};
use crate::error::Result;

/// What a width is measured by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unit {
    /// So many times the median over pairs of samples of √s(x, z), where s is the kernel's base statistic.
    MedianOfRoot(f64),
    /// So many times the median over pairs of samples of s(x, z).
    Median(f64),
    /// 1 / (d · v), with v the variance of all values in the d columns.
    InverseVariance,
    /// 1 / d
    InverseColumns,
}

/// A kernel whose width is in units of the data.
#[derive(Clone)]
pub struct Unsettled {
    spec: String,
    base: Base,
    unit: Unit,
    build: Arc<dyn Fn(f64) -> Result<Arc<dyn Kernel>> + Send + Sync>,
}

impl Unsettled {
    /// The kernel with this width, `unit` times what was measured.
    ///
    /// # Errors
    /// When it is beyond the range of the kernel.
    pub fn settled(&self, width: f64) -> Result<Arc<dyn Kernel>> {
        (self.build)(width)
    }

    /// What the width is measured by.
    pub fn unit(&self) -> Unit {
        self.unit
    }
}

impl Debug for Unsettled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Unsettled").field(&self.spec).finish()
    }
}

impl Kernel for Unsettled {
    fn base(&self) -> Base {
        self.base.clone()
    }

    /// No width, no values.
    fn map(&self, values: &mut [f64]) {
        values.fill(f64::NAN);
    }

    fn unsettled(&self) -> Option<&Unsettled> {
        Some(self)
    }

    fn spec(&self) -> Option<String> {
        Some(self.spec.clone())
    }
}

/// The word for the median distance.
const MEDIAN: &str = "median";
/// scikit-learn's words for a gamma.
const GAMMAS: [(&str, Unit); 2] = [
    ("scale", Unit::InverseVariance),
    ("auto", Unit::InverseColumns),
];

/// The members of a set, `median*0.5|1|2`: what is said of the first goes for the numbers after it.
pub(super) fn of_all(values: Vec<&str>) -> Vec<Cow<'_, str>> {
    let is_median = |value: &str| {
        let rest = value.strip_prefix(MEDIAN).map(str::trim_start);
        rest.is_some_and(|rest| rest.starts_with('*'))
    };
    let all = values.first().is_some_and(|first| is_median(first));
    let member = |value: &'_ str| value.parse::<f64>().is_ok() && all;
    let values = values.into_iter();
    values
        .map(|value| {
            if member(value) {
                format!("{MEDIAN}*{value}").into()
            } else {
                value.into()
            }
        })
        .collect()
}

impl Options<'_> {
    /// The value of a key that is a length: a number, or `median` or `median*2`, of the statistic's root where that is a squared length.
    ///
    /// # Errors
    /// When it is something else, or the number is beyond the kernel's range.
    pub fn length<K: Kernel + 'static>(
        &self,
        key: &'static str,
        default: f64,
        build: impl Fn(f64) -> Result<K> + Send + Sync + 'static,
    ) -> Result<Arc<dyn Kernel>> {
        let Some(rest) = self.text(key).and_then(|text| text.strip_prefix(MEDIAN)) else {
            let number = self.number(key, default).map_err(|_| {
                let text = self.text(key).unwrap_or_default();
                self.problem(format!(
                    "`{key}` is `{text}`, expected a number such as 0.5, or `{MEDIAN}*0.5`, half the median distance of two samples"
                ))
            })?;
            return Ok(Arc::new(build(number)?));
        };
        let times = match rest.trim().strip_prefix('*').map(str::trim) {
            Some(times) => times.parse().ok(),
            None if rest.trim().is_empty() => Some(1.0),
            None => None,
        };
        let Some(times) = times else {
            return Err(self.problem(format!(
                "`{key}` is `{MEDIAN}{rest}`, expected `{MEDIAN}` or `{MEDIAN}*` and a number such as {MEDIAN}*0.5"
            )));
        };
        let times = positive(key, times)?;
        // Any number will do to ask what the kernel is a function of.
        let base = build(1.0)?.base();
        let unit = if base == Base::squared_distance() {
            Unit::MedianOfRoot(times)
        } else {
            Unit::Median(times)
        };
        Ok(self.unsettled(base, unit, build))
    }

    /// The value of a key that is an inverse squared length: a number, or scikit-learn's `scale`, 1/(columns × variance), or `auto`, 1/columns.
    ///
    /// # Errors
    /// When it is something else, or the number is beyond the kernel's range.
    pub fn inverse<K: Kernel + 'static>(
        &self,
        key: &'static str,
        default: f64,
        build: impl Fn(f64) -> Result<K> + Send + Sync + 'static,
    ) -> Result<Arc<dyn Kernel>> {
        if let Some((_, unit)) = GAMMAS.iter().find(|(word, _)| self.text(key) == Some(word)) {
            let base = build(1.0)?.base();
            return Ok(self.unsettled(base, *unit, build));
        }
        let number = self.number(key, default).map_err(|_| {
            let text = self.text(key).unwrap_or_default();
            self.problem(format!(
                "`{key}` is `{text}`, expected a number such as 0.5, or `scale`, 1/(columns × variance), or `auto`, 1/columns"
            ))
        })?;
        Ok(Arc::new(build(number)?))
    }

    fn unsettled<K: Kernel + 'static>(
        &self,
        base: Base,
        unit: Unit,
        build: impl Fn(f64) -> Result<K> + Send + Sync + 'static,
    ) -> Arc<dyn Kernel> {
        Arc::new(Unsettled {
            spec: self.without_columns(),
            base,
            unit,
            build: Arc::new(move |width| Ok(Arc::new(build(width)?))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{parse_kernel, parse_kernels};

    #[test]
    fn a_set_is_in_medians_throughout() {
        let views = parse_kernels("rbf:sigma=median*0.5|1|2@f1").unwrap();
        let names: Vec<&str> = views.iter().map(|view| view.name.as_str()).collect();
        let expected = [
            "rbf:sigma=median*0.5@f1",
            "rbf:sigma=median*1@f1",
            "rbf:sigma=median*2@f1",
        ];
        assert_eq!(names, expected);
        assert!(views.iter().all(|view| view.kernel.unsettled().is_some()));
        let plain = parse_kernels("rbf:sigma=1|2").unwrap();
        assert!(plain.iter().all(|view| view.kernel.unsettled().is_none()));
    }

    #[test]
    fn what_is_written_is_read_again() {
        for text in [
            "rbf:sigma=median",
            "rbf:gamma=scale",
            "rbf:gamma=auto",
            "poly:degree=3,gamma=scale",
            "laplacian:sigma=median*3",
            "matern32:length=median*2@f1..f3",
        ] {
            let view = parse_kernel(text).unwrap();
            assert_eq!(view.spec().as_deref(), Some(text));
        }
    }

    #[test]
    fn slips_are_named() {
        for (text, expected) in [
            ("rbf:sigma=medain", "median*0.5"),
            ("rbf:sigma=median*-1", "sigma"),
            ("rbf:sigma=median2", "and a number"),
            ("rbf:gamma=sclae", "scale"),
            ("rbf:gamma=median", "scale"),
        ] {
            let message = parse_kernel(text).unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
