"""Running a workload again and again, each run timed and verified."""

from __future__ import annotations

import time

from ..core.devices import Device
from ..errors import LaunchConfigError, QueueFullError, VerificationError
from ..runtime.stats import find_stats
from .report import Row
from .workloads import Workload

__all__ = ["measure"]


def measure(row: Row, workload: Workload, on: Device, repeat: int) -> Row:
    """Fill in a row: one run that warms up, then `repeat` runs, each of them timed and verified."""
    free = on.memory[0] if on.kind == "cuda" else None
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
                row.result = workload.verify(result, row.options)
            del result
    except LaunchConfigError as error:
        row.skipped = str(error)
    except (VerificationError, QueueFullError) as error:
        row.failure = str(error)
    if free is not None:
        row.driver_bytes = max(free - on.memory[0], 0)
    return row
