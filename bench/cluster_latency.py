"""What a round of empty calls takes on two workers: plain tasks pinned to workers, and actors.

python bench/cluster_latency.py
"""

from __future__ import annotations

import statistics
from time import perf_counter

import numpy as np
from distributed import Client, LocalCluster

ROUNDS = 100


class Holder:
    """An actor that answers."""

    def evaluate(self, theta: np.ndarray) -> np.ndarray:
        return theta


def evaluate(theta: np.ndarray) -> np.ndarray:
    return theta


def main() -> None:
    theta = np.ones((50, 20))
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster, Client(cluster) as client:
        workers = list(client.scheduler_info()["workers"])
        actors = [client.submit(Holder, actor=True, workers=[worker], pure=False).result() for worker in workers]

        def plain() -> None:
            client.gather([client.submit(evaluate, theta, workers=[own], allow_other_workers=True, pure=False) for own in workers])

        def acted() -> None:
            for answer in [actor.evaluate(theta) for actor in actors]:
                answer.result()

        for name, work in (("plain tasks", plain), ("actors", acted)):
            times = []
            for _ in range(ROUNDS):
                started = perf_counter()
                work()
                times.append(perf_counter() - started)
            print(f"{name}: {1000 * statistics.median(times[10:]):.1f} ms a round")


if __name__ == "__main__":
    main()
