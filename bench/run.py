"""Benchmarks beside the peers, in one run: `cargo xtask bench` makes the environment, builds the programs and calls this.

    python bench/run.py [--only NAME,...] [--repeats N] [--data DIR] [--easymkl] [--small] [--page FILE]

Each section is one file of this folder; what it finds goes to its part of docs/development/benchmarks.md, and as raw numbers
to target/bench/NAME.json.
"""

from __future__ import annotations

import argparse
import importlib
import json
import tempfile
from pathlib import Path
from time import perf_counter

import page
from common import ROOT, Bench

SECTIONS = [
    "given",
    "ridge",
    "ridge_samples",
    "text",
    "price",
    "grams",
    "easymkl",
    "tang",
    "passes",
    "growth",
    "many",
    "tune",
    "boundary",
    "reading",
    "defaults",
    "accuracy",
    "probability",
    "transfer",
    "logistic",
    "samples_exact",
    "samples",
    "samples_tasks",
    "samples_growth",
    "samples_largest",
    "cluster",
]


def main() -> None:
    parser = argparse.ArgumentParser(description="Benchmarks beside the peers.")
    parser.add_argument("--only", default=",".join(SECTIONS), help=f"some of {', '.join(SECTIONS)}")
    parser.add_argument("--repeats", type=int, default=Bench.repeats)
    parser.add_argument("--data", type=Path, default=Bench.data, help="the folder with usps.csv.gz and vehicle.csv.gz")
    parser.add_argument("--easymkl", action="store_true", help="also MKLpy's EasyMKL (installs torch)")
    parser.add_argument("--small", action="store_true", help="small sizes, to see that everything works; needs --page")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "development" / "benchmarks.md")
    arguments = parser.parse_args()
    chosen = arguments.only.split(",")
    unknown = [name for name in chosen if name not in SECTIONS]
    if unknown:
        parser.error(f"no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    if arguments.small and arguments.page == parser.get_default("page"):
        parser.error("figures of small sizes do not belong into the page: say another one with --page")
    modules = {name: importlib.import_module(name) for name in SECTIONS}
    titles = {name: module.TITLE for name, module in modules.items()}
    # Those with a page of their own stand there alone.
    shared = {name: title for name, title in titles.items() if not hasattr(modules[name], "PAGE")}
    raw = ROOT / "target" / "bench"
    raw.mkdir(parents=True, exist_ok=True)
    arguments.page.parent.mkdir(parents=True, exist_ok=True)
    source = page.origin(ROOT, arguments.repeats)
    for name in (name for name in SECTIONS if name in chosen):
        print(f"\n== {titles[name]} ({name}) ==", flush=True)
        started = perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(
                repeats=arguments.repeats,
                data=arguments.data,
                easymkl=arguments.easymkl,
                small=arguments.small,
                folder=Path(folder),
                page=arguments.page,
            )
            lines = modules[name].run(bench)
        if lines is None:
            continue
        seconds = perf_counter() - started
        numbers = {"origin": source, "small": bench.small, "seconds": seconds, "numbers": bench.raw}
        (raw / f"{name}.json").write_text(json.dumps(numbers, indent=1))
        if name in shared:
            page.write(arguments.page, shared, name, lines, source)
        else:
            own = modules[name].PAGE if arguments.page == parser.get_default("page") else arguments.page.with_name(f"{name}.md")
            page.write_alone(own, titles[name], name, lines, source)
        print(f"{name}: {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
