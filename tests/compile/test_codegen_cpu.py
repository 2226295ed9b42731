"""Tasks compiled for the CPU, run through the two functions that the core calls."""

from __future__ import annotations

import ctypes
import functools
import math
import platform
import re
import subprocess
import sys
import types
from typing import Any

import numpy as np
import pytest
from cpu_harness import DTYPES, IDLE, RECORDS, Harness, bfs_levels, random_graph, run, visit
from fake_arrays import FakeArray, Pair, blob
from item_types import RECORDS as ITEM_RECORDS
from item_types import random_items
from numba.core import config
from repository import ROOT

import atos_py as atos
from atos_py.compile.arguments import describe
from atos_py.compile.codegen.target_cpu import compile_cpu, load_cpu
from atos_py.compile.spec import ProgramSpec


def test_bfs():
    from scipy.sparse.csgraph import dijkstra

    graph, matrix = random_graph(2000, 12000)
    code = compile_cpu(
        ProgramSpec(visit, None, (describe(graph), describe(FakeArray(np.zeros(1, np.uint32)))), np.dtype(np.uint32))
    )
    expected = dijkstra(matrix, indices=0, unweighted=True)
    depth = bfs_levels(code, graph, 2000)
    assert np.array_equal(np.where(np.isinf(expected), 2**32 - 1, expected), depth)


def test_the_edge_loop_calls_nothing_but_flush():
    graph, _ = random_graph(10, 10)
    code = compile_cpu(
        ProgramSpec(visit, None, (describe(graph), describe(FakeArray(np.zeros(1, np.uint32)))), np.dtype(np.uint32))
    )
    calls = [line.split(None, 1) for line in code.assembly.splitlines() if re.match(r"\s+(call|bl)", line)]
    assert len(calls) == 1
    assert "(" in calls[0][1] or calls[0][0] == "blr"  # through a pointer


@pytest.mark.skipif(platform.machine() != "x86_64", reason="looks for the instructions of x86-64")
def test_short_loops_over_features_take_vector_instructions():
    @atos.task
    def add_rows(worker, v, x, y):
        sums = atos.local_array(np.float32, 4)
        for u in range(v, v + 1000, 7):
            for f in range(4):
                sums[f] += x[u, f]
        for f in range(4):
            y[v, f] = sums[f]

    matrix = np.zeros((2, 4), np.float32)
    by_numba = config.SLP_VECTORIZE
    code = compile_cpu(
        ProgramSpec(add_rows, None, (describe(FakeArray(matrix, True)), describe(FakeArray(matrix))), np.dtype(np.uint32))
    )
    assert re.search(r"\sv?addps\s", code.assembly)
    assert not re.search(r"\sv?addss\s", code.assembly)
    assert by_numba == config.SLP_VECTORIZE


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("readonly", [False, True])
def test_elements_of_every_type(dtype, readonly):
    def copy(worker, v, source, target):
        target[v] = source[v]

    values = (
        np.array([0, 1, 100], dtype)
        if dtype == "bool"
        else np.array([0, 100, np.iinfo(dtype).min if dtype[0] in "iu" else -1.5], dtype)
    )
    target = np.zeros(3, dtype)
    run(copy, [0, 1, 2], FakeArray(values, readonly), FakeArray(target))
    assert np.array_equal(target, values)


def test_shapes_and_several_dimensions():
    def fill(worker, v, matrix, out):
        out[0] = len(matrix)
        out[1] = matrix.size
        out[2] = matrix.ndim
        out[3] = matrix.shape[1]
        matrix[v, 2] += 5
        out[4] = atos.atomic_add(matrix, (v, 3), 1)

    matrix = np.arange(12, dtype=np.int32).reshape(3, 4)
    expected = matrix.copy()
    expected[1, 2] += 5
    expected[1, 3] += 1
    out = np.zeros(5, np.int64)
    run(fill, [1], FakeArray(matrix), FakeArray(out))
    assert np.array_equal(matrix, expected)
    assert out.tolist() == [3, 12, 2, 4, 7]


