"""Two doors to one contract: the program and Python make the same model of the same table, and the same predictions of either model."""

from __future__ import annotations

import csv
import io
import json
import struct
import warnings

import numpy as np
import pandas as pd
import raw
from sklearn.exceptions import ConvergenceWarning
from test_files import run

import mtmkl
from mtmkl import MKLClassifier, MKLOneClassSVM, MKLRegressor

KERNELS = ["--kernel", "linear", "--kernel", "rbf:sigma=1|4"]
LIMITS = ["--tol", "1e-2", "--max-passes", "50", "--threads", "1", "--quiet"]

NAMES = [
    *["007", "7", "7.0", "1", "1.0", "01", "+1", "-0", "0", "1e3", "1000", "0x10", "12345678901234567890", "12345678901234567891", "inf"],
    *[
        "True",
        "TRUE",
        "yes",
        "no",
        "None",
        "nano",
        "Ωmega",
        "ümlaut",
        "😀",
        "👩‍🔬",
        "名前",
        "a,b",
        'say "hi"',
        "it's",
        "a;b|c",
        "two words",
    ],
    *[" space", "tab\tin", "line\nbreak", "=1+1", "#1", "1_000", "١", "a-b", "e\u0301", "\u00e9"],
]
COLUMNS = ["x", "größe", "two words", "a,b", 'q"uote', "😀", "1st", "=sum", "名前", "x@y", "f1..f3"]
GAPS = ["", "NA", "nan", "null", "?", "N/A", "NaN"]


def without_guard(label):
    """Names that a spreadsheet would run have a mark before them in CSV."""
    return label[1:] if label[:1] == "'" and label[1:2] in set("=+-@") else label


def predicted(program, model, table):
    """What the program says of a table: all cells, the labels, and the decision values exactly."""
    rows = list(csv.reader(io.StringIO(run(program, "predict", model, table, "--decision"))))
    place = rows[0].index("prediction")
    decisions = np.array([[float(value or "nan") for value in row[place + 1 :]] for row in rows[1:]])
    return rows, [without_guard(row[place]) for row in rows[1:]], decisions


def as_csv(frame, path):
    spaces = any(value != value.strip() for column in frame for value in frame[column])
    frame.to_csv(path, index=False, quoting=csv.QUOTE_ALL if spaces else csv.QUOTE_MINIMAL)
    return path


# -- fitted by either --------------------------------------------------------------------------------------------------------------------


def column_of(rng, count):
    """Numbers of some type that a CSV file brings back bit for bit: eighths fit into single precision."""
    kind = rng.integers(5)
    if kind == 0:
        return rng.integers(-3, 4, size=count)
    if kind == 1:
        return rng.integers(0, 9, size=count).astype(np.uint8)
    if kind == 2:
        return (rng.integers(-20, 20, size=count) / 8).astype(np.float32)
    return rng.normal(size=count) * 10.0 ** rng.integers(-2, 3)


def names_of(rng, count, part=1):
    """Different names of one type: text, whole numbers, parts of them in double or single precision, true and false."""
    kind = rng.integers(6)
    numbers = rng.choice(np.arange(-5, 30), size=count, replace=False)
    if kind == 0:
        return numbers
    if kind in (1, 2):
        return (numbers / part).astype(np.float64 if kind == 1 else np.float32)
    if kind == 3 and count == 2:
        return np.array([False, True])
    return np.array(rng.choice(NAMES, size=count, replace=False), dtype=object)


