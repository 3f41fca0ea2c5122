"""Tasks with few rows: sharing weights, sharing predictors, or nothing.

    cargo xtask bench --only transfer

Every method of ours is `mtmkl fit` with the price of an error chosen from the training rows (`--C auto`, `--lambda auto`); nothing else is
set by hand. + behind a figure: transfer with groups is better by a paired t-test at 5 % on the same draws; - worse; = no difference shown.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from common import ROOT, Bench, Table, in_seconds, measured

TITLE = "Transfer between tasks"
#: A page of its own.
PAGE = ROOT / "docs" / "transfer.md"
DRAWS = 20
#: Of Landmine, draws 0 to 19 were looked at while the choice of C was made (ADR 28): the page has those after them.
FIRST_LANDMINE = 20

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


class Journal:
    """What was found so far, so that a run that was cut short goes on; begun anew where the core has changed."""

    def __init__(self) -> None:
        tree = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD:crates/mtmkl/src"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        self.path: Path = ROOT / "target" / "bench" / f"transfer-{tree.stdout.strip()}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        self.known = {json.dumps(key): found for key, found in map(json.loads, lines)}

    def found(self, key: list[object], work: Callable[..., Any], *arguments: object) -> Any:
        name = json.dumps(key)
        if name not in self.known:
            self.known[name] = work(*arguments)
            with self.path.open("a") as file:
                file.write(json.dumps([key, self.known[name]]) + "\n")
        return self.known[name]


def parts(table: pd.DataFrame, strata: Sequence[str], share: float, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """This share of each stratum to learn from (at least two rows), the rest to test on."""
    rng = np.random.default_rng(seed)
    chosen = []
    for _, rows in table.groupby(list(strata), sort=True).indices.items():
        count = min(len(rows) - 1, max(2, round(share * len(rows))))
        chosen.append(rng.permutation(rows)[:count])
    at = np.sort(np.concatenate(chosen))
    return table.iloc[at], table.drop(index=table.index[at])


def told(bench: Bench, learn: pd.DataFrame, test: pd.DataFrame, flags: Sequence[str]) -> tuple[np.ndarray, dict[str, Any]]:
    """What a fit says of the test rows, their decision values or numbers; and what it says of itself."""
    learned, asked, model, answers = (bench.folder / name for name in ("learn.csv", "test.csv", "model.mtmkl", "told.csv"))
    learn.to_csv(learned, index=False)
    test.drop(columns="target").to_csv(asked, index=False)
    command = ["mtmkl", "fit", learned, "--target", "target", *flags, "--threads", "1", "--no-baselines", "--quiet", "--json", "-o", model]
    text = bench.program(*command)
    bench.program("mtmkl", "predict", model, asked, "--decision", "-o", answers)
    found = pd.read_csv(answers)
    scores = [name for name in found if name.startswith("decision")]
    return found[scores[0] if scores else "prediction"].to_numpy(float), json.loads(text)


def mean_auc(test: pd.DataFrame, values: np.ndarray) -> float:
    """Over the tasks that have rows of both classes."""
    pairs = [(test["target"].to_numpy()[rows], values[rows]) for rows in test.reset_index(drop=True).groupby("task").indices.values()]
    return float(np.mean([roc_auc_score(truth, own) for truth, own in pairs if len(np.unique(truth)) == 2]))


def auc(bench: Bench, learn: pd.DataFrame, test: pd.DataFrame, flags: Sequence[str]) -> float:
    values, _ = told(bench, learn, test, flags)
    return mean_auc(test, values)


def peers(learn: pd.DataFrame, test: pd.DataFrame) -> dict[str, float]:
    """The mean AUC of all tasks in one model of scikit-learn, with a 0/1 column for each task."""
    both = pd.get_dummies(pd.concat([learn, test]).drop(columns=["target", "group"]), columns=["task"], dtype=float).to_numpy(float)
    x, z, y = both[: len(learn)], both[len(learn) :], learn["target"].to_numpy()
    logistic = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced", max_iter=5000)).fit(x, y)
    boosted = HistGradientBoostingClassifier(class_weight="balanced", random_state=0).fit(x, y)
    return {
        "logistic regression, task dummies": mean_auc(test, logistic.decision_function(z)),
        "HistGradientBoosting, task dummies": mean_auc(test, boosted.decision_function(z)),
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


def compared(title: str, columns: Sequence[str], found: dict[str, list[list[float]]], best: str = "transfer all, group, own") -> list[str]:
    """Means with their standard deviations, and what a t-test says of the difference to the first."""
    signs = [against(found, best, at) for at in range(len(columns))]
    table = Table(title, *columns)
    for name, scores in found.items():
        table.row(name, *(f"{np.mean(own):.4f} ± {np.std(own):.4f} {signs[at][name]}".rstrip() for at, own in enumerate(scores)))
    return table.lines


def landmine(bench: Bench) -> list[str]:
    table = bench.table("landmine")
    if table is None:
        return ["(the data set is not there)"]
    table = table.rename(columns={"label": "target"})
    table = table.assign(group=np.where(table["task"].astype(int) <= 15, "foliage", "bare"))
    columns = bench.sizes([(0.1, "linear"), (0.2, "linear"), (0.3, "linear"), (0.3, "usual"), (0.5, "linear")], [(0.1, "linear")])
    journal = Journal()
    found: dict[str, list[list[float]]] = {}
    draws = 1 if bench.small else DRAWS
    for at, (share, kernels) in enumerate(columns):
        flags = ["--C", "auto", "--metric", "AUC", "--class-weight", "balanced", *(["--kernel", "linear"] if kernels == "linear" else [])]
        for seed in range(FIRST_LANDMINE, FIRST_LANDMINE + draws):
            learn, test = parts(table, ["task", "target"], share, seed)
            scores: dict[str, Any] = {}
            for name, own in METHODS.items():
                key = ["landmine", kernels, share, seed, name]
                scores[name] = journal.found(key, auc, bench, learn, test, [*own, *flags])
            theirs = journal.found(["landmine", share, seed, "peers"], peers, learn, test)
            for name, score in (scores | theirs).items():
                found.setdefault(name, [[] for _ in columns])[at].append(score)
        print(share, kernels, {name: round(float(np.mean(own[at])), 4) for name, own in found.items()}, flush=True)
    bench.record(landmine=found)
    heads = [f"{share:.0%} of the rows" + (", usual kernels" if kernels == "usual" else "") for share, kernels in columns]
    return [
        "## Landmine",
        "",
        "29 tasks, mines or not; the terrain (tasks 1 to 15 foliage, 16 to 29 bare earth) is the group. Mean AUC over the tasks, "
        "with the standard deviation over draws; `--class-weight balanced --C auto --metric AUC`. All methods of ours with a linear "
        "kernel: by cross-validation on training rows (`mtmkl tune --kernel-set`, eight draws of 20 %, three of 30 %, the best of five C) "
        "transfer with groups has .786 and .752 with it, .779 and .746 with one Gaussian beside it, .779 and .742 with the usual kernels; "
        "PSCS .749 and .726, .751 and .725, .748 and .723; pooled .727 and .711, .731 and .719, .732 and .720. One column is with the "
        f"usual kernels. {draws} draws, from draw {FIRST_LANDMINE} on, those before were seen while C had its rule made. The methods "
        "of scikit-learn are at their defaults with balanced classes.",
        "",
        *compared("mean AUC", heads, found),
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


LEVELS = ["all", "group", "own", "offset"]


def ridges(learn: pd.DataFrame, test: pd.DataFrame) -> dict[str, float]:
    """scikit-learn's ridge regression with an offset and a ridge by leave-one-out: for each task, and for all rows with task dummies."""
    columns = [name for name in learn if name.startswith("f")]
    alphas = np.logspace(-3, 4, 29)
    alone = np.empty(len(test))
    tasks = test["task"].to_numpy()
    for name, rows in learn.groupby("task"):
        model = RidgeCV(alphas).fit(rows[columns].to_numpy(), rows["target"])
        alone[tasks == name] = model.predict(test.loc[tasks == name, columns].to_numpy())
    both = pd.get_dummies(pd.concat([learn, test])[[*columns, "task"]], columns=["task"], dtype=float).to_numpy(float)
    together = RidgeCV(alphas).fit(both[: len(learn)], learn["target"]).predict(both[len(learn) :])
    truth = test["target"]
    return {"RidgeCV for each task": r2_score(truth, alone), "RidgeCV, task dummies": r2_score(truth, together)}


