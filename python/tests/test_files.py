"""Model files and pickles: the same bits from Python and from the program, both ways."""

from __future__ import annotations

import io
import json
import pickle
import subprocess

import joblib
import numpy as np
import pandas as pd
import pytest
import raw
from conftest import ROOT
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel

import mtmkl
from mtmkl import MKLSVDD, Common, Group, KernelStack, MKLClassifier, MKLOneClassSVM, MKLRegressor, _core


def run(program, *arguments, codes=(0,)):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode in codes, done.stderr
    return done.stdout


def program_decisions(program, model, table, *arguments):
    """What `mtmkl predict --decision` says: labels as text and decision values, exactly."""
    text = run(program, "predict", model, table, "--decision", *arguments)
    found = pd.read_csv(io.StringIO(text), dtype=str)
    decisions = [column for column in found.columns if column.startswith("decision")]
    return found["prediction"].to_numpy(), np.array([[float(cell) for cell in row] for row in found[decisions].to_numpy()])


@pytest.fixture
def folder(tmp_path, sites):
    """The table with tasks as a file; numbers are written so that they come back bit for bit."""
    X, y = sites
    X.assign(sick=y).to_csv(tmp_path / "sites.csv", index=False)
    return tmp_path


# -- fitted here, predicted there --------------------------------------------------------------------------------------------------------


def test_tasks(program, folder, sites):
    X, y = sites
    model = MKLClassifier(["linear", ("v", "rbf:sigma=1|2", ["a", "c"])], task="site").fit(X, y)
    model.save(folder / "model.mtmkl")
    labels, decisions = program_decisions(program, folder / "model.mtmkl", folder / "sites.csv")
    np.testing.assert_array_equal(decisions[:, 0], model.decision_function(X))
    np.testing.assert_array_equal(labels, model.predict(X))


def test_several_classes(program, tmp_path):
    X, y = load_iris(return_X_y=True)
    model = MKLClassifier(["linear", "rbf"], C=5).fit(X, y)
    model.save(tmp_path / "model.mtmkl")
    pd.DataFrame(X, columns=["f1", "f2", "f3", "f4"]).to_csv(tmp_path / "iris.csv", index=False)
    labels, decisions = program_decisions(program, tmp_path / "model.mtmkl", tmp_path / "iris.csv")
    np.testing.assert_array_equal(decisions, raw.decisions(model, X))
    np.testing.assert_array_equal(labels.astype(int), model.predict(X))


@pytest.mark.parametrize(
    "model",
    [MKLRegressor(), MKLRegressor(machine="svr"), MKLOneClassSVM(), MKLSVDD(), MKLClassifier(), MKLClassifier(machine="logistic")],
    ids=["krr", "svr", "ocsvm", "svdd", "svc", "logistic"],
)
def test_every_machine(program, tmp_path, rng, model):
    X = pd.DataFrame(rng.normal(size=(50, 3)), columns=["a", "b", "c"])
    y = {"values": X["a"] + X["b"] ** 2, "labels": np.where(X["a"] * X["b"] > 0, 1, 0), "none": None}[model._kind]
    model.set_params(kernels=["linear", "poly", "rbf:sigma=1|3"]).fit(X, y).save(tmp_path / "model.mtmkl")
    X.to_csv(tmp_path / "rows.csv", index=False)
    labels, decisions = program_decisions(program, tmp_path / "model.mtmkl", tmp_path / "rows.csv")
    values = model.predict(X) if model._kind == "values" else model.decision_function(X)
    np.testing.assert_array_equal(decisions[:, 0], values)
    np.testing.assert_array_equal(labels.astype(float), model.predict(X))


def test_precomputed_kernels(program, tmp_path, rng):
    rows = rng.normal(size=(50, 3))
    y = np.where(rows[:, 0] * rows[:, 1] > 0, "in", "out")
    stack = np.stack([rows @ rows.T, rbf_kernel(rows, rows, 0.5)])
    model = MKLClassifier("precomputed", normalize=True).fit(stack[:, :40, :40], y[:40])
    model.save(tmp_path / "model.mtmkl")
    pd.DataFrame({"row": np.arange(10)}).to_csv(tmp_path / "new.csv", index=False)
    cross = []
    for number, gram in enumerate(stack):
        np.savez(tmp_path / f"k{number}.npz", k=gram[40:, :40], own=np.diag(gram)[40:, None])
        cross += ["--cross", f"K{number}={tmp_path / f'k{number}.npz'}"]
    labels, decisions = program_decisions(program, tmp_path / "model.mtmkl", tmp_path / "new.csv", *cross)
    new = KernelStack(stack[:, 40:, :40], own=np.diagonal(stack, axis1=1, axis2=2)[:, 40:])
    np.testing.assert_array_equal(decisions[:, 0], model.decision_function(new))
    np.testing.assert_array_equal(labels, model.predict(new))


