"""Rules for the types of operators in the functions of tasks, which come before Numba's own.

What the user compiles with Numba otherwise, and Numba's own functions, keep Numba's rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from numba.core import types
from numba.core.typing.templates import AbstractTemplate, infer_global

from .lower_checks import is_user_code
from .numba_patches import current_code

__all__ = ["RefusedNumbersError", "has_uint64", "in_uint64", "is_signed", "is_whole", "refuse_mixed", "refuse_numbers", "rule"]

_CASTS = (
    "write np.uint64(x) for the signed one if it is never negative, or np.int64(x) for the uint64 if it stays below 2**63;"
    " debug=True checks both"
)


class RefusedNumbersError(Exception):
    """Numbers that have no type together. Not an error of Numba's, after which it would try its own rules."""


def refuse_numbers(message: str) -> NoReturn:
    raise RefusedNumbersError(f"«{message}»")


class _Rule(AbstractTemplate):
    """A rule for user code: its `typer` gives the signature and the function that is lowered, or None for Numba's rules."""

    prefer_literal = True
    typer: Callable[..., Any]

    def generic(self, args: Any, kws: Any) -> Any:
        self._implementation = None
        if kws or not is_user_code(current_code(self.context)):
            return None
        found = self.typer(*args)
        if isinstance(found, tuple):
            found, self._implementation = found
        return found

    def get_impl_key(self, sig: Any) -> Any:
        return self._implementation or super().get_impl_key(sig)


def rule(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Have a function say what signature calls of other functions have in user code, before Numba does."""

    def register(typer: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            for target in ("cpu", "cuda"):  # rules of one target come before those of all
                members = {"typer": staticmethod(typer), "metadata": {"target": target}}
                infer_global(function)(type(f"{typer.__name__}_{target}", (_Rule,), members))
        return typer

    return register


def is_signed(kind: types.Type) -> bool:
    """Whether an integer may be negative: one that is known, and is not, fits uint64."""
    if isinstance(kind, types.IntegerLiteral):
        return bool(kind.literal_value < 0)
    return isinstance(kind, types.Integer) and bool(kind.signed)


def is_whole(kind: types.Type) -> bool:
    return isinstance(kind, (types.Integer, types.Boolean))


def has_uint64(*kinds: types.Type) -> bool:
    return any(types.unliteral(kind) == types.uint64 for kind in kinds)


def refuse_mixed(what: str, *kinds: types.Type) -> NoReturn:
    names = " and ".join(f"a {kind.literal_value}" if isinstance(kind, types.Literal) else f"an {kind}" for kind in kinds)
    refuse_numbers(f"{what} {names} has no integer type for its result: {_CASTS}".replace("an uint", "a uint"))


def in_uint64(what: str, *kinds: types.Type) -> bool:
    """Whether integers are a uint64 and others that fit it; refuse a uint64 with a signed one."""
    if not all(map(is_whole, kinds)) or not has_uint64(*kinds):
        return False
    if any(map(is_signed, kinds)):
        refuse_mixed(what, *kinds)
    return True
