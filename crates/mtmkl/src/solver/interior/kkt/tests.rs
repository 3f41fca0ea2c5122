//! The factored system against the same matrix, assembled densely with every border and solved by a general solver.

use super::*;
use crate::random::Random;
use crate::sharing::Reach;

fn numbers(count: usize, random: &mut Random) -> Vec<f64> {
    (0..count).map(|_| 0.1 + random.uniform()).collect()
}

/// A system in pieces.
struct Pieces {
    matrices: Vec<Vec<RowMatrix>>,
    couplings: Vec<Option<Border>>,
    /// `None` for a term without variables.
    reaches: Vec<Option<Reach>>,
    /// F, G and b of each task.
    factors: Vec<Vec<f64>>,
    cuts: Vec<Vec<f64>>,
    damping: Vec<Option<Vec<f64>>>,
    right: Vec<Grid>,
    kernels: usize,
}

/// What the random pieces are to be like.
struct Wanted {
    tasks: usize,
    kernels: usize,
    rank: usize,
    cuts: usize,
    is_damped: bool,
    reaches: Vec<Option<Reach>>,
}

impl Pieces {
    fn new(wanted: Wanted, random: &mut Random) -> Self {
        let Wanted { tasks, kernels, .. } = wanted;
        let border = |size: usize, random: &mut Random| Border {
            vector: numbers(size, random),
            // Some are taken off.
            inverse: [0.7, 0.05, -3.0 * size as f64][random.below(3)],
        };
        let mut pieces = Self {
            matrices: Vec::new(),
            couplings: Vec::new(),
            factors: Vec::new(),
            cuts: Vec::new(),
            damping: Vec::new(),
            right: Vec::new(),
            kernels,
            reaches: wanted.reaches,
        };
        for reach in &pieces.reaches {
            let rows = reach.as_ref().map_or(0, |reach| reach.rows(tasks));
            let row = |random: &mut Random| {
                let count = random.below(3);
                let borders = (0..count).map(|_| border(kernels, random));
                let mut borders: Vec<Border> = borders.collect();
                if let (Some(first), true) = (borders.first_mut(), kernels > 1) {
                    // An equality.
                    first.inverse *= random.below(2) as f64;
                }
                RowMatrix {
                    diagonal: numbers(kernels, random),
                    borders,
                }
            };
            pieces
                .matrices
                .push((0..rows).map(|_| row(random)).collect());
            let is_coupled = rows > 1 && random.below(2) == 0;
            pieces
                .couplings
                .push(is_coupled.then(|| border(rows * kernels, random)));
            let right = numbers(rows * kernels, random);
            pieces.right.push(Grid::from_values(rows, kernels, right));
        }
        for _ in 0..tasks {
            let centred = |count: usize, random: &mut Random| {
                let values = numbers(count, random).into_iter();
                values.map(|value| value - 0.6).collect()
            };
            pieces.factors.push(centred(wanted.rank * kernels, random));
            pieces.cuts.push(centred(wanted.cuts * kernels, random));
            let damping = wanted.is_damped.then(|| numbers(kernels, random));
            pieces.damping.push(damping);
        }
        pieces
    }

    fn hessian<'a>(&'a self, task: usize, gram: Option<&'a [f64]>) -> Hessian<'a> {
        Hessian {
            factor: &self.factors[task],
            gram,
            cuts: &self.cuts[task],
            damping: self.damping[task].as_deref(),
        }
    }

    /// Without refinement: that would make up for a wrong factorisation.
    fn factored(&self) -> Vec<Grid> {
        let kernels = self.kernels;
        let grams: Vec<Option<Vec<f64>>> = self
            .factors
            .iter()
            .map(|factor| {
                Hessian::wants_gram(factor, kernels).then(|| {
                    let mut gram = vec![0.0; kernels * kernels];
                    linalg::add_gram(factor, kernels, &mut gram);
                    gram
                })
            })
            .collect();
        let tasks = grams.iter().enumerate();
        let hessians: Vec<Hessian<'_>> = tasks
            .map(|(task, gram)| self.hessian(task, gram.as_deref()))
            .collect();
        let layout = Layout::new(self.reaches.iter().map(Option::as_ref), hessians.len());
        let system =
            KktSystem::new(&self.matrices, &self.couplings, &layout, &hessians, kernels).unwrap();
        let none = system.no_multipliers();
        let answer = system.solve_once(self.right.clone(), none).unwrap();
        let refined = system.solve(&self.right, MOST_REFINEMENTS).unwrap();
        let mut target = system.no_multipliers();
        let left = system.residual(&self.right, &answer, &mut target);
        assert!(norm(&left) + target.size() < 1e-8);
        for (a, b) in answer.x.iter().zip(&refined) {
            assert!(
                a.values()
                    .iter()
                    .zip(b.values())
                    .all(|(a, b)| (a - b).abs() < 1e-8)
            );
        }
        answer.x
    }

