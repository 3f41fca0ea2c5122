//! Signals: which of them ask for a stop, and which are errors like any other.

use mtmkl::Stop;

/// A stop that Ctrl-C, `kill` and a terminal that is closed request; whoever asks twice ends the program at once.
///
/// Until this is called they end the program at once as well: there is nothing to keep.
pub fn interruptible() -> Stop {
    let stop = Stop::never();
    system::heed(stop.clone());
    stop
}

/// Has a file that grows beyond the system's limit (`ulimit -f`) refuse the write, which is an error with a name, and has the program end with the code of
/// an error where memory is refused, after the one line that the allocator has said; the system's own way is to end the program with a signal.
pub fn refusals_are_errors() {
    system::refusals_are_errors();
}

/// What a signal of this number (Ctrl-C has 2 everywhere) means for the work that `stop` is of.
fn answer(signal: i32, stop: &Stop) {
    if stop.is_requested() {
        // Whoever asks twice does not want to wait for the model; files are written whole or not at all.
        #[allow(clippy::exit, reason = "there is no way back from a signal handler")]
        std::process::exit(128 + signal);
    }
    stop.request();
    let said = if signal == 2 {
        "stopping with the best so far; Ctrl-C again ends at once"
    } else {
        "stopping with the best so far; another signal ends at once"
    };
    // Beside listening: where nobody reads what is said, the next signal is still heard. Without a thread nothing is said.
    let _ = std::thread::Builder::new().spawn(move || crate::output::note(said));
}

#[cfg(unix)]
mod system {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::sync_channel;

    use mtmkl::Stop;
    use signal_hook::consts::{SIGABRT, SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    use signal_hook::flag;
    use signal_hook::iterator::Signals;

    pub(super) fn heed(stop: Stop) {
        let mut asked = vec![SIGINT, SIGTERM];
        // Under `nohup` a closed terminal means nothing, as it was asked for.
        if !is_ignored(SIGHUP) {
            asked.push(SIGHUP);
        }
        let (ready, is_ready) = sync_channel(1);
        // Taken over on the thread that answers: without it, signals stay the system's.
        let thread = std::thread::Builder::new().name("signals".to_string());
        let started = thread.spawn(move || {
            let signals = Signals::new(asked);
            let _ = ready.send(());
            if let Ok(mut signals) = signals {
                for signal in signals.forever() {
                    super::answer(signal, &stop);
                }
            }
        });
        if started.is_ok() {
            let _ = is_ready.recv();
        }
    }

    pub(super) fn refusals_are_errors() {
        // Whether it was raised is nobody's business: the write says so.
        let _ = flag::register(SIGXFSZ, Arc::default());
        // What cannot be allocated ends a program of Rust so, there being no memory to go on with.
        let _ = flag::register_conditional_shutdown(SIGABRT, 2, Arc::new(AtomicBool::new(true)));
    }

    /// Whether whoever started the program wants this signal ignored; where the system does not tell, it is not.
    fn is_ignored(signal: i32) -> bool {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status
            .lines()
            .find_map(|line| line.strip_prefix("SigIgn:"))
            .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
    }
}

#[cfg(not(unix))]
mod system {
    use mtmkl::Stop;

    pub(super) fn heed(stop: Stop) {
        // A second handler in one process cannot be set; then Ctrl-C ends the program as usual.
        let _ = ctrlc::set_handler(move || super::answer(2, &stop));
    }

    pub(super) fn refusals_are_errors() {}
}
