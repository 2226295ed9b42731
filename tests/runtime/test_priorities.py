"""Priorities: results never depend on them, nothing is lost or run twice, and where it can be seen they order the work."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from item_types import DTYPES, random_items
from shared_tasks import assert_each_once, every_schedule, launch

import atos_py as atos
from atos_py.errors import InvalidArgumentError, LaunchTimeoutError, QueueFullError, TaskCompileError, UnsupportedTypeError

# Shortest paths, against the least fixed point that NumPy finds.


def out_edges(v, indptr, indices, weights, distance):
    return indptr[v + 1] - indptr[v], indptr[v], distance[v]


@atos.task(workload=out_edges)
def relax(worker, v, i, first, length, indptr, indices, weights, distance):
    u, through = indices[first + i], length + weights[first + i]
    if atos.atomic_min(distance, u, through) > through:
        worker.push(u, through)


STEP = np.dtype([("vertex", "u4"), ("distance", "u4")])


def out_edges_of_record(item, indptr, indices, weights, distance):
    v = item.vertex
    return 0 if item.distance > distance[v] else indptr[v + 1] - indptr[v]


@atos.task(workload=out_edges_of_record)
def relax_record(worker, item, i, indptr, indices, weights, distance):
    edge = indptr[item.vertex] + i
    u, through = indices[edge], item.distance + weights[edge]
    if atos.atomic_min(distance, u, through) > through:
        worker.push((u, through), priority=through)


# The type of distances, the one that a search begins with, and the largest weight.
KINDS = {
    "uint32": (np.uint32, 0, 99),
    "signed": (np.int64, -700, 99),
    "unsigned, beyond single precision": (np.uint64, 1 << 60, 99),
    "float": (np.float64, -2.5, 9.5),
}


@functools.lru_cache
def problem(kind: str, graph: str = "road") -> tuple[np.ndarray, ...]:
    """Return the arrays of a graph with weights, distances at the start, and shortest ones."""
    dtype, start, most = KINDS[kind]
    sizes = {"road": 13, "large road": 60}
    there = atos.generate.road(sizes[graph], 0.8, device="cpu") if graph in sizes else atos.generate.rmat(7, 8, device="cpu")
    indptr, indices = there.indptr.to_numpy().astype(np.int64), there.indices.to_numpy()
    rng = np.random.default_rng(1)
    weights = (rng.uniform(0, most, len(indices)) if dtype is np.float64 else rng.integers(1, most, len(indices))).astype(dtype)
    never = np.inf if dtype is np.float64 else np.iinfo(dtype).max
    begin = np.full(len(indptr) - 1, never, dtype)
    begin[np.diff(indptr).argmax()] = start
    source, best = np.repeat(np.arange(len(begin)), np.diff(indptr)), begin.copy()
    while True:
        edges = best[source] != never
        last = best.copy()
        np.minimum.at(best, indices[edges], best[source[edges]] + weights[edges])
        if (best == last).all():
            assert (best != begin).sum() > 60
            return indptr, indices, weights, begin, best


class Search:
    """The arrays of a search on a device."""

    def __init__(self, kind: str, device: atos.Device, graph: str = "road") -> None:
        *parts, self.begin, self.best = problem(kind, graph)
        self.source, self.start = int((self.begin != self.begin.max()).argmax()), KINDS[kind][1]
        self.distance = atos.asarray(self.begin, device=device, copy=True)
        self.args = [*(atos.asarray(part, device=device, readonly=True) for part in parts), self.distance]

    def assert_shortest(self) -> None:
        assert self.distance.to_numpy().tolist() == self.best.tolist()


@every_schedule
@pytest.mark.parametrize("kind", KINDS)
def test_shortest_paths(device, worker, persistent, barrier, kind):
    search = Search(kind, device)
    queue = atos.Queue(500, device=device, buckets=4, delta=10)
    queue.push(search.source, priority=search.start)
    stats = launch(queue, worker, relax, *search.args, persistent=persistent, barrier=barrier)
    search.assert_shortest()
    assert stats.tasks_run == stats.tasks_pushed + 1
    assert len(queue) == 0


@every_schedule
@pytest.mark.parametrize(("buckets", "delta"), [(2, "auto"), (64, "auto"), (2, 0.3), (64, 7), (4, 1e-300), (4, 1e300)])
def test_shortest_paths_with_records(device, persistent, barrier, buckets, delta):
    search = Search("uint32", device, "rmat")
    queue = atos.Queue(500, dtype=STEP, device=device, buckets=buckets, delta=delta)
    for _ in range(2):  # the queue is used again
        search.distance[:] = search.begin
        queue.push((search.source, 0), priority=0)
        queue.launch_warp(relax_record, *search.args, persistent=persistent, barrier=barrier)
        search.assert_shortest()


@every_schedule
def test_a_full_queue_grows(device, worker, persistent, barrier):
    search = Search("uint32", device, "rmat")
    queue = atos.Queue(1, device=device, buckets=2, delta=3)
    queue.push(search.source)
    stats = launch(queue, worker, relax, *search.args, persistent=persistent, barrier=barrier)
    search.assert_shortest()
    assert stats.tasks_run == stats.tasks_pushed + 1


@every_schedule
def test_a_full_queue_that_may_not_grow_loses_nothing(device, worker, persistent, barrier):
    last = 1 << 16  # the widest level has more than the blocks of far items, of which there is at least one for each bucket
    seen = atos.zeros(last, dtype=np.int32, device=device)
    queue = atos.Queue(5, max_capacity=5, dtype=np.int64, device=device, buckets=4, delta=1)
    queue.push(1)
    options = {"persistent": persistent, "barrier": barrier, "fetch_size": 4, "num_blocks": 1}
    filled = 0
    while len(queue):
        try:
            launch(queue, worker, widen, last, seen, **options)
        except QueueFullError as error:
            filled += 1
            assert_all_is_there(queue, error, seen.to_numpy())
            ran = seen.to_numpy().tolist()
            with pytest.raises(QueueFullError, match="resize it first"):
                launch(queue, worker, widen, last, seen, **options)
            assert seen.to_numpy().tolist() == ran
            queue.resize(error.pending)
    assert filled > 0
    assert_each_once(seen.to_numpy()[1:])


def assert_all_is_there(queue: atos.Queue, error: QueueFullError, seen: np.ndarray) -> None:
    assert (error.pending, error.lost, error.capacity) == (len(queue), 0, queue.capacity)
    assert error.pending > queue.capacity
    assert seen.sum() == queue.tasks_run == queue.tasks_pushed + 1 - len(queue)


# Each item once.


def depth_of(node):
    depth = 0
    while node >> depth > 1:
        depth += 1
    return depth


def arrive(item, last, seen):
    atos.atomic_add(seen, item, 1)
    return 2


@atos.task(workload=arrive)
def widen(worker, item, i, last, seen):
    """Push the children of a node of a binary heap, the deeper the later."""
    child = 2 * item + i
    if child < last:
        worker.push(child, depth_of(child))


@atos.task(workload=arrive)
def deepen(worker, item, i, last, seen):
    """Push the children of a node of a binary heap, the deeper the sooner."""
    child = 2 * item + i
    if child < last:
        worker.push(child, -depth_of(child))


@atos.task
def deepen_flat(worker, item, last, seen):
    if worker.rank == 0:
        atos.atomic_add(seen, item, 1)
    for i in worker.split(2):
        child = 2 * item + i
        if child < last:
            worker.push(child, -depth_of(child))


@every_schedule
@pytest.mark.parametrize("task", [deepen, deepen_flat], ids=["nested", "flat"])
def test_depth_first_by_negative_depth(device, worker, persistent, barrier, task):
    seen = atos.zeros(3000, dtype=np.int32, device=device)
    queue = atos.Queue(4000, dtype=np.int64, device=device, buckets=16, delta=1)
    queue.push(1)
    stats = launch(queue, worker, task, 3000, seen, persistent=persistent, barrier=barrier)
    assert_each_once(seen.to_numpy()[1:])
    assert (stats.tasks_run, stats.tasks_pushed) == (2999, 2998)


@pytest.mark.parametrize("delta", [1, "auto"])
def test_depth_first_needs_little_memory(device, delta):
    """A tree of 2**19 leaves fits in a queue for far fewer; in order of arrival it would not."""
    last, capacity = 1 << 20, 1 << 14
    seen = atos.zeros(last, dtype=np.int32, device=device)
    queue = atos.Queue(capacity, max_capacity=capacity, dtype=np.int64, device=device, buckets=32, delta=delta)
    queue.push(1)
    queue.launch_cta(deepen, last, seen, num_blocks=2, num_threads=32, fetch_size=16)
    assert_each_once(seen.to_numpy()[1:])


EXTREMES = [float("nan"), float("inf"), -float("inf"), 1e30, -1e30, 2**53 + 1, 2**64 - 1, -(2**63), 1e-40, -0.0, 0, 1.5, 1e308]


@atos.task
def count(worker, item, priorities, seen):
    """Count an item, and push it once more with its own priority."""
    if worker.rank == 0 and atos.atomic_add(seen, item, 1) == 0:
        worker.push(item, priorities[item])


@every_schedule
@pytest.mark.parametrize("delta", ["auto", 1, 1e-300, 1e300])
def test_every_priority_runs(device, persistent, barrier, delta):
    priorities = np.repeat(np.array(EXTREMES, np.float64), 20)
    seen = atos.zeros(len(priorities), dtype=np.int32, device=device)
    queue = atos.Queue(1000, device=device, buckets=4, delta=delta)
    queue.push(np.arange(len(priorities)), priorities)
    queue.launch_warp(count, atos.asarray(priorities, device=device), seen, persistent=persistent, barrier=barrier)
    assert seen.to_numpy().tolist() == [2] * len(priorities)


@pytest.mark.parametrize("number", [2**53 + 1, 2**64 - 1, -(2**63), True, np.float32(0.1), np.uint64(2**64 - 1)], ids=repr)
def test_priorities_of_any_type_of_number(number):
    queue = atos.Queue(10, device="cpu", buckets=4)
    queue.push([1, 2], number)
    queue.push([3, 4], [number, number])
    assert queue.peek().tolist() == [1, 2, 3, 4]


numbers = st.floats() | st.integers(-(2**63), 2**63 - 1).map(float) | st.integers(-5, 5).map(float)


@given(
    priorities=st.lists(numbers, max_size=60),
    buckets=st.sampled_from([2, 4, 64]),
    delta=st.just("auto") | st.floats(1e-300, 1e300),
    capacity=st.sampled_from([1, 10, 1000]),
    options=st.fixed_dictionaries(
        {
            "persistent": st.booleans(),
            "barrier": st.booleans(),
            "num_blocks": st.integers(1, 3),
            "fetch_size": st.sampled_from([1, 3, 128]),
        }
    ),
)
@settings(deadline=None, max_examples=60)
def test_any_priorities_run_each_item(priorities, buckets, delta, capacity, options):
    seen = np.zeros(len(priorities) + 1, np.int32)
    queue = atos.Queue(capacity, device="cpu", buckets=buckets, delta=delta)
    queue.push(np.arange(len(priorities)), np.array(priorities, np.float64))
    queue.launch_cta(count, np.array([*priorities, 0.0]), seen, **options)
    assert seen[:-1].tolist() == [2] * len(priorities)


@pytest.mark.parametrize("name", ["int64", "uint64", "8 bytes", "12 bytes, unaligned", "16 bytes"])
def test_items_of_every_size_come_back(device, worker, name):
    """Each is pushed by tasks over and over, and taken back from a stopped launch."""

    @atos.task
    def back(worker, item, turn):
        if worker.rank == 0:
            count = atos.atomic_add(turn, 0, 1)
            worker.push(item, count % 50)
            if count == 1000:
                worker.stop()

    items = random_items(DTYPES[name], 50)
    turn = atos.zeros(1, dtype=np.int64, device=device)
    queue = atos.Queue(100, dtype=DTYPES[name], device=device, buckets=4, delta=1)
    queue.push(items, np.random.default_rng(0).permutation(50))
    assert launch(queue, worker, back, turn, timeout=60, num_blocks=2).stopped
    assert turn[0] > 1000
    assert sorted(queue.peek().tolist()) == sorted(items.tolist())


def leaves_of(v, n, seen):
    atos.atomic_add(seen, v, 1)
    return n if v == 0 else 0


@atos.task(workload=leaves_of)
def scatter(worker, v, i, n, seen):
    """Push a leaf in each iteration, near or far."""
    worker.push(i + 1, priority=i * 7 % 100)


@every_schedule
@pytest.mark.parametrize("delta", [1, 50])
def test_a_long_step_whose_pushes_are_flushed_before_its_end(device, worker, persistent, barrier, delta):
    n = 300_000
    for _ in range(3):
        seen = atos.zeros(n + 1, dtype=np.int32, device=device)
        queue = atos.Queue(n + 1, device=device, buckets=4, delta=delta)
        queue.push(0, priority=0)
        launch(queue, worker, scatter, n, seen, persistent=persistent, barrier=barrier, num_blocks=4)
        assert_each_once(seen.to_numpy())


# Order.


@atos.task
def log(worker, v, order, ran):
    if worker.rank == 0:
        order[atos.atomic_add(ran, 0, 1)] = v


@every_schedule
@pytest.mark.parametrize("buckets", [2, 32])
def test_one_worker_runs_items_in_order_of_their_priorities(persistent, barrier, buckets):
    """Not promised, but the purpose of the hint: one worker, one item at a time, leaves nothing else to disturb the order."""
    ranks = np.random.default_rng(0).permutation(300) - 150
    order, ran = np.zeros(300, np.int64), np.zeros(1, np.int64)
    queue = atos.Queue(300, device="cpu", dtype=np.int64, buckets=buckets, delta=1)
    queue.push(ranks, ranks)
    queue.launch_cta(log, order, ran, num_blocks=1, fetch_size=1, persistent=persistent, barrier=barrier)
    assert order.tolist() == sorted(ranks.tolist())


@atos.task(workload=out_edges)
def relax_in_order_of_arrival(worker, v, i, first, length, indptr, indices, weights, distance):
    u, through = indices[first + i], length + weights[first + i]
    if atos.atomic_min(distance, u, through) > through:
        worker.push(u)


@every_schedule
def test_priorities_save_work(persistent, barrier):
    """With one worker, which makes the numbers of tasks the same each time."""
    options = {"num_blocks": 1, "fetch_size": 1, "persistent": persistent, "barrier": barrier}
    runs = []
    for buckets, task in ((None, relax_in_order_of_arrival), (64, relax)):
        search = Search("uint32", atos.device("cpu"), "large road")
        queue = atos.Queue(10_000, device="cpu", buckets=buckets, **({"delta": 10} if buckets else {}))
        queue.push(search.source)
        runs.append(queue.launch_cta(task, *search.args, **options).tasks_run)
        search.assert_shortest()
    assert runs[1] < 0.7 * runs[0], runs


# What a queue with buckets can do between launches.


def test_peek_is_in_order_of_priority(device):
    queue = atos.Queue(4, device=device, buckets=2, delta=10)
    queue.push([5, 1, 9], priority=[5, 1, 9])
    queue.push(7)  # priority 0
    queue.push([8, 6], 5)
    assert queue.peek().tolist() == [7, 1, 5, 8, 6, 9]
    assert len(queue) == 6
    assert queue.capacity >= 6


def test_clear_and_resize(device):
    seen = atos.zeros(30, dtype=np.int32, device=device)
    zeros = atos.zeros(30, device=device)
    queue = atos.Queue(20, device=device, buckets=2, delta=10)
    queue.push(np.arange(20), np.arange(20))
    queue.resize(25)
    assert (queue.peek().tolist(), queue.capacity) == (list(range(20)), 25)
    with pytest.raises(InvalidArgumentError, match="less than the 20 tasks pending"):
        queue.resize(19)
    queue.clear()
    assert (len(queue), queue.peek().tolist()) == (0, [])
    queue.push(np.arange(25), -np.arange(25))
    queue.launch_cta(count, zeros, seen)
    assert seen.to_numpy().tolist() == [2] * 25 + [0] * 5


def test_a_full_queue_takes_no_item(device):
    queue = atos.Queue(4, max_capacity=4, device=device, buckets=2)
    queue.push([1, 2, 3])
    with pytest.raises(QueueFullError, match="would exceed its max_capacity of 4"):
        queue.push([4, 5], [1, 2])
    assert queue.peek().tolist() == [1, 2, 3]


@every_schedule
def test_a_stopped_launch_goes_on(device, persistent, barrier):
    """Stopped at any time, and launched again, it comes to the right end."""
    last = 2000

    @atos.task(workload=arrive)
    def widen_slowly(worker, item, i, last, seen):
        for _ in range(20000):
            if i == 0:
                atos.atomic_add(seen, 0, 1)
        child = 2 * item + i
        if child < last:
            worker.push(child, depth_of(child))

    seen = atos.zeros(last, dtype=np.int32, device=device)
    queue = atos.Queue(last, dtype=np.int64, device=device, buckets=4, delta=2)
    queue.push(1)
    stops = 0
    while len(queue):
        try:
            queue.launch_thread(
                widen_slowly, last, seen, timeout=0.001 * 2**stops, num_blocks=1, persistent=persistent, barrier=barrier
            )
        except LaunchTimeoutError:
            stops += 1
    assert stops > 0
    assert_each_once(seen.to_numpy()[1:])


@pytest.mark.parametrize("launched", [(None, 4, None, 4)])
def test_one_task_on_queues_with_and_without_buckets(device, launched):
    """They need different programs, which must not be mixed up."""

    @atos.task
    def halve(worker, v, seen):
        if worker.rank == 0:
            atos.atomic_add(seen, v, 1)
            if v > 1:
                worker.push(v // 2)

    for buckets in launched:
        seen = atos.zeros(10, dtype=np.int32, device=device)
        queue = atos.Queue(10, device=device, buckets=buckets)
        queue.push(8)
        queue.launch_warp(halve, seen)
        assert seen.to_numpy().tolist() == [0, 1, 1, 0, 1, 0, 0, 0, 1, 0]


def test_no_priority_is_none(device):
    @atos.task
    def follow(worker, v, seen):
        if worker.rank == 0:
            atos.atomic_add(seen, v, 1)
            if v < 3:
                worker.push(v + 1, None)
            elif v < 6:
                worker.push(v + 1, priority=None)

    for buckets in (None, 4):
        seen = atos.zeros(7, dtype=np.int32, device=device)
        queue = atos.Queue(10, device=device, buckets=buckets)
        queue.push(0, None)
        queue.launch_thread(follow, seen)
        assert seen.to_numpy().tolist() == [1] * 7


@pytest.mark.parametrize("nothing", ["none", "omitted"])
def test_no_priority_is_zero(nothing):
    @atos.task
    def first(worker, v, order, ran):
        order[atos.atomic_add(ran, 0, 1)] = v
        if v == 0:
            worker.push(1, 5)
            if nothing == "none":
                worker.push(2, None)
            else:
                worker.push(2)
            worker.push(3, -5)

    order = np.zeros(4, np.int64)
    queue = atos.Queue(10, device="cpu", buckets=4, delta=1)
    queue.push(0)
    queue.launch_cta(first, order, np.zeros(1, np.int64), num_blocks=1, fetch_size=1)
    assert order.tolist() == [0, 3, 2, 1]


# What is refused.


def push_a_priority(worker, v):
    worker.push(v, 1)


def push_text(worker, v):
    worker.push(v, "first")


def push_by_other_name(worker, v):
    worker.push(v, urgency=1)


def push_two(worker, v):
    worker.push(v, 1, 2)


def push_nothing(worker, v):
    worker.push(priority=1)


@pytest.mark.parametrize(
    ("buckets", "function", "message"),
    [
        (None, push_a_priority, r"takes a priority only if the queue has buckets: make it with atos.Queue\(capacity, buckets="),
        (4, push_text, "the priority of worker.push is a number or None, not"),
        (4, push_by_other_name, "takes an item by position, and a priority"),
        (4, push_two, "takes an item by position, and a priority"),
        (4, push_nothing, "takes an item by position, and a priority"),
    ],
)
def test_pushes_of_tasks_that_are_refused(buckets, function, message):
    queue = atos.Queue(10, device="cpu", buckets=buckets)
    queue.push(1)
    with pytest.raises(TaskCompileError, match=message):
        queue.launch_cta(atos.task(function))
    assert queue.peek().tolist() == [1]


@pytest.mark.parametrize(
    ("priority", "error", "message"),
    [
        ("first", UnsupportedTypeError, "priorities are numbers"),
        ([1, None], UnsupportedTypeError, "priorities are numbers"),
        (1j, UnsupportedTypeError, "priorities are numbers"),
        ([1], InvalidArgumentError, r"one for each of the 2 items \(got shape \(1,\)\)"),
        ([1, 2, 3], InvalidArgumentError, r"one for each of the 2 items \(got shape \(3,\)\)"),
        ([[1, 2]], InvalidArgumentError, r"one for each of the 2 items \(got shape \(1, 2\)\)"),
        ([], InvalidArgumentError, r"one for each of the 2 items \(got shape \(0,\)\)"),
    ],
    ids=repr,
)
def test_pushes_of_the_host_that_are_refused(priority, error, message):
    queue = atos.Queue(10, device="cpu", buckets=2)
    with pytest.raises(error, match=message):
        queue.push([1, 2], priority)
    assert len(queue) == 0


def test_priorities_without_buckets_are_refused():
    queue = atos.Queue(10, device="cpu")
    with pytest.raises(InvalidArgumentError, match=r"only a queue with buckets takes priorities: make it with atos.Queue"):
        queue.push([1, 2], 0)
    assert (len(queue), queue.buckets, queue.delta) == (0, None, None)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"buckets": 3}, InvalidArgumentError, r"buckets must be a power of two \(got 3\)"),
        ({"buckets": 1}, InvalidArgumentError, "buckets must be from 2"),
        ({"buckets": 0}, InvalidArgumentError, "buckets must be from 2"),
        ({"buckets": 1 << 30}, InvalidArgumentError, "buckets must be from 2"),
        ({"buckets": 2.0}, UnsupportedTypeError, "buckets"),
        ({"delta": 1}, InvalidArgumentError, "pass buckets= as well"),
        ({"buckets": 4, "delta": 0}, InvalidArgumentError, r'delta must be a number above 0 or "auto" \(got 0'),
        ({"buckets": 4, "delta": -1}, InvalidArgumentError, r"\(got -1"),
        ({"buckets": 4, "delta": float("nan")}, InvalidArgumentError, "nan"),
        ({"buckets": 4, "delta": float("inf")}, InvalidArgumentError, "inf"),
        ({"buckets": 4, "delta": "x"}, InvalidArgumentError, r"\(got 'x'\)"),
        ({"buckets": 4, "delta": None}, UnsupportedTypeError, "delta"),
        ({"buckets": 4, "delta": [1]}, UnsupportedTypeError, "delta"),
    ],
    ids=repr,
)
def test_buckets_that_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        atos.Queue(10, device="cpu", **options)


def test_what_a_queue_says_of_its_buckets():
    queue = atos.Queue(10, device="cpu", buckets=8)
    assert (queue.buckets, queue.delta) == (8, "auto")
    assert atos.Queue(10, device="cpu", buckets=8, delta=3).delta == 3
