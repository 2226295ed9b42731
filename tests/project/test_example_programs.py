"""The examples that are whole programs are right, and their verifiers find what is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from repository import load_example

import atos_py as atos

barnes_hut, survey_propagation = load_example("barnes_hut"), load_example("survey_propagation")
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
    stats = queue.launch_cta((barnes_hut.gather, deliver), tree, bodies.half, num_blocks=1)  # one worker, in order
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


def surveys_of(clauses, n, survey, sweeps, value):
    """Return the surveys after some sweeps, by loops over the formula; a fixed variable is sure to be what it is."""
    literals = clauses.ravel()
    of_literal = [np.flatnonzero(literals == literal) for literal in range(2 * n)]
    fixed, true = value[literals >> 1] != survey_propagation.FREE, value[literals >> 1] == literals & 1
    survey = survey.astype(np.float64)
    for _ in range(sweeps):
        quiet = np.array([np.prod(1 - survey[edges]) for edges in of_literal])
        rest, against = np.minimum(quiet[literals] / (1 - survey), 1), quiet[literals ^ 1]
        pressed = (1 - against) * rest / (rest + against - rest * against)
        pressed = np.where(fixed, ~true, pressed).reshape(-1, 3)
        survey = np.minimum(np.roll(pressed, 1, 1) * np.roll(pressed, -1, 1), survey_propagation.MOST).ravel()
    return survey


def test_surveys(device):
    n = 1000
    clauses = survey_propagation.random_formula(n, seed=3)  # whose surveys converge soon
    solver = survey_propagation.Solver(clauses, n, device)
    for _ in range(3):
        before, value = solver.state.survey.to_numpy().copy(), solver.state.value.to_numpy().copy()
        stats = solver.propagate()
        sweeps = (stats.rounds - 1) // 2
        assert 1 <= sweeps < survey_propagation.SWEEPS
        found = solver.state.survey.to_numpy()
        assert np.allclose(found, surveys_of(clauses, n, before, sweeps, value), atol=1e-3)
        solver.decimate()
    assert solver.state.fixed[0] >= 20


def test_what_follows_is_fixed(device):
    """Clauses x0 -> x1 -> ... -> x99, each with x100, which is false, and one that the other literal of x0 satisfies."""
    n = 101
    clauses = np.array([[2 * v + 1, 2 * v + 2, 200] for v in range(99)] + [[1, 150, 200], [0, 7, 200]], np.int32)
    solver = survey_propagation.Solver(clauses, n, device)
    for literal in (201, 0):
        solver.fixing.push([literal], task=survey_propagation.assign)
        order = atos.asarray(np.arange(n), device=device)
        tasks = survey_propagation.choose, survey_propagation.assign
        solver.fixing.launch_cta(tasks, order, solver.formula, solver.state)
    value = solver.state.value.to_numpy()
    assert value[:100].tolist() == [0] * 100  # literal 2 * v is true
    assert value[100] == 1
    assert solver.state.fixed[0] == n
    left = solver.state.left.to_numpy()
    false = (value[clauses >> 1] ^ clauses & 1).astype(bool)
    assert (left >> 40).tolist() == (~false).sum(1).tolist()
    assert (left & (1 << 40) - 1).tolist() == (clauses * ~false).sum(1).tolist()


@pytest.mark.parametrize("seed", range(3))
def test_formulas_are_satisfied(device, seed):
    """A formula that is not too hard is satisfied by what a few decimations fix and a search."""
    n = 2000
    clauses = survey_propagation.random_formula(n, ratio=3.9, seed=seed)
    solver = survey_propagation.Solver(clauses, n, device)
    solver.propagate()
    for _ in range(3):
        solver.decimate()
        solver.propagate()
    truth, _ = solver.finish()
    assert truth[clauses >> 1].shape == clauses.shape
    assert all(any(truth[literal >> 1] != literal % 2 for literal in clause) for clause in clauses)
    assert survey_propagation.unsatisfied(clauses, truth) == 0


def test_wrong_solutions_are_found():
    clauses = np.array([[0, 2, 5], [1, 2, 4]], np.int32)
    found = [survey_propagation.unsatisfied(clauses, np.array(bits)) for bits in np.ndindex(2, 2, 2)]
    assert found == [0 if (a or b or not c) and (not a or b or c) else 1 for a, b, c in np.ndindex(2, 2, 2)]


def test_formulas_have_three_variables_in_a_clause():
    clauses = survey_propagation.random_formula(50)
    assert clauses.shape == (210, 3)
    assert all(len(set(clause)) == 3 for clause in (clauses >> 1).tolist())
    assert clauses.min() >= 0
    assert clauses.max() < 100
