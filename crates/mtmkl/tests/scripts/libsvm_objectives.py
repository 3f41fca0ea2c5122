"""Dual objectives of LIBSVM (through scikit-learn's SVC) on real data, for tests/real_data.rs.

    python libsvm_objectives.py SHARED_DATA_FOLDER > ../reference/libsvm_objectives.json

Each entry: data set, the rows used (every k-th), the labels' rule, kernel, C, and 1'a - 1/2 b'Kb at LIBSVM's solution
(tol 1e-9, kernel normalised to unit diagonal). The objective is computed here from LIBSVM's dual coefficients.
"""
import csv
import gzip
import json
import sys

import numpy as np
import sklearn
from sklearn.svm import SVC


def read(folder, name):
    with gzip.open(f"{folder}/{name}.csv.gz", "rt") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    features = [c for c in reader.fieldnames if c[0] == "f" and c[1:].isdigit()]
    return np.array([[float(r[c]) for c in features] for r in rows]), [r["label"] for r in rows]


def gram(X, kernel):
    if kernel == "linear":
        K = X @ X.T
    elif kernel == "poly:degree=2":
        K = (X @ X.T + 1) ** 2
    else:
        gamma = float(kernel.split("=")[1])
        s = (X * X).sum(1)
        D = np.maximum(s[:, None] + s[None] - 2 * X @ X.T, 0)
        np.fill_diagonal(D, 0)
        K = np.exp(-gamma * D)
    d = np.sqrt(np.diag(K))
    return K / d[:, None] / d[None]


CASES = [
    ("vehicle", 4, "van", ["linear", "poly:degree=2", "rbf:gamma=0.0001"]),
    ("usps", 31, "3", ["linear", "rbf:gamma=0.01"]),
    ("letter", 60, "A", ["poly:degree=2", "rbf:gamma=0.05"]),
]
entries = []
for name, every, positive, kernels in CASES:
    X, labels = read(sys.argv[1], name)
    X, labels = X[::every], labels[::every]
    y = np.where(np.array(labels) == positive, 1.0, -1.0)
    for kernel in kernels:
        K = gram(X, kernel)
        for exponent in range(-2, 4):
            C = 10.0**exponent
            svc = SVC(kernel="precomputed", C=C, tol=1e-9, cache_size=1000).fit(K, y)
            b = np.zeros(len(y))
            b[svc.support_] = svc.dual_coef_[0]
            objective = float(np.abs(b).sum() - 0.5 * b @ K @ b)
            entries.append(dict(data=name, every=every, positive=positive, kernel=kernel, C=C, objective=objective))
json.dump(dict(scikit_learn=sklearn.__version__, cases=entries), sys.stdout, indent=1)
