"""Several kinds of tasks in one launch: which task runs an item, how they are counted, and what a queue keeps of them."""

from __future__ import annotations

import hashlib
import threading
from typing import Any

import numpy as np
import pytest
from item_types import DTYPES, all_dtypes
from shared_tasks import arrive, assert_each_once, every_schedule, forest_on_host, launch, on_device

import atos_py as atos
from atos_py.errors import (
    CheckpointError,
    InvalidArgumentError,
    QueueFullError,
    TaskCompileError,
    TaskError,
    UnsupportedTypeError,
)
from atos_py.runtime import checkpoint


def plan_even(v, forest, counts):
    if v % 3 != 0:
        atos.atomic_add(counts.early, 0, 1 << 20)
    arrive(v, forest, counts)
    return forest.first[v + 1] - forest.first[v], forest.first[v], v


@atos.task(workload=plan_even)
def nested(worker, v, i, first, same, forest, counts):
    """Push child i of a node whose number is a multiple of 3."""
    if same != v:
        atos.atomic_add(counts.early, 0, 1 << 20)
    push_node(worker, first + i)


@atos.task
def flat(worker, v, forest, counts):
    """Push the children of other nodes, of which those that leave 1 are for this task."""
    wrong = worker.sum(1) != worker.size or worker.any(v % 3 != 1)
    if worker.rank == 0:
        if wrong:
            atos.atomic_add(counts.early, 0, 1 << 20)
        arrive(v, forest, counts)
    for child in worker.split(range(forest.first[v], forest.first[v + 1])):
        push_node(worker, child)


@atos.task(workload=lambda v, forest, counts: 1)
def other(worker, v, i, forest, counts):
    """Push the children of nodes that leave 2, one iteration for all."""
    if v % 3 != 2:
        atos.atomic_add(counts.early, 0, 1 << 20)
    arrive(v, forest, counts)
    for child in range(forest.first[v], forest.first[v + 1]):
        push_node(worker, child)


def push_node(worker, child):
    if child % 3 == 0:
        worker.push(child)
    elif child % 3 == 1:
        worker.push(child, task=flat)
    else:
        worker.push(child, task=other)


KINDS = (nested, flat, other)


def push_roots(queue: atos.Queue, roots: int) -> None:
    for number, task in enumerate(KINDS):
        queue.push(np.arange(number, roots, 3), task=task if number else None)


def check(forest: Any, counts: Any, stats: list[atos.LaunchStats]) -> None:
    assert counts.early[0] < 1 << 20, "an item was run by a task of another kind"
    assert_each_once(counts.seen.to_numpy())
    n = len(forest.level)
    assert atos.LaunchStats.total(stats).tasks_run_by == {task.name: len(range(k, n, 3)) for k, task in enumerate(KINDS)}


@every_schedule
def test_each_item_is_run_by_its_task(device, worker, persistent, barrier):
    forest = forest_on_host(3000, 10)
    there, counts = on_device(forest, device)
    queue = atos.Queue(100, device=device)
    push_roots(queue, 10)
    stats = launch(queue, worker, KINDS, there, counts, persistent=persistent, barrier=barrier)
    check(forest, counts, [stats])
    assert stats.tasks_run == 3000
    assert len(queue) == 0
    assert not barrier or counts.early[0] == 0


def test_kinds_in_any_order_of_the_launch(device, worker):
    """Waiting items keep their task if the next launch has the tasks in another order, in a list or a tuple."""
    forest = forest_on_host(300, 30)
    there, counts = on_device(forest, device)
    queue = atos.Queue(1000, device=device)
    queue.push(np.arange(2, 30, 3), task=other)
    queue.push(np.arange(0, 30, 3), task=nested)
    queue.push(np.arange(1, 30, 3), task=flat)

    @atos.task
    def last(worker, v, forest, counts):
        counts.early[0] = -1

    stats = launch(queue, worker, [flat, last, other, nested], there, counts)
    assert stats.tasks_run_by.pop("last") == 0
    # A push without a task is for the first of the launch, so that of nodes that are multiples of 3 was not for `nested`.
    assert stats.tasks_run == sum(stats.tasks_run_by.values()) == 300
    assert list(stats.tasks_run_by) == ["flat", "other", "nested"]


