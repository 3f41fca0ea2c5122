//! The paper's data sets and the figures it prints for them (Tables 2 and 3), in per cent correct.

use crate::method::Method;

/// How the rows of a set are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// One-vs-all tasks over these classes (all where the list is empty), so many rows of each (all where 0).
    Classes {
        /// The classes.
        classes: &'static [&'static str],
        /// Rows of each.
        each: usize,
    },
    /// Binary tasks of these names, so many rows of each class of a task.
    Tasks {
        /// The tasks.
        tasks: &'static [&'static str],
        /// Rows of each class.
        each: usize,
    },
    /// Every binary task there is, all its rows of class `1` and as many of the other: the first in the file's order, the same in all draws.
    Balanced,
}

/// A data set of the paper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Benchmark {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its name in the paper.
    pub title: &'static str,
    /// The table it stands in.
    pub table: u8,
    /// How its rows are chosen.
    pub choice: Choice,
    /// The training shares, in per cent.
    pub shares: [f64; 4],
    /// PSCS, for each share.
    pub pscs: [f64; 4],
    /// The paper's signs for PSCS against CS and IS, for each share.
    pub signs: [&'static str; 4],
    /// CS, for each share.
    pub cs: [f64; 4],
    /// IS, for each share.
    pub is: [f64; 4],
}

const USUAL: [f64; 4] = [2.0, 5.0, 20.0, 50.0];

/// All of them, in the paper's order.
pub const BENCHMARKS: [Benchmark; 8] = [
    Benchmark {
        name: "robot",
        title: "Robot",
        table: 2,
        choice: Choice::Classes {
            classes: &[],
            each: 250,
        },
        shares: USUAL,
        pscs: [75.58, 82.21, 90.02, 92.27],
        signs: ["++", "++", "++", "=="],
        cs: [73.01, 78.76, 88.49, 91.49],
        is: [73.09, 78.91, 87.86, 91.76],
    },
    Benchmark {
        name: "vehicle",
        title: "Vehicle",
        table: 2,
        choice: Choice::Classes {
            classes: &[],
            each: 0,
        },
        shares: USUAL,
        pscs: [51.25, 64.42, 76.05, 82.35],
        signs: ["==", "++", "=+", "++"],
        cs: [48.78, 61.24, 75.58, 81.47],
        is: [48.62, 61.76, 75.04, 80.62],
    },
    Benchmark {
        name: "usps",
        title: "USPS",
        table: 2,
        choice: Choice::Classes {
            classes: &[],
            each: 100,
        },
        shares: USUAL,
        pscs: [52.78, 68.41, 87.03, 93.34],
        signs: ["++", "=+", "==", "=="],
        cs: [50.11, 68.39, 87.36, 92.99],
        is: [46.52, 63.95, 86.91, 92.78],
    },
    Benchmark {
        name: "shuttle",
        title: "Shuttle",
        table: 2,
        choice: Choice::Classes {
            classes: &["1", "4", "5"],
            each: 300,
        },
        shares: USUAL,
        pscs: [93.63, 93.91, 94.90, 94.93],
        signs: ["++", "++", "++", "=="],
        cs: [91.80, 91.84, 94.20, 94.90],
        is: [92.46, 92.53, 94.15, 94.66],
    },
    Benchmark {
        name: "letter",
        title: "Letter",
        table: 2,
        choice: Choice::Classes {
            classes: &["A", "B", "C", "D", "E", "F", "G", "H", "I", "J"],
            each: 100,
        },
        shares: USUAL,
        pscs: [50.19, 67.43, 82.65, 89.23],
        signs: ["==", "++", "==", "=="],
        cs: [48.82, 63.90, 82.48, 89.12],
        is: [51.35, 64.21, 82.99, 89.16],
    },
    Benchmark {
        name: "mnist",
        title: "MNIST",
        table: 2,
        choice: Choice::Classes {
            classes: &[],
            each: 100,
        },
        shares: USUAL,
        pscs: [55.15, 70.59, 84.38, 89.92],
        signs: ["=+", "=+", "==", "=="],
        cs: [55.32, 69.18, 84.84, 89.81],
        is: [51.29, 66.59, 84.34, 90.13],
    },
    Benchmark {
        name: "ocr",
        title: "Letter (OCR pairs)",
        table: 3,
        choice: Choice::Tasks {
            tasks: &["C-E", "G-Y", "M-N", "A-G", "A-O"],
            each: 1000,
        },
        shares: [0.2, 0.5, 5.0, 50.0],
        pscs: [59.86, 67.02, 88.02, 94.29],
        signs: ["==", "++", "==", "=="],
        cs: [56.52, 65.39, 87.68, 94.31],
        is: [56.41, 63.85, 87.80, 94.45],
    },
    Benchmark {
        name: "landmine",
        title: "Landmine",
        table: 3,
        choice: Choice::Balanced,
        shares: [20.0, 30.0, 40.0, 50.0],
        pscs: [69.89, 73.82, 75.12, 77.15],
        signs: ["++", "++", "=+", "=+"],
        cs: [67.24, 71.62, 75.04, 76.96],
        is: [66.34, 70.91, 74.30, 76.41],
    },
];

impl Benchmark {
    /// The set of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        BENCHMARKS.iter().find(|set| set.name == name)
    }

    /// The paper's figure for a method at a training share, and its sign for PSCS against that method.
    pub fn figure(&self, method: Method, share: f64) -> Option<(f64, Option<char>)> {
        let at = self
            .shares
            .iter()
            .position(|known| (known - share).abs() < 1e-9)?;
        match method {
            Method::Pscs => Some((self.pscs[at], None)),
            Method::Cs => Some((self.cs[at], self.signs[at].chars().next())),
            Method::Is => Some((self.is[at], self.signs[at].chars().nth(1))),
            _ => None,
        }
    }
}
