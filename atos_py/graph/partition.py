"""The parts of a graph over several devices: 1D by vertex, each with its edges on the device that owns it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays.array import Array, asarray
from ..arrays.ownership import Ownership
from ..core.devices import Device
from ..errors import InvalidArgumentError

__all__ = ["Partition", "check_partition_order", "make_partition"]

_ORDERS = ("keep", "random")


def check_partition_order(order: Any) -> str:
    """Return the name of an order; raise if it is none."""
    if not isinstance(order, str) or order not in _ORDERS:
        raise InvalidArgumentError(f"order must be one of {', '.join(_ORDERS)} (got {order!r:.80})")
    return order


class _Rows(NamedTuple):
    """The rows of a CSR as tasks take them, and the id of each vertex."""

    indptr: Array
    indices: Array
    weights: Array | None
    original: Array


class Partition(_Rows):
    """The parts of a graph over several devices, as `Graph.partition` makes them.

    A task takes it in place of the graph: `indptr`, `indices` and `weights` are those of a graph whose vertices have the
    numbers that they have inside tasks. `original` has their ids.

    Attributes
    ----------
    indptr, indices : Array
    weights : Array or None
    original : Array
        The id of each vertex, by its number inside tasks, uint32: for results that are ids themselves.

    Examples
    --------
    >>> parts = atos.generate.road(30, 1.0, device="cpu").partition(["cpu:0", "cpu:1"], order="random")
    >>> parts
    Partition(900 vertices, 3,480 directed edges, over cpu, cpu:1)
    """

    ownership: Ownership

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

    def __repr__(self) -> str:
        over = ", ".join(map(str, self.devices))
        return f"Partition({self.num_vertices:,} vertices, {self.num_edges:,} directed edges, over {over})"


def make_partition(rows: tuple[Array, Array, Array | None], devices: tuple[Device, ...], ids: Array | None) -> Partition:
    """Return the parts of a graph whose vertices have these ids, or their numbers as ids."""
    size = rows[0].size - 1
    numbers = None
    original = np.arange(size, dtype=np.uint32) if ids is None else np.asarray(ids)
    if ids is not None:
        numbers = np.empty(size, np.uint32)
        numbers[original] = np.arange(size, dtype=np.uint32)
    parts = Partition(*rows, asarray(original, device=devices[0], readonly=True))
    parts.ownership = Ownership(devices, size, None if ids is None else original, numbers)
    return parts
