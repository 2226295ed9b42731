"""Graphs as NumPy arrays: checking what a caller hands in, and building a CSR from chunks of edges.

Everything here works on host memory only; `atos_py.graph.graph` puts the result on a device. Edges stay in chunks from whoever
makes them to the builder, which releases each chunk once it has been moved, so that a graph is never held twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..compile.host_kernels import compile_kernel, parallel_map, ranges, returnable
from ..errors import InvalidArgumentError
from ..support.validation import as_integers, check_bool, check_int, require_host_memory
from .weights import SUM, check_combine, check_weights, combine_two, refuse_wrapped, sum_limits, summed_dtype

__all__ = [
    "CSR",
    "MAX_VERTICES",
    "EdgeChunk",
    "EdgeList",
    "Renumber",
    "build_csr",
    "check_csr",
    "chunk_edges",
    "csr_to_chunks",
    "indptr_dtype",
    "renumber_edges",
]

#: Most vertices that a graph may have: ids fit 32 bits with one value to spare, which algorithms use to say "none".
MAX_VERTICES = 2**32 - 1


class CSR(NamedTuple):
    """A graph in compressed sparse row form: the edges of vertex ``v`` are ``indices[indptr[v]:indptr[v + 1]]``."""

    indptr: NDArray[Any]
    indices: NDArray[Any]
    weights: NDArray[Any] | None


class EdgeChunk(NamedTuple):
    """A run of edges: `sources` and `targets` of uint32, all of them in range, and their weights if there are any."""

    sources: NDArray[np.uint32]
    targets: NDArray[np.uint32]
    weights: NDArray[Any] | None


class EdgeList(NamedTuple):
    """Edges on their way to `build_csr`, as a text reader or `chunk_edges` leaves them."""

    chunks: list[EdgeChunk]
    num_vertices: int
    symmetric: bool  # every edge stands for both directions
    base: int = 0  # what the file calls the first vertex
    by_ids: bool = False  # nothing but the largest id says how many vertices there are


# ---------------------------------------------------------------------------------------------------------------------
# Checking what a caller hands in

_CHUNK_EDGES = 1 << 20


def indptr_dtype(num_edges: int) -> np.dtype[Any]:
    """Return the dtype of row offsets: int32 where that suffices.

    They are signed, although none is negative, since in a task Numba turns the sum of an unsigned 64-bit and a signed
    integer into a float.
    """
    return np.dtype(np.int32 if num_edges < 2**31 else np.int64)


def _plain(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array as compiled code takes it, contiguous and aligned; copied only where it is not so already."""
    return np.require(values, dtype, ["C_CONTIGUOUS", "ALIGNED"])


def _check_ids(name: str, ids: NDArray[Any], num_vertices: int) -> None:
    if not ids.size:
        return
    for extreme in (ids.argmin, ids.argmax):
        worst = int(extreme())
        if not 0 <= int(ids[worst]) < num_vertices:
            limit = "begin at 0" if num_vertices == MAX_VERTICES and ids[worst] < 0 else f"must lie in 0..{num_vertices - 1}"
            given = "" if num_vertices == MAX_VERTICES else f" (num_vertices is {num_vertices})"
            raise InvalidArgumentError(f"{name}[{worst}] is {int(ids[worst])}, but vertex ids {limit}{given}")


def _check_num_vertices(num_vertices: int) -> int:
    return check_int("num_vertices", num_vertices, 0, MAX_VERTICES)


def check_csr(indptr: ArrayLike, indices: ArrayLike, weights: ArrayLike | None = None) -> CSR:
    """Check the three arrays of a CSR and return them in the dtypes that a `CSR` uses, contiguous, copied where need be."""
    offsets, targets = as_integers("indptr", indptr), as_integers("indices", indices)
    if not offsets.size:
        raise InvalidArgumentError("indptr must have num_vertices + 1 entries, so at least one (got none)")
    num_vertices = _check_num_vertices(offsets.size - 1)
    if int(offsets[0]) != 0:
        raise InvalidArgumentError(f"indptr[0] must be 0 (got {int(offsets[0])})")
    if int(offsets[-1]) != targets.size:
        raise InvalidArgumentError(
            f"indptr[{num_vertices}], the last, must be the number of edges, {targets.size} (got {int(offsets[-1])})"
        )
    falls = offsets[1:] < offsets[:-1]
    if falls.any():
        at = int(np.argmax(falls))
        raise InvalidArgumentError(
            f"indptr must not decrease, but indptr[{at}] is {int(offsets[at])} and indptr[{at + 1}] is {int(offsets[at + 1])}"
        )
    _check_ids("indices", targets, num_vertices)
    if targets.dtype == np.int32:
        targets = targets.view(np.uint32)  # the same memory, now that none is negative
    return CSR(
        _plain(offsets, indptr_dtype(targets.size)),
        _plain(targets, np.dtype(np.uint32)),
        None if weights is None else check_weights(weights, targets.size),
    )


