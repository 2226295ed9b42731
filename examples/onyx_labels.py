"""Onyx: label propagation
=======================

Vertices mix their probabilities of labels with those of their neighbors. Only what has changed since it was sent is sent.
"""

from collections import namedtuple

import numpy as np

import atos_py as atos
from atos_py import features

K, ALPHA, EPSILON = 4, 0.5, 1e-4
Data = namedtuple("Data", "x sent total")


def send(f, u, v, edge, d):
    atos.atomic_add(d.total, (v, f), d.x[u, f] - d.sent[u, f])


def remember(f, v, d):
    d.sent[v, f] = d.x[v, f]


def mix(team, v, d):
    row, old = team.scratch(np.float64, K), team.scratch(np.float64, K)
    for f in team.split(K):
        row[f], old[f] = d.total[v, f], d.x[v, f]
    if atos.linalg.normalize(team, row, K) > 0:
        for f in team.split(K):
            d.x[v, f] = ALPHA * row[f] + (1 - ALPHA) * old[f]
            row[f], old[f] = d.x[v, f], d.sent[v, f]
    return atos.linalg.any_updated(team, row, old, K, EPSILON)


def main() -> None:
    """Find the blocks of a graph from the labels of a few vertices, and draw the probabilities."""
    from matplotlib import pyplot as plt

    rng, n = np.random.default_rng(0), 4000
    truth, ends = np.arange(n) % K, np.random.default_rng(1).integers(0, n, (2, 80_000))
    ends = ends[:, (truth[ends[0]] == truth[ends[1]]) | (rng.random(80_000) < 0.02)]
    graph = atos.Graph.from_edges(*ends, num_vertices=n, symmetrize=True, deduplicate=True)
    seeds = np.where(np.arange(n)[:, None] < n // 100, np.eye(K)[truth], 0)
    d = Data(atos.asarray(seeds), *(atos.zeros((n, K), dtype=np.float64) for _ in range(2)))
    maps = features.Maps(graph, K, d)
    active, work = maps.vertex_map(lambda f, v, d: d.x[v, f] > 0), 0
    for _ in range(30):
        work += active.num_edges
        maps.edge_map(send, active=active)
        maps.vertex_map(remember, active=active)
        active = maps.vertex_map(features.together(mix))
    right = (d.x.to_numpy().argmax(1) == truth).mean()
    print(
        f"{100 * right:.0f}% of the labels are right, by {work / graph.num_edges:.1f} sends along each edge, on {graph.device}"
    )
    plt.imshow(d.x.to_numpy()[np.argsort(truth)].T, aspect="auto", interpolation="nearest")
    plt.gca().set(xlabel="vertices, block by block", ylabel="label", yticks=range(K))
    plt.colorbar(label="probability")
    plt.show()


if __name__ == "__main__":
    main()
