"""BFS on a road-like and a scale-free graph, on every device, with every worker and in every schedule, each verified."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..algorithms.bfs import UNREACHED, BFSResult, bfs, verify_bfs
from ..compile.program import WORKERS
from ..core.devices import Device
from ..errors import VerificationError
from ..graph.graph import Graph
from ..graph.spec import graph_of, names_of, source_of
from ..runtime.stats import LaunchStats

__all__ = ["HEADING", "Row", "make_graphs", "measure_rows"]

_FORMAT = "{:16}  {:8}  {:6}  {:20}  {:>9}  {:>11}  {:>10}  {}"
HEADING = _FORMAT.format("graph", "device", "worker", "schedule", "ms", "tasks", "per vertex", "verified")


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    graph : str
    stats : LaunchStats
        Of the faster of two launches.
    per_vertex : float
        Tasks run for each vertex reached: 1 if every vertex was visited once.
    failure : str
        Why the certificate of a result failed; empty if both were right.
    """

    graph: str
    stats: LaunchStats
    per_vertex: float
    failure: str

    def __str__(self) -> str:
        """Return the row, aligned with `HEADING`."""
        stats = self.stats
        cells = (stats.device, stats.worker, stats.schedule, f"{stats.milliseconds:.3f}", f"{stats.tasks_run:,}")
        return _FORMAT.format(self.graph, *cells, f"{self.per_vertex:.2f}", f"NO: {self.failure}" if self.failure else "yes")


def make_graphs(device: Device, specs: Sequence[str] | None, **changes: bool) -> Iterator[tuple[str, Graph, int]]:
    """Make the graphs, with each its name and a source; a road-like and a scale-free one that suit the device unless given.

    Parameters
    ----------
    device : Device
    specs : sequence of str or None
    **changes
        As for `graph_of`.
    """
    specs = specs or (("road:2000", "rmat:20") if device.kind == "cuda" else ("road:400", "rmat:15"))
    for spec, name in zip(specs, names_of(specs), strict=True):
        graph = graph_of(spec, device=device, **changes)
        yield name, graph, source_of(spec, graph)


def measure_rows(
    devices: Sequence[Device],
    specs: Sequence[str] | None = None,
    search: Callable[..., BFSResult] = bfs,
    *,
    changes: Mapping[str, bool] | None = None,
) -> Iterator[Row]:
    """Run everything, a row at a time; `search` takes the place of `bfs` in tests, and `changes` are those of `graph_of`."""
    for device in devices:
        for name, graph, source in make_graphs(device, specs, **(changes or {})):
            for worker, persistent, barrier in itertools.product(WORKERS, (True, False), (False, True)):
                failure = ""
                options = {"worker": worker, "persistent": persistent, "barrier": barrier}
                results = [search(graph, source, **options) for _ in range(2)]  # the first one compiles the task and warms up
                for result in results:
                    try:
                        verify_bfs(graph, source, result.depth)
                    except VerificationError as error:
                        failure = str(error)
                best = min(results, key=lambda result: result.stats.milliseconds)
                reached = int(np.count_nonzero(np.asarray(best.depth) != UNREACHED))
                yield Row(name, best.stats, best.stats.tasks_run / max(reached, 1), failure)
