"""Shortest paths as a ready-made algorithm: weights of every type, predecessors, targets, cutoffs; and the verifier."""

from __future__ import annotations

from typing import Any
from unittest import mock

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import atos_py as atos
from atos_py.algorithms.sssp import api as driver
from atos_py.algorithms.sssp.distances import distance_dtype, suit_delta, unreached_of
from atos_py.algorithms.sssp.tasks import assign_predecessors, find_hops, relax, relax_along
from atos_py.compile import linker as link
from atos_py.compile.arguments import describe
from atos_py.compile.spec import ProgramSpec
from atos_py.errors import BuildError, InvalidArgumentError, UnsupportedTypeError, VerificationError
from atos_py.graph.csr import CSR

SCHEDULES = [{"persistent": persistent, "barrier": barrier} for persistent in (True, False) for barrier in (False, True)]
#: Weights of which no sum is rounded, so that networkx's are the same: some of 0, and some that no uint32 can tell.
WEIGHTS = {
    "u4": [0, 1, 2, 3, 7],
    "i4": [0, 1, 2**30, 2**31 - 1],
    "i8": [0, 1, 2**34, 3 * 2**33, 5],
    "f4": [0.0, 0.25, 0.5, 2.0, 3.5],
    "none": [1],
}


@st.composite
def searches(draw: st.DrawFn) -> tuple[atos.Graph, NDArray[Any], nx.MultiDiGraph]:
    """Any multigraph with loops and isolated vertices, weights of 0 and equal ones, and one source or several."""
    n, kind = draw(st.integers(1, 10)), draw(st.sampled_from(list(WEIGHTS)))
    vertex = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(vertex, vertex, st.sampled_from(WEIGHTS[kind])), max_size=40))
    tails, heads, weights = ([edge[k] for edge in edges] for k in range(3))
    values = None if kind == "none" else np.array(weights, kind)
    ids = np.array([tails, heads], np.int64)
    graph = atos.Graph.from_edges(*ids, values, n, symmetrize=(undirected := draw(st.booleans())), device="cpu")
    theirs = nx.MultiDiGraph()
    theirs.add_nodes_from(range(n))
    theirs.add_weighted_edges_from(edges)
    if undirected:
        theirs.add_weighted_edges_from((v, u, w) for u, v, w in edges)
    return graph, np.array(draw(st.lists(vertex, min_size=1, max_size=3))), theirs


def expected(graph: atos.Graph, sources: Any, theirs: nx.MultiDiGraph, cutoff: float | None = None) -> NDArray[Any]:
    """Distances by networkx."""
    kind = distance_dtype(graph)
    distance = np.full(graph.num_vertices, unreached_of(kind))
    found = nx.multi_source_dijkstra_path_length(theirs, set(np.atleast_1d(sources).tolist()), cutoff)
    distance[list(found)] = list(found.values())
    return distance


def smallest_predecessors(graph: atos.Graph, sources: Any, distance: NDArray[Any]) -> NDArray[Any]:
    """Predecessors by their definition, one hop after the other."""
    tails, heads = np.repeat(np.arange(graph.num_vertices), graph.degrees()), graph.indices.to_numpy()
    weights = np.ones(len(heads), int) if graph.weights is None else graph.weights.to_numpy()
    found = distance != unreached_of(distance.dtype)
    tight = found[tails] & found[heads]
    tight[tight] = distance[tails[tight]] + weights[tight].astype(distance.dtype) == distance[heads[tight]]
    predecessor = np.full(graph.num_vertices, graph.num_vertices)
    level = distance[tails] == distance[heads]
    np.minimum.at(predecessor, heads[tight & ~level], tails[tight & ~level])
    rooted = predecessor < graph.num_vertices
    rooted[sources] = True
    while True:
        new = tight & level & rooted[tails] & ~rooted[heads]
        if not new.any():
            return np.where(predecessor == graph.num_vertices, -1, predecessor)
        np.minimum.at(predecessor, heads[new], tails[new])
        rooted[heads[new]] = True


