"""Passes to a certified 1e-6 for every registered sharing, and the outer solver's own share of the time."""

from __future__ import annotations

import json
from collections import defaultdict

from common import Bench, Table

TITLE = "Passes"

TEXT = """Passes (one inner solve per task each) on the full problem to a certified gap of 1e-6, and in brackets the share of the
fit that the outer solver takes itself: everything but evaluating J, starts from fewer samples included. Each cell is
the worst over the sharing's registered examples, the special cases of its parameters. Support vector classification, C
= 1, {many:,} samples shared by all tasks ({few:,} where there are 100 tasks), Gaussians on all columns and on single
columns, two threads, no fit longer than {limit} s. Targets: at most 12 passes, under 20 %. `docs/development/passes.md` has the
passes on real digits, beside those of the paper's Algorithm 1."""

THREADS = 2
# A fit, in seconds.
LIMIT = 60
# Kernels and tasks. The largest one, (200, 100), takes too long for a benchmark that is run often.
SHAPES = [(10, 1), (50, 1), (200, 1), (10, 10), (50, 10), (200, 10), (10, 100), (50, 100)]
# Nothing is learned there.
CONSTANT = ("fixed", "uniform")


def run(bench: Bench) -> list[str]:
    many, few = bench.sizes([1000, 300], [300, 200])
    shapes = bench.sizes(SHAPES, [(5, 1), (5, 3)])
    worst: dict[str, dict[tuple[int, int], tuple[int, float]]] = defaultdict(dict)
    unsolved = []
    for M, T in shapes:
        n = few if T == 100 else many
        for line in bench.program("passes", n, M, T, 1e-6, THREADS, LIMIT).splitlines():
            fit = json.loads(line)
            bench.record(n=n, **fit)
            name = fit["sharing"]["name"]
            if name in CONSTANT:
                continue
            passes, share = worst[name].get((M, T), (0, 0.0))
            worst[name][M, T] = max(passes, fit["passes"]), max(share, fit["outer"] / fit["seconds"])
            if fit["status"] != "converged":
                unsolved.append(f"{json.dumps(fit['sharing'])} with M = {M}, T = {T}: {fit['status']} at {fit['gap']:.1e}")
        print(f"  M = {M}, T = {T} done", flush=True)
    table = Table("sharing", *(f"M = {M}, T = {T}" for M, T in shapes))
    for name, cells in worst.items():
        # `lp` is for one task.
        known = (cells.get(shape) for shape in shapes)
        table.row(name, *("" if cell is None else f"{cell[0]} ({100 * cell[1]:.0f} %)" for cell in known))
    fits = [fit for fit in bench.raw if fit["sharing"]["name"] not in CONSTANT]
    most = max(fit["passes"] for fit in fits)
    within = sum(fit["outer"] < 0.2 * fit["seconds"] for fit in fits)
    total = sum(fit["outer"] for fit in fits) / sum(fit["seconds"] for fit in fits)
    share = f"the outer solver under 20 % in {within} of them, {100 * total:.0f} % of the time of all together"
    summary = f"{len(fits)} fits: at most {most} passes; {share}."
    problems = ["", "Not to 1e-6:", "", *(f"- {each}" for each in unsolved)] if unsolved else []
    return [TEXT.format(many=many, few=few, limit=LIMIT), "", *table.lines, "", summary, *problems]
