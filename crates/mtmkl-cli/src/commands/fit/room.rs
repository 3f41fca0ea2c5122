//! How many rows there is memory for, where there are too many.

use anyhow::{Result, anyhow};
use mtmkl::Preparation;
use mtmkl::error::{human_bytes, without_streams};
use mtmkl::ledger::Ledger;
use mtmkl::select::usual_problem;
use mtmkl_table::{Equals, sample};

use super::limits::preparation_of;
use super::open::Fit;
use crate::args::FitArgs;
use crate::choices;

/// Fewer rows than this are no way out.
const FEW: usize = 10;

impl Fit {
    /// The error of a problem that does not fit, with the number of rows that would; none for other errors.
    pub(super) fn too_large(&self, error: &mtmkl::Error, args: &FitArgs) -> Option<anyhow::Error> {
        let mtmkl::Error::Memory {
            needed,
            limit,
            not_streamed,
        } = error
        else {
            return None;
        };
        // With kernel matrices that are given, fewer rows would be a part of each, beside the whole.
        let rows = self.rows_that_fit(args).filter(|_| self.grams.is_empty())?;
        Some(anyhow!(
            "this needs at least {}, over the limit of {}{}; about {rows} of the {} rows would fit: --sample {rows} takes so many by lot, with the \
             mix of tasks and classes. Or use fewer kernels, or raise --memory-limit (GiB)",
            human_bytes(*needed),
            human_bytes(*limit),
            without_streams(not_streamed.as_deref()),
            self.records.count()
        ))
    }

    /// The most rows of a sample that there is memory for, two digits of it.
    fn rows_that_fit(&self, args: &FitArgs) -> Option<usize> {
        let (mut fits, mut fails) = (0, self.beyond());
        // What a hundredth more would change is rounded away.
        while fails - fits > fits / 100 + 1 {
            let middle = fits.midpoint(fails);
            if self.does_fit(args, middle).unwrap_or(false) {
                fits = middle;
            } else {
                fails = middle;
            }
        }
        let digits = u32::try_from(fits.to_string().len()).unwrap_or(0);
        let step = 10_usize.pow(digits.saturating_sub(2));
        Some(fits / step * step).filter(|rows| *rows >= FEW)
    }

    /// A number of rows that can only be too large: a sample set of n rows takes 4 n² bytes at the very least.
    fn beyond(&self) -> usize {
        let only = self.frame.only_task();
        let groups = self.records.by_task(&only);
        let largest = groups.iter().map(|(_, rows)| rows.len()).max();
        let learned = self.train.len() as f64 / self.records.count() as f64;
        let largest = largest.unwrap_or(1) as f64 * learned;
        let share = (self.ledger.limit() as f64 / 4.0).sqrt() / largest;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a row count"
        )]
        let most = (share * self.records.count() as f64).ceil() as usize;
        most.saturating_add(1).min(self.records.count())
    }

    /// Whether a fit on a sample of so many rows would have memory enough.
    fn does_fit(&self, args: &FitArgs, count: usize) -> Result<bool> {
        let share = self.train.len() as f64 / self.records.count() as f64;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a row count"
        )]
        let learned = (share * count as f64).ceil() as usize;
        let chosen = sample(&self.frame, &self.records, learned, args.seed)?;
        let dataset = self.dataset(&self.frame, &self.records, &chosen, Equals::Merged)?;
        // The rows that are learned from and those that are scored.
        let rows = dataset.bytes_of_rows() + dataset.bytes_for(count);
        let levels = self.levels(args, &dataset.tasks)?;
        let spec = choices::problem(
            args,
            self.tasks(dataset.tasks.len()),
            &levels,
            self.between(),
        )?;
        let problem = usual_problem(spec, args.normalize, dataset.samples, dataset.tasks)?;
        let left = self
            .ledger
            .limit()
            .saturating_sub(self.table.bytes() + rows);
        let preparation = Preparation {
            ledger: Ledger::new(left),
            ..preparation_of(args, &self.ledger)?
        };
        Ok(problem.least_memory(&preparation)? <= left)
    }
}
