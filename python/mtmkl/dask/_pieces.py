"""A piece of the data: a partition, checked as scikit-learn checks it, and what is said of it without looking at the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._base import MKLEstimator, sample_weights, target_name
from .._classifier import discrete
from .._table import Rows, Table, read, ready, rows_of, without_columns
from .._types import Vector
from . import _sparse
from ._sparse import is_sparse, range_of, stacked


@dataclass(frozen=True)
class Piece:
    """Some rows with their task, their target and how often each counts."""

    #: First of all: Dask reads what is sent first as one, however large it is, and puts the parts of others together again.
    rows: Rows
    #: The names of its tasks, and which of them each row is of; None without tasks.
    names: list[str]
    tasks: NDArray[np.int32] | None
    #: The classes of its targets, where these are classes, and which of them each row has; numbers without.
    classes: NDArray[Any] | None
    targets: NDArray[Any] | None
    weights: Vector
    #: Where each row is among all rows of all pieces.
    positions: NDArray[np.int64] | range


@dataclass(frozen=True)
class Columns:
    """What the columns of a piece are called: the same in all pieces."""

    names: list[str]
    indices: list[int]
    task_name: str | None
    target_name: str | None
    features: int
    #: Whether rows have tasks at all.
    has_tasks: bool
    #: `feature_names_in_`, where X has names.
    given: list[str] | None
    is_sparse: bool


@dataclass
class Summary:
    """What a piece says of itself."""

    count: int
    columns: Columns
    #: Rows of each task.
    tasks: dict[str, int]
    #: For each task the values of its targets, where these are classes, on rows that count.
    classes: dict[str, list[Any]] = field(default_factory=dict)
    #: The same on all rows.
    every_class: list[Any] = field(default_factory=list)
    class_type: Any = None
    low: Vector | None = None
    high: Vector | None = None
    weight: float = 0.0
    sums: Vector | None = None


#: Rows that are looked at together: what is made of all at once is memory that the machine has to clear first.
BLOCK = 1 << 15


def blocks(count: int) -> Iterator[slice]:
    """Rows from 0 to ``count``, some at a time."""
    return (slice(first, min(first + BLOCK, count)) for first in range(0, count, BLOCK))


def squares(rows: Rows, weights: Vector, mean: Vector) -> Vector:
    """Σ w (x − mean)² by column."""
    if is_sparse(rows):
        return _sparse.squares(rows, weights, mean)
    total = np.zeros(rows.shape[1])
    for own in blocks(len(rows)):
        off = rows[own] - mean
        off *= off
        total += weights[own] @ off
    return total


def aligned(array: NDArray[Any], kind: Any = np.float64) -> NDArray[Any]:
    """An array as the core takes it: what came over a wire may begin at any byte."""
    return np.require(array, dtype=kind, requirements=("C_CONTIGUOUS", "ALIGNED"))


def wired(rows: Rows) -> Any:
    """Rows as the core reads them, wherever they begin: dense ones as bytes."""
    return ready(rows) if is_sparse(rows) else np.ascontiguousarray(rows).reshape(-1).view(np.uint8)


def arrived(value: Any) -> Any:
    """What came over a wire as the core takes it: an array, rows; others as they are."""
    if isinstance(value, tuple):
        return rows_of(tuple(map(arrived, value)))
    return aligned(value, value.dtype) if isinstance(value, np.ndarray) else value


def read_piece(estimator: MKLEstimator, X: Any, y: Any, weight: Any, task: Any, number: int) -> tuple[Piece, Columns] | None:
    """A partition as a piece; None of an empty one. ``y`` and ``weight`` may name columns of X."""
    if (X.shape[0] if hasattr(X, "shape") else len(X)) == 0:
        return None
    try:
        taken = [name for name in (y, weight) if isinstance(name, str)]
        target = X[y] if isinstance(y, str) else y
        weights = X[weight] if isinstance(weight, str) else weight
        if taken:
            X = without_columns(X, taken)
        table, labels = _checked(estimator, X, target, task)
        counted = sample_weights(weights, table)
    except (ValueError, KeyError) as error:
        raise ValueError(f"partition {number}: {error}") from None
    if table.rows is None:
        raise ValueError(f"partition {number}: precomputed kernels are for one machine; give rows, or fit the estimator of mtmkl")
    names = getattr(estimator, "feature_names_in_", None)
    columns = Columns(
        table.names,
        table.indices,
        table.task_name,
        target_name(target) if target is not None else None,
        estimator.n_features_in_,
        table.tasks is not None,
        None if names is None else [str(name) for name in names],
        is_sparse(table.rows),
    )
    listed: list[str] = [] if table.tasks is None else table.tasks.tolist()
    tasks_there = list(dict.fromkeys(listed))
    tasks = None if table.tasks is None else _codes(listed, tasks_there)
    classes = None
    if estimator._kind == "labels":
        classes, labels = np.unique(labels, return_inverse=True)
        labels = labels.astype(np.int32)
    return Piece(table.rows, tasks_there, tasks, classes, labels, counted, range(table.count)), columns


def _codes(values: list[Any], known: list[Any]) -> NDArray[np.int32]:
    """Which of the known ones each value is."""
    place = {value: at for at, value in enumerate(known)}
    return np.fromiter(map(place.__getitem__, values), dtype=np.int32, count=len(values))


def _checked(estimator: MKLEstimator, X: Any, y: Any, task: Any) -> tuple[Table, Any]:
    if estimator._kind == "none":
        return read(estimator, X, task=task, reset=True)[0], None
    if y is None:
        raise ValueError("y is missing")
    if estimator._kind == "values":
        table, values = read(estimator, X, y, task=task, reset=True, y_numeric=True)
        return table, np.asarray(values, dtype=np.float64)
    table, labels = read(estimator, X, y, task=task, reset=True)
    return table, discrete(labels)


def summary(read: tuple[Piece, Columns]) -> Summary:
    """What a piece says of itself: tasks, classes, and sums of its columns."""
    piece, columns = read
    counts = piece.weights > 0
    names = ["all"] if piece.tasks is None else piece.names
    count = piece.rows.shape[0]
    codes = np.zeros(count, dtype=np.int32) if piece.tasks is None else piece.tasks
    found = Summary(count, columns, dict(zip(names, np.bincount(codes, minlength=len(names)).tolist(), strict=True)))
    if piece.classes is not None and piece.targets is not None:
        found.every_class, found.class_type = piece.classes.tolist(), piece.classes.dtype
        has = np.zeros((len(names), len(piece.classes)), dtype=bool)
        has[codes[counts], piece.targets[counts]] = True
        for name, of_task in zip(names, has.tolist(), strict=True):
            found.classes[name] = [value for value, there in zip(found.every_class, of_task, strict=True) if there]
    used, weights = _counting(piece)
    if used.shape[0]:
        found.low, found.high = range_of(used)
        found.weight, found.sums = float(weights.sum()), weights @ used
    return found


def _counting(piece: Piece) -> tuple[Rows, Vector]:
    """The rows that count, and how often."""
    counts = piece.weights > 0
    if counts.all():
        return piece.rows, piece.weights
    return piece.rows[counts], piece.weights[counts]


def spread(read: tuple[Piece, Columns], mean: Vector, low: Vector, high: Vector) -> tuple[Vector, NDArray[np.bool_]]:
    """Σ w (x − mean)² by column, and whether all values are the least or the largest of all."""
    used, weights = _counting(read[0])
    if is_sparse(used):
        return squares(used, weights, mean), _sparse.is_binary(used, low, high)
    is_binary = np.ones(len(mean), dtype=bool)
    for own in blocks(len(used)):
        values = used[own]
        is_binary &= np.all((values == low) | (values == high), axis=0)
        if not is_binary.any():
            break
    return squares(used, weights, mean), is_binary


def part(read: tuple[Piece, Columns], first: int, tasks: set[str] | None) -> Piece:
    """The rows of some tasks, or all of them; ``first`` is where the piece begins among all rows."""
    piece, _ = read
    if tasks is None or piece.tasks is None:
        return replace(piece, positions=_moved(piece.positions, first))
    wanted = np.array([name in tasks for name in piece.names], dtype=bool)
    names = [name for name in piece.names if name in tasks]
    own = np.flatnonzero(wanted[piece.tasks])
    # Where each name that is left stands now.
    codes = (np.cumsum(wanted) - 1).astype(np.int32)
    return Piece(
        piece.rows[own],
        names,
        codes[piece.tasks[own]],
        piece.classes,
        None if piece.targets is None else piece.targets[own],
        piece.weights[own],
        np.asarray(_moved(piece.positions, first))[own],
    )


def _moved(positions: NDArray[np.int64] | range, by: int) -> NDArray[np.int64] | range:
    return range(positions.start + by, positions.stop + by) if isinstance(positions, range) else positions + by


def merged(*pieces: Piece) -> Piece:
    """Pieces one after the other."""
    if len(pieces) == 1:
        return pieces[0]

    def together(values: Sequence[NDArray[Any] | range | None]) -> Any:
        present = [np.asarray(value) for value in values if value is not None]
        return np.concatenate(present) if present else None

    def known_by(names: list[list[Any]], codes: list[NDArray[Any]]) -> tuple[list[Any], Any]:
        """The names of all, each once, and which of them each row has."""
        every = list(dict.fromkeys(name for own in names for name in own))
        return every, together([_codes(own, every)[code] for own, code in zip(names, codes, strict=True)])

    targets: Any = [piece.targets for piece in pieces]
    classes = None
    if all(piece.classes is not None for piece in pieces):
        kinds = {piece.classes.dtype for piece in pieces if piece.classes is not None}
        listed, targets = known_by([piece.classes.tolist() for piece in pieces if piece.classes is not None], targets)
        classes = np.empty(len(listed), dtype=kinds.pop() if len(kinds) == 1 else object)
        classes[:] = listed
    else:
        targets = together(targets)
    names: list[str] = []
    tasks = None
    if all(piece.tasks is not None for piece in pieces):
        names, tasks = known_by([piece.names for piece in pieces], [piece.tasks for piece in pieces if piece.tasks is not None])
    return Piece(
        stacked([piece.rows for piece in pieces]),
        names,
        tasks,
        classes,
        targets,
        together([piece.weights for piece in pieces]),
        together([piece.positions for piece in pieces]),
    )
