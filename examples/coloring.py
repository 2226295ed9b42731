"""A timetable by graph coloring
=============================

This program schedules exams so that no student has two at the same time. A vertex is an exam, an edge joins two exams that
share a student, and a color is a time. ``python examples/coloring.py [FILE]``, where FILE is a graph in any known format.
"""

from __future__ import annotations

import sys

import numpy as np

import atos_py as atos
from atos_py.algorithms.coloring import ORDERS, color, verify_coloring


def conflicts(num_students: int = 5000, num_exams: int = 2000, each: int = 4) -> atos.Graph:
    """Let each student take some exams, a few of which are popular, and join the exams of each student."""
    rng = np.random.default_rng(1)
    takes = (num_exams * rng.random((num_students, each)) ** 3).astype(np.int64)
    pairs = [(takes[:, i], takes[:, j]) for i in range(each) for j in range(i)]
    sources, targets = (np.concatenate(ends) for ends in zip(*pairs, strict=True))
    return atos.Graph.from_edges(sources, targets, num_vertices=num_exams, symmetrize=True, deduplicate=True, remove_loops=True)


# %%
# The order in which vertices are colored decides how many colors are needed.
def main(file: str | None = None) -> None:
    """Color in each order, print the result, and draw how many exams there are at each time."""
    from matplotlib import pyplot as plt

    graph = atos.Graph.load(file, weights=False) if file else conflicts()
    print(graph, "with maximum degree", graph.max_degree)
    for order in ORDERS:
        result = color(graph, order)
        verify_coloring(graph, result.colors)
        ratio = result.stats.tasks_run / graph.num_vertices
        print(f"{order:8} {result.num_colors:4} colors, {ratio:.3f} tasks for each vertex, {result.stats.milliseconds:.2f} ms")
        plt.step(range(result.num_colors), np.bincount(result.colors), label=f"{order}: {result.num_colors}")

    # The same tasks in rounds with barriers between them: the bulk-synchronous way.
    rounds = color(graph, "degree", worker="warp", barrier=True)
    verify_coloring(graph, rounds.colors)
    print(rounds.stats)
    plt.gca().set(xlabel="color (time)", ylabel="vertices (exams)")
    plt.legend(title="order: colors")
    plt.show()


if __name__ == "__main__":  # in a notebook sys.argv is that of the kernel
    main(*[] if hasattr(sys, "ps1") else sys.argv[1:])
