"""Time programs of ``examples/`` against the same in Numba on the CPU, and print a table in Markdown.

    python benchmarks/programs.py --bodies 1000000 --device cuda

A step of Barnes-Hut sorts the bodies, builds the tree, sums it up, and moves each body. Both begin with the same bodies; the
trees of both are equal, and so are the forces but for rounding. Times of steps are those of calls, with all that they do on the
host.

A sweep of survey propagation renews all surveys once: a round over literals and one over clauses. Its time is that of a launch
of many, divided by their number. Both give the same surveys but for rounding.

Mesh refinement in Numba is in `numba_mesh.py`: the same rounds of claims, and one bad triangle after the other, in one thread.
All begin with the same triangulation, and all results are verified. Times are those of calls.

All use ``prange`` in Numba, but for that of one thread.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

import atos_py as atos

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
import barnes_hut
import mesh_refinement
import survey_propagation
from barnes_hut import AFTER, ANGLE, BEGIN, CHILD, COUNT, END, FEW, ONE, PARENT, SCALE, STEP, ZERO
from numba_mesh import NumbaMesh

fast = numba.njit(error_model="numpy")  # as in tasks, a division by zero is no error
spread, octant_end, pull = (fast(function) for function in (barnes_hut.spread, barnes_hut.octant_end, barnes_hut.pull))


@numba.njit(parallel=True, error_model="numpy")
def number(body: Any, half: Any, key: Any) -> None:
    """Find the Morton number of each body."""
    for b in numba.prange(len(key)):
        found = 0
        for axis in range(3):
            place = np.int64((body[b, axis] / half + ONE) * SCALE)
            found |= spread(min(max(place, 0), (1 << 21) - 1)) << axis
        key[b] = found


@numba.njit(parallel=True, error_model="numpy")
def arrange(order: Any, key: Any, body: Any, speed: Any, to_key: Any, to_body: Any, to_speed: Any) -> None:
    """Put bodies in order."""
    for b in numba.prange(len(order)):
        source = order[b]
        to_key[b] = key[source]
        for k in range(4):
            to_body[b, k], to_speed[b, k] = body[source, k], speed[source, k]


@fast
def shift_of(key: Any, begin: Any, end: Any) -> int:
    """Return by how much to shift the numbers of a cell for its octants."""
    shift = 60
    while shift > 0 and key[begin] >> shift == key[end - 1] >> shift:
        shift -= 3
    return shift


@numba.njit(parallel=True, error_model="numpy")
def build(key: Any, body: Any, total: Any, reach: Any, cell: Any, half: Any) -> int:
    """Build the tree level by level, and sum it up from the last level to the first; return the number of cells."""
    levels, used = [0, 1], 1
    while levels[-2] < levels[-1]:
        first, last = levels[-2], levels[-1]
        for c in numba.prange(first, last):
            begin, end, count = cell[c, BEGIN], cell[c, END], 0
            if end - begin > FEW and key[begin] != key[end - 1]:
                shift = shift_of(key, begin, end)
                while begin < end:
                    begin, count = octant_end(key, begin, end, shift), count + 1
            cell[c, COUNT] = count
        for c in range(first, last):
            cell[c, CHILD] = used if cell[c, COUNT] else 0
            used += cell[c, COUNT]
        for c in numba.prange(first, last):
            begin, end = cell[c, BEGIN], cell[c, END]
            if cell[c, COUNT]:
                shift = shift_of(key, begin, end)
                for child in range(cell[c, CHILD], cell[c, CHILD] + cell[c, COUNT]):
                    stop = octant_end(key, begin, end, shift)
                    cell[child, BEGIN], cell[child, END], cell[child, PARENT] = begin, stop, c
                    cell[child, AFTER] = child + 1 if stop < end else cell[c, AFTER]
                    reach[child] = (half * (1 << shift // 3) / SCALE / ANGLE) ** 2
                    begin = stop
        levels.append(used)
    for level in range(len(levels) - 2, -1, -1):
        for c in numba.prange(levels[level], levels[level + 1]):
            first, count = cell[c, CHILD], cell[c, COUNT]
            x, y, z, mass = 0.0, 0.0, 0.0, 0.0
            for row in range(first, first + count) if count else range(cell[c, BEGIN], cell[c, END]):
                rows = total if count else body
                m = np.float64(rows[row, 3])
                x, y, z, mass = x + m * rows[row, 0], y + m * rows[row, 1], z + m * rows[row, 2], mass + m
            total[c, 0], total[c, 1], total[c, 2], total[c, 3] = x / mass, y / mass, z / mass, mass
    return used


@numba.njit(parallel=True, error_model="numpy")
def attract(body: Any, total: Any, reach: Any, cell: Any, speed: Any, to_body: Any, to_speed: Any, acceleration: Any) -> None:
    """Find what attracts each body, and move it."""
    for b in numba.prange(len(body)):
        x, y, z = body[b, 0], body[b, 1], body[b, 2]
        ax, ay, az, c = ZERO, ZERO, ZERO, cell[0, CHILD]
        while c > 0:
            dx, dy, dz, square, strength = pull(x, y, z, total, c)
            if square > reach[c]:
                ax, ay, az, c = ax + strength * dx, ay + strength * dy, az + strength * dz, cell[c, AFTER]
            elif cell[c, CHILD] > 0:
                c = cell[c, CHILD]
            else:
                for other in range(cell[c, BEGIN], cell[c, END]):
                    dx, dy, dz, square, strength = pull(x, y, z, body, other)
                    ax, ay, az = ax + strength * dx, ay + strength * dy, az + strength * dz
                c = cell[c, AFTER]
        acceleration[b, 0], acceleration[b, 1], acceleration[b, 2] = ax, ay, az
        to_body[b, 3] = body[b, 3]
        for axis in range(3):
            to_speed[b, axis] = speed[b, axis] + STEP * acceleration[b, axis]
            to_body[b, axis] = body[b, axis] + STEP * to_speed[b, axis]


class NumbaBodies:
    """The bodies of `barnes_hut.Bodies`, on the host."""

    def __init__(self, bodies: barnes_hut.Bodies) -> None:
        n = len(bodies.key)
        self.body, self.speed, self.half = bodies.body.to_numpy(), bodies.speed.to_numpy(), bodies.half[0]
        self.key, self.sorted_key = np.empty((2, n), np.int64)
        self.sorted_body, self.old_speed, self.acceleration = (
            np.empty((n, 4), "f4"),
            np.empty((n, 4), "f4"),
            np.empty((n, 3), "f4"),
        )
        self.total, self.reach, self.cell = np.empty((2 * n, 4), "f4"), np.empty(2 * n, "f4"), np.zeros((2 * n, 8), "i4")
        self.cell[0, END] = n

    def step(self) -> int:
        """Do what `Bodies.step` does; return the number of cells."""
        half = self.half = max(self.half, np.abs(self.body[:, :3]).max())
        number(self.body, half, self.key)
        order = np.argsort(self.key, kind="stable")
        arrange(order, self.key, self.body, self.speed, self.sorted_key, self.sorted_body, self.old_speed)
        used = build(self.sorted_key, self.sorted_body, self.total, self.reach, self.cell, half)
        tree = self.sorted_body, self.total, self.reach, self.cell
        attract(*tree, self.old_speed, self.body, self.speed, self.acceleration)
        return int(used)


quiet, pressed, renew = (
    fast(function) for function in (survey_propagation.quiet, survey_propagation.pressed, survey_propagation.renew)
)


@numba.njit(parallel=True, error_model="numpy")
def sweep(formula: Any, state: Any, changes: Any) -> float:
    """Renew all surveys; return the largest change."""
    chances, value = state.quiet, state.value  # prange loses what is stored to a field of a tuple
    for literal in numba.prange(len(chances)):
        if value[literal >> 1] == survey_propagation.FREE:
            chances[literal] = quiet(formula, state, literal)
    for clause in numba.prange(len(state.left)):
        a, b, c = 3 * clause, 3 * clause + 1, 3 * clause + 2
        x, y, z = pressed(formula, state, a), pressed(formula, state, b), pressed(formula, state, c)
        changes[clause] = max(renew(state, a, y * z), renew(state, b, z * x), renew(state, c, x * y))
    return float(changes.max())


def check_angle(angle: float) -> None:
    """Check that a mesh has no angle below 30 degrees."""
    if not angle > 30 - 1e-9:
        raise SystemExit(f"an angle of {angle} degrees is left")


def median_of(runs: list[Callable[[], Any]], repeat: int) -> list[float]:
    """Return the median time of each of several calls, in milliseconds; they take turns, and the first turn compiles."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(repeat + 1):
        for taken, run in zip(times, runs, strict=True):
            begin = time.perf_counter()
            run()
            taken.append((time.perf_counter() - begin) * 1e3)
    return [statistics.median(taken[1:]) for taken in times]


