//! Sequential minimal optimisation: Fan, Chen and Lin, "Working set selection using second order information for training
//! support vector machines", JMLR 6 (2005), in label-free form.
//!
//! With g = q − Kβ, a point is optimal when max {g_v : β_v < upper_v} ≤ min {g_v : β_v > lower_v}. Each step takes the pair (i, j)
//! where i has the largest g that can grow and j, among those that can shrink, promises the largest gain
//! (g_i − g_j)² / (K_ii + K_jj − 2K_ij), and moves β_i up and β_j down by the same amount.
//!
//! Shrinking leaves out of the search, for a while, variables at a bound that point firmly outwards. Kβ is kept up to date for
//! all rows regardless, so the final check on the full set costs no reconstruction.

use super::Qp;
use crate::gram::CombinedRows;
use crate::run::Stop;

/// How tightly to solve.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Smo {
    /// Stop when the largest violation max g_up − min g_low is at most this.
    pub(crate) tolerance: f64,
    /// Leave variables out of the search that are unlikely to move.
    pub(crate) shrinking: bool,
    /// Give up after this many steps (the point stays feasible, its gap says what it is worth).
    pub(crate) max_steps: usize,
}

/// Curvature of a direction is taken to be at least this: duplicates have none, indefinite kernels a negative one.
const LEAST_CURVATURE: f64 = 1e-12;

const CAN_GROW: u8 = 1;
const CAN_SHRINK: u8 = 2;

fn status(value: f64, lower: f64, upper: f64) -> u8 {
    (if value < upper { CAN_GROW } else { 0 }) | (if value > lower { CAN_SHRINK } else { 0 })
}

/// Improves `beta` in place, keeping Kβ in `product`; returns the number of steps.
///
/// `beta` must be feasible and `product` its Kβ; both are so again on return, whatever stopped the search.
pub(crate) fn solve(
    qp: &Qp<'_>,
    rows: &CombinedRows<'_>,
    beta: &mut [f64],
    product: &mut [f64],
    smo: &Smo,
    stop: &Stop,
) -> usize {
    let n = product.len();
    let variables = beta.len();
    let mut can: Vec<u8> = (0..variables)
        .map(|v| status(beta[v], qp.lower[v], qp.upper[v]))
        .collect();
    let movable: Vec<usize> = (0..variables)
        .filter(|&v| qp.lower[v] < qp.upper[v])
        .collect();
    let mut active = movable.clone();
    let period = movable.len().clamp(1, 1000);
    let diagonal = rows.diagonal();
    let row_of = |v: usize| if v < n { v } else { v % n };
    let mut steps = 0;
    let mut until_shrinking = period;
    while steps < smo.max_steps {
        if steps % 1000 == 999 && stop.now() {
            break;
        }
        if until_shrinking == 0 {
            until_shrinking = period;
            if smo.shrinking {
                shrink(qp, &can, product, &mut active, row_of);
            }
        }
        let Some((i, j)) = select(qp, rows, &can, product, &active, smo.tolerance, row_of) else {
            if active.len() == movable.len() {
                break;
            }
            // Optimal among those that are left: the final word is the full set's.
            active.clone_from(&movable);
            until_shrinking = period;
            continue;
        };
        let (row_i, row_j) = (row_of(i), row_of(j));
        let (kernel_i, kernel_j) = (rows.row(row_i), rows.row(row_j));
        let curvature =
            (diagonal[row_i] + diagonal[row_j] - 2.0 * kernel_i[row_j]).max(LEAST_CURVATURE);
        let slope = (qp.linear[i] - product[row_i]) - (qp.linear[j] - product[row_j]);
        let room_i = qp.upper[i] - beta[i];
        let room_j = beta[j] - qp.lower[j];
        let step = (slope / curvature).min(room_i).min(room_j);
        // Land on a bound exactly, not one rounding beside it.
        beta[i] = if step >= room_i {
            qp.upper[i]
        } else {
            beta[i] + step
        };
        beta[j] = if step >= room_j {
            qp.lower[j]
        } else {
            beta[j] - step
        };
        can[i] = status(beta[i], qp.lower[i], qp.upper[i]);
        can[j] = status(beta[j], qp.lower[j], qp.upper[j]);
        for ((value, a), b) in product.iter_mut().zip(kernel_i).zip(kernel_j) {
            *value += step * (a - b);
        }
        steps += 1;
        until_shrinking -= 1;
    }
    steps
}

/// The pair to move, or `None` when no pair violates optimality by more than the tolerance.
fn select(
    qp: &Qp<'_>,
    rows: &CombinedRows<'_>,
    can: &[u8],
    product: &[f64],
    active: &[usize],
    tolerance: f64,
    row_of: impl Fn(usize) -> usize,
) -> Option<(usize, usize)> {
    let mut first = None;
    let mut highest = f64::NEG_INFINITY;
    for &v in active {
        let slope = qp.linear[v] - product[row_of(v)];
        if can[v] & CAN_GROW != 0 && slope > highest {
            highest = slope;
            first = Some(v);
        }
    }
    let i = first?;
    let kernel = rows.row(row_of(i));
    let diagonal = rows.diagonal();
    let own = diagonal[row_of(i)];
    let mut lowest = f64::INFINITY;
    let mut best = 0.0;
    let mut second = None;
    for &v in active {
        if can[v] & CAN_SHRINK == 0 {
            continue;
        }
        let row = row_of(v);
        let slope = qp.linear[v] - product[row];
        lowest = lowest.min(slope);
        let difference = highest - slope;
        if difference > 0.0 {
            let curvature = (own + diagonal[row] - 2.0 * kernel[row]).max(LEAST_CURVATURE);
            let gain = difference * difference / curvature;
            if gain > best {
                best = gain;
                second = Some(v);
            }
        }
    }
    // A difference within rounding of the slopes themselves cannot be improved on.
    let floor = 1e-15 * highest.abs().max(lowest.abs());
    if highest - lowest <= tolerance.max(floor) {
        None
    } else {
        second.map(|j| (i, j))
    }
}

/// Keeps the variables that may still move.
fn shrink(
    qp: &Qp<'_>,
    can: &[u8],
    product: &[f64],
    active: &mut Vec<usize>,
    row_of: impl Fn(usize) -> usize,
) {
    let slope = |v: usize| qp.linear[v] - product[row_of(v)];
    let mut highest = f64::NEG_INFINITY;
    let mut lowest = f64::INFINITY;
    for &v in active.iter() {
        if can[v] & CAN_GROW != 0 {
            highest = highest.max(slope(v));
        }
        if can[v] & CAN_SHRINK != 0 {
            lowest = lowest.min(slope(v));
        }
    }
    active.retain(|&v| match can[v] {
        CAN_SHRINK => slope(v) <= highest,
        CAN_GROW => slope(v) >= lowest,
        _ => true,
    });
}
