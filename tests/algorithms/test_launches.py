"""The launches of one call of an algorithm: whose options count, and for how long they may go on."""

from __future__ import annotations

import functools
import time

import numpy as np
import pytest

import atos_py as atos
from atos_py.algorithms.launch_sequence import LaunchSequence
from atos_py.algorithms.registry import find_algorithms

ONE = np.zeros(1, np.uint32)
CALLS = {
    name: functools.partial(entry.run, **entry.defaults, **({"source": 0} if entry.has_source else {}))
    for name, entry in find_algorithms().items()
}


@atos.task
def once(worker, item):
    pass


@pytest.fixture
def queue(device):
    return atos.Queue(4, device=device)


def test_options_of_the_user_override_defaults_and_overrides_override_them(queue):
    launches = LaunchSequence("all", queue, {"fetch_size": 3, "barrier": False})
    launches.launch(ONE, once, worker="warp", defaults={"fetch_size": 5, "persistent": False}, overrides={"barrier": True})
    (first,) = launches.runs
    assert (first.worker, first.fetch_size, first.persistent, first.barrier) == ("warp", 3, False, True)


def test_a_timeout_is_for_all_launches_together(queue):
    launches = LaunchSequence("all", queue, {"timeout": 0.5})

    def again_and_again():
        for _ in range(1000):
            queue.clear()
            launches.launch(ONE, once)
            time.sleep(0.02)

    with pytest.raises(
        atos.LaunchTimeoutError, match=r"all took longer than its timeout of 0\.5 s; nothing of the result is kept"
    ):
        again_and_again()
    assert 1 <= len(launches.runs) < 30


@pytest.mark.parametrize("timeout", [0, -1, "soon", True])
def test_what_is_no_time_is_refused_by_the_launch(queue, timeout):
    with pytest.raises(atos.AtosError, match="timeout must be"):
        LaunchSequence("all", queue, {"timeout": timeout}).launch(ONE, once)


@pytest.mark.parametrize(
    "call",
    CALLS.values(),
    ids=CALLS,
)
def test_algorithms_end_in_time(device, call):
    graph = atos.generate.road(300, device=device)
    assert call(graph, timeout=60).stats.tasks_run > 0
    with pytest.raises(atos.LaunchTimeoutError, match="longer than its timeout of 1e-06 s"):
        call(graph, timeout=1e-6)


def test_the_end_of_an_algorithm_is_no_stop(device):
    """Tasks of PageRank stop its launches when the ranks are found, of which its caller knows nothing."""
    stats = atos.pagerank(atos.generate.road(30, device=device)).stats
    assert not stats.stopped
    assert "stop" not in str(stats)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda g: atos.bfs(g, 0, directon="push"),
            "bfs has no option 'directon'; did you mean 'direction'[?] it has graph, source, .*, debug",
        ),
        (lambda g: atos.bfs(g, 0, fetch_sise=1), "bfs has no option 'fetch_sise'; did you mean 'fetch_size'[?]"),
        (
            lambda g: atos.bfs(g, 0, qqq=1),
            "bfs has no option 'qqq'; it has graph, source, .*, worker, capacity, idle",
        ),
        (lambda g: atos.bfs(g, 0, sources=[1]), "bfs has no option 'sources'; did you mean 'source'[?]"),
        (lambda g: atos.color(g, grph=g), "color has no option 'grph'; did you mean 'graph'[?]"),
        (lambda g: atos.pagerank(g, tolerence=1e-3), "pagerank has no option 'tolerence'; did you mean 'tolerance'[?]"),
        (lambda g: atos.color(g, ordr="degree"), "color has no option 'ordr'; did you mean 'order'[?]"),
        (lambda g: atos.color(g, num_block=1), "color has no option 'num_block'; did you mean 'num_blocks'[?]"),
        (lambda g: atos.tune(lambda **_: None, spase={}), "tune has no option 'spase'; did you mean 'space'[?]"),
        (lambda g: atos.tune(lambda **_: None, runs=3), "tune has no option 'runs'; did you mean 'run'[?]"),
        (lambda g: atos.tune(lambda **o: atos.bfs(g, 0, **o), space={"barier": [True]}), "did you mean 'barrier'[?]"),
    ],
)
def test_options_that_do_not_exist(call, message, monkeypatch):
    graph = atos.generate.road(4, device="cpu")
    monkeypatch.setattr("atos_py.runtime.launch_plan.program_for", None)
    with pytest.raises(atos.UnsupportedTypeError, match=message):
        call(graph)
