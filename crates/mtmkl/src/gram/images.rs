//! U_m = K_mβ for all kernels and all tasks on the same samples, as the engine asks for it.
//!
//! On the support of β, which is where sensitivities β'K_mβ and the curvature want it: matrices are symmetric, so half of the support's rows
//! is enough, and each piece of a row is read once, or made once, for all tasks. Or on all samples, by the change of β.

use rayon::prelude::*;

use super::TaskGrams;
use super::mapped::{Mapped, Triangle, visit};
use super::matrix::{Matrix, Values};
use crate::vector;

/// What one task asks for.
#[derive(Debug)]
pub(crate) enum Image<'a> {
    Support(OnSupport<'a>),
    Change(ByChange<'a>),
}

/// U_m on the support of β, anew.
#[derive(Debug)]
pub(crate) struct OnSupport<'a> {
    /// β, one number per sample.
    pub(crate) beta: &'a [f64],
    /// In ascending order; β is zero everywhere else.
    pub(crate) support: &'a [usize],
    /// For one kernel after the other, a number for each sample of the support.
    pub(crate) out: &'a mut [f64],
}

/// U_m on all samples, by the change of β.
#[derive(Debug)]
pub(crate) struct ByChange<'a> {
    /// Samples, and by how much their β changed.
    pub(crate) change: Vec<(usize, f64)>,
    /// U_m as it was; for one kernel after the other, a number for each sample.
    pub(crate) out: &'a mut [f64],
}

/// β of one task on the samples that matrices are read for.
#[derive(Debug)]
struct Factor {
    beta: Vec<f64>,
    /// Whether the product is wanted there; where it is not, β is zero.
    is_wanted: Vec<bool>,
    /// Where the task's support is.
    places: Vec<usize>,
}

impl Factor {
    /// On these samples, in ascending order, the support among them.
    fn new(task: &OnSupport<'_>, samples: &[usize]) -> Self {
        let mut is_wanted = vec![false; samples.len()];
        let mut places = Vec::with_capacity(task.support.len());
        let mut wanted = task.support.iter().peekable();
        for (place, i) in samples.iter().enumerate() {
            if wanted.next_if_eq(&i).is_some() {
                is_wanted[place] = true;
                places.push(place);
            }
        }
        Self {
            beta: samples.iter().map(|&i| task.beta[i]).collect(),
            is_wanted,
            places,
        }
    }
}

/// Kβ of all tasks, as it is added up: rows are those of the lower triangle of K.
#[derive(Debug)]
struct Sums<'a> {
    factors: &'a [Factor],
    products: Vec<Vec<f64>>,
}

/// Rows that are added at a time.
const FOUR: usize = 4;
/// Rows that one task after the other takes from: they stay in the cache meanwhile.
const BLOCK: usize = 32;

impl<'a> Sums<'a> {
    fn new(factors: &'a [Factor]) -> Self {
        let products = factors
            .iter()
            .map(|factor| vec![0.0; factor.beta.len()])
            .collect();
        Self { factors, products }
    }

    /// Takes in K(row, from..from + values), up to the diagonal at most.
    fn add(&mut self, row: usize, from: usize, values: &[f64]) {
        for (factor, product) in self.factors.iter().zip(&mut self.products) {
            if factor.is_wanted[row] {
                add_part(factor, product, row, from, values);
            }
        }
    }

    /// The products where they are wanted, task by task.
    fn write(&self, outs: &mut [&mut [f64]]) {
        for ((factor, product), out) in self.factors.iter().zip(&self.products).zip(outs) {
            for (value, &place) in out.iter_mut().zip(&factor.places) {
                *value = product[place];
            }
        }
    }

