"""Mergesort with split merges
===========================

This program sorts numbers by merging. ``python examples/mergesort.py [NUMBERS]``

Each merge is split into pieces, so that the last merge, too, keeps all workers busy. There are three kinds of tasks. `sort`
forks into halves down to leaves, which the threads of a worker sort together in scratch memory. When both halves are sorted,
their join pushes an item of `merge`, which opens another join and pushes the pieces of the merge. Each item of `piece` finds
by binary search which numbers of both halves are its own: how many of the first k merged numbers come from the first half is
called the *co-rank* of k (merge path: Odeh, Green, Mwassi, Shmueli and Birk, 2012). The last piece closes the join of its
merge, which arrives at the join of the halves above.

Parts at even depths of the recursion end up in the first half of the array, parts at odd depths in the second half. So a merge
goes from one half of the array to the other, and copies nothing back.
"""

from __future__ import annotations

import sys

import numpy as np

import atos_py as atos

# `more` is the join of two halves for `merge`, and for `piece` the place of the first number that it writes.
PART = np.dtype([("up", np.int64), ("more", np.int64), ("begin", np.int32), ("end", np.int32), ("depth", np.int8)])
RUN = 9  # numbers that one thread sorts, or merges at a time; odd, so that threads use different banks of scratch memory
LEAF, PIECE = 2304, 2304  # numbers that a worker sorts without a fork, or merges: 9 for each of 256 threads


# %%
# What one thread does. Two sorted runs lie at `a` and `b` in the same array, of `left` and `right` numbers.
def co_rank(box, a, left, b, right, k):
    """Return how many of the first k numbers of two merged runs are from the first run."""
    low, high = max(0, k - right), min(k, left)
    while low < high:
        middle = (low + high) >> 1
        if box[a + middle] <= box[b + k - 1 - middle]:
            low = middle + 1
        else:
            high = middle
    return low


def merge_some(box, a, left, b, right, first, last, to):
    """Write a part of two merged runs, from number `first` to before `last`, to the place of that part in a run at `to`."""
    i = co_rank(box, a, left, b, right, first)
    j, k, end, end_a, end_b = b + first - i, to + first, to + last, a + left, b + right
    i += a
    while k < end and i < end_a and j < end_b:
        x, y = box[i], box[j]
        from_a = x <= y
        box[k] = x if from_a else y
        i, j, k = i + from_a, j + (not from_a), k + 1
    i = j if i == end_a else i
    while k < end:  # one run has ended
        box[k] = box[i]
        i, k = i + 1, k + 1


def insert_all(box, begin, end):
    """Sort a few numbers by insertion."""
    for k in range(begin + 1, end):
        x, place = box[k], k
        while place > begin and box[place - 1] > x:
            box[place], place = box[place - 1], place - 1
        box[place] = x


