//! Threads: made once, at the top, and handed down to everything that computes.

use std::sync::Arc;

use crate::error::{Error, Result};

/// More threads than this are a slip of the hand, and some systems end a process that asks for too many.
const MOST_THREADS: usize = 1024;

/// Some threads. A clone is the same ones; results do not depend on how many they are.
///
/// Never rayon's global pool: a process forked from this one would wait for threads that it does not have.
#[derive(Debug, Clone)]
pub struct Pool {
    threads: Arc<rayon::ThreadPool>,
}

impl Pool {
    /// So many threads; 0 means one per core.
    ///
    /// # Errors
    /// When they are more than 1024, or more than the system gives.
    pub fn new(threads: usize) -> Result<Self> {
        let count = thread_count(threads)?;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(count).build();
        let pool = pool.map_err(|error| {
            Error::param(
                "threads",
                count,
                format!("fewer, for the system gives no more ({error})"),
            )
        })?;
        Ok(Self {
            threads: Arc::new(pool),
        })
    }

    /// So many threads (0: one per core) in several pools, for as many workers as there are jobs: of one thread each, or of more where
    /// there are fewer jobs than threads.
    ///
    /// # Errors
    /// As [`Pool::new`].
    pub fn for_jobs(jobs: usize, threads: usize) -> Result<Vec<Self>> {
        let threads = thread_count(threads)?;
        let workers = threads.min(jobs).max(1);
        (0..workers).map(|_| Self::new(threads / workers)).collect()
    }

    /// How many threads.
    pub fn threads(&self) -> usize {
        self.threads.current_num_threads()
    }

    /// Runs `work` on one of these threads; what it does in parallel, and what it predicts, they share.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.threads.install(work)
    }
}

/// The number of threads that is meant by `threads`: 0 is one per core.
///
/// # Errors
/// When it is more than [`MOST_THREADS`].
fn thread_count(threads: usize) -> Result<usize> {
    match threads {
        // Of this process' own asking: rayon would look for a number in the environment first.
        0 => Ok(std::thread::available_parallelism()
            .map_or(1, std::num::NonZero::get)
            .min(MOST_THREADS)),
        given if given > MOST_THREADS => Err(Error::param(
            "threads",
            given,
            format!("at most {MOST_THREADS}, or 0 for one per core"),
        )),
        given => Ok(given),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_counted_before_they_are_asked_for() {
        for threads in [MOST_THREADS + 1, 100_000, usize::MAX] {
            let message = Pool::new(threads).unwrap_err().to_string();
            assert_eq!(
                message,
                format!(
                    "parameter `threads` is {threads}, expected at most 1024, or 0 for one per core"
                )
            );
        }
        assert!(Pool::new(0).unwrap().threads() >= 1);
        assert_eq!(Pool::new(3).unwrap().threads(), 3);
        for (jobs, threads, pools) in [(0, 4, 1), (2, 8, 2), (5, 3, 3), (9, 1, 1)] {
            let made = Pool::for_jobs(jobs, threads).unwrap();
            assert_eq!(made.len(), pools);
            assert!(made.iter().all(|pool| pool.threads() == threads / pools));
        }
    }
}
