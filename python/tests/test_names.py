"""Names of classes, tasks and categories are text, and mean the same here and in the program; so do gaps."""

from __future__ import annotations

import csv
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
import raw
from sklearn.base import clone
from test_files import program_decisions, run

import mtmkl
from mtmkl import MKLClassifier, MKLRegressor

KERNELS = ["--kernel", "linear", "--kernel", "rbf:sigma=1|4"]


def table_of(names, rng, count=24, column="label"):
    """A table of text: two numbers, and one of the names, which the first number tells."""
    chosen = np.arange(count) % len(names)
    numbers = rng.normal(size=(count, 2)) + 2.0 * chosen[:, None]
    return pd.DataFrame({"a": map(str, numbers[:, 0]), "b": map(str, numbers[:, 1]), column: [names[at] for at in chosen]}, dtype=object)


def written(frame, path):
    frame.to_csv(path, index=False, quoting=csv.QUOTE_ALL)
    return path


# -- fitted there ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names, classes",
    [
        (["007", "7"], ["007", "7"]),
        (["1.0", "007"], ["1.0", "007"]),
        (["1", "1.0"], ["1", "1.0"]),
        (["1", "2.5"], ["1", "2.5"]),
        (["1", "2", "10"], [1, 2, 10]),
        (["1.0", "2.5"], [1.0, 2.5]),
        (["12345678901234567890", "12345678901234567891"], [12345678901234567890, 12345678901234567891]),
        (["-1", "12345678901234567891"], [-1, 12345678901234567891]),
        (["True", "False"], ["False", "True"]),
        (["1e3", "2e3"], ["1e3", "2e3"]),
        (["inf", "nano"], ["inf", "nano"]),
        (["1_000", "2_000"], ["1_000", "2_000"]),
        (["ja", "😀", 'a,"b"'], ['a,"b"', "ja", "😀"]),
    ],
    ids=lambda names: " ".join(map(str, names)),
)
def test_classes_of_a_table(program, tmp_path, rng, names, classes):
    frame = table_of(names, rng)
    path = written(frame, tmp_path / "table.csv")
    run(program, "fit", path, "--target", "label", *KERNELS, "--quiet", "-o", tmp_path / "m")
    model = mtmkl.load(tmp_path / "m")
    assert model.classes_.tolist() == classes
    assert [type(value) for value in model.classes_.tolist()] == [type(value) for value in classes]
    labels, decisions = program_decisions(program, tmp_path / "m", path)
    np.testing.assert_array_equal(raw.decisions(model, frame).ravel(), decisions.ravel())
    assert [str(value) for value in model.predict(frame)] == labels.tolist()
    right = np.mean(labels == frame["label"])
    assert model.score(frame, frame["label"]) == right


def test_a_number_is_the_name_that_spells_it(program, tmp_path, rng):
    frame = table_of(["001", "2.0"], rng, column="site").assign(label=["no", "no", "yes", "yes"] * 6)
    path = written(frame, tmp_path / "table.csv")
    run(program, "fit", path, "--target", "label", "--task", "site", *KERNELS, "--quiet", "-o", tmp_path / "m")
    model = mtmkl.load(tmp_path / "m")
    assert model.tasks_.tolist() == ["001", "2.0"]
    expected = model.decision_function(frame)
    # As pandas reads the file by itself: numbers.
    for sites in ([1, 2] * 12, [1.0, 2.0] * 12, np.array([1, 2] * 12, dtype=np.float32)):
        np.testing.assert_array_equal(model.decision_function(frame.assign(site=sites)), expected)
    with pytest.raises(ValueError, match=r"not fitted on the task '1', but on '001', '2\.0'"):
        model.predict(frame.assign(site="1"))
    with pytest.raises(ValueError, match=r"not fitted on the task '3'"):
        model.predict(frame.assign(site=3))


def test_a_number_that_two_names_spell_is_refused(program, tmp_path, rng):
    frame = table_of(["007", "7"], rng)
    path = written(frame, tmp_path / "table.csv")
    run(program, "fit", path, "--target", "label", *KERNELS, "--quiet", "-o", tmp_path / "m")
    model = mtmkl.load(tmp_path / "m")
    with pytest.raises(ValueError, match=r"7 may be '007' or '7'; give names as text"):
        model.score(frame, [7] * 24)


