"""Lowering of the methods of `worker`: calls into the core on CUDA; on the CPU, where it is one lane, a few instructions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, infer_global, signature
from numba.extending import lower_builtin, lower_getattr

from ...core.library import lib
from .core_calls import call_core, call_cpu_field, cpu_field
from .join_records import thread_number
from .lower_arrive import type_arrive
from .lower_checks import as_count, cast, leave
from .lower_clock import clock
from .lower_joins import type_arrive_at, type_open, type_take, type_then
from .lower_push import type_push, type_push_min
from .lower_scratch import scratch
from .race_hooks import note_index
from .team_calls import meet
from .types import (
    I8,
    I32,
    I64,
    TEAM,
    GroupType,
    Split,
    SplitIterator,
    WorkerType,
    has_threads,
    on_cuda,
    refuse,
)

REDUCTIONS = {"sum": lib.ATOS_SUM, "min": lib.ATOS_MIN, "max": lib.ATOS_MAX}
_GROUP_SIZES = (2, 4, 8, 16, 32)


def group(worker: WorkerType, size: types.Type) -> tuple[types.Type, ...]:
    """Return the types of the result and the argument of `worker.group` in a flat task."""
    if not isinstance(size, types.IntegerLiteral):
        refuse(
            f"worker.group takes a number that is known when the task is compiled, such as 4 or a global variable, not {size}"
        )
    if size.literal_value not in _GROUP_SIZES:
        refuse(f"worker.group takes 2, 4, 8, 16 or 32 threads, not {size.literal_value}")
    return GroupType(worker, size.literal_value), size


def reduction(worker: WorkerType | GroupType, value: types.Type) -> tuple[types.Type, ...]:
    """Return the types of the result and the argument of a reduction."""
    if not isinstance(value, (types.Integer, types.Float)):
        refuse(f"reductions of a {worker.word} take integers and floats, not {value}")
    return types.unliteral(value), types.unliteral(value)


def vote(worker: WorkerType | GroupType, condition: types.Type) -> tuple[types.Type, ...]:
    """Return the types of the result and the argument of `any` and `all`."""
    if not isinstance(condition, (types.Number, types.Boolean)):
        refuse(f"{worker.word}.any and {worker.word}.all take a condition, not {condition}")
    return types.boolean, types.boolean


def split(worker: WorkerType | GroupType, work: types.Type) -> tuple[types.Type, ...]:
    """Return the types of the result and the argument of `split`."""
    if not isinstance(work, (types.Integer, types.RangeType)):
        refuse(f"{worker.word}.split takes an integer or a range, not {work}")
    return Split(), types.unliteral(work)


def sync(worker: WorkerType | GroupType) -> tuple[types.Type, ...]:
    """Return the type of the result of `sync`."""
    return (types.none,)


def _stop(worker: WorkerType) -> tuple[types.Type, ...]:
    return (types.none,)


def _set_mode(worker: WorkerType, mode: types.Type) -> tuple[types.Type, ...]:
    if not worker.between_rounds:
        refuse("worker.set_mode is for the function each_round of a launch; push, stop and read worker.mode elsewhere")
    if not isinstance(mode, types.Integer):
        refuse(f"worker.set_mode takes an integer, not {mode}")
    return types.none, types.int64


_TAKES = {
    (0, 0): "no arguments",
    (0, 1): "at most one argument, by position",
    (1, 1): "one argument by position",
    (1, 2): "one or two arguments by position",
    (2, 2): "two arguments by position",
}


def method_template(word: str, name: str, typing: Callable[..., tuple[types.Type, ...]]) -> type[AbstractTemplate]:
    """Return the template of a method, from the types of its arguments to that of its result and those that are passed.

    Parameters
    ----------
    word : {'worker', 'group', 'queue', 'pool'}
    name : str
    typing : callable
        Takes the type of the object and those of the arguments, and returns the result's and those of the arguments as they
        are passed.
    """
    _, *parameters = inspect.signature(typing).parameters.values()
    least, most = sum(parameter.default is parameter.empty for parameter in parameters), len(parameters)

    class Method(AbstractTemplate):
        key = f"atos.{word}.{name}"
        prefer_literal = name in ("group", "scratch")

        def generic(self, args: Any, kws: Any) -> Any:
            if kws or not least <= len(args) <= most:
                refuse(f"{word}.{name} takes {_TAKES[least, most]}")
            result, *passed = typing(self.this, *args)
            return signature(result, *passed, recvr=self.this)

    return Method


_METHODS: dict[str, Callable[..., tuple[types.Type, ...]]] = {
    "any": vote,
    "all": vote,
    "sum": reduction,
    "min": reduction,
    "max": reduction,
    "split": split,
    "scratch": scratch,
    "group": group,
    "sync": sync,
    "clock": clock,
    "stop": _stop,
    "set_mode": _set_mode,
}


def _push_template(name: str, typing: Callable[[WorkerType, Any, Any], Any]) -> type[AbstractTemplate]:
    """Return the template of a method that takes some of its arguments by name."""

    class Push(AbstractTemplate):
        key = f"atos.worker.{name}"
        prefer_literal = name == "open"

        def generic(self, args: Any, kws: Any) -> Any:
            return typing(self.this, args, kws)

    return Push


_TEMPLATES = {
    "push": _push_template("push", type_push),
    "push_min": _push_template("push_min", type_push_min),
    "arrive": _push_template("arrive", type_arrive),
    "open": _push_template("open", type_open),
    "then": _push_template("then", type_then),
    "arrive_at": _push_template("arrive_at", type_arrive_at),
    "take": _push_template("take", type_take),
    **{name: method_template("worker", name, typing) for name, typing in _METHODS.items()},
}
_NUMBERS = ("rank", "size", "index", "count", "round", "mode", "pending")
_IN_NESTED_TASKS = (
    *("push", "push_min", "arrive", "open", "then", "arrive_at", "take"),
    *("stop", "clock", "round", "mode", "scratch"),
)


@infer_getattr
class WorkerAttributes(AttributeTemplate):
    key = WorkerType

    def generic_resolve(self, worker: WorkerType, name: str) -> types.Type:
        if name not in _TEMPLATES and name not in _NUMBERS:
            refuse(f"a worker has no {name!r}; it offers {', '.join([*_NUMBERS, *_TEMPLATES])}")
        if name == "pending" and not worker.between_rounds:
            refuse("worker.pending is for the function each_round of a launch: tasks push while it would be read")
        if worker.nested and name == "group":
            if worker.group == 1:
                refuse(
                    "worker.group in a nested task is the threads that run an iteration together: say how many, as in"
                    " @atos.task(workload=..., group=4)"
                )
            return GroupType(worker, worker.group)
        if worker.nested and name not in _IN_NESTED_TASKS:
            refuse(
                f"worker.{name} is for flat tasks: the iterations of a nested task are spread over the threads of the worker,"
                " so it offers push, push_min, arrive, arrive_at, stop, clock, round, mode, scratch(dtype, n) and, with"
                " @atos.task(workload=..., group=k), group"
            )
        return types.BoundFunction(_TEMPLATES[name], worker) if name in _TEMPLATES else types.int64


def _collective(context: Any, builder: ir.IRBuilder, sig: Any, worker: ir.Value, name: str) -> None:
    """Begin a call that all threads of the worker make. Those that are left alone by a check that failed leave the task too."""
    if sig.args[0].checked == TEAM:
        meet(builder, sig.args[0], name)
    elif sig.args[0].checked and on_cuda(context):
        together = call_core(builder, I32, "atos_together", [worker])
        with builder.if_then(builder.icmp_signed("==", together, ir.Constant(I32, 0)), likely=False):
            leave(builder)


@lower_getattr(WorkerType, "rank")
def lower_rank(context: Any, builder: ir.IRBuilder, worker_type: WorkerType, worker: ir.Value) -> ir.Value:
    if has_threads(context, worker_type):
        return builder.zext(call_core(builder, I32, "atos_rank", [worker]), I64)
    return ir.Constant(I64, 0)


@lower_getattr(WorkerType, "size")
def lower_size(context: Any, builder: ir.IRBuilder, worker_type: WorkerType, worker: ir.Value) -> ir.Value:
    if has_threads(context, worker_type):
        return builder.zext(call_core(builder, I32, "atos_size", [worker]), I64)
    return ir.Constant(I64, 1)


@lower_getattr(WorkerType, "index")
def lower_index(context: Any, builder: ir.IRBuilder, worker_type: WorkerType, worker: ir.Value) -> ir.Value:
    note_index(builder)
    return call_core(builder, I64, "atos_index", [worker]) if on_cuda(context) else _constant(builder, worker, "index")


@lower_getattr(WorkerType, "count")
def lower_count(context: Any, builder: ir.IRBuilder, worker_type: WorkerType, worker: ir.Value) -> ir.Value:
    return call_core(builder, I64, "atos_count", [worker]) if on_cuda(context) else _constant(builder, worker, "workers")


def _constant(builder: ir.IRBuilder, worker: ir.Value, name: str) -> ir.Value:
    """Return a field of a CPU worker that keeps its value."""
    value = builder.load(cpu_field(builder, worker, name))
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


@infer_global(thread_number)
class ThreadNumber(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(types.int64, *args)


@lower_builtin(thread_number, WorkerType)
def lower_thread_number(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    index = call_core(builder, I64, "atos_index", [args[0]]) if on_cuda(context) else _constant(builder, args[0], "index")
    if not has_threads(context, sig.args[0]):
        return index
    size, rank = (builder.zext(call_core(builder, I32, name, [args[0]]), I64) for name in ("atos_size", "atos_rank"))
    return builder.add(builder.mul(index, size), rank)


@lower_getattr(WorkerType, "group")
def lower_group_of_iteration(context: Any, builder: ir.IRBuilder, worker_type: WorkerType, worker: ir.Value) -> ir.Value:
    return worker


@lower_builtin("atos.worker.group", WorkerType, types.Any)
def lower_group(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    return args[0]


@lower_builtin("atos.worker.stop", WorkerType)
def lower_stop(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    if on_cuda(context):
        call_core(builder, ir.VoidType(), "atos_stop", [args[0]])
    else:
        call_cpu_field(builder, args[0], "stop")
    return context.get_dummy_value()


@lower_builtin("atos.worker.sync", WorkerType)
def lower_sync(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    if has_threads(context, sig.args[0]):
        _collective(context, builder, sig, args[0], "sync")
        call_core(builder, ir.VoidType(), "atos_sync", [args[0]])
    return context.get_dummy_value()


def _lower_vote(name: str) -> None:
    @lower_builtin(f"atos.worker.{name}", WorkerType, types.Any)
    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        if not has_threads(context, sig.args[0]):
            return args[1]
        _collective(context, builder, sig, args[0], name)
        result = call_core(builder, I32, f"atos_{name}", [args[0], builder.zext(args[1], I32)])
        return builder.icmp_signed("!=", result, ir.Constant(I32, 0))


def _lower_reduction(name: str) -> None:
    @lower_builtin(f"atos.worker.{name}", WorkerType, types.Any)
    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        dtype, (worker, value) = sig.return_type, args
        if not has_threads(context, sig.args[0]):
            return value
        _collective(context, builder, sig, worker, name)
        wide = types.float64 if isinstance(dtype, types.Float) else types.int64 if dtype.signed else types.uint64
        value = context.cast(builder, value, dtype, wide)
        function = {types.float64: "atos_reduce_f64", types.int64: "atos_reduce_i64", types.uint64: "atos_reduce_u64"}[wide]
        result = call_core(builder, value.type, function, [worker, value, ir.Constant(I32, REDUCTIONS[name])])
        return context.cast(builder, result, wide, dtype)


for _name in ("any", "all"):
    _lower_vote(_name)
for _name in REDUCTIONS:
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
