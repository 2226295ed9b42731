"""Tasks of a minimum spanning forest: the rounds of a step of Boruvka's algorithm, and listing the edges that were found."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...arrays.array import Array
from ...compile.atomics import atomic_add, atomic_min
from ...compile.task import task
from ...operators.compaction import compaction
from ...operators.listing import listing
from ...operators.row_map import row_map
from ...operators.union_find import find_root

__all__ = ["MOST_STEPS", "Trees", "collect_floats", "collect_integers", "grow"]

MOST_STEPS = 40  # each of which at least halves the number of trees that are not done, and places for those before and after
_DONE = 0xFFFF_FFFF  # instead of a tree
_UNKNOWN = -1  # instead of a candidate
_NO_EDGE = 2**31 - 1  # larger than all places in a row
_32, _ALL_ONES = np.uint64(32), np.uint64(2**64 - 1)
_LOW = np.uint64(2**32 - 1)
_RENAME, _CHOOSE, _COMPARE, _HOOK = range(4)  # the rounds of a step


class Trees(NamedTuple):
    """State of vertices and trees. The values of a tree are stored at its root."""

    parent: Array  # of union-find
    root: Array  # of each vertex, at the beginning of the step; _DONE if all of its neighbors are in its tree
    candidate: Array  # edge of each vertex that is not done, or _UNKNOWN
    weight: Array  # least weight of a tree's candidates
    ends: Array  # least pair of ends of that weight
    edge: Array  # by which a root was hooked
    source: Array  # of that edge
    hooked: Array  # how many in each range
    lists: Array  # (2 n) the vertices that are not done, in every second step, and those of the next one
    counts: Array  # of the list of each step
    limit: np.generic  # the largest weight of the type


def weight_of(edge, weights, trees):  # type: ignore[no-untyped-def]
    """Return the weight of an edge; without weights, one that is the same for all."""
    return trees.limit if weights is None else weights[edge]


def ends_of(v, edge, indices):  # type: ignore[no-untyped-def]
    """Return the smaller and the larger end of an edge of v, as one number."""
    u = indices[edge]
    return np.uint64(min(v, u)) << _32 | np.uint64(max(v, u))


def comes_first(weight, u, found, least, target):  # type: ignore[no-untyped-def]
    """Whether an edge to u comes before the one found. Of equal weight, the smaller target has the smaller pair of ends."""
    return found == _NO_EDGE or weight < least or (weight == least and u < target)


def tree_of(u, first, trees):  # type: ignore[no-untyped-def]
    """Return the root of u, or _DONE; at first it is u itself."""
    return u if first else trees.root[u]


def is_other(tree, root):  # type: ignore[no-untyped-def]
    """Whether that is another tree than that of a root. A vertex that is done is in the tree of its neighbors."""
    return tree != root and tree != _DONE


def find_lightest(v, root, edge, degree, place, step, first, graph, trees):  # type: ignore[no-untyped-def]
    """Return which edge from `place` on, of every `step`-th one of v's row, is the lightest to another tree.

    Its weight and its target too; _NO_EDGE if there is none. Two edges at a time, and without a branch before their trees are
    read, so that a GPU asks for both at once. Places in the row are of 32 bits, which saves registers.
    """
    found = np.int32(_NO_EDGE)
    target = np.uint32(_DONE)
    least = trees.limit
    while place < degree:
        other = min(place + step, degree - 1)
        a, b = graph.indices[edge + place], graph.indices[edge + other]
        weight_a, weight_b = weight_of(edge + place, graph.weights, trees), weight_of(edge + other, graph.weights, trees)
        tree_a = tree_of(a if comes_first(weight_a, a, found, least, target) else np.uint32(v), first, trees)
        tree_b = tree_of(b if comes_first(weight_b, b, found, least, target) else np.uint32(v), first, trees)
        if is_other(tree_a, root):
            found, least, target = place, weight_a, a
        if is_other(tree_b, root) and comes_first(weight_b, b, found, least, target):
            found, least, target = np.int32(other), weight_b, b
        place = np.int32(place + 2 * step)
    return found, least, target


def find_lightest_by_all(team, v, root, edge, degree, first, graph, trees):  # type: ignore[no-untyped-def]
    """Return the lightest edge of a row to another tree, found by all threads of a team."""
    found, weight, target = find_lightest(v, root, edge, degree, np.int32(team.rank), np.int32(team.size), first, graph, trees)
    least = team.min(weight if found != _NO_EDGE else trees.limit)
    if weight != least or found == _NO_EDGE:
        target = np.uint32(_DONE)
    nearest = team.min(target)
    if target != nearest:
        found = np.int32(_NO_EDGE)
    return team.min(found)


def offer(v, root, edge, first, graph, trees):  # type: ignore[no-untyped-def]
    """Make an edge the candidate of v, and offer its weight to the tree. At first its target stands where roots will be."""
    if edge < 0:
        trees.root[v] = _DONE
    elif first:
        trees.edge[v] = edge
        trees.root[v] = graph.indices[edge]
    else:
        trees.candidate[v] = edge
        weight = weight_of(edge, graph.weights, trees)
        if weight < trees.weight[root]:  # few are, and all atomic operations of a tree are on one word
            atomic_min(trees.weight, root, weight)
    return 0


def begin_choice(v, first, graph, trees):  # type: ignore[no-untyped-def]
    """Return the root of v, and its candidate if that leads to another tree, otherwise _UNKNOWN."""
    if first:
        return np.uint32(v), np.int64(_UNKNOWN)
    root, candidate = trees.root[v], np.int64(trees.candidate[v])
    if candidate >= 0 and is_other(trees.root[graph.indices[candidate]], root):
        return root, candidate
    return root, np.int64(_UNKNOWN)


def choose(v, edge, last, first, graph, trees):  # type: ignore[no-untyped-def]
    """Find the candidate of a vertex, if it needs another one, and offer it."""
    root, candidate = begin_choice(v, first, graph, trees)
    if candidate < 0:
        degree = np.int32(last - edge)
        found, _, _ = find_lightest(v, root, np.int64(edge), degree, np.int32(0), np.int32(1), first, graph, trees)
        candidate = edge + found if found != _NO_EDGE else np.int64(_UNKNOWN)
    return offer(v, root, candidate, first, graph, trees)


def choose_by_all(team, v, edge, last, first, graph, trees):  # type: ignore[no-untyped-def]
    """Do the same by all threads of a team."""
    root, candidate = begin_choice(v, first, graph, trees)
    candidate = team.min(candidate)  # whoever sees that a neighbor is done has none
    if candidate < 0:
        found = find_lightest_by_all(team, v, root, np.int64(edge), np.int32(last - edge), first, graph, trees)
        candidate = edge + found if found != _NO_EDGE else np.int64(_UNKNOWN)
    team.sync()  # all have read the candidate
    return offer(v, root, candidate, first, graph, trees) if team.rank == 0 else 0


def hook_first(v, trees):  # type: ignore[no-untyped-def]
    """Put a vertex under the target of its edge; return whether it is no root."""
    target = np.int64(trees.root[v])
    trees.candidate[v] = _UNKNOWN
    if target == _DONE or (v < target and trees.root[target] == v):
        trees.parent[v] = v
        trees.weight[v] = trees.limit
        trees.ends[v] = _ALL_ONES
        return 0
    trees.parent[v] = target
    trees.source[v] = v
    return 1


def rename(v, trees):  # type: ignore[no-untyped-def]
    """Note the root of a vertex, and let the tree begin the step without candidates."""
    root = find_root(v, trees.parent)
    trees.root[v] = root
    if trees.ends[root] != _ALL_ONES:  # as after each step
        trees.weight[root] = trees.limit
        trees.ends[root] = _ALL_ONES


def listed(place, first, graph, trees):  # type: ignore[no-untyped-def]
    """Return the vertex at a place of the lists; at first there are none."""
    return np.int64(place) if first else np.int64(trees.lists[place])


def is_left(v, trees):  # type: ignore[no-untyped-def]
    """Whether v may have an edge to another tree."""
    return trees.root[v] != _DONE


choose_rows = row_map(choose, choose_by_all, vertex=listed)
list_those_left = compaction(is_left)


def is_lightest(v, graph, trees):  # type: ignore[no-untyped-def]
    """Whether the candidate of a vertex is of the least weight in its tree."""
    return weight_of(trees.candidate[v], graph.weights, trees) == trees.weight[trees.root[v]]


def hook(v, size, graph, trees):  # type: ignore[no-untyped-def]
    """Put the tree of v under the one at the other end of its edge, if it is v that has the edge."""
    root = trees.root[v]
    edge = trees.candidate[v]
    ends = ends_of(v, edge, graph.indices)
    if trees.ends[root] != ends:
        return
    other = trees.root[graph.indices[edge]]
    same = trees.ends[other] == ends and trees.weight[other] == weight_of(edge, graph.weights, trees)
    if not (same and root < other):
        trees.parent[root] = other
        trees.edge[root] = edge
        trees.source[root] = v
        atomic_add(trees.hooked, root // size, 1)


def hook_and_list(worker, item, first, end, trees):  # type: ignore[no-untyped-def]
    """Put vertices of a range, each of which is a tree, under the targets of their edges, and list those that have any."""
    n = trees.parent.size
    hooked = 0
    for v in worker.split(range(first, end)):
        hooked += hook_first(v, trees)
        trees.lists[n + v] = v
    hooked = worker.sum(hooked)
    if worker.rank == 0:
        trees.hooked[item] = hooked
    worker.sync()  # the vertices of the range are there
    list_those_left(worker, n + first, n + end, trees.lists, 0, trees.counts, 0, trees)


@task(max_registers={"cta": 40})  # a forest of rmat22 takes 14.0 ms instead of 16.7
def grow(worker, item, size, thread_max_degree, graph, trees):  # type: ignore[no-untyped-def]
    """Do the part of the round for a range of the list: rename, choose and list anew, compare ends, and hook."""
    n = trees.parent.size
    is_first = worker.round < 2
    step, part = (worker.round - 2) >> 2, (worker.round - 2) & 3
    first, end = item * size, min(item * size + size, n)
    shift = 0
    if is_first:
        part = _CHOOSE if worker.round == 0 else _HOOK
    else:
        step += part > _CHOOSE  # the list is the one that was made in that round
        shift = (step & 1) * n
        first, end = first + shift, min(first + size, trees.counts[step]) + shift
    if part == _CHOOSE:
        choose_rows(worker, first, end, thread_max_degree, graph.indptr, is_first, graph, trees)
        if not is_first:
            worker.sync()  # what groups have found is there
            list_those_left(worker, first, end, trees.lists, n - shift, trees.counts, step + 1, trees)
    elif is_first:
        hook_and_list(worker, item, first, end, trees)
    else:
        for place in worker.split(range(first, end)):
            v = np.int64(trees.lists[place])
            if part == _RENAME:
                rename(v, trees)
            elif is_lightest(v, graph, trees):
                if part == _HOOK:
                    hook(v, size, graph, trees)
                else:
                    ends = ends_of(v, trees.candidate[v], graph.indices)
                    if ends < trees.ends[trees.root[v]]:
                        atomic_min(trees.ends, trees.root[v], ends)
    if first < end and worker.rank == 0:
        worker.push(item)


def is_hooked(v, graph, trees, edges, edge_ids):  # type: ignore[no-untyped-def]
    """Whether v has an edge of the forest, as one that is no root."""
    return trees.parent[v] != v


def store_edge(v, place, graph, trees, edges, edge_ids):  # type: ignore[no-untyped-def]
    """Store the edge of v; return its weight."""
    edge = trees.edge[v]
    edge_ids[place] = edge
    edges[place, 0] = trees.source[v]
    edges[place, 1] = graph.indices[edge]
    return weight_of(edge, graph.weights, trees)


def collect_integer(v, place, graph, trees, edges, edge_ids):  # type: ignore[no-untyped-def]
    """Store the edge of v; return the halves of its weight as 64 bits, and whether it is negative: many add up exactly."""
    weight = store_edge(v, place, graph, trees, edges, edge_ids)
    bits = np.uint64(weight)
    return np.int64(bits & _LOW), np.int64(bits >> _32), np.int64(weight < 0)


def collect_float(v, place, graph, trees, edges, edge_ids):  # type: ignore[no-untyped-def]
    """Store the edge of v; return its weight as three numbers that are its sum."""
    return np.float64(store_edge(v, place, graph, trees, edges, edge_ids)), 0.0, 0.0


collect_integers = replace(listing(is_hooked, collect_integer, 0), max_registers={"cta": (48, 64, None)})
collect_floats = listing(is_hooked, collect_float, 0.0)
