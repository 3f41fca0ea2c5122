"""What all estimators have in common: from X and tasks to a problem for the core, its certificate, files and pages."""

from __future__ import annotations

import html
import json
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from . import _core
from ._fitted import Fitted
from ._kernels import Kernels, precomputed, resolve
from ._parameters import threads
from ._sharing import sharing_spec
from ._table import Table, scaled, text
from ._transfer import is_wanted, made
from ._types import Set, Task, Vector
from ._verify import Verdict, verdict_of

#: What an error costs, by the rows of a task and how often each counts.
Factors = Callable[[NDArray[np.intp], Vector], Vector]


@dataclass(frozen=True)
class Problem:
    """A problem as the core takes it, and what is kept beside its model."""

    #: Of `_core.fit`.
    arguments: dict[str, Any]
    kernels: Kernels
    frame: _core.Frame
    #: For each sample set, its rows of X.
    origins: list[NDArray[np.intp]]
    #: The sum of the sample weights of each task.
    totals: list[float]
    #: For each sample set, how often each of its rows counts.
    counts: list[Vector]
    #: What an error costs, where that depends on which rows are learned from.
    factors: Factors | None
    extra: dict[str, Any]


class MKLEstimator(Fitted):
    """Base of the estimators; not for use by itself."""

    #: How rows are scaled where these are some tasks of several, whose rows are not all here.
    _part: _core.Frame | None = None

    #: What the machine learns from: labels, values, none.
    _kind = "none"

    #: Whether equal samples are told apart, as folds must.
    _apart = False

    # -- the machine, by estimator -------------------------------------------------------------------------------------------------

    def _wants_probabilities(self) -> bool:
        """Whether the model is to have probabilities of classes."""
        return False

    def _machine(self, totals: Sequence[float]) -> tuple[dict[str, Any], list[float]]:
        """The machine as it stands in model files, and a factor of the sample weights of each task (whose totals are given)."""
        raise NotImplementedError

    # -- fit -----------------------------------------------------------------------------------------------------------------------

    def _solve(
        self,
        table: Table,
        goal: Any,
        values: Vector | None,
        weights: Vector,
        *,
        target_name: str | None,
        factors: Factors | None = None,
        extra: dict[str, Any] | None = None,
    ) -> Self:
        """Fits the machines of each task of the table: one, or one for each class or pair of classes.

        ``values`` are the numbers to predict, or the numbers of classes; they also tell samples apart that have the same row. ``weights``
        say how often each sample counts, ``factors`` (the weights of classes) what an error costs, for the rows of a task and how often
        each counts.
        """
        names: list[str] = []
        origins: list[NDArray[np.intp]] = []
        counts: list[Vector] = []
        scales: list[tuple[float, float]] = []
        if table.rows is not None:
            specs = [spec for _, spec in self._resolved(table).pairs]
            scales = _core.column_scales(table.rows, weights, str(self.scale), specs)
        shared = made(self, table) if is_wanted(self) else None
        frame = _core.Frame(
            table.columns,
            scales,
            target_name or "target" if self._kind != "none" else None,
            None if table.tasks is None else table.task_name or "task",
            json.dumps(goal),
            None if shared is None else shared.between,
        )
        if table.rows is not None:
            table = replace(table, rows=scaled(self._part or frame, table.rows))
        named = None if table.tasks is None else table.tasks.tolist()
        same = np.arange(table.count, dtype=np.float64) if self._apart else values
        same = None if same is None else np.ascontiguousarray(same)
        kernels = self._resolved(table)
        if shared is None:
            for name, own_rows, own_weights in _core.sample_sets(table.rows, named, target_name or "all", weights, same):
                names.append(name)
                origins.append(own_rows.astype(np.intp))
                counts.append(own_weights)
            sets = [self._set(table, members, kernels) for members in origins]
        else:
            kernels = shared.kernels(kernels)
            own_rows, own_weights, of = shared.between.pooled(table.rows, named or [], target_name or "all", weights, same)
            names, origins, counts = [target_name or "all"], [own_rows.astype(np.intp)], [own_weights]
            sets = [{**self._set(table, origins[0], kernels), "tasks": (shared.between, of)}]
            extra = {**(extra or {}), "transfer": shared.about}
        tasks, totals = self._tasks(frame, names, origins, counts, values, factors)
        machine, shares = self._machine(totals)
        weigh(tasks, shares, origins)
        sharing = sharing_spec(
            self.sharing,
            {name: self._number(name) for name in ("p", "q", "radius")},
            machine,
            len(tasks),
            frame.is_by_class,
            [entry["name"] for entry in tasks],
        )
        if self.solver not in ("newton", "epf"):
            raise ValueError(f"solver is {self.solver!r}, expected 'newton' or 'epf'")
        arguments: dict[str, Any] = {
            "kernels": kernels.pairs,
            "named": self.kernels is not None,
            "machine": json.dumps(machine),
            "sharing": json.dumps(sharing),
            "solver": json.dumps({"name": self.solver}),
            "normalize": self._normalize(),
            "target_scale": getattr(self, "target_scale", "none"),
            "definiteness": self._definiteness(),
            "sets": sets,
            "tasks": tasks,
            "limits": self._limits(),
        }
        if self._wants_probabilities():
            arguments["counts"] = counts
        self._learn(Problem(arguments, kernels, frame, origins, totals, counts, factors, extra or {}))
        return self

    def _tasks(
        self,
        frame: _core.Frame,
        names: Sequence[str],
        origins: Sequence[NDArray[np.intp]],
        counts: Sequence[Vector],
        values: Vector | None,
        factors: Factors | None,
    ) -> tuple[list[Task], list[float]]:
        """The machines on each sample set as tasks of the core, and the sum of the weights of each."""
        tasks: list[Task] = []
        totals: list[float] = []
        for number, (name, members, count) in enumerate(zip(names, origins, counts, strict=True)):
            own = count if factors is None else count * factors(members, count)
            for label, targets in self._targets(frame, name, None if values is None else values[members]):
                is_own = np.ones(len(members), dtype=bool) if targets is None else ~np.isnan(targets)
                totals.append(float(own[is_own].sum()))
                tasks.append(
                    {
                        "name": label,
                        "samples": number,
                        "rows": None if is_own.all() else np.flatnonzero(is_own).tolist(),
                        "kind": self._kind,
                        "targets": None if targets is None else np.ascontiguousarray(targets[is_own]),
                        "weights": None if np.all(own[is_own] == 1.0) else own[is_own],
                    }
                )
        return tasks, totals

    def _targets(self, frame: _core.Frame, name: str, values: Vector | None) -> list[tuple[str, Vector | None]]:
        """The name and the targets of each machine on these rows of a task; nan for rows that it is not about."""
        if values is None or self._kind != "labels":
            return [(name, values)]
        return list(frame.labels(name, values.astype(np.intp).tolist()))

    def _learn(self, problem: Problem) -> None:
        """Solves a problem and takes the fitted attributes from its model."""
        notes = self._notes(problem.frame, problem.origins, problem.extra)
        model = _core.fit(**problem.arguments, notes=notes, auto=self._is_auto())
        self._calls = problem.kernels.calls
        self._adopt(model)
        if not model.converged:
            warnings.warn(self._not_converged(), ConvergenceWarning, stacklevel=4)

    def _resolved(self, table: Table) -> Kernels:
        if table.stack is not None:
            return precomputed(len(table.stack.values))
        kernels = _core.usual_kernels_without_targets() if self.kernels is None and self._kind == "none" else self.kernels
        return resolve(kernels, table.names, table.indices)

    def _set(self, table: Table, members: NDArray[np.intp], kernels: Kernels) -> Set:
        origin: list[int] = members.tolist()
        if table.stack is not None:
            everything = np.array_equal(members, np.arange(table.count))
            values = table.stack.values
            grams = [
                (f"K{at}", gram if everything else np.ascontiguousarray(gram[np.ix_(members, members)])) for at, gram in enumerate(values)
            ]
            return {"values": None, "columns": [], "grams": grams, "origin": origin, "tasks": None}
        assert table.rows is not None
        rows = table.rows[members] if kernels.calls else table.rows
        grams = [(call.name, call.matrix(rows, rows)) for call in kernels.calls]
        return {"values": table.rows, "columns": table.columns, "grams": grams, "origin": origin, "tasks": None}

    def _notes(self, frame: _core.Frame, origins: Sequence[NDArray[np.intp]], extra: dict[str, Any]) -> dict[str, str]:
        plain = {name: value for name, value in self._kept_params().items() if _is_plain(value)}
        about = {
            "estimator": type(self).__name__,
            "parameters": plain,
            "names": [str(name) for name in getattr(self, "feature_names_in_", [])],
            "features": self.n_features_in_,
            **extra,
        }
        return {
            **frame.notes([origin.tolist() for origin in origins]),
            "settings": "".join(f"{name} = {_toml(value)}\n" for name, value in plain.items() if value is not None),
            "python": json.dumps(about),
        }

    def _not_converged(self) -> str:
        reasons = {
            "pass-limit": f"max_iter={self.max_iter} passes came first: raise max_iter",
            "time-limit": f"time_limit={self.time_limit} seconds came first: raise time_limit",
            "stalled": "floating point allows no further progress: scale the data, or raise tol",
        }
        reason = reasons.get(self.status_, self.status_)
        return (
            f"the answer is proven to be within {self.gap_:.1e} of the optimum (relative), not within tol={self.tol}; {reason}. "
            "The model can be used; gap_ says how good it is."
        )

    # -- the certificate -----------------------------------------------------------------------------------------------------------

    def verify(self, X: Any, y: Any = None, sample_weight: Any = None, task: Any = None) -> Verdict:
        """Check the certificate from the data of `fit`: objective, bound and gap are computed anew, by nothing of what solved the problem.

        Kernels are computed pair by pair from their definitions; primal and dual values, and what sharing and machine allow, are written
        from the literature. `objective_` must be reached by the very machines that predict, `bound_` be proven by the witness beside them.

        Parameters
        ----------
        X, y, sample_weight, task : as in `fit`
            The data that the model was fitted on.

        Returns
        -------
        Verdict
            True where every claim holds; else its ``failures`` say which does not, and of which task and row.

        Raises
        ------
        ValueError
            When the data are not those of the fit, naming the row where that is known.
        """
        check_is_fitted(self)
        if "python" not in self._model.notes:
            raise ValueError("the program fitted this model: check it with mtmkl verify MODEL DATA")
        problem = self._problem_of(X, y, sample_weight, task)
        arguments = {name: problem.arguments[name] for name in ("kernels", "sets", "tasks")}
        return verdict_of(_core.verify(self._at_home()._model, **arguments, threads=threads(self.n_jobs)), problem.origins)

    def _problem_of(self, X: Any, y: Any, sample_weight: Any, task: Any) -> Problem:
        """The problem that `fit` would solve on these data, which is not solved."""
        seen: list[Problem] = []
        other = clone(self)
        if json.loads(self._model.notes["python"]).get("part"):
            other._part = self._frame

        def learn(problem: Problem) -> None:
            seen.append(problem)
            other._adopt(self._model)

        other._learn = learn
        with warnings.catch_warnings():
            # They were said when it was fitted.
            warnings.simplefilter("ignore")
            other.fit(X, y, sample_weight=sample_weight, task=task)
        return seen[0]

    # -- files and pages -----------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that `mtmkl.load` and the program `mtmkl` read.

        The program predicts the same bits from it. A model with callable kernels cannot be saved; pickle the estimator instead.

        Parameters
        ----------
        path : path
            The file; it is replaced as a whole or not at all.
        """
        check_is_fitted(self)
        if self._calls:
            raise ValueError("a model with callable kernels cannot be saved, since a file has no functions; pickle the estimator")
        self._at_home()._model.save(path)

    def report(self, path: str | os.PathLike[str] | None = None) -> str:
        """The model as one self-contained HTML page: weights, what is shared, the certificate, how the solver got there.

        Parameters
        ----------
        path : path, optional
            Where to write the page.

        Returns
        -------
        str
            The page.
        """
        check_is_fitted(self)
        settings = [(name, str(value)) for name, value in self._kept_params().items() if value is not None]
        page = self._at_home()._model.report(type(self).__name__, settings)
        if path is not None:
            target = Path(path)
            temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
            try:
                temporary.write_text(page, encoding="utf-8")
                temporary.replace(target)
            finally:
                temporary.unlink(missing_ok=True)
        return page

    def _repr_html_(self) -> str:
        """The report in a frame of its own; before fit, scikit-learn's diagram."""
        if not hasattr(self, "_model"):
            return str(super()._repr_html_inner())
        page = html.escape(self.report(), quote=True)
        return (
            f'<iframe srcdoc="{page}" title="{type(self).__name__}" style="width:100%;height:40rem;border:1px solid #8884" '
            'sandbox=""></iframe>'
        )

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernels, str) and self.kernels == "precomputed"
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags


