"""Lowering of the methods of `worker`: calls into the core on CUDA; on the CPU, where it is one lane, a few instructions."""

from __future__ import annotations

import re
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, signature
from numba.extending import lower_builtin, lower_getattr

from ...core.library import ffi, lib
from ..debug_checks import SCRATCH
from .lower_arguments import store_item
from .lower_checks import as_count, cast, leave
from .types import I8, I32, I64, POINTER, Items, Split, SplitIterator, TaskArray, WorkerType, on_cuda, refuse

_REDUCTIONS = {"sum": lib.ATOS_SUM, "min": lib.ATOS_MIN, "max": lib.ATOS_MAX}

# The struct atos_cpu_worker of csrc/include/atos.h: the type of each field by its name, in their order.
_FIELDS = {
    name: ir.IntType(8 * ffi.sizeof(field.type)) if field.type.kind == "primitive" else POINTER
    for name, field in ffi.typeof("atos_cpu_worker").fields
}
_CPU_WORKER = ir.LiteralStructType(list(_FIELDS.values()))
# Metadata of a module: the sizes of the elements that it takes scratch for. It is kept by linking, and costs nothing.
_SIZES = "atos.scratch"


def _push(worker: WorkerType, item: types.Type) -> tuple[types.Type, types.Type]:
    if isinstance(worker.item, types.BaseTuple):
        if not isinstance(item, types.BaseTuple) or len(item) != len(worker.item):
            refuse(f"worker.push takes a tuple of {len(worker.item)} numbers here, the fields of the queue's items, not {item}")
        if not all(isinstance(member, (types.Number, types.Boolean)) for member in item):
            refuse(f"worker.push takes a tuple of numbers here, not {item}")
        return types.none, item
    if not isinstance(item, types.Integer):
        refuse(f"worker.push takes an integer ({worker.item}) here, not {item}; convert it, as in int(x)")
    return types.none, types.unliteral(item) if worker.checked else worker.item


def _reduce(worker: WorkerType, value: types.Type) -> tuple[types.Type, types.Type]:
    if not isinstance(value, (types.Integer, types.Float)):
        refuse(f"reductions of a worker take integers and floats, not {value}")
    return types.unliteral(value), types.unliteral(value)


def _vote(worker: WorkerType, condition: types.Type) -> tuple[types.Type, types.Type]:
    if not isinstance(condition, (types.Number, types.Boolean)):
        refuse(f"worker.any and worker.all take a condition, not {condition}")
    return types.boolean, types.boolean


def _split(worker: WorkerType, work: types.Type) -> tuple[types.Type, types.Type]:
    if not isinstance(work, (types.Integer, types.RangeType)):
        refuse(f"worker.split takes an integer or a range, not {work}")
    return Split(), types.unliteral(work)


def _scratch(worker: WorkerType, dtype: types.Type) -> tuple[types.Type, types.Type]:
    element = dtype.dtype if isinstance(dtype, types.DTypeSpec) else None
    if not isinstance(element, (types.Integer, types.Float, types.Boolean)):
        refuse(f"worker.scratch takes a NumPy type such as np.int32, not {dtype}")
    return TaskArray(element, 1, "scratch", worker.checked), dtype


# From the type of a method's argument to the types of its result and of the argument as it is passed.
_METHODS = {
    "push": _push,
    "any": _vote,
    "all": _vote,
    "sum": _reduce,
    "min": _reduce,
    "max": _reduce,
    "split": _split,
    "scratch": _scratch,
}


def _method_template(name: str) -> type[AbstractTemplate]:
    takes = "no arguments" if name == "sync" else "one argument by position"

    class Method(AbstractTemplate):
        key = f"atos.worker.{name}"

        def generic(self, args: Any, kws: Any) -> Any:
            if kws or len(args) != (name in _METHODS):
                refuse(f"worker.{name} takes {takes}")
            result, *passed = _METHODS[name](self.this, *args) if args else (types.none,)
            return signature(result, *passed, recvr=self.this)

    return Method


_TEMPLATES = {name: _method_template(name) for name in (*_METHODS, "sync")}


@infer_getattr
class WorkerAttributes(AttributeTemplate):
    key = WorkerType

    def generic_resolve(self, worker: WorkerType, name: str) -> types.Type:
        if name not in _TEMPLATES and name not in ("rank", "size"):
            refuse(f"a worker has no {name!r}; it offers rank, size, {', '.join(_TEMPLATES)}")
        if worker.nested and name != "push":
            refuse(
                f"worker.{name} is for flat tasks: the iterations of a nested task are spread over the threads of the worker,"
                " so it offers push alone"
            )
        return types.BoundFunction(_TEMPLATES[name], worker) if name in _TEMPLATES else types.int64


