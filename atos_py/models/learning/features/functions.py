"""Functions of features: of a vertex or an edge, of one feature or of a team of threads together; and folding of several.

Folding keeps three guarantees of Onyx. *Ordering*: on one vertex or edge the functions run in the order given. *Progress*: a
function runs only if the one before returned true there, for any feature. *Activation*: the active vertices say where the first
one runs, and the result of the last one that ran says what is active afterwards. There is no barrier between the functions:
other vertices and edges may be at others.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ....compile.returned import counts_as_true
from ....errors import InvalidArgumentError
from ....support.validation import check_float, check_int
from ..feature_gather import MOST_FEATURES

__all__ = ["FeatureFunction", "chain", "check_features", "check_function", "check_share", "describe_functions", "together"]


@dataclass(frozen=True)
class FeatureFunction:
    """A function that the threads of a team call together; made by `together`."""

    function: Callable[..., Any]


def together(function: Callable[..., Any]) -> FeatureFunction:
    """Mark a function that all threads of a team call together, once for a vertex or an edge.

    Instead of the number of a feature, it takes the team: ``function(team, v, data)`` or ``function(team, u, v, edge, data)``.
    The team is a group of as many threads as there are features, rounded up to a power of 2, at least 2 and at most 32; for
    vertices with more than 32 features it is a whole worker. On the CPU it is one thread. The function can use
    ``team.split(k)``, ``team.scratch``, and `atos.linalg`.

    Examples
    --------
    >>> from atos_py import features
    >>> def scale(team, v, x):
    ...     row = team.scratch(np.float32, 3)
    ...     for f in team.split(3):
    ...         row[f] = x[v, f]
    ...     atos.linalg.normalize(team, row, 3)
    ...     for f in team.split(3):
    ...         x[v, f] = row[f]
    >>> x = atos.asarray(np.array([[1, 1, 2], [3, 0, 1]], np.float32))
    >>> active = features.Maps(atos.Graph.from_edges([0], [1]), 3, x).vertex_map(features.together(scale))
    >>> print(x[:].tolist())
    [[0.25, 0.25, 0.5], [0.75, 0.0, 0.25]]
    """
    return FeatureFunction(check_function("together", function))


def check_function(name: str, function: Any) -> Callable[..., Any]:
    """Return a function of features, which tasks are made of and found again by."""
    if not callable(function) or type(function).__hash__ is None:
        raise InvalidArgumentError(f"{name} takes functions of features, not {function!r:.80}")
    return function  # type: ignore[no-any-return]


def check_features(k: Any) -> int:
    """Return the number of features, which is one that tasks can have."""
    return check_int("k", k, 1, MOST_FEATURES)


def check_share(name: str, value: Any) -> float:
    """Return a share of a whole."""
    given = check_float(name, value)
    if not 0 <= given <= 1:
        raise InvalidArgumentError(f"{name} must be from 0 to 1 (got {value})")
    return given


def describe_functions(functions: tuple[Any, ...]) -> list[tuple[bool, Callable[..., Any], bool]]:
    """Return for each function whether it is one of edges, the function, and whether a team calls it together."""
    if not functions:
        raise InvalidArgumentError("a map takes one or more functions of features")
    described = []
    for given in functions:
        function = given.function if isinstance(given, FeatureFunction) else check_function("a map", given)
        try:
            count = len(inspect.signature(function).parameters)
        except (TypeError, ValueError):
            raise InvalidArgumentError(f"a map takes functions of features, not {given!r:.80}") from None
        if count not in (3, 5):
            raise InvalidArgumentError(
                f"{getattr(function, '__name__', function)!r} has {count} parameters; a function of a vertex has three"
                " (f, v, data), and one of an edge five (f, u, v, edge, data)"
            )
        described.append((count == 5, function, isinstance(given, FeatureFunction)))
    return described


def _stage(function: Callable[..., Any], is_together: bool, k: int, alone: bool) -> Callable[..., Any]:
    """Return ``stage(team, *place)``, which runs a function for all features and returns whether any of them returned true."""

    def stage(team, *place):  # type: ignore[no-untyped-def]
        moved = False
        if is_together:
            if counts_as_true(function(team, *place)):
                moved = True
        else:
            for f in range(k) if alone else team.split(k):
                if counts_as_true(function(f, *place)):
                    moved = True
        if alone:
            return moved
        moved = team.any(moved)
        team.sync()  # the next function sees what the threads wrote
        return moved

    return stage


@functools.lru_cache(256)
def chain(functions: tuple[tuple[Callable[..., Any], bool], ...], k: int, alone: bool) -> Callable[..., Any]:
    """Return ``run(team, *place)``: it runs the functions in order, until one returns false, and returns the last result.

    Each is given with whether a team calls it together. If `alone`, the team is one thread, and is not used.
    """
    stage = _stage(*functions[0], k, alone)
    if len(functions) == 1:
        return stage
    rest = chain(functions[1:], k, alone)

    def run(team, *place):  # type: ignore[no-untyped-def]
        if stage(team, *place):
            return rest(team, *place)
        return False

    return run
