//! θ in its summands: the weights of each term of the sharing, with its label and the tasks that its rows reach.
//!
//! In the model file the labels and reaches of all parts are one tensor of JSON text, `parts`, beside a tensor of weights for each: readers of version 2
//! pass over tensors that they do not know. Files without it say the parts by their reach only.

use std::collections::BTreeMap;

use safetensors::tensor::Dtype;
use serde::{Deserialize, Serialize};

use super::file::{Reader, Tensor, format_error};
use crate::error::Result;
use crate::grid::{Grid, Shape};
use crate::sharing::{Parts, Reach, Sharing};

/// The weights of one term of the sharing: θᵗ is the sum of the rows of all parts that reach task t.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// What the term calls itself: `common`, `specific`, or a name of its own.
    pub label: String,
    /// Which tasks each row reaches.
    pub reach: Reach,
    /// What the rows are called, where they have names: one for each.
    pub names: Vec<String>,
    /// A row of M weights for each.
    pub weights: Grid,
}

/// A part in the file, but for its weights.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartHeader {
    label: String,
    reach: Reach,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    names: Vec<String>,
}

/// The parts of a fit.
pub(super) fn labelled(sharing: &Sharing, parts: &Parts) -> Vec<Part> {
    let terms = sharing.terms().iter().zip(sharing.reaches());
    terms
        .zip(&parts.0)
        .map(|((term, reach), weights)| Part {
            label: term.label().to_string(),
            reach: reach.clone(),
            names: term.row_names().to_vec(),
            weights: weights.clone(),
        })
        .collect()
}

const HEADERS: &str = "parts";

fn name(number: usize) -> String {
    format!("part.{number}")
}

/// Adds the tensors of these parts.
pub(super) fn write(parts: &[Part], tensors: &mut BTreeMap<String, Tensor>) -> Result<()> {
    let headers: Vec<PartHeader> = parts
        .iter()
        .map(|part| PartHeader {
            label: part.label.clone(),
            reach: part.reach.clone(),
            names: part.names.clone(),
        })
        .collect();
    tensors.insert(HEADERS.to_string(), Tensor::json(&headers)?);
    for (number, part) in parts.iter().enumerate() {
        let weights = &part.weights;
        let shape = vec![weights.rows(), weights.kernels()];
        tensors.insert(name(number), Tensor::floats(shape, weights.values()));
    }
    Ok(())
}

/// The parts in a file; of one without them those that its common and specific weights are.
pub(super) fn read(
    file: &Reader<'_>,
    shape: Shape,
    common: Option<&Grid>,
    specific: Option<&Grid>,
) -> Result<Vec<Part>> {
    if !file.has(HEADERS) {
        let known = [
            ("common", Reach::All, common),
            ("specific", Reach::Each, specific),
        ];
        let known = known.into_iter().filter_map(|(label, reach, weights)| {
            Some(Part {
                label: label.to_string(),
                reach,
                names: Vec::new(),
                weights: weights?.clone(),
            })
        });
        return Ok(known.collect());
    }
    let (_, text) = file.bytes(HEADERS, Dtype::U8)?;
    let headers: Vec<PartHeader> = serde_json::from_slice(text)
        .map_err(|error| format_error(format!("bad tensor `{HEADERS}`: {error}")))?;
    headers
        .into_iter()
        .enumerate()
        .map(|(number, header)| {
            let PartHeader {
                label,
                reach,
                names,
            } = header;
            reach
                .check(shape.tasks)
                .map_err(|error| format_error(format!("part `{label}`: {error}")))?;
            let rows = reach.rows(shape.tasks);
            if !names.is_empty() && names.len() != rows {
                let problem = format!("part `{label}`: {} names for {rows} rows", names.len());
                return Err(format_error(problem));
            }
            let weights = file.grid(&name(number), rows, shape.kernels)?;
            Ok(Part {
                label,
                reach,
                names,
                weights,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use safetensors::tensor::SafeTensors;

    const SHAPE: Shape = Shape {
        tasks: 3,
        kernels: 2,
    };

    fn part(label: &str, reach: Reach) -> Part {
        let rows = reach.rows(SHAPE.tasks);
        let values = (0..rows * SHAPE.kernels).map(|i| 0.1 + i as f64 / 3.0);
        Part {
            label: label.to_string(),
            reach,
            names: Vec::new(),
            weights: Grid::from_values(rows, SHAPE.kernels, values.collect()),
        }
    }

    fn written(parts: &[Part]) -> BTreeMap<String, Tensor> {
        let mut tensors = BTreeMap::new();
        write(parts, &mut tensors).unwrap();
        tensors
    }

    fn read_back(tensors: &BTreeMap<String, Tensor>) -> Result<Vec<Part>> {
        let named = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor));
        let bytes = safetensors::serialize(named, None).unwrap();
        let file = Reader(SafeTensors::deserialize(&bytes).unwrap());
        let common = Grid::filled(1, SHAPE.kernels, 0.5);
        read(&file, SHAPE, Some(&common), None)
    }

    #[test]
    fn parts_of_every_reach_come_back_as_they_were() {
        let mut named = part("region", Reach::groups([vec![0, 1], vec![2]]));
        named.names = vec!["north".to_string(), "süd".to_string()];
        let parts = [
            part("common", Reach::All),
            named,
            part(
                "Häuser \"A\"",
                Reach::groups([vec![2, 0], vec![1, 2], vec![1]]),
            ),
            part("specific", Reach::Each),
        ];
        assert_eq!(read_back(&written(&parts)).unwrap(), parts);
    }

    #[test]
    fn a_file_without_parts_has_those_of_its_common_and_specific_weights() {
        let other = Tensor::floats(vec![1], &[1.0]);
        let old = [("offsets".to_string(), other)].into_iter().collect();
        let parts = read_back(&old).unwrap();
        assert_eq!(parts.len(), 1);
        assert_eq!((&*parts[0].label, &parts[0].reach), ("common", &Reach::All));
        assert_eq!(parts[0].weights.values(), [0.5, 0.5]);
    }

    #[test]
    fn parts_that_do_not_fit_the_model_are_refused() {
        let faults = [
            part("far", Reach::groups([vec![0, 3]])),
            part("twice", Reach::groups([vec![1, 1]])),
            part("none", Reach::groups([vec![]])),
        ];
        let mut nameless = part("nameless", Reach::groups([vec![0], vec![1]]));
        nameless.names = vec!["only one".to_string()];
        for fault in faults.into_iter().chain([nameless]) {
            let error = read_back(&written(&[fault])).unwrap_err();
            assert!(matches!(error, crate::error::Error::Format { .. }));
        }
        let mut tensors = written(&[part("common", Reach::All)]);
        tensors.insert(name(0), Tensor::floats(vec![2, 2], &[1.0; 4]));
        assert!(read_back(&tensors).is_err());
        tensors.remove(&name(0));
        assert!(read_back(&tensors).is_err());
        let mut tensors = written(&[part("common", Reach::All)]);
        if let Some(text) = tensors.get_mut(HEADERS) {
            text.bytes[1] = b'x';
        }
        assert!(read_back(&tensors).is_err());
    }
}
