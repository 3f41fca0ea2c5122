//! Files that change while they are read: what was read is used or refused, and never a fault of ours.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use mtmkl::random::Random;

use super::{files, rounds};
use crate::fixture::{Folder, two_classes};
use crate::precomputed::npy;

/// Somebody else who cuts a file, makes it longer, and puts it back, all the time.
struct Meddler {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Meddler {
    fn with(path: PathBuf, seed: u64) -> Self {
        let whole = std::fs::read(&path).unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let mut random = Random::new(seed);
            while !over.load(Ordering::Relaxed) {
                let mut file = std::fs::File::options().write(true).open(&path).unwrap();
                match random.below(4) {
                    0 => file.set_len(random.below(whole.len()) as u64).unwrap(),
                    1 => file.set_len(2 * whole.len() as u64).unwrap(),
                    2 => file
                        .write_all(&vec![b'7'; random.below(whole.len())])
                        .unwrap(),
                    _ => {
                        file.write_all(&whole).unwrap();
                        file.set_len(whole.len() as u64).unwrap();
                    }
                }
                std::thread::sleep(std::time::Duration::from_micros(random.below(3000) as u64));
            }
            std::fs::write(&path, whole).unwrap();
        });
        Self {
            is_over,
            thread: Some(thread),
        }
    }
}

impl Drop for Meddler {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let thread = self.thread.take();
        let joined = thread.map(JoinHandle::join);
        assert!(joined.is_some_and(|ended| ended.is_ok()));
    }
}

fn folder() -> Folder {
    let folder = files();
    let gram: Vec<f64> = (0..600 * 600)
        .map(|k| (-1e-4 * f64::from(k / 600 - k % 600).powi(2)).exp())
        .collect();
    folder
        .file("gram.npy", npy(&gram, 600))
        .file("600.csv", two_classes(600))
        .file(
            "x.parquet",
            include_bytes!("../../../src/input/tests/fixtures/snappy.parquet"),
        );
    folder
}

#[test]
fn a_file_that_changes_is_used_or_refused() {
    let folder = folder();
    let mut answers = [0, 0];
    for (number, (file, command)) in [
        ("many.csv", "predict two.model many.csv -o out.csv"),
        ("many.csv", "fit many.csv --target label --sample 50 --kernel linear"),
        ("two.model", "inspect two.model"),
        (
            "gram.npy",
            "fit 600.csv --target label --kernel precomputed:path=gram.npy --allow-indefinite --max-passes 1",
        ),
        ("x.parquet", "fit x.parquet --target nothing-of-this-name"),
    ]
    .into_iter()
    .enumerate()
    {
        let _meddler = Meddler::with(folder.path(file), number as u64);
        for _ in 0..rounds(8) {
            let ran = folder.run(command);
            assert!((0..=2).contains(&ran.code), "{command}: {}", ran.stderr);
            assert!(!ran.stderr.contains("internal error"), "{command}: {}", ran.stderr);
            assert!(!ran.stderr.contains("panicked"), "{command}: {}", ran.stderr);
            assert!(ran.code < 2 || !ran.stderr.is_empty(), "{command}");
            answers[usize::from(ran.code == 2)] += 1;
        }
    }
    println!("{} used, {} refused", answers[0], answers[1]);
    assert!(answers[1] > 0, "it was always read between two changes");
}
