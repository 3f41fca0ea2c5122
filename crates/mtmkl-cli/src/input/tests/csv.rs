use proptest::prelude::*;

use super::super::csv::{from_bytes, gram_from_bytes};
use super::super::{Delimiter, GramOptions, InputError, TableOptions};
use super::{message, names, numbers, texts};
use mtmkl_table::{Place, Table};

fn read(text: &str) -> Result<Table, InputError> {
    from_bytes("data.csv", text.as_bytes(), &TableOptions::default())
}

fn read_with(text: &str, change: impl FnOnce(&mut TableOptions)) -> Result<Table, InputError> {
    let mut options = TableOptions::default();
    change(&mut options);
    from_bytes("data.csv", text.as_bytes(), &options)
}

#[test]
fn numbers_text_and_missing_cells() {
    let table = read("width, species ,height\n1.5,setosa,NA\n-2e3, virginica ,4\n,?,.5\n").unwrap();
    assert_eq!(table.rows, 3);
    assert_eq!(names(&table), ["width", "species", "height"]);
    assert_eq!(numbers(&table, "width"), [1.5, -2000.0, 0.0]);
    assert_eq!(table.column("width").unwrap().missing, [2]);
    assert_eq!(texts(&table, "species"), ["setosa", "virginica", ""]);
    assert_eq!(table.column("species").unwrap().missing, [2]);
    assert_eq!(numbers(&table, "height"), [0.0, 4.0, 0.5]);
    assert_eq!(table.column("height").unwrap().missing, [0]);
    assert_eq!(table.place(2), Place::Line(4));
}

#[test]
fn every_spelling_of_missing() {
    let table =
        read("a,b\n1,\n1,NA\n1,NaN\n1,nan\n1,null\n1,?\n1,-NAN\n1,N/A\n1,\"\"\n1,7\n").unwrap();
    assert_eq!(
        table.column("b").unwrap().missing,
        (0..9).collect::<Vec<_>>()
    );
    assert_eq!(numbers(&table, "b")[9], 7.0);
}

#[test]
fn a_column_without_any_value_is_numeric() {
    let table = read("a,b\n1,\n2,NA\n").unwrap();
    assert_eq!(table.column("b").unwrap().missing, [0, 1]);
    assert_eq!(numbers(&table, "b"), [0.0, 0.0]);
}

#[test]
fn delimiters_are_detected_from_the_first_line() {
    for (delimiter, option) in [(',', "comma"), (';', ";"), ('\t', "tab"), ('|', "|")] {
        let text = format!("a{delimiter}b\n1{delimiter}2\n");
        assert_eq!(numbers(&read(&text).unwrap(), "b"), [2.0], "{delimiter:?}");
        let given = read_with(&text, |options| {
            options.delimiter = Some(option.parse().unwrap());
        });
        assert_eq!(numbers(&given.unwrap(), "b"), [2.0], "{delimiter:?}");
    }
    // The comma inside the quotes does not count.
    assert_eq!(names(&read("\"a,b,c\";d\n1;2\n").unwrap()), ["a,b,c", "d"]);
    let spaces = read_with("a  b\tc\n 1 2   3 \n\"4\" \"5\"\t6\n", |options| {
        options.delimiter = Some(Delimiter::SPACES);
    });
    let spaces = spaces.unwrap();
    assert_eq!(names(&spaces), ["a", "b", "c"]);
    assert_eq!(numbers(&spaces, "c"), [3.0, 6.0]);
    for wrong in ["", "a", "1", "\"", "\n", ".", "-", "ab", "é"] {
        assert!(wrong.parse::<Delimiter>().is_err(), "{wrong:?}");
    }
}

#[test]
fn quotes_follow_rfc_4180() {
    let table =
        read("a,\"b \"\"x\"\"\",c\r\n1,\"two\r\nlines, one cell\",3\r\n\"4\", \"q\" ,\"6\"\r\n")
            .unwrap();
    assert_eq!(names(&table), ["a", "b \"x\"", "c"]);
    assert_eq!(numbers(&table, "a"), [1.0, 4.0]);
    assert_eq!(texts(&table, "b \"x\""), ["two\r\nlines, one cell", "q"]);
    assert_eq!(numbers(&table, "c"), [3.0, 6.0]);
    assert_eq!(table.place(1), Place::Line(4));
    // A quote inside an unquoted cell is a character like any other.
    assert_eq!(
        texts(&read("a,b\n5\" pipe,1\n").unwrap(), "a"),
        ["5\" pipe"]
    );
    // Space inside quotes is kept.
    assert_eq!(texts(&read("a,b\n\" x \",1\n").unwrap(), "a"), [" x "]);
}

