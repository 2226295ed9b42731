"""Access to names of Numba that are private or undocumented: used here alone, so that another release breaks one place.

What changes Numba is in `numba_patches`. Numba is imported where a function needs it: naming a cache entry takes this
module, and code that comes from the cache is launched without Numba.
"""

from __future__ import annotations

import copy
import pickle
from types import FunctionType
from typing import Any

__all__ = [
    "borrowed_dispatcher",
    "can_compile",
    "changed_expression",
    "compiler_of",
    "create_module",
    "export_library",
    "export_lowered",
    "given_signatures",
    "host_features",
    "import_lowered",
    "is_jitted",
    "is_known_global",
    "jit_alike",
    "load_library",
    "load_result",
    "lowered_abi",
    "overload_of",
    "registries_of",
    "save_result",
    "set_cache",
    "start_runtime",
]


def is_known_global(typing_context: Any, value: Any) -> bool:
    """Whether Numba has a meaning of its own for the value of a global variable."""
    return typing_context._lookup_global(value) is not None


def create_module(target_context: Any, name: str) -> Any:
    """Return a new module of LLVM's code for the context's target."""
    return target_context.codegen()._create_empty_module(name)


def registries_of(target_context: Any) -> list[Any]:
    """Return the registries of what a context can lower, in the order in which it took them."""
    return list(target_context._registries)


def start_runtime(target_context: Any) -> None:
    """Start the part of Numba that code which is loaded from a cache may call, and not what compiles."""
    from numba.core.runtime.nrt import rtsys

    rtsys.initialize(target_context)


def host_features(codegen: Any) -> tuple[str, ...]:
    """Return what machine code depends on: the kind of machine, the CPU and its features, and whether SVML is there."""
    from numba.core import config

    return tuple(map(str, (*codegen.magic_tuple(), config.USING_SVML)))


def export_library(library: Any) -> tuple[bytes, bytes]:
    """Return the machine code and the bitcode of a library that keeps its objects."""
    _, _, (machine_code, bitcode) = library.serialize_using_object_code()
    return machine_code, bitcode


def load_library(codegen: Any, name: str, machine_code: bytes, bitcode: bytes) -> Any:
    """Return the library of this name whose code `export_library` returned."""
    return codegen.unserialize_library((name, "object", (machine_code, bitcode)))


def export_lowered(library: Any) -> bytes:
    """Return the bitcode of a library that is not finalized yet, with what is linked to it: the input of LLVM's optimizer."""
    module = library._final_module.clone()
    for linked in dict.fromkeys(library._linking_libraries):
        module.link_in(linked._get_module_for_linking(), preserve=True)
    content: bytes = module.as_bitcode()
    return content


def import_lowered(codegen: Any, exported: str, name: str, bitcode: bytes) -> Any:
    """Return a library to be finalized with the bitcode that `export_lowered` returned.

    The functions whose names begin with `exported` begin with `name` then: code that is loaded twice into a process has to
    differ in them.
    """
    from llvmlite import binding

    module = binding.parse_bitcode(bitcode)
    for function in module.functions:
        if function.name.startswith(exported):
            function.name = name + function.name.removeprefix(exported)
    library = codegen.create_library(name)
    library._final_module.link_in(module)
    return library


def lowered_abi(codegen: Any) -> tuple[str, ...]:
    """Return what bitcode depends on that is not optimized yet: LLVM's version, the machine's name, and how data lie."""
    from llvmlite import binding

    return ".".join(map(str, binding.llvm_version_info)), binding.get_process_triple(), str(codegen.target_data)


def save_result(result: Any) -> bytes:
    """Return a compiled function as bytes."""
    from numba.core import serialize

    return serialize.dumps(result._reduce())


def load_result(target_context: Any, content: bytes) -> Any:
    """Return the compiled function that `save_result` made bytes of."""
    from numba.core import compiler

    return compiler.CompileResult._rebuild(target_context, *pickle.loads(content))


def changed_expression(expression: Any, **operands: Any) -> Any:
    """Return a copy of an expression of Numba's code, with some of its operands replaced."""
    changed = copy.copy(expression)
    changed._kws = {**expression._kws, **operands}
    return changed


def set_cache(dispatcher: Any, cache: Any) -> None:
    """Have a dispatcher look for code in `cache`, which has `load_overload`, `save_overload` and `cache_path`."""
    dispatcher._cache = cache


def can_compile(dispatcher: Any) -> bool:
    """Whether a dispatcher takes other types than those that it was compiled for."""
    return getattr(dispatcher, "_can_compile", True)


def compiler_of(dispatcher: Any) -> type | None:
    """Return the class that compiles a dispatcher's function, or None if the dispatcher names none."""
    return getattr(getattr(dispatcher, "_compiler", None), "pipeline_class", None)


def given_signatures(dispatcher: Any) -> list[str]:
    """Return the signatures that were given to a dispatcher: types that it was called with are none, and change nothing."""
    if can_compile(dispatcher):
        stats = getattr(dispatcher, "stats", None)
        met = {*stats.cache_hits, *stats.cache_misses} if stats is not None else ()
        return sorted(str(signature) for signature in met if not isinstance(signature, tuple))
    return [str(getattr(code, "signature", types)) for types, code in dispatcher.overloads.items()]


def is_jitted(value: Any) -> bool:
    """Whether a value is what `numba.njit` makes of a function, to be compiled for any types."""
    from numba.core.dispatcher import Dispatcher

    return isinstance(value, Dispatcher) and can_compile(value) and not given_signatures(value)


def jit_alike(dispatcher: Any, function: FunctionType) -> Any:
    """Return a dispatcher of another function, with the options of one that `is_jitted`."""
    return type(dispatcher)(function, dispatcher.locals, dispatcher.targetoptions, compiler_of(dispatcher))


def borrowed_dispatcher(dispatcher: Any, target: type) -> Any:
    """Return a dispatcher of another target, a class, for the function of a dispatcher: one for all its calls."""
    if getattr(dispatcher, "_borrowed", None) is None:
        dispatcher._borrowed = target(dispatcher.py_func, dispatcher.locals, dispatcher.targetoptions)
    return dispatcher._borrowed


def overload_of(template: Any) -> tuple[FunctionType, dict[str, Any], str] | None:
    """Return what was given to `numba.extending.overload` or the like: a function, options, and the name of an attribute.

    None if the template was made otherwise.
    """
    function = getattr(template, "_overload_func", None)
    if not isinstance(function, FunctionType):
        return None
    return function, {**template.metadata, **getattr(template, "_jit_options", {})}, getattr(template, "_attr", "")
