"""Many samples: one-vs-all over 26 classes as 26 tasks on the same rows, beside scikit-learn's one-vs-one SVC."""

from __future__ import annotations

import json
import os
from time import perf_counter

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from common import Bench, Table, in_seconds, seconds
from samples import KERNELS

TITLE = "Many samples: 26 tasks"

TEXT = """ocr_letters, each letter against the others on all training rows: 26 tasks with ten kernels, C = 10, a certified gap of 1e-3,
streamed, two threads, at most 4 GiB, by the program from a table; accuracy on rows held out. The SVC of one task (vowels against
consonants on the same training rows, `SVC(kernel="rbf", gamma="scale", C=10, cache_size=2000)`) is the measure of the time; the
accuracy stands beside that of the same SVC on all classes, one against one."""


def run(bench: Bench) -> list[str] | None:
    table = bench.table("ocr_letters")
    if table is None:
        return None
    order = np.random.RandomState(0).permutation(len(table))
    count = int(os.environ.get("MTMKL_ROWS", bench.sizes([len(table) * 4 // 5], [800])[0]))
    held = len(table) // 5
    train, test = table.iloc[order[:count]], table.iloc[order[-held:]]
    paths = {name: bench.folder / f"{name}.csv" for name in ("train", "test")}
    features = [name for name in table if name[0] == "f" and name[1:].isdigit()]
    for name, part in (("train", train), ("test", test)):
        part[[*features, "label"]].to_csv(paths[name], index=False)
    scaler = StandardScaler().fit(train[features])
    rows, others = scaler.transform(train[features]), scaler.transform(test[features])
    svc = SVC(kernel="rbf", gamma="scale", C=10, cache_size=2000)
    vowels = train["label"].isin(list("aeiou"))
    one = seconds(lambda: svc.fit(rows, vowels))
    ovo = seconds(lambda: svc.fit(rows, train["label"]))
    theirs = float(svc.score(others, test["label"]))
    bench.record(rows=count, svc=one, ovo=ovo, accuracy=theirs)
    lines = Table("sharing", "time", "over 26 SVCs", "gap", "passes", "accuracy", "SVC's, one against one")
    for sharing in ("common", "pscs"):
        command = ["fit", paths["train"], "--target", "label", "--multiclass", "ova", "--C", 10, "--tol", "1e-3", "--sharing", sharing]
        command += [argument for kernel in KERNELS for argument in ("--kernel", kernel)]
        command += [
            "--scale",
            "standard",
            "--storage",
            "streamed",
            "--memory-limit",
            4,
            "--threads",
            2,
            "--no-baselines",
            "--quiet",
            "--json",
        ]
        started = perf_counter()
        answer = json.loads(bench.program("mtmkl", *command, "-o", bench.folder / "model"))
        ours = perf_counter() - started
        scores = json.loads(bench.program("mtmkl", "evaluate", bench.folder / "model", paths["test"], "--json"))
        accuracy = scores["metrics"]["accuracy"]["together"]
        bench.record(sharing=sharing, ours=ours, gap=answer["gap"], passes=answer["passes"], accuracy=accuracy)
        lines.row(
            sharing,
            in_seconds(ours),
            f"{ours / (26 * one):.2f}",
            f"{answer['gap']:.1e}",
            answer["passes"],
            f"{accuracy:.4f}",
            f"{theirs:.4f}",
        )
        print(f"  {sharing}: {in_seconds(ours)}, SVC {in_seconds(one)}", flush=True)
    text = f"{count:,} training rows, {held:,} held out; the SVC of one task takes {in_seconds(one)}, that of all pairs {in_seconds(ovo)}."
    return [TEXT, "", text, "", *lines.lines]
