"""One-class machines: the hyperplane and the sphere."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from ._base import MKLEstimator, sample_weights
from ._sharing import Sharing
from ._table import read
from ._warnings import DataWarning


class _OneClass(OutlierMixin, MKLEstimator):  # type: ignore[misc]
    """What the one-class machines have in common; not for use by itself."""

    def __init__(
        self,
        kernels: Any = None,
        *,
        nu: float = 0.5,
        sharing: str | Sharing = "auto",
        p: float = 2.0,
        q: float = 1.0,
        radius: float = 1.0,
        task: str | int | None = None,
        new_tasks: str = "error",
        transfer: Sequence[str] | str | None = None,
        groups: Any = None,
        task_offset: bool = True,
        scale: str = "auto",
        normalize: bool | str = "auto",
        indefinite: str = "check",
        precision: str = "double",
        solver: str = "newton",
        tol: float = 1e-4,
        max_iter: int = 1000,
        time_limit: float | None = None,
        memory_limit: float = 8.0,
        storage: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernels = kernels
        self.nu = nu
        self.sharing = sharing
        self.p = p
        self.q = q
        self.radius = radius
        self.task = task
        self.new_tasks = new_tasks
        self.transfer = transfer
        self.groups = groups
        self.task_offset = task_offset
        self.scale = scale
        self.normalize = normalize
        self.indefinite = indefinite
        self.precision = precision
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.storage = storage
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _thresholds(self) -> NDArray[np.float64]:
        """The threshold of ``score_samples`` in each task."""
        raise NotImplementedError

    @property
    def offset_(self) -> Any:
        """The threshold of ``score_samples``."""
        if not hasattr(self, "_model"):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet: call fit first")
        values = self._thresholds()
        return float(values[0]) if len(values) == 1 else values

    def _offsets(self, X: Any, task: Any) -> Any:
        """The threshold for each row."""
        check_is_fitted(self)
        values = self._thresholds()
        tasks = self._new(X, task).tasks
        if tasks is None:
            return values[0]
        known = {name: value for name, value in zip(self._model.task_names, values, strict=True)}
        # A task never seen is judged by the mean machine.
        return np.array([known.get(name, values.mean()) for name in tasks])

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, task: Any = None) -> Self:
        """Learn kernel weights and machines.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features), or a stack of kernels
            The samples.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 is as good as the sample twice.
        task : array-like of shape (n_samples,), optional
            The task of each sample, where X has no column for it.

        Returns
        -------
        self
        """
        table, _ = read(self, X, task=task, reset=True)
        weights = sample_weights(sample_weight, table)
        self._solve(table, "one-class", None, weights, target_name=None)
        learned = json.loads(self._model.sharing)["name"] not in ("uniform", "fixed")
        if len(self.kernel_names_) > 1 and learned:
            warnings.warn(
                f"{type(self).__name__} learns the weights of {len(self.kernel_names_)} kernels without labels, and prefers the flattest "
                "or the narrowest of them whatever the samples are; sharing='uniform' takes all alike, kernels=[…] names one",
                DataWarning,
                stacklevel=2,
            )
        return self

    def decision_function(self, X: Any, task: Any = None) -> NDArray[np.float64]:
        """Decision values, ≥ 0 for inliers.

        Parameters
        ----------
        X : as in `fit`
        task : array-like of shape (n_samples,) or one task for all, optional

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._decisions(X, task)

    def score_samples(self, X: Any, task: Any = None) -> NDArray[np.float64]:
        """How normal each sample is, before the threshold: ``decision_function(X) + offset_`` (of its task).

        Parameters
        ----------
        X : as in `fit`
        task : array-like of shape (n_samples,) or one task for all, optional

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.asarray(self._decisions(X, task) + self._offsets(X, task))

    def predict(self, X: Any, task: Any = None) -> NDArray[np.int64]:
        """+1 for inliers, −1 for outliers.

        Parameters
        ----------
        X : as in `fit`
        task : array-like of shape (n_samples,) or one task for all, optional

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        decisions = self._decisions(X, task)
        return np.where(self._frame.chosen(decisions[:, np.newaxis]) == 1, 1, -1)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None, task: Any = None) -> NDArray[np.int64]:
        """`fit`, then `predict` on the same samples.

        Parameters
        ----------
        X, y, sample_weight, task : as in `fit`

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.fit(X, y, sample_weight, task).predict(X, task)


class MKLOneClassSVM(_OneClass):
    """One-class support vector machine with learned kernel weights, for one task or many.

    A hyperplane that separates the samples from the origin; at most a share `nu` of them is left out.

    Parameters
    ----------
    kernels : list or "precomputed", optional
        Specifications (``"rbf:gamma=0.5"``, ``"rbf:gamma=scale"``, ``"rbf:sigma=1|2|4"`` for three, ``"poly:degree=2@f1..f4"`` on some
        columns), callables ``k(X, Z)``, and triples ``(name, kernel, columns)``. With "precomputed", X is a stack (M, n, n) or a
        `KernelStack`. By default one Gaussian of a quarter of the median distance,
        ``"rbf:sigma=median*0.5"``.
    nu : float, default=0.5
        The share of samples that may be left out, in (0, 1].
    sharing : str or Sharing, default="auto"
        What the tasks share: "lp", "common", "independent", "group", "pscs", "simplex", "prior-ball", "uniform", or an object such as
        ``Tang(beta=0.5)`` or ``Common(p=1.1) + Group(p=1.1, q=1)``. "auto" is "uniform".
    p, q, radius : float, default=2.0, 1.0, 1.0
        Of the sharings with names: the norm's exponent inside a task, ≥ 1; the norm's exponent between tasks (1 makes tasks share where
        they can), ≥ 1; the bound on the norm, > 0.
    task : str or int, optional
        The column of X (name or index) that has the task of each row. It is no feature. Without it, `fit` and `predict` take an array
        ``task``, or there is one task.
    new_tasks : {"error", "common"}, default="error"
        What to do about rows of a task that was not in `fit`: refuse them, or predict from what the tasks share. With ``transfer`` every
        task is predicted: a new one from what all share and, where its group is known (a column of X, or ``groups`` has it), from the
        group's too.
    transfer : list of str or str, optional
        Share what is learned, not only weights: one machine on the rows of all tasks, with each kernel times each of these task kernels.
        "all" is a function that all tasks share, "group" one of each group of tasks (of each level), "own" one of each task's own,
        "similarity" one by a matrix; ``["all", "own"]`` or ``"all,group,own"``. Kernels may say it themselves, ``"linear*all"``,
        ``"rbf*own"``. What is said of each task elsewhere, balanced classes and standardised targets, is then said of all rows together.
    groups : mapping, str, list of str or square matrix, optional
        The groups of tasks for "group": a mapping from task to group (which may have tasks to come), columns of X, outermost first (which
        are no features), or a tree, ``{"north": {"oslo": ["a", "b"]}, "south": ["c"]}``; for "similarity" a positive semi-definite
        matrix, a DataFrame with tasks as index and columns or an array in the order of names.
    task_offset : bool, default=True
        Whether each task has an offset of its own (with a ridge on it) under ``transfer``.
    scale : {"auto", "standard", "minmax", "none"}, default="auto"
        How columns are scaled before kernels see them; kept in the model. "auto" is "standard", and "none" where a kernel needs values ≥ 0.
    normalize : {"auto", "variance", "unit", "none"}, default="auto"
        What kernels are divided by: "variance", the variance of the samples in feature space (mean of k(x, x) − mean of k(x, z)); "unit",
        √(k(x, x) k(z, z)). "auto" is "variance" for specifications, "unit" with callables and "none" for precomputed kernels. True and
        False are older words for "unit" and "none".
    indefinite : {"check", "assume", "allow"}, default="check"
        What to do about kernels that may not be positive semi-definite (precomputed, callable, sigmoid): check and refuse them, assume that
        they are definite, or allow them, which gives a local answer without certificate.
    precision : {"double", "single"}, default="double"
        How kernel matrices are kept: 8 bytes a value, or 4, in half the memory and less time for large matrices. Of matrices that were
        given, the certificate is then that of the kernels as rounded (``rounded_``).
    solver : {"newton", "epf"}, default="newton"
        Second-order steps, or the paper's Algorithm 1.
    tol : float, default=1e-4
        The certified relative gap to stop at.
    max_iter : int, default=1000
        The most passes; a pass solves every task's machine once.
    time_limit : float, optional
        The most seconds.
    memory_limit : float, default=8.0
        GiB that kernel matrices may take. Over it, their values are made on demand, which may be slower, and a warning says so.
    storage : {"kept", "mapped", "streamed"}, optional
        Where kernel values come from: a matrix for each kernel, one for all kernels on the same columns, or rows in blocks, on any number
        of rows. By `memory_limit` where nothing is said.
    n_jobs : int, optional
        Threads; the answer does not depend on it. None is one per core, or OMP_NUM_THREADS where that is set, as joblib does in its
        workers; −1 is one per core.
    random_state : int, RandomState or None, default=None
        Seed of the random starts of "epf" and of indefinite kernels; nothing else is random.

    Attributes
    ----------
    offset_ : float, or ndarray of shape (n_tasks,)
        ``decision_function = score_samples - offset_``.
    kernel_weights_ : ndarray of shape (n_tasks, n_kernels)
        θ, how much each task uses each kernel.
    common_weights_ : ndarray of shape (n_kernels,) or None
        ζ, the part that all tasks share, where the sharing has one.
    specific_weights_ : ndarray of shape (n_tasks, n_kernels) or None
        γ, the part that is each task's own, where the sharing has one: θ = ζ + γ.
    group_weights_ : dict of dict of ndarray of shape (n_kernels,)
        The parts that groups of tasks share, by level and group, where the sharing is a `Hierarchy`; empty elsewhere.
    kernel_names_, tasks_ : list of str, ndarray of str
        What the columns and rows of the weights are.
    objective_, bound_, gap_ : float
        An upper bound on the objective at the answer, a certified lower bound on the optimum, and their relative difference.
    status_ : str
        "converged", "converged-uncertified" (indefinite kernels), "pass-limit", "time-limit" or "stalled".
    solver_ : str
        The solver that did the work.
    fallback_ : str or None
        Why it is not the one that was asked for: "sharing" or "indefinite", which are beyond "newton".
    rounded_ : bool
        Whether objective, bound and gap are those of kernels as rounded (``precision="single"`` on given matrices).
    scores_ : dict or None
        The scores that the program kept with a model, as ``mtmkl inspect --json`` shows them; None for models fitted here.
    trace_ : structured ndarray
        Every pass: number, objective, bound, gap, step, inner_iterations, seconds.
    n_iter_ : int
        The number of passes.
    support_ : ndarray of shape (n_support,)
        Rows of X that some machine needs.
    support_vectors_ : ndarray of shape (n_support, n_features)
        Their features.
    dual_coef_ : ndarray of shape (n_tasks, n_support)
        β of each task's machine on them, signs included.
    intercept_ : ndarray of shape (n_tasks,)
        b of each task's machine.
    n_features_in_ : int
        Columns of X, those of tasks and groups included.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, where X has names that are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from mtmkl import MKLOneClassSVM
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> model = MKLOneClassSVM("rbf:sigma=0.5|1|2", nu=0.1).fit(X)
    >>> model.predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    def _machine(self, totals: Sequence[float]) -> tuple[dict[str, Any], list[float]]:
        return {"name": "ocsvm", "nu": self._number("nu")}, [1.0] * len(totals)

    def _thresholds(self) -> NDArray[np.float64]:
        """−b of each hyperplane."""
        return np.asarray(-self.intercept_)


