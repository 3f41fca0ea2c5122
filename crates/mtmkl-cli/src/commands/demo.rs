//! `mtmkl demo`: the Iris case study of the paper, from embedded data.
//!
//! Sepal length and width scaled to [0, 1]; one-vs-one tasks; linear, polynomial and Gaussian kernel; PSCS with p = 2, q = 1. The paper
//! does not print C; at C = 6 the exact optimum comes closest to its Table 1.

use anyhow::{Context, Result};
use mtmkl::kernel::parse_kernel;
use mtmkl::machine::MachineSpec;
use mtmkl::sharing::SharingSpec;
use mtmkl::{Fitting, Model, Problem, ProblemSpec, Rows, Samples, Targets, Task};
use mtmkl_report::boundary::{self, Field, Panel, Point};
use serde_json::json;

use super::Outcome;
use super::fit::notes;
use crate::args::DemoArgs;
use crate::output;

const IRIS: &str = include_str!("../../data/iris.csv");
const KERNELS: [(&str, &str); 3] = [
    ("linear", "linear"),
    ("polynomial", "poly:degree=2,coef0=0"),
    ("Gaussian", "rbf:sigma=5"),
];
const CLASSES: [&str; 3] = ["setosa", "versicolor", "virginica"];
const PAIRS: [(usize, usize); 3] = [(0, 1), (0, 2), (1, 2)];
const C: f64 = 6.0;
/// Small, so that the weights are those of the exact optimum to all digits shown.
const TOLERANCE: f64 = 1e-10;
/// ζ, γ¹, γ², γ³ as printed in the paper's Table 1, one line per kernel.
pub const TABLE_1: [[f64; 4]; 3] = [
    [0.1828, 0.0, 0.0, 0.0295],
    [0.9421, 0.0, 0.0, 0.1976],
    [0.2812, 0.0, 0.0, 0.9333],
];
/// What is fitted, in words.
pub const SETTING: &str = "\
The Iris case study: three one-vs-one tasks on sepal length and width, three kernels,
PSCS (θᵗ = ζ + γᵗ, p = 2, q = 1), support vector machines with C = 6.";

/// Two features and the class of each flower.
struct Iris {
    points: Vec<[f64; 2]>,
    classes: Vec<usize>,
}

fn iris() -> Result<Iris> {
    let mut points = Vec::new();
    let mut classes = Vec::new();
    for line in IRIS.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        points.push([cells[0].parse::<f64>()?, cells[1].parse::<f64>()?]);
        classes.push(
            CLASSES
                .iter()
                .position(|class| *class == cells[4])
                .context("an unknown species")?,
        );
    }
    for axis in 0..2 {
        let low = points
            .iter()
            .map(|point| point[axis])
            .fold(f64::INFINITY, f64::min);
        let high = points
            .iter()
            .map(|point| point[axis])
            .fold(f64::NEG_INFINITY, f64::max);
        for point in &mut points {
            point[axis] = (point[axis] - low) / (high - low);
        }
    }
    Ok(Iris { points, classes })
}

fn name(pair: (usize, usize)) -> String {
    format!("{}-{}", CLASSES[pair.0], CLASSES[pair.1])
}

/// The rows of a pair.
fn rows_of(iris: &Iris, pair: (usize, usize)) -> Vec<usize> {
    (0..iris.classes.len())
        .filter(|&row| iris.classes[row] == pair.0 || iris.classes[row] == pair.1)
        .collect()
}

fn fit(iris: &Iris) -> Result<Model> {
    let values: Vec<f64> = iris.points.iter().flatten().copied().collect();
    let names = vec!["sepal length".to_string(), "sepal width".to_string()];
    let samples = Samples::with_columns(values, iris.points.len(), names)?;
    let tasks = PAIRS
        .iter()
        .map(|&pair| {
            let rows = rows_of(iris, pair);
            let labels = rows
                .iter()
                .map(|&row| {
                    if iris.classes[row] == pair.0 {
                        1.0
                    } else {
                        -1.0
                    }
                })
                .collect();
            Task::new(name(pair), Targets::Labels(labels)).with_rows(rows)
        })
        .collect();
    let kernels = KERNELS
        .iter()
        .map(|(name, spec)| {
            let mut view = parse_kernel(spec)?;
            view.name = (*name).to_string();
            Ok(view)
        })
        .collect::<Result<Vec<_>>>()?;
    let spec = ProblemSpec::new(
        kernels,
        MachineSpec::svc(C),
        SharingSpec::pscs(2.0, 1.0, 1.0),
    );
    let problem = Problem::new(spec, vec![samples], tasks)?;
    Ok(problem.fit(&mut Fitting {
        tolerance: TOLERANCE,
        ..Fitting::default()
    })?)
}

