//! Kernels that are combinations of fewer: K_m = Σ_j B_mj N_j.
//!
//! exp(−γ s) as a function of x = ln γ is analytic in the strip |Im x| < π/2 and at most 1 there, whatever s ≥ 0. So its interpolation at n + 1
//! Chebyshev points of an interval of half-length h is off by at most 4 ρ⁻ⁿ/(ρ − 1), ρ = a + √(1 + a²), a = π/(2h) (Trefethen, Approximation Theory
//! and Approximation Practice, theorem 8.2): of any number of Gaussians of one distance, a hundred or so span the rest to the last digit. B is
//! never kept: a row of it takes a division per node (Berrut and Trefethen, 2004).

use rayon::prelude::*;

use crate::vector::{axpy, dot, rounding};

/// K_m = Σ_j B_mj N_j, family by family.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    kernels: usize,
    nodes: usize,
    families: Vec<Family>,
    error: f64,
}

/// Kernels on an interval of ln γ, and the nodes that they are interpolated from.
#[derive(Debug, Clone, PartialEq)]
struct Family {
    /// Their numbers.
    members: Vec<usize>,
    /// Where in [−1, 1] each is.
    at: Vec<f64>,
    /// The number of the first node.
    first: usize,
    points: Points,
    /// h
    half: f64,
}

/// Chebyshev points of the second kind, in ascending order, with the weights of the barycentric formula.
#[derive(Debug, Clone, PartialEq)]
struct Points {
    points: Vec<f64>,
    weights: Vec<f64>,
}

/// Kernels that a thread takes at a time.
const CHUNK: usize = 1024;

impl Points {
    fn new(count: usize) -> Self {
        if count == 1 {
            return Self {
                points: vec![0.0],
                weights: vec![1.0],
            };
        }
        let n = count - 1;
        let angle = |j: usize| std::f64::consts::FRAC_PI_2 * (2.0 * j as f64 - n as f64) / n as f64;
        let weight = |j: usize| {
            let half = if j == 0 || j == n { 0.5 } else { 1.0 };
            if j.is_multiple_of(2) { half } else { -half }
        };
        Self {
            points: (0..count).map(|j| angle(j).sin()).collect(),
            weights: (0..count).map(weight).collect(),
        }
    }

    /// The values of the Lagrange polynomials at x.
    fn coefficients(&self, x: f64, out: &mut [f64]) {
        if let [only] = out {
            *only = 1.0;
            return;
        }
        for (out, (point, weight)) in out.iter_mut().zip(self.points.iter().zip(&self.weights)) {
            *out = weight / (x - point);
        }
        // Four sums side by side: one after the other, additions take longer than divisions.
        let (fours, rest) = out.as_chunks::<4>();
        let mut sums = [0.0; 4];
        for four in fours {
            for lane in 0..4 {
                sums[lane] += four[lane];
            }
        }
        let sum = (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest.iter().sum::<f64>();
        if sum.is_finite() {
            let scale = sum.recip();
            for value in out.iter_mut() {
                *value *= scale;
            }
        } else {
            for (out, point) in out.iter_mut().zip(&self.points) {
                *out = f64::from(u8::from(*point == x));
            }
        }
    }
}

/// The least number of points for an error of at most this.
fn points_for(half: f64, error: f64) -> usize {
    if half == 0.0 {
        return 1;
    }
    let a = std::f64::consts::FRAC_PI_2 / half;
    let rho = a + (1.0 + a * a).sqrt();
    let degree = (4.0 / (error * (rho - 1.0))).ln() / rho.ln();
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a small positive number"
    )]
    let degree = degree.ceil().max(1.0) as usize;
    degree + 1
}

/// Families, one after the other, as they are found.
#[derive(Debug, Default)]
pub(crate) struct SpanBuilder {
    families: Vec<Family>,
    kernels: usize,
    nodes: usize,
}

