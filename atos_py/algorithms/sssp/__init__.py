"""Shortest paths from one source, or from the nearest of several, along edges whose weights are not negative.

An item of the queue is a vertex with a distance, which is its priority. Relaxing an edge lowers the distance of its end, and
pushes the end with that distance where it went down. Items of which a shorter path has been found meanwhile are skipped. The
distances come out right in any order, so workers wait for nobody: priorities only save work (delta-stepping without rounds).

Distances of floats are sums in the type of the weights, rounded from the source on: each is the least that a path has. That is
the same whatever the order, since rounding never makes the larger of two sums the smaller one.

Predecessors are found afterwards, by passes over the edges. An edge is *tight* if the distances of its ends differ by its
weight. If they do differ, following such edges back leads to a source. Edges between equal distances (weights of 0, or lost in
rounding) may form cycles: what only such edges lead to is searched breadth first, from the vertices that have a predecessor.

Source: Meyer and Sanders, "Delta-stepping: a parallelizable shortest path algorithm", J. Algorithms 2003; Chen et al., "Atos: A
Task-Parallel GPU Scheduler for Graph Analytics", ICPP 2022.
"""

from . import entry  # noqa: F401 - registers the algorithm
from .api import SSSPResult, sssp
from .verify import verify_sssp

__all__ = ["SSSPResult", "sssp", "verify_sssp"]
