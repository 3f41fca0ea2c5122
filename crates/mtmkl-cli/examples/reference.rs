//! Writes the reference pages of the documentation, made from what the program itself is made of: commands and flags from clap, kernels,
//! machines and sharings from their entries.
//!
//! `cargo run -p mtmkl-cli --example reference -- FOLDER` writes `cli.md`, `kernels.md`, `machines.md` and `sharings.md` there; `cargo xtask docs`
//! calls it.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap::builder::StyledStr;
use mtmkl::Registry;
use mtmkl::entry::{Kind, Parameter, Part};
use mtmkl::machine::TargetKind;
use mtmkl_cli::args::Cli;

fn main() -> Result<()> {
    let folder = std::env::args()
        .nth(1)
        .context("say which folder the pages go to")?;
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    let registry = Registry::default();
    let mut program = Cli::command_with(&registry)?;
    program.build();
    for (name, text) in [
        ("cli.md", commands(&program)?),
        ("kernels.md", kernels(&registry)?),
        ("machines.md", machines(&registry)?),
        ("sharings.md", sharings(&registry)?),
    ] {
        std::fs::write(folder.join(name), text)?;
    }
    Ok(())
}

/// Text as Markdown that shows it: what stands in back quotes stays as it is.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for (part, piece) in text.split('`').enumerate() {
        if part > 0 {
            out.push('`');
        }
        for letter in piece.chars() {
            if part % 2 == 0 && r"\*_[]<>$|#~".contains(letter) {
                out.push('\\');
            }
            out.push(letter);
        }
    }
    out
}

fn styled(text: Option<&StyledStr>) -> String {
    text.map_or(String::new(), |text| plain(text.to_string().trim()))
}

fn commands(program: &clap::Command) -> Result<String> {
    let mut out = String::from(
        "# The program\n\nExit codes: 0 converged, 1 not converged (the best model is still written), 2 error. Results go to standard output, everything \
         else to standard error.\n",
    );
    // In the order in which they are declared: those with flags of entries are put in last.
    for declared in Cli::command().get_subcommands() {
        let Some(command) = program.find_subcommand(declared.get_name()) else {
            continue;
        };
        let name = command.get_name();
        let about = styled(command.get_long_about().or(command.get_about()));
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim().trim_start_matches("Usage: ");
        write!(
            out,
            "\n## mtmkl {name}\n\n{about}\n\n```text\n{usage}\n```\n"
        )?;
        let arguments: Vec<&clap::Arg> = command
            .get_arguments()
            .filter(|argument| !argument.is_hide_set() && argument.get_id() != "help")
            .collect();
        let mut places = Vec::new();
        for argument in &arguments {
            if !places.contains(&place(argument)) {
                places.push(place(argument));
            }
        }
        for at in places {
            write!(out, "\n### {at} of {name}\n\n")?;
            for argument in arguments.iter().filter(|argument| place(argument) == at) {
                argument_line(&mut out, argument)?;
            }
        }
    }
    Ok(out)
}

/// Under which heading an argument stands.
fn place(argument: &clap::Arg) -> &str {
    argument
        .get_help_heading()
        .unwrap_or(if argument.is_positional() {
            "Arguments"
        } else {
            "Options"
        })
}

fn argument_line(out: &mut String, argument: &clap::Arg) -> Result<()> {
    let values: Vec<String> = argument
        .get_value_names()
        .into_iter()
        .flatten()
        .map(|value| format!("<{value}>"))
        .collect();
    let takes = argument.get_action().takes_values();
    let mut name = argument
        .get_long()
        .map_or(String::new(), |long| format!("--{long}"));
    if let Some(short) = argument.get_short() {
        name = format!("-{short}, {name}");
    }
    if takes && !values.is_empty() {
        name = format!("{name} {}", values.join(" "));
    }
    let help = styled(argument.get_long_help().or(argument.get_help()));
    // One item of a list: paragraphs of its own would end it.
    let help = help.replace('\n', " ");
    let stop = if help.is_empty() || help.ends_with(['.', ')']) {
        ""
    } else {
        "."
    };
    write!(
        out,
        "- `{}`: {help}{stop}",
        name.trim().trim_end_matches(',')
    )?;
    let possible = argument.get_possible_values();
    if takes && !possible.is_empty() {
        let shown = possible.iter().filter(|value| !value.is_hide_set());
        let shown: Vec<String> = shown
            .map(|value| format!("`{}`", value.get_name()))
            .collect();
        write!(out, " One of {}.", shown.join(", "))?;
    }
    let default: Vec<_> = argument
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy())
        .collect();
    if takes && !default.is_empty() {
        write!(out, " Default: `{}`.", default.join(" "))?;
    }
    out.push('\n');
    Ok(())
}

