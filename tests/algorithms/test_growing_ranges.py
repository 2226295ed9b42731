"""Growing ranges: they have all elements, and the first ones are small."""

from __future__ import annotations

import math

import numpy as np
import pytest

from atos_py.algorithms.bfs.growing_ranges import GrowingRanges, begin_of, plan_growing_ranges


@pytest.mark.parametrize("elements", [1, 2, 5, 32, 100, 4097, 33_793, 40_000, 262_144, 1 << 24])
@pytest.mark.parametrize("most", [1, 8, 64, 33_792])
def test_planned(elements, most):
    ranges = plan_growing_ranges(elements, most)
    begins = begin_of(np.arange(ranges.how_many + 1), ranges)
    sizes = np.diff(begins)
    assert begins[0] == 0
    assert begins[-1] >= elements > begins[max(ranges.how_many - 2, 0)]
    assert sizes.min() >= 1
    assert sizes[0] <= sizes[-1]
    assert ranges.how_many <= 1.1 * max(most, math.isqrt(elements)) + 1


def test_as_many_as_elements():
    ranges = plan_growing_ranges(100, 100)
    assert begin_of(np.arange(101), ranges).tolist() == list(range(101))
    assert begin_of(np.arange(5), GrowingRanges(4, 1)).tolist() == [0, 1, 4, 7, 12]
