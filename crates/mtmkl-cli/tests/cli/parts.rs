//! Tables that are predicted part by part: as if they were whole.

use std::fmt::Write as _;
use std::io::Write as _;

use mtmkl::random::Random;

use crate::fixture::Folder;

/// More than two parts.
const MANY: usize = 17_500;

/// A model of two tasks, `007` and `7`, with a column of categories and gaps that are filled.
fn fitted(missing: &str) -> Folder {
    let folder = Folder::new();
    let mut table = String::from("task,x,c,y\n");
    let mut random = Random::new(1);
    for row in 0..80 {
        let x = 2.0 * random.uniform() - 1.0;
        let task = ["007", "7"][row % 2];
        let _ = writeln!(table, "{task},{x},{},{}", row % 3, u8::from(x > 0.1));
    }
    folder.file("train.csv", table);
    let fit = format!(
        "fit train.csv --target y --task task --one-hot c --missing {missing} --kernel rbf --output m.mtmkl"
    );
    folder.run(&fit).good();
    folder
}

/// Rows in which parts differ: digits only in the first, quotes over line ends, gaps, categories that were never seen.
fn row(number: usize, random: &mut Random) -> String {
    let x = 2.0 * random.uniform() - 1.0;
    match number {
        9_000..9_010 => format!("7,,\"a\nb\",{x}"),
        17_000 => format!("007,{x},new,"),
        _ => format!("{},{x},{},{x}", ["007", "7"][number % 2], number % 3),
    }
}

fn long() -> Vec<String> {
    let mut random = Random::new(2);
    (0..MANY).map(|number| row(number, &mut random)).collect()
}

fn text(rows: &[String], end: &str) -> String {
    let lines = std::iter::once("task,x,c,other".to_string()).chain(rows.iter().cloned());
    lines.map(|line| line + end).collect()
}

/// What is said of each row, without its number.
fn said(output: &str) -> Vec<&str> {
    let lines = output.lines().skip(1);
    lines.map(|line| line.split_once(',').unwrap().1).collect()
}

#[test]
fn many_rows_are_predicted_as_few() {
    let folder = fitted("mean");
    let rows = long();
    folder.file("long.csv", text(&rows, "\n"));
    let ran = folder.run("predict m.mtmkl long.csv --decision");
    // Said once, of all parts.
    assert!(
        ran.stderr.contains("11 rows have values in column `c`"),
        "{}",
        ran.stderr
    );
    let whole = ran.good();
    assert_eq!(whole.lines().count(), MANY + 1);
    assert!(
        whole
            .lines()
            .last()
            .unwrap()
            .starts_with(&format!("{MANY},"))
    );
    let mut few = Vec::new();
    for some in rows.chunks(3_001) {
        folder.file("some.csv", text(some, "\n"));
        few.push(folder.run("predict m.mtmkl some.csv --decision").good());
    }
    let few: Vec<&str> = few.iter().flat_map(|some| said(some)).collect();
    assert_eq!(said(&whole), few);

    // Other line ends, standard input, packed in two members.
    let returns = text(&rows, "\r\n");
    folder.file("returns.csv", &returns);
    assert_eq!(
        folder.run("predict m.mtmkl returns.csv --decision").good(),
        whole
    );
    let input = folder.run_with_input("predict m.mtmkl - --decision", returns.as_bytes());
    assert_eq!(input.good(), whole);
    let mut packed = Vec::new();
    let (first, second) = returns.split_at(returns.len() / 2);
    for half in [first, second] {
        let mut encoder = flate2::write::GzEncoder::new(&mut packed, flate2::Compression::fast());
        encoder.write_all(half.as_bytes()).unwrap();
        encoder.finish().unwrap();
    }
    folder.file("long.csv.gz", packed);
    assert_eq!(
        folder.run("predict m.mtmkl long.csv.gz --decision").good(),
        whole
    );

    // One object, and a file.
    let json = folder
        .run("predict m.mtmkl long.csv --decision --json")
        .json();
    let objects = json["predictions"].as_array().unwrap();
    assert_eq!(objects.len(), MANY);
    for (line, object) in whole.lines().skip(1).zip(objects) {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(object["row"].to_string(), cells[0]);
        assert_eq!(object["prediction"], cells[2]);
        assert_eq!(object["decision"][0].as_f64(), cells[3].parse().ok());
    }
    folder
        .run("predict m.mtmkl long.csv --decision -o out.csv")
        .good();
    let written = std::fs::read_to_string(folder.path("out.csv")).unwrap();
    assert_eq!(written, whole);
}

#[test]
fn what_was_predicted_before_a_fault_is_kept() {
    let folder = fitted("mean");
    let mut rows = long();
    rows[17_100] = "7,one,2,0".to_string();
    folder
        .file("long.csv", text(&rows, "\n"))
        .file("out.csv", "before");
    let ran = folder.run("predict m.mtmkl long.csv");
    assert_eq!(ran.code, 2);
    assert_eq!(ran.stdout.lines().count(), 1 + 2 * 8192);
    // Ten rows before it take two lines.
    assert!(
        ran.stderr
            .contains("long.csv, line 17112, column `x`: `one`"),
        "{}",
        ran.stderr
    );
    // A file is whole or as it was.
    folder.run("predict m.mtmkl long.csv -o out.csv").bad();
    assert_eq!(
        std::fs::read_to_string(folder.path("out.csv")).unwrap(),
        "before"
    );
    let left = std::fs::read_dir(folder.root()).unwrap();
    let mut left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(!left.any(|name| name.contains(".tmp")));
}

