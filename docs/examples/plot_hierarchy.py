"""
A tree of tasks
===============

Sometimes it is known which tasks are alike: shops in towns, towns in regions. A hierarchy gives every group of the tree weights of its own, which
its tasks add to what all share and to their own, and says at which level the tasks agree.
"""

# %%
# Eight shops in two regions
# --------------------------
# What sells depends on the weather in the south and on the calendar in the north; one shop in the north is by a beach and is like the south.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from mtmkl import Hierarchy, MKLRegressor

rng = np.random.default_rng(5)
weather, calendar, prices = (
    ["sun", "rain", "wind"],
    ["weekday", "holiday", "payday"],
    ["ours", "theirs", "petrol"],
)
tables = []
for number in range(8):
    region = "south" if number < 4 else "north"
    values = rng.normal(size=(70, 9))
    sunny = np.tanh(values[:, 0] - values[:, 1] ** 2 / 2)
    dated = values[:, 3] * values[:, 4]
    signal = sunny if region == "south" else dated
    if number == 7:
        signal = dated + sunny
    table = pd.DataFrame(values, columns=weather + calendar + prices)
    tables.append(
        table.assign(
            shop=f"shop {number}", sold=signal + values[:, 6] + 0.3 * rng.normal(size=70)
        )
    )
sales = pd.concat(tables, ignore_index=True)
X, y = sales.drop(columns="sold"), sales["sold"]

tree = {
    "south": [f"shop {number}" for number in range(4)],
    "north": [f"shop {number}" for number in range(4, 8)],
}
kernels = [
    ("weather", "rbf:sigma=median*0.5", weather),
    ("calendar", "rbf:sigma=median*0.5", calendar),
    ("prices", "linear", prices),
]
model = MKLRegressor(
    kernels, task="shop", sharing=Hierarchy(tree, p=1, q=1.5), alpha="auto"
).fit(X, y)

# %%
# Weights of every group
# ----------------------
# θ of a shop is the sum along its way through the tree: everybody, its region, its own.

levels = model.group_weights_
rows = [("everybody", model.common_weights_)]
rows += [(group, weights) for level in levels.values() for group, weights in level.items()]
rows += list(zip(model.tasks_, model.specific_weights_, strict=True))
figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
image = ax.imshow([weights for _, weights in rows], cmap="Blues", aspect="auto", vmin=0)
ax.set(
    xticks=range(3),
    xticklabels=model.kernel_names_,
    yticks=range(len(rows)),
    yticklabels=[name for name, _ in rows],
)
for row, (_, weights) in enumerate(rows):
    for column, weight in enumerate(weights):
        ax.text(
            column,
            row,
            "·" if weight < 5e-3 else f"{weight:.2f}",
            ha="center",
            va="center",
            color="black" if weight < 0.6 else "white",
        )
ax.set_title("weights by group of shops")
print({level: list(groups) for level, groups in levels.items()})

# %%
# Read it from the top: what all use (prices), what a region uses, and the one shop that goes its own way.

total = pd.DataFrame(model.kernel_weights_, index=model.tasks_, columns=model.kernel_names_)
print(total.round(2))
plt.show()