def test_the_program_inspects_reports_and_evaluates_a_model_from_python(program, folder, sites):
    X, y = sites
    model = MKLClassifier(["linear", "rbf"], task="site", class_weight={"yes": 2.0}).fit(X, y)
    model.save(folder / "model.mtmkl")
    assert "pscs" in run(program, "inspect", folder / "model.mtmkl")
    run(program, "report", folder / "model.mtmkl", "-o", folder / "report.html")
    assert "north" in (folder / "report.html").read_text()
    found = json.loads(run(program, "evaluate", folder / "model.mtmkl", folder / "sites.csv", "--json"))
    scores = [np.mean((model.predict(X) == y)[X["site"] == task]) for task in model.tasks_]
    assert found["mean"] == pytest.approx(np.mean(scores))


# -- fitted there, predicted here --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["none", "standard", "minmax"])
def test_a_programs_model_with_tasks(program, folder, sites, scale):
    X, y = sites
    path = folder / "model.mtmkl"
    run(program, "fit", folder / "sites.csv", "--target", "sick", "--task", "site", "--scale", scale, "--quiet", "-o", path)
    labels, decisions = program_decisions(program, path, folder / "sites.csv")
    model = mtmkl.load(path)
    assert isinstance(model, MKLClassifier)
    assert model.classes_.tolist() == ["no", "yes"] and model.tasks_.tolist() == ["north", "south", "west"]
    np.testing.assert_array_equal(model.decision_function(X), decisions[:, 0])
    # Columns by name, in any order, with others between them; or an array with the task beside it.
    np.testing.assert_array_equal(model.decision_function(X.assign(other=1)[["other", "site", "d", "b", "c", "a"]]), decisions[:, 0])
    array = X[["a", "b", "c", "d"]].to_numpy()
    np.testing.assert_array_equal(model.decision_function(array, task=X["site"]), decisions[:, 0])
    np.testing.assert_array_equal(model.predict(X), labels)
    assert model.score(X, y) > 0.7


@pytest.mark.parametrize("scheme", ["ova", "ovo"])
def test_a_programs_model_with_classes(program, tmp_path, scheme):
    frame = load_iris(as_frame=True).frame
    frame.to_csv(tmp_path / "iris.csv", index=False)
    path = tmp_path / "model.mtmkl"
    run(program, "fit", tmp_path / "iris.csv", "--target", "target", "--multiclass", scheme, "--scale", "standard", "--quiet", "-o", path)
    labels, decisions = program_decisions(program, path, tmp_path / "iris.csv")
    model = mtmkl.load(path)
    assert model.classes_.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(raw.decisions(model, frame), decisions)
    np.testing.assert_array_equal(model.predict(frame), labels.astype(int))
    assert model.decision_function(frame).shape == (150, 3)


@pytest.mark.parametrize("machine, kind", [("krr", MKLRegressor), ("svr", MKLRegressor), ("ocsvm", MKLOneClassSVM), ("svdd", MKLSVDD)])
def test_a_programs_model_of_every_machine(program, tmp_path, rng, machine, kind):
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    frame["colour"] = rng.choice(["red", "green"], size=40)
    frame.loc[3, "a"] = np.nan
    target = [] if kind in (MKLOneClassSVM, MKLSVDD) else ["--target", "y"]
    (frame.assign(y=frame["b"] ** 2) if target else frame).to_csv(tmp_path / "rows.csv", index=False)
    path = tmp_path / "model.mtmkl"
    options = ["--machine", machine, *target, "--one-hot", "colour", "--missing", "mean", "--scale", "standard", "--quiet"]
    run(program, "fit", tmp_path / "rows.csv", *options, "-o", path)
    _, decisions = program_decisions(program, path, tmp_path / "rows.csv")
    model = mtmkl.load(path)
    assert isinstance(model, kind)
    values = model.predict(frame) if kind is MKLRegressor else model.decision_function(frame)
    np.testing.assert_array_equal(values, decisions[:, 0])
    with pytest.raises(ValueError, match="X has no column 'colour'"):
        model.predict(frame[["a", "b"]])


