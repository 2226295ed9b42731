"""Joins: tasks wait for others, whose values are combined, up to the root or to an item that goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import CASES
from shared_tasks import CALL, fibonacci, launch

import atos_py as atos
from atos_py.errors import (
    InvalidArgumentError,
    JoinsFullError,
)

NODE = np.dtype([("node", np.int32), ("depth", np.int32), ("up", np.int64)])


@pytest.mark.parametrize("barrier", [False, True])
def test_fibonacci(device, worker, barrier):
    joins, queue = atos.Joins(10, device=device), atos.Queue(100, dtype=CALL, device=device)
    for n, wanted, calls in ((1, 1, 1), (2, 1, 3), (15, 610, 1973), (20, 6765, 21891)):
        queue.push([(n, 0)])
        assert launch(queue, worker, fibonacci, joins, barrier=barrier).tasks_run == calls
        assert (joins.result, joins.pending) == (wanted, 0)
        joins.reset()
        assert joins.result == 0


def test_memory_that_does_not_come_on_demand(device, monkeypatch):
    """Every thread has records of its own from the beginning."""
    allocate = atos.Pool._allocate
    monkeypatch.setattr(atos.Pool, "_allocate", lambda pool, counters, least, most: allocate(pool, counters, least, least))
    joins, queue = atos.Joins(1, device=device), atos.Queue(100, dtype=CALL, device=device)
    queue.push([(20, 0)])
    queue.launch_thread(fibonacci, joins)
    assert (joins.result, joins.pending) == (6765, 0)


def tree(seed: int, nodes: int) -> tuple[Any, Any, Any]:
    """Return the first child and the number of children of each node, and its value."""
    rng = np.random.default_rng(seed)
    first, count, made = np.zeros(nodes, np.int32), np.zeros(nodes, np.int32), 1
    for v in range(nodes):
        if v >= made:
            break
        count[v] = min(int(rng.integers(0, 5)) if made - v > 3 else int(rng.integers(1, 5)), nodes - made)
        first[v] = made
        made += count[v]
    return first, count, rng.integers(-1000, 1000, nodes)


def of_tree(v: int, how: list[str], first: Any, count: Any, value: Any, depth: int = 0) -> int:
    """Combine the values of leaves, each level in its own way, negated at every second one."""
    if count[v] == 0:
        return int(value[v])
    parts = [of_tree(c, how, first, count, value, depth + 1) for c in range(first[v], first[v] + count[v])]
    combined = {"sum": sum, "min": min, "max": max}[how[depth % 3]](parts)
    return -combined if depth % 2 else combined


@atos.task
def visit(worker, item, joins, first, count, value):
    if worker.rank == 0:
        v = item.node
        if count[v] == 0:
            worker.arrive_at(joins, item.up, value[v])
        else:
            turn, negate = item.depth % 3, item.depth % 2 == 1
            if turn == 0:
                j = worker.open(joins, count[v], parent=item.up, combine="sum", negate=negate)
            elif turn == 1:
                j = worker.open(joins, count[v], parent=item.up, combine="min", negate=negate)
            else:
                j = worker.open(joins, count[v], parent=item.up, combine="max", negate=negate)
            for k in range(count[v]):
                worker.push((first[v] + k, item.depth + 1, j))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_values_of_a_tree(device, worker, dtype):
    for seed in range(3):
        first, count, value = tree(seed, 3000)
        wanted = of_tree(0, ["sum", "min", "max"], first, count, value)
        joins = atos.Joins(4, dtype, combine="max", device=device)
        queue = atos.Queue(4000, dtype=NODE, device=device)
        queue.push([(0, 0, 0)])
        arrays = [atos.asarray(each, device=device) for each in (first, count, value)]
        launch(queue, worker, visit, joins, *arrays)
        assert (joins.result, joins.pending) == (wanted, 0)
        assert joins.result.dtype == dtype


def test_random_trees(device, worker):
    """Launches of all shapes on the same joins, whose records are used again and again."""
    rng = np.random.default_rng(0)
    joins, total = atos.Joins(1, combine="sum", device=device), 0
    queue = atos.Queue(10, dtype=NODE, device=device)
    for seed in range(CASES // 3):
        first, count, value = tree(seed, int(rng.integers(1, 600)))
        queue.push([(0, 0, 0)])
        arrays = [atos.asarray(each, device=device) for each in (first, count, value)]
        options = {
            "num_blocks": int(rng.integers(1, 9)),
            "fetch_size": int(rng.integers(1, 65)),
            "barrier": bool(seed % 5 == 0),
        }
        launch(queue, worker, visit, joins, *arrays, **options)
        total += of_tree(0, ["sum", "min", "max"], first, count, value)
        assert (joins.result, joins.pending) == (total, 0), seed


def test_without_values(device, worker):
    """Joins that only count: the task that goes on sees what others wrote before they arrived."""

    def work(worker, v, joins, written, seen):
        if worker.rank == 0:
            if v < 0:
                total = 0
                for k in range(len(written)):
                    total += written[k]
                seen[0] = total
                worker.take(joins, -v)
            elif v == 0:
                j = worker.open(joins, len(written), combine=None)
                worker.then(joins, j, -j)
                for k in range(len(written)):
                    worker.push(j * 4096 + k)
            else:
                written[v % 4096] = v % 4096
                worker.arrive_at(joins, v // 4096)

    written, seen = atos.zeros(1000, dtype=np.int64, device=device), atos.zeros(1, dtype=np.int64, device=device)
    joins, queue = atos.Joins(1, combine=None, device=device), atos.Queue(2000, dtype=np.int64, device=device)
    task = atos.task(work)
    for _ in range(3):
        queue.push(0)
        launch(queue, worker, task, joins, written, seen)
        assert (seen[0], joins.pending) == (1000 * 999 // 2, 0)
    with pytest.raises(InvalidArgumentError, match="no values: they were made with combine=None"):
        print(joins.result)


SPAN = np.dtype([("low", np.int32), ("high", np.int32), ("own", np.int64), ("up", np.int64)])


@atos.task
def split(worker, item, joins, data, space):
    if worker.rank == 0:
        if item.high - item.low < 2:
            worker.arrive_at(joins, item.up)
        else:
            j, middle = worker.open(joins, 2), (item.low + item.high) // 2
            worker.then(joins, j, (item.low, item.high, j, item.up), task=merge)
            worker.push((item.low, middle, 0, j))
            worker.push((middle, item.high, 0, j))


@atos.task(opens=0)
def merge(worker, item, joins, data, space):
    if worker.rank == 0:
        worker.take(joins, item.own)
        middle = (item.low + item.high) // 2
        i, k = item.low, middle
        for at in range(item.low, item.high):
            if k == item.high or (i < middle and data[i] <= data[k]):
                space[at] = data[i]
                i += 1
            else:
                space[at] = data[k]
                k += 1
        for at in range(item.low, item.high):
            data[at] = space[at]
        worker.arrive_at(joins, item.up)


@pytest.mark.parametrize("buckets", [None, 4])
def test_another_task_goes_on(device, worker, buckets):
    """Mergesort: the item of a join is of another kind, and has a priority in a queue with buckets."""
    data = atos.asarray(np.random.default_rng(1).integers(0, 1000, 2000), device=device)
    wanted, space = np.sort(data.to_numpy()), atos.zeros(data.size, dtype=data.dtype, device=device)
    joins = atos.Joins(1, combine=None, device=device)
    queue = atos.Queue(10000, dtype=SPAN, device=device, buckets=buckets)
    queue.push([(0, data.size, 0, 0)])
    launch(queue, worker, [split, merge], joins, data, space)
    assert np.array_equal(data.to_numpy(), wanted)
    assert joins.pending == 0


def test_an_item_that_waits_has_its_priority(device):
    """The item of the join comes before what is farther away."""

    def step(worker, v, joins, order):
        if worker.rank == 0:
            if v == 0:
                j = worker.open(joins, 1, combine=None)
                worker.then(joins, j, 1, priority=1.0)
                for k in range(20):
                    worker.push(100 + k, priority=1000.0)
                worker.arrive_at(joins, j)
            elif v == 1:
                order[1] = order[0]
            else:
                atos.atomic_add(order, 0, 1)

    order = atos.zeros(2, dtype=np.int64, device=device)
    joins = atos.Joins(1, combine=None, device=device)
    queue = atos.Queue(100, device=device, buckets=8, delta=10.0)
    queue.push(0, priority=0.0)
    assert queue.launch_thread(atos.task(step), joins, order).tasks_run == 22
    assert order.to_numpy().tolist() == [20, 0]


def length(v, joins, handles, count):
    return count


@atos.task(workload=length)
def arrive(worker, v, i, joins, handles, count):
    worker.arrive_at(joins, handles[v], i)


def test_iterations_of_nested_tasks_arrive(device, worker):
    joins = atos.Joins(1, device=device)
    handles = atos.asarray(joins.open(200, n=50), device=device)
    queue = atos.Queue(100, device=device)
    queue.push(np.arange(50))
    launch(queue, worker, arrive, joins, handles, 200)
    assert (joins.result, joins.pending) == (50 * 200 * 199 // 2, 0)


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
@pytest.mark.parametrize("combine", ["min", "max"])
def test_a_minimum_of_nothing_is_no_value(device, dtype, combine):
    """A search that prunes arrives without a value."""

    def prune(worker, v, joins):
        j = worker.open(joins, 3, negate=True)
        k = worker.open(joins, 2, parent=j, negate=True)
        worker.arrive_at(joins, k)
        worker.arrive_at(joins, j, 5)
        worker.arrive_at(joins, k)
        worker.arrive_at(joins, j)

    joins, queue = atos.Joins(1, dtype, combine=combine, device=device), atos.Queue(10, device=device)
    queue.push([0, 1, 2])
    queue.launch_thread(atos.task(opens=2)(prune), joins)
    assert (joins.result, joins.pending) == (-5, 0)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float32])
def test_expect_and_peek(device, dtype):
    def grow(worker, v, joins, seen):
        if v == 0:
            j = worker.open(joins, 1, combine="max")
            for k in range(1, 6):
                joins.expect(j, 1)
                worker.push(j * 8 + k)
            seen[0] = joins.peek(j)
            worker.arrive_at(joins, j, 3)
        else:
            atos.atomic_max(seen, 1, joins.peek(v // 8))
            worker.arrive_at(joins, v // 8, v % 8, 1)

    seen = atos.zeros(2, dtype=dtype, device=device)
    joins, queue = atos.Joins(1, dtype, device=device), atos.Queue(100, dtype=np.int64, device=device)
    queue.push(0)
    queue.launch_thread(atos.task(grow), joins, seen)
    assert (joins.result, joins.pending) == (5, 0)
    assert seen[0] == (-np.inf if dtype == np.float32 else np.iinfo(dtype).min)
    assert seen[1] in (3, 4, 5)


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
@pytest.mark.parametrize("combine", ["sum", "min", "max"])
def test_values_of_32_bits_arrive_beside_each_other(device, combine, dtype):
    """Many arrive at few joins, of which each has a value and a count in one word: negative values, by 1 to 3 arrivals."""

    def visit(worker, v, joins, handles, values):
        worker.arrive_at(joins, handles[v % 7], values[v], 1 + v % 3)

    rng = np.random.default_rng(0)
    values = rng.integers(-1000, 1000, 7 * 300).astype(dtype)
    joins = atos.Joins(1, dtype, combine=combine, device=device)
    handles = np.concatenate([np.atleast_1d(joins.open(600)) for _ in range(7)])  # 100 of each of 1, 2 and 3
    assert [joins.peek(int(j)) for j in handles] == [joins.result] * 7
    queue = atos.Queue(values.size, device=device)
    queue.push(np.arange(values.size))
    arrays = [atos.asarray(each, device=device) for each in (handles, values)]
    queue.launch_thread(atos.task(visit), joins, *arrays)
    of_joins = [{"sum": np.sum, "min": np.min, "max": np.max}[combine](values[k::7]) for k in range(7)]
    assert (joins.result, joins.pending) == ({"sum": sum, "min": min, "max": max}[combine](of_joins), 0)


def test_sums_of_32_bits_wrap_as_numpy_does(device):
    """A value that overflows leaves the arrivals beside it alone."""

    @atos.task
    def visit(worker, v, joins, j):
        worker.arrive_at(joins, j, 2**31 - 1 if v % 2 else -(2**31))

    joins, queue = atos.Joins(1, np.int32, device=device), atos.Queue(100, device=device)
    handle = joins.open(64)
    queue.push(np.arange(64) | 1)
    queue.launch_thread(visit, joins, handle)
    assert (joins.result, joins.pending) == (-64, 0)  # 64 * (2**31 - 1), modulo 2**32
    joins.reset()
    handle = joins.open(3)
    queue.push([2, 4, 6])
    queue.launch_thread(visit, joins, handle)
    assert (joins.result, joins.pending) == (-(2**31), 0)


@atos.task(opens=3)
def open_three(worker, v, joins, ran):
    for _ in range(3):
        worker.open(joins, 1)
    atos.atomic_add(ran, v, 1)


def test_no_task_begins_without_records(device):
    """A task that has begun has opened all of its joins; the items of the other tasks are in the queue."""
    joins = atos.Joins(1, max_capacity=1, device=device)
    items = joins._records.max_capacity // 3 + 5000
    ran = atos.zeros(items, dtype=np.int32, device=device)
    queue = atos.Queue(items + 10, device=device)
    queue.push(np.arange(items))
    with pytest.raises(JoinsFullError, match="the joins in argument 0 of open_three were full") as full:
        queue.launch_thread(open_three, joins, ran)
    assert full.value.capacity == joins._records.max_capacity
    done = ran.to_numpy()
    assert set(done) <= {0, 1}
    assert joins.pending == 3 * done.sum() > items
    assert sorted(queue._take_snapshot().items) == np.flatnonzero(done == 0).tolist()


def test_more_than_was_declared_is_told(device):
    @atos.task(opens=1)
    def greedy(worker, v, joins):
        for _ in range(40):
            worker.open(joins, 1)

    joins = atos.Joins(1, max_capacity=1, device=device)
    queue = atos.Queue(joins._records.max_capacity, device=device)
    queue.push(np.arange(joins._records.max_capacity // 10))
    with pytest.raises(JoinsFullError, match="found none within a task, which opens more than its opens= says"):
        queue.launch_thread(greedy, joins)


@atos.task
def stopping(worker, item, joins, steps):
    """Compute as `fibonacci` does, and end the launch at every thousandth step."""
    if worker.rank == 0:
        if atos.atomic_add(steps, 0, 1) % 1000 == 999:
            worker.stop()
        if item.n < 2:
            worker.arrive_at(joins, item.up, item.n)
        else:
            j = worker.open(joins, 2, parent=item.up)
            worker.push((item.n - 1, j))
            worker.push((item.n - 2, j))


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_a_stop_lies_between_steps(device, worker, dtype):
    """A launch that is stopped goes on as if it had not been."""
    steps = atos.zeros(1, dtype=np.int64, device=device)
    joins, queue = atos.Joins(1, dtype, device=device), atos.Queue(100, dtype=CALL, device=device)
    queue.push([(17, 0)])
    launches = 0
    while len(queue):
        launch(queue, worker, stopping, joins, steps)
        launches += 1
    assert launches > 2
    assert (joins.result, joins.pending) == (1597, 0)


@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_a_checkpoint_has_joins(device, tmp_path, dtype):
    """A run goes on in a process that has only the file."""
    steps = atos.zeros(1, dtype=np.int64, device=device)
    joins, queue = atos.Joins(1, dtype, device=device), atos.Queue(100, dtype=CALL, device=device)
    queue.push([(20, 0)])
    assert queue.launch_thread(stopping, joins, steps).stopped
    pending = joins.pending
    assert pending > 0
    queue.save(tmp_path / "run.atos", joins=joins, steps=steps)
    for where in ("cpu", device):
        other, read = atos.Joins(5, dtype, device=where), atos.zeros(1, dtype=np.int64, device=where)
        again = atos.Queue.load(tmp_path / "run.atos", device=where, joins=other, steps=read)
        assert (other.pending, read[0]) == (pending, steps[0])
        while len(again):
            again.launch_thread(stopping, other, read)
        assert (other.result, other.pending) == (6765, 0)
        other.reset()
        again.push([(15, 0)])
        again.launch_thread(fibonacci, other)
        assert other.result == 610
    with pytest.raises(InvalidArgumentError, match="joins"):
        atos.Queue.load(tmp_path / "run.atos", joins=atos.Joins(5, np.float64, device="cpu"), steps=read)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float32])
def test_waiting(device, dtype):
    joins = atos.Joins(5, dtype, combine="min", device=device)
    handle = joins.open(3)
    several = joins.open(2, n=4)
    found = joins.waiting()
    assert found.handle.tolist() == [handle, *several.tolist()]
    assert found.missing.tolist() == [3, 2, 2, 2, 2]
    assert not found.parent.any()
    assert joins.pending == 5

    @atos.task
    def below(worker, v, joins, handle):
        worker.open(joins, 7, parent=handle)

    queue = atos.Queue(10, device=device)
    queue.push(1)
    queue.launch_thread(below, joins, handle)
    found = joins.waiting()
    assert found.missing[-1] == 7
    assert found.parent[-1] == handle
    joins.reset()
    assert joins.pending == 0
    assert len(joins.waiting().handle) == 0
