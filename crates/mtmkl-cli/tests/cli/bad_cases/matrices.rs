//! Kernel matrices: NPY and NPZ whose headers promise what is not there.

use std::io::{Cursor, Write as _};

use zip::write::SimpleFileOptions;

use super::{Case, file};
use crate::precomputed::npy;

const FIT: &str = "fit two.csv --target label --kernel precomputed:path=k.npy";
const ARCHIVE: &str = "fit two.csv --target label --kernel precomputed:path=k.npz";

/// An NPY file of this header and as many bytes of numbers.
fn of_header(header: &str, numbers: usize) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + numbers, 0);
    bytes
}

fn shaped(shape: &str) -> Vec<u8> {
    of_header(
        &format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n"),
        64,
    )
}

fn typed(kind: &str) -> Vec<u8> {
    of_header(
        &format!("{{'descr': {kind}, 'fortran_order': False, 'shape': (2, 2), }}\n"),
        32,
    )
}

fn identity(change: impl Fn(&mut Vec<f64>)) -> Vec<u8> {
    let mut values = vec![0.0; 24 * 24];
    for row in 0..24 {
        values[row * 25] = 1.0;
    }
    change(&mut values);
    npy(&values, 24)
}

fn archive(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let packed = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    for (name, bytes) in members {
        archive.start_file(*name, packed).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn arrays() -> Vec<Case> {
    let npy = |name, bytes: Vec<u8>, words: &[&'static str]| file(name, "k.npy", bytes, FIT, words);
    let mut version = shaped("(2, 4)");
    version[6] = 9;
    let mut endless = b"\x93NUMPY\x02\x00".to_vec();
    endless.extend(u32::MAX.to_le_bytes());
    vec![
        npy("NPY: empty", Vec::new(), &["k.npy is empty"]),
        npy("NPY: other bytes", b"a,b\nc,d\n".to_vec(), &["k.npy"]),
        npy(
            "NPY: only its mark",
            b"\x93NUMPY".to_vec(),
            &["NPY", "ends early"],
        ),
        npy(
            "NPY: a version of the future",
            version,
            &["version 9 is unknown"],
        ),
        npy(
            "NPY: a header without end",
            endless,
            &["its header claims 4294967295 bytes"],
        ),
        npy(
            "NPY: a header that is cut",
            b"\x93NUMPY\x01\x00\xff\x00{'descr'".to_vec(),
            &["ends early"],
        ),
        npy(
            "NPY: a header of other text",
            of_header("hello\n", 32),
            &["its header is malformed"],
        ),
        npy(
            "NPY: no shape",
            of_header("{'descr': '<f8', 'fortran_order': False}\n", 32),
            &["its header is malformed"],
        ),
        npy(
            "NPY: code in the header",
            of_header("{'descr': __import__('os'), 'shape': (2, 2)}\n", 32),
            &["its header is malformed"],
        ),
        npy(
            "NPY: objects",
            typed("'|O'"),
            &["items of type `|O`", "astype(float)"],
        ),
        npy("NPY: texts", typed("'<U4'"), &["items of type `<U4`"]),
        npy(
            "NPY: complex numbers",
            typed("'<c16'"),
            &["items of type `<c16`"],
        ),
        npy("NPY: records", typed("[('a', '<f8')]"), &["k.npy"]),
        npy(
            "NPY: a shape that overflows",
            shaped("(4294967296, 4294967296)"),
            &["is impossible"],
        ),
        npy(
            "NPY: bytes that overflow",
            shaped("(2305843009213693952, 1)"),
            &["is impossible"],
        ),
        npy(
            "NPY: a length beyond counting",
            shaped("(99999999999999999999999, 2)"),
            &["its header is malformed"],
        ),
        npy(
            "NPY: a negative length",
            shaped("(-2, 2)"),
            &["its header is malformed"],
        ),
        npy(
            "NPY: more than there is",
            shaped("(200, 200)"),
            &["promises 320000 bytes of numbers, there are 64"],
        ),
        npy(
            "NPY: less than there is",
            shaped("(2, 2)"),
            &["promises 32 bytes of numbers, there are 64"],
        ),
        npy("NPY: a list", shaped("(8,)"), &["k.npy"]),
        npy(
            "NPY: nothing in it",
            of_header(
                "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 0), }\n",
                0,
            ),
            &["k.npy"],
        ),
        npy(
            "NPY: of other rows",
            shaped("(2, 4)"),
            &["2 × 4, expected 24 × 24"],
        ),
        npy(
            "NPY: not a number",
            identity(|values| values[7] = f64::NAN),
            &["row 1, column 8", "NaN"],
        ),
        npy(
            "NPY: infinite",
            identity(|values| values[7] = f64::INFINITY),
            &["row 1, column 8"],
        ),
        npy(
            "NPY: not symmetric",
            identity(|values| values[1] = 0.5),
            &["not symmetric"],
        ),
        npy(
            "NPY: indefinite",
            identity(|values| (values[1], values[24]) = (2.0, 2.0)),
            &["not positive semi-definite", "--allow-indefinite"],
        ),
        file(
            "NPY: a cube as a table",
            "x.npy",
            shaped("(2, 2, 2)"),
            "fit x.npy --target f1",
            &["(2, 2, 2)"],
        ),
        file(
            "NPY: too large for the limit",
            "x.npy",
            npy_of(2000),
            "fit x.npy --target f1 --memory-limit 0.0001",
            &["over the limit of"],
        ),
    ]
}

fn npy_of(rows: usize) -> Vec<u8> {
    npy(&vec![1.0; rows * 10], rows)
}

fn archives() -> Vec<Case> {
    let npz =
        |name, bytes: Vec<u8>, words: &[&'static str]| file(name, "k.npz", bytes, ARCHIVE, words);
    let whole = archive(&[("a.npy", identity(|_| {}))]);
    let mut changed = whole.clone();
    changed[60] ^= 0xff;
    let bomb = {
        let mut header = shaped("(20000, 20000)");
        header.truncate(header.len() - 64);
        header.resize(header.len() + (40 << 20), 0);
        archive(&[("a.npy", header)])
    };
    vec![
        npz(
            "NPZ: cut short",
            whole[..whole.len() / 2].to_vec(),
            &["k.npz"],
        ),
        npz("NPZ: only its mark", b"PK\x03\x04".to_vec(), &["k.npz"]),
        npz("NPZ: changed bytes", changed, &["k.npz"]),
        npz("NPZ: nothing in it", archive(&[]), &["k.npz"]),
        npz(
            "NPZ: other files in it",
            archive(&[("readme.txt", b"hello".to_vec())]),
            &["k.npz"],
        ),
        npz(
            "NPZ: a name that leads elsewhere",
            archive(&[("../../a.npy", b"hello".to_vec())]),
            &["k.npz"],
        ),
        npz(
            "NPZ: an array of other bytes",
            archive(&[("a.npy", b"hello".to_vec())]),
            &["k.npz"],
        ),
        npz("NPZ: a bomb", bomb, &["k.npz"]),
        npz(
            "NPZ: objects",
            archive(&[("a.npy", typed("'|O'"))]),
            &["items of type `|O`"],
        ),
        file(
            "NPZ: as a table",
            "x.npz",
            whole,
            "fit x.npz --target label",
            &["x.npz"],
        ),
    ]
}

pub(super) fn cases() -> Vec<Case> {
    [arrays(), archives()].into_iter().flatten().collect()
}
