"""Tasks that several files of tests launch, above all task graphs whose totals are known, and the schedules to run them in."""

from __future__ import annotations

import functools
import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st
from item_types import DTYPES, INTEGERS

import atos_py as atos
from atos_py.errors import QueueFullError


class Forest(NamedTuple):
    """A task graph in which each node but the roots is the child of exactly one: those from `first[v]` to `first[v + 1]`."""

    first: Any
    level: Any
    of_level: Any  # nodes of each level


class Counts(NamedTuple):
    """What running a forest leaves behind."""

    seen: Any  # runs of each node
    done: Any  # nodes of each level that ran
    early: Any  # nodes that ran before the level above was over


@functools.lru_cache
def forest_on_host(num_nodes: int, num_roots: int = 1, most: int = 4, seed: int = 0) -> Forest:
    """Return a random forest; with `most=1` it is a chain."""
    children = np.random.default_rng(seed).integers(0, most, num_nodes, endpoint=True)
    first, level = np.zeros(num_nodes + 1, np.int64), np.zeros(num_nodes, np.int32)
    end = num_roots
    for v in range(num_nodes):
        begin, end = end, min(num_nodes, end + int(children[v] or end == v + 1))
        first[v] = begin
        level[begin:end] = level[v] + 1
    first[num_nodes] = num_nodes
    return Forest(first, level, np.bincount(level).astype(np.int32))


def on_device(forest: Forest, device: atos.Device) -> tuple[Forest, Counts]:
    """Return a forest and counts of zero on a device."""
    counts = (len(forest.level), len(forest.of_level), 1)
    return (
        Forest(*(atos.asarray(part, device=device, readonly=True) for part in forest)),
        Counts(*(atos.zeros(n, dtype=np.int32, device=device) for n in counts)),
    )


def arrive(v, forest, counts):
    """Count a node, and find out whether the level above it was over."""
    level = forest.level[v]
    if level > 0 and counts.done[level - 1] < forest.of_level[level - 1]:
        atos.atomic_add(counts.early, 0, 1)
    atos.atomic_add(counts.seen, v, 1)
    atos.atomic_add(counts.done, level, 1)


def plan(item, forest, counts):
    v = np.int64(item)
    arrive(v, forest, counts)
    return forest.first[v + 1] - forest.first[v], forest.first[v]


@atos.task(workload=plan)
def grow(worker, item, i, first, forest, counts):
    """Push child i of a node."""
    worker.push(first + i)


@atos.task
def grow_flat(worker, item, forest, counts):
    """Push the children of a node with all threads of the worker."""
    v = np.int64(item)
    if worker.rank == 0:
        arrive(v, forest, counts)
    for child in worker.split(range(forest.first[v], forest.first[v + 1])):
        worker.push(child)


def plan_record(item, forest, counts):
    v = np.int64(item[0])
    if item[1] != v + 0.5:
        atos.atomic_add(counts.early, 0, 1 << 20)
    arrive(v, forest, counts)
    return forest.first[v + 1] - forest.first[v], forest.first[v]


@atos.task(workload=plan_record)
def grow_record(worker, item, i, first, forest, counts):
    """Push child i of a node with something that goes along."""
    worker.push((first + i, first + i + 0.5))


def plan_large(item, forest, counts):
    v = np.int64(item.vertex)
    if item.distance != v + 0.5 or item.parent != np.uint64(3 * v) or item.bound != -v:
        atos.atomic_add(counts.early, 0, 1 << 20)
    arrive(v, forest, counts)
    return forest.first[v + 1] - forest.first[v], forest.first[v]


@atos.task(workload=plan_large)
def grow_large(worker, item, i, first, forest, counts):
    """Push child i of a node with as much as goes along."""
    child = first + i
    worker.push((child, child + 0.5, 3 * child, -child))


TASKS = {**dict.fromkeys(INTEGERS, grow), "12 bytes, unaligned": grow_record, "16 bytes": grow_record, "32 bytes": grow_large}


