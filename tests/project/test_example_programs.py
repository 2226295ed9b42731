"""The examples that are whole programs are right, and their verifiers find what is wrong."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from repository import ROOT

import atos_py as atos


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


barnes_hut = load("barnes_hut")
ALL = np.arange(1000)


@pytest.fixture(scope="module")
def galaxies(device):
    """Two galaxies of 1,000 bodies after two steps, and the statistics of the second."""
    bodies = barnes_hut.galaxies(1000, device)
    bodies.step()
    return bodies, bodies.step()


def test_barnes_hut(galaxies):
    bodies, stats = galaxies
    assert bodies.verify(ALL) < 0.005
    child = bodies.tree.cell.to_numpy()[: bodies.tree.used[0], barnes_hut.CHILD]
    assert stats[2].tasks_run_by["split"] == np.count_nonzero(child)
    assert stats[2].tasks_run_by["gather"] >= np.count_nonzero(child)  # once more if a sum has not arrived


@pytest.mark.parametrize("where", ["total", "reach", "cell", "used"])
def test_wrong_trees_are_found(device, where):
    bodies = barnes_hut.galaxies(1000, device)
    bodies.step()
    array = getattr(bodies.tree, where)
    if where == "reach":  # as if all were far away
        array[...] = 0
        frozen = barnes_hut.Tree(*(atos.asarray(each, readonly=True) for each in bodies.tree))
        bodies.blocks.push(np.arange(-(-1000 // 32)))
        arrays = bodies.old_speed, bodies.body, bodies.speed, bodies.acceleration, bodies.half
        bodies.blocks.launch_warp(barnes_hut.attract, frozen, *arrays)
    elif where == "used":  # a leaf is missing
        array[0] = int(array[0]) - 1
    else:
        changed = array.to_numpy()
        changed[5] = changed[6]
        array[...] = changed
    with pytest.raises(AssertionError):
        bodies.verify(ALL)


@pytest.mark.parametrize("worker", ["thread", "warp", "cta"])
def test_a_tree_by_every_worker(device, worker, galaxies):
    """The tasks take what has not arrived for unknown, and sum up the same with all sizes of workers."""
    bodies, _ = galaxies
    tree, expected = bodies.tree, bodies.tree.total[0]
    tree.total[...], tree.used[...] = np.nan, 1
    queue = atos.Queue(1000, device=device)
    queue.push(0)
    getattr(queue, f"launch_{worker}")((barnes_hut.split, barnes_hut.gather), tree, bodies.half)
    assert np.allclose(tree.total[0], expected, rtol=1e-6)
    bodies.verify(ALL)


@atos.task
def deliver(worker, k, tree, half):
    """Let the sum of cell k arrive."""
    if worker.rank == 0:
        tree.total[k, 0] = 0.5


def test_a_cell_waits_for_all_sums(device, galaxies):
    bodies, _ = galaxies
    first = int(bodies.tree.cell[0, barnes_hut.CHILD])
    expected = bodies.tree.total[0]
    arrived = bodies.tree.total[first, 0]
    bodies.tree.total[first, 0], bodies.tree.total[0, 0] = np.nan, 7
    queue = atos.Queue(1000, device=device)
    queue.push(0, task=barnes_hut.gather)
    queue.push(first, task=deliver)
    tree = bodies.tree
    stats = queue.launch_warp((barnes_hut.gather, deliver), tree, bodies.half, num_blocks=1, fetch_size=1)
    mass = tree.total[first, 3] / tree.total[0, 3]
    assert stats.tasks_run_by["gather"] >= 2
    assert np.isclose(tree.total[0, 0], expected[0] + mass * (0.5 - arrived))
    tree.total[first, 0], tree.total[0, 0] = arrived, expected[0]


def test_many_bodies_in_one_place(device):
    body = np.zeros((500, 4), np.float32)
    body[:100, :3] = np.random.default_rng(0).normal(size=(100, 3))
    body[100:, 0], body[:, 3] = 0.3, 1
    bodies = barnes_hut.Bodies(body, np.zeros((500, 4), np.float32), device)
    bodies.step()
    assert bodies.verify(np.arange(500)) < 0.01
