"""From X (array, DataFrame, sparse matrix, stack of kernels) to rows of features and the task of each row."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_array, check_consistent_length, check_X_y, validate_data

from . import _core
from ._kernels import KernelStack

Texts = NDArray[np.object_]

#: Rows of numbers: all of them, or those other than zero (SciPy's CSR).
Rows = Any


@dataclass
class Table:
    """Samples as the core needs them."""

    count: int
    #: n × d features, C order, or CSR without zeros, columns ascending; None for precomputed kernels.
    rows: Rows | None
    #: Precomputed kernels.
    stack: KernelStack | None
    #: The task of each row in words; None without tasks.
    tasks: Texts | None
    #: Names of X's columns.
    names: list[str]
    #: Position of each of X's columns among the features, −1 for those of tasks and groups.
    indices: list[int]
    #: The name of the task column, where X has one.
    task_name: str | None = None
    #: The columns of X that name the groups of a task, outermost first.
    groups: Sequence[tuple[str, NDArray[Any]]] = ()

    @property
    def columns(self) -> list[str]:
        """Names of the features."""
        return [name for name, at in zip(self.names, self.indices, strict=True) if at >= 0]


def is_missing(value: Any) -> bool:
    """Whether a cell has no value: None, NaN, pandas' NA, and the texts that mean it in a table."""
    if isinstance(value, str):
        return _core.is_gap(value)
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        # pandas' NA is neither equal to itself nor different; what is no single value is none of our business.
        return type(value).__name__ == "NAType"


def text(value: Any) -> str:
    """A task's or class's name: what Python's ``str`` says of it."""
    # Adding zero turns −0 into 0: they are one number.
    return str(value + 0.0 if isinstance(value, float | np.floating) else value)


def _kind(value: Any) -> str:
    """What a value is where names are looked for."""
    kinds = {"text": str, "truth": bool | np.bool_, "whole": int | np.integer, "number": float | np.number}
    return next((kind for kind, types in kinds.items() if isinstance(value, types)), "text")


def texts(values: Any, what: str, known: Sequence[str] | None = None) -> Texts:
    """The names of many values, all present; numbers find theirs among the ``known`` ones."""
    # Elements of a list stay what they are; as an array, 1 beside 2.5 would become 1.0.
    array = np.asarray(values, dtype=object) if isinstance(values, list | tuple) else np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{what} has shape {array.shape}, expected one entry for each row of X")
    if array.dtype.kind in "biu":
        # Few tasks, many rows: each name is written once, and no number of these is missing.
        distinct, codes = np.unique(array, return_inverse=True)
        return np.array(_names(distinct, what, known), dtype=object)[codes]
    return np.array(_names(array, what, known), dtype=object)


def _names(array: NDArray[Any], what: str, known: Sequence[str] | None) -> list[str]:
    """The name of each value."""
    # 1, 1.0 and True are equal, but not in words; a float32 is not spelled as a float.
    names: dict[Any, str] = {}
    found: list[str] = []
    for at, value in enumerate(array if array.dtype.kind == "f" else array.tolist()):
        key = (type(value), value)
        if key not in names:
            if is_missing(value):
                raise ValueError(f"{what}, row {at}: {_no_value(value)}")
            if isinstance(value, float | np.floating) and np.isinf(value):
                raise ValueError(f"{what}, row {at}: the value is {value}, expected a name or a finite number")
            names[key] = text(value) if known is None else _core.named(text(value), _kind(value), known)
        found.append(names[key])
    return found


def _no_value(value: Any) -> str:
    if isinstance(value, str):
        return (
            f"{str(value)!r} means that there is no value, as it does in tables (empty, NA, N/A, null, ?, NaN); leave the row out or, if "
            "it is a name, spell it otherwise"
        )
    return f"the value is missing ({value}); fill it in or leave the row out"


def refuse_missing(y: Any) -> None:
    """Names the first row whose target is missing."""
    array = np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.dtype.kind not in "fOUT":
        return
    if array.dtype.kind == "f":
        missing = np.flatnonzero(np.isnan(array))
    else:
        missing = np.flatnonzero([is_missing(value) for value in array.tolist()])
    if len(missing):
        more = f" (the first of {len(missing)} such rows)" if len(missing) > 1 else ""
        raise ValueError(f"y, row {missing[0]}{more}: {_no_value(array[missing[0]])}")


def whole(values: Sequence[int]) -> NDArray[Any]:
    """Integers as an array that keeps all their digits."""
    for kind in (np.int64, np.uint64):
        limits = np.iinfo(kind)
        if all(limits.min <= value <= limits.max for value in values):
            return np.array(values, dtype=kind)
    return np.array(values, dtype=object)


