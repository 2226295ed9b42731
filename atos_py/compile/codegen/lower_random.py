"""`random` and `random_bits` in tasks: Philox4x32-10 on 32-bit words, the same numbers as on the host."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

from ..random_numbers import MULTIPLIERS, ROUNDS, TO_UNIT, WEYL, random, random_bits
from .types import I32, I64, on_cuda, refuse

_32 = ir.Constant(I64, 32)


def _halves(builder: ir.IRBuilder, word: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return the lower and the upper 32 bits of a word."""
    return builder.trunc(word, I32), builder.trunc(builder.lshr(word, _32), I32)


def _product(context: Any, builder: ir.IRBuilder, x: ir.Value, factor: int) -> ir.Value:
    if not on_cuda(context):
        return builder.mul(builder.zext(x, I64), ir.Constant(I64, factor))
    # Left to itself, NVVM multiplies 64 bits by 64.
    asm = ir.InlineAsm(ir.FunctionType(I64, [I32, I32]), "mul.wide.u32 $0, $1, $2;", "=l,r,r")
    return builder.call(asm, [x, ir.Constant(I32, factor)])


def _philox4x32(context: Any, builder: ir.IRBuilder, state: list[ir.Value], key: tuple[ir.Value, ir.Value]) -> list[ir.Value]:
    a, b, c, d = state
    k, m = key
    for _ in range(ROUNDS):
        products = [_product(context, builder, x, factor) for x, factor in zip((a, c), MULTIPLIERS, strict=True)]
        (low, high), (other_low, other_high) = (_halves(builder, product) for product in products)
        a, b = builder.xor(builder.xor(other_high, b), k), other_low
        c, d = builder.xor(builder.xor(high, d), m), low
        k, m = (builder.add(x, ir.Constant(I32, step)) for x, step in zip((k, m), WEYL, strict=True))
    return [a, b, c, d]


def _bits(context: Any, builder: ir.IRBuilder, words: Any) -> ir.Value:
    key, *counters = (_halves(builder, word) for word in words)
    zero = ir.Constant(I32, 0)
    state = [zero] * 4
    for first in range(0, len(counters), 2):
        low, high = counters[first], counters[first + 1] if first + 1 < len(counters) else (zero, zero)
        state = [builder.xor(x, y) for x, y in zip(state, (*low, *high), strict=True)]
        state = _philox4x32(context, builder, state, key)
    return builder.or_(builder.zext(state[0], I64), builder.shl(builder.zext(state[1], I64), _32))


def _register(function: Any, result: types.Type) -> None:
    name = function.__name__

    @infer_global(function)
    class Draw(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            if kws or len(args) < 2:
                refuse(f"{name} takes a seed and one or more counters by position, such as {name}(seed, item)")
            for arg in args:
                if not isinstance(arg, types.Integer):
                    refuse(f"{name} takes integers, not {arg}; convert it, as in int(x)")
            return signature(result, *(types.int64 if arg.signed else types.uint64 for arg in args))

    @lower_builtin(function, types.VarArg(types.Any))
    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        bits = _bits(context, builder, args)
        if result == types.uint64:
            return bits
        number = builder.uitofp(builder.lshr(bits, ir.Constant(I64, 11)), ir.DoubleType())
        return builder.fmul(number, ir.Constant(ir.DoubleType(), TO_UNIT))


_register(random, types.float64)
_register(random_bits, types.uint64)