#[test]
fn line_ends_byte_order_mark_and_blank_lines() {
    for text in [
        "\u{feff}a,b\n1,2\n3,4",
        "a,b\r\n1,2\r\n3,4\r\n",
        "a,b\r1,2\r3,4\r",
        "\n\na,b\n\n1,2\n \n3,4\n\n",
        "a,b\r\n\"1\",\"2\"\r\n\"3\",\"4\"\r",
    ] {
        let table = read(text).unwrap();
        assert_eq!(names(&table), ["a", "b"], "{text:?}");
        assert_eq!(numbers(&table, "b"), [2.0, 4.0], "{text:?}");
    }
    let table = read("a,b\n\n1,2\n\n\n3,x\n").unwrap();
    assert_eq!(
        (table.place(0), table.place(1)),
        (Place::Line(3), Place::Line(6))
    );
    // Tabs alone are empty cells, not a blank line.
    assert_eq!(
        read("a\tb\n\t\n").unwrap().column("a").unwrap().missing,
        [0]
    );
}

#[test]
fn without_header_columns_are_numbered() {
    let table = read_with("1,2\n3,x\n", |options| options.header = false).unwrap();
    assert_eq!(names(&table), ["f1", "f2"]);
    assert_eq!(numbers(&table, "f1"), [1.0, 3.0]);
    assert_eq!(table.place(1), Place::Line(2));
}

#[test]
fn columns_asked_for_as_text_keep_their_spelling() {
    let table = read_with("task,y\n007,1\n7,2\n12345678901234567890,3\n", |options| {
        options.text = vec!["task".to_owned()];
    });
    let table = table.unwrap();
    assert_eq!(
        table.names("task").unwrap(),
        ["007", "7", "12345678901234567890"]
    );
    assert_eq!(
        message(table.numeric("task")),
        "data.csv, column `task` was read as text, so it cannot serve as numbers; use it either as names or as numbers"
    );
}

#[test]
fn names_of_numbers_are_short() {
    let table = read("y\n1.0\n-0\n2.50\n").unwrap();
    assert_eq!(table.names("y").unwrap(), ["1", "0", "2.5"]);
}

#[test]
fn an_unnamed_column_is_left_out_and_said_to_be() {
    let table = read(",a\n0,1.5\n1,2.5\n").unwrap();
    assert_eq!(names(&table), ["a"]);
    assert_eq!(table.skipped[0].name, "column 1");
    assert_eq!(
        table.skipped[0].reason,
        "it has no name in the header; is it a row index? name it to use it"
    );
}

#[test]
fn a_header_of_consecutive_integers_is_a_header() {
    assert_eq!(names(&read("0,1,2\n5,6,7\n").unwrap()), ["0", "1", "2"]);
    assert_eq!(names(&read(",0,1\n5,6,7\n").unwrap()), ["0", "1"]);
}

#[test]
fn faults_of_the_whole_file() {
    assert!(read("a,b\n1,2\n").is_ok());
    assert_eq!(message(read("")), "data.csv is empty");
    assert_eq!(message(read("\u{feff} \n\n")), "data.csv is empty");
    assert_eq!(
        message(read("a,b\n")),
        "data.csv has column names but no rows"
    );
    assert_eq!(
        message(read("a\0,b\n1,2\n")),
        "data.csv is not text: its first line holds zero bytes; give the format with `--format`, or save the file as UTF-8 text"
    );
}

#[test]
fn faults_of_the_header() {
    assert_eq!(
        message(read("5.1,3.5\n4.9,3.0\n")),
        "data.csv, line 1: `5.1` and the other cells are numbers, not column names; if the file has no header, say `--no-header`"
    );
    assert_eq!(
        message(read("a,b,a\n1,2,3\n")),
        "data.csv: columns 1 and 3 are both named `a`; rename one"
    );
    assert_eq!(
        message(from_bytes(
            "data.csv",
            b"a,h\xf6he\n1,2\n",
            &TableOptions::default()
        )),
        "data.csv, line 1: the name of column 2 `h\u{fffd}he` is not UTF-8 text; save the file as UTF-8, e.g. `iconv -f latin1 -t utf-8`"
    );
    let wide = ",".repeat(1_000_000);
    assert_eq!(
        message(read(&wide)),
        "data.csv has 1000001 columns, more than the 1000000 that are read; is the delimiter right?"
    );
}