def r2_and_shares(bench: Bench, learn: pd.DataFrame, test: pd.DataFrame, own: Sequence[str]) -> tuple[float, Any]:
    values, model = told(bench, learn, test, [*own, "--machine", "krr", "--lambda", "auto", "--kernel", "linear"])
    return r2_score(test["target"], values), model.get("shares")


def regression(bench: Bench) -> list[str]:
    draws = 1 if bench.small else DRAWS
    journal = Journal()
    best = "transfer all, group, own"
    # Tasks of zero mean gain by not being centred: the strongest that learns alone.
    methods = METHODS | {"each task alone, uncentred": [*METHODS["each task alone"], "--target-scale", "none"]}
    found: dict[str, list[list[float]]] = {}
    levels: list[list[list[float]]] = [[] for _ in WORLDS]
    for at, shared in enumerate(WORLDS.values()):
        for seed in range(draws):
            learn, test = made(seed, shared, tasks=20 if bench.small else 100)
            scores: dict[str, Any] = {}
            for name, own in methods.items():
                key = ["regression", *shared, bench.small, seed, name]
                scores[name], shares = journal.found(key, r2_and_shares, bench, learn, test, own)
                if name == best:
                    by_level = dict(zip(shares["levels"], shares["overall"], strict=True))
                    levels[at].append([by_level.get(level, 0.0) for level in LEVELS])
            theirs = journal.found(["regression", *shared, bench.small, seed, "peers"], ridges, learn, test)
            for name, score in (scores | theirs).items():
                found.setdefault(name, [[] for _ in WORLDS])[at].append(score)
        print(at, {name: round(float(np.mean(own[at])), 4) for name, own in found.items()}, np.mean(levels[at], axis=0), flush=True)
    bench.record(regression=found, shares=levels)
    shares = Table("share of the variance", *(f"{level}: found (true)" for level in LEVELS))
    for (name, shared), own in zip(WORLDS.items(), levels, strict=True):
        cells = zip(np.mean(own, axis=0), np.std(own, axis=0), (*shared, 0.0), strict=True)
        shares.row(name, *(f"{mean:.3f} ± {spread:.3f} ({true:g})" for mean, spread, true in cells))
    mean = {name: [float(np.mean(own)) for own in scores] for name, scores in found.items()}

    def lost(name: str, at: int) -> str:
        return f"{mean[best][at] / mean[name][at] - 1:+.1%}"

    return [
        "## Made regression tasks",
        "",
        f"100 tasks of 30 rows in ten groups, 8 columns, a linear truth without offsets whose variance is shared as said; noise has a "
        f"fifth of the target's variance, so that R² is .8 at most. Kernel ridge regression with one linear kernel; R² over all test "
        f"rows, {draws} draws.",
        "",
        *compared("R²", list(WORLDS), found),
        "",
        f"Where nothing is shared, transfer's R² against that of each task alone is {lost('each task alone', 1)}, of each task alone "
        f"uncentred {lost('each task alone, uncentred', 1)} and of RidgeCV for each task {lost('RidgeCV for each task', 1)}; "
        f"where all tasks are one, against that of pooled {lost('pooled', 2)}.",
        "",
        "What transfer with groups says of the variance of its predictions (`shares` of `fit --json`, the report's first picture):",
        "",
        *shares.lines,
    ]


