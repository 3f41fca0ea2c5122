"""The estimators on a cluster: parameters of the plain ones, and a few more."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import secrets
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .. import _classifier, _core, _one_class, _regressor
from .._base import MKLEstimator, class_values
from .._classifier import discrete, ordered
from .._kernels import resolve
from .._sharing import sharing_spec
from .._table import Rows, text
from .._transfer import is_wanted
from .._warnings import DataWarning
from . import _worker
from ._cluster import Cluster
from ._data import Pieces, batched, given, is_lazy, pieces_of
from ._held import Held
from ._lazy import lazily
from ._pieces import Summary, aligned, arrived, spread, wired
from ._rounds import Solving, bar
from ._sparse import stacked

#: What the estimators here take beside the parameters of the plain ones, and what they have beside their attributes.
_FURTHER_PARAMETERS = """\
client : distributed.Client, optional
    The cluster; by default the client that was made last.
batches : int, optional
    In how many batches tasks are solved. By default one for each worker: one call per worker and round. ``memory_limit`` is for each.
timeout : float, default=60.0
    Seconds that the cluster may be without workers, or its scheduler without an answer.
progress : bool or callable, optional
    True shows a bar with the gap; a function is told of each pass.
keep : {"client", "workers"}, default="client"
    Where the machines are after the fit: in the estimator, which is then an ordinary one, or on the workers, for more than one memory
    holds. There they predict, and ``save(folder)`` writes them as a folder of models, which `mtmkl.load` reads.
"""
_FURTHER_ATTRIBUTES = """\
rounds_ : list of dict
    Of each round of calls how long it took, how many bytes of arrays went and came, and how many calls were made again.
