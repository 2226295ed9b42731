"""Launches that only a GPU can make: long items, large trees through small queues, blocks and shared memory."""

from __future__ import annotations

import numpy as np
import pytest
from item_types import DTYPES
from shared_tasks import assert_each_once, count_item, every_schedule, forest_on_host, grow, launch, on_device, run_through

import atos_py as atos
from atos_py.errors import LaunchConfigError

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def star() -> atos.Graph:
    """Eight hubs, each with an edge to every leaf and to the next hub: 16 million edges, in eight items."""
    hubs, leaves = 8, 2_000_000
    indptr = np.concatenate([np.arange(hubs + 1) * (leaves + 1), np.full(leaves, hubs * (leaves + 1))])
    rows = [np.append(np.arange(hubs, hubs + leaves), (hub + 1) % hubs) for hub in range(hubs)]
    return atos.Graph.from_csr(indptr, np.concatenate(rows).astype(np.uint32), device="cuda")


@pytest.mark.timeout(120)
@every_schedule
@pytest.mark.parametrize("worker", ["warp", "cta"])
def test_long_items_are_shared(star, worker, persistent, barrier):
    expected = np.ones(star.num_vertices, np.uint32)
    expected[:8] = np.arange(8)
    for fetch_size in (1, 128):
        result = atos.bfs(
            star, 0, capacity=20_000_000, worker=worker, persistent=persistent, barrier=barrier, fetch_size=fetch_size
        )
        assert np.array_equal(result.depth.to_numpy(), expected)


@pytest.mark.timeout(120)
@every_schedule
def test_many_long_items_at_once(persistent, barrier):
    """More of them than can be open at a time, begun together, over and over."""
    device = atos.device("cuda")
    roots = 150
    lengths = np.random.default_rng(1).integers(4000, 12_000, roots)
    first = np.concatenate([[0], np.cumsum(lengths)]) + roots
    level = np.concatenate([np.zeros(roots), np.ones(lengths.sum())]).astype(np.int32)
    host = forest_on_host(1)._replace(
        first=np.concatenate([first, np.full(lengths.sum(), first[-1])]),
        level=level,
        of_level=np.bincount(level).astype(np.int32),
    )
    queue = atos.Queue(len(level), device=device)
    for worker, num_threads in (("warp", 32), ("warp", 256), ("cta", 32), ("cta", 256), ("cta", 512)):
        for _ in range(5):
            there, counts = on_device(host, device)
            queue.push(np.arange(roots))
            launch(
                queue,
                worker,
                grow,
                there,
                counts,
                persistent=persistent,
                barrier=barrier,
                num_threads=num_threads,
                fetch_size=16,
            )
            assert_each_once(counts.seen.to_numpy())
            assert counts.early[0] == 0 or not barrier


@pytest.mark.timeout(120)
@every_schedule
@pytest.mark.parametrize("dtype", ["uint32", "int64", "16 bytes", "32 bytes"])
def test_large_random_trees_through_small_queues(worker, persistent, barrier, dtype):
    device = atos.device("cuda")
    forest = forest_on_host(100_000, 1, most=3, seed=5)
    filled = 0
    for capacity in (64, 5000):
        queue = atos.Queue(capacity, max_capacity=capacity, dtype=DTYPES[dtype], device=device)
        filled += run_through(queue, worker, forest, device, persistent=persistent, barrier=barrier)
    assert filled > 0  # the small one did: in the other, workers may keep what they push


# Configurations


@pytest.mark.parametrize("worker", ["thread", "warp", "cta"])
def test_more_blocks_than_can_be_resident_are_refused(worker):
    counts = atos.zeros(3, dtype=np.int64, device="cuda")
    queue = atos.Queue(10, device="cuda")
    queue.push([1, 2])
    resident = launch(queue, worker, count_item, counts).num_blocks
    assert resident >= atos.device("cuda").processors
    queue.push([1, 2])
    message = rf"{resident + 1} blocks of 256 threads asked for, but only {resident} are resident"
    for barrier in (False, True):
        with pytest.raises(LaunchConfigError, match=message):
            launch(queue, worker, count_item, counts, num_blocks=resident + 1, barrier=barrier)
    assert queue.peek().tolist() == [1, 2]
    assert launch(queue, worker, count_item, counts, num_blocks=resident).tasks_run == 2
    queue.push([1, 2])
    assert launch(queue, worker, count_item, counts, num_blocks=resident + 1, persistent=False).tasks_run == 2


def test_more_shared_memory_than_there_is_is_refused():
    counts = atos.zeros(3, dtype=np.int64, device="cuda")
    queue = atos.Queue(10, device="cuda")
    queue.push([1, 2])
    with pytest.raises(LaunchConfigError, match=r"needs \d+ bytes of shared memory, more than the \d+ that this GPU has"):
        queue.launch_thread(count_item, counts, shared_memory=4096, num_threads=1024)
    with pytest.raises(LaunchConfigError, match="shared memory"):
        queue.launch_cta(count_item, counts, shared_memory=1 << 20)
    assert queue.launch_cta(count_item, counts, shared_memory=100_000).tasks_run == 2
    assert queue.peek().tolist() == []


def test_blocks_of_1024_threads(worker):
    """A block of the largest size starts, whatever registers the task would like."""
    forest = forest_on_host(3000, 3)
    there, counts = on_device(forest, atos.device("cuda"))
    queue = atos.Queue(4000, device="cuda")
    queue.push([0, 1, 2])
    assert launch(queue, worker, grow, there, counts, num_threads=1024).num_threads == 1024
    assert_each_once(counts.seen.to_numpy())
