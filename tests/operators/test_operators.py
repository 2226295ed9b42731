"""Operators against NumPy and SciPy: vertex maps, gathering, searching and pushing, on graphs that break things."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import atos_py as atos
from atos_py.operators.edge_map import gather, push
from atos_py.operators.ranges import VERTICES_PER_ITEM, VERTICES_PER_MIXED_RANGE, mixed_item_dtype, mixed_ranges, range_items
from atos_py.operators.union_find import root_of
from atos_py.operators.vertex_map import append, vertex_map, vertex_max, vertex_range, vertex_sums


@vertex_map
def double(v, values):
    values[v] *= 2


def pair(v, values):
    return values[v], values[v] * v


def value(v, values):
    return (values[v],)


sum_of_one, sum_of_two = vertex_sums(value), vertex_sums(pair, 2)


@vertex_max
def largest(v, values):
    return values[v]


@vertex_range
def least_to_largest(v, values):
    return values[v]


@vertex_map
def list_even(v, values, found):
    if values[v] % 2 == 0:
        append(found, v)


def rows(matrix: sp.csr_matrix, device: atos.Device) -> tuple[atos.Array, atos.Array]:
    indptr = atos.asarray(matrix.indptr.astype(np.int64), device=device, readonly=True)
    return indptr, atos.asarray(matrix.indices.astype(np.uint32), device=device, readonly=True)


def run(
    task: atos.Task, items: Any, *args: Any, device: atos.Device, n: int, worker: str = "cta", **options: Any
) -> atos.LaunchStats:
    queue = atos.Queue(max(4 * n, 16), dtype=mixed_item_dtype(n), device=device)
    queue.push(items)
    getattr(queue, f"launch_{worker}")(task, *args)


@pytest.mark.parametrize("n", [0, 1, 7, VERTICES_PER_ITEM, VERTICES_PER_ITEM + 1, 20_000])
def test_vertex_maps(device, worker, n):
    values = np.random.default_rng(n).integers(1, 100, n)
    array = atos.asarray(values.copy(), device=device)
    run(double, range_items(n), n, array, device=device, n=n, worker=worker)
    np.testing.assert_array_equal(array.to_numpy(), 2 * values)
    for task, expected in (
        (sum_of_one, [2 * values.sum()]),
        (sum_of_two, [2 * values.sum(), (2 * values * np.arange(n)).sum()]),
    ):
        totals = atos.zeros(len(expected), dtype=np.float64, device=device)
        run(task, range_items(n), n, totals, array, device=device, n=n, worker=worker)
        np.testing.assert_allclose(totals.to_numpy(), expected)
    found = atos.zeros(1, dtype=np.int64, device=device)
    run(largest, range_items(n), n, found, array, device=device, n=n, worker=worker)
    assert found[0] == (2 * values).max(initial=0)
    ends, totals = atos.asarray(np.array([100, 100]), device=device), atos.zeros(1, dtype=np.float64, device=device)
    run(least_to_largest, range_items(n), n, ends, totals, array, device=device, n=n, worker=worker)
    assert (ends[0], ends[1]) == ((2 * values).min(initial=100), (2 * values).max(initial=100))
    assert totals[0] == 2 * values.sum()
    array = atos.asarray(values, device=device)
    listed = atos.zeros(n + 1, dtype=np.int64, device=device)
    run(list_even, range_items(n), n, array, listed, device=device, n=n, worker=worker)
    even = np.flatnonzero(values % 2 == 0)
    np.testing.assert_array_equal(np.sort(listed.to_numpy()[1 : 1 + listed[0]]), even)
    assert listed[0] == len(even)


def term(v, u, x, y):
    return x[u]


def no_term(x, y):
    return x.dtype.type(0)


def store(v, degree, received, x, y):
    y[v] = received
    return degree, received


product = gather(term, store, no_term, count=2)


@st.composite
def matrices(draw: st.DrawFn) -> sp.csr_matrix:
    """Any small directed graph, with loops, parallel edges and vertices without edges."""
    n = draw(st.integers(1, 40))
    vertex = st.integers(0, n - 1)
    edges = np.array(draw(st.lists(st.tuples(vertex, vertex), max_size=120)), np.int64).reshape(-1, 2)
    order = np.argsort(edges[:, 0], kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(edges[:, 0], minlength=n))])
    return sp.csr_matrix((np.ones(len(edges)), edges[order, 1], indptr), shape=(n, n))


def star(n: int) -> sp.csr_matrix:
    center, leaves = np.zeros(n - 1, int), np.arange(1, n)
    return sp.csr_matrix((np.ones(2 * n - 2), (np.r_[center, leaves], np.r_[leaves, center])), shape=(n, n))


@given(matrices(), st.sampled_from([0, 2, 1 << 62]), st.sampled_from([1, 3, 64]), st.sampled_from(["thread", "warp", "cta"]))
@settings(deadline=None, max_examples=100)
def test_gathering_is_a_product(matrix, thread_max_degree, size, worker):
    check_product(matrix, thread_max_degree, size, worker, atos.device("cpu"))


@pytest.mark.parametrize("thread_max_degree", [0, 16, 1 << 62])
def test_gathering_over_hubs(device, worker, thread_max_degree):
    check_product(star(3000), thread_max_degree, 128, worker, device)


def check_product(matrix: sp.csr_matrix, thread_max_degree: int, size: int, worker: str, device: atos.Device) -> None:
    n = matrix.shape[0]
    x = np.arange(1.0, n + 1)
    y, totals = atos.zeros(n, dtype=np.float64, device=device), atos.zeros(2, dtype=np.float64, device=device)
    args = (size, thread_max_degree, *rows(matrix, device), totals, atos.asarray(x, device=device, readonly=True), y)
    run(product, range_items(n, size), *args, device=device, n=n, worker=worker)
    np.testing.assert_allclose(y.to_numpy(), matrix @ x)
    np.testing.assert_allclose(totals.to_numpy(), [matrix.nnz, (matrix @ x).sum()])


def test_terms_of_32_bits_are_summed_in_64(device, worker):
    n = 3000
    y, totals = atos.zeros(n, dtype=np.float64, device=device), atos.zeros(2, dtype=np.float64, device=device)
    x = np.full(n, 1 / 3, np.float32)
    args = (128, 16, *rows(star(n), device), totals, atos.asarray(x, device=device, readonly=True), y)
    run(product, range_items(n, 128), *args, device=device, n=n, worker=worker)
    assert y[0] == pytest.approx((n - 1) * float(x[0]), rel=1e-13)


def is_source(v, degree, state, sums):
    return state[v] == 1


def has_value(v, degree, state, sums):
    return state[v] == 1, v + 1


def add_value(worker, v, u, value, state, sums):
    atos.atomic_add(sums, u, value)


def add_value_of_edge(worker, v, u, edge, value, state, sums):
    atos.atomic_add(sums, u, value + 1_000_000 * edge)


spread, spread_inline = push(is_source, has_value, add_value), push(is_source, has_value, add_value, low_degree_inline=True)
spread_by_edge = push(is_source, has_value, add_value_of_edge, with_edge=True)
spread_by_edge_inline = push(is_source, has_value, add_value_of_edge, low_degree_inline=True, with_edge=True)


@given(
    matrices(), st.integers(0, 2**32 - 1), st.sampled_from([None, 0, 2, 1 << 62]), st.sampled_from(["thread", "warp", "cta"])
)
@settings(deadline=None, max_examples=100)
def test_pushing_is_a_product_with_the_transpose(matrix, seed, thread_max_degree, worker):
    check_push(matrix, seed, thread_max_degree, worker, atos.device("cpu"))


@pytest.mark.parametrize("thread_max_degree", [None, 0, 16])
def test_pushing_along_the_edges_of_hubs(device, worker, thread_max_degree):
    check_push(star(20_000), 1, thread_max_degree, worker, device)


def check_push(matrix: sp.csr_matrix, seed: int, thread_max_degree: int | None, worker: str, device: atos.Device) -> None:
    n = matrix.shape[0]
    state = (np.random.default_rng(seed).random(n) < 0.5).astype(np.int32)
    sums = atos.zeros(n, dtype=np.int64, device=device)
    array = atos.asarray(state, device=device)
    extra = [] if thread_max_degree is None else [thread_max_degree]
    task = spread if thread_max_degree is None else spread_inline
    for items in (mixed_ranges(n), np.flatnonzero(state)):  # a dense frontier, and a list
        run(task, items, *rows(matrix, device), *extra, array, sums, device=device, n=n, worker=worker)
    np.testing.assert_array_equal(sums.to_numpy(), 2 * (matrix.T @ (state * np.arange(1, n + 1))).astype(np.int64))


def test_pushing_tells_the_number_of_an_edge(device, worker):
    matrix, sums = star(300), [atos.zeros(300, dtype=np.int64, device=device) for _ in range(2)]
    state = atos.asarray(np.ones(300, np.int32), device=device)
    run(spread_by_edge, mixed_ranges(300), *rows(matrix, device), state, sums[0], device=device, n=300, worker=worker)
    run(spread_by_edge_inline, mixed_ranges(300), *rows(matrix, device), 5, state, sums[1], device=device, n=300, worker=worker)
    expected = np.zeros(300, np.int64)
    tails = np.repeat(np.arange(300), np.diff(matrix.indptr))
    np.add.at(expected, matrix.indices, tails + 1 + 1_000_000 * np.arange(matrix.nnz))
    for found in sums:
        np.testing.assert_array_equal(found.to_numpy(), expected)


def test_items_of_many_vertices_have_64_bits():
    assert mixed_item_dtype(2**31) == np.uint32
    assert mixed_item_dtype(2**32 - 1) == np.int64
    assert not mixed_ranges(0)
    assert mixed_ranges(VERTICES_PER_MIXED_RANGE + 1) == range(VERTICES_PER_MIXED_RANGE + 1, VERTICES_PER_MIXED_RANGE + 3)


def test_a_root_is_found_without_a_write(device):
    """Labels may replace parents at the same time, and a write of path halving would undo them."""

    @atos.task
    def look(worker, v, parent, found):
        if worker.rank == 0:
            found[v] = root_of(v, parent)

    parent = atos.asarray([0, 0, 1, 2, 3, 5, 5], dtype=np.uint32, device=device)
    found = atos.zeros(7, dtype=np.uint32, device=device)
    queue = atos.Queue(10, device=device)
    queue.push(np.arange(7))
    queue.launch_warp(look, parent, found)
    assert found.to_numpy().tolist() == [0, 0, 0, 0, 0, 5, 5]
    assert parent.to_numpy().tolist() == [0, 0, 1, 2, 3, 5, 5]
