"""The tasks of one launch: one, or several kinds of tasks, of which the queue stores with each item which one runs it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from ..core.library import lib
from ..errors import InvalidArgumentError, UnsupportedTypeError
from .task import Task

__all__ = ["Launchable", "Tasks", "check_tasks", "launchable", "tasks_of"]


@dataclass(frozen=True)
class Tasks:
    """The tasks of a launch whose items have a kind, which is the place of an item's task among them."""

    members: tuple[Task, ...]

    @functools.cached_property
    def name(self) -> str:
        """The names of the tasks."""
        return ", ".join(task.name for task in self.members)

    @functools.cached_property
    def nested(self) -> bool:
        """Whether any of them is nested."""
        return any(task.nested for task in self.members)


Launchable = Task | Tasks


def launchable(tasks: tuple[Task, ...], with_kinds: bool) -> Launchable:
    """Return what a launch of tasks runs, whose items have a kind or not."""
    return Tasks(tasks) if with_kinds else tasks[0]


def tasks_of(launched: Launchable) -> tuple[Task, ...]:
    """Return the tasks of a launch; the first is that of items pushed without one."""
    return launched.members if isinstance(launched, Tasks) else (launched,)


def check_tasks(given: Any) -> tuple[Task, ...]:
    """Return the tasks that a launch is given: one, or a tuple or list of them.

    Raises
    ------
    UnsupportedTypeError
        If something else is given.
    InvalidArgumentError
        If there are none, too many, two of one name, or nested ones with groups of different sizes.
    """
    tasks = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    for task in tasks:
        if not isinstance(task, Task):
            raise UnsupportedTypeError(f"launch a task made with @atos.task, or a tuple of such tasks (got {task!r:.80})")
    return tasks if len(tasks) == 1 else _check_together(tasks)


def _check_together(tasks: tuple[Task, ...]) -> tuple[Task, ...]:
    names = [task.name for task in tasks]
    if not 1 <= len(tasks) <= lib.ATOS_MAX_KINDS:
        raise InvalidArgumentError(f"a launch takes 1 to {lib.ATOS_MAX_KINDS} tasks (got {len(tasks)})")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InvalidArgumentError(f"two tasks of the launch are called {twice!r}, by which they are told apart; rename one")
    groups = sorted({task.group for task in tasks if task.nested})
    if len(groups) > 1:
        raise InvalidArgumentError(
            f"the nested tasks of a launch have one group= (got {groups}); launch them one after another"
        )
    return tasks
