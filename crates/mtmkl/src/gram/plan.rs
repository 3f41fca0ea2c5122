//! What will be computed for one sample set, and how many bytes that takes, before anything is allocated.
//!
//! Kernels with the same base statistic on the same columns are a group: one base, n × n, and a map for each. What stays of a group is a
//! matrix for each kernel, or its base alone. On the way there pass copies of rows, bases of matrices in single precision, and copies of
//! matrices whose definiteness is checked. Groups are computed side by side in batches, and what passes in a batch is taken beforehand; so
//! what is planned is what the ledger will have counted, to the byte, for any number of threads.

use std::sync::Arc;

use super::definiteness::Definiteness;
use super::memory::large;
use super::normaliser::Normaliser;
use super::pairs::copied_bytes;
use super::streamed::Streamed;
use crate::data::{GivenGram, Samples};
use crate::error::{DataProblem, Error, Place, Result};
use crate::kernel::{Base, Kernel, KernelView, Statistic};
use crate::ledger::bytes_of;

/// Where kernel values come from while a problem is solved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Storage {
    /// All Gram matrices are kept: M n² numbers.
    Kept,
    /// For kernels that are functions of a base statistic (inner product, a distance), base values are kept, n² numbers for all kernels with
    /// the same one on the same columns, and kernel values are made from them whenever they are needed, bit for bit the same. There is
    /// little to prepare, so that one fit may be faster; of many fits on the same matrices, each takes longer.
    Mapped,
    /// Nothing of size n² is kept: kernel values are made from rows, in blocks, and support vector machines are solved on a working set of
    /// samples that grows to where it is needed. The answer is as exact, and as certified.
    Streamed,
}

impl Storage {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Kept, Self::Mapped, Self::Streamed];

    /// The name in settings, in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Mapped => "mapped",
            Self::Streamed => "streamed",
        }
    }
}

/// How Gram matrices are to be made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    /// Whether all kernels are normalised.
    pub(crate) normalise: bool,
    /// What is done about kernels that nobody vouches for.
    pub(crate) definiteness: Definiteness,
    /// Whether matrices are kept or made on demand.
    pub(crate) storage: Storage,
    /// Whether they are rounded to single precision.
    pub(crate) single: bool,
    /// How many threads check definiteness at a time, each with a copy.
    pub(crate) threads: usize,
}

/// Bytes of an n × n matrix in double precision.
pub(crate) fn square(samples: usize) -> u64 {
    8_u64.saturating_mul((samples as u64).saturating_pow(2))
}

/// Passing bytes of groups that are computed at the same time; a group with more is computed alone. A share of what a problem takes where
/// that matters, and more than threads can keep busy with where it does not.
const MOST_PASSING: u64 = 64 << 20;

/// The groups of one sample set.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) samples: Samples,
    /// The set's number, for messages.
    pub(super) index: usize,
    pub(super) kernels: Vec<KernelView>,
    pub(super) options: Options,
    pub(super) groups: Vec<Group>,
}

/// Kernels that are computed together.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) source: Source,
    pub(super) form: Form,
    /// Their numbers among all kernels.
    pub(super) members: Vec<usize>,
}

/// What a group is computed from.
#[derive(Debug)]
pub(super) enum Source {
    /// A statistic of these columns, all where there is no choice.
    Statistic(Arc<dyn Statistic>, Option<Vec<usize>>),
    /// The caller's matrices, one for each member.
    Given(Vec<GivenGram>),
}

/// What becomes of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The caller's matrices, as they are.
    Shared,
    /// Matrices in double precision.
    Double,
    /// Matrices that are rounded to single precision as they are computed.
    Single,
    /// Its base, which matrices are made from on demand.
    Base,
    /// Nothing but the rows.
    Rows,
}

impl Plan {
    /// For the samples of the set with this number.
    pub(crate) fn new(
        samples: &Samples,
        index: usize,
        kernels: &[KernelView],
        options: Options,
    ) -> Result<Self> {
        let mut groups = given_groups(samples, index, kernels, options.normalise)?;
        let all = 0..kernels.len();
        for SameBase {
            statistic,
            columns,
            members,
            is_own,
        } in by_statistic(samples.columns(), kernels, all)?
        {
            let is_checked = |&number: &usize| is_checked(&kernels[number], options.definiteness);
            let form = if options.storage == Storage::Streamed {
                Form::Rows
            } else if options.storage == Storage::Mapped && !is_own {
                Form::Base
            } else if options.single && !members.iter().any(is_checked) {
                Form::Single
            } else {
                // Definiteness is checked before rounding.
                Form::Double
            };
            groups.push(Group {
                source: Source::Statistic(statistic, columns),
                form,
                members,
            });
        }
        Ok(Self {
            samples: samples.clone(),
            index,
            kernels: kernels.to_vec(),
            options,
            groups,
        })
    }

