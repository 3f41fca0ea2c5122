//! From flags to the core's specifications: kernels, machine, sharing, solver.

use anyhow::{Context, Result, anyhow, bail};
use mtmkl::error::human_bytes;
use mtmkl::kernel::{KernelView, parse_kernels};
use mtmkl::machine::{MachineSpec, registered_machines};
use mtmkl::sharing::{SetSpec, SharingSpec, TermSpec, registered_sharings};
use mtmkl::solver::{Epf, SolverSpec};
use mtmkl::{Error, Pool, Precision, ProblemSpec};

use crate::args::FitArgs;
use crate::words::nearest;

/// The kernels of all `--kernel` flags.
///
/// # Errors
/// When one cannot be read.
pub fn kernels(specs: &[String]) -> Result<Vec<KernelView>> {
    let mut kernels = Vec::new();
    for spec in specs {
        kernels.extend(parse_kernels(spec)?);
    }
    Ok(kernels)
}

/// The machine.
///
/// # Errors
/// When there is none of that name.
pub fn machine(args: &FitArgs) -> Result<MachineSpec> {
    Ok(match args.machine.as_str() {
        "svc" => MachineSpec::Svc {
            c: args.c,
            positive_weight: args.positive_weight,
            negative_weight: args.negative_weight,
        },
        "svr" => MachineSpec::Svr {
            c: args.c,
            epsilon: args.epsilon,
        },
        "krr" => MachineSpec::Krr {
            lambda: args.lambda,
        },
        "svdd" => MachineSpec::Svdd { c: args.c },
        "ocsvm" => MachineSpec::OneClass { nu: args.nu },
        other => {
            let names: Vec<&str> = registered_machines()
                .iter()
                .map(|machine| machine.name)
                .collect();
            return Err(unknown("machine", other, &names));
        }
    })
}

/// The sharing, or the one that suits the machine and the number of tasks.
///
/// # Errors
/// When there is none of that name, or it lacks a parameter.
pub fn sharing(args: &FitArgs, tasks: usize) -> Result<SharingSpec> {
    let (p, q, radius) = (args.p, args.q, args.radius);
    let name = args
        .sharing
        .as_deref()
        .unwrap_or(match (args.machine.as_str(), tasks) {
            ("svdd", _) => "simplex",
            (_, 1) => "lp",
            _ => "pscs",
        });
    let weights = || (!args.weights.is_empty()).then(|| args.weights.clone());
    Ok(match name {
        "lp" => SharingSpec::Lp { p, radius },
        "common" => SharingSpec::Common { p, radius },
        "independent" => SharingSpec::Independent { p, radius },
        "group" => SharingSpec::Group { p, q, radius },
        "pscs" => SharingSpec::Pscs { p, q, radius },
        "tang" => SharingSpec::Tang {
            beta: args.beta.context("--sharing tang needs --beta NUMBER")?,
        },
        "simplex" => SharingSpec::Simplex,
        "box-simplex" => SharingSpec::BoxSimplex {
            upper: args
                .upper
                .context("--sharing box-simplex needs --upper NUMBER")?,
        },
        "prior-ball" => SharingSpec::PriorBall {
            prior: weights(),
            radius,
        },
        "fixed" => SharingSpec::Fixed {
            weights: weights().context("--sharing fixed needs --weights, one number per kernel")?,
        },
        "uniform" => SharingSpec::Uniform,
        "sum" => {
            if args.term.is_empty() {
                bail!(
                    "--sharing sum needs at least one --term, e.g. --term common:lp-ball,p=2 --term group,p=2,q=1"
                );
            }
            SharingSpec::Sum {
                terms: args
                    .term
                    .iter()
                    .map(|text| term(text))
                    .collect::<Result<_>>()?,
            }
        }
        other => {
            let names: Vec<&str> = registered_sharings()
                .iter()
                .map(|sharing| sharing.name)
                .collect();
            return Err(unknown("sharing", other, &names));
        }
    })
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
pub fn problem(args: &FitArgs, tasks: usize) -> Result<ProblemSpec> {
    let mut spec = ProblemSpec::new(
        kernels(&args.kernel)?,
        machine(args)?,
        sharing(args, tasks)?,
    );
    spec.solver = solver(args)?;
    spec.normalize = args.normalize;
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
        } if args.term.is_empty() => {
            let flag = match name {
                "tolerance" => "tol".to_string(),
                "prior" => "weights".to_string(),
                other => other.replace('_', "-"),
            };
            anyhow!("--{flag}: found {value}, expected {expected}")
        }
        mtmkl::Error::Memory { needed, limit } => anyhow!(
            "this needs at least {}, over the limit of {}; use fewer kernels or rows, or raise --memory-limit (GiB)",
            human_bytes(needed),
            human_bytes(limit)
        ),
        other => other.into(),
    }
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
