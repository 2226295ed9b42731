"""What a wheel has to do where it is installed, without any compiler: BFS on CPU threads, and kernels linked for a GPU.

Run by test_packaging.py and by `make wheel-test`: ``python tests/installed.py [--gpu]``, with a PATH that leads to no compiler.
For linking with `--gpu` there need not be a GPU.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np

import atos_py as atos
from atos_py.compile import linker as link
from atos_py.compile.arguments import describe


def degree(v, graph):
    return graph.indptr[v + 1] - graph.indptr[v]


@atos.task(workload=degree)
def visit(worker, v, i, graph, depth):
    neighbor = graph.indices[graph.indptr[v] + i]
    next_depth = depth[v] + 1
    if atos.atomic_min(depth, neighbor, next_depth) > next_depth:
        worker.push(neighbor)


def main() -> None:
    compilers = list(filter(None, map(shutil.which, ("c++", "g++", "cc", "gcc", "clang", "nvcc"))))
    assert not compilers, f"not bare: {compilers}"
    package, checkout = Path(atos.__file__).parent, Path(__file__).parents[1]
    assert package != checkout / "atos_py", f"the checkout, not what was installed: {package}"

    graph = atos.generate.road(50, device="cpu")
    depth = atos.full(graph.num_vertices, np.iinfo(np.uint32).max, dtype=np.uint32, device="cpu")
    depth[0] = 0
    queue = atos.Queue(capacity=2 * graph.num_vertices, device="cpu")
    queue.push([0])
    stats = queue.launch_cta(visit, graph, depth)
    atos.verify_bfs(graph, 0, depth)
    print(f"{package}: {stats.tasks_run} tasks, verified")

    if "--gpu" in sys.argv[1:]:
        kinds = (describe(graph), describe(depth))
        for worker in ("thread", "warp", "cta"):
            kernel = link.cubin(visit, None, kinds, np.dtype(np.uint32), worker, (9, 0))
            assert kernel.code.startswith(b"\x7fELF")
            print(f"{worker}: {len(kernel.code):,} bytes for sm_90, {kernel.registers} registers")


if __name__ == "__main__":
    main()
