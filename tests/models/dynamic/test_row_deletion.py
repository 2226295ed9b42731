"""Deletion from a row by groups and workers of many threads, as on a GPU: threads of Python that meet at barriers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from thread_teams import run_teams

from atos_py.models.dynamic import row_deletion
from atos_py.models.dynamic.row_edits import DynamicRows

FIRST, SOURCE = 37, 5  # of the row


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
def test_many_threads_delete_in_order(threads, by_worker, count, keys, is_weighted):
    rng = np.random.default_rng(count)
    indices = np.full(FIRST + count + 50, 999_999, np.uint32)
    indices[FIRST : FIRST + count] = rng.integers(0, max(count // 2, 3), count)
    before, weights = indices.copy(), rng.random(indices.size)
    rows: Any = DynamicRows(np.full(9, FIRST), np.full(9, count), indices, weights.copy() if is_weighted else None)
    gone = rng.choice(max(count // 2, 3), keys)
    ends = np.sort(np.concatenate([SOURCE - 1 << 32 | gone[:2], SOURCE << 32 | gone, SOURCE + 1 << 32 | gone[:2]])).astype("u8")
    firsts = np.searchsorted(ends, [np.uint64(SOURCE << 32)])
    if by_worker:
        delete = row_deletion.row_deletion(row_deletion.of_worker, row_deletion.sum_in_worker)
    else:
        delete = row_deletion.row_deletion(row_deletion.of_group, row_deletion.sum_in_group)

    def run(worker: Any) -> int:
        return int(delete(worker if by_worker else worker.group(32), 0, row_deletion.Deletion(ends, firsts, rows, None)))

    deleted = sum(run_teams(threads, run))
    stays = np.flatnonzero(~np.isin(before[FIRST : FIRST + count], gone)) + FIRST
    assert (rows.degree[SOURCE], deleted) == (stays.size, count - stays.size)
    assert np.array_equal(indices[FIRST : FIRST + stays.size], before[stays])
    assert np.all(indices[:FIRST] == 999_999)
    assert np.all(indices[FIRST + count :] == 999_999)
    if is_weighted:
        assert np.array_equal(rows.weights[FIRST : FIRST + stays.size], weights[stays])
