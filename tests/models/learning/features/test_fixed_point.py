"""Fixed points: errors within their bounds, nothing lost that was not sent, and less work where little changes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

import atos_py as atos
from atos_py import features
from atos_py.errors import InvalidArgumentError, UnsupportedTypeError


class Linear(NamedTuple):
    weights: Any
    seeds: Any


def weight(f, v, u, edge, data):
    return data.weights[edge]


def add_seed(f, v, total, data):
    return total + data.seeds[v, f]


def add_seed_together(team, v, new, data):
    for f in team.split(data.seeds.shape[1]):
        new[f] += data.seeds[v, f]


def problem(device: atos.Device, norm: str, k: int, dtype: Any) -> tuple[atos.Graph, Linear, np.ndarray]:
    """Return a directed graph whose weights contract by 0.8 in a norm, the rest of the equation, and its solution."""
    rng = np.random.default_rng(0)
    n = 600
    matrix = sp.random(n, n, density=0.01, random_state=1, format="csr")
    if norm == "2":
        matrix = matrix + matrix.T
    sums = np.asarray(matrix.sum(1 if norm == "max" else 0)).ravel()
    scale = sp.diags(1 / np.maximum(sums, 1e-9))
    root = sp.diags(np.maximum(sums, 1e-9) ** -0.5)
    matrix = 0.8 * {"max": scale @ matrix, "1": matrix @ scale, "2": root @ matrix @ root}[norm]
    matrix = sp.csr_matrix(matrix)
    seeds = rng.random((n, k)) * (rng.random((n, 1)) < 0.02)
    graph = atos.Graph.from_csr(matrix.indptr, matrix.indices, device=device)
    data = Linear(*(atos.asarray(x.astype(dtype), device=device, readonly=True) for x in (matrix.data, seeds)))
    return graph, data, sp.linalg.spsolve(sp.eye(n, format="csc") - matrix.tocsc(), seeds).reshape(n, k)


@pytest.mark.parametrize("change_driven", [True, False])
@pytest.mark.parametrize(
    ("norm", "k", "dtype", "tolerance", "update"),
    [
        ("max", 3, np.float64, 1e-6, add_seed),
        ("1", 3, np.float64, 1e-4, add_seed),
        ("2", 40, np.float32, 1e-3, features.together(add_seed_together)),
    ],
    ids=["max", "1", "2"],
)
def test_errors_are_within_the_bound(device, norm, k, dtype, tolerance, update, change_driven):
    graph, data, exact = problem(device, norm, k, dtype)
    x = atos.zeros(exact.shape, dtype=dtype, device=device)
    found = features.fixed_point(
        graph, x, weight, update, data, tolerance=tolerance, contraction=0.8, norm=norm, change_driven=change_driven
    )
    error = x.to_numpy() - exact
    distance = {"max": abs(error).max(), "1": abs(error).sum(), "2": np.sqrt((error**2).sum())}[norm]
    assert found.x is x
    assert found.converged
    assert distance <= found.error_bound * 1.01 + 1e-5 * (dtype == np.float32)
    assert found.error_bound <= tolerance


def test_changes_are_less_work_than_everything(device):
    """At the same bound, on a grid with a few seeds, fewer than half of the edges are used."""
    graph = atos.generate.road(60, 0.9, device=device)
    n, rng = graph.num_vertices, np.random.default_rng(0)
    seeds = np.zeros((n, 3))
    seeds[rng.choice(n, n // 100, replace=False), rng.integers(0, 3, n // 100)] = 1
    degrees = np.maximum(np.asarray(graph.degrees()), 1)
    weights = np.repeat(0.8 / degrees, np.asarray(graph.degrees()))
    data = Linear(*(atos.asarray(x, device=device, readonly=True) for x in (weights, 0.2 * seeds)))
    work = []
    for change_driven in (True, False):
        x = atos.asarray(0.2 * seeds, device=device, copy=True)
        found = features.fixed_point(
            graph, x, weight, add_seed, data, tolerance=1e-2, contraction=0.8, change_driven=change_driven
        )
        assert found.converged
        work.append(found.edge_operations)
    assert 2 * work[0] <= work[1]


@pytest.mark.parametrize("update", [add_seed, features.together(add_seed_together)])
def test_symmetric_matrices_take_fewer_iterations(device, update):
    """At a contraction of 0.8, by Chebyshev's steps an iteration halves the error; without them it is 0.8 of that before."""
    graph, data, exact = problem(device, "2", 3, np.float64)
    iterations = []
    for symmetric in (True, False):
        x = atos.zeros(exact.shape, dtype=np.float64, device=device)
        found = features.fixed_point(
            graph,
            x,
            weight,
            update,
            data,
            tolerance=1e-9,
            contraction=0.8,
            norm="2",
            symmetric=symmetric,
            change_driven=False,
        )
        assert found.converged
        assert np.sqrt(((x.to_numpy() - exact) ** 2).sum()) <= 1e-9
        iterations.append(found.iterations)
    assert 2 * iterations[0] <= iterations[1]


class Slow(NamedTuple):
    x: Any
    log: Any


def from_first(f, v, u, edge, data):
    return 1.0


def creep(f, v, total, data):
    """Vertex 0 moves by less than epsilon, vertex 2 to and fro, and vertex 1 counts what it notices of vertex 0."""
    if v == 0:
        return min(data.x[0, f] + 0.004, 1.0)
    if v == 2:
        return -data.x[2, f]
    if v == 1 and total > data.log[1]:
        data.log[0] += 1
        data.log[1] = total
    return total


