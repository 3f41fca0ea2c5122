"""What probabilities are worth, beside scikit-learn's calibrated SVM.

    cargo xtask bench --only probability

`mtmkl fit --probability` and `CalibratedClassifierCV(SVC)` in a standardising pipeline, each at its default, on the draws of
docs/accuracy.md. Brier is Σ_c (p_c − [class is c])² on the mean (halved for two classes), log-loss −ln p of the true class; the calibration
error is the mean over ten bins of the highest probability, weighted by their rows, of |share that is right − mean probability|.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import accuracy
from common import ROOT, Bench

TITLE = "Probabilities"
#: A page of its own.
PAGE = ROOT / "docs" / "probability.md"
SETS = ["breast_cancer", "vehicle", "robot4", "digits", "landmine"]
DRAWS = 5
BINS = 10
#: A probability that counts as 0.
LEAST = np.finfo(float).eps


def ours(bench: Bench, problem: accuracy.Problem, learn: pd.DataFrame, test: pd.DataFrame, *flags: str) -> tuple[np.ndarray, list[str]]:
    """Probabilities of the test rows, and the classes of their columns, from a fit with these flags."""
    learned, asked, model, told = (bench.folder / name for name in ("learn.csv", "test.csv", "model.mtmkl", "told.csv"))
    learn.to_csv(learned, index=False)
    test.drop(columns="target").to_csv(asked, index=False)
    task = [] if problem.task is None else ["--task", problem.task]
    bench.program("mtmkl", "fit", learned, "--target", "target", *task, *flags, "-o", model, "--quiet")
    bench.program("mtmkl", "predict", model, asked, "--probability", "-o", told)
    found = pd.read_csv(told)
    columns = [name for name in found if name.startswith("probability ")]
    return found[columns].to_numpy(), [name.removeprefix("probability ") for name in columns]


def theirs(problem: accuracy.Problem, learn: pd.DataFrame, test: pd.DataFrame) -> tuple[np.ndarray, list[str]]:
    both = pd.concat([learn, test]).drop(columns="target")
    if problem.task is not None:
        both = pd.get_dummies(both, columns=[problem.task], dtype=float)
    values = both.to_numpy(float)
    model = CalibratedClassifierCV(make_pipeline(StandardScaler(), SVC()))
    model.fit(values[: len(learn)], learn["target"].to_numpy())
    return model.predict_proba(values[len(learn) :]), [str(name) for name in model.classes_]


def figures(probabilities: np.ndarray, classes: list[str], truth: np.ndarray) -> tuple[float, float, np.ndarray]:
    """Brier, log-loss, and by bin of the highest probability: rows, those that are right, the sum of the probability."""
    codes = np.array([classes.index(str(name)) for name in truth])
    rows = np.arange(len(codes))
    hits = np.zeros_like(probabilities)
    hits[rows, codes] = 1.0
    brier = ((probabilities - hits) ** 2).sum(axis=1).mean() * (0.5 if len(classes) == 2 else 1.0)
    loss = -np.log(np.maximum(probabilities[rows, codes], LEAST)).mean()
    top = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == codes
    bins = np.minimum((top * BINS).astype(int), BINS - 1)
    counts = np.array([[np.sum(bins == at), np.sum(right[bins == at]), np.sum(top[bins == at])] for at in range(BINS)])
    return float(brier), float(loss), counts


def calibration_error(counts: np.ndarray) -> float:
    return float(np.abs(counts[:, 1] - counts[:, 2]).sum() / counts[:, 0].sum())


def chosen(bench: Bench) -> Iterator[accuracy.Problem]:
    return (problem for problem in accuracy.problems(bench) if problem.name in SETS)


def run(bench: Bench) -> list[str]:
    draws = 1 if bench.small else DRAWS
    lines = [
        __doc__.split("\n\n", 2)[2].strip(),
        "",
        f"Means over {draws} draws, ours / scikit-learn's:",
        "",
        "| set | classes | Brier | log-loss | calibration error |",
        "|---|---|---|---|---|",
    ]
    reliability: list[np.ndarray] = [np.zeros((BINS, 3)), np.zeros((BINS, 3))]
    for problem in chosen(bench):
        found: list[list[tuple[float, float, float]]] = [[], []]
        for seed in range(draws):
            learn, test = accuracy.draw(problem, seed)
            truth = test["target"].to_numpy()
            for at, told in enumerate((ours(bench, problem, learn, test, "--probability"), theirs(problem, learn, test))):
                brier, loss, counts = figures(*told, truth)
                found[at].append((brier, loss, calibration_error(counts)))
                reliability[at] += counts
        means = np.mean(found, axis=1)
        bench.record(set=problem.name, ours=found[0], theirs=found[1])
        cells = " | ".join(f"{own:.4f} / {other:.4f}" for own, other in zip(means[0], means[1], strict=True))
        lines.append(f"| {problem.name} | {problem.table['target'].nunique()} | {cells} |")
        print(lines[-1], flush=True)
    lines += [
        "",
        "Reliability over all sets and draws: of the rows whose most probable class has such a probability, the share that is right.",
        "",
        "| highest probability | rows | mean probability | right | rows, scikit-learn | mean probability | right |",
        "|---|---|---|---|---|---|---|",
    ]
    for at in range(BINS):
        cells = []
        for counts in reliability:
            rows, right, total = counts[at]
            cells += [f"{rows:.0f}", f"{total / rows:.3f}", f"{right / rows:.3f}"] if rows else ["0", "", ""]
        if any(counts[at, 0] for counts in reliability):
            lines.append(f"| {at / BINS:.1f} to {(at + 1) / BINS:.1f} | " + " | ".join(cells) + " |")
    return lines
