"""Launches that run the first kernel of a task, and later the best one."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import atos_py as atos
from atos_py.compile import best_links, linker
from atos_py.compile.program import Program, program_for
from atos_py.runtime import launch_plan
from atos_py.support import memory_cache


@atos.task
def mark(worker, v, seen):
    if worker.rank == 0:
        seen[v] += 1


class Better:
    """The link of a better kernel, as launches see it."""

    def __init__(self) -> None:
        self.due, self.asked = False, 0

    def is_due(self) -> bool:
        self.asked += 1
        return self.due


@pytest.fixture
def better(monkeypatch):
    """Better kernels that programs of the CPU wait for: until they are due, launches run the first tier."""
    found = Better()

    def program(spec: Any, device: Any, best: bool = False) -> Program:
        made = program_for(spec, device)
        return made if best or found.due or device.kind != "cpu" else made._replace(better=found)

    memory_cache.forget()
    monkeypatch.setattr(launch_plan, "program_for", program)
    yield found
    memory_cache.forget()


def test_a_later_launch_runs_the_best_kernel(better):
    queue, seen = atos.Queue(10, device="cpu"), atos.zeros(4, dtype=np.int32, device="cpu")
    prepared = queue.prepare(mark, seen)
    tiers = []
    for due in (False, False, True, True):
        better.due = due
        for launch in (lambda: queue.launch(mark, seen), prepared):
            queue.push([1])
            tiers.append(launch().tier)
    assert tiers == ["first"] * 4 + ["best"] * 4
    assert seen[1] == 8
    asked = better.asked
    queue.push([1])
    prepared()
    assert better.asked == asked  # nothing is looked up any more


def test_kept_launches_of_algorithms_take_the_best(better):
    graph = atos.generate.road(10, 0.8, device="cpu")
    expected = atos.bfs(graph, 0).depth.to_numpy()
    tiers = []
    for due in (False, True, True):
        better.due = due
        found = atos.bfs(graph, 0)
        assert np.array_equal(found.depth, expected)
        tiers.append(found.stats.tier)
    assert tiers == ["first", "best", "best"]


def test_the_best_is_asked_for(better):
    queue, seen = atos.Queue(10, device="cpu"), atos.zeros(4, dtype=np.int32, device="cpu")
    assert queue.launch(mark, seen, tier="best").tier == "best"
    assert queue.launch(mark, seen).tier == "first"
    with pytest.raises(atos.InvalidArgumentError, match=r"tier must be one of auto, best \(got 'first'\)"):
        queue.launch(mark, seen, tier="first")


def test_sums_name_the_first_tier(better):
    queue, seen = atos.Queue(10, device="cpu"), atos.zeros(4, dtype=np.int32, device="cpu")
    runs = [queue.launch(mark, seen)]
    assert "run by the first kernel of the task" in str(runs[0])
    better.due = True
    runs.append(queue.launch(mark, seen))
    assert "first kernel" not in str(runs[1])
    assert [atos.LaunchStats.total(some).tier for some in (runs, runs[1:], runs[::-1])] == ["first", "best", "first"]
    assert runs[0].to_dict()["tier"] == "first"


def test_launches_are_counted_while_they_run():
    queue, seen = atos.Queue(10, device="cpu"), atos.zeros(4, dtype=np.int32, device="cpu")
    found = []

    def progress(*_: Any) -> None:
        found.append(len(best_links.running))

    @atos.task
    def wait(worker, v, seen):
        while atos.atomic_load(seen, 0) == 0:
            pass

    def launch(progress: Any = False) -> None:
        queue.push([1])
        thread = threading.Timer(0.2, lambda: seen.fill(1))
        thread.start()
        try:
            queue.launch(wait, seen, num_blocks=1, progress=progress)
        finally:
            thread.join()
            seen.fill(0)

    launch()  # which compiles
    launch(progress)
    assert set(found) == {1}
    assert best_links.running == []
    with pytest.raises(ZeroDivisionError):
        launch(lambda *_: 1 / 0)
    assert best_links.running == []


# On a GPU: each test edits its task, so that nothing is linked yet.


def edited(number: int) -> atos.Task:
    """Return a task that nobody has compiled."""

    @atos.task
    def grow(worker, v, seen, limit):
        if worker.rank == 0:
            seen[v] = number
            for child in (2 * v + 1, 2 * v + 2):
                if child < limit:
                    worker.push(child)

    return grow


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    monkeypatch.setenv("ATOS_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("CUDA_CACHE_DISABLE", "1")
    monkeypatch.delenv("ATOS_TIER", raising=False)
    if not any(linker.CORE_DIR.glob("ready_*.fatbin")):
        pytest.skip("the core was built without GPU support")
    return atos.device("cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("worker", ["thread", "warp", "cta"])
def test_tiers_on_a_gpu(worker, fresh):
    task, n = edited(time.time_ns() % 2**31), 100_000
    tiers: dict[str, int] = {}
    for _ in range(2000):
        queue, seen = atos.Queue(100, device=fresh), atos.zeros(n, dtype=np.int64, device=fresh)
        queue.push([0])
        stats = queue.launch(task, seen, n, worker=worker)
        assert stats.tasks_run == n
        assert (seen.to_numpy() > 0).all()
        tiers[stats.tier] = tiers.get(stats.tier, 0) + 1
        if tiers.get("best", 0) == 3:
            break
        time.sleep(0.01)
    assert list(tiers) == ["first", "best"]
    queue.push([0])
    assert queue.launch(task, seen, n, worker=worker, tier="best").tier == "best"


@pytest.mark.gpu
def test_launches_stop_and_grow_while_a_link_runs(fresh):
    n = 1 << 21
    seen = atos.zeros(n, dtype=np.int64, device=fresh)
    for number in range(3):  # whose links run, one after the other, all the time
        task = edited(time.time_ns() % 2**31 + number)
        queue = atos.Queue(64, device=fresh)  # which grows
        queue.push([0])
        assert queue.launch(task, seen, n).tasks_run == n
        queue.push([0])
        began = time.perf_counter()
        with pytest.raises(atos.LaunchTimeoutError) as stopped:
            queue.launch(task, seen, n, timeout=1e-4)
        assert time.perf_counter() - began < 2
        assert not stopped.value.stuck
        while len(queue):
            queue.launch(task, seen, n)
        assert (seen.to_numpy() == seen[0]).all()