fn kernels(registry: &Registry) -> Result<String> {
    let mut out = String::from(
        "# Kernels\n\nA specification is `name:key=value,…@columns`: `rbf:sigma=median*2`, `poly:degree=3@f1..f9`. Several values of a key with `|` between them make \
         as many kernels; any kernel takes `factor`. In Python it is the same text, or a triple (name, specification, columns).\n",
    );
    for entry in registry.kernels() {
        write!(
            out,
            "\n## {}\n\nk(x, z) = {}\n\n",
            entry.name,
            plain(entry.formula)
        )?;
        if !entry.aliases.is_empty() {
            writeln!(out, "Also called {}.\n", entry.aliases.join(", "))?;
        }
        if !entry.keys.is_empty() {
            out += "| key | what it is |\n|---|---|\n";
            for key in entry.keys {
                writeln!(out, "| `{}` | {} |", key.key, plain(key.meaning))?;
            }
            out.push('\n');
        }
        writeln!(out, "Example: `{}`", entry.example)?;
    }
    Ok(out)
}

fn machines(registry: &Registry) -> Result<String> {
    let mut out = String::from(
        "# Machines\n\nWhat learns in each task. [Which machine?](../../user/machines.md) says when to take which; every machine goes with every sharing, except that SVDD needs one of \
         fixed mass.\n",
    );
    for entry in registry.machines() {
        let targets = match entry.targets {
            TargetKind::Labels => "classes",
            TargetKind::Values => "numbers",
            TargetKind::Unlabelled => "none: it learns what is normal",
        };
        heading(&mut out, &entry.part)?;
        write!(
            out,
            "Targets: {targets}. On the command line `--machine {}`.\n\n",
            entry.part.name
        )?;
        parameters(&mut out, &entry.part)?;
    }
    Ok(out)
}

fn sharings(registry: &Registry) -> Result<String> {
    let mut out = String::from(
        "# Sharings\n\nThe sets of kernel weights: what the tasks have in common. [Which sharing?](../../user/sharing.md) says when to take which.\n",
    );
    for entry in registry.sharings() {
        heading(&mut out, &entry.part)?;
        write!(
            out,
            "On the command line `--sharing {}`.\n\n",
            entry.part.name
        )?;
        parameters(&mut out, &entry.part)?;
    }
    Ok(out)
}

fn heading(out: &mut String, part: &Part) -> Result<()> {
    Ok(write!(
        out,
        "\n## {}\n\n{}\n\n",
        part.name,
        plain(part.help)
    )?)
}

fn parameters(out: &mut String, part: &Part) -> Result<()> {
    if part.parameters.is_empty() {
        return Ok(writeln!(out, "It takes no parameters.")?);
    }
    *out +=
        "| in files | flag | Python | what it is | values | default |\n|---|---|---|---|---|---|\n";
    for parameter in part.parameters {
        let (values, default) = range(parameter);
        writeln!(
            out,
            "| `{}` | `--{}` | `{}` | {} | {values} | {default} |",
            parameter.name,
            parameter.flag(),
            parameter.python,
            plain(parameter.help),
        )?;
    }
    Ok(())
}

fn range(parameter: &Parameter) -> (String, String) {
    match parameter.kind {
        Kind::Number { range, default } => (
            plain(&range.signs()),
            default.map_or("must be given".to_string(), |value| value.to_string()),
        ),
        Kind::Truth { default } => (
            "yes or no".into(),
            if default { "yes" } else { "no" }.into(),
        ),
        Kind::List { is_required } => (
            "numbers, one for each kernel".into(),
            if is_required { "must be given" } else { "" }.into(),
        ),
        Kind::Levels => ("groups of tasks".into(), String::new()),
        Kind::Terms => ("terms".into(), String::new()),
        _ => (String::new(), String::new()),
    }
}
