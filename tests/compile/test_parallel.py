"""Cutting work into pieces for threads of the host."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atos_py.compile.host_kernels import even_rows, ranges


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 20))
def test_rows_are_cut_into_even_pieces(lengths: list[int], step: int) -> None:
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    pieces = even_rows(indptr, step)
    assert [v for piece in pieces for v in range(*piece)] == list(range(len(lengths)))
    assert all(first < end for first, end in pieces)
    assert all(indptr[end] - indptr[first] < step + max(lengths) for first, end in pieces)


@pytest.mark.parametrize(
    ("total", "step", "expected"), [(0, 3, []), (6, 3, [(0, 3), (3, 6)]), (7, 3, [(0, 3), (3, 6), (6, 7)])]
)
def test_ranges(total: int, step: int, expected: list[tuple[int, int]]) -> None:
    assert ranges(total, step) == expected
