"""The certificate of a fit, checked by `certificate.py` from the model file and the data alone.

First the checker itself: at an optimum that cvxpy finds, P and D meet, and a change of any number in a file is noticed. Then 500 random
fits by the program, a third of them stopped early: whatever they claim must hold.
"""

from __future__ import annotations

import collections
import csv
import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import certificate
import cvxpy as cp
import numpy as np
import pytest
from certificate import Model, Samples, Task

pytestmark = [pytest.mark.filterwarnings("ignore:Solution may be inaccurate"), pytest.mark.filterwarnings("ignore:divide by zero")]

# The checker itself, on files made here of what a conic solver finds. Ψ is stated by its definition, as constraints on θ, and the machines
# by their primal problems with Σ_m ‖w_m‖²/θ_m for ‖w‖²; β is the multiplier of f = Σ_m φ_m(x)'w_m. The checker takes neither road.

SPECS = ["linear", "rbf:gamma=0.4", "poly:degree=2,coef0=1,gamma=1"]
MACHINES = {
    "svc": {"name": "svc", "C": 2.0, "positive_weight": 1.5, "negative_weight": 0.5},
    "logistic": {"name": "logistic", "C": 2.0, "positive_weight": 1.5, "negative_weight": 0.5},
    "svr": {"name": "svr", "C": 1.5, "epsilon": 0.1},
    "krr": {"name": "krr", "lambda": 0.5},
    "svdd": {"name": "svdd", "C": 0.2},
    "ocsvm": {"name": "ocsvm", "nu": 0.3},
}
SHARINGS = {
    "lp": {"name": "lp", "p": 1.5, "radius": 1.2},
    "common": {"name": "common", "p": 2.0, "radius": 1.0},
    "independent": {"name": "independent", "p": 1.0, "radius": 0.7},
    "group": {"name": "group", "p": 1.5, "q": 3.0, "radius": 2.0},
    "pscs": {"name": "pscs", "p": 2.0, "q": 1.0, "radius": 1.0},
    "tang": {"name": "tang", "beta": 0.8},
    "simplex": {"name": "simplex"},
    "box-simplex": {"name": "box-simplex", "upper": 0.45},
    "prior-ball": {"name": "prior-ball", "prior": [0.0, 1.0, 1.0], "radius": 0.6},
    "fixed": {"name": "fixed", "weights": [0.5, 1.0, 0.25]},
    "uniform": {"name": "uniform"},
    "sum": {
        "name": "sum",
        "terms": [
            {"common": {"set": "simplex", "total": 0.5}},
            {"independent": {"set": "lp-ball", "p": 2.0, "radius": 0.5}},
            {"group": {"p": 2.0, "q": 1.0, "radius": 0.5}},
        ],
    },
}
# Sets that contain 0 leave SVDD with a sphere of radius zero; the program refuses them.
NOT_FOR_SVDD = {"lp", "common", "independent", "group", "pscs"}
PAIRS = [(machine, sharing) for machine in MACHINES for sharing in SHARINGS if not (machine == "svdd" and sharing in NOT_FOR_SVDD)]


def norm(x, p):
    """‖x‖_p for x ≥ 0 entry by entry."""
    return cp.norm_inf(x) if p == np.inf else cp.norm1(x) if p == 1 else cp.pnorm(x, p)


def members_of(sharing, tasks, kernels):
    """(constraints, ζ, γ) that say ζ + γᵗ is in Ψ; a part that Ψ does not have is None."""
    common, specific = cp.Variable(kernels, nonneg=True), cp.Variable((tasks, kernels), nonneg=True)
    rows = [specific[task] for task in range(tasks)]
    p, q, radius = sharing.get("p"), sharing.get("q"), sharing.get("radius", 1.0)
    budget = norm(cp.hstack([norm(row, p) for row in rows]), q) <= radius if q else None
    match sharing["name"]:
        case "lp" | "common":
            return [norm(common, p) <= radius], common, None
        case "independent":
            return [norm(row, p) <= radius for row in rows], None, specific
        case "group":
            return [budget], None, specific
        case "pscs":
            return [norm(common, p) <= radius, budget], common, specific
        case "tang":
            share = min(1.0, sharing["beta"] / tasks)
            return [cp.sum(common) == 1 - share] + [cp.sum(row) == share for row in rows], common, specific
        case "simplex":
            return [cp.sum(common) == 1], common, None
        case "box-simplex":
            return [cp.sum(common) == 1, common <= sharing["upper"]], common, None
        case "prior-ball":
            return [cp.norm2(common - np.array(sharing["prior"])) <= radius], common, None
        case "fixed":
            return [common == np.array(sharing["weights"])], common, None
        case "uniform":
            return [common == 1 / kernels], common, None
        case "sum":
            other = cp.Variable((tasks, kernels), nonneg=True)
            constraints = [cp.sum(common) == 0.5] + [cp.norm2(row) <= 0.5 for row in rows]
            return [*constraints, cp.sum(cp.hstack([cp.norm2(other[task]) for task in range(tasks)])) <= 0.5], common, specific + other
    raise AssertionError(sharing["name"])


def into_ball(x, p, radius):
    return x * min(1.0, radius / max(float(np.linalg.norm(x, p)), 1e-300))


def repaired_weights(sharing, common, specific):
    """What a solver leaves of a violation of Ψ taken away, ζ and γ after that."""
    common = None if common is None else np.maximum(common, 0)
    specific = None if specific is None else np.maximum(specific, 0)
    p, q, radius = sharing.get("p"), sharing.get("q"), sharing.get("radius", 1.0)
    if sharing["name"] in ("lp", "common", "pscs"):
        common = into_ball(common, p, radius)
    if sharing["name"] == "independent":
        specific = np.array([into_ball(row, p, radius) for row in specific])
    if sharing["name"] in ("group", "pscs"):
        specific = specific * min(1.0, radius / np.linalg.norm(np.linalg.norm(specific, p, axis=1), q))
    if sharing["name"] == "tang":
        share = min(1.0, sharing["beta"] / len(specific))
        common = (1 - share) * common / common.sum()
        specific = share * specific / specific.sum(axis=1)[:, None]
    if sharing["name"] in ("simplex", "box-simplex"):
        common = common / common.sum()
        upper = sharing.get("upper", 1.0)
        common = np.minimum(common, upper)
        room = upper - common
        common = common + room * (1 - common.sum()) / room.sum()
    if sharing["name"] == "prior-ball":
        prior = np.array(sharing["prior"])
        common = prior + into_ball(common - prior, 2, radius)
    if sharing["name"] in ("fixed", "uniform"):
        common = np.array(sharing.get("weights", [1 / len(common)] * len(common)))
    if sharing["name"] == "sum":
        common = 0.5 * common / common.sum()
        specific = specific * (1 - 1e-7)
    return common, specific


