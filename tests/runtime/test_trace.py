"""The trace of a run: samples taken by the workers themselves."""

from __future__ import annotations

import numpy as np
import pytest

import atos_py as atos
from atos_py.runtime.trace import make_trace


def test_a_trace_rises_to_the_tasks_run():
    graph = atos.generate.road(300, device="cpu")
    stats = atos.bfs(graph, 45150, trace=50).stats
    trace = stats.trace
    assert trace is not None
    assert len(trace) > 1
    assert np.all(np.diff(trace["milliseconds"]) >= 0)
    assert np.all(np.diff(trace["tasks_run"]) >= 0)
    assert 0 < trace["tasks_run"][-1] <= stats.tasks_run
    assert trace["milliseconds"][-1] <= stats.milliseconds


def test_samples_keep_their_distance():
    graph = atos.generate.road(300, device="cpu")
    trace = atos.bfs(graph, 45150, trace=500).stats.trace
    assert np.all(np.diff(trace["milliseconds"]) >= 0.5 - 1e-3)


@atos.task
def follow(worker, left):
    if worker.rank == 0 and left > 0:
        worker.push(left - 1)


@atos.task
def toil(worker, left, out):
    """Take a while, then push the next."""
    x = np.uint32(left)
    for _ in range(300_000):
        x ^= x << np.uint32(13)
        x ^= x >> np.uint32(17)
        x ^= x << np.uint32(5)
    out[worker.rank] = x
    worker.sync()
    if worker.rank == 0 and left > 1:
        worker.push(left - 1)


def test_a_chain_keeps_one_worker_busy(device):
    queue = atos.Queue(100, device=device)
    queue.push(60)
    out = atos.zeros(32, dtype=np.uint32, device=device)
    stats = queue.launch_warp(toil, out, trace=1, num_blocks=4, num_threads=32)
    assert stats.num_workers == 4
    assert stats.trace["waiting"].max() <= 1
    assert stats.trace["idle"].max() <= 0.75
    assert np.median(stats.trace["idle"]) >= 0.5  # of four, one has just pushed, and one will take that


def test_idle_workers_are_those_with_tickets_for_nothing():
    samples = np.array([(3000, 7, 20, 24), (1000, 4, 20, 15), (2000, 5, 20, 29)], np.uint64)
    trace = make_trace(samples, workers=8)
    assert trace["milliseconds"].tolist() == [0, 0.001, 0.002]
    assert trace["tasks_run"].tolist() == [4, 5, 7]
    assert trace["waiting"].tolist() == [5, 0, 0]
    assert trace["idle"].tolist() == [0, 1, 0.5]
    assert np.isnan(make_trace(samples, workers=None)["idle"]).all()


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("barrier", [True, False])
def test_the_queue_is_as_long_as_what_was_pushed_to_it(persistent, barrier, device):
    queue = atos.Queue(100_000, device=device)
    queue.push(np.zeros(100_000, np.uint32))
    stats = queue.launch_cta(follow, trace=1, persistent=persistent, barrier=barrier, num_blocks=2)
    trace = stats.trace
    assert 50_000 < trace["waiting"].max() <= 100_000
    assert trace["waiting"][-1] < 10_000
    assert np.isnan(trace["idle"]).all() == (barrier or not persistent)


def test_no_trace_unless_asked_for():
    assert atos.bfs(atos.generate.road(10, device="cpu"), 0).stats.trace is None


@pytest.mark.parametrize("interval", [0, -1])
def test_an_interval_is_positive(interval):
    with pytest.raises(atos.InvalidArgumentError, match=f"trace must be .*got {interval}"):
        atos.bfs(atos.generate.road(10, device="cpu"), 0, trace=interval)


@pytest.mark.gpu
def test_a_trace_on_the_gpu():
    graph = atos.generate.road(1000, device="cuda")
    stats = atos.bfs(graph, 500500, trace=20).stats
    assert len(stats.trace) > 10
    assert np.all(np.diff(stats.trace["tasks_run"]) >= 0)
    assert 0 < stats.trace["tasks_run"][-1] <= stats.tasks_run
