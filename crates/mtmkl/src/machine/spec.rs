//! Machines by name, as they stand in configuration files and model files.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value as Json};

use super::{Machine, krr, logistic, one_class, svc, svdd, svr};
use crate::entry::{Entry, Part, Value, Values, entry_of};
use crate::error::Result;

/// Every machine of ours, in the order of help texts. A new one is one line here.
pub(crate) const MACHINES: &[&MachineEntry] = &[
    &svc::ENTRY,
    &logistic::ENTRY,
    &svr::ENTRY,
    &krr::ENTRY,
    &svdd::ENTRY,
    &one_class::ENTRY,
];

/// How a machine is known: registering its entry is all that flags, files, searches and the conformance suite need.
#[derive(Debug)]
pub struct MachineEntry {
    /// Name, help and parameters.
    pub part: Part,
    /// What it learns from.
    pub targets: TargetKind,
    /// The machine with these values.
    pub build: fn(&Values) -> Arc<dyn Machine>,
    /// Examples that together touch every special case.
    pub examples: fn() -> Vec<MachineSpec>,
}

/// What a machine's targets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetKind {
    /// ±1.
    Labels,
    /// Real values.
    Values,
    /// None.
    Unlabelled,
}

/// A machine by name with its parameters, or one of the user's own without a name.
#[derive(Debug, Clone)]
pub struct MachineSpec(Choice);

#[derive(Debug, Clone)]
enum Choice {
    Named(&'static MachineEntry, Values),
    Own(Arc<dyn Machine>),
}

impl PartialEq for MachineSpec {
    /// A machine of the user's own is equal to itself alone.
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Choice::Named(_, own), Choice::Named(_, known)) => own == known,
            (Choice::Own(own), Choice::Own(known)) => Arc::ptr_eq(own, known),
            _ => false,
        }
    }
}

impl MachineSpec {
    /// The machine of an entry with these values, in the order of its parameters; the default for those that are not there.
    pub fn of<V: Into<Value>>(
        entry: &'static MachineEntry,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        Self(Choice::Named(entry, Values::new(&entry.part, values)))
    }

    /// A machine of the user's own. It has no name in files: a model of it cannot be saved. With an entry in a
    /// [`Registry`](crate::Registry) it has one.
    pub fn own(machine: impl Machine + 'static) -> Self {
        Self(Choice::Own(Arc::new(machine)))
    }

    /// The entry, of a machine that has one.
    pub fn entry(&self) -> Option<&'static MachineEntry> {
        match self.0 {
            Choice::Named(entry, _) => Some(entry),
            Choice::Own(_) => None,
        }
    }

    /// Whether it is one of this crate.
    pub(crate) fn is_ours(&self) -> bool {
        self.entry()
            .is_some_and(|entry| MACHINES.iter().any(|known| std::ptr::eq(*known, entry)))
    }

    /// The name.
    pub fn name(&self) -> &'static str {
        match &self.0 {
            Choice::Named(entry, _) => entry.part.name,
            Choice::Own(own) => own.name(),
        }
    }

    /// Whether it takes a number of this name.
    pub fn takes(&self, name: &str) -> bool {
        match &self.0 {
            Choice::Named(_, values) => values.takes(name),
            Choice::Own(_) => false,
        }
    }

    /// The number of this name, where it has one.
    pub fn get(&self, name: &str) -> Option<f64> {
        match &self.0 {
            Choice::Named(_, values) => values.get(name),
            Choice::Own(_) => None,
        }
    }

    /// The number of this name; no number, where it has none.
    pub fn number(&self, name: &str) -> f64 {
        self.get(name).unwrap_or(f64::NAN)
    }

    /// Gives a number another value; whether it has one of this name.
    pub fn set(&mut self, name: &str, value: f64) -> bool {
        match &mut self.0 {
            Choice::Named(_, values) => values.set(name, value),
            Choice::Own(_) => false,
        }
    }

    /// Whether its parameters are in range.
    ///
    /// # Errors
    /// Names the parameter and its range.
    pub fn check(&self) -> Result<()> {
        match &self.0 {
            Choice::Named(_, values) => values.check(),
            Choice::Own(_) => Ok(()),
        }
    }

    /// The machine itself.
    pub fn build(&self) -> Arc<dyn Machine> {
        match &self.0 {
            Choice::Named(entry, values) => (entry.build)(values),
            Choice::Own(own) => Arc::clone(own),
        }
    }

    /// Whether its decisions are log-odds, so that probabilities are there without anything more.
    pub fn has_probabilities(&self) -> bool {
        self.build().log_odds_shift().is_some()
    }

    /// `{"name": …, …}` of a file, with the machines known.
    pub(crate) fn read(known: &[&'static MachineEntry], object: Map<String, Json>) -> Result<Self> {
        let (entry, rest) = entry_of(known, object)?;
        Ok(Self(Choice::Named(entry, Values::read(&entry.part, rest)?)))
    }
}

impl Entry for MachineEntry {
    const WHAT: &str = "machine";

    fn part(&self) -> &Part {
        &self.part
    }
}

impl Serialize for MachineSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match &self.0 {
            Choice::Named(_, values) => values.serialize(serializer),
            Choice::Own(own) => Err(serde::ser::Error::custom(format!(
                "`{}`, a machine of your own, has no name in files",
                own.name()
            ))),
        }
    }
}

/// Of our machines; a [`Registry`](crate::Registry) reads others too.
impl<'de> Deserialize<'de> for MachineSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let object = Map::deserialize(deserializer)?;
        Self::read(MACHINES, object).map_err(serde::de::Error::custom)
    }
}
