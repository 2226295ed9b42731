"""Owned arrays: tasks use the elements of their own device alone, which is checked with debug=True."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import atos_py as atos
from atos_py.errors import TaskError

GPUS = [str(device) for device in atos.devices() if device.kind == "cuda"]
KINDS = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not GPUS, reason="needs a GPU")])]


class Values(NamedTuple):
    shared: Any
    owned: Any


@atos.task
def add_at(worker, v, distance, values):
    """Add to the element at a distance, in both arrays."""
    if worker.rank == 0:
        place = (v + distance) % values.owned.shape[0]
        values.shared[place, 1] += 1
        atos.atomic_add(values.owned, (place, 1), 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["keep", "random"])
def test_accesses_are_checked(kind, order):
    devices = ["cpu:0", "cpu:1", "cpu:2"] if kind == "cpu" else (GPUS[:2] if len(GPUS) > 1 else GPUS * 2) + GPUS[:1]
    parts = atos.Graph.from_edges([], [], num_vertices=14, device="cpu").partition(devices, order)
    arrays = [atos.full((14, 2), 0, dtype=np.int32, partition=parts, placement=each) for each in ("partitioned", "owned")]
    values = Values(*arrays)
    queue = atos.Queue(14, owner=parts)
    for debug in (False, True):
        queue.push(range(14))
        queue.launch_warp(add_at, 0, values, debug=debug)
    queue.push(range(14))
    queue.launch_warp(add_at, 1, values)  # is not checked without debug
    assert (values.owned[:,][:, 1] == 3).all()
    ids = np.arange(14) if parts.ownership.ids is None else parts.ownership.ids
    queue.push([ids[4]])  # the last vertex of the first device, by number
    text = (
        r"element 5 of array 'values\.owned' is another device's: placement='owned' is for elements of their own, here below 5"
    )
    with pytest.raises(TaskError, match=text) as error:
        queue.launch_warp(add_at, 1, values, debug=True)
    assert error.value.kind == "owner"
    assert isinstance(values.owned, atos.OwnedArray)
