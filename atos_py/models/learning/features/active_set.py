"""Sets of active vertices: a bit for each vertex, and how many there are, in memory of the device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....arrays.array import zeros
from ....compile.atomics import atomic_add, atomic_or_
from ....core.devices import Device

__all__ = ["ActiveSet", "activate", "is_active", "make_set"]

_PLACES = 1024  # that counts are spread over: one address would delay thousands of threads


class ActiveSet:
    """Vertices that are active: what a map runs on, and what it returns.

    Attributes
    ----------
    bits : Array
        Bit v % 32 of element v // 32 is vertex v, uint32.

    Examples
    --------
    >>> from atos_py import features
    >>> x = atos.zeros((4, 2))
    >>> maps = features.Maps(atos.Graph.from_edges([0, 1, 2], [1, 2, 3]), 2, x)
    >>> active = maps.vertex_map(lambda f, v, x: v + f > 2)
    >>> print(active.vertices(), active.count, active.num_edges)
    [2 3] 2 1
    """

    def __init__(self, num_vertices: int, device: Device) -> None:
        self.num_vertices = num_vertices
        self.bits = zeros(-(-num_vertices // 32), dtype=np.uint32, device=device)
        self._counts = zeros((2, _PLACES), dtype=np.int64, device=device)

    @property
    def count(self) -> int:
        """The number of active vertices."""
        return self.totals()[0]

    @property
    def num_edges(self) -> int:
        """The number of edges that leave them: the work of an edge map."""
        return self.totals()[1]

    def totals(self) -> tuple[int, int]:
        """Return `count` and `num_edges`, read at once.

        Examples
        --------
        >>> from atos_py import features
        >>> features.Maps(atos.Graph.from_edges([0, 1], [1, 2]), 2, atos.zeros((3, 2))).all().totals()
        (3, 2)
        """
        count, num_edges = self._counts.to_numpy().sum(axis=1).tolist()
        return count, num_edges

    def __bool__(self) -> bool:
        """Whether any vertex is active."""
        return self.count > 0

    def vertices(self) -> NDArray[Any]:
        """Return the active vertices in ascending order, on the host.

        Examples
        --------
        >>> from atos_py import features
        >>> maps = features.Maps(atos.Graph.from_edges([0, 1], [1, 2]), 2, atos.zeros((3, 2)))
        >>> maps.vertex_map(lambda f, v, x: v != 1).vertices()
        array([0, 2])
        """
        flags = np.unpackbits(self.bits.to_numpy().view(np.uint8), bitorder="little")
        return np.flatnonzero(flags)


def make_set(vertices: NDArray[Any], degrees: NDArray[Any], device: Device) -> ActiveSet:
    """Return the set of some vertices, given all degrees."""
    made = ActiveSet(degrees.size, device)
    flags = np.zeros(made.bits.size * 32, bool)
    flags[vertices] = True
    made.bits[:] = np.packbits(flags, bitorder="little").view(np.uint32)
    made._counts[0, 0], made._counts[1, 0] = flags.sum(), degrees[flags[: degrees.size]].sum()
    return made


def is_active(bits, v):  # type: ignore[no-untyped-def]
    """Whether a vertex is active; for tasks."""
    return bits[v >> 5] >> (v & 31) & 1 == 1


def activate(bits, counts, v, indptr):  # type: ignore[no-untyped-def]
    """Make a vertex active, by one thread; for tasks."""
    bit = np.uint32(1 << (v & 31))
    if bits[v >> 5] & bit == 0 and atomic_or_(bits, v >> 5, bit) & bit == 0:
        atomic_add(counts, (0, v % _PLACES), 1)
        atomic_add(counts, (1, v % _PLACES), indptr[v + 1] - indptr[v])
