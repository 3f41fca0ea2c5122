//! Model files with one thing changed: in the bytes, as somebody would who wants the file to say something else.
#![allow(
    clippy::case_sensitive_file_extension_comparisons,
    reason = "names of tensors, not of files"
)]

use mtmkl::Model;
use mtmkl::sharing::Reach;
use mtmkl_testkit::generate::Random;
use serde_json::Value;

/// A changed file.
pub(crate) struct Changed {
    pub(crate) what: &'static str,
    /// Where, and by how much.
    pub(crate) how: String,
    pub(crate) bytes: Vec<u8>,
}

/// A file of tensors whose numbers can be changed where they stand.
#[derive(Clone)]
struct File {
    bytes: Vec<u8>,
    header: Value,
    start: usize,
}

impl File {
    fn of(bytes: &[u8]) -> Self {
        let length = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
        Self {
            header: serde_json::from_slice(&bytes[8..8 + length]).unwrap(),
            start: 8 + length,
            bytes: bytes.to_vec(),
        }
    }

    /// Where the numbers of a tensor begin, and how many there are.
    fn place(&self, name: &str) -> Option<(usize, usize)> {
        let offsets = &self.header.get(name)?["data_offsets"];
        let at = |number: usize| usize::try_from(offsets[number].as_u64().unwrap()).unwrap();
        Some((self.start + at(0), (at(1) - at(0)) / 8))
    }

    fn get(&self, name: &str, at: usize) -> f64 {
        let place = self.place(name).unwrap().0 + 8 * at;
        f64::from_le_bytes(self.bytes[place..place + 8].try_into().unwrap())
    }

    fn set(&mut self, name: &str, at: usize, value: f64) {
        let place = self.place(name).unwrap().0 + 8 * at;
        self.bytes[place..place + 8].copy_from_slice(&value.to_le_bytes());
    }

    /// The tensors whose names satisfy this.
    fn tensors(&self, wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let names = self.header.as_object().unwrap().keys();
        names.filter(|name| wanted(name)).cloned().collect()
    }

    /// The gap that objective and bound make.
    fn mend_gap(&mut self) {
        let (objective, bound) = (self.get("outcome", 0), self.get("outcome", 1));
        self.set(
            "outcome",
            2,
            (objective - bound).abs() / objective.abs().max(1e-300),
        );
    }
}

/// 1 ± something from 1.1e-3 to 3.
fn factor(random: &mut Random) -> f64 {
    let size = 1.1e-3 * 2700.0_f64.powf(random.uniform());
    if random.below(2) == 0 {
        1.0 + size
    } else {
        1.0 - size
    }
}

/// One number that is not 0 in one of these tensors.
fn number_in(file: &File, random: &mut Random, names: &[String]) -> Option<(String, usize)> {
    let all = names.iter().flat_map(|name| {
        let count = file.place(name).map_or(0, |(_, count)| count);
        (0..count).map(move |at| (name.clone(), at))
    });
    let there: Vec<(String, usize)> = all
        .filter(|(name, at)| file.get(name, *at) != 0.0)
        .collect();
    if there.is_empty() {
        None
    } else {
        Some(there[random.below(there.len())].clone())
    }
}

