"""Numbers of edges beside their weights stay with their edges in every graph that is made of a graph."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_graphs import sources_of

import atos_py as atos
from atos_py.errors import GraphFormatError, InvalidArgumentError, UnsupportedTypeError
from atos_py.graph.edge_arrays import number_edges
from atos_py.graph.simplify import simplify_on_gpu

CPU = atos.device("cpu")
COMBINE: dict[str, Callable[[list[Any]], Any]] = {"min": min, "max": max, "sum": sum, "first": lambda values: values[0]}


def row(number: Any) -> tuple[Any, Any, Any]:
    """Return the weight and the two edge arrays of an edge by its number, all of which tell the number."""
    return number * 7 % 31, number * 3 - 5, (number * 11 % 29) / 4


def graph_of(ends: np.ndarray, n: int, weighted: bool, device: Any = CPU, **options: Any) -> atos.Graph:
    weights, a, b = row(np.arange(ends.shape[1]))
    return atos.Graph.from_edges(
        *ends, weights if weighted else None, n, edge_arrays={"a": a, "b": b}, device=device, **options
    )


def rows_of(graph: atos.Graph) -> list[tuple[Any, ...]]:
    """List the edges in order: source, target, weight or None, and both edge arrays."""
    assert list(graph.edge_arrays) == ["a", "b"]
    for array in graph.edge_arrays.values():
        assert (array.device, array.readonly, array.shape) == (graph.device, True, graph.indices.shape)
    weights = [None] * graph.num_edges if graph.weights is None else graph.weights.tolist()
    columns = [array.tolist() for array in graph.edge_arrays.values()]
    return list(zip(sources_of(graph).tolist(), graph.indices.tolist(), weights, *columns, strict=True))


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, int, bool]:
    """Ends of edges, the number of vertices, and whether there are weights."""
    n = draw(st.integers(0, 6))
    vertex = st.integers(0, max(n - 1, 0))
    ends = draw(st.lists(st.tuples(vertex, vertex), max_size=18 if n else 0))
    return np.array(ends, np.int64).reshape(-1, 2).T, n, draw(st.booleans())


def expected_rows(
    ends: np.ndarray, weighted: bool, *, symmetrize: bool, deduplicate: bool, remove_loops: bool, combine: str = "min"
) -> list[tuple[Any, ...]]:
    """Return the edges with all numbers, sorted, by Python's dictionaries."""
    found: dict[tuple[int, int], list[tuple[Any, ...]]] = {}
    for number in np.argsort(ends[0], kind="stable").tolist():  # in the order that they have in the graph
        u, v = ends[:, number].tolist()
        if u == v and remove_loops:
            continue
        for end in [(u, v)] + [(v, u)] * (symmetrize and u != v):
            found.setdefault(end, []).append(row(number))
    rule = COMBINE[combine]
    rows = [
        (*end, *values)
        for end, parallel in found.items()
        for values in ([tuple(map(rule, zip(*parallel, strict=True)))] if deduplicate else parallel)
    ]
    return sorted((u, v, weight if weighted else None, a, b) for u, v, weight, a, b in rows)


def ordered(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: tuple(-1 if value is None else value for value in row))


flags = st.fixed_dictionaries({name: st.booleans() for name in ("symmetrize", "deduplicate", "remove_loops")})


@settings(deadline=None, max_examples=40)
@given(cases(), flags, st.booleans())
def test_made_with_edges(case, options, sort):
    ends, n, weighted = case
    graph = graph_of(ends, n, weighted, **options, sort=sort)
    plain = atos.Graph.from_edges(*ends, None, n, **options, sort=sort, device="cpu")
    assert graph.indptr.tolist() == plain.indptr.tolist()
    assert graph.indices.tolist() == plain.indices.tolist()
    assert ordered(rows_of(graph)) == ordered(expected_rows(ends, weighted, **options))


