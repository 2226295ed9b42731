"""The triangular solves of the example: SciPy's results, with a small backward error, and factors as they are defined."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from cases import CASES
from hypothesis import given, settings
from hypothesis import strategies as st
from repository import load_example
from scipy.sparse.linalg import spsolve_triangular

import atos_py as atos

example = load_example("triangular_solve")


def matrix_of(n, seed=0, per_row=4):
    """Return a sparse matrix that is no triangle, whose triangles can be solved without large errors."""
    rng, entries = np.random.default_rng(seed), per_row * n
    rows, columns = rng.integers(0, n, (2, entries))
    values = np.where(rows == columns, 0, rng.uniform(-1, 1, entries) / per_row)
    diagonal = rng.uniform(1, 2, n) * rng.choice([-1, 1], n)
    return (scipy.sparse.coo_matrix((values, (rows, columns)), shape=(n, n)) + scipy.sparse.diags(diagonal)).tocsr()


def triangle_of(matrix, lower, transposed, unit):
    """Return the matrix of the system, made by SciPy alone."""
    triangle = scipy.sparse.tril(matrix) if lower else scipy.sparse.triu(matrix)
    if unit:
        triangle = triangle + scipy.sparse.diags(1 - triangle.diagonal())
    return (triangle.T if transposed else triangle).tocsr()


def right_sides(n, k):
    """Return k right-hand sides, or for k = 0 one without an axis of its own."""
    return np.random.default_rng(k).uniform(-1, 1, (n, k) if k else n)


def check(matrix, k, lower, transposed, unit, device, **options):
    triangle, b = triangle_of(matrix, lower, transposed, unit), right_sides(matrix.shape[0], k)
    before = b.copy()
    expected = spsolve_triangular(triangle, b, lower=lower != transposed)
    solver = example.Triangular(matrix, lower=lower, transposed=transposed, unit=unit, device=device)
    for _ in range(2):  # the second solve finds what the first one has left
        x = solver.solve(b, **options)
        assert isinstance(x, np.ndarray)
        assert x.shape == b.shape
        example.verify(triangle, x, b)
        np.testing.assert_allclose(x, expected, rtol=1e-10, atol=1e-10)
    assert np.array_equal(b, before)


@pytest.mark.parametrize("unit", [False, True], ids=["diagonal", "unit"])
@pytest.mark.parametrize("transposed", [False, True], ids=["plain", "transposed"])
@pytest.mark.parametrize("lower", [True, False], ids=["lower", "upper"])
@pytest.mark.parametrize("k", [1, 8, 32])
def test_each_triangle(device, worker, k, lower, transposed, unit):
    check(matrix_of(400), k, lower, transposed, unit, device, worker=worker)


@pytest.mark.parametrize("schedule", [{"barrier": True}, {"persistent": False}], ids=str)
@pytest.mark.parametrize("k", [0, 5])
def test_each_schedule(device, k, schedule):
    check(matrix_of(200), k, True, False, False, device, **schedule)


def test_a_column_of_many_rows(device):
    """Several workers share an item of so many iterations."""
    n = 6000
    values = np.concatenate([np.full(n, 2.0), np.full(2 * n - 2, 1 / n)])
    rows = np.concatenate([np.arange(n), np.arange(1, n), np.full(n - 1, n - 1)])
    columns = np.concatenate([np.arange(n), np.zeros(n - 1, int), np.arange(n - 1)])
    matrix = scipy.sparse.csr_matrix((values, (rows, columns)), shape=(n, n))
    for k in (1, 8):
        check(matrix, k, True, False, False, device)


sizes, switches = st.integers(1, 12), st.booleans()


@given(sizes, st.integers(0, 99), st.integers(0, 3), st.integers(0, 9), switches, switches, switches)
@settings(max_examples=CASES, deadline=None)
def test_small_matrices(n, seed, per_row, k, lower, transposed, unit):
    check(matrix_of(n, seed, per_row), k, lower, transposed, unit, "cpu")


@pytest.mark.parametrize("form", ["csr_matrix", "csc_matrix", "coo_matrix", "csr_array"])
def test_each_form_of_scipy(form):
    check(getattr(scipy.sparse, form)(matrix_of(50)), 8, False, True, False, "cpu")


def test_a_matrix_without_its_diagonal():
    matrix = matrix_of(50)
    alone = scipy.sparse.tril(matrix, -1)
    x = example.Triangular(alone, unit=True, device="cpu").solve(np.ones(50))
    example.verify(triangle_of(matrix, True, False, True), x, np.ones(50))
    with pytest.raises(np.linalg.LinAlgError, match="row 0 of the matrix has nothing on the diagonal"):
        example.Triangular(alone, device="cpu")


@pytest.mark.parametrize("shape", [(20,), (5, 2), (10, 2, 1), ()])
def test_right_hand_sides_of_another_shape(shape):
    with pytest.raises(ValueError, match=r"right-hand sides have the shape \(10,\) or \(10, k\), and not \("):
        example.Triangular(matrix_of(10), device="cpu").solve(np.ones(shape))


def test_no_counter_waits():
    solver = example.Triangular(matrix_of(100), device="cpu")
    for k in (1, 8):
        solver.solve(right_sides(100, k), debug=True)
        assert solver.stats.waiting == ()


@pytest.mark.parametrize("wrong", [1e-12, 1.0, np.nan])
def test_the_certificate_finds_a_wrong_number(wrong):
    matrix = triangle_of(matrix_of(100), True, False, False)
    b = right_sides(100, 8)
    x = example.Triangular(matrix, device="cpu").solve(b)
    assert example.verify(matrix, x, b) < 1e-15
    x[50, 3] += wrong
    with pytest.raises(AssertionError):
        example.verify(matrix, x, b)


def poisson(side):
    line = scipy.sparse.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(side, side))
    return scipy.sparse.kronsum(line, line).tocsr()


def test_incomplete_factors_multiply_to_the_entries_of_the_matrix():
    """That, and no entry elsewhere, is what defines both (Saad 2003, Proposition 10.4)."""
    for matrix in (poisson(7), matrix_of(60)):
        found = example.incomplete_lu(matrix)
        lower = scipy.sparse.tril(found, -1) + scipy.sparse.identity(found.shape[0])
        difference = (lower @ scipy.sparse.triu(found) - matrix).toarray()
        places = matrix.toarray() != 0
        assert np.abs(difference[places]).max() < 1e-14
        assert np.abs(difference[~places]).max() > 1e-3  # it is incomplete
        assert not found.toarray()[~places].any()
    matrix = poisson(7)
    lower = example.incomplete_cholesky(matrix)
    places = matrix.toarray() != 0
    assert np.abs((lower @ lower.T - matrix).toarray()[places]).max() < 1e-14
    assert not lower.toarray()[~np.tril(places)].any()


def test_factors_without_fill_solve_the_system(device):
    """A matrix with three diagonals is the product of its incomplete factors."""
    rng, n = np.random.default_rng(1), 100
    diagonals = rng.uniform(-1, 1, n - 1), rng.uniform(2, 3, n), rng.uniform(-1, 1, n - 1)
    matrix = scipy.sparse.diags(diagonals, [-1, 0, 1]).tocsr()
    factors, b = example.incomplete_lu(matrix), right_sides(n, 8)
    first = example.Triangular(factors, unit=True, device=device)
    second = example.Triangular(factors, lower=False, device=device)
    assert np.abs(matrix @ second.solve(first.solve(b)) - b).max() < 1e-13


def solvers_of(matrix, device, convert=lambda matrix: matrix):
    lower, both = convert(example.incomplete_cholesky(matrix)), convert(example.incomplete_lu(matrix))
    return (
        (example.Triangular(lower, device=device), example.Triangular(lower, transposed=True, device=device)),
        (example.Triangular(both, unit=True, device=device), example.Triangular(both, lower=False, device=device)),
    )


def test_conjugate_gradients(device):
    matrix = poisson(20)
    b = right_sides(400, 0)
    expected = scipy.sparse.linalg.spsolve(matrix.tocsc(), b)
    plain, history = example.conjugate_gradients(matrix, b)
    np.testing.assert_allclose(plain, expected, rtol=1e-6)
    for factors in solvers_of(matrix, device):
        x, faster = example.conjugate_gradients(matrix, b, *factors)
        np.testing.assert_allclose(x, expected, rtol=1e-6)
        assert len(faster) < len(history) / 2
        assert faster[-1] < 1e-9 < faster[0]


@pytest.mark.gpu
@pytest.mark.parametrize("form", ["csr_matrix", "csc_matrix"])
@pytest.mark.parametrize("k", [0, 1, 8, 32])
def test_matrices_of_cupy(k, form):
    cupy, sparse = pytest.importorskip("cupy"), pytest.importorskip("cupyx.scipy.sparse")
    matrix, b = matrix_of(400), right_sides(400, k)
    on_gpu = getattr(sparse, form)(matrix)
    for lower, transposed, unit in ((True, False, True), (False, False, False), (True, True, False), (False, True, True)):
        solver = example.Triangular(on_gpu, lower=lower, transposed=transposed, unit=unit)
        assert solver.device == atos.device("cuda")
        x = solver.solve(cupy.asarray(b))
        assert isinstance(x, cupy.ndarray)
        assert x.shape == b.shape
        example.verify(triangle_of(matrix, lower, transposed, unit), x.get(), b)
    x = example.Triangular(on_gpu).solve(cupy.asfortranarray(cupy.asarray(b)))
    example.verify(triangle_of(matrix, True, False, False), x.get(), b)


@pytest.mark.gpu
def test_conjugate_gradients_of_cupy():
    cupy, sparse = pytest.importorskip("cupy"), pytest.importorskip("cupyx.scipy.sparse")
    matrix, b = poisson(20), right_sides(400, 0)
    given = sparse.csr_matrix(matrix), cupy.asarray(b)
    _, history = example.conjugate_gradients(*given)
    for factors in solvers_of(matrix, None, sparse.csr_matrix):
        x, faster = example.conjugate_gradients(*given, *factors)
        assert isinstance(x, cupy.ndarray)
        assert np.linalg.norm(matrix @ x.get() - b) < 1e-9 * np.linalg.norm(b)
        assert len(faster) < len(history) / 2
