//! Settings from a TOML file with the names of the flags; flags win.
//!
//! A file becomes the flags it stands for, put before the ones given: each value is then checked, and complained about, by the
//! same code. `[fit]`-like sections do not exist: one file, one run.

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::ArgAction;
use mtmkl::Registry;

use crate::args::{Cli, Command};
use crate::words::nearest;

/// More bytes than this are no settings.
const MOST_BYTES: u64 = 64 << 20;

/// The text of a file that people write: settings, a tree of tasks.
///
/// # Errors
/// When it cannot be read, is no text, or does not end.
pub fn text_of(path: &Path) -> Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path);
    let read = file.and_then(|file| file.take(MOST_BYTES + 1).read_to_string(&mut text));
    read.with_context(|| format!("cannot read {}", path.display()))?;
    if text.len() as u64 > MOST_BYTES {
        bail!("{} is too long; was another file meant?", path.display());
    }
    Ok(text)
}

/// Flags that make no sense inside a file.
const NOT_IN_FILES: [&str; 8] = [
    "config",
    "journal",
    "resume",
    "print-config",
    "verbose",
    "quiet",
    "help",
    "version",
];

/// Parses the command line, with the configuration file's settings worked in where `--config` of `fit` or `tune` names one.
///
/// # Errors
/// When the file cannot be read or has an unknown name or a value of the wrong kind. Faults of the command line itself end the
/// program the way clap does it: usage on standard error, exit 2.
pub fn parse(
    arguments: &[OsString],
    registry: &Registry,
) -> Result<std::result::Result<Cli, clap::Error>> {
    let program = Cli::command_with(registry)?;
    let cli = match Cli::read(program.clone(), registry, arguments) {
        Ok(cli) => cli,
        Err(error) => return Ok(Err(error)),
    };
    let (command, path) = match &cli.command {
        Command::Fit(fit) => ("fit", &fit.config),
        Command::Tune(tune) => ("tune", &tune.fit.config),
        _ => return Ok(Ok(cli)),
    };
    let Some(path) = path else {
        return Ok(Ok(cli));
    };
    let text = text_of(path)?;
    // program, command, settings of the file, everything else as given
    let given = &arguments[2..];
    let mut merged: Vec<OsString> = arguments[..2].to_vec();
    merged.extend(flags(&program, command, &text, path, given)?);
    merged.extend(given.iter().cloned());
    // The flags alone were fine, so whatever is wrong now stands in the file.
    match Cli::read(program, registry, &merged) {
        Ok(cli) => Ok(Ok(cli)),
        Err(error) => {
            Err(Usage(format!("{}: {}", path.display(), bare(&error.to_string()))).into())
        }
    }
}

/// What clap says about settings of a file, which may take several lines.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(String);

/// clap's message without its frame: the word `error`, the usage and the pointer to `--help`.
fn bare(message: &str) -> &str {
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let end = ["\n\nUsage:", "\n\nFor more information"]
        .iter()
        .filter_map(|mark| message.find(mark))
        .min();
    message[..end.unwrap_or(message.len())].trim_end()
}

/// The flags that a file's settings stand for, without the lists that the command line replaces.
///
/// # Errors
/// Names the file, the setting and the nearest known name.
pub fn flags(
    program: &clap::Command,
    command: &str,
    text: &str,
    path: &Path,
    given: &[OsString],
) -> Result<Vec<OsString>> {
    let file = path.display();
    let table: toml::Table = text
        .parse()
        .with_context(|| format!("{file} cannot be read as TOML"))?;
    let Some(fit) = program.find_subcommand(command) else {
        bail!("the program has no `{command}`")
    };
    let known: Vec<(&str, &clap::Arg)> = fit
        .get_arguments()
        .filter_map(|argument| argument.get_long().map(|name| (name, argument)))
        .filter(|(name, _)| !NOT_IN_FILES.contains(name))
        .collect();
    let mut flags: Vec<OsString> = Vec::new();
    for (name, value) in &table {
        let Some((_, argument)) = known.iter().find(|(known, _)| known == name) else {
            bail!("{file}: {}", unknown(name, value, &known))
        };
        let flag = format!("--{name}");
        let is_list = matches!(argument.get_action(), ArgAction::Append);
        let is_given = |flag: &str| {
            given.iter().filter_map(|text| text.to_str()).any(|text| {
                text.strip_prefix(flag)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
            })
        };
        // Flags win: over a list as a whole, and over a setting that excludes them.
        let excluded = fit
            .get_arg_conflicts_with(argument)
            .into_iter()
            .filter_map(clap::Arg::get_long)
            .any(|other| is_given(&format!("--{other}")));
        if excluded || (is_list && is_given(&flag)) {
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

/// Why a name is not a setting, and what was likely meant.
fn unknown(name: &str, value: &toml::Value, known: &[(&str, &clap::Arg)]) -> String {
    if NOT_IN_FILES.contains(&name) {
        return format!("`{name}` is not a setting of a run; say --{name} on the command line");
    }
    if name == "data" {
        return "the table is not a setting; name it on the command line, mtmkl fit DATA --config FILE"
            .to_string();
    }
    if value.is_table() {
        return format!(
            "there are no sections, found `[{name}]`; write its settings at the top of the file"
        );
    }
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    let hint = match nearest(name, &names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "the settings are the flags that mtmkl fit --help lists".to_string(),
    };
    format!("unknown setting `{name}`; {hint}")
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
