//! How much memory one task takes, for its kind of dual.

use super::{Allowance, box_qp, linear_system, nystrom};
use crate::gram::square;
use crate::ledger::bytes_of;
use crate::machine::{Conjugate, Dual};

/// Bytes of one task at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes {
    /// What stays from one evaluation to the next: for each task.
    pub(crate) stays: u64,
    /// What passes: for each task that is solved at the same time.
    pub(crate) passes: u64,
}

/// What a task with this dual and so many kernels takes at most: rows of K(θ), U_m = K_mβ, the factorisation of its solver, the block that
/// curvature is made of, and sums with twice the digits.
pub(crate) fn bytes(dual: &Dual, kernels: usize, allowance: Allowance) -> Bytes {
    let n = dual.variables.samples();
    let block = bytes_of::<f64>(n * kernels);
    // The M × M matrix and its factor, where there are fewer kernels than samples.
    let compressed = bytes_of::<f64>(2 * kernels * kernels.min(n));
    let rows = square(n);
    match dual.conjugate {
        Conjugate::Box { .. } => {
            let is_streamed = allowance.working_set < usize::MAX;
            let part = n.min(allowance.working_set);
            let free = part.min(allowance.most_free);
            let rows = if is_streamed {
                box_qp::bytes_of_part(part)
            } else {
                rows
            };
            let curvature = bytes_of::<f64>(free * kernels) + compressed;
            // High and low parts of K_mβ.
            let exact = if is_streamed { 0 } else { 2 * block };
            let interior = if allowance.interior_points && part <= box_qp::MOST_SAMPLES {
                box_qp::bytes_of_interior_points(part)
            } else {
                0
            };
            let factor = box_qp::bytes_of_free_set(free);
            // U on all samples, and its next change.
            let images = if is_streamed { 2 * block } else { block };
            Bytes {
                stays: images + factor,
                // The factorisation is given back before interior points are asked for.
                passes: rows + curvature.max(exact).max(interior.saturating_sub(factor)),
            }
        }
        Conjugate::Ridge { .. } | Conjugate::Smooth { .. }
            if allowance.working_set < usize::MAX =>
        {
            // Of so many samples K(θ) and its factor are kept; of more, landmarks stand for it.
            let part = n.min(allowance.working_set);
            let landmarks = if n > part {
                nystrom::bytes(n, nystrom::landmarks(n, allowance.most_free))
            } else {
                0
            };
            Bytes {
                // U on all samples, and its next change.
                stays: 2 * block + landmarks.max(linear_system::bytes_of_factor(part)),
                passes: block + compressed + square(part),
            }
        }
        Conjugate::Ridge { .. } | Conjugate::Smooth { .. } => {
            let factor = linear_system::bytes_of_factor(n);
            let is_kept = allowance.rows || matches!(dual.conjugate, Conjugate::Smooth { .. });
            let passes = block + compressed + if is_kept { rows } else { 0 };
            if allowance.factors {
                Bytes {
                    stays: block + factor,
                    passes,
                }
            } else {
                Bytes {
                    stays: block,
                    passes: passes + factor,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::tests::Logistic;
    use super::*;
    use crate::machine::Variables;

    const N: usize = 10;

    fn dual(conjugate: Conjugate) -> Dual {
        Dual {
            scale: 1.0,
            variables: Variables::one_each(N),
            linear: vec![1.0; N],
            diagonal: 0.0,
            conjugate,
        }
    }

    fn a_box() -> Dual {
        dual(Conjugate::Box {
            lower: vec![0.0; N],
            upper: vec![1.0; N],
            sum: 1.0,
        })
    }

    fn ridge() -> Dual {
        dual(Conjugate::Ridge {
            ridge: vec![1.0; N],
        })
    }

    fn smooth() -> Dual {
        dual(Conjugate::Smooth {
            function: Arc::new(Logistic {
                labels: vec![1.0; N],
                c: 1.0,
            }),
            sum: None,
        })
    }

    fn doubles(count: usize) -> u64 {
        8 * count as u64
    }

    #[test]
    fn a_box_takes_rows_images_its_factor_and_the_most_that_comes_after() {
        let all = Allowance::default();
        let few = Allowance {
            most_free: 4,
            interior_points: false,
            ..all
        };
        let factor = box_qp::bytes_of_free_set(N);
        let interior = box_qp::bytes_of_interior_points(N).saturating_sub(factor);
        // Three kernels: sums with twice the digits are 2 n M, and curvature n M and two M × M matrices.
        let found = bytes(&a_box(), 3, all);
        let most = doubles(2 * 30).max(doubles(30 + 18)).max(interior);
        let expected = Bytes {
            stays: doubles(30) + factor,
            passes: doubles(100) + most,
        };
        assert_eq!(found, expected);
        let expected = Bytes {
            stays: doubles(30) + box_qp::bytes_of_free_set(4),
            passes: doubles(100) + doubles(2 * 30),
        };
        assert_eq!(bytes(&a_box(), 3, few), expected);
        // Twenty kernels: what is compressed is M × n.
        let passes = bytes(&a_box(), 20, few).passes;
        assert_eq!(
            passes,
            doubles(100) + doubles(4 * 20 + 2 * 20 * N).max(doubles(2 * 200))
        );
        let passes = bytes(
            &a_box(),
            20,
            Allowance {
                interior_points: false,
                ..all
            },
        )
        .passes;
        assert_eq!(passes, doubles(100) + doubles(N * 20 + 2 * 20 * N));
    }

    #[test]
    fn a_streamed_box_takes_what_its_parts_take_and_images_twice() {
        let streamed = Allowance {
            working_set: 6,
            interior_points: false,
            ..Allowance::default()
        };
        let expected = Bytes {
            stays: doubles(2 * 30) + box_qp::bytes_of_free_set(6),
            passes: box_qp::bytes_of_part(6) + doubles(6 * 3 + 18),
        };
        assert_eq!(bytes(&a_box(), 3, streamed), expected);
        let all = Allowance {
            interior_points: true,
            ..streamed
        };
        let interior =
            box_qp::bytes_of_interior_points(6).saturating_sub(box_qp::bytes_of_free_set(6));
        let passes = box_qp::bytes_of_part(6) + doubles(6 * 3 + 18).max(interior);
        assert_eq!(bytes(&a_box(), 3, all).passes, passes);
    }

    #[test]
    fn a_linear_system_takes_rows_its_factor_and_the_block_of_curvature() {
        let all = Allowance::default();
        let (factor, block, rows) = (
            linear_system::bytes_of_factor(N),
            doubles(30 + 18),
            doubles(100),
        );
        for (dual, is_ridge) in [(ridge(), true), (smooth(), false)] {
            let found = bytes(&dual, 3, all);
            assert_eq!(
                (found.stays, found.passes),
                (doubles(30) + factor, block + rows)
            );
            let found = bytes(
                &dual,
                3,
                Allowance {
                    factors: false,
                    ..all
                },
            );
            assert_eq!(
                (found.stays, found.passes),
                (doubles(30), block + rows + factor)
            );
            // Only a ridge can do without rows.
            let found = bytes(&dual, 3, Allowance { rows: false, ..all });
            assert_eq!(found.passes, if is_ridge { block } else { block + rows });
        }
    }

    #[test]
    fn a_streamed_system_has_landmarks_where_it_does_not_fit() {
        for dual in [ridge(), smooth()] {
            let with = |working_set: usize, most_free: usize| {
                let allowance = Allowance {
                    most_free,
                    working_set,
                    ..Allowance::default()
                };
                bytes(&dual, 3, allowance)
            };
            let found = with(6, 100);
            let landmarks = nystrom::bytes(N, nystrom::landmarks(N, 100));
            let factor = linear_system::bytes_of_factor(6);
            assert!(landmarks > factor);
            assert_eq!(found.stays, doubles(2 * 30) + landmarks);
            assert_eq!(found.passes, doubles(30 + 18) + doubles(36));
            // All of them fit: no landmarks.
            let found = with(N, 100);
            assert_eq!(
                found.stays,
                doubles(2 * 30) + linear_system::bytes_of_factor(N)
            );
            assert_eq!(found.passes, doubles(30 + 18) + doubles(100));
        }
        assert_eq!(nystrom::landmarks(100, 1000), 25);
        assert_eq!(
            (
                nystrom::landmarks(100, 7),
                nystrom::landmarks(1 << 20, 9999)
            ),
            (7, 2000)
        );
        // B of 512 columns; L, A and a factor in double precision.
        assert_eq!(nystrom::bytes(100, 3), 4 * 3 * 512 + 4 * 18 + 8 * 9);
    }
}
