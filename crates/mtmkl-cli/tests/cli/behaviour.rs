//! What the flags do.

use std::io::Write as _;

use mtmkl::grid::Shape;

use crate::fixture::{Folder, agreement, column, curve, three_classes, two_classes, two_tasks};

fn tables() -> Folder {
    let folder = Folder::new();
    folder
        .file("two.csv", two_classes(40))
        .file("three.csv", three_classes(45))
        .file("tasks.csv", two_tasks(60))
        .file(
            "tree.json",
            r#"{"sites": {"one": ["north"]}, "others": ["south"]}"#,
        )
        .file("curve.csv", curve(40));
    folder
}

#[test]
fn every_kernel_runs() {
    let folder = tables();
    for kernel in mtmkl::Registry::default().kernels() {
        if kernel.name == "precomputed" {
            continue;
        }
        for spec in [kernel.name, kernel.example] {
            let ran = folder.run(&format!(
                "fit two.csv --target label --scale minmax --kernel {spec} --kernel linear --allow-indefinite --json"
            ));
            assert_eq!(ran.code, 0, "{spec}: {}", ran.stderr);
            assert_eq!(ran.json()["kernels"][0], spec);
        }
    }
}

#[test]
fn every_machine_runs_with_both_solvers() {
    let folder = tables();
    for machine in mtmkl::Registry::default().machines() {
        for solver in ["newton", "epf"] {
            let table = match machine.part.name {
                "svr" | "krr" => "curve.csv --target y",
                "svdd" => "two.csv --target label --C 0.2",
                _ => "two.csv --target label",
            };
            let ran = folder.run(&format!(
                "fit {table} --machine {} --solver {solver} --kernel linear --kernel rbf:sigma=1|2 --tol 1e-3 --max-passes 20000 --json",
                machine.part.name
            ));
            assert_eq!(
                ran.code, 0,
                "{} {solver}: {}",
                machine.part.name, ran.stderr
            );
            assert_eq!(ran.json()["machine"]["name"], machine.part.name);
        }
    }
}

#[test]
fn both_solvers_find_the_same_optimum() {
    let folder = tables();
    let objective = |solver: &str| {
        let ran = folder.run(&format!(
            "fit tasks.csv --target label --task site --kernel linear --kernel rbf --q 2 --solver {solver} --tol 1e-5 \
             --max-passes 50000 --json"
        ));
        assert_eq!(ran.code, 0, "{solver}: {}", ran.stderr);
        ran.json()["objective"].as_f64().unwrap()
    };
    let (newton, epf) = (objective("newton"), objective("epf"));
    assert!((newton - epf).abs() <= 2e-5 * newton, "{newton} {epf}");
}

#[test]
fn every_sharing_runs() {
    let folder = tables();
    for sharing in mtmkl::Registry::default().sharings() {
        let flags = match sharing.part.name {
            "tang" => "--beta 0.5",
            "hierarchy" => "--tree tree.json",
            "box-simplex" => "--upper 0.6",
            "prior-ball" => "--weights 0.5,0.3,0.2 --radius 0.2",
            "fixed" => "--weights 0.5,0.3,0.2",
            "sum" => {
                "--term common:lp-ball,p=2,radius=0.5 --term independent:simplex,total=0.5 --term group,p=2,q=1,radius=0.5"
            }
            _ => "",
        };
        let table = if sharing.part.name == "lp" {
            "two.csv --target label"
        } else {
            "tasks.csv --target label --task site"
        };
        let ran = folder.run(&format!(
            "fit {table} --kernel linear --kernel rbf:sigma=1|2 --sharing {} {flags} --json",
            sharing.part.name
        ));
        assert_eq!(ran.code, 0, "{}: {}", sharing.part.name, ran.stderr);
        let fitted = ran.json();
        assert_eq!(fitted["sharing"]["name"], sharing.part.name);
        // The program knows it by the name and the parameters under which it is registered.
        assert!(
            sharing.part.name == "lp"
                || !(sharing.examples)(Shape {
                    tasks: 2,
                    kernels: 3
                })
                .is_empty(),
            "{}",
            sharing.part.name
        );
        if sharing.part.name == "fixed" {
            assert_eq!(
                fitted["tasks"][1]["weights"],
                serde_json::json!([0.5, 0.3, 0.2])
            );
        }
    }
}

