"""The mergesort of the example: NumPy's order, for all lengths around a leaf and a piece, types, workers and schedules."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from repository import load_example

import atos_py as atos

mergesort = load_example("mergesort")
SMALL = {"leaf": 40, "size": 50}  # little scratch memory, also for each thread of a block
INPUTS = {
    "random": lambda n: np.random.default_rng(n).integers(-(2**31), 2**31, n),
    "equal": lambda n: np.full(n, 7),
    "two values": lambda n: np.random.default_rng(n).integers(0, 2, n),
    "in order": np.arange,
    "reversed": lambda n: np.arange(n)[::-1],
    "shuffled halves": lambda n: np.roll(np.arange(n), n // 2),
    "extremes": lambda n: np.resize([-(2**31), 2**31 - 1, 0], n),
}


def check(numbers, leaf=mergesort.LEAF, size=mergesort.PIECE, **options):
    """Sort, compare with NumPy, and return how many tasks of each kind have run."""
    before = numbers.copy()
    found, stats = mergesort.in_order(numbers, leaf=leaf, size=size, **options)
    assert found.dtype == numbers.dtype
    np.testing.assert_array_equal(found, np.sort(before))
    np.testing.assert_array_equal(numbers, before)
    return stats.tasks_run_by


def counted(n, leaf, size):
    """Return how many tasks sort n numbers, by recursion on the host."""
    if n <= leaf:
        return {"sort": 1, "merge": 0, "piece": 0}
    left = (-(-n // leaf) + 1) // 2 * leaf
    halves = counted(left, leaf, size), counted(n - left, leaf, size)
    own = {"sort": 1, "merge": 1, "piece": -(-n // size)}
    return {name: own[name] + sum(half[name] for half in halves) for name in own}


@pytest.mark.parametrize("order", INPUTS)
def test_any_order(order):
    for n in (2, 9, 10, 40, 41, 1000, 5000):
        numbers = INPUTS[order](n).astype(np.int32)
        check(numbers, **SMALL)
        check(numbers)


@pytest.mark.parametrize(
    "n", [0, 1, 2, 3, 8, 9, 17, 18, 19, 31, 32, 33, 39, 40, 41, 79, 80, 81, 255, 256, 257, 1023, 1025, 4097]
)
def test_any_length(n):
    assert check(INPUTS["random"](n).astype(np.int32), **SMALL) == counted(n, **SMALL)


@pytest.mark.parametrize("n", [2303, 2304, 2305, 4608, 4609, 6912, 65_536, 100_000])
def test_leaves_and_pieces_as_they_are(n):
    assert check(INPUTS["random"](n).astype(np.int32)) == counted(n, mergesort.LEAF, mergesort.PIECE)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-5, 5), max_size=300), st.integers(1, 40), st.integers(1, 40))
def test_any_sizes_of_leaf_and_piece(numbers, leaf, size):
    assert check(np.array(numbers, np.int32), leaf, size) == counted(len(numbers), leaf, size)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint64, np.float32, np.float64])
def test_any_type(device, dtype):
    words = np.random.default_rng(1).integers(0, 256, 3000 * np.dtype(dtype).itemsize, dtype=np.uint8)
    numbers = words.view(dtype)
    numbers = numbers[numbers == numbers]  # no NaN
    if np.issubdtype(dtype, np.floating):
        numbers[:5] = np.inf, -np.inf, 0, -0.0, 1
    check(numbers, device=device)


@pytest.mark.parametrize("options", [{}, {"barrier": True}, {"fetch_size": 16}, {"tier": "best"}], ids=str)
def test_any_worker_and_schedule(device, worker, options):
    for n in (10, 41, 3000):
        check(INPUTS["random"](n).astype(np.int32), device=device, worker=worker, **SMALL, **options)


def test_a_warp_and_a_block_merge_whole_pieces(device):
    for worker in ("warp", "cta"):
        check(INPUTS["random"](50_000).astype(np.int32), device=device, worker=worker, leaf=576, size=576)
    check(INPUTS["random"](300_000).astype(np.int32), device=device)


@pytest.mark.parametrize("take", ["oldest", "newest"])
def test_joins_end(device, take):
    numbers = INPUTS["random"](3000).astype(np.int32)
    data = atos.asarray(np.concatenate([numbers, np.zeros_like(numbers)]), device=device)
    joins = atos.Joins(4, combine=None, device=device)
    queue = atos.Queue(8, dtype=mergesort.PART, take=take, device=device)
    queue.push([(0, 0, 0, len(numbers), 0)])
    tasks = mergesort.sort, mergesort.merge, mergesort.piece
    queue.launch_cta(tasks, data, 40, 50, joins, shared_memory=2 * 50 * 4)
    assert joins.pending == 0
    assert len(joins.waiting().handle) == 0
    np.testing.assert_array_equal(data.to_numpy()[: len(numbers)], np.sort(numbers))


def test_checks_find_nothing():
    for n in (0, 1, 40, 1000):
        check(INPUTS["random"](n).astype(np.int32), debug=True, **SMALL)


def by_threads(threads, length, pair, width):
    """Merge pairs of runs as so many threads do, one after the other, and return the runs and what was merged."""
    box = np.zeros(2 * length, np.int64)
    for begin in range(0, length, pair):
        for first, last in ((begin, begin + width), (begin + width, begin + pair)):
            run = np.random.default_rng(first).integers(0, 20, max(0, min(last, length) - first))
            box[first : first + len(run)] = np.sort(run)

    class Worker:
        size = threads

        def split(self, n):
            return [k for rank in range(threads) for k in range(rank, n, threads)]

        def sync(self):
            pass

    before = box[:length].copy()
    mergesort.merge_runs(Worker(), box, 0, length, width, pair, length)
    return before, box[length:]


@pytest.mark.parametrize("threads", [1, 2, 32, 256])
@pytest.mark.parametrize("length", [1, 9, 10, 100, 289])
def test_merging_by_any_number_of_threads(threads, length):
    for width in (9, 18, 72):
        before, merged = by_threads(threads, length, 2 * width, width)
        pairs = [np.sort(before[begin : begin + 2 * width]) for begin in range(0, length, 2 * width)]
        np.testing.assert_array_equal(merged, np.concatenate(pairs))
    for left in {0, 1, length // 3, length}:
        before, merged = by_threads(threads, length, length, left)
        np.testing.assert_array_equal(merged, np.sort(before))


class Lane:
    """A thread of a group: `sum` waits for all of them."""

    def __init__(self, rank, values, barrier):
        self.rank, self.size, self.values, self.barrier = rank, len(values), values, barrier

    def sum(self, value):
        self.values[self.rank] = value
        self.barrier.wait(timeout=30)
        total = sum(self.values)
        self.barrier.wait(timeout=30)
        return total


@pytest.mark.parametrize("size", [1, 2, 32])
def test_threads_of_a_group_find_together_what_one_finds(size):
    rng, values, barrier = np.random.default_rng(size), [0] * size, threading.Barrier(size)
    lanes = [Lane(rank, values, barrier) for rank in range(size)]
    with ThreadPoolExecutor(size) as threads:
        for left, right in ((0, 1), (1, 0), (1, 1), (7, 300), (300, 7), (1200, 1100)):
            runs = np.sort(rng.integers(0, 50, left)), np.sort(rng.integers(0, 50, right))
            box, order = np.concatenate([*runs, [-9]]), np.argsort(np.concatenate(runs), kind="stable")
            for k in {0, 1, (left + right) // 3, left + right - 1, left + right}:
                expected = np.count_nonzero(order[:k] < left)
                assert mergesort.co_rank(box, 0, left, left, right, k) == expected
                search = partial(mergesort.co_rank_by_group, data=box, a=0, left=left, b=left, right=right, k=k)
                assert list(threads.map(search, lanes)) == [expected] * size
