"""The five algorithms of the thesis on Onyx, as `reproduce_onyx` measures them: 4 features, made-up data, few iterations.

ALS and belief propagation are as the thesis prints them: a vertex may read what others write in the same iteration.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import asarray, zeros
from ...compile.atomics import atomic_add
from ...compile.random_numbers import random
from ...graph.graph import Graph
from ..learning.features import Maps, propagate_labels, together
from ..learning.manifold_ranking import manifold_ranking, multimodal
from ..linalg.matrices import solve
from ..linalg.vectors import any_updated, logsumexp

__all__ = [
    *("ALPHAS", "ITERATIONS", "K", "MODES", "RIDGE", "UNLIKE"),
    *("Beliefs", "Inputs", "Measured", "algorithms_on", "beliefs_on", "believe", "features_of", "inputs_of", "total_of"),
]

MODES = {"NFA/NCD": (False, False), "FA/NCD": (True, False), "NFA/CD": (False, True), "FA/CD": (True, True)}
K, ITERATIONS = 4, 10
ALPHAS = [0.2] * K  # the shares of the modalities
RIDGE, UNLIKE = 0.1, 0.5  # the regularization of ALS; the potential of two labels that differ, where that of equal ones is 1
_CELLS, _EPSILON = K * K, 1e-3


class Inputs(NamedTuple):
    """Made-up data of a graph, in NumPy."""

    features: Any  # (n, K), from 0 to 1: where LP, ALS and BP begin
    seeds: Any  # (n, K), 0 or 1: what MMR and MML rank by
    weights: Any  # (m, K): of the edges, for these two


class Measured(NamedTuple):
    """Kernel time of a run, the edges that it went along, and its result: features, or the messages of BP."""

    milliseconds: float
    edge_operations: int
    result: Any


class Beliefs(NamedTuple):
    """Arrays of belief propagation, as logarithms."""

    prior: Any
    back: Any
    messages: Any
    total: Any
    belief: Any


class _Factors(NamedTuple):
    graph: Any
    x: Any


def send_message(team, u, v, edge, d):  # type: ignore[no-untyped-def]
    """Send the message of an edge, by what has changed."""
    row = team.scratch(np.float32, K)
    for x in team.split(K):
        total = np.float32(0)
        for y in range(K):
            total += math.exp(d.belief[u, y] - d.messages[edge, y]) * np.float32(1.0 if x == y else UNLIKE)
        row[x] = math.log(total)
    norm = logsumexp(team, row, K)
    back = d.back[edge]
    for x in team.split(K):
        atomic_add(d.total, (v, x), row[x] - norm - d.messages[back, x])
        d.messages[back, x] = row[x] - norm


def believe(team, v, d):  # type: ignore[no-untyped-def]
    """Normalize a belief, and compare it with the one before."""
    new, old = team.scratch(np.float32, K), team.scratch(np.float32, K)
    for x in team.split(K):
        new[x], old[x] = d.prior[v, x] + d.total[v, x], d.belief[v, x]
    norm = logsumexp(team, new, K)
    for x in team.split(K):
        new[x] -= norm
        d.belief[v, x] = new[x]
    return any_updated(team, new, old, K, _EPSILON)


def solve_vertex(team, v, d):  # type: ignore[no-untyped-def]
    """Find the factors of a vertex from those of its neighbors, all ratings being 1."""
    matrix, vector, old = team.scratch(np.float32, _CELLS), team.scratch(np.float32, K), team.scratch(np.float32, K)
    row = team.scratch(np.float32, K)
    for cell in team.split(_CELLS):
        matrix[cell] = np.float32(RIDGE if cell // K == cell % K else 0)
    for f in team.split(K):
        vector[f], old[f] = np.float32(0), d.x[v, f]
    for edge in range(d.graph.indptr[v], d.graph.indptr[v + 1]):
        # Each factor is read once, since it may change: products of the same numbers make a matrix that has a solution.
        for f in team.split(K):
            row[f] = d.x[d.graph.indices[edge], f]
            vector[f] += row[f]
        team.sync()
        for cell in team.split(_CELLS):
            matrix[cell] += row[cell // K] * row[cell % K]
        team.sync()
    solve(team, matrix, vector, K)
    for f in team.split(K):
        d.x[v, f] = vector[f]
    return any_updated(team, vector, old, K, _EPSILON)


def touch(f, u, v, edge, d):  # type: ignore[no-untyped-def]
    """Activate the neighbors of what has changed."""
    return True


def features_of(graph: Graph, k: int) -> Any:
    """Return random features of the vertices, from 0 to 1."""
    return random(0, np.arange(graph.num_vertices)[:, None], np.arange(k)).astype(np.float32)


def inputs_of(graph: Graph) -> Inputs:
    """Make the data up: the same on all machines."""
    n, m = graph.num_vertices, graph.num_edges
    seeds = random(1, np.arange(n)[:, None], np.arange(K)) < 0.01
    weights = random(2, np.arange(m)[:, None], np.arange(K)).astype(np.float32)
    return Inputs(features_of(graph, K), seeds.astype(np.float32), weights)


def total_of(runs: Any) -> float:
    """Return the milliseconds of all launches."""
    return sum(stats.milliseconds for stats in runs)


def _of_fixed_point(call: Callable[..., Any], *args: Any, **options: Any) -> Callable[..., Measured]:
    def run(feature_aware: bool, change_driven: bool) -> Measured:
        modes = {"feature_aware": feature_aware, "change_driven": change_driven, "max_iterations": ITERATIONS}
        found = call(*args, **modes, tolerance=_EPSILON, **options)
        return Measured(total_of(found.runs), found.edge_operations, found.x)

    return run


def beliefs_on(graph: Graph) -> Beliefs:
    """Return the arrays as belief propagation begins."""
    n, m, device = graph.num_vertices, graph.num_edges, graph.device
    shapes = (m, K), (n, K), (n, K)
    arrays = (zeros(shape, device=device) for shape in shapes)
    prior = asarray(features_of(graph, K), device=device)
    return Beliefs(prior, asarray(graph.reverse_edges(), readonly=True), *arrays)


def _run_beliefs(graph: Graph, feature_aware: bool, change_driven: bool) -> Measured:
    data = beliefs_on(graph)
    maps = Maps(graph, K, data, feature_aware=feature_aware)
    active, operations = maps.vertex_map(together(believe)), 0
    for _ in range(ITERATIONS):
        operations += active.num_edges if change_driven else graph.num_edges
        maps.edge_map(together(send_message), active=active if change_driven else None)
        active = maps.vertex_map(together(believe))
    return Measured(total_of(maps.runs), operations, data.messages)


def _run_factors(graph: Graph, feature_aware: bool, change_driven: bool) -> Measured:
    x = asarray(features_of(graph, K), device=graph.device)
    maps = Maps(graph, K, _Factors(graph, x), feature_aware=feature_aware)
    active, operations = maps.all(), 0
    for _ in range(ITERATIONS):
        operations += active.num_edges if change_driven else graph.num_edges
        moved = maps.vertex_map(together(solve_vertex), active=active if change_driven else None)
        if change_driven:
            active = maps.edge_map(touch, active=moved)
    return Measured(total_of(maps.runs), operations, x)


def algorithms_on(graph: Graph, inputs: Inputs) -> dict[str, Callable[..., Measured]]:
    """Return the algorithms, as functions of the mode: whether mapping is aware of features, and whether changes drive it."""
    features = asarray(inputs.features, device=graph.device)
    ranked = graph, inputs.weights, inputs.seeds
    return {
        "LP": _of_fixed_point(propagate_labels, graph, features),
        "ALS": lambda *modes: _run_factors(graph, *modes),
        "BP": lambda *modes: _run_beliefs(graph, *modes),
        "MMR": _of_fixed_point(manifold_ranking, *ranked),
        "MML": _of_fixed_point(multimodal, *ranked, alpha=ALPHAS),
    }
