"""Items that lie on the GPU of a queue are pushed there: with a stand-in for the driver, and as the kernel compiles."""

from __future__ import annotations

import numpy as np
import pytest
from fake_gpu import FakeGpu

import atos_py as atos


@atos.task
def count(worker, v, seen):
    if worker.rank == 0:
        atos.atomic_add(seen, v, 1)


@pytest.fixture(scope="module")
def gpu(tmp_path_factory):
    return FakeGpu(tmp_path_factory.mktemp("driver"))


@pytest.mark.parametrize("dtype", ["uint32", "int32", "uint64", "int64"])
def test_items_on_the_gpu_are_pushed_there(gpu, dtype):
    gpu.run(f"""
queue, dtype = atos.Queue(10, max_capacity=100, dtype=np.{dtype}), np.dtype("{dtype}")
limits = np.iinfo(dtype)
items = np.array([limits.min, limits.max, 3, 0], dtype)
array = atos.asarray(items)
assert array.device.kind == "cuda"
trace()
queue.push(array)
assert trace() == [f"launch store_{{dtype.itemsize}}"]
queue.push(atos.asarray(np.array(9, dtype)))
queue.push(atos.zeros(0, dtype=dtype))
assert queue.peek().tolist() == [*items.tolist(), 9]
queue.push(atos.asarray(np.arange(20, dtype=dtype)))
assert queue.peek().tolist() == [*items.tolist(), 9, *range(20)]
assert queue.capacity >= 25
try:
    queue.push(atos.zeros(76, dtype=dtype))
except atos.QueueFullError as error:
    assert "max_capacity = 101" in str(error)
assert len(queue) == 25
try:
    queue.push(atos.zeros((2, 2), dtype=dtype))
except atos.InvalidArgumentError as error:
    assert "one-dimensional" in str(error)
else:
    raise AssertionError
""")


@pytest.mark.parametrize("dtype", ["uint32", "int64"])
def test_ranges_are_made_on_the_gpu(gpu, dtype):
    """With room for a kind, items of 4 bytes take 8; those of 8 bytes take 16, and are made by the host."""
    gpu.run(f"""
queue, dtype = atos.Queue(10, max_capacity=100, dtype=np.{dtype}), np.dtype("{dtype}")
nothing = atos.task(lambda worker, v: None)
trace()
queue.push(range(5, 9))
assert trace() == [f"launch store_{{dtype.itemsize}}"]
for _ in range(2):
    queue.push(range(2, 7))
assert queue.peek().tolist() == [5, 6, 7, 8, *range(2, 7), *range(2, 7)]
queue.clear()
queue.push(range(3), task=nothing)
trace()
queue.push(range(7, 9), task=nothing)
assert ("launch store_8" in trace()) == (dtype.itemsize == 4)
items, kinds = queue.peek(kinds=True)
assert items.tolist() == [0, 1, 2, 7, 8] and set(kinds) == {{nothing.name}}
""")


def test_no_kernel_stores_items_beside_a_run_that_waits_for_the_host(gpu):
    """It may hold all multiprocessors, and perhaps waits for whoever pushes here."""
    gpu.run("""
import threading
inbox = ffi.new("atos_inbox **")
check(lib.atos_inbox_create(0, 4, inbox))
waiting, queue = atos.Queue(10), atos.Queue(100, max_capacity=100)
items = atos.asarray(np.array([8, 6, 7], np.uint32))
thread = threading.Thread(target=run, args=(waiting, inbox[0]), daemon=True)
thread.start()
while "launch all" not in trace():
    pass
queue.push(range(3, 60))
queue.push(items)
assert queue.peek().tolist() == [*range(3, 60), 8, 6, 7]
assert not [call for call in trace() if "store" in call]
check(lib.atos_inbox_close(inbox[0]))
thread.join()
queue.push(range(2))
queue.push(items)
assert queue.peek().tolist() == [*range(3, 60), 8, 6, 7, 0, 1, 8, 6, 7]
assert trace().count("launch store_4") == 2
lib.atos_inbox_destroy(inbox[0])
""")


