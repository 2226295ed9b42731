"""Alternating least squares against NumPy, and the error of ratings that were held out."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from thread_teams import run_teams

import atos_py as atos
from atos_py.errors import InvalidArgumentError, UnsupportedTypeError, VerificationError
from atos_py.models.learning.als import normal_equations
from atos_py.models.learning.als.normal_equations import shape_of
from atos_py.models.learning.als.tasks import Side


def planted(num_users: int = 300, num_items: int = 120, rank: int = 4, noise: float = 0.3) -> tuple[Any, Any, Any]:
    """Return ratings with planted factors, of items of uneven popularity."""
    rng = np.random.default_rng(0)
    pairs = np.unique(rng.integers(0, num_users, 9000) * num_items + (num_items * rng.random(9000) ** 3).astype(int))
    users, items = pairs // num_items, pairs % num_items
    left, right = rng.normal(size=(num_users, rank)), rng.normal(size=(num_items, rank))
    values = 3.5 + 0.5 * (left[users] * right[items]).sum(1) + noise * rng.normal(size=users.size)
    return users, items, np.clip(values, 0.5, 7).astype(np.float32)


def half_iteration(matrix: sp.csr_matrix, fixed: np.ndarray, regularization: float, alpha: float | None) -> np.ndarray:
    """Return the factors of the rows, by NumPy's solver."""
    k = fixed.shape[1]
    out, of_all = np.zeros((matrix.shape[0], k)), fixed.T @ fixed
    for v in range(matrix.shape[0]):
        of_row = slice(matrix.indptr[v], matrix.indptr[v + 1])
        rows, values = fixed[matrix.indices[of_row]], matrix.data[of_row].astype(np.float64)
        if alpha is None:
            left, right = rows.T @ rows, rows.T @ values
        else:
            left, right = of_all + (rows.T * (alpha * values)) @ rows, rows.T @ (1 + alpha * values)
        out[v] = np.linalg.solve(left + regularization * np.eye(k), right)
    return out


@pytest.mark.parametrize(("k", "implicit"), [(5, False), (32, True), (70, False), (100, True)])
def test_equals_numpy(device, k, implicit):
    users, items, values = planted()
    matrix = sp.csr_matrix((values, (users, items)), shape=(310, 125))  # with rows and columns that are empty
    found = atos.als(matrix, k, iterations=3, implicit=implicit, alpha=10, regularization=0.5, device=device)
    expected = half_iteration(matrix.T.tocsr(), found.users.to_numpy().astype(np.float64), 0.5, 10 if implicit else None)
    np.testing.assert_allclose(found.items.to_numpy(), expected, atol=2e-4 * abs(expected).max())
    assert not found.items.to_numpy()[120:].any()
    assert not found.users.to_numpy()[300:].any()
    atos.verify_als(matrix, found.users, found.items, regularization=0.5, implicit=implicit, alpha=10)


def test_the_same_in_every_run(device):
    ratings = planted()
    found = [atos.als(ratings, 5, iterations=2, device=device) for _ in range(2)]
    assert found[0].items.to_numpy().tobytes() == found[1].items.to_numpy().tobytes()
    other = atos.als(ratings, 5, iterations=2, seed=1, device=device)
    assert (other.items.to_numpy() != found[0].items.to_numpy()).any()


def test_ratings_that_were_held_out(device):
    """The error is that of NumPy's factors within 1 %, after as many iterations from the same start, and alternating helps."""
    users, items, values = planted()
    held_out = np.random.default_rng(1).random(users.size) < 0.1
    train = tuple(x[~held_out] for x in (users, items, values))
    test = tuple(x[held_out] for x in (users, items, values))
    matrix = sp.csr_matrix((train[2], train[:2]), shape=(300, 120))
    fixed = atos.random(0, np.arange(120)[:, None], np.arange(5)) / np.sqrt(5)
    for _ in range(10):
        rows = half_iteration(matrix, fixed, 0.5, None)
        fixed = half_iteration(matrix.T.tocsr(), rows, 0.5, None)
    reference = np.sqrt(np.mean(((rows[test[0]] * fixed[test[1]]).sum(1) - test[2]) ** 2))
    found = atos.als(matrix, 5, iterations=10, regularization=0.5, device=device)
    assert found.rmse(*test) <= 1.01 * reference
    assert found.rmse(*test) < 0.75 * np.std(test[2])
    assert found.rmse(*train) < atos.als(matrix, 5, iterations=1, regularization=0.5, device=device).rmse(*train)


