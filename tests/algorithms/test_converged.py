"""Converged results pass their verifier: every algorithm with a tolerance, at numbers of any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import atos_py as atos
from atos_py.errors import InvalidArgumentError

FLOATS = st.sampled_from([np.float32, np.float64])
TOLERANCES = st.sampled_from([1e-14, 1e-12, 1e-9, 1e-7, 1e-6, 1e-5, 1e-3])
SIZES = st.sampled_from(
    [0.0, 5e-324, 1e-310, 1e-280, 1e-60, 1e-39, 1e-30, 1e-8, 1.0, 1.0, 3.0, 1e8, 1e30, 1e39, 1e290, 1.7e308]
)
EXAMPLES = settings(deadline=None, max_examples=20)


def expect(error: InvalidArgumentError, *words: str) -> None:
    """Raise unless the message has one of these words."""
    assert any(word in str(error) for word in words), error


@st.composite
def undirected(draw: Any) -> atos.Graph:
    """Return a small graph that is not empty, maybe with a hub, without weights."""
    n = draw(st.integers(1, 9))
    edges = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=14))
    if draw(st.booleans()):
        edges += [(0, v) for v in range(n, n + 70)]  # so many that the threads of a worker share them
        n += 70
    ends = np.array(edges, np.int64).reshape(-1, 2).T
    options = {"symmetrize": True, "deduplicate": True, "remove_loops": True}
    return atos.Graph.from_edges(*ends, num_vertices=n, device="cpu", **options)


def weights_of(draw: Any, graph: atos.Graph) -> np.ndarray:
    """Return weights of edges that are the same both ways, of a few sizes."""
    sizes = draw(st.lists(SIZES, min_size=1, max_size=4))
    rows, columns = np.repeat(np.arange(graph.num_vertices), graph.degrees()), graph.indices.to_numpy()
    return np.array(sizes)[(rows + columns) * 7 % 5 % len(sizes)]


@given(undirected(), FLOATS, TOLERANCES, st.sampled_from([0.01, 0.5, 0.9, 0.999]), st.booleans(), st.booleans(), st.data())
@EXAMPLES
def test_label_spreading(graph, dtype, tolerance, alpha, change_driven, weighted, data):
    if weighted:
        weights = weights_of(data.draw, graph)
        graph = atos.Graph.from_csr(graph.indptr.to_numpy(), graph.indices.to_numpy(), weights, device="cpu")
    labels = np.resize([0, -1, 5, -1, -1], graph.num_vertices)
    options = {"alpha": alpha, "tolerance": tolerance, "dtype": dtype, "change_driven": change_driven}
    try:
        found = atos.label_spreading(graph, labels, max_iterations=300, **options)
    except InvalidArgumentError as error:
        expect(error, "from 1e-280 to 1e+280")
        return
    assert found.converged == (found.error_bound <= tolerance)
    if np.isfinite(found.error_bound):
        atos.verify_label_spreading(graph, labels, found.spread, alpha=alpha, tolerance=found.error_bound)


@given(undirected(), FLOATS, TOLERANCES, st.sampled_from([0.01, 0.5, 0.999]), st.booleans(), st.booleans(), SIZES, st.data())
@EXAMPLES
def test_manifold_ranking(graph, dtype, tolerance, alpha, change_driven, together, size, data):
    weights = np.stack([weights_of(data.draw, graph) for _ in range(2)], axis=1)
    start = (np.resize([1.0, 0.0, 0.3], (graph.num_vertices, 2)) * min(size, float(np.finfo(dtype).max) / 4)).astype(dtype)
    alphas = [alpha / 3, alpha / 2] if together else alpha
    rank, verify = (
        (atos.multimodal, atos.verify_multimodal) if together else (atos.manifold_ranking, atos.verify_manifold_ranking)
    )
    try:
        found = rank(graph, weights, start, alpha=alphas, tolerance=tolerance, change_driven=change_driven, max_iterations=300)
    except InvalidArgumentError as error:
        expect(error, "from 1e-280 to 1e+280")
        return
    assert found.converged == (found.error_bound <= tolerance)
    if np.isfinite(found.error_bound):
        verify(graph, weights, start, found.x, alpha=alphas, tolerance=found.error_bound)


POTENTIALS = st.sampled_from([0.0, 0.3, -1.0, 2.5, -50.0, 65.0, -120.0, 700.0, -1e4, 1e6 + 0.37, -1e12, 1e30])


@given(undirected(), FLOATS, TOLERANCES, st.sampled_from([2, 3, 4]), st.sampled_from([0.0, 0.7]), st.booleans(), st.data())
@EXAMPLES
def test_belief_propagation(graph, dtype, tolerance, k, damping, by_change, data):
    of_vertices = data.draw(st.lists(POTENTIALS, min_size=1, max_size=7))
    unary = np.resize(of_vertices, (graph.num_vertices, k))
    pairwise = np.array(data.draw(st.lists(POTENTIALS, min_size=k * k, max_size=k * k))).reshape(k, k)
    pairwise = np.triu(pairwise) + np.triu(pairwise, 1).T
    schedule = "residual" if by_change else "synchronous"
    found = atos.belief_propagation(
        graph, unary, pairwise, schedule=schedule, damping=damping, tolerance=tolerance, dtype=dtype, max_sweeps=60
    )
    assert found.converged == (found.residual <= tolerance)
    assert np.isfinite(found.marginals.to_numpy()).all()
    if np.isfinite(found.residual):
        limit = max(found.residual, 2 * float(np.finfo(dtype).eps))
        atos.verify_belief_propagation(graph, unary, pairwise, found.messages, found.marginals, tolerance=limit)


@given(
    undirected(),
    FLOATS,
    TOLERANCES,
    st.sampled_from([0.0, 0.5, 0.85, 0.9999]),
    st.sampled_from([None, "sweep", "gather", "push"]),
    st.sampled_from(["plain", "weighted", "personalized", "dangling", "start"]),
    st.data(),
)
@EXAMPLES
def test_pagerank(graph, dtype, tolerance, damping, find, form, data):
    if data.draw(st.booleans()):  # otherwise undirected
        graph = atos.Graph.from_csr(graph.indptr.to_numpy(), graph.indices.to_numpy() // 2, device="cpu")
    options: dict[str, Any] = {"damping": damping}
    vector = np.resize(data.draw(st.lists(SIZES, min_size=1, max_size=4)), graph.num_vertices)
    start = None
    if form == "weighted":
        graph = atos.Graph.from_csr(
            graph.indptr.to_numpy(), graph.indices.to_numpy(), weights_of(data.draw, graph), device="cpu"
        )
        options["weighted"] = True
    elif form == "personalized":
        options["personalization"] = vector
    elif form == "dangling":
        options["dangling"] = vector
    elif form == "start":
        with np.errstate(over="ignore"):
            start = vector.astype(data.draw(FLOATS))
    try:
        found = atos.pagerank(graph, tolerance=tolerance, dtype=dtype, find=find, start=start, **options)
    except InvalidArgumentError as error:
        reasons = ["tolerance must be more than", "the tolerance is too fine"]
        if form == "weighted":
            reasons += ["from 1e-280 to 1e+280", "find='gather' does not look at weights"]
        if (start is not None and not 0 < start.sum() < np.inf) or not vector.any():
            reasons.append("with a positive sum")
        expect(error, *reasons)
        return
    assert found.error_bound <= tolerance
    atos.verify_pagerank(graph, found, found.error_bound, **options)


@given(undirected(), st.integers(0, 40), st.integers(0, 2**64 - 1))
@EXAMPLES
def test_label_propagation(graph, max_steps, seed):
    found = atos.label_propagation(graph, max_steps=max_steps, seed=seed)
    if found.converged:
        atos.verify_label_propagation(graph, found.label)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), SIZES, st.booleans()), min_size=1, max_size=12),
    st.sampled_from([1, 2, 5]),
    st.sampled_from([1e-30, 1e-8, 0.1, 1e8, 1e30]),
    st.booleans(),
)
@EXAMPLES
def test_als(ratings, k, regularization, implicit):
    users, items, values, negative = map(np.array, zip(*ratings, strict=True))
    values = np.where(negative & ~np.bool_(implicit), -values, values)
    options = {"regularization": regularization, "implicit": implicit}
    try:
        found = atos.als((users, items, values), k, iterations=3, device="cpu", **options)
    except InvalidArgumentError as error:
        expect(error, "finite numbers of float32", "singular in float32", "numbers beyond float32")
        return
    assert np.isfinite(found.items.to_numpy()).all()
    atos.verify_als((users, items, values), found.users, found.items, **options)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_hub_of_many_messages(dtype):
    """Potentials whose sum has fewer digits in float32 than the messages have."""
    rng, n = np.random.default_rng(0), 20_001
    graph = atos.Graph.from_edges(np.zeros(n - 1, int), np.arange(1, n), symmetrize=True, device="cpu")
    unary, pairwise = rng.normal(size=(n, 3)), np.array([[1.0, 0.2, 0.3], [0.2, 0.7, 0.0], [0.3, 0.0, 0.9]])
    for schedule in ("synchronous", "residual"):
        found = atos.belief_propagation(graph, unary, pairwise, dtype=dtype, schedule=schedule)
        assert found.converged
        atos.verify_belief_propagation(graph, unary, pairwise, found.messages, found.marginals, tolerance=1e-5)
