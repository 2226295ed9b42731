"""Every way to run a task graph whose totals are known: schedules, workers, blocks and idle functions, on each device."""

from __future__ import annotations

import numpy as np
import pytest
from shared_tasks import (
    SCHEDULES,
    assert_each_once,
    count_item,
    every_schedule,
    forest_on_host,
    grow,
    grow_flat,
    launch,
    on_device,
    plan,
)

import atos_py as atos


@every_schedule
@pytest.mark.parametrize("fetch_size", [1, 3, 32, 128])
@pytest.mark.parametrize("task", [grow, grow_flat], ids=["nested", "flat"])
def test_every_task_runs_once(device, worker, persistent, barrier, fetch_size, task):
    forest = forest_on_host(3000, 3)
    there, counts = on_device(forest, device)
    queue = atos.Queue(4000, device=device)
    queue.push([0, 1, 2])
    stats = launch(queue, worker, task, there, counts, persistent=persistent, barrier=barrier, fetch_size=fetch_size)
    assert_each_once(counts.seen.to_numpy())
    assert (stats.tasks_run, stats.tasks_pushed) == (3000, 2997)
    assert (stats.worker, stats.persistent, stats.barrier, stats.fetch_size) == (worker, persistent, barrier, fetch_size)
    assert (stats.task, stats.device) == (task.name, str(device))
    assert stats.milliseconds > 0
    assert stats.rounds >= 1
    assert len(queue) == 0
    if barrier:
        assert counts.early[0] == 0
        assert stats.rounds == len(forest.of_level)


@every_schedule
@pytest.mark.parametrize(("num_blocks", "num_threads"), [(1, 32), (1, 512), (2, 64), (7, 128)])
def test_blocks_and_threads(device, worker, persistent, barrier, num_blocks, num_threads):
    forest = forest_on_host(3000, 3)
    there, counts = on_device(forest, device)
    queue = atos.Queue(4000, device=device)
    queue.push([0, 1, 2])
    options = {"num_blocks": num_blocks, "num_threads": num_threads, "persistent": persistent, "barrier": barrier}
    stats = launch(queue, worker, grow, there, counts, **options)
    assert_each_once(counts.seen.to_numpy())
    assert stats.num_blocks == num_blocks
    if device.kind == "cpu":
        assert (stats.num_threads, stats.num_workers) == (1, num_blocks)
    else:
        per_block = {"thread": num_threads, "warp": num_threads // 32, "cta": 1}[worker]
        assert (stats.num_threads, stats.num_workers) == (num_threads, num_blocks * per_block)


@every_schedule
def test_a_barrier_keeps_levels_apart(device, worker, persistent, barrier):
    """Wide levels, more than the workers take at once, and so early pushes that could run at once."""
    forest = forest_on_host(12000, 2000, most=2, seed=3)
    there, counts = on_device(forest, device)
    queue = atos.Queue(12000, device=device)
    queue.push(np.arange(2000))
    stats = launch(queue, worker, grow, there, counts, persistent=persistent, barrier=barrier, fetch_size=4)
    assert_each_once(counts.seen.to_numpy())
    if barrier:
        assert counts.early[0] == 0
        assert stats.rounds == len(forest.of_level)


def test_without_a_barrier_levels_overlap():
    """The count of early nodes is not 0 without barriers: the test with barriers can fail."""
    forest = forest_on_host(2000, 1, most=3)
    there, counts = on_device(forest, atos.device("cpu"))
    queue = atos.Queue(4000, device="cpu")
    queue.push(np.arange(1, 2000)[forest.level[1:] == forest.level.max()])
    queue.launch_cta(grow, there, counts)
    assert counts.early[0] > 0


@every_schedule
def test_an_empty_queue(device, worker, persistent, barrier):
    there, counts = on_device(forest_on_host(10), device)
    queue = atos.Queue(10, device=device)
    stats = launch(queue, worker, grow, there, counts, persistent=persistent, barrier=barrier)
    assert (stats.tasks_run, stats.tasks_pushed, counts.seen.to_numpy().sum()) == (0, 0, 0)


def test_results_add_up_over_launches_on_a_small_ring(device, worker):
    """Many launches wrap around a ring that is hardly larger than what is pending."""
    chain = forest_on_host(30, most=1)
    there, counts = on_device(chain, device)
    queue = atos.Queue(3, device=device)
    rounds = 50
    for number in range(rounds):
        queue.push([0] if number % 2 else [0, 29])  # node 29 is the last of the chain
        persistent, barrier = SCHEDULES[number % 4]
        launch(queue, worker, grow, there, counts, persistent=persistent, barrier=barrier)
    expected = np.full(30, rounds)
    expected[29] += rounds // 2
    assert counts.seen.to_numpy().tolist() == expected.tolist()


def idle_pushing(worker, counts):
    """Count calls, and push as long as the budget lasts."""
    if worker.rank == 0:
        atos.atomic_add(counts, 1, 1)
        if atos.atomic_add(counts, 2, -1) > 0:
            worker.push(7)


@every_schedule
@pytest.mark.parametrize("budget", [0, 1, 1000])
@pytest.mark.parametrize("pushed", [0, 5])
def test_idle_pushes_run_and_a_quiet_round_ends_it(device, worker, persistent, barrier, budget, pushed):
    counts = atos.asarray(np.array([0, 0, budget]), device=device)
    queue = atos.Queue(2000, device=device)
    queue.push(np.arange(pushed))
    stats = launch(queue, worker, count_item, counts, idle=idle_pushing, persistent=persistent, barrier=barrier)
    ran, calls, left = counts.to_numpy()
    assert ran == stats.tasks_run == pushed + budget
    assert stats.tasks_pushed == budget
    assert left <= 0
    assert calls == budget - left
    assert calls >= budget + stats.num_workers if budget == 0 else calls >= stats.num_workers
    assert len(queue) == 0


def plan_with_seeds(item, forest, counts, seeds):
    return plan(item, forest, counts)


@atos.task(workload=plan_with_seeds)
def grow_seeded(worker, item, i, first, forest, counts, seeds):
    worker.push(first + i)


def plant(worker, forest, counts, seeds):
    """Push the next root: each of them once, however many ask."""
    if worker.rank == 0:
        root = atos.atomic_add(seeds, 0, 1)
        if root < forest.first[0]:
            worker.push(root)


@every_schedule
def test_idle_feeds_a_whole_forest(device, worker, persistent, barrier):
    forest = forest_on_host(3000, 400, most=2)
    there, counts = on_device(forest, device)
    seeds = atos.zeros(1, dtype=np.int64, device=device)
    queue = atos.Queue(6000, device=device)
    stats = launch(queue, worker, grow_seeded, there, counts, seeds, idle=plant, persistent=persistent, barrier=barrier)
    assert_each_once(counts.seen.to_numpy())
    assert stats.tasks_pushed == stats.tasks_run == 3000
