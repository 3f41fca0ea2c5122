//! Help, version, completions, manual page.

use crate::fixture::{Folder, Transcript};

#[test]
fn help_of_the_program_and_of_each_command() {
    let folder = Folder::new();
    let mut shown = Transcript::new(&folder);
    shown.run("--help").run("--version");
    insta::assert_snapshot!("program", shown.text());
    for command in [
        "demo",
        "fit",
        "tune",
        "predict",
        "evaluate",
        "inspect",
        "verify",
        "report",
        "completions",
        "man",
    ] {
        let mut shown = Transcript::new(&folder);
        shown.run(&format!("{command} --help"));
        insta::assert_snapshot!(command, shown.text());
    }
}

#[test]
fn the_papers_experiments_are_not_in_the_program() {
    let folder = Folder::new();
    let help = folder.run("--help").good();
    assert!(!help.contains("reproduce") && !help.contains("paper's experiments"));
    assert_eq!(folder.run("reproduce table1").code, 2);
}

#[test]
fn without_a_command_the_program_explains_itself() {
    let folder = Folder::new();
    let ran = folder.run("");
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("Usage: mtmkl <COMMAND>"),
        "{}",
        ran.stderr
    );
}

#[test]
fn help_names_every_choice() {
    let folder = Folder::new();
    let text = folder.run("fit --help").good();
    let words: Vec<&str> = text
        .split(|c: char| !c.is_alphanumeric() && c != '-')
        .collect();
    let registry = mtmkl::Registry::default();
    let kernels = registry.kernels().iter().map(|entry| entry.name);
    let machines = registry.machines().iter().map(|entry| entry.part.name);
    let sharings = registry.sharings().iter().map(|entry| entry.part.name);
    for name in kernels.chain(machines).chain(sharings) {
        assert!(words.contains(&name), "{name}");
    }
}

#[test]
fn completions_know_every_command() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let text = folder.run(&format!("completions {shell}")).good();
        for word in ["demo", "evaluate", "test-fraction", "print-config"] {
            assert!(text.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn the_manual_page_is_one() {
    let folder = Folder::new();
    let text = folder.run("man").good();
    assert!(text.contains(".TH mtmkl 1"), "{text}");
    for word in ["demo", "fit", "predict", "evaluate", "inspect", "report"] {
        assert!(text.contains(word), "{word}");
        // The page of each command that the program's page refers to.
        let own = folder.run(&format!("man {word}")).good();
        assert!(own.contains(&format!(".TH mtmkl-{word} 1")), "{own}");
    }
    assert!(folder.run("man fit").good().contains("sharing"));
}
