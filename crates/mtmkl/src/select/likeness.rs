//! How alike a kernel takes the samples to be: nearly the identity and nearly constant ones say nothing about new rows.

use crate::gram::TaskGrams;
use crate::problem::Prepared;
use crate::random::Random;
use crate::view::View;

/// How many samples are looked at, each beside others of its set.
const LOOKED_AT: usize = 32;
/// Others at most, taken evenly: 32 rows of 100,000 values of ten kernels are five seconds by one thread, and nobody waits for a warning.
const COMPARED_WITH: usize = 4096;

/// |k(x, z)|/√(k(x, x) k(z, z)) of a sample and the one most like it, and 1 − |k(x, z) − k(x, x)|/k(x, x) of it and the one least like it: the
/// medians over some samples. Both are k(x, z) itself where kernels are normalised and positive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Likeness {
    /// To the sample most like it.
    pub nearest: f64,
    /// To the sample least like it.
    pub farthest: f64,
}

/// The nearest sample is no more like than this where a kernel is nearly the identity: e^(−d²/2σ²) at a distance of 3 σ.
const NEARLY_NOTHING: f64 = 0.0111;
/// The farthest sample is no less like than this where a kernel is nearly constant: e^(−d²/2σ²) at a distance of σ/22.
const NEARLY_ALL: f64 = 0.999;

impl Likeness {
    /// Nearly the identity: a sample is like no other, so that training rows are learned by heart.
    pub fn is_identity(self) -> bool {
        self.nearest < NEARLY_NOTHING
    }

    /// Nearly constant: all samples are alike.
    pub fn is_constant(self) -> bool {
        self.farthest > NEARLY_ALL
    }
}

impl Prepared {
    /// By kernel, how alike it takes the samples to be, over some of them from all sets; none where sets have one sample only.
    pub fn likeness(&self) -> Vec<Option<Likeness>> {
        let mut random = Random::new(0);
        let counts: Vec<usize> = self.samples().collect();
        let total: usize = counts.iter().sum();
        let mut looked_at = vec![Vec::new(); counts.len()];
        for _ in 0..LOOKED_AT {
            let mut row = random.below(total);
            let mut set = 0;
            while row >= counts[set] {
                row -= counts[set];
                set += 1;
            }
            if counts[set] > 1 && !looked_at[set].contains(&row) {
                looked_at[set].push(row);
            }
        }
        let kernels = self.whole(0).1.len();
        (0..kernels)
            .map(|kernel| self.likeness_of(kernel, &looked_at))
            .collect()
    }

    fn likeness_of(&self, kernel: usize, looked_at: &[Vec<usize>]) -> Option<Likeness> {
        let (mut nearest, mut farthest) = (Vec::new(), Vec::new());
        for (set, rows) in looked_at.iter().enumerate() {
            let (grams, kernels) = self.whole(set);
            let kernel = kernels[kernel];
            let diagonal = grams.diagonal(kernel);
            for &row in rows {
                // The row itself first, then those that it is compared with.
                let count = grams.samples();
                let compared = count.min(COMPARED_WITH);
                let others = (0..compared).map(|place| place * count / compared);
                let others = others.filter(|other| *other != row);
                let view: View = std::iter::once(row).chain(others).collect();
                let mut values = vec![0.0; view.count(count)];
                let seen = TaskGrams {
                    grams: grams.as_ref(),
                    view: &view,
                };
                seen.add_rows(kernel, &[(0, 1.0)], &mut values);
                let (mut most, mut least) = (f64::NEG_INFINITY, f64::INFINITY);
                for (place, value) in values.iter().enumerate().skip(1) {
                    let (own, its) = (diagonal[row], diagonal[view.position(place)]);
                    // Of a sample at 0 a kernel may say nothing.
                    if own > 0.0 && its > 0.0 {
                        most = most.max(value.abs() / (own * its).sqrt());
                        least = least.min(1.0 - (value - own).abs() / own);
                    }
                }
                if most.is_finite() {
                    nearest.push(most);
                    farthest.push(least);
                }
            }
        }
        Some(Likeness {
            nearest: median(nearest)?,
            farthest: median(farthest)?,
        })
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::data::{Samples, Targets, Task};
    use crate::kernel::parse_kernels;
    use crate::machine::MachineSpec;
    use crate::problem::{Preparation, Problem, ProblemSpec};
    use crate::sharing::SharingSpec;

    /// Points on a line, 1 apart, in two sets.
    fn on_a_line(kernels: &str, normalize: bool) -> Vec<Likeness> {
        let line = |from: f64| (0..20).map(|at| from + f64::from(at)).collect();
        let sets = [line(1.0), line(101.0)].map(|values| Samples::new(values, 20, 1).unwrap());
        let labels = Targets::Labels((0..20).map(|at| f64::from(at % 2) * 2.0 - 1.0).collect());
        let tasks = (0..2).map(|set| Task::new(format!("{set}"), labels.clone()).on(set));
        let kernels = parse_kernels(kernels).unwrap();
        let mut spec = ProblemSpec::new(kernels, MachineSpec::svc(1.0), SharingSpec::uniform());
        spec.normalize = normalize.into();
        let problem = Problem::new(spec, sets.to_vec(), tasks.collect()).unwrap();
        let prepared = problem.prepare(&Preparation::default()).unwrap();
        prepared.likeness().into_iter().flatten().collect()
    }

    #[test]
    fn the_nearest_and_the_farthest_by_the_formula() {
        let found = on_a_line("rbf:sigma=0.1|1|10|1000", true);
        for (likeness, sigma) in found.iter().zip([0.1, 1.0, 10.0, 1000.0_f64]) {
            let value = |distance: f64| (-0.5 * (distance / sigma).powi(2)).exp();
            // A neighbour is 1 away, the other end 10 to 19.
            assert!((likeness.nearest - value(1.0)).abs() < 1e-12);
            let rounding = 1e-12;
            assert!(likeness.farthest <= value(10.0) + rounding);
            assert!(likeness.farthest >= value(19.0) - rounding);
        }
        let which = |is: fn(Likeness) -> bool| found.iter().map(move |one| is(*one));
        assert!(which(Likeness::is_identity).eq([true, false, false, false]));
        assert!(which(Likeness::is_constant).eq([false, false, false, true]));
    }

    #[test]
    fn a_line_is_neither_but_its_sign_is_constant() {
        for (normalize, constant) in [(false, false), (true, true)] {
            let found = on_a_line("linear", normalize)[0];
            assert_eq!(found.is_constant(), constant, "{found:?}");
            assert!(!found.is_identity());
        }
    }
}
