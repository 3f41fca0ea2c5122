//! The search that needs no grid: many cells on few folds, then the best of them on all.

use super::grid::{Cell, Chain, Grid};
use super::ladder::Ladder;
use crate::machine::{MachineSpec, TargetKind};
use crate::sharing::SharingSpec;

/// The folds that all cells are fitted on; the others are for those that do well there.
const QUICK_FOLDS: usize = 2;
/// Where all tasks together have no more rows than this, all cells are fitted on all folds: that takes little time, and two folds say little.
const FEW_ROWS: usize = 1000;
/// A family is gone on with where its best cell is within so many standard errors of the best of all.
const NEAR: f64 = 2.0;
/// Of those, at most so many whose weights need not be learned, and so many of the others, which come later.
const FAMILIES: [usize; 2] = [3, 3];
/// How often the ladder is gone up or down by a rung.
const CLIMBS: usize = 6;
/// The round in which learned weights come at the latest.
const LATEST: usize = 3;
/// How many cells are fitted on all folds.
const FINALISTS: usize = 8;
/// Cells whose scores differ by less than this part of a standard error are told apart by the finer score.
const TIE: f64 = 0.25;
/// The exponents of learned weights: sparse, smooth, nearly uniform.
const EXPONENTS: [f64; 3] = [1.0, 2.0, 4.0];

/// How well a cell did on the rows that a fold kept aside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// The score, where more is better.
    pub score: f64,
    /// [`Trial::finer`](super::Trial::finer): what tells cells with the same score apart.
    pub finer: f64,
}

/// Cells with the same kernels and the same sharing: they differ in the price of an error only.
#[derive(Debug, Clone)]
struct Family {
    kernels: usize,
    sharing: SharingSpec,
}

/// The rounds of the search that is used where no grid is given.
///
/// 1. Each kernel alone and the average of all, whose weights need not be learned, at three prices on two folds (all folds, where rows are few).
/// 2. A rung of the ladder of prices up and down from the best one, for the best families, until the best price is between two others. Learned
///    weights of three exponents come at the price that is best for the average, and climb in the same way.
/// 3. The best cells on all folds. The best mean score wins; what is as good as equal is told apart by [`Verdict::finer`].
///
/// It does not fit itself: [`UsualSearch::next`] says which cells to fit on which folds, and is told what came of it. So the rounds are the same
/// for whoever keeps a journal and for whoever does not, and depend on nothing but scores.
#[derive(Debug, Clone)]
pub struct UsualSearch {
    machine: MachineSpec,
    ladder: Option<Ladder>,
    families: Vec<Family>,
    /// How many of them, the first, have weights that need not be learned.
    cheap: usize,
    /// For each cell, its family and its rung.
    places: Vec<(usize, i32)>,
    grid: Grid,
    /// How many rows each fold keeps aside.
    held: Vec<usize>,
    /// How many of them, the first, all cells are fitted on.
    quick_folds: usize,
    kernels: usize,
    round: usize,
    is_over: bool,
}

impl UsualSearch {
    /// The certified relative gap that is enough to tell cells apart; the winner is fitted anew to a smaller one.
    pub const TOLERANCE: f64 = 1e-2;

    /// The search for a machine whose price is `machine`'s own where `price_is_given`, with these sharings of weights that are learned (see
    /// [`UsualSearch::exponents`]), for so many kernels. `rows` is Σ_t N_t, `held` are the numbers of rows that the folds keep aside.
    pub fn new(
        machine: &MachineSpec,
        price_is_given: bool,
        learned: &[SharingSpec],
        kernels: usize,
        rows: usize,
        held: &[usize],
    ) -> Self {
        let alone = (1..=kernels).filter(|_| kernels > 1);
        let mut families: Vec<Family> = std::iter::once(0)
            .chain(alone)
            .map(|kernels| Family {
                kernels,
                sharing: SharingSpec::uniform(),
            })
            .collect();
        let cheap = families.len();
        if kernels > 1 {
            let is_new = |sharing: &&SharingSpec| **sharing != SharingSpec::uniform();
            families.extend(learned.iter().filter(is_new).map(|sharing| Family {
                kernels: 0,
                sharing: sharing.clone(),
            }));
        }
        Self {
            machine: machine.clone(),
            ladder: Ladder::of(machine).filter(|_| !price_is_given),
            families,
            cheap,
            places: Vec::new(),
            grid: Grid::of(Vec::new()),
            held: held.to_vec(),
            quick_folds: if rows <= FEW_ROWS {
                held.len()
            } else {
                QUICK_FOLDS.min(held.len())
            },
            kernels,
            round: 0,
            is_over: false,
        }
    }

