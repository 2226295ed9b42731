"""Helpers of users of numba-cuda: compiled with the task, or by numba-cuda where they use its names, and called by name."""

from __future__ import annotations

import re

import numpy as np
import pytest
from fake_arrays import FakeArray

import atos_py as atos
from atos_py.compile.arguments import describe
from atos_py.compile.spec import ProgramSpec
from atos_py.errors import TaskCompileError

cuda = pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
pytest.importorskip("cuda.core", reason="cuda-core is not installed")

ITEM = np.dtype(np.uint32)
CC = (9, 0)


@cuda.jit(device=True)
def doubled(x):
    return 2 * x


@cuda.jit(device=True)
def thread():
    return cuda.threadIdx.x


@cuda.jit(device=True)
def added(totals, place, value):
    return cuda.atomic.add(totals, place, value)


@cuda.jit(device=True)
def rounded_once(x, y):
    return cuda.fma(x, y, np.float32(1.5))


@cuda.jit(device=True)
def is_first(block):
    return cuda.blockIdx.x == block


@cuda.jit(device=True)
def cleared(rows, place):
    rows[place, 1] = doubled(thread())


def of_another(totals, place):
    return added(totals, place, 3) + doubled(thread())


@atos.task
def uses_doubled(worker, item, totals, rows, floats):
    totals[item] = doubled(item)


@atos.task
def uses_all(worker, item, totals, rows, floats):
    """Use numbers, arrays of one and two dimensions, results of several types, and none."""
    totals[item] = of_another(totals, item) + thread()
    floats[item] = rounded_once(floats[item], np.float32(2))
    if is_first(0):
        cleared(rows, item)


@atos.task
def uses_names_itself(worker, item, totals, rows, floats):
    totals[item] = cuda.threadIdx.x


@atos.task
def gives_a_tuple(worker, item, totals, rows, floats):
    totals[item] = added((1, 2), item, 3)


@atos.task
def gives_by_keyword(worker, item, totals, rows, floats):
    totals[item] = added(totals, item, value=3)


def spec_of(task: atos.Task, **options) -> ProgramSpec:
    arrays = np.zeros(4, "i4"), np.zeros((4, 2), "i8"), np.zeros(4, "f4")
    return ProgramSpec(task, None, tuple(describe(FakeArray(array)) for array in arrays), ITEM, **options)


def compile_cuda(task: atos.Task):
    from atos_py.compile.codegen import target_cuda

    return target_cuda.compile_cuda(spec_of(task), CC)


def test_a_helper_without_names_of_numba_cuda_is_lowered_with_the_task():
    assert len(compile_cuda(uses_doubled).modules) == 1


def test_helpers_with_names_of_numba_cuda_are_called_by_name():
    code = compile_cuda(uses_all)
    text = "\n".join(code.texts)
    called = set(re.findall(r'call [^@]*@"?(atos_device_function_\d+)', text))
    assert len(called) == 4  # thread, added, rounded_once, is_first: each once, though three functions call thread
    assert len(code.modules) == 1 + len(called)


@pytest.mark.parametrize("worker", ["thread", "cta"])
def test_they_are_linked_into_the_worker_loop(worker):
    from atos_py.compile import linker

    kernel = linker.cubin(spec_of(uses_all, worker=worker), CC)
    assert kernel.stack_bytes == kernel.spill_bytes == 0
    assert b"atos_device_function" not in kernel.code  # inlined


REFUSED = [
    (uses_names_itself, r"it uses numba.cuda \(as 'cuda'\), as only helpers with @cuda.jit\(device=True\) may"),
    (gives_a_tuple, r"added, which numba-cuda compiles, is given a UniTuple"),
    (gives_by_keyword, "called with arguments by keyword; give them by place"),
]


@pytest.mark.parametrize(("task", "message"), REFUSED, ids=[task.name for task, _ in REFUSED])
def test_what_is_refused(task, message):
    with pytest.raises(TaskCompileError, match=message):
        compile_cuda(task)


def test_on_cpu_threads_they_are_refused():
    from atos_py.compile.codegen import target_cpu

    target_cpu.compile_cpu(spec_of(uses_doubled))
    with pytest.raises(TaskCompileError, match=r"uses numba.cuda \(as 'cuda'\), and so runs on GPUs alone"):
        target_cpu.compile_cpu(spec_of(uses_all))


@pytest.mark.gpu
@pytest.mark.parametrize("worker", ["thread", "warp", "cta"])
def test_results(worker):
    gpu = atos.device("cuda")
    queue = atos.Queue(8, dtype=np.uint32, device=gpu)
    totals, rows = atos.zeros(4, dtype=np.int32, device=gpu), atos.full((4, 2), -1, dtype=np.int64, device=gpu)
    floats = atos.asarray(np.arange(4, dtype=np.float32), device=gpu, readonly=False)
    queue.push(np.arange(4, dtype=np.uint32))
    queue.launch(counted, totals, rows, floats, worker=worker)
    assert totals.to_numpy().tolist() == [3] * 4
    assert floats.to_numpy().tolist() == [1.5, 3.5, 5.5, 7.5]
    assert (rows.to_numpy()[:, 0] == -1).all()
    assert (rows.to_numpy()[:, 1] % 2 == 0).all()


@atos.task
def counted(worker, item, totals, rows, floats):
    if worker.rank == 0:
        added(totals, item, 3)
        floats[item] = rounded_once(floats[item], np.float32(2))
        cleared(rows, item)