@settings(deadline=None, max_examples=40)
@given(cases(), flags, st.booleans(), st.sampled_from(sorted(COMBINE)))
def test_simplify(case, options, sort, combine):
    ends, n, weighted = case
    graph = graph_of(ends, n, weighted)
    made = graph.simplify(**options, sort=sort, combine=combine)
    plain = graph_of(ends, n, weighted).with_edge_arrays(a=None, b=None).simplify(**options, sort=sort, combine=combine)
    assert made.indices.tolist() == plain.indices.tolist()
    assert ordered(rows_of(made)) == ordered(expected_rows(ends, weighted, **options, combine=combine))
    # A GPU numbers the edges alike.
    if not options["deduplicate"]:
        *rows, edges = simplify_on_gpu(number_edges(graph), options | {"sort": sort}, 3)
        assert rows[1].tolist() == made.indices.tolist()
        assert [graph.edge_arrays["a"].tolist()[edge] for edge in edges.tolist()] == made.edge_arrays["a"].tolist()


@settings(deadline=None, max_examples=40)
@given(cases())
def test_transpose_and_back(case):
    ends, n, weighted = case
    graph = graph_of(ends, n, weighted)
    turned, edges = graph.transpose(return_edges=True)
    forward = rows_of(graph)
    assert rows_of(turned) == [(v, u, *values) for u, v, *values in (forward[edge] for edge in edges.tolist())]
    assert turned == graph.transpose()
    assert turned.transpose() == graph
    assert all(turned.transpose().edge_arrays[name] is graph.edge_arrays[name] for name in "ab")
    other = graph.with_edge_arrays(a=None).transpose()  # shares the rows, and not the arrays
    assert list(other.edge_arrays) == ["b"]
    assert other.edge_arrays["b"] is turned.edge_arrays["b"]
    assert not graph.with_edge_arrays(a=None, b=None).transpose().edge_arrays


@settings(deadline=None, max_examples=40)
@given(cases(), st.data())
def test_subgraphs_and_orders(case, data):
    ends, n, weighted = case
    graph = graph_of(ends, n, weighted)
    forward = rows_of(graph)
    chosen = data.draw(st.lists(st.integers(0, n - 1), unique=True)) if n else []
    order = data.draw(st.sampled_from(["bfs", "rcm", "degree", "random"]))
    made = [graph.subgraph(chosen), graph.largest_component(), graph.reorder(order)]
    for part, vertices in made:
        ids = vertices.tolist()
        named = [(ids[u], ids[v], *values) for u, v, *values in rows_of(part)]
        assert ordered(named) == ordered([edge for edge in forward if edge[0] in ids and edge[1] in ids])
    assert sorted(made[2][1].tolist()) == list(range(n))
    symmetric = graph.to_symmetric()
    assert symmetric == graph.to_symmetric()
    if not graph.is_symmetric():
        options = {"symmetrize": True, "deduplicate": True, "remove_loops": False}
        assert ordered(rows_of(symmetric)) == ordered(expected_rows(ends, weighted, **options))


def test_on_every_device(device):
    """What is made of a larger graph on the device of the graph, and on the way to another and back."""
    if device.kind == "cuda":
        pytest.importorskip("cupy")
    plain = atos.generate.rmat(8, 6, device="cpu")
    ends = np.array([plain.sources.tolist(), plain.indices.tolist()])
    here, there = (graph_of(ends, plain.num_vertices, True, where) for where in ("cpu", device))
    chosen = np.random.default_rng(1).permutation(plain.num_vertices)[:100]
    ways: list[Callable[[atos.Graph], atos.Graph]] = [
        lambda graph: graph,
        lambda graph: graph.transpose(),
        lambda graph: graph.simplify(sort=True, remove_loops=True),
        lambda graph: graph.simplify(deduplicate=True, combine="sum"),
        lambda graph: graph.to_symmetric(),
        lambda graph: graph.subgraph(chosen)[0],
        lambda graph: graph.reorder("random")[0],
        lambda graph: graph.largest_component()[0],
        lambda graph: graph.with_weights(graph.edge_arrays["b"]),
        lambda graph: atos.generate.sample_edges(graph, 0.5),
        lambda graph: pickle.loads(pickle.dumps(graph)),
        copy.deepcopy,
    ]
    for way in ways:
        made = way(there)
        assert made.device == device
        assert rows_of(made) == rows_of(way(here)) == rows_of(made.to("cpu"))
        assert [array.dtype for array in made.edge_arrays.values()] == [array.dtype for array in way(here).edge_arrays.values()]
    assert copy.copy(there) == there
    assert there.to(device) is there


