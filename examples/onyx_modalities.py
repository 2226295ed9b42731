"""Onyx: multimodal learning
=========================

The same vertices are alike in several ways, each with weights of its own. Every vertex keeps a matrix: how much of each of its
features comes by each modality. Their weighted sum and its start are its new features.
"""

from collections import namedtuple

import numpy as np

import atos_py as atos
from atos_py import features

K, MODALITIES, EPSILON = 3, 2, 1e-7
ALPHA = (0.5, 0.3)
Data = namedtuple("Data", "weights start x sent total")


def send(f, u, v, edge, d):
    change = d.x[u, f] - d.sent[u, f]
    for j in range(MODALITIES):
        atos.atomic_add(d.total, (v, j, f), d.weights[edge, j] * change)


def remember(f, v, d):
    d.sent[v, f] = d.x[v, f]


def learn(f, v, d):
    d.x[v, f] = ALPHA[0] * d.total[v, 0, f] + ALPHA[1] * d.total[v, 1, f] + (1 - ALPHA[0] - ALPHA[1]) * d.start[v, f]
    return abs(d.x[v, f] - d.sent[v, f]) > EPSILON


def main() -> None:
    """Learn from two modalities of a random graph, and compare with the closed form in numbers and in a picture."""
    from matplotlib import pyplot as plt

    rng, n = np.random.default_rng(0), 300
    graph = atos.generate.uniform(n, 2000)
    weights, start = rng.random((graph.num_edges, MODALITIES)), (rng.random((n, K)) < 0.02) * 1.0
    walk = np.zeros((MODALITIES, n, n))
    sources, targets = np.repeat(np.arange(n), graph.degrees()), graph.indices.to_numpy()
    walk[:, targets, sources] = weights.T
    walk /= walk.sum(2, keepdims=True)
    given = [atos.asarray(x, readonly=True) for x in (walk[:, targets, sources].T, start)]
    d = Data(*given, *(atos.zeros(shape, dtype=np.float64) for shape in ((n, K), (n, K), (n, MODALITIES, K))))
    maps = features.Maps(graph, K, d)
    active = maps.vertex_map(learn)
    while active:
        maps.edge_map(send, active=active)
        maps.vertex_map(remember, active=active)
        active = maps.vertex_map(learn)
    exact = np.linalg.solve(np.eye(n) - ALPHA[0] * walk[0] - ALPHA[1] * walk[1], (1 - sum(ALPHA)) * start)
    assert np.abs(exact - d.x.to_numpy()).max() < 1e-5
    print(f"{n} vertices and {MODALITIES} modalities, equal to the closed form, on {graph.device}")
    plt.loglog(exact, d.x.to_numpy(), ".")
    plt.gca().set(xlabel="closed form", ylabel="by tasks")
    plt.legend(range(K), title="feature")
    plt.show()


if __name__ == "__main__":
    main()
