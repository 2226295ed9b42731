"""Functions of the math module on integers, in the functions of tasks: Numba's go through float64, overflow, or lose a sign."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import signature
from numba.extending import lower_builtin

from .lower_checks import cast
from .operator_rules import in_uint64, is_whole, refuse_numbers, rule
from .types import on_cuda


def _as_is(value: Any) -> None:
    """Stands for an integer that is rounded."""


@lower_builtin(_as_is, types.Integer)
def _lower_as_is(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    return args[0]


def _make_rounding(function: Any, intrinsic: str) -> None:
    def rounded(value: Any) -> None:
        """Stands for a float that is rounded to an integer: for GPUs, Numba leaves most of these floats."""

    @rule(function)
    def rounding(value: types.Type, *digits: types.Type) -> Any:
        if digits:
            refuse_numbers(
                "round(x, n) rounds the decimal digits of x, which tasks do not have: write round(x * 10**n) / 10**n, which may"
                " differ from it in the last bit, or round on the host"
            )
        if isinstance(value, types.Integer):
            return signature(types.unliteral(value), types.unliteral(value)), _as_is
        return (signature(types.int64, value), rounded) if isinstance(value, types.Float) else None

    @lower_builtin(rounded, types.Float)
    def lower_rounded(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        kind = args[0].type
        name = f"llvm.{intrinsic}.{kind.intrinsic_name}"
        if intrinsic == "rint" and on_cuda(context):  # which NVVM does not have
            name = "__nv_rint" if sig.args[0] == types.float64 else "__nv_rintf"
        callee = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind]), name)
        # With checks, a number that int64 does not hold is a failure.
        return cast(context, builder, builder.call(callee, args), sig.args[0], types.int64)


for _function, _intrinsic in ((round, "rint"), (math.floor, "floor"), (math.ceil, "ceil"), (math.trunc, "trunc")):
    _make_rounding(_function, _intrinsic)


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


@lower_builtin(np.fmod, types.Integer, types.Integer)
def _lower_fmod(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    """Lower the remainder with the sign of the dividend, which Numba takes for that of unsigned numbers."""
    kind = sig.return_type
    value, divisor = (context.cast(builder, arg, of, kind) for arg, of in zip(args, sig.args, strict=True))
    if isinstance(kind, types.Float):
        return builder.frem(value, divisor)
    # Of -1 the remainder is 0, but the quotient of the smallest integer does not exist.
    trivial = builder.icmp_unsigned("==", divisor, ir.Constant(divisor.type, 0))
    if kind.signed:
        trivial = builder.or_(trivial, builder.icmp_signed("==", divisor, ir.Constant(divisor.type, -1)))
    divisor = builder.select(trivial, ir.Constant(divisor.type, 1), divisor)
    return (builder.srem if kind.signed else builder.urem)(value, divisor)
