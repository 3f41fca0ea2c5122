"""Transfer: one machine on the rows of all tasks, with kernels between tasks."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from test_files import run

import mtmkl
from mtmkl import MKLSVDD, MKLClassifier, MKLOneClassSVM, MKLRegressor, MKLSearchCV

PLACES = {"a": "north", "b": "north", "c": "south", "d": "south"}
EXACT = {"kernels": ["linear", "rbf:sigma=1"], "tol": 1e-9, "scale": "none", "normalize": "none"}


@pytest.fixture
def regions():
    """Tasks a to d in two regions; a function of all, one of each region, an offset of each task."""
    rng = np.random.default_rng(3)
    count = 120
    X = pd.DataFrame(rng.normal(size=(count, 2)), columns=["x", "z"])
    X["site"] = np.array(list("abcd"))[np.arange(count) % 4]
    X["region"] = X["site"].map(PLACES)
    y = X["x"] + np.where(X["region"] == "north", 1.0, -1.0) * X["z"] + X["site"].map({"a": 1, "b": -1, "c": 2, "d": 0})
    return X, pd.Series(y + 0.1 * rng.normal(size=count), name="y")


def fitted(X, y, **options):
    return MKLRegressor(**{"task": "site", "transfer": ["all", "group", "own"], "groups": "region", **options}).fit(X, y)


def unseen(X, region):
    return X.assign(site="new", region=region)


def test_one_function_for_all_is_a_fit_without_tasks(regions):
    X, y = regions
    options = {**EXACT, "machine": "svr", "C": 2.0}
    plain = X.drop(columns="region")
    model = MKLRegressor(task="site", transfer=["all"], task_offset=False, **options).fit(plain, y)
    pooled = MKLRegressor(**options).fit(plain.drop(columns="site"), y)
    assert model.objective_ == pytest.approx(pooled.objective_, rel=1e-8)
    np.testing.assert_allclose(model.kernel_weights_, pooled.kernel_weights_, atol=1e-4)
    np.testing.assert_allclose(model.predict(plain), pooled.predict(plain.drop(columns="site")), atol=1e-4)


def test_functions_of_their_own_are_machines_of_their_own_with_one_theta(regions):
    X, y = regions
    plain = X.drop(columns="region")
    options = {**EXACT, "alpha": 0.7, "target_scale": "none"}
    model = MKLRegressor(task="site", transfer=["own"], task_offset=False, **options).fit(plain, y)
    apart = MKLRegressor(task="site", sharing="common", **options).fit(plain, y)
    assert model.objective_ == pytest.approx(apart.objective_, rel=1e-8)
    np.testing.assert_allclose(model.kernel_weights_[0], apart.common_weights_, atol=1e-4)
    np.testing.assert_allclose(model.predict(plain), apart.predict(plain), atol=1e-4)


def test_groups_given_in_any_way_are_the_same_groups(regions):
    X, y = regions
    plain = X.drop(columns="region")
    expected = fitted(X, y).predict(X)
    array = np.column_stack([X[["x", "z"]].to_numpy(dtype=object), X["site"], X["region"]])
    np.testing.assert_array_equal(fitted(X, y, groups=["region"]).predict(X), expected)
    np.testing.assert_array_equal(fitted(array, y, task=2, groups=3).predict(array), expected)
    other = pl.DataFrame({name: X[name].to_list() for name in X.columns})
    np.testing.assert_array_equal(fitted(other, y).predict(other), expected)
    for groups in (PLACES, pd.Series(PLACES), {"north": ["a", "b"], "south": ["c", "d"]}):
        np.testing.assert_array_equal(fitted(plain, y, groups=groups).predict(plain), expected)
    np.testing.assert_array_equal(
        MKLRegressor(transfer="all,group,own", groups=PLACES).fit(X[["x", "z"]], y, task=X["site"]).predict(X[["x", "z"]], task=X["site"]),
        expected,
    )
    # The order of rows says nothing.
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_array_equal(fitted(X.iloc[order], y.iloc[order]).predict(X), expected)


def test_a_similarity_of_groups_is_their_kernel(regions):
    X, y = regions
    plain = X.drop(columns="region")
    same = np.kron(np.eye(2), np.ones((2, 2)))
    by_group = fitted(X, y, transfer=["all", "group"], tol=1e-9)
    order = ["c", "a", "d", "b"]
    table = pd.DataFrame(same, index=list("abcd"), columns=list("abcd")).loc[order, order]
    for groups in (same, table):
        model = fitted(plain, y, transfer=["all", "similarity"], groups=groups, tol=1e-9)
        np.testing.assert_allclose(model.predict(plain), by_group.predict(X), atol=1e-4)


def test_kernels_say_themselves_between_which_tasks_they_are(regions):
    X, y = regions
    said = fitted(X, y, transfer=None, kernels=["linear*all", "linear*group", ("near", "rbf:sigma=median*own", ["x"])])
    assert said.kernel_names_ == ["linear*all", "linear*group", "near", "constant*own"]
    mixed = fitted(X, y, transfer="all,own", kernels=["linear", ("near", "rbf*all", ["x", "z"]), ("far", "rbf:sigma=9", ["z"])])
    assert mixed.kernel_names_ == ["linear*all", "linear*own", "near", "far*all", "far*own", "constant*own"]


def test_callables_and_stacks_are_between_tasks_too(regions):
    X, y = regions
    plain, tasks = X[["x", "z"]].to_numpy(), X["site"]
    options = {"transfer": ["all", "own"], "task_offset": False, "scale": "none", "normalize": "none"}
    spec = MKLRegressor(["linear"], **options).fit(plain, y, task=tasks)
    called = MKLRegressor([lambda u, v: u @ v.T], **options).fit(plain, y, task=tasks)
    stack = MKLRegressor("precomputed", **options).fit((plain @ plain.T)[None], y, task=tasks)
    expected = spec.predict(plain, task=tasks)
    np.testing.assert_allclose(called.predict(plain, task=tasks), expected, atol=1e-6)
    np.testing.assert_allclose(stack.predict((plain @ plain.T)[None], task=tasks), expected, atol=1e-6)
    np.testing.assert_allclose(stack.predict((plain[:5] @ plain.T)[None], task="new"), spec.predict(plain[:5], task="new"), atol=1e-6)
    with pytest.raises(ValueError, match="task_offset=False"):
        MKLRegressor("precomputed", transfer=["all"]).fit((plain @ plain.T)[None], y, task=tasks)


# -- tasks that were never seen -----------------------------------------------------------------------------------------------------------


def test_a_new_task_is_predicted_from_what_it_shares(regions):
    X, y = regions
    model = fitted(X, y)
    # Of the region it is known to be in, the sign of z is learned; of none, that of x alone.
    north, south, nowhere = (model.predict(unseen(X, region)) for region in ("north", "south", None))
    assert np.corrcoef(north, X["x"] + X["z"])[0, 1] > 0.95
    assert np.corrcoef(south, X["x"] - X["z"])[0, 1] > 0.95
    assert abs(np.corrcoef(nowhere, X["z"])[0, 1]) < 0.3
    np.testing.assert_array_equal(model.predict(unseen(X, "a region never seen")), nowhere)
    # Each row goes by its own group.
    mixed = unseen(X, None).assign(region=X["region"])
    np.testing.assert_array_equal(model.predict(mixed), np.where(X["region"] == "north", north, south))
    # The region of a task that is known says nothing new.
    np.testing.assert_array_equal(model.predict(X.assign(region="south")), model.predict(X))


def test_a_mapping_knows_tasks_to_come(regions):
    X, y = regions
    plain = X.drop(columns="region")
    model = fitted(plain, y, groups={**PLACES, "new": "north"})
    expected = fitted(X, y).predict(unseen(X, "north"))
    np.testing.assert_array_equal(model.predict(plain.assign(site="new")), expected)
    np.testing.assert_array_equal(model.predict(plain.assign(site="other")), fitted(X, y).predict(unseen(X, None)))


def test_without_transfer_new_tasks_are_refused_as_before(regions):
    X, y = regions
    model = MKLRegressor(task="site").fit(X.drop(columns="region"), y)
    with pytest.raises(ValueError, match="new_tasks='common'"):
        model.predict(X.drop(columns="region").assign(site="new"))


def test_groups_inside_groups(regions):
    X, y = regions
    X = X.assign(town=X["site"].map({"a": "t1", "b": "t2", "c": "t1", "d": None}))
    model = fitted(X, y, groups=["region", "town"])
    assert [name for name in model.kernel_names_ if name.startswith("linear")] == [
        "linear*all",
        "linear*region",
        "linear*town",
        "linear*own",
    ]
    # A town is one of its region: that of the same name elsewhere is another.
    one = model.predict(unseen(X, "north").assign(town="t1"))
    other = model.predict(unseen(X, "south").assign(town="t1"))
    none = model.predict(unseen(X, "north").assign(town=None))
    assert np.abs(one - other).max() > 0.1
    assert np.abs(one - none).max() > 1e-3
    np.testing.assert_array_equal(model.predict(unseen(X, "north").assign(town="t9")), none)


# -- what a model says ---------------------------------------------------------------------------------------------------------------------


def test_variance_shares_are_those_of_the_functions(regions):
    X, y = regions
    model = fitted(X, y)
    shares = model.variance_shares(X)
    levels = ["all", "group", "own", "offset"]
    assert list(shares) == ["overall", "tasks"]
    assert list(shares["overall"]) == levels
    assert list(shares["tasks"]) == list("abcd")
    # By hand: f of each level, from what each kernel adds.
    words = [name.rsplit("*", 1)[-1] if name.endswith(("*group", "*own")) else "all" for name in model.kernel_names_]
    words[model.kernel_names_.index("constant*own")] = "offset"
    parts = np.zeros((4, len(X)))
    table = model._asked(X, None)
    for name in "abcd":
        rows = np.flatnonzero(X["site"] == name)
        added = model._model.contributions("y", model._input(table, rows, 0, name))
        for word, values in zip(words, added, strict=True):
            parts[levels.index(word), rows] += values
    for rows, own in [(slice(None), shares["overall"]), *((X["site"] == name, shares["tasks"][name]) for name in "abcd")]:
        variances = parts[:, rows].var(axis=1)
        np.testing.assert_allclose(list(own.values()), variances / variances.sum(), atol=1e-12)
    # What is different in the regions is learned there, and an offset does not vary within a task.
    assert shares["tasks"]["a"]["group"] > 0.5
    assert shares["tasks"]["a"]["offset"] == 0.0
    assert shares["overall"]["offset"] > 0.0
    with pytest.raises(ValueError, match="fit with transfer"):
        MKLRegressor(task="site").fit(X.drop(columns="region"), y).variance_shares(X.drop(columns="region"))


def test_what_levels_add_is_the_prediction(regions):
    X, y = regions
    model = fitted(X, y)
    table = model._asked(X, None)
    rows = np.flatnonzero(X["site"] == "a")
    parts = model._model.contributions("y", model._input(table, rows, 0, "a"))
    middle = model.predict(X.iloc[rows]) - parts.sum(axis=0)
    np.testing.assert_allclose(middle, middle[0], atol=1e-9)


@pytest.mark.parametrize("groups", ["region", PLACES, {"n": ["a", "b"], "s": ["c", "d"]}, np.eye(4), None])
def test_files_pickles_and_clones(tmp_path, regions, groups):
    X, y = regions
    rows = X if isinstance(groups, str) else X.drop(columns="region")
    words = ["all", "own"] + ([] if groups is None else ["similarity" if isinstance(groups, np.ndarray) else "group"])
    model = fitted(rows, y, transfer=words, groups=groups, task_offset=groups is None)
    new = rows.assign(site="new")
    model.save(tmp_path / "m")
    loaded = mtmkl.load(tmp_path / "m")
    for other in (loaded, pickle.loads(pickle.dumps(model)), clone(model).fit(rows, y), clone(loaded).fit(rows, y)):
        np.testing.assert_array_equal(other.predict(rows), model.predict(rows))
        np.testing.assert_array_equal(other.predict(new), model.predict(new))
    assert loaded.transfer == words
    assert loaded.task_offset == (groups is None)
    if not isinstance(groups, np.ndarray):
        assert loaded.groups == groups


def test_a_model_of_the_program_is_fitted_again(program, tmp_path, regions):
    X, y = regions
    X.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "tree.toml").write_text('[north]\none = ["a", "b"]\n[south]\ntwo = ["c"]\nthree = ["d"]\n')
    options = ["--target", "y", "--machine", "krr", "--task", "site", "--transfer", "all,group,own", "--kernel", "linear", "--quiet"]
    run(program, "fit", tmp_path / "t.csv", *options, "--task-groups", "region", "--no-task-offset", "-o", tmp_path / "m")
    model = mtmkl.load(tmp_path / "m")
    assert (model.groups, model.task_offset) == ("region", False)
    assert [spec.split("*")[-1] for spec in model.kernels] == ["all", "group", "own"]
    run(program, "fit", tmp_path / "t.csv", *options, "--tree", tmp_path / "tree.toml", "--ignore", "region", "-o", tmp_path / "m")
    model = mtmkl.load(tmp_path / "m")
    assert model.groups == {"north": {"one": ["a", "b"]}, "south": {"two": ["c"], "three": ["d"]}}
    again = clone(model).set_params(task="site").fit(X.drop(columns="region"), y)
    np.testing.assert_allclose(again.predict(X.drop(columns="region")), model.predict(X), atol=1e-6)


# -- with everything else ------------------------------------------------------------------------------------------------------------------


def classes_of(X, y, count):
    return np.array(list("uvw"))[np.digitize(y, np.quantile(y, np.arange(1, count) / count))]


@pytest.mark.parametrize("count", [2, 3])
def test_classifiers(regions, count):
    X, y = regions
    kinds = classes_of(X, y, count)
    options = {"task": "site", "transfer": ["all", "group", "own"], "groups": "region"}
    model = MKLClassifier(probability=True, class_weight="balanced", C="auto", **options).fit(X, kinds)
    assert model.score(X, kinds) > 0.8
    probabilities = model.predict_proba(unseen(X, "north"))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert model.kernel_weights_.shape[0] == (1 if count == 2 else 3)
    assert sum(model.variance_shares(X)["overall"].values()) == pytest.approx(1.0)
    # A task with one class only learns from the others.
    one = X["site"] != "a"
    kept = one | (kinds == "u")
    MKLClassifier(**options).fit(X[kept], kinds[kept]).predict(X)
    # Weights are rows.
    weights = np.ones(len(X))
    weights[:7] = 2.0
    weighed = MKLClassifier(C=2.0, **options).fit(X, kinds, sample_weight=weights)
    twice = MKLClassifier(C=2.0, **options).fit(pd.concat([X, X[:7]]), np.concatenate([kinds, kinds[:7]]))
    # The scales of columns are means of rows, whose sums round.
    np.testing.assert_allclose(weighed.decision_function(X), twice.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("estimator", [MKLOneClassSVM, MKLSVDD])
def test_one_class_machines(regions, estimator):
    X, _ = regions
    model = estimator(task="site", transfer=["all", "own"], nu=0.2, task_offset=False).fit(X.drop(columns="region"))
    inside = model.predict(X.drop(columns="region"))
    assert 0.6 < (inside == 1).mean() <= 1.0
    scores = model.score_samples(X.drop(columns="region").assign(site="new"))
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("transfer", [["own"], ["all", "own"]])
def test_tasks_of_different_sizes_are_streamed_as_they_are_kept(rng, transfer):
    for count in (5, 31):
        X = rng.normal(size=(count, 2))
        y = np.where(X[:, 0] * X[:, 1] > 0, "a", "b")
        y[:2] = ["a", "b"]
        task = np.array(["s", "t", "s"])[np.arange(count) % 3]
        found = [
            MKLClassifier(["rbf"], transfer=transfer, storage=storage, tol=1e-8).fit(X, y, task=task) for storage in ("kept", "streamed")
        ]
        kept, streamed = (model.decision_function(X, task=task) for model in found)
        np.testing.assert_allclose(streamed, kept, atol=1e-3)
        assert found[1].verify(X, y, task=task)


def test_a_search_by_folds_within_tasks(regions):
    X, y = regions
    kinds = classes_of(X, y, 3)
    estimator = MKLClassifier(["linear"], task="site", transfer=["all", "own"], groups=None)
    plain = X.drop(columns="region")
    splits = mtmkl._search.splits_of(4, estimator, plain, kinds)
    strata = X["site"] + kinds
    for train, test in splits:
        assert sorted([*train, *test]) == list(range(len(X)))
        per = strata.iloc[test].value_counts().reindex(strata.unique(), fill_value=0)
        assert (abs(per - strata.value_counts().reindex(strata.unique()) / 4) < 1).all()
    grid = {"C": [0.1, 10.0]}
    found = MKLSearchCV(estimator, grid, cv=4).fit(plain, kinds)
    slow = GridSearchCV(estimator, grid, cv=splits).fit(plain, kinds)
    assert found.best_params_ == slow.best_params_
    # Scales of columns are those of all rows in one and of the fold's in the other.
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], slow.cv_results_["mean_test_score"], atol=0.03)
    usual = MKLSearchCV(MKLRegressor(["linear"], task="site", transfer=["all", "group"], groups="region"), cv=3).fit(X, y)
    assert usual.best_score_ > 0.8
    assert usual.best_estimator_.score(X, y) > 0.8


def test_baselines_beside_transfer(regions):
    X, y = regions
    estimator = MKLRegressor(["linear", "linear*own"], task="site", transfer=["all", "group"], groups="region")
    found = mtmkl.baselines(estimator, X, y, cv=3)
    assert sorted(found) == ["best single", "learned", "mean", "pooled", "uniform"]
    assert found["learned"].mean() > found["pooled"].mean()


# -- what is refused -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, message",
    [
        ({"transfer": ["all", "som"]}, "transfer is som, expected one of all, own, group"),
        ({"transfer": ["group"], "groups": None}, "transfer is group, expected one of all, own; groups of tasks are given"),
        ({"transfer": ["similarity"], "groups": None}, "similarities of tasks are given as a matrix"),
        ({"transfer": []}, r"transfer is \[\], expected words"),
        ({"transfer": 3}, "transfer is 3, expected words"),
        ({"task": None}, "transfer is between tasks"),
        ({"transfer": None}, "groups is of transfer"),
        ({"transfer": None, "groups": None, "task_offset": False}, "task_offset is of transfer"),
        ({"groups": "county"}, "groups is 'county', but X has no such column"),
        ({"groups": "site"}, "the same column twice"),
        ({"groups": {"a": "n", "b": "n"}}, "groups has no group of the task 'c'"),
        ({"groups": {"n": ["a", "b"], "s": ["c", "d", "e"]}}, "`e`"),
        ({"groups": {"n": ["a", "b"], "s": ["c"]}}, "`d`"),
        ({"groups": 3.5}, "groups is float, expected a mapping"),
        ({"groups": np.eye(3)}, "matrix of 3 tasks, expected a row and a column for each of the 4 tasks"),
        ({"groups": pd.DataFrame(np.eye(2), index=["a", "b"], columns=["a", "b"])}, "groups has no column for the task 'c'"),
        ({"transfer": ["similarity"], "groups": np.diag([1.0, 1.0, 1.0, -1.0])}, "eigenvalue -1"),
        ({"sharing": mtmkl.Hierarchy({"n": ["a", "b"], "s": ["c", "d"]})}, "give the tree as groups"),
    ],
)
def test_what_is_wrong_is_named(regions, options, message):
    X, y = regions
    groups = options.get("groups", "region")
    rows = X if isinstance(groups, str) else X.drop(columns="region")
    if "task" in options:
        rows = X[["x", "z", "region"]]
    with pytest.raises(ValueError, match=message):
        fitted(rows, y, **options)