@pytest.mark.parametrize("gaps", ["mean", "error"])
def test_one_hot_columns_with_gaps_and_zeros_in_front(program, tmp_path, rng, gaps):
    frame = table_of(["no", "yes"], rng).assign(code=["007", "7", "1.0", "NA" if gaps == "mean" else "x", "1", "007"] * 4)
    if gaps == "mean":
        frame.loc[5, "a"] = "NA"
    path = written(frame, tmp_path / "table.csv")
    options = ["--one-hot", "code", "--scale", "standard", "--missing", gaps]
    run(program, "fit", path, "--target", "label", *options, *KERNELS, "--quiet", "-o", tmp_path / "m")
    labels, decisions = program_decisions(program, tmp_path / "m", path)
    model = mtmkl.load(tmp_path / "m")
    np.testing.assert_array_equal(model.decision_function(frame), decisions[:, 0])
    assert model.predict(frame).tolist() == labels.tolist()
    if gaps == "mean":
        # A gap is a gap, however it is written.
        for gap in (None, np.nan, pd.NA, "", "nan", "null", "?", " N/A "):
            codes = frame["code"].map(lambda code, gap=gap: gap if code == "NA" else code)
            np.testing.assert_array_equal(model.decision_function(frame.assign(code=codes)), decisions[:, 0])
    else:
        with pytest.raises(ValueError, match=r"X, row 2, column 'code': the value is missing.*leave the row out"):
            model.predict(frame.assign(code=["007", "7", None] * 8))
    with pytest.raises(ValueError, match=r"X, row 0, column 'b': 'many' is not a number"):
        model.predict(frame.assign(b="many"))
    with pytest.raises(ValueError, match=r"X, row 0, column 'b': the value is infinite"):
        model.predict(frame.assign(b="inf"))


