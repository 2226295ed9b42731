"""Tasks of strongly connected components: what is done in a round, and the labels at the end."""

from __future__ import annotations

import numpy as np

from ...compile.atomics import atomic_add, atomic_max, atomic_min
from ...compile.task import task
from ...operators.row_map import row_map
from ...operators.vertex_map import vertex_map
from ...support.splitmix64 import splitmix64

__all__ = ["COUNT", "name_by_smallest", "separate", "set_mode"]

_BEGIN, _START, _PROPAGATE, _SPLIT = 0, 1, 2, 3  # modes of rounds
# Columns of `known`, the state of a vertex, with keys for vertices. The class is 0 where the component is known. Edges between
# classes are left out.
_FROM, _TO, _CLASS, _GIVEN = 0, 1, 2, 3
_NONE = 0xFFFF_FFFF
# Places in `notes`: the vertex of key 0, with its degree; whether anything changed; and how many components were found.
_PIVOT, _ANY_CHANGE, COUNT = 0, 1, 2
# Packed counts of a range: vertices that are left, those that changed, and components that were found.
_LEFT, _CHANGED, _FOUND = 1, 1 << 20, 1 << 40
_ALL_LEFT, _CHANGES = _CHANGED - 1, _FOUND - _CHANGED


def key_of(v, notes):  # type: ignore[no-untyped-def]
    """Return the number by which vertices are compared, 0 for the pivot; and the vertex of a key."""
    return v ^ (notes[_PIVOT] & _NONE)


def found(v, key, notes, known, label, smallest):  # type: ignore[no-untyped-def]
    """Write down the component of v, by the vertex of a key, and its smallest vertex."""
    known[v, _CLASS] = 0
    name = key_of(key, notes)
    label[v] = name
    atomic_min(smallest, name, v)
    return _FOUND if name == v else 0


def propagate_edges(v, edge, last, step, start, indices, known):  # type: ignore[no-untyped-def]
    """Give `start` to the targets of v; return whether there are any, the smallest key that they reach, and what changed."""
    own = known[v, _CLASS]
    leaves = False
    least = _NONE
    changed = 0
    while edge < last:
        u = indices[edge]
        if u != v and known[u, _CLASS] == own:
            leaves = True
            least = min(least, known[u, _TO])
            if atomic_min(known, (u, _FROM), start) > start:
                changed = _CHANGED
        edge += step
    return leaves, least, changed


def smallest_known(v, column, notes, known):  # type: ignore[no-untyped-def]
    """Return the key that v knows, or the one known of its vertex."""
    key = known[v, column]
    return min(key, known[key_of(key, notes), column])


def is_settled(v, start, known):  # type: ignore[no-untyped-def]
    """Whether v has nothing new to give, and nothing to take: it reaches the pivot, the smallest of all."""
    return known[v, _GIVEN] == start and known[v, _TO] == 0


def take(v, start, least, notes, known):  # type: ignore[no-untyped-def]
    """Store what v has learned and given; return what changed."""
    known[v, _GIVEN] = start
    least = min(least, smallest_known(v, _TO, notes, known))
    changed = 0
    if least < known[v, _TO]:
        known[v, _TO] = least  # which others only read
        changed = _CHANGED
    if atomic_min(known, (v, _FROM), start) > start:
        changed = _CHANGED
    return changed


def propagate(v, edge, last, notes, indices, known, label, smallest):  # type: ignore[no-untyped-def]
    """Propagate smallest keys along the edges of v."""
    if known[v, _CLASS] == 0:
        return 0
    start = smallest_known(v, _FROM, notes, known)
    if is_settled(v, start, known):
        return _LEFT
    leaves, least, changed = propagate_edges(v, np.int64(edge), last, 1, start, indices, known)
    if not leaves:
        return found(v, key_of(v, notes), notes, known, label, smallest)
    return _LEFT + max(changed, take(v, start, least, notes, known))


