"""Archives of the package's own tasks: kernels for `compile.prelinked`, and code for `compile.lowered_tasks`; no GPU is needed.

The calls run on the CPU, with its own choices and with those that a GPU would make, on small graphs of each sort. What they
launch is then compiled and linked for a GPU, and lowered for CPUs. ``python -m atos_py.tools.prelink`` does it, for
``python setup.py build_kernels``.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import unittest.mock
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..algorithms.bfs import api as bfs
from ..algorithms.bfs.tasks import FOLLOWED_DEGREE
from ..algorithms.coloring import api as coloring
from ..algorithms.registry import find_algorithms
from ..algorithms.sssp import distances
from ..compile import linker
from ..compile.archive import CORE_DIR, hash_sources, is_current, write_archive
from ..compile.linker import cubin, freeze
from ..compile.lowered_tasks import CPU_ARCHIVE, archive_key, name_lowered
from ..compile.prelinked import ARCHIVE, CAPABILITY, name_prelinked
from ..compile.program import program_for, register_limits
from ..compile.toolchain import is_configured
from ..graph import gather_ranges
from ..graph.generate import random_weights
from ..graph.graph import Graph
from ..graph.simplify import simplify_on_gpu
from ..graph.spec import graph_of
from ..graph.transpose import transpose_on_gpu
from ..graph.weights import check_combine
from ..operators.edge_map import THREAD_MAX_DEGREE
from ..runtime import launch, queue_launches
from .workloads import bind_algorithm

__all__ = ["CALLS", "Launch", "as_a_gpu_chooses", "call", "directed_half", "lowered_tasks", "recorded_launches"]

# Of each algorithm, and with options for which other tasks run: the name of the algorithm, and the options.
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in find_algorithms()},
    "bfs, push": ("bfs", {"direction": "push"}),
    "bfs, parents": ("bfs", {"parents": True}),
    "color by degree": ("color", {"order": "degree"}),
    "color at random": ("color", {"order": "random"}),
    "sssp, predecessors": ("sssp", {"predecessors": True}),
    "shortest_path_lengths, weighted": ("shortest_path_lengths", {"weighted": True}),
}

# Of a launch: its task, `idle`, kinds of arguments, type of items, worker, threads of a block, and other options of `cubin`.
Launch = tuple[Any, ...]


def call(name: str, graph: Graph, source: int) -> Any:
    """Return the result of a call on a graph with weights, from a vertex of it."""
    algorithm, options = CALLS[name]
    if algorithm == "minimum_spanning_forest":
        graph = graph.to_symmetric()
    return bind_algorithm(find_algorithms()[algorithm], graph, source).run(**options)


@contextlib.contextmanager
def recorded_launches() -> Iterator[dict[Launch, None]]:
    """Record all different launches meanwhile."""
    seen: dict[Launch, None] = {}
    run, threads = launch.run_launch, [256]

    def find_program(task: Any, idle: Any, kinds: Any, device: Any, dtype: Any, worker: str, given: int, *rest: Any) -> Any:
        seen[task, idle, kinds, dtype, worker, threads[0], rest] = None
        return program_for(task, idle, kinds, device, dtype, worker, given, *rest)

    def run_launch(*args: Any) -> Any:
        threads[0] = args[-1].get("num_threads") or 256  # of the options
        return run(*args)

    patch = unittest.mock.patch.object
    with patch(launch, "program_for", find_program), patch(queue_launches, "run_launch", run_launch):
        yield seen


@contextlib.contextmanager
def as_a_gpu_chooses() -> Iterator[None]:
    """Have the CPU make the choices that a GPU with a large graph would make."""
    patch = unittest.mock.patch.dict
    with contextlib.ExitStack() as stack:
        stack.enter_context(patch(bfs._LARGE, {"cpu": 0}))
        low, unordered = gather_ranges._LOW_AVERAGE_DEGREE, distances._UNORDERED_DEGREE
        for choice in (coloring._HUB_DEGREE, low, unordered, FOLLOWED_DEGREE, THREAD_MAX_DEGREE):
            stack.enter_context(patch(choice, {"cpu": choice["cuda"]}))
        yield


def directed_half(graph: Graph) -> Graph:
    """Return a graph with one direction, by chance, of each edge of a symmetric one, and its weight."""
    tails = np.repeat(np.arange(graph.num_vertices, dtype=np.uint32), graph.degrees())
    heads = graph.indices.to_numpy()
    one_way = (tails < heads) ^ (tails + heads & 1).astype(bool)
    weights = None if graph.weights is None else graph.weights[:][one_way]
    return Graph.from_edges(tails[one_way], heads[one_way], weights, num_vertices=graph.num_vertices, device=graph.device)


def arguments_of(recorded: Launch) -> tuple[Any, ...]:
    """Return what `cubin` takes for a recorded launch, but for the compute capability, as `name_prelinked` orders it."""
    task, idle, kinds, dtype, worker, threads, (_debug, buckets, each_round, mailbox, *_) = recorded
    return task, idle, kinds, dtype, worker, register_limits(threads), buckets, each_round, mailbox


def record_all() -> list[Launch]:
    """Return the launches of all calls on a scale-free graph, a mesh, and a directed graph, and of what is made of graphs."""
    scale_free, mesh = (graph_of(spec, device="cpu") for spec in ("rmat:13:16@1-255", "road:50@1-255"))
    real = scale_free.with_weights(random_weights(scale_free, 0.0, 1.0))
    far = [graph.with_weights(random_weights(graph, 1, 2**31 - 1)) for graph in (scale_free, mesh)]  # distances of 64 bits
    with recorded_launches() as launches:
        for large in (True, False):
            with as_a_gpu_chooses() if large else contextlib.nullcontext():
                for graph in (scale_free, mesh, directed_half(scale_free), real):
                    for name in CALLS:
                        call(name, graph, int(np.argmax(graph.degrees())))
                for graph in far:
                    for name in ("sssp", "sssp, predecessors", "shortest_path_lengths, weighted"):
                        call(name, graph, int(np.argmax(graph.degrees())))
    chosen = [dict.fromkeys(("symmetrize", "deduplicate", "remove_loops", "sort"), value) for value in (True, False)]
    with recorded_launches() as derived:
        for graph in (scale_free, real, scale_free.with_weights(None)):
            for options in chosen:  # of which the types of arrays depend
                simplify_on_gpu(graph, options, check_combine("min"))
            for with_edges in (True, False):
                transpose_on_gpu(graph, with_edges=with_edges)
    return [*launches, *derived]


def link_all(recorded: list[Launch]) -> dict[str, Sequence[bytes]]:
    """Return the kernels of the launches, by name."""

    def link(launched: Launch) -> tuple[str, Sequence[bytes]]:
        of = task, idle, kinds, dtype, worker, limit, buckets, each_round, mailbox = arguments_of(launched)
        kernel = cubin(task, idle, kinds, dtype, worker, CAPABILITY, limit, False, buckets, each_round, mailbox)
        return _named(name_prelinked(*of), task), freeze(kernel)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        kernels = list(pool.map(link, recorded))
    table = dict(kernels)
    if len(table) < len({parts[0] for _, parts in kernels}):
        raise ValueError("two kernels have the same name")
    return table


@contextlib.contextmanager
def lowered_tasks() -> Iterator[dict[str, Sequence[bytes]]]:
    """Collect all tasks that are compiled for the CPU meanwhile, lowered, by name; what runs is made from these."""
    from ..compile.codegen.target_cpu import lower_cpu

    table: dict[str, Sequence[bytes]] = {}

    def lower(_abi: tuple[str, ...], *of: Any) -> Sequence[bytes]:
        parts = lower_cpu(*of)
        table[_named(name_lowered(*of), of[0])] = parts
        return parts

    with unittest.mock.patch.object(linker, "find_lowered", lower):
        yield table


def _named(name: str | None, task: Any) -> str:
    if name is None:
        raise ValueError(f"{task.name} depends on something outside the package")
    return name


def main() -> None:
    """Write the archives, unless those of these sources are there."""
    from ..compile.codegen.target_cpu import abi

    if is_configured():
        raise SystemExit(
            "Numba has settings, which would change code for everybody: unset variables NUMBA_..., remove its file"
        )
    keys = {CPU_ARCHIVE: archive_key(abi()), ARCHIVE: hash_sources()}
    if not any(CORE_DIR.glob("core_*.fatbin")):
        print("no kernels are linked, since the core was built for the CPU alone", file=sys.stderr)
        ARCHIVE.unlink(missing_ok=True)
        del keys[ARCHIVE]
    if all(is_current(path, key) for path, key in keys.items()):
        return
    for path in keys:
        path.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as cache, unittest.mock.patch.dict(os.environ, {"ATOS_CACHE_DIR": cache}):
        with lowered_tasks() as lowered:
            recorded = record_all()
        for path, key in keys.items():
            entries = lowered if path == CPU_ARCHIVE else link_all(recorded)
            write_archive(path, key, entries)
            print(f"{path.name}: {len(entries)} tasks, {path.stat().st_size:,} bytes", flush=True)


if __name__ == "__main__":
    main()
