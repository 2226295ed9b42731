"""Arrays of other libraries, in and out: shared and not copied, and results as the kind that came in."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

import atos_py as atos
from atos_py.arrays import dlpack_export as dlpack
from atos_py.arrays.array_library import as_library, library_of
from atos_py.errors import ExportError, InvalidArgumentError, UnsupportedTypeError

CPU = atos.device("cpu")
DTYPES = ["bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "float32", "float64"]


class OnlyDLPack:
    """An array that has nothing but DLPack."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


# DLPack, both ways, with NumPy


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(DTYPES), st_numpy.array_shapes(min_dims=0, min_side=0, max_dims=4))
def test_numpy_takes_over_what_is_on_the_cpu(dtype, shape):
    values = np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)
    array = atos.asarray(values, device=CPU, copy=True)
    view = np.from_dlpack(array)
    assert (view.shape, view.dtype, view.flags.c_contiguous) == (values.shape, values.dtype, True)
    assert np.array_equal(view, values)
    assert not view.size or view.ctypes.data == array.pointer


def test_memory_lives_as_long_as_it_is_used():
    array = atos.full(1000, 7, dtype=np.int32, device=CPU)
    seen = weakref.ref(array)
    view = np.from_dlpack(array)
    del array
    gc.collect()
    assert seen() is not None
    assert view.tolist() == [7] * 1000
    del view
    gc.collect()
    assert seen() is None


@pytest.mark.parametrize("max_version", [None, (0, 8), (1, 0)])
def test_a_capsule_that_nobody_takes_is_let_go(max_version):
    array = atos.zeros(3, device=CPU)
    seen = weakref.ref(array)
    capsule = array.__dlpack__(max_version=max_version)
    assert f'"dltensor{"_versioned" if max_version == (1, 0) else ""}"' in repr(capsule)
    del array
    gc.collect()
    assert seen() is not None
    del capsule
    gc.collect()
    assert seen() is None


def test_letting_go_keeps_an_exception_on_its_way():
    def fail() -> None:
        view, capsule = np.from_dlpack(atos.zeros(3, device=CPU)), atos.zeros(3, device=CPU).__dlpack__()
        raise KeyError(view.size, repr(capsule))

    with pytest.raises(KeyError):
        fail()


class Elsewhere(atos.Array):
    """An array on the CPU that says that it is on a GPU."""

    def __dlpack__(self, **options: Any) -> Any:
        self.device = atos.Device("cuda", 1)
        try:
            return dlpack.export(self, stream=None, max_version=(1, 0), dl_device=None, copy=None, copied_to=atos.asarray)
        finally:
            self.device = CPU


def test_numpy_says_that_it_cannot_reach_a_gpu():
    array = Elsewhere(0, (3,), np.dtype(np.int32), CPU, readonly=False, owner=None)
    with pytest.raises((BufferError, RuntimeError), match="device"):  # and no other error comes from the capsule's end
        np.from_dlpack(array)


def test_readonly_arrays_stay_so():
    array = atos.asarray(np.arange(3), device=CPU, readonly=True)
    with pytest.raises(ExportError, match=r"DLPack 1\.0") as error:
        array.__dlpack__()
    assert isinstance(error.value, BufferError)
    assert repr(array.__dlpack__(copy=True))
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        assert not np.from_dlpack(array).flags.writeable
        copied = np.from_dlpack(array, copy=True)
        assert copied.tolist() == [0, 1, 2]
        assert not np.shares_memory(copied, np.asarray(array))


def test_what_an_export_refuses():
    array = atos.zeros(3, device=CPU)
    assert array.__dlpack_device__() == (1, 0)
    for stream in (1, -1, 0):
        with pytest.raises(InvalidArgumentError, match="stream must be None for an array on the CPU"):
            array.__dlpack__(stream=stream)
    with pytest.raises(ExportError, match=r"on cpu cannot be exported to device \(2, 0\)"):
        array.__dlpack__(dl_device=(2, 0))
    assert repr(array.__dlpack__(dl_device=(1, 0), copy=False))


