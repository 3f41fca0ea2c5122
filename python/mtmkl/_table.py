"""From X (array, DataFrame, stack of kernels) to rows of features and the task of each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, check_consistent_length, check_X_y, validate_data

from ._kernels import KernelStack, Matrix

Texts = NDArray[np.object_]


@dataclass
class Table:
    """Samples as the core needs them."""

    count: int
    #: n × d features, C order; None for precomputed kernels.
    rows: Matrix | None
    #: Precomputed kernels.
    stack: KernelStack | None
    #: The task of each row in words; None without tasks.
    tasks: Texts | None
    #: Names of X's columns.
    names: list[str]
    #: Position of each of X's columns among the features, −1 for the task column.
    indices: list[int]

    @property
    def columns(self) -> list[str]:
        """Names of the features."""
        return [name for name, at in zip(self.names, self.indices, strict=True) if at >= 0]


def text(value: Any) -> str:
    """A task's or class's name: numbers as the program writes them (1.0 is `1`)."""
    if isinstance(value, float | np.floating):
        if not np.isfinite(value):
            raise ValueError(f"a task or class is {value}, expected a name or a finite number; fill it in or leave the row out")
        return np.format_float_positional(float(value) + 0.0, trim="-")
    if value is None:
        raise ValueError("a task or class is missing; fill it in or leave the row out")
    return str(value)


def texts(values: Any) -> Texts:
    """The names of many values."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"task has shape {array.shape}, expected one entry for each row of X")
    # Few tasks, many rows: each name is written once.
    known: dict[Any, str] = {}
    named = np.empty(len(array), dtype=object)
    for at, value in enumerate(array.tolist()):
        if value not in known:
            known[value] = text(value)
        named[at] = known[value]
    return named


def by_number_then_text(name: str) -> tuple[int, float, str]:
    """The program's order of tasks and classes."""
    try:
        return (0, float(name), name)
    except ValueError:
        return (1, 0.0, name)


def _column(X: Any, key: Any) -> tuple[Any, Any, int]:
    """The task column of X, the rest, and its position."""
    if hasattr(X, "columns") and hasattr(X, "shape"):
        names = list(X.columns)
        if isinstance(key, int | np.integer) and key not in names:
            if not -len(names) <= key < len(names):
                raise ValueError(f"task is {key}, but X has {len(names)} columns")
            key = names[key]
        if key not in names:
            raise ValueError(f"task is {key!r}, but X has no such column; its columns are {', '.join(map(repr, names[:8]))}")
        return X[key], X[[name for name in names if name != key]], names.index(key)
    if isinstance(key, str):
        raise ValueError(
            f"task is {key!r}, the name of a column, but X is {type(X).__name__} without column names; give the column's index, "
            'or keep the names with set_output(transform="pandas") on the steps before'
        )
    array = X if isinstance(X, np.ndarray) else np.asarray(X)
    if array.ndim != 2 or not -array.shape[1] <= key < array.shape[1]:
        raise ValueError(f"task is {key!r}, expected the index of a column of X, which has shape {array.shape}")
    at = int(key) % array.shape[1]
    return array[:, at], np.delete(array, at, axis=1), at


def read(
    estimator: Any,
    X: Any,
    y: Any = "no_validation",
    *,
    task: Any = None,
    reset: bool,
    **check: Any,
) -> tuple[Table, Any]:
    """X with the task of each row, and y, checked as scikit-learn checks them."""
    with_y = not (isinstance(y, str) and y == "no_validation")
    column = estimator.task
    if column is not None and task is not None:
        raise ValueError("the task is given twice: as a column of X (the parameter task) and as an array; give one of them")
    if isinstance(estimator.kernels, str) and estimator.kernels == "precomputed":
        return _read_stack(estimator, X, y, task=task, with_y=with_y, column=column, reset=reset, **check)
    numeric = {"dtype": np.float64, "order": "C"}
    if column is None:
        if with_y:
            rows, y = validate_data(estimator, X, y, reset=reset, **numeric, **check)
        else:
            rows = validate_data(estimator, X, reset=reset, **numeric)
        position = -1
    else:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        task, rest, position = _column(X, column)
        if with_y:
            rows, y = check_X_y(rest, y, estimator=estimator, **numeric, **check)
        else:
            rows = check_array(rest, estimator=estimator, input_name="X", **numeric)
    names = getattr(estimator, "feature_names_in_", None)
    count = estimator.n_features_in_
    all_names = [f"f{at + 1}" for at in range(count)] if names is None else [str(name) for name in names]
    indices = [-1 if at == position else at - (0 <= position < at) for at in range(count)]
    tasks = _tasks(task, len(rows))
    return Table(len(rows), rows, None, tasks, all_names, indices), y