#[test]
fn every_set_can_be_a_term_of_a_sum() {
    let folder = tables();
    for set in [
        "lp-ball",
        "lp-ball,p=1.5,radius=2",
        "simplex",
        "simplex,total=2",
        "box-simplex,upper=0.8",
        "prior-ball,prior=0.4|0.6,radius=0.1",
        "fixed,weights=0.4|0.6",
    ] {
        for lift in ["common", "independent"] {
            let ran = folder.run(&format!(
                "fit tasks.csv --target label --task site --kernel linear --kernel rbf --sharing sum --term {lift}:{set} --json"
            ));
            assert_eq!(ran.code, 0, "{lift}:{set}: {}", ran.stderr);
        }
    }
}

#[test]
fn threads_do_not_change_the_answer() {
    let folder = tables();
    for table in [
        "tasks.csv --target label --task site",
        "three.csv --target kind",
    ] {
        for threads in [1, 2] {
            folder
                .run(&format!(
                    "fit {table} --threads {threads} --test-fraction 0.3 --baselines --report {threads}.html -o {threads}.model"
                ))
                .good();
        }
        let fitted = |threads: &str| {
            let mut object = folder
                .run(&format!("inspect {threads}.model --json"))
                .json();
            object.as_object_mut().unwrap().remove("seconds");
            object.as_object_mut().unwrap().remove("memory");
            object
        };
        assert_eq!(fitted("1"), fitted("2"));
        let decisions = |threads: &str| {
            let data = table.split(' ').next().unwrap();
            folder
                .run(&format!("predict {threads}.model {data} --decision"))
                .good()
        };
        assert_eq!(decisions("1"), decisions("2"));
    }
}

#[test]
fn the_seed_decides_the_split() {
    let folder = tables();
    let split = |seed: u32| {
        let ran = folder.run(&format!(
            "fit three.csv --target kind --test-fraction 0.3 --seed {seed} --json"
        ));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let fitted = ran.json();
        assert_eq!(fitted["scores"]["split"], "15 held-out rows of 45");
        fitted["tasks"].clone()
    };
    assert_eq!(split(1), split(1));
    assert_ne!(split(1), split(2));
}

#[test]
fn several_classes_both_ways() {
    let folder = tables();
    let table = three_classes(45);
    for (scheme, tasks) in [
        ("ova", ["ash", "birch", "cedar"]),
        ("ovo", ["ash-birch", "ash-cedar", "birch-cedar"]),
    ] {
        let fitted = folder
            .run(&format!(
                "fit three.csv --target kind --multiclass {scheme} --C 10 --scale standard -o {scheme}.model --json"
            ))
            .json();
        let names: Vec<&str> = fitted["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|task| task["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, tasks);
        let predicted = folder
            .run(&format!("predict {scheme}.model three.csv --decision"))
            .good();
        assert!(
            predicted.starts_with(&format!(
                "row,prediction,decision {}",
                tasks.join(",decision ")
            )),
            "{predicted}"
        );
        let share = agreement(&column(&predicted, "prediction"), &column(&table, "kind"));
        assert!(share > 0.9, "{scheme}: {share}");
        let evaluated = folder
            .run(&format!("evaluate {scheme}.model three.csv --json"))
            .json();
        assert!((evaluated["mean"].as_f64().unwrap() - share).abs() < 1e-12);
    }
}

