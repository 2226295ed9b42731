"""The kinds of items that wait in joins: by the names of their tasks, whatever the order of the tasks in the next launch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..errors import InvalidArgumentError
from ..support.uninterrupted import uninterrupted
from .join_layout import INFO, IS_OPEN, MISSING, PUSHES, missing_of

__all__ = ["JoinKinds", "fit_kinds"]


class JoinKinds(NamedTuple):
    """The names of the tasks of waiting items by number, None for the first task of a launch, and the byte of the number.

    Without a byte, all items are of the first name.
    """

    names: tuple[str | None, ...] = (None,)
    byte: int | None = None


@uninterrupted
def fit_kinds(joins: Any, wanted: JoinKinds, tasks: tuple[str, ...]) -> None:
    """Give the kinds of the items that wait in joins the numbers that a launch of tasks gives them.

    Raises
    ------
    InvalidArgumentError
        If an item waits for a task that the launch lacks; nothing is changed then.
    """
    names, byte = joins._kinds
    words = joins._words()
    pushes = words[:, INFO] & (IS_OPEN | PUSHES) == IS_OPEN | PUSHES
    waits = pushes & (missing_of(words[:, MISSING], joins.dtype) > 0)  # the others have pushed their items
    if not waits.any():
        joins._kinds = wanted
        return
    items = joins._records.item.to_numpy()
    stored = items.view(np.uint8)
    numbers = stored[waits, byte] if byte is not None else np.zeros(int(waits.sum()), np.uint8)
    found = [names[number] for number in numbers]
    missing = sorted({name for name in found if name is not None} - {*tasks})
    if missing:
        raise InvalidArgumentError(
            f"items in joins are waiting for tasks that the launch of {', '.join(tasks)} lacks (of"
            f" {', '.join(map(repr, missing))}); launch these too, or reset() the joins"
        )
    if wanted.byte is None:  # the launch has one task, of which all items are
        joins._kinds = wanted if all(name is None for name in found) else JoinKinds(tasks)
        return
    stored[waits, wanted.byte] = [0 if name is None else tasks.index(name) for name in found]
    joins._records._parts.arrays["item"][: len(items)] = items
    joins._kinds = wanted
