"""Reading a CSV file beside pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd

from common import Bench, Table, in_seconds, in_turn, median, ratio, seconds

TITLE = "Reading a table"


def run(bench: Bench) -> list[str]:
    table = Table("table", "ours", "pandas", "ratio")
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
        table.row(f"{rows:,} × 50, {label}", in_seconds(median(ours)), in_seconds(median(theirs)), ratio(ours, theirs)[1])
        bench.record(table=label, ours=ours, pandas=theirs)
    return table.lines