PAIRS = ["C-E", "G-Y", "M-N", "A-G", "A-O"]
#: docs/reproduction.md, Table 3.
TABLE_3 = {
    "PSCS": ("69.57 ± 3.99", "76.98 ± 1.72", "88.55 ± 0.68"),
    "common weights (CS)": ("69.44 ± 3.86", "76.95 ± 1.70", "88.57 ± 0.70"),
    "each task alone (IS)": ("69.58 ± 4.03", "77.03 ± 1.80", "88.65 ± 0.70"),
    "Tang": ("69.16 ± 3.67", "76.93 ± 1.39", "88.83 ± 0.70"),
    "L_p–L_q group": ("69.75 ± 3.85", "77.07 ± 1.79", "88.65 ± 0.68"),
    "uniform average": ("69.91 ± 3.82", "77.24 ± 1.95", "88.87 ± 0.69"),
    "best single kernel": ("70.60 ± 3.67", "77.93 ± 2.14", "89.46 ± 0.56"),
}


def alike() -> pd.DataFrame:
    """What pairs have in common: (e_a − e_b)'(e_c − e_d)/2 for the pairs a-b and c-d. A kernel times it is a function of each letter."""
    letters = sorted({letter for pair in PAIRS for letter in pair.split("-")})
    sides = np.array([[float(pair[0] == letter) - float(pair[2] == letter) for letter in letters] for pair in PAIRS])
    return pd.DataFrame(sides @ sides.T / 2, columns=PAIRS).assign(task=PAIRS)[["task", *PAIRS]]


