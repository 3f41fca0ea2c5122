"""Multi-task multiple kernel learning with certified optimal answers.

Estimators for scikit-learn on a Rust core. Each learns which kernels matter for which task, what the tasks share, and one kernel
machine per task; and it proves how far from optimal the answer can be (``gap_``).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._baselines import baselines
    from ._classifier import MKLClassifier
    from ._core import __version__
    from ._files import load
    from ._kernels import KernelStack, kernel_specs
    from ._one_class import MKLSVDD, MKLOneClassSVM
    from ._plots import plot_boundary, plot_path, plot_weights
    from ._regressor import MKLRegressor
    from ._search import MKLSearchCV
    from ._sharing import (
        PSCS,
        BoxSimplex,
        Common,
        Fixed,
        Group,
        Hierarchy,
        Independent,
        LpBall,
        PriorBall,
        Sharing,
        Simplex,
        Tang,
        Uniform,
    )
    from ._warnings import DataWarning

__all__ = [
    "MKLSVDD",
    "PSCS",
    "BoxSimplex",
    "Common",
    "DataWarning",
    "Fixed",
    "Group",
    "Hierarchy",
    "Independent",
    "KernelStack",
    "LpBall",
    "MKLClassifier",
    "MKLOneClassSVM",
    "MKLRegressor",
    "MKLSearchCV",
    "PriorBall",
    "Sharing",
    "Simplex",
    "Tang",
    "Uniform",
    "__version__",
    "baselines",
    "kernel_specs",
    "load",
    "plot_boundary",
    "plot_path",
    "plot_weights",
]

#: Where names are found when they are asked for: the program `mtmkl` needs none of them, and should not wait for scikit-learn.
_MODULES = {
    "_baselines": ["baselines"],
    "_classifier": ["MKLClassifier"],
    "_core": ["__version__"],
    "_files": ["load"],
    "_kernels": ["KernelStack", "kernel_specs"],
    "_one_class": ["MKLSVDD", "MKLOneClassSVM"],
    "_plots": ["plot_boundary", "plot_path", "plot_weights"],
    "_regressor": ["MKLRegressor"],
    "_search": ["MKLSearchCV"],
    "_warnings": ["DataWarning"],
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module("." + _HOMES.get(name, "_sharing"), __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
