//! What a part that is chosen by name is called and takes: [`Part`]. Every machine and every sharing has one in its entry.
//!
//! Files, flags, help texts, completions, grids and Python's signatures are made from it, so that a parameter is written down once.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value as Json};

use crate::error::{Error, Result};
use crate::tree::NamedLevel;

/// A named part: what it is called, what it is, what it takes.
#[derive(Debug)]
pub struct Part {
    /// The name on the command line and in files.
    pub name: &'static str,
    /// What it is, formula first where there is one.
    pub help: &'static str,
    /// The parameters, in the order of files.
    pub parameters: &'static [Parameter],
}

/// One parameter of a part.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Parameter {
    /// The name in files; on the command line with `-` for `_`.
    pub name: &'static str,
    /// The name on the command line, where it is another.
    pub flag: &'static str,
    /// The name in Python.
    pub python: &'static str,
    /// What it means, in a few words without its range.
    pub help: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// What a search tries where nothing is said; empty where it leaves the parameter alone.
    pub grid: &'static [f64],
}

/// What a parameter may be.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Kind {
    /// A number of the range; the default where nothing is said. Without one it must be given.
    Number {
        /// The values allowed.
        range: Range,
        /// The value where nothing is said.
        default: Option<f64>,
    },
    /// Numbers, one for each kernel where nothing else is said.
    List {
        /// Whether it must be given.
        is_required: bool,
    },
    /// Yes or no, and which where nothing is said.
    Truth {
        /// The value where nothing is said.
        default: bool,
    },
    /// Levels of a tree of tasks; there may be none.
    Levels,
    /// Terms of a sharing.
    Terms,
}

/// The values that a number may have.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Range {
    /// > 0.
    Positive,
    /// ≥ this.
    AtLeast(f64),
    /// In (0, 1].
    Share,
}

impl Range {
    /// Whether the value is one of them.
    pub fn contains(self, value: f64) -> bool {
        value.is_finite()
            && match self {
                Self::Positive => value > 0.0,
                Self::AtLeast(least) => value >= least,
                Self::Share => value > 0.0 && value <= 1.0,
            }
    }

    /// In signs: `> 0`.
    pub fn signs(self) -> String {
        match self {
            Self::Positive => "> 0".to_string(),
            Self::AtLeast(least) => format!("≥ {least}"),
            Self::Share => "in (0, 1]".to_string(),
        }
    }

    /// Whether the value of this parameter is one of them.
    ///
    /// # Errors
    /// Names the parameter and its range.
    pub fn check(self, name: &'static str, value: f64) -> Result<()> {
        if self.contains(value) {
            return Ok(());
        }
        Err(Error::param(name, value, self.expected()))
    }

    fn expected(self) -> String {
        match self {
            Self::Share => "a number in (0, 1]".to_string(),
            other => format!("a finite number {}", other.signs()),
        }
    }
}

impl Parameter {
    /// A number that must be given, unless [`Parameter::or`] says what it is otherwise.
    pub const fn number(name: &'static str, range: Range, help: &'static str) -> Self {
        let default = None;
        Self::new(name, Kind::Number { range, default }, help)
    }

    /// A number for each kernel, which must be given.
    pub const fn list(name: &'static str, help: &'static str) -> Self {
        Self::new(name, Kind::List { is_required: true }, help)
    }

    /// Yes or no, and which where nothing is said.
    pub const fn truth(name: &'static str, default: bool, help: &'static str) -> Self {
        Self::new(name, Kind::Truth { default }, help)
    }

    /// Levels of a tree of tasks.
    pub const fn levels(name: &'static str, help: &'static str) -> Self {
        Self::new(name, Kind::Levels, help)
    }

    /// Terms of a sum.
    pub(crate) const fn terms(name: &'static str, help: &'static str) -> Self {
        Self::new(name, Kind::Terms, help)
    }

    const fn new(name: &'static str, kind: Kind, help: &'static str) -> Self {
        Self {
            name,
            flag: name,
            python: name,
            help,
            kind,
            grid: &[],
        }
    }

    /// With this value where none is given.
    #[must_use]
    pub const fn or(mut self, value: f64) -> Self {
        if let Kind::Number { range, .. } = self.kind {
            let default = Some(value);
            self.kind = Kind::Number { range, default };
        }
        self
    }

    /// It may be left out.
    #[must_use]
    pub const fn optional(mut self) -> Self {
        if let Kind::List { .. } = self.kind {
            self.kind = Kind::List { is_required: false };
        }
        self
    }

    /// A search tries these where nothing is said.
    #[must_use]
    pub const fn tried(mut self, values: &'static [f64]) -> Self {
        self.grid = values;
        self
    }

    /// Called so on the command line.
    #[must_use]
    pub const fn flagged(mut self, name: &'static str) -> Self {
        self.flag = name;
        self
    }

