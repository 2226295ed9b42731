"""Searches from many sources by bits: directions, words and notes of them, on CPUs as a GPU would choose them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from kernel_limits import MOST_SPILLED
from thread_teams import Team, run_teams

import atos_py as atos
from atos_py.algorithms import bit_search
from atos_py.algorithms.bit_notes import BitNotes, count_bits
from atos_py.algorithms.bit_search import BitSearch, BitSearches, gather_by_group, missing_of
from atos_py.compile import linker as link
from atos_py.compile.recorder import recorded_programs
from atos_py.errors import BuildError, LaunchConfigError

UNREACHED = 0xFFFF_FFFF


def expected_rows(graph: atos.Graph, sources: Any, cutoff: int | None = None) -> np.ndarray[Any, Any]:
    """Return distances by networkx."""
    indptr, indices = graph.indptr.to_numpy(), graph.indices.to_numpy()
    theirs = nx.MultiDiGraph()
    theirs.add_nodes_from(range(graph.num_vertices))
    theirs.add_edges_from(zip(np.repeat(np.arange(indptr.size - 1), np.diff(indptr)), indices, strict=True))
    rows = np.full((len(sources), graph.num_vertices), UNREACHED)
    for row, source in zip(rows, sources, strict=True):
        lengths = nx.single_source_shortest_path_length(theirs, int(source), cutoff)
        row[list(lengths)] = list(lengths.values())
    return rows


def graphs() -> dict[str, atos.Graph]:
    ends = np.random.default_rng(3).integers(0, 300, (2, 6000))
    return {
        "scale-free": atos.generate.rmat(8, 16, device="cpu"),  # pulls, and has isolated vertices
        "directed": atos.Graph.from_edges(*ends, num_vertices=300, device="cpu"),  # pulls along the transpose
        "mesh": atos.generate.road(12, 0.8, device="cpu"),  # only pushes
    }


@pytest.mark.parametrize("name", list(graphs()))
@pytest.mark.parametrize("words", [1, 4])
def test_distances_from_several_searches(name: str, words: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(bit_search._MOST_LOG_WORDS, "cpu", words.bit_length() - 1)
    monkeypatch.setitem(bit_search._BY_SOURCE, "cpu", 1 if words > 1 else None)
    graph = graphs()[name]
    sources = np.random.default_rng(4).integers(0, graph.num_vertices, 150)  # some several times
    for cutoff in (None, 0, 2, 3):
        found = atos.shortest_path_lengths(graph, sources, cutoff=cutoff)
        np.testing.assert_array_equal(found.distance.to_numpy(), expected_rows(graph, sources, cutoff))
        atos.verify_shortest_path_lengths(graph, sources, found.distance, cutoff=cutoff)


def test_a_dense_graph_pulls_and_then_lists() -> None:
    """A search of many levels behind a dense part: push, pull, a list of the frontier, and push to the end of a path."""
    clique = nx.complete_graph(80)
    nx.add_path(clique, [79, *range(80, 140)])
    graph = atos.Graph.from_networkx(clique, device="cpu")
    made = BitSearches("test", graph, 64, {}, None)
    assert made.back is not None
    distance = atos.full((64, 140), UNREACHED, dtype=np.uint32, device="cpu")
    sources = np.arange(64)
    made.run(sources, BitNotes(distance))
    ran = made.finish().tasks_run_by
    assert min(ran["pull"], ran["list_places"]) > 0
    assert ran["expand"] > 60
    np.testing.assert_array_equal(distance.to_numpy(), expected_rows(graph, sources))


def test_notes_of_sums_and_of_the_farthest() -> None:
    graph = atos.generate.road(9, 0.7, device="cpu")
    n, sources = graph.num_vertices, np.random.default_rng(5).integers(0, graph.num_vertices, 40)
    rows = expected_rows(graph, sources)
    reached = rows != UNREACHED
    part = atos.connected_components(graph).label
    sums, last = atos.zeros(n, dtype=np.int64, device="cpu"), atos.zeros(n, dtype=np.uint32, device="cpu")
    farthest, new = atos.zeros(n * 64, dtype=np.uint32, device="cpu"), atos.zeros(2 * n, dtype=np.uint64, device="cpu")
    searches = BitSearches("test", graph, 64, {}, None)
    searches.run(sources, BitNotes(sums=sums, last=last, farthest=farthest, reached=new, part=part))
    searches.finish()
    np.testing.assert_array_equal(sums.to_numpy(), np.where(reached, rows, 0).sum(0))
    np.testing.assert_array_equal(last.to_numpy(), np.where(reached, rows + 1, 0).max(0))
    parts = part.to_numpy()[sources]
    np.testing.assert_array_equal(farthest.to_numpy().reshape(n, 64)[parts, np.arange(40)], np.where(reached, rows, 0).max(1))


def test_sources_of_several_parts_share_a_lane() -> None:
    graph = atos.Graph.from_edges([0, 1, 3, 4, 5], [1, 2, 4, 5, 6], num_vertices=8, symmetrize=True, device="cpu")
    last = atos.zeros(8, dtype=np.uint32, device="cpu")
    searches = BitSearches("test", graph, 64, {}, None)
    searches.run(np.array([0, 6, 7]), BitNotes(last=last), lanes=np.zeros(3, int))
    searches.finish()
    assert (last.to_numpy() - 1).tolist() == [0, 1, 2, 3, 2, 1, 0, 0]


@pytest.mark.parametrize("words", [1, 4])
def test_a_group_gathers_for_a_long_row(words: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads of a group, emulated by threads of Python, find what is among all neighbors, word by word."""
    monkeypatch.setattr(bit_search, "load_cached", lambda array, index: array[index])
    monkeypatch.setattr(Team, "any", lambda team, value: any(team.gathered(value)), raising=False)
    random, n, log_words = np.random.default_rng(6), 300, words.bit_length() - 1
    neighbors = random.integers(0, n, 270).astype(np.uint32)
    seen = np.zeros(n * words, np.uint64)
    candidates = np.zeros(2 * n * words, np.uint64)
    candidates[: n * words] = np.uint64(1) << random.integers(0, 64, n * words).astype(np.uint64)
    seen[:words] = random.integers(0, 2**63, words, np.uint64)
    lanes = np.full(words, 2**64 - 1, np.uint64)
    indptr = np.array([0, *[neighbors.size] * n])
    graph = atos.Graph.from_csr(indptr, neighbors, device="cpu")
    rows = graph._replace(indptr=indptr, indices=neighbors)  # type: ignore[arg-type] # NumPy's, which functions read
    s = BitSearch(seen, candidates, lanes, None, log_words, words - 1, 9, 16, 1, BitNotes())  # type: ignore[arg-type]
    found = run_teams(32, lambda worker: int(gather_by_group(worker.group(32), 0, 0, rows, rows, s)))
    assert sum(found) == sum(value > 0 for value in found) * (neighbors.size + 1)
    for word in range(words):
        everything = np.bitwise_or.reduce(candidates[neighbors.astype(int) * words + word])
        assert candidates[n * words + word] == everything & missing_of(word, s)


