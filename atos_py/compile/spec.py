"""ProgramSpec: task, argument types, item type and worker of a launch, on which its code depends; the key of every cache.

Two launches with equal specs run the same program. The fingerprint is a hash of the content: it names the code on disk and in
the archives, and finds in memory what was made for functions that are other objects with the same content.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from types import CodeType
from typing import Any

import numpy as np

from .arguments import Kind
from .codegen.introspect import UnhashableError, fingerprint
from .kinds import Launchable, Tasks, tasks_of
from .task import Task

__all__ = ["REGISTERS", "SPILLS_WITH_ROUNDS", "ProgramSpec"]

#: Of a thread, tried in turn until nothing is spilled: a multiprocessor then holds 1,536, 1,280 or 1,024 threads, or fewer.
REGISTERS = (40, 48, 64, None)
#: Bytes that a thread may spill in a launch of tasks of users with a function between rounds, which is what spills.
SPILLS_WITH_ROUNDS = 96
_ON_CPU = ()  # limits of registers of code for a CPU
_PACKAGE = __name__.partition(".")[0] + "."


@dataclass(frozen=True)
class ProgramSpec:
    """A program that a launch compiles and links: its tasks, the types of its arguments and items, and its options.

    Attributes
    ----------
    task : Task or Tasks
    idle : callable or None
        Run by workers that find nothing to do, as `idle(worker, *args)`.
    kinds : tuple of Kind
        The kinds of the launch's arguments.
    item_dtype : numpy.dtype
        The type of the queue's items.
    worker : {'thread', 'warp', 'cta'}
        What one worker of the launch is.
    max_registers : int or tuple of int, optional
        The most registers that a thread may take, or several such limits, in place of what the first task says (`task`).
    debug : bool or 'races'
        Whether to compile the task with checks, and to look for races.
    buckets : bool
        Whether the queue has buckets, so that pushes may have a priority.
    newest : bool
        Whether workers take the newest items of the queue first.
    each_round : callable or None
        Run by one worker between two rounds, as `each_round(worker, *args)`.
    inbox : bool
        Whether workers look for items that the host sends while they run.
    peers : bool
        Whether the launch is over several GPUs.
    counters : bool
        Whether workers count how they share their work.
    threads : int
        Of a worker on a CPU.
    """

    task: Launchable
    idle: Callable[..., Any] | None
    kinds: tuple[Kind, ...]
    item_dtype: np.dtype[Any]
    worker: str = "cta"
    max_registers: int | tuple[int | None, ...] | None = None
    debug: bool | str = False
    buckets: bool = False
    each_round: Callable[..., Any] | None = None
    inbox: bool = False
    peers: bool = False
    counters: bool = False
    newest: bool = False
    threads: int = 1

    def on_cpu(self) -> ProgramSpec:
        """Return the spec without what code for a CPU does not depend on."""
        return replace(self, worker="cta", max_registers=_ON_CPU, inbox=False, peers=False, counters=False, newest=False)

    def limits(self) -> tuple[tuple[int | None, ...], int]:
        """Return the limits of registers that are tried in turn, and the bytes that a thread may spill with one that is taken.

        Of several tasks the first one says the limits. Spills are allowed where a function runs between rounds, since it is
        what spills: on an H200 a search of rmat22 by a user's tasks takes 1.49 ms with 40 registers and 1.58 with 48.
        """
        members = tasks_of(self.task)
        given: Any = self.max_registers
        if given is None:
            given = members[0].max_registers
        if isinstance(given, Mapping):
            given = given.get(self.worker)
        limits = REGISTERS if given is None else given if isinstance(given, tuple) else (given,)
        return limits, 0 if self.each_round is None else max(map(_spills_of, members))

    def fingerprint(self, *target: Any, describe_code: Callable[[CodeType], Any] | None = None) -> str | None:
        """Return a hash of the content and of what the code is for; None if a function refers to what has no content.

        `describe_code` says what tells the code of one function from that of another, in place of its instructions.
        """
        functions = [(member.body, member.workload, member.group, member.opens) for member in tasks_of(self.task)]
        names = [member.name for member in self.task.members] if isinstance(self.task, Tasks) else None
        others = [getattr(self, field.name) for field in fields(self)[3:]] + [self.limits()]
        how = {} if describe_code is None else {"describe_code": describe_code}
        try:
            return fingerprint(functions, names, self.idle, tuple(map(str, self.kinds)), *others, target, **how)
        except UnhashableError:
            return None


def _spills_of(task: Task) -> int:
    """Return how many bytes a thread may spill for a task; none for one of the package that says nothing about it."""
    if task.spills is not None:
        return task.spills
    module = getattr(task.body, "__module__", None) or ""  # what exec has made has none
    return 0 if module.startswith(_PACKAGE) else SPILLS_WITH_ROUNDS
