"""Gram matrices of many Gaussians on the same columns, beside scikit-learn's rbf_kernel called for each."""

from __future__ import annotations

import json

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from common import Bench, Table, digits, in_seconds, in_turn, median, met, ratio, seconds

TITLE = "Gram matrices"

TEXT = """All Gaussians on the same columns, kept in memory, two threads: ours over scikit-learn's `rbf_kernel` once for each
width (target: 15 times faster). *Writing* is the time that the same two threads take to fill as many bytes with one
number, in memory that was written before: the limit of memory bandwidth (target: within 2 of it); *in fresh memory* the
system has to find and clear it, as it has for our matrices. *Peak* is the most memory that our process held, over the
size of the matrices (target: 1.1)."""

THREADS = 2


def run(bench: Bench) -> list[str]:
    table = Table(
        "n",
        "columns",
        "kernels",
        "ours",
        "rbf_kernel",
        "times faster",
        "met",
        "writing",
        "in fresh memory",
        "ours / writing",
        "met",
        "peak / Grams",
        "met",
    )
    n, d, m = bench.sizes([(3000, 50, 100)], [(500, 50, 10)])[0]
    X = np.random.RandomState(0).randn(n, d)
    gammas = 4.0 ** (4.0 * np.arange(m) / m - 2.0) / d
    answers = []

    def ours() -> float:
        answers.append(json.loads(bench.program("build_grams", n, d, m, "all", THREADS, 1)))
        return answers[-1]["seconds"][0]

    def theirs() -> float:
        return seconds(lambda: [rbf_kernel(X, gamma=gamma) for gamma in gammas])

    with threadpool_limits(THREADS):
        mine, others = in_turn(bench.repeats, ours, theirs)
    faster, words = ratio(others, mine)
    writing, fresh = ([answer[key] for answer in answers] for key in ("writing", "fresh"))
    over, over_words = ratio(mine, writing)
    peak = max(answer["peak"] / answer["grams"] for answer in answers)
    table.row(
        f"{n:,}",
        d,
        m,
        in_seconds(median(mine)),
        in_seconds(median(others)),
        words,
        met(faster >= 15),
        in_seconds(median(writing)),
        in_seconds(median(fresh)),
        over_words,
        met(over <= 2),
        digits(peak),
        met(peak <= 1.1),
    )
    bench.record(n=n, columns=d, kernels=m, ours=mine, rbf_kernel=others, writing=writing, fresh=fresh, answers=answers)
    return [TEXT, "", *table.lines]
