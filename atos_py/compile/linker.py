"""From a task to code that runs: compiled and linked at its first launch, and kept in memory and on disk by content."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import BuildError, TaskCompileError
from ..support.disk_cache import read_entry, write_entry
from ..support.memory_cache import find, keep
from ..support.uninterrupted import uninterrupted
from .archive import CORE_DIR
from .best_links import BestLink, Inputs, can_link_elsewhere
from .codegen import stored_bytes
from .cpu_archive import find_lowered
from .cubin import registers_and_stack
from .cuda_code import CudaCode, freeze_code, thaw_code
from .debug_checks import Checks
from .host_kernels import num_threads, parallel_map
from .kinds import Tasks
from .prelinked import find_prelinked
from .spec import ProgramSpec
from .timing import during
from .toolchain import environment, import_numba

if TYPE_CHECKING:
    from .codegen.target_cpu import CpuCode

__all__ = ["CORE_DIR", "LinkedKernel", "cubin", "environment", "first_cubin", "freeze", "name_in_cache", "native", "thaw"]

_READY_REGISTERS = 64  # as setup.py compiles the worker loops with
_PROCESSORS_TO_SPARE = 8  # from which on links that may turn out needless delay nothing
# LTO-IR for this architecture links for later ones too, whose own LTO-IR is of another dialect than the core's.
_NEWEST_CC = (9, 0)

Code = TypeVar("Code")
Link = Callable[[Inputs], tuple[bytes, str]]  # by another process, as `BestLink` makes it


@dataclass(frozen=True)
class LinkedKernel:
    """A kernel with its task linked in.

    Attributes
    ----------
    code : bytes
        The cubin.
    symbol : str
        Name of the kernel.
    value_words : int
        How many values the workload hands to the body, a word each.
    scratch_itemsize : int
        The size of the largest element that the task takes scratch of the launch's size for; 0 if it takes none.
    asks_for_round : bool
        Whether the task uses the number or the mode of the round.
    registers, stack_bytes, spill_bytes, shared_bytes : int
        What a thread takes of the first three, and a block of statically reserved shared memory.
    log : str
        What the linker said.
    checks : Checks or None
        The checks in the task's code, if it was compiled with any.
    sized_scratch : tuple of int
        As `scratch.sized_scratch` takes it: the scratch whose size the task gives.
    """

    code: bytes
    symbol: str
    value_words: int
    scratch_itemsize: int
    asks_for_round: bool
    registers: int
    stack_bytes: int
    spill_bytes: int
    shared_bytes: int
    log: str
    checks: Checks | None = None
    sized_scratch: tuple[int, ...] = ()


def cubin(spec: ProgramSpec, cc: tuple[int, int]) -> LinkedKernel:
    """Return the best kernel that runs a task on GPUs of compute capability `cc`, such as `(9, 0)`.

    Raises
    ------
    TaskCompileError
        If the task does not fit the arguments, or is not something that Numba compiles.
    BuildError
        If the core is not built for GPUs.
    """
    link: BestLink | None = find((spec, cc, "link"))
    if link is not None:
        link.finish()
    return _made(spec, cc) or _make_cubin(spec, cc)


def first_cubin(spec: ProgramSpec, cc: tuple[int, int]) -> tuple[LinkedKernel, BestLink | None]:
    """Return the kernel that is there first, and the link of the best one if that is still to be made (`best_links`).

    Raises
    ------
    TaskCompileError, BuildError
        As `cubin`.
    """
    kernel = _made(spec, cc)
    loop = None if kernel is not None else _ready_loop(spec, cc)
    if loop is None or not can_link_elsewhere():
        return kernel or cubin(spec, cc), None
    known: BestLink | None = find((spec, cc, "link"))
    if known is not None and known.give_up():
        with contextlib.suppress(TaskCompileError):  # then there is the first kernel alone
            return cubin(spec, cc), None
    return _make_first(spec, cc, loop)


def _made(spec: ProgramSpec, cc: tuple[int, int]) -> LinkedKernel | None:
    """Return the best kernel if it was made before, in this process or another one, or when the package was built."""
    found: LinkedKernel | None = find((spec, cc))
    if found is not None:
        return found
    name = name_in_cache(spec, *_target(spec, cc))
    found = _find(name, thaw)
    if found is None and not (spec.debug or spec.peers or spec.counters):
        with during("load", spec.task.name):
            parts = find_prelinked(spec, cc)
        found = None if parts is None else _keep_made(name, thaw(parts), freeze)
    return None if found is None else keep((spec, cc), found)


@uninterrupted
def _make_cubin(spec: ProgramSpec, cc: tuple[int, int]) -> LinkedKernel:
    return _link_best_of(spec, cc, _compile(spec, cc))


@uninterrupted
def _make_first(spec: ProgramSpec, cc: tuple[int, int], loop: bytes) -> tuple[LinkedKernel, BestLink | None]:
    task, name = spec.task, name_in_cache(_of_any_worker(spec), "code", cc)
    with during("load", task.name):
        code = _find(name, thaw_code)
    if code is None:
        code = _compile(spec, cc)
        if len(code.modules) > 1:  # some of which numba-cuda compiled, and not to PTX
            return _link_best_of(spec, cc, code), None
        with during("compile", task.name):
            from .codegen.target_cuda import with_ptx  # as in `_compiled`

            code = _keep_made(name, with_ptx(code, cc), freeze_code)
    with during("link", task.name):
        inputs = [("ptx", code.ptx), ("fatbin", loop)]
        kernel = _kernel_of(_link_here(task.name, cc, inputs, _READY_REGISTERS, optimized=False), code)
    known: BestLink | None = find((spec, cc, "link"))
    return kernel, known or keep((spec, cc, "link"), BestLink(functools.partial(_link_best_of, spec, cc, code)))


def _compile(spec: ProgramSpec, cc: tuple[int, int]) -> CudaCode:
    with during("compile", spec.task.name), _compiling:
        return _compiled(_of_any_worker(spec), min(cc, _NEWEST_CC))


def _of_any_worker(spec: ProgramSpec) -> ProgramSpec:
    """Return the spec without what the code of a task does not depend on before it is linked."""
    return replace(spec, worker="cta", max_registers=None)


def _link_best_of(spec: ProgramSpec, cc: tuple[int, int], code: CudaCode, elsewhere: Link | None = None) -> LinkedKernel:
    """Link the best kernel, in this process or elsewhere, and keep it where it is looked for."""
    task = spec.task
    core, limits = _core(spec), spec.limits()
    if elsewhere is None:
        with during("link", task.name):
            kernel = _link_best(task.name, core, code, cc, *limits)
    else:
        kernel = _link_best(task.name, core, code, cc, *limits, functools.partial(_link_elsewhere, elsewhere))
    return keep((spec, cc), _keep_made(name_in_cache(spec, *_target(spec, cc)), replace(kernel, checks=code.checks), freeze))


def _target(spec: ProgramSpec, cc: tuple[int, int]) -> tuple[Any, ...]:
    return "cuda", _core(spec), cc


def freeze(kernel: LinkedKernel) -> Sequence[bytes]:
    """Return a kernel without checks as the bytes that `thaw` takes."""
    facts = asdict(kernel)
    del facts["checks"]
    return facts.pop("code"), json.dumps(facts).encode()


def thaw(parts: Sequence[bytes]) -> LinkedKernel:
    """Return the kernel that `freeze` was given."""
    facts = json.loads(parts[1])
    return LinkedKernel(code=parts[0], sized_scratch=tuple(facts.pop("sized_scratch")), **facts)


@functools.lru_cache(maxsize=8)
def _compiled(spec: ProgramSpec, cc: tuple[int, int]) -> CudaCode:
    """Return what `compile_cuda` does: the same for links with all workers and several limits of registers."""
    import_numba()
    from .codegen.target_cuda import compile_cuda  # Numba is imported only where something has to be compiled

    return compile_cuda(spec, cc)


_compiling = threading.Lock()  # Numba compiles one at a time anyhow, and who waits may find what is compiled


def native(spec: ProgramSpec) -> CpuCode:
    """Return the code that runs a task on this machine's CPU; errors as in `cubin`."""
    found: CpuCode | None = find((spec, "cpu"))
    return found or _make_native(spec)


