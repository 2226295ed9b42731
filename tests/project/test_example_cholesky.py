"""The tiled Cholesky factorization of the example: SciPy's factor, by every worker and schedule, and each task once."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from repository import load_example

import atos_py as atos
from atos_py.errors import LaunchConfigError

cholesky = load_example("cholesky")


def matrix_of(size):
    """Return a symmetric positive definite matrix of size x size tiles."""
    half = np.random.default_rng(size).standard_normal((size * cholesky.SIDE,) * 2)
    return half @ half.T + len(half) * np.eye(len(half))


def check(matrix, found, stats):
    np.testing.assert_allclose(found, scipy.linalg.cholesky(matrix), rtol=1e-9, atol=1e-9)
    size = len(matrix) // cholesky.SIDE
    pairs = size * (size - 1) // 2
    assert stats.tasks_run_by == {"potrf": size, "trsm": pairs, "syrk": pairs, "gemm": pairs * (size - 2) // 3}


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_any_size(size):
    matrix = matrix_of(size)
    before = matrix.copy()
    check(matrix, *cholesky.factorize(matrix))
    assert np.array_equal(matrix, before)


@pytest.mark.parametrize("schedule", [{}, {"barrier": True}, {"persistent": False}], ids=str)
def test_any_worker_and_schedule(device, worker, schedule):
    size, matrix = 4, matrix_of(4)
    a, missing = atos.asarray(matrix.copy(), device=device), atos.asarray(cholesky.arrivals(size), device=device)
    queue = atos.Queue(size**2, dtype=cholesky.STEP, device=device)
    queue.push([(0, 0, 0)])
    tasks = cholesky.potrf, cholesky.trsm, cholesky.syrk, cholesky.gemm
    if device.kind == "cuda" and worker == "thread":  # of which a block has 32 or more, each with a tile of 8 kB
        with pytest.raises(LaunchConfigError, match="bytes of shared memory, more than"):
            queue.launch(tasks, size, a, missing, worker=worker, **schedule)
        return
    stats = queue.launch(tasks, size, a, missing, worker=worker, **schedule)
    check(matrix, np.triu(a.to_numpy()), stats)
    assert not missing.to_numpy().any()


def test_checks_find_nothing():
    _, stats = cholesky.factorize(matrix_of(3), debug=True)
    assert [each.name for each in stats.waiting] == []
