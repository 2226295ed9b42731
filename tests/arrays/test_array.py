"""Arrays from the host: making them, going in and out, and copies between devices."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import types
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import atos_py as atos
from atos_py.errors import DeviceMemoryError, InvalidArgumentError, UnsupportedTypeError

DTYPES = ["bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "float32", "float64"]
CPU = atos.device("cpu")


@pytest.mark.parametrize("dtype", DTYPES)
def test_there_and_back(device, dtype):
    values = np.random.default_rng(1).integers(0, 2, (3, 4, 5)).astype(dtype)
    array = atos.asarray(values, device=device)
    assert (array.shape, array.dtype, array.ndim, array.size, len(array)) == ((3, 4, 5), np.dtype(dtype), 3, 60, 3)
    assert (array.nbytes, array.device, array.readonly) == (values.nbytes, device, False)
    back = array.to_numpy()
    assert back.dtype == values.dtype
    assert np.array_equal(back, values)
    assert np.array_equal(np.asarray(array), values)
    assert not np.shares_memory(back, values)


@pytest.mark.parametrize("dtype", DTYPES)
def test_full_zeros_and_empty(device, dtype):
    one = np.ones((), dtype)[()]
    assert atos.full((2, 3), one, device=device).to_numpy().tolist() == np.full((2, 3), one).tolist()
    assert atos.full((2, 3), one, device=device).dtype == np.dtype(dtype)
    assert atos.full(7, 1, dtype=dtype, device=device).to_numpy().tolist() == [one] * 7
    assert atos.zeros(7, dtype=dtype, device=device).to_numpy().tolist() == [0] * 7
    assert atos.empty([2, 2], dtype=dtype, device=device).shape == (2, 2)
    if np.dtype(dtype).kind in "iu":
        limits = np.iinfo(dtype)
        for value in (limits.min, limits.max):
            assert atos.full(1001, value, dtype=dtype, device=device).to_numpy().tolist() == [value] * 1001


@pytest.mark.parametrize("shape", [0, (0,), (3, 0), (0, 3), (2, 0, 2)])
def test_arrays_without_elements(device, shape):
    array = atos.full(shape, 3, dtype=np.int32, device=device)
    expected = np.full(shape, 3, np.int32)
    assert (array.shape, array.size, array.nbytes) == (expected.shape, 0, 0)
    assert array.to_numpy().shape == expected.shape
    assert array[:].shape == expected.shape
    array[:] = 5
    assert atos.asarray(expected, device=device).shape == expected.shape


def test_arrays_without_dimensions(device):
    array = atos.full((), 3, dtype=np.int32, device=device)
    assert (array.shape, array.size, array[()]) == ((), 1, 3)
    array[()] = 4
    array[...] = 5
    assert array.to_numpy() == 5
    with pytest.raises(UnsupportedTypeError, match="no length"):
        len(array)


VALUES_THAT_DO_NOT_FIT = [
    ("uint8", 256),
    ("uint8", -1),
    ("int8", 128),
    ("int32", 2**31),
    ("uint32", -1),
    ("uint32", 2**32),
    ("int64", 2**63),
    ("uint64", -1),
    ("int32", 1.5),
    ("int32", np.nan),
    ("int32", np.inf),
    ("uint64", -0.5),
    ("int32", 2.0**31),
]


@pytest.mark.parametrize(("dtype", "value"), VALUES_THAT_DO_NOT_FIT)
def test_values_that_do_not_fit_are_refused(dtype, value):
    with pytest.raises(InvalidArgumentError, match=rf"do not fit {dtype}|fractions cannot become {dtype}"):
        atos.full(3, value, dtype=dtype, device=CPU)
    with pytest.raises(InvalidArgumentError):
        atos.asarray([value], dtype=dtype, device=CPU)
    array = atos.zeros(3, dtype=dtype, device=CPU)
    for key in (0, slice(None)):
        with pytest.raises(InvalidArgumentError):
            array[key] = value
    assert array.to_numpy().tolist() == [0, 0, 0]


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize(("dtype", "value"), [("int64", 2.0**63), ("uint64", 2.0**64)])
def test_floats_just_above_64_bits_are_refused(dtype, value):
    with pytest.raises(InvalidArgumentError):
        atos.full(3, value, dtype=dtype, device=CPU)


@pytest.mark.filterwarnings("ignore:overflow")
def test_floats_beyond_float32_are_refused():
    with pytest.raises(InvalidArgumentError):
        atos.full(3, 1e300, dtype=np.float32, device=CPU)


@pytest.mark.parametrize("dtype", ["float16", "complex64", "O", "S3", ">i4", "i4,i4", "M8[s]", "longdouble"])
def test_types_that_arrays_cannot_hold(dtype):
    makes = [lambda: atos.zeros(3, dtype=dtype, device=CPU), lambda: atos.asarray(np.zeros(3, dtype), device=CPU)]
    for make in makes[:1] if dtype in ("float16", ">i4") else makes:
        with pytest.raises(UnsupportedTypeError, match="arrays hold integers of 8 to 64 bits, float32, float64 or bool"):
            make()


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i2", "u4", "i8"])
def test_halves_and_other_orders_of_bytes_are_copied(dtype, order):
    values = np.array([0, 1, 2, 30000], order + dtype)
    array = atos.asarray(values, device=CPU)
    assert array.dtype == np.dtype("f4" if dtype == "f2" else dtype)
    assert array.dtype.isnative
    assert array.to_numpy().tolist() == values.tolist() == [0, 1, 2, 30000]
    array[0] = 7
    assert (values[0] == 7) == (dtype != "f2" and values.dtype.isnative)
    assert atos.asarray(values[1:], dtype=np.float64, device=CPU).to_numpy().tolist() == [1, 2, 30000]


@pytest.mark.parametrize("value", ["a", None, 1j, object(), [1, "a"]])
def test_values_of_other_types(value):
    array = atos.zeros(3, dtype=np.int32, device=CPU)
    with pytest.raises(UnsupportedTypeError, match=r"cannot become int32|arrays hold"):
        array[:] = value
    with pytest.raises(UnsupportedTypeError):
        atos.asarray(value, device=CPU)


def test_shapes_that_make_no_sense():
    with pytest.raises(InvalidArgumentError, match="an extent of a shape must be from 0"):
        atos.zeros(-1, device=CPU)
    with pytest.raises(InvalidArgumentError, match="an extent of a shape must be from 0"):
        atos.zeros((2, -1), device=CPU)


def test_more_memory_than_there_is(device):
    with pytest.raises(DeviceMemoryError, match=r"\d+ bytes asked for"):
        atos.zeros(2**50, dtype=np.int64, device=device)


def test_more_memory_than_64_bits_can_say():
    with pytest.raises(DeviceMemoryError):
        atos.zeros((2**40, 2**40), device=CPU)


def test_zero_copy_on_the_cpu():
    values = np.arange(6).reshape(2, 3)
    array = atos.asarray(values, device=CPU)
    array[1, 2] = 50
    values[0, 0] = 40
    assert (values[1, 2], array[0, 0]) == (50, 40)
    assert np.shares_memory(np.asarray(array), values)
    assert atos.asarray(array) is array
    copied = atos.asarray(values, device=CPU, copy=True)
    values[0, 0] = 1
    assert copied[0, 0] == 40
    part = atos.asarray(values[:, 1:], device=CPU)  # not contiguous, and so a copy
    assert part.to_numpy().tolist() == values[:, 1:].tolist()
    assert atos.asarray(values, dtype=np.float32, device=CPU).dtype == np.float32
    assert atos.asarray(np.frombuffer(bytes(8), np.int32), device=CPU).readonly


def misaligned(dtype: str) -> np.ndarray:
    """Return an array of three elements that lie across the addresses of that type."""
    return np.frombuffer(bytearray(64), np.uint8)[1 : 1 + 3 * np.dtype(dtype).itemsize].view(dtype)


class OnGpu:
    """An array as another library has it, which claims to be on a GPU."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.__cuda_array_interface__ = {**array.__array_interface__, "strides": None, "version": 3}


