//! What to try: the values of `--grid`.

use anyhow::{Context, Result, anyhow, bail};
use mtmkl::NamedLevel;
use mtmkl::entry::Parameter;
use mtmkl::machine::MachineSpec;
use mtmkl::select::{Axis, Grid, Tasks, UsualSearch};
use mtmkl::sharing::SharingSpec;

use super::variant::{self, Variant};
use crate::args::{FitArgs, TuneArgs};
use crate::{choices, parameters};

/// The values to try, as `--grid` gives them.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    axes: Vec<Axis>,
    sharings: Vec<String>,
    /// Flags whose values make other Gram matrices.
    flags: Vec<(String, Vec<String>)>,
    is_nothing: bool,
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
            if variant::NAMES.contains(&name) {
                if wanted.flags.iter().any(|(known, _)| known == name) {
                    bail!(
                        "--grid {text}: {name} is in the grid already; give all its values at once"
                    );
                }
                let values = values.iter().map(ToString::to_string).collect();
                wanted.flags.push((name.to_string(), values));
                continue;
            }
            let registry = &args.fit.registry;
            let Some(parameter) = parameters::named(registry, name) else {
                let mut known = parameters::numbers(registry);
                known.push("sharing".to_string());
                known.extend(variant::NAMES.map(String::from));
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
        wanted.is_nothing =
            wanted.axes.is_empty() && wanted.sharings.is_empty() && args.kernel_set.is_empty();
        for variant in wanted.variants() {
            variant.set(&mut args.fit.clone())?;
        }
        Ok(wanted)
    }

    /// Every combination of flags that make other Gram matrices.
    pub(super) fn variants(&self) -> Vec<Variant> {
        Variant::all(&self.flags)
    }

    /// Whether there is nothing to try but the usual.
    pub(super) fn is_nothing(&self) -> bool {
        self.is_nothing
    }

    /// Every combination of the values, with so many kernel sets.
    pub(super) fn grid(
        &self,
        machine: &MachineSpec,
        args: &FitArgs,
        tasks: Tasks,
        levels: &[NamedLevel],
        kernel_sets: usize,
    ) -> Result<Grid> {
        let sharings = self.sharings(args, tasks, levels)?;
        Grid::new(machine, &sharings, kernel_sets, &self.axes).map_err(|error| match error {
            mtmkl::Error::Unknown { name, known, .. } => anyhow!(
                "--grid {name}=…: expected a parameter of the machine or of one of the sharings in the grid: {known}"
            ),
            other => other.into(),
        })
    }

    /// The sharings of the grid, or the one that `fit` would take.
    fn sharings(
        &self,
        args: &FitArgs,
        tasks: Tasks,
        levels: &[NamedLevel],
    ) -> Result<Vec<SharingSpec>> {
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
            return Ok(vec![choices::sharing(&args, tasks, levels)?]);
        }
        self.sharings
            .iter()
            .map(|name| {
                args.sharing = Some(name.clone());
                choices::sharing(&args, tasks, levels)
            })
            .collect()
    }
}

/// The sharings of learned weights that the usual search tries: the one that `fit` would take, with several p where none is given.
pub(super) fn learned(
    args: &FitArgs,
    tasks: Tasks,
    levels: &[NamedLevel],
) -> Result<Vec<SharingSpec>> {
    let sharing = choices::sharing(args, tasks, levels)?;
    Ok(if args.parameters.is_given("p") {
        vec![sharing]
    } else {
        UsualSearch::exponents(&sharing)
    })
}

/// Whether a flag says what the price of an error is, so that it is not searched for.
pub(super) fn price_is_given(args: &FitArgs, machine: &MachineSpec) -> bool {
    let entry = machine.entry();
    let parameters = entry.map_or(&[][..], |entry| entry.part.parameters);
    let mut tried = parameters
        .iter()
        .filter(|parameter| !parameter.grid.is_empty());
    tried.any(|parameter| {
        let flag = parameter.flag();
        args.parameters.is_given(&flag) && !args.parameters.is_auto(&flag)
    })
}
