//! The flags of machines and sharings, made from the registry's entries: one flag serves every entry that has a parameter of its name.

use anyhow::{Result, bail};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use mtmkl::Registry;
use mtmkl::entry::{Kind, Parameter, Part, Value};
use mtmkl::machine::MachineSpec;
use mtmkl::select::{Tasks, usual_sharing};
use serde::{Serialize, Serializer};

use crate::words::{either, listing};

/// A flag and the parameters that it is for.
struct Flag {
    name: String,
    heading: &'static str,
    parameters: Vec<(&'static Part, &'static Parameter)>,
}

/// Every flag that machines and sharings have, in the order of the entries.
fn flags(registry: &Registry) -> Vec<Flag> {
    let machines = registry.machines().iter().map(|entry| entry.part.name);
    let machines: Vec<&str> = machines.collect();
    let mut flags: Vec<Flag> = Vec::new();
    for (part, parameter) in registry.parameters() {
        // What groups of tasks there are is said by flags of their own.
        if parameter.kind == Kind::Levels {
            continue;
        }
        let name = parameter.flag();
        match flags.iter_mut().find(|flag| flag.name == name) {
            Some(flag) => flag.parameters.push((part, parameter)),
            None => flags.push(Flag {
                name,
                heading: if machines.contains(&part.name) {
                    "Machine"
                } else {
                    "Sharing"
                },
                parameters: vec![(part, parameter)],
            }),
        }
    }
    flags
}

/// What it means, its range and what it is for, without the name.
fn meaning(parameter: &Parameter) -> String {
    let range = match parameter.kind {
        Kind::Number { range, .. } => format!(", {}", range.signs()),
        _ => String::new(),
    };
    format!("{}{range}", parameter.help)
}

impl Flag {
    fn kind(&self) -> Kind {
        self.parameters[0].1.kind
    }

    /// The default that all its parameters share.
    fn default(&self) -> Option<f64> {
        let mut defaults = self.parameters.iter().map(|(_, one)| one.default());
        let first = defaults.next().flatten();
        first.filter(|_| defaults.all(|other| other == first))
    }

