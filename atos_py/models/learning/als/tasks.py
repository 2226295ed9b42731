"""Tasks of alternating least squares: a worker makes the normal equations of a row in scratch memory, and solves them."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from ....arrays.array import Array
from ....compile.atomics import atomic_add
from ....compile.task import Task
from ...linalg.matrices import solve
from .normal_equations import make_accumulate, shape_of

__all__ = ["ROWS_OF_GRAM", "Side", "gram_tasks", "solve_task"]

ROWS_OF_GRAM = 1024  # rows of factors whose products an item adds up


class Side(NamedTuple):
    """Arrays of a half-iteration: rows are users, and columns items, or the other way round."""

    indptr: Any
    indices: Any
    ratings: Any
    fixed: Array  # factors of the columns
    solved: Array  # factors of the rows
    gram: Any  # the product of all `fixed` with themselves, or None
    failed: Array  # how many rows have singular equations, and how many have some with numbers that are not finite
    regularization: np.float32
    alpha: np.float32  # confidence of a rating, if implicit


@functools.lru_cache(32)
def solve_task(k: int, kind: str, implicit: bool) -> Task:
    """Return the task that finds the factors of a row; its items are rows, and the argument of a launch is a `Side`."""
    accumulate = make_accumulate(k, kind, False, implicit)
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
        # No other element of a sum of outer products is larger than those on the diagonal.
        finite = True
        for f in worker.split(k):
            finite &= a[f * side + f] < np.float32(np.inf) and abs(b[f]) < np.float32(np.inf)
        definite = solve(worker, a, b, side)
        for f in worker.split(k):
            finite &= abs(b[f]) < np.float32(np.inf) or not definite
        finite = worker.all(finite)
        if definite and finite:
            for f in worker.split(k):
                s.solved[row, f] = b[f]
        elif worker.rank == 0:
            atomic_add(s.failed, 1 if not finite else 0, 1)
        worker.sync()

    return Task(als)


@functools.lru_cache(32)
def gram_tasks(k: int, kind: str) -> tuple[Task, Task]:
    """Return the tasks that multiply all factors of the columns with themselves: of ranges of rows, and their sum.

    The items are ranges of `ROWS_OF_GRAM` rows, and of so many elements of the matrix. The arguments of a launch are a `Side`,
    whose `gram` the second one fills, the number of rows, and an array for the sums of the ranges.
    """
    accumulate = make_accumulate(k, kind, True, False)
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
