"""Graphs in a word."""

from __future__ import annotations

import numpy as np
import pytest

import atos_py as atos
from atos_py.graph.spec import graph_of, names_of, source_of


def same(a: atos.Graph, b: atos.Graph) -> bool:
    return np.array_equal(a.indptr, b.indptr) and np.array_equal(a.indices, b.indices)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("rmat:6:4", lambda: atos.generate.rmat(6, 4, device="cpu")),
        ("rmat:6", lambda: atos.generate.rmat(6, 16, device="cpu")),
        ("rmat:6:4:9", lambda: atos.generate.rmat(6, 4, 9, device="cpu")),
        ("road:7:0.5", lambda: atos.generate.road(7, 0.5, device="cpu")),
        ("road:7:0.5:3", lambda: atos.generate.road(7, 0.5, 3, device="cpu")),
        ("barabasi_albert:50:3:1", lambda: atos.generate.barabasi_albert(50, 3, 1, device="cpu")),
        ("bipartite:9:8:20", lambda: atos.generate.bipartite(9, 8, 20, device="cpu")),
        ("grid2d:3:4", lambda: atos.generate.grid2d(3, 4, device="cpu")),
        ("grid3d:2:3:4", lambda: atos.generate.grid3d(2, 3, 4, device="cpu")),
        ("kronecker:5,1,0,1,4,1,0,1,3:4:2", lambda: atos.generate.kronecker([[5, 1, 0], [1, 4, 1], [0, 1, 3]], 4, 2)),
        ("small_world:50:4:0.5", lambda: atos.generate.small_world(50, 4, 0.5, device="cpu")),
        ("uniform:50:70:3", lambda: atos.generate.uniform(50, 70, 3, device="cpu")),
    ],
)
def test_generators(spec, expected):
    assert same(graph_of(spec, device="cpu"), expected())


def test_files_are_read_without_weights(tmp_path):
    graph = atos.Graph.from_edges([0, 1], [1, 0], [5, 7], device="cpu")
    graph.save(tmp_path / "two.npz")
    read = graph_of(str(tmp_path / "two.npz"), device="cpu")
    assert same(read, graph)
    assert read.weights is None
    assert graph_of(str(tmp_path / "two.npz"), device="cpu", weights=True).weights[:].tolist() == [5, 7]


def test_weights_are_random():
    graph = graph_of("rmat:6:4@2-9", device="cpu")
    assert same(graph, graph_of("rmat:6:4", device="cpu"))
    assert graph.weights[:].tolist() == atos.generate.random_weights(graph, 2, 9)[:].tolist()
    assert graph_of("rmat:6:4@0.5-1", device="cpu").weights.dtype == np.float32


def test_directions_of_edges_are_sampled():
    graph = graph_of("rmat:6:4", device="cpu")
    sample = graph_of("rmat:6:4~0.25@2-9", device="cpu")
    assert same(sample, atos.generate.sample_edges(graph, 0.25))
    assert sample.weights[:].tolist() == atos.generate.random_weights(sample, 2, 9)[:].tolist()
    assert source_of("grid2d:5:5~0.5", sample) == 12
    with pytest.raises(atos.InvalidArgumentError, match="probability must be from 0 to 1"):
        graph_of("rmat:6:4~2", device="cpu")


@pytest.mark.parametrize(
    "spec",
    [
        *("rmat:a", "rmat:6:4:0:1", "road:7:half", "rmat:6:", "grid2d:3", "kronecker:1,2,3:4", "uniform:3:1:"),
        *("rmat:6@3", "rmat:6@a-b", "rmat:6@1-2-3", "rmat:6~", "rmat:6@1-2~0.5"),
    ],
)
def test_what_names_no_graph(spec):
    with pytest.raises(atos.InvalidArgumentError, match="rmat:SCALE"):
        graph_of(spec, device="cpu")


def test_parameters_out_of_range_are_told_by_the_generator():
    with pytest.raises(atos.InvalidArgumentError, match="scale must be"):
        graph_of("rmat:99", device="cpu")


def test_a_missing_file():
    with pytest.raises(atos.MissingFileError):
        graph_of("nowhere.gr", device="cpu")


def test_names_are_short_unless_two_would_be_the_same():
    assert names_of(["a/New.York.gr.gz", "b.npz", "rmat:3:4"]) == ["New", "b", "rmat:3:4"]
    assert names_of(["New.York.gr", "New.Jersey.gr", "b.npz"]) == ["New.York.gr", "New.Jersey.gr", "b"]


def test_where_a_search_begins():
    grid, star = graph_of("road:5:1", device="cpu"), atos.Graph.from_edges([2, 2, 2], [0, 1, 3], device="cpu")
    assert source_of("road:5:1", grid) == source_of("grid2d:5:5@1-2", grid) == 12
    assert source_of("grid3d:2:3:4", graph_of("grid3d:2:3:4", device="cpu")) == 12 + 4 + 2
    assert source_of("star.gr", star) == 2
    assert source_of("none.gr", atos.Graph.from_edges([], [], device="cpu")) == 0
