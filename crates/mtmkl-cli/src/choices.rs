//! From flags to the core's specifications: kernels, machine, sharing, solver.

use anyhow::{Result, anyhow, bail};
use mtmkl::entry::{Kind, Parameter, Part, Value};
use mtmkl::error::{human_bytes, without_streams};
use mtmkl::kernel::KernelView;
use mtmkl::machine::MachineSpec;
use mtmkl::select::{Tasks, usual_sharing};
use mtmkl::sharing::{SetSpec, SharingSpec, TermSpec};
use mtmkl::solver::{Epf, SolverSpec};
use mtmkl::task_kernel::TaskKernels;
use mtmkl::{Error, NamedLevel, Pool, Precision, ProblemSpec, Registry, Storage};

use crate::args::FitArgs;
use crate::words::nearest;

/// The kernels of all `--kernel` flags.
///
/// # Errors
/// When one cannot be read.
pub fn kernels(registry: &Registry, specs: &[String]) -> Result<Vec<KernelView>> {
    let mut kernels = Vec::new();
    for spec in specs {
        kernels.extend(registry.parse_kernels(spec)?);
    }
    Ok(kernels)
}

/// The machine.
///
/// # Errors
/// When there is none of that name, or it lacks a parameter.
pub fn machine(args: &FitArgs) -> Result<MachineSpec> {
    let Ok(entry) = args.registry.machine(&args.machine) else {
        let known = args.registry.machines().iter().map(|entry| entry.part.name);
        return Err(unknown(
            "machine",
            &args.machine,
            &known.collect::<Vec<_>>(),
        ));
    };
    Ok(MachineSpec::of(
        entry,
        values("machine", &entry.part, args, &[])?,
    ))
}

/// The sharing, or the one that suits the machine and the tasks, which may stand in groups.
///
/// # Errors
/// When there is none of that name, or it lacks a parameter.
pub fn sharing(args: &FitArgs, tasks: Tasks, levels: &[NamedLevel]) -> Result<SharingSpec> {
    let name = match &args.sharing {
        Some(name) => name.as_str(),
        None if !levels.is_empty() => "hierarchy",
        None => usual_sharing(&machine(args)?, tasks),
    };
    let Ok(entry) = args.registry.sharing(name) else {
        let known = args.registry.sharings().iter().map(|entry| entry.part.name);
        return Err(unknown("sharing", name, &known.collect::<Vec<_>>()));
    };
    let spec = SharingSpec::of(entry, values("sharing", &entry.part, args, levels)?);
    let takes_terms = |parameter: &&Parameter| parameter.kind == Kind::Terms;
    match entry.part.parameters.iter().find(takes_terms) {
        None => Ok(spec),
        Some(parameter) => {
            let texts = args.parameters.texts(&parameter.flag());
            let terms = texts.iter().map(|text| term(text));
            Ok(spec.with_terms(terms.collect::<Result<_>>()?))
        }
    }
}

/// What the flags say about each parameter of a part.
fn values(what: &str, part: &Part, args: &FitArgs, levels: &[NamedLevel]) -> Result<Vec<Value>> {
    let value = |parameter: &Parameter| {
        if parameter.kind == Kind::Levels {
            if levels.is_empty() {
                bail!(
                    "--{what} {} needs groups of tasks: --tree FILE, --tree-columns COLUMNS or --task-groups FILE; without any it would be \
                     --sharing pscs",
                    part.name
                );
            }
            return Ok(levels.to_vec().into());
        }
        let flag = parameter.flag();
        if parameter.is_required() && !args.parameters.has(&flag) {
            let wanted = match parameter.kind {
                Kind::Number { .. } => format!("--{flag} NUMBER"),
                Kind::List { .. } => format!("--{flag}, one number per kernel"),
                _ => format!(
                    "at least one --{flag}, e.g. --{flag} common:lp-ball,p=2 --{flag} group,p=2,q=1"
                ),
            };
            bail!("--{what} {} needs {wanted}", part.name);
        }
        Ok(args.parameters.value(parameter))
    };
    part.parameters.iter().map(value).collect()
}