#[test]
fn classes_may_be_numbers_and_words_mixed() {
    let folder = Folder::new();
    let mut table = String::from("a,kind\n");
    for row in 0..60 {
        let kind = ["2", "10", "1a", "b"][row % 4];
        table += &format!("{}.{},{kind}\n", row % 4, row % 7);
    }
    folder.file("mixed.csv", table);
    let fitted = folder
        .run("fit mixed.csv --target kind --multiclass ova --json")
        .json();
    let names: Vec<&str> = fitted["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["2", "10", "1a", "b"]);
}

#[test]
fn regression_learns_the_curve() {
    let folder = tables();
    for flags in [
        "--machine krr --lambda 0.01",
        "--machine svr --C 10 --epsilon 0.05",
    ] {
        let fitted = folder
            .run(&format!(
                "fit curve.csv --target y {flags} --ignore z --kernel rbf:sigma=0.5|1|2 --test-fraction 0.25 -o m --json"
            ))
            .json();
        let score = &fitted["scores"]["methods"][0];
        assert_eq!(score["metric"], "R2");
        assert!(score["mean"].as_f64().unwrap() > 0.95, "{flags}: {score}");
        // Numbers are numbers in JSON.
        let first = &folder.run("predict m curve.csv --json").json()["predictions"][0];
        assert!(first["prediction"].is_f64(), "{first}");
        let predicted = folder.run("predict m curve.csv").good();
        let table = curve(40);
        let errors: f64 = column(&predicted, "prediction")
            .iter()
            .zip(column(&table, "y"))
            .map(|(a, b)| (a.parse::<f64>().unwrap() - b.parse::<f64>().unwrap()).abs())
            .sum();
        assert!(errors / 40.0 < 0.1, "{flags}: {errors}");
    }
}

#[test]
fn one_class_machines_know_their_own() {
    let folder = tables();
    folder.file(
        "outside.csv",
        "a,b,state\n1,1,ok\n1.2,0.9,ok\n50,-50,odd\n-80,3,odd\n",
    );
    for flags in [
        "--machine ocsvm --nu 0.1",
        "--machine svdd --C 0.1",
        "--machine svdd --C 0.1 --sharing uniform",
    ] {
        folder
            .run(&format!(
                "fit two.csv --ignore label {flags} --kernel rbf:sigma=1|2 --scale none -o m"
            ))
            .good();
        let predicted = folder.run("predict m outside.csv").good();
        assert_eq!(
            column(&predicted, "prediction"),
            ["1", "1", "-1", "-1"],
            "{flags}"
        );
        let evaluated = folder
            .run("evaluate m outside.csv --target state --inlier ok --json")
            .json();
        assert_eq!(evaluated["metric"], "accuracy");
        assert_eq!(evaluated["mean"], 1.0, "{flags}");
        let accepted = folder.run("evaluate m outside.csv --json").json();
        assert_eq!(accepted["metric"], "accepted");
        assert_eq!(accepted["mean"], 0.5, "{flags}");
    }
}

#[test]
fn columns_are_found_by_name() {
    let folder = tables();
    folder
        .run("fit two.csv --target label --scale standard -o m")
        .good();
    let given = folder.run("predict m two.csv --decision").good();
    let mut turned = String::from("label,extra,b,a\n");
    for line in two_classes(40).lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        turned += &format!("?,9,{},{}\n", cells[1], cells[0]);
    }
    folder.file("turned.csv", &turned);
    folder.file("turned.tsv", turned.replace(',', "\t"));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(turned.as_bytes()).unwrap();
    folder.file("turned.csv.gz", packed.finish().unwrap());
    for file in ["turned.csv", "turned.tsv", "turned.csv.gz"] {
        assert_eq!(
            folder.run(&format!("predict m {file} --decision")).good(),
            given,
            "{file}"
        );
    }
}

#[test]
fn scaling_is_kept_and_applied() {
    let folder = tables();
    // The same rows in other units: scaled, they are the same.
    let mut large = String::from("a,b,label\n");
    for line in two_classes(40).lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let a = 1024.0 * cells[0].parse::<f64>().unwrap();
        large += &format!("{a},{},{}\n", cells[1], cells[2]);
    }
    folder.file("large.csv", large);
    for scale in ["standard", "minmax"] {
        let decisions = |file: &str| {
            folder
                .run(&format!(
                    "fit {file} --target label --kernel rbf --scale {scale} -o m"
                ))
                .good();
            folder.run(&format!("predict m {file} --decision")).good()
        };
        let (small, large) = (decisions("two.csv"), decisions("large.csv"));
        for (a, b) in column(&small, "decision")
            .iter()
            .zip(column(&large, "decision"))
        {
            let (a, b): (f64, f64) = (a.parse().unwrap(), b.parse().unwrap());
            assert!((a - b).abs() < 1e-6, "{scale}: {a} {b}");
        }
    }
    // A single row cannot be scaled by itself: the training rows' scale it is.
    folder
        .run("fit two.csv --target label --kernel linear --normalize false --scale minmax -o m")
        .good();
    folder.file("single.csv", "a,b\n2.5,1\n");
    assert_eq!(
        folder.run("predict m single.csv").good(),
        "row,prediction\n1,yes\n"
    );
}