    /// Takes in some rows up to the diagonal, in ascending order.
    fn add_block(&mut self, at: &[usize], rows: &[&[f64]]) {
        for (factor, product) in self.factors.iter().zip(&mut self.products) {
            let pairs = at.iter().copied().zip(rows.iter().copied());
            let wanted: Vec<(usize, &[f64])> =
                pairs.filter(|(row, _)| factor.is_wanted[*row]).collect();
            let (fours, rest) = wanted.as_chunks::<FOUR>();
            for four in fours {
                let common = four[0].0;
                let heads = four.map(|(_, values)| &values[..common]);
                let weights = four.map(|(row, _)| factor.beta[row]);
                let beta = &factor.beta[..common];
                let sums = vector::fold_rows(heads, beta, weights, &mut product[..common]);
                for ((row, values), sum) in four.iter().zip(sums) {
                    product[*row] += sum;
                    add_part(factor, product, *row, common, &values[common..]);
                }
            }
            for (row, values) in rest {
                add_part(factor, product, *row, 0, values);
            }
        }
    }
}

fn add_part(factor: &Factor, product: &mut [f64], row: usize, from: usize, values: &[f64]) {
    // The entry on the diagonal counts once.
    let others = row.min(from + values.len()) - from;
    let range = from..from + others;
    let own = factor.beta[row];
    let [mut sum] = vector::fold_rows(
        [&values[..others]],
        &factor.beta[range.clone()],
        [own],
        &mut product[range],
    );
    if let Some(&diagonal) = values.get(others) {
        sum += own * diagonal;
    }
    product[row] += sum;
}

/// Takes in the rows of an n × n matrix that are used, as they lie there.
fn add_rows(sums: &mut Sums<'_>, matrix: &[f64], n: usize, used: &[usize]) {
    for at in used.chunks(BLOCK) {
        let rows: Vec<&[f64]> = at.iter().map(|i| &matrix[i * n..=i * n + i]).collect();
        sums.add_block(at, &rows);
    }
}

/// The same in single precision.
fn add_single(sums: &mut Sums<'_>, matrix: &[f32], n: usize, used: &[usize]) {
    // In double precision they take more room than the cache has for a whole block.
    const SOME: usize = BLOCK / 4;
    let mut wide = vec![0.0; SOME * n];
    for at in used.chunks(SOME) {
        for (out, &i) in wide.chunks_exact_mut(n).zip(at) {
            vector::widen(&matrix[i * n..=i * n + i], &mut out[..=i]);
        }
        let wide = wide.chunks_exact(n).zip(at);
        let rows: Vec<&[f64]> = wide.map(|(row, &i)| &row[..=i]).collect();
        sums.add_block(at, &rows);
    }
}

/// Takes in the entries of an n × n matrix that are used, picked out of their rows.
fn add_picked<T: Copy + Into<f64>>(sums: &mut Sums<'_>, matrix: &[T], n: usize, used: &[usize]) {
    let mut row = Vec::with_capacity(used.len());
    for (at, &i) in used.iter().enumerate() {
        let values = &matrix[i * n..(i + 1) * n];
        row.clear();
        row.extend(used[..=at].iter().map(|&j| values[j].into()));
        sums.add(at, 0, &row);
    }
}

/// One kernel, and where its U go.
struct Job<'a> {
    matrix: &'a Matrix,
    outs: Vec<&'a mut [f64]>,
}

/// Kernels that are made from one base at a time.
const TOGETHER: usize = 8;

impl<'a> Job<'a> {
    fn mapped(&self) -> Option<&'a Mapped> {
        match self.matrix {
            Matrix::Mapped(mapped) => Some(mapped),
            _ => None,
        }
    }

    fn has_base_of(&self, other: &Self) -> bool {
        let address = |job: &Self| job.mapped().map(Mapped::base_address);
        address(self).is_some() && address(self) == address(other)
    }
}

