"""Queues that take the newest items first: each task runs once, trees take little memory, and nothing waits for ever."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from item_types import DTYPES
from shared_tasks import (
    CALL,
    TASKS,
    again,
    assert_each_once,
    count_item,
    fibonacci,
    forest_on_host,
    grow,
    grow_flat,
    on_device,
    run_through,
)

import atos_py as atos
from atos_py.errors import InvalidArgumentError, LaunchConfigError, LaunchTimeoutError, TaskError

ONE = {"num_blocks": 1, "num_threads": 32}


def one(device: atos.Device) -> dict[str, int]:
    """Return options for a block of 32 threads, or a thread of the CPU."""
    return ONE if device.kind == "cuda" else {"num_blocks": 1}


@pytest.mark.parametrize("dtype", TASKS)
@pytest.mark.parametrize("stack", [None, 0, 5])
def test_each_task_runs_once(device, worker, dtype, stack):
    """With small stacks most pushes find no room there, and go to the queue, which grows."""
    queue = atos.Queue(capacity=10, dtype=DTYPES[dtype], device=device, take="newest")
    experiment = atos.Experiment(push_buffer=stack)
    assert run_through(queue, worker, forest_on_host(20_000, 3, 5), device, experiment=experiment) == 0


@pytest.mark.parametrize("stack", [None, 2])
def test_a_full_queue_keeps_everything(device, worker, stack):
    queue = atos.Queue(capacity=7, max_capacity=7, device=device, take="newest")
    filled = run_through(queue, worker, forest_on_host(3_000, 1, 6), device, experiment=atos.Experiment(push_buffer=stack))
    assert filled > 0 or stack is None


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    worker=st.sampled_from(["thread", "warp", "cta"]),
    fetch_size=st.sampled_from([1, 2, 7, 32, 200]),
    stack=st.sampled_from([None, 0, 1, 2, 9, 100, 5000]),
    num_blocks=st.sampled_from([None, 1, 2]),
    most=st.integers(1, 9),
    roots=st.integers(1, 300),
    sharing=st.booleans(),
    flat=st.booleans(),
)
def test_random_trees(device, worker, fetch_size, stack, num_blocks, most, roots, sharing, flat):
    forest, counts = on_device(forest_on_host(5_000, roots, most, seed=most), device)
    queue = atos.Queue(capacity=300, device=device, take="newest")
    queue.push(range(roots))
    experiment = atos.Experiment(push_buffer=stack, work_sharing=sharing)
    stats = queue.launch(
        grow_flat if flat else grow,
        forest,
        counts,
        worker=worker,
        fetch_size=fetch_size,
        num_blocks="auto" if num_blocks is None else num_blocks,
        experiment=experiment,
    )
    assert_each_once(counts.seen.to_numpy())
    assert (stats.tasks_run, stats.tasks_pushed, len(queue)) == (5_000, 5_000 - roots, 0)


@atos.task
def note_order(worker, v, first, order, ran):
    """Write down when a node runs, and push its children."""
    if worker.rank == 0:
        order[atos.atomic_add(ran, 0, 1)] = v
        for child in range(first[v], first[v + 1]):
            worker.push(child)


def depth_first(first: np.ndarray) -> list[int]:
    """Return the nodes of a tree in the order of a search with a stack."""
    stack, order = [0], []
    while stack:
        v = stack.pop()
        order.append(v)
        stack.extend(range(first[v], first[v + 1]))
    return order


@pytest.mark.parametrize("worker", ["warp", "cta"])
def test_one_worker_goes_depth_first(device, worker):
    """As long as no other item has its turn, which is once in 16,384 steps."""
    forest = forest_on_host(900, 1, 3)
    queue = atos.Queue(capacity=10, device=device, take="newest")
    queue.push([0])
    order, ran = (atos.zeros(n, dtype=np.int32, device=device) for n in (900, 1))
    first = atos.asarray(forest.first, device=device)
    queue.launch(note_order, first, order, ran, worker=worker, fetch_size=1, **one(device))
    assert order.to_numpy().tolist() == depth_first(forest.first)


@atos.task
def two_children(worker, depth, pending):
    """Push two items of less depth; `pending` has the number of items that wait, and the most there were."""
    if worker.rank == 0:
        there = atos.atomic_add(pending, 0, 1 if depth > 0 else -1) + (1 if depth > 0 else -1)
        atos.atomic_max(pending, 1, there)
        if depth > 0:
            worker.push(depth - 1)
            worker.push(depth - 1)


@pytest.mark.parametrize("worker", ["thread", "warp"])
def test_a_tree_takes_little_memory(device, worker):
    """At most workers x batch x depth x branching items wait, as long as no other items have their turn."""
    depth, most = 13, {}
    for take in ("oldest", "newest"):
        queue = atos.Queue(capacity=1000, device=device, take=take)
        queue.push([depth])
        pending = atos.asarray(np.ones(2, np.int64), device=device)
        fetch_size = 1 if worker == "thread" else 2
        stats = queue.launch(two_children, pending, worker=worker, fetch_size=fetch_size, num_blocks=2)
        assert stats.tasks_run == 2 ** (depth + 1) - 1
        assert pending[0] == 0
        most[take] = int(pending[1])
    assert most["newest"] <= stats.num_workers * stats.fetch_size * depth * 2
    assert device.kind == "cpu" or most["newest"] < most["oldest"]


@atos.task
def wait_for_another(worker, v, ran):
    """Item 0 pushes 1 first, and then 300 others; these push themselves again until 1 has run."""
    if worker.rank == 0:
        if v == 0:
            for number in range(1, 301):
                worker.push(number)
        elif v == 1 or ran[1] != 0:
            atos.atomic_add(ran, v, 1)
        else:
            worker.push(v)


@pytest.mark.parametrize("fetch_size", [1, 4])
def test_the_oldest_item_of_a_stack_has_its_turn(device, worker, fetch_size):
    queue = atos.Queue(capacity=10, device=device, take="newest")
    queue.push([0])
    ran = atos.zeros(301, dtype=np.int32, device=device)
    queue.launch(wait_for_another, ran, worker=worker, fetch_size=fetch_size, timeout=60, **one(device))
    assert_each_once(ran.to_numpy()[1:])


def test_items_in_the_queue_have_their_turn(device, worker):
    """The item that all others wait for comes last, when the workers have their stacks full."""
    queue = atos.Queue(capacity=1000, device=device, take="newest")
    queue.push([*range(2, 301), 1])
    ran = atos.zeros(301, dtype=np.int32, device=device)
    queue.launch(wait_for_another, ran, worker=worker, timeout=60, **one(device))
    assert_each_once(ran.to_numpy()[1:])


@pytest.mark.parametrize("fetch_size", [1, 32])
def test_a_timeout_leaves_everything_in_the_queue(device, worker, fetch_size):
    """Each launch leaves what is on the stacks in the queue, also where the ring has no room for it."""
    queue = atos.Queue(capacity=1000, device=device, take="newest")
    queue.push(range(700))
    for _ in range(3):
        with pytest.raises(LaunchTimeoutError, match="700 tasks are unfinished"):
            queue.launch(again, worker=worker, fetch_size=fetch_size, timeout=0.05)
        assert np.sort(queue.peek()).tolist() == list(range(700))


@pytest.mark.parametrize("timeout", [0.002, 0.02])
def test_a_tree_goes_on_after_stops(device, worker, timeout):
    forest, counts = on_device(forest_on_host(200_000, 1, 3), device)
    queue = atos.Queue(capacity=100, device=device, take="newest")
    queue.push([0])
    queue.launch(grow, forest, counts, worker=worker)  # compiled
    counts.seen.fill(0)
    queue.push([0])
    for _ in range(10_000):
        try:
            queue.launch(grow, forest, counts, worker=worker, timeout=timeout)
            break
        except LaunchTimeoutError as stop:
            left = stop.pending
        assert len(queue) == left
    assert_each_once(counts.seen.to_numpy())
    assert len(queue) == 0


@atos.task
def stop_in_between(worker, v, ran):
    if worker.rank == 0:
        atos.atomic_add(ran, v, 1)
        if v == 1500:
            worker.stop()
        if 2 * v + 2 < ran.size:
            worker.push(2 * v + 1)
            worker.push(2 * v + 2)


def test_a_task_that_stops_leaves_everything_in_the_queue(device, worker):
    queue = atos.Queue(capacity=10, device=device, take="newest")
    queue.push([0])
    ran = atos.zeros(8191, dtype=np.int32, device=device)
    stats = queue.launch(stop_in_between, ran, worker=worker)
    assert stats.stopped
    assert stats.tasks_run + len(queue) == 1 + stats.tasks_pushed
    queue.launch(stop_in_between, ran, worker=worker)
    assert_each_once(ran.to_numpy())


@atos.task
def fail_at(worker, v, ran):
    if worker.rank == 0:
        if v == 500:
            ran[1 << 20] = 1
        atos.atomic_add(ran, v, 1)
        if 2 * v + 2 < ran.size:
            worker.push(2 * v + 1)
            worker.push(2 * v + 2)


def test_a_failed_check_keeps_what_is_pending(device, worker):
    queue = atos.Queue(capacity=10, device=device, take="newest")
    queue.push([0])
    ran = atos.zeros(2047, dtype=np.int32, device=device)
    with pytest.raises(TaskError, match="500"):  # which the message names
        queue.launch(fail_at, ran, worker=worker, debug=True)
    ended = int(ran.to_numpy().sum())
    while len(queue):  # item 1500 stops a launch
        queue.launch(stop_in_between, ran, worker=worker)
    below = sum(1 for v in range(2047) if any((v + 1) >> shift == 501 for shift in range(12)))
    assert ran.to_numpy().max() == 1
    assert int(ran.to_numpy().sum()) == 2047 - below > ended


@atos.task
def long_loop(worker, v, i, ran):
    """One of 6,000 iterations of item 0, which all workers share; each pushes an item without any."""
    atos.atomic_add(ran, i, 1)
    worker.push(i + 1)


def iterations(v, ran):
    return len(ran) if v == 0 else 0


def test_long_items_are_shared(device, worker):
    task = atos.task(workload=iterations)(long_loop.body)
    queue = atos.Queue(capacity=10, device=device, take="newest")
    queue.push([0])
    ran = atos.zeros(60_000, dtype=np.int32, device=device)
    assert queue.launch(task, ran, worker=worker).tasks_run == 60_001
    assert_each_once(ran.to_numpy())


def test_joins(device, worker):
    queue = atos.Queue(capacity=10, dtype=CALL, device=device, take="newest")
    joins = atos.Joins(capacity=1 << 14, device=device)
    queue.push([(17, 0)])
    queue.launch(fibonacci, joins, worker=worker)
    assert (joins.result, joins.pending) == (1597, 0)


@atos.task
def send_on(worker, v, first, forest, counts):
    """Leave a node's children to the idle function."""
    if worker.rank == 0:
        atos.atomic_add(counts.seen, v, 1)
        atos.atomic_add(first, 0, 1)


