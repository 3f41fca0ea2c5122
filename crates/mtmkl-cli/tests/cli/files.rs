//! Where results go: what cannot be written is known before the work, and no work is lost where it still fails.
#![cfg(target_os = "linux")]

use std::os::unix::fs::{FileTypeExt, symlink};
use std::process::{Command, Stdio};

use crate::PROGRAM;
use crate::fixture::{Folder, Ran, finished, two_classes, two_tasks};
use crate::precomputed::npy;

/// A table, a model of it, and links to a device without room.
fn files() -> Folder {
    let folder = Folder::new();
    folder.file("two.csv", two_classes(24));
    folder
        .run("fit two.csv --target label --kernel linear --kernel rbf -o two.model")
        .good();
    for name in ["full.model", "full.html", "full.svg"] {
        symlink("/dev/full", folder.path(name)).unwrap();
    }
    std::fs::create_dir(folder.path("spare")).unwrap();
    folder
}

/// Runs the program with this folder for temporary files.
fn with_spare(folder: &Folder, spare: &str, arguments: &str) -> Ran {
    finished(
        folder
            .command()
            .env("TMPDIR", folder.path(spare))
            .args(arguments.split_whitespace()),
    )
}

#[test]
fn limits_beyond_reason_are_errors_or_none() {
    let folder = files();
    let fit = "fit two.csv --target label --kernel linear";
    for limit in ["1e20", "1e300", "1.7976931348623157e308"] {
        folder.run(&format!("{fit} --time-limit {limit}")).good();
    }
    for limit in ["-1", "nan", "inf", "-inf"] {
        let message = folder.run(&format!("{fit} --time-limit={limit}")).bad();
        assert!(message.contains("--time-limit"), "{message}");
    }
    for threads in ["1025", "100000", "18446744073709551615"] {
        let message = folder.run(&format!("{fit} --threads {threads}")).bad();
        assert_eq!(
            message,
            format!(
                "mtmkl: --threads: found {threads}, expected at most 1024, or 0 for one per core\n"
            )
        );
        let message = folder
            .run(&format!(
                "tune two.csv --target label --kernel linear --folds 2 --threads {threads}"
            ))
            .bad();
        assert!(message.contains("--threads: found"), "{message}");
    }
    for threads in ["-1", "1.5", "18446744073709551616", "many"] {
        let message = folder.run(&format!("{fit} --threads={threads}")).bad();
        assert!(message.contains("--threads"), "{message}");
    }
    for threads in ["0", "1", "64"] {
        folder.run(&format!("{fit} --threads {threads}")).good();
    }
    // Not from the environment either.
    let ran = finished(
        folder
            .command()
            .env("RAYON_NUM_THREADS", "100000")
            .args(fit.split_whitespace()),
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn every_output_is_tried_before_the_work() {
    let folder = files();
    std::fs::create_dir(folder.path("taken")).unwrap();
    let fit = "fit two.csv --target label --kernel linear -v";
    let tune = "tune two.csv --target label --kernel linear --folds 2 -v";
    for place in [
        "/proc/out",
        "/proc/1/out",
        "nowhere/out",
        "two.csv/out",
        "taken",
    ] {
        for command in [
            format!("{fit} -o {place}"),
            format!("{fit} --report {place}"),
            format!("{tune} -o {place}"),
            format!("{tune} --report {place}"),
            format!("{tune} --picture {place}"),
            format!("{tune} --journal {place}"),
            format!("predict two.model two.csv -o {place}"),
            format!("report two.model -o {place}"),
        ] {
            let message = folder.run(&command).bad();
            assert!(message.contains(place), "{command}: {message}");
            assert!(!message.contains("pass "), "{command}: {message}");
            assert_eq!(message.lines().count(), 1, "{command}: {message}");
        }
    }
    folder.run("demo --output /proc/out").bad();
    // And nothing of the trying is left.
    let left: Vec<_> = std::fs::read_dir(folder.root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with('.') || name.contains("journal"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_fit_that_cannot_be_saved_is_still_told_and_kept() {
    let folder = files();
    let fit = "fit two.csv --target label --kernel linear";
    let ran = with_spare(&folder, "spare", &format!("{fit} -o full.model"));
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stdout.contains("Certified: within"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("saved"), "{}", ran.stdout);
    assert!(
        ran.stderr.starts_with(
            "mtmkl: full.model: No space left on device (os error 28); the model is not saved there but kept in "
        ),
        "{}",
        ran.stderr
    );
    let kept: Vec<_> = std::fs::read_dir(folder.path("spare"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(kept.len(), 1);
    let kept = kept[0].to_str().unwrap();
    assert!(ran.stderr.contains(kept), "{}", ran.stderr);
    let kept = folder.run_all(&["inspect", kept, "--json"]).json();
    let json = with_spare(&folder, "spare", &format!("{fit} -o full.model --json"));
    assert_eq!(json.code, 2);
    assert_eq!(json.json()["objective"], kept["objective"]);
    // Nowhere else to keep it: that is said too.
    let ran = with_spare(&folder, "nowhere", &format!("{fit} -o full.model"));
    assert_eq!(ran.code, 2);
    assert!(ran.stdout.contains("Certified: within"), "{}", ran.stdout);
    assert!(
        ran.stderr
            .contains("the model is not saved, nor could it be kept"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("-o"), "{}", ran.stderr);
    // The report fails, the model does not.
    let ran = with_spare(
        &folder,
        "spare",
        &format!("{fit} -o other.model --report full.html"),
    );
    assert_eq!(ran.code, 2);
    assert!(ran.stdout.contains("Certified: within"), "{}", ran.stdout);
    assert!(
        ran.stderr.starts_with("mtmkl: full.html: "),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("mtmkl report"), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("Model saved to other.model"),
        "{}",
        ran.stdout
    );
    folder.run("inspect other.model").good();
    let tune = "tune two.csv --target label --kernel linear --folds 2 --grid C=1,2";
    let ran = with_spare(
        &folder,
        "spare",
        &format!("{tune} -o full.model --picture full.svg"),
    );
    assert_eq!(ran.code, 2);
    assert!(ran.stdout.contains("2 cells"), "{}", ran.stdout);
    assert!(ran.stderr.contains("kept in"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("the picture is not written"),
        "{}",
        ran.stderr
    );
    for name in ["full.model", "full.html", "full.svg"] {
        assert!(folder.path(name).is_symlink(), "{name}");
    }
    assert!(
        std::fs::metadata("/dev/full")
            .unwrap()
            .file_type()
            .is_char_device()
    );
}

#[test]
fn outputs_may_be_pipes_and_links() {
    let folder = files();
    let expected = folder.run("predict two.model two.csv").good();
    // What a shell hands over for a further program.
    let ran = finished(Command::new("bash").current_dir(folder.root()).args([
        "-c",
        &format!("{PROGRAM} predict two.model two.csv -o >(cat > piped.csv; touch done); while ! [ -e done ]; do sleep 0.02; done"),
    ]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        std::fs::read_to_string(folder.path("piped.csv")).unwrap(),
        expected
    );
    let ran = folder.run("predict two.model two.csv -o /dev/stdout");
    assert_eq!(ran.good(), expected);
    folder.file("real.csv", "old");
    symlink("real.csv", folder.path("link.csv")).unwrap();
    folder.run("predict two.model two.csv -o link.csv").good();
    assert!(folder.path("link.csv").is_symlink());
    assert_eq!(
        std::fs::read_to_string(folder.path("real.csv")).unwrap(),
        expected
    );
}

#[test]
fn a_model_that_never_ends_is_refused_at_once() {
    let folder = files();
    assert!(
        Command::new("mkfifo")
            .arg(folder.path("pipe"))
            .status()
            .unwrap()
            .success()
    );
    std::fs::File::create(folder.path("huge"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    for model in ["/dev/zero", "/dev/urandom", "pipe", "huge"] {
        for command in [
            format!("inspect {model}"),
            format!("inspect {model} --json"),
            format!("predict {model} two.csv"),
            format!("evaluate {model} two.csv"),
            format!("report {model}"),
        ] {
            let mut child = folder
                .command()
                .args(command.split_whitespace())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let started = std::time::Instant::now();
            while child.try_wait().unwrap().is_none() {
                if started.elapsed().as_secs() > 20 {
                    child.kill().unwrap();
                    panic!("{command} does not end");
                }
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            let output = child.wait_with_output().unwrap();
            let message = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{command}: {message}");
            assert!(
                message.starts_with(&format!("mtmkl: {model} ")),
                "{command}: {message}"
            );
        }
    }
    // A model through a pipe that has somebody at the other end is as good as one in a file.
    let ran = finished(
        Command::new("bash")
            .current_dir(folder.root())
            .args(["-c", &format!("{PROGRAM} inspect <(cat two.model)")]),
    );
    assert_eq!(ran.good(), folder.run("inspect two.model").good());
}

/// Few bytes changed in a file of every kind of column: it is read or refused by name, and never a fault of ours.
#[test]
fn a_damaged_parquet_file_is_the_files_fault() {
    let folder = Folder::new();
    let whole = include_bytes!("../../src/input/tests/fixtures/none.parquet");
    let mut random = mtmkl::random::Random::new(7);
    let mut refused = 0;
    let mut contradictions = 0;
    let mut damaged: Vec<Vec<u8>> = vec![Vec::new(), b"PAR1".to_vec(), b"PAR1PAR1PAR1".to_vec()];
    for part in 1..8 {
        damaged.push(whole[..whole.len() * part / 8].to_vec());
    }
    let mut footer = whole.to_vec();
    let end = footer.len() - 8;
    footer[end - 400..end].fill(0xa5);
    damaged.push(footer);
    // What the library cannot stand is mostly in the footer.
    for round in 0..300 {
        let mut bytes = whole.to_vec();
        let from = if round % 3 == 0 { 0 } else { bytes.len() / 2 };
        for _ in 0..=round % 4 {
            let at = from + random.below(bytes.len() - from);
            bytes[at] ^= 1 << random.below(8);
        }
        damaged.push(bytes);
    }
    for bytes in damaged {
        folder.file("x.parquet", &bytes);
        let ran = folder.run("fit x.parquet --target nothing-of-this-name");
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(!ran.stderr.contains("internal error"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        assert!(ran.stderr.contains("x.parquet"), "{}", ran.stderr);
        refused += usize::from(ran.stderr.contains("not a readable Parquet file"));
        contradictions += usize::from(ran.stderr.contains("it is damaged"));
    }
    assert!(refused > 30, "{refused}");
    assert!(contradictions > 0, "or the guard was not needed");
}

#[test]
fn rounding_and_fallback_are_told_everywhere() {
    let folder = files();
    folder.file("tasks.csv", two_tasks(40));
    // Of a matrix that is given nothing more precise can be made.
    let gram: Vec<f64> = (0..24 * 24)
        .map(|k| (-0.1 * f64::from(k / 24 - k % 24).powi(2)).exp())
        .collect();
    folder.file("gram.npy", npy(&gram, 24));
    let rounded = "for the kernels as rounded to single precision";
    let other = "Solved by epf in place of newton: a kernel is not positive semi-definite.";
    for (flags, words, page) in [
        (
            "--precision single --kernel precomputed:path=gram.npy",
            rounded,
            rounded,
        ),
        (
            "--kernel sigmoid:gamma=1,coef0=-1 --allow-indefinite",
            other,
            "epf in place of newton: a kernel is not positive semi-definite",
        ),
    ] {
        let text = folder
            .run(&format!(
                "fit two.csv --target label {flags} -o m.model --report m.html"
            ))
            .good();
        assert!(text.contains(words), "{text}");
        let text = folder.run("inspect m.model").good();
        assert!(text.contains(words), "{text}");
        let html = std::fs::read_to_string(folder.path("m.html")).unwrap();
        assert!(html.contains(page), "{flags}");
        let object = folder.run("inspect m.model --json").json();
        assert_eq!(object["rounded"], flags.contains("single"));
        assert_eq!(
            object["fallback"] == "indefinite",
            flags.contains("indefinite")
        );
        assert_eq!(object["solver"]["name"], "newton");
    }
    let text = folder
        .run("fit two.csv --target label -o m.model --report m.html")
        .good();
    let html = std::fs::read_to_string(folder.path("m.html")).unwrap();
    for text in [text, folder.run("inspect m.model").good(), html] {
        assert!(!text.contains("rounded to single"), "{text}");
        assert!(!text.contains("in place of"), "{text}");
    }
}

#[test]
fn the_demo_names_its_tolerance() {
    let folder = Folder::new();
    folder.run("demo").good();
    let html = std::fs::read_to_string(folder.path("mtmkl-demo/report.html")).unwrap();
    assert!(html.contains("<th scope=\"row\">tol</th><td>1e-10</td>"));
    assert!(!html.contains("1e-6"));
    assert!(html.contains("The gap asked for was"));
    assert_eq!(folder.run("demo --json").json()["tolerance"], 1e-10);
}
