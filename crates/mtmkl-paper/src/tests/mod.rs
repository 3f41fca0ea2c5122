//! Tests of the two readers: a valid file, then one fault each.

mod idx;
mod mat;

/// Random bytes, and a valid file with a few bytes changed or cut off: whatever comes, it is read or refused, and never a panic.
fn any_bytes(read: impl Fn(&[u8]), valid: &[u8]) {
    let mut random = mtmkl::random::Random::new(11);
    for _ in 0..20_000 {
        let mut bytes = valid.to_vec();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len());
            bytes[at] = match random.below(3) {
                0 => 0xff,
                1 => 0,
                _ => u8::try_from(random.below(256)).unwrap(),
            };
        }
        bytes.truncate(valid.len() - random.below(3) * random.below(valid.len()) / 2);
        read(&bytes);
    }
}
