//! A sum of terms that the user composes.

use super::{SetSpec, SharingEntry, SharingSpec, TermSpec};
use crate::entry::{Parameter, Part};
use crate::tree::NamedLevel;

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
                TermSpec::Common(spread.clone()),
            ]),
            SharingSpec::sum(vec![
                TermSpec::Common(spread),
                TermSpec::Level {
                    level: NamedLevel {
                        label: "first and last".to_string(),
                        groups: vec![
                            ("first".to_string(), vec![0]),
                            ("last".to_string(), (shape.tasks / 2..shape.tasks).collect()),
                        ],
                    },
                    p,
                    q: 1.5,
                    radius,
                },
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
