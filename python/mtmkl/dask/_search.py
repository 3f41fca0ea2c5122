"""A search over a cluster: fits on folds are calls of workers, which have the data once and make kernel matrices once.

What is fitted next follows from the scores so far, on the client and on every worker alike. So a worker is sent the scores, and the number
of the chain of fits that it is to follow; one that comes later, or in the place of a lost one, goes the same way.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from distributed import Client, Future, get_worker
from numpy.typing import NDArray
from sklearn.base import clone

from .. import _core
from .._search import MKLSearchCV as _MKLSearchCV
from ._cluster import _FAULTS, ATTEMPTS, Cluster, _is_cancelling, _together
from ._errors import ClusterError
from ._estimators import _OnCluster, a_client, cloned
from ._worker import _memory

#: Cell, fold, score, and what is finer than the score.
_Verdict = tuple[int, int, float, float]
#: Cell, fold, seconds, whether it converged, what is finer than the score, and decisions by task.
_Told = tuple[int, int, float, bool, float, list[NDArray[Any]]]


@dataclass
class _Entry:
    """A search on this worker, and in which round it is."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    search: _core.Search | None = None
    round: int = 0


_entries: weakref.WeakKeyDictionary[Any, dict[str, _Entry]] = weakref.WeakKeyDictionary()
_guard = threading.Lock()


def follow(arguments: dict[str, Any], run: str, rounds: list[list[_Verdict]], number: int) -> list[_Told]:
    """The fits of one chain, in the round after these."""
    worker = get_worker()
    with _guard:
        entry = _entries.setdefault(worker, {}).setdefault(run, _Entry())
    with entry.lock:
        if entry.search is None or entry.round > len(rounds) + 1:
            limits = arguments["limits"]
            own = {**limits, "threads": worker.state.nthreads, "memory_limit": _memory(limits["memory_limit"])}
            entry.search, entry.round = _core.Search(**{**arguments, "limits": own}), 0
        while entry.round <= len(rounds):
            for verdict in rounds[entry.round - 1] if entry.round > 0 else []:
                entry.search.scored(*verdict)
            entry.search.next_round()
            entry.round += 1
        return entry.search.follow([number])


def _forget(run: str, dask_worker: Any = None) -> None:
    with _guard:
        _entries.get(dask_worker or get_worker(), {}).pop(run, None)


class _Search:
    """As `_core.Search`, whose fits are made by workers; here is who says which they are."""

    def __init__(self, client: Client, timeout: float, arguments: dict[str, Any]) -> None:
        self._client = client
        self._cluster = Cluster(client, secrets.token_hex(8), timeout)
        self._arguments = arguments
        self._plan = _core.Search(**arguments)
        self._data: Future | None = None
        self._chains: list[tuple[int, list[int]]] = []
        self._rounds: list[list[_Verdict]] = []
        self._scores: list[_Verdict] = []

    def next_round(self) -> list[tuple[int, list[int]]]:
        """As `_core.Search.next_round`; at the end workers give their memory back."""
        if self._chains:
            self._rounds.append(self._scores)
            self._scores = []
        self._chains = self._plan.next_round()
        if not self._chains:
            self._forget()
        return self._chains

    def scored(self, *verdict: Any) -> None:
        """As `_core.Search.scored`."""
        self._scores.append(verdict)
        self._plan.scored(*verdict)

    def cells(self) -> list[tuple[list[int], str, str]]:
        """As `_core.Search.cells`."""
        return self._plan.cells()

    def best(self) -> int:
        """As `_core.Search.best`."""
        return self._plan.best()

    def follow(self, numbers: Sequence[int]) -> list[_Told]:
        """As `_core.Search.follow`, on workers."""
        try:
            told: list[_Told] = self._client.sync(self._followed, list(numbers))
        except BaseException:
            self._forget()
            raise
        return told

    async def _followed(self, numbers: list[int]) -> list[_Told]:
        lock = asyncio.Lock()
        told = await self._cluster.guarded(_together([self._follow(number, lock) for number in numbers]))
        return sorted((one for chain in told for one in chain), key=lambda one: one[:2])

    async def _follow(self, number: int, lock: asyncio.Lock) -> list[_Told]:
        fold, cells = self._chains[number]
        what = f"fold{fold + 1}-cells{min(cells) + 1}to{max(cells) + 1}-round{len(self._rounds) + 1}"
        fault: BaseException | None = None
        for attempt in range(ATTEMPTS):
            try:
                async with lock:
                    data = await self._scattered()
                key = f"mtmkl-search-{what}-{self._cluster.run}-{number}-{attempt}"
                future = self._client.submit(follow, data, self._cluster.run, self._rounds, number, key=key, pure=False)
                told: list[_Told] = await self._client.gather(future, asynchronous=True)
            except _FAULTS as found:
                if isinstance(found, asyncio.CancelledError) and _is_cancelling():
                    raise
                fault = found
            else:
                return told
        raise ClusterError(f"fold {fold + 1} of the search was lost {ATTEMPTS} times with its workers ({fault}): give them more memory")

    async def _scattered(self) -> Future:
        """The problem on all workers: sent once, and again where all that had it are gone."""
        if self._data is None or self._data.status in ("cancelled", "error", "lost"):
            await self._cluster.threads()
            [self._data] = await self._client.scatter([self._arguments], broadcast=True, hash=False, asynchronous=True)
        return self._data

    def _forget(self) -> None:
        self._data = None
        with contextlib.suppress(Exception):
            self._client.run(_forget, self._cluster.run, on_error="ignore")


class MKLSearchCV(_MKLSearchCV):
    """`mtmkl.MKLSearchCV` whose fits on folds are made by the workers of a Dask cluster.

    The same folds, fits and scores as on one machine, and so the same choice. X and y are in memory here; each worker is sent them once,
    and makes the kernel matrices of all rows once. A fit that is lost with its worker is made again elsewhere.

    Parameters
    ----------
    estimator : estimator of `mtmkl` or of `mtmkl.dask`
        What to choose for. One of `mtmkl` is fitted with the best parameters here, one of `mtmkl.dask` on the cluster.
    param_grid, scoring, cv, refit, n_jobs, verbose
        As in `mtmkl.MKLSearchCV`; workers use as many threads as Dask gives them.
    client : distributed.Client, optional
        The cluster; by default the client that was made last.
    timeout : float, default=60.0
        Seconds that the cluster may be without workers, or its scheduler without an answer.
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any = None,
        *,
        scoring: Any = None,
        cv: Any = 5,
        refit: bool = True,
        n_jobs: int | None = None,
        verbose: int = 0,
        client: Any = None,
        timeout: float = 60.0,
    ) -> None:
        super().__init__(estimator, param_grid, scoring=scoring, cv=cv, refit=refit, n_jobs=n_jobs, verbose=verbose)
        self.client = client
        self.timeout = timeout

    def _made(self, arguments: dict[str, Any]) -> Any:
        if any(own["tasks"] is not None for own in arguments["sets"]):
            raise ValueError("transfer makes one machine of all tasks; search for it with mtmkl.MKLSearchCV on one machine")
        client = a_client(self.client)
        if client.asynchronous:
            raise ValueError("an asynchronous client cannot wait for a search here; give one made without asynchronous=True")
        return _Search(client, float(self.timeout), arguments)

    def _searched(self) -> Any:
        return clone(self.estimator).plain() if isinstance(self.estimator, _OnCluster) else self.estimator

    def __sklearn_clone__(self) -> Any:
        return cloned(self)
