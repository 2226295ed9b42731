"""Patches of Numba: functions and methods that are replaced, and classes whose private methods are overridden."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import njit
from numba.core import byteflow, config, interpreter
from numba.core.codegen import JITCodeLibrary, RuntimeLinker
from numba.core.compiler import Compiler

__all__ = [
    "assignment_expressions",
    "current_capability",
    "current_code",
    "current_lowering",
    "inlined_dispatcher",
    "patch_backbone",
    "patch_divisions",
    "patch_exceptions",
    "patch_inlining",
    "patch_lowering",
    "patch_options",
    "patch_reconstruction",
    "patch_unification",
    "removed_numpy_names",
    "start_numba",
    "target_capability",
    "vectorize_unrolled_loops",
]

# Names that NumPy has removed, and what they stood for. numba-cuda 0.30 uses some of them when it first compiles.
_REMOVED = {"in1d": "isin", "round_": "round", "row_stack": "vstack", "trapz": "trapezoid"}
# Of functions that are inlined where they are called.
_INLINE_OPTIONS = {
    "error_model": "numpy",
    "forceinline": True,
    "no_cfunc_wrapper": True,
    "no_cpython_wrapper": True,
    "_nrt": False,
}


class _Thread(threading.local):
    """State of this thread's compilation: the compute capability, and the functions being lowered, the innermost last.

    `typed_before` has, of each of these, how many functions had their types inferred when its lowering began.
    """

    def __init__(self) -> None:
        self.capability: tuple[int, int] | None = None
        self.lowering: list[Any] = []
        self.typed_before: list[int] = []


_thread = _Thread()


@contextlib.contextmanager
def removed_numpy_names() -> Iterator[None]:
    """Give NumPy back, for a while, the names that it no longer has."""
    missing = [name for name in _REMOVED if name not in vars(np)]
    for name in missing:
        setattr(np, name, getattr(np, _REMOVED[name]))
    try:
        yield
    finally:
        for name in missing:
            delattr(np, name)


@contextlib.contextmanager
def vectorize_unrolled_loops() -> Iterator[None]:
    """Have LLVM find vector instructions in straight code too, in what is compiled meanwhile, under Numba's lock.

    Short loops, as over the few features of a vertex, are unrolled before the pass for loops sees them. Numba leaves this
    pass out unless its users ask for it.
    """
    before, config.SLP_VECTORIZE = config.SLP_VECTORIZE, 1
    try:
        yield
    finally:
        config.SLP_VECTORIZE = before


@contextlib.contextmanager
def assignment_expressions() -> Iterator[None]:
    """Have Numba compile ``(name := value)`` right, in what is compiled meanwhile, under the lock of its compiler.

    Numba takes the copy that Python puts on its stack there for the value itself. It then lets the name take the place of the
    value, since a value is used once, and no longer finds the value where the copy is used. So the copy gets a variable, if a
    name comes next: from Python 3.12 on `or` and `and` make copies too, which Numba takes right.
    """
    runner: Any = byteflow.TraceRunner
    maker: Any = interpreter.Interpreter
    ir: Any = interpreter.ir
    names = "op_COPY", "op_DUP_TOP"  # from Python 3.11 on, and before
    saved = [(target, name, vars(target).get(name)) for target in (runner, maker) for name in names]
    true = {(target, name): function for target, name, function in saved}

    def follow(self: Any, state: Any, inst: Any) -> None:
        if not state._bytecode[inst.next].opname.startswith("STORE"):
            true[runner, f"op_{inst.opname}"](self, state, inst)
            return
        value, copy = state.pop(), state.make_temp()
        state.append(inst, value=value, copy=copy)
        state.push(copy)
        state.push(value)

    def make(self: Any, inst: Any, **given: Any) -> None:
        if "copy" not in given:
            true[maker, f"op_{inst.opname}"](self, inst, **given)
            return
        target = self.current_scope.get_or_define(given["copy"], loc=self.loc)
        source = self.get(given["value"])
        self.current_block.append(ir.Assign(value=source, target=target, loc=self.loc))
        self.definitions[target.name].append(source)

    for name in names:
        setattr(runner, name, follow)
        setattr(maker, name, make)
    try:
        yield
    finally:
        for target, name, before in saved:
            if before is None:
                delattr(target, name)
            else:
                setattr(target, name, before)


def start_numba(context: Any) -> None:
    """Have a context of the CPU register what it knows, which takes a while the first time.

    Numba's module `arraymath` imports SciPy's linear algebra meanwhile, which takes 0.1 s or more, only to find out whether
    SciPy is there. What uses linear algebra imports it later.
    """

    def ensure_scipy() -> None:
        if importlib.util.find_spec("scipy") is None:
            raise ImportError("SciPy is not installed")

    module: Any = importlib.import_module("numba.np.linalg")
    true, module.ensure_blas = module.ensure_blas, ensure_scipy
    try:
        context.refresh()
    finally:
        module.ensure_blas = true


@contextlib.contextmanager
def target_capability(capability: tuple[int, int]) -> Iterator[None]:
    """Have device functions that this thread compiles meanwhile compiled for a compute capability, with or without a device.

    Device functions and Numba's own overloads are compiled when they are first called by another function, for the current
    device. There may be none, and it need not be the one that the task is for.
    """
    _thread.capability = capability
    try:
        yield
    finally:
        _thread.capability = None


def current_capability() -> tuple[int, int]:
    """Return the compute capability that this thread compiles for."""
    assert _thread.capability is not None
    return _thread.capability


def patch_lowering(base: type) -> None:
    """Have `current_lowering` know what a class of one of Numba's targets lowers.

    Numba hands the line to some of its implementations, but not to those of indexing and division.
    """
    target: Any = base
    true = target.lower

    @functools.wraps(true)
    def lower(self: Any) -> Any:
        _thread.lowering.append(self)
        _thread.typed_before.append(len(self.context.typing_context.callstack))
        try:
            return true(self)
        finally:
            _thread.lowering.pop()
            _thread.typed_before.pop()

    target.lower = lower


def current_lowering() -> Any:
    """Return Numba's lowering of the function at hand, which knows the line, or None if code is made of no function."""
    return _thread.lowering[-1] if _thread.lowering else None