#[test]
fn weights_of_samples_count() {
    let folder = Folder::new();
    // Two groups that contradict each other; the heavier one wins.
    let table = |first: f64, second: f64| {
        let mut text = String::from("a,label,w\n");
        for row in 0..20 {
            let a = f64::from(row) / 10.0;
            let right = if a >= 1.0 { "up" } else { "down" };
            let wrong = if a >= 1.0 { "down" } else { "up" };
            text += &format!("{a},{right},{first}\n{a},{wrong},{second}\n");
        }
        text
    };
    folder.file("heavy.csv", table(5.0, 0.1));
    folder.file("light.csv", table(0.1, 5.0));
    folder.file("new.csv", "a\n0.2\n1.7\n");
    for (file, expected) in [("heavy.csv", ["down", "up"]), ("light.csv", ["up", "down"])] {
        folder
            .run(&format!(
                "fit {file} --target label --sample-weight w --kernel rbf:sigma=0.5 -o m"
            ))
            .good();
        let predicted = folder.run("predict m new.csv").good();
        assert_eq!(column(&predicted, "prediction"), expected);
    }
    // Class weights likewise: everything becomes the class that costs more.
    folder
        .run("fit heavy.csv --target label --ignore w --positive-weight 50 --kernel rbf:sigma=0.5 -o m")
        .good();
    let predicted = folder.run("predict m new.csv").good();
    assert_eq!(column(&predicted, "prediction"), ["up", "up"]);
}

#[test]
fn features_and_ignored_columns() {
    let folder = tables();
    let tasks = |flags: &str| {
        let ran = folder.run(&format!(
            "fit three.csv --target kind --kernel rbf {flags} --normalize unit --json"
        ));
        assert_eq!(ran.code, 0, "{flags}: {}", ran.stderr);
        ran.json()["tasks"].clone()
    };
    assert_eq!(tasks("--features a,b"), tasks("--ignore c"));
    assert_eq!(tasks("--features a..c"), tasks(""));
    assert_eq!(tasks("--features b"), tasks("--ignore a --ignore c"));
    assert_ne!(tasks("--features b"), tasks(""));
    // A view of the columns is the kernel's own business.
    let kernel = |spec: &str| {
        let ran = folder.run(&format!(
            "fit three.csv --target kind --kernel {spec} --normalize unit --json"
        ));
        assert_eq!(ran.code, 0, "{spec}: {}", ran.stderr);
        ran.json()["tasks"].clone()
    };
    // Rows that differ in other columns only are one sample where these are left out, so the optimum is the same and its digits are not.
    for (spec, flags) in [("rbf@b", "--features b"), ("rbf@a..b", "--ignore c")] {
        let (viewed, alone) = (kernel(spec), tasks(flags));
        for task in 0..3 {
            let weight = |tasks: &serde_json::Value| tasks[task]["weights"][0].as_f64().unwrap();
            let (viewed, alone) = (weight(&viewed), weight(&alone));
            assert!(
                (viewed - alone).abs() < 1e-3 * alone,
                "{spec}: {viewed} {alone}"
            );
        }
    }
    // Of one column a normalised linear kernel sees only the sign: said, because it is rarely meant.
    let ran = folder.run("fit three.csv --target kind --kernel linear@a --normalize unit --json");
    assert!(
        ran.stderr.contains("--normalize variance keeps their size"),
        "{}",
        ran.stderr
    );
    let ran = folder.run("fit three.csv --target kind --kernel linear@a --json");
    assert_eq!(ran.stderr, "");
    // A model without a column does not ask for it.
    folder
        .run("fit three.csv --target kind --features a,b -o m")
        .good();
    folder.file("new.csv", "b,a\n0.5,2.5\n");
    assert_eq!(
        folder.run("predict m new.csv").good(),
        "row,prediction\n1,birch\n"
    );
}

#[test]
fn gaps_in_new_rows() {
    let folder = tables();
    folder.file("new.csv", "a,b\n0.2,1\n,1\n2.4,1\n");
    folder
        .run("fit two.csv --target label --missing drop -o drop.model")
        .good();
    let ran = folder.run("predict drop.model new.csv");
    assert_eq!(
        ran.stderr,
        "note: new.csv: 1 row with missing values is left out\n"
    );
    assert_eq!(ran.good(), "row,prediction\n1,no\n3,yes\n");
    folder
        .run("fit two.csv --target label --missing mean -o mean.model")
        .good();
    let predicted = folder.run("predict mean.model new.csv").good();
    assert_eq!(column(&predicted, "row"), ["1", "2", "3"]);
}

