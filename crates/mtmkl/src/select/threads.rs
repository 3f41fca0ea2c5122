//! Work spread over threads, with results that do not depend on how many there are.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::run::MOST_THREADS;

/// Calls `work(i, inner)` for i in 0..count on up to `threads` threads (0: one per core), in the order of i as far as threads are
/// free; `inner` is how many threads each call may use itself: all of them where there are fewer calls than threads. After the
/// first error no call is begun.
///
/// # Errors
/// The error of the smallest i among the calls that were begun.
pub fn in_parallel<E: Send>(
    count: usize,
    threads: usize,
    work: impl Fn(usize, usize) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let threads = match threads {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        given => given.min(MOST_THREADS),
    };
    let workers = threads.min(count).max(1);
    let inner = (threads / workers).max(1);
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let first: Mutex<Option<(usize, E)>> = Mutex::new(None);
    let worker = || {
        while !failed.load(Ordering::Relaxed) {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= count {
                return;
            }
            if let Err(error) = work(i, inner) {
                failed.store(true, Ordering::Relaxed);
                let mut first = first
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                if first.as_ref().is_none_or(|(known, _)| i < *known) {
                    *first = Some((i, error));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..workers {
            // Where the system gives no more threads, those there are do it all.
            if std::thread::Builder::new()
                .spawn_scoped(scope, worker)
                .is_err()
            {
                break;
            }
        }
        worker();
    });
    let first = first
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    first.map_or(Ok(()), |(_, error)| Err(error))
}
