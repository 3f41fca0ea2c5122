"""Whether a certificate holds: computed anew from the rows and the model, by nothing of what solved the problem."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Failure:
    """One claim of a model that does not hold."""

    #: Of what: "theta", "beta", "witness", "offset", "objective", "bound", "gap", "status", "units", "duality" or "rounding".
    quantity: str
    #: Of which task, where it is one's.
    task: str | None
    #: Which row of X, where it is one's.
    row: int | None
    #: What the model says, where that is a number.
    stated: float | None
    #: What was found.
    found: float | None
    #: In words.
    problem: str

    def __str__(self) -> str:
        task = "" if self.task is None else f" of task {self.task!r}"
        row = "" if self.row is None else f", row {self.row} of X"
        return f"{self.quantity}{task}{row}: {self.problem}"


@dataclass(frozen=True)
class Verdict:
    """Whether every claim of a model holds, with the figures that say so. It is true where they do."""

    #: Whether every claim holds.
    holds: bool
    #: How the fit ended, as the model says.
    status: str
    #: The upper bound that the model states, and the one that its machines reach.
    objective: float
    primal: float
    #: The lower bound that the model states, and the one that its witness proves.
    bound: float
    dual: float
    #: The relative gap that the model states, and (primal − dual)/|primal|.
    gap: float
    found_gap: float
    #: How far stated and found figures may be apart by rounding alone.
    allowance: float
    #: Kernels that are taken to be positive semi-definite, as the fit checked.
    assumed: tuple[str, ...]
    #: What does not hold.
    failures: tuple[Failure, ...]

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        lines = [
            f"status     {self.status}",
            f"objective  stated {self.objective!r}, found {self.primal!r}",
            f"bound      stated {self.bound!r}, found {self.dual!r}",
            f"gap        stated {self.gap!r}, found {self.found_gap!r}",
            f"rounding   {self.allowance!r}",
        ]
        if self.holds:
            apart = self.objective - self.bound
            more = f", up to rounding, which is more than the {apart:.1e} between objective and bound" if self.allowance > apart else ""
            lines.append(f"every claim holds{more}")
        for failure in self.failures:
            word = "cannot be told in double precision" if failure.quantity == "rounding" else "does not hold"
            lines.append(f"{word}: {failure}")
        return "\n".join(lines)


def verdict_of(text: str, origins: list[Any]) -> Verdict:
    """The verdict of the core, with rows of X in place of those of sample sets."""
    found = json.loads(text)

    def number(value: float | None) -> float:
        return float("nan") if value is None else value

    def row(place: dict[str, int] | None) -> int | None:
        return None if place is None else int(origins[place["set"]][place["position"]])

    objective, bound, gap = found["objective"], found["bound"], found["gap"]
    failures = (
        Failure(entry["quantity"], entry["task"], row(entry["row"]), entry["stated"], entry["found"], entry["problem"])
        for entry in found["failures"]
    )
    return Verdict(
        holds=found["holds"],
        status=found["status"],
        objective=number(objective["stated"]),
        primal=number(objective["found"]),
        bound=number(bound["stated"]),
        dual=number(bound["found"]),
        gap=number(gap["stated"]),
        found_gap=number(gap["found"]),
        allowance=number(objective["allowance"]) + number(bound["allowance"]),
        assumed=tuple(found["assumed"]),
        failures=tuple(failures),
    )