def group_texts(values: Any, what: str, known: Sequence[str] | None = None) -> list[str | None]:
    """The names of groups, None where there is none; numbers find theirs among the ``known`` ones."""
    listed = list(values.tolist() if isinstance(values, np.ndarray) and values.dtype.kind != "f" else values)
    present = [at for at, value in enumerate(listed) if not is_missing(value)]
    found: list[str | None] = [None] * len(listed)
    for at, name in zip(present, texts([listed[at] for at in present], what, known), strict=True):
        found[at] = name
    return found


def without_zeros(rows: Rows) -> Rows:
    """Sparse rows as the core takes them: columns that ascend, each once, without zeros. What the caller has is left as it is."""
    if not sparse.issparse(rows) or (rows.has_canonical_format and np.all(rows.data)):
        return rows
    rows = rows.copy()
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def ready(rows: Rows) -> Rows:
    """Rows as the core takes them: what came over a wire, or lies in a file, may begin at any byte. Others are left as they are."""
    if not sparse.issparse(rows):
        return np.require(rows, dtype=np.float64, requirements=("C", "A"))
    parts = (rows.data, rows.indices, rows.indptr)
    if all(part.flags.aligned and part.flags.c_contiguous for part in parts):
        return rows
    own = [np.require(part, requirements=("C", "A")) for part in parts]
    return sparse.csr_array((own[0], own[1], own[2]), shape=rows.shape)


def rows_of(stacked: Any) -> Rows:
    """Rows as the core gives them: an array, or the parts of a sparse matrix."""
    if not isinstance(stacked, tuple):
        return stacked
    offsets, columns, values, width = stacked
    places = (columns.astype(np.int64), offsets.astype(np.int64))
    return sparse.csr_array((values, *places), shape=(len(offsets) - 1, width))


def part_of(rows: Rows, members: NDArray[np.intp]) -> Rows:
    """Some of the rows."""
    return rows[members] if sparse.issparse(rows) else np.ascontiguousarray(rows[members])


def scaled(frame: _core.Frame, rows: Rows) -> Rows:
    """Rows on the scales of their columns; sparse ones have all their zeros where the scales were learned with them."""
    if sparse.issparse(rows) and not frame.keeps_zeros:
        rows = rows.toarray()
    if not sparse.issparse(rows):
        return frame.scaled(rows)
    return sparse.csr_array((frame.scaled_entries(rows), rows.indices, rows.indptr), shape=rows.shape)


def _position(X: Any, key: Any, what: str) -> int:
    """The position of a column of X, given by name or index."""
    if sparse.issparse(X):
        raise ValueError(
            f"{what} is {key!r}, a column of X, but X is sparse and has numbers only; leave the column out and give fit and predict an "
            "array, task=…"
        )
    if hasattr(X, "columns") and hasattr(X, "shape"):
        names: list[Any] = list(X.columns)
        if isinstance(key, int | np.integer) and key not in names:
            if not -len(names) <= key < len(names):
                raise ValueError(f"{what} is {key}, but X has {len(names)} columns")
            key = names[key]
        if key not in names:
            raise ValueError(f"{what} is {key!r}, but X has no such column; its columns are {', '.join(map(repr, names[:8]))}")
        return names.index(key)
    if isinstance(key, str):
        raise ValueError(
            f"{what} is {key!r}, the name of a column, but X is {type(X).__name__} without column names; give the column's index, "
            'or keep the names with set_output(transform="pandas") on the steps before'
        )
    shape: tuple[int, ...] = np.shape(X)
    if len(shape) != 2 or not -shape[1] <= key < shape[1]:
        raise ValueError(f"{what} is {key!r}, expected the index of a column of X, which has shape {shape}")
    return int(key) % shape[1]


def column_of(X: Any, key: Any, what: str) -> Any:
    """A column of X, given by name or index."""
    [found], _ = _taken(X, [_position(X, key, what)])
    return found


def without_columns(X: Any, keys: Sequence[Any]) -> Any:
    """X without some of its columns; numbers, where it has no names."""
    _, rest = _taken(X, [_position(X, key, "column") for key in keys])
    return rest if hasattr(rest, "columns") else rest.astype(np.float64)