    /// W of a task, by plain sums.
    fn dense_hessian(&self, task: usize) -> Vec<f64> {
        let m = self.kernels;
        let mut w = vec![0.0; m * m];
        for rows in [&self.factors[task], &self.cuts[task]] {
            for row in rows.chunks_exact(m) {
                for i in 0..m {
                    for j in 0..m {
                        w[i * m + j] += row[i] * row[j];
                    }
                }
            }
        }
        for (i, b) in self.damping[task].iter().flatten().enumerate() {
            w[i * m + i] += b;
        }
        w
    }

    /// All x, then one multiplier for each border.
    fn dense(&self) -> Vec<Grid> {
        let (m, tasks) = (self.kernels, self.factors.len());
        let mut first = vec![0];
        for grid in &self.right {
            first.push(first[first.len() - 1] + grid.values().len());
        }
        let variables = first[first.len() - 1];
        let at = |term: usize, row: usize| first[term] + row * m;
        let mut borders: Vec<(usize, &Border)> = Vec::new();
        for (term, rows) in self.matrices.iter().enumerate() {
            for (row, matrix) in rows.iter().enumerate() {
                borders.extend(matrix.borders.iter().map(|border| (at(term, row), border)));
            }
            borders.extend(
                self.couplings[term]
                    .iter()
                    .map(|border| (at(term, 0), border)),
            );
        }
        let size = variables + borders.len();
        let mut matrix = vec![0.0; size * size];
        for (term, rows) in self.matrices.iter().enumerate() {
            for (row, own) in rows.iter().enumerate() {
                for (kernel, value) in own.diagonal.iter().enumerate() {
                    let i = at(term, row) + kernel;
                    matrix[i * size + i] += value;
                }
            }
        }
        for task in 0..tasks {
            let w = self.dense_hessian(task);
            let reaching: Vec<usize> = (0..self.matrices.len())
                .flat_map(|term| (0..self.matrices[term].len()).map(move |row| (term, row)))
                .filter(|&(term, row)| {
                    let reach = self.reaches[term].as_ref().unwrap();
                    reach.tasks_of(row, tasks).contains(&task)
                })
                .map(|(term, row)| at(term, row))
                .collect();
            for &one in &reaching {
                for &other in &reaching {
                    for i in 0..m {
                        for j in 0..m {
                            matrix[(one + i) * size + other + j] += w[i * m + j];
                        }
                    }
                }
            }
        }
        for (number, (start, border)) in borders.iter().enumerate() {
            let line = variables + number;
            for (i, value) in border.vector.iter().enumerate() {
                matrix[(start + i) * size + line] = *value;
                matrix[line * size + start + i] = *value;
            }
            matrix[line * size + line] = -border.inverse;
        }
        let mut x: Vec<f64> = self
            .right
            .iter()
            .flat_map(|g| g.values().to_vec())
            .collect();
        x.resize(size, 0.0);
        assert!(linalg::solve_small(&mut matrix, &mut x, size));
        let grids = self.right.iter().zip(&first);
        grids
            .map(|(grid, &first)| {
                let values = x[first..first + grid.values().len()].to_vec();
                Grid::from_values(grid.rows(), m, values)
            })
            .collect()
    }
}

fn compare(wanted: Wanted, random: &mut Random) {
    let name = format!("{:?}, {} kernels", wanted.reaches, wanted.kernels);
    let pieces = Pieces::new(wanted, random);
    for (a, b) in pieces.factored().iter().zip(&pieces.dense()) {
        for (a, b) in a.values().iter().zip(b.values()) {
            assert!(
                (a - b).abs() <= 1e-7 * (1.0 + b.abs()),
                "{name}: {a} and {b}"
            );
        }
    }
}

