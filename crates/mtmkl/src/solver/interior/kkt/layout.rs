//! Which rows stand where in the Newton matrix: rows that reach one task go with that task, rows that reach the same several tasks form a node.
//!
//! θᵗ = Σ of the task's own rows + Σ over the nodes above it of (the sum of the node's rows). With a common term there is one node, over all tasks; a
//! task hierarchy has one for each inner node of its tree. With one task all rows are the task's own.

use crate::sharing::Reach;

/// A row of a term: the term's number, and the row's.
pub(super) type RowId = (usize, usize);

/// The rows of all terms, by the tasks that they reach.
#[derive(Debug)]
pub(in crate::solver::interior) struct Layout {
    /// For each task the rows that reach it alone.
    pub(super) own: Vec<Vec<RowId>>,
    /// The rows of each node.
    pub(super) nodes: Vec<Vec<RowId>>,
    /// For each task the nodes above it.
    pub(super) above: Vec<Vec<usize>>,
}

impl Layout {
    /// Of these terms, `None` for those without variables.
    pub(in crate::solver::interior) fn new<'a>(
        terms: impl IntoIterator<Item = Option<&'a Reach>>,
        tasks: usize,
    ) -> Self {
        let mut layout = Self {
            own: vec![Vec::new(); tasks],
            nodes: Vec::new(),
            above: vec![Vec::new(); tasks],
        };
        let mut reached: Vec<Vec<usize>> = Vec::new();
        for (term, reach) in terms.into_iter().enumerate() {
            let Some(reach) = reach else { continue };
            for row in 0..reach.rows(tasks) {
                let mut tasks = reach.tasks_of(row, tasks).into_owned();
                if let [task] = tasks[..] {
                    layout.own[task].push((term, row));
                    continue;
                }
                tasks.sort_unstable();
                let known = reached.iter().position(|known| *known == tasks);
                let node = known.unwrap_or_else(|| {
                    for &task in &tasks {
                        layout.above[task].push(layout.nodes.len());
                    }
                    layout.nodes.push(Vec::new());
                    reached.push(tasks);
                    layout.nodes.len() - 1
                });
                layout.nodes[node].push((term, row));
            }
        }
        layout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_same_tasks_are_one_node() {
        let level = Reach::groups([vec![2, 1, 0], vec![1], vec![2, 1]]);
        let terms = [
            Some(&Reach::All),
            None,
            Some(&Reach::Each),
            Some(&level),
            Some(&Reach::All),
        ];
        let layout = Layout::new(terms, 3);
        assert_eq!(
            layout.nodes,
            [vec![(0, 0), (3, 0), (4, 0)], vec![(3, 2)]],
            "a group of all tasks is the common node"
        );
        assert_eq!(layout.above, [vec![0], vec![0, 1], vec![0, 1]]);
        assert_eq!(layout.own[1], [(2, 1), (3, 1)]);
        // With one task there is nothing to share.
        let alone = Layout::new([Some(&Reach::All), Some(&Reach::Each)], 1);
        assert!(alone.nodes.is_empty());
        assert_eq!(alone.own, [vec![(0, 0), (1, 0)]]);
    }
}
