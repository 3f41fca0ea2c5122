"""Checks the certificate of a model file from the file and the data alone, with NumPy and nothing of mtmkl.

A fit claims three numbers: `objective`, an upper bound on J at its θ, reached by the very machines in the file; `bound`, a lower bound on
the optimum J*, proven by the witnesses in the file (by the machines' own β where it has none); and `gap`, how far apart they are. Here

    P = Σ_t primal value of task t at (θ, β, b)         ≥ J(θ) ≥ J*
    D = Σ_t (part of ḡ(β̂, ·) without θ) − σ_Ψ(s(β̂))     ≤ J*

are computed anew: Gram matrices from the formulas, each machine's primal objective as textbooks write it, the support function σ_Ψ from
the norms. P and D need no trust in any solver, only that θ is in Ψ and β̂ in Ω, which is checked too.

    python certificate.py MODEL DATA.npz [--double] [--tolerance NUMBER]

DATA.npz holds, for each sample set S of the file, `set.S` (n × d, as the solver saw it: scaled, one-hot) and `set.S.gram.NAME` for each
precomputed kernel; for each task T `task.T.targets` (±1 or values; absent for one-class machines), `task.T.rows` (positions in its sample
set; absent for all) and `task.T.weights` (absent for 1). Exit code 0 when every claim holds, 1 when one does not.
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

# What rounding may do to a sum, as a share of the magnitudes that are added up in it. The program computes in double precision; what
# NumPy adds to that is gone with long doubles, so that less has to be forgiven.
ROUNDING = {np.dtype(np.float64): 1e-13, np.dtype(np.longdouble): 2e-14}
# How far norms of θ and sums of β may be off, relative to their own size.
FEASIBLE = 1e-9
SUMMED = 1e-12
EPSILON = float(np.finfo(np.float64).eps)
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
        types = {"F64": "<f8", "U64": "<u8"}
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
        if header["version"] not in (1, 2):
            raise FormatError(f"format version {header['version']}, expected 1 or 2")
        tensors = {}
        for name, entry in entries.items():
            first, last = entry["data_offsets"]
            values = np.frombuffer(content[start + first : start + last], dtype=types[entry["dtype"]])
            tensors[name] = values.reshape(entry["shape"])
        return cls(header, tensors)

    def to_bytes(self) -> bytes:
        """The file's bytes again, for those who change something in it."""
        entries: dict[str, Any] = {"__metadata__": {"mtmkl": json.dumps(self.header)}}
        parts, at = [], 0
        for name, values in self.tensors.items():
            part = np.ascontiguousarray(values).tobytes()
            kind = "F64" if values.dtype.kind == "f" else "U64"
            entries[name] = {"dtype": kind, "shape": list(values.shape), "data_offsets": [at, at + len(part)]}
            parts.append(part)
            at += len(part)
        text = json.dumps(entries).encode()
        text += b" " * (-len(text) % 8)
        return len(text).to_bytes(8, "little") + text + b"".join(parts)


# The data


@dataclass(frozen=True)
class Samples:
    """One sample set: its rows as the solver saw them, and precomputed Gram matrices by name."""

    rows: Array | None = None
    grams: Mapping[str, Array] = field(default_factory=dict)

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


# Kernels: each makes K and how far rounding in double precision may move its entries, both n × n.


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


def products(x: Array) -> tuple[Array, Array]:
    """x'z, and its rounding."""
    return x @ x.T, EPSILON * (2 + x.shape[1]) * (abs(x) @ abs(x).T)


def squared_distances(x: Array) -> tuple[Array, Array]:
    """‖x − z‖², and its rounding."""
    values = np.zeros((len(x), len(x)), x.dtype)
    for column in x.T:
        values += (column[:, None] - column) ** 2
    terms = values
    if x.shape[1] > NARROW:
        own = (x * x).sum(axis=1)
        terms = 2 * (own[:, None] + own)
    return values, EPSILON * (2 + x.shape[1]) * terms


