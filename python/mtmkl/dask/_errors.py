"""What can go wrong with a cluster."""

from __future__ import annotations


class ClusterError(RuntimeError):
    """The cluster cannot do the work: it has no workers, its scheduler is gone, data is lost, or workers die of a batch again and again."""
