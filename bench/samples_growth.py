"""Many samples: growth of the time with their number, on made sets of the same difficulty."""

from __future__ import annotations

import numpy as np

import log_log
from common import Bench, Table, in_seconds
from samples import streamed

TITLE = "Many samples: growth"

MADE_C = 1.0
MADE_KERNELS = ["linear", "poly:degree=2", "rbf:sigma=median*0.5|0.7|1|1.4|2|2.8|4|8"]


def made(count: int, columns: int = 50, noise: float = 0.03) -> tuple[np.ndarray, np.ndarray]:
    """Two classes beside a curved border in five of the columns, the others a tenth as wide; this share of labels is turned round."""
    rng = np.random.default_rng(count)
    x = rng.normal(size=(count, columns))
    x[:, 5:] *= 0.1
    side = x[:, 0] + x[:, 1] * x[:, 2] + 0.5 * x[:, 3] + 0.5 * x[:, 4]
    y = np.where(side > 0, 1.0, -1.0)
    flipped = rng.random(count) < noise
    return x, np.where(flipped, -y, y)


def run(bench: Bench) -> list[str]:
    table = Table("n", "ours", "support", "share", "passes", "peak (GiB)", "exponent")
    sizes, times = list(bench.sizes([5000, 10000, 20000, 40000, 80000, 100000, 160000], [500, 1000])), []
    for count in sizes:
        rows, labels = made(count)
        answer = streamed(bench, rows, labels, c=MADE_C, tolerance=1e-3, kernels=MADE_KERNELS)
        ours, support = answer["whole"][0], answer["support"][0]
        bench.record(growth=count, ours=ours, support=support, peak=answer["peak"])
        slope = f"{np.log(ours / times[-1]) / np.log(count / sizes[len(times) - 1]):.2f}" if times else ""
        peak = f"{answer['peak'] / 2**30:.1f}"
        table.row(f"{count:,}", in_seconds(ours), f"{support:,}", f"{support / count:.0%}", answer["passes"], peak, slope)
        times.append(ours)
        print(f"  {count:,}: {in_seconds(ours)}", flush=True)
    power = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
    line = log_log.Line(f"ten kernels, exponent {power:.2f}", [float(size) for size in sizes], times)
    picture = bench.page.with_name("benchmarks-samples.svg")
    picture.write_text(log_log.svg([log_log.Panel("streamed, to 1e-3", "samples", [line])]))
    return [
        f"A made set of 50 columns, of which five tell the classes apart, the others a tenth as wide, 3 % of labels turned round; "
        f"ten kernels ({', '.join(MADE_KERNELS)}), C = {MADE_C:g}, a certified gap of 1e-3, two threads, at most 4 GiB.",
        "",
        *table.lines,
        "",
        f"![Seconds over samples, logarithmic]({picture.name})",
    ]
