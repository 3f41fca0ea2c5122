//! What an error costs, by class: given, or so that all classes of a task cost the same in all.

use std::str::FromStr;

use crate::Result;
use crate::error::TableError;

/// Factors of the sample weights by class.
#[derive(Debug, Clone, PartialEq)]
pub enum ClassWeight {
    /// n / (k n_c): n is the weight of a task's rows, k the number of its classes, n_c the weight of a class' rows.
    Balanced,
    /// By name; 1 for those that are not named.
    Given(Vec<(String, f64)>),
}

impl FromStr for ClassWeight {
    type Err = String;

    /// `balanced`, or `NAME=WEIGHT,…`.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if text.trim() == "balanced" {
            return Ok(Self::Balanced);
        }
        let mut given: Vec<(String, f64)> = Vec::new();
        for piece in text.split(',') {
            let (name, weight) = piece
                .rsplit_once('=')
                .ok_or_else(|| format!("`{piece}` is neither `balanced` nor NAME=WEIGHT"))?;
            let (name, weight) = (name.trim(), weight.trim());
            let number = weight.parse::<f64>().ok();
            let number = number.filter(|number| number.is_finite() && *number > 0.0);
            let number = number.ok_or_else(|| {
                format!("the weight of `{name}` is `{weight}`, expected a number > 0")
            })?;
            if given.iter().any(|(known, _)| known == name) {
                return Err(format!("`{name}` has two weights"));
            }
            given.push((name.to_string(), number));
        }
        Ok(Self::Given(given))
    }
}

impl ClassWeight {
    /// The factor of each class, for rows of these classes (by number) and weights.
    pub fn factors(&self, classes: &[String], codes: &[usize], weights: &[f64]) -> Vec<f64> {
        match self {
            Self::Balanced => balanced(classes.len(), codes, weights),
            Self::Given(given) => {
                let factor = |class: &String| given.iter().find(|(name, _)| name == class);
                let factors = classes.iter().map(factor);
                factors
                    .map(|found| found.map_or(1.0, |(_, weight)| *weight))
                    .collect()
            }
        }
    }

    /// Whether every class that is named is one.
    ///
    /// # Errors
    /// Names the one that is none.
    pub fn check(&self, classes: &[String]) -> Result<()> {
        let Self::Given(given) = self else {
            return Ok(());
        };
        match given.iter().find(|(name, _)| !classes.contains(name)) {
            None => Ok(()),
            Some((name, _)) => Err(TableError::ClassWeight {
                name: name.clone(),
                classes: crate::words::listed(classes.iter().map(String::as_str)),
            }),
        }
    }
}

/// n / (k n_c) for each of so many classes, where k counts those that have rows; 1 for the others.
pub fn balanced(classes: usize, codes: &[usize], weights: &[f64]) -> Vec<f64> {
    let mut totals = vec![0.0; classes];
    for (&code, weight) in codes.iter().zip(weights) {
        if let Some(total) = totals.get_mut(code) {
            *total += weight;
        }
    }
    let all: f64 = totals.iter().sum();
    let present = totals.iter().filter(|total| **total > 0.0).count() as f64;
    totals
        .into_iter()
        .map(|own| {
            if own > 0.0 {
                all / (present * own)
            } else {
                1.0
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_cost_the_same_in_all() {
        let codes = [0, 0, 0, 1, 2, 2];
        let weights = [1.0, 2.0, 1.0, 1.0, 0.5, 0.5];
        let factors = balanced(4, &codes, &weights);
        // By the formula: n = 6, k = 3.
        assert_eq!(factors, [6.0 / (3.0 * 4.0), 2.0, 2.0, 1.0]);
        let cost = |class: usize| -> f64 {
            let own = codes
                .iter()
                .zip(weights)
                .filter(|(code, _)| **code == class);
            own.map(|(_, weight)| weight * factors[class]).sum()
        };
        assert!((0..3).all(|class| (cost(class) - 2.0).abs() < 1e-12));
    }

    #[test]
    fn weights_are_read() {
        assert_eq!("balanced".parse(), Ok(ClassWeight::Balanced));
        let given: ClassWeight = "a=b=2, c = 0.5".parse().unwrap_or(ClassWeight::Balanced);
        let names = ["a=b", "c", "d"].map(String::from);
        assert_eq!(given.factors(&names, &[], &[]), [2.0, 0.5, 1.0]);
        assert!(given.check(&names).is_ok() && given.check(&names[..1]).is_err());
        for text in [
            "", "yes", "yes=", "yes=0", "yes=-1", "yes=inf", "yes=nan", "a=1,a=2",
        ] {
            assert!(text.parse::<ClassWeight>().is_err(), "{text}");
        }
    }
}