def right(bench: Bench, learn: pd.DataFrame, test: pd.DataFrame, own: Sequence[str]) -> float:
    """The mean over tasks of the per cent of rows that are right."""
    values, _ = told(bench, learn, test, [*own, "--C", "auto"])
    is_right = pd.Series((values > 0) == (test["target"].to_numpy() > 0)).groupby(test["task"].to_numpy())
    return 100 * float(is_right.mean().mean())


def letters(bench: Bench) -> list[str]:
    table = bench.table("ocr_pairs")
    if table is None:
        return ["(the data set is not there)"]
    table = table[table["task"].isin(PAIRS)].rename(columns={"label": "target"}).drop(columns=["letter", "row"], errors="ignore")
    draws = 1 if bench.small else DRAWS
    shares = bench.sizes([0.002, 0.005, 0.05], [0.005])
    matrix = bench.folder / "alike.csv"
    alike().to_csv(matrix, index=False)
    task = ["--task", "task"]
    methods = {
        "each task alone": [*task, "--sharing", "independent"],
        "common weights": [*task, "--sharing", "common"],
        "PSCS": [*task, "--sharing", "pscs"],
        "transfer all, own": [*task, "--transfer", "all,own"],
        "transfer by letters": [*task, "--transfer", "similarity,own", "--task-similarity", str(matrix)],
    }
    journal = Journal()
    found: dict[str, list[list[float]]] = {name: [[] for _ in shares] for name in methods}
    for at, share in enumerate(shares):
        for seed in range(draws):
            chosen = pd.concat([rows.sample(1000, random_state=seed) for _, rows in table.groupby(["task", "target"])], ignore_index=True)
            learn, rest = parts(chosen, ["task", "target"], share, seed)
            test = rest.groupby(["task", "target"]).sample(frac=0.5, random_state=seed)
            for name, own in methods.items():
                found[name][at].append(journal.found(["letters", share, seed, name], right, bench, learn, test, own))
        print(share, {name: round(float(np.mean(own[at])), 2) for name, own in found.items()}, flush=True)
    bench.record(letters=found)
    names = [f"{share:.1%}" for share in shares]
    lines = Table("per cent right", *names)
    signs = [against(found, "transfer by letters", at) for at in range(len(shares))]
    for name, scores in found.items():
        lines.row(name, *(f"{np.mean(own):.2f} ± {np.std(own):.2f} {signs[at][name]}".rstrip() for at, own in enumerate(scores)))
    if not bench.small:
        for name, own in TABLE_3.items():
            lines.row(f"Table 3: {name}", *own)
    return [
        "## Letters in pairs",
        "",
        f"Five pairs of letters (ocr_pairs), 1,000 rows of each letter, these shares to learn from and half of the others to test "
        f"on, {draws} draws, the usual kernels, C from the training rows. What tells C from E says nothing of G and Y, whose sides are "
        "called first and second by accident. But A-G, A-O and G-Y have letters in common: `by letters` is `--transfer similarity,own` "
        "with the matrix (e_a − e_b)'(e_c − e_d)/2 for the pairs a-b and c-d, that is, one function for each letter. The signs are of it. "
        "Below, the rows of docs/reproduction.md's Table 3: the paper's ten kernels, with C and q chosen on the half of the rows that is "
        "not tested on, hundreds of times as many rows as are learned from at 0.2 %.",
        "",
        *lines.lines,
    ]


