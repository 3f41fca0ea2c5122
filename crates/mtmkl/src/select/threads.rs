//! Work spread over threads, with results that do not depend on how many there are.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::pool::Pool;

/// Calls `work(i, pool)` for i in 0..count by one worker for each pool (see [`Pool::for_jobs`]), in the order of i as far as workers are
/// free. After the first error no call is begun; without pools none is.
///
/// # Errors
/// The error of the smallest i among the calls that were begun.
pub fn in_parallel<E: Send>(
    count: usize,
    pools: &[Pool],
    work: impl Fn(usize, &Pool) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let [own, others @ ..] = pools else {
        return Ok(());
    };
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let first: Mutex<Option<(usize, E)>> = Mutex::new(None);
    let worker = |pool: &Pool| {
        while !failed.load(Ordering::Relaxed) {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= count {
                return;
            }
            if let Err(error) = work(i, pool) {
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
        for pool in others {
            // Where the system gives no more threads, those there are do it all.
            if std::thread::Builder::new()
                .spawn_scoped(scope, || worker(pool))
                .is_err()
            {
                break;
            }
        }
        worker(own);
    });
    let first = first
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    first.map_or(Ok(()), |(_, error)| Err(error))
}