impl SpanBuilder {
    /// A kernel that is its own node.
    pub(crate) fn add_single(&mut self, kernel: usize) {
        self.push(vec![kernel], vec![0.0], 0.0, 1);
    }

    /// Kernels exp(−γ s) of the same s with these γ, to within `error`; the γ of the nodes.
    pub(crate) fn add_family(
        &mut self,
        members: Vec<usize>,
        gammas: &[f64],
        error: f64,
    ) -> Vec<f64> {
        let (middle, half) = interval(gammas);
        let place = |gamma: &f64| {
            if half == 0.0 {
                0.0
            } else {
                ((gamma.ln() - middle) / half).clamp(-1.0, 1.0)
            }
        };
        let at = gammas.iter().map(place).collect();
        self.push(members, at, half, points_for(half, error));
        let points = self.families.last().map(|family| &family.points.points);
        points
            .into_iter()
            .flatten()
            .map(|point| (middle + half * point).exp())
            .collect()
    }

    fn push(&mut self, members: Vec<usize>, at: Vec<f64>, half: f64, count: usize) {
        self.kernels += members.len();
        self.families.push(Family {
            members,
            at,
            first: self.nodes,
            points: Points::new(count),
            half,
        });
        self.nodes += count;
    }

    /// All of them; `error` is what each value of the interpolated kernels is off by at most.
    pub(crate) fn finish(self, error: f64) -> Span {
        Span {
            kernels: self.kernels,
            nodes: self.nodes,
            families: self.families,
            error,
        }
    }
}

/// The middle and half the length of the interval of ln γ.
fn interval(gammas: &[f64]) -> (f64, f64) {
    let logarithms = || gammas.iter().map(|gamma| gamma.ln());
    let least = logarithms().fold(f64::INFINITY, f64::min);
    let most = logarithms().fold(f64::NEG_INFINITY, f64::max);
    (0.5 * (least + most), 0.5 * (most - least))
}

/// So many nodes it takes for kernels exp(−γ s) with these γ.
pub(crate) fn nodes_for(gammas: &[f64], error: f64) -> usize {
    points_for(interval(gammas).1, error)
}

impl Span {
    /// M.
    pub fn kernels(&self) -> usize {
        self.kernels
    }

    /// The number of N_j.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// What a value of K_m is off by at most, rounding included.
    pub(crate) fn error(&self) -> f64 {
        let most = self
            .families
            .iter()
            .map(|family| family.points.points.len());
        let most = most.max().unwrap_or(1);
        // The sum of |B_mj| over j is at most 1 + (2/π) ln(nodes + 1).
        let size = 1.0 + std::f64::consts::FRAC_2_PI * (most as f64 + 1.0).ln();
        self.error + size * rounding(most)
    }

    /// Calls `see(row of B, number of the kernel)` for some members of a family.
    fn rows(family: &Family, range: std::ops::Range<usize>, mut see: impl FnMut(&[f64], usize)) {
        let mut row = vec![0.0; family.points.points.len()];
        let members = family.members[range.clone()].iter();
        for (&kernel, &x) in members.zip(&family.at[range]) {
            family.points.coefficients(x, &mut row);
            see(&row, kernel);
        }
    }

    /// Members of families, some at a time.
    fn chunks(&self) -> Vec<(&Family, std::ops::Range<usize>)> {
        let mut chunks = Vec::with_capacity(self.families.len() + self.kernels / CHUNK);
        for family in &self.families {
            let count = family.members.len();
            let starts = (0..count).step_by(CHUNK);
            chunks.extend(starts.map(|first| (family, first..(first + CHUNK).min(count))));
        }
        chunks
    }

    /// B'θ: weights of kernels as weights of nodes.
    pub(crate) fn gather(&self, theta: &[f64]) -> Vec<f64> {
        let chunks = self.chunks();
        let sums: Vec<Vec<f64>> = chunks
            .par_iter()
            .map(|(family, range)| {
                let mut sum = vec![0.0; family.points.points.len()];
                Self::rows(family, range.clone(), |row, kernel| {
                    if theta[kernel] != 0.0 {
                        axpy(theta[kernel], row, &mut sum);
                    }
                });
                sum
            })
            .collect();
        let mut nodes = vec![0.0; self.nodes];
        for ((family, _), sum) in chunks.iter().zip(sums) {
            let own = &mut nodes[family.first..family.first + sum.len()];
            axpy(1.0, &sum, own);
        }
        nodes
    }

