"""scikit-learn's own checks of estimators: all of them, none expected to fail, none skipped."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mtmkl import MKLSVDD, Common, Group, MKLClassifier, MKLOneClassSVM, MKLRegressor, Simplex, Tang

# Some checks ask for one pass only, or for weights that differ by seven orders of magnitude.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

ESTIMATORS = [
    MKLClassifier(),
    MKLRegressor(),
    MKLOneClassSVM(),
    MKLSVDD(),
    # Other machines, kernels, sharings and solvers.
    MKLRegressor(["linear", "rbf:gamma=scale"], machine="svr"),
    MKLClassifier(["linear", "rbf:gamma=scale"], machine="logistic"),
    MKLClassifier(["linear", "rbf:sigma=1|4"], sharing=Common(p=1.1) + Group(p=1.1, q=1)),
    MKLClassifier(["linear", ("first", "rbf", [0])], sharing="independent", p=1),
    MKLOneClassSVM("rbf:sigma=1|4", sharing=Simplex()),
    MKLSVDD("rbf:sigma=1|4", sharing=Tang(beta=0.5)),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    check(estimator)
