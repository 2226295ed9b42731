"""Access to what Numba does not document: each name is used here alone, so that another release of Numba breaks one place."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from numba import njit
from numba.core import codegen, compiler
from numba.core.runtime.nrt import rtsys

from .numba_patches import defer_scipy

__all__ = ["inlined_dispatcher", "start_numba", "start_runtime"]


def start_numba(context: Any) -> None:
    """Have a target's context register what it knows, which takes a while the first time."""
    with defer_scipy("numba.np.linalg"):
        context.refresh()


def start_runtime(context: Any) -> None:
    """Start the part of Numba that code which is loaded from a cache may call, and not what compiles."""
    rtsys.initialize(context)


class _Inlined(codegen.JITCodeLibrary):
    """Code that is only there to be linked into other code: neither optimised nor made machine code by itself.

    All of it is inlined where it is called, and optimised there. What is recursive is called by its address, and so has one.
    """

    _recursive = False

    @property
    def codegen(self) -> Any:
        return self._codegen if self._recursive else _NoEnvironments

    def _optimize_final_module(self) -> None:
        names = [variable.name for variable in self._final_module.global_variables]
        self._recursive = any(name.startswith(codegen.RuntimeLinker.PREFIX) for name in names)
        if self._recursive:
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        if self._recursive:
            super()._finalize_final_module()
        else:
            self._finalize_dynamic_globals()
            self._verify_declare_only_symbols()
            self._finalized = True


class _NoEnvironments:
    """Stand-in for the code generator of code that has no address: Numba notes there what Python objects a function uses."""

    @staticmethod
    def set_env(name: str, environment: Any) -> None: ...


class _Compiler(compiler.Compiler):
    """Numba's compiler, for functions that are inlined."""

    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        super().__init__(typing, target, _Inlined(target.codegen(), "inlined"), *rest)


def inlined_dispatcher(function: FunctionType, options: dict[str, Any]) -> Any:
    """Return a dispatcher for the CPU of a function that only other compiled code calls."""
    return njit(pipeline_class=_Compiler, **options)(function)
