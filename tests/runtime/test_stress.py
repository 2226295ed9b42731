"""Random task graphs in random configurations: every task runs once, whatever the size of the queue."""

from __future__ import annotations

import importlib
import itertools
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from item_types import DTYPES
from repository import ROOT
from shared_tasks import (
    SCHEDULES,
    TASKS,
    assert_each_once,
    assert_nothing_is_missing,
    configurations,
    forest_on_host,
    grow,
    grow_flat,
    launch,
    nodes_as_items,
    on_device,
    run_through,
)

import atos_py as atos
from atos_py.errors import QueueFullError

forests = st.builds(
    forest_on_host,
    num_nodes=st.integers(1, 400),
    num_roots=st.just(1),
    most=st.sampled_from([1, 2, 3, 10, 100]),
    seed=st.integers(0, 1000),
)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    forest=forests,
    worker=st.sampled_from(["thread", "warp", "cta"]),
    dtype=st.sampled_from(list(TASKS)),
    capacity=st.sampled_from([1, 2, 3, 10, 100, 1000]),
    options=configurations,
)
def test_random_graphs_in_random_configurations(device, forest, worker, dtype, capacity, options):
    queue = atos.Queue(capacity, max_capacity=capacity, dtype=DTYPES[dtype], device=device)
    filled = run_through(queue, worker, forest, device, **options)
    if capacity >= len(forest.level):
        assert filled == 0


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), worker=st.sampled_from(["thread", "warp", "cta"]))
def test_pushes_launches_and_resizes_in_any_order(device, data, worker):
    """A queue does as a list of what is pending says, through any history."""
    forest = forest_on_host(300, 60, most=2, seed=data.draw(st.integers(0, 20)))
    there, counts = on_device(forest, device)
    capacity = data.draw(st.sampled_from([5, 30]))
    queue = atos.Queue(capacity, max_capacity=capacity, device=device)
    unused = list(range(60))  # roots that were not pushed yet
    pending: list[int] = []
    for _ in range(data.draw(st.integers(1, 12))):
        step = data.draw(st.sampled_from(["push", "push", "launch", "resize"]))
        if step == "push":
            some = unused[: data.draw(st.integers(0, 10))]
            if len(pending) + len(some) > queue.capacity:
                with pytest.raises(QueueFullError):
                    queue.push(some)
            else:
                queue.push(some)
                pending += some
                del unused[: len(some)]
        elif step == "launch" and len(pending) <= queue.capacity:
            try:
                persistent, barrier = data.draw(st.sampled_from(SCHEDULES))
                launch(queue, worker, grow, there, counts, persistent=persistent, barrier=barrier, fetch_size=3, num_blocks=2)
                pending = []
            except QueueFullError as error:
                pending = queue.peek().tolist()
                assert error.pending == len(pending)  # noqa: PT017
                assert error.lost == 0  # noqa: PT017
        elif step == "resize":
            queue.resize(max(1, len(pending) + data.draw(st.integers(0, 40))))
        assert queue.peek().tolist() == pending
        assert len(queue) == len(pending)
    queue.resize(1000)
    queue.push(unused)
    launch(queue, worker, grow, there, counts)
    assert_each_once(counts.seen.to_numpy())


@atos.task
def grow_or_put_aside(worker, v, forest, counts, aside):
    """Push the children of a node, but for every third, which idle has to find."""
    if worker.rank == 0:
        atos.atomic_add(counts.seen, v, 1)
    for child in worker.split(range(forest.first[v], forest.first[v + 1])):
        if child % 3 == 0:
            atos.atomic_exch(aside, child, 1)
        else:
            worker.push(child)


def find(worker, forest, counts, aside):
    """Push what was put aside."""
    for v in worker.split(aside.size):
        if aside[v] == 1 and atos.atomic_exch(aside, v, 0) == 1:
            worker.push(v)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    forest=forests,
    worker=st.sampled_from(["thread", "warp", "cta"]),
    capacity=st.sampled_from([1, 3, 30, 1000]),
    options=configurations,
)
def test_random_graphs_with_an_idle_function(device, forest, worker, capacity, options):
    there, counts = on_device(forest, device)
    aside = atos.zeros(len(forest.level), dtype=np.int32, device=device)
    queue = atos.Queue(capacity, device=device)
    queue.push([0])
    while True:
        try:
            launch(queue, worker, grow_or_put_aside, there, counts, aside, idle=find, **options)
            break
        except QueueFullError as error:
            assert error.lost == 0  # noqa: PT017
            queue.resize(2 * error.pending)
    assert_each_once(counts.seen.to_numpy())
    assert not aside.to_numpy().any()
    assert len(queue) == 0


STRESS = ROOT / "benchmarks" / "stress.py"


@pytest.mark.parametrize("options", [["--launches", "80", "--threads", "3"], ["--leak", "300"]], ids=["stress", "leak"])
def test_the_stress_command(device, options):
    """Several threads, each with queues and a stream of its own; the table of what went wrong."""
    limits = [] if "--leak" in options else ["--patience", "120"]  # the first launches compile, beside other tests
    if device.kind == "cuda" and limits:  # where most launches of a few wait for a kernel that nothing has linked before
        limits += ["--seconds", "60"]
    command = [sys.executable, STRESS, "--device", str(device), *options, *limits]
    for _ in range(3):
        done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
        if done.returncode == 0 or "--leak" not in options or device.kind == "cpu":
            break  # other processes take memory of a GPU too, now and then; what launches leave is there each time
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("| device |")


