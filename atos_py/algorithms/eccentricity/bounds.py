"""Bounds of eccentricities: the steps that bring them together, with the bounds on the host and the searches on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.array import asarray, empty
from ...arrays.memory import clear_bytes
from ...graph.components import component_labels
from ...graph.graph import Graph
from ..bit_notes import WORD, BitNotes
from ..bit_search import BitSearches
from ..strongly_connected_components import strongly_connected_components

__all__ = ["FRINGE_SEARCHES", "find_eccentricities"]

#: Searches that a step makes at most to complete the deepest level of its center.
FRINGE_SEARCHES = 16
#: Of the vertices that a step bounds others by, how many have the most neighbors, whether their own bounds meet or not.
HUBS = 32
#: The part of the open vertices that a center and its fringe have left at least where a step is slow.
SLOW = 7 / 8
_Integers = NDArray[np.int64]


class Searches:
    """Searches from up to 64 sources at once, in each part of a graph, and what they tell about distances.

    Attributes
    ----------
    count : int
        How many there were.
    is_searched : array of bool
        From which vertices there was a search whose distances count for the lower bound of each vertex.
    """

    def __init__(self, graph: Graph, searches: BitSearches, part: NDArray[np.uint32] | None, num_parts: int) -> None:
        n, device = graph.num_vertices, graph.device
        self._searches, self.count, self._part = searches, 0, np.zeros(n, np.uint32) if part is None else part
        self.is_searched = np.zeros(n, np.bool_)
        self._last, self._bound = (empty(n, dtype=np.uint32, device=device) for _ in range(2))
        self._farthest = empty(2 * num_parts * WORD, dtype=np.uint32, device=device)
        self._reached = empty(4 * num_parts, dtype=np.uint64, device=device)

    def run(self, sources: _Integers, lanes: _Integers, backwards: bool = False) -> tuple[_Integers, _Integers, _Integers]:
        """Search from sources, those of a part in different lanes.

        Returns
        -------
        last : array
            The distance of each vertex from the source that is farthest from it, or to it if the search goes `backwards`;
            -1 if there is none.
        farthest : array of shape (parts, 64)
            The distance of the source in a lane from the vertex that is farthest from it, likewise.
        left : array of shape (parts, 64)
            The distance of the source in a lane from the farthest vertex that is not searched.
        """
        for each in self._last, self._farthest, self._reached:
            clear_bytes(each.device, each.pointer, each.nbytes)
        halves = asarray(2 * self._part + self.is_searched, device=self._last.device, readonly=True)
        self._search(sources, lanes, backwards, BitNotes(farthest=self._farthest, reached=self._reached, part=halves))
        farthest = self._farthest.to_numpy().astype(np.int64).reshape(-1, 2, WORD)
        return self._last_of(), farthest.max(axis=1), farthest[:, 0]

    def bound(
        self, sources: _Integers, lanes: _Integers, left: _Integers, backwards: bool = False
    ) -> tuple[_Integers, _Integers]:
        """Search from sources, and return what `left` says of the distances of each vertex to those that are not searched.

        Returns
        -------
        last : array
            As of `run`.
        bound : array
            The least sum of the distance to a source and what the source has `left`; 2**32 - 1 if there is none.
        """
        device = self._last.device
        clear_bytes(device, self._last.pointer, self._last.nbytes)
        self._bound.fill(2**32 - 1)
        part = asarray(self._part, device=device, readonly=True)
        within = asarray(left.astype(np.uint32).ravel(), device=device, readonly=True)
        self._search(sources, lanes, backwards, BitNotes(bound=self._bound, within=within, part=part))
        return self._last_of(), self._bound.to_numpy().astype(np.int64)

    def _search(self, sources: _Integers, lanes: _Integers, backwards: bool, notes: BitNotes) -> None:
        self._searches.run(sources, notes._replace(last=self._last), lanes=lanes, backwards=backwards)
        self.count += 1

    def _last_of(self) -> _Integers:
        return self._last.to_numpy().astype(np.int64) - 1


class Bounds:
    """Bounds of the eccentricities of the vertices of a part, between all of which there are paths.

    Attributes
    ----------
    low, high : array of int64
        The bounds. `high` may be below `low`, which then is the eccentricity.
    """

    def __init__(self, vertices: _Integers, degrees: NDArray[Any], directed: bool, is_searched: NDArray[np.bool_]) -> None:
        self.vertices, self._degrees, self._directed = vertices, degrees[vertices].astype(np.int64), directed
        self._is_searched = is_searched  # of all vertices of the graph
        self.low = np.zeros(vertices.size, np.int64)
        self.high = np.full(vertices.size, vertices.size - 1)
        self._chosen = np.zeros(0, np.int64)  # those that a search starts from, by their places
        self._beyond = 0  # farther from the center than this all are searched, once `_chosen` are
        self.batches = 1  # searches from open vertices after a step that was slow

    def is_open(self, best: int) -> NDArray[np.bool_]:
        """Return of which vertices the bounds have not met, and the upper one is above `best`."""
        return (self.high > self.low) & (self.high > best)

    def choose_center(self, best: int) -> _Integers:
        """Return a vertex that is open, by its place: one of small eccentricity, and of those one of many neighbors."""
        places = np.flatnonzero(self.is_open(best))
        places = places[self.low[places] == self.low[places].min()]
        self._chosen = places[[self._degrees[places].argmax()]]
        return self._chosen

    def note_center(self, to: _Integers, back: _Integers, eccentricity: int) -> None:
        """Note the distances from the center, and those back to it, and choose its fringe."""
        np.maximum(self.low, np.maximum(back, eccentricity - to), out=self.low)
        np.minimum(self.high, back + eccentricity, out=self.high)
        self._settle(np.array([eccentricity]))
        self._is_searched[self.vertices[self._chosen]] = True
        left = np.flatnonzero(~self._is_searched[self.vertices])
        behind = np.bincount(to[left], minlength=eccentricity + 1)[::-1].cumsum()[::-1]  # so far away, or farther
        room = behind[eccentricity] if behind[eccentricity] <= FRINGE_SEARCHES * WORD else 0
        self._beyond = int(np.count_nonzero(behind > max(room, WORD))) - 1
        self._chosen = left[to[left] > self._beyond]
        if self._chosen.size == 0:  # the deepest level is too large
            self._chosen = left[to[left] == eccentricity][:WORD]

    def fringe(self, number: int) -> _Integers:
        """Return the fringe that a search of a number starts from, by the places."""
        return self._chosen[number * WORD : (number + 1) * WORD]

    def note_fringe(self, chosen: _Integers, last: _Integers, farthest: _Integers) -> None:
        """Note the distances to the farthest of what a search began from, by its places, and the eccentricities of these."""
        np.maximum(self.low, last, out=self.low)
        self._is_searched[self.vertices[chosen]] = True
        if not self._directed:
            self.low[chosen] = self.high[chosen] = farthest[: chosen.size]

    def end_fringe(self, back: _Integers) -> None:
        """Lower the upper bounds, after the whole fringe was searched."""
        np.minimum(self.high, back + self._beyond, out=self.high)

    def choose_open(self, best: int, hubs: int) -> _Integers:
        """Return 64 vertices, by their places: open ones of small eccentricity, after some that have the most neighbors."""
        left = np.flatnonzero(~self._is_searched[self.vertices])
        near = left[np.argpartition(-self._degrees[left], hubs)[:hubs]] if 0 < hubs < left.size else left[:0]
        is_open = self.is_open(best)
        is_open[near] = False
        places = np.flatnonzero(is_open)
        far = places[np.lexsort((-self._degrees[places], self.low[places]))[: WORD - near.size]]
        self._chosen = np.concatenate([near, far])
        return self._chosen

    def _settle(self, eccentricities: _Integers) -> None:
        self.low[self._chosen] = self.high[self._chosen] = eccentricities

    def note_open(self, last: _Integers, farthest: _Integers) -> None:
        """Note the eccentricities of the vertices chosen last, and, without directions, the distances to them."""
        if not self._directed:
            self.note_fringe(self._chosen, last, farthest)
        self._settle(farthest[: self._chosen.size])

    def note_bound(self, back: _Integers, bound: _Integers) -> None:
        """Note the distances to the vertices chosen last, and bounds of those to what is not searched, which they are."""
        self._is_searched[self.vertices[self._chosen]] = True
        np.maximum(self.low, back, out=self.low)
        np.minimum(self.high, bound, out=self.high)


def find_eccentricities(graph: Graph, searches: BitSearches, all_of_them: bool) -> tuple[_Integers, int]:
    """Return the eccentricities of all vertices, or lower bounds of which the largest is right; and the number of searches."""
    n = graph.num_vertices
    if graph.is_symmetric():
        label = component_labels(graph).to_numpy()
        return _of_parts(graph, searches, label, all_of_them, directed=False)
    if strongly_connected_components(graph).num_components == 1:
        return _of_parts(graph, searches, np.zeros(n, np.uint32), all_of_them, directed=True)
    runs, found = Searches(graph, searches, None, 1), np.zeros(n, np.int64)
    for first in range(0, n, WORD):
        sources = np.arange(first, min(first + WORD, n))
        found[sources] = runs.run(sources, sources - first)[1][0, : sources.size]
    return found, runs.count


def _of_parts(
    graph: Graph, searches: BitSearches, label: NDArray[np.uint32], all_of_them: bool, directed: bool
) -> tuple[_Integers, int]:
    """Find the eccentricities of vertices that have paths in both directions to all of their label, and to no others."""
    n, degrees = graph.num_vertices, graph.degrees()
    sizes = np.bincount(label, minlength=n)
    large = np.flatnonzero(sizes > (0 if directed else WORD))
    found, part = np.zeros(n, np.int64), np.zeros(n, np.uint32)
    part[large] = np.arange(large.size)
    part = part[label]
    vertices = np.flatnonzero(sizes[label] > (0 if directed else WORD))
    if large.size > 1:
        vertices = vertices[np.argsort(part[vertices], kind="stable")]
    ends = np.cumsum(sizes[large])[:-1]
    runs = Searches(graph, searches, part, max(large.size, 1))
    split = np.split(vertices, ends) if large.size else []
    parts = [Bounds(each, degrees, directed, runs.is_searched) for each in split]
    best = _bring_together(parts, runs, all_of_them, directed)
    for each in parts:
        found[each.vertices] = each.low
    small = np.flatnonzero((sizes[label] > 1) & (sizes[label] <= WORD)) if not directed else vertices[:0]
    if small.size and (all_of_them or sizes[label[small]].max() - 1 > best):
        small = small[np.argsort(label[small], kind="stable")]
        begins = np.flatnonzero(np.diff(label[small], prepend=n))
        lanes = np.arange(small.size) - np.repeat(begins, np.diff(begins, append=small.size))
        found[small] = runs.run(small, lanes)[0][small]  # all that are there are sources
    return found, runs.count


def _bring_together(parts: list[Bounds], runs: Searches, all_of_them: bool, directed: bool) -> int:
    """Bring the bounds of all parts together, or those that matter for the largest; return the largest eccentricity."""
    best = 0

    def is_open(p: int) -> bool:
        return bool(parts[p].is_open(-1 if all_of_them else best).any())

    def sources_of(chosen: dict[int, _Integers]) -> tuple[_Integers, _Integers]:
        """Return vertices to search from, by their places in parts, and their lanes."""
        vertices = [parts[p].vertices[places] for p, places in chosen.items()]
        return np.concatenate(vertices), np.concatenate([np.arange(places.size) for places in chosen.values()])

    going = list(range(len(parts)))
    while going := [p for p in going if is_open(p)]:
        limit = -1 if all_of_them else best
        before = {p: int(np.count_nonzero(parts[p].is_open(limit))) for p in going}
        if few := {p: parts[p].choose_open(limit, 0) for p in going if before[p] <= WORD}:
            last, farthest, _ = runs.run(*sources_of(few))
            for p in few:
                parts[p].note_open(last[parts[p].vertices], farthest[p])
                best = max(best, int(parts[p].low.max()))
            continue
        center = sources_of({p: parts[p].choose_center(limit) for p in going})
        to, farthest, _ = runs.run(*center)
        back = runs.run(*center, backwards=True)[0] if directed else to
        for p in going:
            v = parts[p].vertices
            parts[p].note_center(to[v], back[v], int(farthest[p, 0]))
        best = max(best, max(int(parts[p].low.max()) for p in going))
        fringe = [p for p in going if is_open(p)]
        number = 0
        while chosen := {p: places for p in fringe if (places := parts[p].fringe(number)).size}:
            last, farthest, _ = runs.run(*sources_of(chosen), backwards=directed)
            for p, places in chosen.items():
                parts[p].note_fringe(places, last[parts[p].vertices], farthest[p])
            number += 1
        for p in fringe:
            parts[p].end_fringe(back[parts[p].vertices])
            best = max(best, int(parts[p].low.max()))
        limit, number = -1 if all_of_them else best, 0
        slow = {p for p in fringe if np.count_nonzero(parts[p].is_open(limit)) > before[p] * SLOW}
        while chosen := {
            p: parts[p].choose_open(limit, HUBS if number == 0 else 0) for p in slow if number < parts[p].batches and is_open(p)
        }:
            sources = sources_of(chosen)
            last, farthest, left = runs.run(*sources)
            for p in chosen:
                parts[p].note_open(last[parts[p].vertices], farthest[p])
                best = max(best, int(parts[p].low.max()))
            if number == 0:
                back, bound = runs.bound(*sources, left, backwards=directed)
                for p in chosen:
                    parts[p].note_bound(back[parts[p].vertices], bound[parts[p].vertices])
                    best = max(best, int(parts[p].low.max()))
            limit, number = -1 if all_of_them else best, number + 1
            if number == 1:
                slow = {p for p in slow if np.count_nonzero(parts[p].is_open(limit)) > before[p] - 2 * WORD}
        for p in fringe:
            parts[p].batches = 2 * parts[p].batches if p in slow else 1
    return best
