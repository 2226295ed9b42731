"""The core's queues behind a `Queue` over several devices: one on each, into which items go by their owners.

It has the methods of `CoreQueue`, and refuses what several devices cannot do yet. With several processes it has the queue of
this one's device, in memory that the others have mapped too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.array import Array
from ..arrays.ownership import Ownership, check_devices, ownership_of
from ..compile.codegen import stored_bytes
from ..core.devices import Device
from ..core.library import check, ffi, lib
from ..core.process_group import all_succeed, turn
from ..errors import InvalidArgumentError, LaunchConfigError, QueueFullError, UnsupportedTypeError
from .checkpoint import QueueOptions, QueueSnapshot, QueueState
from .core_queue import CoreQueue, Form, lacks_tasks
from .gathered import Part, gather_parts
from .shared_queue import SharedCoreQueue
from .stats import COUNTED, DeviceStats
from .trace import make_trace

__all__ = ["PeerQueues", "agree_on_launch", "check_owner", "check_peer_launch", "keys_of"]

_SUMS = (
    *("tasks_run", "tasks_pushed", "pending", "lost", "grown", "overhead_bytes", "blocks", "workers"),
    "copy_milliseconds",
)
_LAUNCH, _STATS, _ALL_STATS = map(ffi.typeof, ("atos_launch *", "atos_stats *", "atos_stats[]"))  # parsed once
_PEERS, _PROCESSES = map(ffi.typeof, ("atos_peers *", "atos_processes *"))
_QUEUES, _PROGRAMS, _MEMORY, _RANGES = map(ffi.typeof, ("atos_queue *[]", "atos_program *[]", "void *[]", "atos_shared *[]"))


def keys_of(items: NDArray[Any]) -> NDArray[Any]:
    """Return a view of the vertices that items begin with."""
    return items if items.dtype.names is None else items[items.dtype.names[0]]


def _traces(launch: Any, parts: Any, ownership: Ownership) -> list[NDArray[Any] | None]:
    """Return the trace of each device by one clock, from the samples of one after another or of all processes; None without."""
    if launch.samples == ffi.NULL:
        return [None] * len(parts)
    here, most, words = ownership.here, launch.max_samples, ffi.sizeof("atos_sample") // 8
    pointer, device = int(ffi.cast("uintptr_t", launch.samples)), ownership.devices[here[0]]
    samples = Array(pointer, (len(here) * most, words), np.dtype(np.uint64), device, readonly=True, owner=None)
    taken = [samples[k * most : k * most + parts[number].samples] for k, number in enumerate(here)]
    if ownership.group is not None:
        told = ownership.group.gather(taken[0].tobytes())
        taken = [np.frombuffer(each, np.uint64).reshape(-1, words) for each in told]
    begin = min((int(samples[:, 0].min()) for samples in taken if len(samples)), default=0)
    return [
        make_trace(samples, None if launch.barrier else part.workers, begin) for samples, part in zip(taken, parts, strict=True)
    ]


class PeerForm(Form):
    """Storage format of such a queue. Its handle: those of the devices here, the ownership of items, memory of processes."""

    __slots__ = ()

    def launch(self, programs: list[Any], launch: Any) -> tuple[int, Any, tuple[DeviceStats, ...]]:
        """Run the queues' tasks, each with its program; see `Form.launch`."""
        handles, ownership, blocks = self.handle
        if ownership.is_alone:
            status, stats, _ = Form(handles[0], self.dtype).launch(programs, launch)
            return status, stats, _describe_devices([stats], launch, ownership, status)
        launch, count = ffi.new(_LAUNCH, launch[0]), len(ownership.devices)  # a copy, since threads may share the launch
        queues, stats = ffi.new(_QUEUES, handles), ffi.new(_ALL_STATS, count)
        memory = ffi.new(_MEMORY, [block.begin for block in blocks])
        ranges = ffi.new(_RANGES, [block.addresses for block in blocks]) if ownership.on_gpus else ffi.NULL
        processes = ffi.NULL
        if ownership.group is not None:
            if not ownership.on_gpus:
                launch.blocks = launch.blocks or ownership.group.threads
            processes = ffi.new(_PROCESSES, {"group": ownership.group.handle, "memory": memory, "shared": ranges})
        field = self.dtype if self.dtype.names is None else self.dtype[0]
        peers = {
            "count": count,
            "key_bytes": field.itemsize,
            "chunk": ownership.chunk,
            "queues": queues,
            "programs": ffi.new(_PROGRAMS, programs),
            "processes": processes,
        }
        with turn(ownership.group):
            status = lib.atos_peers_launch(ffi.new(_PEERS, peers), launch, stats)
        parts = list(stats)
        total = _add_up(parts, launch.kinds)
        if total.failure.failed:
            item = keys_of(np.frombuffer(ffi.buffer(total.failure.item), self.dtype, 1))
            item[...] = ownership.to_ids(item.copy())
        return status, total, _describe_devices(parts, launch, ownership, status)


