"""What happens to a fit when workers die, come and go, data is bad, or there is no cluster at all."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import certificate
import dask
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster, Status

import mtmkl
import mtmkl.dask
from mtmkl.dask import ClusterError, _cluster, _worker

KERNELS = ["linear", "rbf:sigma=0.5|1|2"]


def make(seed: int = 5, tasks: int = 8, count: int = 40) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(tasks * count, 3)), columns=list("abc"))
    X["site"] = np.repeat([f"s{at}" for at in range(tasks)], count)
    signal = X["a"] * X["b"] + np.repeat(np.arange(tasks) % 3 - 1, count) * X["c"]
    return X, pd.Series(np.where(signal + 0.3 * rng.normal(size=len(X)) > 0, 1, -1), name="y")


@pytest.fixture
def cluster():
    # A lost worker is noticed and started again by its nanny. So long after a loss the cluster looks whether it has come back, and gives up
    # a nanny whose worker was lost again just then.
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"})
    with patient, LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        yield cluster


def well(cluster: LocalCluster) -> set[str]:
    """The workers whose nannies have started them and know it: one that dies before that stays dead."""
    processes = [nanny.process for nanny in cluster.workers.values()]
    return {process.worker_address for process in processes if process is not None and process.status == Status.running}


class Killer:
    """Kills the worker of one batch while it evaluates, in every round or in the first few; which batches were evaluated is in a file."""

    def __init__(self, cluster: LocalCluster, client: Client, rounds: int, log: Path) -> None:
        self.cluster, self.client, self.left, self.log = cluster, client, rounds, log
        #: The batch that was lost in each round with a kill.
        self.lost: list[int] = []

    @property
    def killed(self) -> int:
        return len(self.lost)

    def evaluated(self) -> list[list[int]]:
        """In each round with a kill, the batches that were evaluated, each as often as it was."""
        lines = [tuple(map(int, line.split())) for line in self.log.read_text().splitlines()]
        return [sorted(batch for own, batch in lines if own == round) for round in range(self.killed)]

    def calls(self, own: _cluster.Cluster, original):
        async def everywhere(name, function, calls):
            if name == "evaluate" and self.left > 0:
                self.left -= 1
                limit = time.monotonic() + 60
                while len(threads := await own.threads()) < 2 or well(self.cluster) != set(threads):
                    assert time.monotonic() < limit, "the nanny did not start the worker again"
                    await asyncio.sleep(0.02)
                own.place(threads)
                at = self.killed % len(own.homes)
                victim = own.homes[at].worker
                processes = await self.client.run(os.getpid, workers=[victim])
                noted = {"log": str(self.log), "round": self.killed}
                calls = [
                    {**call, **noted, "die": processes[victim] if home.worker == victim else None}
                    for call, home in zip(calls, own.homes, strict=True)
                ]
                self.lost.append(at)
                function = _dying
            return await original(name, function, calls)

        return everywhere


def _dying(call, piece, recipe):
    """Evaluates, and dies with the answer on its tongue; on another worker, or in another process, it lives."""
    answer = _worker.evaluate(call, piece, recipe)
    if not answer["absent"]:
        with open(call["log"], "a") as log:
            log.write(f"{call['round']} {call['batch']}\n")
    if call["die"] == os.getpid():
        os.kill(os.getpid(), signal.SIGKILL)
    return answer


def with_killer(monkeypatch, cluster: LocalCluster, client: Client, rounds: int, log: Path) -> Killer:
    killer = Killer(cluster, client, rounds, log)
    original = _cluster.Cluster.everywhere

    async def everywhere(self, name, function, calls):
        return await killer.calls(self, lambda *more: original(self, *more))(name, function, calls)

    monkeypatch.setattr(_cluster.Cluster, "everywhere", everywhere)
    return killer


@pytest.mark.parametrize(
    ("solver", "rounds", "parameters"), [("newton", 100, {"tol": 1e-5}), ("epf", 20, {"p": 1.2, "q": 1.2, "tol": 1e-4})]
)
def test_a_worker_killed_in_every_round(cluster, monkeypatch, tmp_path, solver, rounds, parameters):
    X, y = make()
    options = {"task": "site", "sharing": "pscs", "solver": solver, "scale": "none", "random_state": 0, **parameters}
    near = mtmkl.MKLClassifier(KERNELS, **options).fit(X, y)
    with Client(cluster) as client:
        killer = with_killer(monkeypatch, cluster, client, rounds, tmp_path / "evaluated")
        far = mtmkl.dask.MKLClassifier(KERNELS, client=client, **options).fit(X, y)
        evaluations = [own for own in far.rounds_ if own["name"] == "evaluate"]
        assert killer.killed == min(rounds, len(evaluations)) and killer.killed >= 3
        # What was lost is evaluated once more, and nothing else.
        assert killer.evaluated() == [sorted([0, 1, lost]) for lost in killer.lost]
        assert [own["repeated"] for own in evaluations] == [1] * killer.killed + [0] * (len(evaluations) - killer.killed)
        assert far.status_ == "converged" and far.gap_ <= parameters["tol"]
        assert max(near.bound_, far.bound_) <= min(near.objective_, far.objective_)
        assert np.abs(near.decision_function(X) - far.plain().decision_function(X)).max() < 0.1
    assert_certified(far, X, y)


def assert_certified(model, X: pd.DataFrame, y: pd.Series) -> None:
    """The certificate is that of the machines in the model: a checker that knows nothing of the core says so."""
    rows = [np.array(own) for own in json.loads(model._model.notes["training-rows"])]
    values = X.drop(columns="site").to_numpy()
    sets = [certificate.Samples(values[own]) for own in rows]
    tasks = [certificate.Task(targets=y.to_numpy()[own].astype(float)) for own in rows]
    verdict = certificate.check(model._model.to_bytes(), sets, tasks)
    assert not verdict.violations, str(verdict)


def test_a_worker_added_and_one_retired(cluster):
    X, y = make()
    near = mtmkl.MKLClassifier(KERNELS, task="site", scale="none", tol=1e-6).fit(X, y)
    with Client(cluster) as client:
        passes = 0
        first = min(client.scheduler_info()["workers"])
        loop = client.loop.asyncio_loop

        def meanwhile(_: dict[str, float]) -> None:
            nonlocal passes
            passes += 1
            if passes == 1:
                cluster.scale(3)
            elif passes == 2:
                asyncio.run_coroutine_threadsafe(client.retire_workers([first], asynchronous=True), loop)
                time.sleep(0.5)

        far = mtmkl.dask.MKLClassifier(KERNELS, task="site", scale="none", tol=1e-6, client=client, progress=meanwhile, batches=4)
        far.fit(X, y)
        assert passes >= 3 and far.status_ == "converged"
        assert max(near.bound_, far.bound_) <= min(near.objective_, far.objective_)
        assert_certified(far, X, y)


def test_partitions_are_computed_again(cluster, monkeypatch, tmp_path):
    """Data that was lost with its worker is made again from where it came."""
    X, y = make()
    whole = X.assign(y=y)
    log = tmp_path / "computed"

    def load(at: int) -> pd.DataFrame:
        with log.open("a") as file:
            file.write(f"{at}\n")
        return whole.iloc[at::3]

    parts = [dask.delayed(load)(at) for at in range(3)]
    with Client(cluster) as client:
        killer = with_killer(monkeypatch, cluster, client, 2, tmp_path / "evaluated")
        far = mtmkl.dask.MKLClassifier(KERNELS, task="site", scale="none", client=client).fit(parts, "y")
        assert killer.killed == 2 and far.status_ == "converged"
    assert len(log.read_text().split()) > 3
    order = np.concatenate([np.arange(len(X))[at::3] for at in range(3)])
    assert_certified(far, X.iloc[order].reset_index(drop=True), y.iloc[order].reset_index(drop=True))


def test_bad_data_names_the_task_and_the_worker_lives(cluster):
    X, y = make()
    with Client(cluster) as client:
        before = set(client.scheduler_info()["workers"])
        estimator = mtmkl.dask.MKLClassifier(KERNELS, task="site", client=client)
        with pytest.raises(ValueError, match="task 's3' has one class only"):
            estimator.fit(X, y.where(X["site"] != "s3", 1))
        frame = X.assign(y=y)
        frame.loc[7, "a"] = np.nan
        with pytest.raises(ValueError, match=r"partition 0: .*NaN"):
            estimator.fit([dask.delayed(frame)], "y")
        with pytest.raises(ValueError, match="columns"):
            estimator.fit([dask.delayed(X.assign(y=y)), dask.delayed(X.assign(y=y).rename(columns={"a": "q"}))], "y")
        # What only a worker sees: too little memory for any way to solve its batch.
        with pytest.raises(MemoryError, match="on the worker tcp"):
            estimator.set_params(memory_limit=1e-6).fit(X, y)
        assert set(client.scheduler_info()["workers"]) == before


def test_a_cluster_without_workers(cluster):
    X, y = make()
    with Client(cluster) as client:
        cluster.scale(0)
        while client.scheduler_info()["workers"]:
            time.sleep(0.1)
        started = time.monotonic()
        with pytest.raises(ClusterError, match="no workers after 2 seconds"):
            mtmkl.dask.MKLClassifier(KERNELS, task="site", client=client, timeout=2.0).fit(X, y)
        assert time.monotonic() - started < 5


def test_workers_that_all_go_away(cluster):
    X, y = make()
    with Client(cluster) as client:
        gone: list[float] = []

        def away(_: dict[str, float]) -> None:
            cluster.scale(0)
            gone.append(time.monotonic())
            time.sleep(1.0)

        with pytest.raises(ClusterError, match="no workers"):
            mtmkl.dask.MKLClassifier(KERNELS, task="site", tol=1e-8, client=client, timeout=2.0, progress=away).fit(X, y)
        assert time.monotonic() - gone[0] < 30


def test_a_scheduler_that_goes_away():
    X, y = make()
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen([*command, "--scheduler-file", f"{folder}/s.json"], stderr=subprocess.DEVNULL) as scheduler,
    ):
        worker = None
        try:
            while not Path(folder, "s.json").exists():
                time.sleep(0.1)
            worker = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "distributed.cli.dask_worker",
                    "--scheduler-file",
                    f"{folder}/s.json",
                    "--no-nanny",
                    "--nthreads",
                    "1",
                ],
                stderr=subprocess.DEVNULL,
            )
            with Client(scheduler_file=f"{folder}/s.json", timeout=20) as client:
                # Its worker may take longer to start than the fit waits for one.
                client.wait_for_workers(1, timeout=60)
                gone: list[float] = []

                def away(_: dict[str, float]) -> None:
                    scheduler.kill()
                    gone.append(time.monotonic())

                with pytest.raises(ClusterError, match="scheduler does not answer"):
                    mtmkl.dask.MKLClassifier(KERNELS, task="site", tol=1e-8, client=client, timeout=3.0, progress=away).fit(X, y)
                assert time.monotonic() - gone[0] < 30
        finally:
            scheduler.kill()
            if worker is not None:
                worker.kill()
                worker.wait()


def test_control_c_is_answered(cluster):
    X, y = make()
    with Client(cluster) as client:
        sent: list[float] = []

        def interrupt(_: dict[str, float]) -> None:
            # Once: another one would be for whoever comes after the fit.
            if not sent:
                sent.append(time.monotonic())
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.3)

        with pytest.raises(KeyboardInterrupt):
            mtmkl.dask.MKLClassifier(KERNELS, task="site", tol=1e-9, client=client, progress=interrupt).fit(X, y)
        assert time.monotonic() - sent[0] < 10
        # The client and its workers go on.
        assert mtmkl.dask.MKLClassifier(KERNELS, task="site", client=client).fit(X, y).status_ == "converged"
