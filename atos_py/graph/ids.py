"""Vertex ids of a file: which of them edges name, and numbers in their place that leave none out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compile.host_kernels import parallel_map
from ..errors import InvalidArgumentError
from ..support.warn import warn_caller
from .csr import MAX_VERTICES, EdgeChunk, EdgeList

__all__ = ["number_by_ids", "warn_of_gaps"]

_MOST_PER_EDGE = 8  # numbers in a table of all ids up to the largest, which then takes about as much memory as the edges


def number_by_ids(chunks: list[EdgeChunk], base: int) -> NDArray[np.int64]:
    """Give the vertices that edges name numbers from 0 on, in the order of their ids; return the id of each in the file."""
    size = 1 + max([int(ids.max(initial=0)) for chunk in chunks for ids in (chunk.sources, chunk.targets)], default=0)
    is_dense = size <= _MOST_PER_EDGE * sum([chunk.sources.size for chunk in chunks])
    ids = np.flatnonzero(_mark_named(chunks, size)) if is_dense else _sort_named(chunks)
    if ids.size > MAX_VERTICES:
        raise InvalidArgumentError(f"edges name {ids.size} vertices, more than the {MAX_VERTICES} possible")
    table = np.zeros(size if is_dense else 0, np.uint32)
    if is_dense:
        table[ids] = np.arange(ids.size, dtype=np.uint32)

    def number(k: int) -> None:
        given, weights = chunks[k][:2], chunks[k].weights
        if is_dense:
            chunks[k] = EdgeChunk(table[given[0]], table[given[1]], weights)
        else:
            sources, targets = (np.searchsorted(ids, each).astype(np.uint32) for each in given)
            chunks[k] = EdgeChunk(sources, targets, weights)

    parallel_map(number, range(len(chunks)))
    return ids.astype(np.int64) + base


def _mark_named(chunks: list[EdgeChunk], size: int) -> NDArray[np.bool_]:
    """Return whether edges name each of so many vertices."""
    named = np.zeros(size, bool)
    for chunk in chunks:
        named[chunk.sources] = True
        named[chunk.targets] = True
    return named


def _sort_named(chunks: list[EdgeChunk]) -> NDArray[Any]:
    """Return the ids that edges name, each once, in ascending order."""

    def once(values: NDArray[Any]) -> NDArray[Any]:
        return values[np.append(True, values[1:] != values[:-1])] if values.size else values

    parts = parallel_map(lambda chunk: once(np.sort(np.concatenate([chunk.sources, chunk.targets]))), chunks)
    # NumPy's stable sort merges what is sorted already.
    return once(np.sort(np.concatenate(parts), kind="stable")) if parts else np.empty(0, np.uint32)


def warn_of_gaps(path: Path, edges: EdgeList) -> None:
    """Warn if edges name less than half of the vertices that their largest id makes."""
    named = _count_named(edges.chunks, edges.num_vertices)
    if 2 * named < edges.num_vertices:
        warn_caller(
            f"the edges of '{path}' name {named:,} vertices, but the largest id, {edges.num_vertices - 1}, makes"
            f" {edges.num_vertices:,}, of which more than half have no edge; renumber=True (--renumber) leaves those out",
            UserWarning,
        )


def _count_named(chunks: Sequence[EdgeChunk], num_vertices: int) -> int:
    """Return how many vertices edges name; where that is at least half of them, maybe fewer, but at least half."""
    named = np.zeros(num_vertices, bool)
    seen = counted = count = 0
    for chunk in chunks:
        named[chunk.sources] = True
        named[chunk.targets] = True
        seen += 2 * chunk.sources.size
        if seen - counted >= num_vertices // 2:  # so that counting takes no longer than marking
            count, counted = int(np.count_nonzero(named)), seen
            if 2 * count >= num_vertices:
                return count
    return int(np.count_nonzero(named))