#[test]
fn faults_of_the_delimiter() {
    let tab = |options: &mut TableOptions| options.delimiter = Some(Delimiter::TAB);
    assert_eq!(
        message(read_with("a;b;c\n1;2;3\n", tab)),
        "data.csv: only one column when split at tabs, but line 2 looks split at `;`; try `--delimiter ';'`"
    );
    assert_eq!(
        message(read_with("a,b\n1,2\n", tab)),
        "data.csv: only one column when split at tabs, but line 2 looks split at `,`; try `--delimiter ','`"
    );
    assert_eq!(
        message(read("a b c\n1 2 3\n")),
        "data.csv: only one column when split at `,`, but line 2 looks split at spaces; try `--delimiter space`"
    );
    // One column of text is one column of text.
    assert!(read("name\nAda Lovelace\n").is_ok());
}

#[test]
fn faults_of_a_row() {
    assert_eq!(
        message(read("a,b,c\n1,2,3\n4,5\n")),
        "data.csv, line 3: 3 cells expected, 2 found"
    );
    assert_eq!(
        message(read("a,b\n1,2\n1,2,3\n")),
        "data.csv, line 3: 2 cells expected, 3 found; quote cells that contain the delimiter"
    );
    assert_eq!(
        message(read("a,b\nr1,1,2\nr2,3,4\n")),
        "data.csv, line 2: 2 cells expected, 3 found; do the rows begin with a name that the header lacks (as R writes it)? name that column too"
    );
    assert_eq!(
        message(read("a,b\n1,2\n\"3,4\n5\",6,7\n")),
        "data.csv, line 3: 2 cells expected, 3 found; the row spans several lines: is a quote left open?"
    );
    assert_eq!(
        message(read("a,b\n1,2\n3,\"4\n5,6\n")),
        "data.csv, line 3: the quote opened in cell 2 is never closed; close it, or write a quote inside a quoted cell twice"
    );
    assert_eq!(
        message(read("a,b\n1,\"x\"y\n")),
        "data.csv, line 2: cell 2 goes on after its closing quote; write a quote inside a quoted cell twice"
    );
}

#[test]
fn faults_of_a_cell() {
    for (cell, value) in [
        ("inf", "inf"),
        ("-Infinity", "-Infinity"),
        ("1e999", "1e999"),
    ] {
        assert_eq!(
            message(read(&format!("a,b\n1,2\n3,{cell}\n"))),
            format!(
                "data.csv, line 3, column `b`: `{value}` is not a finite number; correct it or leave the cell empty (a missing value)"
            )
        );
    }
    // In a column of text the word is harmless.
    assert_eq!(
        texts(&read("a,b\n1,inf\n2,x\n").unwrap(), "b"),
        ["inf", "x"]
    );
    assert_eq!(
        message(from_bytes(
            "data.csv",
            b"a,b\n1,x\n2,\xe9t\xe9\n",
            &TableOptions::default()
        )),
        "data.csv, line 3: column `b`: `\u{fffd}t\u{fffd}` is not UTF-8 text; save the file as UTF-8, e.g. `iconv -f latin1 -t utf-8`"
    );
}

#[test]
fn faults_of_a_column() {
    let table = read("width,price,note\n1,\"1,5\",x\nabc,\"2,5\",\n3,3,\n").unwrap();
    assert_eq!(
        message(table.numeric("width")),
        "data.csv, line 3, column `width`: `abc` is not a number; correct it, leave it empty if the value is missing, or declare the column categorical with `--one-hot width`"
    );
    assert_eq!(
        message(table.numeric("price")),
        "data.csv, line 2, column `price`: `1,5` is not a number; write decimals with a point"
    );
    assert_eq!(
        message(table.names("note")),
        "data.csv, column `note`: 2 missing values (the first in line 3); `--missing drop` leaves these rows out"
    );
    assert_eq!(
        message(table.numeric("widht")),
        "data.csv has no column `widht`; did you mean `width`?"
    );
    assert_eq!(
        message(table.numeric("target")),
        "data.csv has no column `target`; it has `width`, `price`, `note`"
    );
    let table = read("a,b\n1,\n2,3\n").unwrap();
    assert_eq!(
        message(table.numeric("b")),
        "data.csv, column `b`: 1 missing value (the first in line 2); `--missing drop` leaves these rows out, `--missing mean` fills in the mean"
    );
    let table = read("5.1,3.5,setosa\n4.9,3.0,setosa\n").unwrap();
    assert_eq!(
        message(table.numeric("species")),
        "data.csv has no column `species`; its names are `5.1`, `3.5`, `setosa`: if the first line is data, say `--no-header`"
    );
    let table = read(&format!(
        "{}\n{}\n",
        (0..20)
            .map(|i| format!("x{i}"))
            .collect::<Vec<_>>()
            .join(","),
        "1,".repeat(19) + "1"
    ))
    .unwrap();
    assert!(message(table.column("species")).ends_with("`x10`, `x11`, … (20 in all)"));
}

