//! Tests of the readers: for each format a valid case, then one fault each, with the whole message.

mod csv;
mod libsvm;
mod npy;
mod parquet;
mod source;

use super::{InputError, Table, Values};

/// The message of what must fail.
fn message<T>(result: Result<T, InputError>) -> String {
    match result {
        Ok(_) => panic!("this should have been refused"),
        Err(error) => error.to_string(),
    }
}

/// The numbers of a column, missing or not.
fn numbers<'a>(table: &'a Table, name: &str) -> &'a [f64] {
    match &table.column(name).unwrap().values {
        Values::Numbers(numbers) => numbers,
        Values::Text(_) => panic!("`{name}` is text"),
    }
}

/// The texts of a column, missing or not.
fn texts(table: &Table, name: &str) -> Vec<String> {
    match &table.column(name).unwrap().values {
        Values::Text(texts) => texts.clone(),
        Values::Numbers(_) => panic!("`{name}` is numeric"),
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