    /// Bv: what is known of nodes, of kernels.
    pub(crate) fn spread(&self, nodes: &[f64]) -> Vec<f64> {
        let chunks = self.chunks();
        let values: Vec<Vec<f64>> = chunks
            .par_iter()
            .map(|(family, range)| {
                let own = &nodes[family.first..family.first + family.points.points.len()];
                let mut values = Vec::with_capacity(range.len());
                Self::rows(family, range.clone(), |row, _| values.push(dot(row, own)));
                values
            })
            .collect();
        let mut out = vec![0.0; self.kernels];
        for ((family, range), values) in chunks.iter().zip(values) {
            for (&kernel, value) in family.members[range.clone()].iter().zip(values) {
                out[kernel] = value;
            }
        }
        out
    }

    /// F B' diag(s) B F' for F (rows × nodes), rows × rows.
    pub(crate) fn scaled_gram(&self, factor: &[f64], s: &[f64]) -> Vec<f64> {
        let rows = factor.len() / self.nodes.max(1);
        // Each family by itself, in parts that are added up in their order.
        let chunks = self.chunks();
        let grams: Vec<Vec<f64>> = chunks
            .par_iter()
            .map(|(family, range)| {
                let count = family.points.points.len();
                let mut gram = vec![0.0; count * count];
                Self::rows(family, range.clone(), |row, kernel| {
                    if s[kernel] != 0.0 {
                        for (value, out) in row.iter().zip(gram.chunks_exact_mut(count)) {
                            axpy(value * s[kernel], row, out);
                        }
                    }
                });
                gram
            })
            .collect();
        let mut parts: Vec<(&Family, Vec<f64>)> = Vec::with_capacity(self.families.len());
        for ((family, _), gram) in chunks.iter().zip(grams) {
            match parts
                .last_mut()
                .filter(|(last, _)| last.first == family.first)
            {
                Some((_, sum)) => axpy(1.0, &gram, sum),
                None => parts.push((family, gram)),
            }
        }
        let products: Vec<Vec<f64>> = parts
            .par_iter()
            .map(|(family, gram)| self.family_gram(factor, rows, family, gram))
            .collect();
        let mut out = vec![0.0; rows * rows];
        for product in products {
            axpy(1.0, &product, &mut out);
        }
        out
    }

    /// F_f G F_f' for the nodes of one family.
    fn family_gram(&self, factor: &[f64], rows: usize, family: &Family, gram: &[f64]) -> Vec<f64> {
        let count = family.points.points.len();
        let own = |i: usize| &factor[i * self.nodes + family.first..][..count];
        let mut half = vec![0.0; rows * count];
        for (i, out) in half.chunks_exact_mut(count).enumerate() {
            for (value, row) in own(i).iter().zip(gram.chunks_exact(count)) {
                axpy(*value, row, out);
            }
        }
        let mut out = vec![0.0; rows * rows];
        for (out, half) in out
            .chunks_exact_mut(rows.max(1))
            .zip(half.chunks_exact(count))
        {
            for (j, out) in out.iter_mut().enumerate() {
                *out = dot(half, own(j));
            }
        }
        out
    }

