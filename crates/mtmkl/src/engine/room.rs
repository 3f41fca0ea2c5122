//! How much memory an engine takes beside its Gram matrices, and what it may use.
//!
//! Evaluating J takes, for each task, what it keeps from pass to pass (K_mβ, a factorisation of K_FF), and while it is solved the rows of
//! K(θ) and what its solver needs. Everything that changes an answer's last digits is decided by the tasks and the limit alone; the number of
//! threads only decides how many tasks are solved at the same time.

use crate::gram::square;
use crate::inner::{self, Allowance};
use crate::ledger::bytes_of;
use crate::machine::Dual;

use super::coarse::coarser;

/// What an engine has memory for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    /// For each task.
    pub(crate) tasks: Allowance,
    /// Whether tasks are solved at the same time, one by each thread, or one after the other.
    pub(crate) is_parallel: bool,
    /// Combined rows that are made for all tasks before the first begins take no more numbers than this.
    pub(crate) rows_ahead: usize,
    /// Whether there is a start from fewer samples.
    pub(crate) coarse: bool,
}

/// Rows for more than this would not be in the cache any more when they are asked for.
const MOST_ROWS: usize = 1 << 25;

impl Default for Room {
    /// Everything.
    fn default() -> Self {
        Self {
            tasks: Allowance::default(),
            is_parallel: true,
            rows_ahead: MOST_ROWS,
            coarse: true,
        }
    }
}

impl Room {
    /// No more than what cannot be done without.
    pub(crate) fn least() -> Self {
        Self {
            tasks: Allowance {
                most_free: 0,
                interior_points: false,
                rows: false,
                factors: false,
                working_set: usize::MAX,
            },
            is_parallel: false,
            rows_ahead: 0,
            coarse: false,
        }
    }
}

/// Evaluations whose machines are remembered at most, about: those of the bundle, of the answer and of the bound.
const REMEMBERED: u64 = 16;
/// M × M matrices or factors that the outer solver holds for each task: of the curvature at two points, of the model, of its Newton system.
const OUTER: u64 = 4;
/// Matrices or factors of (nodes · M)² numbers that it holds for the rows that several tasks share: what tasks leave there, with the diagonal, and the factor.
const SHARED: u64 = 3;

/// What the engine of some tasks takes, all but the Gram matrices.
#[derive(Debug)]
pub(crate) struct Needs {
    duals: Vec<Dual>,
    kernels: usize,
    threads: usize,
    /// Whether several tasks see the same samples.
    is_shared: bool,
    /// Rows of weights that several tasks share.
    nodes: usize,
}

impl Needs {
    pub(crate) fn new(duals: Vec<Dual>, kernels: usize, threads: usize, is_shared: bool) -> Self {
        Self {
            duals,
            kernels,
            threads,
            is_shared,
            nodes: 0,
        }
    }

    /// With so many rows of weights that several tasks share.
    pub(crate) fn with_nodes(self, nodes: usize) -> Self {
        Self { nodes, ..self }
    }

