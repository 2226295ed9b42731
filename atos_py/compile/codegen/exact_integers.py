"""Operators on integers as Python has them, where Numba's go through float64, lose a sign, or depend on the machine.

Numba has no integer type for a uint64 beside an int64, so it divides and joins the two as float64, which holds 53 bits. Here a
uint64 with a literal of at least 0, or with a bool, is uint64. With a signed variable it is refused. A shift by the width or
more has shifted everything out.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.core.typing.templates import signature
from numba.extending import lower_builtin

from .lower_checks import fail, in_checked_code, is_user_code
from .numba_patches import current_code, patch_unification
from .operator_rules import CASTS, RefusedNumbersError, has_uint64, in_uint64, is_signed, is_whole, named, rule
from .types import I64

_SYMBOLS = {
    (operator.add, operator.iadd): "+",
    (operator.sub, operator.isub): "-",
    (operator.mul, operator.imul): "*",
    (operator.floordiv, operator.ifloordiv): "//",
    (operator.mod, operator.imod): "%",
    (operator.or_, operator.ior): "|",
    (operator.xor, operator.ixor): "^",
}


def _in_int64(left: types.Type, right: types.Type) -> bool:
    """Whether integers, of which none is uint64, are computed with as int64: one of them is signed."""
    return is_whole(left) and is_whole(right) and any(is_signed(types.unliteral(kind)) for kind in (left, right))


def _make_arithmetic(symbol: str) -> Callable[..., Any]:
    def arithmetic(left: types.Type, right: types.Type) -> Any:
        if in_uint64(symbol + " of", left, right):
            return signature(types.uint64, types.uint64, types.uint64)
        return signature(types.int64, types.int64, types.int64) if _in_int64(left, right) else None

    return arithmetic


for _functions, _symbol in _SYMBOLS.items():
    rule(*_functions)(_make_arithmetic(_symbol))


@rule(operator.and_, operator.iand)
def _and(left: types.Type, right: types.Type) -> Any:
    # The bits beyond 64 of a uint64 are 0, so those of the other do not count.
    if is_whole(left) and is_whole(right) and has_uint64(left, right):
        return signature(types.uint64, types.uint64, types.uint64)
    return signature(types.int64, types.int64, types.int64) if _in_int64(left, right) else None


@rule(divmod)
def _divmod(left: types.Type, right: types.Type) -> Any:
    pair = types.UniTuple(types.uint64, 2)
    if in_uint64("divmod of", left, right, result=pair):
        return signature(pair, types.uint64, types.uint64)
    return None


@rule(range)
def _range(*args: types.Type) -> Any:
    state = types.unsigned_range_state64_type
    if args and in_uint64("range of", *args, result=state):
        return signature(state, *[types.uint64] * len(args))
    return None


def _make_choice(function: Any, symbol: str) -> None:
    def chosen(*args: Any) -> None:
        """Stands for the least or the greatest of numbers of uint64."""

    @rule(function)
    def choice(*args: types.Type) -> Any:
        if len(args) < 2 or not in_uint64(f"{function.__name__} of", *args):
            return None
        return signature(types.uint64, *[types.uint64] * len(args)), chosen

    @lower_builtin(chosen, types.VarArg(types.uint64))
    def lower_chosen(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        first, *others = args
        for other in others:
            first = builder.select(builder.icmp_unsigned(symbol, other, first), other, first)
        return first


_make_choice(min, "<")
_make_choice(max, ">")


@rule(operator.neg, abs)
def _widened(value: types.Type) -> Any:
    """Widen before the sign is changed: the smallest int8 has no negative among them."""
    number = types.unliteral(value)
    return signature(types.int64, types.int64) if isinstance(number, types.Integer) and number.signed else None


def _make_shift(shift: Callable[..., Any]) -> Callable[..., Any]:
    def typer(value: types.Type, count: types.Type) -> Any:
        if not is_whole(value) or not is_whole(count):
            return None
        wide = types.uint64 if isinstance(types.unliteral(value), types.Integer) and not value.signed else types.int64
        if isinstance(count, types.Literal) and count.literal_value < 0:
            raise RefusedNumbersError(f"a shift by {count.literal_value}, which is negative; shift the other way", wide)
        return signature(wide, wide, types.int64 if is_signed(count) else types.uint64), shift

    return typer


def _shift_left(value: Any, count: Any) -> None:
    """Stands for a shift by any number of bits."""


def _shift_right(value: Any, count: Any) -> None:
    """Stands for a shift by any number of bits."""


rule(operator.lshift, operator.ilshift, np.left_shift)(_make_shift(_shift_left))
rule(operator.rshift, operator.irshift, np.right_shift)(_make_shift(_shift_right))


def _is_inside(builder: ir.IRBuilder, count: ir.Value, kind: types.Type) -> ir.Value:
    """Whether a count is below the width. With checks, a negative one is a failure, as Python's ValueError is."""
    if kind.signed and in_checked_code():
        with builder.if_then(builder.icmp_signed("<", count, ir.Constant(I64, 0)), likely=False):
            fail(builder, "raise", "ValueError: negative shift count")
    return builder.icmp_unsigned("<", count, ir.Constant(I64, 64))


@lower_builtin(_shift_left, types.Integer, types.Integer)
def _lower_shift_left(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    inside = _is_inside(builder, args[1], sig.args[1])
    return builder.select(inside, builder.shl(*args), ir.Constant(I64, 0))


@lower_builtin(_shift_right, types.Integer, types.Integer)
def _lower_shift_right(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    inside = _is_inside(builder, args[1], sig.args[1])
    if not sig.return_type.signed:
        return builder.select(inside, builder.lshr(*args), ir.Constant(I64, 0))
    return builder.ashr(args[0], builder.select(inside, args[1], ir.Constant(I64, 63)))


def _unify(context: Any, first: types.Type, second: types.Type) -> types.Type | None:
    """Return the type of a variable that has two, where one is uint64; None for Numba's rules."""
    if not is_user_code(current_code(context)) or not has_uint64(first, second):
        return None
    if not isinstance(second, types.Integer) or not isinstance(first, types.Integer):
        return None
    if is_signed(first) or is_signed(second):
        kinds = f"{named(first)} on one path and {named(second)} on another"
        raise TypingError(f"«a variable or a result that is {kinds} has no integer type: {CASTS}»")
    return types.uint64


patch_unification(types.Number, _unify)