def test_parquet_names_are_spelled_as_here(program, tmp_path, rng):
    frame = table_of(["x", "y"], rng)
    numbers = frame[["a", "b"]].astype(float)
    for values in ([True, False], [1.0, 2.0], [3, 4], ["007", "7"], [12345678901234567890, 12345678901234567891]):
        labels = np.array(values)[np.arange(24) % 2]
        model = MKLClassifier(["linear"]).fit(numbers, labels)
        model.save(tmp_path / "m")
        pl.DataFrame({"a": numbers["a"].to_numpy(), "b": numbers["b"].to_numpy(), "target": labels}).write_parquet(tmp_path / "t.parquet")
        found = json.loads(run(program, "evaluate", tmp_path / "m", tmp_path / "t.parquet", "--json"))
        assert found["mean"] == model.score(numbers, labels)
    # What means a gap in a CSV file means one here.
    pl.DataFrame({"a": [1.0, 2.0], "target": ["NA", "DE"]}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(AssertionError, match=r"no value in the target column `target`, the first at row 1"):
        run(program, "fit", tmp_path / "t.parquet", "--target", "target")


# -- fitted here -------------------------------------------------------------------------------------------------------------------------

LABELS = {
    "int": np.array([3, 20]),
    "float": np.array([3.0, 20.0]),
    "float32": np.array([3.0, 20.0], dtype=np.float32),
    "bool": np.array([False, True]),
    "str": np.array(["007", "7"]),
    "uint64": np.array([12345678901234567890, 12345678901234567891], dtype=np.uint64),
    "object of str": np.array(["😀", "a,b"], dtype=object),
    "object of int": np.array([3, 20], dtype=object),
    "object of float": np.array([3.0, 20.0], dtype=object),
    "object of bool": np.array([False, True], dtype=object),
    "object of large int": np.array([10**25, 10**25 + 1], dtype=object),
    "three floats": np.array([1.0, 2.0, 10.0]),
    "three texts": np.array(["1", "2", "10"]),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_go_there_and_come_back(program, tmp_path, rng, kind):
    labels = LABELS[kind]
    y = labels[np.arange(24) % len(labels)]
    X = table_of(labels.tolist(), rng)[["a", "b"]].astype(float)
    model = MKLClassifier(["linear", "rbf"]).fit(X, y)
    model.save(tmp_path / "m")
    path = written(X.assign(target=pd.Series(y, dtype=object).map(str)), tmp_path / "table.csv")
    said, decisions = program_decisions(program, tmp_path / "m", path)
    predicted = model.predict(X)
    assert said.tolist() == [str(value) for value in predicted]
    np.testing.assert_array_equal(decisions, raw.decisions(model, X))
    assert json.loads(run(program, "evaluate", tmp_path / "m", path, "--json"))["mean"] == pytest.approx(model.score(X, y))
    again = mtmkl.load(tmp_path / "m")
    assert again.classes_.dtype == model.classes_.dtype
    assert again.classes_.tolist() == model.classes_.tolist()
    assert [type(value) for value in again.classes_.tolist()] == [type(value) for value in model.classes_.tolist()]
    assert again.predict(X).tolist() == predicted.tolist()
    assert again.score(X, y) == model.score(X, y) > 0.6


@pytest.mark.parametrize("kind", ["int", "float", "float32", "bool", "str", "uint64", "object of large int"])
def test_tasks_go_there_and_come_back(program, tmp_path, rng, kind):
    tasks = LABELS[kind][np.arange(24) % 2]
    X = table_of(["x", "y"], rng)[["a", "b"]].astype(float)
    y = np.array(["no", "no", "yes", "yes"] * 6)
    frame = X.assign(site=tasks)
    model = MKLClassifier(["linear", "rbf"], task="site").fit(frame, y)
    assert model.tasks_.tolist() == [str(value) for value in LABELS[kind]]
    model.save(tmp_path / "m")
    path = written(X.assign(site=[str(value) for value in tasks]), tmp_path / "table.csv")
    said, decisions = program_decisions(program, tmp_path / "m", path)
    np.testing.assert_array_equal(decisions[:, 0], mtmkl.load(tmp_path / "m").decision_function(frame))
    assert said.tolist() == model.predict(frame).tolist()


def test_numbers_in_files_are_the_names_that_spell_them(program, tmp_path, rng):
    """NPY files and fractions in Parquet files have no spelling; 1.0 there is the task `1.0` of an array, and `1` of a table."""
    X = table_of(["x", "y"], rng)[["a", "b"]].to_numpy(dtype=float)
    array = np.column_stack([X, np.arange(24) % 2 + 1.0])
    y = np.array([5.0, 5.0, 6.0, 6.0] * 6)
    model = MKLClassifier(["linear", "rbf"], task=2).fit(array, y)
    assert model.tasks_.tolist() == ["1.0", "2.0"]
    model.save(tmp_path / "m")
    np.save(tmp_path / "rows.npy", np.column_stack([array, y]))
    said, decisions = program_decisions(program, tmp_path / "m", tmp_path / "rows.npy")
    np.testing.assert_array_equal(decisions[:, 0], model.decision_function(array))
    assert said.tolist() == [str(value) for value in model.predict(array)]
    evaluated = json.loads(run(program, "evaluate", tmp_path / "m", tmp_path / "rows.npy", "--target", "f4", "--json"))
    assert evaluated["mean"] == pytest.approx(model.score(array, y))
    whole = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "site": np.arange(24) % 2 + 1, "code": np.arange(24) % 3, "y": y.astype(int)})
    whole.to_csv(tmp_path / "table.csv", index=False)
    options = ["--target", "y", "--task", "site", "--one-hot", "code", *KERNELS, "--quiet"]
    run(program, "fit", tmp_path / "table.csv", *options, "-o", tmp_path / "m")
    fractions = whole.astype(float)
    pl.DataFrame({name: fractions[name].to_numpy() for name in fractions}).write_parquet(tmp_path / "table.parquet")
    answers = [run(program, "predict", tmp_path / "m", tmp_path / f"table.{ending}", "--decision") for ending in ("csv", "parquet")]
    assert answers[0] == answers[1]
    loaded = mtmkl.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.decision_function(fractions), loaded.decision_function(whole))
    # Two names of one number cannot be told apart there.
    table_of(["1", "1.0"], rng, column="y").to_csv(tmp_path / "table.csv", index=False)
    run(program, "fit", tmp_path / "table.csv", "--target", "y", *KERNELS, "--quiet", "-o", tmp_path / "m")
    pl.DataFrame({"a": [1.0], "b": [1.0], "y": [1.0]}).write_parquet(tmp_path / "table.parquet")
    with pytest.raises(AssertionError, match=r"row 1, column `y`: the number 1 may be `1` or `1\.0`; give names as text"):
        run(program, "evaluate", tmp_path / "m", tmp_path / "table.parquet")


