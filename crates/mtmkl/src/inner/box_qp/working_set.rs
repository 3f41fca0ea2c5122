//! β where no n × n matrix can be had: a part A of the samples is solved, the others stay where they are.
//!
//! With Kβ known on all samples, the programme restricted to A has the linear term q_A − K_AB β_B and the sum s − Σ_B β, B being the others:
//! one of ours on |A| samples. The slopes q − Kβ on all samples then say what the point is worth for the whole programme, and who is to
//! be in A next: free samples, those whose slope says that they should move, and those that nearly should. ḡ never falls.

use super::super::rounding::{linear_term, noise, objective, target};
use super::super::{Answer, Curvature, Effort, Here, Point, Progress, Solved};
use super::free_set::{free_variables, is_free};
use super::{BoxQp, KeptFactor, Memory, Qp, best_offset, gap, multiplier, policy};
use crate::gram::{CombinedRows, TaskGrams, can_be_rounded, square};
use crate::grid::dot;
use crate::machine::{Conjugate, Dual, Variables};
use crate::view::View;

/// A part of all samples that should move is solved until its gap is this share of what is small enough for all: small steps within it cost
/// less than one more sweep (letter, 20,000 rows: 8.8 s, and 14.1 s to a share of the gap that there was).
const SHARE: f64 = 0.1;
/// Where only some of them have room, to this share of the gap that the part has by itself: the next part moves them anyway, but not to move at
/// all would be the end (letter within 200 MB: 46 s, and 95 s and 141 s to .3 and .1; 58 s to .8).
const CUT: f64 = 0.5;
/// Samples beside those that should move, as a share of them: those that are the nearest to it. (A tenth and a fifth take as long on letter, and a
/// tenth less memory.)
const NEAR: f64 = 0.1;
/// One more part is solved: Kβ is to be made for what changed. Or there is no need to, and β is the answer.
pub(in crate::inner) fn round(
    solver: &mut BoxQp<'_>,
    point: &mut Point,
    grams: TaskGrams<'_>,
    theta: &[f64],
    effort: &Effort<'_>,
    progress: &mut Progress,
) -> Option<Solved> {
    let dual = solver.dual;
    let variables = dual.variables;
    let diagonal = grams.combined_diagonal(theta);
    let linear = linear_term(dual, &diagonal);
    let product = point.known_product(variables, theta);
    let qp = solver.qp(&linear);
    let now = dual.scale * gap(&qp, &point.beta, &product);
    let enough = target(dual, effort, &linear, &point.beta, &product, &diagonal);
    let value = dual.scale * objective(&linear, &point.beta, &product);
    let is_done = progress.is_done(value, now, enough) || effort.stop.now();
    let can_be_rounded = !progress.is_idle() && can_be_rounded(&diagonal);
    let (part, is_whole) = if is_done {
        (Vec::new(), true)
    } else {
        let forced = solver.memory.samples();
        let most = most_samples(effort.allowance.working_set, can_be_rounded);
        chosen(&qp, &point.beta, &product, &forced, most)
    };
    if part.len() > 1 {
        let place = Part {
            samples: &part,
            view: grams.view.then(&View::of(part.as_slice())),
            is_whole,
            is_rounded: can_be_rounded && part.len() > SMALL,
            enough,
        };
        let moved = place.improve(solver, point, &product, grams, theta, effort);
        progress.steps += moved.steps;
        progress.pairs += 0.5 * (part.len() as f64).powi(2);
        if moved.has_moved {
            return None;
        }
    }
    if effort.curvature && !effort.stop.now() {
        keep_factor(solver, point, grams, theta, effort, &linear);
    }
    let moved = point.images.moved();
    let solved = Solved {
        constant: dual.scale * dot(&dual.linear, &point.beta),
        steps: progress.steps,
        noise: dual.scale * moved * noise(variables, &linear, &point.beta, &diagonal),
        errors: point.followed_errors(variables, &diagonal),
        is_delicate: false,
        answer: None,
        linear,
    };
    point.set_product(product, theta);
    Some(solved)
}

