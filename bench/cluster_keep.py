"""What `keep="workers"` saves and costs, 2,000 tasks × 100 samples on two workers: `python bench/cluster_keep.py`."""

from __future__ import annotations

import os
import tempfile
import time

import numpy as np
from distributed import Client, LocalCluster

import mtmkl
import mtmkl.dask

TASKS, SAMPLES = 2000, 100


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(TASKS * SAMPLES, 20))
    number = np.repeat(np.arange(TASKS), SAMPLES)
    task = np.array([f"t{at}" for at in range(TASKS)])[number]
    signal = X[:, 0] * X[:, 1] + (number % 3 - 1) * X[:, 2]
    y = np.where(signal + 0.3 * rng.normal(size=len(X)) > 0, 1, -1)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        for keep in ["client", "workers"] * 2:
            started = time.perf_counter()
            model = mtmkl.dask.MKLClassifier(["linear", "rbf:sigma=2|4|8"], sharing="pscs", client=client, keep=keep).fit(X, y, task=task)
            last = model.rounds_[-1]
            seconds, sent = last["seconds"], last["received"] / 1e6
            print(f"keep={keep}: {time.perf_counter() - started:.1f} s, of which machines {seconds:.1f} s, with {sent:.1f} MB")
        with tempfile.TemporaryDirectory() as folder:
            for what, work in {
                "20,000 rows of 200 tasks": lambda: model.decision_function(X[:20000], task[:20000]),
                "save": lambda: model.save(folder),
                "load, and 100 rows of one task": lambda: mtmkl.load(folder).decision_function(X[:100], "t0"),
            }.items():
                started = time.perf_counter()
                work()
                print(f"{what}: {time.perf_counter() - started:.2f} s")
            print(f"the folder: {sum(entry.stat().st_size for entry in os.scandir(folder)) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
