//! Everything large is in the ledger: an allocator that counts finds no buffer of a megabyte or more that was not taken from it, and the limit holds.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "an allocator is written in it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};

use mtmkl::kernel::parse_kernels;
use mtmkl::ledger::LARGE;
use mtmkl::machine::{MachineSpec, TargetKind};
use mtmkl::sharing::SharingSpec;
use mtmkl::{
    Error, Fitting, Ledger, Pool, Precision, Preparation, Problem, ProblemSpec, Samples, Storage,
    Targets, Task,
};
use mtmkl_testkit::generate::{self, Random};

/// Counts what is allocated.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static ARMED: AtomicBool = AtomicBool::new(false);
/// Bytes that are allocated, of any size, and those that were when counting began.
static LIVE: AtomicU64 = AtomicU64::new(0);
static BEFORE: AtomicU64 = AtomicU64::new(0);
/// Large buffers that were asked for since.
static SEEN: AtomicUsize = AtomicUsize::new(0);
/// By how much what was allocated since was more than was taken, at most.
static EXCESS: AtomicU64 = AtomicU64::new(0);
static LEDGER: RwLock<Option<Ledger>> = RwLock::new(None);
/// One test at a time.
static TURN: Mutex<()> = Mutex::new(());

/// What is there must be in the ledger when a large buffer is asked for, and when it is given back; the new one may be taken right after.
fn look(size: usize) {
    if size < LARGE || !ARMED.load(Ordering::SeqCst) {
        return;
    }
    if let Ok(ledger) = LEDGER.try_read()
        && let Some(ledger) = &*ledger
    {
        let known = BEFORE.load(Ordering::SeqCst) + ledger.taken();
        let more = LIVE.load(Ordering::SeqCst).saturating_sub(known);
        EXCESS.fetch_max(more, Ordering::SeqCst);
    }
}

/// What a matrix product of the linear algebra library packs its panels into, for each thread while it lasts.
const PANELS: usize = 4 << 20;

fn allocated(size: usize) {
    if size == PANELS {
        return;
    }
    look(size);
    SEEN.fetch_add(usize::from(size >= LARGE), Ordering::SeqCst);
    LIVE.fetch_add(size as u64, Ordering::SeqCst);
}

fn freed(size: usize) {
    if size == PANELS {
        return;
    }
    look(size);
    LIVE.fetch_sub(size as u64, Ordering::SeqCst);
}

// SAFETY: everything is the system allocator's; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is passed on.
        let pointer = unsafe { System.alloc(layout) };
        allocated(layout.size());
        pointer
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is passed on.
        let pointer = unsafe { System.alloc_zeroed(layout) };
        allocated(layout.size());
        pointer
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        freed(layout.size());
        // SAFETY: the caller's promise is passed on.
        let moved = unsafe { System.realloc(pointer, layout, size) };
        allocated(size);
        moved
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        freed(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) };
    }
}

/// Runs `work` with a ledger of so many bytes; gives back its result, large buffers seen, and by how much they were more than was taken.
fn counted<R>(limit: u64, work: impl FnOnce(&Ledger) -> R) -> (R, usize, u64, Ledger) {
    let ledger = Ledger::new(limit);
    *LEDGER.write().unwrap() = Some(ledger.clone());
    BEFORE.store(LIVE.load(Ordering::SeqCst), Ordering::SeqCst);
    SEEN.store(0, Ordering::SeqCst);
    EXCESS.store(0, Ordering::SeqCst);
    ARMED.store(true, Ordering::SeqCst);
    let result = work(&ledger);
    ARMED.store(false, Ordering::SeqCst);
    *LEDGER.write().unwrap() = None;
    let (seen, excess) = (SEEN.load(Ordering::SeqCst), EXCESS.load(Ordering::SeqCst));
    (result, seen, excess, ledger)
}

/// More than a megabyte a matrix, less than what is mapped from the system past the allocator.
const N: usize = 480;

