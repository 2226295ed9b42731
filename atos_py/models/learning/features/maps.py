"""Edge, vertex and fold maps: functions of features of the active vertices and their edges, as tasks of one queue.

*Feature-aware mapping*: neighboring threads take neighboring features of one vertex or edge, so that what they read lies side
by side. A team of as many threads as there are features, rounded up to a power of 2 and at most 32, takes an edge or a vertex;
without it one thread takes all features. Edges are balanced over the teams by the scheduler: a vertex is the item of a nested
task. The active vertices are found on the device: a range of vertices pushes those of it.

Source: L. Vaz, "Onyx" (thesis, 2021), chapters 4 to 6.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ....compile.short_traceback import ends_in_task
from ....compile.task import Task
from ....errors import InvalidArgumentError, UnsupportedTypeError
from ....graph.graph import Graph
from ....graph.graph_arrays import check_graph
from ....operators.ranges import mixed_item_dtype, mixed_range_bounds, mixed_ranges, range_items
from ....runtime.launch_options import LaunchOptions, Unpack
from ....runtime.queue import Queue
from ....runtime.stats import LaunchStats
from ....support.not_copied import NotCopied
from ....support.validation import as_dtype, as_host_array, check_bool
from ..feature_gather import RANGES_AT_ONCE, feature_gather, gather_items, team_size
from ..row_lengths import rows_of
from .active_set import ActiveSet, activate, is_active, make_set
from .functions import chain, check_features, check_function, describe_functions

__all__ = ["Maps"]

_VERTICES_PER_ITEM = 512
_VERTICES_OF_WORKER = 16  # of an item whose vertices a worker takes one after the other
_MOST_TASKS = 256  # that are remembered
_Functions = tuple[tuple[Callable[..., Any], bool], ...]


def _team_of(functions: _Functions, k: int, feature_aware: bool) -> tuple[int, bool]:
    """Return the threads of a GPU for a vertex or an edge, and whether those of a vertex are a whole worker instead."""
    if not any(is_together for _, is_together in functions):
        return team_size(k) if feature_aware else 1, False
    return max(team_size(k), 2), k > 32


def _body_name(functions: _Functions, body: Callable[..., Any]) -> Callable[..., Any]:
    body.__name__ = "_and_".join(getattr(function, "__name__", "function").strip("<>") for function, _ in functions)
    return body


@functools.lru_cache(_MOST_TASKS)
def _edge_task(functions: _Functions, k: int, feature_aware: bool) -> tuple[Task, Callable[[int], Any]]:
    """Return the task, and the function that makes its items for so many vertices."""
    threads, _ = _team_of(functions, k, feature_aware)
    alone = threads == 1
    run_all = chain(functions, k, alone)

    def workload(item, indptr, *args):  # type: ignore[no-untyped-def]
        n = indptr.size - 1
        if item >= n:
            first, size = mixed_range_bounds(item, n)
            return size, first
        return indptr[item + 1] - indptr[item], indptr[item]

    def run(worker, item, i, first, indptr, indices, bits, out, counts, data):  # type: ignore[no-untyped-def]
        if alone:
            team, leads = 0, True
        else:
            team = worker.group
            leads = team.rank == 0
        if item >= indptr.size - 1:
            if leads and is_active(bits, first + i):
                worker.push(first + i)
        elif run_all(team, item, indices[first + i], first + i, data) and leads:
            activate(out, counts, indices[first + i], indptr)

    return Task(_body_name(functions, run), workload, threads), mixed_ranges


@functools.lru_cache(_MOST_TASKS)
def _vertex_task(functions: _Functions, k: int, feature_aware: bool) -> tuple[Task, Callable[[int], Any]]:
    threads, of_worker = _team_of(functions, k, feature_aware)
    alone, size = threads == 1, _VERTICES_OF_WORKER if of_worker else _VERTICES_PER_ITEM
    run_all = chain(functions, k, alone)

    def run(worker, item, indptr, bits, out, counts, data):  # type: ignore[no-untyped-def]
        if of_worker:
            team, begin, step, leads = worker, 0, 1, worker.rank == 0
        elif alone:
            team, begin, step, leads = 0, worker.rank, worker.size, True
        else:
            team = worker.group(threads)
            begin, step, leads = team.index, team.count, team.rank == 0
        first = item * size
        for v in range(first + begin, min(first + size, indptr.size - 1), step):
            if is_active(bits, v) and run_all(team, v, data) and leads:
                activate(out, counts, v, indptr)

    return Task(_body_name(functions, run)), functools.partial(range_items, size=size)


class Maps(NotCopied):
    """Maps over the vertices and edges of a graph with vectors of k features.

    Functions are plain functions that tasks can call. One of a vertex is ``function(f, v, data)``, and one of an edge from u to
    v, which has the number `edge`, is ``function(f, u, v, edge, data)``. They run once for each feature ``f < k``, at the same
    time as for others, and may change `data` by atomics. `together` marks a function that is called once by a team of threads.
    What returns true makes v active; a function without a return with a value returns true.

    A map sees all that earlier maps wrote: it returns when it is done.

    Parameters
    ----------
    graph : Graph
    k : int
        Features, from 1 to 128; any number.
    data : Array, number or named tuple of those
        What the functions get last.
    feature_aware : bool
        Whether the threads of a team share the features; otherwise a thread has all of a vertex or an edge.
    **launch_options : LaunchOptions
        Of all launches, such as `num_blocks` or `debug`.

    Attributes
    ----------
    runs : list of LaunchStats
        Of the launches so far.

    Examples
    --------
    >>> from atos_py import features
    >>> def send(f, u, v, edge, data):  # adds the features of u to those of v
    ...     atos.atomic_add(data, (v, f), data[u, f])
    >>> x = atos.asarray(np.array([[1, 2, 3], [0, 0, 0], [0, 0, 0]], np.float32))
    >>> maps = features.Maps(atos.Graph.from_edges([0, 0], [1, 2]), 3, x)
    >>> reached = maps.edge_map(send, active=[0])
    >>> print(x[1:].tolist(), reached.vertices())
    [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]] [1 2]
    """

    _not_copied = "maps have a queue, and are neither copied nor pickled: make others, of a copy of the graph and of the data"

    def __init__(
        self, graph: Graph, k: int, data: Any, *, feature_aware: bool = True, **launch_options: Unpack[LaunchOptions]
    ) -> None:
        check_graph(graph)
        self.graph, self.k, self.data = graph, check_features(k), data
        self.feature_aware, self.options = check_bool("feature_aware", feature_aware), launch_options
        self.runs: list[LaunchStats] = []
        n = graph.num_vertices
        self._queue = Queue(2 * n + 1024, dtype=mixed_item_dtype(n), device=graph.device)
        self._all = ActiveSet(n, graph.device)
        self._all.bits[:] = 0xFFFF_FFFF

    @ends_in_task
    def vertex_map(self, *functions: Any, active: Any = None) -> ActiveSet:
        """Run functions of a vertex, folded, on the active vertices, or on all.

        Parameters
        ----------
        *functions : callable
            See `Maps`; more than one are folded, as `fold_map` says.
        active : ActiveSet or array of vertices, optional

        Returns
        -------
        ActiveSet
            The vertices where the last function returned true for any feature.

        Raises
        ------
        InvalidArgumentError
            If there is no function, or not one of a vertex, or what is active are no vertices.

        Examples
        --------
        >>> from atos_py import features
        >>> def double(f, v, x):
        ...     x[v, f] *= 2
        ...     return x[v, f] > 5
        >>> x = atos.asarray(np.arange(6.0).reshape(3, 2))
        >>> maps = features.Maps(atos.Graph.from_edges([0], [2]), 2, x)
        >>> print(maps.vertex_map(double).vertices(), x[:].tolist())
        [1 2] [[0.0, 2.0], [4.0, 6.0], [8.0, 10.0]]
        """
        return self._run(functions, active, False)

    @ends_in_task
    def edge_map(self, *functions: Any, active: Any = None) -> ActiveSet:
        """Run functions of an edge, folded, on all edges that leave active vertices, or on all.

        Parameters and errors are those of `vertex_map`.

        Returns
        -------
        ActiveSet
            The vertices v to which an edge leads where the last function returned true for any feature.

        Examples
        --------
        >>> from atos_py import features
        >>> x = atos.zeros((3, 2), dtype=np.int64)
        >>> maps = features.Maps(atos.Graph.from_edges([0, 1, 1], [1, 2, 0]), 2, x)
        >>> def count(f, u, v, edge, x):
        ...     atos.atomic_add(x, (v, f), 1)
        >>> print(maps.edge_map(count, active=np.array([1])).vertices(), x[:].tolist())
        [0 2] [[1, 1], [0, 0], [1, 1]]
        """
        return self._run(functions, active, True)

    @ends_in_task
    def fold_map(self, *functions: Any, active: Any = None) -> ActiveSet:
        """Run functions of vertices and of edges in the order given: those of one kind that follow each other as one launch.

        On one vertex or edge they run in this order, each only if the one before returned true there for any feature, without
        a barrier in between: so no function may read what an earlier one of the same launch changes on *other* vertices and
        edges. What one launch makes active is where the next one runs.

        Parameters and errors are those of `vertex_map`.

        Returns
        -------
        ActiveSet
            What the last launch made active.

        Examples
        --------
        >>> from atos_py import features
        >>> def is_odd(f, v, x):
        ...     return v % 2 == 1
        >>> def send(f, u, v, edge, x):
        ...     atos.atomic_add(x, (v, f), u)
        >>> x = atos.zeros((3, 2), dtype=np.int64)
        >>> maps = features.Maps(atos.Graph.from_edges([0, 1, 1], [1, 2, 0]), 2, x)
        >>> print(maps.fold_map(is_odd, send).vertices(), x[:].tolist())
        [0 2] [[1, 1], [0, 0], [1, 1]]
        """
        return self._run(functions, active, None)

    @ends_in_task
    def sum_map(self, term: Callable[..., Any], finish: Callable[..., Any], dtype: Any = np.float32) -> None:
        """Add up a term of the edges of each vertex, for each feature, without atomics: the same sums in every run.

        Parameters
        ----------
        term : callable
            ``term(f, v, u, edge, data)`` of the edge from v to u. It only reads, since it may be called more than once.
        finish : callable
            ``finish(f, v, total, data)``, called once for each vertex and feature.
        dtype : {np.float32, np.float64}
            Of the sums.

        Examples
        --------
        >>> from atos_py import features
        >>> def neighbor(f, v, u, edge, x):
        ...     return x[u, f]
        >>> def store(f, v, total, x):
        ...     x[v, f] = total
        >>> x = atos.asarray(np.array([[0, 0], [1, 2], [3, 4]], np.float32))
        >>> features.Maps(atos.Graph.from_edges([0, 0], [1, 2], num_vertices=3), 2, x).sum_map(neighbor, store)
        >>> print(x[0])
        [4. 6.]
        """
        graph, kind, of_sums = self.graph, self.graph.device.kind, as_dtype(dtype)
        if of_sums not in (np.float32, np.float64):
            raise UnsupportedTypeError(f"dtype must be float32 or float64, not {of_sums}")
        functions = check_function("sum_map", term), check_function("sum_map", finish)
        rows = rows_of(graph)
        task = feature_gather(*functions, self.k, cast(Any, of_sums.type), kind, rows=rows)
        items = gather_items(graph.num_vertices, self.k, kind, rows=rows)
        self._launch(task, items, graph.indptr, graph.indices, self.data)

    def all(self) -> ActiveSet:
        """Return the set of all vertices.

        Examples
        --------
        >>> from atos_py import features
        >>> print(features.Maps(atos.Graph.from_edges([0, 1], [1, 2]), 2, atos.zeros(1)).all().count)
        3
        """
        return self._given(np.arange(self.graph.num_vertices))

    def _run(self, functions: tuple[Any, ...], active: Any, of_edges: bool | None) -> ActiveSet:
        described = describe_functions(functions)
        if of_edges is not None and any(is_of_edges != of_edges for is_of_edges, *_ in described):
            kind, other = ("edge_map", "a vertex") if of_edges else ("vertex_map", "an edge")
            raise InvalidArgumentError(f"{kind} was given a function of {other}; fold_map takes both")
        found = self._all if active is None else active if isinstance(active, ActiveSet) else self._given(active)
        graph, n = self.graph, self.graph.num_vertices
        for is_of_edges, members in itertools.groupby(described, key=lambda each: each[0]):
            run = tuple((function, is_together) for _, function, is_together in members)
            task, make_items = (_edge_task if is_of_edges else _vertex_task)(run, self.k, self.feature_aware)
            csr = (graph.indptr, graph.indices)[: 1 + is_of_edges]
            active, found = found, ActiveSet(n, graph.device)
            # Functions that a team calls have to run by teams of one thread, if threads are not to share features.
            alone = not self.feature_aware and any(is_together for _, is_together in run)
            self._launch(task, make_items(n), *csr, active.bits, found.bits, found._counts, self.data, alone=alone)
        return found

    def _given(self, vertices: Any) -> ActiveSet:
        given, n = as_host_array("active", vertices), self.graph.num_vertices
        if given.ndim != 1 or (given.size and (given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= n)):
            raise InvalidArgumentError(f"active must be vertices, from 0 to {n - 1}, or an ActiveSet (got {vertices!r:.80})")
        return make_set(given.astype(np.int64), np.asarray(self.graph.degrees()), self.graph.device)

    def _launch(self, task: Task, items: Any, *args: Any, alone: bool = False) -> None:
        defaults: dict[str, Any] = {} if task.nested else {"fetch_size": RANGES_AT_ONCE}
        worker = "thread" if alone else "cta"
        try:
            self._queue.push(items)
            self.runs.append(self._queue.launch(task, *args, worker=worker, **{**defaults, **self.options}))
        except BaseException:
            self._queue.clear()  # what is left of this map must not run in the next one
            raise
