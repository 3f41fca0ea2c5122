"""Many tasks on a cluster: beside the local engine, what crosses in a round, the outer solver's own time, and where it stops to scale.

As a section of `bench/run.py` it builds and installs what it needs. By itself, for a machine without network, it takes what is there: mtmkl
and Dask in the environment of the Python that runs it, and the program `outer` of `mtmkl-bench` in a folder.

    python bench/cluster.py [--small] [--repeats N] [--programs DIR] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from common import Bench, Table, digits, in_seconds, median, met

TITLE = "Many tasks on a cluster"

TEXT = """`mtmkl.dask` on a `LocalCluster` of one and two processes of one thread beside the local engine with one and two threads:
support vector classification, 20 columns, ten kernels made on demand, PSCS, certified to 1e-4, data in memory to fitted estimator
included, each in a process of its own, in turn. *Overhead* is one worker over one thread, *efficiency* half of the time of one
worker over that of two. Targets: at most 15 %, at least 0.8. *Processor* is the same overhead in seconds of processor time, client and
worker together. The last line is a problem that one machine refuses (kernels kept, within the limit that each worker has)."""

OUTER = """The outer solver's own time in a pass (all that is not evaluating) beside evaluating, both on one thread (`outer` of
`mtmkl-bench`), as means over the passes of a fit. Target: under 20 % of the pass. Where tasks compete for weights (group), most have none
after the first pass, and cost next to nothing."""

SIMULATED = """Simulated from the first line (one worker): a pass is T/W times the time of a task, the latency of a round, its bytes
at 1 Gbit/s, and the outer solver's own time with PSCS."""

# Tasks, samples, GiB.
PROBLEMS = [(10_000, 100, 6.0), (100, 1000, 6.0)]
TOO_LARGE = (12, 1000, 0.6)
SHAPES = [(10_000, 10), (1000, 100)]
GIGABIT = 125e6


def once(*arguments: object) -> dict[str, Any]:
    """One measurement, in a process of its own."""
    command = [sys.executable, str(Path(__file__).with_name("cluster_once.py")), *map(str, arguments)]
    # One thread is one, in the libraries below too.
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        if "MemoryError" in done.stderr:
            return {"refused": done.stderr.strip().splitlines()[-1]}
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    # Workers may have a last word.
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    found: dict[str, Any] = json.loads(lines[-1])
    assert found["status"] == "converged", found
    return found


