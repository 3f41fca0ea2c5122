"""Tasks in a tree: from dicts, columns and clusterings, and what a model says of it."""

from __future__ import annotations

import json
import pickle
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.cluster.hierarchy import linkage
from sklearn.base import clone

import mtmkl

TREE = {"north": {"oslo": ["a", "b"], "bergen": ["c"]}, "south": ["d"]}
TASKS = ["a", "b", "c", "d"]
LEVELS = [
    {"label": "level 1", "groups": [["north", [0, 1, 2]], ["south", [3]]]},
    {"label": "level 2", "groups": [["oslo", [0, 1]], ["bergen", [2]]]},
]


def samples(tasks=TASKS, rows=24, seed=0):
    """Tasks a to c go by the first column, d by the second."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows * len(tasks), 2))
    # One row of each after the other, so that folds have all tasks.
    names = np.tile(np.array(tasks, dtype=object), rows)
    y = np.where(names == tasks[-1], X[:, 1], X[:, 0]) + 0.2 * rng.normal(size=len(X)) > 0
    return X, y, names


def fitted(sharing, X, y, tasks, **options):
    model = mtmkl.MKLClassifier(kernels=["linear@f1", "linear@f2", "rbf"], sharing=sharing, tol=1e-8, **options)
    return model.fit(X, y, task=tasks)


def test_a_dict_becomes_levels_by_position():
    spec = mtmkl.Hierarchy(TREE, p=1.5, q=2, radius=0.5, leaves=False).spec_for(TASKS)
    assert spec == {
        "name": "hierarchy",
        "p": 1.5,
        "q": 2.0,
        "radius": 0.5,
        "radii": None,
        "root": True,
        "leaves": False,
        "levels": LEVELS,
    }
    assert mtmkl.Hierarchy(TREE, radius=[1, 2, 3, 4]).spec_for(TASKS)["radii"] == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("kind", ["pandas", "polars", "dict", "array", "list"])
def test_columns_make_the_same_tree(kind):
    region, town = ["north", "south", "north", "north", "north"], ["oslo", None, "oslo", "oslo", "bergen"]
    tasks = ["a", "d", "a", "b", "c"]
    columns = {
        "pandas": lambda: pd.DataFrame({"region": region, "town": town}),
        "polars": lambda: pl.DataFrame({"region": region, "town": town}),
        "dict": lambda: {"region": region, "town": np.array(town, dtype=object)},
        "array": lambda: np.array([region, town], dtype=object).T,
        "list": lambda: [region, town],
    }[kind]()
    levels = mtmkl.Hierarchy.from_columns(columns, tasks).spec_for(TASKS)["levels"]
    labels = ["region", "town"] if kind in ("pandas", "polars", "dict") else ["level 1", "level 2"]
    assert [level["label"] for level in levels] == labels
    assert [level["groups"] for level in levels] == [level["groups"] for level in LEVELS]


def test_names_may_be_numbers():
    levels = mtmkl.Hierarchy({1: [7, 8], 2: [9]}).spec_for(["7", "8", "9"])["levels"]
    assert levels == [{"label": "level 1", "groups": [["1", [0, 1]], ["2", [2]]]}]


def test_a_clustering_is_cut_where_it_is_asked_for():
    places = np.array([[0.0], [0.1], [1.0], [1.1], [10.0], [10.1]])
    tasks = list("abcdef")
    made = mtmkl.Hierarchy.from_linkage(linkage(places, "average"), tasks, levels=[2, 3], q=2)
    levels = made.spec_for(tasks)["levels"]
    groups = [sorted(own for _, own in level["groups"]) for level in levels]
    assert groups == [[[0, 1, 2, 3], [4, 5]], [[0, 1], [2, 3], [4, 5]]]
    assert [level["label"] for level in levels] == ["2 clusters", "3 clusters"]
    for wrong in ([], [1], [6], [3, 2], [2, 2]):
        with pytest.raises(ValueError, match="ascending numbers of clusters from 2 to 5"):
            mtmkl.Hierarchy.from_linkage(linkage(places), tasks, levels=wrong)
    with pytest.raises(ValueError, match="linkage is of 6 tasks, tasks has 5"):
        mtmkl.Hierarchy.from_linkage(linkage(places), tasks[:5], levels=[2])


def test_scipy_s_clustering_is_imported_only_for_a_linkage():
    import subprocess

    code = "import sys, mtmkl; mtmkl.Hierarchy({'x': ['a']}).spec_for(['a']); sys.exit('scipy.cluster.hierarchy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_model_has_the_weights_of_every_group_and_comes_back(tmp_path):
    X, y, tasks = samples()
    model = fitted(mtmkl.Hierarchy(TREE, q=2), X, y, tasks)
    assert list(model.group_weights_) == ["level 1", "level 2"]
    assert list(model.group_weights_["level 2"]) == ["oslo", "bergen"]
    above = {"a": ("north", "oslo"), "b": ("north", "oslo"), "c": ("north", "bergen"), "d": ("south",)}
    for number, task in enumerate(model.tasks_):
        groups = [model.group_weights_[f"level {depth}"][name] for depth, name in enumerate(above[task], 1)]
        total = model.common_weights_ + model.specific_weights_[number] + sum(groups)
        np.testing.assert_allclose(total, model.kernel_weights_[number], atol=1e-14)
    # The north goes by the first column, the south by the second.
    north, south = model.group_weights_["level 1"]["north"], model.group_weights_["level 1"]["south"]
    assert north[0] > north[1] and south[1] > south[0]
    model.save(tmp_path / "model.mtmkl")
    again = mtmkl.load(tmp_path / "model.mtmkl")
    np.testing.assert_array_equal(again.predict(X, task=tasks), model.predict(X, task=tasks))
    assert again.group_weights_["level 1"]["north"].tolist() == north.tolist()
    assert json.loads(model._model.sharing) == mtmkl.Hierarchy(TREE, q=2).spec_for(TASKS)
    assert pickle.loads(pickle.dumps(model)).group_weights_.keys() == model.group_weights_.keys()
    copy = clone(model)
    assert copy.sharing == model.sharing


@pytest.mark.parametrize(
    ("root", "leaves", "same"),
    [(True, True, mtmkl.PSCS(1.5, 2)), (True, False, mtmkl.Common(p=1.5)), (False, True, mtmkl.Group(1.5, 2))],
)
def test_without_groups_it_is_what_it_should_be(root, leaves, same):
    X, y, tasks = samples()
    tree = fitted(mtmkl.Hierarchy({}, p=1.5, q=2, root=root, leaves=leaves), X, y, tasks)
    known = fitted(same, X, y, tasks)
    assert tree.objective_ == pytest.approx(known.objective_, rel=2e-8)
    assert tree.group_weights_ == known.group_weights_ == {}


def test_groups_may_overlap_and_leave_tasks_out():
    X, y, tasks = samples()
    groups = {"x": ["a", "b"], "y": ["b", "c"]}
    model = fitted(mtmkl.Hierarchy.from_groups(groups), X, y, tasks)
    assert list(model.group_weights_["groups"]) == ["x", "y"]
    with pytest.raises(ValueError, match="task `b` is in `x` and in `y`"):
        fitted(mtmkl.Hierarchy(groups | {"z": ["d"]}), X, y, tasks)
    with pytest.raises(ValueError, match=r"Hierarchy\(tree\) takes a tree"):
        fitted(mtmkl.Hierarchy.from_groups(TREE), X, y, tasks)


def test_a_task_stands_for_all_machines_of_its_classes():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 2))
    y = np.array(["p", "q", "r"])[np.arange(90) % 3]
    tasks = np.array(["a", "b"], dtype=object)[np.arange(90) // 3 % 2]
    model = mtmkl.MKLClassifier(kernels=["linear", "rbf"], sharing=mtmkl.Hierarchy({"x": ["a"], "y": ["b"]})).fit(X, y, task=tasks)
    groups = {name: own for _, name, own, _ in model._model.groups}
    assert groups == {"x": [0, 1, 2], "y": [3, 4, 5]}


def test_it_can_be_searched_over():
    X, y, tasks = samples()
    search = mtmkl.MKLSearchCV(
        mtmkl.MKLClassifier(kernels=["linear@f1", "linear@f2"]), {"C": [0.1, 1.0], "sharing": [mtmkl.PSCS(), mtmkl.Hierarchy(TREE)]}, cv=2
    )
    search.fit(X, y, task=tasks)
    assert len(search.cv_results_["params"]) == 4
    usual = mtmkl.MKLSearchCV(mtmkl.MKLClassifier(kernels=["linear@f1", "linear@f2"], sharing=mtmkl.Hierarchy(TREE)), cv=2)
    usual.fit(X, y, task=tasks)


def test_what_does_not_fit_is_said():
    X, y, tasks = samples()
    with pytest.raises(ValueError, match="there is no task `e`; the tasks are `a`, `b`, `c`, `d`"):
        fitted(mtmkl.Hierarchy({"x": TASKS, "y": ["e"]}), X, y, tasks)
    with pytest.raises(ValueError, match="it has no task `d`; put it into a group"):
        fitted(mtmkl.Hierarchy({"x": ["a", "b", "c"]}), X, y, tasks)
    with pytest.raises(ValueError, match="group `x` has no tasks"):
        fitted(mtmkl.Hierarchy({"x": []}), X, y, tasks)
    with pytest.raises(ValueError, match="radius is 2 numbers, expected 4, one for each level"):
        fitted(mtmkl.Hierarchy(TREE, radius=[1, 2]), X, y, tasks)
    with pytest.raises(ValueError, match="task `a` has two values in column `region`, `n` and `s`"):
        fitted(mtmkl.Hierarchy.from_columns({"region": ["n", "s"]}, ["a", "a"]), X, y, tasks)
    with pytest.raises(ValueError, match="column 'region' has 1 rows, tasks has 2"):
        mtmkl.Hierarchy.from_columns({"region": ["n"]}, ["a", "a"])
    with pytest.raises(ValueError, match=r"write sharing=mtmkl.Hierarchy\(tree=…\)"):
        fitted("hierarchy", X, y, tasks)
    for wrong in ("tree", ["a"], None):
        with pytest.raises(TypeError, match="expected groups of tasks by name"):
            mtmkl.Hierarchy(wrong)
    with pytest.raises(TypeError, match="expected a list of tasks"):
        mtmkl.Hierarchy({"x": "abc"}).spec_for(["abc"])
    with pytest.raises(TypeError, match="cannot be added"):
        mtmkl.Hierarchy(TREE) + mtmkl.Common()