def test_what_was_not_sent_is_not_lost(device):
    """Changes below epsilon, 0.01 here, add up until they are sent: without recomputing, the neighbor follows."""
    graph = atos.Graph.from_edges([1, 3], [0, 2], num_vertices=20_000, device=device)
    x = atos.zeros((20_000, 1), dtype=np.float64, device=device)
    x[2, 0] = 1.0
    log = atos.zeros(2, dtype=np.float64, device=device)
    found = features.fixed_point(
        graph, x, from_first, creep, Slow(x, log), tolerance=0.02, recompute_every=10**6, max_iterations=240
    )
    assert not found.converged
    assert found.iterations == 240
    assert log[0] > 60  # with what was had in place of what was sent, never before the end
    assert abs(x[1, 0] - x[0, 0]) <= 0.02


def test_without_a_contraction_the_residual_decides(device):
    graph, data, exact = problem(device, "max", 3, np.float64)
    x = atos.zeros(exact.shape, dtype=np.float64, device=device)
    found = features.fixed_point(graph, x, weight, add_seed, data, tolerance=1e-5)
    residual = x.to_numpy() - sp.csr_matrix((data.weights.to_numpy(), graph.indices, graph.indptr)) @ x.to_numpy() - data.seeds
    assert found.converged
    assert abs(residual).max() <= 1.01e-5


def test_rounding_ends_it(device):
    """A tolerance below what the type can hold is told, after a few certificates that are not better."""
    graph, data, exact = problem(device, "max", 2, np.float32)
    x = atos.zeros(exact.shape, dtype=np.float32, device=device)
    found = features.fixed_point(graph, x, weight, add_seed, data, tolerance=1e-12, contraction=0.8)
    assert not found.converged
    assert 0 < found.error_bound < 1e-4
    assert found.iterations < 2000


@pytest.mark.parametrize("change_driven", [True, False])
@pytest.mark.parametrize("norm", ["max", "1", "2"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bounds_hold_below_what_the_type_resolves(device, dtype, norm, change_driven):
    """In the type of the features the residual may be 0 where the error is not, as is a bound that follows from it."""
    graph, data, _ = problem(device, norm, 2, dtype)
    n = graph.num_vertices
    matrix = sp.csr_matrix((data.weights.to_numpy().astype(np.float64), graph.indices, graph.indptr), (n, n))
    exact = sp.linalg.spsolve(sp.eye(n, format="csc") - matrix.tocsc(), data.seeds.to_numpy().astype(np.float64)).reshape(n, 2)
    for tolerance in (1e-5, 1e-7, 1e-9, 1e-13, 1e-300):
        x = atos.zeros((n, 2), dtype=dtype, device=device)
        options = {"tolerance": tolerance, "contraction": 0.8, "norm": norm, "change_driven": change_driven}
        found = features.fixed_point(graph, x, weight, add_seed, data, **options)
        error = abs(x.to_numpy() - exact)
        distance = {"max": error.max(), "1": error.sum(), "2": np.sqrt((error**2).sum())}[norm]
        assert distance <= found.error_bound
        assert found.converged == (found.error_bound <= tolerance)


def test_infinite_features_have_no_bound(device):
    graph, data, _ = problem(device, "max", 2, np.float32)
    x = atos.asarray(np.full((600, 2), np.inf, np.float32), device=device, copy=True)
    found = features.fixed_point(graph, x, weight, add_seed, data, contraction=0.8, max_iterations=5)
    assert not found.converged
    assert found.error_bound == np.inf


def test_rounded_terms_are_in_the_bound(device):
    """Weights of float32 stand for others, and the bound holds for the fixed point of these."""
    graph, data, exact = problem(device, "max", 2, np.float64)
    rounded = data._replace(weights=atos.asarray(data.weights.to_numpy().astype(np.float32), device=device, readonly=True))
    x = atos.zeros(exact.shape, dtype=np.float64, device=device)
    found = features.fixed_point(graph, x, weight, add_seed, rounded, tolerance=1e-12, contraction=0.8, rounding=2.0**-24)
    assert abs(x.to_numpy() - exact).max() <= found.error_bound
    assert not found.converged


_VALUES = np.zeros((3, 2))
READ_ONLY = [atos.asarray(_VALUES, device="cpu", readonly=readonly) for readonly in (True, False)]  # of one memory


class Sum(NamedTuple):
    seeds: atos.Array


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"x": np.zeros((3, 2))}, InvalidArgumentError, "x must be an Array on cpu"),
        ({"x": atos.zeros((2, 2), device="cpu")}, InvalidArgumentError, "with a row for each of 3 vertices"),
        ({"x": atos.zeros((3, 2), dtype=np.int32, device="cpu")}, UnsupportedTypeError, "float32 or float64, not int32"),
        ({"norm": "3"}, InvalidArgumentError, "norm must be one of max, 1, 2"),
        ({"contraction": 1.0}, InvalidArgumentError, r"contraction from 0 to less than 1 \(got 0.0001 and 1.0\)"),
        ({"tolerance": 0}, InvalidArgumentError, "tolerance must be positive"),
        ({"recompute_every": 0}, InvalidArgumentError, "recompute_every must be"),
        ({"data": READ_ONLY[0], "x": READ_ONLY[1]}, InvalidArgumentError, "no read-only array of data may have its memory"),
        ({"data": Sum(READ_ONLY[0]), "x": READ_ONLY[1]}, InvalidArgumentError, "pass a copy as x"),
    ],
)
def test_what_is_refused(change, error, message):
    graph = atos.Graph.from_edges([0, 1], [1, 2], device="cpu")
    x = atos.zeros((3, 2), device="cpu")
    options = {"x": x, "term": weight, "update": add_seed} | change
    with pytest.raises(error, match=message):
        features.fixed_point(graph, **options)
