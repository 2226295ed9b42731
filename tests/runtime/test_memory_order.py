"""Memory orders of atomics, loads and stores, and the fence: litmus programs, and what is refused."""

from __future__ import annotations

import inspect
import textwrap

import numpy as np
import pytest
from nvvm_texts import nvvm_text
from shared_tasks import launch

import atos_py as atos
from atos_py.compile.arguments import describe
from atos_py.compile.spec import ProgramSpec
from atos_py.errors import TaskCompileError

PAIRS = 2000


def pass_by_store(worker, v, data, flag, out):
    k = v // 2
    if worker.rank == 0:
        if v % 2 == 0:
            data[17 * k] = k + 1
            atos.atomic_store(flag, k, 1, memory_order="release")
        elif atos.atomic_load(flag, k, memory_order="acquire") == 1:
            out[k] = data[17 * k]
        else:
            worker.push(v)


def pass_by_atomics(worker, v, data, flag, out):
    k = v // 2
    if worker.rank == 0:
        if v % 2 == 0:
            data[17 * k] = k + 1
            atos.atomic_exch(flag, k, 1, memory_order="release")
        elif atos.atomic_cas(flag, k, 1, 2, memory_order="acquire") == 1:
            out[k] = data[17 * k]
        else:
            worker.push(v)


def pass_by_fences(worker, v, data, flag, out):
    k = v // 2
    if worker.rank == 0:
        if v % 2 == 0:
            data[17 * k] = k + 1
            atos.fence(memory_order="release")
            flag[k] = 1
        elif flag[k] == 1:
            atos.fence()
            out[k] = data[17 * k]
        else:
            worker.push(v)


@pytest.mark.parametrize("way", [pass_by_store, pass_by_atomics, pass_by_fences], ids=lambda way: way.__name__)
def test_messages_are_passed(device, worker, way):
    """A task that reads the flag reads the data that were written before it, in another line of the cache."""
    data = atos.zeros(17 * PAIRS, dtype=np.int64, device=device)
    flag, out = (atos.zeros(PAIRS, dtype=np.int32, device=device) for _ in range(2))
    queue = atos.Queue(4 * PAIRS, device=device)
    queue.push(np.random.default_rng(0).permutation(2 * PAIRS))
    launch(queue, worker, atos.task(way), data, flag, out)
    assert out.to_numpy().tolist() == list(range(1, PAIRS + 1))


@pytest.mark.parametrize("order", ["relaxed", "acquire", "release", "acq_rel"])
def test_values_are_those_of_relaxed_operations(device, order):
    def operate(worker, v, a, b, f):
        b[0] = atos.atomic_min(a, 0, 3, memory_order=order)
        b[1] = atos.atomic_max(a, 1, 9, memory_order=order)
        b[2] = atos.atomic_add(a, 2, 2, memory_order=order)
        b[3] = atos.atomic_mul(a, 3, 2, memory_order=order)
        b[4] = atos.atomic_exch(a, 4, 2, memory_order=order)
        b[5] = atos.atomic_cas(a, 5, 6, 2, memory_order=order)
        b[6] = atos.atomic_or_(a, 6, 2, memory_order=order)
        b[7] = atos.atomic_and_(a, 7, 2, memory_order=order)
        b[8] = atos.atomic_xor(a, 8, 2, memory_order=order)
        f[0] = atos.atomic_add(f, 1, 0.5, memory_order=order)

    for dtype in (np.int64, np.uint8):
        a, b = atos.full(9, 6, dtype=dtype, device=device), atos.zeros(9, dtype=np.int64, device=device)
        f = atos.full(2, 1.25, dtype=np.float32, device=device)
        queue = atos.Queue(10, device=device)
        queue.push(0)
        queue.launch_thread(variant(operate, order), a, b, f)
        assert b.to_numpy().tolist() == [6] * 9
        assert a.to_numpy().tolist() == [3, 9, 8, 12, 2, 2, 6, 2, 4]
        assert f.to_numpy().tolist() == [1.25, 1.75]


