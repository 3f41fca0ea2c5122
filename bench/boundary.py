"""What the way through Python costs: a fit on given Gram matrices by the estimator, beside the same fit in Rust on the same data.

Both sides read the matrices into memory, and then make one fit, from arrays to model, in a process of its own: later fits in one process
depend on what the C library's allocator happens to keep. Runs take turns, and the fastest of each are compared.

    python bench/boundary.py GRAMS LABELS SAMPLES KERNELS    the Python side, with the release wheel
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from common import ROOT, Bench, Table, in_seconds, squared_distances

TITLE = "The way through Python"

TEXT = """One fit with `MKLClassifier`, from arrays to model on given Gram matrices, beside the same fit in Rust, each in a
process of its own, one thread; the fastest of {rounds} in turn."""


def fit_once(grams: str, labels: str, n: int, m: int) -> None:
    """The Python side: prints seconds and objective."""
    from mtmkl import MKLClassifier

    stack, y = np.fromfile(grams).reshape(m, n, n), np.fromfile(labels)
    model = MKLClassifier("precomputed", sharing="lp", p=2, C=1.0, indefinite="assume", n_jobs=1)
    # What scikit-learn loads at its first use is not ours.
    model.fit(stack[:, :20, :20], y[:20])
    started = time.perf_counter()
    model.fit(stack, y)
    seconds = time.perf_counter() - started
    print(json.dumps({"whole": [seconds], "objective": model.objective_}))


def install_wheel(folder: Path) -> None:
    """The release wheel of this checkout, into this environment."""
    subprocess.run([sys.executable, "-m", "maturin", "build", "--quiet", "--release", "--out", folder], cwd=ROOT, check=True)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--force-reinstall", "--no-deps"]
    subprocess.run([*install, *folder.glob("*.whl")], check=True)


def run(bench: Bench) -> list[str]:
    install_wheel(bench.folder / "wheels")
    rounds = 3 * bench.repeats
    table = Table("n", "M", "Python", "Rust", "overhead")
    for n, m in bench.sizes([(300, 10), (1000, 10), (2000, 10)], [(200, 5)]):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, 10))
        y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
        distances = squared_distances(X)
        grams = bench.keep("grams", np.stack([np.exp(-distances / (2 * 1.5 ** (2 * width))) for width in range(m)]))
        labels = bench.keep("labels", y)
        command = [sys.executable, __file__, str(grams), str(labels), str(n), str(m)]
        job = {"grams": grams, "labels": labels, "samples": n, "sharing": {"name": "lp", "p": 2}, "c": 1.0, "tolerance": 1e-4}
        python, rust, objectives = [], [], set()
        for _ in range(rounds):
            theirs = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            ours = bench.solve(**job, repeats=1, whole=True)
            python += theirs["whole"]
            rust += ours["whole"]
            objectives |= {theirs["objective"], ours["objective"]}
        assert len(objectives) == 1, "not the same problem"
        table.row(f"{n:,}", m, in_seconds(min(python)), in_seconds(min(rust)), f"{100 * (min(python) / min(rust) - 1):.1f} %")
        bench.record(n=n, m=m, python=python, rust=rust)
    return [TEXT.format(rounds=rounds), "", *table.lines]


if __name__ == "__main__":
    fit_once(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
