"""Pictures with matplotlib, which is loaded when the first one is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

#: Colours of two classes, as the ends of the red-blue map under them, and of more.
_TWO = ("#b2182b", "#2166ac")
_MANY = tuple(f"C{at}" for at in range(10))


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as pyplot
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'mtmkl[plot]'") from error
    return pyplot.subplots(layout="constrained")[1]


def plot_weights(model: Any, ax: Any = None) -> Any:
    """Kernel weights θ, tasks in rows, as a heat map; below them ζ, what all tasks share, where the sharing has it.

    Parameters
    ----------
    model : fitted estimator
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
    """
    check_is_fitted(model)
    ax = _axes(ax)
    rows = [str(name) for name in model.tasks_]
    weights = model.kernel_weights_
    if model.common_weights_ is not None and model.specific_weights_ is not None:
        weights = np.vstack([weights, model.common_weights_])
        rows.append("shared")
    image = ax.imshow(weights, aspect="auto", cmap="Blues", vmin=0)
    ax.set_xticks(range(weights.shape[1]), model.kernel_names_, rotation=45, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(rows)), rows)
    if weights.size <= 200:
        middle = weights.max() / 2
        for (row, column), value in np.ndenumerate(weights):
            shown = "·" if value < 5e-4 else f"{value:.2g}"
            ax.text(column, row, shown, ha="center", va="center", color="white" if value > middle else "black", fontsize="small")
    ax.set_title("kernel weights")
    ax.figure.colorbar(image, ax=ax)
    return ax


def plot_path(model: Any, ax: Any = None) -> Any:
    """The solver's path: the objective and the certified lower bound on the optimum, pass by pass, until they meet.

    Parameters
    ----------
    model : fitted estimator
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
    """
    check_is_fitted(model)
    ax = _axes(ax)
    trace = model.trace_
    ax.plot(trace["number"], trace["objective"], marker="o", label="objective")
    # The bound of the first passes can be far away, or none at all.
    known = np.isfinite(trace["bound"])
    ax.plot(trace["number"][known], trace["bound"][known], marker="o", label="certified lower bound")
    ax.set_xlabel("pass")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_title(f"{model.status_}, gap {model.gap_:.1e}")
    ax.legend()
    return ax


def plot_boundary(model: Any, X: Any, y: Any = None, *, task: Any = None, ax: Any = None, resolution: int = 200) -> Any:
    """The decision of a model of two features over the plane, with the samples.

    Parameters
    ----------
    model : fitted estimator of two features
    X : array-like of shape (n_samples, 2)
        Samples: they are drawn, and the picture is a little larger than they reach.
    y : array-like of shape (n_samples,), optional
        Classes or values, by which samples are coloured.
    task : optional
        The task whose machine is drawn, where the model was fitted with a task array; for a task column, give X with that column, all
        of one task.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    resolution : int, default=200
        Points on each side of the grid.

    Returns
    -------
    matplotlib Axes
    """
    check_is_fitted(model)
    table = model._new(X, task)
    if table.rows is None or table.rows.shape[1] != 2:
        found = "precomputed kernels" if table.rows is None else f"{table.rows.shape[1]} features"
        raise ValueError(f"plot_boundary draws models of two features, not of {found}")
    tasks = None if table.tasks is None else sorted(set(table.tasks))
    if tasks is not None and len(tasks) != 1:
        raise ValueError(f"X has rows of {len(tasks)} tasks; draw them one at a time")
    ax = _axes(ax)
    shown = table.rows.toarray() if sparse.issparse(table.rows) else table.rows
    low, high = shown.min(axis=0), shown.max(axis=0)
    margin = 0.1 * np.where(high > low, high - low, 1.0)
    across, up = (np.linspace(low[at] - margin[at], high[at] + margin[at], resolution) for at in range(2))
    grid = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    table.rows, table.count = np.ascontiguousarray(grid), len(grid)
    name = model._model.task_names[0] if tasks is None else tasks[0]
    number = model._frame.set_of(model._model, name)
    if number is None:
        raise ValueError(f"the model was not fitted on the task {name!r}")
    values = model._model.decisions(number, model._input(table, np.arange(len(grid)), number, name))
    by_class = model._frame.has_many_classes
    if by_class:
        count = len(model.classes_)
        regions = model._frame.chosen(model._frame.scores(number, values)).reshape(resolution, resolution)
        ax.contourf(across, up, regions, levels=np.arange(count + 1) - 0.5, alpha=0.25, colors=[_MANY[at % 10] for at in range(count)])
    else:
        values = values[:, 0].reshape(resolution, resolution)
        filled = ax.contourf(across, up, values, levels=20, cmap="RdBu", alpha=0.6)
        if model._kind == "values":
            ax.figure.colorbar(filled, ax=ax)
        elif values.min() < 0 < values.max():
            ax.contour(across, up, values, levels=[0.0], colors="black")
    colours: Any = "black"
    if y is not None and model._kind == "labels":
        palette = _MANY if by_class else _TWO
        codes = np.searchsorted(model.classes_, np.asarray(y))
        colours = [palette[code % len(palette)] for code in codes]
    elif y is not None:
        colours = np.asarray(y)
    ax.scatter(shown[:, 0], shown[:, 1], c=colours, s=15, edgecolors="white", linewidths=0.5)
    ax.set_xlabel(table.columns[0])
    ax.set_ylabel(table.columns[1])
    return ax
