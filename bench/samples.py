"""Many samples: kernel values streamed from rows, beside matrices that are kept and beside one SVC.

    cargo xtask bench --only samples

`MTMKL_SAMPLES=exact,price,growth` runs some of its parts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from common import Bench, Table, digits, in_seconds, seconds

TITLE = "Many samples"

TEXT = """From rows in memory to the model, kernel values streamed (nothing of size n² is kept), two threads, at most 4 GiB: linear,
polynomial of degree 2, and Gaussians of 1/8 to 16 times the median distance, normalised, L2. Over scikit-learn's
`SVC(kernel="rbf", gamma="scale", cache_size=2000)` with the same C on the same standardised rows, one fit each. The two sides:
usps 3, 5, 8 against the rest; letter A to M against N to Z; shuttle class 1 against the rest; ocr_letters vowels against
consonants. The target is 1.0 at a gap of 1e-3 on letter and shuttle. Narrow kernels, which the weights prefer at C = 10, make
most of the support free."""

KERNELS = ["linear", "poly:degree=2", "rbf:sigma=median*0.125|0.25|0.5|1|2|4|8|16"]
LIMIT = 4 << 30


def features(table: pd.DataFrame) -> np.ndarray:
    columns = [name for name in table if name[0] == "f" and name[1:].isdigit()]
    return StandardScaler().fit_transform(table[columns].to_numpy(float))


def problems(bench: Bench) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rows and labels ±1 by name."""
    found: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    usps = bench.table("usps")
    if usps is not None:
        rows, labels = features(usps), np.where(usps["label"].isin([3, 5, 8]), 1.0, -1.0)
        order = np.random.RandomState(0).permutation(len(labels))
        for count in bench.sizes([4000, 8000], [400]):
            found[f"usps, {count:,}"] = (rows[order[:count]], labels[order[:count]])
    sides = {
        "letter": lambda label: label <= "M",
        "shuttle": lambda label: label.astype(str) == "1",
        "ocr_letters": lambda label: label.isin(list("aeiou")),
    }
    for name, is_positive in sides.items():
        table = None if bench.small else bench.table(name)
        if table is not None:
            found[name] = (features(table), np.where(is_positive(table["label"]), 1.0, -1.0))
    return found


def streamed(bench: Bench, rows: np.ndarray, labels: np.ndarray, **job: Any) -> dict[str, Any]:
    """One fit of the rows with ten kernels, or those that are said, on two threads; labels ±1, a row for each task."""
    files = {"rows": bench.keep("rows", rows), "labels": bench.keep("labels", labels)}
    job = {"kernels": KERNELS, "sharing": {"name": "lp", "p": 2.0}} | job
    return bench.solve(**files, samples=len(rows), threads=2, repeats=1, memory_limit=LIMIT, storage="streamed", whole=True, **job)


def exact(bench: Bench) -> list[str]:
    """Streamed and kept, on the same rows."""
    table = bench.table("letter")
    if table is None:
        return []
    count = 400 if bench.small else 6000
    rows = table.sample(count, random_state=0).reset_index(drop=True)
    rows["part"] = pd.cut(rows.pop("label").map(ord), [0, ord("G"), ord("M"), ord("T"), ord("Z")], labels=list("abcd")).astype(str)
    paths = {}
    for name, made in {"classes": rows, "numbers": rows.rename(columns={"f1": "target"}), "rows": rows}.items():
        paths[name] = bench.folder / f"{name}.csv"
        made.to_csv(paths[name], index=False)
    machines = {
        "svc": [paths["classes"], "--target", "part", "--multiclass", "ova"],
        "svr": [paths["numbers"], "--target", "target", "--task", "part"],
        "ocsvm": [paths["rows"], "--task", "part"],
        "svdd": [paths["rows"], "--task", "part"],
    }
    lines = Table("machine", "sharing", "objective: kept", "objective: streamed", "bound: kept", "bound: streamed", "within the gaps")
    for machine, flags in machines.items():
        for sharing in ["common", "pscs", "group", "independent"] if machine != "svdd" else ["simplex", "tang"]:
            command = ["fit", *flags, "--machine", machine, "--sharing", sharing, *(["--beta", "0.5"] if sharing == "tang" else [])]
            command += ["--kernel", "linear", "--kernel", "rbf:sigma=median*0.5|1|2", "--no-baselines", "--quiet", "--json"]
            kept, ours = (json.loads(bench.program("mtmkl", *command, "--storage", storage)) for storage in ("kept", "streamed"))
            is_same = ours["bound"] <= kept["objective"] and kept["bound"] <= ours["objective"]
            bench.record(exact=machine, sharing=sharing, kept=kept["objective"], streamed=ours["objective"], same=is_same)
            numbers = [f"{found[name]:.6g}" for name in ("objective", "bound") for found in (kept, ours)]
            lines.row(machine, sharing, *numbers, "yes" if is_same else "**no**")
    return [
        "### Exact",
        "",
        f"{count:,} rows of letter, linear and three Gaussian kernels, a gap of 1e-4: four classes, each against the others, on all rows; "
        "for the other machines four tasks of as many rows. SVDD has no optimum on sets of weights that hold 0. Neither objective is below "
        "the other's bound where both certificates are true.",
        "",
        *lines.lines,
    ]


