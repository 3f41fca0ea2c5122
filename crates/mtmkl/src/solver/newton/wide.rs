//! The minimum of J's model where kernels are combinations of fewer: M variables that the model feels by r ≤ (free samples) numbers only.
//!
//! min over θ in Ψ of −⟨s, δ⟩ + ½‖Fδ‖², δ = θ − θ_k, is the maximum over z of
//!
//! D(z) = −½‖z‖² + ⟨d, θ_k⟩ − σ(d),  d = s − F'z,  σ(d) = radius · ‖d⁺‖_q
//!
//! which for p > 1 has r variables, no constraint and a Newton matrix I + F ∇²σ F'; θ = ∇σ(d) is feasible, and ½‖Fδ − z‖² above the minimum at most.
//! For p = 1 σ has kinks and θ few weights: there the model is solved on a few kernels, and those that would lower it most are added.

use std::collections::BTreeSet;

use rayon::prelude::*;

use crate::engine::Curvature;
use crate::grid::{Grid, Shape, dot};
use crate::linalg::{Cholesky, axpy};
use crate::sharing::{Constraint, SharingSpec};
use crate::solver::bundle::Known;
use crate::solver::interior::Model;
use crate::span::Span;

/// How well F is interpolated: the model is one of J near θ_k, and so far off anyway.
const MODEL_ERROR: f64 = 1e-5;
/// No more steps than this.
const MOST_STEPS: usize = 50;
/// No shorter part of a step than two to minus this.
const MOST_HALVINGS: usize = 30;
/// A step must raise D by this part of what its slope promises.
const SUFFICIENT: f64 = 1e-4;
/// The model is solved well when what is left is at most this part of what was won.
const SHARE: f64 = 0.1;
/// d counts as no less than this part of its norm where it is divided by.
const TINY: f64 = 1e-9;
/// p = 1: so many rounds of adding kernels, so many at a time; and weights at θ_k are kept if they are no more than this.
const MOST_ROUNDS: usize = 20;
const ADDED: usize = 200;
const MOST_KEPT: usize = 1000;
/// Numbers that a thread takes at a time.
const CHUNK: usize = 4096;

/// The model of one task.
#[derive(Debug)]
pub(super) struct Wide<'a> {
    theta: &'a [f64],
    sensitivities: &'a [f64],
    span: Span,
    /// F, one number for each node.
    factor: Vec<f64>,
    p: f64,
    radius: f64,
    /// Fθ_k
    here: Vec<f64>,
}

/// What D is made of at some z.
#[derive(Debug)]
struct Point {
    z: Vec<f64>,
    descent: Vec<f64>,
    /// ‖d⁺‖_q
    norm: f64,
    /// ∇σ(d)
    theta: Vec<f64>,
    /// Fδ
    along: Vec<f64>,
    dual: f64,
}

impl Point {
    /// How far the model's value at θ can be above its minimum.
    fn gap(&self) -> f64 {
        let pairs = self.along.iter().zip(&self.z);
        0.5 * pairs.map(|(w, z)| (w - z).powi(2)).sum::<f64>()
    }
}

impl<'a> Wide<'a> {
    /// Of one task with a ball of weights; none otherwise.
    pub(super) fn new(
        at: &'a Known,
        curvature: &[Curvature],
        constraints: &[Constraint],
    ) -> Option<Self> {
        let [only] = curvature else { return None };
        let (p, radius) = match constraints {
            [Constraint::MixedNorm { p, radius, .. } | Constraint::RowNorm { p, radius }] => {
                (*p, *radius)
            }
            _ => return None,
        };
        let (span, factor) = only.span.as_ref()?.coarser(&only.factor, MODEL_ERROR);
        let mut wide = Self {
            theta: at.theta.row(0),
            sensitivities: at.sensitivities.row(0),
            span,
            factor,
            p,
            radius,
            here: Vec::new(),
        };
        wide.here = wide.image(wide.theta);
        Some(wide)
    }

    /// θ at the model's minimum, to an absolute accuracy, and to a part of the decrease that it promises unless that is below `least`.
    pub(super) fn minimum(&self, accuracy: f64, least: f64) -> Grid {
        let theta = if self.p == 1.0 {
            self.sparse_minimum(accuracy, least)
        } else {
            self.smooth_minimum(accuracy, least)
        };
        Grid::from_values(1, theta.len(), theta)
    }

    /// Fθ
    fn image(&self, theta: &[f64]) -> Vec<f64> {
        let nodes = self.span.gather(theta);
        let rows = self.factor.chunks_exact(nodes.len().max(1));
        rows.map(|row| dot(row, &nodes)).collect()
    }

