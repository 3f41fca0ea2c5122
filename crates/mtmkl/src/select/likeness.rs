//! How alike a kernel takes the samples to be: nearly the identity and nearly constant ones say nothing about new rows.

use crate::gram::TaskGrams;
use crate::problem::Prepared;
use crate::random::Random;

/// How many samples are looked at, each beside all others of its set.
const LOOKED_AT: usize = 32;

/// k(x, z)/√(k(x, x) k(z, z)) of a sample and the one most like it (either sign), and the one least like it: the medians over some samples.
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
            let (kernel, all) = (kernels[kernel], TaskGrams::all(grams.as_ref()));
            let diagonal = grams.diagonal(kernel);
            for &row in rows {
                let mut values = vec![0.0; grams.samples()];
                all.add_rows(kernel, &[(row, 1.0)], &mut values);
                let like = values.iter().zip(diagonal).enumerate();
                let like = like.filter(|(other, _)| *other != row);
                let like: Vec<f64> = like
                    .map(|(_, (value, own))| value / (own * diagonal[row]).sqrt())
                    .filter(|value| value.is_finite())
                    .collect();
                if like.is_empty() {
                    continue;
                }
                nearest.push(like.iter().fold(0.0, |most, value| value.abs().max(most)));
                farthest.push(like.iter().copied().fold(f64::INFINITY, f64::min));
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
