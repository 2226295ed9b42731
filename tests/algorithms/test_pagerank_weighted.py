"""PageRank along weights, and with a place where dangling vertices lead: the same as networkx's, and proved."""

from __future__ import annotations

import itertools
from typing import Any

import networkx as nx
import numpy as np
import pytest
from fake_arrays import array
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_limits import linked

import atos_py as atos
from atos_py.__main__ import main
from atos_py.algorithms.pagerank.residual_push import PushParams, weighted_push_marked, weighted_sweep
from atos_py.compile.arguments import describe
from atos_py.compile.spec import ProgramSpec
from atos_py.graph import strength as strengths
from atos_py.graph.strength import out_strength, sum_weights

VARIANTS = [
    {"find": find, "worker": worker, "persistent": persistent, "barrier": barrier}
    for find, worker, (persistent, barrier) in itertools.product(
        ("sweep", "push"), ("thread", "warp", "cta"), ((True, False), (False, True))
    )
]


def transitions(graph: atos.Graph, weighted: bool) -> np.ndarray:
    """Return the matrix of steps along edges; rows of dangling vertices are 0."""
    n = graph.num_vertices
    steps = np.zeros((n, n))
    weights = graph.weights.to_numpy() if weighted else np.ones(graph.num_edges)
    np.add.at(steps, (np.repeat(np.arange(n), graph.degrees()), graph.indices.to_numpy()), weights)
    sums = steps.sum(axis=1, keepdims=True)
    return np.divide(steps, sums, out=np.zeros_like(steps), where=sums > 0)


def exact(graph: atos.Graph, damping: float, weighted: bool, jumps: Any, sinks: Any) -> np.ndarray:
    """Solve the linear system of the ranks."""
    n = graph.num_vertices
    v = np.full(n, 1 / n) if jumps is None else np.asarray(jumps) / np.sum(jumps)
    u = v if sinks is None else np.asarray(sinks) / np.sum(sinks)
    steps = transitions(graph, weighted)
    steps[steps.sum(axis=1) == 0] = u
    return np.linalg.solve(np.eye(n) - damping * steps.T, (1 - damping) * v)


@st.composite
def graphs(draw: st.DrawFn) -> atos.Graph:
    """Small graphs with loops and parallel edges, and weights of which some are 0."""
    n = draw(st.integers(1, 10))
    vertex = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(vertex, vertex, st.integers(0, 4)), max_size=30))
    tails, heads, weights = np.array(edges, np.int64).reshape(-1, 3).T
    kind = draw(st.sampled_from(["u8", "f4"]))
    symmetric = draw(st.booleans())
    return atos.Graph.from_edges(tails, heads, weights.astype(kind), n, symmetrize=symmetric, device="cpu")


def distributions(n: int) -> st.SearchStrategy[list[int] | None]:
    return st.none() | st.lists(st.integers(0, 5), min_size=n, max_size=n).filter(any)


@given(graphs(), st.booleans(), st.sampled_from([0.0, 0.3, 0.85]), st.sampled_from(VARIANTS), st.data())
@settings(deadline=None, max_examples=60)
def test_error_is_at_most_the_tolerance(
    graph: atos.Graph, weighted: bool, damping: float, variant: dict[str, Any], data: st.DataObject
) -> None:
    jumps, sinks = data.draw(distributions(graph.num_vertices)), data.draw(distributions(graph.num_vertices))
    tolerance, dtype = data.draw(st.sampled_from([(1e-3, "f4"), (2e-5, "f4"), (1e-9, "f8")]))
    given = {"personalization": jumps, "weighted": weighted, "dangling": sinks}
    result = atos.pagerank(graph, damping, tolerance, dtype=dtype, **given, **variant)
    truth = exact(graph, damping, weighted, jumps, sinks)
    assert np.abs(result.rank.to_numpy().astype(np.float64) - truth).sum() <= result.error_bound <= tolerance
    assert atos.verify_pagerank(graph, result, tolerance, damping=damping, **given) <= tolerance


@given(graphs(), st.data())
@settings(deadline=None, max_examples=40)
def test_same_as_networkx(graph: atos.Graph, data: st.DataObject) -> None:
    n = graph.num_vertices
    theirs = nx.MultiDiGraph()
    theirs.add_nodes_from(range(n))
    columns = np.repeat(np.arange(n), graph.degrees()), graph.indices.to_numpy(), graph.weights.to_numpy()
    theirs.add_weighted_edges_from(zip(*(column.tolist() for column in columns), strict=True))
    jumps, sinks = data.draw(distributions(n)), data.draw(distributions(n))
    by_node = [None if given is None else dict(enumerate(given)) for given in (jumps, sinks)]
    expected = nx.pagerank(theirs, 0.85, by_node[0], dangling=by_node[1], max_iter=1000, tol=1e-12)
    result = atos.pagerank(graph, tolerance=1e-9, dtype="f8", weighted=True, personalization=jumps, dangling=sinks)
    assert np.abs(result.rank.to_numpy() - [expected[v] for v in range(n)]).sum() <= 2e-9


def test_large_graphs(device: atos.Device, worker: str) -> None:
    graph = atos.generate.uniform(3000, 9000, directed=True, device=device)
    graph = graph.with_weights(atos.generate.random_weights(graph, 1, 255))
    sinks = np.arange(3000) % 7
    result = atos.pagerank(graph, tolerance=1e-5, weighted=True, dangling=sinks, worker=worker)
    assert atos.verify_pagerank(graph, result, 1e-5, weighted=True, dangling=sinks) <= 1e-5
    unlike = atos.pagerank(graph, tolerance=1e-5)
    for options in ({}, {"weighted": True}, {"dangling": sinks}):
        with pytest.raises(atos.VerificationError, match="the error may be"):
            atos.verify_pagerank(graph, result, 1e-5, **options)
        if options:
            with pytest.raises(atos.VerificationError, match="the error may be"):
                atos.verify_pagerank(graph, unlike, 1e-5, **options)