def test_scalars_none_and_nested_tuples():
    def store(worker, v, pair, flag, x, y, n, out):
        if pair.first.second is None and flag:
            out[0] = pair.first.first[v] + pair.second
            out[1] = x + y
            out[2] = n

    out = np.zeros(3)
    array = FakeArray(np.array([10, 20], np.int16), True)
    run(store, [1], Pair(Pair(array, None), 5), True, np.float32(0.5), 0.25, np.int8(-3), FakeArray(out))
    assert out.tolist() == [25, 0.75, -3]


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_integer_items(dtype):
    def bounce(worker, v):
        worker.push(v)
        worker.push(v - v)

    info = np.iinfo(dtype)
    harness = run(bounce, [info.min, info.max, 5], dtype=dtype, capacity=4)
    assert harness.pushed == [info.min, 0, info.max, 0, 5, 0]
    assert harness.flushes == 2


@pytest.mark.parametrize("dtype", ITEM_RECORDS.values(), ids=ITEM_RECORDS)
def test_records_are_pushed_as_they_came(dtype):
    def again(worker, item):
        worker.push(item)

    items = random_items(dtype, 20)
    assert run(again, items, dtype=dtype).pushed == items.tolist()


@pytest.mark.parametrize("fields", RECORDS.values(), ids=RECORDS)
def test_record_items(fields):
    def relax(worker, item, out):
        out[item.vertex] = item.distance
        vertex, distance = item
        worker.push((vertex + 1, distance * 2))
        worker.push(item)

    out = np.zeros(4)
    harness = run(relax, np.array([(1, 2), (3, 4)], fields), FakeArray(out), dtype=np.dtype(fields))
    assert out.tolist() == [0, 2, 0, 4]
    assert harness.pushed == [(2, 4), (1, 2), (4, 8), (3, 4)]


def test_a_workload_may_take_the_first_arguments_only():
    def length(v, counts):
        return counts[v]

    @atos.task(workload=length)
    def body(worker, v, i, counts, factor):
        worker.push(v * factor + i)

    assert run(body, [0, 2], FakeArray(np.array([1, 9, 3])), 10).pushed == [0, 20, 21, 22]


def test_values_of_the_workload_reach_the_body():
    def plan(v, out):
        return v, v * 2, np.float32(0.5), v > 2, np.uint8(200)

    @atos.task(workload=plan)
    def body(worker, v, i, double, half, large, small, out):
        atos.atomic_add(out, v, double * half + i + small if large else double)

    out = np.zeros(5)
    run(body, [0, 1, 2, 4], FakeArray(out))
    assert out.tolist() == [0, 2, 8, 0, 4 * (8 * 0.5 + 200) + 6]


def test_too_many_values_are_refused():
    def plan(v):
        return v, 1, 2, 3, 4, 5, 6, 7, 8, 9

    @atos.task(workload=plan)
    def body(worker, v, i, a, b, c, d, e, f, g, h, j):
        worker.push(v)

    with pytest.raises(atos.TaskCompileError, match="returns 9 values, but at most 8"):
        run(body, [1])


def test_a_negative_length_runs_nothing():
    def plan(v, out):
        return -1

    @atos.task(workload=plan)
    def body(worker, v, i, out):
        out[0] = 1

    out = np.zeros(1)
    run(body, [1, 2], FakeArray(out))
    assert out[0] == 0


def test_idle():
    def idle(worker, out):
        out[0] += 1
        worker.push(worker.size + worker.rank)

    def body(worker, v, out):
        pass

    out = np.zeros(1, np.int32)
    args = (FakeArray(out),)
    code = compile_cpu(ProgramSpec(atos.task(body), idle, (describe(args[0]),), np.dtype(np.uint32)))
    harness, words = Harness(np.uint32), blob(*args)
    for _ in range(2):
        IDLE(code.idle)(ctypes.byref(harness.worker), words.ctypes.data)
    assert out[0] == 2
    assert harness.pushed == [1, 1]
    assert compile_cpu(ProgramSpec(atos.task(body), None, (describe(args[0]),), np.dtype(np.uint32))).idle == 0


