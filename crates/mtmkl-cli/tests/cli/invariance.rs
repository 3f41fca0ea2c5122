//! What must not matter: what columns and targets are measured in, what classes are called, in which order rows come.

use mtmkl::random::Random;

use crate::fixture::{Folder, column, curve, three_classes};

/// A table with its cells changed, each told its column's name.
fn changed(text: &str, change: impl Fn(&str, &str) -> String) -> String {
    let mut lines = text.lines();
    let header = lines.next().unwrap();
    let names: Vec<&str> = header.split(',').collect();
    let mut made = format!("{header}\n");
    for line in lines {
        let cells = line.split(',').zip(&names);
        let cells: Vec<String> = cells.map(|(cell, name)| change(name, cell)).collect();
        made += &(cells.join(",") + "\n");
    }
    made
}

/// The rows in another order.
fn shuffled(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let header = lines.remove(0);
    Random::new(9).shuffle(&mut lines);
    format!("{header}\n{}\n", lines.join("\n"))
}

/// What a model learned from one table says of the rows of another.
fn told(command: &str, learn: &str, asked: &str) -> Vec<String> {
    let folder = Folder::new();
    folder.file("learn.csv", learn).file("asked.csv", asked);
    let (command, flags) = command.split_once(' ').unwrap();
    folder
        .run(&format!("{command} learn.csv {flags} -o m --quiet"))
        .good();
    let predicted = folder.run("predict m asked.csv").good();
    let cells = column(&predicted, "prediction").into_iter();
    cells.map(str::to_string).collect()
}

fn number(cell: &str) -> f64 {
    cell.parse().unwrap()
}

fn close(a: &[f64], b: &[f64]) {
    let size = a.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() < 2e-3 * size, "{a} {b}");
    }
}

#[test]
fn classes_do_not_depend_on_units_names_or_order() {
    let table = three_classes(90);
    let larger = |name: &str, cell: &str| match name {
        "kind" => cell.to_string(),
        "a" => (1000.0 * number(cell)).to_string(),
        _ => (0.001 * number(cell) - 7.0).to_string(),
    };
    let renamed = |name: &str, cell: &str| match name {
        "kind" => format!("z{}", 9 - cell.len() % 7) + cell,
        _ => cell.to_string(),
    };
    for command in ["fit --target kind", "tune --target kind"] {
        let plain = told(command, &table, &table);
        let moved = changed(&table, larger);
        assert_eq!(plain, told(command, &moved, &moved), "{command}");
        let names: Vec<String> = plain.iter().map(|cell| renamed("kind", cell)).collect();
        let learn = changed(&table, renamed);
        if command.starts_with("fit") {
            assert_eq!(names, told(command, &learn, &learn), "{command}");
            // Folds are drawn by the order of rows, so that this goes for fits only.
            assert_eq!(plain, told(command, &shuffled(&table), &table), "{command}");
        }
    }
}

#[test]
fn numbers_do_not_depend_on_units_or_order() {
    let table = curve(80);
    let higher = |name: &str, cell: &str| match name {
        "y" => (number(cell) + 10_000.0).to_string(),
        _ => cell.to_string(),
    };
    let larger = |name: &str, cell: &str| match name {
        "y" => cell.to_string(),
        _ => (1000.0 * number(cell)).to_string(),
    };
    let numbers = |cells: Vec<String>| -> Vec<f64> { cells.iter().map(|c| number(c)).collect() };
    for machine in ["krr", "svr"] {
        for command in ["fit", "tune"] {
            let command = format!("{command} --target y --machine {machine} --tol 1e-7");
            let plain = numbers(told(&command, &table, &table));
            let moved = numbers(told(&command, &changed(&table, higher), &table));
            let moved: Vec<f64> = moved.iter().map(|value| value - 10_000.0).collect();
            close(&plain, &moved);
            let wide = changed(&table, larger);
            close(&plain, &numbers(told(&command, &wide, &wide)));
            if command.starts_with("fit") {
                close(&plain, &numbers(told(&command, &shuffled(&table), &table)));
            }
        }
    }
}
