"""Peers on the problems of the library that they can state: `cargo xtask library --peers` exports these and calls this.

    python bench/library_peers.py FOLDER

Prints the part of docs/library.md about them. What a peer found is judged by the primal objective of its own coefficients, with the
best offset for them, against the stored bounds: nothing of ours is asked.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import sklearn
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, SVR, OneClassSVM
from threadpoolctl import threadpool_limits

# The relative gap that the library asks for.
TOLERANCE = 1e-6
# What they are asked for: what they do unless told otherwise, and as much as they can be.
ASKED = {"as it is": None, "tol=1e-10": 1e-10}
# Fits of which the fastest counts.
REPEATS = 3

HEAD = """scikit-learn {sklearn} can state {stated} of the {all}: those whose weights are known beforehand (given, equal, or of
one kernel). It learns none. What it found is judged by the primal objective of its coefficients with the best offset for them, in
NumPy, against the stored bounds. *Solved*: within {tolerance:.0e} of the optimum. *Sure*: it ended without a warning, and that is
all that it says. Kernels are given; seconds are of the fits alone, one thread, the fastest of {repeats}, ours with kernels, limits
and certificate.
"""

TAIL = """
Of the others that pip installs, MKLpy's learners take weights by a rule or for another margin, so that none of these optima is
theirs, and himalaya's ridge with given weights is KernelRidge. Systems that could state more of them
([SHOGUN, SMO-MKL, SPG-GMKL](development/benchmarks.md)) have to be built by hand."""

# f = Kβ of a fit; ½‖w‖² or ‖w‖² follows from both.
Fitted = tuple[np.ndarray, np.ndarray]


def options(tol: float | None) -> dict[str, float]:
    return {} if tol is None else {"tol": tol}


def support(model: Any, n: int) -> np.ndarray:
    beta = np.zeros(n)
    beta[model.support_] = model.dual_coef_.ravel()
    return beta


def svc(K: np.ndarray, machine: dict[str, Any], tol: float | None) -> Fitted:
    model = SVC(kernel="precomputed", C=1.0, **options(tol)).fit(K, machine["y"], sample_weight=machine["C"])
    # The first of its classes is −1.
    beta = support(model, len(K))
    return beta, K @ beta


def svr(K: np.ndarray, machine: dict[str, Any], tol: float | None) -> Fitted:
    model = SVR(kernel="precomputed", C=1.0, epsilon=machine["epsilon"], **options(tol))
    beta = support(model.fit(K, machine["y"], sample_weight=machine["C"]), len(K))
    return beta, K @ beta


def one_class(K: np.ndarray, machine: dict[str, Any], tol: float | None) -> Fitted:
    model = OneClassSVM(kernel="precomputed", nu=machine["nu"], **options(tol)).fit(K)
    beta = support(model, len(K)) / (machine["nu"] * len(K))
    return beta, K @ beta


def ridge(K: np.ndarray, machine: dict[str, Any], tol: float | None) -> Fitted:
    beta = KernelRidge(kernel="precomputed", alpha=machine["lambda"]).fit(K, machine["y"]).dual_coef_
    return beta, K @ beta


def logistic(K: np.ndarray, machine: dict[str, Any], tol: float | None) -> Fitted:
    # K = LL': the linear machine on the rows of L is the machine of K.
    values, vectors = np.linalg.eigh(K)
    L = vectors * np.sqrt(np.maximum(values, 0.0))
    model = LogisticRegression(C=1.0, max_iter=10_000, **options(tol)).fit(L, machine["y"], sample_weight=machine["C"])
    w = model.coef_.ravel()
    return w, L @ w


PEERS: dict[str, tuple[str, Callable[[np.ndarray, dict[str, Any], float | None], Fitted]]] = {
    "svc": ("SVC", svc),
    "svr": ("SVR", svr),
    "ocsvm": ("OneClassSVM", one_class),
    "krr": ("KernelRidge", ridge),
    "logistic": ("LogisticRegression on a factor of K", logistic),
}


def least(corners: np.ndarray, value: Callable[[float], float]) -> float:
    """The least of a convex piecewise linear function: it is at a corner."""
    return min(value(float(corner)) for corner in corners)


def least_logistic(f: np.ndarray, y: np.ndarray, C: np.ndarray) -> float:
    """min over b of Σ C ln(1 + exp(−y (f + b))), by bisection of its slope."""
    low, high = -np.abs(f).max() - 800.0, np.abs(f).max() + 800.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        slope = -np.sum(y * C * np.exp(-np.logaddexp(0.0, y * (f + middle))))
        low, high = (middle, high) if slope < 0 else (low, middle)
    return float(np.sum(C * np.logaddexp(0.0, -y * (f + low))))


def primal(machine: dict[str, Any], beta: np.ndarray, f: np.ndarray) -> float:
    """The primal objective at w = Σ βφ, with the best offset for it: at least J."""
    name, y = machine["name"], np.asarray(machine.get("y", []))
    C = np.asarray(machine.get("C", []))
    if name == "logistic":
        return 0.5 * float(beta @ beta) + least_logistic(f, y, C)
    square = float(beta @ f)
    if name == "svc":
        return 0.5 * square + least(y - f, lambda b: float(C @ np.maximum(1.0 - y * (f + b), 0.0)))
    if name == "svr":
        wide = machine["epsilon"]
        corners = np.concatenate([y - f - wide, y - f + wide])
        return 0.5 * square + least(corners, lambda b: float(C @ np.maximum(np.abs(y - f - b) - wide, 0.0)))
    if name == "krr":
        return square + float(np.sum((y - f) ** 2)) / machine["lambda"]
    each = 2.0 / (machine["nu"] * len(f))
    return square + least(f, lambda rho: each * float(np.maximum(rho - f, 0.0).sum()) - 2.0 * rho)


def fitted(problem: dict[str, Any], folder: Path, tol: float | None) -> tuple[float, bool, float]:
    """The primal over all tasks, whether nobody warned, and the seconds that fitting took."""
    objective, seconds, is_sure = 0.0, 0.0, True
    for task in problem["tasks"]:
        machine = task["machine"]
        K = np.tensordot(problem["theta"], np.load(folder / task["kernels"]), 1)
        times = []
        for _ in range(REPEATS):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                started = perf_counter()
                beta, f = PEERS[machine["name"]][1](K, machine, tol)
                times.append(perf_counter() - started)
        is_sure = is_sure and not any(issubclass(warning.category, ConvergenceWarning) for warning in said)
        objective += primal(machine, beta, f)
        seconds += min(times)
    return objective, is_sure, seconds


def off(objective: float, problem: dict[str, Any]) -> float:
    """How far above the optimum, relative: at most, since J* is at least the stored lower bound."""
    return max(objective - problem["high"], 0.0) / abs(objective)


def main() -> None:
    folder = Path(sys.argv[1])
    stored = json.loads((folder / "problems.json").read_text())
    stated = [problem for problem in stored["stated"] if problem["tasks"][0]["machine"]["name"] in PEERS]
    print(HEAD.format(sklearn=sklearn.__version__, stated=len(stated), all=stored["all"], tolerance=TOLERANCE, repeats=REPEATS))
    print("| peer | asked for | stated | sure | of these solved | farthest off | seconds | ours, solved | ours, seconds |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, (title, _) in PEERS.items():
        own = [problem for problem in stated if problem["tasks"][0]["machine"]["name"] == name]
        ours = [problem["ours"] for problem in own]
        for asked, tol in ASKED.items():
            if name == "krr" and tol is not None:
                continue
            with threadpool_limits(1):
                found = [(problem, *fitted(problem, folder, tol)) for problem in own]
            sure = [(problem, objective) for problem, objective, is_sure, _ in found if is_sure]
            solved = sum(off(objective, problem) <= TOLERANCE for problem, objective in sure)
            farthest = max(off(objective, problem) for problem, objective, _, _ in found)
            seconds = sum(each[3] for each in found)
            print(
                f"| {title} | {asked} | {len(own)} | {len(sure)} | {solved} | {farthest:.0e} | {seconds:.4f} "
                f"| {sum(answer['solved'] for answer in ours)} | {sum(answer['seconds'] for answer in ours):.4f} |"
            )
    print(TAIL)


if __name__ == "__main__":
    main()
