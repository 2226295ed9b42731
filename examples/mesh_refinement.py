"""Delaunay mesh refinement
========================

A mesh is refined until no angle is below 30 degrees (Ruppert, 1995): the center of the circumcircle of a bad triangle becomes a
point of the mesh, or, if it is beyond or too near to an edge of the square, the middle of that edge.

A point replaces its *cavity*, the triangles whose circumcircles contain it. In one round, `plan` finds the cavity of each bad
triangle, and claims it and what is around it. In the next, `refine` changes it if all claims held, and takes more triangles
from a pool; otherwise it tries again (Nasre, Burtscher and Pingali, 2013). The strongest claim always holds. Coordinates are
integers of 29 bits, for which all tests are exact. ``python examples/mesh_refinement.py [POINTS]``
"""

import math
import sys
from collections import namedtuple

import numpy as np
from scipy.spatial import Delaunay

import atos_py as atos

SIDE, MOST, RANGE = 1 << 29, 64, 64  # of the square; edges around a cavity; triangles of a first item
BITS, HALF = 30, (1 << 30) - 1  # of half a number in `in_circle`
Mesh = namedtuple("Mesh", "points triangles tickets left")
TRIANGLE = [("corner", np.int32, 3), ("twin", np.int32, 3), ("inner", np.int64), ("claim", np.int64), ("tried", np.int32)]
ITEM = np.dtype([(name, np.int32) for name in ("triangle", "edge", "ticket")])  # edge 3 * t + k begins at corner k of t


def in_circle(ax, ay, bx, by, cx, cy, x, y):
    """Return whether a point is inside of the circumcircle of a triangle: exactly, by products of two halves each."""
    ax, ay, bx, by, cx, cy = ax - x, ay - y, bx - x, by - y, cx - x, cy - y
    squares, areas = (ax * ax + ay * ay, bx * bx + by * by, cx * cx + cy * cy), (bx * cy - by * cx, cx * ay - cy * ax)
    high, middle, low = 0, 0, 0
    for square, area in ((squares[0], areas[0]), (squares[1], areas[1]), (squares[2], ax * by - ay * bx)):
        p, q, r, s = square >> BITS, square & HALF, area >> BITS, area & HALF
        high, middle, low = high + p * r, middle + p * s + q * r, low + q * s
    middle += low >> BITS
    high += middle >> BITS
    return high > 0 or (high == 0 and (middle & HALF) + (low & HALF) > 0)


def corners(mesh, t):
    """Return the coordinates of the corners of a triangle."""
    a, b, c = mesh.triangles.corner[t, 0], mesh.triangles.corner[t, 1], mesh.triangles.corner[t, 2]
    return mesh.points.x[a], mesh.points.y[a], mesh.points.x[b], mesh.points.y[b], mesh.points.x[c], mesh.points.y[c]


def is_bad(ax, ay, bx, by, cx, cy):
    """Return whether an angle is below 30 degrees: whether the shortest edge is shorter than the circumcircle's radius."""
    a, b = float((bx - cx) ** 2 + (by - cy) ** 2), float((cx - ax) ** 2 + (cy - ay) ** 2)
    c, area = float((ax - bx) ** 2 + (ay - by) ** 2), float((bx - ax) * (cy - ay) - (by - ay) * (cx - ax))
    return 4.0 * area * area < a * b * c / min(a, b, c) * (1.0 - 1e-12)


def center(ax, ay, bx, by, cx, cy):
    """Return the grid point next to the circumcenter, or to where the way to it leaves the square."""
    x, y, bx, by, cx, cy = (ax + bx + cx) / 3.0, (ay + by + cy) / 3.0, bx - ax, by - ay, cx - ax, cy - ay
    b, c, area, part = float(bx * bx + by * by), float(cx * cx + cy * cy), 2.0 * float(bx * cy - by * cx), 1.0
    dx, dy = ax + (cy * b - by * c) / area - x, ay + (bx * c - cx * b) / area - y  # from the inside of the triangle
    for start, way in ((x, dx), (y, dy)):
        part = min(part, (SIDE - start if way > 0.0 else start) / max(abs(way), 1.0))
    return np.int64(math.floor(x + part * dx + 0.5)), np.int64(math.floor(y + part * dy + 0.5))