    /// Whether kernel values are made from rows.
    pub(super) fn is_streamed(&self) -> bool {
        self.options.storage == Storage::Streamed
    }

    /// Bytes that kernels on so many rows take: their diagonals, and copies of rows that are compared with others.
    fn streamed(&self, samples: usize) -> u64 {
        let rows = if self.samples.rows().sparse().is_some() {
            // Each group at most all entries, row by row and column by column.
            let copies = 2 * self.groups.len() as u64;
            copies.saturating_mul(self.samples.bytes_of_rows(samples))
        } else {
            let width = |group: &Group| match &group.source {
                Source::Statistic(_, Some(columns)) => columns.len(),
                _ => self.samples.columns().len(),
            };
            let copied: usize = self.groups.iter().map(width).sum();
            bytes_of::<f64>(samples.saturating_mul(copied))
        };
        rows.saturating_add(Streamed::bytes_for(samples, self.kernels.len()))
    }

    /// Bytes that stay.
    pub(crate) fn kept(&self) -> u64 {
        if self.is_streamed() {
            return self.streamed(self.samples.count());
        }
        let square = square(self.samples.count());
        let of = |group: &Group| match group.form {
            Form::Shared | Form::Double if self.options.single => group.count() * (square / 2),
            _ => group.present(square),
        };
        self.groups.iter().map(of).fold(0, u64::saturating_add)
    }

    /// Bytes that are needed on the way, beside those that stay.
    pub(crate) fn passing(&self) -> u64 {
        if self.is_streamed() {
            return 0;
        }
        self.peak() - self.kept()
    }

    /// Bytes of a copy on so many of the samples.
    pub(crate) fn part(&self, samples: usize) -> u64 {
        if self.is_streamed() {
            let rows = self.samples.bytes_of_rows(samples);
            return rows.saturating_add(self.streamed(samples));
        }
        let square = square(samples);
        let of = |group: &Group| match group.form {
            Form::Base => square,
            _ if self.options.single => group.count().saturating_mul(square / 2),
            _ => group.count().saturating_mul(square),
        };
        self.groups.iter().map(of).fold(0, u64::saturating_add)
    }

    /// The most bytes at a time.
    fn peak(&self) -> u64 {
        let square = square(self.samples.count());
        let (mut present, mut peak) = (0_u64, 0_u64);
        for batch in self.batches() {
            let new = batch.iter().map(|group| group.present(square));
            present = new.fold(present, u64::saturating_add);
            peak = peak.max(present.saturating_add(self.passing_of(batch)));
        }
        let copies = self.checks_at_a_time() as u64 * self.copies_of_check();
        // Before the first matrix in double precision goes, the last one is rounded.
        let unrounded = self.groups.iter().filter(|group| group.is_unrounded());
        let rounded = if self.options.single {
            unrounded.map(Group::count).sum::<u64>() * (square / 2)
        } else {
            0
        };
        peak.max(present.saturating_add(copies.max(rounded)))
    }

    /// Groups that are computed at the same time.
    pub(super) fn batches(&self) -> Vec<&[Group]> {
        let mut batches = Vec::new();
        let (mut first, mut passing) = (0, 0_u64);
        for (number, group) in self.groups.iter().enumerate() {
            let own = self.passing_of(std::slice::from_ref(group));
            if number > first && passing.saturating_add(own) > MOST_PASSING {
                batches.push(&self.groups[first..number]);
                (first, passing) = (number, 0);
            }
            passing = passing.saturating_add(own);
        }
        batches.push(&self.groups[first..]);
        batches
    }

    /// Bytes that pass while these groups are computed: bases of what is rounded, copies of rows where these are large.
    pub(super) fn passing_of(&self, groups: &[Group]) -> u64 {
        let n = self.samples.count();
        let of = |group: &Group| {
            let Source::Statistic(statistic, columns) = &group.source else {
                return 0;
            };
            let rows = large(copied_bytes(
                self.samples.rows(),
                columns.as_deref(),
                statistic.as_ref(),
            ));
            match group.form {
                Form::Single => square(n).saturating_add(rows),
                _ => rows,
            }
        };
        groups.iter().map(of).fold(0, u64::saturating_add)
    }

    /// The kernels whose definiteness is checked.
    pub(super) fn checked(&self) -> Vec<usize> {
        let definiteness = self.options.definiteness;
        let numbers = 0..self.kernels.len();
        numbers
            .filter(|&number| is_checked(&self.kernels[number], definiteness))
            .collect()
    }

    /// Bytes that a check takes: one copy, and a second one for the eigenvalues of what is allowed to be indefinite.
    pub(super) fn copies_of_check(&self) -> u64 {
        let copy = large(square(self.samples.count()));
        match self.options.definiteness {
            Definiteness::AllowIndefinite => 2 * copy,
            Definiteness::Check | Definiteness::Assume => copy,
        }
    }

