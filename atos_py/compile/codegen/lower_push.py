"""Pushes of a worker: `worker.push`, and `worker.push_min`, which pushes the index of an element that it has lowered."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import signature
from numba.extending import lower_builtin

from .core_calls import call_core, call_cpu_field, cpu_field
from .lower_arguments import store_item
from .lower_atomics import lower_element, type_lowered
from .race_hooks import RACES, note_push
from .types import I64, POINTER, ItemLayout, ReceiverType, TaskArray, TaskType, WorkerType, on_cuda, refuse

__all__ = ["item_slot", "lower_push", "number_of_kind", "push", "push_item", "type_how", "type_push", "type_push_min"]

_PUSH = inspect.signature(lambda item, priority=None, task=None: None)
_PUSH_MIN = inspect.signature(lambda array, index, value, priority=None, task=None: None)


def type_how(word: str, worker: WorkerType, priority: types.Type, task: types.Type) -> tuple[types.Type, types.Type]:
    """Return the types that the priority and the task of a push are passed in; `word` is the method that is called."""
    task = types.none if isinstance(task, types.Omitted) else task
    number_of_kind(word, worker, types.none if isinstance(task, types.NoneType) else task)
    if isinstance(priority, (types.NoneType, types.Omitted)):
        return types.none, task
    if not worker.buckets:
        refuse(f"{word} takes a priority only if the queue has buckets: make it with atos.Queue(capacity, buckets=...)")
    if not isinstance(priority, (types.Integer, types.Float, types.Boolean)):
        refuse(f"the priority of {word} is a number or None, not {priority}")
    return types.float64, task


def push_item(worker: WorkerType | ReceiverType, item: types.Type) -> tuple[types.Type, types.Type]:
    """Return the types of the result and the item of a push by a worker, or into another queue."""
    word = f"{worker.word}.push takes"
    if isinstance(worker.item, types.BaseTuple):
        if not isinstance(item, types.BaseTuple) or len(item) != len(worker.item):
            refuse(f"{word} a tuple of {len(worker.item)} numbers here, the fields of the queue's items, not {item}")
        for field, member in zip(worker.item, item, strict=True):
            vector = isinstance(field, types.UniTuple)
            if vector and not (isinstance(member, types.BaseTuple) and len(member) == field.count):
                refuse(f"{word} a tuple of {field.count} numbers for a vector among the fields, not {member}")
            if not all(isinstance(number, (types.Number, types.Boolean)) for number in (member if vector else [member])):
                refuse(f"{word} a tuple of numbers here, not {item}")
        return types.none, item
    if not isinstance(item, types.Integer):
        if isinstance(item, types.BaseTuple):
            refuse(f"{word} an integer ({worker.item}) here, not a tuple, which is an item of a queue whose dtype is a record")
        refuse(f"{word} an integer ({worker.item}) here, not {item}; convert it, as in int(x)")
    return types.none, types.unliteral(item) if worker.checked else worker.item


def number_of_kind(word: str, worker: WorkerType, task: types.Type) -> int:
    """Return the number of the kind that a push names; 0 of none, or where items have no kinds."""
    if task == types.none:
        return 0
    if not isinstance(task, TaskType):
        refuse(f"{word} takes a task made with @atos.task as task=, not {task}")
    if task.task not in worker.kinds:
        refuse(f"{word} names task {task.task!r}, but the tasks of this launch are {', '.join(worker.kinds)}")
    return worker.kinds.index(task.task) if worker.with_kind else 0


def type_push(worker: WorkerType, args: Any, kws: Any) -> Any:
    """Return the signature of a push; `priority` may be given by name, and `task` has to be."""
    by_name = dict(zip(("item", "priority"), args, strict=False))
    if not 1 <= len(args) <= 2 or by_name.keys() & kws.keys() or not kws.keys() <= {"priority", "task"}:
        refuse("worker.push takes an item by position, and a priority and task= by name")
    if worker.over_hosts:
        refuse("worker.push is used over several hosts, where a vertex may be another host's: use worker.push_min")
    by_name.update(kws)
    result, item = push_item(worker, by_name["item"])
    how = type_how("worker.push", worker, by_name.get("priority", types.none), by_name.get("task", types.none))
    return signature(result, item, *how, recvr=worker).replace(pysig=_PUSH)


def type_push_min(worker: WorkerType, args: Any, kws: Any) -> Any:
    """Return the signature of `push_min`; `priority` and `task` are given by name."""
    if len(args) != 3 or not kws.keys() <= {"priority", "task"}:
        refuse("worker.push_min takes (array, index, value) by position, and priority= and task= by name")
    array, index, value = args
    if isinstance(worker.item, types.BaseTuple):
        refuse(
            "worker.push_min pushes an index, and the items of this queue are records; use atos.atomic_min, and worker.push"
            " where that lowered the element"
        )
    if isinstance(index, types.BaseTuple) or (isinstance(array, TaskArray) and array.ndim != 1):
        refuse(
            f"worker.push_min pushes the index of an array of one dimension, not {index} of {array}; use atos.atomic_min,"
            " and worker.push where that lowered the element"
        )
    value = type_lowered("worker.push_min", array, index, value)
    how = type_how("worker.push_min", worker, kws.get("priority", types.none), kws.get("task", types.none))
    return signature(types.boolean, array, types.unliteral(index), value, *how, recvr=worker).replace(pysig=_PUSH_MIN)


@lower_builtin("atos.worker.push", WorkerType, types.Any, types.Any, types.Any)
def lower_push(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    (worker_type, pushed_type, priority_type, task), (worker, pushed, priority, _) = sig.args, args
    items = ItemLayout(worker_type.item, worker_type.with_kind)
    kind = number_of_kind("worker.push", worker_type, task)
    if priority_type == types.none:
        priority = ir.Constant(ir.DoubleType(), 0)

    def store_in(slot: ir.Value) -> None:
        store_item(context, builder, items, slot, pushed_type, pushed, kind)

    push(context, builder, worker_type, worker, store_in, priority)
    return context.get_dummy_value()


def push(
    context: Any,
    builder: ir.IRBuilder,
    worker_type: WorkerType,
    worker: ir.Value,
    store_in: Callable[[ir.Value], None],
    priority: ir.Value,
    is_again: bool = False,
) -> None:
    """Push what a function stores where a pointer leads; the priority counts in queues with buckets.

    An item that `is_again` pushed, since it is to run later, is no push of the task.
    """
    items = ItemLayout(worker_type.item, worker_type.with_kind)

    def noted(slot: ir.Value) -> None:
        if worker_type.checked == RACES and not is_again:
            note_push(builder, slot, items.stride)

    if worker_type.buckets:
        slot = item_slot(builder, items)
        store_in(slot)
        noted(slot)
        _push_with_priority(context, builder, worker, slot, priority)
    elif on_cuda(context):
        slot = item_slot(builder, items)
        store_in(slot)
        call_core(builder, ir.VoidType(), "atos_push", [worker, slot])
    else:
        count = cpu_field(builder, worker, "count")
        full = builder.icmp_unsigned("==", builder.load(count), builder.load(cpu_field(builder, worker, "capacity")))
        with builder.if_then(full, likely=False):
            call_cpu_field(builder, worker, "flush")
        position = builder.load(count)
        buffer = builder.load(cpu_field(builder, worker, "buffer"))
        slot = builder.gep(buffer, [builder.mul(position, ir.Constant(I64, items.stride))])
        store_in(slot)
        noted(slot)
        builder.store(builder.add(position, ir.Constant(I64, 1)), count)


@lower_builtin("atos.worker.push_min", WorkerType, TaskArray, types.Integer, types.Any, types.Any, types.Any)
def lower_push_min(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    (worker_type, array, index_type, value_type, *how), (worker, _, index, _, *given) = sig.args, args
    lowered = lower_element(context, builder, signature(types.boolean, array, index_type, value_type), args[1:4])
    if array.combine:  # what another host owns is sent there after the launch
        own = cgutils.create_struct_proxy(array)(context, builder, value=args[1])
        place = context.cast(builder, index, index_type, types.int64)
        after, before = builder.icmp_signed(">=", place, own.start), builder.icmp_signed("<", place, own.stop)
        lowered = builder.and_(lowered, builder.and_(after, before))
    with builder.if_then(lowered):
        result, item_type = push_item(worker_type, index_type)
        item = context.cast(builder, index, index_type, item_type)
        lower_push(context, builder, signature(result, worker_type, item_type, *how), [worker, item, *given])
    return lowered


def item_slot(builder: ir.IRBuilder, items: ItemLayout) -> ir.Value:
    """Return a pointer to memory for an item that is handed to the core."""
    return builder.bitcast(cgutils.alloca_once(builder, ir.ArrayType(I64, max(2, items.stride // 8))), POINTER)


def _push_with_priority(context: Any, builder: ir.IRBuilder, worker: ir.Value, slot: ir.Value, priority: ir.Value) -> None:
    if on_cuda(context):
        call_core(builder, ir.VoidType(), "atos_push_with_priority", [worker, slot, priority])
    else:
        call_cpu_field(builder, worker, "push", [slot, priority])
