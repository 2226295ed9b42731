"""Tasks of a minimum spanning forest: the rounds of a step of Boruvka's algorithm, and listing the edges that were found."""

from __future__ import annotations

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
_UNKNOWN, _DONE = -1, -2  # instead of a candidate
_NO_VERTEX, _NO_EDGE = 1 << 32, 1 << 62  # larger than all
_32, _ALL_ONES = np.uint64(32), np.uint64(2**64 - 1)
_LOW = np.uint64(2**32 - 1)


class Trees(NamedTuple):
    """State of vertices and trees. The values of a tree are stored at its root, twice: steps use the two copies in turns."""

    parent: Array  # of union-find
    root: Array  # of each vertex that is not done, at the beginning of the step
    candidate: Array  # edge of each vertex, or _UNKNOWN or _DONE
    weight: Array  # (2 n) least weight
    ends: Array  # (2 n) least pair of ends of that weight
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


def find_lightest(v, root, edge, last, step, graph, trees):  # type: ignore[no-untyped-def]
    """Return the lightest edge from v to another tree, of every `step`-th one, its weight and its target; _NO_EDGE if none.

    Among equal weights the smallest target also has the smallest pair of ends.
    """
    found = _NO_EDGE
    target = _NO_VERTEX
    least = weight_of(min(edge, last - 1), graph.weights, trees)
    while edge < last:
        u = graph.indices[edge]
        weight = weight_of(edge, graph.weights, trees)
        # The root last, which takes the longest to find.
        if (found == _NO_EDGE or weight < least or (weight == least and u < target)) and find_root(u, trees.parent) != root:
            found = edge
            least = weight
            target = u
        edge += step
    return found, least, target


def find_lightest_by_all(team, v, root, edge, last, graph, trees):  # type: ignore[no-untyped-def]
    """Return the lightest edge from v to another tree, found by all threads of a team."""
    found, weight, target = find_lightest(v, root, edge + team.rank, last, team.size, graph, trees)
    least = team.min(weight if found != _NO_EDGE else trees.limit)
    if weight != least:
        target = _NO_VERTEX
    nearest = team.min(target)
    if target != nearest or target == _NO_VERTEX:
        found = _NO_EDGE
    return team.min(found)


def offer(v, root, edge, shift, graph, trees):  # type: ignore[no-untyped-def]
    """Make an edge the candidate of v, and offer its weight to the tree; return whether there is one."""
    trees.candidate[v] = _DONE if edge == _NO_EDGE else edge
    if edge == _NO_EDGE:
        return 0
    trees.root[v] = root
    atomic_min(trees.weight, shift + root, weight_of(edge, graph.weights, trees))
    return 1


def leads_out(root, found, graph, parent):  # type: ignore[no-untyped-def]
    """Whether there is a candidate, and it leads to another tree."""
    return found != _UNKNOWN and find_root(graph.indices[found], parent) != root


def choose(v, edge, last, shift, graph, trees):  # type: ignore[no-untyped-def]
    """Find the candidate of a vertex, if it needs another one, and offer it."""
    if edge == last:
        trees.candidate[v] = _DONE
        return 0
    found = trees.candidate[v]
    root = find_root(v, trees.parent)
    if not leads_out(root, found, graph, trees.parent):
        found, _, _ = find_lightest(v, root, np.int64(edge), last, 1, graph, trees)
    return offer(v, root, found, shift, graph, trees)


def choose_by_all(team, v, edge, last, shift, graph, trees):  # type: ignore[no-untyped-def]
    """Do the same by all threads of a team. No tree changes in this round, so that all of them take the same way."""
    found = trees.candidate[v]
    root = find_root(v, trees.parent)
    if not leads_out(root, found, graph, trees.parent):
        found = find_lightest_by_all(team, v, root, edge, last, graph, trees)
    team.sync()  # all have read the candidate
    return offer(v, root, found, shift, graph, trees) if team.rank == 0 else 0


def listed(place, shift, graph, trees):  # type: ignore[no-untyped-def]
    """Return the vertex at a place of the lists."""
    return trees.lists[place]


def is_left(v, trees):  # type: ignore[no-untyped-def]
    """Whether v may have an edge to another tree."""
    return trees.candidate[v] != _DONE


choose_rows = row_map(choose, choose_by_all, vertex=listed)
list_those_left = compaction(is_left)


def is_lightest(v, shift, graph, trees):  # type: ignore[no-untyped-def]
    """Whether a vertex has a candidate, of the least weight in its tree."""
    edge = trees.candidate[v]
    return edge >= 0 and weight_of(edge, graph.weights, trees) == trees.weight[shift + trees.root[v]]


def hook(v, size, shift, other_shift, graph, trees):  # type: ignore[no-untyped-def]
    """Put the tree of v under the one at the other end of its edge, if it is v that has the edge."""
    root = trees.root[v]
    edge = trees.candidate[v]
    ends = ends_of(v, edge, graph.indices)
    if trees.ends[shift + root] != ends:
        return
    trees.weight[other_shift + root] = trees.limit  # for the next step
    trees.ends[other_shift + root] = _ALL_ONES
    other = trees.root[graph.indices[edge]]
    weight = weight_of(edge, graph.weights, trees)
    same = trees.weight[shift + other] == weight and trees.ends[shift + other] == ends
    if not (same and root < other):
        trees.parent[root] = other
        trees.edge[root] = edge
        trees.source[root] = v
        atomic_add(trees.hooked, root // size, 1)


@task
def grow(worker, item, size, thread_max_degree, graph, trees):  # type: ignore[no-untyped-def]
    """Do the part of the round for a range of the list: begin, or in turns choose, compare ends, and hook and list anew."""
    n = trees.parent.size
    step, part = (worker.round + 2) // 3, (worker.round + 2) % 3
    shift = step % 2 * n
    first = item * size
    if worker.round == 0:
        for v in worker.split(range(first, min(first + size, n))):
            trees.parent[v] = v
            trees.candidate[v] = _UNKNOWN
            trees.weight[n + v] = trees.limit
            trees.ends[n + v] = _ALL_ONES
            trees.lists[n + v] = v
        if item == 0 and worker.rank == 0:
            trees.counts[1] = n
        end = first + 1  # every range goes on
    else:
        first += shift
        end = min(first + size, shift + trees.counts[step])
        if part == 0:
            choose_rows(worker, first, end, thread_max_degree, graph.indptr, shift, graph, trees)
        elif part == 1:
            for place in worker.split(range(first, end)):
                v = trees.lists[place]
                if is_lightest(v, shift, graph, trees):
                    atomic_min(trees.ends, shift + trees.root[v], ends_of(v, trees.candidate[v], graph.indices))
        else:
            for place in worker.split(range(first, end)):
                v = trees.lists[place]
                if is_lightest(v, shift, graph, trees):
                    hook(v, size, shift, n - shift, graph, trees)
            list_those_left(worker, first, end, trees.lists, n - shift, trees.counts, step + 1, trees)
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


collect_integers = listing(is_hooked, collect_integer, 0)
collect_floats = listing(is_hooked, collect_float, 0.0)
