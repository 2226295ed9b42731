"""PageRank over several devices: Chebyshev iteration on undirected graphs, gathering from mirrors.

Each device gathers for its own vertices. What these gather from, the contributions of all vertices, has a copy on each device,
so that an edge never crosses a link: a vertex is written once a round to each device, and read along all its edges at home.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.array import asarray
from ...arrays.filled import full
from ...arrays.partitioned import PartitionedArray
from ...arrays.shared import common_zeros
from ...errors import InvalidArgumentError
from ...graph.graph_arrays import GraphArrays
from ...graph.partition import Partition
from ...graph.symmetry import is_symmetric
from ...runtime.launch_options import LaunchOptions
from ...runtime.stats import LaunchStats
from ..over_devices import by_owner, first_of_ranges, launches_over
from .chebyshev_pull import (
    HUB_DEGREE,
    Iteration,
    Outcome,
    chebyshev_range,
    end_round,
    find_hubs,
    first_state,
    outcome,
    plan_ranges,
    run_to_end,
    scale_by_degree,
)
from .residual_push import set_ranks

__all__ = ["pagerank_over"]

_find_hubs, _set_ranks, _scale_by_degree = by_owner(find_hubs), by_owner(set_ranks), by_owner(scale_by_degree)


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
    near = tolerance > 1e-5
    start = (1 - damping, damping * (1 - float(sums[0])) / max(parts.num_edges, 1)) if near else (1.0, 0.0)
    rounds: LaunchOptions = {"barrier": True, "each_round": end_round}

    def contributions(type_of_them: Any) -> PartitionedArray:
        return full(n, 0, dtype=type_of_them, partition=parts, placement="mirrored")

    def run_rounds(values: PartitionedArray, others: PartitionedArray) -> tuple[Outcome, int]:
        """Run rounds that begin with `values`; return what they come to, and how many there were."""
        totals, state, taken = (common_zeros(*made, ownership) for made in ((3, "f8"), (first_state(0).size, "f8"), (1, "u4")))
        state[:] = first_state(damping)
        run = Iteration(values, others, teleport, totals, state, 1 - damping, damping, tolerance, 0, taken, taken)
        arguments = size, thread_max_degree, parts.indptr, parts.indices, run
        launches.launch(items, chebyshev_range, *arguments, worker=kind, defaults={"fetch_size": 1}, overrides=rounds)
        launches.queue.clear()
        return outcome(state), launches.runs[-1].rounds

    # In float32 rounding may let the error fall no further than to a little more than the tolerance.
    for each in dict.fromkeys((dtype, np.dtype(np.float64))):
        values, others = contributions(each), contributions(each)
        launches.launch(everyone, _set_ranks, n, parts.indptr, teleport, *start, True, values)
        found, last = run_to_end(run_rounds, values, others, goes_on=True)
        if found.is_met or n == 0:
            rank = full(n, 0, dtype=dtype, partition=parts)
            launches.launch(everyone, _scale_by_degree, n, parts.indptr, last, 1 / (found.total or 1.0), rank)
            return rank, launches.total(task="gather", like=launches.runs[-2]), (found.error if n else 0.0) + rounding
    raise InvalidArgumentError(
        f"the tolerance is too fine: rounding in float64 leaves an error of up to {found.error:.1e}, not {tolerance:.1e}"
    )
