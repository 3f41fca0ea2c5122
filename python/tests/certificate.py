"""Checks the certificate of a model file from the file and the data alone, with NumPy and nothing of mtmkl.

A fit claims three numbers: `objective`, an upper bound on J at its θ, reached by the very machines in the file; `bound`, a lower bound on
the optimum J*, proven by the witnesses in the file (by the machines' own β where it has none); and `gap`, how far apart they are. Here

    P = Σ_t primal value of task t at (θ, β, b)         ≥ J(θ) ≥ J*
    D = Σ_t (part of ḡ(β̂, ·) without θ) − σ_Ψ(s(β̂))     ≤ J*

are computed anew: Gram matrices from the formulas, each machine's primal objective as textbooks write it, the support function σ_Ψ from
the norms. P and D need no trust in any solver, only that θ is in Ψ and β̂ in Ω, which is checked too. With an indefinite kernel P bounds
nothing and a fit claims no certificate; then only the rest is checked.

    python certificate.py MODEL DATA.npz [--tolerance NUMBER]

DATA.npz holds, for each sample set S of the file, `set.S` (n × d, as the solver saw it: scaled, one-hot), `set.S.gram.NAME` for each
precomputed kernel and, where kernels are between tasks, `set.S.tasks` (the name of each row's task); for each task T `task.T.targets` (±1
or values; absent for one-class machines), `task.T.rows` (positions in its sample set; absent for all) and `task.T.weights` (absent for 1).
Exit code 0 when every claim holds, 1 when one does not.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

# How far θ may be outside of Ψ and β outside of Ω, relative to their size.
FEASIBLE = 1e-9
# P and D are computed with long doubles, and so many times in double precision, with the samples in other orders and the last bit of every
# β and b changed. What rounding may have done to a claim is taken as a hundred times the most that it does here (a solver adds up more
# roundings than one evaluation), and a little of its value.
TRIALS = 5
TIMES = 100
ROUNDING = 1e-12
# The program sums the squared distances of so many columns directly; with more it takes them from products, which cancel.
NARROW = 8


class FormatError(ValueError):
    """The file is not a model, or does not go with the data."""


# The file


@dataclass(frozen=True)
class Model:
    """A model file taken apart: the JSON header and the tensors."""

    header: dict[str, Any]
    tensors: dict[str, Array]

    @classmethod
    def of_bytes(cls, content: bytes) -> Model:
        """safetensors: 8 bytes with the length of a JSON text, that text, and the tensors' values."""
        types = {"F64": "<f8", "U64": "<u8", "U8": "u1"}
        if len(content) < 8:
            raise FormatError("the file is shorter than 8 bytes")
        start = 8 + int.from_bytes(content[:8], "little")
        if start > len(content):
            raise FormatError("the header goes beyond the end of the file")
        entries = json.loads(content[8:start])
        metadata = entries.pop("__metadata__", {})
        if "mtmkl" not in metadata:
            raise FormatError("there is no `mtmkl` header; the file was not written by mtmkl")
        header = json.loads(metadata["mtmkl"])
        if header["version"] not in (1, 2, 3, 4):
            raise FormatError(f"format version {header['version']}, expected 1 to 4")
        tensors = {}
        for name, entry in entries.items():
            first, last = entry["data_offsets"]
            values = np.frombuffer(content[start + first : start + last], dtype=types[entry["dtype"]])
            tensors[name] = values.reshape(entry["shape"])
        return cls(header, tensors)

    def rows(self, number: int) -> Array:
        """The support rows of a sample set, with all their zeros where the file has none of them (from version 4 on)."""
        if f"set.{number}.rows" in self.tensors:
            return self.tensors[f"set.{number}.rows"]
        offsets, columns, values = (self.tensors[f"set.{number}.sparse.{part}"] for part in ("offsets", "columns", "values"))
        dense = np.zeros((len(offsets) - 1, len(self.header["sets"][number]["columns"])))
        dense[np.repeat(np.arange(len(dense)), np.diff(offsets.astype(int))), columns.astype(int)] = values
        return dense

    def task_kernels(self, number: int) -> dict[str, Any] | None:
        """The tasks and task kernels of a sample set, where its kernels are between tasks."""
        text = self.tensors.get(f"set.{number}.task_kernels")
        return None if text is None else dict(json.loads(text.tobytes()))

    def to_bytes(self) -> bytes:
        """The file's bytes again, for those who change something in it."""
        entries: dict[str, Any] = {"__metadata__": {"mtmkl": json.dumps(self.header)}}
        parts, at = [], 0
        for name, values in self.tensors.items():
            part = np.ascontiguousarray(values).tobytes()
            kind = {"f": "F64", "u": "U8" if values.dtype.itemsize == 1 else "U64"}[values.dtype.kind]
            entries[name] = {"dtype": kind, "shape": list(values.shape), "data_offsets": [at, at + len(part)]}
            parts.append(part)
            at += len(part)
        text = json.dumps(entries).encode()
        text += b" " * (-len(text) % 8)
        return len(text).to_bytes(8, "little") + text + b"".join(parts)


# The data


@dataclass(frozen=True)
class Samples:
    """One sample set: its rows as the solver saw them, precomputed Gram matrices by name, and the task that each row is of."""

    rows: Array | None = None
    grams: Mapping[str, Array] = field(default_factory=dict)
    tasks: Sequence[str] | None = None

    @property
    def count(self) -> int:
        if self.rows is not None:
            return len(self.rows)
        return len(next(iter(self.grams.values())))


