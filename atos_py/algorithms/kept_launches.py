"""Queues of algorithms with the launches that were prepared on them, kept with the graph from one call to the next.

Making a queue and preparing its launches takes longer than a search of a small graph. A call takes a queue that no other call
has, or makes one, and hands it back once it is empty. A graph has a few of them; `release_memory` frees those that no call has.
Arrays that a call needs while it runs, and that are not its result, are its workspace, and are kept with the queue.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

from ..arrays.array import Array
from ..core.devices import Device, on_release
from ..graph.graph_arrays import GraphArrays
from ..graph.kept import forget, kept
from ..runtime.launch import PreparedLaunch
from ..runtime.queue import Queue

__all__ = ["KeptQueue", "take_queue"]

_NAME = "queues"
_MOST_IDLE = 8  # of a graph
_PART = 256  # of the memory of a device that a queue takes at most, or its workspace, to be kept
_SLOT_BYTES = 16  # at most, of items of 4 or 8 bytes
_T = TypeVar("_T")
_lock = threading.Lock()


class KeptQueue:
    """A queue of a call, and the launches that were prepared on it, by what tells them apart, without their arguments."""

    __slots__ = ("_home", "_key", "_workspace", "prepared", "queue")

    def __init__(self, queue: Queue, key: Hashable, home: list[KeptQueue] | None) -> None:
        self.queue, self._key, self._home = queue, key, home
        self.prepared: dict[Hashable, PreparedLaunch] = {}
        self._workspace: dict[Hashable, Any] = {}

    def workspace(self, name: Hashable, make: Callable[[], _T]) -> _T:
        """Return arrays that calls use one after the other, as the last call has left them; the first one makes them."""
        found: _T | None = self._workspace.get(name)
        if found is None:
            found = make()
            if self._home is not None and _bytes_of(found) * _PART <= _memory_of(self.queue.device):
                self._workspace[name] = found
        return found

    def hand_back(self) -> None:
        """Keep the queue, which is empty, for the next call."""
        home, self._home = self._home, None  # which would keep itself alive
        if home is not None:
            with _lock:
                home.append(self)
                del home[:-_MOST_IDLE]


def take_queue(graph: GraphArrays, make: Callable[[], Queue], options: Mapping[str, Any], *key: Hashable) -> KeptQueue:
    """Return a queue for a call with these options of launches, and whatever else the key says: one that is kept, or a new one.

    A queue is not kept if it is large, or if the options have a time limit, of which there are many values.
    """
    if "timeout" in options:
        return KeptQueue(make(), None, None)
    home: list[KeptQueue] = kept(graph).setdefault(_NAME, [])
    # With the types of values, since True is 1, which some options do not take.
    key = *key, os.environ.get("ATOS_DEBUG"), *options.items(), *map(type, options.values())
    with _lock:
        for place, each in enumerate(home):
            if each._key == key:
                each._home = home
                return home.pop(place)
    queue = make()
    is_small = queue.capacity * _SLOT_BYTES * _PART <= _memory_of(queue.device)
    return KeptQueue(queue, key, home if is_small else None)


def _bytes_of(arrays: Any) -> int:
    """Return the size of an array, or of those in a tuple."""
    if isinstance(arrays, tuple):
        return sum(map(_bytes_of, arrays))
    return arrays.nbytes if isinstance(arrays, Array) else 0


@functools.cache
def _memory_of(device: Device) -> int:
    return device.memory[1]


class _Releaser:
    """Frees the queues that no call has, when memory is released."""

    def release(self) -> None:
        """Forget all queues."""
        forget(_NAME)


_releaser = _Releaser()
on_release(_releaser.release)
