//! A sum of terms that the user composes.

use super::{SetSpec, SharingEntry, SharingSpec, TermSpec};
use crate::entry::{Parameter, Part};

/// How it is known.
pub(crate) static ENTRY: SharingEntry = SharingEntry {
    part: Part {
        name: "sum",
        help: "a sum of terms that you compose",
        parameters: &[Parameter::terms(
            "terms",
            "a term of the sum, e.g. common:lp-ball,p=2,radius=0.5 or independent:simplex,total=1 or group,p=2,q=1",
        )
        .flagged("term")],
    },
    terms: |_, _| Ok(Vec::new()),
    examples: |shape| {
        let spread = SetSpec::Simplex { total: 0.5 };
        let (p, radius) = (2.0, 0.5);
        let ball = SetSpec::LpBall { p, radius };
        let prior = SetSpec::PriorBall {
            prior: vec![0.2; shape.kernels],
            radius: 0.1,
        };
        vec![
            SharingSpec::sum(vec![
                TermSpec::Common(spread.clone()),
                TermSpec::Independent(ball.clone()),
            ]),
            SharingSpec::sum(vec![
                TermSpec::Independent(prior),
                TermSpec::Group { p, q: 1.0, radius },
                TermSpec::Common(ball),
                TermSpec::Common(spread),
            ]),
        ]
    },
};

impl SharingSpec {
    /// The sum of these terms.
    pub fn sum(terms: Vec<TermSpec>) -> Self {
        Self::of(&ENTRY, [0.0; 0]).with_terms(terms)
    }
}