@dataclass(frozen=True)
class Task:
    """What one task learned from. `rows` are positions in its sample set, all where there are none."""

    targets: Array | None = None
    rows: Array | None = None
    weights: Array | None = None


# Kernels


def options_of(text: str) -> dict[str, str]:
    return dict(option.split("=", 1) for option in text.split(",")) if text else {}


def column_positions(text: str, names: Sequence[str]) -> list[int]:
    """`a,b..c` or `#0,#3..#5`; a name in double quotes may hold anything, a double quote in it is doubled."""
    ends: list[list[tuple[str, bool]]] = [[]]
    rest = text.strip()
    while rest:
        if rest.startswith('"'):
            name, at = "", 1
            while True:
                close = rest.index('"', at)
                name += rest[at:close]
                if rest[close + 1 : close + 2] != '"':
                    break
                name, at = name + '"', close + 2
            ends[-1].append((name, True))
            rest = rest[close + 1 :].lstrip()
        else:
            stops = [stop for stop in (rest.find(","), rest.find("..")) if stop >= 0]
            stop = min(stops, default=len(rest))
            ends[-1].append((rest[:stop].strip(), False))
            rest = rest[stop:]
        if rest.startswith(".."):
            rest = rest[2:].lstrip()
        elif rest.startswith(","):
            ends.append([])
            rest = rest[1:].lstrip()

    def position(end: tuple[str, bool]) -> int:
        name, quoted = end
        return int(name[1:]) if name.startswith("#") and not quoted else list(names).index(name)

    found: list[int] = []
    for piece in ends:
        found.extend(range(position(piece[0]), position(piece[-1]) + 1))
    return found


def squared_distances(x: Array) -> Array:
    """‖x − z‖². In double precision with the rounding that the program has."""
    if x.dtype == np.float64 and x.shape[1] > NARROW:
        own = (x * x).sum(axis=1)
        return np.asarray(np.maximum(own[:, None] + own - 2 * (x @ x.T), 0))
    values = np.zeros((len(x), len(x)), x.dtype)
    for column in x.T:
        values += (column[:, None] - column) ** 2
    return values


def formula(name: str, x: Array, options: Mapping[str, Any]) -> Array:
    """k(x, z) for all pairs by the textbook."""
    one = x.dtype.type(1)
    gamma, constant = options.get("gamma", one), options.get("coef0", one)
    values: Array
    if name == "constant":
        values = np.ones((len(x), len(x)), x.dtype)
    elif name in ("linear", "cosine"):
        values = x @ x.T
    elif name == "poly":
        values = (gamma * (x @ x.T) + constant) ** int(options.get("degree", 2))
    elif name == "sigmoid":
        values = np.tanh(gamma * (x @ x.T) + constant)
    elif name == "rbf":
        if "sigma" in options:
            gamma = 1 / (2 * options["sigma"] ** 2)
        values = np.exp(-gamma * squared_distances(x))
    elif name in ("matern32", "matern52"):
        s = np.sqrt((3 if name == "matern32" else 5) * squared_distances(x)) / options.get("length", one)
        values = (1 + s if name == "matern32" else 1 + s + s * s / 3) * np.exp(-s)
    elif name == "laplacian":
        values = np.exp(-gamma * abs(x[:, None] - x).sum(axis=2))
    elif name == "chi2":
        total = x[:, None] + x
        values = np.exp(-gamma * np.where(total > 0, (x[:, None] - x) ** 2 / np.where(total > 0, total, 1), 0).sum(axis=2))
    elif name == "intersection":
        values = np.minimum(x[:, None], x).sum(axis=2)
    else:
        raise FormatError(f"there is no kernel `{name}`")
    return values


def task_matrix(word: str, samples: Samples, kernels: Mapping[str, Any] | None, dtype: Any) -> Array:
    """C_g, c(t, u) of the tasks of all pairs of rows: 1 in the same group, or the similarity of the two."""
    if kernels is None or samples.tasks is None:
        raise FormatError(f"the kernel `*{word}` is between tasks: neither file nor data may leave them out")
    found = [kernel["form"] for kernel in kernels["kernels"] if kernel["name"] == word]
    if len(found) != 1:
        raise FormatError(f"there is no task kernel `{word}`")
    [(form, values)] = found[0].items()
    of = np.array([kernels["tasks"].index(task) for task in samples.tasks], int)
    if form == "similarity":
        count = len(kernels["tasks"])
        return np.asarray(values["values"], dtype).reshape(count, count)[np.ix_(of, of)]
    group = np.asarray(values["of"], int)[of]
    return np.asarray(group[:, None] == group, dtype)


