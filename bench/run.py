"""Benchmarks beside the peers, in one run: `cargo xtask bench` makes the environment, builds the programs and calls this.

    python run.py MTMKL_BENCH READ_TABLE OUTPUT.md

Problems P1, P2, P3 (Gram matrices given), one thread, ours and scikit-learn's SVC in turn on the same matrices; reading a CSV beside
pandas. Prints ratios with their spread over the repeats and writes them as Markdown.
"""
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np
import pandas
import sklearn
from sklearn.datasets import load_digits, make_classification
from sklearn.svm import SVC

REPEATS = 5


def squared_distances(X):
    s = (X * X).sum(1)
    D = np.maximum(s[:, None] + s[None] - 2 * X @ X.T, 0)
    np.fill_diagonal(D, 0)
    return D


def unit_diagonal(K):
    d = np.sqrt(np.diag(K))
    return K / d[:, None] / d[None]


def p1():
    """1,000 digits, 0-4 against 5-9; linear, polynomial, Gaussians of spread 2^0 to 2^7."""
    X, y = load_digits(return_X_y=True)
    i = np.random.RandomState(0).permutation(len(y))[:1000]
    X, y = X[i] / 16.0, np.where(y[i] < 5, 1.0, -1.0)
    G, D = X @ X.T, squared_distances(X)
    K = [unit_diagonal(G), unit_diagonal((G + 1) ** 2)] + [np.exp(-D / (2 * 4.0**e)) for e in range(8)]
    return np.stack(K), y


def p2():
    """3,000 synthetic rows, 20 kernels: Gaussians, linear, polynomial, and one Gaussian for each block of five columns."""
    X, y = make_classification(n_samples=3000, n_features=50, n_informative=15, random_state=0)
    X = (X - X.mean(0)) / X.std(0)
    G, D = X @ X.T, squared_distances(X)
    K = [np.exp(-D / (2 * 4.0**e)) for e in range(-1, 7)] + [unit_diagonal(G), unit_diagonal((G + 1) ** 2)]
    K += [np.exp(-squared_distances(X[:, 5 * b : 5 * b + 5]) / 8.0) for b in range(10)]
    return np.stack(K), np.where(y == 1, 1.0, -1.0)


def p3():
    """500 synthetic rows, 1,000 Gaussians on one column each."""
    X, y = make_classification(n_samples=500, n_features=50, n_informative=15, random_state=1)
    X = (X - X.mean(0)) / X.std(0)
    r = np.random.RandomState(2)
    f, w = r.randint(0, 50, 1000), 2.0 ** r.uniform(-3, 3, 1000)
    K = [np.exp(-((X[:, [f[m]]] - X[:, f[m]][None]) ** 2) / (2 * w[m] ** 2)) for m in range(1000)]
    return np.stack(K), np.where(y == 1, 1.0, -1.0)


# The optima, certified elsewhere by a level bundle method to at least 1e-6, and the best peer's time in units of one SVC.
PROBLEMS = [
    ("P1", p1, 1.0, {1: (103.28187, 51), 2: (82.92861, 23)}),
    ("P1", p1, 10.0, {1: (104.25752, 27), 2: (84.48387, 19)}),
    ("P2", p2, 1.0, {1: (701.453, 890), 2: (290.2754, 48)}),
    ("P3", p3, 1.0, {1: (163.23556, None), 2: (16.79800, 4200)}),
]


def median_and_spread(values):
    return statistics.median(values), min(values), max(values)


def solve(program, folder, name, shape, p, C, tolerance):
    n, m = shape
    sharing = json.dumps({"name": "lp", "p": p})
    out = subprocess.run(
        [program, f"{folder}/{name}.grams", f"{folder}/{name}.labels", str(n), str(m), sharing, str(C), str(tolerance), "1", "1"],
        check=True, capture_output=True, text=True,
    )
    return json.loads(out.stdout)