def point_of(mesh, t, edge):
    """Return where the point for a bad triangle is: in the middle of an edge of the square, if it has to split one."""
    if edge < 0:
        return center(*corners(mesh, t))
    a, b = mesh.triangles.corner[edge // 3, edge % 3], mesh.triangles.corner[edge // 3, (edge + 1) % 3]
    return (mesh.points.x[a] + mesh.points.x[b]) // 2, (mesh.points.y[a] + mesh.points.y[b]) // 2


def claim_of(ticket, round, wave):
    """Return a claim that is stronger than those of earlier rounds and later waves; the order in a wave is mixed."""
    return round << 32 | 0xFFFFFFFF - (ticket & -wave | ticket * 0x9E3779B1 & wave - 1)


def explore(mesh, start, x, y, mine, cavity, entry, border):
    """Walk around a cavity; return how many triangles it has (0: claimed by others; -1: too many), and edges around it."""
    triangles, edge, depth, count, around = mesh.triangles, start, 0, 1, 0
    cavity[0] = start // 3
    while max(count, around) < MOST:
        twin = triangles.twin[edge // 3, edge % 3]
        t = twin // 3
        if depth > 0 and edge == entry[depth]:  # all that lies behind it is done
            depth, edge = depth - 1, twin
        elif twin >= 0 and triangles.inner[t] > mine:
            return 0, 0
        elif twin >= 0 and in_circle(*corners(mesh, t), x, y):
            if triangles.claim[t] > mine:
                return 0, 0
            depth, edge = depth + 1, twin
            cavity[count], entry[depth], count = t, twin, count + 1
        else:
            border[around], around = edge, around + 1
        edge = edge // 3 * 3 + (edge + 1) % 3
        if depth == 0 and edge == start:
            return count, around
    return -1, 0


def edge_to_split(mesh, border, around, x, y):
    """Return an edge of the square that a point is beyond or too near to, or -1."""
    for k in range(around):
        t, i = border[k] // 3, border[k] % 3
        if mesh.triangles.twin[t, i] < 0:
            a, b = mesh.triangles.corner[t, i], mesh.triangles.corner[t, (i + 1) % 3]
            ax, ay, bx, by = mesh.points.x[a], mesh.points.y[a], mesh.points.x[b], mesh.points.y[b]
            if (bx - ax) * (y - ay) <= (by - ay) * (x - ax) or (ax - x) * (bx - x) + (ay - y) * (by - y) < 0:
                return border[k]
    return -1


@atos.task
def begin(worker: atos.Worker, item, mesh, rounds, wave):
    """Have each triangle of a range looked at, so that the host need not push a million items."""
    for t in worker.split(range(item.triangle, item.edge)):
        worker.push((t, -1, 0), task=plan)


@atos.task
def plan(worker: atos.Worker, item, mesh, rounds, wave):
    """Find where the point for a bad triangle is to be, and claim its cavity and what is around it."""
    t, round, triangles = item.triangle, rounds + worker.round, mesh.triangles
    if worker.rank > 0 or atos.atomic_max(triangles.tried, t, round + 1) > round or not is_bad(*corners(mesh, t)):
        return
    ticket, edge, count, around = atos.atomic_add(mesh.tickets, 0, 1), -1, 0, 0
    mine = claim_of(ticket, round, wave)
    cavity, entry, border = atos.local_array(np.int32, MOST), atos.local_array(np.int32, MOST), atos.local_array(np.int32, MOST)
    if triangles.claim[t] <= mine:
        x, y = point_of(mesh, t, -1)
        count, around = explore(mesh, 3 * t, x, y, mine, cavity, entry, border)
        possible, edge = in_circle(*corners(mesh, t), x, y), edge_to_split(mesh, border, around, x, y)
        if edge >= 0:
            x, y = point_of(mesh, t, edge)
            count, around = explore(mesh, edge, x, y, mine, cavity, entry, border)
            possible = possible and in_circle(*corners(mesh, edge // 3), x, y)
        if count < 0 or not possible:  # the cavity is too large, or the grid too coarse
            atos.atomic_add(mesh.left, 0, 1)
            return
    for k in range(count):
        atos.atomic_max(triangles.inner, cavity[k], mine)
        atos.atomic_max(triangles.claim, cavity[k], mine)
    for k in range(around):
        twin = triangles.twin[border[k] // 3, border[k] % 3]
        if twin >= 0:
            atos.atomic_max(triangles.claim, twin // 3, mine)
    worker.push((t, edge, ticket if count > 0 else -1), task=refine)


@atos.task
def refine(worker: atos.Worker, item, mesh, rounds, wave):
    """Replace a cavity by triangles around its point, if all claims held."""
    t, edge, triangles = item.triangle, item.edge, mesh.triangles
    if worker.rank > 0:
        return
    count, around, x, y, is_open = 0, 0, 0, 0, int(edge >= 0)
    mine, start = claim_of(item.ticket, rounds + worker.round - 1, wave), edge if edge >= 0 else 3 * t
    cavity, entry, border = atos.local_array(np.int32, MOST), atos.local_array(np.int32, MOST), atos.local_array(np.int32, MOST)
    if item.ticket >= 0 and triangles.claim[start // 3] == mine:
        x, y = point_of(mesh, t, edge)
        count, around = explore(mesh, start, x, y, mine, cavity, entry, border)
    new = around - is_open
    point = mesh.points.take() if count > 0 else -1
    first = triangles.take(new - count) if point >= 0 else -1
    if first < 0:
        worker.push((t, -1, 0), task=plan)
        return
    mesh.points.x[point], mesh.points.y[point] = x, y
    for k in range(around):  # before anything is changed
        i = border[k]
        border[k], entry[k] = triangles.corner[i // 3, i % 3], triangles.twin[i // 3, i % 3]
    for k in range(count, new):
        cavity[k] = first + k - count
    for k in range(new):
        i, a, b = cavity[k], border[k + is_open], border[(k + is_open + 1) % around]
        twin, after, before = entry[k + is_open], cavity[(k + 1) % new], cavity[(k + new - 1) % new]
        triangles.corner[i, 0], triangles.corner[i, 1], triangles.corner[i, 2] = a, b, point
        triangles.twin[i, 0], triangles.twin[i, 1], triangles.twin[i, 2] = twin, 3 * after + 2, 3 * before + 1
        if twin >= 0:
            triangles.twin[twin // 3, twin % 3] = 3 * i
        if k >= count:
            triangles.inner[i], triangles.claim[i], triangles.tried[i] = 0, 0, 0
        if is_bad(*corners(mesh, i)):
            worker.push((i, -1, 0), task=plan)
    if is_open:
        triangles.twin[cavity[0], 2] = triangles.twin[cavity[new - 1], 1] = -1
        worker.push((t, -1, 0), task=plan)


def random_points(n, seed=0):
    """Return the corners of the square, and points inside of it."""
    inside = np.random.default_rng(seed).integers(1, SIDE, (n, 2))
    points = np.unique(np.concatenate([[[0, 0], [0, SIDE], [SIDE, 0], [SIDE, SIDE]], inside]), axis=0)
    return points[np.lexsort((points[:, 1], points[:, 0] // (SIDE // math.isqrt(n))))]  # along strips


def triangulated(points, device=None):
    """Return the Delaunay triangulation of points: pools with room for what refinement makes of it, which can grow."""
    found, n = Delaunay(points), 2 * len(points)
    order = np.argsort(found.simplices.min(axis=1))  # as the points
    place = np.append(np.argsort(order), -1)  # -1, where nothing is, stays -1
    corner, beyond = found.simplices[order], place[np.roll(found.neighbors[order], 1, 1)]
    side = np.argmax(corner[beyond] == np.roll(corner, -1, 1)[:, :, None], axis=2)
    pools = atos.Pool([("x", np.int32), ("y", np.int32)], 3 * n, device=device), atos.Pool(TRIANGLE, 6 * n, device=device)
    pools[0].append(x=points[:, 0], y=points[:, 1])
    zeros, twin = np.zeros(len(corner), np.int32), np.where(beyond < 0, -1, 3 * beyond + side)
    pools[1].append(corner=corner, twin=twin, inner=zeros, claim=zeros, tried=zeros)
    return Mesh(*pools, *(atos.zeros(1, dtype=np.int64, device=device) for _ in range(2)))


def refined(mesh, **options):
    """Refine a mesh; return the statistics of the launches, on a CPU one for each part that its caches hold."""
    n, on_cpu, stats = len(mesh.triangles), mesh.left.device.kind == "cpu", []
    size, wave, fetch_size = (1 << 13, 1, 32) if on_cpu else (n, 1 << 17, 1)  # a wave is as many as run at the same time
    queue, tasks = atos.Queue(2 * size, dtype=ITEM, device=mesh.left.device), (begin, plan, refine)
    for first in range(0, n, size):
        rounds, last = int(atos.max(mesh.triangles.tried)), min(first + size, n)
        queue.push(np.array([(t, min(t + RANGE, last), 0) for t in range(first, last, RANGE)], ITEM), task=begin)
        stats.append(queue.launch_thread(tasks, mesh, rounds, wave, barrier=True, fetch_size=fetch_size, **options))
    return atos.LaunchStats.total(stats)


def verify(mesh):
    """Check that a mesh covers the square, that it is conforming and Delaunay; return the smallest angle in degrees."""
    x, y = (values.to_numpy().astype(np.int64) for values in (mesh.points.x, mesh.points.y))
    corner, twin = mesh.triangles.corner.to_numpy(), mesh.triangles.twin.to_numpy().ravel()
    dx, dy = (np.roll(values[corner], -1, 1) - values[corner] for values in (x, y))  # along each edge
    area, lengths = dx[:, 0] * dy[:, 1] - dy[:, 0] * dx[:, 1], np.hypot(dx, dy)
    assert np.all(area > 0)  # counterclockwise
    assert area.sum() == 2 * SIDE**2  # without rounding
    start, end, inner, border = corner.ravel(), np.roll(corner, -1, 1).ravel(), np.flatnonzero(twin >= 0), twin < 0
    assert np.array_equal([twin[twin[inner]], start[twin[inner]]], [inner, end[inner]])
    for along, place in ((dx, x), (dy, y)):  # on two sides of the square
        assert lengths.ravel()[border & (along.ravel() == 0) & (place[start] % SIDE == 0)].sum() == 2 * SIDE
    assert lengths.ravel()[border].sum() == 4 * SIDE
    inner = inner[inner < twin[inner]]
    other = np.roll(corner, 1, 1).ravel()[twin[inner]]  # the corner of the twin's triangle that is opposite
    ax, bx, cx = ((x[corner[inner // 3, k]] - x[other]).astype(object) for k in range(3))  # Python's integers
    ay, by, cy = ((y[corner[inner // 3, k]] - y[other]).astype(object) for k in range(3))
    inside = (ax * ax + ay * ay) * (bx * cy - by * cx) + (bx * bx + by * by) * (cx * ay - cy * ax)
    assert np.all(inside + (cx * cx + cy * cy) * (ax * by - ay * bx) <= 0)
    return np.degrees(np.arcsin(np.min(area / (np.roll(lengths, 1, 1) * lengths).T)))


# %%
# The mesh of random points, before and after. Both are verified.
if __name__ == "__main__":
    from matplotlib import pyplot as plt

    arguments = [] if hasattr(sys, "ps1") else sys.argv[1:]  # in a notebook they are those of the kernel
    mesh, stats = triangulated(random_points(int(arguments[0]) if arguments else 300)), []
    for k in range(2):
        corner, angle = mesh.triangles.corner.to_numpy(), verify(mesh)
        plt.subplot(1, 2, 1 + k, title=f"angles from {angle:.1f} degrees", aspect="equal").axis("off")
        plt.triplot(mesh.points.x.to_numpy(), mesh.points.y.to_numpy(), corner, linewidth=0.3)
        print(f"{len(corner):,} triangles, angles from {angle:.1f} degrees, verified", *stats, sep="\n")
        stats = [refined(mesh)] if k == 0 else []
    plt.show()
