"""The launch option `experiment`, which turns parts of the worklist off, and the four launch options that it replaces."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..errors import UnsupportedTypeError
from ..support.deprecation import warn_deprecated
from ..support.validation import check_bool, check_int

__all__ = ["MAX_FETCH_SIZE", "OLD_OPTIONS", "Experiment", "check_experiment", "join_experiments", "take_old_options"]

MAX_FETCH_SIZE = 4096
_MAX_PUSH_BUFFER = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """Parts of the worklist that a launch turns off, sizes, or counts: the option `experiment` of launches and algorithms.

    ``queue.launch_cta(task, experiment=atos.Experiment(push_buffer=0))`` is a launch without push buffers. An experiment is for
    measurements of what a part of the worklist is worth: it changes how long a launch takes, but no result. A field that is
    left out, or has its default, leaves the choice to the launch or the algorithm, which is best as a rule.

    Attributes
    ----------
    local_items : bool or int, optional
        How many of the items that a warp or CTA worker pushes in a step it runs itself, without the queue: up to `fetch_size`,
        and at most 4,096. With False, kept as 0, none; by default, or with True, kept as None, half of `fetch_size` and one. On
        the CPU items of a queue with priorities may stay, by default all. In other launches, such as with barriers, none do.
    work_sharing : bool
        Whether all workers help with the iterations of a long item, on a GPU, and a worker gives some of the items that it
        would keep to idle ones.
    push_buffer : int, optional
        Items that a worker gathers before it adds them to the queue together, up to 65,536; by default as many as fit in 8 KiB
        for CTAs, and in 1 KiB otherwise. With 0 each push goes to the queue by itself; in a queue with buckets 0 counts as 1.
    counters : bool
        Whether the statistics tell how workers shared their work: `LaunchStats.local_items` and the three after it. By default
        they do not, and a GPU runs a kernel that does not count.

    Raises
    ------
    UnsupportedTypeError
        If a value is of a wrong type.
    InvalidArgumentError
        If a number is out of range.

    References
    ----------
    Nasre, Burtscher and Pingali, "Data-driven versus topology-driven irregular computations on GPUs", IPDPS 2013, compare
    worklists with and without these parts.

    Examples
    --------
    >>> @atos.task
    ... def mark(worker, v, seen):
    ...     seen[v] = 1
    >>> seen, queue = atos.zeros(4, dtype=np.int32), atos.Queue(capacity=10)
    >>> queue.push([0, 2])
    >>> stats = queue.launch_cta(mark, seen, experiment=atos.Experiment(local_items=False, counters=True))
    >>> print(stats.local_items, seen[:])
    0 [1 0 1 0]
    """

    local_items: bool | int | None = None
    work_sharing: bool = True
    push_buffer: int | None = None
    counters: bool = False

    def __post_init__(self) -> None:
        items, buffer = self.local_items, self.push_buffer
        if isinstance(items, (bool, np.bool_)):  # of which True is 1, and would be found where 1 is
            items = None if items else 0
        checked = {
            "local_items": None if items is None else check_int("local_items", items, 0, MAX_FETCH_SIZE),
            "work_sharing": check_bool("work_sharing", self.work_sharing),
            "push_buffer": None if buffer is None else check_int("push_buffer", buffer, 0, _MAX_PUSH_BUFFER),
            "counters": check_bool("counters", self.counters),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def _changes(self) -> dict[str, Any]:
        """Return the values that are not the defaults, by name."""
        return {each.name: value for each in fields(self) if (value := getattr(self, each.name)) != each.default}


OLD_OPTIONS = frozenset([each.name for each in fields(Experiment)])
"""The launch options that an experiment replaces. They have the names of its fields, and go after this release."""


def check_experiment(given: Any) -> Experiment:
    """Return the experiment that a launch was given; in place of None, one whose fields have their defaults."""
    if given is None:
        return Experiment()
    if not isinstance(given, Experiment):
        example = "such as atos.Experiment(counters=True)"
        raise UnsupportedTypeError(f"experiment must be an atos.Experiment, {example} (got {given!r:.80})")
    return given


def join_experiments(first: Any, second: Any) -> Experiment:
    """Return an experiment with the changes of both, each of which may be None; of a field that both change, the second's."""
    return Experiment(**check_experiment(first)._changes() | check_experiment(second)._changes())


def take_old_options(options: Any) -> None:
    """Replace old launch options by an experiment, in the dictionary in which a call has collected its options, and warn."""
    old = {name: value for name, value in options.items() if name in OLD_OPTIONS}
    if not old:
        return
    changes = check_experiment(options.get("experiment"))._changes() | old
    options["experiment"] = Experiment(**changes)
    for name in old:
        del options[name]
    warn_deprecated(_in_words(old), f"experiment=atos.Experiment({_in_words(changes)})")


def _in_words(values: dict[str, Any]) -> str:
    return ", ".join([f"{name}={value!r:.80}" for name, value in values.items()])
