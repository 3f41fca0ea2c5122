"""
Sharing predictors: a new site with little data
===============================================

Sharing *weights* means that tasks agree on which kernels matter; each still learns from its own rows. Where tasks are small and ask the same question,
sharing the *predictor* helps more: f = f_all + f_group + f_own, and how much is shared at which level is learned.
"""

# %%
# Twenty sites in two regions, few rows each
# ------------------------------------------

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from mtmkl import MKLRegressor

rng = np.random.default_rng(1)
tables = []
for number in range(20):
    slope = np.array([1.0, 0.5, 0.0, 0.0]) + 0.2 * rng.normal(size=4)
    slope[2] += 1.0 if number % 2 else -1.0
    values = rng.normal(size=(150, 4))
    table = pd.DataFrame(values, columns=["a", "b", "c", "d"])
    table = table.assign(
        site=f"s{number:02}",
        region="north" if number % 2 else "south",
        y=values @ slope + rng.normal(size=150),
    )
    tables.append(table.assign(row=np.arange(150)))
data = pd.concat(tables, ignore_index=True)
test = data[data["row"] >= 100]
columns = ["a", "b", "c", "d"]

# %%
# How good with how many rows?
# ----------------------------
# Three ways: one machine for all rows, machines of each site with shared weights, and shared predictors.

options = {"kernels": ["linear"], "alpha": "auto"}
sizes = [5, 10, 20, 40]
curves = {"one machine for all": [], "shared weights": [], "shared predictors": []}
for size in sizes:
    train = data[data["row"] < size]
    pooled = MKLRegressor(**options).fit(train[columns], train["y"])
    weights = MKLRegressor(task="site", **options).fit(train[[*columns, "site"]], train["y"])
    transfer = MKLRegressor(
        task="site", transfer=["all", "group", "own"], groups="region", **options
    )
    transfer.fit(train[[*columns, "site", "region"]], train["y"])
    curves["one machine for all"].append(pooled.score(test[columns], test["y"]))
    curves["shared weights"].append(weights.score(test[[*columns, "site"]], test["y"]))
    curves["shared predictors"].append(
        transfer.score(test[[*columns, "site", "region"]], test["y"])
    )
print(pd.DataFrame(curves, index=sizes).round(2))

# %%

figure, (left, right) = plt.subplots(
    1, 2, figsize=(9.5, 3.4), layout="constrained", width_ratios=[2, 1]
)
for name, values in curves.items():
    left.plot(sizes, values, marker="o", label=name)
left.set(
    xscale="log",
    xticks=sizes,
    xticklabels=sizes,
    xlabel="rows of each site",
    title="R² on new rows",
)
left.minorticks_off()
left.legend()
shares = transfer.variance_shares(train[[*columns, "site", "region"]])["overall"]
right.bar(list(shares), list(shares.values()), color="tab:green")
right.set(title="share of the predictions' variance", ylim=(0, 1))

# %%
# A site that was never seen
# --------------------------
# It is predicted from what all sites and its region share; nobody has to ask for it.

unseen = data[data["site"] == "s19"]
train = data[(data["site"] != "s19") & (data["row"] < 20)]
transfer.fit(train[[*columns, "site", "region"]], train["y"])
print(
    f"R² at a new site: {transfer.score(unseen[[*columns, 'site', 'region']], unseen['y']):.2f}"
)