def barnes_hut_row(n: int, device: str | None, repeat: int) -> str:
    """Return the row of a step of Barnes-Hut."""
    bodies = barnes_hut.galaxies(n, device)
    host, some = NumbaBodies(bodies), np.random.default_rng(0).choice(n, min(n, 100))
    kernels = []
    own, other = median_of([lambda: kernels.append(bodies.step()), host.step], repeat)
    error = bodies.verify(some)
    barnes_hut.relative_error(host.sorted_body.astype(np.float64), some, host.acceleration)
    parts = [statistics.median(stats[k].milliseconds for stats in kernels[1:]) for k in range(4)]
    shown = ", ".join(f"{milliseconds:.2f}" for milliseconds in parts)
    name = f"Barnes-Hut, a step of {n:,} bodies, forces to {error:.1%} (number, arrange, tree, forces: {shown})"
    return f"| {name} | {own:.2f} | {other:.1f} | {other / own:.2f} |"


def survey_row(n: int, device: str | None, repeat: int) -> str:
    """Return the row of a sweep of survey propagation, the same as those of Numba."""
    clauses = survey_propagation.random_formula(n)
    solver = survey_propagation.Solver(clauses, n, device)
    formula = survey_propagation.Formula(*(array.to_numpy() for array in solver.formula))
    state = survey_propagation.State(*(array.to_numpy() for array in solver.state))
    changes, milliseconds = np.empty(len(clauses), np.float32), []
    start, times = state.survey.copy(), []
    for _ in range(repeat + 1):
        for survey, quiet in ((solver.state.survey, solver.state.quiet), (state.survey, state.quiet)):
            survey[...], quiet[...] = start, 1
        stats = solver.propagate()
        sweeps = (stats.rounds - 1) // 2
        begin = time.perf_counter()
        for _ in range(sweeps):
            sweep(formula, state, changes)
        times.append((time.perf_counter() - begin) * 1e3 / sweeps)
        milliseconds.append(stats.milliseconds / sweeps)
        if not np.allclose(solver.state.survey.to_numpy(), state.survey, atol=0.05):
            raise SystemExit("the surveys differ")
    own, other = statistics.median(milliseconds[1:]), statistics.median(times[1:])
    return f"| Survey propagation, a sweep of {n:,} variables | {own:.3f} | {other:.2f} | {other / own:.2f} |"


