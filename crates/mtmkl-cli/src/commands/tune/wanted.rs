//! What to try: the values of `--grid`.

use anyhow::{Context, Result, bail};
use mtmkl::select::{Axis, Parameter};
use mtmkl::sharing::SharingSpec;

use crate::args::{FitArgs, TuneArgs};
use crate::choices;

/// The values to try, as `--grid` gives them.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) axes: Vec<Axis>,
    sharings: Vec<String>,
}

/// A number, or a fraction such as 1/27.
fn number(text: &str) -> Option<f64> {
    let plain = |text: &str| {
        text.trim()
            .parse::<f64>()
            .ok()
            .filter(|value| value.is_finite())
    };
    match text.split_once('/') {
        None => plain(text),
        Some((above, below)) => {
            Some(plain(above)? / plain(below)?).filter(|value| value.is_finite())
        }
    }
}

impl Wanted {
    pub(super) fn new(args: &TuneArgs) -> Result<Self> {
        let mut wanted = Self::default();
        for text in &args.grid {
            let (name, values) = text.split_once('=').with_context(|| {
                format!("--grid {text}: expected NAME=VALUES, e.g. --grid C=0.1,1,10")
            })?;
            let values: Vec<&str> = values
                .split(',')
                .map(str::trim)
                .filter(|value| !value.is_empty())
                .collect();
            if values.is_empty() {
                bail!(
                    "--grid {text}: there is nothing to try; name the values, e.g. --grid {name}=1,2"
                );
            }
            if name == "sharing" {
                wanted
                    .sharings
                    .extend(values.iter().map(ToString::to_string));
                continue;
            }
            let Some(parameter) = Parameter::named(name) else {
                let mut known: Vec<&str> =
                    Parameter::ALL.into_iter().map(Parameter::name).collect();
                known.push("sharing");
                return Err(choices::unknown("grid parameter", name, &known));
            };
            if wanted.axes.iter().any(|axis| axis.parameter == parameter) {
                bail!("--grid {text}: {name} is in the grid already; give all its values at once");
            }
            let values = values
                .iter()
                .map(|value| {
                    number(value)
                        .with_context(|| format!("--grid {text}: `{value}` is not a number"))
                })
                .collect::<Result<Vec<f64>>>()?;
            wanted.axes.push(Axis { parameter, values });
        }
        if args.grid.is_empty() && args.kernel_set.is_empty() {
            wanted.axes.push(usual(&args.fit.machine));
        }
        Ok(wanted)
    }

    /// The sharings of the grid, or the one that `fit` would take.
    pub(super) fn sharings(&self, args: &FitArgs, tasks: usize) -> Result<Vec<SharingSpec>> {
        let mut args = args.clone();
        for axis in &self.axes {
            // A sharing that must be given a value gets one of those to come.
            match axis.parameter {
                Parameter::Beta => args.beta = axis.values.first().copied(),
                Parameter::Upper => args.upper = axis.values.first().copied(),
                _ => {}
            }
        }
        if self.sharings.is_empty() {
            return Ok(vec![choices::sharing(&args, tasks)?]);
        }
        self.sharings
            .iter()
            .map(|name| {
                args.sharing = Some(name.clone());
                choices::sharing(&args, tasks)
            })
            .collect()
    }
}

/// What is tried where nothing is said: the price of errors.
fn usual(machine: &str) -> Axis {
    let (parameter, values): (_, &[f64]) = match machine {
        "krr" => (Parameter::Lambda, &[1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0]),
        "ocsvm" => (Parameter::Nu, &[0.05, 0.1, 0.2, 0.3, 0.5]),
        "svdd" => (Parameter::C, &[0.05, 0.1, 0.2, 0.5, 1.0]),
        _ => (
            Parameter::C,
            &[1.0 / 27.0, 1.0 / 9.0, 1.0 / 3.0, 1.0, 3.0, 9.0, 27.0],
        ),
    };
    Axis {
        parameter,
        values: values.to_vec(),
    }
}
