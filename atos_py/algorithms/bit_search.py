"""Breadth-first searches from many sources at once: a word of bits for each vertex says which of them have reached it.

One pass over the edges of a vertex serves all sources that reach it at the same level, 64 in a word. On a GPU a vertex has up
to four words, for 256 sources. A word of a vertex is a *place*: the vertex times the number of words, plus the word.

The search proceeds level by level. What may be new at a level are *candidates*, of which there are two arrays: those of the
level, and those of the next one. A place is *settled* when its level is run, by one thread: the bits that are new are added to
those seen, and noted for the result. So no two threads write to the same place. A level *pushes* from places with new bits, by
an atomic OR of the neighbor's candidates, and who finds none there lists the neighbor. Or, where the frontier has many edges,
each place that some source has not reached *pulls* the candidates of its neighbors, until none are missing. A pull sees bits of
a neighbor from the level before, too. These are in the place's own word, settled just before. A level is a round of one launch,
whatever direction it has, and one more lists the frontier after the last pull.

Sources: Then et al., "The more the merrier: efficient multi-source graph traversal", VLDB 2014; Beamer, Asanović and Patterson,
"Direction-optimizing breadth-first search", SC 2012.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays.array import Array, asarray, empty
from ..arrays.memory import clear_bytes
from ..arrays.record import places
from ..compile.atomics import atomic_add, atomic_or_
from ..compile.cached_load import load_cached
from ..compile.task import task
from ..graph.graph import Graph
from ..graph.graph_arrays import GraphArrays
from ..operators.edge_map import THREAD_MAX_DEGREE
from ..operators.range_takers import ask_for_range, fit_takers, plan_takers
from ..operators.ranges import range_items
from ..operators.reductions import NUM_PARTIAL_SUMS
from ..operators.row_map import by_groups
from ..runtime.launch_options import LaunchOptions
from ..runtime.queue import Queue
from ..runtime.stats import LaunchStats
from .arguments import check_no_each_round
from .bit_notes import (
    WORD,
    BitNotes,
    add_up,
    forget_reached,
    note_bound,
    note_by_source,
    note_each,
    note_farthest,
    note_last,
)
from .kept_launches import KeptQueue, take_queue
from .launch_sequence import LaunchSequence

__all__ = ["MOST_LEVELS", "BitSearches"]

MOST_LEVELS = 2**32 - 2  # below the distance that says that there is no path
#: Log2 of the most words of a vertex. On a CPU a cache line has room for eight vertices of one word.
_MOST_LOG_WORDS = {"cpu": 0, "cuda": 2}
#: An edge of the frontier that is pushed along takes so many times as long as one that is pulled along.
ALPHA = 3
_DENSE = 6  # edges to a vertex from which on a level may pull
#: Whether the threads of a warp write distances of neighboring vertices together, source by source.
_BY_SOURCE = {"cpu": None, "cuda": 1}
_GROUP = 32
PUSHES, PULLS, LISTS = 0, 1, 2  # what a round does


class SearchState(NamedTuple):
    """Words of the state of a search (`arrays.record`)."""

    level: int = 1
    mode: int = 1
    complete: int = 1  # edges of the places that all sources have reached
    taken: int = 1  # ranges of places that are taken in this round
    size: int = 1  # places of a range
    sums: int = NUM_PARTIAL_SUMS  # edges and places of the next level, a sum that is spread


AT = places(SearchState)


class BitSearch(NamedTuple):
    """Arrays and numbers of a search, the last argument of its tasks."""

    seen: Array  # the bits of each place
    candidates: Array  # of levels of even number, and behind them of the others
    lanes: Array  # for each word the bits that stand for a source
    state: Array
    log_words: int
    last_word: int  # words of a vertex, less one
    limit: int  # the largest level
    alone: int  # edges of a vertex that one thread looks at
    takers: int  # items that take ranges, as planned
    notes: BitNotes


def begin_of(level, s):  # type: ignore[no-untyped-def]
    """Return where the candidates of a level begin."""
    return (level & 1) * s.seen.size


def settle(place, level, s):  # type: ignore[no-untyped-def]
    """Return the new bits of a place, which are seen from now on."""
    seen = s.seen[place]
    fresh = s.candidates[begin_of(level, s) + place] & ~seen
    if fresh != 0:
        s.seen[place] = seen | fresh  # race: who reads the bits before offers some again, which are not fresh then
        add_up(place, fresh, level, s.notes.sums, s.notes.inverse)
        note_last(place, level, s.notes.last)
        note_farthest(place, fresh, level, s, s.notes.farthest)
        note_bound(place, fresh, level, s, s.notes.bound)
    return fresh


@task
def begin(worker, k, sources, graph, back, s):  # type: ignore[no-untyped-def]
    """Set the bit of a source."""
    if worker.rank == 0:
        lane = np.int64(sources[1, k])
        place = (np.int64(sources[0, k]) << s.log_words) | (lane >> 6)
        if atomic_or_(s.candidates, place, np.uint64(1) << (lane & (WORD - 1))) == 0:
            worker.push(place, task=expand)


def is_pulled(back, state):  # type: ignore[no-untyped-def]
    """Whether this level pulls, so that what was listed is not needed."""
    if back is None:
        return False
    return state[AT.mode] == PULLS


def count_found(u, s, graph, back):  # type: ignore[no-untyped-def]
    """Add up the edges of the next level, if it may pull."""
    if back is not None:
        v = u >> s.log_words
        edges = np.int64(graph.indptr[v + 1]) - np.int64(graph.indptr[v])
        atomic_add(s.state, AT.sums + u % NUM_PARTIAL_SUMS, edges + 1)


def out_edges(place, sources, graph, back, s):  # type: ignore[no-untyped-def]
    """Settle a place; return how many edges its new bits go along, the first one, the bits, and the level."""
    level, fresh = s.state[AT.level], np.uint64(0)
    first, count = np.int64(graph.indptr[place >> s.log_words]), np.int64(0)
    if not is_pulled(back, s.state):
        fresh = settle(place, level, s)
        s.candidates[begin_of(level, s) + place] = 0
        note_each(place, fresh, level, s, s.notes.distance)
        if fresh != 0 and level < s.limit:
            count = np.int64(graph.indptr[(place >> s.log_words) + 1]) - first
    return count, first, fresh, level


@task(workload=out_edges)
def expand(worker, place, i, first, fresh, level, sources, graph, back, s):  # type: ignore[no-untyped-def]
    """Push the new bits of a place along an edge, as far as the neighbor has not seen them."""
    u = (np.int64(graph.indices[first + i]) << s.log_words) | (place & s.last_word)
    wanted = fresh & ~load_cached(s.seen, u)
    if wanted != 0:
        at = begin_of(level + 1, s) + u
        wanted &= ~s.candidates[at]
        if wanted != 0 and atomic_or_(s.candidates, at, wanted) == 0:
            count_found(u, s, graph, back)
            worker.push(u, task=expand)


def missing_of(place, s):  # type: ignore[no-untyped-def]
    """Return the bits of the sources that have not reached a place."""
    return s.lanes[place & s.last_word] & ~s.seen[place]


def gather(edge, last, step, word, missing, base, back, s):  # type: ignore[no-untyped-def]
    """Return what neighbors have of the bits that are missing; at least as much as all of them, or all that are missing.

    Four edges at a time, since a GPU then has four loads under way at once. The last edge may be looked at again.
    """
    found = np.uint64(0)
    while edge < last and missing & ~found != 0:
        end = last - 1
        a, b = back.indices[edge], back.indices[min(edge + step, end)]
        c, d = back.indices[min(edge + 2 * step, end)], back.indices[min(edge + 3 * step, end)]
        bits_a = load_cached(s.candidates, base + (np.int64(a) << s.log_words) + word)
        bits_b = load_cached(s.candidates, base + (np.int64(b) << s.log_words) + word)
        bits_c = load_cached(s.candidates, base + (np.int64(c) << s.log_words) + word)
        bits_d = load_cached(s.candidates, base + (np.int64(d) << s.log_words) + word)
        found |= (bits_a | bits_b) | (bits_c | bits_d)
        edge += 4 * step
    return found & missing


def store_candidates(place, found, level, graph, s):  # type: ignore[no-untyped-def]
    """Store the candidates of a place for the next level; return what they add to the sum of edges and places."""
    s.candidates[begin_of(level + 1, s) + place] = found
    v = place >> s.log_words
    return np.int64(graph.indptr[v + 1]) - np.int64(graph.indptr[v]) + 1 if found != 0 else np.int64(0)


def is_long(place, level, graph, back, s):  # type: ignore[no-untyped-def]
    """Whether a group gathers for the vertex of a place, which is the first of the vertex."""
    v = place >> s.log_words
    return place & s.last_word == 0 and np.int64(back.indptr[v + 1]) - np.int64(back.indptr[v]) > s.alone


def gather_by_group(group, place, level, graph, back, s):  # type: ignore[no-untyped-def]
    """Gather for all words of a vertex; each thread of a group has one of them, and every so many edges."""
    v, word = place >> s.log_words, group.rank & s.last_word
    edge, last = np.int64(back.indptr[v]) + (group.rank >> s.log_words), np.int64(back.indptr[v + 1])
    own, base = place + word, begin_of(level, s)
    missing = missing_of(own, s)
    step, found = group.size >> s.log_words, np.uint64(0)
    begin = np.int64(back.indptr[v])
    while begin < last:
        part = min(begin + 4 * step, last)
        left = missing & ~found
        found |= gather(edge, part, step, word, left, base, back, s)
        distance = group.size >> 1
        while distance > s.last_word:
            found |= group.shuffle(found, group.rank + distance)
            distance >>= 1
        begin, edge = begin + 4 * step, edge + 4 * step
        if not group.any(missing & ~found != 0):
            break
    return store_candidates(own, found, level, graph, s) if group.rank <= s.last_word else np.int64(0)


gather_long_rows = by_groups(is_long, gather_by_group)


def pull_range(worker, first, end, level, graph, back, s):  # type: ignore[no-untyped-def]
    """Settle the places of a range, and have them gather; return what they add to the sum, and edges of complete places."""
    total, complete, any_long = np.int64(0), np.int64(0), False
    for place in worker.split(range(first, end)):
        v = place >> s.log_words
        edge, last = np.int64(back.indptr[v]), np.int64(back.indptr[v + 1])
        fresh = settle(place, level, s)
        note_by_source(place, fresh, level, s, s.notes.distance, s.notes.by_source)
        missing = missing_of(place, s)
        if fresh != 0 and missing == 0:
            complete += last - edge
        if level >= s.limit:
            missing = np.uint64(0)
        if last - edge > s.alone and level < s.limit:
            any_long = True
        else:
            found = gather(edge, last, 1, place & s.last_word, missing, begin_of(level, s), back, s)
            total += store_candidates(place, found, level, graph, s)
    if worker.any(any_long):
        worker.sync()  # all words of the vertices are settled
        total += gather_long_rows(worker, first, end, level, graph, back, s)
    return total, complete


@task
def pull(worker, k, sources, graph, back, s):  # type: ignore[no-untyped-def]
    """Have the places of ranges pull, until all ranges are taken."""
    level, size, n = s.state[AT.level], s.state[AT.size], s.seen.size
    total, complete = np.int64(0), np.int64(0)
    while k * size < n:
        taken = ask_for_range(worker, s.state, AT.taken)  # the answer comes meanwhile
        edges, done = pull_range(worker, k * size, min((k + 1) * size, n), level, graph, back, s)
        total += edges
        complete += done
        k = worker.max(taken)
    total, complete = worker.sum(total), worker.sum(complete)
    if worker.rank == 0:
        if total > 0:
            atomic_add(s.state, AT.sums + k % NUM_PARTIAL_SUMS, total)
        if complete > 0:
            atomic_add(s.state, AT.complete, complete)


@task
def list_places(worker, k, sources, graph, back, s):  # type: ignore[no-untyped-def]
    """Push the places of ranges that have candidates, and clear the candidates of the next level, which are old ones."""
    level, size, n = s.state[AT.level], s.state[AT.size], s.seen.size
    here, following = begin_of(level, s), begin_of(level + 1, s)
    while k * size < n:
        taken = ask_for_range(worker, s.state, AT.taken)
        for place in worker.split(range(k * size, min((k + 1) * size, n))):
            s.candidates[following + place] = 0
            if s.candidates[here + place] != 0:
                worker.push(place, task=expand)
        k = worker.max(taken)


def begin_level(worker, sources, graph, back, s):  # type: ignore[no-untyped-def]
    """Between rounds: begin the next level, and choose what it does."""
    state = s.state
    level, mode = state[AT.level] + 1, state[AT.mode]
    worker.sync()  # all have read the state
    if mode == LISTS:  # of the level that has begun
        if worker.rank == 0:
            state[AT.mode] = PUSHES
        return
    if worker.rank == 0:
        state[AT.level] = level
    forget_reached(worker, level, s.notes.reached)
    choose_direction(worker, mode, graph, back, s)


def choose_direction(worker, mode, graph, back, s):  # type: ignore[no-untyped-def]
    """Choose whether a level pushes or pulls, if it may, and push the items that take ranges."""
    if back is not None:
        state, edges = s.state, np.int64(0)
        for k in worker.split(range(AT.sums, AT.sums + NUM_PARTIAL_SUMS)):
            edges += state[k]
            state[k] = 0
        edges = worker.sum(edges)
        left = (np.int64(back.indices.size) << s.log_words) - state[AT.complete]
        pulls = edges * ALPHA > left and edges > 0
        lists = mode == PULLS and not pulls and edges > 0
        size, takers = fit_takers(worker, s.seen.size, s.takers)
        worker.sync()  # all have read the state
        if worker.rank == 0:
            state[AT.mode] = PULLS if pulls else LISTS if lists else PUSHES
            state[AT.taken] = takers
            state[AT.size] = size
        if pulls or lists:
            for k in worker.split(takers):
                if pulls:
                    worker.push(k, task=pull)
                else:
                    worker.push(k, task=list_places)


BIT_TASKS = begin, expand, pull, list_places
_PUSH_TASKS = begin, expand


class BitSearches:
    """Searches of a call, one launch each, from up to as many sources at once as a vertex has bits; `finish` ends the call.

    Parameters
    ----------
    name : str
        The function that the user called.
    graph : Graph
        Its out-edges are followed.
    sources : int
        How many there are in all; vertices have no more words than these need.
    options, worker : as of the call
    with_maps : bool
        Whether there are launches over vertices too.
    """

    def __init__(
        self,
        name: str,
        graph: Graph,
        sources: int,
        options: LaunchOptions,
        worker: str | None,
        with_maps: bool = False,
    ) -> None:
        check_no_each_round(name, options)
        n, device = graph.num_vertices, graph.device
        self.log_words = min(_MOST_LOG_WORDS[device.kind], max((sources - 1) // WORD, 0).bit_length())
        self.width = WORD << self.log_words
        self.size = n << self.log_words
        self.graph = graph._replace(weights=None)
        self.back: GraphArrays | None = None
        if graph.num_edges >= _DENSE * n:
            self.back = (graph if graph.is_symmetric() else graph.transpose())._replace(weights=None)
        self.tasks = _PUSH_TASKS if self.back is None else BIT_TASKS
        dtype = np.uint32 if self.size < 2**32 else np.int64
        room = max(2 * n, self.width)

        def make_queue() -> Queue:
            return Queue._of_kinds(self.tasks, room, dtype=dtype, device=device)

        queue = take_queue(graph, make_queue, options, name, worker, self.log_words, self.tasks)
        maps: KeptQueue | None = None
        if with_maps:
            ranges = len(range_items(n)) or 1
            maps = take_queue(graph, lambda: Queue(ranges, device=device), options, "maps", worker, name)
        self.launches = LaunchSequence(name, queue, options, worker, maps)
        self.seen, self.candidates = self.launches.workspace(("bits", self.log_words), self._make_bits)
        # On a CPU, and with workers of one thread, a group has one thread, for one word.
        is_alone = worker == "thread" or (device.kind == "cpu" and self.log_words > 0)
        self._alone = 1 << 62 if is_alone else THREAD_MAX_DEGREE[device.kind]
        self._takers = plan_takers(self.size, device, worker).takers

    def _make_bits(self) -> tuple[Array, Array]:
        device = self.graph.device
        return empty(self.size, dtype=np.uint64, device=device), empty(2 * self.size, dtype=np.uint64, device=device)

    def run(
        self,
        sources: NDArray[Any],
        notes: BitNotes,
        limit: int = MOST_LEVELS,
        lanes: NDArray[Any] | None = None,
        backwards: bool = False,
    ) -> None:
        """Search from sources, each of which has a bit of its own, or that of its lane, up to a level.

        Sources of the same lane are for parts of the graph between which there is no path.
        """
        device = self.graph.device
        lanes = np.arange(len(sources)) if lanes is None else lanes
        used = np.zeros(self.width, np.uint8)
        used[lanes] = 1
        words = asarray(np.packbits(used, bitorder="little").view("<u8").astype(np.uint64), device=device)
        origins = asarray(np.stack([sources, lanes]).astype(np.uint32), device=device)
        for each in self.seen, self.candidates:
            clear_bytes(device, each.pointer, each.nbytes)
        state = self.launches.record(SearchState, level=-1)
        notes = notes._replace(by_source=_BY_SOURCE[device.kind])
        numbers = self.log_words, (1 << self.log_words) - 1, limit, self._alone, self._takers
        search = BitSearch(self.seen, self.candidates, words, state, *numbers, notes)
        graph, back = self.graph, self.back
        if backwards:
            graph, back = self.graph.transpose()._replace(weights=None), None if back is None else self.graph
        rounds: LaunchOptions = {"barrier": True, "each_round": begin_level}
        self.launches.launch(range(len(sources)), self.tasks, origins, graph, back, search, overrides=rounds)

    def batches(self, sources: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield the sources of each search in turn, and the number of the first one."""
        for first in range(0, len(sources), self.width):
            yield first, sources[first : first + self.width]

    def finish(self) -> LaunchStats:
        """End the call, and return the statistics of all its launches, of which there is at least one, maybe of nothing."""
        if not self.launches.runs:
            self.run(np.zeros(0, np.int64), BitNotes())
        self.launches.finish()
        return self.launches.total()
