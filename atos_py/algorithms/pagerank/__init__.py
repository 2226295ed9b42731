"""PageRank: the stationary distribution of a walk that follows a random edge, or jumps with probability 1 - damping.

Two methods. On undirected graphs every vertex gathers from its neighbors, round after round, accelerated by Chebyshev
iteration (`chebyshev_pull`). On others residuals are pushed along out-edges in any order, until their sum proves the error
small (`residual_push`). Both start near the answer, and end by a bound on the error in the 1-norm, which is measured.

Dangling vertices, those without out-edges, pass nothing on here, while the definition sends their rank to where jumps lead, the
teleport distribution. Both have the same solution but for its scale, so ranks are scaled to sum 1 at the end.

`api` has the call, `verify` the proof of a result from the ranks alone. Proofs: docs/algorithms/pagerank.md.

Source: Chen et al., "Atos: A Task-Parallel GPU Scheduler for Graph Analytics", ICPP 2022, Algorithms 3 and 4.
"""

from . import entry  # noqa: F401 - registers the algorithm
from .api import METHODS, PageRankResult, pagerank
from .verify import verify_pagerank

__all__ = ["METHODS", "PageRankResult", "pagerank", "verify_pagerank"]
