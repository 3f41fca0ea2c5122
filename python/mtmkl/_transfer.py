"""Transfer: one machine on the rows of all tasks, with kernels k(x, z) c(t, u) between tasks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._kernels import Kernels
from ._sharing import Hierarchy, _named
from ._table import Table, group_texts, texts

#: What kernels call a single level of groups.
GROUP = "group"


@dataclass(frozen=True)
class Shared:
    """What is learned of the tasks where one machine learns from all of them."""

    #: Task kernels, for the core.
    between: _core.Transfer
    words: list[str]
    offset: bool
    #: The groups as they were given, for the notes of a model.
    about: dict[str, Any]

    def kernels(self, kernels: Kernels) -> Kernels:
        """Each kernel with each of the task kernels."""
        return Kernels(tuple(self.between.kernels(kernels.pairs, self.words, self.offset)), kernels.calls)


def words_of(transfer: Any) -> list[str]:
    """The words of the parameter ``transfer``."""
    if transfer is None:
        return []
    listed = transfer.split(",") if isinstance(transfer, str) else list(transfer) if isinstance(transfer, Iterable) else [transfer]
    if not listed or not all(isinstance(word, str) and word.strip() for word in listed):
        raise ValueError(f"transfer is {transfer!r}, expected words such as ['all', 'own'] or ['all', 'group', 'own'], or None")
    return [word.strip() for word in listed]


def is_wanted(estimator: Any) -> bool:
    """Whether one machine is to learn from all tasks: where the parameter says so, or kernels do."""
    return bool(words_of(estimator.transfer)) or _core.are_between_tasks(_specs(estimator.kernels))


def _specs(kernels: Any) -> list[str]:
    """The specifications among kernels as an estimator has them."""
    if kernels is None or callable(kernels):
        return []
    if isinstance(kernels, str):
        return [kernels]
    try:
        listed = list(kernels)
    except TypeError:
        return []
    kept = [entry[1] if isinstance(entry, tuple) and len(entry) == 3 else entry for entry in listed]
    return [entry for entry in kept if isinstance(entry, str)]


def without_tasks(kernels: Any) -> list[Any]:
    """The same kernels, none of them between tasks and each of them once."""
    found: list[Any] = []
    for entry in [kernels] if isinstance(kernels, str) else kernels:
        if isinstance(entry, str):
            found.extend(spec for spec in _core.without_tasks(entry) if spec not in found)
        elif isinstance(entry, tuple) and isinstance(entry[1], str):
            found.extend((f"{entry[0]} {spec}", spec, entry[2]) for spec in _core.without_tasks(entry[1]))
        else:
            found.append(entry)
    return found


def columns_of(groups: Any) -> list[Any]:
    """The columns of X (names or indices) that name groups, where they do."""
    if isinstance(groups, str | int | np.integer) and not isinstance(groups, bool):
        return [groups]
    if isinstance(groups, list | tuple) and groups and all(isinstance(entry, str | int | np.integer) for entry in groups):
        return list(groups)
    return []


def check(estimator: Any, has_tasks: bool) -> None:
    """Refuses parameters of transfer that do not go together."""
    if not is_wanted(estimator):
        for name, is_said in (("groups", estimator.groups is not None), ("task_offset", not estimator.task_offset)):
            if is_said:
                raise ValueError(
                    f"{name} is of transfer, and nothing is to be transferred; say what is shared, as in transfer=['all', 'own']"
                )
        return
    if not has_tasks:
        raise ValueError("transfer is between tasks, and there are none: name the column that has them, task=…, or give fit(X, y, task=…)")
    if isinstance(estimator.sharing, Hierarchy):
        raise ValueError(
            "sharing is a Hierarchy of tasks, but with transfer one machine learns from all of them; give the tree as groups=…"
        )
    if estimator.task_offset and isinstance(estimator.kernels, str) and estimator.kernels == "precomputed":
        raise ValueError("precomputed kernels leave no room for an offset of each task; give task_offset=False")


def made(estimator: Any, table: Table) -> Shared:
    """Task kernels of the tasks of a table."""
    assert table.tasks is not None
    tasks = [name for name, _ in _core.task_groups(table.tasks.tolist())]
    groups, about, similarity = _groups(estimator.groups, table, tasks)
    words = words_of(estimator.transfer)
    columns = about.get("columns", [])
    between = _core.Transfer(tasks, columns, None if groups is None else json.dumps(groups), similarity)
    return Shared(between, words, bool(estimator.task_offset), {"words": words, **about})


def _groups(given: Any, table: Table, tasks: list[str]) -> tuple[dict[str, Any] | None, dict[str, Any], NDArray[np.float64] | None]:
    """The parameter ``groups`` for the core, for the notes of a model, and as a matrix where it is one."""
    if given is None:
        return None, {}, None
    if table.groups:
        assert table.tasks is not None
        names = [name for name, _ in table.groups]
        cells = [group_texts(values, f"X, column {name!r}") for name, values in table.groups]
        places = dict.fromkeys(zip(table.tasks.tolist(), zip(*cells, strict=True), strict=True))
        return {"columns": [names, list(places)]}, {"columns": names}, None
    if hasattr(given, "to_dict") and getattr(given, "ndim", 2) == 1:
        given = given.to_dict()
    if isinstance(given, Mapping):
        if any(isinstance(inside, Mapping | list | tuple | set | np.ndarray) for inside in given.values()):
            tree = _named({name: list(inside) if isinstance(inside, set) else inside for name, inside in given.items()})
            return {"tree": tree}, {"tree": tree}, None
        known = texts(list(given), "groups", tasks).tolist()
        mapping = dict(zip(known, group_texts(list(given.values()), "groups"), strict=True))
        missing = [task for task in tasks if task not in mapping]
        if missing:
            raise ValueError(f"groups has no group of the task {missing[0]!r}; it names {_some(list(mapping))}")
        return {"columns": [[GROUP], [[task, [mapping[task]]] for task in tasks]]}, {"mapping": mapping}, None
    values = _similarity(given, tasks)
    return None, {"similarity": values.tolist()}, values


def _similarity(given: Any, tasks: list[str]) -> NDArray[np.float64]:
    """c(t, u) of tasks in the order of names."""
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise ValueError(
            f"groups is {type(given).__name__}, expected a mapping from task to group, the name of a column of X or several, a tree of "
            "groups (a dict with lists of tasks inside), or a square matrix of similarities"
        )
    if hasattr(given, "columns"):
        columns = texts(list(given.columns), "groups, columns", tasks).tolist()
        # A table of polars has no names of rows.
        rows = texts(list(given.index), "groups, index", tasks).tolist() if hasattr(given, "index") else columns
        for task in tasks:
            if task not in columns or task not in rows:
                raise ValueError(
                    f"groups has no {'column' if task not in columns else 'row'} for the task {task!r}; it has {_some(columns)}"
                )
        return np.ascontiguousarray(values[np.ix_([rows.index(task) for task in tasks], [columns.index(task) for task in tasks])])
    if len(values) != len(tasks):
        raise ValueError(
            f"groups is a matrix of {len(values)} tasks, expected a row and a column for each of the {len(tasks)} tasks of fit, "
            f"{_some(tasks)}, in this order; a pandas DataFrame says which row is whose"
        )
    return np.ascontiguousarray(values)


def given_again(about: Mapping[str, Any]) -> Any:
    """The parameter ``groups`` from the notes of a model."""
    if "columns" in about:
        return about["columns"][0] if len(about["columns"]) == 1 else list(about["columns"])
    if "similarity" in about:
        return np.array(about["similarity"])
    return about.get("mapping", about.get("tree"))


def groups_of(kernels: Sequence[Mapping[str, Any]], tasks: Sequence[str]) -> Any:
    """The same from the task kernels of a model that says nothing else: the groups of each task, or its similarities."""
    matrices = [kernel["form"]["similarity"]["values"] for kernel in kernels if "similarity" in kernel["form"]]
    if matrices:
        order = [list(tasks).index(name) for name, _ in _core.task_groups(list(tasks))]
        return np.array(matrices[0]).reshape(len(tasks), -1)[np.ix_(order, order)]
    levels = [kernel["form"]["same"] for kernel in kernels if kernel["name"] != "own"]
    if len(levels) < 2:
        return {task: levels[0]["groups"][at] for task, at in zip(tasks, levels[0]["of"], strict=True)} if levels else None
    tree: dict[str, Any] = {}
    for number, task in enumerate(tasks):
        path = [level["groups"][level["of"][number]] for level in levels]
        # Where a branch ends early its task is alone, under its own name.
        while path and path[-1] == task:
            path.pop()
        inside = tree
        for name in path:
            inside = inside.setdefault(name, {})
        inside.setdefault("", []).append(task)
    return _folded(tree)


def _folded(tree: dict[str, Any]) -> Any:
    """A tree whose tasks stand in lists at its leaves; tasks beside groups are a group of their own."""
    own = tree.pop("", [])
    if not tree:
        return own
    inside = {name: _folded(part) for name, part in tree.items()}
    return {**inside, **{task: [task] for task in own}}


def known_groups(model: _core.Model, columns: Sequence[str]) -> list[list[str]]:
    """The names of groups that a model knows, for each of these columns."""
    if model.task_kernels is None:
        return [[] for _ in columns]
    forms = {kernel["name"]: kernel["form"] for kernel in json.loads(model.task_kernels)["kernels"]}
    names = [GROUP] if len(columns) == 1 else columns
    return [list(forms.get(name, {}).get("same", {}).get("groups", [])) for name in names]


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:8])
    return shown + (f", … ({len(names)} in all)" if len(names) > 8 else "")
