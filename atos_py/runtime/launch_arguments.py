"""Arguments of a launch: arrays of other libraries are wrapped, types are found, and all is packed into 64-bit words.

Whatever the task could not reach or use is refused here, before anything is compiled for it.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any

import numpy as np

from ..arrays.array import Array, asarray, to_host
from ..arrays.import_external import is_on_gpu, kept_dtype
from ..arrays.join_kinds import JoinKinds, fit_kinds
from ..arrays.join_layout import JoinsParts
from ..arrays.joins import Joins
from ..arrays.pool import Pool
from ..compile.arguments import (
    ArrayKind,
    JoinsKind,
    Kind,
    NoneKind,
    PoolArgument,
    QueueArgument,
    TupleKind,
    describe,
    device_words,
    number_of_fields,
)
from ..compile.arguments import words as words_of
from ..core.devices import Device
from ..core.library import lib
from ..errors import InvalidArgumentError, LaunchConfigError, UnsupportedTypeError
from .core_queue import CoreQueue, Form
from .launch_options import LaunchConfig
from .peer_queues import PeerQueues

__all__ = ["Arguments", "on_other_device"]


_MOST_WORDS = int(lib.ATOS_MAX_ARGUMENT_WORDS)
_WORD = 0xFFFF_FFFF_FFFF_FFFF
_LEAST_INT, _MOST_INT = -(2**63), 2**63 - 1
_INT_KIND = describe(0)


class Arguments:
    """The arguments of one launch: as the task takes them, their types, and the words that carry them.

    Parameters
    ----------
    args : sequence
        As the caller gave them.
    device : Device
        Where the launch runs.
    owner : Ownership or HostPlaces, optional
        The devices or hosts that own the items, for the classes of launches over several (`arguments_over`).

    Attributes
    ----------
    values : list
        With an `Array` in place of each array of another library.
    kinds : tuple of Kind
    words : list of int
    receivers : list
        Queues that tasks push into, each with its form and the number of the first of its words.
    pools : list
        Pools that tasks take elements of, each with its place among the arguments and the number of the word that the core
        fills in.
    joins : list
        Joins that tasks open and arrive at, each with its place among the arguments.
    by_device : list
        The words that the core adapts to a device, each with how far it goes from one to the next.
    is_steady : bool
        Whether another launch with these arguments has the same words and the same stream: they are arrays of this package on
        one device, numbers and None.

    Raises
    ------
    UnsupportedTypeError, InvalidArgumentError
        If a task cannot take one of them, if it is somewhere else, or if they are too many.
    """

    __slots__ = (
        "_device",
        "_owner",
        "_plain_device",
        "by_device",
        "is_steady",
        "joins",
        "kinds",
        "pools",
        "receivers",
        "values",
        "words",
    )

    _where = "runs on one device"
    _may_be_steady = True

    def __init__(self, args: Sequence[Any], device: Device, owner: Any = None) -> None:
        self._device, self._owner = device, owner
        self._plain_device = device if self._may_be_steady else None  # the device of arrays that need no more than a look
        self.words: list[int] = []
        self.receivers: list[tuple[Any, Form, int]] = []
        self.pools: list[tuple[Pool, int, int]] = []
        self.joins: list[tuple[Joins, int]] = []
        self.by_device: list[tuple[int, int]] = []
        self.is_steady = self._may_be_steady
        self.values, self.kinds = self._pack(args) if args else ([], ())
        if len(self.words) > _MOST_WORDS or not self.is_steady:
            self._check_numbers()

    def _check_over(self, position: int, value: Any) -> None:
        """Refuse the parts of a graph, or an array over them, where the queue has another owner."""
        if isinstance(getattr(value, "_core", None), PeerQueues):
            raise InvalidArgumentError(f"argument {position} is a queue with an owner, into which its own tasks alone push")
        if hasattr(value, "_check_owner"):
            value._check_owner(f"argument {position}", self._owner, self._where)

    def _refuse(self, what: str) -> None:
        """Refuse an argument that tasks over several devices cannot use yet."""

    def _check_array(self, position: int, array: Array) -> None:
        """Refuse an array that tasks do not reach."""
        if array.device != self._device:
            raise on_other_device(position, array, (self._device,))

    def _pack(self, given: Sequence[Any], position: int | None = None) -> tuple[list[Any], tuple[Kind, ...]]:
        """Append the words of values, of a tuple at a position or of all; return what stands for them and their kinds."""
        values, words, device = [], self.words, self._plain_device
        kinds: list[Kind] = []
        for number, value in enumerate(given):
            place = number if position is None else position
            cls: Any = type(value)
            if cls is Array and (value.device is device or value.device == device):
                words.append(value.pointer)
                words += value.shape
                kinds.append(ArrayKind(value.dtype, len(value.shape), value.readonly))
                if value.library is not None:
                    self.is_steady = False
            elif value is None:
                kinds.append(NoneKind())
            elif cls is int and _LEAST_INT <= value <= _MOST_INT:
                words.append(value & _WORD)
                kinds.append(_INT_KIND)
            elif isinstance(value, (int, float, np.generic)):
                words += words_of(value)
                kinds.append(describe(value))
            elif number_of_fields(cls) == (len(value) if isinstance(value, tuple) else -1):
                self._check_over(place, value)
                members, of_members = self._pack(value, place)
                kinds.append(TupleKind(cls, cls._fields, of_members))
                if not all(map(operator.is_, members, value)):
                    value = cls._make(members)
            else:
                value, kind = self._pack_other(value, place, position is None)
                kinds.append(kind)
            values.append(value)
        return values, tuple(kinds)

    def _pack_other(self, value: Any, position: int, is_alone: bool) -> tuple[Any, Kind]:
        """Append the words of an argument that takes more than a look; return what stands for it and its kind."""
        first = len(self.words)
        core = getattr(value, "_core", None)
        argument: Any
        if isinstance(value, Joins):
            self._refuse("take no joins")
            parts = _joins(position, value, self._device, is_alone)
            members, kinds = self._pack(parts, position)
            self.joins.append((value, position))
            self.is_steady = False
            return type(parts)(*members), JoinsKind(type(parts), parts._fields, kinds)
        if isinstance(value, Pool):
            self._refuse("take no pool")
            argument = _pool(position, value, self._device)
            self.pools.append((value, position, first + 1))
        elif is_alone and isinstance(core, CoreQueue):
            self._refuse("push into no other queue")
            form = core.form  # one is looked at, for which the task is compiled: another thread may change it
            argument = _receiver(position, value, form, self._device)
            self.receivers.append((value, form, first))
        else:
            self._check_over(position, value)
            argument = _wrap(position, value, self._device)
            if isinstance(argument, Array):
                self._check_array(position, argument)
            self.by_device += [(first + place, step) for place, step in device_words(argument)]
        self.is_steady = False
        kind = describe(argument)
        self.words += words_of(argument)
        return argument, kind

    def _check_numbers(self) -> None:
        """Raise an error if the arguments are more than the core takes."""
        if len(self.receivers) > lib.ATOS_MAX_RECEIVERS:
            raise InvalidArgumentError(
                f"a task takes at most {lib.ATOS_MAX_RECEIVERS} other queues (got {len(self.receivers)})"
            )
        if len(self.words) > _MOST_WORDS:
            raise InvalidArgumentError(
                f"the arguments take {len(self.words)} words of 8 bytes, but at most {_MOST_WORDS} can be passed"
            )
        if len(self.pools) > lib.ATOS_MAX_POOLS:
            raise InvalidArgumentError(f"a task takes at most {lib.ATOS_MAX_POOLS} pools (got {len(self.pools)})")
        if len(self.by_device) > lib.ATOS_MAX_DEVICE_WORDS:
            raise InvalidArgumentError(
                f"a task takes at most {lib.ATOS_MAX_DEVICE_WORDS} mirrored arrays, an owned one counting as two (got"
                f" {len(self.by_device)})"
            )

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
        arrays = [(i, member) for i, value in enumerate(self.values) for member in _arrays_in(value)]
        for i, array in arrays:
            for j, other in arrays if array.readonly else ():
                if not other.readonly and array._overlaps(other):
                    raise InvalidArgumentError(
                        f"a read-only array in argument {i} has memory of an array in argument {j} that tasks may write: on a"
                        " GPU they may read what was there before; pass the one that may be written in both places, or a copy"
                    )

    def check_joins(self, config: LaunchConfig) -> None:
        """Raise an error if a launch takes no joins: its threads have no numbers, or functions without an item open some."""
        for joins, position in self.joins:
            if not config.persistent:
                raise LaunchConfigError(f"argument {position} is joins, which take a launch with persistent=True")
            if config.idle or config.each_round:
                raise LaunchConfigError(f"argument {position} is joins, which take a launch without idle= and each_round=")
            joins._check_threads(config.num_blocks * config.num_threads)

    def hold_joins(self, task: str, tasks: tuple[str, ...], kinds: JoinKinds) -> list[Lock]:
        """Keep other launches from the joins until what is returned is released, and number waiting items as this launch."""
        held: list[Lock] = []
        for joins, position in self.joins:
            if not joins._lock.acquire(blocking=False):
                for lock in held:
                    lock.release()
                raise LaunchConfigError(
                    f"the joins in argument {position} of {task} are used by a launch that runs; make others, or wait for the"
                    " end of that launch"
                )
            held.append(joins._lock)
            if joins._kinds != kinds:
                try:
                    fit_kinds(joins, kinds, tasks)
                except BaseException:
                    for lock in held:
                        lock.release()
                    raise
        return held

    def check_pools(self, task: str) -> None:
        """Raise an error if the launch has ended since a pool was full."""
        for pool, position, _ in self.pools:
            pool._check_full(f"the pool in argument {position} of {task}")


def _receiver(position: int, queue: Any, form: Form, device: Device) -> QueueArgument:
    """Return the argument for a queue that tasks push into, if they may."""
    if queue.device != device:
        raise InvalidArgumentError(f"argument {position} is a queue on {queue.device}, and the task runs on {device}")
    if queue.buckets is not None or form.kinds is not None:
        why = "has buckets" if queue.buckets is not None else "tells the items of several tasks apart"
        raise InvalidArgumentError(f"argument {position} is a queue that {why}: make one without, for tasks to push into")
    return QueueArgument(queue.dtype)


def _pool(position: int, pool: Pool, device: Device) -> PoolArgument:
    """Return the argument for a pool, if tasks may use it."""
    if pool.device != device:
        raise InvalidArgumentError(f"argument {position} is a pool on {pool.device}, and the task runs on {device}")
    return PoolArgument(*pool._parts)


def _joins(position: int, joins: Joins, device: Device, is_alone: bool) -> JoinsParts:
    """Return the parts of joins, if tasks may use them."""
    if not is_alone:
        raise UnsupportedTypeError(f"argument {position} has joins in a tuple, which are arguments by themselves")
    if joins.device != device:
        raise InvalidArgumentError(f"argument {position} is joins on {joins.device}, and the task runs on {device}")
    return joins._parts


def _arrays_in(value: Any) -> Iterator[Array]:
    """Yield the arrays that an argument consists of."""
    if isinstance(value, Array):
        yield value
    elif isinstance(value, tuple):
        for member in value:
            yield from _arrays_in(member)


def on_other_device(position: int, array: Array, devices: tuple[Device, ...]) -> InvalidArgumentError:
    """Return the error for an array that is on none of the devices of a launch."""
    advice = f"copy it with atos.asarray(..., device={str(devices[0])!r})"
    return InvalidArgumentError(
        f"argument {position} is on {array.device}, the task runs on {', '.join(map(str, devices))}; {advice}"
    )


def _wrap(position: int, value: Any, device: Device) -> Any:
    """Return an argument as the task takes it, with an `Array` in place of each array of another library."""
    if not isinstance(value, Array):
        if _is_host_array(value):
            if device.kind == "cuda":
                raise UnsupportedTypeError(
                    f"argument {position} is an array of the host, which a task on {device} cannot reach;"
                    " copy it there with atos.asarray(...), and read the result with to_numpy()"
                )
            host = np.asarray(to_host(value))
            kept_dtype(host.dtype)  # or what a task writes would go to a copy
            if not host.flags.c_contiguous:
                raise InvalidArgumentError(f"argument {position} is not C-contiguous; pass numpy.ascontiguousarray(...)")
            value = asarray(value, device=device)
        elif not isinstance(value, np.generic) and (
            hasattr(value, "__cuda_array_interface__") or hasattr(value, "__dlpack_device__")
        ):
            value = asarray(value)
    return value


def _is_host_array(value: Any) -> bool:
    """Whether an argument is an array in memory of the host: NumPy's, or one that DLPack says is there."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return hasattr(value, "__dlpack_device__") and not isinstance(value, (np.generic, type)) and not is_on_gpu(value)