@given(searches(), st.sampled_from(["thread", "warp", "cta"]), st.sampled_from(SCHEDULES), st.sampled_from([1, 3]))
@settings(deadline=None, max_examples=80)
def test_random_graphs(search: Any, worker: str, schedule: dict[str, bool], blocks: int) -> None:
    graph, sources, theirs = search
    result = atos.sssp(graph, sources, predecessors=True, worker=worker, num_blocks=blocks, **schedule)
    distance, predecessor = np.asarray(result.distance), np.asarray(result.predecessor)
    np.testing.assert_array_equal(distance, expected(graph, sources, theirs), strict=True)
    np.testing.assert_array_equal(predecessor, smallest_predecessors(graph, sources, distance))
    assert predecessor.dtype == np.int32
    atos.verify_sssp(graph, sources, distance, predecessor)


@pytest.mark.parametrize("kind", ["u4", "i8", "f4"])
def test_what_is_reached(device: atos.Device, kind: str) -> None:
    weights = np.array([5, 3, 2], kind)
    graph = atos.Graph.from_edges([0, 2, 1], [1, 1, 4], weights, num_vertices=6, device=device)
    result = atos.sssp(graph, 0)
    assert result.reached().tolist() == [True, True, False, False, True, False]
    assert result.num_reached == 3


@pytest.mark.parametrize(
    ("orders", "follows", "task"), [(False, False, "relax_by_arrival"), (True, False, "relax"), (True, True, "relax_along")]
)
def test_ways_to_search(device, orders, follows, task, monkeypatch):
    """A GPU chooses by the number of edges to a vertex; a CPU always has priorities, and never follows paths."""
    monkeypatch.setattr(driver, "pays_to_order", lambda graph, delta: orders)
    monkeypatch.setattr(driver, "pays_to_follow", lambda graph: follows)
    graph = grid(30, "u4", device)
    result = atos.sssp(graph, 0, predecessors=True)
    atos.verify_sssp(graph, 0, result.distance, result.predecessor)
    assert result.stats.task == task
    if follows:  # not where it was asked for another schedule, nor where a distance and a vertex take more than a word
        assert atos.sssp(graph, 0, barrier=False).stats.task == "relax"
        assert atos.sssp(grid(30, "f8", device), 0).stats.task == "relax"


@given(searches(), st.sampled_from([1, 3]), st.data())
@settings(deadline=None, max_examples=80)
def test_groups_that_follow_paths(search: Any, blocks: int, data: st.DataObject) -> None:
    graph, sources, theirs = search
    target = data.draw(st.integers(0, graph.num_vertices - 1))
    with mock.patch.object(driver, "pays_to_follow", return_value=True):
        result = atos.sssp(graph, sources, predecessors=True, num_blocks=blocks)
        found = atos.sssp(graph, sources, target=target, num_blocks=blocks)
    np.testing.assert_array_equal(np.asarray(result.distance), expected(graph, sources, theirs), strict=True)
    atos.verify_sssp(graph, sources, result.distance, result.predecessor)
    assert found.distance[target] == result.distance[target]


@pytest.mark.parametrize(("last", "cutoff", "sequences"), [(0, None, 2), (1, None, 3), (1, 2**32 - 2, 2), (1, 2**32, 3)])
def test_32_bits_suffice_where_nothing_may_have_been_cut_off(device, last, cutoff, sequences, monkeypatch):
    """A chain as long as a distance of 32 bits and an edge more may be, or longer by one: then the search begins anew."""
    weights = np.array([2**30, 2**30, 2**30 - 2 + last], np.int64)
    graph = atos.Graph.from_edges([0, 1, 2], [1, 2, 3], weights, 6, device=device)  # two are not reached
    found, search = [], driver.find_distances
    monkeypatch.setattr(driver, "find_distances", lambda *args: found.append(search(*args)) or found[-1])
    result = atos.sssp(graph, 0, cutoff=cutoff)
    lengths = np.append(0, np.cumsum(weights))
    unreached = np.iinfo(np.int64).max
    expected = [d if cutoff is None or d <= cutoff else unreached for d in lengths]
    assert np.asarray(result.distance).tolist() == [*expected, unreached, unreached]
    assert result.distance.dtype == np.int64
    assert len(found[0][1]) == sequences


