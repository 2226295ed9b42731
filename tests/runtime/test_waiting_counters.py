"""`LaunchStats.waiting`: counters that a launch with `debug=True` has left above zero."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest
from shared_tasks import every_schedule, launch

import atos_py as atos
from atos_py.compile.arguments import describe
from atos_py.compile.spec import ProgramSpec
from atos_py.compile.toolchain import import_numba


class Rows(NamedTuple):
    """The rows that wait for each row of a triangular matrix, and for how many each of them waits."""

    indptr: Any
    indices: Any
    missing: Any


def waiting_rows(j, indptr, indices, missing, order):
    return indptr[j + 1] - indptr[j], indptr[j]


@atos.task(workload=waiting_rows)
def solve(worker, j, k, first, indptr, indices, missing, order):
    i = indices[first + k]
    atos.atomic_max(order, i, order[j] + 1)
    worker.arrive(missing, i, push=i)


def arrive_at_row(worker, rows, i):
    worker.arrive(rows.missing, i, push=i)


@atos.task
def solve_row(worker, j, rows):
    if worker.rank == 0:
        for edge in range(rows.indptr[j], rows.indptr[j + 1]):
            arrive_at_row(worker, rows, rows.indices[edge])


def told(stats: atos.LaunchStats) -> dict[str, dict[Any, int]]:
    """Return what each waiting counter lacks, by the name of its array and its index."""
    found = {}
    for each in stats.waiting:
        assert each.indices.dtype == each.lacks.dtype == np.int64
        assert each.count == len(each.indices) == len(each.lacks)
        keys = [tuple(index) if isinstance(index, list) else index for index in each.indices.tolist()]
        found[each.name] = dict(zip(keys, each.lacks.tolist(), strict=True))
    return found


def edges(n: int, *, circle: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows that wait in a chain for the one before; with a circle, row n - 3 also waits for row n - 1."""
    tails, heads = np.arange(n - 1), np.arange(1, n)
    if circle:
        tails, heads = np.append(tails, n - 1), np.append(heads, n - 3)
    order = np.argsort(tails, kind="stable")
    return np.searchsorted(tails[order], np.arange(n + 1)), heads[order], np.bincount(heads, minlength=n)


def matrix(n: int, device: Any, dtype: Any = np.int32, *, circle: bool) -> Rows:
    indptr, indices, missing = edges(n, circle=circle)
    frozen = [atos.asarray(each, readonly=True, device=device) for each in (indptr, indices)]
    return Rows(*frozen, atos.asarray(missing.astype(dtype), device=device))


@pytest.mark.parametrize("counters", [np.int32, np.int64])
@every_schedule
def test_a_circle_is_told_and_not_waited_for(device, worker, persistent, barrier, counters):
    rows = matrix(50, device, counters, circle=True)
    order, queue = atos.zeros(50, dtype=np.int64, device=device), atos.Queue(100, device=device)
    queue.push(0)
    options = {"persistent": persistent, "barrier": barrier, "timeout": 60}
    stats = launch(queue, worker, solve, *rows, order, debug=True, **options)
    assert stats.tasks_run == 47
    assert told(stats) == {"missing": {47: 1, 48: 1, 49: 1}}
    assert (stats.waiting[0].size, stats.waiting[0].count) == (50, 3)
    line = "3 of 50 counters of 'missing' wait: 47 lacks 1, 48 lacks 1, 49 lacks 1"
    assert f"\n  {line}\n" in str(stats)
    assert f"; {line}>" in repr(stats)
    assert f"<tr><th>waiting</th><td>{line.replace(chr(39), '&#x27;')}</td></tr>" in stats._repr_html_()


def test_what_is_right_leaves_nothing(device, worker):
    rows = matrix(50, device, circle=False)
    order, queue = atos.zeros(50, dtype=np.int64, device=device), atos.Queue(100, device=device)
    queue.push(0)
    stats = launch(queue, worker, solve, *rows, order, debug=True)
    assert (stats.tasks_run, stats.waiting) == (50, ())
    assert "wait" not in str(stats) + repr(stats)


def test_nothing_is_told_without_checks(device):
    rows = matrix(50, device, circle=True)
    queue = atos.Queue(100, device=device)
    queue.push(0)
    stats = queue.launch_thread(solve_row, rows)
    assert (stats.tasks_run, stats.waiting) == (47, ())


def test_a_field_of_a_tuple_by_its_name_in_a_prepared_launch(device):
    """Of which a helper has the array; a launch made again tells what waits then."""
    rows = matrix(50, device, circle=True)
    queue = atos.Queue(100, device=device)
    prepared = queue.prepare(solve_row, rows, worker="thread", debug=True)
    queue.push(0)
    assert told(prepared()) == {"rows.missing": {47: 1, 48: 1, 49: 1}}
    rows.missing[47] = 0
    assert told(prepared()) == {"rows.missing": {48: 1, 49: 1}}
    other = matrix(50, device, circle=False)
    queue.push(0)
    assert told(prepared.rebind(rows=other)()) == {}


