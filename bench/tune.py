"""The same grid search on vehicle by `mtmkl tune` and by scikit-learn's GridSearchCV over a hand-made MKL, one after the other.

5 folds, 7 C x 5 p, one-vs-all, the paper's ten kernels, columns standardised, kernel weights common to all classes. The hand-made
MKL is what one finds in many a notebook: SVC on the weighted sum of kernels, then the closed-form update of the weights in the L_p ball,
theta_m ~ (theta_m^2 s_m)^(1/(p+1)) with s_m = sum_t beta_t' K_m beta_t / 2, 20 times over. Both use all cores.
Then the same grid in Python: MKLSearchCV, and scikit-learn's GridSearchCV over MKLClassifier.
"""

import json
import subprocess
import tempfile
import time

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from boundary import install_wheel
from common import TEN_KERNELS, Bench, Table, features, in_seconds, median, ratio, seconds

TITLE = "A grid search"

TEXT = """Vehicle, 5 folds, 7 values of C × 5 of p, one-vs-all, the paper's ten kernels, weights common to all classes, columns
standardised: `mtmkl tune`, every fit certified, beside scikit-learn's `GridSearchCV` over a hand-made MKL (20 times an
SVC on the weighted sum of kernels and the closed-form update of the weights, no certificate). Both on all cores, the
start of the program and reading the file included."""

C = [3.0**k for k in range(-3, 4)]
P = [1.1, 1.25, 1.5, 2.0, 4.0]


def kernels(x, z):
    """Linear, polynomial of degree 2 and Gaussians of spread 1 to 128, normalised."""
    products = x @ z.T
    own_x, own_z = np.sum(x * x, axis=1), np.sum(z * z, axis=1)
    squares = euclidean_distances(x, z, squared=True)
    grams = [
        products / np.sqrt(np.outer(own_x, own_z)),
        (products + 1) ** 2 / np.outer(own_x + 1, own_z + 1),
    ]
    grams += [np.exp(-squares / (2 * 4.0**k)) for k in range(8)]
    return np.array(grams)


class HandMadeMkl(ClassifierMixin, BaseEstimator):
    """One-vs-all SVMs on a common weighted sum of kernels."""

    def __init__(self, C=1.0, p=2.0, iterations=20):
        self.C, self.p, self.iterations = C, p, iterations

    def fit(self, X, y):
        self.X_, self.classes_ = X, np.unique(y)
        grams = kernels(X, X)
        theta = np.full(len(grams), len(grams) ** (-1 / self.p))
        for _ in range(self.iterations):
            combined = np.tensordot(theta, grams, 1)
            self.machines_ = [SVC(C=self.C, kernel="precomputed").fit(combined, np.where(y == c, 1, -1)) for c in self.classes_]
            s = np.zeros(len(grams))
            for machine in self.machines_:
                beta, rows = machine.dual_coef_[0], machine.support_
                s += [0.5 * beta @ gram[np.ix_(rows, rows)] @ beta for gram in grams]
            theta = (theta**2 * s) ** (1 / (self.p + 1))
            theta /= np.sum(theta**self.p) ** (1 / self.p)
        self.theta_ = theta
        return self

    def predict(self, X):
        combined = np.tensordot(self.theta_, kernels(X, self.X_), 1)
        values = np.array([machine.decision_function(combined) for machine in self.machines_])
        return self.classes_[np.argmax(values, axis=0)]


