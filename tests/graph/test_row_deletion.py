"""Deletion from a row by groups and workers of many threads, as on a GPU: threads of Python that meet at barriers."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from atos_py.graph import row_deletion
from atos_py.graph.row_edits import DynamicRows

FIRST, SOURCE = 37, 5  # of the row


class Threads:
    """What threads that work together share."""

    def __init__(self, count: int) -> None:
        self.barrier, self.values, self.memory = threading.Barrier(count, timeout=30), [None] * count, {}


class Team:
    """A group or a worker, as one of its threads sees it."""

    def __init__(self, shared: Threads, rank: int, index: int = 0, count: int = 1, group: Any = None) -> None:
        self.shared, self.rank, self.size, self.index, self.count = shared, rank, len(shared.values), index, count
        self.group = lambda size: group

    def sync(self) -> None:
        self.shared.barrier.wait()

    def gathered(self, value: Any) -> list[Any]:
        self.shared.values[self.rank] = value
        self.sync()
        values = list(self.shared.values)
        self.sync()
        return values

    def shuffle(self, value: Any, source: int) -> Any:
        return self.gathered(value)[int(source) % self.size]

    def min(self, value: Any) -> Any:
        return min(self.gathered(value))

    def split(self, work: int) -> range:
        return range(self.rank, work, self.size)

    def scratch(self, dtype: Any, count: int) -> Any:
        return self.shared.memory.setdefault((dtype, count), np.full(count, 7, dtype))


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize(
    ("threads", "by_worker", "count", "keys"),
    [
        (32, False, 1, 1),
        (32, False, 128, 1),
        (32, False, 700, 400),
        (96, True, 500, 7),
        (64, True, 256, 1),
        (96, True, 1500, 700),
    ],
)
def test_many_threads_delete_in_order(threads, by_worker, count, keys, is_weighted, monkeypatch):
    lock, rng = threading.Lock(), np.random.default_rng(count)

    def atomic_or(array: Any, index: int, value: Any) -> None:
        with lock:
            array[index] |= value

    monkeypatch.setattr(row_deletion, "atomic_or_", atomic_or)
    indices = np.full(FIRST + count + 50, 999_999, np.uint32)
    indices[FIRST : FIRST + count] = rng.integers(0, max(count // 2, 3), count)
    before, weights = indices.copy(), rng.random(indices.size)
    rows: Any = DynamicRows(np.full(9, FIRST), np.full(9, count), indices, weights.copy() if is_weighted else None)
    gone = rng.choice(max(count // 2, 3), keys)
    ends = np.sort(np.concatenate([SOURCE - 1 << 32 | gone[:2], SOURCE << 32 | gone, SOURCE + 1 << 32 | gone[:2]])).astype("u8")
    firsts = np.searchsorted(ends, [np.uint64(SOURCE << 32)])
    groups, all_threads = [Threads(32) for _ in range(threads // 32)], Threads(threads)
    if by_worker:
        delete = row_deletion.row_deletion(row_deletion.of_worker, row_deletion.sum_in_worker, 16)
    else:
        delete = row_deletion.row_deletion(row_deletion.of_group, row_deletion.sum_in_group, 10)

    def run(thread: int) -> int:
        group = Team(groups[thread // 32], thread % 32, thread // 32, threads // 32)
        team = Team(all_threads, thread, group=group) if by_worker else group
        return int(delete(team, 0, row_deletion.Deletion(ends, firsts, rows, None)))

    with ThreadPoolExecutor(threads) as pool:
        deleted = sum(pool.map(run, range(threads)))
    stays = np.flatnonzero(~np.isin(before[FIRST : FIRST + count], gone)) + FIRST
    assert (rows.degree[SOURCE], deleted) == (stays.size, count - stays.size)
    assert np.array_equal(indices[FIRST : FIRST + stays.size], before[stays])
    assert np.all(indices[:FIRST] == 999_999)
    assert np.all(indices[FIRST + count :] == 999_999)
    if is_weighted:
        assert np.array_equal(rows.weights[FIRST : FIRST + stays.size], weights[stays])
