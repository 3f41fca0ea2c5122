"""Rows that are mostly zeros (SciPy's CSR), where those with all their numbers are arrays: sums over columns, and what is done with rows.

What is not stored is zero, and counts as often as its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._table import Rows
from .._types import Vector


def is_sparse(rows: Rows) -> bool:
    """Whether these are rows of a sparse matrix."""
    return bool(sparse.issparse(rows))


def stacked(parts: Sequence[Rows]) -> Rows:
    """Rows one after the other."""
    return sparse.vstack(parts, format="csr") if is_sparse(parts[0]) else np.concatenate(parts)


def range_of(rows: Rows) -> tuple[Vector, Vector]:
    """The least and the largest of each column."""

    def dense(found: Any) -> Vector:
        return np.asarray(found.toarray() if hasattr(found, "toarray") else found, dtype=np.float64).ravel()

    return dense(rows.min(axis=0)), dense(rows.max(axis=0))


def _of_columns(rows: Rows, values: Vector) -> Vector:
    """Σ by column of one value for each that is stored."""
    return np.bincount(rows.indices, weights=values, minlength=rows.shape[1]).astype(np.float64)


def squares(rows: Rows, weights: Vector, mean: Vector) -> Vector:
    """Σ w (x − mean)² by column."""
    counts = np.repeat(weights, np.diff(rows.indptr))
    zeros = float(weights.sum()) - _of_columns(rows, counts)
    return _of_columns(rows, counts * (rows.data - mean[rows.indices]) ** 2) + np.maximum(zeros, 0.0) * mean**2


def is_binary(rows: Rows, low: Vector, high: Vector) -> NDArray[np.bool_]:
    """Whether all values of a column are the least or the largest of all."""
    between = (rows.data != low[rows.indices]) & (rows.data != high[rows.indices])
    has_zeros = np.bincount(rows.indices, minlength=rows.shape[1]) < rows.shape[0]
    found: NDArray[np.bool_] = (_of_columns(rows, between.astype(np.float64)) == 0) & (~has_zeros | (low == 0) | (high == 0))
    return found
