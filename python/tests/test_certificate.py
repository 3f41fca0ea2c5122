"""The certificate of a fit, checked by `certificate.py` from the model file and the data alone.

First the checker itself: at an optimum that cvxpy finds, P and D meet, and a change of any number in a file is noticed. Then 500 random
fits by the program, a third of them stopped early: whatever they claim must hold.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

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


def repaired_beta(beta, lower, upper, total):
    """The same for β and Ω."""
    beta = np.clip(beta, lower, upper)
    if total is not None:
        for _ in range(3):
            left = total - beta.sum()
            room = upper - beta if left > 0 else beta - lower
            beta = np.clip(beta + left * room / room.sum(), lower, upper)
    return beta


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

    def verdict(self, **options):
        return certificate.check(Model(self.header, self.tensors).to_bytes(), self.sets, self.tasks, **options)


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
        y = np.where(signal_of > 0, 1.0, -1.0) if machine_name == "svc" else signal_of
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
        if machine_name == "svc":
            price = machine["C"] * np.where(y > 0, machine["positive_weight"], machine["negative_weight"])
            value += norms / 2 + price @ cp.pos(1 - cp.multiply(y, image + offset))
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
        beta = multiplier.dual_value / (1 if machine_name in ("svc", "svr") else 2)
        bounds = certificate.Machine(machine_name, machine, np.zeros(n) if task.targets is None else task.targets, np.ones(n)).bounds()
        candidates = [repaired_beta(sign * beta, *bounds) for sign in (1, -1)]
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
    for precise in (False, True):
        verdict = problem.verdict(precise=precise)
        assert verdict.primal == pytest.approx(problem.optimum, rel=3e-5)
        assert verdict.dual == pytest.approx(problem.optimum, rel=3e-5)
        assert verdict.violations == []


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
        assert moved.claims >= {"objective"}
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
                found, rounding = certificate.kernel_matrix(spec, normalise, Samples(x, {"K": given}), names, dtype)
                assert found.dtype == dtype
                np.testing.assert_allclose(found.astype(float), expected, rtol=1e-14, atol=1e-15, err_msg=spec)
                assert (rounding >= 0).all()
                assert rounding.max() <= 1e-13 * max(1.0, abs(expected).max())


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


def test_it_runs_from_the_command_line(tmp_path, optimal):
    model, data = tmp_path / "model.mtmkl", tmp_path / "data.npz"
    arrays = {f"set.{number}": samples.rows for number, samples in enumerate(optimal.sets)}
    arrays |= {f"task.{number}.targets": task.targets for number, task in enumerate(optimal.tasks) if task.targets is not None}
    np.savez(data, **arrays)
    tampered = changed(optimal, outcome=outcome_of(optimal, optimal.optimum - 0.1 * abs(optimal.optimum), -1e9))
    for problem, code in ((optimal, 0), (tampered, 1)):
        model.write_bytes(Model(problem.header, problem.tensors).to_bytes())
        done = subprocess.run(
            [sys.executable, certificate.__file__, str(model), str(data)], capture_output=True, text=True, check=False, encoding="utf-8"
        )
        assert done.returncode == code, done.stderr
        assert ("every claim holds" in done.stdout) == (code == 0)
