"""Breadth-first search on a road network
======================================

This program finds the distance of all vertices from one of them, and verifies the result. FILE is a graph, such as the roads of
New York (USA-road-d.NY.gr.gz of the 9th DIMACS challenge). ``python examples/bfs.py [FILE] [--source V] [--device cpu]``
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

import atos_py as atos


def degree(v, graph, depth):
    """Return the number of edges of v, the index of the first one, and the depth of the neighbors. Runs once per item."""
    first = graph.indptr[v]
    return graph.indptr[v + 1] - first, first, depth[v] + 1


@atos.task(workload=degree)
def visit(worker: atos.Worker, v, i, first, next_depth, graph, depth):
    """Relax edge i of vertex v, and push the neighbor if its depth went down."""
    neighbor = graph.indices[first + i]
    if atos.atomic_min(depth, neighbor, next_depth) > next_depth:
        worker.push(neighbor)


# %%
# The rest runs on the host.
def main() -> None:
    """Search, verify, print the result, and draw how many vertices have each depth."""
    from matplotlib import pyplot as plt

    parser = argparse.ArgumentParser(description="Search a graph breadth-first, and verify the result.")
    parser.add_argument("file", nargs="?", help=".gr, .mtx, .txt or .npz, gzipped or not")
    parser.add_argument("--source", type=int, default=0)
    parser.add_argument("--device", help="cpu, cuda or cuda:N; by default the first GPU, or the CPU if there is none")
    options = parser.parse_args([] if hasattr(sys, "ps1") else None)  # in a notebook sys.argv is that of the kernel
    device = atos.device(options.device)
    if options.file:
        graph = atos.Graph.load(options.file, device=device, weights=False)
    else:
        graph = atos.generate.road(300, keep=0.8, device=device)
    print(graph)
    depth = atos.full(graph.num_vertices, atos.UNREACHED, dtype=np.uint32, device=device)
    depth[options.source] = 0
    queue = atos.Queue(capacity=2 * graph.num_vertices, device=device)
    queue.push(options.source)
    print(queue.launch_cta(visit, graph, depth))

    atos.verify_bfs(graph, options.source, depth)
    found = depth.to_numpy()
    reached = found[found != atos.UNREACHED]
    print(f"{reached.size:,} of {graph.num_vertices:,} vertices reached, the farthest over {reached.max():,} edges; verified")
    plt.fill_between(range(reached.max() + 1), np.bincount(reached))
    plt.gca().set(xlabel="depth", ylabel="vertices")
    plt.show()


if __name__ == "__main__":
    main()
