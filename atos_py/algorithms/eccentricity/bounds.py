"""Bounds of eccentricities: the steps that bring them together, with the bounds on the host and the searches on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.array import Array, asarray, empty
from ...arrays.memory import clear_bytes
from ...graph.components import component_labels
from ...graph.graph import Graph
from ..bit_notes import WORD, BitNotes
from ..bit_search import BitSearches
from ..strongly_connected_components import strongly_connected_components

__all__ = ["FRINGE_SEARCHES", "find_eccentricities"]

#: Searches that a step makes at most to complete the deepest level of its center.
FRINGE_SEARCHES = 16
_Integers = NDArray[np.int64]


class Searches:
    """Searches from up to 64 sources at once, in each part of a graph, and what they tell about distances.

    Attributes
    ----------
    count : int
        How many there were.
    """

    def __init__(self, graph: Graph, searches: BitSearches, part: NDArray[np.uint32] | None, num_parts: int) -> None:
        n, device = graph.num_vertices, graph.device
        self._searches, self.count = searches, 0
        self._part: Array | None = None if part is None else asarray(part, device=device, readonly=True)
        self._last = empty(n, dtype=np.uint32, device=device)
        self._farthest = empty(num_parts * WORD, dtype=np.uint32, device=device)
        self._reached = empty(2 * num_parts, dtype=np.uint64, device=device)

    def run(self, sources: _Integers, lanes: _Integers, backwards: bool = False) -> tuple[_Integers, _Integers]:
        """Search from sources, those of a part in different lanes.

        Returns
        -------
        last : array
            The distance of each vertex from the source that is farthest from it, or to it if the search goes `backwards`;
            -1 if there is none.
        farthest : array of shape (parts, 64)
            The distance of the source in a lane from the vertex that is farthest from it, likewise.
        """
        for each in self._last, self._farthest, self._reached:
            clear_bytes(each.device, each.pointer, each.nbytes)
        notes = BitNotes(last=self._last, farthest=self._farthest, reached=self._reached, part=self._part)
        self._searches.run(sources, notes, lanes=lanes, backwards=backwards)
        self.count += 1
        last = self._last.to_numpy().astype(np.int64) - 1
        return last, self._farthest.to_numpy().astype(np.int64).reshape(-1, WORD)


class Bounds:
    """Bounds of the eccentricities of the vertices of a part, between all of which there are paths.

    Attributes
    ----------
    low, high : array of int64
        The bounds. `high` may be below `low`, which then is the eccentricity.
    """

    def __init__(self, vertices: _Integers, degrees: NDArray[Any], directed: bool) -> None:
        self.vertices, self._degrees, self._directed = vertices, degrees[vertices].astype(np.int64), directed
        self.low = np.zeros(vertices.size, np.int64)
        self.high = np.full(vertices.size, vertices.size - 1)
        self._is_searched = np.zeros(vertices.size, np.bool_)
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
        self._is_searched[self._chosen] = True
        left = np.flatnonzero(~self._is_searched)
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
        self._is_searched[chosen] = True
        if not self._directed:
            self.low[chosen] = self.high[chosen] = farthest[: chosen.size]

    def end_fringe(self, back: _Integers) -> None:
        """Lower the upper bounds, after the whole fringe was searched."""
        np.minimum(self.high, back + self._beyond, out=self.high)

    def choose_open(self, best: int) -> _Integers:
        """Return 64 open vertices, by their places: those of small eccentricity."""
        places = np.flatnonzero(self.is_open(best))
        self._chosen = places[np.lexsort((-self.high[places], self.low[places]))[:WORD]]
        return self._chosen

    def _settle(self, eccentricities: _Integers) -> None:
        self.low[self._chosen] = self.high[self._chosen] = eccentricities

    def note_open(self, last: _Integers, farthest: _Integers) -> None:
        """Note the eccentricities of the vertices chosen last, and, without directions, the distances to them."""
        if not self._directed:
            self.note_fringe(self._chosen, last, farthest)
        self._settle(farthest[: self._chosen.size])


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
    parts = [Bounds(each, degrees, directed) for each in np.split(vertices, ends)] if large.size else []
    runs = Searches(graph, searches, part if large.size > 1 else None, max(large.size, 1))
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

    def search(chosen: dict[int, _Integers], backwards: bool = False) -> tuple[_Integers, _Integers]:
        """Search from places of parts."""
        sources = [parts[p].vertices[places] for p, places in chosen.items()]
        lanes = [np.arange(places.size) for places in chosen.values()]
        return runs.run(np.concatenate(sources), np.concatenate(lanes), backwards)

    going = list(range(len(parts)))
    while going := [p for p in going if is_open(p)]:
        limit = -1 if all_of_them else best
        before = {p: int(np.count_nonzero(parts[p].is_open(limit))) for p in going}
        centers = {p: parts[p].choose_center(limit) for p in going}
        to, farthest = search(centers)
        back = search(centers, backwards=True)[0] if directed else to
        for p in going:
            v = parts[p].vertices
            parts[p].note_center(to[v], back[v], int(farthest[p, 0]))
        best = max(best, max(int(parts[p].low.max()) for p in going))
        fringe = [p for p in going if is_open(p)]
        number = 0
        while chosen := {p: places for p in fringe if (places := parts[p].fringe(number)).size}:
            last, farthest = search(chosen, backwards=directed)
            for p, places in chosen.items():
                parts[p].note_fringe(places, last[parts[p].vertices], farthest[p])
            number += 1
        for p in fringe:
            parts[p].end_fringe(back[parts[p].vertices])
            best = max(best, int(parts[p].low.max()))
        limit = -1 if all_of_them else best
        slow = {p for p in fringe if np.count_nonzero(parts[p].is_open(limit)) > before[p] - WORD}
        number = 0
        while chosen := {p: parts[p].choose_open(limit) for p in slow if number < parts[p].batches and is_open(p)}:
            last, farthest = search(chosen)
            for p in chosen:
                parts[p].note_open(last[parts[p].vertices], farthest[p])
                best = max(best, int(parts[p].low.max()))
            limit = -1 if all_of_them else best
            number += 1
        for p in fringe:
            parts[p].batches = 2 * parts[p].batches if p in slow else 1
    return best
