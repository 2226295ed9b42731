"""Data for programs of features: ratings, Potts grids, planted partitions, similarity graphs; the same on every machine.

Every random number depends on the seed and the number of what it belongs to alone (`atos_py.random`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....compile.random_numbers import random
from ....core.devices import Device
from ....errors import InvalidArgumentError
from ....graph.generate import grid2d
from ....graph.graph import Graph
from ....support.host_memory import host_memory_for
from ....support.validation import check_float, check_int
from .functions import check_features, check_share

__all__ = ["planted_partition", "planted_ratings", "potts_grid", "similarity_graphs"]

_MOST = 2**31
_DRAWS = 16  # rounds in which pairs are drawn until there are enough


def _normal(seed: int, *counters: Any) -> NDArray[Any]:
    """Return numbers of the normal distribution, by Box and Muller."""
    radius = np.sqrt(-2 * np.log1p(-random(seed, *counters, 0)))
    return radius * np.cos(2 * np.pi * random(seed, *counters, 1))  # type: ignore[no-any-return]


@host_memory_for("features.planted_ratings")
def planted_ratings(
    num_users: int, num_items: int, num_ratings: int, *, rank: int = 8, noise: float = 0.5, seed: int = 0
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Generate ratings from 1 to 5 like those of MovieLens, with planted factors.

    Items are popular by Zipf's law, and users active by a log-normal one. A rating is a mean, a part of the user, one of the
    item, the product of their factors, and noise, rounded.

    Parameters
    ----------
    num_users, num_items : int
    num_ratings : int
        Of different pairs; fewer if nearly all pairs of popular items are taken.
    rank : int
        Planted factors.
    noise : float
        Standard deviation: the least error that a factorisation can have, but for rounding.
    seed : int

    Returns
    -------
    users, items : numpy.ndarray of uint32
    values : numpy.ndarray of float32

    Examples
    --------
    >>> from atos_py import features
    >>> users, items, values = features.planted_ratings(100, 50, 1000)
    >>> print(users.size, values.min(), values.max())
    1000 1.0 5.0
    """
    n, m = check_int("num_users", num_users, 1, _MOST), check_int("num_items", num_items, 1, _MOST)
    count = check_int("num_ratings", num_ratings, 1, min(n * m, _MOST))
    factors, deviation = check_int("rank", rank, 1, 1024), check_float("noise", noise)
    key = check_int("seed", seed, -(2**63), 2**64 - 1)
    popular = np.cumsum(1 / np.arange(1.0, m + 1))
    active = np.cumsum(np.exp(_normal(key, np.arange(n), 2)))
    pairs: NDArray[Any] = np.zeros(0, np.int64)
    for draw in range(_DRAWS):
        missing = count - pairs.size
        if missing <= 0:
            break
        number = np.arange(2 * missing)
        user = np.searchsorted(active, random(key, number, 3, draw) * active[-1], side="right")
        item = np.searchsorted(popular, random(key, number, 4, draw) * popular[-1], side="right")
        pairs = np.unique(np.concatenate([pairs, np.minimum(user, n - 1) * m + np.minimum(item, m - 1)]))
    pairs = np.sort(pairs[np.argsort(random(key, pairs, 5), kind="stable")[:count]])
    users, items = pairs // m, pairs % m
    left = _normal(key, np.arange(n)[:, None], np.arange(factors), 6).astype(np.float32) / np.float32(factors**0.5)
    right = _normal(key, np.arange(m)[:, None], np.arange(factors), 7).astype(np.float32)
    values = 3.5 + 0.3 * _normal(key, np.arange(n), 8)[users] + 0.3 * _normal(key, np.arange(m), 9)[items]
    for factor in range(factors):
        values += 0.6 * left[users, factor] * right[items, factor]
    values += deviation * _normal(key, pairs, 10)
    return users.astype(np.uint32), items.astype(np.uint32), np.clip(np.round(values), 1, 5).astype(np.float32)


@host_memory_for("features.potts_grid")
def potts_grid(
    side: int, k: int, *, coupling: float = 0.5, field: float = 1.0, seed: int = 0, device: Device | str | None = None
) -> tuple[Graph, NDArray[Any], NDArray[Any]]:
    """Generate a Potts model on a square grid: a graph, and logarithms of potentials, as `belief_propagation` takes them.

    Parameters
    ----------
    side : int
        Vertices of a side.
    k : int
        States.
    coupling : float
        Logarithm of how much more likely neighbors are in one state than in two others.
    field : float
        Standard deviation of the logarithms for the states of a vertex.
    seed : int
    device : Device or str, optional

    Returns
    -------
    graph : Graph
    unary : numpy.ndarray, (side * side, k)
    pairwise : numpy.ndarray, (k, k)

    Examples
    --------
    >>> from atos_py import features
    >>> graph, unary, pairwise = features.potts_grid(10, 3)
    >>> print(graph.num_vertices, unary.shape, pairwise[0].tolist())
    100 (100, 3) [0.5, 0.0, 0.0]
    """
    length, states = check_int("side", side, 1, 1 << 15), check_features(k)
    strength, deviation = check_float("coupling", coupling), check_float("field", field)
    key = check_int("seed", seed, -(2**63), 2**64 - 1)
    unary = deviation * _normal(key, np.arange(length * length)[:, None], np.arange(states))
    return grid2d(length, length, device=device), unary, strength * np.eye(states)


