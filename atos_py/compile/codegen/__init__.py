"""From task functions to machine code. Numba lives in the modules of this package, and nothing outside imports them early."""

__all__ = ["item_bytes"]


def item_bytes(itemsize: int) -> int:
    """Return how far apart items of a size lie in the queue."""
    return next(size for size in (4, 8, 16) if itemsize <= size)