def test_types_are_those_of_weights(device):
    graph = atos.Graph.from_edges([0, 1, 2], [1, 2, 0], device=device)
    given = {"lanes": np.array([1, 2, 3], np.uint8), "open": [True, False, True], "cost": np.array([1, 2, 3], np.float32)}
    made = graph.with_edge_arrays(**given, far=atos.asarray([2**40, 1, 2], device=device))
    assert {name: array.dtype.name for name, array in made.edge_arrays.items()} == {
        "lanes": "uint32",
        "open": "int32",
        "cost": "float32",
        "far": "int64",
    }
    assert made.indptr is graph.indptr
    assert not graph.edge_arrays
    other = made.with_edge_arrays(cost=[7, 8, 9], open=None)
    assert list(other.edge_arrays) == ["lanes", "cost", "far"]
    assert (other.edge_arrays["cost"].tolist(), made.edge_arrays["cost"].tolist()) == ([7, 8, 9], [1, 2, 3])
    assert other != made
    assert len({other, made, graph}) == 3
    with pytest.raises(TypeError):
        made.edge_arrays["cost"] = other.edge_arrays["cost"]


def test_tasks_and_algorithms_take_them(device):
    if device.kind == "cuda":
        pytest.importorskip("cupy")
    graph = atos.Graph.from_edges([0, 0, 1], [1, 2, 2], [1, 1, 1], edge_arrays={"toll": [5, 9, 3]}, device=device)
    assert atos.sssp(graph, 0).distance.tolist() == [0, 1, 1]
    tolls = atos.sssp(graph.with_weights(graph.edge_arrays["toll"]), 0)
    assert tolls.distance.tolist() == [0, 5, 8]
    assert atos.pagerank(graph).rank.tolist() == pytest.approx(atos.pagerank(graph.with_edge_arrays(toll=None)).rank.tolist())

    @atos.task
    def add(worker, v, graph, toll, total):
        if worker.rank == 0:
            for edge in range(graph.indptr[v], graph.indptr[v + 1]):
                total[v] += toll[edge]

    queue, total = atos.Queue(4, device=device), atos.zeros(3, dtype=np.int64, device=device)
    queue.push(range(3))
    queue.launch_thread(add, graph, graph.edge_arrays["toll"], total)
    assert total.tolist() == [14, 3, 0]


def test_networkx_and_pandas():
    roads = nx.DiGraph()
    roads.add_edge("x", "y", weight=2, toll=0.5, lanes=1)
    roads.add_edge("z", "y", toll=0, lanes=2)
    graph = atos.Graph.from_networkx(roads, edge_arrays=["toll", "lanes"], device="cpu")
    back = graph.to_networkx()
    assert list(back.edges(data=True)) == [
        (0, 1, {"weight": 2, "toll": 0.5, "lanes": 1}),
        (2, 1, {"weight": 1, "toll": 0, "lanes": 2}),
    ]
    table = graph.to_pandas_edgelist()
    assert table.to_dict("list") == {"source": [0, 2], "target": [1, 1], "weight": [2, 1], "toll": [0.5, 0], "lanes": [1, 2]}
    again = atos.Graph.from_edges(table["source"], table["target"], edge_arrays={"toll": table["toll"]}, device="cpu")
    assert again.edge_arrays["toll"].tolist() == [0.5, 0]
    both = atos.Graph.from_networkx(roads.to_undirected(), weight=None, edge_arrays=["lanes"], device="cpu")
    assert both.num_edges == 4
    assert sorted(both.edge_arrays["lanes"].tolist()) == [1, 1, 2, 2]
    empty = atos.Graph.from_networkx(nx.empty_graph(3), edge_arrays=["toll"], device="cpu")
    assert empty.edge_arrays["toll"].size == 0
    for names, kind, message in (
        (["width"], InvalidArgumentError, "the edge from 'x' to 'y' has no attribute 'width'"),
        ("toll", UnsupportedTypeError, "a list of names"),
        ([3], UnsupportedTypeError, "a list of names"),
        (["weight"], InvalidArgumentError, "'weight' cannot be the name of an edge array"),
    ):
        with pytest.raises(kind, match=message):
            atos.Graph.from_networkx(roads, edge_arrays=names, device="cpu")


