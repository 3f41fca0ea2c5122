"""Tasks with few rows: sharing weights, sharing predictors, or nothing.

    cargo xtask bench --only transfer

Every method of ours is `mtmkl fit` with the usual kernels and the price of an error chosen from the training rows (`--C auto`,
`--lambda auto`); nothing else is set by hand. On Landmine classes are balanced and the figure is the mean AUC over the 29 tasks; the
terrain (tasks 1 to 15 foliage, 16 to 29 bare earth) is the group.
"""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from common import ROOT, Bench, Table, in_seconds, squared_distances

TITLE = "Transfer between tasks"
#: A page of its own.
PAGE = ROOT / "docs" / "transfer.md"
DRAWS = 20
SHARES = [0.1, 0.2, 0.3, 0.5]

#: What is asked of `mtmkl fit` beside the table; `group` is the column of groups.
METHODS = {
    "each task alone": ["--task", "task", "--ignore", "group", "--sharing", "independent"],
    "common weights": ["--task", "task", "--ignore", "group", "--sharing", "common"],
    "PSCS": ["--task", "task", "--ignore", "group", "--sharing", "pscs"],
    "hierarchy": ["--task", "task", "--task-groups", "group", "--sharing", "hierarchy"],
    "pooled": ["--ignore", "task", "--ignore", "group"],
    "transfer all, own": ["--task", "task", "--ignore", "group", "--transfer", "all,own"],
    "transfer all, group, own": ["--task", "task", "--task-groups", "group", "--transfer", "all,group,own"],
}