def kernel_matrix(spec: str, normalise: bool, samples: Samples, names: Sequence[str], dtype: Any) -> tuple[Array, Array]:
    """K_m of a specification as the file keeps it, and the rounding of its entries."""
    head, _, view = spec.partition("@")
    name, _, options_text = head.partition(":")
    options = options_of(options_text)

    if name == "precomputed":
        given = np.asarray(samples.grams[options["name"]], dtype)
        values, rounding = given, np.zeros_like(given)
    else:
        if samples.rows is None:
            raise FormatError(f"the kernel `{spec}` needs rows")
        x = np.asarray(samples.rows, dtype)
        if view:
            x = x[:, column_positions(view, names)]
        # Parameters are doubles, whatever is computed with them.
        values, rounding = formula(name, x, {key: dtype(float(value)) for key, value in options.items()})
    if normalise or name == "cosine":
        own = np.diag(values).copy()
        root = np.where(own > 0, 1 / np.sqrt(np.where(own > 0, own, 1)), 0)
        scale = root[:, None] * root
        values = values * scale
        # The two diagonal values are rounded as well.
        share = np.where(own > 0, np.diag(rounding) / np.where(own > 0, own, 1), 0)
        rounding = rounding * scale + abs(values) * (0.5 * (share[:, None] + share) + 4 * EPSILON)
        # A sample of norm zero stays the zero vector.
        np.fill_diagonal(values, np.where(own > 0, dtype(1), dtype(0)))
        np.fill_diagonal(rounding, 0)
    return values, rounding


def formula(name: str, x: Array, options: Mapping[str, Any]) -> tuple[Array, Array]:
    """k(x, z) for all pairs by the textbook, and its rounding."""
    gamma = options.get("gamma", x.dtype.type(1))
    constant = options.get("coef0", x.dtype.type(1))
    width = x.shape[1]
    if name in ("linear", "cosine"):
        return products(x)
    if name in ("poly", "sigmoid"):
        base, off = products(x)
        inner = gamma * base + constant
        off = gamma * off + 2 * EPSILON * (gamma * abs(base) + abs(constant))
        if name == "sigmoid":
            return np.tanh(inner), off + 4 * EPSILON
        degree = int(options.get("degree", 2))
        values = inner**degree
        return values, degree * abs(inner) ** (degree - 1) * off + 2 * degree * EPSILON * abs(values)
    if name == "rbf":
        if "sigma" in options:
            gamma = 1 / (2 * options["sigma"] ** 2)
        base, off = squared_distances(x)
        values = np.exp(-gamma * base)
        return values, values * (gamma * (off + 2 * EPSILON * base) + 4 * EPSILON)
    if name in ("matern32", "matern52"):
        base, off = squared_distances(x)
        root = np.sqrt(x.dtype.type(3 if name == "matern32" else 5)) / options.get("length", x.dtype.type(1))
        s = root * np.sqrt(base)
        values = (1 + s if name == "matern32" else 1 + s + s * s / 3) * np.exp(-s)
        # |dk/ds| ≤ s (1 + s) exp(−s) for both, and ds = root² · (rounding of the squared distance) / 2s.
        return values, 0.5 * root**2 * off * (1 + s) * np.exp(-s) + (8 + 4 * s) * EPSILON * values
    if name == "intersection":
        values = np.minimum(x[:, None], x).sum(axis=2)
        return values, EPSILON * width * values
    if name == "laplacian":
        base = abs(x[:, None] - x).sum(axis=2)
    elif name == "chi2":
        total = x[:, None] + x
        base = np.where(total > 0, (x[:, None] - x) ** 2 / np.where(total > 0, total, 1), 0).sum(axis=2)
    else:
        raise FormatError(f"there is no kernel `{name}`")
    values = np.exp(-gamma * base)
    return values, values * (EPSILON * (5 + width) * gamma * base + 4 * EPSILON)


def rounded_to_single(values: Array, rounding: Array) -> tuple[Array, Array]:
    """As `--precision single` keeps a Gram matrix; an entry that may be rounded either way is as uncertain as that."""
    low, high = ((values + sign * rounding).astype(np.float32).astype(values.dtype) for sign in (-1, 1))
    return values.astype(np.float32).astype(values.dtype), high - low


# Machines: J of a task is the maximum over β of a dual objective and the minimum over (w, b) of a primal one.


@dataclass(frozen=True)
class Number:
    """A sum, and the sum of the magnitudes that were added up in it (rounding of kernel values not among them)."""

    value: Any
    size: Any


