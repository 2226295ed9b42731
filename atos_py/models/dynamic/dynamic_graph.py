"""A graph whose edges change: rows with room to grow, edited on their device in batches."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ...arrays.array import Array, asarray, empty, zeros
from ...arrays.compute import compute
from ...arrays.with_cupy import on_gpu
from ...compile.task import Task
from ...core.devices import Device
from ...core.devices import device as device_of
from ...errors import InvalidArgumentError, UnsupportedTypeError
from ...graph.csr import indptr_dtype
from ...graph.graph import Graph
from ...graph.graph_arrays import check_graph
from ...graph.symmetry import remember_symmetric
from ...graph.weights import weight_dtype
from ...operators.ranges import range_items
from ...runtime.queue import Queue
from ...support.host_memory import host_memory_for
from ...support.shown import Shown
from ...support.validation import check_bool, check_int
from .row_deletion import DELETION, Deletion
from .row_edits import (
    LEAST_ROOM,
    DynamicRows,
    Insertion,
    Packing,
    RoomTable,
    end_insertion_round,
    insertion,
    num_store_items,
    pack_rows,
    take_back,
)
from .row_keys import make_keys, sort_by_digit, sort_keys
from .row_lists import AT, EDGES_PER_ITEM, make_state, num_row_items

__all__ = ["DynamicGraph"]

_MOST_EDGES = 2**31 - 1  # in a row, so that its degree fits int32
_CAPACITY = 8192  # of queues: four times what a round pushes


class Follower(Protocol):
    """A result that is kept up to date with the edges of a graph.

    It is told of edits after them, by their sources and targets; if the graph is undirected, each edge goes in both directions.
    An edge may be there more than once, or, of those deleted, not have been in the graph.
    """

    def _inserted(self, sources: Array, targets: Array) -> None:
        """Take account of edges that are in the graph now."""

    def _deleted(self, sources: Array, targets: Array) -> None:
        """Take account of edges that are in the graph no more."""


class DynamicGraph(Shown):
    """A graph with a fixed number of vertices, whose edges are inserted and deleted in batches, on its device.

    The edges of a vertex lie in a row with room for more, so that a batch takes time in proportion to its own size and that of
    the rows that it deletes from. Tasks walk `rows`. `DynamicBFS` and `DynamicComponents` are results that are kept up to date.

    Parameters
    ----------
    graph : Graph or int
        The graph to begin with, which is copied; or how many vertices it has, if it has no edges yet.
    undirected : bool
        Whether each edit is made in both directions. A graph to begin with has to have each edge in both then.
    weights : dtype, optional
        Of the weights that edges have, if the graph begins without edges: integers or floats, kept in 32 or 64 bits as those of
        a `Graph`. Otherwise the weights of `graph` say that.
    device : Device or str, optional
        Where the graph is; that of `graph` unless given, or the best device there is.

    Attributes
    ----------
    num_vertices, num_edges : int
        An undirected edge counts twice, unless it is a loop.
    undirected : bool
    device : Device

    Raises
    ------
    InvalidArgumentError
        If the graph is to be undirected, and some edge has no reverse.

    Notes
    -----
    *Edits from tasks.* A task that finds edges to insert or to delete pushes them as records (source, target) into another
    queue that it gets as an argument. After the launch its items are a batch (`Queue.peek`). So a task never meets a row that
    is half edited.

    *Copies.* A copy, or a graph from a pickle, has rows of its own, and nothing follows it but what is copied together with it.

    Examples
    --------
    >>> graph = atos.DynamicGraph(4, undirected=True)
    >>> graph.insert_edges([0, 1], [1, 2])
    >>> graph
    DynamicGraph(4 vertices, 4 directed edges, undirected, no weights, on cpu)
    >>> graph.delete_edges([2], [1])
    2
    >>> graph.to_graph()
    Graph(4 vertices, 2 directed edges, no weights, on cpu)
    """

    @host_memory_for("atos.DynamicGraph")
    def __init__(
        self,
        graph: Graph | int,
        *,
        undirected: bool = False,
        weights: Any = None,
        device: Device | str | None = None,
    ) -> None:
        self.undirected = check_bool("undirected", undirected)
        if isinstance(graph, Graph):
            check_graph(graph)
            if weights is not None:
                raise InvalidArgumentError("weights= is for a graph that begins without edges; those of the graph stay")
            if self.undirected and not graph.is_symmetric():
                raise InvalidArgumentError("some edge of the graph has no reverse; pass graph.to_symmetric()")
            given = graph if device is None else graph.to(device)
        else:
            n = check_int("graph, a Graph or the number of vertices,", graph, 0, 2**32 - 1)
            kind = None if weights is None else np.zeros(0, weight_dtype(weights))
            given = Graph.from_csr(np.zeros(n + 1, np.int32), np.zeros(0, np.uint32), kind, device=device_of(device))
        self.device, self.num_vertices, self.num_edges = given.device, given.num_vertices, given.num_edges
        self._library = given.library
        self._queues: dict[tuple[Task, ...], Queue] = {}
        self._followers: list[weakref.ref[Follower]] = []
        self._csr: Graph | None = given
        start, room = compute(lambda xp, ends: (ends[:-1].astype(np.int64), xp.diff(ends).astype(np.int64)), given.indptr)
        (degree,) = compute(lambda xp, room: (room.astype(np.int32),), room)
        self._rows = DynamicRows(start, degree, given.indices, given.weights)
        self._table = RoomTable(room, None, given.num_edges)
        self._grow()

    @property
    def rows(self) -> DynamicRows:
        """Its arrays, read-only, as an argument of launches: until the next edit, since they may be others then."""
        return DynamicRows(*(None if each is None else asarray(each, readonly=True) for each in self._rows))  # type: ignore[arg-type]

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the edges as they are now, in rows of their own."""
        return _remade, (self.to_graph(), self.undirected)

    def __repr__(self) -> str:
        edges = f"{self.num_edges:,} directed edges{', undirected' * self.undirected}"
        has = "no" if self._rows.weights is None else self._rows.weights.dtype
        return f"DynamicGraph({self.num_vertices:,} vertices, {edges}, {has} weights, on {self.device})"

    def _shown(self) -> dict[str, object]:
        weights = "none" if self._rows.weights is None else self._rows.weights.dtype
        edges = f"{self.num_edges:,}{', both directions of each edge' * self.undirected}"
        return {"vertices": f"{self.num_vertices:,}", "directed edges": edges, "weights": weights, "device": self.device}

    @host_memory_for("DynamicGraph.insert_edges")
    def insert_edges(self, sources: ArrayLike, targets: ArrayLike, weights: ArrayLike | None = None) -> None:
        """Insert edges ``sources[i] -> targets[i]``; if the graph is undirected, the reverse of each that is no loop as well.

        An edge that is there already gets a parallel one, also if both are in the batch.

        Parameters
        ----------
        sources, targets : array of int, of the same length
            On the host, or on the device of the graph.
        weights : array of numbers, of the same length, optional
            If the graph has weights, and only then. They are converted to their type.

        Raises
        ------
        InvalidArgumentError
            If there is no such vertex, the lengths differ, weights are missing or too many, or one is NaN or no number of the
            graph's type.
        UnsupportedTypeError
            If vertices are no integers, or weights no numbers.

        Examples
        --------
        >>> graph = atos.DynamicGraph(3, weights=np.float32)
        >>> graph.insert_edges([0, 0], [1, 2], [0.5, 2])
        >>> print(graph.num_edges, graph.degrees())
        2 [2 0 0]
        """
        batch, values = self._batch(sources, targets), self._batch_weights(weights)
        count = batch[0].size
        if values is not None and values.size != count:
            raise InvalidArgumentError(f"there are {count} edges, but weights of shape {values.shape}")
        if not count:
            return
        both, state = int(self.undirected), make_state(self.device)
        places = zeros((1 + both) * count, dtype=np.int32, device=self.device)
        full = empty(min(places.size, self.num_vertices), dtype=np.uint32, device=self.device)
        most = _MOST_EDGES - self.num_edges
        edit = Insertion(*batch, values, both, most, places, full, self._rows, self._table)
        try:
            self._run(insertion, range_items(count, EDGES_PER_ITEM), state, edit, each_round=end_insertion_round)
            found = state.to_numpy()
            if found[AT.bad]:
                self._as_ids(*batch)  # raises
            added = places.size - both * int(found[AT.found])
            if added > most:
                raise InvalidArgumentError(
                    f"a dynamic graph has at most {_MOST_EDGES:,} edges (got {self.num_edges + added:,})"
                )
            if int(self._table.end[0]) > self._table.capacity:
                self._grow()
                edit = edit._replace(rows=self._rows, table=self._table)
                items, rest = range(num_store_items(count)), insertion[-1:]
                self._run(insertion, items, state, edit, begin_with=rest, each_round=end_insertion_round)
        except BaseException:  # nothing is inserted
            self._queue_of(insertion).clear()
            self._run((take_back,), range_items(count, EDGES_PER_ITEM), edit)
            raise
        self.num_edges += added
        self._csr = None
        for follower in self._alive():
            follower._inserted(*batch)

    @host_memory_for("DynamicGraph.delete_edges")
    def delete_edges(self, sources: ArrayLike, targets: ArrayLike) -> int:
        """Delete the edges from ``sources[i]`` to ``targets[i]``, all parallel ones; if undirected, their reverses as well.

        Parameters
        ----------
        sources, targets : array of int, of the same length
            On the host, or on the device of the graph. Pairs without an edge are left out.

        Returns
        -------
        int
            By how much `num_edges` went down.

        Raises
        ------
        InvalidArgumentError
            If there is no such vertex, or the lengths differ.
        UnsupportedTypeError
            If vertices are no integers.

        Examples
        --------
        >>> graph = atos.DynamicGraph(atos.Graph.from_edges([0, 0, 1], [1, 2, 2]))
        >>> graph.delete_edges([0, 1], [1, 0])
        1
        """
        batch = self._batch(sources, targets)
        if not batch[0].size:
            return 0
        both, count, state = int(self.undirected), batch[0].size, make_state(self.device)
        keys = empty((1 + both) * count, dtype=np.uint64, device=self.device)
        items = range_items(count, EDGES_PER_ITEM)
        self._run((make_keys,), items, state, *batch, both, self.num_vertices, keys)
        if int(state[AT.bad]):
            self._as_ids(*batch)  # raises
        firsts = empty(min(keys.size, self.num_vertices), dtype=np.uint32, device=self.device)
        if self.device.kind == "cuda":
            on_gpu(lambda cupy, values: values.sort(), keys)
        else:
            sort_keys(keys, self.num_vertices, self._queue_of((sort_by_digit,)))
        # Loads of read-only arguments may hit the L1 cache; those of others go to the L2 cache.
        keys, room = asarray(keys, readonly=True), asarray(self._table.room, readonly=True)
        edit = Deletion(keys, firsts, self._rows._replace(start=self.rows.start), room)
        tasks, end_round, worker = DELETION[self.device.kind]
        self._run(tasks, range_items(keys.size, EDGES_PER_ITEM), state, edit, each_round=end_round, worker=worker)
        deleted = int(state[AT.found])
        if deleted:
            self.num_edges -= deleted
            self._csr = None
            for follower in self._alive():
                follower._deleted(*batch)
        return deleted

    @host_memory_for("DynamicGraph.degrees")
    def degrees(self) -> Any:
        """Return the number of edges that leave each vertex, as a NumPy array.

        Examples
        --------
        >>> atos.DynamicGraph(atos.Graph.from_edges([0, 0, 1], [1, 2, 2])).degrees()
        array([2, 1, 0], dtype=int32)
        """
        return self._rows.degree.to_numpy()

    @host_memory_for("DynamicGraph.to_graph")
    def to_graph(self) -> Graph:
        """Return the graph as it is now, for all that takes a `Graph`; made on its device, and kept until the next edit.

        The order of a vertex's neighbors is that of its row, which for edges of one batch is not defined.

        Examples
        --------
        >>> graph = atos.DynamicGraph(3)
        >>> graph.insert_edges([2], [0])
        >>> atos.bfs(graph.to_graph(), 2).depth.to_numpy()
        array([         1, 4294967295,          0], dtype=uint32)
        """
        if self._csr is None:
            kind = indptr_dtype(self.num_edges)
            (indptr,) = compute(lambda xp, degree: (_offsets(xp, degree, kind),), self._rows.degree)
            rows = indptr, *self._packed(indptr, self.num_edges)
            self._csr = Graph(*(None if part is None else asarray(part, readonly=True) for part in rows))  # type: ignore[arg-type]
            if self.undirected:  # as all edits keep it
                remember_symmetric(self._csr.indptr, self._csr.indices)
            self._csr.indices.library = self._library
        return self._csr

    def _follow(self, follower: Follower) -> None:
        """Tell a result of every batch of edits from now on, as long as it lives."""
        self._followers.append(weakref.ref(follower))

    def _alive(self) -> list[Follower]:
        self._followers = [reference for reference in self._followers if reference() is not None]
        return [follower for reference in self._followers if (follower := reference()) is not None]

    def _batch(self, *ends: Any) -> tuple[Array, Array]:
        """Return sources and targets as uint32 on the device of the graph."""
        sources, targets = (
            asarray(np.zeros(0, np.uint32) if isinstance(each, (list, tuple)) and not each else each, device=self.device)
            for each in ends
        )
        for name, each in (("sources", sources), ("targets", targets)):
            if each.ndim != 1 or each.shape != sources.shape:
                raise InvalidArgumentError(
                    f"sources and targets are one-dimensional and as long as each other (got {sources.shape}, {targets.shape})"
                )
            if each.dtype.kind not in "iu":
                raise UnsupportedTypeError(f"{name} must be integers (got {each.dtype})")
        if sources.dtype == targets.dtype == np.uint32:  # the tasks find ends that are no vertices
            return sources, targets
        return self._as_ids(sources, targets)

    def _as_ids(self, sources: Array, targets: Array) -> tuple[Array, Array]:
        """Return ids of vertices as uint32, or raise the error that names one that is none."""
        n = self.num_vertices
        made = compute(lambda xp, u, v: (_as_ids("sources", u, n), _as_ids("targets", v, n)), sources, targets)
        return made[0], made[1]

    def _batch_weights(self, weights: Any) -> Array | None:
        has = self._rows.weights
        if (weights is None) != (has is None):
            is_missing = weights is None
            raise InvalidArgumentError(
                f"the graph has {'weights, but the edges have none' if is_missing else 'no weights, but the edges have some'};"
                f" {'pass weights=, one for each' if is_missing else 'leave weights out, or make the graph with them'}"
            )
        if has is None:
            return None
        if isinstance(weights, (list, tuple)) and not weights:
            weights = np.zeros(0, has.dtype)
        is_half = isinstance(weights, np.ndarray) and weights.dtype == np.float16  # which arrays do not hold
        given = asarray(weights, dtype=np.float32 if is_half else None, device=self.device)
        if given.dtype.kind not in "biuf":
            raise UnsupportedTypeError(f"weights must be numbers (got {given.dtype})")
        kind = has.dtype
        return compute(lambda xp, values: (_as_weights(xp, values, kind),), given)[0]

    def _grow(self) -> None:
        """Move all rows to larger arrays, in which each has room for its edges, those not stored yet included, and for more."""
        room, start, end = compute(_spread, self._rows.degree)
        capacity = int(end[0]) + max(int(end[0]) // 4, 1024)
        indices, weights = self._packed(start, capacity)
        self._rows = DynamicRows(start, self._rows.degree, indices, weights)
        self._table = RoomTable(room, end, capacity)

    def _packed(self, start: Array, size: int) -> tuple[Array, Array | None]:
        """Return the edges of all rows in new arrays, where they begin at other places."""
        indices = empty(size, dtype=np.uint32, device=self.device)
        values = self._rows.weights
        weights = None if values is None else empty(size, dtype=values.dtype, device=self.device)
        n, packing = self.num_vertices, Packing(self._rows, self._table.room, start, indices, weights)
        self._run((pack_rows,), range(num_row_items(n)), make_state(self.device, n), packing)
        return indices, weights

    def _queue_of(self, tasks: tuple[Task, ...]) -> Queue:
        """Return the queue of some tasks: their own, since a launch of other tasks changes how a queue stores items."""
        if tasks not in self._queues:
            self._queues[tasks] = Queue(_CAPACITY, device=self.device)
        return self._queues[tasks]

    def _run(
        self,
        tasks: tuple[Task, ...],
        items: Any,
        *args: Any,
        begin_with: Sequence[Task] = (),
        each_round: Any = None,
        worker: Literal["thread", "cta"] = "cta",
    ) -> None:
        """Run tasks, in rounds if there is a function between rounds. Those to begin with, or the first one, get the items."""
        queue = self._queue_of(tasks)
        if len(tasks) > 1:
            queue._prepare_kinds(tasks)
        for each in begin_with or tasks[:1]:
            queue.push(items, task=each)
        queue.launch(tasks, *args, worker=worker, barrier=each_round is not None, each_round=each_round)


def _remade(graph: Graph, undirected: bool) -> DynamicGraph:
    """Return the graph that was copied or pickled."""
    if undirected:  # as all edits keep it
        remember_symmetric(graph.indptr, graph.indices)
    return DynamicGraph(graph, undirected=undirected)


def _as_ids(name: str, ids: Any, n: int) -> Any:
    """Return ids of vertices as uint32, or raise; for `compute`."""
    if ids.size and (int(ids.max()) >= n or (ids.dtype.kind == "i" and int(ids.min()) < 0)):
        at = int(ids.argmax()) if int(ids.max()) >= n else int(ids.argmin())
        raise InvalidArgumentError(f"{name}[{at}] is {int(ids[at])}, but the graph has vertices 0 to {n - 1}")
    return ids.astype(np.uint32, copy=False)


def _as_weights(xp: Any, values: Any, kind: np.dtype[Any]) -> Any:
    """Return weights in the type of the graph's, or raise where it cannot hold one or one is NaN; for `compute`."""
    with np.errstate(over="ignore"):
        made = values.astype(kind)
    if values.dtype.kind == "f" and bool(xp.isnan(values).any()):
        raise InvalidArgumentError("a weight is NaN; give every edge a number")
    if kind.kind != "f" and not bool((made == values).all()):
        raise InvalidArgumentError(f"some weight is no whole number of {kind}, which the weights of the graph are")
    if kind.kind == "f" and bool((xp.isinf(made) & ~xp.isinf(values)).any()):
        raise InvalidArgumentError(f"some weight is as large as {abs(values).max()}, which {kind} cannot hold")
    return made


def _offsets(xp: Any, counts: Any, kind: np.dtype[Any]) -> Any:
    """Return where rows of these lengths begin, and the end of the last; for `compute`."""
    offsets = xp.zeros(counts.size + 1, kind)
    offsets[1:] = xp.cumsum(counts, dtype=kind)
    return offsets


def _spread(xp: Any, degree: Any) -> Any:
    """Return the room of each row, where it begins, and the end of all; for `compute`."""
    wanted = degree.astype(np.int64)
    room = wanted + (wanted >> 1) + LEAST_ROOM
    offsets = _offsets(xp, room, np.dtype(np.int64))
    return room, offsets[:-1].copy(), offsets[-1:].copy()