def weigh(tasks: Sequence[Task], shares: Sequence[float], origins: Sequence[NDArray[np.intp]]) -> None:
    """Multiplies the weights of each task by its factor."""
    for entry, scale in zip(tasks, shares, strict=True):
        if scale != 1.0:
            rows = origins[entry["samples"]] if entry["rows"] is None else entry["rows"]
            given = np.ones(len(rows)) if entry["weights"] is None else entry["weights"]
            entry["weights"] = given * scale


def sample_weights(sample_weight: Any, table: Table) -> Vector:
    """One weight ≥ 0 for each row, 1 without weights."""
    weights: Vector = _check_sample_weight(sample_weight, np.empty((table.count, 1)), dtype=np.float64, ensure_non_negative=True)
    return weights


def target_name(y: Any) -> str | None:
    """The name of a pandas or polars Series."""
    name = getattr(y, "name", None)
    return name if isinstance(name, str) and name else None


def class_values(classes: NDArray[Any], weights: Any) -> dict[str, Any]:
    """Classes for the notes of a model, so that they come back with their type; and their weights, where these are not by text."""
    kind = "int" if classes.dtype == object and all(isinstance(value, int) for value in classes) else classes.dtype.str
    found: dict[str, Any] = {"classes": [text(value) for value in classes], "class_type": kind}
    if isinstance(weights, dict) and not _is_plain(weights):
        found["class_weight"] = [float(weights.get(label, 1.0)) for label in classes.tolist()]
    return found


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(entry) for key, entry in value.items())
    return value is None or isinstance(value, bool | int | float | str)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, float) and not np.isfinite(value):
        return "nan" if np.isnan(value) else "inf" if value > 0 else "-inf"
    return json.dumps(value)
