"""What the compiled part is given: vectors, and dictionaries with these entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ._core import Frame, Transfer

Vector = NDArray[np.float64]


class Set(TypedDict):
    """One sample set: X, dense or CSR, with the names of its columns, Gram matrices of the set by name, and the rows of X it is made of;
    where kernels are between tasks, the task kernels and the task of each row."""

    values: Any | None
    columns: list[str]
    grams: list[tuple[str, NDArray[np.float64]]]
    origin: list[int]
    tasks: tuple[Transfer, list[int]] | None


class Task(TypedDict):
    """One task: its sample set, its rows of it where they are not all, what kind of targets, targets and weights of its rows."""

    name: str
    samples: int
    rows: list[int] | None
    kind: str
    targets: NDArray[np.float64] | None
    weights: NDArray[np.float64] | None


class Limits(TypedDict):
    """Limits of one fit; memory in GiB."""

    tolerance: float
    max_passes: int
    time_limit: float | None
    threads: int
    seed: int
    memory_limit: float
    storage: str | None
    precision: str


class New(TypedDict):
    """New samples: rows, dense or CSR, and precomputed kernels (name, values, k(x, x)); threads to use, 0 for one per core; where kernels
    are between tasks, their task and its groups."""

    count: int
    threads: int
    rows: Any | None
    grams: list[tuple[str, NDArray[np.float64], NDArray[np.float64] | None]]
    origin: tuple[Frame, str, list[str | None]] | None
