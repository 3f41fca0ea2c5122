//! What other evaluations say about J where its quadratic model at θ_k says too little.
//!
//! J_t is a maximum of functions linear in θᵗ, one for each α. Where most dual variables are at their bounds it hardly bends, then all at once as they
//! come off; at θᵗ = 0 it has a corner, since many α are optimal there. H at one θ tells nothing of that. But each evaluation, at some θ_j, leaves a
//! linear function that J_t is nowhere below, and for machines with κα in Ω for 0 ≤ κ ≤ 1 further ones. Where one is above the model q_t at its θ_j, the
//! model becomes q_t + max(0, max_j r_j), r_j = b_j + a_j'δ. For a quadratic J all r_j vanish.

use crate::engine::{Curvature, Evaluation, Mixture};
use crate::grid::{Grid, dot};
use crate::linalg::axpy;
use crate::sharing::Sharing;

/// r(δ) = b + a'δ
#[derive(Debug, Clone)]
pub(super) struct Cut {
    pub(super) slope: Vec<f64>,
    offset: f64,
    /// The linear function it comes from: J_t(θ) ≥ constant − sensitivities'θ.
    constant: f64,
    sensitivities: Vec<f64>,
    /// What rounding can do to it, and the α that it is of: κ times that of an evaluation.
    noise: f64,
    source: (usize, f64),
}

impl Cut {
    pub(super) fn value(&self, delta: &[f64]) -> f64 {
        self.offset + dot(&self.slope, delta)
    }
}

/// What an evaluation leaves: J_t(θ) ≥ value_t − s_t'(θ − θ_j).
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) number: usize,
    /// κ of each task: 1 but for [`Known::scaled`].
    kappas: Vec<f64>,
    pub(super) theta: Grid,
    pub(super) values: Vec<f64>,
    pub(super) sensitivities: Grid,
    gaps: Vec<f64>,
    noises: Vec<f64>,
    scales: Vec<bool>,
}

/// κα is looked at for these κ.
const SCALES: [f64; 5] = [0.8, 0.6, 0.4, 0.25, 0.1];
/// No more evaluations than this are remembered.
const REMEMBERED: usize = 12;
/// With more kernels than this nothing is: so many directions are never all flat, and the model with cuts is dear to solve, if it can be.
const MOST_KERNELS: usize = 512;
/// At θ_k a cut stays below J, by one less this part of what the linear function it comes from does: the model must not have a kink
/// there that J has not.
const BELOW: f64 = 0.9;

/// J_t at another θ, and what the model here says.
#[derive(Debug)]
struct Comparison {
    delta: Vec<f64>,
    /// Hδ
    pull: Vec<f64>,
    /// ½ δ'Hδ
    bend: f64,
    /// J_t there, less J_t here.
    rise: f64,
    /// J_t there, less what the model says.
    excess: f64,
}

impl Known {
    pub(super) fn new(theta: &Grid, evaluation: &Evaluation) -> Self {
        Self {
            number: evaluation.number,
            kappas: vec![1.0; evaluation.values.len()],
            theta: theta.clone(),
            values: evaluation.values.clone(),
            sensitivities: evaluation.sensitivities.clone(),
            gaps: evaluation.gaps.clone(),
            noises: evaluation.noises.clone(),
            scales: evaluation.scales.clone(),
        }
    }

    /// The part of task t's ḡ without θ.
    fn constant(&self, task: usize) -> f64 {
        self.values[task] + dot(self.sensitivities.row(task), self.theta.row(task))
    }

    /// What κα says, at the θ where no other κ says more: J_t(θ) ≥ κc − κ² s'θ for 0 ≤ κ ≤ 1, c the part without θ.
    fn scaled(&self, kappa: f64) -> Self {
        let mut known = self.clone();
        for task in 0..self.values.len() {
            let constant = self.constant(task);
            let along = constant - self.values[task];
            if !(self.scales[task] && along > 0.0) {
                continue;
            }
            known.kappas[task] = kappa;
            let longer = constant / (2.0 * kappa * along);
            known.values[task] = kappa * constant - kappa * kappa * longer * along;
            for weight in known.theta.row_mut(task) {
                *weight *= longer;
            }
            for sensitivity in known.sensitivities.row_mut(task) {
                *sensitivity *= kappa * kappa;
            }
        }
        known
    }

