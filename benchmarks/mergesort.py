"""Time the mergesort of `examples/mergesort.py` beside NumPy's and CuPy's sorts; print a verified table in Markdown.

    python benchmarks/mergesort.py 10_000_000 100_000_000 --device cuda
    python benchmarks/mergesort.py 1_000_000 10_000_000 --device cpu --repeat 3
    python benchmarks/mergesort.py 100_000_000 --device cuda --leaf 2304 4608 --run 9 17 --num-threads 128 256

Random numbers are sorted, and each result is compared with `numpy.sort`. Times are medians in ms, with the least and the most,
after a first run that is not counted: of kernels on a GPU, of the launch on a CPU, and of CuPy's sort between two events.
Copies to the device and back are not in the times. Of options with several values all combinations are tried. A worker has
scratch memory for two leaves or two pieces.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import atos_py as atos

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
import mergesort


def random_numbers(n: int, dtype: str) -> Any:
    """Return numbers over the whole range of an integer type, or between 0 and 1."""
    rng = np.random.default_rng(0)
    if np.issubdtype(dtype, np.floating):
        return rng.random(n, dtype=dtype)  # type: ignore[arg-type]  # float32 or float64
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, n, dtype=dtype, endpoint=True)  # type: ignore[arg-type]  # a name of a type


def by_tasks(numbers: Any, expected: Any, given: argparse.Namespace, take: str, **options: Any) -> list[float]:
    """Return the times of several launches."""
    n, leaf, piece = len(numbers), options.pop("leaf"), options.pop("piece")
    data = atos.zeros(2 * n, dtype=numbers.dtype, device=given.device)
    joins = atos.Joins(given.capacity, combine=None, device=given.device)
    queue = atos.Queue(given.capacity, dtype=mergesort.PART, take=take, device=given.device)
    options["shared_memory"] = 2 * max(leaf, piece) * numbers.itemsize
    tasks, times = (mergesort.sort, mergesort.merge, mergesort.piece), []
    for _ in range(given.repeat + 1):
        data[:n] = numbers
        queue.push([(0, 0, 0, n, 0)])
        times.append(queue.launch(tasks, data, leaf, piece, joins, fetch_size=given.fetch_size, **options).milliseconds)
        if joins.pending or not np.array_equal(data[:n], expected):
            raise SystemExit(f"{n:,} numbers by {options}, leaves of {leaf} and pieces of {piece}: not in order")
    return times[1:]


def by_numpy(numbers: Any, repeat: int) -> list[float]:
    """Return the times of NumPy's sort of a copy."""
    times = []
    for _ in range(repeat + 1):
        copy = numbers.copy()
        begin = time.perf_counter()
        copy.sort()
        times.append((time.perf_counter() - begin) * 1e3)
    return times[1:]


def by_cupy(numbers: Any, expected: Any, repeat: int, device: int) -> list[float] | None:
    """Return the times of CuPy's sort on a GPU, if CuPy is there."""
    try:
        import cupy
    except ImportError:
        return None
    times = []
    with cupy.cuda.Device(device):
        given = cupy.asarray(numbers)
        for _ in range(repeat + 1):
            copy, begin, end = given.copy(), cupy.cuda.Event(), cupy.cuda.Event()
            begin.record()
            copy.sort()
            end.record()
            end.synchronize()
            times.append(cupy.cuda.get_elapsed_time(begin, end))
            if not np.array_equal(cupy.asnumpy(copy), expected):
                raise SystemExit(f"CuPy: {len(numbers):,} numbers are not in order")
    return times[1:]


def rows(n: int, given: argparse.Namespace) -> Iterator[tuple[Any, ...]]:
    """Yield for each program what it is, and its times."""
    numbers, device = random_numbers(n, given.dtype), atos.device(given.device)
    expected = np.sort(numbers)
    for run, leaf, piece, take, worker, threads in itertools.product(
        given.run, given.leaf, given.piece or [None], given.take, given.worker, given.num_threads or [None]
    ):
        mergesort.RUN = run
        sizes = {"leaf": leaf, "piece": piece or leaf, "worker": worker, "num_threads": threads}
        times = by_tasks(numbers, expected, given, take, **sizes)
        yield f"tasks, {device}", worker, threads or "", leaf, piece or leaf, run, take, times
    if "numpy" in given.peers:
        yield "numpy.sort, one CPU thread", *[""] * 6, by_numpy(numbers, given.repeat)
    if "cupy" in given.peers and device.kind == "cuda":
        times_of_cupy = by_cupy(numbers, expected, given.repeat, device.index)
        if times_of_cupy is not None:
            yield f"cupy.sort, {device}", *[""] * 6, times_of_cupy


def main() -> None:
    """Time all programs, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", type=int, nargs="*", default=[1_000_000])
    parser.add_argument("--device", default=None)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--dtype", choices=("int32", "int64", "uint64", "float32", "float64"), default="int32")
    parser.add_argument("--worker", choices=("thread", "warp", "cta"), nargs="+", default=["cta"])
    parser.add_argument("--leaf", type=int, nargs="+", default=[mergesort.LEAF])
    parser.add_argument("--piece", type=int, nargs="+", help="by default as large as a leaf")
    parser.add_argument("--run", type=int, nargs="+", default=[mergesort.RUN], help="numbers that a thread merges at a time")
    parser.add_argument("--num-threads", type=int, nargs="+", help="of a block")
    parser.add_argument("--take", choices=("oldest", "newest"), nargs="+", default=["oldest"])
    parser.add_argument("--fetch-size", type=int, default=1)
    parser.add_argument("--max-registers", type=int, help="of a thread")
    parser.add_argument("--capacity", type=int, default=1 << 17, help="items of the queue, and joins")
    parser.add_argument("--peers", choices=("numpy", "cupy"), nargs="*", default=["numpy", "cupy"])
    given = parser.parse_args()

    if given.max_registers:
        mergesort.sort = atos.task(max_registers=given.max_registers)(mergesort.sort.body)
    print("| numbers | program | worker | threads | leaf | piece | run | take | ms | M numbers/s |\n|" + " --- |" * 10)
    for n in given.sizes:
        for *cells, times in rows(n, given):
            median = statistics.median(times)
            spread = f"{median:.2f} ({min(times):.2f} to {max(times):.2f})"
            print(f"| {n:,} | {' | '.join(map(str, cells))} | {spread} | {n / median / 1e3:,.1f} |", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("ATOS_TIER", "best")  # first launches wait for the kernels that are timed
    main()
