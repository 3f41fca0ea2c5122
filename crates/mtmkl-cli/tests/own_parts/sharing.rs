//! A sharing of one's own: one θ for all tasks, of a mass that is given.

use mtmkl::entry::{Parameter, Part, Range};
use mtmkl::error::Result;
use mtmkl::sharing::{Common, Constraint, Set, SharingEntry, SharingSpec, TermSpec};

/// {θ ≥ 0 : Σ_m θ_m = mass}. Support function: mass · max_m s_m.
#[derive(Debug)]
struct Mass(f64);

/// How it is known.
pub(crate) static ENTRY: SharingEntry = SharingEntry {
    part: Part {
        name: "mass",
        help: "one θ for all tasks, Σθ = mass",
        parameters: &[Parameter::number("mass", Range::Positive, "the sum of the weights").or(1.0)],
    },
    terms: |values, _| Ok(vec![TermSpec::own(Common(Mass(values.number("mass"))))]),
    examples: |_| {
        vec![
            SharingSpec::of(&ENTRY, [0.5]),
            SharingSpec::of(&ENTRY, [2.0]),
        ]
    },
};

impl Set for Mass {
    fn check(&self, _kernels: usize) -> Result<()> {
        Ok(())
    }

    fn start(&self, out: &mut [f64]) {
        out.fill(self.0 / out.len() as f64);
    }

    fn maximise(&self, s: &[f64], out: &mut [f64]) -> f64 {
        let best = (0..s.len())
            .max_by(|&a, &b| s[a].total_cmp(&s[b]))
            .unwrap_or(0);
        out.fill(0.0);
        out[best] = self.0;
        self.0 * s[best]
    }

    fn violation(&self, theta: &[f64]) -> f64 {
        let negative = theta
            .iter()
            .fold(0.0_f64, |worst, &value| worst.max(-value));
        (theta.iter().sum::<f64>() - self.0).abs().max(negative)
    }

    fn contains_zero(&self) -> bool {
        false
    }

    fn constraint(&self) -> Option<Constraint> {
        Some(Constraint::RowSum {
            total: self.0,
            upper: None,
        })
    }
}
