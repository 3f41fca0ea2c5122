//! What a problem takes from its samples before anything is learned: widths in units of the data, and what kernels are divided by.
//! No targets are looked at.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ProblemSpec;
use crate::data::Samples;
use crate::error::{Error, Result};
use crate::gram::{ColumnMoments, Measured};
use crate::kernel::{Base, Kernel, KernelView, Scaled, Unit};

/// What kernels are divided by, so that their weights can be compared. The same in training and in prediction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Normalization {
    /// k(x, z) / √(k(x, x) k(z, z)): every sample has length 1 in feature space. A sample with k(x, x) = 0 is the zero vector: all its
    /// kernel values are 0.
    #[default]
    Unit,
    /// k(x, z) / (mean of k(x, x) − mean of k(x, z)): the samples have variance 1 in feature space. One number for each kernel, measured
    /// on all samples of the problem (a thousand of them where there are more) and kept as its `factor`; a kernel that has a factor keeps it. A
    /// cosine stays one.
    Variance,
    /// As it is.
    None,
}

impl Normalization {
    /// Each with its word and what it means.
    pub const WORDS: [(Self, &'static str, &'static str); 3] = [
        (
            Self::Unit,
            "unit",
            "k/√(k(x,x) k(z,z)): each sample has length 1",
        ),
        (
            Self::Variance,
            "variance",
            "k/(mean of k(x,x) − mean of k(x,z)): the samples have variance 1",
        ),
        (Self::None, "none", "As they are"),
    ];

    /// The word.
    pub fn word(self) -> &'static str {
        let known = Self::WORDS.iter().find(|(known, ..)| *known == self);
        known.map_or("none", |(_, word, _)| word)
    }

    /// What a word stands for; `true` and `false` are older words for `unit` and `none`.
    pub fn of_word(word: &str) -> Option<Self> {
        match word {
            "true" => Some(Self::Unit),
            "false" => Some(Self::None),
            _ => {
                let mut known = Self::WORDS.iter();
                known
                    .find(|(_, own, _)| *own == word)
                    .map(|(this, ..)| *this)
            }
        }
    }

    /// Whether each value is divided by those of its samples, beside the kernel's factor.
    pub(crate) fn is_unit(self) -> bool {
        self == Self::Unit
    }
}

/// [`Normalization::Unit`] or none.
impl From<bool> for Normalization {
    fn from(is_normalised: bool) -> Self {
        if is_normalised {
            Self::Unit
        } else {
            Self::None
        }
    }
}

/// In files `true` and `false` as ever, and `"variance"`.
impl Serialize for Normalization {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Self::Unit => serializer.serialize_bool(true),
            Self::None => serializer.serialize_bool(false),
            Self::Variance => serializer.serialize_str(self.word()),
        }
    }
}

impl<'de> Deserialize<'de> for Normalization {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Read {
            Truth(bool),
            Word(String),
        }
        let word = match Read::deserialize(deserializer)? {
            Read::Truth(truth) => truth.to_string(),
            Read::Word(word) => word,
        };
        Self::of_word(&word).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "unknown normalisation `{word}`, expected true, false or \"variance\""
            ))
        })
    }
}

/// The kernels of a problem on these samples: widths are numbers, and factors are there where they are wanted.
///
/// # Errors
/// Names a kernel whose width is beyond its range, or that has no variance.
pub(super) fn settled(
    spec: &ProblemSpec,
    sets: &[Samples],
    moments: Option<&[ColumnMoments]>,
) -> Result<Vec<KernelView>> {
    let needs_factor = |view: &KernelView| {
        spec.normalize == Normalization::Variance
            && view.kernel.factor().is_none()
            && !view.kernel.is_always_normalised()
    };
    let is_open = |view: &KernelView| view.kernel.unsettled().is_some() || needs_factor(view);
    if sets.is_empty() || !spec.kernels.iter().any(is_open) {
        return Ok(spec.kernels.clone());
    }
    let mut measured = Measured::new(sets).knowing(moments);
    let settle = |view: &KernelView| {
        let mut kernel = with_width(view, &mut measured)?;
        if needs_factor(view) {
            let variance = measured.variance(view, kernel.as_ref())?;
            kernel = Arc::new(Scaled::new(variance.recip(), kernel)?);
        }
        Ok(KernelView {
            kernel,
            ..view.clone()
        })
    };
    spec.kernels.iter().map(settle).collect()
}

impl ProblemSpec {
    /// The same with kernels that take nothing from samples any more: widths are numbers and factors are there, measured on `sets`, which are all
    /// samples or those rows of each that [`measured_rows`](crate::gram::measured_rows) says; in the latter case with what is known of all columns.
    ///
    /// # Errors
    /// Names a kernel whose width is beyond its range, or that has no variance.
    pub fn settled(self, sets: &[Samples], moments: Option<&[ColumnMoments]>) -> Result<Self> {
        Ok(Self {
            kernels: settled(&self, sets, moments)?,
            ..self
        })
    }
}

/// Where all samples are the same to a kernel, any width will do.
const ANY: f64 = 1.0;

/// The kernel, with a width that is a number.
fn with_width(view: &KernelView, measured: &mut Measured<'_>) -> Result<Arc<dyn Kernel>> {
    let Some(open) = view.kernel.unsettled() else {
        return Ok(Arc::clone(&view.kernel));
    };
    let width = match (open.unit(), open.base()) {
        (Unit::InverseVariance, _) => match measured.spread(view)? {
            (variance, columns) if variance > 0.0 => (variance * columns as f64).recip(),
            _ => ANY,
        },
        (Unit::InverseColumns, _) => (measured.spread(view)?.1 as f64).recip(),
        (Unit::Median(times), Base::Of(statistic)) => {
            let median = measured.median(view, statistic.as_ref())?;
            median.map_or(ANY, |median| times * median)
        }
        (Unit::MedianOfRoot(times), Base::Of(statistic)) => {
            let median = measured.median(view, statistic.as_ref())?;
            median.map_or(ANY, |median| times * median.sqrt())
        }
        _ => ANY,
    };
    let kernel = open.settled(width).map_err(|error| Error::Kernel {
        spec: view.name.clone(),
        problem: format!("on these samples its width would be {width}: {error}"),
    })?;
    Ok(match view.kernel.factor() {
        Some(factor) => Arc::new(Scaled::new(factor, kernel)?),
        None => kernel,
    })
}
