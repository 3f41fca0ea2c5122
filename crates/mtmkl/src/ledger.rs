//! One account of all large memory: taken − given back ≤ limit.
//!
//! A plan says how much a problem needs before anything is allocated. Whatever is above [`LARGE`] bytes is then taken from the ledger
//! and given back when it is dropped, so that what was planned can be compared with what was taken, and that with what the process had.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// From this many bytes on, a buffer must be in the ledger. Smaller ones may be.
pub const LARGE: usize = 1 << 20;

/// How many bytes may be taken, are taken, and were taken at most. A clone is the same account.
#[derive(Debug, Clone)]
pub struct Ledger {
    account: Arc<Account>,
}

#[derive(Debug)]
struct Account {
    limit: u64,
    taken: AtomicU64,
    peak: AtomicU64,
}

impl Default for Ledger {
    /// Counts, and limits nothing.
    fn default() -> Self {
        Self::new(u64::MAX)
    }
}

impl Ledger {
    /// Nothing taken, of so many bytes.
    pub fn new(limit: u64) -> Self {
        Self {
            account: Arc::new(Account {
                limit,
                taken: AtomicU64::new(0),
                peak: AtomicU64::new(0),
            }),
        }
    }

    /// Bytes that may be taken.
    pub fn limit(&self) -> u64 {
        self.account.limit
    }

    /// Bytes that are taken now.
    pub fn taken(&self) -> u64 {
        self.account.taken.load(Ordering::Relaxed)
    }

    /// The most that was taken at a time.
    pub fn peak(&self) -> u64 {
        self.account.peak.load(Ordering::Relaxed)
    }

    /// Bytes that are left.
    pub fn left(&self) -> u64 {
        self.limit().saturating_sub(self.taken())
    }

    /// Takes what was planned. The plan has compared it with the limit: nothing fails half-way.
    pub fn take(&self, bytes: u64) -> Guard {
        self.add(bytes);
        Guard {
            ledger: self.clone(),
            bytes,
        }
    }

    /// Zeros, taken.
    pub fn zeros<T: Clone + Default>(&self, count: usize) -> Buffer<T> {
        let guard = self.take(bytes_of::<T>(count));
        Buffer {
            values: vec![T::default(); count],
            guard,
        }
    }

    /// These values, taken from now on.
    pub fn hold<T>(&self, values: Vec<T>) -> Buffer<T> {
        let guard = self.take(bytes_of::<T>(values.capacity()));
        Buffer { values, guard }
    }

    fn add(&self, bytes: u64) {
        let before = self.account.taken.fetch_add(bytes, Ordering::Relaxed);
        let now = before.saturating_add(bytes);
        self.account.peak.fetch_max(now, Ordering::Relaxed);
    }

    fn remove(&self, bytes: u64) {
        self.account.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Bytes of so many values.
pub fn bytes_of<T>(count: usize) -> u64 {
    (count as u64).saturating_mul(size_of::<T>() as u64)
}

/// Bytes that are taken until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Guard {
    ledger: Ledger,
    bytes: u64,
}

impl Guard {
    /// How many.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// So many more.
    pub fn grow(&mut self, bytes: u64) {
        self.ledger.add(bytes);
        self.bytes += bytes;
    }
}

impl Clone for Guard {
    /// What is held twice is taken twice.
    fn clone(&self) -> Self {
        self.ledger.take(self.bytes)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.ledger.remove(self.bytes);
    }
}

/// Values whose memory is taken from a ledger.
#[derive(Debug, Clone)]
pub struct Buffer<T> {
    values: Vec<T>,
    guard: Guard,
}

impl<T> Buffer<T> {
    /// Bytes that are taken for it.
    pub fn bytes(&self) -> u64 {
        self.guard.bytes()
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.values
    }
}

impl<T> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_given_back() {
        let ledger = Ledger::new(1000);
        let buffer: Buffer<f64> = ledger.zeros(10);
        assert_eq!(
            (ledger.taken(), ledger.left(), buffer.bytes()),
            (80, 920, 80)
        );
        let twice = buffer.clone();
        let mut guard = ledger.take(100);
        guard.grow(20);
        assert_eq!(ledger.taken(), 280);
        drop((buffer, guard));
        assert_eq!((ledger.taken(), ledger.peak()), (80, 280));
        drop(twice);
        assert_eq!(
            (ledger.taken(), ledger.peak(), ledger.left()),
            (0, 280, 1000)
        );
    }

    #[test]
    fn a_clone_is_the_same_account() {
        let ledger = Ledger::default();
        let held = ledger.clone().hold(vec![1_u8, 2, 3]);
        assert_eq!(held[..], [1, 2, 3]);
        assert!(ledger.taken() >= 3);
    }
}
