"""Onyx: factorisation by alternating least squares
================================================

A team of threads makes the equations of a user or an item in scratch memory, and solves them together. Users and items are the
two sides of a graph, and take turns.
"""

from collections import namedtuple

import numpy as np

import atos_py as atos
from atos_py import features

K, LAMBDA = 8, 0.1
CELLS = K * K
Data = namedtuple("Data", "graph x")


def solve(team, v, d):
    matrix, vector = team.scratch(np.float32, CELLS), team.scratch(np.float32, K)
    first, last = d.graph.indptr[v], d.graph.indptr[v + 1]
    for cell in team.split(CELLS):
        i, j = cell // K, cell % K
        total = np.float32(LAMBDA if i == j else 0)
        for edge in range(first, last):
            total += d.x[d.graph.indices[edge], i] * d.x[d.graph.indices[edge], j]
        matrix[cell] = total
    for i in team.split(K):
        total = np.float32(0)
        for edge in range(first, last):
            total += d.graph.weights[edge] * d.x[d.graph.indices[edge], i]
        vector[i] = total
    atos.linalg.solve(team, matrix, vector, K)
    for i in team.split(K):
        d.x[v, i] = vector[i]


def main() -> None:
    """Factorise ratings with planted factors, and draw the predicted ratings."""
    from matplotlib import pyplot as plt

    rng, users, items = np.random.default_rng(0), 400, 150
    user, item = np.divmod(rng.choice(users * items, 9000, replace=False), items)
    left, right = rng.normal(size=(users, 3)), rng.normal(size=(items, 3))
    rating = (3 + (left[user] * right[item]).sum(1) + 0.1 * rng.normal(size=user.size)).astype(np.float32)
    graph = atos.Graph.from_edges(user, users + item, rating, users + items, symmetrize=True)
    start = rng.random((users + items, K)).astype(np.float32)
    maps = features.Maps(graph, K, Data(graph, atos.asarray(start)))
    for _ in range(15):
        maps.vertex_map(features.together(solve), active=np.arange(users))
        maps.vertex_map(features.together(solve), active=np.arange(users, users + items))
    x = maps.data.x.to_numpy()
    predicted = (x[user] * x[users + item]).sum(1)
    error = np.sqrt(np.mean((predicted - rating) ** 2))
    print(f"{user.size:,} ratings, root of the mean squared error {error:.2f}, on {graph.device}")
    plt.plot(rating, predicted, ".", markersize=2)
    plt.gca().set(xlabel="rating", ylabel="predicted rating", aspect="equal")
    plt.show()


if __name__ == "__main__":
    main()
