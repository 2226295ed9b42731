"""The warning that an old name gives in its last release."""

from __future__ import annotations

from .warn import warn_caller

__all__ = ["warn_deprecated"]


def warn_deprecated(old: str, new: str) -> None:
    """Give a `DeprecationWarning` that says what to write."""
    warn_caller(f"write {new} in place of {old}; this release is the last one that takes the old form", DeprecationWarning)
