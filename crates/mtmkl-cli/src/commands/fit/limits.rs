//! How to prepare and to run a fit, by the flags.

use std::time::Duration;

use anyhow::{Result, bail};
use mtmkl::error::human_bytes;
use mtmkl::ledger::{Ledger, bytes_of};
use mtmkl::{Definiteness, Fitting, Preparation, Prepared, Stop, Storage};

use crate::args::FitArgs;
use crate::progress::Progress;
use crate::{choices, output};

/// How to fit, by the flags' limits.
pub(in crate::commands) fn fitting_of<'a>(
    args: &FitArgs,
    stop: &Stop,
    progress: &'a mut Progress,
) -> Result<Fitting<'a>> {
    let time_limit = match args.time_limit {
        Some(seconds) if seconds >= 0.0 && seconds.is_finite() => {
            // More than the clock can count is no limit.
            Duration::try_from_secs_f64(seconds).ok()
        }
        Some(seconds) => bail!("--time-limit is {seconds}, expected a number of seconds ≥ 0"),
        None => None,
    };
    Ok(Fitting {
        tolerance: args.tol,
        max_passes: args.max_passes,
        time_limit,
        seed: args.seed,
        start: None,
        stop: stop.clone(),
        rounds: progress.rounds().clone(),
        observer: Some(progress),
    })
}

/// How to prepare the kernels, by the flags.
pub(in crate::commands) fn preparation_of(args: &FitArgs, ledger: &Ledger) -> Result<Preparation> {
    Ok(Preparation {
        ledger: ledger.clone(),
        storage: choices::storage(args)?,
        precision: choices::precision(args)?,
        definiteness: if args.allow_indefinite {
            Definiteness::AllowIndefinite
        } else {
            Definiteness::Check
        },
        pool: Some(choices::pool(args.threads)?),
    })
}

/// Says on standard error where kernel values are not kept, unless somebody asked for it.
pub(in crate::commands) fn note_storage(args: &FitArgs, prepared: &Prepared) {
    if args.storage.is_some() {
        return;
    }
    match prepared.storage() {
        Storage::Kept => {}
        Storage::Mapped => output::note(
            "note: the kernel matrices do not fit into the memory limit, so their values are made on demand, which may be slower; \
             --memory-limit (GiB) raises it",
        ),
        Storage::Streamed => output::note(&streamed_note(prepared)),
    }
}

/// What streaming saves and what it costs.
fn streamed_note(prepared: &Prepared) -> String {
    let problem = prepared.problem();
    let largest = problem.samples().iter().map(mtmkl::Samples::count).max();
    let (n, kernels) = (largest.unwrap_or(0), problem.shape().kernels);
    let matrix = bytes_of::<f64>(n.saturating_mul(n));
    format!(
        "note: a matrix of {n} × {n} kernel values ({}) does not fit into the memory limit, so values are made from rows in blocks: about {:.1e} \
         for each thousand support vectors and each of some ten sweeps; --memory-limit (GiB) raises it",
        human_bytes(matrix),
        1000.0 * n as f64 * kernels as f64,
    )
}
