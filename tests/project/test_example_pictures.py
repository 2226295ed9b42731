"""What the examples that draw have drawn is right, with every worker on every device."""

from __future__ import annotations

import importlib.util
import itertools

import numpy as np
import pytest
from repository import ROOT
from scipy.sparse.csgraph import dijkstra

import atos_py as atos

EXAMPLES = ROOT / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def launch(worker, queue, *args):
    return getattr(queue, f"launch_{worker}")(*args)


mandelbrot, isochrones, a_star = load("mandelbrot"), load("isochrones"), load("a_star")
mandelbrot.SIDE, mandelbrot.LIMIT = 64, 50


def test_mandelbrot(device, worker):
    side = mandelbrot.SIDE
    picture = atos.full((side, side), -1, dtype=np.int32, device=device)
    steps = atos.zeros(1, dtype=np.int64, device=device)
    queue = atos.Queue(side * side, dtype=mandelbrot.SQUARE, device=device)
    queue.push((0, 0, side))
    launch(worker, queue, mandelbrot.divide, picture, steps)
    expected = np.array([[mandelbrot.escape(x, y) for x in range(side)] for y in range(side)])
    differ = picture.to_numpy() != expected
    # Pixels are samples: a thread of the set may slip through between those of a border.
    assert np.mean(differ) < 0.01
    border = np.ones((side, side), bool)
    border[1:-1, 1:-1] = False
    # Nothing is computed more often than squares of four sizes (64 to 8) hold it, and the whole border at least once.
    assert expected[border].sum() <= steps[0] <= 5 * expected.sum()


def test_isochrones(device, worker):
    graph, start = isochrones.city().to(device), 30 * isochrones.SIDE
    arrival = atos.full(graph.num_vertices, atos.UNREACHED, dtype=np.uint32, device=device)
    arrival[start] = 0
    queue = atos.Queue(20 * graph.num_vertices, dtype=isochrones.VISIT, device=device)
    queue.push((start, 0))
    launch(worker, queue, isochrones.drive, graph, arrival)
    expected = dijkstra(graph.to_scipy(), indices=start)
    reached = np.isfinite(expected)
    assert np.array_equal(arrival.to_numpy()[reached], expected[reached].astype(np.uint32))
    assert np.all(arrival.to_numpy()[~reached] == atos.UNREACHED)


@pytest.mark.parametrize("axis", [0, 1])
def test_fast_roads_are_open(axis):
    matrix = isochrones.city().to_scipy()
    line = np.arange(isochrones.SIDE) * (isochrones.SIDE if axis == 0 else 1)
    assert all(matrix[a, b] == 5 for a, b in itertools.pairwise(line))


def test_a_star(device, worker):
    side = a_star.SIDE
    streets, start = atos.generate.road(side, 0.8, device="cpu"), 200 * side + 140
    city = streets.with_weights(atos.generate.random_weights(streets, a_star.LEAST, 14)).to(device)
    expected = dijkstra(city.to_scipy(), indices=start)
    isolated = int(np.flatnonzero(streets.degrees() == 0)[0])
    for target, guided in itertools.product((230 * side + 260, 190 * side + 3, start, isolated), (1, 0)):
        arrival = atos.full(side * side, atos.UNREACHED, dtype=np.uint32, device=device)
        arrival[start] = 0
        queue = atos.Queue(side * side, dtype=a_star.VISIT, buckets=64, device=device)
        queue.push((start, 0), 0)
        launch(worker, queue, a_star.drive, city, arrival, target, guided)
        found = arrival.to_numpy().astype(float)
        assert found[target] == (expected[target] if np.isfinite(expected[target]) else atos.UNREACHED)
        assert (found >= np.minimum(expected, atos.UNREACHED)).all()
