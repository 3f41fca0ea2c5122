//! How much memory a problem takes, before anything is allocated: matrices, coarse copies, combined rows, factors, what passes on the way.

use super::{Precision, Preparation, Problem};
use crate::data::Samples;
use crate::engine::{Needs, Room, coarser};
use crate::error::{Error, Result};
use crate::gram::{self, Definiteness, Grams, SetPlan, Storage};
use crate::kernel::Base;
use crate::view::View;

/// A way to solve a problem within a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemoryPlan {
    pub(super) storage: Storage,
    pub(super) room: Room,
}

/// Bytes of Gram matrices.
#[derive(Debug, Clone, Copy, Default)]
struct Matrices {
    /// That stay.
    kept: u64,
    /// On the way there, beside those.
    passing: u64,
    /// Copies of parts for a start from fewer samples.
    coarse: u64,
}

impl Matrices {
    /// Of these and all that solving takes, the most at a time.
    fn with(self, solving: u64, coarse: bool) -> u64 {
        let copies = if coarse { self.coarse } else { 0 };
        let solving = total([self.kept, copies, solving]);
        solving.max(self.kept.saturating_add(self.passing))
    }
}

/// The sum; what cannot be counted is more than any limit.
fn total(bytes: impl IntoIterator<Item = u64>) -> u64 {
    bytes.into_iter().fold(0, u64::saturating_add)
}

/// Kernel values are made on demand rather than that a task may have fewer free variables than this part of its samples: few have more, and
/// then small steps take their place.
const ENOUGH_FREE: usize = 2;

impl Problem {
    /// The least bytes for which kernels are kept, or made on demand, with so many threads at work.
    ///
    /// # Errors
    /// When a kernel cannot be used on these samples.
    pub fn memory_needed(&self, storage: Storage, preparation: &Preparation) -> Result<u64> {
        let matrices = self.matrices(storage, preparation)?;
        let limit = preparation.ledger.limit();
        let is_streamed = storage == Storage::Streamed;
        let combined = if is_streamed { 0 } else { self.combined() };
        let least = matrices.with(combined, false);
        // Of what cannot be, duals are not even made.
        if least > limit {
            return Ok(least);
        }
        let needs = self.needs(1, self.spec.kernels.len());
        Ok(matrices.with(needs.bytes(needs.least(is_streamed)), false))
    }

    /// The least bytes for any way there is.
    ///
    /// # Errors
    /// As [`Problem::memory_needed`].
    pub fn least_memory(&self, preparation: &Preparation) -> Result<u64> {
        let ways = self.ways(preparation).0.into_iter();
        let needed = ways.map(|storage| self.memory_needed(storage, preparation));
        let needed: Vec<u64> = needed.collect::<Result<_>>()?;
        Ok(needed.into_iter().min().unwrap_or(u64::MAX))
    }

    /// Where kernel values may come from, and why not from rows where they cannot.
    fn ways(&self, preparation: &Preparation) -> (Vec<Storage>, Option<String>) {
        let mut ways = match preparation.storage {
            Some(storage) => vec![storage],
            None => vec![Storage::Kept, Storage::Mapped, Storage::Streamed],
        };
        let not_streamed = self.can_stream(preparation).err();
        ways.retain(|storage| *storage != Storage::Streamed || not_streamed.is_none());
        (ways, not_streamed)
    }

    /// Bytes of K(θ) for the largest sample set.
    fn combined(&self) -> u64 {
        let squares = self.sets.iter().map(|set| gram::square(set.count()));
        squares.max().unwrap_or(0)
    }

