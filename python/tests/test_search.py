"""`MKLSearchCV` against a plain loop of fits, against `GridSearchCV`, and as scikit-learn wants it."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.metrics import check_scoring
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, LeaveOneOut, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from mtmkl import KernelStack, MKLClassifier, MKLOneClassSVM, MKLRegressor, MKLSearchCV, Uniform, baselines
from mtmkl._search import splits_of

KERNELS = ["linear", "rbf:sigma=1|2|4"]


def by_hand(estimator, X, y, params, splits, scoring=None, **fit):
    """The scores of one candidate, fitted fold by fold."""
    scorer = check_scoring(estimator, scoring=scoring)

    def rows(value, at):
        return value.iloc[at] if hasattr(value, "iloc") else value[at]

    scores = []
    for train, test in splits:
        own = clone(estimator).set_params(**params)
        parts = {name: np.asarray(value)[train] for name, value in fit.items()}
        scores.append(scorer(own.fit(rows(X, train), rows(y, train), **parts), rows(X, test), rows(y, test)))
    return scores


@pytest.mark.parametrize("scoring", [None, "balanced_accuracy", "f1_macro"])
def test_scores_are_those_of_a_plain_loop(scoring):
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    estimator = MKLClassifier(KERNELS)
    grid = {"C": [0.1, 10], "p": [1, 2], "sharing": ["pscs", "uniform"]}
    search = MKLSearchCV(estimator, grid, cv=3, scoring=scoring).fit(X, y)
    splits = list(StratifiedKFold(3).split(X, y))
    for at, params in enumerate(search.cv_results_["params"]):
        expected = by_hand(estimator, X, y, params, splits, scoring)
        found = [search.cv_results_[f"split{fold}_test_score"][at] for fold in range(3)]
        # Within the tolerance of the fits, one row may be decided otherwise.
        np.testing.assert_allclose(found, expected, atol=2.5 / len(splits[0][1]))
    means = search.cv_results_["mean_test_score"]
    assert search.best_score_ == means.max() == means[search.best_index_]
    assert search.best_params_ == search.cv_results_["params"][search.best_index_]
    assert search.cv_results_["rank_test_score"][search.best_index_] == 1
    assert search.n_splits_ == 3 and search.refit_time_ > 0


@pytest.mark.parametrize("machine", ["krr", "svr"])
def test_regression_is_that_of_grid_search(machine):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:160] * 20, (y[:160] - y[:160].mean()) / y[:160].std()
    # Columns and kernels are measured on all rows by the one, on those of each fold by the other.
    estimator = MKLRegressor(KERNELS, machine=machine, scale="none", normalize="none")
    grid = [{"alpha": [0.1, 1.0], "p": [1.0, 2.0]}] if machine == "krr" else [{"C": [0.1, 1.0]}, {"epsilon": [0.05, 0.2]}]
    found = MKLSearchCV(estimator, grid, cv=4).fit(X, y)
    known = GridSearchCV(estimator, grid, cv=4).fit(X, y)
    assert set(known.cv_results_) == set(found.cv_results_)
    assert found.best_params_ == known.best_params_
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], known.cv_results_["mean_test_score"], atol=2e-3)
    np.testing.assert_array_equal(found.cv_results_["rank_test_score"], known.cv_results_["rank_test_score"])
    np.testing.assert_allclose(found.predict(X), known.predict(X), atol=1e-6)
    assert found.score(X, y) == pytest.approx(known.score(X, y))


def test_task_columns_groups_and_masks(sites):
    X, y = sites
    estimator = MKLClassifier(["linear", "rbf:sigma=1"], task="site")
    groups = np.arange(len(X)) // 4
    search = MKLSearchCV(estimator, {"C": [0.3, 3.0]}, cv=GroupKFold(3)).fit(X, y, groups=groups)
    splits = list(GroupKFold(3).split(X, y, groups))
    for at, params in enumerate(search.cv_results_["params"]):
        expected = by_hand(estimator, X, y, params, splits)
        found = [search.cv_results_[f"split{fold}_test_score"][at] for fold in range(3)]
        np.testing.assert_allclose(found, expected, atol=1.5 / len(splits[0][1]))
    assert set(search.predict(X)) == {"yes", "no"}
    # Splits as given, rows or masks; tasks as an array.
    masks = [(np.isin(np.arange(len(X)), train), np.isin(np.arange(len(X)), test)) for train, test in splits]
    again = MKLSearchCV(estimator, {"C": [0.3, 3.0]}, cv=masks).fit(X, y)
    np.testing.assert_array_equal(again.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"])
    plain = MKLSearchCV(MKLClassifier(["linear", "rbf:sigma=1"]), {"C": [0.3, 3.0]}, cv=splits)
    plain.fit(X.drop(columns="site"), y, task=X["site"])
    np.testing.assert_array_equal(plain.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"])


def test_equal_rows_stay_apart():
    """A row and its twin in another fold are two rows, as in a plain loop."""
    rng = np.random.default_rng(1)
    X = np.repeat(rng.normal(size=(30, 2)), 2, axis=0)
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    estimator = MKLClassifier(["linear", "rbf:sigma=0.2"])
    splits = list(KFold(5, shuffle=True, random_state=0).split(X))
    search = MKLSearchCV(estimator, {"C": [1.0]}, cv=splits).fit(X, y)
    expected = by_hand(estimator, X, y, {"C": 1.0}, splits)
    np.testing.assert_allclose([search.cv_results_[f"split{fold}_test_score"][0] for fold in range(5)], expected, atol=0.1)


def test_kernels_in_the_grid_precomputed_and_sample_weights():
    X, y = load_iris(return_X_y=True)
    grid = {"kernels": [["linear"], ["rbf:sigma=1|2"]], "C": [1.0, 10.0]}
    search = MKLSearchCV(MKLClassifier(), grid, cv=3).fit(X, y, sample_weight=np.linspace(0.5, 2, len(X)))
    splits = list(StratifiedKFold(3).split(X, y))
    for at, params in enumerate(search.cv_results_["params"]):
        expected = by_hand(MKLClassifier(), X, y, params, splits, sample_weight=np.linspace(0.5, 2, len(X)))
        np.testing.assert_allclose(search.cv_results_["mean_test_score"][at], np.mean(expected), atol=0.02)
    stack = KernelStack(np.stack([X @ X.T, (1 + X @ X.T) ** 2]))
    known = GridSearchCV(MKLClassifier("precomputed"), {"C": [0.1, 1.0]}, cv=3).fit(stack, y)
    found = MKLSearchCV(MKLClassifier("precomputed"), {"C": [0.1, 1.0]}, cv=3).fit(stack, y)
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], known.cv_results_["mean_test_score"], atol=0.015)
    assert found.predict(stack).shape == (150,)


def test_the_usual_search():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    search = MKLSearchCV(MKLClassifier(KERNELS)).fit(X, y)
    results = search.cv_results_
    # Single kernels, their average and learned weights were tried; the best was tried on all folds.
    sharings = set(results["param_sharing"].compressed())
    assert {"uniform", "auto"} <= sharings
    assert any(entry == ["rbf:sigma=2"] for entry in results["param_kernels"].compressed())
    assert results["rank_test_score"][search.best_index_] <= 8
    assert search.best_score_ > 0.95
    # The parameters make the same estimator.
    again = MKLClassifier(KERNELS).set_params(**search.best_params_).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), search.predict(X))
    # Threads change nothing.
    one = MKLSearchCV(MKLClassifier(KERNELS), n_jobs=1).fit(X, y)
    np.testing.assert_array_equal(one.cv_results_["mean_test_score"], results["mean_test_score"])
    assert one.best_params_ == search.best_params_


def test_the_usual_search_of_regression_of_stacks_and_of_one_kernel(capsys):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:120] * 20, (y[:120] - y[:120].mean()) / y[:120].std()
    search = MKLSearchCV(MKLRegressor(KERNELS), verbose=1).fit(X, y)
    assert "alpha" in search.best_params_ and search.best_score_ > 0.2
    assert "round 1" in capsys.readouterr().out
    stack = KernelStack(np.stack([X @ X.T, np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 8)]))
    alone = MKLSearchCV(MKLRegressor("precomputed", machine="svr")).fit(stack, y)
    assert alone.predict(stack).shape == (120,)
    one = MKLSearchCV(MKLRegressor("rbf:sigma=2")).fit(X, y)
    assert set(one.best_params_) - {"scale"} == {"alpha", "sharing"}
    own = MKLSearchCV(MKLRegressor(KERNELS, sharing=Uniform())).fit(X, y)
    assert own.best_score_ > 0


def test_the_program_says_the_same(tmp_path, program):
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(X, columns=[f"f{at + 1}" for at in range(4)])
    table["label"] = [f"c{label}" for label in y]
    fold = rng.permutation(np.arange(150) % 3)
    table["fold"] = fold
    table.to_csv(tmp_path / "iris.csv", index=False)
    flags = "--target label --group fold --folds 3 --grid C=0.1,1,10 --grid p=1,2 --kernel linear --kernel rbf:sigma=1|2 --scale none"
    command = [str(program), "tune", "iris.csv", *flags.split(), "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    tuned = json.loads(done.stdout)["tune"]
    splits = [(np.flatnonzero(fold != at), np.flatnonzero(fold == at)) for at in range(3)]
    grid = {"C": [0.1, 1.0, 10.0], "p": [1.0, 2.0]}
    estimator = MKLClassifier(["linear", "rbf:sigma=1|2"], scale="none")
    search = MKLSearchCV(estimator, grid, cv=splits).fit(table[["f1", "f2", "f3", "f4"]], table["label"])
    results = zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True)
    found = {(params["C"], params["p"]): mean for params, mean in results}
    for cell in tuned["cells"]:
        assert found[cell["machine"]["C"], cell["sharing"]["p"]] == pytest.approx(cell["mean"], abs=1e-9)


def test_classes_are_balanced_by_what_a_fold_learns_from(tmp_path, program):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 3))
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=200) > 1.2, "rare", "usual")
    fold = rng.permutation(np.arange(200) % 4)
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(label=y, fold=fold)
    table.to_csv(tmp_path / "t.csv", index=False)
    flags = "--target label --group fold --folds 4 --grid C=0.1,1,10 --kernel linear --kernel rbf:sigma=1 --class-weight balanced"
    command = [str(program), "tune", "t.csv", *flags.split(), "--metric", "balanced-accuracy", "--json"]
    tuned = json.loads(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout)["tune"]
    splits = [(np.flatnonzero(fold != at), np.flatnonzero(fold == at)) for at in range(4)]
    estimator = MKLClassifier(["linear", "rbf:sigma=1"], class_weight="balanced")
    search = MKLSearchCV(estimator, {"C": [0.1, 1.0, 10.0]}, cv=splits, scoring="balanced_accuracy").fit(table[["a", "b", "c"]], y)
    np.testing.assert_allclose([cell["mean"] for cell in tuned["cells"]], search.cv_results_["mean_test_score"], atol=1e-9)


def test_scalings_of_the_winner(tmp_path, program):
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(150, 4)) * np.array([1, 1, 1e-3, 1e-3])
    y = np.where(X[:, 0] + X[:, 1] > 1, "far", "near")
    table = pd.DataFrame(X, columns=list("abcd"))
    search = MKLSearchCV(MKLClassifier(["linear", "rbf:sigma=median"])).fit(table, y)
    tried = [params.get("scale", "auto") for params in search.cv_results_["params"]]
    assert tried[-2:] == ["minmax", "none"] and set(tried[:-2]) == {"auto"}
    assert search.best_score_ == np.nanmax(search.cv_results_["mean_test_score"][-2:].tolist() + [search.best_score_])
    said = MKLSearchCV(MKLClassifier(["linear", "rbf:sigma=median"], scale="standard")).fit(table, y)
    assert all("scale" not in params for params in said.cv_results_["params"])


def test_tables_sorted_by_task_and_class():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 3)), columns=list("abc")).assign(site=np.repeat(["u", "v", "w"], 40))
    y = np.tile(np.repeat(["no", "yes"], 20), 3)
    X["a"] += 2 * (y == "yes")
    estimator = MKLClassifier(["linear"], task="site")
    splits = splits_of(4, estimator, X, y)
    for train, test in splits:
        # Ten rows of each task, five of each class of it.
        assert pd.crosstab(X["site"].to_numpy()[test], y[test]).to_numpy().tolist() == [[5, 5]] * 3
        assert sorted([*train, *test]) == list(range(120))
    search = MKLSearchCV(estimator, {"C": [0.1, 1.0]}, cv=4).fit(X, y)
    assert search.best_score_ > 0.7
    found = baselines(estimator, X, y, cv=4)
    assert found["learned"].mean() > found["majority class"].mean() + 0.2
    numbers = MKLSearchCV(MKLRegressor(["linear"], task="site"), {"alpha": [0.1, 1.0]}, cv=4).fit(X, 2 * X["a"] + X["b"])
    assert numbers.best_score_ > 0.9


def test_a_class_that_a_fold_cannot_learn_is_named():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"class '9' \(1 of 150 rows\) has no row among those that fold 1 of 5 learns from; leave out"):
        MKLSearchCV(MKLClassifier(["linear"])).fit(X, np.r_[[9], y[1:]])


def test_what_is_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match="GridSearchCV"):
        MKLSearchCV(make_pipeline(StandardScaler(), MKLClassifier())).fit(X, y)
    with pytest.raises(ValueError, match="zeros"):
        MKLSearchCV(MKLClassifier(KERNELS), {"C": [1]}).fit(X, y, sample_weight=np.arange(150))
    with pytest.raises(ValueError, match="refit"):
        MKLSearchCV(MKLClassifier(KERNELS), {"C": [1]}, refit="accuracy").fit(X, y)
    with pytest.raises(ValueError, match="param_grid"):
        MKLSearchCV(MKLOneClassSVM(KERNELS), scoring=lambda estimator, X: 0.0).fit(X)
    with pytest.raises(ValueError, match="Invalid parameter"):
        MKLSearchCV(MKLClassifier(KERNELS), {"gamma": [1]}).fit(X, y)
    with pytest.raises(ValueError, match="C"):
        MKLSearchCV(MKLClassifier(KERNELS), {"C": [-1]}).fit(X, y)


def test_nested_in_scikit_learn():
    X, y = load_iris(return_X_y=True)
    search = MKLSearchCV(MKLClassifier(["linear", "rbf:sigma=1"]), {"C": [0.1, 1.0]}, cv=3)
    assert cross_val_score(search, X, y, cv=3).mean() > 0.9
    pipeline = make_pipeline(StandardScaler(), search)
    assert pipeline.fit(X, y).score(X, y) > 0.9
    copied = clone(search)
    assert copied.get_params()["param_grid"] == {"C": [0.1, 1.0]}


def test_the_ridge_that_chooses_itself_has_the_least_leave_one_out_error():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:70] * 20, (y[:70] - y[:70].mean()) / y[:70].std()
    options = {"scale": "none", "normalize": "none"}
    model = MKLRegressor(KERNELS, alpha="auto", sharing="uniform", **options).fit(X, y)

    def error(alpha):
        plain = MKLRegressor(KERNELS, alpha=alpha, sharing="uniform", **options)
        return np.square(cross_val_predict(plain, X, y, cv=LeaveOneOut()) - y).sum()

    best = error(model.alpha_)
    assert best <= error(model.alpha_ * 10**0.25) and best <= error(model.alpha_ / 10**0.25)
    # Weights that are learned may be larger than 1/M, and the ridge goes with them; a number that is given is kept as it is.
    learned = MKLRegressor(KERNELS, alpha="auto", p=2, **options).fit(X, y)
    assert 1 < learned.alpha_ / model.alpha_ < 3
    assert MKLRegressor(KERNELS, alpha=0.3).fit(X, y).alpha_ == 0.3


def test_the_price_that_chooses_itself(tmp_path, program):
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = MKLClassifier(KERNELS, C="auto").fit(X, y)
    one = MKLClassifier(KERNELS, C="auto", n_jobs=1).fit(X, y)
    assert model.C_ == one.C_ and np.array_equal(model.kernel_weights_, one.kernel_weights_)
    assert MKLClassifier(KERNELS, C=model.C_).fit(X, y).score(X, y) == model.score(X, y)
    regression = MKLRegressor(KERNELS, machine="svr", C="auto").fit(X, X[:, 0])
    assert regression.C_ > 0 and not hasattr(regression, "alpha_")
    with pytest.raises(ValueError, match="'auto'"):
        MKLClassifier(KERNELS, C="one").fit(X, y)
    # The program says which it took.
    table = pd.DataFrame(X, columns=[f"f{at}" for at in range(X.shape[1])])
    table["kind"] = [f"c{label}" for label in y]
    table.to_csv(tmp_path / "wine.csv", index=False)
    flags = "fit wine.csv --target kind --kernel linear --kernel rbf:sigma=1|2|4 --C auto"
    done = subprocess.run([str(program), *flags.split(), "--json"], cwd=tmp_path, capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert said["chosen"]["C"] == said["machine"]["C"] and said["chosen"]["by"] == "5 folds"


@parametrize_with_checks(
    [
        MKLSearchCV(MKLClassifier(["linear", "rbf:sigma=2"]), {"C": [0.5, 1.0]}, cv=2),
        MKLSearchCV(MKLRegressor(["linear", "rbf:sigma=2"]), {"alpha": [0.5, 1.0]}, cv=2),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)