@given(searches(), st.sampled_from([-1, 0, 0.4, 1, 2.5, 2**34, float("inf"), np.float32(1)]), st.data())
@settings(deadline=None, max_examples=50)
def test_cutoffs_and_targets(search: Any, cutoff: float, data: st.DataObject) -> None:
    graph, sources, theirs = search
    near = atos.sssp(graph, sources, cutoff=cutoff, predecessors=True)
    distance = expected(graph, sources, theirs, cutoff)
    np.testing.assert_array_equal(np.asarray(near.distance), distance)
    np.testing.assert_array_equal(np.asarray(near.predecessor), smallest_predecessors(graph, sources, distance))
    atos.verify_sssp(graph, sources, near.distance, near.predecessor, cutoff=cutoff)
    target = data.draw(st.integers(0, graph.num_vertices - 1))
    for limit in (None, cutoff):
        found = atos.sssp(graph, sources, target=target, cutoff=limit, predecessors=True)
        distance = expected(graph, sources, theirs, limit)
        assert found.distance[target] == distance[target]
        atos.verify_sssp(graph, sources, found.distance, found.predecessor, target=target, cutoff=limit)
        steps = 0
        while (before := found.predecessor[target]) >= 0:  # along a shortest path
            assert distance[before] <= distance[target]
            target, steps = before, steps + 1
            assert steps < graph.num_vertices


def grid(side: int, kind: str, device: atos.Device | str = "cpu") -> atos.Graph:
    """A grid with edges of 1 to 9, the same in both directions; as floats a tenth of that, which is rounded."""
    road = atos.generate.road(side, 0.9, device="cpu")
    tails, heads = np.repeat(np.arange(road.num_vertices), road.degrees()), road.indices.to_numpy().astype(np.int64)
    lengths = 1 + (tails + heads) * 48_271 % 9
    weights = lengths.astype(kind) / kind_of(kind)(10) if kind[0] == "f" else lengths.astype(kind)
    return atos.Graph.from_csr(road.indptr.to_numpy(), heads, weights, device=device)


def kind_of(kind: str) -> Any:
    return np.dtype(kind).type


@pytest.mark.parametrize("kind", ["u4", "f4"])
def test_a_grid_in_every_configuration(device: atos.Device, worker: str, kind: str) -> None:
    graph = grid(40, kind, device)
    found = [atos.sssp(graph, 820, predecessors=True, worker=worker, **schedule) for schedule in SCHEDULES]
    found += [atos.sssp(graph, 820, predecessors=True, worker=worker, delta=delta) for delta in (0.01, 3, 1e6)]
    for result in found:
        atos.verify_sssp(graph, 820, result.distance, result.predecessor)
        np.testing.assert_array_equal(np.asarray(result.distance), np.asarray(found[0].distance))
        np.testing.assert_array_equal(np.asarray(result.predecessor), np.asarray(found[0].predecessor))


def test_a_search_with_a_target_ends_early(device: atos.Device) -> None:
    graph = grid(60, "u4", device)
    whole = atos.sssp(graph, 1830)
    near = int(np.argsort(np.asarray(whole.distance))[100])
    found = atos.sssp(graph, 1830, target=near)
    assert found.distance[near] == whole.distance[near]
    assert found.stats.tasks_run < whole.stats.tasks_run / 2
    assert atos.sssp(graph, 1830, target=1830).stats.tasks_run == 1
    for target in range(0, 3600, 101):
        assert atos.sssp(graph, 1830, target=target).distance[target] == whole.distance[target]


