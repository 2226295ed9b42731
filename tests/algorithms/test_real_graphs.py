"""Every algorithm on large graphs, in every worker size and schedule, each result proved right.

A few of them by default, all in `make test-all` and `make gpu-test-all`. The cases of an algorithm and a worker size share
what they compile, so that many processes do best with ``pytest --numprocesses 15 --dist loadgroup``.
"""

from __future__ import annotations

import functools
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import ALL_COMBINATIONS
from shared_tasks import SCHEDULES

import atos_py as atos
from atos_py.algorithms.registry import find_algorithms
from atos_py.graph.spec import graph_of, source_of
from atos_py.tools.workloads import bind_algorithm

GRAPHS = {
    "New York": "USA-road-d.NY.gr.gz",  # roads, with weights
    "Slashdot": "soc-Slashdot0902.txt.gz",  # a directed social network
    "city": "city-NewYork_0_1024-4n.mtx.gz",  # a grid with holes
    "rmat": "rmat:14:16@1-255",
}
WORKERS = ["thread", "warp", "cta"]
FEW = ["bfs", "connected_components", "core_number"]
OPTIONS = {"betweenness": {"sources": 4}, "sssp": {"predecessors": True}, "bfs": {"parents": True}}
UNDIRECTED = {"minimum_spanning_forest"}  # only of such graphs


def list_cases() -> list[Any]:
    chosen = (
        itertools.product(find_algorithms(), WORKERS, GRAPHS)
        if ALL_COMBINATIONS
        else itertools.product(FEW, ["cta"], ["Slashdot"])
    )
    return [
        pytest.param(name, worker, graph, schedule, marks=pytest.mark.xdist_group(f"{name}-{worker}"))
        for name, worker, graph in chosen
        for schedule in SCHEDULES
    ]


@functools.cache
def load(name: str, device: atos.Device, directory: Path | None) -> tuple[atos.Graph, atos.Graph, int]:
    """Return a graph, a copy on the host, and where a search begins."""
    spec = GRAPHS[name] if directory is None else str(directory / GRAPHS[name])
    host = graph_of(spec, device="cpu", weights=True)
    return host.to(device), host, source_of(spec, host)


@functools.cache
def proved(*case: Any) -> list[Any]:
    """Return a list for results of an algorithm on a graph that its verifier has proved right."""
    return []


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("name", "worker", "graph_name", "schedule"), list_cases())
def test_every_algorithm(
    name: str,
    worker: str,
    graph_name: str,
    schedule: tuple[bool, bool],
    device: atos.Device,
    request: pytest.FixtureRequest,
) -> None:
    generated = ":" in GRAPHS[graph_name]
    directory = None if generated else request.getfixturevalue("data_dir")
    if directory and not (directory / GRAPHS[graph_name]).is_file():
        pytest.skip(f"{GRAPHS[graph_name]} is not there")
    graph, host, source = load(graph_name, device, directory)
    if name in UNDIRECTED:
        graph, host = graph.to_symmetric(), host.to_symmetric()
    algorithm, (persistent, barrier) = find_algorithms()[name], schedule
    options = {**OPTIONS.get(name, {}), "worker": worker, "persistent": persistent, **({"barrier": True} if barrier else {})}
    workload = bind_algorithm(algorithm, graph, source, host)
    result = workload.run(**options)
    facts = algorithm.describe(result)
    arrays = [np.asarray(values) for values in algorithm.arrays(result).values() if values is not None]
    known = proved(name, graph_name, device)
    if not any(facts == said and all(map(np.array_equal, arrays, right)) for said, right in known):
        workload.verify(result, options)
        known.append((facts, arrays))
