"""Running a workload again and again: the runs are timed one after the other, and then each result is verified."""

from __future__ import annotations

import time
from typing import Any

from ..compile.best_links import only_best
from ..core.devices import Device
from ..errors import LaunchConfigError, QueueFullError, VerificationError
from ..runtime.stats import find_stats
from .report import Row
from .workloads import Workload

__all__ = ["measure"]


@only_best()
def measure(row: Row, workload: Workload, on: Device, repeat: int) -> Row:
    """Fill in a row: one run that warms up, then `repeat` timed runs in a row, and then the proof of each of their results.

    A proof between two runs would leave cold caches, and so other times than those of a program that repeats a call.
    """
    free = on.memory[0] if on.kind == "cuda" else None
    results: list[Any] = []
    try:
        for counted in range(repeat + 1):
            begin = time.perf_counter()
            result = workload.run(**row.options)
            seconds = time.perf_counter() - begin
            if counted:
                stats = find_stats(result)
                row.milliseconds.append(stats.milliseconds)
                row.call_milliseconds.append(seconds * 1e3)
                row.launch = {name: value for name, value in stats.to_dict().items() if name != "trace"}
                results.append(result)
            del result
            if free is not None and counted <= 1:
                row.driver_bytes = max(free - on.memory[0], 0)
        while results:
            row.result = workload.verify(results.pop(0), row.options)
    except LaunchConfigError as error:
        row.skipped = str(error)
    except (VerificationError, QueueFullError) as error:
        row.failure = str(error)
    return row
