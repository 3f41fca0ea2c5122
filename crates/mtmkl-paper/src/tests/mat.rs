//! MATLAB files.

use std::io::Write;

use crate::mat::{Value, from_bytes};

/// An element with its padding.
fn element(kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = [
        kind.to_le_bytes(),
        u32::try_from(data.len()).unwrap().to_le_bytes(),
    ]
    .concat();
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// Flags, dimensions and a name, before the content.
fn variable(class: u32, shape: [i32; 2], name: &str, content: &[u8]) -> Vec<u8> {
    let mut inside = element(6, &[class.to_le_bytes(), [0; 4]].concat());
    inside.extend(element(
        5,
        &[shape[0].to_le_bytes(), shape[1].to_le_bytes()].concat(),
    ));
    inside.extend(element(1, name.as_bytes()));
    inside.extend(content);
    element(14, &inside)
}

fn doubles(values: &[f64]) -> Vec<u8> {
    element(
        9,
        &values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect::<Vec<u8>>(),
    )
}

fn packed(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(data).unwrap();
    let data = encoder.finish().unwrap();
    // Without padding.
    [
        &15_u32.to_le_bytes()[..],
        &u32::try_from(data.len()).unwrap().to_le_bytes(),
        &data,
    ]
    .concat()
}

fn file(variables: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"MATLAB 5.0 MAT-file".to_vec();
    bytes.resize(124, b' ');
    bytes.extend([0, 1, b'I', b'M']);
    bytes.extend(variables.concat());
    bytes
}

/// What the landmine file is made of: two rows of cells, one with packed doubles, one with bytes in a double matrix.
fn sample() -> Vec<u8> {
    let cell = variable(6, [2, 2], "", &doubles(&[1.0, 2.0, 3.0, -0.5]));
    let feature = variable(1, [1, 2], "feature", &[cell.clone(), cell].concat());
    // Four bytes or fewer stand in the tag itself: length in the upper half.
    let small = [(2_u32 | 2 << 16).to_le_bytes(), [0, 1, 0, 0]].concat();
    let label = variable(6, [2, 1], "label", &small);
    let text = variable(4, [1, 1], "note", &element(16, b"x"));
    file(&[packed(&feature), label, text])
}

#[test]
fn cells_matrices_and_what_is_passed_over() {
    let read = from_bytes("a", &sample(), 1 << 20).unwrap();
    let matrix = Value::Matrix {
        rows: 2,
        columns: 2,
        values: vec![1.0, 2.0, 3.0, -0.5],
    };
    assert_eq!(
        read[0],
        (
            "feature".to_string(),
            Value::Cells(vec![matrix.clone(), matrix])
        )
    );
    assert_eq!(
        read[1],
        (
            "label".to_string(),
            Value::Matrix {
                rows: 2,
                columns: 1,
                values: vec![0.0, 1.0]
            }
        )
    );
    assert_eq!(read[2], ("note".to_string(), Value::Other));
}

#[test]
fn big_endian() {
    let mut bytes = b"MATLAB".to_vec();
    bytes.resize(124, b' ');
    bytes.extend([1, 0, b'M', b'I']);
    let word = |value: u32| value.to_be_bytes();
    let mut inside = [
        word(6),
        word(8),
        word(6),
        word(0),
        word(5),
        word(8),
        word(1),
        word(1),
        word(1),
        word(1),
    ]
    .concat();
    inside.extend([b'x', 0, 0, 0, 0, 0, 0, 0]);
    inside.extend([word(9), word(8)].concat());
    inside.extend(2.5_f64.to_be_bytes());
    bytes.extend([word(14), word(u32::try_from(inside.len()).unwrap())].concat());
    bytes.extend(inside);
    let expected = Value::Matrix {
        rows: 1,
        columns: 1,
        values: vec![2.5],
    };
    assert_eq!(
        from_bytes("a", &bytes, 1 << 20).unwrap(),
        [("x".to_string(), expected)]
    );
}

#[test]
fn files_that_contradict_themselves() {
    let message = |bytes: &[u8], limit| from_bytes("a.mat", bytes, limit).unwrap_err().to_string();
    assert!(message(&[0; 20], 99).contains("shorter than its header"));
    assert!(message(&[0; 200], 99).contains("version 5"));
    assert!(message(b"\x89HDF\r\n", 99).contains("save -v7"));
    let short = file(&[variable(6, [3, 1], "x", &doubles(&[1.0]))]);
    assert!(message(&short, 1 << 20).contains("not as many numbers"));
    let few = file(&[variable(
        1,
        [1, 9],
        "x",
        &variable(6, [1, 1], "", &doubles(&[1.0])),
    )]);
    assert!(message(&few, 1 << 20).contains("not as many cells"));
    // A small file that unpacks to a large one.
    let zeros = file(&[packed(&vec![0; 1 << 22])]);
    assert!(zeros.len() < 1 << 16);
    assert!(
        message(&zeros, 1 << 20).contains("limit"),
        "{}",
        message(&zeros, 1 << 20)
    );
    let mut deep = variable(6, [1, 1], "", &doubles(&[1.0]));
    for _ in 0..20 {
        deep = variable(1, [1, 1], "", &deep);
    }
    assert!(message(&file(&[deep]), 1 << 20).contains("nested"));
}

#[test]
fn any_bytes_are_read_or_refused() {
    super::any_bytes(|bytes| drop(from_bytes("a", bytes, 1 << 20)), &sample());
}

#[test]
fn a_number_without_dimensions_is_refused() {
    // Found by fuzzing: the product of no lengths is one.
    let mut inside = element(6, &[6_u32.to_le_bytes(), [0; 4]].concat());
    inside.extend(element(5, &[]));
    inside.extend(element(1, b"x"));
    inside.extend(doubles(&[1.0]));
    let error = from_bytes("a", &file(&[element(14, &inside)]), 1 << 20).unwrap_err();
    assert!(
        error.to_string().contains("fewer than two dimensions"),
        "{error}"
    );
}
