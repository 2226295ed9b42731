"""Functions of the math module on integers, in the functions of tasks: Numba's go through float64, overflow, or lose a sign."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import signature
from numba.extending import lower_builtin
from numba.np.numpy_support import as_dtype, from_dtype

from .lower_checks import cast, fail, in_checked_code
from .operator_rules import RefusedNumbersError, in_uint64, is_signed, is_whole, rule
from .types import on_cuda


def _as_is(value: Any) -> None:
    """Stands for an integer that is rounded."""


@lower_builtin(_as_is, types.Integer)
def _lower_as_is(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    return args[0]


def _make_rounding(function: Any, intrinsic: str | None) -> None:
    def rounded(value: Any) -> None:
        """Stands for a float that is rounded to an integer: for GPUs, Numba leaves most of these floats."""

    @rule(function)
    def rounding(value: types.Type, *digits: types.Type) -> Any:
        if digits:
            message = (
                "round(x, n) rounds the decimal digits of x, which tasks do not have: write round(x * 10**n) / 10**n, which may"
                " differ from it in the last bit, or round on the host"
            )
            raise RefusedNumbersError(message, types.unliteral(value))
        if isinstance(value, types.Integer):
            return signature(types.unliteral(value), types.unliteral(value)), _as_is
        return (signature(types.int64, value), rounded) if isinstance(value, types.Float) else None

    @lower_builtin(rounded, types.Float)
    def lower_rounded(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        kind = args[0].type
        if intrinsic is None:
            return cast(context, builder, args[0], sig.args[0], types.int64)
        name = f"llvm.{intrinsic}.{kind.intrinsic_name}"
        if intrinsic == "rint" and on_cuda(context):  # which NVVM does not have
            name = "__nv_rint" if sig.args[0] == types.float64 else "__nv_rintf"
        callee = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind]), name)
        # With checks, a number that int64 does not hold is a failure.
        return cast(context, builder, builder.call(callee, args), sig.args[0], types.int64)


for _function, _intrinsic in ((round, "rint"), (math.floor, "floor"), (math.ceil, "ceil"), (math.trunc, None)):
    _make_rounding(_function, _intrinsic)


def _cut(value: Any) -> None:
    """Stands for a float that is cut off to int64, which with checks has to hold it."""


@rule(int)
def _int(*args: types.Type) -> Any:
    return (signature(types.int64, *args), _cut) if len(args) == 1 and isinstance(args[0], types.Float) else None


@lower_builtin(_cut, types.Float)
def _lower_cut(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    return cast(context, builder, args[0], sig.args[0], types.int64)


@rule(math.hypot)
def _hypot(x: types.Type, y: types.Type) -> Any:
    return signature(types.float64, types.float64, types.float64) if is_whole(x) and is_whole(y) else None


@rule(math.pow)
def _pow(x: types.Type, y: types.Type) -> Any:
    """Take the power of floats: of an integer, Numba's leaves the task where that is the smallest one."""
    if not is_whole(y):
        return None
    narrow = x == types.float32 and (isinstance(y, types.Boolean) or types.unliteral(y).bitwidth < 32)
    kind = types.float32 if narrow else types.float64
    return signature(kind, kind, kind)


