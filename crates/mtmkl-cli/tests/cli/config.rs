//! Settings in a file: the same names, the same meaning; flags win.

use crate::fixture::{Folder, Transcript, two_classes, two_tasks};

const SETTINGS: &str = r#"
target = "label"
task = "site"
kernel = ["rbf@a", "rbf:sigma=1|2"]
C = 3
q = 2.0
sharing = "group"
scale = "standard"
normalize = false
tol = 1e-6
ignore = ["extra"]
test-fraction = 0.25
baselines = true
"#;

fn tables() -> Folder {
    let folder = Folder::new();
    let mut table = String::from("extra,");
    table += &two_tasks(40).replace('\n', "\n7,");
    folder
        .file("tasks.csv", table.strip_suffix("7,").unwrap())
        .file("two.csv", two_classes(24))
        .file("run.toml", SETTINGS);
    folder
}

#[test]
fn a_file_says_what_flags_say() {
    let folder = tables();
    let fitted = |arguments: &str| {
        let ran = folder.run(&format!("fit tasks.csv {arguments} --json"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let mut object = ran.json();
        object.as_object_mut().unwrap().remove("seconds");
        object.as_object_mut().unwrap().remove("memory");
        object
    };
    let flags = "--target label --task site --kernel rbf@a --kernel rbf:sigma=1|2 --C 3 --q 2 --sharing group --scale standard \
                 --normalize false --tol 1e-6 --ignore extra --test-fraction 0.25 --baselines";
    assert_eq!(fitted("--config run.toml"), fitted(flags));
    assert_eq!(
        folder.run("fit --config run.toml --print-config").good(),
        folder.run(&format!("fit {flags} --print-config")).good()
    );
}

#[test]
fn what_is_printed_can_be_read_back() {
    let folder = tables();
    let first = folder.run("fit --config run.toml --print-config").good();
    insta::assert_snapshot!("printed", first);
    folder.file("again.toml", &first);
    assert_eq!(
        folder.run("fit --config again.toml --print-config").good(),
        first
    );
    // The defaults too, and every flag that has none.
    let all = "--target y --task t --features a..b --ignore c --ignore d --one-hot e --missing mean --id i --sample-weight w \
               --format csv --delimiter ; --no-header --allow-indefinite --beta 0.5 --upper 0.7 --weights 0.5,0.5 --term group \
               --time-limit 2.5 --test held.csv -o m.model --report page.html --json";
    for flags in ["", all] {
        let printed = folder.run(&format!("fit {flags} --print-config")).good();
        folder.file("again.toml", &printed);
        assert_eq!(
            folder.run("fit --config again.toml --print-config").good(),
            printed
        );
    }
}

#[test]
fn flags_win_and_lists_are_replaced() {
    let folder = tables();
    let printed = |flags: &str| -> toml::Table {
        folder
            .run(&format!("fit --config run.toml {flags} --print-config"))
            .good()
            .parse()
            .unwrap()
    };
    let settings = printed("--C 7 --kernel poly:degree=3 --scale=none --normalize true");
    assert_eq!(settings["C"].as_float(), Some(7.0));
    assert_eq!(settings["scale"].as_str(), Some("none"));
    assert_eq!(settings["normalize"].as_bool(), Some(true));
    assert_eq!(settings["kernel"].as_array().unwrap().len(), 1);
    // What the flags do not mention stays.
    assert_eq!(settings["ignore"].as_array().unwrap().len(), 1);
    assert_eq!(settings["sharing"].as_str(), Some("group"));
    // A flag wins over a setting that excludes it.
    let settings = printed("--test held.csv");
    assert_eq!(settings["test"].as_str(), Some("held.csv"));
    assert!(!settings.contains_key("test-fraction"));
    // The order on the command line does not matter.
    let before: toml::Table = folder
        .run("fit --C 7 --print-config --config run.toml")
        .good()
        .parse()
        .unwrap();
    assert_eq!(before["C"].as_float(), Some(7.0));
}

#[test]
fn a_model_keeps_its_settings() {
    let folder = tables();
    folder.run("fit tasks.csv --config run.toml -o m").good();
    folder.run("report m -o page.html").good();
    let page = std::fs::read_to_string(folder.path("page.html")).unwrap();
    assert!(page.contains("test-fraction"), "the page has no settings");
}

#[test]
fn settings_that_are_wrong() {
    let folder = tables();
    let mut shown = Transcript::new(&folder);
    shown
        .bad("fit two.csv --config nowhere.toml")
        .bad("fit two.csv --config .");
    for (number, text) in [
        "kernl = \"linear\"",
        "max_passes = 3",
        "c = 1",
        "memory = 2",
        "gamma = 2",
        "data = \"two.csv\"",
        "verbose = true",
        "config = \"other.toml\"",
        "[fit]\nC = 1",
        "C = \"abc\"",
        "C = [1, 2]",
        "C = -1\ntarget = \"label\"",
        "threads = 1.5",
        "json = 1",
        "kernel = [[\"linear\"]]",
        "multiclass = \"ovx\"",
        "scale = true",
        "C = ",
        "C = 1\nC = 2",
        "target = \"label\"\ntest = \"a.csv\"\ntest-fraction = 0.5",
    ]
    .iter()
    .enumerate()
    {
        let file = format!("{}.toml", number + 1);
        folder.file(&file, text);
        let arguments = format!("fit two.csv --config {file}");
        let message = folder.run(&arguments).bad();
        let ran = crate::fixture::Ran {
            code: 2,
            stdout: format!("({})\n", text.replace('\n', "; ")),
            stderr: message,
        };
        shown.note(&arguments, &ran);
    }
    insta::assert_snapshot!(shown.text());
}
