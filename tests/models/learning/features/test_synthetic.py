"""Generated data: the same on every machine, and with the structure that was planted."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

import atos_py as atos
from atos_py import features
from atos_py.errors import InvalidArgumentError


def checksum(*arrays: object) -> int:
    total = 0
    for array in arrays:
        total = zlib.crc32(np.ascontiguousarray(array).tobytes(), total)
    return total


def test_ratings():
    users, items, values = features.planted_ratings(500, 200, 20_000, noise=0.3)
    assert (users.size, np.unique(users.astype(np.int64) * 200 + items).size) == (20_000, 20_000)
    assert np.isin(values, [1, 2, 3, 4, 5]).all()
    counts = np.bincount(items, minlength=200)
    assert counts[:10].mean() > 2 * counts[-50:].mean()  # popular by Zipf's law
    found = atos.als((users, items, values), 8, regularization=1.0, iterations=8, device="cpu")
    assert found.rmse(users, items, values) < 0.6 * values.std()  # there are factors to be found
    assert checksum(users, items) == checksum(*features.planted_ratings(500, 200, 20_000, noise=0.3)[:2])
    assert (features.planted_ratings(500, 200, 20_000, noise=0.3, seed=1)[0] != users).any()


def test_all_pairs():
    users, _, _ = features.planted_ratings(3, 2, 6)
    assert users.size <= 6


def test_integers_are_those_of_every_machine():
    graph, truth, labels = features.planted_partition(500, 3, seed=7, device="cpu")
    assert checksum(graph.indptr.to_numpy(), graph.indices.to_numpy(), truth, labels) == 2481630007


def test_partition():
    graph, truth, labels = features.planted_partition(2001, 4, mixing=0.1, labeled=0.05, device="cpu")
    assert graph.is_symmetric()
    sources = np.repeat(np.arange(2001), np.asarray(graph.degrees()))
    assert 0.9 < (truth[sources] == truth[graph.indices.to_numpy()]).mean() < 0.95
    assert 14 < graph.num_edges / 2001 < 16
    assert (labels >= 0).sum() == 100
    assert (labels[labels >= 0] == truth[labels >= 0]).all()


def test_grid():
    graph, unary, pairwise = features.potts_grid(5, 3, coupling=0.7, field=2.0, device="cpu")
    assert (graph.num_vertices, graph.num_edges, unary.shape) == (25, 80, (25, 3))
    assert pairwise.tolist() == (0.7 * np.eye(3)).tolist()
    assert 1.5 < unary.std() < 2.5


def test_similarities():
    graph, weights, truth = features.similarity_graphs(300, 4, 3, neighbors=5, spread=0.2, device="cpu")
    assert graph.is_symmetric()
    back = np.asarray(graph.reverse_edges())
    assert (weights[back] == weights).all()
    sources = np.repeat(np.arange(300), np.asarray(graph.degrees()))
    for j in range(3):
        of_modality = weights[:, j] > 0
        assert (np.bincount(sources[of_modality], minlength=300) >= 5).all()
        assert (truth[sources[of_modality]] == truth[graph.indices.to_numpy()[of_modality]]).mean() > 0.6
    assert (weights.max(1) > 0).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: features.planted_ratings(3, 2, 7), "num_ratings must be from 1 to 6"),
        (lambda: features.planted_partition(10, 11), r"classes must be at most as many as the 10 vertices \(got 11\)"),
        (lambda: features.planted_partition(10, 2, mixing=2), r"mixing must be from 0 to 1 \(got 2\)"),
        (lambda: features.planted_partition(10, 2, degree=-1), "degree must be from 0"),
        (lambda: features.similarity_graphs(10, 2, 2, neighbors=10), "neighbors must be from 1 to 9"),
        (lambda: features.potts_grid(3, 200), "k must be from 1 to 128"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(InvalidArgumentError, match=message):
        call()
