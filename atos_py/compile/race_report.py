"""Races of tasks that a launch with `debug="races"` has found: what they are, and what would mend them."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Race", "mend_of"]

_WHAT = {"read": "reads", "write": "writes"}


@dataclass(frozen=True)
class Race:
    """Two accesses of one element that nothing orders, of two tasks or of two iterations, found by ``debug="races"``.

    Each pair has the access that was made first, and the other one.

    Attributes
    ----------
    array : str
        What the array is called in the task, such as ``total`` or ``matrix.value``.
    index : int or tuple of int
        The element.
    operations : tuple of str
        "read", "write", or the name of an atomic operation.
    tasks, functions, filenames, lines : tuple
        The tasks, and where in their functions, or in functions that they call.
    items, iterations : tuple
        The items of the tasks, None for the host's function between rounds or an idle function, and for nested tasks the
        iterations, None for a workload or a flat task.
    mend : str
        Which order lacks, and the words that mend it.

    Examples
    --------
    >>> @atos.task
    ... def count(worker, v, total):
    ...     total[0] += 1
    >>> queue = atos.Queue(capacity=10, device="cpu")
    >>> queue.push([0, 1])
    >>> try:
    ...     queue.launch_thread(count, atos.zeros(1, dtype=np.int64, device="cpu"), debug="races")
    ... except atos.RaceError as error:
    ...     print(error.races[0].array, error.races[0].index, error.races[0].operations)
    total 0 ('write', 'read')
    """

    array: str
    index: int | tuple[int, ...]
    operations: tuple[str, str]
    tasks: tuple[str, str]
    functions: tuple[str, str]
    filenames: tuple[str, str]
    lines: tuple[int, int]
    items: tuple[Any, Any]
    iterations: tuple[int | None, int | None]
    mend: str

    def __str__(self) -> str:
        first, second = map(self._describe, range(2))
        return f"element {self.index} of array {self.array!r}: {first}, and {second}; {self.mend}"

    def _describe(self, k: int) -> str:
        operation, item, iteration = self.operations[k], self.items[k], self.iterations[k]
        what = _WHAT.get(operation) or f"does {operation}"
        of = "a function without an item" if item is None else f"item {item}"
        of = of if iteration is None else f"iteration {iteration} of {of}"
        where = f"{self.functions[k]} ({os.path.basename(self.filenames[k])}:{self.lines[k]})"
        return f"{where} {what} it in {of}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary that JSON can hold.

        Examples
        --------
        >>> names, places = ("read", "write"), ("task.py", "task.py")
        >>> race = atos.Race("total", 0, names, ("f", "f"), ("f", "f"), places, (3, 3), (0, 1), (None, None), "order them")
        >>> race.to_dict()["operations"]
        ['read', 'write']
        """
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def mend_of(operations: tuple[str, str], counts: bool) -> str:
    """Return which order lacks between two accesses, and the words that mend it; `counts`: tasks wait by counting."""
    plain = {"read", "write"}.intersection(operations)
    atomic = next((each for each in operations if each not in plain), "")
    lacks = "nothing orders the two"
    order = "push one from the other, let worker.arrive(counter, i, push=...) push it, or launch with barrier=True"
    if counts:
        lacks = "nothing orders the two, since an atomic without memory_order does not"
        order = "count by worker.arrive(counter, i, push=...) in place of that atomic"
    if plain == {"write"} and atomic:
        return f"{lacks}: {order}; or write by atos.atomic_store or atos.atomic_exch"
    if plain == {"write"}:
        return f"{lacks}: {order}; or let one task alone write, or all by one of the atomics, such as atos.atomic_max"
    if plain == {"read"}:
        return f"{lacks}: {order}; or read by atos.atomic_load if a value in between will do"
    return f"{lacks}: {order}; or use one atomic, such as atos.atomic_add, for both, or atos.atomic_load and atos.atomic_store"