def test_items_on_the_gpu_wrap_around(gpu):
    gpu.run("""
queue = atos.Queue(10, max_capacity=10)
for turn in range(30):
    items = np.arange(7, dtype=np.uint32) + turn
    queue.push(atos.asarray(items) if turn % 3 else items)
    assert queue.peek().tolist() == items.tolist()
    assert run(queue) == 7
""")


@pytest.mark.parametrize("other", ["device='cuda:1'", "dtype=np.int64", "dtype=bool"])
def test_items_that_have_to_be_cast_or_moved_pass_through_the_host(gpu, other):
    gpu.run(
        f"""
queue = atos.Queue(10, dtype=np.uint32, device="cuda:0")
kind = dict({other})
array = atos.asarray(np.array([1, 0, 3], np.uint32), **kind)
trace()
if kind.get("dtype") is bool:
    try:
        queue.push(array)
    except atos.UnsupportedTypeError:
        pass
    else:
        raise AssertionError
else:
    queue.push(array)
calls = trace()
assert "copy to host" in calls, calls
assert not any(call.startswith("launch") for call in calls), calls
assert queue.peek().tolist() == [1, 0, 3][:len(queue)]
""",
        gpus=2,
    )


def test_arrays_of_other_libraries_are_cast_on_the_host(gpu):
    gpu.run("""
class Foreign:  # which NumPy does not read
    def __init__(self, array):
        self.__cuda_array_interface__ = array.__cuda_array_interface__
        self.owner = array

queue = atos.Queue(10, dtype=np.uint32)
queue.push(Foreign(atos.asarray(np.array([1, 0, 3], np.int64))))
assert queue.peek().tolist() == [1, 0, 3]
""")


@pytest.mark.parametrize(
    ("use", "kernel"), [("queue.push(atos.zeros(3, dtype=np.uint32))", b"store_8"), ("queue.resize(70_000)", b"move_slots")]
)
def test_the_kernels_of_queues_compile(gpu, use, kernel):
    pytest.importorskip("cuda.core")
    from cuda.core import Linker, LinkerOptions, ObjectCode

    text = gpu.run(f"""
queue = atos.Queue(60_000)
queue.push(range(50_000))
{use}
print(driver.fake_module().decode())
""")
    for architecture in ("sm_75", "sm_90"):
        linker = Linker(ObjectCode.from_ptx(text.encode()), options=LinkerOptions(arch=architecture))
        assert kernel in linker.link("cubin").code


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("library", ["atos", "cupy", "torch"])
def test_arrays_of_a_real_gpu_are_pushed(library, dtype):
    """The items of every generation of a ring, in order, and what passes through the host beside them."""
    if library == "atos":
        make = atos.asarray
    elif library == "cupy":
        make = pytest.importorskip("cupy").asarray
    else:
        torch = pytest.importorskip("torch")
        make = lambda values: torch.as_tensor(values, device="cuda")  # noqa: E731
    seen = atos.zeros(1000, dtype=np.int32, device="cuda")
    queue = atos.Queue(300, max_capacity=300, dtype=dtype, device="cuda")
    for turn in range(8):
        items = (np.arange(170) + turn).astype(dtype)
        queue.push(make(items))
        queue.push(make(items[:30].astype(np.int64)))
        assert queue.peek().tolist() == [*items.tolist(), *items[:30].tolist()]
        assert queue.launch_cta(count, seen).tasks_run == 200
    expected = np.zeros(1000, np.int32)
    for turn in range(8):
        expected[turn : turn + 170] += 1
        expected[turn : turn + 30] += 1
    assert seen.to_numpy().tolist() == expected.tolist()
    grown = atos.Queue(10, dtype=dtype, device="cuda")
    grown.push(5)
    grown.push(make(np.arange(100_000).astype(dtype)))
    assert grown.peek().tolist() == [5, *range(100_000)]
