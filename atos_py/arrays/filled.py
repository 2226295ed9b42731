"""New arrays with the same value everywhere, on one device or over those of a partition."""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType
from typing import Any, Literal, Protocol, overload

import numpy as np
from numpy.typing import DTypeLike

from ..core.devices import Device
from ..errors import InvalidArgumentError
from ..support.host_memory import host_memory_for
from .array import Array, asarray, empty, one_number
from .casting import cast_values
from .lowered import LoweredArray
from .memory import fill_elements
from .mirrored import MirroredArray
from .over_hosts import HostArray, HostPlaces
from .owned import OwnedArray
from .ownership import ownership_of
from .partitioned import PartitionedArray

__all__ = ["arange", "full", "ones"]

Placement = Literal["partitioned", "mirrored", "owned"]
_PLACEMENTS = {"partitioned": PartitionedArray, "mirrored": MirroredArray, "owned": OwnedArray}


class _OverHosts(Protocol):
    """The part of a graph that a host has."""

    @property
    def places(self) -> HostPlaces: ...


@overload
def full(
    shape: int | tuple[int, ...], value: Any, *, dtype: DTypeLike | None = None, device: Device | str | None = None
) -> Array: ...
@overload
def full(
    shape: int | tuple[int, ...],
    value: Any,
    *,
    dtype: DTypeLike | None = None,
    partition: _OverHosts,
    combine: Literal["min", "sum"] | None = None,
) -> HostArray: ...
@overload
def full(
    shape: int | tuple[int, ...],
    value: Any,
    *,
    dtype: DTypeLike | None = None,
    partition: Any,
    placement: Placement = "partitioned",
    combine: Literal["min", "sum"] | None = None,
) -> PartitionedArray: ...
@host_memory_for("atos.full")
def full(
    shape: int | tuple[int, ...],
    value: Any,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    partition: Any = None,
    placement: Placement = "partitioned",
    combine: Literal["min", "sum"] | None = None,
) -> Array | PartitionedArray | HostArray:
    """Return a new array with the same value everywhere.

    Parameters
    ----------
    shape : int or tuple of int
    value : number
    dtype : dtype, optional
        Of the elements; by default that of `value`.
    device : Device or str, optional
        Where; by default the best there is.
    partition : Partition, optional
        In place of `device`, what `Graph.partition` returns: the array then has an element, or a row, for each vertex, on the
        device that owns the vertex.
    placement : str
        With a partition: "partitioned", each element on the device that owns the vertex, where tasks of other devices reach it
        too; "owned", the same for tasks that use elements of their own device alone, which ``debug=True`` checks; or
        "mirrored", a copy on each device, of which tasks read that of their device and write all.
    combine : {"min", "sum"}, optional
        With a partition: how tasks change elements. "min": by `worker.push_min`, and on devices of one host by `atomic_min`
        too, of which those of other devices' elements are filtered by bounds. "sum": by `accumulate`. Over several hosts other
        operations cannot travel, so one of them is taken, by default "min"; elsewhere any operation is allowed by default.

    Returns
    -------
    Array, or with a partition PartitionedArray (MirroredArray, OwnedArray, LoweredArray), or HostArray

    Raises
    ------
    DeviceMemoryError
        If the device has too little free memory.
    InvalidArgumentError
        If `value` does not fit the dtype, the shape is negative, or it does not begin with the number of vertices.

    Examples
    --------
    >>> atos.full(3, 7, dtype=np.uint32).to_numpy()
    array([7, 7, 7], dtype=uint32)
    """
    if not isinstance(placement, str) or placement not in _PLACEMENTS:
        raise InvalidArgumentError(f"placement must be one of {', '.join(_PLACEMENTS)} (got {placement!r:.80})")
    if combine is not None and (not isinstance(combine, str) or combine not in ("min", "sum")):
        raise InvalidArgumentError(f"combine must be min or sum (got {combine!r:.80})")
    kind = one_number(value).dtype if dtype is None else dtype
    make = _MAKERS.get(type(getattr(partition, "places", partition)), _over_devices)
    return make(shape, value, kind, device, partition, placement, combine)


def _on_one_device(
    shape: Any, value: Any, dtype: Any, device: Any, _partition: None, placement: str, combine: str | None
) -> Array:
    """Return an array on one device."""
    if placement != "partitioned":
        raise InvalidArgumentError(f"placement={placement!r} is for arrays over several devices; pass partition= as well")
    if combine is not None:
        raise _not_combined(combine)
    result = empty(shape, dtype=dtype, device=device)
    fill_elements(result.device, result.pointer, cast_values(one_number(value), result.dtype), result.size)
    return result


def _over_devices(
    shape: Any, value: Any, dtype: Any, device: Any, partition: Any, placement: str, combine: str | None
) -> PartitionedArray:
    """Return an array over the devices of a partition."""
    if combine is not None and placement != "partitioned":
        raise _not_combined(combine)
    _check_no_device(device)
    made = LoweredArray if combine == "min" else _PLACEMENTS[placement]
    parts = made(shape, dtype, ownership_of("partition", partition))
    parts.fill(value)
    return parts


def _over_hosts(
    shape: Any, value: Any, dtype: Any, device: Any, partition: _OverHosts, placement: str, combine: Any
) -> HostArray:
    """Return an array over the hosts of a partition."""
    _check_no_device(device)
    if placement != "partitioned":
        raise InvalidArgumentError(f"placement={placement!r} is for devices of one host; over several hosts leave it out")
    made = HostArray(shape, dtype, partition.places, combine or "min")
    made.fill(value)
    return made


def _check_no_device(device: Any) -> None:
    if device is not None:
        raise InvalidArgumentError(f"an array has a device or a partition, and not both (got device={device!r:.80})")


def _not_combined(combine: str) -> InvalidArgumentError:
    return InvalidArgumentError(f'combine={combine!r} is for arrays with partition= and placement="partitioned"; leave it out')


_MAKERS: dict[type, Callable[..., Any]] = {NoneType: _on_one_device, HostPlaces: _over_hosts}  # by what has the parts


@host_memory_for("atos.ones")
def ones(shape: int | tuple[int, ...], *, dtype: DTypeLike = np.float32, device: Device | str | None = None) -> Array:
    """Return a new array of ones.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : dtype
        float32 unless given.
    device : Device or str, optional
        Where to make it; the best device there is unless given.

    Examples
    --------
    >>> atos.ones(3, dtype=np.int32).to_numpy()
    array([1, 1, 1], dtype=int32)
    """
    return full(shape, 1, dtype=dtype, device=device)


@host_memory_for("atos.arange")
def arange(*limits: float, dtype: DTypeLike | None = None, device: Device | str | None = None) -> Array:
    """Return a new array of numbers at equal distances, as `numpy.arange` has them.

    Parameters
    ----------
    *limits : number
        The end, which is not reached; or the begin and the end; or these and the step.
    dtype : dtype, optional
        By default int64 for integers, and float64 for floats.
    device : Device or str, optional
        Where to make it; the best device there is unless given.

    Examples
    --------
    >>> print(atos.arange(4)[:], atos.arange(1, 8, 3, dtype=np.uint32)[:])
    [0 1 2 3] [1 4 7]
    """
    if not 1 <= len(limits) <= 3:
        raise InvalidArgumentError(f"arange takes an end, begin and end, or begin, end and step (got {len(limits)} numbers)")
    try:
        numbers = np.arange(*limits, dtype=dtype)
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise InvalidArgumentError(f"arange of {limits}: {error}") from error
    return asarray(numbers, device=device, copy=True)
