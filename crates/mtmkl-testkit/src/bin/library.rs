//! The library: `library` runs it and prints the page; `library bounds FILE` writes its lines again, with bounds for those that have none.
fn main() {}