def parts(table: pd.DataFrame, strata: Sequence[str], share: float, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """This share of each stratum to learn from (at least two rows), the rest to test on."""
    rng = np.random.default_rng(seed)
    chosen = []
    for _, rows in table.groupby(list(strata), sort=True).indices.items():
        count = min(len(rows) - 1, max(2, round(share * len(rows))))
        chosen.append(rng.permutation(rows)[:count])
    at = np.sort(np.concatenate(chosen))
    return table.iloc[at], table.drop(index=table.index[at])


def told(bench: Bench, learn: pd.DataFrame, test: pd.DataFrame, flags: Sequence[str]) -> np.ndarray:
    """What a fit says of the test rows: their decision values or numbers."""
    learned, asked, model, answers = (bench.folder / name for name in ("learn.csv", "test.csv", "model.mtmkl", "told.csv"))
    learn.to_csv(learned, index=False)
    test.drop(columns="target").to_csv(asked, index=False)
    bench.program("mtmkl", "fit", learned, "--target", "target", *flags, "--no-baselines", "--quiet", "-o", model)
    bench.program("mtmkl", "predict", model, asked, "--decision", "-o", answers)
    found = pd.read_csv(answers)
    scores = [name for name in found if name.startswith("decision")]
    return found[scores[0] if scores else "prediction"].to_numpy(float)


def mean_auc(test: pd.DataFrame, values: np.ndarray) -> float:
    """Over the tasks that have rows of both classes."""
    pairs = [(test["target"].to_numpy()[rows], values[rows]) for rows in test.reset_index(drop=True).groupby("task").indices.values()]
    return float(np.mean([roc_auc_score(truth, own) for truth, own in pairs if len(np.unique(truth)) == 2]))


def peers(learn: pd.DataFrame, test: pd.DataFrame) -> dict[str, np.ndarray]:
    """All tasks in one model of scikit-learn, with a 0/1 column for each task."""
    both = pd.get_dummies(pd.concat([learn, test]).drop(columns=["target", "group"]), columns=["task"], dtype=float).to_numpy(float)
    x, z, y = both[: len(learn)], both[len(learn) :], learn["target"].to_numpy()
    logistic = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced", max_iter=5000)).fit(x, y)
    boosted = HistGradientBoostingClassifier(class_weight="balanced", random_state=0).fit(x, y)
    return {
        "logistic regression, task dummies": logistic.decision_function(z),
        "HistGradientBoosting, task dummies": boosted.decision_function(z),
    }


def against(found: dict[str, list[list[float]]], ours: str, at: int) -> dict[str, str]:
    """Behind each mean: + where the first is better by a paired t-test at 5 %, - where it is worse, = elsewhere."""
    signs = {}
    for name, scores in found.items():
        difference = np.array(found[ours][at]) - np.array(scores[at])
        if name == ours:
            signs[name] = ""
        elif len(difference) < 2 or not difference.any():
            signs[name] = "="
        else:
            p = stats.ttest_1samp(difference, 0).pvalue
            signs[name] = "=" if p >= 0.05 else "+" if difference.mean() > 0 else "-"
    return signs


def landmine(bench: Bench) -> list[str]:
    table = bench.table("landmine")
    if table is None:
        return ["(the data set is not there)"]
    table = table.rename(columns={"label": "target"})
    table = table.assign(group=np.where(table["task"].astype(int) <= 15, "foliage", "bare"))
    draws = 1 if bench.small else DRAWS
    shares = bench.sizes(SHARES, [0.1])
    found: dict[str, list[list[float]]] = {}
    for at, share in enumerate(shares):
        for seed in range(draws):
            learn, test = parts(table, ["task", "target"], share, seed)
            flags = ["--C", "auto", "--class-weight", "balanced"]
            scores = {name: told(bench, learn, test, [*own, *flags]) for name, own in METHODS.items()}
            for name, values in (scores | peers(learn, test)).items():
                found.setdefault(name, [[] for _ in shares])[at].append(mean_auc(test, values))
        print(share, {name: round(float(np.mean(own[at])), 4) for name, own in found.items()}, flush=True)
    bench.record(landmine=found)
    best = "transfer all, group, own"
    table_ = Table("mean AUC", *(f"{share:.0%} of the rows" for share in shares))
    signs = [against(found, best, at) for at in range(len(shares))]
    for name, scores in found.items():
        table_.row(name, *(f"{np.mean(own):.4f} ± {np.std(own):.4f} {signs[at][name]}".rstrip() for at, own in enumerate(scores)))
    return [
        "### Landmine",
        "",
        f"Mean AUC over 29 tasks, {draws} draws with their standard deviation; behind it whether transfer with groups is better (+), "
        "worse (-) or no different (=) by a paired t-test at 5 %.",
        "",
        *table_.lines,
    ]


def made(seed: int, shared: Sequence[float], tasks: int = 100, rows: int = 30, columns: int = 8) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Regression tasks in ten groups whose truth is linear: these shares of its variance are common, the group's, the task's own; noise has
    a quarter of it. As many rows to learn from as are said, and 100 to test on, for each task."""
    rng = np.random.default_rng(seed)

    def direction() -> np.ndarray:
        w = rng.normal(size=columns)
        return w / np.linalg.norm(w)

    common, groups = direction(), [direction() for _ in range(10)]
    tables = []
    for task in range(tasks):
        group = task % 10
        w = np.sqrt(shared[0]) * common + np.sqrt(shared[1]) * groups[group] + np.sqrt(shared[2]) * direction()
        x = rng.normal(size=(rows + 100, columns))
        y = x @ w + 0.5 * rng.normal(size=len(x))
        frame = pd.DataFrame(x, columns=[f"f{at}" for at in range(columns)]).assign(task=f"t{task}", group=f"g{group}", target=y)
        tables.append(frame.assign(test=np.arange(len(x)) >= rows))
    table = pd.concat(tables, ignore_index=True)
    return table[~table["test"]].drop(columns="test"), table[table["test"]].drop(columns="test")


WORLDS = {
    "common + group + own (.5, .3, .2)": (0.5, 0.3, 0.2),
    "nothing shared": (0.0, 0.0, 1.0),
    "all tasks are one": (1.0, 0.0, 0.0),
}


def regression(bench: Bench) -> list[str]:
    draws = 1 if bench.small else DRAWS
    found: dict[str, list[list[float]]] = {name: [[] for _ in WORLDS] for name in METHODS}
    for at, shared in enumerate(WORLDS.values()):
        for seed in range(draws):
            learn, test = made(seed, shared, tasks=20 if bench.small else 100)
            for name, own in METHODS.items():
                values = told(bench, learn, test, [*own, "--machine", "krr", "--lambda", "auto", "--kernel", "linear"])
                found[name][at].append(r2_score(test["target"], values))
        print(at, {name: round(float(np.mean(own[at])), 4) for name, own in found.items()}, flush=True)
    bench.record(regression=found)
    table = Table("R² over all test rows", *WORLDS)
    signs = [against(found, "transfer all, group, own", at) for at in range(len(WORLDS))]
    for name, scores in found.items():
        table.row(name, *(f"{np.mean(own):.4f} ± {np.std(own):.4f} {signs[at][name]}".rstrip() for at, own in enumerate(scores)))
    return [
        "### Made regression tasks",
        "",
        f"100 tasks of 30 rows in ten groups, 8 columns, a linear truth; kernel ridge with a linear kernel, λ by leave-one-out or folds; "
        f"{draws} draws.",
        "",
        *table.lines,
    ]


def letters(bench: Bench) -> list[str]:
    table = bench.table("ocr_pairs")
    if table is None:
        return ["(the data set is not there)"]
    table = table.rename(columns={"label": "target"}).drop(columns=[c for c in ("letter", "row") if c in table])
    table = table.copy().assign(group="all")
    draws = 1 if bench.small else DRAWS
    shares = bench.sizes([0.002, 0.005, 0.05], [0.005])
    names = [name for name in METHODS if "group" not in name and name not in ("hierarchy", "pooled")]
    found: dict[str, list[list[float]]] = {name: [[] for _ in shares] for name in names}
    for at, share in enumerate(shares):
        for seed in range(draws):
            learn, test = parts(table, ["task", "target"], share, seed)
            test = pd.concat([own.sample(min(len(own), 500), random_state=seed) for _, own in test.groupby("task")])
            for name in names:
                values = told(bench, learn, test, [*METHODS[name], "--C", "auto"])
                right = (values > 0) == (test["target"].to_numpy() > 0)
                found[name][at].append(float(pd.Series(right).groupby(test["task"].to_numpy()).mean().mean()))
        print(share, {name: round(float(np.mean(own[at])), 4) for name, own in found.items()}, flush=True)
    bench.record(letters=found)
    lines = Table("mean accuracy over 8 pairs", *(f"{share:.1%}" for share in shares))
    for name, scores in found.items():
        lines.row(name, *(f"{100 * np.mean(own):.2f} ± {100 * np.std(own):.2f}" for own in scores))
    return [
        "### Letters in pairs",
        "",
        f"ocr_pairs with the usual kernels, {draws} draws, 500 test rows of each pair. What is learned of C against E says nothing of "
        "G against Y, whose sides are called first and second by accident: there is little to transfer; the table says what trying costs. "
        "docs/reproduction.md has the paper's protocol.",
        "",
        *lines.lines,
    ]


def cost(bench: Bench) -> list[str]:
    rng = np.random.default_rng(0)
    tasks, rows, columns = (20, 30, 10) if bench.small else (139, 110, 10)
    x = rng.normal(size=(tasks * rows, columns))
    names = np.repeat([f"t{task}" for task in range(tasks)], rows)
    own = np.repeat(rng.normal(size=(tasks, columns)), rows, axis=0)
    y = x.sum(1) + 0.5 * (x * own).sum(1) + rng.normal(size=len(x))
    table = pd.DataFrame(x, columns=[f"f{at}" for at in range(columns)]).assign(task=names, target=y)
    path = bench.folder / "cost.csv"
    table.to_csv(path, index=False)
    lines = Table("", "seconds", "memory (GiB)", "of this: kernels, solving (s)")
    kernels = ["--kernel", "linear", "--kernel", "rbf:sigma=median", "--transfer", "all,own", "--task", "task"]
    for machine in ("krr", "svr"):
        before = time.perf_counter()
        text = bench.program("mtmkl", "fit", path, "--target", "target", *kernels, "--machine", machine, "--no-baselines", "--json")
        seconds = time.perf_counter() - before
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
        found = json.loads(text)
        bench.record(machine=machine, seconds=seconds, memory=memory, passes=found["passes"])
        inside = " and ".join(in_seconds(found["seconds"][part]) for part in ("kernels", "solve"))
        lines.row(f"transfer, {machine}", in_seconds(seconds), f"{memory:.1f}", inside)
    same = names[:, None] == names[None]
    scaled = StandardScaler().fit_transform(x)

    def ridge() -> None:
        linear, gauss = scaled @ scaled.T, np.exp(-squared_distances(scaled) / (2 * columns))
        gram = (linear / columns + gauss) * (1 + same) + same
        KernelRidge(kernel="precomputed", alpha=1.0).fit(gram, y)

    before = time.perf_counter()
    ridge()
    lines.row(
        "KernelRidge on the summed kernel",
        in_seconds(time.perf_counter() - before),
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f}",
        "",
    )
    return [
        "### What it costs",
        "",
        f"{tasks} tasks of {rows} rows, two kernels each for all tasks and for each task's own and an offset for each task, to a certified "
        "gap of 1e-4. scikit-learn's KernelRidge solves one system at weights and a ridge that somebody knows.",
        "",
        *lines.lines,
    ]


SECTIONS: list[Callable[[Bench], list[str]]] = [landmine, regression, letters, cost]


def run(bench: Bench) -> list[str]:
    lines = [__doc__.split("\n\n", 2)[2].strip(), ""]
    for section in SECTIONS:
        lines += [*section(bench), ""]
    return lines
