"""Sparse X (SciPy's CSR and its relatives): the same machine as the same numbers with all their zeros, in every estimator and file."""

from __future__ import annotations

import json
import pickle

import certificate
import numpy as np
import pytest
import scipy.sparse

import mtmkl
from mtmkl import MKLSVDD, MKLClassifier, MKLOneClassSVM, MKLRegressor, MKLSearchCV

KERNELS = ["linear", "cosine", "poly:degree=2", "rbf:gamma=0.05"]


@pytest.fixture
def words(rng):
    """Counts of words, some rows without one; two classes that use some of them more often."""
    y = np.arange(120) % 2
    counts = rng.poisson(0.08, size=(120, 90)) + y[:, None] * rng.poisson(0.25, size=(120, 90)) * (np.arange(90) < 10)
    counts[5] = 0
    return counts.astype(float), y


def both(model):
    """Values that are compared."""
    return model.predict if model._kind == "values" else model.decision_function


@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_array])
@pytest.mark.parametrize(
    "model",
    [
        MKLClassifier(KERNELS, scale="none", tol=1e-6),
        MKLClassifier(KERNELS, scale="none", tol=1e-6, machine="logistic"),
        MKLRegressor(KERNELS, scale="none", tol=1e-6),
        MKLRegressor(KERNELS, scale="none", tol=1e-6, machine="svr"),
        MKLOneClassSVM(KERNELS, scale="none", sharing="uniform", tol=1e-6),
        MKLSVDD(KERNELS, scale="none", sharing="uniform", tol=1e-6),
    ],
    ids=lambda model: f"{type(model).__name__} {getattr(model, 'machine', '')}" if hasattr(model, "fit") else None,
)
@pytest.mark.filterwarnings("ignore::mtmkl.DataWarning")
def test_sparse_rows_have_the_machine_of_dense_ones(words, model, kind):
    X, y = words
    target = None if model._kind == "none" else y + 0.1 * X[:, 3] if model._kind == "values" else y
    dense = both(model.fit(X, target))(X)
    objective = model.objective_
    rows = kind(X)
    sparse = model.fit(rows, target)
    assert sparse.objective_ == pytest.approx(objective, rel=2e-6)
    np.testing.assert_allclose(both(sparse)(rows), dense, atol=0.02 * np.ptp(dense))
    # Rows with all their zeros are the same samples to it.
    np.testing.assert_allclose(both(sparse)(X), both(sparse)(rows), rtol=1e-9, atol=1e-9)
    vectors = sparse.support_vectors_
    assert scipy.sparse.issparse(vectors)
    np.testing.assert_array_equal(vectors.toarray(), X[sparse.support_])


@pytest.mark.parametrize("storage", ["kept", "mapped", "streamed"])
@pytest.mark.parametrize("machine", ["svc", "logistic"])
def test_the_certificate_holds_for_who_knows_nothing_of_the_core(words, machine, storage):
    """On rows with all their zeros, from the file alone."""
    X, y = words
    site = np.where(np.arange(120) % 3 == 0, "a", "b")
    # All kernels of a part of the words, none of a row that has none of them.
    X = X + 0.0
    X[5, 40] = 1.0
    model = MKLClassifier(KERNELS, machine=machine, scale="none", normalize="none", sharing="pscs", storage=storage, tol=1e-5)
    model.fit(scipy.sparse.csr_array(X), y, task=site)
    origins = [np.array(own) for own in json.loads(model._model.notes["training-rows"])]
    sets = [certificate.Samples(X[own]) for own in origins]
    tasks = []
    for own, samples in zip(origins, sets, strict=True):
        assert len(own) == samples.count
        tasks.append(certificate.Task(targets=np.where(y[own] == 1, 1.0, -1.0)))
    content = model._model.to_bytes()
    assert certificate.Model.of_bytes(content).header["version"] == 4
    verdict = certificate.check(content, sets, tasks)
    assert not verdict.violations, str(verdict)
    # And is one of these rows: with another number in one of them it does not.
    sets[0].rows[0, np.flatnonzero(sets[0].rows[0])[0]] *= 1.5
    assert certificate.check(content, sets, tasks).violations


