"""Kernel ridge regression on many samples, kernel values streamed from rows, beside KernelRidge at the most rows that it can do."""

from __future__ import annotations

import numpy as np
from sklearn.kernel_ridge import KernelRidge

from common import Bench, Table, in_seconds, seconds

TITLE = "Kernel ridge regression, many samples"

TEXT = """Twenty normal columns and a smooth rule with noise; linear and Gaussians of 1/2, 1, 2 and 4 times the median distance, L2, λ = 1,
certified to 1e-3, two threads, at most 4 GiB, kernel values streamed (nothing of size n² is kept), from rows in memory to the model.
scikit-learn's `KernelRidge` has one Gaussian (gamma = 1/20), keeps an n × n matrix and its copy, and is run as far as memory goes."""

KERNELS = ["linear", "rbf:sigma=median*0.5|1|2|4"]
LAMBDA = 1.0
COLUMNS = 20


def problem(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(count)
    X = rng.normal(size=(count, COLUMNS))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * X[:, 3] + 0.3 * rng.normal(size=count)
    return X, (y - y.mean()) / y.std()


def run(bench: Bench) -> list[str]:
    table = Table("n", "ours", "gap", "passes", "steps", "peak (GiB)", "one KernelRidge")
    theirs_up_to = 20_000
    for count in bench.sizes([5000, 10_000, 20_000, 50_000], [500]):
        rows, values = problem(count)
        files = {"rows": bench.keep("rows", rows), "labels": bench.keep("values", values)}
        job = {"kernels": KERNELS, "sharing": {"name": "lp", "p": 2.0}, "ridge": LAMBDA, "tolerance": 1e-3, "threads": 2, "repeats": 1}
        answer = bench.solve(**files, samples=count, memory_limit=4 << 30, storage="streamed", whole=True, **job)
        theirs = None
        if count <= theirs_up_to:
            machine = KernelRidge(alpha=LAMBDA, kernel="rbf", gamma=1 / COLUMNS)
            theirs = seconds(lambda machine=machine, rows=rows, values=values: machine.fit(rows, values))
        bench.record(n=count, ours=answer["whole"][0], theirs=theirs, gap=answer["gap"], peak=answer["peak"], steps=answer["steps"])
        table.row(
            f"{count:,}",
            in_seconds(answer["whole"][0]),
            f"{answer['gap']:.1e}",
            answer["passes"],
            answer["steps"],
            f"{answer['peak'] / 2**30:.1f}",
            "" if theirs is None else in_seconds(theirs),
        )
    return [TEXT, "", *table.lines]