class MKLSVDD(_OneClass):
    """Support vector data description with learned kernel weights, for one task or many.

    The smallest sphere around the samples of each task; at most a share `nu` of them is left out. Since spread only grows with the
    kernel weights, the sharing must have a fixed mass: "simplex", ``BoxSimplex``, ``Tang``, or fixed weights.

    Parameters
    ----------
    kernels : list or "precomputed", optional
        Specifications (``"rbf:gamma=0.5"``, ``"rbf:gamma=scale"``, ``"rbf:sigma=1|2|4"`` for three, ``"poly:degree=2@f1..f4"`` on some
        columns), callables ``k(X, Z)``, and triples ``(name, kernel, columns)``. With "precomputed", X is a stack (M, n, n) or a
        `KernelStack`. By default one Gaussian of a quarter of the median distance,
        ``"rbf:sigma=median*0.5"``.
    nu : float, default=0.5
        The share of samples that may be left out, in (0, 1]. The usual parameter of SVDD is C = 1/(nu · n).
    sharing : str or Sharing, default="auto"
        What the tasks share: "lp", "common", "independent", "group", "pscs", "simplex", "prior-ball", "uniform", or an object such as
        ``Tang(beta=0.5)`` or ``Common(p=1.1) + Group(p=1.1, q=1)``. "auto" is "uniform".
    p, q, radius : float, default=2.0, 1.0, 1.0
        Of the sharings with names: the norm's exponent inside a task, ≥ 1; the norm's exponent between tasks (1 makes tasks share where
        they can), ≥ 1; the bound on the norm, > 0.
    task : str or int, optional
        The column of X (name or index) that has the task of each row. It is no feature. Without it, `fit` and `predict` take an array
        ``task``, or there is one task.
    new_tasks : {"error", "common"}, default="error"
        What to do about rows of a task that was not in `fit`: refuse them, or predict from what the tasks share. With ``transfer`` every
        task is predicted: a new one from what all share and, where its group is known (a column of X, or ``groups`` has it), from the
        group's too.
    transfer : list of str or str, optional
        Share what is learned, not only weights: one machine on the rows of all tasks, with each kernel times each of these task kernels.
        "all" is a function that all tasks share, "group" one of each group of tasks (of each level), "own" one of each task's own,
        "similarity" one by a matrix; ``["all", "own"]`` or ``"all,group,own"``. Kernels may say it themselves, ``"linear*all"``,
        ``"rbf*own"``. What is said of each task elsewhere, balanced classes and standardised targets, is then said of all rows together.
    groups : mapping, str, list of str or square matrix, optional
        The groups of tasks for "group": a mapping from task to group (which may have tasks to come), columns of X, outermost first (which
        are no features), or a tree, ``{"north": {"oslo": ["a", "b"]}, "south": ["c"]}``; for "similarity" a positive semi-definite
        matrix, a DataFrame with tasks as index and columns or an array in the order of names.
    task_offset : bool, default=True
        Whether each task has an offset of its own (with a ridge on it) under ``transfer``.
    scale : {"auto", "standard", "minmax", "none"}, default="auto"
        How columns are scaled before kernels see them; kept in the model. "auto" is "standard", and "none" where a kernel needs values ≥ 0.
    normalize : {"auto", "variance", "unit", "none"}, default="auto"
        What kernels are divided by: "variance", the variance of the samples in feature space (mean of k(x, x) − mean of k(x, z)); "unit",
        √(k(x, x) k(z, z)). "auto" is "variance" for specifications, "unit" with callables and "none" for precomputed kernels. True and
        False are older words for "unit" and "none".
    indefinite : {"check", "assume", "allow"}, default="check"
        What to do about kernels that may not be positive semi-definite (precomputed, callable, sigmoid): check and refuse them, assume that
        they are definite, or allow them, which gives a local answer without certificate.
    precision : {"double", "single"}, default="double"
        How kernel matrices are kept: 8 bytes a value, or 4, in half the memory and less time for large matrices. Of matrices that were
        given, the certificate is then that of the kernels as rounded (``rounded_``).
    solver : {"newton", "epf"}, default="newton"
        Second-order steps, or the paper's Algorithm 1.
    tol : float, default=1e-4
        The certified relative gap to stop at.
    max_iter : int, default=1000
        The most passes; a pass solves every task's machine once.
    time_limit : float, optional
        The most seconds.
    memory_limit : float, default=8.0
        GiB that kernel matrices may take. Over it, their values are made on demand, which may be slower, and a warning says so.
    storage : {"kept", "mapped", "streamed"}, optional
        Where kernel values come from: a matrix for each kernel, one for all kernels on the same columns, or rows in blocks, on any number
        of rows. By `memory_limit` where nothing is said.
    n_jobs : int, optional
        Threads; the answer does not depend on it. None is one per core, or OMP_NUM_THREADS where that is set, as joblib does in its
        workers; −1 is one per core.
    random_state : int, RandomState or None, default=None
        Seed of the random starts of "epf" and of indefinite kernels; nothing else is random.

    Attributes
    ----------
    offset_ : float, or ndarray of shape (n_tasks,)
        ``decision_function = score_samples - offset_``. Decision values are R² − ‖φ(x) − centre‖².
    kernel_weights_ : ndarray of shape (n_tasks, n_kernels)
        θ, how much each task uses each kernel.
    common_weights_ : ndarray of shape (n_kernels,) or None
        ζ, the part that all tasks share, where the sharing has one.
    specific_weights_ : ndarray of shape (n_tasks, n_kernels) or None
        γ, the part that is each task's own, where the sharing has one: θ = ζ + γ.
    group_weights_ : dict of dict of ndarray of shape (n_kernels,)
        The parts that groups of tasks share, by level and group, where the sharing is a `Hierarchy`; empty elsewhere.
    kernel_names_, tasks_ : list of str, ndarray of str
        What the columns and rows of the weights are.
    objective_, bound_, gap_ : float
        An upper bound on the objective at the answer, a certified lower bound on the optimum, and their relative difference.
    status_ : str
        "converged", "converged-uncertified" (indefinite kernels), "pass-limit", "time-limit" or "stalled".
    solver_ : str
        The solver that did the work.
    fallback_ : str or None
        Why it is not the one that was asked for: "sharing" or "indefinite", which are beyond "newton".
    rounded_ : bool
        Whether objective, bound and gap are those of kernels as rounded (``precision="single"`` on given matrices).
    scores_ : dict or None
        The scores that the program kept with a model, as ``mtmkl inspect --json`` shows them; None for models fitted here.
    trace_ : structured ndarray
        Every pass: number, objective, bound, gap, step, inner_iterations, seconds.
    n_iter_ : int
        The number of passes.
    support_ : ndarray of shape (n_support,)
        Rows of X that some machine needs.
    support_vectors_ : ndarray of shape (n_support, n_features)
        Their features.
    dual_coef_ : ndarray of shape (n_tasks, n_support)
        β of each task's machine on them, signs included.
    intercept_ : ndarray of shape (n_tasks,)
        b of each task's machine.
    n_features_in_ : int
        Columns of X, those of tasks and groups included.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, where X has names that are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from mtmkl import MKLSVDD
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> model = MKLSVDD("rbf:sigma=0.5|1|2", nu=0.1).fit(X)
    >>> model.predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    _mass = True

    def _machine(self, totals: Sequence[float]) -> tuple[dict[str, Any], list[float]]:
        nu = self._number("nu")
        if not 0 < nu <= 1:
            raise ValueError(f"nu is {self.nu!r}, expected a number in (0, 1]")
        if len(totals) == 1 and self._part is None:
            return {"name": "svdd", "C": 1.0 / (nu * totals[0])}, [1.0]
        # C is one number for all tasks; their sizes go into the weights.
        return {"name": "svdd", "C": 1.0 / nu}, [1.0 / total for total in totals]

    def _thresholds(self) -> NDArray[np.float64]:
        """−2b of each sphere, up to a constant."""
        return np.asarray(-2.0 * self.intercept_)
