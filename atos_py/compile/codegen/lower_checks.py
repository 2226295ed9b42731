"""Checks in the code of a task: each, where it fails, reports its site to the core, and returns from the task.

It returns as Numba's exceptions do: the function returns an error status, and so does each of its callers up to the entry
point. Numba's own exceptions in a task (`raise`, `assert`, a division by zero, a range with step 0) become reports in the same
way.

Checks are there only while `collecting` is entered, and only in the user's own functions: what Numba compiles once for all
tasks, such as its parts of `math`, stays as it is.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator
from types import CodeType
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import lower_builtin

from ..debug_checks import Checks, Site
from .core_calls import call_core
from .introspect import plain_function
from .numba_patches import current_lowering, patch_divisions, patch_exceptions
from .types import I32, I64, POINTER, WorkerType

_collecting = threading.local()


@contextlib.contextmanager
def collecting(checks: Checks | None) -> Iterator[None]:
    """Compile what is compiled in here with checks, whose sites are added to `checks`; None: without."""
    _collecting.checks, _collecting.codes, _collecting.arrivals = checks, set(), []
    try:
        yield
    finally:
        _collecting.checks, _collecting.codes, _collecting.arrivals = None, set(), []


def is_collecting() -> bool:
    """Whether tasks are being compiled with checks."""
    return getattr(_collecting, "checks", None) is not None


def add_checked(code: CodeType) -> None:
    """Note that a function belongs to the task that is being compiled."""
    _collecting.codes.add(code)


def is_user_code(code: CodeType | None) -> bool:
    """Whether a function belongs to the task that is being compiled, rather than to Numba or to this package."""
    return code in getattr(_collecting, "codes", ())


def note_arrival(numbers: frozenset[int]) -> None:
    """Note that the function that is being compiled arrives at counters in one of the arrays with these numbers."""
    if is_collecting():
        _collecting.arrivals.append(numbers)


def arrivals() -> list[frozenset[int]]:
    """Return what `note_arrival` was told since the last call of this."""
    noted, _collecting.arrivals = _collecting.arrivals, []
    return noted


def in_checked_code() -> bool:
    """Whether the function that is being lowered is the user's, and gets checks."""
    lowering = current_lowering() if is_collecting() else None
    return lowering is not None and lowering.func_ir.func_id.code in _collecting.codes


def in_racing_code() -> bool:
    """Whether the function that is being lowered is the user's, and tells of its accesses."""
    return in_checked_code() and _collecting.checks.races


def site_number(kind: str, detail: str) -> ir.Constant:
    """Return the number of a site at the line that is being lowered."""
    lowering = current_lowering()
    site = Site(kind, lowering.func_ir.func_id.func_name, lowering.loc.filename, lowering.loc.line, detail)
    return ir.Constant(I64, _collecting.checks.number(site))


def leave(builder: ir.IRBuilder) -> None:
    """Return from the function at hand, and from all that called it."""
    current_lowering().call_conv.return_exc(builder)


def fail(builder: ir.IRBuilder, kind: str, detail: str, *values: ir.Value) -> None:
    """Report a failure, with a value, a bound and an array as far as they mean something, and return."""
    _report(builder, site_number(kind, detail), *values)
    leave(builder)


def _report(builder: ir.IRBuilder, site: ir.Constant, *values: ir.Value) -> None:
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [I64] * 4), "atos_fail")
    padding = [ir.Constant(I64, 0)] * (3 - len(values))
    builder.call(function, [site, *values, *padding])


def cast(
    context: Any,
    builder: ir.IRBuilder,
    value: ir.Value,
    given: types.Type,
    wanted: types.Type,
    low: bool = True,
    high: bool = True,
) -> ir.Value:
    """Cast a number. With checks, one below (`low`) or above (`high`) what an integer type holds is a failure."""
    number = types.unliteral(given)
    if isinstance(wanted, types.Integer) and isinstance(number, (types.Integer, types.Float)) and in_checked_code():
        least, most = _limits(wanted)
        if isinstance(number, types.Float):
            word = context.cast(builder, value, given, types.float64)
            # What is cut off to `least` is more than `least` - 1, which int64 has no float for. A NaN is in no range.
            below = float(least - 1)
            lowest = ir.Constant(word.type, below if below == least else math.nextafter(below, math.inf))
            highest = ir.Constant(word.type, float(most + 1))
            inside = builder.and_(builder.fcmp_ordered(">=", word, lowest), builder.fcmp_ordered("<", word, highest))
            bad = builder.not_(inside)
        else:
            word = context.cast(builder, value, given, types.int64 if number.signed else types.uint64)
            compare = builder.icmp_signed if number.signed else builder.icmp_unsigned
            bad = cgutils.false_bit
            if low and least > _limits(number)[0]:
                bad = builder.or_(bad, compare("<", word, ir.Constant(I64, least)))
            if high and most < _limits(number)[1]:
                bad = builder.or_(bad, compare(">", word, ir.Constant(I64, most)))
        if bad is not cgutils.false_bit:
            with builder.if_then(bad, likely=False):
                fail(builder, "cast", f"{number} {wanted}", builder.bitcast(word, I64))
    return context.cast(builder, value, given, wanted)