def kernel_matrix(
    spec: str, normalise: bool, samples: Samples, names: Sequence[str], dtype: Any, kernels: Mapping[str, Any] | None = None
) -> Array:
    """K_m of a specification as the file keeps it: k(x, z), times c(t, u) where it is between tasks."""
    head, _, view = spec.partition("@")
    head, _, word = head.partition("*")
    if word and word != "all":
        plain = head + (f"@{view}" if view else "")
        return kernel_matrix(plain, normalise, samples, names, dtype) * task_matrix(word, samples, kernels, dtype)
    name, _, options_text = head.partition(":")
    options = options_of(options_text)
    if name == "precomputed":
        values = np.asarray(samples.grams[options["name"]], dtype)
    else:
        if samples.rows is None:
            raise FormatError(f"the kernel `{spec}` needs rows")
        x = np.asarray(samples.rows, dtype)
        if view:
            x = x[:, column_positions(view, names)]
        # Parameters are doubles, whatever is computed with them.
        values = formula(name, x, {key: dtype(float(value)) for key, value in options.items()})
    if normalise or name == "cosine":
        own = np.diag(values)
        root = np.where(own > 0, 1 / np.sqrt(np.where(own > 0, own, 1)), 0)
        values = values * (root[:, None] * root)
        # A sample of norm zero stays the zero vector.
        np.fill_diagonal(values, np.where(root > 0, dtype(1), dtype(0)))
    elif "factor" in options:
        values = values * dtype(float(options["factor"]))
    return values


# Machines: J of a task is the maximum over β of a dual objective and the minimum over (w, b) of a primal one.


@dataclass(frozen=True)
class Machine:
    """One task's machine with its data; arrays have an entry for each of the task's samples."""

    name: str
    parameters: dict[str, Any]
    targets: Array
    weights: Array

    def bounds(self) -> tuple[Array, Array, float | None]:
        """Ω: lower ≤ β ≤ upper and the sum of β; everything for ridge regression."""
        price, none = self.price(), np.zeros_like(self.weights)
        if self.name in ("svc", "logistic"):
            return np.minimum(self.targets * price, 0), np.maximum(self.targets * price, 0), 0.0
        if self.name == "svr":
            return -price, price, 0.0
        if self.name == "krr":
            return none - np.inf, none + np.inf, None
        if self.name in ("svdd", "ocsvm"):
            return none, price, 1.0
        raise FormatError(f"there is no machine `{self.name}`")

    def price(self) -> Array:
        """What a unit of a sample's loss costs."""
        parameters, weights = self.parameters, self.weights
        price: Array
        if self.name in ("svc", "logistic"):
            positive, negative = parameters.get("positive_weight", 1.0), parameters.get("negative_weight", 1.0)
            price = parameters["C"] * np.where(self.targets > 0, positive, negative) * weights
        elif self.name == "svr":
            price = parameters["C"] * weights
        elif self.name == "krr":
            price = weights / parameters["lambda"]
        elif self.name == "svdd":
            price = max(parameters["C"], 1 / weights.sum()) * weights
        else:
            price = weights / (parameters["nu"] * weights.sum())
        return price

    def primal(self, kernel: Array, beta: Array, offset: Any) -> Any:
        """The primal objective at w = Σ_i β_i φ(x_i) and b."""
        y, price, image = self.targets, self.price(), kernel @ beta
        f, square = image + offset, beta @ image
        if self.name == "svc":  # ½‖w‖² + Σ C_i (1 − y_i f_i)₊
            return square / 2 + price @ np.maximum(1 - y * f, 0)
        if self.name == "logistic":  # ½‖w‖² + Σ C_i ln(1 + exp(−y_i f_i))
            return square / 2 + price @ np.logaddexp(0, -y * f)
        if self.name == "svr":  # ½‖w‖² + Σ C_i (|y_i − f_i| − ε)₊
            return square / 2 + price @ np.maximum(abs(y - f) - self.parameters["epsilon"], 0)
        if self.name == "krr":  # ‖w‖² + Σ (w_i/λ) (y_i − f_i)², without b
            return square + price @ (y - image) ** 2
        if self.name == "svdd":  # R² + C Σ w_i (‖φ(x_i) − centre‖² − R²)₊ with R² = 2b + ‖centre‖², which cancels in the losses
            return 2 * offset + square + price @ np.maximum(np.diag(kernel) - 2 * f, 0)
        # Twice the primal of Schölkopf et al.: ‖w‖² − 2ρ + 2 Σ u_i (ρ − f_i)₊ with ρ = −b
        return square + 2 * offset + 2 * (price @ np.maximum(-f, 0))

    def least_primal(self, kernel: Array, beta: Array, offset: Any) -> Any:
        """The same at the best b. It is convex and piecewise linear in b, with its corners where a sample's loss begins."""
        if self.name == "krr":
            return self.primal(kernel, beta, offset)
        if self.name == "logistic":
            return self.least_smooth(kernel, beta, offset)
        y, image = self.targets, kernel @ beta
        if self.name == "svr":
            corners = np.concatenate([y - image + sign * self.parameters["epsilon"] for sign in (-1, 1)])
        elif self.name == "svdd":
            corners = np.diag(kernel) / 2 - image
        else:
            # There are no targets in a one-class machine.
            corners = y - image
        corners = np.sort(corners)
        low, high = 0, len(corners) - 1
        # Convex along the sorted corners: the smaller of two neighbours says on which side the least is.
        while low < high:
            middle = (low + high) // 2
            here, there = (self.primal(kernel, beta, corners[at]) for at in (middle, middle + 1))
            low, high = (low, middle) if here <= there else (middle + 1, high)
        return min(self.primal(kernel, beta, offset), self.primal(kernel, beta, corners[low]))

    def least_smooth(self, kernel: Array, beta: Array, offset: Any) -> Any:
        """The same where it is convex and smooth in b: the slope −Σ C_i y_i/(1 + exp(y_i f_i)) is zero at its least, found by bisection."""
        y, price, image = self.targets, self.price(), kernel @ beta
        width = 1 + 2 * abs(image).max() + abs(np.log(price[y > 0].sum() / price[y < 0].sum()))
        low, high = -image.max() - width, -image.min() + width
        for _ in range(200):
            middle = (low + high) / 2
            slope = -(price * y) @ np.exp(-np.logaddexp(0, y * (image + middle)))
            low, high = (middle, high) if slope < 0 else (low, middle)
        return min(self.primal(kernel, beta, offset), self.primal(kernel, beta, low))

    def dual_constant(self, beta: Array) -> Any:
        """The part of ḡ(β, ·) without θ."""
        if self.name == "svc":
            return self.targets @ beta
        if self.name == "logistic":  # −Σ [α ln(α/C_i) + (C_i − α) ln((C_i − α)/C_i)], α = y_iβ_i
            price = self.price()
            parts = np.concatenate([self.targets * beta / price, 1 - self.targets * beta / price])
            terms = np.where(parts > 0, parts * np.log(np.where(parts > 0, parts, 1)), 0)
            return -np.concatenate([price, price]) @ terms
        if self.name == "svr":
            return self.targets @ beta - self.parameters["epsilon"] * abs(beta).sum()
        if self.name == "krr":
            return 2 * (self.targets @ beta) - (beta**2 / self.price()).sum()
        return beta.dtype.type(0)

    def sensitivity(self, kernel: Array, beta: Array) -> Any:
        """s_m = −∂ḡ/∂θ_m."""
        square = beta @ kernel @ beta
        if self.name in ("svc", "logistic", "svr"):
            return square / 2
        return square - np.diag(kernel) @ beta if self.name == "svdd" else square


