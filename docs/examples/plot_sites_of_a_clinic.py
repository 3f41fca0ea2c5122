"""
Sites of a clinic: what is shared, and what is a site's own
===========================================================

Six sites ask the same question of their patients, and each has few. Five see the disease in blood values; the sixth has another
population, where it shows in the images. With PSCS (partially shared common space) each site's weights are a part that all share plus
a part of its own, θᵗ = ζ + γᵗ, and both can be read off.
"""

# %%
# Made data, so that the truth is known
# -------------------------------------

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold, cross_val_score

from mtmkl import MKLClassifier, plot_weights

rng = np.random.default_rng(7)
sites = ["Oslo", "Bergen", "Tromsø", "Bodø", "Molde", "Vadsø"]
blood, images = ["iron", "sugar", "salts"], ["size", "shade", "edge"]
tables = []
for site in sites:
    values = rng.normal(size=(60, 6))
    signal = values[:, 3] * values[:, 4] if site == "Vadsø" else values[:, 0] * values[:, 1]
    table = pd.DataFrame(values, columns=blood + images).assign(site=site)
    tables.append(
        table.assign(sick=np.where(signal + 0.2 * rng.normal(size=60) > 0, "yes", "no"))
    )
patients = pd.concat(tables, ignore_index=True)
X, y = patients.drop(columns="sick"), patients["sick"]
print(patients.groupby("site").size().to_dict())

# %%
# One model for all sites
# -----------------------
# The column ``site`` says which task a row belongs to. Two views with a kernel each:

kernels = [("blood", "poly:degree=2", blood), ("images", "poly:degree=2", images)]
model = MKLClassifier(kernels, task="site", sharing="pscs", p=1, q=1, C=1).fit(X, y)
plot_weights(model)

# %%
# The row *shared* is ζ. Vadsø stands out: the images matter there, and nowhere else.

print(
    pd.DataFrame(
        model.specific_weights_, index=model.tasks_, columns=model.kernel_names_
    ).round(2)
)

# %%
# Is it worth it?
# ---------------
# One set of weights for all sites cannot say that Vadsø is different; weights of each site alone are learned from sixty rows. Folds keep
# both classes of each site.

folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, X["site"] + y))
for sharing in ("uniform", "common", "independent", "pscs"):
    scores = cross_val_score(
        MKLClassifier(kernels, task="site", sharing=sharing, p=1, C=1), X, y, cv=folds
    )
    print(f"{sharing:12} {scores.mean():.3f}")

# %%
# A patient at a site that was never seen
# ---------------------------------------
# It is refused unless somebody says what is meant: ``new_tasks="common"`` predicts from what the sites share.

new = pd.DataFrame(rng.normal(size=(3, 6)), columns=blood + images).assign(site="Hamar")
try:
    model.predict(new)
except ValueError as error:
    print(error)
print(model.set_params(new_tasks="common").predict(new))

plt.show()
