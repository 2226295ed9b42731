"""Cholesky factorization by tiles
===============================

This program factorizes a symmetric positive definite matrix, A = U'U, in tiles of 32 x 32.
``python examples/cholesky.py [TILES IN A ROW]``

A task works on one tile, and there are four kinds. `potrf` factorizes a tile of the diagonal. `trsm` divides the other tiles of
that row by its factor. `syrk` and `gemm` subtract products of tiles of that row from the tiles below. Nothing else orders the
tasks than what they read: each has a counter of the tasks that it waits for, and the last of these to arrive pushes it.

Step k works on row k. A task is named by its step and its tile, (k, i, j) with k <= i <= j.
"""

from __future__ import annotations

import sys

import numpy as np
import scipy.linalg

import atos_py as atos

SIDE, ELEMENTS = 32, 1024  # of a tile
STEP = np.dtype([("k", np.int32), ("i", np.int32), ("j", np.int32)])


# %%
# Step k of a tile waits for step k - 1 of the tile, which comes in order. Besides, `trsm` waits for `potrf`, and products wait
# for their factors.
def arrivals(size: int) -> np.ndarray:
    """Return how many tasks each task waits for, by k, i and j."""
    k, i, j = np.indices((size, size, size))
    others = np.where(k == i, k < j, np.where(i == j, 1, 2))
    return np.where((k <= i) & (i <= j), (k > 0) + others, 0).astype(np.int32).ravel()


def arrive(worker: atos.Worker, missing, size, k, i, j):
    """Arrive at a task, which the last one to arrive pushes, as what it is."""
    place = (k * size + i) * size + j
    if k == j:
        worker.arrive(missing, place, push=(k, i, j), task=potrf)
    elif k == i:
        worker.arrive(missing, place, push=(k, i, j), task=trsm)
    elif i == j:
        worker.arrive(missing, place, push=(k, i, j), task=syrk)
    else:
        worker.arrive(missing, place, push=(k, i, j), task=gemm)


@atos.task
def potrf(worker: atos.Worker, step, size, a, missing):
    """Factorize a tile of the diagonal; the tiles beside it wait for that."""
    tile, first = worker.scratch(np.float64, ELEMENTS), step.k * SIDE
    for e in worker.split(ELEMENTS):
        tile[e] = a[first + e // SIDE, first + e % SIDE]
    worker.sync()
    atos.linalg.cholesky(worker, tile, SIDE)
    for e in worker.split(ELEMENTS):
        a[first + e // SIDE, first + e % SIDE] = tile[e]
    worker.sync()  # all threads have written before one arrives
    for j in worker.split(range(step.k + 1, size)):
        arrive(worker, missing, size, step.k, step.k, j)


@atos.task
def trsm(worker: atos.Worker, step, size, a, missing):
    """Solve U'X = A for a tile beside a factor U; the products that X is in wait for that."""
    first = step.k * SIDE
    for column in worker.split(range(step.j * SIDE, (step.j + 1) * SIDE)):
        for row in range(first, first + SIDE):
            value = a[row, column]
            for m in range(first, row):
                value -= a[m, row] * a[m, column]
            a[row, column] = value / a[row, row]
    worker.sync()
    for i in worker.split(range(step.k + 1, size)):
        arrive(worker, missing, size, step.k, min(i, step.j), max(i, step.j))


def subtract_product(worker: atos.Worker, step, size, a, missing):
    """Subtract the product of two tiles of row k from tile (i, j), whose next step waits for it."""
    for e in worker.split(ELEMENTS):
        row, column = step.i * SIDE + e // SIDE, step.j * SIDE + e % SIDE
        if row <= column:
            value = a[row, column]
            for m in range(step.k * SIDE, (step.k + 1) * SIDE):
                value -= a[m, row] * a[m, column]
            a[row, column] = value
    worker.sync()
    if worker.rank == 0:
        arrive(worker, missing, size, step.k + 1, step.i, step.j)


@atos.task
def syrk(worker: atos.Worker, step, size, a, missing):
    """Update a tile of the diagonal, of which the upper triangle counts."""
    subtract_product(worker, step, size, a, missing)


@atos.task
def gemm(worker: atos.Worker, step, size, a, missing):
    """Update another tile."""
    subtract_product(worker, step, size, a, missing)


# %%
# Only the first tile of the diagonal waits for nothing.
def factorize(matrix: np.ndarray, **launch_options) -> tuple[np.ndarray, atos.LaunchStats]:
    """Return U, and the statistics of the launch."""
    size = len(matrix) // SIDE
    a, missing = atos.asarray(matrix.copy()), atos.asarray(arrivals(size))
    queue = atos.Queue(size**2, dtype=STEP)
    queue.push([(0, 0, 0)])
    stats = queue.launch_cta((potrf, trsm, syrk, gemm), size, a, missing, **launch_options)
    return np.triu(a.to_numpy()), stats


def main(size: int = 12) -> None:
    """Factorize a random matrix of size x size tiles, compare with SciPy, and draw the factor."""
    from matplotlib import pyplot as plt

    rng = np.random.default_rng(0)
    half = rng.standard_normal((size * SIDE, size * SIDE))
    matrix = half @ half.T + size * SIDE * np.eye(size * SIDE)
    u, stats = factorize(matrix)
    error = np.linalg.norm(u.T @ u - matrix) / np.linalg.norm(matrix)
    assert error < 1e-14, error
    assert np.allclose(u, scipy.linalg.cholesky(matrix), rtol=1e-10, atol=1e-10)
    print(f"{size * SIDE} x {size * SIDE}: error {error:.1e}, verified", stats, sep="\n")
    plt.imshow(np.where(u == 0, np.nan, np.abs(u)), norm="log")
    plt.hlines(SIDE * np.arange(1, size) - 0.5, -0.5, len(u) - 0.5, "white", linewidth=0.5)
    plt.vlines(SIDE * np.arange(1, size) - 0.5, -0.5, len(u) - 0.5, "white", linewidth=0.5)
    plt.colorbar(label="size of an element of U")
    plt.show()


if __name__ == "__main__":  # in a notebook sys.argv is that of the kernel
    main(*map(int, [] if hasattr(sys, "ps1") else sys.argv[1:]))