# Helpers: plain functions, found as globals, through closures and modules, and recursively.
SCALE = 3


def triple(x):
    return x * SCALE


def triple_plus(x, one=1):
    return triple(x) + one


library = types.ModuleType("library")
exec("def double(x):\n    return twice(x)\ndef twice(x):\n    return 2 * x\n", vars(library))


def test_helpers():
    offset = 100

    def shifted(x):
        return triple_plus(x) + offset

    def body(worker, v, out):
        def local(x):
            return x + 1

        out[v] = library.double(shifted(v)) + local(v)

    out = np.zeros(4, np.int64)
    run(body, [2], FakeArray(out))
    assert out[2] == 2 * (2 * 3 + 1 + 100) + 3


def test_library_functions():
    def body(worker, v, out):
        out[0] = math.sqrt(v) + np.sqrt(v) + abs(v - 10) + max(v, 3, 4) + np.iinfo(np.uint32).max

    out = np.zeros(1)
    run(body, [9], FakeArray(out))
    assert out[0] == 3 + 3 + 1 + 9 + 2**32 - 1


INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = ["float32", "float64"]
NAN, INF = math.nan, math.inf


@functools.cache
def atomic_code(name: str, dtype: str) -> Any:
    function = getattr(atos, name)

    def body(worker, v, array, values, old):
        old[0] = function(array, 1, values[0])

    def cas(worker, v, array, values, old):
        old[0] = function(array, 1, values[0], values[1])

    array = describe(FakeArray(np.zeros(1, dtype)))
    return compile_cpu(ProgramSpec(atos.task(cas if name == "atomic_cas" else body), None, (array,) * 3, np.dtype(np.uint32)))