def scratch_itemsize(module: str) -> int:
    """Return the size of the largest element that the code of a module, as LLVM's text, takes scratch for; 0 if none."""
    named = re.search(rf"^!{re.escape(_SIZES)} = !{{(.*)}}$", module, re.MULTILINE)
    nodes = re.findall(r"!\d+", named[1]) if named else []
    sizes = (re.search(rf"^{node} = !{{\s*i32 (\d+)\s*}}$", module, re.MULTILINE) for node in nodes)
    return max((int(size[1]) for size in sizes if size), default=0)


def _core(builder: ir.IRBuilder, result: ir.Type, name: str, args: list[ir.Value]) -> ir.Value:
    """Call a function of the CUDA core. Convergent, since threads may meet in it."""
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, [arg.type for arg in args]), name)
    function.attributes.add("convergent")
    return builder.call(function, args)


def _collective(context: Any, builder: ir.IRBuilder, sig: Any, worker: ir.Value) -> None:
    """Begin a call that all threads of the worker make. Those that are left alone by a check that failed leave the task too."""
    if sig.args[0].checked and on_cuda(context):
        together = _core(builder, I32, "atos_together", [worker])
        with builder.if_then(builder.icmp_signed("==", together, ir.Constant(I32, 0)), likely=False):
            leave(builder)


def _field(builder: ir.IRBuilder, worker: ir.Value, name: str) -> ir.Value:
    """Return a pointer to a field of a CPU worker."""
    index = list(_FIELDS).index(name)
    worker = builder.bitcast(worker, _CPU_WORKER.as_pointer())
    return builder.gep(worker, [ir.Constant(I32, 0), ir.Constant(I32, index)], inbounds=True)


@lower_getattr(WorkerType, "rank")
def lower_rank(context: Any, builder: ir.IRBuilder, worker_type: WorkerType, worker: ir.Value) -> ir.Value:
    if on_cuda(context):
        return builder.zext(_core(builder, I32, "atos_rank", [worker]), I64)
    return ir.Constant(I64, 0)


@lower_getattr(WorkerType, "size")
def lower_size(context: Any, builder: ir.IRBuilder, worker_type: WorkerType, worker: ir.Value) -> ir.Value:
    if on_cuda(context):
        return builder.zext(_core(builder, I32, "atos_size", [worker]), I64)
    return ir.Constant(I64, 1)