    fn help(&self) -> String {
        let mut texts: Vec<(String, Vec<&str>)> = Vec::new();
        let mut defaults: Vec<(String, Vec<&str>)> = Vec::new();
        let put = |all: &mut Vec<(String, Vec<&'static str>)>, text: String, name| match all
            .iter_mut()
            .find(|(known, _)| *known == text)
        {
            Some((_, names)) => names.push(name),
            None => all.push((text, vec![name])),
        };
        for (part, parameter) in &self.parameters {
            put(&mut texts, meaning(parameter), part.name);
            if let (Some(own), None) = (parameter.default(), self.default()) {
                put(&mut defaults, own.to_string(), part.name);
            }
        }
        let several = matches!(self.kind(), Kind::Terms);
        let for_them =
            |(text, names): &(String, Vec<&str>)| format!("{text}, for {}", listing(names, "and"));
        let mut texts: Vec<String> = texts.iter().map(for_them).collect();
        if let Some(last) = texts.last_mut().filter(|_| !defaults.is_empty()) {
            let each = defaults
                .iter()
                .map(|(value, names)| format!("{value} for {}", listing(names, "and")));
            *last += &format!(" (default {})", each.collect::<Vec<_>>().join(", "));
        }
        let text = texts.join("; ");
        let mut letters = text.chars();
        let first = letters.next().map(char::to_uppercase);
        let repeatable = if several {
            " (repeatable)"
        } else if self.may_be_auto() {
            "; auto lets the data choose"
        } else {
            ""
        };
        format!(
            "{}{}{repeatable}",
            first.into_iter().flatten().collect::<String>(),
            letters.as_str()
        )
    }

    /// Whether the data can choose it.
    fn may_be_auto(&self) -> bool {
        let mut parameters = self.parameters.iter();
        parameters.any(|(_, parameter)| !parameter.grid.is_empty())
    }

    fn argument(&self) -> Arg {
        let argument = Arg::new(self.name.clone())
            .long(self.name.clone())
            .help(self.help())
            .help_heading(self.heading);
        match self.kind() {
            Kind::Number { .. } => {
                let argument = if self.may_be_auto() {
                    argument
                        .value_name("NUMBER|auto")
                        .value_parser(number_or_auto)
                } else {
                    argument
                        .value_name("NUMBER")
                        .value_parser(value_parser!(f64))
                };
                match self.default() {
                    Some(value) => argument.default_value(value.to_string()),
                    None => argument,
                }
            }
            Kind::Truth { default } => argument
                .value_name("true|false")
                .value_parser(value_parser!(bool))
                .default_value(default.to_string())
                .hide_possible_values(true),
            Kind::List { .. } => argument
                .value_name("LIST")
                .value_delimiter(',')
                .action(ArgAction::Append)
                .value_parser(value_parser!(f64)),
            _ => argument.value_name("SPEC").action(ArgAction::Append),
        }
    }
}

/// A number; `auto` is none.
fn number_or_auto(text: &str) -> std::result::Result<f64, String> {
    if text == "auto" {
        return Ok(f64::NAN);
    }
    let number = text.parse::<f64>().map_err(|error| error.to_string())?;
    if number.is_nan() {
        return Err("expected a number, or `auto`".to_string());
    }
    Ok(number)
}

/// The command with the flags of all entries.
///
/// # Errors
/// When an entry has a parameter whose flag is taken.
pub fn with_flags(command: Command, registry: &Registry) -> Result<Command> {
    let mut command = command;
    for flag in flags(registry) {
        let taken = command.get_arguments().any(|known| {
            known.get_long() == Some(&flag.name) || known.get_id().as_str() == flag.name
        });
        if taken {
            let (part, parameter) = flag.parameters[0];
            bail!(
                "`{}`, a parameter of `{}`, has the name of another flag, --{}; give it another with Parameter::flagged",
                parameter.name,
                part.name,
                flag.name
            );
        }
        command = command.arg(flag.argument());
    }
    Ok(command)
}

/// The names of all numbers, as flags, which `--grid` may go through.
pub fn numbers(registry: &Registry) -> Vec<String> {
    let flags = flags(registry).into_iter();
    flags
        .filter(|flag| matches!(flag.kind(), Kind::Number { .. }))
        .map(|flag| flag.name)
        .collect()
}

/// The parameter that a flag of this name stands for.
pub fn named(registry: &Registry, flag: &str) -> Option<&'static Parameter> {
    let mut parameters = registry.parameters().map(|(_, parameter)| parameter);
    parameters.find(|parameter| parameter.is_number() && parameter.flag() == flag)
}

/// What was said, or is the default, for each flag of [`with_flags`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    values: Vec<(String, Setting)>,
    /// The names of the command's flags that were said, not defaults.
    given: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
enum Setting {
    /// The word itself.
    Auto(&'static str),
    Number(f64),
    List(Vec<f64>),
    Truth(bool),
    Texts(Vec<String>),
}

impl Settings {
    /// Of a command line.
    pub fn read(registry: &Registry, matches: &ArgMatches) -> Self {
        let setting = |flag: Flag| {
            let name = flag.name.as_str();
            let value = match flag.kind() {
                Kind::Number { .. } => matches.get_one(name).map(|&number: &f64| {
                    if number.is_nan() && flag.may_be_auto() {
                        Setting::Auto("auto")
                    } else {
                        Setting::Number(number)
                    }
                }),
                Kind::Truth { .. } => matches
                    .get_one(name)
                    .map(|&truth: &bool| Setting::Truth(truth)),
                Kind::List { .. } => matches
                    .get_many(name)
                    .map(|list| Setting::List(list.copied().collect())),
                _ => matches
                    .get_many(name)
                    .map(|texts| Setting::Texts(texts.cloned().collect())),
            };
            Some((flag.name, value?))
        };
        let given = matches.ids().map(clap::Id::as_str);
        let given =
            given.filter(|name| matches.value_source(name) == Some(ValueSource::CommandLine));
        Self {
            given: given.map(String::from).collect(),
            values: flags(registry).into_iter().filter_map(setting).collect(),
        }
    }

