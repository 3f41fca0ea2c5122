//! Level lines and level regions of a function sampled on a rectangular grid.
//!
//! Marching squares with linear interpolation. Every segment is directed so that the higher values lie on
//! its left; then each crossed grid edge has at most one successor and the segments join into polylines by
//! following one array, without any search for equal coordinates.

use crate::scene::{Polyline, Pt};

/// What a grid node without a finite value means.
#[derive(Clone, Copy, PartialEq)]
enum Gap {
    /// Cells that touch it are left out: a line must not be invented there.
    Skip,
    /// It lies outside the region, whose border then runs through its neighbours.
    Outside,
}

/// Values at the nodes of a rectangular grid, row by row from the lowest y.
#[derive(Debug, Clone)]
pub(super) struct Lattice {
    xs: Vec<f64>,
    ys: Vec<f64>,
    values: Vec<f64>,
}

impl Lattice {
    /// `None` when there is no cell, or when the number of values is not that of the nodes.
    pub(super) fn new(
        x_range: (f64, f64),
        y_range: (f64, f64),
        grid: (usize, usize),
        values: &[f64],
    ) -> Option<Self> {
        let nodes = grid.0.checked_mul(grid.1)?;
        if grid.0 < 2 || grid.1 < 2 || values.len() != nodes {
            return None;
        }
        Some(Self {
            xs: nodes_of(x_range, grid.0).collect(),
            ys: nodes_of(y_range, grid.1).collect(),
            values: values.to_vec(),
        })
    }

    /// The lines on which the function has the value `level`.
    pub(super) fn lines(&self, level: f64) -> Vec<Polyline> {
        trace(&self.xs, &self.ys, &self.values, level, Gap::Skip)
    }

    /// The region of values greater than `level`: closed outlines, holes running the other way round.
    pub(super) fn above(&self, level: f64) -> Vec<Polyline> {
        self.region(level, 1.0)
    }

    /// The region of values less than `level`: closed outlines, holes running the other way round.
    pub(super) fn below(&self, level: f64) -> Vec<Polyline> {
        self.region(-level, -1.0)
    }

    /// The region where `sign` times the function exceeds `level`. A rim of nodes that lie outside it,
    /// at the coordinates of the border nodes, closes every outline along the border of the grid.
    fn region(&self, level: f64, sign: f64) -> Vec<Polyline> {
        let (nx, ny) = (self.xs.len(), self.ys.len());
        let mut values = vec![f64::NEG_INFINITY; (nx + 2) * (ny + 2)];
        for j in 0..ny {
            for i in 0..nx {
                let v = sign * self.values[j * nx + i];
                if v.is_finite() {
                    values[(j + 1) * (nx + 2) + i + 1] = v;
                }
            }
        }
        trace(
            &rimmed(&self.xs),
            &rimmed(&self.ys),
            &values,
            level,
            Gap::Outside,
        )
    }
}

/// `count` evenly spaced coordinates that include both ends of the range.
pub(super) fn nodes_of(range: (f64, f64), count: usize) -> impl Iterator<Item = f64> {
    let last = count.saturating_sub(1).max(1) as f64;
    (0..count).map(move |k| {
        // Weighing both ends, not stepping from one: the last node is exactly the end of the range.
        let t = k as f64 / last;
        range.0 * (1.0 - t) + range.1 * t
    })
}

/// The coordinates with the first and the last one doubled.
fn rimmed(coordinates: &[f64]) -> Vec<f64> {
    let first = coordinates.first().copied();
    let last = coordinates.last().copied();
    first
        .into_iter()
        .chain(coordinates.iter().copied())
        .chain(last)
        .collect()
}

const NONE: usize = usize::MAX;

