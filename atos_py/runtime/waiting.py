"""Counters that wait: those at which tasks arrive, and that were above zero when a launch with `debug=True` had ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compile.arguments import PoolArgument

__all__ = ["WaitingCounters", "arrays_in", "find_waiting"]

_MOST = 1000  # that are named
_SHOWN = 5  # in a line of text


@dataclass(frozen=True, eq=False)
class WaitingCounters:
    """Counters of an array that wait for arrivals, which did not come in a launch with ``debug=True``.

    Attributes
    ----------
    name : str
        What the array is called in the task, such as ``missing`` or ``matrix.missing``.
    size : int
        How many counters the array has.
    count : int
        How many of them wait.
    indices : numpy.ndarray
        Where the first 1,000 of these are, int64: as the host indexes the array, a row for each if the array has several
        dimensions.
    lacks : numpy.ndarray
        What each of those has yet to come down to be zero, int64.

    Examples
    --------
    >>> @atos.task
    ... def arrive(worker, v, missing):
    ...     worker.arrive(missing, v)
    >>> queue = atos.Queue(capacity=10)
    >>> queue.push([0, 1])
    >>> stats = queue.launch_thread(arrive, atos.asarray([1, 3, 1]), debug=True)
    >>> for each in stats.waiting:
    ...     print(each, each.indices, each.lacks)
    2 of 3 counters of 'missing' wait: 1 lacks 2, 2 lacks 1 [1 2] [2 1]
    """

    name: str
    size: int
    count: int
    indices: NDArray[np.int64]
    lacks: NDArray[np.int64]

    def __str__(self) -> str:
        shown = [
            f"{tuple(index) if isinstance(index, list) else index} lacks {lack:,}"
            for index, lack in zip(self.indices[:_SHOWN].tolist(), self.lacks[:_SHOWN].tolist(), strict=True)
        ]
        more = ", ..." if self.count > len(shown) else ""
        counters = f"{self.size:,} counter{'' if self.size == 1 else 's'} of {self.name!r}"
        return f"{self.count:,} of {counters} wait{'s' if self.count == 1 else ''}: {', '.join(shown)}{more}"

    def __repr__(self) -> str:
        return f"<WaitingCounters {self}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary that JSON can hold.

        Examples
        --------
        >>> atos.WaitingCounters("missing", 3, 1, np.array([2]), np.array([1])).to_dict()
        {'name': 'missing', 'size': 3, 'count': 1, 'indices': [2], 'lacks': [1]}
        """
        whole = {"name": self.name, "size": self.size, "count": self.count}
        return {**whole, "indices": self.indices.tolist(), "lacks": self.lacks.tolist()}


def find_waiting(values: Sequence[Any], counters: Mapping[int, str]) -> tuple[WaitingCounters, ...]:
    """Return what waits in the arguments of a launch that has ended.

    Parameters
    ----------
    values : sequence
        The arguments, as `Arguments` has them.
    counters : mapping
        The names of the arrays of counters by their numbers among the arrays of the arguments.
    """
    if not counters:
        return ()
    arrays = list(arrays_in(values))
    found = [_waiting_in(counters[number], *arrays[number]) for number in sorted(counters)]
    return tuple([each for each in found if each.count])


def _waiting_in(name: str, array: Any, used: int | None) -> WaitingCounters:
    """Return which elements of an array, or of the first of them that are in use, are above zero."""
    values = array.to_numpy() if used is None else array[:used]
    above = np.flatnonzero(values > 0)
    first = above[:_MOST]
    indices = first if values.ndim == 1 else np.stack(np.unravel_index(first, values.shape), axis=-1)
    lacks = values.reshape(-1)[first].astype(np.int64)
    return WaitingCounters(name, values.size, len(above), indices.astype(np.int64), lacks)


def arrays_in(values: Sequence[Any]) -> Iterator[tuple[Any, int | None]]:
    """Yield the arrays of arguments in the order of their numbers in code, each with how many elements of a pool are in use."""
    for value in values:
        if isinstance(value, PoolArgument):
            used = int(value.counters.to_numpy().min())
            yield from ((array, used) for array in value.arrays.values())
        elif isinstance(value, tuple):
            yield from arrays_in(value)
        elif hasattr(value, "pointer"):
            yield value, None
