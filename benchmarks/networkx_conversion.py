"""Time the conversion of a graph of networkx with a million edges to the backend "atos"."""

from __future__ import annotations

import argparse
import time

import networkx as nx

from atos_py import nx_backend

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    for directed in (False, True):
        graph = nx.gnm_random_graph(options.nodes, options.edges, seed=1, directed=directed)
        seconds = []
        for _ in range(options.repeat):
            start = time.perf_counter()
            nx_backend.convert_from_nx(graph)
            seconds.append(time.perf_counter() - start)
        print(f"{type(graph).__name__}: {min(seconds):.3f} s, the least of {options.repeat}")
