//! Givens rotations: an orthogonal change of two numbers that takes the second to zero.

/// [[c, s], [−s, c]] with c² + s² = 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Givens {
    cosine: f64,
    sine: f64,
}

impl Givens {
    /// The rotation that takes the second of these two to zero.
    pub(super) fn new(first: f64, second: f64) -> Self {
        let length = first.hypot(second);
        if length == 0.0 {
            return Self {
                cosine: 1.0,
                sine: 0.0,
            };
        }
        Self {
            cosine: first / length,
            sine: second / length,
        }
    }

    /// Rotates two numbers.
    pub(super) fn pair(self, first: &mut f64, second: &mut f64) {
        let (x, y) = (*first, *second);
        *first = self.cosine * x + self.sine * y;
        *second = self.cosine * y - self.sine * x;
    }

    /// Rotates two vectors, entry by entry.
    pub(super) fn vectors(self, first: &mut [f64], second: &mut [f64]) {
        for (x, y) in first.iter_mut().zip(second) {
            self.pair(x, y);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_becomes_zero_and_the_length_stays() {
        for (first, second) in [(3.0, 4.0), (0.0, 0.0), (0.0, -2.0), (1e-200, 1e200)] {
            let (mut x, mut y) = (first, second);
            Givens::new(first, second).pair(&mut x, &mut y);
            let length = f64::hypot(first, second);
            assert!(y.abs() <= 1e-15 * length);
            assert!((x - length).abs() <= 1e-15 * length);
        }
    }
}
