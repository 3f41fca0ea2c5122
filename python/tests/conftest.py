"""Data and tools that several test files use."""

from __future__ import annotations

import os
from pathlib import Path

# One of scikit-learn's checks runs only where this is set, before SciPy is loaded.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture
def sites() -> tuple[pd.DataFrame, pd.Series]:
    """Three tasks of different sizes, two views, a class that depends on the view differently in each task."""
    rng = np.random.default_rng(3)
    parts = []
    for site, count in (("north", 40), ("south", 30), ("west", 36)):
        X = rng.normal(size=(count, 4))
        signal = X[:, 0] * X[:, 1] if site == "north" else X[:, 2] + 0.5 * X[:, 3]
        frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
        frame["site"] = site
        frame["sick"] = np.where(signal + 0.3 * rng.normal(size=count) > 0, "yes", "no")
        parts.append(frame)
    table = pd.concat(parts, ignore_index=True).sample(frac=1, random_state=0, ignore_index=True)
    return table.drop(columns="sick"), table["sick"]


@pytest.fixture(scope="session")
def program() -> Path:
    """The program `mtmkl`, built by `cargo build`."""
    path = Path(os.environ.get("MTMKL_PROGRAM", ROOT / "target" / "debug" / "mtmkl"))
    if not path.exists():
        pytest.skip("the program is not built: cargo build, or set MTMKL_PROGRAM")
    return path
