"""What is shown while a launch runs: the numbers are right, and the bar comes and goes."""

from __future__ import annotations

import io
import sys
import threading

import numpy as np
import pytest

import atos_py as atos
from atos_py.runtime import progress as shown

MANY = 20


@atos.task
def spin(worker, v, times, out):
    """Take some milliseconds on any device."""
    x = np.uint32(v + 1)
    for _ in range(times):
        x ^= x << np.uint32(13)
        x ^= x >> np.uint32(17)
        x ^= x << np.uint32(5)
    out[v] = x
    if v < 1_000 and worker.rank == 0:
        worker.push(v + 1_000)


def times(device):
    """Return how often to go round for some milliseconds on the CPU, and some tens of them on a GPU."""
    return 1_000_000 if atos.device(device).kind == "cpu" else 10_000_000


def run(device, progress, tasks=MANY, queue=None, **options):
    out = atos.zeros(2_000, dtype=np.uint32, device=device)
    if queue is None:
        queue = atos.Queue(4_000, device=device)
    queue.push(np.arange(tasks))
    return queue.launch_thread(spin, times(device), out, progress=progress, num_blocks=1, **options)


@pytest.mark.parametrize("barrier", [True, False])
@pytest.mark.parametrize("persistent", [True, False])
def test_a_function_is_told_how_the_launch_stands(persistent, barrier, device):
    seen = []
    stats = run(device, lambda *numbers: seen.append(numbers), persistent=persistent, barrier=barrier)
    assert stats.tasks_run == 2 * MANY
    assert stats.trace is None
    ran, rates, waiting = map(list, zip(*seen, strict=True))
    assert ran == sorted(ran)
    assert 0 < ran[-1] <= stats.tasks_run
    assert max(rates) > 0
    assert all(0 <= items <= 2 * MANY for items in waiting)
    if device.kind == "cpu":  # where one task runs at a time
        assert max(waiting) > 0


def test_each_launch_counts_from_0(device):
    queue = atos.Queue(4_000, device=device)
    for _ in range(2):
        seen = []
        run(device, lambda *numbers, seen=seen: seen.append(numbers), queue=queue)
        assert 0 < seen[-1][0] <= 2 * MANY  # all that one launch runs


def test_a_trace_beside_it(device):
    seen = []
    stats = run(device, lambda *numbers: seen.append(numbers), trace=1)
    assert seen
    assert 0 < len(stats.trace) <= 2 * MANY


def test_in_another_thread(device):
    seen = []
    thread = threading.Thread(target=run, args=(device, lambda *numbers: seen.append(numbers)))
    thread.start()
    thread.join()
    assert seen


def test_what_it_raises_stops_the_launch_and_loses_nothing(device):
    class OwnError(Exception):
        pass

    def fail(*_):
        raise OwnError

    out = atos.zeros(2_000, dtype=np.uint32, device=device)
    queue = atos.Queue(4_000, device=device)
    queue.push(np.arange(100))
    with pytest.raises(OwnError) as told:
        queue.launch_thread(spin, times(device), out, progress=fail, num_blocks=1, num_threads=32)
    assert "it was interrupted" in str(told.value.__cause__)
    assert len(queue) > 0
    queue.launch_thread(spin, times(device), out)
    assert queue.tasks_run == 200


def test_it_cannot_use_queues(device):
    other = atos.Queue(10, device=device)
    with pytest.raises(atos.InvalidArgumentError, match="progress function that runs during a launch cannot use a queue"):
        run(device, lambda *_: other.push(1))


@atos.task
def spread(worker, v, turns, counts):
    """Push two more, up to some number, after a while."""
    x = np.uint32(v + 1)
    for _ in range(turns):
        x ^= x << np.uint32(13)
        x ^= x >> np.uint32(17)
    if x != 0 and worker.rank == 0:
        atos.atomic_add(counts, v, 1)
        for child in range(2 * v + 1, 2 * v + 3):
            if child < len(counts):
                worker.push(child)


def test_it_frees_makes_and_reads_arrays_while_the_queue_grows(device):
    counts, kept = atos.zeros(1 << 14, dtype=np.int32, device=device), atos.full(4, 3, device=device)
    unused = [atos.zeros(1_000, device=device) for _ in range(100)]
    read = []

    def use(*_):
        del unused[:10]
        made = atos.asarray(np.arange(1_000), device=device)
        made[:5] = 7
        filled = atos.full(10, 2, dtype=np.int64, device=device)
        read.append((int(counts.to_numpy().max()), made.to_numpy().sum(), filled.to_numpy().sum(), kept.to_numpy().sum()))

    queue = atos.Queue(16, max_capacity=1 << 15, device=device)
    queue.push(0)
    turns = 20_000 if device.kind == "cpu" else 200_000
    stats = queue.launch_thread(spread, turns, counts, progress=use)
    assert stats.tasks_run == len(counts)
    assert (counts.to_numpy() == 1).all()
    assert read
    assert {most for most, *_ in read} <= {0, 1}
    assert {tuple(others) for _, *others in read} == {(499_500 - 10 + 35, 20, 12)}
    assert len(unused) < 100


@pytest.mark.parametrize("progress", [None, 1, "yes"])
def test_anything_else_is_refused(progress):
    with pytest.raises(atos.UnsupportedTypeError, match="progress must be True, False or a function"):
        run("cpu", progress)


def test_a_bar_of_tqdm(device, capfd):
    pytest.importorskip("tqdm")
    run(device, True, tasks=100)
    said = capfd.readouterr()
    assert said.out == ""
    assert "spin: " in said.err
    assert " waiting" in said.err
    assert said.err.endswith("\r")  # it is gone again


def test_a_line_without_tqdm(device, capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    run(device, True)
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.startswith("\rspin: ")
    assert " tasks/s, " in said.err
    assert said.err.endswith("\r")


def test_nothing_is_shown_of_a_short_launch(capfd):
    out = atos.zeros(10, dtype=np.uint32, device="cpu")
    atos.Queue(10, device="cpu").launch_thread(spin, 1, out, progress=True)
    assert capfd.readouterr() == ("", "")


def test_a_shorter_line_covers_the_one_before(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    line = shown._Line("t")
    line.write("a long line")
    line.write("short")
    assert sys.stderr.getvalue() == "\ra long line\rshort      "


def test_the_algorithms_take_it():
    seen = []
    graph = atos.generate.grid2d(1, 1_000_000, device="cpu")  # a path, along which nothing runs side by side
    atos.bfs(graph, 0, fetch_size=1, progress=lambda *numbers: seen.append(numbers))
    assert seen
