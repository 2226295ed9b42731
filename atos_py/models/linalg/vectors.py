"""Collective operations on vectors: change detection, reductions, normalization.

Source: L. Vaz, "Onyx" (thesis, 2021), section 5.3, which calls them collaborative operations.
"""

from __future__ import annotations

import math
from typing import Any

__all__ = ["any_updated", "dot", "largest", "logsumexp", "normalize", "smallest", "softmax", "total"]


def any_updated(team: Any, new: Any, old: Any, k: int, tolerance: Any) -> bool:
    """Whether an element of `new` differs from that of `old` by more than `tolerance`, or is NaN where that is not.

    Examples
    --------
    >>> @atos.task
    ... def moved(worker, v, out):
    ...     old, new = worker.scratch(np.float32, 4), worker.scratch(np.float32, 4)
    ...     for f in worker.split(4):
    ...         old[f], new[f] = f, f + 0.1 * v
    ...     out[v] = atos.linalg.any_updated(worker, new, old, 4, 0.15)
    >>> out, queue = atos.zeros(3, dtype=np.int32), atos.Queue(capacity=10)
    >>> queue.push([0, 1, 2])
    >>> stats = queue.launch_warp(moved, out)
    >>> print(out[:])
    [0 0 1]
    """
    team.sync()
    moved = False
    for f in team.split(k):
        change = abs(new[f] - old[f])
        moved |= change > tolerance or change != change
    return team.any(moved)


def total(team: Any, x: Any, k: int) -> Any:
    """Return the sum of the first k elements, on every thread.

    Examples
    --------
    >>> @atos.task
    ... def add(worker, v, out):
    ...     x = worker.scratch(np.float32, 4)
    ...     for f in worker.split(4):
    ...         x[f] = v + f
    ...     out[v] = atos.linalg.sum(worker, x, 4)
    >>> out, queue = atos.zeros(3), atos.Queue(capacity=10)
    >>> queue.push([0, 1, 2])
    >>> stats = queue.launch_warp(add, out)
    >>> print(out[:])
    [ 6. 10. 14.]
    """
    team.sync()
    mine = x.dtype.type(0)
    for f in team.split(k):
        mine += x[f]
    return team.sum(mine)


def smallest(team: Any, x: Any, k: int) -> Any:
    """Return the smallest of the first k elements, on every thread.

    Examples
    --------
    >>> @atos.task
    ... def compute(worker, v, out):
    ...     x = worker.scratch(np.float32, 3)
    ...     for f in worker.split(3):
    ...         x[f] = v * f - f
    ...     out[v] = atos.linalg.min(worker, x, 3)
    >>> out, queue = atos.zeros(3), atos.Queue(capacity=10)
    >>> queue.push([0, 1, 2])
    >>> stats = queue.launch_warp(compute, out)
    >>> print(out.to_numpy().round(4))
    [-2.  0.  0.]
    """
    team.sync()
    mine = x[0]
    for f in team.split(k):
        mine = min(mine, x[f])
    return team.min(mine)


def largest(team: Any, x: Any, k: int) -> Any:
    """Return the largest of the first k elements, on every thread.

    Examples
    --------
    >>> @atos.task
    ... def compute(worker, v, out):
    ...     x = worker.scratch(np.float32, 3)
    ...     for f in worker.split(3):
    ...         x[f] = v * f - f
    ...     out[v] = atos.linalg.max(worker, x, 3)
    >>> out, queue = atos.zeros(3), atos.Queue(capacity=10)
    >>> queue.push([0, 1, 2])
    >>> stats = queue.launch_warp(compute, out)
    >>> print(out.to_numpy().round(4))
    [0. 0. 2.]
    """
    team.sync()
    mine = x[0]
    for f in team.split(k):
        mine = max(mine, x[f])
    return team.max(mine)


def normalize(team: Any, x: Any, k: int) -> Any:
    """Divide the first k elements by their sum, which is returned. A sum of 0 leaves them as they are.

    Examples
    --------
    >>> @atos.task
    ... def share(worker, v, out):
    ...     x = worker.scratch(np.float32, 3)
    ...     for f in worker.split(3):
    ...         x[f] = v * f
    ...     atos.linalg.normalize(worker, x, 3)
    ...     out[v] = x[2]
    >>> out, queue = atos.zeros(3), atos.Queue(capacity=10)
    >>> queue.push([0, 1, 2])
    >>> stats = queue.launch_warp(share, out)
    >>> print(out.to_numpy().round(3))
    [0.    0.667 0.667]
    """
    whole = total(team, x, k)
    if whole != 0:
        for f in team.split(k):
            x[f] /= whole
    team.sync()
    return whole


def logsumexp(team: Any, x: Any, k: int) -> Any:
    """Return the logarithm of the sum of the exponentials of the first k elements, without overflow.

    Minus infinity stands for the logarithm of 0; if all are, so is the result.

    Examples
    --------
    >>> @atos.task
    ... def compute(worker, v, out):
    ...     x = worker.scratch(np.float32, 3)
    ...     for f in worker.split(3):
    ...         x[f] = 1000 * v
    ...     out[v] = atos.linalg.logsumexp(worker, x, 3)
    >>> out, queue = atos.zeros(3), atos.Queue(capacity=10)
    >>> queue.push([0, 1, 2])
    >>> stats = queue.launch_warp(compute, out)
    >>> print(out.to_numpy().round(4))
    [1.0986000e+00 1.0010986e+03 2.0010986e+03]
    """
    top = largest(team, x, k)
    if math.isinf(top):
        return top
    mine = x.dtype.type(0)
    for f in team.split(k):
        mine += math.exp(x[f] - top)
    return top + math.log(team.sum(mine))


def softmax(team: Any, x: Any, k: int) -> Any:
    """Replace the first k elements by their exponentials, divided by the sum of those; return its logarithm.

    Where all elements are minus infinity, they are left as they are.

    Examples
    --------
    >>> @atos.task
    ... def weigh(worker, v, out):
    ...     x = worker.scratch(np.float32, 2)
    ...     for f in worker.split(2):
    ...         x[f] = 1000 * v + f
    ...     atos.linalg.softmax(worker, x, 2)
    ...     out[v] = x[1]
    >>> out, queue = atos.zeros(2), atos.Queue(capacity=10)
    >>> queue.push([0, 1])
    >>> stats = queue.launch_warp(weigh, out)
    >>> print(out.to_numpy().round(4))
    [0.7311 0.7311]
    """
    whole = logsumexp(team, x, k)
    if not math.isinf(whole):
        for f in team.split(k):
            x[f] = math.exp(x[f] - whole)
    team.sync()
    return whole


def dot(team: Any, x: Any, y: Any, k: int) -> Any:
    """Return the sum of the products of the first k elements of two vectors, on every thread.

    Examples
    --------
    >>> @atos.task
    ... def compute(worker, v, out):
    ...     x = worker.scratch(np.float32, 3)
    ...     for f in worker.split(3):
    ...         x[f] = v + f
    ...     out[v] = atos.linalg.dot(worker, x, x, 3)
    >>> out, queue = atos.zeros(3), atos.Queue(capacity=10)
    >>> queue.push([0, 1, 2])
    >>> stats = queue.launch_warp(compute, out)
    >>> print(out.to_numpy().round(4))
    [ 5. 14. 29.]
    """
    team.sync()
    mine = x.dtype.type(0)
    for f in team.split(k):
        mine += x[f] * y[f]
    return team.sum(mine)
