//! Cuts inside the model's interior point method: max(0, max_j r_j(δ)) = min e over e ≥ 0, r_j(δ) + v_j = e, v ≥ 0.
//!
//! The epigraph variable e, the slacks v and their multipliers are eliminated before the system is factored. With w_j = λ_j/v_j, A the slopes of the cuts in rows,
//! η the multiplier of e ≥ 0 and π = Σ_j w_j + η/e, the pivot of e, what is left in the Newton matrix of θᵗ is A'(W − ww'/π)A.

use crate::grid::dot;
use crate::linalg::axpy;
use crate::solver::bundle::Cut;

/// The epigraph variable of one task's cuts, their slacks and all multipliers.
#[derive(Debug, Clone)]
pub(super) struct Epigraph<'a> {
    cuts: &'a [Cut],
    /// e
    variable: f64,
    /// η, the multiplier of e ≥ 0.
    multiplier: f64,
    /// v
    slack: Vec<f64>,
    /// λ_j of v_j ≥ 0; Σλ + η = 1 at the end, so that these are the proportions of the cuts.
    weights: Vec<f64>,
}

/// So many Newton steps at most find e to begin with; a few are usual, and a start that is not quite central only costs a little of the first step.
const CENTRING: usize = 20;
/// A sum this close to one is one: multipliers need not be exact to begin with.
const CENTRED: f64 = 1e-3;

/// A step of e, v and their multipliers.
#[derive(Debug, Clone)]
pub(super) struct EpigraphStep {
    variable: f64,
    multiplier: f64,
    slack: Vec<f64>,
    weights: Vec<f64>,
}

/// What is left of the cuts in the system for θᵗ once e, v and the multipliers are eliminated.
#[derive(Debug)]
struct Reduced {
    /// λ_j / v_j
    ratios: Vec<f64>,
    /// π = Σ_j λ_j/v_j + η/e
    pivot: f64,
    /// μ/v_j, less the predictor's products.
    targets: Vec<f64>,
    /// Σ targets + μ/e − 1
    right: f64,
}

impl<'a> Epigraph<'a> {
    /// At δ, where all complementarity products are μ and Σλ + η = 1: the e with μ/e + Σ_j μ/(e − r_j) = 1.
    pub(super) fn new(cuts: &'a [Cut], delta: &[f64], mu: f64) -> Self {
        let values: Vec<f64> = cuts.iter().map(|cut| cut.value(delta)).collect();
        let highest = values.iter().fold(0.0_f64, |a, &b| a.max(b));
        // The sum falls from at least one to at most one between these; it is convex there, so Newton's steps stay on one side.
        let mut variable = highest + mu;
        for _ in 0..CENTRING {
            let terms = || values.iter().map(|value| mu / (variable - value));
            let sum = mu / variable + terms().sum::<f64>();
            let fall =
                mu / (variable * variable) + terms().map(|term| term * term / mu).sum::<f64>();
            variable += (sum - 1.0) / fall;
            if sum <= 1.0 + CENTRED {
                break;
            }
        }
        Self {
            cuts,
            variable,
            multiplier: mu / variable,
            slack: values.iter().map(|value| variable - value).collect(),
            weights: values.iter().map(|value| mu / (variable - value)).collect(),
        }
    }

    pub(super) fn complementarity(&self) -> (f64, f64) {
        if self.cuts.is_empty() {
            return (0.0, 0.0);
        }
        (
            self.variable * self.multiplier + dot(&self.slack, &self.weights),
            1.0 + self.cuts.len() as f64,
        )
    }

    /// The same sum after this step.
    pub(super) fn complementarity_after(&self, direction: &EpigraphStep, step: f64) -> f64 {
        if self.cuts.is_empty() {
            return 0.0;
        }
        let slack = self.slack.iter().zip(&direction.slack);
        let weights = self.weights.iter().zip(&direction.weights);
        let products = slack
            .zip(weights)
            .map(|((v, dv), (l, dl))| (v + step * dv) * (l + step * dl));
        (self.variable + step * direction.variable)
            * (self.multiplier + step * direction.multiplier)
            + products.sum::<f64>()
    }

