use std::io::{Cursor, Write};

use proptest::prelude::*;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::super::npy::{from_bytes, half, table_from_bytes};
use super::super::{GramOptions, InputError, TableOptions, npz};
use super::{message, names, numbers};
use mtmkl_table::Gram;

// Written by NumPy 2.4.
const SQUARE: &[u8] = include_bytes!("fixtures/square.npy");
const FORTRAN_BIG_ENDIAN: &[u8] = include_bytes!("fixtures/fortran_big_endian.npy");
const STACK: &[u8] = include_bytes!("fixtures/stack.npy");
const STORED: &[u8] = include_bytes!("fixtures/stored.npz");
const DEFLATED: &[u8] = include_bytes!("fixtures/deflated.npz");

const KERNEL: [f64; 9] = [2.0, 0.5, -1.0, 0.5, 1.25, 0.0, -1.0, 0.0, 3.0];

fn read(bytes: &[u8]) -> Result<Gram, InputError> {
    let mut grams = from_bytes("k.npy", bytes, &GramOptions::default())?;
    assert_eq!(grams.len(), 1);
    Ok(grams.remove(0).1)
}

/// An array of version `version` with the given header and data.
fn array(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    if version == 1 {
        bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    } else {
        bytes.extend(u32::try_from(header.len()).unwrap().to_le_bytes());
    }
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

/// An array of one type, of one row.
fn row(item: &str, data: &[u8], length: usize) -> Vec<u8> {
    array(
        1,
        &format!("{{'descr': '{item}', 'fortran_order': False, 'shape': (1, {length}), }}\n"),
        data,
    )
}

fn archive(method: CompressionMethod, members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        writer
            .start_file(
                *name,
                SimpleFileOptions::default().compression_method(method),
            )
            .unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn arrays_written_by_numpy() {
    let square = read(SQUARE).unwrap();
    assert_eq!((square.rows, square.columns), (3, 3));
    assert_eq!(*square.values, KERNEL);
    let rectangle = read(FORTRAN_BIG_ENDIAN).unwrap();
    assert_eq!((rectangle.rows, rectangle.columns), (2, 3));
    assert_eq!(*rectangle.values, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let stack = from_bytes("k.npy", STACK, &GramOptions::default()).unwrap();
    let names: Vec<_> = stack.iter().map(|(name, _)| name.as_deref()).collect();
    assert_eq!(names, [Some("0"), Some("1")]);
    assert_eq!(*stack[1].1.values, [6.0, 7.0, 8.0, 9.0, 10.0, 11.0]);
}

#[test]
fn every_type_and_version() {
    let header = "{'shape': (1, 1), \"fortran_order\": True, 'descr': '<f8'}";
    for version in 1..=3 {
        assert_eq!(
            *read(&array(version, header, &2.5_f64.to_le_bytes()))
                .unwrap()
                .values,
            [2.5]
        );
    }
    for (item, data, expected) in [
        (">f8", (-2.5_f64).to_be_bytes().to_vec(), -2.5),
        ("<f4", 0.5_f32.to_le_bytes().to_vec(), 0.5),
        (">f2", vec![0x3c, 0x00], 1.0),
        ("<i8", (-3_i64).to_le_bytes().to_vec(), -3.0),
        (">i4", (-4_i32).to_be_bytes().to_vec(), -4.0),
        ("<i2", 300_i16.to_le_bytes().to_vec(), 300.0),
        ("|i1", vec![0xff], -1.0),
        (
            "<u8",
            u64::MAX.to_le_bytes().to_vec(),
            18_446_744_073_709_551_615.0,
        ),
        ("<u4", u32::MAX.to_le_bytes().to_vec(), 4_294_967_295.0),
        (">u2", vec![1, 0], 256.0),
        ("|u1", vec![200], 200.0),
        ("|b1", vec![1], 1.0),
    ] {
        assert_eq!(
            *read(&row(item, &data, 1)).unwrap().values,
            [expected],
            "{item}"
        );
    }
    let python_2 = array(
        1,
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1L, 1L), }",
        &1_f64.to_le_bytes(),
    );
    assert_eq!(*read(&python_2).unwrap().values, [1.0]);
}

#[test]
fn halves() {
    for (bits, value) in [
        (0x3c00, 1.0),
        (0xc000, -2.0),
        (0x7bff, 65504.0),
        (0x0001, 2_f64.powi(-24)),
        (0x7c00, f64::INFINITY),
    ] {
        assert_eq!(half(bits), value);
    }
    assert!(half(0x7e00).is_nan());
}

#[test]
fn tables() {
    let table = table_from_bytes("x.npy", FORTRAN_BIG_ENDIAN, &TableOptions::default()).unwrap();
    assert_eq!(names(&table), ["f1", "f2", "f3"]);
    assert_eq!(numbers(&table, "f2"), [1.0, 4.0]);
    let missing = table_from_bytes(
        "x.npy",
        &row("<f8", &f64::NAN.to_le_bytes(), 1),
        &TableOptions::default(),
    )
    .unwrap();
    assert_eq!(
        message(missing.numeric("f1")),
        "x.npy, column `f1`: 1 missing value (the first in row 1); `--missing drop` leaves these rows out, `--missing mean` fills in the mean"
    );
    assert_eq!(
        message(table_from_bytes(
            "x.npy",
            &row("<f8", &f64::INFINITY.to_le_bytes(), 1),
            &TableOptions::default()
        )),
        "x.npy, row 1, column `f1`: `inf` is not a finite number; correct it or leave the cell empty (a missing value)"
    );
    assert_eq!(
        message(table_from_bytes("x.npy", STACK, &TableOptions::default())),
        "x.npy has shape (2, 2, 3); a table has two dimensions (sample, feature)"
    );
}

#[test]
fn faults_of_an_array() {
    let good = row("<f8", &[0; 16], 2);
    assert!(read(&good).is_ok());
    let damaged = "k.npy is not a readable NPY file: ";
    for (bytes, expected) in [
        (
            b"NUMPY...".to_vec(),
            "it does not begin with the bytes `\\x93NUMPY`",
        ),
        (b"\x93NUM".to_vec(), "it ends early; was it copied in full?"),
        (
            array(9, "{}", b""),
            "version 9 is unknown (1 to 3 are read)",
        ),
        (
            array(1, "{", b""),
            "its header is malformed: expected `'` at ``",
        ),
        (
            array(1, "{}", b""),
            "its header is malformed: it lacks `descr`, `fortran_order` or `shape`",
        ),
        (
            array(1, "{'x': 1}", b""),
            "its header is malformed: unknown entry `x`",
        ),
        (
            array(1, "{'shape': (1, -2)}", b""),
            "its header is malformed: expected a length at `-2)}`",
        ),
        (
            array(1, "{'fortran_order': 1}", b""),
            "its header is malformed: expected `False` at `1}`",
        ),
        (
            good[..good.len() - 1].to_vec(),
            "its header (shape (1, 2), type `<f8`) promises 16 bytes of numbers, there are 15",
        ),
        (
            [good.clone(), vec![0]].concat(),
            "its header (shape (1, 2), type `<f8`) promises 16 bytes of numbers, there are 17",
        ),
        (
            array(
                1,
                "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
                b"",
            ),
            "its shape (4294967296, 4294967296) is impossible",
        ),
        (
            array(
                1,
                "{'descr': '<f8', 'fortran_order': False, 'shape': (100000000, 100)}",
                b"",
            ),
            "its header (shape (100000000, 100), type `<f8`) promises 80000000000 bytes of numbers, there are 0",
        ),
    ] {
        assert_eq!(message(read(&bytes)), format!("{damaged}{expected}"));
    }
    let mut long = array(2, "", b"");
    long[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(
        message(read(&long)),
        format!("{damaged}its header claims 4294967295 bytes")
    );
    for item in ["|O", "<c16", "<U5", "<f16", "<i3", ""] {
        assert_eq!(
            message(read(&row(item, &[], 1))),
            format!(
                "k.npy holds items of type `{item}`, not plain numbers; save it as `array.astype(float)`"
            )
        );
    }
    let structured = array(
        1,
        "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}",
        &[0; 8],
    );
    assert_eq!(
        message(read(&structured)),
        "k.npy holds items of type `[('a', '<f8')]`, not plain numbers; save it as `array.astype(float)`"
    );
}

#[test]
fn faults_of_a_matrix() {
    let shaped = |shape: &str, data: &[u8]| {
        read(&array(
            1,
            &format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}"),
            data,
        ))
    };
    assert_eq!(
        message(shaped("(2,)", &[0; 16])),
        "k.npy has shape (2,); a kernel matrix has two dimensions, a stack of them three (kernel, row, column)"
    );
    assert_eq!(
        message(shaped("()", &[0; 8])),
        "k.npy has shape (); a kernel matrix has two dimensions, a stack of them three (kernel, row, column)"
    );
    assert_eq!(
        message(shaped("(0, 3)", &[])),
        "k.npy has shape (0, 3); it has no entries"
    );
    let data: Vec<u8> = [1.0, 2.0, 3.0, f64::NAN]
        .iter()
        .flat_map(|value: &f64| value.to_le_bytes())
        .collect();
    assert_eq!(
        message(shaped("(2, 2)", &data)),
        "k.npy, row 2, column 2 (counted from 1): NaN is not a finite number"
    );
    let small = GramOptions {
        limit: 71,
        ..GramOptions::default()
    };
    assert_eq!(
        message(from_bytes("k.npy", SQUARE, &small)),
        "k.npy: its numbers take 72 bytes, over the limit of 71 bytes; raise it with `--memory-limit`"
    );
}

#[test]
fn archives_written_by_numpy() {
    let stored = npz::from_bytes("k.npz", STORED, &GramOptions::default()).unwrap();
    let names: Vec<_> = stored.iter().map(|(name, _)| name.as_deref()).collect();
    assert_eq!(names, [Some("linear"), Some("rbf")]);
    assert!(stored.iter().all(|(_, gram)| *gram.values == KERNEL));
    let deflated = npz::from_bytes("k.npz", DEFLATED, &GramOptions::default()).unwrap();
    assert_eq!(*deflated[0].1.values, KERNEL);
    assert_eq!(*deflated[1].1.values, [1.0, 0.0]);
    let chosen = GramOptions {
        members: vec!["flags".to_owned()],
        ..GramOptions::default()
    };
    let chosen = npz::from_bytes("k.npz", DEFLATED, &chosen).unwrap();
    assert_eq!(chosen.len(), 1);
    let stack = npz::from_bytes(
        "k.npz",
        &archive(CompressionMethod::Stored, &[("s.npy", STACK)]),
        &GramOptions::default(),
    );
    let names: Vec<_> = stack
        .unwrap()
        .into_iter()
        .map(|(name, _)| name.unwrap())
        .collect();
    assert_eq!(names, ["s.0", "s.1"]);
}

#[test]
fn faults_of_an_archive() {
    let read = |bytes: &[u8]| npz::from_bytes("k.npz", bytes, &GramOptions::default());
    let make = |members: &[(&str, &[u8])]| archive(CompressionMethod::Deflated, members);
    assert!(read(&make(&[("a.npy", SQUARE)])).is_ok());
    assert!(message(read(&STORED[..300])).starts_with("k.npz is not a readable NPZ file: "));
    let mut flipped = STORED.to_vec();
    let position = flipped
        .windows(8)
        .position(|bytes| bytes == 1.25_f64.to_le_bytes())
        .unwrap();
    flipped[position] ^= 1;
    assert_eq!(
        message(read(&flipped)),
        "k.npz, array `linear` is not a readable NPY file: Invalid checksum"
    );
    assert_eq!(
        message(read(&make(&[("readme.txt", b"x")]))),
        "k.npz is a ZIP archive without arrays (members named `….npy`); save the kernel matrices with `numpy.savez`"
    );
    assert_eq!(
        message(read(&make(&[("xl/workbook.xml", b"x")]))),
        "k.npz is a ZIP archive (NPZ, Excel), not a table; save the table as CSV or Parquet; give kernel matrices as `--kernel precomputed:path=…`"
    );
    assert_eq!(
        message(read(&make(&[
            ("indices.npy", SQUARE),
            ("indptr.npy", SQUARE),
            ("format.npy", SQUARE)
        ]))),
        "k.npz is a SciPy sparse matrix; save it dense: `numpy.save(path, matrix.toarray())`"
    );
    assert_eq!(
        message(read(&make(&[("a.npy", SQUARE), ("b.npy", &SQUARE[..190])]))),
        "k.npz, array `b` is not a readable NPY file: its header (shape (3, 3), type `<f8`) promises 72 bytes of numbers, there are 62"
    );
    let unknown = GramOptions {
        members: vec!["poly".to_owned()],
        ..GramOptions::default()
    };
    assert_eq!(
        message(npz::from_bytes("k.npz", STORED, &unknown)),
        "k.npz has no array `poly`; it has `linear`, `rbf`"
    );
    // The limit is for all members together.
    let small = GramOptions {
        limit: 100,
        ..GramOptions::default()
    };
    assert_eq!(
        message(npz::from_bytes("k.npz", STORED, &small)),
        "k.npz, array `rbf`: its numbers take 72 bytes, over the limit of 28 bytes; raise it with `--memory-limit`"
    );
}

proptest! {
    #[test]
    fn matrices_survive_in_either_order(rows in 1usize..6, columns in 1usize..6, seed in prop::collection::vec(-1e9..1e9f64, 36), fortran: bool, big_endian: bool) {
        let values = &seed[..rows * columns];
        let mut data = Vec::new();
        for position in 0..rows * columns {
            let value = if fortran { values[position % rows * columns + position / rows] } else { values[position] };
            data.extend(if big_endian { value.to_be_bytes() } else { value.to_le_bytes() });
        }
        let item = if big_endian { ">f8" } else { "<f8" };
        let order = if fortran { "True" } else { "False" };
        let header = format!("{{'descr': '{item}', 'fortran_order': {order}, 'shape': ({rows}, {columns}), }}");
        let gram = read(&array(1, &header, &data)).unwrap();
        prop_assert_eq!(gram.values.as_slice(), values);
    }

    #[test]
    fn no_damage_makes_it_panic(position in 0usize..200, byte: u8) {
        let mut bytes = SQUARE.to_vec();
        bytes[position] = byte;
        let options = GramOptions { limit: 1 << 20, ..GramOptions::default() };
        let _ = from_bytes("k.npy", &bytes, &options);
        let mut bytes = DEFLATED.to_vec();
        bytes[position] = byte;
        let _ = npz::from_bytes("k.npz", &bytes, &options);
    }
}
