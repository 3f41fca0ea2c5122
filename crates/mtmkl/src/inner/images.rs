//! U_m = K_mβ of one task for single kernels: what J's derivatives are made of.

use crate::gram::{ByChange, Image, OnSupport, TaskGrams, by_kernel};
use crate::grid::dot;
use crate::ledger::{Buffer, Ledger};
use crate::linalg;
use crate::machine::Dual;

/// U_m for every kernel, as of one β.
///
/// Derivatives ask for U on the support alone, and half of the support's rows give it; the next θ then asks for the support's rows of
/// K(θ), to know Kβ elsewhere. Where most of the support sits at bounds, U is kept on all samples instead: it follows β by the change, and
/// Kβ = Σ_m θ_m U_m at any θ comes for free.
#[derive(Debug)]
pub(super) struct Images {
    /// β per sample.
    beta: Vec<f64>,
    /// Where U is known, in ascending order; β is zero elsewhere.
    places: Vec<usize>,
    /// For each kernel one number per place.
    values: Buffer<f64>,
    /// The β that U is to follow, and by how much U changes with it, while that is being made.
    next: Option<(Vec<f64>, Buffer<f64>)>,
    /// Σ|Δβ| of all changes that U is the sum of.
    path: f64,
    ledger: Ledger,
}

impl Images {
    /// Of β = 0.
    pub(super) fn new(samples: usize, ledger: &Ledger) -> Self {
        Self {
            beta: vec![0.0; samples],
            places: Vec::new(),
            values: ledger.zeros(0),
            next: None,
            path: 0.0,
            ledger: ledger.clone(),
        }
    }

