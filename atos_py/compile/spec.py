"""ProgramSpec: task, argument types, item type and worker of a launch, on which its code depends; the key of every cache.

Two launches with equal specs run the same program. The fingerprint is a hash of the content: it names the code on disk and in
the archives, and finds in memory what was made for functions that are other objects with the same content.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from types import CodeType
from typing import Any

import numpy as np

from .arguments import Kind
from .codegen.introspect import UnhashableError, fingerprint
from .kinds import Launchable, Tasks, tasks_of

__all__ = ["ProgramSpec"]


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
        The most registers that a thread may take, or several such limits, of which the first counts with which the kernel needs
        no stack, or spills as little as `spills_allowed` says. By default 40, so that a multiprocessor holds 1,536 threads, 48,
        64, and as many as it needs; for some kernels of the package what `only_limit` says.
    debug : bool
        Whether to compile the task with checks.
    buckets : bool
        Whether the queue has buckets, so that pushes may have a priority.
    each_round : callable or None
        Run by one worker between two rounds, as `each_round(worker, *args)`.
    mailbox : bool
        Whether workers look for items that the host sends while they run.
    peers : bool
        Whether the launch is over several GPUs.
    counters : bool
        Whether workers count how they share their work.
    """

    task: Launchable
    idle: Callable[..., Any] | None
    kinds: tuple[Kind, ...]
    item_dtype: np.dtype[Any]
    worker: str = "cta"
    max_registers: int | tuple[int, ...] | None = None
    debug: bool = False
    buckets: bool = False
    each_round: Callable[..., Any] | None = None
    mailbox: bool = False
    peers: bool = False
    counters: bool = False

    def on_cpu(self) -> ProgramSpec:
        """Return the spec without what code for a CPU does not depend on."""
        return replace(self, worker="cta", max_registers=None, mailbox=False, peers=False, counters=False)

    def fingerprint(self, *target: Any, describe_code: Callable[[CodeType], Any] | None = None) -> str | None:
        """Return a hash of the content and of what the code is for; None if a function refers to what has no content.

        `describe_code` says what tells the code of one function from that of another, in place of its instructions.
        """
        functions = [(member.body, member.workload, member.group) for member in tasks_of(self.task)]
        names = [member.name for member in self.task.members] if isinstance(self.task, Tasks) else None
        others = [getattr(self, field.name) for field in fields(self)[3:]]
        how = {} if describe_code is None else {"describe_code": describe_code}
        try:
            return fingerprint(functions, names, self.idle, tuple(map(str, self.kinds)), *others, target, **how)
        except UnhashableError:
            return None
