//! The one way in: the interpreter is let go while the core works, and Ctrl-C is answered.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use mtmkl::Stop;
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

/// A panic is our fault, whatever the input was.
fn broken() -> PyErr {
    PyRuntimeError::new_err(
        "mtmkl broke down: this is a fault of mtmkl, not of your data; please report it with the lines that stand above",
    )
}
