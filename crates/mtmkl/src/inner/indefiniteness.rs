//! The inner gap where kernels are positive semi-definite but for a known ε_m: K_m + ε_m ⪰ 0.
//!
//! Rounding leaves a matrix that was given with a smallest eigenvalue a little below zero. ḡ is then not concave by as little, and a tangent
//! no longer lies above it: with ε = Σ_m θ_m ε_m and δ = β' − β,
//!
//! ḡ(β') − ḡ(β) = κ ( g'δ − ½ δ'Kδ ) ≤ κ ( g'δ + ½ ε ‖δ‖² ), g the slopes at β.
//!
//! In a box, (β' − l)(u − β') ≥ 0 says that δ² ≤ (u − β)(β − l) + (u + l − 2β) δ, with equality at both bounds. So
//!
//! J − ḡ(β) ≤ κ ( ½ ε Σ_i (u_i − β_i)(β_i − l_i) + max over feasible β' of (g + ½ ε (u + l − 2β))'δ ),
//!
//! the linear programme that the gap is without ε, at other slopes. A variable that is held at its bound by a slope of more than
//! ½ ε (u − l) adds nothing: only the free ones do. With ε = 0 it is that gap, and it never is below it. With a ridge ρ > ε,
//! K + ρ ⪰ ρ − ε and J − ḡ(β) = ½κ r'(K + ρ)⁻¹r ≤ ½κ Σ_i r_i² / (ρ_i − ε). With ρ ≤ ε ḡ may have no maximum for K as it was given; what is
//! bounded is then that of K + ε, which is ⪰ 0 and as near to K as can be told: r − εβ in place of r, over ρ. A smooth φ on a bounded interval is bounded as in a box, with
//! Fenchel's inequality in place of the linear programme.

use super::box_qp::{self, Qp};
use crate::machine::{Conjugate, Dual, SmoothConjugate, Variables};

/// J − ḡ(β) at most, for K(θ) + ε ⪰ 0. `linear` is q + c Σ_m θ_m d_m by variable, `product` is K(θ)β by sample, b the offset.
pub(super) fn gap(
    dual: &Dual,
    linear: &[f64],
    beta: &[f64],
    product: &[f64],
    offset: f64,
    epsilon: f64,
) -> f64 {
    let gap = match &dual.conjugate {
        Conjugate::Box { lower, upper, .. } => {
            let qp = Qp {
                variables: dual.variables,
                linear,
                lower,
                upper,
            };
            box_gap(&qp, beta, product, epsilon)
        }
        Conjugate::Ridge { ridge } => ridge_gap(linear, ridge, beta, product, epsilon),
        Conjugate::Smooth { function, sum } => {
            let slopes: Vec<f64> = (linear.iter().zip(product))
                .map(|(q, product)| q - product - offset)
                .collect();
            let missing = sum.map_or(0.0, |sum| sum - beta.iter().sum::<f64>());
            smooth_gap(function.as_ref(), &slopes, beta, epsilon) + (offset * missing).abs()
        }
    };
    dual.scale * gap
}

fn ridge_gap(linear: &[f64], ridge: &[f64], beta: &[f64], product: &[f64], epsilon: f64) -> f64 {
    let is_beyond = is_beyond(ridge, epsilon);
    let terms = (0..linear.len()).map(|i| {
        let residual = linear[i] - product[i] - ridge[i] * beta[i];
        if is_beyond {
            0.5 * (residual.abs() + epsilon * beta[i].abs()).powi(2) / ridge[i]
        } else {
            0.5 * residual * residual / (ridge[i] - epsilon)
        }
    });
    terms.sum()
}

/// Whether a ridge is too small for K as it was given.
fn is_beyond(ridge: &[f64], epsilon: f64) -> bool {
    ridge.iter().any(|ridge| *ridge <= epsilon)
}

/// By how much ḡ(β) is less for K + ε than for K, where that is the kernel that the gap is of: ½κε ‖β‖².
pub(super) fn shift(dual: &Dual, beta: &[f64], epsilon: f64) -> f64 {
    match &dual.conjugate {
        Conjugate::Ridge { ridge } if is_beyond(ridge, epsilon) => {
            0.5 * dual.scale * epsilon * crate::grid::dot(beta, beta)
        }
        _ => 0.0,
    }
}

