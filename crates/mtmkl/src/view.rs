//! These rows of that set: all of them, or some in an order of their own.
//!
//! A view is a map i ↦ v(i) from 0..N_t to the rows 0..n of a sample set. Tasks, folds of a search, coarser problems and copies of parts of
//! Gram matrices are all said in this one way. How many rows "all" are is the set's to say: a task is written down before its set is known.

use std::sync::Arc;

/// Which rows of a set, in which order. A clone is the same list.
#[derive(Debug, Clone, Default)]
pub enum View {
    /// All rows, in the order of the set.
    #[default]
    All,
    /// These rows.
    Rows(Arc<[usize]>),
}

impl View {
    /// These rows, in this order.
    pub fn of(rows: impl Into<Arc<[usize]>>) -> Self {
        Self::Rows(rows.into())
    }

    /// The rows in their order; `None` where these are all of them.
    pub fn rows(&self) -> Option<&[usize]> {
        match self {
            Self::All => None,
            Self::Rows(rows) => Some(rows),
        }
    }

    /// Whether these are all rows in the order of the set, as far as the view itself says.
    pub fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }

    /// N_t: how many rows these are, of a set with `samples`.
    pub fn count(&self, samples: usize) -> usize {
        self.rows().map_or(samples, <[usize]>::len)
    }

    /// v(i): the row of the set that comes at place i, which must be there.
    #[inline]
    pub fn position(&self, i: usize) -> usize {
        self.rows().map_or(i, |rows| rows[i])
    }

    /// v(i), where there is one in a set with `samples` rows.
    pub fn get(&self, i: usize, samples: usize) -> Option<usize> {
        match self {
            Self::All => (i < samples).then_some(i),
            Self::Rows(rows) => rows.get(i).copied().filter(|&row| row < samples),
        }
    }

    /// v(0), v(1), … of a set with `samples` rows.
    pub fn iter(&self, samples: usize) -> impl ExactSizeIterator<Item = usize> {
        (0..self.count(samples)).map(|i| self.position(i))
    }

    /// The view of a view: i ↦ v(w(i)).
    #[must_use]
    pub fn then(&self, inner: &Self) -> Self {
        match (self, inner) {
            (Self::All, other) | (other, Self::All) => other.clone(),
            (outer, Self::Rows(inner)) => {
                inner.iter().map(|&i| outer.position(i)).collect::<Self>()
            }
        }
    }

    /// The places whose rows are marked, one mark for each row of the set; what is beyond the marks is not marked.
    pub fn places_of(&self, marked: &[bool]) -> Vec<usize> {
        let count = self.count(marked.len());
        let is_marked = |&i: &usize| marked.get(self.position(i)) == Some(&true);
        (0..count).filter(is_marked).collect()
    }
}

impl FromIterator<usize> for View {
    fn from_iter<I: IntoIterator<Item = usize>>(rows: I) -> Self {
        Self::Rows(rows.into_iter().collect())
    }
}

/// Views are mostly clones of one: the address decides before the rows do.
impl PartialEq for View {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, Self::All) => true,
            (Self::Rows(a), Self::Rows(b)) => Arc::ptr_eq(a, b) || a == b,
            _ => false,
        }
    }
}

impl Eq for View {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rows_and_some() {
        let (all, some) = (View::All, View::of(vec![4, 1, 2]));
        assert_eq!((all.count(5), some.count(5)), (5, 3));
        assert_eq!((all.position(3), some.position(0)), (3, 4));
        assert_eq!(all.iter(2).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(some.iter(5).collect::<Vec<_>>(), [4, 1, 2]);
        assert_eq!((all.get(4, 5), all.get(5, 5)), (Some(4), None));
        assert_eq!((some.get(0, 5), some.get(3, 5)), (Some(4), None));
        // A row that the set does not have.
        assert_eq!(some.get(0, 3), None);
        assert!(all.is_all() && !some.is_all());
    }

    #[test]
    fn a_view_of_a_view_is_a_view() {
        let (outer, inner) = (View::of(vec![4, 1, 2]), View::of(vec![2, 0]));
        assert_eq!(outer.then(&inner), View::of(vec![2, 4]));
        assert_eq!(outer.then(&View::All), outer);
        assert_eq!(View::All.then(&inner), inner);
        assert_eq!(View::All.then(&View::All), View::All);
    }

    #[test]
    fn marks_choose_places() {
        let marked = [true, false, true, false, true];
        assert_eq!(View::All.places_of(&marked), [0, 2, 4]);
        assert_eq!(View::of(vec![4, 1, 2, 7]).places_of(&marked), [0, 2]);
        assert!(View::All.places_of(&[]).is_empty());
    }

    #[test]
    fn equal_rows_are_equal_views() {
        let view = View::of(vec![0, 1]);
        assert_eq!(view, view.clone());
        assert_eq!(view, View::of(vec![0, 1]));
        assert_ne!(view, View::of(vec![1, 0]));
        assert_ne!(view, View::All);
    }
}