/// See [`Inner::unswept`](super::super::Inner::unswept).
pub(in crate::inner) fn unswept(
    solver: &BoxQp<'_>,
    point: &mut Point,
    grams: TaskGrams<'_>,
    theta: &[f64],
    effort: &Effort<'_>,
) -> Solved {
    let dual = solver.dual;
    let variables = dual.variables;
    let diagonal = grams.combined_diagonal(theta);
    let linear = linear_term(dual, &diagonal);
    let (product, errors) = point.product_where_known(variables, theta, &diagonal);
    let hold = best_offset(&solver.qp(&linear), &point.beta, &product, &errors);
    point.offset = hold.offset;
    point.set_product(product, theta);
    Solved {
        constant: dual.scale * dot(&dual.linear, &point.beta),
        steps: 0,
        noise: dual.scale * noise(variables, &linear, &point.beta, &diagonal),
        errors,
        is_delicate: false,
        answer: Some(Answer {
            gap: if effort.concave {
                dual.scale * (hold.gap + hold.noise)
            } else {
                0.0
            },
            // What is not known is no rounding.
            noise: 0.0,
            curvature: effort.curvature.then(Curvature::none),
        }),
        linear,
    }
}

/// The samples to solve for next, in ascending order: those that are forced, free ones, those that should move, and the nearest to it; so
/// many at most, the most worth while first. And whether these are all that should move.
fn chosen(
    qp: &Qp<'_>,
    beta: &[f64],
    product: &[f64],
    forced: &[usize],
    most: usize,
) -> (Vec<usize>, bool) {
    let samples = qp.variables.samples();
    if samples <= most.min(SMALL) {
        return ((0..samples).collect(), true);
    }
    let offset = multiplier(qp, beta, product);
    let mut is_settled = vec![false; samples];
    for &sample in forced {
        is_settled[sample] = true;
    }
    // What a sample adds to the gap, and how far it is from adding to it.
    let mut movable: Vec<(f64, usize)> = Vec::new();
    let mut resting: Vec<(f64, usize)> = Vec::new();
    for sample in 0..samples {
        let (mut worth, mut distance, mut is_movable) = (0.0, f64::INFINITY, is_settled[sample]);
        for v in qp.variables.of_sample(sample) {
            let slope = qp.slope(product, v) - offset;
            let room = if slope > 0.0 {
                qp.upper[v] - beta[v]
            } else {
                beta[v] - qp.lower[v]
            };
            worth += slope.abs() * room;
            is_settled[sample] |= is_free(qp, beta, v);
            is_movable |= room > 0.0 && slope != 0.0 || is_settled[sample];
            if qp.lower[v] < qp.upper[v] {
                distance = slope.abs().min(distance);
            }
        }
        if is_movable {
            movable.push((worth, sample));
        } else if distance.is_finite() {
            resting.push((distance, sample));
        }
    }
    let settled = is_settled.iter().filter(|is_settled| **is_settled).count();
    let most = most.min((GROWTH * settled).max(LEAST_MOST));
    if 2 * settled <= most {
        // A factorisation at hand is worth more than any sample.
        for (worth, _) in movable.iter_mut().filter(|(_, sample)| is_settled[*sample]) {
            *worth = f64::INFINITY;
        }
    }
    let is_whole = movable.len() <= most;
    let mut part: Vec<usize> = if is_whole {
        movable.iter().map(|(_, sample)| *sample).collect()
    } else {
        largest(&mut movable, most / 2);
        let mut part = steepest(qp, beta, product, most - most / 2);
        part.extend(movable[..most / 2].iter().map(|(_, sample)| *sample));
        part.sort_unstable();
        part.dedup();
        part
    };
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of a count"
    )]
    let near = (NEAR * part.len() as f64) as usize;
    let near = near.min(most.saturating_sub(part.len())).min(resting.len());
    if near > 0 {
        for (distance, _) in &mut resting {
            *distance = -*distance;
        }
        largest(&mut resting, near);
        part.extend(resting[..near].iter().map(|(_, sample)| *sample));
    }
    part.sort_unstable();
    part.dedup();
    (part, is_whole)
}