def atomic(name: str, dtype: str, start: Any, *values: Any) -> tuple[Any, Any]:
    """Do one atomic operation; return the element before and after."""
    array, given, old = np.array([7, start, 7], dtype), np.array(values, dtype), np.zeros(1, dtype)
    Harness(np.uint32).run(atomic_code(name, dtype), [0], FakeArray(array), FakeArray(given), FakeArray(old))
    assert array[0] == array[2] == np.array(7, dtype)
    return old[0], array[1]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_atomics_on_integers(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    for start, value in [(5, 3), (3, 5), (low, high), (high, low), (4, 4)]:
        assert atomic("atomic_min", dtype, start, value) == (start, min(start, value))
        assert atomic("atomic_max", dtype, start, value) == (start, max(start, value))
    assert atomic("atomic_add", dtype, 5, 3) == (5, 8)
    assert atomic("atomic_add", dtype, high, 1) == (high, low)
    assert atomic("atomic_exch", dtype, 5, high) == (5, high)
    assert atomic("atomic_cas", dtype, 5, 5, 9) == (5, 9)
    assert atomic("atomic_cas", dtype, 5, 6, 9) == (5, 5)
    assert atomic("atomic_or_", dtype, 0b1100, 0b1010) == (0b1100, 0b1110)
    assert atomic("atomic_and_", dtype, 0b1100, 0b1010) == (0b1100, 0b1000)
    assert atomic("atomic_xor", dtype, 0b1100, 0b1010) == (0b1100, 0b0110)
    assert atomic("atomic_mul", dtype, 5, 3) == (5, 15)
    assert atomic("atomic_mul", dtype, high, 2) == (high, (2 * high) % (high - low + 1) if low == 0 else -2)


def test_atomics_on_bool():
    for start in (False, True):
        for value in (False, True):
            assert atomic("atomic_exch", "bool", start, value) == (start, value)
            assert atomic("atomic_or_", "bool", start, value) == (start, start or value)
            assert atomic("atomic_and_", "bool", start, value) == (start, start and value)
            assert atomic("atomic_xor", "bool", start, value) == (start, start != value)
            assert atomic("atomic_cas", "bool", start, value, not start) == (start, start != (start == value))


@pytest.mark.parametrize("dtype", FLOATS)
def test_atomics_on_floats(dtype):
    for start in (-INF, -2.5, -0.5, 0.0, 0.5, 2.5, INF):
        for value in (-INF, -3.5, -0.5, 0.0, 0.25, 3.5, INF):
            assert atomic("atomic_min", dtype, start, value) == (start, min(start, value))
            assert atomic("atomic_max", dtype, start, value) == (start, max(start, value))
    assert atomic("atomic_add", dtype, 0.5, 1.25) == (0.5, 1.75)
    assert atomic("atomic_mul", dtype, 0.5, -1.25) == (0.5, -0.625)
    assert atomic("atomic_exch", dtype, 0.5, -1.25) == (0.5, -1.25)
    assert atomic("atomic_cas", dtype, 0.5, 0.5, 2.0) == (0.5, 2.0)
    assert atomic("atomic_cas", dtype, 0.5, 0.25, 2.0) == (0.5, 0.5)


@pytest.mark.parametrize("dtype", [dtype for dtype in INTEGERS if not dtype.endswith("64")])
def test_values_beyond_the_range_of_small_integers_do_not_wrap_around(dtype):
    info = np.iinfo(dtype)

    def body(worker, v, lowest, highest, beyond):
        atos.atomic_min(lowest, 0, lowest[0] + 1)  # one past the largest: no improvement, and not zero
        atos.atomic_max(highest, 0, highest[0] - beyond)

    lowest, highest = np.array([info.max], dtype), np.array([info.min], dtype)
    run(body, [0], FakeArray(lowest), FakeArray(highest), 1)
    assert lowest[0] == info.max
    assert highest[0] == info.min


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
def test_small_unsigned_integers_are_signed_inside(dtype):
    def body(worker, v, x, given, out):
        out[0] = x[0] - x[1]
        out[1] = v - given
        out[2] = -x[1]
        total = x[0]
        for i in range(3):
            total = total * x[i]  # stays an integer
        out[3] = x[total]

    x = np.array([1, 2, 1], dtype)
    out = np.zeros(4, np.int64)
    run(body, [3], FakeArray(x), np.dtype(dtype).type(5), FakeArray(out))
    assert out.tolist() == [-1, -2, -2, 1]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["atomic_min", "atomic_max"])
def test_nan_changes_nothing(dtype, name):
    assert atomic(name, dtype, 0.5, NAN) == (0.5, 0.5)
    assert all(map(math.isnan, atomic(name, dtype, NAN, 0.5)))
    assert all(map(math.isnan, atomic(name, dtype, -NAN, -0.5)))


def test_the_worker_of_a_flat_task():
    def body(worker, v, out):
        worker.sync()
        out[0] = worker.rank
        out[1] = worker.size
        out[2] = worker.sum(v)
        out[3] = worker.min(-1.5)
        out[4] = worker.max(np.uint64(2**63))
        out[5] = worker.any(v == 4) and worker.all(v) and not worker.any(v == 5)
        for i in worker.split(3):
            out[6] += i
        for i in worker.split(range(v, 10, 2)):
            out[7] += i

    out = np.zeros(8)
    run(body, [4], FakeArray(out))
    assert out.tolist() == [0, 1, 4, -1.5, 2**63, 1, 3, 18]


def test_a_split_range_is_a_range():
    def body(worker, v, out):
        part = worker.split(range(10, v, -3))
        out[0] = part.start
        out[1] = part.stop
        out[2] = part.step
        out[3] = len(part)
        for i in part:
            for j in worker.split(i):
                out[4] += j
        for _ in worker.split(range(v, v)):
            out[5] += 1
        for _ in worker.split(-v):
            out[5] += 1

    out = np.zeros(6)
    run(body, [2], FakeArray(out))
    assert out.tolist() == [10, 2, -3, 3, 45 + 21 + 6, 0]


