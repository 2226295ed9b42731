"""Queues and prepared launches of algorithms that are kept with the graph between calls."""

from __future__ import annotations

import gc
import importlib.util
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from repository import ROOT

import atos_py as atos
from atos_py.algorithms import kept_launches
from atos_py.graph.kept import kept
from atos_py.runtime import queue as queue_module

CALLS: dict[str, Any] = {
    "bfs": lambda graph, **options: atos.bfs(graph, 0, **options).depth,
    "connected_components": lambda graph, **options: atos.connected_components(graph, **options).label,
    "sssp": lambda graph, **options: atos.sssp(graph, 0, **options).distance,
    "pagerank": lambda graph, **options: atos.pagerank(graph, **options).rank,
    "color": lambda graph, **options: atos.color(graph, **options).num_colors < 9,
    "count_triangles": lambda graph, **options: atos.count_triangles(graph, **options).triangles,
    "core_number": lambda graph, **options: atos.core_number(graph, **options).core,
    "k_core": lambda graph, **options: atos.k_core(graph, 2, **options).members,
    "label_propagation": lambda graph, **options: atos.label_propagation(graph, **options).label,
    "maximal_independent_set": lambda graph, **options: atos.maximal_independent_set(graph, **options).members,
    "minimum_spanning_forest": lambda graph, **options: atos.minimum_spanning_forest(graph, **options).weight,
    "shortest_path_lengths": lambda graph, **options: (
        atos.shortest_path_lengths(graph, [0, 5], weighted=graph.weights is not None, **options).distance
    ),
    "strongly_connected_components": lambda graph, **options: atos.strongly_connected_components(graph, **options).label,
}


def mesh(weights: bool = False) -> atos.Graph:
    graph = atos.generate.road(12, 0.8, device="cpu")
    tails = np.repeat(np.arange(graph.num_vertices), graph.degrees())
    return graph.with_weights((tails + graph.indices.to_numpy()) % 7 + 1) if weights else graph


def idle_queues(graph: atos.Graph) -> list[kept_launches.KeptQueue]:
    return list(kept(graph).get("queues", []))


@pytest.fixture
def made(monkeypatch):
    """The queues that are made."""
    found: list[Any] = []
    true = queue_module.Queue._make

    def make(self, *args, **options):
        found.append(weakref.ref(self))
        return true(self, *args, **options)

    monkeypatch.setattr(queue_module.Queue, "_make", make)
    return found


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("call", CALLS)
def test_a_later_call_makes_no_queue(call, weights, made):
    graph = mesh(weights)
    first = np.asarray(CALLS[call](graph))
    before = len(made)
    assert before >= 1
    for _ in range(3):
        assert np.allclose(np.asarray(CALLS[call](graph)), first)
    assert len(made) == before
    assert 1 <= len(idle_queues(graph)) <= before  # that of a check of symmetry is none


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("call", CALLS)
def test_results_share_no_memory(call, weights):
    graph = mesh(weights)
    results = [CALLS[call](graph) for _ in range(3)]
    arrays = [each for each in results if isinstance(each, atos.Array)]
    known = [array for each in idle_queues(graph) for array in arrays_of(tuple(each._workspace.values()))]
    for array in arrays:
        assert not any(array._overlaps(other) for other in [*arrays, *known] if other is not array)
        array.fill(1)  # a later call does not rely on what is in a result
    assert np.allclose(np.asarray(CALLS[call](graph)), np.asarray(CALLS[call](mesh(weights))))


def arrays_of(value):
    """Return the arrays in a tuple."""
    if isinstance(value, tuple):
        return [array for member in value for array in arrays_of(member)]
    return [value] if isinstance(value, atos.Array) else []


@pytest.mark.parametrize("call", CALLS)
def test_a_later_call_does_not_rely_on_its_workspace(call):
    graph = mesh(weights=True)
    expected = np.asarray(CALLS[call](graph))
    with_zeros = {"pagerank"}  # whose rounds end with zeros where the next call needs them
    for each in idle_queues(graph):
        for array in arrays_of(tuple(each._workspace.values())):
            if call not in with_zeros:
                array.fill(77)
    assert np.allclose(np.asarray(CALLS[call](graph)), expected)


def test_pagerank_leaves_counters_at_zero():
    graph = mesh()
    for tolerance in (1e-3, 1e-5):
        atos.pagerank(graph, tolerance=tolerance)
    (found,) = [each._workspace for each in idle_queues(graph) if each._workspace]
    ((*_, taken, long_sums),) = [value for name, value in found.items() if name[0] == "chebyshev"]
    assert not taken.to_numpy().any()
    assert not long_sums.to_numpy().any()


