"""
A kernel of your own
====================

What you know about your data can go into a kernel: a function ``k(X, Z)`` that returns the matrix of values between rows, beside those that
have names. Here: something that repeats every day, on top of a slow trend.
"""

# %%
# Four weeks of a made demand curve
# ---------------------------------

import matplotlib.pyplot as plt
import numpy as np

from mtmkl import MKLRegressor

rng = np.random.default_rng(0)
days = np.arange(0, 28, 1 / 24)
demand = (
    20
    + 0.3 * days
    + 6 * np.sin(2 * np.pi * days)
    + 3 * np.cos(4 * np.pi * days)
    + rng.normal(scale=1.5, size=len(days))
)
known = (rng.random(len(days)) < 0.25) & (days < 21)
X_train, y_train = days[known, None], demand[known]
print(f"{known.sum()} of {len(days)} hours are known, none of the last week")

# %%
# A daily kernel
# --------------
# The periodic kernel of Gaussian processes, k(x, z) = exp(−2 sin²(π (x − z))). It is positive semi-definite; whether a function of
# yours is, is checked on the samples and refused where it is not (``indefinite=``).


def daily(X, Z):
    """Alike at the same time of day."""
    return np.exp(-2 * np.sin(np.pi * (X[:, :1] - Z[:, 0])) ** 2)


def trend(X, Z):
    """A straight line, around the middle of the month."""
    return (X[:, :1] - 14) * (Z[:, 0] - 14) / 100


kernels = [("trend", trend, [0]), ("day", daily, [0])]
model = MKLRegressor(kernels, alpha="auto", scale="none", normalize="none").fit(
    X_train, y_train
)
plain = MKLRegressor(alpha="auto").fit(X_train, y_train)
for name, weight in zip(model.kernel_names_, model.kernel_weights_[0], strict=True):
    print(f"{name:13} {weight:.2f}")

# %%
# The last week was never seen
# ----------------------------

last = days >= 21
figure, ax = plt.subplots(figsize=(9, 3.2), layout="constrained")
ax.plot(days, demand, color="0.85", label="demand")
ax.plot(days[known], demand[known], ".", color="0.4", label="known")
for name, fitted, colour in (
    ("without the daily kernel", plain, "tab:orange"),
    ("with it", model, "tab:blue"),
):
    predicted = fitted.predict(days[:, None])
    error = np.sqrt(np.mean((predicted[last] - demand[last]) ** 2))
    print(f"{name:25} root mean square error in the last week: {error:.1f}")
    ax.plot(days, predicted, color=colour, label=name)
ax.axvspan(21, 28, color="0.95", zorder=0)
ax.set_xlabel("day")
ax.legend(ncols=4, loc="upper left", fontsize="small")

# %%
# ``scale="none"`` keeps days as they are, since the kernel knows how long one is. ``normalize="none"`` keeps kernels as they are: divided by its diagonal, a
# straight line would be a step. A kernel that others should be able to name on
# the command line is written in Rust: one file with an entry, see :doc:`/development/index`.
