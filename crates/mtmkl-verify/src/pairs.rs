//! Kernel values of a sample set, pair by pair, and what they are added up to: Kβ, d, β̂'K_mβ̂. Nothing of size n² is kept.

use mtmkl::kernel::{Kernel, KernelView};
use mtmkl::task_kernel::Form;
use mtmkl::{GivenGram, Rows, Samples};

use crate::error::{Error, Result};
use crate::kernel::{Formula, Specified, to_single};
use crate::statistic::{Approximate, Statistic};
use crate::sum::{UNIT, lost};

/// The kernels of a model on one sample set.
#[derive(Debug)]
pub(crate) struct Pairs<'a> {
    samples: &'a Samples,
    statistics: Vec<Statistic<'a>>,
    kernels: Vec<OnSet<'a>>,
    is_rounded: bool,
}

/// One kernel on the set.
#[derive(Debug)]
struct OnSet<'a> {
    formula: Formula,
    /// Which of the statistics it is a function of.
    statistic: Option<usize>,
    factor: f64,
    gram: Option<&'a GivenGram>,
    /// The columns it sees, of a kernel of its user's own.
    columns: Option<Vec<usize>>,
    /// 1/√k(x, x) by row, where it is normalised, with its relative error; 0 for a sample of norm zero.
    roots: Option<Vec<Approximate>>,
    between: Option<&'a Form>,
}

impl<'a> Pairs<'a> {
    /// These kernels on the rows of a sample set; normalised to k(x, x) = 1 where that is wanted, rounded to single precision where they were.
    pub(crate) fn new(
        views: &[KernelView],
        samples: &'a Samples,
        is_unit: bool,
        is_rounded: bool,
    ) -> Result<Self> {
        let mut made = Self {
            samples,
            statistics: Vec::new(),
            kernels: Vec::new(),
            is_rounded,
        };
        for view in views {
            let Specified {
                formula,
                measure,
                factor,
                is_cosine,
                ..
            } = Specified::read(view)?;
            let columns = (view.columns.resolve(samples.columns()))
                .map_err(|error| Error::Unreadable(format!("kernel `{}`: {error}", view.name)))?;
            let statistic = match measure {
                None => None,
                Some(measure) => {
                    let known = (made.statistics.iter())
                        .position(|known| known.measure == measure && known.columns == columns);
                    if known.is_none() {
                        let new = Statistic::new(measure, columns.clone(), samples)?;
                        made.statistics.push(new);
                    }
                    known.or(Some(made.statistics.len() - 1))
                }
            };
            let gram = match &formula {
                Formula::Given(name) => Some(given(samples, name)?),
                _ => None,
            };
            let mut kernel = OnSet {
                formula,
                statistic,
                factor: factor.unwrap_or(1.0),
                gram,
                columns,
                roots: None,
                between: form_of(samples, view)?,
            };
            if is_unit || is_cosine {
                // 1/√(1 · 1) is 1, without a rounding.
                if !matches!(kernel.formula, Formula::Constant) {
                    let own = (0..samples.count()).map(|row| made.plain(&kernel, row, row));
                    kernel.roots = Some(own.map(root).collect());
                }
                // What is multiplied by is divided away again.
                kernel.factor = 1.0;
            }
            made.kernels.push(kernel);
        }
        Ok(made)
    }

    /// The statistics of a pair, for [`Pairs::value`].
    pub(crate) fn statistics(&self, i: usize, j: usize, out: &mut Vec<Approximate>) {
        out.clear();
        out.extend(self.statistics.iter().map(|statistic| statistic.of(i, j)));
    }

    /// k_m(x_i, x_j), as the problem has it.
    pub(crate) fn value(
        &self,
        kernel: usize,
        i: usize,
        j: usize,
        statistics: &[Approximate],
    ) -> Approximate {
        let own = &self.kernels[kernel];
        let mut k = match own.statistic {
            Some(number) => own.formula.of(statistics[number]),
            None => self.unmeasured(own, i, j),
        };
        if let Some(roots) = &own.roots {
            k = normalised(k, roots[i], roots[j], i == j);
        }
        if own.factor != 1.0 {
            k.value *= own.factor;
            k.error = k.error * own.factor + 2.0 * UNIT * k.value.abs();
        }
        if self.is_rounded {
            k = to_single(k);
        }
        match own.between {
            None => k,
            Some(form) => {
                let c = self.between(form, i, j);
                let value = k.value * c;
                // A similarity may have been worked in before values were rounded.
                let single = if self.is_rounded && c != 1.0 {
                    2.0_f64.powi(-23)
                } else {
                    0.0
                };
                Approximate {
                    value,
                    error: k.error * c.abs() + (2.0 * UNIT + single) * value.abs(),
                }
            }
        }
    }

