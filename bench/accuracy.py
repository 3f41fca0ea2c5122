"""How well the plain commands predict, beside what people would have used instead, each at its default.

    cargo xtask bench --only accuracy

Draws of each set: 70 % of the rows to learn from, the rest to test on (at most 1,500 each, of wide sets 500). `mtmkl fit` and
`mtmkl tune` as a newcomer types them, with nothing but the table, the target and, for numbers, the machine; the peers in a pipeline that
standardises columns.
What the peers scored is kept in target/bench/accuracy-peers.json and not computed again.
"""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn
from sklearn import datasets
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

from common import ROOT, Bench, digits

TITLE = "Accuracy"
#: A page of its own.
PAGE = ROOT / "docs" / "accuracy.md"


def most(columns: int) -> int:
    """How many rows: fewer of wide sets, so that the peers' searches end."""
    return int(np.clip(200_000 / columns, 500, 1500))


DRAWS = 10
GRID = {"C": np.logspace(-2, 4, 7), "gamma": np.logspace(-4, 2, 7)}


@dataclass
class Problem:
    """A table with its target; `task` names the column of tasks, `machine` is said where it must be."""

    name: str
    kind: str
    table: pd.DataFrame
    machine: str | None = None
    task: str | None = None


def bundled(name: str) -> pd.DataFrame:
    found = getattr(datasets, f"load_{name}")(as_frame=True)
    return found.data.assign(target=found.target)


def problems(bench: Bench) -> Iterator[Problem]:
    """The sets, classes first."""

    def shared(name: str) -> pd.DataFrame | None:
        table = bench.table(name)
        return (
            None if table is None else table.drop(columns=[c for c in ("split", "word", "position", "fold", "row", "letter") if c in table])
        )

    for name in ("iris", "wine", "breast_cancer", "digits"):
        yield Problem(name, "classes", bundled(name))
    for name in ("vehicle", "robot4", "robot24", "letter", "shuttle", "usps", "mnist_t10k", "ocr_letters"):
        table = shared(name)
        if table is not None:
            counts = table["label"].value_counts()
            table = table[table["label"].isin(counts.index[counts >= 40])]
            yield Problem(name, "classes", table.rename(columns={"label": "target"}))
    yield Problem("diabetes", "numbers", bundled("diabetes"), "svr")
    # Numbers among the columns of real sets, from all others.
    wine = bundled("wine")
    yield Problem("wine: alcohol", "numbers", wine.drop(columns="target").rename(columns={"alcohol": "target"}), "svr")
    cancer = bundled("breast_cancer").drop(columns=["target", "mean radius", "mean perimeter"])
    yield Problem("cancer: mean area", "numbers", cancer.rename(columns={"mean area": "target"}), "svr")
    for name, column in (("vehicle", "f1"), ("robot24", "f15")):
        table = shared(name)
        if table is not None:
            yield Problem(f"{name}: {column}", "numbers", table.drop(columns="label").rename(columns={column: "target"}), "svr")
    for name in ("landmine", "ocr_pairs"):
        table = shared(name)
        if table is not None:
            yield Problem(name, "tasks", table.rename(columns={"label": "target"}), task="task")
    shuttle = shared("shuttle")
    if shuttle is not None:
        inside = (shuttle.pop("label") == 1).astype(int)
        yield Problem("shuttle: class 1", "anomaly", shuttle.assign(target=inside), "ocsvm")
    digits_ = bundled("digits")
    inside = digits_.pop("target").isin([0, 6, 8, 9]).astype(int)
    yield Problem("digits: 0689", "anomaly", digits_.assign(target=inside), "ocsvm")


