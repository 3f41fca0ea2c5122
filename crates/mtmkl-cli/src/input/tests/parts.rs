//! A text in parts is the text: the same cells, gaps and lines, or the same error, wherever the parts and the blocks of bytes end.

use std::io::Cursor;

use mtmkl_table::{Table, Values};

use crate::input::batches::NextPart;
use crate::input::csv::{self, Parts};
use crate::input::source::Stream;
use crate::input::{InputError, TableOptions, libsvm, parquet};

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
        match parts.next_part() {
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

/// All rows of a table in parts, or what is wrong with it.
fn drained(parts: &mut dyn NextPart) -> (Vec<String>, Option<InputError>) {
    let mut found = Vec::new();
    loop {
        match parts.next_part() {
            Ok(Some(part)) => found.extend(rows(&part)),
            Ok(None) => return (found, None),
            Err(error) => return (found, Some(error)),
        }
    }
}

/// Cells that are not zero, whatever other columns a part has.
fn without_zeros(rows: &[String]) -> Vec<String> {
    let kept = |row: &String| -> Vec<String> {
        let (place, cells) = row.split_at(row.find(" label").unwrap());
        let cells = cells.split(" | ").map(|cell| cell.trim().to_owned());
        let cells = cells.filter(|cell| !cell.ends_with(" 0") || cell.starts_with("label"));
        std::iter::once(place.to_owned()).chain(cells).collect()
    };
    rows.iter().map(|row| kept(row).join(" ")).collect()
}

#[test]
fn parts_of_libsvm_are_the_whole() {
    let texts: [&[u8]; 8] = [
        b"1 1:0.5 7:2\n-1 2:1\n1 3:-4 9:1e3\n",
        b"+1 1:1\r\n\r\n# a comment\n-1 qid:3 2:2 # another\n1 qid:4\n",
        b"\xef\xbb\xbf1 1:1\n2 1:2",
        b"1 0:3 1:1\n1 1:2\n2 5:1\n",
        b"a 1:1\nb 2:1\n",
        b"1 1:1\n1 2:2\n1 2:1 1:1\n",
        b"1 1:1\n1 x:2\n",
        b"# nothing\n\n",
    ];
    let options = TableOptions::default();
    for text in texts {
        let whole = libsvm::from_bytes("t.svm", text, &options);
        let shown = String::from_utf8_lossy(text);
        for (lines, block) in [(1, 1), (1, 4096), (2, 3), (3, 7), (100, 5), (1000, 4096)] {
            let stream = Stream::of("t.svm", Box::new(Cursor::new(text.to_vec()))).unwrap();
            let mut parts = libsvm::Parts::with_size(stream, options.clone(), lines, block);
            match (&whole, drained(&mut parts)) {
                (Ok(table), (found, None)) => {
                    assert_eq!(
                        without_zeros(&found),
                        without_zeros(&rows(table)),
                        "{shown}"
                    );
                }
                (Err(whole), (_, Some(error))) => {
                    assert_eq!(error.to_string(), whole.to_string(), "{shown}");
                }
                (whole, (_, error)) => panic!("{whole:?}, {error:?}: {shown}"),
            }
        }
        let stream = Stream::of("t.svm", Box::new(Cursor::new(text.to_vec()))).unwrap();
        match (&whole, libsvm::joined(stream, &options, 1000).unwrap()) {
            (Ok(table), Some(joined)) => {
                assert_eq!(rows(&joined), rows(table), "{shown}");
                assert_eq!(joined.absent_is_zero, table.absent_is_zero);
            }
            // What is wrong is said by who reads the whole.
            (Err(_), None) => {}
            (whole, joined) => panic!("{whole:?}, {joined:?}: {shown}"),
        }
    }
    // Kernel values are about all rows.
    let kernel = b"1 0:1 1:2 2:1\n-1 0:2 1:1 2:2\n";
    let stream = Stream::of("t.svm", Box::new(Cursor::new(kernel.to_vec()))).unwrap();
    assert!(libsvm::joined(stream, &options, 1000).unwrap().is_none());
}

#[test]
fn parts_of_parquet_are_the_whole() {
    let files: [&[u8]; 6] = [
        include_bytes!("fixtures/snappy.parquet"),
        include_bytes!("fixtures/gzip.parquet"),
        include_bytes!("fixtures/zstd.parquet"),
        include_bytes!("fixtures/pandas_index.parquet"),
        include_bytes!("fixtures/infinite.parquet"),
        include_bytes!("fixtures/lz4.parquet"),
    ];
    for options in [names(&[]), names(&["count", "flag"])] {
        for file in files {
            let whole = parquet::from_bytes("t.parquet", file, &options);
            for size in [1, 2, 3, 1000] {
                let content = bytes::Bytes::from_static(file);
                let parts = parquet::Parts::open("t.parquet", content, &options, size);
                match (&whole, parts.map(|mut parts| drained(&mut parts))) {
                    (Ok(table), Ok((found, None))) => assert_eq!(found, rows(table)),
                    (Err(whole), Ok((_, Some(error))) | Err(error)) => {
                        assert_eq!(error.to_string(), whole.to_string());
                    }
                    (whole, other) => panic!("{whole:?}, {other:?}"),
                }
            }
        }
    }
}

#[test]
fn a_large_text_is_the_same_in_pieces() {
    // More rows than some parts have, with quotes over line ends, gaps, and a line without an end.
    let mut text = String::from("name,x,y\n");
    for row in 0..30_000 {
        text += &match row % 7_001 {
            5 => format!("\"a\nb\",{row},\n"),
            6 => format!("\n  {row} , 1e-3,NA\n"),
            _ => format!("n{},{}.5,{row}\n", row % 11, row),
        };
    }
    text += "last,1,2";
    let stream = |text: &str| {
        let bytes = text.as_bytes().to_vec();
        Stream::of("t.csv", Box::new(Cursor::new(bytes))).unwrap()
    };
    let options = names(&["name"]);
    let whole = csv::from_bytes("t.csv", text.as_bytes(), &options).unwrap();
    for size in [1, text.len() as u64, 1 << 40] {
        let joined = csv::joined(stream(&text), &options, size.min(1 << 24)).unwrap();
        assert_eq!(joined.unwrap(), whole);
    }
    // A column that turns into text, an infinite number, a row too short: all of it must be looked at.
    for last in ["a,b,c\n", "a,inf,1\n", "a,1\n", "\"a,1,2\n"] {
        let text = text.replace("last,1,2", last);
        let joined = csv::joined(stream(&text), &options, text.len() as u64).unwrap();
        assert!(joined.is_none(), "{last}");
    }
    let limited = TableOptions {
        limit: 600_000,
        ..options
    };
    assert!(
        csv::joined(stream(&text), &limited, 1000)
            .is_err_and(|error| { error.to_string().contains("takes at least") })
    );
}
