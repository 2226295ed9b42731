"""Time sparse triangular solves by counters of dependencies, beside those of cuSPARSE where it is found, and prove each result.

python benchmarks/triangular_solve.py --device cuda --repeat 100 --columns 1 8 32

Both solve the same system of float64 in the same run, in turns. The structure has been analyzed before: ours has the matrix by
columns and the number of entries of each row, cuSPARSE its analysis; "analysis" is what that takes, with a solve. "call" is a
whole call with its result on the device; "kernels" what the launch says. A result is right if its componentwise backward error
is at most 1e-14 (Higham, Accuracy and Stability of Numerical Algorithms, 7.2); with --relaxed, wrong ones are counted.

With one right-hand side (--columns 1) cuSPARSE's routine is SpSV, with several it is SpSM. Our program stores several by rows,
and eight threads share an entry of the matrix; cuSPARSE gets the right-hand sides by columns.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

import atos_py as atos

MOST_ERROR = 1e-14
F64, I32, ZERO_BASED = 1, 2, 0  # of CUDA_R_64F, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO
BY_COLUMNS = 1  # CUSPARSE_ORDER_COL


def column_of(j, lower, values, total, missing, b, x):  # type: ignore[no-untyped-def]
    first = lower.indptr[j]
    x[j] = b[j] - total[j]
    return lower.indptr[j + 1] - first, first, x[j]


@atos.task(workload=column_of)
def solve(worker, j, k, first, solved, lower, values, total, missing, b, x):  # type: ignore[no-untyped-def]
    """Add what row j has found to a row that waits for it, which runs when it waits for nothing else."""
    i = lower.indices[first + k]
    atos.accumulate(total, i, values[first + k] * solved)
    worker.arrive(missing, i, push=i)


@atos.task(workload=column_of)
def solve_relaxed(worker, j, k, first, solved, lower, values, total, missing, b, x):  # type: ignore[no-untyped-def]
    """Count without an order, for the time that the order takes: nothing promises that the sums are complete."""
    i = lower.indices[first + k]
    atos.accumulate(total, i, values[first + k] * solved)
    if atos.atomic_add(missing, i, -1) == 1:
        worker.push(i)


def waiting(j, lower, values, total, missing, b, x):  # type: ignore[no-untyped-def]
    first = lower.indptr[j]
    return lower.indptr[j + 1] - first + 1, first


@atos.task(workload=waiting, group=8)
def solve_several(worker, j, k, first, lower, values, total, missing, b, x):  # type: ignore[no-untyped-def]
    """Add what row j has found for each right-hand side to a row that waits for it, or in one more iteration store it."""
    group, entry = worker.group, first + k
    if entry == lower.indptr[j + 1]:
        for c in group.split(b.shape[1]):
            x[j, c] = b[j, c] - total[j, c]
    else:
        i = lower.indices[entry]
        for c in group.split(b.shape[1]):
            atos.accumulate(total, (i, c), values[entry] * (b[j, c] - total[j, c]))
        group.sync()
        if group.rank == 0:
            worker.arrive(missing, i, push=i)


def make_matrices(size: int) -> dict[str, scipy.sparse.csr_matrix]:
    """Return strictly lower triangular matrices whose rows have absolute sums of one half."""
    rng = np.random.default_rng(3)

    def lower_of(n: int, u: np.ndarray, v: np.ndarray) -> scipy.sparse.csr_matrix:
        low, high = np.minimum(u, v), np.maximum(u, v)
        low, high = low[low != high], high[low != high]
        matrix = scipy.sparse.coo_matrix((rng.random(len(low)) - 0.5, (high, low)), shape=(n, n)).tocsr()
        scale = 0.5 / np.maximum(np.asarray(abs(matrix).sum(1)).ravel(), 1e-300)
        return (scipy.sparse.diags(scale) @ matrix).tocsr()

    side = 10 * size
    place = np.arange(side**3).reshape(side, side, side)
    pairs = ((place[:-1], place[1:]), (place[:, :-1], place[:, 1:]), (place[:, :, :-1], place[:, :, 1:]))
    u, v = (np.concatenate([pair[end].ravel() for pair in pairs]) for end in (0, 1))
    shuffled = rng.permutation(side**3)
    matrices = {
        f"grid {side}^3": lower_of(side**3, u, v),
        f"grid {side}^3, permuted": lower_of(side**3, shuffled[u], shuffled[v]),
    }
    scale = 8 + size
    for name, graph in {
        f"R-MAT {scale}": atos.generate.rmat(scale, 8, device="cpu"),
        f"road:{100 * size}": atos.generate.road(100 * size, device="cpu"),
    }.items():
        tails = np.repeat(np.arange(graph.num_vertices), graph.degrees())
        matrices[name] = lower_of(graph.num_vertices, tails, graph.indices.to_numpy().astype(np.int64))
    return matrices


class Peer:
    """cuSPARSE's triangular solve of one matrix, by its C interface: SpSV of a vector, SpSM of the columns of a matrix."""

    def __init__(self, matrix: scipy.sparse.csr_matrix, b: Any, x: Any) -> None:
        import cupy

        self.library, self.cupy = ctypes.CDLL("libcusparse.so.12"), cupy
        n, entries = matrix.shape[0], matrix.nnz
        self.routine = "cusparseSpSV" if b.ndim == 1 else "cusparseSpSM"
        self.operations = [0] if b.ndim == 1 else [0, 0]  # of the matrix, and of the right-hand sides: none
        self.kept = [
            cupy.asarray(part) for part in (matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32), matrix.data)
        ]
        self.sides = b, x  # whose memory is not to be freed
        self.handle, self.matrix, self.b, self.x = (ctypes.c_void_p() for _ in range(4))
        pointers = [ctypes.c_void_p(part.data.ptr) for part in self.kept]
        self.call("cusparseCreate", ctypes.byref(self.handle))
        sizes = [ctypes.c_int64(value) for value in (n, n, entries)]
        self.call("cusparseCreateCsr", ctypes.byref(self.matrix), *sizes, *pointers, I32, I32, ZERO_BASED, F64)
        for attribute, value in ((0, 0), (1, 1)):  # the lower part, with ones on the diagonal
            word = ctypes.c_int(value)
            self.call("cusparseSpMatSetAttribute", self.matrix, attribute, ctypes.byref(word), ctypes.c_size_t(4))
        for vector, array in ((self.b, b), (self.x, x)):
            place, several = ctypes.c_void_p(array.data.ptr), [ctypes.c_int64(each) for each in (*array.shape, n)]
            if array.ndim == 1:
                self.call("cusparseCreateDnVec", ctypes.byref(vector), several[0], place, F64)
            else:
                assert array.flags.f_contiguous
                self.call("cusparseCreateDnMat", ctypes.byref(vector), *several, place, F64, BY_COLUMNS)
        self.one = ctypes.c_double(1.0)
        self.descriptor = ctypes.c_void_p()

    def call(self, name: str, *args: Any) -> None:
        status = getattr(self.library, name)(*args)
        if status:
            raise RuntimeError(f"{name} returned {status}")

    def analyze(self) -> None:
        if self.descriptor:
            self.call(f"{self.routine}_destroyDescr", self.descriptor)
        self.call(f"{self.routine}_createDescr", ctypes.byref(self.descriptor))
        size = ctypes.c_size_t()
        self.call(f"{self.routine}_bufferSize", *self.arguments(), ctypes.byref(size))
        self.buffer = self.cupy.empty(max(size.value, 1), np.uint8)
        self.call(f"{self.routine}_analysis", *self.arguments(), ctypes.c_void_p(self.buffer.data.ptr))

    def arguments(self) -> list[Any]:
        one = ctypes.byref(self.one)
        return [self.handle, *self.operations, one, self.matrix, self.b, self.x, F64, 0, self.descriptor]

    def solve(self) -> None:
        self.call(f"{self.routine}_solve", *self.arguments())
        self.cupy.cuda.Device().synchronize()


