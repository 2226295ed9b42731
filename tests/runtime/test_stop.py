"""Launches that are stopped: by their timeout, by a signal handler, and while they wait for another thread's launch."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from item_types import DTYPES
from shared_tasks import again, assert_each_once, configurations, every_schedule, forest_on_host, launch, on_device

import atos_py as atos
from atos_py.errors import InvalidArgumentError, LaunchTimeoutError, QueueFullError, UnsupportedTypeError


def slow_plan(item, turns, forest, counts):
    v = np.int64(item)
    state = v + 1
    for _ in range(turns):
        state = state * 6364136223846793005 + 1442695040888963407
    if state != 0:
        atos.atomic_add(counts.seen, v, 1)
    return forest.first[v + 1] - forest.first[v], forest.first[v]


@atos.task(workload=slow_plan)
def grow_slowly(worker, item, i, first, turns, forest, counts):
    """Push child i of a node, after a while."""
    worker.push(first + i)


@every_schedule
@pytest.mark.parametrize("num_blocks", [None, 1])
def test_a_timeout_stops_a_launch_without_end(device, worker, persistent, barrier, num_blocks):
    """With one block no thread is ever without an item: nobody leaves because it waits in vain."""
    queue = atos.Queue(4000, device=device)
    queue.push(range(3000))
    for _ in range(2):
        with pytest.raises(LaunchTimeoutError, match=r"its timeout of 0\.05 s; 3000 tasks are unfinished") as stopped:
            launch(queue, worker, again, persistent=persistent, barrier=barrier, num_blocks=num_blocks, timeout=0.05)
        assert isinstance(stopped.value, TimeoutError)
        assert (stopped.value.pending, stopped.value.stuck) == (3000, False)
        assert np.sort(queue.peek()).tolist() == list(range(3000))
    queue.clear()
    assert len(queue) == 0
    stats = launch(queue, worker, again, persistent=persistent, barrier=barrier, timeout=60)
    assert stats.tasks_run == 0


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    worker=st.sampled_from(["thread", "warp", "cta"]),
    dtype=st.sampled_from(["uint32", "int64"]),
    capacity=st.sampled_from([1, 100, 4000]),
    seed=st.integers(0, 20),
    options=configurations,
    timeouts=st.lists(st.floats(1e-6, 5e-3), min_size=1, max_size=30),
)
def test_what_was_stopped_goes_on(device, worker, dtype, capacity, seed, options, timeouts):
    """After stops at any moments every task has run once."""
    forest = forest_on_host(3000, 1, most=4, seed=seed)
    there, counts = on_device(forest, device)
    queue = atos.Queue(capacity, dtype=DTYPES[dtype], device=device)
    queue.push(0)
    for timeout in [*timeouts, None]:
        try:
            launch(queue, worker, grow_slowly, 2000, there, counts, timeout=timeout, **options)
            break
        except LaunchTimeoutError as stopped:
            seen = counts.seen.to_numpy()
            assert seen.max() <= 1
            pushed = 1 + np.diff(forest.first)[seen == 1].sum()
            assert len(queue) == stopped.pending == pushed - seen.sum()  # noqa: PT017
    assert_each_once(counts.seen.to_numpy())
    assert len(queue) == 0


@atos.task
def push_next_and_stop(worker, item, n, seen, count, at):
    """Push the vertex of the next of two rounds, and stop the launch after some tasks."""
    if worker.rank == 0:
        atos.atomic_add(seen, item.vertex, 1)
        if item.vertex < n:
            worker.push((item.vertex + n, item.distance, item.parent, item.bound))
        if atos.atomic_add(count, 0, 1) == at:
            worker.stop()


@every_schedule
@pytest.mark.parametrize("capacity", [3000, 3500, 10000])
def test_a_stop_keeps_the_order_of_records(device, worker, persistent, barrier, capacity):
    """What is left of an interrupted round comes first, in its order, and is not counted as a round once more."""
    n = 3000
    dtype = DTYPES["32 bytes"]
    queue = atos.Queue(capacity, dtype=dtype, device=device, max_capacity=10000)
    items = np.zeros(n, dtype)
    items["vertex"], items["parent"] = np.arange(n), np.arange(n) + 7
    queue.push(items)
    seen = atos.zeros(2 * n, dtype=np.int64, device=device)
    rounds = interrupted = 0
    for at in (0, 500, n - 1, 1700, -1):
        count = atos.zeros(1, dtype=np.int64, device=device)
        stats = launch(queue, worker, push_next_and_stop, n, seen, count, at, persistent=persistent, barrier=barrier)
        left, ran = queue.peek(), seen.to_numpy()
        vertices = left["vertex"]
        assert ran.max() <= 1
        expected = np.concatenate([ran[:n] == 0, (ran[:n] == 1) & (ran[n:] == 0)])
        assert np.sort(vertices).tolist() == np.flatnonzero(expected).tolist()
        assert (left["parent"] == vertices % n + 7).all()
        assert (np.diff(vertices[vertices < n]) > 0).all()
        if barrier:
            assert (np.diff(vertices >= n) >= 0).all()
            first = vertices[0] // n * n if len(vertices) else 2 * n
            rounds += stats.rounds if stats.tasks_run else 0  # of an empty queue, a GPU has one round of nothing
            interrupted += bool(len(vertices) and ran[first : first + n].any())
    assert (seen.to_numpy() == 1).all()
    assert len(queue) == 0
    assert not barrier or rounds - interrupted == 2


@pytest.mark.parametrize("timeout", [0, -1, -0.5, float("nan"), float("-inf")])
def test_timeouts_that_make_no_sense(timeout):
    with pytest.raises(InvalidArgumentError, match=r"timeout must be a (finite number|number of seconds above 0)"):
        atos.Queue(1, device="cpu").launch_cta(again, timeout=timeout)


@pytest.mark.parametrize("timeout", ["1", True, [1], 1j])
def test_timeouts_of_other_types(timeout):
    with pytest.raises(UnsupportedTypeError, match="timeout must be a number"):
        atos.Queue(1, device="cpu").launch_cta(again, timeout=timeout)


@pytest.mark.parametrize("timeout", [1, 1e300, float("inf"), np.float32(5), None])
def test_timeouts_that_are_not_reached(device, timeout):
    assert atos.Queue(1, device=device).launch_cta(again, timeout=timeout).tasks_run == 0


class ToldError(Exception):
    """What a handler of the tests raises."""


@every_schedule
def test_what_a_signal_handler_raises_stops_a_launch(device, persistent, barrier):
    def tell(*_: Any) -> None:
        raise ToldError

    atos.Queue(1, device=device).launch_cta(again, persistent=persistent, barrier=barrier)  # compiles, which may take longer
    queue = atos.Queue(100, device=device)
    queue.push([1, 2, 3])
    before = signal.signal(signal.SIGALRM, tell)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(ToldError) as told:
            queue.launch_cta(again, persistent=persistent, barrier=barrier)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert "it was interrupted; 3 tasks are unfinished" in str(told.value.__cause__)
    assert sorted(queue.peek()) == [1, 2, 3]


def test_handlers_run_and_the_launch_goes_on(device):
    calls: list[Any] = []

    def note(*_: Any) -> None:
        for use in (lambda: len(queue), atos.release_memory):
            try:
                use()
            except InvalidArgumentError as error:
                calls.append(str(error))

    queue = atos.Queue(100, device=device)
    queue.push([1])
    before = signal.signal(signal.SIGALRM, note)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        with pytest.raises(LaunchTimeoutError):
            queue.launch_cta(again, timeout=0.5)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    refused = "a signal handler or progress function that runs during a launch cannot "
    assert set(calls) == {refused + "use a queue", refused + "release memory"}
    assert len(calls) > 1
    assert len(queue) == 1


def test_only_the_main_thread_is_interrupted(device):
    """A launch in another thread goes on, through signals that the main thread takes."""
    ended: list[Any] = []

    def work() -> None:
        queue = atos.Queue(100, device=device)
        queue.push([1])
        try:
            queue.launch_cta(again, timeout=1)
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored, as above
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    thread.join()
    assert [type(error) for error in ended] == [LaunchTimeoutError]


@atos.task
def hold(worker, v, flags):
    """Say that it runs, and wait to be let go."""
    flags[0] = 1
    while flags[1] == 0:
        pass


@pytest.fixture
def held() -> Iterator[tuple[atos.Queue, atos.Array, threading.Thread]]:
    """A queue that another thread's launch holds, until its flag is set, which a timer does in the end."""
    flags = atos.zeros(2, dtype=np.int32, device="cpu")
    queue = atos.Queue(10, device="cpu")
    queue.push(7)
    thread = threading.Thread(target=lambda: queue.launch_cta(hold, flags, num_blocks=1))
    late = threading.Timer(20, lambda: flags.__setitem__(1, 1))
    late.start()
    thread.start()
    while flags[0] == 0:
        time.sleep(0.001)
    yield queue, flags, thread
    flags[1] = 1
    late.cancel()
    thread.join()