def into_domain(beta: Array, lower: Array, upper: Array, total: float | None) -> Array:
    """β with what rounding left of a violation of Ω taken away: into the box, then as much of the room of each as the sum needs."""
    beta = np.clip(beta, lower, upper)
    left = 0 if total is None else total - beta.sum()
    room = upper - beta if left > 0 else beta - lower
    return beta if left == 0 or room.sum() == 0 else np.clip(beta + left * room / room.sum(), lower, upper)


# Sharings: Ψ is a sum of terms, each a set of weight vectors for all tasks together, for each, or with one budget.


def norm(x: Array, p: float) -> Any:
    """‖x⁺‖_p, divided by the largest entry first so that no power overflows or vanishes."""
    x = np.maximum(x, 0)
    largest = x.max(initial=0)
    if largest == 0 or p == np.inf:
        return largest
    return largest * ((x / largest) ** x.dtype.type(p)).sum() ** (1 / x.dtype.type(p))


def conjugate(p: float) -> float:
    return np.inf if p == 1 else p / (p - 1)


def terms_of(sharing: Mapping[str, Any], tasks: int, kernels: int) -> list[tuple[str, dict[str, Any]]]:
    """The terms that a sharing is the sum of: (lift, set)."""
    name, radius = sharing["name"], sharing.get("radius", 1.0)
    uniform = [1 / kernels] * kernels
    ball = {"set": "lp-ball", "p": sharing.get("p"), "radius": radius}
    budget = {"p": sharing.get("p"), "q": sharing.get("q"), "radius": radius}
    if name in ("lp", "common"):
        return [("common", ball)]
    if name == "independent":
        return [("independent", ball)]
    if name == "group":
        return [("group", budget)]
    if name == "pscs":
        return [("common", ball), ("group", budget)]
    if name == "hierarchy":
        inner = [("level", {**budget, "level": level}) for level in sharing["levels"]]
        terms = [("common", ball)] * sharing["root"] + inner + [("group", budget)] * sharing["leaves"]
        radii = sharing.get("radii") or [radius] * len(terms)
        return [(lift, {**members, "radius": own}) for (lift, members), own in zip(terms, radii, strict=True)]
    if name == "tang":
        own = min(1.0, sharing["beta"] / tasks)
        terms = [("common", {"set": "simplex", "total": 1 - own}), ("independent", {"set": "simplex", "total": own})]
        return [term for term in terms if term[1]["total"] > 0]
    if name == "simplex":
        return [("common", {"set": "simplex", "total": 1.0})]
    if name == "box-simplex":
        return [("common", {"set": "box-simplex", "total": 1.0, "upper": sharing["upper"]})]
    if name == "prior-ball":
        return [("common", {"set": "prior-ball", "prior": sharing.get("prior") or uniform, "radius": radius})]
    if name == "fixed":
        weights = sharing["weights"]
        if tasks > 1 and len(weights) == tasks * kernels:
            return [("given", {"weights": weights})]
        return [("common", {"set": "fixed", "weights": weights})]
    if name == "uniform":
        return [("common", {"set": "fixed", "weights": uniform})]
    if name == "sum":
        return [next(iter(term.items())) for term in sharing["terms"]]
    raise FormatError(f"there is no sharing `{name}`")


def reach(term: tuple[str, Mapping[str, Any]], tasks: int) -> list[list[int]]:
    """The tasks that each row of a term reaches."""
    lift, members = term
    if lift == "common":
        return [list(range(tasks))]
    if lift == "level":
        return [own for _, own in members["level"]["groups"]]
    return [[task] for task in range(tasks)]