/// `common:lp-ball,p=2,radius=0.5`, `independent:simplex,total=1`, `group,p=2,q=1,radius=1`
fn term(text: &str) -> Result<TermSpec> {
    let wrong = |problem: String| {
        anyhow!(
            "--term {text}: {problem}; expected common:SET,… or independent:SET,… (SET one of lp-ball, simplex, box-simplex, \
             prior-ball, fixed) or group,p=…,q=…"
        )
    };
    let (lift, rest) = match (text.split_once(':'), text.strip_prefix("group")) {
        (Some((lift, rest)), _) => (lift, rest),
        (None, Some(rest)) if rest.is_empty() || rest.starts_with(',') => ("group", rest),
        _ => return Err(wrong(format!("there is no `{text}`"))),
    };
    let mut pieces = rest.split(',');
    let set = pieces.next().unwrap_or_default();
    let mut options: Vec<(&str, &str)> = Vec::new();
    for piece in pieces {
        options.push(
            piece
                .split_once('=')
                .ok_or_else(|| wrong(format!("`{piece}` is not KEY=VALUE")))?,
        );
    }
    let mut take = |name: &str, default: Option<f64>| -> Result<f64> {
        match options.iter().position(|(key, _)| *key == name) {
            Some(at) => {
                let value = options.swap_remove(at).1;
                value
                    .parse()
                    .map_err(|_| wrong(format!("`{name}` is `{value}`, not a number")))
            }
            None => default.ok_or_else(|| wrong(format!("`{name}` is missing"))),
        }
    };
    if lift == "group" {
        let group = TermSpec::Group {
            p: take("p", Some(2.0))?,
            q: take("q", Some(1.0))?,
            radius: take("radius", Some(1.0))?,
        };
        return match options.first() {
            Some((key, _)) => Err(wrong(format!("`{key}` is not a parameter of group"))),
            None => Ok(group),
        };
    }
    let list = |options: &mut Vec<(&str, &str)>, name: &str| -> Result<Vec<f64>> {
        let at = options.iter().position(|(key, _)| *key == name);
        let value = at
            .map(|at| options.swap_remove(at).1)
            .ok_or_else(|| wrong(format!("`{name}` is missing")))?;
        value
            .split('|')
            .map(|number| {
                number
                    .parse()
                    .map_err(|_| wrong(format!("`{number}` is not a number")))
            })
            .collect()
    };
    let set = match set {
        "lp-ball" => SetSpec::LpBall {
            p: take("p", Some(2.0))?,
            radius: take("radius", Some(1.0))?,
        },
        "simplex" => SetSpec::Simplex {
            total: take("total", Some(1.0))?,
        },
        "box-simplex" => SetSpec::BoxSimplex {
            total: take("total", Some(1.0))?,
            upper: take("upper", None)?,
        },
        "prior-ball" => {
            let radius = take("radius", Some(1.0))?;
            SetSpec::PriorBall {
                prior: list(&mut options, "prior")?,
                radius,
            }
        }
        "fixed" => SetSpec::Fixed {
            weights: list(&mut options, "weights")?,
        },
        other => return Err(wrong(format!("there is no set `{other}`"))),
    };
    if let Some((key, _)) = options.first() {
        return Err(wrong(format!("`{key}` is not a parameter here")));
    }
    match lift {
        "common" => Ok(TermSpec::Common(set)),
        "independent" => Ok(TermSpec::Independent(set)),
        other => Err(wrong(format!("there is no `{other}`"))),
    }
}

/// The solver.
///
/// # Errors
/// When there is none of that name.
pub fn solver(args: &FitArgs) -> Result<SolverSpec> {
    match args.solver.as_str() {
        "newton" => Ok(SolverSpec::Newton),
        "epf" => Ok(SolverSpec::Epf(Epf::default())),
        other => Err(unknown("solver", other, &["newton", "epf"])),
    }
}

/// How precisely Gram matrices are kept.
///
/// # Errors
/// When there is no precision of that name.
pub fn precision(args: &FitArgs) -> Result<Precision> {
    match args.precision.as_str() {
        "double" => Ok(Precision::Double),
        "single" => Ok(Precision::Single),
        other => Err(unknown("precision", other, &["double", "single"])),
    }
}

/// Where kernel values come from, where that is said.
///
/// # Errors
/// When there is no storage of that name.
pub fn storage(args: &FitArgs) -> Result<Option<Storage>> {
    let name = args.storage.as_deref();
    let find = |name: &str| {
        let found = Storage::ALL
            .into_iter()
            .find(|storage| storage.name() == name);
        found.ok_or_else(|| unknown("storage", name, &Storage::ALL.map(Storage::name)))
    };
    name.map(find).transpose()
}

/// The threads that compute: made once, for all that a command does.
///
/// # Errors
/// When there are no so many.
pub fn pool(threads: usize) -> Result<Pool> {
    Pool::new(threads).map_err(|error| match error {
        Error::Param {
            value, expected, ..
        } => anyhow!("--threads: found {value}, expected {expected}"),
        other => other.into(),
    })
}

/// All of it.
///
/// # Errors
/// As above.
pub fn problem(
    args: &FitArgs,
    tasks: Tasks,
    levels: &[NamedLevel],
    between: Option<&TaskKernels>,
) -> Result<ProblemSpec> {
    let mut views = kernels(&args.registry, &args.kernel)?;
    if let Some(known) = between {
        views = crate::transfer::kernels(args, views, known)?;
    }
    let mut spec = ProblemSpec::new(views, machine(args)?, sharing(args, tasks, levels)?);
    spec.solver = solver(args)?;
    spec.target_scale = args.target_scale;
    Ok(spec)
}

/// An error of the core about a parameter or a limit, in the words of the command line.
pub fn said_as_flag(error: mtmkl::Error, args: &FitArgs) -> anyhow::Error {
    match error {
        // The terms of a sum have parameters of the same names, which are not flags.
        mtmkl::Error::Param {
            name,
            value,
            expected,
        } if args.parameters.texts("term").is_empty() => {
            let flag = match name {
                "tolerance" => "tol".to_string(),
                other => flag_of(args, other),
            };
            anyhow!("--{flag}: found {value}, expected {expected}")
        }
        mtmkl::Error::Memory {
            needed,
            limit,
            not_streamed,
        } => anyhow!(
            "this needs at least {}, over the limit of {}{}; use fewer kernels or rows, or raise --memory-limit (GiB)",
            human_bytes(needed),
            human_bytes(limit),
            without_streams(not_streamed.as_deref())
        ),
        other => other.into(),
    }
}

/// The flag of a parameter of the core.
fn flag_of(args: &FitArgs, name: &str) -> String {
    let mut parameters = args.registry.parameters();
    let known = parameters.find(|(_, parameter)| parameter.name == name);
    known.map_or_else(|| name.replace('_', "-"), |(_, parameter)| parameter.flag())
}

/// A name that is not known, and the one that was likely meant.
pub fn unknown(what: &str, name: &str, known: &[&str]) -> anyhow::Error {
    let nearest =
        nearest(name, known).map_or(String::new(), |known| format!("did you mean `{known}`? "));
    anyhow!(
        "there is no {what} `{name}`; {nearest}known: {}",
        known.join(", ")
    )
}
