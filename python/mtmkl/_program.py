"""What the program `mtmkl` keeps in a model file beside the model: which columns, which classes, how they are scaled.

Models made here carry the same description, so that the program can predict from them; models made there are read here, with their
scaling, filled gaps and one-hot columns.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from . import _core
from ._kernels import KernelStack
from ._table import Table, _tasks, texts


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
            return cls(frame["features"], frame["target"], frame["task"], frame["goal"], "python" in notes)
        # A model of the library: its tasks are named, its columns are what they are.
        goals = {"svc": {"binary": {"classes": ["-1", "1"]}}, "svr": "regression", "krr": "regression"}
        columns = model.columns(0)
        features = [{"name": name, "column": name, "offset": 0.0, "factor": 1.0} for name in columns]
        task = "task" if len(model.task_names) > 1 else None
        return cls(features, None, task, goals.get(json.loads(model.machine)["name"], "one-class"), False)


def raw_columns(frame: Frame) -> list[str]:
    """The table's columns behind the features, in order."""
    return list(dict.fromkeys(feature["column"] for feature in frame.features))


def program_rows(frame: Frame, X: Any, task: Any) -> Table:
    """New rows for a program's model: columns by name from a DataFrame (others may stand between them) or by position."""
    if isinstance(X, KernelStack) or not frame.features:
        stack = X if isinstance(X, KernelStack) else KernelStack(X)
        return Table(len(stack), None, stack, _tasks(task, len(stack)), [], [])
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
    rows = np.empty((count, len(frame.features)))
    for at, feature in enumerate(frame.features):
        rows[:, at] = _feature(feature, columns[feature["column"]])
    names = [feature["name"] for feature in frame.features]
    return Table(count, rows, None, _tasks(task, count), names, list(range(len(names))))


def _feature(feature: dict[str, Any], column: NDArray[Any]) -> NDArray[np.float64]:
    """(value − offset) · factor, gaps filled."""
    name = feature["column"]
    if feature.get("category") is not None:
        numbers = (texts(column) == feature["category"]).astype(np.float64)
    else:
        try:
            numbers = column.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"X, column {name!r}: expected numbers, as the model was fitted on") from None
    gaps = np.isnan(numbers)
    if gaps.any():
        if feature.get("fill") is None:
            raise ValueError(
                f"X, row {np.flatnonzero(gaps)[0]}, column {name!r}: the value is missing, and the model has nothing to fill it with"
            )
        numbers = np.where(gaps, feature["fill"], numbers)
    scaled: NDArray[np.float64] = (numbers - feature["offset"]) * feature["factor"]
    return scaled
