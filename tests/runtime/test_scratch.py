"""Scratch memory whose size the task gives: of a worker, of a group, of an iteration; each place has its own."""

from __future__ import annotations

import functools

import numba
import numpy as np
import pytest
from shared_tasks import launch, threads_of

import atos_py as atos
from atos_py.errors import LaunchConfigError

ITEMS = 60
BYTES, WORDS, FLOATS = 5, 37, 3


@pytest.fixture
def device(threaded):
    return threaded


def helper(worker):
    """Return memory that is the same whoever calls this."""
    return worker.scratch(np.int16, 2)


def write_all(worker, group, v, bytes_, words, own_bytes, own_floats):
    for k in worker.split(BYTES):
        bytes_[k] = (v + k) % 100
    for k in worker.split(WORDS):
        words[k] = v * 1000 + k
    for k in group.split(BYTES):
        own_bytes[k] = (v + group.index + k) % 100
    for k in group.split(FLOATS):
        own_floats[k] = v * 10 + group.index + k * 0.5


@functools.cache
def use_all(k: int) -> atos.Task:
    """Return a task that fills scratch of all kinds, in types of all alignments, and counts what it does not find again."""

    @atos.task
    def use(worker, v, wrong):
        group = worker.group(k)
        bytes_, words = worker.scratch(np.int8, BYTES), worker.scratch(np.int64, WORDS)
        own_bytes, own_floats = group.scratch(np.uint8, BYTES), group.scratch(np.float64, FLOATS)
        pair = worker.group(2).scratch(np.float32, 1)
        write_all(worker, group, v, bytes_, words, own_bytes, own_floats)
        if worker.rank % 2 == 0:
            pair[0] = v + worker.rank
        if worker.rank == 0:
            helper(worker)[1] = v
        worker.sync()
        bad = 0
        for i in range(BYTES):
            bad += bytes_[i] != (v + i) % 100
            bad += own_bytes[i] != (v + group.index + i) % 100
        for i in range(WORDS):
            bad += words[i] != v * 1000 + i
        for i in range(FLOATS):
            bad += own_floats[i] != v * 10 + group.index + i * 0.5
        bad += pair[0] != v + worker.rank // 2 * 2
        bad += helper(worker)[1] != v
        bad += len(bytes_) != BYTES or words.size != WORDS or own_floats.shape[0] != FLOATS
        if bad:
            atos.atomic_add(wrong, 0, bad)
        atos.atomic_add(wrong, 1, 1)

    return use


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("k", [4, 32])
def test_each_place_has_its_own(device, worker, k, debug):
    wrong = atos.zeros(2, dtype=np.int64, device=device)
    queue = atos.Queue(ITEMS, device=device)
    queue.push(np.arange(ITEMS))
    stats = launch(queue, worker, use_all(k), wrong, debug=debug, num_threads=96, fetch_size=3)
    threads = threads_of(device, worker, 96)
    assert stats.tasks_run == ITEMS
    assert wrong.to_numpy().tolist() == [0, ITEMS * threads]


@atos.task
def both_kinds(worker, v, wrong, out):
    rest = worker.scratch(np.int32)
    sized = worker.scratch(np.int32, 6)
    if worker.rank == 0:
        out[0], out[1] = len(rest), len(worker.scratch(np.int8))
        for k in range(len(rest)):
            rest[k] = v + k
        for k in range(6):
            sized[k] = -k
        bad = 0
        for k in range(len(rest)):
            bad += rest[k] != v + k
        for k in range(6):
            bad += sized[k] != -k
        atos.atomic_add(wrong, 0, bad)


