"""Atomics on elements of every size: against NumPy one by one, and under contention, where neighbors must not suffer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cpu_harness import Harness
from fake_arrays import FakeArray
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_tasks import every_schedule, launch

import atos_py as atos
from atos_py.compile.arguments import describe
from atos_py.compile.codegen import lower_atomics
from atos_py.compile.codegen.target_cpu import compile_cpu
from atos_py.compile.spec import ProgramSpec
from atos_py.errors import TaskError

SMALL = ["int8", "uint8", "int16", "uint16"]
INTEGERS = [*SMALL, "int32", "uint32", "int64", "uint64"]
OPERATIONS = ["min", "max", "add", "mul", "exch", "cas", "or", "and", "xor"]


@atos.task
def one_by_one(worker, item, array, operations, places, values, old):
    """Do a list of operations in turn."""
    if worker.rank == 0:
        for k in range(len(operations)):
            operation, at, value = operations[k], places[k], values[k]
            if operation == 0:
                old[k] = atos.atomic_min(array, at, value)
            elif operation == 1:
                old[k] = atos.atomic_max(array, at, value)
            elif operation == 2:
                old[k] = atos.atomic_add(array, at, value)
            elif operation == 3:
                old[k] = atos.atomic_mul(array, at, value)
            elif operation == 4:
                old[k] = atos.atomic_exch(array, at, value)
            elif operation == 5:
                old[k] = atos.atomic_cas(array, at, array[at] if k % 2 else value, value)
            elif operation == 6:
                old[k] = atos.atomic_or_(array, at, value)
            elif operation == 7:
                old[k] = atos.atomic_and_(array, at, value)
            else:
                old[k] = atos.atomic_xor(array, at, value)


def in_numpy(name: str, before: Any, value: Any, is_odd: bool) -> Any:
    with np.errstate(over="ignore"):
        if name == "min":
            return min(before, value)
        if name == "max":
            return max(before, value)
        if name == "add":
            return before + value
        if name == "mul":
            return before * value
        if name == "exch":
            return value
        if name == "cas":
            return value if is_odd or before == value else before
        return before | value if name == "or" else before & value if name == "and" else before ^ value


def after(start: np.ndarray, operations: np.ndarray, places: np.ndarray, values: np.ndarray) -> tuple[list, list]:
    """Return the elements after all operations, and the one before each."""
    array, old = start.copy(), np.zeros_like(values)
    for k, (operation, at, value) in enumerate(zip(operations, places, values, strict=True)):
        old[k] = array[at]
        array[at] = in_numpy(OPERATIONS[operation], array[at], value, k % 2 == 1)
    return array.tolist(), old.tolist()


@pytest.mark.parametrize("dtype", INTEGERS)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 9))
def test_every_operation_is_numpys(device, dtype, seed, size):
    """Elements at each place of a word, of which one changes and the others stay."""
    rng, limits, steps = np.random.default_rng(seed), np.iinfo(dtype), 60
    start, values = (rng.integers(limits.min, limits.max, n, dtype, endpoint=True) for n in (size, steps))
    operations, places = rng.integers(0, len(OPERATIONS), steps), rng.integers(0, size, steps)
    array, old = atos.asarray(start, device=device, copy=True), atos.zeros(steps, dtype=dtype, device=device)
    queue = atos.Queue(1, device=device)
    queue.push(0)
    there = [atos.asarray(part, device=device) for part in (operations, places, values)]
    queue.launch_thread(one_by_one, array, *there, old)
    assert (array.to_numpy().tolist(), old.to_numpy().tolist()) == after(start, operations, places, values)


@pytest.mark.parametrize("dtype", SMALL)
def test_operations_on_the_word_around_an_element_are_numpys(monkeypatch, dtype):
    """What GPUs do for small elements, compiled for the CPU."""
    monkeypatch.setattr(lower_atomics, "_in_words", lambda context, pointer: True)
    rng, limits = np.random.default_rng(0), np.iinfo(dtype)

    kinds = tuple(describe(FakeArray(np.zeros(1, kind))) for kind in (dtype, "i8", "i8", dtype, dtype))
    code = compile_cpu(ProgramSpec(atos.task(one_by_one.body), None, kinds, np.dtype("u4")))
    for size in range(1, 9):
        start, values = (rng.integers(limits.min, limits.max, n, dtype, endpoint=True) for n in (size, 300))
        operations, places = rng.integers(0, len(OPERATIONS), 300), rng.integers(0, size, 300)
        array, old = start.copy(), np.zeros(300, dtype)
        Harness(np.uint32).run(code, [0], *map(FakeArray, (array, operations, places, values, old)))
        assert (array.tolist(), old.tolist()) == after(start, operations, places, values)


@atos.task(workload=lambda v, times, array: len(array))
def change_neighbors(worker, v, i, times, array):
    """Change each element in its own way, all of them at the same time."""
    for _ in range(times):
        if i % 8 == 0:
            atos.atomic_add(array, i, 1)
        elif i % 8 == 1:
            atos.atomic_xor(array, i, 1)
        elif i % 8 == 2:
            atos.atomic_mul(array, i, 3)
        elif i % 8 == 3:
            atos.atomic_or_(array, i, 1 << (v & 3))
        elif i % 8 == 4:
            atos.atomic_and_(array, i, ~(1 << (v & 3)))
        elif i % 8 == 5:
            atos.atomic_exch(array, i, 7)
        elif i % 8 == 6:
            atos.atomic_max(array, i, v & 63)


@pytest.mark.parametrize("dtype", SMALL)
def test_neighbors_keep_what_others_store(device, worker, dtype):
    items, times, size = 64, 5, 1003
    array = atos.full(size, 15, dtype=dtype, device=device)
    queue = atos.Queue(items, device=device)
    queue.push(np.arange(items))
    launch(queue, worker, change_neighbors, times, array)
    n, limit = items * times, 2 ** np.iinfo(dtype).bits
    expected = [15 + n, 15 ^ (n % 2), 15 * pow(3, n, limit), 15, 0, 7, 63, 15]
    with np.errstate(over="ignore"):
        wrapped = (np.array(expected, object) % limit).astype(f"u{np.dtype(dtype).itemsize}").astype(dtype)
    assert array.to_numpy().tolist() == np.resize(wrapped, size).tolist()


@atos.task(workload=lambda v, by_swap, by_exchange, by_or, marks, won: len(by_swap))
def claim(worker, v, i, by_swap, by_exchange, by_or, marks, won):
    """Claim flags in three ways, next to flags that are just written."""
    if atos.atomic_cas(by_swap, i, 0, 1) == 0:
        atos.atomic_add(won, 0, 1)
    if atos.atomic_exch(by_exchange, i, 1) == 0:
        atos.atomic_add(won, 1, 1)
    if atos.atomic_or_(by_or, i, 1) == 0:
        atos.atomic_add(won, 2, 1)
    if i % 2 == 0:
        marks[i] = 1
    else:
        atos.atomic_xor(marks, i, 1)


@pytest.mark.parametrize("dtype", ["bool", *SMALL])
def test_small_flags_are_claimed_once(device, worker, dtype):
    items, size = 20, 5_001
    flags = [atos.zeros(size, dtype=dtype, device=device) for _ in range(4)]
    won = atos.zeros(3, dtype=np.int64, device=device)
    queue = atos.Queue(items, device=device)
    queue.push(np.arange(items))
    launch(queue, worker, claim, *flags, won)
    assert won.to_numpy().tolist() == [size] * 3
    for array in flags[:3]:
        assert array.to_numpy().astype(int).tolist() == [1] * size
    assert flags[3].to_numpy().astype(int).tolist() == [1 - i % 2 for i in range(size)]


@atos.task(workload=lambda v, n, products: n)
def multiply(worker, v, i, n, products):
    atos.atomic_mul(products, 0, 2 if i % 2 else 0.5)
    atos.atomic_mul(products, 1, -1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_floats_under_contention(device, worker, dtype):
    """Powers of two, whose products are neither rounded nor overflow in any order."""
    items, n = 10, 21
    products = atos.full(2, 1, dtype=dtype, device=device)
    queue = atos.Queue(items, device=device)
    queue.push(np.arange(items))
    launch(queue, worker, multiply, n, products)
    assert products.to_numpy().tolist() == [2.0**-items, 1.0]


@atos.task(workload=lambda v, n, products, flips: n)
def multiply_and_flip(worker, v, i, n, products, flips):
    atos.atomic_mul(products, 0, 3 if i % 2 else 5)
    atos.atomic_xor(flips, 0, 1 << (i & 15))


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_products_and_flips_under_contention(device, worker, dtype):
    items, n = 21, 500
    products, flips = atos.full(1, 1, dtype=dtype, device=device), atos.zeros(1, dtype=dtype, device=device)
    queue = atos.Queue(items, device=device)
    queue.push(np.arange(items))
    launch(queue, worker, multiply_and_flip, n, products, flips)
    limit = 2 ** np.iinfo(dtype).bits
    assert int(products[0]) % limit == pow(15, items * n // 2, limit)
    assert flips[0] == sum(1 << bit for bit in range(16) if sum(i & 15 == bit for i in range(n)) * items % 2)


@atos.task
def in_scratch(worker, v, out):
    """Count in bytes of the worker's scratch, side by side."""
    scratch = worker.scratch(np.uint8)
    for k in worker.split(8):
        scratch[k] = 0
    worker.sync()
    for k in worker.split(800):
        atos.atomic_add(scratch, k % 8, k % 3)
    worker.sync()
    for k in worker.split(8):
        out[v, k] = scratch[k]
    worker.sync()


