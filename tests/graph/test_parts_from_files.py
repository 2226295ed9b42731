"""Graphs that are read or generated in parts: the same as those of the whole graph, without a copy of it on the way."""

from __future__ import annotations

import gzip
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import atos_py as atos
from atos_py.errors import (
    DeviceNotFoundError,
    GraphFormatError,
    InvalidArgumentError,
    MissingFileError,
    UnsupportedTypeError,
)

pytestmark = pytest.mark.filterwarnings("ignore:the edges of")  # name few of the vertices

DEVICES = {"one": ["cpu"], "two": ["cpu:0", "cpu:1"], "three": [atos.Device("cpu", 2), "cpu:0", "cpu:5"]}
ORDERS = ["keep", "random"]
every_partition = pytest.mark.parametrize(
    ("devices", "order"), [(devices, order) for devices in DEVICES.values() for order in ORDERS], ids=str
)


def assert_same(parts: atos.Partition, expected: atos.Partition) -> None:
    assert isinstance(parts, atos.Partition)
    assert parts.devices == expected.devices
    for found, wanted in zip(parts, expected, strict=True):
        assert (found is None) == (wanted is None)
        if found is not None:
            assert (found.dtype, found.readonly, found.device) == (wanted.dtype, wanted.readonly, wanted.device)
            assert np.array_equal(found.to_numpy(), wanted.to_numpy())
    for name in ("size", "chunk", "borders"):
        assert getattr(parts.ownership, name) == getattr(expected.ownership, name)
    for name in ("ids", "numbers"):
        found, wanted = getattr(parts.ownership, name), getattr(expected.ownership, name)
        assert found is wanted is None or np.array_equal(found, wanted)


FILES = {
    "a.txt": b"0 1\n2 1\n2 1\n5 5\n0 4\n0 3\n1 0\n",
    "a.wel": b"0 1 5\n2 1 7\n2 1 3\n5 5 1\n0 4 2\n0 3 9\n1 0 5\n",
    "a.gr": b"p sp 6 5\na 1 2 3\na 1 2 1\na 6 1 70000000000\na 3 4 1\na 2 1 4\n",
    "a.mtx": b"%%MatrixMarket matrix coordinate real symmetric\n4 4 4\n1 1 0.5\n3 1 1.5\n4 3 2\n3 2 1\n",
    "empty.mtx": b"%%MatrixMarket matrix coordinate pattern general\n3 3 0\n",
}
CHANGES = [
    {},
    {"symmetrize": True},
    {"deduplicate": True, "remove_loops": True},
    {"sort": True, "weights": False},
    {"symmetrize": True, "deduplicate": True},
    {"weights": np.float32},
]


@every_partition
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_files(tmp_path, name, changes, devices, order):
    path = tmp_path / name
    path.write_bytes(FILES[name])
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(FILES[name]))
    expected = atos.Graph.load(path, device="cpu", **changes).partition(devices, order)
    assert_same(atos.Graph.load(path, devices=devices, order=order, **changes), expected)
    assert_same(atos.Graph.load(f"{path}.gz", devices=tuple(devices), order=order, **changes), expected)


@every_partition
@pytest.mark.parametrize("changes", CHANGES, ids=str)
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_archives(tmp_path, changes, weighted, devices, order):
    graph = atos.generate.uniform(50, 300, 1, device="cpu")
    if weighted:
        graph = graph.with_weights(np.random.default_rng(0).integers(0, 9, graph.num_edges))
    graph.save(tmp_path / "a.npz")
    expected = atos.Graph.load(tmp_path / "a.npz", device="cpu", **changes).partition(devices, order)
    assert_same(atos.Graph.load(tmp_path / "a.npz", devices=devices, order=order, **changes), expected)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), n=st.integers(1, 40), m=st.integers(1, 200), options=st.tuples(*[st.booleans()] * 4))
