"""Items that wait in joins when a launch ends run as the tasks of their names in the next launch."""

from __future__ import annotations

import numpy as np
import pytest

import atos_py as atos
from atos_py.errors import InvalidArgumentError


@atos.task
def first(worker, v, joins, out):
    if worker.rank == 0:
        out[0] = worker.open(joins, 1)
        worker.then(joins, out[0], 7, task=second)


@atos.task
def second(worker, v, joins, out):
    if worker.rank == 0:
        atos.atomic_add(out, 1, v)


@atos.task
def third(worker, v, joins, out):
    if worker.rank == 0:
        atos.atomic_add(out, 2, 1)
        worker.arrive_at(joins, v, 1)


@atos.task
def nothing(worker, v, joins, out):
    pass


@pytest.mark.parametrize("saved", [False, True])
def test_tasks_in_another_order(device, path, saved):
    joins, queue = atos.Joins(4, device=device), atos.Queue(10, dtype=np.int64, device=device)
    out = atos.zeros(3, dtype=np.int64, device=device)
    queue.push([0])
    queue.launch_thread((first, second, third), joins, out)
    assert joins.pending == 1
    waiting = out.tolist()[0]
    if saved:
        queue.save(path, joins=joins)
        joins = atos.Joins(4, device=device)
        queue = atos.Queue.load(path, device=device, joins=joins)
    other = atos.Queue(10, dtype=np.int64, device=device)
    for tasks in (third, (nothing, third)):
        with pytest.raises(InvalidArgumentError, match=r"in joins.*'second'"):
            other.launch_thread(tasks, joins, out)
    queue.push([waiting], task=third)
    queue.launch_thread((third, second), joins, out)
    assert out.tolist() == [waiting, 7, 1]


def test_nothing_is_read_where_the_order_stays(device, monkeypatch):
    joins, queue = atos.Joins(4, device=device), atos.Queue(10, dtype=np.int64, device=device)
    out = atos.zeros(3, dtype=np.int64, device=device)
    queue.push([0])
    queue.launch_thread((first, second, third), joins, out)
    assert joins.pending == 1
    waiting = out.tolist()[0]
    monkeypatch.setattr("atos_py.runtime.launch_arguments.fit_kinds", None)
    queue.push([waiting], task=third)
    queue.launch_thread((first, second, third), joins, out)
    assert out.tolist() == [waiting, 7, 1]