    fn compare(&self, other: &Self, curvature: &[Curvature], task: usize) -> Comparison {
        let pairs = other.theta.row(task).iter().zip(self.theta.row(task));
        let delta: Vec<f64> = pairs.map(|(there, here)| there - here).collect();
        let mut bend = 0.0;
        let mut pull = vec![0.0; delta.len()];
        for row in curvature[task].factor.chunks_exact(delta.len()) {
            let along = dot(row, &delta);
            bend += 0.5 * along * along;
            axpy(along, row, &mut pull);
        }
        let rise = other.values[task] - self.values[task];
        let excess = rise + dot(self.sensitivities.row(task), &delta) - bend;
        Comparison {
            delta,
            pull,
            bend,
            rise,
            excess,
        }
    }

    /// For each task the share of the curvature on the diagonal `bends` with which the model here would have foretold J there. So many times the
    /// bend of the model is not missed where `forgiven` says so.
    pub(super) fn missing(
        &self,
        other: &Self,
        curvature: &[Curvature],
        bends: &Grid,
        forgiven: &[f64],
    ) -> Vec<f64> {
        (0..self.values.len())
            .map(|task| {
                let there = self.compare(other, curvature, task);
                let squares = bends.row(task).iter().zip(&there.delta);
                let full: f64 = squares.map(|(bend, d)| 0.5 * bend * d * d).sum();
                let excess = there.excess - self.gaps[task] - forgiven[task] * there.bend;
                if full > 0.0 && excess > 0.0 {
                    excess / full
                } else {
                    0.0
                }
            })
            .collect()
    }

    /// For each task whether J there is at most what the model here says.
    pub(super) fn foretells(&self, other: &Self, curvature: &[Curvature]) -> Vec<bool> {
        (0..self.values.len())
            .map(|task| self.compare(other, curvature, task).excess <= self.gaps[task])
            .collect()
    }

    /// The linear function that J_t is nowhere below, as a cut of this slope and offset.
    fn as_cut(&self, task: usize, slope: Vec<f64>, offset: f64) -> Cut {
        Cut {
            slope,
            offset,
            constant: self.constant(task),
            sensitivities: self.sensitivities.row(task).to_vec(),
            noise: self.noises[task],
            source: (self.number, self.kappas[task]),
        }
    }

    /// The cut that another evaluation makes into the model here; none where the model is above it there anyway.
    fn cut(&self, other: &Self, curvature: &[Curvature], task: usize) -> Option<(Vec<f64>, f64)> {
        let there = self.compare(other, curvature, task);
        if there.excess <= 2.0 * self.gaps[task] + 1e-12 * self.values[task].abs() {
            return None;
        }
        let theirs = other.sensitivities.row(task);
        let below = (-there.rise - dot(theirs, &there.delta)).max(0.0);
        // r = (linear function of θ_j) − (that of θ_k) − share · (that of ½ δ'Hδ at θ_j)
        let share = if BELOW * below < there.bend {
            BELOW * below / there.bend
        } else {
            1.0
        };
        let pairs = self.sensitivities.row(task).iter().zip(theirs);
        let mut slope: Vec<f64> = pairs.map(|(here, there)| here - there).collect();
        axpy(-share, &there.pull, &mut slope);
        Some((slope, (share * there.bend - below).min(0.0)))
    }
}

/// What the last evaluations say.
#[derive(Debug)]
pub(super) struct History {
    evaluations: Vec<Known>,
    is_kept: bool,
}

impl History {
    pub(super) fn new(kernels: usize) -> Self {
        Self {
            evaluations: Vec::new(),
            is_kept: kernels <= MOST_KERNELS,
        }
    }

    /// Whether anything is remembered at all.
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// The evaluations that are remembered.
    pub(super) fn evaluations(&self) -> impl Iterator<Item = usize> + '_ {
        self.evaluations.iter().map(|known| known.number)
    }

    pub(super) fn add(&mut self, known: Known) {
        if !self.is_kept {
            return;
        }
        if self.evaluations.len() == REMEMBERED {
            self.evaluations.remove(0);
        }
        self.evaluations.push(known);
    }

    /// The cuts of each task around one evaluation.
    pub(super) fn cuts(&self, at: &Known, curvature: &[Curvature]) -> Vec<Vec<Cut>> {
        if !self.is_kept {
            return vec![Vec::new(); at.values.len()];
        }
        let scaled: Vec<Known> = SCALES.iter().map(|&kappa| at.scaled(kappa)).collect();
        (0..at.values.len())
            .map(|task| {
                self.evaluations
                    .iter()
                    .chain(&scaled)
                    .filter_map(|other| {
                        let (slope, offset) = at.cut(other, curvature, task)?;
                        Some(other.as_cut(task, slope, offset))
                    })
                    .collect()
            })
            .collect()
    }

    /// The linear functions themselves, as cuts into that of one evaluation: with these and without curvature the model is nowhere above J, and its
    /// minimum a lower bound.
    pub(super) fn lines(&self, at: &Known) -> Vec<Vec<Cut>> {
        (0..at.values.len())
            .map(|task| {
                let s = at.sensitivities.row(task);
                let lines = self.evaluations.iter().map(|other| {
                    let theirs = other.sensitivities.row(task);
                    let there = other.constant(task) - dot(theirs, at.theta.row(task));
                    let pairs = s.iter().zip(theirs);
                    let slope = pairs.map(|(here, there)| here - there).collect();
                    other.as_cut(task, slope, there - at.values[task])
                });
                lines.collect()
            })
            .collect()
    }
}

