//! What integration tests share.
#![allow(
    unused_imports,
    unreachable_pub,
    reason = "each test takes what it needs"
)]

pub use mtmkl_testkit::small::*;