def middle_of(part, leaf):
    """Return where a part is halved: after whole leaves."""
    return part.begin + ((part.end - part.begin - 1) // leaf // 2 + 1) * leaf


# %%
# What the threads of a worker do together. On a CPU a worker has one thread, which needs no search to merge two whole runs.
def merge_runs(worker, box, here, there, width, pair, length):
    """Merge runs in pairs, from `here` to `there`: in each pair the first run has `width` numbers, unless the numbers end."""
    step = RUN if worker.size > 1 else pair
    for k in worker.split((length + step - 1) // step):
        a = k * step // pair * pair
        b, end = min(a + width, length), min(a + pair, length)
        merge_some(box, here + a, b - a, here + b, end - b, k * step - a, min(k * step + step, end) - a, there + a)
    worker.sync()


def fill(worker, box, data, a, left, b, total):
    """Copy numbers into scratch: `left` from `a` on, and the others from `b` on. A thread waits for three at a time."""
    step, last = worker.size, total - 1
    for k in range(worker.rank, total, 3 * step):
        m, n = min(k + step, last), min(k + 2 * step, last)
        x, y, z = data[k + (a if k < left else b)], data[m + (a if m < left else b)], data[n + (a if n < left else b)]
        box[k], box[m], box[n] = x, y, z
    worker.sync()


def co_rank_by_group(group, data, a, left, b, right, k):
    """Return the co-rank as `co_rank` does, in far fewer steps: a warp compares at 32 places at once."""
    low, high = max(0, k - right), min(k, left)
    while low < high:
        step = (high - low) // (group.size + 1) + 1
        place = low + (group.rank + 1) * step - 1
        found = group.sum(1 if place < high and data[a + place] <= data[b + k - 1 - place] else 0)
        low, high = low + found * step, min(high, low + found * step + step - 1)
    return low


# %%
# The tasks. Scratch memory has two halves, too: runs are merged from one half into the other.
@atos.task(max_registers={"cta": 64})  # so that a multiprocessor runs four blocks of 256 threads
def sort(worker, part, data, leaf, size, joins):
    """Fork, or sort a leaf: runs by insertion, then runs twice as long by merging."""
    length, place = part.end - part.begin, part.depth % 2 * (data.size // 2) + part.begin
    if length > leaf:
        if worker.rank == 0:
            j, middle = worker.open(joins, 2), middle_of(part, leaf)
            worker.then(joins, j, (part.up, j, part.begin, part.end, part.depth), task=merge)
            worker.push((j, 0, part.begin, middle, part.depth + 1))
            worker.push((j, 0, middle, part.end, part.depth + 1))
    else:
        box, here, there, width = worker.scratch(data.dtype), 0, leaf, RUN
        fill(worker, box, data, part.begin, length, 0, length)
        for k in worker.split((length + RUN - 1) // RUN):
            insert_all(box, k * RUN, min(k * RUN + RUN, length))
        worker.sync()
        while width < length:
            merge_runs(worker, box, here, there, width, 2 * width, length)
            here, there, width = there, here, 2 * width
        for k in worker.split(length):
            data[place + k] = box[here + k]
        worker.sync()  # all threads have written before one arrives
        if worker.rank == 0:
            worker.arrive_at(joins, part.up)


@atos.task
def merge(worker, part, data, leaf, size, joins):
    """Push the pieces of the merge of two sorted halves."""
    pieces, j = (part.end - part.begin + size - 1) // size, worker.scratch(np.int64, 1)
    if worker.rank == 0:
        worker.take(joins, part.more)  # ends the join of the halves
        j[0] = worker.open(joins, pieces, parent=part.up)
    worker.sync()
    for k in worker.split(pieces):
        worker.push((j[0], k * size, part.begin, part.end, part.depth), task=piece)
    worker.sync()


@atos.task(opens=0)  # no join
def piece(worker, part, data, leaf, size, joins):
    """Merge a piece: the numbers from number `more` on, at most `size`."""
    box, cuts, group = worker.scratch(data.dtype), worker.scratch(np.int64, 2), worker.group(32)
    middle = middle_of(part, leaf)
    first, last = part.more, min(part.more + size, part.end - part.begin)
    here, there = (data.size // 2, 0) if part.depth % 2 == 0 else (0, data.size // 2)
    a, b = here + part.begin, here + middle
    for k in range(group.index, 2, group.count):  # where this piece begins and ends in the first half
        cut = co_rank_by_group(group, data, a, middle - part.begin, b, part.end - middle, first if k == 0 else last)
        if group.rank == 0:
            cuts[k] = cut
    worker.sync()
    left, total = cuts[1] - cuts[0], last - first
    fill(worker, box, data, a + cuts[0], left, b + first - cuts[0] - left, total)
    merge_runs(worker, box, 0, size, left, total, total)
    for k in worker.split(total):
        data[there + part.begin + first + k] = box[size + k]
    worker.sync()
    if worker.rank == 0:
        worker.arrive_at(joins, part.up)


# %%
# A task takes long, so that a worker takes one item at a time (`fetch_size=1`).
def in_order(numbers: np.ndarray, worker: str = "cta", leaf: int = LEAF, size: int = PIECE, device=None, **options):
    """Return numbers, of which none is NaN, in order, and the statistics of the launch."""
    data = atos.asarray(np.concatenate([numbers, numbers]), device=device)
    joins, queue = atos.Joins(1000, combine=None, device=device), atos.Queue(1000, dtype=PART, device=device)
    queue.push([(0, 0, 0, len(numbers), 0)])
    options = {"fetch_size": 1, "shared_memory": 2 * max(leaf, size) * numbers.itemsize} | options
    stats = queue.launch((sort, merge, piece), data, leaf, size, joins, worker=worker, **options)
    return data.to_numpy()[: len(numbers)], stats


def main(n: int = 1_000_000) -> None:
    """Sort random numbers, and compare with NumPy."""
    from matplotlib import pyplot as plt

    numbers = np.random.default_rng(0).integers(-(2**31), 2**31, n, dtype=np.int32)
    found, stats = in_order(numbers)
    assert np.array_equal(found, np.sort(numbers))
    print(f"{n:,} numbers sorted, verified", stats, sep="\n")
    few = slice(None, None, max(n // 1000, 1))
    plt.plot(numbers[few], ".", label="numbers")
    plt.plot(found[few], label="sorted")
    plt.legend()
    plt.show()


if __name__ == "__main__":  # in a notebook sys.argv is that of the kernel
    main(*map(int, [] if hasattr(sys, "ps1") else sys.argv[1:]))
