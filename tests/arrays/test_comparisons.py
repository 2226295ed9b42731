"""Comparisons of arrays, `in` and truth are those of NumPy; what the package remembers of an array goes by identity."""

from __future__ import annotations

import gc
import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import atos_py as atos
from atos_py.errors import InvalidArgumentError, UnsupportedTypeError
from atos_py.support.remembered import Remembered

COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
DTYPES = ["?", "i1", "u1", "i4", "u4", "i8", "u8", "f4", "f8"]
EDGES = [0, 1, -1, 127, 255, 2**31 - 1, 2**32 - 1, 2**53 + 1, 2**63 - 1, -(2**63), 2**64 - 1, 2**70, 0.5, float("nan"), True]


def values_of(dtype: str) -> np.ndarray[Any, Any]:
    kind = np.dtype(dtype)
    if kind.kind in "fb":
        return np.array([0, 1, -1, 0.5, np.nan] if kind.kind == "f" else [0, 1], kind)
    limits = np.iinfo(kind)
    return np.array(sorted({limits.min, 0, 1, limits.max}), kind)


def is_that_of_numpy(compare: Any, one: Any, other: Any, expected: Any) -> None:
    found = compare(one, other)
    assert isinstance(found, (np.ndarray, np.bool_))
    assert found.dtype == np.bool_
    assert np.array_equal(found, np.asarray(expected, bool))


