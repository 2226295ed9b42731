"""Powers in the functions of tasks: to a negative one an integer is a float, and one by a signed variable is refused.

Numba has an integer there, which is 0, and leaves the task where zero is raised to a negative power.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import signature
from numba.extending import lower_builtin

from .lower_checks import fail, in_checked_code
from .operator_rules import RefusedNumbersError, is_signed, is_whole, rule


@rule(operator.pow, operator.ipow, pow, np.power)
def _power(base: types.Type, exponent: types.Type) -> Any:
    if not is_whole(exponent):
        return None
    number = types.unliteral(base)
    if isinstance(number, types.Float):
        if isinstance(exponent, types.Literal):
            return signature(number, number, exponent), _known_power
        return signature(number, number, types.int64 if is_signed(exponent) else types.uint64), _float_power
    if not is_whole(number):
        return None
    wide = types.uint64 if number == types.uint64 else types.int64
    if isinstance(exponent, types.Literal):
        kind = types.float64 if exponent.literal_value < 0 else wide
        return signature(kind, kind, exponent), _known_power
    if is_signed(exponent):
        message = (
            f"an integer to the power of an {exponent}, which is a fraction where that is negative: write float(x) ** n, or"
            " x ** np.uint64(n) for integers, of which debug=True checks that n is not negative"
        )
        raise RefusedNumbersError(message, wide)
    return signature(wide, wide, types.uint64), _whole_power


def _known_power(base: Any, exponent: Any) -> None:
    """Stands for a power whose exponent is known when the task is compiled."""


def _whole_power(base: Any, exponent: Any) -> None:
    """Stands for an integer to the power of an unsigned integer."""


def _float_power(base: Any, exponent: Any) -> None:
    """Stands for a float to the power of an integer."""


@lower_builtin(_known_power, types.Integer, types.IntegerLiteral)
@lower_builtin(_known_power, types.Float, types.IntegerLiteral)
def _lower_known_power(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    value, exponent = args[0], sig.args[1].literal_value
    if isinstance(sig.return_type, types.Float) and abs(exponent) > 64:
        wide = signature(sig.return_type, sig.args[0], types.float64)
        return _lower_float_power(context, builder, wide, (value, context.get_constant(types.float64, float(exponent))))
    multiply = builder.mul if isinstance(sig.return_type, types.Integer) else builder.fmul
    result, left = None, abs(exponent)
    while left:
        if left & 1:
            result = value if result is None else multiply(result, value)
        left >>= 1
        value = multiply(value, value) if left else value
    one = ir.Constant(value.type, 1)
    if result is None:
        return one
    if exponent > 0:
        return result
    _check_base(builder, args[0], cgutils.true_bit)
    return builder.fdiv(one, result)


def _check_base(builder: ir.IRBuilder, base: ir.Value, is_negative: ir.Value) -> None:
    """With checks, fail if zero is raised to a negative power."""
    if in_checked_code():
        is_zero = builder.fcmp_ordered("==", base, ir.Constant(base.type, 0))
        with builder.if_then(builder.and_(is_zero, is_negative), likely=False):
            fail(builder, "division", "zero to a negative power")


@lower_builtin(_whole_power, types.Integer, types.uint64)
def _lower_whole_power(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    one = sig.return_type(1)

    def power(base, exponent):  # type: ignore[no-untyped-def]
        result = one
        while exponent != 0:
            if exponent & 1:
                result *= base
            exponent >>= 1
            base *= base
        return result

    return context.compile_internal(builder, power, signature(sig.return_type, *sig.args), args)


@lower_builtin(_float_power, types.Float, types.Integer)
def _lower_float_power(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    # In float64 whatever the base is, since of a large exponent float32 does not know whether it is odd.
    base, exponent = (context.cast(builder, arg, kind, types.float64) for arg, kind in zip(args, sig.args, strict=True))
    _check_base(builder, base, builder.fcmp_ordered("<", exponent, ir.Constant(exponent.type, 0)))
    wide = signature(types.float64, types.float64, types.float64)
    power = context.get_function(operator.pow, wide)(builder, [base, exponent])
    return context.cast(builder, power, types.float64, sig.return_type)
