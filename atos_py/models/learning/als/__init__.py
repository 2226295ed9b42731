"""Factorisation of ratings by alternating least squares."""

from .api import ALSResult, als
from .verify import verify_als

__all__ = ["ALSResult", "als", "verify_als"]