def structure(capsule: Any) -> list[int]:
    """Return the first words of the structure in an unversioned capsule."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return list((ctypes.c_int32 * 10).from_address(pointer(capsule, b"dltensor")))


def test_a_gpu_is_named_with_its_number():
    array = atos.zeros((2, 3), dtype=np.uint32, device=CPU)
    array.device = atos.Device("cuda", 3)
    capsule = dlpack.export(array, stream=None, max_version=None, dl_device=None, copy=None, copied_to=atos.asarray)
    array.device = CPU
    device_type, device_id, ndim, kind = structure(capsule)[2:6]
    assert (device_type, device_id, ndim) == (2, 3, 2)
    assert (kind & 0xFF, kind >> 8 & 0xFF, kind >> 16) == (1, 32, 1)  # one unsigned integer of 32 bits


def test_from_arrays_that_have_only_dlpack():
    values = np.arange(6).reshape(2, 3)
    array = atos.asarray(OnlyDLPack(values), device=CPU)
    array[0, 0] = 9
    assert values[0, 0] == 9
    assert array.library is None


# Libraries


@pytest.fixture(params=["torch", "jax"])
def library(request):
    """A library, a function that makes an array of it from a NumPy array, and its type of array."""
    module = pytest.importorskip(request.param)
    if request.param == "torch":
        return module, module.from_numpy, module.Tensor
    return module, module.numpy.asarray, module.Array


def test_their_arrays_come_in_and_ours_go_out(library):
    module, make, kind = library
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    array = atos.asarray(make(values), device=CPU)
    assert array.library == module.__name__ == library_of(make(values))
    assert array.to_numpy().tolist() == values.tolist()
    back = as_library(atos.asarray(values, device=CPU), array.library)
    assert isinstance(back, kind)
    assert np.asarray(back).tolist() == values.tolist()
    assert array.readonly == (module.__name__ == "jax")  # whose arrays never change


def test_nothing_is_copied(library):
    module, make, _ = library
    theirs = make(np.arange(1 << 16, dtype=np.int32))
    array = atos.asarray(theirs, device=CPU)
    assert array.pointer == np.asarray(theirs).ctypes.data
    ours = atos.full(1 << 16, 3, dtype=np.int32, device=CPU)
    assert np.asarray(as_library(ours, module.__name__)).ctypes.data == ours.pointer


EDGES = np.array([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])


def test_results_are_of_the_kind_that_came_in(library):
    module, make, kind = library
    graphs = [
        atos.Graph.from_edge_index(make(EDGES), device=CPU),
        atos.Graph.from_edges(*map(make, EDGES), device=CPU),
        atos.Graph.from_csr(make(np.arange(0, 9, 2)), make(np.array([1, 3, 2, 0, 3, 1, 0, 2])), device=CPU),
    ]
    graphs += [graphs[0].simplify(sort=True), graphs[0].to(CPU)]
    for graph in graphs:
        assert graph.library == module.__name__
        found = atos.bfs(graph, make(np.array([0])), parents=True)
        assert isinstance(found.depth, kind)
        assert isinstance(found.parent, kind)
        assert np.asarray(found.depth).tolist() == [0, 1, 2, 1]
        assert found.num_reached == 4
        atos.verify_bfs(graph, 0, found.depth, found.parent)
        ranks = atos.pagerank(graph, personalization=make(np.ones(4, np.float32)))
        assert isinstance(ranks.rank, kind)
        assert atos.verify_pagerank(graph, ranks) < 1e-4
        again = atos.pagerank(graph, start=ranks.rank)
        np.testing.assert_allclose(np.asarray(again.rank), 0.25, atol=1e-4)
        colored = atos.color(graph)
        assert isinstance(colored.colors, kind)
        atos.verify_coloring(graph, colored.colors)


def test_a_graph_of_numpy_gives_atos_arrays():
    graph = atos.Graph.from_edge_index(EDGES, device=CPU)
    assert graph.library is None
    assert isinstance(atos.bfs(graph, 0).depth, atos.Array)


@pytest.mark.parametrize("wrong", [np.zeros((3, 4), int), np.zeros(4, int), [[[0], [1]]], 5])
def test_an_edge_index_has_two_rows(wrong):
    with pytest.raises(InvalidArgumentError, match="two rows"):
        atos.Graph.from_edge_index(wrong)


def test_edge_index_with_weights():
    graph = atos.Graph.from_edge_index([[0, 1], [1, 2]], [0.5, 1.5], 5, symmetrize=True, device=CPU)
    assert (graph.num_vertices, graph.num_edges) == (5, 4)
    assert graph.weights.to_numpy().tolist() == [0.5, 0.5, 1.5, 1.5]


@atos.task
def increase(worker, v, values):
    values[v] += 1


def test_tasks_write_into_tensors():
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(8, dtype=torch.int64)
    queue = atos.Queue(8, device=CPU)
    queue.push(range(8))
    queue.launch_thread(increase, tensor)
    assert tensor.tolist() == [1] * 8


def test_what_pytorch_has_of_its_own():
    torch = pytest.importorskip("torch")
    learned = torch.ones(3, requires_grad=True)
    assert atos.asarray(learned, device=CPU).to_numpy().tolist() == [1, 1, 1]
    with pytest.raises(UnsupportedTypeError, match="torch cannot become one of NumPy"):
        atos.asarray(torch.ones(3, dtype=torch.bfloat16), device=CPU)
    graph = atos.Graph.from_csr(torch.tensor([0, 1, 1]), torch.tensor([1]), learned[:1], device=CPU)
    unreached = atos.bfs(graph, 1).depth
    assert unreached.view(torch.int32).tolist() == [-1, 0]  # as the guide says


def test_libraries_are_not_imported():
    code = "import sys, atos_py; print([name for name in ('torch', 'jax', 'cupy', 'networkx') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "[]\n"
