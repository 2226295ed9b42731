"""Two launches at once that ask for more workers than the device holds: both end, or one waits (docs/protocol/progress.md).

The GPU is filled by launches with as many blocks as it holds, the default. On a CPU workers are threads of the system.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest
from shared_tasks import SCHEDULES, assert_each_once, count_item, every_schedule, forest_on_host, grow, on_device

import atos_py as atos

OWN_STREAM = 2  # CU_STREAM_PER_THREAD: launches of the legacy stream follow each other
NODES = 20_000


def workers(device: atos.Device) -> int | None:
    """Return how many blocks a launch asks for: all that a GPU holds, or more threads than there are cores."""
    return None if device.kind == "cuda" else 4 * device.processors


class InThread:
    """A launch of `grow` over a forest in a thread of its own, several times, each over all that the device holds."""

    def __init__(self, device: atos.Device, turns: int, **options: Any) -> None:
        self.forest = forest_on_host(NODES, 3)
        self.stats: list[atos.LaunchStats] = []
        self.failures: list[BaseException] = []
        self._parts = [on_device(self.forest, device) for _ in range(turns)]
        self._queues = [atos.Queue(2 * NODES, device=device) for _ in range(turns)]
        for queue in self._queues:  # beforehand: a copy of the host's could wait for the other launch
            queue.push([0, 1, 2])
        # The best kernel, so that none is loaded beside another launch.
        self._options = {"num_blocks": workers(device), "stream": OWN_STREAM, "tier": "best", **options}
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            for queue, (there, counts) in zip(self._queues, self._parts, strict=True):
                self.stats.append(queue.launch_cta(grow, there, counts, **self._options))
        except BaseException as error:
            self.failures.append(error)

    def check(self, blocks: int) -> None:
        """Wait for the end; every task of each launch ran once, by as many blocks as a launch alone has."""
        self.thread.join(120)
        assert not self.thread.is_alive()
        assert self.failures == []
        assert [stats.num_blocks for stats in self.stats] == [blocks] * len(self._parts)
        for _, counts in self._parts:
            assert_each_once(counts.seen.to_numpy())
            assert counts.early[0] == 0 or not self._options["barrier"]


def blocks_of_one(device: atos.Device, **options: Any) -> int:
    """Launch once alone, so that everything is loaded; return the number of blocks."""
    alone = InThread(device, 1, **options)
    alone.thread.start()
    alone.thread.join(120)
    assert alone.failures == []
    return alone.stats[0].num_blocks


@pytest.mark.timeout(300)
@pytest.mark.parametrize("barriers", [(False, False), (False, True), (True, True)], ids=str)
def test_two_launches_that_each_take_the_whole_device_end(device, barriers):
    blocks = [blocks_of_one(device, persistent=True, barrier=barrier) for barrier in barriers]
    if device.kind == "cuda":
        assert min(blocks) >= device.processors
    both = [InThread(device, 10, persistent=True, barrier=barrier) for barrier in barriers]
    for each in both:
        each.thread.start()
    for each, number in zip(both, blocks, strict=True):
        each.check(number)


@pytest.mark.timeout(300)
@every_schedule
def test_a_launch_beside_one_that_holds_half_of_the_device(device, persistent, barrier):
    """Without barriers, it ends with the blocks for which there is room; a kernel with barriers begins as a whole, later."""
    options = {"persistent": persistent, "barrier": barrier}
    blocks = blocks_of_one(device, **options)
    counts = atos.zeros(3, dtype=np.int64, device=device)
    queue = atos.Queue(100, device=device)
    queue.push([5])
    half = max(queue.launch_cta(count_item, counts, num_blocks=workers(device)).num_blocks // 2, 1)
    beside = InThread(device, 1, **options)
    with queue.start(count_item, counts, worker="cta", num_blocks=half) as run:
        run.push([1, 2])
        while counts[0] < 3:  # its workers are there
            time.sleep(0.001)
        beside.thread.start()
        if device.kind == "cuda" and persistent and barrier:
            beside.thread.join(0.5)
            assert beside.thread.is_alive()
        else:
            beside.check(blocks)
        run.push([3])
    beside.check(blocks)
    assert counts[0] == 4
    assert run.wait().tasks_run == 3


@pytest.mark.parametrize(("persistent", "barrier"), SCHEDULES, ids=str)
def test_more_workers_than_cores_take_turns(persistent, barrier):
    """A launch on a CPU with thirty workers for each core: those that wait leave the cores to the others."""
    device = atos.device("cpu")
    many = InThread(device, 1, persistent=persistent, barrier=barrier, num_blocks=30 * device.processors)
    many.thread.start()
    many.check(30 * device.processors)
