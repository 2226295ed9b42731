"""The arguments of a launch: what kind each one is, and the 64-bit words that carry it to the task."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays.join_layout import combine_of
from ..arrays.lowered import LoweredArray
from ..arrays.mirrored import MirroredArray
from ..arrays.over_hosts import HostArray
from ..arrays.owned import OwnedArray
from ..arrays.private import PrivateArray
from ..core.library import lib
from ..errors import InvalidArgumentError, UnsupportedTypeError

__all__ = [
    "ArrayKind",
    "HostKind",
    "JoinsKind",
    "Kind",
    "LoweredKind",
    "MirrorKind",
    "NoneKind",
    "OwnedKind",
    "PoolArgument",
    "PoolKind",
    "PrivateKind",
    "QueueArgument",
    "QueueKind",
    "ScalarKind",
    "TupleKind",
    "describe",
    "device_words",
    "number_of_fields",
    "words",
]

_WORD = 0xFFFF_FFFF_FFFF_FFFF
_INT64 = np.dtype(np.int64)
_FLOAT64 = np.dtype(np.float64)


class _OneForEach(type):
    """Class of classes that make one object for equal fields, so that comparing and hashing it costs next to nothing."""

    @functools.cache  # noqa: B019 - classes live as long as the process
    def __call__(cls, *fields: Any) -> Any:
        return super().__call__(*fields)


class Kind(metaclass=_OneForEach):
    """Type of a launch's argument, without its value: a task is compiled for the kinds of its arguments."""


@dataclass(frozen=True, eq=False)
class ArrayKind(Kind):
    """A C-contiguous array; its words are the data pointer and the shape."""

    dtype: np.dtype[Any]
    ndim: int
    readonly: bool

    def __str__(self) -> str:
        return f"{'readonly ' if self.readonly else ''}array({self.dtype}, {self.ndim}d)"


@dataclass(frozen=True, eq=False)
class MirrorKind(Kind):
    """An array with a copy on each device; its words are those of an array, and where its copies are.

    The core lets the data pointer lead to the copy of the device. After the shape come the address of the first copy, the bytes
    from one to the next, and how many there are.
    """

    dtype: np.dtype[Any]
    ndim: int

    def __str__(self) -> str:
        return f"mirrored array({self.dtype}, {self.ndim}d)"


@dataclass(frozen=True, eq=False)
class PrivateKind(Kind):
    """An array with a copy on each device, of which tasks use their device's; its words are those of an array.

    The core lets the data pointer lead to the copy of the device.
    """

    dtype: np.dtype[Any]
    ndim: int

    def __str__(self) -> str:
        return f"private array({self.dtype}, {self.ndim}d)"


@dataclass(frozen=True, eq=False)
class LoweredKind(Kind):
    """An array whose elements tasks only lower; its words are those of an array, the device's range, and its bounds.

    The core adds to the range what the device's number makes of it, and lets the last word lead to the bounds of the device.
    """

    dtype: np.dtype[Any]
    ndim: int

    def __str__(self) -> str:
        return f"lowered array({self.dtype}, {self.ndim}d)"


@dataclass(frozen=True, eq=False)
class OwnedKind(Kind):
    """An array of which tasks use elements of their device alone; its words are those of an array, and the device's range.

    The core adds to the range what the device's number makes of it.
    """

    dtype: np.dtype[Any]
    ndim: int

    def __str__(self) -> str:
        return f"owned array({self.dtype}, {self.ndim}d)"


@dataclass(frozen=True, eq=False)
class HostKind(Kind):
    """An array over several hosts, each of which has all elements; its words are those of an array, and its own range."""

    dtype: np.dtype[Any]
    combine: str

    def __str__(self) -> str:
        return f"{self.combine} over hosts({self.dtype})"


@dataclass(frozen=True, eq=False)
class ScalarKind(Kind):
    """A number in one word."""

    dtype: np.dtype[Any]

    def __str__(self) -> str:
        return str(self.dtype)


@dataclass(frozen=True, eq=False)
class NoneKind(Kind):
    """None, which takes no words."""

    def __str__(self) -> str:
        return "None"


@dataclass(frozen=True, eq=False)
class QueueKind(Kind):
    """Another queue, which tasks push into; the core fills in its words."""

    dtype: np.dtype[Any]

    def __str__(self) -> str:
        return f"queue({self.dtype})"