def current_code(typing: Any) -> CodeType | None:
    """Return the code of the function whose types are inferred, or which is lowered: the innermost of both kinds, if any.

    Parameters
    ----------
    typing : BaseContext
        The typing context of the target.
    """
    stack = typing.callstack
    if _thread.lowering and _thread.typed_before[-1] == len(stack):
        code: CodeType = _thread.lowering[-1].func_ir.func_id.code
        return code
    return stack[0].func_id.code if stack else None


def patch_options(config: type) -> None:
    """Have options, of the target's class `TargetConfig`, compared faster: Numba does so hundreds of times for a function."""
    target: Any = config
    defaults: dict[Any, dict[str, Any]] = {}

    def values(self: Any) -> dict[str, Any]:
        if type(self) not in defaults:
            defaults[type(self)] = {name: option.default for name, option in self.options.items()}
        return {**defaults[type(self)], **self._values}

    target.values = values


def patch_unification(number: type, unify: Callable[..., Any]) -> None:
    """Have numbers of two types, which a variable has or a choice is between, become what a function says.

    Parameters
    ----------
    number : type
        Numba's class of numeric types.
    unify : callable
        Called with the typing context and the two types; None leaves it to Numba, which takes float64 for uint64 and int64.
    """
    target: Any = number
    true = target.unify

    @functools.wraps(true)
    def unify_numbers(self: Any, typing: Any, other: Any) -> Any:
        found = unify(typing, self, other)
        return true(self, typing, other) if found is None else found

    target.unify = unify_numbers


def patch_inlining(inline: ModuleType, prepare: Callable[..., Any]) -> None:
    """Have calls of functions inside of functions changed before Numba inlines them.

    Parameters
    ----------
    inline : module
        The target's module `inline_closurecall`.
    prepare : callable
        Called with the code of the function, the block and the place of the call, and what is called; returns what to inline.
    """
    true = inline.inline_closure_call

    @functools.wraps(true)
    def inline_closure_call(func_ir: Any, variables: Any, block: Any, place: int, callee: Any, *rest: Any, **named: Any) -> Any:
        return true(func_ir, variables, block, place, prepare(func_ir, block, place, callee), *rest, **named)

    inline.inline_closure_call = inline_closure_call  # type: ignore[attr-defined]


def patch_backbone(flow: ModuleType, is_fixed: Callable[[CodeType], bool]) -> None:
    """Have Numba give a variable a new name at an assignment only where all code behind it comes after it.

    It does so in blocks that are on every path through a function, and whatever stands behind such a block reads the new name.
    What returns from a loop without another end is such a block, and the rest of the loop stands behind it but runs before it.

    Parameters
    ----------
    flow : module
        The target's module `byteflow`.
    is_fixed : callable
        Whether this is for a function, by its code.
    """
    target: Any = flow.AdaptCFA
    true = target.backbone.fget

    def backbone(self: Any) -> Any:
        found = true(self)
        if not is_fixed(self._flow._bytecode.func_id.code):
            return found
        dominators = self.graph.dominators()
        return {block for block in found if all(block in dominators[later] for later in dominators if later > block)}

    target.backbone = property(backbone)


