"""Timing breakdown of a launch (compile, link, load, copy, host, run), also as ranges of NVTX for NVIDIA's profilers."""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

__all__ = ["Profile", "annotated", "compilation", "during", "nvtx_annotate", "profile_of"]


_IN_WORDS = {"load": "load code", "copy": "copy counters", "launch": "start"}  # of parts whose names say too little


@dataclass(slots=True)
class Profile:
    """Time of the parts of a launch's call, in milliseconds; they add up to the whole.

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
        return {name: getattr(self, name) for name in self.__slots__}

    def __add__(self, other: Profile) -> Profile:
        return Profile(
            self.compile + other.compile,
            self.link + other.link,
            self.load + other.load,
            self.copy + other.copy,
            self.launch + other.launch,
            self.run + other.run,
        )

    def __str__(self) -> str:
        parts = ", ".join(f"{_IN_WORDS.get(name, name)} {value:.3f}" for name, value in self.parts().items() if value >= 5e-4)
        return f"call {self.call:.3f} ms: {parts or 'nothing'}"


class _Compilation(threading.local):
    """Times of this thread's last compilation: seconds of each part, when it began, and seconds inside of open parts."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.began = -math.inf
        self.inside: list[float] = []


compilation = _Compilation()


@contextlib.contextmanager
def during(part: str, task: str) -> Iterator[None]:
    """Count what happens here for a part of the launch in this thread, but for parts inside, and mark it for profilers."""
    begin = time.perf_counter()
    if not compilation.inside:
        compilation.seconds, compilation.began = {}, begin
    compilation.inside.append(0.0)
    try:
        with annotated(f"{part} {task}"):
            yield
    finally:
        took = time.perf_counter() - begin
        compilation.seconds[part] = compilation.seconds.get(part, 0.0) + took - compilation.inside.pop()
        if compilation.inside:
            compilation.inside[-1] += took


def profile_of(begin: float, run: float, copied: float) -> Profile:
    """Return the profile of a launch in this thread that began at `begin` and ends now, by `time.perf_counter`.

    Of its time, `run` ms passed on the device, and for `copied` ms of them the host copied.
    """
    ran = max(run - copied, 0.0)
    host = (time.perf_counter() - begin) * 1e3 - copied - ran
    if compilation.began < begin:  # the task was ready
        return Profile(0.0, 0.0, 0.0, copied, max(host, 0.0), ran)
    compiled, linked, loaded = (compilation.seconds.get(part, 0.0) * 1e3 for part in ("compile", "link", "load"))
    return Profile(compiled, linked, loaded, copied, max(host - compiled - linked - loaded, 0.0), ran)


@functools.cache
def nvtx_annotate() -> Any:
    """Return what makes a range in the package nvtx, or None if that is not installed."""
    try:
        return getattr(importlib.import_module("nvtx"), "annotate", None)  # None too in a folder that happens to be called nvtx
    except ImportError:
        return None


def annotated(name: str) -> AbstractContextManager[Any]:
    """Return a range of NVTX, in the domain ``atos_py``, where the package nvtx is installed; otherwise nothing."""
    annotate = nvtx_annotate()
    return annotate(name, domain="atos_py") if annotate else _NOTHING  # type: ignore[no-any-return]


_NOTHING = nullcontext()
