"""The objective equals the optimum of the same problem stated anew in cvxpy.

With K_m normalised, s_m(β) = κ(½ β'K_mβ − c d_m'β) and σ the support function of the sharing,

    J* = max over β of  κ q'β − κ/2 Σ ρ_i β_i² − σ(s(β)),

since the optimum over θ in Ψ of ⟨s, θ⟩ is σ(s). Nothing of the core is used here: Grams come from NumPy, σ is written from norms.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from mtmkl import (
    MKLSVDD,
    BoxSimplex,
    Common,
    Group,
    Independent,
    MKLClassifier,
    MKLOneClassSVM,
    MKLRegressor,
    Simplex,
    Tang,
)

SPECS = ["linear", "poly:degree=2,coef0=1", "rbf:gamma=0.3", "rbf:gamma=3"]


def grams(X):
    products = X @ X.T
    distances = np.maximum(np.diag(products)[:, None] + np.diag(products)[None] - 2 * products, 0)
    made = [products, (products + 1) ** 2, np.exp(-0.3 * distances), np.exp(-3 * distances)]
    scale = [1 / np.sqrt(np.diag(K)) for K in made]
    return [K * s[:, None] * s[None] for K, s in zip(made, scale, strict=True)]


def dual(p):
    return np.inf if p == 1 else p / (p - 1)


def norm(x, p):
    """‖x‖_p for x ≥ 0 entry by entry."""
    return cp.norm_inf(x) if p == np.inf else cp.norm1(x) if p == 1 else cp.pnorm(x, p)


def lp(s, p, radius=1.0):
    return radius * norm(cp.pos(s), dual(p))


def common(sigma):
    return lambda s: sigma(sum(s))


def independent(sigma):
    return lambda s: sum(sigma(part) for part in s)


def group(p, q, radius=1.0):
    return lambda s: radius * norm(cp.hstack([norm(cp.pos(part), dual(p)) for part in s]), dual(q))


def pscs(p, q):
    return lambda s: common(lambda x: lp(x, p))(s) + group(p, q)(s)


def tang(beta):
    def sigma(s):
        own = min(1.0, beta / len(s))
        return (1 - own) * cp.max(sum(s)) + own * sum(cp.max(part) for part in s)

    return sigma


def box_simplex(upper, count):
    """max ⟨s, θ⟩, Σθ = 1, 0 ≤ θ ≤ upper, by its dual: min over t of t + upper Σ(s − t)₊. Here as a sum of the largest."""
    whole = int(1 / upper)
    rest = 1 - whole * upper

    def sigma(s):
        largest = upper * cp.sum_largest(s, whole)
        if rest > 1e-12:
            # (1 − f)·sum of k largest + f·sum of k+1 largest, in units of `upper`.
            share = rest / upper
            largest = upper * ((1 - share) * cp.sum_largest(s, whole) + share * cp.sum_largest(s, whole + 1))
        return largest

    assert whole + 1 <= count
    return sigma


def optimum(machine, tasks, sigma):
    """J* of a machine (name, parameters) on tasks [(X, y)]."""
    name, parameter = machine
    value, constraints, s = 0, [], []
    for X, y in tasks:
        n = len(X)
        beta = cp.Variable(n)
        scale, c = {"svc": (1, 0), "svr": (1, 0), "krr": (2, 0), "svdd": (2, 0.5), "ocsvm": (2, 0)}[name]
        if name == "svc":
            constraints += [cp.multiply(y, beta) >= 0, cp.multiply(y, beta) <= parameter["C"], cp.sum(beta) == 0]
            value += y @ beta
        elif name == "svr":
            constraints += [cp.abs(beta) <= parameter["C"], cp.sum(beta) == 0]
            value += y @ beta - parameter["epsilon"] * cp.norm1(beta)
        elif name == "krr":
            value += scale * y @ beta - scale / 2 * parameter["alpha"] * cp.sum_squares(beta)
        else:
            constraints += [beta >= 0, beta <= 1 / (parameter["nu"] * n), cp.sum(beta) == 1]
        parts = []
        for K in grams(X):
            values, vectors = np.linalg.eigh(K)
            factor = vectors * np.sqrt(np.maximum(values, 0))
            parts.append(scale * (0.5 * cp.sum_squares(factor.T @ beta) - c * np.diag(K) @ beta))
        s.append(cp.hstack(parts))
    problem = cp.Problem(cp.Maximize(value - sigma(s)), constraints)
    # As exactly as it can: where it does not reach a tolerance, its answer is worse than that of a wider one.
    for tolerance in (1e-10, 1e-9, 1e-8, 1e-7):
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=tolerance, tol_gap_rel=tolerance, tol_feas=tolerance)
        if problem.status == "optimal":
            break
    assert problem.status == "optimal"
    return problem.value


SVC, KRR = ("svc", {"C": 2.0}), ("krr", {"alpha": 0.5})
SVR = ("svr", {"C": 1.5, "epsilon": 0.1})
OCSVM, SVDD = ("ocsvm", {"nu": 0.3}), ("svdd", {"nu": 0.3})
PROBLEMS = [
    ("svc, L1", SVC, 1, MKLClassifier(C=2, sharing="lp", p=1), common(lambda s: lp(s, 1))),
    ("svc, common L2", SVC, 3, MKLClassifier(C=2, sharing="common"), common(lambda s: lp(s, 2))),
    ("svc, pscs", SVC, 3, MKLClassifier(C=2, sharing="pscs", p=1.5, q=1), pscs(1.5, 1)),
    (
        "svc, composed",
        SVC,
        2,
        MKLClassifier(C=2, sharing=Common(Simplex(0.5)) + Independent(p=2, radius=0.7)),
        lambda s: common(lambda x: 0.5 * cp.max(x))(s) + independent(lambda x: lp(x, 2, 0.7))(s),
    ),
    ("krr, group", KRR, 3, MKLRegressor(alpha=0.5, sharing="group", p=2, q=2), group(2, 2)),
    ("krr, independent L1", KRR, 2, MKLRegressor(alpha=0.5, sharing="independent", p=1), independent(lambda s: lp(s, 1))),
    (
        "krr, pscs by its terms",
        KRR,
        3,
        MKLRegressor(alpha=0.5, sharing=Common(p=2) + Group(p=2, q=1)),
        pscs(2, 1),
    ),
    ("svr, tang", SVR, 2, MKLRegressor(machine="svr", C=1.5, sharing=Tang(0.8)), tang(0.8)),
    ("svr, box-simplex", SVR, 1, MKLRegressor(machine="svr", C=1.5, sharing=BoxSimplex(0.4)), common(box_simplex(0.4, 4))),
    ("ocsvm, common L2", OCSVM, 2, MKLOneClassSVM(nu=0.3, sharing="common"), common(lambda s: lp(s, 2))),
    ("svdd, simplex", SVDD, 1, MKLSVDD(nu=0.3, sharing="simplex"), common(cp.max)),
    ("svdd, tang", SVDD, 3, MKLSVDD(nu=0.3, sharing=Tang(1.2)), tang(1.2)),
]


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("machine, count, estimator, sigma", [case[1:] for case in PROBLEMS], ids=[case[0] for case in PROBLEMS])
def test_the_objective_is_the_optimum_of_cvxpy(rng, machine, count, estimator, sigma):
    tasks = []
    for task in range(count):
        X = rng.normal(size=(14 + 3 * task, 3))
        signal = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.3 * rng.normal(size=len(X))
        tasks.append((X, np.where(signal > 0, 1.0, -1.0) if machine[0] == "svc" else signal))
    rows = np.vstack([X for X, _ in tasks])
    names = np.repeat(np.arange(count), [len(X) for X, _ in tasks])
    targets = None if estimator._kind == "none" else np.concatenate([y for _, y in tasks])
    estimator.set_params(kernels=SPECS, tol=1e-8, scale="none", normalize="unit")
    if estimator._kind == "values":
        estimator.set_params(target_scale="none")
    estimator.fit(rows, targets, task=None if count == 1 else names)
    expected = optimum(machine, tasks, sigma)
    assert estimator.objective_ == pytest.approx(expected, rel=1e-6)
    assert estimator.bound_ <= expected * (1 + 1e-7 * np.sign(expected)) + 1e-12
