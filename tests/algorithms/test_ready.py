"""A call of an algorithm compiles all that a later one like it may need: what chance decides takes no other code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import atos_py as atos
from atos_py.algorithms import launch_sequence
from atos_py.algorithms.pagerank import chebyshev_pull
from atos_py.algorithms.pagerank.residual_push import ResidualPush
from atos_py.compile.recorder import recorded_programs
from atos_py.compile.spec import ProgramSpec
from atos_py.support import memory_cache
from atos_py.tools.prelink import directed_half


def texts_of(specs):
    """Return specs with tasks and kinds as texts, which are the same for all versions of a task."""
    return {replace(spec, task=str(spec.task), kinds=tuple(map(str, spec.kinds))) for spec in specs}


@pytest.fixture
def programs():
    """Programs that a call launches; only those of the last call, where it calls itself."""
    recorded: list[dict[ProgramSpec, None]] = []

    def of(run):
        with recorded_programs() as specs:
            recorded.append(specs)
            result = run()
            found = texts_of(specs)
            for each in recorded:
                each.clear()
        return result, found

    return of


def directed() -> atos.Graph:
    tails, heads = np.random.default_rng(5).integers(500, size=(2, 4_000))
    return atos.Graph.from_edges(tails, heads, num_vertices=500, device="cpu")


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("find", [None, "sweep", "push"])
def test_pagerank_that_rounding_sends_on_in_float64(find, dtype, programs, monkeypatch):
    graph = directed()
    true = ResidualPush.converge
    tolerances: list[float] = []

    def converge(self, rank, residual, tolerance, *rest):
        tolerances.append(tolerance)
        true(self, rank, residual, slack * tolerance if len(tolerances) == 1 else tolerance, *rest)

    monkeypatch.setattr(ResidualPush, "converge", converge)
    slack = 1.0
    _, usual = programs(lambda: atos.pagerank(graph, tolerance=1e-4, dtype=dtype, find=find))
    assert len(tolerances) == 1
    tolerances.clear()
    slack = 100.0  # as if rounding had left that much
    result, seldom = programs(lambda: atos.pagerank(graph, tolerance=1e-4, dtype=dtype, find=find))
    assert len(tolerances) == 2
    assert seldom <= usual
    atos.verify_pagerank(graph, result, 1e-4)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_pagerank_whatever_gathering_comes_to(dtype, programs, monkeypatch):
    true = chebyshev_pull.solve
    found = []
    for outcome in (None, 1.0):  # of a directed graph it proves nothing
        graph = directed()
        assert not graph.is_symmetric()  # found once for a graph, as hubs are
        monkeypatch.setattr(chebyshev_pull, "solve", lambda *given, outcome=outcome, **more: (true(*given, **more), outcome)[1])
        result, keys = programs(lambda graph=graph: atos.pagerank(graph, tolerance=1e-4, dtype=dtype, find="gather"))
        atos.verify_pagerank(graph, result, 1e-4)
        found.append(keys)
    assert found[0] == found[1]


@pytest.mark.parametrize("run", [lambda graph: atos.pagerank(graph, find="gather"), atos.color], ids=["pagerank", "color"])
def test_no_helper_is_compiled_twice_for_one_task(run, tmp_path, monkeypatch):
    """The types of its arguments do not differ needlessly: literal here and not there, or of another width."""
    from numba.core import event

    monkeypatch.setenv("ATOS_CACHE_DIR", str(tmp_path))
    memory_cache.forget()
    graph = atos.generate.rmat(8, 16, device="cpu")
    with event.install_recorder("numba:compile") as recorder:
        run(graph)
    compiled = {id(one.data["dispatcher"]): one.data["dispatcher"] for _, one in recorder.buffer}
    functions = [each for each in compiled.values() if each.py_func.__module__.startswith("atos_py.")]
    assert len(functions) > 10
    assert [each.py_func.__qualname__ for each in functions if len(each.overloads) > 1] == []


DIRECTED = directed_half(atos.generate.rmat(8, device="cpu"))
CALLS = {
    "pagerank": lambda: atos.pagerank(atos.generate.rmat(8, device="cpu")),
    "pagerank, start": lambda: atos.pagerank(atos.generate.road(9, device="cpu"), start=np.ones(81), dtype="f8"),
    "minimum_spanning_forest": lambda: atos.minimum_spanning_forest(atos.generate.rmat(8, device="cpu")),
    "strongly_connected_components": lambda: atos.strongly_connected_components(DIRECTED),
    "color": lambda: atos.color(atos.generate.rmat(8, device="cpu")),
    "color, mesh": lambda: atos.color(atos.generate.road(9, device="cpu"), order="degree"),
    "core_number": lambda: atos.core_number(atos.generate.rmat(8, device="cpu")),
    "count_triangles": lambda: atos.count_triangles(atos.generate.rmat(8, device="cpu")),
    "maximal_independent_set": lambda: atos.maximal_independent_set(atos.generate.rmat(8, device="cpu")),
    "label_propagation": lambda: atos.label_propagation(atos.generate.rmat(8, device="cpu")),
    "color, turns": lambda: atos.color(atos.generate.rmat(8, device="cpu"), order="random", patience=2, window=50),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_all_programs_of_a_call_are_linked_side_by_side(call, programs, monkeypatch):
    """As on a GPU, where each link takes half a second; but for those that the check of symmetry takes, which comes first."""
    ahead: list[Any] = []
    true = launch_sequence.compile_ahead

    def compile_ahead(launches):
        _, compiled = programs(lambda: true(launches))
        ahead.append(compiled)

    monkeypatch.setattr(launch_sequence, "_LINKS", {"cpu"})
    monkeypatch.setattr(launch_sequence, "_compiled", set())
    monkeypatch.setattr(launch_sequence, "compile_ahead", compile_ahead)
    _, launched = programs(call)
    assert len(ahead) == 1
    assert len(ahead[0]) > 1
    assert launched == ahead[0]
    programs(call)
    assert len(ahead) == 1  # once in a process


def test_options_are_checked_before_anything_is_linked_ahead(monkeypatch):
    monkeypatch.setattr(launch_sequence, "_LINKS", {"cpu"})
    with pytest.raises(atos.UnsupportedTypeError, match="num_threads must be an integer"):
        atos.bfs(atos.generate.rmat(6, device="cpu"), 0, direction="auto", num_threads=[32])
