//! Sequential minimal optimisation: Fan, Chen and Lin, "Working set selection using second order information for training
//! support vector machines", JMLR 6 (2005), in label-free form.
//!
//! With g = q − Kβ, a point is optimal when max {g_v : β_v < upper_v} ≤ min {g_v : β_v > lower_v}. Each step takes the pair (i, j)
//! where i has the largest g that can grow and j, among those that can shrink, promises the largest gain
//! (g_i − g_j)² / (K_ii + K_jj − 2K_ij), and moves β_i up and β_j down by the same amount.
//!
//! Shrinking leaves out of the search, for a while, variables at a bound that point firmly outwards. Kβ is kept up to date for
//! all rows regardless, so the final check on the full set costs no reconstruction.

use super::Qp;
use crate::gram::{CombinedRows, Values};
use crate::run::Stop;
use crate::vector::{self, Partner};

/// How tightly to solve.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Smo {
    /// Stop when the largest violation max g_up − min g_low is at most this.
    pub(crate) tolerance: f64,
    /// Leave variables out of the search that are unlikely to move.
    pub(crate) shrinking: bool,
    /// Give up after this many steps (the point stays feasible, its gap says what it is worth).
    pub(crate) max_steps: usize,
}

/// Curvature of a direction is taken to be at least this: duplicates have none, indefinite kernels a negative one.
const LEAST_CURVATURE: f64 = 1e-12;

const CAN_GROW: u8 = 1;
const CAN_SHRINK: u8 = 2;

fn status(value: f64, lower: f64, upper: f64) -> u8 {
    (if value < upper { CAN_GROW } else { 0 }) | (if value > lower { CAN_SHRINK } else { 0 })
}

/// Improves `beta` in place, keeping Kβ in `product`; returns the number of steps.
///
/// `beta` must be feasible and `product` its Kβ; both are so again on return, whatever stopped the search.
pub(crate) fn solve(
    qp: &Qp<'_>,
    rows: &CombinedRows<'_>,
    beta: &mut [f64],
    product: &mut [f64],
    smo: &Smo,
    stop: &Stop,
) -> usize {
    let mut search = Search::new(qp, rows, beta);
    let period = search.movable.len().clamp(1, 1000);
    let diagonal = rows.diagonal();
    let mut steps = 0;
    let mut until_shrinking = period;
    while steps < smo.max_steps {
        if steps % 1000 == 999 && stop.now() {
            break;
        }
        if until_shrinking == 0 {
            until_shrinking = period;
            if smo.shrinking {
                search.shrink(product);
            }
        }
        let Some((i, j)) = search.select(product, smo.tolerance) else {
            if search.is_complete() {
                break;
            }
            // Optimal among those that are left: the final word is the full set's.
            search.restore();
            until_shrinking = period;
            continue;
        };
        let (row_i, row_j) = (qp.variables.sample_of(i), qp.variables.sample_of(j));
        let (kernel_i, kernel_j) = (rows.row(row_i), rows.row(row_j));
        let curvature =
            (diagonal[row_i] + diagonal[row_j] - 2.0 * kernel_i.get(row_j)).max(LEAST_CURVATURE);
        let slope = qp.slope(product, i) - qp.slope(product, j);
        let room_i = qp.upper[i] - beta[i];
        let room_j = beta[j] - qp.lower[j];
        let step = (slope / curvature).min(room_i).min(room_j);
        // Land on a bound exactly, not one rounding beside it.
        beta[i] = if step >= room_i {
            qp.upper[i]
        } else {
            beta[i] + step
        };
        beta[j] = if step >= room_j {
            qp.lower[j]
        } else {
            beta[j] - step
        };
        search.update(i, beta[i]);
        search.update(j, beta[j]);
        match (kernel_i, kernel_j) {
            (Values::Double(a), Values::Double(b)) => vector::add_difference(step, a, b, product),
            (Values::Single(a), Values::Single(b)) => vector::add_difference(step, a, b, product),
            _ => unreachable!("rows of one precision"),
        }
        steps += 1;
        until_shrinking -= 1;
    }
    steps
}

