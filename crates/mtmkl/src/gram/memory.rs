//! Memory for Gram matrices that are computed here.

use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::MmapMut;

/// From this many bytes on, memory is taken from the system in huge pages.
const LARGE: usize = 4 << 20;

/// The values of matrices that are computed here, one matrix after the other, row by row.
///
/// Writing to fresh memory is mostly the system's work: it clears every page on its first use. With pages of 2 MiB in place of
/// 4 KiB that takes a quarter of the time, and reading rows later needs fewer address translations.
#[derive(Debug)]
pub(crate) enum Memory<T> {
    Small(Vec<T>),
    Large(MmapMut),
}

impl<T: Pod> Memory<T> {
    /// Zeros.
    pub(crate) fn zeros(count: usize) -> Self {
        let bytes = count.saturating_mul(size_of::<T>());
        if bytes >= LARGE
            && let Ok(map) = MmapMut::map_anon(bytes)
        {
            // A wish: where it is not granted, nothing changes but the time.
            #[cfg(target_os = "linux")]
            let _ = map.advise(memmap2::Advice::HugePage);
            return Self::Large(map);
        }
        Self::Small(vec![T::zeroed(); count])
    }
}

impl<T: Pod> Deref for Memory<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Small(values) => values,
            Self::Large(map) => bytemuck::cast_slice(map),
        }
    }
}

impl<T: Pod> DerefMut for Memory<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::Small(values) => values,
            Self::Large(map) => bytemuck::cast_slice_mut(map),
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

impl<T> From<Vec<T>> for Part<T> {
    fn from(values: Vec<T>) -> Self {
        let range = 0..values.len();
        Self {
            memory: Arc::new(Memory::Small(values)),
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
            let mut values = Memory::<f64>::zeros(count);
            assert_eq!(matches!(values, Memory::Large(_)), count * 8 >= LARGE);
            assert_eq!(values.len(), count);
            assert!(values.iter().all(|&value| value == 0.0));
            for (i, value) in values.iter_mut().enumerate() {
                *value = i as f64;
            }
            let parts: Vec<Part<f64>> = Part::split(values, count.div_ceil(3).max(1)).collect();
            let kept: Vec<f64> = parts.iter().flat_map(|part| part.iter().copied()).collect();
            assert!(kept.iter().enumerate().all(|(i, &value)| value == i as f64));
        }
    }
}