    /// The search for the price alone, with the average of all kernels on all folds.
    pub(super) fn of_price(machine: &MachineSpec, held: &[usize]) -> Self {
        let mut search = Self::new(machine, false, &[], 1, 0, held);
        search.ladder = search.ladder.map(Ladder::finer);
        search
    }

    /// The parameter of a machine that is its price, where it has one and targets to choose it by.
    pub fn price_of(machine: &MachineSpec) -> Option<&'static str> {
        let is_labelled = machine.entry()?.targets != TargetKind::Unlabelled;
        let ladder = Ladder::of(machine).filter(|_| is_labelled);
        ladder.map(|ladder| ladder.parameter)
    }

    /// A sharing with p = 1, 2, 4; as it is where it has no p.
    pub fn exponents(sharing: &SharingSpec) -> Vec<SharingSpec> {
        if !sharing.takes("p") {
            return vec![sharing.clone()];
        }
        let with = |p: f64| {
            let mut sharing = sharing.clone();
            sharing.set("p", p);
            sharing
        };
        EXPONENTS.map(with).to_vec()
    }

    /// The kernel sets of the cells, as positions among all kernels: all of them, then each alone.
    pub fn kernel_sets(&self) -> Vec<Vec<usize>> {
        let alone = (0..self.kernels).filter(|_| self.kernels > 1);
        std::iter::once((0..self.kernels).collect())
            .chain(alone.map(|kernel| vec![kernel]))
            .collect()
    }

    /// The cells so far; those of later rounds come after them.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The cells to fit next, and on which folds; none when the search is over. `verdict` tells what came of a cell on a fold, for all
    /// that were asked for before.
    pub fn next(&mut self, verdict: impl Fn(usize, usize) -> Option<Verdict>) -> Vec<Chain> {
        if self.is_over {
            return Vec::new();
        }
        let before = self.places.len();
        let wanted = match self.round {
            0 => self.first(),
            round if round <= CLIMBS => self.climb(&verdict),
            _ => Vec::new(),
        };
        self.round += 1;
        if wanted.is_empty() {
            self.is_over = true;
            let cells = self.finalists(&verdict);
            let folds = self.quick_folds..self.held.len();
            return self.chains(&cells, folds);
        }
        let cells = wanted.into_iter().filter_map(|(family, rung)| {
            let mut machine = self.machine.clone();
            if let Some(ladder) = &self.ladder {
                machine.set(ladder.parameter, ladder.value(rung)?);
            }
            let Family { kernels, sharing } = self.families[family].clone();
            let cell = Cell {
                kernels,
                sharing,
                machine,
            };
            Some(((family, rung), cell))
        });
        let (places, cells): (Vec<_>, Vec<_>) = cells.unzip();
        self.places.extend(places);
        self.grid = Grid::of([self.grid.cells(), &cells].concat());
        let new: Vec<usize> = (before..self.places.len()).collect();
        if new.is_empty() {
            return self.next(verdict);
        }
        self.chains(&new, 0..self.quick_folds)
    }

    /// The cell to take, by the mean score over all folds.
    pub fn best(&self, verdict: impl Fn(usize, usize) -> Option<Verdict>) -> usize {
        let folds = self.held.len();
        let means: Vec<Option<Verdict>> = (0..self.places.len())
            .map(|cell| mean(cell, folds, &verdict))
            .collect();
        let top = means.iter().flatten().map(|one| one.score);
        let top = top.max_by(f64::total_cmp).unwrap_or(f64::NAN);
        let least = top - TIE * self.standard_error(top, folds);
        let near = means.iter().enumerate().filter_map(|(cell, mean)| {
            let mean = (*mean)?;
            (mean.score >= least).then_some((cell, mean))
        });
        // Of equal ones the first.
        let is_better = |one: &Verdict, best: &Verdict| {
            one.finer > best.finer || (one.finer == best.finer && one.score > best.score)
        };
        near.reduce(|best, one| {
            if is_better(&one.1, &best.1) {
                one
            } else {
                best
            }
        })
        .map_or(0, |(cell, _)| cell)
    }

    /// The cells whose weights need not be learned, on the first rungs.
    fn first(&self) -> Vec<(usize, i32)> {
        let rungs = self.ladder.as_ref().map_or(vec![0], Ladder::first);
        let of = |family: usize| rungs.iter().map(move |&rung| (family, rung));
        (0..self.cheap).flat_map(of).collect()
    }

    /// The rungs beside the best one of the best families; and learned weights at the best price of the average, once that is known.
    fn climb(&self, verdict: &impl Fn(usize, usize) -> Option<Verdict>) -> Vec<(usize, i32)> {
        let mut wanted = Vec::new();
        let best: Vec<(usize, i32, f64)> = self.best_rungs(verdict);
        let top = best.first().map_or(f64::NAN, |best| best.2);
        let least = top - NEAR * self.standard_error(top, self.quick_folds);
        if let Some(ladder) = &self.ladder {
            let mut left = FAMILIES;
            for &(family, rung, score) in &best {
                let kind = usize::from(family >= self.cheap);
                if score < least || left[kind] == 0 {
                    continue;
                }
                left[kind] -= 1;
                let beside = |step: i32| {
                    let places = [(family, rung - step), (family, rung + step)];
                    places.into_iter().filter(|place| {
                        ladder.value(place.1).is_some() && !self.places.contains(place)
                    })
                };
                let far: Vec<(usize, i32)> = beside(ladder.step).collect();
                if far.is_empty() && ladder.step > 1 {
                    wanted.extend(beside(1));
                }
                wanted.extend(far);
            }
        }
        let climbs = wanted.iter().any(|(family, _)| *family == 0);
        let has_learned = self.places.iter().any(|place| place.0 >= self.cheap);
        if !has_learned && (!climbs || self.round >= LATEST) {
            let of_average = best.iter().find(|(family, _, _)| *family == 0);
            let rung = of_average.map_or(0, |(_, rung, _)| *rung);
            for family in self.cheap..self.families.len() {
                wanted.push((family, rung - self.heavier(family)));
            }
        }
        wanted
    }

    /// By how many rungs a price must go down for learned weights, whose sum may be M^{1 − 1/p} where that of the average is 1.
    fn heavier(&self, family: usize) -> i32 {
        let (Some(ladder), Some(p)) = (&self.ladder, self.families[family].sharing.get("p")) else {
            return 0;
        };
        let mass = (self.kernels as f64).powf(1.0 - 1.0 / p);
        ladder.rungs(mass)
    }

    /// For each family with cells, the best of them by the quick folds: the best families first.
    fn best_rungs(
        &self,
        verdict: &impl Fn(usize, usize) -> Option<Verdict>,
    ) -> Vec<(usize, i32, f64)> {
        let ranked = self.ranked(verdict);
        let mut best: Vec<(usize, i32, f64)> = Vec::new();
        for (cell, mean) in ranked {
            let (family, rung) = self.places[cell];
            if best.iter().all(|known| known.0 != family) {
                best.push((family, rung, mean.score));
            }
        }
        best
    }

    /// The best cells by the quick folds.
    fn finalists(&self, verdict: &impl Fn(usize, usize) -> Option<Verdict>) -> Vec<usize> {
        let ranked = self.ranked(verdict);
        let top = ranked.first().map_or(f64::NAN, |(_, mean)| mean.score);
        let least = top - NEAR * self.standard_error(top, self.quick_folds);
        let near = ranked.into_iter().filter(|(_, mean)| mean.score >= least);
        let mut cells: Vec<usize> = near.map(|(cell, _)| cell).take(FINALISTS).collect();
        cells.sort_unstable();
        cells
    }

    /// All cells with their means over the quick folds, the best first.
    fn ranked(&self, verdict: &impl Fn(usize, usize) -> Option<Verdict>) -> Vec<(usize, Verdict)> {
        let folds = self.quick_folds;
        let mut ranked: Vec<(usize, Verdict)> = (0..self.places.len())
            .filter_map(|cell| Some((cell, mean(cell, folds, verdict)?)))
            .collect();
        // Stable: of equal ones the first comes first.
        ranked.sort_by(|(_, a), (_, b)| {
            let by_score = b.score.total_cmp(&a.score);
            by_score.then(b.finer.total_cmp(&a.finer))
        });
        ranked
    }

    /// How far a score over the first folds may be off by chance: √(a(1 − a)/n) for a share a of n rows, (1 − R²) √(2/n) for numbers.
    fn standard_error(&self, score: f64, folds: usize) -> f64 {
        let rows: usize = self.held[..folds].iter().sum();
        let rows = rows.max(1) as f64;
        let kind = self.machine.entry().map(|entry| entry.targets);
        if kind == Some(TargetKind::Values) {
            return (1.0 - score).abs() * (2.0 / rows).sqrt();
        }
        // One row more or less is always within it.
        let share = score.clamp(1.0 / rows, 1.0 - 1.0 / rows);
        (share * (1.0 - share) / rows).sqrt()
    }

    /// The chains of some cells over some folds: those with the same kernels and sharing's name follow each other, up the ladder.
    fn chains(&self, cells: &[usize], folds: std::ops::Range<usize>) -> Vec<Chain> {
        let mut groups: Vec<((usize, &str), Vec<usize>)> = Vec::new();
        for &cell in cells {
            let family = &self.families[self.places[cell].0];
            let key = (family.kernels, family.sharing.name());
            match groups.iter_mut().find(|(known, _)| *known == key) {
                Some((_, own)) => own.push(cell),
                None => groups.push((key, vec![cell])),
            }
        }
        for (_, own) in &mut groups {
            own.sort_by_key(|&cell| self.places[cell]);
        }
        folds
            .flat_map(|fold| {
                groups.iter().map(move |(_, cells)| Chain {
                    fold,
                    cells: cells.clone(),
                })
            })
            .collect()
    }
}

