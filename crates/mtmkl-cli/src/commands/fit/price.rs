//! The price of an error where a flag says `auto`.

use mtmkl::select::{Limits, Price};
use mtmkl::{Fitting, Prepared, Result};

use crate::args::FitArgs;

/// The problem with the price that the data chooses, where that is asked for.
pub(super) fn priced(
    args: &FitArgs,
    prepared: Prepared,
    fitting: &Fitting<'_>,
) -> Result<(Prepared, Option<Price>)> {
    let spec = prepared.problem().spec();
    let parameters = spec.machine.entry().map(|entry| entry.part.parameters);
    let is_auto = parameters.is_some_and(|parameters| {
        let mut flags = parameters.iter().map(mtmkl::entry::Parameter::flag);
        flags.any(|flag| args.parameters.is_auto(&flag))
    });
    if !is_auto {
        return Ok((prepared, None));
    }
    let price = prepared.usual_price(&Limits {
        tolerance: fitting.tolerance,
        max_passes: fitting.max_passes,
        time_limit: fitting.time_limit,
        seed: fitting.seed,
        warm: true,
        stop: fitting.stop.clone(),
    })?;
    let (mut machine, sharing) = (spec.machine.clone(), spec.sharing.clone());
    machine.set(price.parameter, price.value);
    Ok((prepared.with(&machine, &sharing)?, Some(price)))
}
