//! Files are written whole, never over something that is no file, and read no further than they say they go.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use mtmkl::Model;
use mtmkl::model::{check_writable, write_whole};

/// The names in a folder, hidden ones too.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn named_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_link_stays_and_its_target_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("far")).unwrap();
    fs::write(at("far/real"), "old").unwrap();
    symlink("far/real", at("link")).unwrap();
    symlink("link", at("twice")).unwrap();
    write_whole(&at("twice"), b"new").unwrap();
    assert_eq!(fs::read(at("far/real")).unwrap(), b"new");
    // A link to what is not there yet.
    symlink("far/later", at("open")).unwrap();
    check_writable(&at("open")).unwrap();
    write_whole(&at("open"), b"made").unwrap();
    assert_eq!(fs::read(at("far/later")).unwrap(), b"made");
    for name in ["link", "twice", "open"] {
        assert!(at(name).is_symlink(), "{name}");
    }
    // And one that leads nowhere.
    symlink("round", at("round")).unwrap();
    assert!(check_writable(&at("round")).is_err());
    assert!(write_whole(&at("round"), b"x").is_err());
    assert_eq!(
        names(folder.path()),
        ["far", "link", "open", "round", "twice"]
    );
    assert_eq!(names(&at("far")), ["later", "real"]);
}

#[test]
fn permissions_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m");
    for mode in [0o600, 0o640, 0o664, 0o755] {
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        write_whole(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        let found = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(found, mode, "{found:o}");
    }
}

#[test]
fn a_pipe_is_written_to_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    named_pipe(&path);
    check_writable(&path).unwrap();
    let reader = {
        let path = path.clone();
        std::thread::spawn(move || {
            let mut text = String::new();
            fs::File::open(path)
                .unwrap()
                .read_to_string(&mut text)
                .unwrap();
            text
        })
    };
    // Were the pipe replaced, nobody would ever write to it: the reader is let go before it is waited for.
    write_whole(&path, b"through the pipe").unwrap();
    let is_pipe = fs::metadata(&path).unwrap().file_type().is_fifo();
    if !is_pipe {
        drop(fs::remove_file(&path));
    }
    assert!(is_pipe, "the pipe was replaced by a file");
    assert_eq!(reader.join().unwrap(), "through the pipe");
    assert_eq!(names(folder.path()), ["pipe"]);
}

#[test]
fn a_device_is_written_to_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    // By a link, so that a mistake would not cost the machine its device.
    let path = folder.path().join("full");
    symlink("/dev/full", &path).unwrap();
    let error = write_whole(&path, b"x").unwrap_err().to_string();
    assert!(error.contains("No space left on device"), "{error}");
    assert!(path.is_symlink());
    assert!(
        fs::metadata("/dev/full")
            .unwrap()
            .file_type()
            .is_char_device()
    );
}

#[test]
fn names_as_long_as_names_can_be() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "x".repeat(255),
        "京".repeat(85),
        "é".repeat(127),
        "y".repeat(201),
    ] {
        let path = folder.path().join(&name);
        check_writable(&path).unwrap();
        write_whole(&path, name.as_bytes()).unwrap();
        assert_eq!(fs::read(&path).unwrap(), name.as_bytes());
    }
    assert_eq!(names(folder.path()).len(), 4);
    // Longer than the system allows is an error, not a shorter name.
    let path = folder.path().join("x".repeat(256));
    assert!(check_writable(&path).is_err());
    assert!(write_whole(&path, b"").is_err());
}

#[test]
fn what_cannot_be_written_is_known_before() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "").unwrap();
    for path in [
        folder.path().to_path_buf(),
        at("nowhere/m"),
        at("file/m"),
        "/proc/m.mtmkl".into(),
        "/proc/version".into(),
        "".into(),
    ] {
        let known = check_writable(&path);
        // The files of /proc that are there are only known when they are written to.
        assert_eq!(
            known.is_err(),
            path != Path::new("/proc/version"),
            "{path:?}"
        );
        assert!(write_whole(&path, b"x").is_err(), "{path:?}");
    }
    check_writable(&at("new")).unwrap();
    check_writable(&at("file")).unwrap();
    assert_eq!(
        names(folder.path()),
        ["file"],
        "a check leaves nothing behind"
    );
}

#[test]
fn litter_of_the_dead_is_removed_and_of_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let dead = child.id();
    let mut alive = Command::new("sleep").arg("60").spawn().unwrap();
    let stay = [
        format!(".m.{}.0.tmp", alive.id()),
        format!(".m.{}.77.tmp", std::process::id()),
        // Of other targets, or of other programs.
        format!(".other.{dead}.0.tmp"),
        format!(".m.x.{dead}.0.tmp"),
        format!(".m.{dead}.tmp"),
        format!(".m.{dead}.0.tmp~"),
        format!(".m.{dead}.a.tmp"),
        format!("m.{dead}.0.tmp"),
        ".m.tmp".to_string(),
        // Of a process that is alive where its number cannot be seen: it holds a lock.
        format!(".m.{dead}.9.tmp"),
    ];
    for name in &stay {
        fs::write(at(name), "x").unwrap();
    }
    let held = fs::File::options().write(true).open(at(&stay[9])).unwrap();
    held.lock().unwrap();
    fs::create_dir(at(&format!(".m.{dead}.5.tmp"))).unwrap();
    for number in [0, 1] {
        fs::write(at(&format!(".m.{dead}.{number}.tmp")), "half a mod").unwrap();
    }
    write_whole(&at("m"), b"whole").unwrap();
    let left = names(folder.path());
    alive.kill().unwrap();
    alive.wait().unwrap();
    let mut expected: Vec<String> = stay.to_vec();
    expected.extend([format!(".m.{dead}.5.tmp"), "m".to_string()]);
    expected.sort();
    assert_eq!(left, expected);
}

#[test]
fn reading_ends_where_the_file_says_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    named_pipe(&at("pipe"));
    // A file of a terabyte that takes no room, without and with a header that could be one.
    fs::File::create(at("huge"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let header = br#"{"__metadata__":{"mtmkl":"{}"}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    fs::write(at("vast"), &bytes).unwrap();
    fs::File::options()
        .write(true)
        .open(at("vast"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    // One whose header asks for all of it.
    fs::write(at("greedy"), (u64::MAX / 2).to_le_bytes()).unwrap();
    fs::File::options()
        .write(true)
        .open(at("greedy"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let started = Instant::now();
    for path in [
        "/dev/zero".into(),
        "/dev/urandom".into(),
        at("pipe"),
        at("huge"),
        at("vast"),
        at("greedy"),
    ] {
        assert!(Model::load(&path).is_err(), "{path:?}");
    }
    assert!(started.elapsed() < Duration::from_secs(10));
}