    /// Bytes at most, for so much room.
    pub(crate) fn bytes(&self, room: Room) -> u64 {
        let m = self.kernels;
        let mut stays = SHARED.saturating_mul(square(self.nodes.saturating_mul(m)));
        let mut running = Vec::with_capacity(self.duals.len());
        let mut ahead = 0_u64;
        for dual in &self.duals {
            let n = dual.variables.samples();
            let own = inner::bytes(dual, m, room.tasks);
            let remembered = REMEMBERED * bytes_of::<f64>(n);
            let outer = OUTER * bytes_of::<f64>(n.min(m).saturating_mul(m));
            stays = [own.stays, remembered, outer]
                .into_iter()
                .fold(stays, u64::saturating_add);
            running.push(own.passes);
            ahead = ahead.saturating_add(square(n));
            if room.coarse {
                // Those of the smaller problems are there too, though not at work at the same time.
                for fewer in coarser(n, m) {
                    let share = fewer as f64 / n as f64;
                    #[allow(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        clippy::cast_precision_loss,
                        reason = "an estimate of bytes"
                    )]
                    let smaller = (own.stays as f64 * share) as u64;
                    stays = stays.saturating_add(smaller);
                }
            }
        }
        running.sort_unstable_by(|a, b| b.cmp(a));
        let at_once = if room.is_parallel { self.threads } else { 1 };
        let running = running.into_iter().take(at_once);
        let ahead = if self.is_shared {
            ahead.min(bytes_of::<f64>(room.rows_ahead))
        } else {
            0
        };
        running.fold(stays.saturating_add(ahead), u64::saturating_add)
    }

    /// The most that can be had for so many bytes, in the order of its use: free variables first, then rows of K(θ), interior points, rows ahead, then
    /// tasks at the same time. Where kernel values are streamed, the working set is first. `None` where not even the least fits.
    pub(crate) fn room(&self, bytes: u64, coarse: bool, streamed: bool) -> Option<Room> {
        let fits = |room: &Room| self.bytes(*room) <= bytes;
        let mut room = Room {
            coarse,
            ..Room::least()
        };
        let largest = self.largest();
        if streamed {
            let with = |count: usize| {
                let mut wider = with_free(room, count.min(MOST_FACTORED));
                wider.tasks.working_set = count;
                wider
            };
            let count = most(largest, |count| fits(&with(count)))?;
            room = with(count);
            if count < self.least(true).tasks.working_set {
                return None;
            }
        } else {
            let count = most(largest, |count| fits(&with_free(room, count)))?;
            room.tasks.most_free = if count == largest { usize::MAX } else { count };
        }
        let more = |room: Room, change: fn(&mut Room)| {
            let mut wider = room;
            change(&mut wider);
            if fits(&wider) { wider } else { room }
        };
        room = more(room, |room| room.tasks.rows = true);
        room = more(room, |room| room.tasks.factors = true);
        room = more(room, |room| room.tasks.interior_points = true);
        room = more(room, |room| room.rows_ahead = MOST_ROWS);
        Some(more(room, |room| room.is_parallel = true))
    }

    /// No more than what cannot be done without.
    pub(crate) fn least(&self, streamed: bool) -> Room {
        let mut room = Room::least();
        if streamed {
            let count = self.largest().min(LEAST_WORKING_SET);
            (room.tasks.working_set, room.tasks.most_free) = (count, count.min(MOST_FACTORED));
        }
        room
    }

    /// The samples of the largest task.
    pub(crate) fn largest(&self) -> usize {
        let samples = self.duals.iter().map(|dual| dual.variables.samples());
        samples.max().unwrap_or(0)
    }
}

/// With a smaller working set there would be more sweeps than anybody waits for.
const LEAST_WORKING_SET: usize = 1000;

/// Memory of a larger factor is worth more as a larger working set (ocr_letters, 24,000 free samples, 4 GiB: 1e-3 in 366 s, and not within 300 s
/// where all of a working set could be factored). The number itself was not compared with others.
const MOST_FACTORED: usize = 6000;

/// The largest number up to `all` that fits, by halving; `None` where not even 0 does.
fn most(all: usize, fits: impl Fn(usize) -> bool) -> Option<usize> {
    if fits(all) {
        return Some(all);
    }
    if !fits(0) {
        return None;
    }
    let (mut low, mut high) = (0, all);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low)
}

fn with_free(room: Room, most_free: usize) -> Room {
    Room {
        tasks: Allowance {
            most_free,
            ..room.tasks
        },
        ..room
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Conjugate, Variables};

    fn needs(samples: &[usize], threads: usize) -> Needs {
        let duals = samples.iter().map(|&n| Dual {
            scale: 1.0,
            variables: Variables::one_each(n),
            linear: vec![0.0; n],
            diagonal: 0.0,
            conjugate: Conjugate::Box {
                lower: vec![0.0; n],
                upper: vec![1.0; n],
                sum: 1.0,
            },
        });
        Needs::new(duals.collect(), 5, threads, samples.len() > 1)
    }

    #[test]
    fn what_is_given_fits_and_more_memory_gives_no_less() {
        for samples in [&[900][..], &[500, 500, 300], &[40]] {
            let (one, four) = (needs(samples, 1), needs(samples, 4));
            let all = four.bytes(Room::default());
            let mut last: Option<Room> = None;
            for part in 0..=40_u64 {
                let bytes = all * part / 40;
                let Some(room) = four.room(bytes, true, false) else {
                    assert!(last.is_none());
                    assert!(
                        four.bytes(Room {
                            coarse: true,
                            ..Room::least()
                        }) > bytes
                    );
                    continue;
                };
                assert!(four.bytes(room) <= bytes);
                // Threads only decide how many tasks are solved at a time.
                let alone = one.room(bytes, true, false).unwrap();
                assert_eq!(alone.tasks, room.tasks);
                assert!(alone.is_parallel || !room.is_parallel);
                if let Some(last) = last {
                    assert!(room.tasks.most_free >= last.tasks.most_free);
                }
                last = Some(room);
            }
            assert_eq!(last, Some(Room::default()));
        }
    }
}