    fn reduced(&self, mu: f64, predicted: Option<&EpigraphStep>) -> Reduced {
        let ratios: Vec<f64> = self
            .weights
            .iter()
            .zip(&self.slack)
            .map(|(l, v)| l / v)
            .collect();
        let targets: Vec<f64> = (0..self.cuts.len())
            .map(|j| {
                let product = predicted.map_or(0.0, |p| p.slack[j] * p.weights[j]);
                (mu - product) / self.slack[j]
            })
            .collect();
        let product = predicted.map_or(0.0, |p| p.variable * p.multiplier);
        Reduced {
            pivot: ratios.iter().sum::<f64>() + self.multiplier / self.variable,
            right: targets.iter().sum::<f64>() + (mu - product) / self.variable - 1.0,
            ratios,
            targets,
        }
    }

    /// G with G'G = A'(W − ww'/π)A, the curvature that the cuts leave; W = diag(w), w_j = λ_j/v_j.
    pub(super) fn curvature(&self) -> Vec<f64> {
        let Some(first) = self.cuts.first() else {
            return Vec::new();
        };
        let kernels = first.slope.len();
        let reduced = self.reduced(0.0, None);
        let pivot = reduced.pivot;
        // G = (I − c uu')W^½A, u = (w/π)^½ and 1 − |u|² = η/(e π), is the root that needs no factorisation.
        let left = self.multiplier / self.variable / pivot;
        let scale = (1.0 + left.sqrt()).recip();
        let mut mean = vec![0.0; kernels];
        for (w, cut) in reduced.ratios.iter().zip(self.cuts) {
            axpy(w / pivot, &cut.slope, &mut mean);
        }
        let mut rows = vec![0.0; self.cuts.len() * kernels];
        let cuts = reduced.ratios.iter().zip(self.cuts);
        for (out, (w, cut)) in rows.chunks_exact_mut(kernels).zip(cuts) {
            let root = w.sqrt();
            for (out, (slope, mean)) in out.iter_mut().zip(cut.slope.iter().zip(&mean)) {
                *out = root * (slope - scale * mean);
            }
        }
        rows
    }

    /// Adds the cuts' part to the right-hand side of θᵗ.
    pub(super) fn add_right(&self, mu: f64, predicted: Option<&EpigraphStep>, out: &mut [f64]) {
        if self.cuts.is_empty() {
            return;
        }
        let reduced = self.reduced(mu, predicted);
        for (j, cut) in self.cuts.iter().enumerate() {
            let pull = reduced.ratios[j] * reduced.right / reduced.pivot - reduced.targets[j];
            axpy(pull, &cut.slope, out);
        }
    }

    /// The step that goes with a step of θᵗ.
    pub(super) fn direction(
        &self,
        change: &[f64],
        mu: f64,
        predicted: Option<&EpigraphStep>,
    ) -> EpigraphStep {
        if self.cuts.is_empty() {
            return EpigraphStep {
                variable: 0.0,
                multiplier: 0.0,
                slack: Vec::new(),
                weights: Vec::new(),
            };
        }
        let reduced = self.reduced(mu, predicted);
        let along: Vec<f64> = self
            .cuts
            .iter()
            .map(|cut| dot(&cut.slope, change))
            .collect();
        let variable = (dot(&reduced.ratios, &along) + reduced.right) / reduced.pivot;
        let slack: Vec<f64> = along.iter().map(|along| variable - along).collect();
        let weights = (0..slack.len())
            .map(|j| reduced.targets[j] - self.weights[j] - reduced.ratios[j] * slack[j])
            .collect();
        let product = predicted.map_or(0.0, |p| p.variable * p.multiplier);
        let multiplier =
            (mu - product - self.multiplier * variable) / self.variable - self.multiplier;
        EpigraphStep {
            variable,
            multiplier,
            slack,
            weights,
        }
    }

