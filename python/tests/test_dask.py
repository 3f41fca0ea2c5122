"""The estimators on a real cluster of two processes say what they say on one machine, wherever the data is."""

from __future__ import annotations

import asyncio
import inspect
import pickle
import pydoc
import re
import subprocess
import sys
from itertools import chain

import dask
import dask.array
import dask.dataframe
import numpy as np
import pandas as pd
import pytest
from conftest import ROOT
from distributed import Client, LocalCluster
from scipy import sparse
from sklearn.base import clone

import mtmkl
import mtmkl.dask

KERNELS = ["linear", "rbf:sigma=median*0.5|2", "rbf:gamma=scale@a,b"]
SHARINGS = {"common": "common", "pscs": "pscs", "group": "group", "independent": "independent", "tang": mtmkl.Tang(beta=0.5)}
NAMES = ["MKLClassifier", "MKLRegressor", "MKLOneClassSVM", "MKLSVDD"]


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Nine tasks of different sizes, mixed: columns of different scales, one of two values."""
    rng = np.random.default_rng(11)
    parts = []
    for task in range(9):
        count = int(rng.integers(24, 48))
        frame = pd.DataFrame(rng.normal(size=(count, 4)) * [1.0, 5.0, 0.1, 1.0], columns=list("abcd"))
        frame["flag"] = rng.integers(0, 2, size=count).astype(float)
        signal = frame["a"] * frame["b"] / 5 if task % 2 else frame["a"] + 10 * frame["c"] - frame["flag"]
        frame["site"] = f"site {task}"
        frame["y"] = signal + 0.2 * rng.normal(size=count)
        parts.append(frame)
    whole = pd.concat(parts, ignore_index=True).sample(frac=1, random_state=0, ignore_index=True)
    values = whole.pop("y")
    return whole, pd.Series(np.where(values > values.median(), "sick", "well"), name="state"), values


def targets(name: str, table) -> pd.Series | None:
    _, labels, values = table
    return {"MKLClassifier": labels, "MKLRegressor": values}.get(name)


def both(name: str, client: Client, **parameters):
    near = getattr(mtmkl, name)(KERNELS, task="site", **parameters)
    far = getattr(mtmkl.dask, name)(KERNELS, task="site", client=client, **parameters)
    return near, far


def assert_same(near, far, X: pd.DataFrame) -> None:
    """Each answer is within its gap of the one optimum."""
    assert far.status_ == "converged"
    assert far.bound_ <= far.objective_
    lower, upper = max(near.bound_, far.bound_), min(near.objective_, far.objective_)
    assert lower <= upper, "two certificates that contradict each other"
    assert far.tasks_.tolist() == near.tasks_.tolist()
    assert far.kernel_names_ == near.kernel_names_
    # The kernels themselves: medians and variances are those of one machine to the bit, what is a sum over all rows to its rounding.
    specs = list(zip(far._model.kernel_specs, near._model.kernel_specs, strict=True))
    assert all(ours == theirs for ours, theirs in specs[:3])
    [(ours, theirs)] = specs[3:]
    numbers = [[float(number) for number in re.findall(r"=([-+.e0-9]+)", spec)] for spec in (ours, theirs)]
    assert np.allclose(*numbers, rtol=1e-12, atol=0.0)
    assert far.kernel_weights_.shape == near.kernel_weights_.shape
    ours = near.predict(X) if isinstance(near, mtmkl.MKLRegressor) else near.decision_function(X)
    theirs = far.plain().predict(X) if isinstance(near, mtmkl.MKLRegressor) else far.plain().decision_function(X)
    assert np.abs(ours - theirs).max() <= 0.05 * np.abs(ours).max()


@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("name", NAMES)
def test_every_estimator_and_sharing_is_that_of_one_machine(client, table, name, sharing):
    X, y = table[0], targets(name, table)
    if name == "MKLSVDD" and sharing != "tang":
        # Spheres need weights of fixed mass; on both sides the same sharing is refused, and a simplex of all takes its place.
        near, far = both(name, client, sharing=SHARINGS[sharing])
        for refused in (near, far):
            with pytest.raises(ValueError, match="mass"):
                refused.fit(X, y)
        simplex = mtmkl.Common(mtmkl.Simplex()) if sharing in ("common", "pscs") else mtmkl.Independent(mtmkl.Simplex())
        near, far = both(name, client, sharing=simplex, tol=1e-6)
    else:
        near, far = both(name, client, sharing=SHARINGS[sharing], tol=1e-6)
    with pytest.warns() if name in ("MKLOneClassSVM", "MKLSVDD") else _nothing():
        near.fit(X, y)
    far.fit(X, y)
    assert_same(near, far, X)
    calls = [own for own in far.rounds_ if own["name"] == "evaluate"]
    assert len(calls) == far.n_iter_ and not any(own["repeated"] for own in far.rounds_)


class _nothing:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


def test_data_from_everywhere_gives_the_same_answer(client, table):
    X, y, _ = table
    near = mtmkl.MKLClassifier(KERNELS, task="site", tol=1e-6).fit(X, y)
    estimator = mtmkl.dask.MKLClassifier(KERNELS, task="site", tol=1e-6, client=client)
    whole = X.assign(state=y)
    frame = dask.dataframe.from_pandas(whole, npartitions=5)
    cuts = np.array_split(np.arange(len(X)), 4)
    futures = client.scatter([whole.iloc[own] for own in cuts])
    delayed = [dask.delayed(whole.iloc[own]) for own in cuts]
    ways = {
        "memory": (X, y),
        "dask DataFrame and Series": (frame.drop(columns="state"), frame["state"]),
        "dask DataFrame with the target in it": (frame, "state"),
        "futures": (futures, "state"),
        "delayed, with an empty one": ([*delayed, dask.delayed(whole.iloc[:0])], "state"),
    }
    for way, (rows, target) in ways.items():
        far = estimator.fit(rows, target)
        assert_same(near, far, X)
        # Rows are counted through as one machine counts them.
        assert far.support_.tolist() == near.support_.tolist(), way
    by_task = {name: own.drop(columns="site") for name, own in whole.groupby("site")}
    held = {name: client.submit(lambda own: own, own, pure=False) for name, own in by_task.items()}
    for rows in (held, by_task):
        far = mtmkl.dask.MKLClassifier(KERNELS, tol=1e-6, client=client).fit(rows, "state")
        assert far.tasks_.tolist() == near.tasks_.tolist()
        assert max(near.bound_, far.bound_) <= min(near.objective_, far.objective_)


@pytest.mark.parametrize("scale", ["standard", "minmax", "none"])
def test_sparse_rows_are_what_they_are_on_one_machine(client, scale):
    rng = np.random.default_rng(8)
    count = 300
    X = sparse.csr_array(np.where(rng.random((count, 6)) < 0.3, rng.normal(size=(count, 6)) * [1, 5, 0.1, 1, 1, 1], 0.0))
    X = sparse.hstack([X, (rng.random((count, 1)) < 0.2).astype(float)], format="csr")
    task = np.repeat(["a", "b", "c"], count // 3)
    dense = X.toarray()
    y = np.where(dense[:, 0] + dense[:, 1] / 5 + 0.2 * rng.normal(size=count) > 0.05, "yes", "no")
    parameters = {"scale": scale, "sharing": "pscs", "tol": 1e-6}
    near = mtmkl.MKLClassifier(**parameters).fit(X, y, task=task)
    order = rng.permutation(count)
    X, y, task = X[order], y[order], task[order]
    cuts = np.array_split(np.arange(count), 4)
    pieces = [dask.delayed(X[own]) for own in cuts]
    meta = sparse.csr_array((0, X.shape[1]))
    shapes = [(len(own), X.shape[1]) for own in cuts]
    blocks = [dask.array.from_delayed(piece, shape=shape, meta=meta) for piece, shape in zip(pieces, shapes, strict=True)]
    array = dask.array.concatenate(blocks)
    along = [dask.array.from_array(values, chunks=(tuple(map(len, cuts)),)) for values in (y, task)]
    ways = {
        "memory": (X, y, task),
        "delayed": (pieces, [dask.delayed(y[own]) for own in cuts], [dask.delayed(task[own]) for own in cuts]),
        "array": (array, *along),
    }
    for way, (rows, target, tasks) in ways.items():
        far = mtmkl.dask.MKLClassifier(**parameters, client=client).fit(rows, target, task=tasks)
        assert max(near.bound_, far.bound_) <= min(near.objective_, far.objective_), way
        pairs = zip(near._model.kernel_specs, far._model.kernel_specs, strict=True)
        assert all(ours.split("=")[0] == theirs.split("=")[0] for ours, theirs in pairs)
        ours, theirs = near.decision_function(X, task), far.decision_function(X, task)
        assert np.abs(ours - theirs).max() <= 0.01 * np.abs(ours).max(), way
        assert sparse.issparse(far.support_vectors_)
        assert far.verify(X, y, task=task), way
    assert np.array_equal(far.decision_function(array, along[1]).compute(), theirs)
    with pytest.raises(ValueError, match="partition 1 has sparse rows"):
        mixed = [dask.delayed(dense[:100]), dask.delayed(X[100:])]
        cut = [slice(0, 100), slice(100, count)]
        mtmkl.dask.MKLClassifier(client=client).fit(
            mixed, [dask.delayed(y[own]) for own in cut], task=[dask.delayed(task[own]) for own in cut]
        )


def test_tasks_that_lie_on_workers_stay_there(client, table):
    X, y, _ = table
    whole = X.assign(state=y)
    workers = list(client.scheduler_info()["workers"])
    names = sorted(whole["site"].unique())
    held = [client.submit(lambda own: own, whole[whole["site"].isin(names[at::2])], workers=[workers[at]], pure=False) for at in range(2)]

    def moved(dask_worker) -> list[str]:
        return [
            key for entry in dask_worker.transfer_incoming_log for key in entry["keys"] if str(key).startswith(("mtmkl-part", "mtmkl-read"))
        ]

    before = list(chain(*client.run(moved).values()))
    far = mtmkl.dask.MKLClassifier(KERNELS, task="site", client=client).fit(held, "state")
    assert far.status_ == "converged"
    assert list(chain(*client.run(moved).values())) == before


def test_many_classes_weights_and_arrays(client):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(240, 3))
    task = np.repeat([1, 2, 10], 80)
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1] * (task == 2), [-0.4, 0.4])
    weight = rng.integers(0, 3, size=240).astype(float)
    parameters = {"class_weight": "balanced", "sharing": "pscs", "tol": 1e-6}
    near = mtmkl.MKLClassifier(**parameters).fit(X, y, weight, task)
    far = mtmkl.dask.MKLClassifier(**parameters, client=client, batches=3).fit(X, y, weight, task)
    assert max(near.bound_, far.bound_) <= min(near.objective_, far.objective_)
    assert far.tasks_.tolist() == near.tasks_.tolist() and far.classes_.tolist() == [0, 1, 2]
    assert (far.predict(X, task) == near.predict(X, task)).mean() > 0.99
    lazy = far.predict(dask.array.from_array(X, chunks=(100, 3)), dask.array.from_array(task, chunks=70))
    assert isinstance(lazy, dask.array.Array) and lazy.dtype == far.classes_.dtype
    assert lazy.compute().tolist() == far.predict(X, task).tolist()
    scores = far.decision_function(dask.array.from_array(X, chunks=(100, 3)), "10")
    assert np.allclose(scores.compute(), far.decision_function(X, "10"))


def test_larger_tasks_start_from_fewer_samples(client):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1300, 4))
    task = np.repeat(["a", "b"], 650)
    y = X[:, 0] * X[:, 1] + np.where(task == "a", X[:, 2], 0.0) + 0.1 * rng.normal(size=1300)
    near = mtmkl.MKLRegressor(sharing="pscs").fit(X, y, task=task)
    far = mtmkl.dask.MKLRegressor(sharing="pscs", client=client).fit(X, y, task=task)
    assert max(near.bound_, far.bound_) <= min(near.objective_, far.objective_)
    names = [own["name"] for own in far.rounds_]
    assert "finer" in names and far.n_iter_ == near.n_iter_


def test_a_fitted_estimator_is_an_ordinary_one(client, table, tmp_path):
    X, y, _ = table
    far = mtmkl.dask.MKLClassifier(KERNELS, task="site", client=client).fit(X, y)
    again = pickle.loads(pickle.dumps(far))
    assert type(again) is mtmkl.MKLClassifier
    assert (again.predict(X) == far.predict(X)).all()
    far.save(tmp_path / "model.mtmkl")
    loaded = mtmkl.load(tmp_path / "model.mtmkl")
    assert (loaded.decision_function(X) == far.decision_function(X)).all()
    assert loaded.get_params()["task"] == "site" and "certif" in far.report().lower()
    lazy = far.predict(dask.dataframe.from_pandas(X, npartitions=3))
    assert lazy.compute().tolist() == far.predict(X).tolist()
    # Where there is no Dask it is read all the same.
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(far))
    code = (
        "import sys; sys.modules['dask'] = sys.modules['distributed'] = None; import pickle; "
        f"model = pickle.load(open({str(tmp_path / 'model.pickle')!r}, 'rb')); print(model.gap_ <= 1e-4)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
    unfitted = pickle.loads(pickle.dumps(mtmkl.dask.MKLClassifier(C=3.0, client=client)))
    assert type(unfitted) is mtmkl.dask.MKLClassifier and unfitted.C == 3.0 and unfitted.client is None


def test_under_asyncio_fit_is_awaited(client, table):
    X, y, _ = table
    ticks = 0

    async def fit():
        nonlocal ticks

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        clock = asyncio.create_task(tick())
        async with Client(client.scheduler.address, asynchronous=True) as own:
            model = await mtmkl.dask.MKLClassifier(KERNELS, task="site", client=own).fit(X, y)
        clock.cancel()
        return model

    model = asyncio.run(fit())
    assert model.status_ == "converged" and ticks > 3


def test_cross_validation_runs_on_the_workers(client, table):
    from joblib import parallel_config
    from sklearn.model_selection import GridSearchCV

    X, y, _ = table
    search = GridSearchCV(mtmkl.MKLClassifier(task="site"), {"C": [0.1, 1.0, 10.0]}, cv=3)
    here = search.fit(X, y).cv_results_["mean_test_score"]
    with parallel_config(backend="dask"):
        there = search.fit(X, y).cv_results_["mean_test_score"]
    assert np.allclose(here, there)


def test_progress_is_told(client, table, capfd):
    X, y, _ = table
    passes: list[dict[str, float]] = []
    far = mtmkl.dask.MKLClassifier(KERNELS, task="site", client=client, progress=passes.append).fit(X, y)
    assert [int(own["number"]) for own in passes] == list(range(1, far.n_iter_ + 1))
    mtmkl.dask.MKLClassifier(KERNELS, task="site", client=client, progress=True).fit(X, y)
    assert "gap" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"kernels": "precomputed"}, "precomputed.*give specifications, or fit the estimator of mtmkl"),
        ({"kernels": [lambda a, b: a @ b.T]}, "callable.*give specifications, or fit the estimator of mtmkl"),
        ({"transfer": ["all", "own"]}, "transfer.*fit the estimator of mtmkl"),
        ({"C": "auto"}, "auto.*search with mtmkl.dask.MKLSearchCV"),
        ({"probability": True}, "probabilities.*or fit the estimator of mtmkl"),
        ({"machine": "logistic"}, "probabilities.*say probability=False and machine='svc'"),
        ({"indefinite": "allow"}, "indefinite.*or fit the estimator of mtmkl"),
        ({"batches": 0}, "batches"),
        ({"keep": "here"}, "expected 'client' or 'workers'"),
        ({"timeout": -1.0}, "timeout"),
        ({"progress": 3}, "progress"),
        ({"solver": "magic"}, "solver"),
    ],
)
def test_what_a_cluster_cannot_do_is_refused(client, table, parameters, words):
    X, y, _ = table
    with pytest.raises(ValueError, match=words):
        mtmkl.dask.MKLClassifier(task="site", client=client).set_params(**parameters).fit(X, y)


def test_the_example_of_the_page_runs(tmp_path):
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    code = page.split("```python\n", 1)[1].split("```", 1)[0]
    script = tmp_path / "example.py"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "12 tasks, proven to be within" in done.stdout and (tmp_path / "sites.mtmkl").exists()


@pytest.mark.parametrize("name", NAMES)
def test_parameters_and_documentation_are_those_of_the_plain_ones_and_five_more(name):
    """As Python, help() and scikit-learn see them."""
    plain, own = (getattr(module, name) for module in (mtmkl, mtmkl.dask))
    more = ["client", "batches", "timeout", "progress", "keep"]
    known, signature = (inspect.signature(one).parameters for one in (plain, own))
    assert {key: value.default for key, value in signature.items() if key in known} == {key: value.default for key, value in known.items()}
    assert list(signature)[len(known) :] == more
    assert sorted(own().get_params()) == sorted([*plain().get_params(), *more])
    assert clone(own(p=3.0, batches=2)).get_params()["p"] == 3.0
    with pytest.raises(TypeError, match=f"{name}: .*'colour'"):
        own(colour="red")
    help = pydoc.render_doc(own, renderer=pydoc.plaintext)
    told = inspect.getdoc(own)
    for parameter in signature:
        assert re.search(rf"^(\w+, )*{parameter}(, \w+)* : ", told, re.MULTILINE), parameter
        assert parameter in help
    sections = inspect.getdoc(plain).split("\nExamples\n")[0].split("\n\nAttributes\n----------\n")
    assert sections[0].split("\n\n", 1)[1] in told and sections[1].strip() in told and "rounds_ :" in told