@dataclass(frozen=True)
class Machine:
    """One task's machine with its data; arrays have an entry for each of the task's samples."""

    name: str
    parameters: dict[str, Any]
    targets: Array
    weights: Array

    def bounds(self) -> tuple[Array, Array, float | None]:
        """Ω: lower ≤ β ≤ upper and the sum of β; everything for ridge regression."""
        price, parameters, none = self.price(), self.parameters, np.zeros_like(self.weights)
        if self.name == "svc":
            return np.minimum(self.targets * price, 0), np.maximum(self.targets * price, 0), 0.0
        if self.name == "svr":
            return -price, price, 0.0
        if self.name == "krr":
            return none - np.inf, none + np.inf, None
        if self.name in ("svdd", "ocsvm"):
            return none, price, 1.0
        raise FormatError(f"there is no machine `{self.name}`; its parameters are {parameters}")

    def price(self) -> Array:
        """What a unit of a sample's loss costs."""
        parameters, weights = self.parameters, self.weights
        if self.name == "svc":
            positive, negative = parameters.get("positive_weight", 1.0), parameters.get("negative_weight", 1.0)
            return parameters["C"] * np.where(self.targets > 0, positive, negative) * weights
        if self.name == "svr":
            return parameters["C"] * weights
        if self.name == "krr":
            return weights / parameters["lambda"]
        if self.name == "svdd":
            return max(parameters["C"], 1 / weights.sum()) * weights
        return weights / (parameters["nu"] * weights.sum())

    def primal(self, kernel: Array, beta: Array, offset: float) -> Number:
        """The primal objective at w = Σ_i β_i φ(x_i) and b."""
        y, price, own = self.targets, self.price(), np.diag(kernel)
        image = kernel @ beta
        f = image + offset
        square = beta @ image
        reach = abs(kernel) @ abs(beta) + abs(offset)
        norms = abs(beta) @ abs(kernel) @ abs(beta)
        if self.name == "svc":  # ½‖w‖² + Σ C_i (1 − y_i f_i)₊
            loss, reach = 1 - y * f, 1 + reach
            value = 0.5 * square + price @ np.maximum(loss, 0)
        elif self.name == "svr":  # ½‖w‖² + Σ C_i (|y_i − f_i| − ε)₊
            loss, reach = abs(y - f) - self.parameters["epsilon"], abs(y) + reach + self.parameters["epsilon"]
            value = 0.5 * square + price @ np.maximum(loss, 0)
        elif self.name == "krr":  # ‖w‖² + Σ (w_i/λ) (y_i − f_i)², without b
            left, reach = y - image, abs(y) + reach
            return Number(square + price @ left**2, norms + price @ (2 * abs(left) * reach + EPSILON * reach**2))
        elif self.name == "svdd":  # R² + C Σ w_i (‖φ(x_i) − centre‖² − R²)₊, R² = 2b + ‖centre‖²
            radius = 2 * offset + square
            loss, reach = own - 2 * image + square - radius, own + 2 * reach
            value = radius + price @ np.maximum(loss, 0)
            norms = norms + 2 * abs(offset)
        else:  # twice the primal of Schölkopf et al.: ‖w‖² − 2ρ + 2 Σ u_i (ρ − f_i)₊, ρ = −b
            loss = -f
            value = square + 2 * offset + 2 * (price @ np.maximum(loss, 0))
            norms, reach = norms + 2 * abs(offset), 2 * reach
        # A loss of nothing but rounding still costs its price.
        counts = loss > -1e-12 * reach
        return Number(value, norms + price @ np.where(counts, reach, 0))

    def dual_constant(self, beta: Array) -> Number:
        """The part of ḡ(β, ·) without θ."""
        if self.name == "svc":
            return Number(self.targets @ beta, abs(beta).sum())
        if self.name == "svr":
            tube = self.parameters["epsilon"] * abs(beta).sum()
            return Number(self.targets @ beta - tube, abs(self.targets) @ abs(beta) + tube)
        if self.name == "krr":
            straight, penalty = 2 * (self.targets * beta), beta**2 / self.price()
            return Number((straight - penalty).sum(), abs(straight).sum() + penalty.sum())
        return Number(beta.dtype.type(0), beta.dtype.type(0))

    def sensitivity(self, kernel: Array, rounding: Array, beta: Array) -> tuple[Any, Any, Any]:
        """s_m = −∂ḡ/∂θ_m, the magnitudes in it, and what rounding of the kernel's values can do to it."""
        scale = 0.5 if self.name in ("svc", "svr") else 1
        value, size = scale * (beta @ kernel @ beta), scale * (abs(beta) @ abs(kernel) @ abs(beta))
        off = scale * (abs(beta) @ rounding @ abs(beta))
        if self.name == "svdd":
            own = np.diag(kernel)
            return value - own @ beta, size + abs(own) @ abs(beta), off + np.diag(rounding) @ abs(beta)
        return value, size, off


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
        return [("common", {"set": "fixed", "weights": sharing["weights"]})]
    if name == "uniform":
        return [("common", {"set": "fixed", "weights": uniform})]
    if name == "sum":
        return [next(iter(term.items())) for term in sharing["terms"]]
    raise FormatError(f"there is no sharing `{name}`")