/// A lower bound on the least J, and for each task the mixture of α that proves it.
#[derive(Debug, Clone)]
pub(super) struct Proof {
    pub(super) bound: f64,
    pub(super) witness: Vec<Mixture>,
}

impl Proof {
    /// D of one evaluation.
    pub(super) fn of(theta: &Grid, evaluation: &Evaluation, sharing: &Sharing) -> Self {
        let (_, support) = sharing.maximise(&evaluation.sensitivities);
        Self {
            bound: evaluation.constant(theta) - support - evaluation.noise(),
            witness: vec![vec![(evaluation.number, 1.0)]; evaluation.values.len()],
        }
    }

    /// D of the evaluation at θ_k mixed with the cuts in these proportions. At a corner of J no single α gives a good bound.
    pub(super) fn mixed(
        at: &Known,
        cuts: &[Vec<Cut>],
        weights: &[Vec<f64>],
        sharing: &Sharing,
    ) -> Self {
        let mut mixed = at.sensitivities.clone();
        let mut constant = 0.0;
        let mut witness = Vec::with_capacity(cuts.len());
        for (task, cuts) in cuts.iter().enumerate() {
            // Without cuts there are no weights.
            let weights = weights.get(task).map_or(&[][..], |weights| weights);
            let left = 1.0 - weights.iter().sum::<f64>();
            constant += left * (at.constant(task) - at.noises[task]);
            let mut mixture = vec![(at.number, left)];
            let out = mixed.row_mut(task);
            for value in out.iter_mut() {
                *value *= left;
            }
            for (cut, &weight) in cuts.iter().zip(weights) {
                constant += weight * (cut.constant - cut.noise);
                axpy(weight, &cut.sensitivities, out);
                let (number, kappa) = cut.source;
                mixture.push((number, weight * kappa));
            }
            witness.push(mixture);
        }
        Self {
            bound: constant - sharing.maximise(&mixed).1,
            witness,
        }
    }

