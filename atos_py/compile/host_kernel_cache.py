"""Compiled kernels that run on the host, kept among the entries of our cache and under their rules.

Numba's own cache trusts whatever it finds in its folder, and raises what goes wrong there. What it asks of a cache is no public
part of it, so whoever imports this module goes on without one if that fails.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from ..support.disk_cache import read_entry, write_entry
from .codegen.introspect import UnhashableError, fingerprint
from .codegen.numba_patches import start_numba
from .codegen.numba_private import host_features, load_result, save_result, start_runtime
from .toolchain import environment

__all__ = ["KernelCache"]


class KernelCache:
    """The compiled versions of one kernel, as its dispatcher asks for them."""

    cache_path = None  # what Numba's statistics show

    def __init__(self, kernel: Callable[..., Any]) -> None:
        self._kernel = kernel

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the code for a signature, or None if it has to be compiled."""
        name = self._name(signature, target.codegen())
        parts = read_entry(name) if name else None
        if parts is not None:
            start_runtime(target)
            with contextlib.suppress(Exception):  # whole and ours, and yet not what this Numba reads: replaced by new code
                return load_result(target, parts[0])
        start_numba(target)
        return None

    def save_overload(self, signature: Any, code: Any) -> None:
        """Keep the code for a signature."""
        name = self._name(signature, code.codegen)
        with contextlib.suppress(Exception):  # what cannot be kept is compiled again
            if name and not code.library.has_dynamic_globals:  # addresses in this process
                write_entry(name, [save_result(code)])

    def _name(self, signature: Any, codegen: Any) -> str | None:
        try:
            return fingerprint("host", self._kernel, tuple(map(str, signature)), host_features(codegen), environment())
        except UnhashableError:
            return None