def push_more(worker, first, forest, counts):
    if worker.rank == 0:
        number = atos.atomic_add(first, 1, 1)
        if number < len(counts.seen):
            worker.push(number)


def test_idle_functions_push(device, worker):
    forest, counts = on_device(forest_on_host(500), device)
    first = atos.zeros(2, dtype=np.int64, device=device)
    queue = atos.Queue(capacity=10, device=device, take="newest")
    queue.launch(send_on, first, forest, counts, worker=worker, idle=push_more)
    assert_each_once(counts.seen.to_numpy())


def test_items_from_the_host(device, worker):
    forest, counts = on_device(forest_on_host(30_000, 3_000, 5), device)
    queue = atos.Queue(capacity=10, device=device, take="newest")
    with queue.start(grow, forest, counts, worker=worker) as run:
        for begin in range(0, 3_000, 100):
            run.push(range(begin, begin + 100))
    assert_each_once(counts.seen.to_numpy())


@atos.task
def child_of_a(worker, v, ran):
    if worker.rank == 0:
        atos.atomic_add(ran, v, 1)
        if 2 * v + 2 < ran.size:
            worker.push(2 * v + 1, task=child_of_b)
            worker.push(2 * v + 2, task=child_of_a)


@atos.task
def child_of_b(worker, v, ran):
    if worker.rank == 0:
        atos.atomic_add(ran, v, 1)
        if 2 * v + 2 < ran.size:
            worker.push(2 * v + 1, task=child_of_a)
            worker.push(2 * v + 2, task=child_of_b)


