"""N queens: a search
==================

In how many ways can N queens stand on an N x N board so that none attacks another? ``python examples/queens.py [N]``

A search whose tree nobody knows beforehand. An item is a board whose first rows are filled: a record of four numbers, in
which bit i says that column i is taken in the next row, by a queen straight above or by one on a diagonal that goes to the
left or to the right. The inner loop of a board is over the columns of its next row.
"""

from __future__ import annotations

import sys

import numpy as np

import atos_py as atos

BOARD = np.dtype([("row", np.uint32), ("above", np.uint32), ("left", np.uint32), ("right", np.uint32)])
KNOWN = [1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596]  # https://oeis.org/A000170


def columns(board, n, solutions):
    """Return the length of the inner loop."""
    return n


@atos.task(workload=columns)
def place(worker, board, i, n, solutions):
    """Put a queen in column i of the next row, if no other attacks it there."""
    queen = 1 << i
    if queen & (board.above | board.left | board.right) == 0:
        if board.row + 1 == n:
            atos.atomic_add(solutions, 0, 1)
        else:
            worker.push((board.row + 1, board.above | queen, (board.left | queen) << 1, (board.right | queen) >> 1))


# %%
# The search begins with an empty board.
def count_solutions(n: int, **launch_options: object) -> tuple[int, atos.LaunchStats]:
    """Return the number of solutions, and how the search went."""
    solutions = atos.zeros(1, dtype=np.uint64)
    queue = atos.Queue(capacity=1 << 22, dtype=BOARD)
    queue.push([(0, 0, 0, 0)])
    stats = queue.launch_warp(place, n, solutions, **launch_options)
    return int(solutions[0]), stats


def main() -> None:
    """Count, compare with what is known, and print how it went."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    found, stats = count_solutions(n)
    assert n >= len(KNOWN) or found == KNOWN[n], f"{KNOWN[n]} are known"
    print(f"{n} queens: {found:,} solutions", stats, sep="\n")


if __name__ == "__main__":
    main()