/// Each kind of change once, where the file has what it is of.
pub(crate) fn changes(bytes: &[u8], model: &Model, random: &mut Random) -> Vec<Changed> {
    let file = File::of(bytes);
    let mut made = Vec::new();
    let is_beta = |name: &str| {
        name.starts_with("task.") && name.ends_with(".beta") && !name.contains("witness")
    };
    let is_witness = |name: &str| name.starts_with("task.") && name.ends_with(".witness.beta");
    let is_row = |name: &str| {
        name.starts_with("set.")
            && (name.ends_with(".rows")
                || name.ends_with(".sparse.values")
                || name.contains(".given."))
    };
    let kinds: [(&'static str, Vec<String>); 8] = [
        ("theta", vec!["theta".to_string()]),
        (
            "part",
            file.tensors(|name| {
                name.starts_with("part.") || name == "common" || name == "specific"
            }),
        ),
        ("beta", file.tensors(is_beta)),
        ("offset", vec!["offsets".to_string()]),
        ("witness", file.tensors(is_witness)),
        ("row", file.tensors(is_row)),
        ("units", file.tensors(|name| name == "units")),
        ("beta", file.tensors(is_beta)),
    ];
    for (what, names) in kinds {
        if let Some((name, at)) = number_in(&file, random, &names) {
            let (mut changed, by) = (file.clone(), factor(random));
            changed.set(&name, at, by * file.get(&name, at));
            made.push(Changed {
                what,
                how: format!("{name}[{at}] times {by}"),
                bytes: changed.bytes,
            });
        }
    }
    outcome(&file, random, &mut made);
    together(&file, model, random, &mut made);
    made
}

/// Objective, bound, gap: alone, and with a gap that goes with them.
fn outcome(file: &File, random: &mut Random, made: &mut Vec<Changed>) {
    for (what, at, is_mended) in [
        ("objective", 0, false),
        ("bound", 1, false),
        ("gap", 2, false),
        ("objective and gap", 0, true),
        ("bound and gap", 1, true),
    ] {
        let value = file.get("outcome", at);
        if !value.is_finite() || value == 0.0 {
            continue;
        }
        let (mut changed, by) = (file.clone(), factor(random));
        changed.set("outcome", at, by * value);
        if is_mended {
            changed.mend_gap();
        }
        made.push(Changed {
            what,
            how: format!("times {by}"),
            bytes: changed.bytes,
        });
    }
}

/// Several numbers that belong together: all of β or of a witness, two of them against each other, weights with their parts.
fn together(file: &File, model: &Model, random: &mut Random, made: &mut Vec<Changed>) {
    let task = random.below(model.tasks().len());
    for (what, name) in [
        ("all of beta", format!("task.{task}.beta")),
        ("all of a witness", format!("task.{task}.witness.beta")),
    ] {
        let Some((_, count)) = file.place(&name).filter(|(_, count)| *count > 0) else {
            continue;
        };
        let (mut changed, by) = (file.clone(), factor(random));
        for at in 0..count {
            changed.set(&name, at, by * file.get(&name, at));
        }
        made.push(Changed {
            what,
            how: format!("{name} times {by}"),
            bytes: changed.bytes,
        });
        if count > 1 {
            // The sum stays what it is.
            let (one, other) = (random.below(count), random.below(count));
            let mut changed = file.clone();
            let moved = (factor(random) - 1.0) * file.get(&name, one);
            changed.set(&name, one, file.get(&name, one) + moved);
            if one != other {
                changed.set(&name, other, file.get(&name, other) - moved);
            }
            let what = if what == "all of beta" {
                "two of beta"
            } else {
                "two of a witness"
            };
            made.push(Changed {
                what,
                how: format!("{moved} from {name}[{other}] to [{one}]"),
                bytes: changed.bytes,
            });
        }
    }
    let (shape, parts) = (model.shape(), model.parts());
    let number = random.below(parts.len());
    let names = vec![format!("part.{number}")];
    let Some((name, at)) = number_in(file, random, &names) else {
        return;
    };
    let (mut changed, by) = (file.clone(), factor(random));
    let moved = (by - 1.0) * file.get(&name, at);
    let (row, kernel) = (at / shape.kernels, at % shape.kernels);
    let mut add = |name: &str, at: usize| {
        if changed.place(name).is_some() {
            let value = changed.get(name, at);
            changed.set(name, at, value + moved);
        }
    };
    add(&name, at);
    let reached: Vec<usize> = match &parts[number].reach {
        Reach::All => (0..shape.tasks).collect(),
        Reach::Each => vec![row],
        Reach::Groups(groups) => groups[row].clone(),
    };
    for &task in &reached {
        add("theta", task * shape.kernels + kernel);
    }
    match &parts[number].reach {
        Reach::All => add("common", kernel),
        Reach::Each => add("specific", row * shape.kernels + kernel),
        Reach::Groups(_) => {}
    }
    made.push(Changed {
        what: "theta with its parts",
        how: format!("{name}[{at}] times {by}"),
        bytes: changed.bytes,
    });
}
