"""
Anomalies: each machine has its own normal
==========================================

One-class machines learn what is normal from samples without labels. Three machine tools report vibration and temperature; what is normal
for one is alarming for another, so each is a task.
"""

# %%
# Normal operation of three tools
# -------------------------------

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from mtmkl import MKLSVDD, MKLOneClassSVM, plot_boundary

rng = np.random.default_rng(3)


def normal(tool, rows):
    """Readings of normal operation."""
    if tool == "lathe":
        values = rng.normal([1, 40], [0.2, 3], size=(rows, 2))
    elif tool == "mill":
        # Two regimes: idle and under load.
        values = np.where(
            rng.random((rows, 1)) < 0.5,
            rng.normal([0.5, 35], [0.1, 2], (rows, 2)),
            rng.normal([2, 60], [0.2, 3], (rows, 2)),
        )
    else:
        load = rng.random(rows)
        values = np.column_stack([0.5 + 2 * load, 30 + 40 * load**2]) + rng.normal(
            [0, 0], [0.1, 1.5], (rows, 2)
        )
    return pd.DataFrame(values, columns=["vibration", "temperature"]).assign(tool=tool)


X = pd.concat([normal(tool, 120) for tool in ("lathe", "mill", "press")], ignore_index=True)
model = MKLOneClassSVM("rbf:sigma=median*0.5", nu=0.05, task="tool").fit(X)

# %%
# ``nu`` is the share of samples that may be outside. The black line is the border of what is normal.

figure, axes = plt.subplots(
    1, 3, figsize=(10, 3.2), layout="constrained", sharex=True, sharey=True
)
for ax, (tool, rows) in zip(axes, X.groupby("tool"), strict=True):
    plot_boundary(model, rows, ax=ax)
    ax.set_title(tool)

# %%
# The same reading, three verdicts
# --------------------------------
# Signs are scikit-learn's: +1 is normal.

reading = pd.DataFrame({"vibration": [2.0], "temperature": [60.0]})
for tool in ("lathe", "mill", "press"):
    row = reading.assign(tool=tool)
    print(f"{tool:6} {model.predict(row)[0]:+d}   score {model.decision_function(row)[0]:+.3f}")

# %%
# How many faults are found
# -------------------------
# Faults as made here: readings anywhere in the range of all tools. SVDD, the smallest sphere in feature space, is the other machine of this
# kind.

faults = pd.DataFrame(
    rng.uniform([0, 25], [3, 75], (600, 2)), columns=["vibration", "temperature"]
)
faults["tool"] = rng.choice(["lathe", "mill", "press"], 600)
fresh = pd.concat([normal(tool, 200) for tool in ("lathe", "mill", "press")], ignore_index=True)
for detector in (model, MKLSVDD("rbf:sigma=median*0.5", nu=0.05, task="tool").fit(X)):
    found, alarms = (
        np.mean(detector.predict(faults) == -1),
        np.mean(detector.predict(fresh) == -1),
    )
    print(f"{type(detector).__name__:15} faults found {found:.0%}, false alarms {alarms:.0%}")