fn trace(xs: &[f64], ys: &[f64], values: &[f64], level: f64, gap: Gap) -> Vec<Polyline> {
    let (nx, ny) = (xs.len(), ys.len());
    let nodes = nx * ny;
    // Edge k < nodes leaves node k to the right, edge nodes + k leaves node k upwards.
    let mut next = vec![NONE; 2 * nodes];
    let mut entered = vec![false; 2 * nodes];
    for j in 0..ny - 1 {
        for i in 0..nx - 1 {
            let node = j * nx + i;
            // Corners and edges counter-clockwise from the lower left; edge k joins corners k and k + 1.
            let corners = [node, node + 1, node + nx + 1, node + nx].map(|n| values[n]);
            let edges = [node, nodes + node + 1, node + nx, nodes + node];
            if gap == Gap::Skip && corners.iter().any(|v| !v.is_finite()) {
                continue;
            }
            let inside = corners.map(|v| v > level);
            let leaves = |k: usize| inside[k] && !inside[(k + 1) % 4];
            let enters = |k: usize| !inside[k] && inside[(k + 1) % 4];
            let saddle = inside[0] == inside[2] && inside[1] == inside[3] && inside[0] != inside[1];
            // Of the two ways through a saddle the mean of the corners picks one.
            let joined = corners.iter().map(|v| v / 4.0).sum::<f64>() > level;
            for k in (0..4).filter(|&k| leaves(k)) {
                let to = if saddle {
                    if joined { (k + 1) % 4 } else { (k + 3) % 4 }
                } else {
                    (0..4).find(|&m| enters(m)).unwrap_or(k)
                };
                next[edges[k]] = edges[to];
                entered[edges[to]] = true;
            }
        }
    }

    let crossing = |edge: usize| -> Pt {
        let (a, b) = if edge < nodes {
            (edge, edge + 1)
        } else {
            (edge - nodes, edge - nodes + nx)
        };
        // From the inner node, whose value is finite, so that an outer one without value needs no care.
        let (a, b) = if values[a] > level { (a, b) } else { (b, a) };
        let t = if values[b].is_finite() {
            (level - values[a]) / (values[b] - values[a])
        } else {
            0.0
        };
        let (ax, ay) = (xs[a % nx], ys[a / nx]);
        let (bx, by) = (xs[b % nx], ys[b / nx]);
        (ax + t * (bx - ax), ay + t * (by - ay))
    };

    // Chains that begin at the border or beside a gap come first: what then is left are loops.
    let open = (0..2 * nodes).filter(|&e| next[e] != NONE && !entered[e]);
    let starts: Vec<usize> = open.chain(0..2 * nodes).collect();
    let mut lines = Vec::new();
    for start in starts {
        if next[start] == NONE {
            continue;
        }
        let mut points = vec![crossing(start)];
        let mut edge = std::mem::replace(&mut next[start], NONE);
        while edge != start {
            let p = crossing(edge);
            // A level met exactly at a node gives the same point on several edges.
            if points.last() != Some(&p) {
                points.push(p);
            }
            edge = std::mem::replace(&mut next[edge], NONE);
            if edge == NONE {
                break;
            }
        }
        let closed = edge == start;
        if closed && points.len() > 1 && points.first() == points.last() {
            points.pop();
        }
        if points.len() > 1 {
            lines.push(Polyline { points, closed });
        }
    }
    lines
}

/// The polyline with the points left out that lie within `tolerance` of the rest (Douglas and Peucker).
pub(super) fn simplified(line: &Polyline, tolerance: f64) -> Polyline {
    let mut points = line.points.clone();
    if line.closed {
        // As a chain that returns to its start; the first cut is then at the point farthest from it.
        points.extend(line.points.first().copied());
    }
    let mut keep = vec![false; points.len()];
    let mut spans = Vec::new();
    if let Some(last) = points.len().checked_sub(1) {
        keep[0] = true;
        keep[last] = true;
        spans.push((0, last));
    }
    while let Some((a, b)) = spans.pop() {
        let mut farthest = (tolerance, None);
        for k in a + 1..b {
            let d = distance(points[k], points[a], points[b]);
            if d > farthest.0 {
                farthest = (d, Some(k));
            }
        }
        if let Some(k) = farthest.1 {
            keep[k] = true;
            spans.push((a, k));
            spans.push((k, b));
        }
    }
    let mut kept: Vec<Pt> = (0..points.len())
        .filter(|&k| keep[k])
        .map(|k| points[k])
        .collect();
    if line.closed {
        kept.pop();
    }
    Polyline {
        points: kept,
        closed: line.closed,
    }
}