def test_the_stress_command_finds_what_is_wrong(monkeypatch, capsys):
    """A task that runs twice is counted as wrong, and fails the command."""
    monkeypatch.syspath_prepend(str(STRESS.parent))
    stress = importlib.import_module("stress")
    honest = stress.Places.__init__

    def twice(places: Any, *args: Any) -> None:
        honest(places, *args)
        for seen in places.seen:
            seen[0] = 1

    monkeypatch.setattr(stress.Places, "__init__", twice)
    assert not stress.stress(atos.device("cpu"), launches=3, threads=1, seed=0, patience=60)
    assert "| all | | | | 3 |" in capsys.readouterr().out


@pytest.mark.parametrize(("persistent", "barrier"), SCHEDULES, ids=lambda on: str(on).lower())
@pytest.mark.parametrize("dtype", ["uint32", "16 bytes", "32 bytes"])
def test_a_large_graph_through_a_queue_that_grows(device, worker, persistent, barrier, dtype):
    queue = atos.Queue(100, max_capacity=100, dtype=DTYPES[dtype], device=device)
    forest = forest_on_host(60_000, 20, most=3, seed=1)
    assert run_through(queue, worker, forest, device, persistent=persistent, barrier=barrier, num_blocks=4) > 0


@pytest.mark.parametrize("dtype", ["uint32", "uint64", "16 bytes", "32 bytes"])
def test_a_ring_that_is_just_large_enough(device, worker, dtype):
    """Chains through a ring with as many slots as there are chains: each lap fills it to the last slot.

    Most pushes find their slot occupied by a task that waits for its turn, so that this ends early now and then, within the
    launch, and goes on in order.
    """
    chains, length = 64, 200
    first = np.minimum(chains + np.arange(chains * length + 1), chains * length)  # the child of v is v + chains
    level = (np.arange(chains * length) // chains).astype(np.int32)
    host = forest_on_host(1)._replace(first=first, level=level, of_level=np.full(length, chains, np.int32))
    for number, capacity in itertools.product(range(4), (chains, chains + 1, 2 * chains)):
        there, counts = on_device(host, device)
        queue = atos.Queue(capacity, max_capacity=capacity, dtype=DTYPES[dtype], device=device)
        queue.push(nodes_as_items(np.arange(chains), queue.dtype))
        persistent, barrier = SCHEDULES[number]
        try:
            launch(
                queue, worker, TASKS[dtype], there, counts, persistent=persistent, barrier=barrier, num_blocks=4, fetch_size=2
            )
        except QueueFullError as error:
            # A task counts as pending until it has run, so that its child may be one too many.
            assert_nothing_is_missing(queue, host, counts, error)
            queue.resize(2 * error.pending)
            launch(queue, worker, TASKS[dtype], there, counts)
        assert_each_once(counts.seen.to_numpy())


@pytest.mark.parametrize("task", [grow, grow_flat], ids=["nested", "flat"])
def test_many_launches_of_many_kinds(device, task):
    """One queue through launches of all kinds in turn."""
    queue = atos.Queue(3000, device=device)
    for number in range(200):
        forest = forest_on_host(1 + 13 * (number % 20), 1, most=1 + number % 5, seed=number % 7)
        there, counts = on_device(forest, device)
        queue.push([0])
        persistent, barrier = SCHEDULES[number % 4]
        worker = ("thread", "warp", "cta")[number % 3]
        launch(queue, worker, task, there, counts, persistent=persistent, barrier=barrier, fetch_size=1 + number % 9)
        assert_each_once(counts.seen.to_numpy())


@pytest.mark.timeout(240)
def test_oversubscribed_threads(device):
    """More workers than cores, launched from more threads than cores, on queues that fill."""
    failures: list[Any] = []

    def work(seed: int) -> None:
        try:
            for turn in range(3):
                persistent, barrier = SCHEDULES[(seed + turn) % 4]
                queue = atos.Queue(10, max_capacity=10, dtype=("uint32", "int64")[seed % 2], device=device)
                forest = forest_on_host(1500, 2, seed=10 + seed)
                run_through(queue, "cta", forest, device, persistent=persistent, barrier=barrier, num_blocks=8, fetch_size=2)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(200)
        assert not thread.is_alive()
    assert failures == []


SHARING = """
import sys
import numpy as np, atos_py as atos
graph = atos.generate.road(60, device=sys.argv[1])
for number in range(20):
    source = int(sys.argv[2]) + 37 * number
    result = atos.bfs(graph, source, worker=("thread", "warp", "cta")[number % 3], persistent=number % 2 == 0)
    atos.verify_bfs(graph, source, result.depth)
"""


def test_two_processes_share_a_device(device):
    processes = [
        subprocess.Popen([sys.executable, "-c", SHARING, str(device), source], stderr=subprocess.PIPE, text=True)
        for source in ("0", "1000")
    ]
    for process in processes:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