def test_small_elements_in_scratch(device, worker):
    out = atos.zeros((3, 8), dtype=np.int64, device=device)
    queue = atos.Queue(3, device=device)
    queue.push(np.arange(3))
    launch(queue, worker, in_scratch, out, shared_memory=8)
    expected = [sum(j % 3 for j in range(k, 800, 8)) for k in range(8)]
    assert out.to_numpy().tolist() == [expected] * 3


@atos.task(workload=lambda v, sums, wide: 100)
def add_up(worker, v, i, sums, wide):
    atos.accumulate(sums, i % 5, v)
    atos.accumulate(wide, (i % 5, 1), v % 3)


@every_schedule
@pytest.mark.parametrize("dtype", [*INTEGERS, "float32", "float64"])
def test_accumulate_adds(device, worker, dtype, persistent, barrier):
    """Sums that are exact in every type but the smallest, where they wrap around."""
    items = 50
    sums, wide = atos.full(6, 1, dtype=dtype, device=device), atos.zeros((5, 2), dtype=dtype, device=device)
    queue = atos.Queue(items, device=device)
    queue.push(np.arange(items))
    launch(queue, worker, add_up, sums, wide, persistent=persistent, barrier=barrier)
    total, small = 20 * sum(range(items)) + 1, 20 * sum(k % 3 for k in range(items))
    assert sums.to_numpy().tolist() == np.array([total] * 5 + [1]).astype(dtype).tolist()
    assert wide.to_numpy().tolist() == np.array([[0, small]] * 5).astype(dtype).tolist()