def _describe_devices(parts: Sequence[Any], launch: Any, ownership: Ownership, status: int) -> tuple[DeviceStats, ...]:
    """Return the statistics of each device of a launch, from those of the core."""
    traces = [None] * len(parts) if status == lib.ATOS_GONE else _traces(launch, parts, ownership)
    return tuple(
        [
            DeviceStats(str(device), part.tasks_run, part.tasks_pushed, part.workers, part.grown, trace)
            for device, part, trace in zip(ownership.devices, parts, traces, strict=True)
        ]
    )


def _add_up(parts: Sequence[Any], kinds: int) -> Any:
    """Return the statistics of all devices together: sums, of so many kinds too, what all have, and the first failure."""
    total = ffi.new(_STATS, parts[0])  # a copy
    for name in _SUMS:
        setattr(total, name, sum([getattr(part, name) for part in parts]))
    by_kind = [part.tasks_run_by for part in parts]
    for k in range(kinds):
        total.tasks_run_by[k] = sum([counts[k] for counts in by_kind])
    shared = [part.sharing for part in parts]
    for name in COUNTED:
        setattr(total.sharing, name, sum([getattr(each, name) for each in shared]))
    for part in parts:
        total.stopped = total.stopped or part.stopped
        if part.failure.failed and not total.failure.failed:
            total.failure = part.failure
    return total


def check_owner(owner: Any, devices: Sequence[Device | str] | None, device: Any) -> Ownership:
    """Return the ownership of the items of a queue with an owner, which fits its other parameters."""
    ownership = ownership_of("owner", owner)
    if device is not None:
        raise LaunchConfigError("a queue with an owner has no device=, since it has several; leave it out")
    if devices is not None and check_devices(devices) != ownership.devices:
        of_owner = ", ".join(map(str, ownership.devices))
        raise InvalidArgumentError(f"devices must be those of owner, {of_owner} (got {devices!r:.80}); leave them out")
    return ownership


def check_peer_launch(config: Any) -> None:
    """Refuse what a launch over several devices cannot do yet, by its `LaunchConfig`."""
    given = {
        "persistent=False": not config.persistent,
        "idle=": config.idle is not None,
        'debug="races"': config.debug == "races",
    }
    for option, is_given in given.items():
        if is_given:
            raise LaunchConfigError(f"a launch over several devices has no {option} yet; leave it out, or use one device")


def agree_on_launch(ownership: Ownership, name: str, config: Any) -> None:
    """Wait until all processes come to the launch of tasks of this name, with the same options and function between rounds."""
    if ownership.group is None:
        return
    function = config.each_round
    between = "" if function is None else f" with {getattr(function, '__qualname__', type(function))} between rounds"
    ownership.agree(f"a launch of {name} by {replace(config, progress=False)}{between}")  # whoever shows it