"""
_FURTHER = ("client", "batches", "timeout", "progress", "keep")


def _documented(plain: type) -> str:
    """What the plain estimator says of itself, with what is more here; its example is of one machine."""
    if plain.__doc__ is None:
        # Python leaves documentation out with -OO.
        return ""
    told = inspect.cleandoc(plain.__doc__).split("\nExamples\n")[0].rstrip()
    head, _, rest = told.partition("\n\n")
    parameters, attributes = rest.split("\n\nAttributes\n")
    first = f"`mtmkl.{plain.__name__}` on a Dask cluster: {head[0].lower()}{head[1:]}"
    return f"{first}\n\n{parameters}\n{_FURTHER_PARAMETERS}\nAttributes\n{attributes}\n{_FURTHER_ATTRIBUTES}"


def a_client(given: Any) -> Any:
    """The client that was given, or the one that was made last."""
    from distributed import get_client

    if given is not None:
        return given
    try:
        return get_client()
    except ValueError:
        raise ValueError("there is no Dask client; make one, client = Client(cluster), or give client=…") from None


def cloned(estimator: Any) -> Any:
    """As `sklearn.base.clone` does it, on the same client: a connection has no copy."""
    own = estimator.get_params(deep=False)
    return type(estimator)(**{name: value if name == "client" else clone(value, safe=False) for name, value in own.items()})


class _OnCluster(MKLEstimator):
    """What the estimators on a cluster have in common."""

    #: The estimator that this is on one machine.
    _plain_class: type[MKLEstimator]

    client: Any
    batches: int | None
    timeout: float
    progress: Any
    keep: str

    def __init__(
        self,
        kernels: Any = None,
        *,
        client: Any = None,
        batches: int | None = None,
        timeout: float = 60.0,
        progress: bool | Callable[[dict[str, float]], None] | None = None,
        keep: str = "client",
        **parameters: Any,
    ) -> None:
        self._plain_class.__init__(self, kernels, **parameters)  # type: ignore[call-arg]
        self.client = client
        self.batches = batches
        self.timeout = timeout
        self.progress = progress
        self.keep = keep

    def __init_subclass__(cls, **options: Any) -> None:
        """Arguments and documentation are the plain estimator's and a few more, where help() and scikit-learn look for them."""
        super().__init_subclass__(**options)
        if "_plain_class" not in vars(cls):
            return
        own = inspect.signature(_OnCluster.__init__).parameters
        plain = inspect.signature(cls._plain_class.__init__).parameters

        def __init__(self: Any, *arguments: Any, **named: Any) -> None:
            try:
                signature.bind(self, *arguments, **named)
            except TypeError as error:
                raise TypeError(f"{cls.__name__}: {error}") from None
            _OnCluster.__init__(self, *arguments, **named)

        signature = inspect.Signature([*plain.values(), *(own[name] for name in _FURTHER)])
        __init__.__signature__ = signature  # type: ignore[attr-defined]
        cls.__init__ = __init__  # type: ignore[method-assign]
        cls.__doc__ = _documented(cls._plain_class)

    # -- the plain one -----------------------------------------------------------------------------------------------------------------

    def _kept_params(self) -> dict[str, Any]:
        return {name: value for name, value in self.get_params(deep=False).items() if name not in _FURTHER}

    def plain(self) -> Any:
        """The same estimator for one machine, fitted where this one is: it knows nothing of Dask, and has all machines."""
        plain = self._without_dask()
        return plain if self._elsewhere is None else plain._with(self._elsewhere)._at_home()

    def _without_dask(self) -> Any:
        """The same estimator for one machine, with such machines as the model has."""
        plain = self._plain_class(**self._kept_params())
        fitted = {name: value for name, value in vars(self).items() if name not in self.get_params(deep=False)}
        for name, value in fitted.items():
            if name not in ("rounds_", "own_seconds_", "_elsewhere"):
                setattr(plain, name, value)
        return plain

    def _at_home(self) -> Any:
        return self.plain() if self._elsewhere is not None else self

    def __sklearn_clone__(self) -> Any:
        return cloned(self)

    def __reduce__(self) -> Any:
        """A fitted estimator is pickled as the plain one, so that it can be read where there is no Dask; another one without its client."""
        if self._elsewhere is not None:
            raise pickle.PicklingError("the machines are on the workers, not in the estimator: save(folder) keeps them, or pickle plain()")
        if hasattr(self, "_model"):
            return copy.copy, (self.plain(),)
        return type(self), (), {**self.get_params(deep=False), "client": None}

    def _problem_of(self, X: Any, y: Any, sample_weight: Any, task: Any) -> Any:
        return self._without_dask()._problem_of(X, y, sample_weight, task)

    def save(self, path: Any) -> None:
        """Write the model to a file that `mtmkl.load` and the program `mtmkl` read; with ``keep="workers"``, a folder of models.

        In a folder each batch is a file of its own, which both read, and an index says which tasks are where. What such a file states is
        true of its tasks at their weights; what is certified of the whole stands in the index. `mtmkl.load` reads the folder.

        Parameters
        ----------
        path : path
            The file, which is replaced as a whole or not at all; or the folder, which is made where there is none. One that has files
            already must be a folder of models.
        """
        check_is_fitted(self)
        if isinstance(self._elsewhere, Held):
            self._elsewhere.save(path, self._model)
        else:
            super().save(path)

    # -- fit ---------------------------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, task: Any = None) -> Any:
        """Learn kernel weights and machines on the workers of a cluster.

        Parameters
        ----------
        X : dask DataFrame or array, list of futures or delayed partitions, mapping from task to rows or future, or rows in memory
            The samples. Tasks may lie in any partitions: rows are brought together by task once. Where each task lies on one worker
            already, nothing is moved. Of a mapping the keys are the tasks. Rows in memory are sent to the workers by task.
        y : like X, or the name of a column of X
            The targets, partitioned as X is.
        sample_weight : like X, or the name of a column of X, optional
            How often each sample counts.
        task : like X, optional
            The task of each sample, where X has no column for it.

        Returns
        -------
        self, or with an asynchronous client something to await that gives it
        """
        client = a_client(self.client)
        return client.sync(self._fit, client, X, y, sample_weight, task)

    async def _fit(self, client: Any, X: Any, y: Any, sample_weight: Any, task: Any) -> Any:
        started = time.perf_counter()
        self._check_parameters()
        cluster = Cluster(client, secrets.token_hex(8), self._positive("timeout"))
        try:
            estimator = self._plain_class(**self._kept_params())
            pieces = await pieces_of(cluster, estimator, given(X, y, sample_weight, task))
            await self._solve_on(cluster, pieces, estimator, started)
        finally:
            await cluster.forget()
        return self

    def _check_parameters(self) -> None:
        if isinstance(self.kernels, str) and self.kernels == "precomputed":
            raise ValueError(
                'kernels is "precomputed", but on a cluster kernels are computed where the samples are; give specifications, or fit the '
                "estimator of mtmkl"
            )
        if is_wanted(self):
            raise ValueError("transfer makes one machine of all tasks, which is one worker's work; fit the estimator of mtmkl")
        if self.indefinite == "allow":
            raise ValueError("indefinite is 'allow', which is for one machine; say 'check' or 'assume', or fit the estimator of mtmkl")
        if self._is_auto():
            raise ValueError("a price that is 'auto' is chosen on one machine; give a number, or search with mtmkl.dask.MKLSearchCV")
        if self._wants_probabilities():
            raise ValueError(
                "probabilities are calibrated on one machine; say probability=False and machine='svc', or fit the estimator of mtmkl"
            )
        if self.batches is not None and (not isinstance(self.batches, int | np.integer) or self.batches < 1):
            raise ValueError(f"batches is {self.batches!r}, expected None (one for each worker) or a whole number from 1")
        if self.keep not in ("client", "workers"):
            raise ValueError(f"keep is {self.keep!r}, expected 'client' or 'workers'")
        if not (self.progress is None or isinstance(self.progress, bool) or callable(self.progress)):
            raise ValueError(f"progress is {self.progress!r}, expected None, True or a function of a dictionary")

    def _positive(self, name: str) -> float:
        value = self._number(name)
        if value <= 0:
            raise ValueError(f"{name} is {value!r}, expected a number of seconds > 0")
        return value

    async def _solve_on(self, cluster: Cluster, pieces: Pieces, estimator: MKLEstimator, started: float) -> None:
        columns = pieces.summaries[0].columns
        self._name_columns(columns)
        self._name_columns(columns, estimator)
        extra, by_task = self._goal(pieces.summaries, estimator)
        kernels = resolve(
            _core.usual_kernels_without_targets() if self.kernels is None and self._kind == "none" else self.kernels,
            columns.names,
            columns.indices,
        )
        if kernels.calls:
            raise ValueError("callable kernels are for one machine; give specifications, or fit the estimator of mtmkl")
        features = [name for name, at in zip(columns.names, columns.indices, strict=True) if at >= 0]
        has_tasks = columns.has_tasks
        scales = await self._scales(pieces, [spec for _, spec in kernels.pairs])
        only = columns.target_name or "all"
        await batched(pieces, self.batches)
        frames = [
            _worker.Frame(
                estimator,
                features,
                scales,
                columns.target_name or "target" if self._kind != "none" else None,
                columns.task_name or "task" if has_tasks else None,
                by_task(home.tasks if has_tasks else []),
                getattr(self, "classes_", None),
                only,
            )
            for home in cluster.homes
        ]
        whole = by_task(None if has_tasks else [])
        frame = _core.Frame(features, scales, frames[0].target, frames[0].task, json.dumps(whole))
        rows = pieces.rows if self.keep == "client" else None
        pieces.read.clear()
        described = await self._describe(cluster, frames)
        order = _order(described, frame.task is not None)
        settled, normalize = _core.settled_kernels(
            kernels.pairs, self._normalize(), features, *_measured(described, order), _moments(described)
        )
        positions, names, totals = _positions(described, order)
        machine, shares = self._machine(totals)
        recipes = [
            _worker.Recipe(
                own,
                settled,
                normalize,
                json.dumps(machine),
                np.array(shares)[positions[number].astype(np.intp)],
                getattr(self, "target_scale", "none"),
                self._definiteness(),
                self._limits(),
            )
            for number, own in enumerate(frames)
        ]
        self._hand_out(cluster, "recipe", recipes)
        sharing = sharing_spec(
            self.sharing, {name: self._number(name) for name in ("p", "q", "radius")}, machine, len(names), frame.is_by_class, names
        )
        if self.solver not in ("newton", "epf"):
            raise ValueError(f"solver is {self.solver!r}, expected 'newton' or 'epf'")
        held = Held(cluster, order) if self.keep == "workers" else None
        notes: list[dict[str, str]] = []
        for own, told in zip(frames, described, strict=True) if held is not None else ():
            of_part = _core.Frame(features, scales, own.target, own.task, json.dumps(own.goal))
            notes.append(self._notes(of_part, _cut(told["origins"], told["samples"]), {**extra, "part": True}))
        solving = Solving(
            cluster,
            positions,
            json.dumps(machine),
            json.dumps(sharing),
            json.dumps({"name": self.solver}),
            len(settled),
            self._limits(),
            None if rows is None else [aligned(own["origins"], np.int64) for own in described],
            self.precision == "single",
            held,
            notes,
            bar(self._number("tol")) if self.progress is True else self.progress or None,
        )
        parts = await solving.solve()
        assert solving.outer is not None
        origins = _by_set([own["origins"] for own in described], [own["samples"] for own in described], order)
        about: dict[str, Any] = {
            "rows": None if rows is None else wired(rows),
            "kernels": settled,
            "machine": json.dumps(machine),
            "normalize": normalize,
            "frame": frame,
            "kernel_seconds": solving.kernel_seconds,
            "solve_seconds": time.perf_counter() - started - solving.kernel_seconds,
            "notes": self._notes(frame, origins, extra),
            "before": solving.before,
        }
        model = solving.outer.model(parts, order, **about)
        if held is not None:
            held.certified = lambda told: solving.certified(told, order, about)
            model = model.without_machines()
        self._calls = ()
        self._elsewhere = held
        self._adopt(model)
        self.rounds_ = [vars(round) for round in cluster.rounds]
        self.own_seconds_ = solving.own_seconds
        self._warn(model, solving.storages)

    def _name_columns(self, columns: Any, estimator: Any = None) -> None:
        target = self if estimator is None else estimator
        target.n_features_in_ = columns.features
        if columns.given is not None:
            target.feature_names_in_ = np.array(columns.given, dtype=object)
        elif hasattr(target, "feature_names_in_"):
            del target.feature_names_in_

    def _goal(self, summaries: list[Summary], estimator: MKLEstimator) -> tuple[dict[str, Any], Callable[[list[str] | None], Any]]:
        """What is noted of the targets, and the goal for some tasks (None: all)."""
        goal = "regression" if self._kind == "values" else "one-class"
        return {}, lambda _: goal

    async def _scales(self, pieces: Pieces, specs: list[str]) -> list[tuple[float, float]]:
        """The scales of the columns, from sums over all pieces: to 40 digits the same as from all rows at once."""
        own = [summary for summary in pieces.summaries if summary.low is not None]
        weight = sum(summary.weight for summary in own)
        if not own or weight <= 0:
            raise ValueError("sample_weight is 0 for all rows")
        low = np.min(np.array([summary.low for summary in own]), axis=0)
        high = np.max(np.array([summary.high for summary in own]), axis=0)
        mean = np.sum(np.array([summary.sums for summary in own]), axis=0) / weight
        spreads = await pieces.map("spread", spread, mean, low, high)
        deviation = np.sqrt(np.sum([squares for squares, _ in spreads], axis=0) / weight)
        is_binary = np.all([binary for _, binary in spreads], axis=0)
        moments = list(zip(low.tolist(), high.tolist(), mean.tolist(), deviation.tolist(), is_binary.tolist(), strict=True))
        return _core.scales_of_moments(moments, str(self.scale), specs, own[0].columns.is_sparse)

    async def _describe(self, cluster: Cluster, frames: list[_worker.Frame]) -> list[dict[str, Any]]:
        self._hand_out(cluster, "frame", frames)
        sets = sum(len(home.tasks) for home in cluster.homes)
        return await cluster.everywhere("describe", _worker.describe, [{"sets": sets}] * len(frames))

    def _hand_out(self, cluster: Cluster, name: str, values: list[Any]) -> None:
        """Each batch's own."""
        for home, value in zip(cluster.homes, values, strict=True):
            home.recipe = cluster.hand_over(name, home, value)

    def _warn(self, model: _core.Model, storages: set[str]) -> None:
        if not model.converged:
            warnings.warn(self._not_converged(), ConvergenceWarning, stacklevel=2)
        if self.storage is None and storages - {"kept"}:
            warnings.warn(
                "the kernel matrices of a batch do not fit into memory_limit (GiB) or its worker's memory, so their values were made on "
                "demand, which may be slower; more workers with smaller batches keep them",
                UserWarning,
                stacklevel=2,
            )

    # -- prediction --------------------------------------------------------------------------------------------------------------------

    def predict(self, X: Any, task: Any = None) -> Any:
        """As the plain estimator's `predict`; lazily on a dask collection."""
        if is_lazy(X):
            kind = {"labels": getattr(getattr(self, "classes_", None), "dtype", None), "values": np.float64, "none": np.int64}[self._kind]
            return self._lazily("predict", X, task, None, kind)
        return super().predict(X, task)

    def _lazily(self, method: str, X: Any, task: Any, columns: int | None, kind: Any) -> Any:
        check_is_fitted(self)
        held = self._elsewhere if isinstance(self._elsewhere, Held) else None
        return lazily(self._without_dask(), held, method, X, task, columns, kind)


