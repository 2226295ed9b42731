"""SplitMix64, the hash of 64 bits that random graphs and the symmetry check use, on the host as on a GPU.

Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["GOLDEN", "splitmix64"]

# In compiled code a signed constant would turn unsigned 64-bit arithmetic into floats, so all of them are uint64.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  #: What the state of the generator grows by from one number to the next.
_MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)
_27, _30, _31 = np.uint64(27), np.uint64(30), np.uint64(31)


def splitmix64(state: Any) -> Any:
    """Return the output of the generator for a state: a hash, one to one, of uint64 or of an array of them; also for tasks."""
    z = (state ^ (state >> _30)) * _MULTIPLIER_1
    z = (z ^ (z >> _27)) * _MULTIPLIER_2
    return z ^ (z >> _31)