    /// The rows of F B' of some kernels: F (rows × nodes) becomes rows × kernels.
    pub(crate) fn columns(&self, factor: &[f64], kernels: &[usize]) -> Vec<f64> {
        let mut place = vec![None; self.kernels];
        for (position, &kernel) in kernels.iter().enumerate() {
            place[kernel] = Some(position);
        }
        let mut out = vec![0.0; factor.len() / self.nodes.max(1) * kernels.len()];
        for family in &self.families {
            let count = family.points.points.len();
            let mut row = vec![0.0; count];
            for (&kernel, &x) in family.members.iter().zip(&family.at) {
                let Some(position) = place[kernel] else {
                    continue;
                };
                family.points.coefficients(x, &mut row);
                let rows = factor.chunks_exact(self.nodes);
                for (out, f) in out.chunks_exact_mut(kernels.len()).zip(rows) {
                    out[position] = dot(&row, &f[family.first..family.first + count]);
                }
            }
        }
        out
    }

    /// The nodes that one kernel is made of, and by how much.
    pub(crate) fn row(&self, kernel: usize) -> Vec<(usize, f64)> {
        for family in &self.families {
            if let Ok(place) = family.members.binary_search(&kernel) {
                let mut row = vec![0.0; family.points.points.len()];
                family.points.coefficients(family.at[place], &mut row);
                return (family.first..).zip(row).collect();
            }
        }
        Vec::new()
    }

    /// The same with fewer nodes, to within `error`, and F (rows × nodes) for these.
    pub(crate) fn coarser(&self, factor: &[f64], error: f64) -> (Self, Vec<f64>) {
        let mut builder = SpanBuilder::default();
        let mut changes: Vec<(usize, usize, Vec<f64>)> = Vec::with_capacity(self.families.len());
        for family in &self.families {
            let known = family.points.points.len();
            let count = points_for(family.half, error).min(known);
            builder.push(
                family.members.clone(),
                family.at.clone(),
                family.half,
                count,
            );
            let mut change = vec![0.0; count * known];
            let points = &Points::new(count).points;
            for (&point, row) in points.iter().zip(change.chunks_exact_mut(known)) {
                family.points.coefficients(point, row);
            }
            changes.push((family.first, known, change));
        }
        let span = builder.finish(error);
        let mut fewer = Vec::with_capacity(factor.len() / self.nodes.max(1) * span.nodes);
        for row in factor.chunks_exact(self.nodes.max(1)) {
            for (first, known, change) in &changes {
                let own = &row[*first..first + known];
                fewer.extend(change.chunks_exact(*known).map(|weights| dot(weights, own)));
            }
        }
        (span, fewer)
    }

    /// Some of the kernels, in this order, on the same nodes.
    #[must_use]
    pub(crate) fn part(&self, kernels: &[usize]) -> Self {
        let mut places: Vec<(usize, usize)> = kernels.iter().copied().zip(0..).collect();
        places.sort_unstable();
        let families = self.families.iter().map(|family| {
            let mut found = Vec::new();
            for (&kernel, &x) in family.members.iter().zip(&family.at) {
                let first = places.partition_point(|(known, _)| *known < kernel);
                let same = places[first..]
                    .iter()
                    .take_while(|(known, _)| *known == kernel);
                found.extend(same.map(|(_, place)| (*place, x)));
            }
            found.sort_unstable_by_key(|(place, _)| *place);
            let (members, at) = found.into_iter().unzip();
            Family {
                members,
                at,
                ..family.clone()
            }
        });
        Self {
            families: families.collect(),
            kernels: kernels.len(),
            ..*self
        }
    }