def patch_reconstruction(passes: ModuleType, prepare: Callable[[Any], None]) -> None:
    """Have functions changed before Numba gives each assignment a variable of its own.

    Parameters
    ----------
    passes : module
        The target's module `untyped_passes`.
    prepare : callable
        Called with the code of a function.
    """
    target: Any = passes.ReconstructSSA
    true = target.run_pass

    @functools.wraps(true)
    def run_pass(self: Any, state: Any) -> Any:
        prepare(state.func_ir)
        return true(self, state)

    target.run_pass = run_pass


def patch_divisions(model: type, is_checked: Callable[[], bool], divided: Callable[..., None]) -> None:
    """Have divisions by zero in some functions become calls of another function.

    Parameters
    ----------
    model : type
        Numba's base class of what says how a division by zero ends.
    is_checked : callable
        Whether the function that is being lowered is among the functions.
    divided : callable
        Called with the builder and a message for a division by zero.
    """
    target: Any = model
    true = target.fp_zero_division

    @functools.wraps(true)
    def fp_zero_division(self: Any, builder: Any, exc_args: Any = None, loc: Any = None) -> Any:
        if not is_checked():
            return true(self, builder, exc_args, loc)
        divided(builder, exc_args[0] if exc_args else "division by zero")
        return True

    target.fp_zero_division = fp_zero_division


def patch_exceptions(convention: type, is_checked: Callable[[], bool], raised: Callable[..., None]) -> None:
    """Have the exceptions that Numba puts into some functions made by others, for one of its targets.

    Parameters
    ----------
    convention : type
        The calling convention of the target's functions.
    is_checked : callable
        Whether the function that is being lowered is among the functions.
    raised : callable
        Called with the builder, the class of the exception, and its arguments as far as they are known.
    """
    target: Any = convention
    static = target.return_user_exc
    dynamic: Any = getattr(target, "return_dynamic_user_exc", _refuse_dynamic)

    def return_user_exc(self: Any, builder: Any, exc: Any, exc_args: Any = None, *place: Any, **named: Any) -> None:
        if not is_checked():
            static(self, builder, exc, exc_args, *place, **named)
        else:
            raised(builder, exc, exc_args or ())

    def return_dynamic_user_exc(self: Any, builder: Any, exc: Any, args: Any, kinds: Any, *place: Any, **named: Any) -> None:
        if not is_checked():
            dynamic(self, builder, exc, args, kinds, *place, **named)
        else:
            # Only what is known when the task is compiled can be in its message.
            raised(builder, exc, [arg if kind is None else "..." for arg, kind in zip(args, kinds, strict=True)])

    target.return_user_exc, target.return_dynamic_user_exc = return_user_exc, return_dynamic_user_exc


def _refuse_dynamic(*_: Any, **__: Any) -> None:
    raise NotImplementedError("an exception is raised with arguments that are no constants")


class _InlinedLibrary(JITCodeLibrary):
    """Code that is only there to be linked into other code: neither optimized nor made machine code by itself.

    All of it is inlined where it is called, and optimized there. What is recursive is called by its address, and so has one.
    """

    _recursive = False

    @property
    def codegen(self) -> Any:
        return self._codegen if self._recursive else _NoEnvironments

    def _optimize_final_module(self) -> None:
        names = [variable.name for variable in self._final_module.global_variables]
        self._recursive = any(name.startswith(RuntimeLinker.PREFIX) for name in names)
        if self._recursive:
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        if self._recursive:
            super()._finalize_final_module()
        else:
            self._finalize_dynamic_globals()
            self._verify_declare_only_symbols()
            self._finalized = True


class _NoEnvironments:
    """Stand-in for the code generator of code that has no address: Numba notes there what Python objects a function uses."""

    @staticmethod
    def set_env(name: str, environment: Any) -> None: ...


class _InlinedCompiler(Compiler):
    """Numba's compiler, for functions that are inlined."""

    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        super().__init__(typing, target, _InlinedLibrary(target.codegen(), "inlined"), *rest)


def inlined_dispatcher(function: FunctionType) -> Any:
    """Return a dispatcher for the CPU of a function that only other compiled code calls."""
    return njit(pipeline_class=_InlinedCompiler, **_INLINE_OPTIONS)(function)
