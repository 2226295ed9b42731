"""Dependency counters: the last child to finish pushes its parent, so each node of a tree runs once, after all its children."""

from __future__ import annotations

import numpy as np

import atos_py as atos

SIZE_BITS = 40


@atos.task
def ascend(worker, v, parent, state, order, clock):
    if worker.rank == 0:
        order[v] = atos.atomic_add(clock, 0, 1)
        if v != 0:
            change = (state[v] & ((1 << SIZE_BITS) - 1)) - (1 << SIZE_BITS)
            if (atos.atomic_add(state, parent[v], change) + change) >> SIZE_BITS == 0:
                worker.push(parent[v])


def test_each_node_runs_once_after_its_children(device, worker):
    n = 100_000 if device.kind == "cpu" else 10_000_000
    rng = np.random.default_rng(0)
    parent = np.concatenate([[0], rng.integers(np.arange(1, n) // 2, np.arange(1, n))])
    children = np.bincount(parent[1:], minlength=n)
    state = atos.asarray((children << SIZE_BITS) + 1, device=device)
    order = atos.full(n, -1, dtype=np.int64, device=device)
    clock = atos.zeros(1, dtype=np.int64, device=device)
    queue = atos.Queue(n, device=device)
    queue.push(np.flatnonzero(children == 0))
    stats = getattr(queue, f"launch_{worker}")(ascend, atos.asarray(parent, device=device), state, order, clock)
    assert stats.tasks_run == n
    assert stats.tasks_pushed == np.count_nonzero(children)
    order = order.to_numpy()
    assert np.array_equal(np.sort(order), np.arange(n))
    assert (order[1:] < order[parent[1:]]).all()
    size = state.to_numpy()  # nobody is missing
    assert np.array_equal(size, 1 + np.bincount(parent[1:], size[1:], minlength=n).astype(np.int64))
