"""From task functions to machine code. Numba lives in the modules of this package, and nothing outside imports them early."""

import functools

__all__ = ["ITEM_BYTES", "item_bytes", "stored_bytes"]

ITEM_BYTES = (4, 8, 16, 32)  # as the core is compiled for


@functools.cache
def item_bytes(itemsize: int) -> int:
    """Return how far apart items of a size lie in the queue."""
    return next(size for size in ITEM_BYTES if itemsize <= size)


@functools.cache
def stored_bytes(itemsize: int, with_kind: bool) -> int:
    """Return how far apart items of a size lie in the queue; their kind, if they have one, is the last byte."""
    return item_bytes(itemsize + with_kind)
