"""Collective operations of workers and groups on vectors and matrices, against NumPy."""

from __future__ import annotations

import functools
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from shared_tasks import launch
from thread_teams import run_teams

import atos_py as atos
from atos_py.linalg import matrices

SIDES = [1, 2, 3, 4, 7, 8, 31, 32, 33, 64, 128]


@functools.cache
def vector_task(k: int, size: int) -> atos.Task:
    """Return a task in which each team reduces and changes a vector of its own."""

    @atos.task
    def reduce(worker, v, given, other, out, changed):
        team = worker.group(size)
        n = given.shape[1]
        x, y = team.scratch(np.float32, k), team.scratch(np.float32, k)
        for row in range(v * 64 + team.index, min(v * 64 + 64, given.shape[0]), team.count):
            for f in team.split(n):
                x[f], y[f] = given[row, f], other[row, f]
            values = (
                atos.linalg.sum(team, x, k),
                atos.linalg.min(team, x, k),
                atos.linalg.max(team, x, k),
                atos.linalg.dot(team, x, y, k),
                atos.linalg.logsumexp(team, x, k),
                np.float32(atos.linalg.any_updated(team, x, y, k, 0.5)),
            )
            atos.linalg.softmax(team, x, k)
            atos.linalg.normalize(team, y, k)
            for f in team.split(n):
                changed[row, f, 0], changed[row, f, 1] = x[f], y[f]
            if team.rank == team.size - 1:
                out[row, 0], out[row, 1], out[row, 2] = values[0], values[1], values[2]
                out[row, 3], out[row, 4], out[row, 5] = values[3], values[4], values[5]
            team.sync()

    return reduce