fn problem(machine: &MachineSpec, targets: TargetKind, tasks: usize) -> Problem {
    let mut random = Random::new(31);
    let points = generate::points(&mut random, N, 4);
    let tasks = (0..tasks)
        .map(|task| {
            let labels = generate::labels(&mut random, &points, N, 4);
            let targets = match targets {
                TargetKind::Labels => Targets::Labels(labels),
                TargetKind::Values => Targets::Values(labels),
                TargetKind::Unlabelled => Targets::Unlabelled,
            };
            Task::new(format!("task {task}"), targets)
        })
        .collect();
    // No more than two with one base: matrices that are made together stay below what is mapped.
    let mut kernels = parse_kernels("rbf:gamma=0.1|1").unwrap();
    for other in ["poly", "linear", "laplacian"] {
        kernels.extend(parse_kernels(other).unwrap());
    }
    let sharing = if machine.name() == "svdd" {
        SharingSpec::simplex()
    } else {
        SharingSpec::pscs(1.5, 1.0, 1.0)
    };
    let spec = ProblemSpec::new(kernels, machine.clone(), sharing);
    Problem::new(spec, vec![Samples::new(points, N, 4).unwrap()], tasks).unwrap()
}

#[test]
fn every_large_buffer_is_taken_from_the_ledger() {
    let _turn = TURN
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let pool = Pool::new(1).unwrap();
    let mut machines: Vec<(MachineSpec, TargetKind)> = mtmkl::Registry::default()
        .machines()
        .iter()
        .map(|info| ((info.examples)().remove(0), info.targets))
        .collect();
    // Interior points.
    machines.push((MachineSpec::svc(1e5), TargetKind::Labels));
    for (machine, targets) in machines {
        for storage in [Storage::Kept, Storage::Mapped] {
            for precision in [Precision::Double, Precision::Single] {
                let problem = problem(&machine, targets, 2);
                let fit = |ledger: &Ledger| {
                    let preparation = Preparation {
                        ledger: ledger.clone(),
                        storage: Some(storage),
                        precision,
                        pool: Some(pool.clone()),
                        ..Preparation::default()
                    };
                    let prepared = problem.prepare(&preparation).unwrap();
                    prepared.fit(&mut Fitting::default()).unwrap()
                };
                let (model, seen, excess, ledger) = counted(u64::MAX, fit);
                let what = format!("{machine:?}, {storage:?}, {precision:?}");
                assert!(seen >= 1, "{what}: no large buffer");
                // What is small need not be taken, as long as it is little: less than a matrix.
                assert!(
                    excess < 3 * LARGE as u64 / 2,
                    "{what}: {excess} bytes beside the ledger"
                );
                assert!(ledger.peak() > LARGE as u64 && model.outcome().gap < 0.1);
            }
        }
    }
}

#[test]
fn the_limit_holds_from_the_least_to_the_most_and_changes_no_answer() {
    let _turn = TURN
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let pool = Pool::new(2).unwrap();
    for info in mtmkl::Registry::default().machines() {
        let machine = (info.examples)().remove(0);
        let problem = problem(&machine, info.targets, 3);
        let fit = |limit: u64| -> Result<(f64, Storage, u64), Error> {
            let ledger = Ledger::new(limit);
            let prepared = problem.prepare(&Preparation {
                ledger: ledger.clone(),
                pool: Some(pool.clone()),
                ..Preparation::default()
            })?;
            let model = prepared.fit(&mut Fitting {
                tolerance: 1e-3,
                ..Fitting::default()
            })?;
            let outcome = model.outcome();
            assert!(outcome.status.is_converged(), "{machine:?}: {outcome:?}");
            Ok((outcome.objective, prepared.storage(), ledger.peak()))
        };
        let (objective, _, most) = fit(1 << 40).unwrap();
        let (mut fitted, mut refused, mut made) = (0, 0, 0);
        for share in 1..=12 {
            let limit = most * share / 8;
            match fit(limit) {
                Ok((other, storage, peak)) => {
                    assert!(peak <= limit, "{machine:?}: {peak} of {limit}");
                    let difference = (other - objective).abs();
                    assert!(difference <= 2e-3 * objective.abs(), "{machine:?}");
                    fitted += 1;
                    made += usize::from(storage == Storage::Mapped);
                }
                Err(Error::Memory {
                    needed,
                    limit: told,
                    ..
                }) => {
                    assert!(needed > limit && told == limit);
                    refused += 1;
                }
                Err(other) => panic!("{machine:?}: {other}"),
            }
        }
        assert!(
            fitted >= 4 && refused >= 2 && made >= 1,
            "{machine:?}: {fitted} {refused} {made}"
        );
    }
}
