"""The launches of one call of an algorithm: whose options count, and for how long they may go on."""

from __future__ import annotations

import time

import pytest

import atos_py as atos
from atos_py.algorithms.launches import Launches


@atos.task
def once(worker, item):
    pass


@pytest.fixture
def queue(device):
    queue = atos.Queue(4, device=device)
    queue.push(0)
    return queue


def test_usual_options_give_way_to_the_users_and_these_to_what_has_to_be(queue):
    launches = Launches("all", {"fetch_size": 3, "barrier": False})
    first = launches.run(queue, "warp", once, usual={"fetch_size": 5, "persistent": False}, always={"barrier": True})
    assert (first.worker, first.fetch_size, first.persistent, first.barrier) == ("warp", 3, False, True)
    assert launches.runs == [first]


def test_a_timeout_is_for_all_launches_together(queue):
    launches = Launches("all", {"timeout": 0.5})

    def again_and_again():
        for _ in range(1000):
            queue.clear()
            queue.push(0)
            launches.run(queue, "cta", once)
            time.sleep(0.02)

    with pytest.raises(
        atos.LaunchTimeoutError, match=r"all took longer than its timeout of 0\.5 s; nothing of the result is kept"
    ):
        again_and_again()
    assert 1 <= len(launches.runs) < 30


@pytest.mark.parametrize("timeout", [0, -1, "soon", True])
def test_what_is_no_time_is_refused_by_the_launch(queue, timeout):
    with pytest.raises(atos.AtosError, match="timeout must be"):
        Launches("all", {"timeout": timeout}).run(queue, "cta", once)


@pytest.mark.parametrize(
    "call",
    [lambda graph, **options: atos.bfs(graph, 0, **options), atos.pagerank, atos.color],
    ids=["bfs", "pagerank", "color"],
)
def test_algorithms_end_in_time(device, call):
    graph = atos.generate.road(300, device=device)
    assert call(graph, timeout=60).stats.tasks_run > 0
    with pytest.raises(atos.LaunchTimeoutError, match="longer than its timeout of 1e-06 s"):
        call(graph, timeout=1e-6)
