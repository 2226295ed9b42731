"""The device of each process of a group: a CPU device, or a GPU whose memory all of them reach."""

from __future__ import annotations

import json
import os
from typing import Any

from ..core.devices import Device, devices
from ..core.devices import device as device_of
from ..core.process_group import ProcessGroup, all_succeed
from ..errors import DeviceNotFoundError, InvalidArgumentError, UnsupportedTypeError
from .environment import local_rank_of

__all__ = ["devices_of_all"]


def own_device(given: Any, rank: int) -> Device:
    """Return the device of this process, as the caller names it: "cuda" is the GPU with the number of the process on its host.

    Raises
    ------
    DeviceNotFoundError
        If there is no such device.
    """
    if given is None or given == "cpu":
        return Device("cpu", rank)
    if not isinstance(given, (str, Device)):
        raise UnsupportedTypeError(f"device must be a device, such as 'cuda' (got {given!r:.80})")
    if given == "cuda":
        count = sum(each.kind == "cuda" for each in devices())
        if count == 0:
            return device_of("cuda")  # which says why there is none
        local = local_rank_of(os.environ)
        number = rank if local is None else local
        if number >= count:
            raise DeviceNotFoundError(
                f"process {rank} is number {number} on this host, which has {count} GPUs: start as many processes, or name the"
                " GPU of each, as in device='cuda:0'"
            )
        return Device("cuda", number)
    found = device_of(given)
    if found.kind == "cpu" and found.index != rank:
        raise InvalidArgumentError(f"the CPU device of process {rank} is cpu:{rank} (got {given!r:.80}); leave device= out")
    return found


def devices_of_all(group: ProcessGroup, given: Any) -> tuple[Device, ...]:
    """Return the devices of all processes, by rank; raise in all of them if one has none, or they are of different kinds."""
    try:
        with all_succeed(group):
            own = own_device(given, group.rank)
        told = [Device(*json.loads(each)) for each in group.gather(json.dumps([own.kind, own.index]).encode())]
        if len({each.kind for each in told}) > 1:
            raise InvalidArgumentError(f"either all processes have GPUs, or none has (got {', '.join(map(str, told))})")
    except BaseException:
        group.close()
        raise
    return tuple(told)