@atos.task
def add_by_scratch(worker, v, out):
    """Add up in scratch memory, by all threads, what the last item left in it notwithstanding."""
    mine = worker.scratch(np.int64)
    for k in worker.split(8):
        mine[k] = v + k
    worker.sync()
    total = 0
    for k in worker.split(8):
        total += mine[7 - k]
    total = worker.sum(total)
    worker.sync()
    if worker.rank == 0:
        atos.atomic_add(out, 0, total)


@atos.task(workload=lambda v, out: 5000 if v % 2 == 0 else v % 70)
def add_iterations(worker, v, i, out):
    atos.atomic_add(out, 1, i + 1)
    if i == 0:
        worker.push(v, task=add_by_scratch)


@pytest.mark.parametrize("fetch_size", [4, 64])
def test_flat_tasks_beside_long_and_short_loops(device, worker, fetch_size):
    """In a batch with both, flat tasks have all threads and the scratch memory, and loops all their iterations."""
    queue, out = atos.Queue(100, device=device), atos.zeros(2, dtype=np.int64, device=device)
    items = np.arange(1, 40)
    queue.push(items)
    queue.push(items, task=add_by_scratch)
    stats = launch(queue, worker, (add_iterations, add_by_scratch), out, shared_memory=64, fetch_size=fetch_size)
    lengths = np.where(items % 2 == 0, 5000, items % 70)
    assert out[1] == (lengths * (lengths + 1) // 2).sum()
    assert out[0] == 2 * (8 * items + 28).sum()
    assert stats.tasks_run_by == {"add_iterations": 39, "add_by_scratch": 78}


@atos.task
def count_first(worker, v, out, later):
    if worker.rank == 0:
        atos.atomic_add(out, 0, 1)
        later[v] = 1


@atos.task
def count_second(worker, v, out, later):
    if worker.rank == 0:
        atos.atomic_add(out, 1, 1)


def push_later(worker, out, later):
    for v in worker.split(later.size):
        if atos.atomic_exch(later, v, 0) == 1:
            worker.push(v, task=count_second)


@pytest.mark.parametrize("persistent", [True, False])
def test_an_idle_function_pushes_for_a_kind(device, worker, persistent):
    out, later = atos.zeros(2, dtype=np.int32, device=device), atos.zeros(50, dtype=np.int32, device=device)
    queue = atos.Queue(100, device=device)
    queue.push(np.arange(50))
    stats = launch(queue, worker, (count_first, count_second), out, later, idle=push_later, persistent=persistent)
    assert out[:].tolist() == [50, 50]
    assert stats.tasks_run_by == {"count_first": 50, "count_second": 50}


@atos.task
def keep(worker, item, out):
    if worker.rank == 0:
        worker.push(item, task=keep_again)


@atos.task
def keep_again(worker, item, out):
    if worker.rank == 0:
        atos.atomic_add(out, 0, 1)


@all_dtypes
def test_items_of_every_type_have_room_for_a_kind_or_are_refused(device, dtype):
    queue, out = atos.Queue(100, dtype=dtype, device=device), atos.zeros(1, dtype=np.int32, device=device)
    items = (
        np.frombuffer(np.random.default_rng(0).bytes(20 * dtype.itemsize), dtype) if dtype.kind in "iu" else np.ones(20, dtype)
    )
    queue.push(items)
    if dtype.itemsize == 32:
        with pytest.raises(UnsupportedTypeError, match="no room for their kind"):
            queue.push(items, task=keep_again)
        with pytest.raises(UnsupportedTypeError, match="no room for their kind"):
            queue.launch_cta((keep, keep_again), out)
        assert len(queue) == 20
        return
    queue.push(items[:5], task=keep_again)
    waiting, kinds = queue.peek(kinds=True)
    assert np.array_equal(waiting, np.concatenate([items, items[:5]]))  # but for bytes between fields
    assert waiting.dtype == queue.dtype == dtype
    assert kinds.tolist() == [None] * 20 + ["keep_again"] * 5
    assert queue.launch_warp((keep, keep_again), out).tasks_run_by == {"keep": 20, "keep_again": 25}
    assert out[0] == 25


def test_pushed_records_keep_their_fields(device):
    @atos.task
    def split(worker, item, out):
        if worker.rank == 0:
            worker.push((item.a - 1, item.b + 1, item.c), task=join)

    @atos.task
    def join(worker, item, out):
        if worker.rank == 0:
            out[item.c] = item.a * 1000 + item.b

    queue = atos.Queue(10, dtype=DTYPES["12 bytes"], device=device)
    out = atos.zeros(3, dtype=np.int64, device=device)
    queue.push([(-1, 2**32 - 2, 0), (5, 6, 2)])
    queue.launch_cta((split, join), out)
    assert out[:].tolist() == [-2000 + 2**32 - 1, 0, 4007]


# State that a queue keeps


def test_a_launch_stopped_by_a_full_queue_goes_on(device, worker):
    forest = forest_on_host(4000, 20)
    there, counts = on_device(forest, device)
    queue = atos.Queue(40, max_capacity=40, device=device)
    push_roots(queue, 20)
    runs, filled = 0, 0
    by_task: dict[str, int] = {}
    while len(queue):
        before = queue.tasks_run
        try:
            stats = launch(queue, worker, KINDS, there, counts)
            by_task = stats.tasks_run_by
        except QueueFullError:
            filled += 1
            _, kinds = queue.peek(kinds=True)
            assert set(kinds) <= {task.name for task in KINDS}
            queue.resize(len(queue))
        runs += queue.tasks_run - before
    assert filled
    assert runs == 4000
    assert counts.early[0] < 1 << 20
    assert_each_once(counts.seen.to_numpy())
    assert sum(by_task.values()) == stats.tasks_run


def test_a_checkpoint_keeps_the_kinds(device, tmp_path):
    forest = forest_on_host(3000, 40)
    there, counts = on_device(forest, device)
    queue = atos.Queue(100, device=device)
    push_roots(queue, 40)
    queue.save(tmp_path / "run.atos")
    loaded = atos.Queue.load(tmp_path / "run.atos", device=device)
    for expected, found in zip(queue.peek(kinds=True), loaded.peek(kinds=True), strict=True):
        assert expected.tolist() == found.tolist()
    with pytest.raises(InvalidArgumentError, match=r"lacks .*'other'.*launch these too"):
        loaded.launch_cta((nested, flat), there, counts)
    assert len(loaded) == 40
    check(forest, counts, [loaded.launch_cta(KINDS, there, counts)])


def test_a_checkpoint_keeps_kinds_and_priorities(tmp_path):
    queue = atos.Queue(10, device="cpu", buckets=4, delta=2)
    queue.push([5, 6], 30)
    queue.push([7, 8], [10, 20], task=flat)
    queue.save(tmp_path / "run.atos")
    loaded = atos.Queue.load(tmp_path / "run.atos", device="cpu")
    assert (loaded.buckets, loaded.delta) == (4, 2)
    for expected, found in zip(queue._take_snapshot()[1:], loaded._take_snapshot()[1:], strict=True):
        assert np.array_equal(expected, found)
    assert [part.tolist() for part in loaded.peek(kinds=True)] == [[7, 8, 5, 6], ["flat", "flat", None, None]]


def test_a_checkpoint_with_kinds_that_make_no_sense_is_refused(tmp_path):
    queue = atos.Queue(10, device="cpu")
    queue.push([1, 2], task=flat)
    queue.save(tmp_path / "run.atos")
    whole = (tmp_path / "run.atos").read_bytes()
    assert b'"kinds": ["flat"]' in whole
    for wrong in (b'"kinds": [12345]', b'"kinds": "flat"'):
        changed = whole[:-32].replace(b'"kinds": ["flat"]', wrong.ljust(17))
        (tmp_path / "wrong.atos").write_bytes(changed + hashlib.sha256(changed).digest())
        with pytest.raises(CheckpointError):
            atos.Queue.load(tmp_path / "wrong.atos", device="cpu")
    large = np.dtype([(name, "i8") for name in "abcd"])
    header = {"capacity": 1, "dtype": checkpoint._describe_dtype(large), "arrays": [], "kinds": ["flat"]}
    with pytest.raises(ValueError, match="items of 32 bytes with kinds"):
        checkpoint._parse_header(header | dict.fromkeys(checkpoint.QueueState._fields, 0) | {"buckets": None}, 2)
    changed = whole[:-33] + b"\7"
    (tmp_path / "wrong.atos").write_bytes(changed + hashlib.sha256(changed).digest())
    with pytest.raises(CheckpointError, match="kind 7 of 1"):
        atos.Queue.load(tmp_path / "wrong.atos", device="cpu")


def test_an_item_without_a_task_is_for_the_first_of_the_next_launch(device):
    out, later = atos.zeros(2, dtype=np.int32, device=device), atos.zeros(9, dtype=np.int32, device=device)
    queue = atos.Queue(10, device=device)
    for tasks in ((count_first, count_second), (count_second, count_first), (count_first,), (count_second,)):
        queue.push([1, 2, 3])
        queue.push(4, task=tasks[-1])
        queue.push([5, 6])
        expected = {tasks[0].name: 5 if len(tasks) > 1 else 6}
        assert queue.launch_cta(tasks, out, later).tasks_run_by == expected | {task.name: 1 for task in tasks[1:]}


def test_the_capacity_and_what_was_counted_outlive_the_first_kind(device):
    queue = atos.Queue(10, max_capacity=50, device=device)
    queue.push(np.arange(8))
    queue.launch_cta(count_first, *(atos.zeros(9, dtype=np.int32, device=device) for _ in range(2)))
    queue.push(np.arange(9))
    queue.push(1, task=count_second)
    assert (queue.capacity, queue.max_capacity, queue.tasks_run, len(queue)) == (10, 50, 8, 10)
    with pytest.raises(QueueFullError):
        queue.push(np.arange(60), task=count_first)
    assert queue.peek().tolist() == [*range(9), 1]
    queue.clear()
    assert len(queue) == 0


def test_threads_that_push_for_other_tasks_while_one_launches(device):
    """Whoever uses the queue while its items get kinds, or others, goes on with the queue that takes its place."""
    out, later = atos.zeros(2, dtype=np.int32, device=device), atos.zeros(9, dtype=np.int32, device=device)
    queue, failed = atos.Queue(10, device=device), []
    both = (count_first, count_second)
    queue.push([1])
    queue.launch_cta(both, out, later)  # compiled from here on

    def push_many(task: atos.Task | None) -> None:
        try:
            for k in range(100):
                queue.push([k % 9], task=task)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=push_many, args=(task,)) for task in (None, count_first, count_second)]
    for thread in threads:
        thread.start()
    launches = 0
    while any(thread.is_alive() for thread in threads) or len(queue):
        queue.launch_cta(both[::-1] if launches % 2 else both, out, later)
        launches += 1
    for thread in threads:
        thread.join()
    assert not failed
    assert out[:].sum() == queue.tasks_run == 301
    assert out[0] >= 100
    assert out[1] >= 100