    /// Called so in Python.
    #[must_use]
    pub const fn in_python(mut self, name: &'static str) -> Self {
        self.python = name;
        self
    }

    /// The name on the command line, without `--`.
    pub fn flag(&self) -> String {
        self.flag.replace('_', "-")
    }

    /// Whether it is a number, which a search may go through.
    pub fn is_number(&self) -> bool {
        matches!(self.kind, Kind::Number { .. })
    }

    /// Whether it must be given.
    pub fn is_required(&self) -> bool {
        match self.kind {
            Kind::Number { default, .. } => default.is_none(),
            Kind::List { is_required } => is_required,
            Kind::Truth { .. } => false,
            Kind::Levels | Kind::Terms => true,
        }
    }

    /// The number where none is given.
    pub fn default(&self) -> Option<f64> {
        match self.kind {
            Kind::Number { default, .. } => default,
            _ => None,
        }
    }

    /// The value where none is given.
    fn default_value(&self) -> Value {
        match self.kind {
            Kind::Truth { default } => default.into(),
            _ => self.default().into(),
        }
    }
}

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A number.
    Number(f64),
    /// Numbers, one for each kernel where nothing else is said.
    List(Vec<f64>),
    /// Yes or no.
    Truth(bool),
    /// Levels of a tree of tasks.
    Levels(Vec<NamedLevel>),
    /// Nothing was given, and there is no default.
    Absent,
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<Vec<f64>> for Value {
    fn from(list: Vec<f64>) -> Self {
        Self::List(list)
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Truth(truth)
    }
}

impl From<Vec<NamedLevel>> for Value {
    fn from(levels: Vec<NamedLevel>) -> Self {
        Self::Levels(levels)
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(given: Option<T>) -> Self {
        given.map_or(Self::Absent, Into::into)
    }
}

/// A part with a value for each of its parameters. In files: `{"name": …, "C": 1.0, …}`.
#[derive(Debug, Clone)]
pub struct Values {
    part: &'static Part,
    values: Vec<Value>,
}

impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        self.part.name == other.part.name && self.values == other.values
    }
}

impl Values {
    /// These values, in the order of the part's parameters; the default for those that are not there.
    pub(crate) fn new<V: Into<Value>>(
        part: &'static Part,
        given: impl IntoIterator<Item = V>,
    ) -> Self {
        let mut given = given.into_iter();
        let value = |parameter: &Parameter| match given.next().map(Into::into) {
            None | Some(Value::Absent) => parameter.default_value(),
            Some(value) => value,
        };
        Self {
            part,
            values: part.parameters.iter().map(value).collect(),
        }
    }

