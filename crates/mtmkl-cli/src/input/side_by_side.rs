//! A few threads for reading: what they make does not depend on how many they are.

use std::num::NonZero;
use std::sync::Mutex;
use std::thread;

/// More do not read a disk faster.
const MOST: usize = 4;

/// `call` of each item, in their order, by a few threads.
pub(super) fn side_by_side<T: Send, R: Send>(
    items: Vec<T>,
    call: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = cores.min(MOST).min(items.len());
    if threads < 2 {
        return items.into_iter().map(call).collect();
    }
    let next = Mutex::new(items.into_iter().enumerate());
    let work = || {
        let take = || next.lock().ok().and_then(|mut items| items.next());
        let mut made = Vec::new();
        while let Some((number, item)) = take() {
            made.push((number, call(item)));
        }
        made
    };
    let mut made = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for other in others {
            match other.join() {
                Ok(part) => all.extend(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    made.sort_by_key(|(number, _)| *number);
    made.into_iter().map(|(_, result)| result).collect()
}
