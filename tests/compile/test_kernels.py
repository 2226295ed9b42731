"""What tasks become once they are linked into the core: registers, spills and calls of every kernel. No GPU needed.

Tasks of the package itself are in `test_package_kernels.py`. `benchmarks/kernel_sizes.py` prints what all kernels here take.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any, NamedTuple

import numpy as np
import pytest
from fake_arrays import FakeArray
from kernel_limits import linked

import atos_py as atos
from atos_py.algorithms import bfs
from atos_py.algorithms.bfs.tasks import visit_along
from atos_py.compile import linker as link
from atos_py.compile.arguments import PoolArgument, QueueKind, describe
from atos_py.compile.kinds import Launchable, Tasks
from atos_py.compile.spec import REGISTERS, SPILLS_WITH_ROUNDS, ProgramSpec

pytest.importorskip("cuda.core", reason="cuda-core is not installed")
pytest.importorskip("cuda.core", reason="cuda-core is not installed")
if not any(link.CORE_DIR.glob("core_*.fatbin")):
    pytest.skip("the core was built without GPU support", allow_module_level=True)

pytestmark = pytest.mark.part("kernels")

WORKERS = ["thread", "warp", "cta"]
MOST_REGISTERS = 64
RECORD = np.dtype([("vertex", "u4"), ("distance", "u4")])
LARGEST_RECORD = np.dtype([("vertex", "i8"), ("distance", "f8"), ("parent", "u8"), ("bound", "f8")])
LARGE_RECORD = np.dtype([("vertex", "i8"), ("distance", "f8")])


class Rows(NamedTuple):
    indptr: Any
    indices: Any


def array(dtype: str, readonly: bool = False, ndim: int = 1) -> FakeArray:
    return FakeArray(np.zeros((2,) * ndim, dtype), readonly)


GRAPH = Rows(array("i4", readonly=True), array("u4", readonly=True))


@atos.task
def methods(worker, v, out, floats):
    """Use all that a worker offers."""
    rank, size = worker.rank, worker.size
    mine = worker.scratch(np.int64)
    mine[rank] = rank * v
    worker.sync()
    value = mine[size - 1 - rank]
    total = worker.sum(value) + worker.min(value) + worker.max(value)
    floating = worker.sum(rank * 0.5)
    if worker.any(value > 3) and worker.all(value >= 0):
        for k in worker.split(range(v, v + 100)):
            worker.push(k)
    if rank == 0:
        out[v] = total
        floats[v] = floating


@atos.task(workload=lambda v, graph, depth: graph.indptr[v + 1] - graph.indptr[v])
def visit(worker, v, i, graph, depth):
    neighbor = graph.indices[graph.indptr[v] + i]
    next_depth = depth[v] + 1
    if atos.atomic_min(depth, neighbor, next_depth) > next_depth:
        worker.push(neighbor)


@atos.task(workload=lambda v, graph, depth, sums: graph.indptr[v + 1] - graph.indptr[v])
def lower(worker, v, i, graph, depth, sums):
    if worker.push_min(depth, graph.indices[graph.indptr[v] + i], depth[v] + 1):
        atos.accumulate(sums, v, 1)


def rescan(worker, graph, depth):
    """Push what has no depth yet."""
    for v in worker.split(len(depth)):
        if depth[v] == 0xFFFF_FFFF:
            worker.push(v)


@atos.task(
    workload=lambda item, graph, distance: (
        graph.indptr[item.vertex + 1] - graph.indptr[item.vertex],
        graph.indptr[item.vertex],
    )
)
def relax(worker, item, i, first, graph, distance):
    neighbor = graph.indices[first + i]
    if atos.atomic_min(distance, neighbor, item.distance + 1) > item.distance + 1:
        worker.push((neighbor, item.distance + 1))


@atos.task(
    workload=lambda item, graph, distance: (
        graph.indptr[item.vertex + 1] - graph.indptr[item.vertex],
        graph.indptr[item.vertex],
    )
)
def branch(worker, item, i, first, graph, distance):
    neighbor, bound = graph.indices[first + i], item.bound + item.distance
    if neighbor != item.parent and atos.atomic_min(distance, neighbor, bound) > bound:
        worker.push((neighbor, item.distance + 1, item.vertex, bound))


@atos.task
def flat_groups(worker, v, out, floats):
    """Use all that a group offers, and scratch of both kinds."""
    group = worker.group(8)
    shared, own = worker.scratch(np.int64, 5), group.scratch(np.float32, 3)
    for k in group.split(v):
        worker.push(k)
    if worker.rank == 0:
        shared[1] = worker.index * worker.count
    if group.rank == 0:
        own[2] = group.index * group.count
    worker.sync()
    total = group.sum(v + shared[1]) + group.min(np.int32(v)) + np.int64(group.max(np.uint64(v)))
    floating = group.sum(own[2]) + group.max(v * 0.5)
    group.sync()
    if group.any(total > 3) and group.all(total >= 0):
        out[v] = total + group.shuffle(np.uint8(v), 3)
        floats[v] = group.shuffle(floating, group.size - 1)


@atos.task(workload=lambda v, graph, depth: graph.indptr[v + 1] - graph.indptr[v], group=4)
def nested_groups(worker, v, i, graph, depth):
    group = worker.group
    own = worker.scratch(np.int32, 12)
    for k in group.split(12):
        own[k] = i * k
    group.sync()
    total = 0
    for k in group.split(12):
        total += own[11 - k]
    total = group.sum(total)
    if group.rank == 0:
        worker.push(graph.indices[total])


@atos.task
def tools(worker, v, flags, marks, best, sums):
    """Use what tasks have beside the worker: small atomics, packed words, random numbers, arrays of a thread."""
    mine = atos.local_array(np.float32, 4)
    for k in range(4):
        mine[k] = atos.random(1, v, k)
    atos.atomic_add4(sums, 4 * v, mine[0], mine[1], mine[2], mine[3])
    if atos.atomic_exch(flags, v, 1) == 0 and atos.atomic_or_(marks, v, True) == False:  # noqa: E712
        atos.atomic_min(best, 0, atos.pack(mine[0], v))
        atos.atomic_mul(sums, v, 2)
        worker.push(atos.unpack(best[0], np.float32)[1])


@atos.task
def local(worker, v, out):
    """Index an array of the thread by what only the run knows."""
    mine = atos.local_array(np.int32, 32)
    for k in range(v):
        mine[k * k % 32] += k
    out[v] = mine[v % 32]


@atos.task
def told(worker, v, out):
    print("item", v, out[v], 0.5, True)


@atos.task
def pull(worker, v, graph, depth):
    """Use all that a task knows of rounds."""
    if worker.mode == 0 and worker.rank == 0 and depth[v] > worker.round:
        worker.push(v)
        if v == 7:
            worker.stop()


def between_rounds(worker, graph, depth):
    """Do all that the function between rounds may do."""
    left = 0
    for v in worker.split(len(depth)):
        if depth[v] == 0xFFFF_FFFF:
            left += 1
            worker.push(v)
    if worker.sum(left) + worker.pending < 10:
        worker.set_mode(worker.mode + worker.round)
        worker.stop()


@atos.task
def settle(worker, v, graph, depth):
    """Use the threads of a worker beside a nested task."""
    mine = 0
    for k in worker.split(range(graph.indptr[v], graph.indptr[v + 1])):
        mine += depth[graph.indices[k]]
    if worker.sum(mine) > 9 and worker.rank == 0:
        worker.push(v, task=visit)


def nothing(worker, v):
    """Do nothing: what remains is the core's own."""


