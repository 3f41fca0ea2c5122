//! Pictures of machines on two features: samples, support vectors, and what the machine says of every point of the plane.
//!
//! One panel per task, side by side. [`panels`] makes them from a model, [`svg`] draws them as a document of its own without scripts,
//! ids or style rules.
//!
//! Classes differ in shape and in colour (blue discs, orange triangles, …; told apart also by colour-blind readers), support vectors
//! are ringed where other samples are shown too, the boundary is a solid line, the margins are dashed, and the sides of the boundary
//! are tinted in the colours of their classes.

mod contour;
mod layout;
mod legend;
mod marks;
mod model;
mod plot;

pub use model::panels;
pub(crate) use model::picture;

/// A sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The first feature.
    pub x: f64,
    /// The second feature.
    pub y: f64,
    /// The number of its class, where there are classes.
    pub class: Option<usize>,
    /// Whether to ring it as a support vector.
    pub support: bool,
}

/// What a machine says of the plane, at the nodes of a panel's grid.
#[derive(Debug, Clone, PartialEq)]
pub enum Field {
    /// Decision values between two classes, < 0 for the first and > 0 for the second.
    Sides {
        /// Names of the classes −1 and +1.
        classes: [String; 2],
        /// At each node.
        values: Vec<f64>,
    },
    /// A value for each class, the largest of which wins.
    Regions {
        /// Names of the classes.
        classes: Vec<String>,
        /// For each class, at each node.
        values: Vec<Vec<f64>>,
    },
    /// ≥ 0 for what is like the samples.
    Inside {
        /// At each node.
        values: Vec<f64>,
    },
    /// A predicted number.
    Levels {
        /// At each node.
        values: Vec<f64>,
    },
}

/// One machine with its samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// What is written above it, for instance the name of the task.
    pub title: String,
    /// Name of the first feature.
    pub x_label: String,
    /// Name of the second feature.
    pub y_label: String,
    /// The samples. Those outside the ranges, or without finite coordinates, are not drawn; the
    /// description in the SVG tells how many there are.
    pub points: Vec<Point>,
    /// Lowest and highest value of the first feature that is shown.
    pub x_range: (f64, f64),
    /// Lowest and highest value of the second feature that is shown.
    pub y_range: (f64, f64),
    /// Numbers of grid nodes along x and along y, which include both ends of the ranges; at least two each.
    pub grid: (usize, usize),
    /// What is said at the nodes, in the order of [`Panel::nodes`]; no values for samples alone. Where a
    /// value is not finite nothing is drawn. When there are more or fewer values than nodes, or a range is
    /// empty, none is drawn and the panel says so.
    pub field: Field,
}

impl Panel {
    /// The nodes of the grid in the order of the values: row by row from the lowest y, each row from
    /// the lowest x.
    pub fn nodes(&self) -> impl Iterator<Item = (f64, f64)> {
        contour::nodes_of(self.y_range, self.grid.1)
            .flat_map(|y| contour::nodes_of(self.x_range, self.grid.0).map(move |x| (x, y)))
    }

    fn is_shown(&self, p: &Point) -> bool {
        let within = |v: f64, r: (f64, f64)| r.0 <= v && v <= r.1;
        within(p.x, shown(self.x_range)) && within(p.y, shown(self.y_range))
    }
}

impl Field {
    /// Names of the classes; none where there are none.
    fn classes(&self) -> &[String] {
        match self {
            Self::Sides { classes, .. } => classes,
            Self::Regions { classes, .. } => classes,
            Self::Inside { .. } | Self::Levels { .. } => &[],
        }
    }

    /// Whether there are only samples.
    fn is_empty(&self) -> bool {
        match self {
            Self::Sides { values, .. } | Self::Inside { values } | Self::Levels { values } => {
                values.is_empty()
            }
            Self::Regions { values, .. } => values.is_empty(),
        }
    }
}

/// The range of the finite values among `values`, widened on both sides by `share` of its length: room
/// around the samples. (0, 1) without any finite value.
fn padded_range(values: impl IntoIterator<Item = f64>, share: f64) -> (f64, f64) {
    let ends = values
        .into_iter()
        .filter(|v| v.is_finite())
        .fold(None, |ends: Option<(f64, f64)>, v| {
            Some(ends.map_or((v, v), |(a, b)| (a.min(v), b.max(v))))
        });
    let (low, high) = shown(ends.unwrap_or((0.0, 1.0)));
    let pad = share * (high - low);
    (low - pad, high + pad)
}

/// The range an axis shows: a range without length gets one, as an axis cannot do without.
fn shown(range: (f64, f64)) -> (f64, f64) {
    let (low, high) = range;
    if (high - low).is_finite() && low < high {
        range
    } else if low.is_finite() && low == high {
        // Also a large number must differ from its neighbours.
        let half = (low.abs() * 1e-3).max(0.5);
        (low - half, low + half)
    } else {
        (0.0, 1.0)
    }
}

/// The panels as an SVG document, three to a row, under a common title (none if empty).
pub fn svg(panels: &[Panel], title: &str) -> String {
    layout::scene(panels, title).svg()
}

#[cfg(test)]
mod tests;