    /// The better one.
    pub(super) fn or(self, other: Self) -> Self {
        if other.bound > self.bound {
            other
        } else {
            self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Shape;
    use crate::random::Random;
    use crate::sharing::SharingSpec;

    const SHAPE: Shape = Shape {
        tasks: 2,
        kernels: 3,
    };

    /// For each task a few α, each with its part without θ and its sensitivities: J_t(θ) = max over them and over 0 ≤ κ ≤ 1 of κc − κ² s'θ.
    struct Machine(Vec<Vec<(f64, Vec<f64>)>>);

    /// max over κ of κc − κ² a.
    fn best_scale(c: f64, a: f64) -> f64 {
        if a > 0.0 { (0.5 * c / a).min(1.0) } else { 1.0 }
    }

    impl Machine {
        fn new(random: &mut Random) -> Self {
            let mut alpha = || {
                let s = (0..SHAPE.kernels).map(|_| 4.0 * random.uniform()).collect();
                (1.0 + random.uniform(), s)
            };
            Self(
                (0..SHAPE.tasks)
                    .map(|_| (0..4).map(|_| alpha()).collect())
                    .collect(),
            )
        }

        fn evaluate(&self, theta: &Grid) -> Evaluation {
            let mut values = Vec::new();
            let mut sensitivities = Grid::zeros(SHAPE.tasks, SHAPE.kernels);
            for (task, family) in self.0.iter().enumerate() {
                let mut best = f64::NEG_INFINITY;
                for (c, s) in family {
                    let along = dot(s, theta.row(task));
                    let kappa = best_scale(*c, along);
                    let value = kappa * c - kappa * kappa * along;
                    if value > best {
                        best = value;
                        for (out, s) in sensitivities.row_mut(task).iter_mut().zip(s) {
                            *out = kappa * kappa * s;
                        }
                    }
                }
                values.push(best);
            }
            Evaluation {
                number: 0,
                gaps: vec![0.0; SHAPE.tasks],
                values,
                sensitivities,
                curvature: None,
                scales: vec![true; SHAPE.tasks],
                inner_iterations: 0,
                noises: vec![0.0; SHAPE.tasks],
                forgiven: vec![0.0; SHAPE.tasks],
            }
        }

        fn known(&self, theta: &Grid) -> Known {
            Known::new(theta, &self.evaluate(theta))
        }
    }

    fn anywhere(random: &mut Random) -> Grid {
        let values = (0..SHAPE.tasks * SHAPE.kernels).map(|_| random.uniform());
        Grid::from_values(SHAPE.tasks, SHAPE.kernels, values.collect())
    }

    #[test]
    fn a_scaled_alpha_is_below_j_and_the_best_of_its_kind_where_it_says() {
        let mut random = Random::new(3);
        let machine = Machine::new(&mut random);
        let known = machine.known(&anywhere(&mut random));
        for kappa in SCALES {
            let scaled = known.scaled(kappa);
            for task in 0..SHAPE.tasks {
                let (c, s) = (known.constant(task), known.sensitivities.row(task));
                let along = dot(s, scaled.theta.row(task));
                let best = best_scale(c, along);
                assert!((scaled.values[task] - (best * c - best * best * along)).abs() < 1e-12);
                for _ in 0..50 {
                    let theta = anywhere(&mut random);
                    let line = scaled.constant(task)
                        - dot(scaled.sensitivities.row(task), theta.row(task));
                    assert!(line <= machine.evaluate(&theta).values[task] + 1e-12);
                }
            }
        }
    }

    #[test]
    fn mixtures_bound_j_from_below() {
        let mut random = Random::new(4);
        let machine = Machine::new(&mut random);
        let sharing = SharingSpec::Group {
            p: 1.0,
            q: 1.0,
            radius: 1.0,
        };
        let sharing = sharing.build(SHAPE).unwrap();
        let at = machine.known(&anywhere(&mut random));
        let mut memory = History::new(SHAPE.kernels);
        for _ in 0..REMEMBERED + 2 {
            memory.add(machine.known(&anywhere(&mut random)));
        }
        let flat = vec![Curvature::none(); SHAPE.tasks];
        let mut seen = 0;
        for cuts in [memory.lines(&at), memory.cuts(&at, &flat)] {
            seen += cuts.iter().map(Vec::len).sum::<usize>();
            let mut highest = f64::NEG_INFINITY;
            for _ in 0..20 {
                let weights: Vec<Vec<f64>> = cuts
                    .iter()
                    .map(|cuts| {
                        let some: Vec<f64> = cuts.iter().map(|_| random.uniform()).collect();
                        let total = some.iter().sum::<f64>() / random.uniform();
                        some.iter().map(|weight| weight / total).collect()
                    })
                    .collect();
                let proof = Proof::mixed(&at, &cuts, &weights, &sharing);
                highest = highest.max(proof.bound);
            }
            for _ in 0..200 {
                // In the ball Σ θ ≤ 1 of all tasks and kernels.
                let mut theta = anywhere(&mut random);
                let sum: f64 = theta.values().iter().sum();
                for task in 0..SHAPE.tasks {
                    for weight in theta.row_mut(task) {
                        *weight /= sum;
                    }
                }
                let value: f64 = machine.evaluate(&theta).values.iter().sum();
                assert!(highest <= value + 1e-12, "{highest} {value}");
            }
        }
        assert!(seen > 2 * SHAPE.tasks);
    }

    #[test]
    fn only_what_the_model_does_not_know_cuts() {
        let mut random = Random::new(5);
        let curvature = vec![
            Curvature {
                rank: 1,
                factor: vec![0.5, 1.0, 2.0],
            };
            SHAPE.tasks
        ];
        let here = Machine::new(&mut random).known(&anywhere(&mut random));
        let theta = anywhere(&mut random);
        // J as the model says.
        let mut there = here.clone();
        there.theta = theta;
        for task in 0..SHAPE.tasks {
            let found = here.compare(&there, &curvature, task);
            there.values[task] -= found.excess;
            for (s, pull) in there.sensitivities.row_mut(task).iter_mut().zip(found.pull) {
                *s -= pull;
            }
            assert!(here.cut(&there, &curvature, task).is_none());
            // J above it, though convex still.
            let more = 0.3 * found.bend;
            there.values[task] += more;
            let delta = here.compare(&there, &curvature, task).delta;
            let (slope, offset) = here.cut(&there, &curvature, task).unwrap();
            assert!(offset <= 0.0);
            assert!(more > 0.0 && offset + dot(&slope, &delta) >= more - 1e-12);
        }
    }
}
