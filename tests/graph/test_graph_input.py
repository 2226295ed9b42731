"""Tables, arrays of odd layouts, and other libraries' graphs where a graph or its edges are wanted."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import networkx
import numpy as np
import pytest
import scipy.sparse

import atos_py as atos
from atos_py import Graph, InvalidArgumentError, UnsupportedTypeError

pandas = pytest.importorskip("pandas")

CPU = "cpu"
EDGES = np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])


def edges_of(graph: Graph) -> list[list[int]]:
    return [np.repeat(np.arange(graph.num_vertices), graph.degrees()).tolist(), graph.indices.to_numpy().tolist()]


class TestTables:
    @pytest.mark.parametrize("dtype", ["int64", "Int64", "uint8", "Int32"])
    def test_rows_of_an_edge_index(self, dtype: str) -> None:
        assert edges_of(Graph.from_edge_index(pandas.DataFrame(EDGES, dtype=dtype), device=CPU)) == EDGES.tolist()
        assert edges_of(Graph.from_edge_index(pandas.DataFrame(EDGES[:, :2], dtype=dtype), device=CPU)) == EDGES[:, :2].tolist()
        named = pandas.DataFrame(EDGES, ["source", "target"], list("abcde"), dtype=dtype)
        assert edges_of(Graph.from_edge_index(named, device=CPU)) == EDGES.tolist()

    @pytest.mark.parametrize("length", [0, 1, 2, 3, 5])
    def test_a_row_for_each_edge_is_no_edge_index(self, length: int) -> None:
        """Of two edges too, where the shape would do."""
        table = pandas.DataFrame(EDGES.T[:length], columns=["from", "to"])
        with pytest.raises(InvalidArgumentError, match=r"two rows.*DataFrame of shape \(\d, 2\)") as caught:
            Graph.from_edge_index(table, device=CPU)
        advised = str(caught.value).partition("make one with ")[2]
        assert advised == "Graph.from_edges(table['from'], table['to'])"
        assert edges_of(eval(advised, {"Graph": Graph, "table": table})) == EDGES[:, :length].tolist()

    def test_columns_in_the_order_of_rows(self) -> None:
        table = pandas.DataFrame({"from": EDGES[0], "to": EDGES[1], "cost": EDGES[0] / 2}, index=[9, 7, 7, -1, 3])
        graph = Graph.from_edges(table["from"], table["to"][::-1][::-1], table["cost"], device=CPU)
        assert edges_of(graph) == EDGES.tolist()
        assert np.asarray(graph.weights).tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
        part = table[table["from"] > 2]
        assert edges_of(Graph.from_edges(part["from"], part["to"], part["cost"], device=CPU)) == EDGES[:, 3:].tolist()

    @pytest.mark.parametrize("dtype", ["Int64", "UInt32", "Float64", "Float32", "boolean"])
    def test_nullable_types(self, dtype: str) -> None:
        ids = pandas.Series([0, 1], dtype="Int64")
        weights = pandas.Series([1, 0], dtype=dtype)
        assert np.asarray(Graph.from_edges(ids, ids, weights, device=CPU).weights).tolist() == [1, 0]
        weights[1] = None
        with pytest.raises((InvalidArgumentError, UnsupportedTypeError), match=r"weights\[1\] is NaN|weights must be integers"):
            Graph.from_edges(ids, ids, weights, device=CPU)
        ids[1] = None
        with pytest.raises(UnsupportedTypeError, match=r"sources must be integers, not (float64|object); if every value is a"):
            Graph.from_edges(ids, ids, device=CPU)

    def test_a_table_is_no_column(self) -> None:
        table = pandas.DataFrame({"cost": [1, 2]})
        with pytest.raises(InvalidArgumentError, match=r"weights must be one-dimensional.*shape \(2, 1\)"):
            Graph.from_edges([0, 1], [1, 0], table, device=CPU)
        with pytest.raises(InvalidArgumentError, match=r"sources must be one-dimensional.*shape \(2, 1\)"):
            Graph.from_edges(table, [1, 0], device=CPU)

    @pytest.mark.parametrize("dtype", [None, "category", object])
    def test_names(self, dtype: Any) -> None:
        sources, targets = (pandas.Series(names, dtype=dtype) for names in (["ann", "bob", "cid"], ["bob", "cid", "ann"]))
        with pytest.raises(UnsupportedTypeError, match="sources must be integers, not object, as 'ann' is none") as caught:
            Graph.from_edges(sources, targets, device=CPU)
        advised = str(caught.value).partition("as by codes, names = ")[2]
        codes, names = eval(advised, {"pandas": pandas, "numpy": np, "sources": sources, "targets": targets})
        assert list(names) == ["ann", "bob", "cid"]
        assert edges_of(Graph.from_edges(codes[:3], codes[3:], device=CPU)) == [[0, 1, 2], [1, 2, 0]]

    def test_names_in_other_arrays(self) -> None:
        for names in (["a", "b"], np.array([b"a", b"b"]), np.array(["a", "b"], object)):
            with pytest.raises(UnsupportedTypeError, match=r"as b?'a' is none; number all names"):
                Graph.from_edges([0, 1], names, device=CPU)


def unaligned(values: Any) -> np.ndarray:
    values = np.asarray(values)
    result = np.zeros(values.nbytes + 1, np.uint8)[1:].view(values.dtype)
    result[:] = values
    assert not result.flags.aligned
    return result


def read_only(values: Any) -> np.ndarray:
    result = np.array(values)
    result.flags.writeable = False
    return result


LAYOUTS = {
    "big-endian": lambda values: values.astype(values.dtype.newbyteorder(">")),
    "unaligned": unaligned,
    "read-only": read_only,
    "strided": lambda values: np.repeat(values, 3)[::3],
    "backwards": lambda values: values[::-1].copy()[::-1],
}


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout(layout: Any, dtype: str) -> None:
    if dtype[1] == "1" and layout is unaligned:
        return
    sources, targets = (layout(row.astype(dtype)) for row in EDGES)
    weights = layout(np.arange(5, dtype="f8") / 2)
    offsets = layout(np.array([0, 1, 2, 3, 4, 5, 5], dtype))
    for graph in (
        Graph.from_edges(sources, targets, weights, device=CPU),
        Graph.from_csr(offsets, targets, weights, device=CPU),
        Graph.from_edge_index(np.array([sources, targets], sources.dtype), weights, device=CPU),
    ):
        assert edges_of(graph) == EDGES.tolist()
        assert np.asarray(graph.weights).tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
        assert all(np.asarray(part).flags.aligned and np.asarray(part).dtype.isnative for part in graph)
        assert atos.bfs(graph, 0).num_levels == 6


def test_ids_below_0_where_no_number_of_vertices_is_given() -> None:
    with pytest.raises(InvalidArgumentError, match=r"^sources\[1\] is -7, but vertex ids begin at 0$"):
        Graph.from_edges([3, -7], [2, 2], device="cpu")


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (np.array([0.0, 1.0]), UnsupportedTypeError, "not float64; if every value is a whole number"),
        (np.array([0, 1], object), UnsupportedTypeError, "not object; if every value is a whole number"),
        (np.array([True, False]), UnsupportedTypeError, "integers, not bool$"),
        (np.array([0, 1], "M8[s]"), UnsupportedTypeError, r"not datetime64\[s\]$"),
        (np.array([(0,), (1,)], [("id", "i4")]), UnsupportedTypeError, "must be integers"),
        (np.array(3), InvalidArgumentError, r"one-dimensional \(got shape \(\)\)"),
        (np.array([-1, 1], np.int8), InvalidArgumentError, r"\[0\] is -1, but vertex ids"),
        (np.array([1, 2**63], np.uint64), InvalidArgumentError, rf"\[1\] is {2**63}, but vertex ids"),
        (
            np.array([2**31, 1]),
            InvalidArgumentError,
            rf"\[0\] is {2**31}, but vertex ids must lie in 0\.\.1 \(num_vertices is 2\)",
        ),
        (np.ma.array([0, 1], mask=[False, True]), UnsupportedTypeError, "has a mask"),
    ],
)
def test_ids_that_are_none(ids: Any, error: type[Exception], message: str) -> None:
    for name, call in (
        ("sources", lambda: Graph.from_edges(ids, [1, 0], num_vertices=2, device=CPU)),
        ("targets", lambda: Graph.from_edges([1, 0], ids, num_vertices=2, device=CPU)),
        ("indices", lambda: Graph.from_csr([0, 1, 2], ids, device=CPU)),
    ):
        with pytest.raises(error, match=f"{name}.*{message}"):
            call()


@pytest.mark.parametrize("empty", [[[], []], ((), ()), np.zeros((2, 0), int), pandas.DataFrame([[], []])])
def test_an_edge_index_without_edges(empty: Any) -> None:
    assert Graph.from_edge_index(empty, num_vertices=3, device=CPU).num_vertices == 3


def test_a_transposed_edge_index() -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"two rows.*ndarray of shape \(5, 2\)\); make one with Graph.from_edge_index\(array.T\)"
    ):
        Graph.from_edge_index(EDGES.T)


THEIRS: list[tuple[Any, str]] = [
    (networkx.DiGraph(EDGES.T.tolist()), "networkx.DiGraph); make one with Graph.from_networkx(graph)"),
    (networkx.MultiGraph(EDGES.T.tolist()), "networkx.MultiGraph); make one with Graph.from_networkx(graph)"),
    (networkx.path_graph(6, networkx.DiGraph).subgraph(range(6)), "make one with Graph.from_networkx(graph)"),
    (scipy.sparse.csr_array((6, 6)), "scipy.csr_array); make one with Graph.from_scipy(matrix)"),
    (scipy.sparse.coo_matrix((6, 6)), "scipy.coo_matrix); make one with Graph.from_scipy(matrix)"),
    (np.eye(6), "numpy.ndarray); make one with Graph.from_scipy(scipy.sparse.csr_array(array))"),
    (EDGES, "numpy.ndarray); make one with Graph.from_edge_index(array)"),
    (EDGES.T, "numpy.ndarray); make one with Graph.from_edge_index(array.T)"),
    (pandas.DataFrame(EDGES.T, columns=["a", "b"]), "DataFrame); make one with Graph.from_edges(table['a'], table['b'])"),
    (SimpleNamespace(edge_index=EDGES, num_nodes=6), "from_edge_index(data.edge_index, num_vertices=data.num_nodes)"),
    (SimpleNamespace(indptr=[0, 1, 1], indices=[1]), "make one with Graph.from_csr(it.indptr, it.indices)"),
    ("path.gr", "(got str); make one with Graph.load(path)"),
    (Path("path.gr"), "make one with Graph.load(path)"),
    (EDGES.T.tolist(), "(got list); Graph.from_edges, from_csr, from_scipy, from_networkx and load make one"),
    (None, "(got NoneType); Graph.from_edges, from_csr"),
]
WANT_A_GRAPH = {
    "bfs": lambda graph: atos.bfs(graph, 0),
    "pagerank": atos.pagerank,
    "color": atos.color,
    "connected_components": atos.connected_components,
    "verify_connected_components": lambda graph: atos.verify_connected_components(graph, [0]),
    "core_number": atos.core_number,
    "k_core": lambda graph: atos.k_core(graph, 2),
    "count_triangles": atos.count_triangles,
    "verify_triangles": lambda graph: atos.verify_triangles(graph, [0]),
    "maximal_independent_set": atos.maximal_independent_set,
    "verify_maximal_independent_set": lambda graph: atos.verify_maximal_independent_set(graph, [True]),
    "label_propagation": atos.label_propagation,
    "verify_label_propagation": lambda graph: atos.verify_label_propagation(graph, [0]),
    "verify_core_number": lambda graph: atos.verify_core_number(graph, [0]),
    "verify_k_core": lambda graph: atos.verify_k_core(graph, 2, [True]),
    "minimum_spanning_forest": atos.minimum_spanning_forest,
    "verify_minimum_spanning_forest": lambda graph: atos.verify_minimum_spanning_forest(graph, [[0, 1]], [0]),
    "strongly_connected_components": atos.strongly_connected_components,
    "verify_strongly_connected_components": lambda graph: atos.verify_strongly_connected_components(graph, [0]),
    "verify_bfs": lambda graph: atos.verify_bfs(graph, 0, [0]),
    "verify_pagerank": lambda graph: atos.verify_pagerank(graph, [1.0]),
    "verify_coloring": lambda graph: atos.verify_coloring(graph, [0]),
    "tune": lambda graph: atos.tune(lambda **options: None, graph=graph, space={"worker": ["cta"]}, budget=1e-9),
    "tuned": lambda graph: atos.tuned("bfs", graph),
    "from_scipy": Graph.from_scipy,
    "from_networkx": Graph.from_networkx,
}


@pytest.mark.parametrize(("theirs", "advice"), THEIRS, ids=[advice[-40:] for _, advice in THEIRS])
@pytest.mark.parametrize("name", WANT_A_GRAPH)
def test_what_makes_a_graph_of_another_librarys(name: str, theirs: Any, advice: str) -> None:
    if name in ("tune", "tuned") and theirs is None:
        return  # where None is for any graph
    if f"{name}(graph)" in advice or f"{name}(matrix)" in advice:
        return
    with pytest.raises(UnsupportedTypeError) as caught:
        WANT_A_GRAPH[name](theirs)
    assert advice in str(caught.value)


@pytest.mark.parametrize(("theirs", "advice"), THEIRS[:11], ids=[advice[-40:] for _, advice in THEIRS[:11]])
def test_the_advice_is_right(theirs: Any, advice: str) -> None:
    names = dict.fromkeys(["graph", "matrix", "array", "table", "data", "it"], theirs)
    made = eval(advice.partition("make one with ")[2] or f"Graph.{advice}", {"Graph": Graph, "scipy": scipy} | names)
    assert made.num_vertices == (2 if advice.endswith("it.indices)") else 6)


@pytest.mark.parametrize("weight", [["weight"], False, True, 3, {}, lambda edge: 1, b"weight"])
def test_an_edge_attribute_has_a_name(weight: Any) -> None:
    with pytest.raises(UnsupportedTypeError, match="weight must be the name of an edge attribute, or None"):
        Graph.from_networkx(networkx.path_graph(3), weight=weight)


def test_a_graph_made_by_hand() -> None:
    """Of arrays it is one; of anything else it is refused, and by whichever way it came about, it can be shown."""
    graph = Graph.from_edges([0], [1], device=CPU)
    assert atos.bfs(Graph(graph.indptr, graph.indices, None), 0).num_reached == 2
    for parts in ((None, None, None), (np.array([0, 1, 1]), np.array([1]), None), (*graph[:2], 3), (graph.indptr, None, None)):
        with pytest.raises(UnsupportedTypeError, match=r"parts of a graph are arrays of atos.*Graph.from_csr"):
            Graph(*parts)
        odd = Graph._make(parts)
        assert repr(odd).startswith("Graph(indptr=")
        with pytest.raises(UnsupportedTypeError, match="parts of a graph"):
            atos.bfs(odd, 0)