WAITING: dict[str, Callable[[atos.Queue, Path], Any]] = {
    "len": lambda queue, path: len(queue),
    "push": lambda queue, path: queue.push([1, 2]),
    "peek": lambda queue, path: queue.peek(),
    "clear": lambda queue, path: queue.clear(),
    "resize": lambda queue, path: queue.resize(20),
    "save": lambda queue, path: queue.save(path),
    "tasks_run": lambda queue, path: queue.tasks_run,
    "launch": lambda queue, path: queue.launch_cta(again),
}


@pytest.mark.parametrize("call", WAITING.values(), ids=WAITING)
def test_who_waits_for_another_threads_launch_is_interrupted(held, call, tmp_path):
    queue, flags, thread = held

    def tell(*_: Any) -> None:
        raise ToldError

    before = signal.signal(signal.SIGALRM, tell)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(ToldError):
            call(queue, tmp_path / "run.atos")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert flags[1] == 0  # while the launch went on
    flags[1] = 1
    thread.join()
    assert (len(queue), queue.capacity, queue.tasks_run) == (0, 10, 1)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("call", WAITING.values(), ids=WAITING)
def test_who_waits_goes_on_after_a_handler_that_returns(held, call, tmp_path):
    queue, flags, thread = held
    calls: list[Any] = []

    def note(*_: Any) -> None:
        calls.append(None)
        if len(calls) == 3:
            flags[1] = 1

    before = signal.signal(signal.SIGALRM, note)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        call(queue, tmp_path / "run.atos")
        assert len(calls) >= 3
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    thread.join()
    assert queue.tasks_run == 1


