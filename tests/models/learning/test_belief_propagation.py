"""Belief propagation: exact on trees, and a fixed point on graphs with loops."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import atos_py as atos
from atos_py.errors import InvalidArgumentError, UnsupportedTypeError, VerificationError

STATES = 3


def tree(n: int, device: atos.Device) -> atos.Graph:
    rng = np.random.default_rng(n)
    parents = [rng.integers(0, v) for v in range(1, n)]
    return atos.Graph.from_edges(np.arange(1, n), parents, num_vertices=n, symmetrize=True, device=device)


def field(graph: atos.Graph, k: int, each_edge: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return random potentials; of each edge, or the same ones for all."""
    rng = np.random.default_rng(k)
    unary = rng.normal(size=(graph.num_vertices, k))
    if not each_edge:
        matrix = rng.normal(size=(k, k))
        return unary, matrix + matrix.T
    pairwise = rng.normal(size=(graph.num_edges, k, k))
    back = np.asarray(graph.reverse_edges())
    return unary, pairwise + pairwise[back].transpose(0, 2, 1)


def marginals_by_enumeration(graph: atos.Graph, unary: np.ndarray, pairwise: np.ndarray) -> np.ndarray:
    n, k = unary.shape
    sources, targets = np.repeat(np.arange(n), np.asarray(graph.degrees())), graph.indices.to_numpy()
    once = np.flatnonzero(sources < targets)
    found = np.zeros((n, k))
    for states in map(np.array, itertools.product(range(k), repeat=n)):
        row = once if pairwise.ndim == 3 else None
        of_edges = pairwise[row, states[sources[once]], states[targets[once]]] if row is not None else (
            pairwise[states[sources[once]], states[targets[once]]]
        )  # fmt: skip
        found[np.arange(n), states] += np.exp(unary[np.arange(n), states].sum() + of_edges.sum())
    return found / found.sum(1, keepdims=True)


@pytest.mark.parametrize(("schedule", "damping"), [("synchronous", 0.0), ("synchronous", 0.5), ("residual", 0.0)])
@pytest.mark.parametrize("each_edge", [False, True])
def test_exact_on_trees(device, schedule, damping, each_edge):
    graph = tree(8, device)
    unary, pairwise = field(graph, STATES, each_edge)
    result = atos.belief_propagation(
        graph, unary, pairwise, schedule=schedule, damping=damping, tolerance=1e-12, dtype=np.float64
    )
    exact = marginals_by_enumeration(graph, unary, pairwise)
    assert result.converged
    assert abs(result.marginals.to_numpy() - exact).max() < 1e-10
    atos.verify_belief_propagation(graph, unary, pairwise, result.messages, result.marginals, tolerance=1e-10)


def hub_and_grid(device: atos.Device) -> atos.Graph:
    """Return a grid with loops, and a vertex of so many neighbors that a whole worker takes it."""
    grid = atos.generate.grid2d(12, 12, device="cpu")
    sources = np.repeat(np.arange(144), np.asarray(grid.degrees()))
    ends = np.concatenate([sources, np.full(100, 144)]), np.concatenate([grid.indices.to_numpy(), np.arange(100)])
    return atos.Graph.from_edges(*ends, num_vertices=146, symmetrize=True, deduplicate=True, device=device)


@pytest.mark.parametrize("schedule", ["synchronous", "residual"])
def test_a_fixed_point_where_there_are_loops(device, schedule):
    graph = hub_and_grid(device)
    unary = np.random.default_rng(0).normal(size=(146, 40))
    pairwise = 0.3 * np.eye(40)
    result = atos.belief_propagation(graph, unary, pairwise, schedule=schedule, tolerance=1e-4)
    assert result.converged
    assert result.residual <= 1e-4
    atos.verify_belief_propagation(graph, unary, pairwise, result.messages, result.marginals, tolerance=2e-4)
    alone = np.exp(unary[145]) / np.exp(unary[145]).sum()
    np.testing.assert_allclose(result.marginals.to_numpy()[145], alone, rtol=1e-4)


def test_damping_ends_oscillations(device):
    """Neighbors that must differ, on a grid, oscillate for ever without."""
    graph = atos.generate.grid2d(6, 6, device=device)
    unary = 0.01 * np.random.default_rng(0).normal(size=(36, STATES))
    unary[:, 0] += 2
    pairwise = -6.0 * np.eye(STATES)
    options: dict[str, Any] = {"dtype": np.float64, "max_sweeps": 400}
    assert not atos.belief_propagation(graph, unary, pairwise, **options).converged
    damped = atos.belief_propagation(graph, unary, pairwise, damping=0.5, **options)
    assert damped.converged
    atos.verify_belief_propagation(graph, unary, pairwise, damped.messages, damped.marginals)


def test_a_limit_of_sweeps(device):
    graph = tree(200, device)
    field_of_tree = field(graph, STATES, False)
    for schedule, most in (("synchronous", 4), ("residual", 1)):
        result = atos.belief_propagation(
            graph, *field_of_tree, schedule=schedule, max_sweeps=most, tolerance=1e-12, dtype=np.float64
        )
        assert not result.converged
        assert result.sweeps <= 2 * most + 4


def pair_exactly(unary: np.ndarray, pairwise: np.ndarray) -> np.ndarray:
    """Return the marginals of two vertices with one edge."""
    joint = unary[0][:, None] + pairwise + unary[1]
    joint = np.exp(joint - joint.max())
    joint /= joint.sum()
    return np.stack([joint.sum(1), joint.sum(0)])


