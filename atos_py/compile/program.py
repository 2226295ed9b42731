"""A task that is linked into the worker loops and loaded on a device, ready to be launched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.devices import Device
from ..core.library import check, ffi, lib
from ..errors import InvalidArgumentError
from ..support.memory_cache import find, keep
from . import linker as link
from .best_links import BestLink, wants_best
from .kinds import tasks_of
from .linker import LinkedKernel
from .recorder import recorders
from .spec import ProgramSpec
from .timing import during

if TYPE_CHECKING:
    from .codegen.target_cpu import CpuCode

__all__ = ["WORKERS", "WORKER_KINDS", "Program", "check_worker", "program_for", "register_limits"]

WORKER_KINDS = {"thread": lib.ATOS_THREAD, "warp": lib.ATOS_WARP, "cta": lib.ATOS_CTA}
WORKERS = tuple(WORKER_KINDS)
_REGISTERS_OF_A_PROCESSOR = 65536


class Program(NamedTuple):
    """A loaded program.

    Attributes
    ----------
    handle : cdata
        The core's `atos_program`.
    num_kinds : int
        Kinds of tasks that it counts; 0 if there is one.
    code : LinkedKernel or CpuCode
        What it was loaded from; native code must outlive the handle.
    better : BestLink or None
        The link of a better kernel, if this is one of the first tier.
    """

    handle: Any
    num_kinds: int
    code: LinkedKernel | CpuCode
    better: BestLink | None = None


def check_worker(worker: Any) -> str:
    """Return the name of a kind of workers; raise if there is none of this name."""
    if not isinstance(worker, str) or worker not in WORKERS:
        raise InvalidArgumentError(f"worker must be one of {', '.join(WORKERS)} (got {worker!r:.80})")
    return worker


def program_for(spec: ProgramSpec, device: Device, best: bool = False) -> Program:
    """Return the program of a launch on a device, compiled, linked and loaded on first use; the best one, or of either tier."""
    for recorder in recorders:
        recorder[spec] = None
    found: Program | None = find((spec, device))
    if found is not None and (found.better is None or not (best or found.better.is_due())):
        return found
    return keep((spec, device), _load(spec, device, best or wants_best()))


def _load(spec: ProgramSpec, device: Device, best: bool) -> Program:
    members = len(tasks_of(spec.task))
    code: Any
    better = None
    with during("load", spec.task.name):
        slot = ffi.new("atos_program **")
        if device.kind == "cpu":
            code = link.native(spec.on_cpu())
            check(lib.atos_program_native(code.run, code.idle, code.each_round, bool(spec.debug), slot))
        else:
            cc = device.compute_capability
            code, better = (link.cubin(spec, cc), None) if best else link.first_cubin(spec, cc)
            check(lib.atos_program_load(device.number, ffi.from_buffer(code.code), code.symbol.encode(), slot))
        return Program(ffi.gc(slot[0], lib.atos_program_unload), members if members > 1 else 0, code, better)


def register_limits(num_threads: int) -> tuple[int, ...] | None:
    """Return the limits of registers with which a kernel is linked in turn; None for those of blocks of up to 256 threads.

    With the first ones a multiprocessor holds 1,536, 1,280 and 1,024 threads, or as many as make whole blocks, with the last
    one a single block.
    """
    if num_threads <= 256:
        return None
    blocks = (max(resident // num_threads, 1) for resident in (1536, 1280, 1024, 0))
    return tuple(dict.fromkeys(_REGISTERS_OF_A_PROCESSOR // (count * num_threads) // 8 * 8 for count in blocks))
