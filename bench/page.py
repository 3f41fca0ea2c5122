"""docs/development/benchmarks.md: a part for each section between marks, so that a section that is run alone changes only its own."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

import numpy
import pandas
import sklearn

HEAD = """# Benchmarks

`cargo xtask bench` makes an environment with the peers, builds, runs them and us in turn on the same problems with as
many threads, and writes this page. `--only NAME,…` runs some sections (their names are in the marks of this page),
`--repeats N` says how often, `--data DIR` where the data sets are, `--easymkl` adds MKLpy, which brings a large package
along. Every section says below its title when and where it was measured. Times are medians over the repeats; ratios are
taken repeat by repeat, and their range stands in brackets. Gaps are certified.
"""


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB"


def commit(root: Path) -> str:
    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.strip()

    # What this program writes is no change to what it measures.
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs")
    return git("rev-parse", "--short", "HEAD") + (" with changes" if changed else "")


def origin(root: Path, repeats: int) -> dict[str, str]:
    """Where figures come from."""
    return {
        "commit": commit(root),
        "machine": machine(),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scikit-learn": sklearn.__version__,
        "pandas": pandas.__version__,
        "repeats": str(repeats),
    }


def stamp(source: dict[str, str]) -> str:
    """Where and by what something was measured."""
    versions = f"scikit-learn {source['scikit-learn']}, NumPy {source['numpy']}, pandas {source['pandas']}"
    return f"*Commit {source['commit']}; {source['machine']}; Python {source['python']}, {versions}; {source['repeats']} repeats.*"


def write(path: Path, order: dict[str, str], name: str, lines: list[str], source: dict[str, str]) -> None:
    """Puts one section into the page; `order` has the names and titles of all, as they follow each other."""
    old = path.read_text() if path.exists() else ""
    parts = dict(re.findall(r"<!-- ([\w-]+) -->\n(.*?)<!-- /\1 -->", old, re.DOTALL))
    parts[name] = "\n".join([f"## {order[name]}", "", stamp(source), "", *lines, ""])
    page = HEAD + "".join(f"\n<!-- {known} -->\n{parts[known]}<!-- /{known} -->\n" for known in order if known in parts)
    put(path, page)


def write_alone(path: Path, title: str, name: str, lines: list[str], source: dict[str, str]) -> None:
    """A page of one section."""
    made = f"`cargo xtask bench --only {name}` makes this page."
    put(path, "\n".join([f"# {title}", "", made, stamp(source), "", *lines, ""]))


def put(path: Path, text: str) -> None:
    temporary = path.with_suffix(".new")
    temporary.write_text(text)
    temporary.replace(path)
