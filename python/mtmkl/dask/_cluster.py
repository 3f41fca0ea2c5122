"""The cluster as a fit sees it: which worker has which batch, calls that survive the loss of workers, and time-outs."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError as OtherCancelledError
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from distributed import Client, Future, KilledWorker, fire_and_forget
from distributed.client import FutureCancelledError
from distributed.comm import CommClosedError

from . import _worker
from ._errors import ClusterError

T = TypeVar("T")

#: How often the cluster is looked at while it works, in seconds.
_LOOK = 0.5
#: How long a worker may take to answer the client for the client to reach it itself, in seconds.
_REACHED = 2.0
#: How often one call of a batch is tried: Dask itself tries each of them on three workers.
ATTEMPTS = 4
_FAULTS = (KilledWorker, FutureCancelledError, OtherCancelledError, CommClosedError)


@dataclass
class Home:
    """A batch, and where it is."""

    number: int
    #: Σ n² over its tasks, which is what a round costs.
    cost: float
    #: Some of its tasks, for messages.
    tasks: list[str]
    worker: str | None = None
    #: Its data, and what makes it again where nothing else can.
    data: Future | None = None
    again: Callable[[Home], Coroutine[Any, Any, None]] | None = None
    recipe: Future | None = None
    #: The worker that data and recipe were brought to, and the one that has its engine.
    near: str | None = None
    built: str | None = None


@dataclass
class Round:
    """What one round of calls took: bytes of arrays that went and came, seconds from first call to last answer, calls made again."""

    name: str
    seconds: float = 0.0
    sent: int = 0
    received: int = 0
    repeated: int = 0
    #: The seconds that the slowest batch worked.
    slowest: float = 0.0
    workers: int = 0


def size_of(value: Any) -> int:
    """Bytes of all arrays and texts in a message."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, bytes | str):
        return len(value)
    if hasattr(value, "indptr"):
        return int(value.data.nbytes + value.indices.nbytes + value.indptr.nbytes)
    if isinstance(value, dict):
        return sum(map(size_of, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(size_of, value))
    return 8


@dataclass
class Cluster:
    """The workers of a client, for one fit."""

    client: Client
    run: str
    timeout: float
    homes: list[Home] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    #: Whether rows and answers go past the scheduler, straight to workers and from them.
    direct: bool = False
    _calls: int = 0

    async def threads(self) -> dict[str, int]:
        """The threads of each worker, once there is one.

        Raises `ClusterError` where there is none within the time-out, or the scheduler does not answer.
        """
        started = time.monotonic()
        is_answered = True
        while True:
            left = self.timeout - (time.monotonic() - started)
            if left <= 0 and not is_answered:
                # It went away, and the client has not noticed yet.
                raise self._gone()
            if left <= 0:
                raise ClusterError(
                    f"the cluster has no workers after {self.timeout:g} seconds; start some, cluster.scale(2), or give them more time, "
                    "timeout=…"
                )
            try:
                found = await asyncio.wait_for(self.client.scheduler.ncores(workers=None), left)
            except (TimeoutError, OSError, CommClosedError) as error:
                if self.client.status == "running" and not isinstance(error, TimeoutError):
                    is_answered = False
                    await asyncio.sleep(min(0.2, max(left, 0.01)))
                    continue
                raise self._gone() from None
            is_answered = True
            if found:
                return dict(found)
            await asyncio.sleep(min(0.1, left))

    async def look(self) -> None:
        """Finds out whether the client reaches all workers itself; what goes through the scheduler is packed and unpacked twice."""

        async def answers(worker: str) -> bool:
            try:
                await asyncio.wait_for(self.client.rpc(worker).identity(), _REACHED)
            except (TimeoutError, OSError, CommClosedError):
                return False
            return True

        self.direct = all(await asyncio.gather(*map(answers, await self.threads())))

    def _gone(self) -> ClusterError:
        return ClusterError(
            f"the scheduler does not answer (waited {self.timeout:g} seconds); the fit is lost: start the cluster, connect and fit again"
        )

    async def guarded(self, work: Coroutine[Any, Any, T]) -> T:
        """The work, unless the scheduler or all workers are gone for longer than the time-out."""
        task = asyncio.ensure_future(work)
        missing_since: float | None = None
        try:
            while True:
                done, _ = await asyncio.wait({task}, timeout=_LOOK)
                if done:
                    return task.result()
                is_answered = is_well = self.client.status == "running"
                if is_well:
                    try:
                        is_well = bool(await asyncio.wait_for(self.client.scheduler.ncores(workers=None), max(self.timeout, 1.0)))
                    except (TimeoutError, OSError, CommClosedError):
                        is_answered = is_well = False
                now = time.monotonic()
                missing_since = None if is_well else missing_since or now
                if missing_since is not None and now - missing_since > self.timeout:
                    if not is_answered:
                        raise self._gone()
                    raise ClusterError(
                        f"the cluster has had no workers for {self.timeout:g} seconds; the fit is lost: start some and fit again"
                    )
                if self.client.status == "closed":
                    raise self._gone()
        finally:
            if not task.done():
                task.cancel()
                with contextlib.suppress(BaseException):
                    await task

    def place(self, threads: dict[str, int]) -> None:
        """Finds a worker for each batch whose own is gone, and takes a batch from those with several for one that has none."""
        load = {worker: [home for home in self.homes if home.worker == worker] for worker in threads}

        def weight(worker: str) -> float:
            return sum(home.cost for home in load[worker]) / threads[worker]

        lost = [home for home in self.homes if home.worker not in threads]
        for home in sorted(lost, key=lambda home: (-home.cost, home.number)):
            home.worker = min(load, key=lambda worker: (weight(worker), worker))
            load[home.worker].append(home)
        while True:
            idle = [worker for worker in load if not load[worker]]
            crowded = [worker for worker in load if len(load[worker]) > 1]
            if not idle or not crowded:
                return
            source = max(crowded, key=lambda worker: (weight(worker), worker))
            moved = min(load[source], key=lambda home: (home.cost, home.number))
            load[source].remove(moved)
            load[idle[0]].append(moved)
            # The worker that it leaves gives its memory back.
            key = self._key("forget", moved, 0)
            fire_and_forget(self.client.submit(_worker.forget, self.run, moved.number, workers=[source], pure=False, key=key))
            moved.worker = idle[0]

    def _key(self, name: str, home: Home, attempt: int) -> str:
        self._calls += 1
        return f"mtmkl-{name}-{self.run}-{self._calls}-{home.number}-{attempt}"

    async def everywhere(self, name: str, function: Callable[..., dict[str, Any]], calls: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """One call for each batch on its worker, in the order of batches. A call whose worker dies is made again elsewhere."""
        started = time.perf_counter()
        threads = await self.threads()
        self.place(threads)
        round = Round(name, workers=len(threads), sent=sum(map(size_of, calls)))
        work = [
            self._call(name, function, {**call, "run": self.run, "batch": home.number}, home, round)
            for call, home in zip(calls, self.homes, strict=True)
        ]
        answers = await self.guarded(_together(work))
        round.seconds = time.perf_counter() - started
        round.received = sum(map(size_of, answers))
        round.slowest = max(float(answer.get("seconds", 0.0)) for answer in answers)
        self.rounds.append(round)
        return answers

    async def _bring(self, home: Home, fault: BaseException | None = None) -> None:
        """Brings data and recipe of a batch to its worker, so that its evaluation waits for nothing that is lost with another worker."""
        # What a task made Dask makes again by itself, and calls it lost until it has.
        gone = ("cancelled", "error") if home.again is None else ("cancelled", "error", "lost")
        is_lost = home.data is None or home.data.status in gone
        if home.worker in (home.near, home.built) and not is_lost:
            return
        if home.again is not None:
            await home.again(home)
        elif home.data is None or is_lost:
            raise ClusterError(
                f"the data of batch {home.number} (the tasks {', '.join(map(repr, home.tasks[:4]))}, …) is lost with its worker and cannot "
                "be made again: give delayed partitions or a dask DataFrame rather than data scattered by hand"
                f"{'' if fault is None else f' ({fault})'}"
            )
        else:
            home.data = self.hand_over("data", home, home.data)
        if home.recipe is not None:
            home.recipe = self.hand_over("recipe", home, home.recipe)
        home.near = home.worker

    def hand_over(self, name: str, home: Home, value: Any) -> Future:
        """A value for a batch, on its worker: by a task, so that Dask can make it again."""
        return self.client.submit(
            _worker.as_it_is,
            value,
            key=self._key(name, home, 0),
            workers=[home.worker] if home.worker else None,
            allow_other_workers=True,
            pure=False,
        )

    async def _call(
        self, name: str, function: Callable[..., dict[str, Any]], call: dict[str, Any], home: Home, round: Round
    ) -> dict[str, Any]:
        first, repeated = home.worker, False
        fault: BaseException | None = None
        for attempt in range(ATTEMPTS):
            try:
                has_engine = home.built == home.worker
                if not has_engine:
                    await self._bring(home, fault)
                # Whoever has the engine needs nothing else, and so loses nothing with another worker.
                rows, recipe = (None, None) if has_engine else (home.data, home.recipe)
                future = self.client.submit(
                    function,
                    call,
                    rows,
                    recipe,
                    key=self._key(name, home, attempt),
                    workers=[home.worker] if home.worker else None,
                    allow_other_workers=True,
                    pure=False,
                )
                answer: dict[str, Any] = await self.client.gather(future, direct=self.direct, asynchronous=True)
            except _FAULTS as found:
                fault = found
                if isinstance(fault, asyncio.CancelledError) and _is_cancelling():
                    raise
                if self.client.status != "running":
                    # Whoever guards this says so, or the scheduler comes back.
                    await asyncio.sleep(_LOOK)
                home.worker = home.built = None
                self.place(await self.threads())
            else:
                if not answer["absent"]:
                    if answer["worker"] != first and not repeated:
                        # Dask made it again by itself, or the worker was gone before it began.
                        round.repeated += 1
                    home.worker = answer["worker"]
                    home.built = home.worker if answer["has_engine"] else None
                    return answer
                # The worker with the engine is gone, and Dask asked this one.
                home.worker, home.built = answer["worker"], None
            round.repeated += not repeated
            repeated = True
        shown = ", ".join(map(repr, home.tasks[:4])) + (", …" if len(home.tasks) > 4 else "")
        raise ClusterError(
            f"batch {home.number} (the tasks {shown}) was lost {ATTEMPTS} times, first on the worker {first}: its workers die, of memory "
            "perhaps; give them more, or make smaller batches, batches=…"
        )

    async def forget(self) -> None:
        """Gives back the workers' memory."""
        if self.client.status == "running":
            with contextlib.suppress(Exception):
                await asyncio.wait_for(self.client.run(_worker.forget, self.run, on_error="ignore"), 5.0)


def _is_cancelling() -> bool:
    """Whether it is this fit that is cancelled, not one of its futures."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _together(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All of it, or the first thing that goes wrong; nothing is left behind."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