/// The mean over the first folds, where a cell has a score on all of them.
fn mean(
    cell: usize,
    folds: usize,
    verdict: &impl Fn(usize, usize) -> Option<Verdict>,
) -> Option<Verdict> {
    let (mut score, mut finer) = (0.0, 0.0);
    for fold in 0..folds {
        let one = verdict(cell, fold).filter(|one| !one.score.is_nan())?;
        score += one.score;
        finer += one.finer;
    }
    let count = folds as f64;
    Some(Verdict {
        score: score / count,
        finer: finer / count,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Runs a search on a made-up score of cells, and gives back the winner, all cells, and how often each fold was fitted.
    fn run(
        mut search: UsualSearch,
        score: impl Fn(&Cell, usize) -> f64,
    ) -> (Cell, Vec<Cell>, BTreeMap<(usize, usize), Verdict>) {
        let mut done: BTreeMap<(usize, usize), Verdict> = BTreeMap::new();
        loop {
            let chains = search.next(|cell, fold| done.get(&(cell, fold)).copied());
            if chains.is_empty() {
                break;
            }
            let cells = search.grid().cells();
            for chain in chains {
                for window in chain.cells.windows(2) {
                    // One can start from the other.
                    let [a, b] = [&cells[window[0]], &cells[window[1]]];
                    assert_eq!(a.kernels, b.kernels);
                    assert_eq!(a.sharing.name(), b.sharing.name());
                }
                for cell in chain.cells {
                    let verdict = Verdict {
                        score: score(&cells[cell], chain.fold),
                        finer: 0.0,
                    };
                    let twice = done.insert((cell, chain.fold), verdict);
                    assert!(twice.is_none(), "cell {cell} on fold {} twice", chain.fold);
                }
            }
        }
        let best = search.best(|cell, fold| done.get(&(cell, fold)).copied());
        let cells = search.grid().cells().to_vec();
        (cells[best].clone(), cells, done)
    }

    /// Falls off with the distance from a price of weights that sum up to 1, and is best for one family.
    fn peak(cell: &Cell, price: f64, kernels: usize, sharing: &SharingSpec) -> f64 {
        let mass = cell
            .sharing
            .get("p")
            .map_or(1.0, |p| 3_f64.powf(1.0 - 1.0 / p));
        let far = (mass * cell.machine.number("C") / price).log10().abs();
        let other = cell.kernels != kernels || cell.sharing != *sharing;
        0.9 - 0.05 * far - if other { 0.02 } else { 0.0 }
    }

    fn search(kernels: usize) -> UsualSearch {
        let learned = UsualSearch::exponents(&SharingSpec::lp(2.0, 1.0));
        UsualSearch::new(
            &MachineSpec::svc(1.0),
            false,
            &learned,
            kernels,
            2000,
            &[400; 5],
        )
    }

    #[test]
    fn the_peak_is_found_wherever_it_is() {
        let uniform = SharingSpec::uniform();
        for price in [0.004, 0.03, 1.0, 20.0, 700.0] {
            for (kernels, sharing) in [
                (0, &uniform),
                (2, &uniform),
                (3, &uniform),
                (0, &SharingSpec::lp(1.0, 1.0)),
                (0, &SharingSpec::lp(4.0, 1.0)),
            ] {
                let (best, cells, done) =
                    run(search(3), |cell, _| peak(cell, price, kernels, sharing));
                assert_eq!((best.kernels, &best.sharing), (kernels, sharing), "{price}");
                // Within half a rung but for what the sum of learned weights is rounded by.
                assert!(
                    peak(&best, price, kernels, sharing) > 0.9 - 0.05 * 0.6,
                    "{price}"
                );
                // Few fits: of 11 prices for 7 families on 5 folds.
                assert!(done.len() < 7 * 11 * 5 / 2, "{} fits", done.len());
                assert!(
                    cells
                        .iter()
                        .enumerate()
                        .all(|(at, a)| !cells[..at].contains(a))
                );
            }
        }
    }

    #[test]
    fn all_folds_decide_not_the_first_two() {
        // On the later folds another kernel is better by far.
        let (best, ..) = run(search(3), |cell, fold| {
            let uniform = SharingSpec::uniform();
            let first = peak(cell, 1.0, 1, &uniform);
            let later = peak(cell, 1.0, 2, &uniform);
            if fold < 2 { first } else { 2.0 * later - first }
        });
        assert_eq!(best.kernels, 2);
    }

    #[test]
    fn what_is_given_is_not_searched_for() {
        let machine = MachineSpec::svc(0.7);
        let sharing = SharingSpec::pscs(1.5, 2.0, 1.0);
        let search = UsualSearch::new(&machine, true, &[sharing], 2, 30, &[10; 3]);
        let (_, cells, done) = run(search, |_, _| 0.5);
        assert_eq!(cells.len(), 3 + 1);
        assert_eq!(done.len(), 4 * 3);
        assert!(cells.iter().all(|cell| cell.machine == machine));
        // One kernel has nothing to learn, and a share has no values beyond those of its entry.
        let nu = MachineSpec::one_class(0.1);
        let search = UsualSearch::new(&nu, false, &[SharingSpec::simplex()], 1, 50, &[10; 5]);
        let (_, cells, _) = run(search, |cell, _| cell.machine.number("nu"));
        assert!(cells.iter().all(|cell| cell.machine.check().is_ok()));
        assert!(
            cells
                .iter()
                .all(|cell| cell.sharing == SharingSpec::uniform())
        );
    }

    #[test]
    fn scores_that_are_not_defined_are_no_scores() {
        let (best, ..) = run(search(2), |cell, _| match cell.kernels {
            1 => f64::NAN,
            _ => 0.6,
        });
        assert_ne!(best.kernels, 1);
        let (_, cells, done) = run(search(2), |_, _| f64::NAN);
        assert!(!cells.is_empty() && !done.is_empty());
    }
}
