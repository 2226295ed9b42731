"""Launches that are prepared once and made again and again."""

from __future__ import annotations

import copy
import importlib.util
import threading
from typing import Any

import numpy as np
import pytest
from repository import ROOT

import atos_py as atos
from atos_py.compile.recorder import recorded_programs
from atos_py.errors import (
    InvalidArgumentError,
    LaunchConfigError,
    LaunchTimeoutError,
    QueueFullError,
    TaskCompileError,
    UnsupportedTypeError,
)

N = 2


@atos.task
def mark(worker, v, seen, value):
    seen[v] = value


@atos.task
def mark_twice(worker, v, seen, value):
    seen[v] = int(value * 2)


@atos.task(workload=lambda v, seen, value: (2, 10 * v))
def mark_pairs(worker, v, i, tens, seen, value):
    seen[v] = value + tens


@atos.task
def use_global(worker, v, seen, value):
    seen[v] = value * N


def prepared(device: Any, task: Any = mark, *more: Any, **options: Any) -> tuple[atos.Queue, atos.Array, atos.PreparedLaunch]:
    queue, seen = atos.Queue(10, device=device), atos.zeros(6, dtype=np.int64, device=device)
    return queue, seen, queue.prepare(task, seen, 1, *more, **options)


@pytest.mark.parametrize("worker", ["thread", "warp", "cta"])
@pytest.mark.parametrize("schedule", [{}, {"barrier": True}, {"persistent": False}])
def test_a_prepared_launch_runs_what_is_in_the_queue_each_time(device, worker, schedule):
    queue, seen, launch = prepared(device, worker=worker, **schedule)
    for v in range(3):
        queue.push([v, v + 3])
        stats = launch()
        assert (stats.tasks_run, stats.task, stats.worker, stats.barrier) == (2, "mark", worker, "barrier" in schedule)
    assert seen[:].tolist() == [1] * 6
    assert launch().tasks_run == 0


def test_its_statistics_are_those_of_a_launch():
    options = {"fetch_size": 3, "num_blocks": 2, "experiment": atos.Experiment(counters=True), "trace": 1.0}
    queue, seen, launch = prepared("cpu", **options)
    queue.push([1, 2])
    once = queue.launch(mark, seen, 1, **options)
    queue.push([1, 2])
    again = launch()
    queue.push([1, 2])
    both = [once.to_dict(), again.to_dict()]
    for fields in both:
        assert fields.pop("profile")["compile"] >= 0
        for name in ("milliseconds", "trace", "local_items", "items_donated"):
            fields.pop(name)
    assert both[0] == both[1]
    assert launch().profile.compile == 0


def test_rebind_changes_arguments_by_name(device):
    queue, seen, launch = prepared(device)
    other = atos.zeros(6, dtype=np.int64, device=device)
    for change, array, value in (({"value": 5}, seen, 5), ({"seen": other}, other, 1), ({"seen": other, "value": 9}, other, 9)):
        queue.push(4)
        assert launch.rebind(**change)().tasks_run == 1
        assert array[4] == value
    queue.push(0)
    launch()
    assert (seen[0], other[0]) == (1, 0)


def test_rebind_of_a_nested_task_and_to_another_type():
    queue, seen, launch = prepared("cpu", mark_pairs)
    queue.push([1, 2])
    launch.rebind(value=7)()
    assert seen[:].tolist() == [0, 17, 27, 0, 0, 0]
    queue, seen, launch = prepared("cpu", mark_twice)
    for value, found in ((np.int32(8), 16), (9.5, 19), (True, 2)):
        queue.push(0)
        launch.rebind(value=value)()
        assert seen[0] == found


@pytest.mark.parametrize("wrong", [{"valeu": 1}, {"worker": 1}, {"v": 1}])
def test_rebind_refuses_names_that_are_none_of_the_arguments(wrong):
    _, _, launch = prepared("cpu")
    with pytest.raises(UnsupportedTypeError, match=f"the task mark has no option '{next(iter(wrong))}'.* it has seen, value"):
        launch.rebind(**wrong)


