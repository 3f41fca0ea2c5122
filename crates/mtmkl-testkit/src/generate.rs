//! Small deterministic problems: the same seed gives the same bits on every machine that has IEEE doubles.
//!
//! (`ln`, `cos` and `exp` come from the platform's library, so normals and Gaussian kernels agree to the last few bits only.)

/// splitmix64: state += golden ratio, output = a mix of the state. Small, and good enough for test data.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator that depends on the seed alone.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// k / 2⁵³, uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// √(−2 ln u) cos 2πv, standard normal (Box–Muller).
    pub fn normal(&mut self) -> f64 {
        // 1 − u is in (0, 1], so the logarithm is finite.
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// A number in 0..n, by the high half of a product; the bias is below n / 2⁶⁴.
    pub fn below(&mut self, n: usize) -> usize {
        assert!(n > 0, "no number is below 0");
        let product = u128::from(self.next()) * n as u128;
        usize::try_from(product >> 64).expect("less than n")
    }
}

/// n points of d standard normal coordinates, by rows.
pub fn points(random: &mut Random, n: usize, d: usize) -> Vec<f64> {
    (0..n * d).map(|_| random.normal()).collect()
}

/// A smooth function of a point, neither linear nor even, so that no single kernel is the whole truth: `w'x + ½(x_1² − 1) + sin 2x_d`.
fn response(weights: &[f64], point: &[f64]) -> f64 {
    let linear: f64 = weights.iter().zip(point).map(|(w, x)| w * x).sum();
    let last = point.last().copied().unwrap_or(0.0);
    let first = point.first().copied().unwrap_or(0.0);
    linear + 0.5 * (first * first - 1.0) + (2.0 * last).sin()
}

/// ±1 = sign(response + ½ noise), both classes present; n ≥ 2. The function itself is drawn from `random`, so tasks differ.
pub fn labels(random: &mut Random, points: &[f64], n: usize, d: usize) -> Vec<f64> {
    assert!(n >= 2, "two classes need two points");
    let weights: Vec<f64> = (0..d).map(|_| random.normal()).collect();
    let mut labels: Vec<f64> = points
        .chunks_exact(d)
        .take(n)
        .map(|point| {
            if response(&weights, point) + 0.5 * random.normal() >= 0.0 {
                1.0
            } else {
                -1.0
            }
        })
        .collect();
    if labels.iter().all(|&label| label == labels[0]) {
        labels[0] = -labels[0];
    }
    labels
}

/// response + 0.3 noise: regression targets. The function itself is drawn from `random`, so tasks differ.
pub fn values(random: &mut Random, points: &[f64], n: usize, d: usize) -> Vec<f64> {
    let weights: Vec<f64> = (0..d).map(|_| random.normal()).collect();
    points
        .chunks_exact(d)
        .take(n)
        .map(|point| response(&weights, point) + 0.3 * random.normal())
        .collect()
}

fn gram(points: &[f64], n: usize, d: usize, kernel: impl Fn(&[f64], &[f64]) -> f64) -> Vec<f64> {
    assert!(points.len() >= n * d, "n·d coordinates");
    let mut gram = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let value = kernel(&points[i * d..(i + 1) * d], &points[j * d..(j + 1) * d]);
            gram[i * n + j] = value;
            gram[j * n + i] = value;
        }
    }
    gram
}

/// x'z.
pub fn dot(x: &[f64], z: &[f64]) -> f64 {
    x.iter().zip(z).map(|(a, b)| a * b).sum()
}

/// exp(−γ‖x − z‖²).
pub fn gaussian_gram(points: &[f64], n: usize, d: usize, gamma: f64) -> Vec<f64> {
    gram(points, n, d, |x, z| {
        let distance: f64 = x.iter().zip(z).map(|(a, b)| (a - b) * (a - b)).sum();
        (-gamma * distance).exp()
    })
}

/// x'z; of rank at most d.
pub fn linear_gram(points: &[f64], n: usize, d: usize) -> Vec<f64> {
    gram(points, n, d, dot)
}

/// (x'z + coef0)^degree.
pub fn polynomial_gram(points: &[f64], n: usize, d: usize, degree: i32, coef0: f64) -> Vec<f64> {
    gram(points, n, d, |x, z| (dot(x, z) + coef0).powi(degree))
}

