"""Functions of Python that Numba lacks, or has for one target alone: of the math module, and `any`, `all`, `reversed`."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin
from numba.np.numpy_support import as_dtype, from_dtype

from .lower_checks import fail, in_checked_code
from .operator_rules import has_uint64, is_whole, rule
from .types import refuse

_NUMBERS = (types.Integer, types.Float, types.Boolean)


def _float_of(*kinds: types.Type) -> types.Type | None:
    """Return the type in which floats are computed with; of integers it is float64. None if not all are numbers."""
    numbers = [types.unliteral(kind) for kind in kinds]
    if not all(isinstance(each, _NUMBERS) for each in numbers):
        return None
    floats = [each for each in numbers if isinstance(each, types.Float)]
    if len(floats) < len(numbers):
        return types.float64
    return from_dtype(np.result_type(*map(as_dtype, floats)))


def _make_of_floats(function: Any, python: Any) -> None:
    """Have a function of floats be one that is written in Python."""
    count = len(inspect.signature(python).parameters)

    def stands_for(*args: Any) -> None:
        """Stands for the function."""

    @rule(function)
    def of_floats(*args: types.Type) -> Any:
        kind = _float_of(*args)
        return None if kind is None or len(args) != count else (signature(kind, *[kind] * count), stands_for)

    @lower_builtin(stands_for, *[types.Float] * count)
    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        return context.compile_internal(builder, python, sig, args)


def _exact_remainder(x: Any, y: Any) -> None:
    """Stands for what C calls fmod."""


@rule(math.fmod)
def _fmod(x: types.Type, y: types.Type) -> Any:
    kind = _float_of(x, y)
    return None if kind is None else (signature(kind, kind, kind), _exact_remainder)


@lower_builtin(_exact_remainder, types.Float, types.Float)
def _lower_exact_remainder(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    if in_checked_code():
        with builder.if_then(builder.fcmp_ordered("==", args[1], ir.Constant(args[1].type, 0.0)), likely=False):
            fail(builder, "division", "float modulo by zero")
    return builder.frem(*args)


def _remainder(x, y):  # type: ignore[no-untyped-def]
    """Return the remainder of the nearest quotient, of two nearest ones of the even one, without rounding."""
    if y == 0:
        return math.nan
    if math.isinf(y) and not math.isnan(x) and not math.isinf(x):
        return x
    size, divisor = abs(x), abs(y)
    rest = size % divisor
    other = divisor - rest
    if rest > other:
        rest = -other
    elif rest == other:
        rest -= 2 * ((size - rest) / 2 % divisor)
    return math.copysign(1.0, x) * rest


def _cbrt(x):  # type: ignore[no-untyped-def]
    """Return the cube root: a power, and one step of Newton's for its last bits."""
    if x == 0 or math.isinf(x) or math.isnan(x):
        return x
    root = math.copysign(abs(x) ** (1 / 3), x)
    return root - (root - x / (root * root)) / 3


_make_of_floats(math.remainder, _remainder)
for _function in (np.cbrt, *([math.cbrt] if hasattr(math, "cbrt") else [])):  # math has it from Python 3.11 on
    _make_of_floats(_function, _cbrt)


def _parts(x: Any) -> None:
    """Stands for the fraction and the whole part of a float."""


@rule(math.modf)
def _modf(x: types.Type) -> Any:
    kind = _float_of(x)
    return None if kind is None else (signature(types.UniTuple(kind, 2), kind), _parts)


