"""What the way through Python costs: a fit on given Gram matrices by the estimator, beside the same fit in Rust on the same data.

    python bench/boundary.py target/release/given_grams [n] [M]

Both sides read the matrices into memory, and then make one fit, from arrays to model, in a process of its own: later fits in one process
depend on what the C library's allocator happens to keep. Runs take turns, and the fastest of each are compared. Needs the release wheel.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.metrics import pairwise_distances

from mtmkl import MKLClassifier

ROUNDS = 15


def fit_once(grams: str, labels: str, n: int, m: int) -> None:
    """The Python side: prints seconds and objective."""
    stack, y = np.fromfile(grams).reshape(m, n, n), np.fromfile(labels)
    model = MKLClassifier("precomputed", sharing="lp", p=2, C=1.0, indefinite="assume", n_jobs=1)
    # What scikit-learn loads at its first use is not ours.
    model.fit(stack[:, :20, :20], y[:20])
    started = time.perf_counter()
    model.fit(stack, y)
    seconds = time.perf_counter() - started
    print(json.dumps({"whole": [seconds], "objective": model.objective_}))


def main() -> None:
    if sys.argv[1] == "--once":
        return fit_once(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    n, m = (int(value) for value in (sys.argv[2:4] or ("1000", "10")))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    distances = pairwise_distances(X) ** 2
    with tempfile.TemporaryDirectory() as folder:
        grams, labels = Path(folder, "grams"), Path(folder, "labels")
        np.stack([np.exp(-distances / (2 * 1.5 ** (2 * width))) for width in range(m)]).tofile(grams)
        y.tofile(labels)
        sharing = json.dumps({"name": "lp", "p": 2})
        commands = [
            [sys.executable, __file__, "--once", grams, labels, n, m],
            [sys.argv[1], grams, labels, n, m, sharing, 1.0, 1e-4, 1, 1],
        ]
        seconds: list[list[float]] = [[], []]
        objectives = set()
        for _ in range(ROUNDS):
            for command, found in zip(commands, seconds, strict=True):
                printed = subprocess.run([str(part) for part in command], check=True, capture_output=True).stdout
                result = json.loads(printed)
                found.extend(result["whole"])
                objectives.add(result["objective"])
    assert len(objectives) == 1, "not the same problem"
    python, rust = (1000 * min(found) for found in seconds)
    print(f"n = {n}, M = {m}: Python {python:.1f} ms, Rust {rust:.1f} ms, overhead {100 * (python / rust - 1):.1f} %")


if __name__ == "__main__":
    main()