def test_a_hub_and_weights_of_any_size(device: atos.Device) -> None:
    n = 6000
    heads = np.arange(1, n)
    scale = 10.0 ** np.random.default_rng(0).integers(-200, 200, n - 1)
    weights = np.concatenate([scale / scale.max(), scale])
    graph = atos.Graph.from_edges(np.append(np.zeros(n - 1, int), heads), np.append(heads, heads * 0), weights, device=device)
    result = atos.pagerank(graph, tolerance=1e-5, weighted=True)
    assert atos.verify_pagerank(graph, result, 1e-5, weighted=True) <= 1e-5


def test_without_weights_all_edges_weigh_the_same() -> None:
    graph = atos.generate.rmat(7, device="cpu")
    one = atos.pagerank(graph, weighted=True, find="sweep")
    atos.verify_pagerank(graph, one, 1e-4)
    equal = graph.with_weights(np.full(graph.num_edges, 3))
    atos.verify_pagerank(graph, atos.pagerank(equal, weighted=True), 1e-4)


def test_no_dangling_vertex_is_no_second_ranking() -> None:
    graph = atos.Graph.from_edges([0, 1, 2, 0], [1, 2, 0, 2], device="cpu")
    once = atos.pagerank(graph, find="sweep")
    assert atos.pagerank(graph, find="sweep", dangling=[1, 0, 0]).stats.tasks_run < 1.5 * once.stats.tasks_run


def test_strengths_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = atos.Graph.from_edges([0, 0, 2], [1, 2, 2], [0.5, 2.0, 0.0], device="cpu")
    found = out_strength(graph)
    assert found[:].tolist() == [2.5, 0, 0]
    monkeypatch.setattr(strengths, "run_gather", None)
    assert out_strength(graph) is found


@pytest.mark.parametrize("weights", [[1e-310], [1e-281, 1e-282], [1.7e308, 1.7e308], [1e281]])
def test_sums_near_the_ends_of_float64_are_told(device: atos.Device, weights: list[float]) -> None:
    graph = atos.Graph.from_edges([0] * len(weights), range(1, len(weights) + 1), weights, device=device)
    with pytest.raises(
        atos.InvalidArgumentError, match=r"the weights of the edges of vertex 0 have the sum .*, so divide them all"
    ):
        atos.pagerank(graph, weighted=True)
    scaled = atos.Graph.from_edges(
        [0] * len(weights), range(1, len(weights) + 1), np.array(weights) / max(weights), device=device
    )
    atos.verify_pagerank(scaled, atos.pagerank(scaled, weighted=True), weighted=True)


@pytest.mark.parametrize("large", [5e-324, 1e-300, 1.7e308])
def test_personalization_in_any_scale(device: atos.Device, large: float) -> None:
    graph = atos.Graph.from_edges([0, 1, 2], [1, 2, 0], device=device)
    found, expected = (atos.pagerank(graph, personalization=p).rank.to_numpy() for p in ([large, large, 0], [1, 1, 0]))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("weight", [-1.0, np.inf, -np.inf])
def test_refused(device: atos.Device, weight: float) -> None:
    graph = atos.Graph.from_edges([0, 1, 1], [1, 0, 1], [1.0, weight, 1.0], device=device)
    with pytest.raises(
        atos.InvalidArgumentError, match=f"must be finite and not negative, and that of the edge from 1 to 0 is {weight}"
    ):
        atos.pagerank(graph, weighted=True)
    assert atos.pagerank(graph).rank.size == 2
    for sinks in ([1.0], [-1.0, 2.0], [0.0, 0.0]):
        with pytest.raises(atos.InvalidArgumentError, match="dangling must h"):
            atos.pagerank(graph, dangling=sinks)
    with pytest.raises(atos.InvalidArgumentError, match="find='gather' does not look at weights"):
        atos.pagerank(graph, weighted=True, find="gather")
    with pytest.raises(atos.InvalidArgumentError, match=r"weights must not be negative \(weights\[1\] is -1.0\)"):
        atos.verify_pagerank(graph.with_weights([1.0, -1.0, 1.0]), [0.5, 0.5], weighted=True)


def test_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pagerank", "rmat:7@1-9", "--weighted", "--device", "cpu"]) == 0
    assert "error" in capsys.readouterr().out


@pytest.mark.part("programs")
def test_kernels_spill_nothing() -> None:
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    link = pytest.importorskip("atos_py.compile.linker")
    if not any(link.CORE_DIR.glob("core_*.fatbin")):
        pytest.skip("the core was built without GPU support")
    rows = array("i4", readonly=True), array("u4", readonly=True)
    weighted = array("i4", readonly=True), array("f8")
    number = np.float32(0.5)
    values = array("f4"), array("f4"), array("i4"), PushParams(number, number, number, False), *weighted
    tasks = {
        weighted_sweep: (*rows, 16, *rows, *values[:2], None, *values[3:]),
        weighted_push_marked: (*rows, *rows, *values),
        sum_weights: (128, 16, *rows, array("f8"), *weighted),
    }
    for task, arguments in tasks.items():
        found = linked(ProgramSpec(task, None, tuple(map(describe, arguments)), np.dtype("u4")))
        assert (found.spill_bytes, found.stack_bytes) == (0, 0)