#[test]
fn long_and_odd_cells_are_shown_short_and_printable() {
    let table = read(&format!("a,b\n1,\"\u{1b}[31m{}\"\n", "x".repeat(100))).unwrap();
    assert!(message(table.numeric("b")).starts_with(&format!(
        "data.csv, line 2, column `b`: `\\u{{1b}}[31m{}…`",
        "x".repeat(35)
    )));
}

#[test]
fn kernel_matrices_with_and_without_names() {
    let read =
        |text: &str| gram_from_bytes("k.csv", text.as_bytes(), None, &GramOptions::default());
    let plain = read("1,0.5\n0.5,2\n").unwrap();
    assert_eq!((plain.rows, plain.columns, plain.row_names), (2, 2, None));
    assert_eq!(*plain.values, [1.0, 0.5, 0.5, 2.0]);
    for text in [",a,b\na,1,2\nb,3,4\n", "id,a,b\na,1,2\nb,3,4\n"] {
        let named = read(text).unwrap();
        assert_eq!(*named.values, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(named.row_names.unwrap(), ["a", "b"]);
    }
    let pandas = read(",0,1\n0,1,2\n1,3,4\n").unwrap();
    assert_eq!(pandas.row_names.unwrap(), ["0", "1"]);
    assert_eq!(*pandas.values, [1.0, 2.0, 3.0, 4.0]);
    let header = read("a,b\n1,2\n3,4\n").unwrap();
    assert_eq!((header.rows, header.row_names), (2, None));
    assert_eq!(
        message(read("1,2\n3,\n")),
        "k.csv, column `f2`: 1 missing value (the first in line 2); a kernel matrix must be complete"
    );
    assert_eq!(
        message(read("1,2\n3,x\n")),
        "k.csv, line 2, column `f2`: `x` is not a number; a kernel matrix holds numbers, with names only in the first line and column"
    );
    let small = GramOptions {
        limit: 16,
        ..GramOptions::default()
    };
    assert_eq!(
        message(gram_from_bytes("k.csv", b"1,2\n3,4\n", None, &small)),
        "k.csv: the kernel matrix takes 32 bytes, over the limit of 16 bytes; raise it with `--memory-limit`"
    );
}

/// Writes `cell` as a careful writer would.
fn quoted(cell: &str, delimiter: char) -> String {
    if cell.trim() != cell || cell.contains([delimiter, '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

proptest! {
    #[test]
    fn any_table_survives_writing_and_reading(
        rows in prop::collection::vec((any::<f64>().prop_filter("finite", |x| x.is_finite()), "[a-z,;\"\r\n é|\t]{1,12}x"), 1..20),
        delimiter in prop::sample::select(vec![',', ';', '\t', '|']),
        line_end in prop::sample::select(vec!["\n", "\r\n"]),
    ) {
        let mut text = format!("number{delimiter}text{line_end}");
        for (number, cell) in &rows {
            let cell = quoted(cell, delimiter);
            text = format!("{text}{number:?}{delimiter}{cell}{line_end}");
        }
        let table = read(&text).unwrap();
        let expected: Vec<f64> = rows.iter().map(|row| row.0).collect();
        prop_assert_eq!(numbers(&table, "number"), expected.as_slice());
        let expected: Vec<String> = rows.iter().map(|row| row.1.clone()).collect();
        prop_assert_eq!(texts(&table, "text"), expected);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(prop::sample::select(b"a1.,;|\t \"\n\r\xff".to_vec()), 0..60), header: bool) {
        let options = TableOptions { header, ..TableOptions::default() };
        if let Ok(table) = from_bytes("data.csv", &bytes, &options) {
            for column in table.columns() {
                let _ = table.numeric(&column.name);
            }
        }
        let _ = gram_from_bytes("data.csv", &bytes, Some(Delimiter::SPACES), &GramOptions::default());
    }
}
