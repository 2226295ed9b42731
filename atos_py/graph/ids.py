"""Vertex ids of a file: which of them edges name, and numbers in their place that leave none out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..compile.host_kernels import parallel_map
from ..errors import InvalidArgumentError
from ..support.warn import warn_caller
from .csr import MAX_VERTICES, EdgeChunk, EdgeList

__all__ = ["number_by_ids", "warn_of_gaps"]


def number_by_ids(chunks: list[EdgeChunk], base: int) -> NDArray[np.int64]:
    """Give the vertices that edges name numbers from 0 on, in the order of their ids; return the id of each in the file."""
    parts = parallel_map(lambda chunk: np.unique(np.concatenate([chunk.sources, chunk.targets])), chunks)
    ids = np.unique(np.concatenate(parts)) if parts else np.empty(0, np.uint32)
    if ids.size > MAX_VERTICES:
        raise InvalidArgumentError(f"edges name {ids.size} vertices, more than the {MAX_VERTICES} possible")

    def number(k: int) -> None:
        chunk = chunks[k]
        sources, targets = (np.searchsorted(ids, given).astype(np.uint32) for given in (chunk.sources, chunk.targets))
        chunks[k] = EdgeChunk(sources, targets, chunk.weights)

    parallel_map(number, range(len(chunks)))
    return ids.astype(np.int64) + base


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
