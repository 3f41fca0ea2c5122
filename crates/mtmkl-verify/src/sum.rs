//! Sums that lose nothing worth mentioning, and what the sums of others may have lost.

/// u = 2⁻⁵³: a rounded operation is off by at most this part of its result.
pub(crate) const UNIT: f64 = 0.5 * f64::EPSILON;

/// k u/(1 − k u), the part of Σ|terms| that k roundings in a row can lose (Higham, Accuracy and Stability of Numerical Algorithms, lemma 3.1).
pub(crate) fn lost(roundings: usize) -> f64 {
    let part = roundings as f64 * UNIT;
    if part < 0.5 {
        part / (1.0 - part)
    } else {
        f64::INFINITY
    }
}

/// A sum with the part that rounding would lose kept beside it (Neumaier, 1974): off by u|Σ| + n² u² Σ|terms|.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sum {
    high: f64,
    low: f64,
}

impl Sum {
    pub(crate) fn add(&mut self, term: f64) {
        let sum = self.high + term;
        self.low += if self.high.abs() >= term.abs() {
            (self.high - sum) + term
        } else {
            (term - sum) + self.high
        };
        self.high = sum;
    }

    /// Adds a b, without the rounding of the product.
    pub(crate) fn add_product(&mut self, a: f64, b: f64) {
        let product = a * b;
        self.add(product);
        self.low += a.mul_add(b, -product);
    }

    /// Adds another sum.
    pub(crate) fn join(&mut self, other: Self) {
        self.add(other.high);
        self.low += other.low;
    }

    pub(crate) fn value(self) -> f64 {
        // Beyond the range of numbers, what was lost is not a number.
        if self.low.is_finite() {
            self.high + self.low
        } else {
            self.high
        }
    }
}

impl FromIterator<f64> for Sum {
    fn from_iter<I: IntoIterator<Item = f64>>(terms: I) -> Self {
        let mut sum = Self::default();
        terms.into_iter().for_each(|term| sum.add(term));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cancels_is_not_lost() {
        let sum: Sum = [1.0, 1e100, 1.0, -1e100].into_iter().collect();
        assert_eq!(sum.value(), 2.0);
        let mut product = Sum::default();
        product.add_product(1.0 + f64::EPSILON, 1.0 - f64::EPSILON);
        product.add(-1.0);
        assert_eq!(product.value(), -f64::EPSILON * f64::EPSILON);
        let mut joined = Sum::default();
        joined.join(product);
        joined.add(1.0);
        joined.add(-1.0);
        assert_eq!(joined.value(), product.value());
    }

    #[test]
    fn beyond_the_range_of_numbers_is_said() {
        let sum: Sum = [f64::MAX, f64::MAX].into_iter().collect();
        assert_eq!(sum.value(), f64::INFINITY);
        assert!(lost(usize::MAX).is_infinite());
    }
}
