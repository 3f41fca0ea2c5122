"""Classification."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from . import _core
from ._base import Factors, MKLEstimator, class_values, sample_weights, target_name
from ._sharing import Sharing
from ._table import Table, groups, read, text, texts, whole
from ._transfer import is_wanted
from ._types import Vector
from ._warnings import DataWarning


def _has_probabilities(estimator: MKLClassifier) -> bool:
    """Whether an estimator has probabilities, or will have them once it is fitted."""
    model = getattr(estimator, "_model", None)
    if estimator._wants_probabilities() if model is None else model.has_probabilities:
        return True
    raise AttributeError("predict_proba is there with MKLClassifier(probability=True) and with machine='logistic'")


class MKLClassifier(ClassifierMixin, MKLEstimator):  # type: ignore[misc]
    """Support vector classification or kernel logistic regression with learned kernel weights, for one task or many.

    Two classes make one machine for each task; more than two classes make one machine for each pair of them that a task has, and these
    share kernels as tasks do.

    Parameters
    ----------
    kernels : list or "precomputed", optional
        Specifications (``"rbf:gamma=0.5"``, ``"rbf:gamma=scale"``, ``"rbf:sigma=1|2|4"`` for three, ``"poly:degree=2@f1..f4"`` on some
        columns), callables ``k(X, Z)``, and triples ``(name, kernel, columns)``. With "precomputed", X is a stack (M, n, n) or a
        `KernelStack`. By default a linear kernel and Gaussian ones of half, once and twice the median
        distance, ``"rbf:sigma=median*0.5|1|2"``.
    machine : {"svc", "logistic"}, default="svc"
        Support vector classification, or kernel logistic regression, which has probabilities of its own.
    C : float, "auto" or None, default=None
        The price of an error, > 0. None is 1 for "svc" and 30 for "logistic". "auto" lets the data choose, by cross-validation with equal
        weights of all kernels.
    class_weight : dict or "balanced", optional
        Factors of C by class. "balanced" balances the classes of each task.
    multiclass : {"ovo", "ova"}, default="ovo"
        How more than two classes become machines: one for each pair of classes, which vote, or one for each class against all others.
    probability : bool, default=False
        Whether `predict_proba` is wanted: a sigmoid for each machine (Platt), learned from decisions about rows that were kept aside, in
        five folds of the same kernel matrices. With "logistic" it is there anyway, without folds.
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
    C_ : float
        The price of an error, given or chosen.
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of names: numbers by value, then texts.
    kernel_weights_ : ndarray of shape (n_tasks, n_kernels)
        θ, how much each task uses each kernel.
    common_weights_ : ndarray of shape (n_kernels,) or None
        ζ, the part that all tasks share, where the sharing has one.
    specific_weights_ : ndarray of shape (n_tasks, n_kernels) or None
        γ, the part that is each task's own, where the sharing has one: θ = ζ + γ.
    group_weights_ : dict of dict of ndarray of shape (n_kernels,)
        The parts that groups of tasks share, by level and group, where the sharing is a `Hierarchy`; empty elsewhere.
    kernel_names_, tasks_ : list of str, ndarray of str
        What the columns and rows of the weights are: each pair of classes (or class), where there are more than two.
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
    >>> from sklearn.datasets import load_iris
    >>> from mtmkl import MKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MKLClassifier(["linear", "rbf:sigma=1|4"], C=10).fit(X, y)
    >>> model.kernel_weights_.shape  # a row for each pair of classes
    (3, 3)
    >>> model.gap_ <= 1e-4
    True
    >>> model.score(X, y) > 0.95
    True
    """

    _kind = "labels"

    def __init__(
        self,
        kernels: Any = None,
        *,
        machine: str = "svc",
        C: float | Literal["auto"] | None = None,
        class_weight: dict[Any, float] | str | None = None,
        multiclass: Literal["ovo", "ova"] = "ovo",
        probability: bool = False,
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
        self.machine = machine
        self.C = C
        self.class_weight = class_weight
        self.multiclass = multiclass
        self.probability = probability
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

    def _machine(self, totals: Sequence[float]) -> tuple[dict[str, Any], list[float]]:
        if self.machine not in ("svc", "logistic"):
            raise ValueError(f"machine is {self.machine!r}, expected 'svc' or 'logistic'")
        # What is not said is the machine's usual price.
        price = {} if self.C is None else {"C": self._price("C")}
        return {"name": self.machine, **price}, [1.0] * len(totals)

    def _wants_probabilities(self) -> bool:
        return self.probability or self.machine == "logistic"

    def _prices(self) -> tuple[str, ...]:
        return ("C",)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, task: Any = None) -> Self:
        """Learn kernel weights and machines.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features), or a stack of kernels
            The samples.
        y : array-like of shape (n_samples,)
            Their classes.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C; a weight of 2 is as good as the sample twice.
        task : array-like of shape (n_samples,), optional
            The task of each sample, where X has no column for it.

        Returns
        -------
        self
        """
        table, labels = read(self, X, y, task=task, reset=True)
        labels = discrete(labels)
        classes, codes = ordered(*np.unique(labels, return_inverse=True))
        weights = sample_weights(sample_weight, table)
        if len(np.unique(codes[weights > 0])) < 2:
            raise ValueError(f"y has one class only, {classes.tolist()[:1]}, among the samples of weight > 0; expected two or more classes")
        self.classes_ = classes
        names = [text(value) for value in classes]
        if np.issubdtype(labels.dtype, np.number) and _core.looks_like_numbers(names, table.count):
            warnings.warn(
                f"y has {len(classes)} different numbers in {table.count} samples, each of which is taken for a class; MKLRegressor "
                "predicts numbers",
                DataWarning,
                stacklevel=2,
            )
        by_class = self._class_weights()
        if by_class is not None:
            # What costs nothing is not there.
            weights = np.where(by_class[codes] > 0, weights, 0.0)
        present = self._present(table, codes, weights)
        goal: dict[str, Any]
        if len(classes) == 2:
            goal = {"binary": {"classes": names}}
        else:
            lost = [name for at, name in enumerate(names) if not np.any(weights[codes == at] > 0)]
            if lost:
                raise ValueError(f"class {lost[0]!r} has only samples of weight 0; leave them out")
            if self.multiclass not in ("ovo", "ova"):
                raise ValueError(f"multiclass is {self.multiclass!r}, expected 'ovo' (pairs of classes) or 'ova' (one against all others)")
            goal = {"multiclass": {"classes": names, "scheme": self.multiclass, "present": present}}
        return self._solve(
            table,
            goal,
            codes.astype(np.float64),
            weights,
            target_name=target_name(y),
            factors=self._class_factors(codes, by_class),
            extra=class_values(classes, self.class_weight),
        )

    def _class_weights(self) -> Vector | None:
        """What an error costs, by class; None where nothing is said, or what balances the classes."""
        if self.class_weight is None or self.class_weight == "balanced":
            return None
        if not isinstance(self.class_weight, dict):
            raise ValueError(f"class_weight is {self.class_weight!r}, expected a dict, 'balanced' or None")
        strange = [key for key in self.class_weight if key not in self.classes_]
        if strange:
            raise ValueError(f"class_weight has {strange[0]!r}, which is none of the classes {self.classes_.tolist()}")
        by_class = np.array([float(self.class_weight.get(label, 1.0)) for label in self.classes_.tolist()])
        if not np.all(np.isfinite(by_class) & (by_class >= 0)):
            raise ValueError(f"class_weight is {self.class_weight!r}, expected numbers ≥ 0")
        return by_class

    def _class_factors(self, codes: NDArray[np.intp], by_class: Vector | None) -> Factors | None:
        """Each row's factor of C by its class, for the rows of a task and how often each counts."""
        if self.class_weight is None:
            return None

        def factors(members: NDArray[np.intp], counts: Vector) -> Vector:
            own = codes[members]
            prices = _core.balanced(len(self.classes_), own.tolist(), counts) if by_class is None else by_class
            return prices[own]

        return factors

    def _present(self, table: Table, codes: NDArray[np.intp], weights: Vector) -> list[dict[str, Any]]:
        """The classes of each task, by their numbers; nothing where there are no tasks, or one machine learns from all of them."""
        present: list[dict[str, Any]] = []
        if is_wanted(self):
            return present
        for name, rows in groups(table.tasks, table.count, "all") if table.tasks is not None else []:
            own = np.unique(codes[rows][weights[rows] > 0])
            if len(own) == 1:
                only = self.classes_[own[0]]
                raise ValueError(
                    f"task {name!r} has one class only, {only!r}, in its {len(rows)} rows; leave the task out, add samples of another "
                    "class, or split so that each task keeps its classes (StratifiedKFold on task and class)"
                )
            present.append({"task": name, "classes": own.tolist()})
        return present

    def decision_function(self, X: Any, task: Any = None) -> NDArray[np.float64]:
        """Decision values.

        Parameters
        ----------
        X : as in `fit`
        task : array-like of shape (n_samples,) or one task for all, optional

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: > 0 means ``classes_[1]``. More: the largest wins.
        """
        scores = self._scores(X, task)
        return scores if self._frame.has_many_classes else scores[:, 0]

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, task: Any = None) -> NDArray[np.float64]:
        """The probability of each class, with ``probability=True`` or ``machine="logistic"``.

        Two classes: Platt's sigmoid of the decision value, or 1/(1 + exp(−f)) of the logistic machine itself, less what class weights add
        to f. More: those of pairs, coupled (Wu, Lin and Weng 2004). The most probable class
        may be another than `predict` says, where decisions are close.

        Parameters
        ----------
        X : as in `fit`
        task : array-like of shape (n_samples,) or one task for all, optional

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        count, answers = self._answers(X, task)
        probabilities = np.empty((count, len(self.classes_)))
        for answer in answers:
            probabilities[answer.rows] = self._frame.probabilities(self._model, answer.set, answer.decisions)
        return probabilities

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any, task: Any = None) -> NDArray[np.float64]:
        """The logarithms of `predict_proba`.

        Parameters
        ----------
        X : as in `fit`
        task : array-like of shape (n_samples,) or one task for all, optional

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            logarithms: NDArray[np.float64] = np.log(self.predict_proba(X, task))
        return logarithms

    def predict(self, X: Any, task: Any = None) -> NDArray[Any]:
        """The class of each sample.

        Parameters
        ----------
        X : as in `fit`
        task : array-like of shape (n_samples,) or one task for all, optional

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        chosen = self._chosen(X, task)
        predicted: NDArray[Any] = self.classes_[chosen]
        return predicted

    def _chosen(self, X: Any, task: Any) -> NDArray[np.intp]:
        """Which of the classes, for each sample."""
        scores = self._scores(X, task)
        return self._frame.chosen(scores).astype(np.intp)

    def _scores(self, X: Any, task: Any) -> NDArray[np.float64]:
        """The value of each class, or the one that decides between two."""
        count, answers = self._answers(X, task)
        scores = np.empty((count, len(self.classes_) if self._frame.has_many_classes else 1))
        for answer in answers:
            scores[answer.rows] = self._frame.scores(answer.set or 0, answer.decisions)
        return scores

    def score(self, X: Any, y: Any, sample_weight: Any = None, task: Any = None) -> float:
        """The share of samples whose class is right.

        Parameters
        ----------
        X, y, sample_weight, task : as in `fit`

        Returns
        -------
        float
        """
        chosen = self._chosen(X, task)
        names = [text(value) for value in self.classes_]
        truth = texts(column_or_1d(y), "y", names)
        check_consistent_length(chosen, truth, sample_weight)
        return float(np.average(truth == np.array(names, dtype=object)[chosen], weights=sample_weight))


def ordered(classes: NDArray[Any], codes: NDArray[np.intp]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Classes in the order of their names, numbers by value and before texts, and the class of each sample."""
    order = np.array(_core.name_order([text(value) for value in classes]), dtype=np.intp)
    return classes[order], np.argsort(order)[codes]


def discrete(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels of one type; of arrays of objects scikit-learn knows only those of text."""
    if labels.dtype == object:
        kinds = {bool: bool | np.bool_, int: int | np.integer, float: float | np.floating, str: str}
        found = {next((kind for kind, types in kinds.items() if isinstance(value, types)), type(value)) for value in labels}
        if found in ({bool}, {float}):
            labels = labels.astype(found.pop())
        elif found == {int}:
            # Beyond 64 bits they stay objects, which are discrete by themselves.
            return whole([int(value) for value in labels])
        elif len(found) > 1:
            mixed = " and ".join(sorted(kind.__name__ for kind in found))
            raise ValueError(f"y mixes labels of the types {mixed}; give all of them one type, as y.astype(str) does")
    check_classification_targets(labels)
    return labels