def test_edges_of_weight_0_make_no_cycles_of_predecessors(device: atos.Device) -> None:
    """A cycle of weight 0 behind a source, one beside it that nothing leads to, and one that only cycles lead to."""
    edges = [(3, 2, 5), (2, 1, 0), (1, 0, 0), (0, 2, 0), (5, 6, 0), (6, 5, 0), (0, 7, 0), (7, 4, 0), (4, 7, 0), (4, 0, 0)]
    tails, heads, weights = np.array(edges).T
    graph = atos.Graph.from_edges(tails, heads, weights.astype("u4"), device=device)
    result = atos.sssp(graph, 3, predecessors=True)
    assert np.asarray(result.distance).tolist() == [5, 5, 5, 0, 5, 2**32 - 1, 2**32 - 1, 5]
    assert np.asarray(result.predecessor).tolist() == [1, 2, 3, -1, 7, -1, -1, 0]
    all_zero = graph._replace(weights=atos.zeros(len(edges), dtype=np.float32, device=device))
    result = atos.sssp(all_zero, [3, 6], predecessors=True)
    atos.verify_sssp(all_zero, [6, 3], result.distance, result.predecessor)
    assert np.asarray(result.predecessor).tolist() == [1, 2, 3, -1, 7, 6, -1, 0]


def test_weights_that_are_lost_in_rounding() -> None:
    edges, tiny = ([0, 1, 2, 3], [1, 2, 3, 1]), np.float32(1e-9)
    graph = atos.Graph.from_edges(*edges, np.array([1, tiny, tiny, tiny], np.float32), device="cpu")
    result = atos.sssp(graph, 0, predecessors=True)
    assert np.asarray(result.distance).tolist() == [0, 1, 1, 1]
    assert np.asarray(result.predecessor).tolist() == [-1, 0, 1, 2]
    atos.verify_sssp(graph, 0, result.distance, result.predecessor)


@pytest.mark.parametrize(
    ("weights", "dtype"),
    [
        (np.array([2**32 - 2, 0], "u4"), np.int64),
        (np.array([2**31 - 1, 0], "i4"), np.uint32),
        (np.array([2**31, 0], "i8"), np.int64),
        (np.array([2**61, 1], "u8"), np.int64),
        (np.array([0.5, 1], "f4"), np.float32),
        (np.array([0.5, np.inf], "f8"), np.float64),
        (None, np.uint32),
    ],
)
def test_types_of_distances(weights: Any, dtype: Any) -> None:
    """With three vertices, paths have at most two edges."""
    graph = atos.Graph.from_edges([0, 1], [1, 2], weights, device="cpu")
    result = atos.sssp(graph, 0)
    assert result.distance.dtype == dtype
    steps = [1, 1] if weights is None else weights.tolist()
    assert np.asarray(result.distance).tolist() == [0, steps[0], steps[0] + steps[1]]
    atos.verify_sssp(graph, 0, result.distance)
    unreached = atos.sssp(graph, 2).distance[0]
    assert unreached == (np.inf if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max)


def test_graphs_without_edges() -> None:
    for weights, dtype in ((None, np.uint32), (np.zeros(0, "f4"), np.float32), (np.zeros(0, "u4"), np.uint32)):
        graph = atos.Graph.from_edges(np.zeros(0, int), np.zeros(0, int), weights, 2, device="cpu")
        result = atos.sssp(graph, 1, predecessors=True)
        assert (result.distance.dtype, result.distance[1]) == (dtype, 0)
        assert result.distance[0] == unreached_of(np.dtype(dtype))
        assert np.asarray(result.predecessor).tolist() == [-1, -1]
        atos.verify_sssp(graph, 1, result.distance, result.predecessor)


def test_predecessors_of_more_vertices_than_int32_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_IN_32_BITS", 2)
    found = atos.sssp(
        atos.Graph.from_edges([0, 1], [1, 2], np.array([5, 6], "u4"), device="cpu"), 0, predecessors=True
    ).predecessor
    assert (found.dtype, np.asarray(found).tolist()) == (np.int64, [-1, 0, 1])