/// The share of each task's own flowers on the right side.
fn accuracies(iris: &Iris, model: &Model) -> Result<Vec<f64>> {
    PAIRS
        .iter()
        .map(|&pair| {
            let rows = rows_of(iris, pair);
            let values: Vec<f64> = rows.iter().flat_map(|&row| iris.points[row]).collect();
            let predicted = model.predict(&name(pair), Rows::new(&values, rows.len(), 2)?)?;
            let right = rows
                .iter()
                .zip(predicted)
                .filter(|(row, label)| (iris.classes[**row] == pair.0) == (*label > 0.0))
                .count();
            Ok(right as f64 / rows.len() as f64)
        })
        .collect()
}

/// Three panels as in the paper: all flowers of a pair, boundary and margins, on the scaled axes.
fn panels(iris: &Iris, model: &Model) -> Result<Vec<Panel>> {
    let flowers: Vec<Vec<Point>> = PAIRS
        .iter()
        .zip(model.tasks())
        .map(|(&pair, machine)| {
            let positions = &model.support_sets()[machine.set].positions;
            let support: Vec<usize> = machine.support.iter().map(|&row| positions[row]).collect();
            let point = |row: usize| Point {
                x: iris.points[row][0],
                y: iris.points[row][1],
                class: Some(usize::from(iris.classes[row] == pair.0)),
                support: support.contains(&row),
            };
            rows_of(iris, pair).into_iter().map(point).collect()
        })
        .collect();
    let mut panels = boundary::panels(model, Some(&flowers)).context("no picture of the case")?;
    for (number, (panel, pair)) in panels.iter_mut().zip(PAIRS).enumerate() {
        let (first, second) = (CLASSES[pair.0], CLASSES[pair.1]);
        panel.title = format!("Task {}: {first} vs. {second}", number + 1);
        for label in [&mut panel.x_label, &mut panel.y_label] {
            *label += " (scaled)";
        }
        if let Field::Sides { classes, .. } = &mut panel.field {
            *classes = [second.to_string(), first.to_string()];
        }
    }
    Ok(panels)
}

/// `mtmkl demo`
///
/// # Errors
/// When a file cannot be written.
pub fn run(args: &DemoArgs) -> Result<Outcome> {
    let folder = &args.output;
    let is_new = !folder.exists();
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    if is_new {
        // Only in a folder of our own: elsewhere it would hide what is not ours.
        mtmkl::model::write_whole(&folder.join(".gitignore"), b"*\n")?;
    }
    let files = ["report.html", "boundaries.svg"].map(|file| folder.join(file));
    files
        .iter()
        .try_for_each(|file| output::check_place(file))?;
    let iris = iris()?;
    let mut model = fit(&iris)?;
    let accuracies = accuracies(&iris, &model)?;
    let panels = panels(&iris, &model)?;
    let title = "Iris: decision boundaries of three tasks";
    let svg = boundary::svg(&panels, title);
    let alt = "Three scatter plots of sepal length and width with decision boundary and margins; nearly straight for the two tasks with \
               setosa, curved for versicolor against virginica.";
    keep_notes(
        &mut model,
        &accuracies,
        &[(title.to_string(), alt.to_string(), svg.clone())],
    )?;
    super::report::write(&model, &files[0])?;
    mtmkl::model::write_whole(&files[1], svg.as_bytes())?;
    if args.json {
        let mut object = output::json(&model);
        object["accuracy"] = json!(accuracies);
        object["paper"] = json!(TABLE_1);
        object["files"] = json!(files);
        output::print(&format!("{}\n", serde_json::to_string_pretty(&object)?))?;
    } else {
        output::show(&text(
            &model,
            &accuracies,
            &files.map(|file| file.display().to_string()),
        ))?;
    }
    Ok(if model.outcome().status.is_converged() {
        Outcome::Done
    } else {
        Outcome::NotConverged
    })
}

