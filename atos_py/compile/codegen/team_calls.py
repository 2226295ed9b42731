"""Calls that a task makes which is compiled for workers of several threads on a CPU: into csrc/cpu/team.cpp.

What a worker or a group of several threads offers are calls of the same names as on a GPU. Added are two: before a collective
call all threads meet, at a site that a failure names; and where a thread accesses an element, another one may go on.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from llvmlite import binding, ir

from ...core.library import ffi, lib
from .core_calls import call_core
from .lower_checks import in_checked_code, leave, report_function, site_number
from .types import I32, I64, POINTER, TEAM, GroupType, TaskArray, WorkerType

__all__ = [
    "begin_own_iteration",
    "install",
    "meet",
    "own_iterations",
    "pause",
    "run_team",
    "scratch_region",
    "seed",
    "unsized_region",
]

#: What the order is drawn from in which the threads of a worker go on.
seed = np.zeros(1, np.uint64)


@functools.cache
def install() -> None:
    """Let LLVM know the addresses of the functions that are called."""
    function = lib.atos_cpu_team()
    while function.name != ffi.NULL:
        binding.add_symbol(ffi.string(function.name).decode(), int(ffi.cast("uintptr_t", function.address)))
        function += 1


def meet(builder: ir.IRBuilder, threads: WorkerType | GroupType, name: str) -> None:
    """Begin a collective call of a name: wait for the other threads of the worker or group, or leave the task with them."""
    site = site_number("meeting", f"{threads.word}.{name}")
    group = threads.size if isinstance(threads, GroupType) else 0
    met = call_core(builder, I32, "atos_team_meet", [site, I32(group)])
    with builder.if_then(builder.icmp_signed("==", met, I32(0)), likely=False):
        leave(builder)


def pause(builder: ir.IRBuilder, array: TaskArray) -> None:
    """Let another thread go on, now and then, before an element is accessed that threads may share."""
    if array.checked == TEAM and array.access != "local" and in_checked_code():
        call_core(builder, ir.VoidType(), "atos_team_pause", [])


def own_iterations(builder: ir.IRBuilder, worker: ir.Value, group: int) -> list[ir.Value]:
    """Return the first iteration of a nested task that a thread runs, with those of its group, and the step to the next one."""
    size, rank, threads = (
        builder.zext(call_core(builder, I32, name, given), I64)
        for name, given in (("atos_size", [worker]), ("atos_rank", [worker]), ("atos_group_size", [I32(group)]))
    )
    return [builder.udiv(rank, threads), builder.udiv(size, threads)]


def begin_own_iteration(builder: ir.IRBuilder, group: int) -> ir.Value:
    """Begin the next iteration of a nested task, with the threads that run it together; return whether it goes on."""
    return builder.icmp_signed("!=", call_core(builder, I32, "atos_team_begin_iteration", [I32(group)]), I32(0))


def run_team(
    builder: ir.IRBuilder,
    size: int,
    body: ir.Function,
    worker: ir.Value,
    given: ir.Value,
    item: ir.Value,
    num_bytes: int,
    arguments: ir.Value,
    function: Any,
) -> None:
    """Run a body of a `function` of the user's by each thread of a worker, with what is `given` for an item, or null."""
    place = builder.inttoptr(I64(seed.ctypes.data), I64.as_pointer())
    task = builder.bitcast(body, POINTER)
    values = [I32(size), builder.load(place), task, worker, given, item, I64(num_bytes), arguments]
    has_run = call_core(builder, I32, "atos_team_run", values)
    with builder.if_then(builder.icmp_signed("==", has_run, I32(0)), likely=False):
        report_function(builder, function, "raise", "there is no memory for the stacks of the worker's threads")


def scratch_region(builder: ir.IRBuilder, worker: ir.Value, place: int, num_bytes: int, threads: int) -> ir.Value:
    """Return the region of a place, of a group of so many `threads`, or with 0 of the worker."""
    return call_core(builder, POINTER, "atos_team_region", [worker, I64(place), I64(num_bytes), I32(threads)])


def unsized_region(builder: ir.IRBuilder, worker: ir.Value) -> ir.Value:
    """Return the scratch of a worker whose size the launch gives."""
    return call_core(builder, POINTER, "atos_team_unsized_region", [worker])
