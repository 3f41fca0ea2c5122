//! Real data: LIBSVM's objectives, the digits of the shared USPS file, the paper's Iris case. Tests that need the shared data folder
//! skip with a message where it is absent.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use mtmkl::kernel::{KernelView, parse_kernels};
use mtmkl::machine::MachineSpec;
use mtmkl::sharing::{Hierarchy, SharingSpec};
use mtmkl::{
    Fitting, Model, NamedLevel, Pool, Preparation, Problem, ProblemSpec, Rows, Samples, Targets,
    Task,
};
use mtmkl_testkit::shared;

fn kernels(specs: &[&str]) -> Vec<KernelView> {
    specs
        .iter()
        .flat_map(|spec| parse_kernels(spec).unwrap())
        .collect()
}

#[test]
fn objectives_equal_libsvm() {
    let reference: serde_json::Value =
        serde_json::from_str(include_str!("reference/libsvm_objectives.json")).unwrap();
    for case in reference["cases"].as_array().unwrap() {
        let text = |key: &str| case[key].as_str().unwrap();
        let Some(table) = shared::read(&format!("{}.csv.gz", text("data"))) else {
            println!("skipped: the shared data folder is not here");
            return;
        };
        let every = usize::try_from(case["every"].as_u64().unwrap()).unwrap();
        let (values, n, d) = table.numeric();
        let labels = table.column("label").unwrap();
        let chosen: Vec<usize> = (0..n).step_by(every).collect();
        let rows: Vec<f64> = chosen
            .iter()
            .flat_map(|&row| &values[row * d..(row + 1) * d])
            .copied()
            .collect();
        let y = chosen
            .iter()
            .map(|&row| {
                if labels[row] == text("positive") {
                    1.0
                } else {
                    -1.0
                }
            })
            .collect();
        let c = case["C"].as_f64().unwrap();
        let spec = ProblemSpec::new(
            kernels(&[text("kernel")]),
            MachineSpec::svc(c),
            SharingSpec::uniform(),
        );
        let samples = Samples::new(rows, chosen.len(), d).unwrap();
        let problem = Problem::new(
            spec,
            vec![samples],
            vec![Task::new("one", Targets::Labels(y))],
        )
        .unwrap();
        let model = problem
            .fit(&mut Fitting {
                tolerance: 1e-8,
                ..Fitting::default()
            })
            .unwrap();
        let expected = case["objective"].as_f64().unwrap();
        let outcome = model.outcome();
        assert!(
            outcome.status.is_converged(),
            "{case}: {:?}, gap {:.1e}",
            outcome.status,
            outcome.gap
        );
        let difference = (outcome.objective - expected).abs() / expected;
        assert!(
            difference <= 1e-6,
            "{case}: {} differs by {difference:.1e}",
            outcome.objective
        );
    }
}

/// Ten one-vs-all tasks on 30 rows of each digit.
fn digits() -> Option<(Samples, Vec<Task>)> {
    let table = shared::read("usps.csv.gz")?;
    let (values, n, d) = table.numeric();
    let labels = table.column("label").unwrap();
    let mut chosen = Vec::new();
    for digit in 0..10 {
        let digit = digit.to_string();
        chosen.extend((0..n).filter(|&row| labels[row] == digit).take(30));
    }
    let rows: Vec<f64> = chosen
        .iter()
        .flat_map(|&row| &values[row * d..(row + 1) * d])
        .copied()
        .collect();
    let tasks = (0..10)
        .map(|digit| {
            let name = digit.to_string();
            let labels = chosen
                .iter()
                .map(|&row| if labels[row] == name { 1.0 } else { -1.0 })
                .collect();
            Task::new(name, Targets::Labels(labels))
        })
        .collect();
    Some((Samples::new(rows, chosen.len(), d).unwrap(), tasks))
}

fn fit_digits(machine: MachineSpec, sharing: SharingSpec, threads: usize) -> Option<Model> {
    let (samples, tasks) = digits()?;
    let kernels = kernels(&["linear", "poly:degree=2", "rbf:sigma=1|2|4|8|16|32|64|128"]);
    let spec = ProblemSpec::new(kernels, machine, sharing);
    let problem = Problem::new(spec, vec![samples], tasks).unwrap();
    let preparation = Preparation {
        pool: Some(Pool::new(threads).unwrap()),
        ..Preparation::default()
    };
    let prepared = problem.prepare(&preparation).unwrap();
    let model = prepared.fit(&mut Fitting {
        tolerance: 1e-6,
        max_passes: 12,
        ..Fitting::default()
    });
    Some(model.unwrap())
}

/// Those with a loop, and the others.
fn loops() -> NamedLevel {
    let groups = [("loop", vec![0, 6, 8, 9]), ("none", vec![1, 2, 3, 4, 5, 7])];
    NamedLevel {
        label: "shape".to_string(),
        groups: groups.map(|(name, own)| (name.to_string(), own)).to_vec(),
    }
}