    /// s − F'z
    fn descent(&self, z: &[f64]) -> Vec<f64> {
        let mut nodes = vec![0.0; self.span.nodes()];
        let rows = self.factor.chunks_exact(nodes.len().max(1));
        for (value, row) in z.iter().zip(rows) {
            axpy(*value, row, &mut nodes);
        }
        let mut descent = self.span.spread(&nodes);
        for (value, s) in descent.iter_mut().zip(self.sensitivities) {
            *value = s - *value;
        }
        descent
    }

    /// ‖d⁺‖_q, and ∇σ(d) = radius · (d⁺/‖d⁺‖_q)^{q − 1}.
    fn support(&self, descent: &[f64]) -> (f64, Vec<f64>) {
        let largest = descent.iter().fold(0.0_f64, |a, &b| a.max(b));
        let mut theta = vec![0.0; descent.len()];
        if largest <= 0.0 {
            return (0.0, theta);
        }
        let power = (self.p - 1.0).recip();
        let chunks = theta.par_chunks_mut(CHUNK).zip(descent.par_chunks(CHUNK));
        let sums: Vec<f64> = chunks
            .map(|(theta, descent)| {
                let mut sum = 0.0;
                for (out, d) in theta.iter_mut().zip(descent) {
                    let share = d.max(0.0) / largest;
                    *out = if power == 1.0 {
                        share
                    } else {
                        share.powf(power)
                    };
                    sum += *out * share;
                }
                sum
            })
            .collect();
        let sum: f64 = sums.iter().sum();
        // q = 1 + 1/(p − 1), and Σ (d/largest)^q is what was added up.
        let norm = largest * sum.powf((1.0 + power).recip());
        let scale = self.radius * (largest / norm).powf(power);
        for value in &mut theta {
            *value *= scale;
        }
        (norm, theta)
    }

    fn point(&self, z: Vec<f64>) -> Point {
        let descent = self.descent(&z);
        let (norm, theta) = self.support(&descent);
        let mut along = self.image(&theta);
        axpy(-1.0, &self.here, &mut along);
        let dual = -0.5 * dot(&z, &z) + dot(&descent, self.theta) - self.radius * norm;
        Point {
            z,
            descent,
            norm,
            theta,
            along,
            dual,
        }
    }

    /// I + F ∇²σ F', ∇²σ = (q − 1) (diag(θ/d) − θθ'/(radius · ‖d‖_q)).
    fn matrix(&self, at: &Point) -> Vec<f64> {
        let power = (self.p - 1.0).recip();
        let floor = TINY * at.norm;
        let pairs = at.theta.iter().zip(&at.descent);
        let scale: Vec<f64> = pairs.map(|(t, d)| power * t / d.max(floor)).collect();
        let mut matrix = self.span.scaled_gram(&self.factor, &scale);
        let rank = self.here.len();
        let image: Vec<f64> = at
            .along
            .iter()
            .zip(&self.here)
            .map(|(a, b)| a + b)
            .collect();
        let factor = power / (self.radius * at.norm);
        for (i, row) in matrix.chunks_exact_mut(rank).enumerate() {
            axpy(-factor * image[i], &image, row);
            row[i] += 1.0;
        }
        matrix
    }

    /// p > 1: Newton's method on D.
    fn smooth_minimum(&self, accuracy: f64, least: f64) -> Vec<f64> {
        let rank = self.here.len();
        let mut at = self.point(vec![0.0; rank]);
        for _ in 0..MOST_STEPS {
            let gap = at.gap();
            let value = at.dual + gap;
            if gap <= accuracy && gap <= least.max(-SHARE * value) || at.norm <= 0.0 {
                break;
            }
            let slope: Vec<f64> = at.along.iter().zip(&at.z).map(|(w, z)| w - z).collect();
            let Some(factor) = Cholesky::new(&self.matrix(&at), rank) else {
                break;
            };
            let mut step = slope.clone();
            factor.solve(&mut step, 1);
            let promised = dot(&slope, &step);
            let tried = (0..MOST_HALVINGS).find_map(|halvings| {
                let length = 0.5_f64.powf(halvings as f64);
                let mut z = at.z.clone();
                axpy(length, &step, &mut z);
                let next = self.point(z);
                (next.dual >= at.dual + SUFFICIENT * length * promised).then_some(next)
            });
            match tried {
                Some(next) => at = next,
                None => break,
            }
        }
        at.theta
    }

