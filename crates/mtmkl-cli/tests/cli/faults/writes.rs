//! The disk is full, or a write fails, wherever that happens: an error that says so, and nothing that was there is lost.

use std::path::Path;
use std::process::Command;

use mtmkl::Model;
use mtmkl::random::Random;

use super::bytes::limited;
use super::{files, litter, rounds};
use crate::fixture::{Folder, Ran, finished, two_tasks};

/// A command that writes `file`.
struct Write {
    file: &'static str,
    command: &'static str,
}

const WRITES: [Write; 3] = [
    Write {
        file: "m",
        command: "fit two.csv --target label --kernel linear --kernel rbf --C 3 -o m",
    },
    Write {
        file: "page.html",
        command: "report tasks.model -o page.html",
    },
    Write {
        file: "out.csv",
        command: "predict two.model many.csv --decision -o out.csv",
    },
];

/// The file is what it was, or the run was good and the file is whole.
fn assert_nothing_lost(write: &Write, path: &Path, ran: &Ran, old: &[u8], whole: usize) {
    assert!(!ran.stderr.contains("internal error"), "{}", ran.stderr);
    let found = std::fs::read(path).unwrap();
    match ran.code {
        0 => {
            assert_ne!(found, old, "{}", write.command);
            // Times in it have more digits or fewer.
            assert!(found.len().abs_diff(whole) < 100, "{}", write.command);
        }
        2 => {
            assert_eq!(found, old, "{}: {}", write.command, ran.stderr);
            assert!(
                ran.stderr.contains("File too large") || ran.stderr.contains("No space left"),
                "{}",
                ran.stderr
            );
        }
        code => panic!("{}: exit {code}: {}", write.command, ran.stderr),
    }
}

#[test]
fn a_write_that_fails_anywhere_leaves_what_was_there() {
    let folder = files();
    let mut random = Random::new(11);
    for write in &WRITES {
        let path = folder.path(write.file);
        folder.run(write.command).good();
        let whole = std::fs::metadata(&path).unwrap().len();
        let whole = usize::try_from(whole).unwrap();
        std::fs::write(&path, "what was there").unwrap();
        let mut refused = 0;
        for round in 0..rounds(10) {
            // At the very first byte too, and at the very last.
            let most = match round {
                0 => 0,
                1 => whole - 200,
                _ => random.below(whole + whole / 8),
            };
            std::fs::write(&path, "what was there").unwrap();
            let ran = limited(&folder, &format!("--fsize={most}"), write.command);
            assert_nothing_lost(write, &path, &ran, b"what was there", whole);
            refused += usize::from(ran.code == 2);
            assert_eq!(litter(folder.root()), Vec::<String>::new());
        }
        assert!(refused >= 2, "{refused}");
    }
}

/// A search of which any write fails: of its journal, of fits to start from, of the model.
#[test]
fn a_search_whose_writes_fail_goes_on_exactly() {
    let folder = Folder::new();
    folder.file("t.csv", two_tasks(80));
    let flags = "tune t.csv --target label --task site --grid C=1/9,1,9 --grid q=1,1.5 --folds 2 -o m --json";
    let cells = |ran: &Ran| {
        let mut cells = ran.json()["tune"]["cells"].clone();
        for cell in cells.as_array_mut().unwrap() {
            cell.as_object_mut().unwrap().remove("seconds");
        }
        cells
    };
    let run = folder.run(flags);
    let expected = cells(&run);
    let model = std::fs::read(folder.path("m")).unwrap();
    let objective = Model::from_bytes(&model).unwrap().outcome().objective;
    let mut random = Random::new(12);
    let (mut begun, mut resumed) = (0, 0);
    for _ in 0..rounds(10) {
        std::fs::write(folder.path("m"), &model).unwrap();
        let most = random.below(model.len() + 2000);
        let ran = limited(&folder, &format!("--fsize={most}"), flags);
        assert!(!ran.stderr.contains("internal error"), "{}", ran.stderr);
        assert!(
            ran.code == 0 || ran.stderr.contains("File too large"),
            "{}",
            ran.stderr
        );
        let kept = Model::load(folder.path("m")).unwrap().outcome().objective;
        assert_eq!(kept.to_bits(), objective.to_bits());
        begun += usize::from(ran.code == 2);
        let again = folder.run(&format!("{flags} --resume")).json();
        resumed += usize::from(again["tune"]["computed"] != again["tune"]["fits"]);
        let mut found = again["tune"]["cells"].clone();
        for cell in found.as_array_mut().unwrap() {
            cell.as_object_mut().unwrap().remove("seconds");
        }
        assert_eq!(found, expected);
        assert!(!folder.path("mtmkl-tune.journal").exists());
    }
    println!("{begun} failed, {resumed} went on with what was kept");
    assert!(begun > 0);
}

/// A small disk, or the reason why there is none.
struct Disk<'a>(&'a Path);

impl<'a> Disk<'a> {
    fn new(folder: &'a Path, bytes: usize) -> Result<Self, String> {
        std::fs::create_dir_all(folder).unwrap();
        let size = format!("size={bytes}");
        let ran = finished(
            Command::new("mount")
                .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
                .arg(folder),
        );
        if ran.code == 0 {
            Ok(Self(folder))
        } else {
            Err(ran.stderr)
        }
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_leaves_what_was_there() {
    let folder = files();
    let mut random = Random::new(13);
    let mut refused = 0;
    for round in 0..rounds(10) {
        let write = &WRITES[round % WRITES.len()];
        folder.run(write.command).good();
        let whole = std::fs::metadata(folder.path(write.file)).unwrap().len();
        let whole = usize::try_from(whole).unwrap();
        // Whole pages, of which the file that is there takes one.
        let pages = 3 + random.below(whole / 4096 + 3);
        let disk = folder.path("disk");
        let disk = match Disk::new(&disk, pages * 4096) {
            Ok(disk) => disk,
            Err(reason) => {
                println!("skipped: no disk can be made here ({})", reason.trim());
                return;
            }
        };
        let path = disk.0.join(write.file);
        std::fs::write(&path, "what was there").unwrap();
        let end = format!(" {}", write.file);
        let command = write.command.strip_suffix(&end).unwrap();
        // What cannot be saved is not to be kept elsewhere on this disk either.
        let ran = finished(
            folder
                .command()
                .env("TMPDIR", disk.0)
                .args(command.split_whitespace())
                .arg(&path),
        );
        assert_nothing_lost(write, &path, &ran, b"what was there", whole);
        refused += usize::from(ran.code == 2);
        assert_eq!(litter(disk.0), Vec::<String>::new());
    }
    assert!(refused > 0);
}
