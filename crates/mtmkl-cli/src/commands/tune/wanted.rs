//! What to try: the values of `--grid`.

use anyhow::{Context, Result, bail};
use mtmkl::entry::Parameter;
use mtmkl::machine::MachineSpec;
use mtmkl::select::Axis;
use mtmkl::sharing::SharingSpec;

use crate::args::{FitArgs, TuneArgs};
use crate::{choices, parameters};

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
            let registry = &args.fit.registry;
            let Some(parameter) = parameters::named(registry, name) else {
                let mut known = parameters::numbers(registry);
                known.push("sharing".to_string());
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                return Err(choices::unknown("grid parameter", name, &known));
            };
            let parameter = parameter.name.to_string();
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
            wanted.axes.extend(usual(&choices::machine(&args.fit)?));
        }
        Ok(wanted)
    }

    /// The sharings of the grid, or the one that `fit` would take.
    pub(super) fn sharings(&self, args: &FitArgs, tasks: usize) -> Result<Vec<SharingSpec>> {
        let mut args = args.clone();
        for axis in &self.axes {
            // A sharing that must be given a value gets one of those to come.
            let all = args.registry.parameters();
            let flag = all
                .map(|(_, parameter)| parameter)
                .find(|one| one.name == axis.parameter);
            let flag = flag
                .map(Parameter::flag)
                .filter(|flag| !args.parameters.has(flag));
            if let (Some(flag), Some(&value)) = (flag, axis.values.first()) {
                args.parameters.set(&flag, value);
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

/// What is tried where nothing is said: what the machine's entry names.
fn usual(machine: &MachineSpec) -> Vec<Axis> {
    let parameters = machine
        .entry()
        .map_or(&[][..], |entry| entry.part.parameters);
    let tried = parameters
        .iter()
        .filter(|parameter| !parameter.grid.is_empty());
    let axis = |parameter: &Parameter| Axis {
        parameter: parameter.name.to_string(),
        values: parameter.grid.to_vec(),
    };
    tried.map(axis).collect()
}
