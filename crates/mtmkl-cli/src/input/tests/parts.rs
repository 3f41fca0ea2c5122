//! A text in parts is the text: the same cells, gaps and lines, or the same error, wherever the parts and the blocks of bytes end.

use std::io::Cursor;

use mtmkl_table::{Table, Values};

use crate::input::csv::{self, Parts};
use crate::input::source::Stream;
use crate::input::{InputError, TableOptions};

/// Each row with its place and its cells.
fn rows(table: &Table) -> Vec<String> {
    let cell = |column: &mtmkl_table::Column, row: usize| {
        let value = match &column.values {
            Values::Text(texts) => format!("{:?}", texts[row]),
            numbers => numbers.numbers().unwrap()[row].to_string(),
        };
        let gap = if column.is_missing(row) { "gap " } else { "" };
        format!("{} {gap}{value}", column.name)
    };
    let row = |row: usize| {
        let cells: Vec<String> = (table.columns().iter())
            .map(|column| cell(column, row))
            .collect();
        format!("{} {}", table.place(row), cells.join(" | "))
    };
    (0..table.rows).map(row).collect()
}

fn in_parts(
    text: &[u8],
    options: &TableOptions,
    size: (usize, usize),
) -> (Vec<String>, Option<InputError>) {
    let stream = Stream::of("t.csv", Box::new(Cursor::new(text.to_vec()))).unwrap();
    let mut parts = Parts::with_size(stream, options.clone(), size.0, size.1);
    let mut found = Vec::new();
    loop {
        match parts.next() {
            Ok(Some(part)) => {
                assert!(part.rows <= size.0);
                found.extend(rows(&part));
            }
            Ok(None) => return (found, None),
            Err(error) => return (found, Some(error)),
        }
    }
}

fn same_in_all_sizes(text: &[u8], options: &TableOptions) {
    let whole = csv::from_bytes("t.csv", text, options);
    for part in [1, 2, 3, 7, 1000] {
        for block in [1, 2, 3, 5, 8, 21, 4096] {
            let (found, error) = in_parts(text, options, (part, block));
            let shown = String::from_utf8_lossy(text);
            match (&whole, error) {
                (Ok(table), None) => assert_eq!(found, rows(table), "{part} {block}: {shown}"),
                (Err(whole), Some(error)) => {
                    assert_eq!(
                        error.to_string(),
                        whole.to_string(),
                        "{part} {block}: {shown}"
                    );
                }
                (whole, error) => panic!("{part} {block}: {whole:?}, {error:?}: {shown}"),
            }
        }
    }
}

fn names(text: &[&str]) -> TableOptions {
    TableOptions {
        text: text.iter().map(ToString::to_string).collect(),
        ..TableOptions::default()
    }
}

#[test]
fn parts_are_the_whole() {
    let texts: [&[u8]; 14] = [
        b"t,x\n007,1\n7,2\nabc,3\n,4\n1.0,5\n",
        b"t,x\r\n1,1\r\n\"a\r\nb\",2\r\n2,\r\n,3\r\n",
        b"t,x\n\"two\n\nlines, and a \"\" quote\",1\n\"\n\",2\n\"a\"\"\",3\n",
        b"t,x\na,1\n\n\n  \nb,2\n\n",
        b"t,x\na,1",
        b"t,x\r1,1\r2,2\r\"a\rb\",3\r",
        b"\xef\xbb\xbft;x\n1;2\n3;NA\n",
        b"\n\n  \nt,x\n1,2\n5\" pipe,3\n",
        b"t\tx\n a \t 1 \n\t2\n",
        b",t,x\n0,a,1\n1,b,2\n",
        b"t,x\na,1\nb,2,3\nc,4\n",
        b"t,x\na,1\n\"b,2\nc,3\n",
        b"t,x\na,1\n\"b\" c,2\n",
        b"t,x\n",
    ];
    for text in texts {
        same_in_all_sizes(text, &names(&["t"]));
    }
    same_in_all_sizes(b"", &names(&[]));
    same_in_all_sizes(b" \n \n", &names(&[]));
    // One column whose rows look split at something else, and one that is right.
    same_in_all_sizes(b"a b\n1 2\n3 4\n", &names(&[]));
    same_in_all_sizes(b"a\n1\n\n2\n3", &names(&[]));
    let without_header = TableOptions {
        header: false,
        ..names(&["f2"])
    };
    same_in_all_sizes(b"1,01\n2,1\n3,\n", &without_header);
    let spaces = TableOptions {
        delimiter: Some("space".parse().unwrap()),
        ..names(&["t"])
    };
    same_in_all_sizes(b"t x\n\"a b\"  1 \nc\t2\n", &spaces);
}

#[test]
fn what_nobody_asks_for_is_not_looked_at() {
    let only = |text: &[u8], size| {
        let options = TableOptions {
            only: Some(["x".to_owned()].into()),
            ..names(&[])
        };
        in_parts(text, &options, size)
    };
    // Numbers in one part, text in another, infinite in a third: no column of the model.
    for size in [(1, 1), (2, 64), (100, 4096)] {
        let (rows, error) = only(b"x,y\n1,1\n2,two\n3,inf\n4,\n", size);
        assert!(error.is_none());
        assert_eq!(
            rows,
            [
                "line 2 x 1 | y 0",
                "line 3 x 2 | y 0",
                "line 4 x 3 | y 0",
                "line 5 x 4 | y 0"
            ]
        );
        let (_, error) = only(b"x,y\n1,1\n2,2\ninf,3\n", size);
        let message = error.unwrap().to_string();
        assert!(message.contains("line 4"), "{message}");
    }
}

#[test]
fn a_row_longer_than_any_block_is_read() {
    let long = "a".repeat(300_000);
    let text = format!("t,x\n\"{long}\n{long}\",1\nb,2\n");
    let whole = csv::from_bytes("t.csv", text.as_bytes(), &names(&["t"])).unwrap();
    let (found, error) = in_parts(text.as_bytes(), &names(&["t"]), (1, 1));
    assert!(error.is_none());
    assert_eq!(found, rows(&whole));
}
