//! What the targets do with what was read: look at all of it, as the program would.

use mtmkl_table::{Gram, Table};

/// Every column by every way to ask for it, and the promises a table makes.
pub fn use_table(table: &Table) {
    for column in table.columns() {
        assert_eq!(column.values.len(), table.rows);
        assert!(column.missing.iter().all(|&row| row < table.rows));
        let _ = table.column(&column.name);
        if let Ok(numbers) = table.numeric(&column.name) {
            assert!(numbers.iter().all(|number| number.is_finite()));
        }
        let _ = table.numeric_or_missing(&column.name);
        let _ = table.names(&column.name);
    }
    let _ = table.column("nothing of that name");
    if let Some(last) = table.rows.checked_sub(1) {
        let _ = table.place(last);
    }
}

/// The promises a kernel matrix makes.
pub fn use_gram(gram: &Gram) {
    assert_eq!(gram.values.len(), gram.rows * gram.columns);
    assert!(gram.values.iter().all(|value| value.is_finite()));
    if let Some(names) = &gram.row_names {
        assert_eq!(names.len(), gram.rows);
    }
}
