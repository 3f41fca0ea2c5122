"""Probabilities of classes: what they are worth, and where they are not there."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import mtmkl
from mtmkl import MKLClassifier, MKLSearchCV


def noisy(seed, classes=2):
    """Labels of which one in six is wrong: nobody can be surer than that."""
    return make_classification(600, 6, n_informative=4, n_classes=classes, flip_y=0.3, class_sep=1.5, random_state=seed)


@pytest.mark.parametrize("classes", [2, 4])
def test_they_are_as_good_as_scikit_learns_wrapper(classes):
    ours, theirs = [], []
    for seed in range(3):
        X, Z, y, z = train_test_split(*noisy(seed, classes), random_state=seed)
        model = MKLClassifier("rbf:gamma=scale", probability=True, tol=1e-6).fit(X, y)
        wrapped = CalibratedClassifierCV(make_pipeline(StandardScaler(), SVC()), ensemble=False).fit(X, y)
        ours.append(log_loss(z, model.predict_proba(Z)))
        theirs.append(log_loss(z, wrapped.predict_proba(Z)))
        assert np.mean(model.predict_proba(Z).argmax(axis=1) == z) > 0.55
    assert np.mean(ours) < np.mean(theirs) + 0.02


def test_what_they_are():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = MKLClassifier(probability=True, random_state=0).fit(X, names)
    p = model.predict_proba(X)
    assert p.shape == (150, 3) and p.min() >= 0
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict_log_proba(X), np.log(p))
    assert np.mean(model.classes_[p.argmax(axis=1)] == names) > 0.95
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), p)
    # One against all others: the sigmoids add up to one.
    rest = MKLClassifier(probability=True, multiclass="ova").fit(X, names).predict_proba(X)
    np.testing.assert_allclose(rest.sum(axis=1), 1.0)
    # Order of rows and number of threads make no difference.
    order = np.random.default_rng(0).permutation(150)
    again = MKLClassifier(probability=True, random_state=0, n_jobs=1).fit(X[order], names[order])
    np.testing.assert_array_equal(again.predict_proba(X), p)


def test_they_are_probabilities_of_the_rows_whatever_an_error_costs():
    X, y = noisy(3)
    rare = (y == 0) | (np.arange(len(y)) % 5 == 0)
    X, Z, y, z = train_test_split(X[rare], y[rare], random_state=0)
    plain = MKLClassifier(probability=True).fit(X, y).predict_proba(Z)[:, 1]
    balanced = MKLClassifier(probability=True, class_weight="balanced").fit(X, y).predict_proba(Z)[:, 1]
    assert abs(plain.mean() - y.mean()) < 0.06 and abs(balanced.mean() - y.mean()) < 0.06
    assert brier_score_loss(z, balanced) < y.mean() * (1 - y.mean())
    # A sample of weight 2 counts twice.
    twice = MKLClassifier(probability=True, random_state=1).fit(np.vstack([X, X]), np.tile(y, 2)).predict_proba(Z)
    heavy = MKLClassifier(probability=True, random_state=1).fit(X, y, sample_weight=np.full(len(y), 2.0)).predict_proba(Z)
    np.testing.assert_array_equal(twice, heavy)


def test_logistic_regression_has_its_own(tmp_path):
    X, y = noisy(4)
    X, Z, y, z = train_test_split(X, y, random_state=0)
    model = MKLClassifier(["linear", "rbf:gamma=scale"], machine="logistic", tol=1e-8).fit(X, y)
    p = model.predict_proba(Z)[:, 1]
    np.testing.assert_allclose(p, 1 / (1 + np.exp(-model.decision_function(Z))), rtol=1e-12)
    np.testing.assert_array_equal(p > 0.5, model.predict(Z) == 1)
    assert log_loss(z, p) < 0.6
    # At the optimum b is stationary: what is expected of each class is there.
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=1e-6)
    # In other units of the data, a linear kernel is scikit-learn's logistic regression without a penalty on the offset.
    linear = MKLClassifier("linear", machine="logistic", C=1.0, sharing="uniform", scale="none", normalize="none", tol=1e-10).fit(X, y)
    theirs = LogisticRegression(tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(linear.predict_proba(Z), theirs.predict_proba(Z), atol=1e-5)
    model.save(tmp_path / "m")
    loaded = mtmkl.load(tmp_path / "m")
    assert loaded.machine == "logistic"
    np.testing.assert_array_equal(loaded.predict_proba(Z)[:, 1], p)


@pytest.mark.parametrize("multiclass", ["ovo", "ova"])
def test_logistic_regression_on_several_classes(multiclass):
    X, Z, y, z = train_test_split(*noisy(2, 4), random_state=2)
    p = MKLClassifier(machine="logistic", multiclass=multiclass).fit(X, y).predict_proba(Z)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert log_loss(z, p) < 1.2


def test_logistic_regression_forgets_what_an_error_costs():
    X, y = noisy(3)
    rare = (y == 0) | (np.arange(len(y)) % 5 == 0)
    X, y = X[rare], y[rare]
    # Its own prior comes back whatever the classes cost, given or balanced.
    for weight in ("balanced", {0: 1.0, 1: 7.0}):
        p = MKLClassifier(machine="logistic", class_weight=weight).fit(X, y).predict_proba(X)[:, 1]
        assert abs(p.mean() - y.mean()) < 0.04
    # A sample of weight 2 counts twice, also where weights are not those of classes; a weight of 0 is not there.
    weights = np.where(np.arange(len(y)) % 3 == 0, 2.0, np.where(np.arange(len(y)) % 7 == 0, 0.0, 1.0))
    heavy = MKLClassifier(machine="logistic", tol=1e-8).fit(X, y, sample_weight=weights).predict_proba(X)
    again = np.repeat(np.arange(len(y)), weights.astype(int))
    twice = MKLClassifier(machine="logistic", tol=1e-8).fit(X[again], y[again]).predict_proba(X)
    np.testing.assert_allclose(heavy, twice, atol=1e-6)


def test_with_tasks(sites, tmp_path):
    X, y = sites
    model = MKLClassifier(["linear", "rbf:sigma=1"], task="site", probability=True, new_tasks="common").fit(X, y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert log_loss(y, p) < 0.6
    # Each task has a sigmoid of its own, a new one that of all.
    new = model.predict_proba(X.assign(site="east"))
    assert new.shape == p.shape and not np.allclose(new, p)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(mtmkl.load(tmp_path / "m").predict_proba(X), p)
    # Precomputed kernels have folds as well.
    rows = X[["a", "b", "c", "d"]].to_numpy()
    stack = np.stack([rows @ rows.T, np.exp(-((rows[:, None] - rows[None]) ** 2).sum(axis=2) / 2)])
    given = MKLClassifier("precomputed", probability=True).fit(stack, y)
    np.testing.assert_allclose(given.predict_proba(stack).sum(axis=1), 1.0)


def test_tasks_with_several_classes(sites):
    X, _ = sites
    y = np.array(["low", "mid", "high"])[np.digitize(X["a"] + 0.5 * X["c"], [-0.5, 0.5])]
    y = np.where((X["site"] == "west") & (y == "mid"), "low", y)
    model = MKLClassifier(["linear", "rbf:sigma=1"], task="site", probability=True, C=10).fit(X, y)
    assert [str(name) for name in model.tasks_ if name.startswith("west")] == ["west: high-low"]
    assert len(model.tasks_) == 7
    assert model.score(X, y) > 0.85
    west = (X["site"] == "west").to_numpy()
    mid = model.classes_.tolist().index("mid")
    assert np.all(model.predict_proba(X)[west, mid] == 0) and np.all(model.decision_function(X)[west, mid] == -np.inf)
    assert "mid" not in model.predict(X)[west]
    # What is searched for is what is fitted.
    search = MKLSearchCV(MKLClassifier(["linear", "rbf:sigma=1"], task="site"), {"C": [1.0, 10.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.6
    with pytest.raises(ValueError, match="which of several classes a new task has is not known"):
        model.set_params(new_tasks="common").predict(X.assign(site="east"))


def test_where_they_are_not_there():
    X, y = noisy(0)
    model = MKLClassifier().fit(X, y)
    assert not hasattr(model, "predict_proba") and hasattr(MKLClassifier(probability=True), "predict_proba")
    assert hasattr(MKLClassifier(machine="logistic"), "predict_proba")
    with pytest.raises(ValueError, match="machine is 'svr', expected 'svc' or 'logistic'"):
        MKLClassifier(machine="svr").fit(X, y)
    with pytest.raises(AttributeError, match="predict_proba"):
        model.predict_proba(X)
    with pytest.raises(ValueError, match="no class of a task has two samples"):
        MKLClassifier(probability=True).fit([[0.0], [1.0]], [0, 1])


def test_searches_by_probability():
    X, y = noisy(1)
    scores = cross_val_score(MKLClassifier("rbf", probability=True), X, y, scoring="neg_log_loss", cv=3)
    assert np.all(scores > -0.69)
    grid = GridSearchCV(MKLClassifier("rbf", probability=True), {"C": [0.1, 1.0]}, scoring="neg_log_loss", cv=3).fit(X, y)
    assert grid.best_score_ > -0.69
    # The search on the core has decisions only, and refits with probabilities.
    search = MKLSearchCV(MKLClassifier("rbf", probability=True), {"C": [0.1, 1.0]}, cv=3).fit(X, y)
    np.testing.assert_allclose(search.predict_proba(X).sum(axis=1), 1.0)
    with pytest.raises(ValueError, match="GridSearchCV"):
        MKLSearchCV(MKLClassifier("rbf", probability=True), {"C": [0.1, 1.0]}, cv=3, scoring="neg_log_loss").fit(X, y)
