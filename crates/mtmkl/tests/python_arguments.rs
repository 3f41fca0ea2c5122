//! What the estimators of `python/mtmkl` repeat of the entries, since scikit-learn wants it spelt out: arguments of `__init__` with their
//! defaults, and what the documentation says about them. This test compares; `cargo xtask python` runs it so that it writes them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use mtmkl::Registry;
use mtmkl::entry::{Kind, Parameter, Part};
use mtmkl::machine::MachineSpec;
use mtmkl::select::{Tasks, UsualSearch, usual_sharing};

/// Lines of Python are at most so long.
const WIDTH: usize = 140;

/// Parameters of sharings that estimators have; others are those of objects such as `Tang`.
const SHARED: [&str; 3] = ["p", "q", "radius"];

/// An estimator: its file, the class, its machines, and the arguments by hand that stand between theirs and those of the sharing.
struct Estimator {
    file: &'static str,
    class: &'static str,
    machines: &'static [&'static str],
    by_hand: &'static [&'static str],
    /// What the documentation says beyond the entries.
    remark: &'static str,
}

const ESTIMATORS: &[Estimator] = &[
    Estimator {
        file: "_classifier.py",
        class: "MKLClassifier",
        machines: &["svc", "logistic"],
        by_hand: &["class_weight", "multiclass", "probability"],
        remark: "",
    },
    Estimator {
        file: "_regressor.py",
        class: "MKLRegressor",
        machines: &["krr", "svr"],
        by_hand: &[],
        remark: "",
    },
    Estimator {
        file: "_one_class.py",
        class: "_OneClass",
        machines: &["ocsvm"],
        by_hand: &[],
        remark: "",
    },
    Estimator {
        file: "_one_class.py",
        class: "MKLOneClassSVM",
        machines: &["ocsvm"],
        by_hand: &[],
        remark: "",
    },
    Estimator {
        // C depends on the number of samples; ν, as the other one-class machine has it, does not.
        file: "_one_class.py",
        class: "MKLSVDD",
        machines: &["ocsvm"],
        by_hand: &[],
        remark: " The usual parameter of SVDD is C = 1/(nu · n).",
    },
];

/// Some arguments that are documented together.
struct Argument {
    /// Names, annotations and defaults.
    signature: Vec<[String; 3]>,
    /// Kind and default, as documentation has them.
    kind: String,
    text: String,
}