#[test]
fn categories_are_told_apart() {
    let folder = Folder::new();
    let mut table = String::from("noise,colour,label\n");
    for row in 0..30 {
        let colour = ["red", "green", "blue"][row % 3];
        let label = if colour == "green" { "go" } else { "stop" };
        table += &format!("0.{},{colour},{label}\n", row % 7);
    }
    folder.file("lights.csv", table);
    folder
        .run("fit lights.csv --target label --one-hot colour --kernel rbf -o m")
        .good();
    folder.file("new.csv", "colour,noise\ngreen,0.3\nred,0.3\nblue,0.1\n");
    let predicted = folder.run("predict m new.csv").good();
    assert_eq!(column(&predicted, "prediction"), ["go", "stop", "stop"]);
    // A colour never seen is none of those known: said, not hidden.
    folder.file("violet.csv", "colour,noise\ngreen,0.3\nviolet,0.3\n");
    let ran = folder.run("predict m violet.csv");
    assert_eq!(
        ran.stderr,
        "note: violet.csv: 1 row has a value in column `colour` that the model never saw, such as `violet`; it is taken for none of \
         those it knows\n"
    );
    assert_eq!(column(&ran.good(), "prediction").len(), 2);
    // A kernel may look at one of the new columns.
    folder
        .run_all(&[
            "fit",
            "lights.csv",
            "--target",
            "label",
            "--one-hot",
            "colour",
            "--kernel",
            "linear@colour=green",
        ])
        .good();
}

#[test]
fn text_of_few_values_tells_categories_unasked() {
    let folder = Folder::new();
    let mut table = String::from("size,colour,name,label\n");
    for row in 0..30 {
        let colour = ["red", "green", "blue"][row % 3];
        let label = if colour == "green" { "go" } else { "stop" };
        table += &format!("0.{},{colour},n{row},{label}\n", row % 7);
    }
    folder.file("lights.csv", table);
    let fit = |flags: &str| {
        folder.run(&format!(
            "fit lights.csv --target label --ignore name {flags}"
        ))
    };
    let ran = fit("-o unasked");
    assert_eq!(
        ran.stderr,
        "note: lights.csv: text with few different values is taken for categories, a 0/1 column for each value: `colour` (3); --ignore COLUMN leaves \
         one out; if one of them says which task a row belongs to, name it by --task\n"
    );
    ran.good();
    let asked = fit("--one-hot colour -o asked");
    assert_eq!(asked.stderr, "");
    asked.good();
    let predicted = |model: &str| {
        let ran = folder.run(&format!("predict {model} lights.csv --decision"));
        ran.good()
    };
    assert_eq!(predicted("unasked"), predicted("asked"));
    folder.run("verify unasked lights.csv").good();
    // Names are none, and all columns of text are named at once.
    folder.file(
        "names.csv",
        "a,first,last name,label\n1,u,a,x\n2,v,b,y\n3,w,c,x\n4,z,d,y\n",
    );
    assert_eq!(
        folder.run("fit names.csv --target label").bad(),
        "mtmkl: names.csv: 2 columns are text of many different values: `first` (4), `last name` (4); `--ignore first --ignore 'last name'` leaves \
         them out, `--one-hot COLUMN` makes a 0/1 column of each value of one\n"
    );
}

#[test]
fn a_column_that_numbers_the_rows_is_pointed_at() {
    let folder = Folder::new();
    let table = |columns: &str, first: usize| {
        let rows = (0..20).map(|row| {
            let other = 7 * row % 5;
            format!(
                "{},{other},{}\n",
                row + first,
                if row < 10 { "x" } else { "y" }
            )
        });
        format!("{columns}\n{}", rows.collect::<String>())
    };
    folder
        .file("numbered.csv", table("row names,a,label", 1))
        .file("years.csv", table("year,a,label", 1990));
    let ran = folder.run("fit numbered.csv --target label");
    assert_eq!(
        ran.stderr,
        "warning: numbered.csv: column `row names` numbers the rows, each with a number of its own, and is learned from like any other; \
         `--ignore 'row names'` leaves it out\n"
    );
    ran.good();
    // Years are no row numbers, and what is there alone is there to be learned from.
    for quiet in ["years.csv", "numbered.csv --ignore a"] {
        let ran = folder.run(&format!("fit {quiet} --target label"));
        assert_eq!(ran.stderr, "", "{quiet}");
        ran.good();
    }
}