def chunk_edges(
    sources: ArrayLike, targets: ArrayLike, weights: ArrayLike | None = None, num_vertices: int | None = None
) -> EdgeList:
    """Check a list of edges and cut it into chunks; `num_vertices` is the largest id plus one unless given."""
    tails, heads = as_integers("sources", sources), as_integers("targets", targets)
    if tails.size != heads.size:
        raise InvalidArgumentError(f"sources and targets must have the same length (got {tails.size} and {heads.size})")
    costs = None if weights is None else check_weights(weights, tails.size)
    if num_vertices is None:
        num_vertices = 1 + max(int(tails.max()), int(heads.max())) if tails.size else 0
        limit = MAX_VERTICES  # so that a negative or giant id is what the message names
    else:
        limit = num_vertices = _check_num_vertices(num_vertices)
    _check_ids("sources", tails, limit)
    _check_ids("targets", heads, limit)
    chunks = [
        EdgeChunk(
            np.ascontiguousarray(tails[first:end], np.uint32),
            np.ascontiguousarray(heads[first:end], np.uint32),
            None if costs is None else costs[first:end],
        )
        for first, end in ranges(tails.size, _CHUNK_EDGES) or [(0, 0)]  # which still tells the type of the weights
    ]
    return EdgeList(chunks, num_vertices, symmetric=False)


def csr_to_chunks(csr: CSR) -> Iterator[EdgeChunk]:
    """Yield the edges of a CSR in order, a few million at a time."""
    num_vertices = csr.indptr.size - 1
    if not num_vertices:
        yield EdgeChunk(csr.indices, csr.indices, csr.weights)
    first = 0
    while first < num_vertices:
        # As many whole rows as fit in a chunk, and at least one.
        start = int(csr.indptr[first])
        end = max(first + 1, int(np.searchsorted(csr.indptr, start + _CHUNK_EDGES, side="right")) - 1)
        stop = int(csr.indptr[end])
        rows = np.repeat(np.arange(first, end, dtype=np.uint32), np.diff(csr.indptr[first : end + 1]))
        yield EdgeChunk(rows, csr.indices[start:stop], None if csr.weights is None else csr.weights[start:stop])
        first = end


#: Returns the number that each vertex of a graph gets, of so many vertices and at most so many edges; None if they keep theirs.
Renumber = Callable[[int, int], "NDArray[np.uint32] | None"]


def renumber_edges(chunks: list[EdgeChunk], numbers: NDArray[np.uint32]) -> None:
    """Let vertex v be ``numbers[v]``, in one chunk after another."""
    for k, chunk in enumerate(chunks):
        chunks[k] = EdgeChunk(numbers[chunk.sources], numbers[chunk.targets], chunk.weights)


# ---------------------------------------------------------------------------------------------------------------------
# Edges to CSR

_DIGIT_BITS = 11
_MAX_BUCKET_BITS = 16  # so that a vertex's place in its bucket fits uint16


def _count_kernel(
    sources: Any, targets: Any, symmetrize: bool, remove_loops: bool, shift: int, counts: Any
) -> None:  # pragma: no cover - compiled
    """Add to `counts` how many edges of a chunk go to each bucket of source vertices."""
    for i in range(sources.size):
        u = sources[i]
        v = targets[i]
        if u != v:
            counts[u >> shift] += 1
            if symmetrize:
                counts[v >> shift] += 1
        elif not remove_loops:
            counts[u >> shift] += 1


def _scatter_kernel(
    sources: Any,
    targets: Any,
    weights: Any,
    symmetrize: bool,
    remove_loops: bool,
    shift: int,
    cursors: Any,
    rows: Any,
    columns: Any,
    values: Any,
) -> None:  # pragma: no cover - compiled
    """Append the edges of a chunk to their buckets; `cursors` holds the next free place in each."""
    mask = (1 << shift) - 1
    for i in range(sources.size):
        u = sources[i]
        v = targets[i]
        if u == v and remove_loops:
            continue
        place = cursors[u >> shift]
        cursors[u >> shift] = place + 1
        rows[place] = u & mask
        columns[place] = v
        if weights is not None:
            values[place] = weights[i]
        if symmetrize and u != v:
            place = cursors[v >> shift]
            cursors[v >> shift] = place + 1
            rows[place] = v & mask
            columns[place] = u
            if weights is not None:
                values[place] = weights[i]