@pytest.mark.parametrize("compress", [False, True])
def test_files(tmp_path: Path, compress: bool) -> None:
    ends = np.array([[0, 3, 3, 1, 3, 2], [1, 0, 3, 2, 0, 1]])
    graph = graph_of(ends, 5, True)
    graph.save(tmp_path / "graph.npz", compress=compress)
    assert rows_of(atos.Graph.load(tmp_path / "graph.npz", device="cpu")) == rows_of(graph)
    changed = atos.Graph.load(tmp_path / "graph.npz", symmetrize=True, deduplicate=True, weights=False, device="cpu")
    assert rows_of(changed) == rows_of(graph.with_weights(None).simplify(symmetrize=True, deduplicate=True))
    parts = atos.Graph.load(tmp_path / "graph.npz", devices=["cpu:0", "cpu:1"])
    assert parts.num_edges == 6
    arrays = dict(np.load(tmp_path / "graph.npz"))
    for name, array in (("edge_arrays/a", [1, 2]), ("edge_arrays/", np.ones(6)), ("edge_arrays/b", np.full(6, np.nan))):
        np.savez(tmp_path / "wrong.npz", **(arrays | {name: array}))
        with pytest.raises(GraphFormatError, match=r"wrong\.npz"):
            atos.Graph.load(tmp_path / "wrong.npz")


def by_labels(graph: atos.Graph) -> list[tuple[Any, ...]]:
    """List the edges by the labels of their ends, sorted; check on the way that the arrays tell the same ends."""
    ends = graph.labels[graph.sources], graph.labels[graph.indices]
    names = np.minimum(*ends), np.maximum(*ends)
    assert [array.tolist() for array in graph.edge_arrays.values()] == [each.tolist() for each in names]
    return sorted(zip(*(each.tolist() for each in ends), strict=True))


ids = st.one_of(st.integers(0, 6), st.integers(0, 10**18 - 1))


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(ids, ids, st.integers(-5, 5)), min_size=1, max_size=25), st.booleans(), st.data())
def test_beside_labels(tmp_path_factory, edges, weighted, data):
    """Labels and arrays stay together: both arrays tell the labels of the ends of each edge, whatever is made of the graph."""
    folder = tmp_path_factory.mktemp("labels")
    lines = [" ".join(map(str, edge if weighted else edge[:2])) for edge in edges]
    (folder / "a.txt").write_text("\n".join(lines))
    read = atos.Graph.load(folder / "a.txt", renumber=True, device="cpu")
    ends = np.stack([read.labels[read.sources], read.labels[read.indices]])
    graph = read.with_edge_arrays(least=ends.min(0), most=ends.max(0))
    named = sorted(edge[:2] for edge in edges)
    chosen = np.array(data.draw(st.lists(st.integers(0, graph.num_vertices - 1), unique=True)), np.int64)
    graph.save(folder / "a.npz")
    for same in (
        graph,
        graph.with_weights(graph.edge_arrays["most"]),
        graph.with_weights(None),
        graph.with_edge_arrays(least=None).with_edge_arrays(most=None, least=ends.min(0)).with_edge_arrays(most=ends.max(0)),
        graph.simplify(sort=True),
        graph.transpose().transpose(),
        graph.reorder(data.draw(st.sampled_from(["bfs", "rcm", "degree", "random"])))[0],
        atos.generate.sample_edges(graph, 1),
        graph.to("cpu:1"),
        graph.to("cpu:1").to("cpu"),
        copy.copy(graph),
        copy.deepcopy(graph),
        *(pickle.loads(pickle.dumps(graph, protocol)) for protocol in (2, pickle.HIGHEST_PROTOCOL)),
        atos.Graph.load(folder / "a.npz", device="cpu"),
        atos.Graph.load(folder / "a.npz", renumber=True, device="cpu"),
    ):
        assert by_labels(same) == named
    assert by_labels(graph.transpose()) == sorted((v, u) for u, v in named)
    both = {(u, v) for edge in named for u, v in (edge, edge[::-1])}
    if not graph.is_symmetric():
        assert by_labels(graph.to_symmetric()) == sorted(both)
    assert by_labels(graph.simplify(deduplicate=True, remove_loops=True)) == sorted({(u, v) for u, v in named if u != v})
    part, vertices = graph.subgraph(chosen)
    assert part.labels.tolist() == graph.labels[vertices].tolist() == graph.labels[chosen].tolist()
    inside = [(u, v) for u, v in named if {u, v} <= set(part.labels.tolist())]
    assert by_labels(part) == inside
    by_labels(graph.largest_component()[0])
    # Of the file of a part, vertices without edges are left out, and labels are the first ones.
    part.save(folder / "part.npz")
    again = atos.Graph.load(folder / "part.npz", renumber=True, symmetrize=True, simplify=True, device="cpu")
    assert by_labels(again) == sorted({(u, v) for edge in inside for u, v in (edge, edge[::-1]) if u != v})
    assert set(again.labels.tolist()) == {end for edge in inside for end in edge}
    parts = atos.Graph.load(folder / "part.npz", renumber=True, devices=["cpu:0", "cpu:1"])
    assert set(parts.labels.tolist()) == set(again.labels.tolist())


