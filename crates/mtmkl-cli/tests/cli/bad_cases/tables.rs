//! Tables: CSV, LIBSVM, Parquet, packed or not.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{Case, file};

const FIT: &str = "fit x.csv --target label";
const SVM: &str = "fit x.svm";
const PARQUET: &str = "fit x.parquet --target label";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// Forty megabytes of rows in forty kilobytes.
fn bomb() -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(b"a,b,label\n").unwrap();
    let rows = b"0,0,x\n".repeat(1 << 16);
    for _ in 0..100 {
        packed.write_all(&rows).unwrap();
    }
    packed.finish().unwrap()
}

fn texts() -> Vec<Case> {
    let csv = |name, bytes: &str, words: &[&'static str]| file(name, "x.csv", bytes, FIT, words);
    vec![
        csv("empty table", "", &["x.csv is empty"]),
        csv("only line ends", "\n\n\r\n\n", &["x.csv"]),
        csv(
            "only a header",
            "a,b,label\n",
            &["has column names but no rows"],
        ),
        csv(
            "too few cells",
            "a,b,label\n1,2,x\n3,y\n",
            &["line 3", "3 cells expected, 2 found"],
        ),
        csv(
            "too many cells",
            "a,b,label\n1,2,x\n3,4,y,5\n",
            &["line 3", "3 cells expected, 4 found"],
        ),
        csv(
            "word for a number",
            "a,b,label\n1,2,x\n3,oops,y\n5,6,y\n",
            &["line 3", "column `b`", "`oops` is not a number"],
        ),
        csv(
            "comma in a decimal",
            "a;b;label\n1,5;2;x\n3;4;y\n",
            &["`1,5`", "decimals with a point"],
        ),
        csv(
            "too large a number",
            "a,b,label\n1,2,x\n3,1e999,y\n",
            &["`1e999` is not a finite number"],
        ),
        csv(
            "infinity",
            "a,b,label\n1,inf,x\n3,2,y\n",
            &["line 2", "`inf`"],
        ),
        csv(
            "minus infinity",
            "a,b,label\n1,-Infinity,x\n3,2,y\n",
            &["line 2", "`-Infinity`"],
        ),
        csv(
            "hexadecimal",
            "a,b,label\n1,0x1F,x\n3,2,y\n",
            &["line 2", "`0x1F` is not a number"],
        ),
        csv(
            "thousands with blanks",
            "a,b,label\n1,1 000,x\n3,2,y\n",
            &["line 2", "`1 000`"],
        ),
        csv(
            "a date",
            "a,b,label\n1,2024-01-02,x\n3,2,y\n",
            &["line 2", "`2024-01-02` is not a number"],
        ),
        csv(
            "a percentage",
            "a,b,label\n1,12%,x\n3,2,y\n",
            &["line 2", "`12%`"],
        ),
        csv(
            "a quote that never ends",
            "a,b,label\n1,\"2,x\n3,4,y\n",
            &["line 2", "is never closed"],
        ),
        csv(
            "text after a quote",
            "a,b,label\n1,\"2\"3,x\n3,4,y\n",
            &["goes on after its closing quote"],
        ),
        csv(
            "two columns of one name",
            "a,a,label\n1,2,x\n3,4,y\n",
            &["columns 1 and 2 are both named `a`"],
        ),
        csv(
            "no header",
            "1,2,x\n3,4,y\n5,6,x\n",
            &["has no column `label`", "--no-header"],
        ),
        csv(
            "one class",
            "a,label\n1,x\n2,x\n",
            &["has one value only, `x`"],
        ),
        csv("no feature", "label\nx\ny\n", &["x.csv"]),
        csv("all targets missing", "a,label\n1,\n2,\n", &["x.csv"]),
        csv(
            "a missing value",
            "a,label\n1,x\n,y\n2,x\n3,y\n",
            &["line 3", "column `a`", "missing"],
        ),
        csv(
            "other delimiter",
            "a b label\n1 2 x\n3 4 y\n5 6 x\n7 8",
            &["x.csv"],
        ),
        csv(
            "a null byte",
            "a,b,label\n1,2\0,x\n3,4,y\n",
            &["line 2", "column `b`"],
        ),
        csv(
            "a very long cell",
            &format!("a,label\n{},x\n2,y\n", "9".repeat(5000)),
            &["line 2", "column `a`"],
        ),
        file(
            "latin-1",
            "x.csv",
            b"a,b,label\n1,2,caf\xe9\n3,4,y\n",
            FIT,
            &["line 2", "not UTF-8 text", "iconv"],
        ),
        file(
            "latin-1 in the header",
            "x.csv",
            b"a,caf\xe9,label\n1,2,x\n3,4,y\n",
            FIT,
            &["not UTF-8 text"],
        ),
        file(
            "UTF-16",
            "x.csv",
            b"\xff\xfea\0,\0b\0\n\0",
            FIT,
            &["is UTF-16 text", "UTF-8"],
        ),
        file(
            "UTF-16 without a mark",
            "x.csv",
            b"a\0,\0l\0a\0b\0e\0l\0\n\0",
            FIT,
            &["neither text nor a format"],
        ),
        file(
            "zeros",
            "x.csv",
            [0; 5000],
            FIT,
            &["neither text nor a format"],
        ),
        file(
            "a program",
            "x.csv",
            &std::fs::read(crate::PROGRAM).unwrap()[..1 << 16],
            FIT,
            &["neither text nor a format"],
        ),
        file(
            "a workbook",
            "x.csv",
            b"\xd0\xcf\x11\xe0 workbook",
            FIT,
            &["is an Excel workbook", "CSV"],
        ),
        file(
            "a Feather file",
            "x.csv",
            b"FEA1....",
            FIT,
            &["is a Feather file", "Parquet"],
        ),
        file(
            "an HDF5 file",
            "x.csv",
            b"\x89HDF\r\n\x1a\n",
            FIT,
            &["is an HDF5 file"],
        ),
        file(
            "a pickle",
            "x.csv",
            b"\x80\x04\x95abc",
            FIT,
            &["is a Python pickle"],
        ),
        file(
            "a web page",
            "x.csv",
            b"<!DOCTYPE html><html>",
            FIT,
            &["is a web page"],
        ),
        file("bzip2", "x.csv", b"BZh91AY", FIT, &["is packed with bzip2"]),
        file("xz", "x.csv", b"\xfd7zXZ\0\0", FIT, &["is packed with xz"]),
        file(
            "zstd",
            "x.csv",
            b"\x28\xb5\x2f\xfd\0",
            FIT,
            &["is packed with zstd"],
        ),
        file(
            "a ZIP archive",
            "x.csv",
            b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
            FIT,
            &["x.csv"],
        ),
    ]
}

fn packed() -> Vec<Case> {
    let whole = gzip(&b"a,b,label\n1,2,x\n3,4,y\n".repeat(200));
    let mut checksum = whole.clone();
    let at = checksum.len() - 6;
    checksum[at] ^= 0xff;
    let mut inside = whole.clone();
    inside[30] ^= 0xff;
    let path = "x.csv.gz";
    let fit = "fit x.csv.gz --target label";
    vec![
        file(
            "gzip cut short",
            path,
            &whole[..whole.len() / 2],
            fit,
            &["gzip", "ends early"],
        ),
        file("gzip with only its mark", path, b"\x1f\x8b", fit, &["gzip"]),
        file("gzip with a wrong checksum", path, checksum, fit, &["gzip"]),
        file("gzip with changed bytes", path, inside, fit, &["x.csv.gz"]),
        file("gzip of nothing", path, gzip(b""), fit, &["is empty"]),
        file(
            "gzip of zeros",
            path,
            gzip(&[0; 1 << 20]),
            fit,
            &["neither text nor a format"],
        ),
        file(
            "a gzip bomb",
            path,
            bomb(),
            "fit x.csv.gz --target label --memory-limit 0.01",
            &["over the limit of", "--memory-limit"],
        ),
        file(
            "a gzip bomb for a prediction",
            path,
            gzip(&[b"a,b\n\"".to_vec(), b"1".repeat(40 << 20)].concat()),
            "predict two.model x.csv.gz",
            &["x.csv.gz"],
        ),
    ]
}

fn libsvm() -> Vec<Case> {
    let svm = |name, bytes: &str, words: &[&'static str]| file(name, "x.svm", bytes, SVM, words);
    vec![
        svm(
            "LIBSVM: a word for a value",
            "1 1:2 2:x\n-1 1:3\n",
            &["line 1", "`2:x`"],
        ),
        svm("LIBSVM: no colon", "1 1:2 7\n-1 1:3\n", &["line 1", "`7`"]),
        svm(
            "LIBSVM: an index that is no number",
            "1 a:2\n-1 1:3\n",
            &["line 1", "`a:2`"],
        ),
        svm(
            "LIBSVM: a negative index",
            "1 -3:2\n-1 1:3\n",
            &["line 1", "`-3:2`"],
        ),
        svm(
            "LIBSVM: an index beyond counting",
            "1 99999999999999999999:2\n-1 1:3\n",
            &["line 1", "99999999999999999999"],
        ),
        svm(
            "LIBSVM: more columns than memory",
            "1 1:2\n-1 5000000000:3\n",
            &["5000000000", "over the limit of"],
        ),
        svm("LIBSVM: an index twice", "1 1:2 1:3\n-1 1:3\n", &["line 1"]),
        svm("LIBSVM: infinite", "1 1:inf\n-1 1:3\n", &["line 1"]),
        svm(
            "LIBSVM: kernel values",
            "1 0:1 1:2 2:0\n-1 0:2 1:0 2:2\n",
            &["holds kernel values, not features"],
        ),
        svm("LIBSVM: empty", "", &["x.svm is empty"]),
        svm("LIBSVM: one class", "1 1:2\n1 1:3\n", &["one value only"]),
        file(
            "LIBSVM: zeros",
            "x.svm",
            [0; 64],
            SVM,
            &["neither text nor a format"],
        ),
    ]
}

fn parquet() -> Vec<Case> {
    let whole = include_bytes!("../../../src/input/tests/fixtures/none.parquet");
    let parquet =
        |name, bytes: &[u8], words: &[&'static str]| file(name, "x.parquet", bytes, PARQUET, words);
    let mut footer = whole.to_vec();
    let end = footer.len();
    footer[end - 8..end - 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut damaged = whole.to_vec();
    damaged[end - 300..end - 8].fill(0xff);
    vec![
        parquet("Parquet: only its mark", b"PAR1", &["x.parquet", "Parquet"]),
        parquet("Parquet: two marks", b"PAR1PAR1", &["x.parquet"]),
        parquet(
            "Parquet: cut short",
            &whole[..whole.len() / 2],
            &["x.parquet", "Parquet"],
        ),
        parquet(
            "Parquet: a footer longer than the file",
            &footer,
            &["x.parquet", "Parquet"],
        ),
        parquet(
            "Parquet: a footer of other bytes",
            &damaged,
            &["x.parquet", "Parquet"],
        ),
        parquet(
            "Parquet: rows without an end",
            include_bytes!("../../../src/input/tests/fixtures/endless.parquet"),
            &["x.parquet"],
        ),
        parquet(
            "Parquet: infinite",
            include_bytes!("../../../src/input/tests/fixtures/infinite.parquet"),
            &["x.parquet"],
        ),
        parquet(
            "Parquet: no rows",
            include_bytes!("../../../src/input/tests/fixtures/no_rows.parquet"),
            &["x.parquet"],
        ),
        parquet(
            "Parquet: a codec that is not read",
            include_bytes!("../../../src/input/tests/fixtures/lz4.parquet"),
            &["x.parquet"],
        ),
        parquet("Parquet: no such column", whole, &["has no column `label`"]),
    ]
}

pub(super) fn cases() -> Vec<Case> {
    [texts(), packed(), libsvm(), parquet()]
        .into_iter()
        .flatten()
        .collect()
}