def _sort_kernel(
    rows: Any,
    columns: Any,
    values: Any,
    rows2: Any,
    columns2: Any,
    values2: Any,
    num_digits: int,
    digit_bits: int,
    deduplicate: bool,
    combine: int,
    limits: Any,
    degrees: Any,
) -> tuple[int, int]:  # pragma: no cover - compiled
    """Sort one bucket by row, stably, and before that by the `num_digits` digits of the column.

    The arrays with a 2 are scratch space; the result is at the start of `columns` and `values`. Of parallel edges the
    first stays, with their weights combined. Return the row and the column of an edge whose weight is a sum that does not fit,
    or -1 for both.
    """
    mask = (1 << digit_bits) - 1
    counts = np.empty(max(1 << digit_bits, degrees.size), np.int64)
    r, c, w = rows, columns, values
    r2, c2, w2 = rows2, columns2, values2
    for digit in range(num_digits + 1):
        by_row = digit == num_digits
        shift = digit * digit_bits
        counts[:] = 0
        for i in range(c.size):
            counts[r[i] if by_row else (c[i] >> shift) & mask] += 1
        if by_row:
            for row in range(degrees.size):
                degrees[row] = counts[row]
        total = 0
        for key in range(counts.size):
            count = counts[key]
            counts[key] = total
            total += count
        for i in range(c.size):
            key = r[i] if by_row else (c[i] >> shift) & mask
            place = counts[key]
            counts[key] = place + 1
            r2[place] = r[i]
            c2[place] = c[i]
            if values is not None:
                w2[place] = w[i]
        r, r2 = r2, r
        c, c2 = c2, c
        w, w2 = w2, w
    # The sorted edges lie in either pair of arrays; moving them never overtakes reading them.
    start = 0
    out = 0
    wrong_row, wrong_column = -1, -1
    for row in range(degrees.size):
        end = start + degrees[row]
        first = out
        wraps = 0  # of the sum of the edge before `out`
        for i in range(start, end):
            if deduplicate and out > first and columns[out - 1] == c[i]:
                if values is not None:
                    values[out - 1], wrap = combine_two(combine, values[out - 1], w[i], limits)
                    wraps += wrap
            else:
                if wraps != 0:
                    wrong_row, wrong_column, wraps = row, np.int64(columns[out - 1]), 0
                columns[out] = c[i]
                if values is not None:
                    values[out] = w[i]
                out += 1
        if wraps != 0:
            wrong_row, wrong_column = row, np.int64(columns[out - 1])
        degrees[row] = out - first
        start = end
    return wrong_row, wrong_column


def _one_weight_dtype(chunks: list[EdgeChunk], summed: bool) -> np.dtype[Any] | None:
    """Return the dtype that holds the weights of all chunks, or their sums, and bring them to it; None without weights."""
    found = {chunk.weights.dtype for chunk in chunks if chunk.weights is not None}
    if not found:
        return None
    common = summed_dtype(np.result_type(*found)) if summed else np.result_type(*found)
    for i, chunk in enumerate(chunks):
        if chunk.weights is not None:
            chunks[i] = chunk._replace(weights=chunk.weights.astype(common, copy=False))
    return common


def build_csr(
    chunks: list[EdgeChunk],
    num_vertices: int,
    *,
    symmetrize: bool = False,
    deduplicate: bool = False,
    remove_loops: bool = False,
    sort: bool = False,
    combine: str = "min",
) -> CSR:
    """Build a CSR from edges; see `Graph.simplify` for the options. The list of chunks is emptied on the way.

    Edges are first scattered to buckets of neighboring source vertices, then every bucket is sorted by itself: by source
    with one counting sort, and by target, if asked, with counting sorts of up to 11 bits before it. Since chunks are released
    while buckets fill, and buckets are sorted in place, the peak is about twice the size of the CSR.
    """
    symmetrize, deduplicate = check_bool("symmetrize", symmetrize), check_bool("deduplicate", deduplicate)
    remove_loops, sort = check_bool("remove_loops", remove_loops), check_bool("sort", sort)
    rule = check_combine(combine)
    indptr, columns, values, starts = _sorted_buckets(chunks, num_vertices, symmetrize, deduplicate, remove_loops, sort, rule)
    num_buckets = starts.size - 1
    first_vertices = np.minimum(np.arange(num_buckets + 1) << _bucket_bits(num_vertices), num_vertices)
    ends = indptr[first_vertices].astype(np.int64)

    # Deduplication left gaps at the ends of the buckets; and the copy is in huge pages.
    def squeeze(array: NDArray[Any]) -> NDArray[Any]:
        tight = np.empty(int(ends[-1]), array.dtype)

        def move(bucket: int) -> None:
            length = ends[bucket + 1] - ends[bucket]
            tight[ends[bucket] : ends[bucket + 1]] = array[starts[bucket] : starts[bucket] + length]

        parallel_map(move, range(num_buckets))
        return tight

    columns = squeeze(columns)
    values = None if values is None else squeeze(values)
    return CSR(indptr.astype(indptr_dtype(columns.size), copy=False), columns, values)


