//! Whether a kernel's matrix is positive semi-definite: K + ε has a Cholesky factor for an ε that rounding explains.

use crate::error::{DataProblem, Error, Place, Result};
use crate::linalg;

/// What to do about kernels that do not promise to be positive semi-definite (precomputed, sigmoid, a user's own).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Definiteness {
    /// Check each Gram matrix, refuse an indefinite one. Costs a Cholesky factorisation for each.
    #[default]
    Check,
    /// Take the caller's word for it.
    Assume,
    /// Allow indefinite ones: the answer is then a local one, and the gap not certified.
    AllowIndefinite,
}

/// A negative eigenvalue is forgiven down to minus this, times n and the largest entry of the diagonal: what rounding does to sums of n
/// terms, also where a matrix was kept in single precision once.
const FORGIVEN: f64 = 1e-9;
/// The same for what rounding in double precision does to any matrix, also to one that is singular by right.
const ROUNDING: f64 = f64::EPSILON;

/// ε ≥ 0 such that K + ε is positive semi-definite, as far as floating point can tell: 0 where K is, at most twice what it takes where
/// it is not. More than is forgiven is an error. `fill` writes K, n × n, into the one copy that is made of it.
pub(super) fn check(n: usize, fill: impl Fn(&mut [f64]), place: Place) -> Result<f64> {
    let mut matrix = vec![0.0; n * n];
    fill(&mut matrix);
    let largest = (0..n).fold(0.0_f64, |a, i| a.max(matrix[i * n + i].abs()));
    if largest == 0.0 && matrix.iter().all(|&value| value == 0.0) {
        return Ok(0.0);
    }
    let mut is_filled = true;
    let mut is_definite = |shift: f64| {
        // The factor is written over the matrix.
        if !std::mem::take(&mut is_filled) {
            fill(&mut matrix);
        }
        for i in 0..n {
            matrix[i * n + i] += shift;
        }
        linalg::is_positive_definite(&mut matrix, n)
    };
    if is_definite(0.0) {
        return Ok(0.0);
    }
    let unit = largest * n as f64;
    let (mut low, mut high) = (ROUNDING * unit, FORGIVEN * unit);
    if is_definite(low) {
        return Ok(low);
    }
    if is_definite(high) {
        while high > 2.0 * low {
            let middle = (low * high).sqrt();
            if is_definite(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        return Ok(high);
    }
    fill(&mut matrix);
    let (smallest, largest) =
        linalg::extreme_eigenvalues(&matrix, n).ok_or_else(|| Error::Numeric {
            place: place.to_string(),
            problem: "the eigenvalues of the kernel could not be computed".to_string(),
        })?;
    Err(Error::data(
        place,
        DataProblem::Indefinite { smallest, largest },
    ))
}