@lower_builtin("atos.worker.push", WorkerType, types.Any)
def lower_push(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    (worker_type, pushed_type), (worker, pushed) = sig.args, args
    items_type = Items(worker_type.item)
    if on_cuda(context):
        slot = cgutils.alloca_once(builder, ir.ArrayType(I64, 2))
        store_item(context, builder, items_type, builder.bitcast(slot, POINTER), pushed_type, pushed)
        _core(builder, ir.VoidType(), "atos_push", [worker, builder.bitcast(slot, POINTER)])
    else:
        count = _field(builder, worker, "count")
        full = builder.icmp_unsigned("==", builder.load(count), builder.load(_field(builder, worker, "capacity")))
        with builder.if_then(full, likely=False):
            flush = builder.load(_field(builder, worker, "flush"))
            function = ir.FunctionType(ir.VoidType(), [POINTER]).as_pointer()
            builder.call(builder.bitcast(flush, function), [worker])
        position = builder.load(count)
        buffer = builder.load(_field(builder, worker, "buffer"))
        slot = builder.gep(buffer, [builder.mul(position, ir.Constant(I64, items_type.stride))])
        store_item(context, builder, items_type, slot, pushed_type, pushed)
        builder.store(builder.add(position, ir.Constant(I64, 1)), count)
    return context.get_dummy_value()


@lower_builtin("atos.worker.sync", WorkerType)
def lower_sync(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    _collective(context, builder, sig, args[0])
    if on_cuda(context):
        _core(builder, ir.VoidType(), "atos_sync", [args[0]])
    return context.get_dummy_value()


def _lower_vote(name: str) -> None:
    @lower_builtin(f"atos.worker.{name}", WorkerType, types.Any)
    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        if not on_cuda(context):
            return args[1]
        _collective(context, builder, sig, args[0])
        result = _core(builder, I32, f"atos_{name}", [args[0], builder.zext(args[1], I32)])
        return builder.icmp_signed("!=", result, ir.Constant(I32, 0))


def _lower_reduction(name: str) -> None:
    @lower_builtin(f"atos.worker.{name}", WorkerType, types.Any)
    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        dtype, (worker, value) = sig.return_type, args
        if not on_cuda(context):
            return value
        _collective(context, builder, sig, worker)
        wide = types.float64 if isinstance(dtype, types.Float) else types.int64 if dtype.signed else types.uint64
        value = context.cast(builder, value, dtype, wide)
        function = {types.float64: "atos_reduce_f64", types.int64: "atos_reduce_i64", types.uint64: "atos_reduce_u64"}[wide]
        result = _core(builder, value.type, function, [worker, value, ir.Constant(I32, _REDUCTIONS[name])])
        return context.cast(builder, result, wide, dtype)


for _name in ("any", "all"):
    _lower_vote(_name)
for _name in _REDUCTIONS:
    _lower_reduction(_name)


@lower_builtin("atos.worker.split", WorkerType, types.Integer)
def lower_split_count(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    def split(worker, count):  # type: ignore[no-untyped-def]
        return range(worker.rank, count, worker.size)

    cast(context, builder, args[1], sig.args[1], types.int64)
    count = as_count(context, builder, args[1], sig.args[1])
    return context.compile_internal(
        builder, split, signature(types.range_state64_type, sig.args[0], types.int64), [args[0], count]
    )


@lower_builtin("atos.worker.split", WorkerType, types.RangeType)
def lower_split_range(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    def split(worker, work):  # type: ignore[no-untyped-def]
        start, step = work.start, work.step
        return range(start + worker.rank * step, work.stop, step * worker.size)

    return context.compile_internal(builder, split, signature(types.range_state64_type, *sig.args), args)


@lower_builtin("getiter", Split)
def lower_getiter(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    split = cgutils.create_struct_proxy(sig.args[0])(context, builder, value=args[0])
    with cgutils.if_unlikely(builder, builder.icmp_signed("==", split.step, ir.Constant(I64, 0))):
        context.call_conv.return_user_exc(builder, ValueError, ("range() arg 3 must not be zero",))
    iterator = cgutils.create_struct_proxy(sig.return_type)(context, builder)
    iterator.next = cgutils.alloca_once_value(builder, split.start)
    iterator.stop, iterator.step = split.stop, split.step
    iterator.up = builder.zext(builder.icmp_signed(">", split.step, ir.Constant(I64, 0)), I8)
    if on_cuda(context):  # whose value the compiler does not learn, lest it unroll the loop: that takes registers
        iterator.step = builder.call(ir.InlineAsm(ir.FunctionType(I64, [I64]), "mov.b64 $0, $1;", "=l,l"), [split.step])
    return iterator._getvalue()


@lower_builtin("iternext", SplitIterator)
def lower_iternext(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    iterator = cgutils.create_struct_proxy(sig.args[0])(context, builder, value=args[0])
    value = builder.load(iterator.next)
    goes_up = builder.trunc(iterator.up, ir.IntType(1))
    before, after = (builder.icmp_signed(order, value, iterator.stop) for order in "<>")
    builder.store(builder.add(value, iterator.step, flags=["nsw"]), iterator.next)
    result = context.make_helper(builder, sig.return_type)
    result.first, result.second = value, builder.select(goes_up, before, after)
    return result._getvalue()


@lower_builtin(len, Split)
def lower_len(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    def length(split):  # type: ignore[no-untyped-def]
        return len(range(split.start, split.stop, split.step))

    return context.compile_internal(builder, length, sig, args)


@lower_builtin("atos.worker.scratch", WorkerType, types.Any)
def lower_scratch(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    worker = args[0]
    if on_cuda(context):
        data = _core(builder, POINTER, "atos_scratch", [worker])
        num_bytes = _core(builder, I64, "atos_scratch_bytes", [worker])
    else:
        data = builder.load(_field(builder, worker, "scratch"))
        num_bytes = builder.load(_field(builder, worker, "scratch_bytes"))
    itemsize = context.get_abi_sizeof(context.get_data_type(sig.return_type.dtype))
    builder.module.add_named_metadata(_SIZES, [ir.Constant(I32, itemsize)])
    array = cgutils.create_struct_proxy(sig.return_type)(context, builder)
    array.data = data
    if sig.return_type.checked:
        array.number = ir.Constant(I64, SCRATCH)
    array.shape = cgutils.pack_array(builder, [builder.udiv(num_bytes, ir.Constant(I64, itemsize))])
    return array._getvalue()
