"""Combines: how the updates of a vertex become one, and how that changes its metadata.

A combine is commutative and associative. It is *idempotent* if repeating an update changes nothing, so that updates may arrive
late or twice; of others each counts exactly once. It *votes* if all updates of a round are the same, so that one is enough.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...compile.atomics import atomic_add, atomic_cas, atomic_max, atomic_min
from ...errors import UnsupportedTypeError
from ...support.validation import check_bool
from .atomic_update import atomic_update

__all__ = ["MAX", "MIN", "SUBTRACT", "SUM", "VOTE", "Combine"]


class Combine:
    """A combine of your own: a function that makes one value of two, which must be commutative and associative.

    Parameters
    ----------
    function : callable
        ``function(a, b)``, compiled into tasks: of two updates, and of the metadata and an update.
    neutral : number
        The update that changes nothing: ``function(a, neutral) == a``.
    idempotent : bool
        Whether ``function(function(a, b), b) == function(a, b)``. If so, programs may run without barriers.

    Examples
    --------
    >>> from atos_py import acc
    >>> def either(a, b):  # sets of up to 63 things, as bits
    ...     return a | b
    >>> acc.Combine(either, neutral=0, idempotent=True)
    <acc combine either>
    """

    def __init__(self, function: Callable[..., Any], *, neutral: Any, idempotent: bool = False) -> None:
        if not callable(function):
            raise UnsupportedTypeError(f"a combine takes a function of two values (got {function!r:.80})")
        self.name, self.neutral = getattr(function, "__name__", repr(function)), neutral
        self.idempotent, self.votes = check_bool("idempotent", idempotent), False
        # Functions that tasks call: to merge two updates, to put one onto the metadata, to do so atomically, which returns what
        # was there before, and to merge those of the threads of a team; without that, one thread does everything.
        self.merge, self.onto, self.change, self.by_all = function, function, atomic_update(function), None

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Copy and pickle a combine of this package by its name, another one by its function."""
        if globals().get(self.name) is self:
            return self.name
        return _remade, (self.merge, self.neutral, self.idempotent)

    def __repr__(self) -> str:
        return f"<acc combine {self.name}>"


def _remade(function: Callable[..., Any], neutral: Any, idempotent: bool) -> Combine:
    """Return the combine that was copied or pickled."""
    return Combine(function, neutral=neutral, idempotent=idempotent)


def _make(name: str, merge: Any, onto: Any, change: Any, by_all: Any, neutral: Any, **facts: bool) -> Combine:
    combine = Combine(merge, neutral=neutral)
    vars(combine).update(name=name, onto=onto, change=change, by_all=by_all, **facts)
    return combine


# The neutral updates of MIN and MAX stand for the largest and the least value of the metadata's type. Theirs look first.
MIN = _make(
    "MIN", min, min, lambda meta, u, found, update: atomic_min(meta, u, update) if update < found else found,
    lambda team, value: team.min(value), np.inf, idempotent=True,
)  # fmt: skip
MAX = _make(
    "MAX", max, max, lambda meta, u, found, update: atomic_max(meta, u, update) if update > found else found,
    lambda team, value: team.max(value), -np.inf, idempotent=True,
)  # fmt: skip
SUM = _make(
    "SUM", operator.add, operator.add, lambda meta, u, found, update: atomic_add(meta, u, update),
    lambda team, value: team.sum(value), 0,
)  # fmt: skip
SUBTRACT = _make(
    "SUBTRACT", operator.add, operator.sub,
    lambda meta, u, found, update: atomic_add(meta, u, -update),  # race: a vertex that reads an old value becomes active again
    SUM.by_all, 0,
)  # fmt: skip
VOTE = _make(
    "VOTE", max, lambda a, b: b, lambda meta, u, found, update: atomic_cas(meta, u, found, update), None, np.inf,
    idempotent=True, votes=True,
)  # fmt: skip
