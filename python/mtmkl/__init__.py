"""Multi-task multiple kernel learning with certified optimal answers.

Estimators for scikit-learn on a Rust core. Each learns which kernels matter for which task, what the tasks share, and one kernel
machine per task; and it proves how far from optimal the answer can be (``gap_``).
"""

from ._classifier import MKLClassifier
from ._core import __version__
from ._files import load
from ._kernels import KernelStack, kernel_specs
from ._one_class import MKLSVDD, MKLOneClassSVM
from ._plots import plot_boundary, plot_path, plot_weights
from ._regressor import MKLRegressor
from ._sharing import (
    PSCS,
    BoxSimplex,
    Common,
    Fixed,
    Group,
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
    "Independent",
    "KernelStack",
    "LpBall",
    "MKLClassifier",
    "MKLOneClassSVM",
    "MKLRegressor",
    "PriorBall",
    "Sharing",
    "Simplex",
    "Tang",
    "Uniform",
    "__version__",
    "kernel_specs",
    "load",
    "plot_boundary",
    "plot_path",
    "plot_weights",
]