def ours(bench, table, grid, flags):
    """Seconds, the winning cell, and all cells."""
    cells = [part for name, values in grid.items() for part in ("--grid", f"{name}=" + ",".join(map(str, values)))]
    command = [bench.programs / "mtmkl", "tune", table, "--target", "label", "--json", *flags]
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        printed = subprocess.run([*command, *cells], cwd=folder, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        taken = time.perf_counter() - started
    found = json.loads(printed)["tune"]
    return taken, found["cells"][found["best"]], found["cells"]


def in_python(bench, data, grid):
    """`mtmkl tune`, MKLSearchCV and GridSearchCV(MKLClassifier) on the same folds: lines of the page."""
    install_wheel(bench.folder / "wheels")
    from mtmkl import MKLClassifier, MKLSearchCV

    # Whole folds, so that all have the same: rows of one group stay together.
    fold = np.random.default_rng(0).permutation(np.arange(len(data)) % 5)
    splits = [(np.flatnonzero(fold != at), np.flatnonzero(fold == at)) for at in range(5)]
    table = bench.folder / "vehicle.csv"
    columns = data[[name for name in data if name.startswith("f")]]
    columns.assign(label=data["label"], fold=fold).to_csv(table, index=False)
    printed = Table("kernels", "", "seconds", "of mtmkl tune", "accuracy", "C", "p", "largest difference to tune, of a cell")
    for name, kernels in (("the usual four", None), ("ten", TEN_KERNELS)):
        named = [] if kernels is None else [part for spec in kernels for part in ("--kernel", spec)]
        results = [ours(bench, table, grid, ["--group", "fold", *named]) for _ in range(bench.repeats)]
        taken, (_, best, cells) = [one[0] for one in results], results[-1]
        printed.row(
            name,
            "mtmkl tune",
            in_seconds(median(taken)),
            "",
            f"{best['mean']:.4f}",
            f"{best['machine']['C']:.4g}",
            best["sharing"]["p"],
            "",
        )
        estimator = MKLClassifier(kernels)
        for word, search in (
            ("MKLSearchCV", MKLSearchCV(estimator, grid, cv=splits)),
            ("GridSearchCV(MKLClassifier)", GridSearchCV(estimator, grid, cv=splits)),
        ):
            times = [seconds(lambda search=search: search.fit(columns, data["label"])) for _ in range(bench.repeats)]
            found = search.cv_results_
            scores = {(params["C"], params["p"]): mean for params, mean in zip(found["params"], found["mean_test_score"], strict=True)}
            off = max(abs(scores[cell["machine"]["C"], cell["sharing"]["p"]] - cell["mean"]) for cell in cells)
            chosen = [f"{search.best_score_:.4f}", f"{search.best_params_['C']:.4g}", search.best_params_["p"], f"{off:.4f}"]
            printed.row(name, word, in_seconds(median(times)), f"{median(times) / median(taken):.2f}", *chosen)
            bench.record(kernels=name, search=word, seconds=times, tune=taken)
    return ["", "The same grid in Python, everything else at its default (pairs of classes), on the same folds:", "", *printed.lines]


def run(bench: Bench):
    data = bench.table("vehicle")
    if data is None:
        return None
    table = (bench.data / "vehicle.csv.gz").resolve()
    X, y = StandardScaler().fit_transform(features(data)), data["label"].to_numpy()
    grid = {"C": bench.sizes(C, C[:2]), "p": bench.sizes(P, P[:2])}
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    flags = ["--scale", "standard", "--normalize", "unit", "--sharing", "common", "--multiclass", "ova"]
    flags += [part for spec in TEN_KERNELS for part in ("--kernel", spec)]
    results = [ours(bench, table, grid, flags) for _ in range(bench.repeats)]
    times, (_, best, _) = [one[0] for one in results], results[-1]
    # Minutes, so once.
    search = GridSearchCV(HandMadeMkl(), grid, cv=folds, n_jobs=-1)
    theirs = seconds(lambda: search.fit(X, y))
    chosen = search.best_params_
    printed = Table("", "seconds", "times faster", "accuracy", "C", "p")
    mine = [f"{best['mean']:.4f}", f"{best['machine']['C']:.4g}", best["sharing"]["p"]]
    printed.row("mtmkl tune", in_seconds(median(times)), ratio([theirs] * len(times), times)[1], *mine)
    printed.row("GridSearchCV, once", in_seconds(theirs), "", f"{search.best_score_:.4f}", f"{chosen['C']:.4g}", chosen["p"])
    bench.record(ours=times, theirs=theirs)
    return [TEXT, "", *printed.lines, *in_python(bench, data, grid)]
