"""Comparisons by value, of integers of two types and of an integer and a float, in the functions of tasks.

Numba compares a uint64 with an int64, and either with a float, as float64, which holds 53 bits.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import signature
from numba.extending import lower_builtin

from .operator_rules import has_uint64, is_signed, is_whole, rule
from .types import I64

_LARGEST_EXACT = 2**53  # float64 has all integers up to here
_COMPARISONS = {
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
}


def _make_comparison() -> tuple[Callable[..., Any], Callable[..., Any]]:
    def compare(left: Any, right: Any) -> None:
        """Stands for a comparison of numbers of two types, by value."""

    def comparison(left: types.Type, right: types.Type) -> Any:
        kinds = _exact_kinds(left, right)
        if kinds is None:
            return None
        sig = signature(types.boolean, *kinds)
        return (sig, compare) if kinds[0] != kinds[1] else sig

    return compare, comparison


def _exact_kinds(left: types.Type, right: types.Type) -> tuple[types.Type, types.Type] | None:
    """Return the types that two numbers are compared in, or None if Numba's comparison is exact."""
    if is_whole(left) and is_whole(right):
        if not has_uint64(left, right) or (isinstance(left, types.Literal) and isinstance(right, types.Literal)):
            return None
        return _wide(left), _wide(right)
    if isinstance(left, types.Float) and _needs_more_than_float64(right):
        return types.float64, types.unliteral(right)
    if isinstance(right, types.Float) and _needs_more_than_float64(left):
        return types.unliteral(left), types.float64
    return None


def _wide(kind: types.Type) -> types.Type:
    return types.int64 if is_signed(kind) else types.uint64


def _needs_more_than_float64(kind: types.Type) -> bool:
    if isinstance(kind, types.IntegerLiteral):
        return bool(abs(kind.literal_value) > _LARGEST_EXACT)
    return isinstance(kind, types.Integer) and bool(kind.bitwidth > 32)


def _compare_integers(builder: ir.IRBuilder, symbol: str, left: ir.Value, right: ir.Value, left_signed: bool) -> ir.Value:
    """Compare a signed integer with an unsigned one: what is negative is as far from any unsigned one as 0 is from 1."""
    signed = left if left_signed else right
    is_negative = builder.icmp_signed("<", signed, ir.Constant(I64, 0))
    order = builder.icmp_signed(symbol, *(ir.Constant(I64, number) for number in ((0, 1) if left_signed else (1, 0))))
    return builder.select(is_negative, order, builder.icmp_unsigned(symbol, left, right))


def _lower_of_integers(symbol: str) -> Callable[..., ir.Value]:
    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        return _compare_integers(builder, symbol, args[0], args[1], sig.args[0].signed)

    return lower


def _lower_with_float(symbol: str) -> Callable[..., ir.Value]:
    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        """Compare rounded; only where that is equal, the integers tell. Rounding never turns an order round."""
        place = 0 if isinstance(sig.args[0], types.Integer) else 1
        whole = sig.args[place]
        rounded = [context.cast(builder, arg, kind, types.float64) for arg, kind in zip(args, sig.args, strict=True)]
        compare = builder.fcmp_unordered if symbol == "!=" else builder.fcmp_ordered
        by_float = compare(symbol, *rounded)
        # Rounded up beyond the type, an integer is less than the float that it equals then.
        number = args[1 - place]
        beyond = ir.Constant(number.type, 2.0**63 if whole.signed else 2.0**64)
        is_beyond = builder.fcmp_ordered(">=", number, beyond)
        number = builder.select(is_beyond, ir.Constant(number.type, 0.0), number)
        converted = builder.fptosi(number, I64) if whole.signed else builder.fptoui(number, I64)
        integers = [args[0], converted] if place == 0 else [converted, args[1]]
        by_integers = (builder.icmp_signed if whole.signed else builder.icmp_unsigned)(symbol, *integers)
        less = ir.Constant(ir.IntType(1), _holds(symbol, -1 if place == 0 else 1))
        by_integers = builder.select(is_beyond, less, by_integers)
        return builder.select(builder.fcmp_ordered("==", *rounded), by_integers, by_float)

    return lower


def _holds(symbol: str, order: int) -> bool:
    """Whether a comparison with 0 holds for a number."""
    return bool(
        {"==": order == 0, "!=": order != 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[symbol]
    )


for _function, _symbol in _COMPARISONS.items():
    _compare, _typer = _make_comparison()
    rule(_function)(_typer)
    for _args in ((types.int64, types.uint64), (types.uint64, types.int64)):
        lower_builtin(_compare, *_args)(_lower_of_integers(_symbol))
    for _args in ((types.Integer, types.Float), (types.Float, types.Integer)):
        lower_builtin(_compare, *_args)(_lower_with_float(_symbol))