def test_tiles_cover_the_triangle():
    for k in range(1, 129):
        shape = shape_of(k)
        assert k <= shape.side <= k + 7
        rows, columns = shape.side // shape.height, shape.side // shape.width
        assert sum(columns - row * shape.height // shape.width for row in range(rows)) == shape.tiles
        assert max(shape.tiles * shape.slices, shape.side) <= shape.num_threads <= 1024


@pytest.mark.parametrize(
    ("k", "implicit", "of_rows"), [(5, False, False), (32, True, False), (64, False, True), (100, True, False)]
)
def test_the_tiles_of_a_gpu(monkeypatch, k, implicit, of_rows):
    """The function that a GPU runs, by threads of Python."""
    monkeypatch.setattr(normal_equations, "local_array", lambda dtype, n: np.zeros(n, dtype))
    monkeypatch.setattr(normal_equations, "load4", lambda array, index: tuple(array[index[0], index[1] : index[1] + 4]))
    shape, rng, f32 = shape_of(k), np.random.default_rng(k), np.float32
    fixed, count, alpha = rng.normal(size=(40, k)).astype(f32), 37, f32(3)  # more than a batch
    columns, ratings = rng.integers(0, 40, 60).astype(np.uint32), rng.random(60).astype(f32)
    side = Side(None, columns, ratings, fixed, None, None, None, f32(1), alpha)
    accumulate = normal_equations.make_accumulate(k, "cuda", of_rows, implicit)

    def sums(worker, first, end):
        a, b = worker.scratch(f32, shape.side**2), worker.scratch(f32, shape.side)
        accumulate(worker, a, b, first, end, side)
        return a.reshape(shape.side, -1).copy(), b.copy()

    for first, end in ((2, 2), (2, 2 + count)):
        a, b = run_teams(shape.num_threads, functools.partial(sums, first=first, end=end))[0]
        rows = (fixed[first:end] if of_rows else fixed[columns[first:end]]).astype(np.float64)
        given = ratings[first:end].astype(np.float64)
        weights = alpha * given if implicit else np.ones(end - first)
        np.testing.assert_allclose(np.triu(a)[:k, :k], np.triu((rows.T * weights) @ rows), rtol=1e-5, atol=1e-4)
        targets = 0 * given if of_rows else 1 + alpha * given if implicit else given
        np.testing.assert_allclose(b[:k], rows.T @ targets, rtol=1e-5, atol=1e-4)
        assert not np.triu(a)[:, k:].any()
        assert not b[k:].any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ratings": 3}, "ratings must be a sparse matrix of SciPy, or"),
        ({"ratings": ([0, -1], [0, 1], [1.0, 2.0])}, "users must be numbers from 0"),
        ({"ratings": ([0], [0, 1], [1.0])}, "items must be numbers from 0, one for each"),
        ({"ratings": ([], [], [])}, "users must be numbers from 0"),
        ({"k": 129}, r"k must be from 1 to 128 \(got 129\)"),
        ({"regularization": 0}, "regularization must be positive"),
        ({"alpha": -1}, "alpha not negative"),
        ({"iterations": 0}, "iterations must be"),
        ({"implicit": True, "ratings": ([0], [0], [-1.0])}, r"are not negative \(got -1.0\)"),
        ({"ratings": ([0, 3], [0, 1], [1.0, np.inf])}, "finite numbers of float32; that of user 3 and item 1 is inf"),
        ({"ratings": ([0, 3], [0, 1], [1.0, np.nan])}, "finite numbers of float32; that of user 3 and item 1 is nan"),
        ({"ratings": ([0], [0], [1e39])}, "that of user 0 and item 0 is 1e[+]39"),
        ({"ratings": sp.coo_array(([np.inf], ([2], [1])))}, "that of user 2 and item 1 is inf"),
        ({"ratings": sp.coo_array(np.ones(3))}, r"must be a matrix of users and items \(got shape \(3,\)\)"),
        ({"ratings": ([2**40], [0], [1.0])}, r"users must be numbers below 4294967295 \(got 1099511627776\): each number"),
        ({"ratings": ([0], [2**63], [1.0])}, r"items must be numbers below 4294967295 \(got 9223372036854775808\)"),
        ({"regularization": 1e39}, r"normal numbers of float32, up to 3.4e\+38 \(got 1e\+39 and 40\)"),
        ({"regularization": 1e-46}, r"normal numbers of float32, up to 3.4e\+38 \(got 1e-46 and 40\)"),
        ({"alpha": 1e39}, r"normal numbers of float32, up to 3.4e\+38 \(got 0.1 and 1e\+39\)"),
    ],
)
def test_what_is_refused(change, message):
    with pytest.raises(InvalidArgumentError, match=message):
        atos.als(**{"ratings": ([0, 1], [0, 1], [1.0, 2.0]), "k": 2, "device": "cpu", **change})