@pytest.mark.parametrize("order", ["keep", "random"])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_accumulate_over_devices(worker, count, order):
    """Every vertex adds to all, which are other devices' too."""
    graph = atos.generate.uniform(60, 900, 1, device="cpu")
    parts = graph.partition([f"cpu:{i}" for i in range(count)], order)
    sums, total = atos.full(60, 0.0, partition=parts), np.zeros(1, np.int64)

    @atos.task(workload=lambda v, parts, sums, total: parts.indptr[v + 1] - parts.indptr[v])
    def scatter(worker, v, i, parts, sums, total):
        atos.accumulate(sums, parts.indices[parts.indptr[v] + i], parts.original[v])
        atos.accumulate(total, 0, 1)

    queue = atos.Queue(60, owner=parts)
    queue.push(range(60))
    launch(queue, worker, scatter, parts, sums, total)
    expected = np.bincount(graph.indices[:], np.repeat(np.arange(60), graph.degrees()), 60)
    assert sums.to_numpy().tolist() == expected.tolist()
    assert total[0] == graph.num_edges


def test_a_sum_that_does_not_fit_is_found(device):
    @atos.task
    def overflow(worker, v, sums):
        atos.accumulate(sums, v, 300)

    sums, queue = atos.zeros(4, dtype=np.uint8, device=device), atos.Queue(4, device=device)
    queue.push(1)
    with pytest.raises(TaskError, match="300"):
        queue.launch_thread(overflow, sums, debug=True)
    queue.clear()
    queue.push(5)
    with pytest.raises(TaskError, match="index 5 is out of range for array 'sums' of length 4"):
        queue.launch_thread(overflow, sums, debug=True)
