"""The Numba types of a task's parameters and how they are laid out, the same for both targets.

Both targets take what is registered with Numba's own registries, so everything in this package is registered once.
Lowering asks `on_cuda(context)` in the few places where the targets differ.
"""

from __future__ import annotations

import collections
import functools
from typing import Any, NoReturn

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models, register_default
from numba.core.errors import TypingError
from numba.extending import typeof_impl
from numba.np.numpy_support import from_dtype

from ..arguments import (
    ArrayKind,
    HostKind,
    JoinsKind,
    Kind,
    LoweredKind,
    MirrorKind,
    NoneKind,
    OwnedKind,
    PoolKind,
    PrivateKind,
    QueueKind,
    ScalarKind,
    TupleKind,
)
from ..task import Task
from . import stored_bytes
from .introspect import LARGEST_CONSTANT

#: How an array, or a worker, is checked in launches whose workers have several threads on a CPU.
TEAM = "team"
I8, I32, I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
POINTER = I8.as_pointer()


def in_task(stored: types.Type) -> types.Type:
    """Return the type that a stored number has once a task has read it: small unsigned integers become int64.

    Numba computes with two unsigned integers as uint64, where a difference cannot be negative, and a variable that is uint64
    here and int64 there becomes float64. As int64, `depth[v] - depth[u]` is what it says, and nothing is lost.
    """
    if isinstance(stored, types.Integer) and not stored.signed and stored.bitwidth < 64:
        return types.int64
    if isinstance(stored, types.UniTuple):  # a vector among the fields of an item
        return types.UniTuple(in_task(stored.dtype), stored.count)
    return stored


def _word_of(checked: bool | str) -> str:
    return f"checked for {checked} " if isinstance(checked, str) else "checked " if checked else ""


class TaskArray(types.Type):
    """An array in a task.

    `access` is 'shared' (other workers write it), 'system' (also those of other GPUs), 'readonly', 'exclusive' (no other thread
    uses the elements that a thread uses), 'scratch' (the worker's own) or 'local'.

    If it is `checked`, its indices and what is stored in it are, and it knows its number among the arguments' arrays; if
    `checked` is "races", the accesses of its elements are looked at too; if it is "team", the threads of a worker on a CPU take
    turns there. Of one that is `mirrored` each device has a copy: a
    load is from that of the device, a store to all. One over several hosts has a `combine`, the word by which tasks change
    elements of other hosts, and knows the range of those of this one; so does one that is `owned`, of a device. One that is
    `bounded` tasks only lower; it knows the device's range, and bounds of what other devices have. Where `find_counters` asks
    which arrays count arrivals, it has the `numbers` of those that it may be.
    """

    def __init__(
        self,
        dtype: types.Type,
        ndim: int,
        access: str,
        checked: bool | str = False,
        mirrored: bool = False,
        combine: str | None = None,
        owned: bool = False,
        bounded: bool = False,
        numbers: frozenset[int] = frozenset(),
    ) -> None:
        self.dtype = dtype
        self.value = in_task(dtype)
        self.ndim = ndim
        self.access = access
        self.checked = checked
        self.mirrored = mirrored
        self.combine = combine
        self.owned = owned
        self.bounded = bounded
        self.numbers = numbers
        placement = (
            "mirrored " if mirrored else "owned " if owned else "lowered " if bounded else f"{combine} " if combine else ""
        )
        words = f"{_word_of(checked)}{access} {placement}"
        told_apart = f" {sorted(numbers)}" if numbers else ""
        super().__init__(f"{words}array({dtype}, {ndim}d){told_apart}")

    def numbered(self, numbers: frozenset[int]) -> TaskArray:
        """Return the type of such an array that is one of those with these numbers."""
        how = self.access, self.checked, self.mirrored, self.combine, self.owned, self.bounded
        return TaskArray(self.dtype, self.ndim, *how, numbers)

    def unify(self, typingctx: Any, other: types.Type) -> types.Type | None:
        """Return the type of a variable that is this array here and the other one there."""
        if isinstance(other, TaskArray) and self.numbered(frozenset()) == other.numbered(frozenset()):
            return self.numbered(self.numbers | other.numbers)
        return None

    @property
    def knows_range(self) -> bool:
        """Whether it comes with the range of the device's, or this host's, elements."""
        return bool(self.combine) or self.owned or self.bounded


