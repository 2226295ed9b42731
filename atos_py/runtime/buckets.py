"""Buckets of a queue for priorities: checks of what is asked for, and the priorities in a checkpoint."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays.array import Array, asarray
from ..arrays.import_external import is_on_gpu
from ..core.devices import Device
from ..core.library import check, ffi, in_turn, lib
from ..errors import InvalidArgumentError, UnsupportedTypeError
from ..support.validation import as_host_array, check_float, check_int
from .checkpoint import QueueSnapshot
from .items import as_items, items_on_gpu, pad_items

__all__ = ["as_priorities", "check_buckets", "push_call", "read_priorities", "restore"]


def check_buckets(buckets: Any, delta: Any) -> tuple[int | None, float | Literal["auto"]]:
    """Return the number of buckets, which may be None, and their width."""
    number = None if buckets is None else check_int("buckets", buckets, 2, 1 << 10)
    if number is not None and number & (number - 1):
        raise InvalidArgumentError(f"buckets must be a power of two (got {number})")
    if isinstance(delta, str):
        if delta != "auto":
            raise InvalidArgumentError(f'delta must be a number above 0 or "auto" (got {delta!r:.80})')
        return number, "auto"
    width = check_float("delta", delta)
    if not width > 0:
        raise InvalidArgumentError(f'delta must be a number above 0 or "auto" (got {delta})')
    if number is None:
        raise InvalidArgumentError("delta is the width of a bucket: pass buckets= as well")
    return number, width


def as_priorities(priority: ArrayLike | Array, count: int, buckets: int | None) -> NDArray[np.float64]:
    """Return one priority for each of `count` items, given as one number for all or one for each."""
    if buckets is None:
        raise InvalidArgumentError("only a queue with buckets takes priorities: make it with atos.Queue(..., buckets=)")
    given = as_host_array("the priority of what is pushed", asarray(priority) if is_on_gpu(priority) else priority)
    if given.dtype.kind not in "iufb":
        raise UnsupportedTypeError(f"priorities are numbers (got dtype {given.dtype})")
    if given.ndim > 1 or (given.ndim == 1 and len(given) != count):
        raise InvalidArgumentError(f"pass one priority, or one for each of the {count} items (got shape {given.shape})")
    return np.ascontiguousarray(np.broadcast_to(given, (count,)), np.float64)


def push_call(
    items: ArrayLike | Array, priority: ArrayLike | None, dtype: np.dtype[Any], device: Device, buckets: int | None
) -> tuple[Any, list[Any], int, Any]:
    """Return the function of the core that pushes items, its arguments, their number, and who owns the memory meanwhile."""
    array = None if buckets else items_on_gpu(items, dtype, device)
    if array is not None:
        return lib.atos_queue_push_device, [ffi.cast("void *", array.pointer)], array.size, array
    values = as_items(items, dtype)
    pointer = ffi.cast("void *", values.ctypes.data)
    if priority is None:
        return lib.atos_queue_push, [pointer], len(values), values
    numbers = as_priorities(priority, len(values), buckets)
    return lib.atos_queue_push_prioritized, [pointer, _pointer(numbers)], len(values), (values, numbers)


def read_priorities(handle: Any, count: int) -> NDArray[np.float64]:
    """Return the priorities of the first `count` items of a queue with buckets, in the order in which they are read."""
    priorities = np.empty(count)
    check(in_turn(lib.atos_queue_read_priorities, handle, _pointer(priorities), count))
    return priorities


def restore(handle: Any, saved: QueueSnapshot) -> None:
    """Put an empty queue in a state: one with buckets first gets the counters, and then the items with their priorities."""
    items = pad_items(saved.items)
    state = saved.state if saved.priorities is None else saved.state._replace(pending=0, level=0)
    raw = ffi.cast("void *", items.ctypes.data)
    check(in_turn(lib.atos_queue_restore, handle, raw, ffi.new("atos_queue_state *", state._asdict())))
    if saved.priorities is not None:
        check(in_turn(lib.atos_queue_push_prioritized, handle, raw, _pointer(saved.priorities), len(items)))


def _pointer(priorities: NDArray[np.float64]) -> Any:
    return ffi.cast("double *", priorities.ctypes.data)
