//! Sharings by name, as they stand in configuration files and model files.

use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value as Json};

use super::named::SHARINGS;
use super::{OwnTerm, Reach, Sharing, Term, TermSpec};
use crate::entry::{Entry, Kind, Part, Value, Values, entry_of};
use crate::error::Result;
use crate::grid::Shape;

/// How a sharing is known: registering its entry is all that flags, files, searches and the conformance suite need.
#[derive(Debug)]
pub struct SharingEntry {
    /// Name, help and parameters.
    pub part: Part,
    /// The terms whose sum it is, for T tasks and M kernels; [`TermSpec::own`] where one is not of ours.
    pub terms: fn(&Values, Shape) -> Result<Vec<TermSpec>>,
    /// Examples for T tasks and M kernels that together touch every special case.
    pub examples: fn(Shape) -> Vec<SharingSpec>,
}

impl Entry for SharingEntry {
    const WHAT: &str = "sharing";

    fn part(&self) -> &Part {
        &self.part
    }
}

/// A sharing by name, with its parameters.
#[derive(Debug, Clone)]
pub struct SharingSpec {
    entry: &'static SharingEntry,
    values: Values,
    /// Of a sum.
    terms: Vec<TermSpec>,
}

impl PartialEq for SharingSpec {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values && self.terms == other.terms
    }
}

impl SharingSpec {
    /// The sharing of an entry with these values, in the order of its parameters; the default for those that are not there.
    pub fn of<V: Into<Value>>(
        entry: &'static SharingEntry,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        Self {
            entry,
            values: Values::new(&entry.part, values),
            terms: Vec::new(),
        }
    }

    /// The sum of terms of the user's own. A model of it can be used, not saved; with an entry of its own in a
    /// [`Registry`](crate::Registry) it can.
    pub fn own(terms: impl IntoIterator<Item = Arc<dyn Term>>) -> Self {
        let terms = terms.into_iter().map(OwnTerm).map(TermSpec::Own);
        Self::sum(terms.collect())
    }

    /// The same with these terms, for an entry that takes some.
    #[must_use]
    pub fn with_terms(self, terms: Vec<TermSpec>) -> Self {
        Self { terms, ..self }
    }

    /// Whether all of it has a name, so that it can be written to a file.
    pub fn is_named(&self) -> bool {
        let mut terms = self.terms.iter();
        !terms.any(|term| matches!(term, TermSpec::Own(_)))
    }

    /// The entry.
    pub fn entry(&self) -> &'static SharingEntry {
        self.entry
    }

    /// The name.
    pub fn name(&self) -> &'static str {
        self.entry.part.name
    }

    /// The values of its parameters.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Whether it takes a number of this name.
    pub fn takes(&self, name: &str) -> bool {
        self.values.takes(name)
    }

    /// The number of this name, where it has one.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.values.get(name)
    }

    /// The number of this name; no number, where it has none.
    pub fn number(&self, name: &str) -> f64 {
        self.values.number(name)
    }

    /// Gives a number another value; whether it has one of this name.
    pub fn set(&mut self, name: &str, value: f64) -> bool {
        self.values.set(name, value)
    }

    /// Whether its own parameters are in range.
    pub(crate) fn check(&self) -> Result<()> {
        self.values.check()
    }

    /// The terms whose sum it is, for T tasks and M kernels.
    ///
    /// # Errors
    /// When a parameter is outside its range.
    pub fn terms(&self, shape: Shape) -> Result<Vec<TermSpec>> {
        self.check()?;
        let mut terms = (self.entry.terms)(&self.values, shape)?;
        terms.extend(self.terms.iter().cloned());
        Ok(terms)
    }

    /// Ψ for T tasks and M kernels.
    ///
    /// # Errors
    /// When a parameter is outside its range or does not fit the shape.
    pub fn build(&self, shape: Shape) -> Result<Sharing> {
        let terms = self.terms(shape)?.iter().map(TermSpec::term).collect();
        Sharing::new(self.name(), terms, shape)
    }

    /// Whether its groups are of so many tasks; everything else is checked when it is built.
    pub(crate) fn check_groups(&self, tasks: usize) -> Result<()> {
        let values = self.entry.part.parameters.iter();
        let levels = values.flat_map(|parameter| self.values.levels(parameter.name));
        let terms = self.terms.iter().filter_map(|term| match term {
            TermSpec::Level { level, .. } => Some(level),
            _ => None,
        });
        for level in levels.chain(terms) {
            let groups = level.groups.iter().map(|(_, tasks)| tasks.clone());
            Reach::groups(groups).check(tasks)?;
        }
        Ok(())
    }

    /// `{"name": …, …}` of a file, with the sharings known.
    pub(crate) fn read(known: &[&'static SharingEntry], object: Map<String, Json>) -> Result<Self> {
        let (entry, mut rest) = entry_of(known, object)?;
        let part = &entry.part;
        let mut terms = Vec::new();
        if let Some(name) = terms_of(part) {
            let given = rest.remove(name).unwrap_or(Json::Null);
            terms = serde_json::from_value(given)
                .map_err(|error| part.problem(format!("`{name}`: {error}")))?;
            rest.insert(name.to_string(), Json::Array(Vec::new()));
        }
        let values = Values::read(part, rest)?;
        Ok(Self {
            entry,
            values,
            terms,
        })
    }
}

/// The name of the parameter that has terms, where there is one.
fn terms_of(part: &Part) -> Option<&'static str> {
    let mut parameters = part.parameters.iter();
    let found = parameters.find(|parameter| parameter.kind == Kind::Terms);
    found.map(|parameter| parameter.name)
}

impl Serialize for SharingSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let Some(name) = terms_of(&self.entry.part) else {
            return self.values.serialize(serializer);
        };
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("name", self.name())?;
        map.serialize_entry(name, &self.terms)?;
        map.end()
    }
}

/// Of our sharings; a [`Registry`](crate::Registry) reads others too.
impl<'de> Deserialize<'de> for SharingSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let object = Map::deserialize(deserializer)?;
        Self::read(SHARINGS, object).map_err(serde::de::Error::custom)
    }
}
