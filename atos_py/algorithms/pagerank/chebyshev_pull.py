"""PageRank of undirected graphs: Chebyshev iteration, in whose rounds every vertex gathers from its neighbours (pull).

A plain round replaces y by f(y) = dP'y + (1 - d) v, where d is the damping, P a step along a random edge and v the teleport
distribution; it multiplies the error by dP'. The walk on an undirected graph is reversible, so the eigenvalues of dP' are real.
If they lie between -a and a, the Chebyshev semi-iterative method multiplies the error by ``a / (1 + sqrt(1 - a**2))`` a round,
its contraction factor. With a = d that always holds: the factor is 0.56 for a damping of 0.85, and 0.85 for plain rounds.

Where a graph mixes fast, so that a random walk comes close to its limit in a few steps, most of the error belongs to small
eigenvalues, and a smaller a is better. q is the contraction factor of the plain first round, which the second one measures.
Since q**2 is about the mean of the squared eigenvalues, weighted by the squares of the error's
components, eigenvalues beyond sqrt(q) have at most a part q of the weight, by Markov's inequality: so a = sqrt(q). Components
beyond a contract too, but slowly; where they come to matter, the method starts again with a = d.

What a vertex holds between rounds is its contribution, rank / degree, which each of its edges carries. A round computes f(y) in
float64, reads the graph once, has no atomic operation on a neighbour, and also measures a bound of the error of y, which holds
on undirected graphs (docs/algorithms/pagerank.md).

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

__all__ = ["HUB_DEGREE", "chebyshev_round", "is_low_degree", "plan_ranges", "solve"]

HUB_DEGREE = 4096  # edges from which on a warp takes long to gather
# Average degree below which a graph is low-degree: threads gather for a vertex each. On the CPU a worker is a thread anyway.
_LOW_AVERAGE_DEGREE = {"cuda": 8, "cpu": 1 << 62}
# Vertices of a range item, for low-degree graphs (True) and for others: the smallest and the largest number, and how many items
# each multiprocessor should get, from which the number follows between these.
_RANGE_SIZES = {True: (256, VERTICES_PER_ITEM, 4), False: (32, 256, 64)}
_LOW_DEGREE_THREAD_MAX = 512  # edges that a thread of a CTA gathers alone, in a low-degree graph
# Rounds in which the error has to fall by half; on undirected graphs it falls a hundredfold at a damping of 0.85.
_MAX_ROUNDS_PER_HALF = 10
_RATE_WINDOW = 4  # rounds over which the contraction factor is measured
_FAST_RATE = 0.5  # a first round of a smaller contraction factor is one of a graph that mixes fast


def contribution(v, u, current, *rest):  # type: ignore[no-untyped-def]
    """Return what an edge carries."""
    return current[u]


def no_contribution(current, *rest):  # type: ignore[no-untyped-def]
    """Return what no edge carries."""
    return current.dtype.type(0)


def next_value(v, degree, received, current, previous, teleport, teleport_weight, damping, omega):  # type: ignore[no-untyped-def]
    """Replace the previous contribution of v by the next one.

    Returns
    -------
    tuple
        The rank of v in f(y), its distance to the rank in y, and the rank in y.
    """
    edges = np.float64(max(degree, 1))
    old_rank = current[v] * edges
    rank = damping * received + teleport_weight * teleport[min(v, teleport.size - 1)]
    value = previous[v]
    previous[v] = value + omega * (rank / edges - value)
    return rank, abs(rank - old_rank), old_rank


chebyshev_round = gather(contribution, next_value, no_contribution, count=3)


@vertex_map
def scale_by_degree(v, indptr, source, factor, divide, target):  # type: ignore[no-untyped-def]
    """Turn a rank, times a factor, into a contribution (`divide`), or a contribution into a rank; rounded once."""
    degree = np.float64(max(indptr[v + 1] - indptr[v], 1))
    target[v] = factor * (source[v] / degree if divide else source[v] * degree)


def is_low_degree(graph: Graph) -> bool:
    """Whether vertices have few edges on average, so that a thread is enough for each but hubs."""
    return graph.num_edges < _LOW_AVERAGE_DEGREE[graph.device.kind] * graph.num_vertices


def plan_ranges(graph: Graph, hubs: NDArray[Any]) -> tuple[int, int, NDArray[Any], str]:
    """Return how vertices gather: those of a range, edges up to which one thread gathers, the ranges, and the worker."""
    n, device, low_degree = graph.num_vertices, graph.device, is_low_degree(graph)
    smallest, largest, items_per_processor = _RANGE_SIZES[low_degree]
    size = max(smallest, min(largest, n // (items_per_processor * device.processors)))
    has_hub = np.zeros(-(-n // size), np.bool_)
    has_hub[hubs // size] = True
    items = np.argsort(~has_hub, kind="stable")  # ranges with hubs take longest, and so come first
    thread_max_degree = max(THREAD_MAX_DEGREE[device.kind], _LOW_DEGREE_THREAD_MAX if low_degree else 0)
    return size, thread_max_degree, items, "cta" if low_degree else "warp"


def solve(
    graph: Graph,
    launches: LaunchSequence,
    damping: float,
    teleport: Array,
    rank: Array,
    tolerance: float,
    *,
    hubs: NDArray[Any],
    any_scale: bool,
    undirected: bool,
) -> float | None:
    """Change ranks until their error is at most `tolerance`, if that comes about.

    Parameters
    ----------
    rank : Array
        The ranks to start from, of sum about 1, or in any scale if `any_scale`.
    hubs : numpy.ndarray
        The vertices with more than `HUB_DEGREE` edges.
    undirected : bool
        Whether the graph is. Otherwise the result is only a start for another method.

    Returns
    -------
    float or None
        None if the error stopped to fall; the ranks are those to start from then. A bound of the error, if the graph is
        undirected; the ranks then sum to 1. Otherwise the number proves nothing, and the ranks have the scale of the fixed
        point of f, in which residuals are computed from ranks.
    """
    n, device = graph.num_vertices, graph.device
    if n == 0:
        return 0.0
    size, thread_max_degree, items, worker = plan_ranges(graph, hubs)
    how: dict[str, Any] = {"worker": "cta"} if worker == "cta" else {"worker": "warp", "defaults": {"fetch_size": 1}}
    current, previous = (zeros(n, dtype=rank.dtype, device=device) for _ in range(2))

    def run_round(omega: float) -> list[float]:
        """Return the sum of f(y), its distance to y, and the sum of y, where y is `current`; put the next y in `previous`."""
        launches.totals[:] = 0
        values = current, previous, teleport, 1 - damping, damping, omega
        arguments = size, thread_max_degree, graph.indptr, graph.indices, launches.totals, *values
        launches.launch(items, chebyshev_round, *arguments, **how)
        return launches.totals.to_numpy().tolist()  # type: ignore[no-any-return]

    launches.over_vertices(scale_by_degree, n, graph.indptr, rank, 1.0, True, current)
    if any_scale:
        # Of the sum of y, f keeps what comes along edges; the rest has to be the teleport term of f, which is 1 - damping.
        new_sum, _, old_sum = run_round(1.0)
        rest = old_sum - new_sum + 1 - damping
        if not (rest > 0 and old_sum > 0):
            return None
        launches.over_vertices(scale_by_degree, n, graph.indptr, rank, (1 - damping) / rest, True, current)
    errors = list[float]()
    bound = damping  # a: eigenvalues of dP' are taken to lie between -bound and bound
    omega = 1.0  # of this round; 1 makes it a plain one
    safe_rate = damping / (1 + math.sqrt(1 - damping**2))  # contraction factor for a = d
    for count in itertools.count(1):
        new_sum, change, old_sum = run_round(omega)
        errors.append((change + abs(new_sum - old_sum)) / (1 - damping) / old_sum if old_sum > 0 else math.inf)
        if errors[-1] <= tolerance:  # measured of `current`, and so what is returned: the next y may be worse
            break
        current, previous = previous, current
        if count > _MAX_ROUNDS_PER_HALF and not errors[-1] < errors[-1 - _MAX_ROUNDS_PER_HALF] / 2:
            return None  # the graph is not undirected, the damping is almost 1, or rounding lets it fall no further
        if count == 2 and errors[1] < _FAST_RATE * errors[0]:
            bound = min(math.sqrt(errors[1] / errors[0]), damping)
        elif bound < damping and count > _RATE_WINDOW + 1 and errors[-1] > safe_rate**_RATE_WINDOW * errors[-1 - _RATE_WINDOW]:
            bound, omega = damping, 1.0  # start again
            continue
        omega = 1 / (1 - bound**2 * (omega if omega != 1 else 2) / 4)
    launches.over_vertices(scale_by_degree, n, graph.indptr, current, 1 / old_sum if undirected else 1.0, False, rank)
    return errors[-1]
