"""What the tasks share: the set of allowed kernel weights, as objects that compose.

A sharing is a sum of terms. A term lifts a set of weight vectors (`LpBall`, `Simplex`, …) to all tasks: `Common` (one vector for all),
`Independent` (one for each), or it lets the tasks compete for one budget (`Group`). ``Common(p=1.1) + Group(p=1.1, q=1)`` is PSCS.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _core

__all__ = [
    "PSCS",
    "BoxSimplex",
    "Common",
    "Fixed",
    "Group",
    "Independent",
    "LpBall",
    "PriorBall",
    "Sharing",
    "Simplex",
    "Sum",
    "Tang",
    "Uniform",
]


class Sharing:
    """A set of allowed kernel weights, for any number of tasks."""

    def spec(self) -> dict[str, Any]:
        """The sharing as it stands in model files."""
        raise NotImplementedError

    def terms(self) -> tuple[Term, ...]:
        """The terms whose sum it is.

        Raises
        ------
        TypeError
            For a sharing that is no sum of terms for itself and so cannot be added to another.
        """
        name = type(self).__name__
        raise TypeError(f"{name} cannot be added to another sharing; add Common(…), Independent(…) and Group(…) terms")

    def __add__(self, other: Sharing) -> Sum:
        if not isinstance(other, Sharing):
            return NotImplemented
        return Sum((*self.terms(), *other.terms()))


class Term(Sharing):
    """A summand of a sharing."""

    def term(self) -> dict[str, Any]:
        """The term as it stands in model files."""
        raise NotImplementedError

    def terms(self) -> tuple[Term, ...]:
        return (self,)

    def spec(self) -> dict[str, Any]:
        return Sum((self,)).spec()


class WeightSet(Sharing):
    """A set of weight vectors; by itself it means one vector for all tasks."""

    def set(self) -> dict[str, Any]:
        """The set as it stands in model files."""
        raise NotImplementedError

    def terms(self) -> tuple[Term, ...]:
        return (Common(self),)

    def spec(self) -> dict[str, Any]:
        return Common(self).spec()


@dataclass(frozen=True)
class LpBall(WeightSet):
    """‖θ‖_p ≤ radius, θ ≥ 0."""

    p: float = 2.0
    radius: float = 1.0

    def set(self) -> dict[str, Any]:
        return {"set": "lp-ball", "p": float(self.p), "radius": float(self.radius)}


@dataclass(frozen=True)
class Simplex(WeightSet):
    """Σ_m θ_m = total, θ ≥ 0 (SimpleMKL)."""

    total: float = 1.0

    def set(self) -> dict[str, Any]:
        return {"set": "simplex", "total": float(self.total)}


@dataclass(frozen=True)
class BoxSimplex(WeightSet):
    """Σ_m θ_m = total, 0 ≤ θ ≤ upper (soft-margin MKL)."""

    upper: float
    total: float = 1.0

    def set(self) -> dict[str, Any]:
        return {"set": "box-simplex", "total": float(self.total), "upper": float(self.upper)}


def _numbers(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


@dataclass(frozen=True)
class PriorBall(WeightSet):
    """‖θ − prior‖₂ ≤ radius, θ ≥ 0."""

    prior: Sequence[float]
    radius: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", _numbers(self.prior))

    def set(self) -> dict[str, Any]:
        return {"set": "prior-ball", "prior": list(self.prior), "radius": float(self.radius)}


@dataclass(frozen=True)
class Fixed(WeightSet):
    """Given weights, one for each kernel: nothing is learned but the machines."""

    weights: Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", _numbers(self.weights))

    def set(self) -> dict[str, Any]:
        return {"set": "fixed", "weights": list(self.weights)}


def _ball(set: WeightSet | None, p: float, radius: float) -> WeightSet:
    return LpBall(p, radius) if set is None else set


@dataclass(frozen=True)
class Common(Term):
    """One weight vector ζ for all tasks: ‖ζ‖_p ≤ radius, or ζ in the set given."""

    set: WeightSet | None = None
    p: float = field(default=2.0, kw_only=True)
    radius: float = field(default=1.0, kw_only=True)

    def term(self) -> dict[str, Any]:
        return {"common": _ball(self.set, self.p, self.radius).set()}


@dataclass(frozen=True)
class Independent(Term):
    """One weight vector for each task: ‖θᵗ‖_p ≤ radius, or θᵗ in the set given."""

    set: WeightSet | None = None
    p: float = field(default=2.0, kw_only=True)
    radius: float = field(default=1.0, kw_only=True)

    def term(self) -> dict[str, Any]:
        return {"independent": _ball(self.set, self.p, self.radius).set()}


@dataclass(frozen=True)
class Group(Term):
    """The tasks compete for one budget: (Σ_t ‖θᵗ‖_p^q)^{1/q} ≤ radius."""

    p: float = 2.0
    q: float = 1.0
    radius: float = 1.0

    def term(self) -> dict[str, Any]:
        return {"group": {"p": float(self.p), "q": float(self.q), "radius": float(self.radius)}}


@dataclass(frozen=True)
class PSCS(Sharing):
    """Partially shared common space: ``Common(p=p, radius=radius) + Group(p, q, radius)``."""

    p: float = 2.0
    q: float = 1.0
    radius: float = 1.0

    def spec(self) -> dict[str, Any]:
        return {"name": "pscs", "p": float(self.p), "q": float(self.q), "radius": float(self.radius)}

    def terms(self) -> tuple[Term, ...]:
        return (Common(p=self.p, radius=self.radius), Group(self.p, self.q, self.radius))


@dataclass(frozen=True)
class Tang(Sharing):
    """θᵗ = ζ + γᵗ, Σ_m θ_mᵗ = 1 for each task, Σγ ≤ beta (Tang et al.)."""

    beta: float

    def spec(self) -> dict[str, Any]:
        return {"name": "tang", "beta": float(self.beta)}


@dataclass(frozen=True)
class Uniform(Sharing):
    """θ = 1/M everywhere: the plain average, the baseline to beat."""

    def spec(self) -> dict[str, Any]:
        return {"name": "uniform"}


@dataclass(frozen=True)
class Sum(Sharing):
    """A sum of terms; write it with ``+``."""

    parts: tuple[Term, ...]

    def terms(self) -> tuple[Term, ...]:
        return self.parts

    def spec(self) -> dict[str, Any]:
        return {"name": "sum", "terms": [part.term() for part in self.parts]}

    def __repr__(self) -> str:
        return " + ".join(repr(part) for part in self.parts)


#: The sharings of the core, in its order: the numbers that each takes, and what must be given.
_SHARINGS = {name: (numbers, required) for name, numbers, required in _core.sharings()}
_NAMES = ("auto", *(name for name, (_, required) in _SHARINGS.items() if not required))


def sharing_spec(sharing: object, numbers: dict[str, float], machine: dict[str, Any], tasks: int, of_classes: bool) -> dict[str, Any]:
    """The sharing of an estimator's parameters as it stands in model files.

    ``numbers`` are the values of the parameters that sharings with names have, ``machine`` is as it stands in model files;
    the tasks may be made of the classes of one problem.
    """
    if isinstance(sharing, Sharing):
        return sharing.spec()
    if not isinstance(sharing, str):
        raise ValueError(
            f"sharing is {sharing!r}, expected one of {', '.join(map(repr, _NAMES))} or an object such as "
            "mtmkl.Common(p=1.1) + mtmkl.Group(p=1.1, q=1)"
        )
    name = _core.usual_sharing(json.dumps(machine), tasks, of_classes) if sharing == "auto" else sharing
    if name not in _SHARINGS:
        raise ValueError(f"there is no sharing {name!r}, expected one of {', '.join(map(repr, _NAMES))}")
    takes, required = _SHARINGS[name]
    if required:
        object_name = "".join(word.capitalize() for word in name.split("-"))
        values = ", ".join(f"{parameter}=…" for parameter in required)
        raise ValueError(f"sharing={name!r} has a parameter of its own: write sharing=mtmkl.{object_name}({values})")
    return {"name": name, **{parameter: numbers[parameter] for parameter in takes}}
