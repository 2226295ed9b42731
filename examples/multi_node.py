"""Breadth-first search by several processes
=========================================

Each process owns a part of the vertices and runs their tasks. On one host they share memory. On several hosts, one process on
each, they exchange messages by MPI, or by PyTorch if torchrun starts them. With "cuda" each has a GPU, and with NCCL they
exchange messages between these. In the repository's root::

    mpirun -n 4 python examples/multi_node.py [SCALE]                          # one host
    torchrun --nproc-per-node 4 examples/multi_node.py [SCALE]
    mpirun -n 2 -ppn 1 -hosts first,second python examples/multi_node.py      # several; with Open MPI: --host first,second
    torchrun --nnodes 2 --nproc-per-node 1 --rdzv-backend c10d --rdzv-endpoint first:29500 examples/multi_node.py
    mpirun -n 3 python examples/multi_node.py 12 mpi                           # one host, as if it were three
    torchrun --nproc-per-node 2 examples/multi_node.py 20 cuda                 # two GPUs of one host
    torchrun --nproc-per-node 2 examples/multi_node.py 20 nccl                 # two GPUs, as if of two hosts

torchrun is called on each of the hosts. The graph has 2**SCALE vertices. Without a launcher it is one process by itself.
"""

from __future__ import annotations

import os
import sys

import numpy as np

import atos_py as atos

RANKS = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"}  # by which launchers tell a process its number


@atos.task(workload=lambda v, graph, depth: graph.indptr[v + 1] - graph.indptr[v])
def visit(worker: atos.Worker, v, i, graph, depth):
    """Lower the depth of a neighbor, and if that lowered it push the neighbor, to the process that owns it."""
    worker.push_min(depth, graph.indices[graph.indptr[v] + i], depth[v] + 1)


def main(scale: int = 12, how: str | None = None) -> None:
    """Search a graph together with the other processes; the first one verifies, prints, and draws the levels."""
    graph = atos.generate.rmat(scale, device="cpu")  # the same in all
    device = f"cuda:{os.environ['LOCAL_RANK']}" if how == "nccl" else "cpu"
    source = int(np.argmax(graph.degrees()))
    alone = {} if RANKS & os.environ.keys() else {"rank": 0, "world_size": 1}
    options = {None: alone, "cuda": {"device": "cuda"}}.get(how, {"engine": how})
    with atos.distributed.init(**options) as processes:
        parts = graph.to(device).partition(order="random")
        depth = atos.full(parts.num_vertices, atos.UNREACHED, dtype=np.uint32, partition=parts)
        depth[source] = 0
        queue = atos.Queue(capacity=parts.num_vertices, owner=parts)
        queue.push(source)  # kept by the process that owns it
        search = queue.launch_cta(visit, parts, depth)
        found = depth.to_numpy()  # of all processes
        if processes.rank == 0:
            atos.verify_bfs(graph, source, found)
            levels = np.bincount(found[found != atos.UNREACHED])
            text = ", ".join(map(str, levels))
            print(parts, search, f"{processes}: {text} vertices in the levels from 0 on; verified", sep="\n")
            from matplotlib import pyplot as plt

            plt.bar(range(len(levels)), levels)
            plt.gca().set(xlabel="level", ylabel="vertices")
            plt.show()


if __name__ == "__main__":  # in a notebook sys.argv is that of the kernel
    arguments = [] if hasattr(sys, "ps1") else sys.argv[1:]
    main(*map(int, arguments[:1]), *arguments[1:2])
