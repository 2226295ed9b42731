"""Vertices numbered anew: the graph is the same through its labels, which stay with it and with what is made of it."""

from __future__ import annotations

import copy
import pickle
import warnings

import networkx as nx
import numpy as np
import pytest
from graph_files import malformed
from hypothesis import given, settings
from hypothesis import strategies as st

import atos_py as atos
from atos_py.errors import InvalidArgumentError, UnsupportedTypeError
from atos_py.graph.csr import EdgeChunk, EdgeList
from atos_py.graph.formats import text as text_files
from atos_py.graph.ids import _count_named

IDS = st.one_of(st.integers(0, 20), st.integers(0, 10**18 - 1))
EDGES = st.lists(st.tuples(IDS, IDS, st.integers(-5, 5)), min_size=1, max_size=40)


def labeled_edges(graph: atos.Graph) -> list[tuple[int, ...]]:
    """Return the edges of a graph by labels, in order."""
    columns = [graph.labels[graph.sources], graph.labels[graph.indices]]
    return list(zip(*(each.tolist() for each in (*columns, graph.weights) if each is not None), strict=True))


def by_source(edges):
    return sorted(edges, key=lambda edge: edge[0])


@pytest.fixture
def far(tmp_path):
    """Return a graph of three vertices: 100000, 100009 and 500000."""
    (tmp_path / "far.txt").write_text("100009 100000 7\n100000 500000 5\n500000 500000 1\n100009 100000 3\n")
    return atos.Graph.load(tmp_path / "far.txt", renumber=True, device="cpu")


@given(EDGES, st.booleans(), st.booleans(), st.integers(16, 200))
@settings(deadline=None, max_examples=60)
def test_the_same_graph_by_labels(tmp_path_factory, edges, weighted, parts, block):
    used = [edge if weighted else edge[:2] for edge in edges]
    path = tmp_path_factory.mktemp("renumbered") / "a.txt"
    path.write_text("".join(" ".join(map(str, edge)) + "\n" for edge in used))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "_BLOCK_BYTES", max(block, 64))
        graph = atos.Graph.load(path, renumber=True, device="cpu")
        if parts:
            found = atos.Graph.load(path, renumber=True, devices=["cpu:0", "cpu:1"], order="random")
            assert found.labels.tolist() == graph.labels.tolist()
    assert graph.labels.tolist() == sorted({id for edge in edges for id in edge[:2]})
    assert graph.num_vertices == len(graph.labels)
    assert labeled_edges(graph) == by_source(used)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=40), st.booleans(), st.booleans())
@settings(deadline=None, max_examples=60)
def test_as_networkx_without_isolated_vertices(tmp_path_factory, edges, symmetrize, simplify):
    """Renumbered, symmetric and simple: what networkx makes of the same file."""
    path = tmp_path_factory.mktemp("networkx") / "a.txt"
    path.write_text("".join(f"{u} {v}\n" for u, v in edges))
    graph = atos.Graph.load(path, renumber=True, symmetrize=symmetrize, simplify=simplify, device="cpu")
    kind = {(True, True): nx.Graph, (True, False): nx.MultiGraph, (False, True): nx.DiGraph, (False, False): nx.MultiDiGraph}
    theirs = nx.read_edgelist(path, nodetype=int, create_using=kind[symmetrize, simplify])
    if simplify:
        theirs.remove_edges_from(list(nx.selfloop_edges(theirs)))
    assert graph.labels.tolist() == sorted(theirs)
    wanted = (
        list(theirs.edges())
        if not symmetrize
        else [(u, v) for u in theirs for v, many in theirs.adj[u].items() for _ in (many if not simplify else "1")]
    )
    assert sorted(labeled_edges(graph)) == sorted(wanted)
    assert not symmetrize or graph.is_symmetric()


@pytest.mark.parametrize(
    ("name", "content", "labels"),
    [
        ("a.gr", "p sp 4000000000 2\na 9 2 1\na 3000000000 9 1\n", [2, 9, 3_000_000_000]),
        ("a.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n4000000000 4000000000 1\n9 2\n", [2, 9]),
        ("a.csv", "source,target\n9,2\n", [2, 9]),
        ("a.edges", "9 2 {}\n", [2, 9]),
        ("a.mtx", "%%MatrixMarket matrix coordinate pattern general\n3 3 0\n", []),
    ],
)
def test_labels_are_the_ids_of_the_file(tmp_path, name, content, labels):
    (tmp_path / name).write_text(content)
    graph = atos.Graph.load(tmp_path / name, renumber=True, device="cpu")
    assert (graph.labels.tolist(), graph.labels.dtype, graph.labels.flags.writeable) == (labels, np.int64, False)
    assert graph.num_vertices == len(labels)


def test_what_has_too_many_digits(tmp_path):
    (tmp_path / "a.txt").write_text(f"0 1\n0 {10**18}\n")
    with pytest.raises(atos.GraphFormatError, match=rf"line 2: vertex id '{10**18}' is outside 0\.\.{10**18 - 1}$"):
        atos.Graph.load(tmp_path / "a.txt", renumber=True)
    assert "renumber=True" not in malformed(tmp_path / "a.txt").reason