def _taken(X: Any, positions: Sequence[int]) -> tuple[list[Any], Any]:
    """These columns of X, and the rest."""
    if hasattr(X, "columns") and hasattr(X, "shape"):
        names = list(X.columns)
        chosen = [names[at] for at in positions]
        return [X[name] for name in chosen], X[[name for name in names if name not in chosen]]
    array = X if isinstance(X, np.ndarray) else np.asarray(X)
    return [array[:, at] for at in positions], np.delete(array, positions, axis=1)


@contextlib.contextmanager
def _text_is_named(X: Any) -> Iterator[None]:
    """Names the columns of a data frame that hold text, where that is why it cannot become numbers."""
    try:
        yield
    except ValueError as error:
        found = {str(name): value for name in getattr(X, "columns", []) if (value := _first_text(X[name])) is not None}
        if not found:
            raise
        named = [f"{name!r} ({value!r})" for name, value in found.items()]
        shown = ", ".join(named[:8]) + (f", … ({len(named)} in all)" if len(named) > 8 else "")
        if all(re.fullmatch(r"\s*[-+]?\d*,\d+\s*", value) for value in found.values()):
            raise ValueError(f"X has decimal commas, in {shown}: read the table with pandas.read_csv(…, decimal=',')") from error
        raise ValueError(
            f"X has text where numbers belong, in {shown}: make 0/1 columns of categories (pandas.get_dummies, or a OneHotEncoder before "
            "the estimator), leave other text out; a column that says which task a row belongs to is named by task="
        ) from error


def _first_text(column: Any) -> str | None:
    """The first value of a column that is text and no number."""
    for value in np.asarray(column, dtype=object):
        if isinstance(value, str):
            try:
                float(value)
            except ValueError:
                return value[:40]
    return None


def read(
    estimator: Any,
    X: Any,
    y: Any = "no_validation",
    *,
    task: Any = None,
    reset: bool,
    known: Sequence[str] | None = None,
    **check: Any,
) -> tuple[Table, Any]:
    """X with the task of each row (some of the ``known`` ones, where there are any), and y, checked as scikit-learn checks them."""
    with_y = not (isinstance(y, str) and y == "no_validation")
    if with_y:
        refuse_missing(y)
    column = estimator.task
    from ._transfer import check as check_transfer
    from ._transfer import columns_of

    if reset:
        check_transfer(estimator, column is not None or task is not None)
    places = columns_of(estimator.groups)
    if column is not None and task is not None:
        raise ValueError("the task is given twice: as a column of X (the parameter task) and as an array; give one of them")
    if isinstance(estimator.kernels, str) and estimator.kernels == "precomputed":
        if places:
            raise ValueError(
                f'groups is {estimator.groups!r}, columns of X, but with kernels="precomputed" X has none; give a mapping from task '
                "to group"
            )
        return _read_stack(estimator, X, y, task=task, with_y=with_y, column=column, reset=reset, known=known, **check)
    numeric = {"dtype": np.float64, "order": "C", "accept_sparse": "csr"}
    positions: list[int] = []
    groups: list[tuple[int, Any]] = []
    if column is None and not places:
        with _text_is_named(X):
            if with_y:
                rows, y = validate_data(estimator, X, y, reset=reset, **numeric, **check)
            else:
                rows = validate_data(estimator, X, reset=reset, **numeric)
    else:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        positions = [] if column is None else [_position(X, column, "task")]
        positions += [_position(X, place, "groups") for place in places]
        if len(set(positions)) < len(positions):
            raise ValueError(f"groups is {estimator.groups!r} and task is {column!r}: the same column twice; name other columns")
        taken, rest = _taken(X, positions)
        if column is not None:
            task = taken[0]
        first = len(positions) - len(places)
        groups = list(zip(positions[first:], map(np.asarray, taken[first:]), strict=True))
        with _text_is_named(rest):
            if with_y:
                rows, y = check_X_y(rest, y, estimator=estimator, **numeric, **check)
            else:
                rows = check_array(rest, estimator=estimator, input_name="X", **numeric)
    rows = ready(without_zeros(rows))
    names = getattr(estimator, "feature_names_in_", None)
    count = estimator.n_features_in_
    all_names = [f"f{at + 1}" for at in range(count)] if names is None else [str(name) for name in names]
    indices = [-1 if at in positions else at - sum(other < at for other in positions) for at in range(count)]
    tasks = tasks_of(task, rows.shape[0], known)
    task_name = None if column is None else all_names[positions[0]]
    by_name = [(all_names[at], values) for at, values in groups]
    return Table(rows.shape[0], rows, None, tasks, all_names, indices, task_name, by_name), y


