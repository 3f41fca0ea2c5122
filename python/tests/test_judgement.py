"""Scores against scikit-learn's, weights of classes through both doors, and warnings."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.utils.class_weight import compute_class_weight
from test_doors import contents
from test_files import run

import mtmkl
from mtmkl import MKLSVDD, DataWarning, MKLClassifier, MKLOneClassSVM, MKLRegressor

NUMBERS = {
    "R2": metrics.r2_score,
    "RMSE": metrics.root_mean_squared_error,
    "MAE": metrics.mean_absolute_error,
}


def table(rng, count, tasks=False):
    """Numbers, a class that they tell with some noise, one of three kinds, and a target with noise."""
    X = rng.normal(size=(count, 3)).round(4)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    noise = rng.normal(size=count)
    frame["y"] = (X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * noise).round(4)
    frame["sick"] = np.where(frame["y"] + 0.5 * noise > 1.0, "yes", "no")
    frame["kind"] = np.array(["k", "l", "m"])[np.digitize(frame["y"], [-0.3, 0.9])]
    if tasks:
        frame["site"] = rng.choice(["x", "y", "z"], size=count)
    return frame


def fitted(program, folder, frame, target, *options):
    """A model of the first half, what it says of the second, and what `evaluate` says of that."""
    keep = [column for column in ("a", "b", "c", target, "site") if column in frame]
    frame = frame[keep]
    train, test = frame.iloc[: len(frame) // 2], frame.iloc[len(frame) // 2 :].reset_index(drop=True)
    train.to_csv(folder / "train.csv", index=False)
    test.to_csv(folder / "test.csv", index=False)
    task = ["--task", "site"] if "site" in frame else []
    common = ["fit", folder / "train.csv", "--target", target, *task, "--kernel", "rbf:sigma=2", "--quiet", *options]
    run(program, *common, "-o", folder / "model")
    return mtmkl.load(folder / "model"), test


def found(program, folder, metric):
    return json.loads(run(program, "evaluate", folder / "model", folder / "test.csv", "--metric", metric, "--json"))


@pytest.mark.parametrize("tasks", [False, True])
def test_scores_of_two_classes_are_those_of_scikit_learn(program, tmp_path, rng, tasks):
    model, test = fitted(program, tmp_path, table(rng, 240, tasks), "sick")
    X, truth = test.drop(columns="sick"), test["sick"]
    if tasks:
        model.set_params(task="site")
    said, decisions = model.predict(X), model.decision_function(X)
    scores = {
        "accuracy": lambda rows: metrics.accuracy_score(truth[rows], said[rows]),
        "balanced-accuracy": lambda rows: metrics.balanced_accuracy_score(truth[rows], said[rows]),
        "F1": lambda rows: metrics.f1_score(truth[rows], said[rows], pos_label="yes"),
        "AUC": lambda rows: metrics.roc_auc_score(truth[rows], decisions[rows]),
        "average-precision": lambda rows: metrics.average_precision_score(truth[rows], decisions[rows], pos_label="yes"),
    }
    groups = [np.flatnonzero(test["site"] == site) for site in sorted(set(test["site"]))] if tasks else [np.arange(len(test))]
    for name, score in scores.items():
        evaluated = found(program, tmp_path, name)
        by_task = [score(rows) for rows in groups]
        assert evaluated["metric"] == name
        assert [task["score"] for task in evaluated["tasks"]] == pytest.approx(by_task, abs=1e-12)
        assert evaluated["mean"] == pytest.approx(np.mean(by_task), abs=1e-12)
        assert evaluated["together"] == pytest.approx(score(np.arange(len(test))), abs=1e-12)
        assert evaluated["metrics"][name] == {"mean": evaluated["mean"], "together": evaluated["together"]}
        assert {"accuracy", "balanced-accuracy", "AUC"} <= set(evaluated["metrics"])
        assert evaluated["confusion"]["counts"] == metrics.confusion_matrix(truth, said, labels=["no", "yes"]).tolist()


def test_scores_of_several_classes_are_those_of_scikit_learn(program, tmp_path, rng):
    for scheme in ("ova", "ovo"):
        model, test = fitted(program, tmp_path, table(rng, 240), "kind", "--multiclass", scheme)
        X, truth = test.drop(columns="kind"), test["kind"]
        said, values = model.predict(X), model.decision_function(X)
        sides = np.array([[kind == name for name in "klm"] for kind in truth])
        scores = {
            "accuracy": metrics.accuracy_score(truth, said),
            "balanced-accuracy": metrics.balanced_accuracy_score(truth, said),
            "F1": metrics.f1_score(truth, said, average="macro"),
            "AUC": metrics.roc_auc_score(sides, values, average="macro"),
            "average-precision": metrics.average_precision_score(sides, values, average="macro"),
        }
        for name, score in scores.items():
            evaluated = found(program, tmp_path, name)
            assert evaluated["mean"] == evaluated["together"] == pytest.approx(score, abs=1e-12)
        assert evaluated["confusion"]["counts"] == metrics.confusion_matrix(truth, said).tolist()


@pytest.mark.parametrize("tasks", [False, True])
def test_scores_of_numbers_are_those_of_scikit_learn(program, tmp_path, rng, tasks):
    model, test = fitted(program, tmp_path, table(rng, 200, tasks), "y", "--machine", "krr", "--lambda", "0.5")
    X, truth = test.drop(columns="y"), test["y"]
    if tasks:
        model.set_params(task="site")
    said = model.predict(X)
    groups = [np.flatnonzero(test["site"] == site) for site in sorted(set(test["site"]))] if tasks else [np.arange(len(test))]
    for name, score in NUMBERS.items():
        evaluated = found(program, tmp_path, name)
        assert evaluated["mean"] == pytest.approx(np.mean([score(truth[rows], said[rows]) for rows in groups]), abs=1e-12)
        assert evaluated["together"] == pytest.approx(score(truth, said), abs=1e-12)
        assert evaluated["metrics"].keys() == NUMBERS.keys()
        # The mean of these rows, task by task, is worth nothing.
        baseline = evaluated["baselines"][0]
        assert baseline["name"] == "mean of these rows"
        assert baseline["metrics"]["R2"]["mean"] == pytest.approx(0.0, abs=1e-12)


def test_weights_of_classes_are_the_same_through_both_doors(program, tmp_path):
    for seed in range(24):
        rng = np.random.default_rng(seed)
        tasks, several = seed % 3 == 0, seed % 3 == 1
        frame = table(rng, 60, tasks)
        target = "kind" if several else "sick"
        keep = ["a", "b", "c", target, *(["site"] if tasks else [])]
        frame = pd.concat([frame[keep], frame[keep].iloc[:3]], ignore_index=True)
        weights = rng.integers(1, 4, size=len(frame)) / 3
        if seed % 2:
            chosen, flag = "balanced", "balanced"
        else:
            chosen = {name: 0.5 + at for at, name in enumerate(sorted(set(frame[target])))}
            flag = ",".join(f"{name}={weight}" for name, weight in chosen.items())
        frame.assign(w=weights).to_csv(tmp_path / "t.csv", index=False)
        options = ["--task", "site"] if tasks else []
        limits = ["--tol", "1e-2", "--max-passes", "50", "--threads", "1", "--quiet"]
        kernels = ["--kernel", "linear", "--kernel", "rbf:sigma=1|4"]
        common = ["fit", tmp_path / "t.csv", "--target", target, *options, *kernels, *limits, "--sample-weight", "w"]
        run(program, *common, "--class-weight", flag, "-o", tmp_path / "theirs", codes=(0, 1))
        model = MKLClassifier(["linear", "rbf:sigma=1|4"], class_weight=chosen, tol=1e-2, max_iter=50, n_jobs=1)
        model.set_params(task="site" if tasks else None)
        model.fit(frame.drop(columns=target), frame[target], sample_weight=weights)
        model.save(tmp_path / "ours")
        theirs, ours = contents(tmp_path / "theirs"), contents(tmp_path / "ours")
        assert ours[1] == theirs[1], f"seed {seed}"


def test_balanced_is_scikit_learns(rng):
    frame = table(rng, 90)
    X, y = frame[["a", "b", "c"]], frame["kind"]
    by_hand = compute_class_weight("balanced", classes=np.unique(y), y=y)
    given = dict(zip(np.unique(y), by_hand, strict=True))
    kernels = ["linear", "rbf"]
    a = MKLClassifier(kernels, class_weight="balanced", tol=1e-8).fit(X, y)
    b = MKLClassifier(kernels, class_weight=given, tol=1e-8).fit(X, y)
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-9)


def test_a_kernel_that_tells_nothing_is_warned_of(rng):
    frame = table(rng, 60)
    X, y = frame[["a", "b", "c"]], frame["sick"]
    for kernel, said in (("rbf:sigma=0.001", "nearly the identity"), ("rbf:sigma=100000", "nearly constant")):
        with pytest.warns(DataWarning, match=f"{said}.*`{kernel}`"):
            MKLClassifier([kernel, "rbf:sigma=2"]).fit(X, y)
        with pytest.warns(DataWarning, match=said):
            MKLRegressor([kernel]).fit(X, frame["y"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        MKLClassifier().fit(X, y)
        MKLClassifier(["linear", "rbf:sigma=1|2|4"]).fit(X, y)
        MKLRegressor().fit(X, frame["y"])


def test_numbers_taken_for_classes_are_warned_of(rng):
    X = rng.normal(size=(60, 2))
    with pytest.warns(DataWarning, match="y has 30 different numbers in 60 samples"):
        MKLClassifier(["linear"], max_iter=3, tol=1.0).fit(X, np.arange(60) % 30)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        MKLClassifier(["linear"], tol=1.0).fit(X, np.arange(60) % 10)
        MKLClassifier(["linear"], tol=1.0).fit(X, np.array([f"c{at}" for at in range(60)]).repeat(1)[np.arange(60) % 30])


def test_widths_learned_without_labels_are_warned_of(rng):
    X = rng.normal(size=(40, 2))
    for estimator in (MKLOneClassSVM, MKLSVDD):
        with pytest.warns(DataWarning, match="learns the weights of 2 kernels without labels"):
            estimator(["rbf:sigma=1|2"], sharing="simplex").fit(X)
        with warnings.catch_warnings():
            warnings.simplefilter("error", DataWarning)
            estimator(["rbf:sigma=1|2"]).fit(X)
            estimator(["rbf:sigma=1"]).fit(X)
