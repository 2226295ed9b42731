"""Archives of the package's own tasks: kernels for `compile.prelinked`, and code for `compile.cpu_archive`; no GPU is needed.

The calls run on the CPU, with its own choices and with those that a GPU would make, on small graphs of each sort. What they
launch is then compiled and linked for a GPU, and lowered for CPUs. ``python -m atos_py.tools.prelink`` does it, for
``python setup.py build_kernels``.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..algorithms import bit_search
from ..algorithms.bfs import api as bfs
from ..algorithms.bfs.tasks import FOLLOWED_DEGREE
from ..algorithms.coloring import api as coloring
from ..algorithms.registry import find_algorithms
from ..algorithms.sssp import distances
from ..compile.archive import CORE_DIR, check_name, hash_sources, is_current, write_archive
from ..compile.cpu_archive import CPU_ARCHIVE, archive_key, collected_tasks
from ..compile.linker import cubin, freeze
from ..compile.prelinked import ARCHIVE, CAPABILITY
from ..compile.recorder import recorded_programs
from ..compile.spec import ProgramSpec
from ..compile.toolchain import is_configured
from ..graph import gather_ranges
from ..graph.generate import random_weights
from ..graph.graph import Graph
from ..graph.simplify import simplify_on_gpu
from ..graph.spec import graph_of
from ..graph.transpose import transpose_on_gpu
from ..graph.weights import check_combine
from ..operators.edge_map import THREAD_MAX_DEGREE
from .workloads import bind_algorithm

__all__ = ["CALLS", "as_a_gpu_chooses", "call", "directed_half"]

# Of each algorithm, and with options for which other tasks run: the name of the algorithm, and the options.
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in find_algorithms()},
    "bfs, push": ("bfs", {"direction": "push"}),
    "bfs, parents": ("bfs", {"parents": True}),
    "closeness, harmonic": ("closeness", {"harmonic": True}),
    "color by degree": ("color", {"order": "degree"}),
    "color at random": ("color", {"order": "random"}),
    "sssp, predecessors": ("sssp", {"predecessors": True}),
    "shortest_path_lengths, weighted": ("shortest_path_lengths", {"weighted": True}),
}


def call(name: str, graph: Graph, source: int) -> Any:
    """Return the result of a call on a graph with weights, from a vertex of it."""
    algorithm, options = CALLS[name]
    if algorithm == "minimum_spanning_forest":
        graph = graph.to_symmetric()
    return bind_algorithm(find_algorithms()[algorithm], graph, source).run(**options)


@contextlib.contextmanager
def as_a_gpu_chooses() -> Iterator[None]:
    """Have the CPU make the choices that a GPU with a large graph would make."""
    low, unordered = gather_ranges._LOW_AVERAGE_DEGREE, distances._UNORDERED_DEGREE
    by_source = bit_search._BY_SOURCE
    tables: tuple[dict[str, Any], ...] = (coloring._HUB_DEGREE, low, unordered, FOLLOWED_DEGREE, THREAD_MAX_DEGREE, by_source)
    before = [(table, table["cpu"]) for table in (bfs._LARGE, *tables)]
    try:
        for table in tables:
            table["cpu"] = table["cuda"]
        bfs._LARGE["cpu"] = 0
        yield
    finally:
        for table, value in before:
            table["cpu"] = value


def directed_half(graph: Graph) -> Graph:
    """Return a graph with one direction, by chance, of each edge of a symmetric one, and its weight."""
    tails = np.repeat(np.arange(graph.num_vertices, dtype=np.uint32), graph.degrees())
    heads = graph.indices.to_numpy()
    one_way = (tails < heads) ^ (tails + heads & 1).astype(bool)
    weights = None if graph.weights is None else graph.weights[:][one_way]
    return Graph.from_edges(tails[one_way], heads[one_way], weights, num_vertices=graph.num_vertices, device=graph.device)


def record_all() -> list[ProgramSpec]:
    """Return the specs of all calls on a scale-free graph, a mesh, and a directed graph, and of what is made of graphs."""
    scale_free, mesh = (graph_of(spec, device="cpu") for spec in ("rmat:13:16@1-255", "road:50@1-255"))
    real = scale_free.with_weights(random_weights(scale_free, 0.0, 1.0))
    far = [graph.with_weights(random_weights(graph, 1, 2**31 - 1)) for graph in (scale_free, mesh)]  # distances of 64 bits
    chosen = [dict.fromkeys(("symmetrize", "deduplicate", "remove_loops", "sort"), value) for value in (True, False)]
    with recorded_programs() as specs:
        for large in (True, False):
            with as_a_gpu_chooses() if large else contextlib.nullcontext():
                for graph in (scale_free, mesh, directed_half(scale_free), real):
                    for name in CALLS:
                        call(name, graph, int(np.argmax(graph.degrees())))
                for graph in far:
                    for name in ("sssp", "sssp, predecessors", "shortest_path_lengths, weighted"):
                        call(name, graph, int(np.argmax(graph.degrees())))
        for graph in (scale_free, real, scale_free.with_weights(None)):
            for options in chosen:  # of which the types of arrays depend
                simplify_on_gpu(graph, options, check_combine("min"))
            for with_edges in (True, False):
                transpose_on_gpu(graph, with_edges=with_edges)
    return list(specs)


def link_all(specs: list[ProgramSpec]) -> dict[str, Sequence[bytes]]:
    """Return the kernels of the launches, by name."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        kernels = list(pool.map(lambda spec: (check_name(spec), freeze(cubin(spec, CAPABILITY))), specs))
    table = dict(kernels)
    if len(table) < len({parts[0] for _, parts in kernels}):
        raise ValueError("two kernels have the same name")
    return table


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
    with tempfile.TemporaryDirectory() as cache:
        os.environ["ATOS_CACHE_DIR"] = cache
        with collected_tasks() as lowered:
            recorded = record_all()
        for path, key in keys.items():
            entries = lowered if path == CPU_ARCHIVE else link_all(recorded)
            write_archive(path, key, entries)
            print(f"{path.name}: {len(entries)} tasks, {path.stat().st_size:,} bytes", flush=True)


if __name__ == "__main__":
    main()
