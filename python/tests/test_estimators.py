"""What the estimators promise: attributes, signs, classes, weights, warnings, messages."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import raw
from sklearn.datasets import load_diabetes, load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.svm import SVC, SVR, OneClassSVM

from mtmkl import (
    MKLSVDD,
    PSCS,
    BoxSimplex,
    Common,
    Fixed,
    Group,
    Independent,
    KernelStack,
    LpBall,
    MKLClassifier,
    MKLOneClassSVM,
    MKLRegressor,
    PriorBall,
    Simplex,
    Tang,
    Uniform,
    kernel_specs,
)


@pytest.fixture
def two(rng):
    X = rng.normal(size=(60, 3))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=60) > 0, "yes", "no")


def test_attributes_of_one_task(two):
    X, y = two
    model = MKLClassifier(["linear", "rbf:sigma=1|2"], tol=1e-6, scale="none").fit(X, y)
    assert list(model.classes_) == ["no", "yes"]
    assert model.kernel_weights_.shape == (1, 3) and np.all(model.kernel_weights_ >= 0)
    assert model.kernel_names_ == ["linear", "rbf:sigma=1", "rbf:sigma=2"]
    assert np.linalg.norm(model.kernel_weights_) == pytest.approx(1, abs=1e-6)
    np.testing.assert_array_equal(model.common_weights_, model.kernel_weights_[0])
    assert model.specific_weights_ is None
    assert model.bound_ <= model.objective_ and 0 <= model.gap_ <= 1e-6
    assert model.status_ == "converged"
    assert model.n_iter_ == len(model.trace_) and model.trace_["gap"][-1] == model.gap_
    assert model.dual_coef_.shape == (1, len(model.support_)) and model.intercept_.shape == (1,)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    assert not hasattr(model, "feature_names_in_")
    assert model.fit(pd.DataFrame(X, columns=list("abc")), y).feature_names_in_.tolist() == ["a", "b", "c"]


def test_the_decision_is_what_the_attributes_say(two):
    X, y = two
    model = MKLClassifier(["linear", "rbf:gamma=0.5"], normalize=False, scale="none").fit(X, y)
    K = model.kernel_weights_[0, 0] * X @ X[model.support_].T + model.kernel_weights_[0, 1] * rbf_kernel(X, X[model.support_], 0.5)
    np.testing.assert_allclose(K @ model.dual_coef_[0] + model.intercept_, model.decision_function(X), atol=1e-10)


def test_attributes_of_three_tasks(sites):
    X, y = sites
    model = MKLClassifier(["linear", "rbf"], task="site", sharing="pscs").fit(X, y)
    np.testing.assert_allclose(model.common_weights_ + model.specific_weights_, model.kernel_weights_, atol=1e-12)
    assert model.dual_coef_.shape == (3, len(model.support_))
    # A task's machine rests on rows of the task.
    for task, coefficients in zip(model.tasks_, model.dual_coef_, strict=True):
        assert set(X["site"].iloc[model.support_[coefficients != 0]]) == {task}


def test_several_classes_are_tasks():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = MKLClassifier(["linear", "rbf"], C=10).fit(X, names)
    assert model.decision_function(X).shape == (150, 3)
    assert list(model.classes_) == ["setosa", "versicolor", "virginica"]
    assert list(model.tasks_) == ["setosa-versicolor", "setosa-virginica", "versicolor-virginica"]
    assert model.score(X, names) > 0.95
    rest = MKLClassifier(["linear", "rbf"], C=10, multiclass="ova").fit(X, names)
    assert list(rest.tasks_) == list(rest.classes_)
    assert rest.score(X, names) > 0.95
    with pytest.raises(ValueError, match="multiclass is 'all', expected 'ovo'"):
        MKLClassifier(multiclass="all").fit(X, names)


def test_pairs_are_scikit_learns():
    X, y = load_iris(return_X_y=True)
    ours = MKLClassifier("rbf:gamma=0.7", C=3, tol=1e-8, scale="none", normalize="unit").fit(X, y)
    theirs = SVC(gamma=0.7, C=3, tol=1e-8, decision_function_shape="ovo").fit(X, y)
    # Theirs is above 0 for the first class of a pair, ours for the second.
    np.testing.assert_allclose(raw.decisions(ours, X), -theirs.decision_function(X), atol=1e-5)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_one_kernel_is_scikit_learns_svc(two):
    X, y = two
    ours = MKLClassifier("rbf:gamma=0.7", C=3, tol=1e-8, scale="none", normalize="unit").fit(X, y)
    theirs = SVC(gamma=0.7, C=3, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    weights = np.linspace(0, 2, len(y))
    options = {"class_weight": {"yes": 3.0, "no": 0.5}}
    ours = MKLClassifier("rbf:gamma=0.7", tol=1e-8, **options, scale="none", normalize="unit").fit(X, y, sample_weight=weights)
    theirs = SVC(gamma=0.7, tol=1e-8, **options).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    ours = MKLClassifier("rbf:gamma=scale", tol=1e-8, class_weight="balanced", scale="none", normalize="unit").fit(X, y)
    theirs = SVC(tol=1e-8, class_weight="balanced").fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)


def test_one_kernel_is_scikit_learns_regression(rng):
    X = rng.normal(size=(50, 2))
    y = np.sin(X[:, 0]) + X[:, 1]
    weights = rng.uniform(0.5, 2, size=50)
    ridge = MKLRegressor("rbf:gamma=0.7", alpha=0.3, scale="none", normalize="unit", target_scale="none").fit(X, y, sample_weight=weights)
    expected = KernelRidge(kernel="rbf", gamma=0.7, alpha=0.3).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ridge.predict(X), expected.predict(X), atol=1e-8)
    tube = MKLRegressor("rbf:gamma=0.7", machine="svr", C=2, tol=1e-8, scale="none", normalize="unit", target_scale="none").fit(
        X, y, sample_weight=weights
    )
    expected = SVR(gamma=0.7, C=2, tol=1e-8).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(tube.predict(X), expected.predict(X), atol=1e-4)


def test_one_kernel_is_scikit_learns_one_class_svm(rng):
    X = rng.normal(size=(50, 2))
    weights = rng.uniform(0.5, 2, size=50)
    for sample_weight in (None, weights):
        ours = MKLOneClassSVM("rbf:gamma=0.7", nu=0.3, tol=1e-9, scale="none", normalize="unit").fit(X, sample_weight=sample_weight)
        theirs = OneClassSVM(gamma=0.7, nu=0.3, tol=1e-9).fit(X, sample_weight=sample_weight)
        # Theirs has Σα = ν Σw, ours Σα = 1.
        total = 0.3 * (50 if sample_weight is None else weights.sum())
        np.testing.assert_allclose(total * ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
        np.testing.assert_allclose(total * ours.score_samples(X), theirs.score_samples(X), atol=1e-4)
        np.testing.assert_allclose(ours.score_samples(X) - ours.offset_, ours.decision_function(X), atol=1e-12)


def test_a_sphere_of_one_gaussian_is_the_hyperplane(rng):
    X = rng.normal(size=(50, 2))
    sphere = MKLSVDD("rbf:gamma=0.7", nu=0.3, tol=1e-9, scale="none", normalize="unit").fit(X)
    plane = MKLOneClassSVM("rbf:gamma=0.7", nu=0.3, tol=1e-9, scale="none", normalize="unit").fit(X)
    np.testing.assert_allclose(sphere.decision_function(X), 2 * plane.decision_function(X), atol=1e-5)
    np.testing.assert_allclose(sphere.score_samples(X) - sphere.offset_, sphere.decision_function(X), atol=1e-12)


def test_nu_is_a_share_of_each_task(rng):
    X = rng.normal(size=(120, 2))
    task = np.repeat(["small", "large"], [20, 100])
    for model in (MKLOneClassSVM("rbf:sigma=1|2", nu=0.2), MKLSVDD("rbf:sigma=1|2", nu=0.2)):
        outside = model.fit_predict(X, task=task) == -1
        assert model.offset_.shape == (2,)
        for name in ("small", "large"):
            assert 0.05 <= outside[task == name].mean() <= 0.25
        scores = model.score_samples(X, task=task) - model.decision_function(X, task=task)
        assert len(np.unique(scores.round(9))) == 2


def test_whole_numbers_are_values_for_a_regressor():
    X, y = load_diabetes(return_X_y=True)
    model = MKLRegressor(["linear", "rbf:gamma=scale"]).fit(X[:100], y[:100].astype(int))
    assert model.kernel_weights_.shape == (1, 2)
    assert len(np.unique(model.predict(X))) > 200


def test_rows_in_another_order_or_given_twice_change_nothing(two):
    X, y = two
    model = MKLClassifier(["linear", "rbf"]).fit(X, y)
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = MKLClassifier(["linear", "rbf"]).fit(X[order], y[order])
    np.testing.assert_array_equal(model.decision_function(X), shuffled.decision_function(X))
    np.testing.assert_array_equal(np.sort(order[shuffled.support_]), model.support_)
    counts = np.arange(len(X)) % 3
    weighted = MKLClassifier(["linear", "rbf"]).fit(X, y, sample_weight=counts)
    repeated = MKLClassifier(["linear", "rbf"]).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_array_equal(weighted.decision_function(X), repeated.decision_function(X))


@pytest.mark.parametrize("jobs", [1, 2, -1])
def test_threads_change_nothing(sites, jobs):
    X, y = sites
    model = MKLClassifier(task="site").fit(X, y)
    other = MKLClassifier(task="site", n_jobs=jobs).fit(X, y)
    np.testing.assert_array_equal(model.kernel_weights_, other.kernel_weights_)
    np.testing.assert_array_equal(model.decision_function(X), other.decision_function(X))


def test_the_papers_algorithm_agrees(two):
    X, y = two
    newton = MKLClassifier(["linear", "rbf"], tol=1e-6).fit(X, y)
    epf = MKLClassifier(["linear", "rbf"], solver="epf", tol=1e-5, max_iter=20000, random_state=4).fit(X, y)
    assert epf.objective_ == pytest.approx(newton.objective_, rel=2e-5)


# -- kernels ---------------------------------------------------------------------------------------------------------------------------


def test_callables_are_as_good_as_specifications(two):
    X, y = two

    def gaussian(A, B):
        return rbf_kernel(A, B, 0.5)

    def product(A, B):
        return A @ B.T

    new = X[::-1] + 0.1
    for normalize in (True, False):
        for make, target in ((MKLClassifier, y), (MKLRegressor, X[:, 0]), (MKLOneClassSVM, None), (MKLSVDD, None)):
            ours = make(["linear", ("g", "rbf:gamma=0.5", [0, 2])], normalize=normalize, tol=1e-7, scale="none").fit(X, target)
            calls = make([product, ("g", gaussian, [0, 2])], normalize=normalize, tol=1e-7, scale="none").fit(X, target)
            assert calls.kernel_names_ == ["product", "g"]
            method = "predict" if make is MKLRegressor else "decision_function"
            np.testing.assert_allclose(getattr(calls, method)(new), getattr(ours, method)(new), atol=1e-4)


def test_callables_with_tasks(sites):
    X, y = sites
    ours = MKLClassifier(["laplacian:gamma=0.3"], task="site", tol=1e-7, scale="none", normalize="unit").fit(X, y)
    calls = MKLClassifier([lambda A, B: laplacian_kernel(A, B, 0.3)], task="site", tol=1e-7, scale="none", normalize="unit").fit(X, y)
    np.testing.assert_allclose(calls.decision_function(X), ours.decision_function(X), atol=1e-5)


def test_stacks_are_as_good_as_specifications(two):
    X, y = two
    new = X[:7] + 0.1
    stack = np.stack([X @ X.T, rbf_kernel(X, X, 0.5)])
    cross = np.stack([new @ X.T, rbf_kernel(new, X, 0.5)])
    ours = MKLClassifier(["linear", "rbf:gamma=0.5"], normalize=False, tol=1e-8, scale="none").fit(X, y)
    given = MKLClassifier("precomputed", tol=1e-8).fit(stack, y)
    assert given.kernel_names_ == ["K0", "K1"]
    np.testing.assert_allclose(given.decision_function(cross), ours.decision_function(new), atol=1e-4)
    np.testing.assert_allclose(given.decision_function(stack), ours.decision_function(X), atol=1e-4)


def test_as_many_new_samples_as_training_samples_are_no_training_samples(two):
    """A square cross-kernel matrix: its diagonal is not k(x, x)."""
    X, y = two
    new = X[::-1] + 0.1
    stack, cross = X @ X.T, new @ X.T
    model = MKLClassifier("precomputed", normalize=True).fit(stack, y)
    with pytest.raises(ValueError, match=r"give KernelStack\(values, own=diagonals\)"):
        model.predict(cross)
    own = np.sum(new**2, axis=1)
    expected = MKLClassifier(["linear"], scale="none", normalize="unit").fit(X, y).decision_function(new)
    np.testing.assert_allclose(model.decision_function(KernelStack(cross, own)), expected, atol=1e-3)
    sphere = MKLSVDD("precomputed").fit(stack)
    with pytest.raises(ValueError, match="for the sphere of SVDD"):
        sphere.predict(cross)


def test_stacks_with_tasks(sites):
    X, y = sites
    rows, task = X[["a", "b", "c", "d"]].to_numpy(), X["site"].to_numpy()
    stack = np.stack([rows @ rows.T, rbf_kernel(rows, rows, 0.5)])
    ours = MKLClassifier(["linear", "rbf:gamma=0.5"], normalize=False, tol=1e-8, scale="none").fit(rows, y, task=task)
    given = MKLClassifier("precomputed", tol=1e-8).fit(stack, y, task=task)
    np.testing.assert_allclose(given.kernel_weights_, ours.kernel_weights_, atol=1e-3)
    np.testing.assert_allclose(
        given.decision_function(stack[:, 5:25], task=task[5:25]), ours.decision_function(rows[5:25], task=task[5:25]), atol=1e-3
    )


def test_columns_by_name_position_slice_and_mask(two):
    X, y = two
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    same = [["a", "b"], [0, 1], slice(0, 2), slice("a", "b"), [True, True, False], [0, -2]]
    answers = [MKLClassifier(["linear", ("v", "rbf", columns)]).fit(frame, y).decision_function(frame) for columns in same]
    answers.append(MKLClassifier(["linear", "rbf@a..b"]).fit(frame, y).decision_function(frame))
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer, answers[0])


def test_a_set_of_widths_under_one_name(two):
    X, y = two
    model = MKLClassifier([("near", "rbf:sigma=1|2", [0])]).fit(X, y)
    assert model.kernel_names_ == ["near rbf:sigma=1@#0", "near rbf:sigma=2@#0"]
    assert kernel_specs("poly:degree=2|3") == ["poly:degree=2", "poly:degree=3"]


# -- sharings --------------------------------------------------------------------------------------------------------------------------


def test_sharings_compose_and_compare():
    both = Common(p=1.1) + Group(p=1.1, q=1)
    assert both == Common(p=1.1) + Group(p=1.1, q=1)
    assert both != Common(p=1.2) + Group(p=1.1, q=1)
    assert repr(both) == "Common(set=None, p=1.1, radius=1.0) + Group(p=1.1, q=1, radius=1.0)"
    assert (PSCS(1.5, 1) + Independent(Simplex(0.1))).spec()["terms"][2] == {"independent": {"set": "simplex", "total": 0.1}}
    assert hash(both) == hash(Common(p=1.1) + Group(p=1.1, q=1))
    with pytest.raises(TypeError, match=r"Tang cannot be added"):
        Tang(0.5) + Common()


@pytest.mark.parametrize(
    "sharing",
    ["common", "independent", "group", "pscs", "simplex", "prior-ball", "uniform"]
    + [PSCS(2, 1), Tang(0.5), Uniform(), Simplex(), LpBall(1.5), BoxSimplex(0.7), PriorBall([1, 0]), Fixed([0.2, 0.8])]
    + [Common(BoxSimplex(0.7)), Independent(p=1), Group(2, 2), Common(p=2) + Group(2, 1) + Independent(Fixed([0.1, 0.1]))],
    ids=str,
)
def test_every_sharing_fits(sites, sharing):
    X, y = sites
    model = MKLClassifier(["linear", "rbf"], task="site", sharing=sharing).fit(X, y)
    assert model.gap_ <= 1e-4
    assert model.kernel_weights_.shape == (3, 2)


def test_each_task_has_the_weights_that_are_given_for_it(sites):
    X, y = sites
    weights = [[0.2, 0.8], [1.0, 0.0], [0.0, 3.0]]
    model = MKLClassifier(["linear", "rbf"], task="site", sharing=Fixed(weights)).fit(X, y)
    assert model.kernel_weights_.tolist() == weights and model.specific_weights_.tolist() == weights and model.common_weights_ is None
    assert model.verify(X, y)
    for row, site in zip(weights, model.tasks_, strict=True):
        own = (X["site"] == site).to_numpy()
        frame = X[own].reset_index(drop=True)
        alone = MKLClassifier(model._model.kernel_specs, normalize="none", scale="none", sharing=Fixed(row))
        scaled = model._frame.scaled(np.ascontiguousarray(frame.drop(columns="site").to_numpy()))
        alone.fit(scaled, y[own].reset_index(drop=True))
        assert np.allclose(alone.decision_function(scaled), model.decision_function(frame), atol=0.02)


def test_p_is_the_norm(two):
    X, y = two
    for p in (1.0, 1.5, 3.0):
        weights = MKLClassifier(["linear", "rbf:sigma=1|4"], p=p, radius=2.0).fit(X, y).kernel_weights_[0]
        assert np.sum(weights**p) ** (1 / p) == pytest.approx(2.0, rel=1e-3)


# -- tasks -----------------------------------------------------------------------------------------------------------------------------


def test_new_tasks_are_refused_or_predicted_from_the_common_part(sites):
    X, y = sites
    model = MKLClassifier(["linear", "rbf"], task="site").fit(X, y)
    new = X.assign(site="east")
    with pytest.raises(ValueError, match=r"not fitted on the task 'east', but on 'north', 'south', 'west'; new_tasks='common'"):
        model.predict(new)
    assert set(model.set_params(new_tasks="common").predict(new)) <= {"yes", "no"}
    alone = MKLClassifier(["linear", "rbf"], task="site", sharing="independent", new_tasks="common").fit(X, y)
    with pytest.raises(ValueError, match="no common part"):
        alone.predict(new)


def test_one_task_for_all_rows(sites):
    X, _ = sites
    rows = X[["a", "b", "c", "d"]]
    model = MKLRegressor(["linear", "rbf"]).fit(rows, rows["a"], task=X["site"])
    np.testing.assert_array_equal(model.predict(rows, task="north"), model.predict(rows, task=["north"] * len(rows)))


# -- messages --------------------------------------------------------------------------------------------------------------------------


def test_convergence_warning(two):
    X, y = two
    with pytest.warns(ConvergenceWarning, match=r"within .* of the optimum .* max_iter=1 passes came first: raise max_iter") as caught:
        model = MKLClassifier(["linear", "rbf"], max_iter=1).fit(X, y)
    assert caught[0].filename == __file__
    assert model.status_ == "pass-limit" and model.gap_ > 1e-4 and model.n_iter_ == 1
    with pytest.warns(ConvergenceWarning, match="raise time_limit"):
        assert MKLClassifier(["linear", "rbf"], time_limit=0).fit(X, y).status_ == "time-limit"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MKLClassifier(["linear", "rbf"]).fit(X, y)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"C": -1}, r"C is -1, expected a finite number > 0"),
        ({"C": "one"}, r"C is 'one', expected a number"),
        ({"C": np.inf}, r"C is inf, expected a finite number"),
        ({"p": 0.5}, r"p is 0.5, expected"),
        ({"p": np.nan}, r"p is nan, expected a finite number"),
        ({"sharing": "group", "q": 0}, r"q is 0, expected"),
        ({"tol": 0}, r"tol is 0, expected a finite number > 0"),
        ({"max_iter": 0}, r"max_iter is 0, expected a whole number of passes from 1"),
        ({"time_limit": -1}, r"time_limit is -1, expected None or a number of seconds"),
        ({"memory_limit": 0}, r"memory_limit is 0, expected a number of GiB > 0"),
        ({"n_jobs": 0}, r"n_jobs is 0, expected None, a number of threads"),
        ({"normalize": "yes"}, r"normalize is 'yes', expected 'auto', 'unit', 'variance' or 'none'"),
        ({"indefinite": "no"}, r"indefinite is 'no', expected 'check'"),
        ({"solver": "sgd"}, r"solver is 'sgd', expected 'newton' or 'epf'"),
        ({"sharing": "psc"}, r"there is no sharing 'psc', expected one of 'auto', 'lp'"),
        ({"sharing": "tang"}, r"sharing='tang' has a parameter of its own: write sharing=mtmkl.Tang\(beta=…\)"),
        ({"sharing": 3}, r"sharing is 3, expected one of"),
        ({"sharing": Fixed([1, 2, 3])}, r"weights is 3 weights, expected 2 weights, one per kernel"),
        ({"kernels": []}, r"kernels is \[\], expected a list of specifications"),
        ({"kernels": ["rbff"]}, r"kernel `rbff`: .*did you mean `rbf`"),
        ({"kernels": [3]}, r"kernel 3: expected a specification"),
        ({"kernels": [("v", "rbf", ["x"])]}, r"kernel 'v': there is no column 'x'; the columns are 'f1', 'f2', 'f3'"),
        ({"kernels": [("v", "rbf", [7])]}, r"kernel 'v': there is no column 7, expected a position below 3"),
        ({"kernels": [("v", "rbf@f1", [0])]}, r"kernel 'v': 'rbf@f1' has columns of its own"),
        ({"kernels": ["precomputed", "rbf"]}, r'kernel "precomputed" stands alone'),
        ({"kernels": ["sigmoid:gamma=1,coef0=-1"]}, r'not positive semi-definite .* indefinite="allow"'),
        ({"kernels": ["chi2"]}, r"X, row \d+, column `f\d`: the value is -.*expected a number ≥ 0 for the kernel `chi2`"),
        ({"kernels": [lambda A, B: A]}, r"returned an array of shape \(60, 3\), expected \(60, 60\)"),
        ({"class_weight": {"maybe": 2}}, r"class_weight has 'maybe', which is none of the classes \['no', 'yes'\]"),
        ({"class_weight": {"yes": -1}}, r"class_weight is .*, expected numbers ≥ 0"),
        ({"class_weight": "equal"}, r"class_weight is 'equal', expected a dict, 'balanced' or None"),
        ({"task": "site"}, r"task is 'site', the name of a column, but X is ndarray without column names"),
        ({"task": 9}, r"task is 9, expected the index of a column of X, which has shape \(60, 3\)"),
    ],
    # Without addresses, so that processes that run side by side know the tests by the same names.
    ids=lambda value: str(value).split(" at 0x")[0][:40],
)
def test_messages_name_the_argument_and_the_way_out(two, parameters, message):
    X, y = two
    with pytest.raises(ValueError, match=message):
        MKLClassifier(**{"kernels": ["linear", "rbf"], **parameters}).fit(X, y)


def test_a_message_names_the_row_that_was_given(two):
    X, y = two
    X = np.abs(X)
    X[17, 1] = -2
    with pytest.raises(ValueError, match=r"X, row 17, column `f2`: the value is -2"):
        MKLClassifier(["chi2"]).fit(X, y)


def test_every_storage_finds_the_same_machine(two):
    X, y = two
    kept, mapped, streamed = (MKLClassifier(tol=1e-7, storage=storage, n_jobs=2).fit(X, y) for storage in ("kept", "mapped", "streamed"))
    assert streamed.objective_ == pytest.approx(kept.objective_, rel=2e-7)
    assert mapped.objective_ == pytest.approx(kept.objective_, rel=2e-7)
    with pytest.raises(ValueError, match="storage"):
        MKLClassifier(storage="elsewhere").fit(X, y)
    values = [MKLRegressor(tol=1e-7, storage=storage).fit(X, X[:, 0]).objective_ for storage in ("kept", "streamed")]
    assert values[1] == pytest.approx(values[0], rel=2e-7)
    with pytest.raises(ValueError, match=r"storage.*streamed.*positive semi-definite"):
        MKLClassifier(["sigmoid"], storage="streamed").fit(X, y)


def test_over_the_memory_limit_values_are_made_on_demand(two):
    X, y = two
    kernels = [f"rbf:gamma={2.0 ** (k / 4 - 5)}" for k in range(40)]
    kept = MKLClassifier(kernels, tol=1e-7).fit(X, y)
    # Matrices of n × n numbers: a quarter of the kernels' would fit.
    limit = len(kernels) * 2 * len(X) ** 2 / 2**30
    with pytest.warns(UserWarning, match="made on demand"):
        made = MKLClassifier(kernels, tol=1e-7, memory_limit=limit, n_jobs=2).fit(X, y)
    assert np.allclose(kept.decision_function(X), made.decision_function(X), atol=1e-2)


def test_messages_about_data(two, sites):
    X, y = two
    with pytest.raises(MemoryError, match=r"needs at least .* over the limit of .* raise memory_limit"):
        MKLClassifier(memory_limit=1e-6).fit(X, y)
    with pytest.raises(ValueError, match=r"nu is 2, expected a number in \(0, 1\]"):
        MKLSVDD(nu=2).fit(X)
    with pytest.raises(ValueError, match=r"machine `svdd` with sharing `pscs`: .* `simplex`"):
        MKLSVDD(sharing="pscs").fit(X)
    with pytest.raises(ValueError, match="machine is 'svc', expected 'krr' or 'svr'"):
        MKLRegressor(machine="svc").fit(X, X[:, 0])
    with pytest.raises(ValueError, match="y has one class only"):
        MKLClassifier().fit(X, np.ones(60))
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        MKLClassifier().fit(X, X[:, 0])
    frame, sick = sites
    with pytest.raises(ValueError, match=r"task 'north' has one class only, 'no'"):
        MKLClassifier(task="site").fit(frame, sick.where(frame["site"] != "north", "no"))
    with pytest.raises(ValueError, match="the task is given twice"):
        MKLClassifier(task="site").fit(frame, sick, task=frame["site"])
    with pytest.raises(ValueError, match=r"^task, row 0: the value is missing \(None\)"):
        MKLClassifier(task="site").fit(frame.assign(site=None), sick)
    with pytest.raises(ValueError, match=r"task is 'place', but X has no such column; its columns are 'a'"):
        MKLClassifier(task="place").fit(frame, sick)
    with pytest.raises(ValueError, match="the task column is no feature"):
        MKLClassifier([("v", "rbf", ["a", "site"])], task="site").fit(frame, sick)
    array = MKLClassifier(["rbf"]).fit(frame[["a", "b"]], sick, task=frame["site"])
    with pytest.raises(ValueError, match=r"fitted with tasks: give the task of each row, predict\(X, task=…\)"):
        array.predict(frame[["a", "b"]])
    with pytest.raises(ValueError, match="fitted without tasks"):
        MKLClassifier(["rbf"]).fit(X, y).predict(X, task=["a"] * 60)
    stack = np.stack([X @ X.T] * 2)
    given = MKLClassifier("precomputed").fit(stack, y)
    with pytest.raises(ValueError, match=r"X has shape \(2, 5, 59\), expected \(2, n_new, 60\)"):
        given.predict(stack[:, :5, :59])
    with pytest.raises(ValueError, match=r"60 × 59, expected n × n to fit"):
        MKLClassifier("precomputed").fit(stack[:, :, :59], y)
    with pytest.raises(ValueError, match=r"kernel `K0`: not symmetric: entry"):
        MKLClassifier("precomputed").fit(np.triu(stack), y)
    with pytest.raises(ValueError, match=r"give KernelStack\(values, own=diagonals\)"):
        MKLClassifier("precomputed", normalize=True).fit(stack, y).predict(stack[:, :5])
    with pytest.raises(ValueError, match="at least one non-zero"):
        MKLClassifier().fit(X, y, sample_weight=np.zeros(60))


def test_blobs_with_very_unequal_class_weights():
    X, y = make_blobs(centers=2, random_state=0, cluster_std=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MKLClassifier(class_weight={0: 1000, 1: 0.0001}).fit(X, y)
    assert np.mean(model.predict(X) == 0) > 0.87


def test_single_precision(rng):
    X = rng.normal(size=(80, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, 0)
    double = MKLClassifier(["linear", "rbf:sigma=1"], tol=1e-6).fit(X, y)
    single = MKLClassifier(["linear", "rbf:sigma=1"], tol=1e-6, precision="single").fit(X, y)
    assert single.status_ == "converged" and not single.rounded_
    np.testing.assert_allclose(single.decision_function(X), double.decision_function(X), atol=1e-3)
    stack = np.stack([X @ X.T, np.eye(80)])
    assert MKLClassifier("precomputed", precision="single").fit(stack, y).rounded_
    with pytest.raises(ValueError, match="precision is 'half', expected 'double' or 'single'"):
        MKLClassifier(precision="half").fit(X, y)
