"""The parts of a graph over several devices: 1D by vertex, each with its edges on the device that owns it."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays.array import Array, asarray
from ..arrays.ownership import Ownership, check_devices, chunk_of
from ..arrays.shared import shared_zeros
from ..arrays.spread import spread_zeros
from ..core.devices import Device
from ..core.devices import device as device_of
from ..core.devices import devices as all_devices
from ..core.process_group import ProcessGroup, current_group
from ..errors import InvalidArgumentError
from ..support.not_copied import NotCopied
from .csr import CSR
from .graph_arrays import SameArrays
from .reorder import random_order

__all__ = [
    "Partition",
    "Placement",
    "check_partition_order",
    "devices_of",
    "make_partition",
    "order_by_degree",
    "placement_of",
    "suit_devices",
]

_ORDERS = ("keep", "random", "degree")


def check_partition_order(order: Any) -> str:
    """Return the name of an order; raise if there is none of this name."""
    if not isinstance(order, str) or order not in _ORDERS:
        raise InvalidArgumentError(f"order must be one of {', '.join(_ORDERS)} (got {order!r:.80})")
    return order


def order_by_degree(degrees: NDArray[Any], count: int) -> NDArray[np.uint32]:
    """Return the vertices of each of `count` parts, one after another, by falling degree, so that all have about as many edges.

    Vertices are dealt to the parts in that order, in turns that change direction, as many to each as it owns; the last part may
    own fewer.
    """
    n = len(degrees)
    ownership = np.diff([min(k * chunk_of(n, count), n) for k in range(count + 1)])
    owner = np.empty(n, np.int64)
    by_degree = np.argsort(-degrees.astype(np.int64), kind="stable")
    left, first = by_degree, 0
    for least in np.unique(ownership):  # parts with room for so many get one in each turn
        takers = np.flatnonzero(ownership >= least)
        turns = int(least) - first
        rounds = np.tile(takers, (turns, 1))
        rounds[1::2] = rounds[1::2, ::-1]
        owner[left[: turns * len(takers)]] = rounds.ravel()
        left, first = left[turns * len(takers) :], int(least)
    return by_degree[np.argsort(owner[by_degree], kind="stable")].astype(np.uint32)


# Bytes for a vertex and an edge of a graph with weights, and of what algorithms have for each.
_BYTES_OF_VERTEX, _BYTES_OF_EDGE = 64, 16


def suit_devices(num_vertices: int, num_edges: int, gpus: Sequence[Device], best: Device, room: int) -> tuple[Device, ...]:
    """Return all GPUs for a graph that does not fit the `room` on the best device, in bytes, and that device for any other.

    On one GPU most algorithms are faster than on two (docs/performance/two-gpus.md).
    """
    fits = num_vertices * _BYTES_OF_VERTEX + num_edges * _BYTES_OF_EDGE <= room
    return (best,) if fits or len(gpus) < 2 else tuple(gpus)


def devices_of(given: Any, num_vertices: int, num_edges: int) -> tuple[tuple[Device, ...], ProcessGroup | None]:
    """Return the devices that parts of a graph are for; if none are given, one of each process of the group of this one."""
    if isinstance(given, str) and given == "auto":
        gpus = [each for each in all_devices() if each.kind == "cuda"]
        best = device_of(None)
        return check_devices(suit_devices(num_vertices, num_edges, gpus, best, best.memory[0])), None
    if given is not None:
        return check_devices(given), None
    group = current_group()
    if group is None:
        raise InvalidArgumentError(
            "which devices the parts are for must be said, such as ['cpu:0', 'cpu:1']; several processes, one device each, call"
            " atos.distributed.init() first"
        )
    return group.devices, group


class _Rows(NamedTuple):
    """The rows of a CSR as tasks take them, and the id of each vertex."""

    indptr: Array
    indices: Array
    weights: Array | None
    original: Array


class Partition(NotCopied, SameArrays, _Rows):
    """The parts of a graph over several devices, as `Graph.partition` makes them.

    A task takes it in place of the graph: `indptr`, `indices` and `weights` are those of a graph whose vertices have the
    numbers that they have inside tasks. `original` has their ids.

    Attributes
    ----------
    indptr, indices : Array
    weights : Array or None
    original : Array
        The id of each vertex, by its number inside tasks, uint32: for results that are ids themselves.
    labels : numpy.ndarray or None
        By the id of each vertex, the one that the vertex has in the file, if `Graph.load` has renumbered them.

    Examples
    --------
    >>> parts = atos.generate.road(30, 1.0, device="cpu").partition(["cpu:0", "cpu:1"], order="random")
    >>> parts
    Partition(900 vertices, 3,480 directed edges, over cpu, cpu:1)
    """

    ownership: Ownership
    labels: NDArray[np.int64] | None = None

    _not_copied = (
        "the parts of a graph lie on their devices, and are neither copied nor pickled: copy the graph, and call partition()"
    )

    @property
    def num_vertices(self) -> int:
        """Number of vertices."""
        return self.indptr.size - 1

    @property
    def num_edges(self) -> int:
        """Number of directed edges; an undirected edge counts twice."""
        return self.indices.size

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that own vertices."""
        return self.ownership.devices

    def _check_owner(self, argument: str, owner: Any, where: str) -> None:
        self.ownership.check_owner(argument, owner, where)

    def _labeled(self, labels: NDArray[np.int64] | None) -> Partition:
        """Return the parts, whose vertices have these labels from now on."""
        self.labels = labels
        return self

    def __repr__(self) -> str:
        over = ", ".join(map(str, self.devices))
        return f"Partition({self.num_vertices:,} vertices, {self.num_edges:,} directed edges, over {over})"


