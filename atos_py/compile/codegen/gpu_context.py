"""Numba's own compiler, without numba-cuda, with a GPU as its target: typing and lowering of Numba's core, and modules of LLVM.

A library keeps the modules as the layer that writes LLVM's code made them, with typed pointers: libNVVM reads these for every
GPU, and LLVM's own parser, which Numba has for CPUs, would give them opaque ones.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from llvmlite import binding, ir
from numba.core import callconv, cgutils, codegen, cpu, types, typing
from numba.core.base import BaseContext
from numba.core.descriptors import TargetDescriptor
from numba.core.dispatcher import Dispatcher
from numba.core.registry import cpu_target
from numba.core.target_extension import CUDA, dispatcher_registry, jit_registry, target_override, target_registry
from numba.np import ufunc_db

from .lower_remainders import take_exact_remainders
from .numba_private import borrowed_dispatcher, create_module, registries_of
from .nvvm import use_libdevice

__all__ = ["ADDRSPACE_GLOBAL", "TARGET_NAME", "GpuCallConv", "GpuDispatcher", "gpu_target"]

ADDRSPACE_GLOBAL, ADDRSPACE_CONSTANT = 1, 4
TARGET_NAME = "atos_cuda"
_TRIPLE = "nvptx64-nvidia-cuda"
_DATA_LAYOUT = (
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-"
    "v64:64:64-v128:128:128-n16:32:64"
)


class Gpu(CUDA):
    """The kind of target that overloads of other libraries may ask for: as CUDA, and so as any GPU."""


target_registry[TARGET_NAME] = Gpu


class _Library(codegen.CodeLibrary):
    """The module of a function, and libraries of the functions that it calls."""

    def __init__(self, code: Any, name: str) -> None:
        super().__init__(code, name)
        self.own: list[ir.Module] = []
        self.linked: dict[int, _Library] = {}

    @property
    def modules(self) -> list[ir.Module]:
        """All modules that the function takes, each once."""
        found: dict[int, ir.Module] = {}
        waiting, seen = [self], {id(self)}
        while waiting:
            library = waiting.pop(0)
            found.update((id(module), module) for module in library.own)
            waiting += [linked for key, linked in library.linked.items() if key not in seen]
            seen |= library.linked.keys()
        return list(found.values())

    def add_linking_library(self, library: Any) -> None:
        self.linked[id(library)] = library

    def add_ir_module(self, module: ir.Module) -> None:
        for function in module.functions:
            if not function.is_declaration:
                function.linkage = "linkonce_odr"  # left out where nothing calls it
        self.own.append(module)

    def finalize(self) -> None:
        self._finalized = True

    def get_function(self, name: str) -> Any:
        raise NotImplementedError

    def get_llvm_str(self) -> str:
        return "\n".join(map(str, self.modules))

    def get_asm_str(self) -> str:
        raise NotImplementedError


class _Codegen(codegen.Codegen):
    _library_class = _Library

    def __init__(self) -> None:
        self._data_layout = _DATA_LAYOUT
        self._target_data = binding.create_target_data(_DATA_LAYOUT)

    def _create_empty_module(self, name: str) -> ir.Module:
        module = ir.Module(cgutils.normalize_ir_text(name))
        module.triple, module.data_layout = _TRIPLE, _DATA_LAYOUT
        return module

    def _add_module(self, module: Any) -> None: ...


class GpuCallConv(callconv.MinimalCallConv):
    """Numba's convention for GPUs: a class of its own, since exceptions of checked code become reports."""


class _TypingContext(typing.Context):
    def resolve_value_type(self, value: Any) -> Any:
        if isinstance(value, Dispatcher) and not isinstance(value, GpuDispatcher):
            value = borrowed_dispatcher(value, GpuDispatcher)
        return super().resolve_value_type(value)


