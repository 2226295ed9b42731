"""`worker.arrive`: the last to arrive at a counter is one, sees what the others wrote, and pushes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from shared_tasks import every_schedule, launch

import atos_py as atos
from atos_py.errors import TaskCompileError, TaskError


def rows_waiting(j, lower, values, total, missing, b, x):
    first = lower.indptr[j]
    x[j] = b[j] - total[j]
    return lower.indptr[j + 1] - first, first, x[j]


@atos.task(workload=rows_waiting)
def solve(worker, j, k, first, solved, lower, values, total, missing, b, x):
    i = lower.indices[first + k]
    atos.atomic_add(total, i, values[first + k] * solved)
    worker.arrive(missing, i, push=i)


@pytest.mark.parametrize("counters", [np.int32, np.int64])
@every_schedule
def test_a_triangular_solve_is_right(device, worker, persistent, barrier, counters):
    """The sums are of float64, as large as the counters or larger: they are complete where the last one has arrived."""
    n, rng = 3000, np.random.default_rng(0)
    rows = np.repeat(np.arange(1, n), 5)
    matrix = scipy.sparse.coo_matrix((rng.random(len(rows)) / 8, (rows, rng.integers(np.maximum(rows - 400, 0), rows))), (n, n))
    matrix = matrix.tocsc()
    lower = atos.Graph.from_csr(matrix.indptr, matrix.indices, device=device)
    waits_for = np.bincount(matrix.indices, minlength=n).astype(counters)
    b = rng.random(n)
    values, given = (atos.asarray(each, readonly=True, device=device) for each in (matrix.data, b))
    missing = atos.asarray(waits_for, device=device)
    total, x = (atos.zeros(n, dtype=np.float64, device=device) for _ in range(2))
    queue = atos.Queue(2 * n, device=device)
    queue.push(np.flatnonzero(waits_for == 0))
    options = {"persistent": persistent, "barrier": barrier}
    stats = launch(queue, worker, solve, lower, values, total, missing, given, x, **options)
    assert stats.tasks_run == n
    assert not missing.to_numpy().any()
    solution = x.to_numpy()
    assert np.abs(solution + matrix @ solution - b).max() < 1e-12


@pytest.mark.parametrize("n", [1, 3])
def test_one_is_the_last(device, worker, n):
    """Also where lanes of a warp arrive at a few counters together, and by more than one."""

    def arrive(worker, v, missing, last, seen, parts):
        if worker.rank == 0:
            parts[v] = v + 1
            if worker.arrive(missing, v % 7, n):
                atos.atomic_add(last, v % 7, 1)
                for k in range(v % 7, len(parts), 7):
                    seen[v % 7] += parts[k]

    counters, items = 7, 7 * 1000
    missing = atos.full(counters, n * items // counters, dtype=np.int32, device=device)
    last, seen = (atos.zeros(counters, dtype=np.int64, device=device) for _ in range(2))
    parts = atos.zeros(items, dtype=np.int64, device=device)
    queue = atos.Queue(items, device=device)
    queue.push(np.arange(items))
    launch(queue, worker, atos.task(arrive), missing, last, seen, parts)
    assert (last.to_numpy() == 1).all()
    assert not missing.to_numpy().any()
    assert seen.to_numpy().tolist() == [sum(range(k + 1, items + 1, 7)) for k in range(7)]


def test_every_thread_arrives(device, worker):
    def meet(worker, v, missing, last):
        if worker.arrive(missing, (v, 1)):
            atos.atomic_add(last, v, worker.size)

    sizes = {"thread": 1, "warp": 32, "cta": 64}
    size = sizes[worker] if device.kind == "cuda" else 1
    missing = atos.full((3, 2), size, dtype=np.int32, device=device)
    last = atos.zeros(3, dtype=np.int32, device=device)
    queue = atos.Queue(10, device=device)
    queue.push([0, 1, 2])
    launch(queue, worker, atos.task(meet), missing, last, num_threads=64)
    assert missing.to_numpy().tolist() == [[size, 0]] * 3
    assert last.to_numpy().tolist() == [size] * 3


def test_the_push_takes_what_a_push_takes(device):
    @atos.task
    def late(worker, v, missing, out):
        out[v] = 2

    @atos.task
    def early(worker, v, missing, out):
        worker.arrive(missing, 0, push=v + 10, priority=1.5, task=late)
        worker.arrive(missing, 1, push=5, priority=None)

    missing, out = atos.asarray(np.array([3, -1]), device=device), atos.zeros(20, dtype=np.int32, device=device)
    queue = atos.Queue(100, buckets=4, device=device)
    queue.push([0, 1, 2])
    stats = queue.launch_thread((early, late), missing, out)
    assert stats.tasks_run == 4
    assert out.to_numpy().sum() == 2
    assert out.to_numpy()[10:13].sum() == 2


def test_records_are_pushed(device):
    def halve(worker, item, missing, total):
        if item.size == 1:
            atos.atomic_add(total, 0, item.first)
            worker.arrive(missing, 0, push=(100, 0))
        elif item.size == 0:
            total[1] = total[0]
        else:
            half = item.size // 2
            worker.push((item.first, half))
            worker.push((item.first + half, item.size - half))

    queue = atos.Queue(1000, dtype=[("first", "i8"), ("size", "i8")], device=device)
    queue.push((0, 50))
    missing, total = atos.full(1, 50, device=device), atos.zeros(2, dtype=np.int64, device=device)
    queue.launch_thread(atos.task(halve), missing, total)
    assert total.to_numpy().tolist() == [sum(range(50))] * 2


def test_below_zero_is_an_error_with_checks(device):
    def arrive(worker, v, missing):
        worker.arrive(missing, v, 2)

    queue = atos.Queue(10, device=device)
    queue.push([3])
    missing = atos.asarray(np.array([0, 0, 0, 1], np.int32), device=device)
    with pytest.raises(TaskError, match=r"an arrival of 2 brings element 3 of array 'missing' below zero.*in item 3") as found:
        queue.launch_thread(atos.task(arrive), missing, debug=True)
    assert (found.value.kind, found.value.index) == ("arrival", 3)
    queue.clear()
    queue.push([3])
    queue.launch_thread(atos.task(arrive), missing)  # without checks it wraps as integers do
    assert missing[3] == -3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("worker.arrive(missing)", r"takes \(counters, index, n=1\) by position"),
        ("worker.arrive(missing, 0, 1, n=2)", r"takes \(counters, index, n=1\) by position"),
        ("worker.arrive(missing, 0, 1.5)", "takes an integer as n, not float64"),
        ("worker.arrive(missing, 0.5)", "an array is indexed by float64"),
        ("worker.arrive(floats, 0)", "counts in an argument array of int32 or int64, not in shared array"),
        ("worker.arrive(frozen, 0)", "is used on a read-only array"),
        ("worker.arrive(worker.scratch(np.int32, 4), 0)", "counts in an argument array"),
        ("worker.arrive(v, 0)", "works on an element of an argument array"),
        ("worker.arrive(missing, 0, priority=1.0)", "takes priority= and task= with push="),
        ("worker.arrive(missing, 0, push=1.5)", r"worker\.push takes an integer"),
        ("worker.arrive(missing, 0, push=v, priority=1.0)", "takes a priority only if the queue has buckets"),
    ],
)
def test_what_is_refused(call, message):
    variables = {"np": np}
    exec(f"def arrive(worker, v, missing, floats, frozen):\n    {call}", variables)
    arrays = atos.full(2, 1), atos.zeros(2), atos.asarray([1, 2], readonly=True)
    queue = atos.Queue(10, device="cpu")
    queue.push(0)
    with pytest.raises(TaskCompileError, match=message):
        queue.launch_thread(atos.task(variables["arrive"]), *arrays)


def test_over_several_devices(worker):
    """Each vertex runs on its owner, after all vertices that it waits for, and sees what they have summed up."""

    @atos.task
    def ascend(worker, v, parts, missing, longest):
        if worker.rank == 0:
            for e in range(parts.indptr[v], parts.indptr[v + 1]):
                u = parts.indices[e]
                atos.atomic_max(longest, u, longest[v] + 1)
                worker.arrive(missing, u, push=u)

    n, rng = 2000, np.random.default_rng(0)
    heads = np.repeat(np.arange(1, n), 3)
    tails = rng.integers(np.maximum(heads - 50, 0), heads)
    graph = atos.Graph.from_edges(tails, heads, num_vertices=n, device="cpu")
    parts = graph.partition(["cpu:0", "cpu:1"], order="random")
    waits_for = np.bincount(heads, minlength=n)
    missing = atos.full(n, 0, dtype=np.int64, partition=parts)
    longest = atos.full(n, 0, dtype=np.int64, partition=parts)
    missing[:] = waits_for
    queue = atos.Queue(2 * n, devices=parts.devices, owner=parts)
    queue.push(np.flatnonzero(waits_for == 0))
    stats = queue.launch(ascend, parts, missing, longest, worker=worker)
    expected = np.zeros(n, np.int64)
    for v in range(n):
        np.maximum.at(expected, heads[tails == v], expected[v] + 1)
    assert stats.tasks_run == n
    assert longest.to_numpy().tolist() == expected.tolist()
