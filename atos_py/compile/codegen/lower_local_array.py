"""`local_array` in tasks: memory of the function's frame, which the compiler turns into registers where it can."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

from ..debug_checks import LOCAL
from ..local_array import MAX_LOCAL_BYTES, local_array
from .lower_checks import is_collecting
from .types import I64, POINTER, TaskArray, bits_of, refuse


@infer_global(local_array)
class LocalArray(AbstractTemplate):
    prefer_literal = True  # of which a number or a global variable is one, and what is computed is not

    def generic(self, args: Any, kws: Any) -> Any:
        if kws or len(args) != 2:
            refuse("local_array takes (dtype, n) by position")
        dtype, n = args
        element = dtype.dtype if isinstance(dtype, types.DTypeSpec) else None
        if not isinstance(element, (types.Integer, types.Float, types.Boolean)):
            refuse(f"local_array takes a NumPy type such as np.int32, not {dtype}")
        if not isinstance(n, types.IntegerLiteral):
            refuse(
                f"local_array takes a number of elements that is known when the task is compiled, not {n}; write a number, or"
                " the name of a global variable that is an int"
            )
        itemsize = max(1, getattr(element, "bitwidth", 8) // 8)
        most = MAX_LOCAL_BYTES // itemsize
        if not 1 <= n.literal_value <= most:
            refuse(f"local_array takes from 1 to {most} elements of {element}, not {n.literal_value}")
        return signature(TaskArray(element, 1, "local", is_collecting()), dtype, n)


@lower_builtin(local_array, types.Any, types.IntegerLiteral)
def lower_local_array(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    array_type, count = sig.return_type, sig.args[1].literal_value
    stored = context.get_data_type(array_type.dtype)
    memory = builder.bitcast(cgutils.alloca_once(builder, ir.ArrayType(stored, count)), POINTER)
    cgutils.memset(builder, memory, ir.Constant(I64, count * bits_of(stored).width // 8), 0)
    array = cgutils.create_struct_proxy(array_type)(context, builder)
    array.data = memory
    array.shape = cgutils.pack_array(builder, [ir.Constant(I64, count)])
    if array_type.checked:
        array.number = ir.Constant(I64, LOCAL)
    return array._getvalue()