#[test]
fn newton_certifies_ten_digit_tasks_to_1e_6_in_twelve_passes() {
    for (p, q) in [(2.0, 1.0), (1.1, 1.0), (1.1, 1.5), (2.0, 2.0)] {
        let tree = Hierarchy {
            levels: vec![loops()],
            p,
            q,
            ..Hierarchy::default()
        };
        for sharing in [SharingSpec::pscs(p, q, 1.0), tree.into()] {
            for c in [1.0 / 3.0, 9.0] {
                for machine in [MachineSpec::svc(c), MachineSpec::logistic(c)] {
                    let case = format!(
                        "{} with {}, p = {p}, q = {q}, C = {c}",
                        machine.name(),
                        sharing.name()
                    );
                    let Some(model) = fit_digits(machine, sharing.clone(), 0) else {
                        println!("skipped: the shared data folder is not here");
                        return;
                    };
                    let outcome = model.outcome();
                    assert!(
                        outcome.status.is_converged() && outcome.gap <= 1e-6,
                        "{case}: gap {:.1e} after {} passes",
                        outcome.gap,
                        outcome.trace.len()
                    );
                }
            }
        }
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let fit = |threads: usize| {
        let sharing = SharingSpec::pscs(1.1, 1.0, 1.0);
        fit_digits(MachineSpec::svc(9.0), sharing, threads)
    };
    let (Some(one), Some(four)) = (fit(1), fit(4)) else {
        println!("skipped: the shared data folder is not here");
        return;
    };
    assert_eq!(one.weights(), four.weights());
    assert_eq!(one.tasks(), four.tasks());
    assert_eq!(
        one.outcome().objective.to_bits(),
        four.outcome().objective.to_bits()
    );
    assert_eq!(
        one.outcome().bound.to_bits(),
        four.outcome().bound.to_bits()
    );
}

#[test]
fn the_iris_case_of_the_paper() {
    // Sepal length and width scaled to [0, 1]; one-vs-one tasks 1–2, 1–3, 2–3 as views of the 150 rows.
    let text = include_str!("../../mtmkl-cli/data/iris.csv");
    let rows: Vec<Vec<&str>> = text
        .lines()
        .skip(1)
        .map(|line| line.split(',').collect())
        .collect();
    let column = |index: usize| -> Vec<f64> {
        let values: Vec<f64> = rows.iter().map(|row| row[index].parse().unwrap()).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        values
            .iter()
            .map(|value| (value - low) / (high - low))
            .collect()
    };
    let (length, width) = (column(0), column(1));
    let values: Vec<f64> = length
        .iter()
        .zip(&width)
        .flat_map(|(a, b)| [*a, *b])
        .collect();
    let samples = Samples::new(values.clone(), 150, 2).unwrap();
    let tasks = [
        ("setosa", "versicolor"),
        ("setosa", "virginica"),
        ("versicolor", "virginica"),
    ]
    .iter()
    .map(|(positive, negative)| {
        let chosen: Vec<usize> = (0..150)
            .filter(|&i| rows[i][4] == *positive || rows[i][4] == *negative)
            .collect();
        let labels = chosen
            .iter()
            .map(|&i| if rows[i][4] == *positive { 1.0 } else { -1.0 })
            .collect();
        Task::new(format!("{positive}-{negative}"), Targets::Labels(labels)).with_rows(chosen)
    })
    .collect();
    let kernels = kernels(&["linear", "poly:degree=2,coef0=0", "rbf:sigma=5"]);
    let spec = ProblemSpec::new(
        kernels,
        MachineSpec::svc(6.0),
        SharingSpec::pscs(2.0, 1.0, 1.0),
    );
    let problem = Problem::new(spec, vec![samples], tasks).unwrap();
    let model = problem
        .fit(&mut Fitting {
            tolerance: 1e-9,
            ..Fitting::default()
        })
        .unwrap();
    assert!(
        model.outcome().status.is_converged(),
        "{:?}",
        model.outcome()
    );
    assert!(
        (model.outcome().objective - 534.0880).abs() < 1e-3,
        "objective {}",
        model.outcome().objective
    );
    let (common, specific) = (model.common().unwrap(), model.specific().unwrap());
    assert_eq!(specific.row(0), [0.0; 3]);
    assert_eq!(specific.row(1), [0.0; 3]);
    for (found, expected) in specific.row(2).iter().zip([0.033, 0.196, 0.980]) {
        assert!(
            (found - expected).abs() < 5e-4,
            "γ³ is {:?}",
            specific.row(2)
        );
    }
    for (found, expected) in common.row(0).iter().zip([0.364, 0.785, 0.501]) {
        assert!((found - expected).abs() < 5e-4, "ζ is {:?}", common.row(0));
    }
    // The first two tasks are separable.
    for (task, &(positive, negative)) in model
        .tasks()
        .iter()
        .zip(&[("setosa", "versicolor"), ("setosa", "virginica")])
    {
        let predicted = model
            .predict(&task.name, Rows::new(&values, 150, 2).unwrap())
            .unwrap();
        let wrong = (0..150)
            .filter(|&i| {
                (rows[i][4] == positive && predicted[i] < 0.0)
                    || (rows[i][4] == negative && predicted[i] > 0.0)
            })
            .count();
        assert!(wrong <= 1, "{}: {wrong} wrong", task.name);
    }
}
