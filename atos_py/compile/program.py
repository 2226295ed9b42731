"""A task that is linked into the worker loops and loaded on a device, ready to be launched."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.devices import Device
from ..core.library import check, ffi, lib
from ..errors import InvalidArgumentError
from . import linker as link
from .arguments import Kind
from .debug_checks import Checks
from .kinds import Launchable, tasks_of
from .timing import during

__all__ = ["WORKERS", "WORKER_KINDS", "Program", "check_worker", "program_for", "register_limits"]

WORKER_KINDS = {"thread": lib.ATOS_THREAD, "warp": lib.ATOS_WARP, "cta": lib.ATOS_CTA}
WORKERS = tuple(WORKER_KINDS)
_REGISTERS_OF_A_PROCESSOR = 65536


@dataclass(frozen=True)
class Program:
    """A loaded program.

    Attributes
    ----------
    handle : cdata
        The core's `atos_program`.
    value_words : int
        Values that the workload hands to each iteration.
    scratch_itemsize : int
        The size of the largest element that the task takes scratch of the launch's size for; 0 if it takes none.
    sized_scratch : tuple of int
        As `scratch.sized_scratch` takes it: the scratch whose size the task gives.
    asks_for_round : bool
        Whether the task uses the number or the mode of the round.
    num_kinds : int
        Kinds of tasks that it counts; 0 if there is one.
    checks : Checks or None
        The checks in the task, if it was compiled with any.
    registers : int
        Of a thread; 0 on the CPU.
    launches : dict
        What the core is told of launches of it, by their options: they were checked, and live as long as the program.
    """

    handle: Any
    value_words: int
    scratch_itemsize: int
    sized_scratch: tuple[int, ...]
    asks_for_round: bool
    num_kinds: int
    checks: Checks | None
    registers: int
    code: object  # native code must outlive the handle
    launches: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)


def check_worker(worker: Any) -> str:
    """Return the name of a kind of workers; raise if there is none of this name."""
    if not isinstance(worker, str) or worker not in WORKERS:
        raise InvalidArgumentError(f"worker must be one of {', '.join(WORKERS)} (got {worker!r:.80})")
    return worker


@functools.lru_cache(maxsize=1024)
def program_for(
    task: Launchable,
    idle: Any,
    kinds: tuple[Kind, ...],
    device: Device,
    item_dtype: np.dtype[Any],
    worker: str,
    num_threads: int,
    debug: bool = False,
    buckets: bool = False,
    each_round: Any = None,
    mailbox: bool = False,
    peers: bool = False,
    counters: bool = False,
) -> Program:
    """Return the program of a task, compiled, linked and loaded on first use."""
    members = len(tasks_of(task))
    num_kinds = members if members > 1 else 0
    with during("load", task.name):
        slot = ffi.new("atos_program **")
        if device.kind == "cpu":
            native = link.native(task, idle, kinds, item_dtype, debug, buckets, each_round)
            check(lib.atos_program_native(native.run, native.idle, native.each_round, debug, slot))
            facts = native.scratch_itemsize, native.sized_scratch, native.asks_for_round, num_kinds, native.checks, 0
            return Program(_take_ownership(slot[0]), 0, *facts, native)
        options = debug, buckets, each_round, mailbox, peers, counters
        limits = register_limits(num_threads)
        kernel = link.cubin(task, idle, kinds, item_dtype, worker, device.compute_capability, limits, *options)
        check(lib.atos_program_load(device.number, ffi.from_buffer(kernel.code), kernel.symbol.encode(), slot))
        facts = kernel.scratch_itemsize, kernel.sized_scratch, kernel.asks_for_round, num_kinds, kernel.checks, kernel.registers
        return Program(_take_ownership(slot[0]), kernel.value_words, *facts, None)


def register_limits(num_threads: int) -> tuple[int, ...] | None:
    """Return the limits of registers with which a kernel is linked in turn; None for those of blocks of up to 256 threads.

    With the first ones a multiprocessor holds 1,536, 1,280 and 1,024 threads, or as many as make whole blocks, with the last
    one a single block.
    """
    if num_threads <= 256:
        return None
    blocks = (max(resident // num_threads, 1) for resident in (1536, 1280, 1024, 0))
    return tuple(dict.fromkeys(_REGISTERS_OF_A_PROCESSOR // (count * num_threads) // 8 * 8 for count in blocks))


def _take_ownership(handle: Any) -> Any:
    return ffi.gc(handle, lib.atos_program_unload)