def plain_table(seed):
    """A table without gaps and texts among its features, as an estimator takes it; what to learn from it, in both languages."""
    rng = np.random.default_rng(1000 + seed)
    count = int(rng.integers(24, 40))
    names = rng.permutation(COLUMNS).tolist()[: rng.integers(1, 5)]
    frame = pd.DataFrame({name: column_of(rng, count) for name in names})
    machine = str(rng.choice(["svc", "svc", "svc", "krr", "svr", "ocsvm"]))
    options, target, task = ["--machine", machine], None, None
    tasks = names_of(rng, rng.integers(2, 4), 8) if rng.integers(2) else None
    if tasks is not None:
        task = "the task"
        frame.insert(int(rng.integers(len(names) + 1)), task, tasks[np.arange(count) % len(tasks)])
        options += ["--task", task]
    if machine == "svc":
        target = "the class"
        classes = names_of(rng, rng.integers(2, 6))
        frame[target] = classes[np.arange(count) // (len(tasks) if task else 1) % len(classes)]
        if task and len(classes) > 2:
            # Not every task has every class.
            frame = frame[(frame[task] != tasks[0]) | (frame[target] != classes[1])]
        scheme = str(rng.choice(["ovo", "ova"]))
        rows = frame.drop(columns=target).drop_duplicates().join(frame[target])
        probability = bool(rows.groupby([task, target] if task else target, sort=False).size().min() > 1)
        estimator = MKLClassifier(C=2.0, multiclass=scheme, probability=probability)
        options += ["--C", "2", "--multiclass", scheme] + ["--probability"] * probability
        # Of a generator of its own: the others draw what they drew before there was this choice.
        if np.random.default_rng([17, seed]).integers(3) == 0:
            estimator.set_params(machine="logistic")
            options[1] = "logistic"
    elif machine == "ocsvm":
        estimator = MKLOneClassSVM(nu=0.3)
        options += ["--nu", "0.3"]
    else:
        target = "the value"
        frame[target] = rng.normal(size=count).round(2)
        estimator = MKLRegressor(machine=machine, alpha=0.5, C=2.0, epsilon=0.25)
        options += ["--lambda", "0.5"] if machine == "krr" else ["--C", "2", "--epsilon", "0.25"]
    estimator.set_params(kernels=["linear", "rbf:sigma=1|4"], task=task, tol=1e-2, max_iter=50, n_jobs=1)
    # Some rows stand there twice, and rows are in any order.
    repeated = pd.concat([frame, frame.iloc[: rng.integers(4)]], ignore_index=True)
    frame = repeated.iloc[rng.permutation(len(repeated))].reset_index(drop=True)
    return frame, target, estimator, options + (["--target", target] if target else [])


def transfer_of(seed, frame, target, estimator, options):
    """The same table with one machine for all tasks, in groups of some columns or by a matrix; None where there are no tasks."""
    rng = np.random.default_rng([18, seed])
    tasks = estimator.get_params()["task"]
    if tasks is None:
        return None
    known = list(dict.fromkeys(frame[tasks].tolist()))
    words = [["all", "own"], ["all", "group", "own"], ["group"], ["similarity", "all"], ["all"]][rng.integers(5)]
    if any(str(name) != str(name).strip() for name in known) and "similarity" in words:
        # The names of a table's columns have no spaces around them.
        words = ["all", "own"]
    groups = None
    if "group" in words:
        columns = ["the region", "the town"][: rng.integers(1, 3)]
        for column in columns:
            place = dict(zip(known, names_of(rng, 3)[rng.integers(0, 3, size=len(known))], strict=True))
            if column == "the town":
                # Inside of the regions: a town of its own for each task, or none.
                place = {task: f"{frame[columns[0]][frame[tasks] == task].iloc[0]} {at}" for at, task in enumerate(known)}
            frame.insert(int(rng.integers(len(frame.columns))), column, frame[tasks].map(place))
        groups = columns[0] if len(columns) == 1 and rng.integers(2) else columns
        options = [*options, "--tree-columns", ",".join(columns)]
    elif "similarity" in words:
        factor = rng.normal(size=(len(known), 2))
        groups = pd.DataFrame(factor @ factor.T, index=known, columns=known)
    offset = bool(rng.integers(2))
    estimator.set_params(transfer=words if rng.integers(2) else ",".join(words), groups=groups, task_offset=offset)
    options = [*options, "--transfer", ",".join(words)] + ["--no-task-offset"] * (not offset)
    return frame, target, estimator, options


def contents(path):
    """The header and the tensors of a model file."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    about = json.loads(header.pop("__metadata__")["mtmkl"])
    tensors = {name: data[8 + length :][slice(*entry["data_offsets"])] for name, entry in header.items()}
    # Time is not the same twice: the seconds of kernels and solver behind objective, bound and gap, and those of each pass, the last of
    # seven numbers.
    tensors["outcome"] = np.frombuffer(tensors["outcome"])[:3].tobytes()
    tensors["trace"] = np.frombuffer(tensors["trace"]).reshape(-1, 7)[:, :6].tobytes()
    # What each door says of itself: flags and file of the one, parameters and types of the other.
    notes = about.pop("notes")
    about["notes"] = {name: notes.get(name) for name in ("frame", "training-rows", "calibration")}
    return about, tensors


def same_models(program, tmp_path, tables):
    """Fits each table by both doors, compares the files, and predicts from either by the other."""
    seen = set()
    for note, frame, target, estimator, options in tables:
        path = tmp_path / "table.csv"
        frame.to_csv(path, index=False, quoting=csv.QUOTE_NONNUMERIC)
        run(program, "fit", path, *KERNELS, *options, *LIMITS, "-o", tmp_path / "theirs", codes=(0, 1))
        X = frame if target is None else frame.drop(columns=target)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            estimator.fit(X, None if target is None else frame[target])
        estimator.save(tmp_path / "ours")
        theirs, ours = contents(tmp_path / "theirs"), contents(tmp_path / "ours")
        assert theirs[0] == ours[0], note
        assert theirs[1].keys() == ours[1].keys(), note
        assert [name for name in ours[1] if theirs[1][name] != ours[1][name]] == [], note
        # Either model, by the other door.
        _, labels, decisions = predicted(program, tmp_path / "ours", path)
        loaded = mtmkl.load(tmp_path / "theirs")
        for model in (estimator, loaded):
            np.testing.assert_array_equal(raw.decisions(model, X), decisions, err_msg=note)
            said = model.predict(X)
            if target == "the class":
                assert [str(value) for value in said] == labels, note
            else:
                np.testing.assert_array_equal(said, [float(label) for label in labels], err_msg=note)
        if "--probability" in options:
            text = run(program, "predict", tmp_path / "ours", path, "--probability")
            told = [[float(value) for value in row[-len(estimator.classes_) :]] for row in list(csv.reader(io.StringIO(text)))[1:]]
            for model in (estimator, loaded):
                np.testing.assert_array_equal(model.predict_proba(X), told, err_msg=note)
            np.testing.assert_allclose(np.sum(told, axis=1), 1.0, err_msg=note)
        words = options[options.index("--transfer") + 1] if "--transfer" in options else ""
        seen.add((options[1], "--task" in options, "--probability" in options, len(getattr(estimator, "classes_", ())), words))
    return seen


def test_both_doors_make_the_same_model(program, tmp_path):
    seen = same_models(program, tmp_path, ((f"seed {seed}", *plain_table(seed)) for seed in range(200)))
    # Five machines, with and without tasks, two to five classes, with probabilities where each class has rows enough.
    assert len(seen) == 24, sorted(seen)


def test_both_doors_make_the_same_transfer(program, tmp_path):
    def tables():
        for seed in range(200):
            found = transfer_of(seed, *plain_table(seed))
            if found is not None:
                frame, target, estimator, options = found
                if isinstance(estimator.groups, pd.DataFrame):
                    estimator.groups.to_csv(tmp_path / "similarity.csv", index_label="task", quoting=csv.QUOTE_NONNUMERIC)
                    options = [*options, "--task-similarity", tmp_path / "similarity.csv"]
                yield f"transfer, seed {seed}", frame, target, estimator, options

    seen = same_models(program, tmp_path, tables())
    assert {machine for machine, *_ in seen} == {"svc", "logistic", "krr", "svr", "ocsvm"}
    assert {words for *_, words in seen} == {"all,own", "all,group,own", "group", "similarity,all", "all"}
    assert {classes for *_, classes, _ in seen} == {0, 2, 3, 4, 5}


# -- fitted by the program, with gaps, categories and scales -----------------------------------------------------------------------------


def cell(rng):
    """A number as tables have them."""
    kind = rng.integers(8)
    if kind == 0:
        return str(rng.integers(-5, 5))
    if kind == 1:
        return f"{rng.integers(0, 99):05d}"
    if kind == 2:
        return str(12345678901234567890 + int(rng.integers(0, 10**6)))
    if kind == 3:
        return f"{rng.normal():+.3e}"
    return repr(float(rng.normal() * 10.0 ** rng.integers(-2, 3)))


def random_table(seed):
    """Columns of text for fit and for predict, and the options of fit."""
    rng = np.random.default_rng(seed)
    with_tasks = bool(rng.integers(2))
    tasks = list(rng.choice(NAMES, size=rng.integers(2, 4), replace=False)) if with_tasks else [""]
    classes = list(rng.choice(NAMES, size=2 if with_tasks else rng.integers(2, 5), replace=False))
    names = list(rng.permutation(COLUMNS))
    numeric, hot = names[: rng.integers(1, 4)], names[4 : 4 + rng.integers(0, 3)]
    gaps = bool(rng.integers(2))
    categories = {name: list(rng.choice(NAMES, size=rng.integers(1, 5), replace=False)) for name in hot}
    # A column of huge numbers beside small ones is a hard problem; here it is about names.
    options = ["--scale", rng.choice(["standard", "minmax"]), "--multiclass", rng.choice(["ova", "ovo"])]
    options += ["--missing", "mean"] if gaps else []
    options += ["--task", "the task"] if with_tasks else []
    options += [word for name in hot for word in ("--one-hot", name)]

    def rows(count, new):
        columns = {name: [cell(rng) for _ in range(count)] for name in numeric}
        for name in hot:
            known = categories[name] + (["never seen"] if new else [])
            columns[name] = [str(rng.choice(known)) for _ in range(count)]
        if gaps:
            for name in numeric + hot:
                # Not in the first rows, so that no column is empty.
                for at in np.flatnonzero(rng.random(count) < 0.2):
                    if at > 3:
                        columns[name][at] = str(rng.choice(GAPS))
        if with_tasks:
            columns["the task"] = [str(tasks[at % len(tasks)]) for at in range(count)]
        if not new:
            columns["the class"] = [str(classes[at // len(tasks) % len(classes)]) for at in range(count)]
        return pd.DataFrame(columns, dtype=object)

    return rows(24, False), rows(10, True), options


def test_many_tables_mean_the_same_on_both_sides(program, tmp_path):
    seen = set()
    for seed in range(100):
        train, new, options = random_table(seed)
        path = as_csv(train, tmp_path / "train.csv")
        run(program, "fit", path, "--target", "the class", *KERNELS, *options, *LIMITS, "-o", tmp_path / "m", codes=(0, 1))
        rows, labels, decisions = predicted(program, tmp_path / "m", as_csv(new, tmp_path / "new.csv"))
        model = mtmkl.load(tmp_path / "m")
        note = f"seed {seed}"
        again = pd.read_csv(tmp_path / "new.csv", dtype=str, keep_default_na=False)
        for frame in (new, again):
            np.testing.assert_array_equal(raw.decisions(model, frame), decisions, err_msg=note)
            assert [str(value) for value in model.predict(frame)] == labels, note
        assert sorted(map(str, model.classes_.tolist())) == sorted(set(train["the class"])), note
        if "the task" in train:
            assert sorted(model.tasks_) == sorted(set(train["the task"])), note
            assert [without_guard(row[1]) for row in rows[1:]] == new["the task"].tolist(), note
        seen.add(("the task" in train, len(model.classes_), "--one-hot" in options, "mean" in options))
    # With and without tasks (two classes, or two to four), categories and gaps.
    assert len(seen) == 16
