"""`model.verify`: certificates of every estimator hold on the data of the fit, and on no other; what was changed is named."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from certificate import Model as File
from scipy import sparse

from mtmkl import MKLSVDD, Independent, MKLClassifier, MKLOneClassSVM, MKLRegressor, load


def data(seed: int = 0, n: int = 60) -> tuple[Any, Any, Any, Any]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    labels = np.where(X[:, 0] + 0.5 * random.normal(size=n) > 0, "yes", "no")
    values = X[:, 1] ** 2 + 0.1 * random.normal(size=n)
    tasks = np.array(["a", "b", "c"])[np.arange(n) % 3]
    return X, labels, values, tasks


X, LABELS, VALUES, TASKS = data()
WEIGHTS = np.array([1.0, 2.0, 0.5])[np.arange(len(X)) % 3]
CASES = {
    "classes": (MKLClassifier(), X, LABELS, {}),
    "weights": (MKLClassifier(class_weight="balanced"), X, LABELS, {"sample_weight": WEIGHTS}),
    "tasks": (MKLClassifier(C=3), X, LABELS, {"task": TASKS}),
    "pairs": (MKLClassifier(machine="logistic"), X, TASKS, {}),
    "transfer": (MKLClassifier(transfer="all,own"), X, LABELS, {"task": TASKS}),
    "equal rows": (MKLClassifier(["linear", "rbf"]), np.vstack([X, X[:20]]), np.concatenate([LABELS, LABELS[:20]]), {}),
    "sparse": (MKLClassifier(["linear", "rbf"]), sparse.csr_array(np.where(abs(X) > 1.2, X, 0)), LABELS, {}),
    "callable": (MKLClassifier([("k", lambda a, b: a @ b.T, slice(None)), "rbf"]), X, LABELS, {}),
    "stopped": (MKLClassifier(sharing="pscs", max_iter=1, tol=1e-9), X, LABELS, {"task": TASKS}),
    "regression": (MKLRegressor(machine="svr"), X, VALUES, {"task": TASKS}),
    "ridge": (MKLRegressor(machine="krr", sharing=Independent(p=1.5)), X, VALUES, {"task": TASKS, "sample_weight": WEIGHTS}),
    "one class": (MKLOneClassSVM(["linear", "rbf"]), X, None, {"task": TASKS}),
    "sphere": (MKLSVDD(["rbf:gamma=0.5", "rbf:gamma=0.1"]), X, None, {}),
    "single": (
        MKLClassifier(kernels="precomputed", precision="single"),
        np.stack([X @ X.T, np.exp(-((X[:, None] - X) ** 2).sum(-1))]),
        LABELS,
        {},
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_certificates_hold(name: str) -> None:
    model, rows, targets, more = CASES[name]
    verdict = model.fit(rows, targets, **more).verify(rows, targets, **more)
    assert verdict, str(verdict)
    assert verdict.status == model.status_
    assert verdict.found_gap <= model.gap_ + verdict.allowance / abs(verdict.primal)
    assert verdict.bound - verdict.allowance <= verdict.dual <= verdict.primal + verdict.allowance
    assert verdict.allowance <= 1e-9 * abs(verdict.primal)
    assert "every claim holds" in str(verdict)


def test_other_data_are_refused() -> None:
    model = MKLClassifier().fit(X, LABELS)
    with pytest.raises(ValueError, match="not those of the fit"):
        model.verify(X[:-1], LABELS[:-1])
    other = X.copy()
    other[int(model.support_[0]), 2] += 0.1
    with pytest.raises(ValueError, match=r"not the one the model was fitted on|not those of the fit"):
        model.verify(other, LABELS)
    flipped = np.where(LABELS == "yes", "no", "yes")
    assert not MKLClassifier().fit(X, LABELS).verify(X, flipped)


@pytest.mark.parametrize(
    ("tensor", "at", "expected"), [("theta", 0, "theta"), ("task.0.beta", 0, "beta"), ("outcome", 1, "bound"), ("outcome", 0, "gap")]
)
def test_what_was_changed_is_named(tmp_path: Path, tensor: str, at: int, expected: str) -> None:
    path = tmp_path / "m.mtmkl"
    MKLClassifier().fit(X, LABELS, task=TASKS).save(path)
    assert load(path).verify(X, LABELS, task=TASKS)
    file = File.of_bytes(path.read_bytes())
    values = file.tensors[tensor].copy()
    values.flat[at] *= 1.01
    file.tensors[tensor] = values
    path.write_bytes(file.to_bytes())
    verdict = load(path).verify(X, LABELS, task=TASKS)
    assert not verdict
    assert expected in {failure.quantity for failure in verdict.failures}
    assert re.search(f"does not hold: {expected}", str(verdict))
    for failure in verdict.failures:
        if failure.quantity == "beta" and failure.row is not None:
            assert TASKS[failure.row] == "a"