def price(bench: Bench) -> list[str]:
    table = Table("set", "n", "d", "C", "gap", "ours", "SVC", "ratio", "support", "SVC's", "passes", "peak (GiB)")
    for name, (rows, labels) in problems(bench).items():
        # The hardest is measured to one gap.
        for C, gaps in ((10.0, (1e-3,) if name == "ocr_letters" else (1e-3, 1e-4)), (1.0, (1e-3,))):
            svc = SVC(kernel="rbf", gamma="scale", C=C, cache_size=2000)
            theirs = seconds(lambda svc=svc, rows=rows, labels=labels: svc.fit(rows, labels))
            for gap in gaps:
                answer = streamed(bench, rows, labels, c=C, tolerance=gap)
                ours = answer["whole"][0]
                bench.record(set=name, C=C, gap=gap, ours=ours, svc=theirs, peak=answer["peak"], support=answer["support"])
                table.row(
                    name,
                    f"{rows.shape[0]:,}",
                    rows.shape[1],
                    f"{C:g}",
                    f"{gap:.0e}",
                    in_seconds(ours),
                    in_seconds(theirs),
                    digits(ours / theirs),
                    f"{answer['support'][0]:,}",
                    f"{len(svc.support_):,}",
                    answer["passes"],
                    f"{answer['peak'] / 2**30:.1f}",
                )
    return ["### Ten kernels beside one SVC", "", TEXT, "", *table.lines]


def made(count: int, columns: int = 50, noise: float = 0.03) -> tuple[np.ndarray, np.ndarray]:
    """Two classes beside a curved border in five of the columns, the others a tenth as wide; this share of labels is turned round."""
    rng = np.random.default_rng(count)
    x = rng.normal(size=(count, columns))
    x[:, 5:] *= 0.1
    side = x[:, 0] + x[:, 1] * x[:, 2] + 0.5 * x[:, 3] + 0.5 * x[:, 4]
    y = np.where(side > 0, 1.0, -1.0)
    flipped = rng.random(count) < noise
    return x, np.where(flipped, -y, y)


def growth(bench: Bench) -> list[str]:
    """A made set, twice as many rows each time."""
    table = Table("n", "ours", "support", "share", "passes", "peak (GiB)", "exponent")
    last: tuple[int, float] | None = None
    for count in bench.sizes([5000, 10000, 20000, 40000, 80000, 100000, 160000], [500, 1000]):
        rows, labels = made(count)
        answer = streamed(bench, rows, labels, c=MADE_C, tolerance=1e-3, kernels=MADE_KERNELS)
        ours, support = answer["whole"][0], answer["support"][0]
        bench.record(growth=count, ours=ours, support=support, peak=answer["peak"])
        slope = "" if last is None else f"{np.log(ours / last[1]) / np.log(count / last[0]):.2f}"
        peak = f"{answer['peak'] / 2**30:.1f}"
        table.row(f"{count:,}", in_seconds(ours), f"{support:,}", f"{support / count:.0%}", answer["passes"], peak, slope)
        last = (count, ours)
    return [
        "### Growth",
        "",
        f"A made set of 50 columns, of which five tell the classes apart, the others a tenth as wide, 3 % of labels turned round; "
        f"ten kernels ({', '.join(MADE_KERNELS)}), C = {MADE_C:g}, a certified gap of 1e-3, two threads, at most 4 GiB.",
        "",
        *table.lines,
    ]


MADE_C = 1.0
MADE_KERNELS = ["linear", "poly:degree=2", "rbf:sigma=median*0.5|0.7|1|1.4|2|2.8|4|8"]

PARTS: dict[str, Callable[[Bench], list[str]]] = {"exact": exact, "growth": growth, "price": price}


def run(bench: Bench) -> list[str]:
    lines: list[str] = []
    for name in os.environ.get("MTMKL_SAMPLES", ",".join(PARTS)).split(","):
        lines += [*PARTS[name](bench), ""]
    return lines