@dataclass(frozen=True)
class QueueArgument:
    """A queue as an argument: what is known of it when the task is compiled."""

    dtype: np.dtype[Any]


@dataclass(frozen=True, eq=False)
class PoolKind(Kind):
    """A pool; its words are those of its counters, one that the core fills in, and those of its arrays."""

    fields: tuple[str, ...]
    kinds: tuple[Kind, ...]

    def __str__(self) -> str:
        return f"pool({', '.join(f'{field}: {kind}' for field, kind in zip(self.fields, self.kinds, strict=True))})"


@dataclass(frozen=True)
class PoolArgument:
    """A pool as an argument: the memory that it has at the launch."""

    counters: Any
    arrays: dict[str, Any]


@dataclass(frozen=True, eq=False)
class TupleKind(Kind):
    """A named tuple; its words are those of its members, in order."""

    cls: type[tuple[Any, ...]]
    fields: tuple[str, ...]
    kinds: tuple[Kind, ...]

    def __str__(self) -> str:
        members = ", ".join(f"{field}: {kind}" for field, kind in zip(self.fields, self.kinds, strict=True))
        return f"{self.cls.__module__}.{self.cls.__qualname__}({members})"


class JoinsKind(TupleKind):
    """Joins: a tuple of their parts."""

    def __str__(self) -> str:
        return f"joins({self.kinds[-1].dtype}, {combine_of(self.cls)!r})"  # type: ignore[attr-defined]  # of the root


def describe(value: Any) -> Kind:
    """Return the kind of an argument.

    Parameters
    ----------
    value : Array, number, None, or named tuple of those

    Raises
    ------
    UnsupportedTypeError
        If a task cannot take `value`.
    """
    return (_handlers.get(type(value)) or _handler(value))[0](value)


def words(value: Any) -> tuple[int, ...]:
    """Return the words of an argument, each from 0 to 2**64 - 1.

    Raises
    ------
    InvalidArgumentError
        If `value` is an integer that does not fit 64 bits.
    """
    return (_handlers.get(type(value)) or _handler(value))[1](value)


_Handler = tuple[Callable[[Any], Kind], Callable[[Any], tuple[int, ...]]]


def _describe_array(value: Any) -> Kind:
    return ArrayKind(value.dtype, len(value.shape), value.readonly)


def _words_of_array(value: Any) -> tuple[int, ...]:
    return (value.pointer, *value.shape)


def _describe_mirror(value: MirroredArray) -> Kind:
    return MirrorKind(value.dtype, len(value.shape))


def _words_of_mirror(value: MirroredArray) -> tuple[int, ...]:
    return (value.pointer, *value.shape, value.pointer, value.step, len(value.devices))


def _describe_private(value: PrivateArray) -> Kind:
    return PrivateKind(value.dtype, len(value.shape))


def _describe_lowered(value: LoweredArray) -> Kind:
    return LoweredKind(value.dtype, len(value.shape))


def _words_of_lowered(value: LoweredArray) -> tuple[int, ...]:
    return (value.pointer, *value.shape, 0, value.ownership.chunk, value.bounds.pointer)


def _describe_owned(value: OwnedArray) -> Kind:
    return OwnedKind(value.dtype, len(value.shape))


def _words_of_owned(value: OwnedArray) -> tuple[int, ...]:
    return (value.pointer, *value.shape, 0, value.ownership.chunk)


def device_words(value: Any) -> list[tuple[int, int]]:
    """Return which words of an argument differ by device, and by how much from one device to the next."""
    if isinstance(value, MirroredArray):
        return [(0, value.step)]
    if not isinstance(value, (OwnedArray, LoweredArray)):
        return []
    start = 1 + value.ndim
    of_range = [(start, value.ownership.chunk), (start + 1, value.ownership.chunk)]
    return [*of_range, (start + 2, value.bounds.step)] if isinstance(value, LoweredArray) else of_range


def _describe_over_hosts(value: HostArray) -> Kind:
    return HostKind(value.dtype, value.combine)


def _words_over_hosts(value: HostArray) -> tuple[int, ...]:
    return (value.pointer, *value.shape, value.own.start, value.own.stop)


def _describe_pool(value: PoolArgument) -> Kind:
    return PoolKind(tuple(value.arrays), tuple(map(_describe_array, value.arrays.values())))


def _words_of_pool(value: PoolArgument) -> tuple[int, ...]:
    return (value.counters.pointer, 0, *[word for array in value.arrays.values() for word in _words_of_array(array)])


