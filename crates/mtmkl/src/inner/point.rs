//! β of one task, and what is known about it.

use super::Here;
use super::images::Images;
use super::rounding::product_errors;
use crate::gram::TaskGrams;
use crate::grid::dot;
use crate::ledger::Ledger;
use crate::machine::Variables;

/// β, Kβ where it is known, b and U.
#[derive(Debug)]
pub(super) struct Point {
    /// One per variable.
    pub(super) beta: Vec<f64>,
    /// Kβ and its θ, where known.
    product: Option<(Vec<f64>, Vec<f64>)>,
    /// b as of then.
    pub(super) offset: f64,
    /// U_m = K_mβ.
    pub(super) images: Images,
    /// Where large memory is taken from.
    pub(super) ledger: Ledger,
}

impl Point {
    pub(super) fn new(beta: Vec<f64>, samples: usize, ledger: &Ledger) -> Self {
        Self {
            beta,
            product: None,
            offset: 0.0,
            images: Images::new(samples, ledger),
            ledger: ledger.clone(),
        }
    }

    /// Forgets Kβ.
    pub(super) fn forget_product(&mut self) {
        self.product = None;
    }

    /// Whether Kβ is known at this θ.
    pub(super) fn has_product_of(&self, theta: &[f64]) -> bool {
        self.product.as_ref().is_some_and(|(_, of)| of == theta)
    }

    /// Kβ as it is known; empty where it is not.
    pub(super) fn product_values(&self) -> &[f64] {
        let product = self.product.as_ref();
        product.map_or(&[], |(product, _)| product)
    }

    /// Kβ at this θ, as known from now on.
    pub(super) fn set_product(&mut self, product: Vec<f64>, theta: &[f64]) {
        self.product = Some((product, theta.to_vec()));
    }

    /// Kβ, from what is known or from rows of K(θ).
    pub(super) fn take_product(&mut self, variables: Variables, here: Here<'_>) -> Vec<f64> {
        match self.product.take() {
            Some((product, theta)) if theta == here.theta => product,
            _ => {
                let beta = variables.sums(&self.beta);
                let known = self.images.product(&beta, here.theta);
                known.unwrap_or_else(|| here.rows.product(&beta))
            }
        }
    }

    /// Kβ from U, which follows β on all samples.
    pub(super) fn known_product(&self, variables: Variables, theta: &[f64]) -> Vec<f64> {
        let known = self.images.product(&variables.sums(&self.beta), theta);
        known.unwrap_or_else(|| vec![0.0; variables.samples()])
    }

    /// Kβ where U is known and 0 elsewhere, and how far from the truth each can be: by rounding, and by √(K_ii β'Kβ) where it is not known.
    pub(super) fn product_where_known(
        &self,
        variables: Variables,
        theta: &[f64],
        diagonal: &[f64],
    ) -> (Vec<f64>, Vec<f64>) {
        let known = self.images.known_product(theta);
        let mut errors = product_errors(variables, &self.beta, diagonal);
        let product: Vec<f64> = known.iter().map(|known| known.unwrap_or(0.0)).collect();
        let length = dot(&variables.sums(&self.beta), &product).max(0.0);
        for ((error, known), diagonal) in errors.iter_mut().zip(&known).zip(diagonal) {
            if known.is_none() {
                *error += (diagonal.max(0.0) * length).sqrt();
            }
        }
        (product, errors)
    }

    /// What rounding can do to Kβ where U followed β by its changes: these add up theirs.
    pub(super) fn followed_errors(&self, variables: Variables, diagonal: &[f64]) -> Vec<f64> {
        let moved = self.images.moved();
        let errors = product_errors(variables, &self.beta, diagonal);
        errors.into_iter().map(|error| moved * error).collect()
    }

    /// Kβ from U, where that is known everywhere: many small steps add up their rounding.
    pub(super) fn renew_product(&mut self, variables: Variables, theta: &[f64]) {
        if let Some(product) = self.images.product(&variables.sums(&self.beta), theta) {
            self.set_product(product, theta);
        }
    }

    /// U of this task alone, for one variable a sample.
    pub(super) fn make_images(&mut self, grams: TaskGrams<'_>) {
        let images = self.images.outdated(self.beta.clone(), &[], grams);
        grams.images(images.into_iter().collect());
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::whole;
    use super::*;
    use crate::gram::{CombinedRows, given};

    /// K = [[2, 1, 0], [1, 3, 1], [0, 1, 4]]
    const KERNEL: [f64; 9] = [2.0, 1.0, 0.0, 1.0, 3.0, 1.0, 0.0, 1.0, 4.0];

    #[test]
    fn a_product_is_known_for_its_own_theta_until_it_is_forgotten() {
        let grams = given(3, vec![KERNEL.to_vec()]);
        let all = Variables::one_each(3);
        let mut point = Point::new(vec![1.0, -1.0, 0.5], 3, &Ledger::default());
        let product = |point: &mut Point, theta: f64| {
            let rows = CombinedRows::new(whole(&grams), &[theta]);
            point.take_product(
                all,
                Here {
                    grams: whole(&grams),
                    rows: &rows,
                    theta: &[theta],
                },
            )
        };
        assert!(!point.has_product_of(&[2.0]) && point.product_values().is_empty());
        assert_eq!(product(&mut point, 2.0), [2.0, -3.0, 2.0]);
        // What is said to be known is taken at its word, once.
        point.set_product(vec![7.0; 3], &[2.0]);
        assert!(point.has_product_of(&[2.0]) && !point.has_product_of(&[1.0]));
        assert_eq!(product(&mut point, 2.0), [7.0; 3]);
        assert_eq!(product(&mut point, 2.0), [2.0, -3.0, 2.0]);
        point.set_product(vec![7.0; 3], &[2.0]);
        assert_eq!(product(&mut point, 1.0), [1.0, -1.5, 1.0]);
        point.set_product(vec![7.0; 3], &[2.0]);
        point.forget_product();
        assert!(!point.has_product_of(&[2.0]));
        // U, once known everywhere, says it for every θ.
        point.set_product(vec![7.0; 3], &[2.0]);
        point.make_images(whole(&grams));
        point.renew_product(all, &[2.0]);
        assert_eq!(point.product_values(), [2.0, -3.0, 2.0]);
    }

    #[test]
    fn where_a_product_is_not_known_it_is_bounded() {
        let grams = given(3, vec![KERNEL.to_vec()]);
        let all = Variables::one_each(3);
        let mut point = Point::new(vec![1.0, 0.0, 2.0], 3, &Ledger::default());
        // Where much is free, U is made on the support alone.
        let images = point
            .images
            .outdated(point.beta.clone(), &[0, 2], whole(&grams));
        whole(&grams).images(images.into_iter().collect());
        let diagonal: Vec<f64> = [2.0, 3.0, 4.0].map(|d| 0.5 * d).to_vec();
        let (product, errors) = point.product_where_known(all, &[0.5], &diagonal);
        assert_eq!(product, [1.0, 0.0, 4.0]);
        // β'Kβ = 1 + 8, and rounding.
        let rounding = product_errors(all, &point.beta, &diagonal);
        let bound = (1.5_f64 * 9.0).sqrt();
        assert_eq!((errors[0], errors[2]), (rounding[0], rounding[2]));
        assert!((errors[1] - rounding[1] - bound).abs() <= 1e-14);
        assert!(bound >= 1.5, "|Kβ| there");
    }
}