def test_arguments_without_names():
    @atos.task
    def add(worker, v, *args):
        args[0][v] += args[1]

    queue, seen, launch = prepared("cpu", add)
    with pytest.raises(UnsupportedTypeError):
        launch.rebind(value=3)
    queue.push(2)
    assert launch.rebind()().tasks_run == 1
    assert seen[2] == 1


def test_changed_variables_are_seen():
    global N
    factor = 3

    @atos.task
    def use_captured(worker, v, seen, value):
        seen[v] = value * factor

    for task in (use_global, use_captured):
        queue, seen, launch = prepared("cpu", task)
        results = []
        for value in (3, 5, 3):
            N = factor = value
            queue.push(0)
            launch()
            results.append(int(seen[0]))
        assert results == [3, 5, 3]


def test_a_variable_that_no_longer_compiles():
    global N
    queue, seen, launch = prepared("cpu", use_global)
    N = "text"
    queue.push(0)
    with pytest.raises(TaskCompileError):
        launch()
    N = 4
    assert launch().tasks_run == 1
    assert seen[0] == 4


def test_what_cannot_run_is_refused_when_it_is_prepared():
    queue = atos.Queue(4, device="cpu")
    seen = atos.zeros(2, dtype=np.int64, device="cpu")
    for wrong, error in (
        (lambda: queue.prepare(mark, seen), TaskCompileError),
        (lambda: queue.prepare(mark, seen, "1"), UnsupportedTypeError),
        (lambda: queue.prepare(len, seen, 1), UnsupportedTypeError),
        (lambda: queue.prepare([mark, mark], seen, 1), InvalidArgumentError),
        (lambda: queue.prepare({}, seen, 1), UnsupportedTypeError),
        (lambda: queue.prepare(mark, seen, 1, fetch_sise=3), UnsupportedTypeError),
        (lambda: queue.prepare(mark, seen, 1, worker="block"), InvalidArgumentError),
        (lambda: queue.prepare(mark, seen, 1, worker=[]), InvalidArgumentError),
        (lambda: queue.prepare(mark, seen, 1, device="cpu:1"), LaunchConfigError),
        (lambda: queue.prepare(mark, atos.zeros(2, device="cpu:1"), 1), InvalidArgumentError),
    ):
        with pytest.raises(error):
            wrong()


def test_errors_of_a_run_leave_it_usable():
    @atos.task
    def push_twice(worker, v, seen, value):
        if seen[0] == 0:
            worker.push(v)
            worker.push(v)

    queue, seen, launch = prepared("cpu", push_twice)
    queue.max_capacity = 10
    queue.push(1)
    with pytest.raises(QueueFullError):
        launch()
    seen[0] = 1
    queue.resize(100)
    assert launch().tasks_run > 0
    assert len(queue) == 0

    @atos.task
    def endless(worker, v, seen, value):
        if seen[0] == 1:
            worker.push(v)

    launch = queue.prepare(endless, seen, 1, timeout=0.05)
    queue.push(1)
    for _ in range(2):
        with pytest.raises(LaunchTimeoutError):
            launch()
    seen[0] = 2
    assert launch().tasks_run == 1


def test_the_traceback_of_a_task_that_does_not_compile_ends_in_its_line():
    @atos.task
    def wrong(worker, v, seen, value):
        seen[v] = v.missing

    queue = atos.Queue(4, device="cpu")
    with pytest.raises(TaskCompileError) as caught:
        queue.prepare(wrong, atos.zeros(2, device="cpu"), 1)
    assert caught.traceback[-1].lineno + 1 == wrong.body.__code__.co_firstlineno + 2
    assert len(caught.traceback) <= 7


def test_it_follows_the_kinds_of_items(device):
    queue, seen, launch = prepared(device)
    queue.push(0)
    launch()
    queue.push(1, task=mark)  # the items of the queue have kinds from here on
    queue.push(2)
    assert launch().tasks_run == 2
    queue.push(3, task=mark_twice)
    with pytest.raises(InvalidArgumentError, match="items are waiting for tasks that the launch of mark lacks"):
        launch()
    both = queue.prepare((mark, mark_twice), seen, 1)
    assert both().tasks_run_by == {"mark": 0, "mark_twice": 1}
    queue.push(4)
    assert launch().tasks_run == 1
    assert seen[:].tolist() == [1, 1, 1, 2, 1, 0]


