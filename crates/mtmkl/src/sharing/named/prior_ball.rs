//! θ ≥ 0, ‖θ − prior‖₂ ≤ radius, one θ for all tasks.

use super::{RADIUS, SetSpec, SharingEntry, SharingSpec, TermSpec, WEIGHTS, uniform};
use crate::entry::{Parameter, Part, Value};

/// How it is known.
pub(crate) static ENTRY: SharingEntry = SharingEntry {
    part: Part {
        name: "prior-ball",
        help: "one θ for all tasks, ‖θ − prior‖₂ ≤ radius",
        parameters: &[
            Parameter::list("prior", WEIGHTS)
                .optional()
                .flagged("weights"),
            RADIUS,
        ],
    },
    terms: |values, shape| {
        let prior = values
            .list("prior")
            .map_or_else(|| uniform(shape), <[f64]>::to_vec);
        Ok(vec![TermSpec::Common(SetSpec::PriorBall {
            prior,
            radius: values.number("radius"),
        })])
    },
    examples: |shape| {
        let prior = (0..shape.kernels)
            .map(|kernel| if kernel == 0 { 0.0 } else { 1.0 })
            .collect();
        vec![
            SharingSpec::prior_ball(Some(prior), 0.6),
            SharingSpec::prior_ball(None, 2.0),
        ]
    },
};

impl SharingSpec {
    /// One θ for all tasks, ‖θ − prior‖₂ ≤ radius; without a prior, around 1/M.
    pub fn prior_ball(prior: Option<Vec<f64>>, radius: f64) -> Self {
        Self::of(&ENTRY, [Value::from(prior), radius.into()])
    }
}