#[test]
fn a_column_of_ids_is_pointed_at_whatever_its_first_and_its_order() {
    let folder = Folder::new();
    let table = |id: fn(usize) -> usize| {
        let rows = (0..200).map(|row| format!("{},{},{}\n", id(row), row % 7, row % 2));
        format!("id,a,label\n{}", rows.collect::<String>())
    };
    folder
        .file("from.csv", table(|row| 1000 + row))
        .file("shuffled.csv", table(|row| 5 + (37 * row) % 200))
        .file(
            "gap.csv",
            table(|row| if row == 199 { 1 } else { 1000 + row }),
        );
    for (name, is_said) in [("from", true), ("shuffled", true), ("gap", false)] {
        let ran = folder.run(&format!("fit {name}.csv --target label"));
        let said = ran.stderr.contains("column `id` numbers the rows");
        assert_eq!(said, is_said, "{name}: {}", ran.stderr);
    }
}

#[test]
fn nothing_is_written_over_what_is_read() {
    let folder = tables();
    let table = std::fs::read(folder.path("two.csv")).unwrap();
    folder.run("fit two.csv --target label -o m").good();
    let model = std::fs::read(folder.path("m")).unwrap();
    for (command, said) in [
        (
            "fit two.csv --target label -o two.csv",
            "-o is two.csv, which is the table to learn from",
        ),
        (
            "fit two.csv --target label --report ./two.csv",
            "--report is ./two.csv, which is the table to learn from",
        ),
        (
            "fit two.csv --target label -o new --report new",
            "--report is new, which is -o",
        ),
        (
            "tune two.csv --target label -o two.csv",
            "-o is two.csv, which is the table to learn from",
        ),
        (
            "tune two.csv --target label --journal two.csv",
            "--journal is two.csv, which is the table to learn from",
        ),
        (
            "predict m two.csv -o two.csv",
            "-o is two.csv, which is the table",
        ),
        ("predict m two.csv -o m", "-o is m, which is the model"),
        ("report m -o m", "-o is m, which is the model"),
    ] {
        let found = folder.run(command).bad();
        assert!(found.contains(said), "{command}: {found}");
    }
    assert_eq!(std::fs::read(folder.path("two.csv")).unwrap(), table);
    assert_eq!(std::fs::read(folder.path("m")).unwrap(), model);
    // A model is made anew, and a device takes what it is given.
    folder.run("fit two.csv --target label -o m").good();
    folder.run("predict m two.csv -o /dev/null").good();
}

#[test]
fn names_are_no_classes() {
    let folder = Folder::new();
    let rows = |count: usize, name: fn(usize) -> String| {
        let rows = (0..count).map(|row| format!("{},{}\n", row % 7, name(row)));
        format!("a,name\n{}", rows.collect::<String>())
    };
    folder
        .file("names.csv", rows(400, |row| format!("n{row}")))
        .file("few.csv", rows(12, |row| format!("n{}", row % 8)));
    assert_eq!(
        folder.run("fit names.csv --target name").bad(),
        "mtmkl: names.csv: the target `name` has 400 different values in 400 rows, which look like names and not like classes: another column may be \
         meant, and --machine svc takes each of them for a class\n"
    );
    let said = folder
        .run("fit names.csv --target name --machine svc --memory-limit 0.1")
        .bad();
    assert!(
        said.contains("79800 machines for the 400 classes"),
        "{said}"
    );
    assert!(said.contains("--multiclass ova"), "{said}");
    folder.run("fit few.csv --target name").good();
}