def test_queues_and_pools_among_its_arguments():
    @atos.task
    def send(worker, v, other, pool):
        place = pool.take()
        if place >= 0:
            pool.values[place] = v
            other.push(v)

    queue, other = atos.Queue(10, device="cpu"), atos.Queue(10, device="cpu")
    pool = atos.Pool(np.dtype([("values", "i8")]), 2, max_capacity=8, device="cpu")
    launch = queue.prepare(send, other, pool)
    for v in range(3):
        queue.push(v)
        launch()
        other.resize(20 + v)
    assert other.peek().tolist() == [0, 1, 2]
    assert pool.values[:].tolist() == [0, 1, 2]
    other.push(1, task=send)
    queue.push(3)
    with pytest.raises(InvalidArgumentError, match="tells the items of several tasks apart"):
        launch()


def test_arrays_of_other_libraries_are_shared():
    seen = np.zeros(4, np.int64)
    queue = atos.Queue(4, device="cpu")
    launch = queue.prepare(mark, seen, 5)
    queue.push(1)
    launch()
    assert seen.tolist() == [0, 5, 0, 0]


def test_it_is_made_by_several_threads():
    @atos.task
    def count(worker, v, total):
        atos.atomic_add(total, 0, 1)

    queue, total = atos.Queue(10, device="cpu"), atos.zeros(1, dtype=np.int64, device="cpu")
    launch = queue.prepare(count, total)
    runs: list[int] = []

    def work() -> None:
        for _ in range(50):
            queue.push(1)
            runs.append(launch().tasks_run)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    launch()
    assert total[0] == 150
    assert len(runs) == 150


def test_progress_and_a_stop_by_what_it_raises():
    class EnoughError(Exception):
        pass

    def show(ran, rate, waiting):
        raise EnoughError

    @atos.task
    def endless(worker, v, seen, value):
        worker.push(v)

    queue, _, launch = prepared("cpu", endless, progress=show)
    queue.push(1)
    for _ in range(2):
        with pytest.raises(EnoughError):
            launch()
    assert len(queue) == 1


def test_over_several_devices():
    parts = atos.generate.road(4, 1.0, device="cpu").partition(["cpu:0", "cpu:1"])
    queue = atos.Queue(20, owner=parts)
    seen = atos.full(16, 0, partition=parts, placement="owned")
    launch = queue.prepare(mark, seen, 1, num_blocks=1)
    for value in (1, 2):
        queue.push(range(16))
        stats = launch.rebind(value=value)()
        assert [each.tasks_run for each in stats.devices] == [8, 8]
        assert seen[:].tolist() == [value] * 16


def test_it_is_neither_copied_nor_pickled():
    _, _, launch = prepared("cpu")
    with pytest.raises(UnsupportedTypeError, match=r"call queue\.prepare again"):
        copy.copy(launch)
    assert repr(launch).startswith("<prepared launch of mark on <atos queue 0 of 10")


def test_a_recorder_sees_launches_that_were_made_before():
    queue, seen, launch = prepared("cpu")
    launch()
    with recorded_programs() as outer:
        launch()
        with recorded_programs() as inner:
            queue.launch(mark_twice, seen, 1.5)
            launch()
        launch()
    launch()
    assert [spec.task.name for spec in outer] == ["mark", "mark_twice"]
    assert [spec.task.name for spec in inner] == ["mark_twice", "mark"]


def call_path() -> Any:
    spec = importlib.util.spec_from_file_location("call_path", ROOT / "benchmarks" / "call_path.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("name", "most", "files"), [("launch_cta", 11, 5), ("prepared", 5, 3)])
def test_warm_launches_take_few_calls(name, most, files):
    """Each call in Python costs as much as the core takes for a small part of a launch."""
    script = call_path()
    run = script.measured_calls(atos.device("cpu"))[name]
    for _ in range(3):
        run()
    seen = script.count_calls(run)
    assert sum(seen.values()) <= most, seen
    assert len({file for file, _ in seen}) <= files, seen
