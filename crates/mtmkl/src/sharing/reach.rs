//! Which tasks each row of a term reaches: θᵗ = Σ over the rows v that reach task t of γᵛ.
//!
//! The other way round a row sees s^v = Σ over the tasks t that it reaches of sᵗ, the adjoint of that sum. Both are all that the oracle of a
//! term, its start and the second-order step ever need to know of tasks.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::grid::Grid;

/// The rows of a term, and the tasks that each of them reaches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// One row, which reaches all tasks.
    All,
    /// A row for each task, in the tasks' order.
    Each,
    /// A row for each of these subsets of the tasks. They may overlap, and leave tasks out.
    Groups(Vec<Vec<usize>>),
}

impl Reach {
    /// A row for each of these subsets of the tasks, given by the tasks' positions.
    pub fn groups(groups: impl IntoIterator<Item = Vec<usize>>) -> Self {
        Self::Groups(groups.into_iter().collect())
    }

    /// How many rows there are.
    pub fn rows(&self, tasks: usize) -> usize {
        match self {
            Self::All => 1,
            Self::Each => tasks,
            Self::Groups(groups) => groups.len(),
        }
    }

    /// The tasks that a row reaches.
    ///
    /// # Panics
    /// Where a slice does: when there is no such row.
    pub fn tasks_of(&self, row: usize, tasks: usize) -> Cow<'_, [usize]> {
        match self {
            Self::All => Cow::Owned((0..tasks).collect()),
            Self::Each => Cow::Owned(vec![row]),
            Self::Groups(groups) => Cow::Borrowed(&groups[row]),
        }
    }

    /// Whether one row reaches all tasks and there is no other.
    pub fn is_common(&self, tasks: usize) -> bool {
        match self {
            Self::All => true,
            Self::Each => false,
            // Checked groups name no task twice.
            Self::Groups(groups) => groups.len() == 1 && groups[0].len() == tasks,
        }
    }

    /// Whether row t reaches task t and no other.
    pub fn is_specific(&self, tasks: usize) -> bool {
        match self {
            Self::All => false,
            Self::Each => true,
            Self::Groups(groups) => {
                let mut singles = groups.iter().enumerate();
                groups.len() == tasks && singles.all(|(task, group)| group[..] == [task])
            }
        }
    }

    /// Whether each row reaches some of the tasks, and none of them twice.
    pub(crate) fn check(&self, tasks: usize) -> Result<()> {
        let Self::Groups(groups) = self else {
            return Ok(());
        };
        let refused = |group: &[usize], expected: &str| {
            Err(Error::param("groups", format!("{group:?}"), expected))
        };
        if groups.is_empty() {
            return refused(&[], "at least one group of tasks");
        }
        for group in groups {
            let mut seen = vec![false; tasks];
            for &task in group {
                if task >= tasks {
                    let expected = format!("positions of tasks below {tasks}");
                    return refused(group, &expected);
                }
                if std::mem::replace(&mut seen[task], true) {
                    return refused(group, "each task at most once in a group");
                }
            }
            if group.is_empty() {
                return refused(group, "at least one task in each group");
            }
        }
        Ok(())
    }

    /// s^v = Σ over the tasks of v of sᵗ, a row for each v.
    pub fn gather<'a>(&self, s: &'a Grid) -> Cow<'a, Grid> {
        match self {
            Self::All => Cow::Owned(s.sum_rows()),
            Self::Each => Cow::Borrowed(s),
            Self::Groups(groups) => {
                let mut sums = Grid::zeros(groups.len(), s.kernels());
                for (row, group) in groups.iter().enumerate() {
                    for &task in group {
                        add(s.row(task), sums.row_mut(row));
                    }
                }
                Cow::Owned(sums)
            }
        }
    }

    /// θᵗ ← θᵗ + Σ over the rows that reach task t.
    pub fn scatter(&self, part: &Grid, theta: &mut Grid) {
        match self {
            Self::All => {
                for task in 0..theta.rows() {
                    add(part.row(0), theta.row_mut(task));
                }
            }
            Self::Each => add(part.values(), theta.values_mut()),
            Self::Groups(groups) => {
                for (row, group) in groups.iter().enumerate() {
                    for &task in group {
                        add(part.row(row), theta.row_mut(task));
                    }
                }
            }
        }
    }
}

/// out ← out + values
fn add(values: &[f64], out: &mut [f64]) {
    for (out, value) in out.iter_mut().zip(values) {
        *out += value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gathering_is_the_adjoint_of_scattering() {
        let numbers = |rows: usize, shift: f64| {
            let values = (0..rows * 2).map(|i| (i as f64 + shift).sin()).collect();
            Grid::from_values(rows, 2, values)
        };
        let s = numbers(4, 0.3);
        let overlapping = Reach::groups([vec![0, 2], vec![2, 3, 1], vec![1]]);
        for reach in [Reach::All, Reach::Each, overlapping] {
            reach.check(4).unwrap();
            let part = numbers(reach.rows(4), 0.9);
            let mut theta = Grid::zeros(4, 2);
            reach.scatter(&part, &mut theta);
            assert!((s.dot(&theta) - reach.gather(&s).dot(&part)).abs() < 1e-14);
        }
    }

    #[test]
    fn groups_are_told_for_what_they_are() {
        let all = Reach::groups([vec![1, 0]]);
        assert!(all.is_common(2) && !all.is_specific(2) && !all.is_common(3));
        let each = Reach::groups([vec![0], vec![1]]);
        assert!(each.is_specific(2) && !each.is_specific(3));
        assert!(!Reach::groups([vec![1], vec![0]]).is_specific(2));
        assert_eq!(*each.tasks_of(1, 2), [1]);
        assert_eq!(*Reach::All.tasks_of(0, 3), [0, 1, 2]);
    }

    #[test]
    fn groups_without_meaning_are_refused() {
        let faults = [
            vec![],
            vec![vec![]],
            vec![vec![0], vec![3]],
            vec![vec![1, 1]],
        ];
        for groups in faults {
            assert!(Reach::groups(groups).check(3).is_err());
        }
    }
}
