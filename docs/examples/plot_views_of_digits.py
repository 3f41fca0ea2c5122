"""
Views of the same thing: handwritten digits
===========================================

One image can be described in several ways: its grey values, how much ink each row and each column has, the frequencies in it, and
where it has edges. Each description is a *view* with a kernel of its own. The weights, learned together with the machine, say which
views tell digits apart, and the sum of all is better than any of them.
"""

# %%
# The views
# ---------
# scikit-learn's digits have 8 × 8 pixels. From these, four views, side by side in one table:

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from mtmkl import MKLClassifier

images, digit = load_digits(return_X_y=True)
images = images.reshape(-1, 8, 8) / 16

views = {
    "pixels": images.reshape(-1, 64),
    "ink in rows and columns": np.hstack([images.sum(axis=1), images.sum(axis=2)]),
    "frequencies": np.abs(np.fft.fft2(images)).reshape(-1, 64)[:, :40],
    "edges": np.hstack(
        [np.abs(np.diff(images, axis=axis)).reshape(len(images), -1) for axis in (1, 2)]
    ),
}
X = np.hstack(list(views.values()))
ends = np.cumsum([view.shape[1] for view in views.values()])
columns = {
    name: slice(end - view.shape[1], end)
    for (name, view), end in zip(views.items(), ends, strict=True)
}
X_train, X_test, y_train, y_test = train_test_split(
    X, digit, train_size=300, stratify=digit, random_state=0
)
print(X.shape, {name: view.shape[1] for name, view in views.items()})

# %%
# A kernel for each view
# ----------------------
# A triple says the kernel's name, what it is, and which columns it sees. ``median`` is the median distance of two samples in that
# view, so that no view needs a width of its own to be found.

kernels = [(name, "rbf:sigma=median*0.5", part) for name, part in columns.items()]
model = MKLClassifier(kernels, C=10, p=2).fit(X_train, y_train)
together = model.score(X_test, y_test)
alone = {
    name: MKLClassifier([kernel], C=10).fit(X_train, y_train).score(X_test, y_test)
    for name, kernel in zip(views, kernels, strict=True)
}

print(
    f"all views, learned weights: {together:.3f}   (proven within {model.gap_:.0e} of the optimum)"
)
for name, score in alone.items():
    print(f"{name:24} alone: {score:.3f}")

# %%
# What was learned
# ----------------
# Ten digits are 45 pairs of classes, and all pairs share one set of weights.

weights = model.kernel_weights_[0]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained", sharey=True)
left.barh(list(views), weights, color="tab:blue")
left.set_title("weight of each view")
left.invert_yaxis()
right.barh(list(views), list(alone.values()), color="tab:gray")
right.axvline(together, color="tab:blue", label="all together")
right.legend(loc="lower left")
right.set_xlim(0.7, 1)
right.set_title("accuracy on new digits")

# %%
# A view that says little has a small weight, but a small weight is no verdict: two views that say the same share theirs. Compare
# with the plain average of all kernels (``sharing="uniform"``) before a view is left out.

average = (
    MKLClassifier(kernels, C=10, sharing="uniform").fit(X_train, y_train).score(X_test, y_test)
)
print(f"plain average of the four kernels: {average:.3f}")