def support(terms: Sequence[tuple[str, Mapping[str, Any]]], s: Array) -> Any:
    """σ_Ψ(s) = max over θ in Ψ of ⟨s, θ⟩; s is T × M."""
    total = s.dtype.type(0)
    for lift, members in terms:
        if lift == "common":
            total += set_support(members, s.sum(axis=0))
        elif lift == "independent":
            total += sum(set_support(members, row) for row in s)
        else:
            inner = np.array([norm(row, conjugate(members["p"])) for row in s], s.dtype)
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
    for _ in range(200):
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
            directions = [*random.normal(size=(300, *part.shape)), np.ones(part.shape), -np.ones(part.shape)]
            for index in np.ndindex(part.shape):
                directions.extend(sign * np.eye(part.size)[np.ravel_multi_index(index, part.shape)].reshape(part.shape) for sign in (-1, 1))
            for s in directions:
                excess = (s * part).sum() - support(members, s)
                worst = max(worst, float(excess / (abs(s) * abs(part)).sum().clip(min=1e-300)))
    return worst


def term_violation(term: tuple[str, Mapping[str, Any]], part: Array) -> Any:
    lift, members = term
    if lift == "group":
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


def best_offset(machine: Machine, kernel: Array, beta: Array, offset: float) -> Any:
    """The least primal value over b. It is convex and piecewise linear in b, with its corners where a sample's loss begins."""
    if machine.name == "krr":
        return machine.primal(kernel, beta, offset).value
    image, y = kernel @ beta, machine.targets
    if machine.name == "svc":
        corners = y - image
    elif machine.name == "svr":
        corners = np.concatenate([y - image - machine.parameters["epsilon"], y - image + machine.parameters["epsilon"]])
    elif machine.name == "svdd":
        corners = 0.5 * np.diag(kernel) - image
    else:
        corners = -image
    corners = np.sort(corners)
    low, high = 0, len(corners) - 1
    # Convex along the sorted corners: the smaller of two neighbours says on which side the least is.
    while low < high:
        middle = (low + high) // 2
        here, there = (machine.primal(kernel, beta, corners[at]).value for at in (middle, middle + 1))
        low, high = (low, middle) if here <= there else (middle + 1, high)
    return machine.primal(kernel, beta, corners[low]).value


