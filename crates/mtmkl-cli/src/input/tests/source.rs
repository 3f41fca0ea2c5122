use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

use super::super::{Format, GramOptions, InputError, TableOptions, read_gram, read_table};
use super::{message, names, numbers};
use mtmkl_table::Table;

const SQUARE: &[u8] = include_bytes!("fixtures/square.npy");
const STORED: &[u8] = include_bytes!("fixtures/stored.npz");
const SNAPPY: &[u8] = include_bytes!("fixtures/snappy.parquet");

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A folder with one file.
fn file(name: &str, bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn read(name: &str, bytes: &[u8]) -> Result<Table, InputError> {
    let (_folder, path) = file(name, bytes);
    read_table(&path, None, &TableOptions::default())
}

/// The message, without the folder that differs from run to run.
fn short<T>(folder: &Path, result: Result<T, InputError>) -> String {
    message(result).replace(
        &format!("{}{}", folder.display(), std::path::MAIN_SEPARATOR),
        "",
    )
}

#[test]
fn the_format_follows_from_content_or_name() {
    let csv = b"a,b\n1,2\n".as_slice();
    let tsv = b"a\tb\n1\t2\n".as_slice();
    let svm = b"1 1:2\n".as_slice();
    for (name, bytes, expected) in [
        ("d.csv", csv, Format::Csv),
        ("d.CSV", csv, Format::Csv),
        ("d.tsv", tsv, Format::Tsv),
        ("d.txt", csv, Format::Csv),
        ("d.txt", tsv, Format::Tsv),
        ("d.txt", svm, Format::Libsvm),
        ("d", svm, Format::Libsvm),
        ("d.svm", svm, Format::Libsvm),
        ("d.svmlight", svm, Format::Libsvm),
        ("d.libsvm", svm, Format::Libsvm),
        ("d.data", csv, Format::Csv),
        ("d.parquet", SNAPPY, Format::Parquet),
        ("d.csv", SNAPPY, Format::Parquet),
        ("d.npy", SQUARE, Format::Npy),
    ] {
        let (_folder, path) = file(name, bytes);
        let table = read_table(&path, None, &TableOptions::default()).unwrap();
        let told = read_table(&path, Some(expected), &TableOptions::default());
        assert_eq!(table, told.unwrap(), "{name}");
        // Packed, with and without the ending that says so.
        let unpacked = read(&format!("{name}.gz"), &packed(bytes)).unwrap();
        assert_eq!(names(&unpacked), names(&table), "{name}.gz");
        assert_eq!(
            read(name, &packed(bytes)).unwrap().columns(),
            table.columns(),
            "{name}"
        );
    }
    // What is asked for wins.
    let (_folder, path) = file("d.csv", svm);
    let table = read_table(&path, Some(Format::Libsvm), &TableOptions::default()).unwrap();
    assert_eq!(numbers(&table, "f1"), [2.0]);
}

#[test]
fn grams_of_every_format() {
    let read = |name: &str, bytes: &[u8]| {
        let (_folder, path) = file(name, bytes);
        read_gram(&path, None, &GramOptions::default()).unwrap()
    };
    let square = read("k.npy", SQUARE);
    assert_eq!(read("k.npy.gz", &packed(SQUARE)), square);
    assert_eq!(read("k.npz", STORED)[0].1, square[0].1);
    assert_eq!(read("k.npz.gz", &packed(STORED))[0].1, square[0].1);
    assert_eq!(read("k.csv", b"2,0.5,-1\n0.5,1.25,0\n-1,0,3\n"), square);
    assert_eq!(*read("k.svm", b"1 0:1 1:4\n")[0].1.values, [4.0]);
    let (folder, path) = file("k.parquet", SNAPPY);
    assert_eq!(
        short(
            folder.path(),
            read_gram(&path, None, &GramOptions::default())
        ),
        "k.parquet is a Parquet file, which holds samples, not a kernel matrix; save the matrix with `numpy.save`"
    );
}

#[test]
fn parts_of_a_packed_file_are_joined() {
    let bytes = [packed(b"a,b\n1,2\n"), packed(b"3,4\n")].concat();
    assert_eq!(numbers(&read("d.csv.gz", &bytes).unwrap(), "a"), [1.0, 3.0]);
}

#[test]
fn faults_of_a_path() {
    let (folder, path) = file("landmine.csv.gz", &packed(b"a,b\n1,2\n"));
    let read = |name: &str| {
        short(
            folder.path(),
            read_table(&folder.path().join(name), None, &TableOptions::default()),
        )
    };
    assert!(read_table(&path, None, &TableOptions::default()).is_ok());
    assert_eq!(
        read("landmine.csv"),
        "landmine.csv: no such file; did you mean `landmine.csv.gz`?"
    );
    assert_eq!(
        read("Landmin.csv.gz"),
        "Landmin.csv.gz: no such file; did you mean `landmine.csv.gz`?"
    );
    assert_eq!(read("letters.parquet"), "letters.parquet: no such file");
    assert_eq!(
        read("nowhere/letters.csv"),
        "nowhere/letters.csv: no such file"
    );
    let nameless = read_table(Path::new(""), None, &TableOptions::default());
    assert_eq!(message(nameless), "the name of the file is empty");
    let folder_itself = message(read_table(folder.path(), None, &TableOptions::default()));
    assert!(
        folder_itself.ends_with(" is a folder; give a file"),
        "{folder_itself}"
    );
}

#[test]
fn faults_of_the_content() {
    let fails = |name: &str, bytes: &[u8]| {
        let (folder, path) = file(name, bytes);
        short(
            folder.path(),
            read_table(&path, None, &TableOptions::default()),
        )
    };
    assert_eq!(fails("d.csv", b""), "d.csv is empty");
    assert_eq!(fails("d.csv.gz", &packed(b"")), "d.csv.gz is empty");
    let whole = packed(&b"a,b\n1,2\n".repeat(100));
    assert_eq!(
        fails("d.csv.gz", &whole[..whole.len() - 9]),
        "d.csv.gz is not a readable gzip file: it ends early; was it copied in full?"
    );
    assert!(
        fails("d.csv.gz", b"\x1f\x8bnonsense")
            .starts_with("d.csv.gz is not a readable gzip file: ")
    );
    assert_eq!(
        fails("d.csv", b"\xff\xfea\0,\0"),
        "d.csv is UTF-16 text; save it as UTF-8"
    );
    assert_eq!(
        fails("d.csv", b"\xd0\xcf\x11\xe0"),
        "d.csv is an Excel workbook; save the sheet as CSV"
    );
    assert_eq!(
        fails("d.xlsx", STORED),
        "d.xlsx is a ZIP archive (NPZ, Excel), not a table; save the table as CSV or Parquet; give kernel matrices as `--kernel precomputed:path=…`"
    );
    assert_eq!(
        fails("d.csv.xz", b"\xfd7zXZ\0"),
        "d.csv.xz is packed with xz; unpack it first, or pack it with gzip"
    );
}

#[test]
fn the_limit_stops_reading() {
    let options = TableOptions {
        limit: 1000,
        ..TableOptions::default()
    };
    let bytes = b"a,b\n"
        .iter()
        .chain(b"1,2\n".repeat(1000).iter())
        .copied()
        .collect::<Vec<u8>>();
    let (folder, path) = file("d.csv", &bytes);
    assert_eq!(
        short(folder.path(), read_table(&path, None, &options)),
        "d.csv: the file takes 3.9 KiB, over the limit of 1000 bytes; raise it with `--memory-limit`"
    );
    let (folder, path) = file("d.csv.gz", &packed(&bytes));
    assert_eq!(
        short(folder.path(), read_table(&path, None, &options)),
        "d.csv.gz: the unpacked content takes at least 1001 bytes, over the limit of 1000 bytes; raise it with `--memory-limit`"
    );
}

#[test]
fn names_of_formats() {
    for format in [
        Format::Csv,
        Format::Tsv,
        Format::Libsvm,
        Format::Parquet,
        Format::Npy,
        Format::Npz,
    ] {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    assert_eq!("svmlight".parse(), Ok(Format::Libsvm));
    assert_eq!(
        "xls".parse::<Format>(),
        Err("expected csv, tsv, libsvm, parquet, npy or npz".to_owned())
    );
}
