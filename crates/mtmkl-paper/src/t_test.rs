//! Student's t-test for paired figures.

/// What a paired t-test says about the mean of the differences a − b.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairedTest {
    /// The mean difference.
    pub difference: f64,
    /// t = mean / (standard deviation / √n); infinite where all differences are equal and not 0.
    pub t: f64,
    /// The chance of a |t| at least this large if the true mean is 0, with n − 1 degrees of freedom.
    pub p: f64,
}

impl PairedTest {
    /// `+` where a is better at this level, `-` where it is worse, `=` where no difference is shown.
    pub fn mark(&self, level: f64) -> char {
        if self.p.is_nan() || self.p >= level {
            '='
        } else if self.difference > 0.0 {
            '+'
        } else {
            '-'
        }
    }
}

/// The two-sided paired t-test of a against b, figures of the same draws. Without at least two pairs nothing is shown: p is 1. Figures
/// that are not as many are no pairs: nothing is a number then.
pub fn paired_t_test(a: &[f64], b: &[f64]) -> PairedTest {
    if a.len() != b.len() {
        return PairedTest {
            difference: f64::NAN,
            t: f64::NAN,
            p: f64::NAN,
        };
    }
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let n = differences.len() as f64;
    let difference = differences.iter().sum::<f64>() / n;
    if differences.len() < 2 {
        return PairedTest {
            difference,
            t: 0.0,
            p: 1.0,
        };
    }
    let squares: f64 = differences.iter().map(|d| (d - difference).powi(2)).sum();
    let error = (squares / (n - 1.0) / n).sqrt();
    if difference == 0.0 {
        return PairedTest {
            difference,
            t: 0.0,
            p: 1.0,
        };
    }
    let t = difference / error;
    PairedTest {
        difference,
        t,
        p: two_sided(t, n - 1.0),
    }
}

/// P(|T| ≥ |t|) = I_x(ν/2, ½) with x = ν / (ν + t²).
fn two_sided(t: f64, freedom: f64) -> f64 {
    incomplete_beta(0.5 * freedom, 0.5, freedom / (freedom + t * t))
}

/// The regularised incomplete beta function I_x(a, b), by its continued fraction (Abramowitz and Stegun 26.5.8) with
/// Lentz' method.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges quickly below the mean; above, by symmetry.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let front =
        (log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp() / a;
    let away = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for step in 1..300 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away(1.0 + even * d);
        c = away(1.0 + even / c);
        fraction *= c * d;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away(1.0 + odd * d);
        c = away(1.0 + odd / c);
        fraction *= c * d;
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    front * fraction
}

/// ln Γ(x) for x > 0, by Lanczos' approximation (g = 7, nine terms), to about 15 digits.
fn log_gamma(x: f64) -> f64 {
    const TERMS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        // Γ(x) Γ(1 − x) = π / sin πx
        let pi = std::f64::consts::PI;
        return (pi / (pi * x).sin()).ln() - log_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let sum = TERMS[1..]
        .iter()
        .enumerate()
        .fold(TERMS[0], |sum, (i, term)| sum + term / (x + i as f64 + 1.0));
    let t = x + 7.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_of_t() {
        // Critical values of tables: two-sided 0.05 (and 0.01, 0.001) for these degrees of freedom.
        for (freedom, t, p) in [
            (1.0, 12.706_204_736, 0.05),
            (2.0, 4.302_652_730, 0.05),
            (9.0, 3.249_835_542, 0.01),
            (19.0, 2.093_024_054, 0.05),
            (19.0, 2.860_934_606, 0.01),
            (30.0, 3.645_958_635, 0.001),
            (120.0, 1.979_930_405, 0.05),
        ] {
            assert!(
                (two_sided(t, freedom) - p).abs() < 1e-9,
                "{freedom} {t}: {}",
                two_sided(t, freedom)
            );
            assert_eq!(two_sided(t, freedom), two_sided(-t, freedom));
        }
        // Closed forms: one degree of freedom is Cauchy's distribution, two have P = 1 − t/√(2 + t²).
        for t in [0.01_f64, 0.3, 1.0, 4.0, 50.0, 1e4] {
            let cauchy = 1.0 - 2.0 / std::f64::consts::PI * t.atan();
            assert!((two_sided(t, 1.0) - cauchy).abs() < 1e-12, "{t}");
            let two = 1.0 - t / (2.0 + t * t).sqrt();
            assert!((two_sided(t, 2.0) - two).abs() < 1e-12, "{t}");
        }
    }

    #[test]
    fn gamma_at_known_places() {
        let pi = std::f64::consts::PI;
        for (x, value) in [
            (1.0, 1.0),
            (5.0, 24.0),
            (0.5, pi.sqrt()),
            (2.5, 0.75 * pi.sqrt()),
        ] {
            assert!((log_gamma(x).exp() / value - 1.0).abs() < 1e-13, "{x}");
        }
    }

    #[test]
    fn sleep_after_two_drugs() {
        // Student's own data (Biometrika 1908): t = 4.0621, 9 degrees of freedom, p = 0.002833.
        let a = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let b = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let test = paired_t_test(&a, &b);
        assert!((test.difference - 1.58).abs() < 1e-12);
        assert!((test.t - 4.062_128).abs() < 1e-6, "{}", test.t);
        assert!((test.p - 0.002_833).abs() < 1e-6, "{}", test.p);
        assert_eq!(test.mark(0.05), '+');
        assert_eq!(paired_t_test(&b, &a).mark(0.05), '-');
        assert_eq!(test.mark(0.001), '=');
    }

    #[test]
    fn degenerate_pairs() {
        assert_eq!(paired_t_test(&[1.0], &[0.0]).mark(0.05), '=');
        assert_eq!(paired_t_test(&[1.0, 1.0], &[1.0, 1.0]).mark(0.05), '=');
        assert_eq!(paired_t_test(&[2.0, 2.0], &[1.0, 1.0]).mark(0.05), '+');
        assert_eq!(paired_t_test(&[], &[]).mark(0.05), '=');
        let unpaired = paired_t_test(&[1.0, 2.0, 3.0], &[1.0, 2.0]);
        assert!(unpaired.p.is_nan() && unpaired.mark(0.05) == '=');
    }
}
