"""What a person should know about the data and the settings."""

from __future__ import annotations


class DataWarning(UserWarning):
    """The data, or what is asked of them, look like a mistake: a kernel that tells nothing apart, numbers taken for classes."""