    /// How many matrices are checked at a time.
    pub(super) fn checks_at_a_time(&self) -> usize {
        self.options.threads.max(1).min(self.checked().len())
    }
}

impl Group {
    fn count(&self) -> u64 {
        self.members.len() as u64
    }

    /// Bytes that are there once it is computed.
    fn present(&self, square: u64) -> u64 {
        match self.form {
            Form::Shared | Form::Rows => 0,
            Form::Double => self.count().saturating_mul(square),
            Form::Single => self.count().saturating_mul(square / 2),
            Form::Base => square,
        }
    }

    /// Whether its matrices are yet to be rounded, if they are to be.
    pub(super) fn is_unrounded(&self) -> bool {
        matches!(self.form, Form::Shared | Form::Double)
    }
}

fn is_checked(view: &KernelView, definiteness: Definiteness) -> bool {
    definiteness != Definiteness::Assume && !view.kernel.is_positive_definite()
}

/// The caller's matrices: those that are used as they are, and those that are normalised first.
fn given_groups(
    samples: &Samples,
    index: usize,
    kernels: &[KernelView],
    normalise: bool,
) -> Result<Vec<Group>> {
    let mut groups = [Form::Shared, Form::Double].map(|form| (form, Vec::new(), Vec::new()));
    for (number, view) in kernels.iter().enumerate() {
        let kernel = view.kernel.as_ref();
        if !kernel.base().is_given() {
            continue;
        }
        let given = given_gram(samples, index, kernel)?;
        let is_shared = if Normaliser::is_wanted(kernel, normalise) {
            Normaliser::has_unit_diagonal(given, samples.count())
        } else {
            kernel.factor().is_none()
        };
        let (_, matrices, members) = &mut groups[usize::from(!is_shared)];
        matrices.push(given.clone());
        members.push(number);
    }
    let groups = groups
        .into_iter()
        .filter(|(_, _, members)| !members.is_empty());
    let groups = groups.map(|(form, matrices, members)| Group {
        source: Source::Given(matrices),
        form,
        members,
    });
    Ok(groups.collect())
}

/// The matrix that a kernel reads.
fn given_gram<'a>(
    samples: &'a Samples,
    index: usize,
    kernel: &dyn Kernel,
) -> Result<&'a GivenGram> {
    let name = kernel.given().unwrap_or_default();
    let grams = samples.grams();
    grams.iter().find(|gram| gram.name == name).ok_or_else(|| {
        let known: Vec<&str> = grams.iter().map(|gram| gram.name.as_str()).collect();
        let known = if known.is_empty() {
            "none".to_string()
        } else {
            known.join(", ")
        };
        let place = Place::Gram {
            samples: index,
            name: name.to_string(),
        };
        Error::data(place, DataProblem::MissingGram(known))
    })
}

/// Kernels with the same statistic on the same columns.
#[derive(Debug)]
pub(super) struct SameBase {
    pub(super) statistic: Arc<dyn Statistic>,
    pub(super) columns: Option<Vec<usize>>,
    pub(super) members: Vec<usize>,
    /// Whether the statistic is the kernel itself.
    pub(super) is_own: bool,
}

/// Those of the wanted kernels that are computed from rows with these columns.
pub(super) fn by_statistic(
    names: &[String],
    kernels: &[KernelView],
    wanted: impl Iterator<Item = usize>,
) -> Result<Vec<SameBase>> {
    let mut places = std::collections::BTreeMap::new();
    let mut groups: Vec<SameBase> = Vec::new();
    for number in wanted {
        let view = &kernels[number];
        let columns = view.columns.resolve(names)?;
        // A base of the kernel's own is nobody else's.
        let (statistic, key): (Arc<dyn Statistic>, _) = match view.kernel.base() {
            Base::Given => continue,
            Base::Of(statistic) => {
                let key = statistic.key();
                (statistic, (Some(key), columns.clone()))
            }
            Base::Own => {
                let itself = Itself(Arc::clone(&view.kernel));
                (Arc::new(itself), (None, Some(vec![number])))
            }
        };
        let is_own = key.0.is_none();
        let place = *places.entry(key).or_insert(groups.len());
        if place == groups.len() {
            groups.push(SameBase {
                statistic,
                columns,
                members: Vec::new(),
                is_own,
            });
        }
        groups[place].members.push(number);
    }
    Ok(groups)
}

/// A kernel that is a function of nothing simpler, as its own statistic.
#[derive(Debug)]
struct Itself(Arc<dyn Kernel>);

impl Statistic for Itself {
    fn key(&self) -> String {
        "k(x, z)".into()
    }

    fn value(&self, x: &[f64], z: &[f64]) -> f64 {
        self.0.value(x, z)
    }
}