/// Puts so many of the largest first; of equal ones those with the smallest numbers.
fn largest(values: &mut [(f64, usize)], count: usize) {
    if count > 0 && count < values.len() {
        values.select_nth_unstable_by(count - 1, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    }
}

/// So many samples, half of them with the largest slopes of those that can grow, half with the smallest of those that can shrink: the pair that
/// violates optimality most is among them, so that ḡ rises (Joachims 1999; Lin 2001).
fn steepest(qp: &Qp<'_>, beta: &[f64], product: &[f64], count: usize) -> Vec<usize> {
    let (mut growing, mut shrinking) = (Vec::new(), Vec::new());
    for v in 0..beta.len() {
        let (slope, sample) = (qp.slope(product, v), qp.variables.sample_of(v));
        if beta[v] < qp.upper[v] {
            growing.push((slope, sample));
        }
        if beta[v] > qp.lower[v] {
            shrinking.push((-slope, sample));
        }
    }
    let half = |mut values: Vec<(f64, usize)>| {
        let count = values.len().min(count / 2);
        largest(&mut values, count);
        values.into_iter().take(count).map(|(_, sample)| sample)
    };
    half(growing).chain(half(shrinking)).collect()
}

/// So few samples are solved all together, and in double precision.
const SMALL: usize = 2000;

/// Bytes of K_AA for so many samples at most.
pub(in crate::inner) fn bytes_of_part(samples: usize) -> u64 {
    (square(samples) / 2).max(square(samples.min(SMALL)))
}

/// The samples that there is memory for, of those that there would be for in single precision.
fn most_samples(rounded: usize, can_be_rounded: bool) -> usize {
    if can_be_rounded || rounded <= SMALL {
        return rounded;
    }
    // Half of √2.
    (rounded / 10 * 7).max(SMALL)
}
/// The working set is at most so many times what is free: who is to come off a bound is then seen from where the free ones have come to. (Letter,
/// three times: 7.7 s and one more round; four times: 6.8 s; six times: 10 s and half as much memory again.)
const GROWTH: usize = 4;
/// But it may have so many: where most of the support is at its bound and little of it free, they have to go there. (Made set of 40,000 rows, up
/// to 2,000: 57 sweeps; 4,000: 37; 6,000: 28, in as much time.)
const LEAST_MOST: usize = 4000;

/// Some of the samples of a task.
struct Part<'a> {
    /// Ascending.
    samples: &'a [usize],
    /// As rows of the set.
    view: View,
    /// All that should move.
    is_whole: bool,
    /// K_AA is in single precision: half the memory, which the system has to find and clear, and half as much to read for a small step. The linear
    /// term makes the slopes those of all K at the β that there is; what is rounded is their change, and the next round is told the truth.
    is_rounded: bool,
    /// The gap of all samples that is small enough.
    enough: f64,
}

/// What became of a part.
#[derive(Default)]
struct Moved {
    steps: usize,
    has_moved: bool,
}

impl Part<'_> {
    /// By variable, those of these samples.
    fn of(&self, variables: Variables, values: &[f64]) -> Vec<f64> {
        let copies = variables.ranges();
        copies
            .flat_map(|range| self.samples.iter().map(move |&i| values[range.start + i]))
            .collect()
    }

    /// The programme of these samples with this linear term, the others being where they are.
    fn dual(&self, solver: &BoxQp<'_>, point: &Point, linear: Vec<f64>) -> Dual {
        let all = solver.dual.variables;
        Dual {
            scale: solver.dual.scale,
            variables: Variables::new(self.samples.len(), all.copies()),
            linear,
            diagonal: solver.dual.diagonal,
            conjugate: Conjugate::Box {
                lower: self.of(all, solver.lower),
                upper: self.of(all, solver.upper),
                sum: self.of(all, &point.beta).iter().sum(),
            },
        }
    }

    /// How far this part is to be solved from β and Kβ: relative to what it has by itself, which can be much more than all have together, since
    /// the others are a linear term.
    fn effort<'e>(
        &self,
        inner: &BoxQp<'_>,
        rows: &CombinedRows<'_>,
        (beta, product): (&[f64], &[f64]),
        effort: &Effort<'e>,
    ) -> Effort<'e> {
        let linear = linear_term(inner.dual, rows.diagonal());
        let scale = inner.dual.scale;
        let wanted = if self.is_whole {
            SHARE * self.enough
        } else {
            CUT * scale * gap(&inner.qp(&linear), beta, product)
        };
        let size = (scale * objective(&linear, beta, product)).abs();
        Effort {
            accuracy: wanted.max(SHARE * self.enough) / size.max(f64::MIN_POSITIVE),
            size,
            ..*effort
        }
    }

    fn improve(
        &self,
        solver: &mut BoxQp<'_>,
        point: &mut Point,
        product: &[f64],
        grams: TaskGrams<'_>,
        theta: &[f64],
        effort: &Effort<'_>,
    ) -> Moved {
        let all = solver.dual.variables;
        let own = Variables::new(self.samples.len(), all.copies());
        let seen = TaskGrams {
            grams: grams.grams,
            view: &self.view,
        };
        let rows = CombinedRows::new(seen, theta).until(effort.stop);
        let rows = if self.is_rounded {
            rows.rounded(solver.memory.spare.take(), effort.allowance.working_set)
        } else {
            rows
        };
        let beta = self.of(all, &point.beta);
        let by_sample = own.sums(&beta);
        rows.make_together();
        if effort.stop.now() {
            solver.memory.spare = rows.into_memory();
            return Moved::default();
        }
        let inside = rows.product(&by_sample);
        // q_A − K_AB β_B
        let mut linear = self.of(all, &solver.dual.linear);
        for (v, q) in linear.iter_mut().enumerate() {
            let i = own.sample_of(v);
            *q -= product[self.samples[i]] - inside[i];
        }
        let dual = self.dual(solver, point, linear);
        let Conjugate::Box { lower, upper, sum } = &dual.conjugate else {
            return Moved::default();
        };
        let mut place = vec![None; all.samples()];
        for (at, &sample) in self.samples.iter().enumerate() {
            place[sample] = Some(at);
        }
        let mut memory = Memory {
            kept: (solver.memory.kept.take()).and_then(|kept| kept.renamed(all, own, |i| place[i])),
            is_hard: solver.memory.is_hard,
            ..Memory::default()
        };
        let mut inner = BoxQp {
            dual: &dual,
            lower,
            upper,
            sum: *sum,
            memory: &mut memory,
        };
        let effort = self.effort(&inner, &rows, (&beta, &inside), effort);
        let mut local = Point::new(beta.clone(), self.samples.len(), &point.ledger);
        local.set_product(inside, theta);
        let here = Here {
            grams: seen,
            rows: &rows,
            theta,
        };
        let solved = policy::solve(&mut inner, &mut local, here, &effort, false);
        solver.memory.is_hard = memory.is_hard;
        solver.memory.spare = rows.into_memory();
        solver.memory.kept =
            (memory.kept).and_then(|kept| kept.renamed(own, all, |i| self.samples.get(i).copied()));
        Moved {
            steps: solved.steps,
            has_moved: self.put(&mut point.beta, all, &beta, &local.beta),
        }
    }

    /// Moves β of these samples, and says whether any moved.
    fn put(&self, all_beta: &mut [f64], all: Variables, before: &[f64], after: &[f64]) -> bool {
        let count = self.samples.len();
        let moved = before.iter().zip(after).enumerate();
        let mut has_moved = false;
        for (at, (_, new)) in moved.filter(|(_, (old, new))| old != new) {
            let (copy, i) = (at / count, at % count);
            all_beta[copy * all.samples() + self.samples[i]] = *new;
            has_moved = true;
        }
        has_moved
    }
}