/// `K_ij` ← `K_ij` / √(`K_ii` `K_jj`), with diagonal exactly 1; a row whose diagonal is not positive becomes 0.
pub fn unit_diagonal(gram: &mut [f64], n: usize) {
    let inverse: Vec<f64> = (0..n)
        .map(|i| gram[i * n + i])
        .map(|value| if value > 0.0 { 1.0 / value.sqrt() } else { 0.0 })
        .collect();
    for i in 0..n {
        for j in 0..n {
            gram[i * n + j] *= inverse[i] * inverse[j];
        }
        if inverse[i] > 0.0 {
            gram[i * n + i] = 1.0;
        }
    }
}

/// Whether K + jitter·I has a Cholesky factor.
pub fn is_semi_definite(gram: &[f64], n: usize) -> bool {
    let mut k = gram.to_vec();
    let jitter = 1e-12 * (0..n).map(|i| k[i * n + i]).sum::<f64>();
    for j in 0..n {
        let below: f64 = (0..j).map(|p| k[j * n + p] * k[j * n + p]).sum();
        let pivot = k[j * n + j] + jitter - below;
        if pivot.is_nan() || pivot <= 0.0 {
            return false;
        }
        k[j * n + j] = pivot.sqrt();
        for i in j + 1..n {
            let inner: f64 = (0..j).map(|p| k[i * n + p] * k[j * n + p]).sum();
            k[i * n + j] = (k[i * n + j] - inner) / k[j * n + j];
        }
    }
    true
}

/// Av, A by rows.
pub fn times(matrix: &[f64], v: &[f64]) -> Vec<f64> {
    let rows = matrix.chunks_exact(v.len());
    rows.map(|row| dot(row, v)).collect()
}

/// A⁻¹y by elimination with row exchanges.
///
/// # Panics
/// When there is nothing to eliminate.
pub fn eliminate(mut a: Vec<f64>, mut y: Vec<f64>) -> Vec<f64> {
    let n = y.len();
    for k in 0..n {
        let pivot = (k..n)
            .max_by(|&i, &j| a[i * n + k].abs().total_cmp(&a[j * n + k].abs()))
            .expect("a row for each column");
        for j in 0..n {
            a.swap(k * n + j, pivot * n + j);
        }
        y.swap(k, pivot);
        for i in k + 1..n {
            let factor = a[i * n + k] / a[k * n + k];
            for j in k..n {
                a[i * n + j] -= factor * a[k * n + j];
            }
            y[i] -= factor * y[k];
        }
    }
    for k in (0..n).rev() {
        y[k] = (y[k] - (k + 1..n).map(|j| a[k * n + j] * y[j]).sum::<f64>()) / a[k * n + k];
    }
    y
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_is_reproducible_and_spread() {
        // Reference outputs of splitmix64 with seed 1234567.
        let mut random = Random::new(1_234_567);
        let expected = [
            6_457_827_717_110_365_317_u64,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(expected, [random.next(), random.next(), random.next()]);
        let mut random = Random::new(7);
        let draws: Vec<f64> = (0..20_000).map(|_| random.normal()).collect();
        let mean = draws.iter().sum::<f64>() / 20_000.0;
        let variance = draws.iter().map(|x| x * x).sum::<f64>() / 20_000.0 - mean * mean;
        assert!(
            mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05,
            "mean {mean}, variance {variance}"
        );
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random.uniform())));
        let mut counts = [0; 5];
        for _ in 0..5000 {
            counts[random.below(5)] += 1;
        }
        assert!(
            counts.iter().all(|&count| (850..1150).contains(&count)),
            "{counts:?}"
        );
    }

    #[test]
    fn both_classes_always() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let x = points(&mut random, 2, 3);
            let y = labels(&mut random, &x, 2, 3);
            assert_eq!(y[0] + y[1], 0.0);
        }
    }

    #[test]
    fn grams() {
        let x = [1.0, 0.0, 1.0, 1.0];
        assert_eq!(linear_gram(&x, 2, 2), [1.0, 1.0, 1.0, 2.0]);
        assert_eq!(polynomial_gram(&x, 2, 2, 2, 1.0), [4.0, 4.0, 4.0, 9.0]);
        assert_eq!(
            gaussian_gram(&x, 2, 2, 1.0),
            [1.0, (-1.0_f64).exp(), (-1.0_f64).exp(), 1.0]
        );
        let mut gram = linear_gram(&x, 2, 2);
        unit_diagonal(&mut gram, 2);
        assert!((gram[1] - 0.5_f64.sqrt()).abs() < 1e-15 && gram[3] == 1.0);
        let y = values(&mut Random::new(1), &x, 2, 2);
        assert!(y.len() == 2 && y.iter().all(|value| value.is_finite()));
    }
}