def propagate_by_all(team, v, edge, last, notes, indices, known, label, smallest):  # type: ignore[no-untyped-def]
    """Do the same by all threads of a team."""
    start = team.min(smallest_known(v, _FROM, notes, known))
    if is_settled(v, start, known):
        return _LEFT if team.rank == 0 else 0
    leaves, least, changed = propagate_edges(v, edge + team.rank, last, team.size, start, indices, known)
    leaves = team.any(leaves)
    least = team.min(least)
    if team.rank > 0:
        return changed
    if not leaves:
        return found(v, key_of(v, notes), notes, known, label, smallest)
    return _LEFT + max(changed, take(v, start, least, notes, known))


def is_left(v, notes, indices, known, label, smallest):  # type: ignore[no-untyped-def]
    """Whether the component of v is not known yet."""
    return known[v, _CLASS] != 0


propagate_rows = row_map(propagate, propagate_by_all, is_left)


def split(v, classes, notes, known, label, smallest):  # type: ignore[no-untyped-def]
    """Give v its component, or the class of those that reach and are reached by the same vertices, and let it begin again."""
    if known[v, _CLASS] == 0:
        return 0
    if classes:
        start = known[v, _FROM]
        end = known[v, _TO]
        if start == end:
            return found(v, start, notes, known, label, smallest)
        known[v, _CLASS] = np.int64(splitmix64(np.uint64(start) << np.uint64(32) | np.uint64(end)) >> np.uint64(33)) + 1
    known[v, _FROM] = key_of(v, notes)
    known[v, _TO] = key_of(v, notes)
    known[v, _GIVEN] = _NONE
    return _LEFT


@task
def separate(worker, item, size, thread_max_degree, repeats, graph, notes, known, label, smallest):  # type: ignore[no-untyped-def]
    """Do for a range of vertices what the mode of the round says."""
    first = item * size
    end = min(first + size, label.size)
    total = 0  # what is left and changed
    components = 0
    if worker.mode == _BEGIN:
        largest = 0
        for v in worker.split(range(first, end)):
            known[v, _CLASS] = 1
            smallest[v] = v
            largest = max(largest, (graph.indptr[v + 1] - graph.indptr[v]) << 32 | v)
            total = _LEFT
        largest = worker.max(largest)
        if worker.rank == 0 and repeats == 1:
            atomic_max(notes, _PIVOT, largest)
    elif worker.mode == _PROPAGATE:
        again = True
        changes = 0
        while again:
            total = propagate_rows(
                worker, first, end, thread_max_degree, graph.indptr, notes, graph.indices, known, label, smallest
            )
            components += total // _FOUND
            changes |= total & _CHANGES
            repeats -= 1
            again = worker.any(total & _CHANGES > 0) and repeats > 0
            worker.sync()  # so that all threads know the same of the vertices that they share
        total |= changes
    else:
        for v in worker.split(range(first, end)):
            total += split(v, worker.mode == _SPLIT, notes, known, label, smallest)
        components = total // _FOUND
    components = worker.sum(components)
    if worker.any(total & _CHANGES > 0) and worker.rank == 0:
        notes[_ANY_CHANGE] = 1
    if worker.any(total & _ALL_LEFT > 0) and worker.rank == 0:
        worker.push(item)
    if worker.rank == 0 and components > 0:
        atomic_add(notes, COUNT, components)


def set_mode(worker, size, thread_max_degree, repeats, graph, notes, known, label, smallest):  # type: ignore[no-untyped-def]
    """Choose what the next round does: start, propagate until nothing changes, split, propagate again, and so on."""
    if worker.mode == _BEGIN:
        worker.set_mode(_START)
    elif worker.mode != _PROPAGATE:
        worker.set_mode(_PROPAGATE)
    else:
        if notes[_ANY_CHANGE] == 0:
            worker.set_mode(_SPLIT)
        worker.sync()  # all have read it
        if worker.rank == 0:
            notes[_ANY_CHANGE] = 0


@vertex_map
def name_by_smallest(v, label, smallest):  # type: ignore[no-untyped-def]
    """Make the smallest vertex of v's component its label."""
    label[v] = smallest[label[v]]
