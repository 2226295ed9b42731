"""Workloads to be measured: a ready-made algorithm on a graph, or the scheduler alone. Each can be run and verified."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..algorithms.registry import Algorithm
from ..arrays.array import to_host
from ..compile.task import task
from ..core.devices import Device
from ..errors import VerificationError
from ..graph.graph import Graph
from ..runtime.queue import Queue
from ..runtime.stats import LaunchStats

__all__ = ["SCHEDULER", "Workload", "bind_algorithm", "make_scheduler_workload", "vertices_of"]

SCHEDULER = ("tree", "chain")


class Workload(NamedTuple):
    """Something to be measured.

    Attributes
    ----------
    run : callable
        ``run(**options)``, with the algorithm's and the launch's options; returns a `LaunchStats` or something that has
        one as `stats`.
    verify : callable
        ``verify(result, options)`` proves the result of a run with these options right, and returns the numbers to print of it.
    """

    run: Callable[..., Any]
    verify: Callable[[Any, dict[str, Any]], dict[str, Any]]


class _Proved(NamedTuple):
    """A result that was proved right: the options of its run, what is printed and saved of it, and the numbers of its proof."""

    options: dict[str, Any]
    described: dict[str, Any]
    arrays: dict[str, Any]
    numbers: dict[str, Any]

    def is_same(self, options: dict[str, Any], described: dict[str, Any], arrays: dict[str, Any]) -> bool:
        """Whether another result is equal to this one."""
        return (
            (options, described) == (self.options, self.described)
            and arrays.keys() == self.arrays.keys()
            and all(np.array_equal(array, self.arrays[name]) for name, array in arrays.items())
        )


def vertices_of(graph: Graph, given: Any) -> Any:
    """Return the vertices that a user has named, one or a list: by their labels, if the graph has some."""
    if graph.labels is None or given is None:
        return given
    return [graph.vertex_of(label) for label in given] if isinstance(given, list) else graph.vertex_of(given)


def bind_algorithm(algorithm: Algorithm, graph: Graph, source: int | Sequence[int], host: Graph | None = None) -> Workload:
    """Bind an algorithm to a graph.

    A result that equals the one proved before, found with the same options, is right without another proof. Options of runs
    name vertices by their labels, if the graph has some.

    Parameters
    ----------
    algorithm : Algorithm
    graph : Graph
    source : int or sequence of int
        The vertices where it begins, if it takes any.
    host : Graph, optional
        A copy of the graph on the host, for verification.
    """
    checked = named = graph if host is None else host
    if not algorithm.weighted and graph.weights is not None:
        graph, checked = graph._replace(weights=None), checked._replace(weights=None)
    defaults = {**algorithm.defaults, **({"source": source} if algorithm.has_source else {})}

    def renamed(options: dict[str, Any]) -> dict[str, Any]:
        own = {name: algorithm.options[name] for name in options if name in algorithm.options}
        those = [name for name, option in own.items() if option.names_vertices(options[name])]
        return options | {name: vertices_of(named, options[name]) for name in those}

    def run(**options: Any) -> Any:
        return algorithm.run(graph, **defaults | renamed(options))

    proved: list[_Proved] = []

    def verify(result: Any, options: dict[str, Any]) -> dict[str, Any]:
        arrays = {name: to_host(array) for name, array in algorithm.arrays(result).items() if array is not None}
        described = algorithm.describe(result)
        if proved and proved[0].is_same(options, described, arrays):
            return proved[0].numbers
        found = algorithm.verify(checked, result, defaults | renamed(options))
        copies = {name: np.array(array) for name, array in arrays.items()}  # on the CPU, users may write what the result has
        proved[:] = [_Proved(dict(options), described, copies, described if found is None else found)]
        return proved[0].numbers

    return Workload(run, verify)


@task
def step(worker, left):  # type: ignore[no-untyped-def]
    """Push the next of `left` tasks."""
    if left > 0 and worker.rank == 0:
        worker.push(left - 1)


def count_subtrees(size):  # type: ignore[no-untyped-def]
    """Return the number of subtrees."""
    return 2


@task(workload=count_subtrees)
def fork(worker, size, i):  # type: ignore[no-untyped-def]
    """Run a tree of `size` tasks: this one and two halves of the rest, of which iteration i pushes one."""
    half = (size - i) // 2
    if half > 0:
        worker.push(half)


def make_scheduler_workload(shape: str, size: int, device: Device | str | None = None) -> Workload:
    """Make a workload of `size` empty tasks: a "tree", each pushing two, or a "chain", each pushing the next."""
    which, first, capacity = (fork, size, size) if shape == "tree" else (step, size - 1, 1024)
    queue = Queue(capacity, device=device)

    def run(worker: str = "cta", **options: Any) -> LaunchStats:
        if len(queue):  # left over by a launch that failed
            queue.clear()
        queue.push(np.uint32(first))
        return queue.launch(which, worker=worker, **options)

    def verify(stats: LaunchStats, _: dict[str, Any]) -> dict[str, Any]:
        if stats.tasks_run != size:
            raise VerificationError(f"{stats.tasks_run} tasks ran, and not {size}")
        return {}

    return Workload(run, verify)
