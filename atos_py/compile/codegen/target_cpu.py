"""Tasks as native code for the CPU: the loop over a batch of items, with the body and the pushes inlined."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from llvmlite import binding, ir
from numba.core import callconv, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from ...core.library import ffi, lib
from ..debug_checks import Checks
from ..spec import ProgramSpec
from . import team_calls
from .dispatch import cpu_dispatch
from .entry_points import add_batch_loop, add_function, return_nothing
from .lower_checks import collecting, intercept
from .lower_rounds import asks_for_round
from .lower_scratch import sized_bytes, unsized_itemsize
from .numba_core import follow_core
from .numba_patches import (
    assignment_expressions,
    inlined_dispatcher,
    start_numba,
    vectorize_unrolled_loops,
)
from .numba_private import (
    export_library,
    export_lowered,
    host_features,
    import_lowered,
    is_known_global,
    load_library,
    lowered_abi,
)
from .prepare import prepare
from .race_hooks import RACES, install

__all__ = ["CpuCode", "abi", "compile_cpu", "finish_cpu", "host", "load_cpu", "lower_cpu"]

follow_core()
intercept(callconv.CPUCallConv)
binding.add_symbol("atos_fail", int(ffi.cast("uintptr_t", lib.atos_cpu_fail)))


@dataclass(frozen=True)
class CpuCode:
    """Native code of a task, in memory for as long as this object lives.

    Attributes
    ----------
    run, idle, each_round : int
        Addresses of `void run(atos_cpu_worker *, const void *items, int64_t n, const void *args)`, and of the functions
        `void idle(atos_cpu_worker *, const void *args)` and `each_round` like it, 0 without such a function.
    asks_for_round : bool
        Whether the task uses the number or the mode of the round.
    scratch_itemsize : int
        The size of the largest element that the task takes scratch of the launch's size for; 0 if it takes none.
    sized_scratch : tuple of int
        As `scratch.sized_scratch` takes it: the scratch whose size the task gives.
    parts : tuple of bytes
        What `load_cpu` makes the same code from, in this process or another: code without checks, that is.
    checks : Checks or None
        The checks in it.
    """

    run: int
    idle: int
    each_round: int
    asks_for_round: bool
    scratch_itemsize: int
    sized_scratch: tuple[int, ...]
    parts: tuple[bytes, ...]
    library: Any
    checks: Checks | None

    @property
    def assembly(self) -> str:
        """The code in the machine's assembly language, if it was compiled in this process."""
        return str(self.library.get_asm_str())


class CpuTarget:
    """Numba's CPU target, as `prepare` and entry points ask for it."""

    context = cpu_target.target_context

    def dispatcher(self, function: FunctionType) -> Any:
        return inlined_dispatcher(function)

    def is_known(self, value: Any) -> bool:
        return is_known_global(cpu_target.typing_context, value)

    def device_function(self, dispatcher: Any) -> None:
        """Return nothing: a function that uses names of numba-cuda runs on no CPU."""

    def compile(self, function: Any, args: tuple[types.Type, ...]) -> Any:
        function.compile(args)
        return function.overloads[args]

    def call(self, builder: ir.IRBuilder, compiled: Any, values: Sequence[ir.Value]) -> ir.Value:
        callee = self.context.declare_function(builder.module, compiled.fndesc)
        result, args = compiled.signature.return_type, compiled.signature.args
        status, value = self.context.call_conv.call_function(builder, callee, result, args, values)
        with builder.if_then(status.is_error, likely=False):  # a check failed, which has told the core
            return_nothing(builder)
        return value


@dataclass(frozen=True)
class LoweredTask:
    """A task as LLVM's code, for LLVM to optimize.

    Attributes
    ----------
    name : str
        What the names of its functions begin with.
    others : tuple of str
        Which functions it has beside `run`: `idle`, `each_round`.
    """

    name: str
    others: tuple[str, ...]
    library: Any


def compile_cpu(spec: ProgramSpec) -> CpuCode:
    """Compile the tasks of a launch, with checks if it has them.

    Raises
    ------
    TaskCompileError
        If the task does not fit the arguments, or is not something that Numba compiles.
    """
    checks = Checks(races=spec.debug == RACES) if spec.debug else None
    if spec.debug == RACES:
        install()
    if spec.threads > 1:
        team_calls.install()
    with global_compiler_lock, collecting(checks), assignment_expressions():
        return _optimize(_lower(spec, checks), checks)