def _words_of_int(value: int) -> tuple[int, ...]:
    if not -(2**63) <= value < 2**63:
        raise InvalidArgumentError(f"argument {value} does not fit a signed 64-bit integer; pass np.uint64(...), or a float")
    return (value & _WORD,)


def _words_of_float(value: float) -> tuple[int, ...]:
    return struct.unpack("<Q", struct.pack("<d", value))


def _scalar_handler(dtype: np.dtype[Any]) -> _Handler:
    kind = ScalarKind(dtype)
    if dtype.kind in "iub":
        return lambda value: kind, lambda value: (int(value) & _WORD,)
    if dtype.itemsize == 4:
        return lambda value: kind, lambda value: struct.unpack("<I", struct.pack("<f", value))
    return lambda value: kind, _words_of_float


def _tuple_handler(cls: Any) -> _Handler:
    fields = cls._fields

    def describe_tuple(value: Any) -> Kind:
        if len(value) != len(fields):  # unlike the first of its class
            raise _refusal(value)
        return TupleKind(cls, fields, tuple([describe(member) for member in value]))

    return (
        describe_tuple,
        lambda value: tuple([word for member in value for word in words(member)]),
    )


# One entry for each type seen, so that the tests of `_handler` run once for each type and not at each launch.
_handlers: dict[type[Any], _Handler] = {
    type(None): (lambda value: NoneKind(), lambda value: ()),
    bool: _scalar_handler(np.dtype(np.bool_)),
    int: (lambda value, kind=ScalarKind(_INT64): kind, _words_of_int),  # type: ignore[misc]
    float: _scalar_handler(_FLOAT64),
    MirroredArray: (_describe_mirror, _words_of_mirror),
    PrivateArray: (_describe_private, _words_of_array),
    LoweredArray: (_describe_lowered, _words_of_lowered),
    OwnedArray: (_describe_owned, _words_of_owned),
    HostArray: (_describe_over_hosts, _words_over_hosts),
    PoolArgument: (_describe_pool, _words_of_pool),
    QueueArgument: (lambda value: QueueKind(value.dtype), lambda value: (0,) * lib.ATOS_RECEIVER_WORDS),
}


def _handler(value: Any) -> _Handler:
    cls: Any = type(value)
    if number_of_fields(cls) is not None and len(value) == number_of_fields(cls):
        handler = _tuple_handler(cls)
    elif (
        isinstance(value, np.generic)
        and value.dtype.kind in "iufb"
        and value.dtype.itemsize in (1, 2, 4, 8)
        and value.dtype != np.float16
    ):
        handler = _scalar_handler(value.dtype)
    elif not isinstance(value, type) and all(
        hasattr(cls, name) or hasattr(value, name) for name in ("dtype", "shape", "pointer", "readonly")
    ):
        handler = (_describe_array, _words_of_array)
    else:
        raise _refusal(value)
    _handlers[cls] = handler
    return handler


def _refusal(value: Any) -> UnsupportedTypeError:
    cls = type(value)
    return UnsupportedTypeError(f"a task cannot take an argument of type {cls.__module__}.{cls.__qualname__}; {_advice(value)}")


@functools.lru_cache(maxsize=1024)
def number_of_fields(cls: Any) -> int | None:
    """Return the number of members of a class of named tuples, which tasks take, or None for any other class.

    A class of named tuples was made by `typing.NamedTuple` or `collections.namedtuple`.
    """
    fields = getattr(cls, "_fields", None)
    if not issubclass(cls, tuple) or not isinstance(fields, tuple) or not callable(getattr(cls, "_make", None)):
        return None
    return len(fields) if all(isinstance(field, str) for field in fields) else None


def _advice(value: Any) -> str:
    if isinstance(value, type):
        return f"{value.__qualname__} is a class; give something that was made of it"
    if isinstance(value, (np.ndarray, list)) or hasattr(value, "__cuda_array_interface__") or hasattr(value, "__dlpack__"):
        return "make it a device array with atos.asarray(...)"
    if isinstance(value, tuple):
        return "make it with a typing.NamedTuple, which gives each member a name"
    if isinstance(value, np.generic):
        return "numbers are integers of 8 to 64 bits, float32, float64 or bool"
    return "it takes arrays made by atos.asarray, numbers, None, pools, named tuples of those, and, by themselves, queues"
