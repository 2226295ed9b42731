"""`atomic_add2` and `atomic_add4`: several float32 beside each other, which newer GPUs add in one instruction."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

from ..atomics import atomic_add2, atomic_add4
from .lower_arrays import check_index, check_value, element
from .lower_atomics import add_float, check_writable
from .lower_checks import cast, fail
from .numba_patches import current_capability
from .race_hooks import watched
from .scoped_atomics import scope_of
from .types import I32, I64, TaskArray, on_cuda, refuse

_HAS_VECTORS = (9, 0)  # the first compute capability with `red.v2.f32` and `red.v4.f32`


def _register(function: Any, count: int) -> None:
    name = function.__name__

    @infer_global(function)
    class Add(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            if kws or len(args) != 2 + count:
                refuse(f"{name} takes (array, first index, {count} values) by position")
            array, index, *values = args
            check_writable(name, array)
            if array.dtype != types.float32:
                refuse(f"{name} works on float32, not on {array.dtype}")
            check_index(array, index)
            for value in values:
                check_value(array, value)
            return signature(types.none, array, index, *[types.float32] * count)

    @lower_builtin(function, TaskArray, types.Any, *[types.Any] * count)
    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        array, pointer = sig.args[0], element(context, builder, sig, args)
        values = [cast(context, builder, *given, array.dtype) for given in zip(args[2:], sig.args[2:], strict=True)]
        if array.checked:
            _check(context, builder, sig, args, pointer, count)
        if on_cuda(context) and pointer.type.addrspace == 1 and current_capability() >= _HAS_VECTORS:
            words = ", ".join(f"${k + 1}" for k in range(count))
            code = f"red.relaxed.{scope_of(array.access)}.global.add.v{count}.f32 [$0], {{{words}}};"
            kind = ir.FunctionType(ir.VoidType(), [I64, *(value.type for value in values)])
            asm = ir.InlineAsm(kind, code, ",".join(["l", *"f" * count, "~{memory}"]), side_effect=True)
            builder.call(asm, [builder.ptrtoint(pointer, I64), *values])
        else:
            for k, value in enumerate(values):
                place = builder.gep(pointer, [ir.Constant(I32, k)])
                with watched(context, builder, array, args[0], place, "atomic_add"):
                    add_float(context, builder, array.access, place, value)
        return context.get_dummy_value()


def _check(context: Any, builder: ir.IRBuilder, sig: Any, args: Any, pointer: ir.Value, count: int) -> None:
    """Check that the last element is there too, and that the first one is where the instruction takes it."""
    array, index_type = sig.args[:2]
    index, is_tuple = args[1], isinstance(index_type, types.BaseTuple)
    parts = cgutils.unpack_tuple(builder, index, len(index_type)) if is_tuple else [index]
    kinds = list(index_type) if is_tuple else [index_type]
    parts = [context.cast(builder, part, kind, types.int64) for part, kind in zip(parts, kinds, strict=True)]
    parts[-1] = builder.add(parts[-1], ir.Constant(I64, count - 1))
    last_type = types.UniTuple(types.int64, len(parts))
    element(context, builder, signature(types.none, array, last_type), [args[0], context.make_tuple(builder, last_type, parts)])
    fields = cgutils.create_struct_proxy(array)(context, builder, value=args[0])
    address = builder.ptrtoint(pointer, I64)
    unaligned = builder.and_(address, ir.Constant(I64, 4 * count - 1))
    with builder.if_then(builder.icmp_unsigned("!=", unaligned, ir.Constant(I64, 0)), likely=False):
        number = builder.udiv(builder.sub(address, builder.ptrtoint(fields.data, I64)), ir.Constant(I64, 4))
        fail(builder, "alignment", f"atomic_add{count}", number, ir.Constant(I64, count), fields.number)


_register(atomic_add2, 2)
_register(atomic_add4, 4)
