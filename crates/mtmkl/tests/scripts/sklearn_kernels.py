"""Values of scikit-learn's kernels on three points, as stored in crates/mtmkl/src/kernel/spec.rs.

Run with scikit-learn and NumPy installed: python sklearn_kernels.py
Each line: the specification and k(a, b), k(a, c), k(b, c), k(b, b), with all digits.
"""

import numpy as np
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics import pairwise

POINTS = np.array([[0.5, 0.0, 2.0, 1.25], [1.5, 0.0, 0.25, 3.0], [0.0, 0.75, 1.0, 0.5]])

KERNELS = {
    "linear": pairwise.linear_kernel,
    "poly": lambda x: pairwise.polynomial_kernel(x, degree=2, coef0=1, gamma=1),
    "poly:degree=3,coef0=0.5,gamma=0.2": lambda x: pairwise.polynomial_kernel(x, degree=3, coef0=0.5, gamma=0.2),
    "rbf": lambda x: pairwise.rbf_kernel(x, gamma=1),
    "rbf:gamma=0.3": lambda x: pairwise.rbf_kernel(x, gamma=0.3),
    "rbf:sigma=2": lambda x: Matern(length_scale=2, nu=np.inf)(x),
    "laplacian:gamma=0.3": lambda x: pairwise.laplacian_kernel(x, gamma=0.3),
    "sigmoid:gamma=0.1,coef0=-0.2": lambda x: pairwise.sigmoid_kernel(x, gamma=0.1, coef0=-0.2),
    "cosine": pairwise.cosine_similarity,
    "chi2:gamma=0.3": lambda x: pairwise.chi2_kernel(x, gamma=0.3),
    "matern32:length=2": lambda x: Matern(length_scale=2, nu=1.5)(x),
    "matern52:length=0.7": lambda x: Matern(length_scale=0.7, nu=2.5)(x),
}

if __name__ == "__main__":
    for spec, kernel in KERNELS.items():
        gram = kernel(POINTS)
        values = ", ".join(repr(float(gram[i, j])) for i, j in ((0, 1), (0, 2), (1, 2), (1, 1)))
        print(f'("{spec}", [{values}]),')
