"""From data to model beside MKLpy's EasyMKL, each in a process of its own, with its memory. Only with --easymkl."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification

from common import ROOT, Bench, Table, in_seconds, in_turn, median, met, ratio

TITLE = "Beside EasyMKL"

TEXT = """From rows in memory to the model, kernels included, two threads, each in a process of its own: {m} Gaussians on {n:,} rows of 50
columns. Ours is L_p-norm multiple kernel learning with C = 1, certified to 1e-4; theirs is MKLpy {mklpy} (torch {torch}), `rbf_kernel` for
each Gaussian and then `EasyMKL(lam=0.1, learner=SVC(C=1))`, which solves another, easier problem. Peak memory is that of the whole process,
Python and torch included. Our Gram matrices are kept, in double or single precision, or made on demand (a
memory limit of 1 GiB). Targets: 30 times faster, in a third of the memory."""

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
    # What our Grams are kept in.
    storages: dict[str, dict] = {"": {}, ", single precision": {"precision": "single"}, ", made on demand": {"memory_limit": 2**30}}
    variants = {f"ours, p = {p}{kept}": {"sharing": {"name": "lp", "p": p}} | extra for kept, extra in storages.items() for p in (1, 2)}
    found: dict[str, list[dict]] = {name: [] for name in [*variants, "EasyMKL"]}

    def ours(name: str) -> float:
        found[name].append(bench.solve(**job, **variants[name]))
        return found[name][-1]["whole"][0]

    def theirs() -> float:
        command = [program, ROOT / "bench" / "easymkl_once.py", rows, labels, n, THREADS, *gammas.tolist()]
        printed = subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True).stdout
        found["EasyMKL"].append(json.loads(printed))
        return found["EasyMKL"][-1]["whole"]

    turns = [partial(ours, name) for name in variants]
    times = dict(zip(found, in_turn(bench.repeats, *turns, theirs), strict=True))
    peaks = {who: max(answer["peak"] for answer in answers) for who, answers in found.items()}
    table = Table("", "seconds", "of it kernels", "times faster", "met", "peak memory", "of EasyMKL's", "met")
    for name in variants:
        faster, words = ratio(times["EasyMKL"], times[name])
        share = peaks[name] / peaks["EasyMKL"]
        kernels = in_seconds(median(answer["kernels"][0] for answer in found[name]))
        memory = [f"{peaks[name] / 1e9:.2f} GB", f"{share:.2f}", met(share <= 1 / 3)]
        table.row(name, in_seconds(median(times[name])), kernels, words, met(faster >= 30), *memory)
    kernels = in_seconds(median(answer["kernels"] for answer in found["EasyMKL"]))
    table.row("EasyMKL", in_seconds(median(times["EasyMKL"])), kernels, "", "", f"{peaks['EasyMKL'] / 1e9:.2f} GB", "", "")
    bench.record(times=times, peaks=peaks)
    pinned = dict(line.split("==") for line in REQUIREMENTS.read_text().splitlines() if "==" in line)
    return [TEXT.format(n=n, m=m, mklpy=pinned["MKLpy"], torch=pinned["torch"]), "", *table.lines]
