"""Tasks of alternating least squares: a worker makes the normal equations of a row in scratch memory, and solves them.

The matrix, a sum of outer products over the ratings of the row, is made in tiles of 8 x 4 or 8 x 8, of its upper triangle
alone. On a GPU each thread keeps a tile in registers, of every so many ratings; then the sums of a tile are added up in order.
On the CPU the one thread of a worker adds four ratings at a time to each row. So the result does not depend on the schedule.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array
from ...compile.atomics import atomic_add
from ...compile.local_array import local_array
from ...compile.task import Task
from ...linalg.matrices import solve

__all__ = ["ROWS_OF_GRAM", "Shape", "Side", "gram_tasks", "shape_of", "solve_task"]

ROWS_OF_GRAM = 1024  # rows of factors whose products an item adds up
_BATCH = 32  # ratings whose factors are in scratch at once
_MOST_SLICES = 32
_THREADS = 256


class Side(NamedTuple):
    """Arrays of a half-iteration: rows are users, and columns items, or the other way round."""

    indptr: Any
    indices: Any
    ratings: Any
    fixed: Array  # factors of the columns
    solved: Array  # factors of the rows
    gram: Any  # the product of all `fixed` with themselves, or None
    failed: Array  # how many rows could not be solved
    regularization: np.float32
    alpha: np.float32  # confidence of a rating, if implicit


class Shape(NamedTuple):
    """Division of the matrix of k factors among threads."""

    side: int  # k, rounded up to tiles
    height: int
    width: int
    tiles: int  # of the upper triangle
    slices: int  # of the ratings, for each tile
    num_threads: int


def shape_of(k: int) -> Shape:
    """Return how the matrix is divided on a GPU."""
    height, width = 8, 4 if k <= 32 else 8
    side = -(-k // height) * height
    tiles = sum(side // width - row * height // width for row in range(side // height))
    slices = max(1, min(_MOST_SLICES, _THREADS // tiles))
    return Shape(side, height, width, tiles, slices, -(-tiles * slices // 32) * 32)


def _make_accumulate(k: int, kind: str, of_rows: bool, implicit: bool) -> Any:
    """Return the function that adds up the outer products of factors, weighted, and their sum with other weights.

    `of_rows` is for factors themselves, otherwise they are looked up by the column of each rating.
    """
    side, height, width, tiles, slices, num_threads = shape_of(k)
    columns, ratio, cells, batch_cells = side // width, height // width, height * width, _BATCH * side
    matrix_cells = side * side
    groups = num_threads // side  # of threads that share the ratings for b; at most as many as slices
    part_of_row = 32 if side % 32 == 0 else 16 if side % 16 == 0 else 8
    f32 = np.float32

    def place_of(tile):  # type: ignore[no-untyped-def]
        row, left = 0, tile
        while left >= columns - row * ratio:
            left -= columns - row * ratio
            row += 1
        return row * height, (row * ratio + left) * width

    def add_products(mine, rows, weights, start, count, step, i, j):  # type: ignore[no-untyped-def]
        for e in range(start, count, step):
            at = e * side
            right = local_array(f32, width)
            for q in range(width):
                right[q] = rows[at + j + q]
            weight = weights[e]
            for p in range(height):
                left = rows[at + i + p] * weight
                for q in range(width):
                    mine[p * width + q] += left * right[q]

    def add_tile(a, mine, i, j):  # type: ignore[no-untyped-def]
        for p in range(height):
            for q in range(width):
                a[(i + p) * side + j + q] += mine[p * width + q]

    def add_rows(a, rows, weights, count):  # type: ignore[no-untyped-def]
        # Four ratings at a time, along parts of rows, for vector instructions; what is beyond the last rating is 0.
        for i in range(side):
            for start in range(i // part_of_row * part_of_row, side, part_of_row):
                mine = local_array(f32, part_of_row)
                for e in range(0, count, 4):
                    x, y, z, w = e * side, (e + 1) * side, (e + 2) * side, (e + 3) * side
                    p, q = rows[x + i] * weights[e], rows[y + i] * weights[e + 1]
                    r, s = rows[z + i] * weights[e + 2], rows[w + i] * weights[e + 3]
                    for j in range(part_of_row):
                        left = p * rows[x + start + j] + q * rows[y + start + j]
                        mine[j] += left + (r * rows[z + start + j] + s * rows[w + start + j])
                for j in range(part_of_row):
                    a[i * side + start + j] += mine[j]

    def weigh(weights, targets, e, first, count, s):  # type: ignore[no-untyped-def]
        weights[e], targets[e] = f32(1), f32(0)
        if e < count and not of_rows:
            rating = f32(s.ratings[first + e])
            weights[e] = s.alpha * rating if implicit else f32(1)
            targets[e] = f32(1) + s.alpha * rating if implicit else rating

    def accumulate(worker, a, b, first, end, s):  # type: ignore[no-untyped-def]
        rows = worker.scratch(f32, batch_cells)
        weights, targets = worker.scratch(f32, _BATCH), worker.scratch(f32, _BATCH)
        for t in worker.split(matrix_cells):
            a[t] = f32(0)
        for f in worker.split(side):
            b[f] = f32(0)
        part = worker.rank // tiles
        i, j = place_of(worker.rank % tiles)
        group, f_of_b, of_b = worker.rank // side, worker.rank % side, f32(0)
        mine = local_array(f32, cells)
        for begin in range(first, end, _BATCH):
            count = min(_BATCH, end - begin)
            worker.sync()  # all are done with the batch before
            for t in worker.split(batch_cells):
                e, f = t // side, t % side
                value = f32(0)
                if e < count and f < k:
                    value = s.fixed[begin + e if of_rows else s.indices[begin + e], f]
                rows[t] = value
            for e in worker.split(_BATCH):
                weigh(weights, targets, e, begin, count, s)
            worker.sync()
            if part < slices:
                add_products(mine, rows, weights, part, count, slices, i, j)
            if group < groups:
                for e in range(group, count, groups):
                    of_b += targets[e] * rows[e * side + f_of_b]
        for turn in range(slices):
            worker.sync()
            if part == turn:
                add_tile(a, mine, i, j)
            if group == turn and turn < groups:
                b[f_of_b] += of_b
        worker.sync()

    def accumulate_on_cpu(worker, a, b, first, end, s):  # type: ignore[no-untyped-def]
        rows = worker.scratch(f32, batch_cells)
        weights, targets = worker.scratch(f32, _BATCH), worker.scratch(f32, _BATCH)
        for t in range(matrix_cells):
            a[t] = f32(0)
        for f in range(side):
            b[f] = f32(0)
        for t in range(batch_cells):
            rows[t] = f32(0)
        for begin in range(first, end, _BATCH):
            count = min(_BATCH, end - begin)
            for e in range(_BATCH):
                weigh(weights, targets, e, begin, count, s)
                if e < count:
                    u = begin + e if of_rows else np.int64(s.indices[begin + e])
                    for f in range(k):
                        rows[e * side + f] = s.fixed[u, f]
                else:
                    weights[e] = f32(0)
                for f in range(side):
                    b[f] += targets[e] * rows[e * side + f]
            add_rows(a, rows, weights, count)

    return accumulate if kind == "cuda" else accumulate_on_cpu


@functools.lru_cache(32)
def solve_task(k: int, kind: str, implicit: bool) -> Task:
    """Return the task that finds the factors of a row; its items are rows, and the argument of a launch is a `Side`."""
    accumulate = _make_accumulate(k, kind, False, implicit)
    side = shape_of(k).side
    matrix_cells = side * side

    def add_matrix(worker, a, s):  # type: ignore[no-untyped-def]
        for t in worker.split(matrix_cells):
            a[t] += s.gram[t]
        worker.sync()

    def add_nothing(worker, a, s):  # type: ignore[no-untyped-def]
        pass

    add_gram = add_matrix if implicit else add_nothing

    def als(worker, row, s):  # type: ignore[no-untyped-def]
        a, b = worker.scratch(np.float32, matrix_cells), worker.scratch(np.float32, side)
        accumulate(worker, a, b, np.int64(s.indptr[row]), np.int64(s.indptr[row + 1]), s)
        add_gram(worker, a, s)
        for f in worker.split(side):
            a[f * side + f] += s.regularization if f < k else np.float32(1)
        if not solve(worker, a, b, side):
            if worker.rank == 0:
                atomic_add(s.failed, 0, 1)
        else:
            for f in worker.split(k):
                s.solved[row, f] = b[f]
        worker.sync()

    return Task(als)


@functools.lru_cache(32)
def gram_tasks(k: int, kind: str) -> tuple[Task, Task]:
    """Return the tasks that multiply all factors of the columns with themselves: of ranges of rows, and their sum.

    The items are ranges of `ROWS_OF_GRAM` rows, and of so many elements of the matrix. The arguments of a launch are a `Side`,
    whose `gram` the second one fills, the number of rows, and an array for the sums of the ranges.
    """
    accumulate = _make_accumulate(k, kind, True, False)
    side = shape_of(k).side
    matrix_cells = side * side

    def gram_of_rows(worker, item, s, n, parts):  # type: ignore[no-untyped-def]
        a, b = worker.scratch(np.float32, matrix_cells), worker.scratch(np.float32, side)
        accumulate(worker, a, b, np.int64(item * ROWS_OF_GRAM), np.int64(min(item * ROWS_OF_GRAM + ROWS_OF_GRAM, n)), s)
        for t in worker.split(matrix_cells):
            parts[item, t] = a[t]
        worker.sync()

    def sum_of_grams(worker, item, s, n, parts):  # type: ignore[no-untyped-def]
        for t in worker.split(range(item * ROWS_OF_GRAM, min(item * ROWS_OF_GRAM + ROWS_OF_GRAM, matrix_cells))):
            total = np.float32(0)
            for part in range(parts.shape[0]):
                total += parts[part, t]
            s.gram[t] = total

    return Task(gram_of_rows), Task(sum_of_grams)
