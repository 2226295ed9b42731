"""A timetable, by graph colouring
===============================

Exams that share a student must not be at the same time. A colour is a time, and an edge joins two exams that somebody takes
both of. ``python examples/coloring.py [FILE]``, where FILE is a graph in any known format.
"""

from __future__ import annotations

import sys

import numpy as np

import atos_py as atos
from atos_py.algorithms.coloring import ORDERS, color, verify


def conflicts(num_students: int = 5000, num_exams: int = 2000, each: int = 4) -> atos.Graph:
    """Let every student take some exams, of which a few are popular, and join those that one student takes."""
    rng = np.random.default_rng(1)
    takes = (num_exams * rng.random((num_students, each)) ** 3).astype(np.int64)
    pairs = [(takes[:, i], takes[:, j]) for i in range(each) for j in range(i)]
    sources, targets = (np.concatenate(ends) for ends in zip(*pairs, strict=True))
    return atos.Graph.from_edges(sources, targets, num_vertices=num_exams, symmetrize=True, deduplicate=True, remove_loops=True)


# %%
# Whose turn comes first decides how many times are needed.
def main() -> None:
    """Colour in each order, and print what comes of it."""
    graph = atos.Graph.load(sys.argv[1], weights=False) if len(sys.argv) > 1 else conflicts()
    print(graph, "of largest degree", graph.max_degree)
    for order in ORDERS:
        result = color(graph, order)
        verify(graph, result.colors)
        ratio = result.stats.tasks_run / graph.num_vertices
        print(f"{order:8} {result.num_colors:4} colours, {ratio:.3f} tasks for each vertex, {result.stats.milliseconds:.2f} ms")

    # The same tasks in rounds, each after the one before: what is usual, and what relaxed barriers save.
    rounds = color(graph, "degree", worker="warp", barrier=True)
    verify(graph, rounds.colors)
    print(rounds.stats)


if __name__ == "__main__":
    main()
