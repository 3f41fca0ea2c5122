//! Weights of classes: given, balanced, and balanced anew in each fold.

use std::fmt::Write as _;

use mtmkl::random::Random;

use crate::fixture::Folder;

/// Sample weights count rows when columns are measured, class weights do not; and a fold has what all rows were measured by.
const PLAIN: &str = "--scale none --normalize none";

/// Two classes that overlap, of which one row in `every` is rare; without the header.
fn rare(rows: usize, every: usize, seed: u64) -> Vec<(String, bool)> {
    let mut random = Random::new(seed);
    (0..rows)
        .map(|row| {
            let is_rare = row % every == 0;
            let a = random.uniform() + if is_rare { 0.5 } else { 0.0 };
            let b = random.uniform();
            (format!("{a:.4},{b:.4}"), is_rare)
        })
        .collect()
}

fn word(is_rare: bool) -> &'static str {
    if is_rare { "rare" } else { "usual" }
}

#[test]
fn balanced_weights_are_those_of_the_formula() {
    let folder = Folder::new();
    // Two tasks of different mixes; the weights by hand, n / (2 n_c), in a column.
    let mut text = String::from("a,b,label,site,w\n");
    for (site, every) in [("x", 5), ("y", 3)] {
        let rows = rare(60, every, 1);
        let rares = rows.iter().filter(|row| row.1).count() as f64;
        for (features, is_rare) in rows {
            let weight = 60.0 / (2.0 * if is_rare { rares } else { 60.0 - rares });
            let _ = writeln!(text, "{features},{},{site},{weight}", word(is_rare));
        }
    }
    folder.file("t.csv", text);
    let objective = |flags: &str| {
        let ran = folder.run(&format!(
            "fit t.csv --target label --task site --kernel linear --kernel rbf {PLAIN} --tol 1e-8 --json {flags}"
        ));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.json()["objective"].as_f64().unwrap()
    };
    let balanced = objective("--ignore w --class-weight balanced");
    let by_hand = objective("--sample-weight w");
    assert!(
        (balanced - by_hand).abs() <= 1e-9 * by_hand,
        "{balanced} {by_hand}"
    );
    // Factors of C: 3 for one class, by name or by the machine's own parameter.
    let named = objective("--ignore w --class-weight usual=3");
    let price = objective("--ignore w --negative-weight 1 --positive-weight 3");
    assert!((named - price).abs() <= 1e-7 * price, "{named} {price}");
    assert!((named - balanced).abs() > 1e-3 * balanced);
}

#[test]
fn several_classes_are_balanced_by_their_own_rows() {
    let folder = Folder::new();
    let mut text = String::from("a,b,label,w\n");
    let rows = rare(80, 4, 2);
    let name = |at: usize, is_rare: bool| match (is_rare, at % 3) {
        (true, _) => "rare",
        (_, 0) => "third",
        _ => "usual",
    };
    let names: Vec<&str> = rows
        .iter()
        .enumerate()
        .map(|(at, row)| name(at, row.1))
        .collect();
    for (row, name) in rows.iter().zip(&names) {
        let own = names.iter().filter(|other| *other == name).count();
        let _ = writeln!(text, "{},{name},{}", row.0, 80.0 / (3.0 * own as f64));
    }
    folder.file("t.csv", text);
    for scheme in ["ova", "ovo"] {
        let objective = |flags: &str| {
            let ran = folder.run(&format!(
                "fit t.csv --target label --multiclass {scheme} --kernel rbf {PLAIN} --tol 1e-8 --json {flags}"
            ));
            assert_eq!(ran.code, 0, "{}", ran.stderr);
            ran.json()["objective"].as_f64().unwrap()
        };
        let balanced = objective("--ignore w --class-weight balanced");
        let by_hand = objective("--sample-weight w");
        assert!(
            (balanced - by_hand).abs() <= 1e-9 * by_hand,
            "{balanced} {by_hand}"
        );
    }
}

#[test]
fn each_fold_balances_what_it_learns_from() {
    let folder = Folder::new();
    let (mut both, mut a, mut b) = (
        String::from("a,b,label,fold\n"),
        String::new(),
        String::new(),
    );
    for (name, every, text) in [("a", 8, &mut a), ("b", 2, &mut b)] {
        *text += "a,b,label\n";
        for (features, is_rare) in rare(80, every, 3 + every as u64) {
            let _ = writeln!(both, "{features},{},{name}", word(is_rare));
            let _ = writeln!(text, "{features},{}", word(is_rare));
        }
    }
    folder
        .file("both.csv", both)
        .file("a.csv", a)
        .file("b.csv", b);
    let kernels = format!(
        "--target label --kernel rbf:sigma=0.5|1 {PLAIN} --C 1 --tol 1e-6 --metric accuracy"
    );
    let scores = |weights: &str| -> Vec<f64> {
        let tune =
            format!("tune both.csv {kernels} --group fold --folds 2 --grid C=1 {weights} --json");
        let tuned = folder.run(&tune).json();
        let folds = tuned["tune"]["cells"][0]["folds"]
            .as_array()
            .unwrap()
            .clone();
        folds.iter().map(|score| score.as_f64().unwrap()).collect()
    };
    let sorted = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values
    };
    let by_hand = [("a", "b"), ("b", "a")].map(|(learn, held)| {
        let flags = format!("fit {learn}.csv {kernels} --class-weight balanced -o m");
        folder.run(&flags).good();
        let score = folder.run(&format!("evaluate m {held}.csv --json")).json();
        score["mean"].as_f64().unwrap()
    });
    assert_eq!(
        sorted(scores("--class-weight balanced")),
        sorted(by_hand.to_vec())
    );
    // What all rows would balance is something else: 50 of 160 are rare.
    let of_all = sorted(scores("--class-weight rare=1.6,usual=0.7272727272727273"));
    assert_ne!(of_all, sorted(by_hand.to_vec()));
}

#[test]
fn weights_that_cannot_be() {
    let folder = Folder::new();
    let rows = rare(20, 4, 9);
    let text = rows.iter().fold(String::from("a,b,label\n"), |text, row| {
        text + &format!("{},{}\n", row.0, word(row.1))
    });
    folder.file("t.csv", text);
    for (weights, wanted) in [
        (
            "equal",
            "--class-weight equal: `equal` is neither `balanced` nor NAME=WEIGHT",
        ),
        (
            "rare=0",
            "the weight of `rare` is `0`, expected a number > 0",
        ),
        (
            "seldom=2",
            "there is no class `seldom` to give a weight to; there are `rare`, `usual`",
        ),
    ] {
        for command in ["fit", "tune"] {
            let said = folder
                .run(&format!(
                    "{command} t.csv --target label --class-weight {weights}"
                ))
                .bad();
            assert!(said.contains(wanted), "{said}");
        }
    }
    let said = folder
        .run("fit t.csv --target a --ignore label --machine krr --class-weight balanced")
        .bad();
    assert!(said.contains("machine krr knows no classes"), "{said}");
}
