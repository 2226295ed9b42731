"""Checks inside a task that is launched with `debug=True`: their sites, and the error that a failed check becomes."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import TaskError
from .arguments import ArrayKind, HostKind, Kind, LoweredKind, MirrorKind, OwnedKind, PoolKind, PrivateKind, TupleKind

__all__ = ["Checks", "Site", "array_names", "task_error"]

# As the number of an array that is no argument.
SCRATCH = -1  # the worker's scratch memory
LOCAL = -2  # an array from local_array
_OF_ARRAYS = ("index", "owner", "alignment", "arrival")  # checks of an array
_NAMES = {SCRATCH: "worker.scratch", LOCAL: "local_array"}


@dataclass(frozen=True)
class Site:
    """A place in the source of a task where something is checked.

    Attributes
    ----------
    kind : {'index', 'owner', 'alignment', 'arrival', 'join', 'division', 'cast', 'assert', 'raise', 'access', 'meeting'}
        What is checked, or in a launch with ``debug="races"`` looked at.
    function, filename, line
        Where.
    detail : str
        Of an index, the axis, or nothing if there is one axis only; of an owner, "device" or "host"; of an alignment, the
        operation; of a meeting, the collective call; of a cast, the types from which and to which; otherwise what is to be
        said.
    """

    kind: str
    function: str
    filename: str
    line: int
    detail: str


@dataclass
class Checks:
    """The checks of a launch's tasks: their sites, whose numbers are in the code, and the names of the arrays in each task.

    The `counters` are the arrays at whose elements tasks arrive: the name of each by its number among the launch's arrays. With
    `races` the tasks also tell of their accesses.
    """

    arrays: dict[str, tuple[str, ...]] = field(default_factory=dict)
    without_item: str = "in the idle function"  # where a check is that fails in no item
    sites: list[Site] = field(default_factory=list)
    counters: dict[int, str] = field(default_factory=dict)
    races: bool = False

    def number(self, site: Site) -> int:
        """Return the number of a site."""
        if site not in self.sites:
            self.sites.append(site)
        return self.sites.index(site)


def array_names(names: list[str], kinds: tuple[Kind, ...]) -> tuple[str, ...]:
    """Return what the arrays of a launch are called in its task, in order, such as ``graph.indptr``."""

    def arrays(name: str, kind: Kind) -> Iterator[str]:
        if isinstance(kind, (ArrayKind, MirrorKind, PrivateKind, LoweredKind, OwnedKind, HostKind)):
            yield name
        elif isinstance(kind, (TupleKind, PoolKind)):
            for member, its_kind in zip(kind.fields, kind.kinds, strict=True):
                yield from arrays(f"{name}.{member}", its_kind)

    return tuple(array for name, kind in zip(names, kinds, strict=True) for array in arrays(name, kind))


def task_error(task: str, checks: Checks, failure: Any, item: Any, lost: int) -> TaskError:
    """Return the error of a check that failed.

    Parameters
    ----------
    task : str
        The task's name.
    checks : Checks
    failure : cdata
        The core's `atos_failure`.
    item : int, tuple or None
        The item that the task ran on; None if it was an idle function, or the one between rounds.
    lost : int
        Pushed tasks that found no room.
    """
    site = checks.sites[failure.site]
    index = bound = None
    name = _NAMES.get(failure.array) or checks.arrays[task][failure.array] if site.kind in _OF_ARRAYS else ""
    if site.kind == "index":
        index, bound = failure.value, failure.bound
        axis = f" along axis {site.detail}" if site.detail else ""
        hint = "; negative indices do not count from the end" if index < 0 else ""
        what = f"index {index} is out of range for array {name!r} of length {bound}{axis}{hint}"
    elif site.kind == "owner":
        index, bound = failure.value, failure.bound
        use = "placement='owned' is for" if site.detail == "device" else "tasks store to"
        what = f"element {index} of array {name!r} is another {site.detail}'s: {use} elements of their own, here below {bound}"
    elif site.kind == "alignment":
        first, count = failure.value, failure.bound
        what = (
            f"{site.detail} at element {first} of array {name!r}, which has to be a multiple of {count}"
            if first % count
            else f"{site.detail} on array {name!r}, which does not begin at a multiple of {4 * count} bytes; copy it"
        )
    elif site.kind == "arrival":
        index = failure.value
        what = (
            f"an arrival of {failure.bound} brings element {index} of array {name!r} below zero: more have arrived than it"
            " counted"
        )
    elif site.kind == "join" and site.detail:
        what = f"{site.detail} (got {failure.value})"
    elif site.kind == "join":
        what = f"{failure.value} is the handle of no open join: the join has ended, or more arrive than it waits for"
    elif site.kind == "meeting":
        what = _missing(checks, site, failure)
    elif site.kind == "cast":
        given, wanted = site.detail.split()
        limits = np.iinfo(wanted)
        what = f"{_number(failure.value, given)} ({given}) does not fit {wanted} ({limits.min} to {limits.max})"
    else:
        what = site.detail
    where = f"{site.function} ({os.path.basename(site.filename)}:{site.line})"
    during = checks.without_item if item is None else f"in item {item}"
    return TaskError(
        f"{where}: {what}, {during}" + (f"; {lost} pushed tasks found no room in the queue and were lost" if lost else ""),
        task=task,
        kind=site.kind,
        function=site.function,
        filename=site.filename,
        line=site.line,
        item=item,
        index=index,
        bound=bound,
        lost=lost,
    )


def _missing(checks: Checks, site: Site, failure: Any) -> str:
    """Say which threads a collective call waits for in vain: those of `failure.array` that have not come."""
    word, number = site.detail.partition(".")[0], failure.array - failure.bound
    others = f"the other {number} have" if number > 1 else "the other one has"
    if failure.value < 0:
        where = f"{others} returned from the task"
    else:
        other = checks.sites[failure.value]
        where = f"{others.replace('have', 'wait').replace('has', 'waits')} in {other.detail} of line {other.line}"
    return (
        f"{failure.bound} of {failure.array} threads of the {word} have come to {site.detail}, and {where}: call it where all"
        f" threads of the {word} come"
    )


def _number(word: int, dtype: str) -> int | float:
    """Return the number of type `dtype` that came as a signed word; floats come as float64."""
    if dtype.startswith("float"):
        return float(struct.unpack("<d", struct.pack("<q", word))[0])
    return word % 2**64 if dtype.startswith("u") else word
