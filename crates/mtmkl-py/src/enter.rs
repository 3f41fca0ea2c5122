//! The one way in: the interpreter is let go while the core works, and Ctrl-C is answered.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use mtmkl::{Pool, Stop};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors::{self, Origins};

/// How often Python is asked whether there was a signal.
const POLL: Duration = Duration::from_millis(20);

/// Runs `work` on a thread of its own, without the interpreter, and asks Python for signals meanwhile.
///
/// An interruption is raised at once: `stop` is requested, and the thread, which owns all it works on, ends by itself at the next point
/// where it looks. It holds nothing of Python's, so the interpreter does not have to wait for it.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    stop: &Stop,
    origins: &Origins,
    work: impl FnOnce() -> mtmkl::Result<T> + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = sync_channel(1);
    std::thread::Builder::new()
        .name("mtmkl".to_string())
        .spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(work));
            // Nobody listens after an interruption.
            let _ = sender.send(result);
        })?;
    loop {
        let waiting = &mut receiver;
        match py.detach(move || waiting.recv_timeout(POLL)) {
            Ok(Ok(result)) => return result.map_err(|error| errors::raise(error, origins)),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => return Err(broken()),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(signal) = py.check_signals() {
                    stop.request();
                    return Err(signal);
                }
            }
        }
    }
}

/// Runs `work` without the interpreter, on this thread: for what is over soon.
pub(crate) fn released<T: Send>(
    py: Python<'_>,
    origins: &Origins,
    work: impl FnOnce() -> mtmkl::Result<T> + Send,
) -> PyResult<T> {
    match py.detach(|| catch_unwind(AssertUnwindSafe(work))) {
        Ok(result) => result.map_err(|error| errors::raise(error, origins)),
        Err(_) => Err(broken()),
    }
}

/// So many threads, made once for each number: those of this process, not of one that it was forked from.
pub(crate) fn pool(threads: usize) -> PyResult<Pool> {
    static POOLS: Mutex<BTreeMap<(u32, usize), Pool>> = Mutex::new(BTreeMap::new());
    let new = || Pool::new(threads).map_err(|error| errors::raise(error, &Origins::default()));
    // A process may be forked while another thread holds the lock; nobody would give it back there.
    let Ok(mut pools) = POOLS.try_lock() else {
        return new();
    };
    let key = (std::process::id(), threads);
    if let Some(pool) = pools.get(&key) {
        return Ok(pool.clone());
    }
    let pool = new()?;
    // A pool of the process before a fork has no threads left that could be ended.
    for (_, lost) in pools.extract_if((0, 0).., |(process, _), _| *process != key.0) {
        std::mem::forget(lost);
    }
    pools.insert(key, pool.clone());
    Ok(pool)
}

/// A panic is our fault, whatever the input was.
pub(crate) fn broken() -> PyErr {
    PyRuntimeError::new_err(
        "mtmkl broke down: this is a fault of mtmkl, not of your data; please report it with the lines that stand above",
    )
}