def as_count(context: Any, builder: ir.IRBuilder, value: ir.Value, given: types.Type) -> ir.Value:
    """Cast a number of iterations to int64; of a uint64 that is more than int64 holds, the most that it holds.

    As a negative number it would mean no iterations at all.
    """
    count = context.cast(builder, value, given, types.int64)
    if types.unliteral(given) != types.uint64:
        return count
    beyond = builder.icmp_signed("<", count, ir.Constant(I64, 0))
    return builder.select(beyond, ir.Constant(I64, _limits(types.int64)[1]), count)


def length_of(context: Any, builder: ir.IRBuilder, value: ir.Value, given: types.Type, workload: Any) -> ir.Value:
    """Cast what a workload returned, inside an entry point. With checks, what int64 does not hold is a failure of the workload.

    The entry point goes on with a length of 0, since it has to say that the workload has `ended`.
    """
    if not is_collecting() or types.unliteral(given) != types.uint64:
        return as_count(context, builder, value, given)
    beyond = builder.icmp_signed("<", value, ir.Constant(I64, 0))
    with builder.if_then(beyond, likely=False):
        report_function(builder, workload, "cast", f"{types.uint64} {types.int64}", value)
    return builder.select(beyond, ir.Constant(I64, 0), value)


def report_function(builder: ir.IRBuilder, function: Any, kind: str, detail: str, *values: ir.Value) -> None:
    """Report a failure of a whole function of the user's, inside an entry point, without returning."""
    plain = plain_function(function)
    assert plain is not None
    code = plain.__code__
    site = Site(kind, code.co_name, code.co_filename, code.co_firstlineno, detail)
    _report(builder, ir.Constant(I64, _collecting.checks.number(site)), *values)


def _limits(integer: types.Integer) -> tuple[int, int]:
    limits = np.iinfo(str(integer))
    return int(limits.min), int(limits.max)


@lower_builtin(types.NumberClass, types.Integer)
@lower_builtin(types.NumberClass, types.Float)
def lower_number_class(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    """Lower `np.uint8(x)` as Numba does, but with a check."""
    return cast(context, builder, args[0], sig.args[0], sig.return_type)


def began(builder: ir.IRBuilder, worker: WorkerType) -> None:
    """Inside the entry point of an iteration: the user's function is called next."""
    if worker.checked and worker.group > 1:
        call_core(builder, ir.VoidType(), "atos_group_begin", [ir.Constant(I32, worker.group)])


def ended(builder: ir.IRBuilder, worker: WorkerType, pointer: ir.Value, items: ir.Value | None) -> None:
    """Inside an entry point for CUDA: the user's function has returned, maybe because a check failed. On a CPU the core looks.

    `pointer` is to the worker, and `items` to its items, None without one.
    """
    if worker.checked:
        calls = {"atos_report": [pointer, ir.Constant(POINTER, None) if items is None else items]}
        if not worker.nested:
            calls["atos_left"] = [pointer]
        for name, given in calls.items():
            call_core(builder, ir.VoidType(), name, given)


def intercept_divisions(model: type) -> None:
    """Make reports of the divisions by zero in the user's functions: `model` is Numba's class `ErrorModel`."""
    patch_divisions(model, in_checked_code, _report_division)


def intercept(convention: type) -> None:
    """Make reports of the exceptions that Numba puts into the user's functions, by the calling convention of a target."""
    patch_exceptions(convention, in_checked_code, _report_exception)


def _report_division(builder: ir.IRBuilder, message: str) -> None:
    fail(builder, "division", message)


def _report_exception(builder: ir.IRBuilder, exc: Any, args: Any) -> None:
    message = ", ".join(map(str, args))
    if exc is not None and issubclass(exc, AssertionError):
        fail(builder, "assert", "assertion failed" + (f": {message}" if message else ""))
    else:
        name = "an exception" if exc is None else exc.__name__
        fail(builder, "raise", f"{name}: {message}" if message else f"{name} was raised")
