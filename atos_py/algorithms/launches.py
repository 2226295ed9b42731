"""The launches that one call of an algorithm makes."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ..errors import LaunchTimeoutError
from ..queue import Queue
from ..stats import LaunchStats
from ..task import Task
from ..validate import seconds

__all__ = ["Launches"]

_WATCHING = {"timeout", "trace", "progress"}


class Launches:
    """Launches with options of the user's, of which `timeout` is for all of them together, and their statistics.

    Parameters
    ----------
    name : str
        What the user called.
    options : dict
        As for `Queue.launch_cta`.
    """

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        self.name, self.options = name, options
        self.runs: list[LaunchStats] = []
        timeout = options.get("timeout")
        limit = math.inf if timeout is None else seconds(timeout)
        self.end = None if limit == math.inf else time.monotonic() + limit

    def run(
        self,
        queue: Queue,
        worker: str,
        task: Task,
        *args: Any,
        usual: Mapping[str, Any] = MappingProxyType({}),
        always: Mapping[str, Any] = MappingProxyType({}),
    ) -> LaunchStats:
        """Launch a task, with options that are `usual` unless the user gave others, and some that are `always` so."""
        options = {**usual, **self.options, **always}
        if self.end is not None:
            options["timeout"] = self.end - time.monotonic()
            if options["timeout"] <= 0:
                raise self._over(len(queue))
        try:
            self.runs.append(getattr(queue, f"launch_{worker}")(task, *args, **options))
        except LaunchTimeoutError as error:
            if self.end is None or error.stuck:
                raise
            raise self._over(error.pending) from error
        return self.runs[-1]

    def prepare(self, queue: Queue, worker: str, task: Task, *args: Any) -> None:
        """Have a task compiled that this call did without and a later one may need, by a launch of nothing that is not counted.

        So one call warms up for all others of its kind, whatever its data made of it.
        """
        options = {name: value for name, value in self.options.items() if name not in _WATCHING}
        getattr(queue, f"launch_{worker}")(task, *args, **options)

    def _over(self, pending: int | None) -> LaunchTimeoutError:
        text = f"{self.name} took longer than its timeout of {self.options['timeout']} s; nothing of the result is kept"
        return LaunchTimeoutError(text, pending=pending, stuck=False)
