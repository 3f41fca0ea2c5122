//! How much of the predictions is shared at which level.

use mtmkl::grid::Grid;

/// Shares of the variance of predictions, by level.
#[derive(Debug, Clone, PartialEq)]
pub struct VarianceShares {
    /// The levels, in the order of their first kernels.
    pub levels: Vec<String>,
    /// The share of each level over all rows.
    pub overall: Vec<f64>,
    /// The same over the rows of each task.
    pub by_task: Vec<Vec<f64>>,
}

/// Var(f_g) / Σ_h Var(f_h), where f_g is what the kernels of level g add to the predictions: over all rows and over those of each task.
///
/// `machines` are what each kernel adds, kernels × rows, for each machine on these rows, whose variances are added; `levels` are those of the
/// kernels, `task` is the number of each row's task, of so many. The shares are not those of the variance of the sum, since levels may go
/// together or against each other. Where nothing varies, or there are no rows, they are not numbers.
///
/// Kernel weights say less: θ_m is proportional to ‖f_m‖^{2/(p+1)}, which flattens the differences.
pub fn variance_shares(
    machines: &[Grid],
    levels: &[String],
    task: &[usize],
    tasks: usize,
) -> VarianceShares {
    let mut names: Vec<String> = Vec::new();
    let mut level_of = Vec::with_capacity(levels.len());
    for level in levels {
        let known = names.iter().position(|name| name == level);
        level_of.push(known.unwrap_or_else(|| {
            names.push(level.clone());
            names.len() - 1
        }));
    }
    let mut overall = vec![0.0; names.len()];
    let mut by_task = vec![vec![0.0; names.len()]; tasks];
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); tasks];
    for (row, &task) in task.iter().enumerate() {
        if let Some(own) = rows.get_mut(task) {
            own.push(row);
        }
    }
    let all: Vec<usize> = (0..task.len()).collect();
    for contributions in machines {
        let mut sums = vec![vec![0.0; task.len()]; names.len()];
        for (kernel, &level) in level_of.iter().enumerate() {
            let parts = contributions.row(kernel).iter();
            for (sum, part) in sums[level].iter_mut().zip(parts) {
                *sum += part;
            }
        }
        for (level, sums) in sums.iter().enumerate() {
            overall[level] += variance(sums, &all);
            for (own, rows) in by_task.iter_mut().zip(&rows) {
                own[level] += variance(sums, rows);
            }
        }
    }
    to_shares(&mut overall);
    for own in &mut by_task {
        to_shares(own);
    }
    VarianceShares {
        levels: names,
        overall,
        by_task,
    }
}

/// The mean of (v − mean of v)² over some rows.
fn variance(values: &[f64], rows: &[usize]) -> f64 {
    if rows.is_empty() {
        return 0.0;
    }
    let count = rows.len() as f64;
    // What is constant has no variance at all, which a mean that is rounded would give it.
    if rows.iter().all(|&row| values[row] == values[rows[0]]) {
        return 0.0;
    }
    let mean = rows.iter().map(|&row| values[row]).sum::<f64>() / count;
    let squares = rows.iter().map(|&row| (values[row] - mean).powi(2));
    squares.sum::<f64>() / count
}

fn to_shares(variances: &mut [f64]) {
    let total: f64 = variances.iter().sum();
    for value in variances {
        *value /= total;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn levels() -> Vec<String> {
        ["all", "own", "all", "offset"].map(String::from).to_vec()
    }

    #[test]
    fn kernels_of_a_level_are_added_before_their_variance_is_taken() {
        // all: 1 + 1, 3 − 1, 2, 2 has no variance in the second task; own: 0, 0, ±1; offset: by task.
        let values = [
            [1.0, 3.0, 0.0, 4.0],
            [0.0, 0.0, 1.0, -1.0],
            [1.0, -1.0, 0.0, 0.0],
            [2.0, 2.0, -2.0, -2.0],
        ];
        let grid = Grid::new(4, 4, values.concat()).unwrap();
        let found = variance_shares(std::slice::from_ref(&grid), &levels(), &[0, 0, 1, 1], 3);
        assert_eq!(found.levels, ["all", "own", "offset"]);
        // Variances 2, ½ and 4 over all rows; 0, 0, 0 in the first task and 4, 1, 0 in the second.
        let shares = [2.0 / 6.5, 0.5 / 6.5, 4.0 / 6.5];
        assert_eq!(found.overall, shares);
        assert!(found.by_task[0].iter().all(|share| share.is_nan()));
        assert_eq!(found.by_task[1], [0.8, 0.2, 0.0]);
        assert!(found.by_task[2].iter().all(|share| share.is_nan()));
        // A second machine of the same parts changes no share, one without variance neither.
        let nothing = Grid::filled(4, 4, 1.0);
        let twice = variance_shares(&[grid.clone(), grid, nothing], &levels(), &[0, 0, 1, 1], 3);
        assert_eq!(twice.overall, shares);
        assert_eq!(twice.by_task[1], [0.8, 0.2, 0.0]);
    }
}
