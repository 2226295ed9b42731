"""A graph whose edges change: after any edits it has the edges that a list of them would have, and its followers agree."""

from __future__ import annotations

import gc
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import atos_py as atos
from atos_py.errors import InvalidArgumentError, TaskCompileError, UnsupportedTypeError
from atos_py.models.dynamic.row_deletion import DELETION
from atos_py.models.dynamic.row_edits import insertion
from atos_py.models.dynamic.row_keys import sort_keys

DEVICES = [
    pytest.param("cpu"),
    pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(len(atos.devices()) < 2, reason="there is no GPU")]),
]


class Model:
    """The edges as a list, with everything found from scratch."""

    def __init__(self, graph: atos.DynamicGraph, undirected: bool) -> None:
        self.graph, self.undirected = graph, undirected
        self.edges: list[tuple[int, int, float]] = []

    def insert(self, sources: Any, targets: Any, weights: Any) -> None:
        self.graph.insert_edges(sources, targets, weights)
        values = [1] * len(sources) if weights is None else weights
        for u, v, weight in zip(sources, targets, values, strict=True):
            self.edges.append((int(u), int(v), float(weight)))
            if self.undirected and u != v:
                self.edges.append((int(v), int(u), float(weight)))

    def delete(self, sources: Any, targets: Any) -> None:
        gone = {(int(u), int(v)) for u, v in zip(sources, targets, strict=True)}
        gone |= {(v, u) for u, v in gone} if self.undirected else set()
        before = len(self.edges)
        self.edges = [edge for edge in self.edges if edge[:2] not in gone]
        assert self.graph.delete_edges(sources, targets) == before - len(self.edges)

    def check(self) -> atos.Graph:
        graph = self.graph.to_graph()
        assert graph.num_edges == self.graph.num_edges == len(self.edges)
        sources = np.repeat(np.arange(graph.num_vertices), graph.degrees())
        values = np.ones(graph.num_edges) if graph.weights is None else np.asarray(graph.weights)
        assert Counter(zip(sources.tolist(), graph.indices[:].tolist(), values.tolist(), strict=True)) == Counter(self.edges)
        assert self.graph.degrees().tolist() == graph.degrees().tolist()
        return graph