def lower_cpu(spec: ProgramSpec) -> tuple[bytes, ...]:
    """Return what `finish_cpu` takes, for any CPU of this architecture; errors as in `compile_cpu`."""
    with global_compiler_lock, assignment_expressions(), collecting(None):
        lowered = _lower(spec, None)
        return lowered.name.encode(), " ".join(lowered.others).encode(), export_lowered(lowered.library)


def finish_cpu(parts: Sequence[bytes]) -> CpuCode:
    """Compile tasks that `lower_cpu` lowered, for this CPU."""
    exported, others, bitcode = parts
    with global_compiler_lock:
        name = _new_name()
        library = import_lowered(cpu_target.target_context.codegen(), exported.decode(), name, bitcode)
        return _optimize(LoweredTask(name, tuple(others.decode().split()), library), None)


def _new_name() -> str:
    """Return a name of this code alone, among all that the process may load."""
    return f"atos_{uuid.uuid4().hex}"


def _lower(spec: ProgramSpec, checks: Checks | None) -> LoweredTask:
    target = CpuTarget()
    start_numba(cpu_target.target_context)
    program = prepare(target, spec, checks)
    name = _new_name()
    library = target.context.codegen().create_library(name)
    module = library.create_ir_module(name)
    loops = [f"{name}_run_{kind}" for kind in range(program.num_kinds)] or [f"{name}_run"]
    for symbol, part in zip(loops, program.parts, strict=True):
        add_batch_loop(target, module, symbol, part, program, spec.threads)
    if program.num_kinds:
        cpu_dispatch(module, f"{name}_run", loops, program.items)
    others = {"idle": program.idle, "each_round": program.each_round}
    others = {role: compiled for role, compiled in others.items() if compiled is not None}
    for role, compiled in others.items():
        add_function(target, module, f"{name}_{role}", compiled, program, spec.threads, getattr(spec, role))
    library.add_ir_module(module)
    for compiled in program.compiled:
        library.add_linking_library(compiled.library)
    return LoweredTask(name, tuple(others), library)


def _optimize(lowered: LoweredTask, checks: Checks | None) -> CpuCode:
    """Have LLVM make machine code for this CPU."""
    library = lowered.library
    library.enable_object_caching()
    with vectorize_unrolled_loops():
        library.finalize()
    text = [library.get_llvm_str()]
    words = [*lowered.others, *(["rounds"] if asks_for_round(text) else [])]
    scratch = json.dumps([unsized_itemsize(text), *sized_bytes(text)]).encode()
    facts = (lowered.name.encode(), " ".join(words).encode(), scratch)
    return _look_up_addresses(library, (*facts, *export_library(library)), checks)


def load_cpu(parts: Sequence[bytes]) -> CpuCode:
    """Load code from the `parts` of an earlier compilation on the same kind of CPU."""
    name, _, _, machine_code, bitcode = parts
    with global_compiler_lock:
        library = load_library(cpu_target.target_context.codegen(), name.decode(), machine_code, bitcode)
        return _look_up_addresses(library, tuple(parts), None)


def host() -> tuple[str, ...]:
    """Return what machine code depends on: the kind of machine, the CPU and its features, and whether SVML is there."""
    return host_features(cpu_target.target_context.codegen())


def abi() -> tuple[str, ...]:
    """Return what lowered tasks depend on: LLVM's version, the machine's name, and how data lie."""
    return lowered_abi(cpu_target.target_context.codegen())


def _look_up_addresses(library: Any, parts: tuple[bytes, ...], checks: Checks | None) -> CpuCode:
    name, words = parts[0].decode(), parts[1].decode().split()
    run, idle, each_round = (
        library.get_pointer_to_function(f"{name}_{role}") if role in ("run", *words) else 0
        for role in ("run", "idle", "each_round")
    )
    itemsize, *sized = json.loads(parts[2])
    return CpuCode(run, idle, each_round, "rounds" in words, itemsize, tuple(sized), parts, library, checks)
