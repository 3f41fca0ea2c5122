//! The system refuses memory (`ulimit -v`): an error that says so where it is known beforehand, the allocator's last word where it is not, and
//! in no case is a file lost.

use mtmkl::Model;

use super::bytes::limited;
use super::{files, litter, rounds};
use crate::fixture::noise;

const MEBI: u64 = 1 << 20;
/// The program itself, as it is loaded.
const BEGUN: u64 = 64 * MEBI;

#[test]
fn refused_memory_costs_no_file() {
    let folder = files();
    std::fs::copy(folder.path("two.model"), folder.path("m")).unwrap();
    let before = std::fs::read(folder.path("m")).unwrap();
    folder.file("large.csv", noise(3000));
    let (mut refused, mut ended, mut good) = (0, 0, 0);
    let most = rounds(12);
    for round in 0..most {
        std::fs::write(folder.path("m"), &before).unwrap();
        // From too little to begin with to enough; with less still, the system does not start a program.
        let limit = (24 + 400 * round as u64 / most as u64) * MEBI;
        let ran = limited(
            &folder,
            &format!("--as={limit}"),
            "fit large.csv --target label --task site --kernel rbf:sigma=1|2|4 --threads 2 --max-passes 2 -o m",
        );
        assert!(!ran.stderr.contains("internal error"), "{}", ran.stderr);
        match ran.code {
            0 | 1 => {
                good += 1;
                assert!(Model::load(folder.path("m")).is_ok());
            }
            // The loader's or the allocator's last word before the program has begun, or ours.
            code => {
                assert!(
                    code == 2 || limit < BEGUN,
                    "exit {code} at {limit}: {}",
                    ran.stderr
                );
                assert_eq!(std::fs::read(folder.path("m")).unwrap(), before);
                assert!(!ran.stderr.is_empty(), "exit {code} without a word");
                refused += usize::from(code == 2);
                ended += usize::from(code != 2);
            }
        }
    }
    println!("{refused} refused with an error, {ended} ended by the system, {good} good");
    assert!(good > 0 && refused + ended > 0);
    folder.run("fit two.csv --target label -o m").good();
    assert_eq!(litter(folder.root()), Vec::<String>::new());
}

#[test]
fn too_little_to_begin_with_is_said() {
    let folder = files();
    let fit = "fit two.csv --target label --threads 2";
    let said = limited(&folder, &format!("--as={}", 128 * MEBI), fit).bad();
    assert!(
        said.contains("128.0 MiB of addresses (ulimit -v)"),
        "{said}"
    );
    assert!(said.contains("2 threads: 160.0 MiB is the least"), "{said}");
}

/// What will not fit into what the system lets the program have is known before the work.
#[test]
fn the_systems_limit_is_a_limit_of_memory() {
    let folder = files();
    folder.file("large.csv", noise(6000));
    let fit = "fit large.csv --target label --kernel rbf:sigma=1|2|4|8 --threads 1 --storage kept";
    let ran = limited(&folder, &format!("--as={}", 700 * MEBI), fit);
    let said = ran.bad();
    assert!(said.contains("over the limit of"), "{said}");
    assert!(
        said.contains("--storage") || said.contains("--sample"),
        "{said}"
    );
}