#[test]
fn decimal_commas_are_numbers_in_another_spelling() {
    let folder = Folder::new();
    let rows = (0..30).map(|row| format!("{},{};{};{}\n", row % 5, row % 3, row, row % 2));
    folder.file("comma.csv", format!("a;b;y\n{}", rows.collect::<String>()));
    for command in [
        "fit comma.csv --target y",
        "fit comma.csv --target y --one-hot b",
    ] {
        let said = folder.run(command).bad();
        assert!(
            said.contains("column `a`: `0,0` is not a number; write decimals with a point"),
            "{said}"
        );
    }
    let said = folder.run("fit comma.csv --target a --machine krr").bad();
    assert!(
        said.contains("predict numbers, with a point before the decimals"),
        "{said}"
    );
}

#[test]
fn gaps_and_tasks_that_nothing_can_be_learned_from_have_a_way_out() {
    let folder = Folder::new();
    folder
        .file("empty.csv", "e,a,y\n,1,p\n,2,q\n,1,p\n,2,q\n")
        .file(
            "sites.csv",
            "site,a,y\nx,1,p\nx,2,q\nu,1,p\nu,2,p\nv,3,q\nw,1,q\n",
        );
    let said = folder.run("fit empty.csv --target y").bad();
    assert!(
        said.contains("has no value in any row to learn from; `--ignore e`"),
        "{said}"
    );
    folder.run("fit empty.csv --target y --ignore e").good();
    let said = folder.run("fit sites.csv --target y --task site").bad();
    assert!(
        said.contains("task `u`") && said.contains("`v`, `w`"),
        "{said}"
    );
    assert!(said.contains("--transfer all,own"), "{said}");
    folder
        .run("fit sites.csv --target y --task site --transfer all,own")
        .good();
    folder.file("two_rows.csv", "a,y\n1,p\n2,q\n");
    let ran = folder.run("fit two_rows.csv --target y --test-fraction 0.3");
    assert!(ran.stderr.contains("holds nothing back"), "{}", ran.stderr);
}

#[test]
fn a_test_table_is_scored() {
    let folder = tables();
    let fitted = folder
        .run("fit tasks.csv --target label --task site --test tasks.csv --json -o m")
        .json();
    assert_eq!(fitted["scores"]["split"], "60 rows of tasks.csv");
    let evaluated = folder.run("evaluate m tasks.csv --json").json();
    assert_eq!(fitted["scores"]["methods"][0]["mean"], evaluated["mean"]);
    assert_eq!(fitted["scores"]["methods"][0]["tasks"], evaluated["tasks"]);
}

#[test]
fn libsvm_files_have_a_label_and_leave_zeros_out() {
    let folder = Folder::new();
    let mut rows = String::new();
    for row in 0..30 {
        let value = 0.1 * f64::from(row % 10);
        rows += &format!(
            "{} 1:{value} 3:{}\n",
            if row % 2 == 0 { 1 } else { -1 },
            1 + row % 2
        );
    }
    folder.file("rows.svm", rows);
    let fitted = folder
        .run("fit rows.svm --kernel linear -o m --json")
        .json();
    assert_eq!(fitted["tasks"][0]["name"], "label");
    // Index 3 does not occur: it is 0, not missing.
    folder.file("new.svm", "0 1:0.5\n0 1:0.5 2:1\n");
    let predicted = folder.run("predict m new.svm").good();
    folder.file("zero.svm", "0 1:0.5 3:0\n0 1:0.5 2:1 3:0\n");
    assert_eq!(folder.run("predict m zero.svm").good(), predicted);
}

#[test]
fn kernel_values_are_made_on_demand_over_the_memory_limit() {
    let folder = tables();
    let widths: Vec<String> = (1..=40).map(|width| format!("{width}")).collect();
    let fit = |limit: &str| {
        let ran = folder.run(&format!(
            "fit two.csv --target label --kernel rbf:sigma={} --tol 1e-7 --threads 2 --memory-limit {limit} --json",
            widths.join("|")
        ));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran
    };
    // 40 matrices of 40 × 40 numbers are 512 kB.
    let (kept, made) = (fit("1"), fit("2e-4"));
    assert!(!kept.stderr.contains("on demand"), "{}", kept.stderr);
    assert!(made.stderr.contains("made on demand"), "{}", made.stderr);
    let objective = |ran: &crate::fixture::Ran| ran.json()["objective"].as_f64().unwrap();
    let (a, b) = (objective(&kept), objective(&made));
    assert!((a - b).abs() <= 2e-7 * a, "{a} and {b}");
}
