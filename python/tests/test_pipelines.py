"""scikit-learn's machinery around the estimators: pipelines, searches, calibration, clones, routing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from mtmkl import PSCS, Common, Group, KernelStack, MKLClassifier, MKLOneClassSVM, MKLRegressor, Tang

KERNELS = ["linear", ("view 1", "rbf:gamma=scale", ["a", "b"]), ("view 2", "rbf:gamma=scale", ["c", "d"])]


def scaled_but_for(column):
    """StandardScaler on all columns but one, names kept."""
    return ColumnTransformer(
        [("scale", StandardScaler(), ["a", "b", "c", "d"])], remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")


def folds(X, y):
    return list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, X["site"] + y))


def test_grid_search_in_a_pipeline_with_a_task_column(sites):
    X, y = sites
    pipeline = Pipeline([("prepare", scaled_but_for("site")), ("mkl", MKLClassifier(KERNELS, task="site"))])
    search = GridSearchCV(
        pipeline,
        [
            {"mkl__C": [0.1, 10], "mkl__sharing": ["pscs", "group"], "mkl__p": [1, 2], "mkl__q": [1, 2]},
            {"mkl__sharing": [Common(p=1.1) + Group(p=1.1, q=1), Tang(0.5), PSCS(1.5, 1)]},
        ],
        cv=folds(X, y),
        n_jobs=2,
        error_score="raise",
    ).fit(X, y)
    assert len(search.cv_results_["params"]) == 2 * 2 * 2 * 2 + 3
    assert search.best_score_ > 0.75
    best = search.best_estimator_["mkl"]
    assert list(best.tasks_) == ["north", "south", "west"]
    assert best.kernel_weights_.shape == (3, 3)
    assert set(search.predict(X)) == {"yes", "no"}
    # The task matters: another site, another machine.
    moved = X.assign(site="north")
    assert np.any(search.decision_function(X) != search.decision_function(moved))


def test_two_processes_find_what_one_finds(sites):
    X, y = sites
    model = MKLClassifier(KERNELS, task="site")
    one, two = (
        GridSearchCV(model, {"C": [0.1, 1, 10]}, cv=folds(X, y), n_jobs=jobs).fit(X, y).cv_results_["mean_test_score"] for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one, two)


def test_a_task_column_by_index_in_a_plain_array(sites):
    X, y = sites
    array = np.column_stack([X[["a", "b"]], pd.factorize(X["site"], sort=True)[0], X[["c", "d"]]])
    by_index = MKLClassifier(["linear", ("view 1", "rbf", [0, 1]), ("view 2", "rbf", [3, -1])], task=2).fit(array, y)
    by_name = MKLClassifier(["linear", ("view 1", "rbf", ["a", "b"]), ("view 2", "rbf", ["c", "d"])], task="site").fit(X, y)
    np.testing.assert_array_equal(by_index.kernel_weights_, by_name.kernel_weights_)
    np.testing.assert_array_equal(by_index.decision_function(array), by_name.decision_function(X))
    assert by_index.n_features_in_ == 5
    assert list(by_index.tasks_) == ["0.0", "1.0", "2.0"]
    assert cross_val_score(by_index, array, y, cv=folds(X, y)).mean() > 0.7


def test_neighbours_that_speak_pandas_or_polars(sites):
    X, y = sites
    numbers = X.assign(site=pd.factorize(X["site"], sort=True)[0])
    for output in ("default", "pandas", "polars"):
        steps = make_pipeline(
            ColumnTransformer(
                [("scale", StandardScaler(), ["a", "b", "c", "d"])], remainder="passthrough", verbose_feature_names_out=False
            ),
            MKLClassifier(["linear", "rbf"], task=4),
        ).set_output(transform=output)
        assert steps.fit(numbers, y).score(numbers, y) > 0.7


def test_calibrated_probabilities(sites):
    X, y = sites
    model = CalibratedClassifierCV(MKLClassifier(KERNELS, task="site"), ensemble=False, cv=folds(X, y)).fit(X, y)
    probability = model.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert np.mean(model.predict(X) == y) > 0.75


def test_calibrated_probabilities_of_three_classes():
    X, y = load_iris(return_X_y=True)
    model = CalibratedClassifierCV(MKLClassifier(["linear", "rbf"]), ensemble=False, cv=3).fit(X, y)
    assert model.predict_proba(X).shape == (150, 3)
    assert model.score(X, y) > 0.9


def test_clones_are_equal_and_unfitted(sites):
    X, y = sites
    model = MKLClassifier(KERNELS, task="site", sharing=Common(p=1.1) + Group(p=1.1, q=1), C=3).fit(X, y)
    twin = clone(model)
    assert not hasattr(twin, "kernel_weights_")
    assert repr(twin.get_params()) == repr(model.get_params())
    np.testing.assert_array_equal(twin.fit(X, y).decision_function(X), model.decision_function(X))


def test_cross_validation_of_kernel_stacks(rng):
    X = rng.normal(size=(70, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0, "in", "out")
    stack = KernelStack(np.stack([X @ X.T, (1 + X @ X.T) ** 2]))
    for normalize in (False, True):
        given = cross_val_predict(MKLClassifier("precomputed", normalize=normalize), stack, y, cv=4, method="decision_function")
        computed = cross_val_predict(
            MKLClassifier(["linear", "poly:degree=2,gamma=1,coef0=1"], scale="none", normalize=normalize, tol=1e-4),
            X,
            y,
            cv=4,
            method="decision_function",
        )
        np.testing.assert_allclose(given, computed, atol=0.02)
    search = GridSearchCV(MKLClassifier("precomputed"), {"C": [0.1, 1], "p": [1, 2]}, cv=3).fit(stack, y)
    assert search.best_score_ > 0.8


def test_metadata_routing_of_a_task_array(sites):
    X, y = sites
    rows, task = X[["a", "b", "c", "d"]].to_numpy(), X["site"].to_numpy()
    with sklearn.config_context(enable_metadata_routing=True):
        model = MKLClassifier(["linear", "rbf"]).set_fit_request(task=True).set_predict_request(task=True).set_score_request(task=True)
        pipeline = make_pipeline(StandardScaler(), model).fit(rows, y, task=task)
        assert list(pipeline[-1].tasks_) == ["north", "south", "west"]
        scores = cross_val_score(pipeline, rows, y, cv=folds(X, y), params={"task": task})
    assert scores.mean() > 0.7


def test_regression_with_transformed_targets():
    X, y = load_diabetes(return_X_y=True)
    model = TransformedTargetRegressor(MKLRegressor(["linear", "rbf:gamma=scale"], alpha=0.3), transformer=StandardScaler())
    assert cross_val_score(model, X, y, cv=3).mean() > 0.4


def test_scaled_outlier_detection(rng):
    X = rng.normal(size=(60, 3)) * [1, 10, 100]
    X[0] = [8, 80, 800]
    model = make_pipeline(StandardScaler(), MKLOneClassSVM("rbf:sigma=1|2|4", nu=0.1))
    found = model.fit_predict(X)
    assert found[0] == -1 and np.mean(found == 1) > 0.8
    assert pytest.approx(model.decision_function(X)) == model.score_samples(X) - model[-1].offset_
