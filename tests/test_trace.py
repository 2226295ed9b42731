"""The trace of a run: samples taken by the workers themselves."""

from __future__ import annotations

import numpy as np
import pytest

import atos_py as atos


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
