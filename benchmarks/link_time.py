"""Print what a link of a task for GPUs takes: processor seconds, registers, and bytes of machine code. Needs no GPU.

python benchmarks/link_time.py
python benchmarks/link_time.py --repeat 9 --arch 80

The tasks are the search of the README and one that does next to nothing, each also as its first kernel, whose time has the
compilation to PTX in it. Nothing is cached, by nvJitLink neither. To compare
two checkouts, run them in turns, each with its own core (`python setup.py build_core`).
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from dataclasses import replace

os.environ["CUDA_CACHE_DISABLE"] = "1"

import numpy as np

import atos_py as atos
from atos_py.compile import linker
from atos_py.compile.arguments import describe
from atos_py.compile.spec import ProgramSpec


def degree(v, graph):
    return graph.indptr[v + 1] - graph.indptr[v]


@atos.task(workload=degree)
def visit(worker, v, i, graph, depth):
    neighbor = graph.indices[graph.indptr[v] + i]
    next_depth = depth[v] + 1
    if atos.atomic_min(depth, neighbor, next_depth) > next_depth:
        worker.push(neighbor)


@atos.task
def mark(worker, v, depth):
    depth[v] = v


def show(name: str, worker: str, taken: list[float], kernel: linker.LinkedKernel) -> None:
    of = f"{statistics.median(taken):8.2f} {min(taken):6.2f} {max(taken):5.2f}"
    print(f"{name:20} {worker:7} {of} {kernel.registers:10} {kernel.stack_bytes:6} {len(kernel.code):7}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=5, help="links of each kernel (default: 5)")
    parser.add_argument("--arch", type=int, default=90, help="compute capability, such as 90 (default)")
    options = parser.parse_args()
    cc = divmod(options.arch, 10)
    graph = atos.generate.road(30, device="cpu")
    depth = atos.full(graph.num_vertices, 0, dtype=np.uint32, device="cpu")
    print(f"{'task':20} worker  median s  least  most  registers  stack   bytes")
    from atos_py.compile.codegen import target_cuda  # which takes as long to import as some links

    for task, arguments in ((visit, (graph, depth)), (mark, (depth,))):
        kinds = tuple(map(describe, arguments))
        spec = ProgramSpec(task, None, kinds, np.dtype(np.int64))
        code = linker._compiled(spec, min(cc, (9, 0)))
        for worker in ("thread", "warp", "cta"):
            core, taken = linker._core(replace(spec, worker=worker)), []
            for _ in range(options.repeat):
                start = time.process_time()
                kernel = linker._link(task.name, core, code, cc, 40)
                taken.append(time.process_time() - start)
            show(task.name, worker, taken, kernel)
            loop, taken = linker._ready_loop(replace(spec, worker=worker), cc), []
            for _ in range(options.repeat if loop else 0):
                start = time.process_time()
                inputs = [("ptx", target_cuda.with_ptx(code, cc).ptx), ("fatbin", loop)]
                linked = linker._link_here(task.name, cc, inputs, linker._READY_REGISTERS, optimized=False)
                taken.append(time.process_time() - start)
                kernel = linker._kernel_of(linked, code)
            if taken:
                show(f"{task.name}, first kernel", worker, taken, kernel)


if __name__ == "__main__":
    main()
