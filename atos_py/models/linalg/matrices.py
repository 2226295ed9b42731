"""Collective operations on small dense matrices: products, the Cholesky factorisation, solutions, inverses.

The factorisation takes four columns at a time. Each thread factorises their 4 x 4 block anew in registers, which is shorter
than to wait for another one, and what is left of the matrix is updated in tiles of 4 x 4. It makes the upper factor U with
A = U'U, so that neighboring threads read neighboring elements.

Source: Golub and Van Loan, "Matrix Computations", 4th edition, sections 4.2.5 and 4.2.6 (blocked Cholesky).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...compile.local_array import local_array

__all__ = ["cholesky", "inverse", "matvec", "outer", "solve"]


def outer(team: Any, a: Any, x: Any, y: Any, k: int) -> None:
    """Set the k x k matrix `a` to the outer product of two vectors: ``a[i * k + j] = x[i] * y[j]``.

    Examples
    --------
    >>> @atos.task
    ... def square(worker, v, out):
    ...     a, b, x = worker.scratch(np.float32, 9), worker.scratch(np.float32, 3), worker.scratch(np.float32, 3)
    ...     for i in worker.split(3):
    ...         x[i] = i + v
    ...     atos.linalg.outer(worker, a, x, x, 3)
    ...     atos.linalg.matvec(worker, b, a, x, 3)  # x x' x
    ...     if worker.rank == 0:
    ...         out[v] = b[2]
    >>> out, queue = atos.zeros(2), atos.Queue(capacity=10)
    >>> queue.push([0, 1])
    >>> stats = queue.launch_warp(square, out)
    >>> print(out[:])
    [10. 42.]
    """
    team.sync()
    for place in team.split(k * k):
        a[place] = x[place // k] * y[place % k]
    team.sync()


def matvec(team: Any, y: Any, a: Any, x: Any, k: int) -> None:
    """Set `y`, which is not `x`, to the product of the k x k matrix `a` and the vector `x`.

    Examples
    --------
    >>> @atos.task
    ... def turn(worker, v, out):
    ...     a, x, y = worker.scratch(np.float32, 4), worker.scratch(np.float32, 2), worker.scratch(np.float32, 2)
    ...     for i in worker.split(4):
    ...         a[i] = i  # [[0, 1], [2, 3]]
    ...     for i in worker.split(2):
    ...         x[i] = v
    ...     atos.linalg.matvec(worker, y, a, x, 2)
    ...     out[v] = y[1]
    >>> out, queue = atos.zeros(3), atos.Queue(capacity=10)
    >>> queue.push([0, 1, 2])
    >>> stats = queue.launch_warp(turn, out)
    >>> print(out[:])
    [ 0.  5. 10.]
    """
    team.sync()
    for i in team.split(k):
        value = y.dtype.type(0)
        for j in range(k):
            value += a[i * k + j] * x[j]
        y[i] = value
    team.sync()


def cholesky(team: Any, a: Any, k: int) -> bool:
    """Replace the upper triangle of a symmetric positive definite k x k matrix by U, with A = U'U.

    The lower triangle is not looked at, and left as it is.

    Returns
    -------
    bool
        Whether the matrix is positive definite, as far as rounding shows. If not, what is in `a` then is of no use.

    Examples
    --------
    >>> @atos.task
    ... def root(worker, v, out):
    ...     a = worker.scratch(np.float32, 4)
    ...     for i in worker.split(4):
    ...         a[i] = 4 if i % 3 == 0 else v
    ...     fine = atos.linalg.cholesky(worker, a, 2)
    ...     out[v, 0], out[v, 1], out[v, 2] = fine, a[0], a[1]
    >>> out, queue = atos.zeros((3, 3)), atos.Queue(capacity=10)
    >>> queue.push([0, 1, 2])
    >>> stats = queue.launch_warp(root, out)
    >>> print(out[:].tolist())
    [[1.0, 2.0, 0.0], [1.0, 2.0, 0.5], [1.0, 2.0, 1.0]]
    """
    return _factorize(team, a, a, k, k)


def solve(team: Any, a: Any, b: Any, k: int) -> bool:
    """Replace the vector `b` by the solution x of A x = b, for a symmetric positive definite k x k matrix.

    The upper triangle of `a` becomes the factor that `cholesky` leaves there.

    Returns
    -------
    bool
        Whether the matrix is positive definite; see `cholesky`.

    Examples
    --------
    >>> @atos.task
    ... def divide(worker, v, out):
    ...     a, b = worker.scratch(np.float32, 4), worker.scratch(np.float32, 2)
    ...     for i in worker.split(4):
    ...         a[i] = 4 if i % 3 == 0 else 2  # [[4, 2], [2, 4]]
    ...     for i in worker.split(2):
    ...         b[i] = 6 * v
    ...     if atos.linalg.solve(worker, a, b, 2) and worker.rank == 0:
    ...         out[v] = b[1]
    >>> out, queue = atos.zeros(3), atos.Queue(capacity=10)
    >>> queue.push([0, 1, 2])
    >>> stats = queue.launch_warp(divide, out)
    >>> print(out.to_numpy().round(4))
    [0. 1. 2.]
    """
    definite, one = _factorize(team, a, b, k, k + 1), a.dtype.type(1)
    first = (k - 1) // 4 * 4
    while first >= 0:
        r0, r1 = one / a[first * k + first], one / _at(a, first + 1, first + 1, k)
        r2, r3 = one / _at(a, first + 2, first + 2, k), one / _at(a, first + 3, first + 3, k)
        x3 = _entry(b, first + 3, k) * r3
        x2 = (_entry(b, first + 2, k) - _at(a, first + 2, first + 3, k) * x3) * r2
        x1 = _entry(b, first + 1, k) - _at(a, first + 1, first + 3, k) * x3
        x1 = (x1 - _at(a, first + 1, first + 2, k) * x2) * r1
        x0 = b[first] - _at(a, first, first + 3, k) * x3 - _at(a, first, first + 2, k) * x2
        x0 = (x0 - _at(a, first, first + 1, k) * x1) * r0
        for i in team.split(first):
            right = _at(a, i, first + 1, k) * x1 + _at(a, i, first + 2, k) * x2 + _at(a, i, first + 3, k) * x3
            b[i] -= a[i * k + first] * x0 + right
        team.sync()  # all have read these four elements of b
        if team.rank == 0:
            b[first] = x0
            _set_entry(b, first + 1, k, x1)
            _set_entry(b, first + 2, k, x2)
            _set_entry(b, first + 3, k, x3)
        first -= 4
    team.sync()
    return definite


def inverse(team: Any, a: Any, k: int) -> bool:
    """Replace a symmetric positive definite k x k matrix by its inverse; both triangles are read and written.

    By one sweep of each diagonal element (Goodnight, "A tutorial on the SWEEP operator", The American Statistician 33, 1979).
    To solve equations, `solve` is faster and more accurate.

    Returns
    -------
    bool
        Whether the matrix is positive definite; see `cholesky`.

    Examples
    --------
    >>> @atos.task
    ... def invert(worker, v, out):
    ...     a = worker.scratch(np.float64, 4)
    ...     for i in worker.split(4):
    ...         a[i] = 4 if i % 3 == 0 else 2
    ...     atos.linalg.inverse(worker, a, 2)
    ...     for i in worker.split(4):
    ...         out[i] = a[i]
    >>> out, queue = atos.zeros(4, dtype=np.float64), atos.Queue(capacity=10)
    >>> queue.push(0)
    >>> stats = queue.launch_warp(invert, out)
    >>> print(out.to_numpy().round(4))
    [ 0.3333 -0.1667 -0.1667  0.3333]
    """
    definite = True
    for pivot in range(k):
        team.sync()
        value = a[pivot * k + pivot]
        definite &= value > 0
        scale = a.dtype.type(1) / value
        for place in team.split(k * k):
            i, j = place // k, place % k
            if i != pivot and j != pivot:
                a[place] -= a[i * k + pivot] * scale * a[pivot * k + j]
        team.sync()
        for i in team.split(k):
            if i != pivot:
                a[i * k + pivot] *= scale
                a[pivot * k + i] *= scale
            else:
                a[pivot * k + pivot] = -scale
    team.sync()
    for place in team.split(k * k):
        a[place] = -a[place]
    team.sync()
    return definite


def _at(a: Any, i: int, j: int, k: int) -> Any:
    """Return an element of a matrix, which goes on with ones on its diagonal."""
    return a[i * k + j] if i < k and j < k else a.dtype.type(1 if i == j else 0)


def _entry(b: Any, i: int, k: int) -> Any:
    """Return an element of a vector, which goes on with zeros."""
    return b[i] if i < k else b.dtype.type(0)


def _factorize(team: Any, a: Any, b: Any, k: int, columns: int) -> bool:
    """Factorise a matrix; with k + 1 columns, `b` is the last one, and becomes y of U'y = b. Whether it could be done."""
    one, definite, first = a.dtype.type(1), True, 0
    team.sync()
    while first < k:
        p0, u01 = a[first * k + first], _at(a, first, first + 1, k)
        u02, u03 = _at(a, first, first + 2, k), _at(a, first, first + 3, k)
        r0 = one / math.sqrt(p0)
        u01, u02, u03 = u01 * r0, u02 * r0, u03 * r0
        p1 = _at(a, first + 1, first + 1, k) - u01 * u01
        r1 = one / math.sqrt(p1)
        u12 = (_at(a, first + 1, first + 2, k) - u01 * u02) * r1
        u13 = (_at(a, first + 1, first + 3, k) - u01 * u03) * r1
        p2 = _at(a, first + 2, first + 2, k) - u02 * u02 - u12 * u12
        r2 = one / math.sqrt(p2)
        u23 = (_at(a, first + 2, first + 3, k) - u02 * u03 - u12 * u13) * r2
        p3 = _at(a, first + 3, first + 3, k) - u03 * u03 - u13 * u13 - u23 * u23
        r3 = one / math.sqrt(p3)
        definite &= p0 > 0 and p1 > 0 and p2 > 0 and p3 > 0
        end = min(first + 4, k)
        for j in team.split(range(end, columns)):
            x0 = _column(a, b, first, j, k) * r0
            x1 = (_column(a, b, first + 1, j, k) - u01 * x0) * r1
            x2 = (_column(a, b, first + 2, j, k) - u02 * x0 - u12 * x1) * r2
            x3 = (_column(a, b, first + 3, j, k) - u03 * x0 - u13 * x1 - u23 * x2) * r3
            _set_column(a, b, first, j, k, x0)
            _set_column(a, b, first + 1, j, k, x1)
            _set_column(a, b, first + 2, j, k, x2)
            _set_column(a, b, first + 3, j, k, x3)
        team.sync()  # all have read the block
        if team.rank == 0:
            _set(a, first, first, k, p0 * r0)
            _set(a, first, first + 1, k, u01)
            _set(a, first, first + 2, k, u02)
            _set(a, first, first + 3, k, u03)
            _set(a, first + 1, first + 1, k, p1 * r1)
            _set(a, first + 1, first + 2, k, u12)
            _set(a, first + 1, first + 3, k, u13)
            _set(a, first + 2, first + 2, k, p2 * r2)
            _set(a, first + 2, first + 3, k, u23)
            _set(a, first + 3, first + 3, k, p3 * r3)
        size = (k - end + 3) // 4
        for tile in team.split(size * (size + 1) // 2):
            row, column = _place_of_tile(tile, size)
            _update_tile(a, first, end + 4 * row, end + 4 * column, k)
        if columns > k:
            for i in team.split(range(end, k)):
                upper = a[first * k + i] * b[first] + a[(first + 1) * k + i] * b[first + 1]
                b[i] -= upper + a[(first + 2) * k + i] * b[first + 2] + a[(first + 3) * k + i] * b[first + 3]
        team.sync()
        first += 4
    return definite


def _column(a: Any, b: Any, i: int, j: int, k: int) -> Any:
    """Return an element of a matrix with `b` as column k, which goes on with zeros below."""
    return a.dtype.type(0) if i >= k else b[i] if j == k else a[i * k + j]


def _set_column(a: Any, b: Any, i: int, j: int, k: int, value: Any) -> None:
    """Set that element, if it is there."""
    if i < k and j == k:
        b[i] = value
    elif i < k:
        a[i * k + j] = value


def _set(a: Any, i: int, j: int, k: int, value: Any) -> None:
    """Set an element of the upper triangle, if it is there."""
    if j < k:
        a[i * k + j] = value


def _set_entry(b: Any, i: int, k: int, value: Any) -> None:
    """Set an element of a vector, if it is there."""
    if i < k:
        b[i] = value


def _place_of_tile(tile: Any, size: int) -> tuple[Any, Any]:
    """Return the row and the column of a tile of the upper triangle of size x size tiles.

    A long row and a short one are numbered together, so that all such pairs have the same length, and a division by it finds
    the pair. For an odd size the first row has no other one. The quotient of float32 is exact for these small numbers, and a
    division of integers takes a GPU several times as long.
    """
    length = size + 1 - size % 2
    row = int((np.float32(tile) + np.float32(0.5)) / np.float32(length))
    column = row + tile - row * length
    if column < size:
        return row, column
    row = size - row - (length - size)
    return row, row + column - size


def _update_tile(a: Any, first: int, i: int, j: int, k: int) -> None:
    """Subtract the product of four rows of the factor, from `first` on, from the 4 x 4 elements at (i, j)."""
    if k % 4 == 0 or j + 4 <= k:
        above = local_array(a.dtype, 16)  # columns j to j + 3 of the four rows
        left = local_array(a.dtype, 16)  # columns i to i + 3
        for r in range(4):
            for q in range(4):
                above[4 * r + q], left[4 * r + q] = a[(first + r) * k + j + q], a[(first + r) * k + i + q]
        for p in range(4):
            for q in range(4):
                upper = left[p] * above[q] + left[4 + p] * above[4 + q]
                a[(i + p) * k + j + q] -= upper + left[8 + p] * above[8 + q] + left[12 + p] * above[12 + q]
        return
    for q in range(j, k):
        b0, b1, b2, b3 = a[first * k + q], a[(first + 1) * k + q], a[(first + 2) * k + q], a[(first + 3) * k + q]
        for p in range(i, min(i + 4, k)):
            upper = a[first * k + p] * b0 + a[(first + 1) * k + p] * b1
            a[p * k + q] -= upper + a[(first + 2) * k + p] * b2 + a[(first + 3) * k + p] * b3