@pytest.mark.parametrize("wrap", [lambda array: array, OnGpu], ids=["NumPy", "__cuda_array_interface__"])
@pytest.mark.parametrize("dtype", ["int16", "uint32", "float64"])
def test_arrays_that_are_not_aligned(dtype, wrap):
    array = misaligned(dtype)
    assert not array.flags.aligned
    array[:] = [1, 2, 3]
    with pytest.raises(InvalidArgumentError, match=r"no multiple of \d.*numpy.require\(array, requirements='A'\)"):
        atos.asarray(wrap(array), device=CPU)
    assert atos.asarray(wrap(np.require(array, requirements="A")), device=CPU).to_numpy().tolist() == [1, 2, 3]
    assert atos.asarray(wrap(array), device=CPU, copy=True).to_numpy().tolist() == [1, 2, 3]
    assert atos.asarray(wrap(array), device=CPU, dtype="int64" if dtype != "int64" else "int32").to_numpy().tolist() == [
        1,
        2,
        3,
    ]
    assert atos.asarray(wrap(array[:0]), device=CPU).size == 0


def test_arrays_that_are_not_aligned_as_arguments_and_items():
    queue = atos.Queue(4, device=CPU)
    items = misaligned("uint32")
    items[:] = [1, 2, 3]
    queue.push(items)  # which copies them
    assert queue.peek().tolist() == [1, 2, 3]
    with pytest.raises(InvalidArgumentError, match="no multiple of 8"):
        queue.launch_cta(atos.task(lambda worker, v, x: None), misaligned("int64"))
    assert len(queue) == 3