/// Which variables may move where, and the search for the pair to move.
struct Search<'a> {
    qp: &'a Qp<'a>,
    rows: &'a CombinedRows<'a>,
    /// 0 where a variable can grow, −∞ where it cannot (or is left out).
    grow: Vec<f64>,
    /// 0 where a variable can shrink, +∞ where it cannot (or is left out).
    shrink: Vec<f64>,
    /// The variables that are not fixed.
    movable: Vec<usize>,
    /// Those of them that the search looks at.
    active: Vec<usize>,
    can: Vec<u8>,
}

/// With fewer active variables than this share of all, they are visited one by one; else all of them in order, vectorised.
const SPARSE: usize = 8;

impl<'a> Search<'a> {
    fn new(qp: &'a Qp<'a>, rows: &'a CombinedRows<'a>, beta: &[f64]) -> Self {
        let variables = beta.len();
        let movable: Vec<usize> = (0..variables)
            .filter(|&v| qp.lower[v] < qp.upper[v])
            .collect();
        let mut search = Self {
            qp,
            rows,
            grow: vec![f64::NEG_INFINITY; variables],
            shrink: vec![f64::INFINITY; variables],
            active: movable.clone(),
            movable,
            can: (0..variables)
                .map(|v| status(beta[v], qp.lower[v], qp.upper[v]))
                .collect(),
        };
        search.restore();
        search
    }

    fn is_complete(&self) -> bool {
        self.active.len() == self.movable.len()
    }

    fn is_sparse(&self) -> bool {
        self.active.len() * SPARSE < self.can.len()
    }

    fn show(&mut self, v: usize) {
        self.grow[v] = if self.can[v] & CAN_GROW != 0 {
            0.0
        } else {
            f64::NEG_INFINITY
        };
        self.shrink[v] = if self.can[v] & CAN_SHRINK != 0 {
            0.0
        } else {
            f64::INFINITY
        };
    }

    fn restore(&mut self) {
        self.active.clone_from(&self.movable);
        for v in 0..self.can.len() {
            if self.qp.lower[v] < self.qp.upper[v] {
                self.show(v);
            }
        }
    }

    fn update(&mut self, v: usize, beta: f64) {
        self.can[v] = status(beta, self.qp.lower[v], self.qp.upper[v]);
        self.show(v);
    }

    /// The pair to move, or `None` when no pair violates optimality by more than the tolerance.
    fn select(&self, product: &[f64], tolerance: f64) -> Option<(usize, usize)> {
        let (i, highest) = self.first(product)?;
        let partner = self.second(product, i, highest);
        // A difference within rounding of the slopes themselves cannot be improved on.
        let floor = 1e-15 * highest.abs().max(partner.lowest.abs());
        if highest - partner.lowest <= tolerance.max(floor) {
            None
        } else {
            partner.position.map(|j| (i, j))
        }
    }

    /// The variable that can grow with the highest slope.
    fn first(&self, product: &[f64]) -> Option<(usize, f64)> {
        let mut best: Option<(usize, f64)> = None;
        let mut offer = |v: usize, slope: f64| {
            if best.is_none_or(|(_, highest)| slope > highest) {
                best = Some((v, slope));
            }
        };
        if self.is_sparse() {
            for &v in self.active.iter().filter(|&&v| self.can[v] & CAN_GROW != 0) {
                offer(v, self.qp.slope(product, v));
            }
        } else {
            for range in self.qp.variables.ranges() {
                let start = range.start;
                if let Some((at, slope)) =
                    vector::largest(&self.qp.linear[range.clone()], product, &self.grow[range])
                {
                    offer(start + at, slope);
                }
            }
        }
        best
    }