@pytest.mark.parametrize("compare", COMPARISONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_comparisons_with_numbers(device, dtype, compare):
    """Python's and NumPy's, on either side: also those that the dtype cannot hold."""
    values = values_of(dtype)
    array = atos.asarray(values, device=device)
    for number in [*EDGES, np.uint32(1), np.float64(0.5), np.uint64(2**64 - 1), np.int64(-1)]:
        beside = values.astype(object) if dtype == "?" and type(number) is int else values  # as NumPy cannot
        is_that_of_numpy(compare, array, number, compare(beside, number))
        is_that_of_numpy(compare, number, array, compare(number, beside))


@pytest.mark.parametrize("compare", COMPARISONS)
def test_comparisons_with_arrays(device, compare):
    """Arrays of this package, of NumPy and lists, of other dtypes and shapes, on either side."""
    one = np.arange(6, dtype=np.uint32).reshape(2, 3)
    for other in (one[::-1].astype(np.int64), np.array([1, 2, 9], np.float32), np.array([[4], [2]]), np.array(3), one[:0]):
        if other.size == 0 and compare(np.zeros(1), np.zeros(0)).size:
            continue
        array, given = atos.asarray(one, device=device), atos.asarray(other, device=device)
        try:
            expected = compare(one, other)
        except ValueError:
            with pytest.raises(InvalidArgumentError, match=r"shapes \(2, 3\) and \(0, 3\) cannot be compared"):
                compare(array, given)
            continue
        for left, right in ((array, given), (array, other), (one, given), (array, other.tolist()), (one.tolist(), given)):
            is_that_of_numpy(compare, left, right, expected)
    readonly = atos.asarray(one, device=device, readonly=True)
    is_that_of_numpy(compare, readonly, atos.asarray(one, device="cpu"), compare(one, one))


@given(st.lists(st.integers(0, 3)), st.lists(st.integers(0, 3)))
@settings(deadline=None)
def test_any_two_arrays(one, other):
    given = [np.array(each, np.int32) for each in (one, other)]
    arrays = [atos.asarray(each, device="cpu") for each in given]
    for compare in COMPARISONS:
        try:
            expected = compare(*given)
        except ValueError:
            with pytest.raises(InvalidArgumentError, match="element by element"):
                compare(*arrays)
        else:
            is_that_of_numpy(compare, *arrays, expected)


def test_comparisons_with_what_is_no_number(device):
    array = atos.asarray([1, 2], device=device)
    for other in (None, "1", {}, object()):
        assert (array == other).tolist() == [False, False]
        assert (array != other).tolist() == [True, True]
        with pytest.raises(UnsupportedTypeError, match="elements of int64 cannot be compared with"):
            operator.lt(array, other)
    with pytest.raises(UnsupportedTypeError, match="class int is no array"):
        operator.eq(array, int)
    with pytest.raises(UnsupportedTypeError, match="what is compared cannot be made an array"):
        operator.eq(array, [[1], [1, 2]])
    masked = np.ma.array([1, 2], mask=[False, True])
    assert (array == masked).mask.tolist() == [False, True]


def test_other_libraries(device):
    torch = pytest.importorskip("torch")
    array = atos.asarray([1, 2, 3], device=device)
    for other in (torch.tensor([1, 0, 3]), torch.tensor([1.0, 0.0, 3.0], requires_grad=True)):
        assert np.asarray(array == other).tolist() == [True, False, True]
        assert np.asarray(other == array).tolist() == [True, False, True]


@pytest.mark.parametrize("options", [{}, {"placement": "mirrored"}, {"placement": "owned"}, {"combine": "min"}])
def test_arrays_over_several_devices(options):
    """In the order of ids, as they are read."""
    parts = atos.generate.road(3, 1.0, device="cpu").partition(["cpu:0", "cpu:1"], order="random")
    array = atos.full(9, 7, partition=parts, **options)
    array[4] = 1
    assert np.flatnonzero(array == 1).tolist() == np.flatnonzero(array < 7).tolist() == [4]
    assert (array == array).all()
    assert (np.full(9, 7) != array).tolist() == [False] * 4 + [True] + [False] * 4
    assert 1 in array
    assert list(array) == array.to_numpy().tolist()
    for call in (bool, hash):
        with pytest.raises(TypeError if call is hash else InvalidArgumentError):
            call(array)


def test_arrays_over_several_hosts_say_what_to_write(monkeypatch):
    with atos.distributed.init(engine="mpi"):
        array = atos.full(4, 7, partition=atos.generate.road(2, 1.0, device="cpu").partition())
        array[1] = 1
        assert (array == 7).tolist() == [True, False, True, True]
        assert np.asarray(array, np.float32).tolist() == [7, 1, 7, 7]
        monkeypatch.setattr(array.places.hosts, "world_size", 2)
        calls = [bool, list, np.asarray, lambda each: each == 7, lambda each: np.uint32(7) == each, lambda each: 7 in each]
        for call in calls:
            with pytest.raises(UnsupportedTypeError, match=r"to_numpy\(\), which all hosts call"):
                call(array)


def test_a_pool_says_what_to_compare():
    pool = atos.Pool([("x", np.int32), ("y", np.int32)], 4, max_capacity=4, device="cpu")
    pool.append(x=[1, 2], y=[3, 4])
    for other in (1, 1.5, np.int32(1), np.zeros(2), [1, 2], pool.x):
        for compare in (operator.eq, operator.ne):
            with pytest.raises(UnsupportedTypeError, match=r"compare a field, as in pool\.x =="):
                compare(pool, other)
    with pytest.raises(UnsupportedTypeError, match="compare a field"):
        operator.eq(np.int32(1), pool)
    assert (pool.x == 1).tolist() == [True, False]
    assert pool == pool
    assert pool != atos.Pool(np.int32, 4, max_capacity=4, device="cpu")
    assert pool != None  # noqa: E711 - what is meant to work
    assert pool in {pool}


def test_truth_is_that_of_numpy(device):
    for value in (0, 1, 0.5):
        assert bool(atos.asarray(value, device=device)) == bool(atos.asarray([value], device=device)) == bool(value)
    for values in ([], [0, 0], [1, 1]):
        with pytest.raises(InvalidArgumentError, match=r"of \d elements is neither true nor false: write \(array != 0\)\.any"):
            bool(atos.asarray(np.array(values), device=device))


def test_membership(device):
    array = atos.asarray(np.arange(6).reshape(2, 3), device=device)
    assert 5 in array
    assert 6 not in array
    assert [3, 4, 5] in array


def test_an_array_is_no_key(device):
    with pytest.raises(TypeError, match="unhashable"):
        hash(atos.zeros(3, device=device))


def test_graphs_are_equal_if_their_arrays_are_the_same(device):
    """A graph is a tuple of arrays, whose own `==` would ask for the truth of arrays."""
    graph, other = (atos.Graph.from_edges([0], [1], device=device) for _ in range(2))
    again = atos.Graph(*graph)
    assert graph == graph
    assert graph == again
    assert graph != other
    assert graph != (1, 2, 3)
    assert len({graph, again, other}) == 2
    assert {graph: 1}[again] == 1
    parts, others = (graph.partition([str(device)]) for _ in range(2))
    assert parts == parts
    assert parts != others
    assert len({parts, others}) == 2


def test_results_are_equal_if_they_are_the_same():
    graph = atos.Graph.from_edges([0], [1], device="cpu")
    one, other = atos.bfs(graph, 0), atos.bfs(graph, 0)
    assert one == one
    assert one != other
    assert len({one, other}) == 2


def test_what_is_derived_from_a_graph_is_that_of_these_arrays(device):
    """And not of others that are equal, nor of those that had the same place in memory."""
    graph, other = (atos.Graph.from_edges([0, 1], [1, 2], [5, 6], device=device) for _ in range(2))
    assert graph.transpose() is graph.transpose()
    assert graph.transpose() is not other.transpose()
    assert graph.transpose() is not graph._replace(weights=None).transpose()
    assert not graph.is_symmetric()
    for count in range(3, 6):  # in whose place the next one may be
        ring = np.arange(count)
        assert atos.Graph.from_edges(ring, (ring + 1) % count, symmetrize=True, device=device).is_symmetric()


def test_remembered_goes_by_identity():
    class Thing:
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> Any:
            raise AssertionError

    known: Remembered[int] = Remembered()
    one, other = Thing(), Thing()
    assert known.get(one) is None
    assert known.set(one, 1) == 1
    assert known.set(one, 2) == 2
    known.set(other, 3)
    assert (known.get(one), known.get(other), len(known)) == (2, 3, 2)
    del one
    gc.collect()
    assert (known.get(other), len(known)) == (3, 1)
