"""
What the certificate says
=========================

Every fit ends with two numbers: the objective of the model at hand, and a proven lower bound on that of the best model there is. This page shows where they
come from, and checks them with nothing but NumPy.
"""

# %%
# A fit, pass by pass
# -------------------
# A pass solves every task's machine once. The objective comes down, the bound comes up, and the solver stops when they are within ``tol`` of each other.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from mtmkl import MKLClassifier, plot_boundary, plot_path

iris = load_iris(as_frame=True)
X = iris.data.iloc[:, :2]
y = iris.target_names[iris.target]
model = MKLClassifier(
    "rbf:sigma=0.1|0.3|1|3", C=10, p=1, tol=1e-6, scale="none", normalize="unit"
).fit(X, y)
plot_path(model)
print(
    model.status_,
    f"objective {model.objective_:.6f}, bound {model.bound_:.6f}, gap {model.gap_:.1e}",
)

# %%
# The gap is relative: (objective − bound) / \\|objective\\|. It bounds how much better *any* choice of weights and machines could be by the measure that
# is minimised, not how often predictions are right.
#
# The objective, again, by hand
# -----------------------------
# For each pair of classes: ½‖w‖² + C Σ max(0, 1 − y f(x)) at the model's weights θ, kernels included.

rows = X.to_numpy()
squared = ((rows[:, None] - rows[None]) ** 2).sum(axis=2)
kernels = [np.exp(-squared / (2 * sigma**2)) for sigma in (0.1, 0.3, 1, 3)]
total = 0.0
for number, pair in enumerate(model.tasks_):
    first, second = pair.split("-")
    chosen = np.flatnonzero((y == first) | (y == second))
    sign = np.where(y[chosen] == second, 1.0, -1.0)
    matrix = sum(
        weight * kernel
        for weight, kernel in zip(model.kernel_weights_[number], kernels, strict=True)
    )
    beta = np.zeros(len(rows))
    beta[model.support_] = model.dual_coef_[number]
    f = matrix[chosen] @ beta + model.intercept_[number]
    # Which of the two classes counts as +1 is a convention; the objective is that of the one that fits.
    hinge = min(np.maximum(0, 1 - sign * f).sum(), np.maximum(0, 1 + sign * f).sum())
    total += 0.5 * beta @ matrix @ beta + 10 * hinge
print(f"by hand {total:.6f}, in the model {model.objective_:.6f}")

# %%
# What it decides
# ---------------

figure, ax = plt.subplots(figsize=(5, 4), layout="constrained")
plot_boundary(model, X, y, ax=ax)
plt.show()
