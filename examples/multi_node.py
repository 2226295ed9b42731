"""Breadth-first search by several processes
=========================================

Each process owns a part of the vertices, runs their tasks, and pushes to those of the others. **All processes have to be on one
host so far**, each with a CPU device; several hosts are refused. In the repository's root, for any number of processes::

    torchrun --nproc-per-node 4 examples/multi_node.py [SCALE]
    mpirun -n 4 python examples/multi_node.py [SCALE]

The graph has 2**SCALE vertices. Without a launcher, ``python examples/multi_node.py`` is one process by itself.
"""

from __future__ import annotations

import os
import sys

import numpy as np

import atos_py as atos

RANKS = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"}  # by which launchers tell a process its number


@atos.task(workload=lambda v, graph, depth: graph.indptr[v + 1] - graph.indptr[v])
def visit(worker, v, i, graph, depth):
    """Lower the depth of a neighbor, and if that lowered it push the neighbor, to the process that owns it."""
    worker.push_min(depth, graph.indices[graph.indptr[v] + i], depth[v] + 1)


@atos.task
def count(worker, v, depth, levels):
    """Count a vertex in its level, or in the last place if it was not reached."""
    if worker.rank == 0:
        atos.accumulate(levels, min(depth[v], levels.size - 1), 1)


def main() -> None:
    """Search a graph together with the other processes; the first one verifies and prints."""
    graph = atos.generate.rmat(int(sys.argv[1]) if len(sys.argv) > 1 else 12, device="cpu")  # the same in all
    source = int(np.argmax(graph.degrees()))
    with atos.distributed.init() if RANKS & os.environ.keys() else atos.distributed.init(0, 1) as processes:
        parts = graph.partition(order="random")
        depth = atos.full(parts.num_vertices, atos.UNREACHED, dtype=np.uint32, partition=parts)
        levels = atos.distributed.zeros(100, dtype=np.int64)
        depth[source] = 0
        queue = atos.Queue(capacity=parts.num_vertices, owner=parts)
        queue.push(source)  # kept by the process that owns it
        search = queue.launch_cta(visit, parts, depth)
        queue.push(range(parts.num_vertices))
        queue.launch_thread(count, depth, levels)
        if processes.rank == 0:
            atos.verify_bfs(graph, source, depth.to_numpy())
            found = ", ".join(map(str, np.trim_zeros(levels[:-1])))
            print(parts, search, f"{processes}: {found} vertices in the levels from 0 on; verified", sep="\n")


if __name__ == "__main__":
    main()
