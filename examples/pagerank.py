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
def main(file: str | None = None) -> None:
    """Rank the vertices of a graph from a file, or of a random one, and draw the ranks."""
    from matplotlib import pyplot as plt

    graph = atos.Graph.load(file, weights=False) if file else atos.generate.rmat(14, 16)
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
    for name, ranks in ("PageRank", result.rank), (f"personalized to {best[0]}", seen.rank), ("damping 0.86", again.rank):
        plt.loglog(np.sort(ranks.to_numpy())[::-1], label=name)
    plt.gca().set(xlabel="vertices by rank", ylabel="rank")
    plt.legend()
    plt.show()


if __name__ == "__main__":  # in a notebook sys.argv is that of the kernel
    main(*[] if hasattr(sys, "ps1") else sys.argv[1:])