# Refused launches


def test_what_cannot_be_launched_together_is_refused(device):
    queue = atos.Queue(10, device=device)
    with pytest.raises(UnsupportedTypeError, match="a tuple of such tasks"):
        queue.launch_cta((flat, lambda worker, v: None))
    with pytest.raises(UnsupportedTypeError, match="task must be a task"):
        queue.push(1, task="flat")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="1 to 8 tasks"):
        queue.launch_cta(())
    with pytest.raises(InvalidArgumentError, match="two tasks of the launch are called 'flat'"):
        queue.launch_cta((flat, atos.task(flat.body)))
    many = [atos.task(make_named(f"task_{k}")) for k in range(9)]
    with pytest.raises(InvalidArgumentError, match="1 to 8 tasks"):
        queue.launch_cta(many)
    for task in many[:8]:
        queue.push(1, task=task)
    queue.push(1)
    with pytest.raises(InvalidArgumentError, match="items for 8 tasks at most"):
        queue.push(1, task=many[8])
    assert len(queue) == 9


def make_named(name: str) -> Any:
    def body(worker, v):
        pass

    body.__name__ = name
    return body


def test_a_push_for_a_task_that_is_not_launched_is_refused(device):
    @atos.task
    def one_more(worker, item, out):
        out[0] = item

    queue, out = atos.Queue(10, device=device), atos.zeros(9, dtype=np.int32, device=device)
    for tasks, names in ((keep, "keep"), ((keep, one_more), "keep, one_more")):
        with pytest.raises(TaskCompileError, match=f"names task 'keep_again', but the tasks of this launch are {names}"):
            queue.launch_cta(tasks, out)

    @atos.task
    def push_wrong(worker, v, out):
        worker.push(v, task=v)

    with pytest.raises(TaskCompileError, match=r"takes a task made with @atos.task as task=, not int64"):
        queue.launch_cta(push_wrong, out)


