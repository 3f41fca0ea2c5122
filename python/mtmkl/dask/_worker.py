"""What runs on workers: a batch of tasks is prepared once, kept, and evaluated in every round.

What is kept is a cache: whoever has it not builds it again from the batch's data, and starts cold at the client's θ.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from distributed import get_worker
from numpy.typing import NDArray

from .. import _core
from .._base import MKLEstimator
from .._types import Limits, Vector
from ._pieces import Piece, aligned, wired

#: Bytes of the part of a worker's memory that kernel matrices may take: the rest is for data, for what passes, and for Dask.
SHARE_OF_MEMORY = 0.7
#: A batch that nobody asked for in so many seconds belongs to a client that went away.
FORGOTTEN_AFTER = 3600.0


@dataclass(frozen=True)
class Frame:
    """How the rows of a batch become numbers for the core."""

    estimator: MKLEstimator
    columns: list[str]
    scales: list[tuple[float, float]]
    target: str | None
    task: str | None
    goal: Any
    #: The classes, in their order.
    classes: NDArray[Any] | None
    #: What the only task is called.
    only: str


@dataclass(frozen=True)
class Recipe:
    """What is done with them."""

    frame: Frame
    kernels: list[tuple[str, str]]
    normalize: str
    machine: str
    #: A factor of the weights of each task.
    shares: Vector
    target_scale: str
    definiteness: str
    limits: Limits


@dataclass
class Entry:
    """A batch on this worker."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    sets: _core.Sets | None = None
    batch: _core.Batch | None = None
    #: By which the client knows that an evaluation is the very one that it was told of.
    tokens: dict[int, str] = field(default_factory=dict)
    used: float = 0.0


_entries: weakref.WeakKeyDictionary[Any, dict[tuple[str, int], Entry]] = weakref.WeakKeyDictionary()
_guard = threading.Lock()


def _entry(run: str, number: int) -> Entry:
    now = time.monotonic()
    with _guard:
        known = _entries.setdefault(get_worker(), {})
        for key in [key for key, entry in known.items() if now - entry.used > FORGOTTEN_AFTER and not entry.lock.locked()]:
            del known[key]
        entry = known.setdefault((run, number), Entry())
        entry.used = now
        return entry


def forget(run: str, number: int | None = None, dask_worker: Any = None) -> None:
    """Gives back the memory of a run, or of one of its batches."""
    worker = dask_worker or get_worker()
    with _guard:
        known = _entries.get(worker, {})
        for key in [key for key in known if key[0] == run and number in (None, key[1])]:
            del known[key]


def _sets(piece: Piece, frame: Frame) -> _core.Sets:
    """Sample sets and tasks of the rows, as one machine makes them."""
    estimator = frame.estimator
    framed = _core.Frame(frame.columns, frame.scales, frame.target, frame.task, json.dumps(frame.goal))
    targets, weights = piece.targets, aligned(piece.weights)
    prices: list[float] | str | None = None
    if frame.classes is not None and piece.classes is not None and targets is not None:
        place = {value: at for at, value in enumerate(frame.classes.tolist())}
        targets = np.array([place[value] for value in piece.classes.tolist()], dtype=np.float64)[targets]
        by_class = estimator._class_weights()
        if by_class is not None:
            # What costs nothing is not there.
            weights = np.where(by_class[targets.astype(np.intp)] > 0, weights, 0.0)
        if estimator.class_weight is not None:
            prices = "balanced" if by_class is None else by_class.tolist()
    return _core.Sets(
        framed,
        wired(piece.rows),
        piece.names,
        None if piece.tasks is None else aligned(piece.tasks, np.int32),
        frame.only,
        weights,
        None if targets is None else aligned(targets),
        prices,
    )


def as_it_is(value: Any) -> Any:
    """What a task is of that only keeps a value somewhere."""
    return value


