//! Leave-one-out errors of kernel ridge regression in closed form.

use crate::linalg::symmetric_eigen;

/// W^{½}KW^{½} = V diag(d) V', from which the errors of every ridge follow.
#[derive(Debug)]
pub(super) struct LeaveOneOut {
    count: usize,
    /// V, row by row.
    vectors: Vec<f64>,
    /// d
    values: Vec<f64>,
    targets: Vec<f64>,
    weights: Vec<f64>,
    /// V'W^{½}y and V'W^{½}1.
    turned: [Vec<f64>; 2],
}

impl LeaveOneOut {
    /// Of a symmetric n × n matrix K, n targets y and n weights > 0; `None` where the eigenvalues cannot be computed.
    pub(super) fn new(mut matrix: Vec<f64>, targets: &[f64], weights: &[f64]) -> Option<Self> {
        let n = targets.len();
        let roots: Vec<f64> = weights.iter().map(|weight| weight.sqrt()).collect();
        for (row, root) in matrix.chunks_exact_mut(n.max(1)).zip(&roots) {
            for (value, other) in row.iter_mut().zip(&roots) {
                *value *= root * other;
            }
        }
        let (values, vectors) = symmetric_eigen(&matrix, n)?;
        let turn = |of: &dyn Fn(usize) -> f64| {
            let mut turned = vec![0.0; n];
            for (i, row) in vectors.chunks_exact(n.max(1)).enumerate() {
                let scale = roots[i] * of(i);
                for (sum, value) in turned.iter_mut().zip(row) {
                    *sum += scale * value;
                }
            }
            turned
        };
        let turned = [turn(&|i| targets[i]), turn(&|_| 1.0)];
        Some(Self {
            count: n,
            vectors,
            values,
            targets: targets.to_vec(),
            weights: weights.to_vec(),
            turned,
        })
    }

    /// Σ_i w_i r_i², r_i = ((Ay)_i − c_i (A1)_i)/A_ii with A = (K + λW⁻¹)⁻¹: the error at sample i of the machine that learns from the others.
    /// c_i is the mean of the others' targets where a machine takes it off before it learns, else 0.
    pub(super) fn loss(&self, lambda: f64, is_centred: bool) -> f64 {
        let inverse: Vec<f64> = self
            .values
            .iter()
            .map(|d| 1.0 / (d.max(0.0) + lambda))
            .collect();
        let total: f64 = self.weights.iter().sum();
        let sum: f64 = self
            .targets
            .iter()
            .zip(&self.weights)
            .map(|(y, w)| y * w)
            .sum();
        let rows = self.vectors.chunks_exact(self.count.max(1)).enumerate();
        rows.map(|(i, row)| {
            let (mut own, mut of_targets, mut of_ones) = (0.0, 0.0, 0.0);
            for (k, (v, inverse)) in row.iter().zip(&inverse).enumerate() {
                own += v * v * inverse;
                of_targets += v * inverse * self.turned[0][k];
                of_ones += v * inverse * self.turned[1][k];
            }
            let (weight, target) = (self.weights[i], self.targets[i]);
            let left = total - weight;
            let mean = if is_centred && left > 0.0 {
                (sum - weight * target) / left
            } else {
                0.0
            };
            let error = (of_targets - mean * of_ones) / (weight.sqrt() * own);
            weight * error * error
        })
        .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::solve_small;
    use crate::random::Random;

    /// The error at one sample of the machine that learns from the others, by solving its equations.
    fn by_hand(
        matrix: &[f64],
        y: &[f64],
        w: &[f64],
        lambda: f64,
        is_centred: bool,
        out: usize,
    ) -> f64 {
        let n = y.len();
        let others: Vec<usize> = (0..n).filter(|&i| i != out).collect();
        let mean = if is_centred {
            let sum: f64 = others.iter().map(|&i| w[i] * y[i]).sum();
            sum / others.iter().map(|&i| w[i]).sum::<f64>()
        } else {
            0.0
        };
        let mut system: Vec<f64> = others
            .iter()
            .flat_map(|&i| {
                let ridge = move |j: usize| if i == j { lambda / w[i] } else { 0.0 };
                others.iter().map(move |&j| matrix[i * n + j] + ridge(j))
            })
            .collect();
        let mut alpha: Vec<f64> = others.iter().map(|&i| y[i] - mean).collect();
        assert!(solve_small(&mut system, &mut alpha, n - 1));
        let said = others
            .iter()
            .zip(&alpha)
            .map(|(&i, a)| a * matrix[out * n + i]);
        y[out] - mean - said.sum::<f64>()
    }

    #[test]
    fn errors_are_those_of_machines_that_did_not_see_the_sample() {
        let mut random = Random::new(5);
        let n = 17;
        let x: Vec<f64> = (0..n).map(|_| 3.0 * random.uniform()).collect();
        let matrix: Vec<f64> = (0..n * n)
            .map(|at| (-(x[at / n] - x[at % n]).powi(2)).exp())
            .collect();
        let y: Vec<f64> = x.iter().map(|x| 5.0 + x.sin() + random.uniform()).collect();
        for w in [vec![1.0; n], (0..n).map(|i| 0.5 + i as f64 / 9.0).collect()] {
            let folds = LeaveOneOut::new(matrix.clone(), &y, &w).unwrap();
            for lambda in [1e-3, 0.1, 2.0] {
                for is_centred in [false, true] {
                    let errors = (0..n).map(|i| by_hand(&matrix, &y, &w, lambda, is_centred, i));
                    let expected: f64 = errors.zip(&w).map(|(error, w)| w * error * error).sum();
                    let found = folds.loss(lambda, is_centred);
                    assert!(
                        (found - expected).abs() < 1e-8 * expected,
                        "{found} {expected}"
                    );
                }
            }
        }
    }
}