def test_labels_stay_with_what_is_made_of_a_graph(far, tmp_path):
    labels = [100000, 100009, 500000]
    turned, _ = far.transpose(return_edges=True)
    for same in (
        far.simplify(sort=True),
        far.with_weights(None),
        far.with_weights([1, 2, 3, 4]),
        far.to_symmetric(),
        far.to("cpu"),
        turned,
        turned.transpose(),
        copy.copy(far),
        copy.deepcopy(far),
        pickle.loads(pickle.dumps(far)),
    ):
        assert same.labels.tolist() == labels
    part, vertices = far.subgraph([2, 0])
    assert part.labels.tolist() == [500000, 100000] == far.labels[vertices].tolist()
    assert far.largest_component()[0].labels.tolist() == labels
    reordered, vertices = far.reorder("random", seed=1)
    assert reordered.labels.tolist() == far.labels[vertices].tolist() != labels
    assert sorted(labeled_edges(reordered)) == sorted(labeled_edges(far))
    assert far.partition(["cpu:0", "cpu:1"]).labels.tolist() == labels
    far.save(tmp_path / "far.npz")
    again = atos.Graph.load(tmp_path / "far.npz", device="cpu")
    assert (again.labels.tolist(), labeled_edges(again)) == (labels, labeled_edges(far))
    part.save(tmp_path / "part.npz")
    assert atos.Graph.load(tmp_path / "part.npz", renumber=True).labels.tolist() == [500000, 100000]
    assert atos.Graph.from_csr(*far).labels is None


def test_isolated_vertices_of_an_archive_are_left_out(tmp_path):
    graph = atos.Graph.from_edges([5, 2], [2, 7], num_vertices=9, device="cpu")
    graph.save(tmp_path / "a.npz")
    assert atos.Graph.load(tmp_path / "a.npz").labels is None
    read = atos.Graph.load(tmp_path / "a.npz", renumber=True, device="cpu")
    assert (read.labels.tolist(), labeled_edges(read)) == ([2, 5, 7], [(2, 7), (5, 2)])


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ([1, 2], "labels must have an entry for each of the 3 vertices (got 2)"),
        ([1, 2, 1], "labels must be different for each vertex"),
        ([0.5, 1, 2], "labels must be integers"),
        (np.array([0, 1, 2**63], np.uint64), f"labels must be less than 2**63 (got {2**63})"),
    ],
)
def test_labels_of_an_archive_are_checked(tmp_path, labels, reason):
    np.savez(tmp_path / "a.npz", indptr=[0, 1, 1, 1], indices=[1], labels=labels)
    assert reason in malformed(tmp_path / "a.npz").reason


def test_vertices_by_their_labels(far):
    assert [far.vertex_of(label) for label in (100000, np.int64(100009), 500000)] == [0, 1, 2]
    with pytest.raises(InvalidArgumentError, match="no vertex has the label 1: no edge of the file names it"):
        far.vertex_of(1)
    with pytest.raises(UnsupportedTypeError, match="label must be an integer"):
        far.vertex_of("a")
    plain = atos.Graph.from_edges([0], [1], device="cpu")
    assert plain.labels is None
    assert plain.vertex_of(1) == 1
    with pytest.raises(InvalidArgumentError, match=r"label must be from 0 to 1 \(got 2\)"):
        plain.vertex_of(2)


class TestGaps:
    """A warning where more than half of the vertices have no edge, and only the largest id says how many there are."""

    @pytest.mark.parametrize(
        ("name", "content", "gaps"),
        [
            ("a.txt", "100000 100009\n", True),
            ("a.csv", "source,target\n0,4\n", True),
            ("a.txt", "0 3\n", False),  # just half
            ("a.txt", "0 4\n", True),
            ("a.txt", "1 2\n2 3\n", False),
            ("a.txt", "4 4\n", True),
            ("a.gr", "p sp 9 1\na 1 2 3\n", False),  # which says itself how many there are
            ("a.mtx", "%%MatrixMarket matrix coordinate pattern general\n9 9 1\n1 2\n", False),
        ],
    )
    def test_when(self, tmp_path, name, content, gaps):
        (tmp_path / name).write_text(content)
        for options, expected in (({}, gaps), ({"renumber": True}, False), ({"devices": ["cpu:0", "cpu:1"]}, gaps)):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                atos.Graph.load(tmp_path / name, **options)
            told = [warning for warning in caught if warning.category is UserWarning]
            assert len(told) == expected
            for warning in told:
                assert warning.filename == __file__
                assert "of which more than half have no edge; renumber=True (--renumber) leaves those out" in str(
                    warning.message
                )

    def test_the_numbers(self, tmp_path):
        (tmp_path / "a.txt").write_text("100000 100009\n")
        with pytest.warns(UserWarning, match="name 2 vertices, but the largest id, 100009, makes 100,010,"):
            atos.Graph.load(tmp_path / "a.txt")

    @given(st.lists(st.lists(st.tuples(st.integers(0, 25), st.integers(0, 25)), max_size=12), max_size=8), st.integers(26, 60))
    @settings(deadline=None)
    def test_counting_may_end_early_but_not_wrongly(self, parts, num_vertices):
        chunks = [EdgeChunk(*np.array(part, np.uint32).reshape(-1, 2).T, None) for part in parts]
        named = len({id for part in parts for edge in part for id in edge})
        found = _count_named(EdgeList(chunks, num_vertices, symmetric=False).chunks, num_vertices)
        assert found == named or (2 * found >= num_vertices and found <= named)


@pytest.mark.parametrize("name", ["symmetrize", "simplify", "renumber"])
def test_switches_are_bools(name):
    with pytest.raises(UnsupportedTypeError, match=f"{name} must be True or False"):
        atos.Graph.load("/nowhere.txt", **{name: "yes"})
