"""The warning that an old name gives in its last release."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

__all__ = ["warn_deprecated"]

_PACKAGE = str(Path(__file__).parents[1]) + "/"


def warn_deprecated(old: str, new: str) -> None:
    """Give a `DeprecationWarning` that says what to write, at the line outside of the package that has called into it."""
    frame, level = sys._getframe(), 1
    while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    message = f"write {new} in place of {old}; this release is the last one that takes the old form"
    warnings.warn(message, DeprecationWarning, stacklevel=level)