@uninterrupted
def _make_native(spec: ProgramSpec) -> CpuCode:
    import_numba()
    from .codegen import target_cpu as cpu

    def make() -> CpuCode:
        lowered = None if spec.debug else find_lowered(spec, cpu.abi())
        with during("compile", spec.task.name):
            return cpu.compile_cpu(spec) if lowered is None else cpu.finish_cpu(lowered)

    name = name_in_cache(spec, "cpu", *cpu.host())
    found = _find(name, cpu.load_cpu)
    return keep((spec, "cpu"), found or _keep_made(name, make(), lambda code: code.parts))


def _core(spec: ProgramSpec) -> bytes:
    """Return the worker loop that a task is linked into, for all GPUs that it was built for."""
    path = CORE_DIR / _name_of_loop("core", spec)
    try:
        return path.read_bytes()
    except OSError as error:
        raise BuildError(f"the core was built without GPU support: {path} cannot be read; build it where nvcc is") from error


def _ready_loop(spec: ProgramSpec, cc: tuple[int, int]) -> bytes | None:
    """Return the machine code of the worker loop, if that was made for this GPU and has what the launch uses."""
    if spec.debug or spec.buckets or spec.inbox or spec.peers or spec.counters or spec.newest:
        return None
    try:
        built = json.loads((CORE_DIR / "built.json").read_bytes())
        return (CORE_DIR / _name_of_loop("ready", spec)).read_bytes() if f"{cc[0]}{cc[1]}" in built.get("ready", []) else None
    except (OSError, ValueError):
        return None


