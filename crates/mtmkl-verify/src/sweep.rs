//! One sweep over all rows against all rows that matter: everything that P and D need to know of a kernel.
//!
//! Rows are taken in blocks by as many threads as there are; what a block adds up to is added in the order of blocks, so that no figure depends
//! on the threads.

use rayon::prelude::*;

use crate::pairs::Pairs;
use crate::statistic::Approximate;
use crate::sum::Sum;

/// Rows at a time.
const BLOCK: usize = 32;
/// Blocks of which the sums are there at once: more than there are threads, so that none waits long.
const AT_ONCE: usize = 256;

/// One task on the set: its kernel weights, and its machine and its witness by row of the set.
#[derive(Debug)]
pub(crate) struct Point<'a> {
    pub(crate) theta: &'a [f64],
    /// Which rows of the set it learned from.
    pub(crate) is_own: Vec<bool>,
    /// β, one each row of the set.
    pub(crate) beta: Vec<f64>,
    /// β̂, one each row of the set.
    pub(crate) witness: Vec<f64>,
    /// Whether k(x, x) is wanted: the sphere's machine looks at it.
    pub(crate) wants_diagonal: bool,
}

/// What a row of the set is to a task.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Image {
    /// Σ_j K(θ)_ij β_j
    pub(crate) product: f64,
    /// Σ_j δK(θ)_ij |β_j|: what the errors of kernel values do to it.
    pub(crate) error: f64,
    /// Σ_j |K|(θ)_ij |β_j|: the size of what it is added up from.
    pub(crate) size: f64,
    /// K(θ)_ii
    pub(crate) diagonal: Approximate,
}

/// What a kernel is to a task's witness.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bend {
    /// β̂'K_mβ̂
    pub(crate) square: Sum,
    /// Σ |β̂_i| δK_ij |β̂_j|
    pub(crate) error: f64,
    /// Σ |β̂_i| |K_ij| |β̂_j|
    pub(crate) size: f64,
    /// d_m'β̂
    pub(crate) along: Sum,
    /// Σ δd_i |β̂_i|
    pub(crate) along_error: f64,
}

/// All of it for one task.
#[derive(Debug, Clone)]
pub(crate) struct Swept {
    /// By row of the set; nothing where the row is not the task's.
    pub(crate) images: Vec<Image>,
    /// By kernel.
    pub(crate) bends: Vec<Bend>,
}

impl Swept {
    /// Adds the block of rows that comes next.
    fn add(&mut self, next: Self) {
        self.images.extend(next.images);
        for (all, part) in self.bends.iter_mut().zip(next.bends) {
            all.square.join(part.square);
            all.along.join(part.along);
            all.error += part.error;
            all.size += part.size;
            all.along_error += part.along_error;
        }
    }
}

/// The sweep over a set, for all tasks on it.
pub(crate) fn sweep(
    pairs: &Pairs<'_>,
    rows: usize,
    kernels: usize,
    points: &[Point<'_>],
) -> Vec<Swept> {
    let matters = |row: usize| {
        let mut points = points.iter();
        points.any(|point| point.beta[row] != 0.0 || point.witness[row] != 0.0)
    };
    let support: Vec<usize> = (0..rows).filter(|&row| matters(row)).collect();
    let starts: Vec<usize> = (0..rows).step_by(BLOCK).collect();
    let mut all: Vec<Swept> = points
        .iter()
        .map(|_| Swept {
            images: Vec::with_capacity(rows),
            bends: vec![Bend::default(); kernels],
        })
        .collect();
    for some in starts.chunks(AT_ONCE) {
        let blocks: Vec<Vec<Swept>> = some
            .par_iter()
            .map(|&first| {
                let block = Block {
                    pairs,
                    kernels,
                    points,
                    support: &support,
                };
                block.swept(first, (first + BLOCK).min(rows))
            })
            .collect();
        for block in blocks {
            for (all, part) in all.iter_mut().zip(block) {
                all.add(part);
            }
        }
    }
    all
}

struct Block<'a> {
    pairs: &'a Pairs<'a>,
    kernels: usize,
    points: &'a [Point<'a>],
    support: &'a [usize],
}

