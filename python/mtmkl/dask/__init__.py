"""Many tasks on many machines: the estimators of `mtmkl` on a Dask cluster (``pip install mtmkl[dask]``).

θ, one number for each task and kernel, goes to the workers; values, sensitivities and curvature come back. Samples and dual variables
stay where they are. A fitted estimator is an ordinary one: it pickles, saves and predicts without Dask; with ``keep="workers"`` its
machines stay on the workers, too.
"""

from ._errors import ClusterError
from ._estimators import MKLSVDD, MKLClassifier, MKLOneClassSVM, MKLRegressor
from ._search import MKLSearchCV

__all__ = ["MKLSVDD", "ClusterError", "MKLClassifier", "MKLOneClassSVM", "MKLRegressor", "MKLSearchCV"]
