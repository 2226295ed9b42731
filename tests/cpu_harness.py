"""A worker in place of the core's: it runs tasks compiled for the CPU through the two functions that the core calls."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from fake_arrays import FakeArray, Pair, blob

import atos_py as atos
from atos_py.compile.arguments import describe
from atos_py.compile.codegen import stored_bytes
from atos_py.compile.codegen.target_cpu import compile_cpu
from atos_py.compile.spec import ProgramSpec

DTYPES = ["bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "float32", "float64"]


class CpuWorker(ctypes.Structure):
    """struct atos_cpu_worker"""


FLUSH = ctypes.CFUNCTYPE(None, ctypes.POINTER(CpuWorker))
PUSH = ctypes.CFUNCTYPE(None, ctypes.POINTER(CpuWorker), ctypes.c_void_p, ctypes.c_double)
SIZED_SCRATCH = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(CpuWorker), ctypes.c_uint64, ctypes.c_int64)
CpuWorker._fields_ = [
    ("buffer", ctypes.c_void_p),
    ("count", ctypes.c_int64),
    ("capacity", ctypes.c_int64),
    ("flush", FLUSH),
    ("scratch", ctypes.c_void_p),
    ("scratch_bytes", ctypes.c_int64),
    ("index", ctypes.c_int64),
    ("workers", ctypes.c_int64),
    ("sized_scratch", SIZED_SCRATCH),
    ("push", PUSH),
    ("stop", FLUSH),
    ("round", ctypes.c_int64),
    ("mode", ctypes.c_int64),
    ("next_mode", ctypes.c_int64),
    ("pending", ctypes.c_int64),
    ("ran_by", ctypes.c_void_p),
]
RUN = ctypes.CFUNCTYPE(None, ctypes.POINTER(CpuWorker), ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
IDLE = ctypes.CFUNCTYPE(None, ctypes.POINTER(CpuWorker), ctypes.c_void_p)


class Harness:
    """A worker with a small buffer that stands in for the core."""

    def __init__(self, dtype: Any, capacity: int = 3, scratch_bytes: int = 64, with_kind: bool = False) -> None:
        self.stride = stored_bytes(np.dtype(dtype).itemsize, with_kind)
        self.dtype = np.dtype(dtype)
        self.buffer = np.zeros(capacity * self.stride, np.uint8)
        self.scratch = np.zeros(scratch_bytes, np.uint8)
        self.regions: dict[int, np.ndarray] = {}
        self.ran_by = np.zeros(8, np.uint64)
        self.flushes = 0
        self.flushed = b""
        self.stops = 0
        self.worker = CpuWorker(
            *(self.buffer.ctypes.data, 0, capacity, FLUSH(self.flush), self.scratch.ctypes.data, scratch_bytes),
            *(0, 1, SIZED_SCRATCH(lambda worker, place, size: self.regions.setdefault(place, np.zeros(size)).ctypes.data)),
            *(PUSH(), FLUSH(self.stop), 0, 0, 0, 0, self.ran_by.ctypes.data),
        )

    def flush(self, worker: Any) -> None:
        self.flushes += 1
        self.flushed += self.buffer[: worker.contents.count * self.stride].tobytes()
        worker.contents.count = 0

    def stop(self, worker: Any) -> None:
        self.stops += 1

    def spread(self, items: Any, kind: int) -> np.ndarray:
        """Lay items out as in the queue; the kind is the last byte of those that have one."""
        items = np.asarray(items, self.dtype)
        raw = np.full((len(items), self.stride), kind, np.uint8)
        raw[:, : self.dtype.itemsize] = items.view(np.uint8).reshape(len(items), -1)
        return raw

    @property
    def pushed(self) -> list[Any]:
        self.flush(ctypes.pointer(self.worker))
        raw = np.frombuffer(self.flushed, np.uint8).reshape(-1, self.stride)[:, : self.dtype.itemsize]
        return np.ascontiguousarray(raw).view(self.dtype).ravel().tolist()

    @property
    def pushed_kinds(self) -> list[int]:
        self.flush(ctypes.pointer(self.worker))
        return np.frombuffer(self.flushed, np.uint8).reshape(-1, self.stride)[:, -1].tolist()

    def run(self, code: Any, items: Any, *args: Any, kind: int = 0) -> None:
        raw, words = self.spread(items, kind), blob(*args)
        RUN(code.run)(ctypes.byref(self.worker), raw.ctypes.data, len(raw), words.ctypes.data)


def run(task: Any, items: Any, *args: Any, dtype: Any = np.uint32, **options: Any) -> Harness:
    """Compile a task and run it over items."""
    task = task if isinstance(task, atos.Task) else atos.task(task)
    harness = Harness(dtype, **options)
    harness.run(compile_cpu(ProgramSpec(task, None, tuple(map(describe, args)), np.dtype(dtype))), items, *args)
    return harness


def degree(v, graph, depth):
    return graph.first[v + 1] - graph.first[v]


@atos.task(workload=degree)
def visit(worker, v, i, graph, depth):
    neighbor = graph.second[graph.first[v] + i]
    next_depth = depth[v] + 1
    if atos.atomic_min(depth, neighbor, next_depth) > next_depth:
        worker.push(neighbor)


def random_graph(num_vertices: int, num_edges: int) -> tuple[Pair, Any]:
    from scipy.sparse import coo_array

    rng = np.random.default_rng(1)
    source, target = rng.integers(0, num_vertices, (2, num_edges))
    matrix = coo_array((np.ones(num_edges), (source, target)), (num_vertices, num_vertices)).tocsr()
    indptr, indices = matrix.indptr.astype(np.uint32), matrix.indices.astype(np.uint32)
    return Pair(FakeArray(indptr, True), FakeArray(indices, True)), matrix


def bfs_levels(code: Any, graph: Pair, num_vertices: int) -> np.ndarray:
    depth = np.full(num_vertices, 2**32 - 1, np.uint32)
    depth[0] = 0
    frontier = [0]
    while frontier:
        harness = Harness(np.uint32, capacity=100)
        harness.run(code, frontier, graph, FakeArray(depth))
        frontier = harness.pushed
    return depth


RECORDS = {
    "8 bytes": [("vertex", "u4"), ("distance", "f4")],
    "16 bytes": [("vertex", "i8"), ("distance", "f8")],
    "12 bytes, unaligned": [("vertex", "u4"), ("distance", "f8")],
    "3 bytes": [("vertex", "u2"), ("distance", "i1")],
}
