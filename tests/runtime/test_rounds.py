"""Rounds of launches with barriers: their number, their mode, and the function that one worker runs after each of them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from shared_tasks import Counts, Forest, assert_each_once, forest_on_host, launch, nodes_as_items, on_device, plan

import atos_py as atos
from atos_py.errors import LaunchTimeoutError, QueueFullError, TaskCompileError, TaskError, UnsupportedTypeError

persistent_or_not = pytest.mark.parametrize("persistent", [True, False], ids=["persistent", "discrete"])


def array(device: atos.Device, n: int) -> atos.Array:
    return atos.zeros(n, dtype=np.int64, device=device)


@atos.task
def count_down(worker, v, ran, wrong):
    """Count this item in its round, whose mode is ten times its number, and push one less."""
    if worker.rank == 0:
        atos.atomic_add(ran, worker.round, 1)
        if worker.mode != 10 * worker.round:
            atos.atomic_add(wrong, 0, 1)
        if v > 0:
            worker.push(v - 1)


def set_tenfold(worker, ran, wrong):
    if worker.mode != 10 * worker.round:
        atos.atomic_add(wrong, 1, 1)
    worker.set_mode(10 * worker.round + 10)


@persistent_or_not
def test_workers_know_the_number_and_the_mode_of_the_round(device, worker, persistent):
    for _ in range(2):  # both begin at 0 in each launch
        ran, wrong = array(device, 12), array(device, 2)
        queue = atos.Queue(1000, device=device)
        queue.push([9] * 100 + [4] * 10)
        stats = launch(queue, worker, count_down, ran, wrong, each_round=set_tenfold, barrier=True, persistent=persistent)
        assert ran[:].tolist() == [110] * 5 + [100] * 5 + [0, 0]
        assert wrong[:].tolist() == [0, 0]
        assert stats.rounds == 10


def degree_of(v, ran, wrong):
    return 3


@atos.task(workload=degree_of)
def count_down_nested(worker, v, i, ran, wrong):
    atos.atomic_add(ran, worker.round, 1)
    if worker.mode != 10 * worker.round:
        atos.atomic_add(wrong, 0, 1)
    if i == 0 and v > 0:
        worker.push(v - 1)


@persistent_or_not
def test_nested_tasks_know_them_too(device, worker, persistent):
    ran, wrong = array(device, 12), array(device, 2)
    queue = atos.Queue(1000, device=device)
    queue.push([9] * 50)
    stats = launch(queue, worker, count_down_nested, ran, wrong, each_round=set_tenfold, barrier=True, persistent=persistent)
    assert ran[:].tolist() == [150] * 10 + [0, 0]
    assert wrong[:].tolist() == [0, 0]
    assert stats.rounds == 10


def note_pending(worker, log, each):
    """Note what waits for the next round, and push more than a buffer holds; what waits is the same after that."""
    before = worker.pending
    for k in worker.split(each if worker.round < 3 else 0):
        worker.push(k % 2)
    worker.sync()
    if worker.any(worker.pending != before):
        log[9] = 1
    if worker.rank == 0:
        log[worker.round] = before


@persistent_or_not
def test_the_function_between_rounds_knows_what_waits_for_the_next(device, worker, persistent):
    @atos.task
    def push_one_less(worker, v, log, each):
        if worker.rank == 0 and v > 0:
            worker.push(v - 1)

    @atos.task(workload=lambda v: v)
    def push_that_many(worker, v, i, log, each):
        worker.push(0)

    for task, expected in ((push_one_less, [7, 2507, 2507, 2500, 0]), (push_that_many, [21, 2500, 2500, 2500, 0])):
        for each in (5000, 0):
            log, queue = array(device, 10), atos.Queue(6000, device=device)
            queue.push([3] * 7)
            stats = launch(queue, worker, task, log, each, each_round=note_pending, barrier=True, persistent=persistent)
            if each == 0:
                expected = [7, 7, 7, 0] if task is push_one_less else [21, 0]
            assert log[:].tolist() == expected + [0] * (10 - len(expected))
            assert stats.rounds == len(expected)


def test_what_waits_in_a_bucket_that_is_not_open_does_not_count(device, worker):
    @atos.task
    def push_far(worker, v, log):
        if worker.rank == 0 and v == 1:
            worker.push(0, 0)
            worker.push(0, 0.5)
            worker.push(0, 30)

    def note(worker, log):
        log[worker.round] = worker.pending

    log, queue = array(device, 4), atos.Queue(100, buckets=8, delta=1.0, device=device)
    queue.push([1, 1], [0, 0])
    assert launch(queue, worker, push_far, log, each_round=note, barrier=True).tasks_run == 8
    assert log[:].tolist() == [4, 0, 2, 0]  # nothing runs in the third round, which opens the bucket


@persistent_or_not
def test_a_mode_stays_until_it_is_set_again(device, worker, persistent):
    @atos.task
    def note_mode(worker, v, modes):
        if worker.rank == 0:
            modes[worker.round] = worker.mode
            if v > 0:
                worker.push(v - 1)

    def set_twice(worker, modes):
        if worker.round == 1:
            worker.set_mode(-(1 << 40))
        if worker.round == 3:
            worker.set_mode(7)

    modes, queue = array(device, 7), atos.Queue(10, device=device)
    queue.push(5)
    launch(queue, worker, note_mode, modes, each_round=set_twice, barrier=True, persistent=persistent)
    assert modes[:].tolist() == [0, 0, -(1 << 40), -(1 << 40), 7, 7, 0]


@atos.task(workload=plan)
def grow_in_rounds(worker, item, i, first, forest, counts, calls, stop_at):
    """Push child i of a node; some nodes stop the launch. The mode is the number of the round."""
    worker.push(first + i)
    if worker.mode != worker.round:
        atos.atomic_add(calls, 1, 1)
    if stop_at > 0 and (first + i) % stop_at == 0:
        worker.stop()


def check_level(worker, forest, counts, calls, stop_at):
    """Count a call: the level of that number is over, and the one after it, all of which waits, has not begun."""
    worker.set_mode(worker.round + 1)
    if worker.rank == 0:
        level = calls[0]
        begun = level + 1 < counts.done.size and counts.done[level + 1] != 0
        waiting = forest.of_level[level + 1] if level + 1 < counts.done.size else 0
        if counts.done[level] != forest.of_level[level] or begun or worker.pending != waiting:
            calls[1] += 1
        calls[0] = level + 1


def check_run(forest: Forest, counts: Counts, calls: atos.Array, queue: atos.Queue) -> None:
    assert_each_once(counts.seen.to_numpy())
    assert len(queue) == 0
    assert counts.early[0] == 0
    assert calls[:].tolist() == [len(forest.of_level), 0]


@persistent_or_not
@pytest.mark.parametrize("capacity", [1, 100, 4000])
def test_it_runs_once_after_each_round_while_the_queue_grows(device, worker, persistent, capacity):
    forest = forest_on_host(3000, 1, most=4, seed=5)
    there, counts = on_device(forest, device)
    calls, queue = array(device, 2), atos.Queue(capacity, device=device)
    queue.push(0)
    options: dict[str, Any] = {"barrier": True, "persistent": persistent, "each_round": check_level}
    stats = launch(queue, worker, grow_in_rounds, there, counts, calls, 0, **options)
    check_run(forest, counts, calls, queue)
    assert stats.rounds == len(forest.of_level)


@pytest.mark.parametrize("schedules", [[True], [False], [True, False]], ids=["persistent", "discrete", "both"])
@pytest.mark.parametrize("why", ["timeout", "stop", "full"])
def test_it_runs_once_after_each_round_of_launches_that_were_interrupted(device, worker, schedules, why):
    """The rest of a round that was interrupted is a round of the next launch, and only after that the function runs."""
    forest = forest_on_host(3000, 1, most=4, seed=6)
    there, counts = on_device(forest, device)
    calls, queue = array(device, 2), atos.Queue(4, device=device)
    queue.push(0)
    if why == "full":
        queue.max_capacity = 4
    launches = 0
    for persistent in itertools.cycle(schedules):
        options: dict[str, Any] = {"barrier": True, "persistent": persistent, "each_round": check_level, "fetch_size": 1}
        options["timeout"] = 1e-6 * (1 + launches * 7 % 300) if why == "timeout" and launches < 300 else None
        launches += 1
        try:
            stats = launch(queue, worker, grow_in_rounds, there, counts, calls, 40 if why == "stop" else 0, **options)
            assert stats.stopped or not len(queue)
        except LaunchTimeoutError:
            pass
        except QueueFullError as error:
            queue.max_capacity = error.pending + error.pending // 4
        if not len(queue):
            break
    check_run(forest, counts, calls, queue)
    assert why == "timeout" or launches > 5


@atos.task
def note_item(worker, v, seen, seeds, calls):
    if worker.rank == 0:
        atos.atomic_add(seen, v, 1)


@persistent_or_not
@pytest.mark.parametrize("at_once", [100, 20_000])
def test_it_pushes_from_an_array_of_seeds(device, worker, persistent, at_once):
    """Into an empty queue: a first round of nothing. More than the ring and the buffer of a worker hold is not lost."""

    def push_seeds(worker, seen, seeds, calls):
        done = worker.round * at_once
        for k in worker.split(range(done, min(done + at_once, seeds.size))):
            worker.push(seeds[k])
        if worker.rank == 0:
            calls[0] += 1

    n = 3 * at_once - at_once // 2
    seeds = atos.asarray(np.random.default_rng(1).permutation(n).astype(np.int32), device=device, readonly=True)
    seen, calls, queue = array(device, n), array(device, 1), atos.Queue(64, device=device)
    stats = launch(queue, worker, note_item, seen, seeds, calls, each_round=push_seeds, barrier=True, persistent=persistent)
    assert_each_once(seen.to_numpy())
    assert (stats.tasks_run, stats.tasks_pushed, stats.rounds, calls[0]) == (n, n, 4, 4)
    assert stats.grown >= 1


@persistent_or_not
def test_it_pushes_records(device, worker, persistent):
    item = np.dtype([("vertex", "i8"), ("distance", "f8")])

    @atos.task
    def keep(worker, item, out):
        if worker.rank == 0:
            atos.atomic_add(out, item.vertex, item.distance)

    def push_one(worker, out):
        if worker.rank == 0 and worker.round < 5:
            worker.push((worker.round, worker.round + 0.5))

    out, queue = atos.zeros(6, device=device, dtype=np.float64), atos.Queue(2, dtype=item, device=device)
    queue.push(nodes_as_items(np.array([5]), item))
    stats = launch(queue, worker, keep, out, each_round=push_one, barrier=True, persistent=persistent)
    assert out[:].tolist() == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
    assert stats.rounds == 6


def test_a_queue_that_may_not_hold_its_pushes_says_so(device, worker):
    def push_many(worker, seen, seeds, calls):
        if worker.round == 0:
            for k in worker.split(seeds.size):
                worker.push(k)
        if worker.rank == 0:
            calls[0] += 1

    seen, calls = array(device, 50), array(device, 1)
    seeds = atos.zeros(50, dtype=np.int32, device=device)
    queue = atos.Queue(8, max_capacity=16, device=device)
    with pytest.raises(QueueFullError) as full:
        launch(queue, worker, note_item, seen, seeds, calls, each_round=push_many, barrier=True)
    assert (full.value.pending, full.value.lost, calls[0]) == (50, 0, 1)
    queue.resize(64)
    launch(queue, worker, note_item, seen, seeds, calls, barrier=True)
    assert_each_once(seen.to_numpy())


@persistent_or_not
def test_it_stops_a_launch(device, worker, persistent):
    """What it pushed is in the queue then."""

    def stop_third(worker, ran, wrong):
        worker.set_mode(10 * worker.round + 10)
        if worker.round == 2:
            worker.stop()
            for k in worker.split(5):
                worker.push(100 + k)

    ran, wrong, queue = array(device, 10), array(device, 2), atos.Queue(100, device=device)
    queue.push([8, 9])
    stats = launch(queue, worker, count_down, ran, wrong, each_round=stop_third, barrier=True, persistent=persistent)
    assert (stats.stopped, stats.rounds, stats.tasks_run, wrong[0]) == (True, 3, 6, 0)
    assert sorted(queue.peek()) == [5, 6, 100, 101, 102, 103, 104]


@persistent_or_not
def test_idle_is_called_when_a_round_and_its_function_left_nothing(device, worker, persistent):
    """A pass of idle is no round: it has no number, and no call follows it. What idle pushes runs in the round after."""

    @atos.task
    def note_round(worker, v, log):
        if worker.rank == 0:
            atos.atomic_add(log, 0, 1)
            log[10 + worker.round] = v

    def push_in_first(worker, log):
        if worker.rank == 0:
            atos.atomic_add(log, 1, 1)
            if worker.round == 0:
                worker.push(2)

    def push_third(worker, log):
        if worker.rank == 0 and atos.atomic_cas(log, 2, worker.round - 1, 3) == 0:
            worker.push(3)

    log, queue = array(device, 20), atos.Queue(10_000, device=device)
    queue.push(1)
    stats = launch(
        queue, worker, note_round, log, each_round=push_in_first, idle=push_third, barrier=True, persistent=persistent
    )
    assert log[:3].tolist() == [3, 3, 3]
    assert log[10:14].tolist() == [1, 2, 3, 0]
    assert stats.rounds == 3


@atos.task
def relax(worker, v, indptr, indices, labels, changed):
    """Take the smallest label of the neighbors, from the labels of the round before; every vertex in every round."""
    if worker.rank == 0:
        before, after = worker.round % 2, (worker.round + 1) % 2
        label = labels[before, v]
        for edge in range(indptr[v], indptr[v + 1]):
            label = min(label, labels[before, indices[edge]])
        if label != labels[before, v]:
            atos.atomic_add(changed, 0, 1)
        labels[after, v] = label
        worker.push(v)


def until_nothing_changes(worker, indptr, indices, labels, changed):
    if changed[0] == 0:
        worker.stop()
    worker.sync()
    if worker.rank == 0:
        changed[0] = 0


@persistent_or_not
def test_convergence_is_tested_without_the_host(device, worker, persistent):
    graph = atos.generate.road(12, 0.6, seed=1, device="cpu")
    n = graph.num_vertices
    expected = np.arange(n)
    source = np.repeat(np.arange(n), np.diff(graph.indptr.to_numpy()))
    rounds = 0
    while True:
        rounds += 1
        before = expected.copy()
        np.minimum.at(expected, source, before[graph.indices.to_numpy()])
        if (before == expected).all():
            break
    on = {"device": device, "readonly": True}
    indptr, indices = (atos.asarray(part.to_numpy(), **on) for part in (graph.indptr, graph.indices))
    labels = atos.asarray(np.stack([np.arange(n)] * 2), device=device)
    changed, queue = array(device, 1), atos.Queue(2 * n, device=device)
    queue.push(np.arange(n))
    options: dict[str, Any] = {"each_round": until_nothing_changes, "barrier": True, "persistent": persistent}
    stats = launch(queue, worker, relax, indptr, indices, labels, changed, **options)
    assert (stats.stopped, stats.rounds, stats.tasks_run) == (True, rounds, rounds * n)
    assert labels.to_numpy()[0].tolist() == expected.tolist()
    assert sorted(queue.peek()) == list(range(n))


PUSH, PULL, DONE = 0, 1, 2


@atos.task
def search(worker, v, graph, depth, found, pulls):
    """Reach the neighbors of v, or, in rounds that pull, look for a neighbor by which v is reached."""
    if worker.mode == PUSH:
        for edge in worker.split(range(graph.indptr[v], graph.indptr[v + 1])):
            neighbor = graph.indices[edge]
            if atos.atomic_cas(depth, neighbor, -1, worker.round + 1) == -1:
                atos.atomic_add(found, 0, 1)
                worker.push(neighbor)
    elif worker.mode == PULL and worker.rank == 0 and depth[v] == -1:
        atos.atomic_add(pulls, 0, 1)
        for edge in range(graph.indptr[v], graph.indptr[v + 1]):
            if depth[graph.indices[edge]] == worker.round:
                depth[v] = worker.round + 1
                atos.atomic_add(found, 0, 1)
                break
        if depth[v] == -1:
            worker.push(v)


def choose_direction(worker, graph, depth, found, pulls):
    """Pull from the round on that has reached a tenth of the vertices, until one reaches nothing."""
    size = found[0]
    worker.sync()
    if worker.rank == 0:
        found[0] = 0
    if worker.mode == PUSH and size * 10 > depth.size:
        worker.set_mode(PULL)
        for v in worker.split(depth.size):
            if depth[v] == -1:
                worker.push(v)
    elif worker.mode == PULL and size == 0:
        worker.set_mode(DONE)


@persistent_or_not
def test_a_search_switches_direction_in_one_launch(device, worker, persistent):
    graph = atos.generate.rmat(9, 8, seed=2, device=device).to_symmetric()
    n = graph.num_vertices
    expected = atos.bfs(graph, 0, direction="push").depth.to_numpy().astype(np.int64)
    expected[expected == atos.UNREACHED] = -1
    depth, found, pulls = atos.full(n, -1, dtype=np.int32, device=device), array(device, 1), array(device, 1)
    depth[0] = 0
    queue = atos.Queue(n, device=device)
    queue.push(0)
    options: dict[str, Any] = {"each_round": choose_direction, "barrier": True, "persistent": persistent}
    stats = launch(queue, worker, search, graph, depth, found, pulls, **options)
    assert depth.to_numpy().tolist() == expected.tolist()
    assert pulls[0] > 0
    assert not stats.stopped
    assert stats.rounds > expected.max()


def nothing(worker, *args):
    pass


@atos.task
def ignore(worker, v):
    pass


def ask_round(worker):
    return worker.round


def test_without_barriers_there_are_no_rounds(device, worker):
    @atos.task
    def asks(worker, v):
        if ask_round(worker) > v:
            worker.push(v)

    @atos.task(workload=lambda v: 1)
    def asks_nested(worker, v, i):
        if worker.mode > v:
            worker.push(v)

    queue = atos.Queue(1, device=device)
    for task, options in (
        (asks, {}),
        (asks_nested, {}),
        (ignore, {"idle": lambda worker: worker.mode}),
        (asks, {"persistent": False}),
    ):
        with pytest.raises(TaskCompileError, match=r"uses worker\.round or worker\.mode.*pass barrier=True"):
            launch(queue, worker, task, **options)
        assert launch(queue, worker, task, **{**options, "barrier": True}).tasks_run == 0
    with pytest.raises(TaskCompileError, match=r"comes with a function each_round.*pass barrier=True"):
        launch(queue, worker, ignore, each_round=nothing)


def test_only_the_function_between_rounds_sets_the_mode(device, worker):
    @atos.task
    def sets(worker, v):
        worker.set_mode(1)

    @atos.task(workload=lambda v: 1)
    def sets_nested(worker, v, i):
        worker.set_mode(1)

    def sets_half(worker):
        worker.set_mode(0.5)

    queue = atos.Queue(1, device=device)
    with pytest.raises(TaskCompileError, match=r"worker\.set_mode is for the function each_round"):
        launch(queue, worker, sets, barrier=True)
    with pytest.raises(TaskCompileError, match=r"worker\.set_mode is for flat tasks"):
        launch(queue, worker, sets_nested, barrier=True)
    with pytest.raises(TaskCompileError, match=r"worker\.set_mode is for the function each_round"):
        launch(queue, worker, ignore, idle=lambda worker: worker.set_mode(1), barrier=True)
    with pytest.raises(TaskCompileError, match=r"worker\.set_mode takes an integer, not float64"):
        launch(queue, worker, ignore, each_round=sets_half, barrier=True)


def ask_pending(worker):
    return worker.pending


def test_only_the_function_between_rounds_knows_what_waits(device, worker):
    @atos.task
    def asks(worker, v):
        if ask_pending(worker) > v:
            worker.push(v)

    @atos.task(workload=lambda v: 1)
    def asks_nested(worker, v, i):
        if worker.pending > v:
            worker.push(v)

    queue = atos.Queue(1, device=device)
    for task, options in ((asks, {}), (asks_nested, {}), (ignore, {"idle": ask_pending})):
        with pytest.raises(TaskCompileError, match=r"worker\.pending is for the function each_round"):
            launch(queue, worker, task, **options, barrier=True)


def test_functions_that_are_none():
    queue = atos.Queue(1, device="cpu")
    with pytest.raises(UnsupportedTypeError, match="each_round must be a function of the worker and the arguments"):
        queue.launch_cta(ignore, each_round=5, barrier=True)
    with pytest.raises(TaskCompileError, match=r"the function each_round .* takes 2 arguments"):
        queue.launch_cta(ignore, each_round=lambda worker, one: None, barrier=True)


@persistent_or_not
def test_two_functions_of_one_task_are_two_programs(device, worker, persistent):
    @atos.task
    def nothing_to_do(worker, v, out):
        pass

    def first(worker, out):
        out[0] = 1

    def second(worker, out):
        out[1] = 1

    out, queue = array(device, 2), atos.Queue(1, device=device)
    for each_round, expected in ((None, [0, 0]), (first, [1, 0]), (second, [1, 1])):
        launch(queue, worker, nothing_to_do, out, each_round=each_round, barrier=True, persistent=persistent)
        assert out[:].tolist() == expected


@persistent_or_not
def test_a_check_that_fails_between_rounds_is_reported(device, worker, persistent):
    def beyond(worker, ran, wrong):
        if worker.round == 3:
            wrong[worker.round] = 1

    ran, wrong, queue = array(device, 10), array(device, 2), atos.Queue(10, device=device)
    queue.push(8)
    with pytest.raises(TaskError, match="index 3 is out of range for array 'wrong' of length 2, between rounds") as error:
        launch(queue, worker, count_down, ran, wrong, each_round=beyond, barrier=True, persistent=persistent, debug=True)
    assert (error.value.function, error.value.item) == ("beyond", None)
    assert ran[:].tolist() == [1] * 4 + [0] * 6
    assert queue.peek().tolist() == [4]
