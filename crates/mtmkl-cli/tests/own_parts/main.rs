//! A kernel, a machine and a sharing from outside the crates, by one file and one line each; the recipes of CONTRIBUTING.md are these files.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::disallowed_methods,
    reason = "a test that is run as a program is told so"
)]

mod kernel;
mod machine;
mod sharing;

use std::path::Path;
use std::process::Command;

use mtmkl::{Error, Model, Registry};
use mtmkl_testkit::conformance;
use tempfile::TempDir;

fn registry() -> Registry {
    Registry::default()
        .with_kernel(&kernel::ENTRY)
        .with_machine(&machine::ENTRY)
        .with_sharing(&sharing::ENTRY)
}

/// The arguments of the program, where this test is run as the program.
const ARGUMENTS: &str = "MTMKL_OWN_PROGRAM";

/// A program of one's own. As a test it does nothing; [`Folder::run`] runs it with arguments.
#[test]
#[allow(clippy::exit, reason = "it is a program")]
fn program() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else {
        return;
    };
    let arguments = ["mtmkl"].into_iter().chain(arguments.split('\n'));
    let arguments: Vec<_> = arguments.map(Into::into).collect();
    std::process::exit(mtmkl_cli::run(&arguments, &registry()).into());
}

struct Folder(TempDir);

impl Folder {
    /// With a table of numbers for two tasks.
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        let mut table = "a,b,site,y\n".to_string();
        for row in 0..48 {
            let (a, b) = (f64::from(row % 7) - 3.0, f64::from(row % 5) - 2.0);
            let site = ["north", "south"][usize::from(row % 2 == 1)];
            table += &format!("{a},{b},{site},{}\n", a - 0.5 * b * b + f64::from(row % 3));
        }
        std::fs::write(folder.path("t.csv"), table).unwrap();
        folder
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    /// Exit code, standard output, standard error.
    fn run(&self, line: &str) -> (i32, String, String) {
        let arguments: Vec<&str> = line.split(' ').collect();
        let ran = Command::new(std::env::current_exe().unwrap())
            .args(["program", "--exact", "--nocapture"])
            .env(ARGUMENTS, arguments.join("\n"))
            .current_dir(self.0.path())
            .output()
            .unwrap();
        let text = String::from_utf8(ran.stdout).unwrap();
        // The harness says that it runs one test.
        let own = text.split_once("running 1 test\n").unwrap().1;
        let errors = String::from_utf8(ran.stderr).unwrap();
        (ran.status.code().unwrap(), own.to_string(), errors)
    }

    fn good(&self, line: &str) -> String {
        let (code, text, errors) = self.run(line);
        assert_eq!(code, 0, "{line}: {errors}");
        text
    }
}

const FIT: &str = "fit t.csv --target y --task site --kernel linear --kernel rational:scale=1|4 \
                   --machine quantile --tau 0.75 --C 2 --sharing mass --mass 1.5";

#[test]
fn help_and_completions_name_them() {
    let folder = Folder::new();
    let help = folder.good("fit --help");
    for words in [
        "rational",
        "or quantile",
        "or mass",
        "--tau <NUMBER>",
        "--mass <NUMBER>",
    ] {
        assert!(help.contains(words), "{words}: {help}");
    }
    let lines = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        lines.contains("The price of an error, > 0, for svc, logistic, svr, svdd and quantile"),
        "{help}"
    );
    assert!(
        lines.contains("The share of values below, in (0, 1], for quantile [default: 0.5]"),
        "{help}"
    );
    assert!(folder.good("tune --help").contains("tau"));
    let completions = folder.good("completions bash");
    for word in ["--tau", "--mass", "quantile", " mass"] {
        assert!(completions.contains(word), "{word}");
    }
    let (code, _, errors) = folder.run(&FIT.replace("quantile", "svr --machine quantil"));
    assert_eq!(code, 2);
    assert!(errors.contains("did you mean `quantile`?"), "{errors}");
    let (_, _, errors) = folder.run(&format!("{FIT} --tau 1.5"));
    assert!(
        errors.contains("--tau: found 1.5, expected a number in (0, 1]"),
        "{errors}"
    );
}

#[test]
fn settings_come_back_from_a_file() {
    let folder = Folder::new();
    let printed = folder.good(&format!("{FIT} --print-config"));
    for line in [
        "machine = \"quantile\"",
        "tau = 0.75",
        "sharing = \"mass\"",
        "mass = 1.5",
    ] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
    std::fs::write(folder.path("run.toml"), &printed).unwrap();
    assert_eq!(folder.good("fit --config run.toml --print-config"), printed);
    let fitted = folder.good("fit t.csv --config run.toml --json");
    assert!(fitted.contains("\"tau\": 0.75"), "{fitted}");
}

#[test]
fn a_search_goes_over_their_parameters() {
    let folder = Folder::new();
    let line = FIT.replace("fit", "tune");
    let found = folder.good(&format!(
        "{line} --grid tau=0.25,0.5 --grid mass=0.5,1,2 --folds 2"
    ));
    for word in ["tau", "mass", "chosen", "machine quantile, sharing mass"] {
        assert!(found.contains(word), "{word}: {found}");
    }
    // Without a grid, what the entry says.
    let found = folder.good(&format!("{line} --folds 2"));
    assert!(found.contains("10") && found.contains("chosen"), "{found}");
}

#[test]
fn a_model_is_saved_and_read_where_they_are_known() {
    let folder = Folder::new();
    folder.good(&format!("{FIT} -o m.mtmkl"));
    let path = folder.path("m.mtmkl");
    let model = Model::load_with(&registry(), &path).unwrap();
    assert_eq!(model.machine().number("tau"), 0.75);
    assert_eq!(model.sharing().number("mass"), 1.5);
    assert_eq!(model.to_bytes().unwrap(), std::fs::read(&path).unwrap());
    let predictions = folder.good("predict m.mtmkl t.csv");
    assert_eq!(predictions.lines().count(), 49);
    assert!(folder.good("inspect m.mtmkl").contains("quantile"));

    let without = |registry: Registry, name: &str| match Model::load_with(&registry, &path) {
        Err(Error::Unknown { name: missing, .. }) => assert_eq!(missing, name),
        other => panic!("{other:?}"),
    };
    without(Registry::default(), "quantile");
    without(Registry::default().with_machine(&machine::ENTRY), "mass");
    let known = Registry::default().with_machine(&machine::ENTRY);
    without(known.with_sharing(&sharing::ENTRY), "rational");
}

#[test]
fn the_conformance_suite_runs_them() {
    conformance::check(&registry(), |case| {
        case.machine.name() == "quantile" || case.sharing.name() == "mass"
    });
}

/// CONTRIBUTING.md shows these very files.
#[test]
fn the_recipes_are_these_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../../CONTRIBUTING.md")).unwrap();
    for part in ["kernel", "machine", "sharing"] {
        let file = root.join(format!("tests/own_parts/{part}.rs"));
        let text = std::fs::read_to_string(file).unwrap();
        assert!(
            page.contains(&text),
            "CONTRIBUTING.md does not show {part}.rs as it is"
        );
    }
}