def _read_stack(estimator: Any, X: Any, y: Any, *, task: Any, with_y: bool, column: Any, reset: bool, **check: Any) -> tuple[Table, Any]:
    if column is not None:
        raise ValueError(
            f'task is {column!r}, a column of X, but with kernels="precomputed" X has no columns; give fit and predict a task array'
        )
    if not isinstance(X, KernelStack):
        # Whether values are finite, the core sees.
        X = KernelStack(check_array(X, dtype=np.float64, allow_nd=True, ensure_all_finite=False, input_name="X"))
    stack = X
    kernels, rows, columns = stack.values.shape
    if reset:
        if rows != columns:
            raise ValueError(f"X has kernel matrices of shape {rows} × {columns}, expected n × n to fit")
        estimator.n_features_in_ = columns
    elif columns != estimator.n_features_in_ or kernels != estimator.kernel_weights_.shape[1]:
        raise ValueError(
            f"X has shape {stack.values.shape}, expected ({estimator.kernel_weights_.shape[1]}, n_new, "
            f"{estimator.n_features_in_}): for each kernel a row for each new sample and a column for each training sample"
        )
    if with_y:
        # The checks of y are scikit-learn's; they want some X beside it.
        _, y = check_X_y(np.zeros((rows, 1)), y, estimator=estimator, **check)
    return Table(rows, None, stack, _tasks(task, rows), [], []), y


def _tasks(task: Any, count: int) -> Texts | None:
    if task is None:
        return None
    if np.ndim(task) == 0:
        task = [task] * count
    named = texts(task)
    check_consistent_length(np.empty(count), named)
    return named


def groups(tasks: Texts | None, count: int, only: str) -> list[tuple[str, NDArray[np.intp]]]:
    """The rows of each task, tasks in the program's order."""
    if tasks is None:
        return [(only, np.arange(count))]
    names, inverse = np.unique(tasks.astype(str), return_inverse=True)
    found = [(str(name), np.flatnonzero(inverse == at)) for at, name in enumerate(names)]
    return sorted(found, key=lambda pair: by_number_then_text(pair[0]))


def merged(rows: Matrix, targets: NDArray[np.float64] | None, weights: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Equal samples (row and target) taken together with their weights added, in an order that depends on nothing but the samples.

    The problem is the same, only smaller; and so the order of rows, and whether a row has weight 2 or stands there twice, makes no
    difference to a single bit of the answer. Returns where each sample is first found, and its weight.
    """
    # −0 and 0 are one number. Bytes are compared, which is one pass over wide rows.
    keys = rows + 0.0 if targets is None else np.column_stack([rows, targets]) + 0.0
    if keys.shape[1] == 0:
        return np.arange(len(rows)), weights
    packed = np.ascontiguousarray(keys).view(np.dtype((np.void, keys.itemsize * keys.shape[1]))).ravel()
    order = np.argsort(packed, kind="stable")
    starts = np.flatnonzero(np.r_[True, packed[order][1:] != packed[order][:-1]])
    # Mixed, always in the same way: the solver starts from some of the rows, which should be like the others.
    mix = np.random.default_rng(0).permutation(len(starts))
    return np.minimum.reduceat(order, starts)[mix], np.add.reduceat(weights[order], starts)[mix]