/// A number as Python writes it.
fn number(value: f64) -> String {
    format!("{value:?}")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

fn meaning(parameter: &Parameter, of: &str) -> String {
    let range = match parameter.kind {
        Kind::Number { range, .. } => format!(", {}", range.signs()),
        _ => String::new(),
    };
    match parameter.help.split_once(',') {
        Some((first, rest)) => format!("{first}{of},{rest}{range}"),
        None => format!("{}{of}{range}", parameter.help),
    }
}

fn quoted(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    names.join(", ")
}

/// The arguments of the machines: which one, where there are several, and their parameters.
fn machine_arguments(estimator: &Estimator, parts: &[&Part], registry: &Registry) -> Vec<Argument> {
    let mut arguments = Vec::new();
    if parts.len() > 1 {
        let helps: Vec<&str> = parts.iter().map(|part| part.help).collect();
        let first = format!("\"{}\"", parts[0].name);
        arguments.push(Argument {
            signature: vec![["machine".into(), "str".into(), first.clone()]],
            kind: format!("{{{}}}, default={first}", quoted(estimator.machines)),
            text: format!("{}.", capital(&helps.join(", or "))),
        });
    }
    for part in parts {
        for parameter in part.parameters {
            let (name, default) = (parameter.python, parameter.default());
            // What stands behind is written by hand.
            let (true, Some(default)) = (Some(&name) != estimator.by_hand.first(), default) else {
                continue;
            };
            let has = |part: &&Part| part.parameters.iter().any(|other| other.python == name);
            let is_everyones = parts.iter().all(has);
            if is_everyones && !std::ptr::eq(*part, parts[0]) {
                continue;
            }
            let of = if parts.len() > 1 && !is_everyones {
                format!(" of \"{}\"", part.name)
            } else {
                String::new()
            };
            let machine = registry.machine(part.name).unwrap();
            let price = UsualSearch::price_of(&MachineSpec::of(machine, [0.0; 0]));
            let (annotation, kind, remark) = if price == Some(parameter.name) {
                let by = match part.name {
                    "krr" => "leave-one-out errors",
                    _ => "cross-validation",
                };
                let remark = format!(
                    " \"auto\" lets the data choose, by {by} with equal weights of all kernels."
                );
                ("float | Literal[\"auto\"]", "float or \"auto\"", remark)
            } else {
                ("float", "float", String::new())
            };
            let text = capital(&meaning(parameter, &of));
            let own = |part: &&Part| {
                let known = part.parameters.iter().find(|other| other.python == name)?;
                Some((part.name, known.default()?))
            };
            let defaults: Vec<(&str, f64)> = parts.iter().filter_map(own).collect();
            let differ = defaults.iter().any(|(_, other)| *other != default);
            // The default is the machine's where machines do not agree.
            let (annotation, kind, default, usual) = if differ {
                let all = defaults
                    .iter()
                    .map(|(part, own)| format!("{own} for \"{part}\""));
                let all = all.collect::<Vec<_>>().join(" and ");
                let annotation = format!("{annotation} | None");
                (
                    annotation,
                    format!("{kind} or None"),
                    "None".to_string(),
                    format!(" None is {all}."),
                )
            } else {
                (
                    annotation.to_string(),
                    kind.to_string(),
                    number(default),
                    String::new(),
                )
            };
            arguments.push(Argument {
                signature: vec![[name.into(), annotation, default.clone()]],
                kind: format!("{kind}, default={default}")
                    .replace("float or \"auto\" or None", "float, \"auto\" or None"),
                text: format!("{text}.{}{usual}{remark}", estimator.remark),
            });
        }
    }
    arguments
}

/// `sharing` and the parameters of those with names.
fn sharing_arguments(registry: &Registry, machine: &MachineSpec) -> Vec<Argument> {
    let sharings = registry.sharings().iter().map(|entry| &entry.part);
    let named = sharings.filter(|part| !part.parameters.iter().any(Parameter::is_required));
    let named: Vec<&str> = named.map(|part| part.name).collect();
    let usual = |tasks| usual_sharing(machine, tasks);
    let (one, several) = (usual(Tasks::One), usual(Tasks::Several));
    let usual = if one == several {
        format!("\"{one}\"")
    } else {
        format!(
            "\"{one}\" for one task, \"{several}\" for several and \"{}\" for the classes of one",
            usual(Tasks::OfClasses)
        )
    };
    let mut arguments = vec![Argument {
        signature: vec![["sharing".into(), "str | Sharing".into(), "\"auto\"".into()]],
        kind: "str or Sharing, default=\"auto\"".into(),
        text: format!(
            "What the tasks share: {}, or an object such as ``Tang(beta=0.5)`` or ``Common(p=1.1) + Group(p=1.1, q=1)``. \"auto\" is {usual}.",
            quoted(&named)
        ),
    }];
    let shared = SHARED.iter().filter_map(|name| {
        let mut all = registry.parameters().map(|(_, parameter)| parameter);
        let parameter = all.find(|parameter| parameter.python == *name)?;
        Some((parameter, number(parameter.default()?)))
    });
    let shared: Vec<(&Parameter, String)> = shared.collect();
    let defaults: Vec<&str> = shared.iter().map(|(_, default)| default.as_str()).collect();
    let meanings = shared.iter().map(|(one, _)| meaning(one, ""));
    let meanings: Vec<String> = meanings.collect();
    arguments.push(Argument {
        signature: shared
            .iter()
            .map(|(one, default)| [one.python.into(), "float".into(), default.clone()])
            .collect(),
        kind: format!("float, default={}", defaults.join(", ")),
        text: format!("Of the sharings with names: {}.", meanings.join("; ")),
    });
    arguments
}

/// Words in lines of at most [`WIDTH`], each so far in.
fn wrapped(text: &str, indent: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = indent.to_string();
    for word in text.split(' ') {
        let is_full = line.chars().count() + 1 + word.chars().count() > WIDTH;
        if is_full {
            lines.push(std::mem::replace(&mut line, indent.to_string()));
        }
        if line.len() > indent.len() {
            line.push(' ');
        }
        line += word;
    }
    lines.push(line);
    lines
}

fn documented(arguments: &[Argument]) -> Vec<String> {
    let block = |argument: &Argument| {
        let names: Vec<&str> = argument
            .signature
            .iter()
            .map(|one| one[0].as_str())
            .collect();
        let mut lines = vec![format!("    {} : {}", names.join(", "), argument.kind)];
        lines.extend(wrapped(&argument.text, "        "));
        lines
    };
    arguments.iter().flat_map(block).collect()
}

/// The lines between two that begin so, from a place on, become these; without such lines everything stays.
fn replace(lines: &mut Vec<String>, from: usize, between: [&str; 2], new: Vec<String>) {
    let find = |from: usize, start: &str| {
        let rest = lines.iter().enumerate().skip(from);
        let mut found = rest.filter(|(_, line)| line.starts_with(start));
        found.next().map(|(at, _)| at)
    };
    let Some(first) = find(from, between[0]) else {
        return;
    };
    // What belongs to the first stands further in than it.
    let indent = |line: &str| line.len() - line.trim_start().len();
    let own = indent(&lines[first]);
    let after = (first + 1..lines.len()).find(|&at| indent(&lines[at]) <= own);
    let (Some(start), Some(end)) = (after, find(first + 1, between[1])) else {
        return;
    };
    lines.splice(start..end, new);
}

/// The file with everything that follows from the entries.
fn generated(text: &str, estimators: &[&Estimator], registry: &Registry) -> String {
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    for estimator in estimators {
        let entries = registry.machines().iter();
        let parts: Vec<&Part> = estimator
            .machines
            .iter()
            .filter_map(|name| entries.clone().find(|entry| entry.part.name == *name))
            .map(|entry| &entry.part)
            .collect();
        let name = match estimator.class {
            "MKLSVDD" => "svdd",
            _ => estimator.machines[0],
        };
        let Ok(entry) = registry.machine(name) else {
            continue;
        };
        let machine = machine_arguments(estimator, &parts, registry);
        let sharing = sharing_arguments(registry, &MachineSpec::of(entry, [0.0; 0]));
        let class = format!("class {}(", estimator.class);
        let Some(from) = lines.iter().position(|line| line.starts_with(&class)) else {
            continue;
        };
        let signature = |arguments: &[Argument]| -> Vec<String> {
            let all = arguments.iter().flat_map(|argument| &argument.signature);
            all.map(|[name, kind, default]| format!("        {name}: {kind} = {default},"))
                .collect()
        };
        let assigned = |arguments: &[Argument]| -> Vec<String> {
            let all = arguments.iter().flat_map(|argument| &argument.signature);
            all.map(|[name, ..]| format!("        self.{name} = {name}"))
                .collect()
        };
        for (head, tail, made) in [
            (
                "    kernels : ",
                " : ",
                &documented as &dyn Fn(&[Argument]) -> Vec<String>,
            ),
            ("        *,", ": ", &signature),
            ("        self.kernels = ", " = ", &assigned),
        ] {
            let start = match head {
                "        *," => "        ",
                "    kernels : " => "    ",
                _ => "        self.",
            };
            let at = |name: &str| format!("{start}{name}{tail}");
            match estimator.by_hand {
                [] => {
                    let mut all = made(&machine);
                    all.extend(made(&sharing));
                    replace(&mut lines, from, [head, &at("task")], all);
                }
                [first, .., last] | [first @ last] => {
                    replace(&mut lines, from, [head, &at(first)], made(&machine));
                    replace(&mut lines, from, [&at(last), &at("task")], made(&sharing));
                }
            }
        }
    }
    lines.join("\n") + "\n"
}

/// Each file of estimators, as it is and as it should be.
fn files() -> Vec<(PathBuf, String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/mtmkl");
    let registry = Registry::default();
    let mut names: Vec<&str> = ESTIMATORS.iter().map(|one| one.file).collect();
    names.dedup();
    let file = |name: &str| {
        let path = folder.join(name);
        let text = fs::read_to_string(&path).unwrap();
        let own: Vec<&Estimator> = ESTIMATORS.iter().filter(|one| one.file == name).collect();
        let wanted = generated(&text, &own, &registry);
        (path, text, wanted)
    };
    names.into_iter().map(file).collect()
}

#[test]
fn the_estimators_say_what_the_entries_say() {
    for (path, text, wanted) in files() {
        if std::env::var_os("MTMKL_WRITE").is_some() {
            fs::write(path, wanted).unwrap();
        } else {
            assert!(text == wanted, "{}: run cargo xtask python", path.display());
        }
    }
}

#[test]
fn a_default_that_differs_is_found() {
    let (_, _, text) = files().swap_remove(0);
    let changed = text.replace("p: float = 2.0", "p: float = 3.0");
    assert_ne!(text, changed);
    let own: Vec<&Estimator> = ESTIMATORS.iter().take(1).collect();
    assert_eq!(generated(&changed, &own, &Registry::default()), text);
}
