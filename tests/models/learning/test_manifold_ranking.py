"""Manifold and multimodal ranking against their closed forms, and label propagation against its formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import atos_py as atos
from atos_py import features
from atos_py.errors import InvalidArgumentError, VerificationError


def problem(device: atos.Device, count: int) -> tuple[atos.Graph, np.ndarray, np.ndarray, np.ndarray]:
    """Return a directed graph, weights of its edges, some of them 0, a start, and dense matrices whose rows have sum 1 or 0."""
    rng = np.random.default_rng(0)
    n = 200
    graph = atos.Graph.from_edges(*rng.integers(0, n - 3, (2, 2000)), num_vertices=n, deduplicate=True, device=device)
    weights = rng.random((graph.num_edges, count)) * (rng.random((graph.num_edges, count)) < 0.8)
    start = (rng.random((n, 3)) < 0.05).astype(float)
    dense = np.zeros((count, n, n))
    sources = np.repeat(np.arange(n), np.asarray(graph.degrees()))
    dense[:, sources, graph.indices.to_numpy()] = weights.T
    sums = dense.sum(2, keepdims=True)
    return graph, weights, start, dense / np.where(sums > 0, sums, 1)


def test_ranking_of_features(device):
    graph, weights, start, dense = problem(device, 3)
    found = atos.manifold_ranking(graph, weights, start, alpha=0.8, tolerance=1e-7, change_driven=True)
    exact = np.stack([np.linalg.solve(np.eye(200) - 0.8 * dense[f], 0.2 * start[:, f]) for f in range(3)], axis=1)
    assert found.converged
    assert abs(found.x.to_numpy() - exact).max() <= found.error_bound * 1.01
    atos.verify_manifold_ranking(graph, weights, start, found.x, alpha=0.8, tolerance=2e-7)
    exact[7, 1] += 1e-3
    with pytest.raises(VerificationError, match="from the fixed point"):
        atos.verify_manifold_ranking(graph, weights, start, exact, alpha=0.8)


def test_ranking_by_modalities(device):
    graph, weights, start, dense = problem(device, 2)
    alpha = [0.5, 0.3]
    found = atos.multimodal(graph, weights, start, alpha=alpha, tolerance=1e-7)
    exact = np.linalg.solve(np.eye(200) - 0.5 * dense[0] - 0.3 * dense[1], 0.2 * start)
    assert found.converged
    assert abs(found.x.to_numpy() - exact).max() <= found.error_bound * 1.01
    atos.verify_multimodal(graph, weights, start, found.x, alpha=alpha, tolerance=2e-7)
    exact[7, 1] = np.nan
    with pytest.raises(VerificationError, match="from the fixed point"):
        atos.verify_multimodal(graph, weights, start, exact, alpha=alpha)


@pytest.mark.parametrize("change_driven", [True, False])
def test_propagation_of_labels(device, change_driven):
    """Equals the formula, computed until little changes; a vertex that no label reaches stays as it is."""
    graph, _, _, dense = problem(device, 1)
    rng = np.random.default_rng(1)
    start = rng.random((200, 4)) * (rng.random((200, 1)) < 0.9)
    found = features.propagate_labels(graph, start, tolerance=1e-9, change_driven=change_driven)
    checked = features.propagate_labels(graph, start, tolerance=1e-9, change_driven=change_driven, debug=True)
    assert np.allclose(checked.x.to_numpy(), found.x.to_numpy())
    adjacency, x = (dense[0] > 0).astype(float), start.copy()
    adjacency[np.repeat(np.arange(200), np.asarray(graph.degrees())), graph.indices.to_numpy()] = 1

    def normalize(rows: np.ndarray) -> np.ndarray:
        sums = rows.sum(1, keepdims=True)
        return rows / np.where(sums == 0, 1, sums)

    for _ in range(2000):
        received = adjacency @ x
        mixed = np.where(received.sum(1, keepdims=True) > 0, 0.5 * normalize(received) + 0.5 * x, x)
        x = normalize(mixed)
    assert found.converged
    np.testing.assert_allclose(found.x.to_numpy(), x, atol=1e-6)
    np.testing.assert_allclose(found.x.to_numpy()[198:], normalize(start)[198:], atol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": np.ones((3, 2))}, r"weights must be of shape \(2, 2\), one of each edge for each feature"),
        ({"weights": -np.ones((2, 2))}, "weights are similarities: finite, and not negative"),
        ({"start": np.zeros((2, 2))}, "start must have a row for each of 3 vertices"),
        ({"start": np.zeros(3)}, "start must have two dimensions"),
        ({"alpha": 1.0}, r"alpha must be between 0 and 1 \(got 1.0\)"),
    ],
)
def test_what_is_refused(change, message):
    options: dict[str, Any] = {"weights": np.ones((2, 2)), "start": np.zeros((3, 2)), "alpha": 0.5, **change}
    graph = atos.Graph.from_edges([0, 1], [1, 2], device="cpu")
    with pytest.raises(InvalidArgumentError, match=message):
        atos.manifold_ranking(graph, options["weights"], options["start"], alpha=options["alpha"])


def test_shares_above_one_are_refused():
    graph = atos.Graph.from_edges([0, 1], [1, 2], device="cpu")
    with pytest.raises(InvalidArgumentError, match="whose sum is less than 1"):
        atos.multimodal(graph, np.ones((2, 2)), np.zeros((3, 2)), alpha=[0.5, 0.5])
    with pytest.raises(InvalidArgumentError, match=r"alpha must be from 0 to 1 \(got 2\)"):
        features.propagate_labels(graph, np.zeros((3, 2)), alpha=2)
