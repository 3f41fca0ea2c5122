"""Choosing parameters by cross-validation: folds are views of one set of Gram matrices, and fits start from their neighbours."""

from __future__ import annotations

import copy
import json
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, indexable

from . import _core
from ._base import MKLEstimator, Problem
from ._fitted import Answer
from ._kernels import kernel_specs
from ._parameters import threads
from ._sharing import Fixed, sharing_spec
from ._table import column_of, tasks_of, text
from ._transfer import check as check_transfer
from ._transfer import is_wanted

#: Parameters of the machine and of the sharing: cells that differ in these alone share Gram matrices.
_OF_CELLS = frozenset({"C", "alpha", "nu", "epsilon", "sharing", "p", "q", "radius"})
#: Parameters of machines whose name in Python is another.
_IN_PYTHON = {"lambda": "alpha"}


class MKLSearchCV(BaseSearchCV):  # type: ignore[misc]
    """Chooses parameters of an estimator of this package by cross-validation, and fits it with them.

    It does what `sklearn.model_selection.GridSearchCV` does, on the core: kernel matrices are computed once, folds are views of them, each
    fit starts from the solution of its neighbour, and all cores are used. Without a grid it is the search of ``mtmkl tune``: prices of
    errors, each kernel alone, the average of all, and learned weights with p = 1, 2 and 4, in rounds, then other scalings of the winner.

    Without a grid a certified gap of 1e-2 is enough on folds; the best parameters are then fitted to the estimator's ``tol``. What does not
    depend on y (``gamma=scale``, say) comes from all rows given to `fit`; put the search inside `cross_val_score` for an estimate of its
    own score that makes everything anew.

    Parameters
    ----------
    estimator : MKLClassifier, MKLRegressor, MKLOneClassSVM or MKLSVDD
        What to choose for; parameters that are not searched are its own.
    param_grid : dict or list of dicts, optional
        Names of the estimator's parameters, each with the values to try. Without it, the usual search.
    scoring : str or callable, optional
        A scorer, where more is better. By default the estimator's `score`: accuracy or R².
    cv : int, splitter or iterable of splits, default=5
        As in `GridSearchCV`: a number of folds, stratified for classes (with tasks, those of each task); a splitter; or pairs
        (train, test) of rows.
    refit : bool, default=True
        Whether to fit the best parameters on all rows.
    n_jobs : int, optional
        Threads; None is the estimator's own. The answer does not depend on it.
    verbose : int, default=0
        1 says what each round came to, 2 also each fit.

    Attributes
    ----------
    cv_results_ : dict of ndarrays
        As in `GridSearchCV`. Candidates that the usual search left after some folds have nan for the others, and the mean of those they
        have; they rank after all that have every fold.
    best_estimator_ : estimator
        Fitted on all rows, with ``refit=True``.
    best_params_, best_score_, best_index_ : dict, float, int
        The best candidate, its mean score over the folds, its place in ``cv_results_``.
    scorer_ : callable
        What scored.
    n_splits_ : int
        The number of folds.
    refit_time_ : float
        Seconds of the last fit.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mtmkl import MKLClassifier, MKLSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> search = MKLSearchCV(MKLClassifier(["linear", "rbf:sigma=1|2"]), {"C": [0.1, 1, 10]}, cv=3).fit(X, y)
    >>> search.best_score_ > 0.9
    True
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]] | None = None,
        *,
        scoring: Any = None,
        cv: Any = 5,
        refit: bool = True,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(estimator=estimator, scoring=scoring, n_jobs=n_jobs, refit=refit, cv=cv, verbose=verbose)
        self.param_grid = param_grid

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, **params: Any) -> Self:
        """Choose parameters, and fit with them.

        Parameters
        ----------
        X, y : as in the estimator's `fit`
        groups : array-like of shape (n_samples,), optional
            Rows of one group stay together, where ``cv`` is a splitter that knows groups.
        **params
            Passed to the estimator's `fit`: ``task``, ``sample_weight``.

        Returns
        -------
        self
        """
        estimator = self.estimator
        if not isinstance(estimator, MKLEstimator):
            raise TypeError(
                f"estimator is {type(estimator).__name__}, expected MKLClassifier, MKLRegressor, MKLOneClassSVM or MKLSVDD; for a pipeline "
                "that ends in one, use GridSearchCV"
            )
        if not isinstance(self.refit, bool):
            raise ValueError(f"refit is {self.refit!r}, expected True or False")
        weights = params.get("sample_weight")
        if weights is not None and np.any(np.asarray(weights) == 0):
            raise ValueError("sample_weight has zeros: such rows can be in no fold; leave them out")
        self.scorer_ = check_scoring(estimator, scoring=self.scoring)
        self.multimetric_ = False
        X, y, groups = indexable(X, y, groups)
        splits = splits_of(self.cv, estimator, X, y, task=params.get("task"), groups=groups)
        self.n_splits_ = len(splits)
        rows = _Rows(X, y, params, splits, estimator)
        candidates = self._usual(rows) if self.param_grid is None else self._grid(rows)
        self._conclude(candidates)
        if self.refit:
            started = time.perf_counter()
            best = clone(estimator).set_params(**clone(self.best_params_, safe=False))
            self.best_estimator_ = best.fit(X, y, **params)
            self.refit_time_ = time.perf_counter() - started
            if hasattr(self.best_estimator_, "feature_names_in_"):
                self.feature_names_in_ = self.best_estimator_.feature_names_in_
        return self

    def _searched(self) -> Any:
        """The estimator whose fits on folds are compared."""
        return self.estimator

    # -- the two searches ----------------------------------------------------------------------------------------------------------

    def _grid(self, rows: _Rows) -> list[_Candidate]:
        """Every candidate on every fold; those with the same kernels on the same matrices."""
        assert self.param_grid is not None
        candidates = [_Candidate(params) for params in ParameterGrid(self.param_grid)]
        bases: dict[str, list[tuple[_Candidate, MKLEstimator]]] = {}
        for candidate in candidates:
            own = clone(self._searched()).set_params(**clone(candidate.params, safe=False))
            base = {name: value for name, value in own.get_params(deep=False).items() if name not in _OF_CELLS}
            bases.setdefault(repr(sorted(base.items(), key=lambda item: item[0])) + whole_text(own.groups), []).append((candidate, own))
        for members in bases.values():
            problem, judge = rows.problem(members[0][1])
            cells: dict[tuple[str, str], list[_Candidate]] = {}
            for candidate, own in members:
                cells.setdefault(_cell(own, problem), []).append(candidate)
            groups = list(cells.values())
            search = self._search(rows, problem, cells=list(cells), exponents=False)
            for cell, fold, seconds, score in self._rounds(search, rows, judge, problem):
                for candidate in groups[cell]:
                    candidate.scores[fold], candidate.seconds[fold] = score, seconds
        best = max(candidates, key=lambda candidate: -np.inf if np.isnan(candidate.mean) else candidate.mean, default=None)
        if best is None:
            raise ValueError("param_grid is empty: give names of parameters, each with values to try, or None for the usual search")
        best.is_best = True
        return candidates

    def _usual(self, rows: _Rows) -> list[_Candidate]:
        """The rounds of the usual search."""
        if self.estimator._kind == "none":
            name = type(self.estimator).__name__
            raise ValueError(f"{name} learns without targets, so there is no usual search for it; give a param_grid and scoring")
        estimator = clone(self._searched())
        if estimator.kernels is None:
            estimator.kernels = _core.usual_kernels_to_search()
        problem, judge = rows.problem(estimator)
        search = self._search(rows, problem, cells=None, exponents=isinstance(self.estimator.sharing, str))
        found: dict[tuple[int, int], tuple[float, float]] = {}
        for cell, fold, seconds, score in self._rounds(search, rows, judge, problem):
            found[cell, fold] = (seconds, score)
        candidates = []
        for kernels, machine, sharing in search.cells():
            candidates.append(_Candidate(_parameters(estimator, problem, kernels, json.loads(machine), json.loads(sharing))))
        for (cell, fold), (seconds, score) in found.items():
            candidates[cell].scores[fold], candidates[cell].seconds[fold] = score, seconds
        best = candidates[search.best()]
        for candidate in self._rescaled(rows, estimator, problem, best):
            candidates.append(candidate)
            if candidate.mean > best.mean:
                best = candidate
        best.is_best = True
        return candidates

    def _rescaled(self, rows: _Rows, estimator: MKLEstimator, problem: Problem, best: _Candidate) -> Iterator[_Candidate]:
        """The winner with columns scaled in other ways, where nothing is said about it; on all folds."""
        specs = [spec for _, spec in problem.kernels.pairs]
        if estimator.scale != "auto" or not problem.frame.columns or problem.kernels.calls or _core.usual_scale(specs) != "standard":
            return
        for scale in ("minmax", "none"):
            candidate = _Candidate({**best.params, "scale": scale})
            own = clone(estimator).set_params(**clone(candidate.params, safe=False))
            own.tol = max(own._number("tol"), _core.search_tolerance())
            its, judge = rows.problem(own)
            search = self._search(rows, its, cells=[_cell(own, its)], exponents=False)
            for _, fold, seconds, score in self._rounds(search, rows, judge, its):
                candidate.scores[fold], candidate.seconds[fold] = score, seconds
            yield candidate

    def _search(self, rows: _Rows, problem: Problem, *, cells: Any, exponents: bool) -> Any:
        # What is said of kernels is said of the last fit.
        arguments = {name: value for name, value in problem.arguments.items() if name not in ("named", "counts")}
        if self.n_jobs is not None:
            arguments["limits"] = {**arguments["limits"], "threads": threads(self.n_jobs)}
        folds = rows.folds(problem)
        weights = None if problem.factors is None else [_weights(problem, learned) for learned, _ in folds]
        return self._made({**arguments, "folds": folds, "weights": weights, "cells": cells, "exponents": exponents})

    def _made(self, arguments: dict[str, Any]) -> Any:
        """Who goes through a search."""
        return _core.Search(**arguments)

    def _rounds(self, search: Any, rows: _Rows, judge: MKLEstimator, problem: Problem) -> Any:
        """(cell, fold, seconds, score) of every fit."""
        missed = number = 0
        while True:
            chains = search.next_round()
            if not chains:
                break
            number += 1
            best = -np.inf
            told = search.follow(range(len(chains)))
            for cell, fold, seconds, converged, finer, decisions in told:
                missed += not converged
                score = float(self.scorer_(rows.judged(judge, problem, fold, decisions), *rows.held(fold)))
                search.scored(cell, fold, score, finer)
                best = max(best, score)
                if self.verbose > 1:
                    print(f"[MKLSearchCV] cell {cell + 1}, fold {fold + 1}: score {score:.4f}, {seconds:.2f} s")
                yield cell, fold, seconds, score
            if self.verbose > 0:
                print(f"[MKLSearchCV] round {number}: {len(told)} fits, best score on a fold {best:.4f}")
        if missed:
            message = f"{missed} of the fits on folds did not reach tol; their scores count as they are. Raise max_iter, time_limit or tol"
            warnings.warn(message, ConvergenceWarning, stacklevel=5)

    # -- what came of it -----------------------------------------------------------------------------------------------------------

    def _conclude(self, candidates: list[_Candidate]) -> None:
        """``cv_results_`` and the best candidate, in the form of scikit-learn."""
        folds = self.n_splits_
        scores = np.array([[candidate.scores.get(fold, np.nan) for fold in range(folds)] for candidate in candidates])
        seconds = np.array([[candidate.seconds.get(fold, np.nan) for fold in range(folds)] for candidate in candidates])
        results: dict[str, Any] = {
            "mean_fit_time": np.nanmean(seconds, axis=1),
            "std_fit_time": np.nanstd(seconds, axis=1),
            "mean_score_time": np.zeros(len(candidates)),
            "std_score_time": np.zeros(len(candidates)),
        }
        names = sorted({name for candidate in candidates for name in candidate.params})
        for name in names:
            column = np.ma.MaskedArray(np.empty(len(candidates), dtype=object), mask=True)
            for at, candidate in enumerate(candidates):
                if name in candidate.params:
                    column[at] = candidate.params[name]
            results[f"param_{name}"] = column
        results["params"] = [candidate.params for candidate in candidates]
        for fold in range(folds):
            results[f"split{fold}_test_score"] = scores[:, fold]
        with warnings.catch_warnings():
            # A scorer that is not defined on any fold leaves nothing to average.
            warnings.simplefilter("ignore", RuntimeWarning)
            means = np.nanmean(scores, axis=1)
            results["mean_test_score"] = means
            results["std_test_score"] = np.nanstd(scores, axis=1)
        whole = ~np.isnan(scores).any(axis=1)
        # Those with every fold first.
        order = np.where(whole, -means, np.inf)
        ranks = rankdata(order, method="min")
        results["rank_test_score"] = ranks.astype(np.int32)
        self.cv_results_ = results
        self.best_index_ = next(at for at, candidate in enumerate(candidates) if candidate.is_best)
        self.best_score_ = float(means[self.best_index_])
        self.best_params_ = candidates[self.best_index_].params


class _Candidate:
    """Parameters, and what came of them on the folds they were fitted on."""

    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params
        self.scores: dict[int, float] = {}
        self.seconds: dict[int, float] = {}
        self.is_best = False

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.scores.values()))) if self.scores else float("nan")


class _Rows:
    """The samples and their folds."""

    def __init__(
        self,
        X: Any,
        y: Any,
        params: dict[str, Any],
        splits: list[tuple[NDArray[Any], NDArray[Any]]],
        estimator: MKLEstimator,
    ) -> None:
        self.X, self.y, self.params = X, y, params
        count = _num_samples(X)
        # Masks are as good as rows.
        self.splits = [(np.arange(count)[train], np.arange(count)[test]) for train, test in splits]
        self._held = [_safe_split(estimator, X, y, test, train) for train, test in self.splits]

    def held(self, fold: int) -> tuple[Any, ...]:
        """X and, where there is one, y of the rows kept aside."""
        X, y = self._held[fold]
        return (X,) if self.y is None else (X, y)

    def problem(self, estimator: MKLEstimator) -> tuple[Problem, MKLEstimator]:
        """The problem on all rows that an estimator would solve, and the estimator as it is just before it does."""
        asked: list[Problem] = []
        estimator._apart = True
        estimator._learn = asked.append  # type: ignore[assignment, method-assign]
        arguments = () if self.y is None else (self.y,)
        estimator.fit(self.X, *arguments, **self.params)
        estimator._frame = asked[0].frame
        return asked[0], estimator

    def folds(self, problem: Problem) -> list[tuple[list[list[int]], list[list[int]]]]:
        """For each fold, the rows of each sample set to learn from and those kept aside."""

        def by_set(rows: NDArray[np.intp]) -> list[list[int]]:
            marked = np.zeros(_num_samples(self.X), dtype=bool)
            marked[rows] = True
            return [np.flatnonzero(marked[origin]).tolist() for origin in problem.origins]

        return [(by_set(train), by_set(test)) for train, test in self.splits]

    def judged(self, judge: MKLEstimator, problem: Problem, fold: int, decisions: list[NDArray[np.float64]]) -> MKLEstimator:
        """The estimator as it would decide about the rows kept aside."""
        _, test = self.splits[fold]
        place = np.full(_num_samples(self.X), -1, dtype=np.intp)
        place[test] = np.arange(len(test))
        answers = []
        for number, origin in enumerate(problem.origins):
            tasks = zip(problem.arguments["tasks"], decisions, strict=True)
            own = [values for task, values in tasks if task["samples"] == number]
            places = place[origin]
            answers.append(Answer(places[places >= 0], number, np.column_stack(own)))
        shown = copy.copy(judge)
        shown._answers = lambda X, task: (len(test), answers)  # type: ignore[method-assign]
        if is_classifier(shown):
            shown.predict_proba = predict_proba
        return shown


def splits_of(
    cv: Any, estimator: MKLEstimator, X: Any, y: Any, *, task: Any = None, groups: Any = None
) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """(train, test) of every fold: a number of folds is within tasks where there are any, everything else is scikit-learn's."""
    cv = 5 if cv is None else cv
    has_tasks = task is not None or estimator.task is not None or is_wanted(estimator)
    if isinstance(cv, int | np.integer) and has_tasks:
        splits = _within_tasks(estimator, X, y, task, int(cv))
    else:
        splitter = check_cv(cv, y, classifier=is_classifier(estimator))
        splits = [(np.asarray(train), np.asarray(test)) for train, test in splitter.split(X, y, groups)]
    if is_classifier(estimator) and y is not None:
        check_classification_targets(y)
        _check_classes(np.asarray(y), splits)
    return splits


