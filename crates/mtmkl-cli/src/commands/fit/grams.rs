//! Kernel matrices from files.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use mtmkl::ledger::{Guard, Ledger, bytes_of};
use mtmkl_table::{Gram, Grams, Table};

use crate::args::FitArgs;
use crate::input::{self, GramOptions};
use crate::output;

/// A kernel matrix' name: the file's without folder and ending, without the characters that specifications use.
fn gram_name(path: &Path, member: Option<&str>, taken: &Grams) -> String {
    let plain = |text: &str| text.replace([',', '@', '|', '=', ':'], "_");
    let stem = path
        .file_stem()
        .map_or(String::new(), |stem| stem.to_string_lossy().into_owned());
    let with =
        |head: &str| plain(&member.map_or(head.to_string(), |member| format!("{head}/{member}")));
    let short = with(&stem);
    if taken.contains_key(&short) {
        with(&path.display().to_string())
    } else {
        short
    }
}

/// Reads the kernel matrices that `precomputed:path=…` kernels name. An archive with several arrays stands for as many kernels.
pub(super) fn read_grams(
    args: &mut FitArgs,
    table: &Table,
    ledger: &Ledger,
    held: &mut Vec<Guard>,
) -> Result<Grams> {
    let mut grams = Grams::new();
    let mut specs = Vec::new();
    for spec in &args.kernel {
        let Some(options) = spec.strip_prefix("precomputed") else {
            specs.push(spec.clone());
            continue;
        };
        let Some(options) = options.strip_prefix(':').filter(|path| !path.is_empty()) else {
            bail!("kernel `{spec}`: which matrix? Write precomputed:path=FILE");
        };
        let path = options
            .strip_prefix("path=")
            .or_else(|| options.strip_prefix("name="))
            .unwrap_or(options);
        let path = Path::new(path);
        let options = GramOptions {
            limit: ledger.left(),
            ..GramOptions::default()
        };
        let members = input::read_gram(path, None, &options)?;
        let several = members.len() > 1;
        for (member, gram) in members {
            let name = gram_name(path, member.as_deref().filter(|_| several), &grams);
            if grams.contains_key(&name) {
                bail!("the kernel matrix {} is given twice", path.display());
            }
            if gram.row_names.is_some() && args.id.is_none() {
                output::note(&format!(
                    "note: {} names its rows, which are taken in the order they come; --id COLUMN matches them by name",
                    path.display()
                ));
            }
            if gram.rows != table.rows || gram.columns != table.rows {
                bail!(
                    "kernel matrix `{name}` is {} × {}, expected {n} × {n}: one row and one column for each row of {}",
                    gram.rows,
                    gram.columns,
                    table.source,
                    n = table.rows
                );
            }
            held.push(ledger.take(bytes_of::<f64>(gram.values.len())));
            specs.push(format!("precomputed:name={name}"));
            grams.insert(name, align(gram, args.id.as_deref(), table)?);
        }
    }
    args.kernel = specs;
    Ok(grams)
}

/// Brings a matrix with named rows into the order of the table.
fn align(gram: Gram, id: Option<&str>, table: &Table) -> Result<Gram> {
    let (Some(names), Some(id)) = (&gram.row_names, id) else {
        return Ok(gram);
    };
    let position: BTreeMap<&str, usize> = names
        .iter()
        .enumerate()
        .map(|(i, name)| (name.as_str(), i))
        .collect();
    let order = table
        .names(id)?
        .iter()
        .map(|name| {
            position.get(name.as_ref()).copied().with_context(|| {
                format!(
                    "the kernel matrix has no row called `{name}`, which column `{id}` of {} names",
                    table.source
                )
            })
        })
        .collect::<Result<Vec<usize>>>()?;
    let values: Vec<f64> = order
        .iter()
        .flat_map(|&i| order.iter().map(move |&j| (i, j)))
        .map(|(i, j)| gram.values[i * gram.columns + j])
        .collect();
    Ok(Gram {
        values: values.into(),
        ..gram
    })
}
