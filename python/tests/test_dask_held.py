"""Machines that stay on the workers, the folder that they are saved as, and searches on a cluster."""

from __future__ import annotations

import io
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import certificate
import dask
import dask.array
import dask.dataframe
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from sklearn.base import clone

import mtmkl
import mtmkl.dask
from mtmkl.dask import ClusterError, _search

KERNELS = ["linear", "rbf:sigma=1|2"]
NAMES = ["MKLClassifier", "MKLRegressor", "MKLOneClassSVM", "MKLSVDD"]


@pytest.fixture(scope="module")
def client():
    # A lost worker is started again by its nanny, however many are lost.
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour", "distributed.scheduler.allowed-failures": 20})
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with patient, LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Seven tasks of different sizes, mixed; labels and numbers."""
    rng = np.random.default_rng(4)
    parts = []
    for task in range(7):
        count = int(rng.integers(24, 44))
        frame = pd.DataFrame(rng.normal(size=(count, 4)) * [1.0, 5.0, 0.1, 1.0], columns=list("abcd"))
        signal = frame["a"] * frame["b"] / 5 if task % 2 else frame["a"] + 10 * frame["c"]
        parts.append(frame.assign(site=f"s{task}", y=signal + 0.3 * rng.normal(size=count)))
    whole = pd.concat(parts, ignore_index=True).sample(frac=1, random_state=0, ignore_index=True)
    values = whole.pop("y")
    return whole, pd.Series(np.where(values > 0, "sick", "well"), name="state"), values


def targets(name: str, table) -> pd.Series | None:
    return {"MKLClassifier": table[1], "MKLRegressor": table[2]}.get(name)


def kill(client: Client, workers: list[str]) -> None:
    """Kills workers; waits until they are gone and others are there."""
    count = len(client.scheduler_info()["workers"])
    processes = client.run(os.getpid, workers=workers)
    for worker in workers:
        os.kill(processes[worker], signal.SIGKILL)
    limit = time.monotonic() + 60
    while True:
        left = set(client.scheduler_info()["workers"])
        if not left & set(workers) and len(left) == count:
            return
        assert time.monotonic() < limit, "the nanny did not start the worker again"
        time.sleep(0.05)


def assert_parts_hold(folder: Path, X: pd.DataFrame, y: pd.Series | None, gap: float) -> None:
    """What each file states is true of its tasks: two checkers say so that share nothing with what made it. Together the files are no
    further from what they prove than the whole."""
    index = json.loads((folder / "index.json").read_text())
    known: list[str] = []
    distance = 0.0
    for entry in index["machines"]:
        part = mtmkl.load(folder / entry["file"])
        own = X["site"].isin(entry["tasks"]).to_numpy()
        rows, truth = X[own].reset_index(drop=True), None if y is None else y[own].reset_index(drop=True)
        assert part.status_ == "converged" and part.gap_ <= part._model.tolerance
        verdict = part.verify(rows, truth)
        assert verdict, str(verdict)
        places = [np.array(own) for own in json.loads(part._model.notes["training-rows"])]
        scaled = part._frame.scaled(np.ascontiguousarray(X.drop(columns="site").to_numpy()))
        sets = [certificate.Samples(scaled[own]) for own in places]
        tasks = []
        for own in places:
            numbers = None if y is None else y.to_numpy()[own]
            if isinstance(part, mtmkl.MKLClassifier):
                numbers = np.where(numbers == part.classes_[1], 1.0, -1.0)
            weights = None
            if isinstance(part, mtmkl.MKLSVDD):
                weights = np.full(len(own), 1.0 / len(own))
            tasks.append(certificate.Task(targets=numbers, weights=weights))
        found = certificate.check(part._model.to_bytes(), sets, tasks)
        assert not found.violations, str(found)
        distance += part.objective_ - part.bound_
        known += entry["tasks"]
    assert sorted(known) == sorted(X["site"].unique())
    certified = index["certificate"]
    assert certified["gap"] == gap
    assert distance <= certified["objective"] - certified["bound"] + 1e-9 * abs(certified["objective"])


@pytest.mark.parametrize("name", NAMES)
def test_machines_on_workers_are_those_of_one_machine(client, table, name, tmp_path):
    X, y = table[0], targets(name, table)
    sharing = mtmkl.Common(mtmkl.Simplex()) if name == "MKLSVDD" else "pscs"
    near = getattr(mtmkl, name)(KERNELS, task="site", sharing=sharing, tol=1e-6)
    far = getattr(mtmkl.dask, name)(KERNELS, task="site", sharing=sharing, tol=1e-6, client=client, keep="workers", batches=5)
    with pytest.warns() if y is None else _nothing():
        near.fit(X, y)
    far.fit(X, y)
    assert far.status_ == "converged"
    assert max(near.bound_, far.bound_) <= min(near.objective_, far.objective_)
    assert far.tasks_.tolist() == near.tasks_.tolist() and far.kernel_weights_.shape == near.kernel_weights_.shape
    assert np.allclose(far.intercept_, near.intercept_, atol=0.02 * np.abs(near.intercept_).max())
    decide = "predict" if name == "MKLRegressor" else "decision_function"
    ours, theirs = getattr(near, decide)(X), getattr(far, decide)(X)
    assert np.abs(ours - theirs).max() <= 0.02 * np.abs(ours).max()
    lazy = getattr(far, decide)(dask.dataframe.from_pandas(X, npartitions=3))
    assert isinstance(lazy, dask.array.Array)
    assert np.array_equal(lazy.compute(), theirs)
    # Support rows are elsewhere, and nothing pretends that there are none.
    assert not hasattr(far, "support_")
    with pytest.raises(AttributeError):
        _ = far.dual_coef_
    with pytest.raises(pickle.PicklingError, match=r"save\(folder\)"):
        pickle.dumps(far)
    far.save(tmp_path / "models")
    again = mtmkl.load(tmp_path / "models")
    assert type(again) is getattr(mtmkl, name) and again.gap_ == far.gap_
    assert np.array_equal(getattr(again, decide)(X), theirs)
    one = X[X["site"] == "s3"].reset_index(drop=True)
    assert np.array_equal(getattr(again, decide)(one), theirs[(X["site"] == "s3").to_numpy()])
    verdict = again.verify(X, y)
    assert verdict, str(verdict)
    assert_parts_hold(tmp_path / "models", X, y, far.gap_)
    # Home again they are an ordinary estimator, and a folder can become one file.
    plain = far.plain()
    assert type(plain) is type(near) and np.array_equal(getattr(plain, decide)(X), theirs) and len(plain.support_) > 0
    again.save(tmp_path / "one.mtmkl")
    assert np.array_equal(getattr(mtmkl.load(tmp_path / "one.mtmkl"), decide)(X), theirs)


class _nothing:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


def test_many_classes_arrays_and_new_tasks(client, tmp_path):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(240, 3))
    task = np.repeat([1, 2, 10], 80)
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1] * (task == 2), [-0.4, 0.4])
    far = mtmkl.dask.MKLClassifier(KERNELS, new_tasks="common", client=client, keep="workers", batches=3).fit(X, y, task=task)
    home = far.plain()
    assert (far.predict(X, task) == home.predict(X, task)).all()
    lazy = far.decision_function(dask.array.from_array(X, chunks=(100, 3)), dask.array.from_array(task, chunks=70))
    assert lazy.shape == (240, 3) and np.array_equal(lazy.compute(), home.decision_function(X, task))
    assert far.predict(dask.array.from_array(X, chunks=(100, 2)), "10").compute().tolist() == home.predict(X, "10").tolist()
    far.save(tmp_path / "models")
    assert np.array_equal(mtmkl.load(tmp_path / "models").decision_function(X, task), home.decision_function(X, task))
    values = X[:, 0] + 0.1 * (task == 2)
    far = mtmkl.dask.MKLRegressor(KERNELS, new_tasks="common", client=client, keep="workers").fit(X, values, task=task)
    # What is new is predicted by all machines together, which come home for it.
    assert np.array_equal(far.predict(X[:5], "new"), far.plain().predict(X[:5], "new"))
    with pytest.raises(ValueError, match="was not fitted on the task 'new'"):
        far.set_params(new_tasks="error").predict(X[:5], "new")


def test_a_folder_is_written_whole_or_not_at_all(client, table, tmp_path, program, monkeypatch):
    X, y, _ = table
    far = mtmkl.dask.MKLClassifier(KERNELS, task="site", client=client, keep="workers", batches=3).fit(X, y)
    folder = tmp_path / "models"
    far.save(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert len(before) == 5
    add = mtmkl._folder.Writer.add

    def full(self, model, sets):
        if len(self._machines) == 2:
            raise OSError("no space left on device")
        add(self, model, sets)

    with monkeypatch.context() as patch:
        patch.setattr(mtmkl._folder.Writer, "add", full)
        with pytest.raises(OSError, match="no space"):
            far.save(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    far.save(folder)
    after = sorted(path.name for path in folder.iterdir())
    assert len(after) == 5 and set(after) & set(before) == {"index.json"}
    # A folder of somebody else's is left alone.
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "letters.txt").write_text("mine")
    with pytest.raises(ValueError, match="no folder of models"):
        far.save(tmp_path / "else")
    # The weights by themselves are taken for a model by nobody; the machines of each file are one.
    [weights] = folder.glob("weights-*")
    with pytest.raises(ValueError, match="load the folder"):
        mtmkl.load(weights)
    X.assign(state=y).to_csv(tmp_path / "rows.csv", index=False)
    refused = subprocess.run([program, "inspect", weights], capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "load the folder" in refused.stderr
    first = json.loads((folder / "index.json").read_text())["machines"][0]
    own = X[X["site"].isin(first["tasks"])].reset_index(drop=True)
    own.to_csv(tmp_path / "own.csv", index=False)
    done = subprocess.run([program, "predict", folder / first["file"], tmp_path / "own.csv"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert pd.read_csv(io.StringIO(done.stdout))["prediction"].tolist() == far.predict(own).tolist()
    # Without Dask it is read, a file at a time.
    code = (
        "import sys; sys.modules['dask'] = sys.modules['distributed'] = None; import mtmkl, pandas, pickle; "
        f"model = pickle.loads(pickle.dumps(mtmkl.load({str(folder)!r}))); "
        f"print(*model.predict(pandas.read_csv({str(tmp_path / 'own.csv')!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == far.predict(own).tolist()
    (folder / first["file"]).unlink()
    with pytest.raises(OSError, match=first["file"]):
        mtmkl.load(folder).predict(own)
    (folder / "index.json").write_text('{"format": 99, "weights": "w", "machines": []}')
    with pytest.raises(ValueError, match="use a newer mtmkl"):
        mtmkl.load(folder)


@pytest.mark.parametrize("way", ["partitions", "memory"])
def test_machines_that_are_lost_are_found_again(client, table, tmp_path, way):
    X, y, _ = table
    whole = X.assign(state=y)
    options = {"task": "site", "sharing": "pscs", "tol": 1e-6, "client": client, "keep": "workers"}
    estimator = mtmkl.dask.MKLClassifier(KERNELS, **options)
    cuts = np.array_split(np.arange(len(X)), 4)
    if way == "memory":
        far = estimator.fit(X, y)
    else:
        far = estimator.fit([dask.delayed(lambda own: own)(whole.iloc[own]) for own in cuts], "state")
    before = far.decision_function(X)
    for worker in sorted(client.scheduler_info()["workers"]):
        kill(client, [worker])
        assert np.abs(far.decision_function(X) - before).max() <= 0.02 * np.abs(before).max()
    lazy = far.decision_function(dask.dataframe.from_pandas(X, npartitions=2)).compute()
    assert np.abs(lazy - before).max() <= 0.02 * np.abs(before).max()
    # The certificate that is written is that of the machines that are there now.
    far.save(tmp_path / "models")
    again = mtmkl.load(tmp_path / "models")
    assert again.gap_ <= 1e-5
    verdict = again.verify(X, y)
    assert verdict, str(verdict)
    assert_parts_hold(tmp_path / "models", X, y, again.gap_)


def test_machines_whose_data_is_lost_for_good(client, table):
    X, y, _ = table
    far = mtmkl.dask.MKLClassifier(KERNELS, task="site", client=client, keep="workers")
    held = client.scatter([X.assign(state=y)], workers=[min(client.scheduler_info()["workers"])])
    far.fit(held, "state")
    kill(client, sorted(client.scheduler_info()["workers"]))
    with pytest.raises(ClusterError, match="cannot be made again"):
        far.predict(X)


def test_a_search_on_a_cluster_is_that_of_one_machine(client, table, monkeypatch):
    X, y, _ = table
    grid = [{"C": [0.1, 1.0, 10.0], "sharing": ["pscs", "uniform"]}, {"kernels": [["linear"]], "C": [1.0]}]
    plain = mtmkl.MKLClassifier(KERNELS, task="site", random_state=0)
    for given in (grid, None):
        here = mtmkl.MKLSearchCV(plain, given, cv=3).fit(X, y)
        there = mtmkl.dask.MKLSearchCV(plain, given, cv=3, client=client).fit(X, y)
        assert there.best_params_ == here.best_params_ and there.best_index_ == here.best_index_
        for name, column in here.cv_results_.items():
            if "time" not in name:
                np.testing.assert_array_equal(there.cv_results_[name], column, err_msg=name)
        assert type(there.best_estimator_) is mtmkl.MKLClassifier
        assert (there.predict(X) == here.predict(X)).all()
    # One of the cluster is fitted there in the end.
    far = mtmkl.dask.MKLClassifier(KERNELS, task="site", client=client, keep="workers")
    search = clone(mtmkl.dask.MKLSearchCV(far, {"C": [0.1, 10.0]}, cv=2, client=client)).fit(X, y)
    assert type(search.best_estimator_) is mtmkl.dask.MKLClassifier and search.best_estimator_.client is client
    assert (search.predict(X) == search.best_estimator_.plain().predict(X)).all()
    with pytest.raises(ValueError, match="transfer"):
        shared = mtmkl.MKLClassifier(KERNELS, task="site", transfer=["all", "own"])
        mtmkl.dask.MKLSearchCV(shared, {"C": [1.0]}, cv=2, client=client).fit(X, y)


def _dying(arguments, run, rounds, number):
    """Follows a chain; the first worker that comes to the second one dies with it."""
    told = _search.follow(arguments, run, rounds, number)
    mark = Path(os.environ["MTMKL_TEST_MARK"])
    if number == 1 and not mark.exists():
        mark.write_text("dead")
        os.kill(os.getpid(), signal.SIGKILL)
    return told


def test_a_search_goes_on_when_a_worker_is_lost(client, table, tmp_path, monkeypatch):
    X, y, _ = table
    client.run(os.environ.__setitem__, "MTMKL_TEST_MARK", str(tmp_path / "mark"))
    original = Client.submit

    def submit(self, function, *arguments, **options):
        return original(self, _marked(str(tmp_path / "mark")) if function is _search.follow else function, *arguments, **options)

    monkeypatch.setattr(Client, "submit", submit)
    plain = mtmkl.MKLClassifier(KERNELS, task="site")
    here = mtmkl.MKLSearchCV(plain, {"C": [0.1, 1.0]}, cv=3).fit(X, y)
    there = mtmkl.dask.MKLSearchCV(plain, {"C": [0.1, 1.0]}, cv=3, client=client).fit(X, y)
    assert (tmp_path / "mark").exists()
    np.testing.assert_array_equal(there.cv_results_["mean_test_score"], here.cv_results_["mean_test_score"])
    assert there.best_params_ == here.best_params_


def _marked(mark: str):
    def follow(arguments, run, rounds, number):
        os.environ["MTMKL_TEST_MARK"] = mark
        return _dying(arguments, run, rounds, number)

    return follow


def test_control_c_ends_a_search(client, table, monkeypatch):
    X, y, _ = table
    together = _search._Search._followed

    async def interrupted(self, numbers):
        os.kill(os.getpid(), signal.SIGINT)
        return await together(self, numbers)

    search = mtmkl.dask.MKLSearchCV(mtmkl.MKLClassifier(KERNELS, task="site"), {"C": [0.1, 1.0]}, cv=3, client=client)
    with monkeypatch.context() as patch:
        patch.setattr(_search._Search, "_followed", interrupted)
        with pytest.raises(KeyboardInterrupt):
            search.fit(X, y)
    assert search.fit(X, y).best_score_ > 0.5
