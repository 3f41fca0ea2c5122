//! The price of an error where a flag says `auto`.

use mtmkl::select::{Limits, Metric, Price};
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
    // Only one that is named: a price goes by what errors cost else.
    let metric = args.metric.as_deref().and_then(Metric::named);
    let (prepared, price) = prepared.at_usual_price(metric, &Limits::from(fitting))?;
    Ok((prepared, Some(price)))
}