def test_width_of_buckets() -> None:
    dense = atos.generate.rmat(6, 16, device="cpu")
    weights = np.full(dense.num_edges, 64, np.float32)
    weighted = atos.Graph.from_csr(dense.indptr, dense.indices, weights.copy(), device="cpu")
    assert suit_delta(weighted, "auto") == 64  # no narrower than the least weight
    weights[0] = 0
    weighted = atos.Graph.from_csr(dense.indptr, dense.indices, weights, device="cpu")
    assert suit_delta(weighted, "auto") == pytest.approx(64 * dense.num_vertices / dense.num_edges, rel=0.01)
    assert suit_delta(weighted, 7) == 7
    assert suit_delta(weighted._replace(weights=atos.zeros(dense.num_edges, device="cpu")), "auto") == "auto"
    assert suit_delta(grid(9, "i8"), "auto") == pytest.approx(5, abs=1)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"source": 5}, InvalidArgumentError, "source 5 is not a vertex"),
        ({"target": 3}, InvalidArgumentError, "target 3 is not a vertex: there are 3, numbered from 0"),
        ({"target": -1}, InvalidArgumentError, "target -1 is not a vertex"),
        ({"target": 1.0}, UnsupportedTypeError, "target must be an integer"),
        ({"cutoff": float("nan")}, InvalidArgumentError, "cutoff must be a distance, and is NaN"),
        ({"cutoff": "3"}, UnsupportedTypeError, "cutoff must be a number"),
        ({"cutoff": True}, UnsupportedTypeError, "cutoff must be a number"),
        ({"delta": 0}, InvalidArgumentError, "delta must be a number above 0"),
        ({"predecessors": 1}, UnsupportedTypeError, "predecessors must be True or False"),
        ({"worker": "grid"}, InvalidArgumentError, "worker must be one of"),
        ({"fetch": 3}, UnsupportedTypeError, "sssp has no option 'fetch'; did you mean 'fetch_size'"),
    ],
)
def test_refused_arguments(options: dict[str, Any], error: type[Exception], message: str) -> None:
    graph = atos.Graph.from_edges([0, 1], [1, 2], [1, 2], device="cpu")
    with pytest.raises(error, match=message):
        atos.sssp(graph, **{"source": 0} | options)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.array([3, 0, -2]), r"the weight of edge 2, from 2 to 0, is -2, but shortest paths need weights of at least 0"),
        (np.array([3, -0.5, -1]), r"the weight of edge 1, from 1 to 2, is -0.5"),
        (np.array([1, 2**62, 1]), "may be longer than an int64 can tell: pass weights as float64"),
    ],
)
def test_refused_weights(weights: Any, message: str) -> None:
    graph = atos.Graph.from_edges([0, 1, 2], [1, 2, 0], weights, device="cpu")
    with pytest.raises(InvalidArgumentError, match=message):
        atos.sssp(graph, 0)


def test_weights_that_became_nan_are_refused() -> None:
    weights = atos.asarray(np.array([1.0, np.nan]), device="cpu", readonly=True)
    graph = atos.Graph.from_edges([0, 1], [1, 2], device="cpu")._replace(weights=weights)
    with pytest.raises(InvalidArgumentError, match="the weight of edge 1, from 1 to 2, is nan"):
        atos.sssp(graph, 0)


def test_a_time_limit_is_for_the_whole_call() -> None:
    with pytest.raises(atos.LaunchTimeoutError, match="sssp took longer than its timeout of 1e-06 s; nothing of the result is"):
        atos.sssp(grid(30, "u4"), 0, timeout=1e-6)


#: 0 -> 1 -> 2 -> 3 with a detour 0 -> 2; 4 and 5 on a cycle of weight 0 that nothing leads to; 3 and 6 on one as well.
EDGES = [(0, 1, 4), (1, 2, 4), (2, 3, 1), (0, 2, 9), (4, 5, 0), (5, 4, 0), (3, 6, 0), (6, 3, 0)]
NONE = 2**32 - 1
RIGHT = [0, 4, 8, 9, NONE, NONE, 9]


