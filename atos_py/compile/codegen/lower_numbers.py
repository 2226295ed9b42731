"""Typing rules that Numba lacks: `math.log` with a base, and `int()` of a member of an `IntEnum`."""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin


@infer_global(math.log)
class LogarithmToBase(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        numbers = (types.Integer, types.Float, types.Boolean)
        if kws or len(args) != 2 or not all(isinstance(arg, numbers) for arg in args):
            return None
        return signature(types.float64, types.float64, types.float64)


@lower_builtin(math.log, types.float64, types.float64)
def lower_logarithm_to_base(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    def log(x, base):  # type: ignore[no-untyped-def]
        return math.log(x) / math.log(base)  # as Python computes it

    return context.compile_internal(builder, log, sig, args)


@infer_global(int)
class NumberOfMember(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if kws or len(args) != 1 or not isinstance(args[0], types.IntEnumMember):
            return None
        return signature(args[0].dtype, *args)


@lower_builtin(int, types.IntEnumMember)
def lower_number_of_member(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    return args[0]  # which is stored as its number
