"""The parts of a graph over several hosts: each has the edges of the vertices that it owns, and none of the others."""

from __future__ import annotations

import zlib
from typing import NamedTuple

import numpy as np

from ..arrays.array import Array, asarray
from ..arrays.over_hosts import HostPlaces
from ..arrays.ownership import Ownership
from ..core.host_group import HostGroup
from ..support.not_copied import NotCopied
from .graph_arrays import SameArrays
from .symmetry import is_symmetric
from .weight_range import WeightRange, weight_range

__all__ = ["HostPartition", "make_host_partition"]


class _Rows(NamedTuple):
    """The rows of a CSR as tasks take them, those of other hosts empty, and the id of each vertex."""

    indptr: Array
    indices: Array
    weights: Array | None
    original: Array


class WholeGraph(NamedTuple):
    """Properties of the graph of all hosts, which each knows."""

    num_edges: int
    is_symmetric: bool
    weights: WeightRange | None


class HostPartition(NotCopied, SameArrays, _Rows):
    """The part of a graph over several hosts that this one has, as `Graph.partition` makes it.

    A task takes it in place of the graph. Vertices of other hosts have no edges here. `original` has the ids of all vertices.

    Examples
    --------
    >>> with atos.distributed.init(engine="mpi"):
    ...     print(atos.generate.road(3, 1.0, device="cpu").partition())
    HostPartition(9 vertices, 24 directed edges, 24 here, host 0 of 1 on cpu)
    """

    places: HostPlaces
    whole: WholeGraph

    _not_copied = (
        "the parts of a graph lie on their hosts, and are neither copied nor pickled: copy the graph, and call partition()"
    )

    @property
    def num_vertices(self) -> int:
        """Number of vertices, of all hosts."""
        return self.indptr.size - 1

    @property
    def num_edges(self) -> int:
        """Number of directed edges, of all hosts."""
        return self.whole.num_edges

    def __repr__(self) -> str:
        hosts = self.places.hosts
        counts = f"{self.num_vertices:,} vertices, {self.num_edges:,} directed edges, {self.indices.size:,} here"
        return f"HostPartition({counts}, host {hosts.rank} of {hosts.world_size} on {self.places.device})"


def make_host_partition(rows: tuple[Array, Array, Array | None], ids: Array | None, hosts: HostGroup) -> HostPartition:
    """Return the part of this host of a graph that all of them have, and whose vertices have these ids."""
    indptr, indices, weights = (None if part is None else part.to_numpy() for part in rows)
    assert indptr is not None and indices is not None  # noqa: PT018 - for mypy
    size, device = indptr.size - 1, rows[0].device
    original = np.arange(size, dtype=np.uint32) if ids is None else np.asarray(ids.to_numpy())
    numbers = None
    if ids is not None:
        numbers = np.empty(size, np.uint32)
        numbers[original] = np.arange(size, dtype=np.uint32)
    check = 0
    for part in (indptr, indices, original, *([] if weights is None else [weights])):
        check = zlib.crc32(np.ascontiguousarray(part).data, check)
    hosts.messages.agree(f"the parts of a graph of {size:,} vertices and {indices.size:,} directed edges, checksum {check:08x}")
    ownership = Ownership((device,) * hosts.world_size, size, None if ids is None else original, numbers)
    places = HostPlaces(hosts, ownership, device)
    first, last = (int(indptr[vertex]) for vertex in (places.own.start, places.own.stop))
    own = [np.clip(indptr, first, last) - first, indices[first:last], None if weights is None else weights[first:last]]
    own[0] = own[0].astype(indptr.dtype)
    kept = [None if part is None else asarray(part, device=device, readonly=True, copy=True) for part in (*own, original)]
    made = HostPartition(*kept)  # type: ignore[arg-type]
    weights_in_all = None if rows[2] is None else weight_range(rows[2])
    made.places, made.whole = places, WholeGraph(indices.size, is_symmetric(*rows[:2]), weights_in_all)
    return made