def check(
    content: bytes,
    sets: Sequence[Samples],
    tasks: Sequence[Task],
    *,
    precise: bool = True,
    tolerance: float | None = None,
) -> Verdict:
    """Recomputes P and D of a model file and compares them with what it claims.

    `precise` computes with long doubles, so that what is left is not NumPy's rounding. `tolerance` is the one asked for, where the file (of
    version 1) does not know it."""
    dtype = np.longdouble if precise else np.float64
    unit = ROUNDING[np.dtype(dtype)]
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
            kept = tensors[f"set.{number}.rows"]
            given = np.asarray(samples.rows, np.float64)[tensors[f"set.{number}.positions"].astype(int)]
            claim("rows", np.array_equal(kept, given), f"the support rows of sample set {number} are not those of the data")

    theta = tensors["theta"].astype(dtype)
    count, kernels = theta.shape
    terms = terms_of(header["sharing"], count, kernels)
    common, specific = tensors.get("common"), tensors.get("specific")
    if common is not None or specific is not None:
        summed = (0 if common is None else common) + (np.zeros_like(tensors["theta"]) if specific is None else specific)
        off = float(abs(summed - tensors["theta"]).max())
        claim("theta", off <= FEASIBLE * abs(tensors["theta"]).max(), f"θ is not the sum of its parts, by {off:.3g}")
    off = float(outside(terms, tensors["theta"], common, specific))
    claim("theta", off <= FEASIBLE, f"θ is outside of the sharing's set, by {off:.3g} of its bound")

    is_rounded = header.get("run", {}).get("rounded", False)
    matrices = []
    for samples, entry in zip(sets, header["sets"], strict=True):
        made = [kernel_matrix(kernel["spec"], header["normalize"], samples, entry["columns"], dtype) for kernel in header["kernels"]]
        matrices.append([rounded_to_single(*pair) for pair in made] if is_rounded else made)

    primal = least_primal = constant = dtype(0)
    primal_slack = dual_slack = dtype(0)
    sensitivities, sizes = np.zeros((count, kernels), dtype), np.zeros((count, kernels), dtype)
    for number, (task, entry) in enumerate(zip(tasks, header["tasks"], strict=True)):
        name = entry["name"]
        total = sets[entry["set"]].count
        rows = np.arange(total) if task.rows is None else np.asarray(task.rows, int)
        if len(rows) != entry["samples"]:
            raise FormatError(f"task `{name}` has {len(rows)} samples, the model's had {entry['samples']}")
        machine = Machine(
            header["machine"]["name"],
            header["machine"],
            np.asarray(np.zeros(len(rows)) if task.targets is None else task.targets, dtype),
            np.asarray(np.ones(len(rows)) if task.weights is None else task.weights, dtype),
        )

        def of_task(positions: Array, values: Array, rows: Array = rows, total: int = total, name: str = name) -> Array:
            """β of the task's samples from positions in its sample set."""
            beta = np.zeros(total, dtype)
            np.add.at(beta, positions.astype(int), values.astype(dtype))
            strangers = np.setdiff1d(np.flatnonzero(beta), rows)
            claim("omega", len(strangers) == 0, f"task `{name}` has β at rows {strangers.tolist()} that are not its own")
            return beta[rows]

        positions = tensors[f"set.{entry['set']}.positions"]
        beta = of_task(positions[tensors[f"task.{number}.support"].astype(int)], tensors[f"task.{number}.beta"])
        witness = beta
        if f"task.{number}.witness.rows" in tensors:
            witness = of_task(tensors[f"task.{number}.witness.rows"], tensors[f"task.{number}.witness.beta"])
        lower, upper, wanted = machine.bounds()
        for word, values in [("β", beta)] + ([("witness", witness)] if witness is not beta else []):
            beyond = float(np.maximum(lower - values, values - upper).max(initial=0))
            size = float(abs(values).sum())
            claim("omega", beyond <= SUMMED * max(size, 1e-300), f"the {word} of task `{name}` leaves its box by {beyond:.3g}")
            if wanted is not None:
                off = float(abs(values.sum() - wanted))
                claim("omega", off <= SUMMED * max(size, wanted), f"the {word} of task `{name}` has a sum that is off by {off:.3g}")

        pick = np.ix_(rows, rows)
        own = [(values[pick], rounding[pick]) for values, rounding in matrices[entry["set"]]]
        kernel = sum(weight * values for weight, (values, _) in zip(theta[number], own, strict=True))
        noise = sum(weight * rounding for weight, (_, rounding) in zip(theta[number], own, strict=True))
        offset = dtype(tensors["offsets"][number])
        reached = machine.primal(kernel, beta, offset)
        primal += reached.value
        least_primal += min(reached.value, best_offset(machine, kernel, beta, offset))
        primal_slack += unit * reached.size + kernel_slack(machine, kernel, noise, beta, offset)
        part = machine.dual_constant(witness)
        constant += part.value
        dual_slack += unit * part.size
        for m, (values, rounding) in enumerate(own):
            s, size, off = machine.sensitivity(values, rounding, witness)
            sensitivities[number, m], sizes[number, m] = s, unit * size + off
    dual = constant - support(terms, sensitivities)
    # σ_Ψ is convex, and all of Ψ is ≥ 0: it moves by no more than its value at the sizes.
    dual_slack += support(terms, sizes)

    objective, bound, gap = (float(value) for value in tensors["outcome"][:3])
    status = header["status"]
    slack = primal_slack + dual_slack
    at_best = f", {float(least_primal)!r} at the best offsets" if least_primal < primal else ""
    claim(
        "objective",
        primal <= objective + primal_slack,
        f"the machines reach {float(primal)!r}{at_best}, claimed {objective!r} (rounding {float(primal_slack):.3g})",
    )
    claim("bound", dual >= bound - dual_slack, f"the witnesses prove {float(dual)!r}, claimed {bound!r} (rounding {float(dual_slack):.3g})")
    claim("order", objective >= bound - slack, f"the objective {objective!r} is below the bound {bound!r}")
    relative = (objective - bound) / max(abs(objective), 1e-300)
    allowed = 1e-12 + float(slack) / max(abs(objective), 1e-300)
    claim("gap", abs(gap - relative) <= allowed, f"the gap is {gap!r}, objective and bound make it {relative!r}")
    tolerance = header.get("run", {}).get("tolerance") or tolerance
    if tolerance is not None and status == "converged":
        claim("tolerance", gap <= tolerance, f"converged with a gap of {gap!r}, the tolerance is {tolerance!r}")
    # Relative to the larger of P and the objective: where D < 0 < P < objective, a better machine has the larger ratio.
    scale = max(abs(primal), abs(objective), 1e-300)
    proven = (primal - dual) / scale
    claim("certificate", proven <= gap + slack / scale, f"P and D are {float(proven)!r} apart, the gap claims {gap!r}")
    claim("duality", dual <= primal + slack, f"D = {float(dual)!r} is above P = {float(primal)!r}: the data are not those of the fit")
    return Verdict(float(primal), float(least_primal), float(dual), objective, bound, gap, status, float(slack), violations)


