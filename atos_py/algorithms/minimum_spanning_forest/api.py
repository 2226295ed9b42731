"""The call `minimum_spanning_forest`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.any_array import AnyArray
from ...arrays.array import Array, empty
from ...arrays.memory import clear_bytes, copy_bytes
from ...errors import InvalidArgumentError
from ...graph.graph import Graph
from ...graph.symmetric_weights import has_symmetric_weights
from ...operators.edge_map import THREAD_MAX_DEGREE
from ...operators.reductions import SCRATCH_BYTES
from ...operators.row_map import row_items, row_queue
from ...runtime.launch_options import LaunchOptions, Unpack
from ...runtime.stats import LaunchStats
from ...support.shown import ShownFields
from ..frame import algorithm
from ..kept_launches import take_queue
from ..launch_sequence import LaunchSequence
from .tasks import MOST_STEPS, Trees, collect_floats, collect_integers, grow

__all__ = ["SpanningForestResult", "minimum_spanning_forest"]

_ITEMS_SUMMED = 1 << 16  # whose sums, of up to 44 bits each, NumPy adds up in 64 bits
_DENSE = 8  # mean degree


@dataclass(frozen=True, eq=False)
class SpanningForestResult(ShownFields):
    """Result of `minimum_spanning_forest`.

    Attributes
    ----------
    edges : Array, or an array of the library that the graph's arrays came from, of shape (m, 2)
        The two ends of each edge of the forest, uint32, each edge in one direction.
    edge_ids : as `edges`, of shape (m,)
        The numbers of these edges: their places in the `indices` and `weights` of the graph.
    weight : int or float
        The sum of their weights, as a number of Python.
    stats : LaunchStats

    Examples
    --------
    >>> graph = atos.Graph.from_edges([0, 1, 2], [1, 2, 0], weights=[5, 1, 3], symmetrize=True)
    >>> result = atos.minimum_spanning_forest(graph)
    >>> print(result.weight, result.num_edges)
    4 2
    """

    edges: AnyArray
    edge_ids: AnyArray
    weight: int | float
    stats: LaunchStats

    @property
    def num_edges(self) -> int:
        """Number of edges: that of vertices less that of components."""
        return int(self.edge_ids.shape[0])


@algorithm(rounds=True)
def minimum_spanning_forest(
    graph: Graph, *, worker: str | None = None, **launch_options: Unpack[LaunchOptions]
) -> SpanningForestResult:
    """Find edges of the least total weight that join every two vertices which paths join.

    Among equal weights the edge whose smaller end is smaller is taken first, then the one whose larger end is. So the result is
    the same on every device. The edges come in no order that means anything, but always in the same.

    Parameters
    ----------
    graph : Graph
        Undirected: every edge has its reverse, of the same weight. Weights may be negative or equal; without any, each is 1.
        Loops are ignored, and of parallel edges the lightest counts.
    {launch_options}

    Raises
    ------
    InvalidArgumentError
        If some edge lacks its reverse, or weighs another than it.

    References
    ----------
    Fallin, Gonzalez, Seo and Burtscher, "A high-performance MST implementation for GPUs", SC 2023.

    Examples
    --------
    >>> grid = atos.generate.road(10, 1.0)
    >>> atos.minimum_spanning_forest(grid).weight
    99
    """
    _check_undirected(graph)
    n, device = graph.num_vertices, graph.device
    items, size = row_items(n, device)
    kind = np.dtype(np.int32) if graph.weights is None else graph.weights.dtype

    def array(size: int | tuple[int, ...], dtype: Any) -> Array:
        return empty(size, dtype=dtype, device=device)

    rows, vertices = graph.indptr.dtype, np.uint32
    is_float = kind.kind == "f"
    collect = collect_floats if is_float else collect_integers

    def make_workspace() -> tuple[Trees, Array, Array]:
        trees = Trees(
            parent=array(n, vertices),
            root=array(n, vertices),
            candidate=array(n, rows),
            weight=array(n, kind),
            ends=array(n, np.uint64),
            edge=array(n, rows),
            source=array(n, vertices),
            hooked=array(len(items), np.int32),
            lists=array(2 * n, vertices),
            counts=array(MOST_STEPS, np.int64),
            limit=kind.type(np.inf if is_float else np.iinfo(kind).max),
        )
        return trees, array(len(items) + 1, np.int64), array((len(items), 3), np.float64 if is_float else np.int64)

    queue = take_queue(graph, lambda: row_queue(n, device), launch_options, "minimum_spanning_forest", worker)
    launches = LaunchSequence("minimum_spanning_forest", queue, launch_options, worker)
    trees, places, sums = launches.workspace((rows, kind), make_workspace)
    for cleared in trees.hooked, trees.counts:
        clear_bytes(device, cleared.pointer, cleared.nbytes)
    scratch: LaunchOptions = {"shared_memory": SCRATCH_BYTES[worker or "cta"]}

    # Where rows are long, threads of a small block wait for fewer others at the end of a range.
    blocks: LaunchOptions = {"num_threads": 128} if device.kind == "cuda" and graph.num_edges >= _DENSE * n else {}

    def grow_trees(launches: LaunchSequence) -> None:
        rounds: LaunchOptions = {"barrier": True, **scratch}
        launches.launch(items, grow, size, THREAD_MAX_DEGREE[device.kind], graph, trees, defaults=blocks, overrides=rounds)

    def gather_edges(hooked: NDArray[Any], launches: LaunchSequence) -> tuple[Array, Array]:
        sum_of_lower = np.zeros(hooked.size + 1, np.int64)
        count = int(np.cumsum(hooked, out=sum_of_lower[1:])[-1]) if hooked.size else 0
        copy_bytes(device, places.pointer, sum_of_lower, sum_of_lower.nbytes)
        found = array((count, 2), vertices), array(count, rows)
        arguments = size, n, places, sums, graph, trees, *found
        launches.launch(items, collect, *arguments, overrides=scratch)
        return found

    def plan(launches: LaunchSequence) -> None:
        grow_trees(launches)
        gather_edges(np.zeros(len(items), np.int64), launches)

    launches.compile_ahead((rows, kind, graph.weights is None), plan)
    grow_trees(launches)
    edges, edge_ids = gather_edges(trees.hooked.to_numpy(), launches)
    weight = edge_ids.size if graph.weights is None else _total(sums.to_numpy())
    launches.finish()
    return SpanningForestResult(edges, edge_ids, weight, launches.total())  # type: ignore[arg-type]


def _check_undirected(graph: Graph) -> None:
    name = "minimum_spanning_forest takes undirected graphs, and here some edge"
    if not graph.is_symmetric():
        raise InvalidArgumentError(f"{name} has no reverse; pass graph.to_symmetric()")
    if graph.weights is not None and not has_symmetric_weights(graph):
        raise InvalidArgumentError(
            f"{name} weighs another than its reverse; pass graph.simplify(symmetrize=True, deduplicate=True), "
            "which keeps the lighter of both"
        )


def _total(sums: NDArray[Any]) -> int | float:
    """Return the sum of all weights, exact if they are integers."""
    if sums.dtype.kind == "f":
        return float(sums[:, 0].sum())
    blocks = np.add.reduceat(sums, np.arange(0, len(sums), _ITEMS_SUMMED), axis=0)
    low, high, negative = (sum(column) for column in blocks.T.tolist())
    return int(low + (high << 32) - (negative << 64))
