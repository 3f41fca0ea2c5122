//! Reports to test with and to look at.

use mtmkl_report::{PassEntry, Picture, Report, ScoreRow, Scores, TaskEntry};

/// The Iris case study: two tasks share one space, the third keeps its own.
pub(crate) fn iris() -> Report {
    let common = vec![0.364, 0.785, 0.501];
    let specific = vec![vec![0.0; 3], vec![0.0; 3], vec![0.033, 0.196, 0.980]];
    let task = |name: &str, support| TaskEntry {
        name: name.into(),
        samples: 100,
        support,
    };
    let bounds = [
        (561.2, 402.0),
        (540.7, 515.1),
        (535.0, 531.9),
        (534.11, 534.02),
        (534.088_04, 534.067_2),
    ];
    Report {
        title: "Iris, one species against another".into(),
        subtitle: Some("Sepal length and width, scaled to [0, 1]; all 150 rows".into()),
        kernels: ["linear", "poly:degree=2,coef0=0", "rbf:sigma=5"]
            .map(Into::into)
            .to_vec(),
        tasks: vec![
            task("setosa / versicolor", 14),
            task("setosa / virginica", 9),
            task("versicolor / virginica", 71),
        ],
        weights: specific
            .iter()
            .map(|g| g.iter().zip(&common).map(|(a, b): (&f64, &f64)| a + b).collect())
            .collect(),
        common: Some(common),
        specific: Some(specific),
        groups: Vec::new(),
        transfer: None,
        machine: "svc, C = 6".into(),
        sharing: "pscs, p = 2, q = 1".into(),
        solver: "newton".into(),
        fallback: None,
        status: "converged".into(),
        objective: 534.088_04,
        bound: 534.067_2,
        gap: 3.9e-5,
        tolerance: Some(1e-4),
        is_rounded: false,
        passes: (1..)
            .zip(bounds)
            .map(|(number, (objective, bound))| PassEntry {
                number,
                objective,
                bound,
                gap: (objective - bound) / objective,
                step: 1.0,
                inner_iterations: 5200 / number,
                seconds: 0.002 * number as f64,
            })
            .collect(),
        scores: Some(Scores {
            metric: "accuracy".into(),
            higher_is_better: true,
            split: "held-out 30 %".into(),
            parts: Vec::new(),
            is_by_class: false,
            rows: vec![
                row("learned weights", &[1.0, 0.967, 0.733]),
                row("uniform average", &[1.0, 0.967, 0.7]),
                row("best single kernel (rbf:sigma=5)", &[0.967, 0.967, 0.733]),
            ],
        }),
        settings: pairs(&[("tolerance", "1e-4"), ("normalize", "yes"), ("seed", "0")]),
        data: pairs(&[("file", "iris.csv"), ("rows", "150"), ("features", "2")]),
        pictures: vec![Picture {
            title: "Decision boundary of versicolor / virginica".into(),
            svg: "<svg viewBox='0 0 300 200' width='300' height='200'><rect width='300' height='200' fill='#eef3f8'/><circle cx='90' cy='90' r='8' fill='#2175c7'/><path d='M20 180C120 20 200 190 290 20' fill='none' stroke='#333' stroke-width='2'/><text x='20' y='25' font-size='14'>sepal width</text></svg>".into(),
            alt: "A curve between two clouds of points".into(),
        }],
        seconds: vec![("kernels".into(), 0.0021), ("solve".into(), 0.0104), ("total".into(), 0.0131)],
        version: "0.1.0".into(),
    }
}

/// Many tasks and kernels, sparse, with long names and a run that did not end well.
pub(crate) fn large(tasks: usize, kernels: usize) -> Report {
    let mut state = 7_u64;
    let mut draw = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut sparse = |density: f64, height: f64| -> Vec<f64> {
        (0..kernels)
            .map(|_| {
                if draw() < density {
                    height * draw().powi(3)
                } else {
                    0.0
                }
            })
            .collect()
    };
    let common = sparse(0.2, 0.6);
    let specific: Vec<Vec<f64>> = (0..tasks)
        .map(|t| sparse(if t % 4 == 1 { 0.12 } else { 0.0 }, 0.9))
        .collect();
    let weights = specific
        .iter()
        .map(|g| g.iter().zip(&common).map(|(a, b)| a + b).collect())
        .collect();
    let scores = |shift: f64| -> Vec<f64> {
        (0..tasks)
            .map(|t| 0.8 + shift + 0.12 * ((t * 37 % 101) as f64 / 101.0) + shift * (t % 3) as f64)
            .collect()
    };
    Report {
        title: "A large made-up problem".into(),
        kernels: (0..kernels)
            .map(|m| {
                format!(
                    "rbf:gamma={}@pathway_{:03}..pathway_{:03}",
                    m % 7,
                    m,
                    m + 12
                )
            })
            .collect(),
        tasks: (0..tasks)
            .map(|t| TaskEntry {
                name: format!("patient group {t:03} <cohort & \"site\" {}>", t % 9),
                samples: 120 + t,
                support: 30 + t % 17,
            })
            .collect(),
        weights,
        common: Some(common),
        specific: Some(specific),
        transfer: None,
        machine: "svc, C = 1".into(),
        sharing: "pscs, p = 1.1, q = 1".into(),
        solver: "epf".into(),
        status: "pass-limit".into(),
        objective: 8123.4,
        bound: 8019.7,
        gap: 0.012_766,
        tolerance: Some(1e-4),
        passes: (1..=300)
            .map(|number| {
                let gap = 3.8 / number as f64;
                PassEntry {
                    number,
                    objective: 8123.4 * (1.0 + 0.3 * gap.min(1.0)),
                    bound: 8123.4 * (1.0 - gap),
                    gap,
                    step: 0.5 / number as f64,
                    inner_iterations: 100_000 / number,
                    seconds: 0.4 * number as f64,
                }
            })
            .collect(),
        scores: Some(Scores {
            metric: "balanced accuracy".into(),
            higher_is_better: true,
            split: "held-out 30 %".into(),
            parts: Vec::new(),
            is_by_class: false,
            rows: vec![
                row("learned weights", &scores(0.01)),
                row("uniform average", &scores(0.015)),
                row(
                    "best single kernel (rbf:gamma=3@pathway_003..pathway_015)",
                    &scores(-0.03),
                ),
            ],
        }),
        seconds: vec![
            ("kernels".into(), 31.0),
            ("solve".into(), 120.0),
            ("total".into(), 152.0),
        ],
        version: "0.1.0".into(),
        ..Report::default()
    }
}

fn row(method: &str, per_task: &[f64]) -> ScoreRow {
    ScoreRow {
        method: method.into(),
        per_task: per_task.to_vec(),
        mean: per_task.iter().sum::<f64>() / per_task.len() as f64,
    }
}

fn pairs(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter()
        .map(|(key, value)| ((*key).into(), (*value).into()))
        .collect()
}