@pytest.mark.parametrize(
    ("arrays", "kind", "message"),
    [
        ({"toll": [1, 2]}, InvalidArgumentError, r"toll must be one-dimensional .* each of the 3 edges \(got shape \(2,\)\)"),
        ({"toll": [0, np.nan, 1]}, InvalidArgumentError, r"toll\[1\] is NaN"),
        ({"toll": ["a"] * 3}, UnsupportedTypeError, "toll must be integers or floats"),
        ({"weight": [1, 2, 3]}, InvalidArgumentError, "'weight' cannot be .* with_weights"),
        ({"source": [1, 2, 3]}, InvalidArgumentError, "'source' cannot be the name"),
        ({"": [1, 2, 3]}, UnsupportedTypeError, "printable text"),
        ({"a\n": [1, 2, 3]}, UnsupportedTypeError, "printable text"),
    ],
)
def test_what_is_refused(device, arrays, kind, message):
    graph = atos.Graph.from_edges([0, 1, 1], [1, 0, 2], device=device)
    with pytest.raises(kind, match=message):
        graph.with_edge_arrays(**arrays)
    with pytest.raises(kind, match=message):
        atos.Graph.from_edges([0, 1, 1], [1, 0, 2], edge_arrays=arrays, device=device)


def test_what_else_is_refused():
    graph = atos.Graph.from_edges([0, 0], [1, 1], edge_arrays={"far": [2**62, 2**62]}, device="cpu")
    with pytest.raises(InvalidArgumentError, match="no edge array 'toll' to take off"):
        graph.with_edge_arrays(toll=None)
    with pytest.raises(InvalidArgumentError, match="edge array 'far': the weights of the edges from 0 to 1 have a sum"):
        graph.simplify(deduplicate=True, combine="sum")
    with pytest.raises(InvalidArgumentError, match="combine must be one of"):
        graph.simplify(combine="mean")
    for wrong in ([1, 2], "toll", {1: [1, 2]}):
        with pytest.raises(UnsupportedTypeError, match=r"edge_arrays is a dict|printable text"):
            atos.Graph.from_edges([0, 0], [1, 1], edge_arrays=wrong, device="cpu")


def test_memory_is_given_back():
    graph = atos.Graph.from_edges([0, 0], [1, 1], edge_arrays={"toll": [1, 2]}, device="cpu")
    made = [graph.transpose(), graph.transpose().transpose(), graph.to_symmetric()]
    seen = [weakref.ref(each.edge_arrays["toll"]) for each in (graph, *made)]
    del graph, made
    gc.collect()
    assert [reference() for reference in seen] == [None] * 4
