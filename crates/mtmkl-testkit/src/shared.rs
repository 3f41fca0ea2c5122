//! The shared real data sets: gzip CSV, features `f1..fd`, then `label`, then `task` and others where there are any.

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

/// The first `shared/data` beside this crate or one of the folders above it; `None` where the data are not there.
pub fn folder() -> Option<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|above| above.join("shared/data"))
        .find(|path| path.is_dir())
}

/// A CSV file: one header row, then rows of as many cells.
#[derive(Clone, Debug)]
pub struct Table {
    /// Column names.
    pub header: Vec<String>,
    /// Cells by rows.
    pub rows: Vec<Vec<String>>,
}

/// Reads e.g. `usps.csv.gz`. `None` only where [`folder`] is: with the folder there, a file that cannot be read is a
/// mistake in the test, and skipping it quietly would hide that, so it panics.
pub fn read(name: &str) -> Option<Table> {
    let path = folder()?.join(name);
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    GzDecoder::new(bytes.as_slice())
        .read_to_string(&mut text)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Some(parse(&text))
}

/// Plain commas, no quoting: no cell of these files holds a comma.
fn parse(text: &str) -> Table {
    let cells = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    let mut lines = text.lines();
    let header = lines.next().map(cells).expect("a header row");
    let rows: Vec<Vec<String>> = lines.map(cells).collect();
    assert!(
        rows.iter().all(|row| row.len() == header.len()),
        "as many cells as columns in every row"
    );
    Table { header, rows }
}

impl Table {
    /// (values by rows, n, d) of the feature columns `f1..fd`.
    pub fn numeric(&self) -> (Vec<f64>, usize, usize) {
        let feature = |name: &String| {
            name.strip_prefix('f').is_some_and(|rest| {
                !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
            })
        };
        let columns: Vec<usize> = (0..self.header.len())
            .filter(|&column| feature(&self.header[column]))
            .collect();
        let number = |cell: &String| {
            cell.parse()
                .unwrap_or_else(|error| panic!("feature {cell:?}: {error}"))
        };
        let values = self
            .rows
            .iter()
            .flat_map(|row| columns.iter().map(|&column| number(&row[column])))
            .collect();
        (values, self.rows.len(), columns.len())
    }

    /// The cells of one column; `None` where there is no such column.
    pub fn column(&self, name: &str) -> Option<Vec<&str>> {
        let at = self.header.iter().position(|title| title == name)?;
        Some(self.rows.iter().map(|row| row[at].as_str()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses() {
        let table = parse("f1,f2,label,fold\n1,-2.5,a,0\n3e-1,4,b,1\n");
        assert_eq!(table.numeric(), (vec![1.0, -2.5, 0.3, 4.0], 2, 2));
        assert_eq!(table.column("label"), Some(vec!["a", "b"]));
        assert_eq!(table.column("task"), None);
    }

    #[test]
    fn reads_where_the_data_are() {
        let Some(table) = read("vehicle.csv.gz") else {
            return;
        };
        let (values, n, d) = table.numeric();
        assert_eq!((n, d, values.len()), (846, 18, 846 * 18));
        let labels = table.column("label").unwrap();
        assert_eq!(labels.iter().filter(|&&label| label == "bus").count(), 218);
    }
}