def test_numpy_sees_the_memory_of_an_array():
    array = atos.zeros(5, dtype=np.int32, device=CPU)
    view = np.asarray(array)
    view[3] = 7
    assert array[3] == 7
    del array
    gc.collect()
    view[2] = 1
    assert view.tolist() == [0, 0, 1, 7, 0]  # the view keeps the memory
    assert np.asarray(atos.asarray([1, 2], device=CPU), dtype=np.float64).tolist() == [1.0, 2.0]
    assert not np.shares_memory(np.array(atos.asarray(view, device=CPU)), view)


def test_arrays_keep_what_they_share():
    class Buffer(np.ndarray):
        pass

    values = np.zeros(4).view(Buffer)
    seen = weakref.ref(values)
    array = atos.asarray(values, device=CPU)
    del values
    gc.collect()
    assert array.to_numpy().tolist() == [0.0] * 4
    del array
    gc.collect()
    assert seen() is None


def test_numpys_masks_may_be_half_imported(monkeypatch):
    """By another thread."""
    monkeypatch.setitem(sys.modules, "numpy.ma", types.ModuleType("numpy.ma"))
    assert atos.asarray(np.arange(3), device=CPU)[2] == 2


def test_readonly(device):
    array = atos.asarray([1, 2, 3], device=device, readonly=True)
    assert array.readonly
    assert "readonly" in repr(array)
    for key in (0, slice(None), slice(0, 2)):
        with pytest.raises(InvalidArgumentError, match="the array is read-only"):
            array[key] = 1
    writable = atos.zeros(3, dtype=np.int32, device=device)
    view = atos.asarray(writable, readonly=True)
    if device.kind == "cpu":
        for other in (view, atos.asarray(np.arange(3), device=device, readonly=True)):
            assert not np.asarray(other).flags.writeable
        assert np.asarray(writable).flags.writeable
    writable[1] = 5
    assert view.readonly
    assert not writable.readonly
    assert view[1] == 5


def test_repr():
    assert repr(atos.zeros((2, 3), device=CPU)) == "Array([[0., 0., 0.],\n       [0., 0., 0.]], dtype=float32, device='cpu')"


def test_an_array_on_the_cpu_is_on_no_gpu():
    assert not hasattr(atos.zeros(3, device=CPU), "__cuda_array_interface__")