def evaluations(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [own for own in found["rounds"] if own["name"] == "evaluate"]


def crossed(found: dict[str, Any]) -> str:
    """Bytes down and up in a round."""
    rounds = evaluations(found)
    return f"{digits(median(own['sent'] for own in rounds) / 1e6)} / {digits(median(own['received'] for own in rounds) / 1e6)} MB"


def run(bench: Bench) -> list[str]:
    install(bench)
    return measure(bench)


def measure(bench: Bench) -> list[str]:
    """All tables, with what is installed."""
    measured: dict[str, float] = {}
    table = Table(
        "tasks × samples",
        "1 thread",
        "2 threads",
        "1 worker",
        "2 workers",
        "overhead",
        "met",
        "processor",
        "efficiency",
        "met",
        "rounds",
        "down / up in a round",
    )
    for tasks, samples, limit in bench.sizes(PROBLEMS, [(50, 60, 6.0)]):
        job = (tasks, samples, 10, "pscs", "mapped", limit)
        found: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for _ in range(min(bench.repeats, 2)):
            for way in (("near", 1), ("near", 2), ("far", 1), ("far", 2)):
                found.setdefault(way, []).append(once(*way, *job))
        times = {way: median(own["seconds"] for own in all_of) for way, all_of in found.items()}
        overhead = times["far", 1] / times["near", 1] - 1
        efficiency = times["far", 1] / times["far", 2] / 2
        last = found["far", 2][-1]
        cells = [in_seconds(times[way]) for way in (("near", 1), ("near", 2), ("far", 1), ("far", 2))]
        used = {way: median(sum(own["processor"]) for own in all_of) for way, all_of in found.items()}
        in_processor = f"{100 * (used['far', 1] / used['near', 1] - 1):.0f} %"
        shown = [f"{100 * overhead:.0f} %", met(overhead <= 0.15), in_processor, digits(efficiency), met(efficiency >= 0.8)]
        table.row(f"{tasks:,} × {samples:,}", *cells, *shown, len(evaluations(last)), crossed(last))
        measured = measured or parts_of(found["far", 1][-1], tasks)
        bench.record(tasks=tasks, samples=samples, answers={f"{where} {count}": own for (where, count), own in found.items()})
    if not bench.small:
        tasks, samples, limit = TOO_LARGE
        job = (tasks, samples, 10, "pscs", "kept", limit)
        near, far = once("near", 2, *job), once("far", 2, *job)
        refused = "refused" if "MemoryError" in near.get("refused", "") else in_seconds(near["seconds"])
        table.row(
            f"{tasks} × {samples:,}, {limit} GiB",
            "",
            refused,
            "",
            in_seconds(far["seconds"]),
            *[""] * 5,
            len(evaluations(far)),
            crossed(far),
        )
        bench.record(tasks=tasks, samples=samples, near=near, far=far)
    return [TEXT, "", *table.lines, "", OUTER, "", *outer_lines(bench), "", SIMULATED, "", *simulated(measured)]


def parts_of(found: dict[str, Any], tasks: int) -> dict[str, float]:
    """The time of a task on its worker, the latency of a round, and by task the bytes of a round and the solver's own time."""
    rounds = evaluations(found)
    return {
        "task": sum(own["slowest"] for own in rounds) / len(rounds) / tasks,
        "latency": median(own["seconds"] - own["slowest"] for own in rounds),
        "bytes": median(own["sent"] + own["received"] for own in rounds) / tasks,
        "own": found["own"] / len(rounds) / tasks,
    }


def outer_lines(bench: Bench) -> list[str]:
    table = Table("T × M", "sharing", "passes", "own in a pass", "evaluating", "share", "met")
    for tasks, many in bench.sizes(SHAPES, [(50, 5)]):
        for sharing in ("pscs", "group", "common"):
            found = json.loads(bench.program("outer", tasks, 100, many, sharing, 1e-4))
            own, worked = found["own"], found["evaluating"]
            share = own / (own + worked)
            shown = [in_seconds(own), in_seconds(worked), f"{100 * share:.0f} %", met(share < 0.2)]
            table.row(f"{tasks:,} × {many}", sharing, found["passes"], *shown)
            bench.record(tasks=tasks, kernels=many, sharing=sharing, answer=found)
    return table.lines


def simulated(measured: dict[str, float]) -> list[str]:
    table = Table("tasks", *(f"{workers} workers" for workers in (1, 8, 16, 32, 64)), "outer solver at 64")
    for tasks in (10_000, 100_000):
        one = None
        cells = []
        for workers in (1, 8, 16, 32, 64):
            rest = measured["latency"] + tasks * (measured["bytes"] / GIGABIT + measured["own"])
            whole = tasks * measured["task"] / workers + rest
            one = one or whole
            cells.append(f"{in_seconds(whole)} (×{digits(one / whole)})")
        table.row(f"{tasks:,}", *cells, f"{100 * tasks * measured['own'] / whole:.0f} %")
    return table.lines


def install(bench: Bench) -> None:
    """The release wheel, and Dask."""
    from boundary import install_wheel

    install_wheel(bench.folder / "wheels")
    requirement = "dask[dataframe,distributed]==2026.8.0"
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Many tasks on a cluster, with what is installed.")
    parser.add_argument("--small", action="store_true", help="small sizes, to see that everything works")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--programs", type=Path, default=Bench.programs, help="the folder with the program `outer`")
    parser.add_argument("--json", type=Path, help="a file for the raw numbers")
    arguments = parser.parse_args()
    bench = Bench(repeats=arguments.repeats, programs=arguments.programs, small=arguments.small)
    if not (bench.programs / "outer").exists():
        parser.error(f"there is no program {bench.programs / 'outer'}: cargo build --release -p mtmkl-bench makes it; or --programs DIR")
    lines = measure(bench)
    print("\n" + "\n".join(lines))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(bench.raw, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