def test_tasks_of_several_kinds(device, worker):
    queue = atos.Queue(capacity=10, device=device, take="newest")
    queue.push([0])
    ran = atos.zeros(8191, dtype=np.int32, device=device)
    stats = queue.launch((child_of_a, child_of_b), ran, worker=worker)
    assert_each_once(ran.to_numpy())
    assert sum(stats.tasks_run_by.values()) == 8191


def test_a_checkpoint_keeps_the_order(device, tmp_path):
    queue = atos.Queue(capacity=10, device=device, take="newest")
    queue.push([3, 4])
    queue.save(tmp_path / "queue")
    loaded = atos.Queue.load(tmp_path / "queue", device=device)
    assert (loaded.take, loaded.peek().tolist()) == ("newest", [3, 4])
    atos.Queue(capacity=10, device=device).save(tmp_path / "queue")
    assert atos.Queue.load(tmp_path / "queue", device=device).take == "oldest"


def test_a_checkpoint_is_loaded_over_devices_too(tmp_path):
    queue = atos.Queue(capacity=10, device="cpu", take="newest")
    queue.push([3, 4])
    queue.save(tmp_path / "queue")
    loaded = atos.Queue.load(tmp_path / "queue", owner=atos.generate.grid2d(4, 4).partition(["cpu:0", "cpu:1"]))
    assert (loaded.take, sorted(loaded.peek().tolist())) == ("oldest", [3, 4])


