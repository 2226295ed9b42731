"""The place of a worker among all: which it is, and how many there are, so that they can share a scan."""

from __future__ import annotations

import numpy as np
import pytest
from shared_tasks import assert_each_once, every_schedule, launch

import atos_py as atos


@atos.task
def note(worker, v, wrong, counts, later):
    """Count an item, and put the next one aside without a push."""
    if worker.index < 0 or worker.index >= worker.count or worker.count > counts[0]:
        atos.atomic_add(wrong, 0, 1)
    if worker.rank == 0:
        atos.atomic_add(later, v, 1)


def scan(worker, wrong, counts, later):
    """Push what has not run, each worker in its own part: were there two of one place, they would push an element twice."""
    counts[1 + worker.index] = worker.count
    for v in worker.split(range(worker.index * 16, later.size, worker.count * 16)):
        for k in range(v, min(v + 16, later.size)):
            if later[k] == -1:
                later[k] = 0
                worker.push(k)


@every_schedule
@pytest.mark.parametrize("num_blocks", [1, 3])
def test_workers_share_a_scan(device, worker, persistent, barrier, num_blocks):
    n = 2000
    num_threads = 64 if device.kind == "cuda" else 1
    workers = num_blocks * {"thread": num_threads, "warp": max(num_threads // 32, 1), "cta": 1}[worker]
    wrong, later = atos.zeros(1, dtype=np.int32, device=device), atos.full(n, -1, dtype=np.int32, device=device)
    counts = atos.zeros(1 + workers, dtype=np.int32, device=device)
    counts[0] = workers
    later[0] = 0
    queue = atos.Queue(n, device=device)
    queue.push(0)
    options = {"persistent": persistent, "barrier": barrier, "num_blocks": num_blocks, "idle": scan}
    if device.kind == "cuda":
        options["num_threads"] = num_threads
    stats = launch(queue, worker, note, wrong, counts, later, **options)
    assert stats.num_workers == workers
    assert wrong[0] == 0
    assert counts.to_numpy().tolist() == [workers] * (1 + workers)
    assert_each_once(later.to_numpy())
    assert stats.tasks_run == n