    /// p = 1: on a few kernels, those that would lower the model most added in turn.
    fn sparse_minimum(&self, accuracy: f64, least: f64) -> Vec<f64> {
        let order = self.span.in_order();
        let mut known: BTreeSet<usize> = BTreeSet::new();
        let positive = || (0..self.theta.len()).filter(|&m| self.theta[m] > 0.0);
        if positive().count() <= MOST_KEPT {
            known.extend(positive());
        }
        known.extend(peaks(&order, self.sensitivities, 0.0));
        let mut theta = self.theta.to_vec();
        for _ in 0..MOST_ROUNDS {
            let kernels: Vec<usize> = known.iter().copied().collect();
            let Some(weights) = self.restricted_minimum(&kernels, accuracy, least) else {
                break;
            };
            theta.fill(0.0);
            for (&kernel, weight) in kernels.iter().zip(weights) {
                theta[kernel] = weight;
            }
            let mut z = self.image(&theta);
            axpy(-1.0, &self.here, &mut z);
            let descent = self.descent(&z);
            let level = dot(&descent, &theta) / self.radius;
            let best = descent.iter().fold(0.0_f64, |a, &b| a.max(b));
            let count = known.len();
            known.extend(peaks(&order, &descent, level));
            if self.radius * (best - level) <= accuracy || known.len() == count {
                break;
            }
        }
        theta
    }

    /// The weights of these kernels, all others zero, where the model is least.
    fn restricted_minimum(&self, kernels: &[usize], accuracy: f64, least: f64) -> Option<Vec<f64>> {
        let count = kernels.len();
        let factor = self.span.columns(&self.factor, kernels);
        // About θ = 0: −⟨s + F'Fθ_k, θ⟩ + ½‖Fθ‖².
        let mut slope: Vec<f64> = kernels.iter().map(|&m| self.sensitivities[m]).collect();
        for (value, row) in self.here.iter().zip(factor.chunks_exact(count)) {
            axpy(*value, row, &mut slope);
        }
        let shape = Shape {
            tasks: 1,
            kernels: count,
        };
        let sharing = SharingSpec::lp(self.p, self.radius).build(shape).ok()?;
        let curvature = [Curvature {
            rank: self.here.len(),
            factor,
            span: None,
        }];
        let model = Model {
            theta: &Grid::zeros(1, count),
            sensitivities: &Grid::from_values(1, count, slope),
            curvature: &curvature,
            damping: None,
            cuts: &[Vec::new()],
            sharing: &sharing,
        };
        let found = model.minimise(&sharing.constraints()?, 0.5 * accuracy, least);
        Some(sharing.theta(&found.parts).values().to_vec())
    }
}

