"""PageRank, and how sure it is
============================

The most important vertices of a graph; then again, as seen from the first. ``python examples/pagerank.py [FILE]``
"""

from __future__ import annotations

import sys

import numpy as np

import atos_py as atos
from atos_py.algorithms.pagerank import pagerank, verify


# %%
# Ready-made: the tasks are in ``atos_py/algorithms/pagerank``.
def main() -> None:
    """Rank the vertices of a file's graph, or of a random one; then again as seen from the first."""
    graph = atos.Graph.load(sys.argv[1], weights=False) if len(sys.argv) > 1 else atos.generate.rmat(14, 16)
    print(graph)

    result = pagerank(graph, tolerance=1e-5)
    bound = verify(graph, result, 1e-5)
    rank = result.rank.to_numpy()
    best = np.argsort(-rank)[:5]
    print("best:", ", ".join(f"{v} ({rank[v]:.5f})" for v in best), f"; error at most {bound:.1e}")
    print(result.stats)

    # Jumps that all lead to the best vertex: what is near it gains.
    near = np.zeros(graph.num_vertices)
    near[best[0]] = 1
    seen = pagerank(graph, tolerance=1e-5, personalization=near)
    verify(graph, seen, 1e-5, personalization=near)
    gain = seen.rank.to_numpy() / rank
    gain[best[0]] = 0
    print(f"as seen from {best[0]}, vertex {np.argmax(gain)} gains most: {gain.max():.1f} times its rank")

    # A result is a good start for a graph or a question that is nearly the same.
    again = pagerank(graph, damping=0.86, tolerance=1e-5, start=result.rank)
    print(f"from damping 0.85 to 0.86: {again.stats.rounds} rounds instead of {pagerank(graph, 0.86, 1e-5).stats.rounds}")


if __name__ == "__main__":
    main()