    /// By how much U changes on all samples for this β, to be made and then taken in by [`Images::settle`]; nothing where U is that of it. What is
    /// known of it stays until then.
    pub(super) fn follow(&mut self, beta: Vec<f64>, kernels: usize) -> Option<ByChange<'_>> {
        let known = |i: usize| {
            if self.are_everywhere() {
                self.beta[i]
            } else {
                0.0
            }
        };
        let change: Vec<(usize, f64)> = (beta.iter().enumerate())
            .map(|(i, new)| (i, new - known(i)))
            .filter(|(_, change)| *change != 0.0)
            .collect();
        if change.is_empty() {
            if !self.are_everywhere() {
                self.beta.fill(0.0);
                self.make_room(kernels, (0..self.beta.len()).collect());
            }
            return None;
        }
        let room = self.ledger.zeros(kernels * beta.len());
        let (_, room) = self.next.insert((beta, room));
        Some(ByChange {
            change,
            out: by_kernel(room, kernels),
        })
    }

    /// Takes the change in where it was made; otherwise everything stays as it was.
    pub(super) fn settle(&mut self, is_made: bool) {
        let Some((beta, change)) = self.next.take().filter(|_| is_made) else {
            return;
        };
        if self.are_everywhere() {
            linalg::axpy(1.0, &change, &mut self.values);
            let pairs = beta.iter().zip(&self.beta);
            self.path += pairs.map(|(new, old)| (new - old).abs()).sum::<f64>();
        } else {
            self.values = change;
            self.places = (0..beta.len()).collect();
            self.path = beta.iter().map(|value| value.abs()).sum();
        }
        self.beta = beta;
    }

    /// These of fewer samples, whose places among all are given, for the β that is zero on the others.
    pub(super) fn spread(&self, places: &[usize], beta: Vec<f64>) -> Self {
        Self {
            beta,
            places: self.places.iter().map(|&at| places[at]).collect(),
            values: self.values.clone(),
            next: None,
            path: self.path,
            ledger: self.ledger.clone(),
        }
    }

    /// Whether U is known wherever this β is not zero.
    pub(super) fn are_on_support_of(&self, beta: &[f64]) -> bool {
        let support = |values: &[f64]| values.iter().filter(|value| **value != 0.0).count();
        let known = self.places.iter().filter(|&&i| beta[i] != 0.0).count();
        self.beta == beta && known == support(beta)
    }

    /// Kβ = Σ_m θ_m U_m where U is known, and nothing elsewhere.
    pub(super) fn known_product(&self, theta: &[f64]) -> Vec<Option<f64>> {
        let size = self.places.len();
        let mut sums = vec![0.0; size];
        for (weight, image) in theta.iter().zip(self.values.chunks_exact(size.max(1))) {
            linalg::axpy(*weight, image, &mut sums);
        }
        let mut product = vec![None; self.beta.len()];
        for (&place, sum) in self.places.iter().zip(sums) {
            product[place] = Some(sum);
        }
        product
    }

    /// Σ|Δβ| / Σ|β|, at least 1: by how much more rounding there is in U than in a sum made at once.
    pub(super) fn moved(&self) -> f64 {
        let length: f64 = self.beta.iter().map(|value| value.abs()).sum();
        if length > 0.0 {
            (self.path / length).max(1.0)
        } else {
            1.0
        }
    }

    /// Forgets U: the next one is made anew, and has no rounding of a β whose terms were larger.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.beta.len(), &self.ledger);
    }

    /// Zeros for each kernel at so many places; what was there before is given back first.
    fn make_room(&mut self, kernels: usize, places: Vec<usize>) {
        self.values = self.ledger.zeros(0);
        self.values = self.ledger.zeros(kernels * places.len());
        self.places = places;
    }

    /// Whether U is known on all samples.
    pub(super) fn are_everywhere(&self) -> bool {
        self.places.len() == self.beta.len()
    }

    /// What to ask of the Gram matrices for U of this β, which is free on these samples; nothing where it is known.
    pub(super) fn outdated(
        &mut self,
        beta: Vec<f64>,
        free: &[usize],
        grams: TaskGrams<'_>,
    ) -> Option<Image<'_>> {
        let kernels = grams.grams.kernels();
        let mut is_wanted: Vec<bool> = beta.iter().map(|value| *value != 0.0).collect();
        for &sample in free {
            is_wanted[sample] = true;
        }
        let support: Vec<usize> = (0..beta.len()).filter(|&i| is_wanted[i]).collect();
        let was_everywhere = self.are_everywhere();
        let known = |i: usize| if was_everywhere { self.beta[i] } else { 0.0 };
        let change: Vec<(usize, f64)> = (0..beta.len())
            .map(|i| (i, beta[i] - known(i)))
            .filter(|(_, change)| *change != 0.0)
            .collect();
        if beta == self.beta && (was_everywhere || support == self.places) {
            return None;
        }
        self.beta = beta;
        // Rows to be read, now and for K_FF at the next θ, against half of the support's now and all of them then. Kernel values that are made
        // on demand are made for the support alone.
        if 2 * (change.len() + free.len()) < 3 * support.len() && !grams.grams.are_made() {
            if !was_everywhere {
                self.make_room(kernels, (0..self.beta.len()).collect());
            }
            return Some(Image::Change(ByChange {
                change,
                out: by_kernel(&mut self.values, kernels),
            }));
        }
        self.make_room(kernels, support);
        Some(Image::Support(OnSupport {
            beta: &self.beta,
            support: &self.places,
            out: by_kernel(&mut self.values, kernels),
        }))
    }

    /// Whether U is known on all samples for this β.
    pub(super) fn are_those_of(&self, beta: &[f64]) -> bool {
        self.are_everywhere() && self.beta == beta
    }

    /// Kβ = Σ_m θ_m U_m, where U is known everywhere for this β.
    pub(super) fn product(&self, beta: &[f64], theta: &[f64]) -> Option<Vec<f64>> {
        if !self.are_those_of(beta) {
            return None;
        }
        let n = self.beta.len();
        let mut product = vec![0.0; n];
        for (weight, image) in theta.iter().zip(self.values.chunks_exact(n)) {
            if *weight != 0.0 {
                linalg::axpy(*weight, image, &mut product);
            }
        }
        Some(product)
    }

    /// s_m = κ ( ½ β'U_m − c d_m'β )
    pub(super) fn sensitivities(&self, dual: &Dual, grams: TaskGrams<'_>) -> Vec<f64> {
        let size = self.places.len();
        let beta: Vec<f64> = self.places.iter().map(|&i| self.beta[i]).collect();
        (0..grams.grams.kernels())
            .map(|kernel| {
                let quadratic = 0.5 * dot(&beta, &self.values[kernel * size..(kernel + 1) * size]);
                let diagonal = if dual.diagonal == 0.0 {
                    0.0
                } else {
                    let pairs = self.places.iter().zip(&beta);
                    pairs
                        .map(|(&i, beta)| grams.diagonal(kernel, i) * beta)
                        .sum()
                };
                dual.scale * (quadratic - dual.diagonal * diagonal)
            })
            .collect()
    }

    /// u_m = U_m − c d_m, what the curvature is made of: a row for each of these samples, a number per kernel.
    pub(super) fn derivatives(
        &self,
        dual: &Dual,
        grams: TaskGrams<'_>,
        samples: impl ExactSizeIterator<Item = usize>,
    ) -> Vec<f64> {
        let kernels = grams.grams.kernels();
        let samples: Vec<usize> = samples.collect();
        let mut block = self.rows(&samples, kernels);
        if dual.diagonal != 0.0 {
            for (row, &i) in block.chunks_exact_mut(kernels).zip(&samples) {
                for (kernel, value) in row.iter_mut().enumerate() {
                    *value -= dual.diagonal * grams.diagonal(kernel, i);
                }
            }
        }
        block
    }

    /// A row of U for each of these samples, a number per kernel; zeros where U is not known.
    fn rows(&self, samples: &[usize], kernels: usize) -> Vec<f64> {
        let size = self.places.len();
        let mut known = vec![None; self.beta.len()];
        for (place, &i) in self.places.iter().enumerate() {
            known[i] = Some(place);
        }
        let mut rows = Vec::with_capacity(samples.len() * kernels);
        for &i in samples {
            match known[i] {
                Some(place) => {
                    rows.extend((0..kernels).map(|kernel| self.values[kernel * size + place]));
                }
                None => rows.resize(rows.len() + kernels, 0.0),
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::some_kernel;
    use super::*;
    use crate::gram::given;
    use crate::machine::{Conjugate, Variables};
    use crate::random::Random;

    const SAMPLES: usize = 40;

    #[test]
    fn images_follow_beta_on_the_support_and_everywhere() {
        let mut random = Random::new(2);
        let matrices = (0..3).map(|_| some_kernel(SAMPLES, &mut random));
        let grams = given(SAMPLES, matrices.collect());
        let view = TaskGrams::all(grams.as_ref());
        let dual = Dual {
            scale: 1.0,
            variables: Variables::one_each(SAMPLES),
            linear: vec![1.0; SAMPLES],
            diagonal: 0.5,
            conjugate: Conjugate::Ridge { ridge: Vec::new() },
        };
        let mut images = Images::new(SAMPLES, &Ledger::default());
        let mut beta = vec![0.0; SAMPLES];
        let mut seen = [0; 2];
        for step in 0..60 {
            // By turns all of a large support moves, and a few of those at a bound.
            let moves = if (step / 10) % 2 == 0 { SAMPLES / 2 } else { 3 };
            let free: Vec<usize> = (0..moves).collect();
            for &i in &free {
                beta[i] = random.uniform();
            }
            for value in &mut beta[SAMPLES / 2..SAMPLES - 5] {
                *value = if step % 20 < 10 { 0.0 } else { 1.0 };
            }
            if let Some(image) = images.outdated(beta.clone(), &free, view) {
                view.images(vec![image]);
            }
            seen[usize::from(images.are_everywhere())] += 1;
            let rows: Vec<(usize, f64)> = beta.iter().copied().enumerate().collect();
            let sensitivities = images.sensitivities(&dual, view);
            let mut sum = vec![0.0; SAMPLES];
            for kernel in 0..3 {
                let mut image = vec![0.0; SAMPLES];
                view.add_rows(kernel, &rows, &mut image);
                let diagonal = dot(&beta, grams.diagonal(kernel));
                let wanted = 0.5 * dot(&beta, &image) - 0.5 * diagonal;
                assert!((sensitivities[kernel] - wanted).abs() < 1e-10);
                let known = images.rows(&free, 3);
                for (row, &i) in known.chunks_exact(3).zip(&free) {
                    assert!((row[kernel] - image[i]).abs() < 1e-10);
                }
                linalg::axpy(0.1 + kernel as f64, &image, &mut sum);
            }
            if let Some(product) = images.product(&beta, &[0.1, 1.1, 2.1]) {
                let pairs = product.iter().zip(&sum);
                assert!(pairs.into_iter().all(|(x, y)| (x - y).abs() < 1e-10));
            }
            assert!(images.outdated(beta.clone(), &free, view).is_none());
        }
        assert!(seen.iter().all(|&times| times > 5), "{seen:?}");
    }

    /// U of three samples, known at these places.
    fn images(beta: [f64; 3], places: &[usize], path: f64) -> Images {
        let ledger = Ledger::default();
        let mut values = ledger.zeros(places.len());
        values
            .iter_mut()
            .zip(1..)
            .for_each(|(value, number)| *value = f64::from(number));
        Images {
            beta: beta.to_vec(),
            places: places.to_vec(),
            values,
            next: None,
            path,
            ledger,
        }
    }

    #[test]
    fn images_are_on_the_support_where_each_place_of_it_is_known() {
        let beta = [1.0, 0.0, -2.0];
        assert!(images(beta, &[0, 2], 0.0).are_on_support_of(&beta));
        assert!(images(beta, &[0, 1, 2], 0.0).are_on_support_of(&beta));
        assert!(!images(beta, &[0], 0.0).are_on_support_of(&beta));
        assert!(!images(beta, &[0, 1], 0.0).are_on_support_of(&beta));
        assert!(!images(beta, &[0, 2], 0.0).are_on_support_of(&[1.0, 0.0, 2.0]));
    }

    #[test]
    fn changes_add_up_relative_to_where_they_led() {
        let beta = [1.0, 0.0, -2.0];
        assert_eq!(images(beta, &[0, 1, 2], 6.0).moved(), 2.0);
        assert_eq!(images(beta, &[0, 1, 2], 1.0).moved(), 1.0);
        assert_eq!(images([0.0; 3], &[0, 1, 2], 6.0).moved(), 1.0);
        let mut some = images(beta, &[0, 1, 2], 6.0);
        for (is_made, path) in [(false, 6.0), (true, 6.0 + 1.5)] {
            let change = some.follow(vec![1.5, 1.0, -2.0], 1).unwrap();
            assert_eq!(change.change, [(0, 0.5), (1, 1.0)]);
            some.settle(is_made);
            assert_eq!(some.path, path);
        }
        assert_eq!(some.beta, [1.5, 1.0, -2.0]);
        // From the support alone all of it is made.
        let mut some = images(beta, &[0, 2], 6.0);
        assert_eq!(
            some.follow(vec![1.0, 0.0, -2.5], 1).unwrap().change,
            [(0, 1.0), (2, -2.5)]
        );
        some.settle(true);
        assert_eq!((some.path, some.are_everywhere()), (3.5, true));
        some.clear();
        assert_eq!(
            (some.path, some.moved(), some.beta.clone()),
            (0.0, 1.0, vec![0.0; 3])
        );
        assert!(some.places.is_empty());
    }
}
