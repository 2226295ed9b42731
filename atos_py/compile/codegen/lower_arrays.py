"""Reading and writing array elements.

A writable array is read and written with relaxed atomic operations, which on a GPU go to the L2 cache: a plain read could be
served from a stale line of the L1 cache, and a task would then lose an update. A read-only array is read with invariant loads,
which the compiler may move and merge, and which become `ld.global.nc` on a GPU.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, infer_global, signature
from numba.extending import lower_builtin, lower_getattr

from .lower_checks import cast, fail
from .race_hooks import watched
from .scoped_atomics import scope_of
from .types import I64, TaskArray, bits_of, on_cuda, refuse

_OWN = ("scratch", "local")  # arrays of the worker and of the thread, which are no global memory
_PLAIN = (*_OWN, "exclusive")  # arrays whose elements no other thread accesses at the same time
_CONVERT = "convert it, as in int(x)"


def check_index(array: TaskArray, index: types.Type) -> None:
    """Refuse an index that does not select one element of `array`."""
    parts = tuple(index) if isinstance(index, types.BaseTuple) else (index,)
    if len(parts) != array.ndim:
        refuse(f"a {array.ndim}-dimensional array takes {array.ndim} indices, not {len(parts)}: {array} indexed by {index}")
    for part in parts:
        if isinstance(part, types.Float):
            refuse(f"an array is indexed by {part}; {_CONVERT}")
        refuse_member(part, "an array is indexed by")
        if not isinstance(part, types.Integer):
            refuse(f"an array is indexed by {part}; indices are integers, or a tuple of one integer for each dimension")


def refuse_member(value: types.Type, what: str) -> None:
    """Refuse a member of an enumeration, which Numba does not take for the number that it is."""
    if isinstance(value, types.IntEnumMember):
        name = value.instance_class.__name__
        refuse(f"{what} a member of {name}; write int(...) around it, which is its number")


def check_value(array: TaskArray, value: types.Type) -> None:
    """Refuse a value that cannot be stored in an element of `array`."""
    refuse_member(value, f"an element of type {array.dtype} is given")
    if not isinstance(value, (types.Number, types.Boolean)):
        refuse(f"an element of type {array.dtype} cannot be given a {value}")
    if isinstance(value, types.Float) and not isinstance(array.dtype, types.Float):
        refuse(f"an element of type {array.dtype} is given a {value}, which would be cut off; {_CONVERT}")


def as_stored(array: TaskArray, value: types.Type) -> types.Type:
    """Return the type that a value has when it comes to be stored: as it is where an overflow is to be found."""
    overflows = array.checked and isinstance(array.dtype, types.Integer) and isinstance(value, types.Integer)
    return types.unliteral(value) if overflows else array.dtype


@infer_global(operator.getitem)
class GetElement(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        array, index = args
        if isinstance(array, TaskArray):
            check_index(array, index)
            return signature(array.value, array, index)
        return None


@infer_global(operator.setitem)
class SetElement(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        array, index, value = args
        if isinstance(array, TaskArray):
            if array.access == "readonly":
                refuse(
                    "a read-only array is written to; make it with readonly=False if tasks write to it; those of a"
                    " graph always are read-only"
                )
            if array.bounded:
                refuse(
                    'an element is stored in an array with combine="min", which tasks only lower: use worker.push_min or'
                    " atomic_min, or make the array without combine="
                )
            check_index(array, index)
            check_value(array, value)
            return signature(types.none, array, index, as_stored(array, value))
        return None


@infer_global(len)
class Length(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(types.int64, *args) if isinstance(args[0], TaskArray) else None


@infer_getattr
class ArrayAttributes(AttributeTemplate):
    key = TaskArray

    def resolve_shape(self, array: TaskArray) -> types.Type:
        return types.UniTuple(types.int64, array.ndim)

    def resolve_size(self, array: TaskArray) -> types.Type:
        return types.int64

    def resolve_dtype(self, array: TaskArray) -> types.Type:
        return types.DType(array.dtype)

    def resolve_ndim(self, array: TaskArray) -> types.Type:
        return types.int64


def _fields(context: Any, builder: ir.IRBuilder, array_type: TaskArray, array: ir.Value) -> tuple[ir.Value, list[ir.Value]]:
    """Return the data pointer and the extents of an array."""
    proxy = cgutils.create_struct_proxy(array_type)(context, builder, value=array)
    return proxy.data, cgutils.unpack_tuple(builder, proxy.shape, array_type.ndim)


def is_own(context: Any, builder: ir.IRBuilder, kind: TaskArray, array: ir.Value, index: ir.Value) -> ir.Value:
    """Return whether an element, by its first index, is of the device or host that the code runs on."""
    own = cgutils.create_struct_proxy(kind)(context, builder, value=array)
    return builder.and_(builder.icmp_signed(">=", index, own.start), builder.icmp_signed("<", index, own.stop))


def _check_own(context: Any, builder: ir.IRBuilder, kind: TaskArray, array: ir.Value, index: ir.Value, owner: str) -> None:
    """Fail if an element is of another device or host."""
    own = cgutils.create_struct_proxy(kind)(context, builder, value=array)
    with builder.if_then(builder.not_(is_own(context, builder, kind, array, index)), likely=False):
        fail(builder, "owner", owner, index, own.stop, own.number)


def element(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    """Return a pointer to the element that the first two arguments, array and index, select."""
    array_type, index_type = sig.args[:2]
    data, shape = _fields(context, builder, array_type, args[0])
    indices, index_types = [args[1]], [index_type]
    if isinstance(index_type, types.BaseTuple):
        indices, index_types = cgutils.unpack_tuple(builder, args[1], len(index_type)), list(index_type)
    offset = ir.Constant(I64, 0)
    for axis, (extent, part, part_type) in enumerate(zip(shape, indices, index_types, strict=True)):
        part = context.cast(builder, part, part_type, types.int64)
        if array_type.checked:
            number = cgutils.create_struct_proxy(array_type)(context, builder, value=args[0]).number
            with builder.if_then(builder.icmp_unsigned(">=", part, extent), likely=False):
                fail(builder, "index", str(axis) if array_type.ndim > 1 else "", part, extent, number)
            if array_type.owned and axis == 0:
                _check_own(context, builder, array_type, args[0], part, "device")
        offset = builder.add(builder.mul(offset, extent), part)
    stored = context.get_data_type(array_type.dtype)
    if on_cuda(context) and array_type.access not in _OWN:
        data = builder.addrspacecast(data, data.type.pointee.as_pointer(1))
        return builder.gep(builder.bitcast(data, stored.as_pointer(1)), [offset])
    return builder.gep(builder.bitcast(data, stored.as_pointer()), [offset])


def _relaxed(operation: str, access: str, bits: ir.IntType) -> tuple[str, str, ir.IntType]:
    """Return the PTX of a relaxed load or store, the constraint of its register, and the register's type."""
    constraint, register = {8: ("h", 16), 16: ("h", 16), 32: ("r", 32), 64: ("l", 64)}[bits.width]
    return f"{operation}.relaxed.{scope_of(access)}.global.u{bits.width}", constraint, ir.IntType(register)


