"""SplitMix64: the numbers of the reference implementation."""

from __future__ import annotations

import numpy as np

from atos_py.support.splitmix64 import GOLDEN, splitmix64


def test_first_numbers_of_seed_1234567():
    states = np.uint64(1234567) + np.arange(1, 6, dtype=np.uint64) * GOLDEN
    assert splitmix64(states).tolist() == [
        6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821,
    ]  # fmt: skip
