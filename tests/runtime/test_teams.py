"""Workers of several threads on a CPU: what is wrong on a GPU alone shows there, and what is right stays right."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from shared_tasks import every_schedule

import atos_py as atos
from atos_py.errors import InvalidArgumentError, LaunchConfigError, TaskError
from atos_py.models.acc import programs
from atos_py.models.dynamic.row_deletion import DELETION

THREADS = 4


@pytest.fixture
def team():
    return atos.device("cpu", threads_per_worker=THREADS)


def launch(team, task, *args, items=(0,), worker="cta", **options):
    queue = atos.Queue(1000, device=team)
    queue.push(list(items))
    return queue.launch(task, *args, worker=worker, **options)


def lines_of(task, *texts):
    """Return the lines of a task's body in which these texts stand."""
    code = task.body.__code__
    source = Path(code.co_filename).read_text().splitlines()
    found = [number for number in range(code.co_firstlineno, len(source) + 1) for text in texts if text in source[number - 1]]
    return found[: len(texts)]


# What a task does that counts on a worker of one thread


@atos.task
def push_by_each_thread(worker, v, seen):
    atos.atomic_add(seen, v, 1)
    if v < 3:
        worker.push(v + 1)  # without `if worker.rank == 0`


def test_a_push_by_each_thread_pushes_as_often(team):
    seen = atos.zeros(4, dtype=np.int64, device=team)
    stats = launch(team, push_by_each_thread, seen)
    assert seen.to_numpy().tolist() == [THREADS ** (v + 1) for v in range(4)]
    assert stats.tasks_run == sum(THREADS**v for v in range(4))


@atos.task
def add_plainly(worker, v, total):
    for _ in range(100):
        total[0] += 1


def test_plain_additions_are_lost(team):
    total = atos.zeros(1, dtype=np.int64, device=team)
    launch(team, add_plainly, total, num_blocks=1)
    assert 100 <= total[0] < 100 * THREADS


@atos.task
def barrier_for_some(worker, v, out):
    if worker.rank < 3:
        worker.sync()
    out[worker.rank] = 1


def test_a_barrier_that_not_all_threads_reach(team):
    out = atos.zeros(THREADS, dtype=np.int32, device=team)
    with pytest.raises(TaskError, match=r"3 of 4 threads of the worker have come to worker\.sync, and the other one") as caught:
        launch(team, barrier_for_some, out, items=[7])
    (line,) = lines_of(barrier_for_some, "worker.sync()")
    assert (caught.value.kind, caught.value.line, caught.value.item) == ("meeting", line, 7)
    assert out.to_numpy().tolist() == [0, 0, 0, 1]  # threads that wait in vain leave the task there


@atos.task
def two_barriers(worker, v, out):
    if worker.rank % 2:
        worker.sync()  # of odd threads
    else:
        out[0] = worker.sum(1)  # of even threads


def test_threads_that_wait_at_two_places(team):
    with pytest.raises(TaskError) as caught:
        launch(team, two_barriers, atos.zeros(1, dtype=np.int64, device=team))
    odd, even = lines_of(two_barriers, "# of odd threads", "# of even threads")
    assert {caught.value.line} < {odd, even}
    (other,) = {odd, even} - {caught.value.line}
    assert "2 of 4 threads of the worker have come to worker.s" in str(caught.value)
    assert str(caught.value).split("the other 2 wait in ")[1].split(":")[0] in (
        f"worker.sync of line {other}",
        f"worker.sum of line {other}",
    )


@atos.task
def barrier_of_a_group(worker, v, out):
    group = worker.group(2)
    if group.index == 1 and group.rank == 0:
        return
    out[worker.rank] = group.sum(1)


def test_a_group_that_a_thread_has_left(team):
    out = atos.zeros(THREADS, dtype=np.int32, device=team)
    with pytest.raises(TaskError, match=r"1 of 2 threads of the group have come to group\.sum, and the other one has returned"):
        launch(team, barrier_of_a_group, out)
    assert out.to_numpy().tolist() == [2, 2, 0, 0]  # the other group is whole


@atos.task
def read_before_written(worker, v, out):
    mine = worker.scratch(np.float32, 4)
    mine[worker.rank] = worker.rank
    out[v, worker.rank] = mine[3 - worker.rank]  # without `worker.sync()`


@atos.task
def read_after_written(worker, v, out):
    mine = worker.scratch(np.float32, 4)
    mine[worker.rank] = worker.rank
    worker.sync()
    out[v, worker.rank] = mine[3 - worker.rank]


