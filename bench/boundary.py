"""What the way through Python costs: a fit on given Gram matrices by the estimator, beside the same fit in Rust on the same data.

    python bench/boundary.py target/release/given_grams [n] [M]

Both sides start with arrays in memory and end with a model; runs take turns, and the fastest of
each are compared, which is what a quiet machine would show. Needs the release wheel.
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

ROUNDS = 10


def main() -> None:
    program = sys.argv[1]
    n, m = (int(value) for value in (sys.argv[2:4] or ("1000", "10")))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    distances = pairwise_distances(X) ** 2
    stack = np.stack([np.exp(-distances / (2 * 1.5 ** (2 * width))) for width in range(m)])
    model = MKLClassifier("precomputed", sharing="lp", p=2, C=1.0, indefinite="assume", n_jobs=1)
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        grams, labels = Path(folder, "grams"), Path(folder, "labels")
        stack.tofile(grams)
        y.tofile(labels)
        arguments = [program, grams, labels, n, m, json.dumps({"name": "lp", "p": 2}), 1.0, 1e-4, 1, 5]
        model.fit(stack, y)
        for _ in range(ROUNDS):
            started = time.perf_counter()
            model.fit(stack, y)
            ours.append(time.perf_counter() - started)
            found = json.loads(subprocess.run([str(value) for value in arguments], check=True, capture_output=True).stdout)
            theirs.append(min(found["whole"]))
    assert found["objective"] == model.objective_, "not the same problem"
    python, rust = min(ours), min(theirs)
    print(f"n = {n}, M = {m}: Python {1000 * python:.1f} ms, Rust {1000 * rust:.1f} ms, overhead {100 * (python / rust - 1):.1f} %")


if __name__ == "__main__":
    main()
