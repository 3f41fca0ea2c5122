use super::super::TableOptions;
use super::super::parquet::{from_bytes, is_guarded};
use super::{message, names, numbers, texts};
use mtmkl_table::{Place, Table};

// Written by pyarrow 26 from one table, with another compression, page version and encoding each.
const SNAPPY: &[u8] = include_bytes!("fixtures/snappy.parquet");
const GZIP: &[u8] = include_bytes!("fixtures/gzip.parquet");
const ZSTD: &[u8] = include_bytes!("fixtures/zstd.parquet");
const NONE: &[u8] = include_bytes!("fixtures/none.parquet");

fn read(bytes: &[u8]) -> Table {
    from_bytes("data.parquet", bytes, &TableOptions::default()).unwrap()
}

#[test]
fn numbers_text_and_nulls() {
    for bytes in [SNAPPY, GZIP, ZSTD, NONE] {
        let table = read(bytes);
        assert_eq!(table.rows, 4);
        assert_eq!(
            names(&table),
            [
                "width", "count", "small", "big", "half", "price", "flag", "species", "colour",
                "digits", "point.x"
            ]
        );
        // Null and NaN are both missing.
        assert_eq!(numbers(&table, "width"), [1.5, 0.0, 0.0, -2.0]);
        assert_eq!(table.column("width").unwrap().missing, [1, 2]);
        assert_eq!(numbers(&table, "count")[..3], [1.0, 2.0, 3.0]);
        assert_eq!(numbers(&table, "small"), [1.0, 0.0, 3.0, 4.0]);
        assert_eq!(numbers(&table, "big")[3], 18_446_744_073_709_551_615.0);
        assert_eq!(
            numbers(&table, "half"),
            [0.5, -2.0, 65504.0, 2_f64.powi(-24)]
        );
        assert_eq!(numbers(&table, "price"), [1.25, -3.5, 0.0, 0.01]);
        assert_eq!(table.column("price").unwrap().missing, [2]);
        assert_eq!(numbers(&table, "flag"), [1.0, 0.0, 0.0, 1.0]);
        assert_eq!(
            texts(&table, "species"),
            ["setosa", "virginica", "", "setosa"]
        );
        assert_eq!(table.column("species").unwrap().missing, [2]);
        assert_eq!(texts(&table, "colour"), ["red", "green", "red", ""]);
        assert_eq!(numbers(&table, "point.x"), [1.0, 2.0, 0.0, 0.0]);
        assert_eq!(table.column("point.x").unwrap().missing, [2, 3]);
        assert_eq!(table.place(3), Place::Row(4));
    }
}

#[test]
fn text_on_request_is_exact() {
    let options = TableOptions {
        text: ["count", "big", "flag", "width"]
            .map(str::to_owned)
            .to_vec(),
        ..TableOptions::default()
    };
    let table = from_bytes("data.parquet", SNAPPY, &options).unwrap();
    assert_eq!(
        table.names("count").unwrap(),
        ["1", "2", "3", "9007199254740993"]
    );
    assert_eq!(table.names("big").unwrap()[3], "18446744073709551615");
    assert_eq!(texts(&table, "flag"), ["True", "False", "", "True"]);
    // Only whole numbers have a spelling to keep.
    assert_eq!(numbers(&table, "width"), [1.5, 0.0, 0.0, -2.0]);
}

#[test]
fn columns_that_cannot_be_used_say_why() {
    let table = read(SNAPPY);
    for (name, reason) in [
        (
            "when",
            "it holds dates or times; turn them into numbers or text to use them",
        ),
        (
            "stamp",
            "it holds dates or times; turn them into numbers or text to use them",
        ),
        (
            "list.list.element",
            "it holds lists; give each element a column of its own to use them",
        ),
        (
            "raw",
            "it holds binary data; turn it into numbers or text to use it",
        ),
    ] {
        assert_eq!(
            message(table.column(name)),
            format!("data.parquet, column `{name}` was not read: {reason}")
        );
    }
    let table = read(include_bytes!("fixtures/pandas_index.parquet"));
    assert_eq!(names(&table), ["a"]);
    assert_eq!(
        table.skipped[0].reason,
        "it is a row index of pandas; name the index to use it"
    );
}

