"""Time the Python BFS task against the same task in CUDA C++ (tests/core/bfs_task.cu), in the same core and settings."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
from pathlib import Path
from unittest import mock

import atos_py as atos
from atos_py.algorithms import bfs
from atos_py.algorithms.bfs import api as bfs_api
from atos_py.graph.spec import graph_of, source_of

SOURCE = Path(__file__).parent.parent / "tests" / "core" / "bfs_task.cu"


def cuda_task(major: int, minor: int) -> bytes:
    """Return the CUDA C++ task as LTO-IR."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "task.ltoir"
        command = ["nvcc", "-std=c++17", "-O3", "-dlto", "-ltoir", f"-arch=sm_{major}{minor}", str(SOURCE), "-o", str(out)]
        subprocess.run(command, check=True)
        return out.read_bytes()


def stand_in(worker, v, i, first, next_depth, graph, depth):  # type: ignore[no-untyped-def]
    """Stand for the CUDA C++ task: a function of its own, so that the caches tell the two apart, but never compiled."""


def main() -> None:
    """Print a row for each graph: median milliseconds of both, alternating, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="+", help="rmat:SCALE:EDGE_FACTOR:FETCH:THREADS or road:SIDE:KEEP:FETCH:THREADS")
    parser.add_argument("--repeat", type=int, default=11)
    options = parser.parse_args()
    os.environ["ATOS_CACHE_DIR"] = tempfile.mkdtemp()
    from atos_py.compile.codegen import target_cuda as cuda

    code = cuda.CudaCode([cuda_task(*atos.device("cuda").compute_capability)], 2)
    twin = atos.Task(stand_in, bfs.degree)
    original = cuda.compile_cuda
    for spec in options.graphs:
        *graph_spec, fetch, threads = spec.split(":")
        name = ":".join(graph_spec)
        graph = graph_of(name)
        source = source_of(name, graph)
        times: dict[str, list[float]] = {"Python": [], "CUDA C++": []}
        for _ in range(options.repeat + 1):
            for name, task in (("Python", bfs.visit), ("CUDA C++", twin)):
                compile_cuda = (lambda *_: code) if task is twin else original
                with mock.patch.object(cuda, "compile_cuda", compile_cuda), mock.patch.object(bfs_api, "visit", task):
                    result = atos.bfs(graph, source, direction="push", fetch_size=int(fetch), num_threads=int(threads))
                times[name].append(result.stats.milliseconds)
                if len(times[name]) == 1:
                    atos.verify_bfs(graph, source, result.depth)
        python, cpp = (statistics.median(times[name][1:]) for name in times)
        print(f"{spec}: Python {python:.3f} ms, CUDA C++ {cpp:.3f} ms, ratio {python / cpp:.3f}", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("ATOS_TIER", "best")  # first launches wait for the kernels that are timed
    main()
