"""What the tasks share: the set of allowed kernel weights, as objects that compose.

A sharing is a sum of terms. A term lifts a set of weight vectors (`LpBall`, `Simplex`, …) to all tasks: `Common` (one vector for all),
`Independent` (one for each), or it lets the tasks compete for one budget (`Group`). ``Common(p=1.1) + Group(p=1.1, q=1)`` is PSCS.
A `Hierarchy` has such a term for each level of a tree of tasks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _core

__all__ = [
    "PSCS",
    "BoxSimplex",
    "Common",
    "Fixed",
    "Group",
    "Hierarchy",
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

    def spec_for(self, tasks: Sequence[str]) -> dict[str, Any]:
        """The same for the tasks of these names."""
        return self.spec()

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
    """Given weights, one for each kernel, or such a row for each task in the order of ``tasks_``: nothing is learned but the machines."""

    weights: Sequence[float] | Sequence[Sequence[float]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", _numbers(np.ravel(self.weights).tolist()))

    def set(self) -> dict[str, Any]:
        return {"set": "fixed", "weights": list(self.weights)}

    def spec(self) -> dict[str, Any]:
        return {"name": "fixed", "weights": list(self.weights)}


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


def _text(value: Any) -> str:
    """A name, as tasks have it."""
    from ._table import text

    return text(value)


def _named(tree: Any) -> Any:
    """Groups and tasks by text: JSON has no other names."""
    if isinstance(tree, Mapping):
        return {_text(name): _named(inside) for name, inside in tree.items()}
    if isinstance(tree, str):
        raise TypeError(f"the group of the task {tree!r} is a text, expected a list of tasks, [{tree!r}]")
    return [_text(task) for task in tree]


@dataclass(frozen=True)
class _Overlapping:
    """Groups that may overlap and leave tasks out."""

    groups: Mapping[Any, Any]


@dataclass(frozen=True)
class _Columns:
    """The groups of each task by nested columns."""

    names: tuple[str, ...]
    #: The tasks with their values, outermost first, as often as these differ.
    places: tuple[tuple[str, tuple[str | None, ...]], ...]


@dataclass(frozen=True)
class Hierarchy(Sharing):
    """A tree of tasks: θᵗ = Σ over the groups v above task t of γᵛ, (Σ_{v at level l} ‖γᵛ‖_p^q)^{1/q} ≤ radius for each level l.

    The root, a group of all tasks, is what ``Common(p=p)`` has, the leaves, each task by itself, are what ``Group(p, q)`` has, and
    between them stand the groups of the tree. Without groups it is ``PSCS(p, q)``.

    Parameters
    ----------
    tree : dict
        Groups by name, with groups or lists of tasks inside: ``{"north": {"oslo": ["a", "b"], "bergen": ["c"]}, "south": ["d"]}``.
        Branches may differ in depth; each task stands in one place. A task's name stands for all of its machines where there are
        several classes; without tasks the machines of classes are the tasks (``tasks_``).
    p, q : float, default=2.0, 1.0
        The norm's exponent inside a group and between the groups of a level, ≥ 1.
    radius : float or sequence of float, default=1.0
        The bound of each level, or a bound for each: the root's first, the leaves' last.
    root, leaves : bool, default=True
        Whether there is a level of all tasks, and one of single tasks.

    Examples
    --------
    >>> import mtmkl
    >>> sharing = mtmkl.Hierarchy({"north": ["a", "b"], "south": ["c"]}, q=2)
    >>> model = mtmkl.MKLClassifier(sharing=sharing)
    """

    tree: Any
    p: float = 2.0
    q: float = 1.0
    radius: float | Sequence[float] = 1.0
    root: bool = True
    leaves: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.tree, Mapping | _Overlapping | _Columns):
            raise TypeError(f"tree is {self.tree!r}, expected groups of tasks by name, such as {{'north': ['a', 'b'], 'south': ['c']}}")
        if not isinstance(self.radius, int | float):
            object.__setattr__(self, "radius", _numbers(self.radius))

    @classmethod
    def from_groups(cls, groups: Mapping[Any, Any], **options: Any) -> Hierarchy:
        """Groups that may overlap and leave tasks out, ``{"coast": ["a", "b"], "hills": ["b", "c"]}``; options as those of the class."""
        return cls(_Overlapping(dict(groups)), **options)

    @classmethod
    def from_columns(cls, columns: Any, tasks: Any, **options: Any) -> Hierarchy:
        """The tree that nested columns make.

        Parameters
        ----------
        columns : DataFrame, dict of arrays, array of shape (n_rows, n_levels) or list of arrays
            The groups of each row's task, outermost column first. Each task has one value in each; where it has none in the last columns,
            its branch ends early.
        tasks : array of shape (n_rows,)
            The task of each row.
        **options
            As those of the class.
        """
        from ._table import is_missing

        if hasattr(columns, "columns") and hasattr(columns, "__getitem__"):
            named = {_text(name): list(columns[name]) for name in columns.columns}
        elif isinstance(columns, Mapping):
            named = {_text(name): list(values) for name, values in columns.items()}
        else:
            rows = getattr(columns, "ndim", 1) == 2
            named = {f"level {number}": list(values) for number, values in enumerate(columns.T if rows else columns, 1)}
        owners = [_text(task) for task in tasks]
        for name, values in named.items():
            if len(values) != len(owners):
                raise ValueError(f"column {name!r} has {len(values)} rows, tasks has {len(owners)}")
        cells = ([None if is_missing(value) else _text(value) for value in values] for values in named.values())
        places = dict.fromkeys(zip(owners, zip(*cells, strict=True), strict=True))
        return cls(_Columns(tuple(named), tuple(places)), **options)

    @classmethod
    def from_linkage(cls, linkage: Any, tasks: Sequence[Any], levels: Sequence[int], **options: Any) -> Hierarchy:
        """The tree that a hierarchical clustering of the tasks makes, cut into so many clusters at each level.

        Parameters
        ----------
        linkage : array of shape (n_tasks − 1, 4)
            As ``scipy.cluster.hierarchy.linkage`` makes it.
        tasks : sequence of length n_tasks
            The tasks that were clustered, in their order.
        levels : sequence of int
            The number of clusters at each level, ascending, each above 1 and below the number of tasks.
        **options
            As those of the class.
        """
        from scipy.cluster.hierarchy import cut_tree

        tasks = list(tasks)
        if len(tasks) != len(linkage) + 1:
            raise ValueError(f"linkage is of {len(linkage) + 1} tasks, tasks has {len(tasks)}")
        counts = [int(count) for count in levels]
        if not counts or counts != sorted(set(counts)) or counts[0] < 2 or counts[-1] >= len(tasks):
            raise ValueError(f"levels is {list(levels)!r}, expected ascending numbers of clusters from 2 to {len(tasks) - 1}")
        clusters = cut_tree(linkage, n_clusters=counts)
        return cls.from_columns(
            {f"{count} clusters": column + 1 for count, column in zip(counts, clusters.T, strict=True)}, tasks, **options
        )

    def spec(self) -> dict[str, Any]:
        raise TypeError("a Hierarchy stands in model files by the positions of tasks; use spec_for(tasks)")

    def spec_for(self, tasks: Sequence[str]) -> dict[str, Any]:
        if isinstance(self.tree, _Columns):
            groups: dict[str, Any] = {"columns": [self.tree.names, self.tree.places]}
        elif isinstance(self.tree, _Overlapping):
            groups = {"overlapping": _named(self.tree.groups)}
        else:
            groups = {"tree": _named(self.tree)}
        levels = json.loads(_core.task_levels(json.dumps(groups), list(tasks)))
        several = None if isinstance(self.radius, int | float) else list(self.radius)
        return {
            "name": "hierarchy",
            "p": float(self.p),
            "q": float(self.q),
            "radius": 1.0 if isinstance(self.radius, Sequence) else float(self.radius),
            "radii": several,
            "root": bool(self.root),
            "leaves": bool(self.leaves),
            "levels": levels,
        }


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


def sharing_spec(
    sharing: object, numbers: dict[str, float], machine: dict[str, Any], tasks: int, of_classes: bool, names: Sequence[str] = ()
) -> dict[str, Any]:
    """The sharing of an estimator's parameters as it stands in model files.

    ``numbers`` are the values of the parameters that sharings with names have, ``machine`` is as it stands in model files;
    the tasks, of these names, may be made of the classes of one problem.
    """
    if isinstance(sharing, Sharing):
        return sharing.spec_for(names)
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
