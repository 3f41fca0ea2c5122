//! Tests of the readers: for each format a valid case, then one fault each, with the whole message.

mod csv;
mod idx;
mod libsvm;
mod mat;
mod npy;
mod parquet;
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

/// Random bytes, and a valid file with a few bytes changed or cut off: whatever comes, it is read or refused, and never a panic.
fn any_bytes(read: impl Fn(&[u8]), valid: &[u8]) {
    let mut random = mtmkl::random::Random::new(11);
    for _ in 0..20_000 {
        let mut bytes = valid.to_vec();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len());
            bytes[at] = match random.below(3) {
                0 => 0xff,
                1 => 0,
                _ => u8::try_from(random.below(256)).unwrap(),
            };
        }
        bytes.truncate(valid.len() - random.below(3) * random.below(valid.len()) / 2);
        read(&bytes);
    }
}