def _named(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Does the work; what is wrong with the data is said with the worker's address, and the worker lives on."""
    address = get_worker().address
    try:
        return {"absent": False, "has_engine": False, **work(), "worker": address}
    except (ValueError, MemoryError) as error:
        raise type(error)(f"{error} (on the worker {address})") from None


def describe(call: dict[str, Any], piece: Piece, frame: Frame) -> dict[str, Any]:
    """The sample sets and tasks of a batch, their sizes, and what kernels are measured on."""

    def work() -> dict[str, Any]:
        entry = _entry(call["run"], call["batch"])
        with entry.lock:
            entry.sets = sets = _sets(piece, frame)
            measured, counts = sets.measured(call["sets"])
            rows = sets.rows.astype(np.int64)
            return {
                "names": sets.names,
                "machines": sets.machines,
                "sets": sets.sets,
                "totals": sets.totals,
                "samples": sets.samples,
                "origins": rows + piece.positions.start if isinstance(piece.positions, range) else piece.positions[rows],
                "measured": measured,
                "measured_samples": counts,
                "moments": sets.moments(),
            }

    return _named(work)


def _prepared(call: dict[str, Any], entry: Entry, piece: Piece | None, recipe: Recipe | None) -> _core.Batch:
    """The engine of a batch, at the level that the client is at: the one that is kept, or a new one."""
    if entry.batch is None:
        assert piece is not None and recipe is not None
        sets = entry.sets or _sets(piece, recipe.frame)
        entry.sets = None
        entry.batch = _core.Batch(
            kernels=list(recipe.kernels),
            machine=recipe.machine,
            normalize=recipe.normalize,
            target_scale=recipe.target_scale,
            definiteness=recipe.definiteness,
            sets=sets,
            shares=aligned(recipe.shares),
            limits={**recipe.limits, "threads": get_worker().state.nthreads, "memory_limit": _memory(recipe.limits["memory_limit"])},
        )
        entry.tokens.clear()
    while entry.batch.depth < call["level"]:
        if not entry.batch.descend():
            raise RuntimeError("a batch has lost its coarser problem: less memory than before is left on its worker")
    return entry.batch


def _memory(wanted: float) -> float:
    """GiB for the matrices of one more batch: what is asked for, or what other batches leave of the worker's memory."""
    worker = get_worker()
    limit = getattr(worker.memory_manager, "memory_limit", None)
    if not limit:
        return wanted
    with _guard:
        taken = sum(entry.batch.bytes for entry in _entries.get(worker, {}).values() if entry.batch is not None)
    left = (SHARE_OF_MEMORY * limit - taken) / 2**30
    return float(min(wanted, max(left, 1e-3)))


def _on_engine(
    call: dict[str, Any], piece: Piece | None, recipe: Recipe | None, work: Callable[[Entry, _core.Batch], dict[str, Any]]
) -> dict[str, Any]:
    """Does the work with the engine of a batch. Who neither has it nor is given what it is made of says that it is absent."""

    def with_engine() -> dict[str, Any]:
        entry = _entry(call["run"], call["batch"])
        with entry.lock:
            if entry.batch is None and (piece is None or recipe is None):
                return {"absent": True}
            return {**work(entry, _prepared(call, entry, piece, recipe)), "has_engine": True}

    return _named(with_engine)


def evaluate(call: dict[str, Any], piece: Piece | None, recipe: Recipe | None) -> dict[str, Any]:
    """J and its derivatives for the tasks of a batch at the client's θ."""
    started = time.perf_counter()

    def work(entry: Entry, batch: _core.Batch) -> dict[str, Any]:
        prepared = time.perf_counter() - started
        found = _evaluated(entry, batch, call["number"], call["theta"], call)
        return {
            **found,
            "token": entry.tokens[call["number"]],
            "kernel_seconds": prepared if piece is not None else 0.0,
            "seconds": time.perf_counter() - started,
            "storage": batch.storage,
        }

    return _on_engine(call, piece, recipe, work)


def _evaluated(entry: Entry, batch: _core.Batch, number: int, theta: NDArray[np.float64], call: dict[str, Any]) -> dict[str, Any]:
    found = batch.evaluate(
        number,
        aligned(theta),
        accuracy=call["accuracy"],
        curvature=call["curvature"],
        keep=call["keep"],
        seconds=call["seconds"],
    )
    known = set(batch.known)
    entry.tokens = {own: token for own, token in entry.tokens.items() if own in known}
    # Two evaluations at one θ may end at different machines: only those that the client was told of are what it knows.
    entry.tokens[number] = secrets.token_hex(8)
    return found


def coarser(call: dict[str, Any], piece: Piece | None, recipe: Recipe | None) -> dict[str, Any]:
    """One level down, where the batch has one."""

    def work(_: Entry, batch: _core.Batch) -> dict[str, Any]:
        # Whoever is asked twice is there already.
        return {"found": batch.depth > call["level"] or batch.descend()}

    return _on_engine(call, piece, recipe, work)


def finer(call: dict[str, Any], piece: Piece | None, recipe: Recipe | None) -> dict[str, Any]:
    """One level up, from where the coarser problem has got to, or as if it had not been."""

    def work(entry: Entry, batch: _core.Batch) -> dict[str, Any]:
        while batch.depth > call["level"]:
            batch.ascend(call["adopt"])
        entry.tokens.clear()
        return {}

    return _on_engine(call, piece, recipe, work)


def finish(call: dict[str, Any], piece: Piece | None, recipe: Recipe | None) -> dict[str, Any]:
    """The machines of the answer and the mixtures that prove its bound; or which evaluations are lost.

    With ``thetas`` lost ones are found again at the same θ. Those are other machines than the ones that the solver was told of, so that
    ``prove`` is to be asked for: what is proven is then proven by the very machines that are in the model.
    """

    def work(entry: Entry, batch: _core.Batch) -> dict[str, Any]:
        needed = sorted(call["tokens"])
        missing = [number for number in needed if entry.tokens.get(number) != call["tokens"][number]]
        if missing and call["thetas"] is None:
            return {"missing": missing}
        for number in missing:
            _evaluated(entry, batch, number, call["thetas"][number], {**call, "curvature": False, "keep": needed})
        machines = (call["machines"], call["mixtures"])
        proof = batch.prove(aligned(call["theta"]), *machines) if call["prove"] else None
        return {"missing": [], "found_again": len(missing), "proof": proof, "machines": batch.machines(*machines, call["rows"])}

    return _on_engine(call, piece, recipe, work)
