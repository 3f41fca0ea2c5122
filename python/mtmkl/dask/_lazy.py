"""Predictions on dask collections: partition by partition, once somebody asks for them.

An ordinary estimator goes to where the partitions are. Where machines stay on workers, the rows of a partition go to those that have the
machines of their tasks, and what these say comes back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base import MKLEstimator
from .._kernels import Matrix
from ._data import is_lazy
from ._held import Held, Places, Question, Told, decided, questions


def lazily(shown: MKLEstimator, held: Held | None, method: str, X: Any, task: Any, columns: int | None, kind: Any) -> Any:
    """A dask array of what a method says of a collection: so many columns, or one number for each row."""
    import dask.array

    has_chunks = hasattr(X, "chunks")
    if not has_chunks and task is not None:
        raise ValueError("a dask DataFrame has its tasks in a column; fit with task='…', or give rows in memory")
    if has_chunks and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    parts = np.asarray(X.to_delayed(), dtype=object).ravel()
    tasks = [task] * len(parts)
    if is_lazy(task):
        tasks = dask.array.asarray(task).rechunk((X.chunks[0],)).to_delayed().ravel()
    counts = X.chunks[0] if has_chunks else [np.nan] * len(parts)
    model = dask.delayed(shown)
    machines = [] if held is None else held.all_here()
    width = () if columns is None else (columns,)
    empty = np.empty((0, *width), dtype=kind)
    found = []
    for rows, own, count in zip(parts, tasks, counts, strict=True):
        if held is None:
            said = dask.delayed(_said)(model, method, empty, rows, own)
        else:
            by_batch = dask.delayed(_split)(model, held.places, rows, own)
            answers = [dask.delayed(_asked)(one, by_batch, at) for at, one in enumerate(machines)]
            said = dask.delayed(_put_together)(model, held.places, method, empty, rows, own, *answers)
        found.append(dask.array.from_delayed(said, shape=(count, *width), dtype=kind))
    return dask.array.concatenate(found)


def _said(shown: MKLEstimator, method: str, empty: Any, rows: Any, task: Any) -> Any:
    """What an estimator says of a partition."""
    return empty if rows.shape[0] == 0 else getattr(shown, method)(rows, task=task)


def _split(shown: MKLEstimator, places: Places, rows: Any, task: Any) -> dict[int, Question]:
    """What each batch is asked about a partition."""
    if rows.shape[0] == 0:
        return {}
    table = shown._asked(rows, task)
    parts = [(shown._frame.set_of(shown._model, name), own) for name, own in shown._parts(table)]
    return questions(places, table, [(set, own) for set, own in parts if set is not None])


def _asked(machines: dict[str, Any], by_batch: dict[int, Question], batch: int) -> list[Matrix]:
    """What a batch says of a partition."""
    return decided(machines, by_batch.get(batch))


def _put_together(shown: MKLEstimator, places: Places, method: str, empty: Any, rows: Any, task: Any, *answers: list[Matrix]) -> Any:
    """What an estimator says of a partition, where the machines have said this."""
    return _said(shown._with(Told(places, list(answers))), method, empty, rows, task)