def _within_tasks(estimator: MKLEstimator, X: Any, y: Any, task: Any, folds: int) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Folds in which each task, and where there are classes each class of it, has its share of rows."""
    count = _num_samples(X)
    if not 2 <= folds <= count:
        raise ValueError(f"cv is {folds}, expected a number of folds from 2 to {count}, the number of rows")
    owners = task if estimator.task is None else column_of(X, estimator.task, "task")
    tasks = tasks_of(owners, count, None)
    check_transfer(estimator, tasks is not None)
    strata = [str(name) for name in tasks.tolist()] if tasks is not None else []
    if is_classifier(estimator):
        strata = [f"{name}\n{text(value)}" for name, value in zip(strata, np.asarray(y).tolist(), strict=True)]
    fold = np.empty(count, dtype=np.intp)
    # One after the other along the strata: each has as many rows in every fold, up to one, and so have the folds.
    fold[np.argsort(np.array(strata), kind="stable")] = np.arange(count) % folds
    return [(np.flatnonzero(fold != number), np.flatnonzero(fold == number)) for number in range(folds)]


def _check_classes(y: NDArray[Any], splits: list[tuple[NDArray[Any], NDArray[Any]]]) -> None:
    """Every fold is to learn from all classes."""
    classes = np.unique(y)
    for number, (train, _) in enumerate(splits):
        missing = np.setdiff1d(classes, y[train])
        if len(missing):
            rows = int(np.sum(y == missing[0]))
            raise ValueError(
                f"class {text(missing.tolist()[0])!r} ({rows} of {len(y)} rows) has no row among those that fold {number + 1} of "
                f"{len(splits)} learns from; leave out classes of so few rows, join them with others, or give folds that have them (cv=)"
            )


def whole_text(groups: Any) -> str:
    """All of a matrix of similarities, of which its own text may leave something out."""
    return repr(np.asarray(groups).tolist()) if hasattr(groups, "shape") else ""


def _weights(problem: Problem, learned: list[list[int]]) -> list[NDArray[np.float64]]:
    """For each sample set the weights of its rows, classes balanced by those that are learned from."""
    assert problem.factors is not None
    found = []
    for origin, counts, rows in zip(problem.origins, problem.counts, learned, strict=True):
        weights = counts.copy()
        weights[rows] *= problem.factors(origin[rows], counts[rows])
        found.append(weights)
    return found


def predict_proba(*_: Any, **__: Any) -> None:
    """What a classifier has on folds; scikit-learn goes by the name."""
    raise ValueError(
        "MKLSearchCV chooses by decisions, and this scoring is about probabilities; choose by accuracy or roc_auc, or use GridSearchCV"
    )


def _cell(estimator: MKLEstimator, problem: Problem) -> tuple[str, str]:
    """The machine and the sharing of an estimator on a problem, as they stand in model files."""
    machine, _ = estimator._machine(problem.totals)
    numbers = {name: estimator._number(name) for name in ("p", "q", "radius")}
    tasks = [entry["name"] for entry in problem.arguments["tasks"]]
    sharing = sharing_spec(estimator.sharing, numbers, machine, len(tasks), problem.frame.is_by_class, tasks)
    return json.dumps(machine), json.dumps(sharing)


def _parameters(
    estimator: MKLEstimator, problem: Problem, kernels: list[int], machine: dict[str, Any], sharing: dict[str, Any]
) -> dict[str, Any]:
    """The parameters of an estimator that make it fit this cell."""
    numbers = {_IN_PYTHON.get(name, name): value for name, value in machine.items() if name != "name"}
    known = estimator.get_params(deep=False)
    found: dict[str, Any] = {name: value for name, value in numbers.items() if name in known}
    names = _specs(problem)
    if len(kernels) < len(names):
        alone = names[kernels[0]]
        if alone is None:
            weights = [float(at == kernels[0]) for at in range(len(names))]
            found["sharing"] = Fixed(weights)
        else:
            found["kernels"] = [alone]
            found["sharing"] = "uniform"
            if is_wanted(estimator):
                found["task_offset"] = False
    elif sharing["name"] == "uniform":
        found["sharing"] = "uniform"
    else:
        found["sharing"] = estimator.sharing
        if "p" in sharing and isinstance(estimator.sharing, str):
            found["p"] = sharing["p"]
    return found


def _specs(problem: Problem) -> list[str | None]:
    """The specification of each kernel; None where it is not one by itself."""
    found: list[str | None] = []
    for _, spec in problem.kernels.pairs:
        given = spec.startswith("precomputed:") or "@#" in spec
        each = kernel_specs(spec)
        found.extend([None] * len(each) if given else each)
    return found