def mesh_rows(n: int, device: str | None, repeat: int) -> str:
    """Return the rows of the refinement of a mesh of `n` triangles."""
    points = mesh_refinement.random_points(n // 2 - 1)
    times: list[list[float]] = [[], [], []]
    for _ in range(repeat + 1):
        mesh = mesh_refinement.triangulated(points, device)
        hosts = NumbaMesh(mesh), NumbaMesh(mesh)
        runs = (lambda m=mesh: mesh_refinement.refined(m), *(lambda h=h, k=k: h.refine(k == 0) for k, h in enumerate(hosts)))
        for taken, run in zip(times, runs, strict=True):
            begin = time.perf_counter()
            run()
            taken.append((time.perf_counter() - begin) * 1e3)
    for angle in (mesh_refinement.verify(mesh), *(host.smallest_angle() for host in hosts)):
        check_angle(angle)
    own, rounds, serial = (statistics.median(taken[1:]) for taken in times)
    name = f"Mesh refinement, {n:,} triangles to {len(mesh.triangles):,}"
    rows = ((f"{name}, Numba with `prange`", rounds), ("the same, Numba in one thread", serial))
    return "\n".join(f"| {row} | {own:.1f} | {other:.1f} | {other / own:.2f} |" for row, other in rows)


def main() -> None:
    """Print a row for each program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bodies", type=int, default=100_000, help="0 leaves the program out")
    parser.add_argument("--variables", type=int, default=100_000, help="of survey propagation; 0 leaves it out")
    parser.add_argument("--triangles", type=int, default=100_000, help="of mesh refinement; 0 leaves it out")
    parser.add_argument("--device", default=None)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    print(f"On {atos.device(given.device)}, Numba with {numba.get_num_threads()} threads; ms, medians of {given.repeat}.\n")
    print("| program | atos_py | Numba | Numba / atos_py |", "| --- | ---: | ---: | ---: |", sep="\n")
    if given.bodies:
        print(barnes_hut_row(given.bodies, given.device, given.repeat), flush=True)
    if given.variables:
        print(survey_row(given.variables, given.device, given.repeat), flush=True)
    if given.triangles:
        print(mesh_rows(given.triangles, given.device, given.repeat), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("ATOS_TIER", "best")  # first launches wait for the kernels that are timed
    main()