def test_columns_are_scaled_and_not_centred(words):
    X, y = words
    X = X * np.linspace(1, 50, X.shape[1])
    for scale in ("standard", "minmax"):
        model = MKLClassifier(["linear", "rbf"], scale=scale).fit(scipy.sparse.csr_array(X), y)
        seen = model.support_vectors_.toarray()
        own = X[model.support_]
        # Zeros stay zeros, and each column has one factor.
        assert not np.any(seen[own == 0])
        for column in range(X.shape[1]):
            there = own[:, column] != 0
            if there.any() and np.ptp(X[:, column]) > 0:
                ratios = seen[there, column] / own[there, column]
                np.testing.assert_allclose(ratios, ratios[0], rtol=1e-12)
        if scale == "minmax":
            assert seen.max() <= 1 + 1e-9
        else:
            # The factor is that of rows with all their zeros.
            dense = MKLClassifier(["linear", "rbf"], scale=scale).fit(X, y)
            spread = dense.support_vectors_.std(axis=0)
            np.testing.assert_allclose(seen.std(axis=0).sum(), spread.sum(), rtol=0.2)


def test_what_the_caller_has_is_not_changed(words):
    X, y = words
    rows = scipy.sparse.csr_matrix(X)
    # Columns in no order, one twice, and a zero that is written out.
    untidy = scipy.sparse.csr_matrix((rows.data.copy(), rows.indices.copy(), rows.indptr.copy()), shape=rows.shape)
    untidy.indices[: untidy.indptr[1]] = untidy.indices[: untidy.indptr[1]][::-1]
    untidy.data[: untidy.indptr[1]] = untidy.data[: untidy.indptr[1]][::-1]
    untidy.data[untidy.indptr[1]] = 0.0
    untidy.has_sorted_indices = False
    untidy.has_canonical_format = False
    before = [part.copy() for part in (untidy.data, untidy.indices, untidy.indptr)]
    model = MKLClassifier(KERNELS).fit(untidy, y)
    tidy = MKLClassifier(KERNELS).fit(scipy.sparse.csr_matrix(untidy.toarray()), y)
    np.testing.assert_array_equal(model.decision_function(untidy), tidy.decision_function(untidy))
    for part, own in zip((untidy.data, untidy.indices, untidy.indptr), before, strict=True):
        np.testing.assert_array_equal(part, own)


def test_tasks_views_files_and_searches(words, tmp_path):
    X, y = words
    rows = scipy.sparse.csr_array(X)
    site = np.where(np.arange(120) % 3 == 0, "a", "b")
    model = MKLClassifier(["linear@f1..f30", "cosine@f31..f90", "rbf"], sharing="pscs").fit(rows, y, task=site)
    values = model.decision_function(rows, task=site)
    for again in (pickle.loads(pickle.dumps(model)), mtmkl.load(_saved(model, tmp_path / "m.mtmkl"))):
        np.testing.assert_array_equal(again.decision_function(rows, task=site), values)
        assert scipy.sparse.issparse(again.support_vectors_)
    with pytest.raises(ValueError, match=r"task is 3, a column of X, but X is sparse"):
        MKLClassifier(task=3).fit(rows, y)
    search = MKLSearchCV(MKLClassifier(["linear", "cosine"]), cv=3).fit(rows, y)
    dense = MKLSearchCV(MKLClassifier(["linear", "cosine"], scale="none"), cv=3).fit(X, y)
    assert abs(search.best_score_ - dense.best_score_) < 0.2
    assert search.predict(rows).shape == y.shape
    transfer = MKLClassifier(["linear", "cosine"], transfer=["all", "own"]).fit(rows, y, task=site)
    assert transfer.score(rows, y, task=site) > 0.8


def _saved(model, path):
    model.save(path)
    return path


def test_a_model_of_dense_rows_takes_sparse_ones(words):
    X, y = words
    model = MKLClassifier(["linear", "rbf"]).fit(X, y)
    expected = model.decision_function(X)
    np.testing.assert_allclose(model.decision_function(scipy.sparse.csr_array(X)), expected, rtol=1e-9, atol=1e-9)


def test_kernels_of_ones_own_see_sparse_rows(words):
    X, y = words
    rows = scipy.sparse.csr_array(X)
    seen = []

    def product(a, b):
        seen.append(scipy.sparse.issparse(a) and scipy.sparse.issparse(b))
        return a @ b.T

    own = MKLClassifier([product], scale="none", normalize="none", tol=1e-7).fit(rows, y)
    named = MKLClassifier(["linear"], scale="none", normalize="none", tol=1e-7).fit(rows, y)
    assert all(seen)
    assert own.objective_ == pytest.approx(named.objective_, rel=1e-6)
    np.testing.assert_allclose(own.decision_function(rows), named.decision_function(rows), atol=1e-3)


def test_values_that_are_no_numbers_are_refused(words):
    X, y = words
    rows = scipy.sparse.csr_array(X)
    rows.data[3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        MKLClassifier().fit(rows, y)
    model = MKLClassifier().fit(X, y)
    with pytest.raises(ValueError, match="features"):
        model.predict(scipy.sparse.csr_array(X[:, :5]))