def support(terms: Sequence[tuple[str, Mapping[str, Any]]], s: Array) -> Any:
    """σ_Ψ(s) = max over θ in Ψ of ⟨s, θ⟩; s is T × M."""
    total = s.dtype.type(0)
    for lift, members in terms:
        if lift == "common":
            total += set_support(members, s.sum(axis=0))
        elif lift == "independent":
            total += sum(set_support(members, row) for row in s)
        elif lift == "given":
            total += s.ravel() @ np.asarray(members["weights"], s.dtype)
        else:
            rows = [s[own].sum(axis=0) for own in reach((lift, members), len(s))]
            inner = np.array([norm(row, conjugate(members["p"])) for row in rows], s.dtype)
            total += members.get("radius", 1.0) * norm(inner, conjugate(members["q"]))
    return total


def set_support(members: Mapping[str, Any], s: Array) -> Any:
    kind = members["set"]
    if kind == "lp-ball":
        return members.get("radius", 1.0) * norm(s, conjugate(members["p"]))
    if kind == "simplex":
        return members.get("total", 1.0) * s.max()
    if kind == "box-simplex":
        left, value = s.dtype.type(members.get("total", 1.0)), s.dtype.type(0)
        for cost in np.sort(s)[::-1]:
            weight = min(left, s.dtype.type(members["upper"]))
            value, left = value + weight * cost, left - weight
        return value
    if kind == "fixed":
        return s @ np.asarray(members["weights"], s.dtype)
    if kind == "prior-ball":
        return prior_ball_support(np.asarray(members["prior"], s.dtype), members.get("radius", 1.0), s)
    raise FormatError(f"there is no set `{kind}`")


def prior_ball_support(prior: Array, radius: float, s: Array) -> Any:
    """min over v ≥ 0 of ⟨s + v, θ⁰⟩ + Λ‖s + v‖: every v gives an upper bound on the maximum of ⟨s, θ⟩, so a search cannot flatter D.

    The best is v = −(s + θ⁰/τ) where that is positive, for the τ at which (θ⁰ + τs)⁺ has the distance Λ from θ⁰."""
    largest = abs(s).max()
    if largest == 0:
        return s.dtype.type(0)
    s = s / largest

    def reach(tau: Any) -> Any:
        return np.sqrt(((np.maximum(prior + tau * s, 0) - prior) ** 2).sum())

    def value(lifted: Array) -> Any:
        return lifted @ prior + radius * np.sqrt(lifted @ lifted)

    low, high = s.dtype.type(0), s.dtype.type(1)
    while reach(high) < radius and high < 1e30:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if reach(middle) < radius else (low, middle)
    return largest * min(value(np.maximum(s, -prior / high)), value(np.maximum(s, 0)), value(s))


def outside(terms: Sequence[tuple[str, Mapping[str, Any]]], theta: Array, common: Array | None, specific: Array | None) -> Any:
    """By how much θ is outside of Ψ, relative to the size of Ψ's bounds: 0 inside.

    Where Ψ has one common term and one term with rows of the tasks' own, their parts are in the file. Of a sum with several terms of a
    kind the file keeps only their sums, and many directions s are tried for ⟨s, θ⟩ ≤ σ_Ψ(s) instead."""
    worst = max(0.0, float(-theta.min()) / max(float(abs(theta).max()), 1e-300))
    for kind, part in (("common", common), ("specific", specific)):
        members = [term for term in terms if (term[0] == "common") == (kind == "common")]
        if len(members) == 0:
            continue
        if part is None:
            raise FormatError(f"the tensor `{kind}` is missing")
        if len(members) == 1:
            worst = max(worst, float(term_violation(members[0], part)))
        else:
            random = np.random.default_rng(0)
            directions = [*random.normal(size=(100, *part.shape)), np.ones(part.shape), -np.ones(part.shape)]
            for index in np.ndindex(part.shape):
                directions.extend(sign * np.eye(part.size)[np.ravel_multi_index(index, part.shape)].reshape(part.shape) for sign in (-1, 1))
            for s in directions:
                excess = (s * part).sum() - support(members, s)
                worst = max(worst, float(excess / (abs(s) * abs(part)).sum().clip(min=1e-300)))
    return worst


def parts_of(terms: Sequence[tuple[str, Mapping[str, Any]]], tensors: Mapping[str, Array]) -> list[Array]:
    """The weights of each term, one by one, as files have them beside their sums."""
    parts = [tensors.get(f"part.{number}") for number in range(len(terms))]
    if any(part is None for part in parts):
        raise FormatError("the tensor of a term is missing")
    return [part for part in parts if part is not None]


def scattered(terms: Sequence[tuple[str, Mapping[str, Any]]], parts: Sequence[Array], shape: tuple[int, ...]) -> Array:
    """θᵗ = Σ over the rows of all terms that reach task t."""
    theta = np.zeros(shape)
    for term, part in zip(terms, parts, strict=True):
        for row, own in zip(part, reach(term, shape[0]), strict=True):
            theta[own] += row
    return theta