    /// Whether the data is to choose the value of a flag.
    pub fn is_auto(&self, flag: &str) -> bool {
        matches!(self.get(flag), Some(Setting::Auto(_)))
    }

    /// Whether a flag of the command was said, by the command line or a file of settings.
    pub fn is_given(&self, flag: &str) -> bool {
        self.given.iter().any(|name| name == flag)
    }

    fn get(&self, flag: &str) -> Option<&Setting> {
        let mut settings = self.values.iter();
        settings.find(|(name, _)| name == flag).map(|(_, set)| set)
    }

    /// Whether something was said.
    pub fn has(&self, flag: &str) -> bool {
        self.get(flag).is_some()
    }

    /// The value of a parameter, as far as something was said.
    pub fn value(&self, parameter: &Parameter) -> Value {
        match self.get(&parameter.flag()) {
            Some(Setting::Number(number)) => (*number).into(),
            Some(Setting::List(list)) => list.clone().into(),
            Some(Setting::Truth(truth)) => (*truth).into(),
            _ => Value::Absent,
        }
    }

    /// The texts of a flag that takes some.
    pub fn texts(&self, flag: &str) -> &[String] {
        match self.get(flag) {
            Some(Setting::Texts(texts)) => texts,
            _ => &[],
        }
    }

    /// Says a number.
    pub fn set(&mut self, flag: &str, value: f64) {
        let number = Setting::Number(value);
        match self.values.iter_mut().find(|(name, _)| name == flag) {
            Some((_, setting)) => *setting = number,
            None => self.values.push((flag.to_string(), number)),
        }
    }
}

impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.values.iter().map(|(name, setting)| (name, setting)))
    }
}

/// The names of all entries where help texts, completions and the rule of defaults name them.
pub fn with_names(command: Command, registry: &Registry) -> Command {
    let machines = registry.machines().iter().map(|entry| entry.part.name);
    let machines: Vec<&str> = machines.collect();
    let sharings = registry.sharings().iter().map(|entry| entry.part.name);
    let sharings: Vec<&str> = sharings.collect();
    let kernels = registry.kernels().iter().map(|entry| match entry.name {
        "precomputed" => "precomputed:path=FILE",
        name => name,
    });
    let kernels: Vec<&str> = kernels.collect();
    let kernels = format!(
        "A kernel or a set of kernels, NAME[:KEY=VALUE,…][@COLUMNS], e.g. rbf:sigma=1|2|4 or linear@f1..f10 (repeatable). Names: {}",
        kernels.join(", ")
    );
    let sharings = format!("{} ({})", either(&sharings), rule(registry));
    command.mut_args(|argument| match argument.get_id().as_str() {
        "kernel" => argument.help(kernels.clone()),
        "machine" => argument.help(either(&machines)),
        "sharing" => argument.help(sharings.clone()),
        _ => argument,
    })
}

/// The rule of the default sharing, in words.
fn rule(registry: &Registry) -> String {
    let specs = registry.machines().iter();
    let specs = specs.map(|entry| MachineSpec::of(entry, [0.0; 0]));
    let (shrinking, others): (Vec<_>, Vec<_>) =
        specs.partition(|machine| machine.build().shrinks_kernels());
    let mut words = Vec::new();
    if let Some(other) = others.first() {
        let usual = |tasks| usual_sharing(other, tasks);
        words.push(format!(
            "{} for several tasks, {} for the classes of one, {} for one",
            usual(Tasks::Several),
            usual(Tasks::OfClasses),
            usual(Tasks::One)
        ));
    }
    if let Some(first) = shrinking.first() {
        let names: Vec<&str> = shrinking.iter().map(MachineSpec::name).collect();
        let usual = usual_sharing(first, Tasks::Several);
        words.push(format!("{usual} for {}", listing(&names, "and")));
    }
    format!("default: {}", words.join(", "))
}