    /// k(x_i, x_j) before anything is done to it.
    fn plain(&self, kernel: &OnSet<'_>, i: usize, j: usize) -> Approximate {
        match kernel.statistic {
            Some(number) => kernel.formula.of(self.statistics[number].of(i, j)),
            None => self.unmeasured(kernel, i, j),
        }
    }

    fn unmeasured(&self, kernel: &OnSet<'_>, i: usize, j: usize) -> Approximate {
        match (&kernel.formula, kernel.gram) {
            (_, Some(gram)) => Approximate {
                value: gram.values[i * self.samples.count() + j],
                error: 0.0,
            },
            (Formula::Own(own), None) => self.of_own(own.as_ref(), kernel.columns.as_deref(), i, j),
            (formula, None) => formula.of(Approximate::default()),
        }
    }

    /// A kernel of its user's own: its value is taken to be good to as many roundings as there are columns, of the size of k(x, x).
    fn of_own(
        &self,
        kernel: &dyn Kernel,
        columns: Option<&[usize]>,
        i: usize,
        j: usize,
    ) -> Approximate {
        let row = |at: usize| seen(self.samples.rows(), columns, at);
        let (x, z) = (row(i), row(j));
        let value = kernel.value(&x, &z);
        // Its factor, where it has one, is in its value.
        let size = value.abs() + (kernel.value(&x, &x) * kernel.value(&z, &z)).abs().sqrt();
        Approximate {
            value,
            error: 4.0 * lost(x.len() + 16) * size,
        }
    }

    /// c(t, u) of the tasks of two rows.
    fn between(&self, form: &Form, i: usize, j: usize) -> f64 {
        let Some(origins) = self.samples.origins() else {
            return f64::NAN;
        };
        let (t, u) = (origins.of[i], origins.of[j]);
        match form {
            Form::Same { of, .. } => f64::from(u8::from(of[t] == of[u])),
            Form::Similarity { values } => values[t * origins.kernels.tasks().len() + u],
        }
    }
}

/// The matrix of this name.
fn given<'a>(samples: &'a Samples, name: &str) -> Result<&'a GivenGram> {
    let found = samples.grams().iter().find(|gram| gram.name == name);
    found.ok_or_else(|| {
        let problem =
            format!("the precomputed kernel `{name}` is not among the data; give its matrix");
        Error::Unreadable(problem)
    })
}

/// The task kernel that a kernel is multiplied by, by the tasks of the data.
fn form_of<'a>(samples: &'a Samples, view: &KernelView) -> Result<Option<&'a Form>> {
    let Some(word) = &view.between else {
        return Ok(None);
    };
    let found = samples
        .origins()
        .and_then(|origins| origins.kernels.get(word));
    let form = found.ok_or_else(|| {
        let problem = format!(
            "kernel `{}` is between tasks, of which the data say nothing",
            view.name
        );
        Error::Unreadable(problem)
    })?;
    Ok(Some(&form.form))
}

/// The columns that a kernel sees of a row.
fn seen(rows: Rows<'_>, columns: Option<&[usize]>, row: usize) -> Vec<f64> {
    let all = rows.get(row).unwrap_or_default();
    match columns {
        None => all.into_owned(),
        Some(columns) => columns.iter().map(|&column| all[column]).collect(),
    }
}

/// 1/√k(x, x), with how far it is off in parts of itself.
fn root(own: Approximate) -> Approximate {
    if own.value > 0.0 {
        Approximate {
            value: own.value.sqrt().recip(),
            // (1 + ε)^−½ − 1 is at most ½ε/(1 − ε) in size.
            error: 0.5 * own.error / (own.value - own.error).max(0.0) + 4.0 * UNIT,
        }
    } else {
        Approximate::default()
    }
}

/// k/√(k(x, x) k(z, z)): 1 for a sample with itself, 0 for one of norm zero.
fn normalised(k: Approximate, own: Approximate, other: Approximate, is_same: bool) -> Approximate {
    if own.value == 0.0 || other.value == 0.0 {
        return Approximate::default();
    }
    if is_same {
        return Approximate {
            value: 1.0,
            error: 0.0,
        };
    }
    let scale = own.value * other.value;
    let value = k.value * scale;
    let parts = own.error + other.error + own.error * other.error + 4.0 * UNIT;
    Approximate {
        value,
        error: k.error * scale * (1.0 + parts) + value.abs() * parts,
    }
}
