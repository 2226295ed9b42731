"""The example that is not about graphs: it counts right, on every device and schedule."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from repository import ROOT

import atos_py as atos

EXAMPLE = ROOT / "examples" / "queens.py"
DEVICES = [
    pytest.param("cpu"),
    pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(len(atos.devices()) < 2, reason="there is no GPU")]),
]


def load():
    spec = importlib.util.spec_from_file_location("queens", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


queens = load()


@pytest.mark.parametrize("n", range(1, 10))
def test_as_many_as_are_known(n):
    found, stats = queens.count_solutions(n)
    assert found == queens.KNOWN[n]
    assert stats.tasks_run == stats.tasks_pushed + 1


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("worker", ["thread", "warp", "cta"])
@pytest.mark.parametrize("schedule", [{}, {"barrier": True}, {"persistent": False}, {"persistent": False, "barrier": True}])
def test_every_worker_and_schedule(device, worker, schedule):
    solutions = atos.zeros(1, dtype=np.uint64, device=device)
    queue = atos.Queue(100_000, dtype=queens.BOARD, device=device)
    queue.push([(0, 0, 0, 0)])
    stats = getattr(queue, f"launch_{worker}")(queens.place, 8, solutions, **schedule)
    assert solutions[0] == 92
    assert stats.tasks_run == 1965  # placements of 0 to 7 queens in the first rows that do not attack each other


def test_a_queue_that_is_too_small_is_grown():
    solutions = atos.zeros(1, dtype=np.uint64, device="cpu")
    queue = atos.Queue(16, max_capacity=16, dtype=queens.BOARD, device="cpu")
    queue.push([(0, 0, 0, 0)])
    lost = 0
    while len(queue):
        try:
            queue.launch_warp(queens.place, 8, solutions)
        except atos.QueueFullError as error:
            lost += error.lost
            queue.resize(2 * max(queue.capacity, error.pending))
    assert lost == 0
    assert solutions[0] == 92
    assert queue.capacity > 16