class PeerQueues:
    """One queue of the core for each device, and the ownership of their items."""

    is_of_many = True

    def __init__(
        self,
        capacity: int,
        most: int,
        dtype: np.dtype[Any],
        ownership: Ownership,
        kinds: tuple[str, ...] | None = None,
    ) -> None:
        field = dtype if dtype.names is None else dtype[0]
        offset = 0 if dtype.names is None else dtype.fields[dtype.names[0]][1]  # type: ignore[index]
        if field.kind not in "iu" or field.itemsize not in (4, 8) or offset:
            raise UnsupportedTypeError(
                f"items of a queue over several devices begin with a vertex, an integer of 32 or 64 bits (got {dtype})"
            )
        self._dtype, self._ownership = dtype, ownership
        stored, group = stored_bytes(dtype.itemsize, kinds is not None), ownership.group
        self._has_buckets = False
        self._cores: list[CoreQueue] = []
        if group is not None:
            group.agree(f"a queue of {capacity} to {most or 'any number of'} items of {dtype}")
            slot_bytes = 8 if stored == 4 else stored + 8
            fitting = ownership.local.memory[0] // 2 // slot_bytes // len(ownership.devices)
            most = most or max(fitting, capacity)
            self._cores.append(SharedCoreQueue(group, capacity, most, dtype, kinds))
        else:
            for device in ownership.devices:
                slot = ffi.new("atos_queue **")
                check(lib.atos_queue_create(device.number, capacity, stored, slot))
                self._cores.append(CoreQueue(ffi.gc(slot[0], lib.atos_queue_destroy), dtype, kinds))
        if not most:  # each gets its part of half of the free memory
            check(self._cores[0].call(lib.atos_queue_limit, 0))
            most = max(self._cores[0].capacities()[1] // len(self._cores), capacity)
        check(self.call(lib.atos_queue_limit, most))

    @property
    def form(self) -> Form:
        """Storage format of the items for a launch, before which it is the same on all devices."""
        handles = tuple(core.form.handle for core in self._cores)
        blocks = [block for core in self._cores if isinstance(core, SharedCoreQueue) for block in core.blocks]
        return PeerForm((handles, self._ownership, blocks), self._dtype, self._cores[0].form.kinds)

    def call(self, function: Any, *args: Any) -> int:
        """Return the status of a function of the core, called with the queue of each device; at an error it ends."""
        status = 0
        for core in self._cores:
            status = status or core.call(function, *args)
        return status

    def set_buckets(self, number: int, width: float) -> None:
        """Give each device buckets of a width; 0: one that adapts, on each by itself."""
        if self._ownership.group is not None:
            self._ownership.group.agree(f"a queue with {number} buckets, {width or 'auto'} wide")
        for core in self._cores:
            core.set_buckets(number, width)
        self._has_buckets = True

    def pending(self) -> int:
        """Return how many items are waiting, on the devices of this process."""
        return sum(core.pending() for core in self._cores)

    def pending_now(self) -> int | None:
        """Return how many items are waiting on the devices of this process; None where one of the queues cannot tell now."""
        found = [core.pending_now() for core in self._cores]
        return None if None in found else sum(count for count in found if count is not None)

    def capacities(self) -> tuple[int, int]:
        """Return the items for which each device has room now, and how many there may be there."""
        pairs = [core.capacities() for core in self._cores]
        return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)

    def push(self, items: Any, task: str | None, priorities: NDArray[np.float64] | None = None) -> None:
        """Push items, each to its owner; those of other processes are theirs to push."""
        if self._ownership.is_alone and isinstance(items, range) and items.stop <= self._ownership.size:
            return self._cores[0].push(items, task, priorities)  # which a GPU makes
        given = np.array(np.atleast_1d(np.asarray(items)), self._dtype)  # a copy
        numbers = self._ownership.to_numbers(keys_of(given))
        keys_of(given)[...] = numbers
        owners = numbers // self._ownership.chunk
        own = [owners == k for k in self._ownership.here]
        parts = [given[mine] for mine in own]
        devices = [self._ownership.devices[k] for k in self._ownership.here]
        for core, device, part in zip(self._cores, devices, parts, strict=True):
            if not len(part):
                continue
            waiting, (capacity, most) = core.pending(), core.capacities()
            if waiting + len(part) > max(capacity, most):
                raise QueueFullError(
                    f"pushing {len(part)} items to {device}, where {waiting} are waiting, would exceed its max_capacity of"
                    f" {most}; set queue.max_capacity = {waiting + len(part)} or more",
                    capacity=capacity,
                    pending=waiting,
                    lost=0,
                )
        if task is not None:  # all tell kinds apart, or none
            for core in self._cores:
                core.know(task)
        for core, mine, part in zip(self._cores, own, parts, strict=True):
            if len(part):
                core.push(part, task, None if priorities is None else np.ascontiguousarray(priorities[mine]))

    def read(self, room: int | None = None) -> Part:
        """Return the items of all devices with their ids, one after another or by priority, or none if there is no room."""
        parts = [core.read(room) for core in self._cores]
        merged, stored, state = self._merge(parts)
        priorities = self._priorities(parts)
        return merged, stored if priorities is None else stored[np.argsort(priorities, kind="stable")], state

    def _priorities(self, parts: Sequence[Part]) -> NDArray[np.float64] | None:
        """Return the priorities of the items of parts, if the queue has buckets."""
        if not self._has_buckets:
            return None
        return np.concatenate([core.priorities(len(items)) for core, (_, items, _) in zip(self._cores, parts, strict=True)])

    def _merge(self, parts: Sequence[Part]) -> Part:
        """Return the items of parts together, with their ids, and their states added up."""
        states, items, names = [], [], []
        for form, stored, state in parts:
            part, numbers = form.decode(stored)
            states.append(state)
            items.append(part)
            names.append(form.names(numbers))
        together = np.concatenate(items)
        keys_of(together)[...] = self._ownership.to_ids(keys_of(together).copy())
        kinds = None if form.kinds is None else (None, *sorted({name for part in names for name in part if name is not None}))
        places = {name: number for number, name in enumerate(kinds or (None,))}
        all_numbers = np.array([places[name] for part in names for name in part], np.uint8)
        merged = Form(None, self._dtype, kinds)
        total = QueueState(*(sum(counts) for counts in zip(*states, strict=True)))
        return merged, merged.encode(together, all_numbers), total

    def state(self) -> QueueState:
        """Return how the queues stand together."""
        return self.read(0)[2]

    def snapshot(self, options: QueueOptions) -> QueueSnapshot:
        """Return what a checkpoint holds: the items of all devices with their ids, the rest of an interrupted level first.

        All processes call this. Process 0 has what is in all of them then, and any other what it has itself.
        """
        group = self._ownership.group
        with all_succeed(group):
            parts: Sequence[Part] = [core.read() for core in self._cores]
            priorities = self._priorities(parts)
        if group is not None:
            parts, priorities = gather_parts(group, parts[0], priorities)
        with all_succeed(group):
            merged, stored, state = self._merge(parts)
            items, numbers = merged.decode(stored)
            in_level = np.concatenate([np.arange(each.pending) < each.level for _, _, each in parts])
            order = np.argsort(~in_level if priorities is None else priorities, kind="stable")
            ordered = None if priorities is None else priorities[order]
            return QueueSnapshot(options, items[order], ordered, merged.kinds, numbers[order], state)

    def restore(self, saved: QueueSnapshot) -> None:
        """Put an empty queue that nobody else uses in a state, of which each device gets its own items.

        All processes call this.
        """
        if saved.kinds is not None:
            for core in self._cores:
                core.set_kinds(saved.kinds)  # of several processes, all make larger queues together
        with all_succeed(self._ownership.group):
            items = saved.items.copy()
            keys_of(items)[...] = self._ownership.to_numbers(keys_of(items))
            owners = keys_of(items) // self._ownership.chunk
            in_level = np.arange(len(items)) < saved.state.level
            for k, core in zip(self._ownership.here, self._cores, strict=True):
                own = owners == k
                counts = QueueState(int(own.sum()), int((own & in_level).sum()), 0, 0)
                if k == 0:
                    counts = counts._replace(tasks_run=saved.state.tasks_run, tasks_pushed=saved.state.tasks_pushed)
                part = None if saved.priorities is None else np.ascontiguousarray(saved.priorities[own])
                own_part = saved._replace(items=items[own], priorities=part, kinds=None, numbers=saved.numbers[own])
                core.restore(own_part._replace(state=counts))

    def for_launch(self, tasks: tuple[str, ...]) -> Form:
        """Return the form for a launch of tasks, which all devices have then: with kinds if one needs them.

        Raises
        ------
        InvalidArgumentError
            If items are waiting, on any device, for a task that the launch lacks.
        """
        with_kinds = any(core.form.kinds is not None for core in self._cores)
        if with_kinds and (missing := self._waiting_for_others(tasks)):
            raise lacks_tasks(tasks, missing)
        for core in self._cores:
            core.for_launch(tasks, with_kinds)
        return self.form

    def _waiting_for_others(self, tasks: tuple[str, ...]) -> list[str]:
        """Return the names of tasks that items wait for, in any process, and that are not among these."""
        found: set[str] = set()
        for core in self._cores:
            if not {None, *tasks} >= {*(core.form.kinds or ())}:
                form, stored, _ = core.read()
                found |= {*form.names(form.decode(stored)[1])} - {None, *tasks}
        group = self._ownership.group
        if group is None:
            return sorted(found)
        told = group.gather(json.dumps(sorted(found)).encode())
        return sorted({name for each in told for name in json.loads(each)})