def make_partition(
    rows: tuple[Array, Array, Array | None],
    devices: tuple[Device, ...],
    ids: Array | None,
    group: ProcessGroup | None = None,
) -> Partition:
    """Return the parts of a graph whose vertices have these ids, or their numbers as ids."""
    size = rows[0].size - 1
    numbers = None
    original = np.arange(size, dtype=np.uint32) if ids is None else np.asarray(ids)
    if ids is not None:
        numbers = np.empty(size, np.uint32)
        numbers[original] = np.arange(size, dtype=np.uint32)
    ownership = Ownership(devices, size, None if ids is None else original, numbers, group)
    if group is not None:
        parts = _share(group, ownership, Partition(*rows, asarray(original, device="cpu")))
    elif ownership.over_gpus:
        parts = _spread(ownership, Partition(*rows, asarray(original, device="cpu")))
    else:
        parts = Partition._make(None if part is None else _on(devices[0], part) for part in (*rows, original))
    parts.ownership = ownership
    return parts


def _on(device: Device, values: Any) -> Array:
    """Return an array that tasks only read, itself if it is on the device; results over parts are of no other library."""
    found = asarray(values, device=device, readonly=True)
    if found.library is None:
        return found
    return Array(found.pointer, found.shape, found.dtype, found.device, readonly=True, owner=found)


class Placement:
    """Devices and vertex numbers of the parts of a graph that is still to be built."""

    def __init__(self, devices: tuple[Device, ...] | None, order: str) -> None:
        self._devices = devices  # None: those that suit the graph
        self._is_random = order == "random"
        self._ids: NDArray[np.uint32] | None = None

    def renumber(self, num_vertices: int, num_edges: int) -> NDArray[np.uint32] | None:
        """Return the numbers of the vertices of a graph with at most so many edges; None if they keep their ids."""
        if not self._is_random or len(self._devices_of(num_vertices, num_edges)) == 1:
            return None
        self._ids = random_order(num_vertices, 0)
        numbers = np.empty(num_vertices, np.uint32)
        numbers[self._ids] = np.arange(num_vertices, dtype=np.uint32)
        return numbers

    def _devices_of(self, num_vertices: int, num_edges: int) -> tuple[Device, ...]:
        """Return the devices, which are chosen once."""
        if self._devices is None:
            self._devices = devices_of("auto", num_vertices, num_edges)[0]
        return self._devices

    def parts(self, csr: CSR, labels: NDArray[np.int64] | None = None) -> Partition:
        """Return the parts of a graph that was built with these numbers."""
        devices = self._devices_of(csr.indptr.size - 1, csr.indices.size)
        host = "cpu" if devices[0].kind == "cuda" else devices[0]  # from where each GPU gets its own rows
        indptr, indices, weights = (None if part is None else asarray(part, device=host, readonly=True) for part in csr)
        assert indptr is not None and indices is not None  # noqa: PT018 - for mypy
        ids = None if self._ids is None else asarray(self._ids, device=host)
        return make_partition((indptr, indices, weights), devices, ids)._labeled(labels)


def placement_of(device: Any, devices: Any, order: Any) -> Placement | None:
    """Return where a graph goes that was asked for in parts for several `devices`; None if it is to be whole."""
    check_partition_order(order)
    if devices is None:
        if order != "keep":
            raise InvalidArgumentError(f"order= is for parts over several devices=, which are not given (got order={order!r})")
        return None
    if order == "degree":
        raise InvalidArgumentError(
            "order='degree' needs all degrees before rows are placed, so a whole graph: make it with device='cpu', and call"
            " partition(devices, order='degree')"
        )
    if device is not None:
        raise InvalidArgumentError(f"give one device= or several devices=, not both (got {device!r:.80} and {devices!r:.80})")
    return Placement(None if isinstance(devices, str) and devices == "auto" else check_devices(devices), order)


def _spread(ownership: Ownership, rows: Partition) -> Partition:
    """Return rows of which each GPU has its own."""
    spread: list[Array | None] = []
    for array, borders in zip(rows, _borders(ownership, rows), strict=True):
        if array is None:
            spread.append(None)
            continue
        made = spread_zeros(array.shape, array.dtype, ownership.devices, borders)
        made[...] = array
        made.readonly = True
        spread.append(made)
    return Partition._make(spread)


def _share(group: ProcessGroup, ownership: Ownership, rows: Partition) -> Partition:
    """Return rows that all processes have in common, of which each writes its own."""
    check = 0
    values = [None if array is None else np.asarray(array) for array in rows]
    for each in values:
        check = zlib.crc32(b"" if each is None else each.data, check)
    shapes = ", ".join("no weights" if each is None else f"{each.size} of {each.dtype}" for each in values)
    shared: list[Array | None] = []
    with ownership.all_at(f"the parts of a graph ({shapes}, checksum {check:08x})"):
        for each, borders in zip(values, _borders(ownership, rows), strict=True):
            if each is None:
                shared.append(None)
                continue
            made = shared_zeros(group, each.shape, each.dtype, borders=borders)
            own = slice(borders[group.rank], borders[group.rank + 1])
            if own.start < own.stop:
                made[own] = each[own]
            made.readonly = True
            shared.append(made)
    return Partition._make(shared)


def _borders(ownership: Ownership, rows: Partition) -> tuple[Sequence[int], ...]:
    """Return the first element of each device, and the number of all, of each of the rows."""
    vertices = ownership.borders
    edges = [int(rows.indptr[vertex]) for vertex in vertices]
    return [*vertices[:-1], vertices[-1] + 1], edges, edges, vertices
