"""The call of triangle counting, its tasks, its verifier and its entry."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.any_array import AnyArray
from ...arrays.array import empty, zeros
from ...compile.atomics import atomic_add
from ...compile.host_kernels import compile_kernel, even_rows, num_threads, parallel_map
from ...compile.task import task
from ...errors import VerificationError
from ...graph.graph import Graph
from ...graph.graph_arrays import check_graph
from ...operators.ranges import range_items, split_range
from ...operators.scratch_table import add_to_count, fill_table, find_slot, table_bits
from ...operators.vertex_map import vertex_map
from ...runtime.launch_options import LaunchOptions, Unpack
from ...runtime.queue import Queue
from ...runtime.stats import LaunchStats
from ...support.shown import ShownFields
from ...support.validation import check_int
from ..arguments import first_of, per_vertex, rows_on_host
from ..frame import algorithm, verifier
from ..kept_launches import take_queue
from ..launch_sequence import LaunchSequence
from ..registry import register
from .orientation import Oriented, comes_before, is_in_row, range_size
from .oriented_rows import divide_rows, oriented_rows

__all__ = ["TriangleResult", "count_in_rows", "count_triangles", "verify_triangles"]

_PAIRS_MAX_LENGTH = 4  # of a row of which one thread looks for all pairs
_SCRATCH_BYTES = {"thread": 128, "warp": 4096, "cta": 32768}  # for a table


def count_pairs(u, rows, triangles):  # type: ignore[no-untyped-def]
    """Count the triangles of which u is the smallest vertex, one thread looking for the edge between each two others."""
    begin = np.int64(rows.indptr[u])
    end = begin + rows.length[u]
    found = 0
    for i in range(begin, end):
        v = rows.indices[i]
        shared = 0
        for k in range(begin, i):
            w = rows.indices[k]
            if is_in_row(v, w, rows) if comes_before(v, w, rows.indptr) else is_in_row(w, v, rows):
                atomic_add(triangles, w, 1)
                shared += 1
        if shared > 0:
            atomic_add(triangles, v, shared)
            found += shared
    if found > 0:
        atomic_add(triangles, u, found)
    return found


def is_intersected_at(x, y, is_later, rows, pairs_max_length):  # type: ignore[no-untyped-def]
    """Whether the rows of neighbors x and y are intersected by the table of x, a long one: y has a shorter row.

    Not if the row of the one that comes first is so short that one thread looks for all pairs of it.
    """
    other, own = rows.length[y], rows.length[x]
    return (is_later or other > pairs_max_length) and (other < own or (other == own and is_later))


def count_by_table(worker, x, rows, pairs_max_length, triangles):  # type: ignore[no-untyped-def]
    """Count the triangles that the row of x makes with shorter rows of its neighbors, by all threads of a worker."""
    table = worker.scratch(np.uint32)
    half = table.size >> 1
    begin, end = np.int64(rows.indptr[x]), np.int64(rows.indptr[x + 1])
    later, degree = np.int64(rows.length[x]), np.int64(rows.degree[x])
    group = worker.group(8)
    found = 0
    for first in range(begin, begin + later, half >> 1):
        last = min(first + (half >> 1), begin + later)
        bits = table_bits(last - first, half)
        fill_table(worker, rows.indices, first, last, table, bits)
        for i in range(group.index, degree, group.count):
            y = rows.indices[begin + i if i < later else end - 1 - (i - later)]
            if is_intersected_at(x, y, i < later, rows, pairs_max_length):
                row = np.int64(rows.indptr[y])
                shared = 0
                for k in group.split(range(row, row + rows.length[y])):
                    w = np.int64(rows.indices[k])
                    slot, entry = find_slot(w, table, bits)
                    hit = 1 if entry == w else 0
                    shared += hit
                    add_to_count(worker, table, slot, hit)
                shared = group.sum(shared)
                if group.rank == 0 and shared > 0:
                    atomic_add(triangles, y, shared)
                    found += shared
        worker.sync()
        for slot in worker.split(1 << bits):
            if table[half + slot] > 0:
                atomic_add(triangles, table[slot], table[half + slot])
        worker.sync()  # before the next part overwrites the table
    found = worker.sum(found)
    if worker.rank == 0 and found > 0:
        atomic_add(triangles, x, found)
    return found if worker.rank == 0 else 0


@task(max_registers={"cta": (64, None)})
def count_in_rows(worker, item, size, rows, pairs_max_length, triangles, total):  # type: ignore[no-untyped-def]
    """Count the triangles of which the smallest vertex is in a range."""
    n = rows.length.size
    first = item * size
    found, any_long = 0, False
    for u in split_range(worker, item, n, size):
        if rows.length[u] > pairs_max_length:
            any_long = True
        elif rows.length[u] > 1:
            found += count_pairs(u, rows, triangles)
    if worker.any(any_long):
        for u in range(first, min(first + size, n)):
            if rows.length[u] > pairs_max_length:
                found += count_by_table(worker, u, rows, pairs_max_length, triangles)
    found = worker.sum(found)
    if worker.rank == 0 and found > 0:
        atomic_add(total, 0, found)


@partial(replace, max_registers={"cta": (48, 64, None)})
@vertex_map
def divide(v, degree, triangles, clustering):  # type: ignore[no-untyped-def]
    """Set the clustering coefficient of a vertex."""
    clustering[v] = 2 * triangles[v] / (degree[v] * (degree[v] - 1)) if degree[v] > 1 else 0.0


@dataclass(frozen=True, eq=False)
class TriangleResult(ShownFields):
    """Result of `count_triangles`.

    Attributes
    ----------
    total : int
        Triangles in the graph.
    triangles : Array, or an array of the library that the graph's arrays came from
        Triangles that each vertex is in, int64.
    clustering : as `triangles`
        Which part of the pairs of different neighbors of each vertex is joined by an edge, float64; 0 where there is no pair.
    stats : LaunchStats

    Examples
    --------
    >>> result = atos.count_triangles(atos.Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3], symmetrize=True))
    >>> print(result.total, result.triangles[:], result.clustering.to_numpy().round(2))
    1 [1 1 1 0] [1.   1.   0.33 0.  ]
    """

    total: int
    triangles: AnyArray
    clustering: AnyArray
    stats: LaunchStats


@algorithm()
def count_triangles(graph: Graph, *, worker: str | None = None, **launch_options: Unpack[LaunchOptions]) -> TriangleResult:
    """Count the triangles of a graph, those of each vertex, and compute the clustering coefficients.

    Parameters
    ----------
    graph : Graph
        Taken as undirected, as `Graph.to_symmetric` makes it. Loops are ignored, and parallel edges are one. If neighbors are
        not in ascending order, they are sorted first. What depends on the graph alone is kept for the next call.
    {launch_options}
        `shared_memory`, at least 64 bytes, is for a table of 8 bytes for each vertex of a row; longer rows take more passes.

    References
    ----------
    Pandey et al., "TRUST: triangle counting reloaded on GPUs", IEEE TPDS 32 (2021).

    Examples
    --------
    >>> graph = atos.Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3], symmetrize=True)
    >>> atos.count_triangles(graph).triangles.to_numpy()
    array([1, 1, 1, 0])
    """
    check_int("shared_memory", launch_options.get("shared_memory", 64), 64, 1 << 20)
    undirected = graph.to_symmetric()
    n, device = graph.num_vertices, graph.device
    size = range_size(undirected.num_edges, n)
    items = range_items(n, size)
    room = max(len(items), 1)
    queue = take_queue(undirected, lambda: Queue(room, device=device), launch_options, "count_triangles", worker)
    launches = LaunchSequence("count_triangles", queue, launch_options, worker)
    table = _SCRATCH_BYTES[(worker or "cta") if device.kind == "cuda" else "cta"]
    triangles, total = zeros(n, dtype=np.int64, device=device), zeros(1, dtype=np.int64, device=device)
    clustering = empty(n, dtype=np.float64, device=device)

    def count(rows: Oriented, launches: LaunchSequence) -> None:
        arguments = size, rows, _PAIRS_MAX_LENGTH, triangles, total
        launches.launch(items, count_in_rows, *arguments, defaults={"shared_memory": table})
        launches.over_vertices(divide, n, rows.degree, triangles, clustering)

    launches.compile_ahead(graph.indptr.dtype, lambda recorder: count(divide_rows(undirected, recorder)[0], recorder))
    count(oriented_rows(undirected, launches), launches)
    launches.finish()
    return TriangleResult(int(total[0]), triangles, clustering, launches.total(count_in_rows.name, like=launches.runs[-2]))  # type: ignore[arg-type]


def _mark_kernel(
    indptr: Any, indices: Any, mark: Any, counts: Any, first: int, end: int
) -> None:  # pragma: no cover - compiled
    """Count the triangles of which the first vertex is one of `first` to `end`, marking the neighbors of one at a time."""
    for u in range(first, end):
        for edge in range(indptr[u], indptr[u + 1]):
            mark[indices[edge]] = u
        for edge in range(indptr[u], indptr[u + 1]):
            v = indices[edge]
            for other in range(indptr[v], indptr[v + 1]):
                w = indices[other]
                if mark[w] == u:
                    counts[u] += 1
                    counts[v] += 1
                    counts[w] += 1


def find_host_triangles(graph: Graph) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the triangles that each vertex is in, and its different neighbors, by sorting and marking on the host."""
    check_graph(graph)
    indptr, indices = rows_on_host(graph)
    n = indptr.size - 1
    rank = np.empty(n, np.int64)
    rank[np.argsort(np.diff(indptr), kind="stable")] = np.arange(n)  # any order will do; this one saves work
    a, b = rank[np.repeat(np.arange(n), np.diff(indptr))], rank[indices]
    keys = np.unique((np.minimum(a, b) * n + np.maximum(a, b))[a != b])
    lower, upper = np.divmod(keys, max(n, 1))
    starts = np.concatenate([[0], np.cumsum(np.bincount(lower, minlength=n))]).astype(np.int64)
    pieces = even_rows(starts, -(-keys.size // num_threads()) or 1)
    counts = np.zeros((len(pieces), n), np.int64)
    kernel = compile_kernel(_mark_kernel)
    parallel_map(lambda i: kernel(starts, upper, np.full(n, -1), counts[i], *pieces[i]), range(len(pieces)))
    neighbors = np.bincount(lower, minlength=n) + np.bincount(upper, minlength=n)
    return counts.sum(axis=0)[rank], neighbors[rank]


@verifier
def verify_triangles(graph: Graph, triangles: Any, total: int | None = None, clustering: Any = None) -> None:
    """Prove that `triangles` has the number of triangles that each vertex is in, and, if given, the other results.

    They are counted anew on the host: each undirected edge is listed once, by sorting, and for each vertex its later neighbors
    are marked, and met again from one another. Neither the oriented rows nor the tables of `count_triangles` have a part in it.

    Parameters
    ----------
    graph : Graph
        Taken as undirected, without loops and parallel edges.
    triangles : array
        Of any integer type; one for each vertex.
    total : int, optional
        The triangles of the graph.
    clustering : array of float, optional
        The clustering coefficients.

    Examples
    --------
    >>> triangle = atos.Graph.from_edges([0, 1, 2], [1, 2, 0], symmetrize=True)
    >>> atos.verify_triangles(triangle, [1, 1, 1], total=1)
    >>> atos.verify_triangles(triangle, [1, 2, 1])
    Traceback (most recent call last):
    atos_py.errors.VerificationError: ...
    """
    expected, degree = find_host_triangles(graph)
    found = per_vertex("triangles", triangles, expected.size)
    wrong = found != expected
    if (v := first_of(wrong)) >= 0:
        raise VerificationError(f"triangles[{v}] is {found[v]}, but vertex {v} is in {expected[v]} triangles")
    if total is not None and total != int(expected.sum()) // 3:
        raise VerificationError(f"total is {total}, but there are {int(expected.sum()) // 3} triangles")
    if clustering is not None:
        coefficients = per_vertex("clustering", clustering, expected.size, "f")
        wrong = ~(np.abs(coefficients - expected / np.maximum(degree * (degree - 1) // 2, 1)) <= 1e-6)
        if (v := first_of(wrong)) >= 0:
            raise VerificationError(
                f"clustering[{v}] is {coefficients[v]}, but {expected[v]} of the pairs of {degree[v]} neighbors are joined"
            )


register(
    run=count_triangles,
    verify=lambda graph, result, _: verify_triangles(graph, result.triangles, result.total, result.clustering),
    describe=lambda result: {"triangles": result.total},
    arrays=lambda result: {"triangles": result.triangles, "clustering": result.clustering},
    help="count triangles, and find clustering coefficients",
    description="""\
Counts the triangles that each vertex is in, and finds which part of the pairs of its neighbors are joined. Edges are oriented
by degree, and rows intersected by hash tables (Pandey et al. 2021). To verify that, they are counted anew on the host. An edge
without its reverse is taken as undirected.""",
    examples=("rmat:16:16 --out triangles.npz", "road:1000:0.62"),
)
