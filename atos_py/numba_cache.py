"""Numba's own cache, for the kernels that run on the host: kept in our cache directory, where a removed package leaves nothing.

Numba would keep them beside the source, in site-packages. The locators are no public part of it, so whoever imports this module
goes on without a cache if they are not there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import caching

from .cache import cache_directory, ours_alone

__all__ = ["KernelCache"]


class _Locator(caching._SourceFileBackedLocatorMixin, caching._CacheLocator):  # type: ignore[misc]
    def __init__(self, kernel: Callable[..., Any], file: str) -> None:
        self._py_file, self._lineno = file, kernel.__code__.co_firstlineno
        self._folder = cache_directory() / "numba" / self.get_suitable_cache_subpath(file)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def ensure_cache_path(self) -> None:
        """Make the folder; Numba runs whatever it finds in it, so nobody else may write to it or to those above."""
        self._folder.parents[1].mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (self._folder.parents[1], self._folder.parent, self._folder):
            folder.mkdir(mode=0o700, exist_ok=True)
            if not ours_alone(folder.stat()):
                raise PermissionError(0, f"others can write to {folder}")
        super().ensure_cache_path()


class _Entries(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """The compiled versions of one kernel; raises RuntimeError where there is no place to keep them."""

    _impl_class = _Entries
