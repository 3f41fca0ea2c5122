"""Kernels as the user writes them: specifications, callables, ``(name, kernel, columns)`` triples, stacks of Gram matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from . import _core

Matrix = NDArray[np.float64]

#: Rows handled at a time where only the diagonal of k(X, X) is wanted.
_BLOCK = 32


class KernelStack:
    """M kernel matrices over the same samples, for ``kernels="precomputed"``, that scikit-learn can split.

    A plain array (M, n, n) does for ``fit`` and (M, n_new, n_train) for ``predict``. Wrapped in a `KernelStack` it also goes through
    `cross_val_score`, `GridSearchCV` and everything else that splits samples.

    Parameters
    ----------
    values : array of shape (M, n_rows, n_columns), or (n_rows, n_columns) for one kernel
        Training: square and symmetric. Prediction: new samples in rows, all training samples in columns.
    own : array of shape (M, n_rows), optional
        k(x, x) of the samples in the rows: needed for prediction where kernels are normalised and for `MKLSVDD`. A symmetric
        stack has it on its diagonals.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from mtmkl import KernelStack, MKLClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> grams = np.stack([X @ X.T, (1 + X @ X.T) ** 2])
    >>> scores = cross_val_score(MKLClassifier("precomputed"), KernelStack(grams), y, cv=3)
    >>> bool(scores.mean() > 0.8)
    True
    """

    def __init__(self, values: ArrayLike, own: ArrayLike | None = None) -> None:
        stack = np.ascontiguousarray(values, dtype=np.float64)
        if stack.ndim == 2:
            stack = stack[np.newaxis]
        if stack.ndim != 3:
            raise ValueError(
                f"X has {stack.ndim} dimensions, expected a stack of kernel matrices: (M, n, n) to fit, (M, n_new, n_train) to predict"
            )
        self.values: Matrix = stack
        self._own: Matrix | None = None
        if own is not None:
            self._own = np.ascontiguousarray(own, dtype=np.float64).reshape(len(stack), -1)
            if self._own.shape[1] != len(self):
                raise ValueError(f"own has {self._own.shape[1]} values a kernel, expected {len(self)}: one for each row")

    @property
    def own(self) -> Matrix | None:
        """k(x, x) of the samples in the rows, shape (M, n_rows), where it is known.

        Matrices that are square by chance, as many new samples as training samples, are not symmetric.
        """
        if self._own is None and self.shape[0] == self.shape[1] and np.allclose(self.values, self.values.transpose(0, 2, 1)):
            self._own = np.ascontiguousarray(np.diagonal(self.values, axis1=1, axis2=2))
        return self._own

    @property
    def shape(self) -> tuple[int, int]:
        """(n_rows, n_columns): as scikit-learn sees it, one kernel matrix."""
        return (self.values.shape[1], self.values.shape[2])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> KernelStack:
        """Some rows and columns, ``stack[np.ix_(rows, columns)]``, or some rows with all columns, ``stack[rows]``."""
        if isinstance(index, tuple) and len(index) == 2:
            rows, columns = (np.ravel(np.asarray(part)) for part in index)
        else:
            rows, columns = np.ravel(np.asarray(index)), np.arange(self.values.shape[2])
        rows, columns = np.arange(len(self))[rows], np.arange(self.values.shape[2])[columns]
        own = None if self.own is None else self.own[:, rows]
        return KernelStack(self.values[:, rows[:, np.newaxis], columns], own)

    def __repr__(self) -> str:
        kernels, rows, columns = self.values.shape
        return f"KernelStack({kernels} kernels, {rows} × {columns})"


@dataclass(frozen=True)
class Call:
    """A kernel that Python computes: handed to the core as a Gram matrix under this name."""

    name: str
    function: Callable[[Matrix, Matrix], ArrayLike]
    columns: tuple[int, ...] | None

    def _view(self, rows: Any) -> Any:
        if self.columns is None:
            return rows
        view = rows[:, list(self.columns)]
        return view if sparse.issparse(view) else np.ascontiguousarray(view)

    def matrix(self, left: Any, right: Any) -> Matrix:
        """k(left, right). Sparse rows are handed on as they are, and what comes of them may be sparse."""
        made: Any = self.function(self._view(left), self._view(right))
        values = np.ascontiguousarray(made.toarray() if sparse.issparse(made) else made, dtype=np.float64)
        expected = (left.shape[0], right.shape[0])
        if values.shape != expected:
            label = getattr(self.function, "__name__", repr(self.function))
            raise ValueError(
                f"the kernel {label} returned an array of shape {values.shape}, expected {expected}: "
                "k(X, Z) has a row for each row of X and a column for each row of Z"
            )
        return values

    def diagonal(self, rows: Any) -> NDArray[np.float64]:
        """k(x, x) of each row."""
        parts = [np.diagonal(self.matrix(part, part)) for part in _blocks(rows)]
        return np.concatenate(parts) if parts else np.empty(0)


def _blocks(rows: Any) -> list[Any]:
    return [rows[start : start + _BLOCK] for start in range(0, rows.shape[0], _BLOCK)]


@dataclass(frozen=True)
class Kernels:
    """Kernels for the core: (name, specification) pairs, and the callables behind some of them."""

    pairs: tuple[tuple[str | None, str], ...]
    calls: tuple[Call, ...]


def _positions(columns: Any, names: Sequence[str], label: str) -> tuple[int, ...]:
    """Positions among the features of columns given by name, position, slice or mask."""
    if isinstance(columns, str | int | np.integer):
        columns = [columns]
    if isinstance(columns, slice):
        if isinstance(columns.start, str) or isinstance(columns.stop, str):
            # As in pandas, a slice of names includes its end.
            start = 0 if columns.start is None else _position(columns.start, names, label)
            stop = len(names) - 1 if columns.stop is None else _position(columns.stop, names, label)
            return tuple(range(start, stop + 1))
        return tuple(range(len(names))[columns])
    listed = list(columns)
    if listed and all(isinstance(entry, bool | np.bool_) for entry in listed):
        if len(listed) != len(names):
            raise ValueError(f"kernel {label!r}: the mask has {len(listed)} entries, expected {len(names)}")
        return tuple(int(at) for at in np.flatnonzero(listed))
    return tuple(_position(entry, names, label) for entry in listed)


def _position(entry: Any, names: Sequence[str], label: str) -> int:
    if isinstance(entry, str):
        if entry in names:
            return list(names).index(entry)
        raise ValueError(f"kernel {label!r}: there is no column {entry!r}; the columns are {_some(names)}")
    if not isinstance(entry, int | np.integer) or not -len(names) <= entry < len(names):
        raise ValueError(f"kernel {label!r}: there is no column {entry!r}, expected a position below {len(names)}")
    return int(entry) % len(names)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:8])
    return shown + (f", … ({len(names)} in all)" if len(names) > 8 else "")


def resolve(kernels: Any, names: Sequence[str], indices: Sequence[int]) -> Kernels:
    """The kernels of an estimator's parameter.

    ``names`` are the names of X's columns, ``indices`` the position of each of them among the features (−1 for a task column).
    """
    if kernels is None:
        kernels = _core.usual_kernels()
    if isinstance(kernels, str) or callable(kernels):
        kernels = [kernels]
    try:
        listed = list(kernels)
    except TypeError:
        listed = []
    if not listed:
        raise ValueError(
            f"kernels is {kernels!r}, expected a list of specifications ('rbf:gamma=0.5'), callables k(X, Z) or "
            "(name, kernel, columns) triples, or 'precomputed'"
        )
    if isinstance(kernels, tuple) and len(listed) == 3 and isinstance(listed[0], str) and not isinstance(listed[2], str):
        # One triple that was meant as a list of one.
        listed = [tuple(listed)]
    pairs: list[tuple[str | None, str]] = []
    calls: list[Call] = []
    for entry in listed:
        name: str | None = None
        columns: tuple[int, ...] | None = None
        kernel = entry
        if isinstance(entry, tuple):
            if len(entry) != 3 or not isinstance(entry[0], str):
                raise ValueError(f"kernel {entry!r}: expected a triple (name, kernel, columns)")
            name, kernel, wanted = entry
            positions = [indices[at] for at in _positions(wanted, names, name)]
            if -1 in positions:
                raise ValueError(f"kernel {name!r}: the task column is no feature; leave it out of the kernel's columns")
            if not positions:
                raise ValueError(f"kernel {name!r} sees no columns")
            columns = tuple(positions)
        if isinstance(kernel, str):
            if kernel.strip() == "precomputed" or kernel.strip().startswith("precomputed:"):
                raise ValueError(
                    'kernel "precomputed" stands alone: kernels="precomputed" with a stack (M, n, n) as X; a kernel computed in '
                    "Python beside others can be a callable k(X, Z)"
                )
            if columns is not None and "@" in kernel:
                raise ValueError(f"kernel {name!r}: {kernel!r} has columns of its own; leave out the part from @ on")
            spec = kernel
            if columns is not None:
                spec += "@" + ",".join(f"#{at}" for at in columns)
            pairs.append((name, spec))
        elif callable(kernel):
            call = Call(f"callable {len(calls)}", kernel, columns)
            calls.append(call)
            pairs.append((name or getattr(kernel, "__name__", call.name), f"precomputed:name={call.name}"))
        else:
            raise ValueError(
                f"kernel {entry!r}: expected a specification such as 'rbf:gamma=0.5', a callable k(X, Z) or a triple "
                "(name, kernel, columns)"
            )
    return Kernels(tuple(pairs), tuple(calls))


def precomputed(count: int) -> Kernels:
    """M kernels that are read from a stack."""
    return Kernels(tuple((f"K{at}", f"precomputed:name=K{at}") for at in range(count)), ())


def kernel_specs(spec: str) -> list[str]:
    """The kernels that a specification stands for.

    Examples
    --------
    >>> from mtmkl import kernel_specs
    >>> kernel_specs("rbf:sigma=1|2")
    ['rbf:sigma=1', 'rbf:sigma=2']
    """
    return _core.kernel_specs(spec)
