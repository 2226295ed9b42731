"""Onyx: manifold ranking
======================

A vertex takes the mean of its neighbors, by a weight for each feature of each edge, and a share of its start.
"""

from collections import namedtuple

import numpy as np

import atos_py as atos
from atos_py import features

K, ALPHA, EPSILON = 3, 0.8, 1e-7
Data = namedtuple("Data", "weights start x sent total mass")


def weigh(f, u, v, edge, d):
    atos.atomic_add(d.mass, (v, f), d.weights[edge, f])


def send(f, u, v, edge, d):
    atos.atomic_add(d.total, (v, f), d.weights[edge, f] * (d.x[u, f] - d.sent[u, f]))


def remember(f, v, d):
    d.sent[v, f] = d.x[v, f]


def rank(f, v, d):
    d.x[v, f] = ALPHA * d.total[v, f] / max(d.mass[v, f], 1e-30) + (1 - ALPHA) * d.start[v, f]
    return abs(d.x[v, f] - d.sent[v, f]) > EPSILON


def main() -> None:
    """Rank the vertices of a random graph, and compare with the closed form in numbers and in a picture."""
    from matplotlib import pyplot as plt

    rng, n = np.random.default_rng(0), 300
    graph = atos.generate.uniform(n, 2000)
    weights, start = rng.random((graph.num_edges, K)), (rng.random((n, K)) < 0.02) * 1.0
    arrays = [atos.zeros((n, K), dtype=np.float64) for _ in range(4)]
    d = Data(atos.asarray(weights, readonly=True), atos.asarray(start, readonly=True), *arrays)
    maps = features.Maps(graph, K, d)
    maps.edge_map(weigh)
    active = maps.vertex_map(rank)
    while active:
        maps.edge_map(send, active=active)
        maps.vertex_map(remember, active=active)
        active = maps.vertex_map(rank)
    walk = np.zeros((K, n, n))
    walk[:, graph.indices.to_numpy(), np.repeat(np.arange(n), graph.degrees())] = weights.T
    exact = [
        np.linalg.solve(np.eye(n) - ALPHA * w / w.sum(1, keepdims=True), 0.2 * s) for w, s in zip(walk, start.T, strict=True)
    ]
    assert np.abs(np.transpose(exact) - d.x.to_numpy()).max() < 1e-5
    print(f"{n} vertices ranked in {K} features, equal to the closed form, on {graph.device}")
    plt.loglog(np.transpose(exact), d.x.to_numpy(), ".")
    plt.gca().set(xlabel="closed form", ylabel="by tasks")
    plt.legend(range(K), title="feature")
    plt.show()


if __name__ == "__main__":
    main()
