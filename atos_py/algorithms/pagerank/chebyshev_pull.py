"""PageRank of undirected graphs: rounds in which every vertex gathers from its neighbours, accelerated by Chebyshev iteration.

The walk on an undirected graph has real eigenvalues. If d times all of them lie between -a and a, the Chebyshev semi-iterative
method makes the error fall by ``a / (1 + sqrt(1 - a**2))`` a round. With a = d, the damping, that is never wrong, and 0.56 for
a damping of 0.85. Where a graph mixes fast, most of the error lies in directions of small eigenvalues, and the first round,
a plain one, makes it fall to a part q: then a is the square root of q. What is outside falls too, but slowly; where that comes
to matter, a is d after all. Each round reads the graph once, and adds nothing atomically to neighbours.

The values of a round are what each edge carries, rank / degree. A round computes f(y) = dP'y + (1 - d) v from y in float64, and
with it a bound of the error of y; the proof is in docs/algorithms/pagerank.md. It holds on undirected graphs.

Source: Golub and Varga, "Chebyshev semi-iterative methods, successive overrelaxation iterative methods, and second order
Richardson iterative methods", Numerische Mathematik 3 (1961).
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.array import Array, zeros
from ...graph.graph import Graph
from ...operators.edge_map import THREAD_MAX_DEGREE, gather
from ...operators.ranges import VERTICES_PER_ITEM
from ...operators.vertex_map import vertex_map
from ..launch_sequence import LaunchSequence

__all__ = ["HUB_DEGREE", "chebyshev_round", "is_mesh", "solve"]

HUB_DEGREE = 4096  # edges from which on a warp takes long to gather
# Edges of a vertex on average, below which none is taken to have so many that one thread is not enough for them.
_MESH_DEGREE = {"cuda": 8, "cpu": 1 << 62}
# Vertices of an item, of meshes and of others: at least, at most, and in between as many as give each multiprocessor so many.
_RANGE_SIZES = {True: (256, VERTICES_PER_ITEM, 4), False: (32, 256, 64)}
_MESH_THREAD_DEGREE = 512  # edges that a thread of a CTA gathers alone
_MAX_ROUNDS_PER_HALF = 10  # in which the error of an undirected graph falls a hundredfold, and has to fall by half
_RATE_WINDOW = 4  # rounds over which it is seen whether the error falls as it should
_FAST_RATE = 0.5  # a first round that leaves less of the error is one of a graph that mixes fast


def contribution(v, u, now, *rest):  # type: ignore[no-untyped-def]
    """Return what an edge carries."""
    return now[u]


def no_contribution(now, *rest):  # type: ignore[no-untyped-def]
    """Return what no edge carries."""
    return now.dtype.type(0)


def next_value(v, degree, received, now, before, teleport, teleport_weight, damping, omega):  # type: ignore[no-untyped-def]
    """Replace the value before the last by the next one; return the new rank, its distance to the rank now, and that."""
    edges = np.float64(max(degree, 1))
    old_rank = now[v] * edges
    rank = damping * received + teleport_weight * teleport[min(v, teleport.size - 1)]
    value = before[v]
    before[v] = value + omega * (rank / edges - value)
    return rank, abs(rank - old_rank), old_rank


chebyshev_round = gather(contribution, next_value, no_contribution, count=3)


@vertex_map
def scale(v, indptr, source, factor, divide, target):  # type: ignore[no-untyped-def]
    """Turn a rank, times a factor, into what each edge carries, or back; rounded once."""
    degree = np.float64(max(indptr[v + 1] - indptr[v], 1))
    target[v] = factor * (source[v] / degree if divide else source[v] * degree)


def is_mesh(graph: Graph) -> bool:
    """Whether vertices have so few edges that a thread is enough for each, if there are no hubs."""
    return graph.num_edges < _MESH_DEGREE[graph.device.kind] * graph.num_vertices


def solve(
    graph: Graph,
    launches: LaunchSequence,
    damping: float,
    teleport: Array,
    rank: Array,
    goal: float,
    *,
    hubs: NDArray[Any],
    any_scale: bool,
    undirected: bool,
) -> float | None:
    """Change ranks until their error is at most `goal`, if that comes about.

    Parameters
    ----------
    rank : Array
        The ranks to start from, of sum about 1, or in any scale if `any_scale`.
    hubs : numpy.ndarray
        The vertices with more than `HUB_DEGREE` edges, whose items are begun first.
    undirected : bool
        Whether the graph is. Otherwise the result is only a start for another method.

    Returns
    -------
    float or None
        A bound of the error, if the graph is undirected; the ranks then sum to 1. Otherwise it proves nothing, and they
        have the scale in which residuals are made from them.
    """
    n = graph.num_vertices
    if n == 0:
        return 0.0
    mesh = is_mesh(graph)
    now, before = (zeros(n, dtype=rank.dtype, device=graph.device) for _ in range(2))
    smallest, largest, items_per_processor = _RANGE_SIZES[mesh]
    size = max(smallest, min(largest, n // (items_per_processor * graph.device.processors)))
    thread_max_degree = max(THREAD_MAX_DEGREE[graph.device.kind], _MESH_THREAD_DEGREE if mesh else 0)
    has_hub = np.zeros(-(-n // size), np.bool_)
    has_hub[hubs // size] = True
    items = np.concatenate([np.flatnonzero(has_hub), np.flatnonzero(~has_hub)])  # what takes long is begun first
    how: dict[str, Any] = {"worker": "cta"} if mesh else {"worker": "warp", "defaults": {"fetch_size": 1}}
    rows = graph.indptr, graph.indices

    def round_with(omega: float) -> tuple[float, float, float]:
        launches.totals[:] = 0
        values = now, before, teleport, 1 - damping, damping, omega
        launches.launch(items, chebyshev_round, size, thread_max_degree, *rows, launches.totals, *values, **how)
        new_sum, change, old_sum = map(float, launches.totals.to_numpy())
        return new_sum, change, old_sum

    launches.over_vertices(scale, n, graph.indptr, rank, 1.0, True, now)
    if any_scale:  # edges carry damping * (ranks that have edges): this much and the jumps have to add up to all ranks
        new_sum, _, old_sum = round_with(1.0)
        teleport_part = old_sum - new_sum + 1 - damping
        if not (teleport_part > 0 and old_sum > 0):
            return None
        launches.over_vertices(scale, n, graph.indptr, rank, (1 - damping) / teleport_part, True, now)
    errors = list[float]()
    bound, omega, rounds = damping, 1.0, 0  # of the eigenvalues; of this round; since omega began with 1
    safe_rate = damping / (1 + math.sqrt(1 - damping**2))  # what a round leaves of the error if the bound is the damping
    for count in itertools.count(1):
        new_sum, change, old_sum = round_with(omega)
        errors.append((change + abs(new_sum - old_sum)) / (1 - damping) / old_sum if old_sum > 0 else math.inf)
        if errors[-1] <= goal:  # that of `now`; what follows reaches further, and may miss
            break
        now, before = before, now
        if count > _MAX_ROUNDS_PER_HALF and not errors[-1] < errors[-1 - _MAX_ROUNDS_PER_HALF] / 2:
            return None  # the graph is not undirected, or this is as far as rounding lets it fall
        rounds += 1
        if count == 2 and errors[1] < _FAST_RATE * errors[0]:
            bound = min(math.sqrt(errors[1] / errors[0]), damping)
        elif bound < damping and count > _RATE_WINDOW + 1 and errors[-1] > safe_rate**_RATE_WINDOW * errors[-1 - _RATE_WINDOW]:
            bound, rounds = damping, 0
        omega = 1 / (1 - bound**2 * (omega / 4 if rounds > 1 else 0.5)) if rounds else 1.0
    launches.over_vertices(scale, n, graph.indptr, now, 1 / old_sum if undirected else 1.0, False, rank)
    return errors[-1]