    /// What is computed for a sample set.
    pub(super) fn plan<'a>(
        &'a self,
        index: usize,
        set: &'a Samples,
        storage: Storage,
        preparation: &Preparation,
        threads: usize,
    ) -> Result<SetPlan<'a>> {
        let options = gram::Options {
            normalise: self.spec.normalize.is_unit(),
            definiteness: preparation.definiteness,
            storage,
            single: preparation.precision == Precision::Single,
            threads,
        };
        SetPlan::new(set, index, &self.spec.kernels, options)
    }

    fn matrices(&self, storage: Storage, preparation: &Preparation) -> Result<Matrices> {
        let mut matrices = Matrices::default();
        for (index, set) in self.sets.iter().enumerate() {
            // By one thread: more may check more matrices at a time, if there is room.
            let plan = self.plan(index, set, storage, preparation, 1)?;
            matrices.kept = matrices.kept.saturating_add(plan.kept());
            matrices.passing = matrices.passing.max(plan.passing());
            let copies = coarser(set.count(), self.spec.kernels.len());
            let copies = total(copies.map(|fewer| plan.part(fewer)));
            matrices.coarse = matrices.coarse.saturating_add(copies);
        }
        Ok(matrices)
    }

    /// What the tasks take beside Gram matrices.
    fn needs(&self, threads: usize, kernels: usize) -> Needs {
        let machine = self.choice.machine.as_ref();
        let duals = self.learned.iter().map(|task| {
            let count = task.count(self.sets[task.samples].count());
            machine.dual(task, count)
        });
        let is_shared = self.tasks.len() > self.sets.len();
        Needs::new(duals.collect(), kernels, threads, is_shared)
            .with_nodes(self.choice.sharing.nodes())
    }

    /// How to solve with what the ledger has left: kernels kept if a task may then have enough free variables, made on demand otherwise.
    ///
    /// # Errors
    /// When nothing fits.
    pub(super) fn plan_memory(
        &self,
        preparation: &Preparation,
        threads: usize,
    ) -> Result<MemoryPlan> {
        let limit = preparation.ledger.left();
        let (may_be, not_streamed) = self.ways(preparation);
        if let (Some(Storage::Streamed), Some(reason)) = (preparation.storage, &not_streamed) {
            return Err(Error::param(
                "storage",
                "streamed",
                format!("`kept` or `mapped`: {reason}"),
            ));
        }
        let mut matrices = Vec::with_capacity(may_be.len());
        for &storage in &may_be {
            let own = self.matrices(storage, preparation)?;
            let combined = match storage {
                Storage::Streamed => 0,
                Storage::Kept | Storage::Mapped => self.combined(),
            };
            if own.with(combined, false) <= limit {
                matrices.push((storage, own));
            }
        }
        if matrices.is_empty() {
            return Err(self.too_little(preparation, not_streamed));
        }
        let needs = self.needs(threads, self.spec.kernels.len());
        let mut found: Option<MemoryPlan> = None;
        for coarse in [true, false] {
            for &(storage, matrices) in &matrices {
                let copies = if coarse { matrices.coarse } else { 0 };
                let fits = limit.checked_sub(total([matrices.kept, copies]));
                let is_streamed = storage == Storage::Streamed;
                let room = fits.and_then(|left| needs.room(left, coarse, is_streamed));
                let Some(room) = room else {
                    continue;
                };
                // The last way there is. What does not fit is decomposed.
                let is_enough =
                    is_streamed || room.tasks.most_free >= needs.largest() / ENOUGH_FREE;
                let is_better = found.is_none_or(|known: MemoryPlan| {
                    room.tasks.most_free > known.room.tasks.most_free
                });
                if is_better {
                    found = Some(MemoryPlan { storage, room });
                }
                if is_enough {
                    return Ok(MemoryPlan { storage, room });
                }
            }
        }
        found.map_or_else(|| Err(self.too_little(preparation, not_streamed)), Ok)
    }

    /// Whether kernel values may be made from rows in blocks, and if not, why.
    fn can_stream(&self, preparation: &Preparation) -> std::result::Result<(), String> {
        for view in &self.spec.kernels {
            let problem = match view.kernel.base() {
                Base::Given => "is given as a matrix",
                Base::Own | Base::Of(_)
                    if !view.kernel.is_positive_definite()
                        && preparation.definiteness != Definiteness::Assume =>
                {
                    "is not known to be positive semi-definite, and its matrix would have to be looked at"
                }
                Base::Own | Base::Of(_) => continue,
            };
            return Err(format!("the kernel `{}` {problem}", view.name));
        }
        Ok(())
    }

    fn too_little(&self, preparation: &Preparation, not_streamed: Option<String>) -> Error {
        // What the caller has taken is taken.
        let taken = preparation.ledger.taken();
        Error::Memory {
            needed: self
                .least_memory(preparation)
                .unwrap_or(u64::MAX)
                .saturating_add(taken),
            limit: preparation.ledger.limit(),
            not_streamed,
        }
    }

    /// The same on parts of matrices that are there, with so many bytes left: copied on these rows of the sample sets where that fits, and
    /// which of them are.
    ///
    /// # Errors
    /// When nothing fits; `taken` is what is there.
    pub(super) fn plan_part(
        &self,
        whole: &[Grams],
        kernels: &[usize],
        views: Vec<View>,
        limits: PartLimits,
    ) -> Result<(Vec<View>, Room)> {
        let PartLimits {
            limit,
            taken,
            threads,
        } = limits;
        let left = limit.saturating_sub(taken);
        let needs = self.needs(threads, worked_with(whole, kernels));
        let all = vec![View::All; views.len()];
        let is_streamed = whole.iter().any(|grams| grams.is_streamed());
        let of = |views: &[View], coarse: bool| {
            let bytes = part_bytes(whole, kernels, views, coarse);
            needs.room(left.checked_sub(bytes)?, coarse, is_streamed)
        };
        for coarse in [true, false] {
            if let Some(room) = of(&views, coarse) {
                return Ok((views, room));
            }
            if let Some(room) = of(&all, coarse) {
                return Ok((all, room));
            }
        }
        let needed = total([taken, needs.bytes(Room::least())]);
        Err(Error::Memory {
            needed,
            limit,
            not_streamed: None,
        })
    }

    /// Bytes that a fit on parts takes at most, with this room.
    pub(super) fn bytes_of_part(
        &self,
        whole: &[Grams],
        kernels: &[usize],
        views: &[View],
        room: Room,
    ) -> u64 {
        let matrices = part_bytes(whole, kernels, views, room.coarse);
        matrices.saturating_add(self.needs(1, worked_with(whole, kernels)).bytes(room))
    }
}

/// What a fit on parts of matrices may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartLimits {
    pub(super) limit: u64,
    /// By what is there already.
    pub(super) taken: u64,
    pub(super) threads: usize,
}

/// The kernels that an evaluation works with: fewer, where these are combinations of fewer.
fn worked_with(whole: &[Grams], kernels: &[usize]) -> usize {
    let span = whole.first().and_then(|grams| grams.spanned());
    span.map_or(kernels.len(), |(span, _)| span.nodes())
}

/// Bytes of copies: of these rows, and of fewer of them for a start.
fn part_bytes(whole: &[Grams], kernels: &[usize], views: &[View], coarse: bool) -> u64 {
    let sets = whole.iter().zip(views);
    total(sets.flat_map(|(grams, view)| {
        let count = view.count(grams.samples());
        let fewer = coarser(count, kernels.len()).take(if coarse { usize::MAX } else { 0 });
        let copies = (!view.is_all()).then_some(count).into_iter().chain(fewer);
        copies.map(|count| grams.bytes_of_part(kernels, count))
    }))
}
