"""Warnings at the line of a user's program that has called into the package."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

__all__ = ["warn_caller"]

_PACKAGE = str(Path(__file__).parents[1]) + "/"


def warn_caller(message: str, category: type[Warning]) -> None:
    """Give a warning at the line outside of the package that has called into it."""
    frame, level = sys._getframe(), 1
    while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
