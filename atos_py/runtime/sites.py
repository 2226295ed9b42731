"""Sites: where the items of a queue lie and run, on one device, over several or over several hosts, and what differs there.

A queue has one site, chosen once by the type of its owner; its other code is the same for all.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.over_hosts import HostPlaces
from ..arrays.ownership import Ownership
from ..compile.codegen import stored_bytes
from ..core.devices import Device
from ..core.devices import device as device_of
from ..core.library import check, ffi, lib
from ..core.process_group import ProcessGroup
from ..errors import InvalidArgumentError, LaunchConfigError
from ..support.validation import read_number
from .arguments_over import ArgumentsOverDevices, ArgumentsOverHosts
from .checkpoint import QueueOptions
from .core_queue import CoreQueue
from .host_rounds import HostQueue, check_host_launch, check_host_queue, run_by_rounds
from .launch import PreparedLaunch
from .launch_arguments import Arguments
from .peer_queues import PeerQueues, agree_on_launch, check_owner, check_peer_launch, keys_of
from .stats import LaunchStats

__all__ = ["OneDevice", "site_of"]


class OneDevice:
    """The site of a queue on one device.

    Attributes
    ----------
    device : Device
        The device that runs the items; of several, the one by which this process reaches the others.
    devices : tuple of Device
        All devices that run items.
    here : tuple of Device
        The devices of this process.
    group : ProcessGroup or None
        The processes that the devices are in.
    over_gpus : bool
        Whether tasks on a GPU reach memory of other GPUs.
    key : tuple
        What tells queues of this site from those of others, in the keys of what is prepared for launches.
    ownership : Ownership or None
    places : HostPlaces or None
    owner : Ownership or HostPlaces or None
        That of both which there is.
    arguments : type
        The arguments of a launch here.
    """

    device: Device
    devices: tuple[Device, ...]
    here: tuple[Device, ...]
    is_several = over_gpus = False
    group: ProcessGroup | None = None
    key: tuple[Any, ...] = ()
    owner: Ownership | HostPlaces | None = None
    arguments: type[Arguments] = Arguments
    ownership: Ownership | None = None
    places: HostPlaces | None = None

    def __init__(self, _owner: Any = None, *, device: Any = None, devices: Any = None, buckets: Any = None) -> None:
        if devices is not None:
            raise InvalidArgumentError("a queue over several devices has an owner= of its items: what Graph.partition returns")
        self._set_device(device_of(device))

    def _set_device(self, device: Device) -> None:
        self.device, self.devices, self.here = device, (device,), (device,)

    def make_core(self, first: int, most: int, dtype: np.dtype[Any], kinds: tuple[str, ...] | None) -> CoreQueue | PeerQueues:
        """Return the core's queue with room for `first` items, and for `most` if that is not 0."""
        return self._make_core(CoreQueue, first, most, dtype, kinds)

    def _make_core(
        self, core: type[CoreQueue], first: int, most: int, dtype: np.dtype[Any], kinds: tuple[str, ...] | None
    ) -> CoreQueue:
        slot, stored = ffi.new("atos_queue **"), stored_bytes(dtype.itemsize, kinds is not None)
        check(lib.atos_queue_create(self.device.number, first, stored, slot))
        made = core(ffi.gc(slot[0], lib.atos_queue_destroy), dtype, kinds)
        check(lib.atos_queue_limit(made.form.handle, most))
        return made

    def to_ids(self, items: NDArray[Any]) -> NDArray[Any]:
        """Return items as the host speaks of them."""
        return items

    def check_items(self, items: NDArray[Any]) -> None:
        """Refuse items for a running launch that belong to nobody."""

    def check_launch(self, names: tuple[str, ...], config: Any, options: Any) -> None:
        """Refuse what launches here cannot do yet."""

    def check_inbox(self) -> None:
        """Refuse launches that take items while they run, if there are none here."""

    run = staticmethod(PreparedLaunch._run)  # without a method around it, since each call in Python takes time

    def suit(self, saved: QueueOptions) -> QueueOptions:
        """Return options of a queue that was saved as a queue here has them."""
        return saved


class OneTeam(OneDevice):
    """The site of a queue on a CPU device whose workers have several threads, which take turns in an order that is drawn."""

    def _set_device(self, device: Device) -> None:
        super()._set_device(device)
        self.key = (device.threads_per_worker,)

    @staticmethod
    def run(launch: Any, begin: float, filled: Any = None) -> LaunchStats:
        """Run a launch, with the order that the environment asks for."""
        from ..compile.codegen import team_calls

        team_calls.seed[0] = read_number("ATOS_TEAM_SEED") % 2**64
        return launch._run(begin, filled)  # type: ignore[no-any-return]