def _name_of_loop(kind: str, spec: ProgramSpec) -> str:
    return f"{kind}_{spec.worker}_{stored_bytes(spec.item_dtype.itemsize, isinstance(spec.task, Tasks))}.fatbin"


def _link_best(
    name: str,
    core: bytes,
    code: CudaCode,
    cc: tuple[int, int],
    limits: Sequence[int | None],
    spills: int,
    link: Callable[..., LinkedKernel] | None = None,
) -> LinkedKernel:
    """Link with these limits in turn until no stack is needed, or no more than `spills` bytes are spilled.

    For what needs more, the first limit that spills least is taken.

    The first limit is tried by itself. Where there are processors to spare, the main thread then links with all others at once.
    Other threads, which may link several tasks side by side, do not: nvJitLink gains little from more than a few threads.
    """
    one = functools.partial(link or _link, name, core, code, cc)
    at_once = num_threads() >= _PROCESSORS_TO_SPARE and threading.current_thread() is threading.main_thread()
    kernels = []
    for part in limits[:1], limits[1:]:
        for kernel in parallel_map(one, part) if at_once else map(one, part):
            kernels.append(kernel)
            if kernel.stack_bytes == 0 or kernel.spill_bytes <= spills:
                return kernel
    return min(kernels, key=lambda kernel: kernel.spill_bytes)


def _link(name: str, core: bytes, task: CudaCode, cc: tuple[int, int], max_registers: int | None) -> LinkedKernel:
    """Link with one limit of registers."""
    inputs = [("fatbin", core), *[("ltoir", module) for module in task.modules]]
    return _kernel_of(_link_here(name, cc, inputs, max_registers), task)


def _link_elsewhere(
    link: Link, _name: str, core: bytes, task: CudaCode, cc: tuple[int, int], max_registers: int | None
) -> LinkedKernel:
    """Do what `_link` does by a function that another process runs."""
    options = [f"-arch=sm_{cc[0]}{cc[1]}", "-lto", "-Xptxas=-v"]
    options += [] if max_registers is None else [f"-maxrregcount={max_registers}"]
    return _kernel_of(link((core, task.modules, options)), task)


def _link_here(
    name: str, cc: tuple[int, int], inputs: Sequence[tuple[str, bytes]], max_registers: int | None, optimized: bool = True
) -> tuple[bytes, str]:
    """Return a cubin, and what the linker said."""
    from cuda.core import Linker, LinkerOptions, ObjectCode  # slow to import, and not needed for what is in the cache

    options = LinkerOptions(
        arch=f"sm_{cc[0]}{cc[1]}", link_time_optimization=optimized, max_register_count=max_registers, ptxas_options=["-v"]
    )
    try:
        linker = Linker(*[getattr(ObjectCode, f"from_{kind}")(content) for kind, content in inputs], options=options)
        return bytes(linker.link("cubin").code), linker.get_info_log()
    except Exception as error:  # cuda.core has no common base for what its linkers raise
        raise TaskCompileError(f"task {name!r} compiled but did not link for sm_{cc[0]}{cc[1]}: {error}") from error


def _kernel_of(linked: tuple[bytes, str], task: CudaCode) -> LinkedKernel:
    """Return a kernel from a cubin and what the linker said."""
    code, log = linked[0], linked[1].rstrip("\0\n ")

    def number(pattern: str) -> int:
        return max(map(int, re.findall(pattern, log)), default=0)

    registers, stack = registers_and_stack(code)
    spills = number(r"(\d+) bytes spill stores") + number(r"(\d+) bytes spill loads")
    return LinkedKernel(
        code=code,
        symbol="atos_kernel",
        value_words=task.value_words,
        scratch_itemsize=task.scratch_itemsize,
        sized_scratch=task.sized_scratch,
        asks_for_round=task.asks_for_round,
        registers=registers,
        stack_bytes=stack,
        spill_bytes=spills if log else stack,  # without a log, all of the stack may be spilled registers
        shared_bytes=number(r"(\d+) bytes smem"),
        log=log,
    )


def name_in_cache(spec: ProgramSpec, *target: Any) -> str | None:
    """Return the name under which code for a target is kept by its content; None if it is not kept.

    Code with checks is not: the lines of the source are no part of its content.
    """
    return None if spec.debug else spec.fingerprint(target, environment())


def _find(name: str | None, thaw: Callable[[Sequence[bytes]], Code]) -> Code | None:
    """Return the code that is kept under a name, in memory or on disk."""
    if name is None:
        return None
    code: Code | None = find(name)
    if code is not None:
        return code
    parts = read_entry(name)
    return None if parts is None else keep(name, thaw(parts))


def _keep_made(name: str | None, code: Code, freeze: Callable[[Code], Sequence[bytes]]) -> Code:
    """Keep code under a name, if it has one, in memory and on disk, and return it."""
    if name is None:
        return code
    write_entry(name, freeze(code))
    return keep(name, code)
