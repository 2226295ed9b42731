"""From task functions to machine code. Numba lives in the modules of this package, and nothing outside imports them early."""

__all__ = ["ITEM_BYTES", "item_bytes"]

ITEM_BYTES = (4, 8, 16, 32)  # as the core is compiled for


def item_bytes(itemsize: int) -> int:
    """Return how far apart items of a size lie in the queue."""
    return next(size for size in ITEM_BYTES if itemsize <= size)