class OverDevices(OneDevice):
    """The site of a queue over several devices, each of which has a queue of the items that it owns."""

    is_several = True
    arguments = ArgumentsOverDevices
    ownership: Ownership

    def __init__(self, owner: Any, *, device: Any = None, devices: Any = None, buckets: Any = None) -> None:
        self.ownership = self.owner = owned = check_owner(owner, devices, device)
        self.device, self.devices = owned.local, owned.devices
        self.here = tuple([owned.devices[k] for k in owned.here])
        self.group, self.over_gpus = owned.group, owned.over_gpus
        self.key = (weakref.ref(owned),)

    def make_core(self, first: int, most: int, dtype: np.dtype[Any], kinds: tuple[str, ...] | None) -> PeerQueues:
        """Return one of the core's queues for each device."""
        return PeerQueues(first, most, dtype, self.ownership, kinds)

    def check_items(self, items: NDArray[Any]) -> None:
        """Refuse items that are no vertices."""
        self.ownership.to_numbers(keys_of(items))  # as the host speaks of them

    def check_launch(self, names: tuple[str, ...], config: Any, options: Any) -> None:
        """Refuse what launches over several devices cannot do yet."""
        if not self.ownership.is_alone:
            check_peer_launch(config)

    def check_inbox(self) -> None:
        """Refuse launches that take items while they run, of which only those of one device know."""
        if not self.ownership.is_alone:
            call = "call launch_thread, launch_warp or launch_cta"
            raise LaunchConfigError(f"a launch over several devices has no start() yet; {call}, or use one device")

    def run(self, launch: Any, begin: float, filled: Any = None) -> LaunchStats:
        """Run a launch that all processes come to."""
        ready = filled or launch._fill()  # before each launch all devices take on the same form
        agree_on_launch(self.ownership, ready.ready.launched.name, launch._plan.config)
        return launch._run(begin, ready)  # type: ignore[no-any-return]

    def suit(self, saved: QueueOptions) -> QueueOptions:
        """Return the options with workers that take the oldest items first."""
        return saved._replace(take="oldest")


class OverHosts(OneDevice):
    """The site of a queue over several hosts: on the device of this one, for its vertices."""

    is_several = True
    arguments = ArgumentsOverHosts
    places: HostPlaces

    def __init__(self, owner: Any, **others: Any) -> None:
        self.places = self.owner = check_host_queue(owner.places, others)
        self._set_device(self.places.device)
        self.key = (weakref.ref(self.places),)

    def make_core(self, first: int, most: int, dtype: np.dtype[Any], kinds: tuple[str, ...] | None) -> CoreQueue:
        """Return a queue that takes the items of this host."""
        made = self._make_core(HostQueue, first, most, dtype, kinds)
        made.places = self.places  # type: ignore[attr-defined]
        return made

    def to_ids(self, items: NDArray[Any]) -> NDArray[Any]:
        """Return the ids of vertices."""
        return self.places.ownership.to_ids(items)

    def check_inbox(self) -> None:
        """Refuse launches that take items while they run."""
        raise LaunchConfigError("a launch over several hosts has no start(); call launch_thread, launch_warp or launch_cta")

    def check_launch(self, names: tuple[str, ...], config: Any, options: Any) -> None:
        """Refuse what launches over several hosts cannot do."""
        check_host_launch(" and ".join(names), options, config.debug)

    def run(self, launch: Any, begin: float, filled: Any = None) -> LaunchStats:
        """Run a launch on all hosts, in rounds."""
        name = " and ".join(launch._plan.names)
        return run_by_rounds(launch._queue, name, launch._args, lambda: launch._run(time.perf_counter()))

    def suit(self, saved: QueueOptions) -> QueueOptions:
        """Return the options with workers that take the oldest items first."""
        return saved._replace(take="oldest")


def _on_one_device(owner: None, device: Any = None, **given: Any) -> OneDevice:
    return (OneTeam if device_of(device).threads_per_worker > 1 else OneDevice)(owner, device=device, **given)


_SITES: dict[type, Callable[..., OneDevice]] = {NoneType: _on_one_device, HostPlaces: OverHosts}


def site_of(owner: Any, **given: Any) -> OneDevice:
    """Return the site of a queue with an owner, or None, that is made with `device`, `devices` and `buckets` or without."""
    return _SITES.get(type(getattr(owner, "places", owner)), OverDevices)(owner, **given)