class _Deciding(_OnCluster):
    """With decision values."""

    def decision_function(self, X: Any, task: Any = None) -> Any:
        """As the plain estimator's `decision_function`; lazily on a dask collection."""
        if is_lazy(X):
            classes = len(getattr(self, "classes_", ()))
            return self._lazily("decision_function", X, task, classes if classes > 2 else None, np.float64)
        return super().decision_function(X, task)


def _order(described: list[dict[str, Any]], has_tasks: bool) -> list[tuple[int, int]]:
    """The sample sets in the order of their names: the batch of each, and its number there."""
    places = [(b, s) for b, own in enumerate(described) for s in range(len(own["names"]))]
    if not has_tasks:
        return places
    names = [described[b]["names"][s] for b, s in places]
    return [places[at] for at in _core.name_order(names)]


def _by_set(values: list[NDArray[Any]], counts: list[NDArray[Any]], order: list[tuple[int, int]]) -> list[NDArray[Any]]:
    """What batches say of their sample sets one after the other, so many values of each, by sample set."""
    cut = [_cut(own, of_sets) for own, of_sets in zip(values, counts, strict=True)]
    return [cut[b][s] for b, s in order]


def _cut(values: NDArray[Any], counts: NDArray[Any]) -> list[NDArray[Any]]:
    """So many of each sample set."""
    return np.split(values, np.cumsum(counts)[:-1].astype(np.intp))