TASKS: dict[str, tuple[Launchable, Any, tuple[Any, ...], np.dtype]] = {
    "nothing": (atos.task(nothing), None, (), np.dtype("u4")),
    "bfs": (bfs.visit, None, (GRAPH, array("u4")), np.dtype("u4")),
    "bfs along paths": (visit_along, None, (GRAPH, array("u4")), np.dtype("u4")),
    "nested": (visit, None, (GRAPH, array("u4")), np.dtype("u4")),
    "nested, 64 bits": (visit, None, (GRAPH, array("u4")), np.dtype("i8")),
    "nested, push_min": (lower, None, (GRAPH, array("u4"), array("f8")), np.dtype("u4")),
    "nested, push_min of 16 bits": (lower, None, (GRAPH, array("i2"), array("u1")), np.dtype("i8")),
    "flat, all methods": (methods, None, (array("i8"), array("f8")), np.dtype("u4")),
    "flat, groups": (flat_groups, None, (array("i8"), array("f8")), np.dtype("u4")),
    "nested, groups": (nested_groups, None, (GRAPH, array("u4")), np.dtype("u4")),
    "tools": (tools, None, (array("u1"), array("?"), array("u8"), array("f4")), np.dtype("u4")),
    "idle": (visit, rescan, (GRAPH, array("u4")), np.dtype("u4")),
    "nested and flat": (Tasks((visit, settle)), None, (GRAPH, array("u4")), np.dtype("u4")),
    "record of 8 bytes": (relax, None, (GRAPH, array("u4")), RECORD),
    "record of 16 bytes": (relax, None, (GRAPH, array("f8")), LARGE_RECORD),
    "record of 32 bytes": (branch, None, (GRAPH, array("f8")), LARGEST_RECORD),
}