#[test]
fn faults_of_a_column() {
    let table = read(SNAPPY);
    assert_eq!(
        message(table.numeric("species")),
        "data.parquet, row 1, column `species`: `setosa` is not a number; correct it, leave it empty if the value is missing, or declare the column categorical with `--one-hot species`"
    );
    assert_eq!(
        message(table.numeric("digits")),
        "data.parquet, column `digits` was read as text, so it cannot serve as numbers; use it either as names or as numbers"
    );
    assert_eq!(
        message(table.numeric("width")),
        "data.parquet, column `width`: 2 missing values (the first in row 2); `--missing drop` leaves these rows out, `--missing mean` fills in the mean"
    );
}

#[test]
fn faults_of_a_file() {
    let fails = |bytes: &[u8], limit: u64| {
        message(from_bytes(
            "data.parquet",
            bytes,
            &TableOptions {
                limit,
                ..TableOptions::default()
            },
        ))
    };
    let limit = TableOptions::default().limit;
    assert_eq!(
        fails(include_bytes!("fixtures/infinite.parquet"), limit),
        "data.parquet, row 2, column `x`: `inf` is not a finite number; correct it or leave the cell empty (a missing value)"
    );
    assert_eq!(
        fails(include_bytes!("fixtures/no_rows.parquet"), limit),
        "data.parquet has column names but no rows"
    );
    assert_eq!(
        fails(include_bytes!("fixtures/lz4.parquet"), limit),
        "data.parquet is packed with lz4_raw; write it with snappy, gzip, zstd or no compression"
    );
    assert_eq!(
        fails(SNAPPY, 100),
        "data.parquet: 4 rows of 15 columns take 480 bytes, over the limit of 100 bytes; raise it with `--memory-limit`"
    );
    assert_eq!(
        fails(b"PAR1", limit),
        "data.parquet is not a readable Parquet file: it is too short"
    );
    assert_eq!(
        fails(&SNAPPY[..SNAPPY.len() - 1], limit),
        "data.parquet is not a readable Parquet file: its last bytes are not those of a Parquet file; was it copied in full?"
    );
}

#[test]
fn no_damage_makes_it_panic_or_take_much_memory() {
    // The library does panic on some of these; the guard makes it an error.
    let options = TableOptions {
        limit: 1 << 20,
        ..TableOptions::default()
    };
    for original in [GZIP, NONE] {
        for position in 0..original.len() {
            for byte in [0x00, 0x7f, 0xff, original[position] ^ 1] {
                let mut bytes = original.to_vec();
                bytes[position] = byte;
                let _ = from_bytes("data.parquet", &bytes, &options);
            }
            let _ = from_bytes("data.parquet", &original[..position], &options);
            assert!(!is_guarded());
        }
    }
}

#[test]
fn no_count_keeps_it_busy_for_hours() {
    let fails = |bytes: &[u8]| message(from_bytes("data.parquet", bytes, &TableOptions::default()));
    // Found by fuzzing: a page header that two readers can understand differently, and then look elsewhere for the next.
    assert_eq!(
        fails(include_bytes!("fixtures/endless.parquet")),
        "data.parquet is not a readable Parquet file: a page header cannot be read"
    );
    // A footer with an unknown field: a thousand lists of two billion booleans, for which the library reads no bytes.
    let (content, end) = NONE.split_at(NONE.len() - 8);
    let length = u32::from_le_bytes(*end.first_chunk().unwrap()) as usize;
    let mut bytes = content[..content.len() - 1].to_vec();
    bytes.extend([0x09, 0xc8, 0x01, 0xf9, 0xe8, 0x07]);
    bytes.extend([0xf1, 0xff, 0xff, 0xff, 0xff, 0x07].repeat(1000));
    bytes.push(0);
    let length = u32::try_from(length + bytes.len() - content.len()).unwrap();
    bytes.extend(length.to_le_bytes());
    bytes.extend(b"PAR1");
    assert_eq!(
        fails(&bytes),
        "data.parquet is not a readable Parquet file: its footer cannot be read"
    );
}
