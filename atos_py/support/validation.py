"""Checks of what callers hand in, whose errors name the argument, its value, and what would do."""

from __future__ import annotations

import difflib
import functools
import inspect
import os
import sys
from collections.abc import Callable, Collection, Iterable
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..errors import DeviceMemoryError, InvalidArgumentError, UnsupportedTypeError

__all__ = [
    "as_dtype",
    "as_host_array",
    "as_integers",
    "broadcast_arrays",
    "check_bool",
    "check_choice",
    "check_float",
    "check_int",
    "check_option_names",
    "check_timeout",
    "list_parameters",
    "read_host_memory",
    "read_number",
    "require_host_memory",
]


def check_option_names(what: str, given: Iterable[str], known: Collection[str], note: str = "") -> None:
    """Raise at the first option that `what` does not have, with those that it has, the likeliest of them, and a note."""
    for name in given:
        if name not in known:
            has = list(dict.fromkeys(known))
            near = difflib.get_close_matches(name, has, 1, 0.65)
            meant = f"did you mean {near[0]!r}? " if near else ""
            raise UnsupportedTypeError(f"{what} has no option {name!r}; {meant}it has {', '.join(has)}{note}")


@functools.cache
def list_parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the parameters of a function, behind its decorators, that a caller may pass by name."""
    parameters = inspect.signature(function).parameters.values()
    return tuple([each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)])


def check_int(name: str, value: Any, least: int, most: int) -> int:
    """Check an integer, of Python or NumPy, and its range; return it as an int."""
    integer: int = value if type(value) is int else _as_int(name, value)
    if not least <= integer <= most:
        raise InvalidArgumentError(f"{name} must be from {least} to {most} (got {integer})")
    return integer


def _as_int(name: str, value: Any) -> int:
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise UnsupportedTypeError(f"{name} must be an integer (got {value!r:.80})")
    try:
        return cast(int, value.__index__())
    except TypeError:  # an array of several
        raise UnsupportedTypeError(f"{name} must be an integer (got {value!r:.80})") from None


def check_float(name: str, value: Any) -> float:
    """Check a real number, of Python or NumPy, that is neither NaN nor infinite; return it as a float."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise UnsupportedTypeError(f"{name} must be a number (got {value!r:.80})")
    try:
        real = float(value)
    except OverflowError:
        real = float("inf")
    if not np.isfinite(real):
        raise InvalidArgumentError(f"{name} must be a finite number (got {value!r:.80})")
    return real


def check_timeout(timeout: Any) -> float:
    """Check a time limit in seconds, which may be infinite; return it as a float."""
    if isinstance(timeout, (float, np.floating)) and timeout == float("inf"):
        return float("inf")
    if not (limit := check_float("timeout", timeout)) > 0:
        raise InvalidArgumentError(f"timeout must be a number of seconds above 0 (got {timeout})")
    return limit


def check_choice(name: str, value: Any, known: Collection[str]) -> str:
    """Check one of several words and return it."""
    if isinstance(value, str) and value in known:
        return value
    raise InvalidArgumentError(f"{name} must be one of {', '.join(known)} (got {value!r:.80})")


def check_bool(name: str, value: Any) -> bool:
    """Check a switch and return it as a bool; a word such as "no", which Python takes for true, is refused."""
    if not isinstance(value, (bool, np.bool_)):
        raise UnsupportedTypeError(f"{name} must be True or False (got {value!r:.80})")
    return bool(value)


def as_dtype(value: DTypeLike) -> np.dtype[Any]:
    """Return what names a dtype as one."""
    try:
        if value is not None:  # of which NumPy makes float64
            return np.dtype(value)
    except (TypeError, ValueError, SyntaxError, OverflowError):
        pass
    raise UnsupportedTypeError(f"a dtype of NumPy is wanted, such as 'int32' (got {value!r:.80})")


def as_host_array(name: str, values: Any, *, may_round: bool = False) -> NDArray[Any]:
    """Return what NumPy makes an array of; one with a mask is refused, since what lies under the mask would count.

    Whole numbers of a list that NumPy rounds to float64 are refused too, unless they `may_round`.
    """
    # That module takes a while to import, whoever has such an array has imported it, and another thread may be about to.
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    if masked is not None and isinstance(values, masked):
        raise UnsupportedTypeError(f"{name} has a mask, which would be ignored; pass values.compressed() or values.filled(...)")
    try:
        made = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise UnsupportedTypeError(f"{name} cannot be made an array: {error}") from error
    if not may_round and made.dtype == np.float64 and isinstance(values, (list, tuple)):
        _refuse_rounded(name, values, made)
    return made


def _refuse_rounded(name: str, values: Any, made: NDArray[Any]) -> None:
    """Raise if a list holds a whole number that NumPy has rounded to float64, for the sake of others in it."""
    if made.ndim != 1 or not (large := np.flatnonzero(np.abs(made) >= 2**53)).size:
        return
    for at in large.tolist():
        if isinstance(values[at], (int, np.integer)) and int(values[at]) != float(made[at]):
            raise InvalidArgumentError(
                f"{name}[{at}] is {values[at]}, which NumPy rounds to {made[at]!r} beside the other numbers; pass an array,"
                " such as numpy.array(..., dtype='uint64')"
            )


def broadcast_arrays(name: str, *values: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return the arrays that `name` was given in the shape that they have in common."""
    try:
        return tuple(np.broadcast_arrays(*values))
    except ValueError:
        shapes = ", ".join(str(value.shape) for value in values)
        raise InvalidArgumentError(f"{name} is given arrays whose shapes do not go together: {shapes}") from None


def as_integers(name: str, values: Any) -> NDArray[Any]:
    """Return a one-dimensional array of integers, of whichever dtype."""
    given = as_host_array(name, values)
    if not given.size and not isinstance(values, np.ndarray):
        given = given.astype(np.int64)
    if given.dtype.kind not in "iu":
        raise UnsupportedTypeError(f"{name} must be integers, not {given.dtype}{_advise_integers(given)}")
    if given.ndim != 1:
        raise InvalidArgumentError(f"{name} must be one-dimensional (got shape {given.shape})")
    return given


def _advise_integers(given: NDArray[Any]) -> str:
    """Return advice on how to make integers of something else, for the end of a message."""
    first = given.ravel()[:1].tolist()
    if first and isinstance(first[0], (str, bytes)):
        every = "numpy.concatenate([sources, targets])"
        return f", as {first[0]!r:.40} is none; number all names, as by codes, names = pandas.factorize({every})"
    return "; if every value is a whole number, pass values.astype('int64')" if given.dtype.kind in "fO" else ""


def read_number(name: str, default: int = 0) -> int:
    """Return the number that an environment variable holds."""
    value = os.environ.get(name, str(default))
    if not value.isascii() or not value.isdigit():
        raise InvalidArgumentError(f"the environment variable {name} is a number of at least 0 (got {value!r})")
    return int(value)


def read_host_memory() -> int:
    """Return how many bytes of memory the host has in all."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def require_host_memory(what: str, nbytes: int) -> None:
    """Refuse what no host memory holds before it is begun; the system would otherwise kill the process in the middle."""
    if nbytes > (most := read_host_memory()):
        raise DeviceMemoryError(
            f"{what} would take {nbytes / 2**30:,.1f} GiB, more than the {most / 2**30:,.1f} GiB that the host has"
        )
