"""Label spreading against its closed form."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import atos_py as atos
from atos_py.errors import InvalidArgumentError, UnsupportedTypeError, VerificationError


def planted(device: atos.Device, weighted: bool) -> tuple[atos.Graph, np.ndarray, np.ndarray, sp.csr_matrix]:
    """Return a graph with four planted classes, loops and isolated vertices, labels of a few vertices, and its matrix."""
    rng = np.random.default_rng(0)
    n = 400
    truth = rng.integers(0, 4, n)
    ends = rng.integers(0, n - 5, (2, 6000))
    same = truth[ends[0]] == truth[ends[1]]
    ends = ends[:, same | (rng.random(6000) < 0.05)]
    matrix = sp.coo_matrix((rng.random(ends.shape[1]) + 0.1, ends), shape=(n, n)).tocsr()
    matrix = (matrix + matrix.T).tocsr()
    if not weighted:
        matrix.data[:] = 1
    matrix.sort_indices()
    labels = np.full(n, -1)
    labels[::13] = truth[::13] * 10 + 5
    graph = atos.Graph.from_csr(matrix.indptr, matrix.indices, matrix.data.copy() if weighted else None, device=device)
    return graph, truth, labels, matrix


def closed_form(matrix: sp.csr_matrix, labels: np.ndarray, alpha: float) -> np.ndarray:
    dense = matrix.toarray()
    np.fill_diagonal(dense, 0)
    scale = np.maximum(dense.sum(1), 1e-30) ** -0.5
    seeds = (labels[:, None] == np.unique(labels[labels != -1])).astype(float)
    return (1 - alpha) * np.linalg.solve(np.eye(len(dense)) - alpha * scale[:, None] * dense * scale, seeds)


@pytest.mark.parametrize(
    ("weighted", "alpha", "dtype", "tolerance", "change_driven"),
    [(True, 0.9, np.float32, 1e-3, True), (True, 0.9, np.float32, 1e-3, False), (False, 0.2, np.float32, 1e-4, True)],
)
def test_equals_the_closed_form(device, weighted, alpha, dtype, tolerance, change_driven):
    graph, truth, labels, matrix = planted(device, weighted)
    result = atos.label_spreading(graph, labels, alpha=alpha, tolerance=tolerance, dtype=dtype, change_driven=change_driven)
    exact = closed_form(matrix, labels, alpha)
    spread = result.spread.to_numpy()
    assert result.converged
    assert np.linalg.norm(spread - exact) <= result.error_bound * 1.01 + 1e-6 * (dtype == np.float32)
    atos.verify_label_spreading(graph, labels, result.spread, alpha=alpha, tolerance=2 * tolerance)
    sums = exact.sum(1, keepdims=True)
    clear = np.sort(exact, axis=1)[:, -1] - np.sort(exact, axis=1)[:, -2] > 4 * tolerance
    label = result.label.to_numpy()
    assert (label[clear] == np.array([5, 15, 25, 35])[exact.argmax(1)][clear]).all()
    assert (label == truth * 10 + 5)[:395].mean() > 0.7
    reached = result.distribution.to_numpy().sum(1) > 0
    np.testing.assert_allclose(result.distribution.to_numpy().sum(1)[reached], 1, rtol=1e-5)
    large = (sums > 100 * tolerance).ravel()
    np.testing.assert_allclose(result.distribution.to_numpy()[large], exact[large] / sums[large], atol=0.05)


def test_what_no_label_reaches_has_none(device):
    graph = atos.Graph.from_edges([0, 2], [1, 3], num_vertices=8, symmetrize=True, device=device)
    result = atos.label_spreading(graph, [3, -1, -1, -1, -1, 4, 6, 8])
    assert result.label.to_numpy().tolist() == [3, 3, -1, -1, -1, 4, 6, 8]
    assert result.distribution.to_numpy()[:5].tolist() == [[1, 0, 0, 0]] * 2 + [[0] * 4] * 3


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"labels": [0, 1]}, InvalidArgumentError, "labels must be 3 integers"),
        ({"labels": [0.5, 1, 1]}, InvalidArgumentError, "labels must be 3 integers"),
        ({"labels": [-1, -1, -1]}, InvalidArgumentError, r"1 to 128 classes beside -1 \(got 0\)"),
        ({"alpha": 1}, InvalidArgumentError, r"alpha must be between 0 and 1 \(got 1\)"),
        ({"dtype": np.int32}, UnsupportedTypeError, "dtype must be float32 or float64, not int32"),
        ({"weights": [1.0, 2.0, 1.0, 1.0]}, InvalidArgumentError, "weights must be the same both ways"),
        ({"weights": [-1.0, -1.0, 1.0, 1.0]}, InvalidArgumentError, "weights must be finite and not negative"),
    ],
)
def test_what_is_refused(change, error, message):
    graph = atos.Graph.from_edges([0, 1, 1, 2], [1, 0, 2, 1], change.pop("weights", None), device="cpu")
    with pytest.raises(error, match=message):
        atos.label_spreading(graph, **{"labels": [0, -1, 1], **change})


def test_a_wrong_result_is_found():
    graph, _, labels, matrix = planted(atos.device("cpu"), True)
    exact = closed_form(matrix, labels, 0.9)
    atos.verify_label_spreading(graph, labels, exact, alpha=0.9, tolerance=1e-9)
    exact[17, 2] += 1e-3
    with pytest.raises(VerificationError, match="more than the tolerance"):
        atos.verify_label_spreading(graph, labels, exact, alpha=0.9, tolerance=1e-4)