def test_a_task_that_pushes_for_itself_needs_no_kinds(device):
    @atos.task
    def down(worker, v):
        if v > 0 and worker.rank == 0:
            worker.push(v - 1, task=down)

    queue = atos.Queue(10, device=device)
    queue.push(5)
    stats = queue.launch_cta(down)
    assert stats.tasks_run_by == {"down": 6}
    assert queue.peek(kinds=True)[1].tolist() == []


def test_a_failed_check_names_the_task_of_the_item(device, worker):
    @atos.task
    def fine(worker, v, data):
        if worker.rank == 0:
            worker.push(v, task=beyond)

    @atos.task(workload=lambda v, values: 1)
    def beyond(worker, v, i, values):
        values[v + 7] = 1

    queue = atos.Queue(10, device=device)
    queue.push(5)
    with pytest.raises(TaskError, match="'values'") as caught:
        launch(queue, worker, (fine, beyond), atos.zeros(9, dtype=np.int32, device=device), debug=True)
    assert (caught.value.task, caught.value.item, caught.value.index) == ("beyond", 5, 12)
    assert len(queue) == 0


@atos.task
def climb(worker, v, out):
    if worker.rank == 0:
        atos.atomic_add(out, 0, 1)
        if v < 20:
            worker.push(v + 1, v + 1, task=climb_on)


