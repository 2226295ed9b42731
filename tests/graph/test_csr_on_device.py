"""A CSR that is checked where it is gives what the check on the host gives, and shares its memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import atos_py as atos
from atos_py.errors import AtosError
from atos_py.graph.csr import check_csr
from atos_py.graph.device_validation import csr_on_device

SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))

offsets = st.lists(st.integers(-1, 6), max_size=6)
ids = st.lists(st.integers(-1, 5), max_size=6)
weights = st.none() | st.lists(st.sampled_from([0.0, 1.5, float("nan"), float("inf")]), max_size=6)


@SETTINGS
@given(offsets, ids, weights, st.sampled_from(["int32", "int64"]), st.sampled_from(["int32", "int64"]))
def test_as_on_the_host(device, indptr, indices, values, kind, id_kind):
    given = [np.array(indptr, kind), np.array(indices, id_kind), None if values is None else np.array(values)]
    try:
        expected, message = check_csr(*given), None
    except AtosError as error:
        expected, message = None, str(error)
    if expected is None:
        with pytest.raises(AtosError) as found:
            csr_on_device(*given, device)
        assert str(found.value) == message
        return
    found = csr_on_device(*given, device)
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours is None) == (theirs is None)
        assert ours is None or np.asarray(ours).tolist() == theirs.tolist()


@pytest.mark.parametrize("id_kind", ["int32", "uint32"])
@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_memory_is_shared(device, kind, id_kind):
    n = 200_000  # so that there are several items
    indptr, indices = np.arange(n + 1, dtype=kind), np.roll(np.arange(n, dtype=id_kind), 1)
    given = [atos.asarray(part, device=device) for part in (indptr, indices, np.ones(n))]
    found = csr_on_device(*given, device)
    assert [part.pointer for part in found] == [part.pointer for part in given]
    assert [part.dtype for part in found] == [np.dtype(kind), np.dtype(np.uint32), np.dtype(np.float64)]
    assert all(part.readonly for part in found)
    given[1][n - 1] = n
    with pytest.raises(AtosError, match=rf"indices\[{n - 1}\] is {n}"):
        csr_on_device(*given, device)


@pytest.fixture
def cupy():
    """CuPy, or none of these tests."""
    return pytest.importorskip("cupy")


@pytest.mark.gpu
def test_a_graph_of_cupy(cupy):
    indptr, indices = cupy.asarray([0, 2, 4, 6], dtype=cupy.int32), cupy.asarray([1, 2, 0, 2, 0, 1], dtype=cupy.int32)
    graph = atos.Graph.from_csr(indptr, indices, cupy.ones(6))
    assert (graph.library, graph.device) == ("cupy", atos.device("cuda"))
    assert (graph.indptr.pointer, graph.indices.pointer) == (indptr.data.ptr, indices.data.ptr)
    found = atos.bfs(graph, cupy.asarray([1]), parents=True)
    assert isinstance(found.depth, cupy.ndarray)
    assert found.depth.get().tolist() == [1, 0, 1]
    assert found.parent.get().tolist() == [1, 1, 1]
    assert found.num_reached == 3
    atos.verify_bfs(graph, 1, found.depth, found.parent)
    ranks = atos.pagerank(graph, personalization=cupy.ones(3), start=cupy.ones(3))
    assert isinstance(ranks.rank, cupy.ndarray)
    atos.verify_pagerank(graph, ranks)
    colored = atos.color(graph)
    assert isinstance(colored.colors, cupy.ndarray)
    atos.verify_coloring(graph, colored.colors)
    assert isinstance(atos.bfs(graph.to("cpu"), 0).depth, atos.Array)
    edges = cupy.asarray([[0, 1, 2], [1, 2, 0]])
    assert isinstance(atos.bfs(atos.Graph.from_edge_index(edges), 0).depth, cupy.ndarray)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_sparse_matrices_of_cupy(cupy, kind):
    sparse = pytest.importorskip("cupyx.scipy.sparse")
    dense = np.random.default_rng(0).integers(0, 3, (24, 24)).astype(np.float32)
    matrix = sparse.csr_matrix(cupy.asarray(dense)).asformat(kind)
    graph = atos.Graph.from_scipy(matrix)
    assert (graph.library, graph.device) == ("cupy", atos.device("cuda"))
    np.testing.assert_array_equal(graph.to_scipy().toarray(), dense)
    assert kind != "csr" or graph.indices.pointer == matrix.indices.data.ptr
    assert atos.Graph.from_scipy(matrix, weights=np.int32).weights.dtype == np.int32
    assert atos.Graph.from_scipy(matrix, weights=False, device="cpu").weights is None


@pytest.mark.gpu
def test_device_arrays_of_numba():
    cuda = pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
    indptr, indices = cuda.to_device(np.array([0, 1, 2])), cuda.to_device(np.array([1, 0]))
    graph = atos.Graph.from_csr(indptr, indices)
    assert graph.device == atos.device("cuda")
    depth = atos.bfs(graph, 0).depth
    assert isinstance(depth, atos.Array)
    assert cuda.as_cuda_array(depth).copy_to_host().tolist() == [0, 1]


@pytest.mark.gpu
def test_dlpack_out_of_a_gpu(cupy):
    array = atos.asarray(np.arange(6, dtype=np.int32).reshape(2, 3), device="cuda")
    view = cupy.from_dlpack(array)
    assert (view.data.ptr, view.shape) == (array.pointer, (2, 3))
    view += 1
    cupy.cuda.get_current_stream().synchronize()
    assert array.to_numpy().tolist() == [[1, 2, 3], [4, 5, 6]]
    del array
    assert view.get().tolist() == [[1, 2, 3], [4, 5, 6]]  # it keeps the memory
    there = atos.full(3, 5, device="cuda")
    assert there.__dlpack_device__() == (2, 0)
    for stream in (None, -1, 1, 2):
        assert "dltensor" in repr(there.__dlpack__(stream=stream))
    with pytest.raises(AtosError, match="stream must be None, -1, 1, 2"):
        there.__dlpack__(stream=0)
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        assert np.from_dlpack(there, device="cpu").tolist() == [5] * 3  # a copy