def test_the_statistics_count_the_stacks(device):
    queue, counts = atos.Queue(capacity=10, device=device, take="newest"), atos.zeros(1, dtype=np.int32, device=device)
    queue.push([1])
    before = queue.launch_warp(count_item, counts).overhead_bytes
    plain = atos.Queue(capacity=10, device=device)
    plain.push([1])
    assert (before > plain.launch_warp(count_item, counts).overhead_bytes) == (device.kind == "cuda")


@pytest.mark.parametrize("options", [{"persistent": False}, {"barrier": True}, {"persistent": False, "barrier": True}])
def test_rounds_are_refused(device, options):
    queue, counts = atos.Queue(capacity=10, device=device, take="newest"), atos.zeros(1, dtype=np.int32, device=device)
    queue.push([1])
    with pytest.raises(LaunchConfigError, match=r'take="newest" is persistent and has no barrier \(got persistent='):
        queue.launch_warp(count_item, counts, **options)
    assert len(queue) == 1


def test_what_has_another_order_is_refused():
    with pytest.raises(InvalidArgumentError, match=r"without buckets \(got buckets=4\)"):
        atos.Queue(capacity=10, buckets=4, take="newest", device="cpu")
    owner = atos.generate.grid2d(4, 4).partition(["cpu:0", "cpu:1"])
    with pytest.raises(InvalidArgumentError, match=r"on one device without buckets \(got several devices\)"):
        atos.Queue(capacity=10, owner=owner, take="newest")
    with pytest.raises(InvalidArgumentError, match=r"take must be one of oldest, newest \(got 'lifo'\)"):
        atos.Queue(capacity=10, take="lifo", device="cpu")
