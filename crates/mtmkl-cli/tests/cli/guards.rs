//! Where people fall: what the program says, and that it is silent where nothing is wrong.

use std::fmt::Write as _;

use mtmkl::random::Random;

use crate::fixture::{Folder, curve, noise, three_classes, two_classes, two_tasks};

/// A target of so many different numbers, with this many digits behind the point.
fn numbers(rows: usize, different: usize, digits: usize) -> String {
    let mut random = Random::new(6);
    let mut text = String::from("a,y\n");
    for row in 0..rows {
        let (a, y) = (random.uniform(), row % different);
        let y = if digits == 0 {
            y.to_string()
        } else {
            format!("{:.digits$}", y as f64 / 8.0)
        };
        let _ = writeln!(text, "{a:.3},{y}");
    }
    text
}

#[test]
fn numbers_are_not_taken_for_classes_unasked() {
    let folder = Folder::new();
    for (rows, different, digits, asks) in [
        // As the diabetes data: 214 numbers in 442 rows.
        (442, 214, 0, true),
        (240, 30, 0, true),
        (600, 60, 0, true),
        (300, 20, 3, true),
        (4, 3, 0, true),
        // Classes with numbers for names.
        (300, 26, 0, false),
        (60, 10, 0, false),
        (30, 3, 0, false),
        (60, 4, 3, false),
    ] {
        folder.file("n.csv", numbers(rows, different, digits));
        for command in ["fit", "tune --grid C=1 --folds 2"] {
            let plain =
                format!("{command} n.csv --target y --kernel linear --quiet --max-passes 3");
            let ran = folder.run(&plain);
            if asks {
                let said = ran.bad();
                let wanted = format!(
                    "n.csv: the target `y` has {different} different numbers in {rows} rows, which look like numbers to predict: say --machine \
                     krr or --machine svr for that, or --machine svc if each of them is a class"
                );
                assert!(said.contains(&wanted), "{said}");
            } else {
                assert!(ran.code < 2, "{different} of {rows}: {}", ran.stderr);
            }
        }
        // Whoever says it gets it.
        if asks && rows < 300 && rows > 4 {
            let ran =
                folder.run("fit n.csv --target y --machine svc --kernel linear --max-passes 2");
            assert!(ran.code < 2, "{}", ran.stderr);
        }
        let ran = folder.run("fit n.csv --target y --machine krr --kernel linear");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    // With a task column too, before anything is said of classes.
    folder.file(
        "t.csv",
        numbers(40, 30, 1)
            .replace("a,y", "a,y,s")
            .replace('\n', ",x\n")
            .replacen(",s,x", ",s", 1),
    );
    let said = folder.run("fit t.csv --target y --task s").bad();
    assert!(said.contains("numbers to predict"), "{said}");
    // Words are classes, however many.
    let words = numbers(40, 30, 0)
        .replace('\n', "w\n")
        .replacen("yw", "y", 1);
    folder.file("w.csv", words);
    let ran = folder.run("fit w.csv --target y --kernel linear --max-passes 2");
    assert!(ran.code < 2, "{}", ran.stderr);
}

#[test]
fn classes_that_training_never_saw_count_as_wrong() {
    let folder = Folder::new();
    folder.file("three.csv", three_classes(60));
    let test = three_classes(30)
        .replacen("ash", "yew", 3)
        .replacen("cedar", "fir", 1);
    folder.file("test.csv", test);
    let ran = folder.run("fit three.csv --target kind --test test.csv -o m --json");
    let note = "note: test.csv: 4 rows have classes that training never saw, `fir`, `yew`; no prediction can be right there, and they \
                count as wrong";
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
    let evaluated = folder.run("evaluate m test.csv --json");
    assert!(evaluated.stderr.contains(note), "{}", evaluated.stderr);
    let (fitted, evaluated) = (ran.json(), evaluated.json());
    let method = &fitted["scores"]["methods"][0];
    assert_eq!(method["mean"], evaluated["mean"]);
    // By hand, from the matrix: what is on its diagonal is right.
    let confusion = &evaluated["confusion"];
    assert_eq!(confusion, &fitted["scores"]["confusion"]);
    assert_eq!(
        confusion["truth"],
        serde_json::json!(["ash", "birch", "cedar", "fir", "yew"])
    );
    let counts: Vec<Vec<u64>> = serde_json::from_value(confusion["counts"].clone()).unwrap();
    assert_eq!(counts.iter().flatten().sum::<u64>(), 30);
    let right: u64 = (0..3).map(|class| counts[class][class]).sum();
    assert!((evaluated["mean"].as_f64().unwrap() - right as f64 / 30.0).abs() < 1e-12);
    assert!(folder.run("evaluate m three.csv").stderr.is_empty());
}

#[test]
fn a_model_no_better_than_the_majority_is_said_to_be() {
    let folder = Folder::new();
    // One row in ten is rare, and the column says nothing.
    let mut text = String::from("a,label\n");
    let mut random = Random::new(7);
    for row in 0..200 {
        let label = if row % 10 == 0 { "rare" } else { "usual" };
        let _ = writeln!(text, "{:.3},{label}", random.uniform());
    }
    folder.file("rare.csv", text);
    let ran = folder.run("fit rare.csv --target label --scale standard --test-fraction 0.3 --json");
    let wanted = "warning: on held-out rows the model is no better than always saying `usual` (accuracy 0.9000 against 0.9000)";
    assert!(ran.stderr.contains(wanted), "{}", ran.stderr);
    let fitted = ran.json();
    assert!(fitted["warnings"][0].as_str().unwrap().starts_with(wanted));
    assert_eq!(fitted["scores"]["methods"][1]["name"], "majority class");
    assert_eq!(
        fitted["scores"]["methods"][1]["metrics"]["balanced-accuracy"]["mean"],
        0.5
    );
    assert_eq!(
        fitted["scores"]["methods"][1]["metrics"]["AUC"]["mean"],
        0.5
    );
    // The same of another table, whose own majority it is.
    folder
        .run("fit rare.csv --target label --scale standard -o m")
        .good();
    let said = folder.run("evaluate m rare.csv").stderr;
    let wanted = "warning: on these rows the model is no better than always saying `usual` (accuracy 0.9000 against 0.9000)";
    assert!(said.contains(wanted), "{said}");
    let text = (0..60).fold(String::from("a,y\n"), |text, row| {
        text + &format!("{},{:.3}\n", row % 2, random.uniform())
    });
    folder.file("nothing.csv", text);
    let said = folder
        .run("fit nothing.csv --target y --machine krr --test-fraction 0.3")
        .stderr;
    assert!(
        said.contains("warning: on held-out rows the model is no better than the mean of the training rows (R2 -"),
        "{said}"
    );
}

#[test]
fn weights_worse_than_none_are_said_to_be() {
    let folder = Folder::new();
    // A line in one column; twenty others of noise, in which narrow kernels learn everything by heart.
    let mut random = Random::new(8);
    let mut text = String::from("a,label");
    (0..20).for_each(|column| text += &format!(",n{column}"));
    for row in 0..400 {
        let yes = row % 2 == 1;
        let a = random.uniform() + if yes { 0.6 } else { 0.0 };
        let _ = write!(text, "\n{a:.4},{}", if yes { "yes" } else { "no" });
        (0..20).for_each(|_| text += &format!(",{:.4}", random.uniform()));
    }
    folder.file("heart.csv", text);
    let kernels =
        "--kernel rbf:sigma=0.5@a --kernel rbf:sigma=1@n0..n19 --sharing fixed --weights 0,1";
    let ran = folder.run(&format!(
        "fit heart.csv --target label {kernels} --test-fraction 0.5 --json"
    ));
    assert!(
        ran.stderr.contains("warning: on held-out rows the learned weights do worse than the uniform average of the kernels (accuracy"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr
            .contains("--sharing uniform takes all kernels alike, and mtmkl tune chooses"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("do worse than a single kernel")
            && ran
                .stderr
                .contains("--kernel 'rbf:sigma=0.5@a' takes it alone"),
        "{}",
        ran.stderr
    );
}

#[test]
fn kernels_that_tell_nothing_are_named() {
    let folder = Folder::new();
    folder
        .file("two.csv", two_classes(60))
        .file("tasks.csv", two_tasks(80));
    for (kernel, wanted) in [
        (
            "rbf:sigma=0.0001",
            "warning: kernel `rbf:sigma=0.0001` is nearly the identity on the training rows",
        ),
        (
            "rbf:sigma=10000",
            "warning: kernel `rbf:sigma=10000` is nearly constant on the training rows",
        ),
    ] {
        for table in [
            "two.csv --target label",
            "tasks.csv --target label --task site",
        ] {
            let said = folder
                .run(&format!(
                    "fit {table} --kernel {kernel} --kernel rbf:sigma=1"
                ))
                .stderr;
            assert!(
                said.contains(wanted) && !said.contains("rbf:sigma=1`"),
                "{said}"
            );
            let on_demand = folder
                .run(&format!("fit {table} --kernel {kernel} --precision single"))
                .stderr;
            assert!(on_demand.contains(wanted), "{on_demand}");
        }
    }
    // Nobody named these; all of them are too narrow for such columns.
    let mut text = String::from("a,label\n");
    for row in 0..40 {
        let _ = writeln!(text, "{},{}", row * 100_000, row % 2);
    }
    folder.file("wide.csv", text);
    let plain = folder.run("fit wide.csv --target label --scale none --ignore a --kernel linear");
    assert_eq!(plain.code, 2);
    let said = folder
        .run("fit wide.csv --target label --scale none --kernel rbf:sigma=1|2")
        .stderr;
    assert!(
        said.contains("warning: kernels `rbf:sigma=1`, `rbf:sigma=2` are nearly the identity on the training rows"),
        "{said}"
    );
    assert!(
        said.contains(
            "take a wider one (for rbf a larger sigma), or scale the columns (--scale standard)"
        ),
        "{said}"
    );
}

#[test]
fn widths_learned_without_labels_are_noted() {
    let folder = Folder::new();
    folder.file("two.csv", two_classes(60));
    for machine in ["svdd --C 0.2", "ocsvm"] {
        let fit =
            format!("fit two.csv --machine {machine} --target label --kernel rbf:sigma=1|2|4");
        let name = machine.split(' ').next().unwrap();
        let wanted = format!(
            "note: {name} learns the weights of 3 kernels without labels, and prefers the flattest or the narrowest of them"
        );
        let said = folder.run(&format!("{fit} --sharing simplex")).stderr;
        assert!(said.contains(&wanted), "{said}");
        for way in ["", "--sharing uniform", "--sharing fixed --weights 1,0,0"] {
            assert_eq!(folder.run(&format!("{fit} {way}")).stderr, "", "{way}");
        }
    }
    assert_eq!(
        folder
            .run("fit two.csv --machine ocsvm --target label --kernel rbf")
            .stderr,
        ""
    );
}

#[test]
fn where_rows_do_not_fit_it_is_said_how_many_would() {
    let folder = Folder::new();
    folder
        .file("noise.csv", noise(4000))
        .file("three.csv", three_classes(3000));
    for table in [
        "noise.csv --target label --task site",
        "three.csv --target kind --test-fraction 0.3",
    ] {
        let fit = format!("fit {table} --kernel rbf --max-passes 1 --quiet --memory-limit 0.004");
        let said = folder.run(&fit).bad();
        assert!(
            said.contains("over the limit of") && said.contains("takes so many by lot"),
            "{said}"
        );
        let words: Vec<&str> = said.split_whitespace().collect();
        let at = words.iter().position(|word| *word == "--sample").unwrap();
        let rows: usize = words[at + 1].parse().unwrap();
        let fits = folder.run(&format!("{fit} --sample {rows} --json"));
        assert!(fits.code < 2, "{rows}: {}", fits.stderr);
        // And it is not far from the most.
        let more = folder.run(&format!("{fit} --sample {}", rows + rows / 4));
        assert_eq!(more.code, 2, "{rows}: {}", more.stdout);
        let fitted = fits.json();
        let samples: u64 = fitted["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|task| task["samples"].as_u64().unwrap())
            .sum();
        // Each row of three classes is in two of three pairs.
        let sets = if table.contains("--task") { 1 } else { 2 };
        let share = if table.contains("--test") { 0.7 } else { 1.0 };
        let wanted = rows as f64 * share;
        assert!(
            (samples as f64 / f64::from(sets) - wanted).abs() <= 0.03 * wanted,
            "{samples} {rows}"
        );
    }
}

#[test]
fn a_sample_keeps_the_mix_and_goes_by_the_seed() {
    let folder = Folder::new();
    folder
        .file("tasks.csv", two_tasks(200))
        .file("three.csv", three_classes(90));
    let fit = |more: &str| {
        folder.run(&format!(
            "fit tasks.csv --target label --task site --kernel linear --json {more}"
        ))
    };
    let samples = |more: &str| -> Vec<u64> {
        let fitted = fit(more).json();
        fitted["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|task| task["samples"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(samples("--sample 52"), [26, 26]);
    assert_eq!(samples("--sample 51").iter().sum::<u64>(), 51);
    assert_eq!(samples("--sample 4"), [2, 2]);
    assert_eq!(samples("--sample 1000"), samples(""));
    let objective = |more: &str| fit(more).json()["objective"].clone();
    assert_eq!(
        objective("--sample 50 --seed 3"),
        objective("--sample 50 --seed 3")
    );
    assert_ne!(
        objective("--sample 50 --seed 3"),
        objective("--sample 50 --seed 4")
    );
    let said = fit("--sample 3").bad();
    assert!(
        said.contains("3 rows are too few: with one row for each class of each task there are 4"),
        "{said}"
    );
    let tuned = folder.run("tune three.csv --target kind --kernel linear --grid C=1,10 --sample 30 --test-fraction 0.2 --folds 2 --json");
    assert_eq!(tuned.json()["scores"]["split"], "6 held-out rows of 30");
}

#[test]
fn nothing_is_said_where_nothing_is_wrong() {
    let folder = Folder::new();
    folder
        .file("two.csv", two_classes(80))
        .file("three.csv", three_classes(90))
        .file("tasks.csv", two_tasks(120))
        .file("curve.csv", curve(60))
        .file("iris.csv", include_str!("../../data/iris.csv"));
    for fit in [
        "two.csv --target label",
        "three.csv --target kind",
        "tasks.csv --target label --task site",
        "curve.csv --target y --machine krr --lambda 0.01",
        "iris.csv --target species",
        "iris.csv --target species --kernel linear --kernel rbf:sigma=1|2|4",
        "iris.csv --target petal_width --ignore species --machine krr --lambda 0.1",
    ] {
        for more in [
            "",
            "--test-fraction 0.3",
            "--test-fraction 0.3 --seed 1 --baselines",
        ] {
            let ran = folder.run(&format!("fit {fit} {more} --quiet"));
            assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{fit} {more}");
        }
    }
}

/// Baselines against fits by hand, and none where nobody wants them.
#[test]
fn baselines_are_the_fits_that_they_stand_for() {
    let folder = Folder::new();
    folder.file("train.csv", two_tasks(120));
    let table = two_tasks(200);
    let lines: Vec<&str> = table.lines().collect();
    folder.file(
        "test.csv",
        format!("{}\n{}\n", lines[0], lines[121..].join("\n")),
    );
    let kernels = "--kernel rbf@a --kernel rbf@b --kernel rbf --tol 1e-8";
    let fit = |more: &str| {
        let ran = folder.run(&format!(
            "fit train.csv --target label --test test.csv {kernels} --json {more}"
        ));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.json()
    };
    let names = |fitted: &serde_json::Value| -> Vec<String> {
        let methods = fitted["scores"]["methods"].as_array().unwrap();
        methods
            .iter()
            .map(|method| method["name"].as_str().unwrap().to_string())
            .collect()
    };
    let fitted = fit("--task site");
    let found = names(&fitted);
    assert_eq!(found[..3], ["learned", "majority class", "uniform"]);
    assert_eq!(found[4..], ["pooled", "each alone"]);
    let score = |name: &str| {
        let at = found.iter().position(|known| known == name).unwrap();
        fitted["scores"]["methods"][at].clone()
    };
    let alone = |flags: &str| {
        let fitted = fit(&format!("--no-baselines {flags}"));
        assert_eq!(names(&fitted), ["learned", "majority class"], "{flags}");
        fitted["scores"]["methods"][0].clone()
    };
    assert_eq!(
        score("uniform")["tasks"],
        alone("--task site --sharing uniform")["tasks"]
    );
    assert_eq!(
        score("each alone")["tasks"],
        alone("--task site --sharing independent")["tasks"]
    );
    // Without tasks, all rows are one: the same figure for all of them together.
    assert_eq!(score("pooled")["together"], alone("--ignore site")["mean"]);
    // The single kernel is one that the training rows choose: whatever stands in the test rows.
    let single = found[3].strip_prefix("best single: ").unwrap().to_string();
    let weights = ["rbf@a", "rbf@b", "rbf"].map(|name| if name == single { "1" } else { "0" });
    let by_hand = alone(&format!(
        "--task site --sharing fixed --weights {}",
        weights.join(",")
    ));
    assert_eq!(score(&found[3])["tasks"], by_hand["tasks"]);
    let turned = lines[121..]
        .join("\n")
        .replace(",yes", ",NO")
        .replace(",no", ",yes")
        .replace(",NO", ",no");
    folder.file("test.csv", format!("{}\n{turned}\n", lines[0]));
    assert_eq!(names(&fit("--task site"))[3], found[3]);
    // On rows that were learned from nothing is compared unasked; where time is short neither.
    let plain = folder
        .run(&format!(
            "fit train.csv --target label --task site {kernels} --json"
        ))
        .json();
    assert_eq!(names(&plain), ["learned"]);
    let short = folder.run(&format!(
        "fit train.csv --target label --task site --test test.csv {kernels} --time-limit 100"
    ));
    assert!(
        short
            .stdout
            .contains("(no simpler models beside it, since time is short; --baselines fits them)"),
        "{}",
        short.stdout
    );
}