def term_violation(term: tuple[str, Mapping[str, Any]], part: Array) -> Any:
    lift, members = term
    if lift == "given":
        weights = np.asarray(members["weights"]).reshape(part.shape)
        return abs(part - weights).max() / max(weights.max(), 1e-300)
    if lift in ("group", "level"):
        radius = members.get("radius", 1.0)
        total = norm(np.array([norm(row, members["p"]) for row in part]), members["q"])
        return max((total - radius) / radius, -part.min() / radius)
    return max(set_violation(members, row) for row in part)


def set_violation(members: Mapping[str, Any], row: Array) -> Any:
    kind = members["set"]
    if kind == "fixed":
        weights = np.asarray(members["weights"])
        return abs(row - weights).max() / max(weights.max(), 1e-300)
    if kind in ("simplex", "box-simplex"):
        total = members.get("total", 1.0)
        above = (row - members.get("upper", np.inf)).max()
        return max(abs(row.sum() - total), above, -row.min()) / total
    radius = members.get("radius", 1.0)
    if kind == "lp-ball":
        return max(norm(row, members["p"]) - radius, -row.min()) / radius
    prior = np.asarray(members["prior"])
    return max(np.sqrt(((row - prior) ** 2).sum()) - radius, -row.min()) / max(radius, prior.max())


# The verdict


@dataclass(frozen=True)
class Violation:
    """A claim that does not hold, in one word and in full."""

    claim: str
    problem: str

    def __str__(self) -> str:
        return f"{self.claim}: {self.problem}"


@dataclass(frozen=True)
class Verdict:
    """P and D as computed here beside what the file claims, and the claims that do not hold."""

    primal: float
    """P at the file's offsets."""
    least_primal: float
    """P at the best offsets for the file's θ and β."""
    dual: float
    """D of the witnesses."""
    objective: float
    bound: float
    gap: float
    status: str
    slack: float
    """What rounding may do to P and D together."""
    violations: list[Violation]

    @property
    def claims(self) -> set[str]:
        """The names of the claims that do not hold."""
        return {violation.claim for violation in self.violations}

    def __str__(self) -> str:
        lines = [
            f"status     {self.status}",
            f"objective  {self.objective!r}   P {self.primal!r} (at the best offsets {self.least_primal!r})",
            f"bound      {self.bound!r}   D {self.dual!r}",
            f"gap        {self.gap!r}   (P − D)/|P| {(self.primal - self.dual) / max(abs(self.primal), 1e-300)!r}",
            f"slack      {self.slack!r}",
        ]
        lines += [f"violated   {violation}" for violation in self.violations] or ["every claim holds"]
        return "\n".join(lines)


@dataclass(frozen=True)
class Fitted:
    """One task of a model: its data, its machine and its witness, each with an entry for each of its samples."""

    set: int
    rows: Array
    targets: Array
    weights: Array
    beta: Array
    witness: Array


@dataclass(frozen=True)
class Values:
    """P at the file's offsets and at the best ones, and D."""

    primal: Any
    least_primal: Any
    dual: Any
    cancelling: Any
    """nε Σ |β_i K_ij β_j|: what double precision can do to β'Kβ. A value below it cannot be told from 0."""


def evaluate(model: Model, sets: Sequence[Samples], tasks: Sequence[Fitted], dtype: Any, trials: int) -> list[Values]:
    """P and D in this arithmetic: of the file as it is, then with the samples in other orders and last bits changed."""
    header, tensors = model.header, model.tensors
    is_rounded = header.get("run", {}).get("rounded", False)
    matrices = []
    for number, (samples, entry) in enumerate(zip(sets, header["sets"], strict=True)):
        made = [
            kernel_matrix(kernel["spec"], header["normalize"] is True, samples, entry["columns"], dtype, model.task_kernels(number))
            for kernel in header["kernels"]
        ]
        # `--precision single` keeps kernel values so, and computes with them in double precision.
        matrices.append([values.astype(np.float32).astype(dtype) for values in made] if is_rounded else made)
    theta = tensors["theta"].astype(dtype)
    terms = terms_of(header["sharing"], *theta.shape)
    random = np.random.default_rng(0)
    found = []
    for trial in range(trials):
        primal = least_primal = constant = cancelling = dtype(0)
        sensitivities = np.zeros(theta.shape, dtype)
        for number, task in enumerate(tasks):
            order = random.permutation(len(task.rows)) if trial else np.arange(len(task.rows))
            targets, weights, beta, witness = (
                values[order].astype(dtype) for values in (task.targets, task.weights, task.beta, task.witness)
            )
            offset = dtype(tensors["offsets"][number])
            if trial:
                bits = random.uniform(-1, 1, size=(3, len(order))) * np.finfo(np.float64).eps
                beta, witness, offset = beta * (1 + bits[0]), witness * (1 + bits[1]), offset * (1 + bits[2, 0])
            pick = np.ix_(task.rows[order], task.rows[order])
            own = [np.ascontiguousarray(values[pick]) for values in matrices[task.set]]
            machine = Machine(header["machine"]["name"], header["machine"], targets, weights)
            kernel = sum((weight * values for weight, values in zip(theta[number], own, strict=True)), np.zeros_like(own[0]))
            primal += machine.primal(kernel, beta, offset)
            least_primal += machine.least_primal(kernel, beta, offset)
            cancelling += len(order) * np.finfo(np.float64).eps * (abs(beta) @ abs(kernel) @ abs(beta))
            # What is proven is proven by a point of Ω, not by one nearby.
            witness = into_domain(witness, *machine.bounds())
            constant += machine.dual_constant(witness)
            sensitivities[number] = [machine.sensitivity(values, witness) for values in own]
        found.append(Values(primal, least_primal, constant - support(terms, sensitivities), cancelling))
    return found


