"""PageRank with an error bound
============================

This program finds the most important vertices of a graph, with a bound for the error of the ranks. Then it computes
personalized ranks, and continues from an earlier result. ``python examples/pagerank.py [FILE]``
"""

from __future__ import annotations

import sys

import numpy as np

import atos_py as atos
from atos_py.algorithms.pagerank import pagerank, verify_pagerank


# %%
# PageRank is ready-made; its tasks are in ``atos_py/algorithms/pagerank``.
def main() -> None:
    """Rank the vertices of a graph from a file, or of a random one."""
    graph = atos.Graph.load(sys.argv[1], weights=False) if len(sys.argv) > 1 else atos.generate.rmat(14, 16)
    print(graph)

    result = pagerank(graph, tolerance=1e-5)
    bound = verify_pagerank(graph, result, 1e-5)
    rank = result.rank.to_numpy()
    best = np.argsort(-rank)[:5]
    print("best:", ", ".join(f"{v} ({rank[v]:.5f})" for v in best), f"; error at most {bound:.1e}")
    print(result.stats)

    # Personalized PageRank: all jumps lead to the best vertex, so vertices near it gain rank.
    near = np.zeros(graph.num_vertices)
    near[best[0]] = 1
    seen = pagerank(graph, tolerance=1e-5, personalization=near)
    verify_pagerank(graph, seen, 1e-5, personalization=near)
    gain = seen.rank.to_numpy() / rank
    gain[best[0]] = 0
    print(f"personalized to {best[0]}, vertex {np.argmax(gain)} gains most: {gain.max():.1f} times its rank")

    # A result is a good start for a similar graph or similar parameters.
    again = pagerank(graph, damping=0.86, tolerance=1e-5, start=result.rank)
    print(f"from damping 0.85 to 0.86: {again.stats.rounds} rounds instead of {pagerank(graph, 0.86, 1e-5).stats.rounds}")


if __name__ == "__main__":
    main()
