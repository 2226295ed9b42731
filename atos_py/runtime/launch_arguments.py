"""Arguments of a launch: arrays of other libraries are wrapped, types are found, and all is packed into 64-bit words.

Whatever the task could not reach or use is refused here, before anything is compiled for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..arrays.array import Array, asarray, is_of_core, to_host
from ..arrays.import_external import is_on_gpu
from ..arrays.over_hosts import HostPlaces
from ..arrays.ownership import Ownership
from ..arrays.pool import Pool
from ..arrays.shared import SharedArray
from ..compile.arguments import Kind, PoolArgument, QueueArgument, describe, device_words, is_named_tuple, words
from ..compile.plain_arguments import pack_plain
from ..core.devices import Device
from ..core.library import lib
from ..errors import InvalidArgumentError, LaunchConfigError, UnsupportedTypeError
from .core_queue import CoreQueue, Form
from .host_rounds import host_arrays
from .peer_queues import PeerQueues

__all__ = ["Arguments", "prepare_arguments"]


class Arguments(NamedTuple):
    """The arguments of one launch: as the task takes them, their types, and the words that carry them.

    `receivers` are the queues among them that tasks push into, each with its form and the number of the first of its words, and
    `pools` the pools that they take elements of, each with its place among the arguments and the number of the word that the
    core fills in. `by_device` are the words that the core adapts to a device, each with how far it goes from one to the next.
    """

    values: list[Any]
    kinds: tuple[Kind, ...]
    words: list[int]
    receivers: list[tuple[Any, Form, int]]
    pools: list[tuple[Pool, int, int]]
    by_device: list[tuple[int, int]]

    def tell(self, launch: Any) -> None:
        """Tell the core of queues, pools and mirrored arrays, in an `atos_launch` that names none."""
        if self.receivers:
            launch.num_receivers = len(self.receivers)
            launch.receivers = [{"queue": other.handle, "word": word} for _, other, word in self.receivers]
        if self.pools:
            launch.num_pools = len(self.pools)
            launch.pool_words = [word for _, _, word in self.pools]
        if self.by_device:
            launch.num_device_words = len(self.by_device)
            launch.device_words = [{"word": word, "step": step} for word, step in self.by_device]

    def check_overlaps(self) -> None:
        """Raise an error if a read-only array has memory of one that tasks may write.

        A GPU reads the first through a cache that sees no writes of the same launch.
        """
        arrays = [(i, member) for i, value in enumerate(self.values) for _, member, _ in _members(value, value, 0)]
        arrays = [(i, member) for i, member in arrays if isinstance(member, Array)]
        for i, array in arrays:
            for j, other in arrays if array.readonly else ():
                if not other.readonly and array._overlaps(other):
                    raise InvalidArgumentError(
                        f"a read-only array in argument {i} has memory of an array in argument {j} that tasks may write: on a"
                        " GPU they may read what was there before; pass the one that may be written in both places, or a copy"
                    )

    def check_pools(self, task: str) -> None:
        """Raise an error if the launch has ended since a pool was full."""
        for pool, position, _ in self.pools:
            pool._check_full(f"the pool in argument {position} of {task}")


def prepare_arguments(
    args: tuple[Any, ...], device: Device, ownership: Ownership | None = None, places: HostPlaces | None = None
) -> Arguments:
    """Return the arguments of a launch on `device`, or over those of an ownership, or over hosts.

    Raises
    ------
    UnsupportedTypeError, InvalidArgumentError
        If a task cannot take one of them, if it is somewhere else, or if they are too many.
    """
    values: list[Any] = []
    kinds: list[Kind] = []
    packed: list[int] = []
    by_device: list[tuple[int, int]] = []
    receivers, pools = [], []
    for i, arg in enumerate(args):
        first, adapted = len(packed), len(by_device)
        if (kind := pack_plain(arg, device, ownership, packed, by_device)) is not None:
            values.append(arg)
            kinds.append(kind)
            continue
        del packed[first:], by_device[adapted:]
        core = getattr(arg, "_core", None)
        if isinstance(core, CoreQueue):
            if ownership is not None and not ownership.is_alone:
                what = "the tasks of a launch over several devices push into no other queue yet"
                raise LaunchConfigError(f"{what}; use one device")
            form = core.form  # one is looked at, for which the task is compiled: another thread may change it
            value: Any = _receiver(i, arg, form, device)
            receivers.append((arg, form, first))
        else:
            value = _wrap(i, arg, device, ownership)
        if any(array.places is not places for array in host_arrays([value])):
            raise InvalidArgumentError(
                "an array over several hosts is for a queue with owner=, the part of the graph that it was made for"
            )
        values.append(value)
        kinds.append(describe(value))
        for given, member, word in _members(arg, value, first):
            if isinstance(member, PoolArgument):
                pools.append((given, i, word + 1))
            by_device += [(word + place, step) for place, step in device_words(member)]
        packed += words(value)
    if len(receivers) > lib.ATOS_MAX_RECEIVERS:
        raise InvalidArgumentError(f"a task takes at most {lib.ATOS_MAX_RECEIVERS} other queues (got {len(receivers)})")
    if len(packed) > lib.ATOS_MAX_ARGUMENT_WORDS:
        most = lib.ATOS_MAX_ARGUMENT_WORDS
        raise InvalidArgumentError(f"the arguments take {len(packed)} words of 8 bytes, but at most {most} can be passed")
    if len(pools) > lib.ATOS_MAX_POOLS:
        raise InvalidArgumentError(f"a task takes at most {lib.ATOS_MAX_POOLS} pools (got {len(pools)})")
    if len(by_device) > lib.ATOS_MAX_DEVICE_WORDS:
        raise InvalidArgumentError(
            f"a task takes at most {lib.ATOS_MAX_DEVICE_WORDS} mirrored arrays, an owned one counting as two (got"
            f" {len(by_device)})"
        )
    return Arguments(values, tuple(kinds), packed, receivers, pools, by_device)


def _receiver(position: int, queue: Any, form: Form, device: Device) -> QueueArgument:
    """Return the argument for a queue that tasks push into, if they may."""
    if queue.device != device:
        raise InvalidArgumentError(f"argument {position} is a queue on {queue.device}, and the task runs on {device}")
    if queue.buckets is not None or form.kinds is not None:
        why = "has buckets" if queue.buckets is not None else "tells the items of several tasks apart"
        raise InvalidArgumentError(f"argument {position} is a queue that {why}: make one without, for tasks to push into")
    return QueueArgument(queue.dtype)


def _pool(position: int, pool: Pool, device: Device, ownership: Ownership | None) -> PoolArgument:
    """Return the argument for a pool, if tasks may use it."""
    if ownership is not None and not ownership.is_alone:
        raise LaunchConfigError("the tasks of a launch over several devices take no pool yet; use one device")
    if pool.device != device:
        raise InvalidArgumentError(f"argument {position} is a pool on {pool.device}, and the task runs on {device}")
    return PoolArgument(*pool._parts)


def _members(given: Any, value: Any, first: int) -> Iterator[tuple[Any, Any, int]]:
    """Yield what an argument consists of, as given and as the task takes it, with the number of its first word."""
    if not isinstance(value, tuple):
        yield given, value, first
        return
    for member, its_value in zip(given, value, strict=True):
        yield from _members(member, its_value, first)
        first += len(words(its_value))


def _check_partition(position: int, value: Any, ownership: Ownership | None) -> None:
    """Refuse the parts of a graph, or an array over them, where the queue has another owner."""
    found = getattr(value, "ownership", None)
    if isinstance(getattr(value, "_core", None), PeerQueues):
        raise InvalidArgumentError(f"argument {position} is a queue with an owner, into which its own tasks alone push")
    if isinstance(found, Ownership) and (found.base or found) is not ownership:
        where = "runs on one device" if ownership is None else "has another partition as its owner"
        raise InvalidArgumentError(
            f"argument {position} is over {', '.join(map(str, found.devices))}, and the queue {where}; make the queue with"
            " owner=, the partition that it belongs to"
        )
    rows = getattr(value, "indptr", None) if found is None else None
    if ownership is not None and ownership.ids is not None and rows is not None and rows.size == ownership.size + 1:
        raise InvalidArgumentError(
            f"argument {position} is a graph whose vertices have other numbers inside the tasks of this queue; pass what"
            " Graph.partition returned"
        )


def _wrap(position: int, value: Any, device: Device, ownership: Ownership | None) -> Any:
    """Return an argument as the task takes it, with an `Array` in place of each array of another library."""
    if isinstance(value, Pool):
        return _pool(position, value, device, ownership)
    _check_partition(position, value, ownership)
    if isinstance(value, tuple) and is_named_tuple(value):
        members = [_wrap(position, member, device, ownership) for member in value]
        return value if all(a is b for a, b in zip(members, value, strict=True)) else type(value)._make(members)  # type: ignore[attr-defined]
    if not isinstance(value, Array):
        if _is_host_array(value):
            if device.kind == "cuda":
                raise UnsupportedTypeError(
                    f"argument {position} is an array of the host, which a task on {device} cannot reach;"
                    " copy it there with atos.asarray(...), and read the result with to_numpy()"
                )
            if not np.asarray(to_host(value)).flags.c_contiguous:
                raise InvalidArgumentError(f"argument {position} is not C-contiguous; pass numpy.ascontiguousarray(...)")
            value = asarray(value, device=device)
        elif not isinstance(value, np.generic) and (
            hasattr(value, "__cuda_array_interface__") or hasattr(value, "__dlpack_device__")
        ):
            value = asarray(value)
    own = isinstance(value, Array) and not isinstance(value, SharedArray) and not value.readonly
    if own and ownership is not None and ownership.group is not None:
        raise InvalidArgumentError(
            f"argument {position} is an array of this process alone, so what tasks of other processes write to it would not be"
            " seen: make it with atos.full(..., partition=) or atos.distributed.zeros, or with readonly=True if tasks only"
            " read it"
        )
    devices = (device,) if ownership is None else ownership.devices
    if isinstance(value, Array) and value.device not in devices:
        advice = f"copy it with atos.asarray(..., device={str(device)!r})"
        raise InvalidArgumentError(
            f"argument {position} is on {value.device}, the task runs on {', '.join(map(str, devices))}; {advice}"
        )
    if isinstance(value, Array) and ownership is not None and ownership.over_gpus and not is_of_core(value):
        raise InvalidArgumentError(
            f"argument {position} is in memory that another library has allocated on {value.device}, which the other GPUs do"
            " not reach; make a copy with atos.asarray(..., copy=True)"
        )
    return value


def _is_host_array(value: Any) -> bool:
    """Whether an argument is an array in memory of the host: NumPy's, or one that DLPack says is there."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return hasattr(value, "__dlpack_device__") and not isinstance(value, (np.generic, type)) and not is_on_gpu(value)
