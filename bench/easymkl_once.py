"""From rows to a model with what users have: rbf_kernel for each width, then MKLpy's EasyMKL with an SVC. Prints JSON.

    python easymkl_once.py ROWS LABELS SAMPLES THREADS GAMMA...

Runs in an environment of its own, so it shares nothing with the other files.
"""

import json
import resource
import sys
import time

import numpy as np
import torch
from MKLpy.algorithms import EasyMKL
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits


def main():
    samples, threads = int(sys.argv[3]), int(sys.argv[4])
    gammas = [float(gamma) for gamma in sys.argv[5:]]
    X, y = np.fromfile(sys.argv[1]).reshape(samples, -1), np.fromfile(sys.argv[2])
    torch.set_num_threads(threads)
    with threadpool_limits(threads):
        started = time.perf_counter()
        grams = [torch.from_numpy(rbf_kernel(X, gamma=gamma)) for gamma in gammas]
        kernels = time.perf_counter() - started
        EasyMKL(lam=0.1, learner=SVC(C=1.0)).fit(grams, y)
        whole = time.perf_counter() - started
    # Kibibytes on Linux.
    print(json.dumps({"whole": whole, "kernels": kernels, "peak": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))


if __name__ == "__main__":
    main()
