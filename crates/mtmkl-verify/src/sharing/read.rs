//! A sharing as it stands in model files, `{"name": …}`, taken apart into terms.

use mtmkl::sharing::Reach;
use serde_json::Value as Json;

use super::{Members, Set, Term, rows_of};
use crate::error::{Error, Result};

/// A sharing as it stands in a file, for T tasks and M kernels.
struct Read<'a> {
    sharing: &'a Json,
    tasks: usize,
}

/// The terms that a sharing is the sum of.
pub(crate) fn terms(sharing: &Json, tasks: usize, kernels: usize) -> Result<Vec<Term>> {
    let read = Read { sharing, tasks };
    let name = sharing["name"].as_str().unwrap_or_default();
    let uniform = || vec![1.0 / kernels as f64; kernels];
    let ball = || read.ball(sharing);
    let budget = || read.budget(sharing);
    Ok(match name {
        "lp" | "common" => vec![read.common(ball()?)],
        "independent" => vec![read.independent(ball()?)],
        "group" => vec![read.each(budget()?)],
        "pscs" => vec![read.common(ball()?), read.each(budget()?)],
        "hierarchy" => read.hierarchy()?,
        "tang" => {
            // Σγ ≤ β over all tasks lets each have min(1, β/T) of its own.
            let own = (read.number(sharing, "beta")? / tasks as f64).min(1.0);
            let simplex = |total: f64| Set::Simplex {
                total,
                upper: f64::INFINITY,
            };
            let terms = [
                (read.common(simplex(1.0 - own)), 1.0 - own),
                (read.independent(simplex(own)), own),
            ];
            terms
                .into_iter()
                .filter(|(_, total)| *total > 0.0)
                .map(|(term, _)| term)
                .collect()
        }
        "simplex" => vec![read.common(Set::Simplex {
            total: 1.0,
            upper: f64::INFINITY,
        })],
        "box-simplex" => vec![read.common(Set::Simplex {
            total: 1.0,
            upper: read.number(sharing, "upper")?,
        })],
        "prior-ball" => {
            let prior = if sharing["prior"].is_array() {
                numbers(&sharing["prior"])?
            } else {
                uniform()
            };
            vec![read.common(Set::PriorBall {
                prior,
                radius: read.radius(sharing)?,
            })]
        }
        "fixed" => {
            let weights = numbers(&sharing["weights"])?;
            vec![if tasks > 1 && weights.len() == tasks * kernels {
                let rows = weights.chunks(kernels).map(<[f64]>::to_vec);
                read.each(Members::Given(rows.collect()))
            } else {
                read.common(Set::Fixed { weights })
            }]
        }
        "uniform" => vec![read.common(Set::Fixed { weights: uniform() })],
        "sum" => {
            let terms = sharing["terms"].as_array().map_or(&[][..], Vec::as_slice);
            terms
                .iter()
                .map(|term| read.term(term))
                .collect::<Result<_>>()?
        }
        _ => {
            return Err(Error::Unknown {
                what: "sharing",
                name: name.to_string(),
            });
        }
    })
}

fn unreadable(what: &str, found: &Json) -> Error {
    Error::Unreadable(format!(
        "the model's sharing: `{what}` is {found}, which cannot be read"
    ))
}

fn numbers(list: &Json) -> Result<Vec<f64>> {
    let all = list
        .as_array()
        .map(|all| all.iter().map(Json::as_f64).collect::<Option<Vec<f64>>>());
    all.flatten().ok_or_else(|| unreadable("weights", list))
}