/// Kernels with a higher value than their neighbours and than `level`, the highest of them.
fn peaks(order: &[Vec<usize>], values: &[f64], level: f64) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    for family in order {
        for (place, &kernel) in family.iter().enumerate() {
            let before = place.checked_sub(1).map(|place| values[family[place]]);
            let after = family.get(place + 1).map(|&next| values[next]);
            let own = values[kernel];
            let is_peak = before.is_none_or(|b| own >= b) && after.is_none_or(|a| own > a);
            if own > level && is_peak {
                found.push(kernel);
            }
        }
    }
    found.sort_by(|&a, &b| values[b].total_cmp(&values[a]).then(a.cmp(&b)));
    found.truncate(ADDED);
    found
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::engine::Evaluation;
    use crate::random::Random;
    use crate::span::SpanBuilder;

    const KERNELS: usize = 300;

    /// F of rank 5 that is smooth along a family, and one kernel beside it.
    fn curvature() -> Curvature {
        let mut builder = SpanBuilder::default();
        let gamma = |i: usize| 2.0_f64.powf(8.0 * i as f64 / KERNELS as f64 - 4.0);
        let gammas: Vec<f64> = (0..KERNELS).map(gamma).collect();
        let nodes = builder.add_family((0..KERNELS).collect(), &gammas, 1e-13);
        builder.add_single(KERNELS);
        let mut factor = Vec::new();
        for row in 0..5 {
            let distance = 0.2 * 3.0_f64.powf(f64::from(row));
            let sign = if row % 2 == 0 { 1.0 } else { -0.6 };
            factor.extend(nodes.iter().map(|gamma| sign * (-gamma * distance).exp()));
            factor.push(0.3 * sign);
        }
        Curvature {
            rank: 5,
            factor,
            span: Some(Arc::new(builder.finish(1e-13))),
        }
    }

    #[test]
    fn the_minimum_is_that_of_the_interior_point_method() {
        let mut random = Random::new(11);
        let curvature = [curvature()];
        let dense = [curvature[0].by_kernel()];
        let shape = Shape {
            tasks: 1,
            kernels: KERNELS + 1,
        };
        for p in [1.0, 1.05, 1.33, 2.0, 4.0] {
            let sharing = SharingSpec::lp(p, 1.5).build(shape).unwrap();
            let theta = sharing.theta(&sharing.start());
            let mut evaluation = Evaluation::zeros(1, 1, KERNELS + 1);
            for (m, s) in evaluation.sensitivities.values_mut().iter_mut().enumerate() {
                *s = 0.5 + (m as f64 / 40.0).sin().powi(2) + 0.01 * random.uniform();
            }
            let here = Known::new(&theta, &evaluation);
            let constraints = sharing.constraints().unwrap();
            let model = Model {
                theta: &here.theta,
                sensitivities: &here.sensitivities,
                curvature: &dense,
                damping: None,
                cuts: &[Vec::new()],
                sharing: &sharing,
            };
            let found = model.minimise(&constraints, 1e-8, 1e-8);
            let wide = Wide::new(&here, &curvature, &constraints).unwrap();
            let minimum = wide.minimum(1e-8, 1e-8);
            assert!(sharing.violation(&crate::sharing::Parts(vec![minimum.clone()])) < 1e-9);
            let value = model.value(&minimum);
            // F is interpolated, and the model's value is of the order of one.
            assert!(found.value < -1e-2, "{p}: {}", found.value);
            let off = 1e-3 * found.value.abs();
            assert!(
                (value - found.value).abs() < off,
                "{p}: {value} and {}",
                found.value
            );
        }
    }

    #[test]
    fn peaks_are_higher_than_their_neighbours_and_the_highest_come_first() {
        let order = [vec![0, 1, 2, 3], vec![5, 4], vec![6]];
        let values = [1.0, 3.0, 2.0, 5.0, 4.0, 4.0, 3.0];
        // Of equal neighbours the last is one.
        assert_eq!(peaks(&order, &values, 0.0), [3, 4, 1, 6]);
        assert_eq!(peaks(&order, &values, 3.0), [3, 4]);
        let falling: Vec<usize> = (0..=2 * ADDED).collect();
        let teeth: Vec<f64> = falling
            .iter()
            .map(|&k| (k % 2) as f64 * (1.0 + k as f64))
            .collect();
        let found = peaks(&[falling], &teeth, 0.5);
        let expected: Vec<usize> = (0..ADDED).map(|k| 2 * ADDED - 1 - 2 * k).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_gap_of_a_point_is_half_the_square_of_what_its_image_is_off() {
        let point = Point {
            z: vec![1.0, -2.0],
            descent: Vec::new(),
            norm: 0.0,
            theta: Vec::new(),
            along: vec![4.0, 2.0],
            dual: 0.0,
        };
        assert_eq!(point.gap(), 0.5 * (9.0 + 16.0));
    }

    /// D's second derivative by differences of its first, w − z.
    #[test]
    fn the_matrix_is_the_second_derivative_of_the_dual() {
        let mut random = Random::new(12);
        let curvature = [curvature()];
        let shape = Shape {
            tasks: 1,
            kernels: KERNELS + 1,
        };
        for p in [1.33, 2.0, 4.0] {
            let sharing = SharingSpec::lp(p, 1.5).build(shape).unwrap();
            let mut evaluation = Evaluation::zeros(1, 1, KERNELS + 1);
            for s in evaluation.sensitivities.values_mut() {
                *s = 0.5 + random.uniform();
            }
            let here = Known::new(&sharing.theta(&sharing.start()), &evaluation);
            let wide = Wide::new(&here, &curvature, &sharing.constraints().unwrap()).unwrap();
            let rank = wide.here.len();
            let z: Vec<f64> = (0..rank).map(|_| 0.01 * random.uniform()).collect();
            let matrix = wide.matrix(&wide.point(z.clone()));
            let slope = |i: usize, change: f64| {
                let mut z = z.clone();
                z[i] += change;
                let at = wide.point(z);
                at.along
                    .iter()
                    .zip(&at.z)
                    .map(|(w, z)| w - z)
                    .collect::<Vec<f64>>()
            };
            for i in 0..rank {
                let (above, below) = (slope(i, 1e-5), slope(i, -1e-5));
                for j in 0..rank {
                    let expected = (below[j] - above[j]) / 2e-5;
                    let found = matrix[i * rank + j];
                    assert!(
                        (found - expected).abs() <= 1e-5 * (1.0 + expected.abs()),
                        "{p}: {found} {expected}"
                    );
                }
            }
        }
    }
}
