"""Machines that stay on the workers: ``keep="workers"``.

Each batch leaves a model on its worker, a value of the cluster like any other: Dask makes it again from the batch's data where it is
lost, at the same θ, and who asks for it is sent there. What a batch's model states is true of its tasks at their weights, and is proven
from rows by the very machines in it; so is what is stated of the whole.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from distributed import Future, get_worker
from numpy.typing import NDArray

from .. import _core
from .._base import MKLEstimator
from .._folder import Writer
from .._kernels import Matrix
from .._table import Rows, Table, part_of, ready
from . import _worker
from ._cluster import _FAULTS, ATTEMPTS, Cluster, Home, Round, _is_cancelling, _together, size_of
from ._errors import ClusterError
from ._pieces import Piece, aligned

#: For each sample set its batch, and its number there.
Places = Sequence[tuple[int, int]]
#: Rows for one batch, and of which of its sample sets so many of them are, one after the other.
Question = tuple[Rows, list[tuple[int, int]]]


# -- on workers ------------------------------------------------------------------------------------------------------------------------


def hold(call: dict[str, Any], piece: Piece, recipe: _worker.Recipe) -> dict[str, Any]:
    """The machines of a batch as a model, with what they prove: those that the client was told of, or others, found again at the same θ."""

    def work() -> dict[str, Any]:
        entry = _worker._entry(call["run"], call["batch"])
        with entry.lock:
            is_new = entry.batch is None
            batch = _worker._prepared(call, entry, piece, recipe)
            needed = sorted(call["tokens"])
            lost = [number for number in needed if entry.tokens.get(number) != call["tokens"][number]]
            for number in lost:
                _worker._evaluated(entry, batch, number, call["thetas"][number], {**call, "curvature": False, "keep": needed})
            arguments = (aligned(call["theta"]), call["machines"], call["mixtures"])
            model, proof = batch.standing(*arguments, call["allowed"], call["status"], call["notes"])
        if is_new:
            # Made for this alone: kernel matrices are not wanted any more.
            _worker.forget(call["run"], call["batch"])
        return {"model": model, "proof": proof, "found_again": len(lost), "token": secrets.token_hex(8)}

    return _worker._named(work)


def about(held: dict[str, Any]) -> dict[str, Any]:
    """What the client needs to know of the machines of a batch, without them."""
    told = {name: held[name] for name in ("proof", "found_again", "token", "worker")}
    return {**told, "weights": held["model"].without_machines().machines()}


def written(held: dict[str, Any]) -> tuple[str, bytes]:
    """The machines of a batch as a model file, and by which token they are known."""
    return held["token"], held["model"].to_bytes()


def decided(held: dict[str, Any], question: Question | None) -> list[Matrix]:
    """Decision values, samples × machines, of the sample sets that are asked for."""
    if question is None:
        return []
    rows, counts = question
    first, found = 0, []
    for set, count in counts:
        own = ready(rows[first : first + count])
        new: Any = {"count": count, "threads": get_worker().state.nthreads, "rows": own, "grams": [], "origin": None}
        found.append(held["model"].decisions(set, new))
        first += count
    return found


# -- which worker is asked what ----------------------------------------------------------------------------------------------------------


def questions(places: Places, table: Table, parts: Sequence[tuple[int, NDArray[np.intp]]]) -> dict[int, Question]:
    """The rows that each batch is asked about, for parts of a table by sample set."""
    by_batch: dict[int, list[tuple[int, NDArray[np.intp]]]] = {}
    for set, rows in parts:
        batch, number = places[set]
        by_batch.setdefault(batch, []).append((number, rows))
    return {
        batch: (part_of(table.rows, np.concatenate([rows for _, rows in own])), [(number, len(rows)) for number, rows in own])
        for batch, own in by_batch.items()
    }


@dataclass
class Told:
    """What machines on workers have said of the rows of one table: in the place of these machines."""

    places: Places
    answers: list[list[Matrix]]

    def decisions(self, estimator: MKLEstimator, table: Table, parts: Sequence[tuple[int, NDArray[np.intp]]]) -> list[Matrix]:
        """What was said, in the order of the parts."""
        own = [iter(answer) for answer in self.answers]
        return [aligned(next(own[self.places[set][0]])) for set, _ in parts]

    def home(self, model: _core.Model) -> _core.Model:
        """They are not here."""
        raise ValueError("what is new is predicted by the machines of all tasks together, which are on the workers: predict with plain()")


# -- at the client ---------------------------------------------------------------------------------------------------------------------


@dataclass
class Held:
    """The machines of a fit, on the workers of its cluster."""

    cluster: Cluster
    places: Places
    #: What makes each batch's machines again.
    calls: list[dict[str, Any]] = field(default_factory=list)
    futures: list[Future | None] = field(default_factory=list)
    #: By which the machines that the certificate is of are known.
    tokens: list[str] = field(default_factory=list)
    #: Weights and certificate, where what the machines of all batches prove is this.
    certified: Callable[[list[dict[str, Any]]], _core.Model] | None = None

    # -- of a fit ----------------------------------------------------------------------------------------------------------------------

    async def keep(self, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Leaves the machines of all batches on their workers; says what they prove."""
        started = time.perf_counter()
        round = Round("machines", workers=len(await self.cluster.threads()), sent=sum(map(size_of, calls)))
        self.calls = [{**call, "run": self.cluster.run, "batch": home.number} for call, home in zip(calls, self.cluster.homes, strict=True)]
        self.futures = [None] * len(calls)
        answers = await self.ask("about", about, [()] * len(calls))
        self.tokens = [answer["token"] for answer in answers]
        round.received = sum(map(size_of, answers))
        round.seconds = time.perf_counter() - started
        self.cluster.rounds.append(round)
        return answers

    # -- questions ---------------------------------------------------------------------------------------------------------------------

    async def ask(self, name: str, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...] | None]) -> list[Any]:
        """What a function says of the machines of each batch, on the worker that has them; nothing of those that are not asked."""
        work = [self._ask(at, name, function, own) for at, own in enumerate(arguments) if own is not None]
        return await self.cluster.guarded(_together(work))

    async def _ask(self, at: int, name: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        cluster, home = self.cluster, self.cluster.homes[at]
        fault: BaseException | None = None
        for attempt in range(ATTEMPTS):
            try:
                held = await self._machines(at, fault)
                key = cluster._key(name, home, attempt)
                future = cluster.client.submit(function, held, *arguments, key=key, pure=False)
                return await cluster.client.gather(future, direct=cluster.direct, asynchronous=True)
            except _FAULTS as found:
                fault = found
                if isinstance(fault, asyncio.CancelledError) and _is_cancelling():
                    raise
                if cluster.client.status != "running":
                    await asyncio.sleep(0.5)
                home.worker = home.built = None
        raise ClusterError(
            f"the machines of batch {home.number} ({shown_tasks(home)}) were lost {ATTEMPTS} times, and cannot be found again ({fault}); "
            "fit again, with more memory for each worker or smaller batches, batches=…"
        )

    async def _machines(self, at: int, fault: BaseException | None = None) -> Future:
        """The machines of a batch; made again from its data, at the same θ, where Dask has lost them for good."""
        cluster, home, future = self.cluster, self.cluster.homes[at], self.futures[at]
        gone = ("cancelled", "error") if home.again is None else ("cancelled", "error", "lost")
        if future is not None and future.status not in gone:
            return future
        if future is not None or home.worker is None:
            home.worker = home.built = None
            cluster.place(await cluster.threads())
        await cluster._bring(home, fault)
        self.futures[at] = made = cluster.client.submit(
            hold,
            self.calls[at],
            home.data,
            home.recipe,
            key=cluster._key("machines", home, 0),
            workers=[home.worker] if home.worker else None,
            allow_other_workers=True,
            pure=False,
        )
        return made

    def all_here(self) -> list[Future]:
        """The machines of all batches, for a graph; those that Dask cannot make again are made again."""
        machines = _together([self._machines(at) for at in range(len(self.calls))])
        return (
            list(self.cluster.client.sync(self.cluster.guarded, machines)) if not self.cluster.client.asynchronous else list(self.futures)
        )

    # -- for an estimator --------------------------------------------------------------------------------------------------------------

    def _sync(self, function: Callable[..., Any], *arguments: Any) -> Any:
        client = self.cluster.client
        if client.asynchronous:
            raise ValueError(
                "the machines are on the workers, which an asynchronous client cannot wait for here: predict on a dask collection, or "
                "save(folder) with a client of the same cluster that is not asynchronous"
            )
        return client.sync(function, *arguments)

    def decisions(self, estimator: MKLEstimator, table: Table, parts: Sequence[tuple[int, NDArray[np.intp]]]) -> list[Matrix]:
        """The decision values of the machines of sample sets on rows of a table."""
        by_batch = questions(self.places, table, parts)
        arguments = [(by_batch[at],) if at in by_batch else None for at in range(len(self.calls))]
        told = iter(self._sync(self.ask, "decide", decided, arguments))
        return Told(self.places, [next(told) if own else [] for own in arguments]).decisions(estimator, table, parts)

    def home(self, model: _core.Model) -> _core.Model:
        """The model with the machines of all batches."""
        parts: list[_core.Model] = []
        weights = self._each(model, lambda at, part: parts.append(part))
        return weights.with_machines(parts, list(self.places))

    def save(self, folder: str | os.PathLike[str], model: _core.Model) -> None:
        """Writes a folder of models, one batch after the other, so that the client has one of them at a time."""
        with Writer(folder) as writer:

            def add(at: int, part: _core.Model) -> None:
                own = sorted((number, set) for set, (batch, number) in enumerate(self.places) if batch == at)
                writer.add(part, [set for _, set in own])

            writer.end(self._each(model, add))

    def _each(self, model: _core.Model, take: Callable[[int, _core.Model], None]) -> _core.Model:
        """Hands over the machines of each batch; gives the model of weights whose certificate is of these very machines."""
        count = len(self.calls)
        before = self._sync(self.ask, "about", about, [()] * count)
        if [own["token"] for own in before] != self.tokens:
            # Some were lost since then, and found again.
            assert self.certified is not None
            model = self.certified(before)
            self.tokens = [own["token"] for own in before]
        for at in range(count):
            [(token, part)] = self._sync(self.ask, "fetch", written, [() if other == at else None for other in range(count)])
            if token != self.tokens[at]:
                lost = shown_tasks(self.cluster.homes[at])
                raise ClusterError(f"a worker was lost meanwhile, and with it the machines of {lost}; they are found again: try once more")
            take(at, _core.Model.from_bytes(part))
        return model


def shown_tasks(home: Home) -> str:
    """Some of the tasks of a batch."""
    return "the tasks " + ", ".join(map(repr, home.tasks[:4])) + (", …" if len(home.tasks) > 4 else "")
