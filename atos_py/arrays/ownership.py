"""Ownership: which of several devices has an element, such as a vertex and what belongs to it, and runs its tasks.

Elements have two numbers. The host speaks of them by their *ids*, as the user gave them. Inside tasks they are numbered so that
each device owns a range: then the owner is a division, in the core and anywhere else.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ..core.devices import Device
from ..core.devices import device as device_of
from ..core.library import check, lib
from ..core.process_group import ProcessGroup, whole
from ..errors import InvalidArgumentError, UnsupportedTypeError

__all__ = ["Ownership", "check_devices", "chunk_of", "ownership_of"]


_WORD, _MANY = 32, 1024


def chunk_of(size: int, count: int) -> int:
    """Return how many of `size` elements each of `count` devices owns, but for the last ones, which may have fewer.

    If they are many, they are a multiple of 32, so that a word with a bit for each is of one device.
    """
    chunk = max(-(-size // count), 1)
    return chunk if chunk < _MANY else -(-chunk // _WORD) * _WORD


@dataclass(frozen=True, eq=False)
class Ownership:
    """The devices that own `size` elements, and their numbers inside tasks.

    Attributes
    ----------
    devices : tuple of Device
    size : int
    ids : numpy.ndarray or None
        The id of each element, by its number inside tasks; None if they are the same.
    numbers : numpy.ndarray or None
        The reverse.
    group : ProcessGroup or None
        The processes of which each has one of the devices, by its rank; None if all devices are in this process.
    base : Ownership or None
        That of the vertices, if these elements are others.
    """

    devices: tuple[Device, ...]
    size: int
    ids: NDArray[Any] | None
    numbers: NDArray[Any] | None
    group: ProcessGroup | None = None
    base: Ownership | None = None

    def others(self, size: int) -> Ownership:
        """Return the ownership of so many other elements over the same devices, such as words with a bit for each vertex."""
        return Ownership(self.devices, size, None, None, self.group, self)

    def check_owner(self, argument: str, owner: Any, where: str) -> None:
        """Refuse an argument over these devices in a launch of a queue that has another owner, or none."""
        if (self.base or self) is not owner:
            raise InvalidArgumentError(
                f"{argument} is over {', '.join(map(str, self.devices))}, and the queue {where}; make the queue with owner=,"
                " the partition that it belongs to"
            )

    def agree(self, what: str) -> None:
        """Wait until all processes come to a call."""
        if self.group is not None:
            self.group.agree(what)

    @contextlib.contextmanager
    def all_at(self, what: str) -> Iterator[None]:
        """Wait until all processes come to a call, and at its end until all have done their part."""
        if self.group is None:
            yield
            return
        with whole(self.group):
            self.group.agree(what)
            yield
            self.group.agree(f"the end of {what}")

    @functools.cached_property
    def here(self) -> range:
        """Numbers of the devices of this process."""
        return range(len(self.devices)) if self.group is None else range(self.group.rank, self.group.rank + 1)

    @functools.cached_property
    def local(self) -> Device:
        """The device by which this process reaches what all devices have: its own, or the first one."""
        return self.devices[self.here.start]

    def reaching(self, k: int) -> Device:
        """Return the device by which this process reaches what device k alone has."""
        return self.devices[k] if self.group is None else self.local

    @functools.cached_property
    def own(self) -> slice:
        """Elements of these devices, by number."""
        return slice(min(self.here.start * self.chunk, self.size), min(self.here.stop * self.chunk, self.size))

    @functools.cached_property
    def on_gpus(self) -> bool:
        """Whether the devices are GPUs, rather than CPU devices."""
        return self.devices[0].kind == "cuda"

    @functools.cached_property
    def is_alone(self) -> bool:
        """Whether one device, of this process, owns all elements: then their ids are their numbers."""
        return len(self.devices) == 1 and self.group is None

    @functools.cached_property
    def over_gpus(self) -> bool:
        """Whether tasks on a GPU reach memory of other GPUs, or of other processes."""
        return self.on_gpus and not self.is_alone

    @functools.cached_property
    def borders(self) -> tuple[int, ...]:
        """The first element of each device, by number, and the number of all."""
        return tuple([min(k * self.chunk, self.size) for k in range(len(self.devices) + 1)])

    @functools.cached_property
    def chunk(self) -> int:
        """Elements of a device, of which the last one may have fewer."""
        return chunk_of(self.size, len(self.devices))

    def to_numbers(self, ids: NDArray[Any]) -> NDArray[Any]:
        """Return the numbers inside tasks of elements with these ids.

        Raises
        ------
        InvalidArgumentError
            If there is no such element.
        """
        if ids.size:
            wrong = (ids < 0) | (ids >= self.size)
            if wrong.any():
                raise InvalidArgumentError(
                    f"items begin with a vertex, of which there are {self.size:,} (got {ids[wrong.argmax()]}); push others to a"
                    " queue without owner="
                )
        return ids if self.numbers is None else self.numbers[ids].astype(ids.dtype)

    def to_ids(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return the ids of elements with these numbers; what a task pushed that is no element stays as it is."""
        if self.ids is None:
            return numbers
        known = (numbers >= 0) & (numbers < self.size)
        result = numbers.copy()
        result[known] = self.ids[numbers[known]]
        return result


def check_devices(devices: Any) -> tuple[Device, ...]:
    """Return the devices of a partition; GPUs reach each other's memory from then on."""
    if isinstance(devices, (str, Device)) or not isinstance(devices, Sequence):
        raise UnsupportedTypeError(f"devices must be a list of devices, such as ['cpu:0', 'cpu:1'] (got {devices!r:.80})")
    found = tuple(device_of(_named(device)) for device in devices)
    if not found:
        raise InvalidArgumentError("devices must name one device at least (got none)")
    kinds = {device.kind for device in found}
    if len(kinds) > 1:
        raise InvalidArgumentError(f"devices must be all GPUs or all CPU devices (got {', '.join(map(str, devices))})")
    if kinds == {"cuda"}:
        check(lib.atos_connect(len(found), [device.number for device in found]))
    elif len(set(found)) != len(found):
        raise InvalidArgumentError(f"devices must differ (got {', '.join(map(str, devices))}; 'cpu' is 'cpu:0')")
    return found


def _named(device: Any) -> Device | str:
    if not isinstance(device, (str, Device)):
        raise UnsupportedTypeError(f"devices must be a list of devices, such as ['cpu:0', 'cpu:1'] (with {device!r:.80})")
    return device


def ownership_of(name: str, partition: Any) -> Ownership:
    """Return the ownership of the parts of a graph, which were given as the argument `name`."""
    found = getattr(partition, "ownership", None)
    if not isinstance(found, Ownership):
        raise UnsupportedTypeError(f"{name} must be what Graph.partition returns (got {partition!r:.80})")
    return found