def test_from_other_protocols():
    keep = np.arange(4, dtype=np.int32)
    interface = {"shape": (2, 2), "typestr": "<i4", "data": (keep.ctypes.data, False), "version": 3}
    assert atos.asarray(SimpleNamespace(__array_interface__=interface), device=CPU).to_numpy().tolist() == [[0, 1], [2, 3]]
    assert atos.asarray([[1, 2], [3, 4]], device=CPU).shape == (2, 2)
    assert atos.asarray(memoryview(b"abc"), device=CPU).to_numpy().tolist() == [97, 98, 99]
    assert atos.asarray(range(3), device=CPU).to_numpy().tolist() == [0, 1, 2]
    assert atos.asarray(3.5, device=CPU).shape == ()


# Between devices


@pytest.mark.gpu
def test_copies_between_devices():
    values = np.arange(1000, dtype=np.int64)
    here = atos.asarray(values, device="cpu")
    there = atos.asarray(here, device="cuda")
    assert there.device == atos.device("cuda")
    assert np.array_equal(there.to_numpy(), values)
    assert np.array_equal(atos.asarray(there, device="cpu").to_numpy(), values)
    assert np.array_equal(atos.asarray(there, dtype=np.float32).to_numpy(), values)
    again = atos.asarray(there, copy=True)
    again[0] = 5
    assert there[0] == 0
    there[10:20] = here[20:30]
    assert there[10:20].tolist() == list(range(20, 30))
    with pytest.raises(InvalidArgumentError, match="cannot become a NumPy array without a copy"):
        there.__array__(copy=False)


def test_numpy_gets_no_copy_that_it_forbids():
    here = atos.zeros(3, dtype=np.int32, device=CPU)
    assert np.shares_memory(here.__array__(np.int32, copy=False), np.asarray(here))
    with pytest.raises(InvalidArgumentError, match="an array of int32 cannot become one of float64 without a copy"):
        here.__array__(np.float64, copy=False)


@pytest.mark.gpu
def test_parts_are_written_from_arrays_of_the_other_device():
    """In a process of its own, since a copy by the wrong device is a crash."""
    import subprocess
    import sys

    code = """
import atos_py as atos
here, there = (atos.full(10, value, dtype="int32", device=device) for value, device in ((1, "cpu"), (2, "cuda")))
there[0:5] = atos.full(5, 3, dtype="int32", device="cpu")
here[0:5] = atos.full(5, 4, dtype="int32", device="cuda")
print(here.to_numpy().tolist(), there.to_numpy().tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, f"{[4] * 5 + [1] * 5} {[3] * 5 + [2] * 5}\n"), done.stderr


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda array: pickle.loads(pickle.dumps(array))])
def test_copies_have_memory_of_their_own(device, copied):
    array = atos.asarray(np.arange(6).reshape(2, 3), device=device, readonly=True)
    other = copied(array)
    assert (other.dtype, other.shape, other.device, other.readonly) == (array.dtype, array.shape, array.device, True)
    assert other.pointer != array.pointer
    assert other.to_numpy().tolist() == array.to_numpy().tolist()


def test_a_graph_is_copied_and_pickled_whole(device):
    graph = atos.generate.road(20, device=device)
    other = pickle.loads(pickle.dumps(graph))
    assert np.array_equal(other.indices.to_numpy(), graph.indices.to_numpy())
    assert atos.bfs(copy.deepcopy(graph), 0).num_reached == atos.bfs(graph, 0).num_reached


def test_a_queue_is_not_copied(device):
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(atos.UnsupportedTypeError, match="save"):
            copied(atos.Queue(4, device=device))


def test_elements_one_after_the_other(device):
    array = atos.asarray(np.arange(4), device=device)
    assert list(array) == [0, 1, 2, 3]
    assert 3 in array
    assert max(array) == 3
    with pytest.raises(atos.UnsupportedTypeError, match="without dimensions"):
        iter(atos.asarray(np.array(1), device=device))
