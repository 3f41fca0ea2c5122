//! Limits and Ctrl-C: the best model so far, its gap, exit 1.

use crate::fixture::{Folder, noise, two_tasks};
#[cfg(unix)]
use crate::fixture::{ended, fitting, send};

#[test]
fn limits_keep_the_best_model() {
    let folder = Folder::new();
    folder.file("tasks.csv", two_tasks(60));
    for (limit, status) in [
        ("--time-limit 0", "time-limit"),
        ("--max-passes 1", "pass-limit"),
    ] {
        let ran = folder.run(&format!(
            "fit tasks.csv --target label --task site {limit} --tol 1e-10 -o {status}.model --json"
        ));
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        let fitted = ran.json();
        assert_eq!(fitted["status"], status);
        assert!(fitted["gap"].as_f64().unwrap() > 1e-10);
        let inspected = folder.run(&format!("inspect {status}.model --json")).json();
        assert_eq!(inspected["gap"], fitted["gap"]);
        folder
            .run(&format!("predict {status}.model tasks.csv"))
            .good();
        let shown = folder.run(&format!("inspect {status}.model")).good();
        let words = format!("Not converged ({}): within ", status.replace('-', " "));
        assert!(shown.contains(&words), "{shown}");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_the_best_model() {
    use std::io::Read;

    let folder = Folder::new();
    folder.file("noise.csv", noise(400));
    let (mut child, lines) = fitting(&mut folder.command(), "--report page.html");
    send("-INT", &child);
    // The rest of the trace has to be read, or the program waits for it.
    let trace = std::thread::spawn(move || lines.map_while(Result::ok).count());
    let mut text = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(ended(child).code(), Some(1));
    trace.join().unwrap();
    assert!(text.contains("Not converged (stopped): within "), "{text}");
    assert!(text.contains("Model saved to m"), "{text}");
    let kept = folder.run("inspect m --json").json();
    assert_eq!(kept["status"], "stopped");
    assert!(kept["gap"].as_f64().unwrap() > 1e-12);
    folder.run("predict m noise.csv").good();
    assert!(folder.path("page.html").is_file());
}

/// While there is nothing to keep, Ctrl-C ends the program as it ends any other.
#[cfg(unix)]
#[test]
fn ctrl_c_while_reading_ends_at_once() {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;

    let folder = Folder::new();
    let child = folder
        .command()
        .args(["fit", "-", "--target", "label"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Long enough to be reading; were it shorter, the signal would end it all the same.
    std::thread::sleep(std::time::Duration::from_millis(300));
    send("-INT", &child);
    assert_eq!(ended(child).signal(), Some(2));
}

/// Whoever has no time for the fit has none for the scores of many rows either.
#[test]
fn scores_of_a_fit_that_was_cut_short_are_of_few_rows() {
    let folder = Folder::new();
    let mut table = "x,y,inside\n".to_string();
    for row in 0..4000_u32 {
        let (x, y) = (f64::from(row % 61), f64::from(row % 67));
        table += &format!("{x},{y},1\n");
    }
    folder.file("many.csv", &table);
    // The machine that it begins with has nine tenths of the rows.
    let fit =
        "fit many.csv --target inside --machine ocsvm --nu 0.9 --kernel rbf:sigma=median --json";
    let cut = folder.run(&format!("{fit} --time-limit 0")).json();
    let split = cut["scores"]["split"].as_str().unwrap();
    assert!(split.contains(" rows of the 4000 rows"), "{split}");
}