def graph_of_edges(kind: str = "u4") -> atos.Graph:
    tails, heads, weights = np.array(EDGES).T
    return atos.Graph.from_edges(tails, heads, weights.astype(kind), device="cpu")


class TestVerifier:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (
                {2: 9, 3: 10, 6: 10},
                r"edge 1 -> 2 \(number 2\) of weight 4: distance\[1\] is 4, so distance\[2\] must be at most 8",
            ),
            ({3: NONE, 6: NONE}, r"edge 2 -> 3 .*must be at most 9, but it is that of no path"),
            ({3: 8, 6: 8}, r"distance\[3\] is 8, but no tight edges lead there from a source"),  # they explain each other
            ({4: 7, 5: 7}, r"distance\[4\] is 7, but no tight edges lead there from a source"),
            ({4: 0, 5: 0}, r"distance\[4\] is 0, but no tight edges"),
            ({0: 1}, r"distance\[0\] is 1, but vertex 0 is a source"),
            ({0: NONE}, r"distance\[0\] is that of no path, but vertex 0 is a source"),
        ],
    )
    def test_wrong_distances(self, change: dict[int, int], message: str) -> None:
        graph, distance = graph_of_edges(), np.array(RIGHT, "u4")
        atos.verify_sssp(graph, 0, distance)
        distance[list(change)] = list(change.values())
        with pytest.raises(VerificationError, match=message):
            atos.verify_sssp(graph, 0, distance)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({2: 0}, "predecessor of vertex 2 is 0, but no tight edge leads from there"),
            ({1: -1}, "predecessor of vertex 1 is -1, but no tight edge"),
            ({0: 0}, r"predecessor of vertex 0 is 0, but it is a source or not reached, so it has none \(-1\)"),
            ({4: 5}, "predecessor of vertex 4 is 5, but it is a source or not reached"),
            ({3: 6}, "predecessors of vertex 3 do not lead to a source, but round in a cycle"),
            ({3: 99}, "predecessor of vertex 3 is 99, but no tight edge"),
        ],
    )
    def test_wrong_predecessors(self, change: dict[int, int], message: str) -> None:
        graph, predecessor = graph_of_edges(), np.array([-1, 0, 1, 2, -1, -1, 3])
        atos.verify_sssp(graph, 0, np.array(RIGHT, "u4"), predecessor)
        predecessor[list(change)] = list(change.values())
        with pytest.raises(VerificationError, match=message):
            atos.verify_sssp(graph, 0, np.array(RIGHT, "u4"), predecessor)

    @given(searches(), st.data())
    @settings(deadline=None, max_examples=50)
    def test_accepts_exactly_the_distances(self, search: Any, data: st.DataObject) -> None:
        graph, sources, theirs = search
        distance = expected(graph, sources, theirs)
        atos.verify_sssp(graph, sources, distance)
        wrong, top = distance.copy(), unreached_of(distance.dtype)
        values = [0, 1, 2, 3, 7, top] + ([] if distance.dtype.kind == "f" else [top - 1]) + distance.tolist()
        for place in data.draw(st.lists(st.integers(0, wrong.size - 1), min_size=1, max_size=wrong.size)):
            wrong[place] = data.draw(st.sampled_from(values))
        if (wrong != distance).any():
            with pytest.raises(VerificationError):
                atos.verify_sssp(graph, sources, wrong)

    def test_results_of_a_cutoff_and_a_target(self) -> None:
        graph = graph_of_edges()
        near = np.array([0, 4, 8, NONE, NONE, NONE, NONE], "u4")
        atos.verify_sssp(graph, 0, near, cutoff=8.5)
        with pytest.raises(VerificationError, match="must be at most 9"):
            atos.verify_sssp(graph, 0, near, cutoff=9)
        with pytest.raises(VerificationError, match=r"distance\[2\] is 8, beyond the cutoff of 7"):
            atos.verify_sssp(graph, 0, near, cutoff=7)
        loose = np.array([0, 4, 9, 12, 77, 77, NONE], "u4")  # nothing that is not nearer than the target is looked at
        atos.verify_sssp(graph, 0, loose, target=1)
        with pytest.raises(VerificationError, match="must be at most 8, but it is 9"):
            atos.verify_sssp(graph, 0, loose, target=2)
        with pytest.raises(VerificationError, match=r"distance\[4\] is 77, but no tight edges"):
            atos.verify_sssp(graph, 0, np.array([0, 4, 8, 9, 77, 77, 9], "u4"), target=4)

    def test_floats(self) -> None:
        graph, right = graph_of_edges("f4"), np.where(np.array(RIGHT) == NONE, np.inf, RIGHT)
        atos.verify_sssp(graph, 0, right.astype("f4"))
        atos.verify_sssp(graph, 0, right)
        for value in (np.nan, -1, 9.5):
            wrong = right.copy()
            wrong[3] = value
            with pytest.raises(VerificationError, match=r"distance\[3\]"):
                atos.verify_sssp(graph, 0, wrong)
        with pytest.raises(
            UnsupportedTypeError, match="distances along weights of float32 must be float32 or float64, not uint32"
        ):
            atos.verify_sssp(graph, 0, np.array(RIGHT, "u4"))

    def test_sums_that_no_integer_can_tell(self) -> None:
        csr = CSR(np.array([0, 1, 2, 2]), np.array([1, 2], "u4"), np.array([2**63 + 5, 2**63 - 1], "u8"))
        atos.verify_sssp(csr, 0, np.array([0, 2**63 - 1, 2**63 - 1]))  # no path that can be told
        with pytest.raises(VerificationError, match="no tight edges"):
            atos.verify_sssp(csr, 0, np.array([0, 5, 2**63 - 1]))

    def test_refused_arguments(self) -> None:
        graph = graph_of_edges()
        with pytest.raises(InvalidArgumentError, match="one entry for each of 7 vertices"):
            atos.verify_sssp(graph, 0, np.zeros(6, "u4"))
        with pytest.raises(UnsupportedTypeError, match="int32, uint32, int64, float32 or float64, not uint64"):
            atos.verify_sssp(graph, 0, np.zeros(7, "u8"))
        csr = CSR(np.array([0, 1]), np.array([0], "u4"), np.array([-1]))
        with pytest.raises(InvalidArgumentError, match="the weight of edge 0 is -1"):
            atos.verify_sssp(csr, 0, np.zeros(1, "u4"))


