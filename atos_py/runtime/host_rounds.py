"""Launches over several hosts, in bulk-synchronous rounds: each host runs what it has, then they exchange what is for others.

A round is a launch on the device of each host, relaxed as ever, and an exchange of what its tasks did to vertices of others. A
vertex whose element that lowered is pushed by its owner for the next round. The launch ends after the round in which no host
has pushed any: then all queues are empty, and no message is under way, since every host has taken part in the exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..arrays.array import to_host
from ..arrays.over_hosts import HostArray, HostPlaces
from ..errors import DistributedError, LaunchConfigError, UnsupportedTypeError
from .core_queue import CoreQueue
from .stats import DeviceStats, LaunchStats

__all__ = ["HostQueue", "check_host_launch", "check_host_queue", "host_arrays", "run_by_rounds"]

_REFUSED = ("barrier", "each_round", "idle", "trace", "progress", "stream")


class HostQueue(CoreQueue):
    """The core's queue on one of several hosts: of items that are pushed, ids of vertices, it takes those of this host."""

    places: HostPlaces

    def push(self, items: Any, task: str | None, priorities: Any = None) -> None:
        """Push the items of this host."""
        own = _own_items(self.places, np.asarray(to_host(items), self.form.dtype))
        super().push(own, task, priorities)

    def push_numbers(self, numbers: Any) -> None:
        """Push vertices of this host, by their numbers inside tasks."""
        super().push(numbers, None, None)


def check_host_queue(places: HostPlaces, others: Mapping[str, Any]) -> HostPlaces:
    """Return the hosts that own the items of a queue; refuse what such a queue does not take."""
    for name, value in others.items():
        if value is not None:
            raise LaunchConfigError(f"a queue over several hosts has no {name}= (got {value!r:.80}); leave it out")
    return places


def check_host_launch(name: str, options: Any, debug: bool | str) -> None:
    """Refuse what a launch over several hosts cannot do."""
    if debug == "races":
        raise LaunchConfigError(f'a launch of {name} over several hosts has no debug="races"; run it on one host')
    for option in _REFUSED:
        if options.get(option) not in (None, False):
            raise LaunchConfigError(
                f"a launch of {name} over several hosts has no {option}=, since their rounds are exchanges; leave it out"
            )


def host_arrays(args: Sequence[Any]) -> Iterator[HostArray]:
    """Yield the arrays over hosts among the arguments of a launch."""
    for value in args:
        if isinstance(value, HostArray):
            yield value
        elif isinstance(value, tuple):
            yield from host_arrays(value)


def run_by_rounds(queue: Any, name: str, args: Sequence[Any], launch: Callable[[], LaunchStats]) -> LaunchStats:
    """Launch on all hosts, and exchange, until no host has work left; return the statistics of all.

    Raises
    ------
    DistributedError
        If the launch failed on another host, which has the error.
    """
    places: HostPlaces = queue.places
    hosts = places.hosts
    arrays = list({id(array): array for array in host_arrays(args)}.values())
    hosts.messages.agree(f"a launch of {name} with {', '.join(map(repr, arrays)) or 'no arrays over hosts'}")
    runs = []
    while True:
        failure = None
        try:
            runs.append(launch())
        except BaseException as error:  # the others wait for this host's part of the exchange
            failure = error
        if hosts.messages.any(failure is not None):
            if failure is not None:
                raise failure
            raise DistributedError(f"{name} has failed on another host, which has the error; what waits here is in the queue")
        pushed = [array._exchange() for array in arrays]
        vertices = np.unique(np.concatenate(pushed)) if pushed else np.empty(0, np.int64)
        sent, stopped = hosts.messages.total(np.array([vertices.size, runs[-1].stopped], np.int64)).tolist()
        if sent == 0:
            break
        # Their elements are lowered already, so that nobody would push them again: there has to be room.
        queue.max_capacity = max(queue.max_capacity, len(queue) + vertices.size)
        queue._core.push_numbers(vertices.astype(queue.dtype))
        if stopped:
            break
    mine = LaunchStats.total(runs)
    told = hosts.messages.gather(np.array([[mine.tasks_run, mine.tasks_pushed, mine.num_workers, mine.grown]]))
    devices = tuple(DeviceStats(f"host {k}", *counts) for k, counts in enumerate(told.tolist()))
    run, sent, workers, grown = told.sum(axis=0).tolist()
    return replace(
        mine,
        tasks_run=run,
        tasks_pushed=sent,
        num_workers=workers,
        grown=grown,
        devices=devices,
        rounds=len(runs),
        stopped=bool(stopped),
        waiting=() if stopped else mine.waiting,
    )


def _own_items(places: HostPlaces, items: Any) -> Any:
    """Return the numbers of those items, ids of vertices, that this host owns."""
    if items.dtype.names is not None:
        raise UnsupportedTypeError("the items of a queue over several hosts are vertices")
    numbers = places.ownership.to_numbers(items)
    return numbers[(numbers >= places.own.start) & (numbers < places.own.stop)]