def nodes_as_items(nodes: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if dtype.names is None:
        return nodes.astype(dtype)
    items = np.zeros(len(nodes), dtype)
    items[dtype.names[0]], items[dtype.names[1]] = nodes, nodes + 0.5
    for name, values in zip(dtype.names[2:], (3 * nodes, -nodes), strict=False):
        items[name] = values
    return items


def items_as_nodes(items: np.ndarray) -> np.ndarray:
    return items if items.dtype.names is None else items[items.dtype.names[0]]


def launch(queue: atos.Queue, worker: str, *args: Any, **options: Any) -> atos.LaunchStats:
    return queue.launch(*args, worker=worker, **options)


def assert_each_once(seen: np.ndarray) -> None:
    wrong = np.flatnonzero(seen != 1)
    assert not len(wrong), (
        f"{len(wrong)} of {len(seen)} tasks did not run once, such as {wrong[0]}, which ran {seen[wrong[0]]} times"
    )


def assert_nothing_is_missing(queue: atos.Queue, forest: Forest, counts: Counts, error: QueueFullError) -> None:
    """After a launch that ended early, exactly the children of what ran that have not run themselves are pending."""
    seen = counts.seen.to_numpy()
    assert seen.max(initial=0) <= 1
    ran = np.flatnonzero(seen)
    edges = np.zeros(len(seen) + 1, int)  # how many ranges of children begin at a node, less those that end there
    np.add.at(edges, [0, *forest.first[ran]], 1)
    np.add.at(edges, [forest.first[0], *forest.first[ran + 1]], -1)
    expected = (np.cumsum(edges[:-1]) > 0) & (seen == 0)
    pending = np.sort(items_as_nodes(queue.peek()).astype(np.int64))
    assert pending.tolist() == np.flatnonzero(expected).tolist()
    assert (error.pending, error.lost, error.capacity) == (len(pending), 0, queue.capacity)
    assert len(queue) == error.pending > queue.capacity


def run_through(queue: atos.Queue, worker: str, forest: Forest, device: atos.Device, **options: Any) -> int:
    """Run a forest to its end, making the queue larger as often as it fills; how often that was."""
    there, counts = on_device(forest, device)
    queue.push(nodes_as_items(np.arange(forest.first[0]), queue.dtype))
    name = next(name for name, dtype in DTYPES.items() if dtype == queue.dtype)
    filled = 0
    while True:
        try:
            launch(queue, worker, TASKS[name], there, counts, **options)
            break
        except QueueFullError as error:
            assert_nothing_is_missing(queue, forest, counts, error)
            with pytest.raises(QueueFullError, match="resize it first") as refused:
                launch(queue, worker, TASKS[name], there, counts, **options)
            assert_nothing_is_missing(queue, forest, counts, refused.value)
            queue.resize(max(error.pending, queue.capacity + queue.capacity // 4))
            filled += 1
    assert_each_once(counts.seen.to_numpy())
    assert len(queue) == 0
    if options.get("barrier"):
        assert counts.early[0] == 0
    assert counts.early[0] < 1 << 20  # all records were whole
    return filled


SCHEDULES = list(itertools.product((True, False), (True, False)))
every_schedule = pytest.mark.parametrize(("persistent", "barrier"), SCHEDULES, ids=lambda on: str(on).lower())


@atos.task
def count_item(worker, item, counts):
    if worker.rank == 0:
        atos.atomic_add(counts, 0, 1)


configurations = st.fixed_dictionaries(
    {
        "persistent": st.booleans(),
        "barrier": st.booleans(),
        "fetch_size": st.sampled_from([1, 2, 7, 32, 128, 512]),
        "num_blocks": st.sampled_from([1, 2, 3, 8]),
        "num_threads": st.sampled_from([32, 96, 256]),
    }
)


@atos.task
def again(worker, v):
    """Push what is run, for ever."""
    if worker.rank == 0:
        worker.push(v)


@atos.task
def double_of(worker, v, source, target):
    target[v] = 2 * source[v]


@atos.task
def copy_element(worker, v, source, target):
    if worker.rank == 0:
        target[v] = source[v] + 1


#: A call of `fibonacci`: its number, and the join that waits for it.
CALL = np.dtype([("n", np.int64), ("up", np.int64)])


@atos.task
def fibonacci(worker, item, joins):
    if worker.rank == 0:
        if item.n < 2:
            worker.arrive_at(joins, item.up, item.n)
        else:
            j = worker.open(joins, 2, parent=item.up)
            worker.push((item.n - 1, j))
            worker.push((item.n - 2, j))


def threads_of(device: atos.Device, worker: str, num_threads: int = 256) -> int:
    """Return the number of threads of a worker."""
    if worker == "thread":
        return 1
    return device.threads_per_worker if device.kind == "cpu" else 32 if worker == "warp" else num_threads
