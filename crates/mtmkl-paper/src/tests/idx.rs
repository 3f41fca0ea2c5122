//! IDX arrays.

use crate::idx::{Array, from_bytes};

fn file(kind: u8, shape: &[u32], data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, kind, u8::try_from(shape.len()).unwrap()];
    bytes.extend(shape.iter().flat_map(|length| length.to_be_bytes()));
    bytes.extend(data);
    bytes
}

#[test]
fn items_of_every_type() {
    let read = |kind, data: &[u8]| {
        from_bytes("a", &file(kind, &[2], data), 1 << 20)
            .unwrap()
            .values
    };
    assert_eq!(read(0x08, &[0, 255]), [0.0, 255.0]);
    assert_eq!(read(0x09, &[1, 255]), [1.0, -1.0]);
    assert_eq!(read(0x0b, &[1, 0, 255, 254]), [256.0, -2.0]);
    assert_eq!(read(0x0c, &[0, 0, 1, 0, 255, 255, 255, 255]), [256.0, -1.0]);
    assert_eq!(
        read(
            0x0d,
            &[1.5_f32.to_be_bytes(), (-2.0_f32).to_be_bytes()].concat()
        ),
        [1.5, -2.0]
    );
    assert_eq!(
        read(
            0x0e,
            &[0.1_f64.to_be_bytes(), 3.0_f64.to_be_bytes()].concat()
        ),
        [0.1, 3.0]
    );
    let images = from_bytes("a", &file(8, &[2, 1, 3], &[1, 2, 3, 4, 5, 6]), 1 << 20).unwrap();
    assert_eq!(
        images,
        Array {
            shape: vec![2, 1, 3],
            values: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
        }
    );
}

#[test]
fn lengths_that_lie() {
    let message = |bytes: &[u8], limit| from_bytes("a.idx", bytes, limit).unwrap_err().to_string();
    let good = file(8, &[2, 3], &[0; 6]);
    for cut in 0..good.len() {
        assert!(message(&good[..cut], 1 << 20).contains("a.idx is not a readable IDX file"));
    }
    // 4 Gi × 4 Gi × 4 Gi items: no memory is taken for them.
    let large = file(8, &[u32::MAX, u32::MAX, u32::MAX], &[0; 16]);
    assert!(message(&large, 1 << 40).contains("but 16 bytes follow"));
    assert!(
        message(&file(8, &[6], &[0; 6]), 40).contains("takes 48 bytes"),
        "{}",
        message(&file(8, &[6], &[0; 6]), 40)
    );
    assert!(message(&file(7, &[1], &[0]), 99).contains("0x07"));
    assert!(message(b"a,b\n1,2\n", 99).contains("zero bytes"));
    assert_eq!(
        from_bytes("a", &file(8, &[0, u32::MAX], &[]), 99)
            .unwrap()
            .values,
        [0.0; 0]
    );
}

#[test]
fn any_bytes_are_read_or_refused() {
    super::any_bytes(
        |bytes| drop(from_bytes("a", bytes, 1 << 20)),
        &file(8, &[2, 2], &[1, 2, 3, 4]),
    );
}