@pytest.mark.part("programs")
@pytest.mark.parametrize("name", ["relax", "along", "assign", "hops"])
def test_kernels_spill_nothing(name: str) -> None:
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    road, words = atos.generate.road(2, device="cpu"), atos.zeros(1, dtype=np.uint32, device="cpu")
    distance = atos.zeros(1, dtype=np.float32, device="cpu")
    weights = atos.asarray(np.zeros(1, np.float32), device="cpu", readonly=True)
    rows, edges = road._replace(weights=weights), (road.indptr, road.indices, weights, distance)
    step = np.dtype([("vertex", "u4"), ("distance", "f4")])
    task, arguments, items = {
        "relax": (relax, (rows, distance, 3, 4.0), step),
        "along": (relax_along, (rows, distance, 3, 4.0), step),
        "assign": (assign_predecessors, (*edges, np.float32(0), words), np.dtype("u4")),
        "hops": (find_hops, (*edges, words, words), np.dtype("u4")),
    }[name]
    try:
        kernel = link.cubin(
            ProgramSpec(task, None, tuple(map(describe, arguments)), items, max_registers=64, buckets=items is step), (9, 0)
        )
    except BuildError as error:
        pytest.skip(str(error))
    assert (kernel.stack_bytes, kernel.spill_bytes) == (0, 0)
    assert kernel.registers <= (64 if items is step else 48)
