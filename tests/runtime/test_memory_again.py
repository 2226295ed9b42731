"""Queues and arrays whose memory was another's before, on every device, and memory that is given back in between."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import atos_py as atos

LARGE = 1 << 20  # elements: large enough to be kept on every device


@atos.task
def count_down(worker, v, ran):
    if worker.rank == 0:
        atos.atomic_add(ran, 0, 1)
        if v > 0:
            worker.push(v - 1)


def run(device: atos.Device, *, capacity: int, items: int, **options: int) -> None:
    """Launch a queue of its own in which all slots are used several times, and that grows if it may."""
    queue, ran = atos.Queue(capacity, dtype=np.int32, device=device, **options), atos.zeros(1, dtype=np.int64, device=device)
    assert len(queue) == 0
    queue.push(np.full(items, 5, np.int32))
    assert queue.peek().tolist() == [5] * items
    assert queue.launch_thread(count_down, ran).tasks_run == 6 * items
    assert ran[0] == 6 * items
    queue.push(np.full(items // 2, 1, np.int32))  # what is left when the queue goes


@pytest.mark.parametrize("released", [False, True])
def test_queues_follow_each_other(device, released):
    for _ in range(3):
        run(device, capacity=LARGE, items=1000)
        run(device, capacity=100, max_capacity=100, items=100)
        run(device, capacity=64, items=5000)  # grows by the push
        if released:
            gc.collect()
            atos.release_memory()


@pytest.mark.parametrize("released", [False, True])
def test_arrays_follow_each_other(device, released):
    for _ in range(3):
        array = atos.full(LARGE, 7, dtype=np.int64, device=device)
        assert array[LARGE - 1] == 7
        del array
        if released:
            atos.release_memory()
        array = atos.zeros(LARGE, dtype=np.int64, device=device)
        assert not array.to_numpy().any()
        del array


def test_what_is_in_use_stays(device):
    array, queue = atos.full(LARGE, 7, dtype=np.int64, device=device), atos.Queue(LARGE, device=device)
    queue.push(np.arange(1000))
    atos.release_memory()
    assert (array.to_numpy() == 7).all()
    assert queue.peek().tolist() == list(range(1000))


@pytest.mark.gpu
def test_what_is_kept_counts_as_free_on_a_gpu():
    device, bytes_of_array = atos.device("cuda"), 256 << 20
    gc.collect()
    before = device.memory[0]
    array = atos.zeros(bytes_of_array, dtype=np.uint8, device=device)
    during = device.memory[0]
    assert during <= before - bytes_of_array // 2
    del array
    assert device.memory[0] >= during + bytes_of_array // 2
    atos.release_memory()
    assert device.memory[0] >= during + bytes_of_array // 2


@pytest.mark.gpu
def test_memory_that_a_kernel_still_writes_is_not_handed_out():
    """A kernel on a stream that nothing else waits for, while the array that it writes goes."""
    cupy = pytest.importorskip("cupy")
    late = cupy.RawKernel(
        """extern "C" __global__ void late(int *values, int n, long long ticks) {
             long long end = clock64() + ticks;
             while (clock64() < end) {}
             for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] = 9;
           }""",
        "late",
    )
    stream = cupy.cuda.Stream(non_blocking=True)
    for _ in range(3):
        array = atos.zeros(LARGE, dtype=np.int32, device="cuda")
        with stream:
            view = cupy.asarray(array)
            late((1,), (256,), (view, np.int32(LARGE), np.int64(200_000_000)))
        del view, array
        gc.collect()
        again = atos.zeros(LARGE, dtype=np.int32, device="cuda")
        stream.synchronize()
        assert not again.to_numpy().any()