impl Read<'_> {
    fn number(&self, object: &Json, name: &str) -> Result<f64> {
        object[name]
            .as_f64()
            .ok_or_else(|| unreadable(name, self.sharing))
    }

    fn radius(&self, object: &Json) -> Result<f64> {
        if object["radius"].is_null() {
            Ok(1.0)
        } else {
            self.number(object, "radius")
        }
    }

    fn ball(&self, object: &Json) -> Result<Set> {
        let (p, radius) = (self.number(object, "p")?, self.radius(object)?);
        Ok(Set::Ball { p, radius })
    }

    fn budget(&self, object: &Json) -> Result<Members> {
        let (p, q) = (self.number(object, "p")?, self.number(object, "q")?);
        Ok(Members::Budget {
            p,
            q,
            radius: self.radius(object)?,
        })
    }

    fn common(&self, set: Set) -> Term {
        Term {
            members: Members::Each(set),
            reach: rows_of(&Reach::All, self.tasks),
        }
    }

    fn independent(&self, set: Set) -> Term {
        self.each(Members::Each(set))
    }

    fn each(&self, members: Members) -> Term {
        Term {
            members,
            reach: rows_of(&Reach::Each, self.tasks),
        }
    }

    fn level(&self, level: &Json, members: Members) -> Result<Term> {
        let group = |group: &Json| -> Option<Vec<usize>> {
            let tasks = group[1].as_array()?.iter();
            tasks
                .map(|task| {
                    usize::try_from(task.as_u64()?)
                        .ok()
                        .filter(|task| *task < self.tasks)
                })
                .collect()
        };
        let groups = level["groups"].as_array();
        let reach = groups.and_then(|groups| groups.iter().map(group).collect::<Option<Vec<_>>>());
        Ok(Term {
            members,
            reach: reach.ok_or_else(|| unreadable("groups", level))?,
        })
    }

    fn set(&self, object: &Json) -> Result<Set> {
        let total = || {
            if object["total"].is_null() {
                Ok(1.0)
            } else {
                self.number(object, "total")
            }
        };
        Ok(match object["set"].as_str().unwrap_or_default() {
            "lp-ball" => self.ball(object)?,
            "simplex" => Set::Simplex {
                total: total()?,
                upper: f64::INFINITY,
            },
            "box-simplex" => Set::Simplex {
                total: total()?,
                upper: self.number(object, "upper")?,
            },
            "prior-ball" => Set::PriorBall {
                prior: numbers(&object["prior"])?,
                radius: self.radius(object)?,
            },
            "fixed" => Set::Fixed {
                weights: numbers(&object["weights"])?,
            },
            _ => return Err(unreadable("set", object)),
        })
    }

    /// `{"common": {"set": …}}` and the like.
    fn term(&self, object: &Json) -> Result<Term> {
        let (lift, inner) = (object.as_object())
            .and_then(|object| object.iter().next())
            .ok_or_else(|| unreadable("terms", object))?;
        Ok(match lift.as_str() {
            "common" => self.common(self.set(inner)?),
            "independent" => self.independent(self.set(inner)?),
            "group" => self.each(self.budget(inner)?),
            "level" => self.level(&inner["level"], self.budget(inner)?)?,
            _ => return Err(unreadable("terms", object)),
        })
    }

    /// One term for each level of the tree, outermost first, with bounds of their own where these are given.
    fn hierarchy(&self) -> Result<Vec<Term>> {
        let tree = self.sharing;
        let levels = tree["levels"].as_array().map_or(&[][..], Vec::as_slice);
        let is_there = |name: &str| tree[name].as_bool().unwrap_or(true);
        let count = levels.len() + usize::from(is_there("root")) + usize::from(is_there("leaves"));
        let radii = if tree["radii"].is_array() {
            numbers(&tree["radii"])?
        } else {
            vec![self.radius(tree)?; count]
        };
        if radii.len() != count {
            return Err(unreadable("radii", tree));
        }
        let (p, q) = (self.number(tree, "p")?, self.number(tree, "q")?);
        let mut radii = radii.into_iter();
        let mut radius = || radii.next().unwrap_or(f64::NAN);
        let mut terms = Vec::new();
        if is_there("root") {
            terms.push(self.common(Set::Ball {
                p,
                radius: radius(),
            }));
        }
        for level in levels {
            terms.push(self.level(
                level,
                Members::Budget {
                    p,
                    q,
                    radius: radius(),
                },
            )?);
        }
        if is_there("leaves") {
            terms.push(self.each(Members::Budget {
                p,
                q,
                radius: radius(),
            }));
        }
        Ok(terms)
    }
}
