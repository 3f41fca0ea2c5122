"""The program ``mtmkl``, as it is without Python."""

from __future__ import annotations

import signal
import sys

from . import _core


def main() -> int:
    """Runs the program with the arguments of this process.

    Returns
    -------
    int
        Its exit code: 0 converged, 1 not converged, 2 error.
    """
    # Python's handler would only note Ctrl-C down while the core works.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.program(["mtmkl", *sys.argv[1:]])