def tasks_agree(kernels: Mapping[str, Any], origins: Array, positions: Array, tasks: Sequence[str]) -> tuple[bool, str]:
    """Whether the file has the support rows of the tasks that they are of, and kernels of tasks that are positive semi-definite."""
    names = kernels["tasks"]
    if [names[task] for task in origins.astype(int)] != [tasks[row] for row in positions.astype(int)]:
        return False, "the support rows are of other tasks than in the data"
    for kernel in kernels["kernels"]:
        if "similarity" in kernel["form"]:
            values = np.array(kernel["form"]["similarity"]["values"]).reshape(len(names), len(names))
            largest = abs(values).max()
            if abs(values - values.T).max() > FEASIBLE * largest or np.linalg.eigvalsh(values).min() < -1e-8 * largest:
                return False, f"the task kernel `{kernel['name']}` is not positive semi-definite"
    return True, ""


def check(content: bytes, sets: Sequence[Samples], tasks: Sequence[Task], *, tolerance: float | None = None) -> Verdict:
    """Recomputes P and D of a model file and compares them with what it claims.

    `tolerance` is the one asked for, where the file (of version 1) does not know it."""
    model = Model.of_bytes(content)
    header, tensors = model.header, model.tensors
    if len(sets) != len(header["sets"]) or len(tasks) != len(header["tasks"]):
        raise FormatError(
            f"the model has {len(header['sets'])} sample sets and {len(header['tasks'])} tasks, the data {len(sets)} and {len(tasks)}"
        )
    violations: list[Violation] = []

    def claim(name: str, holds: Any, problem: str) -> None:
        # A comparison with NaN is false: what is not a number is a violation.
        if not holds:
            violations.append(Violation(name, problem))

    for number, (samples, entry) in enumerate(zip(sets, header["sets"], strict=True)):
        if samples.count != entry["samples"]:
            raise FormatError(f"sample set {number} has {samples.count} rows, the model's had {entry['samples']}")
        if samples.rows is not None:
            kept = model.rows(number)
            given = np.asarray(samples.rows, np.float64)[tensors[f"set.{number}.positions"].astype(int)]
            claim("rows", np.array_equal(kept, given), f"the support rows of sample set {number} are not those of the data")
        kernels = model.task_kernels(number)
        if kernels is not None and samples.tasks is not None:
            claim("tasks", *tasks_agree(kernels, tensors[f"set.{number}.origins"], tensors[f"set.{number}.positions"], samples.tasks))

    theta, common, specific = tensors["theta"], tensors.get("common"), tensors.get("specific")
    terms = terms_of(header["sharing"], *theta.shape)
    has_levels = any(lift == "level" for lift, _ in terms)
    if has_levels:
        parts = parts_of(terms, tensors)
        summed = scattered(terms, parts, theta.shape)
        violations_of = [float(term_violation(term, part)) for term, part in zip(terms, parts, strict=True)]
    else:
        summed = np.zeros_like(theta) + (0 if common is None else common) + (0 if specific is None else specific)
    off = float(abs(summed - theta).max())
    claim("theta", off <= FEASIBLE * abs(theta).max(), f"θ is not the sum of its parts, by {off:.3g}")
    off = max(violations_of) if has_levels else float(outside(terms, theta, common, specific))
    claim("theta", off <= FEASIBLE, f"θ is outside of the sharing's set, by {off:.3g} of its bound")

    fitted = []
    for number, (task, entry) in enumerate(zip(tasks, header["tasks"], strict=True)):
        name, total = entry["name"], sets[entry["set"]].count
        rows = np.arange(total) if task.rows is None else np.asarray(task.rows, int)
        if len(rows) != entry["samples"]:
            raise FormatError(f"task `{name}` has {len(rows)} samples, the model's had {entry['samples']}")
        support_positions = tensors[f"set.{entry['set']}.positions"][tensors[f"task.{number}.support"].astype(int)]
        stored = {"β": (support_positions, tensors[f"task.{number}.beta"])}
        if f"task.{number}.witness.rows" in tensors:
            stored["witness"] = (tensors[f"task.{number}.witness.rows"], tensors[f"task.{number}.witness.beta"])
        targets = np.zeros(len(rows)) if task.targets is None else np.asarray(task.targets, np.float64)
        weights = np.ones(len(rows)) if task.weights is None else np.asarray(task.weights, np.float64)
        if "units" in tensors:
            # Targets were learned in units of their spread.
            middle, spread_of = (float(value) for value in tensors["units"][number])
            mean = np.average(targets, weights=weights)
            deviation = np.sqrt(np.average((targets - mean) ** 2, weights=weights))
            off = max(abs(middle - mean), abs(spread_of - deviation) if deviation > 1e-12 * abs(targets).max() else 0.0)
            claim("units", off <= 1e-9 * abs(targets).max(), f"task `{name}`: its targets are not measured by their mean and spread")
            targets = (targets - middle) / spread_of
        lower, upper, wanted = Machine(header["machine"]["name"], header["machine"], targets, weights).bounds()
        betas = []
        for word, (positions, values) in stored.items():
            spread = np.zeros(total)
            np.add.at(spread, positions.astype(int), values)
            strangers = np.setdiff1d(np.flatnonzero(spread), rows)
            claim("omega", len(strangers) == 0, f"the {word} of task `{name}` is not 0 at rows {strangers.tolist()} that are not its own")
            beta = spread[rows]
            size, beyond = abs(beta).sum(), np.maximum(lower - beta, beta - upper).max(initial=0)
            claim("omega", beyond <= FEASIBLE * size, f"the {word} of task `{name}` leaves its box by {beyond:.3g}")
            if wanted is not None:
                off = float(abs(beta.sum() - wanted))
                claim("omega", off <= FEASIBLE * size, f"the {word} of task `{name}` has a sum that is off by {off:.3g}")
            betas.append(beta)
        fitted.append(Fitted(entry["set"], rows, targets, weights, betas[0], betas[-1]))

    exact = evaluate(model, sets, fitted, np.longdouble, 1)[0]
    doubles = evaluate(model, sets, fitted, np.float64, TRIALS)
    primal, least_primal, dual = exact.primal, exact.least_primal, exact.dual
    primal_slack, dual_slack = (
        ROUNDING * abs(getattr(exact, name)) + TIMES * max(abs(getattr(values, name) - getattr(exact, name)) for values in doubles)
        for name in ("primal", "dual")
    )
    slack = primal_slack + dual_slack

    objective, bound, gap = (float(value) for value in tensors["outcome"][:3])
    status = header["status"]
    claim("order", objective >= bound - slack, f"the objective {objective!r} is below the bound {bound!r}")
    relative = (objective - bound) / max(abs(objective), 1e-300)
    # A difference of nothing but rounding may be called none, whether the claims leave room for it or not: an optimum of zero has no
    # relative gap.
    nothing = max(slack, exact.cancelling)
    is_none = gap == 0 and min(objective - bound, primal - dual) <= nothing
    claim("gap", is_none or abs(gap - relative) <= 1e-12, f"the gap is {gap!r}, objective and bound make it {relative!r}")
    tolerance = header.get("run", {}).get("tolerance") or tolerance
    if tolerance is not None and status == "converged":
        claim("tolerance", gap <= tolerance, f"converged with a gap of {gap!r}, the tolerance is {tolerance!r}")
    if status != "converged-uncertified" and header.get("run", {}).get("fallback") != "indefinite":
        rounding = f"(rounding {float(primal_slack):.3g})"
        if least_primal <= objective + primal_slack:
            # Told apart, since the mend is another one.
            problem = f"with the file's offsets the machines reach {float(primal)!r}, claimed {objective!r}, which takes others {rounding}"
            claim("offset", primal <= objective + primal_slack, problem)
        else:
            reached = f"{float(least_primal)!r} at the best offsets, {float(primal)!r} at the file's"
            claim("objective", False, f"the machines reach {reached}, claimed {objective!r} {rounding}")
        rounding = f"(rounding {float(dual_slack):.3g})"
        claim("bound", dual >= bound - dual_slack, f"the witnesses prove {float(dual)!r}, claimed {bound!r} {rounding}")
        # Relative to the larger of P and the objective: where D < 0 < P < objective, a better machine has the larger ratio.
        scale = max(abs(primal), abs(objective), 1e-300)
        proven, allowed = (primal - dual) / scale, nothing if is_none else slack
        claim("certificate", proven <= gap + allowed / scale, f"P and D are {float(proven)!r} apart, the gap claims {gap!r}")
        problem = f"D = {float(dual)!r} is above P = {float(primal)!r}: the data are not those of the fit"
        claim("duality", dual <= primal + slack, problem)
    return Verdict(float(primal), float(least_primal), float(dual), objective, bound, gap, status, float(slack), violations)