fn box_gap(qp: &Qp<'_>, beta: &[f64], product: &[f64], epsilon: f64) -> f64 {
    // Variables of one sample move its β together: the bounds of their sum are the sums of their bounds.
    let variables: Variables = qp.variables;
    let of_sample =
        |values: &[f64], i: usize| -> f64 { variables.of_sample(i).map(|v| values[v]).sum() };
    let mut bend = 0.0;
    let mut tilted = qp.linear.to_vec();
    for i in 0..variables.samples() {
        let (low, high) = (of_sample(qp.lower, i), of_sample(qp.upper, i));
        let own = of_sample(beta, i);
        bend += ((high - own) * (own - low)).max(0.0);
        for v in variables.of_sample(i) {
            tilted[v] += 0.5 * epsilon * (high + low - 2.0 * own);
        }
    }
    let tilted = Qp {
        linear: &tilted,
        ..*qp
    };
    0.5 * epsilon * bend + box_qp::gap(&tilted, beta, product)
}

/// The same for slopes g − b and an interval each; infinite where one has no end.
fn smooth_gap(function: &dyn SmoothConjugate, slopes: &[f64], beta: &[f64], epsilon: f64) -> f64 {
    let terms = beta.iter().zip(slopes).enumerate();
    terms
        .map(|(i, (&beta, slope))| {
            let (low, high) = function.interval(i);
            let bend = ((high - beta) * (beta - low)).max(0.0);
            if bend.is_infinite() {
                return f64::INFINITY;
            }
            let tilted = slope + 0.5 * epsilon * (high + low - 2.0 * beta);
            let (loss, _) = function.conjugate(i, tilted);
            let own = function.value(i, beta);
            let digits = 4.0 * f64::EPSILON * (own.abs() + loss.abs() + (beta * tilted).abs());
            0.5 * epsilon * bend + (own + loss - beta * tilted).max(0.0) + digits
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::super::tests::some_kernel;
    use super::*;
    use crate::grid::dot;
    use crate::linalg;
    use crate::random::Random;

    /// A kernel on n samples with its smallest eigenvalue at −ε.
    fn indefinite(n: usize, epsilon: f64, random: &mut Random) -> Vec<f64> {
        let mut matrix = some_kernel(n, random);
        let (smallest, _) = linalg::extreme_eigenvalues(&matrix, n).unwrap();
        for i in 0..n {
            matrix[i * n + i] -= smallest + epsilon;
        }
        matrix
    }

    fn times(matrix: &[f64], v: &[f64]) -> Vec<f64> {
        matrix
            .chunks_exact(v.len())
            .map(|row| dot(row, v))
            .collect()
    }

    /// q'β − ½ β'Kβ with β per sample the sum over its variables.
    fn value(linear: &[f64], matrix: &[f64], beta: &[f64], n: usize) -> f64 {
        let own: Vec<f64> = (0..n)
            .map(|i| beta.iter().skip(i).step_by(n).sum())
            .collect();
        dot(linear, beta) - 0.5 * dot(&own, &times(matrix, &own))
    }

    /// All vertices of the box with one sum: every variable at a bound but one.
    fn vertices(lower: &[f64], upper: &[f64], sum: f64) -> Vec<Vec<f64>> {
        let count = lower.len();
        let mut found = Vec::new();
        for free in 0..count {
            for choice in 0..1_usize << (count - 1) {
                let mut beta: Vec<f64> = (0..count)
                    .map(|v| {
                        let bit = if v < free { v } else { v.wrapping_sub(1) };
                        if v == free || (choice >> bit) & 1 == 0 {
                            lower[v]
                        } else {
                            upper[v]
                        }
                    })
                    .collect();
                beta[free] += sum - beta.iter().sum::<f64>();
                if beta[free] >= lower[free] - 1e-12 && beta[free] <= upper[free] + 1e-12 {
                    found.push(beta);
                }
            }
        }
        found
    }

    fn mixture(vertices: &[Vec<f64>], random: &mut Random) -> Vec<f64> {
        let mut weights: Vec<f64> = vertices.iter().map(|_| random.uniform().powi(8)).collect();
        let total: f64 = weights.iter().sum();
        for weight in &mut weights {
            *weight /= total;
        }
        let mut beta = vec![0.0; vertices[0].len()];
        for (weight, vertex) in weights.iter().zip(vertices) {
            linalg::axpy(*weight, vertex, &mut beta);
        }
        beta
    }

    /// A box with a sum as a machine has it.
    struct Case {
        samples: usize,
        lower: Vec<f64>,
        upper: Vec<f64>,
        sum: f64,
        linear: Vec<f64>,
    }

    /// Classification, one class, and regression with two variables a sample; so many variables each.
    fn cases(n: usize, random: &mut Random) -> Vec<Case> {
        let labels: Vec<f64> = (0..n)
            .map(|i| if i % 2 == 0 { 1.0 } else { -1.0 })
            .collect();
        let c = 3.0;
        let svc = Case {
            samples: n,
            lower: labels.iter().map(|y| (c * y).min(0.0)).collect(),
            upper: labels.iter().map(|y| (c * y).max(0.0)).collect(),
            sum: 0.0,
            linear: labels,
        };
        let one = Case {
            samples: n,
            lower: vec![0.0; n],
            upper: vec![0.6; n],
            sum: 1.0,
            linear: vec![0.0; n],
        };
        let half = n / 2;
        let values: Vec<f64> = (0..half).map(|_| random.uniform() - 0.5).collect();
        let below = values.iter().map(|y| y - 0.1);
        let above = values.iter().map(|y| y + 0.1);
        let svr = Case {
            samples: half,
            lower: [vec![0.0; half], vec![-c; half]].concat(),
            upper: [vec![c; half], vec![0.0; half]].concat(),
            sum: 0.0,
            linear: below.chain(above).collect(),
        };
        vec![svc, one, svr]
    }

    #[test]
    fn nothing_in_the_box_is_above_the_widened_gap() {
        let mut random = Random::new(5);
        let mut plain_was_wrong = 0;
        for round in 0..30 {
            for case in cases(6, &mut random) {
                let Case {
                    samples: n,
                    lower,
                    upper,
                    sum,
                    linear,
                } = case;
                let variables = lower.len();
                let epsilon = [0.0, 1e-3, 0.1, 1.0][round % 4];
                let matrix = indefinite(n, epsilon, &mut random);
                let all = vertices(&lower, &upper, sum);
                let beta = mixture(&all, &mut random);
                let own: Vec<f64> = (0..n)
                    .map(|i| beta.iter().skip(i).step_by(n).sum())
                    .collect();
                let product = times(&matrix, &own);
                let dual = Dual {
                    scale: 2.0,
                    variables: Variables::new(n, variables / n),
                    linear: linear.clone(),
                    diagonal: 0.0,
                    conjugate: Conjugate::Box {
                        lower: lower.clone(),
                        upper: upper.clone(),
                        sum,
                    },
                };
                let here = value(&linear, &matrix, &beta, n);
                let found = gap(&dual, &linear, &beta, &product, 0.0, epsilon);
                let plain = gap(&dual, &linear, &beta, &product, 0.0, 0.0);
                let qp = Qp {
                    variables: dual.variables,
                    linear: &linear,
                    lower: &lower,
                    upper: &upper,
                };
                assert!(
                    (plain - 2.0 * box_qp::gap(&qp, &beta, &product)).abs()
                        <= 1e-12 * (1.0 + plain)
                );
                assert!(found >= plain - 1e-12 * (1.0 + plain));
                // No more than the plain gap and ½ ε of the longest way in the box.
                let room: f64 = (0..n)
                    .map(|i| {
                        let range: f64 =
                            (i..variables).step_by(n).map(|v| upper[v] - lower[v]).sum();
                        range * range
                    })
                    .sum();
                assert!(found <= plain + epsilon * room + 1e-12);
                let mut points = all.clone();
                points.extend((0..200).map(|_| mixture(&all, &mut random)));
                for point in &points {
                    let more = 2.0 * (value(&linear, &matrix, point, n) - here);
                    assert!(
                        more <= found + 1e-10,
                        "{more} is above {found}, ε = {epsilon}"
                    );
                    plain_was_wrong += usize::from(more > plain + 1e-10);
                }
            }
        }
        assert!(plain_was_wrong > 0, "the problems must need the wider gap");
    }

    #[test]
    fn with_all_eigenvalues_at_minus_epsilon_it_is_exact() {
        // K = −ε I: from the middle of the box the best vertex is as far above as the bound says.
        let (n, c, epsilon) = (4, 2.0, 0.3);
        let (lower, upper) = (vec![-c; n], vec![c; n]);
        let dual = Dual {
            scale: 1.0,
            variables: Variables::one_each(n),
            linear: vec![0.0; n],
            diagonal: 0.0,
            conjugate: Conjugate::Box {
                lower,
                upper,
                sum: 0.0,
            },
        };
        let found = gap(
            &dual,
            &vec![0.0; n],
            &vec![0.0; n],
            &vec![0.0; n],
            0.0,
            epsilon,
        );
        assert!((found - 0.5 * epsilon * c * c * n as f64).abs() <= 1e-12);
    }

    #[test]
    fn variables_held_at_their_bounds_add_nothing() {
        // Slopes of ±1 hold all variables: a small ε changes nothing at all.
        let linear = [1.0, 1.0, -1.0, -1.0];
        let dual = Dual {
            scale: 1.0,
            variables: Variables::one_each(4),
            linear: linear.to_vec(),
            diagonal: 0.0,
            conjugate: Conjugate::Box {
                lower: vec![0.0, 0.0, -5.0, -5.0],
                upper: vec![5.0, 5.0, 0.0, 0.0],
                sum: 0.0,
            },
        };
        let beta = [5.0, 5.0, -5.0, -5.0];
        assert_eq!(gap(&dual, &linear, &beta, &[0.0; 4], 0.0, 1e-3), 0.0);
    }

    /// The dual of a ridge regression whose ridges are `least` and above, these, and any β.
    fn ridged(n: usize, least: f64, random: &mut Random) -> (Dual, Vec<f64>, Vec<f64>) {
        let mut numbers = || (0..n).map(|_| random.uniform() - 0.5).collect::<Vec<f64>>();
        let (linear, beta) = (numbers(), numbers());
        let ridge: Vec<f64> = (0..n).map(|i| least + 0.1 * i as f64).collect();
        let conjugate = Conjugate::Ridge {
            ridge: ridge.clone(),
        };
        let dual = Dual {
            scale: 2.0,
            variables: Variables::one_each(n),
            linear,
            diagonal: 0.0,
            conjugate,
        };
        (dual, ridge, beta)
    }

    #[test]
    fn a_ridge_above_epsilon_stays_definite() {
        let mut random = Random::new(9);
        let n = 5;
        for epsilon in [0.0, 0.05, 0.3] {
            let mut matrix = indefinite(n, epsilon, &mut random);
            let (dual, ridge, beta) = ridged(n, 0.4, &mut random);
            let (linear, product) = (dual.linear.clone(), times(&matrix, &beta));
            let found = gap(&dual, &linear, &beta, &product, 0.0, epsilon);
            for i in 0..n {
                matrix[i * n + i] += ridge[i];
            }
            let mut best = linear.clone();
            linalg::Cholesky::new(&matrix, n)
                .unwrap()
                .solve(&mut best, 1);
            let more =
                2.0 * (value(&linear, &matrix, &best, n) - value(&linear, &matrix, &beta, n));
            assert!(more <= found + 1e-12, "{more} is above {found}");
        }
    }

    #[test]
    fn a_ridge_below_epsilon_is_that_of_the_kernel_with_epsilon() {
        let mut random = Random::new(10);
        let n = 5;
        for epsilon in [0.4, 2.0] {
            let mut matrix = indefinite(n, epsilon, &mut random);
            let (dual, ridge, beta) = ridged(n, 0.2, &mut random);
            let (linear, product) = (dual.linear.clone(), times(&matrix, &beta));
            let found = gap(&dual, &linear, &beta, &product, 0.0, epsilon);
            let penalty = dot(&ridge, &beta.iter().map(|b| b * b).collect::<Vec<_>>());
            let here = 2.0 * value(&linear, &matrix, &beta, n) - penalty;
            for i in 0..n {
                matrix[i * n + i] += epsilon;
            }
            let shifted = 2.0 * value(&linear, &matrix, &beta, n) - penalty;
            let less = shift(&dual, &beta, epsilon);
            assert!((here - less - shifted).abs() <= 1e-12 * (1.0 + here.abs()));
            for i in 0..n {
                matrix[i * n + i] += ridge[i];
            }
            let mut best = linear.clone();
            let factor = linalg::Cholesky::new(&matrix, n).unwrap();
            factor.solve(&mut best, 1);
            // max of 2q'β − β'(K + ε + ρ)β
            let optimum = dot(&linear, &best);
            assert!(
                optimum <= shifted + found + 1e-12,
                "{optimum} {shifted} {found}"
            );
            assert_eq!(shift(&dual, &beta, 0.1), 0.0);
        }
    }

    /// φ = β²/2 on (−2, 1): φ* is that of a parabola between the slopes at the ends, and a straight line beyond.
    #[derive(Debug)]
    struct Parabola;

    impl SmoothConjugate for Parabola {
        fn interval(&self, _sample: usize) -> (f64, f64) {
            (-2.0, 1.0)
        }

        fn value(&self, _sample: usize, beta: f64) -> f64 {
            0.5 * beta * beta
        }

        fn slope(&self, _sample: usize, beta: f64) -> f64 {
            beta
        }

        fn curvature(&self, _sample: usize, _beta: f64) -> f64 {
            1.0
        }

        fn conjugate(&self, _sample: usize, slope: f64) -> (f64, f64) {
            let beta = slope.clamp(-2.0, 1.0);
            (beta * slope - 0.5 * beta * beta, beta)
        }
    }

    #[test]
    fn a_smooth_gap_covers_what_bends_upwards_and_no_more_at_the_ends() {
        for epsilon in [0.0, 0.3, 1.5] {
            for slope in [-9.0, -1.0, 0.0, 0.4, 6.0] {
                for beta in [-1.7, -0.5, 0.0, 0.6] {
                    let found = smooth_gap(&Parabola, &[slope, 0.2], &[beta, 0.2], epsilon);
                    let other = smooth_gap(&Parabola, &[0.2], &[0.2], epsilon);
                    let found = found - other;
                    // The rise to any other point, for K = −ε.
                    let rise = |to: f64| {
                        let change = to - beta;
                        slope * change - 0.5 * (to * to - beta * beta)
                            + 0.5 * epsilon * change * change
                    };
                    let all = (0..=300).map(|k| rise(-2.0 + 0.01 * f64::from(k)));
                    let best = all.fold(0.0_f64, f64::max);
                    assert!(
                        best <= found + 1e-12,
                        "{epsilon} {slope} {beta}: {best} {found}"
                    );
                    // At an end the bound is met.
                    let at_end = rise(-2.0).max(rise(1.0));
                    if at_end >= best - 1e-12 && slope.abs() > 4.0 {
                        assert!(
                            found <= best + 1e-12,
                            "{epsilon} {slope} {beta}: {best} {found}"
                        );
                    }
                    if epsilon == 0.0 {
                        let exact = rise(slope.clamp(-2.0, 1.0));
                        assert!((found - exact).abs() <= 1e-12);
                    }
                }
            }
        }
    }

    #[test]
    fn an_interval_without_an_end_has_no_bound() {
        #[derive(Debug)]
        struct HalfLine;
        impl SmoothConjugate for HalfLine {
            fn interval(&self, _sample: usize) -> (f64, f64) {
                (0.0, f64::INFINITY)
            }
            fn value(&self, _sample: usize, beta: f64) -> f64 {
                beta
            }
            fn slope(&self, _sample: usize, _beta: f64) -> f64 {
                1.0
            }
            fn curvature(&self, _sample: usize, _beta: f64) -> f64 {
                1.0
            }
            fn conjugate(&self, _sample: usize, _slope: f64) -> (f64, f64) {
                (0.0, 0.0)
            }
        }
        assert_eq!(smooth_gap(&HalfLine, &[0.1], &[2.0], 0.5), f64::INFINITY);
    }

    #[test]
    fn a_smooth_dual_has_the_gap_of_its_slopes_and_what_is_missing_of_the_sum() {
        let dual = Dual {
            scale: 2.0,
            variables: Variables::one_each(2),
            linear: vec![0.0; 2],
            diagonal: 0.0,
            conjugate: Conjugate::Smooth {
                function: std::sync::Arc::new(Parabola),
                sum: Some(0.5),
            },
        };
        let (linear, product, beta) = ([1.0, -0.5], [0.25, 0.5], [0.5, -1.0]);
        // b = 0.2: slopes 0.55 and −1.2, and 1 is missing.
        let slopes = [1.0 - 0.25 - 0.2, -0.5 - 0.5 - 0.2];
        for epsilon in [0.0, 0.1] {
            let expected = 2.0 * (smooth_gap(&Parabola, &slopes, &beta, epsilon) + 0.2);
            let found = gap(&dual, &linear, &beta, &product, 0.2, epsilon);
            assert!((found - expected).abs() <= 1e-14, "{found} {expected}");
        }
    }
}
