"""Fork and join
=============

This program has three recursive functions as tasks: Fibonacci numbers, mergesort, and the value of tic-tac-toe.
``python examples/fork_join.py [N]``

A task that calls itself twice opens a *join* of two arrivals and pushes two items, which hold its handle. The task of such an
item arrives there with its value, or opens a join of its own below. The last one to arrive at a join takes the combined value
up. No task waits. Queues with ``take="newest"`` run calls depth first, so that few items wait and few joins are open.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np

import atos_py as atos

CALL = np.dtype([("n", np.int64), ("up", np.int64)])
PART = np.dtype([("begin", np.int32), ("end", np.int32), ("up", np.int64), ("halves", np.int64)])
BOARD = np.dtype([("mine", np.int32), ("theirs", np.int32), ("up", np.int64), ("above", np.int64)])
LEAF = 32  # numbers that are sorted without a fork
LINES = (0o007, 0o070, 0o700, 0o111, 0o222, 0o444, 0o421, 0o124)  # squares in a row: bits of a board
FULL = 0o777


def run(queue: atos.Queue, tasks: Any, *args: Any) -> None:
    """Launch, print the statistics, and draw how many tasks have run by when."""
    from matplotlib import pyplot as plt

    stats = queue.launch_thread(tasks, *args, trace=20)
    print(stats)
    plt.plot(stats.trace["milliseconds"], stats.trace["tasks_run"], label=stats.task)
    plt.gca().set(xlabel="time (ms)", ylabel="tasks run")
    plt.legend()


# %%
# Sums: each call of the recursion is an item. The join adds up both values.
@atos.task
def fibonacci(worker: atos.Worker, call, joins):
    """Compute a Fibonacci number, without a cutoff."""
    if call.n < 2:
        worker.arrive_at(joins, call.up, call.n)
    else:
        j = worker.open(joins, 2, parent=call.up)
        worker.push((call.n - 1, j))
        worker.push((call.n - 2, j))


def number(n: int) -> int:
    """Return a Fibonacci number."""
    joins, queue = atos.Joins(1000), atos.Queue(1000, dtype=CALL, take="newest")
    queue.push([(n, 0)])
    run(queue, fibonacci, joins)
    return int(joins.result)


# %%
# Work after the fork: when both halves are sorted, their join pushes an item for `merge`, which arrives for both.
@atos.task
def sort(worker: atos.Worker, part, data, spare, joins):
    """Sort a part of the numbers by insertion, or fork."""
    if part.end - part.begin > LEAF:
        j, middle = worker.open(joins, 2), (part.begin + part.end) // 2
        worker.then(joins, j, (part.begin, part.end, part.up, j), task=merge)
        worker.push((part.begin, middle, j, 0))
        worker.push((middle, part.end, j, 0))
    else:
        for k in range(part.begin + 1, part.end):
            x, place = data[k], k
            while place > part.begin and data[place - 1] > x:
                data[place], place = data[place - 1], place - 1
            data[place] = x
        worker.arrive_at(joins, part.up)


@atos.task
def merge(worker: atos.Worker, part, data, spare, joins):
    """Merge two sorted halves."""
    worker.take(joins, part.halves)  # ends the join
    a, b, middle = part.begin, (part.begin + part.end) // 2, (part.begin + part.end) // 2
    for k in range(part.begin, part.end):
        from_a = b == part.end or (a < middle and data[a] <= data[b])
        spare[k] = data[a] if from_a else data[b]
        a, b = a + from_a, b + (not from_a)
    for k in range(part.begin, part.end):
        data[k] = spare[k]
    worker.arrive_at(joins, part.up)


def sorted_by_tasks(numbers: np.ndarray) -> np.ndarray:
    """Return the numbers in order."""
    data, spare = atos.asarray(numbers.copy()), atos.zeros(len(numbers), dtype=numbers.dtype)
    joins, queue = atos.Joins(1000, combine=None), atos.Queue(1000, dtype=PART)
    queue.push((0, len(numbers), 0, 0))
    run(queue, (sort, merge), data, spare, joins)
    return data.to_numpy()


# %%
# Negamax: what a board is worth is the largest negated worth of the boards after a move. The other moves are skipped as soon as
# one move makes a board so good that the other player will avoid that board (alpha-beta without deep cutoffs).
def has_won(board: int) -> bool:
    """Return whether a player has three squares in a row."""
    won = False
    for line in LINES:
        won = won or board & line == line
    return won


@atos.task
def play(worker: atos.Worker, board, joins):
    """Find what a board is worth for the player who moves next: 1, 0 or -1."""
    if joins.peek(board.up) + joins.peek(board.above) >= 0:
        worker.arrive_at(joins, board.up)  # the other player has something better: no value
    elif has_won(board.theirs):
        worker.arrive_at(joins, board.up, 1)  # for the player who has just moved
    elif board.mine | board.theirs == FULL:
        worker.arrive_at(joins, board.up, 0)
    else:
        free, moves = FULL & ~(board.mine | board.theirs), 0
        for square in range(9):
            moves += free >> square & 1
        j = worker.open(joins, moves, parent=board.up, negate=board.up != 0)
        for square in range(9):
            if free >> square & 1:
                worker.push((board.theirs, board.mine | 1 << square, j, board.up))


def value_of_the_game() -> int:
    """Return what the empty board is worth."""
    joins, queue = atos.Joins(1000, np.int32, combine="max"), atos.Queue(1000, dtype=BOARD, take="newest")
    queue.push([(0, 0, 0, 0)])
    run(queue, play, joins)
    return int(joins.result)


@functools.cache
def negamax(mine: int, theirs: int) -> int:
    """Return what a board is worth, by recursion on the host."""
    if has_won(theirs):
        return -1
    moves = [1 << square for square in range(9) if not (mine | theirs) >> square & 1]
    return max((-negamax(theirs, mine | move) for move in moves), default=0)


def main(n: int = 25) -> None:
    """Run the three programs, and compare with what NumPy and recursion on the host say."""
    from matplotlib import pyplot as plt

    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    assert number(n) == a
    print(f"Fibonacci number {n}: {a:,}, verified")
    numbers = np.random.default_rng(0).integers(0, 10**6, 100_000)
    assert np.array_equal(sorted_by_tasks(numbers), np.sort(numbers))
    print(f"{len(numbers):,} numbers sorted, verified")
    assert value_of_the_game() == negamax(0, 0)
    print(f"tic-tac-toe: value {negamax(0, 0)}, verified")
    plt.show()


if __name__ == "__main__":  # in a notebook sys.argv is that of the kernel
    main(*map(int, [] if hasattr(sys, "ps1") else sys.argv[1:]))