fn keep_notes(
    model: &mut Model,
    accuracies: &[f64],
    pictures: &[(String, String, String)],
) -> Result<()> {
    let settings = format!(
        "machine = \"svc\"\nC = {C:.1}\nsharing = \"pscs\"\np = 2.0\nq = 1.0\nsolver = \"newton\"\ntol = {TOLERANCE:e}\n"
    );
    let data = [
        (
            "table",
            "Iris (Fisher 1936), sepal length and width scaled to [0, 1]",
        ),
        ("rows", "150"),
        ("tasks", "one against one, three pairs of species"),
    ];
    let tasks: Vec<serde_json::Value> = PAIRS
        .iter()
        .zip(accuracies)
        .map(|(&pair, score)| json!({ "name": name(pair), "rows": 100, "score": score }))
        .collect();
    let mean = accuracies.iter().sum::<f64>() / accuracies.len() as f64;
    let scores = json!({
        "split": "the rows it learned from (as in the paper), which says nothing about new ones",
        "held_out": false,
        "methods": [{ "name": "learned", "metric": "accuracy", "mean": mean, "tasks": tasks }],
    });
    let kept = model.notes_mut();
    kept.insert(notes::SETTINGS.to_string(), settings);
    kept.insert(notes::DATA.to_string(), serde_json::to_string(&data)?);
    kept.insert(notes::SCORES.to_string(), scores.to_string());
    kept.insert(
        mtmkl_report::notes::PICTURES.to_string(),
        serde_json::to_string(pictures)?,
    );
    Ok(())
}

/// The model of the case, to set beside the paper's.
///
/// # Errors
/// When it cannot be fitted, which would be a fault of ours.
pub fn case() -> Result<Model> {
    fit(&iris()?)
}

/// Kernel weights beside Table 1 of the paper: a header and a row for each kernel.
pub fn weights(model: &Model) -> (Vec<String>, Vec<Vec<String>>) {
    let zero = mtmkl::grid::Grid::zeros(3, 3);
    let common = model.common().unwrap_or(&zero);
    let specific = model.specific().unwrap_or(&zero);
    let header: Vec<String> = [
        "kernel", "ζ", "paper", "γ¹", "paper", "γ²", "paper", "γ³", "paper",
    ]
    .map(String::from)
    .to_vec();
    let rows: Vec<Vec<String>> = (0..3)
        .map(|kernel| {
            let mut row = vec![KERNELS[kernel].0.to_string()];
            let ours = [
                common[(0, kernel)],
                specific[(0, kernel)],
                specific[(1, kernel)],
                specific[(2, kernel)],
            ];
            for (ours, paper) in ours.iter().zip(TABLE_1[kernel]) {
                row.push(output::weight(*ours));
                row.push(output::weight(paper));
            }
            row
        })
        .collect();
    (header, rows)
}

fn text(model: &Model, accuracies: &[f64], files: &[String; 2]) -> String {
    let (header, rows) = weights(model);
    let scores: Vec<Vec<String>> = PAIRS
        .iter()
        .zip(model.tasks())
        .zip(accuracies)
        .map(|((&pair, task), accuracy)| {
            vec![
                name(pair),
                task.samples.to_string(),
                task.support.len().to_string(),
                format!("{accuracy:.2}"),
            ]
        })
        .collect();
    let outcome = model.outcome();
    format!(
        "{SETTING}\n\n\
         Kernel weights, beside Table 1 of the paper (whose run had not converged):\n\n{}\n\
         Tasks 1 and 2 share one space (γ¹ = γ² = 0), led by the polynomial kernel;\n\
         task 3 keeps its own, almost all Gaussian.\n\n{}\n{}\n{} passes, {:.1} ms.\n\nWritten: {}, {}\n",
        output::table(&header, &rows),
        output::table(
            &["task", "samples", "support", "training accuracy"].map(String::from),
            &scores
        ),
        output::certificate(model),
        outcome.trace.len(),
        1e3 * (outcome.seconds.kernels + outcome.seconds.solve),
        files[0],
        files[1],
    )
}