def test_large_workspaces_are_not_kept(monkeypatch):
    graph = mesh()
    core = CALLS["core_number"](graph)
    idle = [each for each in idle_queues(graph) if each._workspace]
    assert len(idle) == 1
    before = dict(idle[0]._workspace)
    idle[0]._workspace.clear()
    arrays = tuple(before.values())
    assert kept_launches._bytes_of(arrays) == sum(array.nbytes for array in arrays_of(arrays)) > 0
    monkeypatch.setattr(kept_launches, "_bytes_of", lambda arrays: 1 << 60)
    assert np.array_equal(CALLS["core_number"](graph), core)
    assert not idle[0]._workspace


def test_calls_with_other_options_have_other_queues(made):
    graph = mesh()
    for options in ({}, {"fetch_size": 3}, {"barrier": True}, {"persistent": False}, {"worker": "warp"}):
        before = len(made)
        found = [atos.bfs(graph, 0, **options).stats for _ in range(2)]
        assert len(made) == before + 1
        assert found[0].fetch_size == found[1].fetch_size == options.get("fetch_size", found[0].fetch_size)
        assert found[1].barrier == options.get("barrier", False)
    with pytest.raises(atos.UnsupportedTypeError, match="barrier must be True or False"):
        atos.bfs(graph, 0, barrier=1)


def test_the_graph_is_not_kept_alive(made):
    graph = mesh(weights=True)
    for call in CALLS.values():
        call(graph)
    arrays = [weakref.ref(part) for part in graph]
    gc.collect()
    gc.disable()
    try:
        del graph
        assert [reference() for reference in arrays] == [None] * 3
        assert [reference() for reference in made] == [None] * len(made)
    finally:
        gc.enable()


def test_release_memory_frees_them(made):
    graph = mesh()
    for call in CALLS.values():
        call(graph)
    assert idle_queues(graph)
    atos.release_memory()
    assert [reference() for reference in made] == [None] * len(made)
    CALLS["bfs"](graph)
    assert len(idle_queues(graph)) == 1


def test_a_queue_of_a_call_that_failed_is_not_kept():
    graph = mesh()
    with pytest.raises(atos.LaunchTimeoutError):
        atos.bfs(graph, 0, timeout=1e-9)

    with pytest.raises(atos.TaskCompileError):
        atos.bfs(graph, 0, idle=lambda worker: None)
    assert idle_queues(graph) == []
    CALLS["bfs"](graph)
    assert len(idle_queues(graph)) == 1


def test_a_queue_with_items_left_is_not_kept():
    graph = mesh()
    for target in range(0, graph.num_vertices, 9):
        depth = atos.bfs(graph, 0, target=target).depth
        assert depth[target] == atos.bfs(graph, 0).depth[target]
    assert all(len(each.queue) == 0 for each in idle_queues(graph))


def test_a_graph_has_a_few_queues(made):
    graph = mesh()
    for _ in range(2):
        for size in range(1, 14):
            atos.bfs(graph, 0, fetch_size=size)
    assert [each._key[5] for each in idle_queues(graph)] == [("fetch_size", size) for size in range(6, 14)]
    assert sum(reference() is not None for reference in made) == 8


def test_options_that_are_equal_to_nothing():
    graph = mesh()
    for idle in (None, [lambda worker, *_: None][0]):
        for _ in range(2):
            assert atos.bfs(graph, 0, idle=idle).num_reached > 1
    with pytest.raises(atos.UnsupportedTypeError):
        atos.bfs(graph, 0, fetch_size=np.arange(3))


def test_large_queues_are_not_kept(monkeypatch):
    graph = mesh()
    monkeypatch.setattr(kept_launches, "_PART", 1 << 60)
    CALLS["bfs"](graph)
    assert idle_queues(graph) == []


def test_checks_are_those_of_the_environment(monkeypatch):
    graph = mesh()
    plain = atos.bfs(graph, 0).stats
    monkeypatch.setenv("ATOS_DEBUG", "1")
    checked = atos.bfs(graph, 0).stats
    assert (plain.tasks_run >= graph.num_vertices // 2) == (checked.tasks_run >= graph.num_vertices // 2)
    assert len(idle_queues(graph)) == 2


def test_threads_have_queues_of_their_own():
    graph = mesh()
    expected = atos.bfs(graph, 0).depth.to_numpy()
    wrong: list[int] = []

    def search() -> None:
        wrong.extend(not np.array_equal(atos.bfs(graph, 0).depth.to_numpy(), expected) for _ in range(40))

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [False] * 160
    idle = idle_queues(graph)
    assert 1 <= len(idle) <= 4
    assert len({id(each.queue) for each in idle}) == len(idle)


@pytest.mark.parametrize(("name", "most"), [("bfs", 50), ("connected_components", 75), ("sssp", 90)])
def test_warm_calls_take_few_calls_in_python(name, most):
    spec = importlib.util.spec_from_file_location("call_path", ROOT / "benchmarks" / "call_path.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    run = script.measured_calls(atos.device("cpu"))[name]
    for _ in range(3):
        run()
    seen = script.count_calls(run)
    assert sum(seen.values()) <= most, seen