#[test]
fn a_part_without_rows_is_no_table_without_rows() {
    let folder = fitted("drop");
    let line = |row: usize| match row {
        8_000..16_500 => "7,,1,0".to_string(),
        _ => format!("7,{row},1,0"),
    };
    let rows: Vec<String> = (0..MANY).map(line).collect();
    folder.file("long.csv", text(&rows, "\n"));
    let ran = folder.run("predict m.mtmkl long.csv");
    assert!(
        ran.stderr
            .contains("8500 rows with missing values are left out"),
        "{}",
        ran.stderr
    );
    let rows: Vec<String> = (ran.good().lines().skip(1))
        .map(|line| line.split(',').next().unwrap().to_string())
        .collect();
    let expected = (0..8_000)
        .chain(16_500..MANY)
        .map(|row| (row + 1).to_string());
    assert_eq!(rows, expected.collect::<Vec<_>>());
    // Nothing at all, or nothing that can be used.
    folder.file("none.csv", "task,x,c\n");
    folder.run("predict m.mtmkl none.csv").bad();
    folder.file("gaps.csv", "task,x,c\n7,,1\n7,NA,2\n");
    folder.run("predict m.mtmkl gaps.csv").bad();
    folder.file("one.csv", "task,x,c\n7,1,1\n");
    assert_eq!(
        folder.run("predict m.mtmkl one.csv").good().lines().count(),
        2
    );
}

/// Scores of a long table are those of its rows, whichever part they are in, and in whichever format.
#[test]
fn many_rows_are_evaluated_as_few() {
    let folder = fitted("mean");
    let header = "task,x,c,y\n".to_string();
    let mut random = Random::new(3);
    let line = |row: usize| {
        let x = 2.0 * random.uniform() - 1.0;
        let y = u8::from((x > 0.1) != (row % 10 == 3));
        format!("{},{x},{},{y}\n", ["007", "7"][row % 2], row % 3)
    };
    let rows: Vec<String> = (0..MANY).map(line).collect();
    let wrong = |predicted: &str, rows: &[String]| {
        let said = predicted
            .lines()
            .skip(1)
            .map(|line| line.rsplit(',').next());
        let true_class = rows.iter().map(|row| row.trim().rsplit(',').next());
        said.zip(true_class).filter(|(a, b)| a != b).count()
    };
    folder.file("long.csv", header.clone() + &rows.concat());
    let predicted = folder.run("predict m.mtmkl long.csv").good();
    let report = folder.run("evaluate m.mtmkl long.csv --json").json();
    assert_eq!(report["rows"], MANY);
    let right = 1.0 - wrong(&predicted, &rows) as f64 / MANY as f64;
    let metrics = report["metrics"].to_string();
    assert!(metrics.contains("accuracy"), "{metrics}");
    let together = report["together"].as_f64().unwrap();
    assert!((together - right).abs() < 1e-12, "{together} and {right}");
    // A class that only the last part has, and no class that is known.
    let strange = rows[MANY - 1]
        .trim_end_matches(['0', '1', '\n'])
        .to_string()
        + "2\n";
    let mut some = rows.clone();
    some[MANY - 1] = strange;
    folder.file("strange.csv", header.clone() + &some.concat());
    let ran = folder.run("evaluate m.mtmkl strange.csv");
    assert!(
        ran.stderr
            .contains("1 row has a class that training never saw"),
        "{}",
        ran.stderr
    );
    folder.file("other.csv", header + "7,1,1,yes\n");
    let message = folder.run("evaluate m.mtmkl other.csv").bad();
    assert!(
        message.contains("other.csv, line 2") && message.contains("yes"),
        "{message}"
    );
}

/// LIBSVM files in parts, with features that only some parts have.
#[test]
fn long_libsvm_files_are_predicted_as_short_ones() {
    let folder = Folder::new();
    let mut random = Random::new(4);
    let mut line = |row: usize| {
        let x = 2.0 * random.uniform() - 1.0;
        let rare = if row % 9_000 == 17 { " 900:1" } else { "" };
        format!(
            "{} 1:{x} {}:1{rare}\n",
            if x > 0.0 { "+1" } else { "-1" },
            2 + row % 300
        )
    };
    let train: String = (0..100).map(&mut line).collect();
    let rows: Vec<String> = (0..MANY).map(line).collect();
    folder
        .file("train.svm", train)
        .file("long.svm", rows.concat());
    folder
        .run("fit train.svm --target label --kernel linear --kernel rbf --output m.mtmkl")
        .good();
    let whole = folder.run("predict m.mtmkl long.svm --decision").good();
    assert_eq!(whole.lines().count(), MANY + 1);
    let mut few = Vec::new();
    for some in rows.chunks(3_001) {
        folder.file("some.svm", some.concat());
        few.push(folder.run("predict m.mtmkl some.svm --decision").good());
    }
    let few: Vec<&str> = few.iter().flat_map(|some| said(some)).collect();
    assert_eq!(said(&whole), few);
    let report = folder.run("evaluate m.mtmkl long.svm --json").json();
    assert!(report["together"].as_f64().unwrap() > 0.9, "{report}");
}