def test_waits_in_other_threads_end_with_the_launch(held):
    queue, flags, thread = held
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(len(queue))) for _ in range(3)]
    threads.append(threading.Thread(target=lambda: queue.push([1, 2, 3])))
    for waiting in threads:
        waiting.start()
    time.sleep(0.1)
    assert found == []
    flags[1] = 1
    for waiting in threads:
        waiting.join()
    thread.join()
    assert set(found) <= {0, 3}
    assert queue.peek().tolist() == [1, 2, 3]


def test_a_launch_that_waits_in_vain_says_that_it_ran_nothing(held):
    queue, _, _ = held
    with pytest.raises(LaunchTimeoutError, match=r"its timeout of 0\.05 s while it waited for another launch") as stopped:
        queue.launch_cta(again, timeout=0.05)
    assert (stopped.value.pending, stopped.value.stuck) == (None, False)


def test_an_interrupt_says_how_a_launch_ended_in_any_case():
    """Here with a queue that is full at the moment at which progress is shown."""

    @atos.task
    def fill(worker, v, flags):
        flags[0] = 1
        while flags[1] == 0:
            pass
        worker.push(v)
        worker.push(v)

    flags = atos.zeros(2, dtype=np.int32, device="cpu")

    def show(*_: Any) -> None:
        if flags[0]:
            flags[1] = 1
            raise ToldError

    queue = atos.Queue(1, max_capacity=1, device="cpu")
    queue.push(7)
    with pytest.raises(ToldError) as told:
        queue.launch_cta(fill, flags, num_blocks=1, progress=show)
    assert isinstance(told.value.__cause__, QueueFullError)
    assert (told.value.__cause__.pending, told.value.__cause__.lost, len(queue)) == (2, 0, 2)
