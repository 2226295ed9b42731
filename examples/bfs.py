"""Breadth-first search on a road network
======================================

Written out in full, from the task to the proof. Give it a graph file, such as New York's roads from the 9th DIMACS challenge
(USA-road-d.NY.gr.gz); without one it generates a road-like graph. ``python examples/bfs.py [FILE] [--source V] [--device cpu]``
"""

from __future__ import annotations

import argparse

import numpy as np

import atos_py as atos


def degree(v, graph, depth):
    """Return how many edges leave v, where they begin, and the depth that they lead to: once for each item."""
    first = graph.indptr[v]
    return graph.indptr[v + 1] - first, first, depth[v] + 1


@atos.task(workload=degree)
def visit(worker, v, i, first, next_depth, graph, depth):
    """Relax edge i of vertex v, and push its target if that made it nearer."""
    neighbor = graph.indices[first + i]
    if atos.atomic_min(depth, neighbor, next_depth) > next_depth:
        worker.push(neighbor)


# %%
# The rest is what happens on the host.
def main() -> None:
    """Search, verify, and print what was found."""
    parser = argparse.ArgumentParser(description="Search a graph breadth-first, and prove the result right.")
    parser.add_argument("file", nargs="?", help=".gr, .mtx, .txt or .npz, gzipped or not")
    parser.add_argument("--source", type=int, default=0)
    parser.add_argument("--device", help="cpu, cuda or cuda:N; the best there is by default")
    options = parser.parse_args()
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


if __name__ == "__main__":
    main()
