//! Names from tables and from foreign models: whatever is in them, the terminal only shows it; and there may be very many.

use std::fmt::Write as _;

use crate::fixture::Folder;

/// A colour, a cleared screen, a bell, text turned around, a forged line, an end of line.
const HOSTILE: [&str; 4] = [
    "\u{1b}[31mred\u{1b}[2J\u{7}",
    "\u{202e}evil\u{2066}",
    "a\nmtmkl: all is well",
    "b\rc\u{9b}1m\u{200b}\u{2028}",
];

/// Tasks, classes and columns with these names.
fn table(names: &[&str]) -> String {
    let mut text = format!("task,\"{}\",{}x,label\n", names[0], names[1]);
    let mut random = mtmkl::random::Random::new(8);
    for row in 0..12 * names.len() {
        let yes = row % 2 == 1;
        let (a, b) = (
            random.uniform() + f64::from(u8::from(yes)),
            random.uniform(),
        );
        let label = if yes { names[2] } else { names[3] };
        let _ = writeln!(text, "\"{}\",{a},{b},\"{label}\"", names[row / 12]);
    }
    text
}

/// Nothing but text and the ends of lines.
fn assert_harmless(text: &str) {
    for line in text.lines() {
        let strange = line.chars().find(|character| {
            character.is_control() || "\u{200b}\u{202e}\u{2028}\u{2066}".contains(*character)
        });
        assert_eq!(strange, None, "{line:?}");
        assert!(!line.starts_with("mtmkl: all is well"), "a forged line");
    }
    assert!(!text.contains('\r'));
}

