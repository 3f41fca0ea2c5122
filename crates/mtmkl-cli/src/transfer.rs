//! `--transfer`: kernels between tasks, from flags.

use std::path::Path;

use anyhow::{Context, Result, bail};
use mtmkl::kernel::KernelView;
use mtmkl::task_kernel::{SIMILARITY, TaskKernels};
use mtmkl_table::{is_between_tasks, kernels_between_tasks};

use crate::args::FitArgs;
use crate::input::{self, TableOptions};

/// Whether one machine is to learn from all tasks: where flags name task kernels, or kernels do.
///
/// # Errors
/// When there are no tasks, or a flag is without what it is of.
pub(crate) fn is_wanted(args: &FitArgs) -> Result<bool> {
    let is_wanted = is_said_by_flags(args);
    let flag = match (
        &args.transfer[..],
        &args.task_similarity,
        args.no_task_offset,
    ) {
        ([_, ..], ..) => "--transfer",
        (_, Some(_), _) => "--task-similarity",
        (_, _, true) => "--no-task-offset",
        _ if is_wanted => "--kernel … *TASKS",
        _ => return Ok(false),
    };
    if !is_wanted {
        bail!("{flag} is of --transfer; say what is to be shared, as in --transfer all,own");
    }
    if args.task.is_none() {
        bail!("{flag} is between tasks; name the tasks' column with --task COLUMN");
    }
    if args.task_similarity.is_none() && args.transfer.iter().any(|word| word == SIMILARITY) {
        bail!("--transfer {SIMILARITY} needs --task-similarity FILE");
    }
    Ok(true)
}

/// Whether flags or kernels name task kernels.
pub(crate) fn is_said_by_flags(args: &FitArgs) -> bool {
    // What cannot be read is told later, with the names that files get.
    let is_said = |spec: &String| {
        let views = args.registry.parse_kernels(spec).unwrap_or_default();
        !spec.starts_with("precomputed:path") && views.iter().any(is_between_tasks)
    };
    !args.transfer.is_empty() || args.kernel.iter().any(is_said)
}

/// Each kernel with each of the task kernels, unless it says itself which, and an offset for each task.
///
/// # Errors
/// When there is no such task kernel.
pub(crate) fn kernels(
    args: &FitArgs,
    views: Vec<KernelView>,
    known: &TaskKernels,
) -> Result<Vec<KernelView>> {
    if !args.no_task_offset && views.iter().all(|view| view.kernel.base().is_given()) {
        bail!(
            "--transfer: precomputed kernels alone leave no room for an offset of each task; add --no-task-offset"
        );
    }
    let views = views.into_iter().map(|view| {
        let is_said = is_between_tasks(&view);
        (view, is_said)
    });
    kernels_between_tasks(views.collect(), &args.transfer, known, !args.no_task_offset)
        .with_context(|| format!("--transfer {}", args.transfer.join(",")))
}

/// The similarities of these tasks, in their order, from a table whose first column and header name tasks.
///
/// # Errors
/// When a task is missing, or something is no number.
pub(crate) fn similarity(path: &Path, tasks: &[String]) -> Result<Vec<f64>> {
    let table = input::read_table(path, None, &TableOptions::default())?;
    // Which column names tasks is known now: `007` and `7` are two.
    let first = table.column_names().next().map(str::to_string);
    let options = TableOptions {
        text: first.into_iter().collect(),
        ..TableOptions::default()
    };
    let table = input::read_table(path, None, &options)?;
    let columns: Vec<&str> = table.column_names().collect();
    let first = columns.first().copied().unwrap_or_default();
    let rows = mtmkl_table::Names::of(&table, first, &[])?;
    let mut values = Vec::with_capacity(tasks.len() * tasks.len());
    for task in tasks {
        let row = (0..table.rows).find(|&row| rows.get(row) == task);
        let row = row.with_context(|| {
            format!("{}: there is no row for the task `{task}`; its first column, `{first}`, names tasks", table.source)
        })?;
        for other in tasks {
            if !columns.contains(&other.as_str()) {
                bail!(
                    "{}: there is no column for the task `{other}`",
                    table.source
                );
            }
            values.push(table.numeric(other)?[row]);
        }
    }
    Ok(values)
}

/// The same kernels, none of them between tasks and each of them once.
pub(crate) fn forget(views: &mut Vec<KernelView>) {
    let mut known: Vec<Option<String>> = Vec::new();
    views.retain_mut(|view| {
        view.between = None;
        let spec = view.spec();
        let is_new = spec.is_none() || !known.contains(&spec);
        known.push(spec);
        is_new
    });
}
