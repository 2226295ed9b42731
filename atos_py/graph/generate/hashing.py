"""Helpers of generators: checks of seeds, edges made in pieces by threads, and permutations without a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compile.host_kernels import compile_kernel, parallel_map, ranges, returnable
from ...support.splitmix64 import GOLDEN, splitmix64
from ...support.validation import check_int, require_host_memory
from ..csr import EdgeChunk

__all__ = ["check_seed", "generate_edges", "hash_seeds", "permutation_keys", "permute", "to_fraction"]

_CHUNK_EDGES = 1 << 20
_ROUNDS = 4
_ONE, _11 = np.uint64(1), np.uint64(11)


def check_seed(seed: Any) -> int:
    """Return a seed; raise if it is none."""
    return check_int("seed", seed, 0, 2**64 - 1)


def hash_seeds(seed: int, count: int) -> NDArray[np.uint64]:
    """Return hashes of `count` seeds from `seed` on."""
    return splitmix64(np.arange(count, dtype=np.uint64) + np.uint64(seed) + GOLDEN)  # type: ignore[no-any-return]


def to_fraction(hashes: Any) -> Any:
    """Return hashes of 64 bits as float64, from 0 on and less than 1; for `compute`."""
    return (hashes >> _11).astype(np.float64) * 2.0**-53


def permutation_keys(seed: int) -> tuple[np.uint64, NDArray[np.uint64]]:
    """Return the hash of a seed that edges begin with, and the keys of a permutation."""
    hashes = hash_seeds(seed, 1 + 2 * _ROUNDS)
    start, keys = hashes[0], hashes[1:]
    keys[::2] |= _ONE  # factors, which have to be odd
    return start, keys


def permute(value: Any, count: Any, bits: Any, keys: Any) -> Any:
    """Return the place of a value below `count` in a permutation of these, for compiled code; ``count - 1`` has so many `bits`.

    Odd multiples, sums and right shifts modulo a power of two all can be undone. What leaves the range is permuted again.
    """
    mask = (_ONE << bits) - _ONE
    half = (bits + _ONE) >> _ONE
    while True:
        for j in range(0, keys.size, 2):
            value = (value * keys[j] + keys[j + 1]) & mask
            value ^= value >> half
        if value < count:
            return value


def generate_edges(kernel: Callable[..., None], count: int, num_vertices: int, *args: Any) -> list[EdgeChunk]:
    """Return `count` edges in pieces, filled in by ``kernel(first, *args, sources, targets)``, compiled, in threads."""
    require_host_memory(f"{count} generated edges", 8 * count + 4 * num_vertices)

    def generate(piece: tuple[int, int]) -> EdgeChunk:
        first, end = piece
        chunk = EdgeChunk(returnable(end - first, np.uint32), returnable(end - first, np.uint32), None)
        compile_kernel(kernel)(first, *args, chunk.sources, chunk.targets)  # type: ignore[arg-type]
        return chunk

    return parallel_map(generate, ranges(count, _CHUNK_EDGES))