# -- here and back -----------------------------------------------------------------------------------------------------------------------


def same(a, b):
    assert type(a) is type(b)
    for name in ("kernel_weights_", "dual_coef_", "intercept_", "support_", "support_vectors_", "trace_"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert (a.objective_, a.bound_, a.gap_, a.status_, a.n_iter_) == (b.objective_, b.bound_, b.gap_, b.status_, b.n_iter_)
    assert a.n_features_in_ == b.n_features_in_ and a.kernel_names_ == b.kernel_names_


@pytest.mark.parametrize("how", ["save", "pickle", "joblib"])
def test_round_trips(tmp_path, sites, how):
    X, y = sites
    sharing = Common(p=1.1) + Group(p=1.1, q=1)
    model = MKLClassifier(["linear", ("v", "rbf", ["a"])], task="site", sharing=sharing, C=2.5, class_weight="balanced", n_jobs=1)
    model.fit(X, y)
    path = tmp_path / "model"
    match how:
        case "save":
            model.save(path)
            again = mtmkl.load(path)
        case "pickle":
            again = pickle.loads(pickle.dumps(model))
        case "joblib":
            joblib.dump(model, path)
            again = joblib.load(path)
    same(model, again)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(again.feature_names_in_, model.feature_names_in_)
    assert again.C == 2.5 and again.class_weight == "balanced" and again.task == "site" and again.n_jobs == 1
    # It can be fitted again and saved again.
    assert again.sharing.spec() == sharing.spec()
    np.testing.assert_array_equal(again.fit(X, y).decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("y", [[0, 1, 2], [1.0, 2.0, 70.0], ["b", "a", "ü"], [True, False, True]], ids=str)
def test_classes_keep_their_type(tmp_path, rng, y):
    X = rng.normal(size=(30, 2))
    labels = np.array(y)[np.arange(30) % 3]
    model = MKLClassifier(["linear"]).fit(X, labels)
    model.save(tmp_path / "model.mtmkl")
    again = mtmkl.load(tmp_path / "model.mtmkl")
    assert again.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(again.classes_, model.classes_)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_a_model_of_the_library_has_no_description_and_works(tmp_path, rng):
    """What a Rust program saves: tasks and columns, nothing about tables."""
    X = rng.normal(size=(20, 2))
    labels = np.where(X[:, 0] > 0, 1.0, -1.0)
    made = MKLClassifier(["linear", "rbf"], scale="none").fit(np.vstack([X, X + 0.1]), np.tile(labels, 2), task=np.repeat(["a", "b"], 20))
    bare = _core.fit(
        kernels=[(None, "linear"), (None, "rbf")],
        named=True,
        machine='{"name": "svc", "C": 1.0}',
        sharing='{"name": "pscs", "p": 2.0, "q": 1.0}',
        solver='{"name": "newton"}',
        normalize=None,
        target_scale="none",
        definiteness="check",
        sets=[{"values": X + shift, "columns": ["u", "v"], "grams": [], "origin": list(range(20)), "tasks": None} for shift in (0.0, 0.1)],
        tasks=[
            {"name": name, "samples": at, "rows": None, "kind": "labels", "targets": labels, "weights": None}
            for at, name in enumerate("ab")
        ],
        limits={
            "tolerance": 1e-4,
            "max_passes": 100,
            "time_limit": None,
            "threads": 1,
            "seed": 0,
            "memory_limit": 1.0,
            "precision": "double",
            "storage": None,
        },
        notes={},
    )
    bare.save(tmp_path / "model.mtmkl")
    model = mtmkl.load(tmp_path / "model.mtmkl")
    assert model.classes_.tolist() == [-1, 1] and model.tasks_.tolist() == ["a", "b"]
    np.testing.assert_allclose(model.decision_function(X, task="b"), made.decision_function(X, task="b"), atol=0.02)
    np.testing.assert_array_equal(model.predict(pd.DataFrame({"v": X[:, 1], "u": X[:, 0]}), task="a"), model.predict(X, task="a"))


def _product(A, B):
    return A @ B.T


def test_callable_kernels_are_pickled_but_not_saved(tmp_path, rng):
    X = rng.normal(size=(30, 2))
    model = MKLRegressor([_product, "rbf"]).fit(X, X[:, 0])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    with pytest.raises(ValueError, match=r"callable kernels cannot be saved.*pickle the estimator"):
        model.save(tmp_path / "model.mtmkl")
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_no_models(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        mtmkl.load(tmp_path / "none.mtmkl")
    assert caught.value.filename == str(tmp_path / "none.mtmkl")
    (tmp_path / "text.mtmkl").write_text("no model")
    with pytest.raises(ValueError, match="not a readable mtmkl model"):
        mtmkl.load(tmp_path / "text.mtmkl")
    X = np.eye(4)
    with pytest.raises(OSError, match="none"):
        MKLRegressor(["linear"]).fit(X, X[0]).save(tmp_path / "none" / "model.mtmkl")


# -- what is kept beside the model -------------------------------------------------------------------------------------------------------


def test_parameters_of_a_programs_model(program, folder):
    path = folder / "model.mtmkl"
    asked = ["--solver", "epf", "--tol", "0.05", "--max-passes", "77", "--time-limit", "60", "--memory-limit", "2", "--seed", "5"]
    options = ["--target", "sick", "--task", "site", "--kernel", "linear", "--kernel", "rbf", "--threads", "1", "--quiet"]
    run(program, "fit", folder / "sites.csv", *options, *asked, "-o", path)
    model = mtmkl.load(path)
    found = model.get_params()
    expected = {"solver": "epf", "tol": 0.05, "max_iter": 77, "time_limit": 60.0, "memory_limit": 2.0, "random_state": 5, "n_jobs": 1}
    assert {name: found[name] for name in expected} == expected
    assert found["indefinite"] == "check"
    assert (model.solver_, model.fallback_, model.rounded_) == ("epf", None, False)
    # Without the flags, what they are by default.
    run(program, "fit", folder / "sites.csv", *options, "--precision", "single", "-o", path)
    model = mtmkl.load(path)
    assert (model.solver, model.tol, model.max_iter, model.time_limit) == ("newton", 1e-4, 1000, None)
    # Kernels that can be made from rows are certified in double precision.
    assert (model.solver_, model.rounded_) == ("newton", False)


def test_the_solver_that_did_the_work_is_told(tmp_path, rng):
    X = rng.normal(size=(30, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    stack = np.stack([X @ X.T, -np.eye(30) + rbf_kernel(X)])
    model = MKLClassifier("precomputed", indefinite="allow", tol=1e-2).fit(stack, y)
    assert (model.solver, model.solver_, model.fallback_) == ("newton", "epf", "indefinite")
    model.save(tmp_path / "model.mtmkl")
    again = mtmkl.load(tmp_path / "model.mtmkl")
    assert (again.solver, again.solver_, again.fallback_, again.tol) == ("newton", "epf", "indefinite", 1e-2)
    plain = MKLClassifier(["linear"]).fit(X, y)
    assert (plain.solver_, plain.fallback_, plain.rounded_, plain.scores_) == ("newton", None, False, None)


def test_scores_of_the_program_are_kept_and_shown(program, folder):
    path = folder / "model.mtmkl"
    options = ["--target", "sick", "--task", "site", "--kernel", "linear", "--kernel", "rbf", "--baselines", "--test-fraction", "0.3"]
    printed = json.loads(run(program, "fit", folder / "sites.csv", *options, "--json", "-o", path))
    model = mtmkl.load(path)
    assert model.scores_ == printed["scores"]
    assert [method["name"].split(":")[0] for method in model.scores_["methods"]] == [
        "learned",
        "majority class",
        "uniform",
        "best single",
        "pooled",
        "each alone",
    ]
    run(program, "report", path, "-o", folder / "report.html")
    theirs, ours = (folder / "report.html").read_text(), model.report()
    for words in (
        "uniform average",
        "best single kernel: ",
        printed["scores"]["split"],
        "predicting sick",
        "rows learned from",
    ):
        assert words in theirs and words in ours, words


@pytest.mark.parametrize("name", ["classes", "numbers"])
def test_models_of_0_1_0_are_read_for_ever(name):
    """The program's tests hold the same files; they are never written again."""
    folder = ROOT / "crates" / "mtmkl-cli" / "tests" / "stored"
    new = pd.read_csv(folder / "new.csv", dtype={"ward": str})
    expected = pd.read_csv(folder / f"{name}-0.1.0.csv")["prediction"].to_numpy()
    found = mtmkl.load(folder / f"{name}-0.1.0.mtmkl").predict(new)
    if name == "classes":
        assert found.tolist() == expected.tolist()
    else:
        np.testing.assert_allclose(found, expected, atol=1e-9)
