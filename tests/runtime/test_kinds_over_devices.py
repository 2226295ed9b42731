"""Several kinds of tasks in one launch over several devices: an item keeps its kind on its way to whatever device."""

from __future__ import annotations

import numpy as np
import pytest
from shared_tasks import arrive, assert_each_once, forest_on_host, on_device
from tasks_over_devices import parts_of_path

import atos_py as atos
from atos_py.errors import InvalidArgumentError, QueueFullError, TaskError

TWO, FIVE = ["cpu:0", "cpu:1"], [f"cpu:{i}" for i in range(5)]
ITEMS = {
    "4 bytes": np.dtype("u4"),
    "8 bytes": np.dtype("i8"),
    "record": np.dtype([("vertex", "u4"), ("hops", "u4")]),
    "with room for the kind": np.dtype([("vertex", "i8"), ("hops", "u4")]),
}


def visit_node(worker, v, kind, forest, counts):
    """Count a node, and push its children, each for the task that its number says."""
    if v % 3 != kind:
        atos.atomic_add(counts.early, 0, 1 << 20)
    arrive(v, forest, counts)
    for child in range(forest.first[v], forest.first[v + 1]):
        if child % 3 == 0:
            worker.push(child, task=expand)
        elif child % 3 == 1:
            worker.push(child, task=settle)
        else:
            worker.push(child, task=leave)


@atos.task
def expand(worker, v, forest, counts):
    visit_node(worker, v, 0, forest, counts)


@atos.task
def settle(worker, v, forest, counts):
    visit_node(worker, v, 1, forest, counts)


@atos.task(workload=lambda v, forest, counts: 1)
def leave(worker, v, i, forest, counts):
    visit_node(worker, v, 2, forest, counts)


@atos.task
def pass_on(worker, item, seen):
    """Run once, and push the same vertex with one hop less for the other task."""
    atos.atomic_add(seen, item.vertex, 1)
    if item.hops > 0:
        worker.push((item.vertex, item.hops - 1), task=pass_back)


@atos.task
def pass_back(worker, item, seen):
    atos.atomic_add(seen, item.vertex, 100)
    if item.hops > 0:
        worker.push((item.vertex, item.hops - 1), task=pass_on)


@atos.task
def first(worker, v, seen):
    atos.atomic_add(seen, v, 1)


@atos.task
def second(worker, v, seen):
    atos.atomic_add(seen, v, 100)


KINDS = (expand, settle, leave)


@pytest.mark.parametrize("barrier", [False, True], ids=["relaxed", "barrier"])
@pytest.mark.parametrize("devices", [["cpu"], TWO, FIVE], ids=["one", "two", "five"])
def test_each_item_is_run_by_its_task(devices, barrier):
    forest = forest_on_host(3000, 10)
    there, counts = on_device(forest, atos.device("cpu"))
    queue = atos.Queue(100, owner=parts_of_path(3000, devices, "keep"))
    for number, task in enumerate(KINDS):
        queue.push(np.arange(number, 10, 3), task=task if number else None)
    stats = queue.launch_cta(KINDS, there, counts, barrier=barrier, num_blocks=2, timeout=60)
    assert counts.early[0] < 1 << 20, "an item was run by a task of another kind"
    assert not barrier or counts.early[0] == 0
    assert_each_once(counts.seen.to_numpy())
    assert stats.tasks_run_by == {task.name: len(range(k, 3000, 3)) for k, task in enumerate(KINDS)}
    assert stats.tasks_run == 3000 == sum(each.tasks_run for each in stats.devices)
    assert stats.task == "expand, settle, leave"
    assert len(queue) == 0


@pytest.mark.parametrize("dtype", ITEMS.values(), ids=ITEMS.keys())
def test_items_of_any_size(dtype):
    """The host pushes and reads them by their ids, whatever their kinds."""
    parts = parts_of_path(40, FIVE)
    queue = atos.Queue(10, dtype=dtype, owner=parts)
    is_record = dtype.names is not None
    tasks = (pass_on, pass_back) if is_record else (first, second)
    seen = atos.full(40, 0, partition=parts)
    queue.push([(3, 4), (30, 0)] if is_record else [3, 30])
    queue.push([(5, 1)] if is_record else [5], task=tasks[1])
    items, names = queue.peek(kinds=True)
    vertices = items["vertex"] if is_record else items
    assert dict(zip(vertices.tolist(), names.tolist(), strict=True)) == {3: None, 30: None, 5: tasks[1].name}
    stats = queue.launch_cta(tasks, seen)
    expected = np.zeros(40, int)
    expected[[3, 30, 5]] = (203, 1, 101) if is_record else (1, 1, 100)
    assert seen.to_numpy().tolist() == expected.tolist()
    assert stats.tasks_run_by == dict(zip([task.name for task in tasks], (5, 3) if is_record else (2, 1), strict=True))


def test_a_launch_that_lacks_a_task_changes_nothing():
    parts = parts_of_path(10, TWO, "keep")
    queue, seen = atos.Queue(10, owner=parts), atos.full(10, 0, partition=parts)
    queue.push([0, 9])
    queue.push([8], task=second)  # on the second device alone
    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match=r"launch of first lacks \(of 'second'\)"):
            queue.launch_cta(first, seen)
        assert queue.peek(kinds=True)[1].tolist() == [None, None, "second"]
    assert queue.launch_cta((second, first), seen).tasks_run_by == {"second": 3, "first": 0}
    queue.push([1])
    assert queue.launch_cta(first, seen).tasks_run_by == {"first": 1}
    assert seen.to_numpy().tolist() == [100, 1, 0, 0, 0, 0, 0, 0, 100, 100]


def test_what_is_left_after_a_stop_keeps_its_kind():
    forest = forest_on_host(2000, 1)
    there, counts = on_device(forest, atos.device("cpu"))
    queue = atos.Queue(1, max_capacity=1, owner=parts_of_path(2000, FIVE, "keep"))
    queue.push([0], task=expand)
    runs, full = [], 0
    while len(queue):
        try:
            runs.append(queue.launch_thread((settle, leave, expand)[:: 1 if full % 2 else -1], there, counts, num_blocks=1))
        except QueueFullError:
            full += 1
            queue.resize(len(queue) + 1)
    assert full > 3
    assert counts.early[0] < 1 << 20
    assert_each_once(counts.seen.to_numpy())


def test_a_failed_check_names_the_task():
    @atos.task
    def fails(worker, v, seen):
        seen[v + 10] = 1

    parts = parts_of_path(10, TWO)
    queue = atos.Queue(10, owner=parts)
    queue.push([2])
    queue.push([7], task=fails)
    with pytest.raises(TaskError, match="fails") as error:
        queue.launch_cta((first, fails), atos.full(10, 0, partition=parts), debug=True)
    assert error.value.item == 7
