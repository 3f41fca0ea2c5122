"""The same grid search on vehicle by `mtmkl tune` and by scikit-learn's GridSearchCV over a hand-made MKL, one after the other.

    python bench/tune.py PROGRAM VEHICLE_CSV

5 folds, 7 C x 5 p, one-vs-all, the paper's ten kernels, columns standardised, kernel weights common to all classes. The hand-made MKL is what one finds
in many a notebook: SVC on the weighted sum of kernels, then the closed-form update of the weights in the L_p ball,
theta_m ~ (theta_m^2 s_m)^(1/(p+1)) with s_m = sum_t beta_t' K_m beta_t / 2, 20 times over. Both use all cores.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

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
            self.machines_ = [
                SVC(C=self.C, kernel="precomputed").fit(combined, np.where(y == c, 1, -1)) for c in self.classes_
            ]
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


def main():
    program, table = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        grid = ["--grid", "C=" + ",".join(map(str, C)), "--grid", "p=" + ",".join(map(str, P))]
        command = [program, "tune", table, "--target", "label", "--scale", "standard", "--sharing", "common", "--json"]
        started = time.perf_counter()
        printed = subprocess.run(command + grid, cwd=folder, check=True, capture_output=True).stdout
        ours = time.perf_counter() - started
    found = json.loads(printed)["tune"]
    best = found["cells"][found["best"]]
    print(f"mtmkl tune     {ours:8.2f} s   accuracy {best['mean']:.4f}   C {best['machine']['C']:.4g}   p {best['sharing']['p']}")

    data = pd.read_csv(table)
    X, y = data.filter(regex=r"^f\d+$").to_numpy(float), data["label"].to_numpy()
    X = StandardScaler().fit_transform(X)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    search = GridSearchCV(HandMadeMkl(), {"C": C, "p": P}, cv=folds, n_jobs=-1)
    started = time.perf_counter()
    search.fit(X, y)
    theirs = time.perf_counter() - started
    chosen = search.best_params_
    print(f"GridSearchCV   {theirs:8.2f} s   accuracy {search.best_score_:.4f}   C {chosen['C']:.4g}   p {chosen['p']}")
    print(f"ratio          {theirs / ours:8.1f}")


if __name__ == "__main__":
    main()
