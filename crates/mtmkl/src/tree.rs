//! Which groups tasks stand in: a tree of named groups with tasks at its leaves, or groups that may overlap.
//!
//! A node v of the tree covers the tasks below it. Sharings and task kernels ask for the groups of each level, by the positions of their
//! tasks ([`TaskTree::levels`]); files and callers give them by name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::{Error, Result, TreeProblem};

/// The groups of one level of a tree: each with its name and the positions of its tasks.
///
/// Groups of a tree have no task in common, those that were given as overlapping may; not every task need be in one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedLevel {
    /// What the level is called: a column's name, `level 1`, …, or `groups`.
    pub label: String,
    /// The groups, by name, with the positions of their tasks.
    pub groups: Vec<(String, Vec<usize>)>,
}

/// Tasks in named groups that are in groups themselves, to any depth, which need not be the same everywhere; or groups that may overlap.
///
/// In files and in other languages a tree is nested maps with lists of tasks inside:
/// `{"north": {"oslo": ["a", "b"], "bergen": ["c"]}, "south": ["d"]}`. Neither the group of all tasks nor the tasks by themselves are part of
/// it: [`levels`](Self::levels) are those between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskTree {
    /// Each task with the names of the groups above it, outermost first.
    places: Vec<Place>,
    /// The names of the levels, where they have some.
    labels: Vec<String>,
    /// Whether a task may have several places, or none.
    overlaps: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    path: Vec<String>,
    task: String,
}

/// Names in one text: those of groups from the outermost on.
fn joined(path: &[String]) -> String {
    path.join("/")
}

impl TaskTree {
    /// The tree that the values of nested columns make, outermost column first: for rows of a table or for tasks, the name of the task and its
    /// value in each column. Where a task has no value in the last columns its branch ends early.
    ///
    /// # Errors
    /// When a task has two values in one column, or none where a column further in has one.
    pub fn from_columns<'a>(
        columns: &[&str],
        rows: impl IntoIterator<Item = (&'a str, Vec<Option<&'a str>>)>,
    ) -> Result<Self> {
        let mut order: Vec<&str> = Vec::new();
        let mut known: BTreeMap<&str, Vec<Option<&str>>> = BTreeMap::new();
        for (task, values) in rows {
            let own = known.entry(task).or_insert_with(|| {
                order.push(task);
                vec![None; columns.len()]
            });
            for ((own, value), column) in own.iter_mut().zip(values).zip(columns) {
                match (&own, value) {
                    (Some(first), Some(second)) if *first != second => {
                        return Err(Error::Tree(TreeProblem::TwoValues {
                            task: task.to_string(),
                            column: (*column).to_string(),
                            first: (*first).to_string(),
                            second: second.to_string(),
                        }));
                    }
                    (None, Some(_)) => *own = value,
                    _ => {}
                }
            }
        }
        let mut places = Vec::with_capacity(order.len());
        for task in order {
            let values = &known[task];
            let depth = values.iter().take_while(|value| value.is_some()).count();
            if values[depth..].iter().any(Option::is_some) {
                return Err(Error::Tree(TreeProblem::NoValue {
                    task: task.to_string(),
                    column: columns[depth].to_string(),
                }));
            }
            let path = values.iter().flatten().map(ToString::to_string);
            places.push(Place {
                path: path.collect(),
                task: task.to_string(),
            });
        }
        Ok(Self {
            places,
            labels: columns.iter().map(ToString::to_string).collect(),
            overlaps: false,
        })
    }

    /// Groups that may overlap and leave tasks out, in one level.
    ///
    /// # Errors
    /// When a group has no task, or two groups have the same name.
    pub fn overlapping(groups: impl IntoIterator<Item = (String, Vec<String>)>) -> Result<Self> {
        let mut tree = Self {
            places: Vec::new(),
            labels: vec!["groups".to_string()],
            overlaps: true,
        };
        let mut names = BTreeSet::new();
        for (name, tasks) in groups {
            if tasks.is_empty() {
                return Err(Error::Tree(TreeProblem::EmptyGroup(name)));
            }
            if !names.insert(name.clone()) {
                return Err(Error::Tree(TreeProblem::GroupTwice(name)));
            }
            let path = vec![name];
            tree.places.extend(tasks.into_iter().map(|task| Place {
                path: path.clone(),
                task,
            }));
        }
        Ok(tree)
    }

    /// The same groups, which are now allowed to overlap and to leave tasks out.
    #[must_use]
    pub fn with_overlaps(mut self) -> Self {
        if self.labels.is_empty() && self.depth() == 1 {
            self.labels.push("groups".to_string());
        }
        self.overlaps = true;
        self
    }

    /// How many levels of groups there are between the group of all tasks and the tasks by themselves.
    pub fn depth(&self) -> usize {
        let depths = self.places.iter().map(|place| place.path.len());
        depths.max().unwrap_or(0)
    }

    /// The groups of each level, outermost first, by the positions of these tasks. A name in the tree stands for the task of this name and for
    /// all machines of it, which are called `name: …` where there are several classes.
    ///
    /// # Errors
    /// When the tree has a task that is not one of these, a task twice, or not all of them.
    pub fn levels<S: AsRef<str>>(&self, tasks: &[S]) -> Result<Vec<NamedLevel>> {
        // No groups at all are of any tasks.
        if self.places.is_empty() {
            return Ok(Vec::new());
        }
        let positions = self.positions(tasks)?;
        let mut levels = Vec::with_capacity(self.depth());
        for depth in 1..=self.depth() {
            // In the order in which the tree names them.
            let mut groups: Vec<(&[String], Vec<usize>)> = Vec::new();
            let mut known: BTreeMap<&[String], usize> = BTreeMap::new();
            for (place, own) in self.places.iter().zip(&positions) {
                let Some(path) = place.path.get(..depth) else {
                    continue;
                };
                let at = *known.entry(path).or_insert_with(|| {
                    groups.push((path, Vec::new()));
                    groups.len() - 1
                });
                groups[at].1.extend(own.iter().copied());
            }
            let mut last_names: BTreeMap<&str, usize> = BTreeMap::new();
            for (path, _) in &groups {
                *last_names.entry(path[depth - 1].as_str()).or_default() += 1;
            }
            let named = groups.into_iter().map(|(path, mut tasks)| {
                tasks.sort_unstable();
                let last = path[depth - 1].as_str();
                let name = match last_names.get(last) {
                    Some(1) => last.to_string(),
                    _ => joined(path),
                };
                (name, tasks)
            });
            let label = self.labels.get(depth - 1).cloned();
            levels.push(NamedLevel {
                label: label.unwrap_or_else(|| format!("level {depth}")),
                groups: named.collect(),
            });
        }
        Ok(levels)
    }

    /// The tasks of each place.
    fn positions<S: AsRef<str>>(&self, tasks: &[S]) -> Result<Vec<Vec<usize>>> {
        let mut named: BTreeMap<&str, Vec<&Place>> = BTreeMap::new();
        for place in &self.places {
            let places = named.entry(&place.task).or_default();
            let is_twice = places.iter().any(|other| other.path == place.path);
            if let Some(first) = places.first().filter(|_| is_twice || !self.overlaps) {
                return Err(Error::Tree(TreeProblem::TwoPlaces {
                    task: place.task.clone(),
                    first: joined(&first.path),
                    second: joined(&place.path),
                }));
            }
            places.push(place);
        }
        let mut own: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (position, task) in tasks.iter().enumerate() {
            let task = task.as_ref();
            let shorter = task.rmatch_indices(": ").map(|(at, _)| &task[..at]);
            let found = std::iter::once(task).chain(shorter);
            match found.into_iter().find(|name| named.contains_key(name)) {
                Some(name) => own.entry(name).or_default().push(position),
                None if self.overlaps => {}
                None => {
                    return Err(Error::Tree(TreeProblem::MissingTask(task.to_string())));
                }
            }
        }
        let of = |place: &Place| match own.get(place.task.as_str()) {
            Some(positions) => Ok(positions.clone()),
            None => Err(Error::Tree(TreeProblem::UnknownTask {
                task: place.task.clone(),
                known: listed(tasks),
            })),
        };
        self.places.iter().map(of).collect()
    }
}

