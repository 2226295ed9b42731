"""Arrays with a copy on each device that share an allocation."""

from __future__ import annotations

import numpy as np

import atos_py as atos
from atos_py.arrays.mirrored import MirroredArray
from atos_py.arrays.private import PrivateArray, arrays_together


def test_arrays_of_one_allocation_are_apart_and_their_rows_are_their_copies():
    parts = atos.generate.road(5, 1.0, device="cpu").partition(["cpu:0", "cpu:1", "cpu:2"])
    wanted = (PrivateArray, 1, np.int64), (PrivateArray, 77, np.float32), (MirroredArray, (2, 9), np.uint8)
    arrays = arrays_together(parts.ownership, *wanted)
    assert [(type(each), each.shape, each.dtype) for each in arrays] == [
        (PrivateArray, (1,), np.int64),
        (PrivateArray, (77,), np.float32),
        (MirroredArray, (2, 9), np.uint8),
    ]
    copies = [copy for each in arrays for copy in each._copies]
    assert len(copies) == 9
    assert not any(a._overlaps(b) for k, a in enumerate(copies) for b in copies[:k])
    assert all((copy.to_numpy() == 0).all() for copy in copies)
    for number, copy in enumerate(copies):
        copy[...] = number + 1
    for k, each in enumerate(arrays[:2]):
        assert (each.rows.to_numpy()[:, : each.size] == 3 * k + np.arange(1, 4)[:, None]).all()
    arrays[1].fill(-1)
    assert [float(copy.to_numpy().sum()) for copy in copies] == [1, 2, 3, -77, -77, -77, 7 * 18, 8 * 18, 9 * 18]