class WorkerType(types.Type):
    """The worker, as the task's first parameter: an opaque pointer. If `checked`, what is pushed is.

    If the queue has `buckets`, a push may have a priority. `group` is how many threads run an iteration of a nested task
    together. That of a function `between_rounds` sets the mode of the next round too, and knows what waits for it. `kinds` are
    the names of the launch's tasks, and items have a kind if `with_kind`. In a launch `over_hosts` tasks push by `push_min`.
    """

    word = "worker"

    def __init__(
        self,
        item: types.Type,
        nested: bool,
        checked: bool | str = False,
        buckets: bool = False,
        group: int = 1,
        between_rounds: bool = False,
        kinds: tuple[str, ...] = (),
        with_kind: bool = False,
        over_hosts: bool = False,
    ) -> None:
        self.item = item
        self.nested = nested
        self.checked = checked
        self.buckets = buckets
        self.group = group
        self.between_rounds = between_rounds
        self.kinds = kinds
        self.with_kind = with_kind
        self.over_hosts = over_hosts
        flat = "between rounds" if between_rounds else "flat"
        kind = flat if not nested else "nested" if group == 1 else f"nested (group={group})"
        super().__init__(f"{_word_of(checked)}{kind} worker(pushes {item})")

    @property
    def key(self) -> Any:
        """Identity of the type: by their names alone, records of other offsets or field names would be one type."""
        launch = self.buckets, self.group, self.between_rounds, self.kinds, self.with_kind, self.over_hosts
        return self.item, self.nested, self.checked, *launch


class GroupType(types.Type):
    """A group of `size` threads of a worker, to which it is a pointer; one thread where the worker has no more."""

    word = "group"

    def __init__(self, worker: WorkerType, size: int) -> None:
        self.worker = worker
        self.size = size
        self.nested, self.checked = worker.nested, worker.checked
        super().__init__(f"group of {size} threads of a {worker}")

    @property
    def key(self) -> Any:
        """As for `WorkerType`."""
        return self.worker.key, self.size


class ReceiverType(types.Type):
    """Another queue that tasks push into: a pointer to its words. If `checked`, what is pushed is."""

    word = "queue"

    def __init__(self, item: types.Type, checked: bool | str = False) -> None:
        self.item = item
        self.checked = checked
        super().__init__(f"{_word_of(checked)}queue({item})")

    @property
    def key(self) -> Any:
        """As for `WorkerType`."""
        return self.item, self.checked


class PoolType(types.Type):
    """A pool: its counters, the word that ends the launch, and an array for each field, of which all are equally long."""

    def __init__(self, fields: tuple[str, ...], arrays: tuple[TaskArray, ...]) -> None:
        self.arrays = dict(zip(fields, arrays, strict=True))
        super().__init__(f"pool({', '.join(f'{field}: {array}' for field, array in self.arrays.items())})")


class JoinsType(types.NamedTuple):
    """Joins: a named tuple of their parts, of a type of its own, since on CUDA types of Numba get no methods from others."""

    @property
    def value(self) -> types.Type:
        """The type of the values."""
        return self.types[-1].dtype  # of the root


class TaskType(types.Dummy):
    """A task of the program, which `worker.push` takes as the kind of an item."""

    def __init__(self, name: str) -> None:
        self.task = name
        super().__init__(f"task {name}")


