"""The examples that are whole programs are right, and their verifiers find what is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from repository import load_example

import atos_py as atos

barnes_hut, survey_propagation = load_example("barnes_hut"), load_example("survey_propagation")
mesh_refinement = load_example("mesh_refinement")
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


def check_refined(mesh, points):
    """Check a mesh that was refined from these points."""
    assert mesh_refinement.verify(mesh) > 30 - 1e-9
    assert mesh.left[0] == 0
    assert np.array_equal(np.c_[mesh.points.x[: len(points)], mesh.points.y[: len(points)]], points)
    assert np.isin(np.arange(len(points)), mesh.triangles.corner.to_numpy()).all()


@pytest.mark.parametrize(("n", "seed"), [(1, 0), (2, 1), (10, 2), (100, 3), (3000, 4)])
def test_meshes(device, n, seed):
    points = mesh_refinement.random_points(n, seed)
    mesh = mesh_refinement.triangulated(points, device)
    assert mesh_refinement.verify(mesh) < 30
    assert len(mesh.triangles) == 2 * n + 2
    mesh_refinement.refined(mesh)
    check_refined(mesh, points)
    num_points = len(mesh.points)
    mesh_refinement.refined(mesh)
    assert len(mesh.points) == num_points  # nothing is bad now


@pytest.mark.parametrize("wave", [1, 64, 1 << 17])
def test_a_mesh_by_every_worker(device, worker, wave):
    """Claims that are mixed lose more often, and the strongest still holds."""
    points = mesh_refinement.random_points(300, 5)
    mesh, n = mesh_refinement.triangulated(points, device), 602
    queue, items = atos.Queue(n, dtype=mesh_refinement.ITEM, device=device), np.zeros(n, mesh_refinement.ITEM)
    items["triangle"] = np.arange(n)
    queue.push(items, task=mesh_refinement.plan)
    tasks = mesh_refinement.plan, mesh_refinement.refine
    getattr(queue, f"launch_{worker}")(tasks, mesh, 0, wave, barrier=True)
    check_refined(mesh, points)


@pytest.mark.parametrize("pool", ["points", "triangles"])
def test_a_mesh_in_a_pool_that_is_full(device, pool):
    points = mesh_refinement.random_points(200, 6)
    mesh = mesh_refinement.triangulated(points, device)
    getattr(mesh, pool).resize(len(getattr(mesh, pool)) + 20)
    with pytest.raises(atos.PoolFullError) as full:
        mesh_refinement.refined(mesh)
    mesh_refinement.verify(mesh)  # what was done is whole
    getattr(mesh, pool).resize(20 * full.value.needed)
    mesh_refinement.refined(mesh)
    check_refined(mesh, points)


def test_a_cavity_that_is_too_large(device):
    """All points are on a circle, and so are in the cavity of its center; what is left is Delaunay."""
    angles = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    circle = (mesh_refinement.SIDE * (0.5 + 0.4 * np.c_[np.cos(angles), np.sin(angles)])).astype(np.int64)
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]) * mesh_refinement.SIDE
    mesh = mesh_refinement.triangulated(np.concatenate([corners, circle]), device)
    mesh_refinement.verify(mesh)
    mesh_refinement.refined(mesh)
    mesh_refinement.verify(mesh)
    assert mesh.left[0] > 0


@pytest.mark.parametrize("where", ["corner", "twin", "moved", "gone", "flipped"])
def test_wrong_meshes_are_found(where):
    mesh = mesh_refinement.triangulated(mesh_refinement.random_points(50, 7), "cpu")
    corner, twin = mesh.triangles.corner.to_numpy(), mesh.triangles.twin.to_numpy()
    inner = np.flatnonzero((twin >= 0).all(axis=1))[3]
    if where == "corner":  # clockwise
        corner[inner] = corner[inner, ::-1]
    elif where == "twin":
        twin[inner] = np.roll(twin[inner], 1)
    elif where == "moved":
        mesh.points.x[30] = int(mesh.points.x[30]) + mesh_refinement.SIDE // 50
    elif where == "gone":  # a hole
        for edge in twin[inner]:
            twin[edge // 3, edge % 3] = -1
        corner[inner], twin[inner] = corner[0], twin[0]
    else:  # the other diagonal of the two triangles at an edge, where they make a convex quadrilateral
        flip(mesh, corner, twin)
    mesh.triangles.corner[:], mesh.triangles.twin[:] = corner, twin
    with pytest.raises(AssertionError):
        mesh_refinement.verify(mesh)


def flip(mesh, corner, twin):
    """Flip the first edge that can be."""
    xy = np.c_[mesh.points.x[:], mesh.points.y[:]].astype(float)
    for t, edges in enumerate(twin):
        u, k = edges[0] // 3, edges[0] % 3
        a, b, c = corner[t]
        d = corner[u, (k + 2) % 3]
        turns = [np.linalg.det([xy[q] - xy[p], xy[r] - xy[p]]) for p, q, r in ((a, d, c), (d, b, c))]
        if edges[0] >= 0 and min(turns) > 0:
            bc, ca, ad, db = twin[t, 1], twin[t, 2], twin[u, (k + 1) % 3], twin[u, (k + 2) % 3]
            corner[t], corner[u] = (a, d, c), (d, b, c)
            twin[t], twin[u] = (ad, 3 * u + 2, ca), (db, bc, 3 * t + 1)
            for other, mine in ((ad, 3 * t), (ca, 3 * t + 2), (db, 3 * u), (bc, 3 * u + 1)):
                if other >= 0:
                    twin[other // 3, other % 3] = mine
            return


NUMBER = st.one_of(
    st.integers(0, mesh_refinement.SIDE), st.sampled_from([0, 1, mesh_refinement.SIDE // 2, mesh_refinement.SIDE])
)


@given(st.lists(NUMBER, min_size=8, max_size=8), st.integers(0, 2))
def test_points_are_inside_of_circles_exactly(numbers, near):
    """Also a fourth point next to one on the circle: that across from a corner of a rectangle."""
    if near:
        ax, ay, cx, cy = numbers[:4]
        numbers = [ax, ay, cx, ay, cx, cy, ax + (near - 1) * (1 if ax < cx else -1), cy]
    ax, ay, bx, by, cx, cy, x, y = numbers
    rows = [(px - x, py - y, (px - x) ** 2 + (py - y) ** 2) for px, py in ((ax, ay), (bx, by), (cx, cy))]
    (a, b, c), (d, e, f), (g, h, i) = rows
    determinant = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
    assert mesh_refinement.in_circle(*numbers) == (determinant > 0)
    assert mesh_refinement.in_circle(*map(np.int64, numbers)) == (determinant > 0)  # in 64 bits
