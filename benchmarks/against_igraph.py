"""Time atos_py on CPU threads against igraph (which is to be installed): whole calls, alternating, each result verified.

igraph uses one thread for these, and gets its graph made beforehand. Beside the times of the clock stand those of the
processor, of all threads together, which other programs on the machine disturb less.
"""

from __future__ import annotations

import argparse
import functools
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import igraph
import numpy as np

import atos_py as atos
from atos_py.algorithms.registry import find_algorithms
from atos_py.graph.spec import SPEC_HELP, graph_of

THEIRS: dict[str, Callable[[Any], object]] = {
    "core_number": lambda graph: graph.coreness(),
    "count_triangles": lambda graph: graph.transitivity_local_undirected(mode="zero"),
    "label_propagation": lambda graph: graph.community_label_propagation(),
}


def fresh(graph: atos.Graph) -> atos.Graph:
    """Return a copy, of which nothing is known and kept but that it is undirected."""
    copied = atos.Graph.from_csr(graph.indptr.to_numpy(), graph.indices.to_numpy(), device="cpu")
    copied.is_symmetric()
    return copied


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Return the milliseconds of one call by the clock, and those of the processor."""
    begin, used = time.perf_counter(), time.process_time()
    call()
    return (time.perf_counter() - begin) * 1e3, (time.process_time() - used) * 1e3


def main() -> None:
    """Print a row for each algorithm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algorithm", nargs="+", choices=sorted(THEIRS), default=["core_number", "count_triangles"])
    parser.add_argument("--graph", nargs="+", default=["rmat:18:16", "road:1000"], help=SPEC_HELP)
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    registry = find_algorithms()
    for spec in options.graph:
        graph = graph_of(spec, device="cpu").to_symmetric()
        ends = np.repeat(np.arange(graph.num_vertices), graph.degrees()), graph.indices.to_numpy().astype(np.int64)
        once = ends[0] < ends[1]
        theirs = igraph.Graph(n=graph.num_vertices, edges=np.stack([ends[0][once], ends[1][once]], 1))
        for name in options.algorithm:
            entry = registry[name]
            entry.verify(graph, entry.run(graph), {})
            ours, other = [], []
            for _ in range(options.repeat):
                ours.append(timed(functools.partial(entry.run, fresh(graph))))
                other.append(timed(functools.partial(THEIRS[name], theirs)))
            (a, b), (c, d) = ((statistics.median(part) for part in zip(*times, strict=True)) for times in (ours, other))
            print(f"{spec} {name}: atos_py {a:.1f} ms (processor {b:.1f}), igraph {c:.1f} ms ({d:.1f})", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("ATOS_TIER", "best")  # first launches wait for the kernels that are timed
    main()