@pytest.mark.parametrize(("k", "size", "worker"), [(1, 2, "thread"), (3, 4, "warp"), (32, 8, "cta"), (128, 32, "warp")])
def test_vectors(device, worker, k, size):
    rng = np.random.default_rng(k)
    rows = 100
    x = rng.normal(size=(rows, k)).astype(np.float32) * 3
    y = (np.abs(x) + rng.random((rows, 1)) * (rng.random((rows, k)) < 0.3)).astype(np.float32)
    x[::7] = y[::7]
    y[5] = 0
    out = atos.zeros((rows, 6), device=device)
    changed = atos.zeros((rows, k, 2), device=device)
    queue = atos.Queue(10, device=device)
    queue.push([0, 1])
    there = [atos.asarray(given, device=device) for given in (x, y)]
    launch(queue, worker, vector_task(k, size), *there, out, changed, num_threads=64)
    wide, other = x.astype(np.float64), y.astype(np.float64)
    top = wide.max(1)
    log = top + np.log(np.exp(wide - top[:, None]).sum(1))
    moved = (np.abs(wide - other) > 0.5).any(1)
    expected = np.stack([wide.sum(1), wide.min(1), top, (wide * other).sum(1), log, moved], axis=1)
    np.testing.assert_allclose(out.to_numpy(), expected, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(changed.to_numpy()[:, :, 0], np.exp(wide - log[:, None]), rtol=1e-5, atol=1e-6)
    whole = other.sum(1, keepdims=True)
    np.testing.assert_allclose(changed.to_numpy()[:, :, 1], other / np.where(whole == 0, 1, whole), rtol=1e-5)


@atos.task
def odd_values(worker, v, out):
    x, y = worker.scratch(np.float64, 5), worker.scratch(np.float64, 5)
    for f in worker.split(5):
        x[f], y[f] = -np.inf, 0.0
    lowest = atos.linalg.softmax(worker, x, 5)
    kept = x[3]
    worker.sync()
    if worker.rank == 0:
        x[3] = 2.0
    some = atos.linalg.logsumexp(worker, x, 5)
    worker.sync()
    if worker.rank == 0:
        x[3] = np.nan
    moved = atos.linalg.any_updated(worker, x, y, 4, 1e300)
    if worker.rank == 0:
        out[0], out[1], out[2], out[3] = lowest, kept, some, moved


def test_infinities_and_nan(device, worker):
    """A vector of zeros in logarithms stays what it is, and a NaN counts as a change."""
    out = atos.zeros(4, dtype=np.float64, device=device)
    queue = atos.Queue(1, device=device)
    queue.push(0)
    launch(queue, worker, odd_values, out)
    assert out.to_numpy().tolist() == [-np.inf, -np.inf, 2.0, 1.0]


@functools.cache
def task_of_matrices(most: int, dtype: Any, of_group: bool) -> atos.Task:
    """Return a task that solves, factorises, inverts and multiplies; by a whole worker, or by the first group of 8 threads."""
    most_cells = most * most

    @atos.task
    def solve_all(worker, v, matrices, vectors, solutions, factors, inverses, products, definite):
        k = vectors.shape[1]
        cells = k * k
        if of_group:
            team = worker.group(8)
            a, b, x = team.scratch(dtype, most_cells), team.scratch(dtype, most), team.scratch(dtype, most)
            if team.index > 0:
                return
        else:
            team = worker
            a, b, x = worker.scratch(dtype, most_cells), worker.scratch(dtype, most), worker.scratch(dtype, most)
        for place in team.split(cells):
            a[place] = matrices[v, place]
        for i in team.split(k):
            b[i] = vectors[v, i]
        fine = atos.linalg.solve(team, a, b, k)
        for i in team.split(k):
            solutions[v, i] = b[i]
        team.sync()
        for place in team.split(cells):
            a[place] = matrices[v, place]
        fine &= atos.linalg.cholesky(team, a, k)
        for place in team.split(cells):
            factors[v, place] = a[place] if place // k <= place % k else 0
        team.sync()
        for place in team.split(cells):
            a[place] = matrices[v, place]
        fine &= atos.linalg.inverse(team, a, k)
        for place in team.split(cells):
            inverses[v, place] = a[place]
        atos.linalg.matvec(team, x, a, b, k)
        for i in team.split(k):
            products[v, i, 0] = x[i]
        atos.linalg.outer(team, a, b, x, k)
        for i in team.split(k):
            products[v, i, 1] = a[i * k]
        if team.rank == 0:
            definite[v] = fine
        team.sync()

    return solve_all


def check_matrices(
    device: atos.Device, worker: str, k: int, most: int, dtype: Any, tolerance: float, of_group: bool = False
) -> None:
    rng = np.random.default_rng(k)
    count = 3
    raw = rng.normal(size=(count, k, k))
    matrices = (raw @ raw.transpose(0, 2, 1) / k + 0.5 * np.eye(k)).astype(dtype)
    vectors = rng.normal(size=(count, k)).astype(dtype)
    made = [atos.zeros(shape, dtype=dtype, device=device) for shape in ((count, k), (count, k * k), (count, k * k))]
    products, definite = atos.zeros((count, k, 2), dtype=dtype, device=device), atos.zeros(count, dtype=np.int32, device=device)
    queue = atos.Queue(count, device=device)
    queue.push(np.arange(count))
    there = [atos.asarray(x, device=device) for x in (matrices.reshape(count, -1), vectors)]
    launch(queue, worker, task_of_matrices(most, dtype, of_group), *there, *made, products, definite, num_threads=64)
    solutions, factors, inverses = (x.to_numpy().astype(np.float64) for x in made)
    wide = matrices.astype(np.float64)
    expected = np.linalg.solve(wide, vectors.astype(np.float64)[:, :, None])[:, :, 0]
    inverse = np.linalg.inv(wide)

    def near(found: Any, right: Any) -> None:
        np.testing.assert_allclose(found, right, atol=tolerance * np.abs(right).max(), rtol=0)

    near(solutions, expected)
    near(factors.reshape(wide.shape), np.linalg.cholesky(wide).transpose(0, 2, 1))
    near(inverses.reshape(wide.shape), inverse)
    product = np.einsum("vij,vj->vi", inverse, expected)
    near(products.to_numpy()[:, :, 0], product)
    near(products.to_numpy()[:, :, 1], expected * product[:, :1])
    assert definite.to_numpy().tolist() == [1] * count


@pytest.mark.parametrize("k", SIDES)
def test_matrices(device, k):
    check_matrices(device, "cta", k, 128, np.float32, 1e-5)


@pytest.mark.parametrize(("k", "worker"), [(5, "thread"), (12, "warp")])
def test_matrices_by_each_worker_and_by_groups(device, k, worker):
    check_matrices(device, worker, k, 12, np.float64, 1e-12)
    check_matrices(device, worker, k, 12, np.float32, 1e-5, of_group=True)


@atos.task
def factorize_indefinite(worker, v, out):
    a = worker.scratch(np.float64, 36)
    for place in worker.split(36):
        a[place] = (1.0 if place // 6 != v else -1.0) if place // 6 == place % 6 else 0.0
    first = atos.linalg.cholesky(worker, a, 6)
    for place in worker.split(36):
        a[place] = (1.0 if place // 6 != v else -1.0) if place // 6 == place % 6 else 0.0
    second = atos.linalg.inverse(worker, a, 6)
    if worker.rank == 0:
        out[v] = first + 2 * second


def test_what_is_not_positive_definite_is_told(device, worker):
    out = atos.full(7, -1, dtype=np.int32, device=device)
    queue = atos.Queue(10, device=device)
    queue.push(np.arange(7))
    launch(queue, worker, factorize_indefinite, out)
    assert out.to_numpy().tolist() == [0] * 6 + [3]


@pytest.mark.parametrize(("k", "threads"), [(1, 32), (7, 32), (32, 64), (50, 96), (104, 128)])
def test_equations_by_threads_that_meet_at_barriers(monkeypatch, k, threads):
    """As on a GPU: what a thread does between two barriers does not depend on what others do meanwhile."""
    monkeypatch.setattr(matrices, "local_array", lambda dtype, n: np.zeros(n, dtype))
    rng = np.random.default_rng(k)
    left, expected = rng.normal(size=(k, 2 * k)), rng.normal(size=k)
    matrix = left @ left.T + np.eye(k)
    a, b = matrix.reshape(-1).copy(), matrix @ expected
    assert all(run_teams(threads, lambda team: matrices.solve(team, a, b, k)))
    np.testing.assert_allclose(b, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(np.triu(a.reshape(k, k)), np.linalg.cholesky(matrix).T, rtol=1e-6, atol=1e-8)


def test_a_task_is_the_first_to_ask_for_the_module():
    """The package imports `linalg` when somebody asks for it, which the code of a task does too."""
    code = """
import numpy as np, atos_py as atos

@atos.task
def norm(worker, v, x, out):
    out[0] = atos.linalg.dot(worker, x, x, 3)

assert "linalg" not in vars(atos)
x, out = atos.asarray(np.arange(3.0), device="cpu"), atos.zeros(1, dtype=np.float64, device="cpu")
queue = atos.Queue(1, device="cpu")
queue.push(0)
queue.launch_thread(norm, x, out)
assert out[0] == 5
"""
    done = subprocess.run([sys.executable, "-"], input=code, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