@pytest.mark.parametrize("given", [4, 50])
def test_beside_scratch_of_the_launch(device, worker, given):
    wrong, out = (atos.zeros(2, dtype=np.int64, device=device) for _ in range(2))
    queue = atos.Queue(ITEMS, device=device)
    queue.push(np.arange(ITEMS))
    with pytest.raises(LaunchConfigError, match=r"elements of 4 bytes, .* 0 bytes; pass shared_memory="):
        launch(queue, worker, both_kinds, wrong, out)
    launch(queue, worker, both_kinds, wrong, out, shared_memory=given)
    assert (wrong[0], out[0], out[1]) == (0, given // 4, given)


@functools.cache
def reverse(k: int | None) -> atos.Task:
    """Return a task whose iterations reverse numbers in scratch of their own."""

    @atos.task(workload=lambda v, lengths, wrong: lengths[v], group=k)
    def iterate(worker, v, i, lengths, wrong):
        numbers, flags = worker.scratch(np.int32, 9), worker.scratch(np.bool_, 3)
        fill(worker, v, i, numbers, flags)
        if numbers[8 - i % 9] != v + i + 8 - i % 9 or not flags[0] or flags[1]:
            atos.atomic_add(wrong, 0, 1)
        atos.atomic_add(wrong, 1, 1)

    def fill_alone(worker, v, i, numbers, flags):
        for j in range(9):
            numbers[j] = v + i + j
        flags[0], flags[1] = True, False

    def fill_together(worker, v, i, numbers, flags):
        more = worker.group.scratch(np.int32, 9)
        for j in worker.group.split(9):
            more[8 - j] = v + i + 8 - j
        worker.group.sync()
        for j in worker.group.split(9):
            numbers[j] = more[j]
        if worker.group.rank == 0:
            flags[0], flags[1] = True, False
        worker.group.sync()

    fill = fill_together if k else fill_alone
    return iterate


@pytest.mark.parametrize("k", [None, 2, 32])
def test_each_iteration_has_its_own(device, worker, k):
    lengths = np.array([*range(40), 5000, 9001])
    wrong = atos.zeros(2, dtype=np.int64, device=device)
    queue = atos.Queue(len(lengths), device=device)
    queue.push(np.arange(len(lengths)))
    launch(queue, worker, reverse(k), atos.asarray(lengths, device=device), wrong, num_threads=64)
    size = min(threads_of(device, worker), k or 1)
    assert wrong.to_numpy().tolist() == [0, lengths.sum() * size]


def idle_with_scratch(worker, lengths, wrong):
    mine = worker.scratch(np.int64, 20)
    for k in worker.split(20):
        mine[k] = worker.index
    worker.sync()
    if mine[19 - worker.rank % 20] != worker.index:
        atos.atomic_add(wrong, 0, 1)
    worker.sync()


def test_idle_has_scratch(device, worker):
    wrong = atos.zeros(2, dtype=np.int64, device=device)
    queue = atos.Queue(4, device=device)
    queue.push([0, 1])
    launch(queue, worker, reverse(4), atos.full(2, 7, device=device), wrong, idle=idle_with_scratch)
    assert wrong[0] == 0


@numba.njit
def compiled_once(worker, v):
    mine = worker.scratch(np.int64, 4)
    mine[3] = v
    return mine


@atos.task
def first_caller(worker, v, wrong):
    mine = compiled_once(worker, v)
    mine[0] = v
    if mine[3] != v:
        atos.atomic_add(wrong, 0, 1)


@atos.task
def second_caller(worker, v, wrong):
    before = worker.scratch(np.float64, 7)
    before[6] = v + 0.5
    mine = compiled_once(worker, v)
    if mine[3] != v or before[6] != v + 0.5:
        atos.atomic_add(wrong, 0, 1)


def test_helpers_that_were_compiled_for_another_task(device):
    """A dispatcher is compiled once, and its scratch then lies elsewhere in each task."""
    wrong = atos.zeros(1, dtype=np.int64, device=device)
    for task in (first_caller, second_caller):
        queue = atos.Queue(10, device=device)
        queue.push(np.arange(10))
        queue.launch_thread(task, wrong)
    assert wrong[0] == 0


@atos.task
def far_too_much(worker, v):
    worker.scratch(np.float64, 1 << 17)[0] = v
    worker.scratch(np.int8, 1)[0] = 1


def test_more_than_any_device_has_is_refused(device, worker):
    queue = atos.Queue(1, device=device)
    queue.push(0)
    threads = threads_of(device, worker)
    message = f"task 'far_too_much', its idle .* takes 1048592 bytes of scratch for each worker of {threads} threads"
    with pytest.raises(LaunchConfigError, match=message):
        launch(queue, worker, far_too_much)
    assert len(queue) == 1


@atos.task(workload=lambda v: 1)
def too_much_for_a_block(worker, v, i):
    worker.scratch(np.float64, 1000)[i] = v


@pytest.mark.gpu
def test_more_than_a_block_has_is_refused():
    queue = atos.Queue(1, device="cuda")
    queue.push(0)
    with pytest.raises(LaunchConfigError, match=r"a block of 256 threads .* or the scratch \(8016 bytes a worker\)"):
        queue.launch_thread(too_much_for_a_block)
    with pytest.raises(LaunchConfigError, match="takes 2052096 bytes of scratch for each worker of 256 threads"):
        queue.launch_cta(too_much_for_a_block)
    assert len(queue) == 1
