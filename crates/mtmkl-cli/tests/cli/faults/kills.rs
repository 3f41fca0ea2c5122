//! `kill -9` at any moment: of models, reports, predictions and journals nothing is lost.
//!
//! Half of the kills come at a moment drawn from the time that a whole run takes, half as soon as the file is being written.

use std::collections::BTreeMap;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use mtmkl::Model;
use mtmkl::random::Random;
use serde_json::Value;

use super::{files, litter, rounds};
use crate::fixture::{Folder, three_classes, two_tasks};

/// What was found after kills.
#[derive(Debug, Default)]
struct Tally {
    killed: usize,
    /// Kills while the file was being written.
    writing: usize,
    old: usize,
    new: usize,
}

fn started(folder: &Folder, arguments: &str) -> Child {
    folder
        .command()
        .args(arguments.split_whitespace())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What a whole run takes.
fn time_of(folder: &Folder, arguments: &str) -> Duration {
    let begun = Instant::now();
    let ran = folder.run(arguments);
    assert!(ran.code < 2, "{}", ran.stderr);
    begun.elapsed()
}

/// Kills a run of `whole` at a moment of its time or, where it is to be `aimed`, shortly after its file is begun; whether it was still
/// running, and whether it was writing.
fn killed(
    folder: &Folder,
    arguments: &str,
    whole: Duration,
    aimed: bool,
    random: &mut Random,
) -> (bool, bool) {
    let mut child = started(folder, arguments);
    let begun = Instant::now();
    if aimed {
        while child.try_wait().unwrap().is_none() && litter(folder.root()).is_empty() {
            std::thread::yield_now();
        }
        // Its first file is only a try, which is over soon.
        std::thread::sleep(whole.mul_f64(0.5 * random.uniform().powi(4)));
    } else {
        let moment = whole.mul_f64(1.1 * random.uniform());
        std::thread::sleep(moment.saturating_sub(begun.elapsed()));
    }
    let is_running = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    (is_running, is_running && !litter(folder.root()).is_empty())
}

/// Kills `again`, which writes `file` over what `first` wrote, so many times: the file is that of the one or of the other, as
/// `same` compares them. A run that ends well leaves nothing else.
fn replaced(
    file: &str,
    first: &str,
    again: &str,
    kills: usize,
    same: impl Fn(&[u8], &[u8]) -> bool,
) -> Tally {
    let folder = files();
    let path = folder.path(file);
    let mut random = Random::new(kills as u64);
    let whole = time_of(&folder, again);
    let new = std::fs::read(&path).unwrap();
    folder.run(first);
    let old = std::fs::read(&path).unwrap();
    assert!(!same(&old, &new), "the two cannot be told apart");
    let mut tally = Tally::default();
    while tally.killed < kills {
        std::fs::write(&path, &old).unwrap();
        let aimed = tally.killed % 2 == 1;
        let (is_killed, is_writing) = killed(&folder, again, whole, aimed, &mut random);
        tally.killed += usize::from(is_killed);
        tally.writing += usize::from(is_writing);
        let found = std::fs::read(&path).unwrap();
        if found == old {
            tally.old += usize::from(is_killed);
        } else {
            assert!(
                same(&found, &new),
                "{file} is neither the old nor the new one"
            );
            tally.new += usize::from(is_killed);
        }
    }
    // What the killed left is removed by the next that writes there.
    assert!(folder.run(again).code < 2);
    assert_eq!(litter(folder.root()), Vec::<String>::new());
    assert!(same(&std::fs::read(&path).unwrap(), &new));
    println!("{file}: {tally:?}");
    assert_eq!(tally.killed, kills);
    assert_eq!(tally.old + tally.new, kills);
    tally
}

/// The same model but for what it took.
fn same_model(one: &[u8], other: &[u8]) -> bool {
    let read = |bytes: &[u8]| Model::from_bytes(bytes).map(|model| model.outcome().objective);
    match (read(one), read(other)) {
        (Ok(one), Ok(other)) => one.to_bits() == other.to_bits(),
        _ => false,
    }
}

#[test]
fn a_killed_fit_leaves_the_old_model_or_the_new_one() {
    let fit = "fit two.csv --target label --kernel linear --kernel rbf --C";
    let (first, again) = (format!("{fit} 1 -o m"), format!("{fit} 3 -o m"));
    replaced("m", &first, &again, rounds(10), same_model);
}

#[test]
fn a_killed_report_leaves_the_old_page_or_the_new_one() {
    let again = "report tasks.model -o page.html";
    let first = "report two.model -o page.html";
    replaced("page.html", first, again, rounds(10), |a, b| a == b);
}

#[test]
fn killed_predictions_leave_the_old_file_or_the_new_one() {
    let again = "predict two.model many.csv --decision -o out.csv";
    let first = "predict two.model two.csv -o out.csv";
    replaced("out.csv", first, again, rounds(10), |a, b| a == b);
}

/// A search whose runs are killed: its flags, and the file that its journal is in.
struct Killed {
    flags: String,
    journal: &'static str,
}

/// What a search found, without what it took.
fn found(folder: &Folder, json: &Value) -> (Value, Value, Value, String) {
    let mut cells = json["tune"]["cells"].clone();
    for cell in cells.as_array_mut().unwrap() {
        cell.as_object_mut().unwrap().remove("seconds");
    }
    let decisions = folder.run("predict m t.csv --decision").good();
    let (best, tasks) = (json["tune"]["best"].clone(), json["tasks"].clone());
    (cells, best, tasks, decisions)
}

/// The whole lines of every journal.
fn lines(folder: &Folder, journal: &str) -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder.root()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let variant = name.strip_prefix(&format!("{journal}.variant"));
        let is_journal =
            name == journal || variant.is_some_and(|number| number.parse::<u8>().is_ok());
        if is_journal {
            let text = std::fs::read_to_string(folder.path(&name)).unwrap();
            let whole = text
                .split_inclusive('\n')
                .filter(|line| line.ends_with('\n'))
                .map(str::to_string);
            all.insert(name, whole.collect());
        }
    }
    all
}