#[test]
fn names_do_not_command_the_terminal() {
    let folder = Folder::new();
    folder.file("x.csv", table(&HOSTILE)).file(
        "new.csv",
        table(&["\u{1b}[1mnew", HOSTILE[1], HOSTILE[2], HOSTILE[3]]),
    );
    let kernels = ["--kernel", "linear", "--kernel", "rbf"];
    let fit = |more: &[&str]| {
        let mut arguments = vec!["fit", "x.csv", "--target", "label", "--task", "task"];
        arguments.extend(kernels);
        arguments.extend(more);
        folder.run_all(&arguments)
    };
    let fitted = fit(&["-o", "m.model", "--baselines"]);
    assert_eq!(fitted.code, 0, "{}", fitted.stderr);
    // What is not harmless is seen as what it is.
    assert!(
        fitted.stdout.contains("\\u{1b}[31mred"),
        "{}",
        fitted.stdout
    );
    assert!(
        fitted.stdout.contains("a\\nmtmkl: all is well"),
        "{}",
        fitted.stdout
    );
    let json = fit(&["--json"]).json();
    assert!(
        json["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .any(|task| task["name"] == HOSTILE[0])
    );
    let column = format!("linear@{}", HOSTILE[0]);
    let missing = format!("linear@no{}", HOSTILE[0]);
    let runs = [
        fitted,
        folder.run("inspect m.model"),
        folder.run("evaluate m.model x.csv"),
        // A task that the model never saw.
        folder.run("evaluate m.model new.csv"),
        folder.run("predict m.model new.csv"),
        fit(&["--kernel", &column]),
        fit(&["--kernel", &missing]),
        fit(&["--ignore", HOSTILE[0], "--ignore", HOSTILE[2]]),
        fit(&["--features", HOSTILE[2]]),
        fit(&["--machine", HOSTILE[0]]),
        fit(&["--test", "new.csv"]),
        fit(&["--sharing", "lp"]),
        folder.run_all(&["fit", HOSTILE[2], "--target", "label"]),
        folder.run_all(&["inspect", HOSTILE[0]]),
        folder.run_all(&["fit", "x.csv", "--target", HOSTILE[3]]),
        folder.run("tune x.csv --target label --task task --folds 2 --kernel linear --grid C=1,2"),
    ];
    for ran in runs {
        assert!(!ran.stderr.contains("internal error"), "{}", ran.stderr);
        assert_harmless(&ran.stdout);
        assert_harmless(&ran.stderr);
    }
    // Settings are complained about in several lines, on purpose.
    folder.file("bad.toml", "C = [1\nkernel = \u{7}\n");
    let message = folder.run("fit x.csv --config bad.toml").bad();
    assert!(message.lines().count() > 1, "{message}");
    assert_harmless(&message);
}

#[test]
fn tables_stay_aligned_with_names_of_all_scripts() {
    let folder = Folder::new();
    let names = ["🦀 crab", "北京", "e\u{301}te\u{301}", "plain"];
    folder.file("x.csv", table(&names));
    let text = folder
        .run("fit x.csv --target label --task task --kernel linear --kernel rbf -o m.model")
        .good();
    assert!(text.contains("🦀 crab"), "{text}");
    let shown = folder.run("inspect m.model").good();
    let lines: Vec<&str> = shown.lines().collect();
    let first = lines
        .iter()
        .position(|line| line.starts_with("task "))
        .unwrap();
    let widths: Vec<usize> = lines[first..first + 6]
        .iter()
        .map(|line| mtmkl_cli::terminal::width(line))
        .collect();
    assert_eq!(widths, [widths[0]; 6], "{shown}");
    // Very long names are cut, at a character.
    let long = "京".repeat(5000);
    folder.file("long.csv", table(&[&long, "b", "c", "d"]));
    let text = folder
        .run("fit long.csv --target label --task task --kernel linear")
        .good();
    assert!(text.contains("京…"), "{text}");
    assert!(text.len() < 10_000, "{}", text.len());
}

#[test]
fn very_many_kernels_and_tasks_are_counted_not_listed() {
    let folder = Folder::new();
    let names: Vec<String> = (0..60).map(|task| format!("t{task:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    folder
        .file("many.csv", table(&names))
        .file("few.csv", table(&names[..4]));
    let widths: Vec<String> = (1..=200).map(|width| width.to_string()).collect();
    let kernels = format!("rbf:sigma={}", widths.join("|"));
    let fit = format!("few.csv --target label --task task --kernel {kernels} -o m.model");
    let kernels_left = "(the heaviest 40 of 200 kernels; --json has all)\n";
    for text in [
        folder.run(&format!("fit {fit}")).good(),
        folder.run("inspect m.model").good(),
    ] {
        assert!(text.contains(kernels_left), "{text}");
        assert_eq!(text.matches("\nrbf:").count(), 40, "{text}");
    }
    let all = folder.run("inspect m.model --json").json();
    assert_eq!(all["kernels"].as_array().unwrap().len(), 200);
    // The heaviest is among them.
    let weights = all["tasks"][0]["weights"].as_array().unwrap();
    let heaviest = (0..200)
        .max_by(|&a, &b| {
            weights[a]
                .as_f64()
                .unwrap()
                .total_cmp(&weights[b].as_f64().unwrap())
        })
        .unwrap();
    let name = all["kernels"][heaviest].as_str().unwrap();
    let shown = folder.run("inspect m.model").good();
    assert!(
        shown
            .lines()
            .any(|line| line.starts_with(&format!("{name} "))),
        "{name}\n{shown}"
    );

    let widths = widths[..30].join("|");
    let fit = format!("many.csv --target label --task task --kernel rbf:sigma={widths} -o n.model");
    let text = folder.run(&format!("fit {fit}")).good();
    let both = "(the heaviest 12 of 30 kernels, the first 40 of 60 tasks; --json has all)\n";
    let tasks_left = "(the first 40 of 60 tasks; --json has all)\n";
    assert!(text.contains(both), "{text}");
    assert!(text.contains(tasks_left), "{text}");
    assert!(text.contains("\nmean of 60 tasks "), "{text}");
    let inspected = folder.run("inspect n.model").good();
    assert!(
        inspected.contains(both) && inspected.contains(tasks_left),
        "{inspected}"
    );
    let evaluated = folder.run("evaluate n.model many.csv").good();
    assert!(evaluated.contains(tasks_left), "{evaluated}");
    assert_eq!(
        evaluated.matches("\nt").count(),
        42,
        "forty tasks and two classes: {evaluated}"
    );
    for text in [text, inspected] {
        assert!(text.contains("t39") && !text.contains("t40"), "{text}");
    }
}
