"""`load_cached`: a relaxed load of the scope of a block, which a GPU's L1 cache may serve."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

from ..cached_load import load_cached
from .lower_arrays import check_index, element, read_bits
from .race_hooks import watched
from .types import TaskArray, refuse

_AS_THEY_ARE = ("readonly", "scratch", "local")  # arrays that a plain read finds in a cache, or in the worker's own memory


@infer_global(load_cached)
class LoadCached(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if kws or len(args) != 2:
            refuse("load_cached takes (array, index) by position")
        if not isinstance(args[0], TaskArray):
            refuse(f"load_cached works on arrays, not on a {args[0]}")
        check_index(*args)
        return signature(args[0].value, *args)


@lower_builtin(load_cached, TaskArray, types.Any)
def lower_load_cached(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    array, pointer = sig.args[0], element(context, builder, sig, args)
    access = array.access if array.access in _AS_THEY_ARE else "cached"
    with watched(context, builder, array, args[0], pointer, "read"):
        value = context.data_model_manager[array.dtype].from_data(builder, read_bits(context, builder, access, pointer))
    return context.cast(builder, value, array.dtype, array.value)
