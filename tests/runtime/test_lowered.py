"""Arrays over devices that tasks only lower: each device keeps bounds of what others have, so that few changes cross a link."""

from __future__ import annotations

import numpy as np
import pytest

import atos_py as atos
from atos_py.arrays.lowered import LoweredArray
from atos_py.errors import InvalidArgumentError, TaskCompileError

GPUS = [str(device) for device in atos.devices() if device.kind == "cuda"]
KINDS = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not GPUS, reason="needs a GPU")])]


def devices_of(kind: str) -> list[str]:
    return ["cpu:0", "cpu:1", "cpu:2"] if kind == "cpu" else (GPUS[:2] if len(GPUS) > 1 else GPUS * 2)


@atos.task
def lower(worker, v, values, number, before):
    """Lower each element to its number, and note what was there before."""
    for k in worker.split(values.shape[0]):
        before[v, k] = atos.atomic_min(values, k, number[v, k])


def degree(v, parts, depth):
    return parts.indptr[v + 1] - parts.indptr[v]


@atos.task(workload=degree)
def visit(worker, v, i, parts, depth):
    worker.push_min(depth, parts.indices[parts.indptr[v] + i], depth[v] + 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["u4", "i8", "i2", "f4", "f8"])
def test_minimums_are_those_of_any_array(kind, dtype):
    """Also where the host raises elements between launches, whose bounds would be too low then."""
    n, tasks = 50, 40
    parts = atos.Graph.from_edges([], [], num_vertices=n, device="cpu").partition(devices_of(kind))
    values = atos.full(n, 9000, dtype=dtype, partition=parts, combine="min")
    queue = atos.Queue(tasks, owner=parts)
    for turn in range(3):
        chance = np.random.default_rng(turn)
        if turn == 1:
            values.fill(9000)
        elif turn == 2:
            values[7:30] = 8000
        start = values.to_numpy()
        number = chance.integers(0, 10_000, (tasks, n)).astype(dtype)
        before = atos.zeros((tasks, n), dtype=dtype, device=parts.devices[0])
        queue.push(range(tasks))
        queue.launch_warp(lower, values, atos.asarray(number, device=parts.devices[0], readonly=True), before)
        least = np.minimum(start, number.min(axis=0))
        assert np.array_equal(values.to_numpy(), least)
        # Each operation returns a value that the element had, of which those that changed it saw larger ones.
        found = before.to_numpy()
        assert (found <= start).all()
        assert (found >= least).all()
        assert ((found > number).sum(axis=0) >= (least < start)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["keep", "random"])
@pytest.mark.parametrize("barrier", [False, True])
def test_search(kind, order, barrier):
    graph = atos.generate.rmat(10, 8, device="cpu")
    source = int(graph.degrees().argmax())
    parts = graph.partition(devices_of(kind), order)
    depth = atos.full(graph.num_vertices, atos.UNREACHED, dtype=np.uint32, partition=parts, combine="min")
    queue = atos.Queue(2 * graph.num_vertices, owner=parts)
    for _ in range(2):
        depth.fill(atos.UNREACHED)
        depth[source] = 0
        queue.push([source])
        queue.launch_cta(visit, parts, depth, barrier=barrier)
        atos.verify_bfs(graph, source, depth.to_numpy())


def test_what_would_raise_an_element_is_refused():
    parts = atos.Graph.from_edges([], [], num_vertices=4, device="cpu").partition(["cpu:0", "cpu:1"])
    values = atos.full(4, 1.5, partition=parts, combine="min")
    assert isinstance(values, LoweredArray)
    queue = atos.Queue(4, owner=parts)
    queue.push([1])

    @atos.task
    def store(worker, v, values):
        values[v] = 2

    @atos.task
    def add(worker, v, values):
        atos.accumulate(values, v, 1)

    with pytest.raises(
        TaskCompileError, match=r'stored in an array with combine="min", which tasks only lower: use worker\.push_min'
    ):
        queue.launch_warp(store, values)
    with pytest.raises(TaskCompileError, match='accumulate is used on an array with combine="min", which tasks only lower'):
        queue.launch_warp(add, values)
    sums = atos.full(4, 1.5, partition=parts, combine="sum")
    queue.launch_warp(add, sums, num_blocks=1)
    assert sums[1] > 1.5


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"combine": "max"}, "combine must be min or sum"),
        ({"combine": "min"}, "combine='min' is for arrays with partition= and placement=\"partitioned\""),
    ],
)
def test_refused_without_a_partition(options, text):
    with pytest.raises(InvalidArgumentError, match=text):
        atos.full(4, 1, **options)