def model_of(machine, sharing, sets, theta, common, specific, betas, offsets, objective, bound):
    """A model file's bytes; every sample of each task supports."""
    counts = [len(beta) for beta in betas]
    header = {
        "version": 2,
        "kernels": [{"name": spec, "spec": spec} for spec in SPECS],
        "machine": machine,
        "sharing": sharing,
        "normalize": False,
        "status": "converged",
        "run": {"tolerance": 1e-3, "solver": None, "fallback": None, "rounded": False},
        "tasks": [{"name": f"t{task}", "samples": count, "set": task} for task, count in enumerate(counts)],
        "sets": [{"columns": ["a", "b"], "samples": count, "given": []} for count in counts],
        "notes": {},
    }
    tensors = {
        "theta": theta,
        "offsets": np.array(offsets),
        "outcome": np.array([objective, bound, (objective - bound) / abs(objective), 0.0, 0.0]),
    }
    if common is not None:
        tensors["common"] = common[None]
    if specific is not None:
        tensors["specific"] = specific
    for task, beta in enumerate(betas):
        tensors[f"task.{task}.support"] = np.arange(len(beta), dtype=np.uint64)
        tensors[f"task.{task}.beta"] = beta
        tensors[f"set.{task}.positions"] = np.arange(len(beta), dtype=np.uint64)
        tensors[f"set.{task}.rows"] = sets[task].rows
    return header, tensors


@dataclass
class Solved:
    """A problem with its optimum by cvxpy."""

    header: dict
    tensors: dict
    sets: list[Samples]
    tasks: list[Task]
    optimum: float

    def verdict(self):
        return certificate.check(Model(self.header, self.tensors).to_bytes(), self.sets, self.tasks)


