"""A fitted model: its attributes, and what its machines say of new samples."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from . import _core
from ._kernels import Call, Matrix
from ._parameters import Parameters, threads
from ._table import Rows, Table, group_texts, groups, part_of, program_rows, read, rows_of, scaled
from ._transfer import known_groups
from ._types import New, Vector

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

    def decisions(self, estimator: Fitted, table: Table, parts: Sequence[tuple[int, NDArray[np.intp]]]) -> list[Matrix]:
        """The decision values of the machines of sample sets (by their numbers) on rows of a table."""
        ...

    def home(self, model: _core.Model) -> _core.Model:
        """The model with all its machines."""
        ...


class Fitted(Parameters):
    """An estimator that has a model."""

    #: Who has the machines, where the model has none.
    _elsewhere: Elsewhere | None = None
    #: Whether the machine needs kernel weights of fixed mass.
    _mass = False

    n_features_in_: int
    _model: _core.Model
    _calls: tuple[Call, ...]

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


def _support_rows(model: _core.Model, set: int) -> tuple[NDArray[np.uintp], Rows]:
    """The positions of the support rows of a sample set, and the rows."""
    positions, rows = model.support_rows(set)
    return positions, rows_of(rows)
