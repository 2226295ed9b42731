"""Items that push themselves again until another one has run: what waits in the queue has its turn, whatever workers keep."""

from __future__ import annotations

import numpy as np
import pytest
from shared_tasks import launch

import atos_py as atos


@atos.task
def wait(worker, v, last, done, times):
    """Push v again until the last item has run."""
    if v == last:
        if worker.rank == 0:
            done[0] = 1
    elif worker.any(done[0] == 0):
        if worker.rank == 0:
            worker.push(v)
    elif worker.rank == 0:
        atos.atomic_add(times, v, 1)


def some(v, last, done, times):
    """Return a few iterations."""
    return 3


@atos.task(workload=some)
def wait_in_a_loop(worker, v, i, last, done, times):
    """Do the same in the last of several iterations."""
    if v == last:
        if i == 2:
            done[0] = 1
    elif i == 2:
        if done[0] == 0:
            worker.push(v)
        else:
            atos.atomic_add(times, v, 1)


@pytest.mark.parametrize("task", [wait, wait_in_a_loop])
@pytest.mark.parametrize("options", [{}, {"buckets": 4, "delta": 1.0}], ids=["ring", "buckets"])
@pytest.mark.parametrize(("blocks", "fetch", "last"), [(1, 1, 1), (1, 4, 30), (2, 1, 300), (None, None, 20_000)])
def test_each_item_has_its_turn(task, options, blocks, fetch, last, device, worker):
    queue = atos.Queue(2 * last + 2, device=device, **options)
    queue.push(np.arange(last + 1))
    done, times = atos.zeros(1, dtype=np.int32, device=device), atos.zeros(last + 1, dtype=np.int32, device=device)
    given = {name: value for name, value in (("num_blocks", blocks), ("fetch_size", fetch)) if value}
    launch(queue, worker, task, last, done, times, timeout=60, **given)
    assert times.to_numpy().tolist() == [1] * last + [0]


def test_those_that_were_kept_before_have_their_turn_too(device, worker):
    """A worker keeps some of what an item has pushed, and the last of these waits for the first."""

    @atos.task
    def burst(worker, v, n, done):
        if v == n:
            for k in worker.split(n):
                worker.push(k)
        elif v == 0:
            if worker.rank == 0:
                done[0] = 1
        elif worker.any(done[0] == 0) and worker.rank == 0:
            worker.push(v)

    for options in ({}, {"buckets": 2, "delta": 1.0}):
        queue = atos.Queue(1000, device=device, **options)
        queue.push(100)
        done = atos.zeros(1, dtype=np.int32, device=device)
        launch(queue, worker, burst, 100, done, num_blocks=1, fetch_size=2, timeout=60)
        assert done[0] == 1
