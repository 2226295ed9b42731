"""Galaxies by Barnes and Hut
==========================

Bodies attract each other. What is far away counts as one body: the cells of an octree have the sums (Barnes and Hut, 1986).

In Morton order the bodies of a cell are neighbors. One launch builds the tree: `split` divides a cell into those of its octants
that have bodies, and the last of these to be summed up pushes the cell again, for `gather`. In the next launch 32 bodies go
through the tree together, into a cell if it is near to one of them. ``python examples/barnes_hut.py [BODIES]``
"""

from __future__ import annotations

import math
import sys
from collections import namedtuple

import numpy as np

import atos_py as atos

FEW, BLOCK, ZERO, ONE, SCALE = 16, 1024, np.float32(0), np.float32(1), np.float32(1 << 20)
ANGLE, SOFT, STEP = 0.5, np.float32(0.002), np.float32(0.01)
Tree = namedtuple("Tree", "key body total reach cell used")  # rows of body and total: x, y, z, mass; of cell:
BEGIN, END, CHILD, AFTER, PARENT, COUNT, MISSING = range(7)  # its bodies, first child, what follows if it is not opened, ...


def part(worker: atos.Worker, block, n):
    """Return the bodies of this thread, of a block of them."""
    return worker.split(range(block * BLOCK, min(block * BLOCK + BLOCK, n)))


def spread(x):
    """Return a number of 21 bits with two zeros before each bit."""
    x = (x | x << 32) & 0x1F00000000FFFF
    x = (x | x << 16) & 0x1F0000FF0000FF
    x = (x | x << 8) & 0x100F00F00F00F00F
    x = (x | x << 4) & 0x10C30C30C30C30C3
    return (x | x << 2) & 0x1249249249249249


@atos.task
def number(worker: atos.Worker, block, body, half, key):
    """Find the Morton number of each body in a cube that reaches from -half to half."""
    for b in part(worker, block, key.size):
        found = 0
        for axis in range(3):
            place = np.int64((body[b, axis] / half[0] + ONE) * SCALE)
            found |= spread(min(max(place, 0), (1 << 21) - 1)) << axis
        key[b] = found


@atos.task
def arrange(worker: atos.Worker, block, order, key, body, speed, to_key, to_body, to_speed):
    """Put bodies in order."""
    for b in part(worker, block, order.size):
        source = order[b]
        to_key[b] = key[source]
        for k in range(4):
            to_body[b, k], to_speed[b, k] = body[source, k], speed[source, k]


def octant_end(key, low, high, shift):
    """Return the end of the octant that begins at `low`, of a cell that ends at `high`."""
    octant = key[low] >> shift
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if key[middle] >> shift > octant else (middle + 1, high)
    return low


def octants(c, tree, half):
    """Count the octants of a cell that have bodies, and reserve cells for them."""
    begin, end, shift, count = tree.cell[c, BEGIN], tree.cell[c, END], 60, 0
    while shift > 0 and tree.key[begin] >> shift == tree.key[end - 1] >> shift:  # all are in one octant
        shift -= 3
    while begin < end:
        begin, count = octant_end(tree.key, begin, end, shift), count + 1
    child = atos.atomic_add(tree.used, 0, count)
    tree.cell[c, CHILD], tree.cell[c, COUNT], tree.cell[c, MISSING] = child, count, count
    return count, child, shift