@atos.task
def climb_on(worker, v, out):
    if worker.rank == 0:
        atos.atomic_add(out, 1, 1)
        if v < 20:
            worker.push(v + 1, priority=v + 1, task=climb)


@pytest.mark.parametrize("barrier", [True, False], ids=["barrier", "relaxed"])
def test_items_of_kinds_keep_their_priorities(device, worker, barrier):
    out = atos.zeros(2, dtype=np.int32, device=device)
    queue = atos.Queue(100, device=device, buckets=4, delta=2.0)
    queue.push([0, 2], priority=[3.5, 1.5])
    queue.push(11, priority=2.5, task=climb_on)  # the items that wait get a kind
    queue.push(10, task=climb_on)
    items, kinds = queue.peek(kinds=True)
    assert items.tolist() == [10, 2, 11, 0]
    assert kinds.tolist() == ["climb_on", None, "climb_on", None]
    stats = launch(queue, worker, (climb, climb_on), out, barrier=barrier)
    assert stats.tasks_run_by == {"climb": 11 + 10 + 5 + 5, "climb_on": 10 + 9 + 5 + 6}
    assert out[:].tolist() == list(stats.tasks_run_by.values())


def length_two(v, out):
    return 2


@atos.task(workload=length_two, group=4)
def by_four(worker, v, i, out):
    atos.atomic_add(out, 0, 1)


@atos.task(workload=length_two)
def by_one(worker, v, i, out):
    atos.atomic_add(out, 0, 1)


def test_loops_of_different_groups_are_refused(device):
    queue, out = atos.Queue(10, device=device), atos.zeros(1, dtype=np.int32, device=device)
    with pytest.raises(InvalidArgumentError, match=r"have one group= \(got \[1, 4\]\)"):
        queue.launch_cta((by_four, by_one), out)


def test_items_of_each_kind_come_from_the_host(device, worker):
    """Roots reach their tasks while workers run."""
    forest = forest_on_host(3000, 30)
    there, counts = on_device(forest, device)
    queue = atos.Queue(100, device=device)
    queue.push(np.arange(0, 30, 3))
    with queue.start(KINDS, there, counts, worker=worker) as run:
        run.push(np.arange(1, 30, 3), task=flat)
        for root in range(2, 30, 3):
            run.push(root, task=other)
        with pytest.raises(InvalidArgumentError, match=r"the run has the tasks nested, flat, other .*got task=waits"):
            run.push(1, task=waits)
        with pytest.raises(UnsupportedTypeError, match="task must be a task"):
            run.push(1, task="flat")
    check(forest, counts, [run.wait()])