@host_memory_for("features.planted_partition")
def planted_partition(
    num_vertices: int,
    classes: int,
    *,
    degree: float = 16,
    mixing: float = 0.2,
    labeled: float = 0.01,
    seed: int = 0,
    device: Device | str | None = None,
) -> tuple[Graph, NDArray[Any], NDArray[Any]]:
    """Generate a graph of classes whose vertices have more edges to each other, and labels of a few of them.

    Parameters
    ----------
    num_vertices : int
    classes : int
        Of equal sizes.
    degree : float
        About how many edges a vertex has.
    mixing : float
        Share of the edges that go anywhere.
    labeled : float
        Share of the vertices whose label is given.
    seed : int
    device : Device or str, optional

    Returns
    -------
    graph : Graph
        Undirected.
    truth : numpy.ndarray of int64
        The class of each vertex.
    labels : numpy.ndarray of int64
        The same, or -1, as `label_spreading` takes them.

    Examples
    --------
    >>> from atos_py import features
    >>> graph, truth, labels = features.planted_partition(1000, 4)
    >>> print(graph.is_symmetric(), np.unique(truth), (labels >= 0).sum())
    True [0 1 2 3] 10
    """
    n, blocks = check_int("num_vertices", num_vertices, 1, _MOST), check_int("classes", classes, 1, _MOST)
    if blocks > n:
        raise InvalidArgumentError(f"classes must be at most as many as the {n} vertices (got {classes})")
    edges, key = int(check_float("degree", degree) * n / 2), check_int("seed", seed, -(2**63), 2**64 - 1)
    anywhere, given = check_share("mixing", mixing), check_share("labeled", labeled)
    if not 0 <= edges < _MOST:
        raise InvalidArgumentError(f"degree must be from 0, for fewer than {_MOST} edges (got {degree})")
    number = np.arange(edges)
    sources = (random(key, number, 0) * n).astype(np.int64)
    free = (random(key, number, 1) * n).astype(np.int64)
    own = sources % blocks
    inside = own + blocks * (random(key, number, 2) * ((n - own + blocks - 1) // blocks)).astype(np.int64)
    targets = np.where(random(key, number, 3) < anywhere, free, inside)
    graph = Graph.from_edges(sources, targets, None, n, symmetrize=True, deduplicate=True, remove_loops=True, device=device)
    truth = np.arange(n) % blocks
    first = np.argsort(random(key, np.arange(n), 4), kind="stable")[: round(given * n)]
    labels = np.full(n, -1)
    labels[first] = truth[first]
    return graph, truth, labels


@host_memory_for("features.similarity_graphs")
def similarity_graphs(
    num_vertices: int,
    clusters: int,
    modalities: int,
    *,
    neighbors: int = 8,
    spread: float = 0.5,
    seed: int = 0,
    device: Device | str | None = None,
) -> tuple[Graph, NDArray[Any], NDArray[Any]]:
    """Generate several similarity graphs over the same vertices, which are points of clusters in spaces of their own.

    In each modality a vertex is joined to those that are nearest to it in a plane where some of the clusters lie apart. The
    time and the memory grow with the square of the vertices.

    Parameters
    ----------
    num_vertices : int
        At most 32,768.
    clusters, modalities : int
    neighbors : int
        Of a vertex in each modality.
    spread : float
        Standard deviation of the points of a cluster; the centers have 1.
    seed : int
    device : Device or str, optional

    Returns
    -------
    graph : Graph
        Undirected, with the edges of all modalities.
    weights : numpy.ndarray, (edges, modalities)
        exp(-d**2 / 2) for the distance d, or 0 where an edge is not of the modality.
    truth : numpy.ndarray of int64
        The cluster of each vertex.

    Examples
    --------
    >>> from atos_py import features
    >>> graph, weights, truth = features.similarity_graphs(100, 3, 2)
    >>> print(weights.shape == (graph.num_edges, 2), np.bincount(truth))
    True [34 33 33]
    """
    n, groups = check_int("num_vertices", num_vertices, 2, 1 << 15), check_int("clusters", clusters, 1, _MOST)
    kinds, nearest = check_int("modalities", modalities, 1, 128), check_int("neighbors", neighbors, 1, n - 1)
    width, key = check_float("spread", spread), check_int("seed", seed, -(2**63), 2**64 - 1)
    truth = np.arange(n) % groups
    pairs, near = (np.zeros((kinds, n, nearest), dtype) for dtype in (np.int64, np.float64))
    for j in range(kinds):
        centers = _normal(key, np.arange(groups)[:, None], np.arange(2), j, 0)
        points = centers[truth] + width * _normal(key, np.arange(n)[:, None], np.arange(2), j, 1)
        for first in range(0, n, 1024):
            rows = np.arange(first, min(first + 1024, n))[:, None]
            distance = ((points[rows] - points) ** 2).sum(2)
            distance[rows - first, rows] = np.inf
            found = np.argpartition(distance, nearest - 1, axis=1)[:, :nearest]
            pairs[j, rows[:, 0]], near[j, rows[:, 0]] = rows * n + found, np.exp(-distance[rows - first, found] / 2)
    pairs = np.stack([pairs, pairs % n * n + pairs // n])  # both directions
    edges = np.unique(pairs)
    weights = np.zeros((edges.size, kinds))
    np.maximum.at(weights, (np.searchsorted(edges, pairs), np.arange(kinds)[:, None, None]), near)
    graph = Graph.from_edges(edges // n, edges % n, None, n, device=device)
    return graph, weights, truth
