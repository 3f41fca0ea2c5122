"""Model files: the program's and ours are the same."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._base import MKLEstimator
from ._classifier import MKLClassifier
from ._folder import Folder
from ._one_class import MKLSVDD, MKLOneClassSVM
from ._regressor import MKLRegressor
from ._sharing import (
    PSCS,
    BoxSimplex,
    Common,
    Fixed,
    Group,
    Independent,
    LpBall,
    PriorBall,
    Sharing,
    Simplex,
    Sum,
    Tang,
    Term,
    WeightSet,
)
from ._table import whole
from ._transfer import given_again, groups_of

_ESTIMATORS: dict[str, type[MKLEstimator]] = {
    "svc": MKLClassifier,
    "logistic": MKLClassifier,
    "svr": MKLRegressor,
    "krr": MKLRegressor,
    "ocsvm": MKLOneClassSVM,
    "svdd": MKLSVDD,
}
_SETS: dict[str, type[WeightSet]] = {
    "lp-ball": LpBall,
    "simplex": Simplex,
    "box-simplex": BoxSimplex,
    "prior-ball": PriorBall,
    "fixed": Fixed,
}


def load(path: str | os.PathLike[str]) -> Any:
    """The fitted estimator in a model file, whether it was written by ``save`` or by the program ``mtmkl fit``, or in a folder of models.

    A model of the program takes rows as the program does: DataFrames with the table's columns in any order, scaled and filled as when
    it was fitted.

    A folder is what a fit on a cluster with ``keep="workers"`` saves. Of it the weights and the certificate are read, and the machines of a
    task when rows of it are to be predicted; ``verify``, ``save`` and ``report`` bring all of them together.

    Parameters
    ----------
    path : path
        The file, or the folder.

    Returns
    -------
    MKLClassifier, MKLRegressor, MKLOneClassSVM or MKLSVDD
        Which one, the model says.

    Examples
    --------
    >>> import numpy as np, os, tempfile
    >>> import mtmkl
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = mtmkl.MKLRegressor(["linear", "rbf"]).fit(X, X[:, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "model.mtmkl"))
    ...     again = mtmkl.load(os.path.join(folder, "model.mtmkl"))
    >>> bool(np.all(again.predict(X) == model.predict(X)))
    True
    """
    folder = Folder(path) if os.path.isdir(path) else None
    model = _core.Model.load(path) if folder is None else folder.model()
    try:
        estimator = _estimator(model)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from error
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError) as error:
        # Anybody can write notes into a model; those of ours hold together.
        raise ValueError(f"{os.fspath(path)}: its notes do not describe an estimator, the file is damaged ({error!r})") from error
    estimator._elsewhere = folder
    return estimator


def _estimator(model: _core.Model) -> Any:
    """The estimator of a model."""
    machine = json.loads(model.machine)
    about = json.loads(model.notes.get("python", "{}"))
    frame = _core.Frame.of(model)
    given = [name is not None for name in model.given_names]
    if any(given) and not all(given):
        raise ValueError("it mixes precomputed kernels with computed ones: predict from it with the program")
    estimator = _ESTIMATORS[machine["name"]]()
    if isinstance(estimator, MKLClassifier):
        estimator.classes_ = _classes(about.get("classes", frame.classes), about.get("class_type"))
    sharing = json.loads(model.sharing)
    parameters = {
        "kernels": "precomputed" if any(given) else model.kernel_specs,
        "normalize": model.normalize,
        "sharing": sharing_of(sharing),
        **{name: sharing[name] for name in ("p", "q", "radius") if name in sharing},
        **_machine_parameters(machine, model, estimator),
    }
    if not about:
        parameters.update(_limits(model.notes.get("settings", ""), estimator.get_params()))
    # What was given in Python comes back as it was; lists of kernels and sharing objects from the model.
    parameters.update(about.get("parameters", {}))
    if model.task_kernels is not None:
        parameters.update(_transfer(model, about.get("transfer"), frame.group_columns, any(given)))
    if "class_weight" in about:
        parameters["class_weight"] = dict(zip(estimator.classes_.tolist(), about["class_weight"], strict=True))
    if model.tolerance is not None:
        parameters["tol"] = model.tolerance
    if model.solver is not None:
        parameters["solver"] = json.loads(model.solver)["name"]
    estimator.set_params(**parameters)
    estimator._calls = ()
    if about:
        estimator.n_features_in_ = int(about["features"])
        if about["names"]:
            estimator.feature_names_in_ = np.array(list(about["names"]), dtype=object)
    elif any(given):
        rows = dict(json.loads(model.notes.get("data", "[]"))).get("rows", model.samples(0))
        estimator.n_features_in_ = int(rows)
    else:
        estimator.n_features_in_ = len(frame.columns)
    estimator._adopt(model)
    return estimator


def _transfer(model: _core.Model, about: dict[str, Any] | None, columns: list[str], given: bool) -> dict[str, Any]:
    """The parameters of transfer: as they were given in Python, or as the kernels of a program's model say."""
    if about is not None:
        return {"transfer": about["words"] or None, "groups": given_again(about)}
    known = json.loads(model.task_kernels or "{}")
    levels = list(dict.fromkeys(level for level in model.kernel_levels if level != "offset"))
    groups = given_again({"columns": columns}) if columns else groups_of(known["kernels"], known["tasks"])
    # Kernels from a file say themselves between which tasks they are; matrices do not.
    return {
        "transfer": levels if given else None,
        "groups": groups,
        "task_offset": "offset" in model.kernel_levels,
    }