@st.composite
def edits(draw):
    n = draw(st.integers(1, 40))
    vertex = st.integers(0, n - 1) if draw(st.booleans()) else st.integers(0, min(2, n - 1))
    batches = []
    for _ in range(draw(st.integers(1, 6))):
        pairs = draw(st.lists(st.tuples(vertex, st.integers(0, n - 1)), max_size=50))
        batches.append((draw(st.booleans()), pairs, draw(st.integers(0, 2**16))))
    return n, batches


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [None, np.int32])
@given(edits=edits(), undirected=st.booleans(), begins_with_edges=st.booleans())
@settings(deadline=None, max_examples=30)
def test_random_edits(device, dtype, edits, undirected, begins_with_edges):
    n, batches = edits
    if begins_with_edges:
        ring = np.arange(n), (np.arange(n) + 1) % n, None if dtype is None else np.full(n, 3, dtype)
        first = atos.Graph.from_edges(*ring, n, symmetrize=undirected, deduplicate=True, device=device)
        graph = atos.DynamicGraph(first, undirected=undirected)
        model = Model(graph, undirected)
        values = np.ones(first.num_edges) if first.weights is None else np.asarray(first.weights)
        sources = np.repeat(np.arange(n), first.degrees())
        model.edges = list(zip(sources.tolist(), first.indices[:].tolist(), values.tolist(), strict=True))
    else:
        graph = atos.DynamicGraph(n, undirected=undirected, weights=dtype, device=device)
        model = Model(graph, undirected)
    components, search = atos.DynamicComponents(graph), atos.DynamicBFS(graph, [0, n // 2])
    for inserts, pairs, seed in batches:
        sources, targets = np.array(pairs, np.int64).reshape(-1, 2).T
        if inserts:
            weights = None if dtype is None else np.random.default_rng(seed).integers(0, 9, len(pairs))
            model.insert(sources, targets, weights)
        else:
            model.delete(sources, targets)
        now = model.check()
        atos.verify_connected_components(now, components.label, components.num_components)
        atos.verify_bfs(now, [0, n // 2], search.depth)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["?", "u4", "i8", "u8", "f2", "f8"])
def test_weights_of_each_type(device, dtype):
    """Edits keep the bits of weights, of all types that graphs have: rows that move, and rows that shrink."""
    kind = np.dtype(dtype)
    ends = (0, 1) if kind.kind in "fb" else (np.iinfo(kind).min, np.iinfo(kind).max)
    weights = np.array([*ends, 1, 0] * 5, kind)
    graph = atos.DynamicGraph(21, undirected=True, weights=kind, device=device)
    graph.insert_edges([0] * 20, range(1, 21), weights)
    assert graph.to_graph().to_scipy().toarray()[0, 1:].tolist() == weights.tolist()
    graph.insert_edges([1], [2], weights[1:2])
    assert graph.delete_edges([0, 0], [1, 3]) == 4
    left = graph.to_graph().to_scipy().toarray()
    assert left[0].tolist() == left[:, 0].tolist() == [0, 0, weights[1], 0, *weights[3:].tolist()]
    assert left[1, 2] == left[2, 1] == weights[1]


@pytest.mark.parametrize("device", DEVICES)
def test_a_million_insertions_and_deletions(device):
    """As many edges again as the graph has, of which hubs get many; then most of them go."""
    before = atos.generate.rmat(14, 8, device=device)
    graph = atos.DynamicGraph(before, undirected=True)
    components, search = atos.DynamicComponents(graph), atos.DynamicBFS(graph, 0)
    more = atos.generate.rmat(14, 48, seed=7, device="cpu").to_scipy().tocoo()
    once = more.row < more.col
    sources, targets = more.row[once], more.col[once]
    assert 2 * sources.size > 1_000_000
    for part in np.array_split(np.arange(sources.size), 3):
        graph.insert_edges(sources[part], targets[part])
    assert graph.num_edges == before.num_edges + 2 * sources.size
    now = graph.to_graph()
    atos.verify_bfs(now, 0, search.depth)
    atos.verify_connected_components(now, components.label, components.num_components)
    expected = before.to_scipy().astype(np.int64) + more.astype(np.int64)
    assert (now.to_scipy().astype(np.int64) != expected).nnz == 0  # which adds up parallel edges
    graph.delete_edges(sources, targets)
    left = before.to_scipy().astype(np.int64)
    left = left - left.multiply(more.astype(bool))
    left.eliminate_zeros()
    now = graph.to_graph()
    assert (now.to_scipy().astype(np.int64) != left).nnz == 0
    assert graph.num_edges == left.sum()
    atos.verify_bfs(now, 0, search.depth)
    atos.verify_connected_components(now, components.label, components.num_components)


@pytest.mark.parametrize("device", DEVICES)
def test_a_row_grows_from_nothing_to_all(device):
    n = 3000
    graph = atos.DynamicGraph(n, device=device)
    for part in np.array_split(np.arange(1, n), 40):
        graph.insert_edges(np.zeros(part.size, np.uint32), part)
    assert graph.degrees()[0] == n - 1
    start = int(graph.rows.start[0])
    assert sorted(graph.rows.indices[start : start + n - 1].tolist()) == list(range(1, n))
    assert graph.delete_edges(np.zeros(n - 2, np.uint32), np.arange(2, n)) == n - 2
    assert graph.to_graph().indices[:].tolist() == [1]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("length", [3, 33, 2047, 2048, 5001])
@pytest.mark.parametrize("as_on_a_gpu", [False, True])
def test_a_deletion_keeps_the_order_of_a_row(device, length, as_on_a_gpu, monkeypatch):
    """Whether a thread deletes from it, a group or a whole worker."""
    if as_on_a_gpu:
        monkeypatch.setitem(DELETION, "cpu", DELETION["cuda"])
    targets = np.arange(length)[::-1]
    graph = atos.DynamicGraph(atos.Graph.from_edges(np.zeros(length, int), targets, weights=targets / 2, device=device))
    gone = np.random.default_rng(length).choice(length, length // 3, replace=False)
    assert graph.delete_edges(np.zeros(gone.size, int), gone) == gone.size
    left, now = targets[~np.isin(targets, gone)], graph.to_graph()
    assert now.indices[:].tolist() == left.tolist()
    assert now.weights[:].tolist() == (left / 2).tolist()


@pytest.mark.parametrize(
    ("n", "count"), [(1, 3), (2, 5), (1 << 10, 8192), (1000, 8193), ((1 << 20) + 1, 30000), (2**32 - 1, 30000)]
)
def test_keys_are_sorted(n, count):
    ends = np.random.default_rng(count).integers(0, n, (2, count), np.uint64)
    keys = atos.asarray(ends[0] << np.uint64(32) | ends[1], device="cpu")
    before = keys.to_numpy()
    sort_keys(keys, n, atos.Queue(16, device="cpu"))
    assert np.array_equal(keys.to_numpy(), np.sort(before))


@pytest.mark.parametrize("device", DEVICES)
def test_an_undirected_graph_is_known_to_be_symmetric(device, monkeypatch):
    """So nobody has to look at all edges after an edit."""
    graph = atos.DynamicGraph(atos.Graph.from_edges([0, 1, 2], [1, 2, 3], device=device).to_symmetric(), undirected=True)
    graph.insert_edges([0, 3], [3, 3])
    monkeypatch.setattr("atos_py.graph.symmetry.run_gather", None)
    now = graph.to_graph()
    assert now.is_symmetric()
    monkeypatch.undo()
    assert atos.Graph.from_csr(now.indptr, now.indices.to_numpy(), device=device).is_symmetric()


@pytest.mark.parametrize("device", DEVICES)
def test_tasks_walk_rows_and_find_edits(device):
    """A task pushes the edges that it finds into another queue; they are a batch after the launch."""

    @atos.task(workload=lambda v, rows, found: (rows.degree[v], rows.start[v]))
    def reverse(worker, v, i, first, rows, found):
        found.push((rows.indices[first + i], v))

    graph = atos.DynamicGraph(atos.generate.rmat(6, 4, device=device).simplify(deduplicate=True, remove_loops=True))
    found = atos.Queue(16, dtype=[("source", "u4"), ("target", "u4")], device=device)
    queue = atos.Queue(64, device=device)
    queue.push(np.arange(graph.num_vertices))
    queue.launch_cta(reverse, graph.rows, found)
    batch = found.peek()
    assert len(batch) == graph.num_edges
    graph.insert_edges(batch["source"], batch["target"])
    assert graph.to_graph().is_symmetric()
    assert graph.num_edges == 2 * len(batch)


def test_rows_are_read_only():
    @atos.task
    def lengthen(worker, v, rows):
        rows.degree[v] += 1

    graph = atos.DynamicGraph(atos.Graph.from_edges([0, 0, 1], [1, 2, 2], [1.0, 2.0, 3.0], device="cpu"))
    assert all(part.readonly for part in graph.rows)
    queue = atos.Queue(4, device="cpu")
    queue.push(0)
    with pytest.raises(TaskCompileError, match="read-only"):
        queue.launch_cta(lengthen, graph.rows)
    graph.insert_edges([2], [0], [4.0])  # edits still write
    assert graph.delete_edges([0], [1]) == 1
    assert graph.degrees().tolist() == [1, 1, 1]


def test_the_given_graph_and_earlier_ones_stay_as_they_are():
    given = atos.Graph.from_edges([0, 0, 1], [1, 2, 2], weights=[1.5, 2, 3], device="cpu")
    graph = atos.DynamicGraph(given)
    assert graph.to_graph() is given
    graph.insert_edges([2], [0], [7])
    second = graph.to_graph()
    assert second is graph.to_graph()
    graph.delete_edges([0, 2], [1, 0])
    assert (given.indices[:].tolist(), given.weights[:].tolist()) == ([1, 2, 2], [1.5, 2, 3])
    assert (second.indices[:].tolist(), second.weights[:].tolist()) == ([1, 2, 2, 0], [1.5, 2, 3, 7])
    assert graph.to_graph().indices[:].tolist() == [2, 2]


def test_edits_of_nothing():
    graph = atos.DynamicGraph(0, device="cpu")
    assert (atos.DynamicComponents(graph).num_components, graph.num_edges) == (0, 0)
    graph = atos.DynamicGraph(3, device="cpu")
    graph.insert_edges([], [])
    assert graph.delete_edges([], []) == 0
    assert graph.delete_edges([0], [1]) == 0
    assert graph.to_graph().num_edges == 0
    assert repr(graph) == "DynamicGraph(3 vertices, 0 directed edges, no weights, on cpu)"


def test_a_follower_is_told_as_long_as_it_lives():
    graph = atos.DynamicGraph(3, undirected=True, device="cpu")
    told: list[Any] = []

    class Follower:
        def _inserted(self, sources, targets):
            told.append(("inserted", sources[:].tolist(), targets[:].tolist()))

        def _deleted(self, sources, targets):
            told.append(("deleted", sources[:].tolist(), targets[:].tolist()))

    follower = Follower()
    graph._follow(follower)
    graph.insert_edges([0, 1], [1, 1])
    graph.delete_edges([1], [0])
    graph.delete_edges([1], [0])  # which is there no more
    assert told == [("inserted", [0, 1], [1, 1]), ("deleted", [1], [0])]
    del follower
    gc.collect()
    graph.insert_edges([0], [2])
    assert len(told) == 2


def test_an_insertion_without_memory_leaves_everything_as_it_was(monkeypatch):
    graph = atos.DynamicGraph(3, device="cpu")
    graph.insert_edges([0], [1])

    def no_memory(self):
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(atos.DynamicGraph, "_grow", no_memory)
        with pytest.raises(MemoryError):
            graph.insert_edges(np.zeros(5000, np.uint32), np.ones(5000, np.uint32))
    assert graph.to_graph().indices[:].tolist() == [1]
    graph.insert_edges([0, 2], [2, 1])
    assert graph.degrees().tolist() == [2, 0, 1]
    assert graph.to_graph().indices[:].tolist() == [1, 2, 1]


@pytest.mark.parametrize("device", DEVICES)
def test_an_insertion_that_is_interrupted_leaves_everything_as_it_was(device, monkeypatch):
    """Whether rows had room for its edges or not."""
    before = atos.generate.rmat(8, 4, device=device).to_symmetric()
    graph = atos.DynamicGraph(before, undirected=True)
    more = atos.generate.rmat(8, 16, seed=7, device="cpu").to_scipy().tocoo()
    run = atos.DynamicGraph._run

    def interrupted(self, tasks, *args, **options):
        run(self, tasks, *args, **options)
        if tasks is insertion:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(atos.DynamicGraph, "_run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            graph.insert_edges(more.row, more.col)
    graph._csr = None  # which is kept otherwise, since nothing has changed
    now = graph.to_graph()
    assert (now.num_edges, graph.num_edges) == (before.num_edges, before.num_edges)
    assert (now.indptr[:].tolist(), now.indices[:].tolist()) == (before.indptr[:].tolist(), before.indices[:].tolist())
    graph.insert_edges(more.row, more.col)
    assert graph.num_edges == before.num_edges + 2 * more.nnz - np.count_nonzero(more.row == more.col)
    assert graph.to_graph().num_edges == graph.num_edges


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: atos.DynamicGraph(-1), InvalidArgumentError, "number of vertices"),
        (lambda: atos.DynamicGraph(atos.Graph.from_edges([0], [1]), undirected=True), InvalidArgumentError, "to_symmetric"),
        (lambda: atos.DynamicGraph(atos.Graph.from_edges([0], [1]), weights=np.int32), InvalidArgumentError, "stay"),
        (lambda: atos.DynamicGraph(3).insert_edges([0, 3], [1, 1]), InvalidArgumentError, r"sources\[1\] is 3"),
        (lambda: atos.DynamicGraph(3).insert_edges([0], [-1]), InvalidArgumentError, r"targets\[0\] is -1"),
        (lambda: atos.DynamicGraph(3).insert_edges([0, 1], [1]), InvalidArgumentError, r"\(2,\), \(1,\)"),
        (lambda: atos.DynamicGraph(3).insert_edges([0.5], [1]), UnsupportedTypeError, "float64"),
        (lambda: atos.DynamicGraph(3).insert_edges([0], [1], [2]), InvalidArgumentError, "leave weights out"),
        (lambda: atos.DynamicGraph(3, weights="f4").insert_edges([0], [1]), InvalidArgumentError, "pass weights="),
        (lambda: atos.DynamicGraph(3, weights="f4").insert_edges([0], [1], [1, 2]), InvalidArgumentError, r"\(2,\)"),
        (lambda: atos.DynamicGraph(3, weights="f4").insert_edges([0], [1], [np.nan]), InvalidArgumentError, "NaN"),
        (lambda: atos.DynamicGraph(3, weights="f4").insert_edges([0], [1], [1e39]), InvalidArgumentError, r"1e\+39"),
        (lambda: atos.DynamicGraph(3, weights="i4").insert_edges([0], [1], [0.5]), InvalidArgumentError, "whole number"),
        (lambda: atos.DynamicGraph(3, weights="i4").insert_edges([0], [1], [2**40]), InvalidArgumentError, "int32"),
        (lambda: atos.DynamicGraph(3, weights="f4").insert_edges([0], [1], ["a"]), UnsupportedTypeError, "<U1|numbers"),
        (lambda: atos.DynamicGraph(3).delete_edges([0], [5]), InvalidArgumentError, r"targets\[0\] is 5"),
        (lambda: atos.DynamicComponents(atos.Graph.from_edges([0], [1])), UnsupportedTypeError, "DynamicGraph"),
        (lambda: atos.DynamicBFS(atos.Graph.from_edges([0], [1]), 0), UnsupportedTypeError, "DynamicGraph"),
        (lambda: atos.DynamicBFS(atos.DynamicGraph(3), 3), InvalidArgumentError, "3"),
        (lambda: atos.bfs(atos.DynamicGraph(3), 0), UnsupportedTypeError, r"to_graph\(\)"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(call, error, text):
    with pytest.raises(error, match=text):
        call()
