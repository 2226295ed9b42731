"""Parts of graphs: the same edges under other numbers, a range of vertices for each device, and arrays in the user's ids."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import atos_py as atos
from atos_py.errors import DeviceNotFoundError, InvalidArgumentError, UnsupportedTypeError

THREE = ["cpu:0", "cpu:1", "cpu:2"]


def edges_of(rows, ids):
    """Every edge of a CSR as source, target and weight, with these ids of its vertices."""
    indptr, indices = rows.indptr.to_numpy(), rows.indices.to_numpy()
    sources = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    weights = np.zeros(len(indices)) if rows.weights is None else rows.weights.to_numpy()
    return sorted(zip(ids[sources].tolist(), ids[indices].tolist(), weights.tolist(), strict=True))


@pytest.mark.parametrize("order", ["keep", "random"])
@pytest.mark.parametrize("weighted", [False, True])
def test_parts_have_the_edges_of_the_graph(order, weighted):
    graph = atos.generate.rmat(7, 4, 1, device="cpu")
    if weighted:
        graph = graph.with_weights(np.arange(graph.num_edges, dtype=np.int32))
    parts = graph.partition(THREE, order=order)
    original = parts.original.to_numpy()
    assert sorted(original) == list(range(128))
    assert (original.tolist() == list(range(128))) == (order == "keep")
    assert edges_of(parts, original) == edges_of(graph, np.arange(128))
    assert (parts.num_vertices, parts.num_edges) == (128, graph.num_edges)
    assert [str(device) for device in parts.devices] == ["cpu", "cpu:1", "cpu:2"]


def test_each_device_owns_a_range():
    parts = atos.generate.road(10, 1.0, device="cpu").partition(THREE)
    assert parts.ownership.chunk == 34
    assert atos.Graph.from_edges([], [], num_vertices=0, device="cpu").partition(THREE).ownership.chunk == 1


def test_a_random_order_is_the_same_for_a_seed():
    graph = atos.generate.road(10, 1.0, device="cpu")
    first, again, other = (graph.partition(THREE, "random", seed=seed).original.to_numpy() for seed in (1, 1, 2))
    assert first.tolist() == again.tolist() != other.tolist()


@pytest.mark.parametrize(
    ("devices", "options", "error", "message"),
    [
        ("cpu", {}, UnsupportedTypeError, "must be a list of devices"),
        (5, {}, UnsupportedTypeError, "must be a list of devices"),
        ([None], {}, UnsupportedTypeError, "must be a list of devices"),
        ([], {}, InvalidArgumentError, "one device at least"),
        (["cpu", atos.Device("cuda", 0)], {}, InvalidArgumentError, r"all GPUs or all CPU devices \(got cpu, cuda:0\)"),
        (["cuda:99"], {}, DeviceNotFoundError, "there is no device 'cuda:99'"),
        (["cpu", "cpu:0"], {}, InvalidArgumentError, r"must differ \(got cpu, cpu:0; 'cpu' is 'cpu:0'\)"),
        (THREE, {"order": "edges"}, InvalidArgumentError, r"one of keep, random, degree \(got 'edges'\)"),
        (THREE, {"seed": -1}, InvalidArgumentError, "seed must be from 0"),
    ],
)
def test_what_is_no_partition(devices, options, error, message):
    with pytest.raises(error, match=message):
        atos.generate.road(3, 1.0, device="cpu").partition(devices, **options)


@pytest.mark.parametrize("order", ["keep", "random"])
def test_arrays_are_indexed_by_ids(order):
    parts = atos.generate.road(10, 1.0, device="cpu").partition(THREE, order)
    array = atos.full(100, 7, dtype=np.int32, partition=parts)
    expected = np.full(100, 7, np.int32)
    for key, value in (
        (3, 1),
        (-1, 2),
        (np.int64(50), 3),
        (slice(10, 20), 4),
        (slice(20, 23), [5, 6, 8]),
        (slice(95, None), 9),
    ):
        array[key] = value
        expected[key] = value
        assert np.array_equal(array[key], expected[key])
    assert (
        array.to_numpy().tolist() == array[:].tolist() == array[...].tolist() == np.asarray(array).tolist() == expected.tolist()
    )
    assert (array.shape, array.ndim, array.size, array.nbytes, len(array)) == ((100,), 1, 100, 400, 100)
    assert repr(array) == "<atos array shape=(100,) dtype=int32 over cpu, cpu:1, cpu:2>"
    inside = array._elements.to_numpy()
    assert inside.tolist() == expected[parts.original.to_numpy()].tolist()
    array[...] = expected[::-1].copy()
    assert array.to_numpy().tolist() == expected[::-1].tolist()
    array.fill(4)
    assert set(array.to_numpy().tolist()) == {4}
    for wrong in (100, -101, 1.5, "x", None, slice(0, 10, 2)):
        with pytest.raises((InvalidArgumentError, UnsupportedTypeError, IndexError)):
            array[wrong]
    with pytest.raises(InvalidArgumentError, match="do not fit int32"):
        array[3] = 2**40


@pytest.mark.parametrize("order", ["keep", "random"])
def test_arrays_with_rows(order):
    parts = atos.generate.road(3, 1.0, device="cpu").partition(THREE, order)
    array = atos.full((9, 4), 0.0, partition=parts)
    expected = np.zeros((9, 4))
    for key, value in ((2, 1.0), ((8, 3), 2.0), ((4, slice(1, 3)), 3.0), (slice(5, 7), 4.0)):
        array[key] = value
        expected[key] = value
    assert array.to_numpy().tolist() == expected.tolist()
    assert array[8, 3] == 2.0
    assert array[4].tolist() == expected[4].tolist()


def test_arrays_that_cannot_be():
    parts = atos.generate.road(3, 1.0, device="cpu").partition(THREE)
    with pytest.raises(InvalidArgumentError, match=r"each of its 9 vertices \(got shape \(8,\)\)"):
        atos.full(8, 1, partition=parts)
    with pytest.raises(InvalidArgumentError, match="a device or a partition"):
        atos.full(9, 1, partition=parts, device="cpu")
    with pytest.raises(UnsupportedTypeError, match="partition must be what"):
        atos.full(9, 1, partition=[1])
    array = atos.full(9, 1, partition=parts)
    with pytest.raises(InvalidArgumentError, match="without a copy"):
        np.array(array, copy=False) if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else array.__array__(copy=False)
    for call in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(UnsupportedTypeError, match="neither copied nor pickled"):
            call(array)
