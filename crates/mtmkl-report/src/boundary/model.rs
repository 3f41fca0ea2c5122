//! The panels of a model that learned from two numeric features: what its machines say of the plane, in the units of the table.

use mtmkl::model::{SupportSet, TaskModel};
use mtmkl::{Model, Rows};
use mtmkl_table::{Frame, Goal, Multiclass, TableError, class_scores};

use super::{Field, Panel, Point, padded_range, svg};
use crate::Picture;

/// More panels say nothing at a glance and take long.
const MOST: usize = 12;
/// Nodes along each axis: a step of two pixels, and what still shows a form where the model is large.
const NODES: (f64, f64) = (121.0, 41.0);
/// Kernel values that all nodes together may ask for: about a second.
const EFFORT: f64 = 3e8;
/// Room around the samples, as a share of their range; none where kernels refuse what lies there (χ² below 0).
const ROOM: [f64; 2] = [0.05, 0.0];

/// The panels of a model on two numeric features, one for each task (one in all for the classes of one problem), at most twelve; `None`
/// of any other model. The samples are the support rows, or those that `samples` has for each task.
pub fn panels(model: &Model, samples: Option<&[Vec<Point>]>) -> Option<Vec<Panel>> {
    let frame = match mtmkl_table::frame_of(model) {
        Ok(frame) => Some(frame),
        Err(TableError::NoFrame) => None,
        Err(_) => return None,
    };
    let plane = Plane::new(model, frame.as_ref())?;
    ROOM.iter()
        .find_map(|&room| plane.panels(samples, room).ok())
}

/// The picture for the page; `None` of a model on other than two numeric features.
pub(crate) fn picture(model: &Model) -> Option<Picture> {
    let panels = panels(model, None)?;
    let first = panels.first()?;
    let what = match first.field {
        Field::Regions { .. } => "Which class is predicted",
        Field::Inside { .. } => "What counts as inside",
        Field::Levels { .. } => "The prediction",
        Field::Sides { .. } if panels.len() == 1 => "The decision boundary",
        Field::Sides { .. } => "Decision boundaries",
    };
    let what = format!("{what} over {} and {}", first.x_label, first.y_label);
    let tasks = model.tasks().len();
    let cut = if panels.len() == MOST && tasks > MOST {
        format!(" The first {MOST} of {tasks} tasks.")
    } else {
        String::new()
    };
    Some(Picture {
        title: format!(
            "{what}. The samples shown are those that the machines keep of their training rows.{cut}"
        ),
        svg: svg(&panels, ""),
        alt: what,
    })
}

/// What is common to all panels.
struct Plane<'a> {
    model: &'a Model,
    frame: Option<&'a Frame>,
    /// Names of the two features.
    labels: [String; 2],
    /// (offset, factor) of each: kernels see (value − offset) · factor.
    scales: [(f64, f64); 2],
}

impl<'a> Plane<'a> {
    fn new(model: &'a Model, frame: Option<&'a Frame>) -> Option<Self> {
        let computed = model
            .kernels()
            .iter()
            .all(|view| view.kernel.given().is_none());
        let sets = model.support_sets();
        let [x, y] = sets.first()?.columns.as_slice() else {
            return None;
        };
        let same = |set: &SupportSet| set.columns[..] == [x.clone(), y.clone()];
        if !computed || !sets.iter().all(same) {
            return None;
        }
        let mut plane = Self {
            model,
            frame,
            labels: [x.clone(), y.clone()],
            scales: [(0.0, 1.0); 2],
        };
        if let Some(frame) = frame {
            let [first, second] = frame.features.as_slice() else {
                return None;
            };
            if first.category.is_some() || second.category.is_some() {
                return None;
            }
            plane.scales = [first, second].map(|feature| (feature.offset, feature.factor));
        }
        let usable = |&(offset, factor): &(f64, f64)| offset.is_finite() && factor.is_normal();
        plane.scales.iter().all(usable).then_some(plane)
    }

    /// Where the table has what kernels see.
    fn unscaled(&self, row: &[f64], axis: usize) -> f64 {
        let (offset, factor) = self.scales[axis];
        row[axis] / factor + offset
    }

    /// The support rows of a task; of two classes, β > 0 is the second.
    fn support(&self, task: &TaskModel, class: impl Fn(f64) -> Option<usize>) -> Vec<Point> {
        let rows = self.model.support_sets()[task.set].rows.dense();
        let own = task.support.iter().zip(&task.beta);
        own.map(|(&at, &beta)| {
            let row = &rows[2 * at..2 * at + 2];
            Point {
                x: self.unscaled(row, 0),
                y: self.unscaled(row, 1),
                class: class(beta),
                // All of them are: no ring is needed to tell.
                support: false,
            }
        })
        .collect()
    }

    /// Whether the machines tell a number, rather than a side.
    fn predicts_numbers(&self) -> bool {
        let machine = self.model.machine().build();
        machine.predict(0.5) != 1.0
    }

