"""The launches of PageRank: first ranks, residues, handing on until the error is small, and once more from the ranks alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...array import Array, asarray, zeros
from ...errors import InvalidArgumentError
from ...graph import Graph
from ...queue import Queue
from ...stats import LaunchStats
from ...task import Task
from ..launches import Launches
from ..spans import SPAN
from .gather import gather, gather_ranks
from .passes import HUB, finish, measure, set_ranks, set_residues, survey
from .tasks import BLOCK, LIGHT, Step, check, push, sweep

__all__ = ["FINDS", "Solver"]

FINDS = ("sweep", "gather", "push", "idle")
# Edges of a vertex on average, below which none is taken to have so many that one thread is not enough for them.
_MESH = {"cuda": 8, "cpu": 1 << 62}


class Solver:
    """The launches of one call, on one queue."""

    def __init__(
        self,
        graph: Graph,
        damping: float,
        teleport: NDArray[np.float64],
        find: str | None,
        worker: str | None,
        capacity: int | None,
        options: dict[str, Any],
    ) -> None:
        self.graph, self.damping, self.find, self.options = graph, damping, find, options
        self.launches = Launches("pagerank", options)
        self.n, self.device, self.worker = graph.num_vertices, graph.device, worker
        self.undirected = graph.is_symmetric()
        self.even = graph.num_edges < _MESH[self.device.kind] * self.n
        self.blocks = self.n + np.arange(-(-self.n // BLOCK))
        self.spans = np.arange(-(-self.n // SPAN))
        self.teleport = asarray(teleport, device=self.device, readonly=True)
        self.totals = zeros(3, dtype=np.float64, device=self.device)
        self.queued = self.zeros(np.int32) if find in ("push", "idle") else None
        self.cursor = zeros(1, dtype=np.int64, device=self.device) if find == "idle" else None
        most = self.n + len(self.blocks)
        # Everything at once; where vertices are pushed while others run, as much again, since a claimed slot is not free.
        enough = (1 if self.queued is None else 2) * most + 1
        room, limit = (enough, enough) if capacity is None else (capacity, None)
        self.queue = Queue(room, max_capacity=limit, dtype=np.uint32 if most < 2**32 else np.int64, device=self.device)

    def solve(self, start: Array | None, dtype: np.dtype[Any], goal: float) -> tuple[Array, float]:
        """Return ranks and what their error is at most, which is no more than `goal`."""
        rank = self.first_ranks(start, dtype, goal)
        gathers = self.find == "gather" or (self.find is None and self.undirected and (self.even or self.worker is None))
        gathered = gather_ranks(self, rank, goal, start is not None) if gathers else None
        if gathered is not None and self.undirected:
            return rank, gathered
        residue = None if gathers else self.residues(rank, dtype)
        last, find = math.inf, self.find
        while True:
            if residue is not None:
                self.converge(rank, residue, 0.95 * goal, find)
            # The check is of float64 ranks too, so that going on in float64 needs no code that is not compiled by then.
            narrow = rank.dtype != np.float64
            rank = self.widened(rank) if narrow else rank
            residue = self.residues(rank, np.float64)
            error, total, rest = self.error(rank, residue)
            if error <= goal:
                break
            if error > last / 2:
                raise InvalidArgumentError(
                    f"the tolerance is too fine: rounding in float64 leaves an error of up to {error:.1e}, not {goal:.1e}"
                )
            if narrow:  # what float32 could do is done; the little that is left is for sweeps, which made these residues
                find = "sweep"
            else:
                last = error
        result = self.zeros(dtype)
        self.flat(finish, rank, residue, self.teleport, rest, 1 / total if total else 0.0, result)
        return result, error

    def first_ranks(self, start: Array | None, dtype: np.dtype[Any], goal: float) -> Array:
        """Return ranks to start from, in any scale."""
        hubs = zeros(2 + self.graph.num_edges // HUB, dtype=np.int64, device=self.device)
        dangling, *_ = self.flat(survey, self.graph, self.teleport, hubs, self.totals)
        self.hubs = hubs[1 : 1 + int(hubs[0])]
        rank = self.zeros(dtype)
        if start is not None:
            self.flat(set_ranks, self.graph, start, 1.0, 0.0, rank)
        elif self.undirected and goal > 1e-5:
            # Ranks are nearly in proportion to degrees; but not so in each of the small components.
            per_edge = self.damping * (1 - dangling) / max(self.graph.num_edges, 1)
            self.flat(set_ranks, self.graph, self.teleport, 1 - self.damping, per_edge, rank)
        else:
            self.flat(set_ranks, self.graph, self.teleport, 1.0, 0.0, rank)
        return rank

    def widened(self, rank: Array) -> Array:
        """Return ranks in float64."""
        wide = self.zeros(np.float64)
        self.flat(set_ranks, self.graph, rank, 1.0, 0.0, wide)
        return wide

    def residues(self, rank: Array, dtype: DTypeLike) -> Array:
        """Return the residues that belong to ranks."""
        residue = self.zeros(dtype)
        self.flat(set_residues, rank, residue, self.teleport, 1 - self.damping)
        self.hand_on(sweep, rank, residue, initial=True)
        return residue

    def converge(self, rank: Array, residue: Array, goal: float, find: str | None) -> None:
        """Hand residues on until they promise an error of at most `goal`."""
        error, total, _ = self.error(rank, residue)
        omega, slack, rates = 1.0, 4.0, list[float]()
        while error > goal:
            # If no residue were above its limit, their sum would be small enough.
            limit = 0.8 * goal * (1 - self.damping) / self.damping * total
            if find in (None, "sweep", "gather"):
                per_edge = limit / 2 / max(self.graph.num_edges, 1)
                self.hand_on(sweep, rank, residue, omega=omega, limit=limit / 2 / self.n, limit_per_edge=per_edge)
            elif find == "push":
                self.hand_on(push, rank, residue, limit=slack * limit / self.n)
            else:
                self.hand_on(sweep, rank, residue, idle=check, limit=slack * limit / self.n)
            before, (error, total, _) = error, self.error(rank, residue)
            rates.append(max(error / before, 1e-6))
            slack *= min(0.5, 0.7 * goal / max(error, goal))
            omega = self.next_omega(omega, rates)

    def next_omega(self, omega: float, rates: list[float]) -> float:
        """Return how much of a residue a sweep should take at once, given by what factor each sweep changed the error.

        In an undirected graph, Young's theory of over-relaxation tells the best omega from the rate of any other. Sweeps of
        many vertices at once are not what it is about: where it does harm, it is given up, since with 1 the error always falls.
        """
        if not self.undirected or len(rates) < 2:
            return 1.0
        if omega > 1 and rates[-1] > 1 - (1 - self.damping) / 4:
            self.undirected = False
            return 1.0
        if omega > 1 and rates[-1] < omega - 0.85:
            return omega
        square = min((rates[-1] + omega - 1) ** 2 / (rates[-1] * omega**2), self.damping**2)
        return max(omega, 2 / (1 + math.sqrt(1 - square)))

    def error(self, rank: Array, residue: Array) -> tuple[float, float, float]:
        """Return what the error of the ranks plus residues is at most, the sum of the ranks, and that of the residues."""
        total, rest, size = self.flat(measure, rank, residue, self.teleport, 0.0, self.totals)
        if abs(rest) > 0.1 * size:
            total, rest, size = self.flat(measure, rank, residue, self.teleport, rest, self.totals)
        error = self.damping / (1 - self.damping) * (size + abs(rest)) / total if self.n and total > 0 else 0.0
        if self.n and not (total > 0 and error < math.inf):
            raise InvalidArgumentError(f"start must hold finite numbers with a positive sum (their sum became {total})")
        return error, total, rest

    def hand_on(
        self,
        which: Task,
        rank: Array,
        residue: Array,
        *,
        idle: Callable[..., Any] | None = None,
        initial: bool = False,
        omega: float = 1.0,
        limit: float = 0.0,
        limit_per_edge: float = 0.0,
    ) -> None:
        """Launch `sweep` or `push` on all blocks of vertices; or, with an idle function that finds work, on none."""
        number = residue.dtype.type
        step = Step(
            damping=number(self.damping),
            omega=number(omega),
            limit=number(limit),
            limit_per_edge=number(limit_per_edge),
            light=LIGHT[self.device.kind],
            initial=initial,
            whole=bool(self.options.get("barrier")) or not self.options.get("persistent", True),
            cursor=self.cursor,
        )
        marked = which is push or idle is not None
        items = self.blocks if idle is None else self.blocks[:0]
        self.launch(items, which, self.graph, rank, residue, self.queued if marked else None, step, idle=idle)

    def flat(self, which: Task, *args: Any) -> list[float]:
        """Run a task on all spans, and return what it summed up."""
        self.totals[:] = 0
        self.launch(self.spans, which, *args)
        return list(map(float, self.totals.to_numpy()))

    def launch(self, items: NDArray[Any], which: Task, *args: Any, worker: str = "cta", **options: Any) -> None:
        """Push items, and launch a task on them; `worker` is what suits the task, unless another was asked for."""
        self.queue.push(items)
        self.launches.run(self.queue, self.worker or worker, which, *args, usual=options)

    def zeros(self, dtype: DTypeLike) -> Array:
        """Return an array with a place for each vertex."""
        return zeros(self.n, dtype=dtype, device=self.device)

    def stats(self) -> LaunchStats:
        """Return the statistics of all launches in one, with the configuration of those that find the ranks."""
        runs = self.launches.runs
        search = [run for run in runs if run.task in (sweep.name, push.name, gather.name)]
        return LaunchStats.total(runs, task=self.find or "pagerank", like=search[-1] if search else None)