def test_counters_of_two_dimensions_and_large_ones(device):
    @atos.task
    def meet(worker, v, missing):
        if worker.rank == 0:
            worker.arrive(missing, (v, 1), 5)

    missing = atos.full((3, 2), 5, device=device)
    missing[2, 0] = 2**40
    queue = atos.Queue(10, device=device)
    queue.push([0, 1])
    stats = queue.launch_thread(meet, missing, debug=True)
    assert told(stats) == {"missing": {(0, 0): 5, (1, 0): 5, (2, 0): 2**40, (2, 1): 5}}
    assert str(stats.waiting[0]) == (
        "4 of 6 counters of 'missing' wait: (0, 0) lacks 5, (1, 0) lacks 5, (2, 0) lacks 1,099,511,627,776, (2, 1) lacks 5"
    )


def test_of_many_the_first_are_named(device):
    @atos.task
    def meet(worker, v, missing):
        worker.arrive(missing, v)

    queue = atos.Queue(10, device=device)
    queue.push(1)
    (found,) = queue.launch_thread(meet, atos.full(5000, 1, device=device), debug=True).waiting
    assert (found.size, found.count, len(found.indices), len(found.lacks)) == (5000, 4999, 1000, 1000)
    assert str(found) == (
        "4,999 of 5,000 counters of 'missing' wait: 0 lacks 1, 2 lacks 1, 3 lacks 1, 4 lacks 1, 5 lacks 1, ..."
    )


def test_several_tasks_each_with_its_names(device):
    @atos.task
    def first(worker, v, early, other, plain):
        worker.arrive(early, v)
        worker.push(v, task=second)

    @atos.task
    def second(worker, v, mine, late, plain):
        worker.arrive(late, v)
        atos.atomic_add(plain, v, 1)

    early, late, plain = atos.full(3, 1, device=device), atos.full(3, 2, device=device), atos.full(3, 7, device=device)
    queue = atos.Queue(10, device=device)
    queue.push([0, 2])
    stats = queue.launch_thread((first, second), early, late, plain, debug=True)
    assert told(stats) == {"early": {1: 1}, "late": {0: 1, 1: 2, 2: 1}}


def test_functions_without_an_item_arrive_as_well(device):
    def settle(worker, missing, left):
        if worker.rank == 0 and left[0] > 1:
            left[0] -= 1
            worker.arrive(left, 0)

    @atos.task
    def meet(worker, v, missing, more):
        worker.arrive(missing, v)

    queue = atos.Queue(10, device=device)
    queue.push(0)
    missing, left = atos.full(2, 1, device=device), atos.full(1, 3, device=device)
    stats = queue.launch_thread(meet, missing, left, each_round=settle, barrier=True, debug=True)
    assert told(stats) == {"missing": {1: 1}, "left": {0: 1}}


def test_an_array_that_is_one_of_several(device):
    """All of them are looked at; those that no function arrives at are not."""

    @atos.task
    def meet(worker, v, a, b, c, *others):
        chosen = a if v == 0 else b
        if v == 1:
            c, chosen = chosen, c
        worker.arrive(chosen, v)
        worker.arrive(others[1], 0)

    arrays = [atos.full(3, 1, device=device) for _ in range(6)]
    queue = atos.Queue(10, device=device)
    queue.push(0)
    stats = queue.launch_thread(meet, *arrays, debug=True)
    assert told(stats) == {name: {0: 1, 1: 1, 2: 1} for name in "bc"} | {"a": {1: 1, 2: 1}, "others[1]": {1: 1, 2: 1}}


def test_a_loop_over_a_tuple_compiles_and_is_left_out(device):
    @atos.task
    def meet(worker, v, a, b):
        for chosen in (a, b):
            worker.arrive(chosen, v)

    queue = atos.Queue(10, device=device)
    queue.push(0)
    a, b = (atos.full(2, 1, device=device) for _ in range(2))
    stats = queue.launch_thread(meet, a, b, debug=True)
    assert (stats.tasks_run, stats.waiting) == (1, ())
    assert a.to_numpy().tolist() == b.to_numpy().tolist() == [0, 1]


def test_a_field_of_a_pool_as_far_as_it_is_in_use(device):
    @atos.task
    def meet(worker, v, before, nodes):
        worker.arrive(nodes.missing, v)

    nodes = atos.Pool([("x", np.float32), ("missing", np.int32)], 10, device=device)
    nodes.append(x=[0, 0, 0], missing=[1, 2, 1])
    queue = atos.Queue(10, device=device)
    queue.push([0, 1])
    stats = queue.launch_thread(meet, atos.zeros(1, device=device), nodes, debug=True)
    assert told(stats) == {"nodes.missing": {1: 1, 2: 1}}
    assert stats.waiting[0].size == 3


