"""
Choosing a model
================

``MKLSearchCV`` chooses like ``GridSearchCV``, on one set of kernel matrices with warm starts. Without a grid it is the recommended way to a
model; with one it goes through every cell.
"""

# %%
# Without a grid
# --------------
# The price of errors, each kernel alone, their average, learned weights with p = 1, 2 and 4, then other scalings of the winner.

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mtmkl import MKLClassifier, MKLSearchCV, baselines

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, train_size=400, stratify=y, random_state=0
)

start = time.perf_counter()
search = MKLSearchCV(MKLClassifier()).fit(X_train, y_train)
ours = time.perf_counter() - start
print(search.best_params_)
print(
    f"{len(search.cv_results_['params'])} candidates in {ours:.1f} s; accuracy {search.score(X_test, y_test):.3f} on 1,397 further rows"
)

# %%
# Beside it, the usual grid over C and the width of one Gaussian:

start = time.perf_counter()
grid = {"svc__C": np.logspace(-1, 3, 5), "svc__gamma": np.logspace(-4, 0, 5)}
peer = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=5).fit(X_train, y_train)
theirs = time.perf_counter() - start
print(
    f"SVC in GridSearchCV: 25 candidates in {theirs:.1f} s; accuracy {peer.score(X_test, y_test):.3f}"
)

# %%
# With a grid
# -----------
# Any parameter of the estimator, and a picture of it:

C, p = [0.1, 1, 10, 100], [1, 1.33, 2, 4, 8]
cells = MKLSearchCV(MKLClassifier(), {"C": C, "p": p}).fit(X_train, y_train)
scores = cells.cv_results_["mean_test_score"].reshape(len(C), len(p))

figure, ax = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
image = ax.imshow(scores, cmap="Blues")
ax.set(
    xticks=range(len(p)),
    xticklabels=p,
    yticks=range(len(C)),
    yticklabels=C,
    xlabel="p",
    ylabel="C",
    title="accuracy in cross-validation",
)
middle = (scores.max() + scores.min()) / 2
for (row, column), score in np.ndenumerate(scores):
    ax.text(
        column,
        row,
        f"{score:.3f}",
        ha="center",
        va="center",
        color="white" if score > middle else "black",
    )

# %%
# Is learning weights worth it here?
# ----------------------------------
# ``baselines`` scores a model beside simpler answers on the same folds. Where the plain average is as good, say so and take it.

found = baselines(MKLClassifier(C=10), X_train, y_train)
for name, score in found.items():
    print(f"{name:22} {np.mean(score):.3f}")