def kernel_slack(machine: Machine, kernel: Array, noise: Array, beta: Array, offset: Any) -> Any:
    """What rounding of the kernel's values can do to the primal objective."""
    size = abs(beta)
    moved, square = noise @ size, size @ noise @ size
    price = machine.price()
    if machine.name == "krr":
        left = abs(machine.targets - kernel @ beta)
        return square + price @ (2 * left * moved + moved**2)
    factor = 1 if machine.name in ("svc", "svr") else 2
    if machine.name == "svdd":
        moved = moved + 0.5 * np.diag(noise)
    # Only a loss that there is, or that rounding makes, can move.
    loss = {
        "svc": lambda: 1 - machine.targets * (kernel @ beta + offset),
        "svr": lambda: abs(machine.targets - kernel @ beta - offset) - machine.parameters["epsilon"],
        "svdd": lambda: 0.5 * np.diag(kernel) - kernel @ beta - offset,
        "ocsvm": lambda: -(kernel @ beta) - offset,
    }[machine.name]()
    return 0.5 * factor * square + factor * (price @ np.where(loss > -moved, moved, 0))


# The command line


def data_of(arrays: Mapping[str, Array], model: Model) -> tuple[list[Samples], list[Task]]:
    """Sample sets and tasks from the arrays of DATA.npz."""
    sets, tasks = [], []
    for number in range(len(model.header["sets"])):
        prefix = f"set.{number}.gram."
        grams = {name.removeprefix(prefix): values for name, values in arrays.items() if name.startswith(prefix)}
        sets.append(Samples(arrays.get(f"set.{number}"), grams))
    for number in range(len(model.header["tasks"])):
        tasks.append(Task(*(arrays.get(f"task.{number}.{what}") for what in ("targets", "rows", "weights"))))
    return sets, tasks


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the certificate of a model file from the file and the data alone.")
    parser.add_argument("model", type=Path, metavar="MODEL")
    parser.add_argument("data", type=Path, metavar="DATA.npz")
    parser.add_argument("--double", action="store_true", help="compute in double precision, not with long doubles")
    parser.add_argument("--tolerance", type=float, help="the tolerance asked for, where the file does not know it")
    arguments = parser.parse_args()
    content = arguments.model.read_bytes()
    with np.load(arguments.data) as archive:
        sets, tasks = data_of(dict(archive), Model.of_bytes(content))
    verdict = check(content, sets, tasks, precise=not arguments.double, tolerance=arguments.tolerance)
    print(verdict)
    return 1 if verdict.violations else 0


if __name__ == "__main__":
    sys.exit(main())