    /// Of the variables that can shrink, the one that promises the largest gain beside the first.
    fn second(&self, product: &[f64], first: usize, highest: f64) -> Partner {
        let sample = self.qp.variables.sample_of(first);
        let kernel = self.rows.row(sample);
        let diagonal = self.rows.diagonal();
        let own = diagonal[sample];
        let mut best = Partner {
            position: None,
            gain: 0.0,
            lowest: f64::INFINITY,
        };
        if self.is_sparse() {
            for &v in self
                .active
                .iter()
                .filter(|&&v| self.can[v] & CAN_SHRINK != 0)
            {
                let row = self.qp.variables.sample_of(v);
                let slope = self.qp.slope(product, v);
                best.lowest = best.lowest.min(slope);
                let difference = highest - slope;
                let curvature = (own + diagonal[row] - 2.0 * kernel.get(row)).max(LEAST_CURVATURE);
                let gain = difference * difference / curvature;
                if difference > 0.0 && gain > best.gain {
                    best.gain = gain;
                    best.position = Some(v);
                }
            }
            return best;
        }
        for range in self.qp.variables.ranges() {
            let start = range.start;
            let slices = [
                &self.qp.linear[range.clone()],
                product,
                &self.shrink[range],
                diagonal,
            ];
            let partner = match kernel {
                Values::Double(kernel) => {
                    vector::best_partner(slices, kernel, highest, own, LEAST_CURVATURE)
                }
                Values::Single(kernel) => {
                    vector::best_partner_rounded(slices, kernel, highest, own, LEAST_CURVATURE)
                }
            };
            best.lowest = best.lowest.min(partner.lowest);
            if partner.gain > best.gain {
                best.gain = partner.gain;
                best.position = partner.position.map(|at| start + at);
            }
        }
        best
    }

