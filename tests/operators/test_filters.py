"""Filters find exactly the active vertices: the ballot filter each once, as a list and as bits."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import atos_py as atos
from atos_py.models.acc import programs
from atos_py.operators.filters import ONE_VERTEX, ballot, make_filters, take_sums
from atos_py.operators.row_pull import row_search


def is_active(v, bits, marks, taken):
    return marks[v] != 0


def take(v, bits, marks, taken):
    taken[v] = 1


scan_range = ballot(is_active, take)


@atos.task
def scan(worker, item, sets_bits, n, indptr, filters, found, stale, marks, taken):
    scan_range(worker, item, sets_bits == 1, n, indptr, filters, filters.bits, stale, stale, marks, taken)


def stop(worker, sets_bits, n, indptr, filters, found, stale, marks, taken):
    found[0], found[1] = take_sums(worker, filters.sums)
    found[2] = worker.pending
    worker.stop()


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 1])
@pytest.mark.parametrize("n", [1, 31, 257, 5000])
def test_ballot(device, n, share):
    marks = (np.random.default_rng(n).random(n) < share).astype(np.int32)
    expected = np.flatnonzero(marks)
    graph = atos.Graph.from_edges(np.arange(n), np.arange(n), num_vertices=n, device=device)  # an edge of each
    for sets_bits in (0, 1):
        filters, queue = make_filters(n, device, np.arange(0)), atos.Queue(n + 1, device=device)
        queue.push(np.arange(filters.takers))
        counts = atos.zeros(3, dtype=np.int64, device=device)
        taken = atos.zeros(n, dtype=np.int32, device=device)
        stale = atos.full(filters.bits.size, 7, dtype=np.uint32, device=device)
        arguments = stale, atos.asarray(marks, device=device), taken
        queue.launch_cta(
            scan,
            sets_bits,
            n,
            graph.indptr,
            filters,
            counts,
            *arguments,
            num_blocks=1,
            fetch_size=1,
            barrier=True,
            each_round=stop,
        )
        bits = np.unpackbits(filters.bits.to_numpy().view(np.uint8), bitorder="little")[:n]
        found = np.flatnonzero(bits) if sets_bits else np.sort(queue.peek())  # ranges are pushed in any order
        assert np.array_equal(found, expected)
        assert np.array_equal(taken.to_numpy(), marks if sets_bits else np.zeros(n))
        assert counts[:].tolist() == [len(expected), len(expected), 0 if sets_bits else len(expected)]
        assert not filters.sums.to_numpy().any()
        assert np.all(stale.to_numpy() == (7 if sets_bits else 0))


def test_sums_have_room_for_large_graphs(device):
    """Of 50 million vertices, whose count would have been cut off at 8 million when it had 24 bits."""
    filters, queue = make_filters(1, device, np.arange(0)), atos.Queue(2, device=device)
    filters.sums[0] = 50_000_000 * ONE_VERTEX + 7
    counts, marks = atos.zeros(3, dtype=np.int64, device=device), atos.zeros(1, dtype=np.int32, device=device)
    queue.push(np.arange(filters.takers))
    indptr = atos.zeros(2, dtype=np.int64, device=device)
    queue.launch_cta(scan, 0, 1, indptr, filters, counts, None, marks, marks, barrier=True, each_round=stop)
    assert counts[:].tolist() == [50_000_000, 7, 0]


def wants(v, indptr, good, first):
    return first[v] < 0


def accepts(edge, indptr, good, first):
    return good[edge] != 0


def number(v, edge, indptr, good, first):
    return edge


def note(v, edge, indptr, good, first):
    first[v] = edge
    return 1


look = row_search(wants, accepts, number, note)


@atos.task
def search(worker, item, alone, indptr, good, first, total):
    number = worker.sum(look(worker, 0, indptr.size - 1, alone, indptr, indptr, good, first))
    if worker.rank == 0:
        total[0] = number


@pytest.mark.parametrize("alone", [0, 1, 64])
def test_row_search(device, worker, alone):
    rng = np.random.default_rng(0)
    degrees = rng.choice([0, 1, 5, 40, 300], 200)
    indptr = np.append(0, np.cumsum(degrees)).astype(np.int64)
    good = (rng.random(indptr[-1]) < 0.02).astype(np.int32)
    first, total = atos.full(200, -1, dtype=np.int64, device=device), atos.zeros(1, dtype=np.int64, device=device)
    queue = atos.Queue(1, device=device)
    queue.push(0)
    offsets = atos.asarray(indptr, device=device, readonly=True)
    getattr(queue, f"launch_{worker}")(search, alone, offsets, atos.asarray(good, device=device), first, total)
    edges, has = first.to_numpy(), np.array([good[a:b].any() for a, b in pairwise(indptr)])
    assert ((edges >= 0) == has).all()
    assert (good[edges[has]] == 1).all()
    assert ((indptr[:-1] <= edges) & (edges < indptr[1:]))[has].all()
    assert total[0] == has.sum()


def test_the_threshold_chooses_the_filter(device):
    """Of a star, the second round has all leaves, for which 1,024 bins of 3 are too few."""
    n = 4000
    star = atos.Graph.from_edges(np.zeros(n - 1, int), np.arange(1, n), symmetrize=True, device=device)
    for threshold, filters in ((0, ("online", "ballot")), (3, ("online", "ballot")), (4, ("online", "online"))):
        stats = programs.bfs(star, 0, threshold=threshold)[1]
        assert (stats.filters, stats.frontiers) == (filters, (1, n - 1))
    assert programs.bfs(star, 0, filter="online")[1].filters == ("online", "online")
    assert programs.bfs(star, 0, filter="ballot", threshold=10**9)[1].filters == ("online", "ballot")


def test_an_incomplete_list_is_dropped(device):
    """Leaves that were pushed before a bin overflowed do not run ahead of those that a scan finds."""
    n = 4000
    root, leaves = np.zeros(n, int), np.arange(1, n + 1)
    tree = atos.Graph.from_edges(np.append(root, leaves), np.append(leaves, leaves + n), device=device)
    for threshold in (0, 1, 3, 64):
        depth, stats = programs.bfs(tree, 0, threshold=threshold)
        atos.verify_bfs(tree, 0, depth)
        assert stats.frontiers == (1, n, n)
