"""PageRank over several devices: Chebyshev iteration on undirected graphs, gathering from mirrors.

Each device gathers for its own vertices. What these gather from, the contributions of all vertices, has a copy on each device,
so that an edge never crosses a link: a vertex is written once a round to each device, and read along all its edges at home.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.array import asarray
from ...arrays.filled import full
from ...arrays.mirrored import MirroredArray
from ...arrays.partitioned import PartitionedArray
from ...arrays.shared import common_zeros
from ...compile.task import task
from ...errors import InvalidArgumentError
from ...graph.graph_arrays import GraphArrays
from ...graph.partition import Partition
from ...graph.symmetry import is_symmetric
from ...operators.edge_map import gather
from ...operators.vertex_map import vertex_map
from ...runtime.launch_options import LaunchOptions
from ...runtime.stats import LaunchStats
from ..over_devices import by_owner, first_of_ranges, launches_over
from .chebyshev_pull import (
    HUB_DEGREE,
    OMEGA,
    Iteration,
    Outcome,
    end_round,
    extrapolate,
    find_hubs,
    first_state,
    outcome,
    plan_ranges,
    run_to_end,
)

__all__ = ["chebyshev_range", "pagerank_over"]


def contribution(v, u, both, side, *rest):  # type: ignore[no-untyped-def]
    """Return what an edge carries."""
    return both[side, u]


def no_contribution(both, *rest):  # type: ignore[no-untyped-def]
    """Return what no edge carries."""
    return both.dtype.type(0)


def next_value(v, degree, received, both, side, base, damping, omega):  # type: ignore[no-untyped-def]
    """Replace the contribution of v on the other side by the next one; see `chebyshev_pull.next_value`."""
    rank = damping * received + base
    edges = np.float64(max(degree, 1))
    old_rank = both[side, v] * edges
    both[1 - side, v] = extrapolate(both[1 - side, v], rank / edges, omega)
    return rank, abs(rank - old_rank), old_rank


gather_range = gather(contribution, next_value, no_contribution, count=3).body


@task
def chebyshev_range(worker, v, size, thread_max_degree, indptr, indices, first_side, base, run):  # type: ignore[no-untyped-def]
    """Gather for the range of vertices that begins with v, and push it again for the next round."""
    if worker.rank == 0:
        worker.push(v)
    side = (worker.round + first_side) & 1
    numbers = base, run.damping, run.state[OMEGA]
    gather_range(worker, v // size, size, thread_max_degree, indptr, indices, run.totals, run.values, side, *numbers)


def end_of_round(worker, size, thread_max_degree, indptr, indices, first_side, base, run):  # type: ignore[no-untyped-def]
    """Choose the next step as on one device."""
    end_round(worker, size, thread_max_degree, indptr, indices, run)


@by_owner
@vertex_map
def set_contributions(v, indptr, per_vertex, per_edge, both):  # type: ignore[no-untyped-def]
    """Set the contribution of a vertex to that of a rank of ``per_vertex + per_edge * degree``."""
    degree = indptr[v + 1] - indptr[v]
    both[0, v] = (per_vertex + per_edge * degree) / np.float64(max(degree, 1))


@by_owner
@vertex_map
def scale_by_degree(v, indptr, both, side, factor, rank):  # type: ignore[no-untyped-def]
    """Turn a contribution into a rank, times a factor; rounded once."""
    rank[v] = factor * (both[side, v] * np.float64(max(indptr[v + 1] - indptr[v], 1)))


_find_hubs = by_owner(find_hubs)


def pagerank_over(
    parts: Partition,
    damping: float,
    tolerance: float,
    dtype: np.dtype[Any],
    worker: Any,
    options: Any,
    rounding: float,
) -> tuple[PartitionedArray, LaunchStats, float]:
    """Return the ranks of an undirected graph, the statistics, and a bound of the error; see `pagerank`."""
    if not is_symmetric(parts.indptr, parts.indices):
        raise InvalidArgumentError(
            "pagerank over several devices is for graphs in which every edge has its reverse, and here some edge has none: "
            "partition graph.to_symmetric(), or use the graph on one device"
        )
    n, ownership = parts.num_vertices, parts.ownership
    launches = launches_over("pagerank", parts, np.uint32, None, worker, options)
    teleport = asarray(np.full(min(n, 1), 1 / max(n, 1)), device=parts.devices[0], readonly=True)
    everyone = first_of_ranges(parts)

    sums, hubs = common_zeros(1, np.float64, ownership), common_zeros(2 + parts.num_edges // HUB_DEGREE, np.int64, ownership)
    launches.launch(everyone, _find_hubs, n, sums, parts.indptr, teleport, hubs)
    rows = GraphArrays(parts.indptr, parts.indices, parts.weights)
    size, thread_max_degree, order, kind = plan_ranges(rows, hubs[1 : 1 + int(hubs[0])], len(parts.devices))
    items = first_of_ranges(parts, size)[order.to_numpy()]
    # Ranks are nearly in proportion to degrees; but not so in each of the small components.
    near, mean = tolerance > 1e-5, 1 / max(n, 1)
    start = ((1 - damping) * mean, damping * (1 - float(sums[0])) / max(parts.num_edges, 1)) if near else (mean, 0.0)
    rounds: LaunchOptions = {"barrier": True, "each_round": end_of_round}

    # In float32 rounding may let the error fall no further than to a little more than the tolerance.
    for each in dict.fromkeys((dtype, np.dtype(np.float64))):
        both = MirroredArray((2, n), each, ownership.others(2))  # contributions of this round, and of the one before

        def run_rounds(side: int, both: MirroredArray = both) -> tuple[Outcome, int]:
            """Run rounds that begin with a side; return what they come to, and how many there were."""
            shapes = (3, "f8"), (first_state(0).size, "f8"), (1, "u4")
            totals, state, taken = (common_zeros(*shape, ownership) for shape in shapes)
            state[:] = first_state(damping)
            run = Iteration(both, None, teleport, totals, state, 1 - damping, damping, tolerance, 0, taken, taken)
            arguments = size, thread_max_degree, parts.indptr, parts.indices, side, (1 - damping) * mean, run
            launches.launch(items, chebyshev_range, *arguments, worker=kind, defaults={"fetch_size": 1}, overrides=rounds)
            launches.queue.clear()
            return outcome(state), launches.runs[-1].rounds

        launches.launch(everyone, set_contributions, n, parts.indptr, *start, both)
        found, last = run_to_end(run_rounds, goes_on=True)
        if found.is_met or n == 0:
            rank = full(n, 0, dtype=dtype, partition=parts)
            launches.launch(everyone, scale_by_degree, n, parts.indptr, both, last, 1 / (found.total or 1.0), rank)
            return rank, launches.total(task="gather", like=launches.runs[-2]), (found.error if n else 0.0) + rounding
    raise InvalidArgumentError(
        f"the tolerance is too fine: rounding in float64 leaves an error of up to {found.error:.1e}, not {tolerance:.1e}"
    )