@atos.task
def waits(worker, v, forest, counts):
    pass


@pytest.mark.parametrize("started", [False, True])
def test_a_launch_begins_anew_if_the_kinds_change_meanwhile(device, started, monkeypatch):
    """Between the choice of a program and its launch, another thread launches the tasks in another order."""
    forest = forest_on_host(300, 3)
    there, counts = on_device(forest, device)
    queue = atos.Queue(1000, device=device)
    queue.push(0)
    queue.push(2, task=other)
    core, times = queue._core, []
    real = core.for_launch

    def for_launch(tasks):
        form = real(tasks)
        times.append(form)
        if len(times) == 1:
            real(tasks[::-1])
        return form

    monkeypatch.setattr(core, "for_launch", for_launch)
    if started:
        with queue.start(KINDS, there, counts) as run:
            run.push(1, task=flat)
        stats = run.wait()
    else:
        queue.push(1, task=flat)
        stats = queue.launch_cta(KINDS, there, counts)
    assert len(times) == 2
    check(forest, counts, [stats])


def test_a_queue_may_have_its_kinds_from_the_start(device):
    forest = forest_on_host(300, 3)
    there, counts = on_device(forest, device)
    queue = atos.Queue._of_kinds(KINDS, 1000, device=device)
    handle = queue._handle
    queue.push(0, task=nested)
    queue.push(2, task=other)
    queue.push(1, task=flat)
    stats = queue.launch_cta(KINDS, there, counts)
    assert queue._handle is handle
    check(forest, counts, [stats])
    queue.push(1, task=flat)
    with pytest.raises(InvalidArgumentError, match="items are waiting for tasks that the launch of waits lacks"):
        queue.launch_cta(waits, there, counts)
    queue.clear()
    queue.push(0)
    assert queue.launch_cta(waits, there, counts).tasks_run == 1


def test_counts_are_those_of_one_launch(device, worker):
    @atos.task
    def count(worker, v, seen):
        if worker.rank == 0:
            atos.atomic_add(seen, 0, 1)

    @atos.task
    def again(worker, v, seen):
        if worker.rank == 0:
            worker.push(v, task=count)

    queue, seen = atos.Queue(100, device=device), atos.zeros(1, dtype=np.int32, device=device)
    for n in (30, 20, 7):
        queue.push(np.arange(n), task=again)
        queue.push(np.arange(5), task=count)
        stats = launch(queue, worker, (again, count), seen)
        assert stats.tasks_run_by == {"again": n, "count": n + 5}
        assert launch(queue, worker, (again, count), seen).tasks_run_by == {"again": 0, "count": 0}  # nothing is left
    assert seen[0] == 30 + 20 + 7 + 15


@pytest.mark.parametrize("worker", ["warp", "cta"])
def test_an_item_begins_when_all_threads_have_left_the_one_before(device, worker):
    """The last threads read what the first ones wrote to scratch memory, late: by then these would be at the next item."""

    def nothing(v, wrong, sink):
        return 1

    @atos.task(workload=nothing)
    def iterate(worker, v, i, wrong, sink):
        pass

    @atos.task
    def write_and_read(worker, v, wrong, sink):
        written = worker.scratch(np.int64, 1024)
        written[worker.rank] = v
        worker.sync()
        state = np.int64(v)
        if worker.rank == worker.size - 1:
            for _ in range(2000):
                state = state * 6364136223846793005 + 1442695040888963407
            if state == 1:
                sink[0] = state
        if written[worker.size - 1 - worker.rank] != v:
            atos.atomic_add(wrong, 0, 1)

    wrong, sink = atos.zeros(1, dtype=np.int32, device=device), atos.zeros(1, dtype=np.int64, device=device)
    queue = atos.Queue(1000, device=device)
    queue.push(np.arange(200), task=write_and_read)
    launch(queue, worker, (iterate, write_and_read), wrong, sink, fetch_size=8, num_blocks=2)
    assert wrong[0] == 0
