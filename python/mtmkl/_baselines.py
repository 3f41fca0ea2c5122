"""Simpler answers beside an estimator's: what learning weights, and sharing them, is worth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import accuracy_score, check_scoring, r2_score
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _num_samples, indexable

from ._base import MKLEstimator
from ._search import MKLSearchCV, splits_of
from ._sharing import Fixed
from ._table import without_columns
from ._transfer import columns_of, is_wanted, without_tasks

#: Folds of the training rows by which the best single kernel is chosen.
_INNER = 3


def baselines(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    groups: Any = None,
    scoring: Any = None,
) -> dict[str, NDArray[np.float64]]:
    """Scores of an estimator beside those of simpler answers, on the same folds.

    Each answer is made of a fold's training rows alone; so is the choice of the best single kernel, by three folds of these.

    Parameters
    ----------
    estimator : MKLClassifier or MKLRegressor
        What is compared. Tasks are a column of X, named by its parameter ``task``.
    X, y : as in the estimator's `fit`
    cv : int, splitter or iterable of splits, default=5
        As in `MKLSearchCV`: with tasks, a number of folds is within each of them.
    groups : array-like of shape (n_samples,), optional
        Rows of one group stay together, where ``cv`` is a splitter that knows groups.
    scoring : str or callable, optional
        A scorer. By default the estimator's `score`: accuracy or R².

    Returns
    -------
    dict of str to ndarray of shape (n_splits,)
        "learned", the estimator as it is; "majority class" or "mean" (of each task); "uniform", all kernels alike; "best single", one
        kernel; and with tasks "pooled", one model of all rows, and (but with ``transfer``) "each alone", nothing shared.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mtmkl import MKLClassifier, baselines
    >>> X, y = load_iris(return_X_y=True)
    >>> found = baselines(MKLClassifier(), X, y, cv=3)
    >>> sorted(found)
    ['best single', 'learned', 'majority class', 'uniform']
    >>> bool(found["learned"].mean() > found["majority class"].mean())
    True
    """
    if not isinstance(estimator, MKLEstimator) or estimator._kind == "none":
        raise TypeError(f"estimator is {type(estimator).__name__}, expected MKLClassifier or MKLRegressor")
    X, y, groups = indexable(X, y, groups)
    scorer = check_scoring(estimator, scoring=scoring)
    splits = splits_of(cv, estimator, X, y, groups=groups)
    answers = _answers(estimator)
    found: dict[str, list[float]] = {name: [] for name in answers}
    for train, test in splits:
        learn = _safe_split(estimator, X, y, train)
        held = _safe_split(estimator, X, y, test, train)
        for name, make in answers.items():
            found[name].append(float(scorer(make.fit(*learn), *held)))
    return {name: np.array(scores) for name, scores in found.items()}


def _answers(estimator: MKLEstimator) -> dict[str, Any]:
    """The answers, not fitted yet."""
    constant = "majority class" if is_classifier(estimator) else "mean"
    answers: dict[str, Any] = {
        "learned": clone(estimator),
        constant: _Constant(is_classifier(estimator), estimator.task),
        "uniform": clone(estimator).set_params(sharing="uniform"),
        "best single": _BestSingle(estimator),
    }
    if estimator.task is not None:
        answers["pooled"] = _Pooled(estimator)
        # One machine that learns from all tasks has no sharing between them that could be left out.
        if not is_wanted(estimator):
            answers["each alone"] = clone(estimator).set_params(sharing="independent")
    return answers


class _Around:
    """An answer that is another estimator's, fitted in some way of its own."""

    model: Any

    def __getattr__(self, name: str) -> Any:
        if name == "model":
            raise AttributeError(name)
        return getattr(self.model, name)

    def __sklearn_tags__(self) -> Any:
        return self.model.__sklearn_tags__()


class _BestSingle(_Around):
    """The kernel that does best alone on folds of the training rows."""

    def __init__(self, estimator: MKLEstimator) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> _BestSingle:
        # How many kernels there are is known when the columns are.
        count = len(clone(self.estimator).set_params(sharing="uniform", max_iter=1, tol=1.0).fit(X, y).kernel_names_)
        alone = [Fixed([float(at == kernel) for at in range(count)]) for kernel in range(count)]
        self.model = MKLSearchCV(clone(self.estimator), {"sharing": alone}, cv=_INNER).fit(X, y)
        return self


class _Pooled(_Around):
    """One model of the rows of all tasks."""

    def __init__(self, estimator: MKLEstimator) -> None:
        self.columns = [estimator.task, *columns_of(estimator.groups)]
        self.model = clone(estimator).set_params(task=None, transfer=None, groups=None, task_offset=True)
        if is_wanted(self.model):
            self.model.set_params(kernels=without_tasks(estimator.kernels))

    def fit(self, X: Any, y: Any) -> _Pooled:
        self.model.fit(self._others(X), y)
        return self

    def _others(self, X: Any) -> Any:
        return without_columns(X, self.columns)

    def predict(self, X: Any) -> Any:
        return self.model.predict(self._others(X))

    def decision_function(self, X: Any) -> Any:
        return self.model.decision_function(self._others(X))

    def predict_proba(self, X: Any) -> Any:
        return self.model.predict_proba(self._others(X))

    def score(self, X: Any, y: Any) -> float:
        return float(self.model.score(self._others(X), y))


class _Constant(_Around):
    """The most frequent class or the mean of each task."""

    def __init__(self, is_classifier: bool, column: Any) -> None:
        self.is_classifier, self.column = is_classifier, column
        self.model = self._new()

    def _new(self) -> Any:
        return DummyClassifier(strategy="most_frequent") if self.is_classifier else DummyRegressor()

    def _tasks(self, X: Any) -> NDArray[Any]:
        if self.column is None:
            return np.zeros(_num_samples(X), dtype=object)
        if hasattr(X, "columns"):
            return np.asarray(X[self.column] if isinstance(self.column, str) else X.iloc[:, self.column]).astype(str)
        return np.asarray(X)[:, self.column].astype(str)

    def fit(self, X: Any, y: Any) -> _Constant:
        tasks, y = self._tasks(X), np.asarray(y)
        self.model.fit(np.zeros((len(y), 1)), y)
        self.own = {name: self._new().fit(np.zeros((np.sum(tasks == name), 1)), y[tasks == name]) for name in np.unique(tasks)}
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        tasks = self._tasks(X)
        said: NDArray[Any] = self.model.predict(np.zeros((len(tasks), 1)))
        for name, own in self.own.items():
            said[tasks == name] = own.predict(np.zeros((1, 1)))[0]
        return said

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """It puts no sample before another."""
        count = len(self._tasks(X))
        return np.zeros(count if len(self.model.classes_) == 2 else (count, len(self.model.classes_)))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        tasks = self._tasks(X)
        probabilities = np.zeros((len(tasks), len(self.model.classes_)))
        for name in np.unique(tasks):
            own = self.own.get(name, self.model)
            probabilities[np.ix_(tasks == name, np.searchsorted(self.model.classes_, own.classes_))] = own.class_prior_
        return probabilities

    def score(self, X: Any, y: Any) -> float:
        said = self.predict(X)
        return float(accuracy_score(y, said) if self.is_classifier else r2_score(y, said))
