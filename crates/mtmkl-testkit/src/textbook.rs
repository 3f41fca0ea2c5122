//! Kernels by their definitions, from the text that names them: read and computed by nothing of the product.

use std::collections::BTreeMap;

use crate::generate::{dot, unit_diagonal};

/// One kernel: a name, its numbers, and the columns that it sees.
#[derive(Clone, Debug)]
pub struct Kernel {
    name: String,
    numbers: BTreeMap<String, f64>,
    /// The name of a given Gram matrix.
    given: Option<String>,
    columns: Option<Vec<usize>>,
}

impl Kernel {
    /// `name:key=value,…@f1,f2`, one value a key and columns `f1`, `f2`, …; `None` for what is not written so.
    pub fn read(text: &str) -> Option<Self> {
        let (head, columns) = match text.split_once('@') {
            None => (text, None),
            Some((head, columns)) => {
                let numbers = columns.split(',').map(|column| {
                    let number: usize = column.strip_prefix('f')?.parse().ok()?;
                    number.checked_sub(1)
                });
                (head, Some(numbers.collect::<Option<Vec<usize>>>()?))
            }
        };
        let (name, pairs) = head.split_once(':').unwrap_or((head, ""));
        let mut kernel = Self {
            name: name.to_string(),
            numbers: BTreeMap::new(),
            given: None,
            columns,
        };
        for pair in pairs.split(',').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=')?;
            if key == "name" {
                kernel.given = Some(value.to_string());
            } else {
                kernel.numbers.insert(key.to_string(), value.parse().ok()?);
            }
        }
        Some(kernel)
    }

    /// The name of the Gram matrix that it stands for, where it is one that was given.
    pub fn given(&self) -> Option<&str> {
        self.given.as_deref()
    }

    fn number(&self, key: &str, default: f64) -> f64 {
        self.numbers.get(key).copied().unwrap_or(default)
    }

    /// k(x, z); `None` for a kernel that has no formula here.
    fn value(&self, x: &[f64], z: &[f64]) -> Option<f64> {
        let pairs = || x.iter().zip(z);
        let squared = || pairs().map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
        let far = |root: f64| root * squared().sqrt() / self.number("length", 1.0);
        let gamma = match self.numbers.get("sigma") {
            Some(sigma) if self.name == "laplacian" => 1.0 / sigma,
            Some(sigma) => 1.0 / (2.0 * sigma * sigma),
            None => self.number("gamma", 1.0),
        };
        Some(match self.name.as_str() {
            "linear" => dot(x, z),
            "poly" => {
                let degree = self.number("degree", 2.0);
                (gamma * dot(x, z) + self.number("coef0", 1.0)).powf(degree)
            }
            "rbf" => (-gamma * squared()).exp(),
            "laplacian" => {
                let distance: f64 = pairs().map(|(a, b)| (a - b).abs()).sum();
                (-gamma * distance).exp()
            }
            "matern32" => {
                let s = far(3.0_f64.sqrt());
                (1.0 + s) * (-s).exp()
            }
            "matern52" => {
                let s = far(5.0_f64.sqrt());
                (1.0 + s + s * s / 3.0) * (-s).exp()
            }
            "cosine" => {
                let lengths = dot(x, x).sqrt() * dot(z, z).sqrt();
                if lengths > 0.0 {
                    dot(x, z) / lengths
                } else {
                    0.0
                }
            }
            "chi2" => {
                let terms = pairs().filter(|(a, b)| *a + *b > 0.0);
                let distance: f64 = terms.map(|(a, b)| (a - b) * (a - b) / (a + b)).sum();
                (-gamma * distance).exp()
            }
            "intersection" => pairs().map(|(a, b)| a.min(*b)).sum(),
            "constant" => 1.0,
            _ => return None,
        })
    }

    /// The Gram matrix of rows of so many columns, divided by √(k(x, x) k(z, z)) where that is wanted; `None` for a kernel that has no formula here.
    pub fn gram(&self, rows: &[f64], columns: usize, normalised: bool) -> Option<Vec<f64>> {
        let seen: Vec<Vec<f64>> = rows
            .chunks_exact(columns)
            .map(|row| match &self.columns {
                None => row.to_vec(),
                Some(chosen) => chosen.iter().map(|&column| row[column]).collect(),
            })
            .collect();
        let n = seen.len();
        let factor = self.number("factor", 1.0);
        let mut gram = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let value = factor * self.value(&seen[i], &seen[j])?;
                gram[i * n + j] = value;
                gram[j * n + i] = value;
            }
        }
        if normalised {
            unit_diagonal(&mut gram, n);
        }
        Some(gram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_computes() {
        let rows = [1.0, 2.0, 0.0, 3.0, 0.5, 1.0];
        let gram = |text: &str| Kernel::read(text).unwrap().gram(&rows, 3, false).unwrap();
        assert_eq!(gram("linear"), [5.0, 4.0, 4.0, 10.25]);
        assert_eq!(gram("linear:factor=2@f1,f3"), [2.0, 6.0, 6.0, 20.0]);
        assert_eq!(gram("poly:degree=2,coef0=0,gamma=0.5")[1], 4.0);
        assert_eq!(gram("intersection")[1], 1.5);
        assert!((gram("rbf:sigma=2")[1] - (-7.25_f64 / 8.0).exp()).abs() < 1e-15);
        assert!((gram("laplacian:gamma=0.1")[1] - (-0.45_f64).exp()).abs() < 1e-15);
        assert!((gram("chi2")[1] - (-(1.0 + 0.9 + 1.0_f64)).exp()).abs() < 1e-15);
        let unit = Kernel::read("linear")
            .unwrap()
            .gram(&rows, 3, true)
            .unwrap();
        assert_eq!(unit[0], 1.0);
        let cosine = gram("cosine")[1];
        assert!((unit[1] - cosine).abs() < 1e-15);
        assert!(Kernel::read("rbf:gamma=scale").is_none());
        let given = Kernel::read("precomputed:name=K").unwrap();
        assert_eq!(given.given(), Some("K"));
        assert!(given.gram(&rows, 3, false).is_none());
    }
}