fn tree(tasks: usize) -> Reach {
    let groups: Vec<Vec<usize>> = (0..tasks).map(|task| vec![task]).collect();
    let halves = [(0..tasks / 2).collect(), (tasks / 2..tasks).collect()];
    Reach::groups(halves.into_iter().chain(groups))
}

#[test]
fn every_reach_is_solved_as_the_dense_system_is() {
    let mut random = Random::new(29);
    for (tasks, kernels, rank) in [(1, 4, 3), (4, 1, 1), (4, 5, 2), (5, 3, 0), (4, 80, 2)] {
        let overlapping = Reach::groups([vec![0, 1], vec![2, 1, 3], vec![3]]);
        let level = if tasks > 3 { overlapping } else { Reach::All };
        let kinds: [Vec<Option<Reach>>; 8] = [
            vec![Some(Reach::All)],
            vec![Some(Reach::Each)],
            vec![Some(Reach::Each), Some(Reach::All)],
            vec![Some(Reach::All), None, Some(Reach::Each), Some(Reach::All)],
            vec![Some(tree(tasks))],
            vec![Some(level.clone()), Some(Reach::Each)],
            vec![Some(Reach::All), Some(level), Some(Reach::Each)],
            vec![Some(Reach::Each), Some(tree(tasks)), Some(Reach::All)],
        ];
        // A half of no task means nothing.
        let has_sense = |reaches: &[Option<Reach>]| {
            let mut all = reaches.iter().flatten();
            all.all(|reach| reach.check(tasks).is_ok())
        };
        for reaches in kinds.into_iter().filter(|kind| has_sense(kind)) {
            for (cuts, is_damped) in [(0, false), (0, true), (3, true)] {
                let wanted = Wanted {
                    tasks,
                    kernels,
                    rank,
                    cuts,
                    is_damped,
                    reaches: reaches.clone(),
                };
                compare(wanted, &mut random);
            }
        }
    }
}

/// Many tasks are eliminated a few at a time, and on threads where there are any.
#[test]
fn threads_do_not_matter() {
    let wanted = Wanted {
        tasks: 2 * AT_ONCE + 5,
        kernels: 6,
        rank: 4,
        cuts: 1,
        is_damped: true,
        reaches: vec![Some(tree(2 * AT_ONCE + 5)), Some(Reach::All)],
    };
    let pieces = Pieces::new(wanted, &mut Random::new(5));
    let alone = pieces.factored();
    let pool = crate::pool::Pool::new(3).unwrap();
    assert_eq!(alone, pool.install(|| pieces.factored()));
}

/// A diagonal beside F is as good as a row with its root for each kernel in F, and rows in G as rows in F.
#[test]
fn damping_bends_as_further_rows_do() {
    let mut random = Random::new(17);
    for (tasks, kernels, rank) in [(1, 4, 3), (1, 90, 2), (3, 5, 2), (2, 80, 3)] {
        let wanted = Wanted {
            tasks,
            kernels,
            rank,
            cuts: 0,
            is_damped: true,
            reaches: vec![Some(Reach::Each), Some(Reach::All)],
        };
        let mut pieces = Pieces::new(wanted, &mut random);
        let short = pieces.factored();
        let split: Vec<Vec<f64>> = pieces
            .factors
            .iter_mut()
            .map(|factor| factor.split_off(kernels))
            .collect();
        pieces.cuts = split;
        let other = pieces.factored();
        for (task, damping) in pieces.damping.iter_mut().enumerate() {
            for (kernel, b) in damping.take().unwrap().iter().enumerate() {
                let rows = pieces.factors[task].len();
                pieces.factors[task].resize(rows + kernels, 0.0);
                pieces.factors[task][rows + kernel] = b.sqrt();
            }
        }
        for long in [pieces.factored(), other] {
            for (a, b) in short.iter().zip(&long) {
                for (a, b) in a.values().iter().zip(b.values()) {
                    assert!((a - b).abs() <= 1e-9, "{tasks} {kernels}: {a} and {b}");
                }
            }
        }
    }
}
