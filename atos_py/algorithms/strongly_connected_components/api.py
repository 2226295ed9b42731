"""The call `strongly_connected_components`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...arrays.array import zeros
from ...arrays.array_library import as_library
from ...graph.graph import Graph
from ...operators.edge_map import THREAD_MAX_DEGREE
from ...operators.ranges import range_items
from ...operators.row_map import VERTICES_PER_ROW_ITEM
from ...runtime.launch import LaunchOptions
from ...runtime.queue import Queue
from ...support.host_memory import host_memory_for
from ..arguments import check_call
from ..connected_components import ComponentsResult
from ..launch_sequence import LaunchSequence
from .tasks import COUNT, name_by_smallest, separate, set_mode

if TYPE_CHECKING:
    from typing_extensions import Unpack  # of typing from Python 3.11 on

__all__ = ["strongly_connected_components"]

_DENSE = 8  # mean degree from which on the vertex of largest degree is likely to be in a component of most vertices
_REPEATS = 8  # passes over a range in a round, at most, of other graphs


@host_memory_for("atos.strongly_connected_components")
def strongly_connected_components(
    graph: Graph, *, worker: str | None = None, **launch_options: Unpack[LaunchOptions]
) -> ComponentsResult:
    """Find which vertices reach each other along edges in their direction.

    Parameters
    ----------
    graph : Graph
        If it is undirected, these are its components, which `connected_components` finds faster.
    worker : {'thread', 'warp', 'cta'}, optional
        By default "cta".
    **launch_options : LaunchOptions
        As for `Queue.launch_cta`: `persistent`, `fetch_size`, `num_blocks`, `num_threads`, ... The launch has rounds, so
        `barrier` is True. `timeout` is for the whole call, which keeps nothing then.

    Returns
    -------
    ComponentsResult

    Raises
    ------
    InvalidArgumentError
        If there is no such worker.
    LaunchConfigError
        If `barrier` is False, or `each_round` is given.

    See Also
    --------
    connected_components : with edges in either direction.

    References
    ----------
    Alabandi, Sands, Biros and Burtscher, "A high-performance strongly connected components algorithm for GPUs", SC 2023.

    Examples
    --------
    >>> graph = atos.Graph.from_edges([0, 1, 2, 2], [1, 2, 1, 3])
    >>> result = atos.strongly_connected_components(graph)
    >>> print(result.label[:], result.num_components)
    [0 1 1 3] 3
    """
    check_call(strongly_connected_components, graph, worker, launch_options, rounds=True)
    n, device = graph.num_vertices, graph.device
    label = zeros(n, dtype=np.uint32, device=device)
    known = zeros((n, 4), dtype=np.uint32, device=device)
    smallest = zeros(n, dtype=np.uint32, device=device)
    notes = zeros(COUNT + 1, dtype=np.int64, device=device)
    size = VERTICES_PER_ROW_ITEM[device.kind]
    items = range_items(n, size)
    launches = LaunchSequence(
        "strongly_connected_components", Queue(max(2 * items.size, 1), device=device), launch_options, worker
    )
    repeats = 1 if graph.num_edges >= _DENSE * n else _REPEATS
    arguments = size, THREAD_MAX_DEGREE[device.kind], repeats, graph, notes, known, label, smallest

    def run() -> None:
        launches.launch(items, separate, *arguments, overrides={"barrier": True, "each_round": set_mode})
        launches.over_vertices(name_by_smallest, n, label, smallest)

    launches.compile_ahead(graph.indptr.dtype, run)
    run()
    return ComponentsResult(as_library(label, graph.library), int(notes[COUNT]), launches.total())
