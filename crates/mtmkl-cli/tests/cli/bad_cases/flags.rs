//! Flags and configuration files that ask for what cannot be.

use super::{Case, command, file};

fn fits() -> Vec<Case> {
    let fit = |name, flags: &str, words: &[&'static str]| {
        command(name, &format!("fit two.csv --target label {flags}"), words)
    };
    vec![
        command("no table", "fit", &["which table?"]),
        command("no target", "fit two.csv", &["--target COLUMN is needed"]),
        command(
            "a target that is not there",
            "fit two.csv --target labl",
            &["no column `labl`", "did you mean `label`?"],
        ),
        command(
            "a task that is not there",
            "fit tasks.csv --target label --task sites",
            &["no column `sites`"],
        ),
        command(
            "a sharing of one task for two",
            "fit tasks.csv --target label --task site --sharing lp",
            &["--sharing"],
        ),
        fit("a flag that nobody knows", "--colour red", &["--colour"]),
        fit("a price of nothing", "--C 0", &["--C: found 0", "> 0"]),
        fit("a price below nothing", "--C=-1", &["--C: found -1"]),
        fit("a price that is no number", "--C=nan", &["--C"]),
        fit("a price without end", "--C=inf", &["--C"]),
        fit("a price that is a word", "--C=much", &["--C"]),
        fit("a norm below one", "--p 0.5", &["--p: found 0.5", "≥ 1"]),
        fit("a radius of nothing", "--radius 0", &["--radius: found 0"]),
        fit(
            "a share above one",
            "--machine ocsvm --nu 2",
            &["--nu: found 2"],
        ),
        fit("a gap of nothing", "--tol 0", &["--tol: found 0"]),
        fit("no passes", "--max-passes 0", &["--max-passes"]),
        fit(
            "a time below nothing",
            "--time-limit=-1",
            &["--time-limit is -1"],
        ),
        fit("no memory", "--memory-limit 0", &["--memory-limit is 0"]),
        fit(
            "memory that is no number",
            "--memory-limit nan",
            &["--memory-limit is NaN"],
        ),
        fit(
            "more threads than there are",
            "--threads 18446744073709551615",
            &["--threads"],
        ),
        fit(
            "a test of more than all",
            "--test-fraction 2",
            &["--test-fraction is 2"],
        ),
        fit(
            "a machine that nobody knows",
            "--machine svm",
            &["there is no machine `svm`", "did you mean `svc`?"],
        ),
        fit(
            "a sharing that nobody knows",
            "--sharing pcs",
            &["there is no sharing `pcs`"],
        ),
        fit(
            "a solver that nobody knows",
            "--solver newtn",
            &["there is no solver `newtn`"],
        ),
        fit(
            "a format that nobody knows",
            "--format xlsx",
            &["--format xlsx: expected csv"],
        ),
        fit(
            "a delimiter of two letters",
            "--delimiter ab",
            &["--delimiter ab: expected one character"],
        ),
        fit(
            "a kernel that nobody knows",
            "--kernel rbff",
            &["there is no kernel `rbff`"],
        ),
        fit(
            "a width of nothing",
            "--kernel rbf:sigma=0",
            &["`sigma` is 0"],
        ),
        fit(
            "a column that is not there",
            "--kernel rbf@c",
            &["there is no column `c`"],
        ),
        fit(
            "a degree without end",
            "--kernel poly:degree=inf",
            &["degree"],
        ),
        fit(
            "a degree below nothing",
            "--kernel poly:degree=-2",
            &["degree"],
        ),
        fit(
            "millions of kernels",
            &format!("--kernel rbf:sigma={}", vec!["1"; 20].join("|") + "|x"),
            &["`sigma`"],
        ),
        fit(
            "weights for other kernels",
            "--sharing fixed --weights 1,2,3",
            &["--weights: found 3 weights"],
        ),
        fit(
            "a sphere of no size",
            "--machine svdd --C 0.001",
            &["below"],
        ),
        fit(
            "a number for the class",
            "--machine krr",
            &["is text, such as `no`"],
        ),
        fit(
            "a chi-square of negative numbers",
            "--kernel chi2",
            &["a number ≥ 0"],
        ),
    ]
}

