"""Text: many sparse columns in two views, beside scikit-learn's SVC on the same rows."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from common import Bench, Table, in_seconds, measured

TITLE = "Text: sparse rows"

TEXT = """Made counts of words: 20,000 rows of 50,000 columns in two views of 25,000 (Zipf's law, about 100 words a
row and view), two classes that use a few hundred words of each view more often, one label in twenty wrong. Ours is
the program from the LIBSVM file to the model file: linear, cosine and polynomial of degree 2 kernels on each view,
weights learned (L2), C = 1, certified to 1e-3, two threads, at most 4 GiB, columns as they are; with all zeros the
rows would be 8 GB. Theirs is `SVC(C=1, cache_size=2000)` on the whole CSR matrix, made by `load_svmlight_file`.
Accuracy on 5,000 further rows; peak memory is that of the whole process."""

SVC = """
import json, sys, time
from sklearn.datasets import load_svmlight_file
from sklearn.svm import SVC
train, test, kernel, width = sys.argv[1:]
started = time.perf_counter()
X, y = load_svmlight_file(train, n_features=int(width))
read = time.perf_counter() - started
# It takes short indices only.
X.indices, X.indptr = X.indices.astype("int32"), X.indptr.astype("int32")
model = SVC(kernel=kernel, degree=2, coef0=1, C=1, cache_size=2000).fit(X, y)
seconds = time.perf_counter() - started
X, y = load_svmlight_file(test, n_features=int(width))
X.indices, X.indptr = X.indices.astype("int32"), X.indptr.astype("int32")
print(json.dumps({"read": read, "seconds": seconds, "accuracy": model.score(X, y)}))
"""


def documents(rng: np.random.Generator, count: int, words: int) -> tuple[sparse.csr_array, np.ndarray]:
    """Counts of words in two views, and the class."""
    y = rng.integers(0, 2, count)
    views = []
    usual = 1 / np.arange(1, words // 2 + 1)
    for _ in range(2):
        told = np.arange(50, min(450, words // 2), 2)
        rates = np.stack([usual, usual])
        rates[0, told] *= 0.7
        rates[1, told] *= 1.4
        rates /= rates.sum(axis=1, keepdims=True)
        drawn = [rng.choice(words // 2, size=rng.poisson(100) + 1, p=rates[label]) for label in y]
        lengths = np.array([len(own) for own in drawn])
        places = (np.repeat(np.arange(count), lengths), np.concatenate(drawn))
        view = sparse.coo_array((np.ones(lengths.sum()), places), shape=(count, words // 2)).tocsr()
        views.append(view)
    flipped = rng.random(count) < 0.05
    rows = sparse.hstack(views, format="csr")
    # What writes the file takes short indices only.
    rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return rows, np.where(flipped, 1 - y, y)


def run(bench: Bench) -> list[str]:
    rows, words = bench.sizes([(20_000, 50_000)], [(300, 600)])[0]
    rng = np.random.default_rng(0)
    files: list[Path] = []
    # One draw, so that both have the same words.
    X, y = documents(rng, rows + rows // 4, words)
    for name, part in (("train.svm", slice(0, rows)), ("test.svm", slice(rows, None))):
        files.append(bench.folder / name)
        dump_svmlight_file(X[part], y[part], str(files[-1]), zero_based=False)
    views = (f"f1..f{words // 2}", f"f{words // 2 + 1}..f{words}")
    kernels = [f"--kernel={kernel}@{view}" for view in views for kernel in ("linear", "cosine", "poly:degree=2")]
    model = str(bench.folder / "text.mtmkl")
    program = str(bench.programs / "mtmkl")
    limits = ["--threads", "2", "--memory-limit", "4", "--tol", "1e-3", "--sharing", "lp", "--p", "2", "--C", "1", "--scale", "none"]
    printed, whole, peak = measured(
        [program, "fit", str(files[0]), "--target", "label", "--format", "libsvm", "-o", model, "--json", *limits, *kernels]
    )
    ours = json.loads(printed)
    judged, *_ = measured([program, "evaluate", model, str(files[1]), "--format", "libsvm", "--json"])
    table = Table("", "time", "of it files", "peak (GiB)", "accuracy", "gap", "passes", "storage")
    accuracy = json.loads(judged)["together"]
    seconds = ours["seconds"]
    table.row(
        "ours, six kernels",
        in_seconds(whole),
        in_seconds(whole - seconds["total"]),
        f"{peak:.2f}",
        f"{accuracy:.4f}",
        f"{ours['gap']:.1e}",
        ours["passes"],
        ours["storage"],
    )
    bench.record(ours=seconds, whole=whole, peak=peak, accuracy=accuracy, gap=ours["gap"], storage=ours["storage"])
    for kernel in ("linear", "poly"):
        arguments = [str(files[0]), str(files[1]), kernel, str(words)]
        printed, _, peak = measured([sys.executable, "-c", SVC, *arguments])
        theirs = json.loads(printed)
        bench.record(svc=kernel, peak=peak, **theirs)
        table.row(f"SVC, {kernel}", in_seconds(theirs["seconds"]), in_seconds(theirs["read"]), f"{peak:.2f}", f"{theirs['accuracy']:.4f}")
    return [TEXT, "", *table.lines]