def test_labels_of_several_types_are_refused(rng):
    X = rng.normal(size=(4, 2))
    with pytest.raises(ValueError, match=r"y mixes labels of the types int and str; .*astype\(str\)"):
        MKLClassifier(["linear"]).fit(X, np.array([1, "1", 2, "2"], dtype=object))


def test_equal_numbers_of_other_types_are_other_tasks(rng):
    X = rng.normal(size=(12, 2))
    y = [0, 1] * 6
    model = MKLClassifier(["linear"]).fit(X, y, task=[1, 1, 1, 1, True, True, True, True, 1.5, 1.5, 1.5, 1.5])
    assert model.tasks_.tolist() == ["1", "1.5", "True"]


def test_class_weights_by_number_come_back(tmp_path, rng):
    X = rng.normal(size=(30, 2))
    y = (X[:, 0] > 0.3).astype(int)
    model = MKLClassifier(["linear"], class_weight={0: 2.0, 1: 1.0}).fit(X, y)
    model.save(tmp_path / "m")
    again = mtmkl.load(tmp_path / "m")
    assert again.get_params()["class_weight"] == {0: 2.0, 1: 1.0}
    np.testing.assert_array_equal(clone(again).fit(X, y).decision_function(X), model.decision_function(X))


def test_class_weights_of_the_program_can_be_fitted_again(program, tmp_path, rng):
    frame = table_of(["0", "1"], rng)
    path = written(frame, tmp_path / "table.csv")
    options = ["--target", "label", "--positive-weight", "3", *KERNELS, "--quiet"]
    run(program, "fit", path, *options, "-o", tmp_path / "m")
    again = mtmkl.load(tmp_path / "m")
    assert again.class_weight == {0: 1.0, 1: 3.0}
    clone(again).fit(frame[["a", "b"]].astype(float), frame["label"].astype(int))


# -- gaps --------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA, "", "NA", "N/A", "nan", "NaN", "-NAN", "null", "NULL", "?", "<NA>", " NA "], ids=repr)
def test_missing_labels_and_tasks_name_the_row(rng, gap):
    X = rng.normal(size=(12, 2))
    names = pd.Series(["DE", "AT"] * 6, dtype=object)
    holes = names.copy()
    holes[3] = gap
    with pytest.raises(ValueError, match=r"^y, row 3: .*leave the row out"):
        MKLClassifier(["linear"]).fit(X, holes)
    with pytest.raises(ValueError, match=r"^task, row 3: .*leave the row out"):
        MKLClassifier(["linear"]).fit(X, [0, 0, 1, 1] * 3, task=holes)
    holes[5] = gap
    with pytest.raises(ValueError, match=r"^y, row 3 \(the first of 2 such rows\): .*leave the row out"):
        MKLClassifier(["linear"]).fit(X, holes)
    if isinstance(gap, str):
        with pytest.raises(ValueError, match=r"spell it otherwise"):
            MKLClassifier(["linear"]).fit(X, holes)


def test_names_that_look_like_gaps_are_names(rng):
    X = rng.normal(size=(12, 2))
    model = MKLClassifier(["linear"]).fit(X, ["N.A.", "nano", "None", "none"] * 3)
    assert model.classes_.tolist() == ["N.A.", "None", "nano", "none"]


def test_classes_of_text_come_in_the_order_of_names(rng):
    X = rng.normal(size=(12, 2))
    model = MKLClassifier(["linear"]).fit(X, ["10", "b", "2", "1a"] * 3)
    assert model.classes_.tolist() == ["2", "10", "1a", "b"]
    assert set(model.predict(X)) <= set(model.classes_)


def test_missing_numbers_to_predict_name_the_row(rng):
    X = rng.normal(size=(12, 2))
    y = X[:, 0].copy()
    y[4] = np.nan
    with pytest.raises(ValueError, match=r"^y, row 4: the value is missing \(nan\); fill it in or leave the row out"):
        MKLRegressor(["linear"]).fit(X, y)
