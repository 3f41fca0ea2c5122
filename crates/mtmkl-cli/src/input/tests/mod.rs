//! Tests of the readers: for each format a valid case, then one fault each, with the whole message.

mod csv;
mod libsvm;
mod npy;
mod parquet;
mod parts;
mod source;

use mtmkl_table::{Table, Values};

/// The message of what must fail.
fn message<T>(result: Result<T, impl std::fmt::Display>) -> String {
    match result {
        Ok(_) => panic!("this should have been refused"),
        Err(error) => error.to_string(),
    }
}

/// The numbers of a column, missing or not.
fn numbers(table: &Table, name: &str) -> Vec<f64> {
    let numbers = table.column(name).unwrap().values.numbers();
    numbers.unwrap().into_owned()
}

/// The texts of a column, missing or not.
fn texts(table: &Table, name: &str) -> Vec<String> {
    match &table.column(name).unwrap().values {
        Values::Text(texts) => texts.clone(),
        _ => panic!("`{name}` is numeric"),
    }
}

/// The names of all columns.
fn names(table: &Table) -> Vec<&str> {
    table
        .columns()
        .iter()
        .map(|column| column.name.as_str())
        .collect()
}
