"""Reading tables and predicting for them, beside pandas, pyarrow and scikit-learn."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from common import Bench, Table, in_seconds, in_turn, measured, median, met, ratio, seconds

TITLE = "Reading a table"

TEXT = """The program's readers into columns of numbers, beside `pandas.read_csv`, `pandas.read_parquet` (pyarrow) and
scikit-learn's `load_svmlight_file`. *Memory* is the most that the process held over the size of the numbers (eight
bytes each; twelve an entry where rows are sparse). Targets: twice the others' time, 1.5 times the memory."""

PREDICT = """`mtmkl predict` and `evaluate` with a model of 2,000 rows (the usual kernels, two threads) on rows of the
same table. Memory does not grow with the rows that are predicted; `evaluate` keeps the target and the decisions of
each."""

READERS = {
    "csv": "pandas.read_csv(path)",
    "parquet": "pandas.read_parquet(path)",
    "svm": "load_svmlight_file(path)",
}

THEIRS = """
import sys, time, pandas, pyarrow
from sklearn.datasets import load_svmlight_file
path = sys.argv[1]
started = time.perf_counter()
READ
print(time.perf_counter() - started)
"""


def texts(values: np.ndarray, labels: np.ndarray) -> str:
    rows = zip(values.tolist(), labels.tolist(), strict=True)
    return "".join(",".join([f"{value:.6f}" for value in row]) + f",{label}\n" for row, label in rows)


def large(bench: Bench, rows: int, columns: int) -> dict[str, tuple[Path, int]]:
    """A file of each format with the bytes of its numbers."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(rows, columns)).round(6)
    labels = (values[:, 0] + values[:, 1] * values[:, 2] > 0).astype(int)
    names = [f"x{number}" for number in range(columns)]
    files = {kind: bench.folder / f"large.{kind}" for kind in READERS}
    frame = pd.DataFrame(values, columns=names)
    frame["label"] = labels
    frame.to_parquet(files["parquet"])
    with files["csv"].open("w") as out:
        out.write(",".join([*names, "label"]) + "\n")
        for first in range(0, rows, 10_000):
            part = slice(first, first + 10_000)
            out.write(texts(values[part], labels[part]))
    entries = 0
    with files["svm"].open("w") as out:
        for _ in range(0, rows, 10_000):
            indices = np.sort(rng.integers(1, 50_000, size=(min(rows, 10_000), 80)), axis=1)
            for row in indices:
                own = np.unique(row)
                entries += len(own)
                out.write("1 " + " ".join(f"{index}:{index / 7:.4f}" for index in own.tolist()) + "\n")
    dense = 8 * rows * (columns + 1)
    return {"csv": (files["csv"], dense), "parquet": (files["parquet"], dense), "svm": (files["svm"], 12 * entries)}


def run(bench: Bench) -> list[str]:
    table = Table("table", "file", "ours", "theirs", "ratio", "met", "memory", "met", "theirs")
    random = np.random.RandomState(0)
    rows = bench.sizes([100_000], [1_000])[0]
    path = bench.folder / "table.csv"
    for label, decimals in [("all digits", None), ("four decimals", 4)]:
        X = random.randn(rows, 50)
        names = [f"f{i}" for i in range(50)]
        pd.DataFrame(X if decimals is None else X.round(decimals), columns=names).to_csv(path, index=False)
        ours, theirs = in_turn(
            bench.repeats,
            lambda: float(bench.program("read_table", path)),
            lambda: seconds(lambda: pd.read_csv(path)),
        )
        found = ratio(ours, theirs)
        size = f"{path.stat().st_size / 1e6:.0f} MB"
        table.row(
            f"CSV, {rows:,} × 50, {label}",
            size,
            in_seconds(median(ours)),
            in_seconds(median(theirs)),
            found[1],
            met(found[0] <= 2),
            "",
            "",
            "",
        )
        bench.record(table=label, ours=ours, pandas=theirs)
    rows = bench.sizes([1_000_000], [2_000])[0]
    files = large(bench, rows, 100)
    for kind, (path, size) in files.items():
        script = THEIRS.replace("READ", READERS[kind])
        times: dict[str, list[float]] = {"ours": [], "theirs": []}
        peaks = {"ours": 0.0, "theirs": 0.0}
        commands = {"ours": [str(bench.programs / "read_table"), str(path)], "theirs": [sys.executable, "-c", script, str(path)]}
        for _ in range(bench.sizes([3], [1])[0]):
            for who, command in commands.items():
                printed, _, peak = measured(command)
                times[who].append(float(printed))
                peaks[who] = max(peaks[who], peak)
        found = ratio(times["ours"], times["theirs"])
        over = {who: peak * 2**30 / size for who, peak in peaks.items()}
        table.row(
            f"{kind}, {rows:,} × {'about 80 of 50,000' if kind == 'svm' else 101}",
            f"{path.stat().st_size / 1e6:.0f} MB",
            in_seconds(median(times["ours"])),
            in_seconds(median(times["theirs"])),
            found[1],
            met(found[0] <= 2),
            f"{over['ours']:.2f}",
            met(over["ours"] <= 1.5),
            f"{over['theirs']:.2f}",
        )
        bench.record(kind=kind, times=times, peaks=peaks, size=size)
    return [TEXT, "", *table.lines, "", PREDICT, "", *predicted(bench, rows, files)]


def predicted(bench: Bench, rows: int, files: dict[str, tuple[Path, int]]) -> list[str]:
    program = str(bench.programs / "mtmkl")
    model = str(bench.folder / "large.mtmkl")
    frame = pd.read_parquet(files["parquet"][0])
    few = min(2_000, rows)
    frame[:few].to_csv(bench.folder / "few.csv", index=False)
    measured([program, "fit", str(bench.folder / "few.csv"), "--target", "label", "-o", model, "--json"])
    frame[: rows // 10].to_csv(bench.folder / "tenth.csv", index=False)
    table = Table("command", "rows", "seconds", "peak (GiB)", "accuracy")
    for count, path in ((rows // 10, bench.folder / "tenth.csv"), (rows, files["csv"][0]), (rows, files["parquet"][0])):
        for command in ("predict", "evaluate"):
            extra = ["-o", str(bench.folder / "predictions.csv")] if command == "predict" else ["--json"]
            printed, took, peak = measured([program, command, model, path, "--threads", "2", *extra])
            accuracy = f"{json.loads(printed)['together']:.4f}" if command == "evaluate" else ""
            table.row(f"{command} {path.suffix[1:]}", f"{count:,}", in_seconds(took), f"{peak:.2f}", accuracy)
            bench.record(command=command, rows=count, seconds=took, peak=peak)
    return table.lines
