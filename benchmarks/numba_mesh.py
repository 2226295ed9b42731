"""Delaunay mesh refinement in Numba, for `programs.py`: one triangle after the other, and in rounds of claims with ``prange``.

Both find cavities by the functions of ``examples/mesh_refinement.py``. Numba has no atomics on the CPU, so claims are plain
stores, of which some are lost: who finds all of its claims afterwards wins, and of two that meet at most one does.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import numba
import numpy as np

import atos_py as atos

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
import mesh_refinement

WAVE = 256  # bad triangles that claim at once; of more, more meet
fast = numba.njit(error_model="numpy")  # as in tasks, a division by zero is no error

cavities: dict[str, Any] = {}
for each in ("in_circle", "corners", "is_bad", "center", "point_of", "explore", "edge_to_split"):
    function = getattr(mesh_refinement, each)  # each may call those before it
    cavities[each] = fast(FunctionType(function.__code__, {**vars(mesh_refinement), **cavities}))
corners, is_bad, point_of, explore, edge_to_split, in_circle = (
    cavities[each] for each in ("corners", "is_bad", "point_of", "explore", "edge_to_split", "in_circle")
)


class Points(NamedTuple):
    """The points of a mesh on the host."""

    x: Any
    y: Any


class Triangles(NamedTuple):
    """Its triangles, without claims: zeros that all cavities share."""

    corner: Any
    twin: Any
    inner: Any
    claim: Any


@fast
def refine(mesh: Any, points: Any, count: Any, stack: Any) -> Any:
    """Refine a mesh, one triangle after the other; return how many points and triangles it has."""
    cavity, entry, border = np.empty((3, mesh_refinement.MOST), np.int32)
    triangles, depth = mesh.triangles, count
    stack[:depth] = np.arange(depth)[::-1]
    while depth > 0:
        depth -= 1
        t = stack[depth]
        if not is_bad(*corners(mesh, t)):
            continue
        x, y = point_of(mesh, t, -1)
        if not in_circle(*corners(mesh, t), x, y):
            continue
        members, around = explore(mesh, 3 * t, x, y, 1, cavity, entry, border)
        edge = edge_to_split(mesh, border, around, x, y)
        if edge >= 0:
            x, y = point_of(mesh, t, edge)
            members, around = explore(mesh, edge, x, y, 1, cavity, entry, border)
            stack[depth], depth = t, depth + 1
        is_open = int(edge >= 0)
        mesh.points.x[points], mesh.points.y[points] = x, y
        for k in range(around):
            i = border[k]
            border[k], entry[k] = triangles.corner[i // 3, i % 3], triangles.twin[i // 3, i % 3]
        new = around - is_open
        for k in range(members, new):
            cavity[k], count = count, count + 1
        for k in range(new):
            i, a, b = cavity[k], border[k + is_open], border[(k + is_open + 1) % around]
            twin, after, before = entry[k + is_open], cavity[(k + 1) % new], cavity[(k + new - 1) % new]
            triangles.corner[i, 0], triangles.corner[i, 1], triangles.corner[i, 2] = a, b, points
            triangles.twin[i, 0], triangles.twin[i, 1], triangles.twin[i, 2] = twin, 3 * after + 2, 3 * before + 1
            if twin >= 0:
                triangles.twin[twin // 3, twin % 3] = 3 * i
            if is_bad(*corners(mesh, i)):
                stack[depth], depth = i, depth + 1
        if is_open:
            triangles.twin[cavity[0], 2] = triangles.twin[cavity[new - 1], 1] = -1
        points += 1
    return points, count


@fast
def plan(mesh: Any, k: int, t: int, found: Any, cavity: Any, entry: Any, border: Any, mine: int, claim: Any) -> None:
    """Find the cavity of a bad triangle, and claim it and what is around it.

    A row of `found` is set to how many triangles it has (0: there is none; -1: others have claimed), edges around it, the edge
    to split or -1, and the new point.
    """
    found[k, 0] = 0
    triangles = mesh.triangles
    if not is_bad(*corners(mesh, t)):
        return
    found[k, 0] = -1
    if claim[t] > mine:
        return
    edge = -1
    x, y = point_of(mesh, t, -1)
    if not in_circle(*corners(mesh, t), x, y):
        found[k, 0] = 0
        return
    members, around = explore(mesh, 3 * t, x, y, mine, cavity, entry, border)
    if members == 0:
        return
    edge = edge_to_split(mesh, border, around, x, y)
    if edge >= 0:
        x, y = point_of(mesh, t, edge)
        members, around = explore(mesh, edge, x, y, mine, cavity, entry, border)
    if members == 0:
        return
    found[k, 0], found[k, 1], found[k, 2], found[k, 3], found[k, 4] = members, around, edge, x, y
    for i in range(members):
        if claim[cavity[i]] < mine:
            claim[cavity[i]] = mine
    for i in range(around):
        twin = triangles.twin[border[i] // 3, border[i] % 3]
        if twin >= 0 and claim[twin // 3] < mine:
            claim[twin // 3] = mine


@fast
def holds(mesh: Any, k: int, found: Any, cavity: Any, border: Any, mine: int, claim: Any) -> Any:
    """Return whether all claims held."""
    for i in range(found[k, 0]):
        if claim[cavity[i]] != mine:
            return False
    for i in range(found[k, 1]):
        twin = mesh.triangles.twin[border[i] // 3, border[i] % 3]
        if twin >= 0 and claim[twin // 3] != mine:
            return False
    return found[k, 0] > 0


@fast
def change(
    mesh: Any, t: int, k: int, found: Any, cavity: Any, entry: Any, border: Any, points: Any, count: Any, work: Any
) -> Any:
    """Replace a cavity; returns how many bad triangles are written to work."""
    members, around, edge, x, y = found[k, 0], found[k, 1], found[k, 2], found[k, 3], found[k, 4]
    triangles, is_open, depth = mesh.triangles, int(edge >= 0), 0
    mesh.points.x[points], mesh.points.y[points] = x, y
    for i in range(around):
        e = border[i]
        border[i], entry[i] = triangles.corner[e // 3, e % 3], triangles.twin[e // 3, e % 3]
    new = around - is_open
    for i in range(members, new):
        cavity[i], count = count, count + 1
    for n in range(new):
        i, a, b = cavity[n], border[n + is_open], border[(n + is_open + 1) % around]
        twin, after, before = entry[n + is_open], cavity[(n + 1) % new], cavity[(n + new - 1) % new]
        triangles.corner[i, 0], triangles.corner[i, 1], triangles.corner[i, 2] = a, b, points
        triangles.twin[i, 0], triangles.twin[i, 1], triangles.twin[i, 2] = twin, 3 * after + 2, 3 * before + 1
        if twin >= 0:
            triangles.twin[twin // 3, twin % 3] = 3 * i
        if is_bad(*corners(mesh, i)):
            work[depth], depth = i, depth + 1
    if is_open:
        triangles.twin[cavity[0], 2] = triangles.twin[cavity[new - 1], 1] = -1
        work[depth], depth = t, depth + 1
    return depth


@fast
def mesh_of(x: Any, y: Any, corner: Any, twin: Any, inner: Any, claim: Any) -> Any:
    """Return the mesh of arrays; prange takes no tuples of tuples."""
    return mesh_refinement.Mesh(Points(x, y), Triangles(corner, twin, inner, claim), 0, 0)


@numba.njit(parallel=True, error_model="numpy")
def refine_in_rounds(
    x: Any, y: Any, corner: Any, twin: Any, inner: Any, claim: Any, points: Any, count: Any, stack: Any
) -> Any:
    """Refine a mesh by claims, as the example does; return how many points and triangles it has."""
    depth, base, shape = count, 0, (WAVE, mesh_refinement.MOST)
    stack[:depth] = np.arange(depth)[::-1]
    cavity, entry = np.empty(shape, np.int32), np.empty(shape, np.int32)
    border, work = np.empty(shape, np.int32), np.empty(shape, np.int32)
    found, first, more = np.zeros((WAVE, 5), np.int64), np.zeros((WAVE, 2), np.int64), np.zeros(WAVE, np.int64)
    todo, won = np.empty(WAVE, np.int32), np.zeros(WAVE, np.int8)
    while depth > 0:
        size = min(WAVE, depth)
        depth -= size
        base += WAVE
        todo[:size] = stack[depth : depth + size]
        for k in numba.prange(size):
            mesh = mesh_of(x, y, corner, twin, inner, claim)
            plan(mesh, k, todo[k], found, cavity[k], entry[k], border[k], base - k, claim)
        for k in numba.prange(size):
            mesh = mesh_of(x, y, corner, twin, inner, claim)
            won[k] = holds(mesh, k, found, cavity[k], border[k], base - k, claim)
        for k in range(size):
            if won[k]:
                first[k, 0], first[k, 1] = points, count
                points, count = points + 1, count + found[k, 1] - int(found[k, 2] >= 0) - found[k, 0]
        for k in numba.prange(size):
            if won[k]:
                mesh = mesh_of(x, y, corner, twin, inner, claim)
                more[k] = change(mesh, todo[k], k, found, cavity[k], entry[k], border[k], first[k, 0], first[k, 1], work[k])
        for k in range(size - 1, -1, -1):
            if won[k]:
                for j in range(more[k]):
                    stack[depth], depth = work[k, j], depth + 1
            elif found[k, 0] != 0:
                stack[depth], depth = todo[k], depth + 1
    return points, count


class NumbaMesh:
    """A mesh of `mesh_refinement`, on the host."""

    def __init__(self, mesh: Any) -> None:
        def padded(array: atos.Array) -> Any:
            rows = np.zeros((8 * size, *array.shape[1:]), array.dtype)
            rows[: len(array)] = array.to_numpy()
            return rows

        self.size = size = len(mesh.triangles)
        self.points, triangles = len(mesh.points), mesh.triangles
        arrays = (padded(array) for array in (triangles.corner, triangles.twin, triangles.inner, triangles.claim))
        self.mesh = mesh_refinement.Mesh(Points(padded(mesh.points.x), padded(mesh.points.y)), Triangles(*arrays), 0, 0)
        self.stack = np.empty(64 * size, np.int32)

    def refine(self, in_rounds: bool) -> None:
        """Do what `mesh_refinement.refined` does."""
        points, triangles = self.mesh.points, self.mesh.triangles
        if in_rounds:
            self.points, self.size = refine_in_rounds(*points, *triangles, self.points, self.size, self.stack)
        else:
            self.points, self.size = refine(self.mesh, self.points, self.size, self.stack)

    def smallest_angle(self) -> Any:
        """Verify the mesh, as one in pools; return its smallest angle in degrees."""
        pools = atos.Pool([("x", "i4"), ("y", "i4")], 1, device="cpu"), atos.Pool(mesh_refinement.TRIANGLE, 1, device="cpu")
        points, triangles, none = self.mesh.points, self.mesh.triangles, np.zeros(self.size, np.int32)
        pools[0].append(x=points.x[: self.points], y=points.y[: self.points])
        corner, twin = triangles.corner[: self.size], triangles.twin[: self.size]
        pools[1].append(corner=corner, twin=twin, inner=none, claim=none, tried=none)
        return mesh_refinement.verify(mesh_refinement.Mesh(*pools, None, None))