def kernels_given(program, folder):
    lines = ["| problem | p | C | seconds | one SVC | ratio (range) | best peer | objective | certified gap | passes |", "|---|---|---|---|---|---|---|---|---|---|"]
    made = {}
    for name, make, C, optima in PROBLEMS:
        if name not in made:
            K, y = make()
            K.astype("<f8").tofile(f"{folder}/{name}.grams")
            y.astype("<f8").tofile(f"{folder}/{name}.labels")
            made = {name: (K.mean(0), y, (K.shape[1], K.shape[0]))}
            del K
        average, y, shape = made[name]
        for p, (optimum, peer) in optima.items():
            ours, svc = [], []
            for _ in range(REPEATS):
                # In turn, so that whatever else the machine does falls on both.
                result = solve(program, folder, name, shape, p, C, 1e-5)
                ours.append(result["seconds"][0])
                started = time.perf_counter()
                SVC(kernel="precomputed", C=C, tol=1e-3, cache_size=1000).fit(average, y)
                svc.append(time.perf_counter() - started)
            ratios = [a / b for a, b in zip(ours, svc)]
            middle, low, high = median_and_spread(ratios)
            off = abs(result["objective"] - optimum) / optimum
            assert off < 2e-5, (name, p, C, result["objective"], optimum)
            best = "none finished" if peer is None else f"{peer}"
            lines.append(
                f"| {name} | {p} | {C:g} | {statistics.median(ours):.4f} | {statistics.median(svc):.4f} | {middle:.1f} ({low:.1f}–{high:.1f}) | {best} | {result['objective']:.5f} | {result['gap']:.1e} | {result['passes']} |"
            )
            print(lines[-1], flush=True)
    return lines


def reading(program, folder):
    lines = ["| table | ours | pandas | ratio (range) |", "|---|---|---|---|"]
    random = np.random.RandomState(0)
    for label, digits in [("100,000 × 50, all digits", None), ("100,000 × 50, four decimals", 4)]:
        X = random.randn(100_000, 50)
        path = f"{folder}/table.csv"
        pandas.DataFrame(X if digits is None else X.round(digits), columns=[f"f{i}" for i in range(50)]).to_csv(path, index=False)
        ours, theirs = [], []
        for _ in range(REPEATS):
            ours.append(float(subprocess.run([program, path], check=True, capture_output=True, text=True).stdout))
            started = time.perf_counter()
            pandas.read_csv(path)
            theirs.append(time.perf_counter() - started)
        middle, low, high = median_and_spread([a / b for a, b in zip(ours, theirs)])
        lines.append(f"| {label} | {statistics.median(ours):.3f} s | {statistics.median(theirs):.3f} s | {middle:.2f} ({low:.2f}–{high:.2f}) |")
        print(lines[-1], flush=True)
    return lines


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.processor())
    return f"{model}, {os.cpu_count()} cores"


def main():
    program, reader, output = sys.argv[1:4]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        read = reading(reader, folder)
        given = kernels_given(program, folder)
    text = f"""# Benchmarks

Written by `cargo xtask bench` at commit {commit} on {machine()}; scikit-learn {sklearn.__version__}, pandas {pandas.__version__},
NumPy {np.__version__}. Each figure is the median of {REPEATS} repeats; ratios are taken repeat by repeat, ours and the peer's in turn, and their range is given.

## Reading a table

"""
    text += "\n".join(read)
    text += """

## Multiple kernel learning, Gram matrices given

L_p-norm multiple kernel learning, support vector classification, one thread, to a certified relative gap of 1e-5. *One SVC* is scikit-learn's
`SVC(kernel="precomputed", tol=1e-3)` on the average kernel; *best peer* is the fastest other MKL solver measured on the same matrices, in the same unit (SMO-MKL for p = 2;
SPG-GMKL, SHOGUN for p = 1). The objective agrees with the optimum known from a level bundle method.

"""
    text += "\n".join(given) + "\n"
    with open(output, "w") as file:
        file.write(text)


if __name__ == "__main__":
    main()
