"""One measurement of `cluster.py`, in a process of its own: the local engine with so many threads, or so many workers of one thread.

python bench/cluster_once.py near|far COUNT TASKS SAMPLES KERNELS SHARING STORAGE GIB
"""

from __future__ import annotations

import json
import sys
import warnings
from os import times
from time import perf_counter

import numpy as np

COLUMNS = 20


def problem(tasks: int, samples: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two classes by a product of two columns, and by another column in every second task."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(tasks * samples, COLUMNS))
    task = np.repeat(np.arange(tasks), samples)
    signal = X[:, 0] * X[:, 1] + np.where(task % 2 == 0, X[:, 2], X[:, 3]) + 0.3 * rng.normal(size=len(X))
    return X, np.where(signal > 0, 1, -1), task


def kernels(count: int) -> list[str]:
    """Linear, polynomial and Gaussians: ten; or so many Gaussians."""
    if count == 10:
        return ["linear", "poly:degree=2", "rbf:sigma=1|2|4|8|16|32|64|128"]
    widths = np.geomspace(0.5, 100, count)
    return ["rbf:sigma=" + "|".join(f"{width:.6g}" for width in widths)]


def processor() -> float:
    """Seconds of processor time of this process so far."""
    used = times()
    return used.user + used.system


def main() -> None:
    import mtmkl

    where, count, tasks, samples, many, sharing, storage, limit = sys.argv[1:]
    X, y, task = problem(int(tasks), int(samples))
    options = {"sharing": sharing, "storage": None if storage == "any" else storage, "memory_limit": float(limit)}
    found: dict[str, object] = {}
    warnings.simplefilter("ignore")
    few = np.isin(task, task[:: max(1, len(task) // 8)][:8])
    if where == "near":
        estimator = mtmkl.MKLClassifier(kernels(int(many)), n_jobs=int(count), **options)
        # What is loaded at the first fit is there.
        estimator.fit(X[few], y[few], task=task[few])
        before, started = processor(), perf_counter()
        model = estimator.fit(X, y, task=task)
        found |= {"seconds": perf_counter() - started, "processor": [processor() - before]}
    else:
        from distributed import Client, LocalCluster

        import mtmkl.dask

        cluster = LocalCluster(n_workers=int(count), threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0)
        with cluster, Client(cluster) as client:
            estimator = mtmkl.dask.MKLClassifier(kernels(int(many)), n_jobs=1, client=client, **options)
            estimator.fit(X[few], y[few], task=task[few])

            def all_processors() -> list[float]:
                return [processor(), *client.run(processor).values()]

            before, started = all_processors(), perf_counter()
            model = estimator.fit(X, y, task=task)
            found |= {"seconds": perf_counter() - started, "own": model.own_seconds_, "rounds": model.rounds_}
            # The client's, and each worker's.
            found["processor"] = [after - own for own, after in zip(before, all_processors(), strict=True)]
    found |= {"gap": model.gap_, "passes": model.n_iter_, "objective": model.objective_, "status": model.status_}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
