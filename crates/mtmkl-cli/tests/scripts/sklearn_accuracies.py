"""What scikit-learn's SVC reaches on the uniform kernel average, for `tests/real_data.rs` to hold `mtmkl` against.

    python sklearn_accuracies.py DATA_FOLDER [-o sklearn_accuracies.json]

Rows, split, scaling and kernels are those of the Rust test, C is 1 (the default of both programs), 10 and 100:

- `vehicle`: all rows.
- `landmine`: of each task all rows labelled 1 and as many of those labelled -1, the first ones of the file; in file order.
- `ocr_pairs`: of each task and label the first 90 rows; in file order.
- `usps`: every 8th row, from the first on.
- `robot4`: every 6th row, from the first on.

Of the rows so chosen, numbered from 0, those with number % 3 == 2 are the test rows. Columns are standardised with mean and
(population) standard deviation of the training rows where a set says so. Each kernel is normalised, k(x,z)/sqrt(k(x,x)k(z,z)).
Several classes: SVC's own one-vs-one (`svc`), and one-vs-all by the largest decision value (`ova`).
A set with tasks: one SVC per task; the figure is the mean over tasks, as `mtmkl evaluate` has it.
"""

import argparse
import csv
import gzip
import json
import pathlib

import numpy as np
import sklearn
from sklearn.svm import SVC

COSTS = (1, 10, 100)

# name: (standardise, kernels); `rbf` is exp(-|x-z|^2 / (2 sigma^2)), `poly` is (x'z + 1)^degree.
SETTINGS = {
    "vehicle": (True, [("linear",), ("poly", 2), ("rbf", 1), ("rbf", 2), ("rbf", 4), ("rbf", 8)]),
    "landmine": (True, [("linear",), ("poly", 2), ("rbf", 1), ("rbf", 2), ("rbf", 4), ("rbf", 8)]),
    "ocr_pairs": (False, [("linear",), ("poly", 2), ("rbf", 2), ("rbf", 4), ("rbf", 8), ("rbf", 16)]),
    "usps": (False, [("linear",), ("poly", 2), ("rbf", 2), ("rbf", 4), ("rbf", 8), ("rbf", 16)]),
    "robot4": (True, [("linear",), ("poly", 2), ("rbf", 0.5), ("rbf", 1), ("rbf", 2), ("rbf", 4)]),
}


def chosen_rows(name, rows):
    if name == "landmine":
        positives = {}
        for row in rows:
            positives[row["task"]] = positives.get(row["task"], 0) + (row["label"] == "1")
        limit = lambda row: positives[row["task"]]
    elif name == "ocr_pairs":
        limit = lambda row: 90
    else:
        return rows[:: {"vehicle": 1, "usps": 8, "robot4": 6}[name]]
    counts, kept = {}, []
    for row in rows:
        key = row["task"], row["label"]
        if counts.get(key, 0) < limit(row):
            counts[key] = counts.get(key, 0) + 1
            kept.append(row)
    return kept


def kernel(spec, x, z):
    if spec[0] == "rbf":
        squares = (x**2).sum(1)[:, None] + (z**2).sum(1)[None, :] - 2 * x @ z.T
        return np.exp(-np.maximum(squares, 0) / (2 * spec[1] ** 2))

    def plain(a, b):
        return a @ b.T if spec[0] == "linear" else (a @ b.T + 1) ** spec[1]

    own = [np.array([plain(row[None], row[None])[0, 0] for row in rows]) for rows in (x, z)]
    scale = [np.where(values > 0, 1 / np.sqrt(np.where(values > 0, values, 1)), 0) for values in own]
    return plain(x, z) * scale[0][:, None] * scale[1][None, :]


def average(specs, x, z):
    return sum(kernel(spec, x, z) for spec in specs) / len(specs)


def correct(c, specs, train, test):
    """Which test rows SVC's one-vs-one, and one-vs-all, get right."""
    (x, y), (z, w) = train, test
    own, cross = average(specs, x, x), average(specs, z, x)
    svc = SVC(C=c, kernel="precomputed").fit(own, y).predict(cross) == w
    classes = np.unique(y)
    if len(classes) == 2:
        return svc, svc
    decisions = [SVC(C=c, kernel="precomputed").fit(own, y == k).decision_function(cross) for k in classes]
    return svc, classes[np.argmax(decisions, 0)] == w


def accuracies(name, folder):
    standardise, specs = SETTINGS[name]
    with gzip.open(folder / f"{name}.csv.gz", "rt") as file:
        rows = chosen_rows(name, list(csv.DictReader(file)))
    features = [column for column in rows[0] if column[0] == "f" and column[1:].isdigit()]
    x = np.array([[float(row[column]) for column in features] for row in rows])
    y = np.array([row["label"] for row in rows])
    tasks = np.array([row.get("task", "") for row in rows])
    held = np.arange(len(rows)) % 3 == 2
    if standardise:
        mean, deviation = x[~held].mean(0), x[~held].std(0)
        x = (x - mean) / np.where(deviation > 0, deviation, 1)
    result = {"train": int((~held).sum()), "test": int(held.sum())}
    for c in COSTS:
        scores = []
        for task in np.unique(tasks):
            train, test = (tasks == task) & ~held, (tasks == task) & held
            hits = correct(c, specs, (x[train], y[train]), (x[test], y[test]))
            scores.append([hit.mean() for hit in hits])
        svc, ova = np.mean(scores, 0)
        result[f"C={c}"] = {"svc": float(svc), "ova": float(ova)}
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path(__file__).with_suffix(".json"))
    arguments = parser.parse_args()
    result = {"scikit-learn": sklearn.__version__}
    for set_name in SETTINGS:
        result[set_name] = accuracies(set_name, arguments.folder)
        print(set_name, result[set_name])
    arguments.output.write_text(json.dumps(result, indent=2) + "\n")