@lower_builtin(_parts, types.Float)
def _lower_parts(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    def parts(x):  # type: ignore[no-untyped-def]
        if math.isinf(x):
            return math.copysign(zero, x), x
        fraction = math.copysign(abs(x) % one, x)
        return fraction, x - fraction

    zero, one = sig.args[0](0.0), sig.args[0](1.0)
    return context.compile_internal(builder, parts, sig, args)


def _make_of_integers(function: Any, python: Any, complaint: str) -> None:
    """Have a function of integers that are not negative be one that is written in Python, in uint64."""
    count = len(inspect.signature(python).parameters)

    def stands_for(*args: Any) -> None:
        """Stands for the function."""

    @rule(function)
    def of_integers(*args: types.Type) -> Any:
        if len(args) != count or not all(map(is_whole, args)):
            return None
        kind = types.uint64 if has_uint64(*args) else types.int64
        return signature(kind, *args), stands_for

    @lower_builtin(stands_for, *[types.Any] * count)
    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        for value, kind in zip(args, sig.args, strict=True):
            number = types.unliteral(kind)
            if isinstance(number, types.Integer) and number.signed and in_checked_code():
                with builder.if_then(builder.icmp_signed("<", value, ir.Constant(value.type, 0)), likely=False):
                    fail(builder, "division", complaint)
        given = [context.cast(builder, value, kind, types.uint64) for value, kind in zip(args, sig.args, strict=True)]
        return context.compile_internal(builder, python, signature(types.uint64, *[types.uint64] * count), given)


_LARGEST_ROOT = np.uint64(2**32 - 1)
_NONE, _ONE = np.uint64(0), np.uint64(1)


def _isqrt(n):  # type: ignore[no-untyped-def]
    """Return the largest integer whose square is at most n: float64 is off by one at most."""
    root = np.uint64(min(math.sqrt(n), 4294967295.0))
    while root * root > n:
        root -= _ONE
    while root < _LARGEST_ROOT and (root + _ONE) * (root + _ONE) <= n:
        root += _ONE
    return root


def _comb(n, k):  # type: ignore[no-untyped-def]
    """Return the number of choices of k among n; no step exceeds the result."""
    if k > n:
        return _NONE
    if k > n - k:
        k = n - k
    result, done = _ONE, _NONE
    while done < k:
        factor = n - done
        done += _ONE
        common, rest = result, done
        while rest != _NONE:
            common, rest = rest, common % rest
        result = result // common * (factor // (done // common))
    return result


def _perm(n, k):  # type: ignore[no-untyped-def]
    """Return the number of sequences of k among n."""
    if k > n:
        return _NONE
    result = _ONE
    while k > _NONE:
        result *= n
        n -= _ONE
        k -= _ONE
    return result


_make_of_integers(math.isqrt, _isqrt, "isqrt of a negative number")
_make_of_integers(math.comb, _comb, "comb of a negative number")
_make_of_integers(math.perm, _perm, "perm of a negative number")


@infer_global(math.isclose)
class IsClose(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        by_name = dict(kws)
        tolerances = [by_name.pop(name, types.Omitted(value)) for name, value in (("rel_tol", 1e-9), ("abs_tol", 0.0))]
        if len(args) != 2 or by_name or _float_of(*args) is None:
            return None
        passed = [kind if isinstance(kind, types.Omitted) else types.float64 for kind in tolerances]
        return signature(types.boolean, types.float64, types.float64, *passed).replace(pysig=_IS_CLOSE)


_IS_CLOSE = inspect.signature(lambda a, b, rel_tol=1e-9, abs_tol=0.0: None)


@lower_builtin(math.isclose, types.Float, types.Float, types.Any, types.Any)
def lower_is_close(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    def is_close(a, b, relative, absolute):  # type: ignore[no-untyped-def]
        if a == b:
            return True
        if math.isinf(a) or math.isinf(b):
            return False
        distance = abs(a - b)
        return distance <= abs(relative * b) or distance <= abs(relative * a) or distance <= absolute

    given = [
        ir.Constant(ir.DoubleType(), kind.value) if isinstance(kind, types.Omitted) else value
        for value, kind in zip(args, sig.args, strict=True)
    ]
    return context.compile_internal(builder, is_close, signature(types.boolean, *[types.float64] * 4), given)


def _make_vote(function: Any, starts: bool) -> None:
    def stands_for(members: Any) -> None:
        """Stands for whether any, or all, members of a tuple are true."""

    @rule(function)
    def vote(members: types.Type) -> Any:
        if not isinstance(members, types.BaseTuple) or not all(isinstance(each, _NUMBERS) for each in members):
            refuse(f"{function.__name__} takes a tuple of numbers here, as in {function.__name__}((a, b)), not {members}")
        return signature(types.boolean, members), stands_for

    @lower_builtin(stands_for, types.BaseTuple)
    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        result: ir.Value = ir.Constant(ir.IntType(1), starts)
        for value, kind in zip(cgutils.unpack_tuple(builder, args[0], len(sig.args[0])), sig.args[0], strict=True):
            result = (builder.and_ if starts else builder.or_)(result, context.cast(builder, value, kind, types.boolean))
        return result


_make_vote(any, starts=False)
_make_vote(all, starts=True)


def _backwards(members: Any) -> None:
    """Stands for what goes through a range or a tuple from its end."""


@rule(reversed)
def _reversed(members: types.Type) -> Any:
    if isinstance(members, types.RangeType):
        return signature(members, members), _backwards
    if isinstance(members, types.BaseTuple):
        return signature(types.BaseTuple.from_types(tuple(members)[::-1]), members), _backwards
    refuse(f"reversed takes a range or a tuple, not {members}")


@lower_builtin(_backwards, types.RangeType)
def _lower_backwards(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    def backwards(members):  # type: ignore[no-untyped-def]
        return range(members.start + (len(members) - 1) * members.step, members.start - members.step, -members.step)

    return context.compile_internal(builder, backwards, sig, args)


@lower_builtin(_backwards, types.BaseTuple)
def _lower_backwards_of_tuple(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    members = cgutils.unpack_tuple(builder, args[0], len(sig.args[0]))
    return context.make_tuple(builder, sig.return_type, members[::-1])