#: One system with the summed kernel, at weights and a ridge that somebody knows.
RIDGE = """
import json, sys, time
import numpy as np, pandas as pd
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import StandardScaler
table = pd.read_csv(sys.argv[1])
names, y = table.pop("task").to_numpy(), table.pop("target").to_numpy()
before = time.perf_counter()
x = StandardScaler().fit_transform(table)
gram = x @ x.T
norms = np.diag(gram).copy()
gauss = np.exp((gram - (norms[:, None] + norms[None]) / 2) / x.shape[1])
gram /= x.shape[1]
gram += gauss
del gauss
same = names[:, None] == names[None]
gram *= 1.0 + same
gram += same
kernels = time.perf_counter() - before
KernelRidge(kernel="precomputed", alpha=1.0).fit(gram, y)
print(json.dumps({"kernels": kernels, "solve": time.perf_counter() - before - kernels}))
"""


def cost(bench: Bench) -> list[str]:
    rng = np.random.default_rng(0)
    tasks, rows, columns = (20, 30, 10) if bench.small else (139, 110, 10)
    x = rng.normal(size=(tasks * rows, columns))
    names = np.repeat([f"t{task}" for task in range(tasks)], rows)
    own = np.repeat(rng.normal(size=(tasks, columns)), rows, axis=0)
    y = x.sum(1) + 0.5 * (x * own).sum(1) + rng.normal(size=len(x))
    path = bench.folder / "cost.csv"
    pd.DataFrame(x, columns=[f"f{at}" for at in range(columns)]).assign(task=names, target=y).to_csv(path, index=False)
    load = os.getloadavg()[0]
    lines = Table("", "seconds", "memory (GiB)", "kernels", "solving", "the rest", "passes")
    flags = ["--kernel", "linear", "--kernel", "rbf:sigma=median", "--transfer", "all,own", "--task", "task", "--tol", "1e-4", "--quiet"]
    fit = [bench.programs / "mtmkl", "fit", path, "--target", "target", *flags, "--no-baselines", "--json", "--memory-limit", "16"]
    commands = {
        "transfer, krr": [*fit, "--machine", "krr"],
        "transfer, svr": [*fit, "--machine", "svr"],
        "KernelRidge on the summed kernel": [sys.executable, "-c", RIDGE, path],
    }
    for name, command in commands.items():
        text, seconds, memory = measured(command)
        found = json.loads(text)
        inside = found.get("seconds", found)
        bench.record(cost=name, seconds=seconds, memory=memory, inside=inside, passes=found.get("passes"))
        rest = seconds - inside["kernels"] - inside["solve"]
        parts_ = [in_seconds(part) for part in (inside["kernels"], inside["solve"], rest)]
        lines.row(name, in_seconds(seconds), f"{memory:.1f}", *parts_, found.get("passes", ""))
    return [
        "## What it costs",
        "",
        f"{tasks} tasks of {rows} rows, two kernels each for all tasks and for each task's own and an offset for each task, to a certified "
        "gap of 1e-4, λ and C at their defaults. scikit-learn's KernelRidge solves one system at weights and a ridge that somebody "
        "knows. The rest is reading, scores and the shares of variance; for scikit-learn, imports and reading. "
        f"(Load of the machine when it began: {load:.1f}.)",
        "",
        *lines.lines,
    ]


SECTIONS: list[Callable[[Bench], list[str]]] = [landmine, regression, letters, cost]


def run(bench: Bench) -> list[str]:
    lines = [__doc__.split("\n\n", 2)[2].strip(), ""]
    for section in SECTIONS:
        lines += [*section(bench), ""]
    return lines
