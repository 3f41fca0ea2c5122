"""A piece of the data: a partition, checked as scikit-learn checks it, and what is said of it without looking at the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._base import MKLEstimator, Vector, sample_weights, target_name
from .._classifier import discrete
from .._table import Rows, Table, read, without_columns
from . import _sparse
from ._sparse import is_sparse, range_of, stacked


@dataclass(frozen=True)
class Piece:
    """Some rows with their task, their target and how often each counts."""

    rows: Rows
    #: The names of its tasks, and which of them each row is of; None without tasks.
    names: list[str]
    tasks: NDArray[np.int64] | None
    targets: NDArray[Any] | None
    weights: Vector
    #: Where each row is among all rows of all pieces.
    positions: NDArray[np.int64]


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


def squares(rows: Rows, weights: Vector | None, mean: Vector) -> Vector:
    """Σ w (x − mean)² by column."""
    if is_sparse(rows):
        return _sparse.squares(rows, weights, mean)
    total = np.zeros(rows.shape[1])
    for own in blocks(len(rows)):
        off = rows[own] - mean
        off *= off
        total += off.sum(axis=0) if weights is None else weights[own] @ off
    return total


def aligned(array: NDArray[Any], kind: Any = np.float64) -> NDArray[Any]:
    """An array as the core takes it: what came over a wire may begin at any byte."""
    return np.require(array, dtype=kind, requirements=("C_CONTIGUOUS", "ALIGNED"))


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
    place: dict[str, int] = {}
    tasks: NDArray[np.int64] | None = None
    if table.tasks is not None:
        named = (place.setdefault(name, len(place)) for name in table.tasks.tolist())
        tasks = np.fromiter(named, dtype=np.int64, count=table.count)
    piece = Piece(table.rows, list(place), tasks, labels, counted, np.arange(table.count, dtype=np.int64))
    return piece, columns


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


def summary(read: tuple[Piece, Columns], kind: str) -> Summary:
    """What a piece says of itself: tasks, classes, and sums of its columns."""
    piece, columns = read
    counts = piece.weights > 0
    names = ["all"] if piece.tasks is None else piece.names
    codes = np.zeros(piece.rows.shape[0], dtype=np.int64) if piece.tasks is None else piece.tasks
    found = Summary(piece.rows.shape[0], columns, dict(zip(names, np.bincount(codes, minlength=len(names)).tolist(), strict=True)))
    if kind == "labels" and piece.targets is not None:
        classes, own = np.unique(piece.targets, return_inverse=True)
        found.every_class, found.class_type = classes.tolist(), piece.targets.dtype
        has = np.zeros((len(names), len(classes)), dtype=bool)
        has[codes[counts], own[counts]] = True
        for name, of_task in zip(names, has, strict=True):
            found.classes[name] = classes[of_task].tolist()
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
    positions = piece.positions + first
    if tasks is None or piece.tasks is None:
        return Piece(piece.rows, piece.names, piece.tasks, piece.targets, piece.weights, positions)
    own = np.array([name in tasks for name in piece.names], dtype=bool)[piece.tasks]
    targets = None if piece.targets is None else piece.targets[own]
    return Piece(piece.rows[own], piece.names, piece.tasks[own], targets, piece.weights[own], positions[own])


def merged(*pieces: Piece) -> Piece:
    """Pieces one after the other."""
    if len(pieces) == 1:
        return pieces[0]

    def together(values: Sequence[NDArray[Any] | None]) -> Any:
        present = [value for value in values if value is not None]
        return np.concatenate(present) if present else None

    place: dict[str, int] = {}
    codes = [np.array([place.setdefault(name, len(place)) for name in piece.names], dtype=np.int64) for piece in pieces]
    return Piece(
        stacked([piece.rows for piece in pieces]),
        list(place),
        together([None if piece.tasks is None else own[piece.tasks] for own, piece in zip(codes, pieces, strict=True)]),
        together([piece.targets for piece in pieces]),
        together([piece.weights for piece in pieces]),
        together([piece.positions for piece in pieces]),
    )
