"""Tasks as LTO-IR for CUDA: one module that defines every symbol the core calls. Needs neither a GPU nor a driver."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.target_extension import target_override

from ..cuda_code import CudaCode
from ..debug_checks import Checks
from ..spec import ProgramSpec
from .device_functions import DeviceFunction, DeviceFunctions
from .dispatch import cuda_dispatch
from .entry_points import add_body, add_function, add_workload
from .gpu_context import ADDRSPACE_GLOBAL, TARGET_NAME, GpuCallConv, GpuDispatcher, gpu_target
from .lower_checks import collecting, intercept
from .lower_rounds import asks_for_pending, asks_for_round
from .lower_scratch import define_regions, sized_bytes, unsized_itemsize
from .numba_core import follow_core
from .numba_patches import assignment_expressions, start_numba, target_capability
from .numba_private import create_module, is_known_global
from .nvvm import callers_first, compile_modules, nvvm_text
from .prepare import Program, prepare
from .types import I32, I64, POINTER

__all__ = ["compile_cuda", "with_ptx"]

follow_core()
intercept(GpuCallConv)


class CudaTarget:
    """The target for GPUs, as `prepare` and entry points ask for it."""

    context = gpu_target.target_context

    def __init__(self, cc: tuple[int, int]) -> None:
        self.device_functions = DeviceFunctions(cc)

    def dispatcher(self, function: FunctionType) -> Any:
        return GpuDispatcher(function, targetoptions={"nopython": True})

    def is_known(self, value: Any) -> bool:
        return is_known_global(gpu_target.typing_context, value)

    def device_function(self, dispatcher: Any) -> DeviceFunction:
        return DeviceFunction(dispatcher, self.device_functions, self.context)

    def compile(self, function: Any, args: tuple[types.Type, ...]) -> Any:
        function.compile(args)
        return function.overloads[args]

    def call(self, builder: ir.IRBuilder, compiled: Any, values: Sequence[ir.Value]) -> ir.Value:
        callee = self.context.declare_function(builder.module, compiled.fndesc)
        result, args = compiled.signature.return_type, compiled.signature.args
        # The status is not looked at: a check that failed is reported where the entry point says that the function has ended.
        _, value = self.context.call_conv.call_function(builder, callee, result, args, values)
        return value


def compile_cuda(spec: ProgramSpec, cc: tuple[int, int]) -> CudaCode:
    """Compile the tasks of a launch for GPUs of compute capability `cc` or newer.

    Raises
    ------
    TaskCompileError
        If the task does not fit the arguments, or is not something that Numba compiles.
    """
    checks = Checks() if spec.debug else None
    expressions = assignment_expressions()
    with global_compiler_lock, collecting(checks), target_capability(cc), expressions, target_override(TARGET_NAME):
        return _compile(spec, CudaTarget(cc), cc, checks)


def _compile(spec: ProgramSpec, target: CudaTarget, cc: tuple[int, int], checks: Checks | None) -> CudaCode:
    start_numba(target.context)
    program = prepare(target, spec, checks)
    # Numba's modules by identity, since functions share helpers.
    modules = {id(module): module for each in program.compiled for module in each.library.modules}
    texts = [str(module) for module in modules.values()]
    uses_rounds = asks_for_round(texts)
    of_launch = {
        "has_inbox": spec.inbox,
        "has_peers": spec.peers,
        "has_counters": spec.counters,
        "has_stack": spec.newest,
    }
    rest = create_module(target.context, "atos_entry_points")
    _add_entry_points(target, rest, program)
    _add_constants_and_stubs(rest, program, uses_rounds, asks_for_pending(texts), of_launch)
    define_regions(rest, texts)
    needed = callers_first(rest, modules.values())
    for module in needed:
        for function in module.functions:
            if not function.is_declaration:
                # Inlining makes one kernel of it. Convergent, since threads may meet in what a task calls: no call may be
                # moved into a branch, or copied.
                function.attributes.add("alwaysinline")
                function.attributes.add("convergent")
    final = tuple(nvvm_text(module) for module in needed)
    code = compile_modules(final, cc, "ltoir")
    facts = unsized_itemsize(texts), sized_bytes(texts), uses_rounds, checks
    return CudaCode([code, *target.device_functions.modules], program.value_words, *facts, texts=final)


def with_ptx(code: CudaCode, cc: tuple[int, int]) -> CudaCode:
    """Return code with PTX, for GPUs of compute capability `cc`, in place of the texts that it is made of."""
    return replace(code, texts=(), ptx=compile_modules(code.texts, cc, "ptx"))


def _add_entry_points(target: CudaTarget, module: ir.Module, program: Program) -> None:
    """Add the functions of the tasks that the core calls."""
    for kind, part in enumerate(program.parts):
        suffix = f"_{kind}" if program.num_kinds else ""
        add_body(target, module, f"atos_task_body{suffix}", part, program)
        if part.task.nested:
            add_workload(target, module, f"atos_task_workload{suffix}", part, program)
    for role, compiled in {"idle": program.idle, "each_round": program.each_round}.items():
        if compiled is not None:
            add_function(target, module, f"atos_task_{role}", compiled, program)


def _add_constants_and_stubs(
    module: ir.Module, program: Program, uses_rounds: bool, uses_pending: bool, of_launch: dict[str, bool]
) -> None:
    """Add the constants, dispatch by kind to entry points of the module, and functions that do nothing for what tasks lack."""
    nested, flat = program.numbered(nested=True), program.numbered(nested=False)
    mixed = bool(nested and flat)
    constants = {
        "nested": bool(nested),
        "value_words": program.value_words,
        "has_idle": program.idle is not None,
        "checked": program.flat_worker.checked,
        "threads_of_iteration": program.group,
        "has_buckets": program.flat_worker.buckets,
        "asks_for_round": uses_rounds,
        "has_each_round": program.each_round is not None,
        "asks_for_pending": uses_pending,
        "num_kinds": program.num_kinds,
        "flat_kinds": sum(1 << kind for kind in flat) if mixed else 0,
        **of_launch,
    }
    for name, value in constants.items():
        symbol = f"_ZN4atos{len(name)}{name}E"  # of a variable in the namespace atos
        constant = ir.GlobalVariable(module, I32, symbol, addrspace=ADDRSPACE_GLOBAL)
        constant.global_constant = True
        constant.initializer = ir.Constant(I32, int(value))
    of_workload, of_body = [POINTER] * 4, [POINTER, POINTER, I64, POINTER, POINTER]

    def add_stub(symbol: str, parameters: list[ir.Type]) -> None:
        stub = ir.IRBuilder(ir.Function(module, ir.FunctionType(I64, parameters), symbol).append_basic_block())
        stub.ret(ir.Constant(I64, 1))

    def dispatch(symbol: str, to: str, kinds: Iterable[int], parameters: list[ir.Type]) -> None:
        cuda_dispatch(module, symbol, {kind: f"{to}_{kind}" for kind in kinds}, parameters, program.items)

    if not nested:
        add_stub("atos_task_workload", of_workload)
    elif program.num_kinds:
        dispatch("atos_task_workload", "atos_task_workload", nested, of_workload)
    if program.num_kinds:
        dispatch("atos_task_body", "atos_task_body", nested or flat, of_body)
    if mixed:
        dispatch("atos_task_flat", "atos_task_body", flat, of_body)
    else:
        add_stub("atos_task_flat", of_body)
    for symbol, function_without_item in {"atos_task_idle": program.idle, "atos_task_each_round": program.each_round}.items():
        if function_without_item is None:
            add_stub(symbol, [POINTER] * 2)
