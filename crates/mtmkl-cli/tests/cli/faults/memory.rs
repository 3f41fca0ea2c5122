//! The system refuses memory (`ulimit -v`): an error that says so where it is known beforehand, the allocator's last word and the code of an error where
//! it is not, and in no case is a file lost.

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

/// What the allocator itself is refused is no signal either, whichever the command: an error with a line that says so.
#[test]
fn no_command_is_ended_by_the_system() {
    let folder = files();
    folder.file("large.csv", noise(20_000));
    let fit = "fit large.csv --target label --task site --kernel rbf:sigma=1 --sample 400 --threads 1 -o m";
    assert!(folder.run(fit).code < 2);
    let (mut refused, mut good) = (0, 0);
    for command in [
        "fit large.csv --target label --task site --sample 400 -o other --threads 1",
        "tune large.csv --target label --task site --sample 400 -o other --threads 1 --folds 2",
        "predict m large.csv --threads 1",
        "evaluate m large.csv --threads 1",
        "verify m large.csv --threads 1",
        "inspect m",
        "report m -o r.html",
    ] {
        let most = rounds(3) as u64;
        for round in 0..most {
            // From what the system can just load the program with to what most commands have enough with.
            let limit = (40 + 60 * round / most) * MEBI;
            let ran = limited(&folder, &format!("--as={limit}"), command);
            let said = format!("{command} at {limit}: exit {}, {}", ran.code, ran.stderr);
            assert!(!said.contains("internal error"), "{said}");
            assert!((0..=2).contains(&ran.code), "{said}");
            let is_said = ["memory", "of addresses"]
                .iter()
                .any(|word| ran.stderr.contains(word));
            assert!(ran.code < 2 || is_said, "{said}");
            refused += usize::from(ran.code == 2);
            good += usize::from(ran.code != 2);
            let _ = std::fs::remove_file(folder.path("mtmkl-tune.journal"));
        }
    }
    println!("{refused} refused with an error, {good} good");
    assert!(good > 0 && refused > 0);
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
