"""BFS on a road-like and a scale-free graph, on every device, with every worker and in every schedule, each verified."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from . import generate
from .algorithms.bfs import UNREACHED, BFSResult, bfs, verify
from .devices import Device
from .errors import VerificationError
from .graph import Graph
from .program import WORKERS
from .stats import LaunchStats

__all__ = ["HEADING", "Row", "graphs_for", "rows"]

_FORMAT = "{:16}  {:8}  {:6}  {:20}  {:>9}  {:>11}  {:>5}  {}"
HEADING = _FORMAT.format("graph", "device", "worker", "schedule", "ms", "tasks", "ratio", "verified")


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    graph : str
    stats : LaunchStats
        Of the faster of two launches.
    ratio : float
        Tasks run for each vertex reached: 1 if every vertex was visited once.
    failure : str
        Why the certificate of a result failed; empty if both were right.
    """

    graph: str
    stats: LaunchStats
    ratio: float
    failure: str

    def __str__(self) -> str:
        """Return the row, aligned with `HEADING`."""
        stats = self.stats
        cells = (stats.device, stats.worker, stats.schedule, f"{stats.milliseconds:.3f}", f"{stats.tasks_run:,}")
        return _FORMAT.format(self.graph, *cells, f"{self.ratio:.2f}", f"NO: {self.failure}" if self.failure else "yes")


def graphs_for(device: Device, side: int | None, scale: int | None) -> Iterator[tuple[str, Graph, int]]:
    """Make the graphs, of a size that suits the device unless given; with each its name and a source.

    Parameters
    ----------
    device : Device
    side : int or None
        Of the road-like graph's grid.
    scale : int or None
        Logarithm of the number of vertices of the scale-free graph.
    """
    large = device.kind == "cuda"
    side = side or (2000 if large else 400)
    scale = scale or (20 if large else 15)
    yield f"road {side} x {side}", generate.road(side, device=device), side // 2 * side + side // 2
    scale_free = generate.rmat(scale, device=device)
    yield f"rmat scale {scale}", scale_free, int(np.argmax(scale_free.degrees()))


def rows(
    devices: Sequence[Device], side: int | None = None, scale: int | None = None, search: Callable[..., BFSResult] = bfs
) -> Iterator[Row]:
    """Run everything, a row at a time; `search` takes the place of `bfs` in tests."""
    for device in devices:
        for name, graph, source in graphs_for(device, side, scale):
            for worker, persistent, barrier in itertools.product(WORKERS, (True, False), (False, True)):
                failure = ""
                options = {"worker": worker, "persistent": persistent, "barrier": barrier}
                results = [search(graph, source, **options) for _ in range(2)]  # the first one compiles the task and warms up
                for result in results:
                    try:
                        verify(graph, source, result.depth)
                    except VerificationError as error:
                        failure = str(error)
                best = min(results, key=lambda result: result.stats.milliseconds)
                reached = int(np.count_nonzero(np.asarray(best.depth) != UNREACHED))
                yield Row(name, best.stats, best.stats.tasks_run / max(reached, 1), failure)