fn others() -> Vec<Case> {
    vec![
        command(
            "folds of nothing",
            "tune two.csv --target label --folds 0",
            &["--folds"],
        ),
        command(
            "one fold",
            "tune two.csv --target label --folds 1",
            &["folds"],
        ),
        command(
            "a grid of nothing",
            "tune two.csv --target label --grid C=",
            &["--grid"],
        ),
        command(
            "a grid of words",
            "tune two.csv --target label --grid C=1,two",
            &["two"],
        ),
        command(
            "a grid of what is no flag",
            "tune two.csv --target label --grid gamma=1",
            &["gamma"],
        ),
        command(
            "a metric that nobody knows",
            "tune two.csv --target label --metric acuracy",
            &["acuracy"],
        ),
        command(
            "an output in no folder",
            "fit two.csv --target label -o nowhere/m",
            &["nowhere"],
        ),
        command(
            "an output that is a folder",
            "fit two.csv --target label -o .",
            &["is a folder"],
        ),
        command(
            "a report in no folder",
            "fit two.csv --target label --report nowhere/r.html",
            &["nowhere"],
        ),
        command(
            "a cross matrix without a name",
            "predict two.model two.csv --cross two.csv",
            &["expected NAME=FILE"],
        ),
        command(
            "a cross matrix in no file",
            "predict two.model two.csv --cross k=",
            &["--cross k=: expected NAME=FILE"],
        ),
        command(
            "a cross matrix of an empty name",
            "predict two.model two.csv --cross =gram.npy",
            &["--cross =gram.npy: expected NAME=FILE"],
        ),
        command(
            "a cross matrix of no kernel",
            "predict two.model two.csv --cross k=gram.npy",
            &["no precomputed kernel of this name"],
        ),
        command(
            "a matrix that is missing",
            "predict given.model two.csv",
            &["has a precomputed kernel `gram`", "--cross"],
        ),
        command(
            "probabilities that were not learned",
            "predict two.model two.csv --probability",
            &["has no probabilities"],
        ),
        command(
            "rows of another table",
            "predict tasks.model three.csv",
            &["three.csv has no column `site`"],
        ),
        command(
            "rows without the task",
            "predict tasks.model two.csv",
            &["no column `site`"],
        ),
        command(
            "targets of other classes",
            "evaluate two.model three.csv --target kind",
            &["three.csv"],
        ),
        command(
            "a model that is a table",
            "predict two.csv two.csv",
            &["two.csv is not a readable mtmkl model"],
        ),
        command(
            "a table that is a model",
            "fit two.model --target label",
            &["two.model"],
        ),
    ]
}

fn settings() -> Vec<Case> {
    let config = |name, text: &str, words: &[&'static str]| {
        file(
            name,
            "x.toml",
            text,
            "fit two.csv --target label --config x.toml",
            words,
        )
    };
    vec![
        config("settings: not TOML", "C = [1\n", &["x.toml"]),
        config(
            "settings: a key that nobody knows",
            "colour = 1\n",
            &["colour"],
        ),
        config("settings: a key twice", "C = 1\nC = 2\n", &["x.toml"]),
        config("settings: a list for a number", "C = [1, 2]\n", &["C"]),
        config("settings: a section", "[fit]\nC = 1\n", &["fit"]),
        config("settings: out of range", "C = -1.0\n", &["C"]),
        config(
            "settings: nested without end",
            &format!("C = {}", "[".repeat(5000)),
            &["x.toml"],
        ),
        file(
            "settings: not UTF-8",
            "x.toml",
            b"C = \"\xff\"\n",
            "fit two.csv --target label --config x.toml",
            &["x.toml"],
        ),
        command(
            "settings: none there",
            "fit two.csv --target label --config none.toml",
            &["none.toml"],
        ),
        command(
            "settings: a folder",
            "fit two.csv --target label --config .",
            &["."],
        ),
    ]
}

pub(super) fn cases() -> Vec<Case> {
    [fits(), others(), settings()]
        .into_iter()
        .flatten()
        .collect()
}
