"""`counts_as_true`: the truth of a result, by its type where there is none."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

from ..returned import counts_as_true


@infer_global(counts_as_true)
class CountsAsTrue(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(types.boolean, *args)


@lower_builtin(counts_as_true, types.Any)
def lower_counts_as_true(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    (kind,), (value,) = sig.args, args
    if kind == types.none:
        return cgutils.true_bit
    if isinstance(kind, types.Optional):
        optional = context.make_helper(builder, kind, value=value)
        return builder.and_(cgutils.as_bool_bit(builder, optional.valid), context.is_true(builder, kind.type, optional.data))
    return context.is_true(builder, kind, value)
