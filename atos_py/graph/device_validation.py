"""Validation of a CSR that is on a device already: a pass over its vertices and edges there, without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.array import Array, asarray, to_host
from ..arrays.filled import full
from ..compile.atomics import atomic_or_
from ..compile.task import task
from ..core.devices import Device
from ..operators.ranges import range_items, split_range
from ..runtime.queue import Queue
from .csr import CSR, MAX_VERTICES, check_csr
from .weights import weight_dtype

__all__ = ["csr_on_device"]

_ENTRIES_PER_ITEM = 1 << 16


@task
def inspect(worker, item, indptr, indices, weights, faults):  # type: ignore[no-untyped-def]
    """Note whether offsets fall, an id is no vertex, or a weight is NaN."""
    n = indptr.size - 1
    bad = False
    for v in split_range(worker, item, n, _ENTRIES_PER_ITEM):
        bad |= indptr[v] > indptr[v + 1]
    for edge in split_range(worker, item, indices.size, _ENTRIES_PER_ITEM):
        bad |= indices[edge] >= n
        if weights is not None:
            bad |= weights[edge] != weights[edge]
    if bad:
        atomic_or_(faults, 0, 1)


def csr_on_device(indptr: Any, indices: Any, weights: Any, device: Device) -> CSR:
    """Check the three arrays of a CSR, on a device, and return them there; copied where the dtype or the device require it."""
    offsets = asarray(indptr, device=device, readonly=True)
    if offsets.dtype not in (np.int32, np.int64):
        offsets = asarray(offsets, dtype=np.int64, readonly=True)
    ids = asarray(indices, device=device, readonly=True)
    if ids.dtype == np.int32:  # the same memory; what is negative becomes larger than any id
        ids = Array(ids.pointer, ids.shape, np.dtype(np.uint32), ids.device, readonly=True, owner=ids)
    values = None if weights is None else asarray(weights, device=device, readonly=True)
    if not _is_plain(offsets, ids, values):
        # Wrong, and the check on the host says what it is; or of a dtype that is converted there.
        return check_csr(to_host(indptr), to_host(indices), to_host(weights))
    return CSR(offsets, ids, values)  # type: ignore[arg-type]


def _is_plain(offsets: Array, ids: Array, values: Array | None) -> bool:
    """Whether arrays are a CSR, of the dtypes that a graph has."""
    if offsets.ndim != 1 or ids.ndim != 1 or not offsets.size or ids.dtype != np.uint32:
        return False
    if values is not None and (values.shape != ids.shape or values.dtype != weight_dtype(values.dtype)):
        return False
    if offsets.size - 1 > MAX_VERTICES or offsets[0] != 0 or offsets[-1] != ids.size:
        return False
    items = range_items(max(offsets.size - 1, ids.size), _ENTRIES_PER_ITEM)
    faults = full(1, 0, dtype=np.uint32, device=offsets.device)
    queue = Queue(max(len(items), 1), device=offsets.device)
    queue.push(items)
    queue.launch_cta(inspect, offsets, ids, values, faults)
    return bool(faults[0] == 0)
