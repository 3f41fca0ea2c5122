"""What the defaults were chosen on: cross-validation on rows to learn from, of many sets; none that docs/accuracy.md tests on in its
first draw.

    cargo xtask bench --only defaults

Each set gives at most 600 of its rows to learn from (the first draw of `accuracy`). `mtmkl tune` scores every combination by three folds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from accuracy import Problem, draw, problems
from common import ROOT, Bench

TITLE = "Defaults"
#: A page of its own.
PAGE = ROOT / "docs" / "development" / "defaults.md"

CHOSEN = """Chosen: a linear kernel and Gaussians of ½, 1 and 2 medians, divided by their variance; p = 2. C of `svc` is 1, less than
the best here: these sets have little noise. On 38 other sets (KEEL's, 600 rows to learn from, two draws; they are not in this
repository), mean accuracy was .8151 with C = 1, .8149 with 3 and .8100 with 10; scikit-learn's SVC had .8132. C = 1, ε = 0.1 for `svr`
and λ = 1 for `krr`. `tune` chooses C itself."""

MOST = 600
KERNELS = {
    "linear, σ = ½, 1, 2 medians": "linear;rbf:sigma=median*0.5|1|2",
    "linear, σ = ¼ to 4 medians": "linear;rbf:sigma=median*0.25|0.5|1|2|4",
    "σ = ½, 1, 2 medians": "rbf:sigma=median*0.5|1|2",
    "linear, quadratic, σ = ½, 1, 2 medians": "linear;poly:degree=2,gamma=scale;rbf:sigma=median*0.5|1|2",
    "one σ = 1 median": "rbf:sigma=median",
}


def scores(bench: Bench, problem: Problem, table: Path, arguments: list[object], kernels: list[str]) -> dict[tuple, float]:
    """By kernel set and numbers of the grid: the mean over folds."""
    several = problem.kind == "classes" and problem.table["target"].nunique() > 2
    command: list[object] = ["tune", table, "--target", "target", "--folds", 3, "--json", "--quiet"]
    command += ["--journal", bench.folder / "journal", "--sharing", "pscs" if several else "lp", *arguments]
    (bench.folder / "journal").unlink(missing_ok=True)
    for specs in kernels:
        command += ["--kernel-set", specs]
    found = json.loads(bench.program("mtmkl", *command))["tune"]
    told = {}
    for cell in found["cells"]:
        numbers = {
            name: value for part in ("machine", "sharing") for name, value in cell[part].items() if name in ("C", "p", "lambda", "epsilon")
        }
        told[(";".join(cell["kernels"]), *sorted(numbers.items()))] = float(np.mean(cell["folds"]))
    return told


def table_of(rows: dict[str, dict[str, float]], corner: str) -> list[str]:
    """A Markdown table; the best cell is marked."""
    columns = list(next(iter(rows.values())))
    best = max(value for row in rows.values() for value in row.values())
    lines = [f"| {corner} | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for name, row in rows.items():
        cells = [f"**{value:.4f}**" if value == best else f"{value:.4f}" for value in row.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def mean(found: list[dict[tuple, float]], **wanted: object) -> float:
    """Over sets, of the cells with these kernels and numbers."""
    kernels = wanted.pop("kernels")
    key = (kernels, *sorted(wanted.items()))
    return float(np.mean([told[key] for told in found]))


#: Widths for machines without targets, in medians.
WIDTHS = (0.25, 0.35, 0.5, 0.7, 1.0, 2.0)


def inside(bench: Bench, problem: Problem, learn: pd.DataFrame) -> Iterator[tuple[float, tuple[float, float, float]]]:
    """Of each of the two largest classes, learned without the others, by width (0: scikit-learn's OneClassSVM): the AUC against them, and
    which part of new rows of the class and of the others is taken for rows of the class. Two parts of three are learned from, ν is .05."""
    for name in learn["target"].value_counts().index[:2]:
        own, others = learn[learn["target"] == name].drop(columns="target"), learn[learn["target"] != name].drop(columns="target")
        train, new = train_test_split(own, test_size=1 / 3, random_state=0)
        asked, wanted = pd.concat([new, others]), np.r_[np.ones(len(new)), np.zeros(len(others))]

        def measured(decisions: np.ndarray, wanted: np.ndarray = wanted) -> tuple[float, float, float]:
            taken = decisions >= 0
            return float(roc_auc_score(wanted, decisions)), float(taken[wanted == 1].mean()), float(taken[wanted == 0].mean())

        peer = make_pipeline(StandardScaler(), OneClassSVM(nu=0.05)).fit(train.to_numpy(float))
        yield 0.0, measured(peer.decision_function(asked.to_numpy(float)))
        learned, rows, model, told = (bench.folder / part for part in ("learn.csv", "rows.csv", "model.mtmkl", "told.csv"))
        train.to_csv(learned, index=False)
        asked.to_csv(rows, index=False)
        for width in WIDTHS:
            kernel = f"rbf:sigma=median*{width:g}"
            bench.program("mtmkl", "fit", learned, "--machine", "ocsvm", "--nu", 0.05, "--kernel", kernel, "-o", model, "--quiet")
            bench.program("mtmkl", "predict", model, rows, "--decision", "-o", told)
            yield width, measured(pd.read_csv(told)["decision"].to_numpy())


def of_widths(found: dict[float, list[tuple[float, float, float]]]) -> list[str]:
    """What is said of machines without targets."""
    lines = [
        "Machines without targets take one Gaussian, and its width is half a median. Narrower ones tell other classes apart a little",
        f"better, and take most new rows for strangers. Means over {len(found[0.0])} classes, the two largest of each set, each learned by",
        "itself from two thirds of its rows, ν = .05:",
        "",
        "| width | AUC | new rows of the class taken in | other classes taken in | balanced accuracy |",
        "|---|---|---|---|---|",
    ]
    for width, all_of in found.items():
        auc, own, others = np.mean(all_of, axis=0)
        name = f"{width:g} medians" if width else "scikit-learn's OneClassSVM, standardised"
        lines.append(f"| {name} | {auc:.3f} | {own:.3f} | {others:.3f} | {(own + 1 - others) / 2:.3f} |")
    return [*lines, ""]


def run(bench: Bench) -> list[str]:
    widths: dict[float, list[tuple[float, float, float]]] = {}
    classes: dict[str, list[dict[tuple, float]]] = {"variance": [], "unit": []}
    numbers: dict[str, list[dict[tuple, float]]] = {"svr": [], "krr": []}
    names: dict[str, list[str]] = {"classes": [], "numbers": []}
    prices, exponents = ([1.0, 3.0, 10.0, 30.0, 100.0], [1.0, 2.0, 4.0])
    listed = ",".join(map(str, prices))
    usual = KERNELS[next(iter(KERNELS))]
    for problem in problems(bench):
        if problem.kind not in names:
            continue
        learn, _ = draw(problem, 0)
        if problem.kind == "classes":
            # Three folds of each class.
            counts = learn["target"].value_counts()
            learn = learn[learn["target"].isin(counts.index[counts >= 10])]
        if len(learn) > MOST:
            by = learn["target"] if problem.kind == "classes" else None
            learn = train_test_split(learn, train_size=MOST, random_state=0, stratify=by)[0]
        table = bench.folder / "table.csv"
        learn.to_csv(table, index=False)
        names[problem.kind].append(problem.name)
        if problem.kind == "classes":
            for width, told in inside(bench, problem, learn):
                widths.setdefault(width, []).append(told)
            for word, found in classes.items():
                grid = ["--normalize", word, "--grid", f"C={listed}", "--grid", "p=1,2,4"]
                found.append(scores(bench, problem, table, grid, list(KERNELS.values())))
        else:
            grid = ["--machine", "svr", "--grid", "C=0.3,1,3,10", "--grid", "epsilon=0.05,0.1,0.2", "--grid", "p=2"]
            numbers["svr"].append(scores(bench, problem, table, grid, [usual]))
            grid = ["--machine", "krr", "--grid", "lambda=0.1,0.3,1,3", "--grid", "p=2"]
            numbers["krr"].append(scores(bench, problem, table, grid, [usual]))
        print(problem.name, flush=True)
    lines = [
        __doc__.split("\n\n", 2)[2].strip(),
        "",
        *CHOSEN.splitlines(),
        "",
        f"Classes, mean accuracy over {', '.join(names['classes'])}; p = 2:",
        "",
    ]
    rows = {
        f"{name}; {word}": {f"C = {C:g}": mean(found, kernels=specs, C=C, p=2.0) for C in prices}
        for name, specs in KERNELS.items()
        for word, found in classes.items()
    }
    lines += table_of(rows, "kernels; divided by")
    lines += ["The exponent p, for the first of these kernels divided by their variance:", ""]
    rows = {f"p = {p:g}": {f"C = {C:g}": mean(classes["variance"], kernels=usual, C=C, p=p) for C in prices} for p in exponents}
    lines += table_of(rows, "")
    lines += [f"Numbers, mean R² over {', '.join(names['numbers'])}, in units of the target's spread:", ""]
    rows = {
        f"ε = {e:g}": {f"C = {C:g}": mean(numbers["svr"], kernels=usual, C=C, epsilon=e, p=2.0) for C in (0.3, 1.0, 3.0, 10.0)}
        for e in (0.05, 0.1, 0.2)
    }
    lines += table_of(rows, "svr")
    rows = {"krr": {f"λ = {v:g}": mean(numbers["krr"], kernels=usual, p=2.0, **{"lambda": v}) for v in (0.1, 0.3, 1.0, 3.0)}}
    return [*lines, *table_of(rows, ""), *of_widths(widths)]
