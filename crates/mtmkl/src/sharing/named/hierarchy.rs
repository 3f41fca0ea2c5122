//! A tree of tasks: θᵗ = Σ over the nodes v above t of γᵛ, (Σ_{v at level l} ‖γᵛ‖_p^q)^{1/q} ≤ radius for each level l.
//!
//! The root is the common space and the leaves are the L_p–L_q group of tasks, so that PSCS is the tree without a level between them.

use super::{P, Q, RADIUS, SetSpec, SharingEntry, SharingSpec, TermSpec};
use crate::entry::{Parameter, Part, Value};
use crate::error::Error;
use crate::grid::Shape;
use crate::tree::NamedLevel;

/// How it is known.
pub(crate) static ENTRY: SharingEntry = SharingEntry {
    part: Part {
        name: "hierarchy",
        help: "θᵗ = Σ over the groups v above task t of γᵛ, the γ of each level of a tree in an L_p–L_q group ball",
        parameters: &[
            P,
            Q,
            RADIUS,
            Parameter::list(
                "radii",
                "the bound of each level in place of one radius, the outermost first",
            )
            .optional()
            .in_python("radius"),
            Parameter::truth("root", true, "whether there is a level of all tasks"),
            Parameter::truth("leaves", true, "whether there is a level of single tasks"),
            Parameter::levels("levels", "the groups of tasks, level by level").in_python("tree"),
        ],
    },
    terms: |values, _| {
        let (p, q) = (values.number("p"), values.number("q"));
        let inner = values.levels("levels");
        let (root, leaves) = (values.truth("root"), values.truth("leaves"));
        let count = inner.len() + usize::from(root) + usize::from(leaves);
        let radii = match values.list("radii") {
            None => vec![values.number("radius"); count],
            Some(radii) if radii.len() == count => radii.to_vec(),
            Some(radii) => {
                let expected = format!("{count}, one for each level");
                return Err(Error::param(
                    "radii",
                    format!("{} numbers", radii.len()),
                    expected,
                ));
            }
        };
        let mut radii = radii.into_iter();
        // There are as many as levels.
        let mut radius = || radii.next().unwrap_or(f64::NAN);
        let mut terms = Vec::with_capacity(count);
        if root {
            let radius = radius();
            terms.push(TermSpec::Common(SetSpec::LpBall { p, radius }));
        }
        terms.extend(inner.iter().map(|level| TermSpec::Level {
            level: level.clone(),
            p,
            q,
            radius: radius(),
        }));
        if leaves {
            let radius = radius();
            terms.push(TermSpec::Group { p, q, radius });
        }
        Ok(terms)
    },
    examples,
};

/// Three levels of equal and of uneven depth, groups that overlap and leave tasks out, and no groups at all; the sharpest norms and round ones.
fn examples(shape: Shape) -> Vec<SharingSpec> {
    let tasks = shape.tasks;
    let all: Vec<usize> = (0..tasks).collect();
    let (first, rest) = all.split_at(tasks.div_ceil(2));
    let level = |label: &str, groups: &[&[usize]]| NamedLevel {
        label: label.to_string(),
        groups: groups
            .iter()
            .filter(|group| !group.is_empty())
            .enumerate()
            .map(|(number, group)| (format!("{label} {number}"), group.to_vec()))
            .collect(),
    };
    let halves = || vec![level("half", &[first, rest])];
    // Only the first half is divided once more.
    let uneven = vec![
        level("half", &[first, rest]),
        level("quarter", &[&first[..1], &first[1..]]),
    ];
    let overlapping = vec![level("group", &[first, &all[tasks / 3..], &all])];
    let some = vec![level("some", &[first])];
    let of = |levels: Vec<NamedLevel>, p: f64, q: f64| Hierarchy {
        levels,
        p,
        q,
        ..Hierarchy::default()
    };
    vec![
        of(halves(), 1.0, 1.0).into(),
        of(halves(), 2.0, 2.0).into(),
        Hierarchy {
            radii: Some(vec![1.0, 0.7, 0.5, 0.3]),
            ..of(uneven, 1.5, 1.0)
        }
        .into(),
        Hierarchy {
            root: false,
            ..of(overlapping, 1.1, 1.5)
        }
        .into(),
        Hierarchy {
            radius: 0.8,
            root: false,
            ..of(some, 2.0, 1.0)
        }
        .into(),
        Hierarchy {
            leaves: false,
            ..of(halves(), 2.0, 1.0)
        }
        .into(),
        of(Vec::new(), 2.0, 1.0).into(),
    ]
}

/// θᵗ = Σ over the groups v above task t of γᵛ, (Σ_{v at level l} ‖γᵛ‖_p^q)^{1/q} ≤ radius for each level l of a tree.
///
/// ```
/// use mtmkl::sharing::{Hierarchy, SharingSpec};
/// use mtmkl::TaskTree;
///
/// let tree: TaskTree = serde_json::from_str(r#"{"north": ["a", "b"], "south": ["c"]}"#).unwrap();
/// let levels = tree.levels(&["a", "b", "c"]).unwrap();
/// let sharing: SharingSpec = Hierarchy { levels, ..Hierarchy::default() }.into();
/// # assert_eq!(sharing.name(), "hierarchy");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Hierarchy {
    /// The groups between the root and the leaves, outermost first.
    pub levels: Vec<NamedLevel>,
    /// p ≥ 1, inside a group.
    pub p: f64,
    /// q ≥ 1, between the groups of a level.
    pub q: f64,
    /// The bound of each level.
    pub radius: f64,
    /// The bounds where they differ, those of the root and the leaves among them.
    pub radii: Option<Vec<f64>>,
    /// Whether there is a level of all tasks.
    pub root: bool,
    /// Whether there is a level of single tasks.
    pub leaves: bool,
}

impl Default for Hierarchy {
    fn default() -> Self {
        Self {
            levels: Vec::new(),
            p: 2.0,
            q: 1.0,
            radius: 1.0,
            radii: None,
            root: true,
            leaves: true,
        }
    }
}

impl From<Hierarchy> for SharingSpec {
    fn from(tree: Hierarchy) -> Self {
        let values: [Value; 7] = [
            tree.p.into(),
            tree.q.into(),
            tree.radius.into(),
            tree.radii.into(),
            tree.root.into(),
            tree.leaves.into(),
            tree.levels.into(),
        ];
        Self::of(&ENTRY, values)
    }
}
