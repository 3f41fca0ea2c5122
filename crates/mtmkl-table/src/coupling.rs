//! Probabilities of classes from those of pairs (Wu, Lin and Weng 2004, second approach).

use crate::goal::Multiclass;

/// Probabilities of pairs are kept this far from 0 and 1.
const SURE: f64 = 1e-7;
/// How far from equal the entries of Qp may stay, by class.
const PRECISION: f64 = 1e-7;
/// The most rounds over all classes.
const ROUNDS: usize = 100;

/// min_p Σ_{i<j} (r_ji p_i − r_ij p_j)² with Σ p = 1, p ≥ 0, where r_ij = P(class i | class i or j).
///
/// `second[k]` is the probability of the second class of pair k, in the order of [`Multiclass::pairs`]. With Q_ii = Σ_{j≠i} r_ji²,
/// Q_ij = −r_ji r_ij the minimum is where Qp = (pᵀQp) 1; each round solves its rows one after the other.
pub(crate) fn coupled(classes: usize, second: &[f64]) -> Vec<f64> {
    let k = classes;
    // r[i][j], of which r[j][i] is the rest.
    let mut r = vec![0.5; k * k];
    for ((i, j), &p) in Multiclass::pairs(k).zip(second) {
        let p = p.clamp(SURE, 1.0 - SURE);
        (r[j * k + i], r[i * k + j]) = (p, 1.0 - p);
    }
    let mut q = vec![0.0; k * k];
    for i in 0..k {
        for j in (0..k).filter(|&j| j != i) {
            q[i * k + i] += r[j * k + i] * r[j * k + i];
            q[i * k + j] = -r[j * k + i] * r[i * k + j];
        }
    }
    let mut p = vec![1.0 / k as f64; k];
    let mut product: Vec<f64> = (0..k)
        .map(|i| (0..k).map(|j| q[i * k + j] * p[j]).sum())
        .collect();
    for _ in 0..ROUNDS {
        let square = |p: &[f64], product: &[f64]| -> f64 {
            p.iter().zip(product).map(|(p, own)| p * own).sum()
        };
        let mut all = square(&p, &product);
        let off = product.iter().map(|own| (own - all).abs());
        if off.fold(0.0, f64::max) < PRECISION / k as f64 {
            break;
        }
        for i in 0..k {
            let step = (all - product[i]) / q[i * k + i];
            p[i] += step;
            // Back to the sum of 1.
            let sum = 1.0 + step;
            all = (all + step * (step * q[i * k + i] + 2.0 * product[i])) / (sum * sum);
            for j in 0..k {
                product[j] = (product[j] + step * q[j * k + i]) / sum;
                p[j] /= sum;
            }
        }
    }
    p
}

#[cfg(test)]
mod tests {
    use mtmkl::random::Random;

    use super::*;

    fn loss(p: &[f64], second: &[f64]) -> f64 {
        let terms = Multiclass::pairs(p.len())
            .zip(second)
            .map(|((i, j), &of_j)| (of_j * p[i] - (1.0 - of_j) * p[j]).powi(2));
        terms.sum()
    }

    #[test]
    fn pairs_that_agree_give_the_probabilities_they_come_from() {
        let mut random = Random::new(1);
        for k in 2..8 {
            let raw: Vec<f64> = (0..k).map(|_| 0.05 + random.uniform()).collect();
            let sum: f64 = raw.iter().sum();
            let p: Vec<f64> = raw.iter().map(|value| value / sum).collect();
            let second: Vec<f64> = Multiclass::pairs(k)
                .map(|(i, j)| p[j] / (p[i] + p[j]))
                .collect();
            for (found, wanted) in coupled(k, &second).iter().zip(&p) {
                assert!((found - wanted).abs() < 1e-5, "{found} {wanted}");
            }
        }
    }

    #[test]
    fn nothing_nearby_is_better() {
        let mut random = Random::new(2);
        for k in 2..9 {
            let second: Vec<f64> = Multiclass::pairs(k)
                .map(|_| {
                    if random.uniform() < 0.2 {
                        1.0
                    } else {
                        random.uniform()
                    }
                })
                .collect();
            let p = coupled(k, &second);
            assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            assert!(p.iter().all(|one| *one >= 0.0), "{p:?}");
            let own = loss(&p, &second);
            for _ in 0..200 {
                let (from, to) = (random.below(k), random.below(k));
                let share = (0.05 * random.uniform()).min(p[from]);
                let mut other = p.clone();
                other[from] -= share;
                other[to] += share;
                assert!(loss(&other, &second) >= own - 1e-9, "{p:?}");
            }
        }
    }
}