def variant(function, order):
    """Return a task with an order written into it, as users write it."""
    variables = {"atos": atos}
    exec(textwrap.dedent(inspect.getsource(function)).replace("memory_order=order", f"memory_order={order!r}"), variables)
    return atos.task(variables[function.__name__])


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64", "float32", "float64", "bool"])
def test_loads_and_stores_of_each_type(device, dtype):
    def copy(worker, v, a, b):
        atos.atomic_store(b, (0, v), atos.atomic_load(a, v, memory_order="acquire"), memory_order="release")

    values = np.array([0, 1, 1], dtype)
    a, b = atos.asarray(values, device=device), atos.zeros((2, 3), dtype=dtype, device=device)
    queue = atos.Queue(10, device=device)
    queue.push([0, 1, 2])
    queue.launch_thread(atos.task(copy), a, b)
    assert b.to_numpy()[0].tolist() == values.tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("atos.atomic_add(a, 0, 1, memory_order='seq_cst')", "memory_order='relaxed' or 'acquire' or 'release' or 'acq_rel'"),
        ("atos.atomic_add(a, 0, 1, memory_order=v)", "known when the task is compiled, not a"),
        ("atos.atomic_add(a, 0, 1, order='acquire')", "by position, and memory_order= by name"),
        ("atos.atomic_load(a, 0, memory_order='release')", "memory_order='relaxed' or 'acquire'"),
        ("atos.atomic_store(a, 0, 1, memory_order='acquire')", "memory_order='relaxed' or 'release'"),
        ("atos.accumulate(a, 0, 1, memory_order='acq_rel')", "memory_order='relaxed' or 'release'"),
        ("atos.fence(memory_order='relaxed')", "memory_order='acquire' or 'release' or 'acq_rel'"),
        ("atos.fence('acquire')", "takes memory_order= by name"),
        ("atos.atomic_load(frozen, 0)", "read-only array"),
        ("atos.atomic_store(a, 0, 1.5)", "would be cut off"),
    ],
)
def test_what_is_refused(call, message):
    variables = {"atos": atos}
    exec(f"def order(worker, v, a, frozen):\n    {call}", variables)
    queue = atos.Queue(10, device="cpu")
    queue.push(0)
    with pytest.raises(TaskCompileError, match=message):
        queue.launch_thread(atos.task(variables["order"]), atos.full(2, 1), atos.asarray([1, 2], readonly=True))


def test_fences_are_where_the_order_asks_for_them():
    """A processor whose memory is ordered as x86's shows no fence that lacks: the code is looked at."""
    texts = {}
    for order in ("relaxed", "acquire", "release", "acq_rel"):
        variables = {"atos": atos}
        exec(f"def add(worker, v, a):\n    atos.atomic_add(a, 0, 1, memory_order={order!r})", variables)
        texts[order] = ir_of(variables["add"])
    places = {order: fences_around(text, "atomicrmw add") for order, text in texts.items()}
    assert places == {
        "relaxed": ("", ""),
        "acquire": ("", "acquire"),
        "release": ("release", ""),
        "acq_rel": ("release", "acquire"),
    }


def test_gpus_have_fences_where_the_order_asks_for_them():
    for order, calls in {"relaxed": 0, "acquire": 1, "release": 1, "acq_rel": 2}.items():
        variables = {"atos": atos}
        exec(f"def add(worker, v, a):\n    atos.atomic_add(a, 0, 1, memory_order={order!r})", variables)
        assert nvvm_text(variables["add"], np.zeros(2, np.int64)).count('call void @"atos_fence"') == calls


def ir_of(function) -> str:
    """Return the code of a task for CPUs, in LLVM's language."""
    import llvmlite.binding

    from atos_py.compile.codegen.target_cpu import lower_cpu

    *_, bitcode = lower_cpu(ProgramSpec(atos.task(function), None, (describe(atos.full(2, 1)),), np.dtype(np.uint32)))
    return str(llvmlite.binding.parse_bitcode(bitcode))


def fences_around(text: str, operation: str) -> tuple[str, str]:
    """Return the orders of the fences right before and right after the one operation of a text."""
    lines = [line.strip() for line in text.splitlines()]
    (at,) = (k for k, line in enumerate(lines) if operation in line)
    return tuple(lines[k].removeprefix("fence ") if lines[k].startswith("fence") else "" for k in (at - 1, at + 1))