@atos.task(workload=octants)
def split(worker: atos.Worker, c, i, child, shift, tree, half):
    """Make child i of a cell: sum it up if it has few bodies, otherwise divide it as well."""
    begin, end, c, parent = tree.cell[c, BEGIN], tree.cell[c, END], child + i, c
    for _ in range(i):
        begin = octant_end(tree.key, begin, end, shift)
    stop = octant_end(tree.key, begin, end, shift)
    tree.cell[c, BEGIN], tree.cell[c, END], tree.cell[c, CHILD], tree.cell[c, PARENT] = begin, stop, 0, parent
    tree.cell[c, AFTER] = c + 1 if stop < end else tree.cell[parent, AFTER]
    tree.reach[c] = (half[0] * (1 << shift // 3) / SCALE / ANGLE) ** 2
    if stop - begin > FEW and tree.key[begin] != tree.key[stop - 1]:
        worker.push(c)
    else:
        store(worker, c, tree, *sum_of(tree.body, range(begin, stop)))


@atos.task
def gather(worker: atos.Worker, c, tree, half):
    """Sum up the children of a cell; what has not arrived from another thread is NaN."""
    children = worker.split(range(tree.cell[c, CHILD], tree.cell[c, CHILD] + tree.cell[c, COUNT]))
    x, y, z, mass = sum_of(tree.total, children)
    x, y, z, mass = worker.sum(x), worker.sum(y), worker.sum(z), worker.sum(mass)
    if worker.rank == 0:
        if math.isnan(x + y + z):
            worker.push(c, task=gather)
        else:
            store(worker, c, tree, x, y, z, mass)


def sum_of(rows, numbers):
    """Return sums of mass * x, y and z, and of the mass."""
    x, y, z, mass = 0.0, 0.0, 0.0, 0.0
    for b in numbers:
        m = np.float64(rows[b, 3])
        x, y, z, mass = x + m * rows[b, 0], y + m * rows[b, 1], z + m * rows[b, 2], mass + m
    return x, y, z, mass


def store(worker: atos.Worker, c, tree, x, y, z, mass):
    """Store the sum of a cell; the last one of the children pushes its parent."""
    total = tree.total
    total[c, 0], total[c, 1], total[c, 2], total[c, 3] = x / mass, y / mass, z / mass, mass  # race: gather looks for NaN
    parent = tree.cell[c, PARENT]
    if c > 0 and atos.atomic_add(tree.cell, (parent, MISSING), -1) == 1:
        worker.push(parent, task=gather)


def pull(x, y, z, rows, b):
    """Return how strongly a row of a position and a mass attracts, and from where."""
    dx, dy, dz = rows[b, 0] - x, rows[b, 1] - y, rows[b, 2] - z
    square = dx * dx + dy * dy + dz * dz
    return dx, dy, dz, square, rows[b, 3] / ((square + SOFT) * math.sqrt(square + SOFT))


@atos.task(workload=lambda block, *args: 1, group=32)
def attract(worker: atos.Worker, block, i, tree, speed, to_body, to_speed, acceleration, half):
    """Find what attracts 32 bodies, one for each thread of a group on a GPU, and move them."""
    group, last = worker.group, tree.key.size - 1
    for k in group.split(range(32 * block, 32 * block + 32)):
        b = min(k, last)
        x, y, z = tree.body[b, 0], tree.body[b, 1], tree.body[b, 2]
        ax, ay, az, c = ZERO, ZERO, ZERO, tree.cell[0, CHILD]
        while c > 0:
            dx, dy, dz, square, strength = pull(x, y, z, tree.total, c)
            if group.all(square > tree.reach[c]):
                ax, ay, az, c = ax + strength * dx, ay + strength * dy, az + strength * dz, tree.cell[c, AFTER]
            elif tree.cell[c, CHILD] > 0:
                c = tree.cell[c, CHILD]
            else:
                for other in range(tree.cell[c, BEGIN], tree.cell[c, END]):
                    dx, dy, dz, square, strength = pull(x, y, z, tree.body, other)
                    ax, ay, az = ax + strength * dx, ay + strength * dy, az + strength * dz
                c = tree.cell[c, AFTER]
        if k <= last:
            acceleration[b, 0], acceleration[b, 1], acceleration[b, 2] = ax, ay, az
            farthest, to_body[b, 3] = ZERO, tree.body[b, 3]
            for axis in range(3):
                to_speed[b, axis] = speed[b, axis] + STEP * acceleration[b, axis]
                to_body[b, axis] = tree.body[b, axis] + STEP * to_speed[b, axis]
                farthest = max(farthest, abs(to_body[b, axis]))
            atos.atomic_max(half, 0, farthest)


class Bodies:
    """Bodies in two orders: as the last step has left them, and as they are in the tree."""

    def __init__(self, body, speed, device=None):
        def array(*shape, dtype=np.float32):
            return atos.empty(shape, dtype=dtype, device=device)

        n = len(body)
        self.body, self.speed, self.half = (atos.asarray(a, device=device) for a in (body, speed, [abs(body[:, :3]).max()]))
        self.key, self.old_speed, self.acceleration = array(n, dtype=np.int64), array(n, 4), array(n, 3)
        ints = array(2 * n, 8, dtype=np.int32), array(1, dtype=np.int32)
        self.tree = Tree(array(n, dtype=np.int64), array(n, 4), array(2 * n, 4), array(2 * n), *ints)
        self.tree.cell[0] = (0, n, 0, 0, 0, 0, 0, 0)
        self.cells, self.blocks = atos.Queue(n, device=device), atos.Queue(n, device=device)

    def step(self):
        """Build the tree, find what attracts each body, and move it; return the statistics of the launches."""
        n, tree, moved = len(self.key), self.tree, (self.key, self.body, self.speed)
        frozen = Tree(*(atos.asarray(array, readonly=True) for array in tree))
        self.blocks.push(range(-(-n // BLOCK)))
        numbered = self.blocks.launch_cta(number, self.body, self.half, self.key)
        self.blocks.push(range(-(-n // BLOCK)))
        arranged = self.blocks.launch_cta(arrange, atos.argsort(self.key), *moved, tree.key, tree.body, self.old_speed)
        tree.total[...], tree.used[...] = math.nan, 1
        self.cells.push(0)
        built = self.cells.launch_warp((split, gather), tree._replace(key=frozen.key, body=frozen.body), self.half)
        self.blocks.push(range(-(-n // 32)))
        arrays = frozen, self.old_speed, self.body, self.speed, self.acceleration, self.half
        return numbered, arranged, built, self.blocks.launch_warp(attract, *arrays, fetch_size=1)

    def verify(self, some):
        """Check the tree, and what attracts some of its bodies; return the mean relative error of that."""
        used, half = self.tree.used[0], self.half[0]
        body, total = self.tree.body.to_numpy().astype(np.float64), self.tree.total.to_numpy()[:used]
        begin, end, child = self.tree.cell.to_numpy()[:used, : CHILD + 1].T
        leaves = np.sort(begin[child == 0]), np.sort(end[child == 0])
        assert np.array_equal([*leaves[0], len(body)], [0, *leaves[1]])  # each body is in one leaf
        sums = np.cumsum(np.concatenate([[[0, 0, 0, 0]], np.c_[body[:, :3] * body[:, 3:], body[:, 3]]]), axis=0)
        exact = sums[end] - sums[begin]
        assert np.allclose(total, np.c_[exact[:, :3] / exact[:, 3:], exact[:, 3]], rtol=1e-6, atol=1e-6 * half)
        return relative_error(body, some, self.acceleration.to_numpy())


def relative_error(body, some, found):
    """Check what attracts some bodies against sums over all others; return the mean relative error."""
    exact = np.empty((len(some), 3))
    for k, b in enumerate(some):
        apart = body[:, :3] - body[b, :3]
        exact[k] = body[:, 3] / ((apart**2).sum(1) + SOFT) ** 1.5 @ apart
    errors = np.linalg.norm(found[some] - exact, axis=1) / np.linalg.norm(exact, axis=1)
    assert errors.mean() < 0.01
    assert errors.max() < 0.1
    return errors.mean()


def disk(n, center, drift, tilt, rng):
    """Return a heavy body, and light ones that circle around it; and their speeds."""
    radius, angle = np.sort(rng.exponential(0.3, n)) + 0.1, rng.uniform(0, 2 * np.pi, n)
    velocity = np.sqrt((0.4 + 0.1 * np.linspace(0, 1, n)) / radius)  # the mass inside of its circle holds a body on it
    radius[0], velocity[0], mass = 0, 0, np.r_[0.4, np.full(n - 1, 0.1 / n)]
    place = np.c_[radius * np.cos(angle), radius * np.sin(angle), 0.02 * rng.normal(size=n)]
    speed = np.c_[-velocity * np.sin(angle), velocity * np.cos(angle), np.zeros(n)]
    turn = np.array([[1, 0, 0], [0, math.cos(tilt), -math.sin(tilt)], [0, math.sin(tilt), math.cos(tilt)]])
    return np.c_[place @ turn + center, mass], np.c_[speed @ turn + drift, np.zeros(n)]


def galaxies(n, device=None):
    """Return two galaxies that are about to meet."""
    rng, half = np.random.default_rng(0), n // 2
    pair = disk(half, (-1, -0.3, 0), (0.5, 0, 0), 0.4, rng), disk(n - half, (1, 0.3, 0), (-0.5, 0, 0), 1.2, rng)
    return Bodies(*(np.concatenate(rows).astype(np.float32) for rows in zip(*pair, strict=True)), device)


# %%
# Two galaxies meet. The tree and the forces of the last step are verified.
if __name__ == "__main__":
    from matplotlib import pyplot as plt

    arguments = [] if hasattr(sys, "ps1") else sys.argv[1:]  # in a notebook they are those of the kernel
    n = int(arguments[0]) if arguments else 4000
    bodies = galaxies(n)
    for step in range(241):
        stats = atos.LaunchStats.total(bodies.step())
        if step % 80 == 0:
            x, y, _, _ = bodies.body.to_numpy().T
            axes = plt.subplot(2, 2, 1 + step // 80, title=f"step {step}", aspect="equal")
            axes.hist2d(x, y, 200, range=[[-2, 2], [-1.5, 1.5]], norm="log", cmap="magma")
    error = bodies.verify(np.random.default_rng(0).choice(n, 100))
    print(f"{n:,} bodies: forces to {error:.1%}, verified", stats, sep="\n")
    plt.show()