class _Context(BaseContext):
    """Lowering for GPUs."""

    strict_alignment = True

    def init(self) -> None:
        self._codegen = _Codegen()

    @property
    def call_conv(self) -> Any:
        return GpuCallConv(self)

    @property
    def target_data(self) -> Any:
        return self._codegen.target_data

    def codegen(self) -> Any:
        return self._codegen

    def create_module(self, name: str) -> ir.Module:
        return create_module(self, name)

    def load_additional_registries(self) -> None:
        """Take what the CPU's context has, which it registers first: as the CPU's, or it would lack what is for CPUs alone."""
        others = cpu_target.target_context
        with target_override("cpu"):
            others.refresh()
        for registry in registries_of(others):
            self.install_registry(registry)

    def get_ufunc_info(self, key: Any) -> Any:
        return ufunc_db.get_ufunc_info(key)

    def get_executable(self, library: Any, fndesc: Any, env: Any) -> Any:
        """Return what stands for the function: nothing runs it here."""
        return fndesc

    def declare_env_global(self, module: ir.Module, name: str) -> None:
        """Declare nothing: code on a GPU has no objects of Python."""

    def post_lowering(self, module: ir.Module, library: Any) -> None:
        take_exact_remainders(module)
        use_libdevice(module)

    def get_constant_generic(self, builder: ir.IRBuilder, kind: Any, value: Any) -> Any:
        if isinstance(kind, types.Dispatcher):  # which is known by its type
            return self.get_dummy_value()
        return super().get_constant_generic(builder, kind, value)

    def insert_const_string(self, module: ir.Module, string: str) -> Any:
        text = cgutils.make_bytearray(string.encode() + b"\0")
        name = f".const.{string.encode().hex()}"
        constant = module.globals.get(name) or _constant(module, text, name)
        return constant.bitcast(ir.IntType(8).as_pointer(ADDRSPACE_CONSTANT))

    def make_constant_array(self, builder: ir.IRBuilder, kind: Any, array: Any) -> Any:
        text = cgutils.make_bytearray(array.tobytes(order="A"))
        constant = _constant(builder.module, text, builder.module.get_unique_name(".const.array"))
        constant.align = 16
        made = self.make_array(kind)(self, builder)
        self.populate_array(
            made,
            data=builder.bitcast(builder.addrspacecast(constant, text.type.as_pointer()), made.data.type),
            shape=[self.get_constant(types.intp, n) for n in array.shape],
            strides=[self.get_constant(types.intp, n) for n in array.strides],
            itemsize=self.get_constant(types.intp, array.itemsize),
            parent=None,
            meminfo=None,
        )
        return made._getvalue()


def _constant(module: ir.Module, value: ir.Constant, name: str) -> ir.GlobalVariable:
    constant = ir.GlobalVariable(module, value.type, name, addrspace=ADDRSPACE_CONSTANT)
    constant.linkage, constant.global_constant, constant.initializer = "internal", True, value
    return constant


class _Options(cpu.CPUTargetOptions):
    """Options of a function: no wrappers for Python, no memory of Numba's, and x / 0.0 as NumPy has it."""

    def finalize(self, flags: Any, options: Any) -> None:
        super().finalize(flags, options)
        flags.nrt = flags.enable_looplift = flags.enable_pyobject = flags.enable_pyobject_looplift = False
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        flags.error_model, flags.auto_parallel = "numpy", cpu.ParallelOptions(False)


class _Target(TargetDescriptor):
    options = _Options

    def __init__(self) -> None:
        super().__init__(TARGET_NAME)
        self._typing = _TypingContext()
        self._context: Any = None

    @property
    def typing_context(self) -> Any:
        return self._typing

    @property
    def target_context(self) -> Any:
        if self._context is None:
            self._context = _Context(self._typing, TARGET_NAME)
        return self._context


gpu_target = _Target()


class GpuDispatcher(Dispatcher):
    """A function, compiled for each types that it is called with."""

    targetdescr = gpu_target

    def add_overload(self, result: Any) -> None:
        self.overloads[tuple(result.signature.args)] = result


def _jit(**options: Any) -> Any:
    def wrap(function: FunctionType) -> GpuDispatcher:
        return GpuDispatcher(function, targetoptions={**options, "nopython": True})

    return wrap


dispatcher_registry[Gpu] = GpuDispatcher
jit_registry[Gpu] = _jit