    /// Keeps the variables that may still move.
    fn shrink(&mut self, product: &[f64]) {
        let mut highest = f64::NEG_INFINITY;
        let mut lowest = f64::INFINITY;
        for &v in &self.active {
            if self.can[v] & CAN_GROW != 0 {
                highest = highest.max(self.qp.slope(product, v));
            }
            if self.can[v] & CAN_SHRINK != 0 {
                lowest = lowest.min(self.qp.slope(product, v));
            }
        }
        let active = std::mem::take(&mut self.active);
        for v in active {
            let stays = match self.can[v] {
                CAN_SHRINK => self.qp.slope(product, v) <= highest,
                CAN_GROW => self.qp.slope(product, v) >= lowest,
                _ => true,
            };
            if stays {
                self.active.push(v);
            } else {
                self.grow[v] = f64::NEG_INFINITY;
                self.shrink[v] = f64::INFINITY;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gram::given;
    use crate::inner::tests::{some_kernel, whole};
    use crate::machine::Variables;
    use crate::random::Random;

    const N: usize = 24;

    /// Bounds 0 and 1, a third of β at each of them and a third between; slopes of any sign.
    struct Place {
        kernel: Vec<f64>,
        linear: Vec<f64>,
        lower: Vec<f64>,
        upper: Vec<f64>,
        beta: Vec<f64>,
        product: Vec<f64>,
    }

    impl Place {
        fn new(random: &mut Random) -> Self {
            let mut signed =
                |count: usize| -> Vec<f64> { (0..count).map(|_| random.uniform() - 0.5).collect() };
            let (linear, product) = (signed(N), signed(N));
            Self {
                kernel: some_kernel(N, random),
                linear,
                lower: vec![0.0; N],
                upper: vec![1.0; N],
                beta: (0..N).map(|v| [0.0, 1.0, 0.5][v % 3]).collect(),
                product,
            }
        }

        fn qp(&self) -> Qp<'_> {
            Qp {
                variables: Variables::one_each(N),
                linear: &self.linear,
                lower: &self.lower,
                upper: &self.upper,
            }
        }

        fn slope(&self, v: usize) -> f64 {
            self.linear[v] - self.product[v]
        }

        /// (g_i − g_j)² / (K_ii + K_jj − 2K_ij)
        fn gain(&self, i: usize, j: usize) -> f64 {
            let k = |a: usize, b: usize| self.kernel[a * N + b];
            (self.slope(i) - self.slope(j)).powi(2) / (k(i, i) + k(j, j) - 2.0 * k(i, j))
        }
    }

    #[test]
    fn a_variable_can_move_where_it_has_room() {
        assert_eq!(status(0.5, 0.0, 1.0), CAN_GROW | CAN_SHRINK);
        assert_eq!(status(0.0, 0.0, 1.0), CAN_GROW);
        assert_eq!(status(1.0, 0.0, 1.0), CAN_SHRINK);
        assert_eq!(status(0.0, 0.0, 0.0), 0);
    }

    #[test]
    fn the_pair_is_that_of_the_largest_gain_however_it_is_looked_for() {
        let mut random = Random::new(51);
        for round in 0..20 {
            let place = Place::new(&mut random);
            let grams = given(N, vec![place.kernel.clone()]);
            let rows = CombinedRows::new(whole(&grams), &[1.0]);
            let qp = place.qp();
            let mut search = Search::new(&qp, &rows, &place.beta);
            assert!(!search.is_sparse() && search.is_complete());
            // All of them; then two, one by one, with the others hidden as shrinking does it.
            for active in [(0..N).collect(), vec![round, (round + 2) % N]] {
                for v in (0..N).filter(|v| !active.contains(v)) {
                    search.grow[v] = f64::NEG_INFINITY;
                    search.shrink[v] = f64::INFINITY;
                }
                search.active.clone_from(&active);
                assert_eq!(search.is_sparse(), active.len() == 2);
                let growing = active.iter().filter(|&&v| place.beta[v] < 1.0);
                let first = growing.max_by(|&&a, &&b| place.slope(a).total_cmp(&place.slope(b)));
                let first = *first.unwrap();
                assert_eq!(
                    search.first(&place.product),
                    Some((first, place.slope(first)))
                );
                let shrinking: Vec<usize> = (active.iter().copied())
                    .filter(|&v| place.beta[v] > 0.0)
                    .collect();
                let lowest = shrinking
                    .iter()
                    .map(|&v| place.slope(v))
                    .fold(f64::INFINITY, f64::min);
                let below = shrinking
                    .iter()
                    .filter(|&&v| place.slope(v) < place.slope(first));
                let best =
                    below.max_by(|&&a, &&b| place.gain(first, a).total_cmp(&place.gain(first, b)));
                let found = search.second(&place.product, first, place.slope(first));
                assert_eq!(found.position, best.copied());
                assert!((found.lowest - lowest).abs() <= 1e-15);
                if let Some(&best) = best {
                    let gain = place.gain(first, best);
                    assert!((found.gain - gain).abs() <= 1e-12 * gain);
                }
                // No pair where the tolerance allows for all of them.
                assert_eq!(search.select(&place.product, 10.0), None);
                let pair = best.map(|&best| (first, best));
                assert_eq!(search.select(&place.product, 0.0), pair);
            }
            // A third of an eighth is sparse, an eighth is not.
            search.active = (0..N / SPARSE).collect();
            assert!(!search.is_sparse() && !search.is_complete());
        }
    }

    #[test]
    fn what_points_firmly_outwards_is_left_out_until_all_are_looked_at_again() {
        let mut random = Random::new(52);
        let mut left_out = 0;
        for _ in 0..20 {
            let place = Place::new(&mut random);
            let grams = given(N, vec![place.kernel.clone()]);
            let rows = CombinedRows::new(whole(&grams), &[1.0]);
            let qp = place.qp();
            let mut search = Search::new(&qp, &rows, &place.beta);
            let slopes =
                |can: fn(f64) -> bool| (0..N).filter(move |&v| can([0.0, 1.0, 0.5][v % 3]));
            let highest = slopes(|beta| beta < 1.0)
                .map(|v| place.slope(v))
                .fold(f64::NEG_INFINITY, f64::max);
            let lowest = slopes(|beta| beta > 0.0)
                .map(|v| place.slope(v))
                .fold(f64::INFINITY, f64::min);
            let stays = |v: usize| match v % 3 {
                // At the lower bound, below all that can shrink: it would have to shrink further.
                0 => place.slope(v) >= lowest,
                1 => place.slope(v) <= highest,
                _ => true,
            };
            search.shrink(&place.product);
            let expected: Vec<usize> = (0..N).filter(|&v| stays(v)).collect();
            assert_eq!(search.active, expected);
            left_out += N - expected.len();
            for v in (0..N).filter(|&v| !stays(v)) {
                assert_eq!(
                    (search.grow[v], search.shrink[v]),
                    (f64::NEG_INFINITY, f64::INFINITY)
                );
            }
            search.restore();
            assert!(search.is_complete());
            for v in 0..N {
                let grows = if v % 3 == 1 { f64::NEG_INFINITY } else { 0.0 };
                let shrinks = if v % 3 == 0 { f64::INFINITY } else { 0.0 };
                assert_eq!((search.grow[v], search.shrink[v]), (grows, shrinks));
            }
        }
        assert!(left_out > 10, "{left_out}");
    }
}
