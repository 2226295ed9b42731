"""The Mandelbrot set by subdivision
==================================

This program draws the Mandelbrot set with the Mariani-Silver algorithm: if the border of a square has one color, so has its
inside. So a task fills such a square, and divides any other into four. The threads of a worker share a square.
"""

from __future__ import annotations

import numpy as np

import atos_py as atos

SQUARE = np.dtype([("x", np.uint32), ("y", np.uint32), ("side", np.uint32)])
LIMIT, SIDE = 1000, 512


def escape(x, y):
    """Return the number of steps after which the point of a pixel leaves the disk of radius 2."""
    real, imaginary = 2.6 * x / SIDE - 2.0, 2.6 * y / SIDE - 1.3
    a, b, n = real, imaginary, 0
    while n < LIMIT and a * a + b * b < 4.0:
        a, b, n = a * a - b * b + real, 2.0 * a * b + imaginary, n + 1
    return n


@atos.task
def divide(worker: atos.Worker, square, picture, steps):
    """Fill a square if its border has one color; otherwise push its quarters, or compute it if it is small."""
    x, y, last, low, high, mine = square.x, square.y, square.side - 1, LIMIT, 0, 0
    for k in worker.split(4 * last):
        along = k % last
        n = escape(x + (along, last, last - along, 0)[k // last], y + (0, along, last, last - along)[k // last])
        low, high, mine = min(low, n), max(high, n), mine + n
    low, high = worker.min(low), worker.max(high)
    if low != high and square.side > 8:
        half = square.side // 2
        for quarter in worker.split(4):
            worker.push((x + half * (quarter % 2), y + half * (quarter // 2), half))
    else:
        for k in worker.split(square.side * square.side):
            n = low if low == high else escape(x + k % square.side, y + k // square.side)
            picture[y + k // square.side, x + k % square.side] = n
            mine += 0 if low == high else n
    atos.atomic_add(steps, 0, mine)


# %%
# The search begins with one square.
if __name__ == "__main__":
    picture, steps = atos.zeros((SIDE, SIDE), dtype=np.int32), atos.zeros(1, dtype=np.int64)
    queue = atos.Queue(capacity=SIDE * SIDE, dtype=SQUARE)
    queue.push((0, 0, SIDE))
    print(queue.launch_warp(divide, picture, steps))
    print(f"{steps[0] / 1e6:.1f} M steps instead of {picture.to_numpy().sum() / 1e6:.1f} M")
    from matplotlib import pyplot as plt

    plt.imshow(np.log1p(picture.to_numpy()), cmap="magma")
    plt.show()
