"""Rows of a graph that are divided by degree (`orientation`), made once and kept with the graph."""

from __future__ import annotations

import numpy as np

from ...arrays.array import Array, asarray, empty, zeros
from ...graph.graph import Graph
from ...graph.kept import kept
from ...operators.edge_map import THREAD_MAX_DEGREE
from ...operators.ranges import range_items
from ...runtime.launch_options import LaunchOptions
from ..launch_sequence import LaunchSequence
from .orientation import SCRATCH_BYTES, Oriented, orient, range_size

__all__ = ["divide_rows", "oriented_rows"]


def oriented_rows(graph: Graph, launches: LaunchSequence) -> Oriented:
    """Return the divided rows of an undirected graph; neighbors in no order are sorted first."""
    found = kept(graph)
    if "oriented" not in found:
        rows, disorder = divide_rows(graph, launches)
        if disorder[0]:
            rows, _ = divide_rows(graph.simplify(deduplicate=True), launches)
        found["oriented"] = rows
    return found["oriented"]  # type: ignore[no-any-return]


def divide_rows(graph: Graph, launches: LaunchSequence) -> tuple[Oriented, Array]:
    """Return the divided rows, and whether they are wrong since neighbors are not in ascending order."""
    n, device = graph.num_vertices, graph.device
    length, degree = (empty(n, dtype=np.uint32, device=device) for _ in range(2))
    rows = Oriented(graph.indptr, empty(graph.num_edges, dtype=np.uint32, device=device), length, degree)
    disorder = zeros(1, dtype=np.int32, device=device)
    size = range_size(graph.num_edges, n)
    arguments = size, graph._replace(weights=None), rows, THREAD_MAX_DEGREE[device.kind], disorder
    scratch: LaunchOptions = {"shared_memory": SCRATCH_BYTES[launches.worker or "cta"]}
    launches.launch(range_items(n, size), orient, *arguments, overrides=scratch)
    return Oriented(*(asarray(part, readonly=True) for part in rows)), disorder
