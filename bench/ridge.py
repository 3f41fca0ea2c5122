"""Kernel ridge regression, Gram matrices given: five kernels beside one system of scikit-learn's."""

from __future__ import annotations

import numpy as np
from sklearn.kernel_ridge import KernelRidge

from common import Bench, Table, digits, in_seconds, in_turn, median, met, ratio, squared_distances, unit_diagonal, warm_seconds

TITLE = "Kernel ridge regression, Gram matrices given"

TEXT = """Five kernels (linear, Gaussians of 1/2, 1, 2 and 4 times the median distance), L2, λ = 1, certified to 1e-4, two threads, over
one fit of scikit-learn's `KernelRidge(alpha=1, kernel="precomputed")` on the sum with the optimal weights, on the same two threads. Ten
normal columns and a smooth rule with noise. Both are timed warm, the fastest of three fits in a process, in turn. The target is 2."""

LAMBDA = 1.0


def problem(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Five matrices and standardised values."""
    rng = np.random.default_rng(count)
    X = rng.normal(size=(count, 10))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * X[:, 3] + 0.3 * rng.normal(size=count)
    squares = squared_distances(X)
    middle = np.median(squares)
    grams = [unit_diagonal(X @ X.T)] + [np.exp(-squares / (2 * width**2 * middle)) for width in (0.5, 1, 2, 4)]
    return np.stack(grams), (y - y.mean()) / y.std()


def run(bench: Bench) -> list[str]:
    table = Table("n", "ours", "one KernelRidge", "ratio", "target", "met", "gap", "passes")
    for count in bench.sizes([1000, 3000], [200]):
        grams, values = problem(count)
        files = {"grams": bench.keep("grams", grams), "labels": bench.keep("values", values)}
        answers = []

        def ours(files: dict = files, count: int = count, answers: list = answers) -> float:
            job = {"sharing": {"name": "lp", "p": 2.0}, "ridge": LAMBDA, "tolerance": 1e-4, "threads": 2, "repeats": 3}
            answers.append(bench.solve(**files, samples=count, **job))
            return answers[-1]["time"]

        ours()
        combined = np.tensordot(np.array(answers[0]["theta"][0]), grams, 1)

        def theirs(combined: np.ndarray = combined, values: np.ndarray = values) -> float:
            return warm_seconds(lambda: KernelRidge(alpha=LAMBDA, kernel="precomputed").fit(combined, values))

        times = in_turn(bench.repeats, ours, theirs)
        middle, text = ratio(*times)
        bench.record(n=count, ours=times[0], theirs=times[1], gap=answers[-1]["gap"], passes=answers[-1]["passes"])
        gap, passes = f"{answers[-1]['gap']:.1e}", answers[-1]["passes"]
        table.row(
            f"{count:,}", in_seconds(median(times[0])), in_seconds(median(times[1])), text, digits(2.0), met(middle <= 2), gap, passes
        )
    return [TEXT, "", *table.lines]