def _read_stack(
    estimator: Any, X: Any, y: Any, *, task: Any, with_y: bool, column: Any, reset: bool, known: Sequence[str] | None, **check: Any
) -> tuple[Table, Any]:
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
    elif columns != estimator.n_features_in_ or kernels != len(set(estimator._model.given_names)):
        raise ValueError(
            f"X has shape {stack.values.shape}, expected ({len(set(estimator._model.given_names))}, n_new, "
            f"{estimator.n_features_in_}): for each kernel a row for each new sample and a column for each training sample"
        )
    if with_y:
        # The checks of y are scikit-learn's; they want some X beside it.
        _, y = check_X_y(np.zeros((rows, 1)), y, estimator=estimator, **check)
    return Table(rows, None, stack, tasks_of(task, rows, known), [], []), y


def tasks_of(task: Any, count: int, known: Sequence[str] | None) -> Texts | None:
    """The task of each row in words, given an array or one task for all."""
    if task is None:
        return None
    if np.ndim(task) == 0:
        task = [task] * count
    names = texts(task, "task", known)
    check_consistent_length(np.empty(count), names)
    return names


def groups(tasks: Texts | None, count: int, only: str) -> list[tuple[str, NDArray[np.intp]]]:
    """The rows of each task, tasks in the order of names."""
    if tasks is None:
        return [(only, np.arange(count))]
    return [(name, rows.astype(np.intp)) for name, rows in _core.task_groups(tasks.tolist())]


def program_rows(frame: _core.Frame, X: Any, task: Any, known: Sequence[str]) -> Table:
    """New rows for a program's model: columns by name from a DataFrame (others may stand between them) or by position."""
    if isinstance(X, KernelStack) or not frame.features:
        stack = X if isinstance(X, KernelStack) else KernelStack(X)
        return Table(len(stack), None, stack, tasks_of(task, len(stack), known), [], [])
    wanted = frame.columns
    groups: list[tuple[str, NDArray[Any]]] = []
    names = frame.features
    if sparse.issparse(X):
        if X.shape[1] != len(names):
            raise ValueError(f"X has {X.shape[1]} columns, expected the {len(names)} features of the model: {', '.join(names[:8])}")
        rows = scaled(frame, without_zeros(check_array(X, dtype=np.float64, accept_sparse="csr", input_name="X")))
        return Table(rows.shape[0], rows, None, tasks_of(task, rows.shape[0], known), names, list(range(len(names))))
    if hasattr(X, "columns") and hasattr(X, "shape"):
        # Columns of groups place tasks that were never seen; others do not need them.
        present = [name for name in frame.group_columns if name in X.columns]
        groups = [(name, np.asarray(X[name])) for name in present]
        missing = [name for name in wanted if name not in X.columns]
        if missing:
            raise ValueError(f"X has no column {missing[0]!r}, which the model was fitted on")
        columns = [np.asarray(X[name]) for name in wanted]
        if task is None and frame.task is not None:
            if frame.task not in X.columns:
                raise ValueError(f"X has no column {frame.task!r}, which names the task of each row; or give predict(X, task=…)")
            task = np.asarray(X[frame.task])
    else:
        array = check_array(X, dtype=None, ensure_all_finite=False, input_name="X")
        if array.shape[1] != len(wanted):
            raise ValueError(f"X has {array.shape[1]} columns, expected {len(wanted)}: {', '.join(wanted[:8])}")
        columns = list(array.T)
    categories = frame.categories
    rows = frame.rows([(name, _cells(name, column, categories.get(name))) for name, column in zip(wanted, columns, strict=True)])
    return Table(len(rows), rows, None, tasks_of(task, len(rows), known), names, list(range(len(names))), None, groups)


def _cells(name: str, column: NDArray[Any], known: list[str] | None) -> NDArray[np.float64] | list[str]:
    """A column as the core takes it: numbers, or cells as they are written, empty where missing. Of ``known`` values, their names."""
    if known is None and column.dtype.kind in "fiub":
        return np.ascontiguousarray(column, dtype=np.float64)
    cells = ["" if is_missing(value) else value for value in column.tolist()]
    if known is None:
        return [cell if isinstance(cell, str) else _written(name, at, cell) for at, cell in enumerate(cells)]
    present = [at for at, cell in enumerate(cells) if not isinstance(cell, str) or cell]
    for at, found in zip(present, texts(column[present], f"X, column {name!r}", known), strict=True):
        cells[at] = found
    return cells


def _written(name: str, at: int, value: Any) -> str:
    try:
        return repr(float(value))
    except (TypeError, ValueError):
        raise ValueError(f"X, row {at}, column {name!r}: {value!r} is not a number; the model learned from numbers here") from None