def _measured(described: list[dict[str, Any]], order: list[tuple[int, int]]) -> tuple[Rows, NDArray[np.uintp]]:
    """The rows in which kernels are measured, and how many are of each sample set."""
    counts = [own["measured_samples"] for own in described]
    totals = np.array([own.sum() for own in counts])
    places = _by_set(_cut(np.arange(int(totals.sum())), totals), counts, order)
    rows = stacked([arrived(own["measured"]) for own in described])
    return rows[np.concatenate(places)], np.array([len(own) for own in places], dtype=np.uintp)


def _positions(described: list[dict[str, Any]], order: list[tuple[int, int]]) -> tuple[list[NDArray[np.uintp]], list[str], list[float]]:
    """For each batch the positions of its tasks among all, and all tasks' names and sums of weights."""
    counts = [np.bincount(own["sets"].astype(np.intp), minlength=len(own["names"])) for own in described]
    ends = [np.cumsum(own) for own in counts]
    positions = [np.empty(len(own["machines"]), dtype=np.uintp) for own in described]
    names: list[str] = []
    for b, s in order:
        machines = slice(ends[b][s] - counts[b][s], ends[b][s])
        positions[b][machines] = np.arange(len(names), len(names) + counts[b][s])
        names += described[b]["machines"][machines]
    totals = np.empty(len(names))
    for own, at in zip(described, positions, strict=True):
        totals[at.astype(np.intp)] = own["totals"]
    return positions, names, totals.tolist()