def test_a_launch_that_was_stopped_tells_nothing(device):
    """Its items are left, whose arrivals may be what counters wait for; the launch that goes on tells what is true."""

    @atos.task
    def chain(worker, v, missing, last):
        if v == last:
            worker.stop()
        worker.arrive(missing, v + 1, push=v + 1)

    missing = atos.asarray(np.array([0, 1, 1, 1, 2]), device=device)
    queue = atos.Queue(10, device=device)
    queue.push(0)
    stats = queue.launch_thread(chain, missing, 1, debug=True)
    assert (stats.stopped, stats.waiting) == (True, ())
    stats = queue.launch_thread(chain, missing, 100, debug=True)
    assert (stats.stopped, told(stats)) == (False, {"missing": {4: 1}})


def test_a_run_that_took_items_meanwhile(device):
    @atos.task
    def meet(worker, v, missing):
        worker.arrive(missing, v)

    missing, queue = atos.full(3, 1, device=device), atos.Queue(10, device=device)
    with queue.start(meet, missing, worker="thread", debug=True) as run:
        run.push([0, 2])
    assert told(run.wait()) == {"missing": {1: 1}}


def test_a_run_that_was_stopped_tells_nothing(device):
    @atos.task
    def again(worker, v, missing, seen):
        worker.arrive(missing, 3 if seen[0] else 2)
        seen[0] = 1
        worker.push(v)

    missing, seen = atos.full(4, 2**40, device=device), atos.zeros(1, dtype=np.int32, device=device)
    queue = atos.Queue(10, device=device)
    run = queue.start(again, missing, seen, worker="thread", num_blocks=1, debug=True)
    run.push(0)
    run.stop()
    stats = run.wait()
    assert (len(queue), stats.waiting) == (1, ())


def test_over_several_devices_indices_are_ids(worker):
    @atos.task
    def ascend(worker, v, parts, missing):
        if worker.rank == 0:
            for e in range(parts.indptr[v], parts.indptr[v + 1]):
                worker.arrive(missing, parts.indices[e], push=parts.indices[e])

    indptr, indices, waits_for = edges(200, circle=True)
    parts = atos.Graph.from_csr(indptr, indices, device="cpu").partition(["cpu:0", "cpu:1"], order="random")
    missing = atos.full(200, 0, dtype=np.int32, partition=parts)
    missing[:] = waits_for
    queue = atos.Queue(400, owner=parts)
    queue.push(0)
    stats = queue.launch(ascend, parts, missing, worker=worker, debug=True)
    assert stats.tasks_run == 197
    assert told(stats) == {"missing": {197: 1, 198: 1, 199: 1}}


def test_what_waits_is_copied_and_written_and_added_up():
    rows = matrix(50, "cpu", circle=True)
    queue = atos.Queue(100, device="cpu")
    queue.push(0)
    stats = queue.launch_thread(solve_row, rows, debug=True)
    expected = {"name": "rows.missing", "size": 50, "count": 3, "indices": [47, 48, 49], "lacks": [1, 1, 1]}
    assert json.loads(json.dumps(stats.to_dict()))["waiting"] == [expected]
    assert told(pickle.loads(pickle.dumps(stats))) == told(stats)
    right = queue.launch_thread(solve_row, rows)
    assert told(atos.LaunchStats.total([right, stats])) == told(stats)
    assert atos.LaunchStats.total([stats, right]).waiting == ()


def test_statistics_that_were_pickled_before_have_none():
    queue = atos.Queue(10, device="cpu")
    stats = queue.launch_thread(solve_row, matrix(5, "cpu", circle=True))
    state = {name: getattr(stats, name) for name in ("task", "tasks_run")}
    old = atos.LaunchStats.__new__(atos.LaunchStats)
    old.__setstate__((None, state))
    assert old.waiting == ()


@pytest.mark.parametrize("debug", [False, True])
def test_code_for_gpus_has_the_same_counters(debug):
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    import_numba()
    from atos_py.compile.codegen.target_cpu import compile_cpu
    from atos_py.compile.codegen.target_cuda import compile_cuda

    spec = ProgramSpec(atos.task(solve_row.body), None, (describe(matrix(5, "cpu", circle=True)),), np.dtype("u4"), debug=debug)
    for code in compile_cpu(spec), compile_cuda(spec, (9, 0)):
        assert (code.checks.counters if debug else code.checks) == ({2: "rows.missing"} if debug else None)


_PROGRAM = """
import sys
import numpy as np
import atos_py as atos

@atos.task
def meet(worker, v, missing):
    worker.arrive(missing, v)

for debug in (False, True, True):
    queue = atos.Queue(10, device="cpu")
    queue.push([0])
    stats = queue.launch_thread(meet, atos.full(2, 1, device="cpu"), debug=debug)
    print([(each.name, each.indices.tolist()) for each in stats.waiting])
"""


def test_processes_with_code_on_disk_tell_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("ATOS_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "program.py"
    path.write_text(_PROGRAM)
    texts = [subprocess.run([sys.executable, path], capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert texts == ["[]\n" + "[('missing', [1])]\n" * 2] * 2
    assert any((tmp_path / "cache").rglob("*"))
