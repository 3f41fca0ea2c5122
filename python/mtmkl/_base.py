"""What all estimators have in common: from X and tasks to the core, and from its model to predictions and fitted attributes."""

from __future__ import annotations

import copy
import html
import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from . import _core
from ._kernels import Kernels, Matrix, precomputed, resolve
from ._sharing import sharing_spec
from ._table import Rows, Table, group_texts, groups, part_of, program_rows, read, rows_of, scaled, text
from ._transfer import is_wanted, known_groups, made
from ._types import Limits, New, Set, Task
from ._verify import Verdict, verdict_of

Vector = NDArray[np.float64]

#: What an error costs, by the rows of a task and how often each counts.
Factors = Callable[[NDArray[np.intp], Vector], Vector]

#: Fields of `trace_`.
_PASS = np.dtype(
    [
        ("number", np.int64),
        ("objective", np.float64),
        ("bound", np.float64),
        ("gap", np.float64),
        ("step", np.float64),
        ("inner_iterations", np.int64),
        ("seconds", np.float64),
    ]
)


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


@dataclass(frozen=True)
class Answer:
    """What the machines of one task say of samples."""

    #: Which samples.
    rows: NDArray[np.intp]
    #: The sample set of the machines; None for a task that was never seen.
    set: int | None
    #: Samples × machines.
    decisions: Matrix


class Elsewhere(Protocol):
    """Who has the machines of a model that has none itself: the workers of a cluster, or the files of a folder."""

    def decisions(self, estimator: MKLEstimator, table: Table, parts: Sequence[tuple[int, NDArray[np.intp]]]) -> list[Matrix]:
        """The decision values of the machines of sample sets (by their numbers) on rows of a table."""
        ...

    def home(self, model: _core.Model) -> _core.Model:
        """The model with all its machines."""
        ...


class MKLEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators; not for use by itself."""

    #: Who has the machines, where the model has none.
    _elsewhere: Elsewhere | None = None
    #: How rows are scaled where these are some tasks of several, whose rows are not all here.
    _part: _core.Frame | None = None

    #: What the machine learns from: labels, values, none.
    _kind = "none"
    #: Whether the machine needs kernel weights of fixed mass.
    _mass = False
    #: Whether equal samples are told apart, as folds must.
    _apart = False

    # What every estimator's __init__ sets; named for the type checker.
    kernels: Any
    sharing: Any
    p: float
    q: float
    radius: float
    task: Any
    new_tasks: str
    transfer: Any
    groups: Any
    task_offset: bool
    normalize: Any
    scale: str
    indefinite: str
    precision: str
    solver: str
    tol: float
    max_iter: int
    time_limit: float | None
    memory_limit: float
    storage: str | None
    n_jobs: int | None
    random_state: Any
    n_features_in_: int

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

    def _number(self, name: str) -> float:
        value = getattr(self, name)
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise ValueError(f"{name} is {value!r}, expected a number") from None
        if np.isnan(number) or (np.isinf(number) and name != "memory_limit"):
            raise ValueError(f"{name} is {value!r}, expected a finite number")
        return number

    def _price(self, name: str) -> float:
        """The price of an error; 1 where the data is to choose it."""
        value = getattr(self, name)
        if isinstance(value, str):
            if value != "auto":
                raise ValueError(f"{name} is {value!r}, expected a number or 'auto'")
            return 1.0
        return self._number(name)

    def _is_auto(self) -> bool:
        return any(isinstance(value, str) and value == "auto" for value in (getattr(self, name, None) for name in self._prices()))

    def _prices(self) -> tuple[str, ...]:
        """The parameters that are the price of an error."""
        return ()

    def _normalize(self) -> str | None:
        """The word for it; None where nothing is said."""
        if isinstance(self.normalize, bool | np.bool_):
            return "unit" if self.normalize else "none"
        if self.normalize in ("unit", "variance", "none"):
            return str(self.normalize)
        if self.normalize != "auto":
            raise ValueError(f"normalize is {self.normalize!r}, expected 'auto', 'unit', 'variance' or 'none'")
        return "none" if isinstance(self.kernels, str) and self.kernels == "precomputed" else None

    def _definiteness(self) -> str:
        words = {"check": "check", "assume": "assume", "allow": "allow-indefinite"}
        if self.indefinite not in words:
            raise ValueError(
                f"indefinite is {self.indefinite!r}, expected 'check' (refuse indefinite kernels), 'assume' (that there are none) or "
                "'allow' (a local answer without certificate)"
            )
        return words[self.indefinite]

    def _limits(self) -> Limits:
        if not isinstance(self.max_iter, int | np.integer) or self.max_iter < 1:
            raise ValueError(f"max_iter is {self.max_iter!r}, expected a whole number of passes from 1")
        if self.precision not in ("double", "single"):
            raise ValueError(f"precision is {self.precision!r}, expected 'double' or 'single'")
        seed = 0 if self.random_state is None else int(check_random_state(self.random_state).randint(2**31 - 1))
        return {
            "tolerance": self._number("tol"),
            "max_passes": int(self.max_iter),
            "time_limit": None if self.time_limit is None else self._number("time_limit"),
            "threads": threads(self.n_jobs),
            "seed": seed,
            "memory_limit": self._number("memory_limit"),
            "precision": self.precision,
            "storage": self.storage,
        }

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

    def _kept_params(self) -> dict[str, Any]:
        """The parameters that belong to the model."""
        parameters: dict[str, Any] = self.get_params(deep=False)
        return parameters

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

    # -- the model -----------------------------------------------------------------------------------------------------------------

    def _adopt(self, model: _core.Model) -> None:
        """Takes the fitted attributes from the model."""
        self._model = model
        self._frame = _core.Frame.of(model)
        # The groups of tasks by name, of those that were never seen too.
        self._places: dict[str, str | None] = json.loads(model.notes.get("python", "{}")).get("transfer", {}).get("mapping", {})
        machine = json.loads(model.machine)
        for name in self._prices():
            setattr(self, f"{name}_", float(machine["lambda" if name == "alpha" else name]))
        self.kernel_names_ = model.kernel_names
        self.kernel_weights_ = model.weights
        self.common_weights_ = model.common
        self.specific_weights_ = model.specific
        self.group_weights_: dict[str, dict[str, Vector]] = {}
        for level, group, _, weights in model.groups:
            self.group_weights_.setdefault(level, {})[group] = weights
        self.tasks_ = np.array(model.task_names, dtype=object)
        self.objective_ = model.objective
        self.bound_ = model.bound
        self.gap_ = model.gap
        self.status_ = model.status
        self.fallback_ = None if model.fallback is None else str(json.loads(model.fallback))
        # Whatever newton cannot do is done by epf.
        self.solver_ = self.solver if self.fallback_ is None else "epf"
        self.rounded_ = model.is_rounded
        self.scores_ = json.loads(model.notes.get("scores", "null"))
        self.trace_ = np.array([tuple(line) for line in model.trace], dtype=_PASS)
        self.n_iter_ = len(self.trace_)
        # The row of X of every support row; without notes of where rows came from, they are counted through.
        positions, counts, samples = (own.astype(np.intp) for own in model.support_places())
        rows = model.training_rows()
        first = np.repeat(np.cumsum(samples) - samples, counts)
        every = first + positions if rows is None else rows.astype(np.intp)[first + positions]
        order = np.argsort(every, kind="stable")
        self.support_ = every[order]
        self._support_order = order
        self.intercept_ = model.offsets
        if model.is_elsewhere:
            del self.support_, self._support_order

    def _at_home(self) -> Self:
        """The estimator with all its machines at hand."""
        if self._elsewhere is None:
            return self
        whole = self._with(None)
        whole._adopt(self._elsewhere.home(self._model))
        return whole

    def _with(self, elsewhere: Elsewhere | None) -> Self:
        """The same with machines elsewhere, or in its model."""
        other = copy.copy(self)
        other._elsewhere = elsewhere
        return other

    @property
    def dual_coef_(self) -> Matrix:
        """β of each machine (rows) on the support rows (columns, in the order of ``support_``)."""
        check_is_fitted(self)
        coefficients = np.zeros((len(self._model.task_names), len(self.support_)))
        # Where the support rows of each sample set are among all.
        places = np.empty_like(self._support_order)
        places[self._support_order] = np.arange(len(places))
        _, counts, _ = self._model.support_places()
        first = np.cumsum(counts) - counts
        for task, number in enumerate(self._model.task_sets):
            at, beta = self._model.support(task)
            coefficients[task, places[(first[number] + at).astype(np.intp)]] = beta
        return coefficients

    @property
    def support_vectors_(self) -> Rows:
        """The support rows as kernels see them (scaled), in the order of ``support_``; sparse where X was."""
        check_is_fitted(self)
        if isinstance(self.kernels, str) and self.kernels == "precomputed":
            raise AttributeError("precomputed kernels have no support vectors; support_ has their positions")
        _, counts, _ = self._model.support_places()
        vectors = [_support_rows(self._model, number)[1] for number in range(len(counts))]
        are_sparse = any(sparse.issparse(part) for part in vectors)
        return (sparse.vstack(vectors, format="csr") if are_sparse else np.concatenate(vectors))[self._support_order]

    # -- prediction ----------------------------------------------------------------------------------------------------------------

    def _answers(self, X: Any, task: Any) -> tuple[int, list[Answer]]:
        """How many samples, and for each task of them what its machines say."""
        check_is_fitted(self)
        table = self._asked(X, task)
        parts = [(name, self._frame.set_of(self._model, name), rows) for name, rows in self._parts(table)]
        found: Iterator[Matrix]
        if self._elsewhere is None:
            own = ((name, number, rows) for name, number, rows in parts if number is not None)
            found = (self._model.decisions(number, self._input(table, rows, number, name)) for name, number, rows in own)
        else:
            found = iter(self._elsewhere.decisions(self, table, [(number, rows) for _, number, rows in parts if number is not None]))
        return table.count, [
            Answer(rows, number, self._new_task(name, table, rows)[:, np.newaxis] if number is None else next(found))
            for name, number, rows in parts
        ]

    def variance_shares(self, X: Any, task: Any = None) -> dict[str, Any]:
        """Var(f_g) / Σ_h Var(f_h) for each level g of a model with ``transfer``, f_g being what it adds to predictions.

        The levels are "all", those of groups, "own" (or "similarity"), and "offset", an offset of each task. Kernel weights say less, since
        they are flatter than the functions they belong to. With more than two classes the variances of the machines are added.

        Parameters
        ----------
        X : as in `fit`
            The rows over which predictions vary.
        task : array-like of shape (n_samples,) or one task for all, optional

        Returns
        -------
        dict
            "overall", the share of each level over all rows, and "tasks", the same over the rows of each task: nan where nothing varies.
        """
        check_is_fitted(self)
        if self._model.task_kernels is None:
            raise ValueError("variance_shares is of models with transfer; fit with transfer=['all', 'own'], say")
        table = self._asked(X, task)
        names = self._model.task_names
        machines = [np.zeros((len(self.kernel_names_), table.count)) for _ in names]
        of = np.zeros(table.count, dtype=np.intp)
        tasks = [name for name, _ in groups(table.tasks, table.count, names[0])]
        for name, rows in self._parts(table):
            new = self._input(table, rows, 0, name)
            for machine, values in zip(names, machines, strict=True):
                values[:, rows] = self._model.contributions(machine, new)
            of[rows] = tasks.index(name)
        levels, overall, own = _core.variance_shares(machines, self._model.kernel_levels, of.tolist(), len(tasks))
        return {
            "overall": dict(zip(levels, overall.tolist(), strict=True)),
            "tasks": {name: dict(zip(levels, row, strict=True)) for name, row in zip(tasks, own.tolist(), strict=True)},
        }

    def _decisions(self, X: Any, task: Any) -> Vector:
        """The decision value of each sample, where each task has one machine."""
        count, answers = self._answers(X, task)
        decisions = np.empty(count)
        for answer in answers:
            decisions[answer.rows] = answer.decisions[:, 0]
        return decisions

    def _new_task(self, name: str, table: Table, rows: NDArray[np.intp]) -> Vector:
        known = self._frame.tasks(self._model)
        several = self._frame.has_many_classes
        if self.new_tasks not in ("error", "common"):
            raise ValueError(f"new_tasks is {self.new_tasks!r}, expected 'error' or 'common'")
        if self.new_tasks == "common" and self.common_weights_ is not None and not several:
            if table.stack is not None or self._calls:
                raise ValueError(f"task {name!r} was never seen: precomputed and callable kernels have no rows for it")
            return self._at_home()._model.decision_of_new_task(self._input(table, rows, 0))
        shown = ", ".join(map(repr, known[:8])) + (f", … ({len(known)} in all)" if len(known) > 8 else "")
        if several:
            way = "which of several classes a new task has is not known"
        elif self.common_weights_ is not None:
            way = "new_tasks='common' predicts for it from what the tasks share"
        else:
            way = "its sharing has no common part, from which a new task could be predicted"
        raise ValueError(f"the model was not fitted on the task {name!r}, but on {shown}; {way}")

    def _asked(self, X: Any, task: Any) -> Table:
        """New samples, with tasks where the model has some."""
        table = self._new(X, task)
        if self._frame.task is None and table.tasks is not None:
            raise ValueError("task is given, but the model was fitted without tasks")
        if self._frame.task is not None and table.tasks is None:
            raise ValueError("the model was fitted with tasks: give the task of each row, predict(X, task=…)")
        return table

    def _new(self, X: Any, task: Any) -> Table:
        """New samples; those of a program's model are treated as the program would."""
        known = self._frame.tasks(self._model)
        if "python" in self._model.notes:
            table, _ = read(self, X, task=task, reset=False, known=known)
            return table if table.rows is None else replace(table, rows=scaled(self._frame, table.rows))
        return program_rows(self._frame, X, task, known)

    def _parts(self, table: Table) -> list[tuple[str, NDArray[np.intp]]]:
        """The rows of each task; those of one that was never seen go by the groups that X has for them."""
        only = self._model.task_names[0]
        by_task = groups(table.tasks, table.count, only)
        if not table.groups or self._model.task_kernels is None:
            return by_task
        known = set(self._frame.tasks(self._model))
        parts: list[tuple[str, NDArray[np.intp]]] = []
        for name, rows in by_task:
            if name in known:
                parts.append((name, rows))
                continue
            by_groups: dict[tuple[str | None, ...], list[int]] = {}
            for row in rows.tolist():
                by_groups.setdefault(tuple(self._cells(table, row)), []).append(row)
            parts.extend((name, np.array(own, dtype=np.intp)) for own in by_groups.values())
        return parts

    def _cells(self, table: Table, row: int) -> list[str | None]:
        """What the columns of groups say of a row."""
        columns = self._frame.group_columns
        given = dict(table.groups)
        known = zip(columns, known_groups(self._model, columns), strict=True)
        return [
            group_texts(given[column][row : row + 1], f"X, column {column!r}", names)[0] if column in given else None
            for column, names in known
        ]

    def _origin(self, table: Table, rows: NDArray[np.intp], task: str | None) -> tuple[_core.Frame, str, list[str | None]] | None:
        """The task that rows are of and, of one that was never seen, its groups; None where each task has machines of its own."""
        if task is None or self._model.task_kernels is None:
            return None
        if self._frame.group_columns:
            return self._frame, task, self._cells(table, int(rows[0])) if len(rows) else []
        return self._frame, task, [self._places[task]] if task in self._places else []

    def _input(self, table: Table, rows: NDArray[np.intp], set: int, task: str | None = None) -> New:
        """These rows of a task for the machines on a sample set."""
        origin = self._origin(table, rows, task)
        everything = len(rows) == table.count
        if table.stack is not None:
            columns = np.asarray(json.loads(self._model.notes["training-rows"])[set], dtype=np.intp)
            if everything and np.array_equal(columns, np.arange(table.stack.shape[1])):
                values, own = table.stack.values, table.stack.own
            else:
                part = table.stack[np.ix_(rows, columns)]
                values, own = part.values, part.own
            # Kernels between different tasks may be of one matrix.
            names = list(dict.fromkeys(name or "" for name in self._model.given_names))
            return {
                "count": len(rows),
                "threads": threads(self.n_jobs),
                "rows": None,
                "grams": [(name, values[at], None if own is None else own[at]) for at, name in enumerate(names)],
                "origin": origin,
            }
        assert table.rows is not None
        values = table.rows if everything else part_of(table.rows, rows)
        grams: list[tuple[str, Matrix, Vector | None]] = []
        for call in self._calls:
            positions, support = _support_rows(self._model, set)
            cross = np.zeros((len(rows), self._model.samples(set)))
            if len(positions):
                cross[:, positions] = call.matrix(values, support)
            needed = self._model.normalize == "unit" or self._mass
            grams.append((call.name, cross, call.diagonal(values) if needed else None))
        return {"count": len(rows), "threads": threads(self.n_jobs), "rows": values, "grams": grams, "origin": origin}

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


def _support_rows(model: _core.Model, set: int) -> tuple[NDArray[np.uintp], Rows]:
    """The positions of the support rows of a sample set, and the rows."""
    positions, rows = model.support_rows(set)
    return positions, rows_of(rows)


def threads(n_jobs: int | None) -> int:
    """Threads for the core, 0 for one per core.

    None follows OMP_NUM_THREADS, which joblib sets in its workers, so that ``GridSearchCV(n_jobs=…)`` does not start more threads than
    there are cores.
    """
    if n_jobs is None:
        limit = os.environ.get("OMP_NUM_THREADS", "")
        return int(limit) if limit.isdigit() else 0
    if not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise ValueError(f"n_jobs is {n_jobs!r}, expected None, a number of threads, or -1 for one per core")
    if n_jobs > 0:
        return int(n_jobs)
    return 0 if n_jobs == -1 else max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))


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
