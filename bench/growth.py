"""How time grows with samples, kernels and tasks: measured, with the exponents of power laws fitted to it and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import log_log
from common import TEN_KERNELS, Bench, Table, in_seconds, median, met

TITLE = "Growth"

TEXT = """Gram matrices and solve over the numbers of samples, kernels and tasks, two threads, certified to 1e-4. Twenty normal
columns; each task has a smooth rule of its own and one label in twenty wrong; C = 1; the weights common to all tasks
with p = 2 where not said otherwise. Kernels are the paper's ten, and for the growth in M that many Gaussians with
spreads from 1 to 128. Exponents are least squares in logarithms over all sizes shown; *median time* is at the largest."""

THREADS = 2
COMMON, PSCS = {"name": "common", "p": 2}, {"name": "pscs", "p": 2, "q": 1.5}


def problem(n: int, tasks: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and T × n labels. The first rows and tasks are the same whatever n and T."""
    X = np.random.RandomState(0).randn(n, 20)
    labels = []
    for task in range(tasks):
        random = np.random.RandomState(1000 + task)
        a, b, c = random.permutation(20)[:3]
        y = np.where(X @ (0.2 * random.randn(20)) + X[:, a] * X[:, b] + X[:, c] > 0, 1.0, -1.0)
        y[random.rand(n) < 0.05] *= -1
        labels.append(y)
    return X, np.stack(labels)


def gaussians(m: int) -> list[str]:
    return ["rbf:sigma=" + "|".join(f"{spread:.6g}" for spread in 2.0 ** np.linspace(0, 7, m))]


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def measure(bench: Bench, n: int, kernels: list[str], tasks: int, sharing: dict, repeats: int) -> dict[str, Any]:
    """Median seconds for Gram matrices and solve, and the last answer's gap and peak."""
    X, labels = problem(n, tasks)
    job = {"rows": bench.keep("rows", X), "labels": bench.keep("labels", labels), "samples": n, "kernels": kernels}
    job |= {"c": 1.0, "tolerance": 1e-4, "threads": THREADS, "repeats": 1, "sharing": sharing}
    answers = [bench.solve(**job) for _ in range(repeats)]
    found = {"grams": median(answer["kernels"][0] for answer in answers), "solve": median(answer["time"] for answer in answers)}
    found |= {key: answers[-1][key] for key in ("gap", "passes", "support", "peak")}
    bench.record(
        n=n, kernels=kernels, tasks=tasks, sharing=sharing, answers=[{k: v for k, v in a.items() if k != "theta"} for a in answers]
    )
    return found


def run(bench: Bench) -> list[str]:
    samples = bench.sizes([500, 1000, 2000, 4000, 8000], [200, 400])
    kernels = bench.sizes([5, 10, 20, 40, 80, 160], [5, 10])
    tasks = bench.sizes([1, 2, 4, 8, 16, 32], [1, 2])
    base = bench.sizes([1000], [200])[0]
    sweeps = [
        ("n", f"M = 10, T = 1, n from {samples[0]:,}", "samples n", samples, COMMON, lambda n: (n, TEN_KERNELS, 1), 2.1, 2.3),
        ("M", f"n = {base:,}, T = 1, M from {kernels[0]}", "kernels M", kernels, COMMON, lambda m: (base, gaussians(m), 1), 1.1, 1.1),
        ("T", f"n = {base:,}, M = 10, T from {tasks[0]}", "tasks T", tasks, COMMON, lambda t: (base, TEN_KERNELS, t), None, 1.1),
        ("T (PSCS)", f"n = {base:,}, M = 10, T from {tasks[0]}", "tasks T, PSCS", tasks, PSCS, lambda t: (base, TEN_KERNELS, t), None, 1.1),
    ]
    table = Table("over", "with", "to", "what", "median time", "exponent", "at most", "met")
    panels = []
    for name, words, across, sizes, sharing, shape, limit_grams, limit_solve in sweeps:
        found = []
        for size in sizes:
            found.append(measure(bench, *shape(size), sharing, bench.repeats))
            print(f"  {name} = {size:,}: Grams {in_seconds(found[-1]['grams'])}, solve {in_seconds(found[-1]['solve'])}", flush=True)
        lines = []
        for what, limit in (("solve", limit_solve), ("grams", limit_grams)):
            # Tasks on the same samples share their Gram matrices.
            if limit is None:
                continue
            times = [each[what] for each in found]
            power = exponent(sizes, times)
            title = {"grams": "Gram matrices", "solve": "solve"}[what]
            table.row(name, words, f"{sizes[-1]:,}", title, in_seconds(times[-1]), f"{power:.2f}", limit, met(power <= limit))
            lines.append(log_log.Line(f"{title}, exponent {power:.2f}", [float(size) for size in sizes], times))
        panels.append(log_log.Panel(f"over {name}", across, lines))
    picture = bench.page.with_name("benchmarks-growth.svg")
    picture.write_text(log_log.svg(panels))
    n = bench.sizes([10_000], [500])[0]
    large = measure(bench, n, TEN_KERNELS, 1, COMMON, 1)
    size = f"n = {n:,} with M = 10, once: Gram matrices {in_seconds(large['grams'])}, solve {in_seconds(large['solve'])}"
    proof = f"gap {large['gap']:.1e}, {large['support'][0]:,} support vectors, at most {large['peak'] / 2**30:.1f} GiB of memory"
    return [TEXT, "", *table.lines, "", f"{size}; {proof}.", "", f"![Seconds over samples, kernels and tasks, logarithmic]({picture.name})"]