@pytest.mark.parametrize("schedule", ["synchronous", "residual"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("spread", [64.0, 120.0, 800.0, 1e6, 4e29])
def test_potentials_that_differ_by_any_number(device, spread, k, dtype, schedule):
    """The state that one vertex wants goes with small potentials of the edge, of which those of the other still decide."""
    graph = atos.Graph.from_edges([0], [1], symmetrize=True, device=device)
    unary, pairwise = np.zeros((2, k)), np.zeros((k, k))
    unary[0, 0] = -2 * spread
    pairwise[0, 1], pairwise[1, 0], pairwise[1, 1] = -spread, -spread + 3, -spread + 1.5
    pairwise[2:], pairwise[:, 2:] = -spread - 1, -spread - 1
    both = np.stack([pairwise, pairwise.T])
    result = atos.belief_propagation(graph, unary, both, dtype=dtype, schedule=schedule)
    found = result.marginals.to_numpy()
    if result.converged:
        np.testing.assert_allclose(found, pair_exactly(unary, pairwise), atol=2e-5)
        atos.verify_belief_propagation(graph, unary, both, result.messages, result.marginals, tolerance=result.residual)
    else:  # the numbers of the messages have no digits left for the difference
        assert spread * np.finfo(dtype).eps > 1e-5
        assert np.isfinite(found).all()


def test_a_number_that_all_potentials_share_rounds_nothing_off(device):
    graph = atos.generate.grid2d(6, 6, device=device)
    field = np.full((36, STATES), 1e12), np.full((STATES, STATES), -1e12)
    result = atos.belief_propagation(graph, *field, tolerance=1e-14, dtype=np.float64)
    np.testing.assert_allclose(result.marginals.to_numpy(), 1 / STATES, rtol=1e-12)
    atos.verify_belief_propagation(graph, *field, result.messages, result.marginals, tolerance=1e-12)


@pytest.mark.parametrize("schedule", ["synchronous", "residual"])
def test_the_residual_is_that_of_the_messages(device, schedule):
    """And not of those before, in a field in which another sweep changes them by more."""
    graph = atos.generate.grid2d(6, 6, device=device)
    unary = np.random.default_rng(1).normal(size=(36, STATES))
    options: dict[str, Any] = {"max_sweeps": 4 if schedule == "synchronous" else 1, "dtype": np.float64}
    result = atos.belief_propagation(graph, unary, -4 * np.eye(STATES), schedule=schedule, **options)
    arguments = graph, unary, -4 * np.eye(STATES), result.messages, result.marginals
    atos.verify_belief_propagation(*arguments, tolerance=result.residual)
    with pytest.raises(VerificationError, match="messages change by"):
        atos.verify_belief_propagation(*arguments, tolerance=0.999 * result.residual)


def test_no_edges(device):
    graph = atos.Graph.from_edges([], [], num_vertices=2, device=device)
    result = atos.belief_propagation(graph, np.log([[1.0, 3.0, 4.0], [1.0, 1.0, 2.0]]), np.zeros((3, 3)))
    np.testing.assert_allclose(result.marginals.to_numpy(), [[0.125, 0.375, 0.5], [0.25, 0.25, 0.5]], rtol=1e-6)
    assert result.converged


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"unary": np.zeros((3, 2))}, InvalidArgumentError, "unary must have a row for each of 2 vertices"),
        ({"unary": [[0, -np.inf], [0, 0]]}, InvalidArgumentError, "unary must be finite numbers, logarithms"),
        ({"unary": [[0, 1e31], [0, 0]]}, InvalidArgumentError, r"logarithms of potentials from -1e\+30 to 1e\+30"),
        ({"pairwise": np.zeros((3, 3))}, InvalidArgumentError, r"pairwise must be of shape \(2, 2\), for all edges"),
        ({"pairwise": [[0, 1], [2, 0]]}, InvalidArgumentError, "must be each other's transpose"),
        ({"pairwise": [[[0, 1], [2, 0]]] * 2}, InvalidArgumentError, "must be each other's transpose"),
        ({"graph": atos.Graph.from_edges([0], [1], device="cpu")}, InvalidArgumentError, "an edge has no reverse"),
        ({"damping": 1}, InvalidArgumentError, r"damping must be from 0 to less than 1"),
        ({"schedule": "random"}, InvalidArgumentError, "schedule must be one of synchronous, residual"),
        ({"dtype": np.int32}, UnsupportedTypeError, "dtype must be float32 or float64"),
    ],
)
def test_what_is_refused(change, error, message):
    graph = atos.Graph.from_edges([0], [1], symmetrize=True, device="cpu")
    with pytest.raises(error, match=message):
        atos.belief_propagation(**{"graph": graph, "unary": np.zeros((2, 2)), "pairwise": np.zeros((2, 2)), **change})


def test_wrong_messages_are_found():
    graph = tree(8, atos.device("cpu"))
    unary, pairwise = field(graph, STATES, False)
    result = atos.belief_propagation(graph, unary, pairwise, tolerance=1e-12, dtype=np.float64)
    messages, marginals = result.messages.to_numpy().copy(), result.marginals.to_numpy().copy()
    marginals[3] = marginals[3, [1, 0, 2]]
    with pytest.raises(VerificationError, match="from those of the messages"):
        atos.verify_belief_propagation(graph, unary, pairwise, messages, marginals)
    messages[5, 1] += 0.01
    with pytest.raises(VerificationError, match="messages change by"):
        atos.verify_belief_propagation(graph, unary, pairwise, messages, result.marginals)