    /// What they are values of.
    pub fn part(&self) -> &'static Part {
        self.part
    }

    fn place(&self, name: &str) -> Option<usize> {
        let mut parameters = self.part.parameters.iter();
        parameters.position(|parameter| parameter.name == name)
    }

    /// Whether the part takes a number of this name.
    pub fn takes(&self, name: &str) -> bool {
        let place = self.place(name);
        place.is_some_and(|at| self.part.parameters[at].is_number())
    }

    /// The number of this name, where there is one.
    pub fn get(&self, name: &str) -> Option<f64> {
        match self.values[self.place(name)?] {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The number of this name; no number, which no range contains, where there is none.
    pub fn number(&self, name: &str) -> f64 {
        self.get(name).unwrap_or(f64::NAN)
    }

    /// The list of this name, where it was given.
    pub fn list(&self, name: &str) -> Option<&[f64]> {
        match &self.values[self.place(name)?] {
            Value::List(list) => Some(list),
            _ => None,
        }
    }

    /// Whether it is so, of this name.
    pub fn truth(&self, name: &str) -> bool {
        let place = self.place(name);
        place.is_some_and(|at| self.values[at] == Value::Truth(true))
    }

    /// The levels of this name; none, where none were given.
    pub fn levels(&self, name: &str) -> &[NamedLevel] {
        match self.place(name).map(|at| &self.values[at]) {
            Some(Value::Levels(levels)) => levels,
            _ => &[],
        }
    }

    /// Gives a number another value; whether there is one of this name.
    pub fn set(&mut self, name: &str, value: f64) -> bool {
        let place = self.place(name).filter(|_| self.takes(name));
        if let Some(at) = place {
            self.values[at] = Value::Number(value);
        }
        place.is_some()
    }

    /// Whether each is there that must be, and each number in its range.
    ///
    /// # Errors
    /// Names the parameter and its range.
    pub(crate) fn check(&self) -> Result<()> {
        for (parameter, value) in self.part.parameters.iter().zip(&self.values) {
            match (parameter.kind, value) {
                (Kind::Number { range, .. }, &Value::Number(number)) => {
                    range.check(parameter.name, number)?;
                }
                (Kind::Number { range, .. }, _) => {
                    return Err(Error::param(parameter.name, "not given", range.expected()));
                }
                (Kind::List { is_required: true }, Value::Absent) => {
                    let expected = "a number for each kernel";
                    return Err(Error::param(parameter.name, "not given", expected));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The values that an object of a file has, without its `name`.
    ///
    /// # Errors
    /// When a parameter is missing, of the wrong kind, or not known.
    pub(crate) fn read(part: &'static Part, object: Map<String, Json>) -> Result<Self> {
        let values = Self::read_all(part, object).map_err(|problem| part.problem(problem))?;
        Ok(Self { part, values })
    }

    fn read_all(
        part: &'static Part,
        mut object: Map<String, Json>,
    ) -> std::result::Result<Vec<Value>, String> {
        let mut values = Vec::new();
        for parameter in part.parameters {
            let name = parameter.name;
            let value = match (parameter.kind, object.remove(name)) {
                (_, None | Some(Json::Null)) if parameter.is_required() => {
                    return Err(format!("`{name}` is missing"));
                }
                (_, None) => parameter.default_value(),
                // Terms stand beside the values.
                (Kind::Terms, _) | (Kind::List { .. }, Some(Json::Null)) => Value::Absent,
                (Kind::Truth { .. }, Some(json)) => json
                    .as_bool()
                    .ok_or_else(|| format!("`{name}` is {json}, expected true or false"))?
                    .into(),
                (Kind::Levels, Some(json)) => serde_json::from_value::<Vec<NamedLevel>>(json)
                    .map_err(|error| format!("`{name}`: {error}, expected levels of groups"))?
                    .into(),
                (Kind::Number { .. }, Some(json)) => json
                    .as_f64()
                    .ok_or_else(|| format!("`{name}` is {json}, expected a number"))?
                    .into(),
                (_, Some(json)) => serde_json::from_value::<Vec<f64>>(json)
                    .map_err(|error| format!("`{name}`: {error}, expected a list of numbers"))?
                    .into(),
            };
            values.push(value);
        }
        match object.keys().next() {
            Some(unknown) => Err(part.unknown(unknown)),
            None => Ok(values),
        }
    }
}

impl Part {
    /// An error about a specification of it.
    pub(crate) fn problem(&self, problem: String) -> Error {
        Error::Spec {
            spec: format!("`{}`", self.name),
            problem,
        }
    }

    /// What to write in place of a parameter that it does not have.
    pub(crate) fn unknown(&self, name: &str) -> String {
        let known: Vec<String> = self
            .parameters
            .iter()
            .map(|parameter| format!("`{}`", parameter.name))
            .collect();
        match known.as_slice() {
            [] => format!("unknown parameter `{name}`; it has none"),
            known => format!(
                "unknown parameter `{name}`, expected one of {}",
                known.join(", ")
            ),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_f64(*number),
            Self::List(list) => list.serialize(serializer),
            Self::Truth(truth) => serializer.serialize_bool(*truth),
            Self::Levels(levels) => levels.serialize(serializer),
            Self::Absent => serializer.serialize_none(),
        }
    }
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1 + self.values.len()))?;
        map.serialize_entry("name", self.part.name)?;
        for (parameter, value) in self.part.parameters.iter().zip(&self.values) {
            map.serialize_entry(parameter.name, value)?;
        }
        map.end()
    }
}

/// What has a [`Part`]: the entries of machines and of sharings.
pub(crate) trait Entry: 'static {
    /// What it is an entry of.
    const WHAT: &str;

    /// Name, help and parameters.
    fn part(&self) -> &Part;
}

/// The entry of this name.
///
/// # Errors
/// Says which names there are.
pub(crate) fn find<E: Entry>(known: &[&'static E], name: &str) -> Result<&'static E> {
    let entry = known.iter().find(|entry| entry.part().name == name);
    entry.copied().ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|entry| entry.part().name).collect();
        Error::Unknown {
            what: E::WHAT,
            name: name.to_string(),
            known: names.join(", "),
        }
    })
}

/// The entry that an object of a file, `{"name": …, …}`, names, and the rest of the object.
///
/// # Errors
/// When it has no name, or there is no such entry.
pub(crate) fn entry_of<E: Entry>(
    known: &[&'static E],
    mut object: Map<String, Json>,
) -> Result<(&'static E, Map<String, Json>)> {
    match object.remove("name") {
        Some(Json::String(name)) => Ok((find(known, &name)?, object)),
        Some(other) => Err(Error::Spec {
            spec: E::WHAT.to_string(),
            problem: format!("`name` is {other}, expected a text"),
        }),
        None => Err(Error::Spec {
            spec: E::WHAT.to_string(),
            problem: "`name` is missing".to_string(),
        }),
    }
}
