//! Columns of names as numbers: for each value a column that is 1 where it stands and 0 elsewhere.

use std::collections::BTreeMap;

use crate::Result;
use crate::frame::{Feature, Frame};
use crate::gaps::Missing;
use crate::names::{Names, by_number_then_text};
use crate::table::Table;

/// Most different values of a column of text that are taken for categories unasked. With more, many of the 0/1 columns would have few rows each, and the
/// column is rather one of names.
const CATEGORIES: usize = 20;

/// Whether a column of so many cells of text, of which so many are different, tells categories: few, and each of two rows and more on average.
pub(crate) fn are_categories(cells: usize, different: usize) -> bool {
    different <= CATEGORIES && 2 * different <= cells
}

/// The features `NAME=VALUE` of a column, one for each of its values, in their order.
pub(crate) fn features(table: &Table, name: &str, missing: Missing) -> Result<Vec<Feature>> {
    if missing == Missing::Error {
        let remedy = "`--missing drop` leaves these rows out, `--missing mean` fills in the shares of the values";
        table.complete(name, remedy)?;
    }
    let mut categories = table.column(name)?.present();
    categories.sort_by(|a, b| by_number_then_text(a, b));
    categories.dedup();
    let feature = |category: String| Feature {
        name: format!("{name}={category}"),
        column: name.to_string(),
        category: Some(category),
        ..Feature::plain(name)
    };
    Ok(categories.into_iter().map(feature).collect())
}

/// The names in the one-hot columns of a table, by column.
pub(crate) struct Indicators {
    names: BTreeMap<String, Names>,
}

impl Indicators {
    /// Those that a frame asks for.
    pub(crate) fn of(frame: &Frame, table: &Table) -> Result<Self> {
        let mut names = BTreeMap::new();
        for (column, known) in frame.categories() {
            names.insert(column.to_string(), Names::of(table, column, &known)?);
        }
        Ok(Self { names })
    }

    /// The names in the column of a one-hot feature, and the place of its own among them.
    pub(crate) fn indicator(&self, feature: &Feature) -> Option<(&Names, u32)> {
        let category = feature.category.as_ref()?;
        let names = self.names.get(&feature.column)?;
        let place = names.distinct().iter().position(|name| name == category);
        // A value that the table does not have is nowhere.
        let place = place.and_then(|place| u32::try_from(place).ok());
        Some((names, place.unwrap_or(u32::MAX - 1)))
    }
}

impl Frame {
    /// The known values of each one-hot column.
    pub fn categories(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut known: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for feature in &self.features {
            if let Some(category) = &feature.category {
                known.entry(&feature.column).or_default().push(category);
            }
        }
        known
    }

    /// Values of one-hot columns that were never learned from, which leaves all indicators at 0: the column, how many rows, and
    /// one of the values.
    ///
    /// # Errors
    /// When a column is not there.
    pub fn strange_values(&self, table: &Table) -> Result<Vec<(String, usize, String)>> {
        let mut found = Vec::new();
        for (column, known) in self.categories() {
            let names = Names::of(table, column, &known)?;
            let is_strange = |name: &&str| !name.is_empty() && !known.contains(name);
            let mut strange = names.iter().filter(is_strange);
            if let Some(first) = strange.next() {
                found.push((column.to_string(), 1 + strange.count(), first.to_string()));
            }
        }
        Ok(found)
    }
}
