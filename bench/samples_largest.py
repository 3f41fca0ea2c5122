"""Many samples: as many rows and columns as the set covertype has, which is not among ours."""

from __future__ import annotations

from common import Bench, in_seconds
from samples import streamed
from samples_growth import MADE_C, made

TITLE = "Many samples: half a million"

FIVE_KERNELS = ["linear", "poly:degree=2", "rbf:sigma=median*1|2|4"]


def run(bench: Bench) -> list[str]:
    count = bench.sizes([581_012], [2000])[0]
    rows, labels = made(count, 54)
    answer = streamed(bench, rows, labels, c=MADE_C, tolerance=1e-2, kernels=FIVE_KERNELS)
    ours, support = answer["whole"][0], answer["support"][0]
    bench.record(largest=count, ours=ours, support=support, peak=answer["peak"])
    return [
        f"{count:,} rows of 54 columns made alike, five kernels ({', '.join(FIVE_KERNELS)}), a certified gap of 1e-2 "
        f"({answer['gap']:.1e} reached): **{in_seconds(ours)}**, {support:,} support vectors, {answer['passes']} passes, "
        f"at most {answer['peak'] / 2**30:.1f} GiB."
    ]
