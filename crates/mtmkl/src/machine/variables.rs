//! Which sample a dual variable belongs to.

/// The variables of n samples, so many of each: first one of each sample in the samples' order, then the next one of each.
///
/// ε-SVR has two a sample, one for each sign; all other machines have one. Variables of a sample share its row of K, and β of the sample is
/// their sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variables {
    samples: usize,
    copies: usize,
}

impl Variables {
    /// So many variables for each of n samples.
    pub fn new(samples: usize, copies: usize) -> Self {
        Self { samples, copies }
    }

    /// One variable a sample.
    pub fn one_each(samples: usize) -> Self {
        Self::new(samples, 1)
    }

    /// n.
    pub fn samples(self) -> usize {
        self.samples
    }

    /// How many variables a sample has.
    pub fn copies(self) -> usize {
        self.copies
    }

    /// How many variables there are.
    pub fn count(self) -> usize {
        self.samples * self.copies
    }

    /// The sample that a variable belongs to.
    pub fn sample_of(self, variable: usize) -> usize {
        variable % self.samples
    }

    /// The variables of a sample.
    pub fn of_sample(self, sample: usize) -> impl Iterator<Item = usize> {
        (0..self.copies).map(move |copy| copy * self.samples + sample)
    }

    /// The variables with one of each sample, as ranges.
    pub(crate) fn ranges(self) -> impl Iterator<Item = std::ops::Range<usize>> {
        (0..self.copies).map(move |copy| copy * self.samples..(copy + 1) * self.samples)
    }

    /// By sample: the values of its variables added up.
    pub fn sums(self, values: &[f64]) -> Vec<f64> {
        let mut sums = values[..self.samples].to_vec();
        for range in self.ranges().skip(1) {
            crate::vector::axpy(1.0, &values[range], &mut sums);
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_variables_a_sample_lie_one_copy_apart() {
        let variables = Variables::new(3, 2);
        assert_eq!(variables.count(), 6);
        let values = [1.0, 2.0, 3.0, -10.0, -20.0, -30.0];
        assert_eq!(variables.sums(&values), [-9.0, -18.0, -27.0]);
        for sample in 0..3 {
            let own: Vec<usize> = variables.of_sample(sample).collect();
            assert_eq!(own, [sample, sample + 3]);
            assert!(own.iter().all(|&v| variables.sample_of(v) == sample));
        }
        assert_eq!(Variables::one_each(2).sums(&values[..2]), [1.0, 2.0]);
    }
}