    /// All pairs of a positive quantity and its change.
    pub(super) fn pairs<'b>(
        &'b self,
        step: &'b EpigraphStep,
    ) -> impl Iterator<Item = (f64, f64)> + 'b {
        let own = [
            (self.variable, step.variable),
            (self.multiplier, step.multiplier),
        ];
        let own = own
            .into_iter()
            .take(if self.cuts.is_empty() { 0 } else { 2 });
        let slack = self.slack.iter().copied().zip(step.slack.iter().copied());
        let weights = self
            .weights
            .iter()
            .copied()
            .zip(step.weights.iter().copied());
        own.chain(slack).chain(weights)
    }

    pub(super) fn advance(&mut self, direction: &EpigraphStep, step: f64) {
        self.variable += step * direction.variable;
        self.multiplier += step * direction.multiplier;
        axpy(step, &direction.slack, &mut self.slack);
        axpy(step, &direction.weights, &mut self.weights);
    }

    /// λ_j, scaled where they sum to more than one.
    pub(super) fn convex_weights(&self) -> Vec<f64> {
        let total: f64 = self.weights.iter().sum();
        self.weights
            .iter()
            .map(|weight| weight / total.max(1.0))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::solve_small;
    use crate::random::Random;

    const KERNELS: usize = 4;
    const CUTS: usize = 3;

    fn numbers(count: usize, random: &mut Random) -> Vec<f64> {
        (0..count).map(|_| 0.1 + random.uniform()).collect()
    }

    fn signed(count: usize, random: &mut Random) -> Vec<f64> {
        (0..count).map(|_| random.uniform() - 0.5).collect()
    }

    /// Cuts with any positive slacks and multipliers, on r_j + v_j = e.
    fn state<'a>(cuts: &'a [Cut], random: &mut Random) -> Epigraph<'a> {
        Epigraph {
            cuts,
            variable: 0.1 + random.uniform(),
            multiplier: 0.1 + random.uniform(),
            slack: numbers(cuts.len(), random),
            weights: numbers(cuts.len(), random),
        }
    }

    /// The Newton system of δ, e, v, λ, η without any elimination:
    ///
    /// D dδ + A'dλ = g − A'λ,  dη + Σ dλ = 1 − η − Σλ,  A dδ + dv − de = 0,  λ dv + v dλ = μ − λv − (products),  η de + e dη = μ − ηe − (product)
    fn dense(
        state: &Epigraph<'_>,
        diagonal: &[f64],
        right: &[f64],
        mu: f64,
        predicted: Option<&EpigraphStep>,
    ) -> (Vec<f64>, EpigraphStep) {
        let (m, k) = (diagonal.len(), state.cuts.len());
        // Where the variables are: δ, e, v, λ, η.
        let (e, v, l, h) = (m, m + 1, m + 1 + k, m + 1 + 2 * k);
        let size = h + 1;
        let mut matrix = vec![0.0; size * size];
        let mut b = vec![0.0; size];
        for i in 0..m {
            matrix[i * size + i] = diagonal[i];
            b[i] = right[i];
            for (j, cut) in state.cuts.iter().enumerate() {
                matrix[i * size + l + j] = cut.slope[i];
                b[i] -= state.weights[j] * cut.slope[i];
            }
        }
        for j in 0..k {
            matrix[m * size + l + j] = 1.0;
            let line = m + 1 + j;
            for i in 0..m {
                matrix[line * size + i] = state.cuts[j].slope[i];
            }
            matrix[line * size + v + j] = 1.0;
            matrix[line * size + e] = -1.0;
            let line = m + 1 + k + j;
            matrix[line * size + v + j] = state.weights[j];
            matrix[line * size + l + j] = state.slack[j];
            let product = predicted.map_or(0.0, |p| p.slack[j] * p.weights[j]);
            b[line] = mu - state.weights[j] * state.slack[j] - product;
        }
        matrix[m * size + h] = 1.0;
        b[m] = 1.0 - state.multiplier - state.weights.iter().sum::<f64>();
        matrix[h * size + e] = state.multiplier;
        matrix[h * size + h] = state.variable;
        let product = predicted.map_or(0.0, |p| p.variable * p.multiplier);
        b[h] = mu - state.variable * state.multiplier - product;
        assert!(solve_small(&mut matrix, &mut b, size));
        let step = EpigraphStep {
            variable: b[e],
            multiplier: b[h],
            slack: b[v..v + k].to_vec(),
            weights: b[l..l + k].to_vec(),
        };
        (b[..m].to_vec(), step)
    }

    /// The same with everything but δ eliminated.
    fn reduced(
        state: &Epigraph<'_>,
        diagonal: &[f64],
        right: &[f64],
        mu: f64,
        predicted: Option<&EpigraphStep>,
    ) -> (Vec<f64>, EpigraphStep) {
        let m = diagonal.len();
        let mut matrix = vec![0.0; m * m];
        for (i, value) in diagonal.iter().enumerate() {
            matrix[i * m + i] = *value;
        }
        crate::linalg::add_gram(&state.curvature(), m, &mut matrix);
        let mut change = right.to_vec();
        state.add_right(mu, predicted, &mut change);
        assert!(solve_small(&mut matrix, &mut change, m));
        let step = state.direction(&change, mu, predicted);
        (change, step)
    }

    fn flat(of: &(Vec<f64>, EpigraphStep)) -> Vec<f64> {
        let (change, step) = of;
        let own = [step.variable, step.multiplier];
        [&change[..], &own, &step.slack, &step.weights].concat()
    }

    #[test]
    fn the_eliminated_system_has_the_dense_one_s_step() {
        let mut random = Random::new(8);
        for count in 1..=CUTS {
            let cuts: Vec<Cut> = (0..count)
                .map(|_| Cut::new(signed(KERNELS, &mut random), 0.0))
                .collect();
            let state = state(&cuts, &mut random);
            let diagonal = numbers(KERNELS, &mut random);
            let right = signed(KERNELS, &mut random);
            let predictor = dense(&state, &diagonal, &right, 0.0, None);
            let cases = [(0.0, None), (0.3, None), (0.3, Some(&predictor.1))];
            for (mu, predicted) in cases {
                let expected = flat(&dense(&state, &diagonal, &right, mu, predicted));
                let found = flat(&reduced(&state, &diagonal, &right, mu, predicted));
                for (a, b) in found.iter().zip(&expected) {
                    assert!((a - b).abs() < 1e-9, "{count} cuts: {a} and {b}");
                }
            }
        }
    }

    #[test]
    fn products_after_a_step_are_those_of_where_it_leads() {
        let mut random = Random::new(10);
        for count in 0..=CUTS {
            let cuts: Vec<Cut> = (0..count)
                .map(|_| Cut::new(signed(KERNELS, &mut random), 0.0))
                .collect();
            let mut state = state(&cuts, &mut random);
            let own = signed(2, &mut random);
            let direction = EpigraphStep {
                variable: own[0],
                multiplier: own[1],
                slack: signed(count, &mut random),
                weights: signed(count, &mut random),
            };
            let (before, step) = (state.clone(), 0.3);
            let foretold = state.complementarity_after(&direction, step);
            state.advance(&direction, step);
            let (found, products) = state.complementarity();
            assert!((foretold - found).abs() <= 1e-14, "{foretold} {found}");
            assert_eq!(products, if count == 0 { 0.0 } else { 1.0 + count as f64 });
            let moved = [
                (before.variable, direction.variable, state.variable),
                (before.multiplier, direction.multiplier, state.multiplier),
            ];
            for (value, change, after) in moved {
                assert_eq!(value + step * change, after);
            }
        }
    }

    #[test]
    fn proportions_of_cuts_are_scaled_where_they_are_more_than_one() {
        let mut random = Random::new(11);
        let cuts: Vec<Cut> = (0..2)
            .map(|_| Cut::new(signed(KERNELS, &mut random), 0.0))
            .collect();
        let mut state = state(&cuts, &mut random);
        state.weights = vec![3.0, 1.0];
        assert_eq!(state.convex_weights(), [0.75, 0.25]);
        state.weights = vec![0.25, 0.5];
        assert_eq!(state.convex_weights(), [0.25, 0.5]);
    }

    #[test]
    fn the_start_is_central() {
        let mut random = Random::new(9);
        let delta = signed(KERNELS, &mut random);
        for mu in [1e-6, 1e-2, 10.0] {
            let cuts: Vec<Cut> = (0..CUTS)
                .map(|_| Cut::new(signed(KERNELS, &mut random), random.uniform() - 0.7))
                .collect();
            let state = Epigraph::new(&cuts, &delta, mu);
            let total = state.multiplier + state.weights.iter().sum::<f64>();
            assert!((total - 1.0).abs() < 2e-3, "{total}");
            let (products, count) = state.complementarity();
            assert!((products - count * mu).abs() < 1e-12 * count * mu.max(1e-3));
            for (cut, slack) in cuts.iter().zip(&state.slack) {
                assert!((cut.value(&delta) + slack - state.variable).abs() < 1e-12);
            }
        }
    }
}
