"""Simpler answers beside an estimator's."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

from mtmkl import KernelStack, MKLClassifier, MKLOneClassSVM, MKLRegressor, baselines


def test_they_are_what_one_would_make_by_hand():
    X, y = load_iris(return_X_y=True)
    model = MKLClassifier(["linear", "rbf:sigma=1"])
    cv = StratifiedKFold(4, shuffle=True, random_state=1)
    found = baselines(model, X, y, cv=cv)
    assert set(found) == {"learned", "majority class", "uniform", "best single"}
    np.testing.assert_array_equal(found["learned"], cross_val_score(model, X, y, cv=cv))
    np.testing.assert_array_equal(found["majority class"], cross_val_score(DummyClassifier(), X, y, cv=cv))
    uniform = MKLClassifier(["linear", "rbf:sigma=1"], sharing="uniform")
    np.testing.assert_array_equal(found["uniform"], cross_val_score(uniform, X, y, cv=cv))
    assert found["best single"].min() > 0.85


def test_with_tasks(sites):
    X, y = sites
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    found = baselines(MKLClassifier(["linear", "rbf:sigma=1"], task="site"), X, y, cv=cv, scoring="balanced_accuracy")
    assert list(found) == ["learned", "majority class", "uniform", "best single", "pooled", "each alone"]
    # The tasks depend on different views.
    assert found["learned"].mean() > found["pooled"].mean()
    plain = cross_val_score(MKLClassifier(["linear", "rbf:sigma=1"]), X.drop(columns="site"), y, cv=cv, scoring="balanced_accuracy")
    np.testing.assert_array_equal(found["pooled"], plain)
    # The same as an array, with the task by position; and by the probability of the classes.
    array = X.to_numpy(dtype=object)
    again = baselines(MKLClassifier(["linear", "rbf:sigma=1"], task=4, probability=True), array, y, cv=cv, scoring="neg_log_loss")
    assert again["learned"].mean() > again["majority class"].mean()


def test_of_numbers_and_of_stacks():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:150] * 20, y[:150]
    cv = KFold(3, shuffle=True, random_state=0)
    tasks = pd.DataFrame(X).rename(columns=str).assign(half=np.where(np.arange(150) < 75, "a", "b"))
    found = baselines(MKLRegressor(["linear", "rbf:sigma=4"], task="half"), tasks, y, cv=cv)
    assert found["learned"].mean() > 0.2 > found["mean"].mean()
    stack = KernelStack(np.stack([X @ X.T, np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 32)]))
    given = baselines(MKLRegressor("precomputed"), stack, y, cv=cv)
    assert given["learned"].mean() > 0.2 and given["best single"].mean() > 0.2


def test_what_is_refused():
    with pytest.raises(TypeError, match="expected MKLClassifier or MKLRegressor"):
        baselines(MKLOneClassSVM(), np.eye(4), [1, 1, 1, 1])
    with pytest.raises(TypeError, match="DummyClassifier"):
        baselines(DummyClassifier(), np.eye(4), [1, 0, 1, 0])
