//! Settings from a TOML file with the names of the flags; flags win.
//!
//! A file becomes the flags it stands for, put before the ones given: each value is then checked, and complained about, by the
//! same code. `[fit]`-like sections do not exist: one file, one run.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::{ArgAction, CommandFactory, Parser};

use crate::args::{Cli, Command};

/// Flags that make no sense inside a file.
const NOT_IN_FILES: [&str; 6] = [
    "config",
    "print-config",
    "verbose",
    "quiet",
    "help",
    "version",
];

/// Parses the command line, with the configuration file's settings worked in where `fit --config` names one.
///
/// # Errors
/// When the file cannot be read or has an unknown name or a value of the wrong kind. Faults of the command line itself end the
/// program the way clap does it: usage on standard error, exit 2.
pub fn parse(arguments: &[OsString]) -> Result<std::result::Result<Cli, clap::Error>> {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return Ok(Err(error)),
    };
    let Command::Fit(fit) = &cli.command else {
        return Ok(Ok(cli));
    };
    let Some(path) = &fit.config else {
        return Ok(Ok(cli));
    };
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    // program, `fit`, settings of the file, everything else as given
    let given = &arguments[2..];
    let mut merged: Vec<OsString> = arguments[..2].to_vec();
    merged.extend(flags(&text, path, given)?);
    merged.extend(given.iter().cloned());
    Ok(Cli::try_parse_from(merged))
}

/// The flags that a file's settings stand for, without the lists that the command line replaces.
///
/// # Errors
/// Names the file, the setting and the nearest known name.
pub fn flags(text: &str, path: &Path, given: &[OsString]) -> Result<Vec<OsString>> {
    let file = path.display();
    let table: toml::Table = text
        .parse()
        .with_context(|| format!("{file} is not a TOML file"))?;
    let program = Cli::command();
    let Some(fit) = program.find_subcommand("fit") else {
        bail!("the program has no `fit`")
    };
    let known: Vec<(&str, &clap::Arg)> = fit
        .get_arguments()
        .filter_map(|argument| argument.get_long().map(|name| (name, argument)))
        .filter(|(name, _)| !NOT_IN_FILES.contains(name))
        .collect();
    let mut flags: Vec<OsString> = Vec::new();
    for (name, value) in &table {
        let Some((_, argument)) = known.iter().find(|(known, _)| known == name) else {
            let nearest = known
                .iter()
                .map(|(known, _)| {
                    (
                        strsim::damerau_levenshtein(&known.to_lowercase(), &name.to_lowercase()),
                        known,
                    )
                })
                .min()
                .map_or(String::new(), |(_, known)| {
                    format!("; did you mean `{known}`?")
                });
            bail!("{file}: unknown setting `{name}`{nearest}");
        };
        let flag = format!("--{name}");
        let is_list = matches!(argument.get_action(), ArgAction::Append);
        let replaced = |argument: &OsString| {
            argument
                .to_str()
                .is_some_and(|text| text == flag || text.starts_with(&format!("{flag}=")))
        };
        if is_list && given.iter().any(replaced) {
            continue;
        }
        match (value, argument.get_action()) {
            (toml::Value::Boolean(true), ArgAction::SetTrue) => flags.push(flag.into()),
            (toml::Value::Boolean(false), ArgAction::SetTrue) => {}
            (other, ArgAction::SetTrue) => {
                bail!("{file}: `{name}` is {other}, expected true or false")
            }
            (toml::Value::Array(values), _) if is_list => {
                for value in values {
                    flags.push(format!("{flag}={}", plain(value, name, path)?).into());
                }
            }
            (toml::Value::Array(_), _) => bail!("{file}: `{name}` takes one value, not a list"),
            (value, _) => flags.push(format!("{flag}={}", plain(value, name, path)?).into()),
        }
    }
    Ok(flags)
}

fn plain(value: &toml::Value, name: &str, path: &Path) -> Result<String> {
    Ok(match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => number.to_string(),
        toml::Value::Boolean(truth) => truth.to_string(),
        other => bail!(
            "{}: `{name}` is {other}, expected a text, a number, true or false",
            path.display()
        ),
    })
}
