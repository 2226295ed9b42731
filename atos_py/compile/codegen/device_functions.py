"""Helpers with ``@cuda.jit(device=True)`` that use names of `numba.cuda`: numba-cuda compiles them, tasks call them by name.

    @cuda.jit(device=True)
    def lane():
        return cuda.laneid

A function with that decorator and without such names is lowered as any helper, and numba-cuda has no part in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, signature
from numba.extending import typeof_impl

from .introspect import global_names
from .numba_patches import removed_numpy_names
from .types import TaskArray, refuse

__all__ = ["DeviceFunction", "DeviceFunctions", "is_device_function", "names_of_numba_cuda"]

_MODULE = "numba.cuda"


def _is_of_numba_cuda(name: Any) -> bool:
    return isinstance(name, str) and (name == _MODULE or name.startswith(f"{_MODULE}."))


def is_device_function(value: Any) -> bool:
    """Whether a value is what ``@cuda.jit`` returned for a function."""
    return _is_of_numba_cuda(type(value).__module__) and isinstance(getattr(value, "py_func", None), FunctionType)


def names_of_numba_cuda(function: FunctionType) -> list[str]:
    """Return the variables by which a function reaches what only numba-cuda knows, in the order of the alphabet."""
    return sorted(name for name, value in _variables(function) if _needs_numba_cuda(value))


def _variables(function: FunctionType) -> Iterator[tuple[str, Any]]:
    for name in global_names(function.__code__) & function.__globals__.keys():
        yield name, function.__globals__[name]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # has no value yet
            continue


def _needs_numba_cuda(value: Any) -> bool:
    if is_device_function(value):
        return False
    return _is_of_numba_cuda(value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None))


class DeviceFunctions:
    """The functions that numba-cuda compiles for one task.

    Parameters
    ----------
    capability : tuple of int
        The compute capability that they are compiled for.
    """

    def __init__(self, capability: tuple[int, int]) -> None:
        self.capability = capability
        self.modules: list[bytes] = []  # LTO-IR

    def compile(self, function: FunctionType, options: dict[str, Any], args: tuple[types.Type, ...]) -> tuple[str, types.Type]:
        """Compile a function for arguments of these types; return its name for the linker, and the type of its result."""
        from numba import cuda

        symbol = f"atos_device_function_{len(self.modules)}"
        named = {"abi_info": {"abi_name": symbol}, "fastmath": bool(options.get("fastmath"))}
        with removed_numpy_names():
            code, result = cuda.compile(function, args, cc=self.capability, output="ltoir", **named)
        self.modules.append(bytes(code))
        return symbol, result


class DeviceFunction:
    """A function of the kind, as a variable of a task's: Numba gives its calls types by `typer`, and lowers them by `lower`.

    Parameters
    ----------
    dispatcher : numba.cuda dispatcher
        What ``@cuda.jit(device=True)`` returned.
    compiled : DeviceFunctions
        Where the code goes.
    context : BaseContext
        The target's context for lowering.
    """

    def __init__(self, dispatcher: Any, compiled: DeviceFunctions, context: Any) -> None:
        self._function, self._options = dispatcher.py_func, dict(dispatcher.targetoptions)
        self._compiled = compiled
        self._known: dict[tuple[types.Type, ...], tuple[str, types.Type]] = {}
        context.insert_func_defn([(self._lower, self, (types.VarArg(types.Any),))])
        members = {"key": self, "generic": lambda _, args, kws: self._type(args, kws)}
        self.kind = types.Function(type(self._function.__name__, (AbstractTemplate,), members))

    def _type(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Any:
        """Return the signature of a call."""
        name = self._function.__name__
        if kws:
            refuse(f"{name}, which numba-cuda compiles, is called with arguments by keyword; give them by place")
        given = tuple(map(types.unliteral, args))
        passed = tuple(_passed(name, each) for each in given)
        if passed not in self._known:
            self._known[passed] = self._compiled.compile(self._function, self._options, passed)
        return signature(self._known[passed][1], *given)

    def _lower(self, context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        """Call the function as numba-cuda's C interface has it: an array is the words that it consists of."""
        kinds = tuple(_passed(self._function.__name__, each) for each in sig.args)
        symbol, result = self._known[kinds]
        values = [_pass(context, builder, *each) for each in zip(sig.args, kinds, args, strict=True)]
        packer, model = context.get_arg_packer(kinds), context.data_model_manager[result]
        kind = ir.FunctionType(model.get_return_type(), list(packer.argument_types))
        callee = cgutils.get_or_insert_function(builder.module, kind, symbol)
        return context.get_returned_value(builder, result, builder.call(callee, packer.as_arguments(builder, values)))


@typeof_impl.register(DeviceFunction)
def type_of_device_function(function: DeviceFunction, context: Any) -> types.Type:
    """Return the Numba type of a function that numba-cuda compiles."""
    return function.kind


def _passed(name: str, kind: types.Type) -> types.Type:
    """Return the type that a function of numba-cuda's has for an argument: for an array, Numba's own type."""
    if isinstance(kind, TaskArray) and not (kind.mirrored or kind.knows_range):
        return types.Array(kind.dtype, kind.ndim, "C", readonly=kind.access == "readonly")
    if not isinstance(kind, (types.Number, types.Boolean)):
        refuse(f"{name}, which numba-cuda compiles, is given a {kind}; it takes numbers, and arrays of one device")
    return kind


def _pass(context: Any, builder: ir.IRBuilder, given: types.Type, kind: types.Type, value: ir.Value) -> ir.Value:
    if not isinstance(kind, types.Array):
        return value
    array, made = context.make_helper(builder, given, value), context.make_array(kind)(context, builder)
    shape = cgutils.unpack_tuple(builder, array.shape, kind.ndim)
    itemsize = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    strides = [itemsize]
    for extent in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], extent))
    data = builder.bitcast(array.data, made.data.type)
    context.populate_array(made, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None, parent=None)
    return made._getvalue()
