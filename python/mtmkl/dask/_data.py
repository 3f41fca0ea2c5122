"""From what a user gives to batches of tasks on workers: dask DataFrames, lists of partitions, a future for each task, rows in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from distributed import Client, Future

from .._base import MKLEstimator
from ._cluster import ATTEMPTS, Cluster, Home
from ._errors import ClusterError
from ._pieces import Columns, Piece, Summary, merged, part, read_piece, summary

_Read = tuple[Piece, Columns]


def is_lazy(value: Any) -> bool:
    """Whether this is on a cluster or still to be computed: a dask collection, a future, something delayed."""
    return isinstance(value, Future) or hasattr(value, "__dask_graph__")


def _partitions(value: Any) -> list[Any]:
    """The partitions of a dask collection, a list of them, or one for everything."""
    if getattr(value, "ndim", 1) == 2 and hasattr(value, "rechunk"):
        # Every partition has all columns.
        value = value.rechunk({1: -1})
    if hasattr(value, "to_delayed"):
        return list(np.asarray(value.to_delayed(), dtype=object).ravel())
    return list(value) if isinstance(value, list | tuple) else [value]


@dataclass
class Given:
    """Data in pieces: each on the cluster, or here."""

    #: X, y, weight and task of each piece.
    pieces: list[tuple[Any, Any, Any, Any]]
    is_here: bool


def given(X: Any, y: Any, weight: Any, task: Any) -> Given:
    """What the arguments of `fit` are."""
    if isinstance(X, Mapping):
        if task is not None:
            raise ValueError("task is given, but the keys of X are the tasks already; leave task out")
        pieces = []
        for name, own in X.items():
            own_y = y.get(name) if isinstance(y, Mapping) else y
            own_weight = weight.get(name) if isinstance(weight, Mapping) else weight
            if isinstance(y, Mapping) and name not in y:
                raise ValueError(f"y has no entry for the task {name!r}, which X has")
            pieces.append((own, own_y, own_weight, name))
        if not pieces:
            raise ValueError("X is an empty mapping, expected a future or rows for each task")
        return Given(pieces, not any(is_lazy(own) for own, *_ in pieces))
    if is_lazy(X) or (isinstance(X, list | tuple) and len(X) > 0 and all(map(is_lazy, X))):
        rows = _partitions(X)

        def along(value: Any, what: str) -> list[Any]:
            if value is None or isinstance(value, str):
                return [value] * len(rows)
            found = _partitions(value)
            if len(found) != len(rows):
                raise ValueError(f"{what} has {len(found)} partitions, but X has {len(rows)}; both must be partitioned alike")
            return found

        return Given(list(zip(rows, along(y, "y"), along(weight, "sample_weight"), along(task, "task"), strict=True)), False)
    return Given([(X, y, weight, task)], True)


@dataclass
class Pieces:
    """The pieces, read, and what they say of themselves."""

    cluster: Cluster
    #: On the cluster, futures; here, the pieces themselves.
    read: list[Any]
    is_here: bool
    summaries: list[Summary]

    @property
    def rows(self) -> Any | None:
        """All rows, where they are here."""
        return self.read[0][0].rows if self.is_here else None

    async def map(self, name: str, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """What a function says of each piece."""
        return await _mapped(self.cluster, name, function, self.read, arguments, self.is_here)


async def _mapped(
    cluster: Cluster, name: str, function: Callable[..., Any], pieces: Sequence[Any], arguments: tuple[Any, ...], is_here: bool
) -> list[Any]:
    if is_here:
        return [await asyncio.to_thread(function, piece, *arguments) for piece in pieces]
    client = cluster.client
    futures = [
        client.submit(function, piece, *arguments, pure=False, key=f"mtmkl-{name}-{cluster.run}-{at}") for at, piece in enumerate(pieces)
    ]
    found: list[Any] = await cluster.guarded(client.gather(futures, asynchronous=True))
    return found


def _summary(read: _Read | None) -> Summary | None:
    return None if read is None else summary(read)


def _one(read: list[_Read | None]) -> list[Any]:
    """Pieces in memory as one."""
    present = [own for own in read if own is not None]
    if len(present) < 2:
        return list(present)
    columns = present[0][1]
    for number, (_, own) in enumerate(present):
        _check_columns(number, own, columns)
    whole = merged(*(piece for piece, _ in present))
    return [(replace(whole, positions=range(whole.rows.shape[0])), columns)]


def _check_columns(number: int, own: Columns, first: Columns) -> None:
    if own.is_sparse != first.is_sparse:
        raise ValueError(f"partition {number} has sparse rows and others have not, or the other way round; make all of them one kind")
    if own != first:
        raise ValueError(
            f"partition {number} has the columns {own.names}, others {first.names}; all must have the same ones in the same order"
        )


async def pieces_of(cluster: Cluster, estimator: MKLEstimator, data: Given) -> Pieces:
    """Reads all pieces; empty ones are left out."""
    await cluster.look()
    client: Client = cluster.client
    read: list[Any]
    if data.is_here:
        read = _one([await asyncio.to_thread(read_piece, estimator, *own, number) for number, own in enumerate(data.pieces)])
    else:
        computed = [[client.compute(value) if hasattr(value, "__dask_graph__") else value for value in own] for own in data.pieces]
        read = [
            client.submit(read_piece, estimator, *own, number, pure=False, key=f"mtmkl-read-{cluster.run}-{number}")
            for number, own in enumerate(computed)
        ]
    found = await _mapped(cluster, "summary", _summary, read, (), data.is_here)
    present = [at for at, own in enumerate(found) if own is not None]
    if not present:
        raise ValueError("X has no rows in any of its partitions")
    summaries: list[Summary] = [found[at] for at in present]
    for at, own in zip(present, summaries, strict=True):
        _check_columns(at, own.columns, summaries[0].columns)
    return Pieces(cluster, [read[at] for at in present], data.is_here, summaries)


def assigned(sizes: Mapping[str, int], lies: Mapping[str, str | None], threads: Mapping[str, int], batches: int | None) -> list[list[str]]:
    """The tasks of each batch: largest first, each to the batch that has the least to do; with its own worker's, where it lies on one.

    A round costs some n² for each task. Where all tasks lie on some worker already, nothing is moved.
    """
    workers = sorted(threads)
    count = batches or len(workers)
    if batches is None and all(lies.get(task) in threads for task in sizes):
        by_worker: dict[str, list[str]] = {worker: [] for worker in workers}
        for task in sizes:
            by_worker[str(lies[task])].append(task)
        loads = [sum(sizes[task] ** 2 for task in own) / threads[worker] for worker, own in by_worker.items()]
        # What moving saves is worth it where one worker has far more to do than the others.
        if max(loads) <= 1.5 * sum(loads) / len(loads):
            return [own for own in by_worker.values() if own]
    count = max(1, min(count, len(sizes)))
    shares = [float(threads[workers[at % len(workers)]]) for at in range(count)]
    work = [0.0] * count
    found: list[list[str]] = [[] for _ in range(count)]
    for task in sorted(sizes, key=lambda task: (-sizes[task], task)):
        at = min(range(count), key=lambda at: ((work[at] + sizes[task] ** 2) / shares[at], at))
        work[at] += sizes[task] ** 2
        found[at].append(task)
    return [own for own in found if own]


async def batched(pieces: Pieces, batches: int | None) -> None:
    """Gives each batch its rows, on its worker: those that lie elsewhere are moved once."""
    cluster, client = pieces.cluster, pieces.cluster.client
    threads = await cluster.threads()
    sizes: dict[str, int] = {}
    where: dict[str, list[int]] = {}
    for at, own in enumerate(pieces.summaries):
        for task, rows in own.tasks.items():
            sizes[task] = sizes.get(task, 0) + rows
            where.setdefault(task, []).append(at)
    holders: list[str | None] = [None] * len(pieces.read)
    if not pieces.is_here:
        known = await client.who_has(pieces.read)
        for at, piece in enumerate(pieces.read):
            owners = sorted(set(known.get(piece.key, ())) & set(threads))
            holders[at] = owners[0] if owners else None
    lies = {task: holders[own[0]] if len({holders[at] for at in own}) == 1 else None for task, own in where.items()}
    first = np.concatenate([[0], np.cumsum([own.count for own in pieces.summaries])])
    shuffled = assigned(sizes, lies, threads, batches)
    cluster.homes = [Home(number, float(sum(sizes[task] ** 2 for task in own)), own) for number, own in enumerate(shuffled)]
    for home in cluster.homes:
        on = {lies[task] for task in home.tasks}
        if len(on) == 1 and (only := on.pop()) is not None:
            home.worker = only
    cluster.place(threads)
    for home in cluster.homes:
        tasks = set(home.tasks)
        used = [at for at, own in enumerate(pieces.summaries) if tasks & own.tasks.keys()]
        wanted = [None if set(pieces.summaries[at].tasks) <= tasks else tasks for at in used]
        if pieces.is_here:
            # Pieces in memory are one.
            home.again = _Scatter(cluster, pieces.read[0], wanted[0])
            await home.again(home)
            continue
        parts = [
            client.submit(
                part,
                pieces.read[at],
                int(first[at]),
                own,
                pure=False,
                key=f"mtmkl-part-{cluster.run}-{home.number}-{at}",
                workers=[holders[at]] if holders[at] else None,
                allow_other_workers=True,
            )
            for at, own in zip(used, wanted, strict=True)
        ]
        home.data = client.submit(
            merged,
            *parts,
            pure=False,
            key=f"mtmkl-batch-{cluster.run}-{home.number}",
            workers=[home.worker] if home.worker else None,
            allow_other_workers=True,
        )
        home.near = home.worker


@dataclass
class _Scatter:
    """Rows that the client has, and which tasks of them: they go to a worker, and again when it is lost."""

    cluster: Cluster
    read: _Read
    tasks: set[str] | None

    async def __call__(self, home: Home) -> None:
        rows = await asyncio.to_thread(part, self.read, 0, self.tasks)
        for attempt in range(ATTEMPTS):
            threads = await self.cluster.threads()
            if home.worker not in threads:
                home.worker = None
                self.cluster.place(threads)
            try:
                home.data = await self.cluster.client.scatter(
                    rows, workers=[home.worker], direct=self.cluster.direct, hash=False, asynchronous=True
                )
            except (OSError, TimeoutError) as found:
                # It has just gone, and the scheduler will soon know.
                error = found
                await asyncio.sleep(0.2 * 2**attempt)
                continue
            home.near = home.worker
            return
        raise ClusterError(f"the rows of batch {home.number} could not be sent to the worker {home.worker}: {error}")
