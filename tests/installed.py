"""Trial of an installed wheel without any compiler: BFS on CPU threads, the console command, and kernels linked for a GPU.

Run by test_packaging.py and by `make wheel-test`: ``python tests/installed.py [--gpu] [--published]``, with a PATH that leads
to no compiler. For linking with `--gpu` there need not be a GPU. With `--published` the wheel has to bring the package's own
tasks.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from unittest.mock import patch

import numpy as np

import atos_py as atos
from atos_py.algorithms.bfs import tasks as bfs_tasks
from atos_py.compile import linker as link
from atos_py.compile import prelinked
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


def try_console_command(package: Path) -> None:
    """Run `atos`, which `pip install --target` puts beside the package, and an environment among its scripts."""
    places = (package.parent / "bin", Path(sysconfig.get_path("scripts")))
    script = next(place / "atos" for place in places if (place / "atos").is_file())
    for command, program in ([script], "atos"), ([sys.executable, "-m", "atos_py"], "python -m atos_py"):
        text = subprocess.run([*command, "bfs", "--help"], check=True, capture_output=True, text=True, timeout=120).stdout
        assert text.startswith(f"usage: {program} bfs "), text
        assert f"\n  {program} bfs rmat:16:16 " in text, text
    done = subprocess.run(
        [script, "bfs", "road:20", "--device", "cpu"], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    print(f"{script}: {done.stdout.splitlines()[-1]}")


def try_first_call(graph: atos.Graph) -> None:
    """Run `bfs` with an empty cache, without Numba's compiler."""
    from numba.core.compiler import CompilerBase

    def refuse(*_: object) -> None:
        raise AssertionError("the archive lacks the task of bfs for this machine and these versions")

    with tempfile.TemporaryDirectory() as cache:
        patches = patch.dict(os.environ, {"ATOS_CACHE_DIR": cache}), patch.object(CompilerBase, "_compile_core", refuse)
        with patches[0], patches[1]:
            result = atos.bfs(graph, 0, direction="push")
    atos.verify_bfs(graph, 0, result.depth)
    print(f"first call of bfs: {result.stats.profile}")


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
    try_console_command(package)
    if "--published" in sys.argv[1:]:
        try_first_call(graph)

    if "--gpu" in sys.argv[1:]:
        kinds = (describe(graph), describe(depth))
        for worker in ("thread", "warp", "cta"):
            kernel = link.cubin(ProgramSpec(visit, None, kinds, np.dtype(np.uint32), worker), (9, 0))
            assert kernel.code.startswith(b"\x7fELF")
            print(f"{worker}: {len(kernel.code):,} bytes for sm_90, {kernel.registers} registers")
        if "--published" in sys.argv[1:]:
            assert prelinked.find_prelinked(ProgramSpec(bfs_tasks.visit, None, kinds, np.dtype(np.uint32)), (9, 0)), (
                "the archive lacks the kernel of bfs"
            )


if __name__ == "__main__":
    main()
