"""Edges of the rows of a group, spread over its threads: each is visited once, whatever the rows are."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import atos_py as atos
from atos_py.algorithms.bfs.spread_edges import scan, spread_edges


def accepted(edge, seen, accepts):
    return edge if accepts[edge] else np.int64(-1)


def note(edge, seen, accepts):
    atos.atomic_add(seen, edge, 1)


visit_rows, visit_row = spread_edges(accepted, note)


@atos.task
def visit(worker, item, firsts, lengths, seen, accepts):
    group = worker.group(32)
    for base in range(group.index * group.size, firsts.size, group.count * group.size):
        k = base + group.rank
        length = lengths[k] if k < firsts.size else np.int64(0)
        visit_rows(group, firsts[min(k, firsts.size - 1)], length, seen, accepts)


@atos.task
def visit_alone(worker, row, firsts, lengths, seen, accepts):
    group = worker.group(32)
    if group.index == 0:
        visit_row(group, np.int64(firsts[row]), firsts[row] + lengths[row], seen, accepts)


@atos.task
def sums_of_lengths(worker, item, lengths, sums):
    group = worker.group(32)
    for base in range(group.index * group.size, lengths.size, group.count * group.size):
        k = base + group.rank
        total = scan(group, lengths[k] if k < lengths.size else 0)
        if k < lengths.size:
            sums[k] = total


LENGTHS = st.lists(st.one_of(st.integers(0, 3), st.integers(0, 200), st.just(1000)), min_size=1, max_size=100)


def test_each_edge_is_visited_once(device, worker):
    queue = atos.Queue(128, device=device)

    @given(LENGTHS, st.integers(0, 2**32 - 1))
    @settings(deadline=None, max_examples=30)
    def check(lengths, seed):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(lengths))  # rows need not lie one after another
        firsts = np.empty(len(lengths), np.int64)
        firsts[order] = np.cumsum([0, *np.array(lengths)[order[:-1]]])
        count = max(sum(lengths), 1)
        wanted = rng.integers(0, 2, count) == 1
        args = [atos.asarray(each, device=device) for each in (firsts, np.array(lengths, np.int64))]
        accepts = atos.asarray(wanted, device=device)
        for task, items in ((visit, [0]), (visit_alone, range(len(lengths)))):
            seen = atos.zeros(count, dtype=np.int64, device=device)
            queue.push(items)
            getattr(queue, f"launch_{worker}")(task, *args, seen, accepts)
            assert seen[: sum(lengths)].tolist() == wanted[: sum(lengths)].astype(int).tolist()

    check()


def test_scan(device):
    lengths = np.random.default_rng(1).integers(0, 100, 77)
    sums = atos.zeros(77, dtype=np.int64, device=device)
    queue = atos.Queue(1, device=device)
    queue.push(0)
    queue.launch_warp(sums_of_lengths, atos.asarray(lengths, device=device), sums)
    size = 32 if device.kind == "cuda" else 1
    expected = np.concatenate([np.cumsum(lengths[k : k + size]) for k in range(0, 77, size)])
    assert sums.to_numpy().tolist() == expected.tolist()