def _make_extreme(function: Any, symbol: str) -> None:
    def extreme(x: Any, y: Any) -> None:
        """Stands for the second of two floats if it is beyond the first: for GPUs, Numba leaves NaN out."""

    @rule(function)
    def of_floats(x: types.Type, y: types.Type, *others: types.Type) -> Any:
        if others or not isinstance(x, types.Float) or not isinstance(y, types.Float):
            return None
        kind = max(x, y)
        return signature(kind, kind, kind), extreme

    @lower_builtin(extreme, types.Float, types.Float)
    def lower_extreme(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        first, second = args
        return builder.select(builder.fcmp_ordered(symbol, second, first), second, first)


_make_extreme(max, ">")
_make_extreme(min, "<")


def _gcd(x: Any, y: Any) -> None:
    """Stands for the greatest common divisor, which is not negative."""


@rule(math.gcd)
def _greatest_divisor(x: types.Type, y: types.Type) -> Any:
    if not is_whole(x) or not is_whole(y):
        return None
    kind = types.uint64 if in_uint64("gcd of", x, y) else types.int64
    return signature(kind, kind, kind), _gcd


@lower_builtin(_gcd, types.Integer, types.Integer)
def _lower_gcd(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    def gcd(x, y):  # type: ignore[no-untyped-def]
        while y != 0:
            x, y = y, x % y
        return abs(x)

    return context.compile_internal(builder, gcd, sig, args)


# NumPy's functions are the operators here: Numba's stop the process where the smallest integer is divided by -1.


def _make_division(function: Any, operation: Any) -> None:
    @rule(function)
    def division(x: types.Type, y: types.Type) -> Any:
        if not is_whole(x) or not is_whole(y):
            return None
        kind = types.uint64 if in_uint64(f"{function.__name__} of", x, y) else types.int64
        return signature(kind, kind, kind), operation


_COMPARISONS_OF_NUMPY = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_OF_NUMPY = (
    *("add", "subtract", "multiply", "true_divide", "floor_divide", "remainder", "fmod", "power", "hypot", "arctan2"),
    *("minimum", "maximum", "fmin", "fmax"),
    *_COMPARISONS_OF_NUMPY,
)


def _make_promotion(name: str) -> None:
    @rule(getattr(np, name))
    def promoted(x: types.Type, y: types.Type) -> Any:
        """Compute in the type that NumPy takes for a float32 and an int64, which is float64 and not float32."""
        numbers = types.unliteral(x), types.unliteral(y)
        if not any(isinstance(each, types.Float) for each in numbers) or not any(map(is_whole, numbers)):
            return None
        dtypes = (np.dtype(np.bool_) if isinstance(each, types.Boolean) else as_dtype(each) for each in numbers)
        kind = from_dtype(np.promote_types(*dtypes))
        return signature(types.boolean if name in _COMPARISONS_OF_NUMPY else kind, kind, kind)


for _name in _OF_NUMPY:
    _make_promotion(_name)


@rule(np.true_divide)
def _true_divide(x: types.Type, y: types.Type) -> Any:
    return signature(types.float64, types.float64, types.float64) if is_whole(x) and is_whole(y) else None


def _fmod(x: Any, y: Any) -> None:
    """Stands for a remainder that has the sign of the dividend."""


@lower_builtin(_fmod, types.Integer, types.Integer)
def _lower_fmod(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    value, divisor = args
    zero, one, minus_one = (ir.Constant(value.type, number) for number in (0, 1, -1))
    trivial = builder.icmp_unsigned("==", divisor, zero)
    if in_checked_code():
        with builder.if_then(trivial, likely=False):
            fail(builder, "division", "integer modulo by zero")
    if sig.return_type.signed:  # of -1 the remainder is 0, but the quotient of the smallest integer does not exist
        trivial = builder.or_(trivial, builder.icmp_signed("==", divisor, minus_one))
    divisor = builder.select(trivial, one, divisor)
    return (builder.srem if sig.return_type.signed else builder.urem)(value, divisor)


_make_division(np.floor_divide, operator.floordiv)
_make_division(np.remainder, operator.mod)
_make_division(np.fmod, _fmod)


def _sign(x: Any) -> None:
    """Stands for the sign of an integer."""


@rule(np.sign)
def _sign_of_integer(x: types.Type) -> Any:
    return (signature(types.int64, types.unliteral(x)), _sign) if isinstance(x, types.Integer) else None


@lower_builtin(_sign, types.Integer)
def _lower_sign(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    def sign(x):  # type: ignore[no-untyped-def]
        return 1 if x > 0 else 0 if x == 0 else -1

    return context.compile_internal(builder, sign, sig, args)


def _lcm(x: Any, y: Any) -> None:
    """Stands for the least common multiple, which is not negative."""


@rule(np.lcm, math.lcm)
def _least_multiple(x: types.Type, y: types.Type) -> Any:
    found = _greatest_divisor(x, y)
    return (found[0], _lcm) if found else None


@lower_builtin(_lcm, types.Integer, types.Integer)
def _lower_lcm(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    def lcm(x, y):  # type: ignore[no-untyped-def]
        divisor, rest = x, y
        while rest != 0:
            divisor, rest = rest, divisor % rest
        return abs(x // divisor * y) if divisor != 0 else divisor

    return context.compile_internal(builder, lcm, sig, args)


def _scaled(x: Any, exponent: Any) -> None:
    """Stands for a float times a power of two."""


_BEYOND = 4096  # times the smallest float64, this power of two is infinity


@rule(math.ldexp, np.ldexp)
def _ldexp(x: types.Type, exponent: types.Type) -> Any:
    if not is_whole(exponent) or not isinstance(x, (types.Float, types.Integer, types.Boolean)):
        return None
    kind = x if isinstance(x, types.Float) else types.float64
    return signature(kind, kind, types.int64 if is_signed(exponent) else types.uint64), _scaled


@lower_builtin(_scaled, types.Float, types.Integer)
def _lower_scaled(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    """Lower it with an exponent of 32 bits, which is what the function of C takes."""
    compare = builder.icmp_signed if sig.args[1].signed else builder.icmp_unsigned
    most, least = (ir.Constant(args[1].type, sign * _BEYOND) for sign in (1, -1))
    exponent = builder.select(compare(">", args[1], most), most, args[1])
    if sig.args[1].signed:
        exponent = builder.select(compare("<", exponent, least), least, exponent)
    narrow = signature(sig.return_type, sig.args[0], types.int32)
    exponent = context.cast(builder, exponent, sig.args[1], types.int32)
    return context.get_function(math.ldexp, narrow)(builder, [args[0], exponent])
