"""Products of a sparse and a dense matrix, against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import atos_py as atos
from atos_py.errors import InvalidArgumentError, UnsupportedTypeError, VerificationError
from atos_py.models.learning import spmm
from atos_py.models.learning.feature_gather import feature_gather
from atos_py.models.learning.row_lengths import rows_of
from atos_py.models.learning.spmm import _neighbor4, _store4, _weighted_neighbor4


def uneven(weighted: bool, device: atos.Device) -> tuple[atos.Graph, sp.csr_matrix]:
    """Return a matrix with rows of every kind: empty, short, those of a warp and of a whole block; and SciPy's."""
    rng = np.random.default_rng(0)
    degrees = np.concatenate(
        [rng.integers(0, 9, 700), [31, 32, 33, 34, 500, 2047, 2048, 2049, 5000, 0], rng.integers(0, 80, 90)]
    )
    n = degrees.size
    indptr = np.concatenate([[0], np.cumsum(degrees)])
    indices = rng.integers(0, n, indptr[-1])  # also parallel edges and loops
    weights = rng.normal(size=indptr[-1]).astype(np.float32) if weighted else None
    graph = atos.Graph.from_csr(indptr, indices, weights, device=device)
    values = np.ones(indptr[-1]) if weights is None else weights.copy()  # which SciPy may reorder
    return graph, sp.csr_matrix((values, indices.copy(), indptr), shape=(n, n))


@pytest.mark.parametrize(
    ("k", "weighted", "dtype"),
    [
        (1, True, np.float32),
        (4, True, np.float32),
        (5, False, np.float64),
        (16, False, np.float32),
        (33, True, np.float32),
        (64, True, np.float32),
        (130, False, np.float32),
        (132, True, np.float32),
    ],
)
def test_products(device, k, weighted, dtype):
    graph, matrix = uneven(weighted, device)
    x = np.random.default_rng(k).normal(size=(graph.num_vertices, k)).astype(dtype)
    y = atos.spmm(graph, x)
    assert isinstance(y, np.ndarray)
    assert (y.dtype, y.shape) == (dtype, x.shape)
    size = abs(matrix).astype(np.float64) @ abs(x).astype(np.float64)
    assert (abs(y - matrix.astype(np.float64) @ x.astype(np.float64)) <= 2e-6 * size + 1e-30).all()
    atos.verify_spmm(graph, x, y)
    again = atos.spmm(graph, x)
    assert again.tobytes() == y.tobytes()


@pytest.mark.parametrize(
    ("rows", "make"),
    [
        ("short", lambda device: atos.generate.road(40, 0.7, device=device)),
        ("mixed", lambda device: atos.generate.barabasi_albert(2000, 2, device=device)),
        ("dense", lambda device: atos.generate.rmat(10, 16, device=device)),
    ],
)
@pytest.mark.parametrize("k", [1, 4, 16, 64, 128])
def test_rows_of_any_length(rows, make, k, device):
    graph = make(device)
    assert rows_of(graph) == (rows if device.kind == "cuda" else "mixed")
    weighted = graph.with_weights(atos.generate.random_weights(graph, -1.0, 1.0))
    x = np.random.default_rng(k).normal(size=(graph.num_vertices, k)).astype(np.float32)
    atos.verify_spmm(weighted, x, atos.spmm(weighted, x))


def test_an_edge_at_a_time(device, monkeypatch):
    """Without pipelining the sums are the same, up to rounding."""
    graph, _ = uneven(True, device)
    x = np.random.default_rng(0).normal(size=(graph.num_vertices, 4)).astype(np.float32)
    made = []

    def one_by_one(*args: Any, **more: Any) -> atos.Task:
        made.append(feature_gather(*args, pipelined=False, **more))
        return made[-1]

    monkeypatch.setattr("atos_py.models.learning.spmm.feature_gather", one_by_one)
    atos.verify_spmm(graph, x, atos.spmm(graph, x))
    assert len(made) == 1


@pytest.mark.parametrize(("k", "weighted"), [(4, True), (20, False), (128, True)])
def test_terms_of_four_features(device, k, weighted, monkeypatch):
    """As GPUs load them; on CPUs too if they are told to, with the same functions."""
    monkeypatch.setattr(
        spmm, "_functions", lambda *args: (4, *((_weighted_neighbor4,) if weighted else (_neighbor4,)), _store4)
    )
    graph, _ = uneven(weighted, device)
    x = np.random.default_rng(k).normal(size=(graph.num_vertices, k)).astype(np.float32)
    atos.verify_spmm(graph, x, atos.spmm(graph, x))


@pytest.mark.parametrize("offset", [0, 1, 4])
def test_rows_anywhere_in_memory(device, offset):
    """What does not begin at a multiple of 16 bytes is read number by number."""
    graph, _ = uneven(True, device)
    values = atos.asarray(
        np.random.default_rng(0).normal(size=graph.num_vertices * 8 + offset).astype(np.float32), device=device
    )
    x = atos.Array(values.pointer + 4 * offset, (graph.num_vertices, 8), values.dtype, device, readonly=True, owner=values)
    atos.verify_spmm(graph, x, atos.spmm(graph, x))


def test_arrays_and_vectors(device):
    graph, matrix = uneven(True, device)
    x = atos.asarray(np.arange(graph.num_vertices, dtype=np.float32), device=device)
    y = atos.spmm(graph, x)
    assert isinstance(y, atos.Array)
    assert y.device == device
    np.testing.assert_allclose(y.to_numpy(), matrix @ x.to_numpy(), rtol=1e-3, atol=1e-1)
    atos.verify_spmm(graph, x, y)


def test_no_vertices_and_no_columns(device):
    empty = atos.Graph.from_csr([0], [], device=device)
    assert atos.spmm(empty, np.zeros((0, 3))).shape == (0, 3)
    graph, _ = uneven(False, device)
    assert atos.spmm(graph, np.zeros((graph.num_vertices, 0))).shape == (graph.num_vertices, 0)


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (np.zeros((2, 3)), InvalidArgumentError, r"x must have a row for each of 3 vertices.*\(2, 3\)"),
        (np.zeros((3, 1, 1)), InvalidArgumentError, r"one or two dimensions"),
        (np.zeros((3, 2), np.int32), UnsupportedTypeError, "x must be of float32 or float64, not int32"),
    ],
)
def test_what_is_refused(x: Any, error, message):
    with pytest.raises(error, match=message):
        atos.spmm(atos.Graph.from_edges([0], [1], num_vertices=3, device="cpu"), x)


@pytest.mark.parametrize("change", [1e-3, np.nan, -1e-3])
def test_a_wrong_element_is_found(change):
    graph, matrix = uneven(True, atos.device("cpu"))
    x = np.random.default_rng(0).normal(size=(graph.num_vertices, 3)).astype(np.float32)
    y = (matrix @ x.astype(np.float64)).astype(np.float32)
    atos.verify_spmm(graph, x, y)
    y[42, 2] += change
    with pytest.raises(VerificationError, match=r"y\[42, 2\] is"):
        atos.verify_spmm(graph, x, y)
