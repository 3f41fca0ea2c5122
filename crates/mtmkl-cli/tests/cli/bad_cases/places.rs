//! Places that are no files, or not of the kind that they seem.

use std::os::unix::fs::symlink;
use std::process::Command;

use super::{Case, command};
use crate::fixture::Folder;

/// Links that lead nowhere, files that take no room, a pipe.
pub(super) fn make(folder: &Folder) {
    symlink("round", folder.path("round")).unwrap();
    symlink("gone.csv", folder.path("dangling.csv")).unwrap();
    std::fs::create_dir(folder.path("folder.csv")).unwrap();
    let pipe = Command::new("mkfifo").arg(folder.path("pipe")).status();
    assert!(pipe.unwrap().success());
    for name in ["vast.csv", "vast.npy", "vast.model"] {
        let file = std::fs::File::create(folder.path(name)).unwrap();
        file.set_len(1 << 40).unwrap();
    }
}

pub(super) fn cases() -> Vec<Case> {
    let fit = |name, place: &str, words: &[&'static str]| {
        command(name, &format!("fit {place} --target label"), words)
    };
    let text = "neither text nor a format";
    vec![
        fit(
            "a table that is not there",
            "nowhere.csv",
            &["nowhere.csv: no such file"],
        ),
        fit(
            "a table of a similar name",
            "two.cvs",
            &["did you mean `two.csv`?"],
        ),
        fit("a folder", "folder.csv", &["folder.csv is a folder"]),
        fit("this folder", ".", &[". is a folder"]),
        fit("a link to itself", "round", &["round"]),
        fit("a link to nothing", "dangling.csv", &["dangling.csv"]),
        fit(
            "a file that is no folder",
            "two.csv/x.csv",
            &["two.csv/x.csv"],
        ),
        fit("zeros without end", "/dev/zero", &["/dev/zero", text]),
        fit(
            "chance without end",
            "/dev/urandom",
            &["/dev/urandom", text],
        ),
        fit("nothing", "/dev/null", &["/dev/null is empty"]),
        fit("an empty standard input", "-", &["standard input is empty"]),
        fit("a terabyte of zeros", "vast.csv", &["vast.csv", text]),
        fit(
            "memory of the system",
            "/proc/self/mem",
            &["/proc/self/mem"],
        ),
        fit(
            "zeros without end, said to be CSV",
            "/dev/zero --format csv",
            &[text],
        ),
        fit(
            "zeros without end, said to be LIBSVM",
            "/dev/zero --format libsvm",
            &[text],
        ),
        fit(
            "zeros without end, said to be NPY",
            "/dev/zero --format npy --memory-limit 0.05",
            &["/dev/zero"],
        ),
        fit(
            "zeros without end, said to be Parquet",
            "/dev/zero --format parquet --memory-limit 0.05",
            &["/dev/zero"],
        ),
        fit(
            "a matrix of zeros without end",
            "two.csv --kernel precomputed:path=/dev/zero",
            &["/dev/zero"],
        ),
        fit(
            "a matrix of a terabyte",
            "two.csv --kernel precomputed:path=vast.npy",
            &["vast.npy"],
        ),
        fit(
            "a test table of zeros without end",
            "two.csv --test /dev/zero",
            &[text],
        ),
        command(
            "rows of zeros without end",
            "predict two.model /dev/zero",
            &["/dev/zero", text],
        ),
        command(
            "rows of chance without end",
            "evaluate two.model /dev/urandom",
            &["/dev/urandom", text],
        ),
        command(
            "rows that are a folder",
            "predict two.model folder.csv",
            &["is a folder"],
        ),
        command(
            "a model that is a folder",
            "inspect folder.csv",
            &["is a folder"],
        ),
        command(
            "a model that is not there",
            "inspect nowhere",
            &["nowhere: no such file"],
        ),
        command(
            "a model of zeros without end",
            "inspect /dev/zero",
            &["/dev/zero is not a readable mtmkl model"],
        ),
        command(
            "a model of a terabyte",
            "inspect vast.model",
            &["vast.model is not a readable mtmkl model"],
        ),
        command(
            "a model that is a pipe",
            "inspect pipe",
            &["it is a named pipe"],
        ),
        command(
            "settings of zeros without end",
            "fit two.csv --target label --config /dev/zero",
            &["/dev/zero"],
        ),
    ]
}