def test_scratch_that_is_read_before_it_is_written(team):
    out = atos.zeros((20, THREADS), dtype=np.float32, device=team)
    launch(team, read_before_written, out, items=range(20))
    found = out.to_numpy()
    assert np.isnan(found).any(axis=1).all()  # in each item
    assert ((found == [3, 2, 1, 0]) | np.isnan(found)).all()
    launch(team, read_after_written, out, items=range(20))
    assert (out.to_numpy() == [3, 2, 1, 0]).all()


@atos.task
def unsized(worker, v, out):
    mine = worker.scratch(np.float64)
    out[v] = mine[0]  # which an item before has written
    worker.sync()
    mine[0] = v


def test_scratch_of_the_launch_holds_nothing_of_an_earlier_item(team):
    out = atos.zeros(10, dtype=np.float64, device=team)
    launch(team, unsized, out, items=range(10), shared_memory=8, num_blocks=1)
    assert np.isnan(out.to_numpy()).all()


@atos.task(workload=lambda v, out: 5)
def scratch_of_an_iteration(worker, v, i, out):
    mine = worker.scratch(np.float32, 2)
    out[i] = mine[0]
    mine[0] = i


def test_scratch_of_an_iteration_holds_nothing_of_an_earlier_one(team):
    out = atos.zeros(5, dtype=np.float32, device=team)
    launch(team, scratch_of_an_iteration, out)
    assert np.isnan(out.to_numpy()).all()


@atos.task
def fail_in_one_thread(worker, v, out):
    if worker.rank == 2:
        out[100] = 1
    out[worker.rank] = worker.sum(1)


def test_a_check_that_fails_in_one_thread_is_what_is_reported(team):
    out = atos.zeros(THREADS, dtype=np.int64, device=team)
    with pytest.raises(TaskError, match="index 100 is out of range") as caught:
        launch(team, fail_in_one_thread, out)
    assert caught.value.kind == "index"
    assert out.to_numpy().tolist() == [0] * THREADS


@atos.task(workload=lambda v, out: 9, group=2)
def fail_in_one_thread_of_a_group(worker, v, i, out):
    if i == 4 and worker.group.rank == 1:
        out[100] = 1
    out[i] = worker.group.sum(1)


def test_a_check_that_fails_in_a_nested_task(team):
    with pytest.raises(TaskError, match="index 100 is out of range"):
        launch(team, fail_in_one_thread_of_a_group, atos.zeros(9, dtype=np.int64, device=team))


# What is right


@atos.task
def under_a_lock(worker, v, lock, total):
    while atos.atomic_cas(lock, 0, 0, 1, memory_order="acquire"):
        pass
    total[0] += 1
    atos.atomic_exch(lock, 0, 0, memory_order="release")


def test_threads_that_wait_for_each_other_in_a_loop(team):
    lock, total = (atos.zeros(1, dtype=np.int64, device=team) for _ in range(2))
    launch(team, under_a_lock, lock, total, items=range(20), num_blocks=1, timeout=60)
    assert total[0] == 20 * THREADS


def note_size(worker, out, last):
    if worker.rank == 0 and out[0] < 8:
        worker.push(0)
    worker.sync()
    atos.atomic_max(last, 0, worker.size)


@atos.task
def count_threads(worker, v, out, last):
    atos.atomic_add(out, 0, 1)


def test_functions_without_an_item_run_by_all_threads(team):
    for options in ({"idle": note_size}, {"each_round": note_size, "barrier": True}):
        out, last = (atos.zeros(1, dtype=np.int64, device=team) for _ in range(2))
        launch(team, count_threads, out, last, num_blocks=1, **options)
        assert (out[0], last[0]) == (8, THREADS)


@every_schedule
@pytest.mark.parametrize("worker", ["warp", "cta"])
def test_tasks_of_several_kinds(team, persistent, barrier, worker):
    @atos.task
    def flat(worker, v, seen):
        if worker.rank == worker.size - 1:
            seen[v] += 1
            if v < 40:
                worker.push(v + 50, task=nested)

    @atos.task(workload=lambda v, seen: 10)
    def nested(worker, v, i, seen):
        if i == 3:
            seen[v] += 1
            worker.push(v - 49, task=flat)

    seen = atos.zeros(100, dtype=np.int64, device=team)
    launch(team, (flat, nested), seen, worker=worker, persistent=persistent, barrier=barrier)
    assert seen.to_numpy().tolist() == [1] * 41 + [0] * 9 + [1] * 40 + [0] * 10


def test_a_thread_worker_has_one_thread(team):
    seen = atos.zeros(4, dtype=np.int64, device=team)
    stats = launch(team, push_by_each_thread, seen, worker="thread")
    assert (stats.num_threads, stats.tasks_run) == (1, 4)
    assert launch(team, barrier_for_some, seen, worker="thread").tasks_run == 1


