"""Regression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from ._base import MKLEstimator, sample_weights, target_name
from ._sharing import Sharing
from ._table import read


class MKLRegressor(RegressorMixin, MKLEstimator):  # type: ignore[misc]
    """Regression with learned kernel weights, for one task or many: kernel ridge regression or ε-support vector regression.

    Whole numbers in y are numbers, not classes. Columns and targets are standardised (``scale``, ``target_scale``).

    Parameters
    ----------
    kernels : list or "precomputed", optional
        Specifications (``"rbf:gamma=0.5"``, ``"rbf:gamma=scale"``, ``"rbf:sigma=1|2|4"`` for three, ``"poly:degree=2@f1..f4"`` on some
        columns), callables ``k(X, Z)``, and triples ``(name, kernel, columns)``. With "precomputed", X is a stack (M, n, n) or a
        `KernelStack`. By default a linear kernel and Gaussian ones of half, once and twice the median
        distance, ``"rbf:sigma=median*0.5|1|2"``.
    machine : {"krr", "svr"}, default="krr"
        Kernel ridge regression, or ε-insensitive support vector regression.
    alpha : float or "auto", default=1.0
        The ridge of "krr", > 0. "auto" lets the data choose, by leave-one-out errors with equal weights of all kernels.
    C : float or "auto", default=1.0
        The price of an error of "svr", > 0. "auto" lets the data choose, by cross-validation with equal weights of all kernels.
    epsilon : float, default=0.1
        The width of the tube of "svr", in which errors are free, ≥ 0.
    sharing : str or Sharing, default="auto"
        What the tasks share: "lp", "common", "independent", "group", "pscs", "simplex", "prior-ball", "uniform", or an object such as
        ``Tang(beta=0.5)`` or ``Common(p=1.1) + Group(p=1.1, q=1)``. "auto" is "lp" for one task, "pscs" for several and "common" for the
        classes of one.
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
    target_scale : {"standard", "none"}, default="standard"
        What y is measured in. "standard": each task's less its mean, divided by its standard deviation; ``alpha``, ``C`` and ``epsilon``
        are in these units.
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
    alpha_, C_ : float
        The ridge of "krr" or the price of an error of "svr", given or chosen.
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
    >>> from sklearn.datasets import load_diabetes
    >>> from mtmkl import MKLRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> body = ("body", "rbf:gamma=scale", slice(0, 4))
    >>> blood = ("blood", "rbf:gamma=scale", slice(4, 10))
    >>> model = MKLRegressor(["linear", body, blood], alpha=0.5).fit(X, y - y.mean())
    >>> model.kernel_names_
    ['linear', 'body', 'blood']
    >>> model.score(X, y - y.mean()) > 0.5
    True
    """

    _kind = "values"

    def __init__(
        self,
        kernels: Any = None,
        *,
        machine: str = "krr",
        alpha: float | Literal["auto"] = 1.0,
        C: float | Literal["auto"] = 1.0,
        epsilon: float = 0.1,
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
        target_scale: str = "standard",
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
        self.machine = machine
        self.alpha = alpha
        self.C = C
        self.epsilon = epsilon
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
        self.target_scale = target_scale
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

    def _machine(self, totals: Sequence[float]) -> tuple[dict[str, Any], list[float]]:
        if self.machine == "krr":
            return {"name": "krr", "lambda": self._price("alpha")}, [1.0] * len(totals)
        if self.machine == "svr":
            spec = {"name": "svr", "C": self._price("C"), "epsilon": self._number("epsilon")}
            return spec, [1.0] * len(totals)
        raise ValueError(f"machine is {self.machine!r}, expected 'krr' or 'svr'")

    def _prices(self) -> tuple[str, ...]:
        return ("alpha",) if self.machine == "krr" else ("C",)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, task: Any = None) -> Self:
        """Learn kernel weights and machines.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features), or a stack of kernels
            The samples.
        y : array-like of shape (n_samples,)
            Their values.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of the price of errors; a weight of 2 is as good as the sample twice.
        task : array-like of shape (n_samples,), optional
            The task of each sample, where X has no column for it.

        Returns
        -------
        self
        """
        table, values = read(self, X, y, task=task, reset=True, y_numeric=True)
        values = np.asarray(values, dtype=np.float64)
        weights = sample_weights(sample_weight, table)
        return self._solve(table, "regression", values, weights, target_name=target_name(y))

    def predict(self, X: Any, task: Any = None) -> NDArray[np.float64]:
        """The value of each sample.

        Parameters
        ----------
        X : as in `fit`
        task : array-like of shape (n_samples,) or one task for all, optional

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._decisions(X, task)

    def score(self, X: Any, y: Any, sample_weight: Any = None, task: Any = None) -> float:
        """R², the share of the variance that is explained.

        Parameters
        ----------
        X, y, sample_weight, task : as in `fit`

        Returns
        -------
        float
        """
        return float(r2_score(y, self.predict(X, task), sample_weight=sample_weight))
