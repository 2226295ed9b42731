"""The best kernel of a task, linked by another process while launches run the kernel of the first tier.

A task has two kernels for GPUs. The first tier is there in a breath: the worker loop is machine code, made when the core was
built, and calls the task. The best one has the task inlined into the loop, and nothing in it that the launch does not use; it
takes nvJitLink a second. So the first launch runs the first tier, while the best kernel is linked, which a later launch takes.
Results are the same, up to the order of atomic operations.

One link runs at a time, in a process that this one kills when it exits: a thread in nvJitLink would hold up the exit, or crash
in it. What is linked is loaded by the thread of a later launch, when no launch of this process runs, since loading may wait for
kernels, and hold up the stop and the growth of a launch.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..errors import InvalidArgumentError
from . import link_child

__all__ = ["BestLink", "Inputs", "can_link_elsewhere", "only_best", "running", "wants_best"]

_LTO_IR, _FATBIN = 3, 4  # as nvJitLink numbers its inputs
_NVJITLINK = "libnvJitLink.so"

#: Has an element for each launch of this process that runs.
running: list[None] = []
Inputs = tuple[bytes, Sequence[bytes], Sequence[str]]  # of a link: a fatbin, modules of LTO-IR, and options
_best_alone = threading.local()


class BestLink:
    """A link that another process makes.

    Parameters
    ----------
    make : callable
        ``make(link)`` keeps the kernel where it is looked for; `link` is `_link_in_child`.
    """

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make, self._ended, self._is_given_up = make, threading.Event(), False
        self._links = _links.put(self)

    def is_due(self) -> bool:
        """Whether the next launch is to run the best kernel.

        The link has ended, and what it made can be loaded now; or no other kernel may run.
        """
        return (self._ended.is_set() and not self._is_given_up and not running) or wants_best()

    def give_up(self) -> bool:
        """Whether the caller, who has not found the kernel although the link has ended, is to make it; true once.

        From then on the kernel is not due: launches go on with the first tier if the caller cannot make it either.
        """
        is_to_make, self._is_given_up = self._ended.is_set() and not self._is_given_up, self._ended.is_set()
        return is_to_make

    def run(self) -> None:
        """Have the kernel made, if that comes about."""
        try:
            with contextlib.suppress(Exception):
                self._make(_link_in_child)
        finally:
            self._ended.set()

    def finish(self) -> None:
        """Return once no other process makes the kernel: it is there, or the caller is to make it."""
        # A process that was forked has links of its own, and no thread for those of its parent.
        if self._links is _links and not _links.take_back(self):
            self._ended.wait()


class _Links:
    """The links of this process that wait, and the thread and the process of the one that is made."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[BestLink] = []
        self._is_served = False
        self.child: subprocess.Popen[bytes] | None = None

    def put(self, link: BestLink) -> _Links:
        with self._lock:
            self._waiting.append(link)
            if not self._is_served:
                self._is_served = True
                threading.Thread(target=self._make_all, name="atos_py links", daemon=True).start()
        return self

    def take_back(self, link: BestLink) -> bool:
        """Whether a link was still waiting, which it is no more."""
        with self._lock:
            is_waiting = link in self._waiting
            if is_waiting:
                self._waiting.remove(link)
        return is_waiting

    def _make_all(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._is_served = False
                    return
                link = self._waiting.pop()  # the newest: who edits a task runs the last edit again
            link.run()

    def end(self) -> None:
        """Make no more links, since this process ends."""
        with self._lock:
            self._waiting.clear()
        child = self.child
        if child is not None and child.poll() is None:
            child.kill()


_links = _Links()


def can_link_elsewhere() -> bool:
    """Whether this process knows an interpreter that it can start: not where it is a program with Python in it."""
    return os.path.basename(sys.executable or "").startswith(("python", "pypy")) and not getattr(sys, "frozen", False)


def wants_best() -> bool:
    """Whether launches of this thread wait for best kernels: in `only_best`, or as the environment variable ATOS_TIER says."""
    if getattr(_best_alone, "depth", 0):
        return True
    value = os.environ.get("ATOS_TIER", "auto")
    if value not in ("auto", "best"):
        raise InvalidArgumentError(f"the environment variable ATOS_TIER is auto or best (got {value!r})")
    return value == "best"


@contextlib.contextmanager
def only_best() -> Iterator[None]:
    """Have launches of this thread wait for the best kernels of their tasks, as where their times are measured."""
    _best_alone.depth = getattr(_best_alone, "depth", 0) + 1
    try:
        yield
    finally:
        _best_alone.depth -= 1


def _link_in_child(inputs: Inputs) -> tuple[bytes, str]:
    """Return a cubin, and what the linker said, of a link by another process.

    Raises
    ------
    RuntimeError
        If the link fails.
    OSError, EOFError
        If there can be no such process, or it ends before.
    """
    core, modules, options = inputs
    header = {"library": _path_of_nvjitlink(), "options": list(options), "kinds": [_FATBIN, *[_LTO_IR] * len(modules)]}
    with subprocess.Popen(
        [sys.executable, "-I", "-S", link_child.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # so that Ctrl-C is for this process alone
    ) as child:
        _links.child = child
        assert child.stdin is not None
        assert child.stdout is not None
        link_child.write_message(child.stdin, header, core, *modules)
        found, parts = link_child.read_message(child.stdout)
    if "error" in found:
        raise RuntimeError(found["error"])
    return parts[0], found["log"]


def _path_of_nvjitlink() -> str:
    """Return the path of the linker, which the link of the first tier has loaded into this process."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        return next(line.split(maxsplit=5)[5].rstrip("\n") for line in maps if _NVJITLINK in line)


def _forget_parent() -> None:
    """Begin anew in a process that was forked."""
    global _links
    _links = _Links()
    running.clear()


atexit.register(lambda: _links.end())
os.register_at_fork(after_in_child=_forget_parent)