def median_and_spread(times: list[float]) -> str:
    return f"{statistics.median(times):.3f} ({min(times):.3f} to {max(times):.3f})"


def timed(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - begin)


def measure(
    name: str, matrix: scipy.sparse.csr_matrix, columns: int, device: atos.Device, worker: str, repeat: int, task: atos.Task
) -> None:
    """Print the row of a matrix with so many right-hand sides, of which each result is proved."""
    n, rng = matrix.shape[0], np.random.default_rng(1)
    by_columns = matrix.tocsc()
    by_columns.sort_indices()
    lower = atos.Graph.from_csr(by_columns.indptr.astype(np.int64), by_columns.indices.astype(np.int32), device=device)
    b = rng.random(n if columns == 1 else (n, columns))
    values = atos.asarray(by_columns.data, readonly=True, device=device)
    given = atos.asarray(b, readonly=True, device=device)
    degrees = np.diff(matrix.indptr).astype(np.int32)
    waits_for, first = (atos.asarray(each, device=device) for each in (degrees, np.flatnonzero(degrees == 0).astype(np.uint32)))
    total, x = (atos.zeros(b.shape, dtype=np.float64, device=device) for _ in range(2))
    queue = atos.Queue(2 * n, device=device)
    whole, absolute = matrix + scipy.sparse.identity(n), abs(matrix) + scipy.sparse.identity(n)
    kernels, errors = [], []

    def ours() -> None:
        missing = waits_for.copy()
        total.fill(0)
        queue.push(first)
        kernels.append(queue.launch(task, lower, values, total, missing, given, x, worker=worker).milliseconds)

    def error_of(solution: np.ndarray) -> float:
        return float((np.abs(whole @ solution - b) / (absolute @ np.abs(solution) + np.abs(b))).max())

    peer = None
    if device.kind == "cuda":
        import cupy

        out = cupy.zeros(b.shape, order="F")
        peer = Peer(matrix, cupy.asarray(b, order="F"), out)
        peer.analyze()
    calls, peer_calls, peer_whole = [], [], []
    for turn in range(repeat + 3):
        calls.append(timed(ours))
        errors.append(error_of(x.to_numpy()))
        if peer:
            peer_calls.append(timed(peer.solve))
            assert error_of(out.get()) <= MOST_ERROR, "cuSPARSE's result is wrong"
            if turn % 10 == 0:
                peer_whole.append(timed(lambda: (peer.analyze(), peer.solve())))
    wrong = sum(error > MOST_ERROR for error in errors)
    assert not wrong or task is solve_relaxed, f"backward error {max(errors)}"
    row = f"| {name} | {columns} | {worker} | {median_and_spread(kernels[3:])} | {median_and_spread(calls[3:])} | "
    if peer:
        row += f"{median_and_spread(peer_calls[3:])} | {median_and_spread(peer_whole[1:] or peer_whole)} | "
    print(f"{row}{max(errors):.1e}{f', {wrong} of {len(errors)} wrong' if wrong else ''} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default=None, help="such as cuda or cpu; by default a GPU, if there is one")
    parser.add_argument(
        "--size", type=int, default=10, help="grids of 10 SIZE a side, R-MAT 8 + SIZE, roads of 100 SIZE a side"
    )
    parser.add_argument("--repeat", type=int, default=30, help="solves of each matrix (default: 30)")
    parser.add_argument("--workers", nargs="+", default=["cta", "warp"])
    parser.add_argument("--columns", nargs="+", type=int, default=[1], help="numbers of right-hand sides (default: 1)")
    parser.add_argument("--relaxed", action="store_true", help="count without an order, to see what the order takes")
    options = parser.parse_args()
    if options.relaxed and options.columns != [1]:
        parser.error("--relaxed is for one right-hand side")
    one, device = solve_relaxed if options.relaxed else solve, atos.device(options.device)
    print("ms: median (least to most)")
    peers = "cuSPARSE solve | cuSPARSE analysis and solve | " if device.kind == "cuda" else ""
    print(f"| matrix | right-hand sides | worker | kernels | call | {peers}worst backward error |")
    for name, matrix in make_matrices(options.size).items():
        for columns, worker in itertools.product(options.columns, options.workers):
            measure(name, matrix, columns, device, worker, options.repeat, one if columns == 1 else solve_several)


if __name__ == "__main__":
    os.environ.setdefault("ATOS_TIER", "best")  # first launches wait for the kernels that are timed
    main()
