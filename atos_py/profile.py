"""Where the time of a launch goes, and the same as ranges for NVIDIA's profilers."""

from __future__ import annotations

import contextlib
import functools
import importlib
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from typing import Any

__all__ = ["Profile", "Stopwatch", "annotated", "during", "nvtx_or_none"]


@dataclass(slots=True)
class Profile:
    """What the call of a launch spent its time on, in milliseconds; the parts add up to the whole.

    Attributes
    ----------
    compile : float
        Numba made code of the task. 0 unless this was the first launch of the task with arguments of these types, as also for
        the next two.
    link : float
        nvJitLink put it into the worker loops; always 0 on the CPU, where that is a part of compiling.
    load : float
        The code was read from the cache on disk, if it was there, and handed to the device.
    copy : float
        Counters went to the device and back; where the queue grew, its items too.
    launch : float
        The host checked arguments, started kernels, and noticed their end.
    run : float
        Workers ran tasks, by the device's own clock.
    """

    compile: float = 0.0
    link: float = 0.0
    load: float = 0.0
    copy: float = 0.0
    launch: float = 0.0
    run: float = 0.0

    @property
    def call(self) -> float:
        """The whole, in milliseconds."""
        return sum(self.parts().values())

    def parts(self) -> dict[str, float]:
        """Return the parts by name, in the order of time."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __add__(self, other: Profile) -> Profile:
        return Profile(*(mine + its for mine, its in zip(self.parts().values(), other.parts().values(), strict=True)))

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {value:.3f}" for name, value in self.parts().items() if value >= 5e-4)
        return f"call {self.call:.3f} ms: {parts or 'nothing'}"


_OF_THE_HOST = ("compile", "link", "load", "launch")


class Stopwatch:
    """The clock of a launch: its time belongs to one part at a time, "launch" unless said otherwise."""

    __slots__ = ("_part", "_seconds", "_since")

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._part, self._since = "launch", time.perf_counter()
        _here.watch = self

    def turn_to(self, part: str) -> str:
        """Count what follows for another part; return which one it was until now."""
        now, before = time.perf_counter(), self._part
        self._seconds[before] = self._seconds.get(before, 0.0) + now - self._since
        self._part, self._since = part, now
        return before

    def profile(self, run: float, copied: float) -> Profile:
        """Return the parts so far. Of "launch", `run` ms passed on the device, and the host copied for `copied` ms of them."""
        self.turn_to("launch")
        compiled, linked, loaded, launched = (self._seconds.get(part, 0.0) * 1e3 for part in _OF_THE_HOST)
        ran = max(run - copied, 0.0)
        return Profile(compiled, linked, loaded, copied, max(launched - copied - ran, 0.0), ran)


class _Here(threading.local):
    watch: Stopwatch | None = None


_here = _Here()  # the clock of the launch that this thread has begun last


@contextlib.contextmanager
def during(part: str, task: str) -> Iterator[None]:
    """Count what happens here for a part of the launch in this thread, and mark it for profilers."""
    watch = _here.watch
    before = watch.turn_to(part) if watch else ""
    try:
        with annotated(f"{part} {task}"):
            yield
    finally:
        if watch:
            watch.turn_to(before)


@functools.cache
def nvtx_or_none() -> Any:
    """Return the package nvtx, if it is installed."""
    try:
        return importlib.import_module("nvtx")
    except ImportError:
        return None


def annotated(name: str) -> AbstractContextManager[Any]:
    """Return a range of NVTX, in the domain ``atos_py``, where the package nvtx is installed; otherwise nothing."""
    nvtx = nvtx_or_none()
    return nvtx.annotate(name, domain="atos_py") if nvtx else nullcontext()  # type: ignore[no-any-return]
