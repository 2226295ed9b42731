"""Arrays of CuPy and PyTorch on a GPU: as arguments, shared both ways, and waited for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fake_arrays import OnlyDLPack
from shared_tasks import copy_element, launch

import atos_py as atos
from atos_py.errors import InvalidArgumentError

pytestmark = pytest.mark.gpu


@pytest.fixture(params=["cupy", "torch", "dlpack of cupy", "dlpack of torch"])
def others(request) -> Any:
    """A function that makes a GPU array of another library from a NumPy array, and one that makes it NumPy's again."""
    library = pytest.importorskip(request.param.split()[-1])
    if library.__name__ == "cupy":
        make, back = library.asarray, library.asnumpy
    else:
        make, back = (lambda values: library.as_tensor(values, device="cuda")), (lambda array: array.cpu().numpy())
    if request.param.startswith("dlpack"):
        return (lambda values: OnlyDLPack(make(values))), (lambda wrapped: back(wrapped.array))
    return make, back


def test_arrays_of_others_are_arguments(others, worker):
    make, back = others
    source, target = make(np.arange(100, dtype=np.int64)), make(np.zeros(100, np.int64))
    queue = atos.Queue(100, device="cuda")
    queue.push(np.arange(100))
    launch(queue, worker, copy_element, source, target)
    assert back(target).tolist() == list(range(1, 101))
    array = atos.asarray(target)
    assert array.device == atos.device("cuda")
    array[3] = 77
    assert back(target)[3] == 77  # the same memory


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int32", "int64", "float32", "float64"])
def test_types_of_others(others, dtype):
    make, _ = others
    values = np.array([[0, 1, 1], [1, 0, 1]], dtype)
    array = atos.asarray(make(values))
    assert (array.shape, array.dtype) == ((2, 3), np.dtype(dtype))
    assert array.to_numpy().tolist() == values.tolist()


def test_arrays_of_others_have_to_be_contiguous(others):
    make, _ = others
    array = make(np.zeros((4, 6), np.int64))
    part = OnlyDLPack(array.array[:, ::2]) if isinstance(array, OnlyDLPack) else array[:, ::2]
    with pytest.raises(InvalidArgumentError, match="make it C-contiguous first"):
        atos.asarray(part)
    queue = atos.Queue(4, device="cuda")
    with pytest.raises(InvalidArgumentError, match="contiguous"):
        queue.launch_cta(copy_element, part, part)


def test_our_arrays_in_other_libraries():
    array = atos.full(10, 5, dtype=np.int32, device="cuda")
    try:
        import cupy
    except ImportError:
        pytest.skip("CuPy is not installed")
    view = cupy.asarray(array)
    assert view.data.ptr == array.pointer
    view += 1
    cupy.cuda.get_current_stream().synchronize()
    assert array.to_numpy().tolist() == [6] * 10
    del array
    assert cupy.asnumpy(view).tolist() == [6] * 10  # it keeps the memory
    torch = pytest.importorskip("torch")
    again = atos.full((2, 3), 1.5, dtype=np.float32, device="cuda")
    tensor = torch.as_tensor(again, device="cuda")
    assert tensor.data_ptr() == again.pointer
    tensor[0, 1] = 4
    torch.cuda.synchronize()
    assert again.to_numpy().tolist() == [[1.5, 4.0, 1.5], [1.5] * 3]
    assert cupy.asarray(atos.zeros((0, 3), device="cuda")).shape == (0, 3)


def test_what_others_still_write_is_waited_for():
    """An array whose producer is busy on a stream that blocks with the default one."""
    cupy = pytest.importorskip("cupy")
    spin = cupy.RawKernel(
        'extern "C" __global__ void spin(long long n) { long long end = clock64() + n; while (clock64() < end); }', "spin"
    )
    for stream in (cupy.cuda.Stream(), cupy.cuda.Stream.null):
        with stream:
            values = cupy.zeros(10, dtype=cupy.int64)
            spin((1,), (1,), (100_000_000,))
            values += 3
            assert atos.asarray(values).to_numpy().tolist() == [3] * 10