    /// For each family, its kernels in the order of their places.
    pub(crate) fn in_order(&self) -> Vec<Vec<usize>> {
        let sorted = |family: &Family| {
            let mut order: Vec<usize> = (0..family.members.len()).collect();
            order.sort_by(|&a, &b| family.at[a].total_cmp(&family.at[b]));
            order.iter().map(|&place| family.members[place]).collect()
        };
        self.families.iter().map(sorted).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gammas(count: usize) -> Vec<f64> {
        let gamma = |i: usize| 2.0_f64.powf(12.0 * (i as f64 + 0.5) / count as f64 - 7.0);
        (0..count).map(gamma).collect()
    }

    fn span(count: usize, error: f64) -> (Span, Vec<f64>, Vec<f64>) {
        let mut builder = SpanBuilder::default();
        builder.add_single(count);
        let gammas = gammas(count);
        let nodes = builder.add_family((0..count).collect(), &gammas, error);
        (builder.finish(error), gammas, nodes)
    }

    #[test]
    fn exponentials_are_interpolated_to_the_error_that_is_promised() {
        for error in [1e-3, 1e-8, 1e-15] {
            let (span, gammas, nodes) = span(3000, error);
            assert_eq!(span.nodes(), nodes.len() + 1);
            assert!(nodes.len() < 110, "{}", nodes.len());
            for s in [0.0, 1e-6, 0.01, 0.3, 1.0, 7.0, 40.0, 900.0, 1e6] {
                let mut values = vec![5.0];
                values.extend(nodes.iter().map(|gamma| (-gamma * s).exp()));
                let all = span.spread(&values);
                assert_eq!(all[3000], 5.0);
                for (value, gamma) in all.iter().zip(&gammas) {
                    let off = (value - (-gamma * s).exp()).abs();
                    assert!(off <= span.error(), "{error} {s} {gamma}: {off}");
                }
            }
        }
    }

    #[test]
    fn all_forms_say_the_same() {
        let (span, _, _) = span(2500, 1e-6);
        let mut random = crate::random::Random::new(3);
        let mut numbers = |n: usize| -> Vec<f64> { (0..n).map(|_| random.uniform()).collect() };
        let (theta, s) = (numbers(2501), numbers(2501));
        let factor = numbers(3 * span.nodes());
        let all: Vec<usize> = (0..2501).collect();
        let dense = span.columns(&factor, &all);
        let gathered = span.gather(&theta);
        let gram = span.scaled_gram(&factor, &s);
        for i in 0..3 {
            let row = &dense[i * 2501..(i + 1) * 2501];
            let own = &factor[i * span.nodes()..(i + 1) * span.nodes()];
            let expected = dot(row, &theta);
            assert!((dot(own, &gathered) - expected).abs() < 1e-9 * expected.abs());
            for (value, plain) in span.spread(own).iter().zip(row) {
                assert!((value - plain).abs() < 1e-12);
            }
            for j in 0..3 {
                let other = &dense[j * 2501..(j + 1) * 2501];
                let sum: f64 = (0..2501).map(|m| row[m] * s[m] * other[m]).sum();
                assert!((gram[i * 3 + j] - sum).abs() < 1e-9 * sum.abs());
            }
        }
        let part = span.part(&[7, 2500, 3]);
        let nodes = numbers(span.nodes());
        let (whole, some) = (span.spread(&nodes), part.spread(&nodes));
        assert_eq!(some, [whole[7], whole[2500], whole[3]]);
        let row: f64 = span.row(7).iter().map(|(node, b)| b * nodes[*node]).sum();
        assert!((row - whole[7]).abs() < 1e-12);
    }

    #[test]
    fn a_smooth_factor_needs_fewer_nodes() {
        let (span, gammas, nodes) = span(2500, 1e-15);
        let mut factor = vec![2.0];
        factor.extend(nodes.iter().map(|gamma| (-gamma * 0.7).exp()));
        let (fewer, own) = span.coarser(&factor, 1e-4);
        assert!(fewer.nodes() < span.nodes() / 2);
        let values = fewer.spread(&own);
        assert_eq!(values[2500], 2.0);
        for (value, gamma) in values.iter().zip(gammas) {
            assert!((value - (-gamma * 0.7).exp()).abs() < 1e-4);
        }
    }

    #[test]
    fn equal_widths_are_one_node() {
        let mut builder = SpanBuilder::default();
        let nodes = builder.add_family(vec![0, 1], &[0.5, 0.5], 1e-15);
        assert_eq!(nodes.len(), 1);
        assert!((nodes[0] - 0.5).abs() < 1e-15);
        assert_eq!(builder.finish(1e-15).gather(&[1.0, 2.0]), [3.0]);
    }
}