/// So many free variables are factored for the curvature at most: |F|³/3 multiply–adds are then less than those of a sweep. (Letter, 7,400 free:
/// 1,000 of them cost a third pass; 1,500, 2,000 and 3,000 do not.)
const CURVED: usize = 2000;
/// Or one in so many, where that is more. (ocr_letters, 24,000 free: three passes with 2,000 of them; two with 3,000, before parts were chosen
/// otherwise.)
const ONE_CURVED_IN: usize = 8;

/// K_FF of the free variables for J's curvature, where the one at hand does not do; of some of them where they are many, each of which stands
/// for others. J bends less where fewer may move, about in proportion, and how far to trust its curvature is seen from J itself.
fn keep_factor(
    solver: &mut BoxQp<'_>,
    point: &Point,
    grams: TaskGrams<'_>,
    theta: &[f64],
    effort: &Effort<'_>,
    linear: &[f64],
) {
    let variables = solver.dual.variables;
    let all = free_variables(&solver.qp(linear), &point.beta);
    let most = (effort.allowance.most_free)
        .min(effort.allowance.working_set)
        .min(CURVED.max(all.len() / ONE_CURVED_IN));
    let free: Vec<usize> = if all.len() > most {
        (0..most).map(|at| all[at * all.len() / most]).collect()
    } else {
        all.clone()
    };
    let is_known = |kept: &KeptFactor| kept.is_of(theta) && kept.is_on(&free, variables);
    if solver.memory.kept.as_ref().is_some_and(is_known) {
        return;
    }
    solver.memory.others = (all.len() - free.len()) as f64 / free.len().max(1) as f64;
    let samples: Vec<usize> = free.iter().map(|&v| variables.sample_of(v)).collect();
    let view = grams.view.then(&View::of(samples.as_slice()));
    let seen = TaskGrams {
        grams: grams.grams,
        view: &view,
    };
    let rows = CombinedRows::new(seen, theta);
    let here = Here {
        grams: seen,
        rows: &rows,
        theta,
    };
    let own = Variables::one_each(samples.len());
    let places = (0..samples.len()).collect();
    let kept = KeptFactor::new(places, own, here, effort, &point.ledger);
    solver.memory.kept = kept.map(|kept| kept.with_members(variables, free));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_come_first_and_of_equal_ones_the_first() {
        let all = [(1.0, 0), (3.0, 1), (3.0, 2), (2.0, 3)];
        for count in 0..=4 {
            let mut values = all;
            largest(&mut values, count);
            let mut first: Vec<usize> = values[..count].iter().map(|(_, place)| *place).collect();
            first.sort_unstable();
            let mut expected = [1, 2, 3, 0][..count].to_vec();
            expected.sort_unstable();
            assert_eq!(first, expected);
        }
    }

    #[test]
    fn the_steepest_are_those_that_can_grow_most_and_shrink_most() {
        let (lower, upper) = ([0.0; 6], [1.0; 6]);
        let qp = Qp {
            variables: Variables::one_each(6),
            linear: &[5.0, 1.0, 4.0, -3.0, 2.0, 0.0],
            lower: &lower,
            upper: &upper,
        };
        // The third could only shrink, and the first only grow.
        let beta = [0.0, 0.0, 1.0, 1.0, 0.5, 0.5];
        assert_eq!(steepest(&qp, &beta, &[0.0; 6], 2), [0, 3]);
        let mut four = steepest(&qp, &beta, &[0.0; 6], 4);
        four.sort_unstable();
        assert_eq!(four, [0, 3, 4, 5]);
        assert!(steepest(&qp, &beta, &[0.0; 6], 1).is_empty());
        // With Kβ that turns the slopes around.
        assert_eq!(
            steepest(&qp, &beta, &[9.0, 0.0, 9.0, -9.0, 0.0, 0.0], 2),
            [4, 2]
        );
    }

    #[test]
    fn double_precision_has_room_for_fewer() {
        for (rounded, double) in [
            (1500, 1500),
            (SMALL, SMALL),
            (SMALL + 1, SMALL),
            (3000, 2100),
            (20_000, 14_000),
        ] {
            assert_eq!(most_samples(rounded, true), rounded);
            assert_eq!(most_samples(rounded, false), double);
        }
        assert_eq!(bytes_of_part(100), square(100));
        assert_eq!(bytes_of_part(SMALL), square(SMALL));
        assert_eq!(bytes_of_part(2100), square(SMALL));
        assert_eq!(bytes_of_part(10_000), square(10_000) / 2);
    }

    /// Samples with bounds 0 and 1 and these slopes, b being 0: as many wish to go up as down.
    fn part(beta: &[f64], slopes: &[f64], forced: &[usize], most: usize) -> (Vec<usize>, bool) {
        let n = beta.len();
        let (lower, upper) = (vec![0.0; n], vec![1.0; n]);
        let qp = Qp {
            variables: Variables::one_each(n),
            linear: slopes,
            lower: &lower,
            upper: &upper,
        };
        chosen(&qp, beta, &vec![0.0; n], forced, most)
    }

    #[test]
    fn a_part_has_what_should_move_what_is_free_and_what_is_nearest_to_it() {
        let n = 60;
        // At rest: at 0 with slopes below, at 1 with slopes above; the nearer to the end of the list, the farther.
        let mut beta: Vec<f64> = (0..n).map(|i| f64::from(u8::from(i % 2 == 1))).collect();
        let mut slopes: Vec<f64> = (0..n)
            .map(|i| (1.0 + i as f64) * if i % 2 == 1 { 1.0 } else { -1.0 })
            .collect();
        // Two free ones that fix b at 0, and ten that should move.
        for i in [10, 31] {
            (beta[i], slopes[i]) = (0.5, 0.0);
        }
        for i in 40..50 {
            slopes[i] = -slopes[i];
        }
        assert_eq!(part(&beta, &slopes, &[], n), ((0..n).collect(), true));
        let (found, is_whole) = part(&beta, &slopes, &[55], 30);
        // 40 to 49, 10, 31, the forced one, and a tenth of these thirteen more: 0.
        let expected: Vec<usize> = [0, 10, 31].into_iter().chain(40..50).chain([55]).collect();
        assert_eq!((found, is_whole), (expected, true));
        // Where there is no room for the nearest, they stay out.
        let (found, is_whole) = part(&beta, &slopes, &[55], 13);
        assert!(is_whole && found.len() == 13 && !found.contains(&0));
        // Where there is room for some only, those that are settled come first, and the pair that violates most.
        let (found, is_whole) = part(&beta, &slopes, &[55], 8);
        assert!(!is_whole && found.len() <= 8 && found.is_sorted());
        for sample in [10, 31, 55, 48, 49] {
            assert!(found.contains(&sample), "{sample} in {found:?}");
        }
    }
}
