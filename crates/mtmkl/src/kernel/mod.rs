//! k(x, z): what two samples have in common. One file per kernel.
//!
//! Most kernels are a function of one number about the pair, their base [`Statistic`]: the inner product x'z, the squared distance
//! ‖x − z‖², the Manhattan distance ‖x − z‖₁, or one of their own. The Gram builder computes each base once per set of columns and lets
//! every kernel map it, so ten Gaussians on the same columns cost one distance block and ten vectorised exponentials.
//!
//! To add a kernel: one file here with a type that implements [`Kernel`] and its entry, and one line in `spec.rs`; outside of this crate, one line
//! that gives the entry to a [`Registry`](crate::Registry).

pub mod base;
mod chi_square;
mod columns;
mod constant;
mod cosine;
mod gaussian;
mod intersection;
mod laplacian;
mod linear;
mod matern;
mod polynomial;
mod precomputed;
mod scaled;
mod sigmoid;
mod spec;
mod units;

use std::fmt::Debug;
use std::sync::Arc;

pub use base::{Base, Statistic};
pub use chi_square::ChiSquare;
pub use columns::{ColumnRange, Columns};
pub use constant::Constant;
pub use cosine::Cosine;
pub use gaussian::Gaussian;
pub use intersection::Intersection;
pub use laplacian::Laplacian;
pub use linear::Linear;
pub use matern::{Matern32, Matern52};
pub use polynomial::Polynomial;
pub use precomputed::Precomputed;
pub use scaled::Scaled;
pub use sigmoid::Sigmoid;
pub(crate) use spec::{KERNELS, parse_one, parse_set};
pub use spec::{KernelEntry, KeyInfo, Options, parse_kernel, parse_kernels};
pub use units::{Unit, Unsettled};

use crate::error::{Error, Result};
use crate::task_kernel::ALL;

/// k(x, z), a similarity of two samples; symmetric, and checked to be positive semi-definite unless it declares that it is.
pub trait Kernel: Debug + Send + Sync {
    /// What [`Kernel::map`] is a function of.
    fn base(&self) -> Base;

    /// base values → kernel values, in place. Called for [`Base::Of`] only.
    fn map(&self, _values: &mut [f64]) {}

    /// The same values as [`Kernel::map`] makes of `base`, elsewhere.
    fn map_from(&self, base: &[f64], values: &mut [f64]) {
        values.copy_from_slice(base);
        self.map(values);
    }

    /// k(x, z) for one pair. A kernel with [`Base::Own`] is this and nothing else.
    fn value(&self, x: &[f64], z: &[f64]) -> f64 {
        let Base::Of(statistic) = self.base() else {
            return 0.0;
        };
        let mut value = [statistic.value(x, z)];
        self.map(&mut value);
        value[0]
    }

    /// Whether every Gram matrix of this kernel is known to be positive semi-definite. Where it is not, each Gram is checked: a
    /// certificate that rests on a kernel nobody has vouched for is none.
    fn is_positive_definite(&self) -> bool {
        false
    }

    /// Whether 0 ≤ k ≤ k(x, x) = 1 for any finite base, so that no Gram matrix has to be searched for values beyond the range of numbers.
    fn is_bounded(&self) -> bool {
        false
    }

    /// Whether the kernel is only ever used in its normalised form k/√(k(x,x) k(z,z)).
    fn is_always_normalised(&self) -> bool {
        false
    }

    /// The kernel's name if it is defined only for values ≥ 0.
    fn needs_non_negative(&self) -> Option<&'static str> {
        None
    }

    /// The name of the Gram matrix to read, for [`Base::Given`].
    fn given(&self) -> Option<&str> {
        None
    }

    /// (c, γ) where k = c exp(−γ s) of its base s: of several, one exponential gives those whose γ are its multiples by powers of two.
    fn exponential(&self) -> Option<(f64, f64)> {
        None
    }

    /// The number that the kernel is multiplied by, where it has one: see [`Scaled`].
    fn factor(&self) -> Option<f64> {
        None
    }

    /// Itself, where its width is in units of the data: only a problem, which has data, makes it a kernel.
    fn unsettled(&self) -> Option<&Unsettled> {
        None
    }

    /// `name:key=value,…` that [`parse_kernel`] reads back to the same kernel; `None` for a user's own kernel, whose
    /// models cannot be saved.
    fn spec(&self) -> Option<String>;
}

/// The name closest to `wanted` by edit distance, if one is close.
pub fn nearest<'a>(wanted: &str, names: &'a [String]) -> Option<&'a str> {
    names
        .iter()
        .map(|name| (edit_distance(wanted, name), name.as_str()))
        .filter(|(distance, _)| *distance <= wanted.chars().count().max(2) / 2)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

/// A kernel on a view of the data, with the name it is reported under.
#[derive(Debug, Clone)]
pub struct KernelView {
    /// The name in reports: the specification it was made from, or the user's.
    pub name: String,
    /// The columns it sees.
    pub columns: Columns,
    /// The kernel.
    pub kernel: Arc<dyn Kernel>,
    /// The name of the task kernel that it is multiplied by, see [`crate::task_kernel`]; 1 where there is none.
    pub between: Option<String>,
}

impl KernelView {
    /// A kernel on all columns.
    pub fn new(name: impl Into<String>, kernel: impl Kernel + 'static) -> Self {
        Self {
            name: name.into(),
            columns: Columns::All,
            kernel: Arc::new(kernel),
            between: None,
        }
    }

    /// Whether both compute the same of samples with these columns, under whatever names: the same kernel with the same parameters on the
    /// same columns. A user's own kernel is the same as itself only.
    pub(crate) fn is_same_on(&self, other: &Self, names: &[String]) -> Result<bool> {
        let same = match (self.kernel.spec(), other.kernel.spec()) {
            (Some(own), Some(known)) => own == known,
            (None, None) => {
                std::ptr::addr_eq(Arc::as_ptr(&self.kernel), Arc::as_ptr(&other.kernel))
            }
            _ => false,
        };
        let same = same && self.between == other.between;
        if !same || self.kernel.base().is_given() {
            return Ok(same);
        }
        let columns = |view: &Self| {
            let chosen = view.columns.resolve(names)?;
            Ok::<_, Error>(chosen.unwrap_or_else(|| (0..names.len()).collect()))
        };
        Ok(columns(self)? == columns(other)?)
    }

    /// The same kernel times a task kernel, or times 1, and called so.
    #[must_use]
    pub fn times(mut self, between: Option<String>) -> Self {
        let (head, columns) = match self.name.split_once('@') {
            Some((head, columns)) => (head, format!("@{columns}")),
            None => (self.name.as_str(), String::new()),
        };
        let word = between.as_deref().unwrap_or(ALL);
        self.name = format!("{head}*{word}{columns}");
        self.between = between;
        self
    }

    /// The same kernel on some columns only.
    #[must_use]
    pub fn on(mut self, columns: Columns) -> Self {
        self.columns = columns;
        self
    }
}