def test_singular_equations_are_told(device):
    with pytest.raises(InvalidArgumentError, match="rows are singular in float32: give a regularization above"):
        atos.als(([0, 1], [0, 0], [1e18, 1e18]), 5, regularization=1e-30, device=device)


@pytest.mark.parametrize("implicit", [False, True])
def test_numbers_beyond_float32_are_told(device, implicit):
    """The squares of the factors of such ratings are infinite, and a rating beside an infinite one would count as 0."""
    with pytest.raises(InvalidArgumentError, match="rows have numbers beyond float32"):
        atos.als(([0, 0, 1], [0, 1, 1], [1e30, 1.0, 1.0]), 1, implicit=implicit, alpha=1e10, device=device)


@pytest.mark.parametrize("kind", ["coo", "csr", "csc"])
def test_a_pair_that_is_there_twice_counts_twice(kind):
    """In any form of the ratings; to add them up, as `tocsr` of a COO matrix does, would be one rating of 8."""
    triple = np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1]), np.array([4.0, 4.0, 2.0, 1.0])
    users, items, values = triple
    matrix = {
        "coo": sp.coo_array((values, (users, items))),
        "csr": sp.csr_array((values, items, np.array([0, 2, 4]))),
        "csc": sp.csc_array((values, users, np.array([0, 3, 4]))),
    }[kind]
    options = {"k": 1, "iterations": 30, "regularization": 0.5, "device": "cpu"}
    found, expected = atos.als(matrix, **options), atos.als(triple, **options)
    np.testing.assert_array_equal(found.users.to_numpy(), expected.users.to_numpy())
    atos.verify_als(matrix, expected.users, expected.items, regularization=0.5)
    assert abs(expected.predict([0], [0])[0] - 3.764) < 1e-3


def test_ratings_that_are_no_numbers_are_refused():
    with pytest.raises(UnsupportedTypeError, match="ratings must be numbers, not complex128"):
        atos.als(([0], [0], [1j]), 1, device="cpu")


def test_predictions_of_others_are_refused():
    found = atos.als(([0, 1], [0, 0], [1.0, 2.0]), 5, device="cpu")
    with pytest.raises(InvalidArgumentError, match="items must be numbers below 1"):
        found.predict([0], [1])
    with pytest.raises(InvalidArgumentError, match="as many as users"):
        found.predict([0], [0, 0])


def test_wrong_factors_are_found():
    ratings = planted()
    found = atos.als(ratings, 5, device="cpu")
    items = found.items.to_numpy().copy()
    items[7, 2] += 0.01
    with pytest.raises(VerificationError, match="item 7 are not the best"):
        atos.verify_als(ratings, found.users, items)
    with pytest.raises(VerificationError):
        atos.verify_als(ratings, found.users, found.items, regularization=0.2)