def draw(problem: Problem, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows to learn from and rows to test on; for the search for anomalies, only rows inside to learn from."""
    by = problem.table["target"] if problem.kind in ("classes", "anomaly") else problem.table.get("task")
    if problem.kind == "tasks":
        by = problem.table["task"].astype(str) + " " + problem.table["target"].astype(str)
    learn, test = train_test_split(problem.table, test_size=0.3, random_state=seed, stratify=by)

    limit = most(problem.table.shape[1])

    def some(rows: pd.DataFrame) -> pd.DataFrame:
        if len(rows) <= limit:
            return rows
        return train_test_split(rows, train_size=limit, random_state=seed, stratify=None if by is None else by[rows.index])[0]

    learn, test = some(learn), some(test)
    return (learn[learn["target"] == 1] if problem.kind == "anomaly" else learn), test


def peers(kind: str) -> dict[str, Callable[[], Any]]:
    """The estimators that stand beside ours, each at its default."""
    if kind == "numbers":
        return {
            "SVR": SVR,
            "GridSearchCV(SVR)": lambda: GridSearchCV(SVR(), GRID),
            "HistGradientBoosting": lambda: HistGradientBoostingRegressor(random_state=0),
            "RandomForest": lambda: RandomForestRegressor(random_state=0),
            "RidgeCV": RidgeCV,
        }
    if kind == "anomaly":
        return {
            "OneClassSVM": OneClassSVM,
            "IsolationForest": lambda: IsolationForest(random_state=0),
            "LocalOutlierFactor": lambda: LocalOutlierFactor(novelty=True),
        }
    return {
        "SVC": SVC,
        "GridSearchCV(SVC)": lambda: GridSearchCV(SVC(), GRID),
        "HistGradientBoosting": lambda: HistGradientBoostingClassifier(random_state=0),
        "RandomForest": lambda: RandomForestClassifier(random_state=0),
        "LogisticRegression": lambda: LogisticRegression(max_iter=1000),
    }


#: How a draw is measured.
MEASURES = {"classes": accuracy_score, "tasks": accuracy_score, "numbers": r2_score, "anomaly": roc_auc_score}


def by_peer(problem: Problem, make: Callable[[], Any], learn: pd.DataFrame, test: pd.DataFrame) -> tuple[float, float, float]:
    """Score, seconds and processor seconds. Tasks become 0/1 columns beside the others: one model for all."""
    both = pd.concat([learn, test])
    columns = both.drop(columns="target")
    if problem.task is not None:
        columns = pd.get_dummies(columns, columns=[problem.task], dtype=float)
    x, z = columns.to_numpy(float)[: len(learn)], columns.to_numpy(float)[len(learn) :]
    started, used = time.perf_counter(), time.process_time()
    model = make_pipeline(StandardScaler(), make())
    model.fit(x, None if problem.kind == "anomaly" else learn["target"].to_numpy())
    seconds, used = time.perf_counter() - started, time.process_time() - used
    answer = model.decision_function(z) if problem.kind == "anomaly" else model.predict(z)
    return float(MEASURES[problem.kind](test["target"].to_numpy(), answer)), seconds, used


def by_program(bench: Bench, command: str, problem: Problem, learn: pd.DataFrame, test: pd.DataFrame) -> tuple[float, float, float]:
    """The same of one of our commands, as typed: start of the program and reading of the file included."""
    learned, asked, model = (bench.folder / name for name in ("learn.csv", "test.csv", "model.mtmkl"))
    (learn.drop(columns="target") if problem.kind == "anomaly" else learn).to_csv(learned, index=False)
    test.drop(columns="target").to_csv(asked, index=False)
    arguments = [command, learned, *([] if problem.kind == "anomaly" else ["--target", "target"]), "-o", model, "--quiet"]
    if problem.machine is not None:
        arguments += ["--machine", problem.machine]
    if problem.task is not None:
        arguments += ["--task", problem.task]
    if command == "tune":
        arguments += ["--journal", bench.folder / "journal"]
        (bench.folder / "journal").unlink(missing_ok=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    bench.program("mtmkl", *arguments)
    seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    told = bench.folder / "told.csv"
    bench.program("mtmkl", "predict", model, asked, "--decision", "-o", told)
    answer = pd.read_csv(told)
    column = "decision" if problem.kind == "anomaly" else "prediction"
    return float(MEASURES[problem.kind](test["target"].to_numpy(), answer[column].to_numpy())), seconds, used


class Cache:
    """What the peers scored, by set, draw and peer."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[str, list[float]] = json.loads(path.read_text()) if path.exists() else {}

    def get(self, key: str, work: Callable[[], tuple[float, float, float]]) -> tuple[float, float, float]:
        if key not in self.known:
            self.known[key] = list(work())
            temporary = self.path.with_suffix(".new")
            temporary.write_text(json.dumps(self.known))
            os.replace(temporary, self.path)
        score, seconds, used = self.known[key]
        return score, seconds, used


def scores_of(bench: Bench, problem: Problem, draws: int, ours: tuple[str, ...], cache: Cache) -> dict[str, np.ndarray]:
    """By method: draws × (score, seconds, processor seconds)."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    for seed in range(draws):
        learn, test = draw(problem, seed)
        for command in ours:
            if command == "tune" and problem.kind == "anomaly":
                continue
            found.setdefault(f"mtmkl {command}", []).append(by_program(bench, command, problem, learn, test))
        for name, make in peers(problem.kind).items():
            key = f"{sklearn.__version__} {problem.name} {len(learn)} {len(test)} {seed} {name}"
            found.setdefault(name, []).append(cache.get(key, partial(by_peer, problem, make, learn, test)))
    return {name: np.array(values) for name, values in found.items()}


def behind(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float]:
    """By how much our scores are ahead on the mean, and what is allowed to be behind: two standard errors, or a point."""
    difference = ours[:, 0] - theirs[:, 0]
    error = difference.std(ddof=1) / np.sqrt(len(difference)) if len(difference) > 1 else 0.0
    return float(difference.mean()), max(2 * error, 0.01)


METHODS = ["mtmkl fit", "mtmkl tune", "SVC/SVR", "GridSearchCV", "HistGradientBoosting", "RandomForest", "linear"]
SHORT = {
    "SVC": "SVC/SVR",
    "SVR": "SVC/SVR",
    "GridSearchCV(SVC)": "GridSearchCV",
    "GridSearchCV(SVR)": "GridSearchCV",
    "LogisticRegression": "linear",
    "RidgeCV": "linear",
}


def pairs(results: dict[str, dict[str, np.ndarray]], ours: str, theirs: str) -> list[str]:
    """Ours against theirs, set by set and in sum."""
    lines = [
        f"**`{ours}` against {theirs}**",
        "",
        "| set | ahead by | allowed behind | holds | processor time, ours / theirs |",
        "|---|---|---|---|---|",
    ]
    ahead, fails = [], []
    for name, methods in results.items():
        if ours not in methods or theirs not in methods:
            continue
        mean, allowed = behind(methods[ours], methods[theirs])
        share = np.median(methods[ours][:, 2]) / np.median(methods[theirs][:, 2])
        ahead.append(mean)
        if mean < -allowed:
            fails.append(name)
        lines.append(f"| {name} | {mean:+.4f} | {allowed:.4f} | {'**no**' if mean < -allowed else 'yes'} | {digits(share)} |")
    shown = f"; worse than allowed: {', '.join(fails)}" if fails else "; on no set worse than allowed"
    lines += ["", f"Mean over {len(ahead)} sets: **{np.mean(ahead):+.4f}**{shown}.", ""]
    return lines


def run(bench: Bench) -> list[str]:
    draws = 2 if bench.small else DRAWS
    raw = ROOT / "target" / "bench"
    cache = Cache(raw / "accuracy-peers.json")
    results: dict[str, dict[str, np.ndarray]] = {}
    for problem in problems(bench):
        found = scores_of(bench, problem, draws, ("fit", "tune"), cache)
        results[problem.name] = {SHORT.get(name, name): values for name, values in found.items()}
        print(problem.name, {name: f"{v[:, 0].mean():.4f} {np.median(v[:, 1]):.2f} s" for name, v in found.items()}, flush=True)
        bench.record(set=problem.name, **{name: values.tolist() for name, values in found.items()})
    return page(results, draws)


def page(results: dict[str, dict[str, np.ndarray]], draws: int) -> list[str]:
    """The page's lines."""
    lines = [
        __doc__.split("\n\n", 2)[2].strip(),
        "",
        f"Mean score over {draws} draws (accuracy of classes, R² of numbers; of anomalies AUC):",
        "",
    ]
    lines += ["| set | " + " | ".join(METHODS) + " |", "|---|" + "---|" * len(METHODS)]
    ranked = []
    for name, methods in results.items():
        scores = [methods[method][:, 0].mean() if method in methods else np.nan for method in METHODS]
        if not np.isnan(scores).any():
            # The rank of each: 1 for the best, equal ones share.
            ranked.append([1 + sum(b > a + 1e-12 for b in scores) + 0.5 * (sum(abs(b - a) <= 1e-12 for b in scores) - 1) for a in scores])
            best = np.nanmax(scores)
            cells = [f"**{s:.3f}**" if s == best else f"{s:.3f}" for s in scores]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines.append("| mean rank | " + " | ".join(f"{r:.2f}" for r in np.mean(ranked, axis=0)) + " |")
    lines += ["", "Median processor seconds to fit:", "", "| set | " + " | ".join(METHODS) + " |", "|---|" + "---|" * len(METHODS)]
    for name, methods in results.items():
        if "mtmkl tune" in methods:
            cells = [digits(float(np.median(methods[method][:, 2]))) if method in methods else "" for method in METHODS]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", *pairs(results, "mtmkl fit", "SVC/SVR"), *pairs(results, "mtmkl tune", "GridSearchCV")]
    lines += ["Anomalies (AUC):", ""]
    for name, methods in results.items():
        if "OneClassSVM" in methods:
            lines.append(f"- {name}: " + ", ".join(f"{method} {values[:, 0].mean():.3f}" for method, values in methods.items()))
    return lines