class Split(types.RangeType):
    """Result of `worker.split`: a range, iterated over without the division that finds out how long it is."""

    def __init__(self) -> None:
        super().__init__(types.int64)
        self.name = "split range"

    @property
    def iterator_type(self) -> types.Type:
        """The type of an iterator over it."""
        return SplitIterator()


class SplitIterator(types.SimpleIteratorType):
    """Position of a loop over a split range."""

    def __init__(self) -> None:
        super().__init__("iterator of a split range", types.int64)


def bits_of(stored: ir.Type) -> ir.IntType:
    """Return the integer type as wide as a stored element."""
    return ir.IntType({"half": 16, "float": 32, "double": 64}.get(str(stored)) or stored.width)


class ItemLayout:
    """How an item lies in memory: its stored type `item`, the type `value` that a task reads, and its size `stride` in bytes.

    With `with_kind` the last byte of an item is its kind, the number of the task that runs it.
    """

    def __init__(self, item: types.Type, with_kind: bool = False) -> None:
        self.item = item
        is_record = isinstance(item, types.BaseTuple)
        members = tuple(map(in_task, item)) if is_record else ()
        self.value = types.BaseTuple.from_types(members, item.instance_class) if is_record else in_task(item)
        self.stride = stored_bytes(item.instance_class.itemsize if is_record else item.bitwidth // 8, with_kind)


for opaque in (WorkerType, GroupType, ReceiverType, TaskType):
    register_default(opaque)(models.OpaqueModel)


@typeof_impl.register(Task)
def type_of_task(task: Task, context: Any) -> types.Type:
    """Return the Numba type of a task that a task function refers to."""
    return TaskType(task.name)


register_default(Split)(models.RangeModel)


@register_default(SplitIterator)
class SplitIteratorModel(models.StructModel):
    def __init__(self, dmm: Any, fe_type: SplitIterator) -> None:
        members = [("next", types.CPointer(types.int64)), ("stop", types.int64), ("step", types.int64), ("up", types.uint8)]
        super().__init__(dmm, fe_type, members)


@register_default(TaskArray)
class TaskArrayModel(models.StructModel):
    def __init__(self, dmm: Any, fe_type: TaskArray) -> None:
        shape = types.UniTuple(types.int64, fe_type.ndim)
        number = [("number", types.int64)] if fe_type.checked else []
        copies = [("first", types.voidptr), ("step", types.int64), ("count", types.int64)] if fe_type.mirrored else []
        own = [("start", types.int64), ("stop", types.int64)] if fe_type.knows_range else []
        bounds = [("bounds", types.voidptr)] if fe_type.bounded else []
        super().__init__(dmm, fe_type, [("data", types.voidptr), ("shape", shape), *copies, *own, *bounds, *number])

    def as_return(self, builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
        self._stays()
        return super().as_return(builder, value)

    def as_data(self, builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
        self._stays()  # as a member of a tuple that is returned
        return super().as_data(builder, value)

    def _stays(self) -> None:
        """Refuse to hand on an array whose memory ends with the function."""
        if self._fe_type.access == "local":
            refuse("a local_array is returned from a function, with which its memory ends; make it in the caller, and pass it")


register_default(JoinsType)(models.TupleModel)


@register_default(PoolType)
class PoolModel(models.StructModel):
    def __init__(self, dmm: Any, fe_type: PoolType) -> None:
        arrays = [(f"field_{name}", array) for name, array in fe_type.arrays.items()]
        super().__init__(dmm, fe_type, [("counters", types.voidptr), ("stop", types.voidptr), *arrays])


def numba_type(kind: Kind, checked: bool | str = False, peers: bool = False) -> types.Type:
    """Return the Numba type of an argument of this kind, of a launch over several GPUs if there are `peers`."""
    if isinstance(kind, ArrayKind):
        access = "readonly" if kind.readonly else "system" if peers else "shared"
        return TaskArray(from_dtype(kind.dtype), kind.ndim, access, checked)
    if isinstance(kind, MirrorKind):
        return TaskArray(from_dtype(kind.dtype), kind.ndim, "system" if peers else "shared", checked, mirrored=True)
    if isinstance(kind, PrivateKind):
        return TaskArray(from_dtype(kind.dtype), kind.ndim, "shared", checked)
    if isinstance(kind, LoweredKind):
        return TaskArray(from_dtype(kind.dtype), kind.ndim, "system" if peers else "shared", checked, bounded=True)
    if isinstance(kind, OwnedKind):
        return TaskArray(from_dtype(kind.dtype), kind.ndim, "system" if peers else "shared", checked, owned=True)
    if isinstance(kind, HostKind):
        return TaskArray(from_dtype(kind.dtype), 1, "shared", checked, combine=kind.combine)
    if isinstance(kind, ScalarKind):
        return in_task(from_dtype(kind.dtype))
    if isinstance(kind, TupleKind):
        members = tuple(numba_type(member, checked, peers) for member in kind.kinds)
        if not isinstance(kind, JoinsKind):
            return types.BaseTuple.from_types(members, kind.cls)
        records, own, *others = members
        return JoinsType((records, TaskArray(own.dtype, own.ndim, "exclusive", checked), *others), kind.cls)
    if isinstance(kind, QueueKind):
        return ReceiverType(item_type(kind.dtype), checked)
    if isinstance(kind, PoolKind):
        return PoolType(kind.fields, tuple(numba_type(member, checked, peers) for member in kind.kinds))
    assert isinstance(kind, NoneKind)
    return types.none


def is_over_hosts(kind: Kind) -> bool:
    """Whether an argument is an array over several hosts, or has one."""
    return isinstance(kind, HostKind) or (isinstance(kind, TupleKind) and any(map(is_over_hosts, kind.kinds)))


@functools.cache
def item_type(dtype: np.dtype[Any]) -> types.Type:
    """Return the Numba type of a stored item: an integer, or a named tuple of a record's fields."""
    if dtype.fields is None:
        return from_dtype(dtype)
    assert dtype.names is not None
    record = collections.namedtuple("Item_" + "_".join(dtype.names), dtype.names)  # type: ignore[misc]  # the names are data
    record.offsets = tuple(dtype.fields[name][1] for name in dtype.names)  # type: ignore[attr-defined]
    record.itemsize = dtype.itemsize  # type: ignore[attr-defined]
    return types.BaseTuple.from_types(tuple(_field_type(dtype.fields[name][0]) for name in dtype.names), record)


def _field_type(dtype: np.dtype[Any]) -> types.Type:
    """Return the Numba type of a stored field: a number, or a tuple of the numbers of a vector."""
    if dtype.subdtype is None:
        return from_dtype(dtype)
    number, (length,) = dtype.subdtype
    return types.UniTuple(from_dtype(number), length)


def has_threads(context: Any, worker: WorkerType | GroupType) -> bool:
    """Whether the worker of a task that is being lowered may have several threads."""
    return on_cuda(context) or worker.checked == TEAM


def on_cuda(context: Any) -> bool:
    """Whether code is being lowered for CUDA rather than for the CPU."""
    return bool(context.target_name == "atos_cuda")


class LargeConstant:
    """Stand-in for a variable that has an array too large for a constant: it is refused where a function uses it.

    Code has a copy of a constant, with which each launch compares what the array holds then.
    """

    def __init__(self, name: str) -> None:
        self.name = name


@typeof_impl.register(LargeConstant)
def refuse_large_constant(constant: LargeConstant, context: Any) -> NoReturn:
    refuse(
        f"the variable {constant.name!r} is an array of more than {LARGEST_CONSTANT} bytes, the most that a task may have as a"
        " constant; pass it as an argument of the launch"
    )


def refuse(message: str) -> NoReturn:
    """Reject a task with a message of our own; the guillemets let `failures` find it in what Numba makes of it."""
    raise TypingError(f"«{message}»")
