"""Alternating least squares: factors of users and items whose products are near the ratings.

The factors of all users are found with those of the items fixed, by a least-squares problem for each user, and then those of
the items. The sum that both lower is that of the squared errors, of the ratings (explicit), or of all pairs by confidence
(implicit), and of the squares of all factors times the regularization.

Sources: Zhou, Wilkinson, Schreiber and Pan, "Large-scale parallel collaborative filtering for the Netflix prize", AAIM 2008;
Hu, Koren and Volinsky, "Collaborative filtering for implicit feedback datasets", ICDM 2008.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....arrays.array import Array, asarray, to_host, zeros
from ....compile.random_numbers import random
from ....core.devices import Device
from ....core.devices import device as device_of
from ....errors import InvalidArgumentError, UnsupportedTypeError
from ....graph.csr import MAX_VERTICES
from ....graph.graph import Graph
from ....operators.ranges import range_items
from ....runtime.queue import Queue
from ....support.host_memory import host_memory_for
from ....support.shown import ShownFields
from ....support.validation import as_host_array, check_bool, check_float, check_int
from ..feature_gather import MOST_FEATURES
from .normal_equations import shape_of
from .tasks import ROWS_OF_GRAM, Side, gram_tasks, solve_task

__all__ = ["ALSResult", "als", "read_ratings"]


@dataclass(frozen=True, eq=False)
class ALSResult(ShownFields):
    """Result of `als`.

    Attributes
    ----------
    users, items : Array
        Factors, a row for each user or item, float32. Those without ratings have zeros.
    runs : list of LaunchStats

    Examples
    --------
    >>> found = atos.als(([0, 0, 1], [0, 1, 1], [4.0, 2.0, 1.0]), 2, iterations=20, regularization=1e-3)
    >>> print(found.predict([0, 0], [0, 1]).round(1), found.rmse([0, 0, 1], [0, 1, 1], [4, 2, 1]) < 0.01)
    [4. 2.] True
    """

    users: Array
    items: Array
    runs: list[Any]

    def predict(self, users: Any, items: Any) -> NDArray[Any]:
        """Return the predicted ratings of pairs of a user and an item.

        Examples
        --------
        >>> found = atos.als(([0, 1], [0, 1], [4.0, 2.0]), 1)
        >>> found.predict([0, 1], [0, 0]).shape
        (2,)
        """
        pair = [as_host_array(name, to_host(each)) for name, each in (("users", users), ("items", items))]
        for name, given, factors in zip(("users", "items"), pair, (self.users, self.items), strict=True):
            wrong = given.size and (given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= factors.shape[0])
            if wrong or given.shape != pair[0].shape:
                raise InvalidArgumentError(
                    f"{name} must be numbers below {factors.shape[0]}, as many as users (got {given!r:.80})"
                )
        left, right = self.users.to_numpy()[pair[0]], self.items.to_numpy()[pair[1]]
        return np.einsum("...k,...k->...", left, right)  # type: ignore[no-any-return]

    def rmse(self, users: Any, items: Any, values: Any) -> float:
        """Return the root of the mean squared error of predictions, such as of ratings that were held out.

        Examples
        --------
        >>> found = atos.als(([0, 1], [0, 1], [4.0, 2.0]), 1, regularization=1e-6)
        >>> round(found.rmse([0], [0], [4.0]), 3)
        0.0
        """
        given = as_host_array("values", to_host(values))
        predicted = self.predict(users, items).astype(np.float64)
        if given.dtype.kind not in "fiu" or given.shape != predicted.shape:
            raise InvalidArgumentError(f"values must be a number for each of {predicted.size} pairs (got {values!r:.80})")
        error = predicted - given
        return float(np.sqrt(np.mean(error**2)))


def read_ratings(ratings: Any, device: Device) -> tuple[Graph, int, int]:
    """Return ratings as a graph with an edge from each user to each of the items, and how many there are of either."""
    if hasattr(ratings, "tocoo"):
        # Not by tocsr(), which adds up the entries of a COO matrix that are of the same pair.
        entries = ratings.tocoo()
        if len(entries.shape) != 2:
            raise InvalidArgumentError(f"ratings must be a matrix of users and items (got shape {entries.shape})")
        users, items, values = entries.row, entries.col, as_host_array("ratings", entries.data)
        num_users, num_items = entries.shape
    elif isinstance(ratings, (tuple, list)) and len(ratings) == 3:
        users, items, values = (
            as_host_array(name, to_host(x)) for name, x in zip(("users", "items", "values"), ratings, strict=True)
        )
        for name, each in (("users", users), ("items", items)):
            if each.ndim != 1 or each.shape != values.shape or not each.size or each.dtype.kind not in "iu" or each.min() < 0:
                raise InvalidArgumentError(
                    f"{name} must be numbers from 0, one for each of one or more values (got {each!r:.80})"
                )
            if int(each.max()) >= MAX_VERTICES:
                raise InvalidArgumentError(
                    f"{name} must be numbers below {MAX_VERTICES} (got {each.max()}): each number up to the largest has"
                    f" factors, so number them without gaps, as by numpy.unique({name}, return_inverse=True)[1]"
                )
        num_users, num_items = int(users.max()) + 1, int(items.max()) + 1
    else:
        raise InvalidArgumentError(f"ratings must be a sparse matrix of SciPy, or (users, items, values) (got {ratings!r:.80})")
    if values.dtype.kind not in "fiub":
        raise UnsupportedTypeError(f"ratings must be numbers, not {values.dtype}")
    wrong = np.flatnonzero(~(np.abs(values.astype(np.float64)) <= np.finfo(np.float32).max))
    if wrong.size:
        at = int(wrong[0])
        raise InvalidArgumentError(
            f"ratings must be finite numbers of float32; that of user {users[at]} and item {items[at]} is {values[at]}"
        )
    of_floats = values.astype(np.float32)
    return Graph.from_edges(users, items, of_floats, max(num_users, num_items), device=device), num_users, num_items


class _Solver:
    """Half-iterations on one queue."""

    def __init__(self, k: int, device: Device, implicit: bool, regularization: float, alpha: float, most_rows: int) -> None:
        self.k, self.device, self.shape = k, device, shape_of(k)
        self.task = solve_task(k, device.kind, implicit)
        self.failed = zeros(2, dtype=np.int64, device=device)
        self.numbers = np.float32(regularization), np.float32(alpha)
        self.gram = zeros(self.shape.side**2, device=device) if implicit else None
        self.queue = Queue(max(most_rows, ROWS_OF_GRAM), device=device)
        # On a CPU the tasks are those of a worker of one thread.
        self.options = {"num_threads": self.shape.num_threads} if device.kind == "cuda" else {"worker": "thread"}
        self.runs: list[Any] = []

    def launch(self, items: Any, task: Any, *args: Any, **options: Any) -> None:
        self.queue.push(items)
        self.runs.append(self.queue.launch(task, *args, **{"worker": "cta", **self.options, **options}))

    def solve(self, graph: Graph, rows: NDArray[Any], fixed: Array, solved: Array) -> None:
        """Find the factors of rows, those with the most ratings first, which a GPU takes one by one."""
        view = asarray(fixed, readonly=True)
        side = Side(graph.indptr, graph.indices, graph.weights, view, solved, self.gram, self.failed, *self.numbers)
        if self.gram is not None:
            items = range_items(fixed.shape[0], ROWS_OF_GRAM)
            parts = zeros((len(items), self.shape.side**2), device=self.device)
            of_rows, of_ranges = gram_tasks(self.k, self.device.kind)
            self.launch(items, of_rows, side, fixed.shape[0], parts, fetch_size=1)
            self.launch(range_items(self.shape.side**2, ROWS_OF_GRAM), of_ranges, side, fixed.shape[0], parts)
            side = side._replace(gram=asarray(self.gram, readonly=True))
        self.launch(rows, self.task, side, fetch_size=1 if self.device.kind == "cuda" else 16)
        singular, beyond = self.failed.to_numpy().tolist()
        if singular:
            raise InvalidArgumentError(
                f"the equations of {singular} rows are singular in float32: give a regularization above {self.numbers[0]}"
            )
        if beyond:
            raise InvalidArgumentError(
                f"the equations of {beyond} rows have numbers beyond float32, as where ratings are huge or the regularization"
                " is tiny: divide the ratings by the largest, or give a larger regularization"
            )


@host_memory_for("atos.als")
def als(
    ratings: Any,
    k: int,
    *,
    regularization: float = 0.1,
    iterations: int = 15,
    implicit: bool = False,
    alpha: float = 40,
    seed: int = 0,
    device: Device | str | None = None,
) -> ALSResult:
    """Factorise ratings by alternating least squares: rating (u, i) is about the product of the factors of u and of i.

    Parameters
    ----------
    ratings : sparse matrix of SciPy, or (users, items, values)
        Users are rows. A pair that is there twice counts twice, also in a COO matrix. Ratings are finite numbers of float32.
    k : int
        Factors, from 1 to 128.
    regularization : float
        Lambda, positive; it is added to the matrix of each row as it is.
    iterations : int
        Each finds the factors of all users, and then those of all items.
    implicit : bool
        Whether values are not ratings but how often something was seen: then all pairs count, with confidence 1 + alpha r, as
        Hu, Koren and Volinsky do, and products near 1 stand for a preference.
    alpha : float
    seed : int
        Of the factors of the items at the start.
    device : Device or str, optional

    Returns
    -------
    ALSResult

    Raises
    ------
    InvalidArgumentError
        If ratings or numbers are out of their range, or equations are singular or have numbers beyond float32.
    UnsupportedTypeError
        If ratings are no numbers.

    References
    ----------
    Hu, Koren and Volinsky, "Collaborative filtering for implicit feedback datasets", ICDM 2008; Zhou, Wilkinson, Schreiber and
    Pan, "Large-scale parallel collaborative filtering for the Netflix prize", AAIM 2008.

    Examples
    --------
    >>> ratings = np.array([[5, 4, 1], [4, 5, 1], [1, 1, 5]], np.float32)
    >>> users, items = np.nonzero(ratings)
    >>> found = atos.als((users, items, ratings[users, items]), 2)
    >>> print(found.rmse(users, items, ratings[users, items]) < 0.5, found.users.shape)
    True (3, 2)
    """
    factors, rounds = check_int("k", k, 1, MOST_FEATURES), check_int("iterations", iterations, 1, 2**31)
    strength, confidence = check_float("regularization", regularization), check_float("alpha", alpha)
    is_implicit, number = check_bool("implicit", implicit), check_int("seed", seed, -(2**63), 2**64 - 1)
    least, most = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)
    if not least <= strength <= most or not 0 <= confidence <= most:
        raise InvalidArgumentError(
            f"regularization must be positive and alpha not negative, and both normal numbers of float32, up to"
            f" {most:.3g} (got {regularization} and {alpha})"
        )
    where = device_of(device)
    graph, num_users, num_items = read_ratings(ratings, where)
    lowest = float(np.min(np.asarray(graph.weights), initial=0))
    if is_implicit and lowest < 0:
        raise InvalidArgumentError(f"implicit ratings say how often something was seen, and are not negative (got {lowest})")
    turned = graph.transpose()
    start = random(number, np.arange(num_items)[:, None], np.arange(factors)) / np.sqrt(factors)
    users, items = zeros((num_users, factors), device=where), asarray(start.astype(np.float32), device=where)
    solver = _Solver(factors, where, is_implicit, strength, confidence, graph.num_vertices)
    order = [
        np.argsort(-np.asarray(each.degrees())[:count], kind="stable").astype(np.uint32)
        for each, count in ((graph, num_users), (turned, num_items))
    ]
    for _ in range(rounds):
        solver.solve(graph, order[0], items, users)
        solver.solve(turned, order[1], users, items)
    return ALSResult(users, items, solver.runs)
