"""Launches on CuPy's and PyTorch's streams: in the order of the stream, however it is named. Needs a GPU."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from shared_tasks import copy_element, every_schedule, launch

import atos_py as atos

pytestmark = pytest.mark.gpu


@atos.task
def copy_to_itself(worker, k, source, target):
    """Store an element at its own place."""
    if worker.rank == 0:
        target[source[k]] = source[k]


def streams() -> list[Any]:
    result = []
    try:
        import cupy

        result += [
            pytest.param(functools.partial(cupy.cuda.Stream, non_blocking=flag), id=f"CuPy, non_blocking={flag}")
            for flag in (True, False)
        ]
    except ImportError:
        result.append(pytest.param(None, id="CuPy", marks=pytest.mark.skip(reason="CuPy is not installed")))
    return result


@every_schedule
@pytest.mark.parametrize("make", streams())
def test_a_launch_runs_in_the_order_of_its_stream(make, worker, persistent, barrier):
    import cupy

    stream = make()
    spin = cupy.RawKernel(
        'extern "C" __global__ void spin(long long n) { long long end = clock64() + n; while (clock64() < end); }', "spin"
    )
    n = 1000
    for _ in range(3):
        with stream:
            source, target = cupy.zeros(n, dtype=cupy.int64), cupy.zeros(n, dtype=cupy.int64)
        queue = atos.Queue(n, device="cuda")
        queue.push(np.arange(n))
        stream.synchronize()
        there = [atos.asarray(array) for array in (source, target)]
        with stream:
            spin((1,), (1,), (100_000_000,))  # some 50 ms
            source += 7
        launch(queue, worker, copy_element, *there, stream=stream, persistent=persistent, barrier=barrier)
        # It has ended, for every stream and for the host.
        assert there[1].to_numpy().tolist() == [8] * n
        with stream:
            target *= 2
        assert target.get(stream=stream).tolist() == [16] * n


@every_schedule
def test_a_launch_begins_when_new_arrays_are_cleared(worker, persistent, barrier):
    """On a stream that does not wait for the one on which memory is cleared, which takes longer than the way to the kernel."""
    cupy = pytest.importorskip("cupy")
    stream, n = cupy.cuda.Stream(non_blocking=True), 1 << 27
    places = np.array([n - 1, n - 2, 5])
    source = atos.asarray(np.arange(n - 5, n), device="cuda")
    for _ in range(3):
        queue = atos.Queue(10, device="cuda")
        queue.push(range(5))
        target = atos.zeros(n, dtype=np.int64, device="cuda")
        launch(queue, worker, copy_to_itself, source, target, stream=stream, persistent=persistent, barrier=barrier)
        assert target[places[0]] == places[0]
        assert target[places[1]] == places[1]
        assert target[places[2]] == 0
        del target


def test_ways_to_name_a_stream():
    cupy = pytest.importorskip("cupy")
    stream = cupy.cuda.Stream(non_blocking=True)

    class Protocol:
        def __cuda_stream__(self) -> tuple[int, int]:
            return (0, stream.ptr)

    names: list[Any] = [None, 0, stream, stream.ptr, Protocol()]
    try:
        import torch

        names += [torch.cuda.Stream(), torch.cuda.current_stream()]
    except ImportError:
        pass
    from numba import cuda

    names.append(cuda.external_stream(stream.ptr))
    source, target = (atos.full(5, value, dtype=np.int64, device="cuda") for value in (3, 0))
    queue = atos.Queue(5, device="cuda")
    for name in names:
        target[:] = 0
        queue.push(range(5))
        queue.launch_warp(copy_element, source, target, stream=name)
        assert target.to_numpy().tolist() == [4] * 5
    with pytest.raises(TypeError, match="stream must be an address or a stream"):
        queue.launch_warp(copy_element, source, target, stream="fast")
