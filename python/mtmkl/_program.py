"""What the program `mtmkl` keeps in a model file beside the model: which columns, which classes, how they are scaled.

Models made here carry the same description, so that the program can predict from them; models made there are read here, with their
scaling, filled gaps and one-hot columns.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from . import _core
from ._kernels import KernelStack
from ._table import Table, is_missing, number, tasks_of, texts


@dataclass
class Frame:
    """How a table becomes numbers."""

    #: Names of the features, or (in a program's model) what is known of each.
    features: list[Any]
    target: str | None
    task: str | None
    #: What is predicted, as the program writes it.
    goal: Any
    #: Whether X is used as it is: models made in Python.
    identity: bool = field(default=True)
    #: Whether the program leaves rows with gaps out.
    drops: bool = field(default=False)

    @property
    def by_class(self) -> bool:
        """Whether the machines are one for each class or pair of classes, rather than for each task."""
        return isinstance(self.goal, dict) and "multiclass" in self.goal

    @property
    def scheme(self) -> str:
        """`ova` or `ovo`."""
        return str(self.goal["multiclass"]["scheme"])

    @property
    def classes(self) -> list[str]:
        """The classes in words, sorted."""
        if not isinstance(self.goal, dict):
            return []
        return [str(name) for name in next(iter(self.goal.values()))["classes"]]

    def json(self) -> str:
        """The description as the program reads it: every feature is its own column, not scaled."""
        features = [{"name": name, "column": name, "offset": 0.0, "factor": 1.0} for name in self.features]
        return json.dumps({"features": features, "target": self.target, "task": self.task, "goal": self.goal, "drop_missing": False})

    @classmethod
    def of(cls, model: _core.Model) -> Frame:
        """The description in a model."""
        notes = model.notes
        if "frame" in notes:
            frame = json.loads(notes["frame"])
            return cls(frame["features"], frame["target"], frame["task"], frame["goal"], "python" in notes, frame["drop_missing"])
        # A model of the library: its tasks are named, its columns are what they are.
        goals = {"svc": {"binary": {"classes": ["-1", "1"]}}, "svr": "regression", "krr": "regression"}
        columns = model.columns(0)
        features = [{"name": name, "column": name, "offset": 0.0, "factor": 1.0} for name in columns]
        task = "task" if len(model.task_names) > 1 else None
        return cls(features, None, task, goals.get(json.loads(model.machine)["name"], "one-class"), False)


def raw_columns(frame: Frame) -> list[str]:
    """The table's columns behind the features, in order."""
    return list(dict.fromkeys(feature["column"] for feature in frame.features))


def program_rows(frame: Frame, X: Any, task: Any, known: Sequence[str]) -> Table:
    """New rows for a program's model: columns by name from a DataFrame (others may stand between them) or by position."""
    if isinstance(X, KernelStack) or not frame.features:
        stack = X if isinstance(X, KernelStack) else KernelStack(X)
        return Table(len(stack), None, stack, tasks_of(task, len(stack), known), [], [])
    wanted = raw_columns(frame)
    columns: dict[str, Any] = {}
    if hasattr(X, "columns") and hasattr(X, "shape"):
        missing = [name for name in wanted if name not in X.columns]
        if missing:
            raise ValueError(f"X has no column {missing[0]!r}, which the model was fitted on")
        columns = {name: np.asarray(X[name]) for name in wanted}
        if task is None and frame.task is not None:
            if frame.task not in X.columns:
                raise ValueError(f"X has no column {frame.task!r}, which names the task of each row; or give predict(X, task=…)")
            task = np.asarray(X[frame.task])
    else:
        array = check_array(X, dtype=None, ensure_all_finite=False, input_name="X")
        if array.shape[1] != len(wanted):
            raise ValueError(f"X has {array.shape[1]} columns, expected {len(wanted)}: {', '.join(wanted[:8])}")
        columns = {name: array[:, at] for at, name in enumerate(wanted)}
    count = len(next(iter(columns.values())))
    categories: dict[str, list[str]] = {}
    for feature in frame.features:
        if feature.get("category") is not None:
            categories.setdefault(feature["column"], []).append(feature["category"])
    # One-hot columns in words, nothing in gaps; the others in numbers.
    read = {name: _names(name, cells, categories[name]) if name in categories else _numbers(name, cells) for name, cells in columns.items()}
    rows = np.empty((count, len(frame.features)))
    for at, feature in enumerate(frame.features):
        rows[:, at] = _feature(feature, read[feature["column"]], drops=frame.drops)
    names = [feature["name"] for feature in frame.features]
    return Table(count, rows, None, tasks_of(task, count, known), names, list(range(len(names))))


def _names(name: str, column: NDArray[Any], known: list[str]) -> NDArray[Any]:
    """The cells of a one-hot column in words, empty where missing."""
    present = np.array([not is_missing(value) for value in column.tolist()], dtype=bool)
    found = np.full(len(column), "", dtype=object)
    found[present] = texts(column[present], f"X, column {name!r}", known)
    return found


def _numbers(name: str, column: NDArray[Any]) -> NDArray[np.float64]:
    """The cells of a column as numbers, NaN where missing; text is read as the program reads it."""
    if column.dtype.kind in "fiub":
        numbers = column.astype(np.float64)
    else:
        numbers = np.empty(len(column))
        for at, value in enumerate(column.tolist()):
            try:
                found = np.nan if is_missing(value) else number(value) if isinstance(value, str) else float(value)
            except (TypeError, ValueError):
                found = None
            if found is None:
                raise ValueError(f"X, row {at}, column {name!r}: {value!r} is not a number; the model learned from numbers here")
            numbers[at] = found
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        raise ValueError(f"X, row {infinite[0]}, column {name!r}: the value is infinite; correct it, or leave it empty if it is missing")
    return numbers


def _feature(feature: dict[str, Any], column: NDArray[Any], *, drops: bool) -> NDArray[np.float64]:
    """(value − offset) · factor, gaps filled."""
    category = feature.get("category")
    numbers = column if category is None else np.where(column == "", np.nan, column == category)
    gaps = np.isnan(numbers)
    if gaps.any():
        if feature.get("fill") is None:
            fitted = ", as the model was fitted with --missing drop" if drops else ", or fit with --missing mean"
            raise ValueError(
                f"X, row {np.flatnonzero(gaps)[0]}, column {feature['column']!r}: the value is missing, and the model has nothing to fill "
                f"it with; leave the row out{fitted}"
            )
        numbers = np.where(gaps, feature["fill"], numbers)
    with np.errstate(over="ignore"):
        scaled: NDArray[np.float64] = (numbers - feature["offset"]) * feature["factor"]
    large = np.flatnonzero(~np.isfinite(scaled))
    if len(large):
        raise ValueError(
            f"X, row {large[0]}, column {feature['column']!r}: {numbers[large[0]]} is too large to be scaled as the training rows were"
        )
    return scaled