def _limits(settings: str, known: Collection[str]) -> dict[str, Any]:
    """The program's settings by which an answer is sought, under their names here, as far as the estimator has them."""
    try:
        found = tomllib.loads(settings)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"the model's settings cannot be read: {error}") from None
    names = {
        "solver": "solver",
        "tol": "tol",
        "max-passes": "max_iter",
        "time-limit": "time_limit",
        "memory-limit": "memory_limit",
        "storage": "storage",
        "seed": "random_state",
        "scale": "scale",
        "precision": "precision",
        "target-scale": "target_scale",
    }
    limits = {ours: found[theirs] for theirs, ours in names.items() if theirs in found and ours in known}
    limits |= {name: found[name] for name in ("multiclass", "probability") if name in found and name in known}
    if found.get("threads"):
        limits["n_jobs"] = found["threads"]
    if found.get("allow-indefinite"):
        limits["indefinite"] = "allow"
    return limits


def _machine_parameters(machine: dict[str, Any], model: _core.Model, estimator: MKLEstimator) -> dict[str, Any]:
    match machine["name"]:
        case "svc" | "logistic":
            weights = (machine.get("negative_weight", 1.0), machine.get("positive_weight", 1.0))
            classes = estimator.classes_.tolist()
            balanced = weights == (1.0, 1.0) or len(classes) != 2
            by_class = None if balanced else dict(zip(classes, weights, strict=True))
            return {"machine": machine["name"], "C": machine["C"], "class_weight": by_class}
        case "svr":
            return {"machine": "svr", "C": machine["C"], "epsilon": machine["epsilon"]}
        case "krr":
            return {"machine": "krr", "alpha": machine["lambda"]}
        case "ocsvm":
            return {"nu": machine["nu"]}
        case _:
            return {"nu": min(1.0, 1.0 / (machine["C"] * min(model.task_samples)))}


def _classes(names: list[str], kind: str | None) -> NDArray[Any]:
    """Classes with the type they had; from a table, text, unless each is spelled as Python spells an integer, or a float."""
    if kind == "int" or (kind is None and all(_is_spelled(name, int) for name in names)):
        return whole([int(name) for name in names])
    if kind is None:
        floats = all(_is_spelled(name, float) and np.isfinite(float(name)) for name in names)
        return np.array([float(name) for name in names]) if floats else np.array(names, dtype=object)
    letter = np.dtype(kind).kind
    if letter == "U" and np.dtype(kind).itemsize > 4 * max(map(len, names), default=0):
        raise ValueError(f"its classes are said to be {kind}, longer than any of them: the file is damaged")
    if letter in "iu":
        return np.array([int(name) for name in names], dtype=kind)
    if letter == "f":
        return np.array([float(name) for name in names]).astype(kind)
    if letter == "b":
        return np.array([name == "True" for name in names])
    return np.array(names, dtype=kind if letter == "U" else object)


def _is_spelled(name: str, kind: type[int] | type[float]) -> bool:
    """Whether Python writes the number in this way, so that nothing of the name is lost."""
    try:
        return str(kind(name)) == name
    except ValueError:
        return False


def sharing_of(spec: dict[str, Any]) -> str | Sharing:
    """The parameter ``sharing`` for a sharing as it stands in model files."""
    match spec["name"]:
        case "sum":
            return Sum(tuple(_term(term) for term in spec["terms"]))
        case "tang":
            return Tang(spec["beta"])
        case "box-simplex":
            return BoxSimplex(spec["upper"])
        case "fixed":
            return Fixed(spec["weights"])
        case "prior-ball" if spec.get("prior") is not None:
            return PriorBall(spec["prior"], spec["radius"])
        case "pscs":
            return PSCS(spec["p"], spec["q"], spec["radius"])
        case name:
            return str(name)


def _term(spec: dict[str, Any]) -> Term:
    [(lift, inner)] = spec.items()
    if lift == "group":
        return Group(**inner)
    options = dict(inner)
    made = _SETS[options.pop("set")](**options)
    return Common(made) if lift == "common" else Independent(made)
