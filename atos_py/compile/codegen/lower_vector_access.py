"""`load4` and `store4`: vector loads and stores of float32, where a GPU has them for the access of the array."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

from ..vector_access import WIDTH, load4, store4
from .lower_arrays import check_index, element, read_bits, store
from .lower_atomics import check_writable
from .lower_checks import cast
from .race_hooks import watched
from .scoped_atomics import scope_of
from .types import I32, I64, TaskArray, on_cuda, refuse

_VECTOR = ir.VectorType(ir.FloatType(), WIDTH)


def _check_array(name: str, array: Any) -> None:
    if not isinstance(array, TaskArray) or array.dtype != types.float32:
        refuse(f"{name} works on arrays of float32, not on {getattr(array, 'dtype', array)}")


@infer_global(load4)
class Load(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if kws or len(args) != 2:
            refuse("load4 takes (array, first index) by position")
        _check_array("load4", args[0])
        check_index(*args)
        return signature(types.UniTuple(types.float32, WIDTH), *args)


@infer_global(store4)
class Store(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if kws or len(args) != 2 + WIDTH:
            refuse(f"store4 takes (array, first index, {WIDTH} values) by position")
        _check_array("store4", args[0])
        check_writable("store4", args[0])
        check_index(*args[:2])
        return signature(types.none, *args[:2], *[types.float32] * WIDTH)


@lower_builtin(load4, TaskArray, types.Any)
def lower_load(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    access, pointer = sig.args[0].access, element(context, builder, sig, args)
    if on_cuda(context) and access == "readonly":
        vector = builder.load(builder.bitcast(pointer, _VECTOR.as_pointer(pointer.type.addrspace)), align=16)
        vector.set_metadata("invariant.load", builder.module.add_metadata([]))
        values = [builder.extract_element(vector, ir.Constant(I32, k)) for k in range(WIDTH)]
    else:
        places = [builder.gep(pointer, [ir.Constant(I32, k)]) for k in range(WIDTH)]
        values = []
        for place in places:
            with watched(context, builder, sig.args[0], args[0], place, "read"):
                values.append(read_bits(context, builder, access, place))
    return context.make_tuple(builder, sig.return_type, values)


@lower_builtin(store4, TaskArray, types.Any, *[types.Any] * WIDTH)
def lower_store(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    array, pointer = sig.args[0], element(context, builder, sig, args)
    values = [cast(context, builder, *given, array.dtype) for given in zip(args[2:], sig.args[2:], strict=True)]
    if on_cuda(context) and pointer.type.addrspace == 1:
        words = ", ".join(f"${k + 1}" for k in range(WIDTH))
        code = f"st.relaxed.{scope_of(array.access)}.global.v{WIDTH}.f32 [$0], {{{words}}};"
        kind = ir.FunctionType(ir.VoidType(), [I64, *(value.type for value in values)])
        asm = ir.InlineAsm(kind, code, ",".join(["l", *"f" * WIDTH, "~{memory}"]), side_effect=True)
        builder.call(asm, [builder.ptrtoint(pointer, I64), *values])
    else:
        for k, value in enumerate(values):
            place = builder.gep(pointer, [ir.Constant(I32, k)])
            with watched(context, builder, array, args[0], place, "write"):
                store(context, builder, array, place, value)
    return context.get_dummy_value()
