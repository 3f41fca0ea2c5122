"""From data to model beside MKLpy's EasyMKL, each in a process of its own, with its memory. Only with --easymkl."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification

from common import ROOT, Bench, Table, in_seconds, in_turn, median, met, ratio

TITLE = "Beside EasyMKL"

TEXT = """From rows in memory to the model, kernels included, two threads, each in a process of its own: {m} Gaussians on {n:,} rows of 50
columns. Ours is L_p-norm multiple kernel learning with C = 1, certified to 1e-4; theirs is MKLpy {mklpy} (torch {torch}), `rbf_kernel` for
each Gaussian and then `EasyMKL(lam=0.1, learner=SVC(C=1))`, which solves another, easier problem. Peak memory is that of the whole process,
Python and torch included. Targets: 30 times faster, in a third of the memory."""

THREADS = 2
ENVIRONMENT = ROOT / "target" / "easymkl-env"
REQUIREMENTS = ROOT / "bench" / "requirements-easymkl.txt"


def python() -> Path:
    """The environment with MKLpy, made once, and again when what it holds changes."""
    done, program = ENVIRONMENT / "requirements.txt", ENVIRONMENT / "bin" / "python"
    if not done.exists() or done.read_text() != REQUIREMENTS.read_text():
        subprocess.run([sys.executable, "-m", "venv", "--clear", ENVIRONMENT], check=True)
        subprocess.run([program, "-m", "pip", "install", "--quiet", "-r", REQUIREMENTS], check=True)
        done.write_text(REQUIREMENTS.read_text())
    return program


def run(bench: Bench) -> list[str] | None:
    if not bench.easymkl:
        print("only with --easymkl, since it installs torch: skipped")
        return None
    program = python()
    n, m = bench.sizes([(3000, 100)], [(300, 5)])[0]
    X, y = make_classification(n_samples=n, n_features=50, n_informative=15, random_state=0)
    X = (X - X.mean(0)) / X.std(0)
    gammas = 4.0 ** (4.0 * np.arange(m) / m - 2.0) / 50
    rows, labels = bench.keep("rows", X), bench.keep("labels", np.where(y == 1, 1.0, -1.0))
    job = {"rows": rows, "labels": labels, "samples": n, "kernels": [f"rbf:gamma={gamma!r}" for gamma in gammas.tolist()]}
    job |= {"c": 1.0, "tolerance": 1e-4, "threads": THREADS, "repeats": 1, "whole": True}
    found: dict[object, list[dict]] = {1: [], 2: [], "easymkl": []}

    def ours(p: int) -> float:
        found[p].append(bench.solve(**job, sharing={"name": "lp", "p": p}))
        return found[p][-1]["whole"][0]

    def theirs() -> float:
        command = [program, ROOT / "bench" / "easymkl_once.py", rows, labels, n, THREADS, *gammas.tolist()]
        printed = subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True).stdout
        found["easymkl"].append(json.loads(printed))
        return found["easymkl"][-1]["whole"]

    times = dict(zip((1, 2, "easymkl"), in_turn(bench.repeats, lambda: ours(1), lambda: ours(2), theirs), strict=True))
    peaks = {who: max(answer["peak"] for answer in answers) for who, answers in found.items()}
    table = Table("", "seconds", "of it kernels", "times faster", "met", "peak memory", "of EasyMKL's", "met")
    for p in (1, 2):
        faster, words = ratio(times["easymkl"], times[p])
        share = peaks[p] / peaks["easymkl"]
        kernels = in_seconds(median(answer["kernels"][0] for answer in found[p]))
        memory = [f"{peaks[p] / 1e9:.2f} GB", f"{share:.2f}", met(share <= 1 / 3)]
        table.row(f"ours, p = {p}", in_seconds(median(times[p])), kernels, words, met(faster >= 30), *memory)
    kernels = in_seconds(median(answer["kernels"] for answer in found["easymkl"]))
    table.row("EasyMKL", in_seconds(median(times["easymkl"])), kernels, "", "", f"{peaks['easymkl'] / 1e9:.2f} GB", "", "")
    bench.record(times={str(who): each for who, each in times.items()}, peaks={str(who): peak for who, peak in peaks.items()})
    pinned = dict(line.split("==") for line in REQUIREMENTS.read_text().splitlines() if "==" in line)
    return [TEXT.format(n=n, m=m, mklpy=pinned["MKLpy"], torch=pinned["torch"]), "", *table.lines]
