"""Proof that the factors of all items solve their least-squares problems, given those of the users."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....compile.host_kernels import compile_kernel, even_rows, parallel_map
from ....core.devices import device
from ....errors import VerificationError
from ....support.host_memory import host_memory_for
from ....support.validation import check_bool, check_float
from ..linear_certificate import host_features
from .api import read_ratings

__all__ = ["verify_als"]


def _gradient_kernel(
    indptr: Any, indices: Any, ratings: Any, fixed: Any, solved: Any, gram: Any, numbers: Any, first: int, end: int
) -> int:  # pragma: no cover - compiled
    """Return the first of rows `first` to `end` whose equations do not hold, or -1."""
    regularization, alpha, tolerance, least = numbers
    k = fixed.shape[1]
    left, right, size = np.zeros(k), np.zeros(k), np.zeros(k)
    for v in range(first, end):
        sums = 1.0 + regularization + indptr[v + 1] - indptr[v]  # of what is multiplied, of which each product may underflow
        for f in range(k):
            sums += gram[f, f]
            left[f] = regularization * solved[v, f]
            right[f] = 0.0
            size[f] = abs(left[f])
            for g in range(k):
                left[f] += gram[f, g] * solved[v, g]
                size[f] += abs(gram[f, g] * solved[v, g])
        for edge in range(indptr[v], indptr[v + 1]):
            u = indices[edge]
            product, length = 0.0, 0.0
            for f in range(k):
                product += fixed[u, f] * solved[v, f]
                length += abs(fixed[u, f] * solved[v, f])
            weight = alpha * ratings[edge] if alpha >= 0 else 1.0
            target = 1 + alpha * ratings[edge] if alpha >= 0 else ratings[edge]
            for f in range(k):
                sums += abs(weight) * fixed[u, f] ** 2
                left[f] += weight * product * fixed[u, f]
                right[f] += target * fixed[u, f]
                size[f] += (abs(weight) * length + abs(target)) * abs(fixed[u, f])
        error, scale = 0.0, 0.0
        for f in range(k):
            error += (left[f] - right[f]) ** 2
            scale += size[f] ** 2
        if not np.sqrt(error) <= tolerance * np.sqrt(scale) + least * k * sums:
            return v
    return -1


@host_memory_for("atos.verify_als")
def verify_als(
    ratings: Any,
    users: Any,
    items: Any,
    *,
    regularization: float = 0.1,
    implicit: bool = False,
    alpha: float = 40,
    tolerance: float = 1e-4,
) -> None:
    """Prove that the factors of each item are the best ones for those of the users, as after each iteration of `als`.

    The normal equations of each item, which hold at the least of its squared errors and nowhere else, are evaluated in float64.
    Their two sides may differ by `tolerance` times the norm of the sums of the absolute values of their parts, and by what
    numbers below the least normal one of float32 come to.

    Parameters
    ----------
    ratings, regularization, implicit, alpha
        As for `als`.
    users, items : array
        Factors.
    tolerance : float

    Raises
    ------
    VerificationError
        The message names the first item that is wrong.

    Examples
    --------
    >>> ratings = [0, 0, 1], [0, 1, 1], [4.0, 2.0, 1.0]
    >>> found = atos.als(ratings, 2)
    >>> atos.verify_als(ratings, found.users, found.items)
    >>> atos.verify_als(ratings, found.users, 2 * found.items[:])
    Traceback (most recent call last):
    atos_py.errors.VerificationError: the factors of item 0 are not the best ones for those of the users
    """
    graph, num_users, num_items = read_ratings(ratings, device("cpu"))
    fixed = host_features("users", users, (num_users, -1))
    solved = host_features("items", items, (num_items, fixed.shape[1]))
    csr = graph.transpose()._on_host()
    is_implicit, confidence = check_bool("implicit", implicit), check_float("alpha", alpha)
    gram = fixed.T @ fixed if is_implicit else np.zeros((fixed.shape[1],) * 2)
    values = np.ascontiguousarray(csr.weights, np.float64)
    indptr, indices, kernel = np.asarray(csr.indptr)[: num_items + 1], np.asarray(csr.indices), compile_kernel(_gradient_kernel)
    numbers = (
        check_float("regularization", regularization),
        confidence if is_implicit else -1.0,
        check_float("tolerance", tolerance),
        float(np.finfo(np.float32).tiny),
    )
    arguments = indptr, indices, values, fixed, solved, gram, np.array(numbers, np.float64)
    for v in parallel_map(lambda piece: int(kernel(*arguments, *piece)), even_rows(indptr, 1 << 18)):
        if v >= 0:
            raise VerificationError(f"the factors of item {v} are not the best ones for those of the users")
