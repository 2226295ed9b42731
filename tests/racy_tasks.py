"""Small programs with a race, and the same programs mended, for tests of `debug="races"`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

import atos_py as atos


class Program(NamedTuple):
    """A launch: tasks, the items that the host pushes, arguments made anew for each run, and options of launch and queue."""

    tasks: Any
    items: Any
    args: Callable[[], Sequence[Any]]
    launch: Mapping[str, Any] = MappingProxyType({})
    queue: Mapping[str, Any] = MappingProxyType({})

    def run(self, debug: bool | str = "races") -> tuple[atos.LaunchStats, list[Any]]:
        """Launch it; return the statistics, and what the arrays have then."""
        queue = atos.Queue(capacity=1000, device="cpu", **self.queue)
        for item, how in self.items if isinstance(self.items, list) else [(self.items, {})]:
            queue.push(item, **how)
        args = self.args()
        stats = queue.launch_thread(self.tasks, *args, debug=debug, **self.launch)
        return stats, [arg.to_numpy() for arg in args if isinstance(arg, atos.Array)]


class Pair(NamedTuple):
    """A program with a race in an array, and the mended one."""

    array: str
    racy: Program
    mended: Program


def ints(*sizes: int) -> Callable[[], list[atos.Array]]:
    return lambda: [atos.zeros(size, dtype=np.int64, device="cpu") for size in sizes]


PAIRS: dict[str, Pair] = {}


def pair(name: str, array: str, racy: Program, mended: Program) -> None:
    assert name not in PAIRS
    PAIRS[name] = Pair(array, racy, mended)


def same(name: str, array: str, racy: Any, mended: Any, items: Any, args: Any, launch: Any = None, queue: Any = None) -> None:
    """Add a pair whose programs differ in their tasks alone."""
    rest = items, args, launch or {}, queue or {}
    pair(name, array, Program(racy, *rest), Program(mended, *rest))


# Updates by plain reads and writes.


@atos.task
def plain_sum(worker, v, total):
    total[0] += v


@atos.task
def atomic_sum(worker, v, total):
    atos.atomic_add(total, 0, v)


@atos.task
def plain_max(worker, v, best):
    best[0] = max(best[0], v)


@atos.task
def atomic_max(worker, v, best):
    atos.atomic_max(best, 0, v)


def add_plainly(total, v):
    total[v % 3] += 1


def add_by_atomic(total, v):
    atos.atomic_add(total, v % 3, 1)


@atos.task
def sum_in_helper(worker, v, total):
    add_plainly(total, v)


@atos.task
def atomic_in_helper(worker, v, total):
    add_by_atomic(total, v)


same("sum", "total", plain_sum, atomic_sum, range(1, 9), ints(1))
same("maximum", "best", plain_max, atomic_max, range(1, 9), ints(1))
same("helper", "total", sum_in_helper, atomic_in_helper, range(9), ints(3))


# Plain reads beside atomic operations whose order shows.


@atos.task
def peek_at_count(worker, v, count, out):
    atos.atomic_add(count, 0, 1)
    out[v] = count[0]


@atos.task
def load_count(worker, v, count, out):
    atos.atomic_add(count, 0, 1)
    out[v] = atos.atomic_load(count, 0)


@atos.task
def read_exchanged(worker, v, box, out):
    if v == 0:
        atos.atomic_exch(box, 0, 7)
    else:
        out[v] = box[0]


@atos.task
def load_exchanged(worker, v, box, out):
    if v == 0:
        atos.atomic_exch(box, 0, 7)
    else:
        out[v] = atos.atomic_load(box, 0)


@atos.task
def read_toggled(worker, v, bits, out):
    if v < 4:
        atos.atomic_xor(bits, 0, 1 << v)
    else:
        out[v] = bits[0]


@atos.task
def toggle_in_rounds(worker, v, bits, out):
    if v < 4:
        atos.atomic_xor(bits, 0, 1 << v)
        worker.push(v + 4)
    else:
        out[v] = bits[0]


@atos.task
def read_accumulated(worker, v, total, out):
    atos.accumulate(total, 0, v)
    if v == 1:
        worker.push(100)
    if v == 100:
        out[0] = total[0]


@atos.task
def arrive_with_sum(worker, v, total, out):
    if v == 100:
        out[0] = total[0]
    else:
        atos.accumulate(total, 0, v)
        worker.arrive(out, 1, push=100)


same("count", "count", peek_at_count, load_count, range(9), ints(1, 9))
same("exchange", "box", read_exchanged, load_exchanged, range(3), ints(1, 9))
pair(
    "toggle",
    "bits",
    Program(read_toggled, range(8), ints(1, 9)),
    Program(toggle_in_rounds, range(4), ints(1, 9), {"barrier": True}),
)
same(
    "accumulate",
    "total",
    read_accumulated,
    arrive_with_sum,
    range(1, 9),
    lambda: [atos.zeros(1, dtype=np.int64, device="cpu"), atos.asarray(np.array([0, 8]), device="cpu")],
)


# Counting dependencies.

EDGES = [(0, 3), (1, 3), (2, 3), (1, 4), (2, 4), (3, 5), (4, 5)]
GRAPH = atos.Graph.from_edges(*np.array(EDGES).T, device="cpu")


def column(j, graph, total, missing, x):
    x[j] = 1 + total[j]
    return graph.indptr[j + 1] - graph.indptr[j], graph.indptr[j], x[j]


@atos.task(workload=column)
def count_dependencies(worker, j, k, first, xj, graph, total, missing, x):
    i = graph.indices[first + k]
    atos.atomic_add(total, i, xj)
    if atos.atomic_add(missing, i, -1) == 1:
        worker.push(i)


@atos.task(workload=column)
def arrive_at_dependencies(worker, j, k, first, xj, graph, total, missing, x):
    i = graph.indices[first + k]
    atos.atomic_add(total, i, xj)
    worker.arrive(missing, i, push=i)


def system() -> list[Any]:
    total, x = ints(6, 6)()
    return [GRAPH, total, atos.asarray(np.bincount([v for _, v in EDGES], minlength=6), device="cpu"), x]


@atos.task
def last_by_atomic(worker, v, parts, missing):
    parts[v] = v
    if atos.atomic_add(missing, 0, -1) == 1:
        parts[3] = parts[0] + parts[1] + parts[2]


@atos.task
def last_by_arrive(worker, v, parts, missing):
    parts[v] = v
    if worker.arrive(missing, 0):
        parts[3] = parts[0] + parts[1] + parts[2]


@atos.task
def last_by_order(worker, v, parts, missing):
    parts[v] = v
    if atos.atomic_add(missing, 0, -1, memory_order="acq_rel") == 1:
        parts[3] = parts[0] + parts[1] + parts[2]


def parts_of_three() -> list[Any]:
    return [atos.zeros(4, dtype=np.int64, device="cpu"), atos.full(1, 3, dtype=np.int64, device="cpu")]


same("dependency count", "total", count_dependencies, arrive_at_dependencies, range(3), system)
same("last one", "parts", last_by_atomic, last_by_arrive, range(3), parts_of_three)
same("last one by order", "parts", last_by_atomic, last_by_order, range(3), parts_of_three)


# Pushes.


@atos.task
def push_then_write(worker, v, box, out):
    if v == 0:
        worker.push(1)
        box[0] = 42
    else:
        out[0] = box[0]


@atos.task
def write_then_push(worker, v, box, out):
    if v == 0:
        box[0] = 42
        worker.push(1)
    else:
        out[0] = box[0]


@atos.task
def by_queue_order(worker, v, box, out):
    if v == 0:
        box[0] = 42
    else:
        out[0] = box[0]


@atos.task
def siblings(worker, v, box, out):
    if v == 0:
        worker.push(1)
        worker.push(2)
    elif v == 1:
        box[0] = 42
    else:
        out[0] = box[0]


@atos.task
def grandchild(worker, v, box, out):
    if v == 0:
        worker.push(1)
    elif v == 1:
        box[0] = 42
        worker.push(2)
    else:
        out[0] = box[0]


@atos.task
def produce_alone(worker, v, box, out):
    box[v] = v


@atos.task
def consume(worker, v, box, out):
    out[v] = box[v]


@atos.task
def produce_and_push(worker, v, box, out):
    box[v] = v
    worker.push(v, task=consume)


@atos.task
def fill_late(worker, k, pool, out):
    if k == 99:
        n = pool.take()
        worker.push(n)
        pool.value[n] = 5
    else:
        out[0] = pool.value[k]


@atos.task
def fill_early(worker, k, pool, out):
    if k == 99:
        n = pool.take()
        pool.value[n] = 5
        worker.push(n)
    else:
        out[0] = pool.value[k]


def pool_and_out() -> list[Any]:
    return [atos.Pool(np.dtype([("value", np.int64)]), 4, device="cpu"), atos.zeros(1, dtype=np.int64, device="cpu")]


same("push", "box", push_then_write, write_then_push, 0, ints(1, 1))
pair("queue order", "box", Program(by_queue_order, range(2), ints(1, 1)), Program(write_then_push, 0, ints(1, 1)))
same("siblings", "box", siblings, grandchild, 0, ints(1, 1))
pair(
    "priorities",
    "box",
    Program(by_queue_order, [(0, {"priority": 0}), (1, {"priority": 5})], ints(1, 1), queue={"buckets": 4}),
    Program(write_then_push, [(0, {"priority": 0})], ints(1, 1), queue={"buckets": 4}),
)
pair(
    "kinds",
    "box",
    Program([produce_alone, consume], [(1, {"task": produce_alone}), (1, {"task": consume})], ints(2, 2)),
    Program([produce_and_push, consume], [(1, {"task": produce_and_push})], ints(2, 2)),
)
same("pool", "pool.value", fill_late, fill_early, 99, pool_and_out)


# Releases and acquisitions.


@atos.task
def plain_flag(worker, v, box, ready, out):
    if v == 0:
        box[0] = 42
        ready[0] = 1
    elif ready[0] == 0:
        worker.push(v)
    else:
        out[0] = box[0]


@atos.task
def relaxed_flag(worker, v, box, ready, out):
    if v == 0:
        box[0] = 42
        atos.atomic_store(ready, 0, 1)
    elif atos.atomic_load(ready, 0) == 0:
        worker.push(v)
    else:
        out[0] = box[0]


@atos.task
def released_flag(worker, v, box, ready, out):
    if v == 0:
        box[0] = 42
        atos.atomic_store(ready, 0, 1, memory_order="release")
    elif atos.atomic_load(ready, 0, memory_order="acquire") == 0:
        worker.push(v)
    else:
        out[0] = box[0]


@atos.task
def one_fence(worker, v, box, ready, out):
    if v == 0:
        box[0] = 42
        atos.atomic_store(ready, 0, 1)
    elif atos.atomic_load(ready, 0) == 0:
        worker.push(v)
    else:
        atos.fence(memory_order="acquire")
        out[0] = box[0]


@atos.task
def two_fences(worker, v, box, ready, out):
    if v == 0:
        box[0] = 42
        atos.fence(memory_order="release")
        atos.atomic_store(ready, 0, 1)
    elif atos.atomic_load(ready, 0) == 0:
        worker.push(v)
    else:
        atos.fence(memory_order="acquire")
        out[0] = box[0]


@atos.task
def relaxed_lock(worker, v, lock, data):
    if atos.atomic_cas(lock, 0, 0, 1) != 0:
        worker.push(v)
    else:
        data[0] += v
        atos.atomic_store(lock, 0, 0)


@atos.task
def ordered_lock(worker, v, lock, data):
    if atos.atomic_cas(lock, 0, 0, 1, memory_order="acquire") != 0:
        worker.push(v)
    else:
        data[0] += v
        atos.atomic_store(lock, 0, 0, memory_order="release")


same("plain flag", "ready", plain_flag, released_flag, range(2), ints(1, 1, 1))
same("relaxed flag", "box", relaxed_flag, released_flag, range(2), ints(1, 1, 1))
same("fence", "box", one_fence, two_fences, range(2), ints(1, 1, 1))
same("lock", "data", relaxed_lock, ordered_lock, range(1, 6), ints(1, 1))


# Rounds, iterations and joins.


@atos.task
def next_to(worker, v, a, size):
    if v < size:
        a[v] = v
        worker.push(v + size)
    else:
        a[v] = a[(v + 1) % size]


def eight(v, a, b):
    return 8


@atos.task(workload=eight)
def all_write(worker, v, i, a, b):
    a[0] = i


@atos.task(workload=eight)
def one_writes(worker, v, i, a, b):
    if i == 3:
        a[0] = i


@atos.task(workload=eight)
def shift_in_place(worker, v, i, a, b):
    a[i] = a[(i + 1) % 8] + 1


@atos.task(workload=eight)
def shift_out(worker, v, i, a, b):
    b[i] = a[(i + 1) % 8] + 1


@atos.task
def corner(worker, v, grid):
    grid[v, 0] = v + 1
    grid[0, (v + 1) % 4] = v + 2


@atos.task
def rows(worker, v, grid):
    grid[v, 0] = v + 1
    grid[v, 1] = v + 2


SPAN = np.dtype([("leaf", np.int32), ("join", np.int64)])


@atos.task
def sum_too_early(worker, part, data, out, joins):
    if part.leaf == -1:
        j = worker.open(joins, 2)
        worker.push((0, j))
        worker.push((1, j))
        worker.then(joins, j, (-3, j))
        worker.push((-2, j))
    elif part.leaf == -2:
        out[0] = data[0] + data[1]
    elif part.leaf == -3:
        worker.take(joins, part.join)
    else:
        data[part.leaf] = 5
        worker.arrive_at(joins, part.join)


@atos.task
def sum_at_the_end(worker, part, data, out, joins):
    if part.leaf == -1:
        j = worker.open(joins, 2)
        worker.push((0, j))
        worker.push((1, j))
        worker.then(joins, j, (-3, j))
    elif part.leaf == -3:
        worker.take(joins, part.join)
        out[0] = data[0] + data[1]
    else:
        data[part.leaf] = 5
        worker.arrive_at(joins, part.join)


def joined() -> list[Any]:
    return [*ints(2, 1)(), atos.Joins(10, device="cpu")]


pair(
    "rounds",
    "a",
    Program(next_to, range(8), lambda: [*ints(16)(), 8]),
    Program(next_to, range(8), lambda: [*ints(16)(), 8], {"barrier": True}),
)
same("iterations", "a", all_write, one_writes, 0, ints(8, 8))
same("in place", "a", shift_in_place, shift_out, 0, ints(8, 8))
same("corner", "grid", corner, rows, range(4), lambda: [atos.zeros((4, 4), dtype=np.int64, device="cpu")])
same("join", "data", sum_too_early, sum_at_the_end, [((-1, 0), {})], joined, queue={"dtype": SPAN})