def kernel(name: str, worker: str, cc: tuple[int, int] = (9, 0)) -> link.LinkedKernel:
    task, idle, args, dtype = TASKS[name]
    return linked(ProgramSpec(task, idle, tuple(map(describe, args)), dtype, worker), MOST_REGISTERS, cc)


@atos.task
def every_atomic(worker, v, words, wide, floats, bits):
    atos.atomic_min(words, v, 3)
    atos.atomic_cas(wide, v, 1, 2)
    atos.atomic_add(floats, v, 1.5)
    atos.atomic_max(floats, v, 0.5)
    atos.atomic_or_(bits, v, 1)
    atos.atomic_exch(bits, v, atos.atomic_mul(wide, v, 3))
    words[v] = words[v + 1]
    atos.accumulate(floats, v, 2.5)
    worker.push_min(words, v + 1, 4)
    worker.push(v + 1)


@atos.task
def pass_records_on(worker, item, words, wide, floats, bits):
    if atos.atomic_min(wide, item.vertex, 3) > 3:
        worker.push(item)


@pytest.mark.parametrize("worker", WORKERS)
@pytest.mark.parametrize("dtype", [np.dtype("u4"), RECORD, LARGE_RECORD, LARGEST_RECORD], ids=["4", "8", "16", "32"])
def test_kernels_over_several_gpus(worker, dtype):
    """Atomics on what GPUs share are of system scope; those of one GPU are as they were."""
    every = every_atomic if dtype.names is None else pass_records_on
    args = tuple(map(describe, (array("u4"), array("i8"), array("f4"), array("u1"))))
    found, alone = (link.cubin(ProgramSpec(every, None, args, dtype, worker, peers=peers), (9, 0)) for peers in (True, False))
    assert found.registers <= MOST_REGISTERS
    assert (found.stack_bytes, found.spill_bytes) == (0, 0)
    assert alone.registers <= max(found.registers, 40)  # fewer than 40 let no more threads in
    assert len(alone.code) < len(found.code)


@atos.task(workload=lambda v, words: words[v])
def to_flat(worker, v, i, words):
    worker.push(v + i, task=to_nested)


@atos.task
def to_nested(worker, v, words):
    worker.push(v + worker.rank, task=to_flat)


@pytest.mark.parametrize("worker", WORKERS)
def test_kernels_of_several_tasks_over_several_gpus(worker):
    args = (describe(array("u4")),)
    found = linked(ProgramSpec(Tasks((to_flat, to_nested)), None, args, np.dtype("u4"), worker, peers=True))
    assert (found.stack_bytes, found.spill_bytes) == (0, 0)
    assert found.registers <= MOST_REGISTERS


