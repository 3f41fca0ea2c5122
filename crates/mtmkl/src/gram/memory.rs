//! Memory for Gram matrices that are computed here.

use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::MmapMut;

use crate::ledger::{self, Guard, Ledger};
use crate::platform;

/// From this many bytes on, memory is taken from the system in huge pages.
const LARGE: usize = 4 << 20;

/// The values of matrices that are computed here, one matrix after the other, row by row.
///
/// Writing to fresh memory is mostly the system's work: it clears every page on its first use. With pages of 2 MiB in place of
/// 4 KiB that takes a quarter of the time, and reading rows later needs fewer address translations.
#[derive(Debug)]
pub(crate) struct Memory<T> {
    pages: Pages<T>,
    _taken: Option<Guard>,
}

#[derive(Debug)]
enum Pages<T> {
    Small(Vec<T>),
    Large(MmapMut),
}

impl<T: Pod> Memory<T> {
    /// Zeros that stay. They are taken from the ledger however few: many small matrices are much.
    pub(crate) fn zeros(count: usize, ledger: &Ledger) -> Self {
        let taken = ledger.take(ledger::bytes_of::<T>(count));
        Self::with(count, Some(taken))
    }

    /// Zeros that do not stay: taken from the ledger if they are many.
    pub(crate) fn passing(count: usize, ledger: &Ledger) -> Self {
        Self::with(count, take_large(ledger, ledger::bytes_of::<T>(count)))
    }

    /// These values, in memory of the allocator's. It keeps what is given back: copies that are made again for every fit find their pages there.
    pub(super) fn holding(values: Vec<T>, ledger: &Ledger) -> Self {
        Self {
            _taken: Some(ledger.take(ledger::bytes_of::<T>(values.capacity()))),
            pages: Pages::Small(values),
        }
    }

    /// Zeros that were taken beforehand.
    pub(super) fn reserved(count: usize) -> Self {
        Self::with(count, None)
    }

    fn with(count: usize, taken: Option<Guard>) -> Self {
        let bytes = count.saturating_mul(size_of::<T>());
        let mut pages = None;
        if bytes >= LARGE
            && let Ok(map) = MmapMut::map_anon(bytes)
        {
            platform::wish_for_huge_pages(&map);
            pages = Some(Pages::Large(map));
        }
        Self {
            pages: pages.unwrap_or_else(|| Pages::Small(vec![T::zeroed(); count])),
            _taken: taken,
        }
    }
}

/// Takes bytes that are too many to pass by uncounted.
pub(crate) fn take_large(ledger: &Ledger, bytes: u64) -> Option<Guard> {
    (large(bytes) > 0).then(|| ledger.take(bytes))
}

/// These bytes as far as [`take_large`] takes them.
pub(super) fn large(bytes: u64) -> u64 {
    if bytes >= ledger::LARGE as u64 {
        bytes
    } else {
        0
    }
}

impl<T: Pod> Deref for Memory<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.pages {
            Pages::Small(values) => values,
            Pages::Large(map) => bytemuck::cast_slice(map),
        }
    }
}

impl<T: Pod> DerefMut for Memory<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.pages {
            Pages::Small(values) => values,
            Pages::Large(map) => bytemuck::cast_slice_mut(map),
        }
    }
}

/// A part of what was computed together; a clone is the same memory.
#[derive(Debug)]
pub(crate) struct Part<T> {
    memory: Arc<Memory<T>>,
    range: Range<usize>,
}

impl<T> Clone for Part<T> {
    fn clone(&self) -> Self {
        Self {
            memory: Arc::clone(&self.memory),
            range: self.range.clone(),
        }
    }
}

impl<T: Pod> Part<T> {
    /// The parts of `size` values each, one after the other.
    pub(crate) fn split(memory: Memory<T>, size: usize) -> impl Iterator<Item = Self> {
        let count = memory.len() / size;
        let memory = Arc::new(memory);
        (0..count).map(move |number| Self {
            memory: Arc::clone(&memory),
            range: number * size..(number + 1) * size,
        })
    }
}

impl<T: Pod> From<Memory<T>> for Part<T> {
    fn from(memory: Memory<T>) -> Self {
        let range = 0..memory.len();
        Self {
            memory: Arc::new(memory),
            range,
        }
    }
}

impl<T: Pod> Deref for Part<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.memory[self.range.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_and_small_hold_the_same() {
        for count in [0, 1, LARGE / 8 - 1, LARGE / 8, LARGE / 8 + 12_345] {
            let ledger = Ledger::default();
            let mut values = Memory::<f64>::zeros(count, &ledger);
            assert_eq!(matches!(values.pages, Pages::Large(_)), count * 8 >= LARGE);
            assert_eq!(ledger.taken(), 8 * count as u64);
            assert_eq!(values.len(), count);
            assert!(values.iter().all(|&value| value == 0.0));
            for (i, value) in values.iter_mut().enumerate() {
                *value = i as f64;
            }
            let parts: Vec<Part<f64>> = Part::split(values, count.div_ceil(3).max(1)).collect();
            let kept: Vec<f64> = parts.iter().flat_map(|part| part.iter().copied()).collect();
            assert!(kept.iter().enumerate().all(|(i, &value)| value == i as f64));
            drop(parts);
            assert_eq!(ledger.taken(), 0);
        }
    }
}
