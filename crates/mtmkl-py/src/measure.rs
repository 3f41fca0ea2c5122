//! What is learned from all samples before anything is fitted, where these are in different places: scales of columns, widths and factors of
//! kernels. The same numbers as where they are together.

use mtmkl::gram::ColumnMoments;
use mtmkl::machine::MachineSpec;
use mtmkl::select::usual_settled;
use mtmkl::sharing::SharingSpec;
use mtmkl::{Normalization, ProblemSpec, Samples};
use mtmkl_table::{Moments, Scaling, usual_scaling};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::enter::released;
use crate::errors::{self, Origins};
use crate::fit::views;
use crate::rows::PyRows;

/// The least and the largest value of a column, the weighted mean and standard deviation, and whether there are no others than the first two.
type ColumnSummary = (f64, f64, f64, f64, bool);

/// The offset and the factor of each column, from what is known of its values; of sparse rows without an offset, so that zeros stay zeros.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
pub(crate) fn scales_of_moments(
    moments: Vec<ColumnSummary>,
    scale: &str,
    kernels: Vec<String>,
    sparse: bool,
) -> PyResult<Vec<(f64, f64)>> {
    let scaling = if scale == "auto" {
        let views = kernels
            .iter()
            .map(|spec| mtmkl::kernel::parse_kernels(spec));
        usual_scaling(&views.filter_map(Result::ok).flatten().collect::<Vec<_>>())
    } else {
        let known = Scaling::WORDS.iter().find(|(_, word, _)| *word == scale);
        let known = known.map(|(scaling, ..)| *scaling);
        known.ok_or_else(|| PyValueError::new_err(format!("scale is '{scale}'")))?
    };
    let of = |&(low, high, middle, deviation, is_binary): &ColumnSummary| {
        let moments = Moments {
            low,
            high,
            middle,
            deviation,
            is_binary,
        };
        if sparse {
            (0.0, scaling.factor_of_moments(&moments))
        } else {
            scaling.of_moments(&moments)
        }
    };
    Ok(moments.iter().map(of).collect())
}

/// Sample sets of so many rows each, one after the other.
fn samples(rows: &PyRows<'_>, counts: &[usize], columns: &[String]) -> PyResult<Vec<Samples>> {
    let rows = rows.read()?;
    let mut first = 0;
    let set = |&count: &usize| {
        let own = rows.part(first, count)?;
        first += count;
        let set = Samples::of_rows(own, count, columns.to_vec());
        set.map_err(|error| errors::raise(error, &Origins::default()))
    };
    counts.iter().map(set).collect()
}

/// Kernels by name and specification, and what they are divided by.
type Settled = (Vec<(String, String)>, &'static str);

/// The kernels with widths and factors that are numbers, measured on these rows of the sample sets, so many of each, and on moments of the columns (count, mean,
/// Σ(x − mean)²); and what they are divided by.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
pub(crate) fn settled_kernels(
    py: Python<'_>,
    kernels: Vec<(Option<String>, String)>,
    normalize: Option<&str>,
    columns: Vec<String>,
    rows: PyRows<'_>,
    counts: PyReadonlyArray1<'_, usize>,
    moments: Vec<(f64, f64, f64)>,
) -> PyResult<Settled> {
    let raise = |error| errors::raise(error, &Origins::default());
    let sets = samples(&rows, counts.as_slice()?, &columns)?;
    let views = views(&kernels).map_err(raise)?;
    let moment = |&(count, mean, squares): &(f64, f64, f64)| ColumnMoments {
        count,
        mean,
        squares,
    };
    let moments: Vec<ColumnMoments> = moments.iter().map(moment).collect();
    let normalize = normalize.and_then(Normalization::of_word);
    let settled = released(py, &Origins::default(), || {
        for view in &views {
            view.columns.resolve(&columns)?;
        }
        // Machine and sharing have no part in it.
        let spec = ProblemSpec::new(views, MachineSpec::svc(1.0), SharingSpec::uniform());
        usual_settled(spec, normalize, &sets, Some(&moments))
    })?;
    let named = settled.kernels.iter().map(|view| {
        let spec = view.spec().ok_or_else(|| {
            PyValueError::new_err(format!("the kernel `{}` has no specification", view.name))
        })?;
        Ok((view.name.clone(), spec))
    });
    Ok((named.collect::<PyResult<_>>()?, settled.normalize.word()))
}