@pytest.mark.parametrize("worker", WORKERS)
@pytest.mark.parametrize("name", TASKS)
def test_kernels_spill_nothing(name, worker):
    found = kernel(name, worker)
    assert found.symbol == "atos_kernel"
    assert (found.spill_bytes, found.stack_bytes) == (0, 0)
    assert 16 <= found.registers <= MOST_REGISTERS


@pytest.mark.parametrize("idle", [None, rescan], ids=["", "idle"])
@pytest.mark.parametrize("worker", WORKERS)
def test_kernels_with_rounds_spill_little(worker, idle):
    args = (describe(GRAPH), describe(array("u4")))
    found = linked(ProgramSpec(pull, idle, args, np.dtype("u4"), worker, each_round=between_rounds))
    assert found.asks_for_round
    assert max(found.spill_bytes, found.stack_bytes) <= SPILLS_WITH_ROUNDS
    assert 16 <= found.registers <= MOST_REGISTERS


@pytest.mark.parametrize("worker", WORKERS)
def test_kernels_with_rounds_over_several_gpus_spill_little(worker):
    args = (describe(GRAPH), describe(array("u4")))
    found = linked(ProgramSpec(pull, None, args, np.dtype("u4"), worker, each_round=between_rounds, peers=True))
    assert found.asks_for_round
    assert max(found.spill_bytes, found.stack_bytes) <= SPILLS_WITH_ROUNDS
    assert 16 <= found.registers <= MOST_REGISTERS


@pytest.mark.parametrize("worker", WORKERS)
def test_a_kernel_without_rounds_has_nothing_of_them(worker):
    """Kernels without a function between rounds have no code for it."""
    args = (describe(GRAPH), describe(array("u4")))
    without, empty = (
        linked(ProgramSpec(visit, None, args, np.dtype("u4"), worker, each_round=function))
        for function in (None, lambda worker, graph, depth: None)
    )
    assert not without.asks_for_round
    assert len(without.code) < len(empty.code)
    assert without.registers <= max(empty.registers, REGISTERS[0])  # fewer than that limit are of no use


@pytest.mark.parametrize("worker", WORKERS)
@pytest.mark.parametrize("name", ["nested", "idle", "record of 16 bytes"])
def test_workers_with_an_inbox_spill_nothing(name, worker):
    task, idle, args, dtype = TASKS[name]
    found = linked(ProgramSpec(task, idle, tuple(map(describe, args)), dtype, worker, inbox=True))
    assert (found.spill_bytes, found.stack_bytes) == (0, 0)
    assert found.registers <= MOST_REGISTERS
    assert len(found.code) > len(kernel(name, worker).code)  # of which the others have nothing


@pytest.mark.parametrize("worker", WORKERS)
@pytest.mark.parametrize("name", ["nested", "idle", "record of 16 bytes"])
def test_workers_that_count_spill_nothing(name, worker):
    task, idle, args, dtype = TASKS[name]
    found = linked(ProgramSpec(task, idle, tuple(map(describe, args)), dtype, worker, counters=True))
    assert (found.spill_bytes, found.stack_bytes) == (0, 0)
    assert found.registers <= MOST_REGISTERS
    assert len(found.code) > len(kernel(name, worker).code)  # of which the others have nothing


@pytest.mark.parametrize("worker", WORKERS)
@pytest.mark.parametrize("name", TASKS)
def test_tasks_are_inlined(name, worker):
    """Nothing of the task or of the core's own functions is left to be called."""
    found = kernel(name, worker)
    for symbol in (b"atos_task", b"atos_push", b"atos_reduce", b"atos_any", b"atos_group", b"atos_region"):
        assert symbol not in found.code
    assert found.log.count("Function properties for") + found.log.count("Compiling entry function") <= 2
    assert "atos_task" not in found.log