def _bucket_bits(num_vertices: int) -> int:
    """Return the logarithm of the number of vertices in a bucket: some 256 buckets, unless vertices are few or very many."""
    return min(_MAX_BUCKET_BITS, max(max(num_vertices - 1, 0).bit_length() - 8, 4))


def _sorted_buckets(
    chunks: list[EdgeChunk],
    num_vertices: int,
    symmetrize: bool,
    deduplicate: bool,
    remove_loops: bool,
    sort: bool,
    combine: int,
) -> tuple[NDArray[Any], NDArray[np.uint32], NDArray[Any] | None, NDArray[np.int64]]:
    """Return row offsets, and targets and weights in buckets that begin at the offsets returned last and may end early."""
    require_host_memory(f"the row offsets of {num_vertices} vertices", (num_vertices + 1) * indptr_dtype(0).itemsize)
    weight_type = _one_weight_dtype(chunks, deduplicate and combine == SUM)
    shift = _bucket_bits(num_vertices)
    num_buckets = (num_vertices + (1 << shift) - 1) >> shift

    # Where each chunk puts its edges follows from counts alone, so the order is the same for any number of threads.
    def count(chunk: EdgeChunk) -> NDArray[np.int64]:
        counts = np.zeros(num_buckets, np.int64)
        compile_kernel(_count_kernel)(chunk.sources, chunk.targets, symmetrize, remove_loops, shift, counts)
        return counts

    cursors = np.zeros((len(chunks) + 1, num_buckets), np.int64)
    if chunks:
        cursors[1:] = parallel_map(count, chunks)
    starts = np.zeros(num_buckets + 1, np.int64)
    np.cumsum(cursors.sum(axis=0), out=starts[1:])
    np.cumsum(cursors, axis=0, out=cursors)
    cursors += starts[:-1]

    num_edges = int(starts[-1])
    rows = returnable(num_edges, np.uint16)
    columns = returnable(num_edges, np.uint32)
    values = None if weight_type is None else returnable(num_edges, weight_type)

    def scatter(i: int) -> None:
        chunk, chunks[i] = chunks[i], _NO_EDGES
        compile_kernel(_scatter_kernel)(*chunk, symmetrize, remove_loops, shift, cursors[i], rows, columns, values)

    parallel_map(scatter, range(len(chunks)))
    chunks.clear()

    indptr = np.zeros(num_vertices + 1, indptr_dtype(num_edges))
    id_bits = max(num_vertices - 1, 0).bit_length()
    num_digits = -(-id_bits // _DIGIT_BITS) if sort or deduplicate else 0
    digit_bits = -(-id_bits // num_digits) if num_digits else 0

    limits = None if weight_type is None else sum_limits(weight_type)

    def finish(bucket: int) -> None:
        part = slice(starts[bucket], starts[bucket + 1])
        given = rows[part], columns[part], None if values is None else values[part]
        scratch = [None if array is None else np.empty_like(array) for array in given]
        degrees = indptr[1 + (bucket << shift) : 1 + ((bucket + 1) << shift)]
        options = num_digits, digit_bits, deduplicate, combine, limits
        row, column = compile_kernel(_sort_kernel)(*given, *scratch, *options, degrees)
        if row >= 0:
            refuse_wrapped((bucket << shift) + row, column, weight_type)

    parallel_map(finish, range(num_buckets))
    np.cumsum(indptr, out=indptr)
    return indptr, columns, values, starts


_NO_EDGES = EdgeChunk(np.empty(0, np.uint32), np.empty(0, np.uint32), None)