def test_algorithms(team):
    graph, host = (atos.generate.rmat(9, seed=3, device=device) for device in (team, "cpu"))
    search = atos.bfs(graph, 1, worker="cta", direction="push")
    assert search.stats.num_threads == THREADS
    assert search.depth.to_numpy().tolist() == atos.bfs(host, 1).depth.to_numpy().tolist()
    ranks, expected = (atos.pagerank(each).rank.to_numpy() for each in (graph, host))
    assert np.allclose(ranks, expected, atol=1e-6)


def test_a_deletion_by_the_tasks_of_a_gpu(team, monkeypatch):
    monkeypatch.setitem(DELETION, "cpu", DELETION["cuda"])
    targets = np.arange(600)
    graph = atos.DynamicGraph(atos.Graph.from_edges(np.zeros(600, int), targets, device=team))
    gone = targets[targets % 3 == 1]
    assert graph.delete_edges(np.zeros(gone.size, int), gone) == gone.size
    assert graph.to_graph().indices[:].tolist() == targets[targets % 3 != 1].tolist()


def test_a_vertex_program_on_a_graph_without_vertices(team):
    empty = atos.Graph.from_edges([], [], num_vertices=0, device=team)
    assert programs.pagerank(empty)[0].size == 0


# The order in which threads go on


@atos.task
def note_order(worker, v, turns, place):
    for _ in range(20):
        turns[v, atos.atomic_add(place, v, 1)] = worker.rank


def order(team, **options):
    turns = atos.full((8, 20 * THREADS), -1, dtype=np.int32, device=team)
    launch(team, note_order, turns, atos.zeros(8, dtype=np.int64, device=team), items=range(8), **options)
    assert (np.sort(turns.to_numpy(), axis=1) == np.repeat(np.arange(THREADS), 20)).all()
    return turns.to_numpy().tolist()


def test_the_order_is_drawn_by_item_and_seed(team, monkeypatch):
    first = order(team)
    assert order(team, num_blocks=1) == first == order(team, num_blocks=3, fetch_size=1)  # whichever worker has the item
    assert len({tuple(each) for each in first}) == 8
    monkeypatch.setenv("ATOS_TEAM_SEED", "1")
    second = order(team)
    assert second != first
    assert order(team) == second


# The device


def test_devices_that_differ_in_their_threads_are_equal(team):
    assert team == atos.device("cpu")
    assert hash(team) == hash(atos.device("cpu"))
    assert str(team) == "cpu"
    assert repr(team) == "Device(kind='cpu', index=0, threads_per_worker=4)"
    assert pickle.loads(pickle.dumps(team)).threads_per_worker == 4
    assert atos.device(team) is team
    assert atos.device(team, threads_per_worker=1).threads_per_worker == 1


def test_queues_of_both_devices_have_programs_of_their_own(team):
    seen = atos.zeros(4, dtype=np.int64, device="cpu")
    assert launch(team, push_by_each_thread, seen).tasks_run > 4
    assert launch("cpu", push_by_each_thread, seen).tasks_run == 4
    assert launch(team, push_by_each_thread, seen).tasks_run > 4


def test_the_environment_says_how_many_threads(monkeypatch):
    monkeypatch.setenv("ATOS_THREADS_PER_WORKER", "8")
    assert atos.device("cpu").threads_per_worker == atos.device("cpu:1").threads_per_worker == 8
    assert atos.device("cpu", threads_per_worker=2).threads_per_worker == 2
    monkeypatch.setenv("ATOS_THREADS_PER_WORKER", "many")
    with pytest.raises(InvalidArgumentError, match=r"ATOS_THREADS_PER_WORKER is a number of at least 0 \(got 'many'\)"):
        atos.device("cpu")


@pytest.mark.parametrize("threads", [0, 3, 6, 128])
def test_other_numbers_of_threads_are_refused(threads):
    with pytest.raises(InvalidArgumentError, match="threads_per_worker"):
        atos.device("cpu", threads_per_worker=threads)


def test_gpus_have_their_own_threads():
    with pytest.raises(InvalidArgumentError, match="threads_per_worker=4 is for CPU devices"):
        atos.core.devices.Device("cuda", 0, 4)


def test_races_are_looked_for_by_thread_workers(team):
    total = atos.zeros(1, dtype=np.int64, device=team)
    with pytest.raises(LaunchConfigError, match="follows workers of one thread, and those of this device have 4"):
        launch(team, add_plainly, total, debug="races")
    with pytest.raises(atos.RaceError):
        launch(team, add_plainly, total, debug="races", worker="thread", items=[1, 2])
