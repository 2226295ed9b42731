"""Rules for the types of operators in the functions of tasks, which come before Numba's own.

What the user compiles with Numba otherwise, and Numba's own functions, keep Numba's rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

from .lower_checks import is_user_code
from .numba_patches import current_code, current_lowering

__all__ = ["CASTS", "RefusedNumbersError", "has_uint64", "in_uint64", "is_signed", "is_whole", "named", "rule"]

CASTS = (
    "write np.uint64(x) for the signed one if it is never negative, or np.int64(x) for the uint64 if it stays below 2**63;"
    " debug=True checks both"
)


class RefusedNumbersError(Exception):
    """Numbers that have no type together; `result` is one to go on with."""

    def __init__(self, message: str, result: types.Type) -> None:
        super().__init__(message)
        self.result = result


class _Rule(AbstractTemplate):
    """A rule for user code: its `typer` gives the signature and the function that is lowered, or None for Numba's rules.

    What it refuses gets a signature too, and is an error when it is lowered: types may be known in part before, and after an
    error here Numba would try its own rules.
    """

    prefer_literal = True
    typer: Callable[..., Any]
    refused: Callable[..., Any]
    _implementation: Any = None
    _was_asked = False

    def generic(self, args: Any, kws: Any) -> Any:
        # Numba asks a second time without the values of literals, of which the rule has been told by then.
        if kws or self._was_asked or not is_user_code(current_code(self.context)):
            return None
        self._was_asked = True
        try:
            found = self.typer(*args)
        except RefusedNumbersError as error:
            found = signature(error.result, *args), type(self).refused
        if isinstance(found, tuple):
            found, self._implementation = found
        return found

    def get_impl_key(self, sig: Any) -> Any:
        return self._implementation or super().get_impl_key(sig)


def rule(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Have a function say what signature calls of other functions have in user code, before Numba does."""

    def register(typer: Callable[..., Any]) -> Callable[..., Any]:
        def refused(*args: Any) -> None:
            """Stands for a call that is refused."""

        @lower_builtin(refused, types.VarArg(types.Any))
        def lower_refused(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            try:
                typer(*sig.args)
            except RefusedNumbersError as error:
                loc = current_lowering().loc
                raise RefusedNumbersError(f'«{error}»\nFile "{loc.filename}", line {loc.line}', error.result) from None

        for function in functions:
            for target in ("cpu", "cuda"):  # rules of one target come before those of all
                members = {"typer": staticmethod(typer), "refused": staticmethod(refused), "metadata": {"target": target}}
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


def named(kind: types.Type) -> str:
    """Return a type, or a number that is known, with its article."""
    if isinstance(kind, types.IntegerLiteral):
        return str(kind.literal_value)
    return f"{'a' if str(kind).startswith('uint') else 'an'} {kind}"


def in_uint64(what: str, *kinds: types.Type, result: types.Type = types.uint64) -> bool:
    """Whether integers are a uint64 and others that fit it; refuse a uint64 with a signed one."""
    if not all(map(is_whole, kinds)) or not has_uint64(*kinds):
        return False
    if any(map(is_signed, kinds)):
        names = " and ".join(map(named, kinds))
        raise RefusedNumbersError(f"{what} {names} has no integer type for its result: {CASTS}", result)
    return True