    /// The samples that the machines of classes keep, each with its class.
    fn of_classes(&self, scheme: Multiclass) -> Vec<Point> {
        let classes = self.frame.map_or(0, |frame| frame.goal.classes().len());
        let pairs: Vec<(usize, usize)> = Multiclass::pairs(classes).collect();
        let mut all: Vec<Point> = Vec::new();
        for (number, task) in self.model.tasks().iter().enumerate() {
            // Those of the rest have a class of their own to be drawn by.
            let class = |beta: f64| match scheme {
                Multiclass::Ova => (beta > 0.0).then_some(number),
                Multiclass::Ovo if beta > 0.0 => Some(pairs[number].1),
                Multiclass::Ovo => Some(pairs[number].0),
            };
            let own = self.support(task, class).into_iter();
            all.extend(own.filter(|point| point.class.is_some()));
        }
        // A sample is kept by several pairs.
        let key = |point: &Point| (point.x.to_bits(), point.y.to_bits(), point.class);
        let mut seen = std::collections::BTreeSet::new();
        all.retain(|point| seen.insert(key(point)));
        all
    }

    fn panels(&self, samples: Option<&[Vec<Point>]>, room: f64) -> mtmkl::Result<Vec<Panel>> {
        let tasks = self.model.tasks();
        let by_class = self.frame.and_then(scheme);
        let labels = tasks
            .iter()
            .any(|task| task.beta.iter().any(|&beta| beta < 0.0));
        let (numbers, shown) = (self.predicts_numbers(), tasks.len().min(MOST));
        let points: Vec<Vec<Point>> = match (samples, by_class) {
            (Some(samples), _) => samples[..shown.min(samples.len())].to_vec(),
            (None, Some(scheme)) => vec![self.of_classes(scheme)],
            (None, None) => {
                let class = |beta: f64| (!numbers && labels).then_some(usize::from(beta > 0.0));
                let shown = tasks[..shown].iter();
                shown.map(|task| self.support(task, class)).collect()
            }
        };
        let ranges = [|point: &Point| point.x, |point: &Point| point.y]
            .map(|of| padded_range(points.iter().flatten().map(of), room));
        let side = self.nodes(points.len());
        points
            .into_iter()
            .enumerate()
            .map(|(number, points)| {
                let mut panel = Panel {
                    title: String::new(),
                    x_label: self.labels[0].clone(),
                    y_label: self.labels[1].clone(),
                    points,
                    x_range: ranges[0],
                    y_range: ranges[1],
                    grid: (side, side),
                    field: Field::Levels { values: Vec::new() },
                };
                if tasks.len() > 1 && by_class.is_none() {
                    panel.title.clone_from(&tasks[number].name);
                }
                panel.field = if let Some(scheme) = by_class {
                    self.regions(&panel, scheme)?
                } else {
                    let values = self.values(&panel, &tasks[number].name)?;
                    if numbers {
                        Field::Levels { values }
                    } else if labels {
                        let classes = self.classes();
                        Field::Sides { classes, values }
                    } else {
                        Field::Inside { values }
                    }
                };
                Ok(panel)
            })
            .collect()
    }

    /// As many nodes along each axis as the work allows.
    fn nodes(&self, panels: usize) -> usize {
        let support = self.model.tasks().iter().map(|task| task.support.len());
        let rows = support.max().unwrap_or(0).max(1);
        let each = (panels.max(1) * rows * self.model.kernels().len()) as f64;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 41 and 121"
        )]
        let side = (EFFORT / each).sqrt().clamp(NODES.1, NODES.0) as usize;
        side
    }

    /// The decision values of a task at the nodes.
    fn values(&self, panel: &Panel, task: &str) -> mtmkl::Result<Vec<f64>> {
        let [x, y] = self.scales;
        let rows: Vec<f64> = panel
            .nodes()
            .flat_map(|node| [(node.0 - x.0) * x.1, (node.1 - y.0) * y.1])
            .collect();
        self.model
            .decision(task, Rows::new(&rows, rows.len() / 2, 2)?)
    }

    /// The score of each class at the nodes.
    fn regions(&self, panel: &Panel, scheme: Multiclass) -> mtmkl::Result<Field> {
        let classes = self.frame.map_or(&[][..], |frame| frame.goal.classes());
        let decisions = self.model.tasks().iter();
        let decisions = decisions.map(|task| self.values(panel, &task.name));
        let decisions = decisions.collect::<mtmkl::Result<Vec<_>>>()?;
        let nodes = decisions.first().map_or(0, Vec::len);
        let mut values = vec![Vec::with_capacity(nodes); classes.len()];
        for node in 0..nodes {
            let own: Vec<f64> = decisions.iter().map(|machine| machine[node]).collect();
            let scores = class_scores(scheme, classes.len(), &own);
            for (values, score) in values.iter_mut().zip(scores) {
                values.push(score);
            }
        }
        Ok(Field::Regions {
            classes: classes.to_vec(),
            values,
        })
    }

    /// Names of the classes −1 and +1 of a task.
    fn classes(&self) -> [String; 2] {
        match self.frame.map_or(&[][..], |frame| frame.goal.classes()) {
            [first, second] => [first.clone(), second.clone()],
            _ => ["−1".to_owned(), "+1".to_owned()],
        }
    }
}

/// How the classes of one problem became tasks.
fn scheme(frame: &Frame) -> Option<Multiclass> {
    match &frame.goal {
        Goal::Multiclass { scheme, .. } if frame.goal.is_by_class() => Some(*scheme),
        _ => None,
    }
}
