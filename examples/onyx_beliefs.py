"""Onyx: belief propagation
========================

Marginals of a tree, exact. A team of threads sends the message of an edge in logarithms; their sums are the beliefs.
"""

import math
from collections import namedtuple

import numpy as np

import atos_py as atos

K = 3
Data = namedtuple("Data", "prior pairwise back old new belief")  # in row `edge` of `old` what comes to v along its edge (v, u)


def message(f, v, u, edge, d):
    return d.old[edge, f]


def believe(f, v, total, d):
    d.belief[v, f] = d.prior[v, f] + total


def send(team, u, v, edge, d):
    row = team.scratch(np.float64, K)
    for x in team.split(K):
        total = 0.0
        for y in range(K):
            total += math.exp(d.belief[u, y] - d.old[edge, y] + d.pairwise[y, x])
        row[x] = math.log(total)
    norm = atos.linalg.logsumexp(team, row, K)
    for x in team.split(K):
        d.new[d.back[edge], x] = row[x] - norm


def main() -> None:
    """Compare the marginals of a small tree with those of all states, and draw them."""
    from matplotlib import pyplot as plt

    rng, n = np.random.default_rng(0), 8
    parents = [int(rng.integers(v)) for v in range(1, n)]
    graph = atos.Graph.from_edges(np.arange(1, n), parents, symmetrize=True)
    prior, pairwise = rng.normal(size=(n, K)), np.eye(K) + 0.1
    arrays = (atos.zeros(shape, dtype=np.float64) for shape in [(graph.num_edges, K)] * 2 + [(n, K)])
    maps = atos.features.Maps(graph, K, Data(*map(atos.asarray, (prior, pairwise, graph.reverse_edges())), *arrays))
    for _ in range(n):  # the last time, messages are those of before
        maps.sum_map(message, believe, np.float64)
        maps.edge_map(atos.features.together(send))
        maps.data = maps.data._replace(old=maps.data.new, new=maps.data.old)
    found = np.exp(maps.data.belief.to_numpy())
    states = np.indices((K,) * n).reshape(n, -1)
    weight = np.exp(prior[np.arange(n)[:, None], states].sum(0) + pairwise[states[1:], states[parents]].sum(0))
    exact = np.stack([np.bincount(of_vertex, weight) for of_vertex in states])
    assert np.abs(found / found.sum(1, keepdims=True) - exact / exact.sum(1, keepdims=True)).max() < 1e-10
    print(f"{n} marginals of a tree, equal to those of all {K**n} states, on {graph.device}")
    plt.imshow((found / found.sum(1, keepdims=True)).T, vmin=0, vmax=1)
    plt.gca().set(xlabel="vertex", ylabel="state")
    plt.colorbar(label="probability", location="top")
    plt.show()


if __name__ == "__main__":
    main()