@pytest.mark.parametrize("number", [np.float32, np.float64, np.int16])
def test_the_dtype_of_an_array_converts(number):
    def body(worker, v, array, out):
        out[0] = array.dtype.type(v) / array.dtype.type(3)

    out = np.zeros(1)
    run(body, [1], FakeArray(np.zeros(1, number)), FakeArray(out))
    assert out[0] == number(1) / number(3)


ENDLESS = """
import os, sys, numpy as np, atos_py as atos

def length(item, lengths, ran):
    return lengths[0]

@atos.task(workload=length)
def body(worker, item, i, lengths, ran):
    atos.atomic_max(ran, 0, i)

lengths, ran = np.array([int(sys.argv[1])], np.uint64), np.zeros(1, np.int64)
queue = atos.Queue(1, device="cpu")
queue.push([0])
try:
    queue.launch_cta(body, lengths, ran, timeout=0.3)  # in which it begins on a busy machine too
except atos.LaunchTimeoutError as error:
    print(error.stuck, ran[0] > 0, flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("length", [2**63 - 1, 2**63, 2**64 - 1])
def test_a_length_that_int64_does_not_hold_is_not_none_at_all(length):
    # In a process of its own, since such a loop does not end.
    run = subprocess.run([sys.executable, "-c", ENDLESS, str(length)], capture_output=True, text=True, check=True)
    assert run.stdout == "True True\n"


@pytest.mark.parametrize("length", [0, 7, 2**63 - 1, 2**63, 2**64 - 1])
def test_a_split_that_int64_does_not_hold_is_not_none_at_all(length):
    def body(worker, v, lengths, out):
        out[0] = len(worker.split(lengths[0]))

    out = np.zeros(1, np.int64)
    run(body, [1], FakeArray(np.array([length], np.uint64)), FakeArray(out))
    assert out[0] == min(length, 2**63 - 1)


def test_scratch():
    def body(worker, v, out):
        counts = worker.scratch(np.uint32)
        out[0] = len(counts)
        counts[1] = 40
        out[1] = atos.atomic_add(counts, 1, v)
        out[2] = counts[1]
        out[3] = len(worker.scratch(np.float64))

    out = np.zeros(4)
    run(body, [2], FakeArray(out), scratch_bytes=30)
    assert out.tolist() == [7, 40, 42, 3]


def test_functions_of_modules_of_modules():
    """Also where a module is in one that it contains, as packages are."""
    outer, inner = types.ModuleType("outer"), types.ModuleType("inner")
    inner.inner, inner.outer, outer.inner = inner, outer, inner
    inner.twice = lambda x: 2 * x

    def body(worker, v, out):
        out[v] = outer.inner.twice(v)

    out = np.zeros(4)
    run(body, [1, 3], FakeArray(out))
    assert out.tolist() == [0, 2, 0, 6]


def test_code_survives_being_stored():
    graph, _ = random_graph(100, 400)
    code = compile_cpu(
        ProgramSpec(visit, None, (describe(graph), describe(FakeArray(np.zeros(1, np.uint32)))), np.dtype(np.uint32))
    )
    assert np.array_equal(bfs_levels(code, graph, 100), bfs_levels(load_cpu(code.parts), graph, 100))


def test_stored_code_runs_in_another_process(tmp_path):
    def body(worker, v):
        worker.push(v * 2)

    code = compile_cpu(ProgramSpec(atos.task(body), None, (), np.dtype(np.uint32)))
    for number, part in enumerate(code.parts):
        (tmp_path / str(number)).write_bytes(part)
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\n"
        "from cpu_harness import Harness, np\n"
        "from atos_py.compile.codegen.target_cpu import load_cpu\n"
        f"code = load_cpu([(Path(sys.argv[2]) / str(number)).read_bytes() for number in range({len(code.parts)})])\n"
        "harness = Harness(np.uint32)\n"
        "harness.run(code, [1, 2, 3, 4, 5])\n"
        "print(harness.pushed)\n"
    )
    command = [sys.executable, "-c", script, str(ROOT / "tests"), str(tmp_path)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "[2, 4, 6, 8, 10]"
