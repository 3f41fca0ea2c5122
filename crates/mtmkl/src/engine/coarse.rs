//! A start from fewer samples: the kernel weights of a quarter of the data are nearly those of all of it, at a sixteenth of the
//! price of each pass.

use std::sync::Arc;

use super::local::{Local, LocalEngine};
use super::task::TaskData;
use crate::gram::Grams;
use crate::random::Random;
use crate::view::View;

/// One in this many samples is taken.
const SHARE: usize = 4;
/// Samples are taken in runs of this length: as many as fit a line of the processor's cache, since lines are what memory is read in.
const RUN: usize = 8;
/// A task with fewer samples than this in the smaller problem says too little.
const FEWEST: usize = 100;

/// How many of n samples the smaller problem has, the next smaller one, and so on, as far as they can be of use.
pub(crate) fn coarser(samples: usize, kernels: usize) -> impl Iterator<Item = usize> {
    let smaller = move |&n: &usize| {
        let kept = n / RUN / SHARE * RUN;
        (kept >= FEWEST.max(kernels)).then_some(kept)
    };
    std::iter::successors(Some(samples), smaller).skip(1)
}

/// The smaller problem.
#[derive(Debug)]
pub(super) struct Coarse {
    pub(super) engine: LocalEngine,
    /// For each task, the place of each of its samples among the task's samples in the full problem.
    places: Vec<Vec<usize>>,
}

/// A task's rows in the full problem, in the smaller one, and which of the former the latter are.
struct Coarser {
    full: View,
    coarse: View,
    kept: Vec<usize>,
}

impl LocalEngine {
    /// The smaller problem, where there is memory for it and it says enough.
    pub(super) fn coarser_self(&self) -> Option<Coarse> {
        self.room.coarse.then(|| self.coarse()).flatten()
    }

    /// The problem on a quarter of each sample set, or `None` where a task would be left with too little.
    fn coarse(&self) -> Option<Coarse> {
        let chosen: Vec<Vec<usize>> = self
            .grams
            .iter()
            .map(|grams| choose(grams.samples()))
            .collect();
        let mut tasks = Vec::with_capacity(self.tasks.len());
        let mut places = Vec::with_capacity(self.tasks.len());
        // Equal views stay one.
        let mut views: Vec<Coarser> = Vec::new();
        for task in &self.tasks {
            let chosen = &chosen[task.samples];
            let (view, kept) = match &task.view {
                View::All => (View::All, chosen.clone()),
                view @ View::Rows(rows) => {
                    let known = views.iter().find(|known| known.full == *view);
                    if let Some(known) = known {
                        (known.coarse.clone(), known.kept.clone())
                    } else {
                        let found = rows
                            .iter()
                            .enumerate()
                            .filter_map(|(i, at)| Some((i, chosen.binary_search(at).ok()?)));
                        let (kept, coarse): (Vec<usize>, Vec<usize>) = found.unzip();
                        let coarse = View::of(coarse);
                        views.push(Coarser {
                            full: view.clone(),
                            coarse: coarse.clone(),
                            kept: kept.clone(),
                        });
                        (coarse, kept)
                    }
                }
            };
            // With more kernels than samples, weights fit what few samples happen to be there.
            if kept.len() < FEWEST.max(self.grams[task.samples].kernels()) {
                return None;
            }
            tasks.push(TaskData {
                samples: task.samples,
                view,
                dual: task.dual.restricted(&kept)?,
            });
            places.push(kept);
        }
        let grams: Arc<[Grams]> = self
            .grams
            .iter()
            .zip(&chosen)
            .map(|(grams, chosen)| {
                let kernels: Vec<usize> = (0..grams.kernels()).collect();
                let view = View::of(chosen.as_slice());
                self.pool.install(|| grams.part(&kernels, &view))
            })
            .collect();
        Some(Coarse {
            engine: LocalEngine::new(Local {
                grams,
                tasks,
                concave: self.concave,
                shrinking: self.shrinking,
                pool: self.pool.clone(),
                room: self.room,
            }),
            places,
        })
    }

    /// Starts from the dual variables of the smaller problem, the other samples at zero.
    pub(super) fn adopt(&mut self, coarse: &Coarse) {
        let is_streamed = self.is_streamed();
        let pairs = self.states.iter_mut().zip(&self.tasks);
        let from = coarse.engine.states.iter().zip(&coarse.places);
        for ((state, task), (small, places)) in pairs.zip(from) {
            state.start_at(&task.dual, &small.spread(places, task.dual.variables));
            if is_streamed {
                // All that is known of β where somebody asks to stop before the first sweep is made.
                state.adopt_images(small, places);
            }
        }
    }
}

/// Every fourth run of samples or so, by lot so that no pattern of the rows can matter, in ascending order.
fn choose(samples: usize) -> Vec<usize> {
    let runs = samples / RUN;
    let mut random = Random::new(0x636f_6172_7365);
    let mut order: Vec<usize> = (0..runs).collect();
    random.shuffle(&mut order);
    order.truncate(runs / SHARE);
    order.sort_unstable();
    order
        .into_iter()
        .flat_map(|run| run * RUN..(run + 1) * RUN)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_foretold() {
        for samples in [0, 7, 399, 400, 415, 416, 640, 3201, 10_000] {
            let mut left = samples;
            for size in coarser(samples, 4) {
                left = choose(left).len();
                assert_eq!(size, left);
            }
            assert!(choose(left).len() < FEWEST);
        }
        assert_eq!(coarser(10_000, 4).count(), 3);
        assert_eq!(coarser(10_000, 700).count(), 1);
    }
}