def _moments(described: list[dict[str, Any]]) -> list[tuple[float, float, float]]:
    """Count, mean and Σ(x − mean)² of each column over all batches."""
    counts = np.array([own["moments"][0] for own in described])[:, None]
    means = np.array([own["moments"][1] for own in described])
    squares = np.array([own["moments"][2] for own in described])
    mean = (counts * means).sum(axis=0) / counts.sum()
    total = (squares + counts * (means - mean) ** 2).sum(axis=0)
    return [(float(counts.sum()), float(own), float(more)) for own, more in zip(mean, total, strict=True)]


class MKLClassifier(_Deciding, _classifier.MKLClassifier):
    _plain_class = _classifier.MKLClassifier

    def _goal(self, summaries: list[Summary], estimator: MKLEstimator) -> tuple[dict[str, Any], Callable[[list[str] | None], Any]]:
        every = [value for own in summaries for value in own.every_class]
        kinds = {own.class_type for own in summaries}
        labels = discrete(np.array(every, dtype=kinds.pop()) if len(kinds) == 1 else np.array(every, dtype=object))
        classes, _ = ordered(*np.unique(labels, return_inverse=True))
        self.classes_ = classes
        estimator.classes_ = classes
        place = {value: at for at, value in enumerate(classes.tolist())}
        by_class = self._class_weights()
        present: dict[str, set[int]] = {}
        for own in summaries:
            for task, values in own.classes.items():
                counted = {place[value] for value in values}
                present.setdefault(task, set()).update(at for at in counted if by_class is None or by_class[at] > 0)
        seen = set().union(*present.values())
        if len(seen) < 2:
            raise ValueError(f"y has one class only, {classes.tolist()[:1]}, among the samples of weight > 0; expected two or more classes")
        names = [text(value) for value in classes]
        count = sum(own.count for own in summaries)
        if np.issubdtype(labels.dtype, np.number) and _core.looks_like_numbers(names, count):
            warnings.warn(
                f"y has {len(classes)} different numbers in {count} samples, each of which is taken for a class; "
                "MKLRegressor predicts numbers",
                DataWarning,
                stacklevel=2,
            )
        if summaries[0].columns.has_tasks:
            for task, own_classes in present.items():
                if len(own_classes) == 1:
                    only = classes[next(iter(own_classes))]
                    rows = sum(own.tasks.get(task, 0) for own in summaries)
                    raise ValueError(
                        f"task {task!r} has one class only, {only!r}, in its {rows} rows; leave the task out, or add "
                        "samples of another class"
                    )
        if len(classes) > 2:
            lost = [name for at, name in enumerate(names) if at not in seen]
            if lost:
                raise ValueError(f"class {lost[0]!r} has only samples of weight 0; leave them out")
            if self.multiclass not in ("ovo", "ova"):
                raise ValueError(f"multiclass is {self.multiclass!r}, expected 'ovo' (pairs of classes) or 'ova' (one against all others)")

        def goal(tasks: list[str] | None) -> dict[str, Any]:
            if len(classes) == 2:
                return {"binary": {"classes": names}}
            ordered_tasks = _sorted(list(present) if tasks is None else tasks)
            own = [{"task": task, "classes": sorted(present[task])} for task in ordered_tasks]
            return {"multiclass": {"classes": names, "scheme": self.multiclass, "present": own}}

        return class_values(classes, self.class_weight), goal


def _sorted(names: list[str]) -> list[str]:
    return [names[at] for at in _core.name_order(names)]


class MKLRegressor(_OnCluster, _regressor.MKLRegressor):
    _plain_class = _regressor.MKLRegressor


class _OutlierOnCluster(_Deciding):
    """Without targets."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, task: Any = None) -> Any:
        """As `MKLClassifier.fit`; y is ignored."""
        return super().fit(X, None, sample_weight, task)


class MKLOneClassSVM(_OutlierOnCluster, _one_class.MKLOneClassSVM):
    _plain_class = _one_class.MKLOneClassSVM


class MKLSVDD(_OutlierOnCluster, _one_class.MKLSVDD):
    _plain_class = _one_class.MKLSVDD