def test_counts_of_bits() -> None:
    words = np.random.default_rng(7).integers(0, 2**64, 100, np.uint64)
    with np.errstate(over="ignore"):
        assert [int(count_bits(word)) for word in words] == [int(word).bit_count() for word in words]


def test_a_function_between_rounds_is_refused() -> None:
    graph = atos.generate.road(3, 1.0, device="cpu")
    for call in (lambda **how: atos.shortest_path_lengths(graph, 0, **how), lambda **how: atos.closeness(graph, **how)):
        with pytest.raises(LaunchConfigError, match="has a function between rounds of its own"):
            call(each_round=lambda worker, *args: None)


@pytest.mark.gpu
@pytest.mark.parametrize("count", [5, 64, 300])
@pytest.mark.parametrize("name", list(graphs()))
def test_distances_on_a_gpu(name: str, count: int, worker: str) -> None:
    graph = graphs()[name].to("cuda")
    sources = np.random.default_rng(8).integers(0, graph.num_vertices, count)
    found = atos.shortest_path_lengths(graph, sources, worker=worker)
    atos.verify_shortest_path_lengths(graph, sources, found.distance)


@pytest.mark.part("programs")
def test_kernels_spill_little(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    monkeypatch.setitem(bit_search._BY_SOURCE, "cpu", 1)
    for name, limit in (("scale-free", MOST_SPILLED), ("mesh", 0)):
        graph = graphs()[name]
        assert graph.is_symmetric()  # which may launch something
        with recorded_programs() as programs:
            atos.shortest_path_lengths(graph, np.arange(64))
        for program in programs:
            try:
                kernel = link.cubin(replace(program, max_registers=64), (9, 0))
            except BuildError as error:
                pytest.skip(str(error))
            assert kernel.spill_bytes <= limit