def test_any_edges(tmp_path_factory, seed, n, m, options):
    """Parallel edges of other weights and loops, in each order of the neighbors that the options give."""
    rng = np.random.default_rng(seed)
    path = tmp_path_factory.mktemp("edges") / "a.wel"
    np.savetxt(path, np.column_stack([rng.integers(0, n, (m, 2)), rng.integers(0, 5, m)]), fmt="%d")
    changes = dict(zip(("symmetrize", "deduplicate", "remove_loops", "sort"), options, strict=True))
    devices, order = [f"cpu:{i}" for i in range(rng.integers(1, 5))], ORDERS[seed % 2]
    whole = atos.Graph.load(path, device="cpu", **changes)
    assert_same(atos.Graph.load(path, devices=devices, order=order, **changes), whole.partition(devices, order))


@every_partition
@pytest.mark.parametrize("scale", [0, 1, 9])
def test_rmat(scale, devices, order):
    expected = atos.generate.rmat(scale, 8, 3, a=0.5, device="cpu").partition(devices, order)
    assert_same(atos.generate.rmat(scale, 8, 3, a=0.5, devices=devices, order=order), expected)


@pytest.mark.parametrize("order", ORDERS)
def test_a_search_of_what_was_generated_in_parts(order):
    parts = atos.generate.rmat(10, devices=DEVICES["three"], order=order)
    atos.verify_bfs(atos.generate.rmat(10, device="cpu"), 3, atos.bfs(parts, 3).depth.to_numpy())


def test_a_random_order_takes_no_memory_for_the_whole_graph_beside_the_parts():
    """Less than a partition of the whole graph by itself, beside which that graph lies."""
    atos.generate.rmat(6, devices=DEVICES["two"], order="random")  # what is compiled and imported once

    def peak(make):
        tracemalloc.start()
        parts = make()
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most / sum(part.nbytes for part in parts if part is not None)

    at_once = peak(lambda: atos.generate.rmat(17, devices=DEVICES["two"], order="random"))
    afterwards = peak(lambda: atos.generate.rmat(17, device="cpu").partition(DEVICES["two"], "random"))
    assert at_once < 0.8 * afterwards


THREE = ["cpu:0", "cpu:1", "cpu:2"]
REFUSED = [
    ({"devices": "cpu"}, UnsupportedTypeError, "must be a list of devices"),
    ({"devices": 5}, UnsupportedTypeError, "must be a list of devices"),
    ({"devices": [None]}, UnsupportedTypeError, "must be a list of devices"),
    ({"devices": []}, InvalidArgumentError, "one device at least"),
    ({"devices": ["cpu", atos.Device("cuda", 0)]}, InvalidArgumentError, r"all GPUs or all CPU devices \(got cpu, cuda:0\)"),
    ({"devices": ["cuda:99"]}, DeviceNotFoundError, "there is no device 'cuda:99'"),
    ({"devices": ["cpu", "cpu:0"]}, InvalidArgumentError, r"must differ \(got cpu, cpu:0; 'cpu' is 'cpu:0'\)"),
    ({"devices": THREE, "order": "degree"}, InvalidArgumentError, r"needs all degrees.*partition\(devices, order='degree'\)"),
    ({"devices": THREE, "order": 3}, InvalidArgumentError, r"one of keep, random, degree \(got 3\)"),
    ({"order": "random"}, InvalidArgumentError, r"order= is for parts over several devices=.*got order='random'"),
    ({"device": "cpu", "order": "random"}, InvalidArgumentError, "order= is for parts over several devices="),
    ({"device": "cpu", "devices": ["cpu"]}, InvalidArgumentError, r"give one device= or several.*got 'cpu' and \['cpu'\]"),
]


@pytest.mark.parametrize(("options", "error", "message"), REFUSED, ids=str)
def test_what_is_refused(options, error, message):
    """Before anything is read or generated: there is no such file."""
    with pytest.raises(error, match=message):
        atos.Graph.load("/nowhere.gr", **options)
    with pytest.raises(error, match=message):
        atos.generate.rmat(31, 2**20, **options)


def test_wrong_files_and_numbers(tmp_path):
    (tmp_path / "a.txt").write_text("0 x\n")
    with pytest.raises(GraphFormatError, match="line 1"):
        atos.Graph.load(tmp_path / "a.txt", devices=THREE, order="random")
    with pytest.raises(MissingFileError):
        atos.Graph.load(tmp_path / "b.txt", devices=THREE)
    with pytest.raises(InvalidArgumentError, match="scale must be from 0 to 31"):
        atos.generate.rmat(32, devices=THREE)
