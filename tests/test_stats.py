"""What launches report, added up."""

from __future__ import annotations

import dataclasses

import numpy as np

from atos_py.stats import TRACE, LaunchStats

ONE = LaunchStats(
    tasks_run=10, tasks_pushed=4, milliseconds=2.0, rounds=1, task="a", device="cpu", worker="warp", fetch_size=32,
    persistent=True, barrier=False, num_blocks=2, num_threads=1, num_workers=2,
)  # fmt: skip


def traced(**others):
    trace = np.array([(0.0, 1, 5), (1.5, 9, 2)], TRACE)
    return dataclasses.replace(ONE, trace=trace, **others)


def test_numbers_add_up_and_the_last_configuration_counts():
    other = dataclasses.replace(ONE, tasks_run=5, milliseconds=0.5, rounds=7, task="b", worker="cta")
    total = LaunchStats.total([ONE, other])
    assert (total.tasks_run, total.tasks_pushed, total.milliseconds, total.rounds) == (15, 8, 2.5, 8)
    assert (total.task, total.worker, total.fetch_size) == ("b", "cta", 32)
    assert total.trace is None
    assert LaunchStats.total([ONE, other], task="both").task == "both"


def test_one_launch_is_its_own_total():
    assert LaunchStats.total([ONE]) == ONE


def test_traces_are_joined_where_launches_meet():
    first, last = traced(), traced(task="c")
    trace = LaunchStats.total([first, ONE, last]).trace
    assert trace["milliseconds"].tolist() == [0.0, 1.5, 4.0, 5.5]
    assert trace["tasks_run"].tolist() == [1, 9, 21, 29]
    assert trace["waiting"].tolist() == [5, 2, 5, 2]
    assert first.trace["milliseconds"].tolist() == last.trace["milliseconds"].tolist() == [0.0, 1.5]
