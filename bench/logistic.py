"""Kernel logistic regression: what its probabilities are worth, and what it costs.

    cargo xtask bench --only logistic

`mtmkl fit --machine logistic` beside `mtmkl fit --probability` (support vectors with sigmoids), `CalibratedClassifierCV(SVC)` and
`GaussianProcessClassifier` with the same four kernels (linear, and Gaussian of half, once and twice the median distance), whose weights it
learns; at most 400 rows to learn from, since the last takes hours with more. Brier and log-loss as in docs/probability.md.
"""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct
from sklearn.preprocessing import StandardScaler

import accuracy
import probability
from common import ROOT, Bench, Table, in_seconds, median, squared_distances

TITLE = "Logistic regression"
#: A page of its own.
PAGE = ROOT / "docs" / "logistic.md"
SETS = ["wine", "breast_cancer", "vehicle", "robot4", "digits", "usps"]
DRAWS = 3
ROWS = 400


def gaussian_process(learn: pd.DataFrame, test: pd.DataFrame) -> tuple[np.ndarray, list[str]]:
    scale = StandardScaler().fit(learn.drop(columns="target").to_numpy(float))
    x, z = (scale.transform(table.drop(columns="target").to_numpy(float)) for table in (learn, test))
    width = float(np.sqrt(np.median(squared_distances(x)[np.triu_indices(len(x), 1)])))
    kernel = ConstantKernel() * DotProduct(0.0, "fixed")
    for factor in (0.5, 1.0, 2.0):
        kernel += ConstantKernel() * RBF(factor * width, "fixed")
    with warnings.catch_warnings():
        # Of weights at the ends of their ranges.
        warnings.simplefilter("ignore")
        model = GaussianProcessClassifier(kernel, random_state=0).fit(x, learn["target"].to_numpy())
    return model.predict_proba(z), [str(name) for name in model.classes_]


def fit_seconds(bench: Bench, learn: pd.DataFrame, machine: str) -> float:
    """Of kernels and solving, by one thread; the least of three."""
    path = bench.folder / "timed.csv"
    learn.to_csv(path, index=False)
    flags = ["--target", "target", "--machine", machine, "--threads", "1", "--no-baselines", "--json", "--quiet"]
    found = [json.loads(bench.program("mtmkl", "fit", path, *flags))["seconds"] for _ in range(3)]
    return min(one["kernels"] + one["solve"] for one in found)


def chosen(bench: Bench) -> list[accuracy.Problem]:
    sets = bench.sizes(SETS, SETS[:2])
    return [problem for problem in accuracy.problems(bench) if problem.name in sets]


def worth(bench: Bench, draws: int) -> list[str]:
    """What the probabilities are worth."""
    names = ["logistic", "svc, sigmoids", "calibrated SVC", "Gaussian process"]
    lines = Table("set", "classes", *(f"{what}: {name}" for what in ("log-loss", "Brier") for name in names))
    for problem in chosen(bench):
        found: list[list[tuple[float, float]]] = [[] for _ in names]
        for seed in range(draws):
            whole, test = accuracy.draw(problem, seed)
            learn = whole.sample(min(len(whole), ROWS), random_state=seed)
            truth = test["target"].to_numpy()
            told = [
                probability.ours(bench, problem, learn, test, "--machine", "logistic"),
                probability.ours(bench, problem, learn, test, "--probability"),
                probability.theirs(problem, learn, test),
                gaussian_process(learn, test),
            ]
            for own, (values, classes) in zip(found, told, strict=True):
                brier, loss, _ = probability.figures(values, classes, truth)
                own.append((loss, brier))
        means = np.mean(found, axis=1)
        figures = [f"{value:.4f}" for column in (0, 1) for value in means[:, column]]
        lines.row(problem.name, problem.table["target"].nunique(), *figures)
        print(problem.name, figures, flush=True)
        bench.record(set=problem.name, worth=found)
    return [f"Means over {draws} draws:", "", *lines.lines, ""]


def cost(bench: Bench, draws: int) -> list[str]:
    """What it costs beside support vectors."""
    lines = Table("set", "rows", "logistic", "svc", "ratio")
    for problem in chosen(bench):
        times: list[tuple[float, float]] = []
        for seed in range(draws):
            whole, _ = accuracy.draw(problem, seed)
            times.append((fit_seconds(bench, whole, "logistic"), fit_seconds(bench, whole, "svc")))
        ours, svc = (median(column) for column in zip(*times, strict=True))
        lines.row(problem.name, len(whole), in_seconds(ours), in_seconds(svc), f"{ours / svc:.1f}")
        bench.record(set=problem.name, seconds=times)
    return ["What it costs: kernels and solving to a certified gap of 1e-4 by one thread, medians of the draws.", "", *lines.lines]


def run(bench: Bench) -> list[str]:
    draws = 1 if bench.small else DRAWS
    return [__doc__.split("\n\n", 2)[2].strip(), "", *worth(bench, draws), *cost(bench, draws)]