impl Block<'_> {
    fn swept(&self, first: usize, until: usize) -> Vec<Swept> {
        let mut swept: Vec<Swept> = (self.points.iter())
            .map(|_| Swept {
                images: vec![Image::default(); until - first],
                bends: vec![Bend::default(); self.kernels],
            })
            .collect();
        let mut row = Row {
            statistics: Vec::new(),
            values: vec![Approximate::default(); self.kernels],
            products: vec![Sum::default(); self.points.len()],
        };
        for i in first..until {
            self.row(i, i - first, &mut row, &mut swept);
        }
        swept
    }

    /// Row i of all kernels, against all rows that matter.
    fn row(&self, i: usize, at: usize, row: &mut Row, swept: &mut [Swept]) {
        let is_own = |point: &Point<'_>| point.is_own[i];
        if !self.points.iter().any(is_own) {
            return;
        }
        row.products.fill(Sum::default());
        for &j in self.support {
            // Which kernels somebody looks at, of this pair.
            let is_image = |point: &Point<'_>| point.is_own[i] && point.beta[j] != 0.0;
            let is_bend = |point: &Point<'_>| point.witness[i] != 0.0 && point.witness[j] != 0.0;
            let all = self.points.iter().any(is_bend);
            if !all && !self.points.iter().any(is_image) {
                continue;
            }
            self.pairs.statistics(i, j, &mut row.statistics);
            for kernel in 0..self.kernels {
                let is_wanted = all
                    || self
                        .points
                        .iter()
                        .any(|point| point.theta[kernel] != 0.0 && is_image(point));
                if is_wanted {
                    row.values[kernel] = self.pairs.value(kernel, i, j, &row.statistics);
                }
            }
            for (number, (point, swept)) in self.points.iter().zip(swept.iter_mut()).enumerate() {
                if is_image(point) {
                    let image = &mut swept.images[at];
                    combine(
                        point,
                        &row.values,
                        point.beta[j],
                        &mut row.products[number],
                        image,
                    );
                }
                if is_bend(point) {
                    let (own, other) = (point.witness[i], point.witness[j]);
                    for (bend, k) in swept.bends.iter_mut().zip(&row.values) {
                        let product = own * other;
                        bend.square.add_product(product, k.value);
                        bend.error += product.abs() * k.error;
                        bend.size += (product * k.value).abs();
                    }
                }
            }
        }
        for (number, (point, swept)) in self.points.iter().zip(swept.iter_mut()).enumerate() {
            swept.images[at].product = row.products[number].value();
            if point.wants_diagonal && point.is_own[i] {
                self.diagonal(
                    i,
                    point,
                    &mut row.statistics,
                    &mut swept.images[at],
                    &mut swept.bends,
                );
            }
        }
    }

    /// K_ii of each kernel.
    fn diagonal(
        &self,
        i: usize,
        point: &Point<'_>,
        statistics: &mut Vec<Approximate>,
        image: &mut Image,
        bends: &mut [Bend],
    ) {
        self.pairs.statistics(i, i, statistics);
        for (kernel, bend) in bends.iter_mut().enumerate() {
            let k = self.pairs.value(kernel, i, i, statistics);
            image.diagonal.value += point.theta[kernel] * k.value;
            image.diagonal.error += point.theta[kernel].abs() * k.error;
            bend.along.add_product(point.witness[i], k.value);
            bend.along_error += point.witness[i].abs() * k.error;
        }
    }
}

/// What is used again for each row.
struct Row {
    statistics: Vec<Approximate>,
    values: Vec<Approximate>,
    products: Vec<Sum>,
}

/// Adds K(θ)_ij β_j.
fn combine(
    point: &Point<'_>,
    values: &[Approximate],
    beta: f64,
    product: &mut Sum,
    image: &mut Image,
) {
    let (mut error, mut size) = (0.0, 0.0);
    for (&weight, k) in point.theta.iter().zip(values) {
        if weight != 0.0 {
            product.add_product(weight * beta, k.value);
            error += weight.abs() * k.error;
            size += (weight * k.value).abs();
        }
    }
    image.error += error * beta.abs();
    image.size += size * beta.abs();
}