def load(context: Any, builder: ir.IRBuilder, array_type: TaskArray, pointer: ir.Value) -> ir.Value:
    """Load an element as its access asks, as the type that it is stored in."""
    # A copy is in the memory of its GPU, where a barrier brings what others have stored: no load has to be of system scope.
    value = read_bits(context, builder, "shared" if array_type.mirrored else array_type.access, pointer)
    return context.data_model_manager[array_type.dtype].from_data(builder, value)


def read_bits(context: Any, builder: ir.IRBuilder, access: str, pointer: ir.Value) -> ir.Value:
    """Load what is stored where `pointer` points, as the access of its array asks."""
    stored = pointer.type.pointee
    bits = bits_of(stored)
    if access == "readonly":
        value = builder.load(pointer)
        value.set_metadata("invariant.load", builder.module.add_metadata([]))
    elif access in _PLAIN:
        value = builder.load(pointer)
    elif on_cuda(context):
        instruction, constraint, register = _relaxed("ld", access, bits)
        asm = ir.InlineAsm(ir.FunctionType(register, [I64]), f"{instruction} $0, [$1];", f"={constraint},l", side_effect=True)
        value = builder.call(asm, [builder.ptrtoint(pointer, I64)])
        value = builder.bitcast(builder.trunc(value, bits) if bits != register else value, stored)
    else:
        value = builder.load_atomic(builder.bitcast(pointer, bits.as_pointer()), "monotonic", bits.width // 8)
        value = builder.bitcast(value, stored)
    return value


def store(context: Any, builder: ir.IRBuilder, array_type: TaskArray, pointer: ir.Value, value: ir.Value) -> None:
    """Store an element, as its access asks."""
    value = context.data_model_manager[array_type.dtype].as_data(builder, value)
    bits = bits_of(value.type)
    if array_type.access in _PLAIN:
        builder.store(value, pointer)
    elif on_cuda(context):
        instruction, constraint, register = _relaxed("st", array_type.access, bits)
        value = builder.bitcast(value, bits)
        value = builder.zext(value, register) if bits != register else value
        function = ir.FunctionType(ir.VoidType(), [I64, register])
        asm = ir.InlineAsm(function, f"{instruction} [$0], $1;", f"l,{constraint}", side_effect=True)
        builder.call(asm, [builder.ptrtoint(pointer, I64), value])
    else:
        pointer = builder.bitcast(pointer, bits.as_pointer())
        builder.store_atomic(builder.bitcast(value, bits), pointer, "monotonic", bits.width // 8)


@lower_builtin(operator.getitem, TaskArray, types.Any)
def lower_getitem(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    array_type, pointer = sig.args[0], element(context, builder, sig, args)
    with watched(context, builder, array_type, args[0], pointer, "read"):
        value = load(context, builder, array_type, pointer)
    return context.cast(builder, value, array_type.dtype, array_type.value)


@lower_builtin(operator.setitem, TaskArray, types.Any, types.Any)
def lower_setitem(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    array_type, index_type, value_type = sig.args
    pointer = element(context, builder, sig, args)
    if array_type.checked and array_type.combine:
        _check_own(context, builder, array_type, args[0], context.cast(builder, args[1], index_type, types.int64), "host")
    value = cast(context, builder, args[2], value_type, array_type.dtype)
    if array_type.mirrored:
        array = cgutils.create_struct_proxy(array_type)(context, builder, value=args[0])
        place, copy = builder.ptrtoint(pointer, I64), builder.ptrtoint(array.first, I64)
        offset = builder.sub(place, builder.ptrtoint(array.data, I64))
        with cgutils.for_range(builder, array.count) as loop:
            address = builder.add(builder.add(copy, offset), builder.mul(loop.index, array.step))
            store(context, builder, array_type, builder.inttoptr(address, pointer.type), value)
    else:
        with watched(context, builder, array_type, args[0], pointer, "write"):
            store(context, builder, array_type, pointer, value)
    return context.get_dummy_value()


@lower_builtin(len, TaskArray)
def lower_len(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    return _fields(context, builder, sig.args[0], args[0])[1][0]


@lower_getattr(TaskArray, "shape")
def lower_shape(context: Any, builder: ir.IRBuilder, array_type: TaskArray, array: ir.Value) -> ir.Value:
    return cgutils.create_struct_proxy(array_type)(context, builder, value=array).shape


@lower_getattr(TaskArray, "size")
def lower_size(context: Any, builder: ir.IRBuilder, array_type: TaskArray, array: ir.Value) -> ir.Value:
    size = ir.Constant(I64, 1)
    for extent in _fields(context, builder, array_type, array)[1]:
        size = builder.mul(size, extent)
    return size


@lower_getattr(TaskArray, "ndim")
def lower_ndim(context: Any, builder: ir.IRBuilder, array_type: TaskArray, array: ir.Value) -> ir.Value:
    return ir.Constant(I64, array_type.ndim)


@lower_getattr(TaskArray, "dtype")
def lower_dtype(context: Any, builder: ir.IRBuilder, array_type: TaskArray, array: ir.Value) -> ir.Value:
    return context.get_dummy_value()
