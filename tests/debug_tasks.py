"""Tasks that fail. In a module of their own, since pytest rewrites asserts in test files."""

from __future__ import annotations

import numpy as np

import atos_py as atos


def too_long(v, ran, table):  # fails
    return np.uint64(v) - np.uint64(v // 7 * 10)


@atos.task(workload=too_long)
def many(worker, v, i, ran, table):
    ran[v] = 1


@atos.task
def split_too_much(worker, v, ran, table):
    for _ in worker.split(np.uint64(0) - np.uint64(v // 7)):  # fails
        ran[v] = 1


@atos.task
def read(worker, v, ran, table):
    ran[v] = table[v + 3]  # fails


@atos.task
def write(worker, v, ran, table):
    table[v - 8] = 1  # fails
    ran[v] = 1


@atos.task
def add(worker, v, ran, table):
    atos.atomic_add(table, v * 2, 1)  # fails
    ran[v] = 1


@atos.task
def on_scratch(worker, v, ran, table):
    scratch = worker.scratch(np.int32)
    scratch[v // 7 * 16] = 1  # fails
    ran[v] = 1


@atos.task
def divide(worker, v, ran, table):
    ran[v] = 1 // (v - 7) + 2  # fails


@atos.task
def modulo(worker, v, ran, table):
    ran[v] = 5 % (7 - v)  # fails


@atos.task
def divide_floats(worker, v, ran, table):
    if 1.0 / (v - 7.0) < 2:  # fails
        ran[v] = 1


@atos.task
def convert(worker, v, ran, table):
    ran[v] = np.uint8(v // 7 * 300)  # fails


@atos.task
def store(worker, v, ran, table):
    ran[v] = (v // 7) << 31  # fails


@atos.task
def exchange(worker, v, ran, table):
    atos.atomic_exch(table, 0, v // 7 * -(2**40))  # fails
    ran[v] = 1


@atos.task
def push(worker, v, ran, table):
    worker.push(6 - v if v == 7 else 0)  # fails
    ran[v] = 1


@atos.task
def check(worker, v, ran, table):
    assert v != 7, "seven"  # fails
    ran[v] = 1


@atos.task
def count(worker, v, ran, table):
    assert v != 7, "seven"
    atos.atomic_add(ran, v, 1)


@atos.task
def refuse(worker, v, ran, table):
    if v == 7:
        raise ValueError("no sevens")  # fails
    ran[v] = 1


@atos.task
def step(worker, v, ran, table):
    for _ in range(0, 2, 7 - v):  # fails
        ran[v] = 1


def helper(v, table):
    return table[v + 3]  # fails


@atos.task
def call(worker, v, ran, table):
    ran[v] = helper(v, table)


def length(v, ran, table):
    return table[v + 3] + 3  # fails


@atos.task(workload=length)
def in_workload(worker, v, i, ran, table):
    ran[v] = 1


@atos.task(workload=lambda v: 5000 if v == 7 else 3)
def in_iteration(worker, v, i, ran, table):
    if i == 4321:
        table[i] = 1  # fails
    ran[v] = 1


@atos.task
def between_collectives(worker, v, ran, table):
    scratch = worker.scratch(np.int32)
    for k in range(10):
        worker.sync()
        if worker.rank == worker.size - 1:
            scratch[0] = 10 // (k - v + 2)  # fails
        worker.sync()
        if worker.sum(scratch[0]) < -1000 or worker.any(scratch[0] < -1000) or worker.all(scratch[0] < -1000):
            ran[v] = 2
    ran[v] = 1


@atos.task
def between_collectives_of_groups(worker, v, ran, table):
    group, seen = worker.group(8), 1
    for k in range(10):
        group.sync()
        if worker.rank == worker.size - 1:
            seen = 10 // (k - v + 2)  # fails
        group.sync()
        if group.sum(seen) < -1000 or group.any(seen < -1000) or group.all(seen < -1000) or group.shuffle(seen, 1) < -1000:
            ran[v] = 2
        if k == 8:  # some groups are here when the last one fails, and others in between
            worker.sync()
    ran[v] = 1


@atos.task(workload=lambda v: 40, group=8)
def in_one_of_a_group(worker, v, i, ran, table):
    group, seen = worker.group, 1
    for k in range(10):
        if group.rank == group.size - 1:
            seen = 10 // (k - v + 2 + (i != 21) * 100)  # fails
        if group.sum(seen) < -1000 or group.all(seen < -1000):
            ran[v] = 2
    ran[v] = 1


@atos.task
def on_scratch_of_a_group(worker, v, ran, table):
    scratch = worker.group(4).scratch(np.int32, 9)
    scratch[v // 7 * 9] = 1  # fails
    ran[v] = 1


@atos.task(workload=lambda v: 6, group=4)
def count_in_groups(worker, v, i, ran, table):
    assert v != 7 or i != 3 or worker.group.rank != 0, "seven"
    if worker.group.sum(1) == worker.group.size:
        atos.atomic_add(ran, v, 1)


@atos.task(workload=lambda v: 6, group=4)
def mend_in_groups(worker, v, i, ran, table):
    atos.atomic_add(ran, v, 1)


@atos.task
def mend(worker, v, ran, table):
    atos.atomic_add(ran, v, 1)


def failing_idle(worker, ran, table):
    table[table[0] + 10] = 1  # fails


@atos.task
def checked_or_not(worker, v, ran, table):
    assert table[v] < 100, "too large"
    ran[v] = 1


@atos.task
def never_checked(worker, v, ran, table):
    ran[v] = 1


def closing_over(limit: int) -> atos.Task:
    other = 1

    @atos.task
    def close(worker, v, ran, table):
        assert v < limit, "over the limit"
        ran[v] = other

    return close


@atos.task
def refuse_large(worker, item):
    assert item.bound < 7
