"""The rounds of a fit: the outer solver asks for J at θ, workers evaluate their batches, the solver is told; at the end, one model.

The client has θ of every evaluation that may still be wanted, and by a token for each batch and evaluation it knows the very machines
that the solver was told of. What was told stays true when a worker dies: bounds on J* are facts about J, whoever found them. But a
model must have the machines that its certificate is of. So lost machines that are part of the answer are found again, at the same θ,
and objective and bound are then computed anew from the very machines in the model (`Batch.prove`). Where these prove less than was
asked for, the solver goes on from there.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._types import Limits
from . import _worker
from ._cluster import Cluster
from ._held import Held
from ._pieces import aligned, arrived

#: How long a thread waits for the solver at a time, in seconds: so soon it sees that the fit is cancelled.
_WAIT = 0.2
#: How often the solver goes on where machines found again prove less than those that were lost.
_STARTS = 5


@dataclass
class Solving:
    """One fit."""

    cluster: Cluster
    #: The positions of each batch's tasks among all.
    tasks: list[NDArray[np.uintp]]
    machine: str
    sharing: str
    solver: str
    kernels: int
    limits: Limits
    #: For each batch, which of the rows that the client has its samples are; None where support rows come with machines.
    origins: list[NDArray[np.int64]] | None
    #: Whether the certificate is computed anew in any case.
    prove: bool
    #: Who keeps the machines on their workers, where they stay there, and the notes of each batch's model.
    held: Held | None
    notes: list[dict[str, str]]
    progress: Callable[[dict[str, float]], None] | None
    level: int = 0
    accuracy: float = 1e-3
    #: θ of evaluations that may be wanted yet, and their tokens by batch.
    thetas: dict[int, NDArray[np.float64]] = field(default_factory=dict)
    tokens: dict[int, list[str]] = field(default_factory=dict)
    outer: _core.Outer | None = None
    before: _core.Outer | None = None
    own_seconds: float = 0.0
    kernel_seconds: float = 0.0
    storages: set[str] = field(default_factory=set)
    _deadline: float | None = None
    _shown: int = 0

    @property
    def count(self) -> int:
        """T."""
        return sum(map(len, self.tasks))

    async def solve(self) -> list[dict[str, Any]]:
        """Solves the problem; gives the machines of each batch."""
        limit = self.limits["time_limit"]
        self._deadline = None if limit is None else time.monotonic() + limit
        start: list[NDArray[np.float64]] | None = None
        for _ in range(_STARTS):
            left = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
            passes = 0 if self.before is None else len(self.before.passes)
            self.outer = _core.Outer(
                machine=self.machine,
                sharing=self.sharing,
                solver=self.solver,
                tasks=self.count,
                kernels=self.kernels,
                limits={**self.limits, "time_limit": left, "max_passes": max(1, self.limits["max_passes"] - passes)},
                start=start,
            )
            try:
                await self._drive(self.outer)
            except BaseException:
                self.outer.abandon()
                raise
            self.own_seconds += self.outer.own_seconds
            answer = self.outer.result()
            parts, gap = await self._finish(self.outer, answer)
            if gap is None or gap <= answer["tolerance"] or answer["status"] != "converged":
                return parts
            start, self.before, self._shown = answer["parts"], self.outer, 0
            self.thetas.clear()
            self.tokens.clear()
        return parts

    async def _drive(self, outer: _core.Outer) -> None:
        """Answers questions until there are none."""
        while True:
            question = await asyncio.to_thread(outer.ask, _WAIT)
            if question is None:
                continue
            match question["ask"]:
                case "nothing":
                    self._show(outer)
                    return
                case "evaluate":
                    await self._evaluate(outer, question)
                case "coarser":
                    await self._coarser(outer)
                case _:
                    await self._finer(adopt=True)
                    outer.tell_finer()
            self._show(outer)

    def _left(self) -> float | None:
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    async def _evaluate(self, outer: _core.Outer, question: dict[str, Any]) -> None:
        number, theta, keep = question["number"], question["theta"], question["keep"]
        self.accuracy = question["accuracy"]
        calls = [
            {
                "level": self.level,
                "number": number,
                "theta": theta[own.astype(np.intp)],
                "accuracy": question["accuracy"],
                "curvature": question["curvature"],
                "keep": keep,
                "seconds": self._left(),
            }
            for own in self.tasks
        ]
        answers = await self.cluster.everywhere("evaluate", _worker.evaluate, calls)
        wanted = {*keep, number}
        self.thetas = {own: known for own, known in self.thetas.items() if own in wanted} | {number: theta}
        self.tokens = {own: known for own, known in self.tokens.items() if own in wanted}
        self.tokens[number] = [answer["token"] for answer in answers]
        self.kernel_seconds += max(float(answer["kernel_seconds"]) for answer in answers)
        self.storages.update(answer["storage"] for answer in answers)
        outer.tell([(own, _owned(answer)) for own, answer in zip(self.tasks, answers, strict=True)])

    async def _coarser(self, outer: _core.Outer) -> None:
        """One level down where all batches have one, and none where one has not."""
        call = {"level": self.level}
        answers = await self.cluster.everywhere("coarser", _worker.coarser, [call] * len(self.tasks))
        found = all(answer["found"] for answer in answers)
        if found:
            self.level += 1
        elif any(answer["found"] for answer in answers):
            self.level += 1
            await self._finer(adopt=False)
        outer.tell_coarser(found)

    async def _finer(self, adopt: bool) -> None:
        self.level -= 1
        call = {"level": self.level, "adopt": adopt}
        await self.cluster.everywhere("finer", _worker.finer, [call] * len(self.tasks))
        self.thetas.clear()
        self.tokens.clear()

    async def _finish(self, outer: _core.Outer, answer: dict[str, Any]) -> tuple[list[dict[str, Any]], float | None]:
        """The machines of the answer; and the gap that these prove, where they are not those that the solver was told of."""
        theta = answer["theta"]
        calls: list[dict[str, Any]] = []
        for at, own in enumerate(self.tasks):
            machines, mixtures = outer.machines(own)
            needed = {*machines, *(number for mixture in mixtures for number, _ in mixture)}
            calls.append(
                {
                    "level": 0,
                    "theta": theta[own.astype(np.intp)],
                    "machines": machines,
                    "mixtures": mixtures,
                    "tokens": {number: self.tokens[number][at] for number in needed},
                    "thetas": None,
                    "accuracy": self.accuracy,
                    "seconds": None,
                    "prove": self.prove,
                    "rows": self.origins is None,
                }
            )
        if self.held is not None:
            return await self._keep(self.held, outer, answer, calls)
        answers = await self.cluster.everywhere("machines", _worker.finish, calls)
        is_lost = any(answer["missing"] for answer in answers)
        if is_lost:
            calls = [{**call, "prove": True, "thetas": self._thetas(call, own)} for call, own in zip(calls, self.tasks, strict=True)]
            answers = await self.cluster.everywhere("machines", _worker.finish, calls)
        gap = self._proven(outer, answers) if is_lost or self.prove else None
        origins = [None] * len(answers) if self.origins is None else self.origins
        parts = [_part(answer["machines"], own) for answer, own in zip(answers, origins, strict=True)]
        # What rounding to single precision costs is not won back by going on.
        return parts, gap if is_lost else None

    def certified(self, told: list[dict[str, Any]], order: list[tuple[int, int]], whole: dict[str, Any]) -> _core.Model:
        """Weights and certificate, where this is what the machines of all batches prove."""
        assert self.outer is not None
        self._proven(self.outer, told)
        return self.outer.model([_part(own["weights"]) for own in told], order, **whole).without_machines()

    def _thetas(self, call: dict[str, Any], tasks: NDArray[np.uintp]) -> dict[int, NDArray[np.float64]]:
        """θ of the evaluations that are needed, for these tasks."""
        return {number: self.thetas[number][tasks.astype(np.intp)] for number in call["tokens"]}

    async def _keep(
        self, held: Held, outer: _core.Outer, answer: dict[str, Any], calls: list[dict[str, Any]]
    ) -> tuple[list[dict[str, Any]], float | None]:
        """Leaves the machines where they are: what is stated is what these prove, and weights come in their place."""
        further = {"allowed": answer["tolerance"] * abs(answer["objective"]), "status": answer["status"]}
        answers = await held.keep(
            [
                {**call, **further, "thetas": self._thetas(call, own), "notes": notes}
                for call, own, notes in zip(calls, self.tasks, self.notes, strict=True)
            ]
        )
        gap = self._proven(outer, answers)
        return [_part(own["weights"]) for own in answers], gap if any(own["found_again"] for own in answers) else None

    def _proven(self, outer: _core.Outer, answers: list[dict[str, Any]]) -> float:
        primal, constant = np.empty(self.count), np.empty(self.count)
        sensitivities = np.empty((self.count, self.kernels))
        for own, answer in zip(self.tasks, answers, strict=True):
            rows = own.astype(np.intp)
            primal[rows], constant[rows], sensitivities[rows] = answer["proof"]
        return outer.take_proof(primal, constant, sensitivities)

    def _show(self, outer: _core.Outer) -> None:
        if self.progress is None:
            return
        names = ("number", "objective", "bound", "gap", "step", "inner_iterations", "seconds")
        new = outer.passes[self._shown :]
        self._shown += len(new)
        for done in new:
            self.progress(dict(zip(names, done, strict=True)))


def _part(machines: dict[str, Any], origins: NDArray[np.int64] | None = None) -> dict[str, Any]:
    """The machines of a batch as the core takes them, and which of the client's rows its samples are."""
    return {**{name: arrived(value) for name, value in machines.items()}, "origins": origins}


def _owned(answer: dict[str, Any]) -> dict[str, Any]:
    """What a batch said, in arrays as the core takes them."""
    told = {name: aligned(answer[name]) for name in ("values", "gaps", "noises", "forgiven", "sensitivities")}
    curvature = answer["curvature"]
    if curvature is not None:
        curvature = (aligned(curvature[0], np.uintp), aligned(curvature[1]))
    return {**told, "scales": aligned(answer["scales"], np.bool_), "curvature": curvature, "steps": answer["steps"]}


def bar(tolerance: float) -> Callable[[dict[str, float]], None]:
    """Progress on standard error: how far the gap has come on its way from 1 to the tolerance, digit by digit."""
    width = 30

    def show(done: dict[str, float]) -> None:
        gap = min(max(done["gap"], 1e-300), 1.0)
        share = min(1.0, np.log(gap) / np.log(tolerance)) if gap < 1.0 else 0.0
        full = round(width * share)
        end = "\n" if gap <= tolerance else ""
        print(
            f"\rpass {int(done['number']):3d} [{'█' * full}{' ' * (width - full)}] gap {done['gap']:.1e}",
            end=end,
            file=sys.stderr,
            flush=True,
        )

    return show
