"""N queens by backtracking
========================

This program counts the ways to place N queens on an N x N board so that none attacks another. ``python examples/queens.py [N]``

The search tree is not known before. An item is a board whose first rows are filled: a record of four numbers. Bit i of a number
says that column i of the next row is attacked, by a queen straight above or along a diagonal to the left or to the right. The
inner loop of an item runs over the columns of the next row.
"""

from __future__ import annotations

import sys

import numpy as np

import atos_py as atos

BOARD = np.dtype([("row", np.uint32), ("above", np.uint32), ("left", np.uint32), ("right", np.uint32)])
KNOWN = [1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596]  # https://oeis.org/A000170


def columns(board, n, solutions):
    """Return the length of the inner loop: one iteration per column."""
    return n


@atos.task(workload=columns)
def place(worker: atos.Worker, board, i, n, solutions):
    """Put a queen in column i of the next row, if no other queen attacks it there."""
    queen = 1 << i
    if queen & (board.above | board.left | board.right) == 0:
        if board.row + 1 == n:
            atos.atomic_add(solutions, 0, 1)
        else:
            worker.push((board.row + 1, board.above | queen, (board.left | queen) << 1, (board.right | queen) >> 1))


# %%
# The search begins with an empty board.
def count_solutions(n: int, **launch_options) -> tuple[int, atos.LaunchStats]:
    """Return the number of solutions and the statistics of the launch."""
    solutions = atos.zeros(1, dtype=np.uint64)
    queue = atos.Queue(capacity=1 << 16, dtype=BOARD, take="newest")  # depth first, so that few boards wait
    queue.push([(0, 0, 0, 0)])
    stats = queue.launch_warp(place, n, solutions, **launch_options)
    return int(solutions[0]), stats


def main(n: int = 10) -> None:
    """Count, compare with the known number, print the statistics, and draw both numbers."""
    from matplotlib import pyplot as plt

    found, stats = count_solutions(n)
    assert n >= len(KNOWN) or found == KNOWN[n], f"{KNOWN[n]} are known"
    print(f"{n} queens: {found:,} solutions", stats, sep="\n")
    plt.semilogy(KNOWN, ".-", label="known")
    plt.semilogy(n, found, "o", label="by tasks")
    plt.gca().set(xlabel="n", ylabel="solutions")
    plt.legend()
    plt.show()


if __name__ == "__main__":  # in a notebook sys.argv is that of the kernel
    main(*map(int, [] if hasattr(sys, "ps1") else sys.argv[1:]))
