"""What the sections share: the settings of a run, our programs, turns, times with their spread, tables, kernels, data.

A section is one file with a TITLE and `run(bench) -> list of Markdown lines`, or None where it was skipped.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.svm import SVC

if TYPE_CHECKING:
    import pandas as pd

ROOT = Path(__file__).resolve().parent.parent

# Linear, polynomial of degree 2, Gaussians of spread 2^0 to 2^7: the paper's ten kernels.
TEN_KERNELS = ["linear", "poly:degree=2", "rbf:sigma=1|2|4|8|16|32|64|128"]


@dataclass
class Bench:
    """One run: how often, where the programs, the data and the raw numbers are."""

    repeats: int = 5
    data: Path = ROOT.parent / "shared" / "data"
    programs: Path = ROOT / "target" / "release"
    easymkl: bool = False
    small: bool = False
    folder: Path = Path()
    page: Path = ROOT / "docs" / "development" / "benchmarks.md"
    raw: list[dict[str, Any]] = field(default_factory=list)

    def sizes(self, whole: Sequence[Any], small: Sequence[Any]) -> Sequence[Any]:
        """The sizes to run: all of them, or those for a look at whether it works."""
        return small if self.small else whole

    def record(self, **numbers: Any) -> None:
        """Keeps raw numbers for the JSON file of the section."""
        self.raw.append(numbers)

    def program(self, name: str, *arguments: object) -> str:
        """What one of our programs prints."""
        command = [str(self.programs / name), *(str(argument) for argument in arguments)]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    def solve(self, **job: Any) -> dict[str, Any]:
        """One run of our `solve` program. The answer's `time` is that of the fastest solve: the first warms up."""
        job = {"threads": 1, "repeats": 2} | {name: str(value) if isinstance(value, Path) else value for name, value in job.items()}
        result = json.loads(self.program("solve", json.dumps(job)))
        assert result["status"] == "converged", (job, result)
        result["time"] = min(result["seconds"])
        return result

    def keep(self, name: str, values: np.ndarray) -> Path:
        """An array as a file that our programs read."""
        path = self.folder / name
        values.astype("<f8").tofile(path)
        return path

    def table(self, name: str) -> pd.DataFrame | None:
        """One of the data sets; None, with a message, where it is not there."""
        import pandas as pd

        path = self.data / f"{name}.csv.gz"
        if not path.exists():
            print(f"{path} is not there: skipped (--data DIR says where the data are)")
            return None
        return pd.read_csv(path)


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    started = perf_counter()
    work()
    return perf_counter() - started


# Fits of which the fastest counts: while a process waits for another, the system may take its pages, and the first call brings them back.
WARM = 3


def warm_seconds(work: Callable[[], object]) -> float:
    """The least of a few."""
    return min(seconds(work) for _ in range(WARM))


# A process begins with the memory of the one that started it, and that counts as its own most: so a small one starts it.
STARTER = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:])
_, status, usage = os.wait4(child.pid, 0)
print(usage.ru_maxrss, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def measured(command: Sequence[object]) -> tuple[str, float, float]:
    """What a program prints, the seconds it takes and the most memory it has, in GiB."""
    words = [str(word) for word in command]
    started = perf_counter()
    done = subprocess.run([sys.executable, "-c", STARTER, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout, perf_counter() - started, int(done.stderr.split()[-1]) / 2**20


def in_turn(repeats: int, *works: Callable[[], float]) -> list[list[float]]:
    """The times of each, taken in turn, so that whatever else the machine does falls on all of them."""
    found = [[work() for work in works] for _ in range(repeats)]
    return [list(times) for times in zip(*found, strict=True)]


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, str]:
    """ours / theirs, repeat by repeat: the median, and the median with its range in words."""
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    middle = median(ratios)
    return middle, f"{digits(middle)} ({digits(min(ratios))}–{digits(max(ratios))})"


def digits(value: float) -> str:
    """Three significant digits without an exponent."""
    if value == 0 or not np.isfinite(value):
        return f"{value:g}"
    return f"{value:,.{max(0, 2 - int(np.floor(np.log10(abs(value)))))}f}"


def in_seconds(value: float) -> str:
    """A time in its natural unit."""
    return f"{digits(1000 * value)} ms" if value < 1 else f"{digits(value)} s"


def met(reached: bool) -> str:
    return "yes" if reached else "**no**"


class Table:
    """A Markdown table that prints each row as soon as it is known."""

    def __init__(self, *names: str) -> None:
        self.lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
        print("\n".join(self.lines), flush=True)

    def row(self, *cells: object) -> None:
        self.lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
        print(self.lines[-1], flush=True)


def svc(gram: np.ndarray, labels: np.ndarray, C: float) -> SVC:
    """One fit of scikit-learn's SVC, the unit of all ratios."""
    return SVC(kernel="precomputed", C=C, tol=1e-3, cache_size=1000).fit(gram, labels)


def squared_distances(X: np.ndarray) -> np.ndarray:
    """‖x − z‖² of all pairs of rows."""
    s = (X * X).sum(1)
    D = np.maximum(s[:, None] + s[None] - 2 * X @ X.T, 0)
    np.fill_diagonal(D, 0)
    return D


def unit_diagonal(K: np.ndarray) -> np.ndarray:
    """k(x, z) / √(k(x, x) k(z, z))"""
    d = np.sqrt(np.diag(K))
    return K / d[:, None] / d[None]


def ten_kernels(X: np.ndarray) -> np.ndarray:
    """The Gram matrices of TEN_KERNELS, normalised."""
    G, D = X @ X.T, squared_distances(X)
    return np.stack([unit_diagonal(G), unit_diagonal((G + 1) ** 2)] + [np.exp(-D / (2 * 4.0**e)) for e in range(8)])


def weighted(weights: Sequence[float], grams: np.ndarray) -> np.ndarray:
    """Σ_m θ_m K_m"""
    return np.tensordot(np.asarray(weights), grams, 1)


def features(table: pd.DataFrame) -> np.ndarray:
    return table.filter(regex=r"^f\d+$").to_numpy(float)


def one_vs_all(labels: np.ndarray) -> np.ndarray:
    """±1 for each class, a row each."""
    return np.stack([np.where(labels == label, 1.0, -1.0) for label in np.unique(labels)])