impl TaskGrams<'_> {
    /// U_m of all these tasks for every kernel. Threads share the work; who does what makes no difference.
    pub(crate) fn images(&self, tasks: Vec<Image<'_>>) {
        let (mut supports, mut changes) = (Vec::new(), Vec::new());
        for task in tasks {
            match task {
                Image::Support(task) => supports.push(task),
                Image::Change(task) => changes.push(task),
            }
        }
        self.add_changes(changes);
        self.images_on_supports(supports);
    }

    fn add_changes(&self, mut tasks: Vec<ByChange<'_>>) {
        // Kernel by kernel: one task after the other finds rows in the cache.
        let mut outs: Vec<_> = tasks
            .iter_mut()
            .map(|task| (&task.change, task.out.chunks_exact_mut(self.count())))
            .collect();
        let jobs: Vec<Vec<_>> = (0..self.grams.kernels())
            .map(|_| {
                let outs = outs.iter_mut();
                outs.filter_map(|(change, outs)| Some((*change, outs.next()?)))
                    .collect()
            })
            .collect();
        jobs.into_par_iter().enumerate().for_each(|(kernel, job)| {
            for (change, out) in job {
                self.add_rows(kernel, change, out);
            }
        });
    }

    fn images_on_supports(&self, mut tasks: Vec<OnSupport<'_>>) {
        if tasks.is_empty() {
            return;
        }
        let count = self.count();
        let mut is_used = vec![false; count];
        for task in &tasks {
            for &i in task.support {
                is_used[i] = true;
            }
        }
        let all: Vec<usize> = (0..count).collect();
        let used: Vec<usize> = (0..count).filter(|&i| is_used[i]).collect();
        let positions: Vec<usize> = used.iter().map(|&i| self.position(i)).collect();
        let factors = |samples: &[usize]| -> Vec<Factor> {
            let tasks = tasks.iter();
            tasks.map(|task| Factor::new(task, samples)).collect()
        };
        // Rows that lie there as the task sees them are read as they are: faster than picking what is used.
        let lies_there =
            |matrix: &Matrix| self.view.is_all() && !matches!(matrix, Matrix::Mapped(_));
        let matrices = &self.grams.matrices;
        let of_all = factors(if matrices.iter().any(lies_there) {
            &all
        } else {
            &[]
        });
        let of_used = factors(if matrices.iter().all(lies_there) {
            &[]
        } else {
            &used
        });
        let triangle = Triangle::new(used.len());

        let mut outs: Vec<_> = tasks
            .iter_mut()
            .map(|task| task.out.chunks_exact_mut(task.support.len().max(1)))
            .collect();
        let mut jobs: Vec<Job<'_>> = matrices
            .iter()
            .map(|matrix| {
                let outs = outs.iter_mut().map(|out| out.next().unwrap_or_default());
                Job {
                    matrix,
                    outs: outs.collect(),
                }
            })
            .collect();
        // Kernels of the same base together, so that what is used of it is picked once for several of them.
        jobs.sort_by_key(|job| match job.matrix {
            Matrix::Mapped(mapped) => mapped.base_address(),
            _ => 0,
        });
        let mut groups: Vec<Vec<Job<'_>>> = Vec::new();
        for job in jobs {
            match groups.last_mut() {
                Some(group) if group.len() < TOGETHER && group[0].has_base_of(&job) => {
                    group.push(job);
                }
                _ => groups.push(vec![job]),
            }
        }
        let n = self.grams.samples;
        groups.into_par_iter().for_each(|mut group| {
            let made: Vec<&Mapped> = group.iter().filter_map(Job::mapped).collect();
            if !made.is_empty() {
                let mut sums: Vec<Sums<'_>> = made.iter().map(|_| Sums::new(&of_used)).collect();
                visit(&made, &triangle, &positions, |number, row, from, values| {
                    sums[number].add(row, from, values);
                });
                for (job, sums) in group.iter_mut().zip(&sums) {
                    sums.write(&mut job.outs);
                }
                return;
            }
            for Job { matrix, outs } in &mut group {
                let lies_there = lies_there(matrix);
                let mut sums = Sums::new(if lies_there { &of_all } else { &of_used });
                let values = matrix.values(0, n * n);
                match (&values, lies_there) {
                    (Values::Double(values), true) => add_rows(&mut sums, values, n, &used),
                    (Values::Single(values), true) => add_single(&mut sums, values, n, &used),
                    (Values::Double(values), _) => add_picked(&mut sums, values, n, &positions),
                    (Values::Single(values), _) => add_picked(&mut sums, values, n, &positions),
                    (Values::Made(values), _) => add_picked(&mut sums, values, n, &positions),
                }
                sums.write(outs);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Samples;
    use crate::gram::{Definiteness, Grams, Storage, build};
    use crate::kernel::{KernelView, parse_kernels};
    use crate::random::Random;
    use crate::view::View;

    fn grams(n: usize, storage: Storage, single: bool) -> Grams {
        let mut random = Random::new(n as u64);
        let values = (0..3 * n).map(|_| random.uniform()).collect();
        let samples = Samples::new(values, n, 3).unwrap();
        let kernels: Vec<KernelView> =
            ["rbf:sigma=0.5|2", "poly:degree=3", "chi2", "rbf:sigma=1@f1"]
                .iter()
                .flat_map(|spec| parse_kernels(spec).unwrap())
                .collect();
        let definiteness = Definiteness::Assume;
        let built = build(&samples, 0, &kernels, true, definiteness, storage, single);
        built.unwrap().0
    }

    /// Some β with about this share of zeros, and the support; now and then a sample belongs to it though its β is zero.
    fn some(count: usize, zeros: f64, random: &mut Random) -> (Vec<f64>, Vec<usize>) {
        let mut support = Vec::new();
        let beta = (0..count)
            .map(|i| {
                if random.uniform() < zeros {
                    return 0.0;
                }
                support.push(i);
                if i % 7 == 3 {
                    0.0
                } else {
                    random.uniform() - 0.5
                }
            })
            .collect();
        (beta, support)
    }

    #[test]
    fn images_are_those_of_whole_rows() {
        for n in [1, 2, 5, 40, 130] {
            let mut random = Random::new(7);
            let mut view: Vec<usize> = (0..n).collect();
            random.shuffle(&mut view);
            view.truncate(n.div_ceil(2));
            let cases = [
                (Storage::Kept, false),
                (Storage::Kept, true),
                (Storage::OnDemand, false),
                (Storage::OnDemand, true),
            ];
            for ((storage, single), view) in cases
                .into_iter()
                .flat_map(|case| [(case, View::All), (case, View::of(view.as_slice()))])
            {
                let grams = grams(n, storage, single);
                let task = TaskGrams {
                    grams: &grams,
                    view: &view,
                };
                let count = task.count();
                let asked: Vec<(Vec<f64>, Vec<usize>)> = [0.0, 0.6, 0.2, 1.0]
                    .into_iter()
                    .map(|zeros| some(count, zeros, &mut random))
                    .collect();
                let on = |threads: usize| -> Vec<Vec<f64>> {
                    let mut outs: Vec<Vec<f64>> = asked
                        .iter()
                        .map(|(_, support)| vec![f64::NAN; support.len() * grams.kernels()])
                        .collect();
                    let images: Vec<Image<'_>> = asked
                        .iter()
                        .zip(&mut outs)
                        .map(|((beta, support), out)| {
                            Image::Support(OnSupport { beta, support, out })
                        })
                        .collect();
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                    pool.unwrap().install(|| task.images(images));
                    outs
                };
                let found = on(1);
                assert_eq!(found, on(3));
                for ((beta, support), found) in asked.iter().zip(&found) {
                    let rows: Vec<(usize, f64)> = beta.iter().copied().enumerate().collect();
                    for kernel in 0..grams.kernels() {
                        let mut whole = vec![0.0; count];
                        task.add_rows(kernel, &rows, &mut whole);
                        let found = &found[kernel * support.len()..];
                        for (&i, value) in support.iter().zip(found) {
                            assert!((whole[i] - value).abs() < 1e-12, "{storage:?} {single}");
                        }
                    }
                    let mut out = vec![0.25; count * grams.kernels()];
                    let mut wanted = out.clone();
                    for (kernel, wanted) in wanted.chunks_exact_mut(count).enumerate() {
                        task.add_rows(kernel, &rows, wanted);
                    }
                    task.images(vec![Image::Change(ByChange {
                        change: rows,
                        out: &mut out,
                    })]);
                    assert_eq!(out, wanted);
                }
            }
        }
    }
}