/// Distance of `p` from the segment between `a` and `b`.
pub(super) fn distance(p: Pt, a: Pt, b: Pt) -> f64 {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let length2 = dx * dx + dy * dy;
    let t = if length2 > 0.0 {
        (((p.0 - a.0) * dx + (p.1 - a.1) * dy) / length2).clamp(0.0, 1.0)
    } else {
        0.0
    };
    (p.0 - a.0 - t * dx).hypot(p.1 - a.1 - t * dy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lattice(n: usize, f: impl Fn(f64, f64) -> f64) -> Lattice {
        let range = (-2.0, 2.0);
        let mut values = Vec::new();
        for y in nodes_of(range, n) {
            for x in nodes_of(range, n) {
                values.push(f(x, y));
            }
        }
        Lattice::new(range, range, (n, n), &values).unwrap()
    }

    /// Signed area: positive when the polygon runs counter-clockwise.
    fn area(line: &Polyline) -> f64 {
        let p = &line.points;
        (0..p.len())
            .map(|k| {
                let (a, b) = (p[k], p[(k + 1) % p.len()]);
                (a.0 * b.1 - b.0 * a.1) / 2.0
            })
            .sum()
    }

    fn total(region: &[Polyline]) -> f64 {
        region.iter().map(area).sum()
    }

    #[test]
    fn circle_has_its_radius_and_area() {
        let l = lattice(81, |x, y| x * x + y * y - 1.0);
        let lines = l.lines(0.0);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].closed);
        assert!(lines[0].points.len() > 80);
        for p in &lines[0].points {
            assert!((p.0.hypot(p.1) - 1.0).abs() < 1e-3, "{p:?}");
        }
        // Higher values, the outside, lie on the left: clockwise.
        assert!((area(&lines[0]) + std::f64::consts::PI).abs() < 5e-3);
        assert!((total(&l.below(0.0)) - std::f64::consts::PI).abs() < 5e-3);
        assert!((total(&l.above(0.0)) + std::f64::consts::PI - 16.0).abs() < 5e-3);
    }

    #[test]
    fn straight_line_is_one_open_chain() {
        let l = lattice(9, |x, y| x + 0.5 * y - 0.1);
        let lines = l.lines(0.0);
        assert_eq!(lines.len(), 1);
        assert!(!lines[0].closed);
        for p in &lines[0].points {
            assert!((p.0 + 0.5 * p.1 - 0.1).abs() < 1e-12);
        }
        let s = simplified(&lines[0], 1e-9);
        assert_eq!(s.points.len(), 2);
        let ends: f64 = s.points.iter().map(|p| p.1.abs()).sum();
        assert!((ends - 4.0).abs() < 1e-12, "from border to border");
    }

    #[test]
    fn level_through_the_nodes() {
        let l = lattice(5, |x, y| x * y);
        let points: usize = l.lines(0.0).iter().map(|l| l.points.len()).sum();
        assert!(points > 0);
        // Two quadrants of area 4, of each a triangle of 1/2 is lost in the cell with three zeros.
        assert!((total(&l.above(0.0)) - 7.0).abs() < 1e-9);
        assert!((total(&l.below(0.0)) - 7.0).abs() < 1e-9);
    }

    #[test]
    fn saddles_close_up() {
        let l = lattice(12, |x, y| (9.0 * x + 4.0).sin() * (8.0 * y).cos());
        for line in l.above(0.0).iter().chain(&l.below(0.0)) {
            assert!(line.closed);
        }
        let sum = total(&l.above(0.0)) + total(&l.below(0.0));
        assert!((sum - 16.0).abs() < 1e-9, "{sum}");
    }

    #[test]
    fn constant_grid_has_no_lines() {
        for v in [0.0, 1.0, -3.0] {
            let l = lattice(6, |_, _| v);
            assert!(l.lines(0.0).is_empty());
        }
        assert!((total(&lattice(6, |_, _| 1.0).above(0.0)) - 16.0).abs() < 1e-12);
        assert!(lattice(6, |_, _| 0.0).above(0.0).is_empty());
        assert!(lattice(6, |_, _| 0.0).below(0.0).is_empty());
    }

    #[test]
    fn nodes_without_value_are_skipped() {
        for hole in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let l = lattice(21, |x, y| if x.hypot(y) < 0.5 { hole } else { x });
            let lines = l.lines(0.0);
            assert_eq!(lines.len(), 2, "one below the hole, one above");
            for p in lines.iter().flat_map(|l| &l.points) {
                assert!(p.0.abs() < 1e-12 && p.1.abs() > 0.39, "{p:?}");
            }
            for line in l.above(0.0).iter().chain(&l.below(0.0)) {
                assert!(line.closed);
                assert!(
                    line.points
                        .iter()
                        .all(|p| p.0.is_finite() && p.1.is_finite())
                );
            }
        }
        assert!(lattice(5, |_, _| f64::NAN).lines(0.0).is_empty());
        assert!(lattice(5, |_, _| f64::NAN).above(0.0).is_empty());
    }

    #[test]
    fn wrong_sizes_are_refused() {
        let r = (0.0, 1.0);
        assert!(Lattice::new(r, r, (2, 2), &[0.0; 3]).is_none());
        assert!(Lattice::new(r, r, (1, 3), &[0.0; 3]).is_none());
        assert!(Lattice::new(r, r, (usize::MAX, 2), &[]).is_none());
    }

    #[test]
    fn simplified_keeps_a_loop() {
        let square = Polyline {
            points: vec![
                (0.0, 0.0),
                (0.5, 0.0),
                (1.0, 0.0),
                (1.0, 1.0),
                (0.0, 1.0),
                (0.0, 0.5),
            ],
            closed: true,
        };
        let s = simplified(&square, 1e-6);
        assert_eq!(s.points, [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]);
    }
}