# The command line


def data_of(arrays: Mapping[str, Array], model: Model) -> tuple[list[Samples], list[Task]]:
    """Sample sets and tasks from the arrays of DATA.npz."""
    sets, tasks = [], []
    for number in range(len(model.header["sets"])):
        prefix = f"set.{number}.gram."
        grams = {name.removeprefix(prefix): values for name, values in arrays.items() if name.startswith(prefix)}
        names = arrays.get(f"set.{number}.tasks")
        sets.append(Samples(arrays.get(f"set.{number}"), grams, None if names is None else names.tolist()))
    for number in range(len(model.header["tasks"])):
        tasks.append(Task(*(arrays.get(f"task.{number}.{what}") for what in ("targets", "rows", "weights"))))
    return sets, tasks


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the certificate of a model file from the file and the data alone.")
    parser.add_argument("model", type=Path, metavar="MODEL")
    parser.add_argument("data", type=Path, metavar="DATA.npz")
    parser.add_argument("--tolerance", type=float, help="the tolerance asked for, where the file does not know it")
    arguments = parser.parse_args()
    content = arguments.model.read_bytes()
    with np.load(arguments.data) as archive:
        sets, tasks = data_of(dict(archive), Model.of_bytes(content))
    verdict = check(content, sets, tasks, tolerance=arguments.tolerance)
    print(verdict)
    return 1 if verdict.violations else 0


if __name__ == "__main__":
    sys.exit(main())