def solved(machine_name, sharing_name, seed=0):
    """θ, w and b that minimise the primal problem over Ψ, β from the multipliers, and a model file of that."""
    machine, sharing = MACHINES[machine_name], SHARINGS[sharing_name]
    rng = np.random.default_rng(seed)
    count = 1 if sharing_name == "lp" else 2
    constraints, common, specific = members_of(sharing, count, len(SPECS))
    value, images, offsets, sets, tasks = 0, [], [], [], []
    for task in range(count):
        n = 9 + task
        x = rng.normal(size=(n, 2))
        signal_of = x[:, 0] * x[:, 1] + 0.5 * x[:, 0] + 0.3 * rng.normal(size=n)
        y = np.where(signal_of > 0, 1.0, -1.0) if machine_name in ("svc", "logistic") else signal_of
        dot = x @ x.T
        squares = ((x[:, None] - x) ** 2).sum(axis=2)
        f, norms, own = 0, 0, 0
        for m, gram in enumerate([dot, np.exp(-0.4 * squares), (dot + 1) ** 2]):
            weight = (0 if common is None else common[m]) + (0 if specific is None else specific[task, m])
            values, vectors = np.linalg.eigh(gram)
            kept = values > 1e-12 * values.max()
            w = cp.Variable(int(kept.sum()))
            f += (vectors[:, kept] * np.sqrt(values[kept])) @ w
            norms += cp.quad_over_lin(w, weight)
            own += weight * np.diag(gram)
        image, offset = cp.Variable(n), cp.Variable()
        images.append(image == f)
        constraints.append(images[-1])
        offsets.append(offset)
        if machine_name in ("svc", "logistic"):
            price = machine["C"] * np.where(y > 0, machine["positive_weight"], machine["negative_weight"])
            margin_of = cp.multiply(y, image + offset)
            value += norms / 2 + price @ (cp.pos(1 - margin_of) if machine_name == "svc" else cp.logistic(-margin_of))
        elif machine_name == "svr":
            value += norms / 2 + machine["C"] * cp.sum(cp.pos(cp.abs(y - image - offset) - machine["epsilon"]))
        elif machine_name == "krr":
            constraints.append(offset == 0)
            value += norms + cp.sum_squares(y - image) / machine["lambda"]
        elif machine_name == "svdd":
            value += norms + 2 * offset + machine["C"] * cp.sum(cp.pos(own - 2 * image - 2 * offset))
        else:
            value += norms + 2 * offset + 2 / (machine["nu"] * n) * cp.sum(cp.pos(-image - offset))
        sets.append(Samples(x))
        tasks.append(Task(None if machine_name in ("svdd", "ocsvm") else y))
    problem = cp.Problem(cp.Minimize(value), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert problem.status in ("optimal", "optimal_inaccurate")
    # `problem.value` is computed anew, with 0/0 where a weight is zero.
    optimum = float(problem.solution.opt_val)
    zeta, gamma = repaired_weights(
        sharing, None if common is None else common.value, None if specific is None else np.reshape(specific.value, (count, -1))
    )
    theta = (0 if zeta is None else zeta) + (np.zeros((count, len(SPECS))) if gamma is None else gamma)
    betas = []
    for task, multiplier in zip(tasks, images, strict=True):
        n = len(multiplier.dual_value)
        # d(½‖w_m‖²/θ_m) = φ_m'β, twice that where the primal has no ½; the sign is the one that raises the dual.
        beta = multiplier.dual_value / (1 if machine_name in ("svc", "logistic", "svr") else 2)
        bounds = certificate.Machine(machine_name, machine, np.zeros(n) if task.targets is None else task.targets, np.ones(n)).bounds()
        candidates = [certificate.into_domain(sign * beta, *bounds) for sign in (1, -1)]
        betas.append(min(candidates, key=lambda candidate: min(abs(candidate - beta).max(), abs(candidate + beta).max())))
    margin = 1e-4 * abs(optimum)
    header, tensors = model_of(
        machine,
        sharing,
        sets,
        theta,
        zeta,
        gamma,
        betas,
        [float(offset.value) for offset in offsets],
        optimum + margin,
        optimum - margin,
    )
    return Solved(header, tensors, sets, tasks, optimum)


@pytest.mark.parametrize("machine, sharing", PAIRS)
def test_primal_and_dual_meet_at_the_optimum_of_cvxpy(machine, sharing):
    problem = solved(machine, sharing)
    verdict = problem.verdict()
    assert verdict.primal == pytest.approx(problem.optimum, rel=3e-5)
    assert verdict.dual == pytest.approx(problem.optimum, rel=3e-5)
    assert verdict.violations == []
    # What rounding is forgiven is next to nothing here.
    assert verdict.slack <= 1e-10 * abs(problem.optimum)


@pytest.fixture(scope="module", params=list(MACHINES))
def optimal(request):
    """One solved problem of each machine, under a sharing with two parts."""
    return solved(request.param, "tang" if request.param == "svdd" else "pscs")


def changed(problem, **tensors):
    return Solved(problem.header, {**problem.tensors, **tensors}, problem.sets, problem.tasks, problem.optimum)


def outcome_of(problem, objective, bound):
    return np.array([objective, bound, (objective - bound) / abs(objective), 0.0, 0.0])


def test_a_changed_theta_is_caught(optimal):
    theta, common, specific = (optimal.tensors[name] for name in ("theta", "common", "specific"))
    assert changed(optimal, theta=theta * 1.01).verdict().claims >= {"theta"}
    larger = changed(optimal, theta=theta * 1.01, common=common * 1.01, specific=specific * 1.01).verdict()
    assert larger.claims >= {"theta"}
    negative = common.copy()
    negative[0, 0] -= common.sum()
    assert changed(optimal, theta=negative + specific, common=negative).verdict().claims >= {"theta"}


def test_a_theta_beyond_a_sum_of_terms_is_caught():
    problem = solved("svc", "sum")
    assert problem.verdict().violations == []
    own = problem.tensors["specific"] * 1.2
    beyond = changed(problem, specific=own, theta=problem.tensors["common"] + own)
    assert beyond.verdict().claims >= {"theta"}


def test_a_changed_beta_is_caught(optimal):
    beta = optimal.tensors["task.0.beta"]
    # Still in Ω where there is one, but not the optimum.
    reversed_order = np.sort(abs(beta)) * np.sign(beta.sum() or 1.0)
    if optimal.header["machine"]["name"] in ("svc", "svr"):
        reversed_order = 0.5 * beta
    found = changed(optimal, **{"task.0.beta": reversed_order}).verdict()
    assert found.claims >= {"objective", "bound", "certificate"}
    if optimal.header["machine"]["name"] == "krr":
        return
    # A sum that is off, and a box that is left.
    assert changed(optimal, **{"task.0.beta": beta * 1.001 + 1e-6}).verdict().claims >= {"omega"}
    assert changed(optimal, **{"task.0.beta": beta * 100 - 99 * beta.mean()}).verdict().claims >= {"omega"}


def test_a_changed_offset_is_caught(optimal):
    offsets = optimal.tensors["offsets"]
    moved = changed(optimal, offsets=offsets + 0.2).verdict()
    if optimal.header["machine"]["name"] == "krr":
        # It has none.
        assert moved.primal == optimal.verdict().primal
    else:
        assert moved.claims >= {"offset", "certificate"}
        assert moved.least_primal == pytest.approx(optimal.optimum, rel=3e-5)


def test_a_changed_witness_is_caught(optimal):
    beta = optimal.tensors["task.1.beta"]
    rows = {"task.1.witness.rows": np.arange(len(beta), dtype=np.uint64)}
    # The witness counts, not β: with the optimal one, a poor β leaves the bound as it is.
    poor = changed(optimal, **rows, **{"task.1.witness.beta": beta, "task.1.beta": np.roll(beta, 1)}).verdict()
    assert "bound" not in poor.claims
    assert "objective" in poor.claims
    wrong = changed(optimal, **rows, **{"task.1.witness.beta": np.roll(beta, 1)}).verdict()
    assert wrong.claims & {"bound", "omega"}
    assert "objective" not in wrong.claims
    if optimal.header["machine"]["name"] != "krr":
        assert changed(optimal, **rows, **{"task.1.witness.beta": beta + 1e-6}).verdict().claims >= {"omega"}


@pytest.mark.parametrize(
    "objective, bound, gap, claims",
    [
        (-1e-3, -1e-4, 0.0, {"objective"}),
        (1e-4, 1e-3, 0.0, {"bound", "order"}),
        (1e-4, 5e-5, 0.0, {"bound"}),
        (1e-4, -1e-4, -1e-4, {"gap"}),
        (1e-4, -2e-2, 0.0, {"tolerance"}),
        (np.nan, -1e-4, 0.0, {"objective", "order", "gap"}),
    ],
)
def test_changed_numbers_are_caught(optimal, objective, bound, gap, claims):
    size = abs(optimal.optimum)
    outcome = outcome_of(optimal, optimal.optimum + objective * size, optimal.optimum + bound * size)
    outcome[2] += gap
    assert changed(optimal, outcome=outcome).verdict().claims >= claims


def test_other_data_are_noticed(optimal):
    other = [Samples(samples.rows * (1 + 1e-15)) for samples in optimal.sets]
    assert certificate.check(Model(optimal.header, optimal.tensors).to_bytes(), other, optimal.tasks).claims == {"rows"}


def test_kernels_in_single_precision_are_rounded_before_anything_is_computed(optimal):
    rounded = Solved(
        {**optimal.header, "run": {**optimal.header["run"], "rounded": True}}, optimal.tensors, optimal.sets, optimal.tasks, 0.0
    )
    total = 0
    for number, (samples, task) in enumerate(zip(optimal.sets, optimal.tasks, strict=True)):
        grams = [certificate.kernel_matrix(spec, False, samples, ["a", "b"], np.float64).astype(np.float32) for spec in SPECS]
        kernel = sum(weight * gram.astype(float) for weight, gram in zip(optimal.tensors["theta"][number], grams, strict=True))
        count = len(samples.rows)
        targets = np.zeros(count) if task.targets is None else task.targets
        machine = certificate.Machine(optimal.header["machine"]["name"], optimal.header["machine"], targets, np.ones(count))
        total += machine.primal(kernel, optimal.tensors[f"task.{number}.beta"], optimal.tensors["offsets"][number])
    assert rounded.verdict().primal == pytest.approx(total, rel=1e-13)
    assert rounded.verdict().primal != pytest.approx(optimal.verdict().primal, rel=1e-11)


def test_without_a_certificate_only_the_rest_is_checked(optimal):
    poor = {"outcome": outcome_of(optimal, optimal.optimum - 0.1 * abs(optimal.optimum), optimal.optimum + 0.1 * abs(optimal.optimum))}
    assert changed(optimal, **poor).verdict().claims >= {"objective", "bound", "certificate", "order"}
    optimal = Solved({**optimal.header, "status": "converged-uncertified"}, optimal.tensors, optimal.sets, optimal.tasks, optimal.optimum)
    assert changed(optimal, **poor).verdict().claims == {"order"}


def test_kernels_follow_their_formulas():
    rng = np.random.default_rng(5)
    x = abs(rng.normal(size=(6, 3)))
    x[3] = x[2]
    x[4] = 0
    names = ["a", "b,c", "d"]
    given = x @ x.T + 1
    formulas = {
        "linear": lambda u, v: u @ v,
        "linear@a": lambda u, v: u[0] * v[0],
        'linear@"b,c"..d': lambda u, v: u[1:] @ v[1:],
        "linear@#0,#2": lambda u, v: u[0] * v[0] + u[2] * v[2],
        "poly:degree=3,coef0=0.5,gamma=2": lambda u, v: (2 * (u @ v) + 0.5) ** 3,
        "rbf:gamma=0.7": lambda u, v: np.exp(-0.7 * ((u - v) ** 2).sum()),
        "rbf:sigma=2": lambda u, v: np.exp(-((u - v) ** 2).sum() / 8),
        "laplacian:gamma=0.3": lambda u, v: np.exp(-0.3 * abs(u - v).sum()),
        "matern32:length=2": lambda u, v: (1 + np.sqrt(3) * np.linalg.norm(u - v) / 2) * np.exp(-np.sqrt(3) * np.linalg.norm(u - v) / 2),
        "matern52:length=2": lambda u, v: (
            (1 + np.sqrt(5) * np.linalg.norm(u - v) / 2 + 5 * ((u - v) ** 2).sum() / 12) * np.exp(-np.sqrt(5) * np.linalg.norm(u - v) / 2)
        ),
        "chi2:gamma=0.5": lambda u, v: np.exp(-0.5 * sum((a - b) ** 2 / (a + b) for a, b in zip(u, v, strict=True) if a + b > 0)),
        "intersection": lambda u, v: np.minimum(u, v).sum(),
        "sigmoid:gamma=0.1,coef0=0.5": lambda u, v: np.tanh(0.1 * (u @ v) + 0.5),
        "precomputed:name=K": lambda u, v: u @ v + 1,
    }
    for spec, formula in formulas.items():
        plain = np.array([[formula(u, v) for v in x] for u in x])
        own = np.sqrt(np.diag(plain))
        scaled = np.divide(plain, own[:, None] * own, out=np.zeros_like(plain), where=own[:, None] * own > 0)
        for normalise, expected in ((False, plain), (True, scaled)):
            for dtype in (np.float64, np.longdouble):
                found = certificate.kernel_matrix(spec, normalise, Samples(x, {"K": given}), names, dtype)
                assert found.dtype == dtype
                np.testing.assert_allclose(found.astype(float), expected, rtol=1e-14, atol=1e-15, err_msg=spec)


def test_kernels_between_tasks_are_products():
    x = np.random.default_rng(6).normal(size=(5, 2))
    tasks = ["b", "a", "c", "a", "b"]
    similar = np.array([[1.0, 0.5, -0.2], [0.5, 2.0, 0.0], [-0.2, 0.0, 1.0]])
    kernels = {
        "tasks": ["a", "b", "c"],
        "kernels": [
            {"name": "own", "form": {"same": {"groups": ["a", "b", "c"], "of": [0, 1, 2]}}},
            {"name": "group", "form": {"same": {"groups": ["n", "s"], "of": [0, 1, 0]}}},
            {"name": "similarity", "form": {"similarity": {"values": similar.ravel().tolist()}}},
        ],
    }
    numbers = [kernels["tasks"].index(task) for task in tasks]
    samples = Samples(x, {}, tasks)
    for word, c in {
        "all": lambda t, u: 1.0,
        "own": lambda t, u: float(t == u),
        "group": lambda t, u: float((t == 1) == (u == 1)),
        "similarity": lambda t, u: similar[t, u],
    }.items():
        for spec, k in {"linear": lambda u, v: u @ v, "linear@b": lambda u, v: u[1] * v[1], "constant": lambda u, v: 1.0}.items():
            head, _, view = spec.partition("@")
            found = certificate.kernel_matrix(
                f"{head}*{word}" + (f"@{view}" if view else ""), False, samples, ["a", "b"], np.float64, kernels
            )
            expected = [[k(u, v) * c(t, s) for v, s in zip(x, numbers, strict=True)] for u, t in zip(x, numbers, strict=True)]
            np.testing.assert_allclose(found, expected, rtol=1e-14)
    with pytest.raises(certificate.FormatError, match="between tasks"):
        certificate.kernel_matrix("linear*own", False, Samples(x), ["a", "b"], np.float64, kernels)
    with pytest.raises(certificate.FormatError, match="no task kernel"):
        certificate.kernel_matrix("linear*county", False, samples, ["a", "b"], np.float64, kernels)
    support = np.array([0, 3], np.uint64)
    assert certificate.tasks_agree(kernels, np.array([1, 0], np.uint64), support, tasks)[0]
    assert not certificate.tasks_agree(kernels, np.array([1, 1], np.uint64), support, tasks)[0]
    kernels["kernels"][2]["form"]["similarity"]["values"][0] = -1.0
    assert not certificate.tasks_agree(kernels, np.array([1, 0], np.uint64), support, tasks)[0]


TREE = {
    "name": "hierarchy",
    "p": 1.5,
    "q": 3.0,
    "radius": 1.0,
    "radii": [1.0, 0.7, 0.5],
    "root": True,
    "leaves": True,
    "levels": [{"label": "groups", "groups": [["x", [0, 1]], ["y", [1, 2]]]}],
}


def test_the_support_function_of_a_tree_is_that_of_its_definition():
    """max ⟨s, θ⟩ over the weights of every node, stated for cvxpy; groups overlap."""
    rng = np.random.default_rng(12)
    for p, q in ((1.0, 1.0), (2.0, 1.0), (1.5, 3.0)):
        s = rng.normal(size=(3, len(SPECS)))
        nodes = [[[0, 1, 2]], [[0, 1], [1, 2]], [[0], [1], [2]]]
        value, constraints = 0, []
        for level, radius in zip(nodes, TREE["radii"], strict=True):
            weights = cp.Variable((len(level), len(SPECS)), nonneg=True)
            constraints.append(norm(cp.hstack([norm(weights[row], p) for row in range(len(level))]), q) <= radius)
            value += sum(s[tasks].sum(axis=0) @ weights[row] for row, tasks in enumerate(level))
        best = cp.Problem(cp.Maximize(value), constraints).solve(solver=cp.CLARABEL)
        terms = certificate.terms_of(TREE | {"p": p, "q": q}, 3, len(SPECS))
        assert certificate.support(terms, s) == pytest.approx(best, rel=1e-6, abs=1e-7)


def test_the_weights_of_a_tree_are_checked_node_by_node():
    terms = certificate.terms_of(TREE, 3, 2)
    parts = [np.full((1, 2), 0.1), np.full((2, 2), 0.2), np.full((3, 2), 0.05)]
    theta = certificate.scattered(terms, parts, (3, 2))
    np.testing.assert_allclose(theta, [[0.35] * 2, [0.55] * 2, [0.35] * 2])
    assert max(certificate.term_violation(term, part) for term, part in zip(terms, parts, strict=True)) <= 0
    assert certificate.term_violation(terms[1], 3 * parts[1]) > 0
    with pytest.raises(certificate.FormatError, match="a term is missing"):
        certificate.parts_of(terms, {"part.0": parts[0]})


def test_the_support_functions_are_those_of_many_points():
    """Against points of Ψ: none is above σ, and the best of those that the definition's linear programme finds reaches it."""
    rng = np.random.default_rng(11)
    for name, sharing in SHARINGS.items():
        tasks = 1 if name == "lp" else 3
        for sign in (1.0, -1.0, 0.0):
            s = rng.normal(size=(tasks, len(SPECS))) if sign == 0 else sign * rng.uniform(size=(tasks, len(SPECS)))
            constraints, common, specific = members_of(sharing, tasks, len(SPECS))
            value = 0 if common is None else s.sum(axis=0) @ common
            value = value + (0 if specific is None else cp.sum(cp.multiply(s, specific)))
            best = cp.Problem(cp.Maximize(value), constraints).solve(solver=cp.CLARABEL)
            found = certificate.support(certificate.terms_of(sharing, tasks, len(SPECS)), s)
            assert found == pytest.approx(best, rel=1e-6, abs=1e-7), (name, sign)


def arrays_of(sets, tasks):
    """What DATA.npz holds."""
    arrays = {}
    for number, samples in enumerate(sets):
        arrays |= {f"set.{number}.gram.{name}": gram for name, gram in samples.grams.items()}
        if samples.rows is not None:
            arrays[f"set.{number}"] = samples.rows
        if samples.tasks is not None:
            arrays[f"set.{number}.tasks"] = np.array(samples.tasks)
    for number, task in enumerate(tasks):
        parts = {"targets": task.targets, "rows": task.rows, "weights": task.weights}
        arrays |= {f"task.{number}.{name}": values for name, values in parts.items() if values is not None}
    return arrays


def test_it_runs_from_the_command_line(tmp_path, optimal):
    model, data = tmp_path / "model.mtmkl", tmp_path / "data.npz"
    np.savez(data, **arrays_of(optimal.sets, optimal.tasks))
    tampered = changed(optimal, outcome=outcome_of(optimal, optimal.optimum - 0.1 * abs(optimal.optimum), -1e9))
    for problem, code in ((optimal, 0), (tampered, 1)):
        model.write_bytes(Model(problem.header, problem.tensors).to_bytes())
        done = subprocess.run(
            [sys.executable, certificate.__file__, str(model), str(data)], capture_output=True, text=True, check=False, encoding="utf-8"
        )
        assert done.returncode == code, done.stderr
        assert ("every claim holds" in done.stdout) == (code == 0)


# Random fits by the program

FITS = 500


@dataclass
class Fit:
    """One call of the program, and the data as its solver sees them."""

    number: int
    arguments: list[str]
    header: list[str]
    lines: list[list[object]]
    grams: dict[str, np.ndarray]
    problem: Callable[[list[np.ndarray], list[np.ndarray]], tuple[list[Samples], list[Task]]]
    """Sample sets and tasks of these rows of the table for each set, and of the weights of each row."""
    groups: list[np.ndarray]
    """The rows of the table in each sample set."""
    keys: list[tuple[object, ...]]
    """What makes rows of the table one sample: equal numbers and equal targets."""
    weights: np.ndarray
    tolerance: float
    may_stall: bool
    interrupt: float | None = None
    """Seconds from the first pass to SIGINT."""
    similarity: list[list[object]] | None = None
    """A table of similarities of tasks, for `similarity.csv`."""


@dataclass
class Result:
    fit: Fit
    command: str
    code: int
    errors: str
    status: str = "none"
    is_decided: bool = True
    """Whether rounding leaves something to check: less than the tolerance."""
    problems: list[str] = field(default_factory=list)
    claims: set[str] = field(default_factory=set)


def some_kernels(rng, scale, width, grams):
    """One to six specifications, and whether one of them needs values ≥ 0."""
    gamma = 10 ** rng.uniform(-1.5, 1) / (scale**2 * width)
    one, other = sorted(rng.integers(0, width, size=2))
    specs = [
        "linear",
        f"linear@f{one}",
        f"linear@f{one}..f{other}",
        f"poly:degree=2,coef0=1,gamma={10 ** rng.uniform(-2, 0)!r}",
        f"poly:degree=3,coef0={rng.choice([0.0, 1.0])}",
        f"rbf:gamma={gamma!r}",
        f"rbf:gamma={10 * gamma!r}@f{one}..f{other}",
        f"rbf:sigma={scale * 10 ** rng.uniform(-1, 1)!r}",
        f"laplacian:gamma={0.3 / (scale * width)!r}",
        f"matern32:length={scale * 2.0!r}",
        f"matern52:length={scale * 0.5!r}",
        "cosine",
        "chi2:gamma=0.5",
        "intersection",
        *(f"precomputed:path={name}.npy" for name in grams),
    ]
    chosen = [str(spec) for spec in rng.choice(specs, size=rng.integers(1, 7))]
    # A kernel may stand there twice, a file may not.
    chosen = [spec for at, spec in enumerate(chosen) if not (spec.startswith("precomputed") and spec in chosen[:at])]
    return chosen, any(spec.startswith(("chi2", "intersection")) for spec in chosen)


def some_sharing(rng, machine, tasks, kernels):
    """The flags of a sharing that goes with the machine."""
    p, q = (str(rng.choice([1.0, 1.1, 1.33, 1.5, 2.0, 3.0])) for _ in range(2))
    radius = f"{10 ** rng.uniform(-1, 1):.3g}"
    weights = rng.uniform(0.1, 2, size=kernels).round(3)
    near = f"{0.9 * np.linalg.norm(weights) * rng.uniform(0.1, 1):.3g}"
    listed = ",".join(map(str, weights))
    with_zero = [
        ["common", "--p", p, "--radius", radius],
        ["independent", "--p", p, "--radius", radius],
        ["group", "--p", p, "--q", q, "--radius", radius],
        ["pscs", "--p", p, "--q", q, "--radius", radius],
        ["prior-ball", "--weights", listed, "--radius", radius],
        ["prior-ball", "--radius", radius],
        ["sum", "--term", f"common:lp-ball,p={p},radius={radius}", "--term", f"independent:lp-ball,p={q}", "--term", "group,p=2,q=1"],
    ]
    if tasks == 1:
        with_zero.append(["lp", "--p", p, "--radius", radius])
    without_zero = [
        ["tang", "--beta", f"{rng.uniform(0, 1.5 * tasks):.3g}"],
        ["simplex"],
        ["box-simplex", "--upper", repr(float(min(1.0, rng.uniform(1, 2.5) / kernels) + 1e-9))],
        ["prior-ball", "--weights", listed, "--radius", near],
        ["fixed", "--weights", listed],
        ["uniform"],
        ["sum", "--term", "common:simplex,total=0.5", "--term", f"independent:lp-ball,p={p},radius=0.5"],
        ["sum", "--term", f"independent:prior-ball,prior={listed.replace(',', '|')},radius={near}", "--term", f"group,p={p},q={q}"],
    ]
    choices = without_zero + ([] if machine == "svdd" else with_zero)
    return ["--sharing", *choices[rng.integers(len(choices))]]


def random_fit(number):
    """A problem, the flags that state it for the program, and how it is stopped."""
    rng = np.random.default_rng([20261115, number])
    machine = str(rng.choice(["svc", "svc", "svr", "krr", "svdd", "ocsvm"]))
    layout = "tasks" if rng.uniform() < 0.6 else "one"
    if machine == "svc" and rng.uniform() < 0.25:
        layout = str(rng.choice(["ova", "ovo"]))
    counts = rng.integers(6, 81, size=rng.integers(1, 5) if layout == "tasks" else 1)
    counts = np.maximum(counts // len(counts), 6)
    total = int(counts.sum())
    width = int(rng.choice([1, 2, 3, 5, 10]))
    scale = 10.0 ** float(rng.choice([0, 0, 0, 1, 2, 4]))
    shape = rng.normal(size=(total, width))
    if rng.uniform() < 0.3:
        # Duplicates of one row and of several, and rows without anything in them.
        shape[rng.integers(0, total, size=total // 3)] = shape[rng.integers(0, total)]
        shape[rng.integers(0, total, size=total // 4)] = shape[rng.integers(0, total, size=total // 4)]
        shape[rng.integers(0, total)] = 0
    names = np.repeat([f"t{task}" for task in range(len(counts))], counts)
    order = rng.permutation(total)
    names = names[order]

    factor = rng.normal(size=(total, 3))
    grams = {"K0": factor @ factor.T, "K1": np.eye(total)} if rng.uniform() < 0.2 else {}
    specs, non_negative = some_kernels(rng, scale, width, grams)
    if non_negative:
        shape = abs(shape)
    x = shape * scale
    signal_of = shape[:, 0] - shape[:, -1] * shape[:, 0] + rng.choice([0.0, 0.3, 3.0]) * rng.normal(size=total)
    normalise = bool(rng.uniform() < 0.6)
    # Of a generator of its own: the others draw what they drew before there was this choice.
    more = np.random.default_rng([16, number])
    is_variance = not normalise and more.uniform() < 0.5
    word = "variance" if is_variance else str(normalise).lower()
    units = str(more.choice(["standard", "none"]))
    tolerance = float(rng.choice([1e-2, 1e-3, 1e-4, 1e-4, 1e-6]))
    arguments = ["--machine", machine, "--normalize", word, "--target-scale", units, "--scale", "none"]
    arguments += ["--tol", repr(tolerance), "--threads", "1"]
    for spec in specs:
        arguments += ["--kernel", spec]

    # What is learned: labels ±1, values or nothing, for each row.
    classes, price = None, 10 ** rng.uniform(-3, 5)
    weights = rng.uniform(0.3, 3, size=total).round(3) if rng.uniform() < 0.2 else None
    # Of a generator of its own again.
    if machine == "svc" and np.random.default_rng([17, number]).uniform() < 0.3:
        arguments[1] = "logistic"
    if machine == "svc":
        if layout in ("ova", "ovo"):
            classes = np.array(["a", "b", "c"])[np.clip(np.digitize(signal_of, [-0.7, 0.7]), 0, 2)]
            classes[:3] = ["a", "b", "c"]
        else:
            classes = np.where(signal_of > 0, "yes", "no")
            for name in np.unique(names):
                first, second = np.flatnonzero(names == name)[:2]
                classes[first], classes[second] = "yes", "no"
        arguments += ["--C", repr(price)]
        if rng.uniform() < 0.2:
            arguments += ["--positive-weight", "2.5", "--negative-weight", "0.3"]
        if layout in ("ova", "ovo"):
            arguments += ["--multiclass", layout]
        targets = classes
    elif machine in ("svr", "krr"):
        targets = signal_of * 10 ** rng.uniform(-2, 3)
        width_of_tube = float(rng.choice([0.0, 0.01, 0.1, 1.0]) * (1.0 if units == "standard" else targets.std()))
        arguments += ["--C", repr(price), "--epsilon", repr(width_of_tube)] if machine == "svr" else []
        arguments += ["--lambda", repr(10 ** rng.uniform(-4, 3))] if machine == "krr" else []
        if machine == "svr" and weights is not None:
            weights[:2] = 0
    else:
        targets = None
        masses = [float((np.ones(total) if weights is None else weights)[names == name].sum()) for name in np.unique(names)]
        least = 1.05 / min(masses)
        arguments += ["--C", repr(float(least * 10 ** rng.uniform(0, 1.5)))] if machine == "svdd" else ["--nu", repr(rng.uniform(0.05, 1))]

    computed = any(not spec.startswith("precomputed") for spec in specs)
    used = {name: grams[name] for name in grams if f"precomputed:path={name}.npy" in specs}
    groups = [np.flatnonzero(names == name) for name in np.unique(names)] if layout == "tasks" else [np.arange(total)]
    # Of a generator of its own once more: one machine for all tasks, with kernels between them. Matrices alone have no offsets.
    transfer = np.random.default_rng([18, number])
    words = [["all", "own"], ["all", "group", "own"], ["similarity", "all"], ["own"]][transfer.integers(4)]
    is_transfer = layout == "tasks" and computed and transfer.uniform() < 0.35
    # Equal rows are one sample, but not where kernels are given as matrices.
    told = range(total) if used else map(bytes, x + 0.0)
    keys = list(zip(told, [None] * total if targets is None else targets.tolist(), strict=True))
    if is_transfer:
        # Those of different tasks are not one.
        groups, keys = [np.arange(total)], [(*key, name) for key, name in zip(keys, names, strict=True)]

    def problem(chosen, weights_of):
        sets, tasks = [], []
        for rows, weight in zip(chosen, weights_of, strict=True):
            given = {name: gram[np.ix_(rows, rows)] for name, gram in used.items()}
            sets.append(Samples(x[rows] if computed else None, given, names[rows].tolist() if is_transfer else None))
            if layout == "ova":
                tasks += [Task(np.where(classes[rows] == name, 1.0, -1.0), None, weight) for name in "abc"]
            elif layout == "ovo":
                for first, second in ("ab", "ac", "bc"):
                    own = np.flatnonzero((classes[rows] == first) | (classes[rows] == second))
                    tasks.append(Task(np.where(classes[rows][own] == second, 1.0, -1.0), own, weight[own]))
            elif machine == "svc":
                tasks.append(Task(np.where(classes[rows] == "yes", 1.0, -1.0), None, weight))
            else:
                tasks.append(Task(None if targets is None else targets[rows], None, weight))
        return sets, tasks

    header = [f"f{column}" for column in range(width)]
    columns = [x[:, column] for column in range(width)]
    for flag, name, values in (
        ("--task", "site", names if layout == "tasks" else None),
        ("--target", "y", targets),
        ("--sample-weight", "w", weights),
    ):
        if values is not None:
            arguments += [flag, name]
            header.append(name)
            columns.append(values)
    lines = [list(line) for line in zip(*(column.tolist() for column in columns), strict=True)]
    sharing = some_sharing(rng, machine, 3 if layout in ("ova", "ovo") else len(np.unique(names)), len(specs))
    similarity = None
    if is_transfer:
        sharing = some_sharing(transfer, machine, 1, len(specs) * len(words) + 1)
        sharing += ["--transfer", ",".join(words)]
        if "group" in words:
            sharing += ["--tree-columns", "region"]
            header.append("region")
            lines = [[*line, f"r{int(name[1:]) // 2}"] for line, name in zip(lines, names.tolist(), strict=True)]
        if "similarity" in words:
            factor = transfer.normal(size=(len(counts), 2))
            tasks = [f"t{task}" for task in range(len(counts))]
            rows = zip(tasks, (factor @ factor.T).tolist(), strict=True)
            similarity = [["task", *tasks], *([task, *values] for task, values in rows)]
            sharing += ["--task-similarity", "similarity.csv"]
    elif layout == "tasks" and machine != "svdd" and more.uniform() < 0.2:
        # Tasks in groups of two, the last column of the table; sometimes without all tasks together or each by itself.
        exponents = more.choice([1.0, 1.1, 1.5, 2.0, 3.0], size=2)
        sharing = ["--sharing", "hierarchy", "--tree-columns", "region", "--p", str(exponents[0]), "--q", str(exponents[1])]
        sharing += [["--root", "false"], ["--leaves", "false"], ["--radii", "0.5,2,1"], []][more.integers(4)]
        header.append("region")
        lines = [[*line, f"r{int(name[1:]) // 2}"] for line, name in zip(lines, names.tolist(), strict=True)]
    arguments += sharing

    # So many are asked to stop early that a third does: the others are done before.
    interrupt = None
    passes = []
    if rng.uniform() < 0.1:
        passes = ["--solver", "epf", "--max-passes", "50"]
    stop = rng.choice([0, 0, 1, 1, 1, 2, 3, 3, 3, 3])
    if stop == 0:
        arguments += ["--time-limit", repr(10 ** rng.uniform(-7, np.log10(0.005)))]
    elif stop == 1:
        passes = [*passes[:2], "--max-passes", str(rng.choice([1, 1, 1, 2, 3]))]
    elif stop == 2:
        interrupt = float(max(0.0, rng.uniform(-0.002, 0.004)))
        # Algorithm 1 takes long enough for the signal to arrive.
        passes = ["--solver", "epf", "--max-passes", "100000"] if rng.uniform() < 0.6 else passes
    large = not (normalise or is_variance) and (scale >= 100 or (any(spec.startswith("poly") for spec in specs) and scale >= 10))
    may_stall = large or (machine in ("svc", "svr") and price >= 1e4)
    every = np.ones(total) if weights is None else weights
    return Fit(number, arguments + passes, header, lines, used, problem, groups, keys, every, tolerance, may_stall, interrupt, similarity)


def as_fitted(fit, kept):
    """The problem on the rows that the model says it kept: each stands for the rows equal to it, and none is lost."""
    weights = []
    for rows, own in zip(kept, fit.groups, strict=True):
        sums: dict[object, float] = {}
        for row in own:
            if fit.weights[row] != 0:
                sums[fit.keys[row]] = sums.get(fit.keys[row], 0.0) + fit.weights[row]
        assert sorted(sums, key=repr) == sorted((fit.keys[row] for row in rows), key=repr), (
            f"fit {fit.number}: rows are lost, or there twice"
        )
        weights.append(np.array([sums[fit.keys[row]] for row in rows]))
    return fit.problem([np.array(rows, dtype=int) for rows in kept], weights)


def run_fit(program, fit, folder):
    """Runs the program in a folder of its own and checks what it wrote."""
    folder.mkdir(parents=True)
    for name, lines in (("data.csv", [fit.header, *fit.lines]), ("similarity.csv", fit.similarity or [])):
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerows([repr(value) if isinstance(value, float) else value for value in line] for line in lines)
    for name, gram in fit.grams.items():
        np.save(folder / f"{name}.npy", gram)
    command = [str(program), "fit", "data.csv", *fit.arguments, "--verbose", "--output", "model.mtmkl"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, encoding="utf-8")
    seen = ""
    if fit.interrupt is not None:
        # Before its first pass the program may not listen yet.
        for line in process.stderr:
            seen += line
            if line.startswith("pass"):
                break
        time.sleep(fit.interrupt)
        process.send_signal(signal.SIGINT)
    _, rest = process.communicate()
    interrupted = "" if fit.interrupt is None else f"  # SIGINT {fit.interrupt:.4f} s after the first pass"
    result = Result(fit, shlex.join(command) + interrupted, process.returncode, seen + rest)
    if process.returncode not in (0, 1):
        result.problems.append(f"exit code {process.returncode}: {result.errors[-500:]}")
        result.claims.add("exit code")
        return result
    content = (folder / "model.mtmkl").read_bytes()
    sets, tasks = as_fitted(fit, json.loads(Model.of_bytes(content).header["notes"]["training-rows"]))
    # So that what fails can be looked at: python certificate.py model.mtmkl data.npz
    np.savez(folder / "data.npz", **arrays_of(sets, tasks))
    verdict = certificate.check(content, sets, tasks, tolerance=fit.tolerance)
    result.status = verdict.status
    result.is_decided = verdict.slack <= fit.tolerance * abs(verdict.objective)
    result.problems += [str(violation) for violation in verdict.violations]
    result.claims |= verdict.claims
    if other := differences(Model.of_bytes(content).header, fit.arguments):
        result.problems += other
        result.claims.add("problem")
    if (verdict.status == "converged") != (process.returncode == 0):
        result.problems.append(f"exit code {process.returncode} with status {verdict.status}")
        result.claims.add("exit code")
    if verdict.status == "stalled" and not fit.may_stall:
        result.problems.append(f"stalled at a gap of {verdict.gap:.3g}, tolerance {fit.tolerance}")
        result.claims.add("stalled")
    return result


def differences(header, arguments):
    """What the file states otherwise than it was asked: a certificate of another problem is none."""
    # Every flag has a value.
    pairs = list(zip(arguments[::2], arguments[1::2], strict=True))
    flags, kernels = dict(pairs), sum(flag == "--kernel" for flag, _ in pairs)
    if "--transfer" in flags:
        # Each with each word, and an offset for each task.
        kernels = kernels * len(flags["--transfer"].split(",")) + 1
    found = []
    if (header["normalize"], len(header["kernels"])) != ({"true": True, "false": False}.get(flags["--normalize"], "variance"), kernels):
        found.append("normalisation or kernels")
    if (header["machine"]["name"], header["sharing"]["name"]) != (flags["--machine"], flags["--sharing"]):
        found.append("machine or sharing")
    for name, value in [*header["machine"].items(), *header["sharing"].items()]:
        flag = "--" + name.replace("_", "-")
        if isinstance(value, float) and value != float(flags.get(flag, 1.0)):
            found.append(f"{name} = {value}")
    return [f"the file states another problem: {', '.join(found)}"] if found else []


def random_fits(program, folder, numbers):
    """The results of these fits, two at a time."""

    def one(number):
        return run_fit(program, random_fit(number), folder / f"{number:03}")

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, numbers))


def test_whatever_a_fit_claims_holds(program, tmp_path):
    results = random_fits(Path(program).resolve(), tmp_path, range(FITS))
    statuses = collections.Counter(result.status for result in results)
    undecided = sum(not result.is_decided for result in results)
    print(f"{dict(statuses)}, {undecided} with an objective that is nothing but rounding")
    # About a fifth has kernels between tasks.
    assert sum("--transfer" in result.fit.arguments for result in results) >= FITS / 10
    failed = [result for result in results if result.problems]
    text = "\n".join(f"{tmp_path / f'{result.fit.number:03}'}: {result.command}\n  " + "\n  ".join(result.problems) for result in failed)
    assert not failed, f"{len(failed)} of {FITS} fits, {dict(statuses)}\n{text}"
    assert statuses["stalled"] <= 0.05 * FITS
    assert undecided <= 0.05 * FITS
    # The fits are those that were meant: many converge, and each way of stopping early is among them.
    assert statuses["converged"] >= FITS / 2
    early = [statuses[status] for status in ("pass-limit", "time-limit", "stopped")]
    assert min(early) >= 1
    assert sum(early) >= FITS / 4