@pytest.mark.parametrize("worker", WORKERS)
@pytest.mark.parametrize("name", ["bfs", "flat, all methods", "idle"])
def test_machine_code_has_no_calls(name, worker, tmp_path):
    if shutil.which("nvdisasm") is None:
        pytest.skip("nvdisasm is not installed")
    path = tmp_path / "kernel.cubin"
    path.write_bytes(kernel(name, worker).code)
    sass = subprocess.run(["nvdisasm", "-c", path], capture_output=True, text=True, check=True).stdout
    assert ".text.atos_kernel" in sass
    called = {re.sub(r".*\(\$?(\S+)\).*", r"\1", line) for line in sass.splitlines() if " CALL" in line}
    assert all("__cuda_sm20_" in symbol for symbol in called), called  # 64-bit division, which the hardware does not have
    assert "LDL" not in sass  # no local memory
    assert "STL" not in sass


@pytest.mark.parametrize("worker", WORKERS)
@pytest.mark.parametrize("name", ["flat, groups", "nested, groups"])
def test_checks_of_groups_link(name, worker):
    task, idle, args, dtype = TASKS[name]
    found = linked(ProgramSpec(task, idle, tuple(map(describe, args)), dtype, worker, debug=True))
    assert (found.spill_bytes, found.stack_bytes) == (0, 0)


OLDER = [
    (name, worker, cc)
    for name in ("bfs", "flat, all methods", "tools", "nested, groups", "record of 16 bytes", "record of 32 bytes")
    for worker in WORKERS
    for cc in ((7, 5), (8, 0))
]
OTHERS = [("bfs", "cta", cc) for cc in ((8, 6), (8, 9), (10, 0), (12, 0))]


@pytest.mark.parametrize(("name", "worker", "cc"), OLDER + OTHERS, ids=str)
def test_other_architectures_link(name, worker, cc):
    found = kernel(name, worker, cc)
    assert found.code[:4] == b"\x7fELF"
    assert (found.spill_bytes, found.stack_bytes) == (0, 0)
    assert found.registers <= MOST_REGISTERS


@pytest.mark.parametrize("worker", WORKERS)
def test_an_array_of_a_thread_is_all_that_its_stack_holds(worker):
    found = linked(ProgramSpec(local, None, (describe(array("i4")),), np.dtype("u4"), worker))
    assert 32 * 4 <= found.stack_bytes <= 32 * 4 + 16
    assert found.spill_bytes == 0


def send(worker, v, numbers, records):
    """Push into queues of items of two sizes."""
    for child in worker.split(v):
        numbers.push(child)
        records.push((child, v, child + np.int64(v)))


@pytest.mark.parametrize("worker", WORKERS)
def test_pushes_into_other_queues_spill_nothing(worker):
    kinds = QueueKind(np.dtype("u4")), QueueKind(np.dtype([(name, "i8") for name in "abc"]))
    found = linked(ProgramSpec(atos.task(send), None, kinds, np.dtype("u8"), worker))
    assert (found.spill_bytes, found.stack_bytes) == (0, 0)


def allocate(worker, v, records, numbers):
    """Take elements of two pools, of which one has fields."""
    for child in worker.split(v):
        first = records.take(child)
        if first < 0:
            worker.push(child)
        else:
            records.corner[first, 1], records.mass[first] = child, len(numbers)
            atos.atomic_add(numbers.values, numbers.take(), v)


@pytest.mark.parametrize("worker", WORKERS)
def test_elements_of_pools_spill_nothing(worker):
    records = PoolArgument(array("i8"), {"corner": array("i4", ndim=2), "mass": array("f8")})
    pools = records, PoolArgument(array("i8"), {"values": array("i4")})
    found = linked(ProgramSpec(atos.task(allocate), None, tuple(map(describe, pools)), np.dtype("u4"), worker), 40)
    assert (found.spill_bytes, found.stack_bytes) == (0, 0)
    assert found.registers <= 40


@pytest.mark.parametrize("worker", WORKERS)
def test_a_task_that_prints_links(worker):
    found = linked(ProgramSpec(told, None, (describe(array("i4")),), np.dtype("u4"), worker))
    assert b"vprintf" in found.code
    assert b"vprintf" not in kernel("bfs", worker).code


def test_a_task_with_little_room_for_registers_still_links():
    task, idle, args, dtype = TASKS["flat, all methods"]
    found = linked(ProgramSpec(task, idle, tuple(map(describe, args)), dtype, max_registers=32))
    assert found.registers <= 32
