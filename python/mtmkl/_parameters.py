"""What all estimators are told, and what their words mean to the core."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from ._types import Limits


class Parameters(BaseEstimator):  # type: ignore[misc]
    """The parameters that all estimators have, checked when they are used."""

    # What every estimator's __init__ sets; named for the type checker.
    kernels: Any
    sharing: Any
    p: float
    q: float
    radius: float
    task: Any
    new_tasks: str
    transfer: Any
    groups: Any
    task_offset: bool
    normalize: Any
    scale: str
    indefinite: str
    precision: str
    solver: str
    tol: float
    max_iter: int
    time_limit: float | None
    memory_limit: float
    storage: str | None
    n_jobs: int | None
    random_state: Any

    def _kept_params(self) -> dict[str, Any]:
        """The parameters that belong to the model."""
        parameters: dict[str, Any] = self.get_params(deep=False)
        return parameters

    def _number(self, name: str) -> float:
        value = getattr(self, name)
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise ValueError(f"{name} is {value!r}, expected a number") from None
        if np.isnan(number) or (np.isinf(number) and name != "memory_limit"):
            raise ValueError(f"{name} is {value!r}, expected a finite number")
        return number

    def _price(self, name: str) -> float:
        """The price of an error; 1 where the data is to choose it."""
        value = getattr(self, name)
        if isinstance(value, str):
            if value != "auto":
                raise ValueError(f"{name} is {value!r}, expected a number or 'auto'")
            return 1.0
        return self._number(name)

    def _is_auto(self) -> bool:
        return any(isinstance(value, str) and value == "auto" for value in (getattr(self, name, None) for name in self._prices()))

    def _prices(self) -> tuple[str, ...]:
        """The parameters that are the price of an error."""
        return ()

    def _normalize(self) -> str | None:
        """The word for it; None where nothing is said."""
        if isinstance(self.normalize, bool | np.bool_):
            return "unit" if self.normalize else "none"
        if self.normalize in ("unit", "variance", "none"):
            return str(self.normalize)
        if self.normalize != "auto":
            raise ValueError(f"normalize is {self.normalize!r}, expected 'auto', 'unit', 'variance' or 'none'")
        return "none" if isinstance(self.kernels, str) and self.kernels == "precomputed" else None

    def _definiteness(self) -> str:
        words = {"check": "check", "assume": "assume", "allow": "allow-indefinite"}
        if self.indefinite not in words:
            raise ValueError(
                f"indefinite is {self.indefinite!r}, expected 'check' (refuse indefinite kernels), 'assume' (that there are none) or "
                "'allow' (a local answer without certificate)"
            )
        return words[self.indefinite]

    def _limits(self) -> Limits:
        if not isinstance(self.max_iter, int | np.integer) or self.max_iter < 1:
            raise ValueError(f"max_iter is {self.max_iter!r}, expected a whole number of passes from 1")
        if self.precision not in ("double", "single"):
            raise ValueError(f"precision is {self.precision!r}, expected 'double' or 'single'")
        seed = 0 if self.random_state is None else int(check_random_state(self.random_state).randint(2**31 - 1))
        return {
            "tolerance": self._number("tol"),
            "max_passes": int(self.max_iter),
            "time_limit": None if self.time_limit is None else self._number("time_limit"),
            "threads": threads(self.n_jobs),
            "seed": seed,
            "memory_limit": self._number("memory_limit"),
            "precision": self.precision,
            "storage": self.storage,
        }


def threads(n_jobs: int | None) -> int:
    """Threads for the core, 0 for one per core.

    None follows OMP_NUM_THREADS, which joblib sets in its workers, so that ``GridSearchCV(n_jobs=…)`` does not start more threads than
    there are cores.
    """
    if n_jobs is None:
        limit = os.environ.get("OMP_NUM_THREADS", "")
        return int(limit) if limit.isdigit() else 0
    if not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise ValueError(f"n_jobs is {n_jobs!r}, expected None, a number of threads, or -1 for one per core")
    if n_jobs > 0:
        return int(n_jobs)
    return 0 if n_jobs == -1 else max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))