impl Killed {
    /// Kills runs that go on with each other until one ends by itself, at most so many, and compares what it found; how many were killed.
    fn session(&self, folder: &Folder, whole: Duration, most: usize, random: &mut Random) -> usize {
        let run = format!("{} --resume", self.flags);
        let mut kills = 0;
        let mut before = BTreeMap::new();
        while kills < most {
            let aimed = kills % 2 == 1;
            let (is_running, _) = killed(folder, &run, whole, aimed, random);
            if !is_running {
                break;
            }
            kills += 1;
            let now = lines(folder, self.journal);
            // What is finished is finished; only with the model a journal of the usual name goes.
            for (name, old) in &before {
                let old: &Vec<String> = old;
                match now.get(name) {
                    Some(lines) => assert!(lines.starts_with(old), "{name} lost lines"),
                    None => assert!(Model::load(folder.path("m")).is_ok(), "{name} is gone"),
                }
            }
            before = now;
        }
        kills
    }

    fn check(&self, kills: usize) -> usize {
        let folder = Folder::new();
        folder
            .file("t.csv", two_tasks(80))
            .file("three.csv", three_classes(90));
        let whole = time_of(&folder, &self.flags);
        std::fs::remove_file(folder.path("m")).unwrap();
        let _ = std::fs::remove_file(folder.path(self.journal));
        let expected = {
            let json = folder.run(&format!("{} --json", self.flags)).json();
            found(&folder, &json)
        };
        let mut random = Random::new(kills as u64);
        let (mut killed, mut sessions) = (0, 0);
        while killed < kills {
            for name in lines(&folder, self.journal).keys() {
                std::fs::remove_file(folder.path(name)).unwrap();
            }
            let _ = std::fs::remove_file(folder.path("m"));
            killed += self.session(&folder, whole, kills - killed, &mut random);
            let json = folder
                .run(&format!("{} --resume --json", self.flags))
                .json();
            assert_eq!(found(&folder, &json), expected, "{}", self.flags);
            sessions += 1;
        }
        println!("{}: {killed} kills, {sessions} exact results", self.flags);
        killed
    }
}

#[test]
fn killed_searches_go_on_exactly() {
    let grid =
        "tune t.csv --target label --task site --grid C=1/9,1,9 --grid q=1,1.5 --folds 2 -o m";
    let usual = "tune t.csv --target label --task site --kernel linear --kernel rbf --folds 2 -o m";
    let kinds = [
        Killed {
            flags: format!("{grid} --journal j"),
            journal: "j",
        },
        Killed {
            flags: grid.to_string(),
            journal: "mtmkl-tune.journal",
        },
        Killed {
            flags: usual.to_string(),
            journal: "mtmkl-tune.journal",
        },
    ];
    let all = rounds(10);
    let mut killed = 0;
    for (number, kind) in kinds.iter().enumerate() {
        killed += kind.check((all - killed) / (kinds.len() - number));
    }
    assert_eq!(killed, all);
}