/// The first names of many.
fn listed<S: AsRef<str>>(names: &[S]) -> String {
    const SHOWN: usize = 12;
    let shown = names.iter().take(SHOWN);
    let shown: Vec<String> = shown.map(|name| format!("`{}`", name.as_ref())).collect();
    let more = match names.len() {
        count if count > SHOWN => format!(", … ({count} in all)"),
        _ => String::new(),
    };
    shown.join(", ") + &more
}

/// What stands under a name of a nested map.
enum Inside {
    Groups(Vec<(String, Self)>),
    Tasks(Vec<String>),
}

impl Inside {
    /// Adds the places under this path.
    fn places(
        self,
        path: &mut Vec<String>,
        out: &mut Vec<Place>,
    ) -> std::result::Result<(), TreeProblem> {
        let before = out.len();
        match self {
            Self::Tasks(tasks) => out.extend(tasks.into_iter().map(|task| Place {
                path: path.clone(),
                task,
            })),
            Self::Groups(groups) => {
                for (name, inside) in groups {
                    path.push(name);
                    inside.places(path, out)?;
                    path.pop();
                }
            }
        }
        match out.len() {
            after if after == before => Err(TreeProblem::EmptyGroup(joined(path))),
            _ => Ok(()),
        }
    }
}

struct InsideVisitor;

impl<'de> Visitor<'de> for InsideVisitor {
    type Value = Inside;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("groups of tasks by name, or a list of names of tasks")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Inside, A::Error> {
        let mut groups: Vec<(String, Inside)> = Vec::new();
        let mut names = BTreeSet::new();
        while let Some((name, inside)) = map.next_entry::<String, Inside>()? {
            if !names.insert(name.clone()) {
                return Err(A::Error::custom(TreeProblem::GroupTwice(name)));
            }
            groups.push((name, inside));
        }
        Ok(Inside::Groups(groups))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<Inside, A::Error> {
        let mut tasks = Vec::new();
        while let Some(Name(task)) = list.next_element()? {
            tasks.push(task);
        }
        Ok(Inside::Tasks(tasks))
    }
}

impl<'de> Deserialize<'de> for Inside {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        from.deserialize_any(InsideVisitor)
    }
}

/// The name of a task, which may be written as a whole number.
struct Name(String);

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = Name;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the name of a task")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> std::result::Result<Name, E> {
        Ok(Name(text.to_string()))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> std::result::Result<Name, E> {
        Ok(Name(number.to_string()))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> std::result::Result<Name, E> {
        Ok(Name(number.to_string()))
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        from.deserialize_any(NameVisitor)
    }
}

/// From nested maps, with lists of names of tasks inside.
impl<'de> Deserialize<'de> for TaskTree {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        let inside = from.deserialize_map(InsideVisitor)?;
        let mut places = Vec::new();
        if !matches!(&inside, Inside::Groups(groups) if groups.is_empty()) {
            let made = inside.places(&mut Vec::new(), &mut places);
            made.map_err(D::Error::custom)?;
        }
        Ok(Self {
            places,
            labels: Vec::new(),
            overlaps: false,
        })
    }
}
